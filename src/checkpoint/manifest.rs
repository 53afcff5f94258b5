//! `checkpoint/manifest.jsonl`: a line for each path that is in, one for each directory whose mtime was set, and the seal ([`sealed_file`]):
//! one that was cut or garbled is never taken for another one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::fs::{AbsPath, Dir, Entry, Fs, Time};
use crate::session::{Checkpoint, Session, open_own, part};
use crate::tree::{Fingerprint, Hash, Object, Records, Sealed, What, sealed_file, time};

/// The place of an original.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    Nothing,
    /// The inode stayed on the tree; its old metadata is in the line.
    Metadata,
    /// A file: `blobs/<sha256>`, or `blobs/<sha256>.<n>` where another original has the same content.
    Blob {
        /// SHA-256 of its content.
        #[serde(rename = "digest")]
        hash: Hash,
        /// True if `.<n>` follows in the name, `n` being the change's number.
        numbered: bool,
        /// True for a copy: the inode stayed with other names, outside the session. A rollback puts back a file of its own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unlinked: bool,
    },
    /// Anything but a file: `objects/<n>`.
    Object,
    /// A copy of such an object: the inode stayed with other names, outside the session.
    ObjectCopy,
    /// The object that `--force` found in its place: `displaced/<generation>/<n>`.
    Displaced {
        generation: u64,
    },
    /// Not kept, for a reason.
    Uncovered {
        why: Cow<'static, str>,
    },
}

/// The original of a path that is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// The change's number.
    pub n: u32,
    /// The path.
    pub path: AbsPath,
    /// The object that was there; `None` is absent.
    pub state: Object,
    /// Its place now.
    pub kept: Kept,
    /// The fingerprint of what recant put in its place. Missing if nothing was put, or it could not be taken right after the move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put: Option<Fingerprint>,
}

/// The mtime of a directory in which names changed, or that was to be set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryTime {
    pub path: AbsPath,
    #[serde(with = "time")]
    pub old: Time,
    #[serde(with = "time")]
    pub left: Time,
    /// The mtime that the last commit or redo left: a redo sets it again.
    #[serde(with = "time")]
    pub committed: Time,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<O, T> {
    Original(O),
    #[serde(rename = "folder_time")]
    DirectoryTime(T),
}

type LineRead = Line<Original, DirectoryTime>;
type LineRef<'a> = Line<&'a Original, &'a DirectoryTime>;

/// A whole manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// By path.
    pub originals: BTreeMap<AbsPath, Original>,
    /// By path.
    pub directory_times: BTreeMap<AbsPath, DirectoryTime>,
}

