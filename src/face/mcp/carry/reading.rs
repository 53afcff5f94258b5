//! The tools that look, and those that change nothing real in a moment: a verb each, its document cut to what a model can read.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::child::failed;
use super::child::named;
use super::child::not_started;
use super::child::{Child, Lines, Ran, Started, Wanted};
use crate::compare::escape_terminal;
use crate::face::mcp::carrier::{Asked, Outcome, Told};
use crate::face::mcp::page;
use crate::face::mcp::tools::Name;

const LONGEST: usize = 32 << 20;
/// The most characters of a line of a patch.
const COLUMNS: usize = 400;
/// The most characters of a message, a prompt or a command in a document.
const WORDS: usize = 200;
/// The first letter of a cursor into a patch. Others are hexadecimal.
const IN_PATCH: &str = "p";

pub fn look(child: &Child, asked: &Asked, told: &Told) -> Outcome {
    let cursor = asked.text("cursor");
    let is_log_of_session = asked.tool.is == Name::Log && asked.text("session").is_some();
    if is_log_of_session && !asked.texts("paths").is_empty() {
        return Outcome::refused("usage", "log takes session or paths, not both")
            .with("remedy", "call it with paths alone: each line names its session; or with session alone");
    }
    if let Some(line) = cursor.and_then(|cursor| cursor.strip_prefix(IN_PATCH)?.parse::<u32>().ok())
        && let Some(words) = patch_of(asked)
    {
        return match patch(child, &words, line as usize, told) {
            Ok(patch) => Outcome::done(json!({ "schema": 2, "patch": patch })),
            Err(outcome) => outcome,
        };
    }
    let words = words(asked);
    let ran = match run(child, &words, told) {
        Ok(ran) => ran,
        Err(error) => return not_started(&error),
    };
    if ran.out.total > LONGEST as u64 {
        return Outcome::refused("refused", "there is too much of it").with("remedy", "name paths");
    }
    let Ok(mut document @ Value::Object(_)) = serde_json::from_slice(&ran.out.bytes) else { return failed(&ran) };
    if is_log_of_session && document.get("entries").is_none() {
        return Outcome::refused("refused", "no session is called so").with("remedy", "for a path give paths");
    }
    if let Err(why) = shorten(asked, &mut document, cursor) {
        return Outcome::refused("refused", why);
    }
    if cursor.is_none()
        && let Some(words) = patch_of(asked)
    {
        match patch(child, &words, 0, told) {
            Ok(patch) => document["patch"] = patch,
            Err(outcome) => return outcome,
        }
    }
    Outcome::done(document)
}

fn run(child: &Child, words: &[OsString], told: &Told) -> std::io::Result<Ran> {
    child.run(&whole(words), told)
}

/// A call whose whole document is wanted.
pub fn whole(words: &[OsString]) -> Started<'_> {
    Started { words, cwd: None, out: Wanted::First(LONGEST), err: Wanted::Last(64 << 10), within: None }
}

/// The call that gives the tool's document.
fn words(asked: &Asked) -> Vec<OsString> {
    let mut words: Vec<OsString> = match asked.tool.is {
        Name::Status => vec!["status".into(), "--brief".into()],
        Name::Diff => vec!["diff".into(), "--brief".into()],
        Name::Steps => vec!["steps".into(), "--brief".into()],
        Name::Turns => vec!["agent".into(), "turns".into(), "--brief".into()],
        Name::Rewind => vec!["rewind".into()],
        Name::Log => vec!["log".into()],
        Name::SnapshotCreate => vec!["snapshot".into(), "create".into()],
        Name::SnapshotList => vec!["snapshot".into(), "list".into()],
        Name::SnapshotDiff => vec!["snapshot".into(), "diff".into(), "--stat".into()],
        // These are none of this file's.
        Name::HoldRun | Name::Commit | Name::Rollback | Name::Redo | Name::SnapshotRestore => Vec::new(),
    };
    words.push("--json".into());
    let is_brief = matches!(asked.tool.is, Name::Status | Name::Diff | Name::Steps | Name::Turns);
    words.extend(asked.text("cursor").filter(|_| is_brief).map(|cursor| named("--after", cursor)));
    words.extend(objects(asked));
    words
}

/// The call that gives the patch, for a tool that has one.
fn patch_of(asked: &Asked) -> Option<Vec<OsString>> {
    let mut words: Vec<OsString> = match asked.tool.is {
        Name::Diff => vec!["diff".into()],
        Name::SnapshotDiff => vec!["snapshot".into(), "diff".into()],
        _ => return None,
    };
    words.extend(objects(asked));
    Some(words)
}

