//! Takes the snapshots of a turn, in a process of its own: an agent waits for it, but not longer than it may.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::agent::known::Agent;
use crate::agent::look::Look;
use crate::agent::turn::{Head, Line, Turn, Wrote, mark};
use crate::agent::turns::Turns;
use crate::cli::snapshot::needed;
use crate::error::{Error, Kind};
use crate::face::args::{Hook, Take};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::place::{home, own_program};
use crate::fs::path::AbsPath;
use crate::session::store::Store;
use crate::snapshot::create::{Asked, Made, create_seen};
use crate::snapshot::manifest::OF_TURN;
use crate::snapshot::prune;
use crate::snapshot::rule_source::{Earlier, Source};
use crate::snapshot::rules::{Cover, Rules, Vcs};
use crate::snapshot::series::{Locked, Series};
use crate::snapshot::{compare, place, whole};
use crate::tree::state::State;

/// A process that takes a snapshot.
pub struct Taking(Child);

impl Taking {
    /// Starts it, apart from the hook's pipes and process group.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(call: &Call, agent: Agent, what: Take, directory: &AbsPath, turn: u64) -> Result<Self, Error> {
        let mut command = Command::new(own_program()?);
        command.arg("--store").arg(call.store_path()?.as_path()).args(["hook", agent.word(), "--take", what.word(), "--turn"]);
        command.arg(turn.to_string()).arg("--dir").arg(directory.as_path());
        use std::os::unix::process::CommandExt;
        command.process_group(0).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Self(command.spawn().context("cannot start recant hook --take")?))
    }

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

pub fn take(call: &Call, args: &Hook) -> Result<Ended, Error> {
    let (Some(what), Some(directory)) = (args.take, &args.dir) else { return Ok(Ended::Done) };
    let directory = crate::face::place::absolute(directory)?;
    let store = call.made_store()?;
    let turns = Turns::create(&call.fs, &store, &directory)?;
    let done = taken(call, &store, &turns, &directory, what, args.turn);
    if let Err(problem) = &done
        && what != Take::Ready
    {
        turns.add(&call.fs, args.turn, &[Line::Failed { why: problem.message().to_owned() }])?;
    }
    done.map(|()| Ended::Done)
}

fn taken(call: &Call, store: &Store, turns: &Turns, directory: &AbsPath, what: Take, n: u64) -> Result<(), Error> {
    let series = Series::create(&call.fs, store, directory)?;
    let lock = lock(call, &series)?;
    if what == Take::Ready {
        snapshot(call, store, &series, &lock, rules(call), None)?;
        return Ok(());
    }
    let Some(turn) = turns.turn(n)? else { return Ok(()) };
    match what {
        Take::Before => {
            // Its agent may not have told its end: what it did is what is there now.
            let earlier = earlier(turns, &turn.head)?;
            if let Some(unended) = earlier.as_ref().filter(|earlier| !earlier.is_settled) {
                settle(call, store, turns, &series, &lock, unended)?;
            }
            let rules = going_on(call, &series, earlier.as_ref())?;
            let (made, look) = snapshot(call, store, &series, &lock, rules, Some(("before", &turn.head)))?;
            turns.keep_look(&call.fs, n, &look)?;
            turns.add(&call.fs, n, &[Line::Before { snapshot: made.n, time: made.time }])?;
            // What the session does from now on is told of this turn.
            earlier.map_or(Ok(()), |earlier| turns.drop_look(&call.fs, earlier.head.n))?;
            retain(call, turns, &series, &lock)
        }
        Take::Ready | Take::After => settle(call, store, turns, &series, &lock, &turn),
    }
}

/// Takes the snapshot that shows what a turn has done so far, and notes what has changed since its last tool, and the paths.
pub fn settle(call: &Call, store: &Store, turns: &Turns, series: &Series, lock: &Locked, turn: &Turn) -> Result<(), Error> {
    let Some((before, _)) = turn.before else { return Ok(()) };
    let rules = Source::of(series, before)?;
    let mut seen = None;
    let look = |_: Option<&Look>| {
        let (made, look) = snapshot(call, store, series, lock, rules.clone(), Some(("after", &turn.head)))?;
        seen = Some((made, look.clone()));
        Ok(look)
    };
    turns.look(&call.fs, turn.head.n, look, Vec::new())?;
    let (made, look) = match seen {
        Some(seen) => seen,
        // Another turn of the session has begun.
        None => snapshot(call, store, series, lock, rules, Some(("after", &turn.head)))?,
    };
    note(call, turns, series, turn.head.n, (before, made.n), &look)
}

/// Notes what a turn has done between two snapshots; `look` was taken with the second one.
fn note(call: &Call, turns: &Turns, series: &Series, n: u64, of: (u64, u64), look: &Look) -> Result<(), Error> {
    let (before, after) = of;
    let Some(turn) = turns.turn(n)? else { return Ok(()) };
    let mut lines = vec![Line::After { snapshot: after, time: crate::fs::now() }];
    let mut listed = HashSet::new();
    if before != after {
        let compared = compare::between(series, before, Some(after), &[], false)?;
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
            && is_changed(series, &turn, path, was_there)
        {
            let why = format!("{} is not covered: {}", whole(&series.directory, at)?, out.why.text());
            lines.push(Line::Left { path: path.clone(), why });
        }
    }
    turns.add(&call.fs, n, &lines)
}

