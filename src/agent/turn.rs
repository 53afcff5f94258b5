//! A turn: what an agent did about one prompt. Its file has a line a fact, in the order in which they came; what follows from them is
//! computed here.
//!
//! ```text
//! turn ---> before ---> seen, tool, seen, done, ... seen ---> after, wrote, ... ---> end
//!           snapshot                                          snapshot
//! ```
//! A turn is covered if its snapshot `before` was whole before its first tool that may write began. A `seen` line has what changed since the
//! one before it. That is the turn's own if a tool ran then that may write anywhere, or that named it; else somebody else's. A path is the
//! turn's if nothing of what it saw there was somebody else's.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use super::project_walk::Change;
pub use super::turn_lines::mark;
pub use super::turn_lines::{Call, Head, Line, Named, Place, Ran, When, Wrote};
use crate::fs::{AbsPath, Time};
use crate::session::Id;
use crate::snapshot::whole;

/// A turn as its file tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub head: Head,
    /// The snapshot from before it, and the time until when all that it could see was born.
    pub before: Option<(u64, Time)>,
    /// True if that was whole before the first tool that may write.
    pub covered: bool,
    /// The tools that may write, in the order in which they began.
    pub calls: Vec<Call>,
    /// The newest snapshot that shows what it did.
    pub after: Option<u64>,
    /// True if no tool began since then.
    pub is_settled: bool,
    /// The paths that differ, as of that snapshot, in the order of paths.
    pub wrote: Vec<Wrote>,
    /// The paths of which it is not known, and why.
    pub left: Vec<(AbsPath, String)>,
    pub ended: Option<Time>,
    /// The time of its last line that has one.
    pub last: Time,
    /// The reason why a snapshot could not be taken.
    pub failed: Option<String>,
    /// The sessions that took it back, each with the paths that were as before already.
    pub undone: Vec<(Id, Vec<AbsPath>)>,
    /// True if something of what happened in it is not known.
    pub is_blind: bool,
    /// The paths that an undo put back while it ran.
    back: BTreeSet<AbsPath>,
    /// The `seen` lines, until they are judged.
    seen: Vec<Vec<Change>>,
    /// The changes that were seen and were its own, in their order.
    own: Vec<Change>,
    /// The changes of each path, by whose they were.
    standing: HashMap<AbsPath, Standing>,
}

/// Whose the changes of a path were.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Standing {
    /// Those that were the turn's, by what was there then and its ctime.
    own: Vec<(Option<u64>, Option<Time>)>,
    /// True if a tool of the turn named the path.
    named: bool,
    /// The reason why one was not.
    foreign: Option<&'static str>,
}

/// A formatter that the agent starts after an edit may still write to a named path, in ns: prettier with eslint takes 4 to 5 s a file
/// (prettier/prettier-eslint-cli#89).
const SETTLES: i128 = 6_000_000_000;
/// Hooks in two settings tell an event at the same time, in ns.
const TWINS: i128 = 2_000_000_000;
/// The end of a tool is told late: so much before the told beginning it may have begun, in ns.
const LATE: i128 = 1_000_000_000;

const OUTSIDE: &str = "another process changed it during the turn";
const UNENDED: &str = "it was changed after a tool call whose end is unknown";
const BOTH: &str = "another process changed it during the turn, too";
const BLIND: &str = "a hook was cut off, so it is not known who changed what";

fn nanos(time: Time) -> i128 {
    i128::from(time.s) * 1_000_000_000 + i128::from(time.ns)
}

impl Call {
    /// True if it may write to any path.
    pub fn is_free(&self) -> bool {
        self.paths.is_empty() && self.outside.is_empty()
    }

    /// True if it ran when that was seen.
    fn ran_at(&self, seen: usize) -> bool {
        self.ran.from <= seen && self.ran.to.is_some_and(|to| to > seen)
    }

