//! `steps`: the steps of a session as a tree, the newest first, a line each. Changes nothing; a command that runs in the session is shown too.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::args;
use super::brief::{self, List, Place, is_default};
use super::call::Call;
use super::ended::Ended;
use super::graph::{self, Row as Line};
use super::list::who;
use super::text::{self, Flexible, Side};
use crate::diff::shown::{cut, cut_off};
use crate::error::{Error, command};
use crate::fs::dir::Time;
use crate::fs::path::{AbsPath, Shown};
use crate::session::by::By;
use crate::session::change::Sort;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::run::{Arg, Ending, Run};
use crate::session::steps::{Step, StepList};
use crate::session::store::Store;
use crate::tree::time;
use crate::verb::collect;
use crate::verb::list::SessionRow;
use crate::verb::standing::{Standing, is_held};
use crate::verb::want::Want;

#[derive(Serialize)]
struct Row<'a> {
    n: u32,
    /// The step that it stands on; 0 is the tree as it was.
    on: u32,
    head: bool,
    argv: &'a [Arg],
    cwd: &'a AbsPath,
    uid: u32,
    by: Option<&'a By>,
    #[serde(with = "time")]
    started: Time,
    took_ns: Option<u64>,
    /// `null` if recant was killed before the end of the command.
    ending: Option<Ending>,
    unsynced: bool,
    changes: BTreeMap<Sort, u64>,
    /// The paths that left the session at it.
    #[serde(skip_serializing_if = "is_default")]
    left: u64,
    held_bytes: u64,
}

/// A command that runs in the session.
#[derive(Serialize)]
struct Running<'a> {
    /// The number of the step that it makes if it changes something.
    n: u32,
    on: u32,
    argv: &'a [Arg],
    cwd: &'a AbsPath,
    uid: u32,
    by: Option<&'a By>,
    #[serde(with = "time")]
    started: Time,
}

#[derive(Serialize)]
struct Whole<'a> {
    session: SessionRow<'a>,
    head: u32,
    steps: &'a [Row<'a>],
    running: Option<Running<'a>>,
}

/// A step in a page. What is usual is left out: it stands on the one before it, and ended with 0.
#[derive(Serialize)]
struct BriefRow {
    n: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<u32>,
    command: String,
    #[serde(flatten)]
    ending: Option<Ending>,
    #[serde(skip_serializing_if = "is_default")]
    cut_off: bool,
    #[serde(skip_serializing_if = "is_default")]
    unsynced: bool,
    /// Without those that are 0.
    #[serde(flatten)]
    changes: BTreeMap<Sort, u64>,
}

impl BriefRow {
    fn new(step: &Step) -> Self {
        Self {
            n: step.n,
            on: Some(step.on).filter(|on| on + 1 != step.n),
            command: brief_words(&step.argv),
            ending: step.ending.filter(|ending| *ending != Ending::Exited(0)),
            cut_off: step.ending.is_none(),
            unsynced: step.unsynced,
            changes: step.sorts.iter().filter(|(_, n)| **n > 0).map(|(sort, n)| (*sort, *n)).collect(),
        }
    }
}

/// The beginning of a page of steps.
#[derive(Serialize)]
struct Brief<'a> {
    session: &'a Id,
    status: &'static str,
    head: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<BriefRunning>,
}

/// A command that runs in the session, in a page.
#[derive(Serialize)]
struct BriefRunning {
    n: u32,
    command: String,
}

/// The steps of a session, and its running command.
struct Found {
    /// Those that can be gone back to.
    steps: Vec<Step>,
    gone: usize,
    /// The number of the step at which it stands.
    head: u32,
    /// The command, with the number that its step will have.
    running: Option<(u32, Run)>,
    /// It came from another store: what its steps stood on stayed there.
    imported: bool,
}

