//! `session new`, `write`, `delete`, `mkdir`, `symlink`, `chmod`, `rename`: changes staged by hand.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{At, Error};
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::cwd;
use crate::fs::{Input, Shown};
use crate::verb::{Edit, stage};

/// Begins a session; prints its id alone.
pub fn new(call: &Call, args: &args::New) -> Result<Ended, Error> {
    let named = stage::begin(call, args.name.as_deref())?;
    if call.out.is_text() {
        call.out.line(&named.id)
    } else {
        call.out.document(&named)
    }
    Ok(Ended::Done)
}

/// Gives a session another name, or none.
pub fn rename(call: &Call, args: &args::Rename) -> Result<Ended, Error> {
    let named = stage::rename(call, &args.id, args.name.as_deref())?;
    if !call.out.is_text() {
        call.out.document(&named);
    }
    Ok(Ended::Done)
}

pub fn write(call: &Call, args: &args::Write) -> Result<Ended, Error> {
    let source = match &args.from {
        Some(path) => Shown(path.as_os_str().as_bytes()).to_string(),
        None => "standard input".into(),
    };
    // Opened first, so that a missing FILE is found before the session is touched.
    let mut content = match &args.from {
        Some(path) => Input(std::fs::File::open(path).at("open", &source)?),
        None => Input::of_stdin()?,
    };
    let over_directory = args.place.recursive;
    let edit = Edit::Write { content: &mut content, source: &source, mode: args.mode, over_directory };
    stage(call, (&args.id, &args.path), edit, args.place.parents)
}

pub fn delete(call: &Call, args: &args::Delete) -> Result<Ended, Error> {
    stage(call, (&args.id, &args.path), Edit::Delete { recursive: args.recursive }, false)
}

pub fn mkdir(call: &Call, args: &args::Mkdir) -> Result<Ended, Error> {
    stage(call, (&args.id, &args.path), Edit::Mkdir(args.mode), args.parents)
}

pub fn symlink(call: &Call, args: &args::Symlink) -> Result<Ended, Error> {
    let edit = Edit::Symlink { target: args.target.as_bytes(), over_directory: args.place.recursive };
    stage(call, (&args.id, &args.path), edit, args.place.parents)
}

pub fn chmod(call: &Call, args: &args::Chmod) -> Result<Ended, Error> {
    stage(call, (&args.id, &args.path), Edit::Chmod(args.mode), false)
}

fn stage(call: &Call, (key, path): (&str, &Path), edit: Edit<'_>, parents: bool) -> Result<Ended, Error> {
    // An absolute path needs no working directory.
    let cwd = if path.is_absolute() { PathBuf::from("/") } else { cwd()? };
    for staged in stage::stage(call, key, &cwd, [(path, edit)], parents)? {
        if call.out.is_text() {
            call.out.detail(format_args!("staged: {}", staged.path));
        } else {
            call.out.document(&staged);
        }
    }
    Ok(Ended::Done)
}
