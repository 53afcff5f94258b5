//! How figures and tables read.

use std::borrow::Borrow;

use chrono::{DateTime, Local, Utc};

use crate::fs::dir::Time;

/// `512 B`, `4.0 KiB`, `12 MiB`: [`crate::config::bytes`].
pub fn bytes(bytes: u64) -> String {
    crate::config::bytes(bytes)
}

/// Local time to the minute, or to the second.
pub fn time(time: Time, seconds: bool) -> String {
    let form = if seconds { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    match DateTime::<Utc>::from_timestamp(time.s, time.ns) {
        Some(date) => date.with_timezone(&Local).format(form).to_string(),
        None => crate::tree::time::to_text(time),
    }
}

/// `1 change`, `2,309 changes`.
pub fn count(n: u64, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{} {word}s", grouped(n)) }
}

/// A number with a comma at each thousand: `2,289`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Figures.
    Right,
}

/// Rows with their columns under each other, two spaces between them, no blanks at a line's end. The rows are gone through twice: what
/// makes them one by one keeps none in memory.
pub fn table<const N: usize, R>(sides: [Side; N], rows: R) -> impl Iterator<Item = String>
where
    R: IntoIterator<Item: Borrow<[String; N]>> + Clone,
{
    let mut widths = [0; N];
    for row in rows.clone() {
        for (width, cell) in widths.iter_mut().zip(row.borrow()) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = move |row: R::Item| {
        let mut line = String::new();
        for ((cell, width), side) in row.borrow().iter().zip(widths).zip(sides) {
            if width == 0 {
                continue;
            }
            if !line.is_empty() {
                line.push_str("  ");
            }
            let blanks = " ".repeat(width - cell.chars().count());
            match side {
                Side::Left => line.extend([cell, &*blanks]),
                Side::Right => line.extend([&*blanks, cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    };
    rows.into_iter().map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_two_digits_and_a_binary_unit() {
        for (n, want) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (4096, "4.0 KiB"),
            (10_239, "10 KiB"),
            (52_428_800, "50 MiB"),
            (5 << 30, "5.0 GiB"),
            (1_048_575, "1.0 MiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(bytes(n), want, "{n}");
        }
    }

    #[test]
    fn a_number_has_a_comma_at_each_thousand() {
        for (n, want) in [(0, "0"), (999, "999"), (1000, "1,000"), (2_289, "2,289"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(n), want);
        }
    }

    #[test]
    fn columns_stand_under_each_other_and_empty_ones_are_left_out() {
        let row = |a: &str, b: &str, c: &str| [a.to_owned(), b.to_owned(), c.to_owned()];
        let rows = [row("a", "", "10"), row("bcd", "", "9")];
        assert_eq!(table([Side::Left, Side::Left, Side::Right], &rows).collect::<Vec<_>>(), ["a    10", "bcd   9"]);
    }
}
