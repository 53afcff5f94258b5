//! Looks at the moves of a job: what is at each path, what is wanted there, and what follows. Reads only.

use std::rc::Rc;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::Builder;

use super::conflict::{Conflict, MEANWHILE};
use super::read::Found;
use super::read::is_as_wanted;
use super::read::look_at_content;
use super::sides::as_recorded;
use super::sides::learned;
use super::sides::overlay_mark;
use super::sides::staying;
use super::sides::stays;
use super::sides::unlooked;
use crate::checkpoint::manifest::Kept;
use crate::engine::error::way_in;
use crate::engine::item::Item;
use crate::engine::job::{Job, Move, OnConflict, Verb};
use crate::engine::progress::{Progress, TAKES_LONG};
use crate::engine::reach::Reach;
use crate::engine::reach::split;
use crate::engine::step::Act;
use crate::error::{At, BY_ROOT, Error, IoError, recant};
use crate::fs::dir::{Dir, Entry, Sort, Stat};
use crate::fs::lease::{Writers, lease, writers};
use crate::fs::mounts::Mount;
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::sides::Side;
use crate::tree::hash::Hash;
use crate::tree::observe;
use crate::tree::observe::{Content, Seen};
use crate::tree::state::{Difference, Likeness, Object, State, What, sort_word};

/// The outcome of looking at one move.
pub struct Looked {
    pub item: Item,
    pub verdict: Verdict,
    pub note: Option<String>,
}

pub enum Verdict {
    Go,
    AlreadySo,
    Conflict(Conflict),
    /// `--force`: what was found takes the place of what was expected.
    Keep,
    Refused(String),
    Damaged(String),
}

/// Moves given to a thread at once. Fewer are not worth a second thread.
const BATCH: usize = 64;

const WRITTEN: &str = "it was written to since by a process that had it open";
const FILLED: &str = "something was put into it since by a process that worked in it";

const MEANWHILE_BY_CLOCK: &str = "changed during or before the run: the clock was set back, or is another machine's";

/// Bytes of a file that is read under its lease: in a moment, so that nobody waits for the lease.
const SMALL: u64 = 1 << 20;
const UNREADABLE: &str = "you may not read it, so no checkpoint can keep it";
const UNTOLD: &str = "cannot read it to check for changes; run as root, or chmod u+r it and use --force";

/// Looks at all moves of a job, in two threads where there are many. Passes each to `take`, in path order.
pub fn look_at_all(
    session: &Session,
    job: &mut Job,
    reach: &mut Reach,
    progress: &dyn Progress,
    take: &mut dyn FnMut(Looked) -> Result<(), Error>,
) -> Result<(), Error> {
    let of = job.sides.len();
    let rules = Looking { session: session.id(), verb: job.verb, on_conflict: job.on_conflict };
    let Some(first) = batch(job, progress)? else { return Ok(()) };
    let mut own = Eye::new(rules, reach);
    if first.len() < BATCH {
        return own.look_at(first)?.into_iter().try_for_each(take);
    }
    std::thread::scope(|scope| {
        // Each batch is looked at by the other thread if it is free, else here, so that neither waits.
        let (to_other, from_here) = sync_channel::<Vec<Move>>(1);
        let (to_here, from_other) = sync_channel::<Result<Vec<Looked>, Error>>(1);
        // Without a second thread (RLIMIT_NPROC), this one looks at all of them.
        let spawned = Builder::new().spawn_scoped(scope, move || elsewhere(session, rules, &from_here, &to_here));
        let mut done = 0;
        let mut ours = Some(first);
        while let Some(moves) = ours.take() {
            let (given, not_given) = match batch(job, progress)?.map(|moves| to_other.send(moves)) {
                None => (false, None),
                Some(Ok(())) => (true, None),
                Some(Err(SendError(moves))) => (false, Some(moves)),
            };
            let looked = own.look_at(moves)?;
            done += looked.len();
            looked.into_iter().try_for_each(&mut *take)?;
            if given {
                // The other thread has ended without an answer only by a panic, which is passed on below.
                let Ok(looked) = from_other.recv() else { break };
                let looked = looked?;
                done += looked.len();
                looked.into_iter().try_for_each(&mut *take)?;
            }
            progress.at("looking", done, of);
            ours = if not_given.is_some() { not_given } else { batch(job, progress)? };
        }
        drop(to_other);
        if let Ok(other) = spawned {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        Ok(())
    })
}

fn batch(job: &mut Job, progress: &dyn Progress) -> Result<Option<Vec<Move>>, Error> {
    let mut moves = Vec::with_capacity(BATCH);
    while moves.len() < BATCH
        && let Some(mv) = job.moves.next()?
    {
        let size = |object: &Object| object.as_ref().map_or(0, State::size);
        // A change of metadata alone reads no content.
        let large = size(&mv.from).max(size(&mv.to));
        if large >= TAKES_LONG && !mv.in_place {
            progress.hashes(&mv.path, large);
        }
        moves.push(mv);
    }
    Ok(if moves.is_empty() { None } else { Some(moves) })
}

/// Runs the other thread. If an answer cannot be sent, nobody waits for one any more.
fn elsewhere(
    session: &Session,
    rules: Looking<'_>,
    batches: &Receiver<Vec<Move>>,
    answers: &SyncSender<Result<Vec<Looked>, Error>>,
) {
    let mut reach = match Reach::new(&session.dir) {
        Ok(reach) => reach,
        Err(error) => {
            let _nobody_waits = answers.send(Err(error.into()));
            return;
        }
    };
    let mut eye = Eye::new(rules, &mut reach);
    while let Ok(moves) = batches.recv() {
        if answers.send(eye.look_at(moves)).is_err() {
            return;
        }
    }
}

/// The facts that decide the verdicts.
#[derive(Clone, Copy)]
struct Looking<'s> {
    session: &'s Id,
    verb: Verb,
    on_conflict: OnConflict,
}

