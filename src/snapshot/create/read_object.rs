//! Looks at each object that is met: new content is read, hashed and stored.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::draft::{Content, Seen, Taking, has_several_names};
use crate::error::{At as _, Error, reason};
use crate::fs::{AbsPath, Sort, Stat, Writers, stat_of, writers, xattrs_of};
use crate::snapshot::content::{PACKED, SteadyFile, is_same};
use crate::snapshot::error::of_ours;
use crate::snapshot::index::Known;
use crate::snapshot::manifest::{At, Entry, Merged};
use crate::snapshot::paths::whole;
use crate::snapshot::snapshot_walk::Object;
use crate::tree::{Hash, Meta, State, What, observe};

impl Taking<'_> {
    /// Looks at an object, and at its content if it has some: known content is not read, as long as it is `believed`.
    pub(super) fn look(&mut self, object: &Object, old: Option<&Known>, believed: bool) -> Result<Seen, Error> {
        let first = self.links.get(&(object.stat.dev, object.stat.ino)).filter(|_| has_several_names(&object.stat)).cloned();
        let content = first.as_ref().map(|first| first.content);
        let content = content.or_else(|| old.filter(|_| believed).map(|known| Content::of(known, &object.stat)));
        let first = first.map(|first| first.path);
        match object.stat.sort {
            Sort::File => self.look_at_file(object, first, content, old),
            _ => match observe::object_of(object.at(), &object.stat) {
                Ok(seen) => {
                    let link = link(first, object, &object.stat);
                    let entry = Entry { link, ..Entry::of(object.path.clone(), Some(seen.state), None) };
                    Ok(Seen::Whole { entry: Box::new(entry), stat: object.stat, written: false })
                }
                Err(error) => self.failed(object, &error.source),
            },
        }
    }

    /// Reads a file, and again if it changes meanwhile, three times at most.
    fn look_at_file(
        &mut self,
        object: &Object,
        first: Option<AbsPath>,
        content: Option<Content>,
        old: Option<&Known>,
    ) -> Result<Seen, Error> {
        let mut before = object.stat;
        for _ in 0..3 {
            let file = match object.at().open_file() {
                Ok(file) => file,
                Err(error) => return self.failed(object, &error.source),
            };
            let content = content.filter(|content| is_same(&content.stat, &before));
            // Before the content is read: a later mapping leaves a trace in the file's times (N5).
            let writers = match content {
                Some(Content { written: true, .. }) => Writers::Some,
                Some(_) => Writers::Unknown,
                None => writers(&file).at("ask for a lease on", whole(&self.series.directory, &object.path)?)?,
            };
            let written = writers == Writers::Some;
            let racy = observe::fingerprint(&before).racy;
            let is_still = writers == Writers::None && !racy;
            let xattrs = match xattrs_of(&file) {
                Ok(xattrs) => xattrs,
                Err(error) => return self.failed(object, &error),
            };
            let kept = match content {
                Some(content) => Ok((content.hash, content.at)),
                None => self.keep(&file, object, (&before, is_still), old)?,
            };
            let (hash, at) = match kept {
                Ok((hash, at)) => (hash, at),
                Err(error) => return self.failed(object, &error),
            };
            let stood = content.is_some() || !(written || racy) || {
                match reads_again(&file, before.size, hash) {
                    Ok(same) => same,
                    Err(error) => return self.failed(object, &error),
                }
            };
            let after = stat_of(&file).at("look at", whole(&self.series.directory, &object.path)?)?;
            if stood && is_same(&before, &after) {
                let what = What::File { size: after.size, hash, index: None };
                let state = State { what, meta: Meta::of(&after, xattrs) };
                let link = link(first, object, &after);
                let entry = Entry { link, ..Entry::of(object.path.clone(), Some(state), at) };
                return Ok(Seen::Whole { entry: Box::new(entry), stat: after, written });
            }
            before = match object.at().stat() {
                Ok(Some(stat)) if stat.sort == before.sort => stat,
                Ok(Some(_)) => return Ok(Seen::Unread("it became something else while it was read".into())),
                Ok(None) => return Ok(Seen::Gone),
                Err(error) => return self.failed(object, &error.source),
            };
        }
        Ok(Seen::Unread("it changes while it is read".into()))
    }

    /// Leaves an object out for an error of its own; other errors are returned.
    fn failed(&self, object: &Object, error: &io::Error) -> Result<Seen, Error> {
        if error.kind() == io::ErrorKind::NotFound {
            return Ok(Seen::Gone);
        }
        match of_ours(&whole(&self.series.directory, &object.path)?, error) {
            Some(ours) => Err(ours),
            None => Ok(Seen::Unread(reason(error))),
        }
    }

    /// Returns the hash and place of a file's content. The inner error is one of reading.
    #[expect(clippy::type_complexity, reason = "two kinds of failure: the store's ends it, the tree's is named")]
    fn keep(
        &mut self,
        file: &File,
        object: &Object,
        (stat, is_still): (&Stat, bool),
        old: Option<&Known>,
    ) -> Result<Result<(Option<Hash>, Option<At>), io::Error>, Error> {
        if stat.size == 0 {
            return Ok(Ok((Some(Hash::of(b"")), None)));
        }
        let has_holes = match has_holes(file, stat) {
            Ok(has_holes) => has_holes,
            Err(error) => return Ok(Err(error)),
        };
        if stat.size < PACKED && !has_holes {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.resize(usize::try_from(stat.size).unwrap_or(0), 0);
            let read = read_all(file, &mut buffer);
            let kept = match read {
                Ok(()) => {
                    let hash = Hash::of(&buffer);
                    Ok((Some(hash), Some(self.place(&buffer, hash, old)?)))
                }
                Err(error) => Err(error),
            };
            self.buffer = buffer;
            return Ok(kept);
        }
        // Taken of the object as the walk saw it.
        let hash = self.hashing.take(&object.path).filter(|_| is_same(stat, &object.stat));
        if let Some(old) = old.filter(|old| old.size == stat.size && old.at == Some(At::Blob)) {
            match hash.map_or_else(|| Hash::of_file(file, stat.size), Ok) {
                Ok(hash) if Some(hash) == old.hash => return Ok(Ok((old.hash, old.at))),
                Ok(_) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        self.learn()?;
        let path = whole(&self.series.directory, &object.path)?;
        let still = is_still.then_some(SteadyFile { stat, hash });
        let kept = self.keeping.keep_file(file, still, &path)?;
        Ok(kept.map(|(hash, at)| (Some(hash), Some(at))))
    }

    fn place(&mut self, bytes: &[u8], hash: Hash, old: Option<&Known>) -> Result<At, Error> {
        if let Some(at) = old.filter(|old| old.hash == Some(hash) && old.at != Some(At::Blob)).and_then(|old| old.at) {
            return Ok(at);
        }
        self.learn()?;
        self.keeping.keep(bytes, hash)
    }

    /// Learns all content of the snapshot before, under any name, so that it is not stored again. Needed only if something is new.
    fn learn(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.learned, true) {
            return Ok(());
        }
        if let Some(index) = self.index {
            index.known().filter_map(|known| known.hash.zip(known.at)).for_each(|(hash, at)| self.keeping.learn(hash, at));
        } else if let Some(last) = self.last {
            let mut merged = Merged::open(&self.series.dir, last)?;
            while let Some(entry) = merged.next()? {
                if let Some((hash, at)) = entry.hash().zip(entry.at) {
                    self.keeping.learn(hash, at);
                }
            }
        }
        Ok(())
    }
}

