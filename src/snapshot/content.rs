//! Content: where it is kept, how it comes in and how it is read again.
//!
//! Files below [`PACKED`] bytes without holes lie behind each other in one pack a snapshot. On ext4 a new file costs about 50 µs and a
//! block on average, a write into a pack neither, and a source tree is nearly all small files: with a pack, a first snapshot takes half the
//! time. Larger files are in `blobs`, one each, by hash, so that they can share blocks with the tree where the file system allows it, and
//! can be freed whole. There is one directory for all snapshots, not links a snapshot: a name costs nothing then, and prune counts by
//! reading manifests.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

pub use super::content_check::{BLOBS, PACKED, pack_name};
use super::content_check::{Fault, Sound};
use super::error::damaged;
use super::manifest::{At, Entry};
use super::paths::whole;
use crate::error::{At as _, Error, IoError};
use crate::fs::{AbsPath, Dir, Entry as DirEntry, Fs, Stat, interrupt, stat_of};
use crate::tree::{Hash, Hasher};

/// The name of a blob that is not finished.
pub const HALF_MADE: &[u8] = b".new";
/// The bytes of a pack written at once, and of a large file read at once.
const PIECE: usize = 1 << 20;
/// From so many files on, their file system is synced as a whole, as the engine does (docs/ARCHITECTURE.md, D7).
const MANY: usize = 16;

/// Content on its way into a snapshot.
pub struct Keeping<'a> {
    fs: &'a Fs,
    dir: &'a Dir,
    n: u64,
    blobs: Option<Dir>,
    pack: Option<File>,
    buffer: Vec<u8>,
    offset: u64,
    /// The content known so far, by hash, and true for a blob.
    known: HashMap<(Hash, bool), StoredContent>,
    sound: Sound<'a>,
    new_blobs: Vec<File>,
    /// Bytes of content that were stored.
    pub stored: u64,
    /// True if the last large file shared its blocks.
    pub shares: bool,
}

/// The place of content that is stored already.
struct StoredContent {
    at: At,
    /// True if only a manifest says so: it is checked before it is referred to.
    said: bool,
}

/// A file that does not change: its stat when it was seen, and its hash, if that is known already.
#[derive(Clone, Copy)]
pub struct SteadyFile<'s> {
    pub stat: &'s Stat,
    pub hash: Option<Hash>,
}

impl<'a> Keeping<'a> {
    /// Begins to keep content for snapshot `n` of the series in `dir`. Earlier content that it refers to is read if it `reads`; otherwise
    /// only its length is checked.
    pub fn begin(fs: &'a Fs, dir: &'a Dir, n: u64, reads: bool) -> Self {
        Self {
            fs,
            dir,
            n,
            blobs: None,
            pack: None,
            buffer: Vec::new(),
            offset: 0,
            known: HashMap::new(),
            sound: Sound::of(dir, reads),
            new_blobs: Vec::new(),
            stored: 0,
            shares: false,
        }
    }

    /// Learns of content that a complete manifest names.
    pub fn learn(&mut self, hash: Hash, at: At) {
        self.known.insert((hash, at == At::Blob), StoredContent { at, said: true });
    }

    /// Tells whether content of an earlier snapshot is there.
    pub fn has(&mut self, hash: Hash, at: At, size: u64) -> Result<bool, Error> {
        self.sound.has(hash, at, size)
    }

    /// The files in which earlier content was missing.
    pub fn into_faults(self) -> impl Iterator<Item = Fault> {
        self.sound.into_faults()
    }

    /// The place of content that is there already: only a blob keeps holes.
    fn find(&mut self, hash: Hash, size: u64, is_blob: bool) -> Result<Option<At>, Error> {
        match self.known.get(&(hash, is_blob)) {
            Some(StoredContent { at, said: true }) if !self.sound.has(hash, *at, size)? => Ok(None),
            known => Ok(known.map(|known| known.at)),
        }
    }

    /// Records content that is certainly there from now on.
    fn put(&mut self, hash: Hash, at: At) -> At {
        self.known.insert((hash, at == At::Blob), StoredContent { at, said: false });
        at
    }

