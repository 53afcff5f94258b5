//! Reports the fate of each machine, for people and for programs.

use serde::Serialize;
use serde_json::Value;

use super::act::Machines;
use super::machine::{Fate, Finished, Row};
use crate::cli::problem::Problem;
use crate::cli::{Ended, text};
use crate::diff::visible;
use crate::engine::job;

impl Machines<'_> {
    /// Prints a line a machine, then the details.
    pub fn say(&self, rows: &[Row]) -> Result<Ended, Problem> {
        let (out, verb) = (&self.call.out, self.act.verb);
        let width = self.targets.iter().map(|target| target.name.len()).max().unwrap_or(0);
        let mut worst = 0;
        for (target, row) in self.targets.iter().zip(rows) {
            let (exit, result, why) = told(row, verb);
            worst = worst.max(exit);
            if out.is_text() {
                let why = if why.is_empty() { why } else { format!("  {}", visible::message(&why)) };
                out.line(format_args!("{:<width$}  {result}{why}", target.name));
            } else {
                let report = row.ended.as_ref().map_or(&Value::Null, Finished::json);
                let back = if let Some(Fate::TakenBack(back)) = &row.result { Some(back) } else { None };
                out.document(&Told { host: &target.name, exit, session: &self.act.key, result, why: &why, report, back });
            }
        }
        if out.is_text() {
            self.say_details(rows);
            let done = rows.iter().filter(|row| matches!(row.result, Some(Fate::Done))).count() as u64;
            let hosts = text::count(rows.len() as u64, "host");
            out.note(format_args!("session {}: {} on {done} of {hosts}", self.act.key, verb.past()));
        }
        Ok(if worst == 0 { Ended::Done } else { Ended::Command(worst) })
    }
}

/// `{"schema":2,"host":…,"exit":n,"session":…,"result":…,"why":…,"report":{…},"back":{…}}`, a line a host.
#[derive(Serialize)]
struct Told<'a> {
    host: &'a str,
    exit: u8,
    session: &'a str,
    result: &'a str,
    why: &'a str,
    report: &'a Value,
    /// The report of the rollback, if it was rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    back: Option<&'a Value>,
}

/// Exit status, word and reason for a machine.
fn told(row: &Row, verb: job::Verb) -> (u8, &'static str, String) {
    let ended =
        |or: u8| row.ended.as_ref().and_then(|ended| ended.status.as_ref().ok().copied()).filter(|s| *s != 0).unwrap_or(or);
    let why = || row.ended.as_ref().map_or(String::new(), Finished::why);
    match &row.result {
        Some(Fate::Done) => {
            let report = row.ended.as_ref().map_or(&Value::Null, Finished::json);
            if report.is_null() {
                return (0, verb.past(), "its report is missing or too long".into());
            }
            let paths = report["paths"].as_array().map_or(0, Vec::len) as u64;
            let left = left_out(report);
            let word = if paths == 0 { "nothing to do" } else { verb.past() };
            let count = if paths == 0 { String::new() } else { text::count(paths, "path") };
            (
                row.ended.as_ref().and_then(|ended| ended.status.as_ref().ok().copied()).unwrap_or(0),
                word,
                format!("{count}{left}"),
            )
        }
        Some(Fate::TakenBack(back)) => (1, "taken back", format!("it was done, and another host failed{}", left_out(back))),
        Some(Fate::Stopped) => (1, "not begun", "it was ready, and another host was not: nothing was changed".into()),
        Some(Fate::PassedOver) => (1, "not begun", "another host was not ready: this one was not asked".into()),
        Some(Fate::Failed) => (ended(1), "failed", why()),
        Some(Fate::Untouched) if !row.ready => (1, "failed", why()),
        Some(Fate::Untouched) => (
            1,
            "lost",
            format!("{}; it was not told to go on: nothing is done there, and what was made ready goes by itself", why()),
        ),
        Some(Fate::Unknown(more)) => {
            let more = if more.is_empty() { why() } else { more.clone() };
            (ended(1), "unknown", format!("{more}; recant -H HOST status tells what was done"))
        }
        None => (1, "unknown", why()),
    }
}

/// The number of paths that were left out, if any.
fn left_out(report: &Value) -> String {
    match report["skipped"].as_array().map_or(0, Vec::len) {
        0 => String::new(),
        left => format!(", {left} left out"),
    }
}
