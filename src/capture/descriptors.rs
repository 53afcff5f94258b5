//! Descriptors through which a command could write past its capture.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};

use super::error::Error;
use super::sys;
use crate::error::At;
use crate::fs::dir::{Sort, Stat, stat_of};

/// What is to be done about the inherited descriptors above 2.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    /// Folders (a name can be made below one), O_PATH ones, block devices, and files open for writing: closed.
    pub close: Vec<i32>,
    /// Files open for reading: /proc/self/fd/N opens the real one again, for writing, through the mount that it was opened
    /// by. They are opened anew inside, so that such a write is held.
    pub again: Vec<Again>,
}

/// A file that is open for reading.
#[derive(Debug)]
pub(super) struct Again {
    fd: i32,
    path: PathBuf,
    offset: u64,
    ino: u64,
}

/// Looks at the inherited descriptors. Pipes, sockets and terminals stay: make's jobserver needs its pipe. Refused where 0, 1
/// or 2 is a folder; a file there is the caller's own redirection.
pub(super) fn inherited() -> Result<Inherited, Error> {
    let mut found = Inherited::default();
    each(|fd, flags, own, stat| {
        let leads_out = leads_out(flags, stat);
        match fd {
            _ if own => {}
            0..=2 if stat.sort == Sort::Folder => return Err(Error::FolderAsDescriptor { fd }),
            0..=2 => {}
            fd if leads_out => found.close.push(fd),
            // No name leads to it: nothing that is written to it is on the tree.
            fd if stat.sort == Sort::File && stat.nlink > 0 => {
                let link = format!("/proc/self/fd/{fd}");
                let path = std::fs::read_link(&link).at("read the link", &link)?;
                found.again.push(Again { fd, path, offset: sys::offset(fd), ino: stat.ino });
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// Closes the folders that this process has open: the init holds recant's, on the real mounts.
pub(super) fn close_folders() -> Result<(), Error> {
    let mut folders = Vec::new();
    each(|fd, flags, _, stat| {
        if fd > 2 && (stat.sort == Sort::Folder || flags & libc::O_PATH != 0) {
            folders.push(fd);
        }
        Ok(())
    })?;
    folders.into_iter().for_each(sys::close);
    Ok(())
}

impl Inherited {
    /// In the command's process: closes what leads out, opens anew what can be.
    pub fn settle(&self) {
        self.close.iter().for_each(|fd| sys::close(*fd));
        for again in &self.again {
            match again.open() {
                Ok(file) => sys::replace(file.as_fd(), again.fd, again.offset),
                // Another file is there in the run, or none.
                Err(_) => sys::close(again.fd),
            }
        }
    }

    /// How many the command does not get.
    pub fn closed(&self) -> usize {
        self.close.len()
    }
}

impl Again {
    fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(&self.path, flags, Mode::empty())?;
        // An overlay shows the inode number of its lower where both lie on one file system; elsewhere it can't be told apart.
        if stat_of(&file)?.ino == self.ino { Ok(file.into()) } else { Err(rustix::io::Errno::STALE.into()) }
    }
}

fn leads_out(flags: i32, stat: &Stat) -> bool {
    let by_path = flags & libc::O_PATH != 0;
    let writable = flags & libc::O_ACCMODE != libc::O_RDONLY;
    match stat.sort {
        Sort::Folder => true,
        Sort::File => by_path || writable,
        Sort::Block => true,
        Sort::Symlink | Sort::Fifo | Sort::Socket | Sort::Char => by_path,
    }
}

/// Calls `look` with each open descriptor: its number, its flags, whether it is close-on-exec, what it is.
fn each(mut look: impl FnMut(i32, i32, bool, &Stat) -> Result<(), Error>) -> Result<(), Error> {
    let folder = "/proc/self/fd";
    let numbers = std::fs::read_dir(folder).at("list", folder)?;
    let numbers =
        numbers.map(|entry| Ok(entry.at("list", folder)?.file_name().to_str().and_then(|name| name.parse::<i32>().ok())));
    let numbers: Vec<Option<i32>> = numbers.collect::<Result<_, Error>>()?;
    for fd in numbers.into_iter().flatten() {
        if let (Some((flags, own)), Some(Ok(stat))) = (sys::descriptor_flags(fd), sys::inherited(fd)) {
            look(fd, flags, own, &stat)?;
        }
    }
    Ok(())
}
