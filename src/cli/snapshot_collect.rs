//! The session of a command on the real tree: what differs between the snapshot from before it and the tree as it is now.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;

use super::begun::filled;
use super::problem::Problem;
use super::snapshot::{retain, said, say_damaged};
use super::{Call, text};
use crate::capture::hold::start_of;
use crate::error::Error;
use crate::error::{Reason, command};
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::opened::Locked;
use crate::session::running::Held;
use crate::session::store::Store;
use crate::snapshot::committed::{self, Step};
use crate::snapshot::compare;
use crate::snapshot::create::{Asked, Made, create};
use crate::snapshot::manifest;
use crate::snapshot::rules::Source;
use crate::snapshot::series::Series;

/// A folder, and its snapshot from before.
pub struct Watched {
    /// Its snapshots.
    pub series: Series,
    /// The one from before.
    pub before: u64,
    /// Its [`Made::elsewhere`].
    pub elsewhere: HashSet<AbsPath>,
}

/// A command that has run.
pub struct Ran<'a> {
    /// Its record.
    pub held: Held,
    /// Its words.
    pub argv: &'a [OsString],
    /// The name that its session is to have.
    pub name: Option<&'a str>,
}

/// What became of a command's changes.
pub struct Collected {
    /// Its session and their number, where there are any.
    pub session: Option<(Id, u64)>,
    /// What of that it may have changed is not known, and why.
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
    let asked = Asked { message, limit, if_changed: true, run: true, rules, ..Asked::default() };
    let made = create(&call.fs, &store.path, series, &lock, &asked)?;
    say_damaged(call, &made);
    Ok(made)
}

/// Makes the session of what the command did, and ends the run. Where it fails the run's record stays: who recovers makes the session.
pub fn collect(call: &Call, store: &Store, watched: &[Watched], run: Ran<'_>) -> Result<Collected, Problem> {
    regain(call, store, watched, &run.held)?;
    let (mut steps, mut spared, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for Watched { series, before, elsewhere } in watched {
        // What was left out before cannot be taken back: it is none of this, whatever the command made of the rules.
        let rules = manifest::rules(&series.dir, *before)?;
        // Of a folder that is gone with all that was in it there is none.
        let is_there = !matches!(series.folder.as_path().symlink_metadata(), Err(error) if is_gone(&error));
        // Whatever the command made of it is to be recorded: no limit.
        let after = || take(call, store, series, ("after", Source::Kept(rules)), None, run.argv);
        let after = is_there.then(after).transpose()?.map(|made| made.n);
        let mut compared = compare::between(series, *before, after, &[], true)?;
        compared.without_rewritten_indexes(series)?;
        // A file that was written in place left its folder's time, which a rollback will not.
        compared.only_times_that_change();
        for (path, why) in &compared.left {
            left.push((crate::snapshot::whole(&series.folder, path)?, why.to_string()));
        }
        steps.push(Step { series, compared, elsewhere });
        spared.push([Some(*before), after].into_iter().flatten().collect::<Vec<u64>>());
    }
    left.iter().for_each(|(path, why)| call.out.warn(format_args!("{path}: {why}")));
    let count = steps.iter().map(|step| step.compared.differences.len() as u64).sum();
    let session = if count == 0 {
        None
    } else {
        let fill = |session: &mut Locked| committed::fill(&call.fs, &steps, session);
        let session = filled(call, store, begin(call, store, &run)?, fill)?;
        Some((session.id().clone(), count))
    };
    end(call, store, run.held);
    for (Watched { series, .. }, spared) in watched.iter().zip(&spared) {
        let pruned = series.lock(&call.fs).map_err(Problem::from).and_then(|lock| retain(call, series, &lock, None, spared));
        let gone = said(call, series, pruned);
        if !gone.is_empty() {
            let count = text::count(gone.len() as u64, "old snapshot");
            call.out.note(format_args!("{count} pruned: snapshot.keep is {}", call.config.snapshot_keep.value));
        }
    }
    Ok(Collected { session, left })
}

/// Takes the run's record away. Where that fails, its session, if there is one, is made all the same.
pub fn end(call: &Call, store: &Store, held: Held) {
    let id = held.id.clone();
    match held.end(&call.fs, store) {
        Ok(()) => call.clear_away(store),
        Err(error) => call.out.warn(format_args!("the record of run {id} stays: {error}; {}", command("recover tries again"))),
    }
}

/// Landlock knows no modes: the command may have closed the store to its own user.
fn regain(call: &Call, store: &Store, watched: &[Watched], held: &Held) -> Result<(), Problem> {
    let mut missing = store.regain(&call.fs)?;
    missing |= held.regain(&call.fs)?;
    for Watched { series, .. } in watched {
        missing |= series.regain(&call.fs)?;
    }
    if missing {
        let line = format!("{}: the command took the owner's rights to the store away (chmod); they are set again", store.path);
        call.out.warn(format_args!("{}", text::filled(&line)));
    }
    Ok(())
}

/// Begins the session. That its name is another one's by now is no reason to have none.
fn begin(call: &Call, store: &Store, run: &Ran<'_>) -> Result<Locked, Problem> {
    let begin = |name| store.begin_of_run(&call.fs, &run.held.id, name, start_of(run.argv));
    match begin(run.name) {
        Err(error) if matches!(error.reason(), Some(Reason::Taken { .. } | Reason::IsId)) => {
            call.out.warn(format_args!("the session gets no name: {error}"));
            Ok(begin(None)?)
        }
        begun => Ok(begun?),
    }
}

/// Whether nothing is there.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
