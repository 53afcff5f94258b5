//! `-H` with several machines: each carries out the verb, some at a time; what each says is a block, in the order of the list, and a table
//! at the end tells how it went.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use anstyle::Style;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::{Value, json};

use super::ways::{Ways, takes_content};
use crate::cli::args::{CheckpointVerb, Cli, SessionVerb, SnapshotVerb, Verb};
use crate::cli::problem::Problem;
use crate::cli::spool::Spool;
use crate::cli::text::{self, Side};
use crate::cli::{Call, Effects, Ended, effects};
use crate::error::At;
use crate::fs::interrupt::is_status;
use crate::fs::path::Shown;
use crate::remote::Error;
use crate::remote::frame::Outcome;
use crate::remote::host::Target;
use crate::remote::link::{Input, SshSays, Stream};
use crate::remote::request::Request;

/// What a machine said, and how it ended.
pub struct Answer {
    output: Vec<u8>,
    errors: Vec<u8>,
    ended: Result<Outcome, Error>,
}

/// Has all of them carry out the call.
pub fn carry_out(
    call: &Call,
    ways: &Ways,
    cli: &Cli,
    targets: &[Target],
    request: &mut dyn FnMut(&Target) -> Request,
) -> Result<Ended, Problem> {
    let there = text::count(targets.len() as u64, "machine");
    if let Verb::Shell(_) = cli.verb() {
        return Err(Problem::refused(format!("a shell is on one machine, and -H names {there}")).remedy("recant -H HOST shell"));
    }
    if named(cli.verb()).iter().any(|key| *key == "last") {
        let problem = Problem::refused("'last' would be another session on each machine");
        return Err(problem.remedy(format!("name it: recant -H {} list", targets[0].name)));
    }
    // Each of them would ask by itself, and nobody could answer.
    if asks(cli.verb()) {
        call.confirm(&format!("Carry this out on {there}?"))?;
    }
    let input = input(call, ways, cli.verb())?;
    // Nobody can be asked, but somebody may read.
    let read = |target| {
        let request = request(target);
        let terminals = request.terminals.iter().copied().filter(|descriptor| *descriptor == 1).collect();
        Request { terminals, input: input.is_some(), ..request }
    };
    let requests: Vec<Request> = targets.iter().map(read).collect();
    let forks = ways.forks.min(targets.len());
    let is_command = matches!(cli.verb(), Verb::Run(_));
    let mut shown = Shower { call, answers: BTreeMap::new(), next: 0, rows: Vec::new(), is_command };
    let (tell, told) = channel();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..forks {
            let (tell, next, requests, input) = (tell.clone(), &next, &requests, &input);
            scope.spawn(move || {
                while let n = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(target) = targets.get(n)
                {
                    let _ended = tell.send((n, one(ways, target, &requests[n], input.as_ref())));
                }
            });
        }
        drop(tell);
        for (n, answer) in told {
            shown.take(n, answer, targets);
        }
    });
    Ok(shown.end(targets))
}

/// The sessions that a verb names.
fn named(verb: &Verb) -> Vec<&String> {
    match verb {
        Verb::Run(args) => args.session.iter().collect(),
        Verb::Discard(args) | Verb::Session { verb: SessionVerb::Discard(args) } => args.ids.iter().collect(),
        // Of commit, rollback and redo it is this side's that is meant, dry runs or not.
        Verb::Confirm(args) => vec![&args.id],
        Verb::Cat(args) => vec![&args.id],
        Verb::Recover(args) => args.id.iter().collect(),
        Verb::Diff(args) => args.id.iter().collect(),
        Verb::Log(args) => args.id.iter().collect(),
        Verb::Show(args) | Verb::Session { verb: SessionVerb::Show(args) } => args.id.iter().collect(),
        Verb::Session { verb: SessionVerb::Write(args) } => vec![&args.id],
        Verb::Session { verb: SessionVerb::Delete(args) } => vec![&args.id],
        Verb::Session { verb: SessionVerb::Mkdir(args) } => vec![&args.id],
        Verb::Session { verb: SessionVerb::Symlink(args) } => vec![&args.id],
        Verb::Session { verb: SessionVerb::Chmod(args) } => vec![&args.id],
        Verb::Session { verb: SessionVerb::Rename(args) } => vec![&args.id],
        Verb::Session { verb: SessionVerb::Export(args) } => vec![&args.id],
        Verb::Session { verb: SessionVerb::Prune(args) } => args.ids.iter().collect(),
        Verb::Checkpoint { verb: CheckpointVerb::Show(args) } => args.id.iter().collect(),
        Verb::Checkpoint { verb: CheckpointVerb::Verify(args) } => args.id.iter().collect(),
        Verb::Checkpoint { verb: CheckpointVerb::Prune(args) } => args.ids.iter().collect(),
        _ => Vec::new(),
    }
}

