//! No verb, in words: how things stand in this project, each with its next command.

use super::agent::turns::newest;
use super::list::shown;
use super::run::service::since;
use crate::compare::{columns, cut_off, padded};
use crate::error::{Error, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::session::Id;
use crate::snapshot::Head;
use crate::verb::error::but;
use crate::verb::overview as verb;
use crate::verb::overview::{Here, Row};
use crate::verb::snapshot::directory::directory;

/// The most lines of each status: with the lines around them 20 in all.
const MOST: [(&str, usize); 4] = [("running", 2), ("pending", 5), ("rolled_back", 1), ("committed", 3)];
const MOST_URGENT: usize = 2;
const WIDTH: usize = 80;

/// Tells how things stand.
pub fn here(call: &Call) -> Result<Ended, Error> {
    // Another machine has no project here.
    let directory = if call.is_far() { None } else { directory(None).ok() };
    let here = verb::here(call, directory.as_ref())?;
    if here.damaged > 0 {
        let damaged = figures::count(here.damaged as u64, "session");
        call.out.warn(format_args!("{damaged} cannot be read: {}", command("status")));
    }
    if !call.out.is_text() {
        call.out.document(&here);
        return Ok(Ended::Done);
    }
    if here.fresh {
        begin(call);
    } else {
        print(call, &here);
    }
    here.snapshot.iter().for_each(|head| print_snapshot(call, head));
    newest(call).iter().for_each(|newest| call.out.line(format_args!("{:<12} {newest}", "agent")));
    Ok(Ended::Done)
}

fn print_snapshot(call: &Call, head: &Head) {
    let message = head.message.as_ref().or(head.label.as_ref()).map(|of| format!("  {}", shown(of))).unwrap_or_default();
    let what = format!("{}  {}{message}", head.n, figures::time(head.time, false));
    let next = command(format_args!("snapshot diff {}", head.n));
    call.out.line(format_args!("{:<12} {}  {next}", "snapshot", fitted(&what, columns(&next))));
}

fn begin(call: &Call) {
    let out = &call.out;
    out.line("Nothing is held yet. To begin:");
    for (words, what) in [
        ("run -- COMMAND", "run a command, and hold its file changes"),
        ("diff", "look at them"),
        ("commit last", "make them real; rollback last takes them back"),
    ] {
        out.line(format_args!("  {:<24} {what}", command(words)));
    }
    out.line(format_args!("{} lists all verbs; {} tests whether a run works here.", command("--help"), command("doctor")));
}

/// A line: the state, what is in it, and the next command.
type Line = [String; 3];

fn print(call: &Call, here: &Here) {
    let out = &call.out;
    if let Some(project) = &here.project {
        out.line(out.place(project));
    }
    let lines = [urgent(here), sessions(here), others(here)].concat();
    let widest = lines.iter().map(|[.., next]| columns(next)).max().unwrap_or(0);
    lines.iter().for_each(|[first, what, next]| out.line(format_args!("{first:<12} {}  {next}", fitted(what, widest))));
}

fn line(first: &str, what: String, words: &str) -> Line {
    [first.into(), what, command(words).into()]
}

/// Interrupted operations and runs, what they left, and what waits to be confirmed.
fn urgent(here: &Here) -> Vec<Line> {
    let cut_off = |what: &'static str| {
        move |id: &Id| line("interrupted", format!("{}  {what}", id.tail()), &format!("recover {}", id.tail()))
    };
    let runs = here.interrupted.runs.iter().map(cut_off("a command on the real tree was cut off"));
    let operations = here.interrupted.operations.iter().map(cut_off("an operation was cut off"));
    let left = here.sessions.iter().filter(|row| row.left > 0).map(|row| {
        let what = format!("{}  {} that an undo could not take back", row.id.tail(), figures::count(row.left as u64, "path"));
        line("left", what, "status")
    });
    let unconfirmed = here.unconfirmed.iter().map(|waiting| {
        let tail = waiting.session.tail();
        line("unconfirmed", format!("{tail}  until {}", figures::time(waiting.due, true)), &format!("confirm {tail}"))
    });
    let most = MOST_URGENT;
    runs.take(most).chain(operations.take(most)).chain(left.take(most)).chain(unconfirmed.take(most)).collect()
}

/// The sessions, by their status.
fn sessions(here: &Here) -> Vec<Line> {
    let mut lines = Vec::new();
    for (status, most) in MOST {
        let of_it: Vec<&Row> = here.sessions.iter().filter(|row| row.status == status).collect();
        lines.extend(
            of_it
                .iter()
                .take(most)
                .map(|row| [status.replace('_', " "), what(row), row.next.first().cloned().unwrap_or_default()]),
        );
        if of_it.len() > most {
            lines.push(line("", format!("and {} more", of_it.len() - most), "list"));
        }
    }
    lines
}

/// Lines for a project that has nothing, and for other projects.
fn others(here: &Here) -> Vec<Line> {
    let is_empty = here.sessions.is_empty() && here.interrupted.is_empty() && here.unconfirmed.is_empty();
    let nothing = is_empty.then(|| line("", "nothing of this project is held or committed".into(), "run -- COMMAND"));
    let pending = || format!("{} pending in other projects", figures::count(here.elsewhere as u64, "session"));
    let elsewhere = (here.elsewhere > 0).then(|| line("", pending(), "list --all"));
    nothing.into_iter().chain(elsewhere).collect()
}

/// The short id of a session, the number of its changes, and its name or command.
fn what(row: &Row) -> String {
    let of = row.name.as_ref().or(row.command.as_ref()).map(|of| format!("  {}", shown(of))).unwrap_or_default();
    let changes = figures::count(row.changes, "change");
    let held = match row.status {
        "running" => format!("{changes} so far"),
        "rolled_back" => format!("{} of {changes} never committed", figures::grouped(row.counts.never_in())),
        _ => format!("{changes}{}", but(row.counts)),
    };
    let failed = row.failed.map(|failed| format!(", {}", failed.text())).unwrap_or_default();
    let services = row.services.iter().map(|service| format!(", {}", since(service))).collect::<String>();
    format!("{}  {held}{failed}{services}{of}", row.id.tail())
}

/// The middle of a line, shortened so that a command of `widest` columns fits after it.
fn fitted(what: &str, widest: usize) -> String {
    let room = WIDTH.saturating_sub(13 + 2 + widest).max(20);
    padded(&cut_off(what, room), room)
}
