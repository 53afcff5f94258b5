//! commit, rollback and redo on several machines as one act: made ready on all of them, done where all can, taken back where one fails.
//!
//! Each machine carries out the verb with `--gate` ([`super::gate`]): it says when it is ready, and waits for the word. What is true of a
//! machine at the end is told by itself, or, where it is lost, by its own journal: it is asked once more, and else named.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::args::{Back, Cli, Commit, OnLimit, Verb};
use super::problem::Problem;
use super::remote::Ways;
use super::spool::Spool;
use super::{Call, Ended, text};
use crate::engine::job;
use crate::error::{At, Kind};
use crate::moving;
use crate::remote::Error;
use crate::remote::frame::Outcome;
use crate::remote::host::Target;
use crate::remote::link::{Input, Link, SshSays, Stream};
use crate::remote::request::{Request, Word};
use crate::session::header::Status;
use crate::session::id::Id;

/// How often a machine that waits is told to wait on: a third of the silence that it bears.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a machine that was lost may take to end what it had begun.
const SETTLING: Duration = Duration::from_secs(15);

/// The verb of a call, if it is one that is done on all machines or on none.
pub fn concerns(verb: &Verb) -> bool {
    match verb {
        Verb::Commit(args) => !args.what.dry_run && !args.what.gate,
        Verb::Rollback(args) | Verb::Redo(args) => !args.what.dry_run && !args.what.gate,
        _ => false,
    }
}

/// Has all `targets` carry out the call's commit, rollback or redo. `blank` is a request without words for each.
pub fn carry_out(call: &Call, cli: &Cli, ways: &Ways, targets: &[Target], blank: &[Request]) -> Result<Ended, Problem> {
    let (verb, key) = match &cli.verb {
        Verb::Commit(args) => (job::Verb::Commit, &args.what.id),
        Verb::Rollback(args) => (job::Verb::Rollback, &args.what.id),
        Verb::Redo(args) => (job::Verb::Redo, &args.what.id),
        _ => return Err(Problem::new(Kind::Usage, "only commit, rollback and redo are done on several machines as one")),
    };
    let here = local(call, key, verb)?;
    if here.is_none() && key == "last" {
        // Each machine has a last one of its own.
        return Err(Problem::refused("'last' of this machine is meant, and there is no session here")
            .remedy(format!("name it: recant -H {} list", targets[0].name)));
    }
    let act = Act {
        verb,
        key: here.as_ref().map_or_else(|| key.clone(), |(id, _)| id.to_string()),
        words: words(cli),
        store: cli.global.store.as_ref().map(|store| store.as_os_str().to_owned()),
    };
    let stream = here.filter(|(_, pending)| *pending).map(|(id, _)| Sendable { id });
    let hosts = Hosts { call, ways, targets, blank, act: &act };
    let mut rows = hosts.at_gate(stream.as_ref())?;
    hosts.take_back(&mut rows);
    hosts.tidy(&mut rows);
    hosts.say(&rows)
}

/// The session of this side, where it is here, and whether it could be sent.
fn local(call: &Call, key: &str, verb: job::Verb) -> Result<Option<(Id, bool)>, Problem> {
    let Some(store) = call.store()? else { return Ok(None) };
    let id = match store.find(key) {
        Ok(id) => id,
        // The machines know it, or say that they do not.
        Err(crate::session::Error::Unknown { .. } | crate::session::Error::NotNow { .. }) if key != "last" => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let pending = matches!(store.session(&id)?.header.status(), Status::Pending | Status::RolledBack);
    Ok(Some((id, pending && verb == job::Verb::Commit)))
}

/// A session that can be sent.
struct Sendable {
    id: Id,
}

/// What each machine is asked.
struct Act {
    verb: job::Verb,
    /// The session, by its whole id where this side knows it.
    key: String,
    /// What stands behind it.
    words: Vec<OsString>,
    store: Option<OsString>,
}

/// The options and paths of the call, as each machine gets them.
fn words(cli: &Cli) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut flag = |on: bool, word: &str| words.extend(on.then(|| OsString::from(word)));
    let paths = match &cli.verb {
        Verb::Commit(Commit { what, force, on_limit, accept_unsynced, strict, confirm_within, .. }) => {
            flag(*force, "--force");
            flag(*accept_unsynced, "--accept-unsynced");
            flag(*strict, "--strict");
            let policy = on_limit.map(|policy| match policy {
                OnLimit::Full => "--on-limit=full",
                OnLimit::Partial => "--on-limit=partial",
                OnLimit::Refuse => "--on-limit=refuse",
            });
            flag(policy.is_some(), policy.unwrap_or_default());
            let within = confirm_within.map(|seconds| format!("--confirm-within={seconds}s"));
            flag(within.is_some(), within.as_deref().unwrap_or_default());
            &what.paths
        }
        Verb::Rollback(Back { what, force, .. }) | Verb::Redo(Back { what, force, .. }) => {
            flag(*force, "--force");
            &what.paths
        }
        _ => return words,
    };
    words.push("--".into());
    words.extend(paths.iter().map(OsString::from));
    words
}

