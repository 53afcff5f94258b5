//! Words for what a run says while it works.

use super::service;
use crate::agent::Agent;
use crate::capture::Event;
use crate::compare::cut_off;
use crate::engine::LeftPath;
use crate::error::command;
use crate::face::calling_agent;
use crate::face::figures::{self, filled, filled_remedy};
use crate::face::out::Out;
use crate::face::text::cut_run;
use crate::fs::AbsPath;
use crate::remedy::words;
use crate::session::{Coverage, Header, How, Id, Keep};
use crate::verb::error::kept_by;
use crate::verb::run::notice::Notice;
use crate::verb::{InPlace, Obstacle, Records};

/// Says it: what must not be missed as a warning, the rest as a note.
pub fn tell(out: &Out, notice: &Notice<'_>) {
    match notice {
        Notice::Event { event, is_confined } => self::event(out, event, *is_confined),
        Notice::Shell { goes_on, begins, has_history } => {
            goes_on.iter().for_each(|header| out.note(going_on(header)));
            begins.iter().for_each(|name| out.note(format_args!("{name} is a new session, which the first change begins")));
            let but = if *has_history { " but its history" } else { "" };
            out.note(format_args!("a shell with every file change held{but}; 'exit' ends it"));
        }
        Notice::NotTidy(error) => out.detail(error),
        Notice::NoProxy(error) => out.warn(format_args!("no host can be reached: {error}")),
        Notice::Pending(id) if out.is_for_tools() => {
            out.note(format_args!("session {} is pending, and its changes are not seen here: name it to go on in it", id.tail()));
        }
        Notice::Pending(id) => {
            let goes_on = command(format_args!("run --session {}", id.tail()));
            out.note(format_args!("session {} is pending, not seen by this run: {goes_on}", id.tail()));
        }
        Notice::ChangedBelow { id, paths } => changed_below(out, id, paths),
        Notice::Oldest { id, step, keep: Keep { steps, bytes }, is_first } => {
            let (id, bytes) = (id.tail(), figures::bytes(*bytes));
            let said = format!("session {id}: step {step} is the oldest by steps.keep {steps}, steps.max_size {bytes}");
            if *is_first { out.note(said) } else { out.detail(said) }
        }
        Notice::Spoilt => {
            out.warn("the store that the session's runs had inside was damaged: its turns are lost; what is held is not affected")
        }
        Notice::Agent { agent, session, coverage } => greet(out, *agent, session, coverage),
        Notice::Records(agent, fate) => records(out, agent.name, fate),
        Notice::InPlace(terms) => in_place(out, terms),
        Notice::StoreInCache(cache) => {
            out.note(format_args!("{} is read-only for the command: the store lies there", out.place(cache)));
        }
        Notice::Unread(left) => {
            out.warn_each(left.iter().map(|LeftPath { path, why }| format!("{path}: not in the snapshot: {why}")));
            out.warn("what happens there cannot be taken back");
        }
        Notice::Left { new, known } => left(out, new, *known),
        Notice::Regained(store) => {
            let line = format!("{store}: the command removed the owner's rights to the store (chmod); they are restored");
            out.warn(filled(&line));
        }
        Notice::NoName(error) => out.warn(format_args!("the session gets no name: {error}")),
        Notice::RecordStays { id, why } => {
            out.warn(format_args!("the record of run {id} stays: {why}; {}", command("recover tries again")));
        }
        Notice::Serves { id, name, output } => service::say_serves(out, id, name, output),
        Notice::Beside(session) => {
            let first = session.under_way().unwrap_or_default().into_iter().find(|one| one.is_first);
            let service = first.as_ref().and_then(|first| first.service());
            let command = service.or(session.header.command.as_deref()).unwrap_or("the command");
            let command = cut_off(command, 36);
            out.note(format_args!("beside {command}: one step of session {}", session.id().tail()));
        }
        Notice::Pruned { count, keep } => {
            out.note(format_args!("{} pruned: snapshot.keep is {keep}", figures::count(*count as u64, "old snapshot")));
        }
        Notice::Ending { id, record } => out.note(format_args!("waiting until {} has ended", cut_run::what(id, *record))),
        Notice::CutOff { id, record } => {
            let now = if out.is_for_tools() { String::new() } else { format!("; {}", command("recover does it now")) };
            out.warn(format_args!("{}{now}", cut_run::would(id, *record)));
        }
        Notice::CutRun(run) => out.warn(cut_run::line(run)),
    }
}

