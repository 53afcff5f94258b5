//! `checkpoint/manifest.jsonl`: a line for each path that is in, one for each folder whose mtime was set, and the seal
//! ([`sealed`]): one that was cut or garbled is never taken for another one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;

use serde::{Deserialize, Serialize};

use crate::error::{At, Error};
use crate::fs::Fs;
use crate::fs::dir::{Dir, Entry, Time};
use crate::fs::path::AbsPath;
use crate::session::header::Checkpoint;
use crate::session::opened::{Session, open_own, part};
use crate::tree::digest::Digest;
use crate::tree::sealed::{self, Records, Sealed};
use crate::tree::state::{Fingerprint, Object, What};
use crate::tree::time;

/// Where an original lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Nothing was there.
    Nothing,
    /// The inode stayed on the tree; its old metadata is in the line.
    Metadata,
    /// A file: `blobs/<sha256>`, or `blobs/<sha256>.<n>` where another original has the same content.
    Blob {
        /// SHA-256 of its content.
        digest: Digest,
        /// Whether the name has `.<n>` behind it, `n` being the change's number.
        numbered: bool,
        /// It is a copy: the inode stayed with other names, outside the session. What is given back is a file of its own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unlinked: bool,
    },
    /// Anything but a file: `objects/<n>`.
    Object,
    /// The same as a copy: the inode stayed with other names, outside the session.
    ObjectCopy,
    /// What `--force` found in its place: `displaced/<generation>/<n>`.
    Displaced {
        /// Of which generation.
        generation: u64,
    },
    /// Not kept, and why.
    Uncovered {
        /// Why, for people.
        why: Cow<'static, str>,
    },
}

/// One path that is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// The change's number.
    pub n: u32,
    /// Where it was.
    pub path: AbsPath,
    /// What it was; `None` is absent.
    pub state: Object,
    /// Where it lies now.
    pub kept: Kept,
    /// The fingerprint of what recant put in its place; missing where nothing was put, or where it could not be taken
    /// right after the move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put: Option<Fingerprint>,
}

/// The mtime of a folder in which names changed, or that was to be set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderTime {
    /// The folder.
    pub path: AbsPath,
    /// As it was before recant came.
    #[serde(with = "time")]
    pub old: Time,
    /// As recant left it.
    #[serde(with = "time")]
    pub left: Time,
    /// As the last commit or redo left it: a redo gives it again.
    #[serde(with = "time")]
    pub committed: Time,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line<O, T> {
    Original(O),
    FolderTime(T),
}

type LineRead = Line<Original, FolderTime>;
type LineRef<'a> = Line<&'a Original, &'a FolderTime>;

/// A whole manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// By path.
    pub originals: BTreeMap<AbsPath, Original>,
    /// By path.
    pub folder_times: BTreeMap<AbsPath, FolderTime>,
}

