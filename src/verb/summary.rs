//! The summary of a session's changes, by the settings and from its project.

use std::collections::HashSet;

use super::desk::Desk;
use super::resolve::scope::Scope;
use crate::compare::summary::Subject;
use crate::compare::{Differences, KnownPlaces, Renames, Summary};
use crate::engine::{Report, Row, Verb};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Changes, Header, Id, Session, Side, StepList, Store};
use crate::settings::Settings;

/// The places where programs leave what nobody looks for, as seen from a session.
pub fn known_places(desk: &Desk, store: &Store, header: &Header) -> KnownPlaces {
    KnownPlaces::of(&desk.config, Scope::everywhere().project_of(store, header))
}

/// Sums up those of a session's changes that `chosen` names; `named` are the paths that a person named, `renames` what is shown as renamed.
pub fn of_chosen(
    (desk, store, session): (&Desk, &Store, &Session),
    (changes, sides): (&Changes, &[Side]),
    (chosen, named, renames): (&[usize], &[AbsPath], Option<&Renames>),
) -> Result<Summary, Error> {
    let places = known_places(desk, store, &session.header);
    let subject = Subject { changes: &changes.list, chosen, named, places: &places, renames, all: false };
    Summary::of_session(subject, sides, session)
}

/// Sums up all changes of a session.
///
/// # Errors
/// They cannot be read.
pub fn of_session(desk: &Desk, store: &Store, session: &Session) -> Result<Summary, Error> {
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let all: Vec<usize> = (0..changes.list.len()).collect();
    of_chosen((desk, store, session), (&changes, &sides), (&all, &[], None))
}

/// The way in which a report's paths go, as seen from the changes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    On,
    Back,
}

impl Way {
    /// The way of an act on the session itself.
    pub fn of(verb: Verb) -> Self {
        if verb == Verb::Rollback { Self::Back } else { Self::On }
    }
}

/// Sums up the paths of a report, which are changes of this session, with the rows that have a line each; `None` if it cannot be read.
pub fn of_report<'r>(desk: &Desk, (id, way): (&Id, Way), report: &'r Report) -> Option<(Summary, Vec<&'r Row>)> {
    let store = desk.store().ok()??;
    let session = store.session(id).ok()?;
    let changes = session.changes().ok()?;
    let sides = session.sides(changes.list.len()).ok()?;
    let at = |row: &Row| changes.list.binary_search_by(|change| change.path.cmp(&row.path)).ok();
    let chosen: Vec<usize> = report.rows.iter().filter_map(at).collect();
    let places = known_places(desk, store, &session.header);
    let subject = Subject { changes: &changes.list, chosen: &chosen, named: &[], places: &places, renames: None, all: false };
    let summary = match way {
        Way::On => Summary::of_session(subject, &sides, &session),
        Way::Back => Summary::of_way_back(subject, &sides, &session),
    };
    let summary = summary.ok()?;
    let together: HashSet<usize> = summary.together().collect();
    let rows = report.rows.iter().filter(|row| at(row).is_none_or(|i| !together.contains(&i))).collect();
    Some((summary, rows))
}

/// Sums up what a step changed against the one that it stands on.
///
/// # Errors
/// The step cannot be read.
pub fn of_step(
    settings: &Settings,
    (store, session): (&Store, &Session),
    (steps, n): (&StepList, u32),
) -> Result<Summary, Error> {
    let own = steps.own(session, n)?;
    let Differences { changes, ends } = Differences::of_step(&own);
    let places = KnownPlaces::of(settings, Scope::everywhere().project_of(store, &session.header));
    let all: Vec<usize> = (0..changes.list.len()).collect();
    let subject = Subject { changes: &changes.list, chosen: &all, named: &[], places: &places, renames: None, all: false };
    Summary::of_step(subject, &ends, session)
}
