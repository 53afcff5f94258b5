//! The walk through an upper, directory by directory, each with the real one that it was merged with.

use std::rc::Rc;

use super::Found;
use super::facts::full_path;
use super::judge::{Down, Hiding};
use super::laid::LaidUpper;
use crate::capture::layout::is_whiteout;
use crate::error::{At, Error, IoError};
use crate::fs::dir::{Dir, Stat};
use crate::fs::path::AbsPath;
use crate::session::run::Place;

/// A directory on the way down.
struct Level {
    /// The length of its path below the place.
    length: usize,
    upper: Option<Rc<Dir>>,
    /// True if a real directory exists at this path.
    has_real: bool,
    real: Option<Rc<Dir>>,
    /// The opaque directory, this one or one above, that hid the names which only the real directory has. `None`: they were seen.
    hider: Option<Stat>,
    names: std::vec::IntoIter<Name>,
}

struct Name {
    name: Vec<u8>,
    in_upper: bool,
}

/// The number of directories on the way down that stay open.
const OPEN_LEVELS: usize = 64;

impl Found<'_> {
    /// Reads one place.
    pub(super) fn place(&mut self, place: &Place, upper: &Rc<Dir>, real: Option<&Rc<Dir>>) -> Result<(), Error> {
        self.top(place, upper, real)?;
        let mut path = Vec::new();
        let opaque = self.is_opaque(&upper.xattrs().at("read the extended attributes", &place.path)?);
        let hider = if opaque { Some(upper.stat().at("look at the upper of", &place.path)?) } else { None };
        let mut levels = vec![self.level(upper.clone(), real.cloned(), 0, hider, &place.path)?];
        while let Some(level) = levels.last_mut() {
            path.truncate(level.length);
            let Some(name) = level.names.next() else {
                levels.pop();
                continue;
            };
            // Opened again if the way down is longer than the directories that stay open.
            let dir = reopened(&mut level.upper, upper, &path).at("open the directory", &place.path)?;
            let below = match (level.has_real, real) {
                (true, Some(top)) => reopened(&mut level.real, top, &path).map(Some).or_else(absent_is_none),
                _ => Ok(None),
            };
            let below = below?;
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(&name.name);
            let full = full_path(&place.path, &path);
            if full.is_under(self.facts.store) {
                continue;
            }
            let hider = level.hider;
            let at = dir.at(&name.name);
            let new = if name.in_upper { at.stat().at("look at the upper of", &full)? } else { None };
            let whiteout = new.filter(is_whiteout);
            let new = new.filter(|stat| !is_whiteout(stat));
            let new = new.map(|stat| self.modes.open_up(stat)).transpose()?;
            let down = self.name(at, &full, new, below.as_ref(), Hiding { whiteout, above: hider })?;
            let Some(Down { has_real, hider, laid }) = down else { continue };
            if let Some(upper) = place.upper(&path).filter(|_| laid) {
                self.laid.push(LaidUpper { path: full.clone(), upper });
            }
            let upper_below = Rc::new(at.open_dir()?);
            let real_below = match below.filter(|_| has_real) {
                // It may have gone since the last look.
                Some(real) => {
                    let opened = real.open_below(&name.name).map(Some).or_else(absent_is_none);
                    opened?.map(Rc::new)
                }
                None => None,
            };
            let level = self.level(upper_below, real_below, path.len(), hider, &full)?;
            if let Some(far) = levels.len().checked_sub(OPEN_LEVELS) {
                (levels[far].upper, levels[far].real) = (None, None);
            }
            levels.push(level);
        }
        Ok(())
    }

    /// The names to look at in a directory: the upper's, and the real ones too if the run did not see them.
    fn level(
        &mut self,
        upper: Rc<Dir>,
        real: Option<Rc<Dir>>,
        length: usize,
        hider: Option<Stat>,
        path: &AbsPath,
    ) -> Result<Level, Error> {
        let mut names: Vec<Name> =
            upper.names().at("list the upper of", path)?.into_iter().map(|name| Name { name, in_upper: true }).collect();
        if let (Some(real), false) = (&real, hider.is_none()) {
            match real.names() {
                Ok(real) => names.extend(real.into_iter().map(|name| Name { name, in_upper: false })),
                Err(error) => self.warnings.push(format!("{path}: cannot list its original content: {}", error.why())),
            }
        }
        // Of two equal names the upper's comes first and is kept.
        names.sort_by(|a, b| a.name.cmp(&b.name).then(b.in_upper.cmp(&a.in_upper)));
        names.dedup_by(|a, b| a.name == b.name);
        let has_real = real.is_some();
        Ok(Level { length, upper: Some(upper), has_real, real, hider, names: names.into_iter() })
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

fn absent_is_none<T>(error: IoError) -> Result<Option<T>, IoError> {
    if error.leads_nowhere() { Ok(None) } else { Err(error) }
}
