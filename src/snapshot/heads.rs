//! The HEADs that a restore with version control moves: from which commit to which, and the number of commits left behind.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde::Serialize;

use super::content::{Kept, beginning};
use super::differences::Compared;
use super::manifest::Entry;
use super::paths::whole;
use super::series::Series;
use crate::error::Error;
use crate::fs::{AbsPath, Dir, Shown};
use crate::tree::git_head::MOST;
use crate::tree::{Head, State};

/// A HEAD that a restore moves to another commit.
#[derive(Debug, Serialize)]
pub struct Moved {
    pub directory: AbsPath,
    pub from: String,
    /// The commit in the snapshot; missing if that has none, or no such repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The number of commits that `to` does not lead to; missing if git could not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commits: Option<u64>,
    /// The reason why they could not be counted.
    #[serde(skip)]
    pub uncounted: Option<String>,
}

/// The HEADs that a restore of these differences moves, if they are at a commit now. Looks only at directories named `.git`. If refs are
/// not kept in files, it finds nothing.
///
/// # Errors
/// A content cannot be read.
pub fn moved(series: &Series, compared: &Compared) -> Result<Vec<Moved>, Error> {
    let repositories: BTreeSet<AbsPath> = compared.differences.iter().filter_map(|d| repository_of(&d.path)).collect();
    let mut kept = Kept::of(&series.dir, &series.directory);
    let mut moved = Vec::new();
    for git in repositories {
        let from = commit_of(&git, |path| on_tree(series, path))?;
        let to = commit_of(&git, |path| in_snapshot(series, compared, &mut kept, path))?;
        let Some(from) = from.filter(|from| to.as_ref() != Some(from)) else { continue };
        let directory = whole(&series.directory, &git.parent().unwrap_or_else(|| git.clone()))?;
        let counted = count(&directory, &from, to.as_deref());
        let (commits, uncounted) = counted.map_or_else(|why| (None, Some(why)), |commits| (Some(commits), None));
        moved.push(Moved { directory, from, to, commits, uncounted });
    }
    Ok(moved)
}

/// The repository whose HEAD depends on a path: HEAD itself, or a file with the commits of branches.
fn repository_of(path: &AbsPath) -> Option<AbsPath> {
    let git = std::iter::successors(Some(path.clone()), AbsPath::parent).find(|at| at.depth() > 0 && at.name() == b".git")?;
    let below = path.below(&git)?;
    (below == b"HEAD" || below == b"packed-refs" || below.starts_with(b"refs/")).then_some(git)
}

fn commit_of(git: &AbsPath, mut read: impl FnMut(&AbsPath) -> Result<Option<Vec<u8>>, Error>) -> Result<Option<String>, Error> {
    let head = Head::of(|name| match name.split('/').try_fold(git.clone(), |at, part| at.join(part.as_bytes())) {
        Ok(path) => read(&path),
        Err(_) => Ok(None),
    });
    Ok(head?.and_then(|head| head.commit))
}

fn on_tree(series: &Series, path: &AbsPath) -> Result<Option<Vec<u8>>, Error> {
    let path = whole(&series.directory, path)?;
    let parent = path.parent().unwrap_or_else(|| path.clone());
    // An unreadable file counts as none; the restore itself names it.
    let file = Dir::open(parent.as_path()).and_then(|dir| dir.at(path.name()).open_file());
    file.map_or(Ok(None), |file| beginning(&file, MOST, &path).map(Some))
}

/// The content of a path in the snapshot: from a difference, else from the tree.
fn in_snapshot(series: &Series, compared: &Compared, kept: &mut Kept<'_>, path: &AbsPath) -> Result<Option<Vec<u8>>, Error> {
    let Ok(at) = compared.differences.binary_search_by(|d| d.path.cmp(path)) else { return on_tree(series, path) };
    let d = &compared.differences[at];
    if !d.then.as_ref().is_some_and(State::is_file) {
        return Ok(None);
    }
    kept.beginning(&Entry::of(path.clone(), d.then.clone(), d.at), MOST).map(Some)
}

/// Has git count the commits that `from` leads to and `to` does not. Errors: the reason why git cannot. Changes nothing in the repository,
/// runs none of its hooks, and fetches nothing: gitglossary(7), "partial clone"; git(1), GIT_OPTIONAL_LOCKS. git refuses a repository
/// of another user (git-config(1), safe.directory); that counts.
fn count(directory: &AbsPath, from: &str, to: Option<&str>) -> Result<u64, String> {
    let mut git = crate::fs::command("git");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        git.env_remove(name);
    }
    git.envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", ""), ("LC_ALL", "C")]);
    if let Some(above) = directory.parent() {
        git.env("GIT_CEILING_DIRECTORIES", above.as_path());
    }
    git.arg("-C").arg(directory.as_path()).args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
    git.args(["rev-list", "--count", from]).args(to.map(|to| format!("^{to}"))).arg("--").stdin(Stdio::null());
    let said = git.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "git is not here".to_owned(),
        _ => crate::error::reason(&error),
    })?;
    let text = String::from_utf8_lossy(if said.status.success() { &said.stdout } else { &said.stderr }).into_owned();
    let line = text.lines().next().unwrap_or_default();
    line.trim().parse().map_err(|_| Shown(line.as_bytes()).to_string())
}
