//! `cat`: the content of a path as a session has it.

use std::fs::File;

use super::desk::Desk;
use super::error::{self, not_in_session};
use super::resolve::named_changes::TypedPath;
use crate::compare::{Content, Sources};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::Session;
use crate::tree::{State, What, sort_word};

/// The state of a path that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Before,
    After,
    /// The content that `--force` overwrote there.
    Displaced,
}

/// A content, to be read from here on.
pub enum Contents {
    File(File),
    /// The target of a symlink.
    Target(Box<[u8]>),
}

/// Opens the content of a path in the session that `key` means.
///
/// # Errors
/// No session is meant; the path is not in it, or has no content then; the content is gone, or cannot be read.
pub fn cat(desk: &Desk, key: &str, path: &TypedPath, when: When) -> Result<(AbsPath, Contents), Error> {
    let (store, session) = desk.looked_at(Some(key))?;
    desk.believed(store, &session, of(&session, path, when))
}

fn of(session: &Session, path: &TypedPath, when: When) -> Result<(AbsPath, Contents), Error> {
    let changes = session.changes()?;
    let path = changes.named(path.path())?;
    let change = changes.at(&path).ok_or_else(|| match path.as_path().symlink_metadata() {
        Ok(_) => error::unchanged(session.id(), &path),
        Err(_) => not_in_session(session.id(), &changes, &path),
    })?;
    let sides = session.sides(changes.list.len())?;
    let side = changes.list.iter().position(|other| other.path == path).map_or(sides[0], |i| sides[i]);
    let state = match when {
        When::Displaced => {
            let contents = match Sources::of(session)?.displaced(&path)? {
                Some((Some(State { what: What::Symlink { target }, .. }), _)) => Contents::Target(target),
                Some((_, content)) => file(content, &path)?,
                None => return Err(error::not_overwritten(&path)),
            };
            return Ok((path, contents));
        }
        When::Before => &change.before.object,
        When::After => &change.after,
    };
    let Some(state) = state else { return Err(error::nothing_there(session.id(), &path, when == When::Before)) };
    let contents = match &state.what {
        What::Symlink { target } => Contents::Target(target.clone()),
        What::File { .. } => {
            let mut sources = Sources::of(session)?;
            let on_tree = sources.on_tree(change, side);
            let read_before = when == When::Before || change.in_place();
            let content =
                if read_before { sources.before(change, side, &on_tree) } else { sources.after(change, side, &on_tree) };
            // Without its content, what is on the tree can still be read.
            let is_freed = session.header.freed;
            let content = content.map_err(|error| if is_freed { error::content_gone(session.id()) } else { error })?;
            file(content, &path)?
        }
        _ => return Err(error::no_content(&path, sort_word(state.sort()))),
    };
    Ok((path, contents))
}

fn file(content: Content, path: &AbsPath) -> Result<Contents, Error> {
    match content {
        Content::File(file) => Ok(Contents::File(file)),
        Content::Gone(why) => Err(error::unreadable(path, &why)),
    }
}