/// An open directory and its stat; `None` where it is missing.
type Directory = Option<(Rc<Dir>, Stat)>;

/// Looks at single moves; each thread has its own.
struct Eye<'r> {
    reach: &'r mut Reach,
    session: &'r Id,
    verb: Verb,
    on_conflict: OnConflict,
    me: u32,
    parent: Option<(AbsPath, Directory)>,
}

impl<'r> Eye<'r> {
    fn new(rules: Looking<'r>, reach: &'r mut Reach) -> Self {
        let me = rustix::process::geteuid().as_raw();
        Self { reach, session: rules.session, verb: rules.verb, on_conflict: rules.on_conflict, me, parent: None }
    }

    fn look_at(&mut self, moves: Vec<Move>) -> Result<Vec<Looked>, Error> {
        moves.into_iter().map(|mv| self.look(mv)).collect()
    }

    fn look(&mut self, mv: Move) -> Result<Looked, Error> {
        let mut looked = Looked { item: unlooked(&mv), verdict: Verdict::Go, note: None };
        let Some(parent) = mv.path.parent() else {
            looked.verdict = Verdict::Refused("it is the root directory".into());
            return Ok(looked);
        };
        match self.directory(parent) {
            Ok(Some((dir, stat))) => {
                looked.item.planning.in_directory = true;
                // Where nothing was put and nothing comes back, nothing there is the session's.
                if mv.from.is_some() || mv.to.is_some() || self.verb.inward() {
                    self.look_in(&dir, &stat, &mv, &mut looked)?;
                }
            }
            Ok(None) => looked.verdict = self.judge_absent(&mv),
            Err(error) => match error.errno() {
                Some(libc::EXDEV) => {
                    looked.verdict = Verdict::Refused("a file system was mounted above it meanwhile".into());
                }
                Some(libc::EACCES) => looked.verdict = Verdict::Refused(closed(&mv.path)),
                _ => return Err(error.into()),
            },
        }
        if matches!(looked.verdict, Verdict::Go | Verdict::Keep) {
            self.look_at_wanted(&mv, &mut looked)?;
        }
        self.conclude(mv, &mut looked);
        Ok(looked)
    }

    /// Opens a path's directory; `None` where it is missing. Moves come in path order, so it is mostly that of the move before.
    fn directory(&mut self, parent: AbsPath) -> Result<Directory, IoError> {
        if let Some((_, known)) = self.parent.as_ref().filter(|(path, _)| *path == parent) {
            return Ok(known.clone());
        }
        // Below a missing directory all are missing: of a deep tree that comes, only the top is looked up.
        if self.parent.as_ref().is_some_and(|(path, known)| known.is_none() && parent.is_under(path)) {
            return Ok(None);
        }
        let opened = self.reach.roots.directory(&parent).and_then(|dir| dir.stat().map(|stat| (dir, stat)));
        let known = match opened {
            Ok(found) => Some(found),
            Err(error) if error.leads_nowhere() => None,
            Err(error) => return Err(error),
        };
        self.parent = Some((parent, known.clone()));
        Ok(known)
    }

