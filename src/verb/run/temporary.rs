//! Directories and files that are made for a command, and removed at its end if still empty.

use std::path::{Path, PathBuf};

use super::notice::Notice;
use crate::error::IoError;
use crate::fs::{Dir, Fs};
use crate::verb::desk::Desk;
use crate::verb::fact::Fact;

/// The made objects, in the order of their making.
#[derive(Debug, Default)]
pub struct Temporary(Vec<(PathBuf, Sort)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Directory,
    File,
}

impl Temporary {
    /// Makes a directory below `home`, with its parents. Does nothing if `home` is another user's.
    pub fn dir(&mut self, fs: &Fs, home: &Path, path: &Path) -> Result<(), IoError> {
        if path.exists() || !path.starts_with(home) {
            return Ok(());
        }
        path.parent().map_or(Ok(()), |parent| self.dir(fs, home, parent))?;
        self.make(fs, path, Sort::Directory)
    }

    /// Makes an empty file for its owner alone, if its directory exists and is this user's own.
    pub fn file(&mut self, fs: &Fs, path: &Path) -> Result<(), IoError> {
        let can_be = path.parent().is_some_and(Path::is_dir) && path.symlink_metadata().is_err();
        if can_be { self.make(fs, path, Sort::File) } else { Ok(()) }
    }

    fn make(&mut self, fs: &Fs, path: &Path, sort: Sort) -> Result<(), IoError> {
        let Some((parent, name)) = path.parent().zip(path.file_name()) else { return Ok(()) };
        let dir = Dir::open(parent)?;
        if dir.stat()?.uid == rustix::process::geteuid().as_raw() {
            let at = dir.at(name.as_encoded_bytes());
            match sort {
                Sort::Directory => fs.mkdir(at, 0o755)?,
                Sort::File => drop(fs.create(at, 0o600)?),
            }
            self.0.push((path.to_path_buf(), sort));
        }
        Ok(())
    }

    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter(|(_, sort)| *sort == Sort::Directory).map(|(path, _)| &**path)
    }

    /// Takes over directories that another process made, in the order of their making.
    pub fn of_dirs(dirs: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(dirs.into_iter().map(|dir| (dir, Sort::Directory)).collect())
    }

    /// Removes what is still empty.
    pub fn close(self, desk: &Desk) {
        for (path, sort) in self.0.iter().rev() {
            if let Err(error) = remove_if_empty(&desk.fs, path, *sort) {
                desk.caller.tell(Fact::Run(Notice::NotTidy(&error)));
            }
        }
    }
}

fn remove_if_empty(fs: &Fs, path: &Path, sort: Sort) -> Result<(), IoError> {
    let Some((parent, name)) = path.parent().zip(path.file_name()) else { return Ok(()) };
    let dir = Dir::open(parent)?;
    let at = dir.at(name.as_encoded_bytes());
    let removed = match sort {
        Sort::Directory => fs.rmdir(at),
        Sort::File if path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() == 0) => fs.unlink(at),
        Sort::File => Ok(()),
    };
    match removed {
        // The command used it or removed it.
        Err(error) if matches!(error.errno(), Some(libc::ENOTEMPTY | libc::EEXIST | libc::ENOENT | libc::ENOTDIR)) => Ok(()),
        removed => removed,
    }
}
