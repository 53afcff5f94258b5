//! The steps of a session, read from `steps.jsonl`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::record::{FILE, PartedPaths, Step, StepLine};
use crate::error::{At, Error, command};
use crate::fs::AbsPath;
use crate::session::change::{Change, Changes, Line};
use crate::session::changes_file::Last;
use crate::session::error::{damaged, not_now};
use crate::session::header::{Header, Origin};
use crate::session::id::Id;
use crate::session::open_session::{Session, open_own};

/// The steps of a session, in the order of their numbers.
#[derive(Debug)]
pub struct StepList {
    pub steps: Vec<Step>,
    /// The offset in bytes at which the lines of each begin in `steps.jsonl`; `None` for the only step of a session without that file.
    starts: Vec<Option<u64>>,
    left: Vec<(u32, Vec<AbsPath>)>,
    /// The steps whose parts were rolled back.
    joined: HashSet<u32>,
    /// Those of them that parts have.
    parted: PartedPaths,
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
        let (shown, parted) = (at.to_string(), PartedPaths::default());
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
        let why = format!("step {n} is no longer kept: {floor} is the oldest");
        Err(not_now(&header.id, why).with_remedy("the settings steps.keep and steps.max_size say how many are kept"))
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
    fn left_where(&self, counts: impl Fn(u32) -> bool) -> PartedPaths {
        let is_parted = |n: u32| !self.joined.contains(&n) && self.index(n).is_some_and(|i| self.steps[i].parted.is_some());
        PartedPaths::of(self.left.iter().filter(|(n, _)| is_parted(*n) || counts(*n)))
    }

    /// The paths that left the session for one that stands on the steps `chain`: parts have them, or they left at one of these.
    pub fn left_at(&self, chain: &[u32]) -> PartedPaths {
        self.left_where(|n| chain.contains(&n))
    }

    /// The step at which a part left the session last, and whether the part was rolled back since.
    pub fn split_of(&self, part: &Id) -> Option<(&Step, bool)> {
        let split = self.steps.iter().rev().find(|step| step.parted.as_ref() == Some(part))?;
        Some((split, self.joined.contains(&split.n)))
    }

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
