//! `prune --sessions` and `prune --checkpoints`: drop what nothing needs any more, or what is named.

use std::collections::HashMap;

use serde::Serialize;

use crate::checkpoint::manifest::Manifest;
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures;
use crate::face::text::heads::heads;
use crate::face::text::list::say_damaged;
use crate::fs::interrupt::{self, Asked};
use crate::fs::path::AbsPath;
use crate::remedy::shell;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Locked;
use crate::session::prune::{self, Which, is_awaited};
use crate::session::store::Store;
use crate::session::unreadable::Remains;
use crate::settings::{age_word, size_word};
use crate::verb::discard::is_done;
use crate::verb::resolve::guard;
use crate::verb::resolve::want::Want;
use crate::verb::retention::Committed;
use crate::verb::retention::keeps_overwritten;
use crate::verb::retention::may_go;
use crate::verb::retention::may_lose_checkpoint;

#[derive(Serialize)]
pub struct Whole {
    dry_run: bool,
    pruned: Vec<Id>,
    skipped: Vec<Skipped>,
    /// The contents of dropped sessions whose header cannot be read.
    lost: Vec<Lost>,
    bytes: u64,
}

/// Something that a damaged session holds.
#[derive(Serialize)]
struct Lost {
    session: Id,
    /// A path on the tree, or a directory of the store.
    path: AbsPath,
    what: Loss,
    /// The number of objects; 1, but for a directory of the store.
    count: u64,
}

/// The kind of what is lost with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Loss {
    /// A change that it held, committed or not.
    Change,
    /// An object that a commit took off the tree.
    Original,
    /// Objects whose paths are unknown.
    Unnamed,
}

/// A session that was to go, but stays.
#[derive(Serialize)]
struct Skipped {
    id: Id,
    why: &'static str,
}

/// The kind of what is pruned, and which sessions may lose it without being named.
pub struct Target {
    what: &'static str,
    /// The option that chooses the kind.
    option: &'static str,
    /// The verb in the log.
    verb: &'static str,
    /// True if all of the kind go where no condition is given.
    all: bool,
    /// Tells whether it may go unnamed; that of a committed session goes only with `--committed`.
    may: fn(&Store, &Header, Committed) -> Result<bool, Error>,
    /// Bytes that it takes on disk.
    size: fn(&Store, &Header) -> Result<u64, Error>,
    remove: fn(&Call, &Store, Locked) -> Result<(), Error>,
}

impl Target {
    /// Bytes that these sessions take on disk.
    pub fn sizes(&self, store: &Store, headers: &[Header]) -> Result<u64, Error> {
        headers.iter().map(|header| (self.size)(store, header)).sum()
    }
}

pub const SESSIONS: Target = Target {
    what: "session",
    option: "--sessions",
    verb: "prune",
    all: false,
    may: may_go,
    size: |store, header| prune::used(store, &header.id),
    remove: |call, store, session| store.remove_session(&call.fs, session),
};

pub const CHECKPOINTS: Target = Target {
    what: "checkpoint",
    option: "--checkpoints",
    verb: "prune --checkpoints",
    all: false,
    // `--force`'s overwritten objects go with it.
    may: |store, header, committed| Ok(header.sizes.checkpoint > 0 && may_lose_checkpoint(store, header, committed)?),
    size: |_, header| Ok(header.sizes.checkpoint.saturating_add(header.sizes.displaced)),
    remove: |call, _, mut session| prune::drop_checkpoint(&call.fs, &mut session),
};

pub const DISCARDED: Target = Target {
    what: "discarded session",
    option: "--discarded",
    verb: "prune --discarded",
    all: true,
    may: |_, header, _| Ok(header.is_aside()),
    size: |store, header| prune::used(store, &header.id),
    remove: |call, _, mut session| prune::free(&call.fs, &mut session),
};

