//! The far side: a relay between the connection and one child, which is another recant with the near side's words.
//!
//! A connection that is cut decides nothing. The child of a verb that settles what it began goes on to its end, by its own journal.
//! The child of a verb that ends with its terminal is sent SIGHUP, as by the kernel.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::frame::{Down, Up};

/// The behaviour of a verb when the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It goes on: what it began is finished or undone.
    Settles,
    Ends,
}

/// The standard input of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    None,
    /// A pipe: the command of a run reads it.
    Pipe,
    /// A socket: if the relay is gone before the end of input, the reader gets an error in place of an end. recant itself reads content
    /// from it, and half of it must not count as all.
    Guarded,
}

/// Carries out `command` to its end, with the connection as its terminal. If the near side counts a `silence` as a cut, it is told often
/// enough that this side is there. Errors: the command cannot be started.
pub fn relay(mut command: Command, cut: Cut, input: Input, silence: Option<Duration>) -> io::Result<()> {
    let (stdin, near_end) = match input {
        Input::None => (Stdio::null(), None),
        Input::Pipe => (Stdio::piped(), None),
        Input::Guarded => {
            let (ours, theirs) = UnixStream::pair()?;
            // Never read: a socket that is closed with something unread gives its other end ECONNRESET (unix(7)) in place of an end,
            // unless `shutdown` has told before that the end is meant.
            (&theirs).write_all(b"!")?;
            (Stdio::from(OwnedFd::from(theirs)), Some(ours))
        }
    };
    // A process group of its own: Ctrl-C has to reach the command of a run, too, but not the relay.
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    // It holds the other end of the socket, which only the child may have.
    drop(command);
    let (tell, events) = channel();
    let near = Near::new(tell.clone());
    let taker = near_end.map(Taker::Socket).or(child.stdin.take().map(Taker::Pipe));
    let group = Group::of(&child);
    near.hand_on(&mut child, tell.clone());
    if let Some(silence) = silence {
        near.beat(silence);
    }
    std::thread::spawn(move || listen(&tell));
    serve(&near, &events, group, feeder(near.clone(), taker), cut);
    Ok(())
}

/// Tells a shell, before anything is done, that recant was started: the shell's trap for SIGUSR1 is set by then. Errors: it has no trap,
/// and would miss the signal or die of it; it does not exist.
pub fn say_begun(shell: i32) -> io::Result<()> {
    let status = std::fs::read_to_string(format!("/proc/{shell}/status"))?;
    // proc(5): a bit a signal, the first for number 1.
    let caught = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    let is_caught = caught.is_some_and(|caught| caught >> (Signal::USR1.as_raw() - 1) & 1 == 1);
    match Pid::from_raw(shell).filter(|_| is_caught) {
        Some(shell) => Ok(rustix::process::kill_process(shell, Signal::USR1)?),
        None => Err(io::Error::other("it does not listen for SIGUSR1")),
    }
}

/// An event for the relay, in the order of the reports.
enum Event {
    Frame(Up),
    Cut,
    /// The child has ended, with this status.
    Ended(u8),
}

fn serve(near: &Near, events: &Receiver<Event>, group: Group, feed: Sender<Option<Vec<u8>>>, cut: Cut) {
    let mut feed = Some(feed);
    for event in events {
        match event {
            Event::Frame(Up::Input(bytes)) => {
                // A verb that reads no more does not end the connection.
                let _gone = feed.as_ref().map(|feed| feed.send(Some(bytes)));
            }
            Event::Frame(Up::InputEnds) => {
                let _gone = feed.take().map(|feed| feed.send(None));
            }
            Event::Frame(Up::Signal(number)) => group.signal(number),
            Event::Frame(Up::Closed(stream)) => near.close(stream),
            // Only the first frame may be a request.
            Event::Frame(Up::Request(_)) => {}
            Event::Cut => {
                near.cut.store(true, Ordering::Relaxed);
                if cut == Cut::Ends {
                    group.hang_up();
                }
                feed = None;
            }
            Event::Ended(status) => {
                near.end(status);
                return;
            }
        }
    }
}

/// Reads frames to the end of the connection.
fn listen(tell: &Sender<Event>) {
    let mut stdin = io::stdin().lock();
    // An invalid frame ends the connection like a cut.
    while let Ok(Some(frame)) = Up::read(&mut stdin) {
        if tell.send(Event::Frame(frame)).is_err() {
            return;
        }
    }
    let _ended = tell.send(Event::Cut);
}

/// The child and the processes that it started.
#[derive(Clone, Copy)]
struct Group {
    leader: Option<Pid>,
}

impl Group {
    fn of(child: &Child) -> Self {
        Self { leader: Pid::from_raw(i32::try_from(child.id()).unwrap_or_default()) }
    }

    /// Sends SIGHUP, as the kernel does when a terminal is gone; then again, as a run that is being set up cannot pass on the first.
    fn hang_up(self) {
        std::thread::spawn(move || {
            self.signal(1);
            // This process ends with the child, so that the process id is still the child's then.
            std::thread::sleep(std::time::Duration::from_secs(1));
            self.signal(1);
        });
    }

    /// Sends a signal: a terminal's signals go to the whole group, others, as by kill(1), to the child. A child that has ended gets none.
    fn signal(self, number: u8) {
        let Some((leader, signal)) = self.leader.zip(Signal::from_named_raw(number.into())) else { return };
        let _ended = match signal {
            Signal::INT | Signal::QUIT | Signal::HUP => rustix::process::kill_process_group(leader, signal),
            signal => rustix::process::kill_process(leader, signal),
        };
    }
}

