//! The verdict about a path that turns wrote: it goes back, or stays for a reason.

use std::collections::BTreeMap;

use super::chosen_turns::Chosen;
use super::turn::mark;
use super::turn::{Turn, Wrote};
use crate::fs::AbsPath;
use crate::snapshot::Difference;

/// The decision about a path.
pub enum Verdict {
    /// It goes back to what this snapshot has, which has this mark.
    Back {
        snapshot: u64,
        was: Option<u64>,
    },
    Stays(String),
    /// The turn wrote it, and it was changed since, as this says.
    Changed(String),
    /// It is as before an earlier turn, which was taken back.
    IsBack,
}

/// The turns that wrote to each path.
pub struct Writers<'a> {
    pub chosen: &'a Chosen<'a>,
    /// The turns that changed a path, the oldest first.
    pub by_path: BTreeMap<&'a AbsPath, Vec<(&'a Turn, &'a Wrote)>>,
}

impl<'a> Writers<'a> {
    pub fn of(chosen: &'a Chosen<'a>) -> Self {
        let mut by_path: BTreeMap<&AbsPath, Vec<_>> = BTreeMap::new();
        for turn in &chosen.back {
            let undone = chosen.undone.get(&turn.head.n);
            let is_there = |wrote: &&Wrote| !undone.is_some_and(|undone| undone.contains(&wrote.path));
            turn.wrote.iter().filter(is_there).for_each(|wrote| by_path.entry(&wrote.path).or_default().push((*turn, wrote)));
        }
        Self { chosen, by_path }
    }

    pub fn paths(&self) -> impl Iterator<Item = &'a AbsPath> {
        self.by_path.keys().copied()
    }

    /// Decides about a path: with its difference from the first snapshot, if it differs.
    pub fn verdict(&self, path: &AbsPath, difference: Option<&Difference>, force: bool) -> Verdict {
        let Some(told) = self.by_path.get(path) else {
            return if self.is_back(path, difference) { Verdict::IsBack } else { Verdict::Stays(self.whose(path)) };
        };
        if let Some((turn, _)) = told.iter().find(|(turn, _)| !turn.covered) {
            return Verdict::Stays(format!("turn {} is not covered: it began before its snapshot was complete", turn.head.n));
        }
        let ([(first, wrote), ..], [.., (last, latest)]) = (&told[..], &told[..]) else {
            return Verdict::Stays(self.whose(path));
        };
        let Some((snapshot, _)) = first.before else { return Verdict::Stays(self.whose(path)) };
        let back = Verdict::Back { snapshot, was: wrote.was };
        if force {
            return back;
        }
        if let Some(why) = told.iter().find_map(|(turn, wrote)| self.not_own(turn, wrote)) {
            return Verdict::Stays(why);
        }
        let parted = told.windows(2).find(|pair| pair[0].1.is != pair[1].1.was);
        if let Some([(earlier, _), (later, _)]) = parted {
            return Verdict::Stays(format!("it was changed between turns {} and {}", earlier.head.n, later.head.n));
        }
        // Without a difference from the first snapshot it is as that has it, and was so before the first of these turns or not.
        let now = difference.map_or(wrote.was, |difference| mark(difference.now.as_ref()));
        if difference.is_some() && now != latest.is {
            return Verdict::Changed(format!("it was changed since turn {}{}", last.head.n, self.by_whom(path, last, now)));
        }
        back
    }

    /// The reason why a path that a turn seems to have written is not its own.
    fn not_own(&self, turn: &Turn, wrote: &Wrote) -> Option<String> {
        if let Some(why) = turn.against(&wrote.path) {
            return Some(format!("turn {}: {why}", turn.head.n));
        }
        // Two commands ran at once: what one has changed, the other may have, too.
        let may_have = |other: &&&Turn| !other.is_with(turn) && other.overlaps(turn) && turn.shares(&wrote.path, other);
        let also = self.chosen.others.iter().find(may_have)?;
        Some(format!("{} may have changed it, too", self.words(also)))
    }

    /// True if a turn that is taken back wrote the path, and it is as before that.
    fn is_back(&self, path: &AbsPath, difference: Option<&Difference>) -> bool {
        let now = mark(difference.and_then(|difference| difference.now.as_ref()));
        let turns = self.chosen.back.iter().chain(&self.chosen.others);
        let of = |turn: &&&Turn| self.chosen.undone.get(&turn.head.n).is_some_and(|undone| undone.contains(path));
        turns.filter(of).flat_map(|turn| &turn.wrote).any(|wrote| wrote.path == *path && wrote.was == now)
    }

    /// The reason why a path that none of the turns wrote differs.
    fn whose(&self, path: &AbsPath) -> String {
        let wrote = |turn: &&&Turn| turn.claims(path) && turn.wrote.iter().any(|wrote| wrote.path == *path);
        let since = self.chosen.back.first().map_or(0, |turn| turn.head.n);
        match self.chosen.others.iter().rev().filter(|turn| turn.head.n > since).find(wrote) {
            Some(turn) => format!("{} wrote it", self.words(turn)),
            None => "these turns did not write it".into(),
        }
    }

    /// Names the turn that left the path as it is now, if one did, in the time of a turn or after it.
    fn by_whom(&self, path: &AbsPath, since: &Turn, now: Option<u64>) -> String {
        let is_later = |turn: &Turn| turn.head.n > since.head.n || !turn.is_with(since) && turn.last >= since.head.time;
        let made_it = |wrote: &Wrote| wrote.path == *path && wrote.is == now;
        let wrote = |turn: &&&Turn| is_later(turn) && turn.wrote.iter().any(made_it);
        match self.chosen.others.iter().rev().find(wrote) {
            Some(turn) => format!(", by {}", self.words(turn)),
            None => String::new(),
        }
    }

    /// A turn in words, with its directory if that is another one.
    fn words(&self, turn: &Turn) -> String {
        let head = &turn.head;
        let is_here = self.chosen.back.first().is_none_or(|first| first.head.directory == head.directory);
        let there = if is_here { String::new() } else { format!(" in {}", head.directory) };
        format!("turn {} of {}{there}", head.n, head.agent.word())
    }
}
