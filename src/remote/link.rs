//! The near side: one ssh, the request, and the streams of a verb that runs on the far side.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::frame::{Down, LIMIT, Outcome, Up, WINDOW};
use super::host::Target;
use super::install::{PLACE, VERSION};
use super::request::{Line, Request};
use super::silence::{Patience, Patient};
use super::{Error, MISSING, PROTOCOL, far};

/// How this side's ssh is started.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// The program and its first arguments.
    pub words: Vec<OsString>,
    /// Keeps from a child what a terminal sends to all processes of its group: `fs` knows how.
    pub shielding: fn(&mut Command),
    /// Shows what ssh says by itself, where that is not gathered.
    pub showing: fn(&[u8]),
}

/// Whether recant may be put where it is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Install {
    /// Where it can be done.
    Allowed,
    /// Not at all.
    Never,
}

/// What ssh says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SshSays {
    /// Is shown as it comes.
    Through,
    /// Goes with what the far side says there.
    Gathered,
}

/// A stream of the far side's verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// Takes what the far side writes. Where a stream is read no more it gives an error, which the far side's verb then gets too.
pub type Sink<'a> = dyn FnMut(Stream, &[u8]) -> io::Result<()> + 'a;

/// Standard input of the far side's verb.
pub type Input = Box<dyn Read + Send>;

/// The way to one machine.
pub struct Link<'a> {
    /// This side's ssh.
    pub ssh: &'a Ssh,
    /// The machine.
    pub target: &'a Target,
    /// Whether recant may be put there.
    pub install: Install,
    /// Where ssh's own words go.
    pub ssh_says: SshSays,
    /// How long it may be silent; `None`: for ever.
    pub timeout: Option<Duration>,
    /// Signals to hand on.
    pub signals: Option<&'a Signals>,
}