    pub fn keep(&mut self, bytes: &[u8], hash: Hash) -> Result<At, Error> {
        if let Some(at) = self.find(hash, bytes.len() as u64, false)? {
            return Ok(at);
        }
        let at = At::Pack { pack: self.n, offset: self.offset };
        self.offset += bytes.len() as u64;
        self.stored += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE {
            self.flush()?;
        }
        Ok(self.put(hash, at))
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let name = pack_name(self.n);
        let at = self.dir.at(&name);
        let pack = match &self.pack {
            Some(pack) => pack,
            None => self.pack.insert(self.fs.create(at, 0o600)?),
        };
        self.fs.write(pack, &self.buffer, at)?;
        self.buffer.clear();
        Ok(())
    }

    /// Keeps a large file. The kept bytes are the ones that are hashed, as written or in a clone. The file itself is hashed in place of the
    /// clone if it was `still` and has not changed since (`hash_of_still`). The inner error is one of reading it; `path`, its own, is for
    /// messages.
    pub fn keep_file(
        &mut self,
        from: &File,
        still: Option<SteadyFile<'_>>,
        path: &AbsPath,
    ) -> Result<io::Result<(Hash, At)>, Error> {
        if let Some(why) = too_hollow(&stat_of(from).at("look at", path)?) {
            return Ok(Err(io::Error::other(why)));
        }
        let blobs = match self.blobs.take() {
            Some(blobs) => blobs,
            None => self.dir.at(BLOBS).open_dir()?,
        };
        let taken = take_in(self.fs, from, still, &blobs, path);
        let kept = match taken {
            Ok(Ok(CopiedContent { hash, to, shares })) => {
                self.shares = shares;
                self.name(hash, to, &blobs).map(Ok)
            }
            Ok(Err(unread)) => self.fs.unlink(blobs.at(HALF_MADE)).map(|()| Err(unread)).map_err(Error::from),
            Err(error) => Err(error),
        };
        self.blobs = Some(blobs);
        kept
    }

    /// Gives the new blob its name, unless that content is there already.
    fn name(&mut self, hash: Hash, to: File, blobs: &Dir) -> Result<(Hash, At), Error> {
        let temp = blobs.at(HALF_MADE);
        let size = stat_of(&to).at("look at", temp)?.size;
        if let Some(at) = self.find(hash, size, true)? {
            self.fs.unlink(temp)?;
            return Ok((hash, at));
        }
        let name = hash.to_string().into_bytes();
        let at = blobs.at(&name);
        let is_whole = match at.open_file() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            file => {
                let file = file?;
                let size = stat_of(&file).at("look at", at)?.size;
                Some(Hash::of_file(&file, size).at("read", at)? == hash)
            }
        };
        match is_whole {
            // From an earlier snapshot, or an interrupted one whose sync may never have come: synced with the others (N3).
            Some(true) => {
                self.fs.unlink(temp)?;
                self.new_blobs.push(at.open_file()?);
            }
            found => {
                if found.is_some() {
                    // D1: a manifest may rely on this name, so it must never lead to less than before.
                    self.fs.sync(&to, temp)?;
                }
                self.stored += stat_of(&to).at("look at", temp)?.blocks * 512;
                self.fs.rename_over(temp, at)?;
                self.new_blobs.push(to);
            }
        }
        Ok((hash, self.put(hash, At::Blob)))
    }

    /// Makes all of it durable, and `manifest` with it (N1).
    pub fn sync(&mut self, manifest: &File) -> Result<(), Error> {
        self.flush()?;
        let shown = self.dir.path();
        if self.new_blobs.len() >= MANY {
            // D7: the series' directory was opened before the first write.
            return Ok(self.fs.sync_fs(self.dir)?);
        }
        let files = self.new_blobs.iter().chain(&self.pack).chain([manifest]).map(|file| (file, shown)).collect::<Vec<_>>();
        self.fs.sync_all(&files)?;
        if self.pack.is_some() {
            self.fs.sync_dir(self.dir)?; // D2 (directory: not caught here: few states show it): the pack's name before the manifest's
        }
        if let Some(blobs) = self.blobs.as_ref().filter(|_| !self.new_blobs.is_empty()) {
            self.fs.sync_dir(blobs)?; // D2
        }
        Ok(())
    }
}

