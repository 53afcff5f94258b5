//! Completes a plan once everything was looked at: where each object goes, which directories are opened, whose times change, and the
//! header to be sealed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::draft::Draft;
use super::make_plan::{Plan, Remarks};
use super::rights::keeps_setgid;
use crate::checkpoint::{Kept, Large, Limits, Reading, Tally};
use crate::engine::error::refused_at;
use crate::engine::item::{Frame, Item, Opened};
use crate::engine::job::{Rest, Verb, WantedTime};
use crate::engine::journal::{Head, Journal};
use crate::engine::place_in_session::SessionPlace;
use crate::engine::step::{Act, DirectoryTime, RootRecord};
use crate::engine::work::records;
use crate::error::{Against, BY_ROOT, Error};
use crate::fs::{AbsPath, Inode, Sort, Stat};
use crate::session::{Header, Session, Sizes, boot_id, misfits};
use crate::settings;
use crate::tree::{Hash, Seen, State, What, observe, sort_word};

impl Draft<'_> {
    pub fn build(mut self, limits: Option<&Limits>, rest: Rest) -> Result<Plan, Error> {
        let mut items = std::mem::take(&mut self.items);
        let generation = self.session.header.generation + 1;
        let id = self.session.id().clone();
        let frame = Frame { session: &id, verb: self.verb, generation };
        self.leaving = items.iter().filter(|item| item.leaves_directory()).map(|item| item.path.clone()).collect();
        for inode in items.iter().filter(|item| item.moves()).filter_map(Item::shared) {
            *self.names_here.entry(inode).or_default() += 1;
        }
        let directories = self.worked_in(&items)?;
        let mut opened = self.open_up(&directories, &mut items)?;
        self.notes.extend(opens(&opened, &items));
        let mut names = Names::new(self.session, self.verb, generation)?;
        if self.verb == Verb::Commit {
            unfit(self.session, &mut items, generation)?;
        }
        self.choose_roads(&mut items, &directories)?;
        for item in items.iter_mut().filter(|item| item.moves()) {
            self.find_places(item, &mut names)?;
        }
        let large = kept_in_full(&items, limits);
        self.notes.extend(shared_metadata(&items, self.verb));
        self.notes.extend(names_outside(&items, self.verb));
        self.notes.extend(self.leaves_encrypted(&items)?);
        let mut times = self.directory_times(&directories, &items, rest.times)?;
        self.loosen(&mut opened, &mut times)?;
        self.check_room(&items, &frame)?;
        let roots = self.root_records(&directories, &items, &times)?;
        let kept_bytes = kept_bytes(&items, self.verb);
        let displaced = self.displaced_bytes(&items);
        let mut header = self.header(&items, kept_bytes, displaced);
        let points = roots.iter().map(|root| &root.point).filter(|point| point.depth() > 0);
        header.mounts = points.chain(&header.mounts).collect::<BTreeSet<_>>().into_iter().cloned().collect();
        let head = Head {
            journal: 1,
            verb: self.verb,
            session: id.clone(),
            generation: generation - 1,
            boot: boot_id(),
            roots,
            times,
            opened,
            header,
            was: Some(Box::new(self.session.header.clone())),
            rest: None,
            lost: Vec::new(),
        };
        self.left.sort_by(|a, b| a.0.cmp(&b.0));
        let told = Remarks { left: self.left, notes: self.notes, large, kept_bytes };
        Ok(Plan { journal: Journal::new(head, items), reach: self.reach, told })
    }

    /// The note on originals that their file system encrypts (fscrypt) and the store's does not.
    fn leaves_encrypted(&self, items: &[Item]) -> Result<Option<String>, Error> {
        let is_kept = |item: &&Item| item.moves() && item.planning.encrypted && matches!(item.kept, Kept::Blob { .. });
        let mut kept = items.iter().filter(is_kept);
        let Some(first) = kept.next().filter(|_| self.verb.inward()) else { return Ok(None) };
        if self.session.dir.stat()?.encrypted {
            return Ok(None);
        }
        let more = match kept.count() {
            0 => String::new(),
            more => format!(" (likewise {} more)", settings::grouped(more as u64)),
        };
        Ok(Some(format!("{}: the original is encrypted here, and is kept unencrypted in the store{more}", first.path)))
    }

    /// The user's own directories that lack `u+rwx` and are worked in, or go. Root needs none opened.
    fn open_up(&mut self, directories: &BTreeMap<AbsPath, Stat>, items: &mut [Item]) -> Result<Vec<Opened>, Error> {
        if self.me.is_root() {
            return Ok(Vec::new());
        }
        let closed = |uid: u32, mode: u32| uid == self.me.as_raw() && mode & 0o700 != 0o700;
        let mut all = BTreeMap::new();
        for (path, _) in directories.iter().filter(|(_, stat)| closed(stat.uid, stat.mode)) {
            let dir = self.reach.roots.directory(path)?;
            all.insert(path.clone(), observe::directory(&dir)?);
        }
        for item in items.iter().filter(|item| item.leaves_directory()) {
            all.extend(
                item.from
                    .clone()
                    .filter(|from| closed(from.state.meta.uid, from.state.meta.mode))
                    .map(|from| (item.path.clone(), from)),
            );
        }
        let loses = |directory: &Seen| !keeps_setgid(directory.state.meta.mode, directory.state.meta.gid);
        let why = format!("you are not in its group, so opening it for the work would clear its setgid bit; {BY_ROOT}");
        let refused: Vec<_> =
            all.iter().filter(|(_, directory)| loses(directory)).map(|(path, _)| Against::new(path, &*why)).collect();
        if !refused.is_empty() {
            return Err(crate::engine::error::refused(refused));
        }
        for item in items.iter_mut().filter(|item| item.act != Act::Stay) {
            item.opened = all.contains_key(&item.path);
        }
        Ok(all.into_iter().map(|(path, directory)| Opened { path, directory }).collect())
    }

    /// Chooses where the object that goes is kept, and where the one that comes is made ready.
    fn find_places(&mut self, item: &mut Item, names: &mut Names) -> Result<(), Error> {
        let copies = item.beside.is_some();
        if copies && item.whole {
            let why = "no rename leads from there into the store, so the directory cannot be kept whole; move it away";
            return Err(refused_at(&item.path, why));
        }
        let mounts = self.reach.roots.mounts().iter().filter(|_| item.whole);
        if let Some(inside) = mounts.map(|mount| &mount.point).find(|point| **point != item.path && point.is_under(&item.path)) {
            let why = format!(
                "it would be moved into the store with what is mounted in it, at {inside}; umount that, or move the directory away"
            );
            return Err(refused_at(&item.path, why));
        }
        names.keep(item)?;
        if copies {
            self.note_broken_link(item);
        }
        item.fresh = item.to.is_some() && (copies || item.held.is_none() || self.verb.inward() && item.original.is_some());
        self.check_owner(item)
    }

    /// Notes an inode that cannot be moved into the store: it keeps its other names, and only a copy is kept.
    fn note_broken_link(&mut self, item: &mut Item) {
        let (Some(inode), Some(from)) = (item.shared(), &item.from) else { return };
        if from.nlink > self.names_here.get(&inode).copied().unwrap_or(0) {
            match &mut item.kept {
                Kept::Blob { unlinked, .. } => *unlinked = true,
                kept @ Kept::Object => *kept = Kept::ObjectCopy,
                _ => return,
            }
            let sort = sort_word(from.state.sort());
            let why = "it has other names outside the session, and cannot be renamed into the store";
            self.notes.push(format!("{}: {why}: a copy is kept, and a rollback makes a separate {sort}", item.path));
        }
    }

    /// The mtimes of directories that stay: those in which names change, and those that the job names.
    fn directory_times(
        &mut self,
        directories: &BTreeMap<AbsPath, Stat>,
        items: &[Item],
        wanted: Vec<WantedTime>,
    ) -> Result<Vec<DirectoryTime>, Error> {
        let own = |path: &AbsPath| items.binary_search_by(|item| item.path.cmp(path)).ok().map(|i| &items[i]);
        // A directory that goes or comes does not stay; one whose metadata is set has its mtime there.
        let moves = |item: &&Item| item.moves() && (item.was_dir() || item.becomes_directory());
        let wanted: HashMap<AbsPath, WantedTime> = wanted.into_iter().map(|wanted| (wanted.path.clone(), wanted)).collect();
        let always = wanted.values().filter(|wanted| wanted.always).map(|wanted| &wanted.path);
        // A directory in which something was only made ready shows no trace of it afterwards.
        let beside: BTreeSet<&AbsPath> = items.iter().filter_map(|item| item.beside.as_deref()).collect();
        let paths: BTreeSet<&AbsPath> = directories.keys().chain(always).chain(beside.iter().copied()).collect();
        let now = crate::fs::now();
        let mut times = Vec::new();
        for path in paths.into_iter().filter(|path| !own(path).as_ref().is_some_and(moves)) {
            let stat = match directories.get(path) {
                Some(stat) => *stat,
                // A directory that went away meanwhile, or cannot be opened any more, gets no mtime.
                None => match self.reach.roots.directory(path).and_then(|dir| dir.stat()) {
                    Ok(stat) => stat,
                    Err(_) => continue,
                },
            };
            let mine = self.me.is_root() || stat.uid == self.me.as_raw();
            let (path, identity, old) = (path.clone(), observe::identity(&stat), stat.mtime);
            if let Some(to) = own(&path).filter(|item| item.act == Act::SetMeta).and_then(|item| item.to.as_ref()) {
                let new = mine.then_some(to.state.meta.mtime);
                times.push(DirectoryTime { path, identity, old, new, original: old, own: true });
                continue;
            }
            let wanted = wanted.get(&path).filter(|wanted| wanted.only_if.is_none_or(|left| stat.mtime.shows(left)));
            let is_worked_in = directories.contains_key(&path);
            // Somebody else has set it since, and no name in it changes.
            if wanted.is_none() && !is_worked_in && !beside.contains(&path) {
                continue;
            }
            let new = mine.then_some(wanted.map_or(if is_worked_in { now } else { old }, |wanted| wanted.mtime));
            let original = wanted.and_then(|wanted| wanted.original).unwrap_or(old);
            times.push(DirectoryTime { path, identity, old, new, original, own: false });
        }
        Ok(times)
    }

    fn root_records(
        &mut self,
        directories: &BTreeMap<AbsPath, Stat>,
        items: &[Item],
        times: &[DirectoryTime],
    ) -> Result<Vec<RootRecord>, Error> {
        let mut records: BTreeMap<AbsPath, RootRecord> = BTreeMap::new();
        let stays = |item: &&Item| item.act == Act::SetMeta;
        // A mounted directory is the root of the file system that has its metadata.
        let lies_in = |item: &Item| {
            let is_root = item.planning.mounted && item.was_dir();
            if is_root { Some(item.path.clone()) } else { item.path.parent() }
        };
        let in_place: Vec<AbsPath> = items.iter().filter(|item| stays(item)).filter_map(lies_in).collect();
        for path in directories.keys().chain(times.iter().map(|time| &time.path)).chain(&in_place) {
            let root = self.reach.roots.root_of(path)?;
            if records.contains_key(&root.mount.point) {
                continue;
            }
            let stat = root.dir.stat()?;
            let record = RootRecord {
                point: root.mount.point.clone(),
                fs_type: root.mount.fs_type.clone(),
                device: (stat.dev.0, stat.dev.1),
                identity: observe::identity(&stat),
            };
            records.insert(record.point.clone(), record);
        }
        Ok(records.into_values().collect())
    }

    fn header(&mut self, items: &[Item], kept_bytes: u64, displaced: u64) -> Header {
        for item in items {
            self.sides[item.index as usize] = item.side;
        }
        let mut header = self.session.header.sealing(&self.sides);
        header.sizes = sizes_after(header.sizes, self.verb, items, kept_bytes, displaced);
        // A path that an interrupted operation has left is settled by whoever deals with it.
        header.left.retain(|left| items.binary_search_by(|item| item.path.cmp(&left.path)).is_err());
        header
    }

    /// Bytes of the objects that go under `displaced/`.
    fn displaced_bytes(&mut self, items: &[Item]) -> u64 {
        let displaced = items.iter().filter(|item| item.moves() && item.displaces(self.verb));
        let roots = &mut self.reach.roots;
        displaced
            .map(|item| match &item.from {
                Some(_) if item.whole => roots.directory(&item.path).map_or(0, |directory| records::bytes_below(&directory)),
                from => from.as_ref().map_or(0, |from| from.blocks),
            })
            .sum()
    }
}

