//! The pieces of a directory that can't be a lower, as data: `choose_pieces` chooses them, `lay_pieces` lays them out, `space::mount_pieces` mounts
//! them.

use std::rc::Rc;

use crate::fs::{AbsPath, Dir, Time};

/// The pieces of a split directory: each directory before its content.
#[derive(Debug, Clone, Default)]
pub struct Split(pub Vec<Piece>);

/// One name in a split directory, or in a directory of it that is split too.
#[derive(Debug, Clone)]
pub struct Piece {
    pub below: Vec<u8>,
    pub as_what: PieceKind,
}

/// The ways to show a name in a split directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// A directory with an overlay of its own.
    Overlay,
    /// A directory that has a mount below it.
    Split,
    /// The object mounted there, read-only; on a directory, or on a file.
    Mount { directory: bool },
    /// The real object, read-only: the run could not change it, or it is too large.
    Real { directory: bool },
    /// A copy in the made-up lower.
    Copy,
}

/// A split directory whose lower and uppers exist.
#[derive(Debug)]
pub struct LaidSplit {
    /// The paths that could not be copied, with the reason: they are shown read-only.
    pub uncopied: Vec<(AbsPath, String)>,
    /// The pieces that are to be mounted.
    pub pieces: Vec<LaidPiece>,
    /// The work directory of each overlay, named by the number of its piece.
    pub works: Dir,
}

/// A piece that is to be mounted.
#[derive(Debug)]
pub struct LaidPiece {
    pub piece: Piece,
    /// Its directories in the uppers of earlier steps, the newest first.
    pub sealed: Vec<Rc<Dir>>,
}

/// The note in the upper of a directory that was made for it (H7): the mtime that it was given, `SECONDS.NS`. It has overlayfs' prefix, so
/// the command does not see it, and it is never content.
pub const LAID: &str = "recant.laid";

pub fn laid_at(mtime: Time) -> Vec<u8> {
    format!("{}.{}", { mtime.s }, mtime.ns).into_bytes()
}

pub fn laid_time(value: &[u8]) -> Option<Time> {
    let (s, ns) = std::str::from_utf8(value).ok()?.split_once('.')?;
    Some(Time { s: s.parse().ok()?, ns: ns.parse().ok()? })
}

/// The path of the parent directory, and the last name.
pub fn parted(below: &[u8]) -> (&[u8], &[u8]) {
    let cut = below.iter().rposition(|b| *b == b'/');
    cut.map_or((b"", below), |at| (&below[..at], &below[at + 1..]))
}
