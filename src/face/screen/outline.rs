//! The tree of changes: directories that can be folded, with what lies below them counted.

use std::ops::Range;

use crate::fs::{AbsPath, Shown};
use crate::session::{Change, Sort};
use crate::tree::{Danger, Generated, Object, State, generated, is_vcs};

/// A directory with more changes than this begins folded, where there are more than [`FEW`] and not all lie in it.
const LARGE: usize = 20;

/// So many changes are listed unfolded.
const FEW: usize = 40;

/// Below so many nodes all that follows is listed in one level.
const DEEPEST: usize = 200;

/// The order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Path,
    /// The largest first.
    Size,
    /// By kind, deletions first.
    Kind,
}

impl Order {
    pub fn next(self) -> Self {
        match self {
            Order::Path => Order::Size,
            Order::Size => Order::Kind,
            Order::Kind => Order::Path,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Order::Path => "path",
            Order::Size => "size",
            Order::Kind => "kind",
        }
    }
}

/// How many changes of each kind lie somewhere, and the bytes that they leave there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub created: usize,
    pub modified: usize,
    pub deleted: usize,
    /// Bytes of the contents after them; of deleted files those before.
    pub bytes: u64,
}

impl Totals {
    pub fn all(&self) -> usize {
        self.created + self.modified + self.deleted
    }

    fn add(&mut self, other: Self) {
        self.created += other.created;
        self.modified += other.modified;
        self.deleted += other.deleted;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn of(change: &Change) -> Self {
        let mut totals = Self { bytes: size(change), ..Self::default() };
        match change.sort() {
            Sort::Created => totals.created = 1,
            Sort::Deleted => totals.deleted = 1,
            Sort::Modified | Sort::Metadata | Sort::Times => totals.modified = 1,
        }
        totals
    }
}

/// The bytes of content that a change is about.
pub fn size(change: &Change) -> u64 {
    let of = |object: &Object| object.as_ref().map(State::size);
    of(&change.after).or(of(&change.before.object)).unwrap_or(0)
}

/// True for the directory of a package manager, a cache or version control, or what lies in one: nobody edits there. What compilers make may
/// lie in a directory of sources.
fn is_made(label: &str) -> bool {
    let is_known = |name: &[u8]| is_vcs(name) || generated(name).is_some_and(|kind| kind != Generated::Built);
    label.split('/').any(|name| is_known(name.as_bytes()))
}

fn is_dangerous(change: &Change) -> bool {
    change.danger().is_some()
}

/// The changes that a person should see before all others, by index, the most dangerous first.
pub fn dangerous(changes: &[Change]) -> Vec<usize> {
    let mut found: Vec<(u8, usize)> =
        (0..changes.len()).filter_map(|i| changes[i].danger().map(|danger| (Danger::place(Some(danger)), i))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, i)| i).collect()
}

/// A path of the tree: a change, a directory with changes below it, or both.
#[derive(Debug)]
pub struct Node {
    /// The path from the node above on, as printed; a directory ends with `/`.
    pub label: String,
    pub depth: usize,
    /// The changes at and below it, by index.
    pub range: Range<usize>,
    pub is_change: bool,
    /// True if changes lie below it.
    pub is_parent: bool,
    /// True if those are not listed.
    pub is_folded: bool,
    /// The counts of all at and below it.
    pub totals: Totals,
    /// The index behind the last node below it.
    end: usize,
}

/// The tree, its nodes from top to bottom.
#[derive(Debug)]
pub struct Outline {
    nodes: Vec<Node>,
}

impl Outline {
    /// The tree of these changes, which are in path order. `show` prints a path as people read it.
    pub fn of(changes: &[Change], show: &dyn Fn(&AbsPath) -> String) -> Self {
        let mut building = Building { changes, show, nodes: Vec::with_capacity(changes.len() + changes.len() / 4) };
        building.level(0..changes.len(), 1, 0);
        let mut outline = Self { nodes: building.nodes };
        let all = changes.len();
        for node in &mut outline.nodes {
            let is_large = all > FEW && node.range.len() > LARGE;
            let is_made = node.depth > 0 && is_made(&node.label) && !changes[node.range.clone()].iter().any(is_dangerous);
            node.is_folded = (is_large || is_made) && node.is_parent && node.range.len() < all;
        }
        outline
    }

    pub fn node(&self, n: usize) -> &Node {
        &self.nodes[n]
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let mut n = 0;
        while let Some(node) = self.nodes.get(n) {
            totals.add(node.totals);
            n = node.end;
        }
        totals
    }