/// Makes what a commit finds by force the `before`, unless that contradicts the others' (another path of the session is above or below
/// it). Then it is kept beside, as a forced redo keeps it.
pub fn unfit(session: &Session, items: &mut [Item], generation: u64) -> Result<(), Error> {
    if !items.iter().any(Item::teaches) {
        return Ok(());
    }
    let mut rows = Vec::new();
    let mut changes = session.read_changes()?;
    while let Some(change) = changes.next()? {
        rows.push((change.path, change.before.object.as_ref().map(State::sort)));
    }
    let known: Vec<Option<Sort>> = rows.iter().map(|(_, before)| *before).collect();
    for item in items.iter().filter(|item| item.teaches()) {
        rows[item.index as usize].1 = item.from.as_ref().map(|from| from.state.sort());
    }
    let mut by_index: HashMap<usize, &mut Item> = HashMap::new();
    by_index.extend(items.iter_mut().filter(|item| item.teaches()).map(|item| (item.index as usize, item)));
    loop {
        let unfit = misfits(rows.iter().map(|(path, before)| (path, *before)));
        let unfit: Vec<usize> = unfit.into_iter().flat_map(|(top, below)| [top, below]).collect();
        let taught: Vec<_> = unfit.into_iter().filter_map(|i| Some((i, by_index.remove(&i)?))).collect();
        if taught.is_empty() {
            return Ok(());
        }
        for (i, item) in taught {
            rows[i].1 = known[i];
            item.kept = Kept::Displaced { generation };
        }
    }
}

