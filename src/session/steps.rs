//! Steps: what each command of a session changed, in the order in which they ended. `steps.jsonl` has a record for each, followed by its
//! lines. It is appended to alone: the header counts the bytes, so that what a killed recant left behind them is nothing.
//!
//! A step's own list says what it changed against the step that it stands on. The net changes at a step are the last line for each path
//! along its chain. So a line of the list stands for both, but where an earlier step had changed the path: there a `net` line follows.
//!
//! A session in which one command ran has no such file: its step 1 is told by `run.json` and `changes.jsonl`.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use serde::{Deserialize, Serialize};

use super::act::Acted;
use super::by::By;
use super::change::{Change, Changes, DirectoryTime, Line, Sort};
use super::error::{damaged, not_now};
use super::header::{Header, Origin, Steps};
use super::id::Id;
use super::lines::Last;
use super::net::Net;
use super::opened::{Locked, Session, open_own, part};
use super::run::{Arg, Ending, Failed, Run, start_of};
use crate::error::{At, Error, command};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry, Time};
use crate::fs::path::AbsPath;
use crate::tree::time;

/// The name of the file, in the session's directory.
pub(super) const FILE: &[u8] = b"steps.jsonl";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1 on; never used again.
    pub n: u32,
    /// The step that it stands on; 0 is the tree as it was.
    pub on: u32,
    pub argv: Vec<Arg>,
    pub cwd: AbsPath,
    pub uid: u32,
    /// The agent that had it run; missing for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    #[serde(with = "time")]
    pub started: Time,
    /// The time that it took, in ns; missing if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<u64>,
    /// The end of the command; missing if recant was killed before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// True if the machine went down before it was durable: content may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsynced: bool,
    /// True if nothing was run: a person chose what the session holds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
    /// The number of paths that left the session at it: a command that runs over it sees the tree there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left: u64,
    /// The part that has them: then no step before it has them any more, whatever the session stands at. Missing if they were discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parted: Option<Id>,
    /// The number of changes of each sort.
    pub sorts: BTreeMap<Sort, u64>,
    /// Bytes of content that its upper holds.
    #[serde(default)]
    pub held: u64,
    /// The bytes of its lines, which follow.
    pub bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Step {
    /// The number of paths that it changed.
    pub fn changes(&self) -> u64 {
        self.sorts.values().sum()
    }

    pub fn count(list: &[Change]) -> BTreeMap<Sort, u64> {
        let mut sorts = BTreeMap::new();
        list.iter().for_each(|change| *sorts.entry(change.sort()).or_insert(0) += 1);
        sorts
    }

    /// The record of a step that is to be added, which gets its number then. `held`: bytes of content in its upper.
    pub fn of(run: &Run, on: u32, own: &Changes, held: u64) -> Self {
        Self {
            n: 0,
            on,
            argv: run.argv.clone(),
            cwd: run.cwd.clone(),
            uid: run.uid,
            by: run.by.clone(),
            started: run.started,
            took: run.took,
            ending: run.ending,
            unsynced: false,
            chosen: false,
            left: 0,
            parted: None,
            sorts: Self::count(&own.list),
            held,
            bytes: 0,
        }
    }

    /// The record of the only step of a session, as its run and changes tell it.
    pub fn first(run: &Run, header: &Header, changes: &Changes) -> Self {
        Self { n: 1, unsynced: header.unsynced, ..Self::of(run, 0, changes, header.sizes.held) }
    }
}

/// A line of `steps.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepLine {
    /// The record of a step, before its lines.
    Step(Box<Step>),
    /// A change against the step below.
    Change(Box<Change>),
    /// The time of a directory that is no change of the step.
    #[serde(rename = "folder_time")]
    DirectoryTime(DirectoryTime),
    /// The net line of a path, in place of the step's own.
    Net(Line),
    /// A path that left the session.
    Left(AbsPath),
    /// In place of a record: the part of this step was rolled back, so that what left is out for this step and those on it alone.
    Joined(u32),
}

