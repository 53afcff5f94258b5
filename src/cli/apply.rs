//! `commit`, `rollback` and `redo`.

use std::cell::RefCell;
use std::path::PathBuf;

use globset::GlobSetBuilder;
use serde::Serialize;

use super::args;
use super::bar::Bar;
use super::call::Call;
use super::confirm::{self, Waiting};
use super::ended::Ended;
use super::{merge, picks, place, recovered, since, text};
use crate::capture::rejoin::{self, Rest};
use crate::checkpoint::limits::{self, Large, Limits};
use crate::commit::{self, Request};
use crate::config;
use crate::diff::shown::cut;
use crate::engine::Effect;
use crate::engine::conflict::{self, Conflict};
use crate::engine::job::{OnConflict, Verb};
use crate::engine::left_out::{Aside, Denied};
use crate::engine::minor::{self, Ask, Asked, Minor};
use crate::engine::ready;
use crate::engine::report::{Done, Report, Row};
use crate::error::{Against, Error, Kind, Reason, command, shell_word};
use crate::fs::dir::leads_nowhere;
use crate::fs::path::AbsPath;
use crate::session::act::TakesBack;
use crate::session::by::By;
use crate::session::change::Changes;
use crate::session::header::Status;
use crate::session::id::Id;
use crate::session::opened::{Locked, Session};
use crate::session::own_store;
use crate::session::store::Store;
use crate::snapshot::restore;
use crate::tree::danger::Danger;
use crate::tree::project::project_of;
use crate::verb::collect;
use crate::verb::want::Want;
use crate::verb::which;

// /
// `{"schema":2,"session":…,"verb":…,"dry_run":…,"status":…,"generation":n,"paths":[…],"skipped":[…],"notes":[…],"kept_bytes":n,"displaced":[…]}`.
#[derive(Serialize)]
struct Document<'a> {
    session: &'a Id,
    verb: &'static str,
    dry_run: bool,
    status: &'static str,
    generation: u64,
    paths: Vec<PathRow<'a>>,
    skipped: Vec<Skipped<'a>>,
    notes: Vec<String>,
    kept_bytes: u64,
    /// Paths where something was overwritten, which is kept.
    #[serde(skip_serializing_if = "<[AbsPath]>::is_empty")]
    displaced: &'a [AbsPath],
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm: Option<&'a Waiting>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part_of: Option<Whole<'a>>,
}

/// A path, what became of it, and the kind of object that it holds now, or held if nothing is there now.
#[derive(Serialize)]
struct PathRow<'a> {
    path: &'a AbsPath,
    done: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    over: bool,
    /// The reason why a person should see it first.
    #[serde(skip_serializing_if = "Option::is_none")]
    danger: Option<Danger>,
}

impl<'a> PathRow<'a> {
    fn of(verb: Verb, row: &'a Row) -> Self {
        Self { path: &row.path, done: word(verb, row.done), kind: row.kind, over: row.over, danger: row.danger }
    }
}

/// A path that was left out.
#[derive(Serialize)]
struct Skipped<'a> {
    path: &'a AbsPath,
    why: &'a str,
}

pub fn commit(call: &Call, args: &args::Commit) -> Result<Ended, Error> {
    let ask = ask_commit(call, call.config.on_limit.value, args.force, args.accept_unsynced)?;
    let of_no_weight = |session: &Locked| minor(call, session);
    let minor = if args.force { Minor::Forced } else { Minor::LeftOut(&of_no_weight) };
    carry_out(call, &args.what, Act { verb: Verb::Commit, minor, ask: &ask, within: args.confirm_within, merges: args.merge })
}

fn forced(force: bool) -> Minor<'static> {
    if force { Minor::Forced } else { Minor::Stops }
}

/// A verb and the terms of its job.
struct Act<'a> {
    verb: Verb,
    minor: Minor<'a>,
    ask: &'a Ask<'a>,
    /// Seconds after which it is rolled back unless somebody confirms it.
    within: Option<i64>,
    /// True if what somebody has changed since is merged with first.
    merges: bool,
}

#[derive(Clone, Copy)]
enum Subject<'a> {
    /// A session, and the verb that acts on it.
    Session(Verb, &'a Id),
    /// A snapshot's restore. Nobody has asked for its session, which is removed if the restore comes to nothing.
    Restore(&'a Restoring<'a>),
}

/// The act that puts back what snapshots have.
pub struct Restoring<'a> {
    /// Its words after "cannot" in a sentence.
    pub act: &'a str,
    /// Once it was refused, the paths that prevent it, if the others can be put back without these.
    pub prevented_by: RefCell<Vec<Against>>,
}

