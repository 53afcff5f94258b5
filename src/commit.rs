//! Commit and redo: the states that paths go from and to.
//!
//! Commit moves all that is out from `before` to `after`; redo only what was in before. Both give the engine a [`Job`]. The checkpoint of
//! each path is the object that the engine moved out.

use std::collections::BTreeMap;

use crate::checkpoint::{Kept, Large, Limits, Manifest, Original, Tally, manifest};
use crate::engine::plan::choose::Choice;
use crate::engine::{
    Chosen, Job, LeftOut, MinorPaths, Move, Moves, OnConflict, Rest, Rules, SessionPlace, Verb, WantedTime, choose, may_begin,
};
use crate::error::{Against, Error, Reason, command};
use crate::fs::{AbsPath, Dir, Fs};
use crate::session::{Change, DirectoryTime, Origin, Part, Run, Session, Side, merge_base, not_now};
use crate::settings;
use crate::settings::OnLimit;
use crate::tree::{Object, State, What, is_stand_in};

/// The terms of a commit or redo.
pub struct Request<'a> {
    /// The paths, with all below them and the directories that they need; empty for all.
    pub paths: &'a [AbsPath],
    pub on_conflict: OnConflict,
    pub limits: Limits,
    /// Tells which paths may never be committed.
    pub denied: MinorPaths,
    /// The changes alone that may be moved; any where missing.
    pub only: Option<&'a Part>,
    /// The paths that are left out because of a minor conflict.
    pub aside: &'a LeftOut,
    /// True to commit even if a restart of the machine may have lost content of the run.
    pub accept_unsynced: bool,
}

/// The job of committing a session.
///
/// Errors: denied paths; paths that the session does not hold; a large deletion under the policy `refuse`; a session whose state
/// allows no commit.
pub fn commit(session: &Session, request: &Request<'_>) -> Result<Job, Error> {
    may_begin(session, Verb::Commit)?;
    refuse_unsynced(session, request.accept_unsynced)?;
    job(session, request, Verb::Commit, |side| !side.is_in())
}

/// The job of committing again what was committed before.
pub fn redo(session: &Session, request: &Request<'_>) -> Result<Job, Error> {
    may_begin(session, Verb::Redo)?;
    // A session that is open again, as it was, has all on the other side.
    let starts: fn(Side) -> bool =
        if session.header.is_as_undone() { |side| side == Side::Never } else { |side| matches!(side, Side::Out | Side::Lost) };
    job(session, request, Verb::Redo, starts)
}

/// Keeps what a commit put on the tree in place of texts, for a rollback that has to merge with what somebody writes there since: of at
/// most 100 files, else under the limits of what a run keeps. Syncs nothing; a file that cannot be kept is no loss, as the rollback says so.
///
/// Errors: the session cannot be read; the root directory cannot be opened.
pub fn keep_committed(fs: &Fs, session: &Session) -> Result<(), Error> {
    let sides = session.sides_of_all()?;
    let mut changes = session.read_changes()?;
    let (mut files, mut sides) = (Vec::new(), sides.iter());
    while let (Some(change), Some(side)) = (changes.next()?, sides.next()) {
        if side.is_in() && is_file(change.before.object.as_ref()) && is_file(change.after.as_ref()) && !change.in_place() {
            files.push(change);
        }
        if files.len() > merge_base::COMMITTED {
            return Ok(());
        }
    }
    let (root, mut room) = (Dir::open("/".as_ref())?, merge_base::ALL);
    for change in &files {
        let Some((state, hash)) = change.after.as_ref().and_then(|after| Some((after, after.hash()?))) else { continue };
        if state.size() <= merge_base::EACH.min(room)
            && let Some(file) = merge_base::on_tree(&root, &change.path)
            && merge_base::keep(fs, &session.dir, &file, hash).is_ok()
        {
            room -= state.size();
        }
    }
    Ok(())
}

/// Refuses a run that a restart of the machine cut off, unless asked for: its files may be empty.
///
/// Errors: it is such a run.
pub fn refuse_unsynced(session: &Session, accept_unsynced: bool) -> Result<(), Error> {
    if !session.header.unsynced || accept_unsynced {
        return Ok(());
    }
    let id = session.id();
    let remedy = "look with " + command(format_args!("diff {id}")) + "; --accept-unsynced commits it anyway";
    let why = "its run was cut off by a restart of the machine: files may be empty";
    Err(not_now(id, why).with_remedy(remedy))
}

