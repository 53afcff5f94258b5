//! Fills in directories that a run of root renamed. Overlayfs leaves in the upper only what changed in one, and a note of the lower place
//! of the rest ("redirect_dir" in overlayfs.rst). The rest is copied in below the new name, so that the upper holds every `after`. Then the
//! directory is made opaque, as if it had been made there.
//!
//! May be cut off anywhere and begun again: a copy gets its name whole, by a rename, and a directory loses its note when all below it is
//! there.
//! - **H11** A note is untrusted: it leads to a directory below the captured one, over no link and no mount, or nowhere.
//! - **H12** Below a directory with a note, the innermost directory is finished first: its own place follows from those above it.
//! - **H13** A name that a whiteout of the upper hides stays hidden until its directory is opaque. Then the whiteout is removed, since a
//!   further run would show it as a broken name. The directory's time is noted before, and its notes go last.

use std::rc::Rc;

use super::facts::{Facts, full_path, tops};
use super::tree_below::TreeBelow;
use crate::capture::place::layout::is_whiteout;
use crate::capture::place::pieces::parted;
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Entry, Fs, Sort, Stat, Time};

/// The note in a renamed directory: the lower place of its rest.
pub const REDIRECT: &[u8] = b"trusted.overlay.redirect";
const PREFIX: &[u8] = b"trusted.overlay.";
const OPAQUE: &[u8] = b"trusted.overlay.opaque";
const ORIGIN: &[u8] = b"trusted.overlay.origin";
/// recant's own note: the time of a directory before names were put into it. It has overlayfs' prefix, so it is never content.
const MTIME: &[u8] = b"trusted.overlay.recant.mtime";

/// Fills in all renamed directories of a run's uppers.
pub fn fill(facts: &Facts<'_>, fs: &Fs, warnings: &mut Vec<String>) -> Result<(), Error> {
    let room = directory(fs, facts.held.at(b"fill"))?;
    // A hard-linked object is made once under its number here, and linked to each of its names.
    let links = directory(fs, room.at(b"links"))?;
    for place in facts.places.iter().filter(|place| place.file.is_none()) {
        let Some((upper, below)) = tops(facts, place)? else { continue };
        let mut filling = Filling { facts, fs, place: &place.path, upper, tops: below, room: &room, links: &links, warnings };
        filling.all()?;
    }
    fs.remove_all(facts.held.at(b"fill"))?;
    Ok(())
}

fn directory(fs: &Fs, at: Entry<'_>) -> Result<Dir, Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    Ok(at.open_dir()?)
}

struct Filling<'a> {
    facts: &'a Facts<'a>,
    fs: &'a Fs,
    place: &'a AbsPath,
    upper: Rc<Dir>,
    tops: TreeBelow,
    room: &'a Dir,
    links: &'a Dir,
    warnings: &'a mut Vec<String>,
}

struct UpperDirectory {
    path: Vec<u8>,
    /// The real directory that it is merged with, below the captured one.
    lower: Option<Vec<u8>>,
    /// True if it was renamed, or lies in one that was.
    moved: bool,
    /// True if it is opaque with its notes still there: closing it was cut off.
    closing: bool,
}

