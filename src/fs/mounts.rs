//! The mounts of this namespace, read from /proc/self/mountinfo: proc_pid_mountinfo(5).

use std::cell::Cell;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, StatxFlags};

use super::device_number::Dev;
use super::path::AbsPath;
use crate::error::{At, IoError};

const MOUNTINFO: &str = "/proc/self/mountinfo";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub id: u64,
    /// The id of the mount that it is mounted in.
    pub parent: u64,
    pub dev: Dev,
    /// The directory or file of the file system that is mounted: `/` except for bind mounts and subvolumes.
    pub root: Vec<u8>,
    /// The mount point, as this process sees it.
    pub point: AbsPath,
    /// The options of the mount itself: `rw,nosuid,…`.
    pub options: String,
    pub fs_type: String,
    /// The mounted source: a device, or anything that the file system says.
    pub source: Vec<u8>,
    pub super_options: String,
}

/// File systems of the kernel: nothing in them can be brought back.
const KERNELS: [&str; 17] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "securityfs",
    "debugfs",
    "tracefs",
    "pstore",
    "bpf",
    "configfs",
    "efivarfs",
    "mqueue",
    "binfmt_misc",
    "fusectl",
    "selinuxfs",
];

impl Mount {
    /// True if its files are the kernel's: a file system of the kernel, or /dev, which is a tmpfs in containers.
    pub fn is_kernels(&self) -> bool {
        KERNELS.contains(&&*self.fs_type) || self.point.as_bytes() == b"/dev"
    }

    /// True if nothing can be written through it.
    pub fn read_only(&self) -> bool {
        has(&self.options, "ro") || has(&self.super_options, "ro")
    }

    /// True if the mounted object was deleted. No name contains a `/`, so the kernel's mark can't be one.
    pub fn is_deleted(&self) -> bool {
        self.root.ends_with(b"//deleted")
    }
}

/// True if a list of options has `option`.
pub fn has(options: &str, option: &str) -> bool {
    options.split(',').any(|o| o == option)
}

/// All mounts, in the kernel's order: a later one at the same point hides an earlier one. Leaves out mounts that this process cannot reach
/// (their point is outside its root).
pub fn read() -> Result<Vec<Mount>, IoError> {
    watched().map(|(mounts, _)| mounts)
}

/// All mounts as [`read`] tells them, and what tells whether one comes or goes from here on.
pub fn watched() -> Result<(Vec<Mount>, Watch), IoError> {
    let mut text = Vec::with_capacity(64 << 10);
    let mut file = std::fs::File::open(MOUNTINFO).at("open", MOUNTINFO)?;
    // The kernel reports no size, so a default buffer would begin with reads of a few bytes.
    let mut mounts = file.read_to_end(&mut text).and_then(|_| parse(&text)).at("read", MOUNTINFO)?;
    if mounts.iter().all(|mount| mount.point.as_bytes() != b"/") {
        mounts.insert(0, root_of_chroot().at("look at", "/")?);
    }
    Ok((mounts, Watch { list: file, has_changed: Cell::new(false) }))
}

/// The open list of mounts, which the kernel marks when one comes or goes (proc_pid_mountinfo(5): POLLPRI).
#[derive(Debug)]
pub struct Watch {
    list: std::fs::File,
    /// The kernel tells of a change once.
    has_changed: Cell<bool>,
}

impl Watch {
    /// True if something was mounted, unmounted or mounted anew since the list was read.
    pub fn has_changed(&self) -> bool {
        let mut asked = [PollFd::new(&self.list, PollFlags::PRI)];
        if poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0) {
            self.has_changed.set(true);
        }
        self.has_changed.get()
    }
}

/// The mount that `/` lies in after chroot(2) into a directory that is no mount point: the kernel lists it in no line, so what is known of
/// it is its id and device. Of its type nothing is assumed.
fn root_of_chroot() -> io::Result<Mount> {
    let root = std::fs::File::open("/")?;
    let device = rustix::fs::fstat(&root)?.st_dev;
    let read_only = rustix::fs::fstatvfs(&root)?.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY);
    Ok(Mount {
        id: id_of(&root)?,
        parent: 0,
        dev: Dev(rustix::fs::major(device), rustix::fs::minor(device)),
        root: b"/".to_vec(),
        point: AbsPath::parse("/").map_err(io::Error::other)?,
        options: if read_only { "ro" } else { "rw" }.into(),
        fs_type: "unknown".into(),
        source: Vec::new(),
        super_options: String::new(),
    })
}

