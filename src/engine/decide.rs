//! What an undo had to leave alone, decided by the user: `--force` puts the recorded object back and keeps what is found,
//! `--finish` leaves the tree as it is and keeps the recorded object.
//!
//! The decision is written into the journal first; whichever recant comes next carries it out. Each effect tells by where the
//! objects lie whether it was done (E1), so that a crash at any point is gone on from. What is kept lies under
//! `displaced/<generation>/<n>`, with its manifest, as what any `--force` overwrites. Both seal a new generation (E4).

use super::clean::{add_kept, clean};
use super::displaced::{displaced_below, make_folder, read_digest, write_displaced};
use super::durable::{sync_touched, sync_whole};
use super::item::{Item, Turn};
use super::job::{Decision, Verb};
use super::journal::{Journal, made_for};
use super::prepare::Hands;
use super::reach::{Named, Reach, open, parent_of};
use super::report::Left;
use super::rights::with_rights;
use super::step::{Act, Spot, Step};
use super::times::{restore_times, standing_times};
use super::undo::{Whose, holds, is_one_file, undo_step, whose};
use super::{Error, facts, meta};
use crate::checkpoint::manifest::{Kept, Reading, Writing, name_written};
use crate::error::{At, recant};
use crate::fs::Fs;
use crate::fs::dir::Sort;
use crate::fs::path::AbsPath;
use crate::session::header::Header;
use crate::session::log;
use crate::session::sides::Side;
use crate::session::store::{Session, Store, header_bytes};
use crate::tree::look::{self, Seen};
use crate::tree::state::{Likeness, What};

/// What came of a decision.
#[derive(Debug)]
pub struct Decided {
    /// Which it was.
    pub decision: Decision,
    /// What is kept in the session now, and where below its folder: the found object by `--force`, the recorded one by `--finish`.
    pub kept: Vec<(AbsPath, String)>,
    /// Where the recorded object could not be put back although that was asked for.
    pub left: Vec<Left>,
}

/// The commands that decide, for messages.
pub fn how_to_decide(id: &str) -> String {
    format!(
        "{recant} recover {id} --force puts back what was there and keeps what it finds; \
         {recant} recover {id} --finish leaves the tree as it is",
        recant = recant()
    )
}

/// Decides about a journal that undo has left, durably, and carries it out. Notes in `strays` the names of recant's own that may lie in a
/// folder which is not where it was.
pub(super) fn decide(
    fs: &Fs,
    store: &Store,
    session: &Session,
    mut journal: Journal,
    how: Decision,
    strays: &mut Vec<Left>,
) -> Result<Decided, Error> {
    if journal.head.decided != Some(how) {
        let mut reach = Reach::of(&session.dir, &journal)?;
        refuse_what_cannot_be_kept(&mut reach, &journal, how)?;
        if journal.head.decided.is_none() {
            note_metadata(&mut reach, &mut journal)?;
            journal.head.times = standing_times(&mut reach, &journal)?;
        }
        journal.head.decided = Some(how);
        journal.write_new(fs, store)?.replace(fs, store, session.id())?;
    }
    let (header, left) = carry_out(fs, session, &journal, how)?;
    let kept = end(fs, store, session, &header, &journal, how, strays)?;
    Ok(Decided { decision: how, kept, left })
}

/// A folder with something in it cannot be brought to the session from another file system.
fn refuse_what_cannot_be_kept(reach: &mut Reach, journal: &Journal, how: Decision) -> Result<(), Error> {
    if how == Decision::Finish {
        return Ok(());
    }
    for item in journal.items.iter().filter(|item| item.moves() && item.beside.is_some()) {
        let Some(target) = open(reach.path(&item.path), "open the folder of", &item.path)? else { continue };
        if holds_more(&target, journal, &item.path)? {
            let id = &journal.head.session;
            return Err(Error::NotDecided {
                path: item.path.to_string(),
                why: "the folder that is there now has something in it, and the store, where it would be kept, is on another file system"
                    .into(),
                remedy: format!("move it away, then {recant} recover {id} --force; or {recant} recover {id} --finish leaves it", recant = recant()),
            });
        }
    }
    Ok(())
}

