//! Plan: looking at everything and changing nothing. All conflicts, refusals and damage are found here, not the first
//! alone; what comes out is the list of steps in the order of PROTOCOL.md, Steps.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::rc::Rc;

use rustix::fs::{Access, AtFlags};
use serde::{Deserialize, Serialize};

use super::Progress;
use super::conflict::Conflict;
use super::job::{Job, Move, OnConflict, Verb};
use super::report::{Done, Report, Row};
use super::step::{Act, FolderTime, RootRecord, Spot, Step};
use super::{Error, meta};
use crate::checkpoint::manifest::Kept;
use crate::error::{At, IoError};
use crate::fs::dir::leads_nowhere;
use crate::fs::dir::{Dir, Entry, Sort};
use crate::fs::lease::{Writers, writers};
use crate::fs::path::AbsPath;
use crate::fs::roots::Roots;
use crate::session::header::{Counts, Header};
use crate::session::id::Id;
use crate::session::sides::Side;
use crate::session::store::Session;
use crate::tree::digest::Digest;
use crate::tree::look::{self, Seen};
use crate::tree::state::{Difference, Identity, Likeness, Object, State, What, sort_word};

/// How content is to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Roads {
    /// Renamed within a mount, copied between two.
    ByMount,
    /// Copied everywhere: the kernel refused a rename that looked possible.
    CopyAll,
}

/// What a settled operation writes into the session about one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which of the session's changes.
    pub index: usize,
    /// Its number.
    pub n: u32,
    /// Its path.
    pub path: AbsPath,
    /// What was there; with the digest that planning took.
    pub from: Object,
    /// What is there now; with the digest that planning took.
    pub to: Object,
    /// What a commit keeps of `from`.
    pub kept: Kept,
    /// Where the change is now.
    pub side: Side,
}

/// All that will be done.
pub struct Plan<'j> {
    pub(super) job: &'j Job,
    pub(super) id: Id,
    pub(super) generation: u64,
    pub(super) steps: Vec<Step>,
    pub(super) times: Vec<FolderTime>,
    pub(super) roots: Vec<RootRecord>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) sides: Vec<Side>,
    pub(super) header: Header,
    pub(super) already: Vec<Row>,
    pub(super) left: Vec<(AbsPath, String)>,
    pub(super) notes: Vec<String>,
    pub(super) kept_bytes: u64,
}

/// What looking at one move told.
struct Looked {
    found: Option<Seen>,
    to: Option<Seen>,
    parent_mount: Option<u64>,
    verdict: Verdict,
    note: Option<String>,
}

enum Verdict {
    Go,
    AlreadySo,
    Conflict(Conflict),
    /// `--force`: what was found takes the place of what was expected.
    Keep,
    Refused(String),
    Damaged(String),
}

impl<'j> Plan<'j> {
    /// Looks at every path of the job, in two threads where there are many.
    ///
    /// Errors: every conflict ([`Error::Conflicts`]), everything that could not be done ([`Error::Refused`]), all content that
    /// is not what it was ([`Error::Damaged`]); in the reverse order of these where there are several kinds.
    pub fn look(session: &Session, job: &'j Job, roads: Roads, progress: &dyn Progress) -> Result<Self, Error> {
        let looked = look_at_all(session, job, progress)?;
        let mut draft = Draft::new(session, job, roads)?;
        draft.sort_out(looked)?;
        draft.check_folders_that_go()?;
        draft.check_folders_that_come();
        draft.fail_if_any()?;
        draft.build()
    }

    /// Whether there is nothing to do and nothing to write down.
    pub fn is_nothing(&self) -> bool {
        self.outcomes.is_empty() && self.steps.is_empty() && self.times.is_empty()
    }

    /// What would be done; what was done once it is settled.
    pub fn report(&self) -> Report {
        let changed: HashSet<&AbsPath> = self.outcomes.iter().map(|outcome| &outcome.path).collect();
        let mut rows: BTreeMap<&AbsPath, Row> = self.already.iter().map(|row| (&row.path, row.clone())).collect();
        for step in self.steps.iter().filter(|step| step.n != 0 && changed.contains(&step.path)) {
            // A folder that is placed gets its metadata in a step of its own: the placing is what is told.
            rows.entry(&step.path).or_insert_with(|| Row::of(step));
        }
        Report {
            verb: self.job.verb,
            rows: rows.into_values().collect(),
            left: self.left.clone(),
            notes: self.notes.clone(),
            kept: self.kept_bytes,
            status: self.header.status(),
            generation: self.generation,
        }
    }
}

