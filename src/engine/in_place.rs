//! Content written into an inode that cannot be renamed: a file that is itself mounted at its path, as `/etc/hosts` is in a container.
//!
//! Its old content was copied to its home before, durably, and the new one lies in the session until all is sealed (E3). While it is
//! written it is neither of them (E2). But each of its sectors holds what the one or the other has there ([`Fs::overwrite`]): by that an
//! undo tells what recant itself has left half written from what somebody else wrote, which it leaves alone (docs/ARCHITECTURE.md, I8).

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::conflict::Conflict;
use super::reach::{Named, Reach};
use super::step::{Spot, Step};
use super::undo::{foreign_meta, open};
use super::{Error, meta};
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::{Sort, stat_of};
use crate::fs::lease::hold_alone;
use crate::tree::digest::Digest;
use crate::tree::look::{self, Seen};
use crate::tree::state::State;

/// The step: what is there has to be what planning saw, content included, as no act brings it out whole afterwards.
pub(super) fn write(fs: &Fs, reach: &mut Reach, target: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    let (Some(from), Some(to)) = (&step.from, &step.to) else { return Ok(()) };
    let Some(file) = open_alone(target, from, step)? else {
        return Err(changed(step, "something else, mounted there meanwhile"));
    };
    let found = seen(&file, step)?;
    if from.state.meta_difference(&found.state).is_some() {
        return Err(changed(step, "a file whose metadata was set meanwhile"));
    }
    if found.state.digest() != from.state.digest() {
        return Err(changed(step, "a file that was written to meanwhile"));
    }
    let source = copy(reach, step.at.spare.as_ref())?.ok_or_else(|| missing(step, "what is to be written"))?;
    put(fs, target, (&source, &file), &to.state, step)?;
    // Without a lease somebody may have been at work in the same moment. An error has it undone, which leaves alone what he wrote.
    if seen(&file, step)?.state.digest() != to.state.digest() {
        return Err(Error::Refused(vec![(step.path.to_string(), "somebody wrote to it in the same moment".into())]));
    }
    Ok(())
}

/// Takes the step back, however far it came; gives the reason where it must be left.
pub(super) fn undo(fs: &Fs, reach: &mut Reach, target: Option<&Named<'_>>, step: &Step<'_>) -> Result<Option<String>, Error> {
    let (Some(from), Some(to)) = (&step.from, &step.to) else { return Ok(None) };
    let file = target.map(|target| open_alone(target, from, step)).transpose()?.flatten();
    let (Some(target), Some(file)) = (target, file) else {
        return Ok(Some("the file that was mounted there is not there any more; what it held before is kept".into()));
    };
    let found = seen(&file, step)?;
    if let Some(why) = foreign_meta(from, to, &found) {
        return Ok(Some(why));
    }
    if found.state.digest() == from.state.digest() {
        // Not begun, or back. An undo that was cut off may not have synced it.
        return put_metadata(fs, target, &file, &from.state, step).map(|()| None);
    }
    let Some(old) = copy(reach, step.at.home.as_ref())? else { return Err(missing(step, "the copy of what it held before")) };
    let new = copy(reach, step.at.spare.as_ref())?;
    let ours = new.as_ref().map(|new| is_between(&file, &old, new)).transpose().at("read", step.path)?;
    if ours != Some(true) {
        return Ok(Some("somebody wrote to it; what it held before is kept".into()));
    }
    put(fs, target, (&old, &file), &from.state, step).map(|()| None)
}

/// Whether what is there is what writing the recorded content over `kept`, a copy of what somebody wrote, has left.
pub(super) fn is_left_from(reach: &mut Reach, target: &Named<'_>, step: &Step<'_>, kept: &Spot) -> Result<bool, Error> {
    let Some(from) = &step.from else { return Ok(false) };
    let (Some(old), Some(kept)) = (copy(reach, step.at.home.as_ref())?, copy(reach, Some(kept))?) else { return Ok(false) };
    let file = open_alone(target, from, step)?;
    Ok(file.map_or(Ok(false), |file| is_between(&file, &old, &kept)).at("read", step.path)?)
}

/// Writes the recorded content over what somebody wrote there, which the caller has kept. False where another file is there.
pub(super) fn force(fs: &Fs, reach: &mut Reach, target: &Named<'_>, step: &Step<'_>) -> Result<bool, Error> {
    let Some(from) = &step.from else { return Ok(false) };
    let (Some(file), Some(old)) = (open_alone(target, from, step)?, copy(reach, step.at.home.as_ref())?) else {
        return Ok(false);
    };
    put(fs, target, (&old, &file), &from.state, step).map(|()| true)
}

