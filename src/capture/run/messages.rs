//! The messages between recant and its init: one line of JSON each, over a socket that ends with either of them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};

use crate::error::IoError;

/// A message from the init to recant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// The namespace could not be made; nothing was started.
    Failed(Failed),
    /// The kernel gives this user no /proc of a PID namespace: to be tried without one.
    NoProc,
    /// These groups, (inside, outside), are to be mapped for the init; it waits for the answer.
    MapGroups(Vec<(u32, u32)>),
    /// A confined command can have no /dev/shm of its own, with the reason: to be tried without one.
    NoShm(Failed),
    /// A place could not be captured and is read-only: its path as bytes, and the reason.
    Uncovered(Vec<u8>, String),
    /// The command is about to be executed.
    Ready,
    /// exec(3) failed with this error number.
    NoExec(i32),
    /// The command has stopped.
    Stopped,
    /// The answer to recant's question: the number of the stop in which the command stands; `None` if it runs.
    StandsAt(Option<u16>),
    /// This standard stream is to be fed from recant's own.
    Feed(i32),
    /// The command's offset in the file of this standard stream, in bytes.
    Stands(i32, u64),
    /// The command exited with this status; children of it may be left.
    Exited(i32),
    /// A signal ended the command.
    Killed(i32),
    /// Nothing is left of the command; others that joined it go on.
    OnlyJoined,
    /// A directory could not be renamed: a sentence for people.
    NotRenamed(String),
    /// The run refuses a call, as far as is known in it.
    Refused(Refusal),
    /// Only the init is left of the run, and it ends now.
    Alone,
}

/// A call that the run refuses. Paths are bytes, and the same inside and outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// EROFS: this object, or the directory of that new name, is read-only.
    ReadOnly { path: Vec<u8>, is_name: bool },
    /// EOVERFLOW: this object, or the directory of that new name, may belong to an id that is not mapped.
    NotMapped { path: Vec<u8>, is_name: bool },
    /// EXDEV: the two lie in different mounts. What was to be renamed or linked is still there at the end, and the new name is not.
    Apart { from: Vec<u8>, to: Vec<u8>, is_link: bool },
    /// ECONNREFUSED, if somebody listens at the real socket. The device (major, minor) and inode number are those that the run sees.
    Socket { path: Vec<u8>, dev: (u32, u32), ino: u64 },
    /// EACCES or ENOENT: this file is hidden.
    Hidden { path: Vec<u8> },
}

/// A message from recant to the init of a command that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Asks whether the command is stopped; the answer is [`Word::StandsAt`].
    WhetherItStands,
    /// Ends what the command left, and not what joined it.
    EndRest,
    /// Asks the command, and all that it has started, to end: SIGTERM.
    Terminate,
}

impl Ask {
    /// Sends it. If the init is gone, its end is heard of.
    pub fn send(self, mut to: &UnixStream) {
        let _gone = to.write_all(&[self as u8]);
    }

    /// Receives one; `None` at the end.
    pub fn receive(mut from: &UnixStream) -> Option<Self> {
        let mut byte = [0];
        let got = from.read(&mut byte).ok().filter(|got| *got == 1);
        got.and_then(|_| [Self::WhetherItStands, Self::EndRest, Self::Terminate].into_iter().find(|ask| *ask as u8 == byte[0]))
    }
}

/// A call that failed in the init.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub path: String,
    pub act: String,
    /// 0 if `text` says it all.
    pub errno: i32,
    pub text: String,
}

impl From<IoError> for Failed {
    fn from(error: IoError) -> Self {
        let errno = error.errno().unwrap_or(0);
        Self { path: error.path, act: error.act.to_owned(), errno, text: error.source.to_string() }
    }
}

/// Sends a word. An error means that nobody listens any more, which the sender learns by other means.
pub fn say(mut to: &UnixStream, word: &Word) {
    if let Ok(mut line) = serde_json::to_vec(word) {
        line.push(b'\n');
        // No SIGPIPE: Rust's runtime ignores it, so a write to the socket fails with EPIPE.
        let _ended = to.write_all(&line);
    }
}

pub struct Words(BufReader<UnixStream>);

impl Words {
    pub fn of(stream: UnixStream) -> Self {
        Self(BufReader::new(stream))
    }

    /// The next word, waited for; `None` at the end, or at a line that can't be read.
    pub fn next(&mut self) -> Option<Word> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => serde_json::from_slice(&line).ok(),
        }
    }

    /// True if a word has been read ahead.
    pub fn has_more(&self) -> bool {
        !self.0.buffer().is_empty()
    }

    pub fn socket(&self) -> &UnixStream {
        self.0.get_ref()
    }
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        if failed.errno == 0 { io::Error::other(failed.text) } else { io::Error::from_raw_os_error(failed.errno) }
    }
}
