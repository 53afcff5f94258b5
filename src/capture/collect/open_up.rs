//! Opens up in the uppers what an ordinary user's command closed to its own owner, so that it can be read, shown and committed: files
//! without `u+r`, directories without `u+rx`. Root needs none of this.
//!
//! - **H8** The mode is noted in `held/upper/modes`, durably, before it is changed. So a collecting that fails or is cut off, even by a
//!   power cut, knows the modes that the command left. The first closed object therefore starts a search of all the run's uppers: one sync
//!   covers all that it finds, and one more what lay in closed directories.
//! - **H9** They stay opened up while the session is pending (a change has the intended mode, and a commit sets it). The notes stay too: a
//!   further command finds the modes as they were, and then all is opened up again.
//! - **H10** A note is untrusted: it leads to a name below `held/upper`, over no link.

use std::collections::HashMap;

use super::facts::Facts;
use crate::capture::layers::opened_modes::{Closed, NOTES, notes_of};
use crate::error::Error;
use crate::fs::{Dev, Dir, Fs, Sort, Stat};

/// The closed objects in the uppers of a session.
pub struct Modes<'a> {
    fs: &'a Fs,
    held: &'a Dir,
    uppers: Vec<Vec<u8>>,
    /// The modes that commands left: an object has one mode under all its names.
    left: HashMap<(Dev, u64), u32>,
    /// True once the run's uppers were searched.
    searched: bool,
}

impl<'a> Modes<'a> {
    /// Reads the notes, and opens up what they name: a further command had it closed again.
    pub fn new(fs: &'a Fs, facts: &Facts<'a>) -> Result<Self, Error> {
        let uppers = facts.places.iter().map(|place| place.upper_name(facts.step)).collect();
        if facts.looks {
            return Ok(Self { fs, held: facts.held, uppers, left: HashMap::new(), searched: true });
        }
        let mut left = HashMap::new();
        if let Some((dir, noted)) = notes_of(facts.held)? {
            for closed in &noted {
                if let Some(stat) = closed.set(fs, &dir, |stat| closed.mode | needed(stat.sort))? {
                    left.insert((stat.dev, stat.ino), closed.mode);
                }
            }
        }
        Ok(Self { fs, held: facts.held, uppers, left, searched: false })
    }

    /// Opens up all of the run's uppers, if the owner may not read this object. Returns its state with the mode that the command left.
    pub fn open_up(&mut self, stat: Stat) -> Result<Stat, Error> {
        if !self.searched && is_closed(&stat) {
            self.searched = true;
            open_all(self.fs, self.held, &self.uppers, &mut self.left)?;
        }
        Ok(Stat { mode: self.as_left(&stat), ..stat })
    }

    pub fn as_left(&self, stat: &Stat) -> u32 {
        self.left.get(&(stat.dev, stat.ino)).copied().unwrap_or(stat.mode)
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

/// Opens up all that is closed in these uppers, and adds the mode that each had.
fn open_all(fs: &Fs, held: &Dir, names: &[Vec<u8>], left: &mut HashMap<(Dev, u64), u32>) -> Result<(), Error> {
    let uppers = held.at(b"upper").open_dir()?;
    let (mut closed, mut inside, mut directories) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let Some(stat) = uppers.at(name).stat()? else { continue };
        let found = UpperObject { stat, below: name.clone() };
        found.take(left, (&mut closed, &mut inside, &mut directories));
    }
    open(fs, &uppers, &closed)?;
    directories.append(&mut inside);
    while !directories.is_empty() {
        let (mut closed, mut inside) = (Vec::new(), Vec::new());
        while let Some(directory) = directories.pop() {
            let dir = uppers.open_below(&directory)?;
            for name in dir.names()? {
                let Some(stat) = dir.at(&name).stat()? else { continue };
                let found = UpperObject { stat, below: [&directory[..], b"/", &name].concat() };
                found.take(left, (&mut closed, &mut inside, &mut directories));
            }
        }
        open(fs, &uppers, &closed)?;
        // Their content can be listed now.
        directories = inside;
    }
    Ok(())
}

struct UpperObject {
    stat: Stat,
    /// Its path below `held/upper`.
    below: Vec<u8>,
}

impl UpperObject {
    /// Sorts it in: among what is closed, and, if it is a directory, among the closed or the open ones.
    fn take(
        self,
        left: &mut HashMap<(Dev, u64), u32>,
        (closed, inside, directories): (&mut Vec<Closed>, &mut Vec<Vec<u8>>, &mut Vec<Vec<u8>>),
    ) {
        let Self { stat, below } = self;
        let is_closed = is_closed(&stat);
        if stat.sort == Sort::Directory {
            if is_closed { inside } else { directories }.push(below.clone());
        }
        if is_closed && left.insert((stat.dev, stat.ino), stat.mode).is_none() {
            closed.push(Closed { below, mode: stat.mode });
        }
    }
}

/// Notes the closed objects, and opens them up: a directory before its content.
fn open(fs: &Fs, uppers: &Dir, closed: &[Closed]) -> Result<(), Error> {
    if closed.is_empty() {
        return Ok(());
    }
    let at = uppers.at(NOTES);
    let notes = fs.append(at)?;
    let lines = closed.iter().flat_map(|closed| closed.note());
    fs.write(&notes, &lines.collect::<Vec<u8>>(), at)?;
    // H8, D1, D2: without these a directory could have another mode after a power cut, and nothing would say which one it had.
    fs.sync(&notes, at)?;
    fs.sync_dir(uppers)?;
    for closed in closed {
        closed.set(fs, uppers, |stat| closed.mode | needed(stat.sort))?;
    }
    Ok(())
}

/// Gives all that was opened up in a session's uppers the modes that commands left, for a further command.
pub fn give_back(fs: &Fs, held: &Dir) -> Result<(), Error> {
    if let Some((uppers, noted)) = notes_of(held)? {
        // In reverse order: a directory is opened up before its content.
        for closed in noted.iter().rev() {
            closed.set(fs, &uppers, |_| closed.mode)?;
        }
    }
    Ok(())
}

/// Opens up again what was closed for a command that is over and left nothing, or was not started.
pub fn open_again(fs: &Fs, held: &Dir) -> Result<(), Error> {
    if let Some((uppers, noted)) = notes_of(held)? {
        for closed in &noted {
            closed.set(fs, &uppers, |stat| closed.mode | needed(stat.sort))?;
        }
    }
    Ok(())
}

/// Removes the notes of uppers that are about to be made anew, by their names in `held/upper`.
pub fn forget(fs: &Fs, held: &Dir, names: &[Vec<u8>]) -> Result<(), Error> {
    let Some((uppers, mut noted)) = notes_of(held)? else { return Ok(()) };
    let count = noted.len();
    noted.retain(|closed| !names.iter().any(|name| closed.below.split(|b| *b == b'/').next() == Some(name)));
    if noted.len() < count {
        let lines = noted.iter().flat_map(|closed| closed.note());
        fs.replace(uppers.at(NOTES), &lines.collect::<Vec<u8>>())?;
    }
    Ok(())
}
