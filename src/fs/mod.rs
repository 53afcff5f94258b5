//! The one place of system calls that change a file; paths, mounts, locks, leases and signals. Uses no room; nearly all rooms use it.
//!
//! Everything goes by (held directory, last name), so that a parent swapped for a link leads nowhere. Every change passes one hook first
//! ([`watch`]), so that a test can stop before any of them. Reading is in [`dir`]; each function here does one step and decides nothing.

mod beneath;
mod clock;
mod copy;
mod device_number;
pub mod dir;
mod door;
pub mod interrupt;
pub mod lease;
mod lock;
pub mod mounts;
mod open_files;
mod out_of_memory;
pub mod path;
mod presence;
pub mod program;
mod project;
mod regain_access;
mod remove;
pub mod resolve;
mod roots;
pub mod signal_pipe;
pub mod socket;
mod two_threads;
mod umask;
pub mod watch;
mod write_out;
mod xattr;

pub use clock::{Moment, Sign, Span, exact_now, now, since_boot, stamps_are_past};
pub use copy::next_extent;
pub use device_number::Dev;
pub use dir::{Dir, Entry, Inode, Reach, Sort, Stat, Time, is_overlay, leads_nowhere, stat_of, xattrs_but, xattrs_of};
pub use door::Fs;
pub use interrupt::{Input, Noting, OnSignal, end_by, give_back, status};
pub use lease::{Writers, ignore_what_would_end_it, writers};
pub use lock::Lock;
pub use mounts::{Mount, has};
pub use open_files::{command, open_as_called, open_many};
pub use out_of_memory::tell_when_short;
pub use path::{AbsPath, LENGTH_MAX, PathError, Shown, is_unfit};
pub use presence::{Presence, Seen, is_present};
pub use program::{in_path, is_program, searched};
pub use resolve::{absolute, bad, home};
pub use roots::{Roots, deep};
pub use two_threads::both;
pub use umask::{callers, put_back, set_aside};
pub use write_out::write_all_out;
pub use xattr::TooLarge;
