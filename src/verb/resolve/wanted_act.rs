//! Acts that are wanted of a session.

use crate::engine::Verb;
use crate::session::{Checkpoint, Header, Origin, is_awaited};

/// The act that a verb wants to do with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    Look,
    Commit,
    RollBack,
    Redo,
    /// To drop what it holds.
    Discard,
    /// To let its commit stay.
    Confirm,
    Stage,
    /// To run a further command in it.
    GoOn,
    /// To make it stand at another step.
    Rewind,
    /// To begin another session as it is at a step.
    Fork,
    /// To change something else about it: its name, or what the store keeps of it.
    Tend,
}

impl From<Verb> for Want {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Commit => Want::Commit,
            Verb::Rollback => Want::RollBack,
            Verb::Redo => Want::Redo,
        }
    }
}

impl Want {
    /// True for an act whose result names the session.
    pub fn is_named_in_result(self) -> bool {
        matches!(self, Want::Commit | Want::RollBack | Want::Redo | Want::Discard | Want::Confirm | Want::Rewind | Want::Fork)
    }

    /// Tells whether the verb can act on a session, as far as its header tells. A run that is under way, or not collected yet, counts as a
    /// pending session.
    pub fn fits(self, header: &Header) -> bool {
        let counts = header.counts;
        if header.discarded.is_some() {
            return false;
        }
        if header.uncollected {
            return !matches!(self, Want::RollBack | Want::Redo | Want::Confirm | Want::Stage);
        }
        let is_final = header.checkpoint == Checkpoint::Pruned && counts.inside > 0;
        match self {
            Want::Look | Want::Tend => counts.changes > 0 || header.steps.is_some(),
            // What was rolled back is committed again by redo, or by its id.
            Want::Commit => is_awaited(header) && !is_final,
            Want::RollBack => counts.inside > 0 && !is_final,
            Want::Redo => counts.inside < counts.ever_in && !is_final || header.is_as_undone(),
            // If some of it is on the tree, the verb says what can be done: it must not drop an older one in its place.
            Want::Discard => is_awaited(header),
            Want::Confirm => header.waits().is_some(),
            Want::Stage => header.origin == Origin::Staged && counts.ever_in == 0,
            Want::GoOn | Want::Rewind | Want::Fork => {
                let holds = counts.changes > 0 || header.steps.is_some();
                header.origin == Origin::Captured && holds && (counts.ever_in == 0 || header.may_reopen())
            }
        }
    }
}
