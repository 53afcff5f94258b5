//! The same verb on another machine: the far side's recant works on the far side's files with the far side's store, and the system's
//! own ssh carries words, streams and signals between the two. docs/remote.md has the protocol.
//!
//! In: a call's words and streams, and which machine is meant. Out: what the far side's recant said, and its exit status. No
//! tree and no store is touched on this side. What always holds:
//! - **R1** No word of a user becomes text of a shell: the command that ssh carries is constant, and the request is data behind it
//!   ([`frame`]), or one word of letters and digits ([`request::Request::word`]).
//! - **R2** A connection that is cut decides nothing: the far side finishes or undoes by its own journal ([`far`]), and an end of standard
//!   input counts only where it was sent.
//! - **R3** ssh is the user's: no option of its settings is overridden, no password is read.

pub mod far;
pub mod frame;
pub mod host;
pub mod install;
pub mod link;
mod opened;
pub mod request;
pub mod signals;
mod silence;
mod upwards;

use std::io;
use std::time::Duration;

use crate::error::{Failure, Kind};

/// The version of what goes over the connection; docs/remote.md tells what each one is.
pub const PROTOCOL: u32 = 2;

/// How a far side ends that has no recant of this protocol. A verb may end so too, and is then asked for what it is.
pub const MISSING: u8 = 213;

/// What went wrong between two machines.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What names a host is no name.
    #[error("{words:?} is no host: {why}")]
    Host {
        /// As given.
        words: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// ssh cannot be started.
    #[error("cannot start {program}: {}", crate::error::reason(source))]
    NoSsh {
        /// What was to be started.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// ssh ended before the far side had said anything.
    #[error("{host}: no connection: ssh ended with status {status}")]
    Unreached {
        /// The host.
        host: String,
        /// ssh's own.
        status: u8,
    },
    /// The connection ended before the far side told how the verb ended.
    #[error("{host}: the connection was cut before the end was known")]
    Lost {
        /// The host.
        host: String,
    },
    /// The far side did not say who it is.
    #[error("{host}: no answer for {} s", silence.as_secs())]
    Mute {
        /// The host.
        host: String,
        /// How long it was waited for.
        silence: Duration,
    },
    /// What came was no answer, and no end of it to be seen.
    #[error("{host}: its login writes without end, and recant there does not come to speak")]
    Noise {
        /// The host.
        host: String,
    },
    /// The connection is there, and nothing comes over it.
    #[error("{host}: nothing came from there for {} s, and the end is not known", silence.as_secs())]
    Stalled {
        /// The host.
        host: String,
        /// How long it was waited for.
        silence: Duration,
    },
    /// A signal came before the far side had answered.
    #[error("{host}: ended by a signal before the far side had answered")]
    Asked {
        /// The host.
        host: String,
        /// The signal's number.
        signal: u8,
    },
    /// There is no recant of this protocol on the far side.
    #[error("{host}: there is no recant of protocol {PROTOCOL} there")]
    Missing {
        /// The host.
        host: String,
    },
    /// sudo there carries out nothing without a password, or nothing at all.
    #[error("{host}: sudo -n refused to run recant there")]
    NoSudo {
        /// The host.
        host: String,
    },
    /// recant is to be run by sudo there, and there is none.
    #[error("{host}: there is no sudo there, by which recant is to be run")]
    LacksSudo {
        /// The host.
        host: String,
    },
    /// It could not be put there.
    #[error("{host}: recant cannot be put there: {why}")]
    NotInstalled {
        /// The host.
        host: String,
        /// What stands against it.
        why: String,
        /// What would do it.
        remedy: String,
    },
    /// What is asked for is too long for a command line, which a terminal needs, or for one frame.
    #[error("these words take {bytes} bytes; over {over} {most} are the most")]
    TooLong {
        /// Bytes.
        bytes: usize,
        /// As many as there may be.
        most: usize,
        /// What they are to go over.
        over: &'static str,
    },
    /// What the far side's verb was to read cannot be read here.
    #[error("{host}: standard input, which was to go there, cannot be read: {}", crate::error::reason(source))]
    Input {
        /// The host.
        host: String,
        /// Why not.
        source: io::Error,
    },
    /// The other side speaks another protocol.
    #[error("the near side speaks protocol {theirs}, this one {PROTOCOL}")]
    Protocol {
        /// Its protocol.
        theirs: u32,
    },
    /// What came is no request.
    #[error("the request is garbled: {why}")]
    Garbled {
        /// In what way.
        why: String,
    },
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::Host { .. } => Kind::Usage,
            _ => Kind::Refused,
        }
    }

    fn state(&self) -> Option<String> {
        match self {
            Error::Host { .. } => None,
            Error::Unreached { host, .. } | Error::Mute { host, .. } | Error::Noise { host } => {
                Some(format!("nothing is known to have been done on {host}"))
            }
            Error::Lost { host } | Error::Stalled { host, .. } | Error::Asked { host, .. } | Error::Input { host, .. } => {
                Some(format!("what {host} had begun it finishes or undoes by itself, by its own journal"))
            }
            _ => Some("nothing was changed".into()),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Error::Host { .. } => Some("a host is [USER@]HOST[:PORT], or a name of [remotes] in the settings".into()),
            Error::NoSsh { .. } => Some("install OpenSSH's client, or name it: remote.ssh in the settings".into()),
            Error::Mute { host, .. } => Some(format!(
                "ssh {host} true has to end within remote.timeout (settings); ssh -O exit {host} ends a shared connection that hangs"
            )),
            Error::Noise { host } => Some(format!("ssh {host} true shows what its login scripts write")),
            Error::Lost { host } | Error::Stalled { host, .. } | Error::Asked { host, .. } | Error::Input { host, .. } => {
                Some(format!("recant -H {host} status tells what was done"))
            }
            Error::Missing { host } => Some(format!("without --no-install this recant is put there: recant -H {host} doctor")),
            Error::NoSudo { host } => {
                Some(format!("allow it without a password in sudoers on {host}, or take sudo out of [remotes] in the settings"))
            }
            Error::LacksSudo { host } => Some(format!(
                "install it on {host}, or take sudo out of [remotes] in the settings: who logs in as root needs none"
            )),
            Error::NotInstalled { remedy, .. } => Some(remedy.clone()),
            Error::TooLong { most: request::ON_COMMAND_LINE, .. } => {
                Some("give it from a pipe: recant … < /dev/null, or put the words into a script there".into())
            }
            Error::TooLong { .. } => Some("name fewer paths at once, or a folder that they lie in".into()),
            _ => None,
        }
    }
}
