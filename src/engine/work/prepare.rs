//! Prepare and intend: makes what is wanted ready and durable, then writes the journal that names every step.

use std::collections::HashMap;
use std::rc::Rc;

use super::perform::UNTIMED;
use super::sync::MANY;
use super::{copy, metadata, records, reserve};
use crate::engine::item::{Frame, Item};
use crate::engine::journal::{Draft, Journal, Written, displaced};
use crate::engine::plan::make_plan::{Plan, Remarks};
use crate::engine::reach::{Named, Reach};
use crate::engine::recover::undo_and_finish::take_back_prepared;
use crate::engine::step::{Places, Spot};
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Fs, Inode, Stat, interrupt};
use crate::session::{Id, Locked, Store};
use crate::tree::{Seen, State, What, observe};

/// The phase with every `to` ready; nothing is known to be durable.
pub struct Prepared {
    plan: Plan,
    draft: Draft,
    touched: Touched,
}

/// The phase with the journal in place: from here to the seal a crash is undone.
pub struct Intended {
    pub journal: Journal,
    pub reach: Reach,
    pub told: Remarks,
}

impl Plan {
    /// Makes every `to` ready on its target's mount and copies what cannot be moved. A failure removes all of it again.
    pub fn prepare(mut self, fs: &Fs, store: &Store, session: &Locked) -> Result<Prepared, Error> {
        let head = &self.journal.head;
        let draft = Draft { made: self.journal.prepared_spots(), times: head.times.clone(), generation: head.generation + 1 };
        let begun = if self.makes_much() { draft.write(fs, store, session.id()) } else { Ok(()) };
        match begun.and_then(|()| self.make_ready(fs, store, session, &draft)) {
            Ok(touched) => Ok(Prepared { plan: self, draft, touched }),
            Err(why) => Err(take_back_prepared(fs, store, session, &mut self.reach, &draft, why)),
        }
    }

    /// True if what is made has to be listed first: names in the tree or of files in it, and copies of content. A directory or link in the session alone is
    /// found again by its number, and made anew.
    fn makes_much(&self) -> bool {
        let items = &self.journal.items;
        items.iter().any(|item| item.beside.is_some() || item.original.is_some() || item.displaces(self.journal.head.verb))
    }

    fn make_ready(&mut self, fs: &Fs, store: &Store, session: &Locked, draft: &Draft) -> Result<Touched, Error> {
        // D7: opened before the first write, so that its error counts.
        let mut touched = Touched {
            file_systems: self.file_systems(store, session)?,
            objects: Vec::new(),
            directories: Vec::new(),
            many: false,
        };
        if let Some(uppers) = session.remove_blocks(fs)? {
            touched.directory(&Rc::new(uppers)); // D2: a name that came back would be one of what lies on the tree
        }
        let spot = displaced(self.journal.head.generation + 1);
        if draft.made.contains(&spot) {
            let named = self.reach.spot(&spot)?;
            fs.remove_all(named.at())?;
            fs.mkdir(named.at(), 0o700)?;
            touched.directory(&named.dir); // D3
        }
        let head = &self.journal.head;
        let frame = Frame { session: &head.session, verb: head.verb, generation: head.generation + 1 };
        let mut hands = Hands::new(fs, &mut self.reach, frame);
        for item in self.journal.items.iter_mut().filter(|item| item.moves()) {
            interrupt::check().at("go on with", &item.path)?;
            let path = item.path.clone();
            hands.ready(item, &mut touched).map_err(|error| of_path(error, &path, &head.session))?;
        }
        let untimed = std::mem::take(&mut hands.untimed);
        self.told.left.extend(untimed.into_iter().map(|path| (path, UNTIMED.to_owned())));
        Ok(touched)
    }

