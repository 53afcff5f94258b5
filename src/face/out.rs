//! Prints results to standard output, and all that is said about them to standard error; as text or as JSON.
//!
//! A verb prints without asking whether that worked. A reader that went away is no failure of the verb, which has done its work. Any
//! other failure to write is kept for the end.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, Stdio};
use std::rc::Rc;

use anstyle::Style;
use serde::Serialize;

use super::json::{self, Told};
use super::near_side::Near;
use super::{errors, figures};
use crate::compare::{Names, cut, escape_terminal};
use crate::error::{At, Error, Untyped};
use crate::fs::AbsPath;
use crate::settings::Color;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
}

/// The streams that all output goes to.
pub struct Out {
    pub form: Form,
    /// All that is printed, if that is kept for a screen.
    kept: Option<Kept>,
    quiet: bool,
    verbose: bool,
    for_tools: bool,
    names: Names,
    most: usize,
    /// For results, and for what is said about them: true if they go to a terminal, also through a pager or another machine.
    terminals: Cell<(bool, bool)>,
    color: bool,
    color_err: bool,
    sink: RefCell<Box<dyn Write>>,
    pager: RefCell<Option<Child>>,
    later: RefCell<Vec<u8>>,
    closed: Cell<bool>,
    failed: RefCell<Option<io::Error>>,
}

/// `output.paths` before the settings are read, and if they do not set it.
const DEFAULT_MOST: usize = crate::settings::OUTPUT_PATHS;

/// The tool of MCP that does what a verb does.
fn tool(verb: &str) -> Option<&'static str> {
    Some(match verb {
        "list" => "sessions",
        "show" => "changes",
        "diff" => "diff",
        "cat" => "cat",
        "steps" => "steps",
        "rewind" => "rewind",
        "fork" => "fork",
        "discard" => "discard",
        "log" => "log",
        _ => return None,
    })
}