fn asks(verb: &Verb) -> bool {
    effects(verb) == Effects::Some
        && match verb {
            Verb::Discard(_) | Verb::Prune(_) => true,
            Verb::Session { verb } => matches!(verb, SessionVerb::Discard(_) | SessionVerb::Prune(_)),
            Verb::Checkpoint { verb } => matches!(verb, CheckpointVerb::Prune(_)),
            Verb::Snapshot { verb } => matches!(verb, SnapshotVerb::Restore(_)),
            _ => false,
        }
}

/// Standard input, read once for all; a keyboard is nobody's. A signal ends it.
fn input(call: &Call, ways: &Ways, verb: &Verb) -> Result<Option<Spool>, Problem> {
    use std::io::IsTerminal;
    let stdin = io::stdin();
    if !takes_content(verb) || stdin.is_terminal() {
        return Ok(None);
    }
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let came = ways.signals.came();
    let spool = Spool::of(call, |to| {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut polled, Some(&LOOK)) {
                Err(Errno::INTR) | Ok(0) if came.load(Ordering::SeqCst) == 0 => continue,
                // None is begun after a signal: what each would have got is of no weight.
                _ if came.load(Ordering::SeqCst) != 0 => return Ok(()),
                polled => polled.map_err(io::Error::from).at("wait for", "standard input")?,
            };
            // Past std's buffer, which would hide from poll what it holds.
            match rustix::io::read(&stdin, &mut buffer).map_err(io::Error::from).at("read", "standard input")? {
                0 => return Ok(()),
                n => to.write_all(&buffer[..n]).at("keep for all machines", "standard input")?,
            }
        }
    });
    spool.map(Some)
}

/// One machine. After a signal none is begun any more.
fn one(ways: &Ways, target: &Target, request: &Request, input: Option<&Spool>) -> Answer {
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let signal = ways.signals.came().load(Ordering::SeqCst);
    let host = || target.name.clone();
    let unread = |source| Error::Input { host: host(), source };
    let ended = if signal != 0 {
        Err(Error::Asked { host: host(), signal })
    } else {
        input.map(Spool::open).transpose().map_err(unread).and_then(|input| {
            let input = input.map(|input| Box::new(input) as Input);
            ways.link(target, SshSays::Gathered).carry_out(request, input, &mut |stream, bytes| {
                match stream {
                    Stream::Output => output.extend(bytes),
                    Stream::Errors => errors.extend(bytes),
                }
                Ok(())
            })
        })
    };
    Answer { output, errors, ended }
}

impl Answer {
    fn status(&self) -> u8 {
        // As of any call that was refused, but for one that was asked to end.
        match &self.ended {
            Ok(outcome) => outcome.status,
            Err(Error::Asked { signal, .. }) => 128_u8.saturating_add(*signal),
            Err(_) => 1,
        }
    }

    fn changes(&self) -> Option<u64> {
        self.ended.as_ref().ok().and_then(|outcome| outcome.changes)
    }

    /// How it went, in a word or two: README has the table of exit statuses. Of a run it is the command's own.
    fn result(&self, is_command: bool) -> String {
        match &self.ended {
            Err(Error::Unreached { .. } | Error::NoSsh { .. }) => "no connection".into(),
            Err(Error::Lost { .. }) => "connection cut".into(),
            Err(Error::Mute { .. } | Error::Noise { .. } | Error::Stalled { .. }) => "no answer".into(),
            Err(Error::Missing { .. } | Error::NotInstalled { .. }) => "no recant".into(),
            Err(Error::Asked { .. }) => "asked to end".into(),
            Err(Error::NoSudo { .. } | Error::LacksSudo { .. }) => "no sudo".into(),
            Err(_) => "refused".into(),
            Ok(outcome) => match outcome.status {
                0 => "done".into(),
                status if is_command => format!("status {status}"),
                1 => "refused".into(),
                2 => "usage".into(),
                3 => "conflict".into(),
                4 => "something left out".into(),
                5 => "damaged".into(),
                6 => "busy".into(),
                7 => "stuck".into(),
                status if is_status(status) => "asked to end".into(),
                status => format!("status {status}"),
            },
        }
    }
}

