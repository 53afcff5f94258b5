//! The act that `undo` takes back, and the undo that `redo` takes back.
//!
//! **I21** Undo is the inverse of the newest act that has one and was not undone; it is an act itself. Once more it goes one further back. A new
//! act ends the way forward. The rule is that of jj's operation log (cli/src/commands/undo.rs there), but for what an inverse is: it is checked
//! for conflicts, never a state as of then; so one act can be taken back among others, which stay.

use std::collections::{BTreeMap, BTreeSet};

use super::act::{LastAct, TakesBack};
use super::header::{Header, Status};
use super::id::Id;
use super::log::{About, Entry, RUN_IN, UNDONE};
use crate::fs::Time;

/// How an act is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inverse {
    RollBack,
    Redo,
    /// Of a discard.
    BringBack,
    /// Of that.
    Discard,
    /// It has none.
    None,
}

impl Inverse {
    /// The inverse of the act of a verb in the log.
    fn of(verb: &str) -> Self {
        match verb {
            "commit" | "redo" | RUN_IN => Self::RollBack,
            "rollback" => Self::Redo,
            "discard" => Self::BringBack,
            BROUGHT_BACK => Self::Discard,
            _ => Self::None,
        }
    }

    /// The inverse of the newest act on a session, by what that act made of it.
    pub fn of_newest(header: &Header) -> Self {
        match header.status() {
            Status::Committed => Self::RollBack,
            Status::RolledBack => Self::Redo,
            Status::Discarded => Self::BringBack,
            Status::Pending | Status::Running => Self::None,
        }
    }
}

/// The log's verb for a discard that nothing takes back.
pub const FREED: &str = "discard --now";

/// The log's verb for a discard that was undone.
pub const BROUGHT_BACK: &str = "bring back";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoableAct {
    pub n: u64,
    pub session: Id,
    /// The verb as the log has it; `None` for what is held, of which there is no line.
    pub verb: Option<String>,
    pub inverse: Inverse,
    pub time: Time,
    pub acted: LastAct,
    /// The generation that it sealed.
    pub generation: u64,
}

impl UndoableAct {
    fn of_entry(entry: &Entry) -> Option<Self> {
        let About { uid, by, .. } = &entry.about;
        let act = entry.act;
        let acted = LastAct { n: act?, uid: uid.unwrap_or_default(), by: by.clone(), purpose: entry.purpose.clone() };
        let (session, verb) = (entry.session.clone(), entry.verb.clone());
        Some(Self {
            n: act?,
            session,
            inverse: Inverse::of(&verb),
            verb: Some(verb),
            time: entry.time,
            acted,
            generation: entry.generation,
        })
    }

    /// The newest act on a session, as its header tells it; `None` if its first one is under way, or it takes another one back.
    pub fn of_newest(header: &Header) -> Option<Self> {
        let acted = header.acted.clone().filter(|acted| !acted.is_undo())?;
        let inverse = Inverse::of_newest(header);
        let verb = match inverse {
            Inverse::RollBack => Some("commit"),
            Inverse::Redo => Some("rollback"),
            Inverse::BringBack => Some("discard"),
            Inverse::Discard | Inverse::None => None,
        };
        let (session, verb) = (header.id.clone(), verb.map(str::to_owned));
        Some(Self { n: acted.n, session, verb, inverse, time: header.changed, acted, generation: header.generation })
    }
}

/// The acts of a project, or a session.
#[derive(Debug, Default)]
pub struct Acts {
    /// The newest first.
    pub all: Vec<UndoableAct>,
    /// The newest act that was sealed and is in no line of the log: its number, and its session.
    pub lost: Option<(u64, Id)>,
    /// The numbers of the acts that were taken back, undos among them.
    taken_back: BTreeSet<u64>,
}