/// The session's sizes once `items` are done. For people only: the header may have been garbled. `kept` are the bytes that go to the
/// checkpoint, `displaced` those that force overwrites.
pub fn sizes_after(mut sizes: Sizes, verb: Verb, items: &[Item], kept: u64, displaced: u64) -> Sizes {
    let carried = || items.iter().filter(|item| item.moves());
    if verb.inward() {
        let is_back = |item: &&Item| item.held.as_ref().is_some_and(SessionPlace::is_displaced);
        let came: u64 =
            carried().filter(|item| !is_back(item)).filter_map(|item| item.to.as_ref()).map(|to| to.state.size()).sum();
        let back: u64 = carried().filter(is_back).filter_map(|item| item.to.as_ref()).map(|to| to.blocks).sum();
        sizes.displaced = sizes.displaced.saturating_sub(back);
        (sizes.checkpoint, sizes.held) = (sizes.checkpoint.saturating_add(kept), sizes.held.saturating_sub(came));
    } else {
        let moved: u64 =
            carried().filter(|item| !item.forced).filter_map(|item| item.from.as_ref()).map(|from| from.state.size()).sum();
        let came = |from: &dyn Fn(&SessionPlace) -> bool| -> u64 {
            let came = carried().filter(|item| item.held.as_ref().is_some_and(from));
            came.filter_map(|item| item.to.as_ref()).map(|to| to.blocks).sum()
        };
        sizes.held = sizes.held.saturating_add(moved);
        sizes.checkpoint = sizes.checkpoint.saturating_sub(came(&|held| matches!(held, SessionPlace::Blob { .. })));
        sizes.displaced = sizes.displaced.saturating_sub(came(&SessionPlace::is_displaced));
    }
    sizes.displaced = sizes.displaced.saturating_add(displaced);
    sizes
}

