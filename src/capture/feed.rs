//! Standard streams that a caller's redirection reads from. The command gets the file opened anew, inside the run, where a write to it is
//! held; /proc/self/fd/0 of the caller's own would open the real file for writing, and fchmod(2) needs no more than the descriptor. What
//! cannot be opened there (a device, what the run hides) is fed through a pipe.
//!
//! Caller and command share one offset, bare: `(head -n1; cat) < file`. So the caller's is set to where the command stood at its end. Of
//! what is fed it is where recant has read to.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::descriptors::{Inherited, Stream};
use super::sys;
use super::words::{Word, say};
use crate::error::{At, IoError};

/// A pipe for each standard stream that reads a file: made before the init is forked, used where the file cannot be opened inside.
pub(super) struct Pipes(Vec<(i32, OwnedFd, OwnedFd)>);

impl Pipes {
    /// For these; none for a command whose files are the real ones.
    pub fn of(inherited: &Inherited, is_captured: bool) -> Result<Self, IoError> {
        let make = |stream: &Stream| {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at("make a pipe for", "the command")?;
            Ok((stream.fd, read, write))
        };
        Ok(Self(inherited.streams.iter().filter(|_| is_captured).map(make).collect::<Result<_, _>>()?))
    }

    /// In the init, with the mounts of the run in place: each stream is the file opened anew, or the end of a pipe, which recant is told.
    pub fn settle(self, inherited: &Inherited, recant: &UnixStream) -> Reopened {
        let mut reopened = Vec::new();
        for (fd, read, _write) in self.0 {
            if inherited.streams.iter().any(|stream| stream.fd == fd && stream.reopen()) {
                reopened.push(fd);
            } else {
                sys::put_in_place(read.as_fd(), fd);
                say(recant, &Word::Feed(fd));
            }
        }
        Reopened(reopened)
    }

    /// In recant: what it feeds.
    pub fn feeds(self) -> Feeds {
        let (failed, failures) = channel();
        Feeds { ends: self.0.into_iter().map(|(fd, _read, write)| (fd, write)).collect(), failed, failures }
    }
}

/// The streams of the command that are files opened anew; the init has them, too.
pub(super) struct Reopened(Vec<i32>);

impl Reopened {
    /// Tells recant where each of them stands.
    pub fn tell(&self, recant: &UnixStream) {
        self.0.iter().for_each(|fd| say(recant, &Word::Stands(*fd, sys::offset(*fd))));
    }
}

/// recant's ends of the pipes.
pub(super) struct Feeds {
    ends: Vec<(i32, OwnedFd)>,
    failed: Sender<io::Error>,
    failures: Receiver<io::Error>,
}

impl Feeds {
    /// Feeds a stream from the caller's, in a thread that ends with the file or with its last reader.
    pub fn begin(&mut self, fd: i32) {
        let Some(at) = self.ends.iter().position(|(of, _)| *of == fd) else { return };
        let (_, pipe) = self.ends.swap_remove(at);
        let failed = self.failed.clone();
        let feed = move || {
            let fed = sys::duplicate(fd).and_then(|from| io::copy(&mut File::from(from), &mut File::from(pipe)));
            match fed {
                Ok(_) => {}
                // The command has ended, or wants no more.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                // Nobody hears it where the run is over.
                Err(error) => drop(failed.send(error)),
            }
        };
        if let Err(error) = std::thread::Builder::new().name("recant-feed".into()).spawn(feed) {
            drop(self.failed.send(error));
        }
    }

    /// What kept a stream from being fed whole.
    pub fn failure(&self) -> Option<io::Error> {
        self.failures.try_recv().ok()
    }
}
