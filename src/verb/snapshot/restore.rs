//! `snapshot restore`: a session of the differences, committed by the engine like any other.

use std::path::Path;

use serde::Serialize;

use super::fact::SnapshotFact;
use super::series::{Named, inner, number, refuse_unknown};
use crate::engine::{LeftPath, PathOutcome};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Id, Session, Store, log};
use crate::snapshot::{Compared, Hashes, Moved, Series, Terms, differences, manifest, moved, refuse_elsewhere, whole};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::question::Question;
use crate::verb::restore::{PutBack, WentBack, left, put_back, rows};
use crate::verb::restore_row::Row;

/// The snapshot to restore, the paths of it, and how.
#[derive(Debug, Clone, Copy)]
pub struct Restore<'a> {
    pub(crate) of: Named<'a>,
    /// True if it goes on over what changes meanwhile, and asks nothing.
    pub(crate) force: bool,
    pub(crate) dry_run: bool,
    /// True if what was created since stays.
    pub(crate) keep_new: bool,
    /// True if what somebody has edited since stays: what is not as a later snapshot has it.
    pub(crate) safe: bool,
    /// True with version control's own.
    pub(crate) with_vcs: bool,
}

impl<'a> Restore<'a> {
    /// The restore of a snapshot of a directory in full, by its number, its label, or `last`.
    pub fn all(directory: &'a Path, key: &'a str) -> Self {
        Self::of(Named { dir: Some(directory), key, paths: &[] })
    }

    /// The restore of all that is named, and of nothing of version control's own.
    pub(crate) fn of(of: Named<'a>) -> Self {
        Self { of, force: false, dry_run: false, keep_new: false, safe: false, with_vcs: false }
    }
}

/// The restore of a snapshot. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Restored {
    pub(crate) directory: AbsPath,
    pub(crate) n: u64,
    pub(crate) dry_run: bool,
    /// The session that did it; `None` if nothing was to be done.
    pub(crate) session: Option<Id>,
    pub(crate) paths: Vec<Row>,
    pub(crate) skipped: Vec<LeftPath>,
    pub(crate) heads: Vec<Moved>,
}

impl Restored {
    /// The id of the session that did it, whose rollback takes it back; `None` if nothing was to be done.
    pub fn session(&self) -> Option<&str> {
        self.session.as_ref().map(Id::as_str)
    }

    /// The changed paths, in path order, and what became of each: `recreated`, `restored`, `removed` or `metadata`.
    pub fn paths(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        self.paths.iter().map(|row| (row.path.as_path(), row.done.word()))
    }

    /// The paths that were left as they are, and why.
    pub fn left(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.skipped.iter().map(LeftPath::parts)
    }
}

/// Restores a snapshot, or the named paths of it, as far as that is possible: removes what was created since, puts back what was removed or
/// changed. What the snapshot left out stays.
///
/// # Errors
/// [`Kind::Refused`](crate::Kind::Refused): there is no such snapshot; a path is nowhere; a link or nothing is in place of the directory;
/// the answer is no; nothing of it can go back. `Conflict`: somebody wrote there meanwhile. `Damaged`: content of the snapshot is not
/// what was put there.
pub fn restore(desk: &Desk, asked: &Restore<'_>) -> Result<Restored, Error> {
    let (store, series) = asked.of.series(desk)?;
    refuse_elsewhere(&series.directory)?;
    let _lock = if asked.dry_run {
        None
    } else {
        // Recovers first: changes of an interrupted operation must not count as somebody's.
        desk.prepare_to_change(store)?;
        Some(series.lock(&desk.fs)?)
    };
    let (n, paths, mut compared) = compared(asked, store, &series)?;
    compared.learn_indexes(&series)?;
    let (rows, skipped) = (rows(&series, &compared)?, left(&series, &compared)?);
    tell_repositories(desk, &series, n, &paths, &compared)?;
    let heads = if asked.with_vcs { moved(&series, &compared)? } else { Vec::new() };
    heads.iter().for_each(|moved| desk.caller.tell(Fact::Snapshot(SnapshotFact::HeadMoves(moved))));
    let (directory, dry_run) = (series.directory.clone(), asked.dry_run);
    if compared.differences.is_empty() {
        return Ok(Restored { directory, n, dry_run, session: None, paths: rows, skipped, heads });
    }
    if !(dry_run || asked.force) {
        ask(desk, &rows, !heads.is_empty())?;
    }
    let only = paths.iter().map(|path| whole(&directory, path)).collect::<Result<_, _>>()?;
    let logged = log::Restore { directory: directory.clone(), snapshot: n, only };
    let putting = PutBack {
        command: format!("snapshot restore {n} {directory}"),
        act: error::restoring(&directory, n),
        n,
        entry: &|session: &Session, counts| log::Entry::of_restore(logged.clone(), session, counts),
        force: asked.force,
        dry_run,
    };
    let WentBack { session, paths, left } = put_back(desk, store, &series, &mut compared, &putting)?;
    if !dry_run {
        tell_other_names(desk, &series, &compared)?;
    }
    Ok(Restored { directory, n, dry_run, session, paths, skipped: left, heads })
}

