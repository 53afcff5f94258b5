//! `list`: sessions of this project or of all, the newest first, a line each. Reads headers, the changes of commands that
//! run and, if a path is given, those of all.

use std::collections::HashMap;

use serde::Serialize;

use super::call::Call;
use super::ended::Ended;
use super::said;
use super::text::{self, Flexible, Side};
use super::{args, place};
use crate::diff::shown::cut;
use crate::error::{Error, Kind, command};
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::session::by::By;
use crate::session::change::Changes;
use crate::session::header::{Checkpoint, Header, Left, Origin};
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::run::Failed;
use crate::session::store::{Broken, Store};
use crate::tree::time;
use crate::verb::scope::Scope;
use crate::verb::standing::{Standing, cut_off};

/// A session as a listing shows it.
#[derive(Debug, Serialize)]
pub struct SessionRow<'a> {
    id: &'a Id,
    name: Option<&'a str>,
    status: &'static str,
    imported: bool,
    /// Its run has ended and waits to be collected.
    ended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Failed>,
    /// Its content may not have reached the disk.
    unsynced: bool,
    interrupted: bool,
    /// The paths where an interrupted operation could not be taken back.
    left: &'a [Left],
    origin: Origin,
    #[serde(with = "time")]
    created: Time,
    #[serde(with = "time")]
    changed: Time,
    #[serde(with = "time::option")]
    discarded: Option<Time>,
    command: Option<&'a str>,
    /// The agent that had the command run, or began the session.
    by: Option<&'a By>,
    changes: u64,
    #[serde(rename = "in")]
    inside: u64,
    ever_in: u64,
    generation: u64,
    held_bytes: u64,
    checkpoint: Checkpoint,
    checkpoint_bytes: u64,
    displaced_bytes: u64,
}

impl<'a> SessionRow<'a> {
    /// Makes the row of a header and its standing.
    pub fn new(header: &'a Header, standing: Standing) -> Self {
        Self {
            id: &header.id,
            name: header.name.as_deref(),
            status: standing.word,
            imported: standing.imported,
            ended: standing.ended,
            failed: standing.failed,
            unsynced: standing.unsynced,
            interrupted: standing.interrupted,
            left: &header.left,
            origin: header.origin,
            created: header.created,
            changed: header.changed,
            discarded: header.discarded,
            command: header.command.as_deref(),
            by: header.by.as_ref(),
            changes: header.counts.changes,
            inside: header.counts.inside,
            ever_in: header.counts.ever_in,
            generation: header.generation,
            held_bytes: header.sizes.held,
            checkpoint: header.checkpoint,
            checkpoint_bytes: header.sizes.checkpoint,
            displaced_bytes: header.sizes.displaced,
        }
    }
}

/// A session that cannot be read.
#[derive(Debug, Serialize)]
pub struct Damaged<'a> {
    pub id: &'a str,
    pub why: &'a str,
}

impl<'a> Damaged<'a> {
    /// Warns of each damaged session, and returns them all.
    pub fn say_all(call: &Call, broken: &'a [Broken]) -> Vec<Self> {
        for session in broken {
            call.out.warn(format_args!("{}: the session is damaged: {}", shown(&session.name), session.why));
        }
        if broken.iter().any(|session| Id::parse(&session.name).is_some()) {
            let prune = command("prune --sessions ID");
            call.out.note(format_args!("{prune} drops a damaged session; with --dry-run it tells what is lost with it"));
        }
        broken.iter().map(|session| Self { id: &session.name, why: &session.why }).collect()
    }
}

/// A name made safe for a terminal.
pub fn shown(name: &str) -> String {
    crate::fs::path::Shown(name.as_bytes()).to_string()
}

#[derive(Serialize)]
struct Whole<'a> {
    /// The project of the sessions; `null` for those of all projects.
    project: Option<&'a AbsPath>,
    sessions: &'a [SessionRow<'a>],
    /// The number that `--limit` left out.
    more: usize,
    /// The number of sessions of other projects that fit.
    elsewhere: usize,
    damaged: &'a [Damaged<'a>],
}

struct Listed {
    header: Header,
    standing: Standing,
    project: Option<AbsPath>,
}

/// The result of a search.
#[derive(Default)]
struct Found {
    listed: Vec<Listed>,
    elsewhere: usize,
    /// The number of sessions in the store, whatever was asked for.
    all: usize,
    broken: Vec<Broken>,
}