/// Whether a folder is there with something in it that is not decided about itself.
fn holds_more(target: &Named<'_>, journal: &Journal, path: &AbsPath) -> Result<bool, Error> {
    if target.at().stat().at("look at", path)?.is_none_or(|stat| stat.sort != Sort::Folder) {
        return Ok(false);
    }
    let names = target.at().open_dir().and_then(|dir| dir.names()).at("list the folder", path)?;
    let decided = |name: &Vec<u8>| {
        let child = path.join(name).ok();
        child.is_some_and(|child| journal.items.binary_search_by(|item| item.path.cmp(&child)).is_ok())
    };
    Ok(!names.iter().all(decided))
}

/// Where an inode stayed, what it has now is what is kept: afterwards nothing else tells.
fn note_metadata(reach: &mut Reach, journal: &mut Journal) -> Result<(), Error> {
    for item in journal.items.iter_mut().filter(|item| item.act == Act::SetMeta) {
        let (Some(from), Some(to)) = (&item.from, &mut item.to) else { continue };
        let Some(target) = open(reach.path(&item.path), "open the folder of", &item.path)? else { continue };
        let found = look::look(target.at()).at("look at", &item.path)?;
        if let Some(found) = found.filter(|found| found.print.identity == from.print.identity) {
            to.state.meta = found.state.meta;
        }
    }
    Ok(())
}

/// Carries a decision out from wherever it was cut off before its seal, and seals it. Gives the header, and where the recorded object could
/// not be put back.
fn carry_out(fs: &Fs, session: &Session, journal: &Journal, how: Decision) -> Result<(Header, Vec<Left>), Error> {
    let mut reach = Reach::of(&session.dir, journal)?;
    make_folder(fs, &mut reach, journal)?;
    let mut left = Vec::new();
    for turn in journal.turns.iter().rev() {
        let step = journal.step(*turn);
        let finished = if let Turn::Finish(i) = *turn { Some(&journal.items[i as usize]) } else { None };
        let mut hands = Deciding { fs, reach: &mut reach, journal, step: &step, finished };
        let why = match (how, number(journal, *turn)) {
            (Decision::Force, n) => hands.put_back(fresh(journal, *turn), n)?,
            (Decision::Finish, Some(n)) => {
                // A force that was cut off may have put aside what it found.
                hands.keep_found(n)?;
                hands.keep_recorded(n)?;
                None
            }
            (Decision::Finish, None) => None,
        };
        left.extend(why.map(|why| Left { path: step.path.clone(), why }));
    }
    left.reverse();
    if how == Decision::Force {
        restore_times(fs, &mut reach, journal, &journal.head.times)?;
    }
    // D4: where things are kept now before where they were (folder: not caught here, as a rename that no sync has ordered shows the
    // object under its old name, or under both).
    let folder = reach.held(&displaced_below(journal)).at("open the folder", session.dir.path().display())?;
    fs.sync_dir(&folder).at("sync", folder.path().display())?;
    sync_touched(fs, &mut reach, journal, &[])?;
    let header = sealed(&mut reach, session, journal, how, &left)?;
    let at = session.dir.at(b"session.json");
    // E4. Without its name on disk the decision is carried out once more (folder: not caught here).
    fs.replace(at, &header_bytes(&header)).at("replace", at)?;
    Ok((header, left))
}

