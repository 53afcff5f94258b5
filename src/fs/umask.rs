//! The caller's umask, which stays: a command that is run gets it, and objects made for the user obey it. It never takes the owner's bits
//! from what recant makes, so recant's own files and directories are private and usable under any umask.

use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::Mode;

/// The umask that recant was started with. First called while there is one thread: umask(2) reads by setting.
pub fn callers() -> u32 {
    static CALLERS: OnceLock<u32> = OnceLock::new();
    *CALLERS.get_or_init(|| {
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        umask.bits()
    })
}

/// Sets a umask of 022, for directories and mount points of a run's own namespace: the command has to get through them.
pub fn set_aside() {
    callers();
    rustix::process::umask(Mode::from_raw_mode(0o022));
}

/// Restores the caller's umask, before the command of a run.
pub fn put_back() {
    rustix::process::umask(Mode::from_raw_mode(callers()));
}

/// Makes something of mode `mode` with its owner's bits from the first moment on: if they were set later, a kill in between would leave it
/// without them.
pub(super) fn with_owners<T>(mode: u32, make: impl FnOnce() -> T) -> T {
    // All threads share the umask.
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
