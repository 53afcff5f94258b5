//! Chooses the road of each item, by what rename(2) would say of both directions: what comes and what goes, and either back by an undo.

use std::collections::{BTreeMap, HashMap};

use rustix::fs::{Access, AtFlags, accessat};

use super::draft::Draft;
use super::road::{FileSystem, Ground, Mover, Range, Road};
use crate::engine::error::refused_at;
use crate::engine::item::{Item, Opened};
use crate::engine::reach::split;
use crate::engine::step::{Act, DirectoryTime};
use crate::engine::work::metadata::ACL;
use crate::error::{Error, shell_word};
use crate::fs::{AbsPath, Inode, Mount, Stat};
use crate::tree::Seen;

/// The directories on the way of an item's objects.
struct Way {
    file_system: FileSystem,
    /// The path's directory as it is now, if it is there.
    now: Option<Ground>,
    /// The path's directory once the object comes.
    then: Ground,
}

/// The directories of the tree that are known by their ground.
struct Grounds<'d> {
    /// The existing ones in which names change.
    existing: &'d BTreeMap<AbsPath, Stat>,
    /// Those that come and differ from the one above them.
    coming: HashMap<AbsPath, Ground>,
    /// The last ones asked for: items that follow each other mostly share them.
    last_now: Option<(AbsPath, Option<Ground>)>,
    last_source: Option<(Vec<u8>, Ground)>,
}

