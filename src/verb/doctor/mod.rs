//! `doctor`: tries each way to use recant from here, and says what keeps one from working.

mod snapshot;
mod stores;
mod surroundings;
mod ways;

use serde::Serialize;

pub use surroundings::Surroundings;
pub use ways::{Verdict, Way};

use super::desk::Desk;
use super::run::trial::{self, Tried};
use crate::capture::space::probe;
use crate::capture::{Finding, Here, capture};
use crate::error::{Error, Kind};
use crate::remedy::Remedy;
use crate::session::Coverage;

/// The ways that work here, as JSON has them: docs/json.md.
#[derive(Serialize)]
pub struct Diagnosis {
    pub here: Here,
    pub ways: Vec<Way>,
    pub run: Works,
    pub run_in: Works,
    pub findings: Vec<Finding>,
    /// The places that a run from here would hold; empty if it is unknown.
    pub coverage: Vec<Coverage>,
}

/// The result of a trial.
#[derive(Serialize)]
pub struct Works {
    pub works: bool,
    /// `root` or `user`.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub who: Option<&'static str>,
    pub why: Option<String>,
    pub remedy: Option<Remedy>,
}

impl Works {
    fn of(failed: Option<&Error>, who: Option<&'static str>) -> Self {
        let why = failed.map(|error| error.message().to_owned());
        Self { works: failed.is_none(), who, why, remedy: failed.and_then(Error::advice).cloned() }
    }
}

impl Diagnosis {
    /// The findings that neither the first line nor a way tells of: what is wrong, and may matter.
    pub fn of_note(&self) -> impl Iterator<Item = &Finding> {
        let is_told = |finding: &Finding| {
            finding
                .cause
                .as_ref()
                .is_some_and(|cause| cause.is_told_first() || self.ways.iter().any(|way| way.cause.as_ref() == Some(cause)))
        };
        self.findings.iter().filter(move |finding| !finding.good && !is_told(finding))
    }

    /// The kind of what does not work: that of a run.
    pub fn kind(&self) -> Option<Kind> {
        (!self.run.works).then_some(Kind::NoCapture)
    }
}

/// Tries all ways to use recant from here.
///
/// # Errors
/// This is inside a run; what is known of agents cannot be read.
pub fn doctor(desk: &Desk, around: &Surroundings<'_>) -> Result<Diagnosis, Error> {
    if let Some(inside) = capture() {
        return Err(super::error::is_inside(inside));
    }
    let here = probe::here();
    let failed = |error| Tried { failed: Some((around.with_remedy)(error)), ..Tried::default() };
    let (store, tried) = match desk.made_store() {
        Ok(store) => {
            let tried = trial::held(desk, &store, around.usual.clone()).unwrap_or_else(failed);
            (Some(store), tried)
        }
        Err(error) => (None, failed(error)),
    };
    let in_place = trial::in_place();
    let ways = ways::all(desk, around, store.as_ref(), &tried, in_place.as_ref())?;
    let mut findings = probe::findings(here.is_whole_root);
    if !here.is_whole_root {
        findings.extend(probe::groups(tried.no_groups.as_deref()));
    }
    let who = if here.is_whole_root { "root" } else { "user" };
    let (run, run_in) = (Works::of(tried.failed.as_ref(), Some(who)), Works::of(in_place.as_ref(), None));
    Ok(Diagnosis { here, ways, run, run_in, findings, coverage: tried.coverage })
}
