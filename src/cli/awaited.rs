//! The confirmation that a commit with `--confirm-within` waits for. Its record is made before the commit begins, renewed once the
//! commit is sealed, and removed when nothing of the commit is on the tree.

use serde::Serialize;

use super::problem::Problem;
use super::watcher::{self, Watcher};
use super::{Call, text};
use crate::engine::job::Verb;
use crate::error::{Kind, recant};
use crate::fs::dir::Time;
use crate::session::confirm::{self, Record, Word};
use crate::session::header::{Header, Status};
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Locked;
use crate::session::store::Store;
use crate::tree::time;

/// The confirmation that a commit waits for, in its report.
#[derive(Debug, Clone, Serialize)]
pub struct Awaited {
    /// The deadline.
    #[serde(with = "time")]
    due: Time,
    /// Names who rolls it back at the deadline.
    by: String,
    /// `by` as a sentence for people.
    #[serde(skip)]
    told: String,
}

/// The message for a record that cannot be read, with the two ways to decide.
pub fn unreadable(id: &Id, why: &str) -> String {
    format!(
        "{why}: the rollback deadline of session {id} is unreadable; {recant} confirm {id} keeps the commit, {recant} rollback {id} takes it back",
        recant = recant()
    )
}

/// Records durably, before a commit begins, that it is to be rolled back. Returns false, with a warning, if all of it is on the tree
/// already: nothing waits then, and a caller that commits again makes no mistake.
pub fn arm(call: &Call, store: &Store, session: &Locked, seconds: i64) -> Result<bool, Problem> {
    let id = session.id();
    match session.header.status() {
        Status::Committed => {
            let waits = match Word::of(store, &session.header) {
                Word::Awaited(record) => format!("it waits to be confirmed until {}, as before", local(record.due)),
                Word::None | Word::Unreadable(_) => "it needs no confirmation".to_owned(),
            };
            call.out.warn(format_args!("session {id} is committed already: {waits}"));
            return Ok(false);
        }
        _ if session.header.counts.inside > 0 => {
            let message = format!("cannot commit {id} with --confirm-within: a part of it is committed already");
            return Err(
                Problem::refused(message).remedy(format!("{recant} rollback {id}, then commit all of it", recant = recant()))
            );
        }
        _ => {}
    }
    confirm::keep(&call.fs, store, &Record::new(&session.header, seconds))?;
    Ok(true)
}

/// Refuses to put more of a session on the tree while a part of it waits to be confirmed: it would be rolled back with that part.
pub fn refuse_more(store: &Store, session: &Locked, verb: Verb) -> Result<(), Problem> {
    let id = session.id();
    let why = match Word::of(store, &session.header) {
        _ if session.header.status() == Status::Committed => return Ok(()),
        Word::None => return Ok(()),
        Word::Awaited(_) => "a part of it waits to be confirmed, and the rest would be rolled back with it".to_owned(),
        Word::Unreadable(why) => format!("{why}: a part of it waits to be confirmed; its deadline is unreadable"),
    };
    let message = format!("cannot {} {id}: {why}", verb.infinitive());
    Err(Problem::refused(message)
        .remedy(format!("{recant} confirm {id} lets it stay, {recant} rollback {id} takes it back", recant = recant())))
}

/// Refuses to discard a session that is on the tree, or whose commit waits to be confirmed: that needs its checkpoint.
pub fn refuse_discard(store: &Store, header: &Header) -> Result<(), Problem> {
    let id = &header.id;
    let until = match Word::of(store, header) {
        Word::None => return Ok(()),
        Word::Awaited(record) => format!("until {}", local(record.due)),
        Word::Unreadable(why) => format!("until an unreadable deadline ({why})"),
    };
    let message = format!("cannot discard {id}: it is {}, and waits to be confirmed {until}", header.status().word());
    Err(Problem::refused(message).remedy(format!(
        "{recant} rollback {id} takes it back, then discard it; {recant} confirm {id} lets it stay",
        recant = recant()
    )))
}

/// Refuses to prune what an automatic rollback needs.
pub fn refuse_prune(store: &Store, header: &Header, what: &str) -> Result<(), Problem> {
    let id = &header.id;
    let why = match Word::of(store, header) {
        Word::None => return Ok(()),
        Word::Awaited(record) => {
            format!("it waits to be confirmed until {}, and could not be rolled back then", local(record.due))
        }
        Word::Unreadable(why) => format!("{why}: it waits to be confirmed; its deadline is unreadable"),
    };
    let of = if what == "session" { "session" } else { "the checkpoint of" };
    Err(Problem::refused(format!("cannot prune {of} {id}: {why}")).remedy(format!(
        "{recant} confirm {id} lets it stay, {recant} rollback {id} takes it back; then prune it",
        recant = recant()
    )))
}

