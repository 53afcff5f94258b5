//! `--max-size`: how much a command may write. The uppers are looked at while it runs, so that one that writes without end is ended before
//! the disk is full. The free space of the store's file system, one cheap call, tells when a look is worth its time.

use std::path::Path;
use std::time::Duration;

use rustix::fs::StatVfs;

use super::layout::Layer;
use super::plan::Laid;
use crate::fs::dir::Dir;

/// How often the free space is looked at: a disk that takes 1 GiB/s lets a command write 20 MiB too many.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Measures at least when so much more is used.
const STEP: u64 = 1 << 20;

/// What a run has written so far, against what it may.
pub(super) struct Meter<'a> {
    laid: &'a Laid,
    max: u64,
    /// What the uppers held at the start: of earlier runs in the session.
    before: u64,
    /// Free bytes at the start.
    free: u64,
    /// The next look is due when so many bytes fewer are free.
    due: u64,
}

impl<'a> Meter<'a> {
    /// From now on.
    pub fn new(laid: &'a Laid, max: u64) -> Self {
        let mut meter = Self { laid, max, before: 0, free: 0, due: 0 };
        meter.before = meter.written();
        meter.free = meter.free_now();
        meter.due = max;
        meter
    }

    /// What was written, in bytes of blocks, if that is more than it may be. Others use space too: their share only makes
    /// for more looks.
    pub fn exceeded(&mut self) -> Option<u64> {
        let used = self.free.saturating_sub(self.free_now());
        if used < self.due {
            return None;
        }
        let written = self.written();
        self.due = used + self.max.saturating_sub(written).max(STEP);
        (written > self.max).then_some(written)
    }

    /// How many bytes may be written.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// What the command has put into the uppers, in bytes of blocks; of a mounted file, by how much it has grown. An open file without a name is not seen.
    pub fn written(&self) -> u64 {
        let of_the_command = |layer: &Layer| {
            let copied = layer.file.as_ref().map_or(0, |(_, bytes)| *bytes);
            blocks(layer.upper.path()).saturating_sub(copied)
        };
        self.laid.layers.iter().map(of_the_command).sum::<u64>().saturating_sub(self.before)
    }

    fn free_now(&self) -> u64 {
        let held = self.laid.layers.first().map(|layer| &layer.upper);
        held.and_then(|upper: &Dir| rustix::fs::statvfs(upper.path()).ok()).map_or(0, |fs: StatVfs| fs.f_bfree * fs.f_frsize)
    }
}

/// Bytes of the blocks of all files below a folder; a file with two names counts twice. What vanishes meanwhile, or can't
/// be listed, counts as nothing.
fn blocks(top: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let found = walkdir::WalkDir::new(top).min_depth(1).into_iter().filter_map(Result::ok);
    found.filter_map(|entry| entry.metadata().ok()).filter(|meta| meta.is_file()).map(|meta| meta.blocks() * 512).sum()
}