impl Link<'_> {
    /// Has the far side's recant carry out `request`, with `input` as its standard input and `sink` for what it writes. Where there is no
    /// recant of this protocol it is put there first. Nothing of `input` is read before the far side has answered.
    pub fn carry_out(&self, request: &Request, input: Option<Input>, sink: &mut Sink<'_>) -> Result<Outcome, Error> {
        let mut input = input;
        match self.once(request, &mut input, sink) {
            Err(Error::Missing { .. }) if self.install == Install::Allowed => {
                super::install::put(self)?;
                self.once(request, &mut input, sink)
            }
            ended => ended,
        }
    }

    /// Runs `request` on a terminal of the far side, which is this side's: the ends of all three streams are ssh's own.
    pub fn on_terminal(&self, request: &Request) -> Result<Outcome, Error> {
        let word = request.word()?;
        let once = || -> Result<u8, Error> {
            let mut command = self.command("-tt", &on_terminal(self.target.sudo, &word));
            let mut child = command.spawn().map_err(|source| self.no_ssh(source))?;
            let _listed = self.signals.map(|signals| signals.list(Wire::to_ssh(&child)));
            child.wait().map(far::status).map_err(|source| self.no_ssh(source))
        };
        let mut status = once()?;
        // A command may end so, too. The far side tells, on a connection where its words can be read.
        if status == MISSING && self.answers()? == Answers::Nothing {
            if self.install == Install::Never {
                return Err(Error::Missing { host: self.host() });
            }
            super::install::put(self)?;
            status = once()?;
        }
        // ssh has said why.
        if status == 255 && self.answers().is_err() {
            return Err(Error::Lost { host: self.host() });
        }
        Ok(Outcome { status, changes: None })
    }

    /// Whether there is a recant of this protocol.
    fn answers(&self) -> Result<Answers, Error> {
        let mut wire = self.open(&relay(self.target.sudo))?;
        wire.ssh_stdin = None;
        let mut nowhere = |_, _: &[u8]| Ok(());
        match wire.hello(&mut nowhere).map_err(|silent| wire.why(silent, &mut nowhere)) {
            Ok(()) => Ok(Answers::Recant),
            Err(Error::Missing { .. }) => Ok(Answers::Nothing),
            Err(error) => Err(error),
        }
    }

    fn once(&self, request: &Request, input: &mut Option<Input>, sink: &mut Sink<'_>) -> Result<Outcome, Error> {
        let mut wire = self.open(&relay(self.target.sudo))?;
        wire.by_sudo = self.target.sudo;
        let json = request.json();
        if json.len() > LIMIT {
            return Err(Error::TooLong { bytes: json.len(), most: LIMIT, over: "a connection" });
        }
        let up = Upwards::to(wire.ssh_stdin.take());
        // At once: the far side's answer is on its way meanwhile.
        up.send(Up::Request(json));
        let answered = Arc::new(AtomicBool::new(false));
        let listed = Wire {
            up: Some(up.tell.clone()),
            ssh: wire.pid(),
            answered: answered.clone(),
            patience: wire.patience.clone(),
            asked: 0,
        };
        let listed = self.signals.map(|signals| signals.list(listed));
        if let Err(silent) = wire.hello(sink) {
            // Whatever stands between here and ssh may wait for the end of what it is sent.
            drop((listed, up));
            return Err(wire.why(silent, sink));
        }
        answered.store(true, Ordering::SeqCst);
        wire.patience.answered();
        let credit = Arc::new(Credit::new(WINDOW));
        let unread = Arc::<Mutex<Option<io::Error>>>::default();
        if let Some(input) = input.take() {
            let (tell, credit) = (up.tell.clone(), credit.clone());
            let (unread, patience, ssh) = (unread.clone(), wire.patience.clone(), wire.pid());
            std::thread::spawn(move || {
                if let Err(error) = feed(input, &tell, &credit) {
                    *unread.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    // No end: what was read so far must not be taken for all. A cut is what the far side's verb ends on.
                    patience.give_up();
                    let _ended = ssh.map(|ssh| rustix::process::kill_process(ssh, Signal::TERM));
                }
            });
        }
        let outcome = self.receive(&mut wire, &up, &credit, sink);
        wire.is_told = outcome.is_ok();
        credit.close();
        drop((listed, up));
        wire.gather(sink);
        match (outcome, unread.lock().unwrap_or_else(PoisonError::into_inner).take()) {
            (Err(Error::Lost { host }), Some(source)) => Err(Error::Input { host, source }),
            (outcome, _) => outcome,
        }
    }

    fn receive(&self, wire: &mut Opened, up: &Upwards, credit: &Credit, sink: &mut Sink<'_>) -> Result<Outcome, Error> {
        let mut deliver = |stream, number, bytes: &[u8]| {
            if sink(stream, bytes).is_err() {
                up.send(Up::Closed(number));
            }
        };
        loop {
            match Down::read(&mut wire.from) {
                Ok(Some(Down::Output(bytes))) => deliver(Stream::Output, 1, &bytes),
                Ok(Some(Down::Errors(bytes))) => deliver(Stream::Errors, 2, &bytes),
                Ok(Some(Down::Taken(count))) => credit.give(count as usize),
                Ok(Some(Down::Alive)) => {}
                Ok(Some(Down::Ended(outcome))) => return Ok(outcome),
                Ok(None) | Err(_) => {
                    let host = self.host();
                    return Err(wire
                        .patience
                        .ran_out()
                        .map_or(Error::Lost { host: self.host() }, |silence| Error::Stalled { host, silence }));
                }
            }
        }
    }

    /// A connection on which the far side runs a shell's text.
    pub(super) fn open(&self, text: &str) -> Result<Opened, Error> {
        let mut command = self.command("-T", text);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Never this side's own: where ssh shares a connection, who has it keeps what it was given for as long as the far side lives, and
        // whoever reads this side's standard error to its end would wait for that.
        command.stderr(Stdio::piped());
        (self.ssh.shielding)(&mut command);
        let mut ssh = command.spawn().map_err(|source| self.no_ssh(source))?;
        let patience = Patience::new(self.timeout);
        // `spawn` fills in what was set to `Stdio::piped` above, and nothing has taken it yet.
        let stdout = ssh.stdout.take().expect("a pipe was asked for");
        let from = BufReader::with_capacity(64 << 10, Patient { stdout, patience: patience.clone(), ssh: ssh.id() });
        let shown = (self.ssh_says == SshSays::Through).then_some(self.ssh.showing);
        let said = ssh.stderr.take().map(|stderr| Said::by(stderr, shown));
        Ok(Opened {
            ssh_stdin: ssh.stdin.take(),
            from: Box::new(from),
            patience,
            said,
            ssh,
            host: self.host(),
            asked: self.signals.map(Signals::came),
            by_sudo: false,
            is_told: false,
        })
    }

    /// R1: what a user gave stands in the places of ssh's own words, and `text` is constant but for a word of letters and digits.
    fn command(&self, terminal: &str, text: &str) -> Command {
        let program = self.ssh.words.first().map_or(OsStr::new("ssh"), |word| word);
        let mut command = Command::new(program);
        command.args(self.ssh.words.iter().skip(1)).arg(terminal);
        let Target { host, user, port, .. } = self.target;
        if let Some(port) = port {
            command.arg("-p").arg(port.to_string());
        }
        if let Some(user) = user {
            command.arg("-l").arg(user);
        }
        command.arg("--").arg(host).arg(text);
        command
    }

    fn no_ssh(&self, source: io::Error) -> Error {
        Error::NoSsh { program: self.ssh.words.first().map(|word| word.display().to_string()).unwrap_or_default(), source }
    }

    /// What the host is called in messages.
    pub(super) fn host(&self) -> String {
        self.target.name.clone()
    }
}

