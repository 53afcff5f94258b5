//! `log`: what was done, the newest first. Of paths: what changed them ([`super::touched`]).

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::args;
use super::call::Call;
use super::ended::Ended;
use super::list::{shown, who};
use super::log_filter::{Filter, again};
use super::text::{self, Flexible, Side};
use super::touched;
use crate::diff::shown::cut;
use crate::error::{Error, Kind, command};
use crate::fs::dir::Time;
use crate::fs::path::{AbsPath, is_unfit};
use crate::session::act::Purpose;
use crate::session::id::Id;
use crate::session::log::{self, About, Entry, Log};
use crate::session::store::Store;
use crate::session::undo::{Acts, Deed};
use crate::tree::time;
use crate::verb::want::Want;

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
    act: Option<u64>,
    #[serde(flatten)]
    purpose: &'a Purpose,
    #[serde(flatten)]
    about: &'a About,
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
        let Entry { time, verb, session, generation, result, paths, act, purpose, restore, notes, about } = entry;
        let restore = restore.as_ref();
        Self {
            time: *time,
            verb,
            session,
            generation: *generation,
            result,
            paths: *paths,
            act: *act,
            purpose,
            about,
            restore: restore.map(|asked| RestoreRow { directory: &asked.directory, snapshot: asked.snapshot, only: &asked.only }),
            notes,
        }
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    entries: &'a [Row<'a>],
    unreadable: usize,
}

#[derive(Serialize)]
struct Verified<'a> {
    lines: u64,
    unreadable: &'a [u64],
}

pub fn log(call: &Call, args: &args::Log) -> Result<Ended, Error> {
    let word = match &args.what[..] {
        [word] => word.to_str().filter(|word| !word.contains('/') && !matches!(*word, "." | "..")),
        _ => None,
    };
    if !args.what.is_empty() && word.is_none() {
        return touched::touched(call, args, None);
    }
    if let Some(word) = word.filter(|word| *word != "last" && Path::new(word).symlink_metadata().is_ok())
        && let Some(store) = call.store()?
        && !is_session(store, word)?
    {
        return touched::touched(call, args, None);
    }
    let Some(store) = call.store()? else {
        word.map(|key| call.store_with(key)).transpose()?;
        return if args.verify { verify(call, &Log::default(), "") } else { print(call, &[], &Undone::of(&[]), (None, args)) };
    };
    let file = store.dir.at(b"log.jsonl").to_string();
    let log = log::read(store)?;
    if args.verify {
        return verify(call, &log, &file);
    }
    let of = match word.map(|key| log_key(call, &log.entries, key)).transpose() {
        Ok(of) => of,
        // What no session is called is a path.
        Err(problem) => return touched::touched(call, args, Some(problem)),
    };
    let filter = Filter::of(call, store, args);
    let lines = args.lines.unwrap_or(usize::MAX);
    let twice = if call.out.is_text() { told_by_another(&log.entries) } else { BTreeSet::new() };
    let is_asked = |entry: &&Entry| {
        of.as_ref().is_none_or(|id| entry.session == *id)
            && filter.has_entry(entry)
            && !(entry.verb == "commit" && entry.notes.is_empty() && twice.contains(&(&entry.session, entry.generation)))
    };
    let chosen: Vec<&Entry> = log.entries.iter().rev().filter(is_asked).take(lines).collect();
    let torn = (!log.torn.is_empty()).then_some(Torn { file, lines: &log.torn });
    print(call, &chosen, &Undone::of(&log.entries), (torn, args))
}

/// The commits that have another line, which says what for: of turns that were undone, snapshots that were restored, settings that were edited.
fn told_by_another(entries: &[Entry]) -> BTreeSet<(&Id, u64)> {
    const VERBS: [&str; 4] = ["agent undo ", "agent install ", "agent uninstall ", "snapshot restore "];
    let says_more = |entry: &&Entry| VERBS.iter().any(|verb| entry.verb.starts_with(verb));
    entries.iter().filter(says_more).map(|entry| (&entry.session, entry.generation)).collect()
}

/// True if a session is called by the word. Costs less than to look one up where there is none: that tells which are called alike.
fn is_session(store: &Store, word: &str) -> Result<bool, Error> {
    let (headers, broken) = store.headers()?;
    let is_id = |id: &str| id == word || id.rsplit('-').next() == Some(word);
    Ok(headers.iter().any(|header| is_id(header.id.as_str()) || header.name.as_deref() == Some(word))
        || broken.iter().any(|broken| is_id(&broken.name)))
}

/// Lines of the log that cannot be read.
struct Torn<'a> {
    file: String,
    lines: &'a [u64],
}

/// Numbers of lines for a message; of many the first.
fn numbers(call: &Call, lines: &[u64]) -> String {
    let (first, more) = cut(lines.len(), call.out.limit());
    let mut words: Vec<String> = lines[..first].iter().map(u64::to_string).collect();
    if more > 0 {
        words.push(format!("{} more", text::grouped(more as u64)));
    }
    text::list(&words)
}

