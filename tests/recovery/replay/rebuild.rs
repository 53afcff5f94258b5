//! Puts a tree and a store into a state that a power cut may leave, with the very objects that the run has made: recovery
//! goes by their identity.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{OpenOptions, Permissions};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid};

use super::model::{Content, State};
use super::record::{Key, Object, Slot};

/// Rebuilds below `tops`; `pools` are the directories of the record, one a file system, with what was kept.
pub fn rebuild(state: &State, tops: &[PathBuf], pools: &[PathBuf]) {
    let now = Now::look(tops, pools);
    let directories: BTreeSet<Key> = state.names.keys().map(|(directory, _)| *directory).collect();
    let mut held: BTreeMap<Key, OwnedFd> = directories.iter().filter_map(|key| Some((*key, now.open(*key)?))).collect();
    let closed: Vec<(PathBuf, u32)> = held.values().filter_map(opened_up).collect();
    for (directory, name) in state.names.keys() {
        if let (Some(held), Some(key)) = (held.get(directory), now.names.get(&(*directory, name.clone()))) {
            now.detach(*key, held, name);
        }
    }
    for ((directory, name), key) in state.names.iter().filter_map(|(slot, key)| Some((slot, (*key)?))) {
        if !held.contains_key(directory) {
            // A directory that the run has removed, and that is there again.
            now.make(*directory, &state.objects[directory]);
            held.insert(*directory, open(&now.pooled(*directory)));
        }
        now.attach(key, state.objects.get(&key), &held[directory], name);
    }
    for (path, mode) in closed {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("the mode that it had");
    }
    for (key, content) in &state.content {
        spoil(&now, *key, *content);
    }
    // Metadata last: what was done above has changed times. Directories after what lies in them.
    let (mut dirs, others): (Vec<&Object>, Vec<&Object>) = state.objects.values().partition(|object| object.kind == "directory");
    others.into_iter().for_each(|object| now.dress(object, &held, state));
    dirs.sort_by_key(|object| object.ino);
    dirs.into_iter().for_each(|object| now.dress(object, &held, state));
    for pool in pools.iter().map(|pool| pool.join("kept")) {
        std::fs::remove_dir_all(&pool).expect("the kept objects go");
    }
}

/// What is there now.
struct Now {
    names: BTreeMap<Slot, Key>,
    paths: BTreeMap<Key, PathBuf>,
    pools: BTreeMap<u64, PathBuf>,
}

impl Now {
    fn look(tops: &[PathBuf], pools: &[PathBuf]) -> Self {
        let mut now = Self { names: BTreeMap::new(), paths: BTreeMap::new(), pools: BTreeMap::new() };
        for pool in pools.iter().map(|pool| pool.join("kept")) {
            let dev = pool.metadata().expect("a pool").dev();
            for kept in std::fs::read_dir(&pool).expect("a pool") {
                let kept = kept.expect("a name").path();
                now.paths.insert(key_of(&kept), kept);
            }
            now.pools.insert(dev, pool);
        }
        let mut todo: Vec<PathBuf> = tops.to_vec();
        while let Some(directory) = todo.pop() {
            let key = key_of(&directory);
            now.paths.insert(key, directory.clone());
            for entry in std::fs::read_dir(&directory).expect("a directory") {
                let entry = entry.expect("a name");
                let child = key_of(&entry.path());
                now.names.insert((key, entry.file_name().to_string_lossy().into_owned()), child);
                now.paths.insert(child, entry.path());
                if entry.file_type().expect("a kind").is_dir() {
                    todo.push(entry.path());
                }
            }
        }
        now
    }

    fn open(&self, key: Key) -> Option<OwnedFd> {
        self.paths.get(&key).map(|path| open(path))
    }

    fn pooled(&self, key: Key) -> PathBuf {
        self.pools[&key.0].join(key.1.to_string())
    }

