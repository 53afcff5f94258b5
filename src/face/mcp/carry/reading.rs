//! The tools that look, and those that change nothing real in a moment: a verb each, its document cut to what a model can read.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::child::failed;
use super::child::named;
use super::child::not_started;
use super::child::{Child, LONGEST, Ran, Started};
use super::outside::review;
use super::pages;
use super::rows;
use crate::face::mcp::carrier::{Asked, Outcome, Told};
use crate::face::mcp::page;
use crate::face::mcp::tools::Name;
use crate::face::text::decision::UNDECIDED;
use crate::fs::AbsPath;

/// Seconds that a person is waited for: less than clients wait for a tool.
const PATIENCE: u64 = 50;
/// The most characters of a message, a prompt or a command in a document.
const WORDS: usize = 200;
/// The most items of a list beside that for which a tool was called.
const MOST: usize = 20;

/// Carries a tool out. `session`: the one that is meant; `here`: the working directory.
pub fn look(child: &Child, (asked, here): (&Asked, Option<&AbsPath>), session: Option<&str>, told: &Told) -> Outcome {
    let is_log_of_session = asked.tool.is == Name::Log && session.is_some();
    if is_log_of_session && !asked.texts("paths").is_empty() {
        return Outcome::refused("usage", "log takes session or paths, not both");
    }
    let is_of = |name: &str| asked.arguments.contains_key(name);
    let not_of_snapshots = ["step", "since", "session", "full"];
    if is_of("step") && is_of("since") || is_of("snapshot") && not_of_snapshots.into_iter().any(is_of) {
        return Outcome::refused("usage", "give step, since or snapshot, and nothing else beside snapshot");
    }
    let words = words(asked, session);
    match asked.tool.is {
        Name::Diff => return pages::of(child, asked, &words, "patch", told),
        Name::Cat => return pages::of(child, asked, &words, "text", told),
        _ => {}
    }
    let ran = match child.run(&Started::whole(&words), told) {
        Ok(ran) => ran,
        Err(error) => return not_started(&error),
    };
    if ran.out.total > LONGEST as u64 {
        return Outcome::refused("refused", "the answer would be too long").with("remedy", "name paths");
    }
    let Ok(mut document @ Value::Object(_)) = serde_json::from_slice(&ran.out.bytes) else { return failed(&ran) };
    if is_log_of_session && document.get("entries").is_none() {
        return Outcome::refused("refused", "no session has that name or id").with("remedy", "for a path, give paths");
    }
    match shorten((asked, here), &mut document) {
        Ok(()) => Outcome::done(document),
        Err(refused) => refused,
    }
}

/// Waits for a person's decision. Without one in its time the answer is the command that the person may need to be told.
pub fn wait(child: &Child, asked: &Asked, session: Option<&str>, told: &Told) -> Outcome {
    let mut outcome = look(child, (asked, None), session, told);
    if outcome.document["result"] == UNDECIDED {
        outcome = outcome.with("command", String::from(review(session)));
    }
    outcome
}

/// The sessions of this project, the newest first, as `list --json` has them.
pub fn sessions(child: &Child, told: &Told) -> Result<Vec<Value>, Outcome> {
    let ran: Ran = child.run(&Started::whole(&["list".into(), "--json".into()]), told).map_err(|error| not_started(&error))?;
    match serde_json::from_slice::<Value>(&ran.out.bytes) {
        Ok(mut document) if document["sessions"].is_array() => match document["sessions"].take() {
            Value::Array(sessions) => Ok(sessions),
            _ => Ok(Vec::new()),
        },
        _ => Err(failed(&ran)),
    }
}

/// The call that gives the tool's document or text.
fn words(asked: &Asked, session: Option<&str>) -> Vec<OsString> {
    let verb: &[&str] = match asked.tool.is {
        Name::Sessions => &["list", "--json"],
        Name::Changes if asked.is_set("full") => &["diff", "--stat", "--full", "--json"],
        Name::Changes => &["diff", "--stat", "--json"],
        Name::Diff if asked.text("snapshot").is_some() => &["snapshot", "diff"],
        Name::Diff if asked.is_set("full") => &["diff", "--full"],
        Name::Diff => &["diff"],
        Name::Cat => &["cat"],
        Name::Steps => &["steps", "--json"],
        Name::Rewind => &["rewind", "--json"],
        Name::Fork => &["fork", "--json"],
        Name::Discard => &["discard", "--json"],
        Name::Snapshot => &["snapshot", "create", "--json"],
        Name::Await => &["await", "--json"],
        Name::Log => &["log", "--json"],
        // These are none of this file's.
        Name::HoldRun | Name::Commit => &[],
    };
    let mut words: Vec<OsString> = verb.iter().map(OsString::from).collect();
    for name in ["message", "label", "name"] {
        words.extend(asked.text(name).map(|value| named(&format!("--{name}"), value)));
    }
    let is_of_steps = matches!(asked.tool.is, Name::Changes | Name::Diff);
    for name in ["step", "since"] {
        words.extend(asked.number(name).filter(|_| is_of_steps).map(|n| named(&format!("--{name}"), n.to_string())));
    }
    if asked.tool.is == Name::Await {
        words.push(named("--for", format!("{}s", asked.number("timeout").unwrap_or(PATIENCE))));
    }
    words.extend(asked.is_set("before").then(|| "--before".into()));
    words.extend(asked.text("snapshot").map(OsString::from));
    words.push("--".into());
    words.extend(session.map(OsString::from));
    words.extend(asked.number("step").filter(|_| !is_of_steps).map(|n| n.to_string().into()));
    words.extend(asked.text("path").into_iter().chain(asked.texts("paths")).map(path));
    words
}

