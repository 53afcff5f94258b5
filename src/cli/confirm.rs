//! `commit --confirm-within` and `confirm`: a commit that is taken back by itself unless somebody says in time that it may stay.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Serialize;

use super::problem::Problem;
use super::watcher::{self, Watcher};
use super::{Call, Ended, apply, args};
use crate::engine::job::Verb;
use crate::error::Kind;
use crate::fs::dir::Time;
use crate::session::confirm::{self, Record};
use crate::session::header::{Header, Status};
use crate::session::id::Id;
use crate::session::log;
use crate::session::store::{Locked, Store};
use crate::tree::time;

/// `{"schema":1,"session":…,"confirmed":true}`.
#[derive(Serialize)]
struct Confirmed<'a> {
    session: &'a Id,
    confirmed: bool,
}

/// What a commit says of the word that it waits for.
#[derive(Debug, Clone, Serialize)]
pub struct Awaited {
    /// Until when.
    #[serde(with = "time")]
    due: Time,
    /// Who takes it back then.
    by: String,
    /// The same for people.
    #[serde(skip)]
    told: String,
}

/// What the log says of a commit that nobody confirmed.
const LATE: &str = "not confirmed";

/// Notes durably that a commit is to be taken back, before it begins.
pub fn arm(call: &Call, store: &Store, session: &Locked, seconds: i64) -> Result<(), Problem> {
    let id = session.id();
    if session.header.counts.inside > 0 {
        let message = format!("cannot commit {id} with --confirm-within: a part of it is committed already");
        return Err(Problem::refused(message).remedy(format!("recant rollback {id}, then commit all of it")));
    }
    Ok(confirm::keep(&call.fs, store, &Record::new(&session.header, seconds))?)
}

/// What would come onto the tree beside a commit that waits for a word would go with it, confirmed by nobody.
pub fn refuse_more(store: &Store, session: &Locked, verb: Verb) -> Result<(), Problem> {
    let id = session.id();
    let waits = confirm::read(store, id)?.is_some_and(|record| record.counts(&session.header));
    if !waits || session.header.status() == Status::Committed {
        return Ok(());
    }
    let message = format!(
        "cannot {} {id}: a part of it waits to be confirmed, and the rest would be rolled back with it",
        verb.infinitive()
    );
    Err(Problem::refused(message).remedy(format!("recant confirm {id} lets it stay, recant rollback {id} takes it back")))
}

/// Once it is committed the time begins, and somebody watches it. It is done by then, whatever goes wrong here: what was noted
/// before the commit has it taken back, if a little sooner.
pub fn begin(call: &Call, store: &Store, session: &Locked, seconds: i64) -> Awaited {
    // Its own generation is sealed by now.
    let mut record = Record { generation: session.header.generation, ..Record::new(&session.header, seconds) };
    let keep = |record: &Record| {
        if let Err(error) = confirm::keep(&call.fs, store, record) {
            call.out.warn(format_args!("{error}: the time that was noted before the commit counts"));
        }
    };
    keep(&record);
    let watcher = watcher::start(&store.path, session.id(), seconds);
    record.by = Some(watcher.word());
    keep(&record);
    Awaited { due: record.due, by: watcher.word(), told: watcher.told() }
}

impl Awaited {
    /// For people.
    pub fn say(&self, call: &Call, id: &Id) {
        let until = local(self.due);
        call.out.note(format_args!("session {id} is rolled back at {until} unless confirmed: recant confirm {}", id.tail()));
        call.out.note(&self.told);
    }
}

/// A commit that came to nothing waits for no word. One that may have been sealed does.
pub fn disarm(call: &Call, store: &Store, id: &Id) -> Result<(), Problem> {
    let Some(record) = confirm::read(store, id)? else { return Ok(()) };
    let sealed = store.session(id).map_or(true, |session| session.header.generation >= record.generation);
    let interrupted = crate::engine::recover::interrupted(store)?.contains(id);
    if sealed || interrupted { Ok(()) } else { Ok(confirm::drop_record(&call.fs, store, id)?) }
}

/// What is not on the tree waits for no word: before a commit, and after a rollback.
pub fn settle(call: &Call, store: &Store, header: &Header) -> Result<(), Problem> {
    if header.counts.inside > 0 || !confirm::waiting(store)?.contains(&header.id) {
        return Ok(());
    }
    Ok(confirm::drop_record(&call.fs, store, &header.id)?)
}

