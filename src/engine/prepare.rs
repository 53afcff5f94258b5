//! Prepare and intend: what is wanted is made ready and durable, then the journal that names every step.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::journal::{Draft, Head, Journal};
use super::plan::Plan;
use super::report::Report;
use super::step::{Act, Spot, Step};
use super::{Error, meta, undo};
use crate::error::{At, IoError};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry, Sort};
use crate::fs::path::AbsPath;
use crate::fs::roots::Roots;
use crate::session::run::boot_id;
use crate::session::store::{Locked, Session, Store, sides_name};
use crate::tree::look::{self, Seen};
use crate::tree::state::{Identity, State, What};

/// All `to`s are ready, and durable.
pub struct Prepared<'j> {
    pub(super) plan: Plan<'j>,
    pub(super) made: Vec<Spot>,
}

/// The journal is there: from here to the seal a crash is undone.
pub struct Intended {
    pub(super) journal: Journal,
    pub(super) report: Report,
}

/// Where spots and paths are reached: folders by held descriptors, the last ones kept open.
pub(super) struct Reach<'s> {
    pub roots: Roots,
    session: &'s Dir,
    held: HashMap<Vec<u8>, Rc<Dir>>,
}

/// A folder and the last name in it.
pub(super) struct Named<'p> {
    pub dir: Rc<Dir>,
    pub name: &'p [u8],
}

impl Named<'_> {
    pub fn at(&self) -> Entry<'_> {
        self.dir.at(self.name)
    }
}

impl<'s> Reach<'s> {
    pub fn new(session: &'s Dir) -> Result<Self, IoError> {
        let roots = Roots::read().at("read the mounts from", "/proc/self/mountinfo")?;
        Ok(Self { roots, session, held: HashMap::new() })
    }

    pub fn path<'p>(&mut self, path: &'p AbsPath) -> std::io::Result<Named<'p>> {
        let parent = super::plan::parent_of(path)?;
        Ok(Named { dir: self.roots.folder(&parent)?, name: path.name() })
    }

    pub fn spot<'p>(&mut self, spot: &'p Spot) -> std::io::Result<Named<'p>> {
        let below = match spot {
            Spot::Tree(path) => return self.path(path),
            Spot::Session(below) => below,
        };
        let (parent, name) =
            below.iter().rposition(|b| *b == b'/').map_or((&b""[..], &below[..]), |cut| (&below[..cut], &below[cut + 1..]));
        Ok(Named { dir: self.held(parent)?, name })
    }

    /// A folder below the session's.
    pub fn held(&mut self, below: &[u8]) -> std::io::Result<Rc<Dir>> {
        if let Some(dir) = self.held.get(below) {
            return Ok(dir.clone());
        }
        let dir = Rc::new(self.session.open_below(below)?);
        if self.held.len() >= 128 {
            self.held.clear();
        }
        self.held.insert(below.to_vec(), dir.clone());
        Ok(dir)
    }
}

impl std::fmt::Display for Spot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Spot::Session(below) => write!(f, "{} in the session", crate::fs::path::Shown(below)),
            Spot::Tree(path) => path.fmt(f),
        }
    }
}

/// Above this number of objects one syncfs is cheaper than an fsync of each (D7).
pub(super) const MANY: usize = 16;

