//! Values into JSON: the frame of documents, and messages about them. The fields of a document are those of the verb's own value: `verb/VERB.rs`.

use std::io::Write;

use serde::Serialize;

use crate::tree::json;

/// The version of all JSON that is printed: docs/json.md.
const SCHEMA: u32 = 2;

/// A JSON document: a body, and the version of its form.
#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// A message about a result, as one JSON object on a line of standard error.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    Note(String),
    Warning(String),
    Question(String),
}

/// A note as JSON, for text from elsewhere, line by line, as from ssh.
pub fn note_line(text: &str) -> Vec<u8> {
    line(&Told::Note(text.to_owned()))
}

/// Writes a document on a line. It is never in memory as a whole.
pub fn print(to: impl Write, body: &impl Serialize) {
    json::print_line(to, &Document { schema: SCHEMA, body });
}

/// The text of a document.
pub fn printed(body: &impl Serialize) -> Vec<u8> {
    json::printed(&Document { schema: SCHEMA, body })
}

/// The text of a document, with its newline.
pub fn line(body: &impl Serialize) -> Vec<u8> {
    let mut line = printed(body);
    line.push(b'\n');
    line
}
