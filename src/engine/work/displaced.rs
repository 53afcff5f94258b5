//! `displaced/<generation>/`: keeps what `--force` overwrites, and whatever else only a person may remove.

use crate::engine::journal::{Journal, displaced};
use crate::engine::reach::Reach;
use crate::error::Error;
use crate::fs::Fs;

pub fn displaced_below(journal: &Journal) -> Vec<u8> {
    format!("displaced/{}", journal.head.generation + 1).into_bytes()
}

/// Makes that directory: it may exist from an earlier try, or from the operation itself.
pub fn make_directory(fs: &Fs, reach: &mut Reach, journal: &Journal) -> Result<(), Error> {
    let spot = displaced(journal.head.generation + 1);
    let named = reach.spot(&spot)?;
    match fs.mkdir(named.at(), 0o700) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    // D3: once something lies in it, its name is the only way there.
    Ok(fs.sync_dir(&named.dir)?)
}
