//! Foreign bytes as text of a page: nothing of them is markup, and nothing of them is invisible or turns the direction of writing.
//!
//! The signs are those of a terminal (`^[`, `<9B>`, `<U+202E>`), in an element of their own, so that no file can write them itself.

use crate::compare::escape_terminal::sign;
use crate::fs::is_unfit;

/// Adds a line of content, without its end. Tabs stay.
pub fn content(to: &mut String, line: &[u8]) {
    parts(line, |c| c == '\t', &mut |part| add(to, &part));
}

/// Adds a name or any other text.
pub fn text(to: &mut String, text: &[u8]) {
    parts(text, |_| false, &mut |part| add(to, &part));
}

/// Adds a line of content as the value of an attribute, which has no elements: signs stand there as they are.
pub fn value(to: &mut String, line: &[u8]) {
    parts(line, |c| c == '\t', &mut |part| match part {
        Part::Plain(text) | Part::Sign(text) => plain(to, text),
    });
}

pub fn escaped(bytes: &[u8]) -> String {
    let mut to = String::with_capacity(bytes.len());
    text(&mut to, bytes);
    to
}

enum Part<'t> {
    Plain(&'t str),
    /// The sign in place of a character or byte.
    Sign(&'t str),
}

fn add(to: &mut String, part: &Part<'_>) {
    match part {
        Part::Plain(text) => plain(to, text),
        Part::Sign(text) => {
            to.push_str("<i>");
            plain(to, text);
            to.push_str("</i>");
        }
    }
}

fn plain(to: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\'' => to.push_str("&#39;"),
            c => to.push(c),
        }
    }
}

fn parts(bytes: &[u8], stays: fn(char) -> bool, take: &mut dyn FnMut(Part<'_>)) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_odd(*c) && !stays(*c)) {
            take(Part::Plain(&rest[..at]));
            take(Part::Sign(&sign(c)));
            rest = &rest[at + c.len_utf8()..];
        }
        take(Part::Plain(rest));
        chunk.invalid().iter().for_each(|byte| take(Part::Sign(&format!("<{byte:02X}>"))));
    }
}

/// True for characters that show as nothing, turn the direction of writing, or must not stand on a page.
fn is_odd(c: char) -> bool {
    is_unfit(c) || u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}')
}

#[cfg(test)]
mod tests {
    use crate::compare::html::escape::*;

    #[test]
    fn nothing_is_markup_and_nothing_is_unseen() {
        for (given, want) in [
            (&b"a\tb"[..], "a\tb"),
            (b"<script>\"&'", "&lt;script&gt;&quot;&amp;&#39;"),
            (b"a\rb\x1b[0m\x7f", "a<i>^M</i>b<i>^[</i>[0m<i>^?</i>"),
            (
                "a\u{202e}b\u{2066}\u{200d}\u{ad}".as_bytes(),
                "a<i>&lt;U+202E&gt;</i>b<i>&lt;U+2066&gt;</i><i>&lt;U+200D&gt;</i><i>&lt;U+00AD&gt;</i>",
            ),
            (b"\xff\xe2\x82", "<i>&lt;FF&gt;</i><i>&lt;E2&gt;</i><i>&lt;82&gt;</i>"),
            ("äöü 日本 <U+202E>".as_bytes(), "äöü 日本 &lt;U+202E&gt;"),
        ] {
            let mut line = String::new();
            content(&mut line, given);
            assert_eq!(line, want, "{}", given.escape_ascii());
        }
        assert_eq!(escaped(b"a\n\tb"), "a<i>^J</i><i>^I</i>b");
    }
}
