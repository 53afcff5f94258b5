//! The session of a command on the real tree: the differences between the snapshots before it and the tree as it is now.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;

use super::notice::Notice;
use crate::capture::start_of;
use crate::engine::LeftPath;
use crate::error::{Error, Reason};
use crate::fs::AbsPath;
use crate::session::{Held, Id, Locked, Store, log};
use crate::snapshot::create::create;
use crate::snapshot::{Series, SnapshotRequest, SnapshotResult, Source, Step, differences, manifest, to_session, whole};
use crate::verb::act::temporary::filled;
use crate::verb::desk::Desk;
use crate::verb::fact::Fact;
use crate::verb::snapshot::create::with_by;
use crate::verb::snapshot::fact::SnapshotFact;
use crate::verb::snapshot::prunable::{dropped, retain};

/// A directory, and its snapshot from before the run.
pub struct Watched {
    pub series: Series,
    /// The number of the snapshot from before.
    pub before: u64,
    /// [`SnapshotResult::elsewhere`] of that snapshot.
    pub elsewhere: HashSet<AbsPath>,
}

/// A command that has run.
pub struct Command<'a> {
    pub held: Held,
    pub argv: &'a [OsString],
    pub name: Option<&'a str>,
    /// Paths that are named already as not in the snapshot before.
    pub named: &'a HashSet<AbsPath>,
}

/// The changes of a command, collected.
pub struct Collected {
    /// The session and its number of changes, if there are any.
    pub session: Option<(Id, u64)>,
    /// The paths of which it is not known if the command changed them, and why.
    pub left: Vec<LeftPath>,
}

/// Takes a snapshot before or after the command.
///
/// # Errors
/// There are more files than `limit`; the directory or the store cannot be read.
pub fn take(
    desk: &Desk,
    store: &Store,
    series: &Series,
    (when, rules, limit): (&str, Source, Option<u64>),
    argv: &[OsString],
) -> Result<SnapshotResult, Error> {
    let lock = series.lock(&desk.fs)?;
    let message = Some(format!("{when}: {}", start_of(argv)));
    let asked = SnapshotRequest {
        message,
        meta: with_by(Vec::new(), store.by.as_ref()),
        limit,
        if_changed: true,
        tells_moves: true,
        run: true,
        rules,
        ..SnapshotRequest::default()
    };
    let made = create(&desk.fs, &store.path, series, &lock, &asked)?;
    desk.caller.tell(Fact::Snapshot(SnapshotFact::EarlierSnapshots(&made)));
    Ok(made)
}