    /// True if it may have run when that was seen: its end was not told.
    fn may_have_run_at(&self, seen: usize) -> bool {
        self.ran.from <= seen && self.ran.to.is_none()
    }

    /// True if a change that was seen while it ran came before it really began: a person was asked first.
    fn is_after(&self, change: &Change) -> bool {
        let Some(((done, Some(took)), time)) = self.ran.done.zip(change.time) else { return false };
        // What is older than the tool came with a directory that was moved.
        let asked = nanos(self.time)..nanos(done) - i128::from(took) * 1_000_000 - LATE;
        !change.directory && asked.contains(&nanos(time))
    }

    /// True if it names the path of a change, or what is there by another name, or is to make it for a path in it.
    fn names(&self, change: &Change) -> bool {
        let is_it = |named: &Named| {
            named.path == change.path
                || named.id.is_some() && named.id == change.id
                || change.directory && named.path.is_under(&change.path)
        };
        self.paths.iter().any(is_it)
    }

    /// True if it named the path, and the change came so soon after its end that it belongs to that.
    fn settles(&self, seen: usize, change: &Change) -> bool {
        let is_soon = |(done, _): (Time, Option<u64>)| change.time.is_some_and(|time| nanos(time) <= nanos(done) + SETTLES);
        self.ran.to.is_some_and(|to| to <= seen) && self.names(change) && self.ran.done.is_some_and(is_soon)
    }
}

impl Turn {
    /// Reads a turn from its lines; `None` without a head. Lines of other kinds, and torn ones, count for nothing.
    pub fn of(lines: impl Iterator<Item = Line>) -> Option<Self> {
        let mut turn: Option<Self> = None;
        for line in lines {
            match (&mut turn, line) {
                (None, Line::Turn(head)) => turn = Some(Self::begun(head)),
                (None, _) | (Some(_), Line::Turn(_)) => {}
                (Some(turn), line) => turn.add(line),
            }
        }
        turn.as_mut().into_iter().for_each(Self::judge);
        turn
    }

