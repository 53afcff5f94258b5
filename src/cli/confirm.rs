//! `commit --confirm-within` and `confirm`: a commit that is rolled back unless somebody confirms it in time.
//!
//! The deadline is in the session's header, sealed with the commit. An empty file `unconfirmed/<id>` in the store, made before the commit
//! begins, only saves reading all headers: each verb that changes something looks there first, and removes those that stand for nothing.
//! A watcher does it at the deadline itself: a timer of systemd, or a process of recant's own.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Serialize;

use super::call::Call;
use super::ended::Ended;
use super::{args, text};
use crate::engine::report::Report;
use crate::error::{Error, Kind, command};
use crate::fs::dir::Time;
use crate::session::deadline::Deadline;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Locked;
use crate::session::store::Store;
use crate::tree::time;
use crate::verb::want::Want;

const DIRECTORY: &[u8] = b"unconfirmed";
/// The log's result of a commit that nobody confirmed.
const LATE: &str = "not confirmed";

/// Rolls all of a session back.
type Rollback = fn(&Call, &Store, &mut Locked) -> Result<Report, Error>;

/// A commit that waits, for `status` and for the report of that commit.
#[derive(Debug, Clone, Serialize)]
pub struct Waiting {
    pub session: Id,
    #[serde(with = "time")]
    pub due: Time,
    pub overdue: bool,
    pub by: Option<String>,
    pub failed: Vec<String>,
}

impl Waiting {
    fn of(header: &Header) -> Option<Self> {
        let Deadline { due, by, failed, .. } = header.waits()?.clone();
        Some(Self { session: header.id.clone(), due, overdue: header.waits()?.is_over(), by, failed })
    }

    pub fn until(&self) -> String {
        text::time(self.due, true)
    }

    pub fn lines(&self) -> Vec<String> {
        let (id, until) = (&self.session, self.until());
        let first = if !self.failed.is_empty() {
            format!("{id}: not confirmed by {until}, and not all of it could be taken back:")
        } else if self.overdue {
            format!("{id}: not confirmed by {until}: the next recant that changes something takes it back")
        } else {
            format!("{id}: taken back at {until} unless confirmed: {}", command(format_args!("confirm {}", id.tail())))
        };
        std::iter::once(first).chain(self.failed.iter().cloned()).collect()
    }
}

/// The commits that wait to be confirmed. Costs one look if none ever did.
pub fn waiting(store: &Store) -> Result<Vec<Waiting>, Error> {
    let headers = marked(store)?.into_iter().filter_map(|id| Some(store.session(&id).ok()?.header));
    Ok(headers.filter_map(|header| Waiting::of(&header)).collect())
}

fn marked(store: &Store) -> Result<Vec<Id>, Error> {
    let dir = match store.dir.open_below(DIRECTORY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        dir => dir?,
    };
    Ok(dir.names()?.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect())
}

/// Makes the commit that is about to begin one that waits. False, with a warning, if all of it is on the tree already.
pub fn arm(call: &Call, store: &Store, session: &mut Locked, seconds: i64) -> Result<bool, Error> {
    let id = session.id().clone();
    if session.header.is_all_in() {
        call.out.warn(format_args!("session {id} is committed already: there is nothing to confirm"));
        return Ok(false);
    }
    if session.header.counts.inside > 0 {
        let message = format!("cannot commit {id} with --confirm-within: a part of it is committed already");
        return Err(
            Error::refused(message).with_remedy(format!("{}, then commit all of it", command(format_args!("rollback {id}"))))
        );
    }
    let at = store.dir.at(DIRECTORY);
    match call.fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    // Durable before the seal: no verb would look for the deadline. (Directory: not caught here, the model's commits wait for nobody.)
    call.fs.sync_dir(&store.dir)?; // D3
    call.fs.replace(at.open_dir()?.at(id.as_str().as_bytes()), b"")?;
    session.set_header(Header { deadline: Some(Deadline::within(seconds)), ..session.header.clone() });
    Ok(true)
}

/// Starts the time of a sealed commit anew, and its watcher. An error is a warning: the deadline from before the commit counts.
pub fn begin(call: &Call, store: &Store, session: &mut Locked, seconds: i64) -> Option<Waiting> {
    session.header.waits()?;
    let by = watched_by(store, session.id(), seconds);
    let header = Header { deadline: Some(Deadline { by, ..Deadline::within(seconds) }), ..session.header.clone() };
    if let Err(error) = session.save(&call.fs, header) {
        call.out.warn(format_args!("{error}: the time that was noted before the commit counts"));
    }
    Waiting::of(&session.header)
}

