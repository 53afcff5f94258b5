//! Composes what a step changed with what the session held before: the net change of a path keeps the `before` that it had when a step
//! first changed it, and gets the `after` of the last one. A path that is back to its `before` is no change any more.
//!
//! Only the paths of the step are looked up: a session may hold thousands of others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use super::capabilities::may_stay;
use super::facts::Facts;
use super::same_content::same_content;
use super::tree_below::HELD;
use super::upper_reader::{is_equal, with_hash};
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Dir};
use crate::session::{Added, Before, Change, Changes, DirectoryTime, Line, Marks, Place};
use crate::tree::{Likeness, Seen, State, observe};

/// A step's changes, and the number of net changes in the session with them.
#[derive(Debug, Default)]
pub struct Composed {
    pub added: Added,
    pub changes: u64,
}

/// Composes `own`, what a step changed, with the net changes. `held_times` has the directories whose time before is that of a sealed upper.
pub fn compose(facts: &Facts<'_>, own: Changes, held_times: &HashSet<AbsPath>) -> Result<Composed, Error> {
    let mut composing = Composing { facts, net: Vec::new(), gained: 0, lost: 0, above: HashMap::new() };
    let mut own = own;
    facts.net.expect(own.list.len())?;
    for (change, n) in own.list.iter_mut().zip(facts.numbers.from..) {
        (change.n, change.step) = (n, Some(facts.step).filter(|step| *step > 1));
        match facts.net.at(&change.path)? {
            Some(known) => composing.known(change, known)?,
            None if change.from == Some(HELD) => composing.covered(change)?,
            None => composing.gained += 1,
        }
    }
    for time in &own.directory_times {
        composing.time(time, held_times.contains(&time.path))?;
    }
    composing.fit(&own)?;
    let Composing { net, gained, lost, .. } = composing;
    Ok(Composed { added: Added { own, net, left: Vec::new() }, changes: facts.numbers.changes + gained - lost })
}

struct Composing<'a> {
    facts: &'a Facts<'a>,
    net: Vec<Line>,
    /// The number of paths that are a change now and were none.
    gained: u64,
    /// The number of paths that were a change and are none now.
    lost: u64,
    /// Directories above changes, with their net change if they have one.
    above: HashMap<AbsPath, Option<Change>>,
}

