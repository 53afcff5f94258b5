//! A connection: ssh as it was started, from the far side's hello to its last frame.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdin};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::error::{asked, lacks_sudo, missing, mute, no_sudo, noise, unreached};
use super::frame::LIMIT;
use super::request::Line;
use super::silence::{Patience, Patient};
use super::streams::{Sink, Stream};
use super::{PROTOCOL, far};
use crate::error::Error;

/// The output in place of a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silent {
    /// The far side reports that it has no recant of this protocol.
    Missing,
    /// The end of the connection.
    Ended,
    /// More output than any login script has.
    Noisy,
}

/// A connection whose far side is about to send its hello.
pub(super) struct Opened {
    ssh: Child,
    /// To the far side.
    pub(super) ssh_stdin: Option<ChildStdin>,
    /// From the far side.
    pub(super) from: Box<dyn BufRead + Send>,
    pub(super) patience: Arc<Patience>,
    said: Option<Said>,
    host: String,
    asked: Option<Arc<AtomicU8>>,
    /// True if sudo runs the far side's recant.
    pub(super) by_sudo: bool,
    /// True after the far side's last frame: if ssh stays, as others may share its connection, it is left alone.
    pub(super) is_told: bool,
}

impl Opened {
    /// Takes over an ssh that was started with pipes, to a `host` that may be silent for so long. `shown` gets ssh's own messages; without
    /// it they are gathered. `asked` is set to the number of a signal that asks this side to end.
    pub(super) fn over(
        mut ssh: Child,
        host: String,
        timeout: Option<Duration>,
        shown: Option<fn(&[u8])>,
        asked: Option<Arc<AtomicU8>>,
    ) -> Self {
        let patience = Patience::new(timeout);
        // The caller has asked for a pipe, and nothing has taken it yet.
        let stdout = ssh.stdout.take().expect("a pipe was asked for");
        let from = BufReader::with_capacity(64 << 10, Patient { stdout, patience: patience.clone(), ssh: ssh.id() });
        Self {
            ssh_stdin: ssh.stdin.take(),
            from: Box::new(from),
            patience,
            said: ssh.stderr.take().map(|stderr| Said::by(stderr, shown)),
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

    pub(super) fn why(&mut self, silent: Silent, sink: &mut Sink<'_>) -> Error {
        match silent {
            Silent::Missing => missing(&self.host),
            Silent::Ended => self.unanswered(sink),
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
    pub(super) fn unanswered(&mut self, sink: &mut Sink<'_>) -> Error {
        let status = self.end();
        self.gather(sink);
        if let Some(silence) = self.patience.ran_out() {
            return mute(&self.host, silence);
        }
        if let Some(asked) = self.asked() {
            return asked;
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
    pub(super) fn asked(&self) -> Option<Error> {
        let signal = self.asked.as_ref().map_or(0, |asked| asked.load(Ordering::SeqCst));
        (signal != 0).then(|| asked(&self.host, signal))
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
        self.ssh.wait().map_or(255, far::status)
    }

    fn wait_a_little(&mut self) {
        const TO_END: Duration = Duration::from_secs(1);
        let since = Instant::now();
        while since.elapsed() < TO_END && matches!(self.ssh.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for ssh to end, and passes on its gathered messages.
    pub(super) fn gather(&mut self, sink: &mut Sink<'_>) {
        self.end();
        if let Some(said) = self.said.take().map(Said::all).filter(|said| !said.is_empty()) {
            let _unread = sink(Stream::Errors, &said);
        }
    }
}

impl Drop for Opened {
    /// Waits for ssh, so that no process stays.
    fn drop(&mut self) {
        self.end();
    }
}

/// The most bytes of ssh's messages that are gathered. The far side's output is among them, if it does not come through recant.
const SAID_MAX: usize = 256 << 10;

/// Messages of ssh, as they come.
struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Said {
    fn by(mut stderr: ChildStderr, shown: Option<fn(&[u8])>) -> Self {
        let (end, ended) = channel();
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let said = bytes.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = stderr.read(&mut buffer) {
                match shown {
                    Some(show) => show(&buffer[..n]),
                    None => {
                        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                        let (had, room) = (said.len(), SAID_MAX.saturating_sub(said.len()));
                        said.extend(&buffer[..n.min(room)]);
                        if had < SAID_MAX && n >= room {
                            said.extend(b"\n(more was said, and is left out)\n");
                        }
                    }
                }
            }
            let _unheard = end.send(());
        });
        Self { bytes, ended }
    }

    /// All that was not shown, once ssh has ended. A process that shares its connection may keep the stream open, but writes nothing.
    fn all(self) -> Vec<u8> {
        let _late = self.ended.recv_timeout(Duration::from_secs(1));
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
