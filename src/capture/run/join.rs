//! A command that joins the run of another one: it gets the namespaces of that run, so both see the same changes, which are one step.
//!
//! The run's init listens at a socket in the session's directory. Whoever connects gets the namespaces, and counts as part of the run until the
//! connection ends; the run lasts as long as somebody does. The command is started by the recant that joins, so it has that one's terminal,
//! process group and descriptors. Its own init, without PIDs of its own, tends it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::thread::LinkNameSpaceType;

use super::answered_calls;
use super::answered_calls::Answers;
use super::command::Network;
use super::passed_descriptors::{receive, send};
use super::raw_calls;
use crate::error::{At, IoError};
use crate::fs::{AbsPath, Entry, Fs, socket, stat_of};
use crate::session::{SOCKET, Session};

const NAMESPACES: &str = "the namespaces of the run";

/// The namespaces of a run, in the order in which they are passed. The user namespace is passed by an ordinary user's alone.
const KINDS: [(&str, LinkNameSpaceType); 5] = [
    ("pid", LinkNameSpaceType::ProcessID),
    ("ipc", LinkNameSpaceType::InterProcessCommunication),
    ("net", LinkNameSpaceType::Network),
    ("mnt", LinkNameSpaceType::Mount),
    ("user", LinkNameSpaceType::User),
];

/// Makes the socket of a session's run, in place of that of an earlier one.
pub fn open(fs: &Fs, session: &Session) -> Result<UnixListener, IoError> {
    let at = session.dir.at(SOCKET);
    let listener = fs.listen(at)?;
    listener.set_nonblocking(true).at("listen at", at)?;
    Ok(listener)
}

/// The init's side: the socket, and those who joined.
pub struct Gate<'a> {
    listener: Option<&'a UnixListener>,
    joined: Vec<UnixStream>,
    /// Answers the calls of those who join; `None` if nobody does.
    answers: Option<Arc<Answers>>,
    network: Network,
}

impl<'a> Gate<'a> {
    pub fn new(listener: Option<&'a UnixListener>, answers: Option<Arc<Answers>>, network: Network) -> Self {
        Self { listener, joined: Vec::new(), answers, network }
    }

