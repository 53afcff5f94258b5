//! Where what `--force` overwrites is kept, and what else nothing but a person may remove: `displaced/<generation>/`.

use super::journal::{Journal, displaced};
use super::reach::Reach;
use crate::error::{At, Error};
use crate::fs::Fs;

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
