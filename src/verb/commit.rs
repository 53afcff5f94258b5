//! `commit`: what a session holds becomes real, all or a part. A part becomes a session of its own, committed at once; the rest goes on, made
//! of what is on the tree then.
//!
//! ```text
//! open  the session, locked (a dry run: to look at)             asks: last, if others acted on it
//! share ┬ own paths                                             asks: --patch, block by block
//!       └ a part ── merge ── with its names and directories ──┐ asks: failed, unseen steps
//! own  (all):  steps left behind, merge, deadline             │ asks: steps left behind
//!              └ act::on_session ── engine ── Acted           │
//! commit_part: pieces ── a session of them ── act::carry_out ─┴ told to the session that it left ── Acted
//! ```

use std::collections::BTreeSet;

use super::act::acted::{Acted, PartOf};
use super::act::carry_out::on_session;
use super::act::carry_out::{Act, Conflicts};
use super::act::deadline;
use super::act::merge::{self, Merged};
use super::act::steps_behind::Behind;
use super::desk::Desk;
use super::error;
use super::fact::Fact;
use super::parts::picks;
use super::parts::piece::{self, Bytes, Committed, Piece, Terms};
use super::parts::select::{self, Selection, Way};
use super::policy::{self, Judged, Waits};
use super::question::{Choosing, Question};
use super::resolve::acts_of_others;
use super::resolve::target::{Target, What};
use super::resolve::wanted_act::Want;
use super::summary;
use crate::capture::{Rest, may_choose};
use crate::commit::refuse_unsynced;
use crate::compare::{Entries, Picked, Sources, Taken, part_of};
use crate::engine::{Effect, Report, Row, Verb};
use crate::error::Error;
use crate::fs::{AbsPath, Fs, OnSignal, interrupt};
use crate::session::{
    Change, Changes, Id, Locked, Origin, Parting, RemainingBlocks, Run, Session, Side, Store, may_part, merge_base, own_store,
};
use crate::tree::{Object, State};

/// A commit that is asked for.
#[derive(Debug, Clone)]
pub struct Commit {
    pub(crate) of: Target,
    /// True if it goes on over conflicts.
    pub(crate) force: bool,
    /// True if what somebody has changed since is merged with first.
    pub(crate) merge: bool,
    /// True if it takes what a restart of the machine may have left incomplete, too.
    pub(crate) accept_unsynced: bool,
    /// Seconds after which it is rolled back unless somebody confirms it.
    pub(crate) within: Option<i64>,
}

impl Commit {
    /// Commits this, without options.
    pub fn of(of: Target) -> Self {
        Self { of, force: false, merge: false, accept_unsynced: false, within: None }
    }

    /// Goes on over conflicts where possible. What is there is kept, as the original that a rollback restores.
    pub fn force(self) -> Self {
        Self { force: true, ..self }
    }
}

/// The way in which a session is committed.
enum Share {
    /// By its own commit: these paths of it, all where empty.
    Own(Vec<AbsPath>),
    /// These of its changes, by a session of their own.
    Part(Changes, Selection),
}

/// Commits a session, or the part that is asked for, all of it or nothing. Returns the act; a part becomes a session of its own. `None`: there
/// is nothing to do.
///
/// # Errors
/// [`Kind::Refused`](crate::Kind::Refused): no session is meant, or it does not hold what is named; it waits to be confirmed; or
/// something is impossible: no right, no room, an immutable file, a mount. `Conflict`: the tree does not hold what was expected;
/// [`Error::against`] has the paths. `Damaged`: content in the store is not what was put there. `Busy`: another works in the session or the
/// store. `Stuck`: an operation that was cut off could not be recovered. `LeftOut`: it was just recovered, but not everywhere.
pub fn commit(desk: &Desk, call: &Commit) -> Result<Option<Acted>, Error> {
    desk.collected.replace(Some(Vec::new()));
    let (store, mut session) = call.of.open(desk, Want::Commit)?;
    match share(desk, call, store, &session)? {
        Share::Own(paths) => {
            ask_before(desk, store, &session, call)?;
            own(desk, store, &mut session, call, paths)
        }
        Share::Part(changes, selection) => part(desk, store, &mut session, call, (changes, selection)),
    }
}

