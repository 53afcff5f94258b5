//! The choice of the turns that an undo takes back.

use std::collections::{BTreeMap, BTreeSet};

use super::turn::Turn;
use crate::fs::AbsPath;
use crate::snapshot::Compared;
use crate::tree::State;

/// The turns that are taken back, and the others.
pub struct Chosen<'a> {
    /// Those that are taken back, the oldest first.
    pub back: Vec<&'a Turn>,
    pub others: Vec<&'a Turn>,
    pub(super) reach: Reach,
    pub(super) undone: &'a BTreeMap<u64, BTreeSet<AbsPath>>,
}

/// How far an undo reaches from a turn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The turn and the later ones of its conversation.
    Later,
    /// The turn alone, merged under what came later.
    Only,
    Conversation,
}

impl<'a> Chosen<'a> {
    /// Of all `turns` of the directory `n` and what it reaches; `near` are those of projects in this one or around it. A conversation is a
    /// session of an agent. `undone` has the paths of each turn that are taken back already.
    pub fn from(
        turns: &'a [Turn],
        near: &'a [Turn],
        (n, reach): (u64, Reach),
        undone: &'a BTreeMap<u64, BTreeSet<AbsPath>>,
    ) -> Self {
        let first = turns.iter().find(|turn| turn.head.n == n);
        let is_of = |turn: &&Turn| match reach {
            Reach::Only => turn.head.n == n,
            Reach::Later => turn.head.n >= n && first.is_some_and(|first| turn.is_with(first)),
            Reach::Conversation => first.is_some_and(|first| turn.is_with(first)),
        };
        let (back, others) = turns.iter().partition::<Vec<_>, _>(is_of);
        Self { back, others: others.into_iter().chain(near).collect(), reach, undone }
    }

    /// True if these turns changed something there, as far as was seen.
    pub(super) fn have_changed(&self, path: &AbsPath) -> bool {
        self.back.iter().flat_map(|turn| turn.own_changes()).any(|change| change.path.is_under(path))
    }

    /// The number of files that go back and that no tool of these turns named.
    pub(super) fn by_commands(&self, compared: &Compared) -> u64 {
        let is_by_command = |path: &AbsPath| self.back.iter().any(|turn| turn.is_by_command(path));
        let files = compared.differences.iter().filter(|d| !d.now.as_ref().or(d.then.as_ref()).is_some_and(State::is_dir));
        files.filter(|d| is_by_command(&d.path)).count() as u64
    }

    /// The first turn whose snapshot was whole when it began to write.
    pub fn base(&self) -> Option<&'a Turn> {
        self.back.iter().copied().find(|turn| turn.covered)
    }
}
