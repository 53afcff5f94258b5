//! `session new`, `write`, `delete`, `mkdir`, `symlink`, `chmod`, `rename`: changes staged by hand.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::signalled;
use crate::error::{At, Error};
use crate::face::args;
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::fs::interrupt::Input;
use crate::fs::path::{AbsPath, Shown};
use crate::session::change::Sort;
use crate::session::header::Origin;
use crate::session::id::Id;
use crate::session::stage::{Desk, Write};
use crate::verb::resolve::want::Want;

#[derive(Serialize)]
struct Begun<'a> {
    id: &'a Id,
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct Staged<'a> {
    session: &'a Id,
    path: &'a AbsPath,
    /// `null` if the path is back to what it was before.
    change: Option<Sort>,
}

/// Begins a session; prints its id alone.
pub fn new(call: &Call, args: &args::New) -> Result<Ended, Error> {
    let store = call.made_store()?;
    call.prepare_to_change(&store)?;
    let begin = || {
        let session = store.begin(&call.fs, Origin::Staged, args.name.as_deref(), None)?;
        call.clear_away(&store);
        Ok(session)
    };
    signalled::finished(call, begin, |session| {
        if call.out.is_text() {
            call.out.line(session.id());
        } else {
            call.out.document(&Begun { id: session.id(), name: args.name.as_deref() });
        }
        Ok(Ended::Done)
    })
}

pub fn write(call: &Call, args: &args::Write) -> Result<Ended, Error> {
    let source = match &args.from {
        Some(path) => Shown(path.as_os_str().as_bytes()).to_string(),
        None => "standard input".into(),
    };
    // Opened first, so that a missing FILE is found before the session is touched.
    let mut content = match &args.from {
        Some(path) => Input(std::fs::File::open(path).at("open", &source)?),
        None => signalled::input()?,
    };
    at_desk(call, &args.id, args.place.parents, |desk| {
        let write = Write { content: &mut content, source: &source, mode: args.mode, over_directory: args.place.recursive };
        desk.write(&args.path, &cwd_for(&args.path)?, write)
    })
}

pub fn delete(call: &Call, args: &args::Delete) -> Result<Ended, Error> {
    at_desk(call, &args.id, false, |desk| desk.delete(&args.path, &cwd_for(&args.path)?, args.recursive))
}

pub fn mkdir(call: &Call, args: &args::Mkdir) -> Result<Ended, Error> {
    at_desk(call, &args.id, args.parents, |desk| desk.mkdir(&args.path, &cwd_for(&args.path)?, args.mode))
}

pub fn symlink(call: &Call, args: &args::Symlink) -> Result<Ended, Error> {
    let target = args.target.as_bytes();
    at_desk(call, &args.id, args.place.parents, |desk| {
        desk.symlink(target, &args.path, &cwd_for(&args.path)?, args.place.recursive)
    })
}

pub fn chmod(call: &Call, args: &args::Chmod) -> Result<Ended, Error> {
    at_desk(call, &args.id, false, |desk| desk.chmod(args.mode, &args.path, &cwd_for(&args.path)?))
}

/// Gives a session another name, or none.
pub fn rename(call: &Call, args: &args::Rename) -> Result<Ended, Error> {
    let (store, mut session) = call.locked(&args.id, Want::Tend)?;
    let rename = || {
        store.rename(&call.fs, &mut session, args.name.as_deref())?;
        call.clear_away(store);
        Ok(session)
    };
    signalled::finished(call, rename, |session| {
        if !call.out.is_text() {
            call.out.document(&Begun { id: session.id(), name: args.name.as_deref() });
        }
        Ok(Ended::Done)
    })
}

/// The directory that a path is relative to. An absolute path needs no working directory.
fn cwd_for(path: &Path) -> Result<PathBuf, Error> {
    if path.is_absolute() { Ok(PathBuf::from("/")) } else { crate::face::place::cwd() }
}

fn at_desk(
    call: &Call,
    key: &str,
    parents: bool,
    stage: impl FnOnce(&mut Desk<'_>) -> Result<AbsPath, Error>,
) -> Result<Ended, Error> {
    let (store, mut session) = call.locked(key, Want::Stage)?;
    let act = || {
        let mut desk = Desk::open(&call.fs, store, &mut session, parents)?;
        match stage(&mut desk) {
            Ok(path) => {
                let stays = desk.finish()?;
                Ok((path, session, stays))
            }
            Err(problem) => {
                desk.give_up();
                Err(problem)
            }
        }
    };
    signalled::finished(call, act, |(path, session, stays)| {
        for error in stays {
            call.out.warn(format_args!("{error}; nothing needs it, and the next staging in this session tries again"));
        }
        if call.out.is_text() {
            call.out.detail(format_args!("staged: {path}"));
        } else {
            let change = session.changes()?.at(&path).map(|change| change.sort());
            call.out.document(&Staged { session: session.id(), path: &path, change });
        }
        Ok(Ended::Done)
    })
}