/// A path that is read as nothing else: neither as an option nor as a session.
fn path(path: &str) -> OsString {
    if Path::new(path).is_absolute() { path.into() } else { Path::new(".").join(path).into() }
}

/// Cuts what may be long, and leaves out what a model has no use for.
fn shorten((asked, here): (&Asked, Option<&AbsPath>), document: &mut Value) -> Result<(), Outcome> {
    let cursor = asked.text("cursor");
    match asked.tool.is {
        Name::Changes => *document = changes(document.take(), here),
        Name::Steps => *document = steps(document),
        _ => {}
    }
    shorten_texts(document);
    drop_none(document, &["more", "elsewhere", "unreadable", "counts", "project", "times"]);
    match asked.tool.is {
        Name::Changes => page::cut(document, "changes", cursor),
        Name::Steps => page::cut(document, "steps", cursor),
        Name::Sessions => {
            pick(document, "sessions", &["id", "name", "status", "changes", "command", "by"]);
            page::cut(document, "sessions", cursor)
        }
        Name::Log if document.get("touched").is_some() => {
            const ROW: [&str; 12] = [
                "what",
                "time",
                "session",
                "step",
                "turn",
                "snapshot",
                "directory",
                "by",
                "command",
                "standing",
                "change",
                "paths",
            ];
            pick(document, "touched", &ROW);
            page::cut(document, "touched", cursor)
        }
        Name::Log => {
            pick(
                document,
                "entries",
                &["time", "verb", "session", "result", "paths", "reason", "name", "command", "by", "restore", "notes"],
            );
            page::cut(document, "entries", cursor)
        }
        _ => {
            count(
                document,
                &["unread", "left", "repositories", "damaged", "unfitted", "pruned", "notes", "discarded", "skipped", "acts"],
            );
            Ok(())
        }
    }
}

/// Makes rows of a summary, or of all changes.
fn changes(mut document: Value, here: Option<&AbsPath>) -> Value {
    let head = ["from", "to"].map(|key| document[key].take());
    let session = document["session"].take();
    let summary = Some(document["summary"].take()).filter(Value::is_object).unwrap_or(document);
    let [from, to] = head;
    json!({
        "session": session["id"], "status": session["status"], "from": from, "to": to, "times": summary["times"],
        "changes": rows::of_changes(summary, here),
    })
}

fn steps(document: &Value) -> Value {
    let (session, running) = (&document["session"], &document["running"]);
    let rows: Vec<Value> = document["steps"].as_array().into_iter().flatten().map(rows::of_step).collect();
    let running = running.is_object().then(|| json!({ "n": running["n"], "command": rows::words(&running["argv"]) }));
    json!({ "session": session["id"], "status": session["status"], "head": document["head"], "running": running, "steps": rows })
}

/// Cuts the words of people and agents in a document, however deep they stand. Paths are left as they are.
fn shorten_texts(document: &mut Value) {
    match document {
        Value::Object(keys) => {
            for (key, value) in keys {
                match value {
                    Value::String(text) if matches!(&**key, "message" | "prompt" | "command" | "reason") => {
                        *text = first(text, WORDS)
                    }
                    value => shorten_texts(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten_texts),
        _ => {}
    }
}

/// The first characters of a text, with a mark if there are more.
fn first(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Leaves out counts that are 0, and what a model knows.
fn drop_none(document: &mut Value, keys: &[&str]) {
    let tells = |key: &str, value: &Value| !keys.contains(&key) || value.as_u64().is_some_and(|count| count > 0);
    document.as_object_mut().into_iter().for_each(|document| document.retain(|key, value| tells(key, value)));
}

/// Leaves these keys alone in each item of a list.
fn pick(document: &mut Value, list: &str, keys: &[&str]) {
    let rows = document.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    for row in rows.filter_map(Value::as_object_mut) {
        row.retain(|key, _| keys.contains(&&**key));
    }
}

/// Cuts lists of a document, and counts under `more` what is left out.
pub fn count(document: &mut Value, lists: &[&str]) {
    let mut more = Map::new();
    for name in lists {
        let Some(list) = document.get_mut(*name).and_then(Value::as_array_mut).filter(|list| list.len() > MOST) else {
            continue;
        };
        more.insert((*name).to_owned(), (list.len() - MOST).into());
        list.truncate(MOST);
    }
    if !more.is_empty() {
        document["more"] = more.into();
    }
}
