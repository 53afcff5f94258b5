//! Brings all machines to their gates, sends the session where it is missing, and tells them to go on.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::act::{Act, Machines};
use super::machine::{Finished, Row, gather};
use crate::cli::Call;
use crate::cli::problem::Problem;
use crate::cli::spool::Spool;
use crate::cli::which::Want;
use crate::engine::conflict;
use crate::error::At;
use crate::fs::Fs;
use crate::moving;
use crate::remote::link::{Link, SshSays};
use crate::remote::request::Request;
use crate::remote::streams::Input;
use crate::session::header::Status;
use crate::session::id::Id;

/// The interval at which a waiting machine is told to wait on: a third of the silence that it allows.
const PATIENCE: Duration = Duration::from_secs(20);

/// A message of a machine's thread.
enum Event {
    Sent(usize),
    Ready(usize, AtGate),
    Ended(usize, Finished),
}

/// A machine's report at its gate.
#[derive(Clone, Copy)]
struct AtGate {
    /// A part of the session is on its tree already.
    partial: bool,
}

impl Machines<'_> {
    /// The request for the verb itself, which waits at its gate. A session that was just sent is this side's.
    fn gated(&self, host: usize, is_sent: bool) -> Request {
        let Act { verb, key, called, words, .. } = self.act;
        let key = called.as_ref().filter(|_| !is_sent).unwrap_or(key);
        let fixed = [verb.word(), "--gate", "--json", key].map(OsString::from);
        let meant = self.act.meant().filter(|_| !is_sent);
        self.request(host, fixed.into_iter().chain(meant).chain(words.iter().cloned()), true)
    }

    /// Brings all machines to their gates, sends the session where it is missing, and sends `go` once all are ready.
    pub fn at_gate(&self, session: Option<&Id>) -> Result<Vec<Row>, Problem> {
        let export = Export { call: self.call, session, stream: std::cell::OnceCell::new() };
        let (tell, told) = channel();
        let mut line = Line::of(self.targets.len());
        std::thread::scope(|scope| {
            let mut said = Instant::now();
            loop {
                if line.has_failed() {
                    line.stop();
                }
                while let Some(host) = line.next(self.ways.forks) {
                    line.says.push(self.start(scope, host, None, &tell));
                }
                if line.is_over() {
                    return Ok(std::mem::take(&mut line.rows));
                }
                line.give_the_word();
                // Waiting machines hear of it however many messages the others send.
                if said.elapsed() >= patience() {
                    line.tell_who_waits();
                    said = Instant::now();
                }
                match told.recv_timeout(patience().saturating_sub(said.elapsed())) {
                    Ok(Event::Sent(host)) => line.rows[host].sent = true,
                    Ok(Event::Ready(host, at_gate)) => {
                        self.call.out.detail(format_args!("{}: ready", self.targets[host].name));
                        line.ready(host, at_gate);
                    }
                    Ok(Event::Ended(host, ended)) if session.is_some() && line.lacks_session(host, &ended) => {
                        // If the session cannot be sent, nobody need wait.
                        let file = export.open().inspect_err(|_| line.tell_all(b"stop\n"))?;
                        line.says[host] = self.start(scope, host, Some(file), &tell);
                    }
                    Ok(Event::Ended(host, ended)) => line.ended(host, ended),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                }
            }
        })
    }

    /// Begins with one machine, in a thread of its own. Returns the channel to its gate.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        host: usize,
        sent: Option<io::BufReader<File>>,
        tell: &Sender<Event>,
    ) -> Sender<&'static [u8]> {
        let (say, hear) = channel();
        let (link, tell) = (self.ways.link(&self.targets[host], SshSays::Gathered), tell.clone());
        let (gated, import) =
            (self.gated(host, sent.is_some()), self.request(host, ["session", "import", "--json"].map(OsString::from), true));
        let (came, fs) = (self.ways.signals.came(), &self.call.fs);
        scope.spawn(move || match came.load(Ordering::SeqCst) {
            0 => one(fs, host, &link, sent.map(|file| (import, file)), &gated, hear, &tell),
            signal => tell_one(&tell, Event::Ended(host, Finished::asked(&link.target.name, signal))),
        });
        say
    }
}

#[cfg(not(feature = "crash-points"))]
fn patience() -> Duration {
    PATIENCE
}

/// A third of the silence that a test asks for.
#[cfg(feature = "crash-points")]
fn patience() -> Duration {
    let ms: Option<u64> = std::env::var("RECANT_GATE_SILENCE_MS").ok().and_then(|ms| ms.parse().ok());
    ms.map_or(PATIENCE, |ms| Duration::from_millis(ms / 3))
}

/// The machines in their order. A limited number at a time comes to their gates.
struct Line {
    rows: Vec<Row>,
    /// The first machine that was not asked yet.
    next: usize,
    /// The number of machines that were asked, and are neither ready nor at an end.
    working: usize,
    /// The channel to each machine that was asked.
    says: Vec<Sender<&'static [u8]>>,
}

impl Line {
    fn of(machines: usize) -> Self {
        Self { rows: (0..machines).map(|_| Row::default()).collect(), next: 0, working: 0, says: Vec::new() }
    }

    /// The next machine to ask, if there is one and fewer than `at_once` are at work.
    fn next(&mut self, at_once: usize) -> Option<usize> {
        let is_next = self.next < self.rows.len() && self.working < at_once;
        is_next.then(|| {
            (self.next, self.working) = (self.next + 1, self.working + 1);
            self.next - 1
        })
    }