    fn begun(head: Head) -> Self {
        let last = head.time;
        Self {
            head,
            before: None,
            covered: false,
            calls: Vec::new(),
            after: None,
            is_settled: true,
            wrote: Vec::new(),
            left: Vec::new(),
            ended: None,
            last,
            failed: None,
            undone: Vec::new(),
            is_blind: false,
            back: BTreeSet::new(),
            seen: Vec::new(),
            own: Vec::new(),
            standing: HashMap::new(),
        }
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::Turn(_) => {}
            Line::Before { snapshot, time } => {
                (self.before, self.covered) = (Some((snapshot, time)), self.calls.is_empty());
            }
            // Hooks of a user's settings and of a project's tell the same.
            Line::Tool(call) if call.id.is_some() && self.calls.iter().any(|known| known.id == call.id) => {}
            Line::Tool(mut call) => {
                self.last = self.last.max(call.time);
                self.is_settled = false;
                call.ran.from = self.seen.len();
                self.calls.push(call);
            }
            Line::Seen(changes) => self.seen.push(changes),
            Line::Blind => self.is_blind = true,
            Line::Done { time, id, name, took, told } => {
                self.last = self.last.max(time);
                let is_its = |call: &Call| if id.is_some() { call.id == id } else { call.name == name };
                if let Some(call) = self.calls.iter_mut().rev().find(|call| call.ran.to.is_none() && is_its(call)) {
                    call.ran = Ran { from: call.ran.from, to: Some(self.seen.len()), done: Some((time, took)), told };
                    self.is_settled = false;
                }
            }
            Line::After { snapshot, time } => {
                self.last = self.last.max(time);
                (self.after, self.is_settled) = (Some(snapshot), true);
                self.wrote.clear();
                self.left.clear();
            }
            Line::Wrote(wrote) => self.wrote.push(wrote),
            Line::Left { path, why } => self.left.push((path, why)),
            Line::End { time } => {
                self.last = self.last.max(time);
                self.ended = Some(time);
            }
            Line::Failed { why } => self.failed = Some(why),
            Line::Undone { session, same } => self.undone.push((session, same)),
            Line::Back(paths) => self.back.extend(paths),
        }
    }

    /// Says of each path that changed whose that was.
    fn judge(&mut self) {
        self.wrote.retain(|wrote| !self.back.contains(&wrote.path));
        for (seen, changes) in std::mem::take(&mut self.seen).into_iter().enumerate() {
            for change in changes {
                let foreign = self.foreign(seen, &change);
                let standing = self.standing.entry(change.path.clone()).or_default();
                standing.named |= self.calls.iter().any(|call| call.names(&change));
                if let Some(why) = foreign {
                    standing.foreign = standing.foreign.or(Some(why));
                    continue;
                }
                standing.own.push((change.id, change.time));
                self.own.push(change);
            }
        }
    }

    /// The reason why a change that was seen was not the turn's.
    fn foreign(&self, seen: usize, change: &Change) -> Option<&'static str> {
        // What somebody else wrote stays his under another name.
        let was_foreign = |path: &AbsPath| self.standing.get(path).is_some_and(|standing| standing.foreign.is_some());
        if change.from.as_ref().is_some_and(was_foreign) {
            return Some(BOTH);
        }
        let ran = |call: &Call| call.ran_at(seen) && !call.is_after(change) && (call.is_free() || call.names(change));
        if self.calls.iter().any(|call| ran(call) || call.settles(seen, change)) {
            return None;
        }
        Some(if self.calls.iter().any(|call| call.may_have_run_at(seen)) { UNENDED } else { OUTSIDE })
    }

    /// The changes that were seen and were its own, in their order.
    pub fn own_changes(&self) -> impl Iterator<Item = &Change> {
        self.own.iter()
    }

    /// True if an event that begins a turn has begun this one before.
    pub fn is_twin(&self, head: &Head) -> bool {
        let is_same = (self.head.agent, &self.head.session, &self.head.key) == (head.agent, &head.session, &head.key);
        let is_soon = nanos(head.time) - nanos(self.head.time) < TWINS;
        is_same && is_soon && self.head.prompt == head.prompt && self.calls.is_empty() && self.ended.is_none()
    }

    /// True if both are of one conversation.
    pub fn is_with(&self, other: &Self) -> bool {
        (self.head.agent, &self.head.session) == (other.head.agent, &other.head.session)
    }

    /// Tells of it what it did in another directory, with that as `/`: one that lies in its own, or around it.
    pub fn within(mut self, directory: &AbsPath) -> Self {
        let from = self.head.directory.clone();
        let path = |path: &AbsPath| {
            let whole = whole(&from, path).ok()?;
            AbsPath::parse([b"/", whole.below(directory)?].concat()).ok()
        };
        self.wrote = self.wrote.into_iter().filter_map(|wrote| Some(Wrote { path: path(&wrote.path)?, ..wrote })).collect();
        self.standing = self.standing.into_iter().filter_map(|(at, standing)| Some((path(&at)?, standing))).collect();
        self
    }

    /// True if both ran at some time.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.head.time <= other.last && other.head.time <= self.last
    }

    /// The reason why a path that differs after the turn is not its own; `None` if it is.
    pub fn against(&self, path: &AbsPath) -> Option<&'static str> {
        match self.standing.get(path) {
            _ if self.is_blind => Some(BLIND),
            None => Some(OUTSIDE),
            Some(Standing { own, foreign, .. }) if own.is_empty() => foreign.or(Some(OUTSIDE)),
            Some(Standing { foreign, .. }) => foreign.and(Some(BOTH)),
        }
    }

    /// True if the turn has changed a path, whoever else has.
    pub fn claims(&self, path: &AbsPath) -> bool {
        self.is_blind || self.standing.get(path).is_some_and(|standing| !standing.own.is_empty())
    }

    /// True if it has changed a path that no tool of it named.
    pub fn is_by_command(&self, path: &AbsPath) -> bool {
        self.standing.get(path).is_some_and(|standing| !standing.own.is_empty() && !standing.named)
    }

    /// True if another turn may have changed a path that this one has. What the other saw while a command of its own ran may be just what a
    /// tool of this one, which named the path, has done.
    pub fn shares(&self, path: &AbsPath, other: &Self) -> bool {
        let (Some(mine), Some(theirs)) = (self.standing.get(path), other.standing.get(path)) else { return other.claims(path) };
        let is_mine = |change| mine.own.contains(change);
        other.claims(path) && (other.is_blind || theirs.named || !mine.named || !theirs.own.iter().all(is_mine))
    }

    /// The paths that it wrote: those that it claims.
    pub fn own(&self) -> impl Iterator<Item = &Wrote> {
        self.wrote.iter().filter(|wrote| self.against(&wrote.path).is_none())
    }

    /// The paths in the directory that its tools named, or that they have changed as the agent tells; true if something was there before.
    pub fn named(&self) -> impl Iterator<Item = (&AbsPath, bool)> {
        let named = self.calls.iter().flat_map(|call| &call.paths).map(|named| (&named.path, named.id.is_some()));
        named.chain(self.calls.iter().flat_map(|call| &call.ran.told).map(|path| (path, false)))
    }

    /// The paths outside of the directory that its tools named.
    pub fn outside(&self) -> impl Iterator<Item = &PathBuf> {
        self.calls.iter().flat_map(|call| &call.outside)
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::Agent;
    use super::*;

    fn at(ms: u64) -> Time {
        Time { s: 1_000 + (ms / 1_000) as i64, ns: (ms % 1_000) as u32 * 1_000_000 }
    }

    fn path(text: &str) -> AbsPath {
        AbsPath::parse(text).unwrap()
    }

    /// A `seen` line: paths with the ms of their ctime, and the name that they had.
    fn seen(changes: &[(&str, u64, Option<&str>)]) -> Line {
        let change = |(name, ms, from): &(&str, u64, Option<&str>)| {
            let id = Some(name.len() as u64 * 1_000 + u64::from(name.as_bytes()[1]));
            let (path, time, from) = (path(name), Some(at(*ms)), from.map(path));
            Change { path, had: None, id, time, directory: false, from, was: None, is: None }
        };
        Line::Seen(changes.iter().map(change).collect())
    }

    fn tool(id: &str, ms: u64, paths: &[&str]) -> Line {
        let paths = paths.iter().map(|name| Named { path: path(name), id: None }).collect();
        let (time, id) = (at(ms), Some(id.into()));
        Line::Tool(Call { time, name: "Tool".into(), id, paths, outside: Vec::new(), ran: Ran::default() })
    }

    fn done(id: &str, ms: u64, took: Option<u64>) -> Line {
        Line::Done { time: at(ms), id: Some(id.into()), name: "Tool".into(), took, told: Vec::new() }
    }

    fn turn(lines: &[Line]) -> Turn {
        let head = Head {
            n: 1,
            agent: Agent::of("claude").unwrap(),
            session: "s".into(),
            key: None,
            directory: path("/p"),
            place: Place::default(),
            prompt: "do it".into(),
            model: None,
            time: at(0),
        };
        let before = Line::Before { snapshot: 3, time: at(1) };
        Turn::of([Line::Turn(head), before].into_iter().chain(lines.iter().cloned())).unwrap()
    }

    #[test]
    fn a_turn_is_covered_if_its_snapshot_was_whole_before_its_first_tool() {
        assert!(turn(&[tool("a", 5, &[])]).covered);
        let late = Line::Before { snapshot: 4, time: at(9) };
        assert!(!turn(&[tool("a", 5, &[]), late]).covered);
    }

    #[test]
    fn a_path_is_the_turns_if_it_changed_while_a_tool_ran_that_named_it_or_names_none() {
        let turn = turn(&[
            seen(&[("/before", 10, None)]),
            tool("a", 1_000, &["/named", "/dir/in"]),
            seen(&[("/named", 1_050, None), ("/beside", 1_050, None)]),
            done("a", 1_100, None),
            seen(&[("/between", 5_000, None), ("/mixed", 5_000, None)]),
            tool("b", 6_000, &[]),
            seen(&[("/by-command", 6_500, None), ("/mixed", 6_500, None)]),
            done("b", 7_000, None),
            seen(&[("/after", 8_000, None), ("/named", 8_000, None)]),
        ]);
        for (name, why) in [
            ("/named", Some(BOTH)),
            ("/by-command", None),
            ("/mixed", Some(BOTH)),
            ("/before", Some(OUTSIDE)),
            ("/beside", Some(OUTSIDE)),
            ("/between", Some(OUTSIDE)),
            ("/after", Some(OUTSIDE)),
            ("/never-seen", Some(OUTSIDE)),
        ] {
            assert_eq!(turn.against(&path(name)), why, "{name}");
        }
    }

    #[test]
    fn a_named_path_may_still_settle_and_what_changed_while_a_person_was_asked_is_not_the_commands() {
        let turn = turn(&[
            tool("a", 1_000, &["/soon", "/late"]),
            seen(&[("/soon", 1_050, None), ("/late", 1_050, None)]),
            done("a", 1_100, None),
            seen(&[("/soon", 7_000, None), ("/late", 7_200, None)]),
            tool("b", 10_000, &[]),
            // A person was asked for half a minute before the command ran for two seconds.
            seen(&[("/asked", 20_000, None), ("/ran", 41_000, None), ("/moved", 500, None)]),
            done("b", 42_000, Some(2_000)),
        ]);
        for (name, why) in [("/soon", None), ("/late", Some(BOTH)), ("/asked", Some(OUTSIDE)), ("/ran", None), ("/moved", None)] {
            assert_eq!(turn.against(&path(name)), why, "{name}");
        }
    }

    #[test]
    fn what_somebody_else_wrote_stays_his_when_the_agent_renames_it() {
        let turn = turn(&[
            seen(&[("/a", 100, None)]),
            tool("a", 1_000, &[]),
            seen(&[("/b", 1_050, Some("/a")), ("/c", 1_050, Some("/d"))]),
            done("a", 1_100, None),
            // What he writes later at the former name is another thing.
            seen(&[("/d", 9_000, None)]),
        ]);
        assert_eq!((turn.against(&path("/b")), turn.against(&path("/c"))), (Some(BOTH), None));
        assert_eq!(turn.own_changes().map(|change| change.path.to_string()).collect::<Vec<_>>(), ["/c"]);
    }

    #[test]
    fn of_a_tool_whose_end_was_not_told_nothing_is_the_turns_and_of_two_at_once_all_is() {
        let lines = [
            tool("never", 1_000, &[]),
            seen(&[("/a", 1_050, None)]),
            tool("b", 2_000, &[]),
            seen(&[("/b", 2_050, None)]),
            done("b", 2_100, None),
            seen(&[("/c", 9_000, None)]),
        ];
        let one = turn(&lines);
        assert_eq!((one.against(&path("/a")), one.against(&path("/b"))), (Some(UNENDED), None));
        let two = turn(&[&lines[..], &[done("never", 9_500, None)]].concat());
        assert_eq!((two.against(&path("/a")), two.against(&path("/c"))), (None, None));
    }

    #[test]
    fn nothing_is_the_turns_after_a_gap() {
        let turn = turn(&[tool("a", 1_000, &[]), Line::Blind, seen(&[("/a", 1_050, None)]), done("a", 1_100, None)]);
        assert_eq!(turn.against(&path("/a")), Some(BLIND));
    }
}
