//! The changes between two sides, as JSON has them: docs/json.md.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::compared::{Compared, Contents, Pair};
use crate::compare::summary::Seen;
use crate::compare::{Lines, Renames, Summary};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Sort};
use crate::tree::{Each, Object, printed};
use crate::verb::list::SessionRow;
use crate::verb::resolve::standing::Standing;
use crate::verb::show::ChangeRow;

/// The summary of the differences.
pub struct Summarized<'c> {
    compared: &'c Compared<'c>,
    standing: Option<Standing>,
    summary: Summary,
}

/// The differences, without their contents.
pub struct Listed<'c> {
    compared: &'c Compared<'c>,
    standing: Option<Standing>,
    renames: Renames,
    rows: Vec<Found>,
}

/// A change, by its index, and what its contents told.
struct Found {
    i: usize,
    conflict: bool,
    lines: Option<Lines>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Row<'a> {
    Session {
        #[serde(flatten)]
        change: ChangeRow<'a>,
        /// The tree does not hold what the session recorded: a commit or rollback would refuse.
        conflict: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        lines: Option<Lines>,
    },
    States {
        #[serde(flatten)]
        change: Between<'a>,
        /// The path at which what was created here was deleted.
        renamed_from: Option<&'a AbsPath>,
        #[serde(skip_serializing_if = "Option::is_none")]
        lines: Option<Lines>,
    },
}

/// A change between two states.
#[derive(Serialize)]
pub struct Between<'a> {
    path: &'a AbsPath,
    change: Sort,
    #[serde(serialize_with = "printed")]
    before: &'a Object,
    #[serde(serialize_with = "printed")]
    after: &'a Object,
}

impl<'a> Between<'a> {
    /// Makes the row of a change.
    pub fn of(change: &'a Change) -> Self {
        Self { path: &change.path, change: change.sort(), before: &change.before.object, after: &change.after }
    }
}

impl Compared<'_> {
    /// Lists what was asked for, with the counts of its lines if `counted` is set.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn listed(&mut self, counted: bool) -> Result<Listed<'_>, Error> {
        let standing = self.standing()?;
        let renames = self.renames(None)?;
        let mut rows = Vec::with_capacity(self.chosen.len());
        for i in self.chosen.iter().copied() {
            let view = match &mut self.contents {
                Contents::States { .. } if !counted => None,
                contents => Some(contents.view(&self.changes, i, counted)?),
            };
            let conflict = view.as_ref().is_some_and(|view| view.conflict);
            rows.push(Found { i, conflict, lines: view.filter(|_| counted).map(|view| Lines::of(&view)) });
        }
        Ok(Listed { compared: self, standing, renames, rows })
    }

    /// Sums up what was asked for, with the counts of lines.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn summarized(&mut self, all: bool) -> Result<Summarized<'_>, Error> {
        let standing = self.standing()?;
        let mut summary = self.summary(all)?;
        let order: BTreeMap<usize, usize> = summary.changes.iter().enumerate().map(|(at, single)| (single.index, at)).collect();
        for (i, at) in order {
            let view = self.contents.view(&self.changes, i, true)?;
            summary.changes[at].seen = Some(Seen { conflict: view.conflict, lines: Lines::of(&view) });
        }
        Ok(Summarized { compared: self, standing, summary })
    }

    /// The standing of a session that is compared with what was there.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn standing(&self) -> Result<Option<Standing>, Error> {
        let Contents::Session { session, .. } = &self.contents else { return Ok(None) };
        Standing::now(self.store, &session.header).map(Some)
    }
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Compared { pair, changes, contents, .. } = self.compared;
        let row = |found: &Found| {
            let Found { i, conflict, lines } = *found;
            match contents {
                Contents::Session { sides, .. } => {
                    Row::Session { change: ChangeRow::new(changes, i, sides[i], &self.renames), conflict, lines }
                }
                Contents::States { .. } => {
                    Row::States { change: Between::of(&changes[i]), renamed_from: self.renames.from(changes, i), lines }
                }
            }
        };
        let mut map = serializer.serialize_map(None)?;
        sides(&mut map, *pair, self.standing)?;
        map.serialize_entry("changes", &Each(|| self.rows.iter().map(row)))?;
        map.end()
    }
}

impl Serialize for Summarized<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        sides(&mut map, self.compared.pair, self.standing)?;
        map.serialize_entry("summary", &self.summary)?;
        map.end()
    }
}

/// The entries for the two sides.
fn sides<M: SerializeMap>(map: &mut M, pair: Pair<'_>, standing: Option<Standing>) -> Result<(), M::Error> {
    if let Some(standing) = standing {
        map.serialize_entry("session", &SessionRow::new(&pair.session().header, standing))?;
    }
    if let Some([from, to]) = pair.points() {
        map.serialize_entry("from", &from)?;
        map.serialize_entry("to", &to)?;
    }
    Ok(())
}
