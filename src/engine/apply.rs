//! Apply and seal: the steps in their order, each checked by what comes out of it; then the commit point.

use std::collections::BTreeSet;
use std::fs::File;
use std::rc::Rc;

use super::conflict::Conflict;
use super::item::{Item, Turn};
use super::job::Verb;
use super::journal::Journal;
use super::plan::Told;
use super::prepare::{Intended, MANY};
use super::reach::{Named, Reach, split};
use super::step::{Act, Spot, Step};
use super::{Error, Progress, meta, undo};
use crate::error::{At, IoError};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Time, leads_nowhere};
use crate::fs::path::AbsPath;
use crate::session::store::{Locked, Store, header_bytes};
use crate::tree::look::{self, Seen};
use crate::tree::state::{Difference, What};

/// Every step is done; nothing is known to be durable yet.
pub struct Applied {
    done: Done,
}

/// The new generation is durable: nothing is undone any more.
pub struct Sealed {
    pub(super) done: Done,
}

/// What apply leaves to those behind it.
pub(super) struct Done {
    pub journal: Journal,
    pub reach: Reach,
    pub told: Told,
    /// The ctime that what was put had right then, for each item: a later one is somebody else's.
    pub put: Vec<Option<Time>>,
}

/// A failure on the way, and how many steps may have left something behind.
struct Stopped {
    why: Error,
    begun: usize,
}

impl Intended {
    /// Does the steps. On a failure, or where something else comes out than was planned, all that was done is undone.
    pub fn apply(self, fs: &Fs, store: &Store, session: &Locked, progress: &dyn Progress) -> Result<Applied, Error> {
        let Intended { journal, mut reach, told } = self;
        reach.reopen();
        match do_steps(fs, &mut reach, &journal, progress) {
            Ok(put) => Ok(Applied { done: Done { journal, reach, told, put } }),
            Err(Stopped { why, begun }) => Err(undo::after_failure(fs, store, session, &journal, begun, why)),
        }
    }
}

fn do_steps(fs: &Fs, reach: &mut Reach, journal: &Journal, progress: &dyn Progress) -> Result<Vec<Option<Time>>, Stopped> {
    let all = journal.turns.len();
    let mut put = vec![None; journal.items.len()];
    for (done, turn) in journal.turns.iter().enumerate() {
        progress.at(journal.head.verb.word(), done, all);
        let ctime = do_step(fs, reach, &journal.step(*turn)).map_err(|why| {
            // What came upon something else has put it back, or has not begun.
            let begun = if matches!(why, Error::Conflicts(_)) { done } else { done + 1 };
            Stopped { why, begun }
        })?;
        if let Turn::Move(i) | Turn::Finish(i) = *turn {
            put[i as usize] = ctime;
        }
    }
    set_times(fs, reach, journal).map_err(|why| Stopped { why, begun: all })?;
    Ok(put)
}

fn set_times(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    for time in &journal.head.times {
        let Some(new) = time.new else { continue };
        let dir = reach.roots.folder(&time.path).at("open the folder", &time.path)?;
        fs.set_mtime(dir.at(b"."), new).at("set the time of", &time.path)?;
    }
    Ok(())
}

/// Does one step. Gives the ctime of what is at the path then.
fn do_step(fs: &Fs, reach: &mut Reach, step: &Step<'_>) -> Result<Option<Time>, Error> {
    let target = match reach.path(step.path) {
        Err(error) if leads_nowhere(&error) => {
            let conflict = Conflict::said(step.path, "its folder", "none, or a link on the way to it");
            return Err(Error::Conflicts(vec![conflict]));
        }
        other => other.at("open the folder of", step.path)?,
    };
    if step.was_folder() && step.act != Act::SetMeta {
        reach.forget(step.path);
    }
    match step.act {
        Act::Stay => return Ok(None),
        Act::SetMeta => set_meta(fs, &target, step)?,
        Act::Place => {
            let to_at = named(reach, step.at.to.as_ref(), step)?;
            fs.place(to_at.at(), target.at()).map_err(|error| taken(step, error))?;
        }
        Act::Replace => {
            let to_at = named(reach, step.at.to.as_ref(), step)?;
            fs.exchange(to_at.at(), target.at()).map_err(|error| not_swapped(step, error))?;
            if let Err(conflict) = check_what_came_out(&to_at, step) {
                // Put back at once; what is done so far is undone by the caller.
                fs.exchange(to_at.at(), target.at()).at("put back", step.path)?;
                return Err(conflict);
            }
        }
        Act::Remove => {
            let out = named(reach, step.at.out.as_ref(), step)?;
            fs.take(target.at(), out.at()).map_err(|error| vanished(step, error))?;
            if let Err(conflict) = check_what_came_out(&out, step) {
                fs.place(out.at(), target.at()).at("put back", step.path)?;
                return Err(conflict);
            }
            return Ok(None);
        }
    }
    Ok(target.at().stat().at("look at", step.path)?.map(|stat| stat.ctime))
}

