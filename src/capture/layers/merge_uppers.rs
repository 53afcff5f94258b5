//! Merges uppers that lie over each other into one that shows the same: whiteouts and opaque directories hide in it what they hid before
//! (overlayfs.rst, "whiteouts and opaque directories").

use std::collections::{BTreeMap, HashMap};
use std::fs::File;

use super::opened_modes::Closed;
use super::sealed_uppers::Sealed;
use super::upper_metadata::dress;
use crate::capture::place::layout::{Route, is_opaque_directory, is_whiteout};
use crate::capture::place::pieces::parted;
use crate::capture::run::ids::Ids;
use crate::error::{Error, Kind};
use crate::fs::{AbsPath, Dev, Dir, Entry, Fs, Sort, Stat};
use crate::session::{Changes, PartedPaths};

/// How an object that is no directory comes into the merged upper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkOrCopy {
    /// As a further name of it.
    Link,
    /// As an object of its own, which shares only its content's blocks where the file system can do that.
    Copy,
}

/// The paths that a merged upper leaves out: they left the session, and the tree is to show there.
pub struct LeavingPaths<'a> {
    /// The directory that the uppers cover.
    pub top: AbsPath,
    pub gone: &'a PartedPaths,
    /// The net changes once it has left.
    pub net: &'a Changes,
}

impl LeavingPaths<'_> {
    /// The paths below a directory that the session holds to be removed.
    fn removed_under(&self, directory: &AbsPath) -> impl Iterator<Item = &AbsPath> {
        let under = self.net.list[self.net.under(directory)].iter().filter(|change| change.after.is_none());
        under.map(|change| &change.path).filter(move |path| *path != directory)
    }
}

/// Merges the uppers of steps, the newest first, into a new directory at `to`, which gets the name `name` below `held/upper` in notes. Returns
/// the notes of what its owner could not read before it was opened up. Syncs nothing.
pub fn merge(
    fs: &Fs,
    (route, sealed): (Route, &Sealed),
    (uppers, cut): (Vec<(u32, Dir)>, Option<&LeavingPaths<'_>>),
    (to, name): (Entry<'_>, &[u8]),
    by: LinkOrCopy,
) -> Result<Vec<Closed>, Error> {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    fs.mkdir(to, 0o700)?;
    let tops = Tops { name: name.to_vec(), uppers, to: to.open_dir()? };
    let mut merging = Merging { fs, route, sealed, by, cut, tops: &tops, made: HashMap::new(), closed: Vec::new(), own };
    let hides = match tops.uppers.last() {
        Some((_, last)) => is_opaque_directory(route, last)?,
        None => false,
    };
    let path = cut.map(|cut| cut.top.clone());
    let mut todo = vec![Level { below: Vec::new(), path, uppers: (0..tops.uppers.len()).collect(), hides }];
    let mut done = Vec::new();
    while let Some(level) = todo.pop() {
        merging.level(&tops.open(&level)?, &mut todo)?;
        done.push(level);
    }
    // From below: no name comes into a directory once it has its time.
    for level in done.iter().rev() {
        let open = tops.open(level)?;
        // Of a directory that left nothing is to be seen, unless something in it stays.
        if !level.below.is_empty() && merging.is_gone(&open)? {
            let (above, name) = parted(&level.below);
            fs.rmdir(tops.to.open_below(above)?.at(name))?;
        } else {
            merging.dress(&open)?;
        }
    }
    // A directory before its content, as whoever closes them goes the other way.
    merging.closed.reverse();
    Ok(merging.closed)
}

/// A directory of the merged upper. It is opened while it is worked in alone: there may be more than descriptors.
struct Level {
    /// Its path below the top of the merged upper.
    below: Vec<u8>,
    /// Its path on the tree, where something is left out.
    path: Option<AbsPath>,
    /// The uppers in which it shows a directory, by index, the newest first: none lies below an opaque one.
    uppers: Vec<usize>,
    /// True if it hides what lies below all of these.
    hides: bool,
}

/// The tops of the uppers that are merged, each with its step, the newest first, and of the merged one with its name in notes.
struct Tops {
    name: Vec<u8>,
    uppers: Vec<(u32, Dir)>,
    to: Dir,
}

impl Tops {
    fn open<'l>(&self, level: &'l Level) -> Result<Open<'l>, Error> {
        let upper = |i: &usize| Ok((self.uppers[*i].0, self.uppers[*i].1.open_below(&level.below)?));
        let uppers = level.uppers.iter().map(upper).collect::<Result<_, Error>>()?;
        Ok(Open { level, uppers, dir: self.to.open_below(&level.below)? })
    }

    /// The path of what lies at a name of a directory, below `held/upper`.
    fn noted(&self, below: &[u8]) -> Vec<u8> {
        if below.is_empty() { self.name.clone() } else { [&*self.name, b"/", below].concat() }
    }
}

