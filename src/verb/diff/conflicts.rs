//! The hindrances of a commit or rollback: conflicts path by path, with both sides, and what the verb would refuse, as for missing rights.
//!
//! The engine finds both ([`engine::hindrances`]), so that they are those of the verb itself.

use std::rc::Rc;

use serde::{Serialize, Serializer};

use crate::checkpoint::Limits;
use crate::commit::{self, Request};
use crate::compare::{Clash, End, Lines, Sources, View};
use crate::engine;
use crate::engine::plan::conflict;
use crate::engine::{Conflict, LeftOut, OnConflict, SinceAct, Verb};
use crate::error::{Against, Error};
use crate::fs::AbsPath;
use crate::session::{Changes, Session, Side, Store};
use crate::settings::OnLimit;
use crate::verb::error::not_in_session;
use crate::verb::resolve::named_changes::TypedPath;

/// All that stands against a session, as JSON has it: docs/json.md.
#[derive(Serialize)]
pub struct Conflicts<'s> {
    #[serde(serialize_with = "id")]
    pub session: &'s Session,
    /// In path order.
    pub conflicts: Vec<Row<'s>>,
    pub refused: Vec<Refused>,
    #[serde(skip)]
    pub store: &'s Store,
    #[serde(skip)]
    sources: Sources<'s>,
}

/// A conflict.
#[derive(Serialize)]
pub struct Row<'s> {
    pub path: AbsPath,
    /// The verb that meets it: `commit` for what is not on the tree, `rollback` for what is.
    pub verb: Verb,
    why: String,
    by: Option<String>,
    forcible: bool,
    /// True if the session keeps the original.
    pub base: bool,
    #[serde(flatten)]
    clash: Clash<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Lines>,
}

/// A path for which a verb would be refused, as no conflict is.
#[derive(Serialize)]
pub struct Refused {
    pub path: String,
    pub verb: Verb,
    pub why: String,
}

/// Conflicts, each with the verb that meets it; and what verbs would refuse.
type Found = (Vec<(Verb, Conflict)>, Vec<Refused>);

fn id<S: Serializer>(session: &Session, serializer: S) -> Result<S::Ok, S::Error> {
    session.id().serialize(serializer)
}

impl<'s> Conflicts<'s> {
    /// Finds what stands against a commit of all that is out, and a rollback of all that is in, at and below `paths`, or at all.
    pub(super) fn of(
        (store, session): (&'s Store, &'s Session),
        (changes, sides): (&'s Changes, &[Side]),
        paths: &[TypedPath],
    ) -> Result<Self, Error> {
        let (found, refused) = asked_for(session, changes, paths, hindrances(store, session)?)?;
        let mut sources = Sources::of(session)?;
        let mut conflicts = Vec::with_capacity(found.len());
        for (verb, conflict) in found {
            let at = changes.list.binary_search_by(|change| change.path.cmp(&conflict.path)).ok();
            let end = if verb == Verb::Rollback { End::Before } else { End::After };
            let change = at.map(|i| (&changes.list[i], sides[i]));
            let why = conflict.why();
            let clash = Clash::of(&conflict.path, change, end, why.clone(), &mut sources)?;
            let Conflict { path, by, forcible, .. } = conflict;
            conflicts.push(Row { path, verb, why, by, forcible, base: clash.has_base(), clash, lines: None });
        }
        Ok(Self { session, conflicts, refused, store, sources })
    }

    /// Counts the lines of each conflict.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn count_lines(&mut self) -> Result<(), Error> {
        for row in &mut self.conflicts {
            row.lines = Some(Lines::of(&row.clash.view(self.session.id(), &mut self.sources)?));
        }
        Ok(())
    }

    /// Passes conflicts to `show`, one by one; with `from_base` as two views, of what became of the original on either side, if that is kept.
    ///
    /// # Errors
    /// A content cannot be read; an error of `show`.
    pub fn for_each(&mut self, from_base: bool, show: &mut dyn FnMut(&View<'_>) -> Result<(), Error>) -> Result<(), Error> {
        let (id, sources) = (self.session.id(), &mut self.sources);
        for Row { clash, .. } in &self.conflicts {
            let views = if from_base { clash.views(id, sources)? } else { vec![clash.view(id, sources)?] };
            views.iter().try_for_each(&mut *show)?;
        }
        Ok(())
    }
}

/// All that stands against a commit of all that is out, and a rollback of all that is in. Conflicts in path order.
fn hindrances(store: &Store, session: &Session) -> Result<Found, Error> {
    let counts = session.header.counts;
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let mut add = |verb: Verb, job| -> Result<(), Error> {
        let met = engine::hindrances(session, job)?;
        let since = SinceAct::of(&session.header, verb);
        found.extend(met.conflicts.into_iter().map(|mut conflict| {
            conflict.note_since(since);
            (verb, conflict)
        }));
        refused.extend(met.refused.into_iter().map(|Against { path, why }| Refused { path, verb, why }));
        Ok(())
    };
    if counts.inside < counts.changes {
        let request = Request {
            paths: &[],
            on_conflict: OnConflict::Stop,
            limits: Limits { max_files: u64::MAX, max_size: u64::MAX, on_limit: OnLimit::Full },
            denied: Rc::new(|_| false),
            only: None,
            aside: &LeftOut::default(),
            accept_unsynced: true,
        };
        add(Verb::Commit, commit::commit(session, &request)?)?;
    }
    if counts.inside > 0 {
        add(Verb::Rollback, crate::rollback::rollback(session, (&[], None), OnConflict::Stop, &LeftOut::default())?)?;
    }
    found.sort_by(|(_, a), (_, b)| a.path.cmp(&b.path));
    let (verbs, mut conflicts): (Vec<Verb>, Vec<Conflict>) = found.into_iter().unzip();
    conflict::attribute(store, session.id(), &mut conflicts);
    Ok((verbs.into_iter().zip(conflicts).collect(), refused))
}

/// All that was found at and below the paths that are named, refusals also above them; all if none is.
fn asked_for(session: &Session, changes: &Changes, paths: &[TypedPath], (mut found, mut refused): Found) -> Result<Found, Error> {
    if paths.is_empty() {
        return Ok((found, refused));
    }
    let paths = paths.iter().map(|path| changes.named(path.path())).collect::<Result<Vec<_>, _>>()?;
    let is_known =
        |path: &AbsPath| !changes.under(path).is_empty() || found.iter().any(|(_, conflict)| conflict.path.is_under(path));
    if let Some(unknown) = paths.iter().find(|path| !is_known(path)) {
        return Err(not_in_session(session.id(), changes, unknown));
    }
    found.retain(|(_, conflict)| paths.iter().any(|path| conflict.path.is_under(path)));
    // A directory in which names cannot change, or a file system.
    refused.retain(|refused| {
        let at = AbsPath::parse(refused.path.as_bytes());
        at.map_or(true, |at| paths.iter().any(|path| at.is_under(path) || path.is_under(&at)))
    });
    Ok((found, refused))
}
