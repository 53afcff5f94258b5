//! Content written into an inode that cannot be renamed: a file that is itself mounted at its path, as `/etc/hosts` is in a container.
//!
//! Its old content was copied to its home before, durably, and the new one lies in the session until all is sealed (E3). While it is
//! written it is neither of them (E2). But each of its sectors holds what the one or the other has there ([`Fs::overwrite`]): by that an
//! undo tells what recant itself has left half written from what somebody else wrote, which it leaves alone (docs/ARCHITECTURE.md, I8).

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::conflict::Conflict;
use super::reach::{Named, Reach, open};
use super::step::{Spot, Step};
use super::{Error, meta};
use crate::error::{At, IoError};
use crate::fs::Fs;
use crate::fs::dir::{Sort, Stat, stat_of};
use crate::fs::lease::hold_alone;
use crate::tree::digest::Digest;
use crate::tree::look::{self, Seen};
use crate::tree::state::State;

/// The step: what is there has to be what planning saw, content included, as no act brings it out whole afterwards.
pub(super) fn write(fs: &Fs, reach: &mut Reach, target: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    let (Some(from), Some(to)) = (&step.from, &step.to) else { return Ok(()) };
    let file = match opened(target, from, Way::Write, step)? {
        Opened::File(file) => file,
        Opened::NotThere => return Err(changed(step, "something else, mounted there meanwhile")),
        Opened::Barred(why) => return Err(changed(step, &format!("a file that cannot be opened for writing ({why})"))),
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
    let Some(target) = target else { return Ok(Opened::NotThere.why_left()) };
    // For reading first: where it was not begun, or is back, nobody needs to be able to write to it.
    let file = match opened(target, from, Way::Read, step)? {
        Opened::File(file) => file,
        other => return Ok(other.why_left()),
    };
    let found = seen(&file, step)?;
    let Some(old) = copy(reach, step.at.home.as_ref())? else {
        // It was there before the first write (E3), and goes once all is taken back: what became of the file since is not ours to undo.
        let is_put = found.state.digest() == to.state.digest() && to.state.digest() != from.state.digest();
        return Ok(is_put.then(|| "the copy of what it held before is missing from the session".into()));
    };
    if let Some(why) = meta::foreign_meta(from, to, &found) {
        return Ok(Some(why));
    }
    if found.state.digest() == from.state.digest() {
        // Not begun, or back. An undo that was cut off may not have synced it.
        return unless_barred(put_metadata(fs, target, &file, &from.state, step));
    }
    // No lease is to be had for two descriptors of one file.
    drop(file);
    let file = match opened(target, from, Way::Write, step)? {
        Opened::File(file) => file,
        other => return Ok(other.why_left()),
    };
    if let Some(why) = meta::foreign_meta(from, to, &seen(&file, step)?) {
        return Ok(Some(why));
    }
    let new = copy(reach, step.at.spare.as_ref())?;
    let ours = new.as_ref().map(|new| is_between(&file, &old, new)).transpose().at("read", step.path)?;
    if ours != Some(true) {
        return Ok(Some("somebody wrote to it; what it held before is kept".into()));
    }
    put(fs, target, (&old, &file), &from.state, step).map(|()| None)
}

/// A copy of what somebody wrote, by which what is found is told from what he has written since.
pub(super) struct Copied<'a> {
    /// What was copied, with its digest.
    pub seen: &'a Seen,
    /// Where the copy lies.
    pub at: &'a Spot,
    /// It is of an earlier try, which may have begun to write.
    pub begun: bool,
}

/// What came of writing by force.
pub(super) enum Forced {
    /// The recorded content is there.
    Done,
    /// Somebody wrote to it again since the copy was made.
    WrittenSince,
    /// It cannot be done, and why.
    Left(Option<String>),
}

/// Writes the recorded content over what somebody wrote there, if that is still what was copied.
pub(super) fn force(
    fs: &Fs,
    reach: &mut Reach,
    target: &Named<'_>,
    step: &Step<'_>,
    copied: &Copied<'_>,
) -> Result<Forced, Error> {
    let Some(from) = &step.from else { return Ok(Forced::Left(None)) };
    let (old, kept) = (copy(reach, step.at.home.as_ref())?, copy(reach, Some(copied.at))?);
    let (Some(old), Some(kept)) = (old, kept) else { return Ok(Forced::Left(None)) };
    let file = match opened(target, from, Way::Write, step)? {
        Opened::File(file) => file,
        other => return Ok(Forced::Left(other.why_left())),
    };
    let found = seen(&file, step)?;
    let is_copy = found.state.digest() == copied.seen.state.digest() && copied.seen.state.meta == found.state.meta;
    let is_left = || -> Result<bool, Error> {
        Ok(copied.begun
            && meta::foreign_meta(from, copied.seen, &found).is_none()
            && is_between(&file, &old, &kept).at("read", step.path)?)
    };
    if !is_copy && !is_left()? {
        return Ok(Forced::WrittenSince);
    }
    put(fs, target, (&old, &file), &from.state, step).map(|()| Forced::Done)
}

/// Whether the inode is there, whatever it holds.
pub(super) fn is_there(target: &Named<'_>, step: &Step<'_>) -> Result<bool, Error> {
    let stat = target.at().stat().at("look at", step.path)?;
    Ok(step.from.as_ref().is_some_and(|from| stat.is_some_and(|stat| is_planned(&stat, from))))
}