    /// Decides what to do, from what was expected, found and wanted.
    fn conclude(&self, mv: Move, looked: &mut Looked) {
        let item = &mut looked.item;
        item.forced = matches!(looked.verdict, Verdict::Keep);
        match looked.verdict {
            Verdict::Go | Verdict::Keep => {}
            Verdict::AlreadySo => return stays(mv, item),
            _ => return,
        }
        item.whole = item.forced && item.was_dir() && !mv.in_place;
        let held = item.to.take();
        let unread = self.verb.inward() && !item.forced;
        if let (Some(found), Some(hash)) = (&mut item.from, mv.from.as_ref().and_then(State::hash).filter(|_| unread))
            && found.state.hash().is_none()
        {
            found.set_hash(hash);
        }
        // What was found by force teaches the record nothing before it is the `before`.
        item.planning.learned = !item.forced && (learned(&mv.from, item.from.as_ref()) || learned(&mv.to, held.as_ref()));
        if mv.in_place {
            item.act = Act::SetMeta;
            item.kept = Kept::Metadata;
            let to = item.from.as_ref().zip(mv.to.clone()).map(|(from, to)| staying(from, to, mv.from.as_ref(), item.forced));
            // The hash may be known from the `before` alone, if that was read when it was held. What is put has the same content.
            item.planning.learned |= !item.forced && learned(&mv.to, to.as_ref());
            item.to = to;
            if item.forced && item.side == Side::Out {
                item.side = Side::Lost;
            }
            return;
        }
        item.act = match (&item.from, &mv.to) {
            (None, None) => Act::Stay,
            (None, Some(_)) => Act::Place,
            (Some(_), Some(_)) => Act::Replace,
            (Some(_), None) => Act::Remove,
        };
        item.planning.mark = held.as_ref().zip(mv.to.as_ref()).and_then(|(held, to)| overlay_mark(&held.state.meta, &to.meta));
        item.planning.as_recorded = held.as_ref().zip(mv.to.as_ref()).is_some_and(|(held, to)| held.state.meta == to.meta);
        item.planning.owned = held.as_ref().zip(mv.to.as_ref()).is_some_and(|(held, to)| held.state.meta.uid == to.meta.uid);
        item.held = mv.to_at.filter(|_| held.is_some());
        item.to = mv.to.map(|to| as_recorded(to, held));
        if let Some(why) = mv.uncovered {
            item.kept = Kept::Uncovered { why: why.into() };
        }
        // By force something else came off the tree than the `after`, which is lost unless the record can make it again. A redo gives back
        // what was found.
        if item.forced && item.side == Side::Out {
            item.side = Side::Lost;
        }
    }

    /// Judges a path whose directory is missing: so is the path.
    fn judge_absent(&self, mv: &Move) -> Verdict {
        match (&mv.from, &mv.to) {
            (None, _) => Verdict::Go,
            (Some(_), None) if !self.is_commit() => Verdict::AlreadySo,
            (from, to) => match self.conflict(Conflict::of(&mv.path, from, &None, Difference::Presence)) {
                // The wanted object has no directory to be in.
                Verdict::Conflict(conflict) => Verdict::Conflict(conflict.forcible(to.is_none())),
                verdict => verdict,
            },
        }
    }

    /// Tells what was done to the session's copy of a path that is to be put.
    fn kept(&self, done: &str) -> String {
        format!("the {}: {done}", if self.verb.inward() { "held content" } else { "kept original" })
    }

    fn is_commit(&self) -> bool {
        self.verb == Verb::Commit
    }

    fn conflict(&self, conflict: Conflict) -> Verdict {
        match self.on_conflict {
            OnConflict::Stop => Verdict::Conflict(conflict.forcible(true)),
            OnConflict::Keep => Verdict::Keep,
        }
    }

    fn look_in(&mut self, dir: &Dir, parent: &Stat, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let at = dir.at(mv.path.name());
        let stat = match self.to_be_changed(at, parent, mv)? {
            Ok(stat) => stat,
            Err(why) => {
                looked.verdict = Verdict::Refused(why);
                return Ok(());
            }
        };
        looked.item.planning.mounted = stat.is_some_and(|stat| stat.mount_root);
        looked.item.planning.encrypted = parent.encrypted;
        looked.item.planning.there = stat.map(|stat| stat.inode());
        let found = Found::open(at, stat, mv)?;
        let mut seen = found.seen()?;
        let verdict = self.judge(&found, mv, &mut seen)?;
        looked.verdict = self.within_reach(verdict, mv, seen.as_ref());
        if let (Some(mounted), Verdict::Go | Verdict::Keep) = (stat.filter(|stat| stat.mount_root), &looked.verdict)
            && let Some(why) = self.not_replaced(&mounted, mv)
        {
            looked.verdict = Verdict::Refused(why);
        }
        looked.item.from = seen;
        match looked.verdict {
            Verdict::Keep if mv.in_place => learn_content(&found, looked),
            Verdict::Go | Verdict::Keep => self.look_at_leaving(&found, mv, looked),
            _ => Ok(()),
        }
    }

