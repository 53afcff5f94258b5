//! What a directory that can be no lower is put together from, as data: `places::split` chooses the pieces, `split` lays them out, `space::split` mounts them.

use crate::fs::dir::{Dir, Time};
use crate::fs::path::AbsPath;

/// What a split directory is put together from: a directory before what is in it.
#[derive(Debug, Clone, Default)]
pub(super) struct Split(pub Vec<Piece>);

/// One name in a split directory, or in one of its directories that are split, too.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Its path below the captured place.
    pub below: Vec<u8>,
    pub as_what: As,
}

/// What a name in a split directory becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    /// A directory with an overlay of its own.
    Overlay,
    /// A directory that has a mount below it.
    Split,
    /// What is mounted there, read-only; on a directory, or on a file.
    Mount { folder: bool },
    /// The real one, read-only: what the run could not change, or may not for its size.
    Real { folder: bool },
    /// A copy in the made-up lower.
    Copy,
}

/// A split directory whose lower and uppers are there.
#[derive(Debug)]
pub(super) struct LaidSplit {
    /// What could not be copied, and why: it is shown read-only.
    pub uncopied: Vec<(AbsPath, String)>,
    /// The pieces that are to be mounted.
    pub pieces: Vec<Piece>,
    /// The work directory of each overlay, named by the number of its piece.
    pub works: Dir,
}

/// In the upper of a directory that was made for it (P3): the mtime that it was given, `SECONDS.NS`. Of overlayfs' prefix, so that
/// the command does not see it, and it never is content.
pub(super) const LAID: &str = "recant.laid";

/// Value of the note.
pub(super) fn laid_at(mtime: Time) -> Vec<u8> {
    format!("{}.{}", { mtime.s }, mtime.ns).into_bytes()
}

/// The inverse.
pub(super) fn laid_time(value: &[u8]) -> Option<Time> {
    let (s, ns) = std::str::from_utf8(value).ok()?.split_once('.')?;
    Some(Time { s: s.parse().ok()?, ns: ns.parse().ok()? })
}

/// The path of the directory above, and the last name.
pub(super) fn parted(below: &[u8]) -> (&[u8], &[u8]) {
    let cut = below.iter().rposition(|b| *b == b'/');
    cut.map_or((b"", below), |at| (&below[..at], &below[at + 1..]))
}
