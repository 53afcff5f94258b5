//! Compares the content of two objects.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::fs::Entry;
use crate::tree::{State, What};

/// Tells whether two objects of one kind have the same content, target or device number. Compares files byte by byte, except two git
/// indexes that mean the same. An unreadable file counts as different: then it is put whole, and nothing is lost.
pub fn same_content(old: &State, new: &State, real: Entry<'_>, upper: Entry<'_>) -> bool {
    if old.means_same(new) {
        return true;
    }
    match (&old.what, &new.what) {
        (What::File { size: a, .. }, What::File { size: b, .. }) => {
            a == b && (*a == 0 || same_bytes(real, upper, *a).unwrap_or(false))
        }
        (a, b) => a == b,
    }
}

const PIECE: usize = 128 << 10;

fn same_bytes(a: Entry<'_>, b: Entry<'_>, size: u64) -> io::Result<bool> {
    let (Ok(a), Ok(b)) = (a.open_file(), b.open_file()) else { return Ok(false) };
    let (mut left, mut right) = (vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE))], Vec::new());
    right.resize(left.len(), 0);
    // Where both have a hole, nothing has to be read. In a small file, finding holes takes as long as reading.
    let may_have_holes = size > PIECE as u64;
    let mut at = 0;
    while at < size {
        if may_have_holes {
            at = at.max(next_data(&a, at, size)?.min(next_data(&b, at, size)?));
        }
        let (got, other) = (fill(&a, &mut left, at)?, fill(&b, &mut right, at)?);
        if left[..got] != right[..other] {
            return Ok(false);
        }
        if got == 0 {
            break;
        }
        at += got as u64;
    }
    Ok(true)
}

/// The offset of the next data: `size` if there is none.
fn next_data(file: &File, at: u64, size: u64) -> io::Result<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(data),
        Err(Errno::NXIO) => Ok(size),
        Err(Errno::INVAL) => Ok(at),
        Err(error) => Err(error.into()),
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
