//! Receipts: they tell which bytes an installation added to a file of settings, so that these can be taken out again.
//!
//! In the store: `agents/installed/<digest>.json`, the digest being that of the file's path. It holds no content of the file. A hint: where
//! it is lost, or the file was written to since, what is removed follows from the file alone. It stays after a removal: a rollback may bring
//! the hooks back.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::directory::directory;
use super::settings::edit::cut;
use crate::error::Error;
use crate::fs::{AbsPath, Fs};
use crate::session::{Store, read_small};
use crate::tree::{Hash, json};

/// The bytes that were added to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub path: AbsPath,
    /// True if the installation made the file.
    pub created: bool,
    /// The directories that it made, the topmost first.
    #[serde(rename = "folders")]
    pub directories: Vec<AbsPath>,
    /// The digest of the file as it was then.
    #[serde(rename = "digest")]
    pub hash: Hash,
    /// The bytes of it that were added.
    pub added: Vec<Range<usize>>,
}

impl Receipt {
    /// The text as it was before; `None` if the file was written to since.
    pub fn before(&self, text: &str) -> Option<String> {
        if Hash::of(text.as_bytes()) == self.hash { cut(text, self.added.clone()) } else { None }
    }

    /// Reads what was added to the file at `path`; `None` if nothing was, or it is not known any more.
    pub fn read(store: &Store, path: &AbsPath) -> Option<Self> {
        let dir = store.dir.open_below(DIRECTORY).ok()?;
        let bytes = read_small(dir.at(&name(path)), LIMIT).ok()??;
        serde_json::from_slice(&bytes).ok().filter(|receipt: &Self| receipt.path == *path)
    }

    /// Replaces what is known of the file. Not durable.
    pub fn write(&self, fs: &Fs, store: &Store) -> Result<(), Error> {
        let dir = directory(fs, store, DIRECTORY)?;
        Ok(fs.replace_later(dir.at(&name(&self.path)), &json::text(self))?)
    }
}

const DIRECTORY: &[u8] = b"agents/installed";
/// More bytes than a receipt has.
const LIMIT: u64 = 1 << 20;

fn name(path: &AbsPath) -> Vec<u8> {
    format!("{:.32}.json", Hash::of(path.as_bytes()).to_string()).into_bytes()
}