impl<'a> Restoring<'a> {
    pub fn new(act: &'a str) -> Self {
        Self { act, prevented_by: RefCell::default() }
    }
}

impl Subject<'_> {
    /// The act after "cannot" in a sentence.
    fn infinitive(self) -> String {
        match self {
            Subject::Session(verb, id) => format!("{} {id}", verb.infinitive()),
            Subject::Restore(Restoring { act, .. }) => (*act).to_owned(),
        }
    }

    /// The remedy for what another session has put there, which has to go first: or its changes are taken out around it.
    fn or_merge(self, first: String) -> String {
        match self {
            Subject::Session(Verb::Rollback, id) => {
                format!(
                    "{first}; or {} takes this one out of files alone",
                    command(format_args!("rollback {} --merge", id.tail()))
                )
            }
            Subject::Session(Verb::Commit, id) => {
                format!("{first}; or {} puts texts onto it", command(format_args!("commit {} --merge", id.tail())))
            }
            _ => first,
        }
    }

    /// The remedy for conflicts. `forcible`: --force goes on over some of them; under --force none of these are left.
    fn remedy(self, forcible: bool) -> String {
        let force = if forcible { "; --force goes on, and keeps a copy of what it overwrites" } else { "" };
        match self {
            Subject::Session(verb, id) => {
                let merge = if verb == Verb::Redo { "" } else { "; --merge goes on where texts merge" };
                format!("{} shows both sides{merge}{force}", command(format_args!("diff {} --conflicts", id.tail())))
            }
            Subject::Restore(_) => format!("try again when nobody writes there{force}"),
        }
    }
}

fn ask_commit<'c>(call: &'c Call, on_limit: config::OnLimit, force: bool, accept_unsynced: bool) -> Result<Box<Ask<'c>>, Error> {
    let denied = denied(&call.config.deny.value)?;
    Ok(Box::new(move |session, paths, aside| {
        let (on_conflict, limits) = (on_conflict(force), limits(call, on_limit));
        let denied = denied.clone();
        commit::commit(session, &Request { paths, on_conflict, limits, denied, only: None, aside, accept_unsynced })
    }))
}

pub fn redo(call: &Call, what: &args::What, force: bool) -> Result<Ended, Error> {
    let ask = ask_redo(call, what, force)?;
    carry_out(call, what, Act { verb: Verb::Redo, minor: forced(force), ask: &ask, within: None, merges: false })
}

fn ask_redo<'c>(call: &'c Call, what: &args::What, force: bool) -> Result<Box<Ask<'c>>, Error> {
    let (denied, only) = (denied(&call.config.deny.value)?, what.only.clone());
    Ok(Box::new(move |session, paths, aside| {
        let (on_conflict, limits) = (on_conflict(force), limits(call, call.config.on_limit.value));
        let (denied, only) = (denied.clone(), only.as_ref());
        commit::redo(session, &Request { paths, on_conflict, limits, denied, only, aside, accept_unsynced: true })
    }))
}

pub fn rollback(call: &Call, args: &args::Back) -> Result<Ended, Error> {
    let ask = |session: &Locked, paths: &[AbsPath], aside: &Aside| {
        crate::rollback::rollback(session, (paths, args.what.only.as_ref()), on_conflict(args.force), aside)
    };
    carry_out(call, &args.what, Act { verb: Verb::Rollback, minor: forced(args.force), ask: &ask, within: None, merges: false })
}

/// Reports what a redo would do.
pub fn would_redo(call: &Call, what: &args::What, force: bool) -> Result<Report, Error> {
    let ask = ask_redo(call, what, force)?;
    would(call, what, &Act { verb: Verb::Redo, minor: forced(force), ask: &ask, within: None, merges: false })
}

fn would(call: &Call, what: &args::What, act: &Act<'_>) -> Result<Report, Error> {
    let (store, mut session) = to_look_at(call, &what.id, act.verb.into())?;
    let paths = paths(store, &session, what, act.verb)?;
    carry_out_in(call, store, &mut session, &paths, Effect::Print, act).map(|(report, _)| report)
}

/// Reports what a rollback would do.
pub fn would_roll_back(call: &Call, args: &args::Back) -> Result<Report, Error> {
    let ask = |session: &Locked, paths: &[AbsPath], aside: &Aside| {
        crate::rollback::rollback(session, (paths, args.what.only.as_ref()), on_conflict(args.force), aside)
    };
    would(call, &args.what, &Act { verb: Verb::Rollback, minor: forced(args.force), ask: &ask, within: None, merges: false })
}