/// The changes that a step adds to a session.
#[derive(Debug, Default)]
pub struct Added {
    /// Its changes against the step that it stands on, in path order.
    pub own: Changes,
    /// The net lines of the paths that an earlier step had changed. For all others the own ones count.
    pub net: Vec<Line>,
    /// The paths that leave the session, in path order.
    pub left: Vec<AbsPath>,
}

impl Added {
    /// The lines of the step in `steps.jsonl`.
    fn lines(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for change in &self.own.list {
            crate::tree::json::append_line(&mut bytes, &LineRef::Change(change));
        }
        for time in &self.own.directory_times {
            crate::tree::json::append_line(&mut bytes, &LineRef::DirectoryTime(time));
        }
        for line in &self.net {
            crate::tree::json::append_line(&mut bytes, &LineRef::Net(line));
        }
        for path in &self.left {
            crate::tree::json::append_line(&mut bytes, &LineRef::Left(path));
        }
        bytes
    }

    /// The record and the lines of the step. Sets the record's length.
    pub fn text(&self, step: &mut Step) -> Vec<u8> {
        let lines = self.lines();
        (step.bytes, step.left) = (lines.len() as u64, self.left.len() as u64);
        let mut bytes = crate::tree::json::line(&LineRef::Step(step));
        bytes.extend_from_slice(&lines);
        bytes
    }

