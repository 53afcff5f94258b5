//! Resolves a path as somebody gives it to the path of an object: absolute, and without links.

use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::path::{AbsPath, Shown};
use crate::error::{At, Error, Kind};

/// Makes the error for a path, as it was given, that is none of an object.
pub fn bad(path: &Path, why: impl Display) -> Error {
    Error::at(Kind::Refused, shown(path), why)
}

fn shown(path: &Path) -> String {
    Shown(path.as_os_str().as_bytes()).to_string()
}

/// The home directory, without links.
pub fn home() -> Option<AbsPath> {
    absolute(&dirs::home_dir()?).ok()
}

/// An absolute path without links, `.` and `..`: the existing part by realpath(3), the rest unchanged.
///
/// Errors: a link on the way that leads nowhere or in a circle, a directory that cannot be searched, `..` below a missing directory.
pub fn absolute(path: &Path) -> Result<AbsPath, Error> {
    let mut there = path.to_path_buf();
    let mut missing = Vec::new();
    let mut real = loop {
        match there.canonicalize() {
            Ok(real) => break real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => match there.symlink_metadata() {
                Err(_) => {}
                Ok(found) if found.is_symlink() => return Err(error).at("resolve", shown(path)).map_err(Error::from),
                // Made at this moment: another recant makes its store.
                Ok(_) => continue,
            },
            Err(error) => return Err(error).at("resolve", shown(path)).map_err(Error::from),
        }
        let name = there.file_name().map(ToOwned::to_owned);
        missing.push(name.ok_or_else(|| bad(path, "'..' below a directory that is missing"))?);
        there.pop();
    };
    real.extend(missing.iter().rev());
    AbsPath::parse(real.as_os_str().as_bytes()).map_err(|error| bad(path, error))
}
