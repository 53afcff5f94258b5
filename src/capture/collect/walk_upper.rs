//! The walk through an upper, directory by directory, each with what it was merged with.

use std::rc::Rc;

use super::change_of_name::{Descent, Hiding};
use super::facts::full_path;
use super::tree_below::TreeBelow;
use super::upper_reader::{LaidUpper, UpperReader};
use crate::capture::place::layout::{is_opaque_directory, is_whiteout};
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Dir, Stat, leads_nowhere};
use crate::session::Place;

/// A directory on the way down.
struct Level {
    /// The length of its path below the place.
    length: usize,
    upper: Option<Rc<Dir>>,
    /// The parts of what lies below it at this path.
    parts: Parts,
    below: Option<TreeBelow>,
    /// The opaque directory, this one or one above, that hid the names which only lie below. `None`: they were seen.
    hider: Option<Stat>,
    names: std::vec::IntoIter<Name>,
}

/// The parts that a directory below a run's upper has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    None,
    RealAlone,
    Held,
}

struct Name {
    name: Vec<u8>,
    in_upper: bool,
}

/// The number of directories on the way down that stay open.
const OPEN_LEVELS: usize = 64;

impl UpperReader<'_> {
    pub fn place(&mut self, place: &Place, upper: &Rc<Dir>, tops: &TreeBelow) -> Result<(), Error> {
        self.top(place, upper, tops)?;
        let mut path = Vec::new();
        let opaque = is_opaque_directory(self.facts.route, upper).at("read the extended attributes", &place.path)?;
        let hider = if opaque { Some(upper.stat().at("look at the upper of", &place.path)?) } else { None };
        let mut levels = vec![self.level(upper.clone(), tops.clone(), 0, hider, &place.path)?];
        while let Some(level) = levels.last_mut() {
            path.truncate(level.length);
            let Some(name) = level.names.next() else {
                levels.pop();
                continue;
            };
            // Opened again if the way down is longer than the directories that stay open.
            let opened = reopened(&mut level.upper, upper, &path).at("open the directory", &place.path);
            let below = level.below(tops, &path);
            let full = full_path(&place.path, &path)?;
            let Some(dir) = self.unless_it_moves(&full, opened.map_err(Error::from))? else { continue };
            let Some(below) = self.unless_it_moves(&full, below.map_err(Error::from))? else { continue };
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name.name);
            let full = full_path(&place.path, &path)?;
            if full.is_under(self.facts.store) {
                continue;
            }
            let hider = level.hider;
            let at = dir.at(&name.name);
            let new = if name.in_upper { at.stat().at("look at the upper of", &full)? } else { None };
            let whiteout = new.filter(is_whiteout);
            let new = new.filter(|stat| !is_whiteout(stat));
            let new = new.map(|stat| self.modes.open_up(stat)).transpose()?;
            let down = self.name(at, &full, new, &below, Hiding { whiteout, above: hider });
            let Some(Descent { is_merged, hider, laid }) = self.unless_it_moves(&full, down)?.flatten() else { continue };
            if laid {
                self.laid.extend(place.upper(self.facts.step, &path).map(|upper| LaidUpper { path: full.clone(), upper }));
            }
            let Some(upper_below) = self.unless_it_moves(&full, at.open_dir().map_err(Error::from))?.map(Rc::new) else {
                continue;
            };
            // It may have gone since the last look.
            let below = if is_merged { below.enter(&name.name)? } else { self.facts.nowhere() };
            let level = self.level(upper_below, below, path.len(), hider, &full);
            let Some(level) = self.unless_it_moves(&full, level)? else { continue };
            if let Some(far) = levels.len().checked_sub(OPEN_LEVELS) {
                (levels[far].upper, levels[far].below) = (None, None);
            }
            levels.push(level);
        }
        Ok(())
    }

    /// Takes the result of reading a name. `None` if the command, which still runs, has removed it meanwhile, or closed it to everybody.
    fn unless_it_moves<T>(&mut self, path: &AbsPath, read: Result<T, Error>) -> Result<Option<T>, Error> {
        let Err(error) = &read else { return read.map(Some) };
        let closed = error.io().is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        match error.io() {
            Some(why) if self.facts.looks && (closed || leads_nowhere(why)) => {
                if closed {
                    self.warnings.push(format!("{path}: the command has closed it: it is not shown while that runs"));
                }
                Ok(None)
            }
            _ => read.map(Some),
        }
    }

    /// The names to look at in a directory: the upper's, and those below too if the run did not see them.
    fn level(
        &mut self,
        upper: Rc<Dir>,
        below: TreeBelow,
        length: usize,
        hider: Option<Stat>,
        path: &AbsPath,
    ) -> Result<Level, Error> {
        let mut names: Vec<Name> =
            upper.names().at("list the upper of", path)?.into_iter().map(|name| Name { name, in_upper: true }).collect();
        if hider.is_some() {
            let hidden = below.names(|error| {
                self.warnings.push(format!("{path}: cannot list its original content: {}", error.why()));
            });
            names.extend(hidden?.into_iter().map(|name| Name { name, in_upper: false }));
        }
        // Of two equal names the upper's comes first and is kept.
        names.sort_by(|a, b| a.name.cmp(&b.name).then(b.in_upper.cmp(&a.in_upper)));
        names.dedup_by(|a, b| a.name == b.name);
        let parts = match (below.is_nowhere(), below.is_held()) {
            (true, _) => Parts::None,
            (_, true) => Parts::Held,
            (_, false) => Parts::RealAlone,
        };
        Ok(Level { length, upper: Some(upper), parts, below: Some(below), hider, names: names.into_iter() })
    }
}

impl Level {
    /// The directory below, opened again if it was closed: `path` is that of the directory below the place.
    fn below(&mut self, tops: &TreeBelow, path: &[u8]) -> Result<TreeBelow, IoError> {
        if let Some(below) = &self.below {
            return Ok(below.clone());
        }
        let below = match self.parts {
            Parts::None => tops.nowhere(),
            Parts::RealAlone => tops.descend_real(path)?,
            Parts::Held => tops.descend(path)?,
        };
        self.below = Some(below.clone());
        Ok(below)
    }
}

/// A directory on the way down, opened again if it was closed.
fn reopened(held: &mut Option<Rc<Dir>>, top: &Rc<Dir>, below: &[u8]) -> Result<Rc<Dir>, IoError> {
    if let Some(dir) = held {
        return Ok(dir.clone());
    }
    let dir = Rc::new(top.open_below(below)?);
    *held = Some(dir.clone());
    Ok(dir)
}
