//! Builds the mounts of a plan, inside the run's own namespace: called by the init before the command is there.
//!
//! The order matters. The overlays come first, detached: an overlay keeps its own writable clone of the mount that its
//! upper lies on, and an upper on a mount that is read-only already is refused. Then everything becomes read-only. Then
//! the overlays take their places, root's of `/` by pivot_root(2), with the other mounts moved into it. What the kernel made of it all is read back at the end (H1).

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::inside::MARK;
use super::plan::{Laid, Layer, Need, Plan, Route, Target};
use super::sys;
use super::words::{Failed, Word};
use crate::error::{At, IoError, reason};
use crate::fs::dir::{Dir, Sort, leads_nowhere, stat_of};
use crate::fs::mounts::{self, Mount, has};
use crate::fs::path::AbsPath;

/// Why the namespace could not be built.
pub(super) enum Unbuilt {
    /// A call failed.
    Call(IoError),
    /// What is mounted is not what was planned.
    NotAsPlanned(AbsPath, String),
    /// The kernel gives this user no /proc for a PID namespace, since parts of the one that is there are covered.
    NoProc,
}

impl From<IoError> for Unbuilt {
    fn from(error: IoError) -> Self {
        Self::Call(error)
    }
}

impl From<Unbuilt> for Word {
    fn from(unbuilt: Unbuilt) -> Self {
        match unbuilt {
            Unbuilt::Call(error) => Word::Failed(error.into()),
            Unbuilt::NotAsPlanned(path, text) => {
                Word::Failed(Failed { path: path.to_string(), act: String::new(), errno: 0, text })
            }
            Unbuilt::NoProc => Word::NoProc,
        }
    }
}

/// What /proc has that leads out of a run of root: made read-only there.
const PROC_CLOSED: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"];

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

/// What leads a root out of its run; the rest stays, for chown, mknod, chroot, network and the like.
const DROPPED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::SYS_MODULE)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_BOOT)
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::CHECKPOINT_RESTORE);

/// Builds it all; afterwards this process has the rights that the command will have, and stands in its working folder.
/// Gives the places that could not be captured and are read-only, with the reason.
pub(super) fn build(laid: &Laid, own_pids: bool) -> Result<Vec<Uncovered>, Unbuilt> {
    let plan = &laid.plan;
    if plan.route == Route::User {
        map_ids((0, plan.uid), (0, plan.gid))?;
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).at("make the mounts private", "/")?;

    // First, as it may be refused, and an overlay that was made leaves its mark in the work folder.
    let proc = if own_pids { Some(new_proc(plan.route)?) } else { None };
    let (overlays, uncovered) = with_memory(laid, || overlays(laid))?;
    let passes: Vec<OwnedFd> = plan.passes.iter().map(clone_of).collect::<Result<_, _>>()?;
    let devices = if plan.route == Route::Root { Some(Devices::take()?) } else { None };
    sys::close_all_mounts(plan.route == Route::Root).at("make everything else read-only", "/")?;

    let mut overlays = overlays.into_iter().peekable();
    let mut attached = Vec::with_capacity(plan.targets.len());
    if let Some((target, overlay)) = overlays.next_if(|(target, _)| target.path.depth() == 0) {
        become_root(target, &overlay, &plan.hidden)?;
        attached.push(target);
    }
    processes(plan.route, proc)?;
    match devices {
        Some(devices) => devices.attach()?,
        None => user_devices()?,
    }
    for (target, overlay) in overlays {
        match attach_target(target, &overlay) {
            Err(_) if target.need != Need::Must && at_path(&target.path).is_err() => {}
            done => done.map(|()| attached.push(target))?,
        }
    }
    for (path, clone) in plan.passes.iter().zip(passes) {
        attach(&clone, path).at("leave it real", path)?;
    }
    for path in &plan.hidden {
        hide(path, &plan.tag)?;
    }
    mask(&plan.sockets, &attached)?;
    // By path: the inherited working folder still lies on the real, writable mount.
    rustix::process::chdir(plan.cwd.as_path()).at("enter the working folder", &plan.cwd)?;
    verify(plan, &attached)?;
    match plan.route {
        Route::User => {
            // A second user namespace: each mount in it is locked, for a third one made inside as well.
            sys::unshare_user_and_mounts().at("make the inner user namespace", "unshare")?;
            map_ids((plan.uid, 0), (plan.gid, 0))?;
            drop_rights(CapabilitySet::all()).at("drop the capabilities", "capset")?;
        }
        Route::Root => {
            // Before the rights go: without SYS_ADMIN a rule needs no_new_privs, and sudo would be broken.
            sys::deny_pidfd_getfd().at("deny pidfd_getfd", "seccomp")?;
            drop_lead_out().at("drop the capabilities", "capset")?;
        }
    }
    Ok(uncovered)
}

