//! Errors about the sessions that a call means.

use std::fmt::Display;
use std::io::ErrorKind;

use crate::capture::Inside;
use crate::error::{Error, Kind, Reason, command, shell_word};
use crate::fs::{AbsPath, Time};
use crate::remedy::{Command, Remedy, shell, words};
use crate::session::{Changes, Checkpoint, Counts, Header, Id, LastAct, Origin, Session, Status, UnderWay, not_now};
use crate::settings::edits;
use crate::tree::time;
use crate::verb::resolve::wanted_act::Want;

/// The error for `last` in a store without sessions.
pub fn no_session() -> Error {
    Error::refused("there is no session yet").with_remedy(shell("recant run -- COMMAND") + " begins one")
}

/// The error for a session that another machine asks for where there is no store.
pub fn no_store_there(key: &str, store: &AbsPath) -> Error {
    let why = format!("no session {key:?}: there is no store at {store}; with -H, --store is a directory of that machine");
    Error::refused(why).with_reason(Reason::Unknown { near: false })
}

/// The error if a signal came before the verb began. `state`: what is true then.
pub fn stopped(signal: impl Display, state: &str) -> Error {
    Error::refused(format!("stopped by {signal}")).with_state(state)
}

/// The error if a question was answered with no.
pub fn not_confirmed() -> Error {
    Error::refused("nothing changed").without_state()
}

/// The error for a session whose run cannot be collected, as it is under way.
pub fn runs(id: &Id) -> Error {
    not_now(id, "its run has not ended; what it changes is not known before")
}

/// The error for a commit of what it has just collected, and nobody has seen.
pub fn just_collected(id: &Id) -> Error {
    let [diff, commit] = ["diff", "commit"].map(|verb| command(format_args!("{verb} {}", id.tail())));
    let error = not_now(id, "its run was cut off, so its changes may be incomplete");
    error.with_remedy(diff + " shows it; " + commit + " commits it")
}

/// The note of a session that began as another one was at a step.
pub fn forked(id: &Id, step: u32) -> String {
    format!("forked from session {id} at step {step}")
}

/// The reason why an object that a session holds is damaged.
pub const MISSING: &str = "it is missing";

/// The act that a deadline forbids, of a session that is committed in part.
pub const COMMIT_MORE: &str = "commit more of";

/// The state after a signal, once what had been interrupted was recovered.
pub const RECOVERED: &str = "interrupted operations were recovered as reported; nothing else was changed";

/// The error for a reader, if another recant changed the session meanwhile.
pub fn at_work(id: &Id) -> Error {
    let error = Error::new(Kind::Busy, format!("another recant was at work in session {id} meanwhile"));
    error.with_state("nothing was changed; try again when it has ended")
}

/// The error for a session that nobody has decided about in time.
pub fn undecided(id: &Id) -> Error {
    Error::new(Kind::Busy, format!("session {} is not decided yet", id.tail())).with_reason(Reason::Undecided)
}

/// The error for what cannot be done inside a run.
pub fn is_inside(inside: &Inside) -> Error {
    let session = &inside.session;
    Error::refused(format!("inside the run of session {session}, recant only runs commands and shows changes"))
        .with_remedy("do it outside, when the run has ended")
}

/// The error if there is no working directory to tell the project by.
pub fn no_project() -> Error {
    let there = std::env::current_dir().and_then(|dir| dir.join(".").metadata());
    let is_closed = there.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    let why = if is_closed { "you may not enter the working directory" } else { "the working directory no longer exists" };
    Error::refused(format!("cannot tell which project this is: {why}"))
        .with_remedy("cd into the project, or name a session by its ID (" + command("list --all") + ")")
}

/// The error for an agent, with the command for the person.
pub fn refused(variable: &str, command: Command) -> Error {
    let message = format!("refused to an agent ({variable} is set): a person decides what becomes real");
    Error::refused(message).with_remedy("in your own terminal: " + command)
}

/// The error for an agent that would drop a session in which a person made something.
pub fn a_persons(variable: &str, id: &Id) -> Error {
    let (tail, typed) = (id.tail(), command(format_args!("discard {}", id.tail())));
    let message = format!("refused to an agent ({variable} is set): a person made some of session {tail}");
    Error::refused(message).with_remedy("in your own terminal: " + typed)
}