/// Says that a commit may stay; or watches over one.
pub fn confirm(call: &Call, args: &args::Confirm) -> Result<Ended, Problem> {
    if args.watch {
        return watch(call, &args.id);
    }
    let store = call.store_with(&args.id)?;
    let id = call.find(store, Some(&args.id))?;
    let (store, session) = call.locked(id.as_str())?;
    if !confirm::read(store, &id)?.is_some_and(|record| record.counts(&session.header)) {
        return Err(nothing_waits(store, &id)?);
    }
    stay(call, store, &session)
}

fn stay(call: &Call, store: &Store, session: &Locked) -> Result<Ended, Problem> {
    let id = session.id();
    confirm::drop_record(&call.fs, store, id)?;
    note(call, store, &session.header, "done", session.header.counts.inside)?;
    if call.out.is_text() {
        call.out.note(format_args!("session {id} is confirmed: it stays; recant rollback {} takes it back", id.tail()));
    } else {
        call.out.document(&Confirmed { session: id, confirmed: true });
    }
    Ok(Ended::Done)
}

fn nothing_waits(store: &Store, id: &Id) -> Result<Problem, Problem> {
    let (entries, _) = log::read(store)?;
    let last = entries.iter().rev().find(|entry| entry.session == *id && entry.verb == "confirm");
    Ok(match last.filter(|entry| entry.result == LATE) {
        Some(entry) => {
            let message = format!("session {id} was not confirmed in time");
            let mut problem = Problem::new(Kind::Refused, message).remedy(format!("recant redo {id} commits it again"));
            problem.state = Some(format!("it was rolled back at {}", local(entry.time)));
            problem
        }
        None => Problem::refused(format!("session {id} waits for no confirmation"))
            .remedy(format!("recant commit {id} --confirm-within 5m is what waits for one")),
    })
}

fn note(call: &Call, store: &Store, header: &Header, result: &str, paths: u64) -> Result<(), Problem> {
    let entry = log::Entry::new("confirm", &header.id, header.generation, result, paths);
    Ok(log::append(&call.fs, store, &entry)?)
}

/// Waits until a commit is confirmed, or takes it back when the time is over.
fn watch(call: &Call, key: &str) -> Result<Ended, Problem> {
    let Some(id) = Id::parse(key) else { return Err(Problem::refused(format!("{key:?} is no session's id"))) };
    // The terminal that the commit was made at may go.
    let _refused_to_a_leader = rustix::process::setsid();
    call.out.line("watching");
    call.out.flush();
    let store = call.store_with(key)?;
    loop {
        let Some(record) = confirm::read(store, &id)? else { return Ok(Ended::Done) };
        let left = record.left();
        let left = Duration::new(u64::try_from(left.s).unwrap_or(0), left.ns);
        if left.is_zero() {
            match take_back_one(call, store, &id) {
                // Somebody is at work in it: it is asked again.
                Ok(Taken::Busy) => std::thread::sleep(Duration::from_millis(200)),
                Ok(_) => return Ok(Ended::Done),
                Err(problem) => return Err(problem),
            }
        }
        // In between the word may come.
        std::thread::sleep(left.min(Duration::from_millis(500)));
    }
}

/// What became of an overdue commit.
enum Taken {
    /// It is taken back, or waits for nothing.
    Back,
    /// Another recant is at work in it.
    Busy,
    /// It cannot be taken back; the record says why.
    Not,
}

/// Takes back what was not confirmed in time, in a line each: before a verb that changes something.
pub fn take_back_overdue(call: &Call) -> Result<(), Problem> {
    // One look where nothing was ever waited for, which is the most frequent case.
    let path = call.store_path()?;
    if !path.as_path().join("unconfirmed").exists() {
        return Ok(());
    }
    let Some(store) = &Store::open(&path)? else { return Ok(()) };
    for id in confirm::waiting(store)? {
        let due = match confirm::read(store, &id) {
            Ok(record) => record.is_some_and(|record| record.is_due()),
            Err(error) => {
                call.out.warn(format_args!("{error}: whether session {id} was confirmed cannot be told"));
                false
            }
        };
        if due && let Err(problem) = take_back_one(call, store, &id) {
            // The verb is about something else.
            call.out.warn(format_args!("session {id} was not confirmed in time, and stays: {}", problem.message));
        }
    }
    Ok(())
}