/// Does something while the tmpfs of the uppers is mounted in this namespace: the kernel takes an upper on such a mount alone. An overlay
/// keeps a mount of its own; recant's own one must not become read-only with all others.
fn with_memory<T>(laid: &Laid, act: impl FnOnce() -> Result<T, IoError>) -> Result<T, IoError> {
    let (Some(memory), Some(store)) = (&laid.memory, laid.plan.hidden.first()) else { return act() };
    attach(&memory.mount, store).at("mount the uppers' tmpfs on", store)?;
    let done = act()?;
    rustix::mount::unmount(store.as_path(), UnmountFlags::DETACH).at("unmount the uppers' tmpfs from", store)?;
    Ok(done)
}

/// A place that could not be captured, and why.
pub(super) type Uncovered = (AbsPath, String);

/// An overlay that is not yet anywhere.
type Detached<'a> = (&'a Target, OwnedFd);

/// The overlays of a plan, in path order.
fn overlays(laid: &Laid) -> Result<(Vec<Detached<'_>>, Vec<Uncovered>), IoError> {
    let (mut made, mut uncovered) = (Vec::with_capacity(laid.layers.len()), Vec::new());
    for (layer, target) in laid.layers.iter().zip(&laid.plan.targets) {
        match overlay(laid, layer, target) {
            Ok(overlay) => made.push((target, overlay)),
            // Nothing can be written where it was, nor in what somebody makes there: all that is no overlay is read-only.
            Err(_) if target.need != Need::Must && at_path(&target.path).is_err() => {}
            Err(error) if target.need == Need::OrReadOnly => {
                let why = format!("cannot {}: {}", error.act, reason(&error.source));
                uncovered.push((target.path.clone(), why));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((made, uncovered))
}

/// Maps one user and one group: (inside, outside). user_namespaces(7).
fn map_ids(uid: (u32, u32), gid: (u32, u32)) -> Result<(), IoError> {
    tell("/proc/self/setgroups", "deny").at("deny setgroups for the map", "/proc/self/setgroups")?;
    tell("/proc/self/uid_map", &format!("{} {} 1", uid.0, uid.1)).at("map the user", "/proc/self/uid_map")?;
    tell("/proc/self/gid_map", &format!("{} {} 1", gid.0, gid.1)).at("map the group", "/proc/self/gid_map")
}

/// Writes to a file of /proc: a word to the kernel, in one call.
fn tell(path: &str, text: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    match rustix::io::write(&file, text.as_bytes())? {
        n if n == text.len() => Ok(()),
        _ => Err(Errno::IO.into()),
    }
}

/// Opens what is at `path` to mount on it; no link on the way is followed.
fn at_path(path: &AbsPath) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(CWD, path.as_path(), flags, Mode::empty(), resolve)?)
}

/// The overlay of one target, not yet anywhere. Options are written out, since their defaults are the distribution's.
/// Paths go in as /proc/self/fd/N: no escaping, no limit of 255 bytes.
fn overlay(laid: &Laid, layer: &Layer, target: &Target) -> Result<OwnedFd, IoError> {
    let (plan, path) = (&laid.plan, &target.path);
    // All are opened in here: the mounts of the outer namespace are not this one's.
    let again = |held: &Dir| -> io::Result<OwnedFd> {
        if laid.memory.is_some() {
            return Ok(rustix::io::fcntl_dupfd_cloexec(held, 0)?);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(held.path(), flags, Mode::empty())?;
        let (a, b) = (held.stat()?, stat_of(&fd)?);
        if (a.dev, a.ino) == (b.dev, b.ino) { Ok(fd) } else { Err(Errno::STALE.into()) }
    };
    let lower = match &layer.file {
        None => at_path(path),
        Some((empty, _)) => again(empty),
    };
    let lower = lower.at("open the folder to capture", path)?;
    let upper = again(&layer.upper).at("open the upper folder", layer.upper.path().display())?;
    let work = again(&layer.work).at("open the work folder", layer.work.path().display())?;

    let making = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at("open an overlay", path)?;
    let set = |key: &str, value: &str| rustix::mount::fsconfig_set_string(&making, key, value);
    set("source", &format!("{MARK}{}", plan.tag)).at("name the overlay", path)?;
    set("lowerdir", &sys::held_path(&lower)).at("take the folder as lower of an overlay", path)?;
    set("upperdir", &sys::held_path(&upper)).at("take the folder as upper of an overlay", layer.upper.path().display())?;
    set("workdir", &sys::held_path(&work)).at("take the folder as work folder of an overlay", layer.work.path().display())?;
    // Renaming a folder that was there before: root's overlay can, a user's answers EXDEV whatever is set.
    let redirect = if plan.route == Route::Root { "on" } else { "nofollow" };
    for (key, value) in [("redirect_dir", redirect), ("index", "off"), ("metacopy", "off")] {
        set(key, value).at("set an option of the overlay", path)?;
    }
    match plan.route {
        Route::Root => set("xino", "off").at("set xino=off of the overlay", path)?,
        // Without it the mount succeeds, and renaming any folder is EXDEV.
        Route::User => rustix::mount::fsconfig_set_flag(&making, "userxattr").at("set userxattr of the overlay", path)?,
    }
    // One flush a copied-up file less; recant syncs the upper itself before it calls the session complete.
    rustix::mount::fsconfig_set_flag(&making, "volatile").at("set volatile of the overlay", path)?;
    rustix::mount::fsconfig_create(&making).at("make the overlay: lower, upper", path)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NODEV;
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOSUID, target.nosuid);
    attributes.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, target.noexec);
    let overlay = rustix::mount::fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at("mount the overlay", path)?;
    if layer.file.is_some() { the_file_alone(plan, &overlay, path) } else { Ok(overlay) }
}