/// The hash of a file that was `still` before its clone was made: its times were old enough to count, and nobody had it open for writing.
/// `None` if it has changed since: the clone may differ then. The kernel mostly has the file in memory, but never the clone, whose pages
/// are its own: reading that means reading the disk.
pub(super) fn hash_of_still(file: &File, still: &Stat) -> io::Result<Option<Hash>> {
    let hash = Hash::of_file(file, still.size)?;
    Ok(is_same(&stat_of(file)?, still).then_some(hash))
}

/// Copies the content of `from` into a new file without a final name, and hashes it. The inner error is one of reading `from`.
fn take_in(
    fs: &Fs,
    from: &File,
    still: Option<SteadyFile<'_>>,
    blobs: &Dir,
    path: &AbsPath,
) -> Result<io::Result<CopiedContent>, Error> {
    let temp = blobs.at(HALF_MADE);
    let both = format!("{temp}, for the content of {path}");
    fs.unlink_if_there(temp)?;
    let to = fs.create(temp, 0o600).at("make", &both)?;
    let shares = fs.reflink(from, &to, temp).at("share the blocks of", &both)?;
    let hash = if shares {
        match still.map(|still| still.hash_of(from)).transpose() {
            Ok(Some(Some(hash))) => hash,
            Err(unread) => return Ok(Err(unread)),
            Ok(_) => {
                let size = stat_of(&to).at("look at", &both)?.size;
                Hash::of_file(&to, size).at("read", &both)?
            }
        }
    } else {
        match copy(fs, from, &to, temp) {
            Ok(hash) => hash,
            Err(Stopped::Reading(unread)) => return Ok(Err(unread)),
            Err(Stopped::Writing(error)) => return Err(error).at("copy to", &both).map_err(Error::from),
        }
    };
    Ok(Ok(CopiedContent { hash, to, shares }))
}

/// Content in a new file; `shares` is true if it shares the blocks of its source.
struct CopiedContent {
    hash: Hash,
    to: File,
    shares: bool,
}

impl SteadyFile<'_> {
    /// The hash by [`hash_of_still`], unless it is known and still valid.
    fn hash_of(&self, file: &File) -> io::Result<Option<Hash>> {
        match self.hash {
            Some(_) if !is_same(&stat_of(file)?, self.stat) => Ok(None),
            Some(hash) => Ok(Some(hash)),
            None => hash_of_still(file, self.stat),
        }
    }
}

pub(super) fn is_same(a: &Stat, b: &Stat) -> bool {
    let of = |stat: &Stat| (stat.dev, stat.ino, stat.size, stat.mtime, stat.ctime);
    of(a) == of(b)
}

/// The most bytes of a file's holes that a snapshot hashes: some two minutes. `truncate -s 8T` is a second's work for whoever types it.
const MOST_HOLES: u64 = 256 << 30;

/// The reason why a file is left out: its holes, which SHA-256 takes as zeros, would take hours.
fn too_hollow(stat: &Stat) -> Option<String> {
    let holes = stat.size.saturating_sub(stat.blocks * 512);
    let [all, most] = [holes, MOST_HOLES].map(crate::settings::bytes);
    (holes > MOST_HOLES).then(|| format!("it has {all} of holes, and a snapshot takes at most {most}"))
}

/// The side on which a copy failed.
enum Stopped {
    Reading(io::Error),
    Writing(IoError),
}

/// Copies content, keeps its holes, and hashes it on the way: lseek(2), SEEK_DATA.
fn copy(fs: &Fs, from: &File, to: &File, temp: DirEntry<'_>) -> Result<Hash, Stopped> {
    let size = stat_of(from).map_err(Stopped::Reading)?.size;
    let (mut hasher, mut buffer, mut at) = (Hasher::default(), vec![0; PIECE], 0);
    while at < size {
        let data = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(data) => data.min(size),
            Err(Errno::NXIO) => size,
            Err(Errno::INVAL) => at,
            Err(error) => return Err(Stopped::Reading(error.into())),
        };
        hasher.zeros(data - at).at("copy to", temp).map_err(Stopped::Writing)?;
        at = data;
        let hole = match rustix::fs::seek(from, SeekFrom::Hole(at)) {
            Ok(hole) => hole.min(size),
            Err(Errno::INVAL | Errno::NXIO) => size,
            Err(error) => return Err(Stopped::Reading(error.into())),
        };
        while at < hole {
            interrupt::check().at("copy to", temp).map_err(Stopped::Writing)?;
            let want = usize::try_from(hole - at).unwrap_or(PIECE).min(PIECE);
            let got = from.read_at(&mut buffer[..want], at).map_err(Stopped::Reading)?;
            if got == 0 {
                // It has become shorter, which the caller sees by its times.
                fs.set_size(to, at, temp).map_err(Stopped::Writing)?;
                return Ok(hasher.finish());
            }
            hasher.update(&buffer[..got]);
            fs.write_at(to, &buffer[..got], at, temp).map_err(Stopped::Writing)?;
            at += got as u64;
        }
    }
    fs.set_size(to, size, temp).map_err(Stopped::Writing)?;
    Ok(hasher.finish())
}