/// Ends what was sealed: manifests, what Prepare had made, the log, and last the journal. Notes in `strays` what `decide` does.
pub(super) fn end(
    fs: &Fs,
    store: &Store,
    session: &Session,
    header: &Header,
    journal: &Journal,
    how: Decision,
    strays: &mut Vec<Left>,
) -> Result<Vec<(AbsPath, String)>, Error> {
    let mut reach = Reach::of(&session.dir, journal)?;
    let kept = write_displaced(fs, &mut reach, journal, how)?;
    if journal.head.verb == Verb::Rollback {
        amend_manifest(fs, &mut reach, session, header, journal)?;
    }
    let frame = journal.frame();
    let in_displaced = |spot: &Spot| matches!(spot, Spot::Session(below) if below.starts_with(b"displaced/"));
    let made: Vec<Spot> =
        journal.items.iter().flat_map(|item| made_for(&frame, item)).filter(|spot| !in_displaced(spot)).collect();
    strays.extend(clean(fs, session, &mut reach, Some(journal), (&made, &journal.head.times))?);
    add_kept(&mut reach, session, &made, strays)?;
    note(fs, store, journal, how)?;
    Journal::remove(fs, store, session.id())?;
    Ok(kept)
}

/// The number of the change that a turn moves; none where only metadata is set.
fn number(journal: &Journal, turn: Turn) -> Option<u32> {
    match turn {
        Turn::Take(i) | Turn::Move(i) => Some(journal.items[i as usize].n),
        Turn::Open(_) | Turn::Finish(_) | Turn::Close(_) => None,
    }
}

fn fresh(journal: &Journal, turn: Turn) -> bool {
    matches!(turn, Turn::Move(i) if journal.items[i as usize].fresh)
}

/// One step that is decided about.
struct Deciding<'a> {
    fs: &'a Fs,
    reach: &'a mut Reach,
    journal: &'a Journal,
    step: &'a Step<'a>,
    /// Whose metadata it set at last.
    finished: Option<&'a Item>,
}

