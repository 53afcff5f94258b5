//! Recovery: undoes or settles an interrupted operation, by its journal alone.

use super::find_objects::{AtPath, OffPath, StepObjects};
use super::remove_prepared::clean_draft;
use super::undo_and_finish::Remains;
use super::undo_and_finish::take_back;
use crate::checkpoint::{Former, manifest};
use crate::engine::error::{not_decided, stuck, undecided, unmounted, way_in};
use crate::engine::item::Turn;
use crate::engine::job::Verb;
use crate::engine::journal::{Journal, names};
use crate::engine::reach::{Named, Reach, open};
use crate::engine::report::LeftPath;
use crate::engine::step::{Act, Step};
use crate::engine::work::records::DONE;
use crate::engine::work::settle::{When, settle};
use crate::engine::work::{records, reserve};
use crate::error::{At, Error, Reason, command};
use crate::fs::{AbsPath, Dir, Fs, OnSignal, Roots, interrupt};
use crate::session::{Id, Session, Store, log, part};
use crate::tree::observe;

/// The outcome of recovering one session, or of what recovery would do.
#[derive(Debug)]
pub struct Recovered {
    pub id: Id,
    /// The interrupted verb; `None` where only preparations were found.
    pub verb: Option<Verb>,
    pub outcome: Outcome,
    /// Notes for people, on what failed beside it: it is recovered all the same.
    pub notes: Vec<String>,
    /// Names of recant's own that may lie in a directory that is not where it was.
    pub strays: Vec<LeftPath>,
}

/// The fate of an interrupted operation.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing had been applied; what was made ready is removed.
    Cleaned,
    /// All was undone: the tree is as before the operation.
    Undone,
    /// It had been sealed: it is done.
    Settled,
    /// Undone but for these paths, which somebody has changed: there it is done, and sealed.
    Left(Vec<LeftPath>),
    /// It cannot be recovered now.
    Failed(Error),
}

/// The user's choice where recovery cannot decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Undoes all if the header cannot tell.
    Undo,
    /// Keeps what was done if the header cannot tell, provided all of it was done.
    Finish,
    /// Ends it without file systems that are gone for good.
    GiveUp,
}

/// The state of an interrupted operation before recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Preparations only.
    Draft,
    /// A journal whose operation was not sealed.
    ToUndo,
    /// A journal of what an undo had to leave; it was not sealed.
    ToFinish,
    /// A journal whose operation was sealed.
    ToSettle,
}

/// Recovers every journal of the store. The caller holds the store's lock. A session that cannot be recovered does not keep the others
/// from it. Errors: nothing was touched.
pub fn recover_all(fs: &Fs, store: &Store) -> Result<Vec<Recovered>, Error> {
    Ok(interrupted(store)?.iter().map(|id| recover_session(fs, store, id, None)).collect())
}

/// The ids of all interrupted operations: with a journal, or what comes before one.
pub fn interrupted(store: &Store) -> Result<Vec<Id>, Error> {
    let found = store.journals().names()?;
    let id = |name: &Vec<u8>| Id::parse(std::str::from_utf8(name.get(..20)?).ok()?);
    let mut ids: Vec<Id> = found.iter().filter_map(id).collect();
    ids.sort();
    ids.dedup();
    Ok(ids)
}

/// Tells what recovery would do with a session; `None` if nothing was interrupted. Reads only.
pub fn finding(store: &Store, id: &Id) -> Result<Option<Finding>, Error> {
    let Some(journal) = Journal::read(store, id)? else {
        let names = names(id);
        let there = |name: &[u8]| store.journals().at(name).stat();
        let draft = there(&names.draft).and_then(|draft| Ok(draft.or(there(&names.new)?)));
        return Ok(draft?.map(|_| Finding::Draft));
    };
    Ok(Some(match sealed(store, &journal)? {
        Sealed::No(_) if journal.head.rest.is_some() => Finding::ToFinish,
        Sealed::No(_) => Finding::ToUndo,
        Sealed::Yes(_) => Finding::ToSettle,
        Sealed::Untold(why) => return Err(untold(store, &journal, why)),
    }))
}

/// The answer of a session's header to whether its operation was sealed (I5).
enum Sealed {
    No(Session),
    Yes(Session),
    /// The header cannot be read, or is of another generation.
    Untold(String),
}

