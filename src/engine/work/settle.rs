//! Settle: removes everything that was only on the way, and last the journal. A recovery first does what the seal would have done last;
//! repeated, it does the same (docs/ARCHITECTURE.md, Settle).

use std::collections::{BTreeSet, HashSet};

use super::displaced::{displaced_below, make_directory};
use super::sync::{MANY, sync_directory, sync_names};
use super::{records, reserve};
use crate::checkpoint::{Former, NEW, Reading, name_written};
use crate::engine::item::Item;
use crate::engine::journal::Journal;
use crate::engine::plan::rights::with_rights;
use crate::engine::reach::{Reach, open, split};
use crate::engine::recover::remove_prepared::{STRAY, is_another};
use crate::engine::recover::undo_steps::is_open_for_writing;
use crate::engine::step::{Act, Spot};
use crate::error::{Error, recant};
use crate::fs::{AbsPath, Dir, Fs, Sort, Stat};
use crate::session::{Session, Store, object_name};
use crate::tree::{Identity, Seen};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Right after the seal.
    Now,
    /// By a later recant: part of it may have been done, and somebody may have been at work since.
    Recovering,
}

/// Settles a sealed journal: lets go what is no longer needed, and removes the journal.
///
/// It was sealed with the objects at their homes, and the manifest under its name. Only a recovery writes the manifest anew: it knows
/// neither whether the name is durable nor what was on the tree then.
pub fn settle(
    fs: &Fs,
    store: &Store,
    session: &Session,
    reach: &mut Reach,
    journal: &Journal,
    when: When,
) -> Result<Vec<String>, Error> {
    let directory = records::directory(session)?;
    let mut notes = Vec::new();
    if when == When::Recovering {
        notes.extend(write_again(fs, store, session, reach, journal, &directory)?);
        notes.extend(overwritten(journal));
    }
    Former::new(fs, &directory, journal.head.generation).let_go()?;
    let gone = let_go(fs, reach, journal, when, &mut notes)?;
    records::write_forced_befores(fs, session, journal)?;
    // D2: the other names are gone before the journal, which alone knows them.
    sync_let_go(fs, reach, journal, &gone)?;
    // I8: if recant is killed after the journal is gone there is no report, and nothing else names what is kept.
    if !notes.is_empty()
        && let Err(error) = records::note_report(fs, store, journal, notes.clone())
    {
        notes.push(records::log_failed(&error));
    }
    if journal.head.verb.inward()
        && let Err(error) = reserve::keep_journal(fs, store, session)
    {
        notes.push(format!("could not reserve room for its rollback: {error}"));
    }
    if gone.is_empty() {
        Journal::let_go(fs, store, session.id())?;
    } else {
        Journal::remove(fs, store, session.id())?;
    }
    Ok(notes)
}

/// Notes for what `--force` has overwritten, with its place: no report told it (I8).
fn overwritten(journal: &Journal) -> impl Iterator<Item = String> {
    let (id, verb) = (&journal.head.session, journal.head.verb);
    let displaced = journal.items.iter().filter(move |item| item.moves() && item.displaces(verb));
    displaced.map(move |Item { path, .. }| {
        format!("what was overwritten is kept: {recant} cat {id} {path} --displaced", recant = recant())
    })
}

/// Writes what the seal would have written last: the manifest and the line of the log.
fn write_again(
    fs: &Fs,
    store: &Store,
    session: &Session,
    reach: &mut Reach,
    journal: &Journal,
    directory: &Dir,
) -> Result<Option<String>, Error> {
    // If the manifest is missing, only the former one has the lines of what was in before.
    if !Reading::open(&session.dir)?.is_there() {
        Former::new(fs, directory, journal.head.generation).put_back()?;
    }
    let manifest = records::write_manifest(fs, session, journal, directory, None)?;
    fs.sync(&manifest, directory.at(NEW))?; // D1
    records::write_displaced(fs, reach, journal)?;
    name_written(fs, directory)?;
    let noted = records::note_sealed_once(fs, store, journal);
    fs.sync_dir(directory)?; // D2
    Ok(noted.err().as_ref().map(records::log_failed))
}

