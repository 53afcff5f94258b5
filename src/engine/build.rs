//! The steps of a plan, in the order of docs/ARCHITECTURE.md, Steps: folders opened up, new folders, leaves, folders that go, and
//! last the metadata and times of folders.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::Error;
use super::draft::{Draft, Going};
use super::job::{Job, Move, Verb};
use super::plan::{Outcome, Plan, Roads};
use super::step::{Act, FolderTime, RootRecord, Spot, Step};
use crate::checkpoint::manifest::{Kept, Manifest};
use crate::error::At;
use crate::fs::dir::Dir;
use crate::fs::path::AbsPath;
use crate::session::header::Counts;
use crate::session::sides::Side;
use crate::session::store::Session;
use crate::tree::digest::Digest;
use crate::tree::look::{self, Seen};
use crate::tree::state::{State, What};

impl<'j> Draft<'j, '_> {
    pub fn build(mut self) -> Result<Plan<'j>, Error> {
        let mut going = std::mem::take(&mut self.going);
        self.leaving = going.iter().filter(|going| going.leaves_folder()).map(|going| going.mv.path.clone()).collect();
        for from in going.iter().filter_map(|going| going.from.as_ref()).filter(|from| from.nlink > 1) {
            *self.names_here.entry(from.print.identity).or_default() += 1;
        }
        let folders = self.worked_in(&going)?;
        let mut names = Names::new(self.session, self.job)?;
        let mut steps: Vec<Step> = Vec::with_capacity(going.len() * 9 / 8);
        let opened = self.open_up(&folders, &going, &mut steps)?;
        let mut last: Vec<Step> = Vec::new();
        let mut kept_bytes = 0;
        let (mut new_folders, mut leaves, mut gone_folders) = (Vec::new(), Vec::new(), Vec::new());
        for going in &mut going {
            let (step, final_meta, kept) = self.step_of(going, &opened, &mut names)?;
            if self.job.verb.inward() && matches!(kept, Kept::Blob { .. }) {
                kept_bytes += going.from.as_ref().map_or(0, |seen| seen.blocks);
            }
            self.note_outcome(going, kept);
            last.extend(final_meta);
            let Some(step) = step else { continue };
            match (going.becomes_folder() && !going.was_folder(), going.leaves_folder()) {
                (true, _) => new_folders.push(step),
                (_, true) => gone_folders.push(step),
                _ => leaves.push(step),
            }
        }
        drop(going);
        steps.append(&mut new_folders);
        steps.append(&mut leaves);
        gone_folders.reverse();
        steps.append(&mut gone_folders);
        self.close_again(&opened, &steps, &mut last);
        last.sort_by(|a, b| b.path.cmp(&a.path));
        steps.append(&mut last);
        let times = self.folder_times(&folders, &steps)?;
        self.check_room(&steps)?;
        let roots = self.root_records(&steps, &times)?;
        self.finish(steps, times, roots, kept_bytes)
    }

    /// Steps that give the user `u+rwx` on folders of his own that lack it and are worked in, or go. Root needs none.
    fn open_up(
        &mut self,
        folders: &BTreeMap<AbsPath, Rc<Dir>>,
        going: &[Going<'_>],
        steps: &mut Vec<Step>,
    ) -> Result<HashMap<AbsPath, Seen>, Error> {
        let mut opened = HashMap::new();
        if self.me.is_root() {
            return Ok(opened);
        }
        let mut all: BTreeMap<AbsPath, Seen> = BTreeMap::new();
        for (path, dir) in folders {
            all.insert(path.clone(), look::folder(dir).at("look at", path)?);
        }
        let leaving = going.iter().filter(|going| going.leaves_folder());
        let leaving = leaving.filter_map(|going| Some((going.mv.path.clone(), going.from.clone()?)));
        all.extend(leaving);
        for (path, seen) in all {
            let meta = &seen.state.meta;
            if meta.uid != self.me.as_raw() || meta.mode & 0o700 == 0o700 {
                continue;
            }
            let mut open = seen.clone();
            open.state.meta.mode |= 0o700;
            steps.push(set_meta(&path, 0, seen.clone(), open));
            opened.insert(path, seen);
        }
        Ok(opened)
    }

    /// The opened folders that stay get their mode back, unless a step of their own does it.
    fn close_again(&self, opened: &HashMap<AbsPath, Seen>, steps: &[Step], last: &mut Vec<Step>) {
        let settled: HashSet<AbsPath> = last.iter().map(|step| step.path.clone()).collect();
        let removed: HashSet<&AbsPath> =
            steps.iter().filter(|step| step.act != Act::SetMeta && step.was_folder()).map(|step| &step.path).collect();
        for (path, seen) in opened {
            if !settled.contains(path) && !removed.contains(path) {
                let mut open = seen.clone();
                open.state.meta.mode |= 0o700;
                last.push(set_meta(path, 0, open, seen.clone()));
            }
        }
    }

    /// The step of one move, the one that sets its metadata at last where that is a step of its own, and what a commit
    /// keeps of what was there.
    fn step_of(
        &mut self,
        going: &mut Going<'_>,
        opened: &HashMap<AbsPath, Seen>,
        names: &mut Names,
    ) -> Result<(Option<Step>, Option<Step>, Kept), Error> {
        let mv = going.mv;
        if mv.in_place {
            let (Some(mut from), Some(to)) = (going.from.clone(), &mv.to) else { return Ok((None, None, Kept::Nothing)) };
            if opened.contains_key(&mv.path) {
                from.state.meta.mode |= 0o700;
            }
            let mut wanted = from.clone();
            wanted.state.meta = to.meta.clone();
            return Ok((None, Some(set_meta(&mv.path, mv.n, from, wanted)), Kept::Metadata));
        }
        let mut from = going.from.clone();
        if let (Some(seen), true) = (&mut from, opened.contains_key(&mv.path)) {
            seen.state.meta.mode |= 0o700;
        }
        let act = match (&from, &mv.to) {
            (None, None) => return Ok((None, None, Kept::Nothing)),
            (None, Some(_)) => Act::Place,
            (Some(_), Some(_)) => Act::Replace,
            (Some(_), None) => Act::Remove,
        };
        let copies = self.copies(&mv.path)?;
        if copies && going.kept_found && going.was_folder() {
            let why = "the folder that is there lies on another file system than the store, and cannot be kept; move it away";
            return Err(Error::Refused(vec![(mv.path.to_string(), why.into())]));
        }
        let (mut kept, home) = names.home(going)?;
        if let (Kept::Blob { unlinked, .. }, Some(from), true) = (&mut kept, &from, copies)
            && from.nlink > 1
            && from.nlink > self.names_here.get(&from.print.identity).copied().unwrap_or(0)
        {
            *unlinked = true;
            let why = "it has other names outside the session, and the store is on another file system";
            self.notes.push(format!("{}: {why}: a copy is kept, and a rollback makes a file of its own", mv.path));
        }
        let beside = if copies { Some(self.beside(mv)?) } else { None };
        // `to` as it is to be: what lies in the store, with the recorded metadata. Prepare makes it so.
        let as_recorded = going.to.as_ref().zip(mv.to.as_ref()).is_some_and(|(seen, to)| seen.state.meta == to.meta);
        let to = mv.to.as_ref().map(|to| {
            let mut seen = going.to.clone().unwrap_or_else(|| unmade(to));
            let digest = seen.state.digest();
            seen.state = to.clone();
            if let (Some(digest), What::File { digest: known, size }) = (digest, &mut seen.state.what) {
                *known = Some(digest);
                *size = going.to.as_ref().map_or(*size, |seen| seen.state.size());
            }
            seen
        });
        let in_store = going.to.as_ref().and(mv.to_at.clone()).map(Spot::Session);
        let made = || Spot::Session(crate::session::stage::object_name(mv.n));
        let (to_at, spare) = match (&to, beside.clone()) {
            (None, _) => (None, None),
            (Some(_), Some(beside)) => (Some(beside), in_store),
            (Some(_), None) => (Some(in_store.unwrap_or_else(made)), None),
        };
        let out = match act {
            Act::Place | Act::SetMeta => None,
            Act::Replace => to_at.clone(),
            Act::Remove => beside
                .or_else(|| home.clone())
                .or_else(|| Some(Spot::Session(format!("held/objects/gone-{}", mv.n).into_bytes()))),
        };
        let final_meta = match &to {
            // Undo asks where the folder lies if it is not in its place.
            Some(to) if to.state.is_folder() => {
                Some(Step { to_at: to_at.clone(), ..set_meta(&mv.path, mv.n, to.clone(), to.clone()) })
            }
            _ => None,
        };
        let copied = copies && from.is_some() && home.is_some();
        let whole = going.kept_found && from.as_ref().is_some_and(|seen| seen.state.is_folder());
        let step = Step { act, path: mv.path.clone(), n: mv.n, from, to, to_at, out, home, copied, spare, as_recorded, whole };
        Ok((Some(step), final_meta, kept))
    }

    /// Whether objects have to be copied between the session's folder and the target's.
    fn copies(&mut self, path: &AbsPath) -> Result<bool, Error> {
        if self.roads == Roads::CopyAll {
            return Ok(true);
        }
        let parent = path.parent().unwrap_or_else(|| path.clone());
        Ok(self.roots.root_of(&parent).at("find the mount of", path)?.mount.id != self.session_mount)
    }

    /// A temporary name in the nearest folder above the target that is there now and stays.
    fn beside(&mut self, mv: &Move) -> Result<Spot, Error> {
        let name = format!(".recant-{}-{}", self.session.id(), mv.n);
        let mut folder = mv.path.parent();
        while let Some(path) = folder {
            let goes = self.leaving.contains(&path);
            if !goes && self.roots.folder(&path).is_ok() {
                let beside =
                    path.join(name.as_bytes()).map_err(|error| Error::Refused(vec![(path.to_string(), error.to_string())]))?;
                return Ok(Spot::Tree(beside));
            }
            folder = path.parent();
        }
        Err(Error::Refused(vec![(mv.path.to_string(), "no folder above it is there".into())]))
    }

    fn note_outcome(&mut self, going: &Going<'_>, kept: Kept) {
        let mv = going.mv;
        let mut to = mv.to.clone();
        if let (Some(State { what: What::File { digest, size }, .. }), Some(seen)) = (&mut to, &going.to) {
            (*digest, *size) = (seen.state.digest(), seen.state.size());
        }
        // The inode stays, and so does its content: that which is found by force, and the digest that was taken of it.
        if mv.in_place
            && let (Some(to), Some(from)) = (&mut to, &going.from)
            && (going.kept_found || to.digest().is_none())
        {
            to.what = from.state.what.clone();
        }
        // The folder's recorded state, not the mode that it was opened up with.
        let from = going.from.as_ref().map(|seen| seen.state.clone());
        let from = match (from, &mv.from) {
            (Some(mut found), Some(expected)) if !going.kept_found => {
                let digest = found.digest().or(expected.digest());
                if let What::File { digest: known, .. } = &mut found.what {
                    *known = digest;
                }
                Some(found)
            }
            (found, _) => found,
        };
        // By force something else than the `after` came off the tree: the `after` is lost, unless the record can make it again.
        let side = match mv.side {
            Side::Out if going.kept_found && !mv.in_place && mv.from.is_some() => Side::Lost,
            side => side,
        };
        let forced = going.kept_found;
        self.outcomes.push(Outcome {
            index: mv.index,
            n: mv.n,
            path: mv.path.clone(),
            from,
            to,
            kept,
            side,
            forced,
            spare: None,
        });
    }

    /// The mtimes of folders that stay: those in which names change, and those that the job names.
    fn folder_times(&mut self, folders: &BTreeMap<AbsPath, Rc<Dir>>, steps: &[Step]) -> Result<Vec<FolderTime>, Error> {
        let own: HashMap<&AbsPath, &Step> = steps
            .iter()
            .filter(|step| step.n != 0 && (step.was_folder() || step.becomes_folder()))
            .map(|step| (&step.path, step))
            .collect();
        // Of the steps of one path the last is here: one that only sets metadata and places nothing leaves the folder where it is.
        let moves = |step: &&Step| step.act != Act::SetMeta || step.to_at.is_some();
        let wanted: HashMap<&AbsPath, _> = self.job.times.iter().map(|wanted| (&wanted.path, wanted)).collect();
        let always = self.job.times.iter().filter(|wanted| wanted.always).map(|wanted| wanted.path.clone());
        let paths: BTreeSet<AbsPath> = folders.keys().cloned().chain(always).collect();
        let now = crate::fs::now();
        let mut times = Vec::new();
        for path in paths.into_iter().filter(|path| !own.get(path).is_some_and(moves)) {
            let dir = match self.roots.folder(&path) {
                Ok(dir) => dir,
                // An mtime for a folder that went away meanwhile has nowhere to be.
                Err(_) if !folders.contains_key(&path) => continue,
                Err(error) => return Err(error).at("open the folder", &path).map_err(Error::from),
            };
            let stat = dir.stat().at("look at", &path)?;
            let mine = self.me.is_root() || stat.uid == self.me.as_raw();
            if let Some(to) = own.get(&path).and_then(|step| step.to.as_ref()) {
                let (identity, old, new) = (look::identity(&stat), stat.mtime, mine.then_some(to.state.meta.mtime));
                times.push(FolderTime { path, identity, old, new, original: old, own: true });
                continue;
            }
            let wanted = wanted.get(&path);
            let fits = wanted.is_some_and(|w| w.only_if.is_none_or(|left| left == stat.mtime));
            let new = wanted.filter(|_| fits).map_or(now, |wanted| wanted.mtime);
            let original = wanted.filter(|_| fits).and_then(|wanted| wanted.original).unwrap_or(stat.mtime);
            let (identity, old, new) = (look::identity(&stat), stat.mtime, mine.then_some(new));
            times.push(FolderTime { path, identity, old, new, original, own: false });
        }
        Ok(times)
    }

    fn root_records(&mut self, steps: &[Step], times: &[FolderTime]) -> Result<Vec<RootRecord>, Error> {
        let mut records: BTreeMap<AbsPath, RootRecord> = BTreeMap::new();
        let parents: BTreeSet<AbsPath> =
            steps.iter().filter_map(|step| step.path.parent()).chain(times.iter().map(|time| time.path.clone())).collect();
        for path in parents {
            let root = self.roots.root_of(&path).at("find the mount of", &path)?;
            if records.contains_key(&root.mount.point) {
                continue;
            }
            let stat = root.dir.stat().at("look at", &root.mount.point)?;
            let record = RootRecord {
                point: root.mount.point.clone(),
                fs_type: root.mount.fs_type.clone(),
                device: (stat.dev.0, stat.dev.1),
                identity: look::identity(&stat),
            };
            records.insert(record.point.clone(), record);
        }
        Ok(records.into_values().collect())
    }

    fn finish(
        mut self,
        steps: Vec<Step>,
        times: Vec<FolderTime>,
        roots: Vec<RootRecord>,
        kept_bytes: u64,
    ) -> Result<Plan<'j>, Error> {
        for outcome in &self.outcomes {
            self.sides[outcome.index] = outcome.side;
        }
        let count = |which: fn(Side) -> bool| self.sides.iter().filter(|side| which(**side)).count() as u64;
        let mut header = self.session.header.clone();
        header.generation += 1;
        header.changed = crate::fs::now();
        header.counts = Counts { changes: self.sides.len() as u64, inside: count(Side::is_in), ever_in: count(Side::was_in) };
        let moved: u64 = steps.iter().filter_map(|step| step.from.as_ref()).map(|seen| seen.blocks).sum();
        let came: u64 = steps
            .iter()
            .filter(|step| step.act != Act::SetMeta)
            .filter_map(|step| step.to.as_ref())
            .map(|seen| seen.blocks)
            .sum();
        let sizes = &mut header.sizes;
        if self.job.verb.inward() {
            (sizes.checkpoint, sizes.held) = (sizes.checkpoint + kept_bytes, sizes.held.saturating_sub(came));
        } else {
            (sizes.checkpoint, sizes.held) = (sizes.checkpoint.saturating_sub(came), sizes.held + moved);
        }
        Ok(Plan {
            job: self.job,
            id: self.session.id().clone(),
            generation: header.generation,
            steps,
            times,
            roots,
            outcomes: self.outcomes,
            sides: self.sides,
            header,
            already: self.already,
            left: self.left,
            notes: self.notes,
            kept_bytes,
        })
    }
}