impl Deciding<'_> {
    /// `--force`: the recorded object takes its path again, and what is found there is kept. Gives the reason where it cannot.
    fn put_back(&mut self, fresh: bool, n: Option<u32>) -> Result<Option<String>, Error> {
        // Where nobody stands in the way any more it is undone as it always is.
        let why = undo_step(self.fs, self.reach, fresh, self.step)?;
        let Some(n) = n else {
            return match self.finished {
                // What came is put aside as it is, with what somebody has set on it.
                Some(item) if item.moves() => Ok(None),
                // What somebody has set since the decision noted what it found is kept nowhere: it is left.
                Some(_) => Ok(why),
                None => self.put_back_metadata(why),
            };
        };
        let why = match why {
            Some(why) => self.change_places(why)?,
            None => None,
        };
        // The recorded object has nowhere to go: it is kept, as by `--finish`.
        if why.is_some() {
            self.keep_recorded(n)?;
        }
        if why.is_none() {
            self.keep_found(n)?;
        }
        if self.step.was_folder() || self.step.to.as_ref().is_some_and(|to| to.state.is_folder()) {
            self.reach.forget(self.step.path);
        }
        Ok(why)
    }

    /// Of a folder that was opened up: it gets what it had.
    fn put_back_metadata(&mut self, why: Option<String>) -> Result<Option<String>, Error> {
        let (Some(why), Some(from)) = (why, &self.step.from) else { return Ok(None) };
        let Some(target) = open(self.reach.path(self.step.path), "open the folder of", self.step.path)? else {
            return Ok(Some(why));
        };
        let found = look::look(target.at()).at("look at", self.step.path)?;
        let Some(found) = found.filter(|found| found.print.identity == from.print.identity) else { return Ok(Some(why)) };
        let sort = found.state.sort();
        match meta::bring(self.fs, target.at(), sort, &found.state.meta, &from.state.meta) {
            // Somebody has set what only he may take off.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EROFS)) => Ok(Some(why)),
            brought => Ok(brought.at("set the metadata of", self.step.path).map(|()| None)?),
        }
    }

    /// What is found goes to where the recorded object lies, which takes its place.
    fn change_places(&mut self, why: String) -> Result<Option<String>, Error> {
        let Some(spot) = self.spot() else { return Ok(Some(why)) };
        let target = open(self.reach.path(self.step.path), "open the folder of", self.step.path)?;
        let lies = open(self.reach.spot(&spot), "open the folder of", &spot)?;
        let found = match &target {
            Some(target) => target.at().stat().at("look at", self.step.path)?,
            None => None,
        };
        if self.step.from.is_none() && found.is_none() {
            return Ok(None);
        }
        let (Some(target), Some(lies)) = (target, lies) else { return Ok(Some(why)) };
        let recorded = holds(Some(&lies), self.step.from.as_deref())?;
        if let Some(found) = found {
            // D1: whoever wrote it may not have synced it, and its name here is the promise that it is kept.
            sync_whole(self.fs, &target, found.sort)?;
        }
        match (&self.step.from, found) {
            (None, _) if is_one_file(&target, &lies)? => self.fs.unlink(target.at()).at("remove", self.step.path)?,
            (None, _) => self.take(&target, &lies).at("move", self.step.path)?,
            (Some(_), _) if !recorded => return Ok(Some(why)),
            (Some(_), None) => self.place(&lies, &target).at("put back", self.step.path)?,
            (Some(_), Some(_)) => match with_rights(self.fs, [&lies, &target], || self.fs.exchange(lies.at(), target.at())) {
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EPERM)) => {
                    let found = found_beside(&spot)?;
                    let found = self.reach.spot(&found).at("open the folder of", &found)?;
                    self.take(&target, &found).at("move", self.step.path)?;
                    self.place(&lies, &target).at("put back", self.step.path)?;
                }
                swapped => swapped.at("put back", self.step.path)?,
            },
        }
        Ok(None)
    }

    fn take(&self, from: &Named<'_>, to: &Named<'_>) -> std::io::Result<()> {
        with_rights(self.fs, [from, to], || self.fs.take(from.at(), to.at()))
    }

    fn place(&self, from: &Named<'_>, to: &Named<'_>) -> std::io::Result<()> {
        with_rights(self.fs, [from, to], || self.fs.place(from.at(), to.at()))
    }

    /// Where the recorded object lies after the step, or what was put if there was nothing before.
    fn spot(&self) -> Option<Spot> {
        self.step.at.out.clone().or_else(|| self.step.at.to.clone())
    }

    /// What took the recorded object's spot when that went back.
    fn keep_found(&mut self, n: u32) -> Result<(), Error> {
        let Some(spot) = self.spot() else { return Ok(()) };
        let found = found_beside(&spot)?;
        if open(self.reach.spot(&found), "open the folder of", &found)?.is_some() {
            self.put_away(&found, n)?;
        }
        let Some(lies) = open(self.reach.spot(&spot), "open the folder of", &spot)? else { return Ok(()) };
        let there = lies.at().stat().at("look at", &spot)?.is_some();
        if !there
            || holds(Some(&lies), self.step.from.as_deref())?
            || matches!(whose(&lies, self.step.to.as_deref())?, Whose::Ours)
        {
            return Ok(());
        }
        self.put_away(&spot, n)
    }

    /// The recorded object, where it is not at its path.
    fn keep_recorded(&mut self, n: u32) -> Result<(), Error> {
        let Some(spot) = self.step.at.out.clone() else { return Ok(()) };
        let lies = open(self.reach.spot(&spot), "open the folder of", &spot)?;
        if holds(lies.as_ref(), self.step.from.as_deref())? {
            return self.put_away(&spot, n);
        }
        let target = open(self.reach.path(self.step.path), "open the folder of", self.step.path)?;
        if holds(target.as_ref(), self.step.from.as_deref())? {
            return Ok(());
        }
        // It went with the folder that it lay in, and Prepare's copy is the only one; or this is a copy of the store, where it is another object,
        // and where it came out until it has gone home.
        if let Some(home) = self.step.at.home.clone() {
            self.put_away(&home, n)?;
        }
        match lies {
            Some(lies) if !matches!(whose(&lies, self.step.to.as_deref())?, Whose::Ours) => self.put_away(&spot, n),
            _ => Ok(()),
        }
    }

    /// From `spot` to `displaced/<generation>/<n>`; a name that is taken gets another number behind it.
    fn put_away(&mut self, spot: &Spot, n: u32) -> Result<(), Error> {
        let below = |name: String| Spot::Session([&*displaced_below(self.journal), b"/", name.as_bytes()].concat());
        let home = below(n.to_string());
        if *spot == home {
            return Ok(());
        }
        let lies = self.reach.spot(spot).at("open the folder of", spot)?;
        let Some(mut seen) = look::look(lies.at()).at("look at", spot)? else { return Ok(()) };
        read_digest(&mut seen, lies.at())?;
        let mut free = home;
        for k in 1.. {
            let named = self.reach.spot(&free).at("open the folder of", &free)?;
            let Some(mut there) = look::look(named.at()).at("look at", named.at())? else { break };
            read_digest(&mut there, named.at())?;
            // A copy of it from a try that was cut off; or Prepare's copy of what is back in its place.
            let same = |other: &Seen| other.state.likeness(&there.state) == Likeness::Same && !there.state.is_folder();
            if same(&seen) {
                with_rights(self.fs, [&lies, &lies], || self.fs.remove_all(lies.at())).at("remove", spot)?;
                return Ok(());
            }
            if self.step.at.copied && self.step.from.as_deref().is_some_and(same) {
                with_rights(self.fs, [&named, &named], || self.fs.remove_all(named.at())).at("remove", named.at())?;
                break;
            }
            free = below(format!("{n}.{k}"));
        }
        let named = self.reach.spot(&free).at("open the folder of", &free)?;
        match self.take(&lies, &named) {
            Err(error) if error.raw_os_error() == Some(libc::EXDEV) => {
                self.copy_away(spot, &free, &below(format!("{n}.new")), &seen)
            }
            put => Ok(put.at("put away", spot)?),
        }
    }

    /// Between two file systems: copied whole and durable before it goes (I7).
    fn copy_away(&mut self, spot: &Spot, to: &Spot, temp: &Spot, seen: &Seen) -> Result<(), Error> {
        self.copy_whole(spot, to, temp, seen)?;
        let lies = self.reach.spot(spot).at("open the folder of", spot)?;
        Ok(with_rights(self.fs, [&lies, &lies], || self.fs.remove_all(lies.at())).at("remove", spot)?)
    }

    fn copy_whole(&mut self, spot: &Spot, to: &Spot, temp: &Spot, seen: &Seen) -> Result<(), Error> {
        Hands::new(self.fs, self.reach, self.journal.frame()).copy(spot, temp, seen, true)?;
        let (temp, to) =
            (self.reach.spot(temp).at("open the folder of", temp)?, self.reach.spot(to).at("open the folder of", to)?);
        self.fs.sync_at(temp.at()).at("sync", temp.at())?; // D1
        self.fs.place(temp.at(), to.at()).at("put away", to.at())?;
        Ok(self.fs.sync_dir(&to.dir).at("sync", to.dir.path().display())?) // D2, before the only other one goes
    }
}