fn job(session: &Session, request: &Request<'_>, verb: Verb, starts: fn(Side) -> bool) -> Result<Job, Error> {
    let sides = session.sides_of_all()?;
    let run = session.run()?;
    let choice = chosen(session, request, &sides, starts, run.as_ref())?;
    let Limited { partial, notes } = apply_limits(session, &sides, &choice, starts, &request.limits)?;
    let all = |choice: &Choice| choice.chosen.len() == sides.iter().filter(|side| starts(**side)).count();
    // The times of directories that are no changes come once the last change is in.
    let timed = match &choice {
        Some(choice) if !all(choice) && request.paths.is_empty() => choice.paths(&session.changes()?),
        Some(choice) if !all(choice) => request.paths.to_vec(),
        _ => Vec::new(),
    };
    let inward = Inward {
        changes: Chosen::new(session, sides.clone(), starts, choice.map(|choice| choice.chosen))?,
        run,
        partial,
        denied: request.denied.clone(),
        of_run: session.header.origin == Origin::Captured || session.header.of.is_some(),
        aside: request.aside.clone(),
        refused: Vec::new(),
        timed,
        originals: manifest::Reading::of(session)?,
        found: if verb == Verb::Redo { found_by_force(session, &sides)? } else { Manifest::default() },
        given_back: Vec::new(),
        rest: Rest { notes, ..Rest::default() },
    };
    let limits = (request.limits.on_limit == OnLimit::Full).then_some(request.limits);
    Ok(Job { verb, moves: Box::new(inward), sides, on_conflict: request.on_conflict, limits })
}

/// The changes at and below paths, or those alone that may be moved, if any are given.
fn chosen(
    session: &Session,
    request: &Request<'_>,
    sides: &[Side],
    starts: fn(Side) -> bool,
    run: Option<&Run>,
) -> Result<Option<Choice>, Error> {
    let Request { paths, only, .. } = *request;
    if paths.is_empty() && only.is_none() {
        return Ok(None);
    }
    let changes = session.changes()?;
    let rules = Rules {
        may: &|i| starts(sides[i]) && only.is_none_or(|only| only.has(i)),
        // What lies under a directory needs it if the session makes it, not if the session changes it.
        needed: &|i| {
            let change = &changes.list[i];
            !sides[i].is_in() && is_dir(&change.after) && !is_dir(&change.before.object)
        },
        lies: &|i| Session::held_at(&changes.list[i], sides[i], run),
    };
    choose(session, &changes, paths, &rules).map(Some)
}

fn is_dir(object: &Object) -> bool {
    object.as_ref().is_some_and(State::is_dir)
}

/// The moves of a commit or redo.
struct Inward {
    changes: Chosen,
    run: Option<Run>,
    /// The topmost deleted directories whose content is not kept.
    partial: Vec<AbsPath>,
    denied: MinorPaths,
    /// True for changes of a run, which cannot have meant a link that stands for a closed file.
    of_run: bool,
    aside: LeftOut,
    refused: Vec<Against>,
    /// Paths; the times of directories below them are always set. Empty for all.
    timed: Vec<AbsPath>,
    originals: manifest::Reading,
    /// The objects that the rollback before found by force, by path.
    found: Manifest,
    /// The paths of those that are given back.
    given_back: Vec<AbsPath>,
    rest: Rest,
}

impl Moves for Inward {
    fn next(&mut self) -> Result<Option<Move>, Error> {
        while let Some((change, index, side)) = self.changes.next()? {
            if (self.denied)(&change.path) {
                self.refused.push(Against::new(&change.path, DENIED));
            } else if self.of_run && side == Side::Never && is_stand_in(&change.after) {
                let why = "a link in the place of a closed file, not its content; leave it out by naming the other paths, or discard it";
                self.refused.push(Against::new(&change.path, why));
            } else if let Some(why) = self.aside.why(&change) {
                self.rest.left.push((change.path, why));
            } else if let Some(found) = self.found.originals.remove(&change.path).filter(|_| side == Side::Lost) {
                self.given_back.push(change.path.clone());
                return Ok(Some(self.give_back(change, index, found)));
            } else if side == Side::Lost && is_file(change.after.as_ref()) && !change.in_place() {
                let why = "what was committed here is lost: it was changed before the rollback".to_owned();
                self.rest.left.push((change.path, why));
            } else {
                return Ok(Some(self.inward(change, index, side)));
            }
        }
        Ok(None)
    }

    fn rest(self: Box<Self>) -> Result<Rest, Error> {
        let Inward { changes, refused, timed, originals, given_back, mut rest, .. } = *self;
        if let [first, others @ ..] = &given_back[..] {
            let more =
                if others.is_empty() { String::new() } else { format!(" (and {} more)", settings::grouped(others.len() as u64)) };
            rest.notes.push(format!("{first}{more}: restored as it was before the rollback, which had overwritten it"));
        }
        if !refused.is_empty() {
            return Err(crate::engine::refused(refused).with_reason(Reason::Denied));
        }
        rest.times = wanted_times(changes.directory_times(), originals.directory_times()?, &timed);
        Ok(rest)
    }
}

const DENIED: &str = "commit.deny in the configuration forbids it; leave it out by naming the other paths";

/// The error for paths that `commit.deny` names.
pub fn denied(paths: Vec<&AbsPath>) -> Error {
    let refused = paths.into_iter().map(|path| Against::new(path, DENIED)).collect();
    crate::engine::refused(refused).with_reason(Reason::Denied)
}