/// Shows what the machines said in the order of the list, as soon as those before have ended.
struct Shower<'a> {
    call: &'a Call,
    answers: BTreeMap<usize, Answer>,
    next: usize,
    rows: Vec<Row>,
    /// What ended is a command, with a status of its own.
    is_command: bool,
}

/// A line of the table.
struct Row {
    status: u8,
    changes: Option<u64>,
    result: String,
}

/// `{"schema":2,"host":…,"exit":…,…}`.
#[derive(Serialize)]
struct Document<'a> {
    host: &'a str,
    exit: u8,
    changes: Option<u64>,
    result: &'a str,
    documents: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    errors: Vec<Value>,
    messages: Vec<String>,
}

impl Shower<'_> {
    fn take(&mut self, n: usize, answer: Answer, targets: &[Target]) {
        self.answers.insert(n, answer);
        while let Some(answer) = self.answers.remove(&self.next) {
            let row = Row { status: answer.status(), changes: answer.changes(), result: answer.result(self.is_command) };
            if self.call.out.is_text() {
                self.block(&targets[self.next], answer);
            } else {
                self.document(&targets[self.next], answer, &row);
            }
            self.rows.push(row);
            self.next += 1;
        }
    }

    fn block(&self, target: &Target, answer: Answer) {
        let out = &self.call.out;
        out.styled(Style::new().bold(), format_args!("== {}", target.name));
        out.foreign_result(&answer.output);
        if answer.output.last().is_some_and(|last| *last != b'\n') {
            out.line("");
        }
        // Beside each other on a terminal, and apart where one goes to a file: each line says whose it is.
        let text = String::from_utf8_lossy(&answer.errors).into_owned();
        text.lines().for_each(|line| out.foreign_line(&target.name, line));
        if let Err(error) = answer.ended {
            out.problem(&error.into());
        }
    }

    fn document(&self, target: &Target, answer: Answer, row: &Row) {
        let lines = |bytes: &[u8]| -> Vec<String> { String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect() };
        let parsed: Result<Vec<Value>, _> = lines(&answer.output).iter().map(|line| serde_json::from_str(line)).collect();
        let (documents, output) = match (parsed, String::from_utf8(answer.output)) {
            (Ok(documents), _) => (documents, None),
            (Err(_), Ok(text)) => (Vec::new(), Some(json!(text))),
            (Err(_), Err(bytes)) => (Vec::new(), Some(json!({ "b64": STANDARD.encode(bytes.as_bytes()) }))),
        };
        let (mut errors, mut messages) = (Vec::new(), Vec::new());
        for line in lines(&answer.errors) {
            let value = serde_json::from_str::<Value>(&line).unwrap_or_default();
            if let Some(told) = ["note", "warning"].iter().find_map(|kind| value[kind].as_str()) {
                messages.push(told.to_owned());
            } else if value["kind"].is_string() || value["schema"].is_number() {
                errors.push(value);
            } else {
                messages.push(line);
            }
        }
        errors.extend(answer.ended.err().map(|error| json!(Problem::from(error))));
        let Row { status, changes, result } = row;
        let host = &target.name;
        self.call.out.document(&Document { host, exit: *status, changes: *changes, result, documents, output, errors, messages });
    }

    /// The table, and the status that all share, else the largest.
    fn end(self, targets: &[Target]) -> Ended {
        let out = &self.call.out;
        if out.is_text() && !out.is_quiet() {
            let cells = |(target, row): (&Target, &Row)| {
                let changes = row.changes.map_or("-".into(), |changes| changes.to_string());
                [Shown(target.name.as_bytes()).to_string(), row.status.to_string(), changes, row.result.clone()]
            };
            let mut rows = vec![["host".to_owned(), "exit".into(), "changes".into(), "result".into()]];
            rows.extend(targets.iter().zip(&self.rows).map(cells));
            out.line("");
            text::table([Side::Left, Side::Right, Side::Right, Side::Left], &rows).for_each(|line| out.line(line));
        }
        Ended::Command(self.rows.iter().map(|row| row.status).max().unwrap_or_default())
    }
}