/// Where what is found lies for a moment if two names cannot swap: beside the recorded object.
fn found_beside(spot: &Spot) -> Result<Spot, Error> {
    Ok(match spot {
        Spot::Session(below) => Spot::Session([below, &b"-found"[..]].concat()),
        Spot::Tree(path) => {
            let parent = parent_of(path).at("find the folder of", path)?;
            let name = [path.name(), b"-found"].concat();
            let long = |error: crate::fs::path::PathError| Error::Refused(vec![(path.to_string(), error.to_string())]);
            Spot::Tree(parent.join(&name).map_err(long)?)
        }
    })
}

/// The header to be sealed: a change whose `after` is nowhere any more is out, and lost. One whose file is still in the session stays
/// where it was: a commit or rollback of it has yet to come.
fn sealed(reach: &mut Reach, session: &Session, journal: &Journal, how: Decision, left: &[Left]) -> Result<Header, Error> {
    let mut sides = session.sides_of_all()?;
    for item in &journal.items {
        let undone = how == Decision::Force && !left.iter().any(|left| left.path == item.path);
        let is_nowhere = is_lost(reach, journal, item)?;
        let is_held = item.moves() && is_file(item) && !is_nowhere;
        // Metadata that was left by force can be set again.
        let is_left = how == Decision::Force && item.act == Act::SetMeta && is_there(reach, item)?;
        let lost = !undone && !is_held && !is_left || journal.head.verb.inward() && is_nowhere;
        if let Some(side) = sides.get_mut(item.index as usize).filter(|_| lost) {
            *side = Side::Lost;
        }
    }
    let mut header = session.header.sealing(&sides);
    let kept = reach.held(&displaced_below(journal)).map_or(0, |folder| facts::bytes_below(&folder));
    header.sizes.displaced = header.sizes.displaced.saturating_add(kept);
    Ok(header)
}

