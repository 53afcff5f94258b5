//! Makes steps durable, done or undone: the directories in which names changed, and what was set in place.

use std::collections::BTreeSet;
use std::fs::File;

use crate::engine::item::Item;
use crate::engine::journal::Journal;
use crate::engine::reach::{Reach, open, split};
use crate::engine::step::{Act, Spot};
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Fs, Roots};

/// From this number of objects on, one syncfs is cheaper than an fsync of each (D7).
pub const MANY: usize = 16;

/// The next `session.json`, until the seal gives it that name.
pub const NEW_HEADER: &[u8] = b"session.json.new";

/// Syncs the session's directories first, which survivors lie in, then the tree's, then what was set in place (D4, D5). Before all of
/// these come `facts` (D1), each with its directory: a file system with a journal then writes all at once. With them goes the
/// checkpoint's directory, where the former manifest has got a second name (D2).
pub fn sync_touched(fs: &Fs, reach: &mut Reach, journal: &Journal, facts: &[(File, &Dir)]) -> Result<(), Error> {
    let mut held: BTreeSet<Vec<u8>> = BTreeSet::new();
    held.extend((!facts.is_empty()).then(|| b"checkpoint".to_vec()));
    let mut directories: BTreeSet<AbsPath> = journal.head.times.iter().map(|time| time.path.clone()).collect();
    let mut in_place: Vec<&AbsPath> = Vec::new();
    for step in journal.steps() {
        if held.len() + directories.len() + in_place.len() > MANY {
            sync_file_systems(fs, reach, journal)?;
            return sync_mounted(fs, reach, journal);
        }
        let home = step.at.put_away().cloned();
        for spot in [step.at.to, step.at.out, home].into_iter().flatten() {
            match spot {
                Spot::Session(below) => held.extend([split(&below).0.to_vec()]),
                Spot::Tree(path) => directories.extend(path.parent()),
            }
        }
        match step.act {
            Act::SetMeta => in_place.push(step.path),
            _ => directories.extend(step.path.parent()),
        }
    }
    let files: Vec<_> = facts.iter().map(|(file, directory)| (file, directory.path())).collect();
    fs.sync_all(&files)?;
    for below in &held {
        match reach.held(below) {
            Ok(dir) => sync_names(fs, &dir, &reach.session())?,
            // An interrupted undo had removed it.
            Err(error) if error.leads_nowhere() && journal.prepared_spots().contains(&Spot::Session(below.clone())) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for path in &directories {
        match reach.roots.directory(path) {
            Ok(dir) => sync_directory(fs, &mut reach.roots, path, &dir)?,
            Err(error) if error.leads_nowhere() => sync_where_it_went(fs, reach, journal, path)?,
            Err(error) => return Err(error.into()),
        }
    }
    for path in in_place {
        let named = match reach.path(path) {
            Ok(named) => named,
            Err(error) if error.leads_nowhere() => continue,
            Err(error) => return Err(error.into()),
        };
        match fs.sync_at(named.at()) {
            Err(error) if error.errno() == Some(libc::EACCES) => {
                // D5 (file system: not caught here: the model has one user, who may read all that he has).
                let root = reach.roots.root_of(path)?;
                fs.sync_fs(&root.dir)?;
            }
            other => other?, // D5
        }
    }
    Ok(())
}

/// Syncs each file system with one call (D7).
fn sync_file_systems(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    let session = reach.session();
    let mut synced = vec![session.stat()?.dev];
    fs.sync_fs(&session)?;
    for root in &journal.head.roots {
        let root = reach.roots.root_of(&root.point)?;
        let dev = root.dir.stat()?.dev;
        if !synced.contains(&dev) {
            synced.push(dev);
            // D4, D7 (file system: not caught here: the model's large sessions lie on one file system).
            fs.sync_fs(&root.dir)?;
        }
    }
    Ok(())
}

/// Syncs files that are mounted themselves and whose metadata was set: no root leads to their file systems.
fn sync_mounted(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    for step in journal.steps().filter(|step| step.act == Act::SetMeta && !step.was_dir()) {
        let Some(named) = open(reach.path(step.path))? else { continue };
        if named.at().stat()?.is_some_and(|stat| stat.mount_root) {
            fs.sync_at(named.at())?; // D5 (file: not caught here: the model mounts no file)
        }
    }
    Ok(())
}

/// Syncs the names in a directory (D2). If this user may not read it, syncs its file system through `beside`, a directory on the same.
#[track_caller]
pub fn sync_names(fs: &Fs, dir: &Dir, beside: &Dir) -> Result<(), Error> {
    // D2 (file system: not caught here, as above).
    let synced = if dir.readable() { fs.sync_dir(dir) } else { fs.sync_fs(beside) };
    Ok(synced?)
}

#[track_caller]
pub fn sync_directory(fs: &Fs, roots: &mut Roots, path: &AbsPath, dir: &Dir) -> Result<(), Error> {
    sync_names(fs, dir, &roots.root_of(path)?.dir)
}

/// Syncs the directory that a spot lies in.
#[track_caller]
pub fn sync_directory_of(fs: &Fs, reach: &mut Reach, spot: &Spot, dir: &Dir) -> Result<(), Error> {
    match spot {
        Spot::Session(_) => sync_names(fs, dir, &reach.session()),
        Spot::Tree(path) => sync_directory(fs, &mut reach.roots, path, dir),
    }
}

/// Syncs a directory that lost names before it went itself. D4: else these might reappear beside the new ones, and rollback could not
/// fill the directory.
fn sync_where_it_went(fs: &Fs, reach: &mut Reach, journal: &Journal, path: &AbsPath) -> Result<(), Error> {
    let went = |item: &&Item| item.path == *path && item.moves() && item.was_dir();
    let Some(item) = journal.items.iter().find(went) else { return Ok(()) };
    let places = journal.frame().places(item);
    let Some(out) = places.put_away().or(places.out.as_ref()) else { return Ok(()) };
    let named = match reach.spot(out) {
        Err(error) if error.leads_nowhere() => return Ok(()),
        other => other?,
    };
    match fs.sync_at(named.at()) {
        Err(error) if error.errno() == Some(libc::EACCES) => {
            // D4 (file system: not caught here, as above).
            Ok(fs.sync_fs(&named.dir)?)
        }
        other => Ok(other?),
    }
}