fn is_file(state: Option<&State>) -> bool {
    state.is_some_and(|state| matches!(state.what, What::File { .. }))
}

/// The objects that the newest act on a session found, if that was a rollback by force, in place of changes that are lost.
fn found_by_force(session: &Session, sides: &[Side]) -> Result<Manifest, Error> {
    let below = format!("displaced/{}", session.header.generation);
    match sides.contains(&Side::Lost).then(|| session.dir.open_below(below.as_bytes())) {
        None => Ok(Manifest::default()),
        Some(Err(error)) if error.leads_nowhere() => Ok(Manifest::default()),
        Some(directory) => Manifest::read_in(&directory?),
    }
}

impl Inward {
    /// The move that gives back what a rollback found by force.
    fn give_back(&self, change: Change, index: u32, found: Original) -> Move {
        let in_place = found.kept == Kept::Metadata;
        let to_at = found.place().map(|place| SessionPlace::new(place, change.n, &change.path));
        let mv = self.inward(change, index, Side::Lost);
        // An inode that stayed has the content that it was found with.
        let from = match (&mv.from, &found.state) {
            (Some(before), Some(found)) if in_place => Some(State { what: found.what.clone(), meta: before.meta.clone() }),
            (before, _) => before.clone(),
        };
        Move { from, from_print: None, to: found.state, to_at, in_place, original: None, gives_back: true, ..mv }
    }

    fn inward(&self, change: Change, index: u32, side: Side) -> Move {
        let never_directory = side == Side::Never && change.after.as_ref().is_some_and(State::is_dir);
        // A directory of an upper stays, with what is still to come out of it; a new one is made.
        let to_at = if never_directory { None } else { Session::held_at(&change, side, self.run.as_ref()) };
        let partial = change.before.object.as_ref().is_some_and(|before| !before.is_dir())
            && self.partial.iter().any(|top| change.path.is_under(top));
        Move {
            index,
            n: change.n,
            in_place: change.in_place(),
            original: change.original,
            foreign: change.marks.foreign && side == Side::Never,
            by_clock: change.marks.by_clock,
            from: change.before.object,
            // A change that is out again was put back by a rollback, with a new fingerprint.
            from_print: change.before.print.filter(|_| side == Side::Never),
            to: change.after,
            to_at: to_at.map(|place| SessionPlace::new(place, change.n, &change.path)),
            uncovered: partial.then_some("left out of the checkpoint: over checkpoint.max_files or checkpoint.max_size"),
            side: Side::In,
            gives_back: false,
            path: change.path,
        }
    }
}

/// The mtimes for directories: as the last commit left them, else as the command did.
fn wanted_times(
    held: Vec<DirectoryTime>,
    left: BTreeMap<AbsPath, manifest::DirectoryTime>,
    paths: &[AbsPath],
) -> Vec<WantedTime> {
    let asked = |path: &AbsPath| paths.is_empty() || paths.iter().any(|asked| path.is_under(asked));
    let mut times: BTreeMap<AbsPath, WantedTime> = BTreeMap::new();
    for time in held {
        let (mtime, only_if, always) = (time.after, Some(time.before), asked(&time.path));
        times.insert(time.path.clone(), WantedTime { path: time.path, mtime, only_if, original: None, always });
    }
    for time in left.into_values() {
        let always = times.get(&time.path).is_some_and(|held| held.always);
        let (only_if, original) = (Some(time.left), Some(time.old));
        times.insert(time.path.clone(), WantedTime { path: time.path, mtime: time.committed, only_if, original, always });
    }
    times.into_values().collect()
}

/// The effect of the policy for large deletions.
#[derive(Default)]
struct Limited {
    partial: Vec<AbsPath>,
    notes: Vec<String>,
}

/// Finds the topmost deleted directories whose content is not kept, and the notes about them. If all is kept, the engine reports how
/// much that is, once it has seen it.
fn apply_limits(
    session: &Session,
    sides: &[Side],
    choice: &Option<Choice>,
    starts: fn(Side) -> bool,
    limits: &Limits,
) -> Result<Limited, Error> {
    let mut limited = Limited { notes: choice.as_ref().map_or(Vec::new(), |choice| choice.notes.clone()), partial: Vec::new() };
    if limits.on_limit == OnLimit::Full {
        return Ok(limited);
    }
    let mut tally = Tally::new(limits);
    let mut changes = Chosen::new(session, sides.to_vec(), starts, choice.as_ref().map(|choice| choice.chosen.clone()))?;
    while let Some((change, _, _)) = changes.next()? {
        tally.count(&change.path, change.before.object.as_ref(), change.after.as_ref());
    }
    let large = tally.over();
    let say = |l: &Large| {
        let what = "deleted and NOT kept: a rollback will not bring them back";
        format!("{}: {} files, {} {what}", l.path, settings::grouped(l.files), settings::bytes(l.size))
    };
    limited.notes.extend(large.iter().map(say));
    limited.partial = large.into_iter().map(|large| large.path).collect();
    Ok(limited)
}
