//! Descriptors through which a command could write past its capture.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::{IFlags, Mode, OFlags};

use super::raw_calls;
use crate::capture::error::directory_as_descriptor;
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Sort, Stat, Time, stat_of, xattrs_of};

#[derive(Debug, Default)]
pub struct Inherited {
    /// The files that a caller's redirection has opened for reading on 0, 1 or 2.
    pub streams: Vec<Stream>,
    /// The real objects that it has opened there: files for writing, FIFOs, devices. The descriptor also allows changes of their metadata.
    pub outputs: Vec<Output>,
    /// Directories (a name can be made below one), O_PATH ones, block devices, and files open for writing: closed.
    pub close: Vec<i32>,
    /// Files open for reading: /proc/self/fd/N would open the real one again, for writing, through the mount that it was opened by. They
    /// are opened anew inside, so that such a write is held. So are devices other than terminals: inside, they take writes, and all else
    /// about them is read-only.
    pub again: Vec<Reopening>,
}

/// A descriptor 0, 1 or 2 that reads a file or a block device.
#[derive(Debug)]
pub struct Stream {
    pub fd: i32,
    /// `None` for a device: its content is not held.
    again: Option<Reopening>,
}

/// A descriptor 0, 1 or 2 that leads to the real object, and the object's metadata at the start.
#[derive(Debug)]
pub struct Output {
    fd: i32,
    is_file: bool,
    before: Meta,
}

/// The metadata of a file that can be set through a descriptor.
#[derive(Debug)]
struct Meta {
    mode: u32,
    owner: (u32, u32),
    mtime: Time,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The flags of chattr(1); empty on a file system without them.
    flags: IFlags,
}

/// A file that is open for reading, or a device.
#[derive(Debug)]
pub struct Reopening {
    fd: i32,
    access: OFlags,
    path: PathBuf,
    offset: u64,
    ino: u64,
}

