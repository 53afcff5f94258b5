//! A /dev/shm of the run's own: shared memory works in it, is private, and goes with the run. A confined command also has an IPC namespace.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::CapabilitySet;

use super::attach::{attach, clone_of, make_in_dev, mount_tmpfs};
use super::refusals::acts;
use crate::capture::run::capabilities::drop_rights;
use crate::capture::run::ids::Ids;
use crate::capture::run::raw_calls;
use crate::error::{At, IoError};
use crate::fs::{AbsPath, stat_of};

/// The directory of shared memory: shm_overview(7).
const SHM: &str = "/dev/shm";

/// Gives this process, which stays on the real tree, a private /dev/shm in a mount namespace of its own. If it may not make one, it gets a
/// user namespace too, which maps the process itself and the further groups that it can. Paths in `kept`, below /dev/shm, stay real. Mounts
/// made outside are seen inside, but not the other way round.
pub fn part(kept: &[AbsPath], ids: &Ids, recant: &UnixStream) -> Result<(), IoError> {
    let act = acts::MOUNT_NAMESPACE;
    let in_user_namespace = match raw_calls::unshare_mounts_and_ipc(false) {
        Ok(()) => false,
        // A root that may make no mount namespace would lose all other users in one that maps itself alone.
        Err(error) if ids.uid == 0 => return Err(error).at(act, SHM),
        Err(_) => {
            raw_calls::unshare_mounts_and_ipc(true).at(act, SHM)?;
            ids.map_same(recant)?;
            true
        }
    };
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", slave).at("keep mounts from leaving", "/")?;
    let clones = kept.iter().map(clone_of).collect::<Result<Vec<OwnedFd>, _>>()?;
    let cwd = std::env::current_dir().at("find the working directory", ".")?;
    mount_shm()?;
    for (path, clone) in kept.iter().zip(&clones) {
        make_in_dev(path, stat_of(clone).at("look at", path)?.sort).at("make the mount point", path)?;
        attach(clone, path).at("leave it real", path)?;
    }
    // By path: the inherited one may lie on what is covered now.
    std::env::set_current_dir(&cwd).at("enter the working directory", cwd.display())?;
    if in_user_namespace {
        drop_rights(CapabilitySet::all()).at("drop the capabilities", "capset")?;
    }
    Ok(())
}

pub fn mount_shm() -> Result<(), IoError> {
    mount_tmpfs(SHM, "mode=1777", MountFlags::NOSUID | MountFlags::NODEV)
}
