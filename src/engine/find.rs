//! Where the objects of a step lie, and whose they are. Undo, recovery and what finishes an operation ask here, and nowhere else.

use super::reach::{Named, Reach, open};
use super::step::{Places, Spot};
use crate::error::{At, IoError};
use crate::fs::dir::{Sort, Stat};
use crate::fs::path::AbsPath;
use crate::tree::look::{self, Seen};
use crate::tree::state::What;

/// What a path holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum There {
    /// Nothing, as its directory is not there.
    NoDirectory,
    /// Nothing.
    Nothing,
    /// What was there before.
    From,
    /// What was put there, untouched.
    To,
    /// What was put there, which somebody has changed since: how, for people.
    Changed(String),
    /// Something else.
    Other,
}

/// What a place off the path holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Off {
    /// Nothing.
    Nothing,
    /// The object that is meant for it.
    Ours,
    /// Another object.
    Other,
}

/// A place off the path.
pub(super) struct Place<'s> {
    /// Which one.
    pub spot: &'s Spot,
    /// Its directory and name; none where there is no such directory.
    pub named: Option<Named<'s>>,
    /// What is there.
    pub what: Off,
}

/// All of it.
pub(super) struct Found<'s> {
    /// The path's directory and name; none where there is no such directory.
    pub target: Option<Named<'s>>,
    /// What the path holds.
    pub there: There,
    /// Where `to` lies ready.
    pub ready: Option<Place<'s>>,
    /// Where `from` comes out.
    pub out: Option<Place<'s>>,
    /// Where `from` is kept at last.
    pub home: Option<Place<'s>>,
}

impl<'s> Found<'s> {
    /// Looks for `from`, which `path` held before, and `to`, which was to be put there.
    pub fn look(
        reach: &mut Reach,
        path: &'s AbsPath,
        (from, to): (Option<&Seen>, Option<&Seen>),
        at: &'s Places,
    ) -> Result<Self, IoError> {
        let target = open(reach.path(path), "open the folder of", path)?;
        let mut place = |spot: Option<&'s Spot>, ours| spot.map(|spot| Place::look(reach, spot, ours)).transpose();
        let (ready, out, home) = (place(at.to.as_ref(), to)?, place(at.out.as_ref(), from)?, place(at.home.as_ref(), from)?);
        let there = match &target {
            None => There::NoDirectory,
            Some(named) => There::at(named, from, to)?,
        };
        Ok(Self { target, there, ready, out, home })
    }

    /// Whether what was to be put is there, changed or not.
    pub fn is_put(&self) -> bool {
        matches!(self.there, There::To | There::Changed(_))
    }

    /// Whether nothing is at the path.
    pub fn is_absent(&self) -> bool {
        matches!(self.there, There::NoDirectory | There::Nothing)
    }

    /// Whether the path and the place where `to` lies ready are two names of one file: a file system after a cut (F13), or link(2) and unlink(2)
    /// in place of a rename.
    pub fn has_both_names(&self) -> Result<bool, IoError> {
        match (&self.target, self.ready.as_ref().and_then(|ready| ready.named.as_ref())) {
            (Some(target), Some(ready)) => is_one_file(target, ready),
            _ => Ok(false),
        }
    }

    /// Whether what came out is where it does, or what lies there, which is not what was to be put, is all that there is of it: in a copy of the
    /// store objects have other numbers.
    pub fn is_out(&self) -> bool {
        let ready = self.ready.as_ref().filter(|ready| self.out.as_ref().is_some_and(|out| out.spot == ready.spot));
        self.out.as_ref().is_some_and(|out| out.what != Off::Nothing) && ready.is_none_or(|ready| ready.what != Off::Ours)
    }
}

impl<'s> Place<'s> {
    fn look(reach: &mut Reach, spot: &'s Spot, ours: Option<&Seen>) -> Result<Self, IoError> {
        let named = open(reach.spot(spot), "open the folder of", spot)?;
        let what = match &named {
            Some(named) if named.at().stat().at("look at", spot)?.is_none() => Off::Nothing,
            None => Off::Nothing,
            Some(named) if holds(Some(named), ours)? => Off::Ours,
            Some(_) => Off::Other,
        };
        Ok(Self { spot, named, what })
    }
}

