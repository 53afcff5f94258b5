//! Held directories: an open descriptor that names are looked up below, so that a path that is swapped meanwhile leads nowhere.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;

use super::beneath::{self, ACROSS, BENEATH};
use super::device_number::Dev;
use super::path::{LENGTH_MAX, Shown};
use super::xattr::{self, Xattrs};
use crate::error::{At, IoError};

/// A point in time as file systems keep it: seconds since 1970, and ns that always count forward. Packed to 12 bytes, as a plan has six for
/// each path.
#[repr(C, packed(4))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    /// Seconds since 1970-01-01T00:00:00Z; negative before.
    pub s: i64,
    /// 0 to 999,999,999.
    pub ns: u32,
}

impl Time {
    /// True if a file system that was given `set` may show this: many keep times less exactly, down to FAT's two seconds.
    pub fn shows(self, set: Time) -> bool {
        let kept = |unit: u32| Time { ns: set.ns - set.ns % unit, ..set };
        let units = [1, 100, 1_000, 1_000_000, 10_000_000, 1_000_000_000];
        units.into_iter().any(|unit| self == kept(unit)) || self == Time { s: set.s - set.s.rem_euclid(2), ns: 0 }
    }
}

/// The sorts of object that a name can lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sort {
    File,
    Directory,
    Symlink,
    Fifo,
    /// A Unix socket.
    Socket,
    Char,
    /// A block device.
    Block,
}

/// The identity of an object among all that exist now. An inode number alone is unique only on its file system, and two file systems may
/// have it with the same birth time (a copy of an image, a snapshot of btrfs).
pub type Inode = (Dev, u64);

/// The facts of statx(2) about an object, links not followed.
#[derive(Debug, Clone, Copy)]
pub struct Stat {
    pub sort: Sort,
    /// The permission bits, 07777.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Bytes of content, or of a link's target; meaningless for a directory.
    pub size: u64,
    /// Blocks of 512 bytes in use.
    pub blocks: u64,
    pub mtime: Time,
    /// The last change of content, metadata or names.
    pub ctime: Time,
    /// The birth, if the file system keeps it.
    pub btime: Option<Time>,
    pub ino: u64,
    /// The number of names of the inode.
    pub nlink: u32,
    /// The device of the file system. Changes over a reboot.
    pub dev: Dev,
    /// The device that a device node stands for.
    pub rdev: Dev,
    /// The mount that it was reached through; its device's number if statx(2) does not return it. Only comparable with other values of this
    /// field; `mounts::id_of` returns the mount's id.
    pub mount: u64,
    /// True if chattr +i or +a is set.
    pub locked: bool,
    /// True if its file system encrypts it (fscrypt), and for a directory all that is made in it.
    pub encrypted: bool,
    pub mount_root: bool,
}

impl Stat {
    pub fn inode(&self) -> Inode {
        (self.dev, self.ino)
    }

    /// The identity of its object if that has several names; a directory has one.
    pub fn shared(&self) -> Option<Inode> {
        (self.nlink > 1 && self.sort != Sort::Directory).then(|| self.inode())
    }
}

/// An open directory. Perhaps not readable: if the caller may only search it, names can be looked up, but it can't be listed or synced.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
    readable: bool,
    /// The answer of [`Dir::is_known`], asked once.
    known: OnceLock<bool>,
}

/// The reach of a path from a directory that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All that this process reaches.
    Everything,
    /// All below the directory.
    Beneath,
    /// All below the directory, which is the root.
    FromRoot,
}

/// A name in a directory, and its sort where the file system tells that.
pub type NameAndSort = (Vec<u8>, Option<Sort>);

/// A name in a held directory.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub dir: &'a Dir,
    pub name: &'a [u8],
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.dir.path.as_os_str().as_bytes().to_vec();
        if self.name == b"." {
            return Shown(&bytes).fmt(f);
        }
        if bytes.last() != Some(&b'/') {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(self.name);
        Shown(&bytes).fmt(f)
    }
}

/// A path below a held directory, as it stands in a message.
struct Below<'a>(&'a Dir, &'a [u8]);

impl fmt::Display for Below<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        shown(&self.0.path.join(std::ffi::OsStr::from_bytes(self.1))).fmt(f)
    }
}

pub(super) fn shown(path: &Path) -> Shown<'_> {
    Shown(path.as_os_str().as_bytes())
}