impl Composing<'_> {
    /// A path that the session had changed.
    fn known(&mut self, own: &mut Change, known: Change) -> Result<(), Error> {
        own.from = Some(known.step.unwrap_or(1));
        let real = self.real(&known.path, &known.before)?;
        // What somebody has changed since is no sign of what the command did: then only what the records say counts.
        let unchanged = real.as_ref().filter(|real| real.is_as_expected);
        let both = known.before.object.as_ref().zip(own.after.as_ref());
        let replaced = both.is_some_and(|(before, after)| !may_stay(self.facts.route, before, after));
        let same = match both {
            Some((before, after)) if before.sort() == after.sort() && !replaced => match unchanged {
                Some(real) => {
                    let (dir, name) = self.upper(&own.path)?;
                    same_content(before, after, real.dir.at(own.path.name()), dir.at(&name))
                }
                None => !before.is_file() || known.marks.same_content && own.marks.same_content,
            },
            _ => false,
        };
        let is_file = own.after.as_ref().is_some_and(State::is_file);
        let has_links = unchanged.map_or(known.marks.link_broken, Real::has_links);
        let marks = Marks {
            foreign: known.marks.foreign,
            by_clock: known.marks.by_clock,
            link_broken: has_links && !same,
            linked: own.marks.linked,
            replaced,
            same_content: same && is_file,
        };
        let before = known.before.object.as_ref();
        let back = match (before, &own.after) {
            (None, None) => true,
            (Some(before), Some(after)) if after.is_dir() && before.is_dir() => before.meta_difference(after).is_none(),
            (Some(before), Some(after)) => same && is_equal(before, after) && !own.marks.linked,
            _ => false,
        };
        if !back {
            let net = Change { marks, after: own.after.clone(), step: own.step, original: own.original.clone(), ..known };
            self.net.push(Line::Change(Box::new(net)));
            return Ok(());
        }
        self.lost += 1;
        self.net.push(Line::None { n: known.n, path: known.path.clone() });
        if let (Some(before), Some(after)) = (before.filter(|before| before.is_dir()), &own.after) {
            let (before, after) = (before.meta.mtime, after.meta.mtime);
            self.net.push(Line::DirectoryTime(DirectoryTime { path: known.path, before, after }));
        }
        Ok(())
    }

    /// A path that a sealed upper covers though it is no change: what is on the tree was equal to it then.
    fn covered(&mut self, own: &mut Change) -> Result<(), Error> {
        let held = self.holder(&own.path)?;
        own.from = Some(held.as_ref().map_or(1, |(step, _)| *step));
        let real = self.real(&own.path, &Before { object: None, print: None })?;
        let is_as_held = match (&real, &own.before.object, &held) {
            (None, None, _) => true,
            // Its time in the upper tells of names that the session changed.
            (Some(real), Some(was), _) if was.is_dir() && real.seen.state.is_dir() => {
                real.seen.state.meta_difference(was).is_none()
            }
            (Some(real), Some(was), Some((_, upper))) if real.seen.state.sort() == was.sort() => {
                let dir = self.facts.held.open_below(parent(upper)).at("open a sealed upper of", &own.path)?;
                let (now, then) = (real.dir.at(own.path.name()), dir.at(name(upper)));
                same_content(&real.seen.state, was, now, then) && is_equal(&real.seen.state, was)
            }
            _ => false,
        };
        let marks = Marks {
            foreign: !is_as_held,
            same_content: own.marks.same_content && is_as_held,
            link_broken: real.as_ref().is_some_and(Real::has_links) && !own.marks.same_content,
            ..own.marks
        };
        let before = match real.filter(|_| is_as_held) {
            Some(real) => Before { object: Some(real.seen.state), print: Some(real.seen.print) },
            None => Before { print: None, ..own.before.clone() },
        };
        self.gained += 1;
        self.net.push(Line::Change(Box::new(Change { before, marks, from: None, ..own.clone() })));
        Ok(())
    }

    /// The time of a directory that the step did not change otherwise.
    fn time(&mut self, own: &DirectoryTime, is_held: bool) -> Result<(), Error> {
        if let Some(known) = self.facts.net.at(&own.path)?.filter(|known| known.after.is_some()) {
            let mut net = known;
            if let Some(after) = &mut net.after {
                after.meta.mtime = own.after;
            }
            self.net.push(Line::Change(Box::new(net)));
            return Ok(());
        }
        let before = match self.facts.net.time_at(&own.path)? {
            Some(known) => known.before,
            None if is_held => {
                let real = self.real(&own.path, &Before { object: None, print: None })?;
                real.map_or(own.before, |real| real.seen.state.meta.mtime)
            }
            None => return Ok(()),
        };
        self.net.push(Line::DirectoryTime(DirectoryTime { before, ..own.clone() }));
        Ok(())
    }

    /// Makes the `before`s fit each other: somebody may have made a directory, with something in it that the step changed, where an earlier
    /// step made one. That directory is a conflict then.
    fn fit(&mut self, own: &Changes) -> Result<(), Error> {
        let was_there = own.list.iter().filter(|change| change.from.is_none() && change.before.object.is_some());
        let mut wrong: BTreeMap<AbsPath, Change> = BTreeMap::new();
        for change in was_there {
            for path in change.path.ancestors() {
                if self.above.contains_key(&path) {
                    break;
                }
                let known = self.facts.net.at(&path)?;
                if let Some(known) = &known
                    && !known.before.object.as_ref().is_some_and(State::is_dir)
                {
                    wrong.insert(path.clone(), known.clone());
                }
                self.above.insert(path, known);
            }
        }
        for (path, known) in wrong {
            let mut net = match self.net.iter().rev().find(|line| line.path() == Some(&path)) {
                Some(Line::Change(change)) => (**change).clone(),
                // It is no change any more.
                Some(_) => continue,
                None => known,
            };
            if let Some(real) = self.real(&path, &Before { object: None, print: None })? {
                net.before = Before { object: Some(real.seen.state), print: Some(real.seen.print) };
            }
            (net.marks.foreign, net.marks.by_clock) = (true, false);
            self.net.push(Line::Change(Box::new(net)));
        }
        Ok(())
    }

    /// The step whose sealed upper shows at a path, and the path there, below `held`.
    fn holder(&self, path: &AbsPath) -> Result<Option<(u32, Vec<u8>)>, Error> {
        let Some(place) = Place::innermost(self.facts.places, path) else { return Ok(None) };
        let below = path.below(&place.path).unwrap_or_default();
        for step in self.facts.sealed.steps() {
            let Some(upper) = place.upper(step, below) else { continue };
            match self.facts.held.open_below(parent(&upper)) {
                Ok(dir) if dir.at(name(&upper)).stat()?.is_some() => return Ok(Some((step, upper))),
                Ok(_) => {}
                Err(error) if error.leads_nowhere() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// The directory of a path in the step's upper, and its name there.
    fn upper(&self, path: &AbsPath) -> Result<(Dir, Vec<u8>), Error> {
        let place = Place::innermost(self.facts.places, path);
        let upper = place.and_then(|place| place.upper(self.facts.step, path.below(&place.path)?));
        let upper = upper.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)).at("find the upper of", path)?;
        let dir = self.facts.held.open_below(parent(&upper)).at("open the upper of", path)?;
        Ok((dir, name(&upper).to_vec()))
    }

    /// The object that the tree holds now. One that cannot be looked at is none.
    fn real(&self, path: &AbsPath, expected: &Before) -> Result<Option<Real>, Error> {
        let none_there = |error: &IoError| error.leads_nowhere() || error.kind() == io::ErrorKind::PermissionDenied;
        let root = Dir::open("/".as_ref())?;
        let (parent, name) = path.split().unwrap_or((b"/", b"."));
        let dir = match root.open_across(&parent[1..]) {
            Err(error) if none_there(&error) => return Ok(None),
            dir => dir?,
        };
        let (seen, likeness) = match observe::compare(dir.at(name), &expected.object, expected.print.as_ref()) {
            Err(error) if none_there(&error) => return Ok(None),
            compared => compared?,
        };
        let Some(seen) = seen else { return Ok(None) };
        let is_as_expected = likeness == Likeness::Same;
        Ok(Some(Real { seen: with_hash(seen, dir.at(name))?, dir, is_as_expected }))
    }
}

/// An object of the tree.
struct Real {
    dir: Dir,
    seen: Seen,
    /// True if it is the one that the session knows from before it changed it.
    is_as_expected: bool,
}

impl Real {
    fn has_links(&self) -> bool {
        self.seen.nlink > 1 && self.seen.state.is_file()
    }
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(b"", |cut| &path[..cut])
}

fn name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(path, |cut| &path[cut + 1..])
}
