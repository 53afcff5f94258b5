//! The terminal of the caller's process group: given to a shell that cannot do without a group, taken back from what the command leaves.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, getpid, setpgid};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

use super::raw_calls;
use super::raw_calls::Signals;

/// A terminal that had this process's group in the foreground when the command began.
///
/// A shell with jobs makes a group of its own and gives the terminal back as it ends, to the number that getpgrp(2) returned: 0 in a PID
/// namespace that the group is not in. The terminal then stays with a group that is gone: Ctrl-C reaches nobody, and the next reader gets
/// an I/O error.
pub struct Terminal {
    held: File,
    group: Pid,
}

impl Terminal {
    /// The controlling terminal; `None` if there is none, or another group has it.
    pub fn ours() -> Option<Self> {
        let held = File::open("/dev/tty").ok()?;
        let group = raw_calls::own_group()?;
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

/// True for a shell with jobs that fails without the number of its group, if it reads the terminal: no operand, and the standard streams
/// are terminals (sh(1)). As it ends, dash gives the terminal back to group 0, says that it cannot, and exits with 2; yash reads an I/O
/// error after a job. bash, zsh, mksh and ksh93 go on.
pub fn needs_a_group(argv: &[CString]) -> bool {
    let Some((program, options)) = argv.split_first() else { return false };
    let name = Path::new(OsStr::from_bytes(program.to_bytes())).file_name();
    let is_option = |word: &CString| matches!(word.to_bytes(), [b'-', letters @ ..] if !letters.contains(&b'c'));
    ["sh", "ash", "dash", "yash"].iter().any(|shell| name == Some(OsStr::new(shell)))
        && options.iter().all(is_option)
        && isatty(stdin())
        && isatty(stdout())
        && isatty(stderr())
}

/// Makes this process the leader of a group of its own that has the terminal, as the shell would do itself. The caller has blocked
/// SIGTTOU. If standard input is another terminal than the session's, nothing is done.
pub fn lead_a_group() {
    // rustix's word for a group without a number here.
    if tcgetpgrp(stdin()) == Err(Errno::OPNOTSUPP) {
        let group = getpid();
        // On an error the shell finds out itself.
        let _led = setpgid(Some(group), Some(group)).and_then(|()| tcsetpgrp(stdin(), group));
    }
}