/// Sessions to prune: those that are named, else those that fit the conditions.
#[derive(Default)]
pub struct Wanted {
    pub ids: Vec<String>,
    pub which: Which,
    /// True if committed sessions go, too.
    pub committed: bool,
    /// True if nothing is to be changed.
    pub dry_run: bool,
}

/// Prunes sessions, or their checkpoints.
///
/// # Errors
/// Neither names nor conditions are given or set, both are given, or what is to go cannot go.
pub fn prune(call: &Call, args: &Wanted, target: &Target) -> Result<Ended, Error> {
    let mut done = Whole { dry_run: args.dry_run, pruned: Vec::new(), skipped: Vec::new(), lost: Vec::new(), bytes: 0 };
    let Some(store) = call.store()? else {
        if let Some(key) = args.ids.first() {
            call.store_with(key)?;
        }
        return say(call, target, &done);
    };
    let pruning = Pruning::new(call, store, args, target);
    if !pruning.is_named() {
        pruning.refuse_unbounded()?;
        say_damaged(call, &store.headers()?.1);
    }
    // Refused before the question.
    for header in pruning.chosen()?.iter().filter(|_| pruning.is_named()) {
        guard::refuse_waiting(header, "prune")?;
    }
    if args.dry_run {
        pruning.tell(&mut done)?;
    } else {
        pruning.carry_out(&mut done).map_err(|problem| after(problem, target.what, &done.pruned))?;
    }
    let ended = say(call, target, &done);
    if call.out.is_text() {
        pruning.say_committed()?;
    }
    if !args.dry_run {
        // May take long, and nobody need wait: the next verb removes the rest, too.
        call.out.flush();
        call.clear_away(store);
    }
    ended
}

/// The error that stopped a prune, with what was pruned before it.
fn after(problem: Error, what: &str, pruned: &[Id]) -> Error {
    if pruned.is_empty() {
        return problem;
    }
    let ids = pruned.iter().map(Id::to_string).collect::<Vec<_>>().join(", ");
    problem.after(&format!("{} pruned before it: {ids}", figures::count(pruned.len() as u64, what)))
}

/// A prune: its arguments, target and store.
pub struct Pruning<'a> {
    call: &'a Call,
    args: &'a Wanted,
    target: &'a Target,
    store: &'a Store,
    /// If set, only these of the sessions that fit the conditions.
    only: Option<Vec<Id>>,
}

impl<'a> Pruning<'a> {
    pub fn new(call: &'a Call, store: &'a Store, args: &'a Wanted, target: &'a Target) -> Self {
        Self { call, args, target, store, only: None }
    }

    /// Limits the prune to these sessions, as far as they fit the conditions.
    pub fn only(self, ids: Vec<Id>) -> Self {
        Self { only: Some(ids), ..self }
    }

    /// The sessions that fit the conditions; none if there are no conditions.
    pub fn chosen_by_settings(&self) -> Result<Vec<Header>, Error> {
        if self.conditions().is_unbounded() { Ok(Vec::new()) } else { self.by_conditions() }
    }

    /// Prunes. Returns what went, and the error that stopped it, if any.
    pub fn done(&self) -> (Whole, Result<(), Error>) {
        let mut done = Whole { dry_run: false, pruned: Vec::new(), skipped: Vec::new(), lost: Vec::new(), bytes: 0 };
        let ended = self.carry_out(&mut done);
        (done, ended)
    }

    /// True if sessions are named; else conditions choose them.
    fn is_named(&self) -> bool {
        !self.args.ids.is_empty()
    }

    fn chosen(&self) -> Result<Vec<Header>, Error> {
        if self.is_named() { self.by_name() } else { self.by_conditions() }
    }

    fn tell(&self, done: &mut Whole) -> Result<(), Error> {
        for header in self.chosen()? {
            done.bytes += (self.target.size)(self.store, &header)?;
            done.pruned.push(header.id);
        }
        self.garbled()?.iter().try_for_each(|remains| done.take_along(self.call, self.store, remains))
    }