impl Filling<'_> {
    fn all(&mut self) -> Result<(), Error> {
        let mut todo = vec![UpperDirectory { path: Vec::new(), lower: Some(Vec::new()), moved: false, closing: false }];
        let mut moved = Vec::new();
        while let Some(found) = todo.pop() {
            let upper = self.upper.open_below(&found.path)?;
            let names = upper.names()?;
            for name in &names {
                todo.extend(self.below(&found, &upper, name)?);
            }
            if let (true, Some(lower)) = (found.moved, &found.lower) {
                self.complete(&found, lower, &upper, names)?;
                moved.push(found.path);
            } else if found.closing {
                moved.push(found.path);
            }
        }
        // H12: found from above, so the last one is an innermost one.
        for path in moved.iter().rev() {
            self.close(path)?;
        }
        Ok(())
    }

    fn below(&mut self, above: &UpperDirectory, dir: &Dir, name: &[u8]) -> Result<Option<UpperDirectory>, Error> {
        let at = dir.at(name);
        if at.stat()?.is_none_or(|stat| stat.sort != Sort::Directory) {
            return Ok(None);
        }
        let xattrs = at.xattrs()?;
        let note = |note: &[u8]| xattrs.iter().find(|(name, _)| name == note).map(|(_, value)| &**value);
        let path = joined(&above.path, name);
        if note(OPAQUE) == Some(b"y") {
            return Ok(Some(UpperDirectory { path, lower: None, moved: false, closing: note(MTIME).is_some() }));
        }
        let redirect = note(REDIRECT);
        let lower = match redirect {
            None => above.lower.as_ref().map(|lower| joined(lower, name)),
            Some(to) => redirected(above.lower.as_deref(), to),
        };
        let lower = match lower {
            Some(below) => self.is_there(&below)?.then_some(below),
            None => None,
        };
        if let (Some(to), None) = (redirect, &lower) {
            let (path, to) = (full_path(self.place, &path)?, to.escape_ascii());
            self.warnings.push(format!("{path}: it was renamed from {to}, which is gone: the content from there is not held"));
        }
        let is_home = !above.moved && above.lower.is_some() && lower.as_ref() == Some(&path);
        if redirect.is_some() && is_home {
            // Renamed and renamed back: it is merged by its name again, as one that never moved. Mounts in it stay there too.
            self.fs.remove_xattr(at, REDIRECT)?;
        }
        let moved = above.moved || redirect.is_some() && !is_home;
        Ok(Some(UpperDirectory { path, moved, lower, closing: false }))
    }

    fn is_there(&self, lower: &[u8]) -> Result<bool, Error> {
        // H11: over a link or a mount it leads nowhere either. With an error, such as too few descriptors, it may be there, and its content is
        // to be held.
        Ok(!self.tops.descend(lower)?.is_nowhere())
    }

    /// Copies the visible rest of a directory's lower into it.
    fn complete(&mut self, found: &UpperDirectory, lower: &[u8], upper: &Dir, mut names: Vec<Vec<u8>>) -> Result<(), Error> {
        names.sort();
        let below = self.tops.descend(lower)?;
        let mut missing = below.all_names()?;
        missing.retain(|name| names.binary_search(name).is_err());
        let own = upper.at(b".");
        if upper.xattrs()?.iter().all(|(name, _)| name != MTIME) {
            let mtime = upper.stat()?.mtime;
            self.fs.set_xattr(own, MTIME, format!("{}.{}", { mtime.s }, mtime.ns).as_bytes())?;
        }
        // A sealed upper's are in the copied-up directory already.
        if let Some((real, false)) = below.top() {
            for (name, value) in real.xattrs()? {
                if let Some(name) = escaped(&name) {
                    self.fs.set_xattr(own, &name, &value)?;
                }
            }
        }
        for name in missing {
            let path = joined(lower, &name);
            let new = self.room.at(b"new");
            self.fs.remove_all(new)?;
            if self.copy(&path, b"new")? {
                let at = upper.at(&name);
                let full = full_path(self.place, &joined(&found.path, &name))?;
                self.fs.place(new, at).at("put", full)?;
            }
        }
        Ok(())
    }

    /// Copies the object below at `top`, with all under it, into `room`. False if there was nothing to copy.
    fn copy(&mut self, top: &[u8], name: &[u8]) -> Result<bool, Error> {
        let mut todo = vec![(top.to_vec(), name.to_vec())];
        let mut directories: Vec<(Vec<u8>, Stat, Xattrs)> = Vec::new();
        let mut any = false;
        while let Some((from, to)) = todo.pop() {
            let full = full_path(self.place, &from)?;
            let (above, last) = parted(&from);
            let above = self.tops.descend(above)?;
            // It was removed meanwhile: the real tree shows that deletion.
            let Some(old) = above.at(last)? else { continue };
            let (at, stat) = (old.at(last), old.stat);
            if full.is_under(self.facts.store) || stat.mount_root {
                self.warnings.push(format!("{full}: it cannot move with the renamed directory that holds it"));
                continue;
            }
            // In an upper it would be a whiteout.
            if is_whiteout(&stat) {
                let text =
                    format!("{full}: a device 0:0 cannot move with the renamed directory that holds it, as a run cannot see it");
                self.warnings.push(text);
                continue;
            }
            let xattrs = shown(at.xattrs()?, old.is_held);
            let (parent, last) = self.open(self.room, &to)?;
            let new = parent.at(last);
            any = true;
            if stat.sort == Sort::Directory {
                self.fs.mkdir(new, 0o700)?;
                for name in above.enter(at.name)?.all_names()? {
                    todo.push((joined(&from, &name), joined(&to, &name)));
                }
                directories.push((to, stat, xattrs));
            } else {
                self.copy_one(at, &stat, &xattrs, new)?;
            }
        }
        // Set the time of a directory only when nothing is added to it any more.
        for (path, stat, xattrs) in directories.iter().rev() {
            let (parent, last) = self.open(self.room, path)?;
            self.dress(parent.at(last), stat, xattrs)?;
        }
        Ok(any)
    }

    fn copy_one(&self, at: Entry<'_>, stat: &Stat, xattrs: &Xattrs, new: Entry<'_>) -> Result<(), Error> {
        let number = format!("{}-{}-{}", stat.dev.0, stat.dev.1, stat.ino);
        let (half, whole) = (self.links.at(b"new"), self.links.at(number.as_bytes()));
        if stat.nlink < 2 {
            return self.make(at, stat, xattrs, new);
        }
        let known = whole.stat()?;
        if known.is_none_or(|known| (known.size, known.mtime) != (stat.size, stat.mtime)) {
            self.fs.remove_all(half)?;
            self.make(at, stat, xattrs, half)?;
            self.fs.rename_over(half, whole)?;
        }
        Ok(self.fs.link(whole, new)?)
    }

    fn make(&self, at: Entry<'_>, stat: &Stat, xattrs: &Xattrs, new: Entry<'_>) -> Result<(), Error> {
        match stat.sort {
            Sort::File => {
                let from = at.open_file()?;
                let to = self.fs.create(new, 0o600)?;
                self.fs.copy(&from, &to, new)?;
            }
            Sort::Symlink => {
                let target = at.read_link()?;
                self.fs.symlink(&target, new)?;
            }
            sort => self.fs.mknod(new, sort, 0o600, stat.rdev)?,
        }
        self.dress(new, stat, xattrs)
    }

    /// Sets the metadata: owner first, as that clears setuid and capabilities; the time last.
    fn dress(&self, at: Entry<'_>, stat: &Stat, xattrs: &Xattrs) -> Result<(), Error> {
        self.fs.set_owner(at, stat.uid, stat.gid)?;
        for (name, value) in xattrs {
            self.fs.set_xattr(at, name, value)?;
        }
        // After an ACL, which sets bits of the mode.
        if stat.sort != Sort::Symlink {
            self.fs.set_mode(at, stat.mode)?;
        }
        Ok(self.fs.set_mtime(at, stat.mtime)?)
    }

    /// Makes a completed directory opaque, so that its lower no longer shows through.
    fn close(&self, path: &[u8]) -> Result<(), Error> {
        let dir = self.upper.open_below(path)?;
        let own = dir.at(b".");
        let xattrs = dir.xattrs()?;
        let mtime = xattrs.iter().find(|(name, _)| name == MTIME).and_then(|(_, value)| noted_time(value));
        // Before the redirect goes: the lower of an opaque directory is not looked at.
        self.fs.set_xattr(own, OPAQUE, b"y")?;
        // H13
        for name in dir.names()? {
            let at = dir.at(&name);
            if at.stat()?.is_some_and(|stat| is_whiteout(&stat)) {
                self.fs.unlink(at)?;
            }
        }
        if let Some(mtime) = mtime {
            self.fs.set_mtime(own, mtime)?;
        }
        for name in [REDIRECT, ORIGIN, MTIME] {
            self.fs.remove_xattr(own, name)?;
        }
        Ok(())
    }

    /// The directory of a path below `top`, and its last name.
    fn open<'p>(&self, top: &Dir, path: &'p [u8]) -> Result<(Dir, &'p [u8]), Error> {
        let cut = path.iter().rposition(|b| *b == b'/');
        let (parent, name) = cut.map_or((&b""[..], path), |at| (&path[..at], &path[at + 1..]));
        Ok((top.open_below(parent)?, name))
    }
}

