//! A connection: ssh as it was started, from the far side's hello to its last frame.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::error::{interrupted, lacks_sudo, missing, mute, no_sudo, noise, unreached};
use super::far_side;
use super::frame::LIMIT;
use super::longest_silence::{Patience, Patient};
use super::protocol::PROTOCOL;
use super::request::Line;
use super::streams::{Sink, Stream};
use crate::error::Error;

/// The output in place of a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silent {
    /// The far side reports that it has no recant of this protocol.
    Missing,
    Ended,
    /// More output than any login script has.
    Noisy,
}

/// A connection whose far side is about to send its hello.
pub(super) struct Connection {
    ssh: Child,
    pub(super) ssh_stdin: Option<ChildStdin>,
    pub(super) from: Box<dyn BufRead + Send>,
    pub(super) patience: Arc<Patience>,
    messages: Option<Messages>,
    host: String,
    asked: Arc<AtomicU8>,
    /// True if sudo runs the far side's recant.
    pub(super) by_sudo: bool,
    /// True after the far side's last frame: if ssh stays, as others may share its connection, it is left alone.
    pub(super) is_told: bool,
}

impl Connection {
    /// Takes over an ssh that was started with pipes, to a `host` that may be silent for so long. `show` gets ssh's own messages. `asked`
    /// is set to the number of a signal that asks this side to end.
    pub(super) fn start(mut ssh: Child, host: String, timeout: Option<Duration>, show: fn(&[u8]), asked: Arc<AtomicU8>) -> Self {
        let patience = Patience::new(timeout);
        // The caller has asked for a pipe, and nothing has taken it yet.
        let stdout = ssh.stdout.take().expect("a pipe was asked for");
        let from = BufReader::with_capacity(64 << 10, Patient { stdout, patience: patience.clone(), ssh: ssh.id() });
        Self {
            ssh_stdin: ssh.stdin.take(),
            from: Box::new(from),
            patience,
            messages: ssh.stderr.take().map(|stderr| Messages::of(stderr, show)),
            ssh,
            host,
            asked,
            by_sudo: false,
            is_told: false,
        }
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.ssh.id()).unwrap_or_default())
    }

    /// Reads up to the far side's hello. Output of login scripts before it goes to standard error.
    pub(super) fn hello(&mut self, sink: &mut Sink<'_>) -> Result<(), Silent> {
        let mut noise = 0;
        loop {
            let line = self.line();
            noise += line.len();
            if noise > LIMIT {
                return Err(Silent::Noisy);
            }
            match Line::of(&line) {
                Line::Hello { protocol: PROTOCOL, noise } => {
                    let _unread = (!noise.is_empty()).then(|| sink(Stream::Errors, noise));
                    return Ok(());
                }
                Line::Hello { .. } => return Err(Silent::Missing),
                Line::Noise if line.is_empty() => return Err(Silent::Ended),
                Line::Noise if line == b"recant-missing\n" => return Err(Silent::Missing),
                Line::Noise => {
                    let _unread = sink(Stream::Errors, &line);
                }
            }
        }
    }

    pub(super) fn why(&mut self, silent: Silent) -> Error {
        match silent {
            Silent::Missing => missing(&self.host),
            Silent::Ended => self.unanswered(),
            Silent::Noisy => {
                self.patience.give_up();
                noise(&self.host)
            }
        }
    }

    /// Reads the next line, up to the greatest length of a line; empty at the end.
    pub(super) fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        let _cut = (&mut self.from).take(64 << 10).read_until(b'\n', &mut line);
        line
    }

    /// The error that explains why there was no answer.
    pub(super) fn unanswered(&mut self) -> Error {
        let status = self.finish();
        if let Some(silence) = self.patience.ran_out() {
            return mute(&self.host, silence);
        }
        if let Some(interrupted) = self.interrupted() {
            return interrupted;
        }
        let host = &self.host;
        // A shell's status: the program does not exist, or cannot be executed.
        const NO_PROGRAM: [u8; 2] = [126, 127];
        match status {
            // The status of sudo(8) if it wants a password, or refuses. It has printed which.
            1 if self.by_sudo => no_sudo(host),
            _ if self.by_sudo && NO_PROGRAM.contains(&status) => lacks_sudo(host),
            // Any other status is the far side's: what answered was no recant of this protocol.
            255 => unreached(host, status),
            signal if signal > 128 && signal < 160 => unreached(host, status),
            _ => missing(host),
        }
    }

    /// The error that a signal asked this side to end, if one did.
    pub(super) fn interrupted(&self) -> Option<Error> {
        let signal = self.asked.load(Ordering::SeqCst);
        (signal != 0).then(|| interrupted(&self.host, signal))
    }

    /// Ends ssh, and returns its exit status. Without input it ends by itself, and the far side with it. If it is not to be waited for it
    /// gets SIGTERM, then SIGKILL: it may wait for the other end of its connection.
    fn end(&mut self) -> u8 {
        self.ssh_stdin = None;
        // Only if it has not ended: its process id may be another's by now.
        if self.patience.is_over() && matches!(self.ssh.try_wait(), Ok(None)) {
            let _ended = self.pid().map(|ssh| rustix::process::kill_process(ssh, Signal::TERM));
            self.wait_a_little();
            let _ended = self.ssh.kill();
        }
        if self.is_told {
            self.wait_a_little();
            return 0;
        }
        self.ssh.wait().map_or(255, far_side::status)
    }

    fn wait_a_little(&mut self) {
        const TO_END: Duration = Duration::from_secs(1);
        let since = Instant::now();
        while since.elapsed() < TO_END && matches!(self.ssh.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for ssh to end, and for its messages to be shown. Returns its exit status.
    pub(super) fn finish(&mut self) -> u8 {
        let status = self.end();
        if let Some(messages) = self.messages.take() {
            messages.wait();
        }
        status
    }
}

impl Drop for Connection {
    /// Waits for ssh, so that no process stays.
    fn drop(&mut self) {
        self.end();
    }
}

/// Messages of ssh itself, which are shown as they come.
struct Messages {
    ended: Receiver<()>,
}

impl Messages {
    fn of(mut stderr: ChildStderr, show: fn(&[u8])) -> Self {
        let (end, ended) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut buffer) {
                show(&buffer[..n]);
            }
            let _unheard = end.send(());
        });
        Self { ended }
    }

    /// Waits for the last one, once ssh has ended. A process that shares its connection may keep the stream open, but writes nothing.
    fn wait(self) {
        let _late = self.ended.recv_timeout(Duration::from_secs(1));
    }
}