impl Out {
    pub fn new(form: Form, color: Color, quiet: bool, verbose: bool) -> Self {
        let wanted = |auto: anstream::ColorChoice| match color {
            Color::Auto => auto != anstream::ColorChoice::Never,
            Color::Always => true,
            Color::Never => false,
        };
        Self {
            form,
            kept: None,
            quiet,
            verbose,
            for_tools: false,
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

    /// Keeps all that is printed, without colour, for a screen that shows it: [`Self::kept`].
    pub fn keeping(&self) -> Self {
        let kept = Kept::default();
        let sink: Box<dyn Write> = Box::new(kept.clone());
        let own = Self::new(Form::Text, Color::Never, false, false);
        Self {
            names: self.names.clone(),
            terminals: Cell::new((false, false)),
            sink: RefCell::new(sink),
            kept: Some(kept),
            ..own
        }
        .most(self.most)
    }

    /// These streams once more: for a call within this one.
    pub fn again(&self) -> Self {
        Self {
            names: self.names.clone(),
            color: self.color,
            color_err: self.color_err,
            ..Self::new(self.form, Color::Auto, self.quiet, self.verbose)
        }
        .most(self.most)
        .for_tools(self.for_tools)
    }

    /// The directories that printed paths start from.
    pub fn names(&self) -> Names {
        self.names.clone()
    }

    /// The lines that were kept, in order.
    pub fn kept(&self) -> Vec<String> {
        self.flush();
        let bytes = self.kept.as_ref().map(|kept| kept.0.borrow().clone()).unwrap_or_default();
        let lines = String::from_utf8_lossy(&bytes);
        lines.lines().map(str::to_owned).collect()
    }

    /// True if all that is printed is kept: nothing may be drawn on the terminal.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Prints for a user at another machine, who wants colour as `near` says.
    pub fn for_near(self, near: &Near) -> Self {
        let (out, err) = self.terminals.get();
        let terminals = Cell::new((out || near.has_terminal(1), err || near.has_terminal(2)));
        Self { color: near.colors(1), color_err: near.colors(2), names: Names::from_afar(), terminals, ..self }
    }

    /// Speaks to a model that has the tools of `recant mcp` alone: it can type no command.
    pub fn for_tools(self, for_tools: bool) -> Self {
        Self { for_tools, ..self }
    }

    pub fn is_for_tools(&self) -> bool {
        self.for_tools
    }

    /// Prints at most `most` lines of a listing: `output.paths`.
    pub fn most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Those of standard output and standard error on which colour is wanted.
    pub fn colors(&self) -> Vec<u8> {
        [(1, self.color), (2, self.color_err)].into_iter().filter(|(_, wanted)| *wanted).map(|(n, _)| n).collect()
    }

    /// Passes on at once what another machine's recant prints. Errors: nobody reads it any more; it cannot be written, which is kept.
    pub fn pass(&self, bytes: &[u8]) -> io::Result<()> {
        self.bytes(bytes);
        let flushed = self.sink.borrow_mut().flush();
        self.note_failure(flushed);
        let goes_on = !self.is_closed() && self.failed.borrow().is_none();
        if goes_on { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    /// Passes on another machine's messages; after the pager's end, if there is a pager.
    pub fn pass_message(&self, bytes: &[u8]) -> io::Result<()> {
        if self.pager.borrow().is_some() {
            self.later.borrow_mut().extend_from_slice(bytes);
            return Ok(());
        }
        io::stderr().write_all(bytes)
    }

    /// True if results are text for people.
    pub fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    /// True if results go to a terminal.
    pub fn is_for_people(&self) -> bool {
        self.terminals.get().0
    }

    /// True if colour is wanted on standard output.
    pub fn is_colored(&self) -> bool {
        self.color
    }

    /// True if only what must not be missed is said.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// True if nobody reads any more. A verb that only reads can stop then.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    pub fn line(&self, text: impl Display) {
        self.bytes(format!("{text}\n").as_bytes());
    }

    /// A path as a word of a command that a person may copy.
    pub fn word(&self, path: &AbsPath) -> String {
        self.names.word(path)
    }

    /// A path as people read it: [`Names::show`].
    pub fn shown(&self, path: &AbsPath) -> String {
        self.names.show(path)
    }

    pub fn place(&self, path: &AbsPath) -> String {
        self.names.place(path)
    }

    /// A sentence with paths in it: [`Names::sentence`].
    pub fn sentence(&self, text: &str) -> String {
        self.names.sentence(text)
    }

    /// The number of listing lines to print. No limit with `-v`.
    pub fn limit(&self) -> usize {
        if self.verbose { usize::MAX } else { self.most }
    }

    /// True if all is to be told: with `-v`.
    pub fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// The most columns of a result line: those of the terminal, else COLUMNS (so they come from another machine), else 80. With `-v`
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

    /// Prints the first `output.paths` lines of a result, the number of the others, and the command that lists them. Prints nothing
    /// with `-q`, and where it is kept: a screen has rows of its own.
    pub fn listing(&self, lines: impl ExactSizeIterator<Item = String>, whole: &str) {
        if !self.quiet && !self.is_kept() {
            self.first_of(lines, whole);
        }
    }

    /// Prints the first lines as [`Self::listing`] does, also with `-q`: they were asked for, or must not be missed.
    pub fn first_of(&self, lines: impl ExactSizeIterator<Item = String>, whole: &str) {
        let (shown, more) = cut(lines.len(), self.limit());
        lines.take(shown).for_each(|line| self.line(line));
        if more > 0 {
            self.line(figures::more(more, whole));
        }
    }

    /// Prints a line of the result in a style, if colour is wanted.
    pub fn styled(&self, style: Style, text: impl Display) {
        self.line(self.paint(style, text));
    }

    /// Prints text that has ANSI escapes in it; they are removed if colour is not wanted.
    pub fn rich(&self, text: &impl Display) {
        let text = text.to_string();
        if self.color {
            self.bytes(text.as_bytes());
        } else {
            self.bytes(anstream::adapter::strip_str(&text).to_string().as_bytes());
        }
    }

    /// `text` in a style, if colour is wanted on standard output.
    pub fn paint(&self, style: Style, text: impl Display) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// Prints bytes of the result as they are.
    pub fn bytes(&self, bytes: &[u8]) {
        if !self.closed.get() && self.failed.borrow().is_none() {
            let written = self.sink.borrow_mut().write_all(bytes);
            self.note_failure(written);
        }
    }

    /// File content, or other foreign bytes, for a result: made harmless for a terminal, else as they are.
    pub fn foreign<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.terminals.get().0 { escape_terminal::content(bytes) } else { bytes.into() }
    }

    /// Prints the result as one JSON document on a line. It is never in memory as a whole.
    pub fn document(&self, body: &impl Serialize) {
        json::print(Sink(self), body);
    }

    /// Writes out what was printed so far: somebody waits for it.
    pub fn flush(&self) {
        let flushed = self.sink.borrow_mut().flush();
        self.note_failure(flushed);
    }

    /// Says something about the result; nothing with `-q`. With JSON an object: `{"schema":…,"note":"…"}`.
    pub fn note(&self, text: impl Display) {
        if !self.quiet {
            self.tell(Told::Note, text);
        }
    }

    /// Says something about the result with `-v` alone.
    pub fn detail(&self, text: impl Display) {
        if self.verbose {
            self.note(text);
        }
    }

    /// Says something that must not be missed, also with `-q`. With JSON an object: `{"schema":…,"warning":"…"}`.
    pub fn warn(&self, text: impl Display) {
        self.tell(Told::Warning, text);
    }

    /// Warns of each line, as [`Self::warn`] does. As text the first `output.paths` do, and the others are counted.
    pub fn warn_each(&self, lines: impl ExactSizeIterator<Item = String>) {
        let limit = if self.is_text() { self.limit() } else { usize::MAX };
        let (shown, more) = cut(lines.len(), limit);
        lines.take(shown).for_each(|line| self.warn(line));
        if more > 0 {
            self.warn(format_args!("… and {} more: -v names them all", figures::grouped(more as u64)));
        }
    }

    /// Writes a line to standard error without "recant: ". With JSON it is a note.
    pub fn say(&self, text: impl Display) {
        if self.is_text() { self.message(format!("{text}\n").as_bytes()) } else { self.tell(Told::Note, text) }
    }

    /// Asks a question; the answer is typed on the same line. With JSON an object: `{"schema":…,"question":"…"}`.
    pub fn ask(&self, question: &str) {
        if self.is_text() {
            self.message(format!("{question} [y/N] ").as_bytes());
        } else {
            self.message(&json::line(&Told::Question(question.to_owned())));
        }
    }

    /// Asks something that is no yes or no; the answer is typed on the same line.
    pub fn prompt(&self, question: &str) {
        self.message(format!("{question} ").as_bytes());
    }

    /// Reports an error, in at most three lines or as one JSON object.
    pub fn problem(&self, problem: &Error) {
        match self.form {
            Form::Text => {
                let fill = self.terminals.get().1;
                self.say(errors::text(problem, self.color_err, &self.names, self.limit(), fill));
            }
            Form::Json if self.for_tools => self.message(&json::line(&Untyped(problem, tool))),
            Form::Json => self.message(&json::line(problem)),
        }
    }

    fn tell(&self, kind: fn(String) -> Told, text: impl Display) {
        if self.is_text() {
            // A screen knows who says it.
            let who = if self.is_kept() { "" } else { "recant: " };
            self.message(format!("{who}{}\n", escape_terminal::message(&text.to_string())).as_bytes());
        } else {
            self.message(&json::line(&kind(text.to_string())));
        }
    }

    /// Writes to standard error: after the output so far, and after the end of a pager, which has the terminal.
    pub fn message(&self, bytes: &[u8]) {
        if self.pager.borrow().is_some() {
            self.later.borrow_mut().extend_from_slice(bytes);
            return;
        }
        self.flush();
        if let Some(kept) = &self.kept {
            kept.0.borrow_mut().extend_from_slice(bytes);
            return;
        }
        // An error of standard error cannot be reported anywhere.
        drop(io::stderr().write_all(bytes));
    }

    /// Sends results to standard error from here on: standard output is a command's.
    pub fn divert(&self) {
        *self.sink.borrow_mut() = Box::new(BufWriter::new(io::stderr()));
        self.terminals.set((self.terminals.get().1, self.terminals.get().1));
    }

    /// Sends text through a pager from here on, if a person reads it at a terminal. `pager` is a shell command; empty, or `cat`, means
    /// none.
    pub fn page(&self, pager: Option<&str>) {
        let from_env = std::env::var("PAGER").ok();
        let command = pager.or(from_env.as_deref()).unwrap_or("less").trim();
        if !self.is_text() || self.is_kept() || !io::stdout().is_terminal() || command.is_empty() || command == "cat" {
            return;
        }
        let mut shell = crate::fs::command("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped());
        // As git does: keep colours, do not page what fits, leave the text on the screen.
        if std::env::var_os("LESS").is_none() {
            shell.env("LESS", "FRX");
        }
        // What is printed is UTF-8, also where no locale is set, as after `su -`: less would show its bytes.
        if std::env::var_os("LESSCHARSET").is_none() {
            shell.env("LESSCHARSET", "utf-8");
        }
        // If there is no pager, print without one.
        let Ok(mut child) = shell.spawn() else { return };
        if let Some(input) = child.stdin.take() {
            *self.sink.borrow_mut() = Box::new(BufWriter::new(input));
            *self.pager.borrow_mut() = Some(child);
        }
    }

    /// Writes the rest, and waits for the pager. Errors: a result could not be written; a reader that went away is no error.
    pub fn finish(&self) -> Result<(), Error> {
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
            Some(error) => Err(error).at("write", "standard output").map_err(Error::from),
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

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Results for code that takes a writer. A failure is kept for the end, as for all output.
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
