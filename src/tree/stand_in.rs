//! The link that stands for a file that is closed to a run, or hidden from it.

use super::state::{Object, What};

/// Its target: the descriptors of the run's init, which a user may not enter (proc_pid_fd(5)), and in which nobody can make a name.
pub const STAND_IN: &str = "/proc/1/fd/closed";

/// True for such a link. A command makes one by copying or moving what it cannot read.
pub fn is_stand_in(object: &Object) -> bool {
    matches!(object.as_ref().map(|state| &state.what), Some(What::Symlink { target }) if **target == *STAND_IN.as_bytes())
}
