//! The place of a `to` in the session, in sixteen bytes: a plan has one for each path.

use serde::{Deserialize, Serialize};

use crate::fs::{AbsPath, path};
use crate::session::object_name;
use crate::tree::Hash;

/// A place below the session's directory, known by the change that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionPlace {
    /// `held/objects/<n>`.
    Object,
    /// `held/upper/<k>`, and the last `below` bytes of the path below it.
    Upper {
        k: u32,
        /// The length of the path below the captured place; 0 for the place itself.
        below: u32,
    },
    /// `checkpoint/blobs/<hash>`, followed by `.<n>` if `numbered`.
    Blob {
        #[serde(rename = "digest")]
        hash: Box<Hash>,
        /// True if another original has the name without a number.
        numbered: bool,
    },
    At(Box<Place>),
}

/// Bytes of a path below the session's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place(#[serde(with = "path::bytes")] Vec<u8>);

impl SessionPlace {
    /// Makes the shortest form of a place of the change `n` of `path`.
    pub fn new(place: Vec<u8>, n: u32, path: &AbsPath) -> Self {
        let known =
            if place == object_name(n) { Some(SessionPlace::Object) } else { upper(&place, path).or_else(|| blob(&place)) };
        // The short form has to give the same place.
        match known.filter(|known| known.place(n, path) == place) {
            Some(known) => known,
            None => SessionPlace::At(Box::new(Place(place))),
        }
    }

    /// True if an earlier `--force` had put it there.
    pub fn is_displaced(&self) -> bool {
        matches!(self, SessionPlace::At(place) if place.0.starts_with(b"displaced/"))
    }

    pub fn place(&self, n: u32, path: &AbsPath) -> Vec<u8> {
        match self {
            SessionPlace::Object => object_name(n),
            SessionPlace::Upper { k, below: 0 } => format!("held/upper/{k}").into_bytes(),
            SessionPlace::Upper { k, below } => {
                let path = path.as_bytes();
                let below = &path[path.len().saturating_sub(*below as usize)..];
                [format!("held/upper/{k}/").as_bytes(), below].concat()
            }
            SessionPlace::Blob { hash, numbered: false } => format!("checkpoint/blobs/{hash}").into_bytes(),
            SessionPlace::Blob { hash, numbered: true } => format!("checkpoint/blobs/{hash}.{n}").into_bytes(),
            SessionPlace::At(place) => place.0.clone(),
        }
    }
}

/// True for a place below the session's directory that objects are given. Nothing else in a stored file is used as one
/// (docs/ARCHITECTURE.md, I14).
pub fn is_place(place: &[u8]) -> bool {
    let ours = [&b"held/"[..], b"checkpoint/blobs/", b"checkpoint/objects/", b"displaced/"];
    let plain = |part: &[u8]| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0);
    ours.iter().any(|directory| place.starts_with(directory)) && place.split(|b| *b == b'/').all(plain)
}

fn upper(place: &[u8], path: &AbsPath) -> Option<SessionPlace> {
    let rest = place.strip_prefix(b"held/upper/")?;
    let digits = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    let k = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let below = rest.len().saturating_sub(digits + 1);
    (below < path.as_bytes().len()).then_some(SessionPlace::Upper { k, below: u32::try_from(below).ok()? })
}

fn blob(place: &[u8]) -> Option<SessionPlace> {
    let name = std::str::from_utf8(place.strip_prefix(b"checkpoint/blobs/")?).ok()?;
    let hash = Box::new(Hash::parse(name.get(..64)?)?);
    Some(SessionPlace::Blob { hash, numbered: name.len() > 64 })
}

#[cfg(test)]
mod tests {
    use crate::engine::place_in_session::*;

    #[test]
    fn every_place_is_told_as_it_is() {
        let path = AbsPath::parse("/srv/a/b").expect("a path");
        let hash = Hash::of(b"x").to_string();
        for (place, short) in [
            (object_name(7), true),
            (object_name(8), false),
            (b"held/upper/0/srv/a/b".to_vec(), true),
            (b"held/upper/3/b".to_vec(), true),
            (b"held/upper/3".to_vec(), true),
            (b"held/upper/3/other".to_vec(), false),
            (b"held/upper/x/b".to_vec(), false),
            (format!("checkpoint/blobs/{hash}").into_bytes(), true),
            (format!("checkpoint/blobs/{hash}.7").into_bytes(), true),
            (format!("checkpoint/blobs/{hash}.8").into_bytes(), false),
            (b"checkpoint/objects/7".to_vec(), false),
            (b"".to_vec(), false),
        ] {
            let held = SessionPlace::new(place.clone(), 7, &path);
            assert_eq!(held.place(7, &path), place);
            assert_eq!(!matches!(held, SessionPlace::At(_)), short, "{}", place.escape_ascii());
            let json = serde_json::to_string(&held).expect("it has a text");
            assert_eq!(serde_json::from_str::<SessionPlace>(&json).expect("its own text"), held, "{json}");
        }
        assert_eq!(size_of::<SessionPlace>(), 16);
    }
}