impl<'j> Plan<'j> {
    /// Makes every `to` ready on its target's mount and copies what cannot be moved; then syncs what goes as well as what
    /// comes. A failure takes all of it away again.
    pub fn prepare(mut self, fs: &Fs, store: &Store, session: &Locked) -> Result<Prepared<'j>, Error> {
        let made = self.to_be_made();
        let draft = Draft { made, times: self.times.clone(), generation: self.generation };
        match draft.write(fs, store, &self.id).and_then(|()| self.make_ready(fs, session)) {
            Ok(()) => Ok(Prepared { plan: self, made: draft.made }),
            Err(why) => Err(undo::take_back_prepared(fs, store, session, &draft, why)),
        }
    }

    fn to_be_made(&self) -> Vec<Spot> {
        let mut made: BTreeSet<Spot> = BTreeSet::new();
        for step in self.steps.iter().filter(|step| step.act != Act::SetMeta) {
            let unmade = step.to.as_ref().is_some_and(|to| to.print.identity.ino == 0);
            made.extend(step.to_at.clone().filter(|spot| unmade || matches!(spot, Spot::Tree(_))));
            made.extend(step.home.clone().filter(|_| step.copied));
            made.extend(step.out.clone().filter(|spot| matches!(spot, Spot::Tree(_))));
        }
        if self.outcomes.iter().any(|outcome| outcome.displaces(self.job.verb)) {
            made.insert(displaced(self.generation));
        }
        made.into_iter().collect()
    }

    fn make_ready(&mut self, fs: &Fs, session: &Locked) -> Result<(), Error> {
        let mut reach = Reach::new(&session.dir)?;
        // D7: opened before the first write, so that its error counts.
        let file_systems = self.file_systems(&mut reach, session)?;
        if self.to_be_made().contains(&displaced(self.generation)) {
            let spot = displaced(self.generation);
            let named = reach.spot(&spot).at("open the folder", &spot)?;
            fs.remove_all(named.at()).at("remove", named.at())?;
            fs.mkdir(named.at(), 0o700).at("make the folder", named.at())?;
            fs.sync_dir(&named.dir).at("sync", named.dir.path().display())?; // D3
        }
        let mut hands = Hands { fs, reach, links: HashMap::new(), copies: HashMap::new(), id: self.id.clone() };
        let mut touched: Vec<Touched> = Vec::new();
        let mut placed: HashMap<AbsPath, Seen> = HashMap::new();
        for step in self.steps.iter_mut().filter(|step| step.act != Act::SetMeta) {
            hands.ready(step, &mut touched)?;
            if step.becomes_folder()
                && let Some(to) = &step.to
            {
                placed.insert(step.path.clone(), to.clone());
            }
        }
        self.bind_final_metadata(&placed);
        hands.sync(&self.steps, touched, &file_systems)
    }

    /// A new folder is placed with what it has now; the step that ends it sets what is recorded.
    fn bind_final_metadata(&mut self, placed: &HashMap<AbsPath, Seen>) {
        for step in self.steps.iter_mut().filter(|step| step.act == Act::SetMeta) {
            let (Some(now), Some(wanted)) = (placed.get(&step.path), &mut step.to) else { continue };
            let meta = std::mem::replace(&mut wanted.state.meta, now.state.meta.clone());
            *wanted = now.clone();
            wanted.state.meta = meta;
            step.from = Some(now.clone());
        }
        // The journal tells what lies at `to_at`, not what it becomes.
        for step in self.steps.iter_mut().filter(|step| step.act != Act::SetMeta && step.becomes_folder()) {
            step.to = placed.get(&step.path).cloned();
        }
    }

    fn file_systems(&self, reach: &mut Reach<'_>, session: &Session) -> Result<Vec<Dir>, Error> {
        let mut found: Vec<Dir> = vec![session.dir.open_below(b"").at("open", session.dir.path().display())?];
        let mut devices = vec![found[0].stat().at("look at", session.dir.path().display())?.dev];
        for root in &self.roots {
            let held = reach.roots.root_of(&root.point).at("open", &root.point)?;
            let dev = held.dir.stat().at("look at", &root.point)?.dev;
            if !devices.contains(&dev) {
                devices.push(dev);
                found.push(Dir::open(root.point.as_path()).at("open", &root.point)?);
            }
        }
        Ok(found)
    }
}

fn displaced(generation: u64) -> Spot {
    Spot::Session(format!("displaced/{generation}").into_bytes())
}

/// What has to be durable before the journal.
enum Touched {
    Object(Spot),
    Folder(Rc<Dir>),
}

