//! The way to another machine, and the request to it.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use crate::error::{At, Error, shell_word};
use crate::face::args::{Cli, Global, SessionVerb, Verb};
use crate::face::call::Call;
use crate::face::json::note_line;
use crate::face::near_side;
use crate::fs::signal_pipe;
use crate::remote::{Install, Link, PROTOCOL, Request, Signals, Ssh, Target, Word};

/// True for a verb that takes content from standard input.
fn takes_content(verb: &Verb) -> bool {
    verb.is_run() || matches!(verb, Verb::Session { verb: SessionVerb::Write(_) | SessionVerb::Import(_) })
}

/// True for a verb that reads standard input, or asks there. Others leave it alone: it may be the list of a shell's loop.
fn reads_input(call: &Call, verb: &Verb) -> bool {
    match verb {
        verb if takes_content(verb) => true,
        Verb::Discard(_)
        | Verb::Undo(_)
        | Verb::Prune(_)
        | Verb::Session { .. }
        | Verb::Checkpoint { .. }
        | Verb::Snapshot { .. } => call.can_ask,
        _ => false,
    }
}

/// The request of the call to the machine.
pub fn request(call: &Call, cli: &Cli, words: &[OsString], target: &Target) -> Request {
    let terminals = near_side::terminals();
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let env = std::env::vars_os().filter(|(name, _)| near_side::is_recants_own(name));
    Request {
        protocol: PROTOCOL,
        argv: words.iter().map(|word| Word::from(word.as_os_str())).collect(),
        color: call.out.colors(),
        columns: size.ok().map(|size| size.ws_col).filter(|columns| *columns > 0),
        input: reads_input(call, cli.verb()),
        terminals,
        env: env.map(|(name, value)| (Word::from(&*name), Word::from(&*value))).collect(),
        silence: call.config.timeout.value,
        store: target.store.clone(),
        reached: Some(format!("-H {}", shell_word(target.name.as_bytes()))),
    }
}

/// The way to the machine, by the settings. From here on signals are for the machine.
pub fn link(call: &Call, global: &Global, target: Target) -> Result<Link, Error> {
    let words = call.config.ssh.value.iter().map(OsString::from).collect();
    let heard = signal_pipe::listen().at("listen to signals by", "a pipe")?;
    Ok(Link {
        ssh: Ssh { words, shielding: signal_pipe::kept_from, showing: if call.out.is_text() { show } else { show_as_notes } },
        target,
        install: if global.no_install { Install::Never } else { Install::Allowed },
        timeout: call.config.timeout.value.map(|seconds| Duration::from_secs(seconds.into())),
        signals: Signals::from(heard),
    })
}

/// Writes to standard error. If nobody reads it, it is lost.
fn show(bytes: &[u8]) {
    drop(std::io::stderr().write_all(bytes));
}

/// Writes messages of ssh itself as notes: standard error is JSON alone.
fn show_as_notes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| show(&note_line(line)));
}