/// A level with its directories open.
struct Open<'l> {
    level: &'l Level,
    /// The directories that it shows, the newest first, each with its step.
    uppers: Vec<(u32, Dir)>,
    dir: Dir,
}

impl Open<'_> {
    fn below(&self, name: &[u8]) -> Vec<u8> {
        if self.level.below.is_empty() { name.to_vec() } else { [&*self.level.below, b"/", name].concat() }
    }
}

struct Merging<'a> {
    fs: &'a Fs,
    route: Route,
    sealed: &'a Sealed,
    by: LinkOrCopy,
    cut: Option<&'a LeavingPaths<'a>>,
    tops: &'a Tops,
    /// Copies of objects with several names: the path of the first below the top of the merged upper.
    made: HashMap<(Dev, u64), Vec<u8>>,
    closed: Vec<Closed>,
    /// The ids that what is made here has: not to be set again.
    own: (u32, u32),
}

impl Merging<'_> {
    fn level(&mut self, level: &Open<'_>, todo: &mut Vec<Level>) -> Result<(), Error> {
        let mut names: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        for (i, (_, upper)) in level.uppers.iter().enumerate() {
            for name in upper.names()? {
                names.entry(name).or_insert(i);
            }
        }
        self.drop_whiteouts(level, &mut names)?;
        let is_open = self.is_open(level.level);
        if level.level.hides && is_open {
            self.hide_removed(level, &names, todo)?;
        }
        for (name, first) in names {
            let (step, upper) = &level.uppers[first];
            let at = upper.at(&name);
            let Some(stat) = at.stat()? else { continue };
            let to = level.dir.at(&name);
            let path = level.level.path.as_ref().map(|path| path.join(&name)).transpose();
            let path = path.map_err(|error| Error::at(Kind::Refused, to, error))?;
            if stat.sort != Sort::Directory {
                if let Some(path) = self.has_left(*step, path) {
                    // A directory is there again of which some stays removed.
                    if self.cut.is_some_and(|cut| cut.removed_under(&path).next().is_some()) {
                        todo.push(self.level_of_none(level, &name, path)?);
                    }
                } else if !(is_whiteout(&stat) && level.level.hides && !is_open) {
                    // In an opaque directory a whiteout hides nothing, and would be a broken name.
                    self.put(at, &stat, (level, to))?;
                }
                continue;
            }
            let (uppers, hides) = self.merged(level, first, &name)?;
            self.fs.mkdir(to, 0o700)?;
            todo.push(Level { below: level.below(&name), path, uppers, hides: hides || level.level.hides });
        }
        Ok(())
    }

    /// True if something that left lies in a directory, or the directory itself left: then the tree shows through it.
    fn is_open(&self, level: &Level) -> bool {
        level.path.as_ref().zip(self.cut).is_some_and(|(path, cut)| cut.gone.is_under(path))
    }

    /// The path if it left the session after this step.
    fn has_left(&self, step: u32, path: Option<AbsPath>) -> Option<AbsPath> {
        path.filter(|path| self.cut.is_some_and(|cut| cut.gone.has(step, path)))
    }

    /// True for a directory that left the session, and that has nothing in it that stays.
    fn is_gone(&self, level: &Open<'_>) -> Result<bool, Error> {
        let newest = level.uppers.first().map_or(0, |(step, _)| *step);
        Ok(self.has_left(newest, level.level.path.clone()).is_some() && level.dir.is_empty()?)
    }

    /// A directory that no upper has.
    fn level_of_none(&self, above: &Open<'_>, name: &[u8], path: AbsPath) -> Result<Level, Error> {
        self.fs.mkdir(above.dir.at(name), 0o700)?;
        Ok(Level { below: above.below(name), path: Some(path), uppers: Vec::new(), hides: true })
    }

    /// Drops the whiteouts that hide nothing which the session holds to be removed: what they hid was the session's own, or has left.
    fn drop_whiteouts(&self, level: &Open<'_>, names: &mut BTreeMap<Vec<u8>, usize>) -> Result<(), Error> {
        let Some((path, cut)) = level.level.path.as_ref().zip(self.cut) else { return Ok(()) };
        let mut dropped = Vec::new();
        for (name, first) in &*names {
            let (step, upper) = &level.uppers[*first];
            let path = path.join(name).map_err(|error| Error::at(Kind::Refused, path, error))?;
            let is_removed = || cut.net.at(&path).is_some_and(|change| change.after.is_none());
            if upper.at(name).stat()?.is_some_and(|stat| is_whiteout(&stat)) && !cut.gone.has(*step, &path) && !is_removed() {
                dropped.push(name.clone());
            }
        }
        names.retain(|name, _| !dropped.contains(name));
        Ok(())
    }

    /// Hides name by name what a directory hid as a whole.
    fn hide_removed(&self, level: &Open<'_>, names: &BTreeMap<Vec<u8>, usize>, todo: &mut Vec<Level>) -> Result<(), Error> {
        let Some((path, cut)) = level.level.path.as_ref().zip(self.cut) else { return Ok(()) };
        let mut done: Option<&[u8]> = None;
        for removed in cut.removed_under(path) {
            let Some(below) = removed.below(path) else { continue };
            let name = below.split(|b| *b == b'/').next().unwrap_or_default();
            // Below one that is hidden, or is a level of its own, nothing is left to hide.
            if done == Some(name) || names.contains_key(name) {
                continue;
            }
            done = Some(name);
            if name == below {
                self.fs.mknod(level.dir.at(name), Sort::Char, 0o600, Dev(0, 0))?;
            } else {
                let path = path.join(name).map_err(|error| Error::at(Kind::Refused, path, error))?;
                todo.push(self.level_of_none(level, name, path)?);
            }
        }
        Ok(())
    }

    /// The directories of a name that show through each other, and whether they hide what lies below: one that was made where an older upper
    /// had removed something need not be opaque by itself.
    fn merged(&self, level: &Open<'_>, first: usize, name: &[u8]) -> Result<(Vec<usize>, bool), Error> {
        let mut merged = Vec::new();
        for (i, (_, upper)) in level.level.uppers.iter().zip(&level.uppers).skip(first) {
            let at = upper.at(name);
            match at.stat()? {
                None => continue,
                Some(stat) if stat.sort != Sort::Directory => return Ok((merged, true)),
                Some(_) => {}
            }
            let dir = at.open_dir()?;
            let hides = is_opaque_directory(self.route, &dir)?;
            merged.push(*i);
            if hides {
                return Ok((merged, true));
            }
        }
        Ok((merged, false))
    }

    fn put(&mut self, at: Entry<'_>, stat: &Stat, (level, to): (&Open<'_>, Entry<'_>)) -> Result<(), Error> {
        if self.by == LinkOrCopy::Link {
            return Ok(self.fs.link(at, to)?);
        }
        let key = (stat.dev, stat.ino);
        if !is_whiteout(stat)
            && let Some(first) = self.made.get(&key)
        {
            let (above, name) = parted(first);
            return Ok(self.fs.link(self.tops.to.open_below(above)?.at(name), to)?);
        }
        copy(self.fs, self.own, (at, stat), to)?;
        if is_whiteout(stat) {
            return Ok(());
        }
        self.note(stat, self.tops.noted(&level.below(to.name)));
        if stat.nlink > 1 {
            self.made.insert(key, level.below(to.name));
        }
        Ok(())
    }

    /// Gives a directory the look of the newest one that it shows, or that of the tree where it has left, or no upper has it.
    fn dress(&mut self, level: &Open<'_>) -> Result<(), Error> {
        let newest = level.uppers.first().map(|(step, newest)| (*step, newest));
        if let Some(path) = &level.level.path
            && newest.is_none_or(|(step, _)| self.has_left(step, Some(path.clone())).is_some())
        {
            match Dir::open("/".as_ref())?.open_across(path.as_bytes().get(1..).unwrap_or_default()) {
                Err(error) if error.leads_nowhere() => {}
                shown => {
                    let ids = Ids::own(self.route);
                    dress(self.fs, self.route, &ids, level.dir.at(b"."), (&shown?, self.sealed))?;
                    return Ok(());
                }
            }
        }
        let Some((_, newest)) = newest else { return Ok(()) };
        let stat = newest.stat()?;
        let own = level.dir.at(b".");
        set(self.fs, self.own, (newest.at(b"."), &stat), own)?;
        let opaque = [self.route.notes().as_bytes(), b"opaque"].concat();
        if !self.is_open(level.level) {
            if level.level.hides {
                self.fs.set_xattr(own, &opaque, b"y")?;
            }
        } else if is_opaque_directory(self.route, newest)? {
            self.fs.remove_xattr(own, &opaque)?;
        }
        self.fs.set_mtime(own, stat.mtime)?;
        self.note(&stat, self.tops.noted(&level.level.below));
        Ok(())
    }

    fn note(&mut self, stat: &Stat, below: Vec<u8>) {
        let mode = self.sealed.as_left(stat);
        if mode != stat.mode {
            self.closed.push(Closed { below, mode });
        }
    }
}

