//! The side of each change, in path order: in the session, or on the tree. A text in the header, which each sealed operation replaces.

use serde::{Deserialize, Serialize};

/// The side that a change is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Its `after` lies in the session; it was never on the tree.
    Never,
    /// Its `after` is on the tree, its `before` in the checkpoint.
    In,
    /// Its `after` was on the tree and lies in the session again.
    Out,
    /// It was on the tree, and its `after` is lost: that had been changed when it was taken off by force.
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

    /// True if the `after` is on the tree.
    pub fn is_in(self) -> bool {
        self == Side::In
    }

    /// True if it is or was on the tree.
    pub fn was_in(self) -> bool {
        self != Side::Never
    }
}

/// Writes sides as the header has them: runs of a letter and its count, in path order (`i3400o50`). All `Never` is the empty text.
pub fn to_text(sides: &[Side]) -> String {
    if sides.iter().all(|side| *side == Side::Never) {
        return String::new();
    }
    let runs = sides.chunk_by(|a, b| a == b);
    runs.map(|run| format!("{}{}", char::from(run[0].letter()), run.len())).collect()
}

/// Reads them again, for `count` changes; `None` for a text with another number.
pub fn from_text(text: &str, count: usize) -> Option<Vec<Side>> {
    if text.is_empty() {
        return Some(vec![Side::Never; count]);
    }
    let mut sides = Vec::with_capacity(count);
    let mut rest = text.as_bytes();
    while let Some((letter, more)) = rest.split_first() {
        let side = [Side::Never, Side::In, Side::Out, Side::Lost].into_iter().find(|side| side.letter() == *letter)?;
        let digits = more.iter().position(|b| !b.is_ascii_digit()).unwrap_or(more.len());
        let run: usize = std::str::from_utf8(&more[..digits]).ok()?.parse().ok()?;
        if run == 0 || run > count - sides.len() {
            return None;
        }
        sides.resize(sides.len() + run, side);
        rest = &more[digits..];
    }
    (sides.len() == count).then_some(sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_go_there_and_back_and_nothing_else_is_believed() {
        use Side::{In, Lost, Never, Out};
        for (sides, text) in
            [(vec![], ""), (vec![Never; 5], ""), (vec![In; 3400], "i3400"), (vec![Never, In, In, Out, Lost, Never], "n1i2o1l1n1")]
        {
            assert_eq!(to_text(&sides), text);
            assert_eq!(from_text(text, sides.len()), Some(sides));
        }
        for bad in ["i", "i0", "i6", "i4", "x5", "5i", "i-5", "i2i", "i99999999999999999999999", "i3o2 "] {
            assert_eq!(from_text(bad, 5), None, "{bad:?}");
        }
    }
}
