//! Builds the mounts of a plan, inside the run's own namespace: called by the init before the command starts.
//!
//! The order matters. The overlays come first, detached: an overlay keeps its own writable clone of the mount that its upper lies on, and
//! an upper on a read-only mount is refused. Then everything becomes read-only. Then the overlays take their places: root's of `/` by
//! pivot_root(2), with the other mounts moved into it. At the end the mounts are read back (H1).

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags};

use super::attach::{Unbuilt, at_path, attach, attach_as, attach_to, clone_at, clone_of, directory_at, make_in_dev};
use super::check_mounts::verify;
use super::devices::Devices;
use super::mount_pieces::Ready;
use super::overlay::{Layers, Uncovered, opened_here, overlay_of};
use super::refusals::acts;
pub use super::shm::part as part_shm;
use super::{hidden, mount_covers, mount_pieces};
use crate::capture::place::layout::{Attached, Layer, Need, Route, Target};
use crate::capture::place::mount_plan::{Laid, Plan};
use crate::capture::run::door::Door;
use crate::capture::run::raw_calls;
use crate::error::{At, IoError, reason};
use crate::fs::{AbsPath, Dir, Sort, leads_nowhere, stat_of};

/// The names in /proc that lead out of a run of root: made read-only there.
const PROC_CLOSED: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"];

/// Builds all mounts. Afterwards this process is in the command's working directory, and has more rights than the command will have. Returns the
/// places that could not be captured and are read-only, with the reason.
pub fn build(laid: &Laid, door: Option<&Door>, own_pids: bool, recant: &UnixStream) -> Result<Vec<Uncovered>, Unbuilt> {
    let plan = &laid.plan;
    let mapped = if plan.route == Route::User { plan.ids.map_outer(recant)? } else { Vec::new() };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).at(acts::PRIVATE, "/")?;

    // First, as it may be refused, and a made overlay leaves its mark in the work directory.
    let proc = if own_pids { Some(new_proc(plan.route)?) } else { None };
    let (overlays, mut uncovered) = with_memory(laid, || overlays(laid))?;
    let passes: Vec<(&AbsPath, OwnedFd)> =
        plan.passes.iter().map(|path| Ok((path, real_at(path)?))).collect::<Result<_, IoError>>()?;
    let own_store = plan.request.own_store.as_ref().map(real_at).transpose()?;
    let devices = Devices::take(plan)?;
    raw_calls::close_all_mounts().at("make everything else read-only", "/")?;

    let mut overlays = overlays.into_iter().peekable();
    let mut attached = Vec::with_capacity(plan.targets.len());
    if let Some(top) = overlays.next_if(|made| made.target.path.depth() == 0) {
        become_root(top.target, &top.overlay, &plan.hidden)?;
        attached.push(top.target.attached());
    }
    processes(plan.route, proc)?;
    devices.attach(&passes)?;
    let (dead, mut open) = mount_covers::cover_all(&plan.covers)?;
    uncovered.append(&mut open);
    for made in overlays {
        let target = made.target;
        match attach_target(plan, made, &mut attached) {
            Err(error) if target.need != Need::Must && (target.has_gone_by(&error) || at_path(&target.path).is_err()) => {}
            done => done?,
        }
    }
    for (path, clone) in passes {
        attach(&clone, path).at("leave it real", path)?;
    }
    hidden::hide(plan, door.filter(|_| own_store.is_none()))?;
    if let (Some(own), Some(store)) = (&own_store, plan.hidden.first()) {
        // Over the mount that hides the store, and by which processes inside know the run. A door that cannot be opened stays closed.
        let _closed = door.map(|door| door.open_in(own.as_fd()));
        attach(own, store).at("give the run its own store at", store)?;
    }
    mask(&plan.sockets, &attached, dead)?;
    // By path: the inherited working directory still lies on the real, writable mount.
    rustix::process::chdir(plan.request.cwd.as_path()).at("enter the working directory", &plan.request.cwd)?;
    verify(plan, &attached)?;
    if plan.route == Route::User {
        // A second user namespace: each mount in it is locked, even for a third one made inside.
        plan.ids.enter_inner(&mapped)?;
    }
    Ok(uncovered)
}