/// Whether something lies in a session's folder that `--force` found and overwrote, or metadata of it that stayed.
///
/// # Errors
/// Where `displaced/` cannot be listed.
pub fn keeps_overwritten(session: &Dir) -> Result<bool, Error> {
    let folder = match session.open_below(b"displaced") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        folder => folder.at("open the folder", session.at(b"displaced"))?,
    };
    for generation in folder.names().at("list the folder", folder.path().display())? {
        let at = folder.at(&generation);
        let below = at.open_dir().at("open the folder", at)?;
        // What was put back on the tree has left its line there.
        let names = below.names().at("list the folder", below.path().display())?;
        let is_of_metadata = |manifest: Manifest| manifest.originals.values().any(|original| original.kept == Kept::Metadata);
        // Of one that cannot be read nobody knows that nothing is kept by it.
        if names.iter().any(|name| name != NAME) || !names.is_empty() && Manifest::read_in(&below).map_or(true, is_of_metadata) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Kept {
    /// Where it lies below the session's folder, for the change of number `n`.
    pub fn place(&self, n: u32) -> Option<Vec<u8>> {
        match self {
            Kept::Nothing | Kept::Metadata | Kept::Uncovered { .. } => None,
            Kept::Blob { digest, numbered: false, .. } => Some(format!("checkpoint/blobs/{digest}").into_bytes()),
            Kept::Blob { digest, numbered: true, .. } => Some(format!("checkpoint/blobs/{digest}.{n}").into_bytes()),
            Kept::Displaced { generation } => Some(format!("displaced/{generation}/{n}").into_bytes()),
            Kept::Object | Kept::ObjectCopy => Some(format!("checkpoint/objects/{n}").into_bytes()),
        }
    }
}

impl Original {
    /// Where the original lies below the session's folder.
    pub fn place(&self) -> Option<Vec<u8>> {
        self.kept.place(self.n)
    }
}

impl Manifest {
    /// Reads the manifest of a session, as [`Reading::of`] opens it.
    pub fn of(session: &Session) -> Result<Self, Error> {
        Self::collect(Reading::of(session)?)
    }

    /// Reads the manifest of the session whose folder is `dir`, whatever its header says; an empty one where there is none.
    pub fn read(dir: &Dir) -> Result<Self, Error> {
        Self::collect(Reading::open(dir)?)
    }

    /// The same in the folder that holds `manifest.jsonl`.
    pub fn read_in(folder: &Dir) -> Result<Self, Error> {
        Self::collect(Reading::open_in(folder)?)
    }

    fn collect(mut reading: Reading) -> Result<Self, Error> {
        let mut originals = BTreeMap::new();
        while let Some(original) = reading.next()? {
            originals.insert(original.path.clone(), original);
        }
        Ok(Self { originals, folder_times: reading.folder_times()? })
    }
}

/// The manifest cannot be believed.
fn damaged(path: &str, why: &str) -> Error {
    let remedy = "docs/store-format.md says where the originals lie, to put them back by hand";
    Error::damaged(path, "the checkpoint's manifest", why).with_remedy(remedy)
}

/// The originals of a manifest, one by one in path order.
pub struct Reading {
    shown: String,
    records: Option<Records>,
    last: Option<AbsPath>,
    ahead: Option<FolderTime>,
}

impl Reading {
    /// Of a session that no operation is under way in.
    ///
    /// Errors: it is not whole, or there is none though it has to have lines: changes are in, and their originals
    /// are kept.
    pub fn of(session: &Session) -> Result<Self, Error> {
        let (header, at) = (&session.header, session.dir.at(b"checkpoint"));
        let is_owed = header.counts.inside > 0 && header.checkpoint == Checkpoint::Kept;
        let reading = match at.stat().at("look at", at)? {
            // Of a copy of the store that left out what was empty.
            None => Self::none(format!("{at}/manifest.jsonl")),
            Some(_) => Self::open(&session.dir)?,
        };
        if is_owed && !reading.is_there() {
            return Err(damaged(&reading.shown, "it is missing"));
        }
        Ok(reading)
    }

    /// Of the session whose folder is `dir`, whatever its header says; of an empty one where there is no manifest.
    ///
    /// Errors: it is not whole.
    pub fn open(dir: &Dir) -> Result<Self, Error> {
        let folder = part(dir, b"checkpoint")?;
        Self::open_in(&folder)
    }

    /// Whether there is a manifest.
    pub fn is_there(&self) -> bool {
        self.records.is_some()
    }

    fn open_in(folder: &Dir) -> Result<Self, Error> {
        let at = folder.at(NAME);
        let sealed = open_own(at)?.map(|(file, _)| Sealed::<Digest>::open(file, at, damaged)).transpose()?;
        Ok(Self { records: sealed.map(Sealed::records).transpose()?, ..Self::none(at.to_string()) })
    }

    fn none(shown: String) -> Self {
        Self { shown, records: None, last: None, ahead: None }
    }

    /// The next original.
    ///
    /// Errors: a line that cannot be read, or that does not stand in its place.
    pub fn next(&mut self) -> Result<Option<Original>, Error> {
        let Some(line) = self.records.as_mut().map(Records::line).transpose()?.flatten() else { return Ok(None) };
        let original = match line.parse()? {
            LineRead::Original(original) => original,
            LineRead::FolderTime(time) => {
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
            return Err(line.damaged("its path stands there twice, or not in path order"));
        }
        self.last = Some(original.path.clone());
        Ok(Some(original))
    }

    /// What is said of folders, behind all originals. Those that are still ahead are passed unread.
    pub fn folder_times(self) -> Result<BTreeMap<AbsPath, FolderTime>, Error> {
        const ORIGINAL: &[u8] = br#"{"original":"#;
        let mut times: BTreeMap<_, _> = self.ahead.into_iter().map(|time| (time.path.clone(), time)).collect();
        let Some(mut records) = self.records else { return Ok(times) };
        while let Some(line) = records.line()? {
            if times.is_empty() && line.text.starts_with(ORIGINAL) {
                continue;
            }
            let LineRead::FolderTime(time) = line.parse()? else {
                return Err(line.damaged("an original behind the folders"));
            };
            if times.insert(time.path.clone(), time).is_some() {
                return Err(line.damaged("its path stands there twice"));
            }
        }
        Ok(times)
    }
}

/// A manifest while it is written anew: originals in path order, then what is said of folders.
pub struct Writing<'a>(sealed::Writing<'a>);

const NAME: &[u8] = b"manifest.jsonl";

/// What is written, until it is whole and durable.
pub const NEW: &[u8] = b"manifest.jsonl.new";

impl<'a> Writing<'a> {
    /// In the folder that is to hold `manifest.jsonl`.
    pub fn begin(fs: &'a Fs, folder: &'a Dir) -> Result<Self, Error> {
        Ok(Self(sealed::Writing::begin(fs, folder, NEW)?))
    }

    /// Adds an original.
    pub fn original(&mut self, original: &Original) -> Result<(), Error> {
        self.0.line(&LineRef::Original(original))?;
        Ok(())
    }

    /// Adds what is said of folders. The file is whole then, and the caller syncs it before it gives it its name.
    pub fn end<'t>(mut self, times: impl Iterator<Item = &'t FolderTime>) -> Result<File, Error> {
        for time in times {
            self.0.line(&LineRef::FolderTime(time))?;
        }
        let (file, _) = self.0.end(|digest| digest)?;
        Ok(file)
    }
}