/// The session's paths that a call names.
///
/// Errors: a session is named where a path belongs.
fn paths(store: &Store, session: &Locked, what: &args::What, verb: Verb) -> Result<Vec<AbsPath>, Error> {
    if let Some(picked) = &what.picked {
        return picks::paths(picked, session, &session.changes()?);
    }
    let changes = if what.paths.is_empty() { Changes::default() } else { session.changes()? };
    let as_named = |path: &PathBuf| {
        let named = place::named(path, &changes)?;
        let is_path = !changes.under(&named).is_empty() || named.as_path().symlink_metadata().is_ok();
        match path.to_str() {
            Some(key) if !is_path && store.find(key, |_| true).is_ok() => Err(of_its_own(&what.id, key, verb)),
            _ => Ok(named),
        }
    };
    what.paths.iter().map(as_named).collect()
}

fn of_its_own(id: &str, other: &str, verb: Verb) -> Error {
    let [first, second] = [id, other].map(|key| command(format_args!("{} {key}", verb.word())));
    Error::refused(format!("{other} is a session and no path: each takes a call of its own"))
        .with_remedy(format!("{first}; {second}"))
}

fn on_conflict(force: bool) -> OnConflict {
    if force { OnConflict::Keep } else { OnConflict::Stop }
}

fn limits(call: &Call, on_limit: config::OnLimit) -> Limits {
    let on_limit = match on_limit {
        config::OnLimit::Full => limits::OnLimit::Full,
        config::OnLimit::Partial => limits::OnLimit::Partial,
    };
    Limits { max_files: call.config.max_files.value, max_size: call.config.max_size.value, on_limit }
}

/// The paths that `commit.deny` names, and all below them.
fn denied(globs: &[String]) -> Result<Denied, Error> {
    named_by("commit.deny", globs)
}

/// The paths that the globs of a setting name, and all below them.
fn named_by(key: &str, globs: &[String]) -> Result<Denied, Error> {
    let broken = |error: globset::Error| crate::engine::error::refused_at(key, error);
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(config::path_glob(glob).map_err(broken)?);
    }
    let set = set.build().map_err(broken)?;
    Ok(std::rc::Rc::new(move |path: &AbsPath| !set.is_empty() && path.as_path().ancestors().any(|path| set.is_match(path))))
}

/// The paths where a conflict does not stop a commit: places of `commit.minor`, but not where the command was meant to work. `None` for
/// staged changes: somebody named each of their paths.
fn minor(call: &Call, session: &Locked) -> Result<Option<Denied>, Error> {
    let Some(run) = session.run()? else { return Ok(None) };
    let named = named_by("commit.minor", &call.config.minor.value)?;
    let project = project_of(&run.cwd, dirs::home_dir().as_deref());
    let works_there = named(&project);
    Ok(Some(std::rc::Rc::new(move |path: &AbsPath| named(path) && !(works_there && path.is_under(&project)))))
}

/// The steps that a commit leaves behind: those that are not below the head can be gone back to only until then.
struct LeftBehind {
    count: u64,
    newest: u32,
}

impl LeftBehind {
    /// `None` if the session is committed already, cannot be, or has no such steps.
    fn of(session: &Session) -> Result<Option<Self>, Error> {
        let header = &session.header;
        if header.steps.is_none() || header.counts.ever_in > 0 || header.discarded.is_some() || header.counts.changes == 0 {
            return Ok(None);
        }
        let (list, chain) = (session.steps()?, header.chain());
        // A step at which a part left holds nothing of its own.
        let holds = |n: &u32| list.get(header, *n).is_ok_and(|step| step.parted.is_none());
        let behind: Vec<u32> = list.kept(header).into_iter().filter(|n| !chain.contains(n)).filter(holds).collect();
        Ok(behind.iter().max().map(|newest| Self { count: behind.len() as u64, newest: *newest }))
    }

    /// Says it before the commit, while a step can still be kept; at a terminal asks. Returns false if it is to be said after it.
    fn say_before(&self, call: &Call, session: &Session, dry_run: bool) -> Result<bool, Error> {
        if !dry_run && (call.yes || !call.can_ask) {
            return Ok(false);
        }
        let id = session.id().tail();
        let (count, fork) = (text::count(self.count, "step"), command(format_args!("fork {id} {}", self.newest)));
        call.out.note(format_args!("a commit leaves {count} behind: {fork} first keeps one"));
        if !dry_run {
            call.confirm(&format!("Commit session {id} at step {}?", session.header.head()))?;
        }
        Ok(true)
    }

    fn say_after(&self, call: &Call, session: &Session) {
        if session.header.counts.ever_in == 0 {
            return;
        }
        let (are, n, each) = if self.count == 1 { ("is", self.newest.to_string(), "it") } else { ("are", "N".into(), "each") };
        let (count, shows) = (text::count(self.count, "step"), command(format_args!("diff {} --step {n}", session.id().tail())));
        call.out.note(format_args!("{count} {are} left behind: {shows} still shows {each}"));
    }
}