fn left(out: &Out, new: &[&LeftPath], known: usize) {
    out.warn_each(new.iter().map(|left| left.to_string()));
    if known > 0 {
        let paths = figures::count(known as u64, "path");
        out.warn(format_args!("{paths} named above: what the command did there is not in the session"));
    }
}

/// Says what a capture, or a confinement, reports.
fn event(out: &Out, event: &Event, is_confined: bool) {
    match event {
        Event::Lingering(names) if names.is_empty() && out.is_for_tools() => {
            out.note("the answer waited for commands that ran beside this one");
        }
        Event::Lingering(names) if names.is_empty() => {
            out.note("waiting for the commands that joined this one (Ctrl-C ends them)")
        }
        // It is heard only once the wait is over.
        Event::Lingering(names) if out.is_for_tools() => {
            out.note(format_args!("the answer waited for what the command left running: {}", names.join(", ")));
        }
        Event::Lingering(names) => {
            let names = names.join(", ");
            // An agent has no Ctrl-C.
            let way = if calling_agent::variable().is_some() { "--no-wait ends it, --serve keeps it" } else { "Ctrl-C ends it" };
            out.note(format_args!("waiting for what the command left running: {names} ({way})"));
        }
        Event::EndsRest(names) => out.note(format_args!("ended, because the command left it running: {}", names.join(", "))),
        Event::Uncovered(path, why) => out.warn(format_args!("{path}: {why}; it is read-only for the command")),
        Event::Closed(fd, path) => {
            out.warn(format_args!("descriptor {fd} ({path}) is closed for the command: it leads out of the run"));
        }
        Event::RealOutput(path, fds) => out.note(real_output(out, path, fds)),
        Event::NotFed(why) => out.warn(format_args!("the command's input could not be read to its end: {why}")),
        Event::NoGroups(why) if is_confined => {
            out.warn(format_args!("{why}: chgrp to another group of yours fails in this run"));
        }
        Event::NoGroups(why) => out.warn(format_args!("{why}: files of your other groups cannot be changed in this run")),
        Event::InMemory(limit) => out.warn(format_args!(
            "the store's file system can't hold a run: what the command writes lies in memory until it has ended, at most {}",
            figures::bytes(*limit)
        )),
        // A service hears the last two.
        Event::SettingUp | Event::Asked(_) | Event::Listens(_) | Event::Serves | Event::OnlyJoined(..) => {}
    }
}

/// "out.txt: written at once, not held, as it is the command's stdout".
fn real_output(out: &Out, path: &AbsPath, fds: &[i32]) -> String {
    let streams: Vec<&str> = fds.iter().map(|fd| if *fd == 1 { "stdout" } else { "stderr" }).collect();
    let path = out.shown(path);
    format!("{path}: written at once, not held, because it is the command's {}", streams.join(" and "))
}

/// Says that a shell goes on in a session that holds changes: "going on in session k3fa, named job: 2 changes so far".
fn going_on(header: &Header) -> String {
    let held = figures::count(header.counts.changes, "change");
    format!("going on in session {}{}: {held} so far", header.id.tail(), named(header))
}

fn named(header: &Header) -> String {
    header.name.as_ref().map(|name| format!(", named {name}")).unwrap_or_default()
}

/// The most paths that are named.
const NAMED: usize = 5;

fn changed_below(out: &Out, id: &Id, paths: &[AbsPath]) {
    for path in paths.iter().take(NAMED) {
        out.warn(format_args!("{path}: changed on the tree since the session held it: the command sees what the session holds"));
    }
    if let Some(more) = paths.len().checked_sub(NAMED).filter(|more| *more > 0) {
        let (more, diff) = (figures::count(more as u64, "other path"), command(format_args!("diff {}", id.tail())));
        out.warn(format_args!("so did {more}: {diff} names them all"));
    }
}

