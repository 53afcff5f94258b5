//! Errors in the settings' text, in words for people.

use std::fmt::Display;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::error::{Error, Kind, command};

/// The error of a file that is no TOML, or of a value with a wrong type or meaning.
pub fn refused(path: &str, why: impl Display) -> Error {
    Error::at(Kind::Refused, path, why)
}

/// The error of an unknown key; names the most similar known one.
pub fn unknown_key(path: &str, key: &str, near: &str) -> Error {
    let error = refused(path, format_args!("unknown key {key:?}; the nearest known one is {near:?}"));
    error.with_remedy(command("config") + " shows the known keys once the file is mended")
}

/// Our words for what is wanted, by serde's and toml's words for it.
const WANTED: [(&str, &str); 8] = [
    ("a string", "text in quotes"),
    ("string or table", "text in quotes"),
    ("path string", "a path in quotes"),
    ("a sequence", "a list, as in ['a', 'b'],"),
    ("a boolean", "true or false"),
    ("a map", "a table"),
    ("a size: a number of bytes, or '50M'", "a size, as in '50M' or 4096,"),
    ("a command: text, or a list of words", "a command, as in 'ssh -v' or ['ssh', '-v'],"),
];

/// The line, the key and what is wanted there: `line 2: checkpoint.max_files: a whole number is wanted, not 'x'`. If `text` is not TOML:
/// the line, and the parser's message.
pub fn explain(text: &str, error: &toml::de::Error) -> String {
    let span = error.span().unwrap_or_default();
    let line = text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1);
    let message = error.message().lines().next().unwrap_or("it is no TOML");
    let table = DeTable::parse(text).ok();
    let key = table.and_then(|table| key_at(table.get_ref(), &span));
    match key.zip(wanted(message)) {
        Some((key, wanted)) => {
            let found = text.get(span).unwrap_or_default().lines().next().unwrap_or_default();
            let found: String = found.chars().take(40).collect();
            format!("line {line}: {key}: {wanted} is wanted, not {found}")
        }
        None => format!("line {line}: {message}"),
    }
}

/// The key of the value at `span`: `checkpoint.max_files`; for an item of a list, the key of the list.
fn key_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(name, value)| {
        let below = match value.get_ref() {
            DeValue::Table(below) => key_at(below, span).map(|below| format!("{}.{below}", name.get_ref())),
            _ => None,
        };
        let is_here = || value.span().start <= span.start && span.end <= value.span().end;
        below.or_else(|| is_here().then(|| name.get_ref().to_string()))
    })
}

/// Our words for what serde's message says was expected.
fn wanted(message: &str) -> Option<String> {
    let expected = message.split_once("expected ").map(|(_, words)| words).or_else(|| message.strip_prefix("wanted "))?;
    if expected.starts_with("one of ") || expected.starts_with('`') {
        return Some(expected.replace('`', "'"));
    }
    let number = ["u8", "u32", "u64", "usize", "i64"].contains(&expected).then_some("a whole number");
    let table = expected.starts_with("struct ").then_some("a table");
    let known = || WANTED.iter().find(|(theirs, _)| *theirs == expected).map(|(_, ours)| *ours);
    number.or(table).or_else(known).map(str::to_owned)
}
