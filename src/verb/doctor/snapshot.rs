//! The trial of a snapshot, which leaves nothing behind.

use crate::error::Error;
use crate::fs::{Dir, absolute};
use crate::session::Store;
use crate::snapshot::create::create;
use crate::snapshot::{Series, SnapshotRequest};
use crate::verb::desk::Desk;
use crate::verb::error::miscounted;

/// Takes a snapshot of a directory of its own, in the store.
///
/// # Errors
/// A system call failed; the snapshot does not have what the directory has.
pub fn attempt(desk: &Desk, store: &Store) -> Result<(), Error> {
    let session = store.begin_own(&desk.fs, "doctor".into())?;
    let tried = attempt_in(desk, &session.dir);
    store.remove_session(&desk.fs, session)?;
    desk.clear_away(store);
    tried
}

fn attempt_in(desk: &Desk, dir: &Dir) -> Result<(), Error> {
    let tree = dir.at(b"tree");
    desk.fs.mkdir(tree, 0o700)?;
    desk.fs.replace(tree.open_dir()?.at(b"file"), b"content")?;
    let at = |name: &str| absolute(&dir.path().join(name));
    let store = Store::create(&desk.fs, &at("store")?)?;
    let series = Series::create(&desk.fs, &store, &at("tree")?)?;
    let made = create(&desk.fs, &store.path, &series, &series.lock(&desk.fs)?, &SnapshotRequest::default())?;
    let counted = series.summary(made.n)?.tail.counts.files;
    if counted == 1 { Ok(()) } else { Err(miscounted(counted)) }
}