/// The one file of an overlay, to be put over the one that is mounted at `path`. Only what is mounted somewhere can be cloned (before
/// Linux 6.15): for a moment it is on a folder that will be hidden.
fn the_file_alone(plan: &Plan, overlay: &OwnedFd, path: &AbsPath) -> Result<OwnedFd, IoError> {
    let (store, (_, name)) = (plan.hidden.first().unwrap_or(path), path.split().unwrap_or_default());
    attach(overlay, store).at("put the overlay of the file on", store)?;
    let clone = store.join(name).map_err(io::Error::other).and_then(|file| clone_at(file.as_path(), false));
    rustix::mount::unmount(store.as_path(), UnmountFlags::DETACH).at("unmount the overlay of the file from", store)?;
    clone.at("clone the copy of the mounted file", path)
}

/// A copy of what is mounted at `path`, all below included, not yet anywhere.
fn clone_of(path: &AbsPath) -> Result<OwnedFd, IoError> {
    clone_at(path.as_path(), true).at("clone the mount", path)
}

fn clone_at(path: &std::path::Path, recursive: bool) -> io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    flags.set(OpenTreeFlags::AT_RECURSIVE, recursive);
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// Puts a mount at `path`.
fn attach(mount: &OwnedFd, path: &AbsPath) -> io::Result<()> {
    let target = at_path(path)?;
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, "", &target, "", both)?)
}

fn attach_to(mount: &OwnedFd, path: &str) -> Result<(), IoError> {
    let parsed = AbsPath::parse(path).map_err(|_| Errno::INVAL).at("put a mount", path)?;
    attach(mount, &parsed).at("put a mount", path)
}