    fn carry_out(&self, done: &mut Whole) -> Result<(), Error> {
        let Self { call, store, .. } = *self;
        let asked = if self.is_named() { self.ask()? } else { Vec::new() };
        let only = if self.is_named() || self.only.is_some() { None } else { self.ask_of_all()? };
        let lock = call.store_lock(store)?;
        call.recover_under(store, &lock)?;
        store.journals_last(&call.fs)?;
        let journaled = store.journaled()?;
        let garbled = self.garbled()?;
        let _noting = interrupt::note(Asked::Stops);
        for header in self.chosen()? {
            // Sessions that have come to fit the conditions since were not shown.
            if only.as_ref().is_some_and(|ids: &Vec<Id>| !ids.contains(&header.id)) {
                continue;
            }
            not_asked_to_end()?;
            if journaled.contains(&header.id) {
                done.skipped.push(Skipped { id: header.id, why: INTERRUPTED });
                continue;
            }
            let session = match store.lock_session(&call.fs, &header.id) {
                Ok(session) => session,
                Err(error) if error.kind() == Kind::Busy => {
                    done.skipped.push(Skipped { id: header.id, why: HELD });
                    continue;
                }
                Err(error) => return Err(error),
            };
            match self.still(&session.header, &asked)? {
                Still::Goes => self.remove(session, done)?,
                Still::Needed => {}
                Still::Stays(why) => done.skipped.push(Skipped { id: header.id, why }),
            }
        }
        for remains in garbled {
            not_asked_to_end()?;
            remove_garbled(call, store, remains, &journaled, done)?;
        }
        drop(lock);
        Ok(())
    }

    /// Checks again, now with its lock, if a session that was chosen and asked about may go.
    fn still(&self, header: &Header, asked: &[(Id, Worth)]) -> Result<Still, Error> {
        if !self.is_named() && !(self.target.may)(self.store, header, self.committed())? {
            return Ok(Still::Needed);
        }
        if header.waits().is_some() {
            return Ok(Still::Stays("it waits to be confirmed"));
        }
        if self.is_named() && !asked.contains(&(header.id.clone(), Worth::of(self.store, header)?)) {
            return Ok(Still::Stays("another recant has changed it meanwhile: look again"));
        }
        Ok(Still::Goes)
    }

    fn remove(&self, session: Locked, done: &mut Whole) -> Result<(), Error> {
        let Self { call, target, store, .. } = *self;
        let header = session.header.clone();
        let bytes = (target.size)(store, &header)?;
        let removed = (target.remove)(call, store, session);
        if is_done(&removed) {
            let entry = log::Entry::new(target.verb, &header.id, header.generation, "done", header.counts.changes);
            call.note_in_log(store, &entry.of(&header));
        }
        removed?;
        done.bytes += bytes;
        done.pruned.push(header.id);
        Ok(())
    }

    /// The named sessions whose header is unreadable. Only a whole id names them: nothing else of them is certain.
    fn garbled(&self) -> Result<Vec<Remains>, Error> {
        let mut found: Vec<Remains> = Vec::new();
        for id in self.args.ids.iter().filter_map(|key| Id::parse(key)) {
            if self.target.what == "session"
                && !found.iter().any(|known| known.id == id)
                && let Some(remains) = self.store.remains(&id)?
            {
                found.push(remains);
            }
        }
        Ok(found)
    }

    fn by_name(&self) -> Result<Vec<Header>, Error> {
        let garbled = self.garbled()?;
        let mut headers: Vec<Header> = Vec::new();
        for key in &self.args.ids {
            let id = self.call.find(self.store, Some(key), Want::Tend)?;
            if id.as_str() == key && garbled.iter().any(|remains| remains.id == id) {
                continue;
            }
            let header = self.store.session(&id)?.header;
            if !headers.iter().any(|known| known.id == header.id) {
                headers.push(header);
            }
        }
        Ok(headers)
    }

