//! The seal: makes all that an operation has done durable, and gives its generation its name (I5).

use std::fs::File;

use super::records;
use super::sync::{NEW_HEADER, sync_touched};
use crate::checkpoint::{Former, name_written};
use crate::engine::journal::Journal;
use crate::engine::reach::Reach;
use crate::error::{At, Error};
use crate::fs::{Fs, Time};
use crate::session::{Session, Store, header_bytes};

/// Writes the next manifest and header, each whole under another name and durable with every change. `put` has, for each item, the ctime
/// right after it was put, where known.
pub fn write_facts(
    fs: &Fs,
    session: &Session,
    reach: &mut Reach,
    journal: &Journal,
    put: Option<&[Option<Time>]>,
) -> Result<(), Error> {
    let directory = records::directory(session)?;
    let manifest = records::write_manifest(fs, session, journal, &directory, put)?;
    Former::new(fs, &directory, journal.head.generation).keep()?;
    records::write_displaced(fs, reach, journal)?;
    let header = write_header(fs, session, journal)?;
    sync_touched(fs, reach, journal, &[(manifest, &directory), (header, &session.dir)])
}

fn write_header(fs: &Fs, session: &Session, journal: &Journal) -> Result<File, Error> {
    let temp = session.dir.at(NEW_HEADER);
    fs.unlink_if_there(temp)?;
    let file = fs.create(temp, 0o600)?;
    fs.write(&file, &header_bytes(&journal.head.header), temp)?;
    Ok(file)
}

/// Renames the header: the commit point. Before it a crash means undo, after it settle. A rename(2) that fails has not been done.
pub fn rename_header(fs: &Fs, session: &Session) -> Result<(), Error> {
    let (temp, at) = (session.dir.at(NEW_HEADER), session.dir.at(b"session.json"));
    Ok(fs.rename_over(temp, at).at("replace", at)?)
}

/// Makes the manifest's name and the line of the log durable together with the header's name. Until then the former manifest is kept, and
/// the journal tells which one counts.
pub fn make_seal_last(fs: &Fs, store: &Store, session: &Session, journal: &Journal) -> Result<Option<String>, Error> {
    let directory = records::directory(session)?;
    name_written(fs, &directory)?;
    let noted = records::note_sealed(fs, store, journal);
    fs.sync_dir(&session.dir)?; // D2, I2
    fs.sync_dir(&directory)?; // D2: before the former one goes, and the journal
    Ok(noted.err().as_ref().map(records::log_failed))
}
