//! The door of a run: what is inside asks at it, and a process outside answers, which may look at sessions and do nothing else. The face of
//! the command line has both ends.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::error::{At, Error};
use crate::fs::{AbsPath, program};
use crate::session::Id;
use crate::verb::error;

/// The most looks that are answered at once: whoever asks may ask a thousand times. Further ones get an end without an answer.
const AT_ONCE: usize = 8;

/// The time that a request may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whoever answers at the door of a run.
#[derive(Debug)]
pub struct Door {
    store: AbsPath,
    /// True if the run hides files, and what sessions hold may be theirs.
    hides: bool,
    /// The session that is seen, with its parts; `None`: all.
    only: Option<Id>,
    answering: Vec<Child>,
}

impl Door {
    pub fn of(store: &AbsPath, (hides, only): (bool, Option<Id>)) -> Self {
        Self { store: store.clone(), hides, only, answering: Vec::new() }
    }

    /// Has somebody answered, while the run goes on. If that cannot be, the connection ends, and the one who asks says so.
    pub fn answer(&mut self, asked: UnixStream) {
        self.answering.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.answering.len() < AT_ONCE {
            self.answering.extend(self.start(asked).ok());
        }
    }

    fn start(&self, asked: UnixStream) -> Result<Child, Error> {
        asked.set_read_timeout(Some(PATIENCE)).at("make", error::CONNECTION)?;
        let answered = asked.try_clone().at("make", error::CONNECTION)?;
        let mut command = crate::fs::command(program::own().at("find", error::OWN_PROGRAM)?);
        command
            .args(["far", "--held"])
            .args(self.hides.then_some("--no-content"))
            .args(self.only.iter().flat_map(|id| ["--only", id.as_str()]))
            .env("RECANT_STORE", self.store.as_path())
            .env_remove("RECANT_HOST");
        command.stdin(OwnedFd::from(asked)).stdout(OwnedFd::from(answered)).stderr(Stdio::null());
        Ok(command.spawn().at("start", error::ANSWERS)?)
    }
}
