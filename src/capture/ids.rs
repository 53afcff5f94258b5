//! The users and groups that a user namespace maps.

use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{At, IoError};

/// Maps one user and one group in this process's own user namespace: (inside, outside). user_namespaces(7).
pub(super) fn map_own(uid: (u32, u32), gid: (u32, u32)) -> Result<(), IoError> {
    tell("/proc/self/setgroups", "deny").at("deny setgroups for the map", "/proc/self/setgroups")?;
    tell("/proc/self/uid_map", &format!("{} {} 1", uid.0, uid.1)).at("map the user", "/proc/self/uid_map")?;
    tell("/proc/self/gid_map", &format!("{} {} 1", gid.0, gid.1)).at("map the group", "/proc/self/gid_map")
}

/// Writes to a file of /proc: a word to the kernel, in one call.
fn tell(path: &str, text: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    match rustix::io::write(&file, text.as_bytes())? {
        n if n == text.len() => Ok(()),
        _ => Err(Errno::IO.into()),
    }
}
