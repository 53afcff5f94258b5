//! Reads back the mounts that the kernel made for a run.

use std::collections::HashSet;

use super::attach::{Unbuilt, at_path};
use crate::capture::place::layout::{Attached, Need, Route};
use crate::capture::place::mount_plan::Plan;
use crate::capture::run::is_inside::MARK;
use crate::error::{At, IoError};
use crate::fs::{AbsPath, Mount, Sort, Stat, has, mounts, stat_of};

/// H1: reads back the mounts. Each captured place must be our overlay with our options, each hidden one our tmpfs, and nothing else
/// writable.
pub fn verify(plan: &Plan, attached: &[Attached]) -> Result<(), Unbuilt> {
    let mounts = mounts::read().at("read the mounts", "/proc/self/mountinfo")?;
    let source = format!("{MARK}{}", plan.request.tag).into_bytes();
    let mut check = Check { plan, mounts: &mounts, source, writable: HashSet::new() };
    for place in attached {
        check.overlay(place)?;
    }
    for path in &plan.passes {
        let id = check.mount_at(path)?.id;
        check.writable.insert(id);
    }
    for own in ["/dev/pts", "/dev/shm", "/proc"].into_iter().filter_map(|path| AbsPath::parse(path).ok()) {
        // Only if it is a mount of its own: else this is the mount that it lies in.
        if let Some(mount) = check.mount_at(&own).ok().filter(|mount| mount.point == own) {
            check.writable.insert(mount.id);
        }
    }
    check.hidden()?;
    check.nothing_else()
}

struct Check<'a> {
    plan: &'a Plan,
    mounts: &'a [Mount],
    /// The source of the run's own mounts.
    source: Vec<u8>,
    /// The ids of the mounts that may be writable.
    writable: HashSet<u64>,
}

impl<'a> Check<'a> {
    fn listed(&self, path: &AbsPath, id: u64) -> Result<&'a Mount, Unbuilt> {
        let mount = self.mounts.iter().find(|mount| mount.id == id);
        mount.ok_or_else(|| Unbuilt::NotAsPlanned(path.clone(), "its mount is not listed".into()))
    }

    fn mount_at(&self, path: &AbsPath) -> Result<&'a Mount, Unbuilt> {
        self.listed(path, stat_mount(path)?.mount)
    }

    fn overlay(&mut self, place: &Attached) -> Result<(), Unbuilt> {
        let stat = match stat_mount(&place.path) {
            Err(error) if place.has_gone_by(&error) => None,
            found => Some(found?).filter(|stat| place.need != Need::WhileThere || stat.mount_root),
        };
        let Some(stat) = stat else {
            // Somebody removed the directory, and with it the overlay that was just listed: whatever is there now is not writable.
            let listed = self.mounts.iter().filter(|mount| mount.point == place.path && mount.source == self.source);
            self.writable.extend(listed.map(|mount| mount.id));
            return Ok(());
        };
        let mount = self.listed(&place.path, stat.mount)?;
        // The upper of a split one's directory may stem from an earlier overlay of the whole and has no uuid then: the whole's is checked.
        let is_whole = place.need != Need::WhileThere;
        if let Some(wrong) = wrong_overlay(mount, &self.source, self.plan.route, is_whole) {
            return Err(Unbuilt::NotAsPlanned(place.path.clone(), wrong));
        }
        self.writable.insert(mount.id);
        Ok(())
    }

    fn hidden(&mut self) -> Result<(), Unbuilt> {
        let mut hidden = self.plan.hidden.iter();
        if self.plan.request.own_store.is_some()
            && let Some(store) = hidden.next()
        {
            let own = self.mount_at(store)?;
            let covered = self.mounts.iter().find(|mount| mount.id == own.parent);
            let closed = has(&own.options, "nodev") && has(&own.options, "nosuid");
            let is_ours = |hiding: &Mount| hiding.point == *store && hiding.source == self.source;
            if own.point != *store || !closed || !covered.is_some_and(is_ours) {
                return Err(Unbuilt::NotAsPlanned(store.clone(), "the run's own store is not there".into()));
            }
            self.writable.insert(own.id);
        }
        for path in hidden {
            let mount = self.mount_at(path)?;
            // A mount of a link has nothing that can be written to.
            let is_link = stat_mount(path)?.sort == Sort::Symlink;
            if mount.point != *path || mount.source != self.source || !(is_link || has(&mount.options, "ro")) {
                return Err(Unbuilt::NotAsPlanned(path.clone(), "it could not be hidden".into()));
            }
            self.writable.insert(mount.id);
        }
        Ok(())
    }

    fn nothing_else(&self) -> Result<(), Unbuilt> {
        // The caller's terminals are files of /dev/pts, which may be changed by chmod as outside.
        let terminals = AbsPath::parse("/dev/pts").ok();
        let passed = |mount: &Mount| self.plan.passes.iter().chain(&terminals).any(|path| mount.point.is_under(path));
        // A read-only file system with a writable mount counts as writable: it can be remounted from outside.
        let is_open = |mount: &&Mount| !has(&mount.options, "ro") && !self.writable.contains(&mount.id) && !passed(mount);
        self.mounts
            .iter()
            .find(is_open)
            .map_or(Ok(()), |open| Err(Unbuilt::NotAsPlanned(open.point.clone(), "its mount is still writable".into())))
    }
}

fn stat_mount(path: &AbsPath) -> Result<Stat, IoError> {
    at_path(path).and_then(stat_of).at("find the mount", path)
}

/// The fault of a mount that should be our overlay, if it has one. The kernel shows only options that differ from its defaults, and
/// silently falls back if the upper's file system lacks something.
fn wrong_overlay(mount: &Mount, source: &[u8], route: Route, has_uuid: bool) -> Option<String> {
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
    } else if has_uuid && value("uuid") == Some("null") {
        "the store's file system can hold no extended attributes for an overlay: put it elsewhere with --store DIR"
    } else if value("index").is_some_and(|v| v != "off") || value("metacopy").is_some_and(|v| v != "off") {
        "its overlay has index or metacopy on"
    } else if route == Route::User && value("redirect_dir").is_some_and(|v| v != "nofollow") {
        "its overlay follows redirects"
    } else if route == Route::Root && value("redirect_dir") != Some("on") && !redirects_by_default() {
        "its overlay can't rename directories"
    } else {
        return None;
    };
    Some(wrong.into())
}

/// True if this kernel's overlays have `redirect_dir=on` by default: they do not show it then.
fn redirects_by_default() -> bool {
    std::fs::read("/sys/module/overlay/parameters/redirect_dir").is_ok_and(|value| value.starts_with(b"Y"))
}
