//! Paths as recant knows them: absolute, without `.`, `..` or empty parts, bytes and not text.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base64::Engine;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The reasons why bytes are no [`AbsPath`], or no name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not start with `/`.
    #[error("not an absolute path")]
    Relative,
    /// A part is `.`, `..` or empty, or it ends in `/`.
    #[error("a part of the path is empty, '.' or '..'")]
    BadPart,
    /// It holds a NUL byte.
    #[error("the path holds a NUL byte")]
    Nul,
    /// A name of more than 255 bytes: NAME_MAX.
    #[error("a name of more than 255 bytes")]
    TooLong,
    /// More than [`LENGTH_MAX`] bytes.
    #[error("a path of more than 8,192 bytes")]
    TooDeep,
}

/// The most bytes of a path: twice the PATH_MAX of Linux, so more than any program can name. Memory for paths grows with the number of
/// entries, and not with the square of the depth of a tree.
pub const LENGTH_MAX: usize = 8192;

/// An absolute path without `.`, `..`, empty parts or NUL. Bytes, not text: a name need not be UTF-8.
/// `Display` escapes what could garble a terminal, so that it is fit for a message. The order is that of a walk: a directory comes right
/// before its content.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AbsPath(Box<[u8]>);

impl AbsPath {
    /// Checks the bytes. `/` itself is allowed.
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let bytes = bytes.as_ref();
        check_length(bytes.len())?;
        match bytes {
            [] => return Err(PathError::Relative),
            b"/" => return Ok(Self(bytes.into())),
            [first, ..] if *first != b'/' => return Err(PathError::Relative),
            _ => {}
        }
        for part in bytes[1..].split(|b| *b == b'/') {
            check_name(part)?;
        }
        Ok(Self(bytes.into()))
    }

    /// The path's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as a standard path.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The parent, and `None` for `/`.
    pub fn parent(&self) -> Option<AbsPath> {
        self.split().map(|(parent, _)| Self(parent.into()))
    }

    /// The parent's bytes and the last name, and `None` for `/`.
    pub fn split(&self) -> Option<(&[u8], &[u8])> {
        if self.0.len() == 1 {
            return None;
        }
        let cut = self.0.iter().rposition(|b| *b == b'/')?;
        Some((if cut == 0 { b"/" } else { &self.0[..cut] }, &self.0[cut + 1..]))
    }

    /// The last name; empty for `/`.
    pub fn name(&self) -> &[u8] {
        self.split().map_or(b"", |(_, name)| name)
    }

    /// The ancestor of this path that has `below` under it, given without a leading slash.
    pub fn above(&self, below: &[u8]) -> AbsPath {
        match self.0.len().saturating_sub(below.len() + 1) {
            0 => Self(b"/"[..].into()),
            length => Self(self.0[..length].into()),
        }
    }

    /// The directories above it, the nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = AbsPath> + use<> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// This path with one more name. `name` must be one component.
    pub fn join(&self, name: &[u8]) -> Result<AbsPath, PathError> {
        check_name(name)?;
        check_length(self.0.len() + 1 + name.len())?;
        let mut bytes = self.0.to_vec();
        if bytes.len() > 1 {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Ok(Self(bytes.into()))
    }

    /// The rest of this path below `top`, without a leading slash: empty for `top` itself, `None` if this is not under it.
    pub fn below(&self, top: &AbsPath) -> Option<&[u8]> {
        if top.0.len() == 1 {
            return Some(&self.0[1..]);
        }
        let rest = self.0.strip_prefix(&*top.0)?;
        match rest {
            [] => Some(rest),
            [b'/', rest @ ..] => Some(rest),
            _ => None,
        }
    }

    /// True if this is `top` or lies under it.
    pub fn is_under(&self, top: &AbsPath) -> bool {
        self.below(top).is_some()
    }

    /// The number of its names: 0 for `/`.
    pub fn depth(&self) -> usize {
        if self.0.len() == 1 { 0 } else { self.0.iter().filter(|b| **b == b'/').count() }
    }
}

fn check_length(bytes: usize) -> Result<(), PathError> {
    if bytes > LENGTH_MAX { Err(PathError::TooDeep) } else { Ok(()) }
}

/// Checks that `name` can name one object in a directory.
pub fn check_name(name: &[u8]) -> Result<(), PathError> {
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
        return Err(PathError::BadPart);
    }
    if name.contains(&0) {
        return Err(PathError::Nul);
    }
    if name.len() > 255 {
        return Err(PathError::TooLong);
    }
    Ok(())
}

impl Ord for AbsPath {
    /// `/` sorts before every other byte, so that a directory's content follows it at once.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |b: &u8| if *b == b'/' { 0 } else { *b };
        let first = first_difference(&self.0, &other.0);
        self.0.get(first).map(key).cmp(&other.0.get(first).map(key))
    }
}

