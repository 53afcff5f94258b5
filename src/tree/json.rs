//! JSON as the store's files and standard output have it: a value after another, or a line each.

use std::io::Write;

use serde::Serialize;

/// The text of `value`.
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

/// Writes the text of `value`, and a newline, to what takes all that is written.
pub fn write_line(mut to: impl Write, value: &impl Serialize) {
    append(&mut to, value);
    // As below: its callers give a writer that never fails (`cli::out::Sink` keeps a failure for the end).
    to.write_all(b"\n").expect("it takes all that is written");
}

fn append(bytes: impl Write, value: &impl Serialize) {
    // serde_json fails where a key is no string, where a value's own serializer fails, where something else than a struct or a map
    // is flattened, and where the writer fails. Keys of recant's types are names of fields, Strings and paths, which are written as
    // strings (src/fs/path.rs); what it serializes itself goes by the derived code or by one call that cannot fail; what is flattened
    // is a struct or a map; and a Vec, or the program's own output, takes all that is written.
    serde_json::to_writer(bytes, value).expect("recant's own types can be written as JSON");
}
