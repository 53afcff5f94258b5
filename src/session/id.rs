//! Ids and names of sessions.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `YYYYMMDD-HHMMSS-xxxx`: local time and four random characters of `a`–`z`, `2`–`7`. Fit to be a directory's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(String);

const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

impl Id {
    /// Makes a new id for this moment.
    pub fn new_now() -> std::io::Result<Self> {
        let mut random = [0_u8; 4];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let tail: String = random.iter().map(|b| char::from(BASE32[usize::from(b & 31)])).collect();
        Ok(Self(format!("{}-{tail}", chrono::Local::now().format("%Y%m%d-%H%M%S"))))
    }

    /// Parses exactly the form above.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
        let shaped = bytes.len() == 20
            && digits(0..8)
            && bytes[8] == b'-'
            && digits(9..15)
            && bytes[15] == b'-'
            && bytes[16..].iter().all(|b| BASE32.contains(b));
        shaped.then(|| Self(text.into()))
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part, by which people call it.
    pub fn tail(&self) -> &str {
        &self.0[16..]
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Id::parse(&text).ok_or_else(|| D::Error::custom("not a session's id"))
    }
}

/// Checks that `text` can be a session's name: letters, digits, `.`, `_`, `-`, at most 64, a letter first; not `last`.
pub fn check_name(text: &str) -> Result<(), &'static str> {
    if text == "last" {
        Err("'last' always means the newest")
    } else if text.len() > 64 {
        Err("it has more than 64 characters")
    } else if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Err("it does not start with a letter")
    } else if !text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c)) {
        Err("it may hold letters, digits, '.', '_' and '-' only")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_form_and_no_other() {
        let id = Id::new_now().unwrap();
        assert_eq!(Id::parse(id.as_str()), Some(id));
        for bad in [
            "",
            "..",
            "../20260301-101500-k3fa",
            "20260301-101500-k3f",
            "20260301-101500-k3f1",
            "20260301-101500-K3FA",
            "20260301 101500-k3fa",
        ] {
            assert_eq!(Id::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_start_with_a_letter_and_stay_plain() {
        for good in ["a", "deploy-1", "A.b_c", &"x".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "last", "1a", "-a", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