/// How far a machine is, and what it said.
#[derive(Default)]
struct Row {
    /// It said that it is ready.
    ready: bool,
    /// A part of the session was on its tree already.
    partial: bool,
    /// It was told to go on.
    told_to_go: bool,
    /// The session was sent to it.
    sent: bool,
    ended: Option<Finished>,
    /// What became of it after all.
    result: Option<Fate>,
}

impl Row {
    /// What takes back this call's own work and nothing that was done before it: no path for all of the session, else the paths that the
    /// machine named. `None` where that cannot be told.
    fn own_paths(&self) -> Option<Vec<OsString>> {
        if !self.partial {
            return Some(Vec::new());
        }
        let report = self.ended.as_ref().filter(|ended| ended.is_done())?.json();
        let path = |row: &Value| {
            // What lies in such a folder may have been done before.
            let whole = row["done"] != "metadata" || row["kind"] != "folder";
            whole.then(|| serde_json::from_value::<Word>(row["path"].clone()).ok()?.to_os()).flatten()
        };
        report["paths"].as_array().filter(|rows| !rows.is_empty())?.iter().map(path).collect()
    }
}

/// The end of a verb on a machine.
struct Finished {
    status: Result<u8, Error>,
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Finished {
    fn of(ended: Result<Outcome, Error>, out: Vec<u8>, err: Vec<u8>) -> Self {
        Self { status: ended.map(|outcome| outcome.status), out, err }
    }

    /// Done, if with something named that was left out.
    fn is_done(&self) -> bool {
        matches!(self.status, Ok(0 | 4))
    }

    /// The last document of standard output, or the last object of standard error.
    fn json(&self) -> Value {
        let last = |bytes: &[u8]| bytes.split(|b| *b == b'\n').rev().find_map(|line| serde_json::from_slice::<Value>(line).ok());
        let first = if self.is_done() { last(&self.out) } else { last(&self.err) };
        first.unwrap_or(Value::Null)
    }

    /// Whether the verb may have been done all the same: lost, killed, stuck.
    fn is_open(&self) -> bool {
        self.status.as_ref().map_or(true, |status| *status == 7 || *status >= 128)
    }

    fn lacks_session(&self) -> bool {
        let json = self.json();
        matches!(self.status, Ok(1)) && json["message"].as_str().is_some_and(|message| message.starts_with("no session "))
    }

    /// Why it failed, in a line.
    fn why(&self) -> String {
        match (&self.status, &self.json()["message"]) {
            (Err(error), _) => error.to_string(),
            (_, Value::String(message)) => message.clone(),
            (Ok(status), _) => {
                let said = String::from_utf8_lossy(&self.err);
                let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                format!("it ended with {status}: {last}")
            }
        }
    }
}

/// What is true of a machine at the end.
enum Fate {
    /// The verb is done there.
    Done,
    /// It was done, and is taken back.
    TakenBack,
    /// It was ready, and was told to stop: nothing was changed.
    Stopped,
    /// It could not be done: nothing was changed, or it was undone.
    Failed,
    /// It cannot be reached: nothing was done there, as it was not told to go.
    Untouched,
    /// It cannot be reached, and may have done it.
    Unknown(String),
}

/// A message of a machine's thread.
enum Event {
    Sent(usize),
    Ready(usize, AtGate),
    Ended(usize, Finished),
}

/// How what this call did on a machine, and nothing else of the session, goes off its tree again.
struct Undoing<'a> {
    link: Link<'a>,
    /// It may not be done there at all.
    was_lost: bool,
    /// `None` where what it did cannot be told from what was there before.
    request: Option<Request>,
    /// How the session stands there.
    show: Request,
    /// How it stands where nothing was done.
    off: &'static [Status],
}