/// Compares the snapshot that is asked for with the tree: its number, the paths that were named, and the differences.
fn compared(asked: &Restore<'_>, store: &Store, series: &Series) -> Result<(u64, Vec<AbsPath>, Compared), Error> {
    let &Restore { of: Named { key, paths, .. }, with_vcs, force: with_older, safe, .. } = asked;
    let n = number(series, key, error::restore_of_path(&series.directory, key))?;
    let paths = inner(&series.directory, paths)?;
    let hashes = if safe { Hashes::All } else { Hashes::Small };
    if with_vcs && manifest::rules(&series.dir, n)?.leaves_vcs() {
        return Err(error::without_vcs(&series.directory, n));
    }
    let terms = Terms { whole: true, paths: &paths, hashes, with_vcs, with_older, ..Terms::default() };
    let mut compared = differences::with_tree(&store.path, series, n, terms)?;
    refuse_unknown(series, &paths, &compared)?;
    if !paths.is_empty() {
        compared.only(&paths);
    }
    if safe {
        let later: Vec<u64> = series.numbers()?.into_iter().filter(|m| *m > n).collect();
        compared.keep_edited(series, &later)?;
    }
    if asked.keep_new {
        compared.keep_new();
    }
    compared.settle(&series.directory);
    Ok((n, paths, compared))
}

/// Asks before something is removed or overwritten, or a HEAD is moved.
fn ask(desk: &Desk, rows: &[Row], moves_head: bool) -> Result<(), Error> {
    let of = |done| rows.iter().filter(|row| row.done == done).map(|row| &row.path).collect::<Vec<_>>();
    let (removed, overwritten) = (of(PathOutcome::Removed), of(PathOutcome::Restored));
    if removed.is_empty() && overwritten.is_empty() && !moves_head {
        return Ok(());
    }
    desk.confirm(Question::Restore { removed: &removed, overwritten: &overwritten })
}

/// Names the repositories in the snapshot that a restore leaves as they are.
fn tell_repositories(desk: &Desk, series: &Series, n: u64, paths: &[AbsPath], compared: &Compared) -> Result<(), Error> {
    let asked = |path: &&AbsPath| paths.is_empty() || paths.iter().any(|asked| path.is_under(asked));
    let mut stay = compared.repositories.iter().filter(asked);
    if let Some(first) = stay.next() {
        desk.caller.tell(Fact::Snapshot(SnapshotFact::RepositoriesStay {
            first: &whole(&series.directory, first)?,
            more: stay.count(),
            n,
        }));
    }
    Ok(())
}

/// Warns of removed names whose files have other names on the tree: a rollback would join them again.
fn tell_other_names(desk: &Desk, series: &Series, compared: &Compared) -> Result<(), Error> {
    let mut paths = compared.leaving_names();
    if let Some(first) = paths.next() {
        desk.caller
            .tell(Fact::Snapshot(SnapshotFact::OtherNameStays { first: &whole(&series.directory, first)?, more: paths.count() }));
    }
    Ok(())
}