/// Bytes of content that a checkpoint takes.
pub fn kept_bytes(items: &[Item], verb: Verb) -> u64 {
    let kept = items.iter().filter(|item| verb.inward() && matches!(item.kept, Kept::Blob { .. }));
    kept.filter_map(|item| item.from.as_ref()).map(|from| from.blocks).sum()
}

/// The note on directories that their owner has closed, and the session has not: what is in them changes all the same.
fn opens(opened: &[Opened], items: &[Item]) -> Option<String> {
    let is_item = |path: &AbsPath| items.binary_search_by(|item| item.path.cmp(path)).is_ok_and(|at| items[at].act != Act::Stay);
    let mut closed = opened.iter().filter(|opened| !is_item(&opened.path));
    let Opened { path, directory } = closed.next()?;
    let more = match closed.count() {
        0 => String::new(),
        more => format!(" (likewise {} more)", settings::grouped(more as u64)),
    };
    let mode = directory.state.meta.mode;
    Some(format!("{path}: closed (mode {mode:04o}), but yours: it is opened for the work, and closed again{more}"))
}

/// The note on files with other names: metadata that is set under one name is that of all.
fn shared_metadata(items: &[Item], verb: Verb) -> Option<String> {
    let set = items.iter().filter(|item| verb.inward() && item.act == Act::SetMeta);
    let (first, more) = of_several_names(items, set)?;
    Some(format!("{first}: the file has other hard links, which get its mode, owner and time as well{more}"))
}

