//! The facts of a run, and the places of its uppers and of what they cover.

use std::io;
use std::rc::Rc;

use crate::capture::layout::Route;
use crate::error::{At, Error};
use crate::fs::Span;
use crate::fs::dir::{Dir, Time};
use crate::fs::path::AbsPath;
use crate::session::change::Changes;
use crate::session::run::Place;

/// The facts of a run: from `run.json`, or from the run that just ended.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The session's `held` directory, with `upper/<k>` in it.
    pub held: &'a Dir,
    /// The captured places.
    pub places: &'a [Place],
    /// recant's store: nothing in it is ever a change.
    pub store: &'a AbsPath,
    /// The time when the command started: what has a later ctime on the tree changed during the run.
    pub started: Time,
    /// The time when the session's first command started; equal to `started` in a session of one run.
    pub first: Time,
    /// The time that the command took; `None` if that is no longer known.
    pub span: Option<Span>,
    /// The changes that earlier runs of the session left: their paths keep the `before` that they had then.
    pub known: &'a Changes,
    /// Other paths where the uppers of earlier runs hide the tree, in path order: [`Collected::hides`](super::Collected::hides).
    pub hides: &'a [AbsPath],
    /// Places whose changes are dropped.
    pub scratch: &'a [AbsPath],
    /// True if the uppers lie in memory, and go with the run.
    pub in_memory: bool,
    /// True if the machine went down before the run was collected: some of what it wrote may be lost.
    pub cut_off: bool,
    /// The way it was captured: overlayfs keeps its notes in `trusted.` or `user.` xattrs.
    pub route: Route,
}

/// The upper of a place, and the real directory, each if it is there.
#[expect(clippy::type_complexity, reason = "a pair of directories, each with its own way to be missing")]
pub(in crate::capture) fn tops(facts: &Facts<'_>, place: &Place) -> Result<Option<(Rc<Dir>, Option<Rc<Dir>>)>, Error> {
    let root = Dir::open("/".as_ref())?;
    let Some(upper) = upper_of(facts, place)?.map(Rc::new) else { return Ok(None) };
    let real = match root.open_across(&place.path.as_bytes()[1..]) {
        Ok(real) => Some(Rc::new(real)),
        Err(error) if error.leads_nowhere() => None,
        // The disk is gone: without a change of it there is nothing to compare.
        Err(_) if upper.is_empty()? => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(Some((upper, real)))
}

pub(super) fn upper_of(facts: &Facts<'_>, place: &Place) -> Result<Option<Dir>, Error> {
    let path = format!("upper/{}", place.k);
    match facts.held.open_below(path.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        upper => Ok(Some(upper.at("open the upper directory of", &place.path)?)),
    }
}

/// The full path of something below a place.
pub(in crate::capture) fn full_path(place: &AbsPath, below: &[u8]) -> AbsPath {
    if below.is_empty() {
        return place.clone();
    }
    let place = if place.depth() == 0 { b"" } else { place.as_bytes() };
    // `below` is made of names from a listing, none of which is empty, `.`, `..`, or holds a `/` or NUL, or of a note that was found to be
    // made of such names.
    AbsPath::parse([place, b"/", below].concat()).expect("names that the kernel gave are good names")
}
