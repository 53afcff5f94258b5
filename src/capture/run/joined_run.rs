//! Runs a command in the run of another one, which is under way.

use super::command::{Command, Network};
use super::ground::Ground;
use super::join::Joined;
use super::supervise::{EndedRun, Event, run_command};
use crate::capture::error::not_started;
use crate::capture::place::layout::Route;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Ending, SOCKET, Session, Stopped};

/// The end of a command that joined the run of another one.
#[derive(Debug)]
pub struct JoinedRun {
    pub ending: Ending,
    /// The way in which it was stopped, if it is a service.
    pub stopped: Option<Stopped>,
    /// Facts for people, one line each.
    pub notes: Vec<String>,
    /// The part of the network that it could reach: that of the run.
    pub network: Network,
    /// The run lasts until this is dropped, so that its end can be noted before it is collected.
    #[expect(dead_code, reason = "it is held")]
    joined: Joined,
}

/// Runs a command in the run that is under way in a session. `None` if that is over, or cannot be joined: without PIDs of its own.
///
/// # Errors
/// The command was not started.
pub fn join(
    session: &Session,
    command: &Command,
    cwd: &AbsPath,
    hear: &mut dyn FnMut(Event),
) -> Result<Option<JoinedRun>, Error> {
    let is_user_s = Route::here() == Route::User;
    let Some(joined) =
        Joined::connect(session.dir.at(SOCKET), is_user_s, cwd.clone()).map_err(|error| not_started(error.into()))?
    else {
        return Ok(None);
    };
    let EndedRun { exit, stopped, notes, leaving, .. } = run_command(Ground::Joined(&joined), command, hear)?;
    leaving.wait()?;
    Ok(Some(JoinedRun { ending: exit, stopped, notes, network: joined.network(), joined }))
}
