//! How far one machine is, what it said, and what became of it.

use std::ffi::OsString;

use serde_json::Value;

use crate::fs::interrupt::is_status;
use crate::remote::Error;
use crate::remote::frame::Outcome;
use crate::remote::link::{Input, Link, Stream};
use crate::remote::request::{Request, Word};

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
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Finished {
    fn of(ended: Result<Outcome, Error>, out: Vec<u8>, err: Vec<u8>) -> Self {
        Self { status: ended.map(|outcome| outcome.status), out, err }
    }

    /// One that was not begun, as a signal had asked for an end.
    pub fn asked(host: &str, signal: u8) -> Self {
        Self::of(Err(Error::Asked { host: host.to_owned(), signal }), Vec::new(), Vec::new())
    }

    /// Done, if with something named that was left out.
    pub fn is_done(&self) -> bool {
        matches!(self.status, Ok(0 | 4))
    }

    /// The last document of standard output, or the last object of standard error.
    pub fn json(&self) -> Value {
        let last = |bytes: &[u8]| bytes.split(|b| *b == b'\n').rev().find_map(|line| serde_json::from_slice::<Value>(line).ok());
        let first = if self.is_done() { last(&self.out) } else { last(&self.err) };
        first.unwrap_or(Value::Null)
    }

    /// Whether the verb may have been done all the same: lost, killed, stuck.
    pub fn is_open(&self) -> bool {
        self.status.as_ref().map_or(true, |status| *status == 7 || *status >= 128 && !is_status(*status))
    }

    /// Whether the machine does not have the session.
    pub fn lacks_session(&self) -> bool {
        let json = self.json();
        matches!(self.status, Ok(1)) && json["message"].as_str().is_some_and(|message| message.starts_with("no session "))
    }

    /// Why it failed, in a line.
    pub fn why(&self) -> String {
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

/// Carries a request out, and keeps what is said; `look` sees standard output as it grows.
pub fn gather(link: &Link<'_>, request: &Request, input: Option<Input>, look: &mut dyn FnMut(&[u8])) -> Finished {
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