    /// Stats a path. The inner error tells why nothing may be done there, whatever is there.
    fn to_be_changed(&self, at: Entry<'_>, parent: &Stat, mv: &Move) -> Result<Result<Option<Stat>, String>, Error> {
        let stat = match at.stat() {
            Err(error) if error.errno() == Some(libc::EACCES) => return Ok(Err(closed(&mv.path))),
            other => other?,
        };
        let mounted = stat.filter(|stat| stat.mount_root);
        // A mounted file is first compared: a conflict comes before the advice to write it by hand.
        if let Some(why) = mounted.filter(|stat| stat.sort != Sort::File).and_then(|stat| self.not_replaced(&stat, mv)) {
            return Ok(Err(why));
        }
        if stat.is_some_and(|stat| stat.locked) || parent.locked && mounted.is_none() {
            let why = "it or its directory is immutable or append-only (chattr -ia clears that)";
            return Ok(Err(why.into()));
        }
        Ok(Ok(stat))
    }

    /// Compares what was found with what was expected and what is wanted.
    fn judge(&mut self, found: &Found<'_>, mv: &Move, seen: &mut Option<Seen>) -> Result<Verdict, Error> {
        let likeness = match observe::judge(seen, &mv.from, mv.from_print.as_ref(), |may_mean| {
            found.read(may_mean).map(|(content, _)| content)
        }) {
            Err(error) if error.errno() == Some(libc::EACCES) => {
                return Ok(Verdict::Refused(if self.verb.inward() { UNREADABLE } else { UNTOLD }.into()));
            }
            other => other?,
        };
        let conflict = match likeness {
            Likeness::Same if mv.foreign => Conflict::said(&mv.path, if mv.by_clock { MEANWHILE_BY_CLOCK } else { MEANWHILE }),
            Likeness::Same => return Ok(Verdict::Go),
            _ if is_as_wanted(found, mv, seen.as_mut())? && !self.is_commit() => match self.done_to_kept(mv)? {
                Some(done) => Conflict::said(&mv.path, self.kept(done)),
                None => return Ok(Verdict::AlreadySo),
            },
            Likeness::Differs(difference) => Conflict::of(&mv.path, &mv.from, &state_of(seen.as_ref()), difference),
            Likeness::ReadToTell => Conflict::said(&mv.path, "its content cannot be compared: no hash of it is known"),
        };
        Ok(self.conflict(conflict))
    }

    /// Makes a conflict of what was found where no record can keep it, force or not.
    fn within_reach(&self, verdict: Verdict, mv: &Move, seen: Option<&Seen>) -> Verdict {
        if !self.cannot_keep(mv, seen) {
            return verdict;
        }
        let mut conflict = match verdict {
            Verdict::Keep => Conflict::of(&mv.path, &mv.from, &state_of(seen), Difference::Kind),
            Verdict::Conflict(conflict) => conflict,
            other => return other,
        };
        if !mv.in_place && seen.is_some_and(|seen| seen.state.is_dir()) {
            conflict.advise(" (move it away)");
        }
        conflict.forcible = false;
        conflict.absent = seen.is_none();
        Verdict::Conflict(conflict)
    }

    /// The reason why a mounted object cannot become what is wanted. It cannot be renamed or removed, but its metadata can be set.
    fn not_replaced(&self, stat: &Stat, mv: &Move) -> Option<String> {
        // Something else may have been mounted over the object that the change was made of.
        let is_it = mv.from_print.as_ref().is_none_or(|print| print.identity == observe::identity(stat));
        let sort = sort_word(stat.sort);
        if mv.in_place && is_it && mv.to.as_ref().is_some_and(|to| to.sort() == stat.sort) {
            let mount = self.reach.roots.mounts().iter().rfind(|mount| mount.point == mv.path);
            return mount.is_some_and(Mount::read_only).then(|| format!("the {sort} that is mounted there is mounted read-only"));
        }
        let wanted = match &mv.to {
            None => "removed",
            Some(_) if mv.in_place => "changed",
            Some(_) => "replaced",
        };
        let writes = stat.sort == Sort::File && !mv.in_place && mv.to.as_ref().is_some_and(State::is_file);
        let remedy = if writes { self.by_hand(&mv.path) } else { "umount it, or name the other paths alone".into() };
        Some(format!("a {sort} is mounted there, which cannot be {wanted}; {remedy}"))
    }

