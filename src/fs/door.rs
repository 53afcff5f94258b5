//! The door: each call that changes a file. A step each, which decides nothing.

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, StatxFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::device_number::Dev;
use super::dir::{self, Dir, Entry, Sort, Time};
use super::watch::On;
#[cfg(feature = "crash-points")]
use super::watch::{Step, Watch};
use super::{socket, umask, write_out, xattr};
use crate::error::{At, IoError};

/// The calls that change files. One value for each call of the program, or for each store of the library, passed down.
#[derive(Default)]
pub struct Fs {
    #[cfg(feature = "crash-points")]
    watch: Option<Box<dyn Watch>>,
}

impl Fs {
    /// The real file system; in a build with `crash-points`, watched as `RECANT_STEPS` asks.
    pub fn new() -> Self {
        let _known = umask::callers();
        Self {
            #[cfg(feature = "crash-points")]
            watch: super::watch::Scripted::from_env().map(|scripted| Box::new(scripted) as Box<dyn Watch>),
        }
    }

    /// A file system that a test within the library watches.
    #[cfg(all(test, feature = "crash-points"))]
    pub fn watched(watch: Box<dyn Watch>) -> Self {
        Self { watch: Some(watch) }
    }

    #[cfg(feature = "crash-points")]
    #[track_caller]
    pub(super) fn before(&self, call: &'static str, on: On<'_>) -> io::Result<()> {
        let site = std::panic::Location::caller();
        self.watch.as_ref().map_or(Ok(()), |watch| watch.before(&Step { call, on, site }))
    }