/// What a connection met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Recant,
    Nothing,
}

/// What came in the place of a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silent {
    /// The far side's word that there is no recant of this protocol.
    Missing,
    /// The end.
    Ended,
    /// More than any login script says.
    Noisy,
}

/// The text that finds the far side's recant and becomes it: safe in sh, bash, zsh, csh and fish (no quote, `!`, backslash or newline
/// inside the one pair of quotes). The one that was put there goes before that of PATH, which is asked what it speaks: one from
/// before all this would say that it knows no such verb.
fn find(then: &str, sudo: bool) -> String {
    let sudo = if sudo { "sudo -n " } else { "" };
    format!(
        "exec sh -c 'r=$HOME/{PLACE}/{VERSION}/recant; if [ -x \"$r\" ]; then :; \
         elif r=$(command -v recant) && \"$r\" far --speaks {PROTOCOL} >/dev/null 2>&1; then :; \
         else [ -t 1 ] || echo recant-missing; exit {MISSING}; fi; exec {sudo}\"$r\" far{then}"
    )
}

fn relay(sudo: bool) -> String {
    find("'", sudo)
}

fn on_terminal(sudo: bool, word: &str) -> String {
    find(&format!(" --request \"$1\"' sh {word}"), sudo)
}

/// A connection whose far side is about to say who it is.
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
    /// The far side's recant is run by sudo.
    by_sudo: bool,
    /// The far side has said its last word: ssh, which others may share the connection of, is left to itself where it stays.
    is_told: bool,
}

impl Opened {
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.ssh.id()).unwrap_or_default())
    }

    /// Reads up to the far side's hello; what a login script wrote before it goes to standard error.
    fn hello(&mut self, sink: &mut Sink<'_>) -> Result<(), Silent> {
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

    fn why(&mut self, silent: Silent, sink: &mut Sink<'_>) -> Error {
        match silent {
            Silent::Missing => Error::Missing { host: self.host.clone() },
            Silent::Ended => self.unanswered(sink),
            Silent::Noisy => {
                self.patience.give_up();
                Error::Noise { host: self.host.clone() }
            }
        }
    }

    /// The next line, or as much of it as a line may have; empty at the end.
    pub(super) fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        let _cut = (&mut self.from).take(64 << 10).read_until(b'\n', &mut line);
        line
    }

    /// Why there was no answer.
    pub(super) fn unanswered(&mut self, sink: &mut Sink<'_>) -> Error {
        let status = self.end();
        self.gather(sink);
        if let Some(silence) = self.patience.ran_out() {
            return Error::Mute { host: self.host.clone(), silence };
        }
        let asked = self.asked.as_ref().map_or(0, |asked| asked.load(Ordering::SeqCst));
        let host = self.host.clone();
        match status {
            _ if asked != 0 => Error::Asked { host, signal: asked },
            // What sudo(8) ends with where it asks for a password, or lets nobody do it. It has said which.
            1 if self.by_sudo => Error::NoSudo { host },
            // Anything else is the far side's own: what answered was no recant of this protocol.
            255 => Error::Unreached { host, status },
            signal if signal > 128 && signal < 160 => Error::Unreached { host, status },
            _ => Error::Missing { host },
        }
    }

    /// ssh ends by itself once its input has, and the far side with it; one that is not to be waited for is told to, and then made to: it may
    /// wait for the other end of its connection, too. Its exit status.
    fn end(&mut self) -> u8 {
        self.ssh_stdin = None;
        // Only one that is there yet: its number may be another's by now.
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

    /// Hands on what ssh said, once it has ended.
    fn gather(&mut self, sink: &mut Sink<'_>) {
        self.end();
        if let Some(said) = self.said.take().map(Said::all).filter(|said| !said.is_empty()) {
            let _unread = sink(Stream::Errors, &said);
        }
    }
}

impl Drop for Opened {
    /// Waited for, so that nothing of it stays.
    fn drop(&mut self) {
        self.end();
    }
}

