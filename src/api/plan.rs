//! Commit, rollback and redo: planned, then applied.

use std::path::{Path, PathBuf};

use super::id::SessionId;
use super::session::{Change, ChangeKind};
use super::store::{Store, absolute, path_of};
use crate::capture::layers::rejoin;
use crate::checkpoint::Limits;
use crate::commit::{self, Request};
use crate::engine::plan::conflict;
use crate::engine::{Job, LeftOut, OnConflict, SinceAct, job};
use crate::settings;

use crate::engine::{Effect, JobRequest, Minor, PathOutcome, Unwatched, minor_conflicts, report};
use crate::error::{Error, command};
use crate::fs::AbsPath;
use crate::rollback;
use crate::session::Locked;

/// An operation on a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Commits its changes; the originals are kept for a rollback.
    Commit,
    /// Restores the originals, exactly.
    Rollback,
    /// Commits again what was rolled back.
    Redo,
}

impl Verb {
    fn of_engine(self) -> job::Verb {
        match self {
            Self::Commit => job::Verb::Commit,
            Self::Rollback => job::Verb::Rollback,
            Self::Redo => job::Verb::Redo,
        }
    }
}

/// A planned operation: what it would do, or its conflicts. Holds the session's lock. If it is dropped, nothing was done.
#[must_use = "a plan changes nothing until it is applied"]
pub struct Plan<'s> {
    store: &'s Store,
    session: Locked,
    verb: Verb,
    paths: Vec<AbsPath>,
    would: Option<Report>,
    conflicts: Vec<Conflict>,
}

/// A path that does not hold what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The path.
    pub path: PathBuf,
    /// For people: the expected object, the one that is there, and the session that put it there, if one did.
    pub why: String,
    /// True if [`Plan::force`] goes on over it.
    pub forcible: bool,
}

/// A report of what an operation did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The session of the operation, which also rolls it back; `None` if a restore had nothing to do.
    pub session: Option<SessionId>,
    /// The changed paths, in path order, and the change of each.
    pub changes: Vec<Change>,
    /// The paths that were left as they are, and why.
    pub skipped: Vec<(PathBuf, String)>,
    /// Other notes, for people.
    pub notes: Vec<String>,
}

impl Report {
    pub(super) fn of(session: Option<SessionId>, report: report::Report) -> Self {
        let large = |large: &crate::checkpoint::Large| {
            let (files, size) = (settings::grouped(large.files), settings::bytes(large.size));
            format!("{}: {files} files, {size} deleted, all kept for a rollback", large.path)
        };
        let change = |row: &report::Row| Change { path: path_of(&row.path), kind: kind_of(row.done) };
        Self {
            session,
            changes: report.rows.iter().map(change).collect(),
            skipped: report.left.iter().map(|left| (path_of(&left.path), left.why.clone())).collect(),
            notes: report.large.iter().map(large).chain(report.notes).collect(),
        }
    }
}

fn kind_of(done: PathOutcome) -> ChangeKind {
    match done {
        PathOutcome::Created | PathOutcome::Recreated => ChangeKind::Created,
        PathOutcome::Modified | PathOutcome::Restored | PathOutcome::Merged => ChangeKind::Modified,
        PathOutcome::Deleted | PathOutcome::Removed => ChangeKind::Deleted,
        PathOutcome::Metadata => ChangeKind::Metadata,
        PathOutcome::Unchanged => ChangeKind::Unchanged,
    }
}

