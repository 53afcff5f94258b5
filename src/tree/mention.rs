//! Finds a path in lines of JSON without parsing them: most files have no such line, and reading their bytes costs a tenth.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::json;
use crate::fs::AbsPath;

/// A path to be found, with all that lies below it.
#[derive(Debug, Clone)]
pub struct Mention {
    path: AbsPath,
    /// The path as JSON has it, without its last quote.
    plain: String,
    /// The start of its bytes, and of those of a path below it, where one of the two is not UTF-8.
    encoded: String,
}

impl Mention {
    pub fn of(path: &AbsPath) -> Self {
        let mut plain = std::str::from_utf8(path.as_bytes()).map(|text| json::text(&text)).unwrap_or_default();
        plain.pop();
        // Three bytes are four letters: further ones depend on what follows.
        let bytes = &path.as_bytes()[..path.as_bytes().len() / 3 * 3];
        let encoded = format!("{{\"b64\":\"{}", STANDARD.encode(bytes));
        Self { path: path.clone(), plain: String::from_utf8(plain).unwrap_or_default(), encoded }
    }

    pub fn path(&self) -> &AbsPath {
        &self.path
    }

    /// True if some line may name the path or one below it: true also for bytes that are no text.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(bytes) else { return true };
        self.find(text).is_some()
    }

    /// The lines that may name it.
    pub fn lines<'t>(&self, bytes: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        // A garbled file has no line that could be read.
        let mut rest = std::str::from_utf8(bytes).unwrap_or_default();
        std::iter::from_fn(move || {
            let at = self.find(rest)?;
            let start = rest[..at].rfind('\n').map_or(0, |at| at + 1);
            let end = rest[at..].find('\n').map_or(rest.len(), |end| at + end);
            let line = &rest[start..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            Some(line.as_bytes())
        })
    }

    /// The offset of the first place that may be such a path.
    fn find(&self, text: &str) -> Option<usize> {
        let plain = if self.plain.is_empty() { None } else { self.find_plain(text) };
        let before = &text[..plain.unwrap_or(text.len())];
        before.find(&self.encoded).or(plain)
    }

    fn find_plain(&self, text: &str) -> Option<usize> {
        let mut from = 0;
        loop {
            let at = from + text[from..].find(&self.plain)?;
            let end = at + self.plain.len();
            if self.path.depth() == 0 || matches!(text.as_bytes().get(end), Some(b'"' | b'/')) {
                return Some(at);
            }
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_what_lies_below_it_is_found_whatever_its_bytes_are() {
        let path = |bytes: &[u8]| AbsPath::parse(bytes).unwrap();
        let line = |bytes: &[u8]| [b"{\"other\":1}\n{\"path\":", &*json::text(&path(bytes)), b"}\n{\"more\":2}"].concat();
        for (asked, there, found) in [
            (&b"/a/b"[..], &b"/a/b"[..], true),
            (b"/a/b", b"/a/b/c", true),
            (b"/a/b", b"/a/bc", false),
            (b"/a/b", b"/a", false),
            (b"/a/b", b"/x/a/b", false),
            (b"/", b"/a", true),
            (b"/", b"/\xff", true),
            (b"/a\"b\\\n\x01", b"/a\"b\\\n\x01/c", true),
            (b"/\xc3\xa4/b", b"/\xc3\xa4/b", true),
            (b"/a/b", b"/a/b/\xff", true),
            (b"/a/bc", b"/a/bc/\xff", true),
            (b"/a/bcd", b"/a/bcd/\xff", true),
            (b"/a/\xff", b"/a/\xff", true),
            (b"/a/\xff", b"/a/\xff/b", true),
            (b"/abcdef/\xff", b"/abcxef/\xff", false),
            (b"/abcdef", b"/abcxef/\xff", false),
        ] {
            let (mention, text) = (Mention::of(&path(asked)), line(there));
            let lines: Vec<&[u8]> = mention.lines(&text).collect();
            let what = format!("{} in {}", asked.escape_ascii(), there.escape_ascii());
            assert_eq!((mention.is_in(&text), lines.len()), (found, usize::from(found)), "{what}");
            assert!(lines.iter().all(|line| line.starts_with(b"{\"path\":") && line.ends_with(b"}")), "{what}");
        }
        assert!(Mention::of(&path(b"/a")).is_in(b"\xff"), "what is no text may have it");
        let twice = Mention::of(&path(b"/a"));
        assert_eq!(twice.lines(b"\"/a\" \"/a/b\"\n\"/b\"\n\"/a\"").count(), 2, "each line once");
    }
}
