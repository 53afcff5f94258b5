//! The progress of one machine, its output, and its fate.

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

/// The progress of a machine, and its output.
#[derive(Default)]
pub struct Row {
    /// True if it reported ready.
    pub ready: bool,
    /// True if a part of the session was on its tree before.
    pub partial: bool,
    /// True if it was told to go on.
    pub told_to_go: bool,
    /// True if the session was sent to it.
    pub sent: bool,
    /// True if it was not asked at all, as another one had failed.
    pub passed_over: bool,
    /// The end of the verb there, once it has ended.
    pub ended: Option<Finished>,
    /// Its fate, set at the end.
    pub result: Option<Fate>,
}

impl Row {
    /// The paths for a rollback of this call's own work and nothing before it: empty for the whole session, else those that the machine
    /// named. `None` if its own work cannot be told from earlier work.
    pub fn own_paths(&self) -> Option<Vec<OsString>> {
        if !self.partial {
            return Some(Vec::new());
        }
        let report = self.ended.as_ref().filter(|ended| ended.is_done())?.json();
        let path = |row: &Value| {
            // Objects in such a directory may be earlier work.
            let whole = row["done"] != "metadata" || row["kind"] != "directory";
            whole.then(|| serde_json::from_value::<Word>(row["path"].clone()).ok()?.to_os()).flatten()
        };
        report["paths"].as_array().filter(|rows| !rows.is_empty())?.iter().map(path).collect()
    }
}

/// The end of a verb on a machine.
pub struct Finished {
    /// Its exit status, or the error if it has none.
    pub status: Result<u8, Error>,
    report: Value,
    last_words: String,
}

/// The most bytes and values of a machine's report: it is in memory as a whole.
const REPORT_BYTES: u64 = 16 << 20;
const REPORT_VALUES: usize = 1 << 20;

/// The most bytes of a machine's last message.
const LAST_WORDS: usize = 4 << 10;

impl Finished {
    fn of(ended: Result<Outcome, Error>, out: &Kept<'_>, err: &Kept<'_>) -> Self {
        let mut finished = Self { status: ended.map(|outcome| outcome.status), report: Value::Null, last_words: String::new() };
        // If it cannot be read again, the report is missing.
        let tail = |of: &Kept<'_>, most| of.tail(most).unwrap_or_default();
        finished.report = report(&tail(if finished.is_done() { out } else { err }, REPORT_BYTES));
        let said = tail(err, LAST_WORDS as u64);
        let last = said.split(|b| *b == b'\n').rev().map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        finished.last_words = String::from_utf8_lossy(last.unwrap_or_default()).into_owned();
        finished
    }

    /// The end of a machine that was not begun because of a signal.
    pub fn asked(host: &str, signal: u8) -> Self {
        let status = Err(asked(host, signal));
        Self { status, report: Value::Null, last_words: String::new() }
    }

    /// True if the verb was done; it may have left out something that is named.
    pub fn is_done(&self) -> bool {
        matches!(self.status, Ok(0 | 4))
    }

    /// The last document of standard output, or the last object of standard error. Null if there is none, or if it is larger than a
    /// report may be.
    pub fn json(&self) -> &Value {
        &self.report
    }

    /// True if the verb may have been done nevertheless: lost, killed, stuck.
    pub fn is_open(&self) -> bool {
        self.status.as_ref().map_or(true, |status| *status == 7 || *status >= 128 && !is_status(*status))
    }

    /// True if the machine does not have the session.
    pub fn lacks_session(&self) -> bool {
        matches!(self.status, Ok(1)) && self.report["message"].as_str().is_some_and(|message| message.starts_with("no session "))
    }

    /// The reason of its failure, in a line.
    pub fn why(&self) -> String {
        match (&self.status, &self.report["message"]) {
            (Err(error), _) => error.to_string(),
            (_, Value::String(message)) => message.clone(),
            (Ok(status), _) => format!("it ended with {status}: {}", self.last_words),
        }
    }
}

/// The fate of a machine.
pub enum Fate {
    /// The verb is done there.
    Done,
    /// It was done, and is rolled back, as this report tells.
    TakenBack(Value),
    /// It was ready and was told to stop: nothing was changed.
    Stopped,
    /// It was not even asked, as another one had failed.
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

/// Carries out a request, and keeps the output. `look` sees the beginning of standard output as it grows.
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