    /// The file systems to sync, the store's first. Nearly always it is the only one. Its descriptor dates from the opening of the
    /// session, before a caller that asks for its commit wrote into it.
    fn file_systems(&mut self, store: &Store, session: &Locked) -> Result<Vec<Dir>, Error> {
        let (mut found, mut devices) = (Vec::<Dir>::new(), Vec::new());
        for dir in [&session.dir, store.journals()] {
            let dev = dir.stat()?.dev;
            if !devices.contains(&dev) {
                devices.push(dev);
                found.push(dir.again()?);
            }
        }
        for root in &self.journal.head.roots {
            let held = self.reach.roots.root_of(&root.point)?;
            let dev = held.dir.stat()?.dev;
            if !devices.contains(&dev) {
                devices.push(dev);
                found.push(Dir::open(root.point.as_path())?);
            }
        }
        Ok(found)
    }
}

/// The objects to make durable before the journal has its name: what goes as well as what comes.
struct Touched {
    file_systems: Vec<Dir>,
    objects: Vec<Spot>,
    directories: Vec<Rc<Dir>>,
    /// True if they are so many that their file systems are synced.
    many: bool,
}

impl Touched {
    fn object(&mut self, spot: Spot) {
        self.many |= self.objects.len() + 1 >= MANY;
        if !self.many {
            self.objects.push(spot);
        }
    }

    fn directory(&mut self, dir: &Rc<Dir>) {
        if !self.directories.iter().any(|known| Rc::ptr_eq(known, dir)) {
            self.many |= self.directories.len() + 1 >= MANY;
            self.directories.push(dir.clone());
        }
    }

    /// Syncs all of it, and by `own` the files that get their names next (D1 to D3). Without it a power cut empties a target that was
    /// exchanged with unsynced content, and a blob whose original was still dirty.
    fn sync(&self, fs: &Fs, reach: &mut Reach, own: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if self.many {
            return self.sync_file_systems(fs);
        }
        for spot in &self.objects {
            let named = reach.spot(spot)?;
            // D1, D10; D3: a new directory itself, which has nothing yet but an owner (directory: not caught here).
            match fs.sync_at(named.at()) {
                // Not readable for us, so it cannot be opened: sync all of its file system.
                Err(error) if error.errno() == Some(libc::EACCES) => match spot {
                    Spot::Session(_) => fs.sync_fs(&reach.session())?,
                    Spot::Tree(path) => {
                        let root = reach.roots.root_of(path)?;
                        fs.sync_fs(&root.dir)?;
                    }
                },
                other => other?,
            }
        }
        for dir in &self.directories {
            match dir.readable() {
                true => fs.sync_dir(dir)?,
                false => return self.sync_file_systems(fs).and_then(|()| own()),
            }
        }
        own()
    }

    /// Syncs each file system with one call for all that was made there (D7).
    fn sync_file_systems(&self, fs: &Fs) -> Result<(), Error> {
        for dir in &self.file_systems {
            fs.sync_fs(dir)?;
        }
        Ok(())
    }
}

/// Copies and makes objects for an operation.
pub struct Hands<'a> {
    fs: &'a Fs,
    reach: &'a mut Reach,
    /// The copy of the first name of a hard-link group, by the inode in the store.
    links: HashMap<Inode, Spot>,
    /// The copy in its home of an original with several names, by its inode.
    copies: HashMap<Inode, Spot>,
    frame: Frame<'a>,
    me_is_root: bool,
    /// The directory that was last made sure to be open: names that follow each other mostly share it.
    opened: Option<Rc<Dir>>,
    /// Paths that have another time than was set.
    untimed: Vec<AbsPath>,
}

impl<'a> Hands<'a> {
    pub fn new(fs: &'a Fs, reach: &'a mut Reach, frame: Frame<'a>) -> Self {
        let me_is_root = rustix::process::geteuid().is_root();
        let (links, copies) = (HashMap::new(), HashMap::new());
        Self { fs, reach, links, copies, frame, me_is_root, opened: None, untimed: Vec::new() }
    }