/// The end of an agent's commit by its person's policy.
pub struct ByPolicy {
    /// The commit of all that fitted; `None` if nothing did.
    pub acted: Option<Acted>,
    /// The changes that wait for the person.
    pub waits: Vec<Waits>,
    /// The session that holds it, and the step at which that stands.
    pub session: Id,
    pub step: Option<u32>,
}

/// Commits what a person's policy allows an agent of what it asks for. The rest stays in the session.
///
/// # Errors
/// Those of [`commit`].
pub fn by_policy(desk: &Desk, call: &Commit) -> Result<ByPolicy, Error> {
    let desk = &desk.unanswered();
    let (store, mut session) = call.of.open(desk, Want::Commit)?;
    let _counting = store.policy_lock(&desk.fs, || desk.say_waiting(store))?;
    let changes = session.changes()?;
    let judged = judge(desk, store, &session, &changes, call)?;
    let waits = judged.waits(&changes);
    let call = Commit { of: Target { policy: judged.globs(), ..call.of.clone() }, ..call.clone() };
    let acted = match judged.fit() {
        0 => None,
        _ => part(desk, store, &mut session, &call, (changes, judged.selection()))?,
    };
    let step = (session.header.origin == Origin::Captured).then(|| session.header.head());
    Ok(ByPolicy { acted, waits, session: session.id().clone(), step })
}

/// Judges what an agent would commit by its person's policy.
///
/// # Errors
/// Those of [`commit`].
pub fn foreseen(desk: &Desk, call: &Commit) -> Result<(u64, Vec<Waits>), Error> {
    let (store, session) = call.of.open(desk, Want::Commit)?;
    let changes = session.changes()?;
    let judged = judge(desk, store, &session, &changes, call)?;
    Ok((judged.fit(), judged.waits(&changes)))
}

fn judge(desk: &Desk, store: &Store, session: &Locked, changes: &Changes, call: &Commit) -> Result<Judged, Error> {
    let paths = call.of.paths(store, session, Verb::Commit)?;
    if let Some(path) = paths.iter().find(|path| changes.under(path).is_empty()) {
        return Err(error::not_in_session(session.id(), changes, path));
    }
    let asked: BTreeSet<usize> = paths.iter().flat_map(|path| changes.under(path)).collect();
    let asked = if paths.is_empty() { (0..changes.list.len()).collect() } else { asked.into_iter().collect() };
    policy::judge(desk, store, session, changes, asked)
}

/// Commits the named paths of a session by its own commit, so that it is half in, also where a part would become a session. For recant's own
/// tests: sessions that earlier versions made are so.
///
/// # Errors
/// Those of [`commit`].
#[cfg(feature = "crash-points")]
pub fn commit_half(desk: &Desk, call: &Commit) -> Result<Option<Acted>, Error> {
    let (store, mut session) = call.of.open(desk, Want::Commit)?;
    let paths = call.of.paths(store, &session, Verb::Commit)?;
    own(desk, store, &mut session, call, paths)
}

fn share(desk: &Desk, call: &Commit, store: &Store, session: &Locked) -> Result<Share, Error> {
    if matches!(call.of.what, What::All | What::Moved(_)) {
        return Ok(Share::Own(Vec::new()));
    }
    if session.header.freed {
        return Err(error::content_gone(session.id()));
    }
    if !matches!(call.of.what, What::Beside(_)) {
        refuse_unsynced(session, call.accept_unsynced)?;
    }
    let changes = session.changes()?;
    let of_picks = |picked: &Picked| picks::selection(picked, session, &changes);
    let selection = match &call.of.what {
        What::Beside(picked) => of_picks(picked)?,
        What::Picked(picked) if picks::is_part(picked, session, &changes)? => of_picks(picked)?,
        What::Asked(_) => blocks(desk, call, session, &changes)?,
        What::Named(words) if select::names_blocks(words, &changes)? => blocks(desk, call, session, &changes)?,
        what => {
            let paths = call.of.paths(store, session, Verb::Commit)?;
            // What is not in the session is refused by its own commit.
            let is_held = paths.iter().all(|path| !changes.under(path).is_empty());
            if !may_part(&session.header) || !is_held || what.picked().is_some() {
                return Ok(Share::Own(paths));
            }
            paths.iter().flat_map(|path| changes.under(path)).map(|i| (i, Taken::Whole)).collect()
        }
    };
    Ok(Share::Part(changes, selection))
}