    fn given(&self) -> Which {
        self.args.which
    }

    /// The conditions of the call, or those of the settings if it has none.
    fn conditions(&self) -> Which {
        let Self { call, .. } = self;
        let given = self.given();
        if given.is_unbounded() && !self.target.all {
            return Which { older_than: call.config.older_than.value, keep: call.config.keep.value, max_size: None };
        }
        given
    }

    fn refuse_unbounded(&self) -> Result<(), Error> {
        if self.target.all || !self.conditions().is_unbounded() {
            return Ok(());
        }
        let problem = Error::refused("which sessions? give an age, a number to keep, a size, or ids");
        let how = shell("recant prune --sessions --older-than 30d")
            + ", --keep 50, --max-size 1G, or ID…; or set retention.* in the settings";
        Err(problem.with_kind(Kind::Usage).with_remedy(how))
    }

    fn committed(&self) -> Committed {
        if self.args.committed { Committed::May } else { Committed::Stays }
    }

    fn by_conditions(&self) -> Result<Vec<Header>, Error> {
        self.by_conditions_with(self.committed())
    }

    /// Says how many sessions the conditions spare because they are committed, with the command that drops them.
    fn say_committed(&self) -> Result<(), Error> {
        let Self { call, args, target, .. } = self;
        if self.is_named() || args.committed {
            return Ok(());
        }
        let chosen = self.by_conditions_with(Committed::May)?;
        let count = chosen.iter().filter(|header| prune::is_needed(header)).count();
        if count == 0 {
            return Ok(());
        }
        let given = [
            args.which.older_than.map(|seconds| format!(" --older-than {}", age_word(seconds))),
            args.which.keep.map(|keep| format!(" --keep {keep}")),
            args.which.max_size.map(|bytes| format!(" --max-size {}", size_word(bytes))),
        ];
        let given: String = given.into_iter().flatten().collect();
        let (what, are) = (figures::count(count as u64, "session"), if count == 1 { "is" } else { "are" });
        let them = if count == 1 { "its" } else { "their" };
        let how = command(format_args!("prune {}{given} --committed", target.option));
        // The command gets its own line: one line would be too long.
        call.out.note(format_args!("{what} {are} committed; to give up {them} rollback:\n        {how}"));
        Ok(())
    }

    fn by_conditions_with(&self, committed: Committed) -> Result<Vec<Header>, Error> {
        let Self { target, store, only, .. } = self;
        let (headers, _) = store.headers()?;
        let mut prunable = Vec::new();
        for header in &headers {
            if (target.may)(store, header, committed)? {
                prunable.push(header);
            }
        }
        let conditions = self.conditions();
        let mut sizes = HashMap::new();
        // Computed only if needed: it reads every directory.
        for header in prunable.iter().filter(|_| conditions.max_size.is_some()) {
            sizes.insert(&header.id, (target.size)(store, header)?);
        }
        let size = |header: &Header| sizes.get(&header.id).copied().unwrap_or(0);
        let chosen = prune::choose(&prunable, conditions, crate::fs::now(), size);
        let is_meant = |header: &&&Header| only.as_ref().is_none_or(|ids| ids.contains(&header.id));
        Ok(chosen.iter().filter(is_meant).map(|header| (*header).clone()).collect())
    }

