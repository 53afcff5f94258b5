//! Copies and makes objects.

use std::collections::HashMap;

use super::metadata;
use crate::engine::error::refused_at;
use crate::engine::reach::{Named, Reach};
use crate::engine::step::Spot;
use crate::error::Error;
use crate::fs::{AbsPath, Dev, Entry, Fs, Inode, Sort, Stat};
use crate::tree::{State, What, observe};

/// Copies an object to `spot`, which it takes, `state` what it has to be. `dress` also sets the metadata.
pub fn copy(fs: &Fs, reach: &mut Reach, source: &Spot, spot: &Spot, state: &State, dress: bool) -> Result<(), Error> {
    if !matches!(state.what, What::File { .. }) {
        return make(fs, reach, spot, state, dress);
    }
    let (from, named) = (reach.spot(source)?, reach.spot(spot)?);
    let at = named.at();
    fs.remove_all(at)?;
    let file = fs.create(at, 0o600)?;
    let content = from.at().open_file()?;
    fs.copy(&content, &file, at)?;
    let (hash, _) = observe::hash(at)?;
    if state.hash().is_some_and(|known| known != hash) {
        return Err(refused_at(from.at(), "its content changed while it was copied"));
    }
    if dress { bring(fs, at, state) } else { Ok(()) }
}

/// Gives a file on the tree a further name, at `spot`: nothing is set there, as the file has all of `state`.
pub fn link_original(fs: &Fs, reach: &mut Reach, original: &AbsPath, spot: &Spot, state: &State) -> Result<(), Error> {
    let (from, named) = (reach.path(original)?, reach.spot(spot)?);
    let at = named.at();
    fs.remove_all(at)?;
    fs.link(from.at(), at)?;
    let now = observe::object(at)?.ok_or_else(|| vanished(at))?;
    let is_it = now.state.is_file() && now.state.meta == state.meta && state.hash() == Some(observe::hash(at)?.0);
    if is_it { Ok(()) } else { Err(refused_at(from.at(), "it changed while it was made ready")) }
}

/// Makes a directory, link, FIFO, socket or device from its record. A directory stays closed, 0700, until it is filled.
pub fn make(fs: &Fs, reach: &mut Reach, spot: &Spot, state: &State, dress: bool) -> Result<(), Error> {
    let named = reach.spot(spot)?;
    let at = named.at();
    fs.remove_all(at)?;
    match &state.what {
        What::Directory => fs.mkdir(at, 0o700),
        What::Symlink { target } => fs.symlink(target, at),
        What::Fifo => fs.mknod(at, Sort::Fifo, 0o600, Dev(0, 0)),
        What::Socket => fs.mknod(at, Sort::Socket, 0o600, Dev(0, 0)),
        What::Char(dev) => fs.mknod(at, Sort::Char, 0o600, *dev),
        What::Block(dev) => fs.mknod(at, Sort::Block, 0o600, *dev),
        What::File { .. } => fs.create(at, 0o600).map(drop),
    }?;
    if dress {
        return bring(fs, at, state);
    }
    let now = observe::object(at)?.ok_or_else(|| vanished(at))?;
    if state.is_dir() && (now.state.meta.uid, now.state.meta.gid) != (state.meta.uid, state.meta.gid) {
        fs.set_owner(at, state.meta.uid, state.meta.gid)?;
    }
    Ok(())
}

fn bring(fs: &Fs, at: Entry<'_>, state: &State) -> Result<(), Error> {
    let now = observe::object(at)?.ok_or_else(|| vanished(at))?;
    Ok(metadata::bring(fs, at, state.sort(), &now.state.meta, &state.meta)?)
}

pub fn vanished(at: Entry<'_>) -> Error {
    refused_at(at, "it vanished while it was made ready")
}

/// The first name on the tree of each file that has several in the session.
#[derive(Default)]
pub struct Firsts(HashMap<Inode, AbsPath>);

impl Firsts {
    /// Takes what is at `path` for a name of what is copied at `source`.
    pub fn know(&mut self, source: &Named<'_>, path: &AbsPath) -> Result<(), Error> {
        let inode = source.at().stat()?.as_ref().and_then(Stat::shared);
        self.0.extend(inode.map(|inode| (inode, path.clone())));
        Ok(())
    }

    /// Makes an object at `spot`, and syncs it: a further name of a file that has come, a copy of `source`, or an object from
    /// the record.
    pub fn make(&mut self, fs: &Fs, reach: &mut Reach, source: Option<&Spot>, spot: &Spot, state: &State) -> Result<(), Error> {
        let original = source.map(|source| Ok::<_, Error>(reach.spot(source)?.at().stat()?)).transpose()?.flatten();
        let inode = original.as_ref().and_then(Stat::shared);
        if let Some(first) = inode.and_then(|inode| self.0.get(&inode))
            && link(fs, reach, first, spot)?
        {
            return Ok(());
        }
        match source {
            Some(source) => copy(fs, reach, source, spot, state, true)?,
            None => make(fs, reach, spot, state, true)?,
        }
        let named = reach.spot(spot)?;
        // D1, D10 (file: not caught here: the model has no subvolumes).
        match fs.sync_at(named.at()) {
            // Not readable for us, so it cannot be opened (file system: not caught here, as above).
            Err(error) if error.errno() == Some(libc::EACCES) => Ok(fs.sync_fs(&named.dir)?), // D1, D10
            synced => Ok(synced?),
        }
    }
}

/// Gives a file another name. False where a directory demands a project number, and the file has another one.
fn link(fs: &Fs, reach: &mut Reach, first: &AbsPath, spot: &Spot) -> Result<bool, Error> {
    let (first, named) = (reach.path(first)?, reach.spot(spot)?);
    fs.remove_all(named.at())?;
    match fs.link(first.at(), named.at()) {
        Err(error) if error.errno() == Some(libc::EXDEV) => Ok(false),
        linked => Ok(linked.map(|()| true)?),
    }
}