struct Hands<'a, 's> {
    fs: &'a Fs,
    reach: Reach<'s>,
    /// Where the first name of a hard-link group was copied to, by the identity in the store.
    links: HashMap<Identity, Spot>,
    /// The same for originals that are copied to their homes.
    copies: HashMap<Identity, Spot>,
    id: crate::session::id::Id,
}

impl Hands<'_, '_> {
    /// Makes one step ready.
    fn ready(&mut self, step: &mut Step, touched: &mut Vec<Touched>) -> Result<(), Error> {
        if step.copied
            && let (Some(from), Some(home)) = (&step.from, &step.home)
        {
            let source = Spot::Tree(step.path.clone());
            self.copy(&source, home, from, true)?;
            touched.push(Touched::Object(home.clone()));
            // D3: once what was copied is let go, this name is the only way to the original.
            touched.push(Touched::Folder(self.reach.spot(home).at("open the folder of", home)?.dir));
        }
        let (Some(to), Some(to_at)) = (&mut step.to, &step.to_at) else { return Ok(()) };
        let fresh = to.print.identity.ino == 0 || step.spare.is_some();
        if fresh {
            match &step.spare {
                Some(spare) => self.copy(&spare.clone(), to_at, to, false)?,
                None => self.make(to_at, &to.state, false)?,
            }
        }
        let named = self.reach.spot(to_at).at("open the folder of", to_at)?;
        self.open_held(&named, to_at)?;
        if step.as_recorded && !fresh && !to.state.is_folder() {
            touched.push(Touched::Object(to_at.clone()));
            return Ok(());
        }
        let at = named.at();
        let digest = to.state.digest();
        let mut now = look::look(at).at("look at", at)?.ok_or_else(|| gone(at))?;
        let is_folder = now.state.is_folder();
        if is_folder && !rustix::process::geteuid().is_root() && now.state.meta.mode & 0o700 != 0o700 {
            self.fs.set_mode(at, now.state.meta.mode | 0o700).at("set the mode of", at)?;
            now = look::look(at).at("look at", at)?.ok_or_else(|| gone(at))?;
        }
        // What overlayfs left on an object of an upper is no part of the recorded state, and goes (docs/ARCHITECTURE.md, I16).
        if !is_folder && now.state.meta != to.state.meta {
            meta::bring(self.fs, at, now.state.sort(), &now.state.meta, &to.state.meta).at("set the metadata of", &step.path)?;
            now = look::look(at).at("look at", at)?.ok_or_else(|| gone(at))?;
        }
        if let Some(digest) = digest {
            now.set_digest(digest);
        }
        if fresh {
            touched.push(Touched::Folder(named.dir.clone()));
        }
        touched.push(Touched::Object(to_at.clone()));
        *to = now;
        Ok(())
    }

    /// An upper's folder has the mode that the command gave it; names have to be changed in it.
    fn open_held(&self, named: &Named<'_>, spot: &Spot) -> Result<(), Error> {
        if !matches!(spot, Spot::Session(_)) || rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let stat = named.dir.stat().at("look at", spot)?;
        if stat.mode & 0o300 != 0o300 {
            self.fs.set_mode(named.dir.at(b"."), stat.mode | 0o700).at("set the mode of", named.dir.path().display())?;
        }
        Ok(())
    }

