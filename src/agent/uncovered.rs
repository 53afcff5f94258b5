//! Names what became of things that the snapshots do not cover, as it cannot be taken back. Each is one thing, whatever is in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::project_walk::{Change, Look, Out};
use super::repository::Part;
use super::turn::{Turn, Wrote};
use crate::fs::AbsPath;
use crate::tree::Head;

/// A thing that is not covered, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// Its path, with the directory as `/`.
    pub path: AbsPath,
    pub became: Became,
    /// The thing as it was, or as it is if it is new.
    pub out: Out,
}

/// The deed by which a thing became another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Became {
    /// It is gone, or moved out of the directory.
    Deleted,
    /// It has other content, or something else is in its place.
    Overwritten,
    Moved(AbsPath),
    Made,
    /// These names came to a directory, and these went.
    Entries {
        made: Vec<String>,
        gone: Vec<String>,
    },
    /// Names came to a directory, or went; they are too many to be known.
    Names,
    /// HEAD is elsewhere, or gone.
    Head {
        from: Head,
        to: Option<Head>,
    },
    /// Its mode or owner is another.
    Metadata,
    /// A part of a repository came, went or is another one.
    Part {
        from: Option<Part>,
        to: Option<Part>,
    },
}

impl Became {
    /// True if something that was there is there no more.
    pub fn is_loss(&self) -> bool {
        match self {
            Self::Deleted | Self::Overwritten | Self::Moved(_) | Self::Names => true,
            Self::Entries { gone, .. } => !gone.is_empty(),
            Self::Head { to, .. } => to.is_none(),
            // The reflog goes with a ref.
            Self::Part { from, to } => to.is_none() && from.as_ref().is_some_and(|from| from.commit.is_some()),
            Self::Made | Self::Metadata => false,
        }
    }
}

/// All that turns did to a path.
struct Net<'a> {
    had: Option<u64>,
    was: Option<&'a Out>,
    last: &'a Change,
}

/// Finds what these turns, the oldest first, did to what is not covered. What is as before by `now`, or was dealt with since,
/// is left out.
pub fn fates(turns: &[&Turn], now: Option<&Look>) -> Vec<Fate> {
    let mut nets: BTreeMap<&AbsPath, Net<'_>> = BTreeMap::new();
    let mut places: HashMap<u64, &AbsPath> = HashMap::new();
    for change in turns.iter().flat_map(|turn| turn.own_changes()) {
        let net = nets.entry(&change.path).or_insert(Net { had: change.had, was: change.was.as_ref(), last: change });
        net.last = change;
        places.extend(change.id.map(|id| (id, &change.path)));
    }
    let is_so = |net: &Net<'_>| match now.map(|now| now.spot(&net.last.path)) {
        None => true,
        // What a later turn covers, this look may not.
        Some((id, out)) => id == net.last.id && out.zip(net.last.is.as_ref()).is_none_or(|(now, then)| now.is_still(then)),
    };
    let mut fates: Vec<Fate> = nets.values().filter(|net| is_so(net)).filter_map(|net| fate(net, &nets, &places)).collect();
    // What was moved is named where it was.
    let to = |fate: &Fate| if let Became::Moved(to) = &fate.became { Some(to.clone()) } else { None };
    let moved: BTreeSet<AbsPath> = fates.iter().filter_map(to).collect();
    fates.retain(|fate| fate.became != Became::Made || !moved.contains(&fate.path));
    without_parts_of_others(fates)
}

/// Leaves out parts of what came, went or was moved as a whole, and what the command for HEAD takes back with it.
fn without_parts_of_others(fates: Vec<Fate>) -> Vec<Fate> {
    let is_one = |fate: &&Fate| fate.out.part.is_none();
    let (mut wholes, mut heads) = (Vec::new(), Vec::new());
    for Fate { path, became, .. } in fates.iter().filter(is_one) {
        match became {
            Became::Head { from, to } => {
                heads.push((path.clone(), from.name.clone().filter(|_| to.as_ref().is_some_and(|to| to.name == from.name))))
            }
            Became::Moved(to) => wholes.extend([path.clone(), to.clone()]),
            Became::Deleted | Became::Overwritten | Became::Made => wholes.push(path.clone()),
            Became::Entries { .. } | Became::Names | Became::Metadata | Became::Part { .. } => {}
        }
    }
    let is_told = |path: &AbsPath, part: &Part| {
        wholes.iter().any(|whole| path.is_under(whole))
            || heads.iter().any(|(git, name)| path.is_under(git) && (part.name == "index" || name.as_ref() == Some(&part.name)))
    };
    fates.into_iter().filter(|fate| fate.out.part.as_ref().is_none_or(|part| !is_told(&fate.path, part))).collect()
}

/// The paths that a turn wrote, and that go back with it: not what it moved there from what is not covered, which is named where it was.
pub fn own(turn: &Turn) -> impl Iterator<Item = &Wrote> {
    let to = |fate: Fate| if let Became::Moved(to) = fate.became { Some(to) } else { None };
    let moved: Vec<AbsPath> = fates(&[turn], None).into_iter().filter_map(to).collect();
    turn.own().filter(move |wrote| !moved.iter().any(|to| wrote.path.is_under(to)))
}

fn fate(net: &Net<'_>, nets: &BTreeMap<&AbsPath, Net<'_>>, places: &HashMap<u64, &AbsPath>) -> Option<Fate> {
    let Change { path, id, is, .. } = net.last;
    let is_same = net.had == *id;
    let part = |out: Option<&Out>| out.and_then(|out| out.part.clone());
    let (from, to) = (part(net.was), part(is.as_ref()));
    if let Some(out) = is.as_ref().or(net.was).filter(|out| out.part.is_some()) {
        return (from != to).then(|| Fate { path: path.clone(), became: Became::Part { from, to }, out: out.clone() });
    }
    let (became, out) = match (net.was, is) {
        (None, None) => return None,
        (None, Some(is)) => (Became::Made, is),
        (Some(was), Some(is)) if is_same => (changed(was, is)?, was),
        (Some(was), _) => {
            let place = net.had.and_then(|had| places.get(&had)).filter(|place| **place != path);
            // Another name of it, which was there before, is no new place.
            let is_new = |there: &Net<'_>| there.last.id == net.had && there.had != net.had;
            let is_there = |place: &&&AbsPath| nets.get(**place).is_some_and(is_new);
            let became = match place.filter(is_there) {
                Some(place) => Became::Moved((*place).clone()),
                None if id.is_none() => Became::Deleted,
                None => Became::Overwritten,
            };
            (became, was)
        }
    };
    Some(Fate { path: path.clone(), became, out: out.clone() })
}

/// Finds what became of a thing that is still the same object.
fn changed(was: &Out, is: &Out) -> Option<Became> {
    if let Some(from) = was.head.clone().filter(|_| was.head != is.head) {
        return Some(Became::Head { from, to: is.head.clone() });
    }
    if !was.directory {
        return Some(Became::Overwritten);
    }
    let (Some(had), Some(has)) = (&was.names, &is.names) else {
        let other_names = (was.is_full() || is.is_full()) && was.mtime != is.mtime;
        let became = if other_names { Became::Names } else { Became::Metadata };
        return (!was.is_as(is)).then_some(became);
    };
    let but = |all: &[String], other: &[String]| -> Vec<String> {
        all.iter().filter(|name| other.binary_search(name).is_err()).cloned().collect()
    };
    let (made, gone) = (but(has, had), but(had, has));
    Some(if made.is_empty() && gone.is_empty() { Became::Metadata } else { Became::Entries { made, gone } })
}