/// The error for an agent that would go on in a session that a person began.
pub fn begun_by_a_person(variable: &str, header: &Header) -> Error {
    let (tail, fork) = (header.id.tail(), command(format_args!("fork {}", header.id.tail())));
    let message = format!("refused to an agent ({variable} is set): a person began session {tail}");
    let remedy = match header.origin {
        Origin::Captured => fork + " begins one of your own as it is",
        Origin::Staged => command("session new") + " begins one of your own",
    };
    Error::refused(message).with_remedy(remedy)
}

/// The error for a session that waits to be confirmed until `due`.
pub fn waits(header: &Header, due: Time, act: &str) -> Error {
    let (id, until) = (&header.id, time::local(due, true));
    let [confirm, rollback] = ["confirm", "rollback"].map(|verb| command(format_args!("{verb} {id}")));
    let remedy = confirm + " lets it stay, " + rollback + " takes it back";
    Error::refused(format!("cannot {act} {id}: it waits to be confirmed until {until}")).with_remedy(remedy)
}

/// The error for `ID@N` if the session stands at another step.
pub fn gone_on(header: &Header, step: u32) -> Error {
    let (head, tail) = (header.head(), header.id.tail());
    let error = Error::refused(format!("session {tail} is at step {head}, not at step {step}"));
    error.with_remedy(match step < header.next_step() {
        true => command(format_args!("diff {tail} --since {step}")) + " shows what came since",
        false => command(format_args!("steps {tail}")).into(),
    })
}

/// The error for `last`, if somebody else acted last on the session.
pub fn of_others(want: Want, id: &Id, act: &LastAct) -> Error {
    let error = Error::refused(format!("last is {}, and the newest act on it is {}", id.tail(), whose(act)));
    error.with_remedy(act_on(want, id))
}

/// Adds the sessions that are pending here to the error for an unknown one.
pub fn pending(error: Error, pending: &[Header]) -> Error {
    let show = |header: &Header| {
        let name = header.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("{}{name}", header.id.tail())
    };
    let pending: Vec<String> = pending.iter().map(show).collect();
    error.with_remedy(
        words(format_args!("pending here: {}; ", pending.join(", "))) + command("list --all") + " shows all sessions",
    )
}

/// The error if several sessions have the name, all of other projects.
pub fn which_of(name: &str, want: Want, fit: &Header, begun_in: Option<&AbsPath>) -> Error {
    Error::refused(format!("no session of this project is named {name}")).with_remedy(newest_elsewhere(want, fit, begun_in))
}

/// The state of a session, for a message.
fn state_of(header: &Header) -> String {
    let pruned = if header.checkpoint == Checkpoint::Pruned { ", its checkpoint pruned" } else { "" };
    format!("{}{}{pruned}", header.status().word().replace('_', " "), but(header.counts))
}

/// The error if a verb cannot act on the session that a word means. It names the one before it, on which it can.
pub fn does_not_fit(word: &str, want: Want, newest: &Header, before: Option<&Header>) -> Error {
    let (tail, state) = (newest.id.tail(), state_of(newest));
    let is_done = newest.status().word().replace('_', " ") == done(want);
    let error = Error::refused(match is_done {
        true => format!("nothing to {}: {tail} is {state} already", infinitive(want)),
        false => format!("{word} is {tail}, which is {state}: it cannot be {}", done(want)),
    });
    let back = match newest.status() {
        Status::RolledBack if is_done => format!("redo {tail}"),
        Status::Committed if is_done => format!("rollback {tail}"),
        Status::Discarded if is_done => format!("undo {tail}"),
        _ => format!("show {tail}"),
    };
    error.with_remedy(match before {
        Some(before) => "the one before it: " + act_on(want, &before.id),
        None => command(back).into(),
    })
}

/// An act after "to".
fn infinitive(want: Want) -> &'static str {
    match want {
        Want::Commit => "commit",
        Want::RollBack => "roll back",
        Want::Redo => "redo",
        Want::Discard => "discard",
        Want::Confirm => "confirm",
        _ => "do",
    }
}