    /// Readies what goes: copies it where it cannot be moved, and has it synced like what comes.
    fn ready_from(&mut self, item: &Item, places: &Places, touched: &mut Touched) -> Result<(), Error> {
        let Some(from) = &item.from else { return Ok(()) };
        if let Some(home) = places.home.as_ref().filter(|_| places.copied) {
            self.copy(&Spot::Tree(item.path.clone()), home, from, true)?;
            touched.object(home.clone());
            // D3: once what was copied is let go, this name is the only way to the original.
            touched.directory(&self.reach.spot(home)?.dir);
        }
        if matches!(from.state.what, What::File { .. }) {
            touched.object(Spot::Tree(item.path.clone()));
        }
        Ok(())
    }

    fn ready(&mut self, item: &mut Item, touched: &mut Touched) -> Result<(), Error> {
        let places = self.frame.places(item);
        self.ready_from(item, &places, touched)?;
        let (Some(to), Some(to_at)) = (&mut item.to, places.to) else { return Ok(()) };
        if item.in_place {
            item.placed = to.state.is_dir().then(|| Box::new(as_made(&to.state)));
            return Ok(());
        }
        if item.fresh {
            match &places.spare {
                _ if let Some(original) = item.original.as_ref().filter(|_| self.frame.verb.inward()) => {
                    copy::link_original(self.fs, self.reach, original, &to_at, &to.state)?
                }
                Some(spare) => self.copy(spare, &to_at, to, false)?,
                None => copy::make(self.fs, self.reach, &to_at, &to.state, false)?,
            }
        }
        let is_dir = to.state.is_dir();
        if item.planning.as_recorded && !item.fresh && !is_dir && self.me_is_root {
            touched.object(to_at);
            return Ok(());
        }
        let named = self.reach.spot(&to_at)?;
        self.open_held(&named, &to_at)?;
        if item.planning.as_recorded && !item.fresh && !is_dir {
            touched.object(to_at);
            return Ok(());
        }
        let at = named.at();
        // I16, in its most frequent case, known from planning.
        if let Some(mark) = item.planning.mark.filter(|_| !item.fresh && !is_dir && !item.planning.as_it_is) {
            self.fs.remove_xattr(at, mark)?;
            touched.object(to_at);
            return Ok(());
        }
        let mut now = observe::object(at)?.ok_or_else(|| copy::vanished(at))?;
        if is_dir && !self.me_is_root && now.state.meta.mode & 0o700 != 0o700 {
            self.fs.set_mode(at, now.state.meta.mode | 0o700)?;
            now = observe::object(at)?.ok_or_else(|| copy::vanished(at))?;
        }
        // An xattr that overlayfs left on an object of an upper is not recorded, and goes (docs/ARCHITECTURE.md, I16).
        if !is_dir && now.state.meta != to.state.meta && !item.planning.as_it_is {
            let (have, want) = (&now.state.meta, &to.state.meta);
            metadata::bring(self.fs, at, now.state.sort(), have, want).at("set the metadata of", &item.path)?;
            // A file system may keep times less exactly than they are wanted.
            now = match have.mtime == want.mtime {
                true => Seen { state: State { meta: want.clone(), ..now.state }, ..now },
                false => observe::object(at)?.ok_or_else(|| copy::vanished(at))?,
            };
            if !now.state.meta.mtime.shows(to.state.meta.mtime) {
                self.untimed.push(item.path.clone());
            }
        }
        if item.fresh {
            touched.directory(&named.dir);
        }
        if is_dir {
            // It is placed with its present metadata; its last step sets what is recorded.
            item.placed = Some(Box::new(std::mem::replace(&mut now.state, to.state.clone())));
        } else if let Some(hash) = to.state.hash() {
            now.set_hash(hash);
        }
        now.print.identity.loose = item.portable;
        *to = now;
        touched.object(to_at);
        Ok(())
    }