fn named<'p>(reach: &mut Reach, spot: Option<&'p Spot>, step: &Step<'_>) -> Result<Named<'p>, Error> {
    let spot = spot.ok_or_else(|| Error::Refused(vec![(step.path.to_string(), "the step names no place for it".into())]))?;
    Ok(reach.spot(spot).at("open the folder of", spot)?)
}

fn taken(step: &Step<'_>, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::Conflicts(vec![Conflict::said(step.path, "nothing", "something that appeared meanwhile")])
        }
        _ => IoError { path: step.path.to_string(), act: "put in place", source: error }.into(),
    }
}

/// What a file system says that does not know RENAME_EXCHANGE, and what a filter of system calls does: renameat2(2).
fn not_swapped(step: &Step<'_>, error: std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSYS | libc::EPERM) => {
            Error::NoExchange { at: step.path.clone(), why: crate::error::reason(&error) }
        }
        _ => vanished(step, error),
    }
}

fn vanished(step: &Step<'_>, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Conflicts(vec![Conflict::said(step.path, "what was there in planning", "nothing")])
        }
        _ => IoError { path: step.path.to_string(), act: "move", source: error }.into(),
    }
}

/// The race between look and act is closed by the act: what came out has to be what planning saw.
fn check_what_came_out(out: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    let Some(planned) = &step.from else { return Ok(()) };
    let changed = |what: &str| Err(Error::Conflicts(vec![Conflict::said(step.path, "what was there in planning", what)]));
    let Some(stat) = out.at().stat().at("look at", step.path)? else { return changed("nothing") };
    let meta = &planned.state.meta;
    let same_object = look::identity(&stat) == planned.print.identity && stat.sort == planned.state.sort();
    if !same_object || (stat.uid, stat.gid) != (meta.uid, meta.gid) || stat.mode != meta.mode {
        return changed("something else, put there meanwhile");
    }
    if planned.state.is_folder() {
        let dir = out.at().open_dir().at("open the folder", step.path)?;
        if !step.whole && !dir.is_empty().at("list the folder", step.path)? {
            return changed("a folder with something new in it");
        }
        return Ok(());
    }
    if stat.mtime != meta.mtime || matches!(planned.state.what, What::File { size, .. } if size != stat.size) {
        return changed("a file that was written to meanwhile");
    }
    // Racily clean: the times could hide a change, the digest cannot.
    if planned.print.racy
        && let Some(digest) = planned.state.digest()
        && look::digest(out.at()).at("read", step.path)?.0 != digest
    {
        return changed("a file that was written to meanwhile");
    }
    Ok(())
}

fn set_meta(fs: &Fs, target: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    let (Some(from), Some(to)) = (&step.from, &step.to) else { return Ok(()) };
    let expected = |found: Option<&Seen>| {
        let found = found.map(|seen| seen.state.clone());
        Error::Conflicts(vec![Conflict::of(step.path, &Some(from.state.clone()), &found, Difference::Kind)])
    };
    let Some(found) = look::look(target.at()).at("look at", step.path)? else { return Err(expected(None)) };
    if found.print.identity != from.print.identity || from.state.meta_difference(&found.state).is_some() {
        return Err(expected(Some(&found)));
    }
    meta::bring(fs, target.at(), to.state.sort(), &found.state.meta, &to.state.meta).at("set the metadata of", step.path)?;
    Ok(())
}

impl Applied {
    /// Makes every change durable, then replaces `session.json`: the rename is the commit point (E4).
    pub fn seal(self, fs: &Fs, store: &Store, session: &mut Locked) -> Result<Sealed, Error> {
        let mut done = self.done;
        let durable = write_header(fs, session, &done.journal)
            .and_then(|header| sync_touched(fs, &mut done.reach, &done.journal, Some(&header)));
        if let Err(why) = durable.and_then(|()| rename_header(fs, session)) {
            let begun = done.journal.turns.len();
            return Err(undo::after_failure(fs, store, session, &done.journal, begun, why));
        }
        make_seal_last(fs, session, &done.journal)?;
        Ok(Sealed { done })
    }
}

const NEW_HEADER: &[u8] = b"session.json.new";

fn write_header(fs: &Fs, session: &Locked, journal: &Journal) -> Result<File, Error> {
    let temp = session.dir.at(NEW_HEADER);
    fs.unlink_if_there(temp).at("remove", temp)?;
    let file = fs.create(temp, 0o600).at("make", temp)?;
    fs.write(&file, &header_bytes(&journal.head.header), session.dir.path()).at("write", temp)?;
    Ok(file)
}

/// The commit point: before it a crash means undo, after it settle. A rename(2) that fails has not been done.
fn rename_header(fs: &Fs, session: &Locked) -> Result<(), Error> {
    let (temp, at) = (session.dir.at(NEW_HEADER), session.dir.at(b"session.json"));
    Ok(fs.rename_over(temp, at).at("replace", at)?)
}

