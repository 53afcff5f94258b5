//! The things that the screen shows and asks for: the border between the screen and the verbs.

use std::sync::Arc;

use super::sheet::Sheet;
use crate::compare::{Picked, Taken};
use crate::session::{Change, Side};
use crate::tree::Hash;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The subject that the screen was opened for.
    Whole,
    Step(u32),
    Turn(u64),
}

/// The changes of a place as they stand.
#[derive(Clone)]
pub struct ViewedChanges {
    /// The subject, in a few words: `session k3fa`.
    pub title: String,
    pub state: String,
    /// The command, or whatever else tells a person what it is.
    pub about: String,
    /// The changes, in path order.
    pub changes: Arc<Vec<Change>>,
    pub sides: Arc<Vec<Side>>,
    /// Facts that are not among the changes: places that were not covered, effects beyond files.
    pub notes: Vec<String>,
    pub may: AllowedActs,
    /// Differs if something else stands there.
    pub mark: Hash,
    pub is_running: bool,
    /// Opens the contents, in the thread that reads them.
    pub contents: Open,
}

/// Opens contents, and serves them until the function returns that it is given.
pub type Open = Arc<dyn Fn(&mut dyn FnMut(&mut dyn Contents)) -> Result<(), String> + Send + Sync>;

/// Looks at a place; called in any thread. `None` if nothing there differs from the mark.
pub type Look = Arc<dyn Fn(Option<Hash>) -> Result<Option<ViewedChanges>, String> + Send + Sync>;

pub trait Contents {
    /// A change, by its index, ready to be shown.
    fn sheet(&mut self, i: usize) -> Sheet;
    /// The hash of how a change stands, by which it is read anew; `None` if it stays as it is.
    fn mark(&mut self, _i: usize) -> Option<Hash> {
        None
    }
}

/// The acts that are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AllowedActs {
    pub commit: bool,
    /// To commit is to commit again what was rolled back.
    pub redo: bool,
    pub discard: bool,
    /// Take back what is on the tree.
    pub roll_back: bool,
    pub restore: bool,
    pub choose: bool,
    /// Look at steps, and go back to one.
    pub steps: bool,
    /// Look at agents' turns, and undo them.
    pub turns: bool,
}

/// An act on what is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Commit,
    Discard,
    RollBack,
    /// Puts back what a snapshot has of it.
    Restore,
    /// Puts it onto what is on the tree by now.
    Merge,
}

impl Act {
    /// True for an act whose reason is kept, for the log and for an agent that waits.
    pub fn takes_reason(self) -> bool {
        matches!(self, Act::Commit | Act::Discard | Act::RollBack)
    }

    pub fn verb(self) -> &'static str {
        match self {
            Act::Commit => "Commit",
            Act::Discard => "Discard",
            Act::RollBack => "Roll back",
            Act::Restore => "Restore",
            Act::Merge => "Merge",
        }
    }
}

/// The picks that an act would be done with.
pub struct Planned {
    /// The picks, each with what was seen of it.
    pub picked: Picked,
    /// Facts that a person has to know before.
    pub notes: Vec<String>,
}

/// Something that a person confirms.
#[derive(Debug, Clone)]
pub enum Decision {
    /// An act on what is picked, and the reason for it.
    Picked(Act, Picked, Option<String>),
    /// Makes the session stand at a step.
    Rewind(u32),
    /// Undoes a turn and the later ones.
    UndoTurn(u64),
    /// Undoes the last deed of this screen.
    Undo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It is done; the lines say what was.
    Done(Vec<String>),
    /// Nothing was changed, for these reasons.
    Refused(Vec<String>),
    /// Nothing was changed, as the tree does not hold what was expected.
    Conflict(Vec<String>),
    /// Nothing was changed, as something else stands there than was shown: each path with what that is.
    Changed(Vec<String>),
}

/// A row of the list of steps or turns.
#[derive(Debug, Clone)]
pub struct Row {
    pub n: u64,
    /// True for the one at which things stand.
    pub is_head: bool,
    pub columns: Vec<String>,
}

/// The subject of a screen, and the acts on it.
pub trait World {
    fn look(&mut self, place: &Place) -> Look;
    /// Plans an act on parts of these changes, by index.
    ///
    /// # Errors
    /// They cannot be looked at.
    fn pick(&mut self, seen: &ViewedChanges, act: Act, parts: Vec<(usize, Taken)>) -> Result<Planned, String>;
    fn perform(&mut self, deed: Decision) -> Ended;
    /// True where one subject after the other is shown.
    fn goes_on(&self) -> bool {
        false
    }
    /// The number of further subjects, of which each is shown after this one.
    fn further(&self) -> usize {
        0
    }
    /// Goes on to the next subject. False if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    fn go_on(&mut self) -> Result<bool, String> {
        Ok(false)
    }
    /// The calls that undo the last deed; `None` if there is none that can be undone.
    fn last(&self) -> Option<String>;
    /// The steps, the newest first, with the names of the columns.
    ///
    /// # Errors
    /// They cannot be read.
    fn steps(&mut self) -> Result<(Vec<String>, Vec<Row>), String>;
    /// The turns, the newest first, with the names of the columns.
    ///
    /// # Errors
    /// They cannot be read.
    fn turns(&mut self) -> Result<(Vec<String>, Vec<Row>), String>;
    /// Opens a change in another program, which has the terminal meanwhile: the held file in the person's editor, or both sides in the
    /// tool for differences.
    fn open(&mut self, seen: &ViewedChanges, i: usize, with: Program) -> Ended;
}

/// A program that a change is opened in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The editor: what it writes is held.
    Editor,
    Tool,
}
