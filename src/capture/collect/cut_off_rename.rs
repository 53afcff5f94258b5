//! The directory beside one that is being rebuilt (`run/rebuild.rs`): what its name tells, and how its content is put back. A recant that is
//! killed meanwhile leaves it in the upper.

use crate::capture::place::layout::is_whiteout;
use crate::error::{Error, IoError};
use crate::fs::{Dir, Entry, Fs, Sort, Stat, Time};

/// The start of the name. Mode (octal) and time (hexadecimal seconds and ns) of the rebuilt directory and of the one above follow, then its
/// own name.
const PREFIX: &[u8] = b".recant-moving-";

/// A directory that is made to try a rename, and the one in it.
pub const PROBE: &[u8] = b".recant-moving-probe";

/// The longest name of a file on Linux, in bytes: NAME_MAX.
const NAME_MAX: usize = 255;

/// A directory that is being rebuilt, and the one above it, as they were.
#[derive(Debug, PartialEq, Eq)]
pub struct Rebuilt {
    name: Vec<u8>,
    own: Facts,
    above: Facts,
}

/// The facts about a directory that a rebuilding changes for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts {
    mode: u32,
    mtime: Time,
}

impl Rebuilt {
    pub fn of(name: &[u8], own: &Stat, above: &Stat) -> Self {
        Self { name: name.to_vec(), own: Facts::of(own), above: Facts::of(above) }
    }

    /// The name of the directory beside it. `None` if that would be too long.
    pub fn beside(&self) -> Option<Vec<u8>> {
        let name = [PREFIX, self.own.text().as_bytes(), self.above.text().as_bytes(), &self.name].concat();
        (name.len() <= NAME_MAX).then_some(name)
    }

    /// Reads such a name; `None` if it is no such name.
    fn parse(name: &[u8]) -> Option<Self> {
        let (own, rest) = Facts::parse(name.strip_prefix(PREFIX)?)?;
        let (above, name) = Facts::parse(rest)?;
        // The command may make any name: one that leads out of the directory, or has facts that no directory has, is its own.
        (!matches!(name, b"" | b"." | b"..")).then(|| Self { name: name.to_vec(), own, above })
    }

    /// Makes the directory above what it was. One of another user's was not opened, and its time is not the caller's to set.
    pub fn leave(&self, fs: &Fs, above: &Dir) -> Result<(), IoError> {
        let own = above.at(b".");
        let closed = if above.stat()?.mode == self.above.mode { Ok(()) } else { fs.set_mode(own, self.above.mode) };
        let timed = match fs.set_mtime(own, self.above.mtime) {
            // EOVERFLOW: that user has no number in the run.
            Err(error) if matches!(error.errno(), Some(libc::EPERM | libc::EOVERFLOW)) => Ok(()),
            timed => timed,
        };
        closed.and(timed)
    }
}

impl Facts {
    fn of(stat: &Stat) -> Self {
        Self { mode: stat.mode, mtime: stat.mtime }
    }

    fn text(self) -> String {
        format!("{:o}-{:x}-{:x}-", self.mode, { self.mtime.s }, { self.mtime.ns })
    }

    /// Reads what [`Self::text`] wrote; gives the rest.
    fn parse(text: &[u8]) -> Option<(Self, &[u8])> {
        let mut parts = text.splitn(4, |byte| *byte == b'-');
        let mut number = |radix| u64::from_str_radix(std::str::from_utf8(parts.next()?).ok()?, radix).ok();
        let (mode, s, ns) = (number(8)?, number(16)?, number(16)?);
        let mtime = Time { s: s.cast_signed(), ns: u32::try_from(ns).ok().filter(|ns| *ns < 1_000_000_000)? };
        Some((Self { mode: u32::try_from(mode).ok().filter(|mode| *mode <= 0o7777)?, mtime }, parts.next()?))
    }
}

/// Moves all that lies in the directory `beside` back into the one that was being rebuilt, and removes it. False if something was made there
/// anew under a name that is to go back: this then stays in `beside`.
pub fn put_back(fs: &Fs, beside: Entry<'_>, rebuilt: &Rebuilt) -> Result<bool, IoError> {
    let whole = beside.dir.at(&rebuilt.name);
    for at in [beside, whole] {
        fs.set_mode(at, rebuilt.own.mode | 0o700)?;
    }
    let (from, to) = (beside.open_dir()?, whole.open_dir()?);
    for name in from.names()? {
        let back = to.at(&name);
        if back.stat()?.is_some_and(|stat| is_whiteout(&stat)) {
            fs.unlink(back)?;
        }
        match move_over(fs, from.at(&name), back) {
            Err(error) if error.errno() == Some(libc::EEXIST) => {}
            placed => placed?,
        }
    }
    let is_empty = from.is_empty()?;
    if is_empty {
        fs.rmdir(beside)?;
    }
    fs.set_mode(whole, rebuilt.own.mode)?;
    fs.set_mtime(whole, rebuilt.own.mtime)?;
    Ok(is_empty)
}

