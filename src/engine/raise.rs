//! Raise: on overlayfs an object of a lower layer becomes another one, with another inode number or time of birth, as soon as it is renamed
//! or gets other metadata. What an operation touches is made that other one before anything rests on which object it is
//! (docs/ARCHITECTURE.md, Prepare).

use std::collections::{BTreeMap, HashMap};

use super::Error;
use super::item::Opened;
use super::job::Roads;
use super::plan::Plan;
use super::reach::Named;
use super::step::Act;
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::Sort;
use crate::fs::mounts;
use crate::fs::path::AbsPath;
use crate::tree::look;
use crate::tree::state::{Fingerprint, Identity};

impl Plan {
    /// Raises what goes, what gets other metadata, and the folders whose times are set. Their content, metadata and names stay as they
    /// are: nothing has to be taken back. What is no more what planning saw is left to the step, which meets it.
    pub(super) fn raise(&mut self, fs: &Fs, roads: &mut Roads) -> Result<(), Error> {
        if !self.journal.head.roots.iter().any(|root| root.fs_type == OVERLAY) {
            return Ok(());
        }
        // A folder before what is in it, which would raise it unseen.
        let mut now: BTreeMap<AbsPath, Fingerprint> = BTreeMap::new();
        // With `index=on` the names of a file are copied up as one.
        let mut others: HashMap<Identity, Identity> = HashMap::new();
        for (path, planned) in self.planned() {
            if self.is_layered(&path) {
                let named = self.reach.path(&path).at("open the folder of", &path)?;
                let known = others.get(&planned).copied().unwrap_or(planned);
                let done = match raise(fs, &named, [planned, known]) {
                    // Somebody else's, in a folder of the caller's: its step copies it up, meets another object by that, and is tried again.
                    Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                        roads.unraised.insert(path);
                        continue;
                    }
                    done => done.at("copy up", &path)?,
                };
                let Some((print, parted)) = done else { continue };
                if parted {
                    self.told.notes.push(format!(
                        "{path}: overlayfs has parted it from its other names: a rollback gives back a file of its own"
                    ));
                }
                others.insert(planned, print.identity);
                now.insert(path, print);
            }
        }
        for item in &mut self.journal.items {
            let (Some(now), Some(from)) = (now.get(&item.path), &mut item.from) else { continue };
            let before = std::mem::replace(&mut from.print, *now);
            if let Some(to) = item.to.as_mut().filter(|to| to.print == before) {
                to.print = *now;
            }
            roads.raised.insert(item.path.clone(), (before, Fingerprint { racy: before.racy, ..*now }));
        }
        for Opened { path, folder } in &mut self.journal.head.opened {
            folder.print = now.get(path).copied().unwrap_or(folder.print);
        }
        for time in &mut self.journal.head.times {
            time.identity = now.get(&time.path).map_or(time.identity, |now| now.identity);
        }
        Ok(())
    }

    /// What planning has seen that the operation touches.
    fn planned(&self) -> BTreeMap<AbsPath, Identity> {
        let head = &self.journal.head;
        let items = self.journal.items.iter().filter(|item| item.act != Act::Stay);
        let items = items.filter_map(|item| item.from.as_ref().map(|from| (item.path.clone(), from.print.identity)));
        let opened = head.opened.iter().map(|opened| (opened.path.clone(), opened.folder.print.identity));
        let times = head.times.iter().map(|time| (time.path.clone(), time.identity));
        items.chain(opened).chain(times).collect()
    }

    /// Whether it lies on overlayfs; the root of one does not change.
    fn is_layered(&self, path: &AbsPath) -> bool {
        let folder = path.parent();
        let mount = folder.and_then(|folder| mounts::containing(self.reach.roots.mounts(), &folder));
        mount.is_some_and(|mount| mount.fs_type == OVERLAY)
    }
}

const OVERLAY: &str = "overlay";

/// Sets the time that an object has, which has overlayfs copy it up; its fingerprint, where it is what planning saw, and whether it has
/// lost names by that.
fn raise(fs: &Fs, named: &Named<'_>, planned: [Identity; 2]) -> std::io::Result<Option<(Fingerprint, bool)>> {
    let at = named.at();
    let Some(stat) = at.stat()?.filter(|stat| planned.contains(&look::identity(stat))) else { return Ok(None) };
    fs.set_mtime(at, stat.mtime)?;
    Ok(at.stat()?.map(|now| (look::fingerprint(&now), now.sort != Sort::Folder && now.nlink < stat.nlink)))
}
