//! A part that leaves a session; the rest is held as before.

use std::os::unix::ffi::OsStrExt;

use serde::Serialize;

use super::whole::{self, End, Sessions};
use crate::capture::{Choice, choose, may_choose};
use crate::compare::{Choice as Blocks, Entries, Sources, Taken};
use crate::engine::Rules;
use crate::engine::plan::choose;
use crate::error::Error;
use crate::fs::{AbsPath, OnSignal, interrupt};
use crate::session::{Arg, Change, Changes, Id, Locked, Session, Side, Store, log};
use crate::tree::State;
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::parts::picks;
use crate::verb::parts::select::{self, Selection, Way};
use crate::verb::parts::together::together;
use crate::verb::question::{Choosing, Question};
use crate::verb::resolve::named_changes::TypedPath;
use crate::verb::resolve::target::{Target, What};
use crate::verb::resolve::wanted_act::Want;

/// A discard that is asked for.
#[derive(Debug, Clone)]
pub struct Discard {
    /// The session, and what of it. The words behind it may be further sessions.
    pub of: Target,
    pub end: End,
}

/// The end of a discard.
pub enum Discarded {
    Sessions(Sessions),
    /// `None`: there is nothing to do, as was told.
    Part(Option<PartDiscarded>),
}

/// The part that left a session, or would. JSON: docs/json.md.
#[derive(Debug, Serialize)]
pub struct PartDiscarded {
    pub session: Id,
    /// The step that it is; missing in a session that was staged by hand, and in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The paths whose changes the session holds no more.
    pub discarded: Vec<AbsPath>,
    pub notes: Vec<String>,
    /// The number of changes that it still holds.
    pub left: u64,
    pub dry_run: bool,
}

/// Discards sessions, or a part of one.
///
/// # Errors
/// No session is meant, or it cannot be discarded; it does not hold what is named; the answer is no.
pub fn discard(desk: &Desk, call: &Discard) -> Result<Discarded, Error> {
    let (key, of) = (&call.of.key, &call.of);
    let sessions =
        |keys: &[String]| whole::sessions(desk, keys, call.end, of.dry_run, of.reason.as_deref()).map(Discarded::Sessions);
    if matches!(of.what, What::All | What::Moved(_)) {
        return sessions(std::slice::from_ref(key));
    }
    let (store, mut session) = desk.locked(key, Want::Discard)?;
    let changes = session.changes()?;
    let out = match &of.what {
        What::Named(words) if !select::names_blocks(words, &changes)? => match meant(key, store, &session, &changes, words)? {
            Meant::Sessions(others) => {
                drop(session);
                return sessions(&[vec![key.clone()], others].concat());
            }
            Meant::Paths(paths) => {
                may_choose(&session)?;
                let choose::Choice { chosen, notes } = chosen(&session, &changes, &paths)?;
                let left = chosen.iter().map(|i| changes.list[*i].path.clone()).collect();
                Some(Out { choices: Vec::new(), left, notes })
            }
        },
        _ => blocks(desk, call, &session, &changes)?,
    };
    out.map(|out| take_out(desk, store, &mut session, out, of)).transpose().map(Discarded::Part)
}

/// The words behind a session: paths of it, or further sessions.
enum Meant {
    Paths(Vec<AbsPath>),
    Sessions(Vec<String>),
}

/// A word is a path if the session holds a change there or below it, else a session.
///
/// Errors: a word is neither, or both; some are one, some the other.
fn meant(key: &str, store: &Store, session: &Session, changes: &Changes, words: &[TypedPath]) -> Result<Meant, Error> {
    let as_keys = |words: &[TypedPath]| words.iter().map(|word| word.typed().to_string_lossy().into_owned()).collect();
    if session.header.discarded.is_some() {
        return Ok(Meant::Sessions(as_keys(words)));
    }
    let (mut paths, mut others) = (Vec::new(), Vec::new());
    for word in words {
        let typed = word.typed();
        let is_session = typed.to_str().is_some_and(|key| key == "last" || store.find(key, |_| true).is_ok());
        let path = changes.named(word.path())?;
        match (!changes.under(&path).is_empty(), is_session) {
            (true, false) => paths.push(path),
            (false, true) => others.push(typed.to_string_lossy().into_owned()),
            (true, true) => return Err(error::session_and_path(session.id(), typed, &path)),
            (false, false) => {
                return Err(error::neither(session.id(), typed, choose::nearest(changes, &path)));
            }
        }
    }
    match (&paths[..], &others[..]) {
        ([], _) => Ok(Meant::Sessions(others)),
        (_, []) => Ok(Meant::Paths(paths)),
        ([path, ..], [other, ..]) => Err(error::sessions_and_paths(key, path, other)),
    }
}

