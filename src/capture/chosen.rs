//! The terms of a person's choice: what a session holds at a path from now on, and where its content comes from.

use std::fs::File;

use crate::error::Error;
use crate::fs::dir::{self, Dir};
use crate::fs::path::AbsPath;
use crate::session::change::{Before, Change, Marks};
use crate::session::header::Origin;
use crate::session::opened::Session;
use crate::tree::look;
use crate::tree::state::{Likeness, Object, State, likeness};

/// The object that a session holds at a path from now on.
#[derive(Debug)]
pub struct Choice {
    /// The path.
    pub path: AbsPath,
    /// The object that a commit will expect there. It need not be the one of the present change.
    pub before: Before,
    /// The object that a commit will put there. If `before` is the same, times included, the path is no change any more.
    pub after: Object,
    /// The content of a file.
    pub content: Content,
}

/// The content of a chosen file.
#[derive(Debug)]
pub enum Content {
    /// The object that the session holds at the path stays as it is, whatever kind of object that is: only its change is another one.
    AsHeld,
    /// That of the file on the tree.
    Original,
    /// These bytes.
    Bytes(Vec<u8>),
    /// None: the `after` is no file.
    None,
}

impl Choice {
    /// Takes a change out of a session: the path is as it is on the tree, or as it was when the change was staged by hand.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn out(session: &Session, change: &Change) -> Result<Self, Error> {
        let before = match session.header.origin {
            Origin::Staged => change.before.clone(),
            Origin::Captured => now(&change.path)?,
        };
        let content = if before.object.as_ref().is_some_and(State::is_file) { Content::Original } else { Content::None };
        Ok(Self { path: change.path.clone(), after: before.object.clone(), before, content })
    }

    /// True if the path is no change any more: nothing differs, times included.
    pub fn is_none(&self) -> bool {
        // Content that does not come from the tree may have the size and the time of what is there, by chance: its hash alone tells.
        let is_hashed = |object: &Object| object.as_ref().is_none_or(|state| !state.is_file() || state.hash().is_some());
        if matches!(self.content, Content::Bytes(_) | Content::AsHeld)
            && ![&self.before.object, &self.after].into_iter().all(is_hashed)
        {
            return false;
        }
        let time = |object: &Object| object.as_ref().map(|state| state.meta.mtime);
        self.before.object == self.after
            || likeness(&self.before.object, &self.after) == Likeness::Same && time(&self.before.object) == time(&self.after)
    }

    /// The net change that it makes of the one that is known.
    pub(super) fn change(&self, known: Option<&Change>) -> Change {
        let is_same = known.is_some_and(|known| known.before == self.before);
        let hash = |object: &Object| object.as_ref().and_then(State::hash);
        let same_content = hash(&self.after).is_some_and(|after| hash(&self.before.object) == Some(after));
        // A `before` that was chosen is what the person saw there.
        let marks = match known.map(|known| known.marks) {
            Some(marks) if is_same => marks,
            Some(marks) => {
                Marks { foreign: false, by_clock: false, same_content, link_broken: marks.link_broken && !same_content, ..marks }
            }
            None => Marks { same_content, ..Marks::default() },
        };
        Change {
            n: known.map_or(0, |known| known.n),
            path: self.path.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            marks,
            step: known.and_then(|known| known.step),
            from: None,
            extra: known.map(|known| known.extra.clone()).unwrap_or_default(),
        }
    }
}

/// The object on the tree.
fn now(path: &AbsPath) -> Result<Before, Error> {
    let seen = match on_tree(path) {
        Err(error) if error.io().is_some_and(dir::leads_nowhere) => None,
        dir => look::look(dir?.at(path.name()))?,
    };
    let (object, print) = seen.map_or((None, None), |seen| (Some(seen.state), Some(seen.print)));
    Ok(Before { object, print })
}

/// The file on the tree, open.
pub(super) fn original(path: &AbsPath) -> Result<File, Error> {
    Ok(on_tree(path)?.at(path.name()).open_file()?)
}

/// The directory of a path on the tree.
pub(super) fn on_tree(path: &AbsPath) -> Result<Dir, Error> {
    let (parent, _) = path.split().unwrap_or((b"/", b""));
    Ok(Dir::open("/".as_ref())?.open_across(parent.strip_prefix(b"/").unwrap_or_default())?)
}