/// Asks before a session is committed whose newest command that changed something failed or was cut off: it may be half of what was meant.
/// `--accept-unsynced` answers for a run that a restart cut off.
pub fn ask_of_failed(call: &Call, session: &Session) -> Result<(), Error> {
    let Some(failed) = session.header.failed.filter(|_| !call.yes && !session.header.unsynced) else { return Ok(()) };
    let (tail, failed) = (session.id().tail(), failed.text());
    if !call.can_ask {
        let shows = command(format_args!("diff {tail}"));
        let message = format!("session {tail}: {failed}, so it may hold half of what was meant");
        return Err(Error::refused(message).with_remedy(format!("{shows} shows it; -y commits it")));
    }
    call.confirm(&format!("Commit session {tail}, {failed}?"))
}

fn carry_out(call: &Call, what: &args::What, act: Act<'_>) -> Result<Ended, Error> {
    let dry_run = what.dry_run;
    let (store, mut session) =
        if dry_run { to_look_at(call, &what.id, act.verb.into())? } else { call.locked(&what.id, act.verb.into())? };
    picks::refuse_changed(what.picked.as_ref(), &session)?;
    what.takes_back.into_iter().for_each(|act| session.takes_back(act));
    session.for_reason(what.message.as_deref());
    let mut paths = paths(store, &session, what, act.verb)?;
    let effect = if dry_run { Effect::Print } else { Effect::Apply };
    if act.verb == Verb::Commit && !dry_run {
        ask_of_failed(call, &session)?;
        since::ask(call, store, &session)?;
    }
    let mut behind = if act.verb == Verb::Commit { LeftBehind::of(&session)? } else { None };
    if let Some(steps) = &behind
        && steps.say_before(call, &session, dry_run)?
    {
        behind = None;
    }
    if act.merges && !merge::merge(call, store, &mut session, dry_run, &mut paths)? {
        return Ok(Ended::Done);
    }
    let within = match act.within {
        Some(seconds) if confirm::arm(call, store, &mut session, seconds)? => Some(seconds),
        _ => None,
    };
    let act_on = |session: &mut Locked| carry_out_in(call, store, session, &paths, effect, &act);
    let done = match effect {
        Effect::Print => act_on(&mut session).map(|done| (done, Rest::None)),
        _ => rejoin::around(&call.fs, store, &mut session, (act.verb != Verb::Rollback, &paths), act_on),
    };
    let waiting = within.and_then(|seconds| confirm::begin(call, store, &mut session, seconds));
    let ((report, ended), rest) = done?;
    say(call, session.id(), &report, dry_run, waiting.as_ref());
    say_rest(call, &session, rest)?;
    behind.iter().for_each(|steps| steps.say_after(call, &session));
    if act.verb == Verb::Commit && session.header.is_all_in() {
        // Nothing runs in it any more.
        if let Err(error) = own_store::remove(&call.fs, &session.dir) {
            call.out.warn(format_args!("the store that its run had inside could not be removed: {error}"));
        }
    }
    Ok(ended)
}

/// The error if a session could not be told yet of what was committed of it.
pub fn untold(error: &Error, of: &str, part: &str) -> Error {
    let why = format!("session {part} is committed, and session {of} was not told yet of what left it: {error}");
    Error::new(Kind::LeftOut, why)
        .with_remedy(format!("{} tells it, as does the next verb that changes something", command("recover")))
}

/// Says what became of the session that a part left, once the part is rolled back or redone.
fn say_rest(call: &Call, part: &Session, rest: Rest) -> Result<(), Error> {
    let Some(of) = part.header.of.as_ref().map(Id::tail) else { return Ok(()) };
    let redo = command(format_args!("redo {}", part.id().tail()));
    match rest {
        Rest::None => {}
        Rest::Joined(changes) => call.out.note(format_args!("session {of} holds it again: {}", text::count(changes, "change"))),
        Rest::GoesOn(None) => call.out.note(format_args!("session {of} goes on without it: {redo} brings it back")),
        Rest::GoesOn(Some(why)) => call.out.warn(format_args!("session {of} goes on without it: {why}; {redo} brings it back")),
        Rest::Untold(why) => return Err(untold(&why, of, part.id().tail())),
    }
    Ok(())
}

