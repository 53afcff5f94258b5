//! Finds where the objects of a step lie, and whose they are. Undo, recovery and finish ask only here.

use crate::engine::reach::{Named, Reach, open};
use crate::engine::step::{Places, Spot};
use crate::error::IoError;
use crate::fs::{AbsPath, Sort, Stat};
use crate::tree::{Seen, What, observe};

/// The content of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtPath {
    /// Nothing, as its directory is not there.
    NoDirectory,
    Nothing,
    /// The object from before the operation.
    From,
    /// The object that was put there, untouched.
    To,
    /// The object that was put there, with what somebody has changed since, for people.
    Changed(String),
    Other,
}

/// The content of a place off the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffPath {
    Nothing,
    /// The object that is meant for it.
    Ours,
    Other,
}

pub struct Place<'s> {
    pub spot: &'s Spot,
    /// Its directory and name; `None` if there is no such directory.
    pub named: Option<Named<'s>>,
    pub what: OffPath,
}

pub struct StepObjects<'s> {
    /// The path's directory and name; `None` if there is no such directory.
    pub target: Option<Named<'s>>,
    pub there: AtPath,
    /// The place where `to` lies ready.
    pub ready: Option<Place<'s>>,
    /// The place where `from` comes out.
    pub out: Option<Place<'s>>,
    /// The place where `from` is kept at last.
    pub home: Option<Place<'s>>,
}

impl<'s> StepObjects<'s> {
    /// Looks for `from`, which `path` held before, and `to`, which was to be put there.
    pub fn find(
        reach: &mut Reach,
        path: &'s AbsPath,
        (from, to): (Option<&Seen>, Option<&Seen>),
        at: &'s Places,
    ) -> Result<Self, IoError> {
        let target = open(reach.path(path))?;
        let mut place = |spot: Option<&'s Spot>, ours| spot.map(|spot| Place::find(reach, spot, ours)).transpose();
        let (ready, out, home) = (place(at.to.as_ref(), to)?, place(at.out.as_ref(), from)?, place(at.home.as_ref(), from)?);
        let there = match &target {
            None => AtPath::NoDirectory,
            Some(named) => AtPath::at(named, from, to)?,
        };
        Ok(Self { target, there, ready, out, home })
    }

    /// True if what was to be put is there, changed or not.
    pub fn is_put(&self) -> bool {
        matches!(self.there, AtPath::To | AtPath::Changed(_))
    }

    /// True if what is at the path may be `to`, changed since: an object that is told by its content looks like another one then.
    pub fn may_be_changed(&self, to: Option<&Seen>) -> bool {
        let is_away = self.ready.as_ref().is_some_and(|ready| ready.what == OffPath::Nothing);
        is_away && self.there == AtPath::Other && to.is_some_and(Seen::is_told_by_content)
    }

    /// True if nothing is at the path.
    pub fn is_absent(&self) -> bool {
        matches!(self.there, AtPath::NoDirectory | AtPath::Nothing)
    }

    /// True if the path and the place where `to` lies ready are two names of one file: by a file system after a power cut (F13), or by
    /// link(2) and unlink(2) in place of a rename.
    pub fn has_both_names(&self) -> Result<bool, IoError> {
        match (&self.target, self.ready.as_ref().and_then(|ready| ready.named.as_ref())) {
            (Some(target), Some(ready)) => is_one_file(target, ready),
            _ => Ok(false),
        }
    }

    /// True if what came out is where it comes out, or another object lies there that is not what was to be put, and is all there is: in
    /// a copy of the store objects have other numbers.
    pub fn is_out(&self) -> bool {
        let ready = self.ready.as_ref().filter(|ready| self.out.as_ref().is_some_and(|out| out.spot == ready.spot));
        self.out.as_ref().is_some_and(|out| out.what != OffPath::Nothing) && ready.is_none_or(|ready| ready.what != OffPath::Ours)
    }
}

