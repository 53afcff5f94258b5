//! The limit of open files: recant raises its own, and what it starts has the caller's.
#![allow(unsafe_code, reason = "pre_exec has no safe wrapper")]

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limits that this process was started with, if it has raised them since.
static CALLERS: OnceLock<Rlimit> = OnceLock::new();

/// The most files that recant wants to have open.
const MOST: u64 = 1 << 16;

/// Raises this process' limit of open files as far as it may be. Where that is refused, fewer directories are kept open.
pub fn open_many() {
    let limits = getrlimit(Resource::Nofile);
    let most = limits.maximum.unwrap_or(u64::MAX).min(MOST);
    if limits.current.is_some_and(|current| current < most) {
        let raised = Rlimit { current: Some(most), maximum: limits.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            CALLERS.get_or_init(|| limits);
        }
    }
}

/// Restores the caller's limit of open files, before another program is executed.
pub fn open_as_called() {
    if let Some(limits) = CALLERS.get() {
        // A soft limit below the hard one is never refused: setrlimit(2).
        let _lowered = setrlimit(Resource::Nofile, *limits);
    }
}

/// A program to start. It gets the caller's limit of open files.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    if CALLERS.get().is_some() {
        let lower = || -> io::Result<()> {
            open_as_called();
            Ok(())
        };
        // SAFETY: between fork and exec the closure reads a static that is set, and calls prlimit64(2) alone: it allocates nothing and
        // takes no lock (signal-safety(7)).
        unsafe { command.pre_exec(lower) };
    }
    command
}
