//! The texts of files of settings.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{At, Error};
use crate::fs::{AbsPath, Shown, absolute};

/// The most bytes of a file of settings that are read.
const LIMIT: u64 = 16 << 20;

/// The text of a file; `None` if there is none.
///
/// # Errors
/// It cannot be read, is no file, or no text.
pub fn read(path: &AbsPath) -> Result<Option<String>, Error> {
    let refused = |why: &str| Error::refused(format!("{path}: {why}")).with_path(path);
    // What is no file may make the open wait.
    match path.as_path().metadata() {
        Ok(found) if !found.is_file() => return Err(refused("it is not a file")),
        Ok(found) if found.len() > LIMIT => return Err(refused("it is far too large for settings")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => found.map(|_is_a_file| ()).at("read", path)?,
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path.as_path()).at("read", path)?;
    file.take(LIMIT).read_to_end(&mut bytes).at("read", path)?;
    String::from_utf8(bytes).map(Some).map_err(|_| refused("it is not valid UTF-8"))
}

/// The most links that are followed.
const LINKS: usize = 40;

/// The path of the file itself, where its name is a link: to what the link leads to, even if nothing is there yet.
///
/// # Errors
/// Its links lead in a circle; a directory above it cannot be read.
pub fn real(named: &AbsPath) -> Result<AbsPath, Error> {
    let mut path = named.as_path().to_path_buf();
    for _ in 0..LINKS {
        let Ok(target) = path.read_link() else { return parent_resolved(&path) };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    let named = Shown(named.as_bytes());
    Err(Error::refused(format!("{named}: its links lead in a circle")).with_path(named))
}

/// A path whose last name stays, and the rest of which is without links.
fn parent_resolved(path: &Path) -> Result<AbsPath, Error> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let whole: PathBuf = absolute(parent)?.as_path().join(path.file_name().unwrap_or_default());
    absolute(&whole)
}
