//! The near side: one ssh, the request, and the streams of a verb that runs on the far side.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use super::connection::Connection;
use super::error::lost;
use super::error::no_input;
use super::error::no_ssh;
use super::error::stalled;
use super::error::too_long;
use super::frame::{Down, LIMIT, Up, WINDOW};
use super::host::Target;
use super::install_path::{PLACE, VERSION};
use super::protocol::{MISSING, PROTOCOL};
use super::request::Request;
use super::send_frames::feed;
use super::send_frames::{Credit, Upwards};
use super::signals::{Signals, Wire};
use super::streams::{Input, Sink, Stream};
use crate::error::{Error, Reason};

/// The way to start this side's ssh.
#[derive(Debug, Clone)]
pub struct Ssh {
    pub words: Vec<OsString>,
    /// Keeps signals of the terminal, which go to the whole process group, from a child: `fs` knows how.
    pub shielding: fn(&mut Command),
    pub showing: fn(&[u8]),
}

/// Permission to install recant on a machine that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Install {
    Allowed,
    /// Not at all.
    Never,
}

/// The way to another machine.
pub struct Link {
    pub ssh: Ssh,
    pub target: Target,
    pub install: Install,
    /// The longest time that it may be silent; `None`: no limit.
    pub timeout: Option<Duration>,
    pub signals: Signals,
}

impl Link {
    /// Asks if there is a recant of this protocol. Does not use sudo, which may allow on a terminal what it refuses here.
    pub(super) fn answers(&self) -> Result<Answers, Error> {
        let mut wire = self.open(&relay(false))?;
        wire.ssh_stdin = None;
        match wire.hello(&mut |_, _| Ok(())).map_err(|silent| wire.why(silent)) {
            Ok(()) => Ok(Answers::Recant),
            Err(error) if error.reason() == Some(&Reason::NoRecant) => Ok(Answers::Nothing),
            Err(error) => Err(error),
        }
    }

    pub(super) fn once(&self, request: &Request, input: &mut Option<Input>, sink: &mut Sink<'_>) -> Result<u8, Error> {
        let mut wire = self.open_relay()?;
        let json = request.json();
        if json.len() > LIMIT {
            return Err(too_long(json.len(), LIMIT, "a connection")
                .with_remedy("name fewer paths at once, or a directory that they lie in"));
        }
        let credit = Arc::new(Credit::new(WINDOW));
        let up = Upwards::to(wire.ssh_stdin.take(), credit.clone());
        // Sent at once, while the far side's answer is on its way.
        up.send(Up::Request(json));
        let answered = Arc::new(AtomicBool::new(false));
        let listed = Wire::to_far_side(up.tell.clone(), wire.pid(), answered.clone(), wire.patience.clone());
        let listed = self.signals.list(listed);
        if let Err(silent) = wire.hello(sink) {
            // A program between here and ssh may wait for the end of its input.
            drop((listed, up));
            return Err(wire.why(silent));
        }
        answered.store(true, Ordering::SeqCst);
        wire.patience.answered();
        let unread = Arc::<Mutex<Option<io::Error>>>::default();
        if let Some(input) = input.take() {
            let (tell, credit) = (up.tell.clone(), credit.clone());
            let (unread, patience, ssh) = (unread.clone(), wire.patience.clone(), wire.pid());
            std::thread::spawn(move || {
                if let Err(error) = feed(input, &tell, &credit) {
                    *unread.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    // Not ended as input: half of it must not count as all. The cut makes the far side's verb end.
                    patience.give_up();
                    let _ended = ssh.map(|ssh| rustix::process::kill_process(ssh, Signal::TERM));
                }
            });
        }
        let outcome = self.receive(&mut wire, &up, &credit, sink);
        wire.is_told = outcome.is_ok();
        credit.close();
        drop((listed, up));
        wire.finish();
        match (outcome, unread.lock().unwrap_or_else(PoisonError::into_inner).take()) {
            (Err(error), Some(source)) if error.reason() == Some(&Reason::Cut) => Err(no_input(&self.host(), &source)),
            (outcome, _) => outcome,
        }
    }

