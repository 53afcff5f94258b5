//! Makes a committed session from two snapshots: the changes of a command to the real tree between them. Its checkpoint has what the first
//! snapshot kept, so it is rolled back, redone, shown and pruned like any other.

use std::collections::{HashMap, HashSet};
use std::fs::File;

use super::content::{Content, Kept as Snapshots};
use super::differences::{Compared, Difference};
use super::manifest::Entry;
use super::paths::whole;
use super::series::Series;
use crate::checkpoint::{Kept, Original, Writing, make_originals, manifest, name_written};
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Fs};
use crate::session::{Before, Change, Changes, DirectoryTime, Header, Locked, Marks, Side, part};
use crate::tree::{Hash, State, What};

/// The differences between two snapshots of a series, `then` being the first.
pub struct Step<'a> {
    pub series: &'a Series,
    pub compared: Compared,
    /// The first name, before the command, of each file with others outside the snapshot: those keep what the command wrote.
    pub elsewhere: &'a HashSet<AbsPath>,
}

/// Makes a session that was just begun a committed one: with all of `steps`, whose directories do not lie in each other, in the order of
/// their paths. It has no changes until its header is replaced, last of all, and after a failure.
pub fn fill(fs: &Fs, steps: &[Step<'_>], session: &mut Locked) -> Result<(), Error> {
    let directory = part(&session.dir, b"checkpoint")?;
    let blobs = part(&session.dir, b"checkpoint/blobs")?;
    let objects = part(&session.dir, b"checkpoint/objects")?;
    let mut names = HashSet::new();
    let mut changes = Changes::default();
    let mut manifest = Writing::begin(fs, &directory)?;
    let mut times = Vec::new();
    let mut bytes = 0;
    let mut n = 0;
    for Step { series, compared, elsewhere } in steps {
        let mut keeping = Keeping {
            fs,
            blobs: &blobs,
            objects: &objects,
            from: Snapshots::of(&series.dir, &series.directory),
            names: &mut names,
            elsewhere,
            firsts: HashMap::new(),
        };
        for difference in &compared.differences {
            n += 1;
            let change = change(series, difference, n)?;
            let kept = keeping.keep(difference, &change)?;
            bytes += if matches!(kept, Kept::Blob { .. }) { change.before.object.as_ref().map_or(0, State::size) } else { 0 };
            let original = Original { n, path: change.path.clone(), state: change.before.object.clone(), kept, put: None };
            manifest.original(&original)?;
            changes.list.push(change);
        }
        for time in &compared.times {
            let path = whole(&series.directory, &time.path)?;
            times.push(manifest::DirectoryTime { path: path.clone(), old: time.then, left: time.now, committed: time.now });
            changes.directory_times.push(DirectoryTime { path, before: time.then, after: time.now });
        }
    }
    let file = manifest.end(times.iter())?;
    // D1: all originals and the manifest, before the header counts them.
    fs.sync_fs(&session.dir)?;
    drop(file);
    name_written(fs, &directory)?;
    fs.sync_dir(&directory)?; // D2
    let lines = (changes.list.len() + changes.directory_times.len()) as u64;
    session.rewrite(fs, &changes, lines)?;
    let header = Header { lines, acted: Some(session.act(fs)?), ..session.header.sealing(&vec![Side::In; changes.list.len()]) };
    let sizes = crate::session::Sizes { checkpoint: bytes, ..Default::default() };
    session.save(fs, Header { sizes, ..header })
}

fn change(series: &Series, difference: &Difference, n: u32) -> Result<Change, Error> {
    let (path, before) = (whole(&series.directory, &difference.path)?, Before { object: difference.then.clone(), print: None });
    let marks = Marks { linked: difference.regrouped, ..Marks::default() };
    Ok(Change { marks, ..Change::new(n, path, before, difference.now.clone()) })
}

/// Originals on their way into a checkpoint.
struct Keeping<'a> {
    fs: &'a Fs,
    blobs: &'a Dir,
    objects: &'a Dir,
    from: Snapshots<'a>,
    names: &'a mut HashSet<Hash>,
    /// [`Step::elsewhere`].
    elsewhere: &'a HashSet<AbsPath>,
    /// The first name's blob, or its object if it is no file, for objects with several names.
    firsts: HashMap<AbsPath, Vec<u8>>,
}

impl Keeping<'_> {
    fn keep(&mut self, difference: &Difference, change: &Change) -> Result<Kept, Error> {
        let Some(before) = &change.before.object else { return Ok(Kept::Nothing) };
        if change.in_place() {
            return Ok(Kept::Metadata);
        }
        let hash = match (&before.what, before.hash()) {
            (What::File { .. }, Some(hash)) => hash,
            (What::File { .. }, None) => return Ok(Kept::Uncovered { why: "its content was not read".into() }),
            _ => return self.keep_object(difference, change.n, before),
        };
        // Several originals may have the same content, each in a file of its own; another session's files are not used.
        let numbered = !self.names.insert(hash);
        let name = if numbered { format!("{hash}.{}", change.n) } else { hash.to_string() }.into_bytes();
        let at = self.blobs.at(&name);
        if let Some(first) = difference.link.as_ref().and_then(|first| self.firsts.get(first)) {
            self.fs.link(self.blobs.at(first), at)?;
        } else {
            let entry = Entry::of(difference.path.clone(), difference.then.clone(), difference.at);
            let file = self.fs.create(at, 0o600)?;
            self.fill(&entry, &file, at)?;
            make_originals::dress(self.fs, at, before)?;
            if let Some(first) = &difference.link {
                self.firsts.insert(first.clone(), name);
            }
        }
        Ok(Kept::Blob { hash, numbered, unlinked: self.has_names_elsewhere(difference) })
    }

    /// Keeps an object without content: a directory, a link, a FIFO.
    fn keep_object(&mut self, difference: &Difference, n: u32, before: &State) -> Result<Kept, Error> {
        let name = n.to_string().into_bytes();
        let at = self.objects.at(&name);
        let kept = if self.has_names_elsewhere(difference) { Kept::ObjectCopy } else { Kept::Object };
        if let Some(first) = difference.link.as_ref().and_then(|first| self.firsts.get(first)) {
            self.fs.link(self.objects.at(first), at)?;
            return Ok(kept);
        }
        make_originals::object(self.fs, at, before)?;
        if let Some(first) = &difference.link {
            make_originals::dress(self.fs, at, before)?;
            self.firsts.insert(first.clone(), name);
        }
        Ok(kept)
    }

    fn has_names_elsewhere(&self, difference: &Difference) -> bool {
        difference.link.as_ref().is_some_and(|first| self.elsewhere.contains(first))
    }

    fn fill(&mut self, entry: &Entry, file: &File, at: crate::fs::Entry<'_>) -> Result<(), Error> {
        match self.from.content(entry)? {
            Content::Small(bytes) if bytes.is_empty() => {}
            Content::Small(bytes) => self.fs.write(file, &bytes, at)?,
            Content::Large(from) => drop(self.fs.copy(&from, file, at)?),
        }
        Ok(())
    }
}