/// The blocks that are named, or that the person takes when asked.
fn blocks(desk: &Desk, call: &Commit, session: &Locked, changes: &Changes) -> Result<Selection, Error> {
    if call.merge {
        return Err(error::merges_whole());
    }
    let sides = session.sides(changes.list.len())?;
    let mut sources = Sources::of(session)?;
    match &call.of.what {
        What::Asked(words) => desk.choose(Choosing::of(Want::Commit, session.id(), (changes, &sides), words)?, &mut sources),
        what => select::named(session.id(), (changes, &sides), what.words(), &mut sources),
    }
}

/// Commits a session itself.
fn own(desk: &Desk, store: &Store, session: &mut Locked, call: &Commit, mut paths: Vec<AbsPath>) -> Result<Option<Acted>, Error> {
    let dry_run = call.of.dry_run;
    call.of.note_purpose(session);
    let behind = say_behind(desk, session, dry_run)?;
    let merged = if call.merge { merge::merge(desk, store, session, dry_run, &mut paths)? } else { Merged::default() };
    if !merged.rows.is_empty() && paths.is_empty() {
        return Ok(Some(all_merged(session, merged.rows)));
    }
    let within = match call.within.filter(|_| !dry_run) {
        Some(seconds) if deadline::arm(desk, store, session, seconds)? => Some(seconds),
        _ => None,
    };
    let conflicts = if call.force { Conflicts::Force } else { Conflicts::LeaveMinor };
    let act = Act { accept_unsynced: call.accept_unsynced, only: call.of.what.moved(), ..call.of.act(desk, conflicts) };
    let done = on_session(desk, store, session, &paths, call.of.effect(), &act);
    let waiting = within.and_then(|seconds| deadline::begin(desk, store, session, seconds));
    let (mut report, rest) = done.map_err(|error| merged.refused(session, error))?;
    report.add(merged.rows);
    if session.header.is_all_in() {
        // Nothing runs in it any more.
        if let Err(error) = own_store::remove(&desk.fs, &session.dir) {
            desk.caller.tell(Fact::OwnStoreStays(&error.into()));
        }
    }
    let behind = behind.filter(|_| session.header.counts.ever_in > 0);
    Ok(Some(Acted { waiting, behind, ..Acted::of(session, report, rest) }))
}

/// Commits a session that a run has just filled.
///
/// # Errors
/// All that stands against a commit.
pub fn commit_run(desk: &Desk, store: &Store, session: &mut Locked) -> Result<Acted, Error> {
    let behind = Behind::of(session)?;
    let act = Act::new(desk, Verb::Commit, Conflicts::LeaveMinor);
    let (report, rest) = on_session(desk, store, session, &[], Effect::Apply, &act)?;
    let behind = behind.filter(|_| session.header.counts.ever_in > 0);
    Ok(Acted { behind, ..Acted::of(session, report, rest) })
}

/// Tells of the steps that the commit leaves behind while one can still be kept, and asks at a terminal; returns them where that is to be
/// said after it.
fn say_behind(desk: &Desk, session: &Session, dry_run: bool) -> Result<Option<Behind>, Error> {
    let Some(behind) = Behind::of(session)? else { return Ok(None) };
    if !dry_run && (desk.yes || !desk.can_ask) {
        return Ok(Some(behind));
    }
    let id = session.id();
    desk.caller.tell(Fact::LeavesBehind { id, behind });
    if !dry_run {
        desk.confirm(Question::CommitAtStep { id, step: session.header.head() })?;
    }
    Ok(None)
}

