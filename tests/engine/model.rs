//! Random operations against a plain model of the tree: after each the tree is the model's, and the status and exit
//! status are what the model says.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;

use crate::common::{Said, World};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// So few names that the operations meet.
const NAMES: [&str; 7] = ["a", "b", "d", "d/a", "d/b", "d/d", "d/d/a"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    File(String),
    Directory,
    Link(String),
}

/// One object of the model. No mtime: not promised where somebody else or a staging has set it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    what: What,
    mode: u32,
    /// Known where it was set by this test: then it has to come back.
    mtime: Option<(i64, i64)>,
}

type Tree = BTreeMap<&'static str, Node>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Never,
    In,
    Out,
    Lost,
}

#[derive(Debug, Clone)]
struct Change {
    before: Option<Node>,
    after: Option<Node>,
    side: Side,
    /// What a rollback gives back: what was there when it was committed.
    kept: Option<Node>,
    /// Its content was gone already when it was redone: there is nothing to give back.
    uncovered: bool,
}

#[derive(Debug, Clone)]
enum Op {
    Write(usize, String),
    Delete(usize),
    Mkdir(usize),
    Link(usize, String),
    Chmod(usize, u32),
    /// commit, rollback or redo, of all or of these names.
    Verb(&'static str, Vec<usize>),
    Foreign(usize, String),
    ForeignChmod(usize, u32),
    ForeignRemove(usize),
}

fn staging() -> impl Strategy<Value = Op> {
    let at = || 0..NAMES.len();
    prop_oneof![
        4 => (at(), word()).prop_map(|(at, word)| Op::Write(at, word)),
        3 => at().prop_map(Op::Delete),
        2 => at().prop_map(Op::Mkdir),
        2 => (at(), prop::sample::select(vec!["here", "there"])).prop_map(|(at, to)| Op::Link(at, to.into())),
        2 => (at(), mode()).prop_map(|(at, mode)| Op::Chmod(at, mode)),
    ]
}

/// All but stagings.
fn moving() -> impl Strategy<Value = Op> {
    let at = || 0..NAMES.len();
    let verb = prop_oneof![3 => Just("commit"), 4 => Just("rollback"), 3 => Just("redo")];
    let paths = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(at(), 1..3)];
    prop_oneof![
        10 => (verb, paths).prop_map(|(verb, paths)| Op::Verb(verb, paths)),
        2 => (at(), word()).prop_map(|(at, word)| Op::Foreign(at, word)),
        1 => (at(), mode()).prop_map(|(at, mode)| Op::ForeignChmod(at, mode)),
        2 => at().prop_map(Op::ForeignRemove),
    ]
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "x", "yy", "longer"]).prop_map(String::from)
}

fn mode() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0o711_u32, 0o744, 0o755, 0o700])
}

/// Anything in any order; or a session that is staged and committed, and then moved and meddled with.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let any = prop::collection::vec(prop_oneof![staging(), moving()], 1..30);
    let one = (prop::collection::vec(staging(), 1..6), prop::collection::vec(moving(), 1..14));
    let one = one.prop_map(|(staged, moved)| staged.into_iter().chain([Op::Verb("commit", Vec::new())]).chain(moved).collect());
    prop_oneof![any, one]
}

fn parent(name: &str) -> Option<&'static str> {
    let (parent, _) = name.rsplit_once('/')?;
    NAMES.into_iter().find(|name| *name == parent)
}

/// The directories above a name, the nearest first.
fn above(name: &str) -> impl Iterator<Item = &'static str> {
    std::iter::successors(parent(name), |directory| parent(directory))
}

fn is_under(name: &str, top: &str) -> bool {
    name == top || name.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'))
}

fn is_dir(node: Option<&Node>) -> bool {
    node.is_some_and(|node| node.what == What::Directory)
}

fn is_file(node: Option<&Node>) -> bool {
    node.is_some_and(|node| matches!(node.what, What::File(_)))
}