    /// The command with which a person writes content into a mounted file.
    fn by_hand(&self, path: &AbsPath) -> String {
        let side = if self.verb.inward() { "" } else { " --before" };
        let (id, recant) = (self.session, recant());
        format!("write it by hand: {recant} cat {id} {path}{side} > {path}; then name the other paths")
    }

    /// True if no record can keep it: metadata of another kind of object, or a directory in place of what was to go.
    fn cannot_keep(&self, mv: &Move, found: Option<&Seen>) -> bool {
        let sort = |object: &Object| object.as_ref().map(State::sort);
        mv.in_place && found.map(|seen| seen.state.sort()) != sort(&mv.from)
            || self.verb.inward() && found.is_some_and(|seen| seen.state.is_dir()) && sort(&mv.from) != Some(Sort::Directory)
            || found.is_none() && sort(&mv.from) == Some(Sort::Directory) && sort(&mv.to) == Some(Sort::Directory)
    }

    /// Makes sure that nobody writes to the object that goes. The blob is named by its hash.
    fn look_at_leaving(&mut self, found: &Found<'_>, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let Some(seen) = &mut looked.item.from else { return Ok(()) };
        if !matches!(seen.state.what, What::File { .. }) {
            return Ok(());
        }
        if mv.in_place {
            // It stays, but a later rollback compares its content.
            if self.verb.inward() && mv.from.as_ref().is_some_and(|from| from.hash().is_none()) {
                seen.set_hash(found.hash()?);
            }
            return Ok(());
        }
        if seen.state.hash().is_none()
            && let (Some(from), Some(print)) = (&mv.from, &mv.from_print)
            && let Some(hash) = from.hash().filter(|_| seen.unchanged_since(from, print))
        {
            seen.set_hash(hash);
        }
        let Some(file) = &found.file else {
            // A rollback only moves it and keeps nothing, so it need not be read.
            if self.verb.inward() {
                looked.verdict = Verdict::Refused(UNREADABLE.into());
            }
            return Ok(());
        };
        let lease = lease(file).at("ask for a lease on", &mv.path)?;
        if matches!(lease, Err(Writers::Some)) {
            match self.conflict(Conflict::open(&mv.path)) {
                Verdict::Keep => looked.note = Some(format!("{}: a process has it open for writing", mv.path)),
                verdict => {
                    looked.verdict = verdict;
                    return Ok(());
                }
            }
        }
        if seen.state.hash().is_none() && mv.uncovered.is_none() && lease.is_ok() && seen.state.size() <= SMALL {
            // Nobody writes to it while the lease is held: all that is read is one content.
            seen.set_hash(Hash::of_file(file, seen.state.size()).at("read", &mv.path)?);
        } else if seen.state.hash().is_none() && mv.uncovered.is_none() {
            drop(lease);
            let (Content { hash, .. }, stat) = found.read(false)?;
            if observe::identity(&stat) != seen.print.identity || stat.ctime != seen.print.ctime {
                looked.verdict = Verdict::Conflict(Conflict::said(&mv.path, "it changes just now"));
            }
            seen.set_hash(hash);
        }
        Ok(())
    }

