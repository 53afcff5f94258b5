//! A command: what is to be run, and on which terms.

use std::ffi::OsString;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// A command to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// Program and arguments; the program is looked up in PATH.
    pub argv: Vec<OsString>,
    /// The words that stand for it in listings; `None`: its own.
    pub label: Option<String>,
    /// Variables to set in addition to recant's own.
    pub env: Vec<(OsString, OsString)>,
    /// The treatment of background children when the command has ended.
    pub linger: Linger,
    /// The part of the network that it can reach.
    pub network: Network,
    /// True if what the files that it changes held before is kept: `capture.keep_before`.
    pub keeps_before: bool,
    /// True if some of its calls are heard of before the kernel carries them out: `capture.listen`.
    pub listens: bool,
    /// True if an agent calls: notes advise it nothing by which changes would be real.
    pub by_agent: bool,
    /// The most bytes that it may write; then it is ended.
    pub max_size: Option<u64>,
    /// The output that a service has in place of the caller's streams; `None` for any other command.
    pub service: Option<Output>,
}

/// The output of a service, and its name.
#[derive(Debug, Clone)]
pub struct Output {
    pub name: String,
    pub file: Arc<File>,
}

impl Command {
    /// A command with the usual terms: background children are waited for, the network is open.
    pub fn new(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            label: None,
            env: Vec::new(),
            linger: Linger::Wait,
            network: Network::Open,
            keeps_before: false,
            listens: true,
            by_agent: false,
            max_size: None,
            service: None,
        }
    }
}

/// The part of the network that a command can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The network of everybody.
    Open,
    /// A loopback of its own, and no abstract sockets of others.
    None,
    /// A loopback of its own with a proxy at it, which connects from outside, and which the variables of programs name.
    Proxied(Loopback),
}

/// The loopback that a command means by `localhost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// That of its run: the variables lead past the proxy there.
    Own,
    /// The machine's, by the proxy.
    Machine,
}

impl Network {
    /// All that there are: a joined run tells its own by its place here.
    pub const ALL: [Self; 4] = [Self::Open, Self::None, Self::Proxied(Loopback::Own), Self::Proxied(Loopback::Machine)];

    /// True if a command has a network namespace.
    pub fn is_own(self) -> bool {
        self != Self::Open
    }
}

/// The treatment of background children when the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linger {
    /// The run lasts until they have ended.
    Wait,
    /// The run lasts until they have ended; they are killed if recant's parent is not this process any more.
    WaitWith(i32),
    /// The run lasts until they have ended, at most so long; then they are killed.
    AtMost(Duration),
    /// They are killed.
    Kill,
}