/// Lets go what is never undone now (I7): what came out and was copied to its home before, or is not kept by policy, and the store's own
/// copies of what was put. Returns the places where names went or Prepare had made any.
fn let_go(fs: &Fs, reach: &mut Reach, journal: &Journal, when: When, notes: &mut Vec<String>) -> Result<Vec<Spot>, Error> {
    let frame = journal.frame();
    // Inodes whose times recant itself has set, under another name of theirs.
    let set = |item: &&Item| item.act == Act::SetMeta;
    let several = |from: &&Seen| from.nlink > 1;
    let from = journal.items.iter().filter(set).filter_map(|item| item.from.as_ref().filter(several));
    let dressed: Dressed = from.map(|from| from.print.identity).collect();
    if when == When::Recovering {
        notes.extend(kept_before(reach, journal)?);
    }
    let mut letting = LettingGo { fs, reach, journal, when, dressed, gone: Vec::new(), notes };
    for item in &journal.items {
        let places = frame.places(item);
        if let Some(copy) = frame.copy_for_undo(item) {
            letting.spare(item, copy)?;
        }
        if let (Some(from), Some(out)) = (&item.from, places.out.as_ref().filter(|_| places.lets_go() && !item.in_place)) {
            letting.came_out(item, from, out, places.copied)?;
        }
        // D12: the inode itself was moved, so whoever has it open, or another name of it, writes to what is kept.
        if let (Some(from), Some(home), false) = (&item.from, &places.home, places.copied)
            && written_since(letting.reach, home, from, &letting.dressed)?
        {
            let path = &item.path;
            letting.notes.push(format!(
                "{path}: the previous object was written to after it was moved into the session; {home} has it as it is now"
            ));
        }
        match places.spare {
            Some(spare) if frame.gives_name(item) => letting.keep_held(item, spare)?,
            Some(spare) => letting.spare(item, spare)?,
            None => {}
        }
        letting.gone.extend(places.to.filter(|to| matches!(to, Spot::Tree(_))));
    }
    Ok(letting.gone)
}

struct LettingGo<'a> {
    fs: &'a Fs,
    reach: &'a mut Reach,
    journal: &'a Journal,
    when: When,
    dressed: Dressed,
    /// The places where names went or Prepare had made any.
    gone: Vec<Spot>,
    notes: &'a mut Vec<String>,
}

impl LettingGo<'_> {
    /// Lets go what came out, unless somebody has written to it.
    fn came_out(&mut self, item: &Item, from: &Seen, out: &Spot, copied: bool) -> Result<(), Error> {
        let aside = self.journal.frame().aside(item, from);
        let why = if copied { still_needed(self.reach, out, from, &self.dressed)? } else { None };
        if let (Some(aside), Some(why)) = (&aside, why) {
            put_aside(self.fs, self.reach, out, aside)?;
            self.notes.push(format!("{}: {why} is kept as {aside}", item.path));
            self.gone.push(out.clone());
            return Ok(());
        }
        if let Some(aside) = aside.filter(|_| copied && self.when == When::Recovering)
            && stat_of(self.reach, &aside)?.is_some()
        {
            let what =
                if from.state.is_dir() { "what was put into the directory" } else { "what a process had open for writing" };
            self.notes.push(format!("{}: {what} is kept as {aside}", item.path));
        }
        match remove(self.fs, self.reach, self.journal, item, out)? {
            Removed::Away => {}
            Removed::NoDirectory => self.notes.push(format!("{out}: {STRAY}")),
            Removed::Filled(kept) => self.keep_filled(item, kept),
        }
        self.gone.push(out.clone());
        Ok(())
    }

    /// Lets go the store's own copy of what was put.
    fn spare(&mut self, item: &Item, spare: Spot) -> Result<(), Error> {
        if let Removed::Filled(kept) = remove(self.fs, self.reach, self.journal, item, &spare)? {
            self.keep_filled(item, kept);
        }
        self.gone.push(spare);
        Ok(())
    }

    /// Keeps the session's copy of a file that got a further name, where a redo looks for it.
    fn keep_held(&mut self, item: &Item, held: Spot) -> Result<(), Error> {
        let kept = Spot::Session(object_name(item.n));
        if held == kept || stat_of(self.reach, &held)?.is_none() {
            return Ok(());
        }
        let (from, to) = (self.reach.spot(&held)?, self.reach.spot(&kept)?);
        with_rights(self.fs, [&from, &to], || self.fs.place(from.at(), to.at()))?;
        self.gone.extend([held, kept]);
        Ok(())
    }

    fn keep_filled(&mut self, item: &Item, kept: Spot) {
        self.notes.push(filled(item, &kept));
        self.gone.push(kept);
    }
}