    /// Takes a name away; the object stays in the pool.
    fn detach(&self, key: Key, directory: &OwnedFd, name: &str) {
        let pooled = self.pooled(key);
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).expect("a name that was just seen");
        if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
            move_directory(directory, Path::new(name), &CWD, &pooled, stat.st_mode).expect("a directory goes to the pool");
            return;
        }
        if pooled.symlink_metadata().is_err() {
            rustix::fs::linkat(directory, name, CWD, &pooled, AtFlags::empty()).expect("a second name");
        }
        rustix::fs::unlinkat(directory, name, AtFlags::empty()).expect("a name goes");
    }

    fn make(&self, key: Key, like: &Object) {
        assert_eq!(like.kind, "directory", "only directories are not kept: {like:?}");
        let pooled = self.pooled(key);
        if pooled.symlink_metadata().is_err() {
            std::fs::create_dir(&pooled).expect("a directory made again");
        }
    }

    /// Gives an object of the pool a name.
    fn attach(&self, key: Key, like: Option<&Object>, directory: &OwnedFd, name: &str) {
        let pooled = self.pooled(key);
        let is_dir = match pooled.symlink_metadata() {
            Ok(meta) => meta.is_dir(),
            Err(_) if like.is_some_and(|like| like.kind == "directory") => {
                self.make(key, like.expect("it was just looked at"));
                true
            }
            Err(_) => {
                // It has a name that the run has not touched: a hard link of the user's.
                rustix::fs::linkat(CWD, &self.paths[&key], CWD, &pooled, AtFlags::empty()).expect("a second name");
                false
            }
        };
        let there = if is_dir {
            let mode = pooled.symlink_metadata().expect("it was just looked at").mode();
            move_directory(&CWD, &pooled, directory, Path::new(name), mode)
        } else {
            rustix::fs::linkat(CWD, &pooled, directory, name, AtFlags::empty())
        };
        there.unwrap_or_else(|error| panic!("{name} {key:?} {like:?}: {error}"));
    }

    /// Where an object can be reached now: the pool, a name in a held directory, or a path that the run has not touched.
    fn reach(&self, key: Key, held: &BTreeMap<Key, OwnedFd>, state: &State) -> Option<PathBuf> {
        use std::os::fd::AsRawFd;
        let pooled = self.pooled(key);
        if pooled.symlink_metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == key) {
            return Some(pooled);
        }
        if let Some(directory) = held.get(&key) {
            return Some(format!("/proc/self/fd/{}/.", directory.as_raw_fd()).into());
        }
        if let Some((directory, name)) = state.names.iter().find(|(_, to)| **to == Some(key)).map(|(slot, _)| slot) {
            return Some(Path::new(&format!("/proc/self/fd/{}", held.get(directory)?.as_raw_fd())).join(name));
        }
        let path = self.paths.get(&key)?;
        path.symlink_metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == key).then(|| path.clone())
    }

    fn dress(&self, object: &Object, held: &BTreeMap<Key, OwnedFd>, state: &State) {
        let Some(path) = self.reach(object.key(), held, state) else { return };
        let meta = path.symlink_metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if (meta.uid(), meta.gid()) != (object.uid, object.gid) {
            let (uid, gid) = (Uid::from_raw(object.uid), Gid::from_raw(object.gid));
            rustix::fs::chownat(CWD, &path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW).expect("an owner");
        }
        let is_closed = meta.is_dir() && object.mode & 0o700 != 0o700;
        let mode = |mode| rustix::fs::chmod(&path, Mode::from_raw_mode(mode)).expect("a mode");
        if !meta.is_symlink() {
            // A closed directory is closed last, as no name below it can be reached then, `.` neither.
            if is_closed || meta.mode() & 0o7777 != object.mode {
                mode(if is_closed { object.mode | 0o700 } else { object.mode });
            }
            dress_xattrs(&path, object);
        }
        let time = |(s, ns): (i64, i64)| Timespec { tv_sec: s, tv_nsec: ns };
        let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let times = Timestamps { last_access: omit, last_modification: time(object.mtime) };
        rustix::fs::utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("a time");
        if is_closed {
            mode(object.mode);
        }
    }
}

fn dress_xattrs(path: &Path, object: &Object) {
    let mut names = vec![0; 64 << 10];
    let length = rustix::fs::listxattr(path, &mut names).unwrap_or(0);
    for name in names[..length].split(|b| *b == 0).filter(|name| !name.is_empty()) {
        if !object.xattrs.iter().any(|(known, _)| known.as_bytes() == name) {
            rustix::fs::removexattr(path, name).expect("an xattr goes");
        }
    }
    for (name, value) in &object.xattrs {
        rustix::fs::setxattr(path, name.as_str(), value, rustix::fs::XattrFlags::empty()).expect("an xattr");
    }
}

fn key_of(path: &Path) -> Key {
    let meta = path.symlink_metadata().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (meta.dev(), meta.ino())
}

fn open(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn spoil(now: &Now, key: Key, content: Content) {
    let pooled = now.pooled(key);
    let path = if pooled.symlink_metadata().is_ok() { &pooled } else { &now.paths[&key] };
    // It lost its last name with the cut.
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
    let size = file.metadata().expect("a size").len();
    match content {
        Content::Whole => {}
        Content::Cut(at) => file.set_len(at).expect("a cut file"),
        Content::Zeros(from) => {
            let zeros = vec![0; usize::try_from(size.saturating_sub(from)).expect("small files")];
            file.write_all_at(&zeros, from).expect("zeros");
        }
    }
}

/// An ordinary user may change no names in a directory that he has closed to himself. Gives the mode that it had.
fn opened_up(directory: &OwnedFd) -> Option<(PathBuf, u32)> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let mode = path.metadata().expect("an open directory").mode();
    if mode & 0o700 == 0o700 {
        return None;
    }
    std::fs::set_permissions(&path, Permissions::from_mode(mode | 0o700)).expect("his own directory");
    Some((path, mode))
}

/// An ordinary user may not give a directory another parent that he may not write to.
fn move_directory(from: &impl AsFd, name: &Path, to: &impl AsFd, new: &Path, mode: u32) -> rustix::io::Result<()> {
    let mode = Mode::from_raw_mode(mode);
    rustix::fs::chmodat(from, name, mode | Mode::RWXU, AtFlags::empty())?;
    rustix::fs::renameat(from, name, to, new)?;
    rustix::fs::chmodat(to, new, mode, AtFlags::empty())
}
