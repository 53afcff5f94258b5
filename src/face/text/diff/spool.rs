//! Keeps the parts of a page on the disk, in a file without a name that is removed with this process.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::error::{At, Error};
use crate::fs::{Dir, Fs, now};

/// Bytes of a [`Spool`] that lie in memory.
const IN_MEMORY: usize = 256 << 10;

/// Bytes of any length: the beginning in memory, the rest in a file without a name.
pub struct Spool<'f> {
    fs: &'f Fs,
    head: Vec<u8>,
    rest: Option<File>,
}

impl<'f> Spool<'f> {
    pub fn new(fs: &'f Fs) -> Self {
        Self { fs, head: Vec::new(), rest: None }
    }

    /// Adds bytes. Errors: there is no room.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (first, bytes) = bytes.split_at(bytes.len().min(IN_MEMORY - self.head.len()));
        self.head.extend_from_slice(first);
        if bytes.is_empty() {
            return Ok(());
        }
        let mut file = match &self.rest {
            Some(file) => file,
            None => self.rest.insert(unnamed(self.fs)?),
        };
        Ok(file.write_all(bytes).at("write a page into", directory().display())?)
    }

    pub fn read(&self) -> impl BufRead + '_ {
        BufReader::with_capacity(64 << 10, Reading { spool: self, at: 0 })
    }
}

struct Reading<'s> {
    spool: &'s Spool<'s>,
    at: u64,
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let in_memory = usize::try_from(self.at).ok().and_then(|at| self.spool.head.get(at..)).unwrap_or_default();
        let count = match (in_memory, &self.spool.rest) {
            ([], None) => 0,
            ([], Some(file)) => file.read_at(buffer, self.at - self.spool.head.len() as u64)?,
            (mut bytes, _) => bytes.read(buffer)?,
        };
        self.at += count as u64;
        Ok(count)
    }
}

fn directory() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

/// Makes a file without a name, which is removed however this process ends.
fn unnamed(fs: &Fs) -> Result<File, Error> {
    use rustix::io::Errno;
    let dir = Dir::open(&directory()).at("open the directory for temporary files", directory().display())?;
    let none = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::NOENT].map(|errno| Some(errno.raw_os_error()));
    match fs.create_unnamed(dir.at(b"."), 0o600) {
        Err(error) if none.contains(&error.errno()) => named_for_a_moment(fs, &dir),
        file => Ok(file?),
    }
}

/// Makes such a file if the file system cannot. Killed between the two calls, it leaves an empty file.
fn named_for_a_moment(fs: &Fs, dir: &Dir) -> Result<File, Error> {
    let name = format!(".recant-{}-{}", std::process::id(), now().ns).into_bytes();
    let at = dir.at(&name);
    // Never opens an existing file: in a directory of all users the name may be somebody's.
    let file = fs.create(at, 0o600)?;
    fs.unlink_if_there(at)?;
    Ok(file)
}
