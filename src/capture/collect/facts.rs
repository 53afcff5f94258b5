//! The facts of a run, and the places of its uppers and of what they cover.

use std::io;
use std::rc::Rc;

use super::tree_below::TreeBelow;
use crate::capture::layers::sealed_uppers::Sealed;
use crate::capture::place::layout::{Route, is_opaque_directory};
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Dir, Shown, Span, Time};
use crate::session::{Net, Place};

/// The facts of a run: from `run.json`, or from the run that just ended.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The session's `held` directory, with `upper/<k>` in it.
    pub held: &'a Dir,
    /// The captured places.
    pub places: &'a [Place],
    /// recant's store: nothing in it is ever a change.
    pub store: &'a AbsPath,
    /// The time when the command started: what has a later ctime on the tree changed during the run.
    pub started: Time,
    /// The time that the command took; `None` if that is no longer known.
    pub span: Option<Span>,
    /// The step that the run is.
    pub step: u32,
    /// The uppers of the steps that it lies over.
    pub sealed: &'a Sealed,
    /// The changes that these steps left.
    pub net: &'a Net,
    /// The number of these, and the first free number of a change.
    pub numbers: Numbers,
    /// Places whose changes are dropped.
    pub scratch: &'a [AbsPath],
    /// True if the command still runs: nothing is changed below the session, and what cannot be read is left out.
    pub looks: bool,
    /// True if the uppers lie in memory, and go with the run.
    pub in_memory: bool,
    /// True if the machine went down before the run was collected: some of what it wrote may be lost.
    pub cut_off: bool,
    /// The way it was captured: overlayfs keeps its notes in `trusted.` or `user.` xattrs.
    pub route: Route,
}

/// The numbers that a step's changes go on from.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// The number of net changes before.
    pub changes: u64,
    /// The first free number of a change.
    pub from: u32,
}

impl Facts<'_> {
    /// No directory below an upper.
    pub fn nowhere(&self) -> TreeBelow {
        TreeBelow::new(self.route, Vec::new(), None)
    }

    /// The tops of what lies below the upper of a place.
    pub fn below(&self, place: &Place, real: Option<Rc<Dir>>) -> Result<TreeBelow, Error> {
        let held = self.sealed.below(self.held, place, self.route)?;
        let hides = match held.last() {
            Some(last) => is_opaque_directory(self.route, last)?,
            None => false,
        };
        Ok(TreeBelow::new(self.route, held.into_iter().map(Rc::new).collect(), real.filter(|_| !hides)))
    }
}

/// The upper of a place, and what lies below it, if the upper is there.
pub fn tops(facts: &Facts<'_>, place: &Place) -> Result<Option<(Rc<Dir>, TreeBelow)>, Error> {
    let root = Dir::open("/".as_ref())?;
    let Some(upper) = upper_of(facts, place)?.map(Rc::new) else { return Ok(None) };
    let real = match root.open_across(&place.path.as_bytes()[1..]) {
        Ok(real) => Some(Rc::new(real)),
        Err(error) if error.leads_nowhere() => None,
        // The disk is gone: without a change of it there is nothing to compare.
        Err(_) if upper.is_empty()? => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some((upper, facts.below(place, real)?)))
}

pub fn upper_of(facts: &Facts<'_>, place: &Place) -> Result<Option<Dir>, Error> {
    let path = [b"upper/", &*place.upper_name(facts.step)].concat();
    match facts.held.open_below(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        upper => Ok(Some(upper.at("open the upper directory of", &place.path)?)),
    }
}

/// The full path of something below a place: `below` is made of names from a listing, or of a note that was found to be made of such. An
/// error if it is longer than recant takes: [`LENGTH_MAX`](crate::fs::LENGTH_MAX).
pub fn full_path(place: &AbsPath, below: &[u8]) -> Result<AbsPath, IoError> {
    if below.is_empty() {
        return Ok(place.clone());
    }
    let top = if place.depth() == 0 { b"" } else { place.as_bytes() };
    let full = [top, b"/", below].concat();
    // Nobody reads eight thousand bytes.
    let cut = |full: &[u8]| full[..full.len().min(160)].iter().rposition(|byte| *byte == b'/').unwrap_or_default();
    let start = &full[..cut(&full)];
    AbsPath::parse(&full).map_err(io::Error::other).at("hold all that lies in", Shown(start))
}