/// So many moves are worth a second thread.
const WORTH_A_THREAD: usize = 64;

fn look_at_all(session: &Session, job: &Job, progress: &dyn Progress) -> Result<Vec<Looked>, Error> {
    let look_part = |moves: &[Move], told: bool| -> Result<Vec<Looked>, Error> {
        let mut eye = Eye::new(session, job)?;
        let mut looked = Vec::with_capacity(moves.len());
        for (done, mv) in moves.iter().enumerate() {
            if told {
                progress.at("looking", done * (job.moves.len() / moves.len().max(1)), job.moves.len());
            }
            looked.push(eye.look(mv)?);
        }
        Ok(looked)
    };
    if job.moves.len() < WORTH_A_THREAD {
        return look_part(&job.moves, true);
    }
    let (first, second) = job.moves.split_at(job.moves.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| look_part(second, false));
        let mut looked = look_part(first, true)?;
        match other.join() {
            Ok(more) => looked.extend(more?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(looked)
    })
}

/// Looks at single moves; each thread has its own.
struct Eye<'s> {
    roots: Roots,
    session: &'s Session,
    verb: Verb,
    on_conflict: OnConflict,
    me: u32,
    held: Option<(Vec<u8>, Rc<Dir>)>,
}

impl<'s> Eye<'s> {
    fn new(session: &'s Session, job: &Job) -> Result<Self, IoError> {
        let roots = Roots::read().at("read the mounts from", "/proc/self/mountinfo")?;
        let me = rustix::process::geteuid().as_raw();
        Ok(Self { roots, session, verb: job.verb, on_conflict: job.on_conflict, me, held: None })
    }

    fn look(&mut self, mv: &Move) -> Result<Looked, Error> {
        let mut looked = Looked { found: None, to: None, parent_mount: None, verdict: Verdict::Go, note: None };
        let Some(parent) = mv.path.parent() else {
            looked.verdict = Verdict::Refused("it is the root folder".into());
            return Ok(looked);
        };
        match self.roots.folder(&parent) {
            Ok(dir) => {
                looked.parent_mount = Some(dir.stat().at("look at", &parent)?.mount);
                self.look_in(&dir, mv, &mut looked)?;
            }
            Err(error) => match error.raw_os_error() {
                _ if leads_nowhere(&error) => looked.verdict = self.judge_absent(mv),
                Some(libc::EXDEV) => {
                    looked.verdict = Verdict::Refused("a file system was mounted on the way to it meanwhile".into());
                }
                Some(libc::EACCES) => looked.verdict = Verdict::Refused("you may not search the folder that it lies in".into()),
                _ => return Err(error).at("open the folder", &parent).map_err(Error::from),
            },
        }
        if matches!(looked.verdict, Verdict::Go | Verdict::Keep) {
            self.look_at_wanted(mv, &mut looked)?;
        }
        Ok(looked)
    }

    /// The folder itself is missing: so is what is in it.
    fn judge_absent(&self, mv: &Move) -> Verdict {
        match (&mv.from, &mv.to) {
            (None, _) => Verdict::Go,
            (Some(_), None) if !self.is_commit() => Verdict::AlreadySo,
            (from, _) => self.conflict(Conflict::of(&mv.path, from, &None, Difference::Presence)),
        }
    }

    fn is_commit(&self) -> bool {
        self.verb == Verb::Commit
    }

    fn conflict(&self, conflict: Conflict) -> Verdict {
        match self.on_conflict {
            OnConflict::Stop => Verdict::Conflict(conflict),
            OnConflict::Keep => Verdict::Keep,
        }
    }