/// Changes, or parts of them, that leave a session.
struct Out {
    /// The files of which it holds something else then.
    choices: Vec<Choice>,
    /// The paths of which it holds nothing then.
    left: Vec<AbsPath>,
    notes: Vec<String>,
}

/// The blocks that are named, picked, or taken by the person who is asked. `None` if that is nothing.
fn blocks(desk: &Desk, call: &Discard, session: &Locked, changes: &Changes) -> Result<Option<Out>, Error> {
    may_choose(session)?;
    let mut selection = selected(desk, call, session, changes)?;
    let mut notes = select::with_names(session, changes, &mut selection)?;
    notes.extend(select::settle(changes, Way::Back, |_| true, &mut selection));
    if selection.is_empty() {
        notes.iter().for_each(|note| desk.caller.tell(Fact::Note(note)));
        desk.caller.tell(Fact::NothingChosen(session.id()));
        return Ok(None);
    }
    let (mut choices, mut left) = (Vec::new(), Vec::new());
    let mut sources = Sources::of(session)?;
    for (i, taken) in &selection {
        match taken {
            Taken::Whole => left.push(changes.list[*i].path.clone()),
            Taken::Part { blocks, meta } => choices.push(without(session, &changes.list[*i], (blocks, *meta), &mut sources)?),
        }
    }
    Ok(Some(Out { choices, left, notes }))
}

fn selected(desk: &Desk, call: &Discard, session: &Locked, changes: &Changes) -> Result<Selection, Error> {
    if let Some(picked) = call.of.what.picked() {
        return picks::selection(picked, session, changes);
    }
    let sides = session.sides(changes.list.len())?;
    let mut sources = Sources::of(session)?;
    match &call.of.what {
        What::Asked(words) => desk.choose(Choosing::of(Want::Discard, session.id(), (changes, &sides), words)?, &mut sources),
        what => select::named(session.id(), (changes, &sides), what.words(), &mut sources),
    }
}

/// The file that a session holds at a path once blocks of its change have left it.
fn without(
    session: &Locked,
    change: &Change,
    (blocks, meta): (&Blocks, bool),
    sources: &mut Sources<'_>,
) -> Result<Choice, Error> {
    let path = &change.path;
    if change.marks.linked || change.marks.link_broken {
        return Err(error::names_discard_together(session.id(), path));
    }
    let gone = || error::changed_meanwhile(path);
    let Entries::Text(text) = Entries::of(change, Side::Never, sources)? else { return Err(gone()) };
    let (after, content) = text.without(change, blocks, meta).ok_or_else(gone)?;
    Ok(Choice { path: path.clone(), before: change.before.clone(), after, content })
}

/// Takes changes, or parts of them, out of a session.
fn take_out(desk: &Desk, store: &Store, session: &mut Locked, out: Out, of: &Target) -> Result<PartDiscarded, Error> {
    let Out { choices, left: leaves, notes } = out;
    let mut discarded: Vec<AbsPath> = choices.iter().map(|choice| choice.path.clone()).chain(leaves.iter().cloned()).collect();
    discarded.sort();
    let (all, id) = (session.header.counts.changes, session.id().clone());
    let gone = (choices.iter().filter(|choice| choice.is_none()).count() + leaves.len()) as u64;
    let (mut left, mut step) = (all - gone, None);
    if !of.dry_run {
        desk.confirm(Question::DiscardPaths { id: &id, count: discarded.len(), held: all })?;
        interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
        let _noting = interrupt::note(OnSignal::GoesOn);
        session.for_reason(of.reason.as_deref());
        let made = choose(&desk.fs, store, session, command(session.id(), &of.what), (choices, leaves))?;
        (left, step) = (made.changes, made.step);
        let paths = discarded.len() as u64;
        let at = together(discarded.iter(), &session.changes()?, session.header.cwd.as_ref());
        let entry = log::Entry::new("discard paths", session.id(), session.header.generation, "done", paths);
        let entry = log::Entry { at, ..entry };
        desk.note_in_log(store, &entry.of_act(&session.header));
    }
    Ok(PartDiscarded { session: id, step, discarded, notes, left, dry_run: of.dry_run })
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

/// The command, as the list of steps shows it.
fn command(id: &Id, what: &What) -> Vec<Arg> {
    let patch = matches!(what, What::Asked(_) | What::Picked(_)).then_some(&b"--patch"[..]);
    let words = what.words().iter().map(|word| word.typed().as_os_str().as_bytes());
    let head = [&b"recant"[..], b"discard", id.tail().as_bytes()];
    head.into_iter().chain(patch).chain(words).map(|word| Arg(word.to_vec())).collect()
}
