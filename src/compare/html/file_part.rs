//! A change as a part of a page: its head, its remarks, and its lines or first bytes. What stands of it above is kept: [`Entry`].

use super::rows;
use super::rows::{Counts, Words};
use super::{escape, first_bytes};
use crate::compare::blocks::lines;
use crate::compare::patch;
use crate::compare::patch::Form;
use crate::compare::view::{Half, View};
use crate::error::shell_word;
use crate::fs::AbsPath;
use crate::session::Sort;
use crate::settings;

/// A file with more lines than these is folded.
const FOLDED: usize = 400;

/// The files from this one on are folded, so that a browser has not all to lay out.
const OPEN: usize = 200;

/// The things that all files of a page have in common.
#[derive(Default)]
pub struct Common {
    /// The form of the lines. A page always marks words.
    pub form: Form,
    /// The directory from which paths start; others stay absolute.
    pub base: Option<AbsPath>,
    pub sides: [String; 2],
    /// The command that shows the lines of a path, which is added to it.
    pub whole: String,
}

impl Common {
    /// A path as it stands on the page, escaped.
    pub fn name(&self, path: &AbsPath) -> String {
        let below = self.base.as_ref().and_then(|base| path.below(base)).filter(|below| !below.is_empty());
        escape::escaped(below.unwrap_or(path.as_bytes()))
    }
}

/// The part of a file that stands above all of them.
pub struct Entry {
    /// Its number on the page, from 1 on.
    pub n: usize,
    pub name: String,
    pub word: &'static str,
    pub sort: Sort,
    pub kind: &'static str,
    /// Insertions and deletions; `None` if lines cannot be counted.
    pub lines: Option<(usize, usize)>,
    /// Bytes before and after.
    pub sizes: [u64; 2],
    /// True if the tree does not hold what was recorded.
    pub conflict: bool,
    pub rights: Vec<String>,
    pub why: Option<String>,
}

/// Writes the file that has number `n` on the page.
pub fn write(to: &mut String, common: &Common, view: &View<'_>, n: usize) -> Entry {
    let name = common.name(view.path);
    let name = match &view.from {
        Some(from) => format!("{} → {name}", common.name(from.path)),
        None => name,
    };
    let mut body = String::new();
    let counts = write_body(&mut body, common, view, &name);
    let lines = counted(view, &counts);
    let entry = Entry {
        n,
        name,
        word: if view.from.is_some() { "renamed" } else { view.sort.word() },
        sort: view.sort,
        kind: view.kind,
        lines,
        sizes: [view.old.size(), view.new.size()],
        conflict: view.conflict,
        rights: view.rights.iter().map(|right| escape::escaped(right.as_bytes())).collect(),
        why: view.conflict.then(|| escape::escaped(view.remarks.join("; ").as_bytes())),
    };
    // Lines that went are never folded with their file.
    let is_open = view.sort == Sort::Deleted || n <= OPEN && counts.rows <= FOLDED;
    // A browser that lays it out later on knows how high it will be.
    let rows = if is_open { format!(" open style=\"--r:{}\"", counts.rows) } else { String::new() };
    to.push_str(&format!("<details{rows}>"));
    head(to, &entry, &counts);
    to.push_str(&format!("<div id=\"f{n}\">\n{body}</div></details>\n"));
    entry
}

fn counted(view: &View<'_>, counts: &Counts) -> Option<(usize, usize)> {
    if !view.whole || view.is_binary() { None } else { Some((counts.insertions, counts.deletions)) }
}

fn head(to: &mut String, entry: &Entry, counts: &Counts) {
    let Entry { name, word, kind, lines, .. } = entry;
    to.push_str(&format!("<summary><span class=\"k {word}\">{word}</span> <code>{name}</code>"));
    if *kind != "file" {
        to.push_str(&format!(" <span class=\"w\">{kind}</span>"));
    }
    if let Some((insertions, deletions)) = lines.filter(|lines| *lines != (0, 0)) {
        to.push_str(&signed(insertions, deletions));
    }
    if entry.conflict {
        to.push_str(" <strong class=\"flag\">conflict</strong>");
    }
    if !entry.rights.is_empty() {
        to.push_str(" <strong class=\"flag\">gives rights</strong>");
    }
    if counts.rows > 0 {
        let lines = settings::grouped(counts.rows as u64);
        let s = if counts.rows == 1 { "" } else { "s" };
        to.push_str(&format!(" <span class=\"folded\">{lines} line{s}, folded</span>"));
    }
    to.push_str("</summary>\n");
}