/// The number of bytes that two paths have in common at the start: in a deep tree nearly all, and each is compared with ten others.
fn first_difference(one: &[u8], other: &[u8]) -> usize {
    const PIECE: usize = 64;
    let alike = one.chunks_exact(PIECE).zip(other.chunks_exact(PIECE)).take_while(|(a, b)| a == b).count() * PIECE;
    alike + one[alike..].iter().zip(&other[alike..]).take_while(|(a, b)| a == b).count()
}

impl PartialOrd for AbsPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(&self.0).fmt(f)
    }
}

impl fmt::Debug for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for AbsPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        bytes::serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        AbsPath::parse(bytes::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Bytes of a path or name for a message: unchanged, or in double quotes with C escapes if they hold control bytes, quotes, backslashes or
/// invalid UTF-8.
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let odd = |c: char| c == '"' || c == '\\' || is_unfit(c);
        match std::str::from_utf8(self.0) {
            Ok(text) if !text.contains(odd) => return f.write_str(text),
            _ => {}
        }
        f.write_char('"')?;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    '\r' => f.write_str("\\r")?,
                    '"' | '\\' => write!(f, "\\{c}")?,
                    c if is_unfit(c) => {
                        let mut buffer = [0; 4];
                        for byte in c.encode_utf8(&mut buffer).bytes() {
                            write!(f, "\\{byte:03o}")?;
                        }
                    }
                    c => f.write_char(c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\{byte:03o}")?;
            }
        }
        f.write_char('"')
    }
}

/// True for characters that a terminal takes for commands, or would not show as they are.
pub fn is_unfit(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// True for characters that show as nothing or turn the writing direction: they make one path look like another. All of
/// `Default_Ignorable_Code_Point` (Unicode 16, DerivedCoreProperties.txt), line and paragraph separators, and annotations.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Serde for bytes that are nearly always text: a JSON string, or `{"b64": "…"}` if they are no UTF-8.
pub mod bytes {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Encoded {
        b64: String,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        Encoded(Encoded),
    }

    /// Writes a JSON string, or `{"b64": …}`.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Encoded { b64: base64::engine::general_purpose::STANDARD.encode(bytes) }.serialize(serializer),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        match Either::deserialize(deserializer)? {
            Either::Text(text) => Ok(text.into_bytes()),
            Either::Encoded(encoded) => base64::engine::general_purpose::STANDARD.decode(encoded.b64).map_err(D::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_absolute_paths_are_paths() {
        for (input, want) in [
            (&b"/srv/a"[..], Ok(())),
            (b"/", Ok(())),
            (b"/a\nb/\xff", Ok(())),
            (b"/srv/../etc", Err(PathError::BadPart)),
            (b"/srv//a", Err(PathError::BadPart)),
            (b"/srv/", Err(PathError::BadPart)),
            (b"/./a", Err(PathError::BadPart)),
            (b"srv/a", Err(PathError::Relative)),
            (b"", Err(PathError::Relative)),
            (b"/a\0b", Err(PathError::Nul)),
        ] {
            assert_eq!(AbsPath::parse(input).map(drop), want, "{}", input.escape_ascii());
        }
        assert_eq!(AbsPath::parse([b"/", &[b'x'; 256][..]].concat()).map(drop), Err(PathError::TooLong));
        let longest = AbsPath::parse(b"/x".repeat(LENGTH_MAX / 2)).expect("as long as a path may be");
        assert_eq!(longest.join(b"x").map(drop), Err(PathError::TooDeep));
        assert_eq!(AbsPath::parse([longest.as_bytes(), b"/x"].concat()).map(drop), Err(PathError::TooDeep));
    }

    #[test]
    fn a_directory_sorts_right_before_what_lies_under_it() {
        let mut paths: Vec<_> = ["/a b", "/a", "/a/z", "/a.c", "/a/b/c", "/a/b"].map(|p| AbsPath::parse(p).unwrap()).into();
        paths.sort();
        let shown: Vec<_> = paths.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["/a", "/a/b", "/a/b/c", "/a/z", "/a b", "/a.c"]);
    }

    #[test]
    fn odd_bytes_are_escaped_for_people_and_kept_for_programs() {
        for (bytes, shown) in [
            (&b"/a b"[..], "/a b"),
            ("/ä".as_bytes(), "/ä"),
            (b"/a\nb", r#""/a\nb""#),
            (b"/\xff", r#""/\377""#),
            (b"/\"\\", r#""/\"\\""#),
            (b"/\x1b[31m", r#""/\033[31m""#),
        ] {
            let path = AbsPath::parse(bytes).unwrap();
            assert_eq!(path.to_string(), shown);
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<AbsPath>(&json).unwrap(), path, "{json}");
        }
    }

    #[test]
    fn below_counts_whole_names() {
        let path = |p: &str| AbsPath::parse(p).unwrap();
        assert_eq!(path("/a/b").below(&path("/a")), Some(&b"b"[..]));
        assert_eq!(path("/a").below(&path("/a")), Some(&b""[..]));
        assert_eq!(path("/ab").below(&path("/a")), None);
        assert_eq!(path("/ab").below(&path("/")), Some(&b"ab"[..]));
    }
}
