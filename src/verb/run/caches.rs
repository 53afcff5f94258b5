//! The download caches that a command of `run --in` may write to: `capture.caches`.

use std::path::{Path, PathBuf};

use super::notice::Notice;
use super::temporary::Temporary;
use crate::fs::{AbsPath, program};
use crate::settings::{CACHES, Cache};
use crate::verb::desk::Desk;
use crate::verb::fact::Fact;

/// The caches that exist, and the directories that were made for them.
#[derive(Debug, Default)]
pub struct Caches {
    pub paths: Vec<PathBuf>,
    pub made: Temporary,
}

impl Caches {
    /// Finds the caches of the settings, but for those in `directories`, which may be written to anyway, and those of `store`, which may
    /// not. A usual cache that is missing is made if its program is in PATH and the home directory is this user's own.
    pub fn open(desk: &Desk, directories: &[AbsPath], store: &AbsPath) -> Self {
        let home = dirs::home_dir();
        let mut caches = Self::default();
        for path in &desk.config.caches.value {
            let usual = usual(path, home.as_deref());
            if let Some((home, usual)) = home.as_deref().zip(usual)
                && is_wanted(usual)
                && let Err(error) = caches.made.dir(&desk.fs, home, path)
            {
                desk.caller.tell(Fact::Run(Notice::NotTidy(&error)));
            }
            // The command cannot write to a cache that is missing, or that this user may not see.
            let Some(real) = real(path) else { continue };
            if directories.iter().any(|directory| real.is_under(directory)) {
                continue;
            }
            if store.is_under(&real) || real.is_under(store) {
                desk.caller.tell(Fact::Run(Notice::StoreInCache(&real)));
                continue;
            }
            caches.paths.push(real.as_path().to_path_buf());
        }
        caches
    }
}

fn usual(path: &Path, home: Option<&Path>) -> Option<&'static Cache> {
    let below = path.strip_prefix(home?).ok()?;
    CACHES.iter().find(|cache| Path::new(cache.path) == below)
}

/// Tells whether to make a cache that is missing.
fn is_wanted(cache: &Cache) -> bool {
    !cache.is_file && cache.program.is_none_or(|name| program::find(name).is_some())
}

fn real(path: &Path) -> Option<AbsPath> {
    let real = std::fs::canonicalize(path).ok()?;
    AbsPath::parse(real.as_os_str().as_encoded_bytes()).ok()
}
