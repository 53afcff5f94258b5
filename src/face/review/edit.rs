//! `e` of the screen: a held file in the person's editor. What that writes is held, as a step of the session.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::acts::Acts;
use crate::compare::is_binary;
use crate::error::{At, Error, shell_word};
use crate::face::call::Call;
use crate::face::screen::world::Ended;
use crate::face::text::parts::edit::edit;
use crate::fs::Dir;
use crate::session::{Arg, Change, Id};
use crate::tree::Hash;
use crate::verb::{HeldEdit, HeldEdited, error, held_edit};

impl Acts<'_> {
    /// Opens what a session holds at a path in the editor.
    pub fn edit(&mut self, id: &Id, change: &Change) -> Ended {
        let before = match self.stand(id) {
            Ok(before) => before,
            Err(problem) => return Ended::Refused(super::error_lines::lines_of(&problem)),
        };
        let done = self.try_edit(id, change);
        self.edited(id, &before, done)
    }

    /// `None` if nothing was changed.
    fn try_edit(&self, id: &Id, change: &Change) -> Result<Option<HeldEdited>, Error> {
        let (call, path) = (self.call(), &change.path);
        let old = held_edit::content(&call.store_with(id.as_str())?.session(id)?, change)?;
        if is_binary(&old) {
            return Err(error::is_binary(path));
        }
        let draft = Draft::make(call, path.name(), &old)?;
        let new = match draft.edited() {
            Ok(new) if new != old => new,
            nothing => {
                draft.remove(call);
                return nothing.map(|_| None);
            }
        };
        let words = [&b"recant"[..], b"review", id.tail().as_bytes(), b"edit", path.as_bytes()].map(|word| Arg(word.to_vec()));
        let edits = vec![HeldEdit { path: path.clone(), old: Hash::of(&old), new }];
        // What somebody wrote is not thrown away.
        let held = held_edit::edit(call, id.as_str(), edits, words.to_vec()).map_err(|problem| {
            problem.with_remedy(format!("what you wrote is kept: {}", shell_word(draft.path.as_os_str().as_bytes())))
        })?;
        draft.remove(call);
        Ok(Some(held))
    }
}

/// A copy for the editor. It has the file's name, in a directory of its own that nobody else can read.
struct Draft {
    top: Dir,
    own: Vec<u8>,
    directory: Dir,
    path: PathBuf,
}

impl Draft {
    fn make(call: &Call, name: &[u8], content: &[u8]) -> Result<Self, Error> {
        let at = std::env::temp_dir();
        let own = format!("recant-{}-{}", std::process::id(), crate::fs::now().ns).into_bytes();
        let top = Dir::open(&at)?;
        call.fs.mkdir(top.at(&own), 0o700)?;
        let directory = top.at(&own).open_dir()?;
        let path = at.join(OsStr::from_bytes(&own)).join(OsStr::from_bytes(name));
        let draft = Self { top, own, directory, path };
        let copy = draft.directory.at(name);
        call.fs.write(&call.fs.create(copy, 0o600)?, content, copy)?;
        Ok(draft)
    }

    /// Its content after the editor has ended.
    fn edited(&self) -> Result<Vec<u8>, Error> {
        edit(&self.path).map_err(Error::refused)?;
        std::fs::read(&self.path).at("read", self.path.display()).map_err(Error::from)
    }

    /// Removes it, with the copies that an editor leaves beside it. If something stays, that is said once the screen has gone.
    fn remove(&self, call: &Call) {
        let removed = || -> Result<(), crate::error::Error> {
            for left in self.directory.names()? {
                call.fs.unlink_if_there(self.directory.at(&left))?;
            }
            Ok(call.fs.rmdir(self.top.at(&self.own))?)
        };
        if let Err(error) = removed() {
            call.out.warn(error);
        }
    }
}
