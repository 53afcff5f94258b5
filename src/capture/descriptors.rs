//! Inherited descriptors through which a command could write past its capture.

use super::error::Error;
use super::sys;
use crate::error::At;
use crate::fs::dir::Sort;

/// The descriptors above 2 that a command must not have: folders (a name can be made below one), O_PATH ones, block
/// devices and files open for writing. Pipes, sockets, terminals and what is open for reading stay: make's jobserver needs
/// its pipe. Refused where 0, 1 or 2 is a folder; a file there is the caller's own redirection.
pub(super) fn to_close() -> Result<Vec<i32>, Error> {
    let mut close = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").at("list", "/proc/self/fd")? {
        let entry = entry.at("list", "/proc/self/fd")?;
        let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let (Some((flags, own)), Some(Ok(stat))) = (sys::descriptor_flags(fd), sys::inherited(fd)) else { continue };
        if own {
            continue;
        }
        let by_path = flags & libc::O_PATH != 0;
        let writable = flags & libc::O_ACCMODE != libc::O_RDONLY;
        let leads_out = match stat.sort {
            Sort::Folder => true,
            Sort::File | Sort::Block => by_path || writable,
            Sort::Symlink | Sort::Fifo | Sort::Socket | Sort::Char => by_path,
        };
        match fd {
            0..=2 if stat.sort == Sort::Folder => return Err(Error::FolderAsDescriptor { fd }),
            0..=2 => {}
            fd if leads_out => close.push(fd),
            _ => {}
        }
    }
    Ok(close)
}