fn take_back_one(call: &Call, store: &Store, id: &Id) -> Result<Taken, Problem> {
    let mut session = match store.lock_session(&call.fs, id) {
        Ok(session) => session,
        Err(crate::session::Error::Unknown { .. }) => {
            confirm::drop_record(&call.fs, store, id)?;
            return Ok(Taken::Back);
        }
        Err(crate::session::Error::Busy { .. }) => return Ok(Taken::Busy),
        Err(error) => return Err(error.into()),
    };
    // An operation that was cut off: its recovery decides whether it was committed at all.
    if call.prepare_to_change(store)? {
        session.set_header(store.session(id)?.header);
    }
    // Read once more under the lock: the word may have come.
    let Some(record) = confirm::read(store, id)?.filter(|record| record.is_due()) else { return Ok(Taken::Back) };
    if !record.counts(&session.header) {
        settle(call, store, &session.header)?;
        return Ok(Taken::Back);
    }
    let failed = match apply::take_back(call, store, &mut session) {
        Ok(report) => {
            note(call, store, &session.header, LATE, report.rows.len() as u64)?;
            let taken = format!("session {id} was not confirmed by {}: rolled back", local(record.due));
            if report.left.is_empty() {
                call.out.warn(format_args!("{taken}, {} taken back", report.rows.len()));
                settle(call, store, &session.header)?;
                return Ok(Taken::Back);
            }
            call.out.warn(format_args!("{taken} but for {} left; recant status names them", report.left.len()));
            report.left.iter().map(|(path, why)| format!("{path}: {why}")).collect::<Vec<_>>()
        }
        Err(problem) if problem.kind == Kind::Busy => return Ok(Taken::Busy),
        Err(problem) => {
            let paths = problem.paths.iter().map(|against| format!("{}: {}", against.path, against.why));
            let failed: Vec<String> = if problem.paths.is_empty() { vec![problem.message.clone()] } else { paths.collect() };
            call.out.warn(format_args!(
                "session {id} was not confirmed by {}, and stays: {}",
                local(record.due),
                problem.message
            ));
            failed
        }
    };
    if failed != record.failed {
        note(call, store, &session.header, "left", failed.len() as u64)?;
        confirm::keep(&call.fs, store, &Record { failed, ..record })?;
    }
    Ok(Taken::Not)
}

/// A row of `status`.
#[derive(Serialize)]
pub struct Waiting {
    session: Id,
    #[serde(with = "time")]
    due: Time,
    overdue: bool,
    by: Option<String>,
    failed: Vec<String>,
}

/// The commits that wait for a word, for `status`.
pub fn waiting(call: &Call, store: &Store) -> Result<Vec<Waiting>, Problem> {
    let mut rows = Vec::new();
    for id in confirm::waiting(store)? {
        match (confirm::read(store, &id), store.session(&id)) {
            (Ok(Some(record)), Ok(session)) if record.counts(&session.header) => rows.push(Waiting {
                overdue: record.is_due(),
                due: record.due,
                by: record.by,
                failed: record.failed,
                session: id,
            }),
            (Err(error), _) => call.out.warn(error),
            _ => {}
        }
    }
    Ok(rows)
}

impl Waiting {
    /// For people: what is waited for, and what is left where it came to nothing.
    pub fn lines(&self) -> Vec<String> {
        let Self { session: id, due, .. } = self;
        let first = if !self.failed.is_empty() {
            format!("{id}: not confirmed by {}, and not all of it could be taken back:", local(*due))
        } else if self.overdue {
            format!("{id}: not confirmed by {}: the next recant that changes something takes it back", local(*due))
        } else {
            format!("{id}: taken back at {} unless confirmed: recant confirm {}", local(*due), id.tail())
        };
        std::iter::once(first).chain(self.failed.iter().cloned()).collect()
    }
}

fn local(time: Time) -> String {
    super::text::time(time, true)
}

/// The watcher of a machine that has nothing else: a process of its own, without terminal and parent.
pub fn detach(store: &crate::fs::path::AbsPath, id: &Id) -> Option<Watcher> {
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new(program);
    command.arg("--store").arg(store.as_path()).args(["confirm", "--watch", id.as_str()]);
    // What a test does to one process is not meant for the other.
    command.env_remove("RECANT_STEPS").current_dir("/");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut first = [0];
    let watches = child.stdout.take()?.read(&mut first).is_ok_and(|got| got == 1);
    watches.then(|| Watcher::Process(child.id()))
}