impl Draft<'_> {
    /// Chooses each item's road: where copies lie ready, and whether content tells objects apart. `existing` are the directories in which
    /// names change.
    pub fn choose_roads(&mut self, items: &mut [Item], existing: &BTreeMap<AbsPath, Stat>) -> Result<(), Error> {
        let mut grounds = Grounds { existing, coming: HashMap::new(), last_now: None, last_source: None };
        let mut roads = vec![Road::Native; items.len()];
        for (item, road) in items.iter_mut().zip(&mut roads).filter(|(item, _)| item.act != Act::Stay) {
            *road = self.choose_road(item, Road::Native, &mut grounds)?;
        }
        self.keep_names_together(items, &mut roads, &mut grounds)?;
        for (item, road) in items.iter_mut().zip(roads).filter(|(_, road)| *road >= Road::InPlace) {
            (item.portable, item.in_place) = (item.moves(), road == Road::InPlace);
            let is_mounted = item.planning.mounted;
            for seen in [&mut item.from, &mut item.to].into_iter().flatten().filter(|_| !is_mounted) {
                loosen(seen);
            }
        }
        Ok(())
    }

    /// Takes the first road from `least` on that leads to the path.
    fn choose_road(&mut self, item: &mut Item, least: Road, grounds: &mut Grounds<'_>) -> Result<Road, Error> {
        let file_system = FileSystem::of(self.mount(&item.path)?);
        if !item.moves() {
            return Ok(if file_system.is_native { Road::Native } else { Road::Portable });
        }
        if !file_system.is_native {
            item.beside = Some(Box::new(self.beside(&item.path)?));
            return Ok(Road::Portable);
        }
        let Some(above) = item.path.parent() else { return Ok(Road::Native) };
        let (now, then) = (self.ground_now(&above, grounds)?, self.ground_then(&above, grounds)?);
        let way = Way { file_system, now, then };
        let road = self.first_road(item, least, &way, grounds)?;
        if item.becomes_directory() {
            let ground = self.ground_of_coming(item, road, &way)?;
            if ground != way.then {
                grounds.coming.insert(item.path.clone(), ground);
            }
        }
        Ok(road)
    }

    fn first_road(&mut self, item: &mut Item, least: Road, way: &Way, grounds: &mut Grounds<'_>) -> Result<Road, Error> {
        if least == Road::Native && way.file_system.mount == self.roads.mount && self.can_move(item, way, grounds)? {
            return Ok(Road::Native);
        }
        let beside = self.beside(&item.path)?;
        let near = match self.ground_now(&beside, grounds)? {
            Some(near) => near,
            None => way.then,
        };
        let copied = least <= Road::Copied && self.can_swap(item, way, near)?;
        let in_place = || item.path.parent().unwrap_or_else(|| beside.clone());
        item.beside = Some(Box::new(if copied { beside } else { in_place() }));
        Ok(if copied { Road::Copied } else { Road::InPlace })
    }

    /// True if what comes and what goes can be renamed between the session and the path, there and back.
    fn can_move(&mut self, item: &Item, way: &Way, grounds: &mut Grounds<'_>) -> Result<bool, Error> {
        let source = self.source(item, way.file_system, grounds)?;
        let mut ends: Vec<Ground> = vec![way.then, source];
        ends.extend(way.now);
        let asks = ends.iter().chain(&self.roads.homes).any(|ground| ground.binds.is_some());
        let comes = match &item.to {
            Some(to) => {
                let comes = self.stored(item, to, source, way.file_system, asks)?;
                way.then.lets_in(&comes) && (item.held.is_none() || source.lets_in(&comes))
            }
            None => true,
        };
        let goes = match (&item.from, way.now) {
            (Some(from), Some(now)) => {
                let goes = self.present(item, from, now, way.file_system, asks)?;
                let mut homes = self.roads.homes.iter();
                // Two names swap within a volume alone.
                let swaps = item.act != Act::Replace || source.volume == now.volume && source.lets_in(&goes);
                now.lets_in(&goes) && swaps && homes.all(|home| home.lets_in(&goes))
            }
            _ => true,
        };
        Ok(comes && goes)
    }

    /// True if what goes can swap names with a copy that was made in a directory of that ground, and back.
    fn can_swap(&mut self, item: &Item, way: &Way, near: Ground) -> Result<bool, Error> {
        let comes = item.to.is_none() || way.then.lets_in(&near.made());
        let goes = match (&item.from, way.now) {
            (Some(from), Some(now)) => {
                let asks = near.binds.or(now.binds).is_some();
                let goes = self.present(item, from, now, way.file_system, asks)?;
                let swaps = item.act != Act::Replace || near.volume == now.volume;
                now.lets_in(&goes) && near.lets_in(&goes) && swaps
            }
            _ => true,
        };
        Ok(comes && goes)
    }

    /// The object at the path, which lies in a directory of the ground `now`. Its project number is read if a directory `asks` for it.
    fn present(&mut self, item: &Item, from: &Seen, now: Ground, file_system: FileSystem, asks: bool) -> Result<Mover, Error> {
        let project = if asks { self.reach.path(&item.path)?.at().project() } else { None };
        let project = project.map(|project| project.number);
        Ok(Mover { volume: now.volume, encrypted: now.encrypted, project, range: Range::of(from, file_system) })
    }

    /// The object to come, in the store.
    fn stored(&mut self, item: &Item, to: &Seen, source: Ground, file_system: FileSystem, asks: bool) -> Result<Mover, Error> {
        let Some(held) = &item.held else { return Ok(source.made()) };
        let place = held.place(item.n, &item.path);
        let project = if asks { self.reach.below(&place)?.at().project() } else { None };
        let project = project.map(|project| project.number);
        Ok(Mover { volume: source.volume, encrypted: source.encrypted, project, range: Range::of(to, file_system) })
    }

    /// The ground of the session's directory that the object to come lies in, or is made in.
    fn source(&mut self, item: &Item, file_system: FileSystem, grounds: &mut Grounds<'_>) -> Result<Ground, Error> {
        let Some(held) = item.held.as_ref().filter(|_| file_system.has_projects) else { return Ok(self.roads.made_in) };
        let place = held.place(item.n, &item.path);
        let directory = split(&place).0;
        if let Some((_, ground)) = grounds.last_source.as_ref().filter(|(last, _)| last == directory) {
            return Ok(*ground);
        }
        let dir = self.reach.held(directory)?;
        let ground = Ground::of(dir.at(b"."), &dir.stat()?, file_system);
        grounds.last_source = Some((directory.to_vec(), ground));
        Ok(ground)
    }

    /// The ground of a directory as it is now; `None` if it is not there.
    fn ground_now(&mut self, path: &AbsPath, grounds: &mut Grounds<'_>) -> Result<Option<Ground>, Error> {
        if let Some((_, ground)) = grounds.last_now.as_ref().filter(|(last, _)| last == path) {
            return Ok(*ground);
        }
        let file_system = FileSystem::of(self.reach.roots.mount_of(path)?);
        let known = grounds.existing.get(path).filter(|_| !file_system.has_projects);
        let ground = match known {
            Some(stat) => Some(Ground { volume: stat.dev, encrypted: stat.encrypted, binds: None }),
            None => match self.reach.roots.directory(path) {
                Ok(dir) => Some(Ground::of(dir.at(b"."), &dir.stat()?, file_system)),
                Err(error) if error.leads_nowhere() => None,
                Err(error) => return Err(error.into()),
            },
        };
        grounds.last_now = Some((path.clone(), ground));
        Ok(ground)
    }

    /// The ground of a directory once all above it has come. What is made is like the directory that it is made in.
    fn ground_then(&mut self, path: &AbsPath, grounds: &mut Grounds<'_>) -> Result<Ground, Error> {
        let mut directory = Some(path.clone());
        while let Some(here) = directory {
            if let Some(ground) = grounds.coming.get(&here) {
                return Ok(*ground);
            }
            if grounds.existing.contains_key(&here)
                && let Some(ground) = self.ground_now(&here, grounds)?
            {
                return Ok(ground);
            }
            directory = here.parent();
        }
        Err(refused_at(path, "no directory above it is there"))
    }

    /// The ground of a directory that comes.
    fn ground_of_coming(&mut self, item: &Item, road: Road, way: &Way) -> Result<Ground, Error> {
        let (Road::Native, Some(held)) = (road, &item.held) else { return Ok(way.then) };
        if !way.file_system.has_projects && !way.file_system.has_subvolumes {
            return Ok(way.then);
        }
        let place = held.place(item.n, &item.path);
        let named = self.reach.below(&place)?;
        Ok(match named.at().stat()? {
            Some(stat) => Ground::of(named.at(), &stat, way.file_system),
            None => way.then,
        })
    }

    /// Names of one file take one road, or they would no longer be names of one.
    fn keep_names_together(&mut self, items: &mut [Item], roads: &mut [Road], grounds: &mut Grounds<'_>) -> Result<(), Error> {
        let mut changed = roads.iter().any(|road| matches!(road, Road::Copied | Road::InPlace));
        while std::mem::take(&mut changed) {
            let mut least: HashMap<Inode, Road> = HashMap::new();
            for (item, road) in items.iter().zip(&*roads) {
                for inode in inodes(item) {
                    let known = least.entry(inode).or_insert(*road);
                    *known = (*known).max(*road);
                }
            }
            for (item, road) in items.iter_mut().zip(&mut *roads) {
                let wanted = inodes(item).filter_map(|inode| least.get(&inode).copied()).max();
                if let Some(wanted) = wanted.filter(|wanted| wanted > road && *wanted != Road::Portable) {
                    *road = self.choose_road(item, wanted, grounds)?;
                    changed = true;
                }
            }
        }
        Ok(())
    }

    /// Marks directories on a portable road: their paths tell them apart.
    pub fn loosen(&mut self, opened: &mut [Opened], times: &mut [DirectoryTime]) -> Result<(), Error> {
        for Opened { path, directory } in opened {
            if !FileSystem::of(self.mount(path)?).is_native {
                loosen(directory);
            }
        }
        for time in times {
            time.identity.loose = !FileSystem::of(self.mount(&time.path)?).is_native;
        }
        Ok(())
    }

    fn mount(&self, path: &AbsPath) -> Result<&Mount, Error> {
        let parent = path.parent().unwrap_or_else(|| path.clone());
        Ok(self.reach.roots.mount_of(&parent)?)
    }

    /// The nearest directory above the target that exists and stays. Skips one that cannot be opened, as nothing could be made in it, and
    /// one of the user's own that is opened only after Prepare. Takes another of the user's then, or one of somebody else's in which they
    /// may work, such as /tmp, unless it lets in those whom the closed one keeps out.
    fn beside(&mut self, path: &AbsPath) -> Result<AbsPath, Error> {
        let (mut directory, mut closed, mut hides) = (self.not_missing(path.parent()), None, false);
        let mut why_not = " or above it: you may not write there".to_owned();
        while let Some(above) = directory {
            let opened = if self.leaving.contains(&above) { None } else { Some(self.reach.roots.directory(&above)) };
            if let Some(Err(error)) = &opened
                && error.leads_nowhere()
            {
                self.missing = Some(above.clone());
            }
            if let Some(Ok(dir)) = opened {
                let stat = dir.stat()?;
                let is_there = self.reach.roots.mount_of(&above)?.id == self.mount(path)?.id;
                let is_own = stat.uid == self.me.as_raw() && is_there;
                // Asked as the kernel asks: a capability or an ACL may allow more than the mode shows.
                let is_open = || accessat(&*dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok();
                if closed.is_some() && !is_own {
                    if !is_there || !is_open() {
                        break;
                    }
                    if hides {
                        why_not = format!(", and in {above} others could see it");
                        break;
                    }
                    return Ok(above);
                }
                if self.me.is_root() || !is_own || is_open() {
                    return Ok(above);
                }
                let xattrs = dir.at(b".").xattrs()?;
                hides |= stat.mode & 0o011 != 0o011 || xattrs.iter().any(|(name, _)| name == ACL);
                closed.get_or_insert_with(|| above.clone());
            }
            directory = above.parent();
        }
        let why = match closed {
            None => "no directory above it is there".into(),
            Some(closed) => {
                format!("cannot prepare it in {closed}{why_not} (chmod u+w {} helps)", shell_word(closed.as_bytes()))
            }
        };
        Err(refused_at(path, why))
    }
}

/// The inodes of an item's objects that have several names.
fn inodes(item: &Item) -> impl Iterator<Item = Inode> + use<> {
    let shared = if item.moves() { [item.shared(), item.planning.shared_in_store] } else { [None, None] };
    shared.into_iter().flatten()
}

/// Marks an object that only its content tells apart: it is read wherever times would do otherwise.
fn loosen(seen: &mut Seen) {
    (seen.print.identity.loose, seen.print.racy) = (true, true);
}