fn sealed(store: &Store, journal: &Journal) -> Result<Sealed, Error> {
    let session = match store.session(&journal.head.session) {
        Ok(session) => session,
        Err(error) if error.reason() == Some(&Reason::Garbled) => return Ok(Sealed::Untold(error.why().to_owned())),
        Err(error) => return Err(error),
    };
    let (before, now) = (journal.head.generation, session.header.generation);
    Ok(if now == before {
        Sealed::No(session)
    } else if now == before + 1 {
        Sealed::Yes(session)
    } else {
        Sealed::Untold(format!("it is of generation {now}, the journal of {before}"))
    })
}

fn untold(store: &Store, journal: &Journal, why: String) -> Error {
    let id = journal.head.session.to_string();
    let path = store.sessions().path().join(&id).join("session.json").display().to_string();
    undecided(path, journal.head.verb.word(), why, id)
}

/// Recovers one session's journal, by `choice` where recovery alone cannot decide. No signal ends it early.
pub fn recover_session(fs: &Fs, store: &Store, id: &Id, choice: Option<Choice>) -> Recovered {
    let _noting = interrupt::note(OnSignal::GoesOn);
    let mut recovered =
        Recovered { id: id.clone(), verb: None, outcome: Outcome::Cleaned, notes: Vec::new(), strays: Vec::new() };
    match recover(fs, store, &mut recovered, choice) {
        Ok(outcome) => recovered.outcome = outcome,
        Err(error) => recovered.outcome = Outcome::Failed(error),
    }
    recovered
}

/// Recovers a session's journal. Puts the verb, and notes beside the outcome, into `recovered`.
fn recover(fs: &Fs, store: &Store, recovered: &mut Recovered, choice: Option<Choice>) -> Result<Outcome, Error> {
    let id = &recovered.id;
    let Some(mut journal) = Journal::read(store, id)? else {
        let session = match store.session(id) {
            Ok(session) => Some(session),
            Err(error) if error.is_unknown() => None,
            Err(error) => return Err(error),
        };
        recovered.strays = clean_draft(fs, store, session.as_ref(), id)?;
        return Ok(Outcome::Cleaned);
    };
    Journal::claim(fs, store, id)?;
    recovered.verb = Some(journal.head.verb);
    journal.head.lost = lost_roots(store, &journal, choice)?;
    let Recovered { notes, strays, .. } = recovered;
    let told = decide_sealed(fs, store, &journal, choice)?;
    if let Sealed::No(session) | Sealed::Yes(session) = &told {
        // With one of them missing, an undo would blame somebody for its content.
        session.check_directories().map_err(|error| keep_journal(store, id, error))?;
    }
    match told {
        Sealed::No(session) => {
            undo(fs, store, &session, &journal, (notes, strays)).map_err(|error| keep_journal(store, id, error))
        }
        Sealed::Yes(session) => {
            settle_sealed(fs, store, &session, &journal, choice, notes).map_err(|error| keep_journal(store, id, error))
        }
        Sealed::Untold(why) => Err(untold(store, &journal, why)),
    }
}

/// Tells whether it was sealed. If the header cannot tell, the user does, and the header is rewritten to match.
fn decide_sealed(fs: &Fs, store: &Store, journal: &Journal, choice: Option<Choice>) -> Result<Sealed, Error> {
    let untold = match sealed(store, journal)? {
        Sealed::Untold(why) => why,
        told => return Ok(told),
    };
    let (Some(choice), Some(was)) = (choice, &journal.head.was) else { return Ok(Sealed::Untold(untold)) };
    let dir = store.sessions().at(journal.head.session.as_str().as_bytes()).open_dir();
    let dir = dir.at("open the session", journal.head.session.to_string())?;
    match choice {
        // What is left of an undo was not sealed.
        _ if journal.head.rest.is_some() => Ok(Sealed::No(store.put_header(fs, was)?)),
        Choice::Undo if settling_begun(fs, &dir, journal)? => Err(not_decided(
            dir.path().display(),
            "it was done and partly settled: recover cannot undo it",
            command(format_args!("recover {} --finish", journal.head.session)),
        )),
        Choice::Undo => Ok(Sealed::No(store.put_header(fs, was)?)),
        Choice::Finish => {
            if !settling_begun(fs, &dir, journal)?
                && let Some(path) = not_done(&mut Reach::new(&dir)?, journal)?
            {
                let why = "it was not done here, so not all of it can be kept";
                let remedy = command(format_args!("recover {} --undo", journal.head.session));
                return Err(not_decided(path, why, remedy));
            }
            Ok(Sealed::Yes(store.put_header(fs, &journal.head.header)?))
        }
        Choice::GiveUp => Ok(Sealed::Untold(untold)),
    }
}

