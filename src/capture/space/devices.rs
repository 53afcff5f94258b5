//! The /dev of a run: private, with a few harmless nodes. Devices that a user's groups may write (disks, kvm, video) are a way out.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::Mode;
use rustix::mount::MountFlags;

use super::attach::{attach_to, clone_at, make_file, make_in_dev, mount_tmpfs};
use super::shm::mount_shm;
use super::terminals::Terminals;
use crate::capture::place::mount_plan::Plan;
use crate::capture::run::raw_calls;
use crate::error::{At, IoError};
use crate::fs::{AbsPath, stat_of};

/// The nodes of the private /dev.
const NODES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// The links of the private /dev: name and target.
const LINKS: &[(&str, &str)] = &[
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// The nodes and mounts of the real /dev that a private one gets.
pub struct Devices {
    nodes: Vec<(String, OwnedFd)>,
    terminals: Terminals,
}

impl Devices {
    /// Takes the nodes from the real /dev, before all devices are switched off.
    pub fn take(plan: &Plan) -> Result<Self, IoError> {
        let mut nodes = Vec::new();
        for name in NODES.iter().map(ToString::to_string).chain(own_terminals()) {
            let path = format!("/dev/{name}");
            match clone_at(path.as_ref(), false) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                clone => {
                    let clone = clone.at("clone the device node", &path)?;
                    raw_calls::set_read_only_held(clone.as_fd()).at("make it read-only", &path)?;
                    nodes.push((name, clone));
                }
            }
        }
        Ok(Self { nodes, terminals: Terminals::take(plan)? })
    }

    /// Mounts the private /dev and fills it, with mount points for the passed paths of the real one. It is a tmpfs of the run's own:
    /// nothing in it is a file of the user's.
    pub fn attach(self, passes: &[(&AbsPath, OwnedFd)]) -> Result<(), IoError> {
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
            make_file(path.as_ref()).at("make the mount point", &path)?;
            attach_to(&clone, &path)?;
        }
        self.terminals.attach()?;
        mount_shm()?;
        for (path, clone) in passes {
            let sort = stat_of(clone).at("look at", path)?.sort;
            make_in_dev(path, sort).at("make the mount point", path)?;
        }
        raw_calls::set_read_only(c"/dev", true).at("make it read-only", "/dev")
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