/// An error behind the commit point is no reason to undo: only that it lasts is in doubt.
fn make_seal_last(fs: &Fs, session: &mut Locked, journal: &Journal) -> Result<(), Error> {
    fs.sync_dir(&session.dir).map_err(|why| Error::Stuck {
        path: session.dir.at(b"session.json").to_string(),
        why: format!("cannot seal: {}", crate::error::reason(&why)),
        state: format!("the {} is on the tree, not known to be durable; its journal stays", journal.head.verb.word()),
    })?; // D2, I2
    session.set_header(journal.head.header.clone());
    Ok(())
}

/// D4, D5: the folders that survivors lie in first, the session's; then the tree's; then what was set in place.
/// With the header that is to be sealed first of all (D1): a file system with a journal writes all of them at once then.
pub(super) fn sync_touched(fs: &Fs, reach: &mut Reach, journal: &Journal, header: Option<&File>) -> Result<(), Error> {
    let mut held: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut folders: BTreeSet<AbsPath> = journal.head.times.iter().map(|time| time.path.clone()).collect();
    let mut in_place: Vec<&AbsPath> = Vec::new();
    for step in journal.steps() {
        if held.len() + folders.len() + in_place.len() > MANY {
            return sync_file_systems(fs, reach, journal);
        }
        for spot in [step.at.to, step.at.out].into_iter().flatten() {
            match spot {
                Spot::Session(below) => held.extend([split(&below).0.to_vec()]),
                Spot::Tree(path) => folders.extend(path.parent()),
            }
        }
        match step.act {
            Act::SetMeta => in_place.push(step.path),
            _ => folders.extend(step.path.parent()),
        }
    }
    if let Some(header) = header {
        fs.sync(header, reach.session().path()).at("sync", reach.session().at(NEW_HEADER))?;
    }
    for below in &held {
        let dir = reach.held(below).at("open the session's folder", crate::fs::path::Shown(below))?;
        fs.sync_dir(&dir).at("sync", dir.path().display())?;
    }
    for path in &folders {
        match reach.roots.folder(path) {
            Ok(dir) => sync_folder(fs, reach, path, dir)?,
            Err(error) if leads_nowhere(&error) => sync_where_it_went(fs, reach, journal, path)?,
            Err(error) => return Err(error).at("open the folder", path).map_err(Error::from),
        }
    }
    for path in in_place {
        let named = match reach.path(path) {
            Ok(named) => named,
            Err(error) if leads_nowhere(&error) => continue,
            Err(error) => return Err(error).at("open the folder of", path).map_err(Error::from),
        };
        match fs.sync_at(named.at()) {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                let root = reach.roots.root_of(path).at("find the mount of", path)?;
                fs.sync_fs(&root.dir).at("sync the file system of", &root.mount.point)?;
            }
            other => other.at("sync", path)?,
        }
    }
    Ok(())
}

fn sync_file_systems(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    let session = reach.session();
    let mut synced = vec![session.stat().at("look at", session.path().display())?.dev];
    fs.sync_fs(&session).at("sync the file system of", session.path().display())?;
    for root in &journal.head.roots {
        let root = reach.roots.root_of(&root.point).at("open", &root.point)?;
        let dev = root.dir.stat().at("look at", &root.mount.point)?.dev;
        if !synced.contains(&dev) {
            synced.push(dev);
            fs.sync_fs(&root.dir).at("sync the file system of", &root.mount.point)?;
        }
    }
    Ok(())
}

fn sync_folder(fs: &Fs, reach: &mut Reach, path: &AbsPath, dir: Rc<Dir>) -> Result<(), Error> {
    if dir.readable() {
        fs.sync_dir(&dir).at("sync", path)?;
    } else {
        let root = reach.roots.root_of(path).at("find the mount of", path)?;
        fs.sync_fs(&root.dir).at("sync the file system of", &root.mount.point)?;
    }
    Ok(())
}

/// A folder that went with one of the steps has lost names before. D4: unsynced it might show them again beside the ones that
/// they have now, and could not be filled at rollback.
fn sync_where_it_went(fs: &Fs, reach: &mut Reach, journal: &Journal, path: &AbsPath) -> Result<(), Error> {
    let went = |item: &&Item| item.path == *path && item.moves() && item.was_folder();
    let Some(out) = journal.items.iter().find(went).and_then(|item| journal.frame().places(item).out) else { return Ok(()) };
    let named = match reach.spot(&out) {
        Err(error) if leads_nowhere(&error) => return Ok(()),
        other => other.at("open the folder of", &out)?,
    };
    match fs.sync_at(named.at()) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
            Ok(fs.sync_fs(&named.dir).at("sync the file system of", named.at())?)
        }
        other => Ok(other.at("sync", named.at())?),
    }
}

impl Verb {
    /// The word for what the log says when it is done.
    pub fn past(self) -> &'static str {
        match self {
            Verb::Commit => "committed",
            Verb::Rollback => "rolled back",
            Verb::Redo => "redone",
        }
    }
}