/// Whether the session has the copy of what it held before.
pub(super) fn is_copied(reach: &mut Reach, step: &Step<'_>) -> Result<bool, Error> {
    Ok(copy(reach, step.at.home.as_ref())?.is_some())
}

/// Whether the inode is there and holds all of what was to be written.
pub(super) fn is_written(target: Option<&Named<'_>>, step: &Step<'_>) -> Result<bool, Error> {
    let (Some(from), Some(to), Some(target)) = (&step.from, &step.to, target) else { return Ok(false) };
    let Opened::File(file) = opened(target, from, Way::Read, step)? else { return Ok(false) };
    let found = seen(&file, step)?;
    Ok(found.state.digest() == to.state.digest() && found.state.meta_difference(&to.state).is_none())
}

/// Whether the inode is there and holds all of what it held before.
pub(super) fn is_untouched(target: &Named<'_>, step: &Step<'_>) -> Result<bool, Error> {
    let Some(from) = &step.from else { return Ok(false) };
    let Opened::File(file) = opened(target, from, Way::Read, step)? else { return Ok(false) };
    Ok(seen(&file, step)?.state.digest() == from.state.digest())
}

/// What a file is opened for.
#[derive(Clone, Copy)]
enum Way {
    Read,
    Write,
}

/// What came of opening the file that was planned.
enum Opened {
    File(File),
    NotThere,
    /// It is there and cannot be opened, and why.
    Barred(String),
}

impl Opened {
    /// Why an undo has to leave it, where it is not open.
    fn why_left(self) -> Option<String> {
        match self {
            Opened::File(_) => None,
            Opened::NotThere => Some("the file that was mounted there is not there any more; what it held before is kept".into()),
            Opened::Barred(why) => Some(format!("it cannot be opened for that: {why}; what it held before is kept")),
        }
    }
}

/// The file at the path, if it is that object; nobody else opens it meanwhile, where such a lease can be had.
fn opened(target: &Named<'_>, planned: &Seen, way: Way, step: &Step<'_>) -> Result<Opened, Error> {
    if target.at().stat().at("look at", step.path)?.is_none_or(|stat| !is_planned(&stat, planned)) {
        return Ok(Opened::NotThere);
    }
    let file = match way {
        Way::Read => target.at().open_file(),
        Way::Write => target.at().open_to_write(),
    };
    let file = match file {
        Ok(file) => file,
        Err(error) => return Ok(Opened::Barred(crate::error::reason(&error))),
    };
    let _without_one_it_is_looked_at_afterwards = hold_alone(&file).at("ask for a lease on", step.path)?;
    let is_it = is_planned(&stat_of(&file).at("look at", step.path)?, planned);
    Ok(if is_it { Opened::File(file) } else { Opened::NotThere })
}

fn is_planned(stat: &Stat, planned: &Seen) -> bool {
    stat.sort == Sort::File && look::identity(stat) == planned.print.identity
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
    Ok(put_metadata(fs, target, file, wanted, step)?)
}

/// Behind the content, as that changes the times and clears setuid and capabilities. Through the descriptor: once it is unmounted its name
/// leads to the file that the mount hid.
fn put_metadata(fs: &Fs, target: &Named<'_>, file: &File, wanted: &State, step: &Step<'_>) -> Result<(), IoError> {
    let stat = stat_of(file).at("look at", step.path)?;
    let now = look::seen_open(file, &stat).at("look at", step.path)?;
    let on = meta::On::Open(file, target.dir.path());
    meta::bring(fs, on, Sort::File, &now.state.meta, &wanted.meta).at("set the metadata of", step.path)?;
    // D1, D10: before the seal, or before the journal and the copy of what it held go. Through this descriptor, as no folder here leads
    // to its file system.
    fs.sync(file, target.dir.path()).at("sync", step.path)
}

/// An undo that may not be done is left, and named: it is done once it may, or decided.
fn unless_barred(put: Result<(), IoError>) -> Result<Option<String>, Error> {
    match put {
        Err(error) if matches!(error.source.raw_os_error(), Some(libc::EROFS | libc::EPERM | libc::EACCES)) => {
            Ok(Some(format!("its metadata cannot be set back: {}", crate::error::reason(&error.source))))
        }
        put => Ok(put.map(|()| None)?),
    }
}

fn changed(step: &Step<'_>, found: &str) -> Error {
    Error::Conflicts(vec![Conflict::said(step.path, "what was there in planning", found)])
}

fn missing(step: &Step<'_>, what: &str) -> Error {
    Error::Refused(vec![(step.path.to_string(), format!("{what} is missing from the session"))])
}

/// The least that a power cut can tear.
const SECTOR: usize = 512;

/// Whether a file is what writing one of two contents over the other leaves, wherever that is cut off. It is as long as one of them; or, where
/// it was being extended, as long as whole sectors in between, since neither a write that is cut off nor a power cut ends within one. Each
/// sector, as far as the file goes, is that of the one or of the other, zeros where that has ended.
fn is_between(file: &File, one: &File, other: &File) -> std::io::Result<bool> {
    let sizes = [stat_of(one)?.size, stat_of(other)?.size];
    let size = stat_of(file)?.size;
    let [shortest, longest] = [sizes[0].min(sizes[1]), sizes[0].max(sizes[1])];
    let is_extended_in_part = size > shortest && size < longest && size.is_multiple_of(SECTOR as u64);
    if !sizes.contains(&size) && !is_extended_in_part {
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