/// Content on its way out of snapshots.
pub struct Kept<'a> {
    dir: &'a Dir,
    directory: &'a AbsPath,
    pack: Option<(u64, File, u64)>,
}

impl<'a> Kept<'a> {
    /// Makes a reader for the series of `directory` in `dir`.
    pub fn of(dir: &'a Dir, directory: &'a AbsPath) -> Self {
        Self { dir, directory, pack: None }
    }

    /// A path of a snapshot, as messages name it.
    fn shown(&self, path: &AbsPath) -> String {
        whole(self.directory, path).as_ref().unwrap_or(path).to_string()
    }

    fn other_content(&self, path: &AbsPath) -> String {
        format!("the content of {} does not match its recorded hash", self.shown(path))
    }

    /// Returns the bytes of a file in a pack, checked against their hash; a large file is returned open and unread.
    pub fn content(&mut self, entry: &Entry) -> Result<Content, Error> {
        let content = self.uncompared(entry)?;
        match &content {
            Content::Small(bytes) if entry.hash() != Some(Hash::of(bytes)) => {
                let pack = match entry.at {
                    Some(At::Pack { pack, .. }) => self.dir.at(&pack_name(pack)).to_string(),
                    _ => self.shown(&entry.path),
                };
                Err(damaged(pack, self.other_content(&entry.path)))
            }
            _ => Ok(content),
        }
    }

    /// Returns content unchecked, for a caller that compares its hash.
    pub fn uncompared(&mut self, entry: &Entry) -> Result<Content, Error> {
        let damaged = |path: String, why: &str| damaged(path, why);
        let (size, Some(hash)) = (entry.size(), entry.hash()) else {
            return Err(damaged(self.shown(&entry.path), "its hash is missing"));
        };
        match entry.at {
            None if size == 0 => Ok(Content::Small(Vec::new())),
            None => Err(damaged(self.shown(&entry.path), "the manifest does not say where its content is")),
            Some(At::Pack { pack, offset }) => {
                let name = pack_name(pack);
                let at = self.dir.at(&name);
                let file = self.pack(pack)?;
                let mut bytes = vec![0; usize::try_from(size.min(PACKED)).unwrap_or(0)];
                match file.read_exact_at(&mut bytes, offset) {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        return Err(damaged(at.to_string(), "it ends too early"));
                    }
                    read => read.at("read", at)?,
                }
                if bytes.len() as u64 != size {
                    return Err(damaged(at.to_string(), &self.other_content(&entry.path)));
                }
                Ok(Content::Small(bytes))
            }
            Some(At::Blob) => {
                let name = [BLOBS, b"/", hash.to_string().as_bytes()].concat();
                let shown = self.dir.at(BLOBS).to_string();
                match self.dir.open_file_below(&name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Err(damaged(format!("{shown}/{hash}"), "it is missing"))
                    }
                    file => Ok(Content::Large(file?)),
                }
            }
        }
    }

    /// Reads the first `most` bytes of content.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn beginning(&mut self, entry: &Entry, most: u64) -> Result<Vec<u8>, Error> {
        match self.content(entry)? {
            Content::Small(bytes) => Ok(bytes),
            Content::Large(file) => beginning(&file, most, self.shown(&entry.path)),
        }
    }

    /// Reads content, and compares it with its hash.
    pub fn verify(&mut self, entry: &Entry) -> Result<(), Error> {
        let Content::Large(file) = self.content(entry)? else { return Ok(()) };
        let hash = Hash::of_file(&file, entry.size()).at("read the content of", self.shown(&entry.path))?;
        if entry.hash() == Some(hash) {
            return Ok(());
        }
        Err(damaged(self.dir.at(BLOBS), self.other_content(&entry.path)))
    }

    /// Checks that content is there with its length, without reading it.
    pub fn check(&mut self, entry: &Entry) -> Result<(), Error> {
        let size = entry.size();
        match entry.at {
            None => Ok(()),
            Some(At::Pack { pack, offset }) => self.check_packed(&entry.path, pack, offset, size),
            Some(At::Blob) => match self.uncompared(entry)? {
                Content::Large(file) if stat_of(&file).at("look at", self.shown(&entry.path))?.size != size => {
                    Err(self.cut_off("a blob", &entry.path))
                }
                _ => Ok(()),
            },
        }
    }

    /// Checks the length of content in a pack.
    pub fn check_packed(&mut self, path: &AbsPath, pack: u64, offset: u64, size: u64) -> Result<(), Error> {
        self.pack(pack)?;
        let length = self.pack.as_ref().map_or(0, |(_, _, length)| *length);
        let is_there = offset.checked_add(size).is_some_and(|end| end <= length);
        if is_there { Ok(()) } else { Err(self.cut_off(&format!("{pack}.pack"), path)) }
    }

    fn cut_off(&self, what: &str, path: &AbsPath) -> Error {
        let shown = self.dir.path().join(what).display().to_string();
        damaged(shown, format!("the content of {} is cut off", self.shown(path)))
    }

    fn pack(&mut self, n: u64) -> Result<&File, Error> {
        if self.pack.as_ref().is_none_or(|(open, _, _)| *open != n) {
            let name = pack_name(n);
            let at = self.dir.at(&name);
            let file = match at.open_file() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(damaged(at, "it is missing"));
                }
                file => file?,
            };
            let length = stat_of(&file).at("look at", at)?.size;
            self.pack = Some((n, file, length));
        }
        self.pack.as_ref().map(|(_, file, _)| file).ok_or_else(|| damaged(self.dir.path().display(), "a pack is missing"))
    }
}

