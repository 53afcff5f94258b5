//! A person's shell in a run: its prompt names the session, and its history stays real, as what a person types is no change of a command.
//!
//! Tried with bash 5.2, zsh 5.9 and fish 3.6. rename cannot replace a file that is passed (EBUSY). bash appends at its end; its next run
//! outside cuts the file to HISTFILESIZE. zsh replaces it unless HIST_SAVE_BY_COPY is off ([`words`]). fish loses lines whenever it compacts
//! the file: its directory is passed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::notice::Notice;
use super::temporary::Temporary;
use super::terms::Histories;
use crate::capture::Pass;
use crate::fs::AbsPath;
use crate::session::{Id, Session};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;

/// The history of a shell, which is not held.
#[derive(Debug, Default)]
pub struct History {
    /// The passed paths: files, or fish's directory.
    paths: Vec<PathBuf>,
    made: Temporary,
}

impl History {
    /// Finds the history of a shell, and makes it, empty, if it is missing. One that the session holds a change of is not passed: the shell
    /// has to see that change.
    pub fn open(desk: &Desk, usual: Option<&Histories>, session: &Session) -> Self {
        let mut history = Self::default();
        let Some((home, usual)) = dirs::home_dir().zip(usual) else { return history };
        let made = match &usual.paths[..] {
            paths if paths.iter().any(|path| path.exists()) => Ok(()),
            [dir, ..] if usual.are_directories => history.made.dir(&desk.fs, &home, dir),
            [file, ..] => history.made.file(&desk.fs, file),
            [] => Ok(()),
        };
        if let Err(error) = made {
            desk.caller.tell(Fact::Run(Notice::NotTidy(&error)));
        }
        // If the session cannot be read, the shell will not start.
        let Ok(changes) = session.changes() else { return history };
        let fits = |path: &&PathBuf| real(usual, path).is_some_and(|real| !changes.touches(&real));
        history.paths = usual.paths.iter().filter(fits).cloned().collect();
        history
    }

    /// True if the shell's history stays real.
    pub fn is_real(&self) -> bool {
        !self.paths.is_empty()
    }

    /// The paths that a run passes for it.
    pub fn passes(&self) -> Vec<Pass> {
        self.paths.iter().map(|path| Pass { path: path.clone(), why: error::HISTORY.into() }).collect()
    }

    /// Removes what was made and is still empty.
    pub fn close(self, desk: &Desk) {
        self.made.close(desk);
    }
}

/// The real path of a history that exists and is of the right kind: /dev/null is none.
fn real(usual: &Histories, path: &Path) -> Option<AbsPath> {
    let real = std::fs::canonicalize(path).ok()?;
    let found = std::fs::metadata(&real).ok()?;
    let fits = if usual.are_directories { found.is_dir() } else { found.is_file() };
    AbsPath::parse(real.as_os_str().as_encoded_bytes()).ok().filter(|_| fits)
}

/// The words and variables of a shell whose prompt names the session. An unknown shell keeps its prompt. So does zsh, but it is made to
/// write a passed history in place.
pub fn words(shell: &OsStr, id: &Id, keeps_history: bool) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
    let says = format!("(recant {}) ", id.tail());
    let name = Path::new(shell).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let plain = vec![shell.to_owned()];
    match name {
        // Runs before each prompt, after the user's own files have set theirs.
        "bash" => (plain, vec![("PROMPT_COMMAND".into(), format!("PS1=\"{says}${{PS1#\"{says}\"}}\"").into())]),
        "fish" => {
            let setup =
                format!("functions -c fish_prompt recant_prompt; function fish_prompt; echo -n '{says}'; recant_prompt; end");
            ([plain, vec!["-C".into(), setup.into()]].concat(), Vec::new())
        }
        "sh" | "dash" | "ash" | "ksh" | "mksh" => (plain, vec![("PS1".into(), format!("{says}$ ").into())]),
        // rename cannot replace a history that is passed.
        "zsh" if keeps_history => ([plain, ["+o", "histsavebycopy"].map(OsString::from).to_vec()].concat(), Vec::new()),
        _ => (plain, Vec::new()),
    }
}
