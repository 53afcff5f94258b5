//! Texts in pages by bytes: patches and files. A cursor is the number of the byte at which a page begins, and the hash of all before
//! it: what changes behind it moves nothing.

use std::ffi::OsString;

use serde_json::{Value, json};
use sha2::Digest;

use super::child::{Child, Chunk, Started, failed, not_started};
use crate::compare::escape_terminal;
use crate::face::mcp::carrier::{Asked, Outcome, Told};
use crate::face::mcp::page::{self, BYTES};

/// A page of what a call prints, under `key`.
pub fn of(child: &Child, asked: &Asked, words: &[OsString], key: &str, told: &Told) -> Outcome {
    let (from, mark) = match asked.text("cursor").map(cursor) {
        None => (0, None),
        Some(Some((from, mark))) => (from, Some(mark)),
        Some(None) => return Outcome::refused("usage", "cursor: expected 'next' of the previous answer"),
    };
    let Chunk { mut before, bytes, is_failed, has_more } = match child.chunk(words, from, BYTES) {
        Ok(chunk) => chunk,
        Err(error) => return not_started(&error),
    };
    if is_failed {
        // Why, as a document.
        let mut words = words.to_vec();
        words.insert(0, "--json".into());
        return child.run(&Started::whole(&words), told).map_or_else(|error| not_started(&error), |ran| failed(&ran));
    }
    if mark.is_some_and(|mark| bytes.is_empty() || mark != page::mark(before.clone())) {
        return page::changed("text");
    }
    let shown = page(&bytes, BYTES);
    let mut document = json!({ key: harmless(shown) });
    if has_more || shown.len() < bytes.len() {
        before.update(shown);
        document["next"] = format!("{}.{}", from + shown.len() as u64, page::mark(before)).into();
    }
    Outcome::done(document)
}

/// The byte and the hash of a cursor.
fn cursor(text: &str) -> Option<(u64, &str)> {
    let (from, mark) = text.split_once('.')?;
    Some((from.parse().ok()?, mark))
}

/// The first bytes, as many as JSON has in `most` bytes: whole lines, else whole characters.
pub fn page(bytes: &[u8], most: usize) -> &[u8] {
    let mut some = first(bytes, most);
    loop {
        let quoted = quoted(some);
        if quoted <= most || some.len() <= 4 {
            return some;
        }
        some = first(some, some.len() * most / quoted);
    }
}

/// The number of bytes that JSON has for them.
pub fn quoted(bytes: &[u8]) -> usize {
    Value::from(harmless(bytes)).to_string().len() - 2
}

/// The first bytes, at most `most`, but at least a character.
fn first(bytes: &[u8], most: usize) -> &[u8] {
    let Some(some) = bytes.get(..most.max(4)).filter(|some| some.len() < bytes.len()) else { return bytes };
    let lines = some.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
    // A character has at most four bytes.
    let characters = || (some.len() - 3..some.len()).rev().find(|at| some[*at] & 0xc0 != 0x80 && some[*at] & 0x80 != 0);
    let cut = |at: usize| {
        if std::str::from_utf8(&some[at..]).is_err_and(|error| error.error_len().is_none()) { at } else { some.len() }
    };
    &some[..lines.unwrap_or_else(|| characters().map_or(some.len(), cut))]
}

/// A text that does nothing to a terminal.
pub fn harmless(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&escape_terminal::content(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::carry::pages::page;

    #[test]
    fn a_page_ends_with_a_line_or_at_least_a_character() {
        for (bytes, most, want) in [
            ("one\ntwo\n", 10, "one\ntwo\n"),
            ("one\ntwo\n", 9, "one\n"),
            ("\"quotes\"", 8, "\"quote"),
            ("\x1b\x1b\x1b\x1b\x1b\x1b", 11, "\x1b\x1b\x1b\x1b\x1b"),
            ("onetwo", 4, "onet"),
            ("ones€", 5, "ones"),
            ("ones€", 6, "ones"),
            ("ones€", 7, "ones€"),
            ("onesä€", 6, "onesä"),
        ] {
            assert_eq!(page(bytes.as_bytes(), most), want.as_bytes(), "{bytes:?} {most}");
        }
        assert_eq!(page(&[0xff; 9], 20), [0xff; 5]);
    }
}
