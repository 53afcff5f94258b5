//! A turn: what an agent did about one prompt. Its file has a line a fact, in the order in which they came; what follows from them is
//! computed here.
//!
//! ```text
//! turn ---> before ---> tool, done, ... ---> after, wrote, ... ---> end
//!           snapshot                         snapshot
//! ```
//! A turn is covered if its snapshot `before` was whole before its first tool that may write began. A path that differs between the two
//! snapshots is the turn's own if it last changed while a tool ran that named it, or that may write anywhere. All else was written by
//! somebody else meanwhile.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::known::Agent;
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::tree::hash::Hash;
use crate::tree::json;
use crate::tree::state::{State, What};
use crate::tree::time;

/// The first line of a turn's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its number among the turns of all agents in the directory, from 1 on.
    pub n: u64,
    /// The agent.
    pub agent: Agent,
    /// The agent's session.
    pub session: String,
    /// The agent's own name for the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The directory that the snapshots are of.
    #[serde(rename = "folder")]
    pub directory: AbsPath,
    /// The first line of the prompt.
    pub prompt: String,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The time when it began.
    #[serde(with = "time")]
    pub time: Time,
}

/// A line of a turn's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The head.
    Turn(Head),
    /// The snapshot from before the turn is whole. The time is that when it was begun.
    Before {
        /// Its number.
        snapshot: u64,
        /// That time.
        #[serde(with = "time")]
        time: Time,
    },
    /// A tool that may write is about to run.
    Tool(Call),
    /// A tool has ended.
    Done {
        /// The time.
        #[serde(with = "time")]
        time: Time,
        /// [`Call::id`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Its name.
        name: String,
        /// The time that it took, in ms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took: Option<u64>,
        /// The paths in the directory that it has changed, as the agent tells, with the directory as `/`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<AbsPath>,
    },
    /// A snapshot shows what the turn has done so far: the lines up to the next other one tell it.
    After {
        /// Its number.
        snapshot: u64,
        /// The time.
        #[serde(with = "time")]
        time: Time,
    },
    /// A path that differs.
    Wrote(Wrote),
    /// A path of which it is not known.
    Left {
        /// The path, with the directory as `/`.
        path: AbsPath,
        /// The reason.
        why: String,
    },
    /// The agent has ended the turn.
    End {
        /// The time.
        #[serde(with = "time")]
        time: Time,
    },
    /// A snapshot could not be taken.
    Failed {
        /// The reason.
        why: String,
    },
    /// A session took the turn back. It counts as long as that session is committed.
    Undone {
        /// The session.
        session: Id,
    },
}

/// A use of a tool that may write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The time before it.
    #[serde(with = "time")]
    pub time: Time,
    /// The tool's name.
    pub name: String,
    /// The agent's name for this use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The paths in the directory that it names. Without any, and without `outside`, it may write anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Found>,
    /// The paths that somebody else has changed since the turn began, if it may write anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Found>,
    /// The other paths that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<PathBuf>,
    /// The end: the time, and the ms that it took. In the file it is a line of its own.
    #[serde(skip)]
    pub done: Option<(Time, Option<u64>)>,
    /// The paths that it has changed, as the agent tells.
    #[serde(skip)]
    pub changed: Vec<AbsPath>,
    /// True if the agent has told its end; else it is taken to have ended before the next thing that the agent did.
    #[serde(skip)]
    pub is_told: bool,
}

/// A path as it was before a tool ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The path, with the directory as `/`.
    pub path: AbsPath,
    /// The time of its last change before the tool; missing if it was not there.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Time>,
}

/// A path that differs between the snapshots before and after a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrote {
    /// The path, with the directory as `/`.
    pub path: AbsPath,
    /// The time of its last change: of its own ctime, of the birth of a directory that came, of its parent's ctime if it is gone.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// True if it is, or was, a directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub directory: bool,
    /// The [`mark`] of what was there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<u64>,
    /// That of what is there after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<u64>,
}