    /// The nodes that are listed, of those that `may` holds for.
    pub fn listed(&self, may: impl Fn(&Node) -> bool) -> Vec<usize> {
        let (mut listed, mut n) = (Vec::new(), 0);
        while let Some(node) = self.nodes.get(n) {
            let is_listed = may(node);
            listed.extend(is_listed.then_some(n));
            n = if node.is_folded || !is_listed { node.end } else { n + 1 };
        }
        listed
    }

    pub fn fold(&mut self, n: usize, folded: bool) {
        self.nodes[n].is_folded = folded && self.nodes[n].is_parent;
    }

    pub fn parent(&self, n: usize) -> Option<usize> {
        let depth = self.nodes[n].depth.checked_sub(1)?;
        (0..n).rev().find(|above| self.nodes[*above].depth == depth)
    }

    pub fn of_change(&self, i: usize) -> Option<usize> {
        let mut n = 0;
        while let Some(node) = self.nodes.get(n) {
            match () {
                () if node.is_change && node.range.start == i => return Some(n),
                () if node.range.contains(&i) => n += 1,
                () => n = node.end,
            }
        }
        None
    }

    /// Unfolds all that a node lies in.
    pub fn reveal(&mut self, n: usize) {
        let mut at = n;
        while let Some(above) = self.parent(at) {
            self.nodes[above].is_folded = false;
            at = above;
        }
    }

    /// Folds the directories that another tree has folded, and no others. `paths` of both tell which is which.
    pub fn fold_as(&mut self, old: &Self, olds: &[Change], news: &[Change]) {
        let key = |node: &Node, changes: &[Change]| (changes[node.range.start].path.clone(), node.label.clone(), node.depth);
        let known: std::collections::HashMap<_, bool> =
            (old.nodes.iter()).filter(|node| node.is_parent).map(|node| (key(node, olds), node.is_folded)).collect();
        for node in self.nodes.iter_mut().filter(|node| node.is_parent) {
            if let Some(folded) = known.get(&key(node, news)) {
                node.is_folded = *folded;
            }
        }
    }
}

struct Building<'b> {
    changes: &'b [Change],
    show: &'b dyn Fn(&AbsPath) -> String,
    nodes: Vec<Node>,
}

impl Building<'_> {
    /// Adds what lies in a directory: `length` bytes of each path are known, with the `/` behind them.
    fn level(&mut self, range: Range<usize>, length: usize, depth: usize) {
        let mut start = range.start;
        while start < range.end && depth >= DEEPEST {
            self.leaf(start, length, depth);
            start += 1;
        }
        while start < range.end {
            let end = self.end_of(start, range.end, length);
            self.entry(start..end, length, depth);
            start = end;
        }
    }

    /// Adds a change by itself, whatever lies above and below it.
    fn leaf(&mut self, i: usize, length: usize, depth: usize) {
        let bytes = self.bytes(i);
        let node = Node {
            label: Shown(&bytes[length.min(bytes.len())..]).to_string(),
            depth,
            range: i..i + 1,
            is_change: true,
            is_parent: false,
            is_folded: false,
            totals: Totals::of(&self.changes[i]),
            end: self.nodes.len() + 1,
        };
        self.nodes.push(node);
    }

    fn bytes(&self, i: usize) -> &[u8] {
        self.changes[i].path.as_bytes()
    }

    /// The end of a path's next component behind `length` bytes.
    fn component(&self, i: usize, length: usize) -> usize {
        let bytes = self.bytes(i);
        bytes[length..].iter().position(|byte| *byte == b'/').map_or(bytes.len(), |at| length + at)
    }

    /// The end of the changes that share the next component of the first one.
    fn end_of(&self, start: usize, end: usize, length: usize) -> usize {
        let to = self.component(start, length);
        let name = &self.bytes(start)[..to];
        let shares = |i: usize| {
            let bytes = self.bytes(i);
            bytes.starts_with(name) && matches!(bytes.get(to), None | Some(b'/'))
        };
        start + (start..end).take_while(|i| shares(*i)).count()
    }

    /// Adds the node of changes that share a component, with all that follow it and that they share too, unless one of them ends there.
    fn entry(&mut self, range: Range<usize>, length: usize, depth: usize) {
        let mut to = self.component(range.start, length);
        let ends = |this: &Self, to: usize| this.bytes(range.start).len() == to;
        while !ends(self, to) {
            let next = self.component(range.start, to + 1);
            let shared = self.end_of(range.start, range.end, to + 1) == range.end;
            if !shared || ends(self, next) && range.len() == 1 {
                break;
            }
            to = next;
        }
        let is_change = ends(self, to);
        let below = range.start + usize::from(is_change)..range.end;
        let first = &self.changes[range.start];
        let is_dir = !below.is_empty() || [&first.before.object, &first.after].into_iter().flatten().any(State::is_dir);
        let n = self.nodes.len();
        self.nodes.push(Node {
            label: self.label(range.start, length, to, depth) + if is_dir { "/" } else { "" },
            depth,
            range: range.clone(),
            is_change,
            is_parent: !below.is_empty(),
            is_folded: false,
            totals: if is_change { Totals::of(first) } else { Totals::default() },
            end: 0,
        });
        if !below.is_empty() {
            self.level(below, to + 1, depth + 1);
        }
        let end = self.nodes.len();
        let (above, under) = self.nodes.split_at_mut(n + 1);
        let node = &mut above[n];
        node.end = end;
        let mut k = 0;
        while let Some(child) = under.get(k) {
            node.totals.add(child.totals);
            k = child.end - n - 1;
        }
    }

    fn label(&self, i: usize, from: usize, to: usize, depth: usize) -> String {
        let bytes = self.bytes(i);
        if depth > 0 {
            return Shown(&bytes[from..to]).to_string();
        }
        AbsPath::parse(&bytes[..to]).map_or_else(|_| Shown(&bytes[..to]).to_string(), |path| (self.show)(&path))
    }
}

