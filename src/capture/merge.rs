//! Merges uppers that lie over each other into one that shows the same: whiteouts and opaque directories hide in it what they hid before
//! (overlayfs.rst, "whiteouts and opaque directories").

use std::collections::{BTreeMap, HashMap};
use std::fs::File;

use super::closed::Closed;
use super::layout::{Route, is_opaque, is_whiteout};
use super::sealed::Sealed;
use crate::error::Error;
use crate::fs::Fs;
use crate::fs::device_number::Dev;
use crate::fs::dir::{Dir, Entry, Sort, Stat};

/// How an object that is no directory comes into the merged upper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// As a further name of it.
    Link,
    /// As an object of its own, which shares only its content's blocks where the file system can do that.
    Copy,
}

/// Merges uppers, the newest first, into a new directory at `to`, which gets the name `name` below `held/upper` in notes. Returns the notes of
/// what its owner could not read before it was opened up. Syncs nothing.
pub(super) fn merge(
    fs: &Fs,
    (route, sealed): (Route, &Sealed),
    uppers: Vec<Dir>,
    (to, name): (Entry<'_>, &[u8]),
    by: By,
) -> Result<Vec<Closed>, Error> {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mut merging = Merging { fs, route, sealed, by, made: HashMap::new(), closed: Vec::new(), own };
    fs.mkdir(to, 0o700)?;
    let hides = match uppers.last() {
        Some(last) => is_opaque(route, &last.xattrs()?),
        None => false,
    };
    let top = Level { below: name.to_vec(), uppers, hides, dir: to.open_dir()? };
    let mut todo = vec![top];
    let mut done = Vec::new();
    while let Some(level) = todo.pop() {
        merging.level(&level, &mut todo)?;
        done.push(level);
    }
    // From below: no name comes into a directory once it has its time.
    for level in done.iter().rev() {
        merging.dress(level)?;
    }
    // A directory before its content, as whoever closes them goes the other way.
    merging.closed.reverse();
    Ok(merging.closed)
}

/// A directory of the merged upper.
struct Level {
    /// Its path below `held/upper`.
    below: Vec<u8>,
    /// The directories that it shows, the newest first: none lies below an opaque one.
    uppers: Vec<Dir>,
    /// True if it hides what lies below all of these.
    hides: bool,
    dir: Dir,
}

struct Merging<'a> {
    fs: &'a Fs,
    route: Route,
    sealed: &'a Sealed,
    by: By,
    /// Copies of objects with several names: the directory and name of the first.
    made: HashMap<(Dev, u64), (Dir, Vec<u8>)>,
    closed: Vec<Closed>,
    /// The ids that what is made here has: not to be set again.
    own: (u32, u32),
}

