//! `session.json`: the header of a session, all that a listing reads. Replaced as a whole.

use serde::{Deserialize, Serialize};

use super::act::LastAct;
use super::acting_agent::ActingAgent;
use super::deadline::Deadline;
use super::id::Id;
use super::run_record::Failed;
use super::sides::{self, Side};
use crate::fs::{AbsPath, Time};
use crate::tree::{Hash, time};

/// The way in which the changes came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// By hand: `session write` and the like.
    Staged,
    /// Found in the uppers after a run.
    Captured,
}

/// The number of changes, in all and by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    pub changes: u64,
    #[serde(rename = "in")]
    pub inside: u64,
    pub ever_in: u64,
}

impl Counts {
    /// The number of changes that were taken off the tree again.
    pub fn taken_back(self) -> u64 {
        self.ever_in - self.inside
    }

    /// The number of changes that were never on the tree.
    pub fn never_in(self) -> u64 {
        self.changes - self.ever_in
    }
}

/// The state of the originals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checkpoint {
    /// Nothing was committed, or all that was taken off the tree is there.
    #[default]
    Kept,
    /// Removed on request: what is committed cannot be rolled back.
    Pruned,
}

/// The room that it takes, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sizes {
    /// Bytes of content in `held/`.
    pub held: u64,
    /// Bytes on disk of content in `checkpoint/`.
    pub checkpoint: u64,
    /// Bytes on disk of what `--force` overwrote, in `displaced/`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub displaced: u64,
}

fn is_none(bytes: &u64) -> bool {
    *bytes == 0
}

impl Sizes {
    pub fn all(&self) -> u64 {
        self.held.saturating_add(self.checkpoint).saturating_add(self.displaced)
    }
}

/// The steps of a session in which more than one command ran: see [`super::steps`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Steps {
    /// The numbers of the steps from the first to the head, each of which stands on the one before: ranges, both ends included. Empty at
    /// step 0.
    pub chain: Vec<(u32, u32)>,
    /// The highest number that a step has had.
    pub last: u32,
    /// The bytes of `steps.jsonl` that count.
    pub bytes: u64,
    /// The oldest step that can be gone back to, if older ones were merged into it: `session::merged`. 0 if none were.
    #[serde(default, skip_serializing_if = "is_no_step")]
    pub floor: u32,
    /// The newest step at which paths left the session; 0 if none did.
    #[serde(default, skip_serializing_if = "is_no_step")]
    pub left: u32,
}

fn is_no_step(step: &u32) -> bool {
    *step == 0
}

impl Steps {
    /// The numbers of the steps up to the head, the oldest first.
    pub fn numbers(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.chain.iter().flat_map(|(from, to)| *from..=*to)
    }

    /// The step at which the session stands; 0 is the tree as it was.
    pub fn head(&self) -> u32 {
        self.chain.last().map_or(0, |(_, to)| *to)
    }

    /// Moves the head on to the next step, which gets the next number.
    pub fn push(&mut self) {
        self.last += 1;
        match self.chain.last_mut() {
            Some((_, to)) if *to + 1 == self.last => *to += 1,
            _ => self.chain.push((self.last, self.last)),
        }
    }

    /// Sets the chain to these numbers, the oldest first.
    pub fn set(&mut self, numbers: impl IntoIterator<Item = u32>) {
        self.chain.clear();
        for n in numbers {
            match self.chain.last_mut() {
                Some((_, to)) if *to + 1 == n => *to = n,
                _ => self.chain.push((n, n)),
            }
        }
    }
}

fn is_no_generation(generation: &u64) -> bool {
    *generation == 0
}