    fn receive(&self, wire: &mut Connection, up: &Upwards, credit: &Credit, sink: &mut Sink<'_>) -> Result<u8, Error> {
        let mut closed = [false; 2];
        // Sent once: frames would pile up here if the far side writes on and reads nothing.
        let mut deliver = |stream, number: u8, bytes: &[u8]| {
            let closed = &mut closed[usize::from(number) - 1];
            if sink(stream, bytes).is_err() && !std::mem::replace(closed, true) {
                up.send(Up::Closed(number));
            }
        };
        loop {
            match Down::read(&mut wire.from) {
                Ok(Some(Down::Output(bytes))) => deliver(Stream::Output, 1, &bytes),
                Ok(Some(Down::Errors(bytes))) => deliver(Stream::Errors, 2, &bytes),
                Ok(Some(Down::Taken(count))) => credit.give(count as usize),
                Ok(Some(Down::Alive)) => {}
                Ok(Some(Down::Ended(status))) => return Ok(status),
                Ok(None) | Err(_) => {
                    let host = self.host();
                    return Err(wire.patience.ran_out().map_or_else(|| lost(&host), |silence| stalled(&host, silence)));
                }
            }
        }
    }

    /// Opens a connection on which the far side's recant is about to send its hello.
    fn open_relay(&self) -> Result<Connection, Error> {
        let mut wire = self.open(&relay(self.target.sudo))?;
        wire.by_sudo = self.target.sudo;
        Ok(wire)
    }

    /// Opens a connection on which the far side runs a shell's text.
    pub(super) fn open(&self, text: &str) -> Result<Connection, Error> {
        let mut command = self.command("-T", text);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Never this side's own standard error. If ssh shares a connection, the process that has the connection keeps that stream open as
        // long as the far side lives, and whoever reads it to its end would wait for that.
        command.stderr(Stdio::piped());
        (self.ssh.shielding)(&mut command);
        let ssh = command.spawn().map_err(|source| self.no_ssh(source))?;
        Ok(Connection::start(ssh, self.host(), self.timeout, self.ssh.showing, self.signals.came()))
    }

    /// Words of a user are arguments of ssh only. `text` is constant but for a word of letters and digits.
    pub(super) fn command(&self, terminal: &str, text: &str) -> Command {
        let program = self.ssh.words.first().map_or(OsStr::new("ssh"), |word| word);
        let mut command = crate::fs::command(program);
        command.args(self.ssh.words.iter().skip(1)).arg(terminal);
        let Target { host, user, port, .. } = &self.target;
        if let Some(port) = port {
            command.arg("-p").arg(port.to_string());
        }
        if let Some(user) = user {
            command.arg("-l").arg(user);
        }
        command.arg("--").arg(host).arg(text);
        command
    }

    pub(super) fn no_ssh(&self, source: io::Error) -> Error {
        no_ssh(self.ssh.words.first().map(|word| word.display().to_string()).unwrap_or_default(), &source)
    }

    pub(super) fn host(&self) -> String {
        self.target.name.clone()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    Recant,
    Nothing,
}

/// The text that finds the far side's recant and executes `then`: safe in sh, bash, zsh, csh and fish (no quote, `!`, backslash or newline
/// inside the one pair of quotes). An installed one comes before that of PATH, which is asked for its protocol: versions before
/// all this know no such verb.
fn find(then: &str) -> String {
    format!(
        "exec sh -c 'r=$HOME/{PLACE}/{VERSION}/recant; if [ -x \"$r\" ]; then :; \
         elif r=$(command -v recant) && \"$r\" far --speaks {PROTOCOL} >/dev/null 2>&1; then :; \
         else [ -t 1 ] || echo recant-missing; exit {MISSING}; fi; {then}'"
    )
}

fn relay(sudo: bool) -> String {
    find(if sudo { "exec sudo -n \"$r\" far" } else { "exec \"$r\" far" })
}

/// The text for a terminal. With sudo the shell stays: only an exit status comes from a terminal, and a refusal by sudo looks like an end
/// of the verb. recant signals the shell that it was started; if no signal came, `--unstarted` says there why not.
pub(super) fn on_terminal(sudo: bool, word: &str) -> String {
    let text = if sudo {
        find(
            "b=; trap \"b=1\" USR1; trap : INT QUIT; sudo -n \"$r\" far --request \"$1\" --tells $$; s=$?; \
             [ -n \"$b\" ] || exec \"$r\" far --unstarted $s; exit $s",
        )
    } else {
        find("exec \"$r\" far --request \"$1\"")
    };
    format!("{text} sh {word}")
}

#[cfg(test)]
mod tests {
    use crate::remote::ssh::*;

    #[test]
    fn the_texts_are_ones_that_every_shell_reads_alike() {
        for sudo in [false, true] {
            for text in [relay(sudo), on_terminal(sudo, "WORD").replace(" sh WORD", "")] {
                let inside = text.strip_prefix("exec sh -c '").and_then(|text| text.strip_suffix('\''));
                assert!(inside.is_some_and(|inside| !inside.contains(['\'', '!', '\\', '\n', '`'])), "{text}");
            }
        }
    }
}
