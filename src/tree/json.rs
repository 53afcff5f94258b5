//! JSON as in the store's files and standard output: a value after another, or a line each.

use std::io::Write;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::fs::is_unfit;

pub fn text(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    append(&mut bytes, value);
    bytes
}

/// The text of `value`, and a newline.
pub fn line(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_line(&mut bytes, value);
    bytes
}

/// Appends the text of `value`, and a newline.
pub fn append_line(bytes: &mut Vec<u8>, value: &impl Serialize) {
    append(&mut *bytes, value);
    bytes.push(b'\n');
}

/// The text of `value`, as [`print_line`] writes it.
pub fn printed(value: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::new();
    print_line(&mut line, value);
    line.pop();
    line
}

/// Writes the text of `value`, and a newline, to a writer that never fails. Also for people: escapes characters that a terminal takes for
/// commands, or that would not show as they are.
pub fn print_line(mut to: impl Write, value: &impl Serialize) {
    // As below.
    value.serialize(&mut Serializer::with_formatter(&mut to, Shown)).expect("recant's own types can be written as JSON");
    // As below: its callers give a writer that never fails (`face::out::Sink` keeps a failure for the end).
    to.write_all(b"\n").expect("it takes all that is written");
}

/// Writes `\u` for all that [`is_unfit`], beside what JSON itself escapes.
struct Shown;

impl Formatter for Shown {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, to: &mut W, fragment: &str) -> std::io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unfit) {
            let (plain, odd) = rest.split_at(at);
            to.write_all(plain.as_bytes())?;
            let mut chars = odd.chars();
            let mut units = [0; 2];
            for unit in chars.next().map(|c| &*c.encode_utf16(&mut units)).unwrap_or_default() {
                write!(to, "\\u{unit:04x}")?;
            }
            rest = chars.as_str();
        }
        to.write_all(rest.as_bytes())
    }
}

fn append(bytes: impl Write, value: &impl Serialize) {
    // serde_json fails where a key is no string, where a value's own serializer fails, where something else than a struct or a map
    // is flattened, and where the writer fails. Keys of recant's types are names of fields, Strings and paths, which are written as
    // strings (src/fs/path.rs); what it serializes itself goes by the derived code or by one call that cannot fail; what is flattened
    // is a struct or a map; and a Vec, or the program's own output, takes all that is written.
    serde_json::to_writer(bytes, value).expect("recant's own types can be written as JSON");
}

/// A list in a document. Its items are made one by one while they are written.
pub struct Each<F>(pub F);

impl<F: Fn() -> I, I: IntoIterator<Item: Serialize>> Serialize for Each<F> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
