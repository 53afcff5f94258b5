//! Makes the uppers of a step that no command made: over the sealed ones they show what was chosen, and all else as it was.
//!
//! An object that is chosen lies in the upper, and a whiteout where nothing is to be. Each directory above them looks as the session shows
//! it. A directory over something else, or the reverse, hides what lies below, as in any overlay (overlayfs.rst, "Upper and Lower").

use std::collections::HashMap;

use super::chosen::{Choice, Content, on_tree, original};
use super::collect::below::Below;
use super::collect::facts::{Facts, tops};
use super::ids::Ids;
use super::layout::{Route, is_overlay_xattr};
use super::upper::dress;
use crate::error::{Error, Kind};
use crate::fs::Fs;
use crate::fs::device_number::Dev;
use crate::fs::dir::{Dir, Entry, Inode, Sort, Time};
use crate::fs::path::AbsPath;
use crate::session::run::Place;
use crate::tree::state::{Meta, State, What};

/// The uppers of one step.
pub(super) struct Uppers<'a> {
    fs: &'a Fs,
    facts: &'a Facts<'a>,
    ids: &'a Ids,
    /// Times that directories get in place of those that show.
    times: &'a HashMap<AbsPath, Time>,
    /// Files of the tree with several names: the directory and the name of the first copy.
    copies: HashMap<Inode, (Dir, Vec<u8>)>,
}

/// A directory of an upper that is being made.
struct Level {
    path: AbsPath,
    dir: Dir,
    /// The uppers that it lies over.
    below: Below,
    /// Its look; that of the top is not known before the end.
    meta: Option<Meta>,
}

impl<'a> Uppers<'a> {
    pub fn new(fs: &'a Fs, facts: &'a Facts<'a>, ids: &'a Ids, times: &'a HashMap<AbsPath, Time>) -> Self {
        Self { fs, facts, ids, times, copies: HashMap::new() }
    }

    /// Makes the upper of a place with the choices there, in path order. Returns the time that it was given.
    pub fn make(&mut self, place: &Place, choices: Vec<&mut Choice>) -> Result<Time, Error> {
        let uppers = self.facts.held.at(b"upper").open_dir()?;
        let name = place.upper_name(self.facts.step);
        let at = uppers.at(&name);
        self.fs.mkdir(at, 0o700)?;
        let Some((upper, below)) = tops(self.facts, place)? else {
            return Err(Error::at(Kind::Refused, &place.path, "the file system that holds it is not there"));
        };
        let mut top = None;
        let mut levels = vec![Level { path: place.path.clone(), dir: upper.again()?, below: below.clone(), meta: None }];
        for choice in choices {
            if choice.path == place.path {
                top = choice.after.as_ref().map(|after| after.meta.clone());
            } else {
                self.put(&mut levels, choice)?;
            }
        }
        while let Some(level) = levels.pop() {
            self.dress(&level)?;
        }
        self.dress_top(place, at, &below, top)
    }

    /// Gives the upper the look of the directory that it covers, or the chosen one.
    fn dress_top(&self, place: &Place, at: Entry<'_>, below: &Below, chosen: Option<Meta>) -> Result<Time, Error> {
        let mut mtime = Time::default();
        if let Some((shown, _)) = below.top() {
            mtime = dress(self.fs, self.facts.route, self.ids, at, (shown, self.facts.sealed))?;
        }
        if let Some(meta) = chosen {
            // Of another's directory a user's upper has what a user can set.
            if self.facts.route == Route::Root {
                self.fs.set_owner(at, meta.uid, meta.gid)?;
            }
            self.fs.set_mode(at, meta.mode)?;
            mtime = meta.mtime;
        }
        let mtime = self.times.get(&place.path).copied().unwrap_or(mtime);
        self.fs.set_mtime(at, mtime)?;
        Ok(mtime)
    }

