//! The download caches that a command of `run --in` may write to: `capture.caches`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::made::Made;
use crate::config::{CACHES, Cache};
use crate::face::call::Call;
use crate::face::figures;
use crate::fs::path::AbsPath;

/// The caches that exist, and the directories that were made for them.
#[derive(Debug, Default)]
pub struct Caches {
    pub paths: Vec<PathBuf>,
    programs: Vec<&'static str>,
    /// Caches that belong to no one program, as printed.
    others: Vec<String>,
    pub made: Made,
}

impl Caches {
    /// Finds the caches of the settings, but for those in `directories`, which may be written to anyway, and those of `store`, which may
    /// not. A usual cache that is missing is made if its program is in PATH and the home directory is this user's own.
    pub fn open(call: &Call, directories: &[AbsPath], store: &AbsPath) -> Self {
        let home = dirs::home_dir();
        let mut caches = Self::default();
        for path in &call.config.caches.value {
            let usual = usual(path, home.as_deref());
            if let Some((home, usual)) = home.as_deref().zip(usual)
                && is_wanted(usual)
                && let Err(error) = caches.made.dir(call, home, path)
            {
                call.out.detail(format_args!("{error}; the command cannot make it either"));
            }
            // The command cannot write to a cache that is missing, or that this user may not see.
            let Some(real) = real(path) else { continue };
            if directories.iter().any(|directory| real.is_under(directory)) {
                continue;
            }
            let shown = call.out.place(&real);
            if store.is_under(&real) || real.is_under(store) {
                call.out.note(format_args!("{shown} is read-only for the command: the store lies there"));
                continue;
            }
            match usual.and_then(|usual| usual.program) {
                Some(program) if caches.programs.contains(&program) => {}
                Some(program) => caches.programs.push(program),
                None => caches.others.push(shown),
            }
            caches.paths.push(real.as_path().to_path_buf());
        }
        caches
    }

    /// Names them for a sentence: "the caches of npm and cargo", and paths.
    pub fn words(&self) -> Vec<String> {
        let of = match &self.programs[..] {
            [] => None,
            [program] => Some(format!("the cache of {program}")),
            programs => Some(format!("the caches of {}", figures::list(programs))),
        };
        of.into_iter().chain(self.others.iter().cloned()).collect()
    }

    /// Removes what was made and is still empty.
    pub fn close(self, call: &Call) {
        self.made.close(call);
    }
}

fn usual(path: &Path, home: Option<&Path>) -> Option<&'static Cache> {
    let below = path.strip_prefix(home?).ok()?;
    CACHES.iter().find(|cache| Path::new(cache.path) == below)
}

/// Tells whether to make a cache that is missing.
fn is_wanted(cache: &Cache) -> bool {
    !cache.is_file && cache.program.is_none_or(is_in_path)
}

pub fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter_map(|dir| std::fs::metadata(dir.join(program)).ok())
        .any(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn real(path: &Path) -> Option<AbsPath> {
    let real = std::fs::canonicalize(path).ok()?;
    AbsPath::parse(real.as_os_str().as_encoded_bytes()).ok()
}
