//! Removes what Prepare made and nothing needs, for an undo, or a recovery that finds half a journal. Names what is not where it was
//! made, or is no longer empty.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use crate::checkpoint::manifest;
use crate::engine::journal::{Draft, Journal, prepared_spots_of};
use crate::engine::plan::rights::with_rights;
use crate::engine::reach::{Named, Reach, parent_of, split};
use crate::engine::report::LeftPath;
use crate::engine::step::{DirectoryTime, Spot};
use crate::engine::work::sync::{NEW_HEADER, sync_directory, sync_directory_of};
use crate::engine::work::times::put_back_time;
use crate::engine::work::{records, reserve};
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Dir, Entry, Fs, Roots, Shown, Sort, Stat};
use crate::session::{Id, Session, Store, part};
use crate::tree::observe;

/// The reason given for a name of recant's own that is not where it was made.
pub const STRAY: &str = "recant's temporary object; its directory is gone or was moved: if moved, remove the object there";

fn stray(path: &AbsPath) -> LeftPath {
    LeftPath { path: path.clone(), why: STRAY.into() }
}

/// Removes what is only half there: a draft, a journal without its name.
pub fn clean_draft(fs: &Fs, store: &Store, session: Option<&Session>, id: &Id) -> Result<Vec<LeftPath>, Error> {
    let draft = Draft::read(store.journals(), id)?;
    // One that a power cut left when its operation had ended lists what is in use now.
    let strays = match (draft, session) {
        (Some(draft), Some(session)) if session.header.generation < draft.generation => {
            clean(fs, session, &mut Reach::new(&session.dir)?, None, (&draft.made, &draft.times))?
        }
        (Some(draft), None) => clean_tree(fs, &draft)?,
        _ => Vec::new(),
    };
    Journal::remove(fs, store, id)?;
    Ok(strays)
}