    #[cfg(not(feature = "crash-points"))]
    #[inline(always)]
    pub(super) fn before(&self, _call: &'static str, _on: On<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Changes nothing: a point between two readings, at which a test lets somebody else act.
    #[track_caller]
    pub fn between_readings(&self, at: Entry<'_>) -> Result<(), IoError> {
        self.before("between", On::One(at)).at("look at", at)
    }

    /// Makes a directory; `mode` less what the umask takes from group and others.
    pub fn mkdir(&self, at: Entry<'_>, mode: u32) -> Result<(), IoError> {
        tried("make the directory", at, || {
            self.before("mkdirat", On::One(at))?;
            Ok(umask::with_owners(mode, || rustix::fs::mkdirat(at.dir, at.name, Mode::from_raw_mode(mode)))?)
        })
    }

    /// Makes a FIFO, socket or device node of mode `mode` less the umask; the caller sets its mode later. Devices need CAP_MKNOD.
    pub fn mknod(&self, at: Entry<'_>, sort: Sort, mode: u32, rdev: Dev) -> Result<(), IoError> {
        tried("make", at, || {
            use rustix::fs::FileType;
            self.before("mknodat", On::One(at))?;
            let kind = match sort {
                Sort::Fifo => FileType::Fifo,
                Sort::Socket => FileType::Socket,
                Sort::Char => FileType::CharacterDevice,
                Sort::Block => FileType::BlockDevice,
                Sort::File | Sort::Directory | Sort::Symlink => return Err(Errno::INVAL.into()),
            };
            let device = rustix::fs::makedev(rdev.0, rdev.1);
            Ok(rustix::fs::mknodat(at.dir, at.name, kind, Mode::from_raw_mode(mode), device)?)
        })
    }

    /// Makes a symlink.
    pub fn symlink(&self, target: &[u8], at: Entry<'_>) -> Result<(), IoError> {
        tried("make", at, || {
            self.before("symlinkat", On::One(at))?;
            Ok(rustix::fs::symlinkat(target, at.dir, at.name)?)
        })
    }

    /// Gives the object at `from` a second name. Links are not followed; an object at `to` is never replaced.
    pub fn link(&self, from: Entry<'_>, to: Entry<'_>) -> Result<(), IoError> {
        tried("link", to, || {
            self.before("linkat", On::Two(from, to))?;
            Ok(rustix::fs::linkat(from.dir, from.name, to.dir, to.name, AtFlags::empty())?)
        })
    }

    /// Renames a name of recant's own onto one that must be free: RENAME_NOREPLACE. If the file system lacks that (NFS, many of FUSE), it
    /// makes a second name and removes the first. A directory, which can have no second name, is renamed if nothing is there: what comes in
    /// between is replaced only if it is an empty directory.
    pub fn place(&self, from: Entry<'_>, to: Entry<'_>) -> Result<(), IoError> {
        match self.rename_free(from, to) {
            Err(error) if is_no_flag(&error) => {}
            other => return other,
        }
        if from.stat()?.is_some_and(|stat| stat.sort == Sort::Directory) {
            return self.rename_if_free(from, to);
        }
        let linked = self.link(from, to).map_err(|error| match error.errno() {
            Some(libc::EPERM | libc::EOPNOTSUPP | libc::ENOSYS | libc::EMLINK) => {
                io::Error::other("its file system supports neither rename without replacement nor hard links")
            }
            _ => error.source,
        });
        linked.at(RENAME, from)?;
        self.unlink(from)
    }

    /// Renames the present object to a free name of recant's own: whatever it is comes out whole.
    pub fn take(&self, from: Entry<'_>, to: Entry<'_>) -> Result<(), IoError> {
        match self.rename_free(from, to) {
            Err(error) if is_no_flag(&error) => self.rename_if_free(from, to),
            other => other,
        }
    }

    fn rename_free(&self, from: Entry<'_>, to: Entry<'_>) -> Result<(), IoError> {
        tried(RENAME, from, || {
            self.before("renameat2 NOREPLACE", On::Two(from, to))?;
            Ok(rustix::fs::renameat_with(from.dir, from.name, to.dir, to.name, RenameFlags::NOREPLACE)?)
        })
    }

    fn rename_if_free(&self, from: Entry<'_>, to: Entry<'_>) -> Result<(), IoError> {
        match to.stat()? {
            None => self.rename_over(from, to),
            Some(_) => Err(Errno::EXIST).at(RENAME, from),
        }
    }

    /// Swaps two names atomically, also of different kinds: RENAME_EXCHANGE.
    pub fn exchange(&self, a: Entry<'_>, b: Entry<'_>) -> Result<(), IoError> {
        tried("exchange", a, || {
            self.before("renameat2 EXCHANGE", On::Two(a, b))?;
            Ok(rustix::fs::renameat_with(a.dir, a.name, b.dir, b.name, RenameFlags::EXCHANGE)?)
        })
    }

    /// Renames over any object: for recant's own files alone.
    pub fn rename_over(&self, from: Entry<'_>, to: Entry<'_>) -> Result<(), IoError> {
        tried(RENAME, from, || {
            self.before("renameat", On::Two(from, to))?;
            Ok(rustix::fs::renameat(from.dir, from.name, to.dir, to.name)?)
        })
    }

    /// Removes a name, but not a directory's.
    pub fn unlink(&self, at: Entry<'_>) -> Result<(), IoError> {
        tried("remove", at, || {
            self.before("unlinkat", On::One(at))?;
            Ok(rustix::fs::unlinkat(at.dir, at.name, AtFlags::empty())?)
        })
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, at: Entry<'_>) -> Result<(), IoError> {
        tried("remove", at, || {
            self.before("unlinkat REMOVEDIR", On::One(at))?;
            Ok(rustix::fs::unlinkat(at.dir, at.name, AtFlags::REMOVEDIR)?)
        })
    }

    /// Makes a file that must not be there yet, open for reading and writing; `mode` less what the umask takes from group and others.
    pub fn create(&self, at: Entry<'_>, mode: u32) -> Result<File, IoError> {
        tried("make", at, || {
            self.before("openat CREAT", On::One(at))?;
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(umask::with_owners(mode, || rustix::fs::openat(at.dir, at.name, flags, Mode::from_raw_mode(mode)))?.into())
        })
    }

    /// Makes a file without a name in the directory `at`, open for reading and writing, which lasts until its last descriptor is closed:
    /// O_TMPFILE. Errors: EOPNOTSUPP, EISDIR or ENOENT if the file system or the kernel lacks it (open(2)).
    pub fn create_unnamed(&self, at: Entry<'_>, mode: u32) -> Result<File, IoError> {
        tried("make a file in", at, || {
            self.before("openat TMPFILE", On::One(at))?;
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            Ok(umask::with_owners(mode, || rustix::fs::openat(at.dir, at.name, flags, Mode::from_raw_mode(mode)))?.into())
        })
    }

    /// Makes a socket that processes connect to, in place of one of that name. By the directory's descriptor: a path of a socket has at
    /// most 107 bytes (unix(7)).
    pub fn listen(&self, at: Entry<'_>) -> Result<UnixListener, IoError> {
        self.unlink_if_there(at)?;
        let listener = tried("make the socket", at, || {
            self.before("bind", On::One(at))?;
            umask::with_owners(0o600, || UnixListener::bind(socket::by_descriptor(at)))
        })?;
        self.set_mode(at, 0o600)?;
        Ok(listener)
    }

    /// Opens one of recant's own files to append to it; makes it with mode 0600 if it is missing.
    pub fn append(&self, at: Entry<'_>) -> Result<File, IoError> {
        tried("open", at, || {
            self.before("openat APPEND", On::One(at))?;
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            Ok(umask::with_owners(0o600, || rustix::fs::openat(at.dir, at.name, flags, Mode::from_raw_mode(0o600)))?.into())
        })
    }

    /// Writes all of `bytes`. The file lies at `at`, which is for messages and the log of steps, here and below.
    pub fn write(&self, mut file: &File, bytes: &[u8], at: Entry<'_>) -> Result<(), IoError> {
        tried(WRITE, at, || {
            self.before("write", On::Open(file.as_fd(), at.dir.path()))?;
            io::Write::write_all(&mut file, bytes)
        })
    }

    /// Writes all of `bytes` from the byte `from` on, over the present content.
    pub fn write_at(&self, file: &File, bytes: &[u8], from: u64, at: Entry<'_>) -> Result<(), IoError> {
        tried(WRITE, at, || {
            self.before("pwrite", On::Open(file.as_fd(), at.dir.path()))?;
            std::os::unix::fs::FileExt::write_all_at(file, bytes, from)
        })
    }

    /// Cuts or extends a file to `size` bytes.
    pub fn set_size(&self, file: &File, size: u64, at: Entry<'_>) -> Result<(), IoError> {
        tried(WRITE, at, || {
            self.before("ftruncate", On::Open(file.as_fd(), at.dir.path()))?;
            Ok(rustix::fs::ftruncate(file, size)?)
        })
    }

    /// Allocates blocks for `size` bytes of a file, and sets its size.
    pub fn allocate(&self, file: &File, size: u64, at: Entry<'_>) -> Result<(), IoError> {
        tried("keep room in", at, || {
            self.before("fallocate", On::Open(file.as_fd(), at.dir.path()))?;
            Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size)?)
        })
    }

    /// Frees the blocks of `length` bytes from `from` on; the size stays, and they read as zeros. False if the file system cannot:
    /// fallocate(2), FALLOC_FL_PUNCH_HOLE.
    pub fn punch(&self, file: &File, from: u64, length: u64, at: Entry<'_>) -> Result<bool, IoError> {
        tried("free blocks of", at, || {
            use rustix::fs::FallocateFlags;
            self.before("fallocate PUNCH_HOLE", On::Open(file.as_fd(), at.dir.path()))?;
            match rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE), from, length) {
                Ok(()) => Ok(true),
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Sets the permission bits of anything but a symlink. A link that came in between is not followed.
    pub fn set_mode(&self, at: Entry<'_>, mode: u32) -> Result<(), IoError> {
        tried("set the mode of", at, || {
            self.before("fchmodat", On::One(at))?;
            let mode = Mode::from_raw_mode(mode);
            // fchmodat2(2) with AT_SYMLINK_NOFOLLOW is of Linux 6.6; before that a path descriptor through /proc does the same.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let held = rustix::fs::openat(at.dir, at.name, flags, Mode::empty())?;
            if dir::stat_of(held.as_fd())?.sort == Sort::Symlink {
                return Err(Errno::OPNOTSUPP.into());
            }
            Ok(rustix::fs::chmod(dir::of_fd(held.as_fd()), mode)?)
        })
    }

    /// Sets owner and group, links not followed. Clears setuid, setgid and capabilities: chown(2).
    pub fn set_owner(&self, at: Entry<'_>, uid: u32, gid: u32) -> Result<(), IoError> {
        tried("set the owner of", at, || {
            self.before("fchownat", On::One(at))?;
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            Ok(rustix::fs::chownat(at.dir, at.name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
        })
    }

    /// Sets the mtime, links not followed; the access time stays. An unknown file system may set no time alone and still report success:
    /// then both are set. The caller checks whether that worked.
    pub fn set_mtime(&self, at: Entry<'_>, mtime: Time) -> Result<(), IoError> {
        let act = "set the time of";
        self.before("utimensat", On::One(at)).at(act, at)?;
        let set = |times: Timestamps| rustix::fs::utimensat(at.dir, at.name, &times, AtFlags::SYMLINK_NOFOLLOW);
        match set(mtime_alone(mtime)) {
            // sshfs follows the link, which leads nowhere.
            Err(Errno::NOENT) if !at.dir.is_known()? && at.stat()?.is_some() => return Ok(()),
            set => set.at(act, at)?,
        }
        if at.dir.is_known()? {
            return Ok(());
        }
        let found = rustix::fs::statx(at.dir, at.name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS).at(act, at)?;
        both_times(mtime, &found).map_or(Ok(()), set).at(act, at)
    }

    /// Sets the time of an open file, which lies at `at`.
    pub fn set_mtime_of(&self, file: &File, mtime: Time, at: Entry<'_>) -> Result<(), IoError> {
        tried("set the time of", at, || {
            self.before("futimens", On::Open(file.as_fd(), at.dir.path()))?;
            rustix::fs::futimens(file, &mtime_alone(mtime))?;
            if dir::is_known(file)? {
                return Ok(());
            }
            let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
            Ok(both_times(mtime, &found).map_or(Ok(()), |times| rustix::fs::futimens(file, &times))?)
        })
    }

    /// Sets one xattr, links not followed.
    pub fn set_xattr(&self, at: Entry<'_>, name: &[u8], value: &[u8]) -> Result<(), IoError> {
        tried("set an extended attribute of", at, || {
            self.before("lsetxattr", On::One(at))?;
            let set = rustix::fs::lsetxattr(at.through_proc(), name, value, rustix::fs::XattrFlags::empty());
            set.map_err(|error| xattr::too_large(error, name, value, at.dir.as_fd()))
        })
    }

    /// Removes one xattr, links not followed; a missing one is fine.
    pub fn remove_xattr(&self, at: Entry<'_>, name: &[u8]) -> Result<(), IoError> {
        tried("remove an extended attribute of", at, || {
            self.before("lremovexattr", On::One(at))?;
            match rustix::fs::lremovexattr(at.through_proc(), name) {
                Err(Errno::NODATA) => Ok(()),
                other => Ok(other?),
            }
        })
    }

    /// Sets the permission bits of an open file.
    pub fn set_mode_of(&self, file: &File, mode: u32, at: Entry<'_>) -> Result<(), IoError> {
        tried("set the mode of", at, || {
            self.before("fchmod", On::Open(file.as_fd(), at.dir.path()))?;
            Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
        })
    }

    /// Sets owner and group of an open file. Clears setuid, setgid and capabilities: chown(2).
    pub fn set_owner_of(&self, file: &File, uid: u32, gid: u32, at: Entry<'_>) -> Result<(), IoError> {
        tried("set the owner of", at, || {
            self.before("fchown", On::Open(file.as_fd(), at.dir.path()))?;
            Ok(rustix::fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
        })
    }

    /// Sets one xattr of an open file.
    pub fn set_xattr_of(&self, file: &File, name: &[u8], value: &[u8], at: Entry<'_>) -> Result<(), IoError> {
        tried("set an extended attribute of", at, || {
            self.before("fsetxattr", On::Open(file.as_fd(), at.dir.path()))?;
            let set = rustix::fs::fsetxattr(file, name, value, rustix::fs::XattrFlags::empty());
            set.map_err(|error| xattr::too_large(error, name, value, file.as_fd()))
        })
    }

    /// fsync of several files, each with its directory. Writes out all content before the first is synced: then a file system with a
    /// journal makes one record of them all. An error is final (D8).
    #[track_caller]
    pub fn sync_all(&self, files: &[(&File, &Path)]) -> Result<(), IoError> {
        if files.len() > 1 {
            files.iter().try_for_each(|(file, path)| write_out::write_out(file).at(SYNC, dir::shown(path)))?;
        }
        for (file, path) in files {
            self.before("fsync", On::Open(file.as_fd(), path)).at(SYNC, dir::shown(path))?;
            rustix::fs::fsync(file).at(SYNC, dir::shown(path))?;
        }
        Ok(())
    }

    /// fsync of a file: its content and metadata. An error is final: never called again for the same file (D8).
    #[track_caller]
    pub fn sync(&self, file: &File, at: Entry<'_>) -> Result<(), IoError> {
        self.before("fsync", On::Open(file.as_fd(), at.dir.path())).at(SYNC, at)?;
        rustix::fs::fsync(file).at(SYNC, at)
    }

    /// fsync of a directory: its names (D2). If the caller may not open it for reading, syncfs through it is not possible either: the
    /// caller must hold another directory of the same file system.
    #[track_caller]
    pub fn sync_dir(&self, dir: &Dir) -> Result<(), IoError> {
        self.before("fsync", On::Open(dir.as_fd(), dir.path())).at(SYNC, dir.shown())?;
        rustix::fs::fsync(dir).at(SYNC, dir.shown())
    }

    /// fsync of the object at `at`: a file or directory by its own descriptor, EACCES if it may not be opened for reading; any other kind
    /// lasts with its directory.
    #[track_caller]
    pub fn sync_at(&self, at: Entry<'_>) -> Result<(), IoError> {
        self.before("fsync", On::One(at)).at(SYNC, at)?;
        match at.stat()?.map(|stat| stat.sort) {
            Some(Sort::File) => rustix::fs::fsync(at.open_file()?).at(SYNC, at),
            // As with a file, what is mounted at the name is what was set in place by it.
            Some(Sort::Directory) => match at.dir.open_across(at.name)? {
                dir if dir.readable() => rustix::fs::fsync(&dir).at(SYNC, at),
                _ => Err(Errno::ACCESS).at(SYNC, at),
            },
            _ => Ok(()),
        }
    }

    /// syncfs: all dirty data on the directory's file system (D7). The descriptor must be older than the first write that counts: the error
    /// is remembered for each open descriptor.
    #[track_caller]
    pub fn sync_fs(&self, dir: &Dir) -> Result<(), IoError> {
        self.before("syncfs", On::Open(dir.as_fd(), dir.path())).at(SYNC_FS, dir.shown())?;
        rustix::fs::syncfs(dir).at(SYNC_FS, dir.shown())
    }

    /// Replaces one of recant's own files as a whole, durably: after a crash it is the old one or the new one. Mode 0600.
    #[track_caller]
    pub fn replace(&self, at: Entry<'_>, bytes: &[u8]) -> Result<(), IoError> {
        self.replace_after(at, bytes, &[], &[])
    }

    /// Replaces a file durably, as [`Self::replace`] does, after making durable what its new content refers to: other files, each with its
    /// directory, and directories with new names.
    #[track_caller]
    pub fn replace_after(
        &self,
        at: Entry<'_>,
        bytes: &[u8],
        files: &[(&File, &Path)],
        directories: &[&Dir],
    ) -> Result<(), IoError> {
        let temp = [at.name, b".new"].concat();
        let temp = at.dir.at(&temp);
        let file = self.write_new(temp, bytes).at(WRITE, at)?;
        // D1: content before name, else a power cut could leave the name on an empty file.
        self.sync_all(&[files, &[(&file, at.dir.path())]].concat()).at(WRITE, at)?;
        for directory in directories {
            self.sync_dir(directory)?; // D2
        }
        self.rename_over(temp, at).at(WRITE, at)?;
        // D2: the name itself lasts only once its directory is synced.
        self.sync_dir(at.dir)
    }

    /// Replaces a file without waiting for the disk: readers see it whole, but a power cut may lose it.
    pub fn replace_later(&self, at: Entry<'_>, bytes: &[u8]) -> Result<(), IoError> {
        self.write_beside(at, bytes)?;
        self.name_beside(at)
    }

    /// Replaces a file as [`Self::replace_later`] does, where processes do so at once: each writes beside it by a name of its own, and the
    /// content of one of them stays, whole.
    pub fn replace_at_once(&self, at: Entry<'_>, bytes: &[u8]) -> Result<(), IoError> {
        let temp = [at.name, format!(".{}", std::process::id()).as_bytes()].concat();
        let temp = at.dir.at(&temp);
        drop(self.write_new(temp, bytes).at(WRITE, at)?);
        self.rename_over(temp, at).at(WRITE, at)
    }

    /// Writes the file beside `at` that [`Self::name_beside`] renames to `at`; not durable.
    pub fn write_beside(&self, at: Entry<'_>, bytes: &[u8]) -> Result<(), IoError> {
        self.write_new(at.dir.at(&[at.name, b".new"].concat()), bytes).map(drop).at(WRITE, at)
    }

    /// Renames the file that was written beside `at` to it.
    pub fn name_beside(&self, at: Entry<'_>) -> Result<(), IoError> {
        self.rename_over(at.dir.at(&[at.name, b".new"].concat()), at).at(WRITE, at)
    }

    fn write_new(&self, temp: Entry<'_>, bytes: &[u8]) -> Result<File, IoError> {
        self.unlink_if_there(temp)?;
        let file = self.create(temp, 0o600)?;
        self.write(&file, bytes, temp)?;
        Ok(file)
    }

    /// Removes a name if it is there.
    pub fn unlink_if_there(&self, at: Entry<'_>) -> Result<(), IoError> {
        match self.unlink(at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

const RENAME: &str = "rename";
const SYNC: &str = "sync";
const SYNC_FS: &str = "sync the file system of";
const WRITE: &str = "write";

/// Does `work`; an error of it names `act` and `path`.
pub(super) fn tried<T>(act: &'static str, path: impl Display, work: impl FnOnce() -> io::Result<T>) -> Result<T, IoError> {
    work().at(act, path)
}

/// The times that set the mtime and leave the access time.
fn mtime_alone(mtime: Time) -> Timestamps {
    let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let mtime = Timespec { tv_sec: mtime.s, tv_nsec: mtime.ns.into() };
    Timestamps { last_access: omit, last_modification: mtime }
}

/// The times with the wanted mtime and the present access time; `None` if the mtime is set already.
fn both_times(mtime: Time, found: &rustix::fs::Statx) -> Option<Timestamps> {
    let shown = Time { s: found.stx_mtime.tv_sec, ns: found.stx_mtime.tv_nsec };
    let last_access = Timespec { tv_sec: found.stx_atime.tv_sec, tv_nsec: found.stx_atime.tv_nsec.into() };
    (!shown.shows(mtime)).then(|| Timestamps { last_access, ..mtime_alone(mtime) })
}

/// True if a file system has refused a flag of renameat2(2), not the rename.
fn is_no_flag(error: &IoError) -> bool {
    matches!(error.errno(), Some(libc::EINVAL | libc::ENOSYS))
}