/// Copies an object that is no directory, with its metadata. `own`: the ids that what is made here has.
pub fn copy(fs: &Fs, own: (u32, u32), (from, stat): (Entry<'_>, &Stat), to: Entry<'_>) -> Result<(), Error> {
    match stat.sort {
        Sort::File => {
            let file = fs.create(to, 0o600)?;
            fs.copy(&from.open_file()?, &file, to)?;
            return set_of(fs, own, (from, stat), (&file, to));
        }
        Sort::Symlink => fs.symlink(&from.read_link()?, to)?,
        sort => fs.mknod(to, sort, 0o600, stat.rdev)?,
    }
    if is_whiteout(stat) { Ok(()) } else { set(fs, own, (from, stat), to) }
}

/// Sets the metadata of a file that was just made, as [`set`] does: by its descriptor, which saves looking its name up again.
fn set_of(fs: &Fs, own: (u32, u32), (from, stat): (Entry<'_>, &Stat), (file, to): (&File, Entry<'_>)) -> Result<(), Error> {
    if (stat.uid, stat.gid) != own {
        fs.set_owner_of(file, stat.uid, stat.gid, to)?;
    }
    for (name, value) in from.xattrs()? {
        fs.set_xattr_of(file, &name, &value, to)?;
    }
    fs.set_mode_of(file, stat.mode, to)?;
    Ok(fs.set_mtime_of(file, stat.mtime, to)?)
}

/// Sets the metadata, overlayfs' notes among it: owner first, as that clears setuid and capabilities; the time last.
fn set(fs: &Fs, own: (u32, u32), (from, stat): (Entry<'_>, &Stat), to: Entry<'_>) -> Result<(), Error> {
    if (stat.uid, stat.gid) != own {
        fs.set_owner(to, stat.uid, stat.gid)?;
    }
    for (name, value) in from.xattrs()? {
        fs.set_xattr(to, &name, &value)?;
    }
    // After an ACL, which sets bits of the mode.
    if stat.sort != Sort::Symlink {
        fs.set_mode(to, stat.mode)?;
    }
    Ok(fs.set_mtime(to, stat.mtime)?)
}