const LOOK: &str = "look at";
pub(super) const OPEN_DIR: &str = "open the directory";
const OPEN_FILE: &str = "open";
const XATTRS: &str = "read the extended attributes of";

const OPEN: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
const STATX: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME).union(StatxFlags::MNT_ID);

/// The longest piece of a path that is passed to the kernel at once; PATH_MAX is 4096 with the NUL.
const PIECE: usize = 3800;

impl Dir {
    fn of(fd: OwnedFd, path: PathBuf, readable: bool) -> Self {
        // For messages alone: nothing that deep is reached by its path.
        let path = match path.as_os_str().as_bytes() {
            bytes if bytes.len() > LENGTH_MAX => std::ffi::OsStr::from_bytes(&bytes[..LENGTH_MAX]).into(),
            _ => path,
        };
        Self { fd, path, readable, known: OnceLock::new() }
    }

    /// True if its file system is known to do what it reports as done: [`is_known`].
    pub fn is_known(&self) -> Result<bool, IoError> {
        if let Some(known) = self.known.get() {
            return Ok(*known);
        }
        let known = is_known(&self.fd).at(LOOK, self.shown())?;
        Ok(*self.known.get_or_init(|| known))
    }

    /// Opens a directory by its path, links followed: for the store, the working directory, mount points; never for a session's paths.
    pub fn open(path: &Path) -> Result<Self, IoError> {
        let opened = readable_or_path(|flags| rustix::fs::open(path, OPEN | flags, Mode::empty()));
        let (fd, readable) = opened.at(OPEN_DIR, shown(path))?;
        Ok(Self::of(fd, path.into(), readable))
    }

    /// Opens a directory below this one. No component may be a link, leave this directory or cross a mount. `below` may be longer than
    /// PATH_MAX; if empty, opens this directory again.
    pub fn open_below(&self, below: &[u8]) -> Result<Self, IoError> {
        self.open_resolving(below, BENEATH)
    }

    /// Opens a directory below this one as [`Self::open_below`] does, but may cross mounts: for walks that look at other mounts on purpose.
    pub fn open_across(&self, below: &[u8]) -> Result<Self, IoError> {
        self.open_resolving(below, ACROSS)
    }

    fn open_resolving(&self, below: &[u8], resolve: ResolveFlags) -> Result<Self, IoError> {
        let mut path = self.path.clone();
        if !below.is_empty() {
            path.push(std::ffi::OsStr::from_bytes(below));
        }
        match self.descend(below, resolve) {
            Ok((fd, readable)) => Ok(Self::of(fd, path, readable)),
            Err(error) => Err(error).at(OPEN_DIR, shown(&path)),
        }
    }

    fn descend(&self, below: &[u8], resolve: ResolveFlags) -> io::Result<(OwnedFd, bool)> {
        if below.is_empty() {
            return readable_or_path(|flags| rustix::fs::openat(&self.fd, ".", OPEN | flags, Mode::empty()));
        }
        let mut rest = below;
        let mut held: Option<OwnedFd> = None;
        while rest.len() > PIECE {
            let cut = rest[..PIECE].iter().rposition(|b| *b == b'/').ok_or(Errno::NAMETOOLONG)?;
            let from = held.as_ref().map_or(self.fd.as_fd(), |fd| fd.as_fd());
            held = Some(beneath::open(from, &rest[..cut], OPEN | OFlags::PATH, resolve)?);
            rest = &rest[cut + 1..];
        }
        let from = held.as_ref().map_or(self.fd.as_fd(), |fd| fd.as_fd());
        readable_or_path(|flags| beneath::open(from, rest, OPEN | flags, resolve))
    }

    /// Opens the present parent of this directory, wherever it may have been moved: the caller knows which one it must be.
    pub fn above(&self) -> Result<Self, IoError> {
        let opened = readable_or_path(|flags| rustix::fs::openat(&self.fd, "..", OPEN | flags, Mode::empty()));
        let (fd, readable) = opened.at("open the directory above", self.shown())?;
        Ok(Self::of(fd, self.path.parent().unwrap_or(&self.path).into(), readable))
    }