type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

/// The xattrs that an object gets in an upper: overlayfs' own notes in a sealed one are not its content.
fn shown(xattrs: Xattrs, is_held: bool) -> Xattrs {
    let shown = xattrs.into_iter().filter_map(|(name, value)| match is_held {
        true if name.starts_with(PREFIX) && !name[PREFIX.len()..].starts_with(b"overlay.") => None,
        true => Some((name, value)),
        false => Some((escaped(&name).unwrap_or(name), value)),
    });
    shown.collect()
}

/// The name of an xattr with overlayfs' prefix as it stands in an upper, where it is content ("Nesting overlayfs mounts" in overlayfs.rst).
/// `None` for any other.
fn escaped(name: &[u8]) -> Option<Vec<u8>> {
    Some([PREFIX, b"overlay.", name.strip_prefix(PREFIX)?].concat())
}

fn joined(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() { name.to_vec() } else { [above, b"/", name].concat() }
}

/// The target of a note, below the captured directory: a name in the same directory, or a path from the top. H11.
fn redirected(above: Option<&[u8]>, to: &[u8]) -> Option<Vec<u8>> {
    let good = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
    match to.strip_prefix(b"/") {
        Some(path) => path.split(|b| *b == b'/').all(good).then(|| path.to_vec()),
        None => (good(to) && !to.contains(&b'/')).then(|| Some(joined(above?, to)))?,
    }
}

fn noted_time(value: &[u8]) -> Option<Time> {
    let (s, ns) = std::str::from_utf8(value).ok()?.split_once('.')?;
    Some(Time { s: s.parse().ok()?, ns: ns.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use crate::capture::collect::renamed_directories::*;

    #[test]
    fn a_note_leads_below_the_captured_directory_or_nowhere() {
        let above = Some(&b"up/here"[..]);
        for (note, want) in [
            (&b"name"[..], Some(&b"up/here/name"[..])),
            (b"/a/b", Some(b"a/b")),
            (b"/", None),
            (b"", None),
            (b"..", None),
            (b"a/b", None),
            (b"/a/../b", None),
            (b"/a//b", None),
            (b"/a/./b", None),
            (b"/a\0b", None),
            (b"/..", None),
        ] {
            assert_eq!(redirected(above, note).as_deref(), want, "{}", note.escape_ascii());
        }
        assert_eq!(redirected(None, b"name"), None);
        assert_eq!(redirected(None, b"/a"), Some(b"a".to_vec()));
    }

    #[test]
    fn a_noted_time_is_read_back() {
        assert_eq!(noted_time(b"-12.345"), Some(Time { s: -12, ns: 345 }));
        assert_eq!(noted_time(b"12"), None);
    }
}
