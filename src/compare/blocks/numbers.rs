//! Numbers of blocks or lines as people type them: `2,5-7`.

use std::collections::BTreeSet;

/// Why a list of numbers is none, with the part of it that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongNumbers {
    /// Neither a number nor a range that goes up.
    #[error("'{0}' is neither a number nor a range such as 5-7")]
    Unreadable(String),
    /// A number that is 0, or more than there are.
    #[error("no number {number}: they go from 1 to {count}")]
    OutOfRange {
        /// The number as it was typed.
        number: String,
        /// How many there are.
        count: usize,
    },
}

/// The numbers that a text such as `2,5-7` names; `count` is the highest one there is. No blanks, no signs, no open ranges.
pub fn parse(text: &str, count: usize) -> Result<BTreeSet<usize>, WrongNumbers> {
    let mut numbers = BTreeSet::new();
    for part in text.split(',') {
        let unreadable = || WrongNumbers::Unreadable(part.into());
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if [first, last].iter().any(|number| number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(unreadable());
        }
        let (first, last) = (one(first, count)?, one(last, count)?);
        if first > last {
            return Err(unreadable());
        }
        numbers.extend(first..=last);
    }
    Ok(numbers)
}

/// One number, of digits alone.
fn one(digits: &str, count: usize) -> Result<usize, WrongNumbers> {
    let number = digits.parse().ok().filter(|number| (1..=count).contains(number));
    number.ok_or_else(|| WrongNumbers::OutOfRange { number: digits.into(), count })
}

#[cfg(test)]
mod tests {
    use crate::compare::blocks::numbers::*;

    #[test]
    fn numbers_and_ranges_up_to_the_count_are_read_and_anything_else_is_named() {
        let unreadable = |text: &str| Err(WrongNumbers::Unreadable(text.into()));
        let beyond = |number: &str| Err(WrongNumbers::OutOfRange { number: number.into(), count: 7 });
        for (text, wanted) in [
            ("2", Ok(vec![2])),
            ("2,5-7", Ok(vec![2, 5, 6, 7])),
            ("7,1-2,2-3", Ok(vec![1, 2, 3, 7])),
            ("08", beyond("08")),
            ("0", beyond("0")),
            ("2,5-8", beyond("8")),
            ("3-99999999999999999999", beyond("99999999999999999999")),
            ("", unreadable("")),
            ("2,,3", unreadable("")),
            ("5-3", unreadable("5-3")),
            ("5-", unreadable("5-")),
            ("1-2-3", unreadable("1-2-3")),
            ("+1", unreadable("+1")),
            (" 1", unreadable(" 1")),
        ] {
            assert_eq!(parse(text, 7).map(|numbers| numbers.into_iter().collect::<Vec<_>>()), wanted, "{text}");
        }
        assert_eq!(parse("1", 0), Err(WrongNumbers::OutOfRange { number: "1".into(), count: 0 }));
    }
}