    /// Opens an upper's directory for the work: it has the mode that the command gave it.
    fn open_held(&mut self, named: &Named<'_>, spot: &Spot) -> Result<(), Error> {
        let is_open = self.opened.as_ref().is_some_and(|opened| Rc::ptr_eq(opened, &named.dir));
        if !matches!(spot, Spot::Session(_)) || self.me_is_root || is_open {
            return Ok(());
        }
        let stat = named.dir.stat()?;
        if stat.mode & 0o300 != 0o300 {
            self.fs.set_mode(named.dir.at(b"."), stat.mode | 0o700)?;
        }
        self.opened = Some(named.dir.clone());
        Ok(())
    }

    /// Copies an object between file systems, `wanted` its state; keeps hard links within a group. `dress` also sets the metadata.
    pub fn copy(&mut self, source: &Spot, spot: &Spot, wanted: &Seen, dress: bool) -> Result<(), Error> {
        let original = self.reach.spot(source)?.at().stat()?;
        let group = original.as_ref().and_then(Stat::shared);
        let known = if dress { &self.copies } else { &self.links };
        if let Some(first) = group.and_then(|inode| known.get(&inode)).cloned() {
            let first = self.reach.spot(&first)?;
            let named = self.reach.spot(spot)?;
            self.fs.remove_all(named.at())?;
            match self.fs.link(first.at(), named.at()) {
                // A directory that demands a project number has no name of a file with another one.
                Err(error) if error.errno() == Some(libc::EXDEV) => {}
                linked => return Ok(linked?),
            }
        }
        copy::copy(self.fs, self.reach, source, spot, &wanted.state, dress)?;
        if let Some(inode) = group {
            let known = if dress { &mut self.copies } else { &mut self.links };
            known.insert(inode, spot.clone());
        }
        Ok(())
    }
}

/// An error about what is made ready beside a path is one about the path: nobody knows the temporary name, and it goes.
fn of_path(error: Error, path: &AbsPath, session: &Id) -> Error {
    let mark = format!("/.recant-{session}-");
    match error.path().filter(|at| at.contains(&mark)).map(str::to_owned) {
        Some(temporary) => error.instead_of(&temporary, path),
        None => error,
    }
}

/// A directory as its step makes it in place: closed until it is filled.
fn as_made(directory: &State) -> State {
    let mut made = directory.clone();
    made.meta.mode = 0o700;
    let xattrs = made.meta.xattrs.into_iter().filter(|(name, _)| !name.starts_with(b"system.posix_acl_"));
    made.meta.xattrs = xattrs.collect();
    made
}

impl Prepared {
    /// Writes the facts that planning found, and the journal; makes them durable with all that is ready, then names them (I1).
    pub fn intend(self, fs: &Fs, store: &Store, session: &Locked) -> Result<Intended, Error> {
        let Prepared { mut plan, draft, touched } = self;
        match write(fs, store, session, &mut plan, touched) {
            Ok(()) => Ok(Intended { journal: plan.journal, reach: plan.reach, told: plan.told }),
            Err(why) => Err(take_back_prepared(fs, store, session, &mut plan.reach, &draft, why)),
        }
    }
}

fn write(fs: &Fs, store: &Store, session: &Locked, plan: &mut Plan, touched: Touched) -> Result<(), Error> {
    let journal = &plan.journal;
    let learned = journal.head.verb.inward() && journal.items.iter().any(|item| item.planning.learned);
    let changes = if learned { Some(records::write_hashes(fs, session, &journal.items)?) } else { None };
    let written: Written = journal.write_new(fs, store)?;
    if journal.head.verb.inward() {
        reserve::keep(fs, store, session, written.size(store)?)?;
    }
    // D1, D2, D3: what was made ready, with the directories that it lies in.
    touched.sync(fs, &mut plan.reach, || {
        let with = changes.as_ref().map(|changes| (&changes.file, session.dir.path()));
        written.sync(fs, store, with) // D1, D6: whole before it has its name
    })?;
    if let Some(changes) = changes {
        // D2: its name becomes durable with the seal's, or a recovery gives it again (`records::learn_again`).
        changes.name(fs, &session.dir)?;
    }
    written.name(fs, store, session.id())
}
