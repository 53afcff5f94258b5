//! A command: what is to be run, and on which terms.

use std::ffi::OsString;

/// A command to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// Program and arguments; the program is looked up in PATH.
    pub argv: Vec<OsString>,
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
    /// The most bytes that it may write; then it is ended.
    pub max_size: Option<u64>,
}

impl Command {
    /// A command with the usual terms: background children are waited for, the network is open.
    pub fn new(argv: Vec<OsString>) -> Self {
        Self {
            argv,
            env: Vec::new(),
            linger: Linger::Wait,
            network: Network::Open,
            keeps_before: false,
            listens: true,
            max_size: None,
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
}

/// The treatment of background children when the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linger {
    /// The run lasts until they have ended.
    Wait,
    /// The run lasts until they have ended; they are killed if recant's parent is not this process any more.
    WaitWith(i32),
    /// They are killed.
    Kill,
}