    fn look_in(&mut self, dir: &Dir, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let at = dir.at(mv.path.name());
        let stat = at.stat().at("look at", &mv.path)?;
        if stat.is_some_and(|stat| stat.mount_root) {
            looked.verdict = Verdict::Refused("something is mounted there".into());
            return Ok(());
        }
        if stat.is_some_and(|stat| stat.locked) || dir.stat().at("look at", &mv.path)?.locked {
            let why = "it, or the folder that it lies in, is immutable or append-only (chattr -ia takes that off)";
            looked.verdict = Verdict::Refused(why.into());
            return Ok(());
        }
        let (found, likeness) = match look::compare(at, &mv.from, mv.from_print.as_ref()) {
            Ok(compared) => compared,
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                looked.verdict = Verdict::Refused("you may not read it, so that no checkpoint can be made of it".into());
                return Ok(());
            }
            Err(error) => return Err(error).at("read", &mv.path).map_err(Error::from),
        };
        looked.found = found;
        looked.verdict = match likeness {
            Likeness::Same if mv.foreign => {
                self.conflict(Conflict::said(&mv.path, "nobody else at work while the command ran", "a change made meanwhile"))
            }
            Likeness::Same => Verdict::Go,
            _ if self.is_as_wanted(at, mv, looked.found.as_mut())? && !self.is_commit() => Verdict::AlreadySo,
            Likeness::Differs(difference) => {
                let found = looked.found.as_ref().map(|seen| seen.state.clone());
                self.conflict(Conflict::of(&mv.path, &mv.from, &found, difference))
            }
            Likeness::ReadToTell => {
                self.conflict(Conflict::said(&mv.path, "content that is known", "content that cannot be told"))
            }
        };
        if matches!(looked.verdict, Verdict::Keep) && self.cannot_keep(mv, looked.found.as_ref()) {
            let found = looked.found.as_ref().map(|seen| seen.state.clone());
            looked.verdict = Verdict::Conflict(Conflict::of(&mv.path, &mv.from, &found, Difference::Kind));
        }
        if matches!(looked.verdict, Verdict::Go | Verdict::Keep) {
            self.look_at_leaving(at, mv, looked)?;
        }
        Ok(())
    }

    /// Whether the tree holds `to` already.
    fn is_as_wanted(&self, at: Entry<'_>, mv: &Move, found: Option<&mut Seen>) -> Result<bool, Error> {
        Ok(match (&mv.to, found) {
            (None, None) => true,
            (Some(to), Some(found)) => match to.likeness(&found.state) {
                Likeness::Same => true,
                Likeness::ReadToTell if to.digest().is_some() => {
                    let (digest, _) = look::digest(at).at("read", &mv.path)?;
                    found.set_digest(digest);
                    to.likeness(&found.state) == Likeness::Same
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Metadata can be set on what is there only if it is of the same kind; a folder that is to go has to be one that is emptied.
    fn cannot_keep(&self, mv: &Move, found: Option<&Seen>) -> bool {
        let sort = |object: &Object| object.as_ref().map(State::sort);
        mv.in_place && found.map(|seen| seen.state.sort()) != sort(&mv.from)
            || self.is_commit() && found.is_some_and(|seen| seen.state.is_folder()) && sort(&mv.from) != Some(Sort::Folder)
            || found.is_none() && sort(&mv.from) == Some(Sort::Folder) && sort(&mv.to) == Some(Sort::Folder)
    }

    /// What is on the tree and goes: nobody writes to it, and its digest names the blob.
    fn look_at_leaving(&mut self, at: Entry<'_>, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let Some(found) = &mut looked.found else { return Ok(()) };
        if mv.in_place || !matches!(found.state.what, What::File { .. }) {
            return Ok(());
        }
        if found.state.digest().is_none()
            && let (Some(from), Some(print)) = (&mv.from, &mv.from_print)
            && let Some(digest) = from.digest().filter(|_| found.unchanged_since(from, print))
        {
            found.set_digest(digest);
        }
        let file = match at.open_file() {
            Ok(file) => file,
            // It is only moved, not kept, and needs no reading then.
            Err(error) if error.raw_os_error() == Some(libc::EACCES) && !self.verb.inward() => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                looked.verdict = Verdict::Refused("you may not read it, so that no checkpoint can be made of it".into());
                return Ok(());
            }
            Err(error) => return Err(error).at("open", &mv.path).map_err(Error::from),
        };
        if writers(&file).at("ask for a lease on", &mv.path)? == Writers::Some {
            let conflict = Conflict::said(&mv.path, "a file that nobody writes to", "one that a process has open for writing");
            match self.conflict(conflict) {
                Verdict::Keep => looked.note = Some(format!("{}: a process has it open for writing", mv.path)),
                verdict => {
                    looked.verdict = verdict;
                    return Ok(());
                }
            }
        }
        if found.state.digest().is_none() && mv.uncovered.is_none() {
            drop(file);
            let (digest, stat) = look::digest(at).at("read", &mv.path)?;
            if look::identity(&stat) != found.print.identity || stat.ctime != found.print.ctime {
                looked.verdict = Verdict::Conflict(Conflict::said(&mv.path, "a file that stands still", "one that changes"));
            }
            found.set_digest(digest);
        }
        Ok(())
    }

    /// What is wanted: whether it is there in the store, and is what was put there (C1, I11).
    fn look_at_wanted(&mut self, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let (Some(place), Some(to)) = (&mv.to_at, &mv.to) else { return Ok(()) };
        let (parent, name) =
            place.iter().rposition(|b| *b == b'/').map_or((&b""[..], &place[..]), |cut| (&place[..cut], &place[cut + 1..]));
        if self.held.as_ref().is_none_or(|(held, _)| held != parent) {
            let dir = match self.session.dir.open_below(parent) {
                Ok(dir) => Rc::new(dir),
                Err(error) => {
                    looked.verdict =
                        Verdict::Damaged(format!("its content cannot be reached in the store: {}", crate::error::reason(&error)));
                    return Ok(());
                }
            };
            self.held = Some((parent.to_vec(), dir));
        }
        let Some((_, dir)) = &self.held else { return Ok(()) };
        let at = dir.at(name);
        let kept = if self.verb.inward() { "the held content" } else { "the kept original" };
        let Some(mut seen) = look::look(at).at("look at", at)? else {
            if !matches!(to.what, What::File { .. }) {
                // Made from the record.
                return Ok(());
            }
            looked.verdict = Verdict::Damaged(format!("{kept} is missing from the store"));
            return Ok(());
        };
        if seen.state.sort() != to.sort() {
            looked.verdict = Verdict::Damaged(format!("{kept} is a {} in the store", sort_word(seen.state.sort())));
            return Ok(());
        }
        if let What::File { .. } = to.what {
            let (digest, _) = self.read_held(at)?;
            seen.set_digest(digest);
        }
        match to.content_likeness(&seen.state) {
            Likeness::Same => {}
            Likeness::ReadToTell if to.digest().is_none() => {}
            _ if seen.state.meta.mtime != to.meta.mtime && !self.verb.inward() => {
                let conflict = Conflict::said(
                    &mv.path,
                    "the kept original as it was",
                    "it was written to since by a process that had it open",
                );
                match self.conflict(conflict) {
                    Verdict::Keep => {
                        looked.note = Some(format!("{}: given back as a process has written it since it was kept", mv.path))
                    }
                    verdict => {
                        looked.verdict = verdict;
                        return Ok(());
                    }
                }
            }
            _ => {
                looked.verdict = Verdict::Damaged(format!("{kept} is damaged (SHA-256 differs)"));
                return Ok(());
            }
        }
        looked.to = Some(seen);
        Ok(())
    }

    /// A held file of mode 0000 is its owner's all the same; it is read as it lies, or not at all.
    fn read_held(&self, at: Entry<'_>) -> Result<(Digest, crate::fs::dir::Stat), Error> {
        match look::digest(at) {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                let why = format!("user {} may not read it; recant as root can", self.me);
                Err(Error::Refused(vec![(at.to_string(), why)]))
            }
            other => Ok(other.at("read", at)?),
        }
    }
}

/// A plan in the making.
struct Draft<'j, 's> {
    job: &'j Job,
    session: &'s Session,
    roads: Roads,
    roots: Roots,
    session_mount: u64,
    /// Folders that go.
    leaving: HashSet<AbsPath>,
    /// How many of an inode's names go, for inodes that have several.
    names_here: HashMap<Identity, u32>,
    me: rustix::fs::Uid,
    going: Vec<Going<'j>>,
    already: Vec<Row>,
    left: Vec<(AbsPath, String)>,
    notes: Vec<String>,
    conflicts: Vec<Conflict>,
    refused: Vec<(String, String)>,
    damaged: Vec<(String, String)>,
    sides: Vec<Side>,
    outcomes: Vec<Outcome>,
}

/// A move that is to be made.
struct Going<'j> {
    mv: &'j Move,
    from: Option<Seen>,
    to: Option<Seen>,
    kept_found: bool,
    /// The folder that it lies in is there now.
    in_folder: bool,
}

impl Going<'_> {
    fn from_folder(&self) -> bool {
        self.from.as_ref().is_some_and(|seen| seen.state.is_folder())
    }

    fn to_folder(&self) -> bool {
        self.mv.to.as_ref().is_some_and(State::is_folder)
    }

    fn leaves_folder(&self) -> bool {
        self.from_folder() && !self.to_folder()
    }
}