/// A clone of the mount at a path that stays real. Root's command could make any device's node in a directory, and leave programs with the
/// rights of their owner; what is passed in /dev is there to be used.
fn real_at(path: &AbsPath) -> Result<OwnedFd, IoError> {
    let clone = clone_of(path)?;
    let is_directory = stat_of(&clone).at("look at", path)?.sort == Sort::Directory;
    if is_directory && !path.as_bytes().starts_with(b"/dev/") {
        raw_calls::set_without_rights(clone.as_fd()).at("close to device nodes", path)?;
    }
    Ok(clone)
}

/// Calls `act` while the uppers' tmpfs is mounted in this namespace: the kernel takes an upper only on such a mount. An overlay keeps a
/// mount of its own; the one made here must not become read-only with all others.
fn with_memory<T>(laid: &Laid, act: impl FnOnce() -> Result<T, IoError>) -> Result<T, IoError> {
    let (Some(memory), Some(store)) = (&laid.memory, laid.plan.hidden.first()) else { return act() };
    attach(&memory.mount, store).at("mount the uppers' tmpfs on", store)?;
    let done = act()?;
    rustix::mount::unmount(store.as_path(), UnmountFlags::DETACH).at("unmount the uppers' tmpfs from", store)?;
    Ok(done)
}

/// An overlay that is not mounted yet.
struct Detached<'a> {
    target: &'a Target,
    overlay: OwnedFd,
    /// The pieces to put into it, if its directory is split.
    pieces: Vec<Ready<'a>>,
}