/// Moves an object from one directory to another, where nothing may have its name. A directory that is closed to its owner does not move.
pub fn move_over(fs: &Fs, from: Entry<'_>, to: Entry<'_>) -> Result<(), IoError> {
    let is_closed = |stat: &Stat| stat.sort == Sort::Directory && stat.mode & 0o200 == 0;
    let Some(closed) = from.stat()?.filter(is_closed) else { return fs.place(from, to) };
    fs.set_mode(from, closed.mode | 0o200)?;
    let moved = fs.place(from, to);
    fs.set_mode(if moved.is_ok() { to } else { from }, closed.mode)?;
    moved
}

/// Puts back what a killed recant left in an upper. Returns the paths, below the upper, of what could not be put back.
pub fn put_all_back(fs: &Fs, upper: &Dir) -> Result<Vec<Vec<u8>>, Error> {
    let (mut todo, mut left) = (vec![Vec::new()], Vec::new());
    while let Some(path) = todo.pop() {
        let dir = upper.open_below(&path)?;
        let names = match dir.names() {
            // The command closed it to its owner: nothing was being moved in it.
            Err(error) if error.errno() == Some(libc::EACCES) => continue,
            names => names?,
        };
        for name in names {
            if name.starts_with(PREFIX) && is_directory(dir.at(&name))? && !clear(fs, &dir, &name)? {
                left.push(joined(&path, &name));
            }
        }
        // After that, as more lies in them now.
        for (name, sort) in dir.names_and_sorts()? {
            if sort.map_or_else(|| is_directory(dir.at(&name)), |sort| Ok(sort == Sort::Directory))? {
                todo.push(joined(&path, &name));
            }
        }
    }
    Ok(left)
}

fn is_directory(at: Entry<'_>) -> Result<bool, Error> {
    Ok(at.stat()?.is_some_and(|stat| stat.sort == Sort::Directory))
}

/// Puts back what lies in a directory that was made beside another one. False if something is left in it.
fn clear(fs: &Fs, dir: &Dir, name: &[u8]) -> Result<bool, Error> {
    let beside = dir.at(name);
    if name == PROBE {
        fs.remove_all(beside)?;
        return Ok(true);
    }
    // Any other name is the command's own.
    let Some(rebuilt) = Rebuilt::parse(name) else { return Ok(true) };
    let is_clear = if is_directory(dir.at(&rebuilt.name))? {
        put_back(fs, beside, &rebuilt)?
    } else if beside.open_dir()?.is_empty()? {
        // It was only made: the other one is not in the upper yet.
        fs.rmdir(beside)?;
        true
    } else {
        false
    };
    rebuilt.leave(fs, dir)?;
    Ok(is_clear)
}

fn joined(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() { name.to_vec() } else { [above, b"/", name].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_beside_tells_what_a_directory_was() {
        let facts = |mode, s, ns| Facts { mode, mtime: Time { s, ns } };
        for name in [&b"d"[..], b"-", b"a-b-c", b"\xff\n"] {
            let rebuilt = Rebuilt { name: name.to_vec(), own: facts(0o2755, -5, 999_999_999), above: facts(0, 1 << 40, 0) };
            assert_eq!(Rebuilt::parse(&rebuilt.beside().unwrap_or_default()), Some(rebuilt));
        }
        assert_eq!(Rebuilt { name: vec![b'x'; 255], own: facts(0, 0, 0), above: facts(0, 0, 0) }.beside(), None);
        for name in [
            &b""[..],
            b"9-0-0-755-0-0-x",
            b"755-0-0-755-0-0-",
            b"755-0-0-755-0-0-.",
            b"755-0-0-755-0-0-..",
            b"10755-0-0-755-0-0-x",
        ] {
            assert_eq!(Rebuilt::parse(&[PREFIX, name].concat()), None);
        }
        for name in [PROBE, b".recant-moving-755-0-0-755-0-3b9aca00-x"] {
            assert_eq!(Rebuilt::parse(name), None);
        }
    }
}