pub fn list(call: &Call, args: &args::List) -> Result<Ended, Error> {
    let scope = scope(call, args)?;
    let mut found = match call.store()? {
        None => Found::default(),
        Some(store) => find(call, store, args, &scope)?,
    };
    let damaged = Damaged::say_all(call, &found.broken);
    let limit = args.limit.unwrap_or(if call.out.is_text() { call.out.limit() } else { 0 });
    let (shown, more) = if limit == 0 { (found.listed.len(), 0) } else { cut(found.listed.len(), limit) };
    found.listed.truncate(shown);
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(call, &found.listed, scope.project.is_none());
        if more > 0 {
            call.out.line(text::more(more, &again(args)));
        }
        say(call, args, &scope, &found);
    } else {
        let rows: Vec<SessionRow> = found.listed.iter().map(|l| SessionRow::new(&l.header, l.standing)).collect();
        let project = scope.project.as_ref();
        let whole = Whole { project, sessions: &rows, more, elsewhere: found.elsewhere, damaged: &damaged };
        call.out.document(&whole);
    }
    Ok(if damaged.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// The scope of the listing: this project, unless `--all` or a path asks for others.
fn scope(call: &Call, args: &args::List) -> Result<Scope, Error> {
    if args.all || args.path.is_some() {
        return Ok(Scope::everywhere());
    }
    // The project is unknown: nothing is left out.
    Ok(Scope::of(call).unwrap_or_else(|_| Scope::everywhere()))
}

/// Finds the sessions, newest first. Reads headers alone if no path is given, and the changes of commands that run.
fn find(call: &Call, store: &Store, args: &args::List, scope: &Scope) -> Result<Found, Error> {
    let (headers, broken) = store.headers()?;
    let journaled = cut_off(store, store.journaled()?);
    let path = args.path.as_deref().map(|path| place::named(path, &Changes::default())).transpose()?;
    let mut found = Found { all: headers.len(), broken, ..Found::default() };
    for header in headers.into_iter().rev() {
        // What runs is as new as its command.
        if args.since.as_ref().is_some_and(|since| header.changed.s < since.s) && !header.uncollected {
            continue;
        }
        let standing = match Standing::of(store, &header, &journaled) {
            Ok(standing) => standing,
            Err(problem) => {
                found.broken.push(Broken { name: header.id.to_string(), why: problem.message().to_owned() });
                continue;
            }
        };
        if !args.status.is_empty() && !args.status.iter().any(|status| status.word() == standing.word) {
            continue;
        }
        let so_far = call.listed_so_far(store, &header);
        let changed = so_far.as_ref().map_or(header.changed, |session| session.header.changed);
        if args.since.as_ref().is_some_and(|since| changed.s < since.s) {
            continue;
        }
        if let Some(path) = &path {
            let opened = so_far.as_ref().map_or_else(|| store.session(&header.id)?.changes(), Session::changes);
            match opened {
                Ok(changes) if changes.under(path).is_empty() => continue,
                Ok(_) => {}
                Err(error) => {
                    found.broken.push(Broken { name: header.id.to_string(), why: error.to_string() });
                    continue;
                }
            }
        }
        // A session of an unknown directory may be of this project.
        if scope.tells(store, &header) == Some(false) {
            found.elsewhere += 1;
            continue;
        }
        let project = if scope.project.is_none() { scope.project_of(store, &header) } else { None };
        let header = so_far.map_or(header, |session| session.header);
        found.listed.push(Listed { header, standing, project });
    }
    Ok(found)
}

fn again(args: &args::List) -> String {
    command(format_args!("list{} --limit 0", filters(args)))
}

fn filters(args: &args::List) -> String {
    let mut text = String::new();
    if args.all {
        text.push_str(" --all");
    }
    if !args.status.is_empty() {
        let words: Vec<&str> = args.status.iter().map(|status| status.word()).collect();
        text.push_str(&format!(" --status {}", words.join(",")));
    }
    if let Some(since) = &args.since {
        text.push_str(&format!(" --since {}", since.text));
    }
    if let Some(path) = &args.path {
        text.push_str(&format!(" --path {}", shown(&path.to_string_lossy())));
    }
    text
}

/// Says what the lines do not: that there are none, and the number elsewhere.
fn say(call: &Call, args: &args::List, scope: &Scope, found: &Found) {
    let Found { listed, elsewhere, all, broken } = found;
    let fits = if args.status.is_empty() && args.since.is_none() { "" } else { " that fit" };
    match (&scope.project, listed.is_empty()) {
        (_, true) if *all == 0 && broken.is_empty() => call.out.note("no sessions"),
        (_, true) if *all == 0 => {}
        (Some(here), true) => {
            let none = format!("no sessions{fits} in {}", call.out.place(here));
            if *elsewhere == 0 {
                call.out.note(none);
            } else {
                let filters = filters(args);
                call.out.note(format_args!(
                    "{none}; {} elsewhere: {}",
                    text::grouped(*elsewhere as u64),
                    command(format_args!("list --all{filters}"))
                ));
            }
        }
        (None, true) => call.out.note("no sessions that fit"),
        (Some(_), false) if *elsewhere > 0 => {
            let filters = filters(args);
            let elsewhere = text::grouped(*elsewhere as u64);
            call.out
                .note(format_args!("{elsewhere} more{fits} in other projects: {}", command(format_args!("list --all{filters}"))));
        }
        _ => {}
    }
}

/// Prints the table; with directories if the sessions are of several projects.
fn print(call: &Call, listed: &[Listed], directories: bool) {
    if listed.is_empty() {
        return;
    }
    let has_name = listed.iter().any(|l| l.header.name.is_some());
    let has_agent = listed.iter().any(|l| l.header.by.is_some());
    let title = |on: bool, word: &str| if on { word.to_owned() } else { String::new() };
    let title = [
        "ID".into(),
        "STATUS".into(),
        "CHANGES".into(),
        "SIZE".into(),
        "CHANGED".into(),
        title(directories, "PROJECT"),
        title(has_name, "NAME"),
        title(has_agent, "AGENT"),
        "COMMAND".into(),
    ];
    let calls = calls(listed.iter().map(|l| &l.header.id));
    let rows = listed.iter().map(|Listed { header, standing, project }| {
        [
            calls(&header.id),
            said::standing(*standing),
            text::grouped(header.counts.changes),
            text::bytes(header.sizes.all()),
            text::day(header.changed),
            project.as_ref().map(|project| call.out.place(project)).unwrap_or_default(),
            header.name.clone().unwrap_or_default(),
            who(header.by.as_ref()),
            shown(header.command.as_deref().unwrap_or_default()),
        ]
    });
    let mut rows: Vec<[String; 9]> = std::iter::once(title).chain(rows).collect();
    let (path, words) = (Flexible::path, Flexible::words);
    let (status, project, name, agent, command) = (1, 5, 6, 7, 8);
    let usual = [words(command, 20), path(project, 14), path(name, 12), words(command, 8), path(agent, 8), path(project, 8)];
    // Where that is not enough: down to the titles, and a status to its first words.
    let narrow =
        [path(name, 8), path(project, 7), words(command, 7), path(agent, 5), words(status, 11), path(name, 4), words(status, 9)];
    let width = call.out.width();
    text::fit(&mut rows, width, &[&usual[..], &narrow].concat());
    let (left, right) = (Side::Left, Side::Right);
    let sides = [left, left, right, right, left, left, left, left, left];
    let mut lines = text::table(sides, &rows).map(|line| text::within(&line, width));
    call.out.styled(anstyle::Style::new().bold(), lines.next().unwrap_or_default());
    lines.for_each(|line| call.out.line(line));
}

/// An agent and its turn, as a line shows them; empty for a person.
pub fn who(by: Option<&By>) -> String {
    by.map(ToString::to_string).unwrap_or_default()
}

/// Names these sessions: each by the last part of its id, unless another has the same.
fn calls<'a>(ids: impl Iterator<Item = &'a Id>) -> impl Fn(&Id) -> String {
    let mut times: HashMap<String, usize> = HashMap::new();
    ids.for_each(|id| *times.entry(id.tail().into()).or_default() += 1);
    move |id| if times.get(id.tail()) == Some(&1) { id.tail().into() } else { id.to_string() }
}