    /// The descriptors to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.listener.iter().map(|listener| listener.as_fd()).chain(self.joined.iter().map(AsFd::as_fd))
    }

    /// Lets in who has connected, and lets go of who has ended. Nothing here waits.
    pub fn tend(&mut self) {
        self.joined.retain(|joined| {
            let _as_before = joined.set_nonblocking(true);
            let mut from = joined;
            // Nothing is ever sent: an end, or a fault.
            matches!(from.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
        });
        while let Some(Ok((connection, _))) = self.listener.map(UnixListener::accept) {
            // On an error it is not let in, which the end of the connection shows.
            if self.let_in(&connection).is_ok() {
                self.joined.push(connection);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }

    fn let_in(&self, connection: &UnixStream) -> Result<(), IoError> {
        let open =
            |kind: &str| rustix::fs::open(format!("/proc/self/ns/{kind}"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let mut passed = KINDS.iter().map(|(kind, _)| open(kind)).collect::<Result<Vec<_>, _>>().at("open", NAMESPACES)?;
        if let Some(answers) = &self.answers {
            let (ours, theirs) = UnixStream::pair().at("make a socket for", NAMESPACES)?;
            answered_calls::serve(ours, answers.clone())?;
            passed.push(theirs.into());
        }
        let passed: Vec<BorrowedFd<'_>> = passed.iter().map(AsFd::as_fd).collect();
        let network = Network::ALL.iter().position(|one| *one == self.network).and_then(|at| u8::try_from(at).ok());
        send(connection, network.unwrap_or_default(), &passed).at("send", NAMESPACES)
    }
}

/// A run that is joined, until dropped.
#[derive(Debug)]
pub struct Joined {
    #[expect(dead_code, reason = "its end tells that the command has ended")]
    connection: UnixStream,
    namespaces: Vec<OwnedFd>,
    /// The init's end answers calls; `None` if nobody does.
    calls: Option<UnixStream>,
    network: Network,
    is_user_s: bool,
    /// The working directory, in the run's view.
    cwd: AbsPath,
}

impl Joined {
    /// Joins the run whose socket lies at `at`. `None` if it is over, or cannot be joined.
    ///
    /// # Errors
    /// What it passes cannot be received.
    pub fn connect(at: Entry<'_>, is_user_s: bool, cwd: AbsPath) -> Result<Option<Self>, IoError> {
        let Ok(connection) = socket::connect(at) else { return Ok(None) };
        let Some((byte, mut namespaces)) = receive(&connection).at("receive", NAMESPACES)? else { return Ok(None) };
        let Some(network) = Network::ALL.get(usize::from(byte)).filter(|_| namespaces.len() >= KINDS.len()) else {
            return Ok(None);
        };
        let calls = namespaces.drain(KINDS.len()..).next().map(UnixStream::from);
        Ok(Some(Self { connection, namespaces, calls, network: *network, is_user_s, cwd }))
    }

    pub fn is_user_s(&self) -> bool {
        self.is_user_s
    }

    /// The part of the network that the run can reach.
    pub fn network(&self) -> Network {
        self.network
    }

    /// The socket of those who answer calls.
    pub fn calls(&self) -> Option<UnixStream> {
        self.calls.as_ref().and_then(|calls| calls.try_clone().ok())
    }

    /// Enters the command's working directory, from within the run.
    pub fn enter_directory(&self) -> Result<(), IoError> {
        rustix::process::chdir(self.cwd.as_path()).at("enter the working directory", &self.cwd)
    }

    /// Forks a child of this process that is in the run's namespaces. `None` in the child.
    pub fn fork_into(&self) -> io::Result<Option<i32>> {
        let (mut ours, mut theirs) = UnixStream::pair()?;
        // A PID namespace is entered by children alone, so that the one who enters makes one, which is this process's child too.
        let Some(enters) = raw_calls::fork()? else {
            drop(ours);
            let made = self.enter().and_then(|()| raw_calls::fork_beside());
            let answer = match made {
                Ok(None) => return Ok(None),
                Ok(Some(pid)) => pid,
                Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
            };
            let _gone = theirs.write_all(&answer.to_ne_bytes());
            raw_calls::exit_now(0)
        };
        drop(theirs);
        let mut answer = [0; 4];
        let answered = ours.read_exact(&mut answer);
        raw_calls::wait_for(enters)?;
        answered?;
        match i32::from_ne_bytes(answer) {
            errno if errno < 0 => Err(io::Error::from_raw_os_error(-errno)),
            pid => Ok(Some(pid)),
        }
    }

    fn enter(&self) -> io::Result<()> {
        let (inner, others) = self.namespaces.split_last().ok_or(io::ErrorKind::NotFound)?;
        if self.is_user_s {
            // The outer one owns PIDs and IPC, the inner one the mounts: each is entered from the one that owns it.
            set(&raw_calls::user_namespace_above(inner.as_fd())?, LinkNameSpaceType::User)?;
        }
        for (namespace, (name, kind)) in others.iter().zip(KINDS) {
            if self.is_user_s && kind == LinkNameSpaceType::Mount {
                set(inner, LinkNameSpaceType::User)?;
            }
            // One that is this process's own, as the network mostly, may not be this user's to enter.
            if !is_own(namespace, name)? {
                set(namespace, kind)?;
            }
        }
        Ok(())
    }
}

fn set(namespace: &OwnedFd, kind: LinkNameSpaceType) -> io::Result<()> {
    Ok(rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(kind))?)
}

fn is_own(namespace: &OwnedFd, name: &str) -> io::Result<bool> {
    let own = rustix::fs::open(format!("/proc/self/ns/{name}"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(stat_of(&own)?.inode() == stat_of(namespace)?.inode())
}
