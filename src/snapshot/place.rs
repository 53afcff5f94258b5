//! Which folder is meant where none is named, and which are too broad to be anybody's project.

use super::error::{refused, too_broad, too_many};
use super::rules::Source;
use super::walk::{Met, Walk};
use crate::error::At as _;
use crate::error::Error;
use crate::fs::dir::Dir;
use crate::fs::mounts;
use crate::fs::path::AbsPath;

/// What the top folder of a project holds.
const PROJECT: [&[u8]; 9] =
    [b".git", b".hg", b"Cargo.toml", b"pyproject.toml", b"package.json", b"go.mod", b"Makefile", b"pom.xml", b"Gemfile"];

/// File systems of the kernel's own: nothing in them can come back, and a folder above one of them is a system's.
const KERNELS: [&str; 17] = [
    "proc",
    "sysfs",
    "devtmpfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "securityfs",
    "debugfs",
    "tracefs",
    "pstore",
    "bpf",
    "configfs",
    "efivarfs",
    "mqueue",
    "binfmt_misc",
    "fusectl",
    "selinuxfs",
];

/// The top of the project that `cwd` lies in: the nearest folder upward, below `home`, with a project's files; else `cwd`.
pub fn project(cwd: &AbsPath, home: Option<&AbsPath>) -> AbsPath {
    let below_home = |folder: &AbsPath| home.is_none_or(|home| !home.is_under(folder));
    let is_top = |folder: &AbsPath| {
        Dir::open(folder.as_path()).is_ok_and(|dir| PROJECT.iter().any(|mark| matches!(dir.at(mark).stat(), Ok(Some(_)))))
    };
    std::iter::successors(Some(cwd.clone()), AbsPath::parent)
        .take_while(|folder| folder.depth() > 0 && below_home(folder))
        .find(is_top)
        .unwrap_or_else(|| cwd.clone())
}

/// Refuses what no snapshot is taken of: recant's own store, which is at `store`, and what lies in it; what is too broad; what is not there.
pub fn check(folder: &AbsPath, store: &AbsPath, home: Option<&AbsPath>) -> Result<(), Error> {
    let refused = |why: &str, remedy: Option<&str>| Err(refused(folder, why).with_remedy_if(remedy.map(Into::into)));
    if folder.is_under(store) {
        return refused("it is recant's own store, or lies in it", None);
    }
    refuse_broad(folder, home)?;
    if !folder.as_path().exists() {
        let remedy = "name a folder or file that is there; -m gives a message";
        return refused("there is nothing there to take a snapshot of", Some(remedy));
    }
    Ok(())
}

/// Refuses `/`, the home folder and what is above it, and what is above or in a file system of the kernel's.
pub fn refuse_broad(folder: &AbsPath, home: Option<&AbsPath>) -> Result<(), Error> {
    let broad = |why: String| Err(too_broad(folder, why));
    if folder.depth() == 0 {
        return broad("the root folder is too broad for a snapshot".into());
    }
    match home {
        Some(home) if home == folder => return broad("your home folder is too broad for a snapshot".into()),
        Some(home) if home.is_under(folder) => {
            return broad(format!("it holds your home folder {home}: too broad for a snapshot"));
        }
        _ => {}
    }
    let mounts = mounts::read().at("read", "/proc/self/mountinfo")?;
    if let Some(mount) = mounts::containing(&mounts, folder).filter(|mount| KERNELS.contains(&&*mount.fs_type)) {
        let (kind, point) = (&mount.fs_type, &mount.point);
        return Err(refused(
            folder,
            format!("it lies in {kind}, mounted at {point}: what is there is the kernel's, and cannot be brought back"),
        ));
    }
    match mounts.iter().find(|mount| KERNELS.contains(&&*mount.fs_type) && mount.point.is_under(folder)) {
        Some(mount) => {
            broad(format!("{} of the system is mounted in it, at {}: too broad for a snapshot", mount.fs_type, mount.point))
        }
        None => Ok(()),
    }
}

/// So many subfolders are named.
const NAMED: usize = 5;

/// How many objects a walk comes to, and the subfolders with the most of them.
pub fn count(folder: &AbsPath, store: &AbsPath, source: &Source) -> Result<(u64, Vec<(String, u64)>), Error> {
    let mut walk = Walk::new(folder, store, source)?;
    let (mut count, mut tops) = (0, Vec::<(Vec<u8>, u64)>::new());
    while let Some(met) = walk.next()? {
        let Met::Object(object) = met else { continue };
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
    let named = tops.into_iter().take(NAMED).map(|(name, n)| (format!("{}/", crate::fs::path::Shown(&name)), n));
    Ok((count, named.collect()))
}

/// Refuses a folder of more than `limit` objects.
pub fn refuse_large(folder: &AbsPath, store: &AbsPath, source: &Source, limit: u64) -> Result<(), Error> {
    let (count, biggest) = count(folder, store, source)?;
    if count > limit { Err(too_many(folder, count, limit, &biggest)) } else { Ok(()) }
}
