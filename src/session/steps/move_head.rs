//! Adds a step, and has a session stand at another one.

use std::fs::File;

use super::list::StepList;
use super::record::{Added, FILE, LineRef, Step};
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Entry, Fs};
use crate::session::act::LastAct;
use crate::session::change::{Changes, Line};
use crate::session::header::{Header, Steps};
use crate::session::net_changes::Net;
use crate::session::open_session::{Locked, Session, part};
use crate::session::run_record::{Failed, Run};

/// All that the header of a session says of what it holds.
#[derive(Debug)]
pub struct HeaderFacts {
    pub changes: u64,
    /// The mount points of the file systems that hold their paths.
    pub mounts: Vec<AbsPath>,
    /// The bytes of content that it holds no more.
    pub freed: u64,
}

impl Header {
    /// Has listings show a step's command, who had it run, and how it ended. A choice of a person is no command: the one before it stays.
    fn show_command_of(&mut self, step: &Step) {
        if !step.chosen {
            self.command = Some(step.command.called());
            self.by = step.command.by.clone();
            self.failed = Failed::of(step.command.ending, step.command.service.as_ref());
        }
    }
}

impl Locked {
    /// Adds a step at which the session then stands, durably, and replaces `run.json`. `net` is what the session held before; `told` is what
    /// the header says of it. The upper of the step was written to since the session was opened.
    ///
    /// # Errors
    /// A system call failed: the session is as it was before, and the step is still to be added.
    pub fn add_step(
        &mut self,
        fs: &Fs,
        net: &Net,
        (mut step, added): (Step, &Added),
        run: &Run,
        told: HeaderFacts,
    ) -> Result<(), Error> {
        let HeaderFacts { changes, mounts, freed } = told;
        let mut header = Header { uncollected: false, mounts, ..self.header.clone() };
        if step.parted.is_none() {
            header.went_on = header.generation;
        }
        header.show_command_of(&step);
        header.acted =
            self.act_of_save(fs)?.map(|acted| if step.chosen { acted } else { LastAct { by: step.command.by.clone(), ..acted } });
        let (mut of_header, mut records) = match header.steps.take() {
            Some(steps) => (steps, Vec::new()),
            None => self.first_record()?,
        };
        let lines = added.net_lines();
        of_header.push();
        step.n = of_header.last;
        if !added.left.is_empty() {
            of_header.left = step.n;
        }
        records.extend(added.text(&mut step));
        append(fs, self.dir.at(FILE), of_header.bytes, &records)?;
        of_header.bytes += records.len() as u64;
        append(fs, self.dir.at(b"changes.jsonl"), net.end(), &lines.iter().map(crate::tree::line).collect::<Vec<_>>().concat())?;
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
        self.stand_at(fs, (list, then), n, (header, crate::tree::line(&LineRef::Joined(split))))
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
            (&b"changes.jsonl"[..], net.end(), lines.iter().map(crate::tree::line).collect::<Vec<_>>().concat()),
        ] {
            of_header.bytes += if name == FILE { bytes.len() as u64 } else { 0 };
            files.push(append(fs, self.dir.at(name), end, &bytes)?);
        }
        let chain = list.chain(n);
        let commands = list.steps.iter().filter(|step| chain.contains(&step.n) && !step.chosen);
        if let Some(step) = commands.max_by_key(|step| step.n) {
            header.show_command_of(step);
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

/// Puts bytes behind the first `end` ones of a file, in place of what an interrupted recant left there. The caller syncs.
fn append(fs: &Fs, at: Entry<'_>, end: u64, bytes: &[u8]) -> Result<File, Error> {
    let file = fs.append(at)?;
    if crate::fs::stat_of(&file).at("look at", at)?.size > end {
        fs.set_size(&file, end, at)?;
    }
    fs.write(&file, bytes, at)?;
    Ok(file)
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
