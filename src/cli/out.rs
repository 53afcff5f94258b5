//! What is printed: results to standard output, everything said about them to standard error; as text or as JSON.
//!
//! A verb prints without asking whether that worked: a reader that went away is no failure of the verb (what was to be
//! done is done), and any other failure to write is kept for the end.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use anstyle::Style;
use serde::{Serialize, Serializer};

use super::far::Near;
use super::problem::Problem;
use super::shown::{Names, cut};
use super::{text, visible};
use crate::config::Color;
use crate::error::At;
use crate::fs::interrupt;
use crate::fs::path::AbsPath;
use crate::tree::json;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// One document.
    Json,
    /// Lists: one document a line.
    JsonLines,
}

/// Where all that is printed goes.
pub struct Out {
    /// How results are written.
    pub form: Form,
    /// How many changes the verb was about, where that is known: another machine asks for it.
    pub changes: Cell<Option<u64>>,
    quiet: bool,
    verbose: bool,
    names: Names,
    most: usize,
    /// Whether results, and what is said about them, go to a terminal: through a pager, or another machine, too.
    terminals: Cell<(bool, bool)>,
    color: bool,
    color_err: bool,
    sink: RefCell<Box<dyn Write>>,
    pager: RefCell<Option<Child>>,
    later: RefCell<Vec<u8>>,
    closed: Cell<bool>,
    failed: RefCell<Option<io::Error>>,
}

/// What `output.paths` is before the settings are read, and without a word there.
const DEFAULT_MOST: usize = crate::config::OUTPUT_PATHS;

/// The version of all JSON that is printed: docs/json.md.
const SCHEMA: u32 = 2;

/// A JSON document: whatever it holds, and the version of its shape.
#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// What is said about a result, as one JSON object on a line of standard error.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Note(String),
    Warning(String),
    Question(String),
}

/// A note as JSON: what comes from elsewhere, line by line, as a message of ssh's does.
pub fn note_line(text: &str) -> Vec<u8> {
    json_line(&Told::Note(text.to_owned()))
}

impl Out {
    /// To the process's own streams.
    pub fn new(form: Form, color: Color, quiet: bool, verbose: bool) -> Self {
        let wanted = |auto: anstream::ColorChoice| match color {
            Color::Auto => auto != anstream::ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        };
        Self {
            form,
            changes: Cell::new(None),
            quiet,
            verbose,
            names: Names::here(),
            most: DEFAULT_MOST,
            terminals: Cell::new((io::stdout().is_terminal(), io::stderr().is_terminal())),
            color: wanted(anstream::AutoStream::choice(&io::stdout())),
            color_err: wanted(anstream::AutoStream::choice(&io::stderr())),
            sink: RefCell::new(Box::new(BufWriter::new(io::stdout()))),
            pager: RefCell::new(None),
            later: RefCell::default(),
            closed: Cell::new(false),
            failed: RefCell::new(None),
        }
    }

    /// For somebody at another machine, who wants colour where `near` says.
    pub fn for_near(self, near: &Near) -> Self {
        let (out, err) = self.terminals.get();
        let terminals = Cell::new((out || near.has_terminal(1), err || near.has_terminal(2)));
        Self { color: near.colors(1), color_err: near.colors(2), names: Names::from_afar(), terminals, ..self }
    }

    /// With listings of at most `most` lines: `output.paths`.
    pub fn most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// On which of standard output and standard error colour is wanted.
    pub fn colors(&self) -> Vec<u8> {
        [(1, self.color), (2, self.color_err)].into_iter().filter(|(_, wanted)| *wanted).map(|(n, _)| n).collect()
    }

