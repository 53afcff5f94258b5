//! `show`: one session and its changes.

use std::path::Path;

use serde::{Serialize, Serializer};

use super::desk::Desk;
use super::fact::Fact;
use super::list::SessionRow;
use super::resolve::named_changes::TypedPath;
use super::resolve::named_changes::{all_named, chosen};
use super::resolve::standing::Standing;
use super::summary;
use crate::compare::{Renames, Sources, Summary};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Changes, Run, Session, Side, Sort, Status, Step, Store};
use crate::tree::{Danger, Each, Object, printed};

/// A change in the JSON of `show` and `diff`.
#[derive(Debug, Serialize)]
pub struct ChangeRow<'a> {
    pub path: &'a AbsPath,
    pub change: Sort,
    pub side: &'static str,
    #[serde(serialize_with = "printed")]
    pub before: &'a Object,
    #[serde(serialize_with = "printed")]
    pub after: &'a Object,
    /// True if the original has other names, which keep the old content.
    pub link_broken: bool,
    /// True if the session gives the file several names: a later write to one of them changes all.
    pub linked: bool,
    /// True if somebody else changed the real tree here while the command ran.
    pub foreign: bool,
    /// The path at which what was created here was deleted.
    pub renamed_from: Option<&'a AbsPath>,
    /// The reason why a person should see it before the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub danger: Option<Danger>,
}

impl<'a> ChangeRow<'a> {
    /// Makes the row of a change, by its index, and its side.
    pub fn new(changes: &'a [Change], i: usize, side: Side, renames: &Renames) -> Self {
        let change = &changes[i];
        Self {
            renamed_from: renames.from(changes, i),
            path: &change.path,
            change: change.sort(),
            side: side_word(side),
            before: &change.before.object,
            after: &change.after,
            link_broken: change.marks.link_broken,
            linked: change.marks.linked,
            foreign: change.marks.foreign,
            danger: change.danger(),
        }
    }
}

pub fn side_word(side: Side) -> &'static str {
    match side {
        Side::Never => "never",
        Side::In => "in",
        Side::Out => "out",
        Side::Lost => "lost",
    }
}

/// A session and its changes, as JSON has them: docs/json.md.
pub struct Shown<'d> {
    pub(crate) store: &'d Store,
    pub(crate) session: Session,
    pub(crate) standing: Standing,
    /// The record of the command at the head.
    pub(crate) run: Option<Run>,
    pub(crate) changes: Changes,
    /// The side of each change.
    pub(crate) sides: Vec<Side>,
    pub(crate) renames: Renames,
    /// The indexes of the changes that were asked for, in path order.
    pub(crate) chosen: Vec<usize>,
    /// The paths that were named.
    named: Vec<AbsPath>,
}

impl Shown<'_> {
    /// Sums up the changes that were asked for.
    pub(crate) fn summary(&self, desk: &Desk) -> Result<Summary, Error> {
        let Self { store, session, changes, sides, renames, chosen, named, .. } = self;
        summary::of_chosen((desk, store, session), (changes, sides), (chosen, named, Some(renames)))
    }

    /// The changes that were asked for, in path order: `created`, `modified`, `deleted`, `metadata` or `times` (the mtime alone).
    pub fn changes(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        let change = |i: &usize| &self.changes.list[*i];
        self.chosen.iter().map(change).map(|change| (change.path.as_path(), change.sort().word()))
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Told<'a, R: Serialize> {
            session: SessionRow<'a>,
            run: Option<&'a Run>,
            directory_times: usize,
            changes: R,
        }
        let row = |i: &usize| ChangeRow::new(&self.changes.list, *i, self.sides[*i], &self.renames);
        let rows = || self.chosen.iter().map(row);
        let told = Told {
            session: SessionRow::new(&self.session.header, self.standing),
            run: self.run.as_ref(),
            directory_times: self.changes.directory_times.len(),
            changes: Each(&rows),
        };
        told.serialize(serializer)
    }
}

/// Looks at a session: the one that `key` means, else `last`. Of its changes those at and below `paths`, or all.
///
/// # Errors
/// No session is meant; it cannot be read; a path is not in it.
pub fn show<'d>(desk: &'d Desk, key: Option<&str>, paths: &[TypedPath]) -> Result<Shown<'d>, Error> {
    let (store, session) = desk.looked_at(key)?;
    let standing = Standing::now(store, &session.header)?;
    let run = at_head(&session, session.run()?)?;
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let renames = renames(desk, &session, &changes.list, &sides);
    let chosen = chosen(session.id(), &changes, paths)?;
    let named = all_named(session.id(), (&changes, &[]), paths)?;
    Ok(Shown { store, session, standing, run, changes, sides, renames, chosen, named })
}

/// The record of the command at the head: a session that was rewound stands at an earlier one than the last.
pub fn at_head(session: &Session, run: Option<Run>) -> Result<Option<Run>, Error> {
    let head = session.header.head();
    let is_rewound = session.header.steps.as_ref().is_some_and(|steps| steps.last != head);
    if !is_rewound || session.is_so_far() {
        return Ok(run);
    }
    let Some(run) = run else { return Ok(None) };
    let list = session.steps()?;
    Ok(Some(match list.steps.into_iter().find(|step| step.n == head) {
        Some(step) => {
            let Step { command, uid, beside, .. } = step;
            Run { command, uid, beside, ..run }
        }
        None => run,
    }))
}

/// The renames, as far as the contents are there to tell. A damaged store is a warning, and the session is shown all the same.
fn renames(desk: &Desk, session: &Session, changes: &[Change], sides: &[Side]) -> Renames {
    if session.header.status() == Status::Discarded {
        return Renames::default();
    }
    Sources::of(session).and_then(|mut sources| Renames::find(changes, sides, &mut sources)).unwrap_or_else(|error| {
        desk.caller.tell(Fact::NoRenames(&error));
        Renames::default()
    })
}
