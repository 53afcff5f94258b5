//! The snapshots of turns: taken in a process of its own, for which an agent waits, but not longer than it may.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::agent::{Head, Line, Look, Turn, Turns, When, Wrote, mark};
use crate::error::{Error, Kind};
use crate::fs::{AbsPath, absolute};
use crate::session::{Store, run_in_place};
use crate::snapshot::{
    Cover, Earlier, Locked, OF_TURN, Rules, Series, SnapshotRequest, SnapshotResult, Source, Vcs, choose_directory, create_seen,
    differences, prune_snapshots, whole,
};
use crate::tree::State;
use crate::verb::desk::Desk;
use crate::verb::error;

/// A process that takes a snapshot. Its standard output is a pipe, which ends with it.
pub struct Taking(pub Child);

impl Taking {
    /// Waits for its end, or as long as that. True if it has ended.
    pub fn wait(mut self, longest: Duration) -> bool {
        let until = Instant::now() + longest;
        // It says nothing: its pipe ends with it.
        let Some(pipe) = self.0.stdout.take() else { return true };
        loop {
            let rest = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
            match rustix::event::poll(&mut [PollFd::new(&pipe, PollFlags::IN)], rest.as_ref()) {
                Ok(0) => return false,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        // What ended it does not matter: the turn tells what became of it.
        drop(self.0.wait());
        true
    }
}

/// Waits for the snapshot before a turn, which another hook has taken. True if there is none to wait for any more.
///
/// # Errors
/// The turn cannot be read.
pub fn is_taken(turns: &Turns, n: u64, longest: Duration) -> Result<bool, Error> {
    let until = Instant::now() + longest;
    while Instant::now() < until {
        if turns.turn(n)?.is_none_or(|turn| turn.before.is_some() || turn.failed.is_some()) {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

/// The turns of a directory and its snapshots, while one is taken.
pub struct Taken<'a> {
    pub desk: &'a Desk,
    pub store: &'a Store,
    pub turns: &'a Turns,
    pub series: &'a Series,
    pub lock: &'a Locked,
}

/// Takes a snapshot of a directory for turn `n`, and notes in it why it could not be taken.
///
/// # Errors
/// It cannot be taken.
pub fn take(desk: &Desk, when: When, directory: &AbsPath, n: u64) -> Result<(), Error> {
    let store = desk.made_store()?;
    let turns = Turns::create(&desk.fs, &store, directory)?;
    let series = Series::create(&desk.fs, &store, directory);
    let done = series.and_then(|series| {
        let lock = lock(desk, &series)?;
        Taken { desk, store: &store, turns: &turns, series: &series, lock: &lock }.take(when, n)
    });
    if let Err(problem) = &done
        && when != When::Ready
    {
        turns.add(&desk.fs, n, &[Line::Failed { why: problem.message().to_owned() }])?;
    }
    done
}

impl Taken<'_> {
    fn take(&self, when: When, n: u64) -> Result<(), Error> {
        if when == When::Ready {
            return self.snapshot(rules(self.desk), None).map(drop);
        }
        let Some(turn) = self.turns.turn(n)? else { return Ok(()) };
        match when {
            When::Before => self.before(&turn),
            When::Ready | When::After => settle(self, &turn),
        }
    }

    fn before(&self, turn: &Turn) -> Result<(), Error> {
        let (fs, n) = (&self.desk.fs, turn.head.n);
        // Its agent may not have told its end: what it did is what is there now.
        let earlier = earlier(self.turns, &turn.head)?;
        if let Some(unended) = earlier.as_ref().filter(|earlier| !earlier.is_settled) {
            settle(self, unended)?;
        }
        let rules = self.going_on(earlier.as_ref())?;
        let (made, look) = self.snapshot(rules, Some((When::Before, &turn.head)))?;
        self.turns.keep_look(fs, n, &look)?;
        self.turns.add(fs, n, &[Line::Before { snapshot: made.n, time: made.time }])?;
        // What the session does from now on is told of this turn.
        earlier.map_or(Ok(()), |earlier| self.turns.drop_look(fs, earlier.head.n))?;
        self.retain()
    }

    /// Takes a snapshot, and looks at the same time.
    fn snapshot(&self, rules: Source, of: Option<(When, &Head)>) -> Result<(SnapshotResult, Look), Error> {
        choose_directory::check(&self.series.directory, &self.store.path, home().as_ref())?;
        let mut meta = vec![(OF_TURN, of.map_or(When::Ready, |(when, _)| when).word().to_owned())];
        if let Some((_, head)) = of {
            let (agent, session) = (head.agent.word().to_owned(), head.session.clone());
            meta.extend([("agent", agent), ("session", session), ("turn", head.n.to_string())]);
            meta.extend(head.model.clone().map(|model| ("model", model)));
        }
        let asked = SnapshotRequest {
            message: Some(error::snapshot_message(of)),
            meta: meta.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            if_changed: true,
            tells_moves: true,
            rules,
            ..SnapshotRequest::default()
        };
        let mut look = Look::default();
        let made = create_seen(&self.desk.fs, &self.store.path, self.series, self.lock, &asked, &mut |met| look.see(met))?;
        Ok((made, look))
    }

    /// The rules of a session that goes on: what its turns did to files of rules counts from the agent's next session on.
    fn going_on(&self, earlier: Option<&Turn>) -> Result<Source, Error> {
        match earlier.and_then(|turn| Some((turn.before?.0, turn.ended.unwrap_or(turn.last)))) {
            Some((n, until)) if self.series.is_there(n)? => {
                Ok(Source::GoingOn(cover(self.desk), Earlier::new(self.series, n, until)?))
            }
            // Without its snapshot, which may be pruned, nothing tells what was so before.
            Some(_) | None => Ok(rules(self.desk)),
        }
    }

    /// Removes the oldest turns beyond the number and the bytes of the settings, with the snapshots that only they need.
    fn retain(&self) -> Result<(), Error> {
        let config = &self.desk.config;
        let (keep, max_size) = (config.agent_keep.value.max(1), config.snapshot_max_size.value);
        let numbers: Vec<u64> = self.turns.numbers()?.into_iter().collect();
        let mut go = numbers.len().saturating_sub(keep);
        loop {
            if go > 0 {
                self.drop_turns(&numbers[..go])?;
            }
            // A quarter at a time, so that not each turn has to.
            let more = (go + numbers.len().div_ceil(4)).min(numbers.len().saturating_sub(1));
            if more <= go || prune_snapshots::bytes_used(&self.series.dir)? <= max_size {
                return Ok(());
            }
            go = more;
        }
    }

    fn drop_turns(&self, gone: &[u64]) -> Result<(), Error> {
        let Self { turns, series, .. } = self;
        let oldest = turns.numbers()?.into_iter().find(|n| !gone.contains(n));
        // The snapshots of later turns have higher numbers.
        let from = oldest.map(|n| turns.turn(n)).transpose()?.flatten().and_then(|turn| turn.before);
        let from = from.map_or(u64::MAX, |(n, _)| n);
        let (numbers, needed) = (series.numbers()?, run_in_place::needed(self.store, &series.directory)?);
        let is_theirs = |n: &u64| {
            *n < from
                && Some(n) != numbers.last()
                && !needed.contains(n)
                && series.summary(*n).is_ok_and(|summary| summary.head.is_of_turn() && summary.head.label.is_none())
        };
        let snapshots: Vec<u64> = numbers.iter().copied().filter(is_theirs).collect();
        if !snapshots.is_empty() {
            prune_snapshots::prune(&self.desk.fs, series, self.lock, &snapshots)?;
        }
        turns.remove(&self.desk.fs, gone)
    }
}

/// Takes the snapshot that shows what a turn has done so far, and notes what has changed since its last tool, and the paths.
///
/// # Errors
/// It cannot be taken; a turn cannot be read or written.
pub fn settle(of: &Taken<'_>, turn: &Turn) -> Result<(), Error> {
    let Some((before, _)) = turn.before else { return Ok(()) };
    let rules = Source::of(of.series, before)?;
    let mut seen = None;
    let look = |_: Option<&Look>| {
        let (made, look) = of.snapshot(rules.clone(), Some((When::After, &turn.head)))?;
        seen = Some((made, look.clone()));
        Ok(look)
    };
    of.turns.look(&of.desk.fs, turn.head.n, look, Vec::new())?;
    let (made, look) = match seen {
        Some(seen) => seen,
        // Another turn of the session has begun.
        None => of.snapshot(rules, Some((When::After, &turn.head)))?,
    };
    note(of, turn.head.n, (before, made.n), &look)
}

/// Notes what a turn has done between two snapshots; `look` was taken with the second one.
fn note(of: &Taken<'_>, n: u64, (before, after): (u64, u64), look: &Look) -> Result<(), Error> {
    let Some(turn) = of.turns.turn(n)? else { return Ok(()) };
    let mut lines = vec![Line::After { snapshot: after, time: crate::fs::now() }];
    let mut listed = HashSet::new();
    if before != after {
        let compared = differences::between(of.series, before, Some(after), &[], false)?;
        for difference in &compared.differences {
            let (was, is) = (difference.then.as_ref(), difference.now.as_ref());
            let directory = is.or(was).is_some_and(State::is_dir);
            lines.push(Line::Wrote(Wrote { path: difference.path.clone(), directory, was: mark(was), is: mark(is) }));
            listed.insert(difference.path.clone());
        }
        let is_its = |path: &AbsPath| turn.own_changes().any(|change| change.path.is_under(path));
        let left = compared.left.into_iter().filter(|(path, _)| is_its(path));
        lines.extend(left.map(|(path, why)| Line::Left { path, why }));
    }
    // What a tool named deep in something that is not covered.
    let named: BTreeMap<&AbsPath, bool> = turn.named().filter(|(path, _)| !listed.contains(*path)).collect();
    for (path, was_there) in named {
        if let Some((at, out)) = look.out_at(path).filter(|(at, _)| *at != path)
            && is_changed(of.series, &turn, path, was_there)
        {
            let why = error::not_covered_in(&whole(&of.series.directory, at)?, out.why.text());
            lines.push(Line::Left { path: path.clone(), why });
        }
    }
    of.turns.add(&of.desk.fs, n, &lines)
}

/// Looks at a directory as the snapshot before a turn did.
///
/// # Errors
/// The directory or the snapshot cannot be read.
pub fn look(desk: &Desk, store: &Store, directory: &AbsPath, turn: Option<&Turn>, earlier: Option<&Look>) -> Result<Look, Error> {
    let series = Series::open(store, directory)?;
    let kept = series.zip(turn.and_then(|turn| turn.before)).map(|(series, (n, _))| Source::of(&series, n));
    Look::at(directory, &store.path, &kept.transpose()?.unwrap_or_else(|| rules(desk)), earlier)
}

/// True if a path has changed since a turn began, or is gone and was there.
fn is_changed(series: &Series, turn: &Turn, path: &AbsPath, was_there: bool) -> bool {
    let found = whole(&series.directory, path).ok().and_then(|path| path.as_path().symlink_metadata().ok());
    let is_late =
        |found: std::fs::Metadata| (found.ctime(), found.ctime_nsec()) > (turn.head.time.s, i64::from(turn.head.time.ns));
    found.map_or(was_there, is_late)
}

/// A first snapshot may take longer than anybody waits for a lock.
fn lock(desk: &Desk, series: &Series) -> Result<Locked, Error> {
    for _ in 0..60 {
        match series.lock(&desk.fs) {
            Err(error) if error.kind() == Kind::Busy => {}
            lock => return lock,
        }
    }
    series.lock(&desk.fs)
}

/// The rules of what the snapshots of turns leave out.
pub fn rules(desk: &Desk) -> Source {
    Source::Found(cover(desk))
}

fn cover(desk: &Desk) -> Rules {
    let cover = Cover { byproducts: desk.config.agent_byproducts.value.clone(), ..Cover::default() };
    Rules { cover: Some(cover), vcs: Vcs::Left, ..Rules::default() }
}

/// The home directory, without links.
pub fn home() -> Option<AbsPath> {
    absolute(&dirs::home_dir()?).ok()
}

/// The most turns that are looked at for one that its agent did not end.
const EARLIER: usize = 20;

/// The turn before in the same session. Its agent may not have told its end: the person interrupted it, or the model failed.
fn earlier(turns: &Turns, head: &Head) -> Result<Option<Turn>, Error> {
    for n in turns.numbers()?.range(..head.n).rev().take(EARLIER) {
        let Some(turn) = turns.turn(*n)? else { continue };
        if (turn.head.agent, &turn.head.session) == (head.agent, &head.session) {
            return Ok(Some(turn));
        }
    }
    Ok(None)
}
