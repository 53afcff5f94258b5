//! The /dev of a run: private and of a few harmless nodes for root, the real one for an ordinary user.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::mount::MountFlags;

use super::mounting::{attach_to, clone_at, mount_tmpfs};
use super::shm::mount_shm;
use crate::capture::sys;
use crate::error::{At, IoError};
use crate::fs::dir::Dir;

/// The nodes of root's private /dev.
const NODES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// The links of root's private /dev: name and target.
const LINKS: &[(&str, &str)] = &[
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// The nodes and mounts of the real /dev that a private one gets.
pub(super) struct Devices {
    nodes: Vec<(String, OwnedFd)>,
    terminals: Option<OwnedFd>,
}

impl Devices {
    /// Takes them from the real /dev, before all devices are switched off.
    pub(super) fn take() -> Result<Self, IoError> {
        let mut nodes = Vec::new();
        for name in NODES.iter().map(ToString::to_string).chain(own_terminals()) {
            let path = format!("/dev/{name}");
            match clone_at(path.as_ref(), false) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                clone => {
                    let clone = clone.at("clone the device node", &path)?;
                    sys::set_read_only_held(clone.as_fd()).at("make it read-only", &path)?;
                    nodes.push((name, clone));
                }
            }
        }
        let terminals = match clone_at("/dev/pts".as_ref(), true) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            clone => Some(clone.at("clone the mount", "/dev/pts")?),
        };
        Ok(Self { nodes, terminals })
    }

    /// Mounts the private /dev and fills it. Nothing here is a file of the user's: it is a tmpfs of the run's own.
    pub(super) fn attach(self) -> Result<(), IoError> {
        mount_tmpfs("/dev", "mode=755,size=64k", MountFlags::NOSUID)?;
        for name in ["pts", "shm", "mqueue"] {
            let path = format!("/dev/{name}");
            rustix::fs::mkdir(&path, Mode::from_raw_mode(0o755)).at("make the mount point", &path)?;
        }
        for (name, target) in LINKS {
            let path = format!("/dev/{name}");
            rustix::fs::symlink(*target, &path).at("make the link", &path)?;
        }
        for (name, clone) in self.nodes {
            let path = format!("/dev/{name}");
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600)).at("make the mount point", &path)?;
            drop(made);
            attach_to(&clone, &path)?;
        }
        if let Some(terminals) = self.terminals {
            attach_to(&terminals, "/dev/pts")?;
        }
        mount_shm()?;
        sys::set_read_only(c"/dev", true).at("make it read-only", "/dev")
    }
}

/// The terminals on 0, 1 and 2 that lie in /dev itself (a console), so that ttyname(3) finds them.
fn own_terminals() -> impl Iterator<Item = String> {
    let mut names: Vec<String> = (0..3)
        .filter_map(|fd| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok())
        .filter_map(|path| Some(path.to_str()?.strip_prefix("/dev/")?.to_owned()))
        .filter(|name| !name.contains('/') && !NODES.contains(&name.as_str()))
        .filter(|name| name.starts_with("tty") || name == "console" || name.starts_with("hvc"))
        .collect();
    names.sort();
    names.dedup();
    names.into_iter()
}

/// A user's /dev stays as it is, guarded by its modes; terminals can be chmod-ed as bare, shared memory is the run's own.
pub(super) fn user_devices() -> Result<(), IoError> {
    if is_mount("/dev/pts") {
        // A mount that was read-only or locked before can't be changed: then it was so outside, too.
        let _kept = sys::set_read_only(c"/dev/pts", false);
    }
    if Dir::open("/dev/shm".as_ref()).is_ok() { mount_shm() } else { Ok(()) }
}

fn is_mount(path: &str) -> bool {
    Dir::open(path.as_ref()).and_then(|dir| dir.stat()).is_ok_and(|stat| stat.mount_root)
}
