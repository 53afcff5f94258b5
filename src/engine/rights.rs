//! Whether the caller may do what is planned, and whether it fits: found before the first effect.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustix::fs::{Access, AtFlags};

use super::Error;
use super::draft::{Draft, Going};
use super::step::{Spot, Step};
use crate::error::At;
use crate::fs::dir::{Dir, leads_nowhere};
use crate::fs::path::AbsPath;

impl Draft<'_, '_> {
    /// The folders that are there now and in which names change.
    pub fn worked_in(&mut self, going: &[Going<'_>]) -> Result<BTreeMap<AbsPath, Rc<Dir>>, Error> {
        let mut folders = BTreeMap::new();
        for going in going.iter().filter(|going| !going.mv.in_place) {
            let Some(parent) = going.mv.path.parent() else { continue };
            if folders.contains_key(&parent) {
                continue;
            }
            let mut nearest = Some(parent);
            while let Some(folder) = nearest {
                match self.roots.folder(&folder) {
                    Ok(dir) => {
                        // A road by copies puts its temporary names into the nearest folder that is there.
                        folders.insert(folder, dir);
                        break;
                    }
                    Err(error) if leads_nowhere(&error) => nearest = folder.parent(),
                    Err(error) => return Err(error).at("open the folder", &folder).map_err(Error::from),
                }
            }
        }
        let mut refused = Vec::new();
        for (path, dir) in &folders {
            let root = self.roots.root_of(path).at("find the mount of", path)?;
            if root.mount.read_only() {
                refused.push((path.to_string(), format!("the file system mounted at {} is read-only", root.mount.point)));
            } else if let Some(why) = self.not_writable(dir)? {
                refused.push((path.to_string(), why));
            }
        }
        refused.extend(self.bound_names(going, &folders)?);
        if refused.is_empty() { Ok(folders) } else { Err(Error::Refused(refused)) }
    }

    /// Why names in a folder cannot be changed; the user's own folders can be opened up for the work.
    fn not_writable(&self, dir: &Dir) -> Result<Option<String>, Error> {
        let stat = dir.stat().at("look at", dir.path().display())?;
        if self.me.is_root() || stat.uid == self.me.as_raw() {
            return Ok(None);
        }
        match rustix::fs::accessat(dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
            Ok(()) => Ok(None),
            Err(_) => Ok(Some(format!("the folder is read-only for you (owner {}, mode {:04o})", stat.uid, stat.mode))),
        }
    }

    /// Names that the caller may not take away: somebody else's in a sticky folder, and folders of somebody else without
    /// `w` for us, which cannot change their parent (rename(2)).
    fn bound_names(&self, going: &[Going<'_>], folders: &BTreeMap<AbsPath, Rc<Dir>>) -> Result<Vec<(String, String)>, Error> {
        if self.me.is_root() {
            return Ok(Vec::new());
        }
        let me = self.me.as_raw();
        let mut refused = Vec::new();
        for going in going {
            let Some(from) = &going.from else { continue };
            let meta = &from.state.meta;
            if going.mv.in_place {
                if meta.uid != me {
                    refused
                        .push((going.mv.path.to_string(), format!("only its owner (user {}) may change its metadata", meta.uid)));
                }
                continue;
            }
            let Some(dir) = going.mv.path.parent().and_then(|parent| folders.get(&parent)) else { continue };
            let parent = dir.stat().at("look at", &going.mv.path)?;
            if parent.mode & 0o1000 != 0 && meta.uid != me && parent.uid != me {
                refused.push((going.mv.path.to_string(), format!("it belongs to user {} and lies in a sticky folder", meta.uid)));
            } else if going.leaves_folder() && meta.uid != me {
                let writable = rustix::fs::accessat(&**dir, going.mv.path.name(), Access::WRITE_OK, AtFlags::EACCESS);
                if writable.is_err() {
                    refused.push((
                        going.mv.path.to_string(),
                        format!("the folder belongs to user {} and you may not move it", meta.uid),
                    ));
                }
            }
        }
        Ok(refused)
    }

    /// Content that is copied has to fit.
    pub fn check_room(&mut self, steps: &[Step]) -> Result<(), Error> {
        let mut needed: BTreeMap<AbsPath, u64> = BTreeMap::new();
        let mut in_store = 0;
        for step in steps {
            if let (Some(Spot::Tree(beside)), Some(to)) = (&step.to_at, &step.to) {
                let folder = beside.parent().unwrap_or_else(|| beside.clone());
                let root = self.roots.root_of(&folder).at("find the mount of", beside)?;
                *needed.entry(root.mount.point.clone()).or_default() += to.blocks;
            }
            if step.copied {
                in_store += step.from.as_ref().map_or(0, |from| from.blocks);
            }
        }
        let mut short = Vec::new();
        let mut check = |dir: &Dir, what: String, need: u64| -> Result<(), Error> {
            let vfs = rustix::fs::fstatvfs(dir).at("ask for the free room of", &what)?;
            let free = vfs.f_bavail.saturating_mul(vfs.f_frsize);
            if need > free {
                short.push((what, format!("{need} bytes are needed there, and {free} are free")));
            }
            Ok(())
        };
        for (point, need) in needed {
            let root = self.roots.root_of(&point).at("find the mount of", &point)?;
            check(&root.dir, point.to_string(), need)?;
        }
        if in_store > 0 {
            check(&self.session.dir, self.session.dir.path().display().to_string(), in_store)?;
        }
        if short.is_empty() { Ok(()) } else { Err(Error::Refused(short)) }
    }
}