/// Tells the user until when to confirm, how, and who takes it back else.
pub fn say(call: &Call, waiting: &Waiting) {
    let confirm = command(format_args!("confirm {}", waiting.session.tail()));
    call.out.note(format_args!("session {} is rolled back at {} unless confirmed: {confirm}", waiting.session, waiting.until()));
    match waiting.by.as_deref() {
        Some(by) => call.out.note(format_args!("{by} does it; after a restart the next recant that changes something")),
        None => call.out.note("no watcher could be started: the next recant that changes something does it"),
    }
}

/// Rolls back all commits that were not confirmed in time, before a verb that changes something.
pub fn take_back_overdue(call: &Call, rollback: Rollback) -> Result<(), Error> {
    let Some(store) = call.store()? else { return Ok(()) };
    for id in marked(store)? {
        let session = match store.session(&id) {
            Ok(session) => session,
            // A part of which nothing came.
            Err(error) if error.is_unknown() => {
                remove_mark(call, store, &id);
                continue;
            }
            // `status` names a session that is damaged.
            Err(_) => continue,
        };
        match session.header.waits().map(Deadline::is_over) {
            None => drop(store.lock_session(&call.fs, &id).map(|session| unmark(call, store, &session))),
            Some(false) => {}
            // The verb itself is about something else, and goes on.
            Some(true) => {
                if let Err(problem) = take_back(call, store, &id, rollback) {
                    call.out.warn(format_args!("session {id} was not confirmed in time, and stays: {}", problem.message()));
                }
            }
        }
        call.go_on("what was not confirmed in time is dealt with as said; nothing else was changed")?;
    }
    Ok(())
}

/// Removes the mark of a session, unless the recovery of a commit may still seal one that waits. One that stays goes the next time.
fn unmark(call: &Call, store: &Store, session: &Locked) {
    if session.header.waits().is_none() && store.journaled().is_ok_and(|ids| !ids.contains(session.id())) {
        remove_mark(call, store, session.id());
    }
}

fn remove_mark(call: &Call, store: &Store, id: &Id) {
    if let Ok(dir) = store.dir.open_below(DIRECTORY) {
        drop(call.fs.unlink_if_there(dir.at(id.as_str().as_bytes())));
    }
}

/// Rolls a commit back, if its time is over. False if another recant works in the session.
fn take_back(call: &Call, store: &Store, id: &Id, rollback: Rollback) -> Result<bool, Error> {
    let mut session = match store.lock_session(&call.fs, id) {
        Err(error) if error.kind() == Kind::Busy => return Ok(false),
        session => session?,
    };
    // The recovery of an operation that was cut off decides if it was committed at all.
    if !call.prepare_to_change(store)?.is_empty() {
        session.set_header(store.session(id)?.header);
    }
    let Some(deadline) = session.header.waits().filter(|deadline| deadline.is_over()).cloned() else { return Ok(true) };
    let by = text::time(deadline.due, true);
    let failed: Vec<String> = match rollback(call, store, &mut session) {
        Ok(report) => {
            let count = report.rows.len();
            call.out.warn(format_args!("session {id} was not confirmed by {by}: rolled back, {count} taken back"));
            note(call, store, &session.header, LATE, count);
            report.left.iter().map(|(path, why)| format!("{path}: {why}")).collect()
        }
        Err(problem) if problem.kind() == Kind::Busy => return Ok(false),
        Err(problem) => {
            call.out.warn(format_args!("session {id} was not confirmed by {by}, and stays: {}", problem.message()));
            let paths: Vec<String> = problem.rows().iter().map(ToString::to_string).collect();
            if paths.is_empty() { vec![problem.message().to_owned()] } else { paths }
        }
    };
    // Nobody may read what this process prints.
    if session.header.waits().is_some() && failed != deadline.failed {
        note(call, store, &session.header, "left", failed.len());
        let header = Header { deadline: Some(Deadline { failed, ..deadline }), ..session.header.clone() };
        session.save(&call.fs, header)?;
    }
    unmark(call, store, &session);
    Ok(true)
}

/// Appends a line to the log. An error is a warning: the work is done all the same.
fn note(call: &Call, store: &Store, header: &Header, result: &str, paths: usize) {
    let entry = log::Entry::new("confirm", &header.id, header.generation, result, paths as u64).of(header);
    if let Err(error) = log::append(&call.fs, store, &entry) {
        call.out.warn(format_args!("session {}: cannot record this in the log: {error}", header.id));
    }
}