/// The error if no session of this project can be meant.
pub fn none_here(project: Option<&AbsPath>, want: Want, elsewhere: Option<(&Header, Option<&AbsPath>)>) -> Error {
    let project = project.map(|project| format!(": {project}")).unwrap_or_default();
    let problem = Error::refused(format!("no session of this project can be {}{project}", done(want)));
    problem.with_remedy(match elsewhere {
        None => command("list --all") + " shows all sessions",
        Some((header, begun_in)) => newest_elsewhere(want, header, begun_in),
    })
}

fn newest_elsewhere(want: Want, header: &Header, begun_in: Option<&AbsPath>) -> Remedy {
    let place = begun_in.map(|dir| format!(", begun in {dir}")).unwrap_or_default();
    words(format_args!("the newest elsewhere{place}: ")) + act_on(want, &header.id)
}

/// Whose an act was, for a person: `claude 7's`, `user 1000's`.
pub fn whose(acted: &LastAct) -> String {
    match &acted.by {
        Some(by) => format!("{by}'s"),
        None => format!("user {}'s", acted.uid),
    }
}

/// The participle of an act.
fn done(want: Want) -> &'static str {
    match want {
        Want::Look => "shown",
        Want::Commit => "committed",
        Want::RollBack => "rolled back",
        Want::Redo => "redone",
        Want::Discard => "discarded",
        Want::Confirm => "confirmed",
        Want::Stage => "staged in",
        Want::GoOn => "gone on in",
        Want::Rewind => "rewound",
        Want::Fork => "forked",
        Want::Tend => "changed",
    }
}

/// The command for an act on a session.
fn act_on(want: Want, id: &Id) -> Command {
    command(match want {
        Want::Commit => format!("commit {id}"),
        Want::RollBack => format!("rollback {id}"),
        Want::Redo => format!("redo {id}"),
        Want::Discard => format!("discard {id}"),
        Want::Confirm => format!("confirm {id}"),
        Want::Stage => format!("session write {id} PATH"),
        Want::GoOn => format!("run --session {id} -- COMMAND"),
        Want::Rewind => format!("rewind {id} STEP"),
        Want::Fork => format!("fork {id}"),
        Want::Look | Want::Tend => format!("show {id}"),
    })
}

/// The number of changes of a committed session that are not on the tree, after its status: `, 2 of 30 taken back`; empty where all are.
pub fn but(counts: Counts) -> String {
    if counts.inside == 0 {
        return String::new();
    }
    let rest = [(counts.taken_back(), "taken back"), (counts.never_in(), "still held")].into_iter().filter(|(n, _)| *n > 0);
    let all = crate::settings::grouped(counts.changes);
    rest.map(|(n, what)| format!(", {} of {all} {what}", crate::settings::grouped(n))).collect()
}

/// The error for a path that is not in the session. It names the paths most like it.
pub fn not_in_session(id: &Id, changes: &Changes, path: &AbsPath) -> Error {
    let asked = path.to_string();
    // In a long list the first few thousand do: nobody typed one of so many by mistake.
    let mut near: Vec<(usize, String)> =
        changes.list.iter().take(4000).map(|c| c.path.to_string()).map(|p| (edits(&p, &asked), p)).collect();
    near.sort();
    let near: Vec<String> = near.into_iter().take(3).map(|(_, path)| path).collect();
    let nearest = if near.is_empty() { String::new() } else { format!("; the nearest: {}", near.join(", ")) };
    Error::refused(format!("{path}: not in the session{nearest}"))
        .with_path(path)
        .with_remedy(command(format_args!("show {}", id.tail())) + " lists what is in it")
}

/// The error for a path that a session leaves as it is.
pub fn unchanged(id: &Id, path: &AbsPath) -> Error {
    let shows = shell(format_args!("cat {}", shell_word(path.as_bytes()))) + " shows it as it is on the tree";
    Error::at(Kind::Refused, path, format_args!("session {} does not change it", id.tail())).with_remedy(shows)
}

/// The error for the steps of a session that has none.
pub fn no_steps(id: &Id) -> Error {
    let error = Error::refused(format!("session {id} has no steps: its changes were not held in a run"));
    error.with_remedy(command(format_args!("show {}", id.tail())) + " shows what it holds")
}