impl<'s> Place<'s> {
    fn find(reach: &mut Reach, spot: &'s Spot, ours: Option<&Seen>) -> Result<Self, IoError> {
        let named = open(reach.spot(spot))?;
        let what = match &named {
            Some(named) if named.at().stat()?.is_none() => OffPath::Nothing,
            None => OffPath::Nothing,
            Some(named) if holds(Some(named), ours)? => OffPath::Ours,
            Some(_) => OffPath::Other,
        };
        Ok(Self { spot, named, what })
    }
}

impl AtPath {
    fn at(named: &Named<'_>, from: Option<&Seen>, to: Option<&Seen>) -> Result<Self, IoError> {
        if named.at().stat()?.is_none() {
            return Ok(Self::Nothing);
        }
        if holds(Some(named), from)? {
            return Ok(Self::From);
        }
        Ok(match ownership(named, to)? {
            Ownership::Ours => Self::To,
            Ownership::Changed(how) => Self::Changed(how),
            Ownership::Foreign => Self::Other,
        })
    }
}

/// True if two names are of one object that is no directory.
pub fn is_one_file(one: &Named<'_>, other: &Named<'_>) -> Result<bool, IoError> {
    let (one, other) = (one.at().stat()?, other.at().stat()?);
    Ok(matches!((one, other), (Some(one), Some(other)) if one.sort != Sort::Directory && one.inode() == other.inode()))
}

/// True if that object lies there.
pub fn holds(named: Option<&Named<'_>>, object: Option<&Seen>) -> Result<bool, IoError> {
    let (Some(named), Some(object)) = (named, object) else { return Ok(false) };
    let stat = named.at().stat()?;
    let is_it = |stat: &Stat| object.print.identity.is(observe::identity(stat)) && stat.sort == object.state.sort();
    let Some(stat) = stat.filter(is_it) else { return Ok(false) };
    // An inode number may have been reused if it has no birth time, and proves nothing on a portable road: the content must agree too.
    let by_content = object.is_told_by_content();
    match (object.print.identity.btime.filter(|_| !by_content), &object.state.what) {
        (None, What::File { hash: Some(hash), size, .. }) => Ok(stat.size == *size && observe::hash(named.at())?.0 == *hash),
        (None, What::File { size, .. }) if by_content => Ok(stat.size == *size && stat.mtime == object.state.meta.mtime),
        (None, what) if by_content && !object.state.is_dir() => {
            Ok(observe::object(named.at())?.is_some_and(|found| found.state.what == *what))
        }
        _ => Ok(true),
    }
}

pub enum Ownership {
    Ours,
    Changed(String),
    Foreign,
}

/// Tells whether the object at the target is what was put there, untouched. Reads its content: nothing else shows a write that kept size
/// and time, and recovery does not know the ctime right after it was put.
pub fn ownership(target: &Named<'_>, ours: Option<&Seen>) -> Result<Ownership, IoError> {
    let Some(ours) = ours else { return Ok(Ownership::Foreign) };
    if !holds(Some(target), Some(ours))? {
        return Ok(Ownership::Foreign);
    }
    let Some(found) = observe::object(target.at())? else { return Ok(Ownership::Foreign) };
    let changed = || Ok(Ownership::Changed("another process changed what was put there".into()));
    let (meta, now) = (&ours.state.meta, &found.state.meta);
    if ours.state.is_dir() {
        let dir = target.at().open_dir()?;
        if !dir.is_empty()? {
            return Ok(Ownership::Changed("another process put something into the directory".into()));
        }
        return if now.xattrs == meta.xattrs { Ok(Ownership::Ours) } else { changed() };
    }
    if found.state.size() != ours.state.size() || now.mtime != meta.mtime || ours.state.meta_difference(&found.state).is_some() {
        return changed();
    }
    let Some(hash) = ours.state.hash() else { return Ok(Ownership::Ours) };
    match observe::hash(target.at()) {
        Ok((found, _)) if found == hash => Ok(Ownership::Ours),
        // An unreadable file cannot be asked.
        Err(error) if error.errno() == Some(libc::EACCES) => Ok(Ownership::Ours),
        // Nothing tells whether it is untouched, so nothing is decided.
        Err(error) if error.errno().is_some() => Err(error),
        // It changes while it is read, or has just become something else.
        Ok(_) | Err(_) => changed(),
    }
}
