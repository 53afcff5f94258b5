//! The snapshots of a series between which a path changed. Parses the lines of manifests alone that name it: nothing is checked, as in a
//! listing.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use super::manifest;
use super::manifest::{Entry, Head};
use super::series::Series;
use crate::error::{At, Error};
use crate::fs::{AbsPath, Entry as Name, Time};
use crate::tree::Mention;

/// A snapshot in which a path is another than in the one before.
#[derive(Debug)]
pub struct Touched {
    pub head: Head,
    pub before: u64,
    pub created: u64,
    pub modified: u64,
    pub deleted: u64,
}

/// The paths asked for that a snapshot has, each with a short hash of its state.
type States = BTreeMap<AbsPath, u64>;
/// The states of a manifest's own lines: `None` is one that its base has and it has not.
type Lines = BTreeMap<AbsPath, Option<u64>>;

/// The snapshots that differ from the one before at `path` or below it, the oldest first. `path` has the series' directory as `/`: then the
/// counts of the snapshots tell, and those of directories are left out. A snapshot that cannot be read tells nothing.
///
/// # Errors
/// The snapshots cannot be listed.
pub fn touched(series: &Series, path: &AbsPath) -> Result<Vec<Touched>, Error> {
    let numbers = series.numbers()?;
    let mention = Mention::of(path);
    let (mut bases, mut found) = (HashMap::new(), Vec::new());
    let mut before: Option<(u64, States)> = None;
    for n in numbers {
        if path.depth() == 0 {
            if let (Some((before, _)), Ok(summary)) = (&before, series.summary(n)) {
                let manifest::Counts { added, modified, deleted, .. } = summary.tail.counts;
                found.push(Touched { head: summary.head, before: *before, created: added, modified, deleted });
            }
            before = Some((n, States::new()));
            continue;
        }
        let Ok(states) = states(series, n, &mention, &mut bases) else { continue };
        if let Some((before, then)) = &before
            && *then != states
            && let Ok(summary) = series.summary(n)
        {
            let created = states.keys().filter(|path| !then.contains_key(path)).count() as u64;
            let deleted = then.keys().filter(|path| !states.contains_key(path)).count() as u64;
            let modified = states.iter().filter(|(path, mark)| then.get(path).is_some_and(|then| then != *mark)).count() as u64;
            found.push(Touched { head: summary.head, before: *before, created, modified, deleted });
        }
        before = Some((n, states));
    }
    found.retain(|touched| touched.created + touched.modified + touched.deleted > 0);
    Ok(found)
}

fn states(series: &Series, n: u64, mention: &Mention, bases: &mut HashMap<u64, Lines>) -> Result<States, Error> {
    let name = manifest::name(n);
    let (own, base) = lines(series.dir.at(&name), mention)?;
    let mut states = own.clone();
    if let Some(base) = base {
        let of_base = match bases.entry(base) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(slot) => {
                let (as_snapshot, as_base) = (manifest::name(base), manifest::base_name(base));
                let read = lines(series.dir.at(&as_snapshot), mention).or_else(|_| lines(series.dir.at(&as_base), mention));
                slot.insert(read?.0)
            }
        };
        for (path, state) in of_base.iter() {
            states.entry(path.clone()).or_insert(*state);
        }
    } else {
        bases.insert(n, own);
    }
    Ok(states.into_iter().filter_map(|(path, state)| Some((path, state?))).collect())
}

/// The states at the path and below it by a manifest's own lines, and its base.
fn lines(at: Name<'_>, mention: &Mention) -> Result<(Lines, Option<u64>), Error> {
    let mut bytes = Vec::new();
    at.open_file()?.read_to_end(&mut bytes).at("read", at)?;
    let first = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let base = manifest::head_of(first).and_then(|head| head.base);
    let named = mention.lines(&bytes).filter_map(manifest::named);
    Ok((named.filter(|(path, _)| path.is_under(mention.path())).map(|(path, entry)| (path, entry.map(mark))).collect(), base))
}

/// A short hash of a state. A directory's time is left out: it changes with every name in it.
fn mark(mut entry: Entry) -> u64 {
    if let Some(state) = entry.state.as_mut().filter(|state| state.is_dir()) {
        state.meta.mtime = Time::default();
    }
    entry.mark()
}
