//! Keeps what the files that a run changed held before, with its hash. By the hash a commit tells a file that was only touched since from
//! one that was written to; a merge begins with the content.
//!
//! A file that cannot be kept is no loss: it is told by its fingerprint, as those of a larger run are.

use std::fs::File;
use std::io;

use crate::error::Error;
use crate::fs::lease::lease;
use crate::fs::{Dir, Fs, Writers, stat_of};
use crate::session::{Added, Before, Change, Line, Session, merge_base};
use crate::tree::{Hash, State, observe};

/// Keeps the originals of a run's changes in its session, and puts their hashes into the changes. Syncs nothing.
///
/// # Errors
/// The root directory cannot be opened.
pub fn keep_originals(fs: &Fs, session: &Session, added: &mut Added) -> Result<(), Error> {
    let originals: Vec<&mut Change> = originals(added).collect();
    if originals.len() > merge_base::FILES {
        return Ok(());
    }
    let (root, mut room) = (Dir::open("/".as_ref())?, merge_base::ALL);
    for change in originals {
        let size = change.before.object.as_ref().map_or(0, State::size);
        if size <= merge_base::EACH.min(room)
            && let Some(hash) = keep(fs, session, &root, change)
        {
            room -= size;
            set_hash(&mut change.before, hash);
        }
    }
    Ok(())
}

/// The changes of files that the tree held when the run found them: those of the step, then those of earlier steps that kept nothing.
fn originals(added: &mut Added) -> impl Iterator<Item = &mut Change> {
    let own = added.own.list.iter_mut().filter(|change| change.from.is_none());
    let net = added.net.iter_mut().filter_map(|line| match line {
        Line::Change(change) => Some(&mut **change),
        _ => None,
    });
    let net = net.filter(|change| change.before.object.as_ref().is_some_and(|before| before.hash().is_none()));
    // What somebody has changed during the run is not what the command saw.
    own.chain(net).filter(|change| change.before.object.as_ref().is_some_and(State::is_file) && !change.marks.foreign)
}

/// Keeps the original of a change; returns its hash. `None` if it is not there any more, or cannot be kept.
fn keep(fs: &Fs, session: &Session, root: &Dir, change: &Change) -> Option<Hash> {
    let file = merge_base::on_tree(root, &change.path)?;
    // Who maps it for writing from now on moves its ctime; who has mapped it already need not.
    let lease = lease(&file).ok()?;
    if matches!(lease, Err(Writers::Some)) {
        return None;
    }
    let hash = hash_as_found(&file, &change.before).ok()??;
    merge_base::keep(fs, &session.dir, &file, hash).ok()?;
    Some(hash)
}

/// The hash of a file, if it is still as it was found: by its fingerprint, or by the hash where that proves nothing.
fn hash_as_found(file: &File, found: &Before) -> io::Result<Option<Hash>> {
    let (hash, stat) = observe::hash_since(file, stat_of(file)?)?;
    let is_it = match (found.object.as_ref().and_then(State::hash), &found.print) {
        (Some(known), _) => known == hash,
        (None, Some(print)) => !print.racy && print.identity == observe::identity(&stat) && print.ctime == stat.ctime,
        (None, None) => false,
    };
    Ok(is_it.then_some(hash))
}

fn set_hash(before: &mut Before, hash: Hash) {
    if let Some(state) = &mut before.object {
        state.set_hash(hash);
    }
}