/// The status of a session in a question, with where it came from.
pub fn status(header: &Header) -> String {
    let imported = if header.imported.is_some() { ", imported" } else { "" };
    format!("{}{imported}", header.status().word().replace('_', " "))
}

/// Lines of a preview: name, number of changes, size and command of the first `most` sessions; then the number of the others, with the
/// command that lists them.
pub fn heads(call: &Call, headers: &[&Header], most: usize, whole: &str) -> Vec<String> {
    let (first, more) = cut(headers.len(), most);
    let calls = calls(headers.iter().map(|header| &header.id));
    let row = |header: &&Header| {
        [
            calls(&header.id),
            status(header),
            text::count(header.counts.changes, "change"),
            text::bytes(header.sizes.all()),
            text::day(header.changed),
            header.name.clone().unwrap_or_default(),
            shown(header.command.as_deref().unwrap_or_default()),
        ]
    };
    let mut rows: Vec<[String; 7]> = headers[..first].iter().map(row).collect();
    let (path, words) = (Flexible::path, Flexible::words);
    text::fit(&mut rows, call.out.width().saturating_sub(2), &[words(6, 12), path(5, 8), words(6, 5)]);
    let sides = [Side::Left, Side::Left, Side::Right, Side::Right, Side::Left, Side::Left, Side::Left];
    let mut lines: Vec<String> = text::table(sides, &rows).collect();
    if more > 0 {
        lines.push(text::more(more, whole));
    }
    lines
}