/// Whether the inode is there and holds all of what was to be written.
pub(super) fn is_written(target: Option<&Named<'_>>, step: &Step<'_>) -> Result<bool, Error> {
    let (Some(from), Some(to), Some(target)) = (&step.from, &step.to, target) else { return Ok(false) };
    let Some(file) = open_alone(target, from, step)? else { return Ok(false) };
    let found = seen(&file, step)?;
    Ok(found.state.digest() == to.state.digest() && found.state.meta_difference(&to.state).is_none())
}

/// Whether the inode is there and holds all of what it held before.
pub(super) fn is_untouched(target: &Named<'_>, step: &Step<'_>) -> Result<bool, Error> {
    let Some(from) = &step.from else { return Ok(false) };
    let Some(file) = open_alone(target, from, step)? else { return Ok(false) };
    Ok(seen(&file, step)?.state.digest() == from.state.digest())
}

/// The file at the path, if it is that object; nobody else opens it meanwhile, where such a lease can be had.
fn open_alone(target: &Named<'_>, planned: &Seen, step: &Step<'_>) -> Result<Option<File>, Error> {
    let stat = target.at().stat().at("look at", step.path)?;
    if stat.is_none_or(|stat| stat.sort != Sort::File || look::identity(&stat) != planned.print.identity) {
        return Ok(None);
    }
    let file = target.at().open_to_write().at("open for writing", step.path)?;
    let _without_one_it_is_looked_at_afterwards = hold_alone(&file).at("ask for a lease on", step.path)?;
    Ok((look::identity(&stat_of(&file).at("look at", step.path)?) == planned.print.identity).then_some(file))
}

/// The file as it is, its content read.
fn seen(file: &File, step: &Step<'_>) -> Result<Seen, Error> {
    let stat = stat_of(file).at("look at", step.path)?;
    let mut seen = look::seen_open(file, &stat).at("look at", step.path)?;
    seen.set_digest(Digest::of_file(file, stat.size).at("read", step.path)?);
    Ok(seen)
}

fn copy(reach: &mut Reach, spot: Option<&Spot>) -> Result<Option<File>, Error> {
    let Some(spot) = spot else { return Ok(None) };
    let Some(named) = open(reach.spot(spot), "open the folder of", spot)? else { return Ok(None) };
    match named.at().open_file() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(opened.at("open", spot)?)),
    }
}

fn put(fs: &Fs, target: &Named<'_>, (source, file): (&File, &File), wanted: &State, step: &Step<'_>) -> Result<(), Error> {
    fs.overwrite(source, file, target.dir.path()).at("write to", step.path)?;
    put_metadata(fs, target, file, wanted, step)
}

/// Behind the content, as that changes the times and clears setuid and capabilities.
fn put_metadata(fs: &Fs, target: &Named<'_>, file: &File, wanted: &State, step: &Step<'_>) -> Result<(), Error> {
    let stat = stat_of(file).at("look at", step.path)?;
    let now = look::seen_open(file, &stat).at("look at", step.path)?;
    meta::bring(fs, target.at(), Sort::File, &now.state.meta, &wanted.meta).at("set the metadata of", step.path)?;
    // D1, D10: before the seal, or before the journal and the copy of what it held go. Through this descriptor, as no folder here leads
    // to its file system.
    Ok(fs.sync(file, target.dir.path()).at("sync", step.path)?)
}

fn changed(step: &Step<'_>, found: &str) -> Error {
    Error::Conflicts(vec![Conflict::said(step.path, "what was there in planning", found)])
}

fn missing(step: &Step<'_>, what: &str) -> Error {
    Error::Refused(vec![(step.path.to_string(), format!("{what} is missing from the session"))])
}

/// The least that a power cut can tear.
const SECTOR: usize = 512;

/// Whether a file is what writing one of two contents over the other leaves, wherever that is cut off: no longer than the longer one, no
/// shorter than the other, and each sector, as far as the file goes, that of the one or of the other, zeros where it has ended.
fn is_between(file: &File, one: &File, other: &File) -> std::io::Result<bool> {
    let sizes = [stat_of(one)?.size, stat_of(other)?.size];
    let size = stat_of(file)?.size;
    if size < sizes[0].min(sizes[1]) || size > sizes[0].max(sizes[1]) {
        return Ok(false);
    }
    let mut buffers = [(); 3].map(|()| vec![0; 128 * SECTOR]);
    let mut at = 0;
    while at < size {
        for (file, buffer) in [file, one, other].into_iter().zip(&mut buffers) {
            read_padded(file, buffer, at)?;
        }
        let here = usize::try_from(size - at).unwrap_or(usize::MAX).min(buffers[0].len());
        let [found, one, other] = buffers.each_ref().map(|buffer| buffer[..here].chunks(SECTOR));
        if found.zip(one).zip(other).any(|((found, one), other)| found != one && found != other) {
            return Ok(false);
        }
        at += here as u64;
    }
    Ok(true)
}

/// Fills a buffer from the byte `at` on, with zeros behind the end.
fn read_padded(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer[filled..].fill(0);
    Ok(())
}