/// True if a session's directory holds something that `--force` overwrote, or the metadata of such an object that stayed.
///
/// # Errors
/// `displaced/` cannot be listed.
pub fn keeps_overwritten(session: &Dir) -> Result<bool, Error> {
    let directory = match session.open_below(b"displaced") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        directory => directory?,
    };
    for generation in directory.names()? {
        let at = directory.at(&generation);
        let below = at.open_dir()?;
        // The line of what was put back on the tree stays.
        let names = below.names()?;
        let is_of_metadata = |manifest: Manifest| manifest.originals.values().any(|original| original.kept == Kept::Metadata);
        // An unreadable one may keep something.
        if names.iter().any(|name| name != NAME) || !names.is_empty() && Manifest::read_in(&below).map_or(true, is_of_metadata) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Kept {
    /// The place below the session's directory, for change number `n`.
    pub fn place(&self, n: u32) -> Option<Vec<u8>> {
        match self {
            Kept::Nothing | Kept::Metadata | Kept::Uncovered { .. } => None,
            Kept::Blob { hash, numbered: false, .. } => Some(format!("checkpoint/blobs/{hash}").into_bytes()),
            Kept::Blob { hash, numbered: true, .. } => Some(format!("checkpoint/blobs/{hash}.{n}").into_bytes()),
            Kept::Displaced { generation } => Some(format!("displaced/{generation}/{n}").into_bytes()),
            Kept::Object | Kept::ObjectCopy => Some(format!("checkpoint/objects/{n}").into_bytes()),
        }
    }
}

impl Original {
    /// The original's place below the session's directory.
    pub fn place(&self) -> Option<Vec<u8>> {
        self.kept.place(self.n)
    }
}

impl Manifest {
    /// Reads the manifest of a session, as [`Reading::of`] opens it.
    pub fn of(session: &Session) -> Result<Self, Error> {
        Self::collect(Reading::of(session)?)
    }

    /// Reads the manifest of the session whose directory is `dir`, whatever its header says; an empty one if there is none.
    pub fn read(dir: &Dir) -> Result<Self, Error> {
        Self::collect(Reading::open(dir)?)
    }

    /// Reads the manifest in the directory that holds `manifest.jsonl`.
    pub fn read_in(directory: &Dir) -> Result<Self, Error> {
        Self::collect(Reading::open_in(directory)?)
    }

    fn collect(mut reading: Reading) -> Result<Self, Error> {
        let mut originals = BTreeMap::new();
        while let Some(original) = reading.next()? {
            originals.insert(original.path.clone(), original);
        }
        Ok(Self { originals, directory_times: reading.directory_times()? })
    }
}

/// The error for a manifest that cannot be trusted.
fn damaged(path: &str, why: &str) -> Error {
    let remedy = "docs/store-format.md says where the originals lie, to put them back by hand";
    Error::damaged(path, "the checkpoint's manifest", why).with_remedy(remedy)
}

/// The originals of a manifest, one by one in path order.
pub struct Reading {
    shown: String,
    records: Option<Records>,
    last: Option<AbsPath>,
    ahead: Option<DirectoryTime>,
}

impl Reading {
    /// Opens the manifest of a session without an operation under way.
    ///
    /// Errors: it is not whole, or is missing though changes are in and their originals are kept.
    pub fn of(session: &Session) -> Result<Self, Error> {
        let (header, at) = (&session.header, session.dir.at(b"checkpoint"));
        let is_owed = header.counts.inside > 0 && header.checkpoint == Checkpoint::Kept;
        let reading = match at.stat()? {
            // A copy of the store may leave out empty directories.
            None => Self::none(format!("{at}/manifest.jsonl")),
            Some(_) => Self::open(&session.dir)?,
        };
        if is_owed && !reading.is_there() {
            return Err(damaged(&reading.shown, "it is missing"));
        }
        Ok(reading)
    }

    /// Opens the manifest of the session whose directory is `dir`, whatever its header says; an empty one if there is none.
    ///
    /// Errors: it is not whole.
    pub fn open(dir: &Dir) -> Result<Self, Error> {
        let directory = part(dir, b"checkpoint")?;
        Self::open_in(&directory)
    }

    pub fn is_there(&self) -> bool {
        self.records.is_some()
    }

    fn open_in(directory: &Dir) -> Result<Self, Error> {
        let at = directory.at(NAME);
        let sealed = open_own(at)?.map(|(file, _)| Sealed::<Hash>::open(file, at, damaged)).transpose()?;
        Ok(Self { records: sealed.map(Sealed::records).transpose()?, ..Self::none(at.to_string()) })
    }

    fn none(shown: String) -> Self {
        Self { shown, records: None, last: None, ahead: None }
    }

    /// Returns the next original.
    ///
    /// Errors: a line that cannot be read, or is out of order.
    pub fn next(&mut self) -> Result<Option<Original>, Error> {
        let Some(line) = self.records.as_mut().map(Records::line).transpose()?.flatten() else { return Ok(None) };
        let original = match line.parse()? {
            LineRead::Original(original) => original,
            LineRead::DirectoryTime(time) => {
                self.ahead = Some(time);
                return Ok(None);
            }
        };
        let file = matches!(original.state, Some(ref state) if matches!(state.what, What::File { .. }));
        if file != matches!(original.kept, Kept::Blob { .. })
            && !matches!(original.kept, Kept::Metadata | Kept::Uncovered { .. } | Kept::Displaced { .. })
        {
            return Err(line.damaged("a blob is kept of files, and of nothing else"));
        }
        if self.last.as_ref().is_some_and(|last| *last >= original.path) {
            return Err(line.damaged("its path is there twice, or out of order"));
        }
        self.last = Some(original.path.clone());
        Ok(Some(original))
    }

    /// The lines about directories, behind all originals. Skips originals that were not read.
    pub fn directory_times(self) -> Result<BTreeMap<AbsPath, DirectoryTime>, Error> {
        const ORIGINAL: &[u8] = br#"{"original":"#;
        let mut times: BTreeMap<_, _> = self.ahead.into_iter().map(|time| (time.path.clone(), time)).collect();
        let Some(mut records) = self.records else { return Ok(times) };
        while let Some(line) = records.line()? {
            if times.is_empty() && line.text.starts_with(ORIGINAL) {
                continue;
            }
            let LineRead::DirectoryTime(time) = line.parse()? else {
                return Err(line.damaged("an original behind the directories"));
            };
            if times.insert(time.path.clone(), time).is_some() {
                return Err(line.damaged("its path is there twice"));
            }
        }
        Ok(times)
    }
}

/// A manifest being written: originals in path order, then lines about directories.
pub struct Writing<'a>(sealed_file::Writing<'a>);

