//! Checks that the caller may do what is planned, and that it fits, before the first effect.

use std::collections::BTreeMap;

use rustix::fs::{Access, AtFlags};
use rustix::thread::CapabilitySet;

use super::draft::Draft;
use super::road::FileSystem;
use crate::checkpoint::Kept;
use crate::engine::error::{no_room, refused_at};
use crate::engine::item::{Frame, Item};
use crate::engine::reach::{Named, parent_of};
use crate::engine::step::Act;
use crate::engine::work::metadata::{ACL, CAPABILITY, has};
use crate::error::{Against, At, BY_ROOT, Error, IoError};
use crate::fs::{AbsPath, Dir, Entry, Fs, Sort, Stat};
use crate::settings;
use crate::tree::Meta;

impl Draft<'_> {
    /// The directories that exist now and in which names change.
    pub fn worked_in(&mut self, items: &[Item]) -> Result<BTreeMap<AbsPath, Stat>, Error> {
        let (mut directories, mut refused): (BTreeMap<AbsPath, Stat>, _) = (BTreeMap::new(), Vec::new());
        let mut last: &[u8] = b"";
        for item in items.iter().filter(|item| item.moves()) {
            let Some((above, _)) = item.path.split() else { continue };
            if above == last {
                continue;
            }
            last = above;
            let parent = parent_of(&item.path)?;
            let mut nearest = self.not_missing(Some(parent));
            while let Some(directory) = nearest.filter(|directory| !directories.contains_key(directory)) {
                match self.reach.roots.directory(&directory) {
                    Ok(dir) => {
                        // The road by copies puts its temporary names into the nearest directory that exists.
                        let stat = dir.stat()?;
                        refused.extend(self.not_workable(&directory, &dir, &stat)?);
                        directories.insert(directory, stat);
                        break;
                    }
                    Err(error) if error.leads_nowhere() => {
                        nearest = directory.parent();
                        self.missing = Some(directory);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        refused.extend(self.frozen(items, &directories)?);
        refused.extend(self.bound_names(items, &directories)?);
        if refused.is_empty() { Ok(directories) } else { Err(crate::engine::error::refused(refused)) }
    }

    /// The reason why names in a directory cannot be changed. The user's own directories can be opened for the work.
    fn not_workable(&mut self, path: &AbsPath, dir: &Dir, stat: &Stat) -> Result<Option<Against>, Error> {
        let root = self.reach.roots.root_of(path)?;
        if root.mount.read_only() {
            return Ok(Some(Against::new(path, format!("the file system mounted at {} is read-only", root.mount.point))));
        }
        if FileSystem::of(&root.mount).has_subvolumes && is_frozen(dir.at(b".")) {
            return Ok(Some(Against::new(path, FROZEN)));
        }
        if self.me.is_root() || stat.uid == self.me.as_raw() {
            return Ok(None);
        }
        let why = || format!("the directory is read-only for you (owner {}, mode {:04o})", stat.uid, stat.mode);
        let allowed = rustix::fs::accessat(dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
        Ok(allowed.is_err().then(|| Against::new(path, why())))
    }

    /// Objects to change in place, and directories to go, in a read-only subvolume.
    fn frozen(&mut self, items: &[Item], directories: &BTreeMap<AbsPath, Stat>) -> Result<Vec<Against>, Error> {
        let mut refused = Vec::new();
        let is_known = |item: &&Item| directories.contains_key(&item.path);
        for item in items.iter().filter(|item| item.act == Act::SetMeta || item.leaves_directory() && !is_known(item)) {
            let parent = parent_of(&item.path)?;
            if FileSystem::of(self.reach.roots.mount_of(&parent)?).has_subvolumes && is_frozen(self.reach.path(&item.path)?.at())
            {
                refused.push(Against::new(&item.path, FROZEN));
            }
        }
        Ok(refused)
    }

    /// Names that the caller may not remove: another user's in a sticky directory, and another user's directories without `w` for the
    /// caller, whose parent cannot change (rename(2)).
    fn bound_names(&mut self, items: &[Item], directories: &BTreeMap<AbsPath, Stat>) -> Result<Vec<Against>, Error> {
        if self.me.is_root() {
            return Ok(Vec::new());
        }
        let me = self.me.as_raw();
        let mut refused = Vec::new();
        for item in items {
            let Some(from) = &item.from else { continue };
            let (meta, path) = (&from.state.meta, &item.path);
            if item.act == Act::SetMeta {
                let foreign = || format!("only its owner (user {}) may change its metadata", meta.uid);
                let lost = || item.to.as_ref().and_then(|to| lost_by_owner(meta, &to.state.meta));
                let why = if meta.uid != me { Some(foreign()) } else { lost() };
                refused.extend(why.map(|why| Against::new(path, why)));
                continue;
            }
            let Some((above, parent)) = path.parent().and_then(|above| directories.get_key_value(&above)) else { continue };
            if !item.moves() {
                continue;
            }
            if parent.mode & 0o1000 != 0 && meta.uid != me && parent.uid != me {
                refused.push(Against::new(path, format!("it belongs to user {} and lies in a sticky directory", meta.uid)));
            } else if item.leaves_directory() && meta.uid != me {
                let dir = self.reach.roots.directory(above)?;
                if rustix::fs::accessat(&*dir, path.name(), Access::WRITE_OK, AtFlags::EACCESS).is_err() {
                    refused
                        .push(Against::new(path, format!("the directory belongs to user {} and you may not move it", meta.uid)));
                }
            }
        }
        Ok(refused)
    }

    /// Checks owners: a user makes only files of their own, and cannot give them away (chown(2)).
    pub fn check_owner(&self, item: &Item) -> Result<(), Error> {
        let is_copied = item.beside.is_some() && !matches!(item.kept, Kept::Uncovered { .. });
        let comes_as_it_is = item.planning.as_it_is || item.planning.owned && !item.fresh;
        let (from, to) = (item.from.as_ref().filter(|_| is_copied), item.to.as_ref().filter(|_| !comes_as_it_is));
        let kept = "the object there, of which the store can keep only a copy,";
        let made = [(from, kept), (to, "the new object")];
        let foreign = made.into_iter().find_map(|(seen, what)| {
            let meta = &seen?.state.meta;
            if meta.uid != self.me.as_raw() {
                // Metadata of somebody else's object is set then.
                let able = has(CapabilitySet::CHOWN | CapabilitySet::FOWNER);
                return (!able).then(|| format!("{what} belongs to user {}", meta.uid));
            }
            // On the tree a new object may get its group from its directory; in the store it does not.
            let is_foreign = is_copied && what == kept && !is_in_group(meta.gid) && !has(CapabilitySet::CHOWN);
            is_foreign.then(|| format!("{what} belongs to group {}", meta.gid))
        });
        let has_capability = from.is_some_and(|from| from.state.meta.xattr(CAPABILITY).is_some());
        if has_capability && !has(CapabilitySet::SETFCAP) {
            return Err(refused_at(&item.path, format!("{kept} has a capability, which only root can set; {BY_ROOT}")));
        }
        let Some(whose) = foreign.filter(|_| !self.me.is_root()) else { return Ok(()) };
        let why = format!("{whose}, and user {} cannot give a file to it; {BY_ROOT}", self.me.as_raw());
        Err(refused_at(&item.path, why))
    }

    pub fn check_room(&mut self, items: &[Item], frame: &Frame<'_>) -> Result<(), Error> {
        let mut needed: BTreeMap<AbsPath, u64> = BTreeMap::new();
        let mut in_store = 0;
        for item in items.iter().filter(|item| item.moves()) {
            if frame.places(item).copied {
                in_store += item.from.as_ref().map_or(0, |from| from.blocks);
            }
            let Some(directory) = &item.beside else { continue };
            if let Some(to) = &item.to {
                let root = self.reach.roots.root_of(directory)?;
                *needed.entry(root.mount.point.clone()).or_default() += to.blocks;
            }
        }
        let mut short = Vec::new();
        let mut check = |dir: &Dir, what: String, need: u64| -> Result<(), Error> {
            short.extend(lacks(dir, &what, need)?.map(|why| Against::new(what, why)));
            Ok(())
        };
        for (point, need) in needed {
            let root = self.reach.roots.root_of(&point)?;
            check(&root.dir, point.to_string(), need)?;
        }
        if in_store > 0 {
            check(&self.session.dir, self.session.dir.path().display().to_string(), in_store)?;
        }
        if short.is_empty() { Ok(()) } else { Err(no_room(short)) }
    }
}

const FROZEN: &str = "it lies in a read-only subvolume";

/// True if the object lies in a read-only subvolume, or is one: nothing in it can change, not even by root.
fn is_frozen(at: Entry<'_>) -> bool {
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::accessat(at.dir, at.name, Access::WRITE_OK, flags) == Err(rustix::io::Errno::ROFS)
}

/// True if a setgid bit survives chmod(2), which clears it if the caller is not in the group.
pub fn keeps_setgid(mode: u32, gid: u32) -> bool {
    mode & 0o2000 == 0 || is_in_group(gid) || has(CapabilitySet::FSETID)
}

/// The metadata that an owner outside a group could not set or restore (chown(2), chmod(2)).
fn lost_by_owner(from: &Meta, to: &Meta) -> Option<String> {
    if from.gid != to.gid && !has(CapabilitySet::CHOWN) {
        let foreign = [from.gid, to.gid].into_iter().find(|gid| !is_in_group(*gid));
        return foreign.map(|gid| format!("you are not in group {gid}, so you cannot set or restore that group; {BY_ROOT}"));
    }
    let differs = |name: &[u8]| from.xattr(name) != to.xattr(name);
    let is_closed = [from, to].iter().any(|meta| meta.mode & 0o200 == 0);
    let is_set = from.mode != to.mode || differs(ACL) || is_closed && from.xattrs != to.xattrs;
    let bare = [from, to].into_iter().find(|meta| is_set && !keeps_setgid(meta.mode, meta.gid))?;
    Some(format!("you are not in group {}, so its setgid bit would be lost; {BY_ROOT}", bare.gid))
}

fn is_in_group(gid: u32) -> bool {
    let of_caller = |groups: Vec<rustix::process::Gid>| groups.iter().any(|group| group.as_raw() == gid);
    rustix::process::getegid().as_raw() == gid || rustix::process::getgroups().is_ok_and(of_caller)
}

/// The bytes that a file system lacks.
fn lacks(within: impl std::os::fd::AsFd, what: &str, need: u64) -> Result<Option<String>, Error> {
    let vfs = rustix::fs::fstatvfs(within).at("ask for the free room of", what)?;
    let free = vfs.f_bavail.saturating_mul(vfs.f_frsize);
    Ok((need > free).then(|| format!("{} are needed there, and {} are free", settings::bytes(need), settings::bytes(free))))
}

/// Runs `act`, with the directories that it moves and works in opened if need be; each gets its mode back. A power cut may have undone
/// the opening of a user's own directory but not the work in it, or somebody has closed it since.
pub fn with_rights(fs: &Fs, names: [&Named<'_>; 2], act: impl Fn() -> Result<(), IoError>) -> Result<(), IoError> {
    let refused = match act() {
        Err(error) if error.errno() == Some(libc::EACCES) => error,
        done => return done,
    };
    let mut opened = Vec::new();
    let done = match open_up(fs, names, &mut opened) {
        Ok(()) if opened.is_empty() => Err(refused),
        Ok(()) => act(),
        Err(error) => Err(error),
    };
    // What was moved has its other name now, and is closed before its directory is. All are tried; the first error is returned.
    let closed = opened.into_iter().rev().map(|closed| close(fs, names, closed)).fold(Ok(()), Result::and);
    done.and(closed)
}

/// An opened directory, and its stat before.
type Opened<'a> = (Entry<'a>, Stat);

fn open_up<'a>(fs: &Fs, names: [&'a Named<'_>; 2], opened: &mut Vec<Opened<'a>>) -> Result<(), IoError> {
    let me = rustix::process::geteuid().as_raw();
    // A directory that gets another parent is itself written to: its `..`.
    for at in names.iter().map(|named| named.dir.at(b".")).chain(names.iter().map(|named| named.at())) {
        let closed = at.stat()?.filter(|stat| stat.sort == Sort::Directory && stat.uid == me && stat.mode & 0o700 != 0o700);
        if let Some(stat) = closed.filter(|stat| keeps_setgid(stat.mode, stat.gid)) {
            fs.set_mode(at, stat.mode | 0o700)?;
            opened.push((at, stat));
        }
    }
    Ok(())
}

fn close(fs: &Fs, names: [&Named<'_>; 2], (at, closed): Opened<'_>) -> Result<(), IoError> {
    for spot in [at, names[0].at(), names[1].at()] {
        if spot.stat()?.is_some_and(|stat| stat.inode() == closed.inode()) {
            return fs.set_mode(spot, closed.mode);
        }
    }
    Ok(())
}
