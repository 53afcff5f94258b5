//! The session of a `run --in`: the differences between the snapshot before it and the tree as it is now.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;

use super::snapshot::{retain, said, say_damaged, with_by};
use crate::capture::run::hold::start_of;
use crate::error::{Error, Reason, command};
use crate::face::call::Call;
use crate::face::figures;
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Locked;
use crate::session::running::Held;
use crate::session::store::Store;
use crate::snapshot::compare;
use crate::snapshot::create::{Asked, Made, create};
use crate::snapshot::manifest;
use crate::snapshot::rule_source::Source;
use crate::snapshot::series::Series;
use crate::snapshot::to_session;
use crate::snapshot::to_session::Step;
use crate::verb::act::temporary::filled;

/// A directory, and its snapshot from before the run.
pub struct Watched {
    pub series: Series,
    /// The number of the snapshot from before.
    pub before: u64,
    /// [`Made::elsewhere`] of that snapshot.
    pub elsewhere: HashSet<AbsPath>,
}

/// A command that has run.
pub struct Ran<'a> {
    pub held: Held,
    pub argv: &'a [OsString],
    pub name: Option<&'a str>,
    /// Paths that are named already as not in the snapshot before.
    pub named: &'a HashSet<AbsPath>,
}

/// The result of collecting a command's changes.
pub struct Collected {
    /// The session and its number of changes, if there are any.
    pub session: Option<(Id, u64)>,
    /// The paths of which it is not known if the command changed them, and why.
    pub left: Vec<(AbsPath, String)>,
}

/// Takes a snapshot before or after the command.
pub fn take(
    call: &Call,
    store: &Store,
    series: &Series,
    (when, rules): (&str, Source),
    limit: Option<u64>,
    command: &[impl AsRef<OsStr>],
) -> Result<Made, Error> {
    let words: Vec<_> = command.iter().map(|word| word.as_ref().to_owned()).collect();
    let lock = series.lock(&call.fs)?;
    let message = Some(format!("{when}: {}", start_of(&words)));
    let meta = with_by(Vec::new(), store.by.as_ref());
    let asked = Asked { message, meta, limit, if_changed: true, tells_moves: true, run: true, rules, ..Asked::default() };
    let made = create(&call.fs, &store.path, series, &lock, &asked)?;
    say_damaged(call, &made);
    Ok(made)
}

/// Makes the session of the command's changes, and ends the run. If it fails, the run's record stays, and a recovery makes the session.
pub fn collect(call: &Call, store: &Store, watched: &[Watched], run: Ran<'_>) -> Result<Collected, Error> {
    regain(call, store, watched, &run.held)?;
    let (mut steps, mut spared, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for Watched { series, before, elsewhere } in watched {
        // What the snapshot before left out cannot be rolled back, and does not count, even if the command changed the rules.
        let rules = manifest::rules(&series.dir, *before)?;
        // A directory that is gone with all in it has no snapshot after.
        let is_there = !matches!(series.directory.as_path().symlink_metadata(), Err(error) if is_gone(&error));
        // No limit: whatever the command left has to be recorded.
        let after = || take(call, store, series, ("after", Source::Kept(rules, None)), None, run.argv);
        let after = is_there.then(after).transpose()?.map(|made| made.n);
        let mut compared = compare::between(series, *before, after, &[], true)?;
        compared.spare_older(series, compare::OLDER, |_| (*before, None))?;
        compared.without_rewritten_indexes(series)?;
        // A file written in place left the time of its directory as it was; a rollback would change that time.
        compared.only_times_that_change();
        for (path, why) in &compared.left {
            left.push((crate::snapshot::whole(&series.directory, path)?, why.to_string()));
        }
        steps.push(Step { series, compared, elsewhere });
        spared.push([Some(*before), after].into_iter().flatten().collect::<Vec<u64>>());
    }
    say_left(call, &left, run.named);
    let count = steps.iter().map(|step| step.compared.differences.len() as u64).sum();
    let session = if count == 0 {
        None
    } else {
        let fill = |session: &mut Locked| to_session::fill(&call.fs, &steps, session);
        let session = filled(call, store, begin(call, store, &run)?, fill)?;
        let (id, header) = (session.id(), &session.header);
        call.note_in_log(store, &log::Entry::new(log::RUN_IN, id, header.generation, "done", count).of_act(header));
        Some((id.clone(), count))
    };
    end(call, store, run.held);
    for (Watched { series, .. }, spared) in watched.iter().zip(&spared) {
        let pruned = series.lock(&call.fs).and_then(|lock| retain(call, series, &lock, None, spared));
        let gone = said(call, series, pruned);
        if !gone.is_empty() {
            let count = figures::count(gone.len() as u64, "old snapshot");
            call.out.note(format_args!("{count} pruned: snapshot.keep is {}", call.config.snapshot_keep.value));
        }
    }
    Ok(Collected { session, left })
}

/// Names the paths of which nothing is recorded, but counts those that were named before the command.
fn say_left(call: &Call, left: &[(AbsPath, String)], named: &HashSet<AbsPath>) {
    let (known, new): (Vec<_>, Vec<_>) = left.iter().partition(|(path, _)| named.contains(path));
    call.out.warn_each(new.iter().map(|(path, why)| format!("{path}: {why}")));
    if !known.is_empty() {
        let paths = figures::count(known.len() as u64, "path");
        call.out.warn(format_args!("{paths} named above: what the command did there is not in the session"));
    }
}

/// Removes the run's record. An error is a warning: the session, if there is one, is made.
pub fn end(call: &Call, store: &Store, held: Held) {
    let id = held.id.clone();
    match held.end(&call.fs, store) {
        Ok(()) => call.clear_away(store),
        Err(error) => call.out.warn(format_args!("the record of run {id} stays: {error}; {}", command("recover tries again"))),
    }
}

/// Gives the owner's rights to the store back. Landlock does not stop chmod: the command may have taken them away.
fn regain(call: &Call, store: &Store, watched: &[Watched], held: &Held) -> Result<(), Error> {
    let mut missing = store.regain(&call.fs)?;
    missing |= held.regain(&call.fs)?;
    for Watched { series, .. } in watched {
        missing |= series.regain(&call.fs)?;
    }
    if missing {
        let line = format!("{}: the command took the owner's rights to the store away (chmod); they are set again", store.path);
        call.out.warn(format_args!("{}", figures::filled(&line)));
    }
    Ok(())
}

/// Begins the session; without its name if another session has that by now.
fn begin(call: &Call, store: &Store, run: &Ran<'_>) -> Result<Locked, Error> {
    let begin = |name| store.begin_of_run(&call.fs, &run.held.id, name, start_of(run.argv));
    match begin(run.name) {
        Err(error) if matches!(error.reason(), Some(Reason::Taken { .. } | Reason::IsId)) => {
            call.out.warn(format_args!("the session gets no name: {error}"));
            Ok(begin(None)?)
        }
        begun => Ok(begun?),
    }
}

/// Tells whether the error means that nothing is there.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
