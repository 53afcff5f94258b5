//! Renames of directories that were there before the command, by an ordinary user's. In an overlay of such a user the kernel refuses them
//! (EXDEV). So a directory that it would refuse is made one of the upper first ([`Rebuild`]). Then the kernel carries out the call, in the
//! caller's context, and judges all of it.
//!
//! - **H16** No directory is being rebuilt when the run is collected: [`Renames::end`].

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use super::call_listener::Answer;
use super::call_path::Place;
use super::messages::{Word, say};
use super::rebuild::Rebuild;
use super::rename_call::Rename;
use crate::error::{At, IoError, reason};
use crate::fs::{Fs, Sort, Stat, Time, is_overlay};

/// The preparing of renames in a run.
pub struct Renames {
    fs: Fs,
    /// The run's start.
    since: Time,
    /// Told what could not be renamed.
    recant: UnixStream,
    /// Held while a directory is rebuilt.
    busy: Mutex<()>,
    /// Held while names of one move.
    names: RwLock<()>,
    is_ending: AtomicBool,
}

impl Renames {
    pub fn new(since: Time, recant: &UnixStream) -> Result<Self, IoError> {
        let recant = recant.try_clone().at("take a socket for", "renames")?;
        Ok(Self {
            fs: Fs::default(),
            since,
            recant,
            busy: Mutex::default(),
            names: RwLock::default(),
            is_ending: AtomicBool::new(false),
        })
    }

    /// Waits until no directory is being rebuilt, and lets none begin.
    pub fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        // Kept: this process is about to end.
        std::mem::forget(self.busy.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until no names move, and lets none move before what is returned is dropped.
    pub fn still(&self) -> RwLockReadGuard<'_, ()> {
        self.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a rename possible that the kernel would refuse. `waits` is true while the caller waits for the answer.
    pub fn prepare(&self, rename: &Rename, waits: &dyn Fn() -> bool) -> Answer {
        let _one_at_a_time = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = || !self.is_ending.load(Ordering::SeqCst) && waits();
        // Asked afterwards: while it waits, the thread's number is still its own.
        let places = rename.places().filter(|_| goes_on());
        let Some((from, to)) = places else { return Answer::GoOn };
        let rebuild = Rebuild { fs: &self.fs, since: self.since, goes_on: &goes_on, names: &self.names };
        self.make_possible(&rebuild, rename, (&from, &to)).unwrap_or(Answer::GoOn)
    }

    /// Rebuilds what the kernel would refuse to rename. Nothing is done for a call that fails for another reason.
    fn make_possible(&self, rebuild: &Rebuild<'_>, rename: &Rename, (from, to): (&Place, &Place)) -> Result<Answer, IoError> {
        let (Some(old), new) = (from.stat()?, to.stat()?) else { return Ok(Answer::GoOn) };
        if !from.is_beside(to)? || to.is_in(&old)? || rename.keeps_what_is_there() && new.is_some() {
            return Ok(Answer::GoOn);
        }
        let is_old = is_refused(rebuild, from, &old)?;
        match new {
            Some(new) if rename.exchanges() && is_refused(rebuild, to, &new)? => self.rebuild(rebuild, to)?,
            Some(new) if !rename.exchanges() && new.sort != Sort::Directory => return Ok(Answer::GoOn),
            // The kernel would say EXDEV first, where nothing else differs.
            Some(_) if !rename.exchanges() && is_old && !to.at().open_dir()?.is_empty()? => {
                return Ok(Answer::Fail(libc::ENOTEMPTY));
            }
            _ => {}
        }
        if is_old {
            self.rebuild(rebuild, from)?;
        }
        Ok(Answer::GoOn)
    }

    /// Rebuilds a directory; tells recant if that cannot be.
    fn rebuild(&self, rebuild: &Rebuild<'_>, place: &Place) -> Result<(), IoError> {
        let rebuilt = rebuild.directory(place.at());
        if let Err(IoError { path, act, source }) = &rebuilt {
            let is_refused = place.stat()?.is_none_or(|stat| is_refused(rebuild, place, &stat).unwrap_or(true));
            let what = if is_refused { "not renamed: " } else { "" };
            let why = format!("{}: {what}cannot {act} {path}: {}", place.at(), reason(source));
            say(&self.recant, &Word::NotRenamed(why));
        }
        rebuilt
    }
}

/// True if the kernel refuses to rename this object, as it shows through from below.
fn is_refused(rebuild: &Rebuild<'_>, place: &Place, stat: &Stat) -> Result<bool, IoError> {
    let is_overlay = || is_overlay(place.at().dir).at("look at the file system of", place.at());
    if stat.sort != Sort::Directory || stat.mount_root || rebuild.is_of_upper(stat) || !is_overlay()? {
        return Ok(false);
    }
    // What was born before the run is below; of the rest nobody knows where links of directories are not counted (btrfs).
    if stat.btime.is_some_and(|born| born <= rebuild.since) {
        return Ok(true);
    }
    rebuild.is_refused(place.at())
}
