//! Commit and redo: which states go from where to where.
//!
//! Commit moves all that is out, `before` to `after`; redo only what was in before. Both hand the engine a
//! [`Job`]; the checkpoint of each path is what the engine moved out.

use std::collections::BTreeMap;

use crate::checkpoint::limits::{Limits, OnLimit, large_deletions};
use crate::checkpoint::manifest::Manifest;
use crate::engine::Error;
use crate::engine::choose::{Rules, choose, may_begin};
use crate::engine::job::{Asked, Job, Move, OnConflict, Verb, WantedTime};
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Changes, FolderTime};
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

/// The job of committing a session.
///
/// Errors: paths that are denied, that the session does not hold, a large deletion where the policy is to refuse; a session
/// in no state to be committed.
pub fn commit(session: &Session, request: &Request<'_>) -> Result<Asked, Error> {
    may_begin(session, Verb::Commit)?;
    refuse_unsynced(session, request.accept_unsynced)?;
    asked(session, request, Verb::Commit, |side| !side.is_in())
}

/// The job of putting what was committed before onto the tree again.
pub fn redo(session: &Session, request: &Request<'_>) -> Result<Asked, Error> {
    may_begin(session, Verb::Redo)?;
    asked(session, request, Verb::Redo, |side| matches!(side, Side::Out | Side::Lost))
}

fn asked(session: &Session, request: &Request<'_>, verb: Verb, starts: fn(Side) -> bool) -> Result<Asked, Error> {
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let run = session.run()?;
    let choice = {
        let rules = Rules {
            may: &|i| starts(sides[i]),
            // A folder that the session makes is needed by what lies under it.
            needed: &|i| !sides[i].is_in() && changes.list[i].after.as_ref().is_some_and(State::is_folder),
            lies: &|i| session.held_at(&changes.list[i], sides[i], run.as_ref()),
        };
        choose(session, &changes, request.paths, &rules)?
    };
    refuse_denied(&changes, &choice.chosen, request.denied)?;
    let mut asked = job(session, changes, sides, &choice.chosen, verb, request, run.as_ref())?;
    asked.notes.extend(choice.notes);
    Ok(asked)
}

/// A run that a restart of the machine cut off may have left empty files: it is committed only on request.
fn refuse_unsynced(session: &Session, accept_unsynced: bool) -> Result<(), Error> {
    if !session.header.unsynced || accept_unsynced {
        return Ok(());
    }
    let id = session.id().to_string();
    let remedy = Some(format!("look with recant diff {id}; --accept-unsynced commits it all the same"));
    let why = "its run was cut off by a restart of the machine: files may be empty".into();
    Err(Error::Session(crate::session::Error::NotNow { id, why, remedy }))
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
    run: Option<&Run>,
) -> Result<Asked, Error> {
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
        moves.push(inward(session, change, *i, sides[*i], run, uncovered));
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
