//! What a decision keeps: objects below `displaced/<generation>/`, and the manifest that tells of them.

use super::Error;
use super::job::Decision;
use super::journal::{Journal, displaced};
use super::reach::Reach;
use super::step::Act;
use crate::checkpoint::manifest::{Kept, Original, Writing, name_written};
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::Entry;
use crate::fs::path::AbsPath;
use crate::tree::look::{self, Seen};
use crate::tree::state::What;

/// Below the session's folder.
pub(super) fn displaced_below(journal: &Journal) -> Vec<u8> {
    format!("displaced/{}", journal.head.generation + 1).into_bytes()
}

/// The folder of what is kept: it may be there from an earlier try, or from the operation itself.
pub(super) fn make_folder(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    let spot = displaced(journal.head.generation + 1);
    let named = reach.spot(&spot).at("open the folder of", &spot)?;
    match fs.mkdir(named.at(), 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => made.at("make the folder", named.at())?,
    }
    // D3: once something lies in it, its name is the only way there.
    Ok(fs.sync_dir(&named.dir).at("sync", named.dir.path().display())?)
}

/// What is kept has a manifest of its own; of an inode that stayed it is the metadata.
pub(super) fn write_displaced(
    fs: &Fs,
    reach: &mut Reach,
    journal: &Journal,
    how: Decision,
) -> Result<Vec<(AbsPath, String)>, Error> {
    let generation = journal.head.generation + 1;
    let below = displaced_below(journal);
    let folder = reach.held(&below).at("open the folder", crate::fs::path::Shown(&below))?;
    let (mut rows, mut kept) = (Writing::begin(fs, &folder)?, Vec::new());
    for item in &journal.items {
        let row = |state, kept| Original { n: item.n, path: item.path.clone(), state, kept, put: None };
        if item.act == Act::SetMeta && how == Decision::Force {
            rows.original(&row(item.to.as_ref().map(|found| found.state.clone()), Kept::Metadata))?;
            continue;
        }
        let name = item.n.to_string();
        let at = folder.at(name.as_bytes());
        let Some(mut seen) = look::look(at).at("look at", at)? else { continue };
        read_digest(&mut seen, at)?;
        rows.original(&row(Some(seen.state), Kept::Displaced { generation }))?;
        // What was written while that was kept lies beside it.
        for name in std::iter::once(name.clone()).chain((1..).map(|k| format!("{name}.{k}"))) {
            if folder.at(name.as_bytes()).stat().at("look at", folder.at(name.as_bytes()))?.is_none() {
                break;
            }
            kept.push((item.path.clone(), format!("displaced/{generation}/{name}")));
        }
    }
    let file = rows.end(std::iter::empty())?;
    fs.sync(&file, folder.path()).at("sync", folder.path().display())?; // D1
    name_written(fs, &folder)?;
    fs.sync_dir(&folder).at("sync", folder.path().display())?; // D2
    Ok(kept)
}

/// Takes the digest of what was looked at, if it is a file. One that may not be read is kept all the same, as it is only moved.
pub(super) fn read_digest(seen: &mut Seen, at: Entry<'_>) -> Result<(), Error> {
    if !matches!(seen.state.what, What::File { .. }) {
        return Ok(());
    }
    match look::digest(at) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => {}
        read => seen.set_digest(read.at("read", at)?.0),
    }
    Ok(())
}