/// The overlays of a plan, in path order.
fn overlays(laid: &Laid) -> Result<(Vec<Detached<'_>>, Vec<Uncovered>), IoError> {
    // The numbers of descriptors are paths from here. The working directory is entered at the end.
    rustix::process::chdir("/proc/self/fd").at("enter", "/proc/self/fd")?;
    let (mut made, mut uncovered) = (Vec::with_capacity(laid.layers.len()), Vec::new());
    for (layer, target) in laid.layers.iter().zip(&laid.plan.targets) {
        match overlay(laid, layer, target, &mut uncovered) {
            Ok(overlay) => made.push(overlay),
            // Nothing can be written at its old place, nor in what somebody makes there: all that is no overlay is read-only.
            Err(error) if target.need != Need::Must && (target.has_gone_by(&error) || at_path(&target.path).is_err()) => {}
            Err(error) if target.need == Need::OrReadOnly => {
                let why = format!("cannot {}: {}", error.act, reason(&error.source));
                uncovered.push((target.path.clone(), why));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((made, uncovered))
}

/// The overlay of one target, not mounted yet, with those of its pieces.
fn overlay<'a>(
    laid: &'a Laid,
    layer: &'a Layer,
    target: &'a Target,
    uncovered: &mut Vec<Uncovered>,
) -> Result<Detached<'a>, IoError> {
    let (plan, path) = (&laid.plan, &target.path);
    // All are opened here: the outer namespace's mounts are not this one's.
    let again = |held: &Dir| -> io::Result<OwnedFd> {
        if laid.memory.is_some() {
            return Ok(rustix::io::fcntl_dupfd_cloexec(held, 0)?);
        }
        opened_here(held)
    };
    let lower = layer.lower.as_ref().map_or_else(|| directory_at(path), again);
    let mut lowers = Vec::with_capacity(layer.sealed.len() + 1);
    for sealed in &layer.sealed {
        lowers.push(again(sealed).at("open the sealed upper", sealed.path().display())?);
    }
    lowers.push(lower.at("open the directory to capture", path)?);
    let layers = Layers {
        lowers,
        upper: again(&layer.upper).at("open the upper directory", layer.upper.path().display())?,
        work: again(&layer.work).at("open the work directory", layer.work.path().display())?,
    };
    let pieces = match &layer.split {
        None => Vec::new(),
        Some(split) => mount_pieces::ready(plan, target, split, &layers, uncovered)?,
    };
    let overlay = overlay_of(plan, target, path, &layers)?;
    let overlay = if target.sort == Sort::File { the_file_alone(plan, &overlay, path)? } else { overlay };
    Ok(Detached { target, overlay, pieces })
}

/// The one file of an overlay, to be put over the file that is mounted at `path`. Only a mounted file can be cloned (before Linux 6.15):
/// for a moment the overlay is on a directory that will be hidden.
fn the_file_alone(plan: &Plan, overlay: &OwnedFd, path: &AbsPath) -> Result<OwnedFd, IoError> {
    let (store, (_, name)) = (plan.hidden.first().unwrap_or(path), path.split().unwrap_or_default());
    attach(overlay, store).at("put the overlay of the file on", store)?;
    let clone = store.join(name).map_err(io::Error::other).and_then(|file| clone_at(file.as_path(), false));
    rustix::mount::unmount(store.as_path(), UnmountFlags::DETACH).at("unmount the overlay of the file from", store)?;
    clone.at("clone the copy of the mounted file", path)
}

/// Puts an overlay over its directory, and the mounts below into it. These were made read-only with all the rest.
fn attach_target(plan: &Plan, made: Detached<'_>, attached: &mut Vec<Attached>) -> Result<(), IoError> {
    let target = made.target;
    let nested = nested(target)?;
    make_in_dev(&target.path, target.sort).at("make the mount point", &target.path)?;
    let real = at_path(&target.path).at("open what the overlay will cover", &target.path)?;
    attach_as(target.sort, &made.overlay, &target.path).at("put the overlay", &target.path)?;
    attached.push(target.attached());
    move_in(&nested)?;
    mount_pieces::attach_pieces(plan, &real, made.pieces, attached)
}

/// Makes the overlay of `/` the root of this namespace, with the mounts below in it; the old root is unmounted. For a moment the overlay
/// lies on a directory of the old tree that will be hidden, since pivot_root(2) takes mount points only.
fn become_root(target: &Target, overlay: &OwnedFd, hidden: &[AbsPath]) -> Result<(), IoError> {
    let nested = nested(target)?;
    let store = hidden.first().unwrap_or(&target.path);
    attach_as(Sort::Directory, overlay, store).at("put the overlay of /", store)?;
    rustix::process::fchdir(overlay).at("enter the overlay of", &target.path)?;
    // pivot_root(2), "pivot_root(".", ".")": the old root lies on the new one until it is unmounted.
    rustix::process::pivot_root(".", ".").at("make the overlay the root", &target.path)?;
    move_in(&nested)?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).at("unmount the old root", &target.path)
}

/// Mounts that lie in one directory, which is held before an overlay covers it: a container host has hundreds of them, and each saved call
/// counts.
struct Nested<'a> {
    directory: AbsPath,
    held: OwnedFd,
    mounts: Vec<(&'a AbsPath, &'a [u8])>,
}

/// The mounts below a target, directory by directory. One that is gone by now is left out.
fn nested(target: &Target) -> Result<Vec<Nested<'_>>, IoError> {
    let mut found: Vec<Nested<'_>> = Vec::new();
    for path in &target.nested {
        let Some((directory, name)) = path.parent().zip(path.split().map(|(_, name)| name)) else { continue };
        if found.last().is_none_or(|last| last.directory != directory) {
            match at_path(&directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                held => {
                    let held = held.at("find the directory of the mount", path)?;
                    found.push(Nested { directory, held, mounts: Vec::new() });
                }
            }
        }
        let Some(last) = found.last_mut() else { continue };
        if is_mounted_at(&last.held, name) {
            last.mounts.push((path, name));
        }
    }
    Ok(found)
}

