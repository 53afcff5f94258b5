//! A process that forks has one thread: nobody else can hold a lock in the copy.

use crate::capture::error::not_alone;
use crate::error::{At, Error};

/// Refuses to fork beside other threads.
///
/// # Errors
/// There are some; or they cannot be counted.
pub fn refuse_others() -> Result<(), Error> {
    let threads = std::fs::read_dir("/proc/self/task").at("count the threads", "/proc/self/task")?.count();
    if threads == 1 { Ok(()) } else { Err(not_alone()) }
}