    /// Opens a directory as another process does that stands in this one: links are followed, but none of /proc's, which lead anywhere.
    pub fn open_as_another(&self, path: &[u8], may_reach: Reach) -> Result<Self, IoError> {
        let resolve = ResolveFlags::NO_MAGICLINKS
            | match may_reach {
                Reach::Everything => ResolveFlags::empty(),
                Reach::Beneath => ResolveFlags::BENEATH,
                Reach::FromRoot => ResolveFlags::IN_ROOT,
            };
        let path = if path.is_empty() { b"." } else { path };
        let shown = self.path.join(std::ffi::OsStr::from_bytes(path));
        let opened = readable_or_path(|flags| rustix::fs::openat2(&self.fd, path, OPEN | flags, Mode::empty(), resolve));
        let (fd, readable) = opened.at(OPEN_DIR, self::shown(&shown))?;
        // Where it lies in this process's view.
        let path = std::fs::read_link(of_fd(fd.as_fd())).unwrap_or(shown);
        Ok(Self::of(fd, path, readable))
    }

    /// Opens a regular file some directories below for reading; no component may be a link, leave this directory or cross a mount. Never
    /// waits for the other end of a FIFO.
    pub fn open_file_below(&self, below: &[u8]) -> Result<std::fs::File, IoError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        // As in Entry::open_file; for a thousand headers this is a tenth of the time.
        let open = |more| beneath::open(self.fd.as_fd(), below, flags | more, BENEATH);
        Ok(own_or_any(open).at(OPEN_FILE, Below(self, below))?.into())
    }

    /// Duplicates the descriptor. The opening is shared: a pending write error is reported to one of the two, once.
    pub fn again(&self) -> Result<Self, IoError> {
        Ok(Self::of(self.fd.try_clone().at(OPEN_DIR, self.shown())?, self.path.clone(), self.readable))
    }

    /// The directory's path when it was opened: for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path as it stands in a message.
    pub fn shown(&self) -> Shown<'_> {
        shown(&self.path)
    }

    /// True if it can be listed and synced.
    pub fn readable(&self) -> bool {
        self.readable
    }

    /// A name in this directory.
    pub fn at<'a>(&'a self, name: &'a [u8]) -> Entry<'a> {
        debug_assert!(!name.contains(&b'/'), "one component");
        Entry { dir: self, name }
    }

    /// The directory's own state.
    pub fn stat(&self) -> Result<Stat, IoError> {
        stat_of(&self.fd).at(LOOK, self.shown())
    }

    /// The names in the directory except `.` and `..`, in the kernel's order.
    pub fn names(&self) -> Result<Vec<Vec<u8>>, IoError> {
        Ok(self.names_and_sorts()?.into_iter().map(|(name, _)| name).collect())
    }

    /// The names, each with its sort if the file system returns it: for a mount point the covered object's, without asking the mount.
    pub fn names_and_sorts(&self) -> Result<Vec<NameAndSort>, IoError> {
        Ok(self.first_names_and_sorts(usize::MAX)?.unwrap_or_default())
    }

    /// The names, if they are at most so many, each with its sort.
    pub fn first_names_and_sorts(&self, most: usize) -> Result<Option<Vec<NameAndSort>>, IoError> {
        self.list(most).at("list", self.shown())
    }

    /// The names, if they are at most so many.
    pub fn first_names(&self, most: usize) -> Result<Option<Vec<Vec<u8>>>, IoError> {
        let names = self.first_names_and_sorts(most)?;
        Ok(names.map(|names| names.into_iter().map(|(name, _)| name).collect()))
    }

    fn list(&self, most: usize) -> Result<Option<Vec<NameAndSort>>, Errno> {
        // A descriptor of its own: another thread may list the same directory.
        list_by(rustix::fs::openat(&self.fd, ".", OPEN | OFlags::RDONLY, Mode::empty())?, most)
    }

    /// The names in a directory that was just opened, each with its sort if the file system returns it.
    pub(super) fn first_listed(&self) -> Result<Vec<NameAndSort>, IoError> {
        self.list_first().at("list", self.shown())
    }

    /// The names in a directory that was just opened: nobody has listed it by this descriptor.
    fn list_first(&self) -> Result<Vec<NameAndSort>, Errno> {
        let listed = if self.readable { list_by(self.fd.as_fd(), usize::MAX) } else { self.list(usize::MAX) };
        Ok(listed?.unwrap_or_default())
    }

    /// True if the directory holds nothing.
    pub fn is_empty(&self) -> Result<bool, IoError> {
        Ok(self.names()?.is_empty())
    }

    /// True if the directory has an xattr of this name and value.
    pub fn has_xattr(&self, name: &str, value: &[u8]) -> Result<bool, IoError> {
        if self.readable {
            return xattr::is_of_open(self.fd.as_fd(), name, value).at(XATTRS, self.shown());
        }
        Ok(self.xattrs()?.iter().any(|(own, has)| own == name.as_bytes() && has == value))
    }

    /// The directory's xattrs: name and value.
    pub fn xattrs(&self) -> Result<Xattrs, IoError> {
        if self.readable { xattr::of_open(self.fd.as_fd(), |_| false).at(XATTRS, self.shown()) } else { self.at(b".").xattrs() }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<'a> Entry<'a> {
    /// Its state, `None` if nothing has that name.
    pub fn stat(&self) -> Result<Option<Stat>, IoError> {
        Ok(match self.statx(AtFlags::empty()).at(LOOK, self)? {
            // FUSE caches the number of links for a second, for each name by itself.
            Some(stat) if stat.shared().is_some() && !self.dir.is_known()? => {
                self.statx(AtFlags::STATX_FORCE_SYNC).at(LOOK, self)?
            }
            stat => stat,
        })
    }

    fn statx(&self, flags: AtFlags) -> io::Result<Option<Stat>> {
        match rustix::fs::statx(self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW | flags, STATX) {
            Ok(found) => to_stat(found).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// True if its directory is on overlayfs: statfs(2).
    pub fn is_on_overlay(&self) -> Result<bool, IoError> {
        const OVERLAYFS_SUPER_MAGIC: rustix::fs::FsWord = 0x794c_7630;
        let found = rustix::fs::fstatfs(self.dir).at("look at the file system of", self)?;
        Ok(found.f_type == OVERLAYFS_SUPER_MAGIC)
    }

    /// Opens it as a directory; refuses a link (ENOTDIR or ELOOP).
    pub fn open_dir(&self) -> Result<Dir, IoError> {
        self.dir.open_below(self.name)
    }

    /// Opens a directory, as [`Self::open_dir`] does, and lists the names in it.
    pub fn open_and_list(&self) -> Result<(Dir, Vec<Vec<u8>>), IoError> {
        let dir = self.open_dir()?;
        let names = dir.list_first().at("list", self)?;
        Ok((dir, names.into_iter().map(|(name, _)| name).collect()))
    }

    /// True if it is a directory that the caller may not list, or not search.
    pub fn is_closed(&self) -> bool {
        use rustix::fs::{Access, accessat};
        let listed_and_searched = Access::READ_OK | Access::EXEC_OK;
        // Errors other than missing rights are met when the directory is opened.
        accessat(self.dir, self.name, listed_and_searched, AtFlags::EACCESS) == Err(Errno::ACCESS)
    }

    /// Opens a regular file for reading. Never waits, follows no link, and leaves the access time alone if it may.
    pub fn open_file(&self) -> Result<std::fs::File, IoError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = own_or_any(|more| rustix::fs::openat(self.dir, self.name, flags | more, Mode::empty()));
        Ok(opened.at(OPEN_FILE, self)?.into())
    }

    pub fn read_link(&self) -> Result<Vec<u8>, IoError> {
        Ok(rustix::fs::readlinkat(self.dir, self.name, Vec::new()).at("read the link", self)?.into_bytes())
    }

    /// The object's xattrs, links not followed, any kind of object: name and value.
    pub fn xattrs(&self) -> Result<Xattrs, IoError> {
        xattr::of_name(self.dir.as_fd(), self.name, || self.through_proc()).at(XATTRS, self)
    }

    /// A path for calls that take no directory descriptor. Its directory part is the descriptor itself, so nothing can be swapped; the
    /// l-calls do not follow the last name: proc_pid_fd(5).
    pub(super) fn through_proc(&self) -> Vec<u8> {
        use std::os::fd::AsRawFd;
        let mut path = format!("/proc/self/fd/{}/", self.dir.fd.as_raw_fd()).into_bytes();
        path.extend_from_slice(self.name);
        path
    }
}

/// True if the file system of an open object is one of Linux's own, on disk, in memory or on top of these: statfs(2). FUSE or another
/// machine may report a time as set that is not: bindfs does if the access time is left alone (UTIME_OMIT).
pub fn is_known(fd: impl AsFd) -> io::Result<bool> {
    // ext2 to ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS, ZFS, bcachefs.
    const KNOWN: [rustix::fs::FsWord; 8] =
        [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];
    let magic = rustix::fs::fstatfs(fd)?.f_type;
    Ok(KNOWN.contains(&(magic & 0xffff_ffff)))
}

/// True if an open object lies in an overlay: statfs(2).
pub fn is_overlay(fd: impl AsFd) -> io::Result<bool> {
    const OVERLAY: rustix::fs::FsWord = 0x794c_7630;
    Ok(rustix::fs::fstatfs(fd)?.f_type & 0xffff_ffff == OVERLAY)
}

/// True if an error of opening a directory means that its path leads to none now: a part is missing, no directory, or a link.
pub fn leads_nowhere(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP))
}

