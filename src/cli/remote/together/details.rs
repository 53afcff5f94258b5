//! Prints the details of the machines' reports, below the table: paths in the way, paths left out, notes, and until when a commit has
//! to be confirmed.

use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use super::act::Machines;
use super::machine::{Fate, Finished, Row};
use crate::cli::{awaited, text};
use crate::diff::visible;
use crate::engine::job;
use crate::fs::path::Shown;
use crate::remote::host::Target;
use crate::remote::request::Word;
use crate::tree::time;

impl Machines<'_> {
    /// Prints the details, each line with the machine's name.
    pub fn say_details(&self, rows: &[Row]) {
        for (target, row) in self.targets.iter().zip(rows) {
            let report = row.ended.as_ref().map_or(&Value::Null, Finished::json);
            let say = |line: String| self.call.out.say(format_args!("{}: {}", target.name, visible::message(&line)));
            match &row.result {
                Some(Fate::Done) => {
                    named(&report["skipped"], shown).chain(notes(report)).for_each(say);
                    if !self.call.out.is_quiet() {
                        self.displaced(target, report).into_iter().chain(waits(report)).for_each(say);
                    }
                }
                Some(Fate::TakenBack(back)) => {
                    named(&back["skipped"], shown).chain(notes(back)).for_each(say);
                    // Objects that the commit had overwritten are on the tree again.
                    if self.act.verb == job::Verb::Rollback {
                        self.displaced(target, report).into_iter().for_each(say);
                    }
                }
                Some(Fate::Failed) => {
                    // A session that was sent for this alone is gone again: a remedy that looks at it would fail.
                    let remedy = report["remedy"].as_str().filter(|_| !row.sent).map(str::to_owned);
                    named(&report["paths"], said).chain(remedy).for_each(say);
                }
                _ => {}
            }
        }
        self.say_how_to_confirm(rows);
    }

    fn displaced(&self, target: &Target, report: &Value) -> Option<String> {
        let [first, rest @ ..] = &report["displaced"].as_array()?[..] else { return None };
        let others =
            if rest.is_empty() { String::new() } else { format!(" (and {})", text::count(rest.len() as u64, "other path")) };
        let (name, key, path) = (&target.name, &self.act.key, shown(first));
        Some(format!("what was overwritten is kept: recant -H {name} cat {key} {path} --displaced{others}"))
    }

    fn say_how_to_confirm(&self, rows: &[Row]) {
        let waiting = |row: &Row| {
            matches!(row.result, Some(Fate::Done)) && row.ended.as_ref().is_some_and(|ended| ended.json()["confirm"].is_object())
        };
        let names: Vec<&str> =
            self.targets.iter().zip(rows).filter(|(_, row)| waiting(row)).map(|(target, _)| &*target.name).collect();
        if !names.is_empty() {
            self.call.out.note(format_args!("recant -H {} confirm {} lets it stay", names.join(","), self.act.key));
        }
    }
}

/// Paths with their reasons, a line each.
fn named(rows: &Value, path: fn(&Value) -> String) -> impl Iterator<Item = String> {
    let rows = rows.as_array().map_or(&[][..], |rows| &rows[..]);
    let line = |row: &Value| Some(format!("{}: {}", path(&row["path"]), row["why"].as_str()?));
    rows.iter().filter_map(line).collect::<Vec<_>>().into_iter()
}

fn notes(report: &Value) -> impl Iterator<Item = String> {
    let notes = report["notes"].as_array().map_or(&[][..], |notes| &notes[..]);
    notes.iter().filter_map(|note| note.as_str().map(str::to_owned)).collect::<Vec<_>>().into_iter()
}

/// The time until which it has to be confirmed, and who rolls it back then.
fn waits(report: &Value) -> Option<String> {
    let confirm = &report["confirm"];
    let due = confirm["due"].as_str()?;
    let due = time::from_text(due).map_or_else(|| due.to_owned(), awaited::local);
    let by = match confirm["by"].as_str()? {
        "nobody" => "the next recant there that changes something",
        by => by,
    };
    Some(format!("it is rolled back at {due} unless confirmed, by {by}"))
}

/// A path as printed in messages.
fn shown(path: &Value) -> String {
    let word = serde_json::from_value::<Word>(path.clone()).ok().and_then(|word| word.to_os());
    word.map_or_else(|| path.to_string(), |word| Shown(word.as_bytes()).to_string())
}

/// A path of an error, which is printable already.
fn said(path: &Value) -> String {
    path.as_str().map_or_else(|| path.to_string(), str::to_owned)
}
