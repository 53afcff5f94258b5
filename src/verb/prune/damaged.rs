//! Drops a session whose header cannot be read, and tells what is lost with it.

use super::report::{Contents, Lost, Sessions};
use crate::checkpoint::Manifest;
use crate::error::{Error, Kind};
use crate::fs::AbsPath;
use crate::session::{Remains, Store, log};
use crate::verb::desk::Desk;
use crate::verb::error::IS_HELD;
use crate::verb::fact::Fact;

/// Removes it. Returns the reason why it stays, if it does.
pub(super) fn remove(desk: &Desk, store: &Store, remains: Remains, done: &mut Sessions) -> Result<Option<&'static str>, Error> {
    let id = remains.id.clone();
    let (lost, bytes) = (done.lost.len(), done.bytes);
    take_along(desk, store, &remains, done)?;
    match store.remove_remains(&desk.fs, remains) {
        Err(error) if error.kind() == Kind::Busy => {
            done.pruned.pop();
            done.lost.truncate(lost);
            done.bytes = bytes;
            return Ok(Some(IS_HELD));
        }
        removed => removed?,
    }
    let paths = (done.lost.len() - lost) as u64;
    desk.note_in_log(store, &log::Entry::new("prune", &id, 0, "done", paths));
    Ok(None)
}

/// Counts it as pruned, and lists what is lost with it: by path if its records can be read, else by number. An unreadable record does not
/// keep the session, which was named by its whole id; it is a warning.
pub(super) fn take_along(desk: &Desk, store: &Store, remains: &Remains, done: &mut Sessions) -> Result<(), Error> {
    let listed = |paths: Result<Vec<AbsPath>, Error>| {
        paths.unwrap_or_else(|error| {
            desk.caller.tell(Fact::LossNotListed(&error));
            Vec::new()
        })
    };
    let changes = listed(remains.changes().map(|changes| changes.list.into_iter().map(|change| change.path).collect()));
    let originals = listed(Manifest::read(&remains.dir).map(|manifest| manifest.originals.into_keys().collect()));
    for (directory, told) in [("held", changes.len()), ("checkpoint/blobs", originals.len()), ("displaced", 0)] {
        let (count, bytes) = remains.objects_below(directory)?;
        done.bytes += bytes;
        if count > 0 && told == 0 {
            let path = format!("{}/sessions/{}/{directory}", store.path.as_path().display(), remains.id);
            let path = AbsPath::parse(path).map_err(|error| Error::refused(error.to_string()))?;
            done.lost.push(Lost { session: remains.id.clone(), path, what: Contents::Unnamed, count });
        }
    }
    for (what, paths) in [(Contents::Change, changes), (Contents::Original, originals)] {
        done.lost.extend(paths.into_iter().map(|path| Lost { session: remains.id.clone(), path, what, count: 1 }));
    }
    done.pruned.push(remains.id.clone());
    Ok(())
}