impl<'j, 's> Draft<'j, 's> {
    fn new(session: &'s Session, job: &'j Job, roads: Roads) -> Result<Self, Error> {
        Ok(Self {
            job,
            session,
            roads,
            roots: Roots::read().at("read the mounts from", "/proc/self/mountinfo")?,
            session_mount: session.dir.stat().at("look at", session.dir.path().display())?.mount,
            leaving: HashSet::new(),
            names_here: HashMap::new(),
            me: rustix::process::geteuid(),
            going: Vec::with_capacity(job.moves.len()),
            already: Vec::new(),
            left: job.left.clone(),
            notes: Vec::new(),
            conflicts: Vec::new(),
            refused: Vec::new(),
            damaged: Vec::new(),
            sides: job.sides.clone(),
            outcomes: Vec::new(),
        })
    }

    fn sort_out(&mut self, looked: Vec<Looked>) -> Result<(), Error> {
        for (mv, looked) in self.job.moves.iter().zip(looked) {
            self.notes.extend(looked.note);
            let kept_found = matches!(looked.verdict, Verdict::Keep);
            match looked.verdict {
                Verdict::Go | Verdict::Keep => {
                    self.going.push(Going {
                        mv,
                        from: looked.found,
                        to: looked.to,
                        kept_found,
                        in_folder: looked.parent_mount.is_some(),
                    });
                }
                Verdict::AlreadySo => self.note_already(mv),
                Verdict::Conflict(conflict) => self.conflicts.push(conflict),
                Verdict::Refused(why) => self.refused.push((mv.path.to_string(), why)),
                Verdict::Damaged(why) => self.damaged.push((mv.path.to_string(), why)),
            }
        }
        Ok(())
    }