    /// The lines that make the net changes of the session those at this step, in place of those below it.
    pub fn net_lines(&self) -> Vec<Line> {
        let of_net: HashSet<&AbsPath> = self.net.iter().filter_map(Line::path).collect();
        let own = self.own.list.iter().filter(|change| change.from.is_none() && !of_net.contains(&change.path));
        let times = self.own.directory_times.iter().filter(|time| !of_net.contains(&time.path));
        let own = own.map(|change| Line::Change(Box::new(change.clone())));
        own.chain(times.map(|time| Line::DirectoryTime(time.clone()))).chain(self.net.iter().cloned()).collect()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRef<'a> {
    Step(&'a Step),
    Change(&'a Change),
    #[serde(rename = "folder_time")]
    DirectoryTime(&'a DirectoryTime),
    Net(&'a Line),
    Left(&'a AbsPath),
    Joined(u32),
}

/// Paths that left a session, each with the newest step at which it did: the steps before that show the tree there.
#[derive(Debug, Default)]
pub struct Left(BTreeMap<AbsPath, u32>);

impl Left {
    /// Of steps, the oldest first.
    pub fn of<'s>(steps: impl Iterator<Item = &'s (u32, Vec<AbsPath>)>) -> Self {
        Self(steps.flat_map(|(n, paths)| paths.iter().map(|path| (path.clone(), *n))).collect())
    }

    /// The newest of the steps; 0 if there is none.
    pub fn newest(&self) -> u32 {
        self.0.values().copied().max().unwrap_or(0)
    }

    /// True if a path left at a later step than `n`.
    pub fn has(&self, n: u32, path: &AbsPath) -> bool {
        self.0.get(path).is_some_and(|left| *left > n)
    }

    /// True if one of them is `path` or lies below it.
    pub fn is_under(&self, path: &AbsPath) -> bool {
        self.0.range(path..).next().is_some_and(|(left, _)| left.is_under(path))
    }
}

/// The steps of a session, in the order of their numbers.
#[derive(Debug)]
pub struct StepList {
    pub steps: Vec<Step>,
    /// The offset in bytes at which the lines of each begin in `steps.jsonl`; `None` for the only step of a session without that file.
    starts: Vec<Option<u64>>,
    /// The paths that left the session at its steps.
    left: Vec<(u32, Vec<AbsPath>)>,
    /// The steps whose parts were rolled back.
    joined: HashSet<u32>,
    /// Those of them that parts have.
    parted: Left,
    file: Option<File>,
    shown: String,
}

impl Session {
    /// Reads the records of its steps. A session that was staged by hand has none.
    ///
    /// # Errors
    /// A file of the session cannot be read.
    pub fn steps(&self) -> Result<StepList, Error> {
        let at = self.dir.at(FILE);
        let (shown, parted) = (at.to_string(), Left::default());
        let (joined, left) = (HashSet::new(), Vec::new());
        let mut list = StepList { steps: Vec::new(), starts: Vec::new(), left, joined, parted, file: None, shown };
        let Some(of_header) = &self.header.steps else {
            if let Some(run) = self.run()?.filter(|_| self.header.lines > 0 && self.header.origin == Origin::Captured) {
                list.steps.push(Step::first(&run, &self.header, &self.changes()?));
                list.starts.push(None);
            }
            return Ok(list);
        };
        let Some((file, _)) = open_own(at)? else { return Err(damaged(at, "it is missing")) };
        let mut reader = BufReader::new(file.try_clone().at("open again", at)?);
        let (mut text, mut offset) = (Vec::new(), 0);
        while offset < of_header.bytes {
            text.clear();
            let got = reader.read_until(b'\n', &mut text).at("read", at)?;
            let step = match serde_json::from_slice(&text) {
                Ok(StepLine::Step(step)) if text.last() == Some(&b'\n') => *step,
                Ok(StepLine::Joined(n)) if text.last() == Some(&b'\n') => {
                    offset += got as u64;
                    list.joined.insert(n);
                    continue;
                }
                Ok(_) => return Err(damaged(at, "a step is shorter than its record says")),
                Err(error) => return Err(damaged(at, error)),
            };
            offset += got as u64;
            list.starts.push(Some(offset));
            offset += step.bytes;
            reader.seek_relative(i64::try_from(step.bytes).unwrap_or(i64::MAX)).at("read", at)?;
            list.steps.push(step);
        }
        list.file = Some(file);
        list.read_left()?;
        Ok(list)
    }
}

/// A step below the head, on which another one is to stand.
#[derive(Debug)]
pub struct Base {
    /// The numbers of the steps from the first to this one.
    pub chain: Vec<u32>,
    pub changes: Changes,
}

impl Base {
    /// The step `n` of a session; 0 is the tree as it was.
    ///
    /// # Errors
    /// There is no such step, or its lines cannot be read.
    pub fn at(session: &Session, n: u32) -> Result<Self, Error> {
        let list = session.steps()?;
        list.check(&session.header, n)?;
        Ok(Self { chain: list.chain(n), changes: list.net(session, n)? })
    }
}

/// All that the header of a session says of what it holds.
#[derive(Debug)]
pub struct Told {
    pub changes: u64,
    /// The mount points of the file systems that hold their paths.
    pub mounts: Vec<AbsPath>,
    /// The bytes of content that it holds no more.
    pub freed: u64,
}

impl Header {
    /// Has listings show a step's command, who had it run, and how it ended. A choice of a person is no command: the one before it stays.
    fn tell_of(&mut self, step: &Step) {
        if !step.chosen {
            self.command = Some(start_of(step.argv.iter().map(|Arg(word)| &**word)));
            self.by = step.by.clone();
            self.failed = Failed::of(step.ending);
        }
    }
}

impl Locked {
    /// Adds a step at which the session then stands, durably, and replaces `run.json`. `net` is what the session held before; `told` is what
    /// the header says of it. With a `base` the step stands on that one, and not on the head. The upper of the step was written to since the session was opened.
    ///
    /// # Errors
    /// A system call failed: the session is as it was before, and the step is still to be added.
    pub fn add_step(
        &mut self,
        fs: &Fs,
        net: &Net,
        (mut step, added): (Step, &Added),
        run: &Run,
        (told, base): (Told, Option<&Base>),
    ) -> Result<(), Error> {
        let Told { changes, mounts, freed } = told;
        let mut header = Header { uncollected: false, mounts, ..self.header.clone() };
        if step.parted.is_none() {
            header.went_on = header.generation;
        }
        header.tell_of(&step);
        header.acted = self.acted(fs)?.map(|acted| if step.chosen { acted } else { Acted { by: step.by.clone(), ..acted } });
        let (mut of_header, mut records) = match header.steps.take() {
            Some(steps) => (steps, Vec::new()),
            None => self.first_record()?,
        };
        let lines = match base {
            None => added.net_lines(),
            Some(base) => {
                of_header.set(base.chain.iter().copied());
                differing(&self.changes()?, &base.changes.clone().with(added.net_lines()))
            }
        };
        of_header.push();
        step.n = of_header.last;
        if !added.left.is_empty() {
            of_header.left = step.n;
        }
        records.extend(added.text(&mut step));
        append(fs, self.dir.at(FILE), of_header.bytes, &records)?;
        of_header.bytes += records.len() as u64;
        append(
            fs,
            self.dir.at(b"changes.jsonl"),
            net.end(),
            &lines.iter().map(crate::tree::json::line).collect::<Vec<_>>().concat(),
        )?;
        header.unsynced |= step.unsynced;
        header.lines += lines.len() as u64;
        header.counts.changes = changes;
        header.sizes.held = (header.sizes.held + step.held).saturating_sub(freed);
        header.steps = Some(of_header);
        self.save_step(fs, run, header)?;
        if net.is_long_with(lines.len() as u64) { self.rewrite(fs, &self.changes()?, self.header.lines) } else { Ok(()) }
    }

    /// Makes the session stand at step `n`, 0 being the tree as it was; durably. The other steps stay.
    ///
    /// # Errors
    /// There is no such step; it is gone with older ones; a system call failed, and the session is as it was.
    pub fn rewind(&mut self, fs: &Fs, list: &StepList, n: u32) -> Result<(), Error> {
        let header = Header { acted: Some(self.act(fs)?), went_on: self.header.generation, ..self.header.clone() };
        list.check(&self.header, n)?;
        let then = list.net(self, n)?;
        self.stand_at(fs, (list, then), n, (header, Vec::new()))
    }

    /// Has the steps before `split` hold again what left at it, durably, and the session stand at step `n`. `list` has them hold it already;
    /// `part`: what came back, `held`: bytes of its content.
    ///
    /// # Errors
    /// Step `n` is gone with older ones; a system call failed, and the session is as it was.
    pub fn rejoin(
        &mut self,
        fs: &Fs,
        list: &StepList,
        (split, n): (u32, u32),
        (part, held): (&Changes, u64),
    ) -> Result<(), Error> {
        let mut header = self.header.clone();
        header.sizes.held += held;
        list.check(&self.header, n)?;
        let mut then = list.net(self, n)?;
        then.learn(part);
        self.stand_at(fs, (list, then), n, (header, crate::tree::json::line(&LineRef::Joined(split))))
    }

    /// Makes the session stand at step `n`, with these records behind those of its steps.
    fn stand_at(
        &mut self,
        fs: &Fs,
        (list, mut then): (&StepList, Changes),
        n: u32,
        (mut header, more): (Header, Vec<u8>),
    ) -> Result<(), Error> {
        let now = self.changes()?;
        // Steps do not know what a commit has learned.
        then.learn(&now);
        let lines = differing(&now, &then);
        let (mut of_header, mut records) = match header.steps.take() {
            Some(steps) => (steps, Vec::new()),
            None => self.first_record()?,
        };
        records.extend(more);
        let net = Net::open(self)?;
        let mut files = Vec::new();
        for (name, end, bytes) in [
            (FILE, of_header.bytes, records),
            (&b"changes.jsonl"[..], net.end(), lines.iter().map(crate::tree::json::line).collect::<Vec<_>>().concat()),
        ] {
            of_header.bytes += if name == FILE { bytes.len() as u64 } else { 0 };
            files.push(append(fs, self.dir.at(name), end, &bytes)?);
        }
        let chain = list.chain(n);
        let commands = list.steps.iter().filter(|step| chain.contains(&step.n) && !step.chosen);
        if let Some(step) = commands.max_by_key(|step| step.n) {
            header.tell_of(step);
        }
        header.unsynced = list.steps.iter().any(|step| step.unsynced && chain.contains(&step.n));
        of_header.set(chain);
        header.lines += lines.len() as u64;
        header.counts.changes = then.list.len() as u64;
        header.steps = Some(of_header);
        let own = self.dir.path().to_owned();
        let files: Vec<_> = files.iter().map(|file| (file, &*own)).collect();
        // D1, D2: the lines are durable before the header that counts them.
        self.save_at_last(fs, header, &files, &[])?;
        if net.is_long_with(lines.len() as u64) { self.rewrite(fs, &then, self.header.lines) } else { Ok(()) }
    }

    /// The record of a session's only step, and what a header then says of its steps.
    fn first_record(&self) -> Result<(Steps, Vec<u8>), Error> {
        let Some(run) = self.run()? else { return Ok((Steps::default(), Vec::new())) };
        let own = self.changes()?;
        let mut step = Step::first(&run, &self.header, &own);
        let records = Added { own, ..Added::default() }.text(&mut step);
        Ok((Steps { chain: vec![(1, 1)], last: 1, ..Steps::default() }, records))
    }
}

/// The lines that make the net changes `then` out of `now`.
fn differing(now: &Changes, then: &Changes) -> Vec<Line> {
    let mut lines = Vec::new();
    let time_at = |changes: &Changes, path: &AbsPath| {
        changes.directory_times.binary_search_by(|time| time.path.cmp(path)).ok().map(|i| changes.directory_times[i].clone())
    };
    let gone = now.list.iter().filter(|change| then.at(&change.path).is_none());
    lines.extend(gone.map(|change| Line::None { n: change.n, path: change.path.clone() }));
    // A line that ends a time ends a change, too; one that is a change has no time.
    let timeless = now.directory_times.iter().filter(|time| time_at(then, &time.path).is_none() && then.at(&time.path).is_none());
    lines.extend(timeless.map(|time| Line::None { n: 0, path: time.path.clone() }));
    let new = then.list.iter().filter(|change| now.at(&change.path) != Some(change));
    lines.extend(new.map(|change| Line::Change(Box::new(change.clone()))));
    let new = then.directory_times.iter().filter(|time| time_at(now, &time.path).as_ref() != Some(time));
    lines.extend(new.map(|time| Line::DirectoryTime(time.clone())));
    lines
}

/// True for the name of a block in `held/upper`, finished or not: merged uppers of steps, made of links, which go at any time.
pub fn is_block(name: &[u8]) -> bool {
    name.contains(&b'-')
}

impl Session {
    /// Removes the blocks of its uppers: what a commit puts on the tree may have no other name in the store. Returns the directory that they
    /// lay in, to be synced, if there were any.
    ///
    /// # Errors
    /// A system call failed.
    pub fn remove_blocks(&self, fs: &Fs) -> Result<Option<Dir>, Error> {
        if self.header.steps.is_none() {
            return Ok(None);
        }
        let uppers = part(&self.dir, b"held/upper")?;
        let mut names = uppers.names()?;
        names.retain(|name| is_block(name));
        for name in &names {
            fs.remove_all(uppers.at(name))?;
        }
        Ok((!names.is_empty()).then_some(uppers))
    }
}

/// Puts bytes behind the first `end` ones of a file, in place of what an interrupted recant left there. The caller syncs.
fn append(fs: &Fs, at: Entry<'_>, end: u64, bytes: &[u8]) -> Result<File, Error> {
    let file = fs.append(at)?;
    if crate::fs::dir::stat_of(&file).at("look at", at)?.size > end {
        fs.set_size(&file, end, at)?;
    }
    fs.write(&file, bytes, at)?;
    Ok(file)
}

impl StepList {
    /// The step of that number.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, header: &Header, n: u32) -> Result<&Step, Error> {
        self.index(n).map(|i| &self.steps[i]).ok_or_else(|| {
            let id = &header.id;
            not_now(id, format!("it has no step {n}")).with_remedy(command(format_args!("steps {}", id.tail())) + " lists them")
        })
    }

    /// Checks that a session can go back to step `n`; 0 is the tree as it was.
    ///
    /// # Errors
    /// There is no such step, or it was merged into a later one.
    pub fn check(&self, header: &Header, n: u32) -> Result<(), Error> {
        if n > 0 {
            self.get(header, n)?;
        }
        if n == 0 || self.kept(header).contains(&n) {
            return Ok(());
        }
        let floor = header.steps.as_ref().map_or(0, |steps| steps.floor);
        let why = format!("step {n} is gone: {floor} is the oldest");
        Err(not_now(&header.id, why).with_remedy("steps.keep and steps.max_size of the settings say how many are kept"))
    }

    /// The steps that can be gone back to: the oldest one that is kept, all that stand on it, and branches that were begun anew since.
    pub fn kept(&self, header: &Header) -> HashSet<u32> {
        let floor = header.steps.as_ref().map_or(0, |steps| steps.floor);
        self.grown(|step| step.n == floor || step.on == 0 && step.n > floor)
    }

    /// A step and all that stand on it.
    pub fn standing_on(&self, n: u32) -> HashSet<u32> {
        self.grown(|step| step.n == n)
    }

    /// The steps that are roots, and all that stand on these. A step has a higher number than the one that it stands on.
    fn grown(&self, is_root: impl Fn(&Step) -> bool) -> HashSet<u32> {
        let mut grown = HashSet::new();
        for step in &self.steps {
            if is_root(step) || grown.contains(&step.on) {
                grown.insert(step.n);
            }
        }
        grown
    }

    fn index(&self, n: u32) -> Option<usize> {
        self.steps.binary_search_by_key(&n, |step| step.n).ok()
    }

    /// The numbers of the steps from the first to `n`, each of which stands on the one before. Empty for 0.
    pub fn chain(&self, n: u32) -> Vec<u32> {
        let mut chain = Vec::new();
        let mut at = self.index(n);
        while let Some(i) = at {
            chain.push(self.steps[i].n);
            // A step stands on an older one: no garbled record can make this endless.
            at = self.index(self.steps[i].on).filter(|below| *below < i);
        }
        chain.reverse();
        chain
    }

    /// The changes of a step against the one that it stands on.
    ///
    /// # Errors
    /// Its lines cannot be read.
    pub fn own(&self, session: &Session, n: u32) -> Result<Changes, Error> {
        let mut own = Changes::default();
        self.read(
            session,
            n,
            |_| true,
            |line| match line {
                StepLine::Change(change) => own.list.push(*change),
                StepLine::DirectoryTime(time) => own.directory_times.push(time),
                StepLine::Net(_) | StepLine::Step(_) | StepLine::Left(_) | StepLine::Joined(_) => {}
            },
        )?;
        Ok(own)
    }

    /// Those changes of a step of which the line `may` be asked for; other lines are not parsed.
    ///
    /// # Errors
    /// Its lines cannot be read.
    pub fn own_of(&self, session: &Session, n: u32, may: impl Fn(&[u8]) -> bool) -> Result<Vec<Change>, Error> {
        let mut own = Vec::new();
        self.read(session, n, may, |line| match line {
            StepLine::Change(change) => own.push(*change),
            StepLine::DirectoryTime(_) | StepLine::Net(_) | StepLine::Step(_) | StepLine::Left(_) | StepLine::Joined(_) => {}
        })?;
        Ok(own)
    }

    /// The net changes from the tree as it was to step `n`.
    ///
    /// # Errors
    /// The lines of a step cannot be read.
    pub fn net(&self, session: &Session, n: u32) -> Result<Changes, Error> {
        let mut last = Last::default();
        for n in self.chain(n) {
            self.read(
                session,
                n,
                |_| true,
                |line| match line {
                    StepLine::Change(change) if change.from.is_none() => last.take(Line::Change(change)),
                    StepLine::DirectoryTime(time) => last.take(Line::DirectoryTime(time)),
                    StepLine::Net(line) => last.take(line),
                    StepLine::Change(_) | StepLine::Step(_) | StepLine::Left(_) | StepLine::Joined(_) => {}
                },
            )?;
        }
        let mut net = last.finish();
        if !self.parted.0.is_empty() {
            self.without_ended_times(&mut net);
        }
        Ok(net)
    }

    /// Takes out the times of directories that only what has left was changed in.
    fn without_ended_times(&self, net: &mut Changes) {
        let left_in: HashSet<AbsPath> = self.parted.0.keys().filter_map(AbsPath::parent).collect();
        let changed_in: HashSet<AbsPath> = net.list.iter().filter_map(|change| change.path.parent()).collect();
        net.directory_times.retain(|time| !left_in.contains(&time.path) || changed_in.contains(&time.path));
    }

    fn read(&self, session: &Session, n: u32, may: impl Fn(&[u8]) -> bool, mut take: impl FnMut(StepLine)) -> Result<(), Error> {
        if self.file.is_some() {
            let is_here = |line: &StepLine| !self.has_left(n, line);
            return self.read_lines(n, may, |line| {
                if is_here(&line) {
                    take(line)
                }
            });
        }
        let changes = session.changes()?;
        changes.list.into_iter().for_each(|change| take(StepLine::Change(Box::new(change))));
        changes.directory_times.into_iter().for_each(|time| take(StepLine::DirectoryTime(time)));
        Ok(())
    }

    /// Reads the lines of a step as they were written.
    fn read_lines(&self, n: u32, may: impl Fn(&[u8]) -> bool, mut take: impl FnMut(StepLine)) -> Result<(), Error> {
        let Some(i) = self.index(n) else { return Ok(()) };
        let (Some(start), Some(file)) = (self.starts[i], &self.file) else { return Ok(()) };
        let mut file = file.try_clone().at("open again", &self.shown)?;
        file.seek(SeekFrom::Start(start)).at("read", &self.shown)?;
        let lines = BufReader::new(file.take(self.steps[i].bytes));
        for line in lines.split(b'\n') {
            let line = line.at("read", &self.shown)?;
            if !may(&line) {
                continue;
            }
            let line = serde_json::from_slice(&line);
            take(line.map_err(|error| damaged(&self.shown, format!("the lines of step {n}: {error}")))?);
        }
        Ok(())
    }

    /// Reads which paths left the session at its steps.
    fn read_left(&mut self) -> Result<(), Error> {
        for step in self.steps.iter().filter(|step| step.left > 0) {
            let is_path = |line: &[u8]| line.starts_with(br#"{"left""#);
            let mut paths = Vec::new();
            self.read_lines(step.n, is_path, |line| {
                if let StepLine::Left(path) = line {
                    paths.push(path);
                }
            })?;
            self.left.push((step.n, paths));
        }
        self.count_left();
        Ok(())
    }

    fn count_left(&mut self) {
        self.parted = self.left_where(|_| false);
    }

    /// The paths that parts have, and those that left at the steps that `counts` is true for.
    fn left_where(&self, counts: impl Fn(u32) -> bool) -> Left {
        let is_parted = |n: u32| !self.joined.contains(&n) && self.index(n).is_some_and(|i| self.steps[i].parted.is_some());
        Left::of(self.left.iter().filter(|(n, _)| is_parted(*n) || counts(*n)))
    }

    /// The paths that left the session for one that stands on the steps `chain`: parts have them, or they left at one of these.
    pub fn left_at(&self, chain: &[u32]) -> Left {
        self.left_where(|n| chain.contains(&n))
    }

    /// The step at which a part left the session last, and whether the part was rolled back since.
    pub fn split_of(&self, part: &Id) -> Option<(&Step, bool)> {
        let split = self.steps.iter().rev().find(|step| step.parted.as_ref() == Some(part))?;
        Some((split, self.joined.contains(&split.n)))
    }

    /// The paths that left at a step.
    pub fn left_of(&self, n: u32) -> &[AbsPath] {
        self.left.iter().find(|(step, _)| *step == n).map_or(&[], |(_, paths)| paths)
    }

    /// Has the steps before `n` hold again what left at it.
    pub fn join(&mut self, n: u32) {
        self.joined.insert(n);
        self.count_left();
    }

    /// True for a line of step `n` about a path that left the session at a later one.
    fn has_left(&self, n: u32, line: &StepLine) -> bool {
        let path = match line {
            StepLine::Change(change) => &change.path,
            StepLine::Net(Line::Change(change)) => &change.path,
            StepLine::Net(Line::None { path, .. }) => path,
            _ => return false,
        };
        self.parted.has(n, path)
    }
}
