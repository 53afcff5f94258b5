//! Reads a call that renames.

use super::call_listener::WaitingCall;
use super::call_path::{CallPath, Place};
use super::seccomp_filter::AskedCall;

/// A call of rename(2), renameat(2) or renameat2(2).
#[derive(Debug)]
pub struct Rename {
    old: CallPath,
    new: CallPath,
    flags: u32,
}

impl Rename {
    /// Reads the arguments of a call. `None` if they cannot be read.
    pub fn of(asked: AskedCall, call: &WaitingCall) -> Option<Self> {
        let [a, b, c, d, e, _] = call.arguments;
        let named = |directory: i32, address| CallPath::read(call.thread, directory, address);
        #[expect(clippy::cast_possible_truncation, reason = "the kernel reads these arguments as int and unsigned int")]
        let (first, third, flags) = (a as i32, c as i32, e as u32);
        Some(match asked {
            AskedCall::Rename => Self { old: named(libc::AT_FDCWD, a)?, new: named(libc::AT_FDCWD, b)?, flags: 0 },
            AskedCall::Renameat => Self { old: named(first, b)?, new: named(third, d)?, flags: 0 },
            AskedCall::Renameat2 => Self { old: named(first, b)?, new: named(third, d)?, flags },
            _ => return None,
        })
    }

    /// A quick look: true if a directory is renamed.
    pub fn may_need_help(&self) -> bool {
        self.old.is_directory() || self.exchanges() && self.new.is_directory()
    }

    /// True if the two swap their names.
    pub fn exchanges(&self) -> bool {
        self.flags & libc::RENAME_EXCHANGE != 0
    }

    /// True if nothing may be there already.
    pub fn keeps_what_is_there(&self) -> bool {
        self.flags & libc::RENAME_NOREPLACE != 0
    }

    /// The old and the new path.
    pub fn paths(&self) -> (&CallPath, &CallPath) {
        (&self.old, &self.new)
    }

    /// The old and the new place. `None` if a path leads nowhere, or where this process cannot follow.
    pub fn places(&self) -> Option<(Place, Place)> {
        Some((self.old.place()?, self.new.place()?))
    }
}
