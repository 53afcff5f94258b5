//! Finds the directory to use where none is named, and refuses those too broad to be a project.

use super::error::{refused, too_broad, too_many};
use super::rule_source::Source;
use super::snapshot_walk::{Walk, WalkStep};
use crate::error::Error;
use crate::fs::{AbsPath, Dir, mounts};

/// Names found in the top directory of a project.
const PROJECT: [&[u8]; 9] =
    [b".git", b".hg", b"Cargo.toml", b"pyproject.toml", b"package.json", b"go.mod", b"Makefile", b"pom.xml", b"Gemfile"];

/// The top of the project that `cwd` lies in: the nearest directory upward, below `home`, with a project's files; else `cwd`.
pub fn project(cwd: &AbsPath, home: Option<&AbsPath>) -> AbsPath {
    let below_home = |directory: &AbsPath| home.is_none_or(|home| !home.is_under(directory));
    let is_top = |directory: &AbsPath| {
        Dir::open(directory.as_path()).is_ok_and(|dir| PROJECT.iter().any(|mark| matches!(dir.at(mark).stat(), Ok(Some(_)))))
    };
    std::iter::successors(Some(cwd.clone()), AbsPath::parent)
        .take_while(|directory| directory.depth() > 0 && below_home(directory))
        .find(is_top)
        .unwrap_or_else(|| cwd.clone())
}

/// Refuses directories of which no snapshot is taken: recant's own store at `store` and anything in it, too broad ones, missing ones.
pub fn check(directory: &AbsPath, store: &AbsPath, home: Option<&AbsPath>) -> Result<(), Error> {
    let refused = |why: &str, remedy: Option<&str>| Err(refused(directory, why).with_remedy_if(remedy));
    if directory.is_under(store) {
        return refused("it is recant's own store, or lies in it", None);
    }
    refuse_broad(directory, home)?;
    if !directory.as_path().exists() {
        let remedy = "name a directory or file that is there; -m gives a message";
        return refused("there is nothing there to take a snapshot of", Some(remedy));
    }
    Ok(())
}

/// Refuses `/`, the home directory and those above it, and directories above or in a file system of the kernel.
pub fn refuse_broad(directory: &AbsPath, home: Option<&AbsPath>) -> Result<(), Error> {
    let broad = |why: String| Err(too_broad(directory, why));
    if directory.depth() == 0 {
        return broad("the root directory is too broad for a snapshot".into());
    }
    match home {
        Some(home) if home == directory => return broad("your home directory is too broad for a snapshot".into()),
        Some(home) if home.is_under(directory) => {
            return broad(format!("it holds your home directory {home}: too broad for a snapshot"));
        }
        _ => {}
    }
    let mounts = mounts::read()?;
    if let Some(mount) = mounts::containing(&mounts, directory).filter(|mount| mount.is_kernels()) {
        let (kind, point) = (&mount.fs_type, &mount.point);
        return Err(refused(
            directory,
            format!("it lies in {kind}, mounted at {point}: the files there are the kernel's and cannot be restored"),
        ));
    }
    match mounts.iter().find(|mount| mount.is_kernels() && mount.point.is_under(directory)) {
        Some(mount) => {
            broad(format!("{} of the system is mounted in it, at {}: too broad for a snapshot", mount.fs_type, mount.point))
        }
        None => Ok(()),
    }
}

/// The number of subdirectories that are named.
const NAMED: usize = 5;

/// The number of objects that a walk meets, and the subdirectories with the most of them.
pub fn count(directory: &AbsPath, store: &AbsPath, source: &Source) -> Result<(u64, Vec<(String, u64)>), Error> {
    let mut walk = Walk::new(directory, store, source)?;
    let (mut count, mut tops) = (0, Vec::<(Vec<u8>, u64)>::new());
    while let Some(met) = walk.next()? {
        let WalkStep::Object(object) = met else { continue };
        count += 1;
        let path = &object.path.as_bytes()[1..];
        let top = path.split(|b| *b == b'/').next().unwrap_or_default();
        match tops.last_mut() {
            Some((last, n)) if last == top => *n += 1,
            _ if top.is_empty() => {}
            _ => tops.push((top.to_vec(), 1)),
        }
    }
    tops.retain(|(_, n)| *n > 1);
    tops.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let named = tops.into_iter().take(NAMED).map(|(name, n)| (format!("{}/", crate::fs::Shown(&name)), n));
    Ok((count, named.collect()))
}

/// Refuses a directory of more than `limit` objects.
pub fn refuse_large(directory: &AbsPath, store: &AbsPath, source: &Source, limit: u64) -> Result<(), Error> {
    let (count, biggest) = count(directory, store, source)?;
    if count > limit { Err(too_many(directory, count, limit, &biggest)) } else { Ok(()) }
}