/// # Commit, rollback, redo
impl Store {
    /// Looks at everything that an operation would touch, finds all conflicts, and changes nothing on the tree. `paths` are paths of the
    /// session; all below them and the directories that they need are included. Empty means all.
    ///
    /// Large deletions are kept in full; settings of the program (`commit.deny` and others) do not apply.
    ///
    /// # Errors
    /// [`Kind::Refused`](crate::Kind::Refused): the session's state does not allow it; it holds none of the paths; it waits to be
    /// confirmed; or something is impossible: no right, no room, an immutable file, a mount. `Damaged`: content in the store is not what
    /// was put there. `Busy`: another holds the session's lock. `Stuck`: an operation of it that was cut off could not be recovered.
    /// `LeftOut`: it was just recovered, but not everywhere, as somebody has changed paths; another call goes on.
    pub fn plan(&self, id: &SessionId, verb: Verb, paths: &[&Path]) -> Result<Plan<'_>, Error> {
        let mut session = self.locked(id)?;
        let changes = session.changes()?;
        let paths = paths.iter().map(|path| changes.named(absolute(path)?)).collect::<Result<Vec<_>, Error>>()?;
        drop(changes);
        if verb != Verb::Rollback && session.header.waits().is_some() && !session.header.is_all_in() {
            let id = session.id();
            let [confirm, rollback] = ["confirm", "rollback"].map(|verb| command(format_args!("{verb} {id}")));
            let remedy = confirm + " lets it stay, " + rollback + " takes it back";
            return Err(Error::refused(format!("session {id} waits to be confirmed")).with_remedy(remedy));
        }
        let done = self.carry_out(&mut session, verb, &paths, OnConflict::Stop, Effect::Print);
        let (would, conflicts) = match done.map_err(conflict::as_conflicts) {
            Ok(report) => (Some(Report::of(Some(id.clone()), report)), Vec::new()),
            Err(Ok(conflicts)) => {
                let conflict = |conflict: &conflict::Conflict| Conflict {
                    path: path_of(&conflict.path),
                    why: conflict.why(),
                    forcible: conflict.forcible,
                };
                (None, conflicts.iter().map(conflict).collect())
            }
            Err(Err(error)) => return Err(error),
        };
        Ok(Plan { store: self, session, verb, paths, would, conflicts })
    }

    /// Carries out an operation, or only plans it. The caller holds the store's lock unless it only plans.
    pub(super) fn carry_out(
        &self,
        session: &mut Locked,
        verb: Verb,
        paths: &[AbsPath],
        on_conflict: OnConflict,
        effect: Effect,
    ) -> Result<report::Report, Error> {
        let ask = |session: &Locked, paths: &[AbsPath], aside: &LeftOut| ask(session, verb, paths, on_conflict, aside);
        let minor = if on_conflict == OnConflict::Keep { Minor::Forced } else { Minor::Stops };
        let since = SinceAct::of(&session.header, verb.of_engine());
        let asked = JobRequest { verb: verb.of_engine(), paths, minor, since, ask: &ask };
        minor_conflicts::execute_without_minor(&self.fs, &self.store, session, &asked, effect, &Unwatched)
    }
}

fn ask(session: &Locked, verb: Verb, paths: &[AbsPath], on_conflict: OnConflict, aside: &LeftOut) -> Result<Job, Error> {
    let request = Request {
        paths,
        on_conflict,
        limits: Limits::default(),
        denied: std::rc::Rc::new(|_| false),
        only: None,
        aside,
        accept_unsynced: verb == Verb::Redo,
    };
    match verb {
        Verb::Commit => commit::commit(session, &request),
        Verb::Redo => commit::redo(session, &request),
        Verb::Rollback => rollback::rollback(session, (paths, None), on_conflict, aside),
    }
}

impl Plan<'_> {
    /// Every path that does not hold what was expected, in path order; empty if there are no conflicts.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// The report of what would be done; `None` if there are conflicts.
    pub fn report(&self) -> Option<&Report> {
        self.would.as_ref()
    }

    /// Does all that the report says, durably, or nothing. Looks at everything again, and so finds what changed on the tree since.
    ///
    /// # Errors
    /// Those of [`Store::plan`]; [`Kind::Conflict`](crate::Kind::Conflict): the tree does not hold what was expected; the text has a line a path.
    /// `Stuck`: it failed on the way and could not be undone in full; [`Error::state`] says what is left. After others nothing was changed.
    pub fn apply(self) -> Result<Report, Error> {
        self.carry_out(OnConflict::Stop)
    }

    /// Does it over conflicts, where possible. An unexpected object is kept first: as a commit's original, or for
    /// `recant cat ID PATH --displaced`. Paths at which there is nothing to change are skipped.
    ///
    /// # Errors
    /// Those of [`Plan::apply`].
    pub fn force(self) -> Result<Report, Error> {
        self.carry_out(OnConflict::Keep)
    }

    fn carry_out(self, on_conflict: OnConflict) -> Result<Report, Error> {
        let Plan { store, mut session, verb, paths, .. } = self;
        // Other sessions' operations that were cut off since. This session's lock is held.
        store.recover_first()?;
        let act = |session: &mut Locked| {
            let _lock = store.store.lock(&store.fs, || ())?;
            store.carry_out(session, verb, &paths, on_conflict, Effect::Apply)
        };
        let (report, _) = rejoin::around(&store.fs, &store.store, &mut session, (verb != Verb::Rollback, &paths), act)?;
        Ok(Report::of(Some(session.id().clone().into()), report))
    }
}