impl Undoing<'_> {
    fn fate(&self) -> Fate {
        let Some(request) = &self.request else {
            let why = "a part of the session was on its tree before, so that it is not taken back by itself";
            return Fate::Unknown(if self.was_lost { why.into() } else { format!("it is done there, and {why}") });
        };
        let ended = settled(&self.link, request);
        let nothing = || ended.json()["paths"].as_array().is_some_and(Vec::is_empty);
        match &ended.status {
            // It was never done there.
            Ok(0) if self.was_lost && nothing() => Fate::Failed,
            Ok(0) => Fate::TakenBack,
            Ok(1) if self.was_lost && self.is_off() => Fate::Failed,
            _ => Fate::Unknown(ended.why()),
        }
    }

    /// Whether the machine says by itself that nothing was done: a refusal alone has many reasons.
    fn is_off(&self) -> bool {
        let ended = settled(&self.link, &self.show);
        let json = ended.json();
        let status = json["session"]["status"].as_str().filter(|_| ended.is_done());
        status.is_some_and(|status| self.off.iter().any(|off| off.word() == status))
    }
}

/// What a machine says at its gate.
#[derive(Clone, Copy)]
struct AtGate {
    /// A part of the session is on its tree already.
    partial: bool,
}

/// All machines of the call.
struct Hosts<'a> {
    call: &'a Call,
    ways: &'a Ways,
    targets: &'a [Target],
    blank: &'a [Request],
    act: &'a Act,
}

