//! The history of the shell that `recant shell` starts. What a person types is no change of a command: it stays real.
//!
//! Tried with bash 5.2, zsh 5.9 and fish 3.6. rename cannot replace a file that is passed (EBUSY). bash appends at its end; its next run
//! outside cuts the file to HISTFILESIZE. zsh replaces it unless HIST_SAVE_BY_COPY is off ([`hints::prompt`](super::hints)).
//! fish loses lines whenever it compacts the file: its directory is passed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::made::Made;
use crate::capture::place::layout::Pass;
use crate::face::call::Call;
use crate::fs::path::AbsPath;
use crate::session::opened::Session;

/// The reason in the table of places.
pub const WHY: &str = "the shell's history";

/// The history of a shell, which is not held.
#[derive(Debug, Default)]
pub struct History {
    /// The passed paths: files, or fish's directory.
    paths: Vec<PathBuf>,
    made: Made,
}

impl History {
    /// Finds the history of `shell`, and makes it, empty, if it is missing. A history that the session holds a change of is not passed: the
    /// shell has to see that change.
    pub fn open(call: &Call, shell: &OsStr, session: &Session) -> Self {
        let mut history = Self::default();
        let Some((home, usual)) = dirs::home_dir().and_then(|home| Some((home.clone(), Usual::of(shell, &home)?))) else {
            return history;
        };
        let made = match &usual.paths[..] {
            paths if paths.iter().any(|path| path.exists()) => Ok(()),
            [dir, ..] if usual.is_dir => history.made.dir(call, &home, dir),
            [file, ..] => history.made.file(call, file),
            [] => Ok(()),
        };
        if let Err(error) = made {
            call.out.detail(format_args!("{error}; so the shell's history is held, like all that it changes"));
        }
        // If the session cannot be read, the shell will not start.
        let Ok(changes) = session.changes() else { return history };
        let is_held = |path: &AbsPath| changes.list.iter().any(|held| held.path.is_under(path) || path.is_under(&held.path));
        let fits = |path: &PathBuf| usual.real(path).is_some_and(|real| !is_held(&real));
        history.paths = usual.paths.iter().filter(|path| fits(path)).cloned().collect();
        history
    }

    /// True if the shell's history stays real.
    pub fn is_real(&self) -> bool {
        !self.paths.is_empty()
    }

    /// The paths that a run passes for it.
    pub fn passes(&self) -> impl Iterator<Item = Pass> {
        self.paths.iter().map(|path| Pass { path: path.clone(), why: WHY.into() })
    }

    /// Removes what was made and is still empty.
    pub fn close(self, call: &Call) {
        self.made.close(call);
    }
}

/// The usual places of a shell's history: the first that exists, else the first.
struct Usual {
    paths: Vec<PathBuf>,
    is_dir: bool,
}

impl Usual {
    /// `None` for a shell that keeps no history unless it is told to.
    fn of(shell: &OsStr, home: &Path) -> Option<Self> {
        let var = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let exported = var("HISTFILE");
        let files = |usual: Vec<PathBuf>| Self { paths: exported.map_or(usual, |file| vec![file]), is_dir: false };
        Some(match Path::new(shell).file_name()?.to_str()? {
            "bash" => files(vec![home.join(".bash_history")]),
            "ksh" => files(vec![home.join(".sh_history")]),
            // The user's .zshrc decides; these are usual.
            "zsh" => {
                let own = var("ZDOTDIR").unwrap_or_else(|| home.to_path_buf());
                let state = var("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
                let in_own = [".zsh_history", ".histfile", ".zhistory"].map(|name| own.join(name));
                files([&in_own[..], &[state.join("zsh/history")]].concat())
            }
            "fish" => {
                let data = var("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
                Self { paths: vec![data.join("fish")], is_dir: true }
            }
            _ => return None,
        })
    }

    /// The real path of a history that exists and is of the right kind: /dev/null is none.
    fn real(&self, path: &Path) -> Option<AbsPath> {
        let real = std::fs::canonicalize(path).ok()?;
        let found = std::fs::metadata(&real).ok()?;
        let fits = if self.is_dir { found.is_dir() } else { found.is_file() };
        AbsPath::parse(real.as_os_str().as_encoded_bytes()).ok().filter(|_| fits)
    }
}
