//! Another recant as a child: its output as far as it is wanted, a word each second, and its end when somebody asks for it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::capture::children_of;
use crate::error::Error;
use crate::face::find_store::own_program;
use crate::face::mcp::carrier::{Outcome, Told};
use crate::fs::AbsPath;

/// The program to start, and the options that each call gets.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    options: Vec<OsString>,
}

impl Program {
    /// This program, with this store.
    pub fn of(store: Option<&AbsPath>) -> Result<Self, Error> {
        let path = own_program()?;
        let mut options = vec!["--color=never".into(), "--for-tools".into()];
        options.extend(store.map(|store| named("--store", store.as_path())));
        Ok(Self { path, options })
    }
}

/// `--name=value` as one word: a value that begins with '-' is no option.
pub fn named(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
}

pub struct Child {
    pub program: Program,
    /// The agent's word, for a child that would not know it.
    pub agent: Option<String>,
    /// True as soon as it is to end.
    pub stop: Arc<AtomicBool>,
}

/// The part of a stream that is wanted.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    /// The first bytes.
    First(usize),
    /// The last bytes.
    Last(usize),
}

/// The bytes that came.
#[derive(Debug, Default)]
pub struct Stream {
    /// The bytes that are wanted.
    pub bytes: Vec<u8>,
    /// The number of all bytes.
    pub total: u64,
}

/// A child that has ended.
pub struct Ran {
    pub status: ExitStatus,
    pub out: Stream,
    pub err: Stream,
    /// True if its time was over before.
    pub timed_out: bool,
}

impl Ran {
    pub fn is_killed(&self) -> bool {
        self.status.signal() == Some(libc::SIGKILL)
    }

    pub fn ended(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown end".into(),
        }
    }
}

/// The time between two requests to end, and the number of those after which what it runs is killed. What a command has left running ends at
/// the second.
const AGAIN: Duration = Duration::from_secs(1);
const ASKED: u32 = 10;
/// How often what it runs is killed before it is killed itself: it has to collect what was written, and to tell of it.
const KILLED: u32 = 5;

impl Child {
    /// Runs it to its end, with nothing on its standard input. `within`: when it is asked to end.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn run(&self, call: &Started<'_>, told: &Told) -> io::Result<Ran> {
        let mut child = self.command(call.words).spawn()?;
        let out = child.stdout.take().map(|stream| read(stream, call.out));
        let err = child.stderr.take().map(|stream| read(stream, call.err));
        let start = Instant::now();
        let (mut beats, mut asked, mut next) = (0, 0, None);
        // `None` where the kernel has no such call.
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let mut timed_out = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let now = start.elapsed();
            if now.as_secs() > beats {
                beats = now.as_secs();
                told.goes_on(beats);
            }
            let is_stopped = self.stop.load(Ordering::Relaxed);
            timed_out |= !is_stopped && call.within.is_some_and(|within| now >= within);
            if (timed_out || is_stopped) && next.is_none_or(|next| now >= next) {
                ask_to_end(Pid::from_child(&child), asked);
                (asked, next) = (asked + 1, Some(now + AGAIN));
            }
            wait_a_little(end.as_ref());
        };
        Ok(Ran { status, out: joined(out), err: joined(err), timed_out })
    }

    /// Reads `most` bytes of its output, from byte `from` on. If there are more, it is ended then.
    ///
    /// # Errors
    /// It cannot be started or read.
    pub fn chunk(&self, words: &[OsString], from: u64, most: usize) -> io::Result<Chunk> {
        let mut child = self.command(words).stderr(Stdio::null()).spawn()?;
        let mut chunk = Chunk { before: Sha256::new(), bytes: Vec::new(), has_more: false, is_failed: false };
        let mut total = 0;
        let mut some = [0; 16 << 10];
        while let Some(out) = child.stdout.as_mut()
            && !self.stop.load(Ordering::Relaxed)
        {
            let n = out.read(&mut some)?;
            let skipped = usize::try_from(from.saturating_sub(total)).unwrap_or(n).min(n);
            chunk.before.update(&some[..skipped]);
            chunk.bytes.extend_from_slice(&some[skipped..n]);
            total += n as u64;
            // One byte more tells that there are more.
            chunk.has_more = chunk.bytes.len() > most;
            if n == 0 || chunk.has_more {
                break;
            }
        }
        if chunk.has_more || self.stop.load(Ordering::Relaxed) {
            _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        let status = child.wait()?;
        chunk.is_failed = !chunk.has_more && status.code().is_some_and(|code| code != 0);
        chunk.bytes.truncate(most + 1);
        Ok(chunk)
    }

    fn command(&self, words: &[OsString]) -> Command {
        let mut command = crate::fs::command(&self.program.path);
        command.args(&self.program.options).args(words).env_remove("RECANT_HOST");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(agent) = &self.agent {
            command.env("RECANT_AGENT", agent);
        }
        command
    }
}