/// Kind, content and mode; a link has no mode of its own.
fn same(a: Option<&Node>, b: Option<&Node>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.what == b.what && (a.mode == b.mode || matches!(a.what, What::Link(_))),
        _ => false,
    }
}

/// Whether the inode stays, and its metadata alone changes.
fn in_place(change: &Change) -> bool {
    matches!((&change.before, &change.after), (Some(a), Some(b)) if a.what == b.what)
}

#[derive(Default)]
struct Model {
    tree: Tree,
    changes: BTreeMap<&'static str, Change>,
}

impl Model {
    /// What is at a name with all that is staged.
    fn current(&self, name: &'static str) -> Option<Node> {
        if let Some(change) = self.changes.get(name) {
            return change.after.clone();
        }
        let stays = |change: &Change| is_dir(change.before.as_ref()) && is_dir(change.after.as_ref());
        if above(name).filter_map(|directory| self.changes.get(directory)).any(|change| !stays(change)) {
            return None;
        }
        self.tree.get(name).cloned()
    }

    fn put(&mut self, name: &'static str, after: Option<Node>) {
        let before = self.changes.get(name).map_or_else(|| self.tree.get(name).cloned(), |change| change.before.clone());
        if same(before.as_ref(), after.as_ref()) {
            self.changes.remove(name);
        } else {
            self.changes.insert(name, Change { before, after, side: Side::Never, kept: None, uncovered: false });
        }
    }

    fn clear(&mut self, name: &'static str) {
        for below in NAMES.into_iter().rev().filter(|below| *below != name && is_under(below, name)) {
            if self.current(below).is_some() {
                self.put(below, None);
            }
        }
    }

    fn status(&self) -> &'static str {
        let inside = self.changes.values().filter(|change| change.side == Side::In).count();
        let ever = self.changes.values().filter(|change| change.side != Side::Never).count();
        match (inside, ever) {
            (0, 0) => "pending",
            (0, _) => "rolled_back",
            _ => "committed",
        }
    }

    /// Whether the changes can all be true together: their `before`s are of different moments.
    fn fits(&self) -> bool {
        self.changes.iter().all(|(name, change)| {
            self.changes.iter().filter(|(top, _)| *top != name && is_under(name, top)).all(|(_, top)| {
                (change.before.is_none() || is_dir(top.before.as_ref())) && (change.after.is_none() || is_dir(top.after.as_ref()))
            })
        })
    }

    /// Whether it can be staged; what is then.
    fn stage(&mut self, op: &Op) -> bool {
        let before = self.changes.clone();
        let can = self.stage_alone(op) && self.fits();
        if !can {
            self.changes = before;
        }
        can
    }

    fn stage_alone(&mut self, op: &Op) -> bool {
        if self.status() != "pending" {
            return false;
        }
        let (Op::Write(at, _) | Op::Delete(at) | Op::Mkdir(at) | Op::Link(at, _) | Op::Chmod(at, _)) = op else { return false };
        let name = NAMES[*at];
        if above(name).any(|directory| !is_dir(self.current(directory).as_ref())) {
            return false;
        }
        let current = self.current(name);
        match op {
            Op::Write(..) | Op::Link(..) if is_dir(current.as_ref()) => self.clear(name),
            Op::Delete(_) if current.is_some() => self.clear(name),
            _ => {}
        }
        let new = |what, mode| Some(Node { what, mode, mtime: None });
        match op {
            Op::Write(_, word) => {
                let mode = current.filter(|node| is_file(Some(node))).map_or(0o644, |node| node.mode);
                self.put(name, new(What::File(word.clone()), mode));
            }
            Op::Link(_, to) => self.put(name, new(What::Link(to.clone()), 0o777)),
            Op::Mkdir(_) if current.is_none() => self.put(name, new(What::Directory, 0o755)),
            Op::Delete(_) if current.is_some() => self.put(name, None),
            Op::Chmod(_, mode) => match current {
                Some(node) if !matches!(node.what, What::Link(_)) => self.put(name, Some(Node { mode: *mode, ..node })),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// The names that are asked for and may move, with the directories that are made for them; `None` where the session holds none of one.
    fn chosen(
        &self,
        paths: &[usize],
        may: impl Fn(&Change) -> bool,
        needed: impl Fn(&Change) -> bool,
    ) -> Option<BTreeSet<&'static str>> {
        let may_move = |top: Option<&'static str>| {
            let asked = self.changes.iter().filter(move |(name, _)| top.is_none_or(|top| is_under(name, top)));
            asked.filter(|(_, change)| may(change)).map(|(name, _)| *name)
        };
        if paths.is_empty() {
            return Some(may_move(None).collect());
        }
        let mut chosen = BTreeSet::new();
        for top in paths.iter().map(|path| NAMES[*path]) {
            self.changes.keys().find(|name| is_under(name, top))?;
            chosen.extend(may_move(Some(top)));
        }
        let made: Vec<_> = chosen.iter().flat_map(|name| above(name)).collect();
        chosen.extend(made.into_iter().filter(|directory| self.changes.get(directory).is_some_and(&needed)));
        Some(chosen)
    }
}

