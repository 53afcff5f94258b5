//! `-H` with several machines. Each carries out the verb, some at a time. The output of each is a block, in the order of the list; a table
//! at the end tells how each ended.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use anstyle::Style;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ways::{Ways, takes_content};
use crate::cli::args::{CheckpointVerb, Cli, SessionVerb, SnapshotVerb, Verb};
use crate::cli::out::Out;
use crate::cli::problem::Problem;
use crate::cli::spool::{Kept, Spool, piece};
use crate::cli::text::{self, Side};
use crate::cli::{Call, Effects, Ended, effects};
use crate::error::{At, Error, Reason};
use crate::fs::Fs;
use crate::fs::interrupt::is_status;
use crate::fs::path::Shown;
use crate::remote::error::{asked, no_input};
use crate::remote::frame::Outcome;
use crate::remote::host::Target;
use crate::remote::link::SshSays;
use crate::remote::request::Request;
use crate::remote::streams::{Input, Stream};
use crate::tree::json;

/// The output of a machine, and how it ended.
pub struct Answer<'f> {
    output: Kept<'f>,
    errors: Kept<'f>,
    ended: Result<Outcome, Error>,
}

/// Carries out the call on all machines.
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
    if named(cli.verb()).contains(&"last") {
        let problem = Problem::refused("'last' would be another session on each machine");
        return Err(problem.remedy(format!("name it: recant -H {} list", targets[0].name)));
    }
    // Each machine would ask by itself, and nobody could answer.
    if asks(cli.verb()) {
        call.confirm(&format!("Carry this out on {there}?"))?;
    }
    let input = input(call, ways, cli.verb())?;
    // Nobody can be asked there, but somebody may read here.
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
            let (tell, next, requests, input, fs) = (tell.clone(), &next, &requests, &input, &call.fs);
            scope.spawn(move || {
                while let n = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(target) = targets.get(n)
                {
                    let _ended = tell.send((n, one(fs, ways, target, &requests[n], input.as_ref())));
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
fn named(verb: &Verb) -> Vec<&str> {
    let keys: Vec<&String> = match verb {
        Verb::Run(args) => args.session.iter().collect(),
        Verb::Discard(args) | Verb::Session { verb: SessionVerb::Discard(args) } => args.id.iter().collect(),
        // For commit, rollback and redo this side's session is meant, also in dry runs.
        Verb::Confirm(args) => vec![&args.id],
        Verb::Cat(args) => vec![&args.id],
        Verb::Recover(args) => args.id.iter().collect(),
        Verb::Steps(args) => args.id.iter().collect(),
        Verb::Diff(args) => args.id.iter().chain(&args.with).collect(),
        Verb::Log(args) => return args.what.iter().filter_map(|word| word.to_str()).collect(),
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
    };
    keys.into_iter().map(String::as_str).collect()
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

/// Standard input, read once for all machines; none if it is a terminal. A signal ends it.
fn input(call: &Call, ways: &Ways, verb: &Verb) -> Result<Option<Spool>, Problem> {
    use std::io::IsTerminal;
    let stdin = io::stdin();
    if !takes_content(verb) || stdin.is_terminal() {
        return Ok(None);
    }
    const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let came = ways.signals.came();
    let spool = Spool::of(&call.fs, |to| {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut polled, Some(&LOOK)) {
                Err(Errno::INTR) | Ok(0) if came.load(Ordering::SeqCst) == 0 => continue,
                // After a signal no machine is begun, so that nobody needs the input.
                _ if came.load(Ordering::SeqCst) != 0 => return Ok(()),
                polled => polled.map_err(io::Error::from).at("wait for", "standard input")?,
            };
            // Not through std, whose buffer would hide its content from poll.
            match rustix::io::read(&stdin, &mut buffer).map_err(io::Error::from).at("read", "standard input")? {
                0 => return Ok(()),
                n => to.write_all(&buffer[..n]).at("keep for all machines", "standard input")?,
            }
        }
    });
    spool.map(Some)
}

/// Carries out the call on one machine; not after a signal.
fn one<'f>(fs: &'f Fs, ways: &Ways, target: &Target, request: &Request, input: Option<&Spool>) -> Answer<'f> {
    let (mut output, mut errors) = (Kept::new(fs), Kept::new(fs));
    let signal = ways.signals.came().load(Ordering::SeqCst);
    let host = || target.name.clone();
    let unread = |source| no_input(&host(), &source);
    let ended = if signal != 0 {
        Err(asked(&host(), signal))
    } else {
        input.map(Spool::open).transpose().map_err(unread).and_then(|input| {
            let input = input.map(|input| Box::new(input) as Input);
            ways.link(target, SshSays::Gathered).carry_out(request, input, &mut |stream, bytes| match stream {
                Stream::Output => output.add(bytes),
                Stream::Errors => errors.add(bytes),
            })
        })
    };
    Answer { output, errors, ended }
}