/// Asks a recant to end that was asked so often before; then kills what it runs, at last recant itself.
fn ask_to_end(recant: Pid, asked: u32) {
    let (to, signal) = match asked {
        0..ASKED => (vec![recant], Signal::TERM),
        _ if asked < ASKED + KILLED => {
            let runs = children_of(recant.as_raw_pid().cast_unsigned());
            (runs.into_iter().filter_map(Pid::from_raw).collect(), Signal::KILL)
        }
        _ => (vec![recant], Signal::KILL),
    };
    // They may have ended by themselves.
    for pid in to {
        _ = kill_process(pid, signal);
    }
}

/// Waits until a process has ended, but not for long.
fn wait_a_little(end: Option<&OwnedFd>) {
    const LITTLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    match end {
        Some(end) => drop(poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&LITTLE))),
        None => std::thread::sleep(Duration::from_millis(2)),
    }
}

/// Some bytes of a child's output.
pub struct Chunk {
    /// Of the bytes before them.
    pub before: Sha256,
    /// One more than was wanted, if there are more.
    pub bytes: Vec<u8>,
    pub has_more: bool,
    /// True if it ended by itself, and not well.
    pub is_failed: bool,
}

/// How a child is started.
pub struct Started<'a> {
    pub words: &'a [OsString],
    /// The part of its output that is wanted.
    pub out: Wanted,
    /// The part of its messages that is wanted.
    pub err: Wanted,
    pub within: Option<Duration>,
}

/// The most bytes of a document.
pub const LONGEST: usize = 32 << 20;

impl<'a> Started<'a> {
    /// A call whose whole document is wanted.
    pub fn whole(words: &'a [OsString]) -> Self {
        Self { words, out: Wanted::First(LONGEST), err: Wanted::Last(64 << 10), within: None }
    }
}

/// Reads a stream to its end: who writes to it has to get on.
fn read(mut from: impl Read + Send + 'static, wanted: Wanted) -> JoinHandle<Stream> {
    std::thread::spawn(move || {
        let (mut stream, mut some) = (Stream::default(), [0; 16 << 10]);
        while let Ok(n @ 1..) = from.read(&mut some) {
            stream.total += n as u64;
            stream.bytes.extend_from_slice(&some[..n]);
            match wanted {
                Wanted::First(most) => stream.bytes.truncate(most),
                Wanted::Last(most) if stream.bytes.len() > 2 * most => drop(stream.bytes.drain(..stream.bytes.len() - most)),
                Wanted::Last(_) => {}
            }
        }
        if let Wanted::Last(most) = wanted {
            let too_many = stream.bytes.len().saturating_sub(most);
            stream.bytes.drain(..too_many);
        }
        stream
    })
}

fn joined(thread: Option<JoinHandle<Stream>>) -> Stream {
    thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
}

/// The objects that recant has printed, a line each; other lines are left out.
pub fn documents(bytes: &[u8]) -> impl Iterator<Item = Value> {
    let object = |line: &[u8]| serde_json::from_slice::<Value>(line).ok().filter(|value| value["schema"] == 2);
    bytes.split(|byte| *byte == b'\n').filter_map(object)
}

/// The outcome of a call that gave no document: the error that it told.
pub fn failed(ran: &Ran) -> Outcome {
    match documents(&ran.err.bytes).filter(|said| said["kind"].is_string()).last() {
        Some(error) => Outcome::failed(error),
        None => Outcome::refused("refused", format!("recant ended with {} and no result", ran.ended())),
    }
}

/// The outcome where no child could be started.
pub fn not_started(error: &io::Error) -> Outcome {
    Outcome::refused("refused", format!("cannot start recant: {}", crate::error::reason(error)))
}
