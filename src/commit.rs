//! Commit and redo: which states go from where to where.
//!
//! Commit moves all that is out, `before` to `after`; redo only what was in before. Both hand the engine a
//! [`Job`]; the checkpoint of each path is what the engine moved out.

use std::collections::BTreeMap;

use crate::checkpoint::limits::{Limits, OnLimit, large_deletions};
use crate::checkpoint::manifest::Manifest;
use crate::engine::Error;
use crate::engine::job::{Job, Move, OnConflict, Verb, WantedTime};
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Changes, FolderTime};
use crate::session::header::{Checkpoint, Status};
use crate::session::run::Run;
use crate::session::sides::Side;
use crate::session::store::Session;
use crate::tree::state::{State, What};

/// What a commit or redo is asked for.
pub struct Request<'a> {
    /// Only these paths, what lies under them, and the folders that they need; all where empty.
    pub paths: &'a [AbsPath],
    /// What to do about conflicts.
    pub on_conflict: OnConflict,
    /// What to keep of large deletions.
    pub limits: Limits,
    /// Whether a path may never be committed.
    pub denied: &'a dyn Fn(&AbsPath) -> bool,
    /// Content of a run of another boot may be missing: commit it all the same.
    pub accept_unsynced: bool,
}

/// The job, and what is to be said of it.
pub struct Asked {
    /// For the engine.
    pub job: Job,
    /// E.g. how much a large deletion keeps.
    pub notes: Vec<String>,
}

/// The job of committing a session.
///
/// Errors: paths that are denied, that the session does not hold, a large deletion where the policy is to refuse; a session
/// in no state to be committed.
pub fn commit(session: &Session, request: &Request<'_>) -> Result<Asked, Error> {
    check_state(session, Verb::Commit, request.accept_unsynced)?;
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let chosen = choose(session, &changes, request.paths, |i| !sides[i].is_in(), needs_after(&changes, &sides))?;
    refuse_denied(&changes, &chosen, request.denied)?;
    job(session, changes, sides, &chosen, Verb::Commit, request)
}

/// The job of putting what was committed before onto the tree again.
pub fn redo(session: &Session, request: &Request<'_>) -> Result<Asked, Error> {
    check_state(session, Verb::Redo, request.accept_unsynced)?;
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let was_in = |i: usize| matches!(sides[i], Side::Out | Side::Lost);
    let chosen = choose(session, &changes, request.paths, was_in, needs_after(&changes, &sides))?;
    refuse_denied(&changes, &chosen, request.denied)?;
    job(session, changes, sides, &chosen, Verb::Redo, request)
}

fn check_state(session: &Session, verb: Verb, accept_unsynced: bool) -> Result<(), Error> {
    let not_now = |why: &str, remedy: Option<String>| {
        Err(Error::Session(crate::session::Error::NotNow { id: session.id().to_string(), why: why.into(), remedy }))
    };
    let id = session.id();
    match session.header.status() {
        Status::Discarded => not_now("it is discarded: what it held is gone", None),
        Status::Capturing => not_now("its run has not ended", None),
        Status::Pending if verb == Verb::Redo && session.header.counts.changes > 0 => {
            not_now("it was never committed, so there is nothing to redo", Some(format!("recant commit {id}")))
        }
        _ if session.header.checkpoint == Checkpoint::Pruned && session.header.counts.inside > 0 => {
            not_now("its checkpoint was pruned: what is committed stays as it is", None)
        }
        _ if session.header.unsynced && !accept_unsynced => {
            let remedy = format!("look with recant diff {id}; --accept-unsynced commits it all the same");
            not_now("its run was cut off by a restart of the machine: files may be empty", Some(remedy))
        }
        _ => Ok(()),
    }
}

/// Which folders a path needs on the tree for its `after`: those above it that the session makes.
fn needs_after<'a>(changes: &'a Changes, sides: &'a [Side]) -> impl Fn(usize) -> bool + 'a {
    |i| !sides[i].is_in() && changes.list[i].after.as_ref().is_some_and(State::is_folder)
}

/// The indices, in path order, of the changes that are asked for: `paths` and what is under them where `may` holds, and
/// the folders above them where `needed` holds. All where no path is given.
pub fn choose(
    session: &Session,
    changes: &Changes,
    paths: &[AbsPath],
    may: impl Fn(usize) -> bool,
    needed: impl Fn(usize) -> bool,
) -> Result<Vec<usize>, Error> {
    if paths.is_empty() {
        return Ok((0..changes.list.len()).filter(|i| may(*i)).collect());
    }
    let mut chosen = std::collections::BTreeSet::new();
    let mut unknown = Vec::new();
    for path in paths {
        let under = changes.under(path);
        if under.is_empty() {
            unknown.push((path.to_string(), not_in_session(session, changes, path)));
        }
        chosen.extend(under.filter(|i| may(*i)));
    }
    if !unknown.is_empty() {
        return Err(Error::Refused(unknown));
    }
    let named: Vec<usize> = chosen.iter().copied().collect();
    for i in named {
        for above in std::iter::successors(changes.list[i].path.parent(), AbsPath::parent) {
            let at = changes.list.binary_search_by(|change| change.path.cmp(&above));
            chosen.extend(at.ok().filter(|at| needed(*at)));
        }
    }
    Ok(chosen.into_iter().collect())
}

