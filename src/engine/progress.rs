//! How far an operation is, for whoever waits.

use crate::fs::AbsPath;

/// Sees how far an operation is: the phase, how many of how many are done.
pub trait Progress: Sync {
    /// Called often; must be cheap.
    fn at(&self, phase: &'static str, done: usize, of: usize);

    /// Called before the content of `path` is hashed, if it is so large that this takes long. Nothing has been changed by then, so any
    /// signal ends recant at once.
    fn hashes(&self, path: &AbsPath, bytes: u64);
}

/// Bytes of content that take long to hash: ten seconds at the speed of SHA-256, more where they are read from a disk.
pub const TAKES_LONG: u64 = 16 << 30;

/// Shows the progress to nobody.
pub struct Unwatched;

impl Progress for Unwatched {
    fn at(&self, _: &'static str, _: usize, _: usize) {}
    fn hashes(&self, _: &AbsPath, _: u64) {}
}