/// Looks at the inherited descriptors. Pipes, sockets and terminals stay: make's jobserver needs its pipe. An error if 0, 1 or 2 is a
/// directory; a file that is open for writing there is the caller's own redirection.
pub fn inherited() -> Result<Inherited, Error> {
    let mut found = Inherited::default();
    each(|fd| {
        let Some((flags, stat)) = not_own(fd).and_then(flags_and_stat) else { return Ok(()) };
        let stat = &stat;
        let leads_out = leads_out(flags, stat);
        // Without a name, nothing written to it is on the tree.
        let is_named = stat.sort == Sort::File && stat.nlink > 0;
        let access = OFlags::from_bits_retain(flags.cast_unsigned()) & OFlags::ACCMODE;
        // Input, also where the caller's `0<>FILE` would let the command write to it.
        let reads = access == OFlags::RDONLY || fd == 0 && access == OFlags::RDWR;
        match fd {
            0..=2 if stat.sort == Sort::Directory => return Err(directory_as_descriptor(fd)),
            0..=2 if flags & libc::O_PATH != 0 => found.close.push(fd),
            0..=2 if is_named && reads => found.streams.push(Stream { fd, again: Some(Reopening::with(fd, stat, access)?) }),
            0..=2 if stat.sort == Sort::Block && reads => found.streams.push(Stream { fd, again: None }),
            0..=2 if is_named => found.outputs.push(Output { fd, is_file: true, before: meta(fd)? }),
            0..=2 if matches!(stat.sort, Sort::Char | Sort::Fifo) && !is_terminal(fd)? => {
                let again = Reopening::with(fd, stat, access)?;
                // A pipe has no name.
                if again.path.is_absolute() {
                    found.outputs.push(Output { fd, is_file: false, before: meta(fd)? });
                    found.again.extend((stat.sort == Sort::Char).then_some(again));
                }
            }
            0..=2 => {}
            fd if leads_out => found.close.push(fd),
            fd if is_named => found.again.push(Reopening::with(fd, stat, access)?),
            fd if stat.sort == Sort::Char && !is_terminal(fd)? => found.again.push(Reopening::with(fd, stat, access)?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// Closes the directories that this process has open: the init holds recant's, on the real mounts.
pub fn close_directories() -> Result<(), IoError> {
    let is_directory = |fd| raw_calls::inherited(fd).is_some_and(|stat| stat.is_ok_and(|stat| stat.sort == Sort::Directory));
    let is_path = |fd| raw_calls::status_flags(fd).is_some_and(|flags| flags & libc::O_PATH != 0);
    close_each(|fd| is_directory(fd) || is_path(fd))
}

/// Closes what this process has inherited beside its standard streams.
pub fn close_inherited() -> Result<(), IoError> {
    close_each(|fd| not_own(fd).is_some())
}

/// Closes each descriptor above 2 that is `meant`.
fn close_each(meant: impl Fn(i32) -> bool) -> Result<(), IoError> {
    let mut found = Vec::new();
    each(|fd| {
        found.extend((fd > 2 && meant(fd)).then_some(fd));
        Ok::<_, IoError>(())
    })?;
    found.into_iter().for_each(raw_calls::close);
    Ok(())
}

/// The descriptor, if it is inherited: recant's own are close-on-exec. There may be dozens of those, so they are not looked at.
fn not_own(fd: i32) -> Option<i32> {
    raw_calls::is_close_on_exec(fd).filter(|own| !own).map(|_| fd)
}

fn flags_and_stat(fd: i32) -> Option<(i32, Stat)> {
    raw_calls::status_flags(fd).zip(raw_calls::inherited(fd)?.ok())
}

impl Inherited {
    /// Closes descriptors that lead out, and opens files anew where possible; to be called in the command's process.
    pub fn settle(&self) {
        self.close.iter().for_each(|fd| raw_calls::close(*fd));
        for again in &self.again {
            match again.open() {
                Ok(file) => raw_calls::replace(file.as_fd(), again.fd, again.offset),
                // Another file is there in the run, or none. Changes of a device's metadata are reported later.
                Err(_) if again.fd <= 2 => {}
                Err(_) => raw_calls::close(again.fd),
            }
        }
    }
}

impl Output {
    /// The number of the descriptor and the path, of a file that the command writes to.
    pub fn file(&self) -> Option<(i32, AbsPath)> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", self.fd)).ok().filter(|_| self.is_file && self.fd > 0)?;
        AbsPath::parse(path.into_os_string().into_encoded_bytes()).ok().map(|path| (self.fd, path))
    }

    /// Reports, for a person, the metadata that the command really set on it.
    pub fn what_was_set(&self) -> Result<Option<String>, Error> {
        let link = format!("/proc/self/fd/{}", self.fd);
        let path = std::fs::read_link(&link).at("read the link", &link)?;
        let (before, now) = (&self.before, meta(self.fd)?);
        let mut what = Vec::new();
        if before.mode != now.mode {
            what.push(format!("its mode {:04o}, before {:04o}", now.mode & 0o7777, before.mode & 0o7777));
        }
        if before.owner != now.owner {
            let ((uid, gid), (uid_before, gid_before)) = (now.owner, before.owner);
            what.push(format!("its owner {uid}:{gid}, before {uid_before}:{gid_before}"));
        }
        // A write sets a new time, so only other times count.
        if now.mtime < before.mtime || now.mtime.s > crate::fs::now().s + 60 {
            what.push("its time".into());
        }
        if before.xattrs != now.xattrs {
            what.push("its extended attributes".into());
        }
        if before.flags != now.flags {
            what.push("its flags (chattr)".into());
        }
        let how = if self.fd == 0 { "input" } else { "output" };
        let said =
            || format!("{}: it is the command's {how}, so it is real: the command set {}", path.display(), what.join(", "));
        Ok((!what.is_empty()).then(said))
    }
}

fn is_terminal(fd: i32) -> Result<bool, Error> {
    Ok(raw_calls::duplicate(fd).at("look at", format!("/proc/self/fd/{fd}"))?.is_terminal())
}

fn meta(fd: i32) -> Result<Meta, Error> {
    let link = format!("/proc/self/fd/{fd}");
    let file = raw_calls::duplicate(fd).at("look at", &link)?;
    let stat = stat_of(&file).at("look at", &link)?;
    let xattrs = xattrs_of(&file).at("read the extended attributes of", &link)?;
    // Only flags that have a name: others are set by the file system itself. A device may take the call for another one.
    let flags = match stat.sort {
        Sort::File => rustix::fs::ioctl_getflags(&file).unwrap_or_else(|_| IFlags::empty()) & IFlags::all(),
        _ => IFlags::empty(),
    };
    Ok(Meta { mode: stat.mode, owner: (stat.uid, stat.gid), mtime: stat.mtime, xattrs, flags })
}

impl Stream {
    /// Opens the file anew, in the init. False if that failed: in the run there is another file, or none, or a device.
    pub fn reopen(&self) -> bool {
        let Some(file) = self.again.as_ref().and_then(|again| again.open().ok().map(|file| (file, again.offset))) else {
            return false;
        };
        raw_calls::replace(file.0.as_fd(), self.fd, file.1);
        true
    }
}

impl Reopening {
    fn with(fd: i32, stat: &Stat, access: OFlags) -> Result<Self, Error> {
        let link = format!("/proc/self/fd/{fd}");
        let path = std::fs::read_link(&link).at("read the link", &link)?;
        Ok(Self { fd, access, path, offset: raw_calls::offset(fd), ino: stat.ino })
    }

    fn open(&self) -> io::Result<File> {
        let flags = self.access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(&self.path, flags, Mode::empty())?;
        // An overlay shows the inode number of its lower if both lie on one file system; elsewhere the file counts as another one.
        if stat_of(&file)?.ino == self.ino { Ok(file.into()) } else { Err(rustix::io::Errno::STALE.into()) }
    }
}

fn leads_out(flags: i32, stat: &Stat) -> bool {
    let by_path = flags & libc::O_PATH != 0;
    let writable = flags & libc::O_ACCMODE != libc::O_RDONLY;
    match stat.sort {
        Sort::Directory => true,
        Sort::File => by_path || writable,
        Sort::Block => true,
        Sort::Symlink | Sort::Fifo | Sort::Socket | Sort::Char => by_path,
    }
}

/// Calls `look` with the number of each open descriptor.
fn each<E: From<IoError>>(mut look: impl FnMut(i32) -> Result<(), E>) -> Result<(), E> {
    let directory = "/proc/self/fd";
    let numbers = std::fs::read_dir(directory).at("list", directory)?;
    let numbers =
        numbers.map(|entry| Ok(entry.at("list", directory)?.file_name().to_str().and_then(|name| name.parse::<i32>().ok())));
    let numbers: Vec<Option<i32>> = numbers.collect::<Result<_, IoError>>()?;
    numbers.into_iter().flatten().try_for_each(&mut look)
}