/// Notes for what an earlier try put aside in the session, perhaps without a report.
fn kept_before(reach: &mut Reach, journal: &Journal) -> Result<Vec<String>, Error> {
    let below = displaced_below(journal);
    let directory = match reach.held(&below) {
        Err(error) if error.leads_nowhere() => return Ok(Vec::new()),
        directory => directory?,
    };
    let mut names = directory.names()?;
    names.retain(|name| name.windows(6).any(|part| part == b"-kept-"));
    let spot = |name: &[u8]| Spot::Session([&*below, b"/", name].concat());
    let mut notes = Vec::new();
    for item in &journal.items {
        let its = format!("{}-kept-", item.n);
        notes.extend(names.iter().filter(|name| name.starts_with(its.as_bytes())).map(|name| filled(item, &spot(name))));
    }
    Ok(notes)
}

fn sync_let_go(fs: &Fs, reach: &mut Reach, journal: &Journal, gone: &[Spot]) -> Result<(), Error> {
    let (mut held, mut beside) = (BTreeSet::new(), BTreeSet::new());
    for spot in gone {
        match spot {
            Spot::Session(below) if held.len() <= MANY => held.extend([split(below).0.to_vec()]),
            Spot::Session(_) => {}
            Spot::Tree(path) => beside.extend(path.parent()),
        }
    }
    if held.len() > MANY {
        let session = reach.session();
        // D2, D7: one call for all of its directories.
        fs.sync_fs(&session)?;
        held.clear();
    }
    for below in &held {
        match reach.held(below) {
            // D2: a name that came back would only take room: no line of a manifest leads there (directory: not caught here).
            Ok(dir) => sync_names(fs, &dir, &reach.session())?,
            // An upper that is no longer needed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    for path in &beside {
        match reach.roots.directory(path) {
            Ok(dir) => {
                // Removing the temporary names has changed its time again.
                if let Some(new) = journal.head.times.iter().find(|time| time.path == *path).and_then(|time| time.new) {
                    fs.set_mtime(dir.at(b"."), new)?;
                }
                close_again(fs, journal, path, &dir)?;
                sync_directory(fs, &mut reach.roots, path, &dir)?;
            }
            Err(error) if error.leads_nowhere() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Closes a directory that the operation has closed to its owner, and that an interrupted Settle opened to remove something from it.
fn close_again(fs: &Fs, journal: &Journal, path: &AbsPath, dir: &Dir) -> Result<(), Error> {
    let Ok(i) = journal.items.binary_search_by(|item| item.path.cmp(path)) else { return Ok(()) };
    let Some(closed) = journal.items[i].to.as_ref().map(|to| &to.state).filter(|to| to.is_dir()) else { return Ok(()) };
    let (now, mode) = (dir.stat()?.mode, closed.meta.mode);
    if now != mode && now == mode | 0o700 {
        fs.set_mode(dir.at(b"."), mode)?;
    }
    Ok(())
}

/// The reason why the copy of an object is not enough: somebody has written to the object since, or still can (D12).
fn still_needed(reach: &mut Reach, out: &Spot, from: &Seen, dressed: &Dressed) -> Result<Option<&'static str>, Error> {
    if written_since(reach, out, from, dressed)? {
        return Ok(Some("it was written to meanwhile; its last content"));
    }
    let is_file = stat_of(reach, out)?.is_some_and(|stat| stat.sort == Sort::File);
    let Some(named) = open(reach.spot(out))? else { return Ok(None) };
    let open = is_file && is_open_for_writing(&named)?;
    Ok(open.then_some("a process still has the previous file open for writing; the file with its writes"))
}

/// Objects whose times recant itself has set since they were looked at.
type Dressed = HashSet<Identity>;

/// True if the object at `spot` was written to since it was seen as `from`. A time that recant itself has set proves nothing.
fn written_since(reach: &mut Reach, spot: &Spot, from: &Seen, dressed: &Dressed) -> Result<bool, Error> {
    let Some(stat) = stat_of(reach, spot)?.filter(|_| !from.state.is_dir()) else { return Ok(false) };
    let touched = stat.mtime != from.state.meta.mtime && !dressed.contains(&from.print.identity);
    Ok(touched || from.state.is_file() && stat.size != from.state.size())
}

/// Stats `spot`; `None` if nothing is there, or its directory is missing.
pub fn stat_of(reach: &mut Reach, spot: &Spot) -> Result<Option<Stat>, Error> {
    let Some(named) = open(reach.spot(spot))? else { return Ok(None) };
    Ok(named.at().stat()?)
}

/// Renames what stays beside its target to a name that no operation uses otherwise.
fn put_aside(fs: &Fs, reach: &mut Reach, out: &Spot, aside: &Spot) -> Result<(), Error> {
    let (Some(from), Some(to)) = (open(reach.spot(out))?, open(reach.spot(aside))?) else {
        return Ok(());
    };
    // Where rename has no flags, link(2) and unlink(2) stand for it: in between both names are there (F13).
    match (from.at().stat()?, to.at().stat()?) {
        (Some(one), Some(other)) if one.inode() == other.inode() => Ok(with_rights(fs, [&from, &from], || fs.unlink(from.at()))?),
        _ => Ok(with_rights(fs, [&from, &to], || fs.place(from.at(), to.at()))?),
    }
}

/// The outcome of removing an object that nothing needs any more.
enum Removed {
    Away,
    /// The directory that it lies in is not there.
    NoDirectory,
    /// Somebody who works in it has put something there since; it has another name now.
    Filled(Spot),
}

/// Removes what nothing needs any more. A directory had been emptied, so what is in it is somebody's (D12); an upper's may hold other
/// objects of the session.
fn remove(fs: &Fs, reach: &mut Reach, journal: &Journal, item: &Item, spot: &Spot) -> Result<Removed, Error> {
    let named = match reach.spot(spot) {
        Ok(named) => named,
        Err(error) if error.leads_nowhere() => return Ok(Removed::NoDirectory),
        Err(error) => return Err(error.into()),
    };
    let is_away = is_another(&named, spot, &journal.head.times)?;
    let stat = named.at().stat()?.filter(|stat| stat.sort == Sort::Directory && !spot.is_in(b"held/upper"));
    if let Some(stat) = stat {
        match with_rights(fs, [&named, &named], || fs.rmdir(named.at())) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                let kept = kept_as(fs, reach, journal, item, spot, stat.ino)?;
                put_aside(fs, reach, spot, &kept)?;
                return Ok(Removed::Filled(kept));
            }
            done => done?,
        }
    } else {
        // An upper's directory has the mode that the command gave it; one on the tree may have been closed by this operation.
        with_rights(fs, [&named, &named], || fs.remove_all(named.at()))?;
    }
    Ok(if is_away { Removed::NoDirectory } else { Removed::Away })
}

/// The place for a directory that somebody put something into: beside the target, or under `displaced/`, which no prune takes unasked.
fn kept_as(fs: &Fs, reach: &mut Reach, journal: &Journal, item: &Item, spot: &Spot, inode: u64) -> Result<Spot, Error> {
    let end = format!("-kept-{inode}");
    if let Some(aside) = journal.frame().beside(item, &end).filter(|_| matches!(spot, Spot::Tree(_))) {
        return Ok(aside);
    }
    make_directory(fs, reach, journal)?;
    Ok(Spot::Session([&*displaced_below(journal), format!("/{}{end}", item.n).as_bytes()].concat()))
}

fn filled(item: &Item, kept: &Spot) -> String {
    format!("{}: something was put into the directory by a process that worked in it; that is kept in {kept}", item.path)
}
