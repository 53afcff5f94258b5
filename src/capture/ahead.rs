//! Writes out what a command writes while it still runs: the one sync at the run's end then has little left to do. Nothing rests on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::plan::Laid;
use crate::fs;
use crate::fs::dir::Dir;

/// How often the room on the store's file system is looked at.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Writing out begins when so much more is used: each time costs the command a wait for the file system's journal, which is worth it for
/// what takes long to write.
const STEP: Used = Used { bytes: 64 << 20, inodes: 10_000 };

/// The same at the command's end: less is synced in no time.
const LAST: Used = Used { bytes: 1 << 20, inodes: 100 };

/// What is in use on a file system, bytes that wait for their blocks included.
#[derive(Debug, Clone, Copy)]
struct Used {
    bytes: u64,
    inodes: u64,
}

/// The uppers' file system, and the thread that writes it out.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Opened for this alone: an error that is told here is told once more to the final sync, which has its own.
    dir: Option<Dir>,
    /// When the last thread began.
    before: Used,
    writing: Option<JoinHandle<()>>,
    /// The thread is to write out once more before it ends.
    again: Arc<AtomicBool>,
}

impl Ahead {
    /// For a run that is about to begin. Uppers in memory are never written out.
    pub fn of(laid: &Laid) -> Self {
        let upper = laid.layers.first().filter(|_| laid.memory.is_none()).map(|layer| &layer.upper);
        // Without it nothing is amiss but time.
        let dir = upper.and_then(|upper| upper.open_below(b"").ok()).filter(Dir::readable);
        let before = dir.as_ref().and_then(used).unwrap_or(Used { bytes: 0, inodes: 0 });
        Self { dir, before, writing: None, again: Arc::default() }
    }

    /// Begins to write out where enough has been written since the last time, and that has ended.
    pub fn look(&mut self) {
        if self.writing.as_ref().is_none_or(JoinHandle::is_finished) {
            self.begin_from(STEP);
        }
    }

    /// The command has ended: what it wrote last is written out while its changes are read.
    pub fn finish(&mut self) {
        self.again.store(true, Ordering::Relaxed);
        if self.writing.as_ref().is_none_or(JoinHandle::is_finished) {
            self.begin_from(LAST);
        }
    }

    fn begin_from(&mut self, step: Used) {
        self.end();
        let Some((dir, now)) = self.dir.as_ref().and_then(|dir| Some((dir, used(dir)?))) else { return };
        if now.bytes < self.before.bytes + step.bytes && now.inodes < self.before.inodes + step.inodes {
            // What was removed counts from where it is now.
            self.before = Used { bytes: self.before.bytes.min(now.bytes), inodes: self.before.inodes.min(now.inodes) };
            return;
        }
        self.before = now;
        let Ok(own) = dir.open_below(b"") else { return };
        self.again.store(false, Ordering::Relaxed);
        let again = Arc::clone(&self.again);
        let write_out = move || {
            fs::write_all_out(&own);
            // Asked for a moment too late it is not done: the final sync does it.
            if again.swap(false, Ordering::Relaxed) {
                fs::write_all_out(&own);
            }
        };
        self.writing = std::thread::Builder::new().spawn(write_out).ok();
    }

    fn end(&mut self) {
        if let Some(writing) = self.writing.take() {
            let _promised_nothing = writing.join();
        }
    }
}

/// A run forks while there is one thread: none may be left to the next.
impl Drop for Ahead {
    fn drop(&mut self) {
        self.end();
    }
}

fn used(dir: &Dir) -> Option<Used> {
    let found = rustix::fs::fstatvfs(dir).ok()?;
    Some(Used {
        bytes: found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize,
        inodes: found.f_files.saturating_sub(found.f_ffree),
    })
}