/// The note on files that are moved into the session and have names outside it (D12).
fn names_outside(items: &[Item], verb: Verb) -> Option<String> {
    let moved =
        items.iter().filter(|item| verb.inward() && item.moves() && matches!(item.kept, Kept::Blob { unlinked: false, .. }));
    let (first, more) = of_several_names(items, moved)?;
    Some(format!("{first}: the original has hard links outside the session: a write through one changes the kept original{more}"))
}

/// The first of `some` with names that do not go in the same operation, and how many more.
fn of_several_names<'a>(items: &[Item], some: impl Iterator<Item = &'a Item>) -> Option<(&'a AbsPath, String)> {
    let mut names: HashMap<Inode, u32> = HashMap::new();
    let here = items.iter().filter(|item| item.act != Act::Stay).filter_map(Item::shared);
    let in_store = items.iter().filter_map(|item| item.planning.shared_in_store);
    for inode in here.chain(in_store) {
        *names.entry(inode).or_default() += 1;
    }
    let has_others = |item: &&Item| {
        let names = item.shared().and_then(|inode| names.get(&inode));
        names.is_some_and(|names| item.from.as_ref().is_some_and(|from| from.nlink > *names))
    };
    let mut paths = some.filter(has_others).map(|item| &item.path);
    let first = paths.next()?;
    let more = match paths.count() {
        0 => String::new(),
        more => format!(" (likewise {} more)", settings::grouped(more as u64)),
    };
    Some((first, more))
}

/// The large directories that go and are kept in full.
fn kept_in_full(items: &[Item], limits: Option<&Limits>) -> Vec<Large> {
    let Some(limits) = limits else { return Vec::new() };
    let mut tally = Tally::new(limits);
    for item in items.iter().filter(|item| item.moves()) {
        tally.count(&item.path, item.from.as_ref().map(|seen| &seen.state), item.to.as_ref().map(|seen| &seen.state));
    }
    tally.over()
}

/// The places for what comes off the tree, no two the same.
struct Names {
    /// Blob names that the manifest has, or that this operation gives. Any other was left by a crash: the step takes its place.
    taken: HashSet<Hash>,
    verb: Verb,
    generation: u64,
}

impl Names {
    fn new(session: &Session, verb: Verb, generation: u64) -> Result<Self, Error> {
        let mut names = Self { taken: HashSet::new(), verb, generation };
        if !verb.inward() {
            return Ok(names);
        }
        let mut originals = Reading::of(session)?;
        while let Some(original) = originals.next()? {
            if let Kept::Blob { hash, numbered: false, .. } = original.kept {
                names.taken.insert(hash);
            }
        }
        Ok(names)
    }

    fn keep(&mut self, item: &mut Item) -> Result<(), Error> {
        let Some(from) = &item.from else { return Ok(()) };
        if !self.verb.inward() || matches!(item.kept, Kept::Uncovered { .. }) {
            return Ok(());
        }
        if self.verb == Verb::Redo && item.forced {
            item.kept = Kept::Displaced { generation: self.generation };
        }
        if matches!(item.kept, Kept::Displaced { .. }) {
            return Ok(());
        }
        item.kept = match from.state.what {
            What::File { hash: Some(hash), .. } => {
                let numbered = !self.taken.insert(hash);
                Kept::Blob { hash, numbered, unlinked: false }
            }
            What::File { hash: None, .. } => {
                return Err(refused_at(&item.path, "its content was not read"));
            }
            _ => Kept::Object,
        };
        Ok(())
    }
}
