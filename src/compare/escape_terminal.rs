//! Foreign text on a terminal. Shows what would control the terminal, as less(1) does.
//!
//! `^[` is ESC, `^M` CR, `<9B>` a control character of C1 or a byte that is not UTF-8, `<U+202E>` an invisible character, or one that
//! turns the direction of writing.

use std::borrow::Cow;

use crate::fs::is_unfit;

/// A line of a file's content. Tabs and newlines stay.
pub fn content(bytes: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(bytes).is_ok_and(|text| odd(text, None).is_none()) {
        return Cow::Borrowed(bytes);
    }
    let (mut out, mut rest, mut before) = (Vec::with_capacity(bytes.len() + 16), bytes, None);
    while !rest.is_empty() {
        let chunk = rest.utf8_chunks().next();
        let (valid, invalid) = chunk.map_or(("", rest), |chunk| (chunk.valid(), chunk.invalid()));
        let plain = odd(valid, before).unwrap_or(valid.len());
        out.extend_from_slice(&rest[..plain]);
        rest = &rest[plain..];
        if let Some(c) = valid[plain..].chars().next() {
            out.extend_from_slice(sign(c).as_bytes());
            (rest, before) = (&rest[c.len_utf8()..], Some(c));
        } else {
            invalid.iter().for_each(|byte| out.extend_from_slice(format!("<{byte:02X}>").as_bytes()));
            rest = &rest[invalid.len()..];
        }
    }
    Cow::Owned(out)
}

/// A message. Borrowed if nothing in it has to be shown.
pub fn message(text: &str) -> Cow<'_, str> {
    match content(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// The place of the first character that is to be shown, in text behind `before`. The two joiners and the signs for text and emoji stay behind
/// what is no ASCII: some languages and emoji are written with them, and no program is.
fn odd(text: &str, mut before: Option<char>) -> Option<usize> {
    text.char_indices().find_map(|(at, c)| {
        let joins = matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
        let behind = before.replace(c).is_some_and(|before| !before.is_ascii());
        (is_unfit(c) && !matches!(c, '\n' | '\t') && !(joins && behind)).then_some(at)
    })
}

/// The sign for a character that would control a terminal, or hide.
pub fn sign(c: char) -> String {
    match u32::from(c) {
        0x7f => "^?".into(),
        code @ 0..0x20 => format!("^{}", char::from_u32(code + 0x40).unwrap_or('?')),
        code @ 0x80..0xa0 => format!("<{code:02X}>"),
        code => format!("<U+{code:04X}>"),
    }
}

#[cfg(test)]
mod tests {
    use crate::compare::escape_terminal::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_and_text_stays() {
        for (given, want) in [
            (&b"plain\ttext\n"[..], &b"plain\ttext\n"[..]),
            ("äöü 日本 👩\u{200d}👧".as_bytes(), "äöü 日本 👩\u{200d}👧".as_bytes()),
            (b"a\x1b[8mb\x07\rc\x7f", b"a^[[8mb^G^Mc^?"),
            (b"\x9b8m\xc2\x9b8m", b"<9B>8m<9B>8m"),
            ("\u{202e}\u{61c}\u{2066}".as_bytes(), b"<U+202E><U+061C><U+2066>"),
            ("a\u{200d}b\u{ad}\u{3164}\u{e0041}".as_bytes(), b"a<U+200D>b<U+00AD><U+3164><U+E0041>"),
            ("❤\u{fe0f} می\u{200c}خواهم".as_bytes(), "❤\u{fe0f} می\u{200c}خواهم".as_bytes()),
            (b"\xe2\x82", b"<E2><82>"),
            (b"\x1b[31mred\x1b[0m", b"^[[31mred^[[0m"),
        ] {
            assert_eq!(content(given), want, "{}", given.escape_ascii());
        }
    }
}
