//! Opens up in the uppers what an ordinary user's command closed to its own owner, so that it can be read, shown and committed: files
//! without `u+r`, directories without `u+rx`. Root needs none of this.
//!
//! - **U1** The mode is noted in `held/upper/modes`, durably, before it is changed. So a collecting that fails or is cut off, even by a
//!   power cut, begins anew from the modes that the command left. The first closed object therefore starts a search of all the uppers: one
//!   sync covers all that it finds, and one more what lay in closed directories.
//! - **U2** They stay opened up while the session is pending (a change has the intended mode, and a commit sets it). A further run gets the
//!   modes as they were, and then the notes are removed.
//! - **U3** A note is untrusted: it leads to a name below `held/upper`, over no link.

use std::collections::HashMap;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use crate::error::{At, Error, IoError};
use crate::fs::Fs;
use crate::fs::device_number::Dev;
use crate::fs::dir::{Dir, Entry, Sort, Stat};
use crate::fs::path;
use crate::session;
use crate::tree::json;

const NOTES: &[u8] = b"modes";

/// One line of the notes.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// The path below `held/upper`.
    #[serde(with = "path::bytes")]
    at: Vec<u8>,
    /// The mode that the command left, octal.
    mode: String,
}

impl Note {
    fn of(below: &[u8], mode: u32) -> Vec<u8> {
        json::line(&Self { at: below.to_vec(), mode: format!("{mode:04o}") })
    }
}

/// The closed objects in the uppers of one collecting.
pub(super) struct Modes<'a> {
    fs: &'a Fs,
    held: &'a Dir,
    /// The modes that the command left, once something closed was met: an object has one mode under all its names.
    left: Option<HashMap<(Dev, u64), u32>>,
}

impl<'a> Modes<'a> {
    pub fn new(fs: &'a Fs, held: &'a Dir) -> Self {
        Self { fs, held, left: None }
    }

    /// Opens up all uppers, if the owner may not read this object. Returns its state with the mode that the command left.
    pub fn open_up(&mut self, stat: Stat) -> Result<Stat, Error> {
        if self.left.is_none() && is_closed(&stat) {
            self.left = Some(open_all(self.fs, self.held)?);
        }
        let left = self.left.as_ref().and_then(|left| left.get(&(stat.dev, stat.ino)));
        Ok(Stat { mode: left.copied().unwrap_or(stat.mode), ..stat })
    }
}

fn is_closed(stat: &Stat) -> bool {
    let needed = needed(stat.sort);
    stat.mode & needed != needed && !rustix::process::geteuid().is_root()
}

/// The rights that the owner needs to read an object.
fn needed(sort: Sort) -> u32 {
    match sort {
        Sort::Directory => 0o500,
        Sort::File => 0o400,
        _ => 0,
    }
}

/// Opens up all that is closed in the uppers, and returns the mode that each had.
fn open_all(fs: &Fs, held: &Dir) -> Result<HashMap<(Dev, u64), u32>, Error> {
    let uppers = held.at(b"upper").open_dir()?;
    let mut left = HashMap::new();
    let mut directories = vec![Vec::new()];
    while !directories.is_empty() {
        let (mut closed, mut inside) = (Vec::new(), Vec::new());
        while let Some(directory) = directories.pop() {
            let dir = uppers.open_below(&directory)?;
            for name in dir.names()? {
                let Some(stat) = dir.at(&name).stat()? else { continue };
                let below = if directory.is_empty() { name } else { [&directory[..], b"/", &name].concat() };
                let is_closed = is_closed(&stat);
                if stat.sort == Sort::Directory {
                    if is_closed { &mut inside } else { &mut directories }.push(below.clone());
                }
                if is_closed && left.insert((stat.dev, stat.ino), stat.mode).is_none() {
                    closed.push(Closed { below, mode: stat.mode });
                }
            }
        }
        open(fs, &uppers, &closed)?;
        // Their content can be listed now.
        directories = inside;
    }
    Ok(left)
}

/// Notes the closed objects, and opens them up: a directory before its content.
fn open(fs: &Fs, uppers: &Dir, closed: &[Closed]) -> Result<(), Error> {
    if closed.is_empty() {
        return Ok(());
    }
    let at = uppers.at(NOTES);
    let notes = fs.append(at)?;
    let lines = closed.iter().flat_map(|closed| Note::of(&closed.below, closed.mode));
    fs.write(&notes, &lines.collect::<Vec<u8>>(), at)?;
    // U1, D1, D2: without these a directory could have another mode after a power cut, and nothing would say which one it had.
    fs.sync(&notes, at)?;
    fs.sync_dir(uppers)?;
    for closed in closed {
        let opened = |stat: &Stat| closed.mode | needed(stat.sort);
        closed.set(fs, uppers, opened)?;
    }
    Ok(())
}

