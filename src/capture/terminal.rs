//! The terminal of the caller's process group, taken back from what the command leaves.

use std::fs::File;

use rustix::process::Pid;
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use super::sys::{self, Signals};

/// A terminal that had this process's group in the foreground when the command began.
///
/// A shell with jobs makes a group of its own and gives the terminal back as it ends, to the number that getpgrp(2) returned: 0 in a PID
/// namespace that the group is not in. The terminal then stays with a group that is gone: Ctrl-C reaches nobody, and the next reader gets
/// an I/O error.
pub(super) struct Terminal {
    held: File,
    group: Pid,
}

impl Terminal {
    /// The controlling terminal; `None` if there is none, or another group has it.
    pub fn ours() -> Option<Self> {
        let held = File::open("/dev/tty").ok()?;
        let group = sys::own_group()?;
        (tcgetpgrp(&held).ok()? == group).then_some(Self { held, group })
    }

    /// Makes the group the terminal's foreground again.
    pub fn take_back(&self) {
        // In the background the call would stop this process, unless SIGTTOU is blocked: tcsetpgrp(3).
        let mask = Signals::of(&[libc::SIGTTOU]).block();
        // A terminal that hung up has nothing to take back.
        let _gone = tcsetpgrp(&self.held, self.group);
        mask.set();
    }
}
