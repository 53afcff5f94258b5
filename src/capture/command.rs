//! A command: what is asked of it, and how it ended.

use std::ffi::OsString;

/// What to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// Program and arguments; the program is looked up in PATH.
    pub argv: Vec<OsString>,
    /// Variables to set beside those that recant has.
    pub env: Vec<(OsString, OsString)>,
    /// What happens to background children when the command has ended.
    pub linger: Linger,
    /// What of the network it has.
    pub network: Network,
    /// So many bytes may be written; then it is ended.
    pub max_size: Option<u64>,
}

/// What of the network a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// That of everybody.
    Open,
    /// A loopback of its own, and no abstract sockets of others.
    None,
}

/// What happens to background children when the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linger {
    /// The run lasts until they have ended.
    Wait,
    /// They are killed.
    Kill,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(u8),
    /// By this signal.
    Signal(i32),
}