    /// The change, done or still possible, to the session's copy of a path that is as wanted already. It would go with the copy.
    fn done_to_kept(&mut self, mv: &Move) -> Result<Option<&'static str>, Error> {
        let Some((held, to)) = mv.to_at.as_ref().zip(mv.to.as_ref()) else { return Ok(None) };
        let place = held.place(mv.n, &mv.path);
        let (parent, name) = split(&place);
        let Ok(dir) = self.reach.held(parent) else { return Ok(None) };
        let at = dir.at(name);
        let Some(stat) = at.stat()?.filter(|stat| stat.sort == to.sort()) else { return Ok(None) };
        if stat.sort == Sort::File {
            match at.open_file() {
                Err(error) if error.errno() == Some(libc::EACCES) => return Ok(Some(UNTOLD)),
                opened => {
                    if writers(&opened?).at("ask for a lease on", at)? == Writers::Some {
                        return Ok(Some(WRITTEN));
                    }
                }
            }
        }
        let now = if stat.sort == Sort::File { look_at_content(at, stat, to) } else { observe::seen(at, &stat) };
        let now = now?;
        done_since(at, &now.state, to).map_err(Error::from)
    }

    /// Checks that the wanted object is in the store, and is what was put there (I17, I11).
    fn look_at_wanted(&mut self, mv: &Move, looked: &mut Looked) -> Result<(), Error> {
        let (Some(held), Some(to)) = (&mv.to_at, &mv.to) else { return Ok(()) };
        let place = held.place(mv.n, &mv.path);
        let (parent, name) = split(&place);
        let dir = match self.reach.held(parent) {
            Ok(dir) => dir,
            Err(error) => {
                looked.verdict = Verdict::Damaged(format!("its content cannot be reached in the store: {}", error.why()));
                return Ok(());
            }
        };
        let at = dir.at(name);
        let kept = if self.verb.inward() { "the held content" } else { "the kept original" };
        let Some(stat) = at.stat()? else {
            // Anything but a file can be made from the record.
            if matches!(to.what, What::File { .. }) {
                looked.verdict = Verdict::Damaged(format!("{kept} is missing from the store"));
            }
            return Ok(());
        };
        if stat.sort != to.sort() {
            looked.verdict = Verdict::Damaged(format!("{kept} is a {} in the store", sort_word(stat.sort)));
            return Ok(());
        }
        looked.item.planning.shared_in_store = stat.shared();
        let seen = if stat.sort == Sort::File { look_at_content(at, stat, to) } else { observe::seen(at, &stat) };
        let seen = match seen {
            Err(error) if error.errno() == Some(libc::EACCES) => {
                let why = format!("user {} may not read {kept} in the store; {BY_ROOT}", self.me);
                looked.verdict = Verdict::Refused(why);
                return Ok(());
            }
            other => other?,
        };
        // Others may have the file open, or another name of it, that was on the tree. A directory that was taken as a whole is not empty.
        let was_on_tree = !self.verb.inward() || mv.gives_back && stat.sort != Sort::Directory;
        let since = if was_on_tree { done_since(at, &seen.state, to)? } else { None };
        match (since, to.content_likeness(&seen.state)) {
            (Some(done), _) => match self.conflict(Conflict::said(&mv.path, self.kept(done))) {
                Verdict::Keep if done == WRITTEN => looked.note = Some(format!("{}: given back as it is now: {done}", mv.path)),
                // Between two file systems the change does not come along: it is named where it stays.
                Verdict::Keep => looked.note = Some(format!("{}: {done}", mv.path)),
                verdict => {
                    looked.verdict = verdict;
                    return Ok(());
                }
            },
            (None, Likeness::Same) => {}
            (None, Likeness::ReadToTell) if to.hash().is_none() => {}
            _ => {
                looked.verdict = Verdict::Damaged(format!("{kept} is damaged (SHA-256 differs)"));
                return Ok(());
            }
        }
        looked.item.to = Some(seen);
        Ok(())
    }
}

/// Why nothing may be done at a path that the caller cannot get to.
fn closed(path: &AbsPath) -> String {
    let way = way_in(path).map(|chmod| format!(" ({chmod} helps)")).unwrap_or_default();
    format!("you may not search the directory that it lies in{way}")
}

fn state_of(seen: Option<&Seen>) -> Object {
    seen.map(|seen| seen.state.clone())
}

/// The change made since to a kept original, by a process that has the file open or works in the directory.
fn done_since(at: Entry<'_>, now: &State, then: &State) -> Result<Option<&'static str>, IoError> {
    match then.sort() {
        Sort::Directory => Ok(observe::is_filled(at, then)?.then_some(FILLED)),
        Sort::File if then.hash().is_some() && then.content_likeness(now) != Likeness::Same => {
            Ok(observe::was_written_since(at, now, then)?.then_some(WRITTEN))
        }
        _ => Ok(None),
    }
}

/// Hashes unexpected content that stays, by `--force`, under other metadata.
fn learn_content(found: &Found<'_>, looked: &mut Looked) -> Result<(), Error> {
    let seen = looked.item.from.as_mut();
    if let Some(seen) = seen.filter(|seen| matches!(seen.state.what, What::File { hash: None, .. })) {
        seen.set_hash(found.hash()?);
    }
    Ok(())
}
