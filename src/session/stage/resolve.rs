//! Resolves a path that is staged: through what is on the tree, and what is staged already.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::staging::{Staging, refuse};
use crate::error::{At, Error};
use crate::fs::{AbsPath, Shown, mounts};
use crate::session::error::not_staged;
use crate::tree::{State, What};

impl Staging<'_> {
    /// Makes the path absolute against `cwd`, its parent resolved as realpath does, the last component not. Follows what is staged: a
    /// staged directory counts as there, a staged link as a parent is refused. With `-p` stages missing directories now.
    pub(super) fn resolve(&mut self, act: &'static str, path: &Path, cwd: &Path) -> Result<AbsPath, Error> {
        let shown = Shown(path.as_os_str().as_bytes()).to_string();
        let bad = |why: &str| not_staged(act, &shown, why);
        if path.as_os_str().is_empty() {
            return Err(bad("the path is empty"));
        }
        let whole = cwd.join(path);
        let (Some(name), Some(parent)) = (whole.file_name(), whole.parent()) else {
            return Err(bad("the path ends in '/' or '..' alone"));
        };
        let mut directory = AbsPath::parse("/").map_err(|error| bad(&error.to_string()))?;
        let mut todo: Vec<Vec<u8>> = parts(parent);
        let mut links = 0;
        while let Some(part) = todo.pop() {
            if part == b".." {
                directory = directory.parent().unwrap_or(directory);
                continue;
            }
            let next = directory.join(&part).map_err(|error| bad(&error.to_string()))?;
            match self.current(&next)? {
                Some(State { what: What::Directory, .. }) => directory = next,
                Some(State { what: What::Symlink { target }, .. }) if !self.is_staged(&next) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(bad("there are more than 40 links on the way, or they lead in a circle"));
                    }
                    if target.first() == Some(&b'/') {
                        directory = AbsPath::parse("/").map_err(|error| bad(&error.to_string()))?;
                    }
                    todo.extend(parts(Path::new(std::ffi::OsStr::from_bytes(&target))));
                }
                Some(_) if self.is_staged(&next) => {
                    return Err(refuse(act, &next, "it is staged as something other than a directory", None));
                }
                Some(_) => return Err(refuse(act, &next, "it is not a directory", None)),
                None if self.make_parents => {
                    self.put_directory(&next, None)?;
                    directory = next;
                }
                None => return Err(self.missing(act, &next)),
            }
        }
        let path = directory.join(name.as_bytes()).map_err(|error| bad(&error.to_string()))?;
        self.refuse_place(act, &path)?;
        Ok(path)
    }

    fn missing(&self, act: &'static str, path: &AbsPath) -> Error {
        let why = if self.is_staged(path) { "it is staged to be deleted" } else { "the directory is missing" };
        let remedy = match act {
            // Below a missing directory nothing can be deleted or get a mode.
            "delete" | "change the mode of" => None,
            _ => Some("-p stages the missing directories too".into()),
        };
        refuse(act, path, why, remedy)
    }

    /// Refuses recant's own store, and what the kernel makes up.
    fn refuse_place(&self, act: &'static str, path: &AbsPath) -> Result<(), Error> {
        if self.store.holds(path) || self.store.path.is_under(path) {
            return Err(refuse(act, path, "it holds recant's own store, or lies in it", None));
        }
        let mounts = mounts::read().at("read", "/proc/self/mountinfo")?;
        mounts::containing(&mounts, path).filter(|mount| mount.is_kernels()).map_or(Ok(()), |mount| {
            let why = format!("it lies in {}, mounted at {}: the files there are the kernel's", mount.fs_type, mount.point);
            Err(refuse(act, path, &why, None))
        })
    }
}

/// The most links that the kernel follows in one path: path_resolution(7).
const MAX_LINKS: u32 = 40;

/// The names of a path, the last first, without empty ones and `.`.
fn parts(path: &Path) -> Vec<Vec<u8>> {
    let parts = path.as_os_str().as_bytes().split(|b| *b == b'/').rev();
    parts.filter(|part| !part.is_empty() && *part != b".").map(<[u8]>::to_vec).collect()
}