const NAME: &[u8] = b"manifest.jsonl";

/// The name until it is whole and durable.
pub const NEW: &[u8] = b"manifest.jsonl.new";

impl<'a> Writing<'a> {
    /// Begins one in the directory that is to hold `manifest.jsonl`.
    pub fn begin(fs: &'a Fs, directory: &'a Dir) -> Result<Self, Error> {
        Ok(Self(sealed_file::Writing::begin(fs, directory, NEW)?))
    }

    pub fn original(&mut self, original: &Original) -> Result<(), Error> {
        self.0.line(&LineRef::Original(original))?;
        Ok(())
    }

    /// Adds the lines about directories. Then the file is whole; the caller syncs it before it gets its name.
    pub fn end<'t>(mut self, times: impl Iterator<Item = &'t DirectoryTime>) -> Result<File, Error> {
        for time in times {
            self.0.line(&LineRef::DirectoryTime(time))?;
        }
        let (file, _) = self.0.end(|hash| hash)?;
        Ok(file)
    }
}

/// Gives a manifest that was written and synced its name in `directory`; the caller syncs that.
pub fn name_written(fs: &Fs, directory: &Dir) -> Result<(), Error> {
    Ok(fs.rename_over(directory.at(NEW), directory.at(NAME))?)
}

/// The manifest of a generation, kept while the next one has its name but is not known to be durable.
///
/// Its name has the generation, as one that a power cut has brought back must never be taken for a later one.
pub struct Former<'a> {
    fs: &'a Fs,
    directory: &'a Dir,
    name: Vec<u8>,
}

impl<'a> Former<'a> {
    /// Names the one of `generation`, in the directory that holds `manifest.jsonl`.
    pub fn new(fs: &'a Fs, directory: &'a Dir, generation: u64) -> Self {
        Self { fs, directory, name: format!("manifest.{generation}.old").into_bytes() }
    }

    /// Keeps the present `manifest.jsonl` under a second name; an empty file stands for none. The caller syncs the directory.
    pub fn keep(&self) -> Result<(), Error> {
        let (kept, at) = (self.directory.at(&self.name), self.directory.at(NAME));
        self.fs.unlink_if_there(kept)?;
        match self.fs.link(at, kept) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.fs.create(kept, 0o600)?;
            }
            // No second names here, or they are forbidden. Any other error also meets the copy.
            Err(_) => self.copy(at, kept)?,
            Ok(()) => {}
        }
        Ok(())
    }

    /// Copies a manifest. It gets its name once it is whole: a part of it would be put back for all of it.
    fn copy(&self, from: Entry<'_>, to: Entry<'_>) -> Result<(), Error> {
        let part = [&self.name[..], b".new"].concat();
        let part = self.directory.at(&part);
        let content = from.open_file()?;
        self.fs.unlink_if_there(part)?;
        let file = self.fs.create(part, 0o600)?;
        self.fs.copy(&content, &file, part)?;
        // D1: a part of it would be put back for all of it. The model of power cuts knows only file systems with second names, where
        // nothing comes here (file: not caught here).
        self.fs.sync(&file, part)?;
        Ok(self.fs.rename_over(part, to)?)
    }

    pub fn is_kept(&self) -> Result<bool, Error> {
        let kept = self.directory.at(&self.name);
        Ok(kept.stat()?.is_some())
    }

    /// Makes it `manifest.jsonl` again if it is kept, durably.
    pub fn put_back(&self) -> Result<(), Error> {
        let (kept, at) = (self.directory.at(&self.name), self.directory.at(NAME));
        match kept.stat()? {
            None => return Ok(()),
            Some(stat) if stat.size == 0 => self.fs.unlink_if_there(at)?,
            Some(_) => self.fs.rename_over(kept, at)?,
        }
        self.fs.sync_dir(self.directory)?; // D2: before it goes, and before the journal
        // rename(2) leaves both if they are two names of one object. One that comes back is still that of its generation.
        Ok(self.fs.unlink_if_there(kept)?)
    }

    /// Removes it, and any that a power cut has brought back. Nothing waits for that.
    pub fn let_go(&self) -> Result<(), Error> {
        for name in self.directory.names()? {
            if name.starts_with(b"manifest.") && (name.ends_with(b".old") || name.ends_with(b".old.new")) {
                self.fs.unlink(self.directory.at(&name))?;
            }
        }
        Ok(())
    }
}