/// Asks before a session is committed whose newest command that changed something failed or was cut off, as it may be half of what was meant,
/// and before steps are that the person has not looked at.
fn ask_before(desk: &Desk, store: &Store, session: &Session, call: &Commit) -> Result<(), Error> {
    let is_held = session.header.discarded.is_none() && !session.header.is_all_in();
    if call.of.dry_run || desk.yes || !is_held {
        return Ok(());
    }
    // `--accept-unsynced` answers for a run that a restart cut off.
    if let Some(failed) = session.header.failed.filter(|_| !session.header.unsynced) {
        if !desk.can_ask {
            return Err(error::is_failed(session.id(), failed));
        }
        let summary = &summary::of_session(desk, store, session)?;
        desk.confirm(Question::CommitFailed { id: session.id(), failed, summary })?;
    }
    acts_of_others::ask(desk, store, session)
}

/// Commits a part of a session.
fn part(
    desk: &Desk,
    store: &Store,
    session: &mut Locked,
    call: &Commit,
    (mut changes, mut selection): (Changes, Selection),
) -> Result<Option<Acted>, Error> {
    if selection.is_empty() {
        desk.caller.tell(Fact::NothingChosen(session.id()));
        return Ok(None);
    }
    if selection.values().any(|taken| *taken != Taken::Whole) {
        may_choose(session)?;
    }
    ask_before(desk, store, session, call)?;
    let mut merged = Merged::default();
    if call.merge {
        let mut paths = selection.keys().map(|i| changes.list[*i].path.clone()).collect::<Vec<_>>();
        merged = merge::merge(desk, store, session, call.of.dry_run, &mut paths)?;
        if !merged.rows.is_empty() && paths.is_empty() {
            return Ok(Some(all_merged(session, merged.rows)));
        }
        changes = session.changes()?;
        let index = |path: &AbsPath| changes.list.binary_search_by(|change| change.path.cmp(path)).ok();
        selection = paths.iter().filter_map(index).map(|i| (i, Taken::Whole)).collect();
    }
    let rows = std::mem::take(&mut merged.rows);
    rest_of_part(desk, store, session, call, (changes, selection), rows).map_err(|error| merged.refused(session, error))
}

/// Commits what of a part does not have to be merged. `merged`: what a dry run would merge of it.
fn rest_of_part(
    desk: &Desk,
    store: &Store,
    session: &mut Locked,
    call: &Commit,
    (changes, mut selection): (Changes, Selection),
    merged: Vec<Row>,
) -> Result<Option<Acted>, Error> {
    let mut notes = select::with_names(session, &changes, &mut selection)?;
    notes.extend(select::settle(&changes, Way::Forth, |_| true, &mut selection));
    if selection.is_empty() {
        notes.iter().for_each(|note| desk.caller.tell(Fact::Note(note)));
        desk.caller.tell(Fact::NothingChosen(session.id()));
        return Ok(None);
    }
    let is_whole = |selection: &Selection| selection.values().all(|taken| *taken == Taken::Whole);
    let is_beside = matches!(call.of.what, What::Beside(_));
    if !is_beside && selection.len() + merged.len() == changes.list.len() && is_whole(&selection) {
        // All there is: no part of it.
        notes.iter().for_each(|note| desk.caller.tell(Fact::Note(note)));
        // A policy is about these paths, and not about the times of directories.
        let names_paths = !call.of.policy.is_empty() || !merged.is_empty();
        let paths = selection.keys().filter(|_| names_paths).map(|i| changes.list[*i].path.clone()).collect();
        let call = Commit { merge: false, ..call.clone() };
        let mut acted = own(desk, store, session, &call, paths)?;
        acted.iter_mut().for_each(|acted| acted.report.add(merged.clone()));
        return Ok(acted);
    }
    if !may_part(&session.header) || !is_whole(&selection) {
        may_choose(session)?;
    }
    let mut acted = commit_part(desk, store, session, call, (&changes, &selection))?;
    acted.report.notes.splice(0..0, notes);
    // What a dry run would merge is of the part.
    let more = merged.len() as u64;
    acted.report.counts.changes += more;
    acted.part_of.iter_mut().for_each(|whole| whole.changes -= more);
    acted.report.add(merged);
    Ok(Some(acted))
}

/// The end of a dry run that would merge all of it.
fn all_merged(session: &Session, merged: Vec<Row>) -> Acted {
    Acted::of(session, Report::of_commit(&session.header, merged), Rest::None)
}

