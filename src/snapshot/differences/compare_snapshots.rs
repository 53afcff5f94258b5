//! Compares two snapshots.

use std::collections::BTreeMap;

use super::difference::{Compared, Difference, Times, VCS_STAYS, difference, root, same};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::snapshot::hard_links::Names;
use crate::snapshot::manifest;
use crate::snapshot::manifest::{Entry, Merged};
use crate::snapshot::series::Series;
use crate::tree::vcs_above;

/// Compares snapshot `n` with snapshot `m` of the same series, or with nothing if the directory is gone. The times are those of all
/// directories that both have. Version control's own counts only `with_vcs`.
pub fn between(series: &Series, n: u64, m: Option<u64>, paths: &[AbsPath], with_vcs: bool) -> Result<Compared, Error> {
    let (rules_then, rules_now) = (manifest::rules(&series.dir, n)?, manifest::rules(&series.dir, m.unwrap_or(n))?);
    let mut then = Merged::open(&series.dir, n)?;
    let mut now = m.map(|m| Merged::open(&series.dir, m)).transpose()?;
    let mut next_now = || now.as_mut().map_or(Ok(None), Merged::next);
    let mut comparing = Comparing {
        paths,
        with_vcs,
        done: Compared { found: vec![false; paths.len()], ..Compared::default() },
        unread: None,
        names_then: Names::default(),
        names_now: Names::default(),
        equal: BTreeMap::new(),
    };
    let (mut a, mut b) = (then.next()?, next_now()?);
    loop {
        let order = match (&a, &b) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.path.cmp(&b.path),
        };
        let there = if order.is_le() { std::mem::replace(&mut a, then.next()?) } else { None };
        let here = if order.is_ge() { std::mem::replace(&mut b, next_now()?) } else { None };
        comparing.pair(there, here);
    }
    let Comparing { mut done, names_then, names_now, equal, .. } = comparing;
    done.regroup(&names_then, &names_now, equal);
    if !rules_then.same_as(&rules_now, with_vcs) {
        done.left.push((root(), "the two snapshots have different exclude rules: some differences may come from that".into()));
    }
    Ok(done)
}

struct Comparing<'a> {
    paths: &'a [AbsPath],
    with_vcs: bool,
    done: Compared,
    /// The path here is unknown on one side, or passed over, with all below it.
    unread: Option<AbsPath>,
    names_then: Names<AbsPath>,
    names_now: Names<AbsPath>,
    /// Paths of grouped files that are unchanged, unless their groups differ.
    equal: BTreeMap<AbsPath, Difference>,
}

impl Comparing<'_> {
    fn pair(&mut self, there: Option<Entry>, here: Option<Entry>) {
        let Some(path) = there.as_ref().or(here.as_ref()).map(|entry| entry.path.clone()) else { return };
        for (found, asked) in self.done.found.iter_mut().zip(self.paths) {
            *found |= path.is_under(asked);
        }
        for (names, entry) in [(&mut self.names_then, &there), (&mut self.names_now, &here)] {
            if let Some(first) = entry.as_ref().and_then(|entry| entry.link.as_ref()) {
                names.add(first.clone(), path.clone());
            }
        }
        if self.unread.as_ref().is_some_and(|unread| path.is_under(unread)) {
            return;
        }
        if !self.with_vcs
            && let Some(top) = vcs_above(&path)
        {
            let asked = self.paths.iter().filter(|asked| asked.is_under(&top));
            self.done.left.extend(asked.map(|asked| (asked.clone(), VCS_STAYS.to_owned())));
            self.unread = Some(top);
            return;
        }
        if let Some(why) = [&there, &here].into_iter().flatten().find_map(|entry| entry.unread.clone()) {
            self.done.left.push((path.clone(), format!("not in both snapshots: {why}")));
            self.unread = Some(path);
            return;
        }
        self.compare(path, there, here);
    }

    fn compare(&mut self, path: AbsPath, there: Option<Entry>, here: Option<Entry>) {
        let is_same = there.as_ref().zip(here.as_ref()).is_some_and(|(a, b)| a.mark() == b.mark() || are_same(a, b));
        if let (true, Some(a), Some(b)) = (is_same, &there, &here)
            && a.is_dir()
            && b.is_dir()
        {
            if let (Some(a), Some(b)) = (&a.state, &b.state) {
                self.done.times.push(Times { path, then: a.meta.mtime, now: b.meta.mtime });
            }
            return;
        }
        let is_grouped = [&there, &here].into_iter().flatten().any(|entry| entry.link.is_some());
        let ino = here.as_ref().and_then(|entry| entry.ino);
        let is_moved = there.as_ref().is_none_or(|entry| entry.ino.is_some_and(|had| Some(had) != ino));
        let older = is_moved && here.as_ref().is_some_and(|entry| entry.older);
        let (now_at, now) = here.map_or((None, None), |entry| (entry.at, entry.state));
        let difference = Difference { now, now_at, ino, older, ..difference(path.clone(), there, None) };
        match is_same {
            true if is_grouped => drop(self.equal.insert(path, difference)),
            true => {}
            false => self.done.differences.push(difference),
        }
    }
}

fn are_same(a: &Entry, b: &Entry) -> bool {
    a.state.as_ref().zip(b.state.as_ref()).is_some_and(|(a, b)| same(a, b))
}