fn not_in_session(session: &Session, changes: &Changes, path: &AbsPath) -> String {
    let shared = |other: &AbsPath| other.as_bytes().iter().zip(path.as_bytes()).take_while(|(a, b)| a == b).count();
    let nearest = changes.list.iter().max_by_key(|change| shared(&change.path));
    let nearest = nearest.map_or(String::new(), |change| format!("; the nearest is {}", change.path));
    format!("session {} holds no change there{nearest}", session.id())
}

fn refuse_denied(changes: &Changes, chosen: &[usize], denied: &dyn Fn(&AbsPath) -> bool) -> Result<(), Error> {
    let paths = chosen.iter().map(|i| &changes.list[*i].path).filter(|path| denied(path));
    let why = "commit.deny in the configuration forbids it; leave it out by naming the paths to commit";
    let rows: Vec<_> = paths.map(|path| (path.to_string(), why.to_owned())).collect();
    if rows.is_empty() { Ok(()) } else { Err(Error::Refused(rows)) }
}

fn job(
    session: &Session,
    changes: Changes,
    sides: Vec<Side>,
    chosen: &[usize],
    verb: Verb,
    request: &Request<'_>,
) -> Result<Asked, Error> {
    let run = session.run()?;
    let manifest = Manifest::read(&session.dir)?;
    let (large, notes) = apply_limits(&changes, chosen, &request.limits)?;
    let mut left = Vec::new();
    let folder_times = changes.folder_times;
    let mut list: Vec<Option<Change>> = changes.list.into_iter().map(Some).collect();
    let mut moves = Vec::with_capacity(chosen.len());
    for i in chosen {
        let Some(change) = list[*i].take() else { continue };
        if sides[*i] == Side::Lost && matches!(change.after, Some(State { what: What::File { .. }, .. })) && !change.in_place() {
            left.push((change.path, "what was committed here is lost: it had been changed when it was taken back".into()));
            continue;
        }
        let partial =
            large.iter().any(|top| change.path.is_under(top)) && change.before.object.as_ref().is_some_and(|b| !b.is_folder());
        let uncovered =
            partial.then(|| "left out of the checkpoint: over checkpoint.max_files or checkpoint.max_size".to_owned());
        moves.push(inward(session, change, *i, sides[*i], run.as_ref(), uncovered));
    }
    let times = wanted_times(folder_times, manifest, request.paths);
    let job = Job { verb, moves, times, sides, on_conflict: request.on_conflict, left };
    Ok(Asked { job, notes })
}

/// The mtimes of folders: as the last commit left them, else as the command did.
fn wanted_times(held: Vec<FolderTime>, manifest: Manifest, paths: &[AbsPath]) -> Vec<WantedTime> {
    let asked = |path: &AbsPath| paths.is_empty() || paths.iter().any(|asked| path.is_under(asked));
    let mut times: BTreeMap<AbsPath, WantedTime> = BTreeMap::new();
    for time in held {
        let (mtime, only_if, always) = (time.after, Some(time.before), asked(&time.path));
        times.insert(time.path.clone(), WantedTime { path: time.path, mtime, only_if, original: None, always });
    }
    for time in manifest.folder_times.into_values() {
        let always = times.get(&time.path).is_some_and(|held| held.always);
        let (only_if, original) = (Some(time.left), Some(time.old));
        times.insert(time.path.clone(), WantedTime { path: time.path, mtime: time.committed, only_if, original, always });
    }
    times.into_values().collect()
}

fn inward(session: &Session, change: Change, index: usize, side: Side, run: Option<&Run>, uncovered: Option<String>) -> Move {
    let never_folder = side == Side::Never && change.after.as_ref().is_some_and(State::is_folder);
    // A folder of an upper stays there, with what is still to come out of it: a new one is made.
    let to_at = if never_folder { None } else { session.held_at(&change, side, run) };
    Move {
        index,
        n: change.n,
        in_place: change.in_place(),
        foreign: change.marks.foreign && side == Side::Never,
        from: change.before.object,
        // What is out again was put back by a rollback, as a new act: its fingerprint is another.
        from_print: change.before.print.filter(|_| side == Side::Never),
        to: change.after,
        to_at,
        uncovered,
        side: Side::In,
        path: change.path,
    }
}

/// The topmost deleted folders whose content is not kept, and what is to be said.
fn apply_limits(changes: &Changes, chosen: &[usize], limits: &Limits) -> Result<(Vec<AbsPath>, Vec<String>), Error> {
    let large = large_deletions(chosen.iter().map(|i| &changes.list[*i]), limits);
    let say =
        |what: &str| large.iter().map(|l| format!("{}: {} files, {} bytes {what}", l.path, l.files, l.size)).collect::<Vec<_>>();
    match limits.on_limit {
        OnLimit::Full => Ok((Vec::new(), say("deleted, kept in full for a rollback"))),
        OnLimit::Partial => {
            let notes = say("deleted and NOT kept: a rollback will not bring them back");
            Ok((large.into_iter().map(|large| large.path).collect(), notes))
        }
        OnLimit::Refuse if large.is_empty() => Ok((Vec::new(), Vec::new())),
        OnLimit::Refuse => {
            let why = |l: &crate::checkpoint::limits::Large| {
                let limit = format!("checkpoint.max_files {}, checkpoint.max_size {}", limits.max_files, limits.max_size);
                format!(
                    "deleting {} files of {} bytes is over the limit ({limit}); --on-limit full keeps them all",
                    l.files, l.size
                )
            };
            Err(Error::Refused(large.iter().map(|l| (l.path.to_string(), why(l))).collect()))
        }
    }
}
