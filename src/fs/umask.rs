//! The caller's umask, which stays as it is: a command that is run gets it, and so does what is made for the user. It takes nothing from
//! the owner of what recant makes, so that recant's own files and folders are private, and recant's to use, under any umask.

use std::sync::{Mutex, OnceLock, PoisonError};

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

/// Makes something of mode `mode` with its owner's bits from the first moment on: what is made and then given them would stay without where
/// recant is killed in between.
pub(super) fn with_owners<T>(mode: u32, make: impl FnOnce() -> T) -> T {
    // The umask is that of all threads.
    static ASIDE: Mutex<()> = Mutex::new(());
    if mode & callers() & 0o700 == 0 {
        return make();
    }
    let _alone = ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = rustix::process::umask(Mode::from_raw_mode(callers() & 0o077));
    let made = make();
    rustix::process::umask(before);
    made
}
