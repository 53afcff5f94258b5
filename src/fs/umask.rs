//! The caller's umask, which stays as it is: a command that is run gets it, and so does what is made for the user. What it would take
//! from the owner of what recant makes is given back, so that recant's own files and folders are private, and recant's to use, under
//! any umask.

use std::fs::File;
use std::io;
use std::sync::OnceLock;

use rustix::fs::Mode;

/// The umask that recant was started with. Asked for first before there is a second thread: umask(2) reads by setting.
pub fn callers() -> u32 {
    static CALLERS: OnceLock<u32> = OnceLock::new();
    *CALLERS.get_or_init(|| {
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        umask.bits()
    })
}

/// Folders and mount points of a run's own namespace are made from here on: the command has to get through them.
pub fn set_aside() {
    callers();
    rustix::process::umask(Mode::from_raw_mode(0o022));
}

/// Before the command of a run: as the caller had it.
pub fn put_back() {
    rustix::process::umask(Mode::from_raw_mode(callers()));
}

/// What the umask takes from the owner of something made with `mode`: mostly nothing.
pub(super) fn taken_from_owner(mode: u32) -> u32 {
    mode & callers() & 0o700
}

/// A file that may just have been made with `mode`, with its owner's bits.
pub(super) fn owners(file: File, mode: u32) -> io::Result<File> {
    let taken = taken_from_owner(mode);
    if taken != 0 {
        let now = rustix::fs::fstat(&file)?.st_mode & 0o7777;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(now | taken))?;
    }
    Ok(file)
}