/// Tells whether the lines are what they were when the next one was written.
fn verify(call: &Call, log: &Log, file: &str) -> Result<Ended, Error> {
    if let [_, ..] = &log.unfit[..] {
        let what = if log.unfit.len() == 1 { "line" } else { "lines" };
        let lines = numbers(call, &log.unfit);
        let problem = Error::new(Kind::Damaged, format!("{file}: {what} {lines}: not what stood before it when it was written"))
            .with_state("lines before it were changed or removed since, or came from elsewhere");
        return Err(problem.with_remedy(format!("{} lists what can be read", command("log -v"))));
    }
    let Log { lines, torn, .. } = log;
    if call.out.is_text() {
        call.out.line(format_args!("{}, each as it was when the next one was written", text::count(*lines, "line")));
        call.out.note(text::filled("lines that are missing at its end cannot be seen, nor a last line that was replaced"));
    } else {
        call.out.document(&Verified { lines: *lines, unreadable: torn });
    }
    Ok(say_torn(call, file, torn))
}

fn say_torn(call: &Call, file: &str, lines: &[u64]) -> Ended {
    if lines.is_empty() {
        return Ended::Done;
    }
    let count = text::count(lines.len() as u64, "line");
    call.out.warn(format_args!("{file}: {count} cannot be read: {}", numbers(call, lines)));
    Ended::With(Kind::LeftOut)
}

/// The id for `key`. A pruned session is still in the log: its whole id, or the last part of it, names it there.
fn log_key(call: &Call, entries: &[Entry], key: &str) -> Result<Id, Error> {
    let store = call.store_with(key)?;
    let logged = || entries.iter().rev().find(|entry| entry.session.as_str() == key || entry.session.tail() == key);
    match call.find(store, Some(key), Want::Look) {
        Ok(id) => Ok(id),
        Err(problem) => logged().map(|entry| entry.session.clone()).ok_or(problem),
    }
}

/// The lines that tell of acts which were taken back: by the act's number, or by what it sealed, as a restore has two.
struct Undone(Vec<Deed>);

impl Undone {
    fn of(entries: &[Entry]) -> Self {
        let acts = Acts::of(entries.iter(), &[]);
        Self(acts.all.iter().filter(|deed| !deed.acted.is_undo() && !acts.stands(deed)).cloned().collect())
    }

    fn has(&self, entry: &Entry) -> bool {
        self.0.iter().any(|deed| match entry.act {
            Some(n) => deed.n == n,
            None => deed.generation > 0 && (&deed.session, deed.generation) == (&entry.session, entry.generation),
        })
    }
}

fn print(call: &Call, entries: &[&Entry], undone: &Undone, (torn, args): (Option<Torn<'_>>, &args::Log)) -> Result<Ended, Error> {
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        let limit = if args.lines.is_some() { entries.len() } else { call.out.limit() };
        let (first, more) = cut(entries.len(), limit);
        let me = rustix::process::geteuid().as_raw();
        let user = |uid: Option<u32>| uid.filter(|uid| *uid != me).map(|uid| format!("user {uid}")).unwrap_or_default();
        let mut rows: Vec<[String; 8]> = entries[..first]
            .iter()
            .map(|entry| {
                let agent = who(entry.agent());
                [
                    text::time(entry.time, true),
                    entry.verb.clone(),
                    entry.session.tail().to_owned(),
                    text::count(entry.paths, "path"),
                    if undone.has(entry) { "undone".into() } else { entry.result.clone() },
                    if agent.is_empty() { user(entry.about.uid) } else { agent },
                    entry.about.name.clone().unwrap_or_default(),
                    entry.about.command.as_deref().filter(|of| *of != entry.verb).map(shown).unwrap_or_default(),
                ]
            })
            .collect();
        let (path, words) = (Flexible::path, Flexible::words);
        let width = call.out.width();
        text::fit(&mut rows, width, &[words(7, 8), path(6, 6), path(5, 8), words(4, 8), path(5, 5), words(7, 4), path(6, 4)]);
        let left = Side::Left;
        let sides = [left, left, left, Side::Right, left, left, left, left];
        for (line, entry) in text::table(sides, &rows).zip(entries) {
            call.out.line(text::within(&line, width));
            // Its paths are already quoted where needed.
            let fit = |note: &String| if note.contains(is_unfit) { shown(note) } else { note.clone() };
            entry.purpose.reason.iter().for_each(|reason| call.out.line(format_args!("  {reason}")));
            entry.notes.iter().for_each(|note| call.out.line(format_args!("  {}", fit(note))));
        }
        if more > 0 {
            let of = args.what.first().and_then(|id| id.to_str()).map(|id| format!(" {id}")).unwrap_or_default();
            call.out.line(text::more(more, &again(args, &of)));
        }
        if entries.is_empty() && args.lines != Some(0) {
            let is_filtered = args.since.is_some() || args.agent.is_some();
            let none = "nothing was done in this project yet; recant log --all is of all";
            call.out.note(if is_filtered { "nothing was done that fits" } else { none });
        }
    } else {
        let entries: Vec<Row<'_>> = entries.iter().map(|entry| Row::of(entry)).collect();
        call.out.document(&Whole { entries: &entries, unreadable: torn.as_ref().map_or(0, |torn| torn.lines.len()) });
    }
    Ok(torn.map_or(Ended::Done, |torn| say_torn(call, &torn.file, torn.lines)))
}