/// Rolls back a commit that nobody confirmed.
pub fn take_back(call: &Call, store: &Store, session: &mut Locked) -> Result<Report, Error> {
    session.acts_by(By { agent: "deadline".into(), session: None, turn: None });
    let ask = |session: &Locked, paths: &[AbsPath], aside: &Aside| {
        crate::rollback::rollback(session, (paths, None), OnConflict::Stop, aside)
    };
    let act = Act { verb: Verb::Rollback, minor: Minor::Stops, ask: &ask, within: None, merges: false };
    let act_on = |session: &mut Locked| carry_out_in(call, store, session, &[], Effect::Apply, &act);
    let ((report, _), rest) = rejoin::around(&call.fs, store, session, (false, &[]), act_on)?;
    say_rest(call, session, rest).map(|()| report)
}

/// Commits a session that a run has just filled, as its options and the settings say.
pub fn commit_run(call: &Call, store: &Store, session: &mut Locked) -> Result<(Report, Ended), Error> {
    let ask = ask_commit(call, call.config.on_limit.value, false, false)?;
    let of_no_weight = |session: &Locked| minor(call, session);
    let minor = Minor::LeftOut(&of_no_weight);
    let behind = LeftBehind::of(session)?;
    let act = Act { verb: Verb::Commit, minor, ask: &ask, within: None, merges: false };
    let done = carry_out_in(call, store, session, &[], Effect::Apply, &act)?;
    behind.iter().for_each(|steps| steps.say_after(call, session));
    Ok(done)
}

/// The terms of a part's commit.
pub struct Terms<'a> {
    /// The session that it is taken of.
    pub of: &'a Id,
    /// For messages: the verb that was called.
    pub verb: Verb,
    pub force: bool,
    /// Seconds after which it is rolled back unless somebody confirms it.
    pub within: Option<i64>,
    /// True if recant does it by itself.
    pub beside: bool,
    /// The act that it takes back.
    pub takes_back: Option<TakesBack>,
    pub reason: Option<&'a str>,
}

/// Commits the session of a part of another one.
pub fn commit_part(call: &Call, store: &Store, session: &mut Locked, terms: &Terms<'_>, effect: Effect) -> Result<Report, Error> {
    let on_limit = if terms.verb == Verb::Commit { call.config.on_limit.value } else { config::OnLimit::Full };
    let ask = ask_commit(call, on_limit, terms.force, true)?;
    terms.takes_back.into_iter().for_each(|act| session.takes_back(act));
    session.for_reason(terms.reason);
    let act = Act { verb: Verb::Commit, minor: forced(terms.force), ask: &ask, within: None, merges: false };
    let done = carry_out_of(call, store, session, &[], effect, &act, Subject::Session(terms.verb, terms.of));
    done.map(|(report, _)| report)
}

/// Commits the session of a snapshot's restore.
pub fn commit_restore(
    call: &Call,
    store: &Store,
    session: &mut Locked,
    of: &Restoring<'_>,
    force: bool,
) -> Result<(Report, Ended), Error> {
    let ask = ask_commit(call, config::OnLimit::Full, force, false)?;
    let act = Act { verb: Verb::Commit, minor: Minor::Stops, ask: &ask, within: None, merges: false };
    carry_out_of(call, store, session, &[], Effect::Apply, &act, Subject::Restore(of))
}

/// Reports what the commit of a restore's session would do. The session was filled for this alone.
pub fn would_restore(call: &Call, store: &Store, session: &mut Locked, of: &Restoring<'_>) -> Result<(Report, Ended), Error> {
    let commit = ask_commit(call, config::OnLimit::Full, false, true)?;
    let ask = |session: &Locked, paths: &[AbsPath], aside: &Aside| commit(session, paths, aside).map(restore::unheld);
    let act = Act { verb: Verb::Commit, minor: Minor::Stops, ask: &ask, within: None, merges: false };
    carry_out_of(call, store, session, &[], Effect::Print, &act, Subject::Restore(of))
}

fn carry_out_in(
    call: &Call,
    store: &Store,
    session: &mut Locked,
    paths: &[AbsPath],
    effect: Effect,
    act: &Act<'_>,
) -> Result<(Report, Ended), Error> {
    let id = session.id().clone();
    carry_out_of(call, store, session, paths, effect, act, Subject::Session(act.verb, &id))
}