/// The error for step 0, which no command made.
pub fn step_0(id: &Id) -> Error {
    let problem = Error::refused(format!("session {id}: step 0 is the tree as it was: it changed nothing"));
    problem.with_remedy(command(format_args!("diff {} --since 0", id.tail())) + " shows what came after it")
}

/// The error for a path that has nothing before or after the session.
pub fn nothing_there(id: &Id, path: &AbsPath, before: bool) -> Error {
    let cat = format!("cat {} {}", id.tail(), shell_word(path.as_bytes()));
    let (when, remedy) = match before {
        true => ("before", command(cat) + " shows what the session puts there"),
        false => ("after", command(cat + " --before") + " shows what was there"),
    };
    Error::refused(format!("{path}: nothing is there {when} session {id}")).with_path(path).with_remedy(remedy)
}

/// The reason why a snapshot is damaged.
pub fn snapshot_unread(n: u64, why: &str) -> String {
    format!("snapshot {n} cannot be read: {why}")
}

/// The reason why a directory of snapshots in the store is damaged.
pub fn snapshots_of_unknown() -> String {
    "the directory of these snapshots is unknown".into()
}

/// The error for a path at which no `--force` has overwritten anything.
pub fn not_overwritten(path: &AbsPath) -> Error {
    unreadable(path, "no --force has overwritten a file there")
}

/// The error for an object without a content. `sort`: the word for what it is.
pub fn no_content(path: &AbsPath, sort: &str) -> Error {
    unreadable(path, &format!("it is a {sort}, which has no content"))
}

/// The error for a content that cannot be had.
pub fn unreadable(path: &AbsPath, why: &str) -> Error {
    Error::refused(format!("{path}: {why}")).with_path(path)
}

/// The error for a session whose content was freed.
pub fn content_gone(id: &Id) -> Error {
    Error::refused(format!("session {id} is discarded, and its content is freed"))
}

/// The error for a word that means no session, and cannot be the name of a new one.
pub fn no_name(key: &str, why: &str) -> Error {
    let message = format!("no session {key:?}, and a new one cannot have that name: {why}");
    let rule = "a name begins with a letter; letters, digits, '.', '_' and '-' follow, 64 at most";
    Error::usage(message).with_remedy(rule)
}

/// The most commands that one line names.
const MOST_NAMED: usize = 2;

/// The error if a command runs in the session.
pub fn is_running(session: &Session) -> Error {
    let running = session.under_way().unwrap_or_default();
    let mut named: Vec<String> = running.iter().take(MOST_NAMED).map(UnderWay::says).collect();
    let more = running.len() - named.len();
    named.extend((more > 0).then(|| format!("{more} more run in it")));
    let named = if named.is_empty() { "a command is running in it".to_owned() } else { named.join("; ") };
    let message = format!("cannot go on in session {}: {named}", session.id().tail());
    Error::new(Kind::Busy, message).with_remedy(let_end(session.id(), &running))
}

/// The way on where something runs in a session: a service does not end by itself.
fn let_end(id: &Id, running: &[UnderWay]) -> Remedy {
    if let [only] = running
        && let Some(name) = only.service()
    {
        return command(format_args!("run --session {} --stop {name}", id.tail())) + " ends it";
    }
    match running {
        several if several.iter().all(|one| one.service().is_some()) && !several.is_empty() => {
            command(format_args!("run --session {} --stop NAME", id.tail())) + " ends each"
        }
        _ => words("let that end first (--wait TIME waits for it), or name another session"),
    }
}

/// The error for a service that does not run in the session.
pub fn no_service(id: &Id, name: &str, running: &[UnderWay]) -> Error {
    let names: Vec<&str> = running.iter().filter_map(|one| one.service()).collect();
    let others = if names.is_empty() { String::new() } else { format!("; {} runs", names.join(", ")) };
    Error::refused(format!("no service {name} runs in session {}{others}", id.tail())).without_state()
}

/// The error for services that somebody has to stop first.
pub fn services_run(busy: Error, id: &Id, services: &[UnderWay]) -> Error {
    let stop = |name: &str| command(format_args!("run --session {} --stop {name}", id.tail()));
    let remedy = match services {
        [only] => "-y stops it first, as " + stop(only.service().unwrap_or("NAME")) + " does",
        _ => "-y stops them first, as " + stop("NAME") + " does each",
    };
    busy.with_state("nothing was changed").with_remedy(remedy)
}

