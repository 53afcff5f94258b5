//! `doctor`, in words.

use super::coverage;
use super::run::usual_passes;
use crate::capture::Finding;
use crate::capture::Network;
use crate::capture::space::probe;
use crate::error::{Error, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::surroundings::surroundings;
use crate::face::{args, figures, find_store};
use crate::session::Coverage;
use crate::verb::doctor::{self as verb, Way};
use crate::verb::{Surroundings, Verdict};

/// The column at which the verdicts begin.
const INDENT: usize = 16;

/// Tries all ways, and reports on them; or prints recant's AppArmor profile.
pub fn doctor(call: &Call, args: &args::Doctor) -> Result<Ended, Error> {
    if args.apparmor {
        let own = std::env::current_exe().map_or_else(|_| "/usr/bin/recant".into(), |path| path.display().to_string());
        probe::apparmor_profile(&own).lines().for_each(|line| call.out.line(line));
        return Ok(Ended::Done);
    }
    let with_remedy = &|error| call.with_remedy(error);
    let found = verb::doctor(call, &Surroundings { agents: surroundings()?, usual: usual_passes(Network::Open), with_remedy })?;
    if call.out.is_text() {
        print(call, &found);
    } else {
        call.out.document(&found);
    }
    Ok(found.kind().map_or(Ended::Done, Ended::With))
}

fn print(call: &Call, found: &verb::Diagnosis) {
    let out = &call.out;
    out.line(figures::filled_after("", &format!("as {}", found.here.words), 0));
    out.line("");
    found.ways.iter().for_each(|way| print_way(call, way));
    let findings: Vec<&Finding> = if out.is_verbose() { found.findings.iter().collect() } else { found.of_note().collect() };
    if !findings.is_empty() {
        out.line("");
    }
    for Finding { name, value, remedy, .. } in findings {
        let remedy = remedy.as_ref().map(|remedy| format!(": {remedy}")).unwrap_or_default();
        out.line(figures::filled_after(name, &format!("{value}{remedy}"), 28));
    }
    if !found.coverage.is_empty() {
        out.line("");
        print_coverage(call, &found.coverage);
    }
}

fn print_way(call: &Call, Way { way, verdict, why, remedy, .. }: &Way) {
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

fn print_coverage(call: &Call, rows: &[Coverage]) {
    let out = &call.out;
    let cwd = find_store::cwd().ok().and_then(|cwd| find_store::absolute(&cwd).ok());
    let from = cwd.map_or_else(|| "here".into(), |cwd| out.place(&cwd));
    out.line(format_args!("what a run from {from} would hold:"));
    if out.is_verbose() {
        return coverage::table(rows, true).iter().for_each(|row| out.line(format_args!("  {row}")));
    }
    for (word, places) in coverage::summary(rows, &|path| out.place(path)) {
        out.line(figures::filled_after(&format!("  {word}"), &places, INDENT));
    }
    out.line(format_args!("{} lists all, with the reasons", command("doctor -v")));
}
