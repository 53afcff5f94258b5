//! The one place of system calls that change a file.
//!
//! Everything goes by (held directory, last name), so that a parent swapped for a link leads nowhere. Every change passes one hook first
//! ([`watch`]), so that a test can stop before any of them. Reading is in [`dir`]; each function here does one step and decides nothing.

mod beneath;
mod clock;
pub mod copy;
pub mod device_number;
pub mod dir;
mod door;
pub mod halves;
pub mod interrupt;
pub mod lease;
pub mod lock;
pub mod mounts;
pub mod out_of_memory;
pub mod path;
pub mod program;
mod regain_access;
mod remove;
pub mod resolve;
pub mod roots;
pub mod signal_pipe;
pub mod socket;
pub mod umask;
pub mod watch;
mod write_out;
mod xattr;

pub use clock::{Moment, Sign, Span, exact_now, now, since_boot};
pub use door::Fs;
pub use write_out::write_all_out;
pub use xattr::TooLarge;
