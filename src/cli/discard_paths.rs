//! `discard ID PATH…`: what is chosen leaves the session, and the rest is held as before.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::Serialize;

use super::call::Call;
use super::ended::Ended;
use super::{args, place, text};
use crate::capture::choice::{choose, may_choose};
use crate::capture::chosen::Choice;
use crate::engine::choose::{self, Rules};
use crate::error::{Error, command, shell_word};
use crate::fs::interrupt::{self, Asked};
use crate::fs::path::AbsPath;
use crate::session::change::Changes;
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::{Locked, Session};
use crate::session::run::Arg;
use crate::session::sides::Side;
use crate::session::store::Store;
use crate::tree::state::State;
use crate::verb::want::Want;

#[derive(Serialize)]
struct Document<'a> {
    session: &'a Id,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u32>,
    /// The paths whose changes the session holds no more.
    discarded: Vec<&'a AbsPath>,
    notes: &'a [String],
    /// The number of changes that it still holds.
    left: u64,
    dry_run: bool,
}

/// The words behind the first session, as paths of it; `None` if they are sessions too. A word is a path if the session holds a change
/// there or below it, else a session.
///
/// Errors: a word is neither, or both; some are one, some the other.
pub fn paths(call: &Call, key: &str, words: &[PathBuf]) -> Result<Option<Vec<AbsPath>>, Error> {
    if words.is_empty() {
        return Ok(None);
    }
    let (store, session) = call.locked(key, Want::Discard)?;
    if session.header.discarded.is_some() {
        return Ok(None);
    }
    let changes = session.changes()?;
    let (mut paths, mut others) = (Vec::new(), Vec::new());
    for word in words {
        let is_session = word.to_str().is_some_and(|key| key == "last" || store.find(key, |_| true).is_ok());
        let path = place::named(word, &changes)?;
        match (!changes.under(&path).is_empty(), is_session) {
            (true, false) => paths.push(path),
            (false, true) => others.push(word.to_string_lossy().into_owned()),
            (true, true) => return Err(both(&session, word, &path)),
            (false, false) => return Err(neither(&session, &changes, word, &path)),
        }
    }
    match (&paths[..], &others[..]) {
        ([], _) => Ok(None),
        (_, []) => Ok(Some(paths)),
        ([path, ..], [other, ..]) => {
            let message = format!("{other} is a session, and {path} a path of another one: each takes a call of its own");
            let [first, second] = [format!("discard {key} PATH"), format!("discard {other}")].map(command);
            Err(Error::refused(message).with_remedy(format!("{first}; {second}")))
        }
    }
}

fn both(session: &Session, word: &std::path::Path, path: &AbsPath) -> Error {
    let word = word.to_string_lossy();
    Error::refused(format!("{word} is a session, and a path of session {}", session.id().tail()))
        .with_remedy(format!("{} means the path; a whole id the session", shell_word(path.as_bytes())))
}

fn neither(session: &Session, changes: &Changes, word: &std::path::Path, path: &AbsPath) -> Error {
    let word = word.to_string_lossy();
    let nearest = choose::nearest(changes, path).map_or(String::new(), |nearest| format!("; the nearest is {nearest}"));
    Error::refused(format!("{word} is no session, and session {} holds no change there{nearest}", session.id().tail()))
        .with_remedy(command(format_args!("show {} lists what it holds", session.id().tail())))
}

/// Takes what lies at and below `paths` out of a session.
pub fn discard(call: &Call, key: &str, paths: &[AbsPath], args: &args::Discard) -> Result<Ended, Error> {
    let (store, mut session) = call.locked(key, Want::Discard)?;
    may_choose(&session)?;
    let changes = session.changes()?;
    let choose::Choice { chosen, notes } = chosen(&session, &changes, paths)?;
    let left = chosen.iter().map(|i| changes.list[*i].path.clone()).collect();
    let words = args.paths.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect();
    take_out(call, store, &mut session, Out { choices: Vec::new(), left, notes, words, args })
}