/// The first name of an object that has several.
fn link(first: Option<AbsPath>, object: &Object, stat: &Stat) -> Option<AbsPath> {
    has_several_names(stat).then(|| first.unwrap_or_else(|| object.path.clone()))
}

/// Reads the file again, and tells whether its content is still the same. A write that was under way before has changed the times. One
/// through a mapping changes none: then only the content shows that half of it was new.
fn reads_again(file: &File, size: u64, hash: Option<Hash>) -> io::Result<bool> {
    Ok(size == 0 || Some(Hash::of_extents(file, size)?) == hash)
}

/// Tells whether a file has holes, which a pack does not keep. Few blocks are no proof: compressed files, or those in the inode, take few.
fn has_holes(file: &File, stat: &Stat) -> io::Result<bool> {
    if stat.blocks.saturating_mul(512) >= stat.size {
        return Ok(false);
    }
    match rustix::fs::seek(file, SeekFrom::Hole(0)) {
        Ok(hole) => Ok(hole < stat.size),
        Err(Errno::INVAL | Errno::NXIO) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn read_all(file: &File, buffer: &mut [u8]) -> io::Result<()> {
    let mut at = 0;
    while at < buffer.len() {
        match file.read_at(&mut buffer[at..], at as u64) {
            // Shorter than before: its times show that.
            Ok(0) => return Ok(()),
            Ok(got) => at += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
