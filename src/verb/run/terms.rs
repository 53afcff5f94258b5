//! The arguments of a run: the program, the session that its changes go to, and what it may reach.

use std::ffi::OsString;
use std::path::PathBuf;

use super::service::Service;
use crate::agent::{Agent, State};
use crate::capture::{Linger, Network, Pass};
use crate::fs::AbsPath;
use crate::settings::{Entry, MovedSecret};
use crate::verb::resolve::go_on::Aim;

/// A command whose changes are to be held.
pub struct Wanted<'a> {
    pub aim: Aim<'a>,
    pub program: Program,
    /// The words that stand for it in listings; `None`: its own.
    pub label: Option<&'a str>,
    pub then: Then,
    pub places: Places,
    pub linger: Linger,
    pub network: Network,
    /// The hosts that it can reach by the proxy of its run.
    pub hosts: &'a [Entry],
    /// The most bytes that it may write; then it is ended.
    pub max_size: Option<u64>,
    /// The service that it is.
    pub service: Option<&'a Service>,
    /// True if notes reach somebody: what is told once is told then alone.
    pub is_heard: bool,
}

/// The program that is run.
pub enum Program {
    Command(Vec<OsString>),
    /// A person's shell, whose prompt names the session.
    Shell {
        shell: OsString,
        history: Option<Histories>,
    },
    /// An agent, which keeps files about itself.
    Agent {
        agent: Agent,
        argv: Vec<OsString>,
        keeps: State,
    },
}

impl Program {
    /// The words of the command line.
    pub fn argv(&self) -> &[OsString] {
        match self {
            Self::Command(argv) | Self::Agent { argv, .. } => argv,
            Self::Shell { shell, .. } => std::slice::from_ref(shell),
        }
    }
}

/// The usual places of a shell's history: those that exist count, else the first.
pub struct Histories {
    pub paths: Vec<PathBuf>,
    pub are_directories: bool,
}

/// The fate of the changes when the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Hold,
    /// Commit them, if it ended with 0.
    Commit,
    /// Drop them; of a further command of a session, set its step aside.
    Discard,
}

/// The secrets that are closed to a command: those of `agent.closed`, and by default agents' credentials.
pub struct Closing {
    /// The paths in which they are open.
    pub open: Vec<PathBuf>,
    /// The credentials of all other agents that are known.
    pub of_agents: Vec<AbsPath>,
    /// The places that the caller's environment names for secrets.
    pub moved: Vec<MovedSecret>,
}

/// The places that a run treats in another way than the rest, all absolute.
#[derive(Default)]
pub struct Places {
    /// Those that stay real, as they were asked for.
    pub passes: Vec<Pass>,
    /// Those that stay real by default, as they exist.
    pub usual: Vec<Pass>,
    /// Those that the command must not see.
    pub hide: Vec<PathBuf>,
    /// `Some` if secrets are closed to it.
    pub closed: Option<Closing>,
    /// Those whose changes are dropped.
    pub scratch: Vec<AbsPath>,
}
