//! `hold_run`: a command as a step of a session, by `recant run --session`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::child;
use super::child::failed;
use super::child::named;
use super::child::not_started;
use super::child::{Child, Started, Stream, Wanted};
use super::reading;
use crate::capture::inside;
use crate::compare::escape_terminal;
use crate::face::mcp::carrier::{Asked, Outcome, Told};
use crate::face::mcp::page;

/// The most bytes of each stream in a result.
const MOST: usize = 2 << 10;
/// The bytes of messages that are kept: the command's own, and recant's document behind them.
const MESSAGES: usize = 256 << 10;
/// How long it waits for another command in its session: a model may call twice at once.
const WAIT: &str = "10m";

/// Runs the command. `own`: the session, if the call names none.
pub fn run(child: &Child, asked: &Asked, own: &str, told: &Told) -> Outcome {
    if let Some(id) = inside() {
        let why = format!("this is inside the run of session {id}, which holds what every command changes: run it by yourself");
        return Outcome::refused("refused", why);
    }
    let command: Vec<&str> = match (asked.texts("command"), asked.text("shell")) {
        (words, None) if !words.is_empty() => words,
        (words, Some(line)) if words.is_empty() => vec!["/bin/sh", "-c", line],
        _ => return Outcome::refused("usage", "give command, a list of words, or shell, a line; one of the two"),
    };
    let cwd = asked.text("cwd").map(Path::new);
    if let Some(missing) = cwd.filter(|cwd| !cwd.is_dir()) {
        return Outcome::refused(
            "usage",
            format!("cwd: {} is no directory", escape_terminal::message(&missing.display().to_string())),
        );
    }
    let session = asked.text("session").unwrap_or(own);
    let mut words: Vec<OsString> = ["run", "--json"].map(OsString::from).into();
    words.extend([named("--session", session), named("--wait", WAIT)]);
    words.extend([named("--parent", std::process::id().to_string()), "--".into()]);
    words.extend(command.iter().map(OsString::from));
    let within = asked.number("timeout").map(Duration::from_secs);
    let call = Started { words: &words, cwd, out: Wanted::Last(2 * MOST), err: Wanted::Last(MESSAGES), within };
    let ran = match child.run(&call, told) {
        Ok(ran) => ran,
        Err(error) => return not_started(&error),
    };
    let Messages { document, notes, own } = Messages::of(&ran.err.bytes);
    let Some(mut document) = document else {
        return match ran.timed_out {
            true if ran.is_killed() => {
                Outcome::refused("refused", "the command did not end when its time was over, and was killed")
                    .with("state", format!("what it has written by then is held in session {session}"))
            }
            true => {
                let told = failed(&ran);
                // `run` ends so if it has not started the command, and then prints no result.
                let is_started = !matches!(ran.status.code(), Some(125..=127));
                let what = if is_started { "was asked to end" } else { "was not started" };
                told.with("state", format!("the command {what}: its time was over"))
            }
            false => failed(&ran),
        };
    };
    let ((out, is_out_cut), (err, is_err_cut)) = (tail(&ran.out.bytes), tail(&own));
    let is_whole = |stream: &Stream| stream.total == stream.bytes.len() as u64;
    let err_bytes = ran.err.total.saturating_sub((ran.err.bytes.len() - own.len()) as u64);
    document["output"] = json!({
        "stdout": out, "stdout_bytes": ran.out.total,
        "stderr": err, "stderr_bytes": err_bytes,
        "cut": is_out_cut || is_err_cut || !is_whole(&ran.out) || !is_whole(&ran.err),
    });
    document["notes"] = notes.into();
    document["timed_out"] = ran.timed_out.into();
    document["session_name"] = session.into();
    reading::count(&mut document, &["notes"]);
    Outcome::done(document)
}

/// The messages of a run, taken apart.
struct Messages {
    /// recant's document, which is the last line.
    document: Option<Value>,
    /// The texts of recant's notes and warnings.
    notes: Vec<Value>,
    own: Vec<u8>,
}

impl Messages {
    fn of(bytes: &[u8]) -> Self {
        /// How the document begins. A command's last line may have no newline.
        const BEGINS: &[u8] = br#"{"schema":2,"session":"#;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let last = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let at = bytes[last..].windows(BEGINS.len()).rposition(|part| part == BEGINS).map(|at| last + at);
        let document =
            at.and_then(|at| serde_json::from_slice(&bytes[at..]).ok()).filter(|value: &Value| value["ending"].is_object());
        let rest = if document.is_some() { &bytes[..at.unwrap_or(0)] } else { bytes };
        let (mut notes, mut own) = (Vec::new(), Vec::new());
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            let said = child::documents(line).next();
            let text = said.as_ref().and_then(|said| said["note"].as_str().or(said["warning"].as_str()));
            match text {
                Some(text) => notes.push(text.into()),
                None => own.extend_from_slice(line),
            }
        }
        Self { document, notes, own }
    }
}

/// The last lines of an output, harmless; true if there were more.
fn tail(bytes: &[u8]) -> (String, bool) {
    let ends = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = ends.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').nth(page::MOST - 1).map_or(0, |(at, _)| at + 1);
    let text = String::from_utf8_lossy(&escape_terminal::content(&bytes[line..])).into_owned();
    let from = (text.len().saturating_sub(MOST)..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    (text[from..].to_owned(), line > 0 || from > 0)
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::carry::hold_run::*;

    const DOCUMENT: &str = r#"{"schema":2,"session":"s","ending":{"exited":0}}"#;

    #[test]
    fn recants_lines_are_told_from_the_commands() {
        let text = format!("one\n{{\"schema\":2,\"note\":\"n\"}}\n{{\"schema\":2}}\ntwo{DOCUMENT}\n");
        let messages = Messages::of(text.as_bytes());
        assert_eq!(messages.document.unwrap()["session"], "s");
        assert_eq!(messages.notes, ["n"]);
        assert_eq!(messages.own, b"one\n{\"schema\":2}\ntwo");
        let without = Messages::of(b"x\n{\"schema\":2,\"kind\":\"busy\",\"message\":\"m\"}\n");
        assert!(without.document.is_none());
    }

    #[test]
    fn the_last_lines_are_kept_and_shown_harmless() {
        let many: String = (0..50).map(|n| format!("{n}\n")).collect();
        assert_eq!(tail(many.as_bytes()), ((30..50).map(|n| format!("{n}\n")).collect::<String>(), true));
        assert_eq!(tail(b"\x1b[2Jx\xff\n"), ("^[[2Jx<FF>\n".into(), false));
        for long in [vec![b'x'; 9000], "ä".repeat(3000).into_bytes()] {
            let (text, is_cut) = tail(&long);
            assert_eq!((text.len(), is_cut), (MOST, true));
        }
        assert_eq!(tail(b""), (String::new(), false));
    }
}