/// Makes the session of the command's changes, and ends the run. If it fails, the run's record stays, and a recovery makes the session.
///
/// # Errors
/// A directory cannot be read; the session cannot be made.
pub fn collect(desk: &Desk, store: &Store, watched: &[Watched], command: Command<'_>) -> Result<Collected, Error> {
    regain(desk, store, watched, &command.held)?;
    let (mut steps, mut spared, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for one in watched {
        let (compared, after) = differences(desk, store, one, command.argv)?;
        for (path, why) in &compared.left {
            left.push(LeftPath { path: whole(&one.series.directory, path)?, why: why.clone() });
        }
        steps.push(Step { series: &one.series, compared, elsewhere: &one.elsewhere });
        spared.push([Some(one.before), after].into_iter().flatten().collect::<Vec<u64>>());
    }
    tell_left(desk, &left, command.named);
    let count = steps.iter().map(|step| step.compared.differences.len() as u64).sum();
    let session = if count == 0 { None } else { Some((make(desk, store, &steps, &command, count)?, count)) };
    end(desk, store, command.held);
    for (Watched { series, .. }, spared) in watched.iter().zip(&spared) {
        prune_old(desk, series, spared);
    }
    Ok(Collected { session, left })
}

/// The differences of a directory since the snapshot before, and the number of the snapshot after, if there is one.
fn differences(
    desk: &Desk,
    store: &Store,
    Watched { series, before, .. }: &Watched,
    argv: &[OsString],
) -> Result<(differences::Compared, Option<u64>), Error> {
    // What the snapshot before left out cannot be rolled back, and does not count, even if the command changed the rules.
    let rules = manifest::rules(&series.dir, *before)?;
    // A directory that is gone with all in it has no snapshot after.
    let is_there = !matches!(series.directory.as_path().symlink_metadata(), Err(error) if is_gone(&error));
    // No limit: whatever the command left has to be recorded.
    let after = || take(desk, store, series, ("after", Source::Kept(rules, None), None), argv);
    let after = is_there.then(after).transpose()?.map(|made| made.n);
    let mut compared = differences::between(series, *before, after, &[], true)?;
    compared.spare_older(series, differences::OLDER, |_| (*before, None))?;
    compared.without_rewritten_indexes(series)?;
    // A file written in place left the time of its directory as it was; a rollback would change that time.
    compared.only_times_that_change();
    Ok((compared, after))
}

/// Makes the session, and notes it in the log.
fn make(desk: &Desk, store: &Store, steps: &[Step<'_>], command: &Command<'_>, count: u64) -> Result<Id, Error> {
    let fill = |session: &mut Locked| to_session::fill(&desk.fs, steps, session);
    let session = filled(desk, store, begin(desk, store, command)?, fill)?;
    let (id, header) = (session.id(), &session.header);
    desk.note_in_log(store, &log::Entry::new(log::RUN_IN, id, header.generation, "done", count).of_act(header));
    Ok(id.clone())
}

/// Begins the session; without its name if another session has that by now.
fn begin(desk: &Desk, store: &Store, command: &Command<'_>) -> Result<Locked, Error> {
    let begin = |name| store.begin_of_run(&desk.fs, &command.held.id, name, start_of(command.argv));
    match begin(command.name) {
        Err(error) if matches!(error.reason(), Some(Reason::Taken { .. } | Reason::IsId)) => {
            desk.caller.tell(Fact::Run(Notice::NoName(&error)));
            begin(None)
        }
        begun => begun,
    }
}

/// Names the paths of which nothing is recorded, but counts those that were named before the command.
fn tell_left(desk: &Desk, left: &[LeftPath], named: &HashSet<AbsPath>) {
    let (known, new): (Vec<&LeftPath>, Vec<&LeftPath>) = left.iter().partition(|left| named.contains(&left.path));
    desk.caller.tell(Fact::Run(Notice::Left { new, known: known.len() }));
}

/// Removes the run's record. An error is told: the session, if there is one, is made.
pub fn end(desk: &Desk, store: &Store, held: Held) {
    let id = held.id.clone();
    match held.end(&desk.fs, store) {
        Ok(()) => desk.clear_away(store),
        Err(why) => desk.caller.tell(Fact::Run(Notice::RecordStays { id: &id, why: &why })),
    }
}

/// Gives the owner's rights to the store back. Landlock does not stop chmod: the command may have taken them away.
fn regain(desk: &Desk, store: &Store, watched: &[Watched], held: &Held) -> Result<(), Error> {
    let mut missing = store.regain(&desk.fs)?;
    missing |= held.regain(&desk.fs)?;
    for Watched { series, .. } in watched {
        missing |= series.regain(&desk.fs)?;
    }
    if missing {
        desk.caller.tell(Fact::Run(Notice::Regained(&store.path)));
    }
    Ok(())
}

/// Drops old snapshots of a directory as the settings say, but for those that are `spared`.
fn prune_old(desk: &Desk, series: &Series, spared: &[u64]) {
    let pruned = series.lock(&desk.fs).and_then(|lock| retain(desk, series, &lock, None, spared));
    let count = dropped(desk, series, pruned).len();
    if count > 0 {
        desk.caller.tell(Fact::Run(Notice::Pruned { count, keep: desk.config.snapshot_keep.value }));
    }
}

/// Tells whether the error means that nothing is there.
pub fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
