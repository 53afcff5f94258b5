//! Hashes taken ahead: where blocks are shared, a first snapshot of large files only reads them, so a second thread reads some. Nothing
//! rests on it: a missing hash is taken where it is needed.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::content::{hash_of_still, is_same};
use super::snapshot_walk::Object;
use crate::fs::{AbsPath, Writers, stat_of, writers};
use crate::tree::{Hash, observe};

/// A thread that hashes files in advance. Dropping this ends it.
#[derive(Default)]
pub struct Hashing {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The files in the order in which they will be asked for.
    wanted: VecDeque<Object>,
    /// The file that the thread works on; below, those that it has done.
    busy: Option<AbsPath>,
    done: Vec<(AbsPath, Option<Hash>)>,
    ended: bool,
}

impl Hashing {
    /// Offers a file that will be asked for, after those that were offered before.
    pub fn offer(&mut self, object: &Object) {
        if self.thread.is_none() {
            let shared = self.shared.clone();
            self.thread = std::thread::Builder::new().name("hash".into()).spawn(move || shared.work()).ok();
        }
        self.shared.lock().wanted.push_back(object.clone());
        self.shared.changed.notify_all();
    }

    /// The hash of an offered file in its state then, if the thread has it or is taking it; else the caller must take it.
    pub fn take(&self, path: &AbsPath) -> Option<Hash> {
        let mut state = self.shared.lock();
        state.wanted.retain(|object| object.path != *path);
        while state.busy.as_ref() == Some(path) {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let at = state.done.iter().position(|(done, _)| done == path)?;
        state.done.swap_remove(at).1
    }
}

impl Drop for Hashing {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Shared {
    /// Locks the state. It is whole between any two statements, so a panic elsewhere does no harm.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        while !state.ended {
            // The first is asked for next, by a thread that has nothing else to do.
            let Some(object) = state.wanted.remove(1) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.busy = Some(object.path.clone());
            drop(state);
            let hash = hash(&object);
            state = self.lock();
            state.busy = None;
            state.done.push((object.path, hash));
            self.changed.notify_all();
        }
    }
}

/// The hash of a file that nobody writes to (N5). The caller meets the reason for a `None` again.
fn hash(object: &Object) -> Option<Hash> {
    let file = object.at().open_file().ok()?;
    let is_still = is_same(&stat_of(&file).ok()?, &object.stat)
        && writers(&file).ok()? == Writers::None
        && !observe::fingerprint(&object.stat).racy;
    if is_still { hash_of_still(&file, &object.stat).ok()? } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::rule_source::Source;
    use crate::snapshot::snapshot_walk::{Walk, WalkStep};

    #[test]
    fn the_second_of_those_to_come_is_hashed_and_counts_as_long_as_it_stands_still() {
        let directory = tempfile::tempdir().unwrap();
        let top = AbsPath::parse(std::os::unix::ffi::OsStrExt::as_bytes(directory.path().as_os_str())).unwrap();
        let fs = crate::fs::Fs::new();
        let dir = crate::fs::Dir::open(directory.path()).unwrap();
        for name in [b"a", b"b", b"c"] {
            let file = fs.append(dir.at(name)).unwrap();
            fs.write(&file, name, dir.at(name)).unwrap();
        }
        let nowhere = AbsPath::parse("/nowhere").unwrap();
        let files = || {
            let mut walk = Walk::new(&top, &nowhere, &Source::default()).unwrap();
            let mut files = Vec::new();
            while let Some(met) = walk.next().unwrap() {
                files.extend(if let WalkStep::Object(object) = met { Some(object) } else { None });
            }
            files.split_off(1)
        };
        // Times prove nothing until the clock of files has moved on.
        while observe::fingerprint(&files()[2].stat).racy {
            std::thread::yield_now();
        }
        let files = files();
        assert_eq!(hash(&files[1]), Some(Hash::of(b"b")));
        let mut hashing = Hashing::default();
        files.iter().for_each(|object| hashing.offer(object));
        let mut state = hashing.shared.lock();
        while state.done.len() < 2 {
            state = hashing.shared.changed.wait(state).unwrap();
        }
        drop(state);
        let taken: Vec<_> = files.iter().map(|object| hashing.take(&object.path)).collect();
        assert_eq!(taken, [None, Some(Hash::of(b"b")), Some(Hash::of(b"c"))], "the first is the caller's");
        let file = fs.append(dir.at(b"b")).unwrap();
        assert_eq!(hash(&files[1]), None, "somebody may write to it");
        fs.write(&file, b"b", dir.at(b"b")).unwrap();
        drop(file);
        assert_eq!(hash(&files[1]), None, "it is another one than was offered");
    }
}
