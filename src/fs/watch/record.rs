//! The record of a run for a model of power cuts: the state of what each step touches, before and after it, one line of JSON each.
//!
//! A record changes nothing that the run sees, with one exception: a file that loses a name gets another one in `kept/<inode>` of the
//! record's directory, until the model has used it. So the model can put back any earlier state with the very objects, by whose identity
//! recovery works.
#![expect(clippy::disallowed_methods, reason = "the record of a test, not a file of the user's")]

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::step::{On, Step};
use crate::fs::dir::Entry;

/// Writes the record into directories, one on each file system; the first has the lines.
pub(super) struct Recorder {
    directories: Vec<PathBuf>,
    /// The objects that the last step touched: they are looked at once more when the next step comes.
    last: Mutex<Vec<Touched>>,
    /// Removed directories, held so that their inode numbers are not reused.
    gone: Mutex<Vec<OwnedFd>>,
}

/// An object of a step, held so that it can be looked at after the step.
enum Touched {
    Name { directory: OwnedFd, path: String, name: Vec<u8> },
    Open(OwnedFd),
}

impl Recorder {
    pub(super) fn new(directories: String) -> Self {
        Self { directories: directories.split(',').map(PathBuf::from).collect(), last: Mutex::default(), gone: Mutex::default() }
    }

    pub(super) fn before(&self, n: u64, step: &Step<'_>) -> io::Result<()> {
        let touched = match step.on {
            // It changes nothing that a power cut could lose.
            _ if step.call == "between" => Vec::new(),
            On::One(a) => vec![Touched::name(a)?],
            On::Two(a, b) => vec![Touched::name(a)?, Touched::name(b)?],
            On::Open(fd, _) => vec![Touched::Open(fd.try_clone_to_owned()?)],
        };
        match (step.call, &step.on) {
            ("unlinkat", On::One(gone)) | ("renameat", On::Two(_, gone)) => self.keep(*gone)?,
            ("unlinkat REMOVEDIR", On::One(gone)) => {
                let held = rustix::fs::openat(gone.dir, gone.name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty());
                self.gone.lock().unwrap_or_else(PoisonError::into_inner).extend(held.ok());
            }
            _ => {}
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = String::new();
        let site = format!("{}:{}", step.site.file(), step.site.line());
        if n > 1 {
            lines.push_str(&format!("{}\n", json!({ "after": n - 1, "on": look(&last)? })));
        }
        lines.push_str(&format!("{}\n", json!({ "n": n, "call": step.call, "site": site, "on": look(&touched)? })));
        *last = touched;
        let file = self.directories[0].join("steps.jsonl");
        std::fs::OpenOptions::new().create(true).append(true).open(file)?.write_all(lines.as_bytes())
    }

    /// Gives a second name to an object that is about to lose its own.
    fn keep(&self, gone: Entry<'_>) -> io::Result<()> {
        let Some(stat) = gone.stat().map_err(|error| error.source)? else { return Ok(()) };
        for directory in &self.directories {
            let kept = directory.join("kept").join(stat.ino.to_string());
            match rustix::fs::linkat(gone.dir, gone.name, rustix::fs::CWD, &kept, AtFlags::empty()) {
                // Another file system; or a directory, which unlinkat(2) will refuse.
                Err(Errno::XDEV | Errno::PERM) => {}
                Ok(()) | Err(Errno::EXIST) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Touched {
    fn name(entry: Entry<'_>) -> io::Result<Self> {
        let directory = entry.dir.as_fd().try_clone_to_owned()?;
        let path = entry.dir.path().to_str().ok_or(Errno::ILSEQ)?.to_owned();
        Ok(Self::Name { directory, path, name: entry.name.to_vec() })
    }
}

fn look(touched: &[Touched]) -> io::Result<Vec<Value>> {
    touched
        .iter()
        .map(|touched| match touched {
            Touched::Open(fd) => Ok(json!({ "object": object(fd, b"", AtFlags::EMPTY_PATH)? })),
            Touched::Name { directory, path, name } => Ok(json!({
                "directory": object(directory, b"", AtFlags::EMPTY_PATH)?,
                "path": path,
                "name": std::str::from_utf8(name).map_err(io::Error::other)?,
                "object": object(directory, name, AtFlags::SYMLINK_NOFOLLOW)?,
            })),
        })
        .collect()
}

/// An object by its inode, with all that a power cut can lose of it except its content.
fn object(directory: &OwnedFd, name: &[u8], flags: AtFlags) -> io::Result<Value> {
    let stat = match rustix::fs::statat(directory, name, flags) {
        Err(Errno::NOENT) => return Ok(Value::Null),
        other => other?,
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        _ => "other",
    };
    Ok(json!({
        "dev": stat.st_dev, "ino": stat.st_ino, "kind": kind, "mode": stat.st_mode & 0o7777, "uid": stat.st_uid, "gid": stat.st_gid,
        "mtime": [stat.st_mtime, stat.st_mtime_nsec], "size": stat.st_size, "xattrs": xattrs(directory, name)?,
    }))
}

fn xattrs(directory: &OwnedFd, name: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
    // A path descriptor through /proc: it works for any object, and follows no link at the end.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = match name {
        b"" => directory.try_clone()?,
        name => rustix::fs::openat(directory, name, flags, Mode::empty())?,
    };
    if FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode) == FileType::Symlink {
        return Ok(Vec::new());
    }
    let path = crate::fs::dir::of_fd(held.as_fd());
    let mut names = vec![0; 64 << 10];
    let length = match rustix::fs::listxattr(&path, &mut names) {
        Err(Errno::NOTSUP) => 0,
        other => other?,
    };
    let mut found = Vec::new();
    for name in names[..length].split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::getxattr(&path, name, &mut value)?;
        value.truncate(length);
        found.push((String::from_utf8_lossy(name).into_owned(), value));
    }
    Ok(found)
}