impl Answer<'_> {
    fn status(&self) -> u8 {
        const LEFT_OUT: u8 = 4;
        // 1 as for any call that was refused, but for one that a signal ended.
        match &self.ended {
            Ok(Outcome { status: 0, .. }) if self.lost().is_some() => LEFT_OUT,
            Ok(outcome) => outcome.status,
            Err(error) => match error.reason() {
                Some(Reason::Asked { signal }) => 128_u8.saturating_add(*signal),
                _ => 1,
            },
        }
    }

    /// The reason why the end of its output is missing, if it is.
    fn lost(&self) -> Option<&Problem> {
        self.output.lost().or(self.errors.lost())
    }

    fn changes(&self) -> Option<u64> {
        self.ended.as_ref().ok().and_then(|outcome| outcome.changes)
    }

    /// How it ended, in a word or two: README has the table of exit statuses. For a run, the status is the command's.
    fn result(&self, is_command: bool) -> String {
        match &self.ended {
            Err(error) => match error.reason() {
                Some(Reason::NoConnection) => "no connection".into(),
                Some(Reason::Cut) => "connection cut".into(),
                Some(Reason::NoAnswer) => "no answer".into(),
                Some(Reason::NoRecant | Reason::NotInstalled) => "no recant".into(),
                Some(Reason::Asked { .. }) => "asked to end".into(),
                Some(Reason::NoSudo) => "no sudo".into(),
                _ => "refused".into(),
            },
            Ok(_) => match self.status() {
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

/// Prints the machines' output in the order of the list, as soon as all before have ended.
struct Shower<'a> {
    call: &'a Call,
    answers: BTreeMap<usize, Answer<'a>>,
    next: usize,
    rows: Vec<Row>,
    /// True if the machines ran a command, with a status of its own.
    is_command: bool,
}

/// A line of the table.
struct Row {
    status: u8,
    changes: Option<u64>,
    result: String,
}

/// `{"schema":2,"host":…,"exit":…,…}`: the beginning of a document, before the machine's own output.
#[derive(Serialize)]
struct Document<'a> {
    host: &'a str,
    exit: u8,
    changes: Option<u64>,
    result: &'a str,
}

impl<'a> Shower<'a> {
    fn take(&mut self, n: usize, answer: Answer<'a>, targets: &[Target]) {
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

    fn block(&self, target: &Target, answer: Answer<'_>) {
        let out = &self.call.out;
        out.styled(Style::new().bold(), format_args!("== {}", target.name));
        let mut is_ended = true;
        pieces(&answer.output, |piece| {
            is_ended = piece.ends_with(b"\n");
            out.foreign_result(piece);
        });
        if !is_ended {
            out.line("");
        }
        // Both may share a terminal, or one may go to a file: each line has the machine's name.
        let mut said = Vec::new();
        lines(&answer.errors, LINE, |piece| {
            said.extend(out.foreign_line(&target.name, String::from_utf8_lossy(piece).trim_end_matches(['\r', '\n'])));
            if said.len() as u64 >= LINE {
                out.message(&std::mem::take(&mut said));
            }
        });
        if !said.is_empty() {
            out.message(&said);
        }
        if let Some(lost) = answer.lost() {
            out.warn(format_args!("{}: the end of what it printed is missing: {}", target.name, lost.message));
        }
        if let Err(error) = answer.ended {
            out.problem(&error.into());
        }
    }

    /// Written bit by bit: a machine's output is never in memory as a whole.
    fn document(&self, target: &Target, answer: Answer<'_>, row: &Row) {
        let out = &self.call.out;
        let Row { status, changes, result } = row;
        let host = &target.name;
        let mut head = out.printed(&Document { host, exit: *status, changes: *changes, result });
        head.pop();
        out.bytes(&head);
        out.bytes(b",\"documents\":[");
        let sort = sort_of(&answer.output);
        if sort == Content::Documents {
            documents(out, &answer.output);
        }
        out.bytes(b"]");
        if sort != Content::Documents {
            out.bytes(b",\"output\":");
            content(out, &answer.output, sort);
        }
        out.bytes(b",\"errors\":[");
        let mut list = List { out, is_begun: false };
        said(&answer.errors, |said| {
            if let Said::Error(value) = said {
                list.item(&value);
            }
        });
        let lost = answer.lost().map(|lost| lost.message.clone());
        if let Err(error) = answer.ended {
            list.item(&Problem::from(error));
        }
        out.bytes(b"],\"messages\":[");
        let mut list = List { out, is_begun: false };
        said(&answer.errors, |said| {
            if let Said::Message(text) = said {
                list.item(&text);
            }
        });
        if let Some(lost) = lost {
            list.item(&format!("the end of what it printed is missing: {lost}"));
        }
        out.bytes(b"]}\n");
    }

    /// Prints the table. Returns the status that all share, else the largest.
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

/// The most bytes of a line that are shown at once.
const LINE: u64 = 64 << 10;

/// The most bytes of a line of standard error that is parsed as a document.
const SAID: u64 = 4 << 20;

/// Reads lines, or `most` bytes of each. Errors end the reading: what the disk does not give back is missing.
fn lines(kept: &Kept<'_>, most: u64, mut each: impl FnMut(&[u8])) {
    let mut from = kept.read();
    while let Ok(Some(line)) = piece(&mut from, most) {
        each(&line);
    }
}

/// Reads pieces that end at the end of a line, if they contain one.
fn pieces(kept: &Kept<'_>, mut each: impl FnMut(&[u8])) {
    let mut from = kept.read();
    let mut begun = Vec::new();
    while let Ok(there @ [_, ..]) = from.fill_buf() {
        let end = there.iter().rposition(|b| *b == b'\n').map_or(there.len(), |end| end + 1);
        begun.extend_from_slice(&there[..end]);
        each(&std::mem::take(&mut begun));
        begun.extend_from_slice(&there[end..]);
        let count = there.len();
        from.consume(count);
    }
    if !begun.is_empty() {
        each(&begun);
    }
}

/// Reads text in pieces of whole characters. Returns false if some of it is not UTF-8.
fn texts(kept: &Kept<'_>, mut each: impl FnMut(&str)) -> bool {
    let mut begun: Vec<u8> = Vec::new();
    let mut is_text = true;
    pieces(kept, |piece| {
        begun.extend_from_slice(piece);
        let valid = match std::str::from_utf8(&begun) {
            Ok(text) => text.len(),
            // The next piece may have the rest of the character.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return is_text = false,
        };
        if is_text && let Ok(text) = std::str::from_utf8(&begun[..valid]) {
            each(text);
            begun.drain(..valid);
        }
    });
    is_text && begun.is_empty()
}

/// The kind of a machine's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// A document a line.
    Documents,
    Text,
    Bytes,
}

fn sort_of(kept: &Kept<'_>) -> Content {
    if !texts(kept, |_| ()) {
        return Content::Bytes;
    }
    let mut from = kept.read();
    while !matches!(from.fill_buf(), Ok([]) | Err(_)) {
        let mut line = BufReader::new(Line { from: &mut from, is_over: false });
        let mut read = serde_json::Deserializer::from_reader(&mut line);
        let is_one = IgnoredAny::deserialize(&mut read).and_then(|_| read.end()).is_ok();
        if !is_one {
            return Content::Text;
        }
    }
    Content::Documents
}

/// A reader of one line, without its end.
struct Line<R> {
    from: R,
    is_over: bool,
}

impl<R: BufRead> Read for Line<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        let there = self.from.fill_buf()?;
        let count = there.len().min(buffer.len());
        let end = there[..count].iter().position(|b| *b == b'\n');
        buffer[..end.unwrap_or(count)].copy_from_slice(&there[..end.unwrap_or(count)]);
        self.is_over = end.is_some();
        self.from.consume(end.map_or(count, |end| end + 1));
        Ok(end.unwrap_or(count))
    }
}

