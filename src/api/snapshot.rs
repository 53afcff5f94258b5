//! Snapshots: taken, listed, and restored.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::plan::{Report, Verb};
use super::session::moment;
use super::store::{Store, absolute, path_of};
use crate::engine::{Effect, OnConflict};
use crate::error::{Error, Kind};
use crate::fs::resolve;
use crate::session::{Changes, Locked, log};
use crate::snapshot;
use crate::snapshot::create::create;
use crate::snapshot::{
    Hashes, Rules, Series, SnapshotRequest, Source, Summary, Terms, Vcs, choose_directory, differences, restore, whole,
};

/// A snapshot in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its number among the snapshots of its directory, from 0 on; never used again.
    pub number: u64,
    /// When it was begun.
    pub time: SystemTime,
    /// Its message.
    pub message: Option<String>,
}

impl Snapshot {
    fn of(summary: Summary) -> Self {
        Self { number: summary.head.n, time: moment(summary.head.time), message: summary.head.message }
    }
}

/// # Snapshots
impl Store {
    /// Takes a snapshot of a directory and all that is in it. Returns its number, and the paths that are not in it, with the reason
    /// (unreadable, mounts). Left out without mention are version control's own directories (`.git` and the like), paths that a
    /// `.recantignore` names, and the store. Old snapshots stay; nothing on the tree is changed.
    ///
    /// # Errors
    /// [`Kind::Refused`]: there is nothing at `directory`, or it is too broad: `/`, the home directory, or one that holds it.
    /// `Busy`: another works with snapshots of that directory.
    ///
    /// # Examples
    ///
    /// ```
    /// use recant::Store;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let dir = tempfile::tempdir()?;
    /// let directory = dir.path().join("project");
    /// std::fs::create_dir(&directory)?;
    /// std::fs::write(directory.join("notes"), "first")?;
    ///
    /// let store = Store::open(dir.path().canonicalize()?.join("store"))?;
    /// let (number, skipped) = store.take_snapshot(&directory, Some("before the change"))?;
    /// assert!(number == 0 && skipped.is_empty());
    ///
    /// std::fs::write(directory.join("notes"), "second")?;
    /// std::fs::write(directory.join("more"), "")?;
    /// let report = store.restore(&directory, number)?;
    /// assert_eq!(report.changes.len(), 2);
    /// assert_eq!(std::fs::read_to_string(directory.join("notes"))?, "first");
    /// assert!(!directory.join("more").exists());
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_snapshot(&self, directory: &Path, message: Option<&str>) -> Result<(u64, Vec<(PathBuf, String)>), Error> {
        let directory = resolve::absolute(absolute(directory)?)?;
        choose_directory::check(&directory, &self.store.path, resolve::home().as_ref())?;
        self.recover_first()?;
        let asked = SnapshotRequest {
            message: message.map(Into::into),
            rules: Source::Found(Rules { vcs: Vcs::Left, ..Rules::default() }),
            ..SnapshotRequest::default()
        };
        let series = Series::create(&self.fs, &self.store, &directory)?;
        let lock = series.lock(&self.fs)?;
        let made = create(&self.fs, &self.store.path, &series, &lock, &asked)?;
        let unread = made.unread.into_iter();
        let left = made.left.into_iter().map(|(path, why)| (path, why.text().to_owned()));
        let skipped = unread.chain(left).map(|(path, why)| Ok((path_of(&whole(&directory, &path)?), why)));
        Ok((made.n, skipped.collect::<Result<_, Error>>()?))
    }

    /// The snapshots of a directory, the oldest first, then an error for each unreadable one. Empty if none was taken.
    ///
    /// # Errors
    /// The list itself cannot be read.
    pub fn snapshots(&self, directory: &Path) -> Result<Vec<Result<Snapshot, Error>>, Error> {
        let Some(series) = self.series(directory)? else { return Ok(Vec::new()) };
        let directory = &series.directory;
        let (mut summaries, broken) = series.looked_over()?;
        summaries.retain(|summary| broken.iter().all(|broken| broken.n != summary.head.n));
        let damaged = broken.into_iter().map(|broken| {
            let path = format!("snapshot {} of {directory}", broken.n);
            Err(snapshot::error::damaged(path, broken.why))
        });
        Ok(summaries.into_iter().map(|summary| Ok(Snapshot::of(summary))).chain(damaged).collect())
    }