/// The counts with their signs, in the colours of these.
pub fn signed(insertions: usize, deletions: usize) -> String {
    let part = |class, sign, n: usize| match n {
        0 => String::new(),
        n => format!(" <span class=\"{class}\">{sign}{}</span>", settings::grouped(n as u64)),
    };
    part("plus", '+', insertions) + &part("minus", '−', deletions)
}

fn write_body(to: &mut String, common: &Common, view: &View<'_>, name: &str) -> Counts {
    let remarks = remarks(view);
    if !remarks.is_empty() {
        to.push_str("<ul class=\"remarks\">");
        remarks.iter().for_each(|remark| to.push_str(&format!("<li>{}</li>", escape::escaped(remark.as_bytes()))));
        to.push_str("</ul>\n");
    }
    if !view.whole {
        return Counts::default();
    }
    let before = to.len();
    let counts = match view.is_replaced() {
        true => {
            let old = write_two(to, common, view, &view.old, &Half::Absent, name);
            let new = write_two(to, common, view, &Half::Absent, &view.new, name);
            Counts {
                insertions: new.insertions,
                deletions: old.deletions,
                rows: old.rows + new.rows,
                left_out: old.left_out + new.left_out,
            }
        }
        false => write_two(to, common, view, &view.old, &view.new, name),
    };
    if to.len() == before && remarks.is_empty() {
        to.push_str(if view.new.size() == 0 && view.old.size() == 0 {
            "<p>An empty file.</p>\n"
        } else {
            "<p>No line differs.</p>\n"
        });
    }
    counts
}

/// The remarks of a view, and what a patch says in its head.
fn remarks(view: &View<'_>) -> Vec<String> {
    let mut remarks = view.remarks.clone();
    remarks.extend(view.mode_change().filter(|_| !view.remarks.iter().any(|remark| remark.starts_with("mode "))));
    remarks.extend(view.from.as_ref().map(|from| format!("{}% of the content is the same", from.similarity)));
    if view.old.mode().is_none() && view.new.mode() == Some("100755") {
        remarks.push("executable".into());
    }
    if view.is_binary() || !view.whole && (view.old.size(), view.new.size()) != (0, 0) {
        remarks.push(sizes(&view.old, &view.new));
    }
    remarks
}

fn sizes(old: &Half, new: &Half) -> String {
    let bytes = |half: &Half| format!("{} bytes", settings::grouped(half.size()));
    match (old.mode(), new.mode()) {
        (None, _) => bytes(new),
        (_, None) => bytes(old),
        _ => format!("{} -> {}", bytes(old), bytes(new)),
    }
}

fn write_two(to: &mut String, common: &Common, view: &View<'_>, old: &Half, new: &Half, name: &str) -> Counts {
    let (Some(was), Some(is)) = (old.bytes(), new.bytes()) else { return Counts::default() };
    let labels = view.labels.as_ref().map(|(old, new)| [old, new]);
    let sides = labels.unwrap_or([&common.sides[0], &common.sides[1]]).map(|side| escape::escaped(side.as_bytes()));
    let sides = [&*sides[0], &*sides[1]];
    if lines::is_binary(was) || lines::is_binary(is) {
        let side = |half: &'_ Half| half.mode().is_some();
        if was != is {
            first_bytes::write(to, side(old).then_some(was), side(new).then_some(is), name, sides);
        }
        return Counts::default();
    }
    let whole = escape::escaped(format!("{} {}", common.whole, shell_word(view.path.as_bytes())).as_bytes());
    let words = Words { name, sides, whole: &whole };
    // The target of a link is no text without its last end of line.
    let [was, is] = [(old, was), (new, is)].map(|(half, bytes)| match half.mode() {
        Some("120000") => [bytes, b"\n"].concat().into(),
        _ => std::borrow::Cow::Borrowed(bytes),
    });
    if patch::are_same(common.form, old, new) && old.mode().is_some() && new.mode().is_some() {
        return Counts::default();
    }
    rows::write(to, common.form, &was, &is, &words)
}