/// True once settling a sealed operation has begun: the new manifest has its name, and the former one is gone, which goes before anything
/// else. The new one then has a line of every path that is in, and none of what went back.
fn settling_begun(fs: &Fs, session: &Dir, journal: &Journal) -> Result<bool, Error> {
    let directory = part(session, b"checkpoint")?;
    if Former::new(fs, &directory, journal.head.generation).is_kept()? {
        return Ok(false);
    }
    let Some(item) = journal.items.first() else { return Ok(false) };
    let mut originals = manifest::Reading::open(session)?;
    while let Some(original) = originals.next()? {
        if original.path >= item.path {
            return Ok((original.path == item.path) == item.side.is_in());
        }
    }
    Ok(!item.side.is_in())
}

/// Finds a path where the operation was not done.
fn not_done(reach: &mut Reach, journal: &Journal) -> Result<Option<AbsPath>, Error> {
    // A later step closes a directory again that was opened for the work.
    for turn in journal.turns.iter().filter(|turn| !matches!(turn, Turn::Open(_))) {
        let step = journal.step(*turn);
        if is_not_done(reach, &step)? {
            return Ok(Some(step.path.clone()));
        }
    }
    Ok(None)
}

/// True if a path does not hold what was to be put, or still holds what was to go, or that is not at its home yet.
fn is_not_done(reach: &mut Reach, step: &Step<'_>) -> Result<bool, Error> {
    if step.act == Act::SetMeta {
        let target = open(reach.path(step.path))?;
        return is_not_set(target.as_ref(), step);
    }
    let found = StepObjects::find(reach, step.path, (step.from.as_deref(), step.to.as_deref()), &step.at)?;
    let is_moved = match step.act {
        Act::Place | Act::Replace => found.is_put(),
        Act::Remove => found.there != AtPath::From,
        Act::SetMeta | Act::Stay => true,
    };
    let is_away = step.at.put_away().is_none() || found.out.is_none_or(|out| out.what != OffPath::Ours);
    Ok(!is_moved || !is_away)
}

/// True if the metadata there is not what was to be set. A directory's time changes with its names.
fn is_not_set(target: Option<&Named<'_>>, step: &Step<'_>) -> Result<bool, Error> {
    let (Some(from), Some(to)) = (&step.from, &step.to) else { return Ok(false) };
    let found = target.map(|target| observe::object(target.at())).transpose()?.flatten();
    Ok(found.is_none_or(|found| {
        let (old, new, now) = (from.state.meta.mtime, to.state.meta.mtime, found.state.meta.mtime);
        found.state.meta_difference(&to.state).is_some() || !to.state.is_dir() && old != new && now == old
    }))
}

fn undo(
    fs: &Fs,
    store: &Store,
    session: &Session,
    journal: &Journal,
    (notes, strays): (&mut Vec<String>, &mut Vec<LeftPath>),
) -> Result<Outcome, Error> {
    // First of all, as only the journal tells of it.
    if let Err(error) = note_undone(fs, store, journal) {
        notes.push(format!("the log could not be written: {error}"));
    }
    learn_again(fs, session, journal, notes);
    let Remains { left, strays: gone, notes: said } = take_back(fs, store, session, journal)?;
    *strays = gone;
    notes.extend(said);
    if !left.is_empty() {
        return Ok(Outcome::Left(left));
    }
    // A rollback had freed it. Without room for it now, recovery has succeeded all the same.
    if let Err(error) = reserve::keep_again(fs, session) {
        notes.push(format!("could not reserve room for the rollback of what is still on the tree: {error}"));
    }
    Ok(Outcome::Undone)
}

/// Logs that it was undone. The line of the log may say that it was done: it is written before the seal is known to be durable.
fn note_undone(fs: &Fs, store: &Store, journal: &Journal) -> Result<(), Error> {
    if records::last_noted(store, journal)?.as_deref() == Some(DONE) {
        records::note(fs, store, journal, log::UNDONE)?;
    }
    Ok(())
}

/// Goes on behind the commit point: nothing is undone any more.
fn settle_sealed(
    fs: &Fs,
    store: &Store,
    session: &Session,
    journal: &Journal,
    choice: Option<Choice>,
    notes: &mut Vec<String>,
) -> Result<Outcome, Error> {
    let id = session.id();
    if choice == Some(Choice::Undo) {
        let why = "the interrupted operation was done and sealed";
        let remedy = command(format_args!("recover {id}")) + ", then the verb that goes back";
        return Err(not_decided(session.dir.path().display(), why, remedy));
    }
    // The rename of the header may not have been synced: written anew it is durable (I19).
    seal_again(fs, session)?;
    learn_again(fs, session, journal, notes);
    let mut reach = Reach::of(&session.dir, journal)?;
    notes.extend(settle(fs, store, session, &mut reach, journal, When::Recovering)?);
    Ok(match &journal.head.rest {
        None => Outcome::Settled,
        Some(left) if left.is_empty() => Outcome::Undone,
        Some(left) => Outcome::Left(left.clone()),
    })
}

