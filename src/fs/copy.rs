//! Copies content: a reflink if the file system has it, else data by copy_file_range(2), holes kept.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::dir::Entry;
use super::door::{Fs, tried};
use super::watch::On;
use crate::error::{At, IoError};

/// The way that content was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// Blocks are shared.
    Reflink,
    /// So many bytes of data were copied.
    Bytes(u64),
}

/// The most bytes that one call moves: keeps an interrupt from waiting long.
const PIECE: usize = 64 << 20;

impl Fs {
    /// Makes the empty file `to`, which lies at `at`, share all blocks of `from`: FICLONE, ioctl_ficlone(2). False if the file system cannot.
    pub fn reflink(&self, from: &File, to: &File, at: Entry<'_>) -> Result<bool, IoError> {
        let act = "share the blocks of";
        self.before("ficlone", On::Open(to.as_fd(), at.dir.path())).at(act, at)?;
        match rustix::fs::ioctl_ficlone(to, from) {
            Ok(()) => Ok(true),
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOTTY | Errno::PERM | Errno::TXTBSY) => {
                Ok(false)
            }
            Err(error) => Err(error).at(act, at),
        }
    }

    /// Copies all content of `from` (read from its start) to the empty file `to`, which lies at `at`. Memory does not depend on the size. A file that proves
    /// shorter than its size ends the copy early; the caller compares hashes.
    pub fn copy(&self, from: &File, to: &File, at: Entry<'_>) -> Result<Copied, IoError> {
        tried("copy the content to", at, || {
            self.before("copy", On::Open(to.as_fd(), at.dir.path()))?;
            copy_all(from, to)
        })
    }
}

fn copy_all(from: &File, to: &File) -> io::Result<Copied> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(Copied::Reflink);
    }
    let stat = super::dir::stat_of(from)?;
    let size = stat.size;
    // As many blocks as bytes: no holes to look for, and the last byte written is the end.
    if size > 0 && stat.blocks.saturating_mul(512) >= size {
        return copy_range(from, to, 0, size).map(Copied::Bytes);
    }
    let mut copied = 0;
    let mut at = 0;
    while let Some((data, hole)) = next_extent(from, at, size)? {
        copied += copy_range(from, to, data, hole)?;
        at = hole.max(at + 1);
    }
    rustix::fs::ftruncate(to, size)?;
    Ok(Copied::Bytes(copied))
}

/// The next range of `file` with content, at or behind the byte `at` and before `size`: its start and end. Between ranges are holes. A file
/// system that can't tell returns all the rest: lseek(2), SEEK_DATA.
pub fn next_extent(file: &File, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= size {
        return Ok(None);
    }
    let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        // It may have grown behind `size` meanwhile.
        Ok(data) if data >= size => return Ok(None),
        Ok(data) => data,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL) => at,
        Err(error) => return Err(error.into()),
    };
    let hole = match rustix::fs::seek(file, SeekFrom::Hole(data)) {
        Ok(hole) => hole.min(size),
        // Or was cut before `data`.
        Err(Errno::INVAL | Errno::NXIO) => size,
        Err(error) => return Err(error.into()),
    };
    Ok(Some((data, hole)))
}

fn copy_range(from: &File, to: &File, start: u64, end: u64) -> io::Result<u64> {
    let (mut read_at, mut write_at) = (start, start);
    while read_at < end {
        super::interrupt::check()?;
        let piece = usize::try_from(end - read_at).unwrap_or(PIECE).min(PIECE);
        match rustix::fs::copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), piece) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                return Ok(read_at - start + copy_bytes(from, to, read_at, end)?);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(read_at - start)
}

fn copy_bytes(from: &File, to: &File, start: u64, end: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0; 256 << 10];
    let mut at = start;
    while at < end {
        super::interrupt::check()?;
        let want = usize::try_from(end - at).unwrap_or(buffer.len()).min(buffer.len());
        match from.read_at(&mut buffer[..want], at) {
            Ok(0) => break,
            Ok(got) => {
                to.write_all_at(&buffer[..got], at)?;
                at += got as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(at - start)
}
