//! The errors between two machines, in this room's words. `host` is the machine's name in messages.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use super::protocol::PROTOCOL;
use crate::error::{Error, Kind, Reason, reason};
use crate::remedy::{Remedy, shell};

/// Some words name no valid host.
pub(super) fn no_host(words: &str, why: &str) -> Error {
    Error::new(Kind::Usage, format!("{words:?} is not a host: {why}"))
        .without_state()
        .with_remedy("a host is [USER@]HOST[:PORT], or a Host of ssh_config")
}

pub(super) fn no_ssh(program: impl Display, source: &io::Error) -> Error {
    Error::new(Kind::Refused, format!("cannot start {program}: {}", reason(source)))
        .with_remedy("install OpenSSH's client, or name it: remote.ssh in the settings")
}

fn on(host: &str, what: impl Display) -> Error {
    Error::new(Kind::Refused, format!("{host}: {what}"))
}

/// An error before the far side had answered.
fn unheard(host: &str, what: impl Display) -> Error {
    on(host, what).with_state(format!("nothing is known to have been done on {host}"))
}

/// An error while the far side was at work, or may have been.
fn cut(host: &str, what: impl Display) -> Error {
    on(host, what)
        .with_state(format!("recant on {host} finishes or undoes what it had begun"))
        .with_remedy(shell(format_args!("recant -H {host} status")) + " shows what was done")
}

/// ssh ended with this status before the far side had sent anything.
pub(super) fn unreached(host: &str, status: u8) -> Error {
    unheard(host, format_args!("no connection: ssh ended with status {status}"))
}

/// The far side sent no hello for so long.
pub(super) fn mute(host: &str, silence: Duration) -> Error {
    unheard(host, format_args!("no answer for {} s", silence.as_secs())).with_remedy(
        shell(format_args!("ssh {host} true"))
            + " has to end within remote.timeout (settings); "
            + shell(format_args!("ssh -O exit {host}"))
            + " ends a shared connection that hangs",
    )
}

/// The far side sent no hello, and other output without end.
pub(super) fn noise(host: &str) -> Error {
    unheard(host, "its login scripts write without end, so recant there never answers")
        .with_remedy(shell(format_args!("ssh {host} true")) + " shows what its login scripts write")
}

/// The connection ended before the end of the verb was known.
pub(super) fn lost(host: &str) -> Error {
    cut(host, "the connection was cut, and whether it ended there is unknown").with_reason(Reason::Cut)
}

/// Nothing came over the connection for so long.
pub(super) fn stalled(host: &str, silence: Duration) -> Error {
    cut(host, format_args!("nothing came from there for {} s, and whether it ended is unknown", silence.as_secs()))
}

/// A signal came before the far side had answered.
pub(super) fn interrupted(host: &str, signal: u8) -> Error {
    cut(host, "ended by a signal before the far side had answered").with_reason(Reason::Asked { signal })
}

/// The input for the far side's verb cannot be read here.
pub(super) fn no_input(host: &str, source: &io::Error) -> Error {
    let why = reason(source);
    cut(host, format_args!("cannot read standard input, to send it there: {why}"))
}

/// There is no recant of this protocol on the far side.
pub(super) fn missing(host: &str) -> Error {
    on(host, format_args!("no recant of protocol {PROTOCOL} is installed there"))
        .with_reason(Reason::NoRecant)
        .with_remedy("without --no-install, recant is installed there: " + shell(format_args!("recant -H {host} doctor")))
}

/// sudo there runs nothing without a password, or nothing at all.
pub fn no_sudo(host: &str) -> Error {
    on(host, "sudo -n refused to run recant there")
        .with_remedy(format!("allow it without a password in sudoers on {host}, or take sudo out of [remotes] in the settings"))
}

/// recant is to be run by sudo there, and there is no sudo.
pub fn lacks_sudo(host: &str) -> Error {
    on(host, "sudo is not installed there")
        .with_remedy(format!("install it on {host}, or take sudo out of [remotes] in the settings: a login as root needs none"))
}

/// recant could not be installed there.
pub(super) fn not_installed(host: &str, why: impl Display, remedy: Remedy) -> Error {
    on(host, format_args!("recant cannot be installed there: {why}")).with_remedy(remedy)
}

/// A request of so many bytes is too long for a command line or a frame; `over` names which.
pub(super) fn too_long(bytes: usize, most: usize, over: &str) -> Error {
    Error::new(Kind::Refused, format!("the request takes {bytes} bytes; {over} carries at most {most}"))
}

pub(super) fn other_protocol(theirs: u32) -> Error {
    Error::new(Kind::Refused, format!("the near side speaks protocol {theirs}, this one {PROTOCOL}"))
        .with_reason(Reason::OtherProtocol)
}

/// The bytes that came are no valid request.
pub(super) fn garbled(why: impl Display) -> Error {
    Error::new(Kind::Refused, format!("the request is invalid: {why}"))
}