/// Reads the first `most` bytes of a file, which an error calls `shown`.
///
/// # Errors
/// It cannot be read.
pub fn beginning(file: &File, most: u64, shown: impl Display) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).at("read", shown)?;
    Ok(bytes)
}

pub enum Content {
    Small(Vec<u8>),
    /// An open file, not read yet.
    Large(File),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_that_cannot_be_read_is_told_from_a_store_that_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let (fs, dir) = (Fs::new(), Dir::open(directory.path()).unwrap());
        fs.mkdir(dir.at(BLOBS), 0o700).unwrap();
        let path = AbsPath::parse("/somebody's").unwrap();
        // Open for writing only.
        let file = fs.append(dir.at(b"large")).unwrap();
        fs.set_size(&file, PACKED, dir.at(b"large")).unwrap();
        fs.write_at(&file, b"x", 0, dir.at(b"large")).unwrap();
        let flags = rustix::fs::OFlags::WRONLY;
        let closed = File::from(rustix::fs::openat(&dir, "large", flags, rustix::fs::Mode::empty()).unwrap());
        let to = fs.append(dir.at(b"copy")).unwrap();
        assert!(matches!(copy(&fs, &closed, &to, dir.at(b"copy")), Err(Stopped::Reading(_))));
        assert!(matches!(
            copy(&fs, &file, &File::open(directory.path().join("copy")).unwrap(), dir.at(b"copy")),
            Err(Stopped::Writing(_))
        ));
        let blobs = dir.open_below(BLOBS).unwrap();
        fs.mkdir(blobs.at(HALF_MADE), 0o700).unwrap();
        let error = Keeping::begin(&fs, &dir, 0, false).keep_file(&file, None, &path).unwrap_err().to_string();
        assert!(error.contains("blobs/.new"), "{error}");
    }

    #[test]
    fn a_file_that_changed_since_it_was_seen_has_no_hash_for_its_clone() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"before", 0).unwrap();
        let still = stat_of(&file).unwrap();
        assert_eq!(hash_of_still(&file, &still).unwrap(), Some(Hash::of(b"before")));
        file.write_all_at(b"behind", 0).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(hash_of_still(&file, &still).unwrap(), None);
    }
}
