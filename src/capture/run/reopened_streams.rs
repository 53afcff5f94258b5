//! Standard streams that a caller's redirection reads from. Inside the run, the command gets the file opened anew, so that a write to it is
//! held. The caller's own descriptor would open the real file for writing by /proc/self/fd/0, and is enough for fchmod(2). A file that
//! can't be opened there (a device, a hidden path) is fed through a pipe.
//!
//! Without recant, caller and command share one offset: `(head -n1; cat) < file`. So the caller's is set to the command's at its end; for a
//! fed stream, to where recant has read to.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::descriptors::{Inherited, Stream};
use super::messages::{Word, say};
use super::raw_calls;
use crate::error::{At, IoError};

/// The pipes, one for each standard stream that reads a file. Made before the init is forked, used if the file can't be opened inside.
pub struct Pipes(Vec<(i32, OwnedFd, OwnedFd)>);

impl Pipes {
    /// Makes the pipes; none for a command whose files are the real ones.
    pub fn of(inherited: &Inherited, is_captured: bool) -> Result<Self, IoError> {
        let make = |stream: &Stream| {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at("make a pipe for", "the command")?;
            Ok((stream.fd, read, write))
        };
        Ok(Self(inherited.streams.iter().filter(|_| is_captured).map(make).collect::<Result<_, _>>()?))
    }

    /// Settles each stream in the init, with the run's mounts in place: the file opened anew, or a pipe's end, which recant is told.
    pub fn settle(self, inherited: &Inherited, recant: &UnixStream) -> Reopened {
        let mut reopened = Vec::new();
        for (fd, read, _write) in self.0 {
            if inherited.streams.iter().any(|stream| stream.fd == fd && stream.reopen()) {
                reopened.push(fd);
            } else {
                raw_calls::put_in_place(read.as_fd(), fd);
                say(recant, &Word::Feed(fd));
            }
        }
        Reopened(reopened)
    }

    pub fn feeds(self) -> Feeds {
        let (failed, failures) = channel();
        Feeds { ends: self.0.into_iter().map(|(fd, _read, write)| (fd, write)).collect(), failed, failures }
    }
}

/// The streams of the command that are files opened anew; the init has them too.
pub struct Reopened(Vec<i32>);

impl Reopened {
    /// Tells recant the offset of each of them.
    pub fn tell(&self, recant: &UnixStream) {
        self.0.iter().for_each(|fd| say(recant, &Word::Stands(*fd, raw_calls::offset(*fd))));
    }
}

/// recant's ends of the pipes.
pub struct Feeds {
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
            let fed = raw_calls::duplicate(fd).and_then(|from| io::copy(&mut File::from(from), &mut File::from(pipe)));
            match fed {
                Ok(_) => {}
                // The command has ended, or wants no more.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                // Nobody listens if the run is over.
                Err(error) => drop(failed.send(error)),
            }
        };
        if let Err(error) = std::thread::Builder::new().name("recant-feed".into()).spawn(feed) {
            drop(self.failed.send(error));
        }
    }

    /// The first error that kept a stream from being fed whole.
    pub fn failure(&self) -> Option<io::Error> {
        self.failures.try_recv().ok()
    }
}