impl Model {
    /// commit, rollback or redo: the status that it is to end with, 4 where something is left out. On a conflict nothing changes.
    fn carry_out(&mut self, verb: &str, paths: &[usize]) -> i32 {
        let status = self.status();
        match (verb, status) {
            (_, "pending") if self.changes.is_empty() && verb != "redo" && paths.is_empty() => return 0,
            ("rollback" | "redo", "pending") if !self.changes.is_empty() => return 1,
            _ => {}
        }
        let back = verb == "rollback";
        let may = |change: &Change| match verb {
            "commit" => change.side != Side::In,
            "redo" => matches!(change.side, Side::Out | Side::Lost),
            _ => change.side == Side::In,
        };
        // A directory that is to be there for what moves.
        let needed = |change: &Change| {
            let (from, to) = (is_dir(change.before.as_ref()), is_dir(change.after.as_ref()));
            (change.side == Side::In) == back && from == back && to != back
        };
        let Some(chosen) = self.chosen(paths, may, needed) else { return 1 };
        let mut left = false;
        let mut moves: BTreeMap<&'static str, (Option<Node>, Option<Node>)> = BTreeMap::new();
        for name in chosen {
            let change = &self.changes[name];
            let lost = change.side == Side::Lost && is_file(change.after.as_ref()) && !in_place(change);
            let nothing_to_put = if back { change.uncovered } else { lost };
            if nothing_to_put {
                left = true;
                continue;
            }
            let pair =
                if back { (change.after.clone(), change.kept.clone()) } else { (change.before.clone(), change.after.clone()) };
            moves.insert(name, pair);
        }
        // What is there is as expected, or as wanted already.
        let mut already = BTreeSet::new();
        for (name, (from, to)) in &moves {
            let found = self.tree.get(name);
            let parent_there = parent(name).is_none_or(|directory| is_dir(self.tree.get(directory)));
            // What both have deleted is as wanted, and its `before` is that nothing was there.
            let is_gone = verb == "commit" && to.is_none() && found.is_none();
            if is_gone || same(from.as_ref(), found) {
                continue;
            }
            if verb != "commit" && same(to.as_ref(), found) && (parent_there || to.is_none()) {
                already.insert(*name);
                continue;
            }
            return 3;
        }
        // A directory that goes holds nothing but what goes with it. At rollback it is kept for what is foreign.
        let mut stays: BTreeSet<&'static str> = BTreeSet::new();
        for (name, (from, to)) in moves.iter().rev() {
            if already.contains(name) || !is_dir(from.as_ref()) || is_dir(to.as_ref()) {
                continue;
            }
            let foreign = self.tree.keys().any(|child| {
                let goes =
                    moves.get(child).is_some_and(|(_, to)| to.is_none()) && !already.contains(child) && !stays.contains(child);
                parent(child) == Some(*name) && !goes
            });
            match (foreign, back && to.is_none()) {
                (false, _) => {}
                (true, true) => drop(stays.insert(name)),
                (true, false) => return 3,
            }
        }
        left |= !stays.is_empty();
        // What comes needs a directory that is there and stays one, or comes too.
        for (name, (_, to)) in moves.iter().filter(|(name, _)| !already.contains(*name)) {
            let Some(directory) = parent(name).filter(|_| to.is_some()) else { continue };
            let directory_then = match moves.get(directory) {
                Some((_, to)) if !stays.contains(directory) => to.as_ref(),
                _ => self.tree.get(directory),
            };
            if !is_dir(directory_then) {
                return 3;
            }
        }
        for (name, (from, to)) in moves {
            if stays.contains(name) {
                continue;
            }
            let change = self.changes.get_mut(name).expect("a change that moves");
            let found = self.tree.get(name).cloned();
            let gone = already.contains(name) && is_file(from.as_ref()) && !in_place(change);
            if back {
                change.side = if gone { Side::Lost } else { Side::Out };
            } else {
                if found.is_none() && to.is_none() {
                    change.before = None;
                }
                change.side = Side::In;
                change.uncovered = gone;
                change.kept = if already.contains(name) { from } else { found.clone() };
            }
            if already.contains(name) {
                continue;
            }
            match to {
                Some(node) => drop(self.tree.insert(name, node)),
                None => drop(self.tree.remove(name)),
            }
        }
        if left { 4 } else { 0 }
    }

