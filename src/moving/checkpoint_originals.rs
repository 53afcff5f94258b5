//! A checkpoint that moves: the originals of a committed session, out of its store and into another.

use std::collections::{HashMap, HashSet};

use super::error::{bad_path, damaged};
use super::stream::Object;
use crate::checkpoint::{Kept, Manifest, Original, make_originals, manifest, name_written};
use crate::error::{Error, command};
use crate::fs::{Dir, Fs};
use crate::session::{Change, Changes, DirectoryTime, Session, not_now};
use crate::tree::{Hash, State, What, observe};

/// Puts the checkpoint into `changes`: each `before` as it was taken off the tree, and the times of the directories above. Returns the
/// places of the originals that have content.
pub fn learn(session: &Session, changes: &mut Changes) -> Result<HashMap<u32, Vec<u8>>, Error> {
    let mut manifest = Manifest::of(session)?;
    let mut places = HashMap::new();
    for change in &mut changes.list {
        let Some(Original { state, kept, n, .. }) = manifest.originals.remove(&change.path) else {
            let why = "the checkpoint's manifest has no line for it";
            return Err(damaged(&change.path, why));
        };
        if let Kept::Uncovered { why } = &kept {
            return Err(bad_path(&change.path, format!("its original is not in the checkpoint: {why}")));
        }
        if let (Some(place), Some(What::File { .. })) = (kept.place(n), state.as_ref().map(|state| &state.what)) {
            places.insert(change.n, place);
        }
        if let Some(place) = is_no_file(&kept).then(|| kept.place(n)).flatten() {
            // It is made from its record there, as an object of its own.
            change.marks.link_broken |= kept == Kept::ObjectCopy || has_names(session, &place)?;
        }
        if let Some((place, directory)) = kept.place(n).zip(state.as_ref().filter(|state| state.is_dir()))
            && is_filled(session, &place, directory)?
        {
            let id = session.id();
            return Err(not_now(id, format!("{}: the kept directory is not empty, and cannot be exported", change.path))
                .with_remedy(command(format_args!("rollback {id} {} --force", change.path)) + " takes that back first"));
        }
        change.before.object = state;
        change.before.print = None;
    }
    if let Some((path, _)) = changes.contradiction() {
        let id = session.id();
        return Err(not_now(
            id,
            format!("{path}: what --force kept of it contradicts the other originals, so they cannot be exported"),
        )
        .with_remedy(command(format_args!("rollback {id} {path}")) + " takes that back first"));
    }
    let time = |time: manifest::DirectoryTime| DirectoryTime { path: time.path, before: time.old, after: time.committed };
    changes.directory_times = manifest.directory_times.into_values().map(time).collect();
    Ok(places)
}

fn is_no_file(kept: &Kept) -> bool {
    matches!(kept, Kept::Object | Kept::ObjectCopy)
}

/// True if the directory at `place` in the session is not empty: a stream makes a directory from its record alone.
fn is_filled(session: &Session, place: &[u8], then: &State) -> Result<bool, Error> {
    let (dir, name) = session.split(place)?;
    Ok(observe::is_filled(dir.at(name), then)?)
}

/// True if the object at `place` in the session has several names. A directory never has.
fn has_names(session: &Session, place: &[u8]) -> Result<bool, Error> {
    let (directory, name) = place.split_at(place.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1));
    let directory = session.dir.open_below(directory.strip_suffix(b"/").unwrap_or(directory))?;
    let stat = directory.at(name).stat()?;
    Ok(stat.is_some_and(|stat| stat.shared().is_some()))
}

/// The checkpoint of a session that is being received.
pub struct Keeping<'a> {
    fs: &'a Fs,
    directory: Dir,
    blobs: Dir,
    objects: Dir,
    /// The hashes that have a blob without a number in its name.
    hashes: HashSet<Hash>,
    numbered: HashSet<u32>,
    /// By change: the first name of the file that its original belongs to.
    groups: HashMap<u32, u32>,
    /// By first name: the number of names that the file had, and of those that were received.
    names: HashMap<u32, (u32, u32)>,
}

impl<'a> Keeping<'a> {
    pub fn begin(fs: &'a Fs, dir: &Dir) -> Result<Self, Error> {
        let open = |below: &[u8]| dir.open_below(below);
        let (directory, blobs, objects) = (open(b"checkpoint")?, open(b"checkpoint/blobs")?, open(b"checkpoint/objects")?);
        Ok(Self {
            fs,
            directory,
            blobs,
            objects,
            hashes: HashSet::new(),
            numbered: HashSet::new(),
            groups: HashMap::new(),
            names: HashMap::new(),
        })
    }

    pub fn blobs(&self) -> &Dir {
        &self.blobs
    }

    /// The name for a blob to be received. Another original may have the same content: the name then has a number.
    pub fn name(&mut self, n: u32, hash: Hash) -> Vec<u8> {
        if !self.hashes.insert(hash) {
            self.numbered.insert(n);
        }
        self.name_of(n, hash)
    }

    /// Notes the names of one file. If some stayed outside of the session, a rollback restores a file of its own.
    pub fn note_names(&mut self, object: Object) {
        let first = object.link.unwrap_or(object.n);
        self.groups.insert(object.n, first);
        let (_, got) = self.names.entry(first).or_insert((object.names.unwrap_or(1), 0));
        *got += 1;
    }

    fn has_names_outside(&self, n: u32) -> bool {
        let names = self.groups.get(&n).and_then(|first| self.names.get(first));
        names.is_some_and(|(all, got)| all > got)
    }

    /// The name of a blob that [`Self::name`] named.
    pub fn name_of(&self, n: u32, hash: Hash) -> Vec<u8> {
        if self.numbered.contains(&n) { format!("{hash}.{n}") } else { hash.to_string() }.into_bytes()
    }

    /// Makes objects that are no files, sets all metadata, and writes the manifest. Durable when it returns.
    pub fn finish(self, changes: &Changes) -> Result<(), Error> {
        let mut writing = manifest::Writing::begin(self.fs, &self.directory)?;
        for change in &changes.list {
            let kept = self.keep(change)?;
            let (path, state) = (change.path.clone(), change.before.object.clone());
            writing.original(&Original { n: change.n, path, state, kept, put: None })?;
        }
        let time = |time: &DirectoryTime| manifest::DirectoryTime {
            path: time.path.clone(),
            old: time.before,
            left: time.after,
            committed: time.after,
        };
        let times: Vec<_> = changes.directory_times.iter().map(time).collect();
        let _whole = writing.end(times.iter())?;
        // D1, D7: all originals and the manifest before the header counts them.
        self.fs.sync_fs(&self.directory)?;
        name_written(self.fs, &self.directory)?;
        Ok(self.fs.sync_dir(&self.directory)?) // D2
    }

    fn keep(&self, change: &Change) -> Result<Kept, Error> {
        let Some(before) = &change.before.object else { return Ok(Kept::Nothing) };
        if change.in_place() {
            return Ok(Kept::Metadata);
        }
        if let Some(hash) = before.hash() {
            let name = self.name_of(change.n, hash);
            make_originals::dress(self.fs, self.blobs.at(&name), before)?;
            return Ok(Kept::Blob {
                hash,
                numbered: self.numbered.contains(&change.n),
                unlinked: self.has_names_outside(change.n),
            });
        }
        let name = change.n.to_string().into_bytes();
        make_originals::object(self.fs, self.objects.at(&name), before)?;
        Ok(if change.marks.link_broken { Kept::ObjectCopy } else { Kept::Object })
    }
}