fn carry_out_of(
    call: &Call,
    store: &Store,
    session: &mut Locked,
    paths: &[AbsPath],
    effect: Effect,
    act: &Act<'_>,
    subject: Subject<'_>,
) -> Result<(Report, Ended), Error> {
    // Two operations of one store could undo each other.
    let _lock = if matches!(effect, Effect::Print) { None } else { Some(call.store_lock(store)?) };
    crate::fs::roots::open_many();
    let bar = Bar::of(&call.out);
    let keeps = act.verb != Verb::Rollback && !matches!(effect, Effect::Print) && call.config.keep_before.value;
    let asked = Asked { verb: act.verb, paths, minor: act.minor, ask: act.ask };
    let done = minor::carry_out_but(&call.fs, store, session, &asked, effect, &bar);
    bar.end();
    let report = done.map_err(|error| refused(subject, session, error))?;
    if keeps && let Err(error) = commit::keep_committed(&call.fs, session) {
        call.out.warn(format_args!("what a rollback with --merge begins with is not kept: {error}"));
    }
    let ended = if report.left.is_empty() && !report.uncovered { Ended::Done } else { Ended::With(Kind::LeftOut) };
    Ok((report, ended))
}

/// The directory whose absence explains the conflicts, if there is one: that in which the session was begun, else the one that holds all
/// the paths. If directories above it are gone too, the topmost of them.
fn gone(session: &Session, conflicts: &[Conflict]) -> Option<AbsPath> {
    let is_gone = |path: &AbsPath| path.as_path().symlink_metadata().is_err_and(|error| leads_nowhere(&error));
    let mut common = conflicts.first()?.path.parent()?;
    while !conflicts.iter().all(|conflict| conflict.path.is_under(&common)) {
        common = common.parent()?;
    }
    let begun = session.header.cwd.clone().filter(|cwd| conflicts.iter().any(|conflict| conflict.path.is_under(cwd)));
    let mut gone = begun.into_iter().chain([common]).find(is_gone)?;
    while let Some(parent) = gone.parent().filter(is_gone) {
        gone = parent;
    }
    Some(gone)
}

/// Opens a session for a dry run. Takes its lock, so that nothing half done is reported, but recovers nothing.
pub fn to_look_at<'c>(call: &'c Call, key: &str, want: Want) -> Result<(&'c Store, Locked), Error> {
    let store = call.store_with(key)?;
    let id = which::find_to_look(call, store, key, want)?;
    // A recant at work holds the lock: its journal does not mean an interruption.
    let locked = store.lock_session(&call.fs, &id);
    if let (false, Some(what)) = (matches!(&locked, Err(error) if error.kind() == Kind::Busy), recovered::would(store, &id)) {
        call.out.warn(format_args!("session {id}: {what}"));
    }
    let mut locked = locked?;
    if locked.header.uncollected {
        collect::collect(call, store, &mut locked)?;
    }
    ready::refuse_interrupted(store, &id)?;
    Ok((store, locked))
}

/// An error with all the paths in its way, a line each.
fn refused(subject: Subject<'_>, session: &Session, error: Error) -> Error {
    let mut missing = String::new();
    let mut remedy = error.remedy().map(str::to_owned);
    if let Some(conflicts) = conflict::of(&error) {
        let forcible = conflicts.iter().all(|c| c.forcible);
        let gone = gone(session, conflicts);
        if let Some(gone) = &gone {
            missing = format!("; {gone} is gone, moved or deleted");
        }
        let again = |gone: AbsPath| {
            let made = format!("mkdir -p {}, then --force does what can be done", shell_word(gone.as_bytes()));
            let is_directory = |path: &AbsPath| path.as_path().symlink_metadata().is_ok_and(|found| found.is_dir());
            match gone.parent().filter(|above| !is_directory(above)) {
                Some(obstacle) => format!("move {} away, and move it back; or {made}", shell_word(obstacle.as_bytes())),
                None => format!("move it back; or {made}"),
            }
        };
        let known = remedy.map(|known| subject.or_merge(known));
        remedy = gone.map(again).or(known).or_else(|| Some(subject.remedy(forcible)));
    }
    let rows = error.rows().len() as u64;
    let why = match error.reason() {
        Some(Reason::LeftBehind) => error.message().to_owned(),
        _ if rows > 0 => format!("{} {}{missing}", text::grouped(rows), error.called()),
        _ => format!("{}{missing}", error.in_session()),
    };
    // What the settings forbid is not left out, and a conflict is a person's to decide.
    if let Subject::Restore(restoring) = subject
        && error.kind() == Kind::Refused
        && !error.called().is_empty()
        && !matches!(error.reason(), Some(Reason::Denied))
    {
        restoring.prevented_by.replace(error.against());
    }
    error.with_message(format!("cannot {}: {why}", subject.infinitive())).with_remedy_if(remedy)
}

/// Reports what was done, or would be.
pub fn say(call: &Call, id: &Id, report: &Report, dry_run: bool, waiting: Option<&Waiting>) {
    if call.out.is_text() {
        say_text(call, id, report, dry_run);
        waiting.into_iter().for_each(|waiting| confirm::say(call, waiting));
    }
    tell(call, id, report, dry_run, (waiting, None));
}