impl Acts {
    /// The acts that lines of the log tell, the oldest first, and those on sessions of which it has none: what is held.
    pub fn of<'e>(entries: impl Iterator<Item = &'e Entry>, headers: &[Header]) -> Self {
        let mut all: BTreeMap<u64, UndoableAct> = BTreeMap::new();
        for entry in entries {
            match UndoableAct::of_entry(entry) {
                Some(deed) => drop(all.entry(deed.n).or_insert(deed)),
                // A power cut took back what the log had already.
                None if entry.result == UNDONE => {
                    all.retain(|_, deed| (&deed.session, deed.generation) != (&entry.session, entry.generation));
                }
                None => {}
            }
        }
        let mut lost = None;
        for header in headers {
            let Some(acted) = header.acted.as_ref().filter(|acted| !all.contains_key(&acted.n)) else { continue };
            if header.counts.ever_in > 0 || header.discarded.is_some() {
                lost = lost.max(Some((acted.n, header.id.clone())));
            } else {
                let (n, session, acted) = (acted.n, header.id.clone(), acted.clone());
                let (time, generation) = (header.changed, header.generation);
                all.insert(n, UndoableAct { n, session, verb: None, inverse: Inverse::None, time, acted, generation });
            }
        }
        let all: Vec<UndoableAct> = all.into_values().rev().collect();
        let taken_back = all.iter().filter_map(|deed| Some(deed.acted.purpose.takes_back?.n())).collect();
        Self { all, lost, taken_back }
    }

    /// True if an act is neither an undo nor taken back.
    pub fn stands(&self, deed: &UndoableAct) -> bool {
        !deed.acted.is_undo() && !self.taken_back.contains(&deed.n)
    }

    /// The newest undo of these that is not taken back, if nothing but undos and redos came after it.
    pub fn to_redo(&self, is_meant: impl Fn(&UndoableAct) -> bool) -> Option<&UndoableAct> {
        let mut acts = self.all.iter().filter(|deed| is_meant(deed)).filter(|deed| !self.taken_back.contains(&deed.n));
        acts.find(|deed| !matches!(deed.acted.purpose.takes_back, Some(TakesBack::Redoes(_)))).filter(|deed| deed.acted.is_undo())
    }
}

#[cfg(test)]
mod tests {
    use crate::session::act::Purpose;
    use crate::session::undo_target::*;

    /// Acts from texts: `commit`, `undo 1`, `redo 3`.
    fn acts(words: &[&str]) -> Acts {
        let entry = |(i, word): (usize, &&str)| {
            let of = |verb: &str| word.strip_prefix(verb).map(|n| n.trim().parse().unwrap());
            let takes_back = of("undo").map(TakesBack::Undoes).or(of("redo").map(TakesBack::Redoes));
            let id = Id::parse("20260301-101500-k3fa").unwrap();
            let entry = Entry::new("commit", &id, 1, "done", 1);
            Entry { act: Some(i as u64 + 1), purpose: Purpose { takes_back, ..Purpose::default() }, ..entry }
        };
        let entries: Vec<Entry> = words.iter().enumerate().map(entry).collect();
        Acts::of(entries.iter(), &[])
    }

    #[test]
    fn an_undo_goes_one_further_back_and_a_redo_forward_again() {
        // The acts so far; those that stand, the newest first; what a redo takes back next.
        for (words, standing, redo) in [
            (&["commit"][..], &[1][..], None),
            (&["commit", "commit", "undo 2"], &[1], Some(3)),
            (&["commit", "commit", "undo 2", "undo 1"], &[], Some(4)),
            (&["commit", "commit", "undo 2", "undo 1", "redo 4"], &[5], Some(3)),
            (&["commit", "commit", "undo 2", "undo 1", "redo 4", "redo 3"], &[6, 5], None),
            (&["commit", "commit", "undo 2", "undo 1", "redo 4", "undo 5"], &[], Some(6)),
            (&["commit", "undo 1", "commit"], &[3], None),
            (&["commit", "commit", "undo 2", "commit", "undo 4"], &[1], Some(5)),
            // Of a session that is named, among others.
            (&["commit", "commit", "commit", "undo 2"], &[3, 1], Some(4)),
            (&["commit", "commit", "commit", "undo 2", "undo 3"], &[1], Some(5)),
        ] {
            let acts = acts(words);
            let found: Vec<u64> = acts.all.iter().filter(|deed| acts.stands(deed)).map(|deed| deed.n).collect();
            assert_eq!(found, standing, "undo after {words:?}");
            assert_eq!(acts.to_redo(|_| true).map(|deed| deed.n), redo, "redo after {words:?}");
        }
    }
}