impl There {
    fn at(named: &Named<'_>, from: Option<&Seen>, to: Option<&Seen>) -> Result<Self, IoError> {
        if named.at().stat().at("look at", named.at())?.is_none() {
            return Ok(Self::Nothing);
        }
        if holds(Some(named), from)? {
            return Ok(Self::From);
        }
        Ok(match whose(named, to)? {
            Whose::Ours => Self::To,
            Whose::Changed(how) => Self::Changed(how),
            Whose::Foreign => Self::Other,
        })
    }
}

/// Whether two names are of one object, which is no folder.
pub(super) fn is_one_file(one: &Named<'_>, other: &Named<'_>) -> Result<bool, IoError> {
    let (one, other) = (one.at().stat().at("look at", one.at())?, other.at().stat().at("look at", other.at())?);
    Ok(matches!((one, other), (Some(one), Some(other)) if one.sort != Sort::Folder && one.inode() == other.inode()))
}

/// Whether that object lies there.
pub(super) fn holds(named: Option<&Named<'_>>, object: Option<&Seen>) -> Result<bool, IoError> {
    let (Some(named), Some(object)) = (named, object) else { return Ok(false) };
    let stat = named.at().stat().at("look at", named.at())?;
    let is_it = |stat: &Stat| object.print.identity.is(look::identity(stat)) && stat.sort == object.state.sort();
    let Some(stat) = stat.filter(is_it) else { return Ok(false) };
    // An inode without a birth time may have been used again, and one that is told by what it holds tells nothing: the content must agree too.
    let identity = object.print.identity;
    match (identity.btime.filter(|_| !identity.loose), &object.state.what) {
        (None, What::File { digest: Some(digest), size, .. }) => {
            Ok(stat.size == *size && look::digest(named.at()).at("read", named.at())?.0 == *digest)
        }
        (None, What::File { size, .. }) if identity.loose => Ok(stat.size == *size && stat.mtime == object.state.meta.mtime),
        (None, what) if identity.loose && !object.state.is_folder() => {
            Ok(look::look(named.at()).at("look at", named.at())?.is_some_and(|found| found.state.what == *what))
        }
        _ => Ok(true),
    }
}

pub(super) enum Whose {
    Ours,
    Changed(String),
    Foreign,
}

/// Whether what lies at the target is what was put there, untouched: its content is read, as nothing else tells of a write that kept size
/// and time, and the ctime that it had right after it was put is known to nobody who recovers.
pub(super) fn whose(target: &Named<'_>, ours: Option<&Seen>) -> Result<Whose, IoError> {
    let Some(ours) = ours else { return Ok(Whose::Foreign) };
    if !holds(Some(target), Some(ours))? {
        return Ok(Whose::Foreign);
    }
    let Some(found) = look::look(target.at()).at("look at", target.at())? else { return Ok(Whose::Foreign) };
    let changed = || Ok(Whose::Changed("somebody changed what was put there".into()));
    let (meta, now) = (&ours.state.meta, &found.state.meta);
    if ours.state.is_folder() {
        let dir = target.at().open_dir().at("open the folder", target.at())?;
        if !dir.is_empty().at("list the folder", target.at())? {
            return Ok(Whose::Changed("somebody put something into the folder".into()));
        }
        return if now.xattrs == meta.xattrs { Ok(Whose::Ours) } else { changed() };
    }
    if found.state.size() != ours.state.size() || now.mtime != meta.mtime || ours.state.meta_difference(&found.state).is_some() {
        return changed();
    }
    let Some(digest) = ours.state.digest() else { return Ok(Whose::Ours) };
    match look::digest(target.at()) {
        Ok((found, _)) if found == digest => Ok(Whose::Ours),
        // One that may not be read cannot be asked.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(Whose::Ours),
        // Whether it is untouched cannot be told, and nothing is decided by that.
        Err(error) if error.raw_os_error().is_some() => Err(error).at("read", target.at()),
        // It changes while it is read, or has just become something else.
        Ok(_) | Err(_) => changed(),
    }
}
