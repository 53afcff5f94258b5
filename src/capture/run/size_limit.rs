//! `--max-size`: the limit of what a command may write. The uppers are measured while it runs, so that a command that writes without end is
//! ended before the disk is full.
//!
//! The uppers' content decides, never the disk's loss of space: somebody else may free as much as the command writes. A thread walks them
//! now and then, for a few percent of the run's time. The free space only shows when a walk is due at once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::StatVfs;

use crate::capture::place::layout::Layer;
use crate::capture::place::mount_plan::Laid;

/// The interval at which it is checked whether a walk is due: a disk that takes 1 GiB/s lets a command write 20 MiB too many.
pub const TICK: Duration = Duration::from_millis(20);

/// The rest between two walks, as a multiple of a walk's time: they cost at most 4 % of a run.
const REST: u32 = 25;

/// The least loss of free space, in bytes, that makes a walk due early.
const STEP: u64 = 1 << 20;

/// The bytes that a run has written so far, and its limit.
#[derive(Debug)]
pub struct Meter {
    tops: Arc<[Top]>,
    max: u64,
    /// The bytes in the uppers at the start, from earlier runs in the session.
    before: u64,
    /// The free bytes at the start.
    free: u64,
    /// The loss of free bytes at which a walk is due.
    due: u64,
    /// The time at which a walk is due.
    next: Instant,
    walk: Option<JoinHandle<Walked>>,
}

#[derive(Debug)]
struct Top {
    path: PathBuf,
    /// For a mounted file: the bytes that its copy took before the command started.
    copied: u64,
}

#[derive(Debug)]
struct Walked {
    held: u64,
    took: Duration,
}

impl Meter {
    /// Begins to count. `max` is in bytes.
    pub fn new(laid: &Laid, max: u64) -> Self {
        let top = |layer: &Layer| Top { path: layer.upper.path().to_owned(), copied: layer.copied };
        let tops: Arc<[Top]> = laid.layers.iter().map(top).collect();
        let walked = walk(&tops);
        let free = free(&tops);
        let next = Instant::now() + walked.took * REST;
        Self { tops, max, before: walked.held, free, due: max, next, walk: None }
    }

    /// Returns the bytes written, in blocks, if the last walk found more than the limit. Begins the next walk if one is due: the process
    /// then has another thread.
    pub fn exceeded(&mut self) -> Option<u64> {
        let Walked { held, took } = self.walked()?;
        let written = held.saturating_sub(self.before);
        self.next = Instant::now() + took * REST;
        self.due = self.lost() + self.max.saturating_sub(written).max(self.max / 16).max(STEP);
        (written > self.max).then_some(written)
    }

    /// Returns what a finished walk found. Begins a walk if one is due and none is under way.
    fn walked(&mut self) -> Option<Walked> {
        if let Some(done) = self.walk.take_if(|walk| walk.is_finished()) {
            // A walk that panicked found nothing; the next one will.
            return Some(done.join().unwrap_or(Walked { held: 0, took: TICK }));
        }
        if self.walk.is_some() || (self.next > Instant::now() && self.lost() < self.due) {
            return None;
        }
        let tops = Arc::clone(&self.tops);
        match std::thread::Builder::new().spawn(move || walk(&tops)) {
            Ok(begun) => {
                self.walk = Some(begun);
                None
            }
            // No thread can be had (RLIMIT_NPROC): measure here, while the run waits.
            Err(_) => Some(walk(&self.tops)),
        }
    }

    /// The bytes that were written, if they are more than the limit.
    pub fn over(&self) -> Option<u64> {
        Some(self.written()).filter(|written| *written > self.max)
    }

    /// The bytes of blocks that the command put into the uppers; for a mounted file, its growth. An open file without a name is not seen.
    pub fn written(&self) -> u64 {
        walk(&self.tops).held.saturating_sub(self.before)
    }

    /// The number of bytes that are no longer free since the start.
    fn lost(&self) -> u64 {
        self.free.saturating_sub(free(&self.tops))
    }
}

/// Ends the thread: a run forks while there is one thread, so none may be left to the next run.
impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(walk) = self.walk.take() {
            // Its result is no longer needed.
            let _found = walk.join();
        }
    }
}

/// The free bytes of the uppers' file system; 0 if unknown.
fn free(tops: &[Top]) -> u64 {
    let found = tops.first().and_then(|top| rustix::fs::statvfs(&top.path).ok());
    found.map_or(0, |fs: StatVfs| fs.f_bfree * fs.f_frsize)
}

fn walk(tops: &[Top]) -> Walked {
    let begun = Instant::now();
    let held = tops.iter().map(|top| blocks(&top.path).saturating_sub(top.copied)).sum();
    Walked { held, took: begun.elapsed() }
}

/// The bytes of the blocks of everything below a directory (`st_blocks` × 512: stat(3type)); a file with several names counts once.
/// Objects that vanish meanwhile, or can't be listed, count as nothing.
fn blocks(top: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut seen = HashSet::new();
    let found = walkdir::WalkDir::new(top).min_depth(1).into_iter().filter_map(Result::ok);
    let found = found.filter_map(|entry| entry.metadata().ok());
    let once = found.filter(|meta| meta.blocks() > 0 && (meta.is_dir() || meta.nlink() == 1 || seen.insert(meta.ino())));
    once.map(|meta| meta.blocks() * 512).sum()
}