/// Removes from the tree what was made for a session that is gone, under names of recant's own.
fn clean_tree(fs: &Fs, draft: &Draft) -> Result<Vec<LeftPath>, Error> {
    let mut roots = Roots::read()?;
    let mut strays = Vec::new();
    for spot in draft.made.iter().rev() {
        let Spot::Tree(path) = spot else { continue };
        let Some(parent) = path.parent() else { continue };
        let dir = match roots.directory(&parent) {
            Ok(dir) => dir,
            Err(error) if error.leads_nowhere() => {
                strays.push(stray(path));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let named = Named { dir: dir.clone(), name: path.name() };
        if let Some(directory) = remove(fs, &named, spot)? {
            strays.push(keep_in(fs, (dir.clone(), parent), &named, &directory)?);
        }
        // D2: a temporary name that came back after a power cut would be nobody's (directory: not caught here).
        sync_directory(fs, &mut roots, path, &dir)?;
    }
    draft.times.iter().try_for_each(|time| put_back_time(fs, &mut roots, time))?;
    Ok(strays)
}

/// Removes what Prepare made; `journal` is given once something may have been put. Returns names whose directory is not where it was, as
/// whoever moved it has moved them too, and directories that stay.
pub fn clean(
    fs: &Fs,
    session: &Session,
    reach: &mut Reach,
    journal: Option<&Journal>,
    (made, times): (&[Spot], &[DirectoryTime]),
) -> Result<Vec<LeftPath>, Error> {
    let (mut in_tree, mut strays) = (false, Vec::new());
    for spot in made.iter().rev() {
        let named = match reach.prepared(spot) {
            Ok(named) => named,
            Err(error) if error.leads_nowhere() => {
                strays.extend(in_the_tree(spot).filter(|path| !reach.roots.is_lost(path)).map(stray));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(path) = in_the_tree(spot) {
            in_tree = true;
            strays.extend(is_another(&named, spot, times)?.then(|| stray(path)));
        }
        let mut stays = remove(fs, &named, spot)?;
        if let (Some(_), Some(journal)) = (stays, journal) {
            remove_names(fs, journal, named.at(), spot)?;
            stays = remove(fs, &named, spot)?;
        }
        if let Some(directory) = stays {
            strays.push(keep(fs, session, &named, spot, &directory)?);
        }
        // D2: a temporary name that came back after a power cut would be nobody's.
        let dir = named.dir.clone();
        sync_directory_of(fs, reach, spot, &dir)?;
    }
    if in_tree {
        for time in times {
            put_back_time(fs, &mut reach.roots, time)?;
        }
    }
    for name in [NEW_HEADER, b"changes.jsonl.new"] {
        fs.unlink_if_there(session.dir.at(name))?;
    }
    let checkpoint = records::directory(session)?;
    fs.unlink_if_there(checkpoint.at(manifest::NEW))?;
    if session.header.counts.inside == 0 {
        reserve::drop_all(fs, session)?;
    }
    fs.sync_dir(&session.dir)?;
    Ok(strays)
}

/// Removes what Prepare made. A directory goes only if empty: a process that worked in it on the tree may have put something there (D12).
/// Returns one that is not empty, and leaves it.
fn remove(fs: &Fs, named: &Named<'_>, spot: &Spot) -> Result<Option<Stat>, Error> {
    let at = named.at();
    let was_on_the_tree = matches!(spot, Spot::Tree(_)) || spot.is_in(b"held/objects");
    let directory = at.stat()?.filter(|stat| stat.sort == Sort::Directory && was_on_the_tree);
    let removed = match directory {
        Some(_) => with_rights(fs, [named, named], || fs.rmdir(at)),
        None => with_rights(fs, [named, named], || fs.remove_all(at)),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && directory.is_some() => Ok(directory),
        done => Ok(done.map(|()| None)?),
    }
}

/// Puts aside a directory that is not empty, beside where it was made or in the session, under a name that no operation uses.
fn keep(fs: &Fs, session: &Session, named: &Named<'_>, spot: &Spot, directory: &Stat) -> Result<LeftPath, Error> {
    match spot {
        Spot::Tree(path) => keep_in(fs, (named.dir.clone(), parent_of(path)?), named, directory),
        Spot::Session(_) => keep_in(fs, (Rc::new(kept_directory(fs, session)?), kept_path(session)?), named, directory),
    }
}

fn keep_in(fs: &Fs, (dir, path): (Rc<Dir>, AbsPath), named: &Named<'_>, directory: &Stat) -> Result<LeftPath, Error> {
    let name = [named.name, KEPT, directory.ino.to_string().as_bytes()].concat();
    let aside = Named { dir, name: &name };
    with_rights(fs, [named, &aside], || fs.place(named.at(), aside.at()))?;
    // D2: nothing else leads there (directory: not caught here: the model has nobody who works in a directory).
    fs.sync_dir(&aside.dir)?;
    Ok(filled(&path, &name))
}

/// Removes names that a power cut has brought back into a directory (F13). All but empty directories still have the name that an undo
/// gave them.
fn remove_names(fs: &Fs, journal: &Journal, at: Entry<'_>, spot: &Spot) -> Result<(), Error> {
    let frame = journal.frame();
    let Some(top) = journal.items.iter().find(|item| prepared_spots_of(&frame, item).any(|made| made == *spot)) else {
        return Ok(());
    };
    let directory = at.open_dir()?;
    for item in journal.items.iter().rev().filter(|item| item.path != top.path) {
        let Some((above, name)) = item.path.below(&top.path).map(split) else { continue };
        let dir = match directory.open_below(above) {
            Err(error) if error.leads_nowhere() => continue,
            dir => dir?,
        };
        let stale = dir.at(name);
        let is_it = |stat: &Stat| item.to.as_ref().is_some_and(|to| to.print.identity == observe::identity(stat));
        match stale.stat()? {
            Some(stat) if stat.sort == Sort::Directory => match fs.rmdir(stale) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                done => done?,
            },
            Some(stat) if is_it(&stat) => fs.unlink(stale)?,
            _ => {}
        }
    }
    Ok(())
}

const KEPT: &[u8] = b"-kept-";
const KEPT_DIRECTORY: &[u8] = b"displaced/kept";

/// Opens the place in a session for such directories: under `displaced/`, which no prune takes unasked.
fn kept_directory(fs: &Fs, session: &Session) -> Result<Dir, Error> {
    let (below, name) = split(KEPT_DIRECTORY);
    let displaced = part(&session.dir, below)?;
    let at = displaced.at(name);
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    // D3 (directory: not caught here, as above).
    fs.sync_dir(&displaced)?;
    Ok(at.open_dir()?)
}

fn kept_path(session: &Session) -> Result<AbsPath, Error> {
    let path = session.dir.path().join("displaced/kept");
    Ok(AbsPath::parse(path.as_os_str().as_bytes()).map_err(io::Error::other).at("name the directory", path.display())?)
}

/// Adds to `told` the directories that Prepare made and that stayed after an earlier try without a report.
pub fn add_kept(reach: &mut Reach, session: &Session, made: &[Spot], told: &mut Vec<LeftPath>) -> Result<(), Error> {
    let mut listed = BTreeMap::new();
    for spot in made {
        let (directory, name) = match spot {
            Spot::Tree(path) => (parent_of(path)?, path.name()),
            Spot::Session(below) if spot.is_in(b"held/objects") => (kept_path(session)?, split(below).1),
            Spot::Session(_) => continue,
        };
        if !listed.contains_key(&directory) {
            let opened = match spot {
                Spot::Session(_) => session.dir.open_below(KEPT_DIRECTORY).map(Rc::new),
                Spot::Tree(_) => reach.roots.directory(&directory),
            };
            listed.insert(directory.clone(), kept_in(opened)?);
        }
        let its = listed[&directory].iter().filter(|kept| kept.strip_prefix(name).is_some_and(|rest| rest.starts_with(KEPT)));
        let kept: Vec<LeftPath> = its.map(|kept| filled(&directory, kept)).filter(|kept| !told.contains(kept)).collect();
        told.extend(kept);
    }
    Ok(())
}

/// The names of directories that were kept; none in a directory that has gone, or cannot be listed.
fn kept_in(directory: Result<Rc<Dir>, IoError>) -> Result<Vec<Vec<u8>>, IoError> {
    let listed = directory.and_then(|directory| Ok((directory.names()?, directory)));
    let (names, directory) = match listed {
        Err(error) if error.leads_nowhere() || error.errno() == Some(libc::EACCES) => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut kept = Vec::new();
    for name in names {
        let is_kept = name.windows(KEPT.len()).any(|part| part == KEPT);
        if is_kept && directory.at(&name).stat()?.is_some_and(|stat| stat.sort == Sort::Directory) {
            kept.push(name);
        }
    }
    Ok(kept)
}

fn filled(directory: &AbsPath, name: &[u8]) -> LeftPath {
    match directory.join(name) {
        Ok(path) => LeftPath { path, why: FILLED.into() },
        // A path that is longer than a path can be.
        Err(_) => LeftPath { path: directory.clone(), why: format!("{}, in it: {FILLED}", Shown(name)) },
    }
}

const FILLED: &str = "a process that worked in the directory has put something into it; it stays here";

fn in_the_tree(spot: &Spot) -> Option<&AbsPath> {
    match spot {
        Spot::Tree(path) => Some(path),
        Spot::Session(_) => None,
    }
}

/// True if another directory has taken the place of the one that it was made in, and has nothing of that name.
pub fn is_another(named: &Named<'_>, spot: &Spot, times: &[DirectoryTime]) -> Result<bool, Error> {
    let Some(directory) = in_the_tree(spot).and_then(AbsPath::parent) else { return Ok(false) };
    let Some(known) = times.iter().find(|time| time.path == directory) else { return Ok(false) };
    let stat = named.dir.stat()?;
    Ok(!known.identity.is(observe::identity(&stat)) && named.at().stat()?.is_none())
}
