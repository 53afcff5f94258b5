//! The history of the shell that `recant shell` starts: what a person types is no change of a command, and stays real.
//!
//! Tried with bash 5.2, zsh 5.9 and fish 3.6. A file that is passed cannot be replaced by rename (EBUSY). bash appends to it at its end, and
//! leaves cutting it to HISTFILESIZE to its next run outside. zsh replaces it unless HIST_SAVE_BY_COPY is off ([`hints::prompt`](super::hints)).
//! fish loses lines whenever it compacts the file: its directory is passed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::Call;
use super::made::Made;
use crate::capture::layout::Pass;
use crate::fs::path::AbsPath;
use crate::session::opened::Session;

/// Why it is passed, in the table of places.
pub const WHY: &str = "the shell's history";

/// A shell's history, outside of its session.
#[derive(Debug, Default)]
pub struct History {
    /// What is passed: files, or fish's directory.
    paths: Vec<PathBuf>,
    made: Made,
}

impl History {
    /// Finds the history of `shell`, and makes it, empty, where it is missing. What the session holds a change of is not passed: the shell has
    /// to see that.
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
        // A session that cannot be read keeps the shell from being started.
        let Ok(changes) = session.changes() else { return history };
        let is_held = |path: &AbsPath| changes.list.iter().any(|held| held.path.is_under(path) || path.is_under(&held.path));
        let fits = |path: &PathBuf| usual.real(path).is_some_and(|real| !is_held(&real));
        history.paths = usual.paths.iter().filter(|path| fits(path)).cloned().collect();
        history
    }

    /// Whether the shell's history stays real.
    pub fn is_real(&self) -> bool {
        !self.paths.is_empty()
    }

    /// What a run passes for it.
    pub fn passes(&self) -> impl Iterator<Item = Pass> {
        self.paths.iter().map(|path| Pass { path: path.clone(), why: WHY.into() })
    }

    /// Takes away what was made and is still empty.
    pub fn close(self, call: &Call) {
        self.made.close(call);
    }
}

/// Where a shell keeps its history: in one of these, the first unless another is there.
struct Usual {
    paths: Vec<PathBuf>,
    is_dir: bool,
}

impl Usual {
    /// `None` for a shell that keeps none unless it is told to.
    fn of(shell: &OsStr, home: &Path) -> Option<Self> {
        let var = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let exported = var("HISTFILE");
        let files = |usual: Vec<PathBuf>| Self { paths: exported.map_or(usual, |file| vec![file]), is_dir: false };
        Some(match Path::new(shell).file_name()?.to_str()? {
            "bash" => files(vec![home.join(".bash_history")]),
            "ksh" => files(vec![home.join(".sh_history")]),
            // The user's .zshrc says which: these are usual.
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

    /// The real path of one that is there and of the right kind: /dev/null is no history.
    fn real(&self, path: &Path) -> Option<AbsPath> {
        let real = std::fs::canonicalize(path).ok()?;
        let found = std::fs::metadata(&real).ok()?;
        let fits = if self.is_dir { found.is_dir() } else { found.is_file() };
        AbsPath::parse(real.as_os_str().as_encoded_bytes()).ok().filter(|_| fits)
    }
}
