//! SHA-256 of content: names a blob and tells whether content is the same.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::fs::{interrupt, next_extent};

/// Bytes that are read at once.
const PIECE: u64 = 128 << 10;

/// Bytes of a file from which it is asked for its holes, which costs two calls.
const MAY_HAVE_HOLES: u64 = 1 << 20;

/// Bytes from which on somebody may ask for an end before they are hashed: a tenth of a second.
const LONG: u64 = 64 << 20;

/// SHA-256 of content alone, never of metadata. Shown and stored as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Hashes bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Hashes all content of an open file of `size` bytes, from its start, at most 128 KiB at a time. A file of another size is read to
    /// its end or to `size`, whichever comes first: the caller compares the size again.
    ///
    /// Skips the holes of a large file and hashes them as zeros, at the speed of SHA-256, some 2 GB a second: the same bytes have the
    /// same hash with and without holes. This moves the descriptor's offset.
    pub fn of_file(file: &File, size: u64) -> io::Result<Self> {
        if size >= MAY_HAVE_HOLES {
            return Self::of_extents(file, size);
        }
        let mut hashing = Hashing::of(size);
        hashing.read(file, 0, size)?;
        Ok(hashing.hasher.finish())
    }

    /// Hashes a file without reading its holes, which may be large. Moves the descriptor's offset.
    pub fn of_extents(file: &File, size: u64) -> io::Result<Self> {
        // A file has no zeros behind its end.
        let size = size.min(file.metadata()?.len());
        let (mut hashing, mut at) = (Hashing::of(size), 0);
        while at < size {
            let (data, end) = next_extent(file, at, size)?.unwrap_or((size, size));
            hashing.hasher.zeros(data - at)?;
            if !hashing.read(file, data, end)? {
                break;
            }
            at = end;
        }
        Ok(hashing.hasher.finish())
    }

    /// Parses 64 lower-case hex digits, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return None;
        }
        let nibble = |b: u8| match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        for (out, pair) in hash.iter_mut().zip(bytes.chunks_exact(2)) {
            *out = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(hash))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Hash::parse(&text).ok_or_else(|| D::Error::custom("not 64 hex digits of a SHA-256"))
    }
}

/// Hashes what is written through it.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds so many zeros: a hole. Of a large one this may take hours: an operation that stops on request does so here too.
    ///
    /// # Errors
    /// It was asked to stop.
    pub fn zeros(&mut self, mut count: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        let is_long = count > LONG;
        while count > 0 {
            if is_long {
                interrupt::check()?;
            }
            let piece = count.min(ZEROS.len() as u64);
            self.0.update(&ZEROS[..usize::try_from(piece).unwrap_or(ZEROS.len())]);
            count -= piece;
        }
        Ok(())
    }

    /// Returns the hash of all that was added.
    pub fn finish(self) -> Hash {
        Hash(self.0.finalize().into())
    }
}

/// A hash under way, and the buffer that pieces of a file are read to.
struct Hashing {
    hasher: Hasher,
    buffer: Vec<u8>,
}

impl Hashing {
    fn of(size: u64) -> Self {
        Self { hasher: Hasher::default(), buffer: vec![0; usize::try_from(size.clamp(1, PIECE)).unwrap_or(1)] }
    }

    fn piece(&mut self, left: u64) -> &mut [u8] {
        let length = usize::try_from(left).map_or(self.buffer.len(), |left| left.min(self.buffer.len()));
        &mut self.buffer[..length] // no longer than the buffer is
    }

    /// Reads from `at` to `end`. False if the file ends before that.
    fn read(&mut self, file: &File, mut at: u64, end: u64) -> io::Result<bool> {
        let is_long = end.saturating_sub(at) > LONG;
        while at < end {
            if is_long {
                interrupt::check()?;
            }
            match file.read_at(self.piece(end - at), at) {
                Ok(0) => return Ok(false),
                Ok(got) => {
                    self.hasher.update(&self.buffer[..got]); // as much as was read into it
                    at += got as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_64_lower_case_hex_digits_and_nothing_else() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Hash::of(b"").to_string(), empty);
        assert_eq!(Hash::parse(empty), Some(Hash::of(b"")));
        for bad in ["", "../../etc/passwd", &empty[1..], &empty.to_uppercase(), &format!("{}/", &empty[1..])] {
            assert_eq!(Hash::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_file_of_another_size_is_read_to_its_end_or_as_far_as_is_asked_for() {
        let file = tempfile::tempfile().expect("a file");
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| u8::try_from(n % 251).expect("small")).collect();
        file.write_all_at(&bytes, 0).expect("a write");
        for (size, read) in [(0, 0), (1, 1), (131_073, 131_073), (300_000, 300_000), (300_001, 300_000), (1 << 40, 300_000)] {
            let hash = Hash::of_file(&file, size).expect("its hash");
            assert_eq!(hash.to_string(), Hash::of(&bytes[..read]).to_string(), "{size}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a file of its own")]
    fn a_hole_counts_as_the_zeros_that_it_is_also_where_the_file_has_grown_since() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 20).expect("a hole");
        file.write_all_at(b"some", 300_000).expect("a write");
        // Behind the requested part, in the middle of it, and with a hole at the end.
        let mut bytes = vec![0; 1 << 20];
        bytes[300_000..300_004].copy_from_slice(b"some");
        for size in [0, 1, 8192, 299_000, 300_002, 400_000, 1 << 20] {
            let hash = Hash::of_extents(&file, size as u64).expect("its hash");
            assert_eq!(hash.to_string(), Hash::of(&bytes[..size]).to_string(), "{size}");
        }
    }
}
