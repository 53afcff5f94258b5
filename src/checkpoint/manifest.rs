//! `checkpoint/manifest.jsonl`: a line for each path that is in, and one for each folder whose mtime was set.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};

use serde::{Deserialize, Serialize};

use super::Error;
use crate::error::At;
use crate::fs::Fs;
use crate::fs::dir::{Dir, Time};
use crate::fs::path::AbsPath;
use crate::tree::digest::Digest;
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
    /// What `--force` found in its place: `displaced/<generation>/<n>`.
    Displaced {
        /// Of which generation.
        generation: u64,
    },
    /// Not kept, and why.
    Uncovered {
        /// Why, for people.
        why: String,
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
enum Line {
    Original(Original),
    FolderTime(FolderTime),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRef<'a> {
    Original(&'a Original),
    FolderTime(&'a FolderTime),
}

/// A whole manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// By path.
    pub originals: BTreeMap<AbsPath, Original>,
    /// By path.
    pub folder_times: BTreeMap<AbsPath, FolderTime>,
}

impl Kept {
    /// Where it lies below the session's folder, for the change of number `n`.
    pub fn place(&self, n: u32) -> Option<Vec<u8>> {
        match self {
            Kept::Nothing | Kept::Metadata | Kept::Uncovered { .. } => None,
            Kept::Blob { digest, numbered: false, .. } => Some(format!("checkpoint/blobs/{digest}").into_bytes()),
            Kept::Blob { digest, numbered: true, .. } => Some(format!("checkpoint/blobs/{digest}.{n}").into_bytes()),
            Kept::Displaced { generation } => Some(format!("displaced/{generation}/{n}").into_bytes()),
            Kept::Object => Some(format!("checkpoint/objects/{n}").into_bytes()),
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
    /// Reads the manifest of the session whose folder is `dir`; an empty one where there is none.
    pub fn read(dir: &Dir) -> Result<Self, Error> {
        let folder = dir.open_below(b"checkpoint").at("open the folder", dir.at(b"checkpoint"))?;
        Self::read_in(&folder)
    }

    /// The same in the folder that holds `manifest.jsonl`.
    pub fn read_in(folder: &Dir) -> Result<Self, Error> {
        let at = folder.at(b"manifest.jsonl");
        let damaged = |why: String| Error::Manifest { path: at.to_string(), why };
        let file = match at.open_file() {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error).at("open", at).map_err(Error::from),
        };
        let mut manifest = Self::default();
        for (i, line) in BufReader::with_capacity(64 << 10, file).split(b'\n').enumerate() {
            let line = line.at("read", at)?;
            let line = serde_json::from_slice(&line).map_err(|error| damaged(format!("line {}: {error}", i + 1)))?;
            let twice = match line {
                Line::Original(original) => {
                    let file = matches!(original.state, Some(ref state) if matches!(state.what, What::File { .. }));
                    if file != matches!(original.kept, Kept::Blob { .. })
                        && !matches!(original.kept, Kept::Metadata | Kept::Uncovered { .. } | Kept::Displaced { .. })
                    {
                        return Err(damaged(format!("line {}: a blob is kept of files, and of nothing else", i + 1)));
                    }
                    manifest.originals.insert(original.path.clone(), original).is_some()
                }
                Line::FolderTime(time) => manifest.folder_times.insert(time.path.clone(), time).is_some(),
            };
            if twice {
                return Err(damaged(format!("line {}: its path stands there twice", i + 1)));
            }
        }
        Ok(manifest)
    }

    /// Replaces the manifest, durably.
    pub fn write(&self, fs: &Fs, dir: &Dir) -> Result<(), Error> {
        let folder = dir.open_below(b"checkpoint").at("open the folder", dir.at(b"checkpoint"))?;
        self.write_in(fs, &folder)
    }

    /// The same in the folder that is to hold `manifest.jsonl`.
    pub fn write_in(&self, fs: &Fs, folder: &Dir) -> Result<(), Error> {
        let (at, temp) = (folder.at(b"manifest.jsonl"), folder.at(b"manifest.jsonl.new"));
        fs.unlink_if_there(temp).at("remove", temp)?;
        let file = fs.create(temp, 0o600).at("make", temp)?;
        let lines = self.originals.values().map(LineRef::Original).chain(self.folder_times.values().map(LineRef::FolderTime));
        let mut buffer = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut buffer, &line).expect("recant's own types have string keys and no failing serializer");
            buffer.push(b'\n');
            if buffer.len() > 1 << 20 {
                fs.write(&file, &buffer, folder.path()).at("write", temp)?;
                buffer.clear();
            }
        }
        fs.write(&file, &buffer, folder.path()).at("write", temp)?;
        // D1: the lines before their name; D2: the name.
        fs.sync(&file, folder.path()).at("sync", temp)?;
        fs.rename_over(temp, at).at("rename", temp)?;
        fs.sync_dir(folder).at("sync", folder.path().display())?;
        Ok(())
    }

    /// The names of blobs that are taken without a number behind them.
    pub fn plain_blobs(&self) -> HashSet<Digest> {
        let plain = self.originals.values().filter_map(|original| match original.kept {
            Kept::Blob { digest, numbered: false, .. } => Some(digest),
            _ => None,
        });
        plain.collect()
    }
}
