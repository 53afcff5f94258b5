//! How far one machine is, what it said, and what became of it.

use std::ffi::OsString;

use serde_json::Value;

use crate::cli::spool::Kept;
use crate::error::Error;
use crate::fs::Fs;
use crate::fs::interrupt::is_status;
use crate::remote::error::asked;
use crate::remote::frame::Outcome;
use crate::remote::link::Link;
use crate::remote::request::{Request, Word};
use crate::remote::streams::{Input, Stream};

/// How far a machine is, and what it said.
#[derive(Default)]
pub struct Row {
    /// It said that it is ready.
    pub ready: bool,
    /// A part of the session was on its tree already.
    pub partial: bool,
    /// It was told to go on.
    pub told_to_go: bool,
    /// The session was sent to it.
    pub sent: bool,
    /// It was not asked at all, as another one had failed by then.
    pub passed_over: bool,
    /// How the verb ended there, once it has.
    pub ended: Option<Finished>,
    /// What became of it after all.
    pub result: Option<Fate>,
}

impl Row {
    /// What takes back this call's own work and nothing that was done before it: no path for all of the session, else the paths that the
    /// machine named. `None` where that cannot be told.
    pub fn own_paths(&self) -> Option<Vec<OsString>> {
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
pub struct Finished {
    /// Its exit status, or why there is none.
    pub status: Result<u8, Error>,
    report: Value,
    last_words: String,
}

/// Bytes of a machine's report at most, and values in it: it is in memory as a whole.
const REPORT_BYTES: u64 = 16 << 20;
const REPORT_VALUES: usize = 1 << 20;

/// Bytes of what a machine said last.
const LAST_WORDS: usize = 4 << 10;

impl Finished {
    fn of(ended: Result<Outcome, Error>, out: &Kept<'_>, err: &Kept<'_>) -> Self {
        let mut finished = Self { status: ended.map(|outcome| outcome.status), report: Value::Null, last_words: String::new() };
        // What cannot be read again is as what was not said: the report is missing.
        let tail = |of: &Kept<'_>, most| of.tail(most).unwrap_or_default();
        finished.report = report(&tail(if finished.is_done() { out } else { err }, REPORT_BYTES));
        let said = tail(err, LAST_WORDS as u64);
        let last = said.split(|b| *b == b'\n').rev().map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        finished.last_words = String::from_utf8_lossy(last.unwrap_or_default()).into_owned();
        finished
    }

    /// One that was not begun, as a signal had asked for an end.
    pub fn asked(host: &str, signal: u8) -> Self {
        let status = Err(asked(host, signal));
        Self { status, report: Value::Null, last_words: String::new() }
    }

    /// Done, if with something named that was left out.
    pub fn is_done(&self) -> bool {
        matches!(self.status, Ok(0 | 4))
    }

    /// The last document of standard output, or the last object of standard error. Null where there is none, or it is larger than any report
    /// that is kept.
    pub fn json(&self) -> &Value {
        &self.report
    }

    /// Whether the verb may have been done all the same: lost, killed, stuck.
    pub fn is_open(&self) -> bool {
        self.status.as_ref().map_or(true, |status| *status == 7 || *status >= 128 && !is_status(*status))
    }

    /// Whether the machine does not have the session.
    pub fn lacks_session(&self) -> bool {
        matches!(self.status, Ok(1)) && self.report["message"].as_str().is_some_and(|message| message.starts_with("no session "))
    }

    /// Why it failed, in a line.
    pub fn why(&self) -> String {
        match (&self.status, &self.report["message"]) {
            (Err(error), _) => error.to_string(),
            (_, Value::String(message)) => message.clone(),
            (Ok(status), _) => format!("it ended with {status}: {}", self.last_words),
        }
    }
}

/// What is true of a machine at the end.
pub enum Fate {
    /// The verb is done there.
    Done,
    /// It was done, and is taken back, as its report tells.
    TakenBack(Value),
    /// It was ready, and was told to stop: nothing was changed.
    Stopped,
    /// It was not even asked, as another one had failed by then.
    PassedOver,
    /// It could not be done: nothing was changed, or it was undone.
    Failed,
    /// It cannot be reached: nothing was done there, as it was not told to go.
    Untouched,
    /// It cannot be reached, and may have done it.
    Unknown(String),
}

/// The last line that is a document.
fn report(tail: &[u8]) -> Value {
    let values = |line: &[u8]| line.iter().filter(|b| matches!(b, b',' | b'[' | b'{')).count();
    let fits = |line: &&[u8]| values(line) <= REPORT_VALUES;
    let mut lines = tail.split(|b| *b == b'\n').rev().filter(fits);
    lines.find_map(|line| serde_json::from_slice(line).ok()).unwrap_or(Value::Null)
}

/// Carries a request out, and keeps what is said; `look` sees the beginning of standard output as it grows.
pub fn gather(fs: &Fs, link: &Link<'_>, request: &Request, input: Option<Input>, look: &mut dyn FnMut(&[u8])) -> Finished {
    let (mut out, mut err) = (Kept::new(fs), Kept::new(fs));
    let ended = link.carry_out(request, input, &mut |stream, bytes| match stream {
        Stream::Output => {
            let kept = out.add(bytes);
            look(out.head());
            kept
        }
        Stream::Errors => err.add(bytes),
    });
    Finished::of(ended, &out, &err)
}