/// A path at which an interrupted operation could not be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotUndone {
    pub path: AbsPath,
    /// True if its change is in: a rollback goes on with it; else a redo does.
    #[serde(rename = "in")]
    pub is_in: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub schema: u32,
    /// The session's id, the same as its directory's name.
    pub id: Id,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The session's number: later ones have higher ones, whatever the clock says.
    pub seq: u64,
    /// The way in which its changes came in.
    pub origin: Origin,
    #[serde(with = "time")]
    pub created: Time,
    /// The time when something in it last changed.
    #[serde(with = "time")]
    pub changed: Time,
    /// The directory in which it was begun; missing if that was gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<AbsPath>,
    /// The start of the command, at most 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The agent that had the newest command run; missing for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ActingAgent>,
    /// The agent that began the session; missing for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<ActingAgent>,
    /// True if a run has begun whose changes are not yet in `changes.jsonl`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncollected: bool,
    /// True if the run ended with another boot of the machine: content may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsynced: bool,
    /// The end of its newest command that changed something, if it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
    /// True while it is opened again after a rollback: [`super::reopen`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reopening: bool,
    /// Its generation when it went on last, by a step: acts that sealed this one or one before are not to be taken back any more.
    #[serde(default, skip_serializing_if = "is_no_generation")]
    pub went_on: u64,
    /// True if it was committed and rolled back, and opened again after that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reopened: bool,
    /// True if a verb makes it for itself, and nothing of it was sealed yet: [`Header::is_unsealed`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
    /// The session that it is a part of: it has that one's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Id>,
    /// True if nobody who works here has done it, so that 'last' does not mean it: recant made it by itself, beside what somebody asked for;
    /// or it was imported committed, or by an agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside: bool,
    /// The number of whole lines of `changes.jsonl` that count.
    pub lines: u64,
    /// Its steps; missing as long as it has one at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Steps>,
    /// The number of changes, in all and by place.
    pub counts: Counts,
    /// Its sizes in bytes.
    #[serde(default)]
    pub sizes: Sizes,
    /// The number of changes of sides that were sealed.
    pub generation: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sides: String,
    #[serde(default)]
    pub checkpoint: Checkpoint,
    /// The time when it was discarded.
    #[serde(with = "time::option", default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<Time>,
    /// True if what it held when it was discarded is gone: nothing brings it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub freed: bool,
    /// The hash of the stream that it came as, and of where its paths were mapped to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Hash>,
    /// The mount points, beside `/`, of the file systems that held its paths when it was collected or sealed. Without one of them, what
    /// is found at such a path belongs to another file system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<AbsPath>,
    /// Paths at which an interrupted operation could not be undone, as somebody had changed them, in path order; until something is done
    /// about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<NotUndone>,
    /// The newest act on it; missing as long as its first one is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acted: Option<LastAct>,
    /// The deadline of a commit that waits to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

/// The status of a session. Computed, never set (I9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A run is under way, or its changes are still to be collected.
    Running,
    /// All out, none was ever in.
    Pending,
    /// At least one is in.
    Committed,
    /// All out, at least one was in.
    RolledBack,
    /// It is put aside, or freed: [`Header::is_aside`](super::discard).
    Discarded,
}

impl Status {
    pub fn word(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Pending => "pending",
            Status::Committed => "committed",
            Status::RolledBack => "rolled_back",
            Status::Discarded => "discarded",
        }
    }
}

impl Header {
    pub fn new(id: Id, seq: u64, origin: Origin, now: Time) -> Self {
        Self {
            schema: 1,
            id,
            name: None,
            seq,
            origin,
            created: now,
            changed: now,
            cwd: None,
            command: None,
            by: None,
            maker: None,
            uncollected: false,
            unsynced: false,
            failed: None,
            reopening: false,
            went_on: 0,
            reopened: false,
            begun: false,
            of: None,
            beside: false,
            lines: 0,
            steps: None,
            counts: Counts::default(),
            sizes: Sizes::default(),
            generation: 0,
            sides: String::new(),
            checkpoint: Checkpoint::Kept,
            discarded: None,
            freed: false,
            imported: None,
            mounts: Vec::new(),
            left: Vec::new(),
            acted: None,
            deadline: None,
        }
    }

    /// The session whose part it is, or itself: those with one root were one session.
    pub fn root(&self) -> &Id {
        self.of.as_ref().unwrap_or(&self.id)
    }

    /// The numbers of the steps up to the head, the oldest first.
    pub fn chain(&self) -> Vec<u32> {
        match &self.steps {
            Some(steps) => steps.numbers().collect(),
            None => (self.lines > 0).then_some(1).into_iter().collect(),
        }
    }

    /// The step at which it stands; 0 is the tree as it was.
    pub fn head(&self) -> u32 {
        self.steps.as_ref().map_or(u32::from(self.lines > 0), Steps::head)
    }

    /// The number that the next step gets.
    pub fn next_step(&self) -> u32 {
        1 + self.steps.as_ref().map_or(u32::from(self.lines > 0), |steps| steps.last)
    }

    /// The name, in the session's directory, of the record of a command that goes on in it: it counts as long as its step is the next one.
    pub(super) fn going_on(&self) -> Vec<u8> {
        format!("step.{}.json", self.next_step()).into_bytes()
    }

    /// The name that it had for the last step.
    pub(super) fn went_on(&self) -> Vec<u8> {
        format!("step.{}.json", self.next_step() - 1).into_bytes()
    }

    pub fn status(&self) -> Status {
        let Counts { inside, ever_in, .. } = self.counts;
        if self.discarded.is_some() {
            Status::Discarded
        } else if self.uncollected {
            Status::Running
        } else if inside == 0 {
            if ever_in == 0 { Status::Pending } else { Status::RolledBack }
        } else {
            Status::Committed
        }
    }

