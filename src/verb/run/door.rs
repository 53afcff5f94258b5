//! The door of a held agent: a process outside of its run that carries out `diff`, `show`, `steps` and `status` of the session for what is
//! inside. It listens at a socket in the run's own store; the face of the command line answers.

use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Fs};
use crate::session::{Id, Store};
use crate::verb::error;

/// The socket's name in the run's own store.
pub const NAME: &[u8] = b"door";

/// The process that answers, until dropped.
#[derive(Debug)]
pub struct Door {
    answers: Child,
}

impl Door {
    /// Opens the door of a session's run: makes the socket in its own store, and starts the process that answers.
    ///
    /// # Errors
    /// Either cannot be made.
    pub fn open(fs: &Fs, store: &Store, id: &Id, own: &AbsPath) -> Result<Self, Error> {
        let listener = fs.listen(Dir::open(own.as_path())?.at(NAME))?;
        let mut command = crate::fs::command(std::env::current_exe().at("find", error::OWN_PROGRAM)?);
        command
            .args(["far", "--door", id.as_str(), "--parent", &std::process::id().to_string()])
            .env("RECANT_STORE", store.path.as_path())
            .env_remove("RECANT_HOST");
        command.stdin(Stdio::from(OwnedFd::from(listener))).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { answers: command.spawn().at("start", error::ANSWERS)? })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ended = self.answers.kill().and_then(|()| self.answers.wait());
    }
}