/// Writes the hashes again. What follows needs no room, and none of these lines.
fn learn_again(fs: &Fs, session: &Session, journal: &Journal, notes: &mut Vec<String>) {
    if let Err(error) = records::learn_again(fs, session, journal) {
        notes.push(format!("its hashes could not be saved, so its files may be reported as changed: {error}"));
    }
}

fn seal_again(fs: &Fs, session: &Session) -> Result<(), Error> {
    let at = session.dir.at(b"session.json");
    Ok(fs.replace(at, &crate::session::header_bytes(&session.header))?)
}

fn keep_journal(store: &Store, id: &Id, error: Error) -> Error {
    if error.reason() == Some(&Reason::NotDecided) {
        return error;
    }
    let path = store.journals().at(id.as_str().as_bytes()).to_string();
    let is_closed = error.io().is_some_and(|why| why.raw_os_error() == Some(libc::EACCES));
    let at = error.path().filter(|_| is_closed).and_then(|path| AbsPath::parse(path).ok());
    let stuck = stuck(path, error, "the journal stays; nothing more is touched");
    match at.as_ref().and_then(way_in) {
        None => stuck,
        Some(chmod) => stuck.with_remedy(chmod + ", then " + command("recover") + " tries again"),
    }
}

/// The roots whose file systems are missing: a mount's root directory is no longer the recorded object. They are given up if the user
/// wants the operation ended all the same, else an error.
fn lost_roots(store: &Store, journal: &Journal, choice: Option<Choice>) -> Result<Vec<AbsPath>, Error> {
    let mut lost = Vec::new();
    let mut roots = Roots::read()?;
    for record in &journal.head.roots {
        let why = match roots.root_of(&record.point) {
            Err(error) => error.why(),
            Ok(root) => {
                let stat = root.dir.stat()?;
                if root.mount.point == record.point && observe::identity(&stat) == record.identity {
                    continue;
                }
                "another one is mounted, or none".into()
            }
        };
        if choice != Some(Choice::GiveUp) {
            let (fs_type, verb, id) = (&record.fs_type, journal.head.verb.word(), &journal.head.session);
            return Err(unmounted(
                &record.point,
                format!("the file system ({fs_type}) that an interrupted {verb} of session {id} worked on is not there: {why}"),
                &store.path,
                id,
            ));
        }
        lost.push(record.point.clone());
    }
    Ok(lost)
}

/// Finds an interrupted operation of another session that holds a path at, above or under one of `paths`, which are in path order.
pub fn holds_any(store: &Store, own: &Id, paths: &[&AbsPath]) -> Result<Option<(Id, AbsPath)>, Error> {
    for id in store.journaled()? {
        if id == *own {
            continue;
        }
        // An unreadable journal tells of no path.
        let Ok(Some(journal)) = Journal::read(store, &id) else { continue };
        for item in &journal.items {
            let at = paths.partition_point(|path| **path < item.path);
            let under = paths.get(at).filter(|path| path.is_under(&item.path));
            let mut above = item.path.ancestors();
            let above = || above.find_map(|above| paths.binary_search(&&above).ok()).map(|i| &paths[i]);
            if let Some(path) = under.or_else(above) {
                return Ok(Some((id, (*path).clone())));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::rc::Rc;

    use crate::engine::recover::find_objects::holds;
    use crate::engine::recover::recovery::*;
    use crate::tree::{Hash, What};

    /// `/proc` has no birth times, nor have NFS and FUSE: an inode number there may belong to another object by now.
    #[test]
    fn without_a_birth_time_an_inode_of_another_size_is_not_taken_for_the_object_that_had_its_number() {
        let dir = Rc::new(Dir::open(Path::new("/proc")).expect("/proc"));
        let named = Named { dir, name: b"version" };
        let mut seen = observe::object(named.at()).expect("a look").expect("a file");
        if seen.print.identity.btime.is_some() {
            return eprintln!("skipped: an object without a birth time: /proc has them here");
        }
        assert!(holds(Some(&named), Some(&seen)).expect("a look"), "unread there is nothing else to tell it by");
        seen.state.what = What::File { size: seen.state.size() + 1, hash: Some(Hash::of(b"what was there")), index: None };
        assert!(!holds(Some(&named), Some(&seen)).expect("a look"));
    }
}
