//! A stream that several machines are to get, on the disk in the meantime: a file without a name, which goes with this process.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use super::Call;
use super::problem::Problem;
use crate::error::At;
use crate::fs::dir::Dir;
use crate::fs::now;

/// A whole stream, to be read as often as it is wanted.
pub struct Spool {
    file: File,
}

impl Spool {
    /// What `fill` writes.
    pub fn of(call: &Call, fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), Problem>) -> Result<Self, Problem> {
        let folder = std::env::var_os("TMPDIR").filter(|path| !path.is_empty()).map_or_else(|| "/var/tmp".into(), PathBuf::from);
        let dir = Dir::open(&folder).at("open the folder for what several machines get", folder.display())?;
        let file = unnamed(call, &dir)?;
        let mut writer = BufWriter::with_capacity(256 << 10, &file);
        fill(&mut writer)?;
        writer.flush().at("write what several machines get into", folder.display())?;
        drop(writer);
        Ok(Self { file })
    }

    /// The stream from its beginning.
    pub fn open(&self) -> io::Result<io::BufReader<File>> {
        // A description of its own, with a position of its own.
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(io::BufReader::with_capacity(256 << 10, File::open(path)?))
    }
}

/// A file that has no name, whenever this process ends.
fn unnamed(call: &Call, dir: &Dir) -> Result<File, Problem> {
    use rustix::io::Errno;
    let none = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::NOENT].map(|errno| Some(errno.raw_os_error()));
    match call.fs.create_unnamed(dir.at(b"."), 0o600) {
        Err(error) if none.contains(&error.raw_os_error()) => named_for_a_moment(call, dir),
        file => Ok(file.at("make a file in", dir.path().display())?),
    }
}

/// Where the file system has none: killed between the two calls it leaves an empty one.
fn named_for_a_moment(call: &Call, dir: &Dir) -> Result<File, Problem> {
    let name = format!(".recant-{}-{}", std::process::id(), now().ns).into_bytes();
    let at = dir.at(&name);
    // Made anew, or refused: in a folder of everybody's the name may be somebody's.
    let file = call.fs.create(at, 0o600).at("make", at)?;
    call.fs.unlink_if_there(at).at("remove", at)?;
    Ok(file)
}