impl Hosts<'_> {
    fn request(&self, host: usize, words: impl IntoIterator<Item = OsString>, input: bool) -> Request {
        let store = self.act.store.iter().flat_map(|store| [OsString::from("--store"), store.clone()]);
        let argv = store.chain(words).map(|word| Word::from(word.as_os_str())).collect();
        Request { argv, input, color: Vec::new(), terminals: Vec::new(), columns: None, ..self.blank[host].clone() }
    }

    /// The verb itself, waiting at its gate.
    fn gated(&self, host: usize) -> Request {
        let Act { verb, key, words, .. } = self.act;
        let fixed = [verb.word(), "--gate", "--json", key].map(OsString::from);
        self.request(host, fixed.into_iter().chain(words.iter().cloned()), true)
    }

    /// Brings all machines to their gates, sends the session where it is missing, and gives the word: `go` where all are ready.
    fn at_gate(&self, session: Option<&Sendable>) -> Result<Vec<Row>, Problem> {
        let export = Export { call: self.call, session, stream: std::cell::OnceCell::new() };
        let mut rows: Vec<Row> = self.targets.iter().map(|_| Row::default()).collect();
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let start = |host: usize, sent: Option<io::BufReader<File>>| {
                let (say, hear) = channel();
                let (link, tell) = (self.ways.link(&self.targets[host], SshSays::Gathered), tell.clone());
                let (gated, import) = (self.gated(host), self.request(host, ["session", "import"].map(OsString::from), true));
                scope.spawn(move || one(host, &link, sent.map(|file| (import, file)), &gated, hear, &tell));
                say
            };
            let mut says: Vec<Sender<&'static [u8]>> = (0..self.targets.len()).map(|host| start(host, None)).collect();
            let mut said = Instant::now();
            loop {
                let settled = |row: &Row| row.ready || row.ended.is_some();
                if rows.iter().all(|row| row.ended.is_some()) {
                    return Ok(rows);
                }
                let failed = rows.iter().any(|row| row.ended.as_ref().is_some_and(|ended| !ended.is_done()));
                let undecided = rows.iter().any(|row| row.ready && row.ended.is_none() && !row.told_to_go);
                if failed {
                    // Who is not ready yet reads it when it is.
                    all(&says, b"stop\n");
                } else if undecided && rows.iter().all(settled) {
                    for (say, row) in says.iter().zip(&mut rows).filter(|(_, row)| row.ended.is_none()) {
                        row.told_to_go = say.send(b"go\n").is_ok();
                    }
                }
                // However much the others have to say: who waits hears of it.
                if said.elapsed() >= patience() {
                    let waiting = says.iter().zip(&rows).filter(|(_, row)| !row.told_to_go && row.ended.is_none());
                    waiting.for_each(|(say, _)| tell_one(say, b"wait\n"));
                    said = Instant::now();
                }
                match told.recv_timeout(patience().saturating_sub(said.elapsed())) {
                    Ok(Event::Sent(host)) => rows[host].sent = true,
                    Ok(Event::Ready(host, AtGate { partial })) => {
                        self.call.out.detail(format_args!("{}: ready", self.targets[host].name));
                        rows[host] = Row { ready: true, partial, ..std::mem::take(&mut rows[host]) };
                    }
                    Ok(Event::Ended(host, ended)) if ended.lacks_session() && !rows[host].sent && session.is_some() => {
                        match export.open() {
                            Ok(file) => says[host] = start(host, Some(file)),
                            Err(problem) => {
                                all(&says, b"stop\n");
                                return Err(problem);
                            }
                        }
                    }
                    Ok(Event::Ended(host, ended)) => rows[host].ended = Some(ended),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
                }
            }
        })
    }

    /// Tells what became of each machine; where one failed after all were told to go, what is done on the others is taken back.
    fn take_back(&self, rows: &mut [Row]) {
        let failed = rows.iter().any(|row| row.ended.as_ref().is_none_or(|ended| !ended.is_done()));
        for row in rows.iter_mut() {
            row.result = Some(match &row.ended {
                Some(ended) if ended.is_done() => Fate::Done,
                Some(ended) if row.told_to_go && ended.is_open() => Fate::Unknown(String::new()),
                Some(Finished { status: Err(_), .. }) => Fate::Untouched,
                Some(_) if row.ready && !row.told_to_go => Fate::Stopped,
                _ => Fate::Failed,
            });
        }
        if !failed {
            return;
        }
        std::thread::scope(|scope| {
            let mut taking = Vec::new();
            for (host, row) in rows.iter().enumerate() {
                // Who had nothing to do has nothing to take back.
                if row.ready && matches!(row.result, Some(Fate::Done | Fate::Unknown(_))) {
                    let back = self.back(host, row);
                    taking.push((host, scope.spawn(move || back.fate())));
                }
            }
            let fates: Vec<_> = taking.into_iter().map(|(host, thread)| (host, thread.join())).collect();
            for (host, fate) in fates {
                rows[host].result = fate.ok().or(rows[host].result.take());
            }
        });
    }

    fn back(&self, host: usize, row: &Row) -> Undoing<'_> {
        let Act { verb, key, .. } = self.act;
        let (inverse, off): (_, &[_]) = match verb {
            job::Verb::Rollback => (job::Verb::Redo, &[Status::Committed]),
            _ => (job::Verb::Rollback, &[Status::Pending, Status::RolledBack]),
        };
        let words = [inverse.word(), "--json", key, "--"].map(OsString::from);
        Undoing {
            link: self.ways.link(&self.targets[host], SshSays::Gathered),
            was_lost: matches!(row.result, Some(Fate::Unknown(_))),
            request: row.own_paths().map(|paths| self.request(host, words.into_iter().chain(paths), false)),
            show: self.request(host, ["show", "--json", key].map(OsString::from), false),
            off,
        }
    }

    /// What was sent for this alone goes again where nothing came of it, or is named.
    fn tidy(&self, rows: &mut [Row]) {
        let of_no_use = |row: &Row| row.sent && matches!(row.result, Some(Fate::Stopped | Fate::Failed));
        let hosts = || (0..rows.len()).filter(|host| of_no_use(&rows[*host]));
        let ends: Vec<bool> = std::thread::scope(|scope| {
            let prune = |host| {
                let link = self.ways.link(&self.targets[host], SshSays::Gathered);
                let prune = self.request(host, ["session", "prune", &self.act.key, "--json"].map(OsString::from), false);
                scope.spawn(move || matches!(settled(&link, &prune).status, Ok(0)))
            };
            let pruning: Vec<_> = hosts().map(prune).collect();
            pruning.into_iter().map(|one| one.join().unwrap_or(false)).collect()
        });
        for (host, _) in hosts().zip(ends).filter(|(_, gone)| !gone) {
            let (name, key) = (&self.targets[host].name, &self.act.key);
            self.call.out.warn(format_args!(
                "{name}: session {key}, which was sent for this, stays there, pending: recant -H {name} session prune {key}"
            ));
        }
    }

    fn say(&self, rows: &[Row]) -> Result<Ended, Problem> {
        let (out, verb) = (&self.call.out, self.act.verb);
        let width = self.targets.iter().map(|target| target.name.len()).max().unwrap_or(0);
        let mut worst = 0;
        for (target, row) in self.targets.iter().zip(rows) {
            let (exit, result, why) = told(row, verb);
            worst = worst.max(exit);
            if out.is_text() {
                let why = if why.is_empty() { why } else { format!("  {why}") };
                out.line(format_args!("{:<width$}  {result}{why}", target.name));
            } else {
                let report = row.ended.as_ref().map_or(Value::Null, Finished::json);
                out.document(&Told { host: &target.name, exit, session: &self.act.key, result, why: &why, report });
            }
        }
        if out.is_text() {
            let done = rows.iter().filter(|row| matches!(row.result, Some(Fate::Done))).count() as u64;
            let hosts = text::count(rows.len() as u64, "host");
            out.note(format_args!("session {}: {} on {done} of {hosts}", self.act.key, verb.past()));
        }
        Ok(if worst == 0 { Ended::Done } else { Ended::Command(worst) })
    }
}