/// Opens with O_NOATIME, which only the owner and CAP_FOWNER may use, or else without it: open(2).
fn own_or_any<T>(open: impl Fn(OFlags) -> Result<T, Errno>) -> Result<T, Errno> {
    match open(OFlags::NOATIME) {
        Err(Errno::PERM) => open(OFlags::empty()),
        other => other,
    }
}

fn readable_or_path<T>(open: impl Fn(OFlags) -> Result<T, Errno>) -> io::Result<(T, bool)> {
    match open(OFlags::RDONLY) {
        Ok(fd) => Ok((fd, true)),
        Err(Errno::ACCESS) => Ok((open(OFlags::PATH)?, false)),
        Err(error) => Err(error.into()),
    }
}

fn sort_of(file_type: FileType) -> Option<Sort> {
    Some(match file_type {
        FileType::RegularFile => Sort::File,
        FileType::Directory => Sort::Directory,
        FileType::Symlink => Sort::Symlink,
        FileType::Fifo => Sort::Fifo,
        FileType::Socket => Sort::Socket,
        FileType::CharacterDevice => Sort::Char,
        FileType::BlockDevice => Sort::Block,
        FileType::Unknown => return None,
    })
}

fn to_stat(found: Statx) -> io::Result<Stat> {
    let time = |t: rustix::fs::StatxTimestamp| Time { s: t.tv_sec, ns: t.tv_nsec };
    let sort =
        sort_of(FileType::from_raw_mode(found.stx_mode.into())).ok_or_else(|| io::Error::other("an object of unknown kind"))?;
    let has = |flag: StatxFlags| found.stx_mask & flag.bits() != 0;
    let attribute = |flag: rustix::fs::StatxAttributes| found.stx_attributes.contains(flag);
    Ok(Stat {
        sort,
        mode: u32::from(found.stx_mode) & 0o7777,
        uid: found.stx_uid,
        gid: found.stx_gid,
        size: found.stx_size,
        blocks: found.stx_blocks,
        mtime: time(found.stx_mtime),
        ctime: time(found.stx_ctime),
        btime: has(StatxFlags::BTIME).then(|| time(found.stx_btime)),
        ino: found.stx_ino,
        nlink: found.stx_nlink,
        dev: Dev(found.stx_dev_major, found.stx_dev_minor),
        rdev: Dev(found.stx_rdev_major, found.stx_rdev_minor),
        mount: match found.stx_mnt_id {
            0 => rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
            id => id,
        },
        locked: attribute(rustix::fs::StatxAttributes::IMMUTABLE) || attribute(rustix::fs::StatxAttributes::APPEND),
        encrypted: attribute(rustix::fs::StatxAttributes::ENCRYPTED),
        mount_root: attribute(rustix::fs::StatxAttributes::MOUNT_ROOT),
    })
}

pub fn stat_of(fd: impl AsFd) -> io::Result<Stat> {
    to_stat(rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, STATX)?)
}

/// The xattrs of an open file: name and value, sorted.
pub fn xattrs_of(fd: impl AsFd) -> io::Result<Xattrs> {
    xattr::of_open(fd.as_fd(), |_| false)
}

/// The xattrs of an open file, without the values of those that are `unread`.
pub fn xattrs_but(fd: impl AsFd, unread: impl Fn(&[u8]) -> bool) -> io::Result<Xattrs> {
    xattr::of_open(fd.as_fd(), unread)
}

/// The names in an open directory from where its descriptor stands, if they are at most so many.
fn list_by(fd: impl AsFd, most: usize) -> Result<Option<Vec<NameAndSort>>, Errno> {
    let mut names = Vec::new();
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = rustix::fs::RawDir::new(fd, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == most {
            return Ok(None);
        }
        names.push((name.to_vec(), sort_of(entry.file_type())));
    }
    Ok(Some(names))
}

/// A path to an open object: /proc/self/fd/N.
pub(super) fn of_fd(fd: std::os::fd::BorrowedFd<'_>) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