/// Gives a manifest that was written and synced its name in `folder`; the caller syncs the folder.
pub fn name_written(fs: &Fs, folder: &Dir) -> Result<(), Error> {
    Ok(fs.rename_over(folder.at(NEW), folder.at(NAME)).at("rename", folder.at(NEW))?)
}

/// The manifest of a generation, while that of the next one has its name already and is not known to last.
///
/// The generation is in its name, as one that a power cut has brought back must never be taken for a later one.
pub struct Former<'a> {
    fs: &'a Fs,
    folder: &'a Dir,
    name: Vec<u8>,
}

impl<'a> Former<'a> {
    /// That of `generation`, in the folder that holds `manifest.jsonl`.
    pub fn new(fs: &'a Fs, folder: &'a Dir, generation: u64) -> Self {
        Self { fs, folder, name: format!("manifest.{generation}.old").into_bytes() }
    }

    /// Keeps what is `manifest.jsonl` now under a second name; an empty file stands for none. The caller syncs the folder.
    pub fn keep(&self) -> Result<(), Error> {
        let (kept, at) = (self.folder.at(&self.name), self.folder.at(NAME));
        self.fs.unlink_if_there(kept).at("remove", kept)?;
        match self.fs.link(at, kept) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.fs.create(kept, 0o600).at("make", kept)?;
            }
            // A file system without second names, or one where they are forbidden: what is wrong with it otherwise a copy meets too.
            Err(_) => self.copy(at, kept)?,
            Ok(()) => {}
        }
        Ok(())
    }

    /// It gets its name once it is whole: a part of it would be put back for all of it.
    fn copy(&self, from: Entry<'_>, to: Entry<'_>) -> Result<(), Error> {
        let part = [&self.name[..], b".new"].concat();
        let part = self.folder.at(&part);
        let content = from.open_file().at("open", from)?;
        self.fs.unlink_if_there(part).at("remove", part)?;
        let file = self.fs.create(part, 0o600).at("make", part)?;
        self.fs.copy(&content, &file, self.folder.path()).at("copy the content to", part)?;
        // D1: a part of it would be put back for all of it. The model of power cuts knows only file systems with second names, where
        // nothing comes here (file: not caught here).
        self.fs.sync(&file, self.folder.path()).at("sync", part)?;
        Ok(self.fs.rename_over(part, to).at("rename", part)?)
    }

    /// Whether it is kept.
    pub fn is_kept(&self) -> Result<bool, Error> {
        let kept = self.folder.at(&self.name);
        Ok(kept.stat().at("look at", kept)?.is_some())
    }

    /// Makes it `manifest.jsonl` again where it is kept, durably.
    pub fn put_back(&self) -> Result<(), Error> {
        let (kept, at) = (self.folder.at(&self.name), self.folder.at(NAME));
        match kept.stat().at("look at", kept)? {
            None => return Ok(()),
            Some(stat) if stat.size == 0 => self.fs.unlink_if_there(at).at("remove", at)?,
            Some(_) => self.fs.rename_over(kept, at).at("rename", kept)?,
        }
        self.fs.sync_dir(self.folder).at("sync", self.folder.path().display())?; // D2: before it goes, and before the journal
        // rename(2) leaves both where they are two names of one object. One that comes back is that of its generation still.
        Ok(self.fs.unlink_if_there(kept).at("remove", kept)?)
    }

    /// Lets it go, with any that a power cut has brought back. Nothing waits for that.
    pub fn let_go(&self) -> Result<(), Error> {
        for name in self.folder.names().at("list", self.folder.path().display())? {
            if name.starts_with(b"manifest.") && (name.ends_with(b".old") || name.ends_with(b".old.new")) {
                self.fs.unlink(self.folder.at(&name)).at("remove", self.folder.at(&name))?;
            }
        }
        Ok(())
    }
}
