//! Keeps streams on the disk, in a file without a name that is removed with this process: the input for several machines,
//! the output of each, and the parts of a page.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::problem::Problem;
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::Dir;
use crate::fs::now;

/// A whole stream, which can be read several times.
pub struct Spool {
    file: File,
}

impl Spool {
    /// Keeps what `fill` writes.
    pub fn of(fs: &Fs, fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), Problem>) -> Result<Self, Problem> {
        let file = unnamed(fs)?;
        let mut writer = BufWriter::with_capacity(256 << 10, &file);
        fill(&mut writer)?;
        writer.flush().at("write what several machines get into", directory().display())?;
        drop(writer);
        Ok(Self { file })
    }

    /// Opens the stream at its beginning.
    pub fn open(&self) -> io::Result<BufReader<File>> {
        // A file description of its own, with its own position.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(BufReader::with_capacity(256 << 10, File::open(path)?))
    }
}

/// Bytes of a [`Kept`] that lie in memory.
const IN_MEMORY: usize = 256 << 10;

/// Output of any length: the beginning in memory, the rest in a file without a name.
pub struct Kept<'f> {
    fs: &'f Fs,
    head: Vec<u8>,
    rest: Option<File>,
    /// Bytes in `rest`.
    more: u64,
    lost: Option<Problem>,
}

impl<'f> Kept<'f> {
    /// Begins with nothing.
    pub fn new(fs: &'f Fs) -> Self {
        Self { fs, head: Vec::new(), rest: None, more: 0, lost: None }
    }

    /// Adds bytes. Errors: there is no room; only the beginning is kept then, to free the disk.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.lost.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let (first, bytes) = bytes.split_at(bytes.len().min(IN_MEMORY - self.head.len()));
        self.head.extend_from_slice(first);
        if let Err(problem) = self.spool(bytes) {
            (self.rest, self.more, self.lost) = (None, 0, Some(problem));
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    fn spool(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut file = match &self.rest {
            Some(file) => file,
            None => self.rest.insert(unnamed(self.fs)?),
        };
        file.write_all(bytes).at("write what is printed into", directory().display())?;
        self.more += bytes.len() as u64;
        Ok(())
    }

    /// The reason why its end is missing, if it is.
    pub fn lost(&self) -> Option<&Problem> {
        self.lost.as_ref()
    }

    /// Takes that reason.
    pub fn take_lost(&mut self) -> Option<Problem> {
        self.lost.take()
    }

    /// Its beginning.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Its last `most` bytes.
    pub fn tail(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let at = (self.head.len() as u64 + self.more).saturating_sub(most);
        Reading { kept: self, at }.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A reader of all of it.
    pub fn read(&self) -> impl BufRead + '_ {
        BufReader::with_capacity(64 << 10, Reading { kept: self, at: 0 })
    }
}

struct Reading<'k> {
    kept: &'k Kept<'k>,
    at: u64,
}

impl Read for Reading<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let in_memory = usize::try_from(self.at).ok().and_then(|at| self.kept.head.get(at..)).unwrap_or_default();
        let count = match (in_memory, &self.kept.rest) {
            ([], None) => 0,
            ([], Some(file)) => file.read_at(buffer, self.at - self.kept.head.len() as u64)?,
            (mut bytes, _) => bytes.read(buffer)?,
        };
        self.at += count as u64;
        Ok(count)
    }
}

/// Reads the next line with its end, or its first `most` bytes; `None` at the end.
pub fn piece(from: &mut impl BufRead, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(most).read_until(b'\n', &mut line)?;
    Ok((!line.is_empty()).then_some(line))
}

fn directory() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

/// Makes a file without a name, which is removed however this process ends.
fn unnamed(fs: &Fs) -> Result<File, Problem> {
    use rustix::io::Errno;
    let dir = Dir::open(&directory()).at("open the directory for temporary files", directory().display())?;
    let none = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::NOENT].map(|errno| Some(errno.raw_os_error()));
    match fs.create_unnamed(dir.at(b"."), 0o600) {
        Err(error) if none.contains(&error.errno()) => named_for_a_moment(fs, &dir),
        file => Ok(file?),
    }
}

/// Makes such a file if the file system cannot. Killed between the two calls, it leaves an empty file.
fn named_for_a_moment(fs: &Fs, dir: &Dir) -> Result<File, Problem> {
    let name = format!(".recant-{}-{}", std::process::id(), now().ns).into_bytes();
    let at = dir.at(&name);
    // Never opens an existing file: in a directory of all users the name may be somebody's.
    let file = fs.create(at, 0o600)?;
    fs.unlink_if_there(at)?;
    Ok(file)
}
