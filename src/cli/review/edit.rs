//! `e` of the screen: a held file in the person's editor. What that writes is held, as a choice of the person.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::acts::Acts;
use crate::capture::choice::{choose, may_choose};
use crate::capture::chosen::{Choice, Content as Chosen};
use crate::cli::parts::edit::edit;
use crate::cli::problem::Problem;
use crate::cli::which::Want;
use crate::diff::sources::{Content, OnTree, Sources};
use crate::error::At;
use crate::fs::dir::Dir;
use crate::fs::interrupt::{self, Asked};
use crate::review::facts::Ended;
use crate::session::change::Change;
use crate::session::id::Id;
use crate::session::run::Arg;
use crate::session::sides::Side;
use crate::tree::hash::Hash;
use crate::tree::state::{Meta, State, What};

/// The most bytes that are edited.
const MOST: u64 = 64 << 20;

impl Acts<'_> {
    /// Opens what a session holds at a path in the editor.
    pub fn edit(&mut self, id: &Id, change: &Change) -> Ended {
        let before = match self.head(id) {
            Ok(before) => before,
            Err(problem) => return self.edited(id, (0, false), Err(problem)),
        };
        let done = self.try_edit(id, change);
        self.edited(id, before, done)
    }

    /// The lines are empty if nothing was changed.
    fn try_edit(&self, id: &Id, shown: &Change) -> Result<Vec<String>, Problem> {
        let call = self.call();
        let path = &shown.path;
        let Some(after) = shown.after.as_ref().filter(|after| after.is_file()) else {
            return Err(Problem::refused(format!("{path}: no file is held there that could be edited")));
        };
        if after.size() > MOST {
            return Err(Problem::refused(format!("{path}: it is too large to be edited here")));
        }
        let old = self.held(id, shown)?;
        let new = edited(call, path.name(), &old)?;
        if new == old {
            return Ok(Vec::new());
        }
        let (store, mut session) = call.locked(id.as_str(), Want::Discard)?;
        may_choose(&session)?;
        let changes = session.changes()?;
        let change = changes.list.iter().find(|change| change.path == *path).filter(|change| change.after == shown.after);
        let Some(change) = change else {
            return Err(Problem::refused(format!("{path}: the session changed meanwhile; nothing was taken of the edit")));
        };
        interrupt::check().map_err(|asked| Problem::refused(asked.to_string()))?;
        let _noting = interrupt::note(Asked::GoesOn);
        let what = What::File { size: new.len() as u64, hash: Some(Hash::of(&new)), index: None };
        let state = State { what, meta: Meta { mtime: crate::fs::now(), ..after.meta.clone() } };
        let words = [&b"recant"[..], b"review", id.tail().as_bytes(), b"edit", path.as_bytes()].map(|word| Arg(word.to_vec()));
        let choice =
            Choice { path: path.clone(), before: change.before.clone(), after: Some(state), content: Chosen::Bytes(new) };
        choose(&call.fs, store, &mut session, words.to_vec(), vec![choice])?;
        Ok(vec![format!("session {} holds the edited {}", id.tail(), call.out.shown(path))])
    }

    fn held(&self, id: &Id, change: &Change) -> Result<Vec<u8>, Problem> {
        let session = self.call().store_with(id.as_str())?.session(id)?;
        let mut bytes = Vec::new();
        match Sources::of(&session)?.after(change, Side::Never, &OnTree::AsRecorded)? {
            Content::File(file) => file.take(MOST).read_to_end(&mut bytes).at("read", &change.path)?,
            Content::Gone(why) => return Err(Problem::refused(format!("{}: {why}", change.path))),
        };
        Ok(bytes)
    }
}

/// The content of a file after the editor has ended. The file has the same name, in a directory of its own that nobody else can read.
fn edited(call: &crate::cli::Call, name: &[u8], content: &[u8]) -> Result<Vec<u8>, Problem> {
    let top = std::env::temp_dir();
    let own = format!("recant-{}-{}", std::process::id(), crate::fs::now().ns).into_bytes();
    let directory = Dir::open(&top)?;
    let at = directory.at(&own);
    call.fs.mkdir(at, 0o700)?;
    let inner = at.open_dir()?;
    let done = edited_in(call, &inner, &top.join(std::ffi::OsStr::from_bytes(&own)), name, content);
    // An editor leaves copies beside the file.
    for left in inner.names()? {
        call.fs.unlink_if_there(inner.at(&left))?;
    }
    call.fs.rmdir(at)?;
    done
}

fn edited_in(call: &crate::cli::Call, inner: &Dir, path: &Path, name: &[u8], content: &[u8]) -> Result<Vec<u8>, Problem> {
    let at = inner.at(name);
    call.fs.write(&call.fs.create(at, 0o600)?, content, at)?;
    let path = path.join(std::ffi::OsStr::from_bytes(name));
    edit(&path).map_err(Problem::refused)?;
    std::fs::read(&path).at("read", path.display()).map_err(Problem::from)
}
