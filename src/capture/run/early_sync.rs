//! Writes out what a command writes while it still runs, so that the one sync at the run's end has little left to do. Nothing rests on it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::capture::place::mount_plan::Laid;
use crate::fs;
use crate::fs::Dir;

/// The interval at which the room on the store's file system is looked at.
pub const TICK: Duration = Duration::from_millis(50);

/// The growth at which writing out begins. Each time costs the command a wait for the file system's journal, which pays off only for what
/// takes long to write.
const STEP: Used = Used { bytes: 64 << 20, inodes: 10_000 };

/// The growth that is enough at the command's end: less is synced in no time.
const LAST: Used = Used { bytes: 1 << 20, inodes: 100 };

/// The rest between two looks through the uppers, as a multiple of a look's time.
const REST: u32 = 10;

/// The space in use, including bytes that wait for their blocks.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    bytes: u64,
    inodes: u64,
}

impl Used {
    /// True if it exceeds `before` by `step`, in bytes or inodes.
    fn is_beyond(self, before: Self, step: Self) -> bool {
        self.bytes >= before.bytes + step.bytes || self.inodes >= before.inodes + step.inodes
    }

    /// The lesser of both: after a removal, growth counts from the new level.
    fn min(self, now: Self) -> Self {
        Self { bytes: self.bytes.min(now.bytes), inodes: self.inodes.min(now.inodes) }
    }
}

/// The uppers, and the thread that writes them out.
///
/// Others' writes to the file system are not the run's: writing them out would cost time for nothing. But the file system's own count shows
/// for one call that nothing was written at all; the uppers are looked through only if it has grown.
#[derive(Debug)]
pub struct EarlySync {
    /// Opened for this alone: an error reported here is reported again to the final sync, which has its own descriptor.
    dir: Option<Dir>,
    uppers: Vec<PathBuf>,
    /// The space in use on the file system when the last thread began.
    before: Used,
    writing: Option<JoinHandle<LookResult>>,
    looked: LookResult,
    /// Tells the thread to write out once more before it ends.
    again: Arc<AtomicBool>,
}

/// The result of a look through the uppers.
#[derive(Debug, Clone, Copy, Default)]
struct LookResult {
    /// The space that they took when they were last written out.
    written: Used,
    /// The earliest time for the next look.
    next: Option<Instant>,
}

impl EarlySync {
    /// Prepares for a run that is about to begin. Uppers in memory are never written out.
    pub fn of(laid: &Laid) -> Self {
        let upper = laid.layers.first().filter(|_| laid.memory.is_none()).map(|layer| &layer.upper);
        // Without it only time is lost.
        let dir = upper.and_then(|upper| upper.open_below(b"").ok()).filter(Dir::readable);
        let before = dir.as_ref().and_then(used).unwrap_or_default();
        // The copies of mounted files are small, and made before the command starts.
        let uppers =
            laid.layers.iter().filter(|layer| layer.place.file.is_none()).map(|layer| layer.upper.path().to_owned()).collect();
        Self { dir, uppers, before, writing: None, looked: LookResult::default(), again: Arc::default() }
    }

    /// Begins to write out if enough was written since the last time, and that has ended.
    pub fn look(&mut self) {
        if self.writing.as_ref().is_none_or(JoinHandle::is_finished) {
            self.end();
            if self.looked.next.is_none_or(|next| next <= Instant::now()) {
                self.begin_from(STEP);
            }
        }
    }

    /// Begins to write out what the command wrote last, while its changes are read.
    pub fn finish(&mut self) {
        self.again.store(true, Ordering::Relaxed);
        if self.writing.as_ref().is_none_or(JoinHandle::is_finished) {
            self.end();
            self.begin_from(LAST);
        }
    }

    fn begin_from(&mut self, step: Used) {
        let Some((dir, now)) = self.dir.as_ref().and_then(|dir| Some((dir, used(dir)?))) else { return };
        if !now.is_beyond(self.before, step) {
            self.before = self.before.min(now);
            return;
        }
        self.before = now;
        let Ok(own) = dir.open_below(b"") else { return };
        self.again.store(false, Ordering::Relaxed);
        let again = Arc::clone(&self.again);
        let (uppers, mut looked) = (self.uppers.clone(), self.looked);
        let write_out = move || {
            looked.write_out(&uppers, step, &own);
            // If this is asked for a moment too late, the final sync does it.
            if again.swap(false, Ordering::Relaxed) {
                looked.write_out(&uppers, LAST, &own);
            }
            looked
        };
        self.writing = std::thread::Builder::new().spawn(write_out).ok();
    }

    fn end(&mut self) {
        if let Some(Ok(looked)) = self.writing.take().map(JoinHandle::join) {
            self.looked = looked;
        }
    }
}

impl LookResult {
    /// Writes out if the uppers hold so much more than the last time.
    fn write_out(&mut self, uppers: &[PathBuf], step: Used, dir: &Dir) {
        let begun = Instant::now();
        // A look costs by the number of objects: with a million, the next one is due after half as many more.
        let step = Used { inodes: step.inodes.max(self.written.inodes / 2), ..step };
        let held = held_in(uppers, |held| held.is_beyond(self.written, step));
        self.next = Some(Instant::now() + begun.elapsed() * REST);
        if held.is_beyond(self.written, step) {
            self.written = held;
            fs::write_all_out(dir);
        } else {
            self.written = self.written.min(held);
        }
    }
}

/// Ends the thread: a run forks while there is one thread, so none may be left to the next run.
impl Drop for EarlySync {
    fn drop(&mut self) {
        self.end();
    }
}

/// The space used below some directories, counted until it is `enough`. Whatever vanishes meanwhile, or can't be listed, counts as nothing.
fn held_in(directories: &[PathBuf], enough: impl Fn(Used) -> bool) -> Used {
    use std::os::unix::fs::MetadataExt;
    let below = |directory| walkdir::WalkDir::new(directory).min_depth(1).into_iter().filter_map(Result::ok);
    let mut held = Used::default();
    for entry in directories.iter().flat_map(below) {
        let blocks = entry.metadata().map_or(0, |meta| meta.blocks());
        held = Used { bytes: held.bytes + blocks * 512, inodes: held.inodes + 1 };
        if enough(held) {
            break;
        }
    }
    held
}

fn used(dir: &Dir) -> Option<Used> {
    let found = rustix::fs::fstatvfs(dir).ok()?;
    Some(Used {
        bytes: found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize,
        inodes: found.f_files.saturating_sub(found.f_ffree),
    })
}
