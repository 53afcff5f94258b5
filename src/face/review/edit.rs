//! `e` of the screen: a held file in the person's editor. What that writes is held, as a choice of the person.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::acts::Acts;
use crate::capture::{Choice, choose, may_choose};
use crate::compare::{Content, OnTree, Sources};
use crate::error::{At, Error, shell_word};
use crate::face::call::Call;
use crate::face::screen::world::Ended;
use crate::face::text::parts::edit::edit;
use crate::fs::{Dir, OnSignal, interrupt};
use crate::session::{Arg, Change, Id, Side};
use crate::tree::{Hash, Meta, State, What};
use crate::verb::Want;

/// The most bytes that are edited.
const MOST: u64 = 64 << 20;

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

    /// The lines are empty if nothing was changed.
    fn try_edit(&self, id: &Id, shown: &Change) -> Result<Vec<String>, Error> {
        let call = self.call();
        let path = &shown.path;
        let Some(after) = shown.after.as_ref().filter(|after| after.is_file()) else {
            return Err(Error::refused(format!("{path}: no file is held there that could be edited")));
        };
        if after.size() > MOST {
            return Err(Error::refused(format!("{path}: it is too large to be edited here")));
        }
        let old = self.held(id, shown)?;
        let draft = Draft::make(call, path.name(), &old)?;
        let new = match draft.edited() {
            Ok(new) => new,
            Err(problem) => {
                draft.remove(call);
                return Err(problem);
            }
        };
        if new == old {
            draft.remove(call);
            return Ok(Vec::new());
        }
        match self.take(id, shown, after, new) {
            Ok(line) => {
                draft.remove(call);
                Ok(vec![line])
            }
            // What somebody wrote is not thrown away.
            Err(problem) => {
                Err(problem.with_remedy(format!("what you wrote is kept: {}", shell_word(draft.path.as_os_str().as_bytes()))))
            }
        }
    }

    /// Makes a session hold what was written. Returns what a person is told.
    fn take(&self, id: &Id, shown: &Change, after: &State, new: Vec<u8>) -> Result<String, Error> {
        let (call, path) = (self.call(), &shown.path);
        let (store, mut session) = call.locked(id.as_str(), Want::Discard)?;
        may_choose(&session)?;
        let changes = session.changes()?;
        let change = changes.list.iter().find(|change| change.path == *path).filter(|change| change.after == shown.after);
        let Some(change) = change else {
            return Err(Error::refused(format!("{path}: the session changed meanwhile, so it does not hold the edit")));
        };
        interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
        let _noting = interrupt::note(OnSignal::GoesOn);
        let what = What::File { size: new.len() as u64, hash: Some(Hash::of(&new)), index: None };
        let state = State { what, meta: Meta { mtime: crate::fs::now(), ..after.meta.clone() } };
        let words = [&b"recant"[..], b"review", id.tail().as_bytes(), b"edit", path.as_bytes()].map(|word| Arg(word.to_vec()));
        let choice = Choice { path: path.clone(), before: change.before.clone(), after: state, content: new };
        choose(&call.fs, store, &mut session, words.to_vec(), (vec![choice], Vec::new()))?;
        Ok(format!("session {} holds the edited {}", id.tail(), call.out.shown(path)))
    }

    fn held(&self, id: &Id, change: &Change) -> Result<Vec<u8>, Error> {
        let session = self.call().store_with(id.as_str())?.session(id)?;
        let mut bytes = Vec::new();
        match Sources::of(&session)?.after(change, Side::Never, &OnTree::AsRecorded)? {
            Content::File(file) => file.take(MOST).read_to_end(&mut bytes).at("read", &change.path)?,
            Content::Gone(why) => return Err(Error::refused(format!("{}: {why}", change.path))),
        };
        Ok(bytes)
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
