//! The series that a call means, the snapshot in it, and the paths.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::directory::{as_named, directory};
use super::fact::SnapshotFact;
use crate::error::Error;
use crate::fs::{AbsPath, absolute, bad};
use crate::remedy::Command;
use crate::session::{Store, run_in_place};
use crate::snapshot::{Compared, Merged, Series, differences, none, whole};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::resolve::named_changes::TypedPath;

/// A snapshot, and paths in it, as somebody named them.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The directory of the series; else the project.
    pub dir: Option<&'a Path>,
    /// A number, a label, or `last`.
    pub key: &'a str,
    /// The paths; all if there is none.
    pub paths: &'a [TypedPath],
}

/// Opens the series of a directory that has to have one.
///
/// # Errors
/// It has none; it cannot be read.
pub fn series<'d>(desk: &'d Desk, dir: Option<&Path>) -> Result<(&'d Store, Series), Error> {
    let (directory, series) = found(desk, dir, Series::open)?;
    let missing = || none(&directory);
    Ok((desk.store()?.ok_or_else(missing)?, series.ok_or_else(missing)?))
}

/// Finds a directory, and its series if it has one, opened by `open`: by its real path, else by the given path, where a link may have
/// replaced the directory.
///
/// # Errors
/// The path leads nowhere; the series cannot be read.
pub fn found(
    desk: &Desk,
    dir: Option<&Path>,
    open: fn(&Store, &AbsPath) -> Result<Option<Series>, Error>,
) -> Result<(AbsPath, Option<Series>), Error> {
    let real = directory(dir);
    if let Some(store) = desk.store()? {
        let named = dir.map(as_named).transpose()?.unwrap_or_default();
        for directory in real.as_ref().into_iter().chain(&named) {
            if let Some(series) = open(store, directory)? {
                return Ok((directory.clone(), Some(series)));
            }
        }
    }
    Ok((real?, None))
}

impl Named<'_> {
    /// Opens the series: that of the directory, else of the project. If a single path is given that has snapshots of its own, and the
    /// project's snapshot does not hold it, its own series; says so then.
    ///
    /// # Errors
    /// There is none; it cannot be read.
    pub fn series<'d>(&self, desk: &'d Desk) -> Result<(&'d Store, Series), Error> {
        if let ([path], None) = (self.paths, self.dir)
            // A path whose directory is gone has no series of its own.
            && let Ok((_, Some(own))) = found(desk, Some(path.path()), Series::open)
            && !self.is_held_by(found(desk, None, Series::open)?.1)?
        {
            desk.caller.tell(Fact::Snapshot(SnapshotFact::OwnSnapshots { directory: &own.directory, key: self.key }));
            return Ok((desk.store()?.ok_or_else(|| none(&own.directory))?, own));
        }
        series(desk, self.dir)
    }

    /// True if the snapshot of that key holds all of the paths.
    fn is_held_by(&self, series: Option<Series>) -> Result<bool, Error> {
        let Some(series) = series else { return Ok(false) };
        let (Ok(n), Ok(mut left)) = (series.find(self.key), inner(&series.directory, self.paths)) else { return Ok(false) };
        let mut there = Merged::open(&series.dir, n)?;
        while let Some(line) = there.next_unread()? {
            left.retain(|path| *path != line.path);
        }
        Ok(left.is_empty())
    }
}

/// Finds the number of the snapshot that `key` means. If `key` is a path, the remedy suggests `so`.
///
/// # Errors
/// There is no such snapshot.
pub fn number(series: &Series, key: &str, so: Command) -> Result<u64, Error> {
    let is_path = || key.contains('/') || Path::new(key).symlink_metadata().is_ok();
    series.find(key).map_err(|error| if error.is_unknown() && is_path() { error::key_first(error, so) } else { error })
}

/// The snapshots that sessions of `run --in` are yet to be made from.
///
/// # Errors
/// The store cannot be read.
pub fn needed(desk: &Desk, directory: &AbsPath) -> Result<Vec<u64>, Error> {
    desk.store()?.map_or(Ok(Vec::new()), |store| run_in_place::needed(store, directory))
}

/// Makes given paths paths of a snapshot of `directory`. Components below that are taken literally: the snapshot tells which are
/// directories, whatever became of them since.
///
/// # Errors
/// One does not lie in the directory.
pub fn inner(directory: &AbsPath, paths: &[TypedPath]) -> Result<Vec<AbsPath>, Error> {
    let one = |path: &TypedPath| {
        let named = reached(directory, path.path())?;
        match named.below(directory) {
            Some([]) => Ok(differences::root()),
            Some(below) => AbsPath::parse([b"/", below].concat()).map_err(|error| Error::refused(error.to_string())),
            None => Err(error::lies_elsewhere(&named, directory)),
        }
    };
    paths.iter().map(one).collect()
}

/// Finds the place that a path leads to. Links are followed up to `directory`, not below it. The last component is not followed.
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
    AbsPath::parse(at.as_os_str().as_bytes()).map_err(|error| bad(path, error))
}

/// Refuses a path that neither the snapshot nor the directory has.
///
/// # Errors
/// There is one.
pub fn refuse_unknown(series: &Series, paths: &[AbsPath], compared: &Compared) -> Result<(), Error> {
    match paths.iter().zip(&compared.found).find(|(_, found)| !**found) {
        None => Ok(()),
        Some((path, _)) => Err(error::nowhere(&whole(&series.directory, path)?, &series.directory)),
    }
}
