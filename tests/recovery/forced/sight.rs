//! What is in tree and store at a moment, and whether it is what was promised.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine as _;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::common;

/// What is at a path.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    pub kind: &'static str,
    /// A file's hash, a link's target.
    pub content: String,
    pub tokens: BTreeSet<u32>,
    pub mode: u32,
    pub owner: (u32, u32),
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    pub mtime: String,
    pub ino: u64,
    pub names: u64,
}

impl Found {
    pub fn at(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        let (kind, content, bytes) = match meta.file_type() {
            kind if kind.is_dir() => ("directory", String::new(), Vec::new()),
            kind if kind.is_symlink() => ("symlink", path.read_link().ok()?.to_string_lossy().into_owned(), Vec::new()),
            _ => {
                // A file that is closed to an ordinary user is told by the rest alone.
                let bytes = std::fs::read(path).unwrap_or_default();
                let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
                ("file", hash, bytes)
            }
        };
        let mtime = chrono::DateTime::from_timestamp(meta.mtime(), u32::try_from(meta.mtime_nsec()).ok()?)?;
        Some(Self {
            kind,
            content,
            tokens: tokens_of(&bytes),
            mode: meta.mode() & 0o7777,
            owner: (meta.uid(), meta.gid()),
            xattrs: common::xattrs(path).into_iter().filter(|(name, _)| name.starts_with(b"user.")).collect(),
            mtime: mtime.to_rfc3339_opts(chrono::SecondsFormat::Nanos, true),
            ino: meta.ino(),
            names: if meta.is_dir() { 1 } else { meta.nlink() },
        })
    }

    /// Without what changes where something beside it comes and goes.
    pub fn itself(&self) -> Self {
        let mtime = if self.kind == "directory" { String::new() } else { self.mtime.clone() };
        Self { mtime, names: 0, ..self.clone() }
    }
}

/// The numbers of the lines `tok-N-`; a big file has the same line many times.
pub fn tokens_of(bytes: &[u8]) -> BTreeSet<u32> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter_map(|line| line.strip_prefix("tok-")?.strip_suffix('-')?.parse().ok()).collect()
}

/// All that lies under a directory, by its path below it.
pub type Sight = BTreeMap<String, Found>;

pub fn look(top: &Path) -> Sight {
    let (mut sight, mut todo) = (Sight::new(), vec![top.to_path_buf()]);
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.expect("a name in the directory").path();
            let Some(found) = Found::at(&path) else { continue };
            if found.kind == "directory" {
                todo.push(path.clone());
            }
            let below = path.strip_prefix(top).expect("a path below it").to_string_lossy().into_owned();
            sight.insert(below, found);
        }
    }
    sight
}

/// Where each token is.
pub fn places(sight: &Sight) -> BTreeMap<u32, BTreeSet<String>> {
    let mut places = BTreeMap::<u32, BTreeSet<String>>::new();
    for (path, found) in sight {
        found.tokens.iter().for_each(|token| _ = places.entry(*token).or_default().insert(path.clone()));
    }
    places
}

/// Tree and store at one moment.
pub struct Moment {
    pub tree: Sight,
    pub in_tree: BTreeMap<u32, BTreeSet<String>>,
    pub in_store: BTreeMap<u32, BTreeSet<String>>,
}

impl Moment {
    pub fn of(tree: &Path, store: &Path) -> Self {
        let tree = look(tree);
        Self { in_tree: places(&tree), in_store: places(&look(store)), tree }
    }

    pub fn all(&self) -> BTreeSet<u32> {
        self.in_tree.keys().chain(self.in_store.keys()).copied().collect()
    }

    /// What somebody sees as his files.
    pub fn seen(&self) -> BTreeSet<u32> {
        let is_his = |paths: &BTreeSet<String>| paths.iter().any(|path| !is_ours(path));
        self.in_tree.iter().filter(|(_, paths)| is_his(paths)).map(|(token, _)| *token).collect()
    }
}

pub fn is_ours(path: &str) -> bool {
    path.contains(".recant-")
}

pub fn is_under(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub fn places_of(token: u32, moment: &Moment) -> Vec<&String> {
    [&moment.in_tree, &moment.in_store].into_iter().filter_map(|places| places.get(&token)).flatten().collect()
}

/// A path of the session, and what a verb is to put there.
pub struct Change {
    pub path: String,
    pub want: Option<Value>,
    /// Its inode stays, so that its content is what somebody makes of it.
    pub in_place: bool,
    /// It was kept whole, with what nothing else names in it.
    pub is_whole: bool,
}

/// How what is there is not what was to be there.
pub fn differs(found: Option<&Found>, change: &Change, is_already: bool) -> Option<String> {
    let (found, want) = match (found, &change.want) {
        (None, None) => return None,
        // It was gone when it was to go, and is in the record as nothing: by force, what is there now may stay or give way.
        (_, None) if change.in_place => return None,
        (Some(found), Some(want)) => (found, want),
        (found, want) => return Some(format!("{found:?}, not {want:?}")),
    };
    let is_file = found.kind == "file";
    let wanted = |name: &str| want[name].as_str().unwrap_or_default();
    let xattrs: Vec<_> = rows(&want["xattrs"]).iter().map(xattr).filter(|(name, _)| name.starts_with(b"user.")).collect();
    let owner = [found.owner.0, found.owner.1].map(Value::from);
    // A mode or an owner of a file with several names is set under each of them.
    let is_alone = found.names < 2;
    let checks = [
        ("kind", found.kind == wanted("kind")),
        ("content", !is_alone || !is_file || change.in_place || want["hash"].is_null() || found.content == wanted("hash")),
        ("target", found.kind != "symlink" || found.content == wanted("target")),
        ("mode", !is_alone || found.kind == "symlink" || format!("{:04o}", found.mode) == wanted("mode")),
        ("owner", !is_alone || owner == [want["uid"].clone(), want["gid"].clone()]),
        ("mtime", !is_alone || !is_file || change.in_place || is_already || found.mtime == wanted("mtime")),
        ("xattrs", !is_alone || found.xattrs == xattrs),
    ];
    let wrong: Vec<&str> = checks.iter().filter(|(_, is_right)| !is_right).map(|(name, _)| *name).collect();
    (!wrong.is_empty()).then(|| format!("another {}: {found:?}, not {want}", wrong.join(", ")))
}

pub fn xattr(row: &Value) -> (Vec<u8>, Vec<u8>) {
    let bytes = base64::engine::general_purpose::STANDARD.decode(row["b64"].as_str().expect("a value"));
    (row["name"].as_str().unwrap_or_default().as_bytes().to_vec(), bytes.expect("base64"))
}

pub fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// What the session does not name is as it was.
#[track_caller]
pub fn assert_others(changes: &[Change], before: &Sight, now: &Sight, what: &str) {
    for path in before.keys().chain(now.keys()).filter(|path| changes.iter().all(|change| change.path != **path)) {
        let (then, found) = (before.get(path), now.get(path));
        let above = || changes.iter().filter(|change| is_under(path, &change.path));
        if above().next().is_some() {
            // What somebody had put there has given way with the directory; what comes there was kept in one.
            let is_fair = then.is_some()
                || found.is_none()
                || above().any(|change| change.is_whole)
                || path.contains("-kept-")
                || path.contains("/late-");
            assert!(is_fair, "{what}: {path} has appeared");
        } else if then.is_none_or(|then| then.names < 2) && !path.contains("-kept-") {
            assert_eq!(then.map(Found::itself), found.map(Found::itself), "{what}: {path}, which is nothing of the session's");
        }
    }
}