#[cfg(test)]
mod tests {
    use crate::face::screen::outline::*;
    use crate::session::Before;
    use crate::tree::{Meta, What};

    fn changes(paths: &[&str]) -> Vec<Change> {
        let meta = Meta { mode: 0o644, uid: 0, gid: 0, mtime: Default::default(), xattrs: Default::default() };
        let file = State { what: What::File { size: 0, hash: None, index: None }, meta };
        let change =
            |path: &&str| Change::new(0, AbsPath::parse(path).unwrap(), Before { object: None, print: None }, Some(file.clone()));
        let mut changes: Vec<Change> = paths.iter().map(change).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    fn drawn(paths: &[&str]) -> String {
        let changes = changes(paths);
        let outline = Outline::of(&changes, &|path| path.to_string());
        let rows = outline.listed(|_| true).into_iter().map(|n| {
            let node = outline.node(n);
            format!("{}{}{} {}", "  ".repeat(node.depth), node.label, if node.is_change { "*" } else { "" }, node.totals.all())
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn directories_that_hold_one_thing_stand_on_one_line_and_a_changed_one_has_its_own() {
        assert_eq!(
            drawn(&["/p/src/a.rs", "/p/src/cli/b.rs", "/p/src/cli/c.rs"]),
            "/p/src/ 3\n  a.rs* 1\n  cli/ 2\n    b.rs* 1\n    c.rs* 1"
        );
        assert_eq!(drawn(&["/p/a"]), "/p/ 1\n  a* 1");
        assert_eq!(drawn(&["/a", "/b/c"]), "/a* 1\n/b/ 1\n  c* 1");
        assert_eq!(drawn(&["/p/new", "/p/new/x", "/p/new/y/z"]), "/p/new/* 3\n  x* 1\n  y/ 1\n    z* 1");
        assert_eq!(drawn(&["/p/a", "/p/a.b", "/p/a/c", "/p/a0"]), "/p/ 4\n  a/* 2\n    c* 1\n  a.b* 1\n  a0* 1");
        assert_eq!(drawn(&["/"]), "/* 1");
        assert_eq!(drawn(&[]), "");
    }

    #[test]
    fn what_programs_made_begins_folded_unless_something_in_it_is_dangerous() {
        let of = |paths: &[&str]| drawn(paths).lines().map(str::trim).map(str::to_owned).collect::<Vec<_>>();
        let made = ["/p/.git/objects/1", "/p/.git/index", "/p/a", "/p/node_modules/a/package.json", "/p/node_modules/b"];
        assert_eq!(of(&made), ["/p/ 5", ".git/ 2", "a* 1", "node_modules/ 2"]);
        assert_eq!(of(&["/p/.git/hooks/pre-commit", "/p/.git/index", "/p/build/a"]).len(), 7, "all of it is listed");
        assert_eq!(of(&["/p/node_modules/a", "/p/node_modules/b"]).len(), 3, "there is nothing else");
    }

    #[test]
    fn a_large_directory_begins_folded_and_one_of_many_levels_is_no_load() {
        let many: Vec<String> = (0..150).map(|n| format!("/p/many/{n}")).chain(["/p/other".into()]).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(drawn(&many), "/p/ 151\n  many/ 150\n  other* 1");
        let deep = format!("/{}", vec!["d"; 2000].join("/"));
        let each: Vec<String> = (1..=2000).map(|n| deep[..2 * n].to_owned()).collect();
        let each: Vec<&str> = each.iter().map(String::as_str).collect();
        assert_eq!(drawn(&each).lines().count(), 2, "its second level is folded");
    }
}