/// Puts an overlay over its folder, and the mounts below it into it. These were made read-only with all the rest.
fn attach_target(target: &Target, overlay: &OwnedFd) -> Result<(), IoError> {
    let nested = nested(target)?;
    make_in_shm(&target.path).at("make the folder again", &target.path)?;
    attach(overlay, &target.path).at("put the overlay", &target.path)?;
    move_in(&nested)
}

/// Makes the overlay of `/` the root of this namespace, with the mounts below in it; the old root goes. It is put on a folder
/// of the old tree for a moment, since pivot_root(2) takes mount points alone: on one that will be hidden.
fn become_root(target: &Target, overlay: &OwnedFd, hidden: &[AbsPath]) -> Result<(), IoError> {
    let nested = nested(target)?;
    let store = hidden.first().unwrap_or(&target.path);
    attach(overlay, store).at("put the overlay of /", store)?;
    rustix::process::fchdir(overlay).at("enter the overlay of", &target.path)?;
    // pivot_root(2), "pivot_root(".", ".")": the old root lies on the new one until it is unmounted.
    rustix::process::pivot_root(".", ".").at("make the overlay the root", &target.path)?;
    move_in(&nested)?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).at("unmount the old root", &target.path)
}

/// Mounts that lie in one folder, which is held before an overlay covers it: a container host has hundreds of them, and each call for
/// each counts.
struct Nested<'a> {
    folder: AbsPath,
    held: OwnedFd,
    mounts: Vec<(&'a AbsPath, &'a [u8])>,
}