    /// True if it was opened again after a rollback, and nothing was done in it since.
    pub fn is_as_undone(&self) -> bool {
        self.status() == Status::Pending && self.reopened && self.went_on < self.generation
    }

    /// True if an act that sealed this generation has something else in its place by now: the session went on since.
    pub fn went_on_since(&self, generation: u64) -> bool {
        generation <= self.went_on
    }

    /// True if it is committed, and all of it is on the tree.
    pub fn is_all_in(&self) -> bool {
        self.status() == Status::Committed && self.counts.inside == self.counts.changes
    }

    /// True if it is committed, and some of it is not on the tree.
    pub fn is_in_part(&self) -> bool {
        self.status() == Status::Committed && !self.is_all_in()
    }

    /// Makes the header of the next generation, with the changes on these sides.
    pub fn sealing(&self, sides: &[Side]) -> Self {
        let count = |which: fn(Side) -> bool| sides.iter().filter(|side| which(**side)).count() as u64;
        let counts = Counts { changes: sides.len() as u64, inside: count(Side::is_in), ever_in: count(Side::was_in) };
        let (generation, sides) = (self.generation + 1, sides::to_text(sides));
        let deadline = self.deadline.clone().filter(|_| counts.inside > 0);
        Self { begun: false, generation, changed: crate::fs::now(), counts, sides, deadline, ..self.clone() }
    }

    /// The deadline by which it is to be confirmed; something of it is on the tree.
    pub fn waits(&self) -> Option<&Deadline> {
        self.deadline.as_ref().filter(|_| self.counts.inside > 0)
    }

    /// True if a verb makes it for itself and nothing was sealed: nobody needs it once that verb has ended.
    pub fn is_unsealed(&self) -> bool {
        self.begun && self.generation == 0
    }

    /// Checks that its numbers can be true.
    pub fn check(&self) -> Result<(), &'static str> {
        let Counts { changes, inside, ever_in } = self.counts;
        if self.schema != 1 {
            Err("its schema is not 1")
        } else if inside > ever_in || ever_in > changes || changes > self.lines {
            Err("its counts contradict each other")
        } else if self.generation == 0 && ever_in > 0 {
            Err("changes were in before anything was sealed")
        } else if self.generation == u64::MAX {
            Err("its generation is the highest possible number")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_follows_from_the_counts() {
        let id = Id::parse("20260301-101500-k3fa").unwrap();
        let mut header = Header::new(id, 1, Origin::Staged, Time::default());
        for (changes, inside, ever_in, want) in [
            (0, 0, 0, Status::Pending),
            (3, 0, 0, Status::Pending),
            (3, 3, 3, Status::Committed),
            (3, 1, 1, Status::Committed),
            (3, 1, 3, Status::Committed),
            (3, 0, 1, Status::RolledBack),
            (3, 0, 3, Status::RolledBack),
        ] {
            header.counts = Counts { changes, inside, ever_in };
            assert_eq!(header.status(), want, "{:?}", header.counts);
        }
        header.discarded = Some(Time::default());
        assert_eq!(header.status(), Status::Discarded);
    }

    #[test]
    fn counts_that_cannot_be_true_are_told() {
        let id = Id::parse("20260301-101500-k3fa").unwrap();
        let mut header = Header::new(id, 1, Origin::Staged, Time::default());
        // Lines, generation, counts.
        for (lines, generation, (changes, inside, ever_in), right) in [
            (0, 0, (0, 0, 0), true),
            (3, 0, (3, 0, 0), true),
            (4, 1, (3, 2, 3), true),
            (3, 1, (3, 3, 3), true),
            (2, 1, (3, 0, 0), false),
            (4, 1, (3, 0, 4), false),
            (4, 1, (3, 2, 1), false),
            (4, 0, (3, 0, 1), false),
        ] {
            (header.lines, header.generation, header.counts) = (lines, generation, Counts { changes, inside, ever_in });
            assert_eq!(header.check().is_ok(), right, "{lines} {generation} {:?}", header.counts);
        }
        (header.schema, header.generation) = (2, 1);
        assert!(header.check().is_err());
    }

    #[test]
    fn what_is_sealed_counts_says_when_and_is_in_the_making_no_more() {
        let id = Id::parse("20260301-101500-k3fa").unwrap();
        let mut header = Header::new(id, 1, Origin::Staged, Time::default());
        (header.lines, header.begun) = (3, true);
        let sealed = header.sealing(&[Side::In, Side::Out, Side::Never]);
        assert_eq!(sealed.counts, Counts { changes: 3, inside: 1, ever_in: 2 });
        assert_eq!((sealed.generation, sealed.begun, sealed.created), (1, false, header.created));
        assert!(sealed.changed > header.changed, "prune --sessions --older-than goes by it");
    }
}