    /// Makes a folder, link, FIFO, socket or device from its record. A folder stays closed, 0700, until it is filled.
    fn make(&mut self, spot: &Spot, state: &State, dress: bool) -> Result<(), Error> {
        let named = self.reach.spot(spot).at("open the folder of", spot)?;
        let at = named.at();
        self.fs.remove_all(at).at("remove", at)?;
        match &state.what {
            What::Folder => self.fs.mkdir(at, 0o700),
            What::Symlink { target } => self.fs.symlink(target, at),
            What::Fifo => self.fs.mknod(at, Sort::Fifo, 0o600, crate::fs::dir::Dev(0, 0)),
            What::Socket => self.fs.mknod(at, Sort::Socket, 0o600, crate::fs::dir::Dev(0, 0)),
            What::Char(dev) => self.fs.mknod(at, Sort::Char, 0o600, *dev),
            What::Block(dev) => self.fs.mknod(at, Sort::Block, 0o600, *dev),
            What::File { .. } => self.fs.create(at, 0o600).map(drop),
        }
        .at("make", at)?;
        let now = look::look(at).at("look at", at)?.ok_or_else(|| gone(at))?;
        if dress {
            meta::bring(self.fs, at, state.sort(), &now.state.meta, &state.meta).at("set the metadata of", at)?;
        } else if state.is_folder() && (now.state.meta.uid, now.state.meta.gid) != (state.meta.uid, state.meta.gid) {
            self.fs.set_owner(at, state.meta.uid, state.meta.gid).at("set the owner of", at)?;
        }
        Ok(())
    }

    /// Copies an object between file systems, `wanted` its state; hard links within a group are kept. `dress` sets the
    /// metadata too.
    fn copy(&mut self, source: &Spot, spot: &Spot, wanted: &Seen, dress: bool) -> Result<(), Error> {
        let state = &wanted.state;
        let from = self.reach.spot(source).at("open the folder of", source)?;
        let original = look::look(from.at()).at("look at", from.at())?;
        let group = original.as_ref().filter(|seen| seen.nlink > 1 && !state.is_folder()).map(|seen| seen.print.identity);
        let known = if dress { &self.copies } else { &self.links };
        if let Some(first) = group.and_then(|identity| known.get(&identity)).cloned() {
            let first = self.reach.spot(&first).at("open the folder of", &first)?;
            let named = self.reach.spot(spot).at("open the folder of", spot)?;
            self.fs.remove_all(named.at()).at("remove", named.at())?;
            self.fs.link(first.at(), named.at()).at("link", named.at())?;
            return Ok(());
        }
        if matches!(state.what, What::File { .. }) {
            let named = self.reach.spot(spot).at("open the folder of", spot)?;
            let at = named.at();
            self.fs.remove_all(at).at("remove", at)?;
            let file = self.fs.create(at, 0o600).at("make", at)?;
            let content = from.at().open_file().at("open", from.at())?;
            self.fs.copy(&content, &file, named.dir.path()).at("copy the content to", at)?;
            let (digest, _) = look::digest(at).at("read", at)?;
            if state.digest().is_some_and(|known| known != digest) {
                let why = format!("its content changed while it was copied (recant {})", self.id);
                return Err(Error::Refused(vec![(from.at().to_string(), why)]));
            }
            if dress {
                let now = look::look(at).at("look at", at)?.ok_or_else(|| gone(at))?;
                meta::bring(self.fs, at, Sort::File, &now.state.meta, &state.meta).at("set the metadata of", at)?;
            }
        } else {
            self.make(spot, state, dress)?;
        }
        if let Some(identity) = group {
            let known = if dress { &mut self.copies } else { &mut self.links };
            known.insert(identity, spot.clone());
        }
        Ok(())
    }

