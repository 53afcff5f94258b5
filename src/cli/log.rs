//! `log`: what was done, the newest first.

use serde::Serialize;

use super::args;
use super::list::shown;
use super::problem::Problem;
use super::shown::cut;
use super::text::{self, Flexible, Side};
use super::which::Want;
use super::{Call, Ended};
use crate::error::{Kind, command};
use crate::fs::dir::Time;
use crate::fs::path::{AbsPath, is_unfit};
use crate::session::id::Id;
use crate::session::log::{self, Entry};
use crate::tree::time;

/// An entry in JSON: docs/json.md.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(with = "time")]
    time: Time,
    verb: &'a str,
    session: &'a Id,
    generation: u64,
    result: &'a str,
    paths: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    restore: Option<RestoreRow<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
}

#[derive(Serialize)]
struct RestoreRow<'a> {
    directory: &'a AbsPath,
    snapshot: u64,
    only: &'a [AbsPath],
}

impl<'a> Row<'a> {
    fn of(entry: &'a Entry) -> Self {
        let Entry { time, verb, session, generation, result, paths, restore, notes, .. } = entry;
        let restore = restore.as_ref();
        Self {
            time: *time,
            verb,
            session,
            generation: *generation,
            result,
            paths: *paths,
            restore: restore.map(|asked| RestoreRow { directory: &asked.directory, snapshot: asked.snapshot, only: &asked.only }),
            notes,
        }
    }
}

/// `{"schema":2,"entries":[…],"unreadable":n}`.
#[derive(Serialize)]
struct Whole<'a> {
    entries: &'a [Row<'a>],
    unreadable: usize,
}

/// Shows the log.
pub fn log(call: &Call, args: &args::Log) -> Result<Ended, Problem> {
    let Some(store) = call.store()? else {
        args.id.as_deref().map(|key| call.store_with(key)).transpose()?;
        return print(call, &[], None, args);
    };
    let log::Log { entries, torn, .. } = log::read(store)?;
    let bad = torn.len();
    let of = args.id.as_deref().map(|key| log_key(call, &entries, key)).transpose()?;
    let asked = args.lines.filter(|_| !args.all);
    let lines = asked.unwrap_or(usize::MAX);
    let chosen: Vec<&Entry> =
        entries.iter().rev().filter(|entry| of.as_ref().is_none_or(|id| entry.session == *id)).take(lines).collect();
    let torn = (bad > 0).then(|| Torn { file: store.dir.at(b"log.jsonl").to_string(), lines: bad });
    print(call, &chosen, torn, args)
}

/// Lines of the log that cannot be read.
struct Torn {
    file: String,
    lines: usize,
}

/// The id for `key`. A pruned session is still in the log: its whole id, or the last part of it, names it there.
fn log_key(call: &Call, entries: &[Entry], key: &str) -> Result<Id, Problem> {
    let store = call.store_with(key)?;
    let logged = || entries.iter().rev().find(|entry| entry.session.as_str() == key || entry.session.tail() == key);
    match call.find(store, Some(key), Want::Look) {
        Ok(id) => Ok(id),
        Err(problem) => logged().map(|entry| entry.session.clone()).ok_or(problem),
    }
}

fn print(call: &Call, entries: &[&Entry], torn: Option<Torn>, args: &args::Log) -> Result<Ended, Problem> {
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        let all = args.all || args.lines.is_some();
        let (first, more) = cut(entries.len(), call.out.limit(all));
        let mut rows: Vec<[String; 5]> = entries[..first]
            .iter()
            .map(|entry| {
                [
                    text::time(entry.time, true),
                    entry.verb.clone(),
                    entry.session.tail().to_owned(),
                    text::count(entry.paths, "path"),
                    entry.result.clone(),
                ]
            })
            .collect();
        text::fit(&mut rows, call.out.width(), &[Flexible::words(4, 8)]);
        let sides = [Side::Left, Side::Left, Side::Left, Side::Right, Side::Left];
        for (line, entry) in text::table(sides, &rows).zip(entries) {
            call.out.line(line);
            // Its paths are already quoted where needed.
            let fit = |note: &String| if note.contains(is_unfit) { shown(note) } else { note.clone() };
            entry.notes.iter().for_each(|note| call.out.line(format_args!("  {}", fit(note))));
        }
        if more > 0 {
            let of = args.id.as_deref().map(|id| format!(" {id}")).unwrap_or_default();
            call.out.line(text::more(more, &command(format_args!("log{of} --all"))));
        }
        if entries.is_empty() && args.lines != Some(0) {
            call.out.note("nothing was done yet");
        }
    } else {
        let entries: Vec<Row<'_>> = entries.iter().map(|entry| Row::of(entry)).collect();
        call.out.list(&Whole { entries: &entries, unreadable: torn.as_ref().map_or(0, |torn| torn.lines) }, || &entries);
    }
    if let Some(Torn { file, lines }) = torn {
        call.out.warn(format_args!("{file}: {} cannot be read", text::count(lines as u64, "line")));
        return Ok(Ended::With(Kind::LeftOut));
    }
    Ok(Ended::Done)
}