/// `{"schema":1,"host":…,"exit":n,"session":…,"result":…,"why":…,"report":{…}}`, a line a host.
#[derive(Serialize)]
struct Told<'a> {
    host: &'a str,
    exit: u8,
    session: &'a str,
    result: &'a str,
    why: &'a str,
    report: Value,
}

/// Exit status, word and reason for a machine.
fn told(row: &Row, verb: job::Verb) -> (u8, &'static str, String) {
    let ended =
        |or: u8| row.ended.as_ref().and_then(|ended| ended.status.as_ref().ok().copied()).filter(|s| *s != 0).unwrap_or(or);
    let why = || row.ended.as_ref().map_or(String::new(), Finished::why);
    match &row.result {
        Some(Fate::Done) => {
            let report = row.ended.as_ref().map_or(Value::Null, Finished::json);
            let paths = report["paths"].as_array().map_or(0, Vec::len) as u64;
            let left = report["left"].as_array().map_or(0, Vec::len);
            let left = if left == 0 { String::new() } else { format!(", {left} left out") };
            let word = if paths == 0 { "nothing to do" } else { verb.past() };
            let count = if paths == 0 { String::new() } else { text::count(paths, "path") };
            (
                row.ended.as_ref().and_then(|ended| ended.status.as_ref().ok().copied()).unwrap_or(0),
                word,
                format!("{count}{left}"),
            )
        }
        Some(Fate::TakenBack) => (1, "taken back", "it was done, and another host failed".into()),
        Some(Fate::Stopped) => (1, "not begun", "it was ready, and another host was not: nothing was changed".into()),
        Some(Fate::Failed) => (ended(1), "failed", why()),
        Some(Fate::Untouched) if !row.ready => (1, "failed", why()),
        Some(Fate::Untouched) => (
            1,
            "lost",
            format!("{}; it was not told to go on: nothing is done there, and what was made ready goes by itself", why()),
        ),
        Some(Fate::Unknown(more)) => {
            let more = if more.is_empty() { why() } else { more.clone() };
            (ended(1), "unknown", format!("{more}; recant -H HOST status tells what was done"))
        }
        None => (1, "unknown", why()),
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

/// Who has ended hears nothing any more.
fn tell_one(say: &Sender<&'static [u8]>, words: &'static [u8]) {
    let _gone = say.send(words);
}

fn all(says: &[Sender<&'static [u8]>], words: &'static [u8]) {
    says.iter().for_each(|say| tell_one(say, words));
}

/// The session as one stream, made once it is asked for.
struct Export<'a> {
    call: &'a Call,
    session: Option<&'a Sendable>,
    stream: std::cell::OnceCell<Spool>,
}

impl Export<'_> {
    /// The stream from its beginning, for one machine.
    fn open(&self) -> Result<io::BufReader<File>, Problem> {
        if self.stream.get().is_none() {
            // It was not there a line above, and this is one thread.
            let _first = self.stream.set(self.make()?);
        }
        let stream = self.stream.get().ok_or_else(|| Problem::refused("there is no stream"))?;
        Ok(stream.open().at("read once more", "the export")?)
    }

    fn make(&self) -> Result<Spool, Problem> {
        let id = self.session.map(|session| session.id.to_string()).unwrap_or_default();
        let (store, session) = self.call.locked(&id)?;
        Spool::of(self.call, store, |to| Ok(moving::export(&session, moving::With::Changes, to)?))
    }
}

/// What is said at a machine's gate, as its standard input. Its end is not told as long as somebody could still say something.
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

/// One machine, from the sending of the session to the end of the verb.
fn one(
    host: usize,
    link: &Link<'_>,
    send: Option<(Request, io::BufReader<File>)>,
    gated: &Request,
    hear: Receiver<&'static [u8]>,
    tell: &Sender<Event>,
) {
    if let Some((import, file)) = send {
        let input = Box::new(file) as Input;
        let ended = gather(link, &import, Some(input), &mut |_| ());
        // Conflicts are the commit's to tell: --force may be asked for.
        if !matches!(ended.status, Ok(0 | 3)) {
            let _gone = tell.send(Event::Ended(host, ended));
            return;
        }
        let _gone = tell.send(Event::Sent(host));
    }
    let mut ready = false;
    let input = Box::new(Heard { from: hear, rest: b"" }) as Input;
    let ended = gather(link, gated, Some(input), &mut |out| {
        if !ready && let Some(at_gate) = at_gate(out) {
            ready = true;
            let _gone = tell.send(Event::Ready(host, at_gate));
        }
    });
    let _gone = tell.send(Event::Ended(host, ended));
}

/// What a machine's first line says of its gate, once it is whole.
fn at_gate(out: &[u8]) -> Option<AtGate> {
    let end = out.iter().position(|b| *b == b'\n')?;
    let line: Value = serde_json::from_slice(&out[..end]).ok()?;
    (line["gate"] == "ready").then(|| AtGate { partial: line["status"] == Status::Partial.word() })
}

/// Carries a request out, and keeps what is said; `look` sees standard output as it grows.
fn gather(link: &Link<'_>, request: &Request, input: Option<Input>, look: &mut dyn FnMut(&[u8])) -> Finished {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = link.carry_out(request, input, &mut |stream, bytes| {
        match stream {
            Stream::Output => {
                out.extend_from_slice(bytes);
                look(&out);
            }
            Stream::Errors => err.extend_from_slice(bytes),
        }
        Ok(())
    });
    Finished::of(ended, out, err)
}

/// The same for a machine that may still be at work: it is asked again until it is not.
fn settled(link: &Link<'_>, request: &Request) -> Finished {
    let start = Instant::now();
    loop {
        let ended = gather(link, request, None, &mut |_| ());
        if !matches!(ended.status, Ok(6)) || start.elapsed() > SETTLING {
            return ended;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