    fn has_failed(&self) -> bool {
        self.rows.iter().any(|row| row.ended.as_ref().is_some_and(|ended| !ended.is_done()))
    }

    fn is_over(&self) -> bool {
        self.rows.iter().all(|row| row.passed_over || row.ended.is_some())
    }

    /// Tells all to stop. One that is not ready yet reads it when it is; those not asked yet are passed over.
    fn stop(&mut self) {
        self.tell_all(b"stop\n");
        self.rows[self.next..].iter_mut().for_each(|row| row.passed_over = true);
        self.next = self.rows.len();
    }

    /// Sends `go` to all once each is ready.
    fn give_the_word(&mut self) {
        let undecided = self.rows.iter().any(|row| row.ready && row.ended.is_none() && !row.told_to_go);
        if undecided && !self.has_failed() && self.rows.iter().all(|row| row.ready || row.ended.is_some()) {
            for (say, row) in self.says.iter().zip(&mut self.rows).filter(|(_, row)| row.ended.is_none()) {
                row.told_to_go = say.send(b"go\n").is_ok();
            }
        }
    }

    fn tell_who_waits(&self) {
        let waiting = self.says.iter().zip(&self.rows).filter(|(_, row)| !row.told_to_go && row.ended.is_none());
        waiting.for_each(|(say, _)| tell_one(say, &b"wait\n"[..]));
    }

    fn tell_all(&self, words: &'static [u8]) {
        self.says.iter().for_each(|say| tell_one(say, words));
    }

    fn ready(&mut self, host: usize, AtGate { partial }: AtGate) {
        self.rows[host] = Row { ready: true, partial, ..std::mem::take(&mut self.rows[host]) };
        self.working -= 1;
    }

    /// True if it ended because it lacks the session.
    fn lacks_session(&self, host: usize, ended: &Finished) -> bool {
        ended.lacks_session() && !self.rows[host].sent
    }

    fn ended(&mut self, host: usize, ended: Finished) {
        self.working -= usize::from(!self.rows[host].ready);
        self.rows[host].ended = Some(ended);
    }
}

/// Sends to a machine. One that has ended no longer reads.
fn tell_one<T>(say: &Sender<T>, words: T) {
    let _gone = say.send(words);
}

/// The session as a stream, made when it is first needed.
struct Export<'a> {
    call: &'a Call,
    session: Option<&'a Id>,
    stream: std::cell::OnceCell<Spool>,
}

impl Export<'_> {
    /// Opens the stream at its beginning, for one machine.
    fn open(&self) -> Result<io::BufReader<File>, Problem> {
        if self.stream.get().is_none() {
            // It was empty just now, and there is only this thread.
            let _first = self.stream.set(self.make()?);
        }
        let stream = self.stream.get().ok_or_else(|| Problem::refused("there is no stream"))?;
        Ok(stream.open().at("read once more", "the export")?)
    }

    fn make(&self) -> Result<Spool, Problem> {
        let id = self.session.map(Id::to_string).unwrap_or_default();
        let (_, session) = self.call.locked(&id, Want::Look)?;
        Spool::of(&self.call.fs, |to| match moving::export(&session, moving::With::Changes, to)? {
            moving::Exported::Whole => Ok(()),
            moving::Exported::Conflicts(conflicts) => Err(conflict::refused(conflicts).into()),
        })
    }
}

/// The standard input of a machine at its gate. It has no end while this side could still send something.
struct Heard {
    from: Receiver<&'static [u8]>,
    rest: &'static [u8],
}

impl Read for Heard {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.from.recv() {
                Ok(words) => self.rest = words,
                Err(_) => return Ok(0),
            }
        }
        let count = self.rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest = &self.rest[count..];
        Ok(count)
    }
}

/// Carries out the verb on one machine, from sending the session to the end.
fn one(
    fs: &Fs,
    host: usize,
    link: &Link<'_>,
    send: Option<(Request, io::BufReader<File>)>,
    gated: &Request,
    hear: Receiver<&'static [u8]>,
    tell: &Sender<Event>,
) {
    if let Some((import, file)) = send {
        let input = Box::new(file) as Input;
        let ended = gather(fs, link, &import, Some(input), &mut |_| ());
        // The commit reports conflicts: --force may be asked for.
        if !matches!(ended.status, Ok(0 | 3)) {
            let _gone = tell.send(Event::Ended(host, ended));
            return;
        }
        let _gone = tell.send(Event::Sent(host));
    }
    let mut ready = false;
    let input = Box::new(Heard { from: hear, rest: b"" }) as Input;
    let ended = gather(fs, link, gated, Some(input), &mut |out| {
        if !ready && let Some(at_gate) = at_gate(out) {
            ready = true;
            let _gone = tell.send(Event::Ready(host, at_gate));
        }
    });
    let _gone = tell.send(Event::Ended(host, ended));
}

/// Parses a machine's first line, once it is whole, as its report at the gate.
fn at_gate(out: &[u8]) -> Option<AtGate> {
    let end = out.iter().position(|b| *b == b'\n')?;
    let line: Value = serde_json::from_slice(&out[..end]).ok()?;
    (line["gate"] == "ready").then(|| AtGate { partial: line["status"] == Status::Partial.word() })
}
