//! Finds the settings and the store by the XDG base directory specification. A relative path in an XDG variable counts as
//! none.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::agent::Agent;
use crate::error::Error;
use crate::fs::{AbsPath, Shown, program, resolve};
use crate::remedy::shell;
use crate::session::Changes;
use crate::settings::{From, Settings};
use crate::verb::TypedPath;

/// A store's path as it was given, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path as given; empty if nothing names one.
    pub path: PathBuf,
    pub from: From,
}

/// The settings in force, and the place of the store by environment and settings.
pub fn settings() -> Result<(Settings, Place), Error> {
    // dirs takes XDG variables that hold an absolute path, else $HOME, else the user database.
    let file = dirs::config_dir().map(|dir| dir.join("recant/config.toml"));
    let config = Settings::read(file, dirs::home_dir().as_deref(), &|word| Agent::of(word).is_some())?;
    let place = if let Some(path) = std::env::var_os("RECANT_STORE").filter(|path| !path.is_empty()) {
        Place { path: path.into(), from: From::Environment("RECANT_STORE") }
    } else if let Some(path) = &config.store_path.value {
        Place { path: path.clone(), from: From::File }
    } else {
        let xdg = std::env::var_os("XDG_DATA_HOME").is_some_and(|dir| Path::new(&dir).is_absolute());
        let from = if xdg { From::Environment("XDG_DATA_HOME") } else { From::Default };
        Place { path: dirs::data_dir().map(|dir| dir.join("recant")).unwrap_or_default(), from }
    };
    Ok((config, place))
}

/// The defaults, for when no settings can be read.
pub fn nowhere() -> (Settings, Place) {
    (Settings::defaults(None, dirs::home_dir().as_deref()), Place { path: PathBuf::new(), from: From::Default })
}

impl Place {
    /// The path, absolute and with links resolved as far as it exists: staging compares real paths with it.
    pub fn resolve(&self) -> Result<AbsPath, Error> {
        let path = &self.path;
        if path.as_os_str().is_empty() {
            return Err(Error::refused("no home directory is known, so there is no place for the store")
                .with_remedy("set HOME, or name the store: " + shell("recant --store DIR …") + ", or RECANT_STORE=DIR"));
        }
        if path.is_relative() && self.from != From::Option("--store") {
            let variable = if self.from == From::Environment("RECANT_STORE") { "RECANT_STORE" } else { "HOME" };
            let value = std::env::var_os(variable).unwrap_or_default();
            let value = Shown(std::os::unix::ffi::OsStrExt::as_bytes(&*value));
            return Err(Error::refused(format!("{variable}={value}: the store's path has to be absolute"))
                .with_remedy("a relative one would be another store in each working directory; --store DIR may be relative"));
        }
        absolute(&whole(path)?)
    }
}

/// An absolute path as it is; a relative one below the working directory.
pub fn whole(path: &Path) -> Result<PathBuf, Error> {
    if path.is_absolute() { Ok(path.to_path_buf()) } else { Ok(self::cwd()?.join(path)) }
}

/// A path, below the working directory.
pub fn below(path: &Path) -> Result<TypedPath, Error> {
    let cwd = if path.is_relative() { cwd()? } else { PathBuf::new() };
    Ok(TypedPath::below(&cwd, path))
}

/// These paths, below the working directory.
pub fn all_whole(paths: &[PathBuf]) -> Result<Vec<TypedPath>, Error> {
    paths.iter().map(|path| below(path)).collect()
}

/// An absolute path without links, `.` and `..`.
pub fn absolute(path: &Path) -> Result<AbsPath, Error> {
    resolve::absolute(path)
}

/// The path of a session that `path` names, relative to the working directory.
pub fn named(path: &Path, changes: &Changes) -> Result<AbsPath, Error> {
    changes.named(&whole(path)?)
}

/// The program of this process.
pub fn own_program() -> anyhow::Result<PathBuf> {
    program::own().context("cannot find recant's own program")
}

/// The working directory.
///
/// # Errors
/// It is gone.
pub fn cwd() -> Result<PathBuf, Error> {
    std::env::current_dir().map_err(|error| {
        let problem = Error::refused(format!("cannot find the working directory: {}", crate::error::reason(&error)));
        problem.with_remedy("change to a directory that exists, or give absolute paths")
    })
}
