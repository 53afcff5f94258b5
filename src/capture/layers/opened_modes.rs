//! The notes of what was opened up in a session's uppers: `held/upper/modes` (`collect::open_up`, H8 to H10).

use std::collections::HashMap;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use crate::capture::place::pieces::parted;
use crate::error::{At, Error, IoError};
use crate::fs::{Dev, Dir, Entry, Fs, Stat, path};
use crate::session;
use crate::tree::json;

pub const NOTES: &[u8] = b"modes";

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

/// An object that was opened up.
#[derive(Debug)]
pub struct Closed {
    /// The path below `held/upper`.
    pub below: Vec<u8>,
    pub mode: u32,
}

impl Closed {
    pub fn note(&self) -> Vec<u8> {
        Note::of(&self.below, self.mode)
    }

    /// Sets its mode, if it is there and has another. Returns its stat from before.
    pub fn set(&self, fs: &Fs, uppers: &Dir, mode: impl FnOnce(&Stat) -> u32) -> Result<Option<Stat>, IoError> {
        let Some((dir, stat)) = found(uppers, &self.below)? else { return Ok(None) };
        let mode = mode(&stat);
        if mode != stat.mode {
            fs.set_mode(dir.at(parted(&self.below).1), mode)?;
        }
        Ok(Some(stat))
    }

    fn stat(&self, uppers: &Dir) -> Result<Option<Stat>, IoError> {
        Ok(found(uppers, &self.below)?.map(|(_, stat)| stat))
    }
}

/// An object below the uppers, and its directory. `None` if that is closed again, or it was removed, before this was cut off last time; or was
/// put on the tree.
fn found(uppers: &Dir, below: &[u8]) -> Result<Option<(Dir, Stat)>, IoError> {
    let (directory, name) = parted(below);
    let look = || -> Result<_, IoError> {
        let dir = uppers.open_below(directory)?;
        let stat = dir.at(name).stat()?;
        Ok(stat.map(|stat| (dir, stat)))
    };
    match look() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied || error.leads_nowhere() => Ok(None),
        found => found,
    }
}

/// Adds notes of what lies opened up in uppers that hold nothing of their own: nobody waits for the disk.
pub fn append(fs: &Fs, uppers: &Dir, notes: &[Closed]) -> Result<(), Error> {
    if notes.is_empty() {
        return Ok(());
    }
    let at = uppers.at(NOTES);
    let lines = notes.iter().flat_map(Closed::note).collect::<Vec<u8>>();
    Ok(fs.write(&fs.append(at)?, &lines, at)?)
}

/// The modes that commands left on what is noted, by inode.
pub fn left(held: &Dir) -> Result<HashMap<(Dev, u64), u32>, Error> {
    let mut left = HashMap::new();
    if let Some((uppers, noted)) = notes_of(held)? {
        for closed in noted {
            if let Some(stat) = closed.stat(&uppers)? {
                left.insert((stat.dev, stat.ino), closed.mode);
            }
        }
    }
    Ok(left)
}

/// The directory of the uppers, and the notes in it; `None` if it has none.
pub fn notes_of(held: &Dir) -> Result<Option<(Dir, Vec<Closed>)>, Error> {
    let uppers = match held.at(b"upper").open_dir() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        uppers => uppers?,
    };
    let noted = noted(uppers.at(NOTES))?;
    Ok((!noted.is_empty()).then_some((uppers, noted)))
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

/// Parses a line. H10: the path is an upper, which has a number, or a name in one.
fn parsed(line: &[u8]) -> Option<Closed> {
    let Note { at, mode } = serde_json::from_slice(line).ok()?;
    let mode = u32::from_str_radix(&mode, 8).ok().filter(|mode| *mode <= 0o7777)?;
    let good = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
    let mut parts = at.split(|b| *b == b'/');
    let is_upper = parts.next().is_some_and(is_upper_name);
    (is_upper && parts.all(good)).then_some(Closed { below: at, mode })
}

/// True for the name of an upper, or of a block of them (`layers::sealed_uppers`): `K`, `K.STEP`, `K.FROM-TO.BOOT`.
fn is_upper_name(name: &[u8]) -> bool {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match name.split(|b| *b == b'.').collect::<Vec<_>>()[..] {
        [k] => is_number(k),
        [k, step] => is_number(k) && is_number(step),
        [k, steps, boot] => {
            let mut steps = steps.split(|b| *b == b'-');
            let (from, to) = (steps.next(), steps.next());
            let is_boot = !boot.is_empty() && boot.iter().all(u8::is_ascii_hexdigit);
            is_number(k) && from.is_some_and(is_number) && to.is_some_and(is_number) && steps.next().is_none() && is_boot
        }
        _ => false,
    }
}

fn damaged(at: Entry<'_>) -> Error {
    session::error::damaged(at, "a line does not parse")
}

#[cfg(test)]
mod tests {
    use crate::capture::layers::opened_modes::*;

    #[test]
    fn a_note_leads_below_the_uppers_or_is_damage() {
        for (line, good) in [
            (&br#"{"at":"0/a/b","mode":"0200"}"#[..], true),
            (br#"{"at":"0","mode":"0200"}"#, true),
            (br#"{"at":"0.12/a","mode":"0200"}"#, true),
            (br#"{"at":"0.1-12.ab12/a","mode":"0200"}"#, true),
            (br#"{"at":"0.1-12/a","mode":"0200"}"#, false),
            (br#"{"at":"0.1-12.x/a","mode":"0200"}"#, false),
            (br#"{"at":"0./a","mode":"0200"}"#, false),
            (br#"{"at":"0.1.2/a","mode":"0200"}"#, false),
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