/// The connection to the near side. If that is gone, frames are dropped.
#[derive(Clone)]
struct Near {
    out: Arc<Mutex<io::Stdout>>,
    cut: Arc<AtomicBool>,
    /// For standard output and standard error: true if the near side no longer reads it.
    closed: Arc<[AtomicBool; 2]>,
    tell: Sender<Event>,
}

impl Near {
    fn new(tell: Sender<Event>) -> Self {
        Self { out: Arc::new(Mutex::new(io::stdout())), cut: Arc::default(), closed: Arc::default(), tell }
    }

    fn send(&self, frame: &Down) {
        if self.cut.load(Ordering::Relaxed) {
            return;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if frame.write(&mut *out).is_err() && !self.cut.swap(true, Ordering::Relaxed) {
            let _ended = self.tell.send(Event::Cut);
        }
    }

    fn end(&self, status: u8) {
        self.send(&Down::Ended(status));
        self.cut.store(true, Ordering::Relaxed);
    }

    /// Reports regularly that this side is there, whatever the child does. Two late reports in a row are no silence yet.
    fn beat(&self, silence: Duration) {
        let near = self.clone();
        std::thread::spawn(move || {
            // The thread ends with this process, which ends with the child.
            loop {
                near.send(&Down::Alive);
                std::thread::sleep(silence / 4);
            }
        });
    }

    fn close(&self, stream: u8) {
        if let Some(closed) = usize::from(stream).checked_sub(1).and_then(|n| self.closed.get(n)) {
            closed.store(true, Ordering::Relaxed);
        }
    }

    fn is_closed(&self, stream: u8) -> bool {
        self.closed[usize::from(stream) - 1].load(Ordering::Relaxed)
    }

    /// Passes on the child's output, and reports its end once all output is passed on.
    fn hand_on(&self, child: &mut Child, tell: Sender<Event>) {
        let (output, errors) = (child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from));
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
        let near = self.clone();
        std::thread::spawn(move || {
            near.pass(output, errors);
            let _ended = tell.send(Event::Ended(pid.and_then(wait).map_or(1, status)));
        });
    }

    /// Passes on both streams of the child until they end. What was printed before something on standard error comes before it.
    fn pass(&self, mut output: Option<OwnedFd>, mut errors: Option<OwnedFd>) {
        let mut buffer = vec![0; 64 << 10];
        while output.is_some() || errors.is_some() {
            let [_, has_errors] = ready([&output, &errors], None);
            // Looked at once more: it may have come while nothing was looked at, and before the errors.
            let [has_output, _] = ready([&output, &None], Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
            if has_output {
                self.pass_some(&mut output, 1, Down::Output, &mut buffer);
            }
            if has_errors {
                self.pass_some(&mut errors, 2, Down::Errors, &mut buffer);
            }
        }
    }

    /// Passes on what one stream of the child has: 1 or 2. A pipe that the near side has closed is dropped, and the child gets EPIPE.
    fn pass_some(&self, from: &mut Option<OwnedFd>, stream: u8, frame: fn(Vec<u8>) -> Down, buffer: &mut [u8]) {
        match from.as_ref().and_then(|pipe| some_of(pipe, buffer)) {
            Some(bytes) => self.send(&frame(bytes.to_vec())),
            None => *from = None,
        }
        if self.is_closed(stream) {
            *from = None;
        }
    }
}

/// Waits until a read of one of these does not block; a closed one never is ready.
fn ready(pipes: [&Option<OwnedFd>; 2], longest: Option<&Timespec>) -> [bool; 2] {
    let mut open: Vec<_> = pipes.iter().copied().flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN)).collect();
    // Interrupted, it is as if nothing had come.
    let _found = poll(&mut open, longest);
    let mut found = open.iter().map(|pipe| !pipe.revents().is_empty());
    pipes.map(|pipe| pipe.is_some() && found.next() == Some(true))
}

fn some_of<'a>(from: &OwnedFd, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    loop {
        match rustix::io::read(from, &mut *buffer) {
            Ok(0) => return None,
            Ok(n) => return Some(&buffer[..n]),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn wait(pid: Pid) -> Option<ExitStatus> {
    loop {
        match rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()) {
            Ok(Some((_, status))) => return Some(ExitStatus::from_raw(status.as_raw())),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// The exit status as a shell has it.
pub fn status(ended: ExitStatus) -> u8 {
    let status = ended.code().unwrap_or_else(|| 128 + ended.signal().unwrap_or(0));
    u8::try_from(status).unwrap_or(u8::MAX)
}

/// The reader of standard input.
enum Taker {
    Pipe(ChildStdin),
    Socket(UnixStream),
}

/// Passes on standard input, as fast as it is read. `None` is its end; a channel that is dropped without it is a cut.
fn feeder(near: Near, taker: Option<Taker>) -> Sender<Option<Vec<u8>>> {
    let (feed, fed) = channel::<Option<Vec<u8>>>();
    std::thread::spawn(move || {
        let mut taker = taker;
        for bytes in fed {
            let Some(bytes) = bytes else {
                if let Some(Taker::Socket(socket)) = &taker {
                    let _gone = socket.shutdown(Shutdown::Write);
                    // Stays open: closing a socket with something unread would cancel the end.
                    std::mem::forget(taker.take());
                }
                return;
            };
            let written = match &mut taker {
                Some(Taker::Pipe(pipe)) => pipe.write_all(&bytes),
                Some(Taker::Socket(socket)) => socket.write_all(&bytes),
                None => Ok(()),
            };
            if written.is_err() {
                // Nobody reads it: take the rest and drop it.
                taker = None;
            }
            near.send(&Down::Taken(u32::try_from(bytes.len()).unwrap_or(u32::MAX)));
        }
    });
    feed
}
