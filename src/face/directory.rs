//! The directory whose snapshots a call means.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::place::{absolute, cwd, home, whole};
use crate::error::Error;
use crate::fs::path::AbsPath;
use crate::snapshot::{compare, place};

/// The directory or file that a call means.
pub fn directory(given: Option<&Path>) -> Result<AbsPath, Error> {
    match given {
        // A path below something that is no directory now may have existed before.
        Some(path) => match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                as_named(path)?.pop().map_or_else(|| absolute(&whole(path)?), Ok)
            }
            _ => absolute(&whole(path)?),
        },
        None => Ok(place::project(&absolute(&cwd()?)?, home().as_ref())),
    }
}

/// The `--dir` option for a suggested command; empty if the directory is meant without it.
pub fn dir(of: &AbsPath) -> String {
    if directory(None).is_ok_and(|meant| meant == *of) { String::new() } else { format!(" --dir {of}") }
}

/// A path with its last component not resolved, then one with no component resolved.
pub fn as_named(path: &Path) -> Result<Vec<AbsPath>, Error> {
    let plain: PathBuf = whole(path)?.components().collect();
    let above = plain.parent().zip(plain.file_name()).and_then(|(above, name)| absolute(above).ok()?.join(name.as_bytes()).ok());
    Ok(above.into_iter().chain(AbsPath::parse(plain.as_os_str().as_bytes()).ok()).collect())
}

/// Given paths as paths of a snapshot of `directory`. Components below `directory` are taken literally: the snapshot tells which are
/// directories, whatever became of them since.
pub fn inner(directory: &AbsPath, paths: &[PathBuf]) -> Result<Vec<AbsPath>, Error> {
    let one = |path: &PathBuf| {
        let named = reached(directory, &whole(path)?)?;
        match named.below(directory) {
            Some([]) => Ok(compare::root()),
            Some(below) => Ok(AbsPath::parse([b"/", below].concat()).map_err(|error| Error::refused(error.to_string()))?),
            None => {
                let problem = Error::refused(format!("{named}: it does not lie in {directory}")).with_path(&named);
                Err(problem.with_remedy("--dir DIR names another directory's snapshots"))
            }
        }
    };
    paths.iter().map(one).collect()
}

/// The place that a path leads to. Links are followed up to `directory`, not below it. The last component is not followed.
fn reached(directory: &AbsPath, path: &Path) -> Result<AbsPath, Error> {
    let mut at = PathBuf::new();
    let mut left = path.components();
    while let Some(component) = left.next() {
        match component {
            Component::ParentDir => drop(at.pop()),
            component => at.push(component),
        }
        let is_known = at.starts_with(directory.as_path()) || directory.as_path().starts_with(&at);
        if !is_known && !left.as_path().as_os_str().is_empty() {
            at = absolute(&at)?.as_path().to_path_buf();
        }
    }
    let shown = || crate::fs::path::Shown(path.as_os_str().as_bytes()).to_string();
    AbsPath::parse(at.as_os_str().as_bytes()).map_err(|error| Error::refused(format!("{}: {error}", shown())).with_path(shown()))
}