/// A short hash of what is at a path, without its times; `None` if nothing is.
pub fn mark(state: Option<&State>) -> Option<u64> {
    let mut state = state?.clone();
    state.meta.mtime = Time::default();
    if let What::File { index, .. } = &mut state.what {
        *index = None;
    }
    let [a, b, c, d, e, f, g, h, ..] = Hash::of(&json::text(&state)).0;
    Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
}

/// A turn as its file tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The head.
    pub head: Head,
    /// The snapshot from before it, and the time when that was begun.
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
    /// The time when it ended.
    pub ended: Option<Time>,
    /// The time of its last line that has one.
    pub last: Time,
    /// The reason why a snapshot could not be taken.
    pub failed: Option<String>,
    /// The sessions that took it back.
    pub undone: Vec<Id>,
}

/// The relation of a turn to a path that differs after it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// None: for this reason.
    None(&'static str),
    /// It changed while a tool ran that may write anywhere.
    Meanwhile,
    /// It changed while a tool ran that named it.
    Named,
}

/// Time stamps lag by a tick of the slowest kernel clock, and one to spare, in ns.
const TICK: i128 = 20_000_000;
/// A formatter that the agent starts after an edit may still write to a named path, in ns.
const SETTLES: i128 = 2_000_000_000;
/// The end of a tool is told late: so much before the told beginning it may have begun, in ns.
const LATE: i128 = 1_000_000_000;

const OUTSIDE: &str = "it was written during the turn, but not by its tools as far as their times tell";
const UNENDED: &str = "it was written after a tool began whose end was not told";
const BOTH: &str = "somebody else wrote it during the turn, before the agent did";

fn nanos(time: Time) -> i128 {
    i128::from(time.s) * 1_000_000_000 + i128::from(time.ns)
}

impl Call {
    /// True if it may write to any path.
    pub fn is_free(&self) -> bool {
        self.paths.is_empty() && self.outside.is_empty()
    }

    fn names(&self, path: &AbsPath) -> bool {
        self.paths.iter().any(|found| found.path == *path) || self.changed.contains(path)
    }

    fn found(&self, path: &AbsPath) -> Option<&Found> {
        self.paths.iter().chain(&self.others).find(|found| found.path == *path)
    }

    /// True if it ran at that time, `settles` ns after its end included.
    fn ran_at(&self, time: Time, settles: i128) -> bool {
        let Some((done, took)) = self.done else { return false };
        let told = took.map_or(i128::MIN, |ms| nanos(done) - i128::from(ms) * 1_000_000 - LATE);
        let began = told.max(nanos(self.time) - TICK);
        (began..=nanos(done) + TICK + settles).contains(&nanos(time))
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
            Line::Tool(call) => {
                self.end_calls(call.time);
                self.last = self.last.max(call.time);
                self.is_settled = false;
                self.calls.push(call);
            }
            Line::Done { time, id, name, took, changed } => {
                self.last = self.last.max(time);
                let is_its = |call: &Call| if id.is_some() { call.id == id } else { call.name == name };
                if let Some(call) = self.calls.iter_mut().rev().find(|call| !call.is_told && is_its(call)) {
                    (call.done, call.is_told, call.changed) = (Some((time, took)), true, changed);
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
                self.end_calls(time);
                self.last = self.last.max(time);
                self.ended = Some(time);
            }
            Line::Failed { why } => self.failed = Some(why),
            Line::Undone { session } => self.undone.push(session),
        }
    }

    /// Takes tools whose end was not told to have ended by then.
    fn end_calls(&mut self, time: Time) {
        self.calls.iter_mut().filter(|call| call.done.is_none()).for_each(|call| call.done = Some((time, None)));
    }