/// Changes, or parts of them, that leave a session.
pub struct Out<'a> {
    /// The files of which it holds something else then.
    pub choices: Vec<Choice>,
    /// The paths of which it holds nothing then.
    pub left: Vec<AbsPath>,
    pub notes: Vec<String>,
    /// The words behind the session, for the list of steps.
    pub words: Vec<Vec<u8>>,
    /// The call.
    pub args: &'a args::Discard,
}

/// Takes changes, or parts of them, out of a session.
pub fn take_out(call: &Call, store: &Store, session: &mut Locked, out: Out<'_>) -> Result<Ended, Error> {
    let Out { choices, left: leaves, notes, words, args: &args::Discard { dry_run, ref message, .. } } = out;
    let mut discarded: Vec<AbsPath> = choices.iter().map(|choice| choice.path.clone()).chain(leaves.iter().cloned()).collect();
    discarded.sort();
    let all = session.header.counts.changes;
    let gone = (choices.iter().filter(|choice| choice.is_none()).count() + leaves.len()) as u64;
    let (mut left, mut step) = (all - gone, None);
    if !dry_run {
        ask(call, session, discarded.len(), all)?;
        interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
        let _noting = interrupt::note(Asked::GoesOn);
        let words = self::words(session, words);
        session.for_reason(message.as_deref());
        let made = choose(&call.fs, store, session, words, (choices, leaves))?;
        (left, step) = (made.changes, made.step);
        note(call, store, session, discarded.len() as u64);
    }
    let discarded = discarded.iter().collect();
    let document = Document { session: session.id(), step, discarded, notes: &notes, left, dry_run };
    if call.out.is_text() {
        say(call, &document)
    } else {
        call.out.document(&document)
    }
    Ok(Ended::Done)
}

/// The changes at and below the paths, and those that have to go with them: other names of a file, and a directory that is to be there again.
fn chosen(session: &Session, changes: &Changes, paths: &[AbsPath]) -> Result<choose::Choice, Error> {
    let run = session.run()?;
    let is_dir = |object: &Option<State>| object.as_ref().is_some_and(State::is_dir);
    let rules = Rules {
        may: &|_| true,
        needed: &|i| is_dir(&changes.list[i].before.object) && !is_dir(&changes.list[i].after),
        lies: &|i| Session::held_at(&changes.list[i], Side::Never, run.as_ref()),
    };
    choose::choose(session, changes, paths, &rules)
}

fn ask(call: &Call, session: &Session, out: usize, all: u64) -> Result<(), Error> {
    let held = text::count(all, "held change");
    call.confirm(&format!("Discard {out} of {held} of session {}?", session.id().tail()))
}

/// The command, as the list of steps shows it.
fn words(session: &Session, words: Vec<Vec<u8>>) -> Vec<Arg> {
    let head = [&b"recant"[..], b"discard", session.id().tail().as_bytes()].map(<[u8]>::to_vec);
    head.into_iter().chain(words).map(Arg).collect()
}

fn note(call: &Call, store: &Store, session: &Locked, paths: u64) {
    let entry = log::Entry::new("discard paths", session.id(), session.header.generation, "done", paths);
    call.note_in_log(store, &entry.of_act(&session.header));
}

fn say(call: &Call, document: &Document) {
    let Document { session, step, discarded, notes, left, dry_run } = document;
    notes.iter().for_each(|note| call.out.note(note));
    let limit = call.out.limit();
    discarded.iter().take(limit).for_each(|path| call.out.say(format_args!("discarded {}", call.out.shown(path))));
    if let Some(more) = discarded.len().checked_sub(limit).filter(|more| *more > 0) {
        call.out.say(text::more(more, &command(format_args!("discard {} PATH -v lists all", session.tail()))));
    }
    let changes = text::count(discarded.len() as u64, "change");
    let (would, at) = (if *dry_run { "would be " } else { "" }, step.map_or(String::new(), |step| format!(": step {step}")));
    call.out.note(format_args!("session {}: {changes} {would}discarded, {left} still held{at}", session.tail()));
}