impl Merging<'_> {
    fn level(&mut self, level: &Level, todo: &mut Vec<Level>) -> Result<(), Error> {
        let mut names: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for (i, upper) in level.uppers.iter().enumerate() {
            for name in upper.names()? {
                names.entry(name).or_insert(i);
            }
        }
        for (name, first) in names {
            let at = level.uppers[first].at(&name);
            let Some(stat) = at.stat()? else { continue };
            let to = level.dir.at(&name);
            if stat.sort != Sort::Directory {
                // In an opaque directory a whiteout hides nothing, and would be a broken name.
                if !(is_whiteout(&stat) && level.hides) {
                    self.put(at, &stat, (level, to))?;
                }
                continue;
            }
            let (uppers, hides) = self.merged(&level.uppers[first..], &name)?;
            self.fs.mkdir(to, 0o700)?;
            let below = [&*level.below, b"/", &*name].concat();
            todo.push(Level { below, uppers, hides: hides || level.hides, dir: to.open_dir()? });
        }
        Ok(())
    }

    /// The directories of a name that show through each other, and whether they hide what lies below: one that was made where an older upper
    /// had removed something need not be opaque by itself.
    fn merged(&self, uppers: &[Dir], name: &[u8]) -> Result<(Vec<Dir>, bool), Error> {
        let mut merged = Vec::new();
        for upper in uppers {
            let at = upper.at(name);
            match at.stat()? {
                None => continue,
                Some(stat) if stat.sort != Sort::Directory => return Ok((merged, true)),
                Some(_) => {}
            }
            let dir = at.open_dir()?;
            let hides = is_opaque(self.route, &dir.xattrs()?);
            merged.push(dir);
            if hides {
                return Ok((merged, true));
            }
        }
        Ok((merged, false))
    }

    fn put(&mut self, at: Entry<'_>, stat: &Stat, (level, to): (&Level, Entry<'_>)) -> Result<(), Error> {
        if self.by == By::Link {
            return Ok(self.fs.link(at, to)?);
        }
        let key = (stat.dev, stat.ino);
        if !is_whiteout(stat)
            && let Some((dir, name)) = self.made.get(&key)
        {
            return Ok(self.fs.link(dir.at(name), to)?);
        }
        match stat.sort {
            Sort::File => {
                let file = self.fs.create(to, 0o600)?;
                self.fs.copy(&at.open_file()?, &file, to)?;
                self.set_of(at, stat, (&file, to))?;
            }
            Sort::Symlink => self.fs.symlink(&at.read_link()?, to)?,
            sort => self.fs.mknod(to, sort, 0o600, stat.rdev)?,
        }
        if is_whiteout(stat) {
            return Ok(());
        }
        if stat.sort != Sort::File {
            self.set(at, stat, to)?;
        }
        self.note(stat, [&*level.below, b"/", to.name].concat());
        if stat.nlink > 1 {
            self.made.insert(key, (level.dir.again()?, to.name.to_vec()));
        }
        Ok(())
    }

    /// Gives a directory the look of the newest one that it shows.
    fn dress(&mut self, level: &Level) -> Result<(), Error> {
        let Some(newest) = level.uppers.first() else { return Ok(()) };
        let stat = newest.stat()?;
        let own = level.dir.at(b".");
        self.set(newest.at(b"."), &stat, own)?;
        if level.hides {
            let name = [self.route.notes().as_bytes(), b"opaque"].concat();
            self.fs.set_xattr(own, &name, b"y")?;
            self.fs.set_mtime(own, stat.mtime)?;
        }
        self.note(&stat, level.below.clone());
        Ok(())
    }

    /// Sets the metadata of a file that was just made, as [`Self::set`] does: by its descriptor, which saves looking its name up again.
    fn set_of(&self, from: Entry<'_>, stat: &Stat, (file, to): (&File, Entry<'_>)) -> Result<(), Error> {
        if (stat.uid, stat.gid) != self.own {
            self.fs.set_owner_of(file, stat.uid, stat.gid, to)?;
        }
        for (name, value) in from.xattrs()? {
            self.fs.set_xattr_of(file, &name, &value, to)?;
        }
        self.fs.set_mode_of(file, stat.mode, to)?;
        Ok(self.fs.set_mtime_of(file, stat.mtime, to)?)
    }

    /// Sets the metadata, overlayfs' notes among it: owner first, as that clears setuid and capabilities; the time last.
    fn set(&self, from: Entry<'_>, stat: &Stat, to: Entry<'_>) -> Result<(), Error> {
        if (stat.uid, stat.gid) != self.own {
            self.fs.set_owner(to, stat.uid, stat.gid)?;
        }
        for (name, value) in from.xattrs()? {
            self.fs.set_xattr(to, &name, &value)?;
        }
        // After an ACL, which sets bits of the mode.
        if stat.sort != Sort::Symlink {
            self.fs.set_mode(to, stat.mode)?;
        }
        Ok(self.fs.set_mtime(to, stat.mtime)?)
    }

    fn note(&mut self, stat: &Stat, below: Vec<u8>) {
        let mode = self.sealed.as_left(stat);
        if mode != stat.mode {
            self.closed.push(Closed { below, mode });
        }
    }
}
