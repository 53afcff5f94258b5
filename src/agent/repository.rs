//! The parts of a repository that a turn may change besides files and HEAD, by gitrepository-layout(5): branches, tags, the stash, settings,
//! hooks, rules, what is staged, and what was begun and is not ended. Remotes' branches are left out: a fetch brings them back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::short_hash::short;
use crate::fs::{Dir, Sort, Stat, Time};
use crate::snapshot::read_below;
use crate::tree::{commit, git_index};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its path in the repository's own directory.
    pub name: String,
    pub sign: u64,
    /// The commit of a ref, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Part {
    pub fn is_hook(&self) -> bool {
        self.name.starts_with("hooks/")
    }

    /// True for a hook, and for what git reads before all it does.
    pub fn is_obeyed(&self) -> bool {
        self.is_hook() || OBEYED.contains(&&*self.name)
    }
}

/// A part that was found, with its size in bytes, and the times of its content and of its inode.
pub struct Found {
    pub part: Part,
    /// Bytes.
    pub size: u64,
    pub mtime: Time,
    pub ctime: Time,
}

const OBEYED: [&str; 6] =
    ["config", "config.worktree", "info/exclude", "info/attributes", "commondir", "objects/info/alternates"];
/// The names that stand there while something is begun and not ended.
const BEGUN: [&str; 5] = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"];
/// The most bytes of a file of which all are looked at; of a larger one, its time.
const SMALL: u64 = 64 << 10;
const PACKED_REFS: &str = "packed-refs";
/// The most bytes of it that are read: some 15,000 refs.
const PACKED: u64 = 1 << 20;
/// The most refs in files that are read.
const LOOSE: usize = 1000;

/// The parts in a repository's own directory, in no order. What cannot be read is left out.
pub fn parts(git: &Dir) -> Vec<Found> {
    let mut found: Vec<Found> = OBEYED.iter().chain(&BEGUN).filter_map(|name| file(git, (*name).to_owned())).collect();
    if let Ok(hooks) = git.open_below(b"hooks") {
        let names = hooks.names().unwrap_or_default().into_iter().filter_map(|name| String::from_utf8(name).ok());
        found.extend(names.filter(|name| !name.ends_with(".sample")).filter_map(|name| file(git, format!("hooks/{name}"))));
    }
    found.extend(index(git));
    found.extend(refs(git).into_values());
    found
}

fn stat(git: &Dir, name: &str) -> Option<Stat> {
    match name.rsplit_once('/') {
        Some((above, name)) => git.open_below(above.as_bytes()).ok()?.at(name.as_bytes()).stat().ok()?,
        None => git.at(name.as_bytes()).stat().ok()?,
    }
}

/// A file, by its content: git replaces one by another of the same. Of a directory, as a rebase has, only that it is there.
fn file(git: &Dir, name: String) -> Option<Found> {
    let stat = stat(git, &name)?;
    let content = match stat.sort {
        Sort::File if stat.size <= SMALL => read_below(git, name.as_bytes(), SMALL)?,
        Sort::File => format!("{:?}", stat.mtime).into_bytes(),
        _ => Vec::new(),
    };
    let size = if stat.sort == Sort::File { stat.size } else { 0 };
    Some(Found { part: Part { name, sign: sign(&content), commit: None }, size, mtime: stat.mtime, ctime: stat.ctime })
}

fn sign(content: &[u8]) -> u64 {
    content.iter().fold(0, |sign, byte| short([sign, u64::from(*byte), 0]))
}

/// The staged state, by its meaning: git status alone rewrites the file.
fn index(git: &Dir) -> Option<Found> {
    let stat = stat(git, "index")?;
    let meaning = git_index::meaning(&read_below(git, b"index", git_index::MOST)?)?;
    let part = Part { name: "index".into(), sign: sign(&meaning.0), commit: None };
    Some(Found { part, size: stat.size, mtime: stat.mtime, ctime: stat.ctime })
}

/// Branches, tags and the stash, in files of their own or packed into one; and that file itself if git cannot read it.
fn refs(git: &Dir) -> BTreeMap<String, Found> {
    let mut refs = BTreeMap::new();
    let found = |name: &str, commit: String, stat: &Stat| {
        let part = Part { name: name.to_owned(), sign: sign(commit.as_bytes()), commit: Some(commit) };
        (name.to_owned(), Found { part, size: 0, mtime: stat.mtime, ctime: stat.ctime })
    };
    if let Some(stat) = stat(git, PACKED_REFS).filter(|stat| stat.size <= PACKED) {
        let text = String::from_utf8(read_below(git, PACKED_REFS.as_bytes(), PACKED).unwrap_or_default()).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' ')).filter(|(_, name)| is_own(name));
        refs.extend(lines.filter_map(|(hash, name)| Some(found(name, commit(hash)?, &stat))));
        // git does nothing any more with a repository in which it finds such.
        let is_good =
            |line: &str| line.starts_with(['#', '^']) || line.split_once(' ').is_some_and(|(hash, _)| commit(hash).is_some());
        if let Some(bad) = text.lines().find(|line| !is_good(line)) {
            let part = Part { name: PACKED_REFS.into(), sign: sign(bad.as_bytes()), commit: None };
            refs.insert(PACKED_REFS.into(), Found { part, size: stat.size, mtime: stat.mtime, ctime: stat.ctime });
        }
    }
    let mut waiting = vec!["refs/heads".to_owned(), "refs/tags".to_owned(), "refs/stash".to_owned()];
    let mut left = LOOSE;
    while let Some(name) = waiting.pop().filter(|_| left > 0) {
        left -= 1;
        let Some(stat) = stat(git, &name) else { continue };
        if stat.sort == Sort::Directory {
            let names = git.open_below(name.as_bytes()).and_then(|dir| dir.names()).unwrap_or_default();
            waiting.extend(names.into_iter().filter_map(|below| Some(format!("{name}/{}", String::from_utf8(below).ok()?))));
        } else if let Some(hash) = read_below(git, name.as_bytes(), 128).and_then(|text| commit(&String::from_utf8(text).ok()?)) {
            refs.extend([found(&name, hash, &stat)]);
        }
    }
    refs
}

fn is_own(name: &str) -> bool {
    ["refs/heads/", "refs/tags/"].iter().any(|above| name.starts_with(above)) || name == "refs/stash"
}
