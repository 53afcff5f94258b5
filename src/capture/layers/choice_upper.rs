//! Makes the uppers of a step that no command made: over the sealed ones they show what was chosen, and all else as it was.
//!
//! A file that is chosen lies in the upper. Each directory above it looks as the session shows it.

use std::collections::HashMap;

use super::choice_terms::Choice;
use super::upper_metadata::dress;
use crate::capture::collect::facts::{Facts, tops};
use crate::capture::collect::tree_below::TreeBelow;
use crate::capture::place::layout::is_overlay_xattr;
use crate::capture::run::ids::Ids;
use crate::error::{Error, Kind};
use crate::fs::{AbsPath, Dir, Entry, Fs, Time};
use crate::session::Place;
use crate::tree::Meta;

pub struct Uppers<'a> {
    fs: &'a Fs,
    facts: &'a Facts<'a>,
    ids: &'a Ids,
    /// Times that directories get in place of those that show.
    times: &'a HashMap<AbsPath, Time>,
}

/// A directory of an upper that is being made.
struct Level {
    path: AbsPath,
    dir: Dir,
    below: TreeBelow,
    /// Its look; that of the top is not known before the end.
    meta: Option<Meta>,
}

impl<'a> Uppers<'a> {
    pub fn new(fs: &'a Fs, facts: &'a Facts<'a>, ids: &'a Ids, times: &'a HashMap<AbsPath, Time>) -> Self {
        Self { fs, facts, ids, times }
    }

    /// Makes the upper of a place with the choices there, in path order. Returns the time that it was given.
    pub fn make(&self, place: &Place, choices: Vec<&Choice>) -> Result<Time, Error> {
        let uppers = self.facts.held.at(b"upper").open_dir()?;
        let name = place.upper_name(self.facts.step);
        let at = uppers.at(&name);
        self.fs.mkdir(at, 0o700)?;
        let Some((upper, below)) = tops(self.facts, place)? else {
            return Err(Error::at(Kind::Refused, &place.path, "the file system that holds it is not there"));
        };
        let mut levels = vec![Level { path: place.path.clone(), dir: upper.again()?, below: below.clone(), meta: None }];
        for choice in choices {
            self.put(&mut levels, choice)?;
        }
        while let Some(level) = levels.pop() {
            self.dress(&level)?;
        }
        self.dress_top(place, at, &below)
    }

    /// Gives the upper the look of the directory that it covers.
    fn dress_top(&self, place: &Place, at: Entry<'_>, below: &TreeBelow) -> Result<Time, Error> {
        let mut mtime = Time::default();
        if let Some((shown, _)) = below.top() {
            mtime = dress(self.fs, self.facts.route, self.ids, at, (shown, self.facts.sealed))?;
        }
        let mtime = self.times.get(&place.path).copied().unwrap_or(mtime);
        self.fs.set_mtime(at, mtime)?;
        Ok(mtime)
    }

    /// Puts the chosen file into the upper.
    fn put(&self, levels: &mut Vec<Level>, choice: &Choice) -> Result<(), Error> {
        let Some((parent, name)) = choice.path.split() else { return Ok(()) };
        while levels.len() > 1 && levels.last().is_some_and(|level| !choice.path.is_under(&level.path)) {
            let level = levels.pop();
            level.map_or(Ok(()), |level| self.dress(&level))?;
        }
        let from = levels.last().map_or(0, |level| level.path.as_bytes().len());
        for name in parent.get(from..).unwrap_or_default().split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            // Nothing is to be where no directory is.
            if !self.enter(levels, name)? {
                return Ok(());
            }
        }
        let Some(level) = levels.last() else { return Ok(()) };
        self.file(choice, level.dir.at(name)).map_err(|error| unmade(&choice.path, error))
    }

    /// Makes the directory at a name, as the session shows it, and goes down into it. False if none shows.
    fn enter(&self, levels: &mut Vec<Level>, name: &[u8]) -> Result<bool, Error> {
        let Some(level) = levels.last() else { return Ok(false) };
        let (below, at) = (level.below.enter(name)?, level.dir.at(name));
        let Some(meta) = self.shown(&below)? else { return Ok(false) };
        self.fs.mkdir(at, 0o700)?;
        let path = level.path.join(name).map_err(|error| Error::at(Kind::Refused, &level.path, error))?;
        let dir = at.open_dir()?;
        levels.push(Level { path, dir, below, meta: Some(meta) });
        Ok(true)
    }

    /// The look of the directory that shows. Overlayfs' notes go with it, but for those of what lies below it: this one hides nothing.
    fn shown(&self, below: &TreeBelow) -> Result<Option<Meta>, Error> {
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
        self.set(level.dir.at(b"."), &meta).map_err(|error| unmade(&level.path, error))
    }

    fn file(&self, choice: &Choice, to: Entry<'_>) -> Result<(), Error> {
        let file = self.fs.create(to, 0o600)?;
        self.fs.write(&file, &choice.content, to)?;
        self.set(to, &choice.after.meta)
    }

    /// Sets metadata: owner first, as that clears setuid and capabilities; the mode after an ACL, which sets bits of it; the time last.
    fn set(&self, at: Entry<'_>, meta: &Meta) -> Result<(), Error> {
        let is = at.stat()?.map(|stat| (stat.uid, stat.gid));
        if is != Some((meta.uid, meta.gid)) {
            self.fs.set_owner(at, meta.uid, meta.gid)?;
        }
        for (name, value) in &meta.xattrs {
            self.fs.set_xattr(at, name, value)?;
        }
        self.fs.set_mode(at, meta.mode)?;
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