    /// True if both ran at some time.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.head.time <= other.last && other.head.time <= self.last
    }

    /// The turn's claim on a path that differs after it.
    pub fn claim(&self, wrote: &Wrote) -> Claim {
        let found = self.calls.iter().enumerate().filter_map(|(i, call)| Some((i, call.found(&wrote.path)?)));
        let found: Vec<(usize, &Found)> = found.collect();
        let claim = match wrote.time {
            // It is what a tool was to delete, and it is gone.
            _ if wrote.is.is_none() && self.calls.iter().any(|call| call.names(&wrote.path)) => Claim::Named,
            // The time is that of the last change of a name in its directory: it went then, or before.
            Some(time) if wrote.is.is_none() && self.calls.iter().any(|call| !call.is_free() && call.ran_at(time, 0)) => {
                if self.calls.iter().any(|call| call.is_free() && call.done.is_some()) {
                    Claim::Meanwhile
                } else {
                    Claim::None(OUTSIDE)
                }
            }
            Some(time) => self.claim_at(&wrote.path, time, self.calls.len()),
            None => Claim::None(OUTSIDE),
        };
        if matches!(claim, Claim::None(_)) {
            return claim;
        }
        let since = self.before.map_or(self.head.time, |(_, time)| time);
        let is_foreign = |(i, found): &(usize, &Found)| {
            found
                .changed
                .is_some_and(|then| nanos(then) > nanos(since) && matches!(self.claim_at(&wrote.path, then, *i), Claim::None(_)))
        };
        if found.iter().any(is_foreign) { Claim::None(BOTH) } else { claim }
    }

    /// The claim of the first `calls` calls on a change of a path at that time.
    fn claim_at(&self, path: &AbsPath, time: Time, calls: usize) -> Claim {
        let calls = &self.calls[..calls];
        if calls.iter().any(|call| call.names(path) && call.ran_at(time, SETTLES)) {
            return Claim::Named;
        }
        if calls.iter().any(|call| call.is_free() && call.ran_at(time, 0)) {
            return Claim::Meanwhile;
        }
        let is_open = |call: &Call| call.done.is_none() && nanos(call.time) - TICK <= nanos(time);
        Claim::None(if calls.iter().any(is_open) { UNENDED } else { OUTSIDE })
    }

    /// The claim of the turn on a change of a path at that time, by whichever turn it was seen.
    pub fn claims_at(&self, path: &AbsPath, time: Time) -> Claim {
        self.claim_at(path, time, self.calls.len())
    }

    /// The paths that it wrote: those that it claims.
    pub fn own(&self) -> impl Iterator<Item = &Wrote> {
        self.wrote.iter().filter(|wrote| !matches!(self.claim(wrote), Claim::None(_)))
    }

    /// The paths in the directory that its tools named.
    pub fn named(&self) -> impl Iterator<Item = &AbsPath> {
        self.calls.iter().flat_map(|call| &call.paths).map(|found| &found.path)
    }

    /// The paths outside of the directory that its tools named.
    pub fn outside(&self) -> impl Iterator<Item = &PathBuf> {
        self.calls.iter().flat_map(|call| &call.outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time { s: 1_000 + (ms / 1_000) as i64, ns: (ms % 1_000) as u32 * 1_000_000 }
    }

    fn path(text: &str) -> AbsPath {
        AbsPath::parse(text).unwrap()
    }

    fn tool(id: &str, ms: u64, paths: &[(&str, Option<u64>)]) -> Line {
        let paths = paths.iter().map(|(name, ms)| Found { path: path(name), changed: ms.map(at) }).collect();
        Line::Tool(Call {
            time: at(ms),
            name: "Tool".into(),
            id: Some(id.into()),
            paths,
            others: Vec::new(),
            outside: Vec::new(),
            done: None,
            changed: Vec::new(),
            is_told: false,
        })
    }

    fn done(id: &str, ms: u64, took: Option<u64>) -> Line {
        Line::Done { time: at(ms), id: Some(id.into()), name: "Tool".into(), took, changed: Vec::new() }
    }

    fn turn(lines: Vec<Line>) -> Turn {
        let head = Head {
            n: 1,
            agent: Agent::Claude,
            session: "s".into(),
            key: None,
            directory: path("/p"),
            prompt: "do it".into(),
            model: None,
            time: at(0),
        };
        Turn::of([Line::Turn(head)].into_iter().chain(lines)).unwrap()
    }

    fn wrote(name: &str, ms: u64) -> Wrote {
        Wrote { path: path(name), time: Some(at(ms)), directory: false, was: Some(1), is: Some(2) }
    }

    #[test]
    fn a_turn_is_covered_if_its_snapshot_was_whole_before_its_first_tool() {
        let before = Line::Before { snapshot: 3, time: at(1) };
        assert!(turn(vec![before.clone(), tool("a", 5, &[])]).covered);
        assert!(!turn(vec![tool("a", 5, &[]), before]).covered);
        assert!(!turn(vec![tool("a", 5, &[])]).covered);
    }

    #[test]
    fn a_path_is_the_turns_if_it_changed_while_a_tool_ran_that_named_it_or_names_none() {
        let lines = |took| {
            vec![
                Line::Before { snapshot: 3, time: at(1) },
                tool("a", 10_000, &[("/named", Some(0))]),
                done("a", 10_100, None),
                tool("b", 20_000, &[]),
                done("b", 80_000, took),
            ]
        };
        let plain = turn(lines(None));
        // A person was asked for half a minute before the command ran for two seconds.
        let asked = turn(lines(Some(2_000)));
        for (turn, name, ms, want) in [
            (&plain, "/named", 10_050, Claim::Named),
            (&plain, "/named", 11_500, Claim::Named),
            (&plain, "/named", 15_000, Claim::None(OUTSIDE)),
            (&plain, "/named", 30_000, Claim::Meanwhile),
            (&plain, "/other", 10_050, Claim::None(OUTSIDE)),
            (&plain, "/other", 30_000, Claim::Meanwhile),
            (&plain, "/other", 80_500, Claim::None(OUTSIDE)),
            (&asked, "/other", 30_000, Claim::None(OUTSIDE)),
            (&asked, "/other", 78_500, Claim::Meanwhile),
        ] {
            assert_eq!(turn.claim(&wrote(name, ms)), want, "{name} at {ms}");
        }
    }

    #[test]
    fn a_path_that_somebody_else_wrote_before_the_agent_did_is_not_the_turns() {
        let before = Line::Before { snapshot: 3, time: at(1) };
        let found = |ms| {
            turn(vec![
                before.clone(),
                tool("a", 5_000, &[("/a", Some(0))]),
                done("a", 5_100, None),
                tool("b", 20_000, &[("/a", Some(ms))]),
                done("b", 20_100, None),
            ])
        };
        assert_eq!(found(5_050).claim(&wrote("/a", 20_050)), Claim::Named);
        assert_eq!(found(15_000).claim(&wrote("/a", 20_050)), Claim::None(BOTH));
    }

    #[test]
    fn of_a_tool_whose_end_was_not_told_nothing_is_the_turns() {
        let turn = turn(vec![Line::Before { snapshot: 3, time: at(1) }, tool("a", 5_000, &[])]);
        assert_eq!(turn.claim(&wrote("/a", 6_000)), Claim::None(UNENDED));
        assert_eq!(turn.claim(&wrote("/a", 1_000)), Claim::None(OUTSIDE));
        let gone = Wrote { is: None, ..wrote("/a", 6_000) };
        assert_eq!(turn.claim(&gone), Claim::None(UNENDED));
    }

    #[test]
    fn a_tool_whose_end_was_not_told_ended_before_the_next_thing_that_the_agent_did() {
        let lines = [
            Line::Before { snapshot: 3, time: at(1) },
            tool("failed", 5_000, &[]),
            tool("beside", 10_000, &[("/named", None)]),
            done("beside", 10_100, None),
            Line::End { time: at(60_000) },
        ];
        let failed = turn(lines.to_vec());
        assert_eq!(failed.claim(&wrote("/a", 9_000)), Claim::Meanwhile);
        assert_eq!(failed.claim(&wrote("/a", 20_000)), Claim::None(OUTSIDE));
        // Two at once: the end that is told later counts.
        let mut at_once = lines.to_vec();
        at_once.insert(4, done("failed", 30_000, None));
        assert_eq!(turn(at_once).claim(&wrote("/a", 20_000)), Claim::Meanwhile);
    }
}
