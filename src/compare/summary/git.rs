//! The acts of git on a repository, as its files tell: gitrepository-layout(5). A repository whose refs are no files tells less.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::{Read, Seek, SeekFrom};

use serde::Serialize;

use super::super::renames::Open;
use super::super::sources::{Content, End};
use super::reflog::{Fate, Reflog};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Sort};
use crate::tree::Head;

/// The most bytes of a file that are read.
const MOST: u64 = 8 << 20;

/// Something that git did.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum GitAct {
    /// The repository is new.
    Created,
    /// The repository is gone.
    Deleted,
    /// HEAD leads to another branch now, or to a commit alone.
    Head {
        #[serde(skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// So many commits were added: to a branch, or to a HEAD that leads to none.
    Commits {
        #[serde(skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        count: usize,
    },
    /// A branch is new.
    BranchCreated { branch: String },
    /// A branch leads to another commit, and not by commits alone; with what its log says about that.
    BranchMoved {
        branch: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Commits that a branch had are no longer on it.
    CommitsLost { branch: String },
    /// A branch is another one of the same name: its log is gone, or begins anew.
    HistoryReplaced { branch: String },
    /// A branch is gone.
    BranchDeleted { branch: String },
    /// So many tags came, went or moved.
    Tags { count: usize },
    /// Branches of another repository are otherwise known.
    Fetched { remote: String },
    /// The list of stashed changes is another one.
    Stash,
    /// A merge, rebase or the like has begun and not ended.
    Begun { what: &'static str },
    /// Another content is to be committed.
    Index,
}

impl GitAct {
    /// True if commits are lost by it.
    pub fn loses(&self) -> bool {
        matches!(self, Self::CommitsLost { .. } | Self::HistoryReplaced { .. })
    }
}

/// Files and directories that are there as long as something goes on.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("BISECT_LOG", "bisect"),
];

/// Reads what git did from changes of its own files, in the repository at `top`. Of another version control nothing is known.
///
/// # Errors
/// A content cannot be read.
pub fn acts(top: &AbsPath, (changes, of): (&[Change], &[usize]), open: &mut Open<'_>) -> Result<Vec<GitAct>, Error> {
    if top.name() != b".git" {
        return Ok(Vec::new());
    }
    let name = |i: &usize| Some((std::str::from_utf8(changes[*i].path.below(top)?).ok()?, *i));
    let files: BTreeMap<&str, usize> = of.iter().filter_map(name).collect();
    let mut repository = Files { changes, files: &files, open };
    let head = repository.sort("HEAD");
    if head == Some(Sort::Deleted) {
        return Ok(vec![GitAct::Deleted]);
    }
    let is_new = head == Some(Sort::Created);
    let mut acts: Vec<GitAct> = is_new.then_some(GitAct::Created).into_iter().collect();
    let branch = match repository.bytes("HEAD", End::After)? {
        Some(bytes) => {
            Head::of(|name| Ok::<_, Infallible>((name == "HEAD").then(|| bytes.clone()))).unwrap_or_else(|never| match never {})
        }
        None => None,
    };
    if let Some(head) = branch.filter(|_| !is_new) {
        let branch = head.branch().map(str::to_owned);
        let commits = if branch.is_none() { repository.commits("logs/HEAD")? } else { 0 };
        acts.push(GitAct::Head { branch });
        acts.extend((commits > 0).then_some(GitAct::Commits { branch: None, count: commits }));
    }
    let moved = repository.moved()?;
    repository.refs(&moved, is_new, &mut acts)?;
    let is_there = |name: &str| repository.sort(name) == Some(Sort::Created);
    acts.extend(moved.contains_key(STASH).then_some(GitAct::Stash));
    acts.extend(UNDER_WAY.iter().filter(|(name, _)| is_there(name)).map(|(_, what)| GitAct::Begun { what }));
    acts.extend(repository.sort("index").filter(|_| !is_new).map(|_| GitAct::Index));
    acts.dedup();
    Ok(acts)
}

/// The changed files of a repository, by their paths in it.
struct Files<'a, 'o> {
    changes: &'a [Change],
    files: &'a BTreeMap<&'a str, usize>,
    open: &'a mut Open<'o>,
}

/// The refs that lead elsewhere, with their commits before and after, in hexadecimal.
type Moved = BTreeMap<String, [Option<String>; 2]>;

const STASH: &str = "refs/stash";

impl Files<'_, '_> {
    fn sort(&self, name: &str) -> Option<Sort> {
        self.files.get(name).map(|i| self.changes[*i].sort())
    }

    /// The content of a file that changed; `None` if it did not, is not there, or is no longer kept.
    fn bytes(&mut self, name: &str, end: End) -> Result<Option<Vec<u8>>, Error> {
        let Some(i) = self.files.get(name).copied() else { return Ok(None) };
        let change = &self.changes[i];
        let object = if matches!(end, End::Before) { &change.before.object } else { &change.after };
        if !object.as_ref().is_some_and(|state| state.is_file()) {
            return Ok(None);
        }
        let Content::File(mut file) = (self.open)(i, end)? else { return Ok(None) };
        // What happened last stands at the end of a log.
        if name.starts_with("logs/")
            && let Some(far) = object.as_ref().and_then(|state| state.size().checked_sub(MOST))
            && file.seek(SeekFrom::Start(far)).is_err()
        {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        Ok(file.take(MOST).read_to_end(&mut bytes).ok().map(|_| bytes))
    }

    /// Compares the refs, whether they are packed or files.
    fn moved(&mut self) -> Result<Moved, Error> {
        let mut refs = Moved::new();
        for (at, end) in [End::Before, End::After].into_iter().enumerate() {
            let packed = self.bytes("packed-refs", end)?.unwrap_or_default();
            for line in String::from_utf8_lossy(&packed).lines().filter(|line| !line.starts_with(['#', '^'])) {
                if let Some((commit, name)) = line.split_once(' ') {
                    refs.entry(name.to_owned()).or_default()[at] = Some(commit.to_owned());
                }
            }
            let loose: Vec<&str> = self.files.keys().copied().filter(|name| name.starts_with("refs/")).collect();
            for name in loose {
                if let Some(bytes) = self.bytes(name, end)? {
                    refs.entry(name.to_owned()).or_default()[at] = Some(String::from_utf8_lossy(&bytes).trim_end().to_owned());
                }
            }
        }
        refs.retain(|_, [before, after]| before != after);
        Ok(refs)
    }

    fn refs(&mut self, moved: &Moved, is_new: bool, acts: &mut Vec<GitAct>) -> Result<(), Error> {
        let (mut tags, mut remotes) = (0, BTreeSet::new());
        for (name, [before, after]) in moved {
            if let Some(branch) = name.strip_prefix("refs/heads/").map(str::to_owned) {
                self.branch(branch, [before.as_deref(), after.as_deref()], is_new, acts)?;
            } else if name.starts_with("refs/tags/") {
                tags += 1;
            } else if let Some((remote, _)) = name.strip_prefix("refs/remotes/").and_then(|name| name.split_once('/')) {
                remotes.insert(remote.to_owned());
            }
        }
        acts.extend((tags > 0).then_some(GitAct::Tags { count: tags }));
        acts.extend(remotes.into_iter().map(|remote| GitAct::Fetched { remote }));
        Ok(())
    }

    /// Adds what became of a branch that leads elsewhere.
    fn branch(
        &mut self,
        branch: String,
        [from, to]: [Option<&str>; 2],
        is_new: bool,
        acts: &mut Vec<GitAct>,
    ) -> Result<(), Error> {
        let Some(to) = to else {
            acts.push(GitAct::BranchDeleted { branch });
            return Ok(());
        };
        let [before, after] = self.log(&format!("logs/refs/heads/{branch}"))?;
        let log = Reflog::of(&before, &after);
        let (count, why) = (log.commits(), log.why().map(str::to_owned));
        // Where packed refs did not change, the log tells from where it was moved.
        let fate = from.or_else(|| log.led_to()).map(|from| log.fate(from, to));
        acts.extend(match fate {
            Some(Fate::Lost) => Some(GitAct::CommitsLost { branch: branch.clone() }),
            Some(Fate::Replaced) => Some(GitAct::HistoryReplaced { branch: branch.clone() }),
            _ => None,
        });
        acts.extend(match fate {
            None => (!is_new || count == 0).then(|| GitAct::BranchCreated { branch: branch.clone() }),
            Some(Fate::Lost | Fate::Replaced) => Some(GitAct::BranchMoved { branch: branch.clone(), why }),
            Some(_) => (count == 0).then(|| GitAct::BranchMoved { branch: branch.clone(), why }),
        });
        acts.extend((count > 0).then_some(GitAct::Commits { branch: Some(branch), count }));
        Ok(())
    }

    /// The number of commits that were added to a log, amended ones aside.
    fn commits(&mut self, log: &str) -> Result<usize, Error> {
        let [before, after] = self.log(log)?;
        Ok(Reflog::of(&before, &after).commits())
    }

    /// The text of a log before and after; empty where it is not there, or did not change.
    fn log(&mut self, name: &str) -> Result<[String; 2], Error> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let [before, after] = [self.bytes(name, End::Before)?, self.bytes(name, End::After)?];
        let after = after.unwrap_or_default();
        if let Some(before) = before {
            return Ok([text(&before), text(&after)]);
        }
        // What was there before is no longer kept.
        let size = self.files.get(name).and_then(|i| self.changes[*i].before.object.as_ref()).map_or(0, |state| state.size());
        Ok([String::new(), text(after.get(usize::try_from(size).unwrap_or(usize::MAX)..).unwrap_or_default())])
    }
}