pub fn steps(call: &Call, args: &args::Steps) -> Result<Ended, Error> {
    let (store, session) = session(call, args.id.as_deref())?;
    let header = &session.header;
    let running = if header.uncollected { running(&session)? } else { None };
    let list = if running.is_some() { session.steps()? } else { of(&session)? };
    let all = list.steps.len();
    let kept = list.kept(header);
    let steps: Vec<Step> = list.steps.into_iter().filter(|step| kept.contains(&step.n)).collect();
    let gone = all - steps.len();
    let found = Found { steps, gone, head: header.head(), running, imported: header.imported.is_some() };
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(call, &session, &found);
        return Ok(Ended::Done);
    }
    let standing = Standing::of(store, header, &crate::verb::standing::cut_off(store, store.journaled()?))?;
    if args.page.brief {
        print_brief(call, args, header, standing.word, &found)?;
        return Ok(Ended::Done);
    }
    let rows: Vec<Row> = found.steps.iter().rev().map(|step| Row::new(step, found.head)).collect();
    let running = found.running.as_ref().map(|(n, run)| Running::new(*n, found.head, run));
    let whole = Whole { session: SessionRow::new(header, standing), head: found.head, steps: &rows, running };
    call.out.document(&whole);
    brief::offer(call, "steps --brief");
    Ok(Ended::Done)
}

fn print_brief(call: &Call, args: &args::Steps, header: &Header, status: &'static str, found: &Found) -> Result<(), Error> {
    let running = found.running.as_ref().map(|(n, run)| BriefRunning { n: *n, command: brief_words(&run.argv) });
    let head = Brief { session: &header.id, status, head: found.head, running };
    let of = vec![&b"steps"[..], header.id.as_str().as_bytes()];
    let list = List { key: "steps", of, count: found.steps.len() };
    let step = |i: usize| &found.steps[found.steps.len() - 1 - i];
    let place = |i: usize| Place::Number(u64::from(step(i).n));
    brief::print(call, &list, args.page.after.as_deref(), &head, place, |i| Ok(BriefRow::new(step(i))))
}

fn brief_words(argv: &[Arg]) -> String {
    cut_off(&words(argv), brief::TEXT)
}

/// Opens a session to read what its ended commands did: another may run in it.
pub fn session<'c>(call: &'c Call, key: Option<&str>) -> Result<(&'c Store, Session), Error> {
    let store = call.store_with(key.unwrap_or("last"))?;
    let id = call.find(store, key, Want::Look)?;
    let mut session = store.session(&id)?;
    if session.header.uncollected && !is_held(&session) {
        collect::collect_ended(call, store, &id)?;
        session = store.session(&id)?;
    }
    Ok((store, session))
}

/// The steps of a session.
///
/// # Errors
/// It has none: its changes were not held in a run.
pub fn of(session: &Session) -> Result<StepList, Error> {
    let list = session.steps()?;
    if !list.steps.is_empty() || session.header.steps.is_some() {
        return Ok(list);
    }
    let id = session.id();
    let problem = Error::refused(format!("session {id} has no steps: its changes were not held in a run"));
    Err(problem.with_remedy(format!("{} shows what it holds", command(format_args!("show {}", id.tail())))))
}

/// The command that runs in a session, with the number that its step will have.
fn running(session: &Session) -> Result<Option<(u32, Run)>, Error> {
    let header = &session.header;
    let run = if header.lines > 0 { session.going_on()? } else { session.run()? };
    Ok(run.map(|run| (header.next_step(), run)))
}

impl<'a> Row<'a> {
    fn new(step: &'a Step, head: u32) -> Self {
        let sorts = [Sort::Created, Sort::Modified, Sort::Deleted, Sort::Metadata, Sort::Times];
        Self {
            n: step.n,
            on: step.on,
            head: step.n == head,
            argv: &step.argv,
            cwd: &step.cwd,
            uid: step.uid,
            by: step.by.as_ref(),
            started: step.started,
            took_ns: step.took,
            ending: step.ending,
            unsynced: step.unsynced,
            changes: sorts.into_iter().map(|sort| (sort, count(step, sort))).collect(),
            left: step.left,
            held_bytes: step.held,
        }
    }
}

impl<'a> Running<'a> {
    fn new(n: u32, on: u32, run: &'a Run) -> Self {
        Self { n, on, argv: &run.argv, cwd: &run.cwd, uid: run.uid, by: run.by.as_ref(), started: run.started }
    }
}

