//! The near side's request, and the hello of the far side.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

use super::error::{garbled, other_protocol, too_long};
use super::protocol::PROTOCOL;
use crate::error::Error;
use crate::remedy::shell;

/// The most bytes of a request on a command line: Linux takes 128 KiB an argument, which also has the shell's text.
pub const ON_COMMAND_LINE: usize = 96 << 10;

/// One call of recant, for the far side's to carry out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The near side's protocol. The other fields count only if it is the far side's too.
    pub protocol: u32,
    /// The words, without the program's name.
    pub argv: Vec<Word>,
    /// Those of the descriptors 1 and 2 on which colour is wanted.
    pub color: Vec<u8>,
    /// Those of the descriptors 0 to 2 that are terminals on the near side.
    pub terminals: Vec<u8>,
    /// The width of the near side's terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u16>,
    /// True if standard input comes over the connection; else the verb has none.
    pub input: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(Word, Word)>,
    /// The silence, in seconds, that the near side allows: the far side reports more often that it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<u32>,
    /// The store there, by the near side's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The options with which the near side reaches this machine, for commands in messages: `-H web1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<String>,
}

/// Bytes: text if they are UTF-8, else `{"b64": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Word {
    /// UTF-8.
    Text(String),
    Bytes {
        /// In base64.
        b64: String,
    },
}

impl From<&OsStr> for Word {
    fn from(word: &OsStr) -> Self {
        match word.to_str() {
            Some(text) => Word::Text(text.into()),
            None => Word::Bytes { b64: STANDARD.encode(word.as_bytes()) },
        }
    }
}

impl Word {
    /// The bytes; `None` if the base64 is invalid, or if they contain a NUL, which no argument can.
    pub fn to_os(&self) -> Option<OsString> {
        let bytes = match self {
            Word::Text(text) => text.as_bytes().to_vec(),
            Word::Bytes { b64 } => STANDARD.decode(b64).ok()?,
        };
        (!bytes.contains(&0)).then(|| OsString::from_vec(bytes))
    }
}

impl Request {
    pub fn json(&self) -> Vec<u8> {
        // Keys are names of fields, values derived or written as one string or map (`Word`); a Vec takes all that is written.
        serde_json::to_vec(self).expect("strings and numbers can be written as JSON")
    }

    /// As one word that no shell interprets.
    pub fn word(&self) -> Result<String, Error> {
        let word = URL_SAFE_NO_PAD.encode(self.json());
        if word.len() > ON_COMMAND_LINE {
            return Err(too_long(word.len(), ON_COMMAND_LINE, "a terminal").with_remedy(
                "give it from a pipe: " + shell("recant … < /dev/null") + ", or put the words into a script there",
            ));
        }
        Ok(word)
    }

    /// Reads the JSON of a near side.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Spoken {
            protocol: u32,
        }
        let garbled = |error: serde_json::Error| garbled(error);
        // First, as the rest may have another form in another protocol.
        let Spoken { protocol } = serde_json::from_slice(json).map_err(garbled)?;
        if protocol != PROTOCOL {
            return Err(other_protocol(protocol));
        }
        serde_json::from_slice(json).map_err(garbled)
    }

    /// Reads the word of a near side.
    pub fn from_word(word: &str) -> Result<Self, Error> {
        let json = URL_SAFE_NO_PAD.decode(word).map_err(garbled)?;
        Self::parse(&json)
    }

    /// The words as given; `None` if one of them is invalid.
    pub fn words(&self) -> Option<Vec<OsString>> {
        self.argv.iter().map(Word::to_os).collect()
    }
}

pub fn hello() -> String {
    format!("{HELLO}{PROTOCOL} {}\n", env!("CARGO_PKG_VERSION"))
}

const HELLO: &str = "recant-far ";

/// A line from the connection before any frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The hello of the far side's recant.
    Hello {
        protocol: u32,
        /// Output of a login script before it on the line.
        noise: &'a [u8],
    },
    /// Output of a login script.
    Noise,
}

impl<'a> Line<'a> {
    pub fn of(line: &'a [u8]) -> Self {
        let hello = HELLO.as_bytes();
        let Some(at) = line.windows(hello.len()).rposition(|part| part == hello) else { return Line::Noise };
        let rest = std::str::from_utf8(&line[at + hello.len()..]).unwrap_or_default();
        let mut words = rest.strip_suffix('\n').unwrap_or_default().split(' ');
        match (words.next().and_then(|word| word.parse().ok()), words.next(), words.next()) {
            (Some(protocol), Some(_version), None) => Line::Hello { protocol, noise: &line[..at] },
            _ => Line::Noise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(argv: &[&[u8]]) -> Request {
        let argv = argv.iter().map(|word| Word::from(OsStr::from_bytes(word))).collect();
        let env = vec![(Word::Text("NO_COLOR".into()), Word::Text("1".into()))];
        let (color, terminals) = (vec![1], vec![0, 2]);
        Request {
            protocol: PROTOCOL,
            argv,
            color,
            terminals,
            columns: Some(80),
            input: true,
            env,
            silence: Some(60),
            store: Some("/s".into()),
            reached: Some("-H web1".into()),
        }
    }

    #[test]
    fn any_bytes_arrive_as_they_are() {
        let words: [&[u8]; 6] = [b"run", b"a b", b"'\"$(id)`!\\", b"new\nline", b"\xff\xfe", b""];
        let request = request(&words);
        let got = Request::from_word(&request.word().unwrap()).unwrap();
        assert_eq!(got, request);
        let got: Vec<Vec<u8>> = got.words().unwrap().into_iter().map(OsString::into_vec).collect();
        assert_eq!(got, words);
        assert!(request.word().unwrap().bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_'));
    }

    #[test]
    fn another_protocol_is_told_before_anything_else_is_read() {
        let said = |json: &[u8]| Request::parse(json).unwrap_err().to_string();
        assert_eq!(said(br#"{"protocol":9,"argv":{}}"#), other_protocol(9).to_string());
        let is_garbled = |json: &[u8]| said(json).starts_with("the request is invalid: ");
        let garbled = format!(r#"{{"protocol":{PROTOCOL},"argv":{{}}}}"#);
        assert!(is_garbled(garbled.as_bytes()));
        assert!(is_garbled(b"\xff"));
    }

    #[test]
    fn a_word_with_a_nul_or_without_base64_is_none() {
        for b64 in ["AA==", "*"] {
            assert_eq!(Word::Bytes { b64: b64.into() }.to_os(), None, "{b64}");
        }
        assert_eq!(Word::Text("a\0".into()).to_os(), None);
    }

    #[test]
    fn a_request_that_is_too_long_for_a_command_line_is_refused() {
        let error = request(&[&[b'x'; ON_COMMAND_LINE]]).word().unwrap_err().to_string();
        assert!(error.ends_with("bytes; a terminal carries at most 98304"), "{error}");
    }

    #[test]
    fn the_hello_is_found_behind_what_a_login_script_wrote() {
        let line = |text: &'static str| Line::of(text.as_bytes());
        assert_eq!(Line::of(hello().as_bytes()), Line::Hello { protocol: PROTOCOL, noise: b"" });
        assert_eq!(line("motd> recant-far 7 1.2.3\n"), Line::Hello { protocol: 7, noise: b"motd> " });
        for text in
            ["", "hello\n", "recant-far\n", "recant-far x 1\n", "recant-far 1\n", "recant-far 1 0.1.0", "recant-far 1 0 0\n"]
        {
            assert_eq!(line(text), Line::Noise, "{text}");
        }
    }
}
