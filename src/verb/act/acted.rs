//! The value of a commit, rollback or redo.

use std::path::Path;

use serde::Serialize;

use super::steps_behind::Behind;
use super::unconfirmed::Waiting;
use crate::capture::Rest;
use crate::compare::Summary;
use crate::engine::{LeftPath, Report, Row};
use crate::session::{Id, Session};
use crate::verb::desk::Desk;
use crate::verb::policy::Waits;
use crate::verb::summary::{self, Way};

/// An act on the tree: what it did, or would do. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Acted {
    /// The session whose rollback takes it back; after a dry run of a part it is gone.
    pub(crate) session: Id,
    #[serde(skip)]
    pub(crate) name: Option<String>,
    #[serde(flatten)]
    pub(crate) report: Report,
    /// With a time within which it is to be confirmed.
    #[serde(rename = "confirm", skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<Waiting>,
    /// The session of which it committed a part, or took one back, by a session of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part_of: Option<PartOf>,
    /// The verdict of a person's policy on an agent's commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<Allowed>,
    /// The steps that a commit left behind, if that is still to be said.
    #[serde(skip)]
    pub(crate) behind: Option<Behind>,
    /// The fate of the session that a part left.
    #[serde(skip)]
    pub(crate) rest: Option<(Id, Rest)>,
}

/// The changes of a commit that a person's policy allows an agent, and the others.
#[derive(Debug, Serialize)]
pub struct Allowed {
    /// The number of changes.
    pub fits: u64,
    pub waits: Vec<Waits>,
    /// For the person: it commits what waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The session that a part was taken of.
#[derive(Debug, Serialize)]
pub struct PartOf {
    pub session: Id,
    /// The number of changes that it holds then.
    pub changes: u64,
    /// True if the part was taken back.
    #[serde(skip)]
    pub is_back: bool,
}

impl Acted {
    /// The id of the session whose rollback takes it back.
    pub fn session(&self) -> &str {
        self.session.as_str()
    }

    /// The changed paths, in path order, and what became of each: `created`, `modified`, `deleted`, `recreated`, `restored`, `removed`,
    /// `metadata` or `unchanged`.
    pub fn paths(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        self.report.rows.iter().map(|row| (row.path.as_path(), row.done.word()))
    }

    /// The paths that were left as they are, and why.
    pub fn left(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.report.left.iter().map(LeftPath::parts)
    }

    /// Other notes, for people.
    pub fn notes(&self) -> &[String] {
        &self.report.notes
    }

    /// Sums up what it changed on the tree, with the rows that have a line each; `None` if the session cannot be read.
    pub(crate) fn summary(&self, desk: &Desk) -> Option<(Summary, Vec<&Row>)> {
        let (id, way) = match &self.part_of {
            // The session of the part is gone.
            Some(of) if self.report.dry_run => (&of.session, if of.is_back { Way::Back } else { Way::On }),
            Some(_) => (&self.session, Way::On),
            None => (&self.session, Way::of(self.report.verb)),
        };
        summary::of_report(desk, (id, way), &self.report)
    }

    /// An act on a session itself.
    pub(crate) fn of(session: &Session, report: Report, rest: Rest) -> Self {
        let rest = session.header.of.clone().map(|of| (of, rest));
        let (id, name) = (session.id().clone(), session.header.name.clone());
        Self { session: id, name, report, waiting: None, part_of: None, policy: None, behind: None, rest }
    }

    /// True if nothing was left out, and all that went is kept.
    pub(crate) fn is_whole(&self) -> bool {
        self.report.left.is_empty() && !self.report.uncovered
    }
}
