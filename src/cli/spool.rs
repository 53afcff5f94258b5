//! A stream that several machines are to get, on the disk in the meantime: a file of the store without a name, which goes with this process.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;

use super::Call;
use super::problem::Problem;
use crate::error::At;
use crate::session::store::Store;

/// A whole stream, to be read as often as it is wanted.
pub struct Spool {
    file: File,
}

impl Spool {
    /// What `fill` writes.
    pub fn of(
        call: &Call,
        store: &Store,
        fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        // No other process of this number is alive: what has the name is what a kill left.
        let name = format!(".spool-{}", std::process::id()).into_bytes();
        let at = store.dir.at(&name);
        call.fs.unlink_if_there(at).at("remove", at)?;
        let file = call.fs.create(at, 0o600).at("make", at)?;
        call.fs.unlink_if_there(at).at("remove", at)?;
        let mut writer = BufWriter::with_capacity(256 << 10, &file);
        fill(&mut writer)?;
        writer.flush().at("write", at)?;
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