/// Says, before an agent starts, where its changes go, what is not held, and what a person should know.
fn greet(out: &Out, agent: Agent, session: &Header, coverage: &[Coverage]) {
    let why = kept_by(agent);
    let mut passed = coverage.iter().filter(|row| row.how == How::Passed && row.why.as_ref() == Some(&why));
    let real = match (passed.next(), passed.count()) {
        (None, _) => String::new(),
        (Some(row), 0) => format!("; real: {}", out.shown(&row.path)),
        (Some(row), more) => format!("; real: {} and {more} more", out.shown(&row.path)),
    };
    let tail = session.id.tail();
    out.note(filled(&format!("{} is held in session {tail}{}{real}", agent.name, named(session))));
    let look = command(format_args!("review {}", session.name.as_deref().unwrap_or(tail)));
    out.note(filled_remedy(&("what you change here meanwhile becomes a conflict; to watch: " + look), 8));
}

/// The most lines about records that stay held.
const MOST_LINES: usize = 3;

/// Says what became of the files that an agent keeps about itself.
fn records(out: &Out, own: &str, fate: &Records<'_>) {
    let is_held = |why: String| out.note(filled(&format!("the records of {own} are held: {why}")));
    match fate {
        Records::Held(why) => {
            let first = why.rows().first().map(|against| format!(": {}", against.path)).unwrap_or_default();
            is_held(format!("{}{first}", why.message()));
        }
        Records::AgentCalls(variable) => is_held(format!("an agent called recant ({variable} is set)")),
        Records::HeldEach(held) => {
            for (path, why) in held.iter().take(MOST_LINES) {
                out.note(filled(&format!("{} is held: {}", out.shown(path), obstacle(own, why))));
            }
            let more = held.len().saturating_sub(MOST_LINES);
            if more > 0 {
                out.note(format_args!("and {} more", figures::count(more as u64, "file")));
            }
        }
        Records::Committed { count, part, is_whole: true } => {
            let files = figures::count(*count as u64, "file");
            let back = command(format_args!("rollback {}", part.tail()));
            out.note(filled_remedy(&(words(format_args!("{files} of {own}'s records committed; ")) + back), 8));
        }
        Records::Committed { part, .. } => {
            let look = command(format_args!("show {}", part.tail()));
            out.note(filled_remedy(&(words(format_args!("some records of {own} are held: ")) + look), 8));
        }
    }
}

/// The reason why a record is held.
fn obstacle(own: &str, why: &Obstacle) -> String {
    let why = match why {
        Obstacle::Changed => "another process changed it meanwhile",
        Obstacle::OfAnotherConversation => "it may belong to another conversation",
        Obstacle::TooMany(most) => return format!("there are more than {most}"),
        Obstacle::Deleted => "it was deleted",
        Obstacle::NoFile => "it is not a regular file",
        Obstacle::SeveralNames => "it has several names",
        Obstacle::Mode => "its mode gives more rights than a record needs",
        Obstacle::Owner => "its owner was changed",
        Obstacle::Attributes => "it has extended attributes",
        Obstacle::OpenDirectory => "the directory that was made for it is open to others",
        Obstacle::TooLarge(most) => return format!("it is larger than {}", figures::bytes(*most)),
        Obstacle::Gone(why) => why,
        Obstacle::Obeyed(member) => return format!("{own} obeys {member} in it, and that was changed"),
        Obstacle::LinesGone => "lines that were in it are gone",
        Obstacle::Unreadable(error) => return error.to_string(),
    };
    why.to_owned()
}

/// Says that a command on the real tree changes files at once, and with `-v` where it may.
fn in_place(out: &Out, terms: &InPlace<'_>) {
    let directories: Vec<String> = terms.directories.iter().map(|directory| out.place(directory)).collect();
    let real = words(format_args!("changes in {} are real at once; ", figures::list(&directories)));
    out.note(filled_remedy(&(real + command("undo") + " takes them back"), 8));
    if let Some((first, more)) = terms.ignored.split_first() {
        let more = match more.len() {
            0 => String::new(),
            more => format!(", and what {} more of these files leave out", figures::grouped(more as u64)),
        };
        out.note(filled(&format!("not in the session: what {} leaves out{more}", out.place(first))));
    }
    if let Some(what) = terms.confinement.network() {
        let said = format!("--no-network: {what}");
        // What it was asked for is nothing new.
        if terms.confinement.has_no_network() { out.detail(said) } else { out.note(said) }
    }
    let places: Vec<String> = terms.confinement.writable().map(|path| out.place(path)).collect();
    out.detail(filled(&format!("it may write only to {}", figures::list(&places))));
    out.detail(filled(&format!("not denied elsewhere: {}", figures::list(&terms.confinement.not_denied()))));
}
