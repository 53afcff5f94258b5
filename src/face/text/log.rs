//! `log`: what was done, a line each, the newest first. Of paths: what changed them ([`super::path_log`]).

use std::path::{Path, PathBuf};

use super::fact::places;
use super::list::shown;
use super::path_log::again;
use super::path_log::filter;
use super::path_log::touched;
use crate::compare::cut;
use crate::error::{Error, Kind, command};
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::fs::is_unfit;
use crate::session::Log;
use crate::verb::log::{self as verb, Asked, Of, Row};

pub fn log(call: &Call, args: &args::Log) -> Result<Ended, Error> {
    if args.verify {
        return verify(call, &verb::verify(call)?);
    }
    let key = key(call, &args.what)?;
    if key.is_none() && !args.what.is_empty() {
        return touched(call, args, None);
    }
    let of = match key {
        Some(key) => Of::Session(key),
        None if args.all => Of::All,
        None => Of::Project,
    };
    let (most, once) = (args.lines.unwrap_or(usize::MAX), call.out.is_text());
    let logged = match verb::log(call, &Asked { of, filter: filter(args), most, once }) {
        // What no session is called is a path.
        Err(problem) if key.is_some() && problem.io().is_none() && call.store()?.is_some() => {
            return touched(call, args, Some(problem));
        }
        logged => logged?,
    };
    if call.out.is_text() {
        print(call, args, &logged.entries);
    } else {
        call.out.document(&logged);
    }
    Ok(say_torn(call, &logged.log))
}

/// The word that can mean a session; `None` if paths are meant, or nothing.
fn key<'w>(call: &Call, what: &'w [PathBuf]) -> Result<Option<&'w str>, Error> {
    let [word] = what else { return Ok(None) };
    let word = word.to_str().filter(|word| !word.contains('/') && !matches!(*word, "." | ".."));
    if let Some(word) = word.filter(|word| *word != "last" && Path::new(word).symlink_metadata().is_ok())
        && let Some(store) = call.store()?
        && !verb::is_session(store, word)?
    {
        return Ok(None);
    }
    Ok(word)
}

/// Tells whether the lines are what they were when the next one was written.
fn verify(call: &Call, log: &Log) -> Result<Ended, Error> {
    if !log.unfit.is_empty() {
        let what = if log.unfit.len() == 1 { "line" } else { "lines" };
        let (file, lines) = (&log.file, numbers(call, &log.unfit));
        let problem = Error::new(Kind::Damaged, format!("{file}: {what} {lines}: does not follow the line before it"))
            .with_state("lines before it were changed or removed since they were written, or come from elsewhere");
        return Err(problem.with_remedy(command("log -v") + " lists what can be read"));
    }
    if call.out.is_text() {
        call.out.line(format_args!("{}, none changed after the next one was written", figures::count(log.lines, "line")));
        call.out.note(figures::filled("this cannot detect lines removed from the end, or a replaced last line"));
    } else {
        call.out.document(log);
    }
    Ok(say_torn(call, log))
}

/// Warns of the lines that cannot be read.
fn say_torn(call: &Call, Log { file, torn, .. }: &Log) -> Ended {
    if torn.is_empty() {
        return Ended::Done;
    }
    let count = figures::count(torn.len() as u64, "line");
    call.out.warn(format_args!("{file}: {count} cannot be read: {}", numbers(call, torn)));
    Ended::With(Kind::LeftOut)
}

/// Numbers of lines for a message; of many the first.
fn numbers(call: &Call, lines: &[u64]) -> String {
    let (first, more) = cut(lines.len(), call.out.limit());
    let mut words: Vec<String> = lines[..first].iter().map(u64::to_string).collect();
    if more > 0 {
        words.push(format!("{} more", figures::grouped(more as u64)));
    }
    figures::list(&words)
}

fn print(call: &Call, args: &args::Log, entries: &[Row]) {
    call.out.page(call.config.pager.value.as_deref());
    let limit = if args.lines.is_some() { entries.len() } else { call.out.limit() };
    let (first, more) = cut(entries.len(), limit);
    let me = rustix::process::geteuid().as_raw();
    let mut rows: Vec<[String; 8]> = entries[..first].iter().map(|of| row(of, me)).collect();
    let (path, words) = (Flexible::path, Flexible::words);
    let width = call.out.width();
    if figures::fit(&mut rows, width, &[words(7, 8)]) > 0 {
        rows.iter_mut().zip(entries).for_each(|(row, of)| row[0] = figures::time(of.entry.time, false));
        figures::fit(&mut rows, width, &[path(6, 12), path(5, 8), words(4, 8), path(5, 5), words(7, 4), path(6, 4)]);
    }
    let left = Side::Left;
    let sides = [left, left, left, Side::Right, left, left, left, left];
    for (line, Row { entry, .. }) in figures::table(sides, &rows).zip(entries) {
        call.out.line(figures::within(&line, width));
        // Its paths are already quoted where needed.
        let fit = |note: &String| if note.contains(is_unfit) { shown(note) } else { note.clone() };
        if !entry.at.is_empty() {
            call.out.line(format_args!("  {}", places(&call.out, &entry.at)));
        }
        entry.purpose.reason.iter().for_each(|reason| call.out.line(format_args!("  {reason}")));
        if !entry.purpose.policy.is_empty() {
            call.out.line(format_args!("  agent.policy: {}", entry.purpose.policy.join(", ")));
        }
        entry.notes.iter().for_each(|note| call.out.line(format_args!("  {}", fit(note))));
    }
    if more > 0 {
        let of = args.what.first().and_then(|id| id.to_str()).map(|id| format!(" {id}")).unwrap_or_default();
        call.out.line(figures::more(more, &again(args, &of)));
    }
    if entries.is_empty() && args.lines != Some(0) {
        let is_filtered = args.since.is_some() || args.agent.is_some();
        let none = "no act in this project yet; recant log --all lists all projects";
        call.out.note(if is_filtered { "nothing was done that matches" } else { none });
    }
}

/// The columns of an entry. A user other than `me` stands where an agent would.
fn row(Row { entry, is_undone }: &Row, me: u32) -> [String; 8] {
    let user = entry.about.uid.filter(|uid| *uid != me).map(|uid| format!("user {uid}"));
    [
        figures::time(entry.time, true),
        entry.verb.clone(),
        entry.session.tail().to_owned(),
        figures::count(entry.paths, "path"),
        if *is_undone { "undone".into() } else { entry.result.clone() },
        entry.agent().map(ToString::to_string).or(user).unwrap_or_default(),
        entry.about.name.clone().unwrap_or_default(),
        entry.about.command.as_deref().filter(|of| *of != entry.verb).map(shown).unwrap_or_default(),
    ]
}