/// Whether the object that an item found is at its path still.
fn is_there(reach: &mut Reach, item: &Item) -> Result<bool, Error> {
    let target = open(reach.path(&item.path), "open the folder of", &item.path)?;
    let found = target.map(|target| target.at().stat()).transpose().at("look at", &item.path)?.flatten();
    Ok(found.is_some_and(|found| item.from.as_ref().is_some_and(|from| from.print.identity == look::identity(&found))))
}

fn is_file(item: &Item) -> bool {
    item.to.as_ref().is_some_and(|to| matches!(to.state.what, What::File { .. }))
}

/// Whether the file that was to be put lies nowhere in the session any more.
fn is_lost(reach: &mut Reach, journal: &Journal, item: &Item) -> Result<bool, Error> {
    if !item.moves() || !is_file(item) {
        return Ok(false);
    }
    let places = journal.frame().places(item);
    if let Some(spot) = &places.to
        && holds(open(reach.spot(spot), "open the folder of", spot)?.as_ref(), item.to.as_ref())?
    {
        return Ok(false);
    }
    let Some(spare) = &places.spare else { return Ok(true) };
    let spare_at = open(reach.spot(spare), "open the folder of", spare)?;
    Ok(spare_at.map(|spare| spare.at().stat()).transpose().at("look at", spare)?.flatten().is_none())
}

/// A rollback that was taken back by force may have lost an original; what is out now needs none.
fn amend_manifest(fs: &Fs, reach: &mut Reach, session: &Session, header: &Header, journal: &Journal) -> Result<(), Error> {
    let sealed = Session { dir: session.dir.open_below(b"").at("open", session.dir.path().display())?, header: header.clone() };
    let sides = sealed.sides_of_all()?;
    let folder = facts::folder(session)?;
    let (mut old, mut new) = (Reading::open(&session.dir)?, Writing::begin(fs, &folder)?);
    while let Some(mut original) = old.next()? {
        if let Ok(i) = journal.items.binary_search_by(|item| item.path.cmp(&original.path)) {
            let item = &journal.items[i];
            if !sides.get(item.index as usize).is_some_and(|side| side.is_in()) {
                continue;
            }
            if is_lost(reach, journal, item)? {
                original.kept =
                    Kept::Uncovered { why: "it had been changed or removed when an interrupted rollback was undone".into() };
            }
        }
        new.original(&original)?;
    }
    let file = new.end(old.folder_times()?.values())?;
    fs.sync(&file, folder.path()).at("sync", folder.path().display())?; // D1
    name_written(fs, &folder)?;
    Ok(fs.sync_dir(&folder).at("sync", folder.path().display())?) // D2
}

fn note(fs: &Fs, store: &Store, journal: &Journal, how: Decision) -> Result<(), Error> {
    let result = if how == Decision::Force { "forced" } else { "finished" };
    let (head, paths) = (&journal.head, journal.items.len() as u64);
    Ok(log::append(fs, store, &log::Entry::new("recover", &head.session, head.generation + 1, result, paths))?)
}