/// The mounts below a target, folder by folder. One that is gone by now is left out.
fn nested(target: &Target) -> Result<Vec<Nested<'_>>, IoError> {
    let mut found: Vec<Nested<'_>> = Vec::new();
    for path in &target.nested {
        let Some((folder, name)) = path.parent().zip(path.split().map(|(_, name)| name)) else { continue };
        if found.last().is_none_or(|last| last.folder != folder) {
            match at_path(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                held => {
                    let held = held.at("find the folder of the mount", path)?;
                    found.push(Nested { folder, held, mounts: Vec::new() });
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

/// Whether something is mounted at a name. One whose disk is gone can't be looked at, and is there all the same.
fn is_mounted_at(folder: impl AsFd, name: &[u8]) -> bool {
    match rustix::fs::statx(folder, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, StatxFlags::empty()) {
        Err(Errno::NOENT) => false,
        Ok(stat) => stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        Err(_) => true,
    }
}

/// Moves mounts to where the overlay shows the folder that they lay in.
fn move_in(nested: &[Nested<'_>]) -> Result<(), IoError> {
    for Nested { folder, held, mounts } in nested {
        if mounts.is_empty() {
            continue;
        }
        let shown = at_path(folder).at("find in the overlay", folder)?;
        for (path, name) in mounts {
            match rustix::mount::move_mount(held, *name, &shown, *name, MoveMountFlags::empty()) {
                // Its folder was removed outside, which takes it away here as well. Where the overlay hides its place it is still there.
                Err(Errno::NOENT) if !is_mounted_at(held, name) => {}
                moved => moved.at("move the mount into the overlay", path)?,
            }
        }
    }
    Ok(())
}

/// /dev/shm is the run's own and empty: a captured folder in it needs its mount point made.
fn make_in_shm(path: &AbsPath) -> io::Result<()> {
    let Some(below) = path.as_bytes().strip_prefix(b"/dev/shm/") else { return Ok(()) };
    let mut at = std::path::PathBuf::from("/dev/shm");
    for name in below.split(|b| *b == b'/') {
        at.push(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name));
        match rustix::fs::mkdir(&at, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A /proc of the run's own PIDs, not yet anywhere.
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

/// Puts the run's own /proc. Root's is closed where it leads out (a helper that the kernel starts, sysrq).
fn processes(route: Route, proc: Option<OwnedFd>) -> Result<(), IoError> {
    let Some(proc) = proc else {
        // A whole /proc that is read-only breaks every nested sandbox (uid_map) and oom_score_adj.
        return sys::set_read_only(c"/proc", false).at("make it writable again", "/proc");
    };
    attach_to(&proc, "/proc")?;
    if route == Route::Root {
        for name in PROC_CLOSED {
            let path = format!("/proc/{name}");
            match clone_at(path.as_ref(), false) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                clone => {
                    let clone = clone.at("clone the mount", &path)?;
                    sys::set_read_only_held(clone.as_fd()).at("make it read-only", &path)?;
                    attach_to(&clone, &path)?;
                }
            }
        }
    }
    Ok(())
}

/// The nodes and mounts of the real /dev that a private one gets.
struct Devices {
    nodes: Vec<(String, OwnedFd)>,
    terminals: Option<OwnedFd>,
}

impl Devices {
    /// Takes them from the real /dev, before all devices are switched off.
    fn take() -> Result<Self, IoError> {
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
    fn attach(self) -> Result<(), IoError> {
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
fn user_devices() -> Result<(), IoError> {
    if is_mount("/dev/pts") {
        // A mount that was read-only or locked before can't be changed: then it was so outside, too.
        let _kept = sys::set_read_only(c"/dev/pts", false);
    }
    if Dir::open("/dev/shm".as_ref()).is_ok() { mount_shm() } else { Ok(()) }
}

fn is_mount(path: &str) -> bool {
    Dir::open(path.as_ref()).and_then(|dir| dir.stat()).is_ok_and(|stat| stat.mount_root)
}

fn mount_shm() -> Result<(), IoError> {
    mount_tmpfs("/dev/shm", "mode=1777", MountFlags::NOSUID | MountFlags::NODEV)
}

fn mount_tmpfs(path: &str, options: &str, flags: MountFlags) -> Result<(), IoError> {
    let options = CString::new(options).map_err(|_| Errno::INVAL).at("mount a tmpfs", path)?;
    rustix::mount::mount("recant", path, "tmpfs", flags, options.as_c_str()).at("mount a tmpfs", path)
}

/// Puts /dev/null over sockets that are not dead by lying in an overlay: connect(2) then answers ECONNREFUSED. One that this
/// user can't get at needs nothing.
fn mask(sockets: &[AbsPath], attached: &[&Target]) -> Result<(), IoError> {
    if sockets.is_empty() {
        return Ok(());
    }
    let look = |path: &AbsPath| match at_path(path).and_then(stat_of) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if leads_nowhere(&error) || error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        // Not seen for want of memory, say, it would be left alive.
        Err(error) => Err(error).at("look at", path),
    };
    let mut overlays = HashSet::new();
    for target in attached {
        overlays.extend(look(&target.path)?.map(|stat| stat.mount));
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
    sys::set_read_only_held(null.as_fd()).at("make it read-only", path)?;
    attach(&null, path).at("hide the file", path)
}

/// Hides a folder behind an empty tmpfs, a file behind /dev/null.
fn hide(path: &AbsPath, tag: &str) -> Result<(), IoError> {
    let target = at_path(path).at("find what is to be hidden", path)?;
    if stat_of(&target).at("look at what is to be hidden", path)?.sort != Sort::Folder {
        return cover_file(path);
    }
    let making = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at("open a tmpfs", path)?;
    for (key, value) in [("source", format!("{MARK}{tag}")), ("size", "4k".into()), ("mode", "0".into())] {
        rustix::mount::fsconfig_set_string(&making, key, &value).at("set an option of a tmpfs", path)?;
    }
    rustix::mount::fsconfig_create(&making).at("make a tmpfs", path)?;
    let empty = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let tmpfs = rustix::mount::fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, empty).at("mount a tmpfs", path)?;
    attach(&tmpfs, path).at("hide the folder", path)
}

/// H1: reads back what is mounted. Each captured place is our overlay with our options, each hidden one our tmpfs, and
/// nothing else is writable.
fn verify(plan: &Plan, attached: &[&Target]) -> Result<(), Unbuilt> {
    let mounts = mounts::read().at("read the mounts", "/proc/self/mountinfo")?;
    let at = |path: &AbsPath| -> Result<&Mount, Unbuilt> {
        let id = stat_of(at_path(path).at("find the mount", path)?).at("find the mount", path)?.mount;
        mounts.iter().find(|m| m.id == id).ok_or_else(|| Unbuilt::NotAsPlanned(path.clone(), "its mount is not listed".into()))
    };
    let mut writable = HashSet::new();
    let source = format!("{MARK}{}", plan.tag).into_bytes();
    for target in attached {
        let mount = at(&target.path)?;
        if let Some(wrong) = wrong_overlay(mount, &source, plan.route) {
            return Err(Unbuilt::NotAsPlanned(target.path.clone(), wrong));
        }
        writable.insert(mount.id);
    }
    for path in &plan.passes {
        writable.insert(at(path)?.id);
    }
    for own in ["/dev/pts", "/dev/shm", "/proc"].into_iter().filter_map(|path| AbsPath::parse(path).ok()) {
        // Only where it is a mount of its own: else this is the one that it lies in.
        if let Some(mount) = at(&own).ok().filter(|mount| mount.point == own) {
            writable.insert(mount.id);
        }
    }
    for path in &plan.hidden {
        let mount = at(path)?;
        if mount.point != *path || !has(&mount.options, "ro") {
            return Err(Unbuilt::NotAsPlanned(path.clone(), "it could not be hidden".into()));
        }
    }
    let passed = |m: &Mount| plan.passes.iter().any(|path| m.point.is_under(path));
    // A read-only file system whose mount is not so counts as writable here: it can be remounted from outside.
    match mounts.iter().find(|m| !has(&m.options, "ro") && !writable.contains(&m.id) && !passed(m)) {
        Some(open) => Err(Unbuilt::NotAsPlanned(open.point.clone(), "its mount is still writable".into())),
        None => Ok(()),
    }
}

/// What is wrong with a mount that should be our overlay. The kernel shows only options that differ from its defaults, and
/// silently falls back where the upper's file system lacks something.
fn wrong_overlay(mount: &Mount, source: &[u8], route: Route) -> Option<String> {
    let shown = &mount.super_options;
    let value = |key: &str| shown.split(',').find_map(|o| o.strip_prefix(key)?.strip_prefix('='));
    let wrong = if mount.fs_type != "overlay" || mount.source != source {
        "no overlay is there"
    } else if mount.read_only() {
        "its overlay is read-only"
    // Newer kernels write it as one of three kinds of fsync.
    } else if !has(shown, "volatile") && value("fsync") != Some("volatile") {
        "its overlay is not volatile"
    } else if (route == Route::User) != has(shown, "userxattr") {
        "its overlay has the wrong kind of extended attributes"
    } else if value("uuid") == Some("null") {
        "the store's file system can hold no extended attributes for an overlay: put it elsewhere with --store DIR"
    } else if value("index").is_some_and(|v| v != "off") || value("metacopy").is_some_and(|v| v != "off") {
        "its overlay has index or metacopy on"
    } else if route == Route::User && value("redirect_dir").is_some_and(|v| v != "nofollow") {
        "its overlay follows redirects"
    } else if route == Route::Root && value("redirect_dir") != Some("on") && !redirects_by_default() {
        "its overlay can't rename folders"
    } else {
        return None;
    };
    Some(wrong.into())
}

/// Whether this kernel's overlays have `redirect_dir=on` unasked: then they do not show it.
fn redirects_by_default() -> bool {
    std::fs::read("/sys/module/overlay/parameters/redirect_dir").is_ok_and(|value| value.starts_with(b"Y"))
}

/// Gives up what leads a root out of its run.
pub(super) fn drop_lead_out() -> io::Result<()> {
    drop_rights(DROPPED)
}

/// Gives up capabilities for good: also what a program with file capabilities or setuid root could get back.
fn drop_rights(dropped: CapabilitySet) -> io::Result<()> {
    let sets = rustix::thread::capabilities(None)?;
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if dropped.intersects(one) {
            match rustix::thread::remove_capability_from_bounding_set(one) {
                Ok(()) => {}
                // Above the last that this kernel has.
                Err(Errno::INVAL) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let keep = |set: CapabilitySet| set.difference(dropped);
    Ok(rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: keep(sets.effective), permitted: keep(sets.permitted), inheritable: keep(sets.inheritable) },
    )?)
}