/// The error for an agent that would stop what a person began.
pub fn a_persons_service(variable: &str, id: &Id, service: &UnderWay) -> Error {
    let name = service.service().unwrap_or_default();
    let stop = command(format_args!("run --session {} --stop {name}", id.tail()));
    let what = format!("a person began {name} in session {} (since {})", id.tail(), service.since());
    let error = Error::new(Kind::Busy, format!("refused to an agent ({variable} is set): {what}"));
    error.with_remedy("in your own terminal: " + stop)
}

/// The error for what a command cannot have in a run that it joins.
pub fn cannot_join(session: &Session, what: &str) -> Error {
    let message = format!("cannot join the command that runs in session {} with {what}", session.id().tail());
    let running = session.under_way().unwrap_or_default();
    Error::new(Kind::Busy, message).with_remedy(let_end(session.id(), &running))
}

/// The reason why no command can go on in a session, and what to do instead.
pub fn refusal(header: &Header, in_memory: bool) -> Option<(&'static str, Remedy)> {
    let tail = header.id.tail();
    let another = || words("name another session: --session NAME begins it");
    let first = || command(format_args!("commit {tail}")) + " makes it real first; or " + another();
    match header.status() {
        Status::RolledBack if header.origin == Origin::Captured && header.may_reopen() && !in_memory => None,
        Status::Pending if header.imported.is_some() => Some(("it was imported", first())),
        Status::Pending if header.origin == Origin::Staged => Some(("it was staged by hand", first())),
        Status::Pending if in_memory => Some(("its run was in memory, as the store's file system cannot hold one", first())),
        Status::Pending => None,
        Status::Committed => Some(("it is committed", another())),
        Status::RolledBack => Some(("it is rolled back", another())),
        Status::Discarded => {
            let (why, remedy) = header.why_discarded();
            Some((why, remedy.map_or_else(another, |remedy| remedy + "; " + another())))
        }
        Status::Running => Some(("a command is running in it", another())),
    }
}

/// The error for a session whose steps cannot be gone on from.
pub fn cannot_go_on(header: &Header, want: Want, why: &str, remedy: Remedy) -> Error {
    let (act, id) = (
        match want {
            Want::Rewind => "rewind",
            Want::Fork => "fork",
            _ => "go on in",
        },
        &header.id,
    );
    let problem = Error::refused(format!("cannot {act} session {id}: {why}"));
    // Another session is no remedy for one that is to be rewound.
    let shows = || command(format_args!("diff {} --step N", id.tail())) + " still shows what a step changed";
    let has_steps = matches!(header.status(), Status::Committed | Status::RolledBack);
    match want {
        Want::GoOn => problem.with_remedy(remedy),
        _ if has_steps && header.origin == Origin::Captured => problem.with_remedy(shows()),
        _ => problem,
    }
}

/// Adds that a command can go on in the session which has the name.
pub fn or_go_on(error: Error, name: &str) -> Error {
    let goes_on = command(format_args!("run --session {name} -- COMMAND"));
    error.with_remedy(goes_on + " goes on in it; or take another name")
}

/// The error if a signal asked to stop before the first effect.
pub fn asked_to_stop(asked: impl Display) -> Error {
    Error::refused(asked.to_string())
}

/// The error for a name that a session cannot have.
pub fn bad_name(name: &str, why: &str) -> Error {
    Error::usage(format!("{name:?} cannot be a session's name: {why}"))
}

/// The error for a session without a record of its run.
pub fn has_no_steps(id: &Id) -> Error {
    Error::refused(format!("session {id} has no steps"))
}

/// The error for a step that leaves nothing.
pub fn nothing_to_begin_with(id: &Id, step: u32) -> Error {
    let begins = command("run --session NAME -- COMMAND");
    let held = format!("step {step} of session {id} holds nothing to begin a session with");
    Error::refused(held).with_remedy(begins + " begins one")
}

/// The error if what a patch is written to fails.
pub fn patch_unwritten(error: std::io::Error) -> Error {
    Error::refused(format!("cannot write the patch: {}", crate::error::reason(&error))).with_source(error)
}