    /// What somebody else does; false where it cannot be done.
    fn foreign(&mut self, op: &Op, world: &World, tick: &mut i64) -> bool {
        *tick += 1;
        let mtime = (1_000_000_000 + *tick, *tick % 1_000);
        let (Op::Foreign(at, _) | Op::ForeignChmod(at, _) | Op::ForeignRemove(at)) = op else { return false };
        let name = NAMES[*at];
        let there = self.tree.get(name).cloned();
        match (op, there) {
            (Op::Foreign(_, word), there) => {
                if parent(name).is_some_and(|directory| !is_dir(self.tree.get(directory))) || is_dir(there.as_ref()) {
                    return false;
                }
                let file = there.as_ref().filter(|node| is_file(Some(node)));
                if there.is_some() && file.is_none() {
                    world.remove(name);
                }
                let mode = file.map_or(0o644, |node| node.mode);
                world.write(name, word).chmod(name, mode).set_mtime(name, mtime.0, mtime.1);
                self.tree.insert(name, Node { what: What::File(word.clone()), mode, mtime: Some(mtime) });
            }
            (Op::ForeignChmod(_, mode), Some(node)) if !matches!(node.what, What::Link(_)) => {
                world.chmod(name, *mode);
                self.tree.insert(name, Node { mode: *mode, ..node });
            }
            (Op::ForeignRemove(_), Some(_)) => {
                world.remove(name);
                self.tree.retain(|below, _| !is_under(below, name));
            }
            _ => return false,
        }
        true
    }
}

/// The tree as it is, with the mtimes that the model knows.
fn tree_of(world: &World, model: &Model) -> Tree {
    let mut tree = Tree::new();
    for name in NAMES {
        let path = world.path(name);
        let Ok(meta) = path.symlink_metadata() else { continue };
        let what = if meta.is_dir() {
            What::Directory
        } else if meta.is_symlink() {
            What::Link(std::fs::read_link(&path).expect("a link").to_string_lossy().into_owned())
        } else {
            What::File(std::fs::read_to_string(&path).expect("a file"))
        };
        let known = model.tree.get(name).and_then(|node| node.mtime);
        let mtime = known.map(|_| (meta.mtime(), meta.mtime_nsec()));
        let mode = if meta.is_symlink() { 0o777 } else { meta.mode() & 0o7777 };
        tree.insert(name, Node { what, mode, mtime });
    }
    tree
}