    /// Hands on at once what another machine's recant prints. Errors: nobody reads it any more, or it cannot be written, which is kept.
    pub fn pass(&self, bytes: &[u8]) -> io::Result<()> {
        self.bytes(bytes);
        let flushed = self.sink.borrow_mut().flush();
        self.note_failure(flushed);
        let goes_on = !self.is_closed() && self.failed.borrow().is_none();
        if goes_on { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    /// The same for what it says; behind a pager, when that has ended.
    pub fn pass_message(&self, bytes: &[u8]) -> io::Result<()> {
        if self.pager.borrow().is_some() {
            self.later.borrow_mut().extend_from_slice(bytes);
            return Ok(());
        }
        io::stderr().write_all(bytes)
    }

    /// Whether results are for people.
    pub fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    /// Whether only what must not be missed is said.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Whether nobody reads any more: a verb that only reads can stop.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// A line of the result.
    pub fn line(&self, text: impl Display) {
        self.bytes(format!("{text}\n").as_bytes());
    }

    /// A path as it reads for people: [`Names::show`].
    pub fn shown(&self, path: &AbsPath) -> String {
        self.names.show(path)
    }

    /// A directory in a sentence: [`Names::place`].
    pub fn place(&self, path: &AbsPath) -> String {
        self.names.place(path)
    }

    /// A sentence with paths in it: [`Names::sentence`].
    pub fn sentence(&self, text: &str) -> String {
        self.names.sentence(text)
    }

    /// How many lines of a listing are printed: with `-v`, or where `all` was asked for, every one.
    pub fn limit(&self, all: bool) -> usize {
        if all || self.verbose { usize::MAX } else { self.most }
    }

    /// How many columns a line of a result may take: the terminal's, or COLUMNS (from another machine it comes so), else 80. With `-v`
    /// nothing is shortened.
    pub fn width(&self) -> usize {
        const USUAL: usize = 80;
        if self.verbose {
            return usize::MAX;
        }
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col)).filter(|n| *n > 0);
        let told = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        size.or_else(told).unwrap_or(USUAL).max(40)
    }

    /// The lines of a result of which the first are enough for a reader: `output.paths` of them, and how many more there are, with the
    /// command that lists them. Nothing with `-q`.
    pub fn listing(&self, lines: impl ExactSizeIterator<Item = String>, all: bool, whole: &str) {
        if !self.quiet {
            self.first_of(lines, all, whole);
        }
    }

    /// The same for what must not be missed, or was asked for: with `-q`, too.
    pub fn first_of(&self, lines: impl ExactSizeIterator<Item = String>, all: bool, whole: &str) {
        let (shown, more) = cut(lines.len(), self.limit(all));
        lines.take(shown).for_each(|line| self.line(line));
        if more > 0 {
            self.line(text::more(more, whole));
        }
    }

    /// A line of the result in a style, where colour is wanted.
    pub fn styled(&self, style: Style, text: impl Display) {
        self.line(self.paint(style, text));
    }

    /// Text with styles in it as ANSI escapes, which go where colour is not wanted.
    pub fn rich(&self, text: &impl Display) {
        let text = text.to_string();
        if self.color {
            self.bytes(text.as_bytes());
        } else {
            self.bytes(anstream::adapter::strip_str(&text).to_string().as_bytes());
        }
    }

    /// `text` in a style, where colour is wanted on standard output.
    pub fn paint(&self, style: Style, text: impl Display) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// Bytes of the result, as they are.
    pub fn bytes(&self, bytes: &[u8]) {
        if !self.closed.get() && self.failed.borrow().is_none() {
            interrupt::reporting();
            let written = self.sink.borrow_mut().write_all(bytes);
            self.note_failure(written);
        }
    }