/// Writes documents, a line each, as items of a list. JSON has invisible characters only in strings, where they may be escaped.
fn documents(out: &Out, kept: &Kept<'_>) {
    let mut is_line_begun = true;
    texts(kept, |text| {
        for part in text.split_inclusive('\n') {
            if !is_line_begun {
                out.bytes(b",");
            }
            is_line_begun = !part.ends_with('\n');
            out.bytes(&json::escaped(part.trim_end_matches(['\r', '\n'])));
        }
    });
}

/// Writes a string, or base64 for what is no text.
fn content(out: &Out, kept: &Kept<'_>, sort: Content) {
    if sort == Content::Text {
        out.bytes(b"\"");
        texts(kept, |text| {
            let quoted = json::printed(&text);
            out.bytes(&quoted[1..quoted.len() - 1]);
        });
        return out.bytes(b"\"");
    }
    out.bytes(b"{\"b64\":\"");
    let mut rest: Vec<u8> = Vec::new();
    pieces(kept, |piece| {
        rest.extend_from_slice(piece);
        let whole = rest.len() / 3 * 3;
        out.bytes(STANDARD.encode(&rest[..whole]).as_bytes());
        rest.drain(..whole);
    });
    out.bytes(STANDARD.encode(&rest).as_bytes());
    out.bytes(b"\"}");
}

/// A line of standard error.
enum Said {
    Error(Value),
    Message(String),
}

fn said(kept: &Kept<'_>, mut each: impl FnMut(Said)) {
    lines(kept, SAID, |piece| {
        let line = String::from_utf8_lossy(piece);
        let line = line.trim_end_matches(['\r', '\n']);
        let value = Some(line)
            .filter(|line| line.starts_with('{'))
            .and_then(|line| serde_json::from_str(line).ok())
            .unwrap_or(Value::Null);
        each(if let Some(told) = ["note", "warning"].iter().find_map(|kind| value[kind].as_str()) {
            Said::Message(told.to_owned())
        } else if value["kind"].is_string() || value["schema"].is_number() {
            Said::Error(value)
        } else {
            Said::Message(line.to_owned())
        });
    });
}

/// A list in JSON, written item by item.
struct List<'o> {
    out: &'o Out,
    is_begun: bool,
}

impl List<'_> {
    fn item(&mut self, value: &impl Serialize) {
        if std::mem::replace(&mut self.is_begun, true) {
            self.out.bytes(b",");
        }
        self.out.bytes(&json::printed(value));
    }
}