    /// Shows what the conditions fit, and asks, at a terminal. Without one, conditions of the call count as consent, those of the settings
    /// do not. Returns what was asked about; `None` if nobody is asked.
    fn ask_of_all(&self) -> Result<Option<Vec<Id>>, Error> {
        let Self { call, target, .. } = self;
        if call.yes || !call.can_ask && !self.given().is_unbounded() {
            return Ok(None);
        }
        let chosen = self.chosen()?;
        if !chosen.is_empty() {
            let whole = command(format_args!("prune {} --dry-run", target.option));
            let (count, bytes) = (figures::count(chosen.len() as u64, target.what), target.sizes(self.store, &chosen)?);
            let what = format!("{count}, {}", figures::bytes(bytes));
            call.need_asking(&format!("prune drops {what}"), whole.clone())?;
            let shown: Vec<&Header> = chosen.iter().collect();
            heads(&call.out, &shown, call.out.limit(), &whole).into_iter().for_each(|line| call.out.say(line));
            let redo = match (chosen.iter().filter(|header| prune::is_needed(header)).count(), target.what) {
                (0, "session") => "; this also gives up redo".into(),
                (0, _) => String::new(),
                (1, _) => "; 1 is committed, and then cannot be rolled back".into(),
                (count, _) => format!("; {count} are committed, and then cannot be rolled back"),
            };
            call.confirm(&format!("Prune {what}{redo}?"))?;
        }
        Ok(Some(chosen.into_iter().map(|header| header.id).collect()))
    }

    /// Asks before held changes and rollbacks are lost for good. Returns what was asked about.
    fn ask(&self) -> Result<Vec<(Id, Worth)>, Error> {
        let Self { call, target, store, .. } = *self;
        // Recovers first, so that this recant does not change what it asks about.
        call.prepare_to_change(store)?;
        let worth = |header: &Header| Ok((header.id.clone(), Worth::of(store, header)?));
        let asked = self.chosen()?.iter().map(worth).collect::<Result<Vec<_>, Error>>()?;
        let ids = |wanted: &dyn Fn(&Worth) -> bool| -> Vec<String> {
            asked.iter().filter(|(_, worth)| wanted(worth)).map(|(id, _)| id.to_string()).collect()
        };
        let (needed, awaited) = (ids(&|worth| worth.needed), ids(&|worth| worth.awaited));
        let is_session = target.what == "session";
        let plain = ids(&|worth| !(worth.needed || worth.overwritten || worth.awaited && is_session));
        if !plain.is_empty() {
            let redo = if is_session { ", finished; this also gives up redo" } else { "" };
            call.confirm(&format!("Prune {} {}{redo}?", target.what, plain.join(", ")))?;
        }
        if !needed.is_empty() {
            call.confirm(&format!("Prune {} {}, which then cannot be rolled back?", target.what, needed.join(", ")))?;
        }
        if !awaited.is_empty() && target.what == "session" {
            call.confirm(&format!("Prune session {}, with all that is held?", awaited.join(", ")))?;
        }
        for id in ids(&|worth| worth.overwritten) {
            call.confirm(&format!("Prune {} {id}, with what --force overwrote?", target.what))?;
        }
        for remains in self.garbled()? {
            call.confirm(&format!("Prune session {}, which is damaged, with all that is in it?", remains.id))?;
        }
        Ok(asked)
    }
}

/// Stops between two sessions if a signal came.
fn not_asked_to_end() -> Result<(), Error> {
    interrupt::check().map_err(|asked| Error::refused(asked.to_string()))
}

/// The decision on a chosen session.
enum Still {
    Goes,
    /// Something has come to need it, and nobody named it.
    Needed,
    /// It was named, and stays; with the reason.
    Stays(&'static str),
}

const INTERRUPTED: &str = "an operation of it was interrupted";
const HELD: &str = "another recant holds it";

fn remove_garbled(call: &Call, store: &Store, remains: Remains, journaled: &[Id], done: &mut Whole) -> Result<(), Error> {
    let id = remains.id.clone();
    if journaled.contains(&id) {
        done.skipped.push(Skipped { id, why: INTERRUPTED });
        return Ok(());
    }
    let known = (done.lost.len(), done.bytes);
    done.take_along(call, store, &remains)?;
    match store.remove_remains(&call.fs, remains) {
        Err(error) if error.kind() == Kind::Busy => {
            done.pruned.pop();
            done.lost.truncate(known.0);
            done.bytes = known.1;
            done.skipped.push(Skipped { id, why: HELD });
            Ok(())
        }
        Err(error) => Err(error),
        Ok(()) => {
            let paths = (done.lost.len() - known.0) as u64;
            call.note_in_log(store, &log::Entry::new("prune", &id, 0, "done", paths));
            Ok(())
        }
    }
}

impl Whole {
    /// The pruned sessions, and their bytes.
    pub fn pruned(self) -> (Vec<Id>, u64) {
        (self.pruned, self.bytes)
    }