fn print(call: &Call, session: &Session, found: &Found) {
    let (lines, first, more) = lines(found, call.out.limit());
    let steps: HashMap<u32, &Step> = found.steps.iter().map(|step| (step.n, step)).collect();
    let room = call.out.width() / 3;
    let mut rows: Vec<[String; 6]> = lines
        .iter()
        .map(|Line { graph, n }| {
            let Some(n) = n else { return row(cut_off(graph, room)) };
            let head = if *n == found.head { " (head)" } else { "" };
            let first = format!("{} {}{head}", cut_off(graph, room), text::grouped(u64::from(*n)));
            match (steps.get(n), &found.running) {
                (Some(step), _) => of_step(first, step),
                (None, Some((running, run))) if running == n => {
                    [first, text::day(run.started), "running".into(), String::new(), who(run.by.as_ref()), words(&run.argv)]
                }
                _ => {
                    let [_, when, ending, counts, by, _] = row(String::new());
                    [first, when, ending, counts, by, "the tree as it was".into()]
                }
            }
        })
        .collect();
    text::fit(&mut rows, call.out.width(), &[Flexible::words(5, 8), Flexible::path(4, 8)]);
    let whole = text::more(more, &command(format_args!("steps {} -v", session.id().tail())));
    for (i, line) in text::table([Side::Left; 6], &rows).enumerate() {
        if more > 0 && i == first {
            call.out.line(&whole);
        }
        call.out.line(line);
    }
    if more > 0 && first == lines.len() {
        call.out.line(whole);
    } else if more == 0 && found.gone > 0 {
        let count = text::count(found.gone as u64, "older step");
        call.out.line(format_args!("{count} cannot be gone back to any more (steps.keep, steps.max_size)"));
    }
}

/// The lines of the tree, with the newest `limit` steps, the head and 0; how many of the lines come before a gap, and the number of the
/// steps that are left out there.
fn lines(found: &Found, limit: usize) -> (Vec<Line>, usize, usize) {
    let mut stands: Vec<(u32, u32)> = found.steps.iter().map(|step| (step.n, step.on)).collect();
    // The oldest one stands on what is gone.
    let kept: HashSet<u32> = found.steps.iter().map(|step| step.n).collect();
    stands.iter_mut().filter(|(_, on)| !kept.contains(on) && *on != found.head).for_each(|(_, on)| *on = 0);
    stands.extend(found.running.as_ref().map(|(n, _)| (*n, found.head)));
    let mut lines = graph::rows(&stands);
    if found.imported {
        lines.pop();
    }
    let is_step = |line: &&Line| line.n.is_some();
    let is_apart = |line: &Line| line.n == Some(0) || line.n == Some(found.head);
    let behind = lines.iter().enumerate().filter(|(_, line)| is_step(line)).nth(limit).map_or(lines.len(), |(i, _)| i);
    let (_, more) = cut(lines[behind..].iter().filter(|line| is_step(line) && !is_apart(line)).count(), 0);
    if more == 0 {
        return (lines, 0, 0);
    }
    let rest = lines.split_off(behind);
    lines.extend(rest.into_iter().filter(is_apart));
    (lines, behind, more)
}

fn row(first: String) -> [String; 6] {
    [first, String::new(), String::new(), String::new(), String::new(), String::new()]
}

/// The columns of a step behind `first`: when, how it ended, how much it changed, who ran it, its command.
pub fn of_step(first: String, step: &Step) -> [String; 6] {
    let ending = match step.ending {
        Some(Ending::Exited(0)) => String::new(),
        Some(Ending::Exited(status)) => format!("exit {status}"),
        Some(Ending::Signaled(signal)) => format!("signal {signal}"),
        None => "cut off".into(),
    };
    let ending = match (step.unsynced, ending.is_empty()) {
        (false, _) => ending,
        (true, true) => "unsynced".into(),
        (true, false) => format!("{ending}, unsynced"),
    };
    let modified = [Sort::Modified, Sort::Metadata, Sort::Times].map(|sort| count(step, sort)).iter().sum();
    let counts = [('+', count(step, Sort::Created)), ('~', modified), ('-', count(step, Sort::Deleted))];
    let left = Some(step.left).filter(|left| *left > 0).map(|left| format!("{} left", text::grouped(left)));
    let counts = counts.iter().filter(|(_, n)| *n > 0).map(|(sign, n)| format!("{sign}{}", text::grouped(*n))).chain(left);
    [first, text::day(step.started), ending, counts.collect::<Vec<_>>().join(" "), who(step.by.as_ref()), words(&step.argv)]
}

fn count(step: &Step, sort: Sort) -> u64 {
    step.sorts.get(&sort).copied().unwrap_or(0)
}

/// A command as a line has it.
pub fn words(argv: &[Arg]) -> String {
    argv.iter().map(|Arg(word)| Shown(word).to_string()).collect::<Vec<_>>().join(" ")
}