fn stage(world: &World, id: &str, op: &Op) -> Said {
    let (verb, rest, input): (&str, Vec<String>, &str) = match op {
        Op::Write(at, word) => ("write", vec!["-r".into(), id.into(), NAMES[*at].into()], word),
        Op::Delete(at) => ("delete", vec!["-r".into(), id.into(), NAMES[*at].into()], ""),
        Op::Mkdir(at) => ("mkdir", vec![id.into(), NAMES[*at].into()], ""),
        Op::Link(at, to) => ("symlink", vec!["-r".into(), id.into(), to.clone(), NAMES[*at].into()], ""),
        Op::Chmod(at, mode) => ("chmod", vec![id.into(), format!("{mode:04o}"), NAMES[*at].into()], ""),
        _ => unreachable!("only stagings are staged"),
    };
    world.call(["session", verb].map(String::from).into_iter().chain(rest)).stdin(input).run()
}

fn play(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let world = World::new();
    let mut model = Model::default();
    for (name, word) in [("a", "first"), ("d/a", "second")] {
        world.write(name, word).set_mtime(name, 1_000_000_000, 7);
        model.tree.insert(name, Node { what: What::File(word.into()), mode: 0o644, mtime: Some((1_000_000_000, 7)) });
    }
    model.tree.insert("d", Node { what: What::Directory, mode: 0o755, mtime: None });
    let mut id = world.begin();
    let mut tick = 0;
    let mut done: Vec<String> = Vec::new();
    for op in ops {
        let shown = format!("{op:?}");
        match &op {
            Op::Write(..) | Op::Delete(_) | Op::Mkdir(_) | Op::Link(..) | Op::Chmod(..) => {
                // With everything taken back another session begins, so that there is more to stage.
                if model.status() == "rolled_back" && matches!(op, Op::Write(..)) {
                    id = world.begin();
                    model.changes.clear();
                }
                let can = model.stage(&op);
                let said = stage(&world, &id, &op);
                prop_assert_eq!(said.status, i32::from(!can), "{} after {:#?}\n{}", shown, done, said);
            }
            Op::Verb(verb, paths) => {
                let want = model.carry_out(verb, paths);
                let args = || [verb, &*id].into_iter().chain(paths.iter().map(|at| NAMES[*at]));
                let dry = world.call(args().chain(["--dry-run"])).run();
                if *verb == "commit" && !paths.is_empty() {
                    let names: Vec<&str> = paths.iter().map(|at| NAMES[*at]).collect();
                    prop_assert_eq!(world.commit_half(&id, &names, false), want, "{} after {:#?}", shown, done);
                } else {
                    let said = world.call(args()).run();
                    prop_assert_eq!(said.status, want, "{} after {:#?}\n{}", shown, done, said);
                }
                prop_assert_eq!(dry.status, want, "{} --dry-run after {:#?}\n{}", shown, done, dry);
                prop_assert!(world.journals().is_empty(), "{} after {:#?}", shown, done);
                prop_assert_eq!(world.status(&id), model.status(), "{} after {:#?}", shown, done);
            }
            _ => {
                if !model.foreign(&op, &world, &mut tick) {
                    continue;
                }
            }
        }
        done.push(shown);
        prop_assert_eq!(tree_of(&world, &model), model.tree.clone(), "after {:#?}", done);
    }
    Ok(())
}

fn play_many(cases: u32) {
    let config = ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(cases, |cases| cases.parse().expect("a number")),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    };
    TestRunner::new(config).run(&ops(), play).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_tree_is_the_models_after_every_step() {
    play_many(24);
}

#[test]
#[ignore = "long: 200 cases of some dozens of calls each"]
fn the_tree_is_the_models_after_every_step_of_many_more() {
    play_many(200);
}