/// The id of the mount that an open object was reached through. statx(2) returns it since Linux 5.8; before that, and in sandboxes with a
/// kernel of their own, only /proc does: proc_pid_fdinfo(5).
pub fn id_of(fd: impl AsFd) -> io::Result<u64> {
    let found = rustix::fs::statx(&fd, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    match found.stx_mnt_id {
        // Unknown: some kernels set the mask and leave the field empty.
        0 => id_by_proc(fd),
        id => Ok(id),
    }
}

fn id_by_proc(fd: impl AsFd) -> io::Result<u64> {
    let path = format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd());
    let told = std::fs::read_to_string(&path)?;
    let id = told.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    id.and_then(|id| id.trim().parse().ok()).ok_or_else(|| io::Error::other(format!("{path} names no mount")))
}

fn parse(text: &[u8]) -> io::Result<Vec<Mount>> {
    let mut mounts = Vec::new();
    for line in text.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let bad = || io::Error::other(format!("a line of /proc/self/mountinfo cannot be read: {}", line.escape_ascii()));
        if let Some(mount) = parse_line(line).ok_or_else(bad)? {
            mounts.push(mount);
        }
    }
    Ok(mounts)
}

/// `None` for a garbled line, `Some(None)` for a mount outside this process's root.
#[expect(clippy::option_option, reason = "two different answers")]
fn parse_line(line: &[u8]) -> Option<Option<Mount>> {
    let mut words = line.split(|b| *b == b' ');
    let mut text = || words.next().map(|w| String::from_utf8_lossy(w).into_owned());
    let id = text()?.parse().ok()?;
    let parent = text()?.parse().ok()?;
    let dev = text()?;
    let (major, minor) = dev.split_once(':')?;
    let dev = Dev(major.parse().ok()?, minor.parse().ok()?);
    let root = unescape(words.next()?);
    let Ok(point) = AbsPath::parse(unescape(words.next()?)) else { return Some(None) };
    let options = String::from_utf8_lossy(words.next()?).into_owned();
    let mut words = words.skip_while(|w| *w != b"-").skip(1);
    let fs_type = String::from_utf8_lossy(words.next()?).into_owned();
    let source = unescape(words.next()?);
    let super_options = String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
    Some(Some(Mount { id, parent, dev, root, point, options, fs_type, source, super_options }))
}

/// Decodes the kernel's three octal digits for space, tab, newline, backslash and `#`.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, tail @ ..] = rest {
        if let ([b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..], true) = (rest, *first == b'\\') {
            out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
            rest = &rest[4..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

/// The mount that a path lies in, taken as a directory on the way down from `/`: the last one of the longest point above it.
pub fn containing<'a>(mounts: &'a [Mount], path: &AbsPath) -> Option<&'a Mount> {
    // max_by_key returns the last of equals: the one on top.
    mounts.iter().filter(|m| path.is_under(&m.point)).max_by_key(|m| m.point.as_bytes().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_and_statx_name_the_same_mount() {
        for path in ["/", "/proc", "/sys"] {
            let open = std::fs::File::open(path).unwrap();
            let id = id_by_proc(&open).unwrap();
            assert_eq!(id, id_of(&open).unwrap(), "{path}");
            assert!(read().unwrap().iter().any(|mount| mount.id == id && mount.point.as_bytes() == path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn a_line_of_mountinfo_is_read_whole() {
        let line = b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/r\\134oot rw,errors=continue\n";
        let mounts = parse(line).unwrap();
        assert_eq!(mounts.len(), 1);
        let mount = &mounts[0];
        assert_eq!((mount.id, mount.parent, mount.dev), (36, 35, Dev(98, 0)));
        assert_eq!(mount.point.as_bytes(), b"/mnt 2");
        assert_eq!((&*mount.fs_type, &*mount.source, &*mount.super_options), ("ext3", &b"/dev/r\\oot"[..], "rw,errors=continue"));
        assert!(!mount.read_only());
    }

    #[test]
    fn the_mount_on_top_contains_a_path() {
        let text = b"1 0 8:1 / / rw - ext4 a rw\n2 1 0:2 / /home rw - tmpfs b rw\n3 2 0:3 / /home rw - tmpfs c rw\n4 1 0:4 / /homely rw - tmpfs d rw\n";
        let mounts = parse(text).unwrap();
        let of = |p: &str| containing(&mounts, &AbsPath::parse(p).unwrap()).map(|m| m.id);
        assert_eq!((of("/home/x"), of("/home"), of("/hom"), of("/homely/a")), (Some(3), Some(3), Some(1), Some(4)));
    }
}