/// The session that a part was taken of.
#[derive(Clone, Copy, Serialize)]
pub struct Whole<'a> {
    pub session: &'a Id,
    /// The number of changes that it holds then.
    pub changes: u64,
}

/// Reports that a part of session `of` was taken back by session `id`.
pub fn say_back(call: &Call, id: &Id, report: &Report, dry_run: bool, of: &Id) {
    if call.out.is_text() {
        let (part, whole) = (id.tail(), of.tail());
        list_rows(call, report, dry_run, &format!("rollback {whole} … --dry-run -v"));
        report.notes.iter().for_each(|note| call.out.warn(note));
        let paths = text::count(report.rows.len() as u64, "path");
        if dry_run {
            call.out.note(format_args!("a part of session {whole}: {paths} would be taken back"));
        } else {
            call.out.note(format_args!("a part of session {whole} is taken back, by session {part}: {paths}"));
            call.out.note(format_args!("to have it again: {}", command(format_args!("rollback {part}"))));
        }
    }
    tell(call, id, report, dry_run, (None, None));
}

/// Reports the commit of a part of a session.
pub fn say_part(call: &Call, id: &Id, report: &Report, dry_run: bool, (waiting, of): (Option<&Waiting>, Whole<'_>)) {
    let (part, whole, rest) = (id.tail(), of.session.tail(), text::count(of.changes, "change"));
    if call.out.is_text() {
        if dry_run {
            list_rows(call, report, dry_run, &format!("commit {whole} … --dry-run -v"));
            report.notes.iter().for_each(|note| call.out.warn(note));
            call.out.note(format_args!("a part of session {whole}: {}", summary(report, true)));
        } else {
            say_text(call, id, report, dry_run);
            call.out.note(format_args!("session {part} is a part of session {whole}, which holds the rest: {rest}"));
            waiting.into_iter().for_each(|waiting| confirm::say(call, waiting));
        }
    }
    tell(call, id, report, dry_run, (waiting, Some(of)));
}

fn tell(call: &Call, id: &Id, report: &Report, dry_run: bool, (waiting, part_of): (Option<&Waiting>, Option<Whole<'_>>)) {
    let out = &call.out;
    *out.session.borrow_mut() = Some(id.clone());
    if !out.is_text() {
        let large = report.large.iter().map(|large| said_of(large, &large.path.to_string()));
        out.document(&Document {
            session: id,
            verb: report.verb.word(),
            dry_run,
            status: report.status.word(),
            generation: report.generation,
            paths: report.rows.iter().map(|row| PathRow::of(report.verb, row)).collect(),
            skipped: report.left.iter().map(|(path, why)| Skipped { path, why }).collect(),
            notes: large.chain(report.notes.iter().cloned()).collect(),
            kept_bytes: report.kept,
            displaced: if dry_run { &[] } else { &report.displaced },
            confirm: waiting,
            part_of,
        });
    }
}

fn list_rows(call: &Call, report: &Report, dry_run: bool, whole: &str) {
    let row = |row: &Row| {
        let over = if row.over && dry_run { ", over what was changed since" } else { "" };
        let danger = row.danger.map_or_else(String::new, |danger| format!("  ({danger})"));
        format!("{:<9} {}{over}{danger}", word(report.verb, row.done), call.out.shown(&row.path))
    };
    let mut rows: Vec<&Row> = report.rows.iter().collect();
    rows.sort_by_key(|row| Danger::place(row.danger));
    // What gives rights must not be missed.
    let rights = rows.iter().take_while(|row| Danger::place(row.danger) == 0).count();
    let listed = if call.out.is_quiet() { &rows[..rights] } else { &rows[..] };
    call.out.first_of(listed.iter().copied().map(row), whole);
    let shown = cut(listed.len(), call.out.limit()).0;
    marked(call, listed[shown..].iter().filter(|row| row.danger.is_some()).count());
}

/// Says that of the paths that are not listed some are marked.
pub fn marked(call: &Call, count: usize) {
    if count > 0 {
        let those = text::count(count as u64, "path");
        call.out.warn(format_args!("{those} that others run or obey, or that give rights, are not listed here"));
    }
}

fn say_text(call: &Call, id: &Id, report: &Report, dry_run: bool) {
    let (out, tail) = (&call.out, id.tail());
    let whole = whole_list(report.verb, tail, dry_run);
    list_rows(call, report, dry_run, &whole);
    say_skipped(call, report.left.iter().map(|(path, why)| (path, &**why)), &whole);
    report.large.iter().for_each(|large| out.note(said_of(large, &out.shown(&large.path))));
    for note in &report.notes {
        out.warn(note);
    }
    let (done, skipped) = (report.rows.len() as u64, report.left.len() as u64);
    let over = report.rows.iter().filter(|row| row.over).count();
    if dry_run && over > 0 {
        let paths = text::count(over as u64, "path");
        out.warn(format_args!("{paths} changed since would be overwritten; what is there is kept"));
    }
    if let [path, rest @ ..] = &report.displaced[..]
        && !dry_run
    {
        let others =
            if rest.is_empty() { String::new() } else { format!(" (and {})", text::count(rest.len() as u64, "other path")) };
        let cat = command(format_args!("cat {tail} {} --displaced", out.word(path)));
        out.note(format_args!("what was overwritten is kept: {cat}{others}"));
    }
    if done == 0 && skipped == 0 {
        out.note(format_args!("session {tail}: nothing to {}", report.verb.infinitive()));
        return;
    }
    out.note(format_args!("session {tail}: {}", summary(report, dry_run)));
    if report.verb == Verb::Commit && !dry_run && done > 0 {
        let back = command(format_args!("rollback {tail}"));
        match report.kept {
            0 => out.note(format_args!("to take it back: {back}")),
            kept => out.note(format_args!("to take it back: {back} ({} kept for it)", text::bytes(kept))),
        }
    }
    if report.status == Status::Committed && report.counts.inside < report.counts.changes && !dry_run {
        out.note(format_args!("{} lists what is committed and what is not", command(format_args!("show {tail}"))));
    }
}

/// The line about a large directory that was deleted; `path` is as printed.
fn said_of(large: &Large, path: &str) -> String {
    format!("{path}: {}, {} deleted, all kept for a rollback", text::count(large.files, "file"), text::bytes(large.size))
}

/// The command that lists all of a report.
fn whole_list(verb: Verb, tail: &str, dry_run: bool) -> String {
    if dry_run { command(format_args!("{} {tail} --dry-run -v", verb.word())) } else { command(format_args!("show {tail} -v")) }
}

/// Prints the paths that were left out, each with the reason.
pub fn say_skipped<'a>(call: &Call, rows: impl ExactSizeIterator<Item = (&'a AbsPath, &'a str)>, whole: &str) {
    const SKIPPED: &str = "skipped";
    let row = |(path, why)| {
        let row = format!("{}: {why}", call.out.shown(path));
        if call.out.is_for_people() { text::filled_after(SKIPPED, &row, 10) } else { format!("{SKIPPED:<10}{row}") }
    };
    call.out.first_of(rows.map(row), whole);
}

/// Counts the changes that were made and those that stay as they were: `26 of 71 changes committed, 45 still held`; and those among them
/// that were skipped.
fn summary(report: &Report, dry_run: bool) -> String {
    let (done, all, inside) = (report.rows.len() as u64, report.counts.changes, report.counts.inside);
    let skipped = report.left.len() as u64;
    let (stay, where_they_are) = match report.verb {
        Verb::Commit => (all - inside, "still held"),
        Verb::Redo => (all - inside, "not on the tree"),
        Verb::Rollback => (inside, "still on the tree"),
    };
    let would = if dry_run { "would be " } else { "" };
    let past = report.verb.past();
    let whole = || format!("{} {would}{past}", text::count(done, "change"));
    let of_all = || format!("{} of {} {would}{past}", text::grouped(done), text::count(done + stay, "change"));
    let stays = || format!("{} {where_they_are}", text::grouped(stay));
    match (stay, skipped) {
        (0, 0) => whole(),
        (_, 0) => format!("{}, {}", of_all(), stays()),
        (stay, skipped) if skipped == stay => format!("{}, {} (skipped)", of_all(), stays()),
        (stay, skipped) if skipped < stay => format!("{}, {} ({} of them skipped)", of_all(), stays(), text::grouped(skipped)),
        // A directory that is kept need not be a change.
        (0, _) => format!("{}; {} skipped", whole(), text::count(skipped, "path")),
        _ => format!("{}, {}; {} skipped", of_all(), stays(), text::count(skipped, "path")),
    }
}

/// The word for what became of a path: one set for commit and redo, one for rollback.
pub fn word(verb: Verb, done: Done) -> &'static str {
    match (verb, done) {
        (Verb::Rollback, Done::Made) => "recreated",
        (Verb::Rollback, Done::Replaced) => "restored",
        (Verb::Rollback, Done::Removed) => "removed",
        (_, Done::Made) => "created",
        (_, Done::Replaced) => "modified",
        (_, Done::Removed) => "deleted",
        (_, Done::Metadata) => "metadata",
        (_, Done::AlreadySo) => "unchanged",
    }
}