    /// Puts what is chosen at a path into the upper.
    fn put(&mut self, levels: &mut Vec<Level>, choice: &mut Choice) -> Result<(), Error> {
        let Some((parent, name)) = choice.path.split() else { return Ok(()) };
        let (parent, name) = (parent.to_vec(), name.to_vec());
        while levels.len() > 1 && levels.last().is_some_and(|level| !choice.path.is_under(&level.path)) {
            let level = levels.pop();
            level.map_or(Ok(()), |level| self.dress(&level))?;
        }
        let from = levels.last().map_or(0, |level| level.path.as_bytes().len());
        for name in parent.get(from..).unwrap_or_default().split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            // Nothing is to be where no directory is.
            if !self.enter(levels, name, None)? {
                return Ok(());
            }
        }
        let Some(level) = levels.last() else { return Ok(()) };
        let to = level.dir.at(&name);
        match &choice.after {
            None if level.below.at(&name)?.is_none() => Ok(()),
            None => Ok(self.fs.mknod(to, Sort::Char, 0o600, Dev(0, 0))?),
            Some(after) if after.is_dir() => {
                let meta = after.meta.clone();
                self.enter(levels, &name, Some(meta)).map(drop)
            }
            Some(after) => {
                let made = self.object((&choice.path, after), &mut choice.content, (&level.dir, to));
                made.map_err(|error| unmade(&choice.path, error))
            }
        }
    }

    /// Makes the directory at a name, and goes down into it. It looks as the session shows it, or as it was `chosen`. False if something
    /// else was chosen there, or nothing shows.
    fn enter(&self, levels: &mut Vec<Level>, name: &[u8], chosen: Option<Meta>) -> Result<bool, Error> {
        let Some(level) = levels.last() else { return Ok(false) };
        let (below, at) = (level.below.enter(name)?, level.dir.at(name));
        let Some(meta) = chosen.map_or_else(|| self.shown(&below), |meta| Ok(Some(meta)))? else { return Ok(false) };
        if at.stat()?.is_some() {
            return Ok(false);
        }
        self.fs.mkdir(at, 0o700)?;
        let path = level.path.join(name).map_err(|error| Error::at(Kind::Refused, &level.path, error))?;
        let dir = at.open_dir()?;
        levels.push(Level { path, dir, below, meta: Some(meta) });
        Ok(true)
    }

    /// The look of the directory that shows. Overlayfs' notes go with it, but for those of what lies below it: this one hides nothing.
    fn shown(&self, below: &Below) -> Result<Option<Meta>, Error> {
        let Some((dir, is_held)) = below.top() else { return Ok(None) };
        let stat = dir.stat()?;
        let hiding = |name: &[u8]| is_overlay_xattr(name) && (name.ends_with(b".opaque") || name.ends_with(b".redirect"));
        let xattrs = dir.xattrs()?.into_iter().filter(|(name, _)| !hiding(name)).collect();
        let mode = if is_held { self.facts.sealed.as_left(&stat) } else { stat.mode };
        Ok(Some(Meta { mode, ..Meta::of(&stat, xattrs) }))
    }

    /// Dresses a directory once no more names come into it.
    fn dress(&self, level: &Level) -> Result<(), Error> {
        let Some(mut meta) = level.meta.clone() else { return Ok(()) };
        meta.mtime = self.times.get(&level.path).copied().unwrap_or(meta.mtime);
        self.set(level.dir.at(b"."), Sort::Directory, &meta).map_err(|error| unmade(&level.path, error))
    }

    /// Makes an object that is no directory.
    fn object(
        &mut self,
        (path, after): (&AbsPath, &State),
        content: &mut Content,
        (dir, to): (&Dir, Entry<'_>),
    ) -> Result<(), Error> {
        match &after.what {
            What::Directory => {}
            What::File { .. } => {
                let inode = match content {
                    Content::Original => on_tree(path)?.at(path.name()).stat()?.and_then(|stat| stat.shared()),
                    _ => None,
                };
                if let Some((first, name)) = inode.and_then(|inode| self.copies.get(&inode)) {
                    return Ok(self.fs.link(first.at(name), to)?);
                }
                self.file(path, content, to)?;
                if let Some(inode) = inode {
                    self.copies.insert(inode, (dir.again()?, to.name.to_vec()));
                }
            }
            What::Symlink { target } => self.fs.symlink(target, to)?,
            What::Char(device) | What::Block(device) => self.fs.mknod(to, after.sort(), 0o600, *device)?,
            What::Fifo | What::Socket => self.fs.mknod(to, after.sort(), 0o600, Dev(0, 0))?,
        }
        self.set(to, after.sort(), &after.meta)
    }

    fn file(&self, path: &AbsPath, content: &mut Content, to: Entry<'_>) -> Result<(), Error> {
        let file = self.fs.create(to, 0o600)?;
        match content {
            Content::Original => drop(self.fs.copy(&original(path)?, &file, to)?),
            Content::Bytes(bytes) => self.fs.write(&file, bytes, to)?,
            Content::AsHeld | Content::None => {}
        }
        Ok(())
    }

    /// Sets metadata: owner first, as that clears setuid and capabilities; the mode after an ACL, which sets bits of it; the time last.
    fn set(&self, at: Entry<'_>, sort: Sort, meta: &Meta) -> Result<(), Error> {
        let is = at.stat()?.map(|stat| (stat.uid, stat.gid));
        if is != Some((meta.uid, meta.gid)) {
            self.fs.set_owner(at, meta.uid, meta.gid)?;
        }
        for (name, value) in &meta.xattrs {
            self.fs.set_xattr(at, name, value)?;
        }
        if sort != Sort::Symlink {
            self.fs.set_mode(at, meta.mode)?;
        }
        Ok(self.fs.set_mtime(at, meta.mtime)?)
    }
}

/// The error for an object that this user may not make or read.
fn unmade(path: &AbsPath, error: Error) -> Error {
    let is_denied =
        error.io().is_some_and(|error| matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EOPNOTSUPP)));
    match is_denied {
        true => Error::at(Kind::Refused, path, format_args!("this user cannot make it in the session: {}", error.why()))
            .with_remedy("leave it out, or rewind to a step before the change"),
        false => error,
    }
}