/// Looks at a directory as the snapshot before a turn did.
pub fn look(call: &Call, store: &Store, directory: &AbsPath, turn: Option<&Turn>, earlier: Option<&Look>) -> Result<Look, Error> {
    let series = Series::open(store, directory)?;
    let kept = series.zip(turn.and_then(|turn| turn.before)).map(|(series, (n, _))| Source::of(&series, n));
    Look::at(directory, &store.path, &kept.transpose()?.unwrap_or_else(|| rules(call)), earlier)
}

/// True if a path has changed since a turn began, or is gone and was there.
fn is_changed(series: &Series, turn: &Turn, path: &AbsPath, was_there: bool) -> bool {
    let found = whole(&series.directory, path).ok().and_then(|path| path.as_path().symlink_metadata().ok());
    let is_late =
        |found: std::fs::Metadata| (found.ctime(), found.ctime_nsec()) > (turn.head.time.s, i64::from(turn.head.time.ns));
    found.map_or(was_there, is_late)
}

/// A first snapshot may take longer than anybody waits for a lock.
fn lock(call: &Call, series: &Series) -> Result<Locked, Error> {
    for _ in 0..60 {
        match series.lock(&call.fs) {
            Err(error) if error.kind() == Kind::Busy => {}
            lock => return lock,
        }
    }
    series.lock(&call.fs)
}

/// Takes a snapshot, and looks at the same time.
fn snapshot(
    call: &Call,
    store: &Store,
    series: &Series,
    lock: &Locked,
    rules: Source,
    of: Option<(&str, &Head)>,
) -> Result<(Made, Look), Error> {
    place::check(&series.directory, &store.path, home().as_ref())?;
    let (message, meta) = match of {
        None => ("an agent's session begins".into(), vec![(OF_TURN, "ready".into())]),
        Some((when, head)) => {
            let meta = [(OF_TURN, when), ("agent", head.agent.word()), ("session", &*head.session)];
            let meta = meta.map(|(key, value)| (key, value.to_owned())).into_iter();
            let meta = meta.chain([("turn", head.n.to_string())]).chain(head.model.clone().map(|model| ("model", model)));
            (format!("{when} turn {}: {}", head.n, head.prompt), meta.collect())
        }
    };
    let asked = Asked {
        message: Some(message),
        meta: meta.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        if_changed: true,
        tells_moves: true,
        rules,
        ..Asked::default()
    };
    let mut look = Look::default();
    let made = create_seen(&call.fs, &store.path, series, lock, &asked, &mut |met| look.see(met))?;
    Ok((made, look))
}

/// The rules of what the snapshots of turns leave out.
pub fn rules(call: &Call) -> Source {
    Source::Found(cover(call))
}

fn cover(call: &Call) -> Rules {
    let cover = Cover { byproducts: call.config.agent_byproducts.value.clone(), ..Cover::default() };
    Rules { cover: Some(cover), vcs: Vcs::Left, ..Rules::default() }
}

/// Those of a session that goes on: what its turns did to files of rules counts from the agent's next session on.
fn going_on(call: &Call, series: &Series, earlier: Option<&Turn>) -> Result<Source, Error> {
    match earlier.and_then(|turn| Some((turn.before?.0, turn.ended.unwrap_or(turn.last)))) {
        Some((n, until)) if series.is_there(n)? => Ok(Source::GoingOn(cover(call), Earlier::new(series, n, until)?)),
        // Without its snapshot, which may be pruned, nothing tells what was so before.
        Some(_) | None => Ok(rules(call)),
    }
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

/// Removes the oldest turns beyond the number and the bytes of the settings, with the snapshots that only they need.
fn retain(call: &Call, turns: &Turns, series: &Series, lock: &Locked) -> Result<(), Error> {
    let (keep, max_size) = (call.config.agent_keep.value.max(1), call.config.snapshot_max_size.value);
    let numbers: Vec<u64> = turns.numbers()?.into_iter().collect();
    let mut go = numbers.len().saturating_sub(keep);
    loop {
        if go > 0 {
            drop_turns(call, turns, series, lock, &numbers[..go])?;
        }
        // A quarter at a time, so that not each turn has to.
        let more = (go + numbers.len().div_ceil(4)).min(numbers.len().saturating_sub(1));
        if more <= go || prune::used(&series.dir)? <= max_size {
            return Ok(());
        }
        go = more;
    }
}

fn drop_turns(call: &Call, turns: &Turns, series: &Series, lock: &Locked, gone: &[u64]) -> Result<(), Error> {
    let oldest = turns.numbers()?.into_iter().find(|n| !gone.contains(n));
    // The snapshots of later turns have higher numbers.
    let from = oldest.map(|n| turns.turn(n)).transpose()?.flatten().and_then(|turn| turn.before).map_or(u64::MAX, |(n, _)| n);
    let (numbers, needed) = (series.numbers()?, needed(call, &series.directory)?);
    let is_theirs = |n: &u64| {
        *n < from
            && Some(n) != numbers.last()
            && !needed.contains(n)
            && series.summary(*n).is_ok_and(|summary| summary.head.is_of_turn() && summary.head.label.is_none())
    };
    let snapshots: Vec<u64> = numbers.iter().copied().filter(is_theirs).collect();
    if !snapshots.is_empty() {
        prune::prune(&call.fs, series, lock, &snapshots)?;
    }
    turns.remove(&call.fs, gone)
}