/// An object that was opened up.
#[derive(Debug)]
pub(in crate::capture) struct Closed {
    /// The path below `held/upper`.
    below: Vec<u8>,
    /// The mode that the command left.
    mode: u32,
}

impl Closed {
    fn set(&self, fs: &Fs, uppers: &Dir, mode: impl FnOnce(&Stat) -> u32) -> Result<(), IoError> {
        let cut = self.below.iter().rposition(|b| *b == b'/');
        let (directory, name) = cut.map_or((&[][..], &self.below[..]), |cut| (&self.below[..cut], &self.below[cut + 1..]));
        let dir = uppers.open_below(directory)?;
        let at = dir.at(name);
        match at.stat()? {
            Some(stat) => fs.set_mode(at, mode(&stat)),
            None => Ok(()),
        }
    }
}

/// Restores the command's modes on all that was opened up in a session's uppers. Returns these objects, a directory before its content.
pub(in crate::capture) fn give_back(fs: &Fs, held: &Dir) -> Result<Vec<Closed>, Error> {
    let uppers = match held.at(b"upper").open_dir() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        uppers => uppers?,
    };
    let at = uppers.at(NOTES);
    let noted = noted(at)?;
    // In reverse order: a directory is opened up before its content.
    for closed in noted.iter().rev() {
        match closed.set(fs, &uppers, |_| closed.mode) {
            // Closed again, or removed, before this was cut off last time.
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound) => {}
            done => done?,
        }
    }
    fs.unlink_if_there(at)?;
    Ok(noted)
}

/// Opens up again what was closed for a command that was not started.
pub(in crate::capture) fn open_again(fs: &Fs, held: &Dir, closed: &[Closed]) -> Result<(), Error> {
    let uppers = held.at(b"upper").open_dir()?;
    open(fs, &uppers, closed)
}

/// Each path below `held/upper` that was opened up, with the mode that it had.
fn noted(at: Entry<'_>) -> Result<Vec<Closed>, Error> {
    let mut bytes = Vec::new();
    match at.open_file() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        file => std::io::Read::read_to_end(&mut file?, &mut bytes).at("read", at)?,
    };
    // What follows the last newline was cut off before anything was opened up for it.
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
    let lines = bytes[..whole].split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| parsed(line).ok_or_else(|| damaged(at))).collect()
}

/// Parses a line. U3: the path is an upper, which has a number, or a name in one.
fn parsed(line: &[u8]) -> Option<Closed> {
    let Note { at, mode } = serde_json::from_slice(line).ok()?;
    let mode = u32::from_str_radix(&mode, 8).ok().filter(|mode| *mode <= 0o7777)?;
    let good = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
    let mut parts = at.split(|b| *b == b'/');
    let is_upper = parts.next().is_some_and(|k| !k.is_empty() && k.iter().all(u8::is_ascii_digit));
    (is_upper && parts.all(good)).then_some(Closed { below: at, mode })
}

fn damaged(at: Entry<'_>) -> Error {
    session::error::damaged(at, "a line does not parse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_leads_below_the_uppers_or_is_damage() {
        for (line, good) in [
            (&br#"{"at":"0/a/b","mode":"0200"}"#[..], true),
            (br#"{"at":"0","mode":"0200"}"#, true),
            (br#"{"at":"modes","mode":"0200"}"#, false),
            (br#"{"at":"","mode":"0200"}"#, false),
            (br#"{"at":"../a","mode":"0200"}"#, false),
            (br#"{"at":"0/../../a","mode":"0200"}"#, false),
            (br#"{"at":"/etc/passwd","mode":"0200"}"#, false),
            (br#"{"at":"0//a","mode":"0200"}"#, false),
            (br#"{"at":"0/a","mode":"10000"}"#, false),
            (br#"{"at":"0/a","mode":"rw"}"#, false),
            (br#"{"at":"0/a"}"#, false),
        ] {
            assert_eq!(parsed(line).is_some(), good, "{}", line.escape_ascii());
        }
    }
}