/// What ssh says, as it comes.
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
                    None => said.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..n]),
                }
            }
            let _unheard = end.send(());
        });
        Self { bytes, ended }
    }

    /// All that was not shown, once ssh has ended: who shares its connection may keep the stream open for longer, and says nothing on it.
    fn all(self) -> Vec<u8> {
        let _late = self.ended.recv_timeout(Duration::from_secs(1));
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What goes to the far side, in the order in which it is told, by a thread that may wait for ssh to take it.
struct Upwards {
    tell: Sender<Up>,
}

impl Upwards {
    fn to(stdin: Option<ChildStdin>) -> Self {
        let (tell, told): (Sender<Up>, Receiver<Up>) = channel();
        std::thread::spawn(move || {
            let Some(mut stdin) = stdin else { return };
            // A connection that is gone is told by its other half.
            for frame in told {
                if frame.write(&mut stdin).is_err() {
                    return;
                }
            }
        });
        Self { tell }
    }

    fn send(&self, frame: Up) {
        let _gone = self.tell.send(frame);
    }
}

/// Reads standard input as far as there is credit for it. Errors: it cannot be read.
fn feed(mut input: Input, tell: &Sender<Up>, credit: &Credit) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if !credit.take(n) || tell.send(Up::Input(buffer[..n].to_vec())).is_err() {
            return Ok(());
        }
    }
    let _gone = tell.send(Up::InputEnds);
    Ok(())
}

/// Bytes that may be sent before the far side has taken some.
struct Credit {
    left: Mutex<Option<usize>>,
    more: Condvar,
}

impl Credit {
    fn new(bytes: usize) -> Self {
        Self { left: Mutex::new(Some(bytes)), more: Condvar::new() }
    }

    fn left(&self) -> MutexGuard<'_, Option<usize>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `bytes` may be sent. False where the link has ended.
    fn take(&self, bytes: usize) -> bool {
        let enough = |left: &mut Option<usize>| left.is_some_and(|left| left < bytes);
        let mut left = self.more.wait_while(self.left(), enough).unwrap_or_else(PoisonError::into_inner);
        *left = left.map(|left| left - bytes);
        left.is_some()
    }

    fn give(&self, bytes: usize) {
        let mut left = self.left();
        *left = left.map(|left| left + bytes);
        self.more.notify_all();
    }

    fn close(&self) {
        *self.left() = None;
        self.more.notify_all();
    }
}

/// One open link, as signals see it.
struct Wire {
    /// Where a signal is sent as a frame; `None` where ssh itself gets it.
    up: Option<Sender<Up>>,
    ssh: Option<Pid>,
    answered: Arc<AtomicBool>,
    patience: Arc<Patience>,
    /// How often it was asked to end.
    asked: u32,
}

impl Wire {
    fn to_ssh(child: &Child) -> Self {
        let ssh = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default());
        Self { up: None, ssh, answered: Arc::default(), patience: Patience::new(None), asked: 0 }
    }

    fn signal(&mut self, number: u8) {
        self.asked += 1;
        match &self.up {
            // Who asks for the third time does not want to wait for the far side any longer.
            Some(up) if self.answered.load(Ordering::SeqCst) && self.asked < 3 => {
                let _gone = up.send(Up::Signal(number));
            }
            _ => {
                self.patience.give_up();
                let _ended = self.ssh.map(|ssh| rustix::process::kill_process(ssh, Signal::TERM));
            }
        }
    }
}

/// Hands signals of this process on to every link that is open.
pub struct Signals {
    wires: Arc<Mutex<Vec<Wire>>>,
    came: Arc<AtomicU8>,
}

impl Signals {
    /// Reads signals, a byte each, from `heard`.
    pub fn from(mut heard: File) -> Self {
        let signals = Self { wires: Arc::default(), came: Arc::default() };
        let (wires, came) = (signals.wires.clone(), signals.came.clone());
        std::thread::spawn(move || {
            let mut number = [0];
            while heard.read_exact(&mut number).is_ok() {
                let _first = came.compare_exchange(0, number[0], Ordering::SeqCst, Ordering::SeqCst);
                wires.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|wire| wire.signal(number[0]));
            }
        });
        signals
    }

    /// The number of the first that came, 0 for none.
    pub fn came(&self) -> Arc<AtomicU8> {
        self.came.clone()
    }

    fn list(&self, wire: Wire) -> Listed {
        let ssh = wire.ssh;
        self.wires.lock().unwrap_or_else(PoisonError::into_inner).push(wire);
        Listed { wires: self.wires.clone(), ssh }
    }
}

/// A link gets signals as long as this lives: its ssh's number may be another process's soon after.
struct Listed {
    wires: Arc<Mutex<Vec<Wire>>>,
    ssh: Option<Pid>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.wires.lock().unwrap_or_else(PoisonError::into_inner).retain(|wire| wire.ssh != self.ssh);
    }
}
