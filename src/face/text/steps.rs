//! `steps`: the steps of a session as a tree, the newest first, a line each.

use std::collections::{HashMap, HashSet};

use super::graph::{self, Row as Line};
use super::list::who;
use crate::compare::{cut, cut_off};
use crate::error::{Error, command};
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::fs::Shown;
use crate::session::{Arg, CommandRecord, Ending, Service, Session, Sort, Step, Stopped};
use crate::verb::steps::{self as verb, Steps, count};

pub fn steps(call: &Call, args: &args::Steps) -> Result<Ended, Error> {
    let found = verb::steps(call, args.id.as_deref())?;
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(call, &found.session, &found);
        return Ok(Ended::Done);
    }
    call.out.document(&found);
    Ok(Ended::Done)
}

fn print(call: &Call, session: &Session, found: &Steps) {
    let (lines, first, more) = lines(found, call.out.limit());
    let steps: HashMap<u32, &Step> = found.steps.iter().map(|step| (step.n, step)).collect();
    let room = call.out.width() / 3;
    let (mut rows, mut before_gap) = (Vec::new(), 0);
    for (i, Line { graph, n }) in lines.iter().enumerate() {
        if i == first {
            before_gap = rows.len();
        }
        let Some(n) = n else {
            rows.push(row(cut_off(graph, room)));
            continue;
        };
        let head = if *n == found.head { " (head)" } else { "" };
        let label = format!("{} {}{head}", cut_off(graph, room), figures::grouped(u64::from(*n)));
        match (steps.get(n), &found.running) {
            (Some(step), _) => {
                rows.push(of_step(label, step));
                rows.extend(step.beside.iter().map(|beside| of_beside(graph, beside, "cut off")));
            }
            (None, Some((running, run))) if running == n => {
                let who = who(run.command.by.as_ref());
                let state = run.command.ending.map_or_else(|| "running".into(), |end| ending(end, run.command.service.as_ref()));
                let command = named(&run.command);
                rows.push([label, figures::day(run.command.started), state, String::new(), who, command]);
                rows.extend(run.beside.iter().map(|beside| of_beside(graph, beside, "running")));
            }
            _ => {
                let [_, when, ending, counts, by, _] = row(String::new());
                rows.push([label, when, ending, counts, by, "the tree as it was".into()]);
            }
        }
    }
    if first == lines.len() {
        before_gap = rows.len();
    }
    figures::fit(&mut rows, call.out.width(), &[Flexible::words(5, 8), Flexible::path(4, 8)]);
    let whole = figures::more(more, &command(format_args!("steps {} -v", session.id().tail())));
    for (i, line) in figures::table([Side::Left; 6], &rows).enumerate() {
        if more > 0 && i == before_gap {
            call.out.line(&whole);
        }
        call.out.line(line);
    }
    if more > 0 && before_gap == rows.len() {
        call.out.line(whole);
    } else if more == 0 && found.gone > 0 {
        let count = figures::count(found.gone as u64, "older step");
        call.out.line(format_args!("{count} no longer kept (steps.keep, steps.max_size)"));
    }
}

/// The lines of the tree, with the newest `limit` steps, the head and 0; how many of the lines come before a gap, and the number of the
/// steps that are left out there.
fn lines(found: &Steps, limit: usize) -> (Vec<Line>, usize, usize) {
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

/// The row of a command that joined the one in the row above. `open`: what a missing end means.
fn of_beside(graph: &str, beside: &CommandRecord, open: &str) -> [String; 6] {
    let ending = beside.ending.map_or_else(|| open.to_owned(), |end| ending(end, beside.service.as_ref()));
    let words = format!("+ {}", named(beside));
    [graph.replace('*', "|"), figures::day(beside.started), ending, String::new(), who(beside.by.as_ref()), words]
}

/// A command as a line has it, or its label; of a service with its name.
fn named(command: &CommandRecord) -> String {
    let name = command.service.as_ref().map(|service| format!("{}: ", service.name)).unwrap_or_default();
    name + &command.label.clone().unwrap_or_else(|| words(&command.argv))
}

fn ending(ending: Ending, service: Option<&Service>) -> String {
    match service.and_then(|service| service.stopped) {
        Some(Stopped::Asked) => return "stopped".into(),
        Some(Stopped::Killed) => return "killed".into(),
        None => {}
    }
    match ending {
        Ending::Exited(0) => String::new(),
        Ending::Exited(status) => format!("exit {status}"),
        Ending::Signaled(signal) => format!("signal {signal}"),
    }
}

/// The columns of a step behind `first`: when, how it ended, how much it changed, who ran it, its command.
pub fn of_step(first: String, step: &Step) -> [String; 6] {
    let service = step.command.service.as_ref();
    let ending = step.command.ending.map_or_else(|| "cut off".into(), |end| ending(end, service));
    let ending = match (step.unsynced, ending.is_empty()) {
        (false, _) => ending,
        (true, true) => "unsynced".into(),
        (true, false) => format!("{ending}, unsynced"),
    };
    let modified = [Sort::Modified, Sort::Metadata, Sort::Times].map(|sort| count(step, sort)).iter().sum();
    let counts = [('+', count(step, Sort::Created)), ('~', modified), ('-', count(step, Sort::Deleted))];
    let left = Some(step.left).filter(|left| *left > 0).map(|left| format!("{} left", figures::grouped(left)));
    let counts = counts.iter().filter(|(_, n)| *n > 0).map(|(sign, n)| format!("{sign}{}", figures::grouped(*n))).chain(left);
    [
        first,
        figures::day(step.command.started),
        ending,
        counts.collect::<Vec<_>>().join(" "),
        who(step.command.by.as_ref()),
        named(&step.command),
    ]
}

/// A command as a line has it.
pub fn words(argv: &[Arg]) -> String {
    argv.iter().map(|Arg(word)| Shown(word).to_string()).collect::<Vec<_>>().join(" ")
}