/// The objects of a call, as options and words.
fn objects(asked: &Asked) -> Vec<OsString> {
    let mut words = Vec::new();
    for name in ["dir", "message", "label", "agent"] {
        words.extend(asked.text(name).map(|value| named(&format!("--{name}"), value)));
    }
    let paths: Vec<OsString> = asked.texts("paths").into_iter().map(path).collect();
    let session = asked.text("session").or((asked.tool.is == Name::Diff && !paths.is_empty()).then_some("last"));
    match asked.tool.is {
        Name::Diff => {
            for name in ["step", "since"] {
                words.extend(asked.number(name).map(|n| named(&format!("--{name}"), n.to_string())));
            }
            words.push("--".into());
            words.extend(session.map(OsString::from));
            words.extend(paths);
        }
        Name::SnapshotDiff => {
            words.extend([asked.text("snapshot"), asked.text("other")].into_iter().flatten().map(OsString::from));
            words.push("--".into());
            words.extend(paths);
        }
        Name::Rewind => {
            words.extend(session.map(OsString::from));
            words.extend(asked.number("step").map(|n| n.to_string().into()));
        }
        _ => {
            words.push("--".into());
            words.extend(session.map(OsString::from));
            words.extend(paths);
        }
    }
    words
}

/// A path that is read as nothing else: neither as an option nor as a session.
fn path(path: &str) -> OsString {
    if Path::new(path).is_absolute() { path.into() } else { Path::new(".").join(path).into() }
}

/// Cuts what may be long.
fn shorten(asked: &Asked, document: &mut Value, cursor: Option<&str>) -> Result<(), &'static str> {
    let shortened = shorten_lists(asked, document, cursor);
    shorten_texts(document);
    shortened
}

/// Cuts the words of people and agents in a document, however deep they stand. Paths are left as they are.
fn shorten_texts(document: &mut Value) {
    match document {
        Value::Object(keys) => {
            for (key, value) in keys {
                match value {
                    Value::String(text) if matches!(&**key, "message" | "prompt" | "command") => *text = first(text, WORDS),
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

fn shorten_lists(asked: &Asked, document: &mut Value, cursor: Option<&str>) -> Result<(), &'static str> {
    match asked.tool.is {
        Name::Log if document.get("touched").is_some() => page::cut(document, "touched", cursor),
        Name::Log => page::cut(document, "entries", cursor),
        Name::SnapshotList => page::cut(document, "snapshots", cursor),
        Name::SnapshotDiff => {
            let rows = document.get_mut("changes").and_then(Value::as_array_mut).into_iter().flatten();
            for row in rows.filter_map(Value::as_object_mut) {
                row.remove("before");
                row.remove("after");
            }
            page::cut(document, "changes", cursor)
        }
        Name::SnapshotCreate => {
            count(document, &["unread", "left", "repositories", "damaged", "unfitted", "pruned"]);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Cuts lists of a document, and counts under `more` what is left out.
pub fn count(document: &mut Value, lists: &[&str]) {
    let mut more = Map::new();
    for name in lists {
        let Some(list) = document.get_mut(*name).and_then(Value::as_array_mut).filter(|list| list.len() > page::MOST) else {
            continue;
        };
        more.insert((*name).to_owned(), (list.len() - page::MOST).into());
        list.truncate(page::MOST);
    }
    if !more.is_empty() {
        document["more"] = more.into();
    }
}

/// Some lines of a patch, harmless, and the cursor for more.
fn patch(child: &Child, words: &[OsString], from: usize, told: &Told) -> Result<Value, Outcome> {
    let Lines { lines, has_more, is_failed } = child.lines(words, from, page::MOST).map_err(|error| not_started(&error))?;
    if lines.is_empty() && is_failed {
        // Why, as a document.
        let mut words = words.to_vec();
        words.insert(0, "--json".into());
        return Err(run(child, &words, told).map_or_else(|error| not_started(&error), |ran| failed(&ran)));
    }
    if lines.is_empty() && from > 0 {
        return Err(Outcome::refused("refused", "the patch has no such line: call without cursor"));
    }
    let shown = |line: &Vec<u8>| first(&String::from_utf8_lossy(&escape_terminal::content(line)), COLUMNS);
    let mut patch = json!({ "line": from, "lines": lines.iter().map(shown).collect::<Vec<_>>() });
    if has_more {
        patch["next"] = format!("{IN_PATCH}{}", from + page::MOST).into();
    }
    Ok(patch)
}