    /// Nothing to do on the tree, but the change is on the other side now. What would have come off the tree is not there
    /// any more: where it had content, that is lost.
    fn note_already(&mut self, mv: &Move) {
        let is_file = |object: &Object| matches!(object, Some(State { what: What::File { .. }, .. }));
        let lost = !mv.in_place && is_file(&mv.from);
        let side = if mv.side == Side::Out && lost { Side::Lost } else { mv.side };
        let kept =
            if lost { Kept::Uncovered { why: "it was not there any more when it was put back".into() } } else { Kept::Nothing };
        let kind = mv.to.as_ref().map_or("nothing", |state| sort_word(state.sort()));
        self.already.push(Row { path: mv.path.clone(), done: Done::AlreadySo, kind });
        self.outcomes.push(Outcome {
            index: mv.index,
            n: mv.n,
            path: mv.path.clone(),
            from: mv.from.clone(),
            to: mv.to.clone(),
            kept,
            side,
        });
    }

    /// A folder that goes must hold nothing but what goes with it: deepest first, so that what is left holds its folders.
    fn check_folders_that_go(&mut self) -> Result<(), Error> {
        let leaving: Vec<usize> = (0..self.going.len()).filter(|i| self.going[*i].leaves_folder()).collect();
        let mut stays: BTreeSet<usize> = BTreeSet::new();
        for i in leaving.into_iter().rev() {
            let going = &self.going[i];
            // What --force found in place of something else is moved out whole.
            if going.kept_found && !going.mv.from.as_ref().is_some_and(State::is_folder) {
                continue;
            }
            let path = &going.mv.path;
            let dir = self.roots.folder(path).at("open the folder", path)?;
            let mut foreign = Vec::new();
            for name in dir.names().at("list the folder", path)? {
                let child = path.join(&name).map_err(|error| Error::Refused(vec![(path.to_string(), error.to_string())]))?;
                let found = self.going.binary_search_by(|going| going.mv.path.cmp(&child));
                match found {
                    Ok(at) if self.going[at].mv.to.is_none() && !stays.contains(&at) => {}
                    _ => foreign.push(child),
                }
            }
            if foreign.is_empty() {
                continue;
            }
            if self.job.verb == Verb::Rollback && going.mv.to.is_none() {
                stays.insert(i);
                let shown: Vec<String> = foreign.iter().take(3).map(ToString::to_string).collect();
                let more = if foreign.len() > 3 { format!(" and {} more", foreign.len() - 3) } else { String::new() };
                self.left
                    .push((path.clone(), format!("the folder is kept, as something else is in it: {}{more}", shown.join(", "))));
            } else {
                let conflicts =
                    foreign.iter().map(|child| Conflict::said(child, "nothing", "something in a folder that is to go"));
                self.conflicts.extend(conflicts);
            }
        }
        let mut i = 0;
        self.going.retain(|_| {
            i += 1;
            !stays.contains(&(i - 1))
        });
        Ok(())
    }