/// Makes a session of a part, and commits it.
fn commit_part(
    desk: &Desk,
    store: &Store,
    session: &mut Locked,
    call: &Commit,
    (changes, selection): (&Changes, &Selection),
) -> Result<Acted, Error> {
    let run = session.run()?;
    let mut sources = Sources::of(session)?;
    let taken = |(i, taken): (&usize, &Taken)| take(run.as_ref(), &changes.list[*i], taken, &mut sources);
    let (pieces, rests): (Vec<Piece>, Vec<Option<Object>>) =
        selection.iter().map(taken).collect::<Result<Vec<_>, Error>>()?.into_iter().unzip();
    // A dry run tells of the session as it would be.
    let leaves = if call.of.dry_run { rests.iter().filter(|rest| rest.is_none()).count() as u64 } else { 0 };
    let of = session.id().clone();
    let words = match &call.of.what {
        What::Beside(_) => ["agent", "run:", "own", "files", "of", of.tail()].map(str::to_owned).to_vec(),
        what => piece::words(Verb::Commit, &of, what),
    };
    let terms =
        Terms { of: session, verb: Verb::Commit, target: &call.of, words: &words, force: call.force, within: call.within };
    let note = |part: &Id, put: &[Object]| {
        let parting = parting_of(&desk.fs, session, part, (&pieces, put, rests), &words)?;
        store.note_parting(&desk.fs, session.id(), &parting)
    };
    let done = piece::commit(desk, store, &pieces, &terms, note);
    let _noting = interrupt::note(OnSignal::GoesOn);
    // Where it came to nothing, what cannot be forgotten now is when the session is locked next.
    let gone_on = session.settle_parting(&desk.fs, store);
    let Committed { id, report, waiting } = done?;
    let part_of = Some(PartOf { session: of.clone(), changes: session.header.counts.changes - leaves, is_back: false });
    let rest = Some((of, gone_on.err().map_or(Rest::None, Rest::Untold)));
    let name = session.header.name.clone();
    Ok(Acted { session: id, name, report, waiting, part_of, policy: None, behind: None, rest })
}

/// The record of what leaves the session with these pieces. `rests`: what each change leads to then; `None` for one that leaves whole.
fn parting_of(
    fs: &Fs,
    session: &Locked,
    part: &Id,
    (pieces, put, rests): (&[Piece], &[Object], Vec<Option<Object>>),
    words: &[String],
) -> Result<Parting, Error> {
    let (mut left, mut stays) = (Vec::new(), Vec::new());
    for ((piece, put), rest) in pieces.iter().zip(put).zip(rests) {
        if let Bytes::Made(content) = &piece.content {
            // A merge begins with it, where somebody edits the file now.
            merge_base::keep_bytes(fs, &session.dir, content)?;
        }
        let path = piece.change.path.clone();
        match rest {
            Some(after) => stays.push(RemainingBlocks { path, before: put.clone(), after }),
            None => left.push(path),
        }
    }
    Ok(Parting { part: part.clone(), lines: session.header.lines, words: piece::argv(words), left, stays })
}

/// The piece that is taken of a change, and the object that the rest of it leads to; `None` if there is no rest.
fn take(run: Option<&Run>, change: &Change, taken: &Taken, sources: &mut Sources<'_>) -> Result<(Piece, Option<Object>), Error> {
    let path = &change.path;
    match taken {
        Taken::Whole => {
            let after = change.after.clone();
            let content = match Session::held_at(change, Side::Never, run) {
                Some(at) if change.marks.linked || after.as_ref().is_some_and(State::is_file) => Bytes::Held(at),
                _ => Bytes::None,
            };
            Ok((Piece { change: change.clone(), after, content }, None))
        }
        Taken::Part { .. } if change.marks.linked => Err(error::names_leave_together(path)),
        Taken::Part { blocks, meta } => {
            let gone = || error::changed_meanwhile(path);
            let Entries::Text(text) = Entries::of(change, Side::Never, sources)? else { return Err(gone()) };
            let (state, content) = part_of(change, &text, blocks, *meta).ok_or_else(gone)?;
            let content = if text.is_old(&content) { Bytes::None } else { Bytes::Made(content) };
            Ok((Piece { change: change.clone(), after: Some(state), content }, Some(text.rest(change))))
        }
    }
}