/// Lets a commit stay, or watches over one.
pub fn confirm(call: &Call, args: &args::Confirm, rollback: Rollback) -> Result<Ended, Error> {
    if args.watch {
        return watch(call, &args.id, rollback);
    }
    let (store, mut session) = call.locked(&args.id, Want::Confirm)?;
    let id = session.id().clone();
    if session.header.waits().is_none() {
        return Err(nothing_waits(store, &id)?);
    }
    session.save_at_last(&call.fs, Header { deadline: None, ..session.header.clone() }, &[], &[])?;
    unmark(call, store, &session);
    note(call, store, &session.header, "done", usize::try_from(session.header.counts.inside).unwrap_or(usize::MAX));
    if call.out.is_text() {
        let back = command(format_args!("rollback {}", id.tail()));
        call.out.note(format_args!("session {id} is confirmed: it stays; {back} takes it back"));
    } else {
        call.out.document(&serde_json::json!({ "session": id, "confirmed": true }));
    }
    Ok(Ended::Done)
}

fn nothing_waits(store: &Store, id: &Id) -> Result<Error, Error> {
    let entries = log::read(store)?.entries;
    let last = entries.iter().rev().find(|entry| entry.session == *id && entry.verb == "confirm");
    let Some(late) = last.filter(|entry| entry.result == LATE) else {
        return Ok(Error::refused(format!("session {id} waits for no confirmation")));
    };
    let message = format!("session {id} was not confirmed in time, and was rolled back at {}", text::time(late.time, true));
    Ok(Error::refused(message).with_remedy(format!("{} commits it again", command(format_args!("redo {id}")))))
}

/// Waits until a commit is confirmed, or rolls it back at the deadline.
fn watch(call: &Call, key: &str, rollback: Rollback) -> Result<Ended, Error> {
    let Some(id) = Id::parse(key) else { return Err(Error::refused(format!("{key:?} is no session's id"))) };
    // The terminal of the commit may close.
    let _refused_to_a_leader = rustix::process::setsid();
    call.out.line("watching");
    call.out.flush();
    let store = call.store_with(key)?;
    while let Some(deadline) = store.session(&id)?.header.waits() {
        let left = deadline.left();
        let left = Duration::new(u64::try_from(left.s).unwrap_or(0), left.ns);
        if left.is_zero() && take_back(call, store, &id, rollback)? {
            break;
        }
        // The confirmation may come meanwhile.
        std::thread::sleep(left.clamp(Duration::from_millis(100), Duration::from_millis(500)));
    }
    Ok(Ended::Done)
}

/// Starts a watcher, and names it; `None` if none can be: a transient timer of systemd where that outlives the caller's own session, else a process.
fn watched_by(store: &Store, id: &Id, seconds: i64) -> Option<String> {
    // Tests choose.
    let only = std::env::var("RECANT_CONFIRM_BY").ok().filter(|_| cfg!(feature = "crash-points"));
    let (Ok(program), true) = (std::env::current_exe(), only.as_deref() != Some("nobody")) else { return None };
    let watch = |command: &mut Command| {
        command.arg("--store").arg(store.path.as_path()).args(["confirm", "--watch", id.as_str()]);
        // The test's settings for this process are not for that one.
        command.env_remove("RECANT_STEPS").stdin(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    };
    if only.map_or_else(has_systemd, |only| only == "systemd") {
        let unit = format!("recant-confirm-{id}");
        let mut timer = Command::new("systemd-run");
        timer.args((!rustix::process::geteuid().is_root()).then_some("--user"));
        timer.args(["--quiet", "--collect", "--timer-property=AccuracySec=1s"]);
        timer.args([format!("--unit={unit}"), format!("--on-active={seconds}s"), "--".into()]).arg(&program);
        watch(&mut timer);
        if timer.stdout(Stdio::null()).status().is_ok_and(|done| done.success()) {
            return Some(format!("systemd {unit}"));
        }
    }
    let mut process = Command::new(&program);
    watch(&mut process);
    let mut child = process.stdout(Stdio::piped()).spawn().ok()?;
    let got = child.stdout.take()?.read(&mut [0]).ok()?;
    (got == 1).then(|| format!("process {}", child.id()))
}

/// A user's systemd ends with his last session, and its timers with it, unless it was told to linger.
fn has_systemd() -> bool {
    let lingers = || std::env::var_os("USER").is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists());
    Path::new("/run/systemd/system").is_dir() && (rustix::process::geteuid().is_root() || lingers())
}
