//! The copy of a mounted file, which the command gets in its place (`place::choose_files` chooses them). It lies alone in an upper directory of
//! its own and is bound from an overlay of that. So nothing of the store's own file system can be written through it, not even by a process
//! that may open files by their handles (open_by_handle_at(2)) or resize file systems.

use super::layout::{Route, directory, is_overlay_xattr};
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Dir, Entry, Fs, Stat, Time, stat_of};
use crate::session::{FileCopy, Place};
use crate::tree::{Fingerprint, Seen, observe};

/// Lays the copy in the place's upper of a step, and notes in the place what was copied: what an earlier step made of the file, in `sealed`,
/// else the file itself. Returns the bytes that the copy takes.
///
/// Errors: the outer one is of the store, which may be full; the inner one is of the original, which the command can do without.
pub fn lay(
    fs: &Fs,
    (uppers, sealed): (&Dir, Option<&Dir>),
    (place, step): (&mut Place, u32),
    route: Route,
) -> Result<Result<u64, IoError>, Error> {
    let upper = place.upper_name(step);
    let upper = uppers.at(&upper);
    fs.remove_all(upper)?;
    let upper = directory(fs, upper)?;
    let original = match Original::open(&place.path) {
        Ok(original) => original,
        Err(error) => return Ok(Err(error)),
    };
    let Some((_, name)) = place.path.split() else { return Ok(Ok(0)) };
    let at = upper.at(name);
    // It may have left the session.
    let is_held = |dir: &&Dir| dir.at(name).stat().is_ok_and(|stat| stat.is_some());
    let sealed = sealed.filter(is_held).map(|dir| Original::of(dir.at(name))).transpose()?;
    let source = sealed.as_ref().unwrap_or(&original);
    let to = fs.create(at, 0o600)?;
    let copied = fs.copy(&source.file, &to, at).at("copy the mounted file", &place.path);
    let dressed = match copied {
        // A full store stops the run as a whole: the command would write there.
        Err(error) if is_full(&error) => return Err(error.into()),
        Err(error) => Err(error),
        Ok(_) => source.dress(fs, &to, at, route).at("give its metadata to a copy of", &place.path),
    };
    if let Err(error) = dressed {
        fs.unlink(at)?;
        return Ok(Err(error));
    }
    let stat = stat_of(&to).at("look at", at)?;
    place.mtime = Some(source.stat.mtime);
    place.file = Some(FileCopy { original: original.seen.print, copy: observe::fingerprint(&stat) });
    Ok(Ok(stat.blocks * 512))
}

/// True if the store has no room: the run is refused as a whole then, as the command could write nothing either.
pub fn is_full(error: &IoError) -> bool {
    matches!(error.source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Tells whether a stat matches a fingerprint: the same object in the same state. A ctime that is too young does not matter: the
/// command starts only when the clock of files is past all copies.
pub fn is(print: &Fingerprint, stat: &Stat) -> bool {
    observe::identity(stat) == print.identity && stat.ctime == print.ctime
}

/// The time that the clock of files must be past, so that a change of a copy is seen.
pub fn copied_at<'a>(places: impl Iterator<Item = &'a Place>) -> Option<Time> {
    places.filter_map(|place| Some(place.file.as_ref()?.copy.ctime)).max()
}

/// A file of the tree that is to be copied.
pub struct Original {
    file: std::fs::File,
    stat: Stat,
    seen: Seen,
}

impl Original {
    fn open(path: &AbsPath) -> Result<Self, IoError> {
        let root = Dir::open("/".as_ref())?;
        let (parent, name) = path.split().unwrap_or((b"/", b"."));
        let parent = root.open_across(&parent[1..])?;
        Self::of(parent.at(name))
    }

    /// Opens the file by its name in a held directory.
    pub fn of(at: Entry<'_>) -> Result<Self, IoError> {
        let file = at.open_file().at("open the file to copy", at)?;
        let stat = stat_of(&file).at("look at", at)?;
        let seen = observe::seen_open(&file, &stat).at("look at", at)?;
        Ok(Self { file, stat, seen })
    }

    /// Copies the file with the metadata that its owner can set, including a further group of the user.
    pub fn copy_for_user(&self, fs: &Fs, to: Entry<'_>) -> Result<(), IoError> {
        let copy = fs.create(to, 0o600)?;
        fs.copy(&self.file, &copy, to)?;
        if self.stat.gid != rustix::process::getegid().as_raw() {
            fs.set_owner_of(&copy, self.stat.uid, self.stat.gid, to)?;
        }
        self.dress(fs, &copy, to, Route::User)
    }

    /// Sets the metadata after the content, as writing the content would clear it.
    fn dress(&self, fs: &Fs, copy: &std::fs::File, at: Entry<'_>, route: Route) -> Result<(), IoError> {
        let meta = &self.seen.state.meta;
        if route == Route::Root {
            fs.set_owner_of(copy, meta.uid, meta.gid, at)?;
        }
        for (name, value) in meta.xattrs.iter().filter(|(name, _)| !is_overlay_xattr(name)) {
            fs.set_xattr_of(copy, name, value, at)?;
        }
        fs.set_mode_of(copy, meta.mode, at)?;
        fs.set_mtime_of(copy, meta.mtime, at)
    }
}
