//! `--max-size`: how much a command may write. The uppers are measured while it runs, so that one that writes without end is ended before
//! the disk is full.
//!
//! What the uppers hold decides, never what the disk has lost: somebody else may free as much as the command writes. They are walked
//! now and then, by a thread of its own, for a few percent of the run's time. The free space of their file system only tells when a walk is due at once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::StatVfs;

use super::layout::Layer;
use super::plan::Laid;

/// How often it is asked whether a walk is due: a disk that takes 1 GiB/s lets a command write 20 MiB too many.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Between two walks lies so many times the time that one took: they cost at most 4 % of a run.
const REST: u32 = 25;

/// The least loss of free space, in bytes, that makes a walk due before its time.
const STEP: u64 = 1 << 20;

/// What a run has written so far, against what it may.
pub(super) struct Meter {
    tops: Arc<[Top]>,
    max: u64,
    /// What the uppers held at the start, in bytes: of earlier runs in the session.
    before: u64,
    /// Free bytes at the start.
    free: u64,
    /// A walk is due when so many bytes fewer are free.
    due: u64,
    /// A walk is due then.
    next: Instant,
    walk: Option<JoinHandle<Walked>>,
}

/// An upper.
struct Top {
    path: PathBuf,
    /// Of a mounted file: what its copy took, in bytes, before the command was there.
    copied: u64,
}

/// What a walk has found.
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

    /// What was written, in bytes of blocks, if the last walk found more than may be. Begins the next walk where one is due: the
    /// process has another thread then.
    pub fn exceeded(&mut self) -> Option<u64> {
        let Walked { held, took } = self.walked()?;
        let written = held.saturating_sub(self.before);
        self.next = Instant::now() + took * REST;
        self.due = self.lost() + self.max.saturating_sub(written).max(self.max / 16).max(STEP);
        (written > self.max).then_some(written)
    }

    /// What a walk that has ended found. Begins one where it is due and none is under way.
    fn walked(&mut self) -> Option<Walked> {
        if let Some(done) = self.walk.take_if(|walk| walk.is_finished()) {
            // A walk that panicked found nothing; the next one tells.
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
            // None can be had (RLIMIT_NPROC): it is measured here, and the run waits for it.
            Err(_) => Some(walk(&self.tops)),
        }
    }

    /// How many bytes may be written.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// What the command has put into the uppers, in bytes of blocks; of a mounted file, by how much it has grown. An open file without a name is not seen.
    pub fn written(&self) -> u64 {
        walk(&self.tops).held.saturating_sub(self.before)
    }

    /// How many bytes fewer are free than at the start.
    fn lost(&self) -> u64 {
        self.free.saturating_sub(free(&self.tops))
    }
}

/// A run forks while there is one thread: none may be left to the next.
impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(walk) = self.walk.take() {
            // What it found is of no use any more.
            let _found = walk.join();
        }
    }
}

/// Free bytes of the uppers' file system; 0 where that can't be told.
fn free(tops: &[Top]) -> u64 {
    let found = tops.first().and_then(|top| rustix::fs::statvfs(&top.path).ok());
    found.map_or(0, |fs: StatVfs| fs.f_bfree * fs.f_frsize)
}

/// Measures all uppers.
fn walk(tops: &[Top]) -> Walked {
    let begun = Instant::now();
    let held = tops.iter().map(|top| blocks(&top.path).saturating_sub(top.copied)).sum();
    Walked { held, took: begun.elapsed() }
}

/// Bytes of the blocks of all that lies below a directory (`st_blocks` × 512: stat(3type)); a file with several names counts once.
/// What vanishes meanwhile, or can't be listed, counts as nothing.
fn blocks(top: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut seen = HashSet::new();
    let found = walkdir::WalkDir::new(top).min_depth(1).into_iter().filter_map(Result::ok);
    let found = found.filter_map(|entry| entry.metadata().ok());
    let once = found.filter(|meta| meta.blocks() > 0 && (meta.is_dir() || meta.nlink() == 1 || seen.insert(meta.ino())));
    once.map(|meta| meta.blocks() * 512).sum()
}