/// Tells whether something is mounted at a name. A mount whose disk is gone can't be looked at, and still counts.
fn is_mounted_at(directory: impl AsFd, name: &[u8]) -> bool {
    match rustix::fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, StatxFlags::empty()) {
        Err(Errno::NOENT) => false,
        Ok(stat) => stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        Err(_) => true,
    }
}

/// Moves mounts to where the overlay shows their directory.
fn move_in(nested: &[Nested<'_>]) -> Result<(), IoError> {
    for Nested { directory, held, mounts } in nested {
        if mounts.is_empty() {
            continue;
        }
        let shown = at_path(directory).at("find in the overlay", directory)?;
        for (path, name) in mounts {
            match rustix::mount::move_mount(held, *name, &shown, *name, MoveMountFlags::empty()) {
                // Its directory was removed outside, which removes it here too. If the overlay hides its place, it is still there.
                Err(Errno::NOENT) if !is_mounted_at(held, name) => {}
                moved => moved.at("move the mount into the overlay", path)?,
            }
        }
    }
    Ok(())
}

/// A /proc of the run's own PIDs, not mounted yet.
fn new_proc(route: Route) -> Result<OwnedFd, Unbuilt> {
    let making = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC).at("open the run's own", "/proc")?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let made = rustix::mount::fsconfig_create(&making)
        .and_then(|()| rustix::mount::fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, attributes));
    match made {
        Err(Errno::PERM) if route == Route::User => Err(Unbuilt::NoProc),
        made => Ok(made.at("mount the run's own", "/proc")?),
    }
}

/// Mounts the run's own /proc. Root's is closed where it leads out (a helper that the kernel starts, sysrq).
fn processes(route: Route, proc: Option<OwnedFd>) -> Result<(), IoError> {
    let Some(proc) = proc else {
        // A wholly read-only /proc breaks every nested sandbox (uid_map) and oom_score_adj.
        return raw_calls::set_read_only(c"/proc", false).at("make it writable again", "/proc");
    };
    attach_to(&proc, "/proc")?;
    if route == Route::Root {
        for name in PROC_CLOSED {
            let path = format!("/proc/{name}");
            match clone_at(path.as_ref(), false) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                clone => {
                    let clone = clone.at("clone the mount", &path)?;
                    raw_calls::set_read_only_held(clone.as_fd()).at("make it read-only", &path)?;
                    attach_to(&clone, &path)?;
                }
            }
        }
    }
    Ok(())
}

/// Puts /dev/null over sockets that are not dead already by lying in an overlay or in one of the mounts `dead`: connect(2) then fails with
/// ECONNREFUSED. A socket that this user can't reach needs nothing.
fn mask(sockets: &[AbsPath], attached: &[Attached], dead: Vec<u64>) -> Result<(), IoError> {
    if sockets.is_empty() {
        return Ok(());
    }
    let look = |path: &AbsPath| match at_path(path).and_then(stat_of) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if leads_nowhere(&error) || error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        // Any other error, such as too little memory, would leave it alive.
        Err(error) => Err(error).at("look at", path),
    };
    let mut overlays: HashSet<u64> = dead.into_iter().collect();
    for place in attached {
        // The kernel unmounts an overlay from a directory that somebody removes: a new one of that name is on a real mount.
        overlays.extend(look(&place.path)?.filter(|stat| stat.mount_root).map(|stat| stat.mount));
    }
    for path in sockets {
        if look(path)?.is_some_and(|stat| stat.sort == Sort::Socket && !overlays.contains(&stat.mount)) {
            cover_file(path)?;
        }
    }
    Ok(())
}

/// Puts /dev/null over a file.
fn cover_file(path: &AbsPath) -> Result<(), IoError> {
    let null = clone_at("/dev/null".as_ref(), false).at("clone the device node", "/dev/null")?;
    raw_calls::set_read_only_held(null.as_fd()).at("make it read-only", path)?;
    attach(&null, path).at("hide the file", path)
}