/// Starts the time of a sealed commit, and its watcher. An error here is a warning: the record from before the commit has it rolled
/// back, a little sooner.
pub fn begin(call: &Call, store: &Store, session: &Locked, seconds: i64) -> Awaited {
    // Its own generation is sealed by now.
    let mut record = Record { generation: session.header.generation, ..Record::new(&session.header, seconds) };
    let keep = |record: &Record| {
        if let Err(error) = confirm::keep(&call.fs, store, record) {
            call.out.warn(format_args!("{error}: the time that was noted before the commit counts"));
        }
    };
    keep(&record);
    let watcher: Watcher = watcher::start(&store.path, session.id(), seconds);
    record.by = Some(watcher.word());
    keep(&record);
    Awaited { due: record.due, by: watcher.word(), told: watcher.told() }
}

impl Awaited {
    /// Tells the user until when to confirm, and how.
    pub fn say(&self, call: &Call, id: &Id) {
        let until = local(self.due);
        call.out.note(format_args!(
            "session {id} is rolled back at {until} unless confirmed: {recant} confirm {}",
            id.tail(),
            recant = recant()
        ));
        call.out.note(&self.told);
    }
}

/// Removes the record of a commit that came to nothing. A commit that may have been sealed keeps its record.
pub fn disarm(call: &Call, store: &Store, id: &Id) -> Result<(), Problem> {
    let Some(record) = confirm::read(store, id)? else { return Ok(()) };
    let sealed = store.session(id).map_or(true, |session| session.header.generation >= record.generation);
    let interrupted = crate::engine::recover::interrupted(store)?.contains(id);
    if sealed || interrupted { Ok(()) } else { Ok(confirm::drop_record(&call.fs, store, id)?) }
}

/// Removes the record of a session that is not on the tree: before a commit, and after a rollback.
pub fn settle(call: &Call, store: &Store, header: &Header) -> Result<(), Problem> {
    Ok(confirm::settle(&call.fs, store, header)?)
}

/// Removes the record after a rollback. An error is a warning: such a record has no effect, and goes the next time.
pub fn settle_or_say(call: &Call, store: &Store, header: &Header) {
    if let Err(problem) = settle(call, store, header) {
        let id = &header.id;
        call.out.warn(format_args!(
            "{}; session {id} was rolled back; its confirmation record could not be removed",
            problem.message
        ));
    }
}

/// Appends a line to the log.
pub fn note(call: &Call, store: &Store, id: &Id, generation: u64, result: &str, paths: u64) -> Result<(), Problem> {
    let entry = log::Entry::new("confirm", id, generation, result, paths);
    // One that cannot be read is named by its id alone.
    let session = store.session(id);
    Ok(log::append(&call.fs, store, &session.map_or(entry.clone(), |session| entry.of(&session.header)))?)
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

/// A session whose deadline is unreadable, and why.
pub type Untold = (Id, String);

/// The commits that wait to be confirmed, and those whose deadline is unreadable, for `status`. A commit whose session is unreadable is
/// listed too, as nobody rolls it back.
pub fn waiting(store: &Store) -> Result<(Vec<Waiting>, Vec<Untold>), Problem> {
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    for id in confirm::waiting(store)? {
        let counts = |record: &Record| match store.session(&id) {
            Ok(session) => record.counts(&session.header),
            Err(error) => error.kind() == Kind::Damaged,
        };
        match confirm::read(store, &id) {
            Ok(Some(record)) if counts(&record) => rows.push(Waiting {
                overdue: record.is_due(),
                due: record.due,
                by: record.by,
                failed: record.failed,
                session: id,
            }),
            Err(error) if store.session(&id).map_or(true, |session| session.header.counts.inside > 0) => {
                unreadable.push((id, error.to_string()));
            }
            _ => {}
        }
    }
    Ok((rows, unreadable))
}

impl Waiting {
    /// The session that waits.
    pub fn id(&self) -> &Id {
        &self.session
    }

    /// The time of the rollback, true if that has come, and what stood against it.
    pub fn word(&self) -> (Time, bool, &[String]) {
        (self.due, self.overdue, &self.failed)
    }

    /// The time of the rollback, for people.
    pub fn until(&self) -> String {
        local(self.due)
    }

    /// Lines for people: what is waited for, and what an attempt that failed left.
    pub fn lines(&self) -> Vec<String> {
        let Self { session: id, due, .. } = self;
        let first = if !self.failed.is_empty() {
            format!("{id}: not confirmed by {}, and not all of it could be taken back:", local(*due))
        } else if self.overdue {
            format!("{id}: not confirmed by {}: the next recant that changes something takes it back", local(*due))
        } else {
            format!("{id}: taken back at {} unless confirmed: {recant} confirm {}", local(*due), id.tail(), recant = recant())
        };
        std::iter::once(first).chain(self.failed.iter().cloned()).collect()
    }
}

/// A time in the local time zone.
pub fn local(time: Time) -> String {
    text::time(time, true)
}
