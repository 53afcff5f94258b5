//! Marks of commands that are to be held: made before a command is handed to its agent changed, removed by the run that holds it. One that
//! is still there afterwards tells that something else was run.
//!
//! In the store: `agents/held/<digest>`, empty, the digest being that of the agent's name for the command.

use super::receipt::made;
use crate::error::Error;
use crate::fs::Fs;
use crate::session::store::Store;
use crate::tree::hash::Hash;

const DIRECTORY: &[u8] = b"agents/held";

/// Makes the mark of a command. Not durable: a power cut ends the agent, too.
///
/// # Errors
/// It cannot be made.
pub fn make(fs: &Fs, store: &Store, id: &str) -> Result<(), Error> {
    let dir = made(fs, store, DIRECTORY)?;
    Ok(fs.replace_later(dir.at(&name(id)), b"")?)
}

/// Removes the mark of a command; true if it was there, or if that cannot be told.
pub fn take(fs: &Fs, store: &Store, id: &str) -> bool {
    let removed = store.dir.open_below(DIRECTORY).and_then(|dir| fs.unlink(dir.at(&name(id))));
    !matches!(removed, Err(error) if error.leads_nowhere())
}

fn name(id: &str) -> Vec<u8> {
    format!("{:.32}", Hash::of(id.as_bytes()).to_string()).into_bytes()
}
