//! `sides.<generation>`: on which side each change is, a letter a change in the order of `changes.jsonl`, and a digest.

use serde::{Deserialize, Serialize};

use crate::tree::digest::Digest;

/// Where a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Its `after` lies in the session; it was never on the tree.
    Never,
    /// Its `after` is on the tree, its `before` in the checkpoint.
    In,
    /// Its `after` was on the tree and lies in the session again.
    Out,
    /// It was on the tree, and its `after` is lost: what was there had been changed when it was taken back by force.
    Lost,
}

impl Side {
    fn letter(self) -> u8 {
        match self {
            Side::Never => b'n',
            Side::In => b'i',
            Side::Out => b'o',
            Side::Lost => b'l',
        }
    }

    /// Whether the `after` is on the tree.
    pub fn is_in(self) -> bool {
        self == Side::In
    }

    /// Whether it is or was on the tree.
    pub fn was_in(self) -> bool {
        self != Side::Never
    }
}

/// The file's bytes.
pub fn to_bytes(sides: &[Side]) -> Vec<u8> {
    let mut bytes: Vec<u8> = sides.iter().map(|side| side.letter()).collect();
    let digest = Digest::of(&bytes);
    bytes.extend_from_slice(format!("\n{digest}\n").as_bytes());
    bytes
}

/// The inverse; `None` for anything that [`to_bytes`] did not make.
pub fn from_bytes(bytes: &[u8]) -> Option<Vec<Side>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (letters, digest) = text.strip_suffix('\n')?.split_once('\n')?;
    if Digest::parse(digest)? != Digest::of(letters.as_bytes()) {
        return None;
    }
    letters
        .bytes()
        .map(|letter| [Side::Never, Side::In, Side::Out, Side::Lost].into_iter().find(|s| s.letter() == letter))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_go_there_and_back_and_nothing_else_is_believed() {
        for sides in [vec![], vec![Side::Never, Side::In, Side::Out, Side::Lost]] {
            assert_eq!(from_bytes(&to_bytes(&sides)), Some(sides));
        }
        let bytes = to_bytes(&[Side::In, Side::Out]);
        for i in 0..bytes.len() {
            assert_eq!(from_bytes(&bytes[..i]), None, "cut at {i}");
            let mut flipped = bytes.clone();
            flipped[i] ^= 1;
            assert_eq!(from_bytes(&flipped), None, "flipped at {i}");
        }
    }
}