    /// What is to be put where no folder is now needs one that comes with it.
    fn check_folders_that_come(&mut self) {
        for going in self.going.iter().filter(|going| !going.in_folder && going.mv.to.is_some()) {
            let Some(parent) = going.mv.path.parent() else { continue };
            let comes =
                self.going.binary_search_by(|other| other.mv.path.cmp(&parent)).is_ok_and(|at| self.going[at].to_folder());
            if !comes {
                self.conflicts.push(Conflict::said(&going.mv.path, "its folder", "none, or a link on the way to it"));
            }
        }
    }

    fn fail_if_any(&mut self) -> Result<(), Error> {
        if !self.damaged.is_empty() {
            return Err(Error::Damaged(std::mem::take(&mut self.damaged)));
        }
        if !self.refused.is_empty() {
            return Err(Error::Refused(std::mem::take(&mut self.refused)));
        }
        if !self.conflicts.is_empty() {
            self.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
            self.conflicts.dedup_by(|a, b| a.path == b.path);
            return Err(Error::Conflicts(std::mem::take(&mut self.conflicts)));
        }
        Ok(())
    }

    fn build(mut self) -> Result<Plan<'j>, Error> {
        let mut going = std::mem::take(&mut self.going);
        self.leaving = going.iter().filter(|going| going.leaves_folder()).map(|going| going.mv.path.clone()).collect();
        for from in going.iter().filter_map(|going| going.from.as_ref()).filter(|from| from.nlink > 1) {
            *self.names_here.entry(from.print.identity).or_default() += 1;
        }
        let folders = self.worked_in(&going)?;
        let mut names = Names::new(self.session, self.job)?;
        let mut steps: Vec<Step> = Vec::with_capacity(going.len() * 9 / 8);
        let opened = self.open_up(&folders, &going, &mut steps);
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
            match (going.to_folder() && !going.from_folder(), going.leaves_folder()) {
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

    /// The folders that are there now and in which names change.
    fn worked_in(&mut self, going: &[Going<'_>]) -> Result<BTreeMap<AbsPath, Rc<Dir>>, Error> {
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

    /// Steps that give the user `u+rwx` on folders of his own that lack it and are worked in, or go. Root needs none.
    fn open_up(
        &mut self,
        folders: &BTreeMap<AbsPath, Rc<Dir>>,
        going: &[Going<'_>],
        steps: &mut Vec<Step>,
    ) -> HashMap<AbsPath, Seen> {
        let mut opened = HashMap::new();
        if self.me.is_root() {
            return opened;
        }
        let worked_in = folders.iter().filter_map(|(path, dir)| Some((path.clone(), look::folder(dir).ok()?)));
        let leaving = going.iter().filter(|going| going.leaves_folder());
        let leaving = leaving.filter_map(|going| Some((going.mv.path.clone(), going.from.clone()?)));
        let mut all: BTreeMap<AbsPath, Seen> = worked_in.collect();
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
        opened
    }

    /// The opened folders that stay get their mode back, unless a step of their own does it.
    fn close_again(&self, opened: &HashMap<AbsPath, Seen>, steps: &[Step], last: &mut Vec<Step>) {
        let settled: HashSet<AbsPath> = last.iter().map(|step| step.path.clone()).collect();
        let removed: HashSet<&AbsPath> =
            steps.iter().filter(|step| step.act != Act::SetMeta && step.from_folder()).map(|step| &step.path).collect();
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
        if copies && going.kept_found && going.from_folder() {
            let why = "the folder that is there lies on another file system than the store, and cannot be kept; move it away";
            return Err(Error::Refused(vec![(mv.path.to_string(), why.into())]));
        }
        let (mut kept, home) = names.home(going, self.session)?;
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
        let step = Step { act, path: mv.path.clone(), n: mv.n, from, to, to_at, out, home, copied, spare, whole };
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
        if going.kept_found
            && mv.in_place
            && let (Some(to), Some(from)) = (&mut to, &going.from)
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
        self.outcomes.push(Outcome { index: mv.index, n: mv.n, path: mv.path.clone(), from, to, kept, side });
    }

    /// The mtimes of folders that are no steps themselves: those in which names change, and those that the job names.
    fn folder_times(&mut self, folders: &BTreeMap<AbsPath, Rc<Dir>>, steps: &[Step]) -> Result<Vec<FolderTime>, Error> {
        let own: HashSet<&AbsPath> =
            steps.iter().filter(|step| step.n != 0 && (step.from_folder() || step.to_folder())).map(|step| &step.path).collect();
        let wanted: HashMap<&AbsPath, _> = self.job.times.iter().map(|wanted| (&wanted.path, wanted)).collect();
        let always = self.job.times.iter().filter(|wanted| wanted.always).map(|wanted| wanted.path.clone());
        let paths: BTreeSet<AbsPath> = folders.keys().cloned().chain(always).collect();
        let now = crate::fs::now();
        let mut times = Vec::new();
        for path in paths.into_iter().filter(|path| !own.contains(path)) {
            let dir = match self.roots.folder(&path) {
                Ok(dir) => dir,
                // An mtime for a folder that went away meanwhile has nowhere to be.
                Err(_) if !folders.contains_key(&path) => continue,
                Err(error) => return Err(error).at("open the folder", &path).map_err(Error::from),
            };
            let stat = dir.stat().at("look at", &path)?;
            let mine = self.me.is_root() || stat.uid == self.me.as_raw();
            let wanted = wanted.get(&path);
            let fits = wanted.is_some_and(|w| w.only_if.is_none_or(|left| left == stat.mtime));
            let new = wanted.filter(|_| fits).map_or(now, |wanted| wanted.mtime);
            let original = wanted.filter(|_| fits).and_then(|wanted| wanted.original).unwrap_or(stat.mtime);
            times.push(FolderTime { path, identity: look::identity(&stat), old: stat.mtime, new: mine.then_some(new), original });
        }
        Ok(times)
    }

    /// Content that is copied has to fit.
    fn check_room(&mut self, steps: &[Step]) -> Result<(), Error> {
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
    verb: Verb,
    generation: u64,
}

impl Names {
    fn new(session: &Session, job: &Job) -> Result<Self, Error> {
        let taken = if job.verb.inward() {
            crate::checkpoint::manifest::Manifest::read(&session.dir)?.plain_blobs()
        } else {
            HashSet::new()
        };
        Ok(Self { taken, verb: job.verb, generation: session.header.generation + 1 })
    }

    fn home(&mut self, going: &Going<'_>, session: &Session) -> Result<(Kept, Option<Spot>), Error> {
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
                let there = || -> Result<bool, Error> {
                    let place = format!("checkpoint/blobs/{digest}").into_bytes();
                    let (dir, name) = session.split(&place)?;
                    Ok(dir.at(name).stat().at("look at", dir.at(name))?.is_some())
                };
                let numbered = !self.taken.insert(digest) || there()?;
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
        whole: false,
    }
}

/// What Prepare is to make from a record: it has no identity yet.
fn unmade(state: &State) -> Seen {
    let identity = crate::tree::state::Identity { ino: 0, btime: None };
    let print = crate::tree::state::Fingerprint { identity, ctime: Default::default(), racy: false };
    Seen { state: state.clone(), print, nlink: 1, blocks: 0 }
}

/// Whether the xattrs of what lies in an upper are to be cleaned before it goes onto the tree.
pub(super) fn differs(have: &crate::tree::state::Meta, want: &crate::tree::state::Meta) -> bool {
    have != want || have.xattrs.iter().any(|(name, _)| meta::is_overlay_xattr(name))
}

/// The folder of a spot in the tree, and an io error where there is none.
pub(super) fn parent_of(path: &AbsPath) -> io::Result<AbsPath> {
    path.parent().ok_or_else(|| io::Error::other("the root folder has no name"))
}