    /// The sessions that were to go, but stay, and why.
    pub fn skipped(&self) -> impl Iterator<Item = (&Id, &'static str)> {
        self.skipped.iter().map(|skipped| (&skipped.id, skipped.why))
    }

    /// Counts a damaged session as pruned, and lists what is lost with it: by path if its records can be read, else by number. An
    /// unreadable record does not keep the session, which was named by its whole id; it is a warning.
    fn take_along(&mut self, call: &Call, store: &Store, remains: &Remains) -> Result<(), Error> {
        let untold = |error: &dyn std::fmt::Display| call.out.warn(format_args!("{error}; its paths are counted, not listed"));
        let changes: Vec<AbsPath> = match remains.changes() {
            Ok(changes) => changes.list.into_iter().map(|change| change.path).collect(),
            Err(error) => {
                untold(&error);
                Vec::new()
            }
        };
        let originals: Vec<AbsPath> = match Manifest::read(&remains.dir) {
            Ok(manifest) => manifest.originals.into_keys().collect(),
            Err(error) => {
                untold(&error);
                Vec::new()
            }
        };
        for (directory, told) in [("held", changes.len()), ("checkpoint/blobs", originals.len()), ("displaced", 0)] {
            let (count, bytes) = remains.objects_below(directory)?;
            self.bytes += bytes;
            if count > 0 && told == 0 {
                let below = format!("/sessions/{}/{directory}", remains.id);
                let path = [store.path.as_bytes(), below.as_bytes()].concat();
                let path = AbsPath::parse(path).map_err(|error| Error::refused(error.to_string()))?;
                self.lost.push(Lost { session: remains.id.clone(), path, what: Loss::Unnamed, count });
            }
        }
        for (what, paths) in [(Loss::Change, changes), (Loss::Original, originals)] {
            self.lost.extend(paths.into_iter().map(|path| Lost { session: remains.id.clone(), path, what, count: 1 }));
        }
        self.pruned.push(remains.id.clone());
        Ok(())
    }
}

/// Reasons why somebody could still want a session.
#[derive(PartialEq, Eq)]
struct Worth {
    needed: bool,
    awaited: bool,
    overwritten: bool,
}

impl Worth {
    fn of(store: &Store, header: &Header) -> Result<Self, Error> {
        let overwritten = keeps_overwritten(store, header)?;
        Ok(Self { needed: prune::is_needed(header), awaited: is_awaited(header), overwritten })
    }
}

fn say(call: &Call, target: &Target, done: &Whole) -> Result<Ended, Error> {
    let ended = if done.skipped.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) };
    if !call.out.is_text() {
        call.out.document(done);
        return Ok(ended);
    }
    done.pruned.iter().for_each(|id| call.out.line(id));
    for Lost { path, what, count, .. } in &done.lost {
        let what = match what {
            Loss::Change => "what the session held of it".into(),
            Loss::Original => "what was there before it was committed".into(),
            Loss::Unnamed => format!("{}, paths unknown", figures::count(*count, "object")),
        };
        call.out.warn(format_args!("{}: {path}: {what}", if done.dry_run { "would be lost" } else { "lost" }));
    }
    for Skipped { id, why } in &done.skipped {
        call.out.warn(format_args!("session {id} stays: {why}"));
    }
    let verb = if done.dry_run { "would go" } else { "pruned" };
    let count = figures::count(done.pruned.len() as u64, target.what);
    call.out.note(format_args!("{count} {verb}, {}", figures::bytes(done.bytes)));
    Ok(ended)
}