    /// D1 to D3: what goes as well as what comes, with the folders in which anything was made. An exchange of unsynced
    /// content leaves an empty target after a cut; an original that was still dirty would become an empty blob.
    fn sync(&mut self, steps: &[Step], mut touched: Vec<Touched>, file_systems: &[Dir]) -> Result<(), Error> {
        let mut folders = HashSet::new();
        touched.retain(|touched| match touched {
            Touched::Folder(dir) => folders.insert(Rc::as_ptr(dir)),
            Touched::Object(_) => true,
        });
        let leaving = |step: &&Step| {
            step.act != Act::SetMeta && step.from.as_ref().is_some_and(|from| matches!(from.state.what, What::File { .. }))
        };
        if steps.iter().filter(leaving).count() + touched.len() >= MANY {
            for dir in file_systems {
                self.fs.sync_fs(dir).at("sync the file system of", dir.path().display())?;
            }
            return Ok(());
        }
        for step in steps.iter().filter(leaving) {
            let named = self.reach.path(&step.path).at("open the folder of", &step.path)?;
            match self.fs.sync_at(named.at()) {
                // Not readable for us, so not to be opened: all of its file system then.
                Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                    let root = self.reach.roots.root_of(&step.path).at("find the mount of", &step.path)?;
                    self.fs.sync_fs(&root.dir).at("sync the file system of", &root.mount.point)?;
                }
                other => other.at("sync", &step.path)?,
            }
        }
        for touched in touched {
            match touched {
                Touched::Object(spot) => {
                    let named = self.reach.spot(&spot).at("open the folder of", &spot)?;
                    // D1, D10; D3: a new folder itself, which has nothing yet but an owner (folder: not caught here).
                    match self.fs.sync_at(named.at()) {
                        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                            self.fs.sync_fs(&named.dir).at("sync the file system of", named.at())?;
                        }
                        other => other.at("sync", named.at())?,
                    }
                }
                Touched::Folder(dir) => self.fs.sync_dir(&dir).at("sync", dir.path().display())?,
            }
        }
        Ok(())
    }
}

fn gone(at: Entry<'_>) -> Error {
    Error::Refused(vec![(at.to_string(), "it vanished while it was made ready".into())])
}

impl Prepared<'_> {
    /// Writes the facts that planning found, the sides to be, and the journal (E1).
    pub fn intend(self, fs: &Fs, store: &Store, session: &mut Locked) -> Result<Intended, Error> {
        let draft = Draft { made: self.made.clone(), times: self.plan.times.clone(), generation: self.plan.generation };
        match self.write(fs, store, session) {
            Ok(intended) => Ok(intended),
            Err(why) => Err(undo::take_back_prepared(fs, store, session, &draft, why)),
        }
    }

    fn write(self, fs: &Fs, store: &Store, session: &mut Locked) -> Result<Intended, Error> {
        let plan = self.plan;
        if plan.job.verb.inward() {
            write_digests(fs, session, &plan)?;
        }
        let name = sides_name(plan.generation);
        let at = session.dir.at(&name);
        fs.replace(at, &crate::session::sides::to_bytes(&plan.sides)).at("write", at)?;
        let report = plan.report();
        let head = Head {
            journal: 1,
            verb: plan.job.verb,
            session: plan.id.clone(),
            generation: plan.generation - 1,
            boot: boot_id(),
            roots: plan.roots,
            times: plan.times,
            made: self.made,
            header: plan.header,
            remnant: false,
        };
        let journal = Journal { head, steps: plan.steps, outcomes: plan.outcomes };
        journal.write(fs, store)?;
        Ok(Intended { journal, report })
    }
}

/// `changes.jsonl` with the digests that planning took: facts, which stay when the operation is undone.
fn write_digests(fs: &Fs, session: &Locked, plan: &Plan<'_>) -> Result<(), Error> {
    let mut changes = session.changes()?;
    let mut learned = false;
    let mut learn = |known: &mut Option<State>, found: &Option<State>| {
        let (Some(known), Some(found)) = (known, found) else { return };
        if let (What::File { digest: digest @ None, size }, What::File { digest: Some(read), size: read_size }) =
            (&mut known.what, &found.what)
            && *size == *read_size
        {
            *digest = Some(*read);
            learned = true;
        }
    };
    for outcome in &plan.outcomes {
        let Some(change) = changes.list.get_mut(outcome.index) else { continue };
        learn(&mut change.before.object, &outcome.from);
        learn(&mut change.after, &outcome.to);
    }
    if learned {
        session.rewrite(fs, &changes, session.header.lines)?;
    }
    Ok(())
}
