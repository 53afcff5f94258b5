//! `doctor`: tells if `run` works here, else why not and which switch to set; and what would be held.

use serde::Serialize;

use super::problem::Problem;
use super::{Call, Ended, args, coverage, run, snapshot_run};
use crate::capture::inside::capture;
use crate::capture::probe::{self, Finding};
use crate::error::Kind;
use crate::session::run::Coverage;

/// `{"schema":2,"run":{…},"run_in":{…},"findings":[…],"coverage":[…]}`.
#[derive(Serialize)]
struct Document<'a> {
    run: Works<'a>,
    run_in: WorksIn<'a>,
    findings: Vec<Row<'a>>,
    coverage: &'a [Coverage],
}

#[derive(Serialize)]
struct Works<'a> {
    works: bool,
    #[serde(rename = "as")]
    who: &'static str,
    why: Option<&'a str>,
    remedy: Option<&'a str>,
}

/// Facts about `run --in`, which needs no namespaces.
#[derive(Serialize)]
struct WorksIn<'a> {
    works: bool,
    why: Option<&'a str>,
    remedy: Option<&'a str>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    value: &'a str,
    good: bool,
    remedy: Option<&'a str>,
}

/// Tries a run that changes nothing, and reports on it. Ends with the error that kept the run from working.
pub fn doctor(call: &Call, args: &args::Doctor) -> Result<Ended, Problem> {
    if args.apparmor {
        let own = std::env::current_exe().map_or_else(|_| "/usr/bin/recant".into(), |path| path.display().to_string());
        for line in probe::apparmor_profile(&own).lines() {
            call.out.line(line);
        }
        return Ok(Ended::Done);
    }
    if let Some(inside) = capture() {
        return Err(super::is_inside(inside));
    }
    let tried = run::attempt_nothing(call)?;
    let mut findings = probe::findings(tried.root);
    if !tried.root {
        findings.extend(probe::groups(tried.no_groups.as_deref()));
    }
    let problem = tried.problem.as_ref();
    let in_place = snapshot_run::attempt_nothing()?;
    if call.out.is_text() {
        print(call, &tried, in_place.as_ref(), &findings);
    } else {
        let rows = findings.iter().map(|f| Row {
            name: f.name,
            value: &f.value,
            good: f.good,
            remedy: f.remedy.as_deref().filter(|_| !f.good),
        });
        call.out.document(&Document {
            run: Works {
                works: problem.is_none(),
                who: who(tried.root),
                why: problem.map(|problem| &*problem.message),
                remedy: problem.and_then(|problem| problem.remedy.as_deref()),
            },
            run_in: WorksIn {
                works: in_place.is_none(),
                why: in_place.as_ref().map(|problem| &*problem.message),
                remedy: in_place.as_ref().and_then(|problem| problem.remedy.as_deref()),
            },
            findings: rows.collect(),
            coverage: &tried.coverage,
        });
    }
    Ok(if problem.is_none() { Ended::Done } else { Ended::With(Kind::NoCapture) })
}

fn who(root: bool) -> &'static str {
    if root { "root" } else { "user" }
}

fn print(call: &Call, tried: &run::Tried, in_place: Option<&Problem>, findings: &[Finding]) {
    match &tried.problem {
        None => call.out.line(format_args!("recant run works here, as {}", who(tried.root))),
        Some(problem) => {
            call.out.line(format_args!("recant run does not work here, as {}: {}", who(tried.root), problem.message));
            problem.remedy.iter().for_each(|remedy| call.out.line(format_args!("  {remedy}")));
        }
    }
    match (in_place, &tried.problem) {
        (None, None) => call.out.line("recant run --in DIR works here, too: on the real files, between two snapshots"),
        (None, Some(_)) => call.out.line("recant run --in DIR works here instead: on the real files, between two snapshots"),
        (Some(problem), _) => {
            call.out.line(format_args!("recant run --in does not work here: {}", problem.message));
            problem.remedy.iter().for_each(|remedy| call.out.line(format_args!("  {remedy}")));
        }
    }
    call.out.line("");
    for finding in findings {
        let remedy = finding.remedy.as_ref().filter(|_| !finding.good).map(|remedy| format!(": {remedy}")).unwrap_or_default();
        call.out.line(format_args!("{:<26}  {}{remedy}", finding.name, finding.value));
    }
    if !tried.coverage.is_empty() {
        call.out.line("");
        call.out.line(format_args!("what a run from {} would hold:", tried.cwd));
    }
    coverage::table(&tried.coverage, true).iter().for_each(|row| call.out.line(format_args!("  {row}")));
}