    /// Restores a directory from a snapshot, all of it or nothing. Removes what was created since; restores what was removed or changed.
    /// The report names a session of its own that does it: [`Verb::Rollback`] takes the restore back. What the snapshot left out stays.
    ///
    /// # Errors
    /// [`Kind::Refused`]: there is no such snapshot; a link or nothing is in place of the directory; no right, no room.
    /// `Conflict`: somebody wrote there meanwhile. `Damaged`: content of the snapshot is not what was put there. Nothing was changed then.
    pub fn restore(&self, directory: &Path, number: u64) -> Result<Report, Error> {
        let series = self.series(directory)?.ok_or_else(|| snapshot::error::none(directory.display()))?;
        let directory = series.directory.clone();
        restore::refuse_elsewhere(&directory)?;
        self.recover_first()?;
        let _lock = series.lock(&self.fs)?;
        let n = series.find(&number.to_string())?;
        let terms = Terms { whole: true, paths: &[], hashes: Hashes::Small, ..Terms::default() };
        let mut compared = differences::with_tree(&self.store.path, &series, n, terms)?;
        compared.settle(&directory);
        compared.learn_indexes(&series)?;
        let mut skipped = Vec::with_capacity(compared.left.len());
        for (path, why) in &compared.left {
            skipped.push((path_of(&whole(&directory, path)?), why.clone()));
        }
        if compared.differences.is_empty() {
            return Ok(Report { session: None, changes: Vec::new(), skipped, notes: Vec::new() });
        }
        let mut session = self.store.begin_own(&self.fs, format!("snapshot restore {n} {directory}"))?;
        self.clear_away();
        let writing_out = match restore::fill(&self.fs, &series, &compared, &mut session) {
            Ok(writing_out) => writing_out,
            Err(error) => {
                self.take_away(session);
                return Err(error);
            }
        };
        let lock = self.store.lock(&self.fs, || ());
        let done = lock.and_then(|_lock| self.carry_out(&mut session, Verb::Commit, &[], OnConflict::Stop, Effect::Apply));
        drop(writing_out);
        let asked = log::Restore { directory: directory.clone(), snapshot: n, only: Vec::new() };
        let counts = done.as_ref().ok().map(|report| (report.rows.len(), report.left.len()));
        let entry = log::Entry::of_restore(asked, &session, counts);
        let logged = log::append(&self.fs, &self.store, &entry);
        match done {
            Ok(report) => {
                let mut report = Report::of(Some(session.id().clone().into()), report);
                skipped.append(&mut report.skipped);
                report.notes.extend(logged.err().map(|error| format!("the log could not be written: {error}")));
                Ok(Report { skipped, ..report })
            }
            Err(error) => {
                // Nothing was changed, and the snapshot still has the content. If the engine is stuck, the session stays.
                if error.kind() != Kind::Stuck {
                    self.take_away(session);
                }
                Err(error)
            }
        }
    }

    /// The snapshots of a directory, if it has any: by its real path, else by the given path, where a link may have replaced the directory.
    fn series(&self, directory: &Path) -> Result<Option<Series>, Error> {
        let directory = absolute(directory)?;
        match Series::open(&self.store, &resolve::absolute(directory)?)? {
            None => Ok(Series::open(&self.store, &Changes::default().named(directory)?)?),
            series => Ok(series),
        }
    }

    /// Removes a session that came to nothing. If it cannot be removed, the next session that is begun removes it.
    fn take_away(&self, session: Locked) {
        drop(self.store.remove_session(&self.fs, session));
    }
}