    /// Content of a file, or other words that are not recant's, as a result: on a terminal without orders to it, else as they are.
    pub fn foreign<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.terminals.get().0 { visible::content(bytes) } else { bytes.into() }
    }

    /// The result of another machine's recant. Its colours stay.
    pub fn foreign_result(&self, bytes: &[u8]) {
        self.bytes(&if self.terminals.get().0 { visible::block(bytes) } else { bytes.into() });
    }

    /// A line that another machine said, with its name, for [`Out::message`].
    pub fn foreign_line(&self, host: &str, line: &str) -> Vec<u8> {
        let shown = if self.terminals.get().1 { visible::block(line.as_bytes()) } else { line.as_bytes().into() };
        [host.as_bytes(), b": ", &shown, b"\n"].concat()
    }

    /// The result as one JSON document on a line, which is never in memory as a whole.
    pub fn document(&self, body: &impl Serialize) {
        json::print_line(Sink(self), &Document { schema: SCHEMA, body });
    }

    /// The text of a document, for one that is written bit by bit.
    pub fn printed(&self, body: &impl Serialize) -> Vec<u8> {
        json::printed(&Document { schema: SCHEMA, body })
    }

    /// What was printed so far goes out now: somebody waits for it.
    pub fn flush(&self) {
        let flushed = self.sink.borrow_mut().flush();
        self.note_failure(flushed);
    }

    /// A list: as one document in `whole`, or an item a line.
    pub fn list<I: IntoIterator<Item: Serialize>>(&self, whole: &impl Serialize, items: impl FnOnce() -> I) {
        match self.form {
            Form::JsonLines => items().into_iter().for_each(|item| self.document(&item)),
            _ => self.document(whole),
        }
    }

    /// Something about the result; nothing with `-q`. With JSON an object: `{"schema":…,"note":"…"}`.
    pub fn note(&self, text: impl Display) {
        if !self.quiet {
            self.tell(Told::Note, text);
        }
    }

    /// The same with `-v` alone.
    pub fn detail(&self, text: impl Display) {
        if self.verbose {
            self.note(text);
        }
    }

    /// Something that must not be missed, `-q` or not. With JSON an object: `{"schema":…,"warning":"…"}`.
    pub fn warn(&self, text: impl Display) {
        self.tell(Told::Warning, text);
    }

    /// A line to standard error without recant's name before it. With JSON it is a note.
    pub fn say(&self, text: impl Display) {
        if self.is_text() { self.message(format!("{text}\n").as_bytes()) } else { self.tell(Told::Note, text) }
    }

    /// A question, which the answer follows on its line. With JSON an object: `{"schema":…,"question":"…"}`.
    pub fn ask(&self, question: &str) {
        if self.is_text() {
            self.message(format!("{question} [y/N] ").as_bytes());
        } else {
            self.message(&json_line(&Told::Question(question.to_owned())));
        }
    }

    /// What went wrong, in at most three lines or as one JSON object.
    pub fn problem(&self, problem: &Problem) {
        match self.form {
            Form::Text => {
                let fill = self.terminals.get().1;
                self.say(problem.text(self.color_err, &self.names, self.limit(false), fill));
            }
            Form::Json | Form::JsonLines => self.message(&json_line(problem)),
        }
    }

    fn tell(&self, kind: fn(String) -> Told, text: impl Display) {
        if self.is_text() {
            self.message(format!("recant: {}\n", visible::message(&text.to_string())).as_bytes());
        } else {
            self.message(&json_line(&kind(text.to_string())));
        }
    }

    /// To standard error: after what was printed before it, and after a pager that has the terminal.
    pub fn message(&self, bytes: &[u8]) {
        if self.pager.borrow().is_some() {
            self.later.borrow_mut().extend_from_slice(bytes);
            return;
        }
        interrupt::reporting();
        self.flush();
        // What goes wrong with standard error can be told nowhere.
        drop(io::stderr().write_all(bytes));
    }

    /// Results go to standard error from here on: standard output is a command's.
    pub fn divert(&self) {
        *self.sink.borrow_mut() = Box::new(BufWriter::new(io::stderr()));
        self.terminals.set((self.terminals.get().1, self.terminals.get().1));
    }

    /// Long text goes through a pager from here on, where a terminal is read by a person. `pager` is a shell command;
    /// empty, or `cat`, means none.
    pub fn page(&self, pager: Option<&str>) {
        let from_env = std::env::var("PAGER").ok();
        let command = pager.or(from_env.as_deref()).unwrap_or("less").trim();
        if !self.is_text() || !io::stdout().is_terminal() || command.is_empty() || command == "cat" {
            return;
        }
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped());
        // As git does it: colours as they are, no paging of what fits, the text stays on the screen.
        if std::env::var_os("LESS").is_none() {
            shell.env("LESS", "FRX");
        }
        // Without a pager it is printed as it is.
        let Ok(mut child) = shell.spawn() else { return };
        if let Some(input) = child.stdin.take() {
            *self.sink.borrow_mut() = Box::new(BufWriter::new(input));
            *self.pager.borrow_mut() = Some(child);
        }
    }

    /// Writes what is still held back. Errors: what else than a reader that went away kept a result from being written.
    pub fn finish(&self) -> Result<(), Problem> {
        let flushed = self.sink.borrow_mut().flush();
        self.note_failure(flushed);
        // The pager ends when its input does.
        drop(self.sink.replace(Box::new(io::sink())));
        if let Some(mut pager) = self.pager.borrow_mut().take() {
            drop(pager.wait());
        }
        let later = self.later.take();
        if !later.is_empty() {
            self.message(&later);
        }
        match self.failed.borrow_mut().take() {
            Some(error) => Err(error).at("write", "standard output").map_err(Problem::from),
            None => Ok(()),
        }
    }

    fn note_failure(&self, written: io::Result<()>) {
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed.set(true),
            Err(error) => *self.failed.borrow_mut() = Some(error),
        }
    }
}

/// A list in a document whose items are made one by one, as they are written.
pub struct Each<F>(pub F);

impl<F: Fn() -> I, I: IntoIterator<Item: Serialize>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Standard output for what writes by itself. A failure is kept for the end, as of all that is printed.
struct Sink<'o>(&'o Out);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn json_line(body: &impl Serialize) -> Vec<u8> {
    let mut line = json::printed(&Document { schema: SCHEMA, body });
    line.push(b'\n');
    line
}
