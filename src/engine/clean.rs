//! What Prepare made and nothing needs: it goes, by an undo, or by a recovery that finds half of a journal. What is not where it was made,
//! or is not empty any more, is named.

use super::durable::{NEW_HEADER, sync_folder, sync_folder_of};
use super::journal::{Draft, Journal};
use super::reach::{Named, Reach};
use super::report::Left;
use super::rights::with_rights;
use super::step::{FolderTime, Spot};
use super::times::put_back_time;
use super::{Error, facts, reserve};
use crate::checkpoint::manifest;
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::{Sort, leads_nowhere};
use crate::fs::path::AbsPath;
use crate::fs::roots::Roots;
use crate::session::id::Id;
use crate::session::store::{Session, Store};
use crate::tree::look;

/// What is said of a name of recant's own that was not found where it was made.
pub(super) const STRAY: &str = "recant's own, and its folder is not where it was; if that was moved, remove this name there";

fn stray(path: &AbsPath) -> Left {
    Left { path: path.clone(), why: STRAY.into() }
}

/// Removes what is only half of something: a draft, a journal without its name.
pub(super) fn clean_draft(fs: &Fs, store: &Store, session: Option<&Session>, id: &Id) -> Result<Vec<Left>, Error> {
    let draft = Draft::read(store.journals(), id)?;
    // One that a cut has left behind when its operation had ended lists what is in use now.
    let strays = match (draft, session) {
        (Some(draft), Some(session)) if session.header.generation < draft.generation => {
            clean(fs, session, &mut Reach::new(&session.dir)?, &draft.made, &draft.times)?
        }
        (Some(draft), None) => clean_tree(fs, &draft)?,
        _ => Vec::new(),
    };
    Journal::remove(fs, store, id)?;
    Ok(strays)
}

/// Of a session that is gone: what was made for it lies on the tree under names of recant's own.
fn clean_tree(fs: &Fs, draft: &Draft) -> Result<Vec<Left>, Error> {
    let mut roots = Roots::read().at("read the mounts from", "/proc/self/mountinfo")?;
    let mut strays = Vec::new();
    for spot in draft.made.iter().rev() {
        let Spot::Tree(path) = spot else { continue };
        let Some(parent) = path.parent() else { continue };
        let dir = match roots.folder(&parent) {
            Ok(dir) => dir,
            Err(error) if leads_nowhere(&error) => {
                strays.push(stray(path));
                continue;
            }
            Err(error) => return Err(error).at("open the folder", &parent).map_err(Error::from),
        };
        strays.extend(remove_made(fs, &Named { dir: dir.clone(), name: path.name() }, path)?);
        // D2: a temporary name that came back after a cut would be nobody's (folder: not caught here).
        sync_folder(fs, &mut roots, path, &dir)?;
    }
    draft.times.iter().try_for_each(|time| put_back_time(fs, &mut roots, time))?;
    Ok(strays)
}

/// Removes what Prepare made. Gives the names whose folder is not where it was: whoever moved it has moved them along (I6).
pub(super) fn clean(
    fs: &Fs,
    session: &Session,
    reach: &mut Reach,
    made: &[Spot],
    times: &[FolderTime],
) -> Result<Vec<Left>, Error> {
    let (mut in_tree, mut strays) = (false, Vec::new());
    for spot in made.iter().rev() {
        let named = match reach.made(spot) {
            Ok(named) => named,
            Err(error) if leads_nowhere(&error) => {
                strays.extend(in_the_tree(spot).filter(|path| !reach.roots.is_lost(path)).map(stray));
                continue;
            }
            Err(error) => return Err(error).at("open the folder of", spot).map_err(Error::from),
        };
        if let Some(path) = in_the_tree(spot) {
            in_tree = true;
            strays.extend(is_another(&named, spot, times)?.then(|| stray(path)));
            strays.extend(remove_made(fs, &named, path)?);
        } else {
            fs.remove_all(named.at()).at("remove", named.at())?;
        }
        // D2: a temporary name that came back after a cut would be nobody's.
        let dir = named.dir.clone();
        sync_folder_of(fs, reach, spot, &dir)?;
    }
    if in_tree {
        for time in times {
            put_back_time(fs, &mut reach.roots, time)?;
        }
    }
    for name in [NEW_HEADER, b"changes.jsonl.new"] {
        fs.unlink_if_there(session.dir.at(name)).at("remove", session.dir.at(name))?;
    }
    let checkpoint = facts::folder(session)?;
    fs.unlink_if_there(checkpoint.at(manifest::NEW)).at("remove", checkpoint.at(manifest::NEW))?;
    if session.header.counts.inside == 0 {
        reserve::drop_all(fs, session)?;
    }
    fs.sync_dir(&session.dir).at("sync", session.dir.path().display())?;
    Ok(strays)
}

/// Takes away what was made beside its target. A folder goes while it is empty: a process that worked in it while it was on the tree has put
/// there what is in it (D12). That stays, by a name that no operation uses, and is named.
fn remove_made(fs: &Fs, named: &Named<'_>, path: &AbsPath) -> Result<Option<Left>, Error> {
    let at = named.at();
    let Some(stat) = at.stat().at("look at", path)?.filter(|stat| stat.sort == Sort::Folder) else {
        with_rights(fs, [named, named], || fs.remove_all(at)).at("remove", path)?;
        return Ok(None);
    };
    match with_rights(fs, [named, named], || fs.rmdir(at)) {
        Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
        done => return Ok(done.at("remove", path).map(|()| None)?),
    }
    let kept = [path.name(), format!("-kept-{}", stat.ino).as_bytes()].concat();
    let aside = Named { dir: named.dir.clone(), name: &kept };
    with_rights(fs, [named, &aside], || fs.place(at, aside.at())).at("move", path)?;
    let kept = path.parent().and_then(|folder| folder.join(&kept).ok()).unwrap_or_else(|| path.clone());
    Ok(Some(Left { path: kept, why: "a process that worked in a new folder has put something into it; it stays here".into() }))
}

fn in_the_tree(spot: &Spot) -> Option<&AbsPath> {
    match spot {
        Spot::Tree(path) => Some(path),
        Spot::Session(_) => None,
    }
}

/// Whether the folder has taken the place of the one that it was made in, and has nothing of that name.
pub(super) fn is_another(named: &Named<'_>, spot: &Spot, times: &[FolderTime]) -> Result<bool, Error> {
    let Some(folder) = in_the_tree(spot).and_then(AbsPath::parent) else { return Ok(false) };
    let Some(known) = times.iter().find(|time| time.path == folder) else { return Ok(false) };
    let stat = named.dir.stat().at("look at", &folder)?;
    Ok(look::identity(&stat) != known.identity && named.at().stat().at("look at", spot)?.is_none())
}