/// Where what comes off the tree finds its home, no two at the same place.
struct Names {
    taken: HashSet<Digest>,
    blobs: Dir,
    verb: Verb,
    generation: u64,
}

impl Names {
    fn new(session: &Session, job: &Job) -> Result<Self, Error> {
        let taken = if job.verb.inward() { Manifest::read(&session.dir)?.plain_blobs() } else { HashSet::new() };
        let blobs = session.dir.open_below(b"checkpoint/blobs").at("open the folder", session.dir.at(b"checkpoint"))?;
        Ok(Self { taken, blobs, verb: job.verb, generation: session.header.generation + 1 })
    }

    fn home(&mut self, going: &Going<'_>) -> Result<(Kept, Option<Spot>), Error> {
        let mv = going.mv;
        let Some(from) = &going.from else { return Ok((Kept::Nothing, None)) };
        let displaced = || Spot::Session(format!("displaced/{}/{}", self.generation, mv.n).into_bytes());
        if !self.verb.inward() {
            let object = Spot::Session(crate::session::stage::object_name(mv.n));
            let home = if going.kept_found { displaced() } else { object };
            return Ok((Kept::Nothing, Some(home)));
        }
        if self.verb == Verb::Redo && going.kept_found {
            return Ok((Kept::Displaced { generation: self.generation }, Some(displaced())));
        }
        if let Some(why) = &mv.uncovered {
            return Ok((Kept::Uncovered { why: why.clone() }, None));
        }
        let kept = match from.state.what {
            What::File { digest: Some(digest), .. } => {
                let name = digest.to_string();
                let at = self.blobs.at(name.as_bytes());
                let numbered = !self.taken.insert(digest) || at.stat().at("look at", at)?.is_some();
                Kept::Blob { digest, numbered, unlinked: false }
            }
            What::File { digest: None, .. } => {
                return Err(Error::Refused(vec![(mv.path.to_string(), "its content was not read".into())]));
            }
            _ => Kept::Object,
        };
        let home = kept.place(mv.n).map(Spot::Session);
        Ok((kept, home))
    }
}

fn set_meta(path: &AbsPath, n: u32, from: Seen, to: Seen) -> Step {
    Step {
        act: Act::SetMeta,
        path: path.clone(),
        n,
        from: Some(from),
        to: Some(to),
        to_at: None,
        out: None,
        home: None,
        copied: false,
        spare: None,
        as_recorded: false,
        whole: false,
    }
}

/// What Prepare is to make from a record: it has no identity yet.
fn unmade(state: &State) -> Seen {
    let identity = crate::tree::state::Identity { ino: 0, btime: None };
    let print = crate::tree::state::Fingerprint { identity, ctime: Default::default(), racy: false };
    Seen { state: state.clone(), print, nlink: 1, blocks: 0 }
}
