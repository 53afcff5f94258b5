//! `doctor`: says as whom and where recant runs, tries each way to use it, and names for each that does not work what to set. Then what a run
//! from here would hold.

mod stores;
mod ways;

use serde::Serialize;

use crate::capture::run::inside::capture;
use crate::capture::space::probe;
use crate::capture::space::probe::{Finding, Here};
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::text::coverage;
use crate::face::text::run::usual_passes;
use crate::face::{args, figures};
use crate::remedy::Remedy;
use crate::session::run::Coverage;
use crate::verb::run::trial::{self, Tried};
use ways::{Verdict, Way};

#[derive(Serialize)]
struct Document<'a> {
    here: Surroundings<'a>,
    ways: &'a [Way],
    run: Works<'a>,
    run_in: WorksIn<'a>,
    findings: Vec<Row<'a>>,
    coverage: &'a [Coverage],
}

/// Facts about the user that recant runs as, and where.
#[derive(Serialize)]
struct Surroundings<'a> {
    words: String,
    uid: u32,
    name: Option<&'a str>,
    user_namespace: bool,
    outside: Option<u32>,
    container: Option<String>,
    kernel: &'a str,
}

#[derive(Serialize)]
struct Works<'a> {
    works: bool,
    #[serde(rename = "as")]
    who: &'static str,
    why: Option<&'a str>,
    remedy: Option<&'a Remedy>,
}

/// Facts about `run --in`, which needs no namespaces.
#[derive(Serialize)]
struct WorksIn<'a> {
    works: bool,
    why: Option<&'a str>,
    remedy: Option<&'a Remedy>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    value: &'a str,
    good: bool,
    remedy: Option<&'a str>,
}

struct Found {
    here: Here,
    tried: Tried,
    in_place: Option<Error>,
    ways: Vec<Way>,
    findings: Vec<Finding>,
}

/// Tries all ways, and reports on them. Ends with the error that kept the run from working.
pub fn doctor(call: &Call, args: &args::Doctor) -> Result<Ended, Error> {
    if args.apparmor {
        let own = std::env::current_exe().map_or_else(|_| "/usr/bin/recant".into(), |path| path.display().to_string());
        for line in probe::apparmor_profile(&own).lines() {
            call.out.line(line);
        }
        return Ok(Ended::Done);
    }
    if let Some(inside) = capture() {
        return Err(crate::verb::error::is_inside(inside));
    }
    let found = look(call)?;
    if call.out.is_text() {
        found.print(call, call.out.is_verbose());
    } else {
        call.out.document(&found.document());
    }
    Ok(if found.tried.failed.is_none() { Ended::Done } else { Ended::With(Kind::NoCapture) })
}

fn look(call: &Call) -> Result<Found, Error> {
    let here = probe::here();
    let failed = |error| Tried { failed: Some(call.with_remedy(error)), ..Tried::default() };
    let (store, tried) = match call.made_store() {
        Ok(store) => {
            let tried = trial::held(call, &store, usual_passes()).unwrap_or_else(failed);
            (Some(store), tried)
        }
        Err(error) => (None, failed(error)),
    };
    let in_place = trial::in_place();
    let ways = ways::all(call, store, &tried, in_place.as_ref())?;
    let mut findings = probe::findings(here.is_whole_root);
    if !here.is_whole_root {
        findings.extend(probe::groups(tried.no_groups.as_deref()));
    }
    Ok(Found { here, tried, in_place, ways, findings })
}

impl Found {
    fn document(&self) -> Document<'_> {
        let (problem, in_place) = (self.tried.failed.as_ref(), self.in_place.as_ref());
        let rows = self.findings.iter().map(|f| Row {
            name: f.name,
            value: &f.value,
            good: f.good,
            remedy: f.remedy.as_deref().filter(|_| !f.good),
        });
        Document {
            here: surroundings(&self.here),
            ways: &self.ways,
            run: Works {
                works: problem.is_none(),
                who: if self.here.is_whole_root { "root" } else { "user" },
                why: problem.map(Error::message),
                remedy: problem.and_then(Error::advice),
            },
            run_in: WorksIn {
                works: in_place.is_none(),
                why: in_place.map(Error::message),
                remedy: in_place.and_then(Error::advice),
            },
            findings: rows.collect(),
            coverage: &self.tried.coverage,
        }
    }

    fn print(&self, call: &Call, all: bool) {
        let out = &call.out;
        out.line(figures::filled_after("", &format!("as {}", self.here.words()), 0));
        out.line("");
        self.ways.iter().for_each(|way| print_way(call, way));
        let findings: Vec<_> = self.findings.iter().filter(|finding| all || self.is_of_note(finding)).collect();
        if !findings.is_empty() {
            out.line("");
        }
        for Finding { name, value, good, remedy } in findings {
            let remedy = remedy.as_ref().filter(|_| !good).map(|remedy| format!(": {remedy}")).unwrap_or_default();
            out.line(figures::filled_after(name, &format!("{value}{remedy}"), 28));
        }
        if !self.tried.coverage.is_empty() {
            out.line("");
            self.print_coverage(call, all);
        }
    }

    /// True for a condition that is to be told unasked: a bad one of which neither the first line nor a way has told.
    fn is_of_note(&self, finding: &Finding) -> bool {
        // Of a user's, the command comes behind `sudo`.
        let remedy = finding.remedy.as_deref().unwrap_or_default();
        let is_told = |way: &Way| way.remedy.as_ref().is_some_and(|told| told.to_string().contains(remedy));
        !finding.good && ![probe::LINUX, probe::APPARMOR].contains(&finding.name) && !self.ways.iter().any(is_told)
    }

    fn print_coverage(&self, call: &Call, all: bool) {
        let (out, rows) = (&call.out, &self.tried.coverage);
        let cwd = crate::face::place::cwd().ok().and_then(|cwd| crate::face::place::absolute(&cwd).ok());
        let from = cwd.map_or_else(|| "here".into(), |cwd| out.place(&cwd));
        out.line(format_args!("what a run from {from} would hold:"));
        if all {
            return coverage::table(rows, true).iter().for_each(|row| out.line(format_args!("  {row}")));
        }
        for (word, places) in coverage::summary(rows, &|path| out.place(path)) {
            out.line(figures::filled_after(&format!("  {word}"), &places, INDENT));
        }
        out.line(format_args!("{} has all of it, with the reasons", command("doctor -v")));
    }
}

/// The column at which the verdicts begin.
const INDENT: usize = 16;

fn print_way(call: &Call, Way { way, verdict, why, remedy }: &Way) {
    let said = match (verdict, why) {
        (Verdict::Works, None) => "works".to_owned(),
        (Verdict::Works, Some(why)) => format!("works: {why}"),
        (Verdict::Fails, why) => format!("does not work: {}", why.as_deref().unwrap_or("the reason is unknown")),
        (Verdict::NotTried, why) => why.clone().unwrap_or_default(),
    };
    call.out.line(figures::filled_after(way, &call.out.sentence(&said), INDENT));
    if let Some(remedy) = remedy {
        call.out.line(format_args!("{:INDENT$}{}", "", figures::filled_remedy(remedy, INDENT)));
    }
}

fn surroundings(here: &Here) -> Surroundings<'_> {
    Surroundings {
        words: here.words(),
        uid: here.uid,
        name: here.name.as_deref(),
        user_namespace: here.outside.is_some(),
        outside: here.outside.flatten(),
        container: here.container.map(|engine| format!("{engine:?}").to_lowercase()),
        kernel: &here.kernel,
    }
}
