//! Figures and tables as people read them.

use std::borrow::{Borrow, Cow};

use crate::compare::{columns, cut_off, escape_terminal, shortened};
use crate::fs::Time;
use crate::remedy::Remedy;

/// `512 B`, `4.0 KiB`, `12 MiB`: [`crate::settings::bytes`].
pub fn bytes(bytes: u64) -> String {
    crate::settings::bytes(bytes)
}

/// Local time to the minute, or to the second: [`crate::tree::local`].
pub fn time(time: Time, seconds: bool) -> String {
    crate::tree::local(time, seconds)
}

/// `1 change`, `2,309 changes`, `3 directories`.
pub fn count(n: u64, word: &str) -> String {
    match word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        _ if n == 1 => format!("1 {word}"),
        Some(stem) => format!("{} {stem}ies", grouped(n)),
        None => format!("{} {word}s", grouped(n)),
    }
}

/// A number with a comma at each thousand: [`crate::settings::grouped`].
pub fn grouped(n: u64) -> String {
    crate::settings::grouped(n)
}

/// Local time for a listing, in 12 columns: [`crate::tree::day`].
pub fn day(at: Time) -> String {
    crate::tree::day(at)
}

/// The line in place of `n` lines that are not printed; `command` prints them.
pub fn more(n: usize, command: &str) -> String {
    format!("… and {} more: {command}", grouped(n as u64))
}

/// A column that may be made narrower.
#[derive(Debug, Clone, Copy)]
pub struct Flexible {
    pub column: usize,
    /// Its least width, in columns of a terminal.
    pub least: usize,
    /// The way to shorten a cell: [`shortened`] or [`cut_off`].
    pub by: fn(&str, usize) -> String,
}

impl Flexible {
    pub fn path(column: usize, least: usize) -> Self {
        Self { column, least, by: shortened }
    }

    pub fn words(column: usize, least: usize) -> Self {
        Self { column, least, by: cut_off }
    }
}

/// Shortens rows to `width` columns in a [`table`]: makes the first of the `flexible` columns as narrow as allowed, then the next. If
/// that is not enough, the rows stay too wide: by so many columns.
pub fn fit<const N: usize>(rows: &mut [[String; N]], width: usize, flexible: &[Flexible]) -> usize {
    let mut widths = [0; N];
    for row in &*rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    let count = widths.iter().filter(|width| **width > 0).count();
    let mut excess = (widths.iter().sum::<usize>() + 2 * count.saturating_sub(1)).saturating_sub(width);
    for Flexible { column, least, by } in flexible {
        let taken = excess.min(widths[*column].saturating_sub(*least));
        widths[*column] -= taken;
        excess -= taken;
        if taken > 0 {
            rows.iter_mut().for_each(|row| row[*column] = by(&row[*column], widths[*column]));
        }
    }
    excess
}

/// A line of a [`table`] that may still be too wide after [`fit`]: its end goes.
pub fn within(line: &str, width: usize) -> String {
    cut_off(line, width)
}

/// "a", "a and b", "a, b and c".
pub fn list(words: &[impl std::borrow::Borrow<str>]) -> String {
    match words {
        [] => String::new(),
        [word] => word.borrow().into(),
        [first @ .., last] => format!("{} and {}", first.join(", "), last.borrow()),
    }
}

/// Text for standard error after "recant: ", broken at blanks into lines of at most 80 columns. A longer word stays whole.
pub fn filled(text: &str) -> String {
    folded(text.split(' ').map(Cow::Borrowed), 8)
}

/// Fills a line that begins with `indent` columns of its own. Lines after the first begin there.
pub fn filled_after(first: &str, text: &str, indent: usize) -> String {
    format!("{first:<indent$}{}", folded(text.split(' ').map(Cow::Borrowed), indent))
}

/// A remedy in lines that begin at `indent`, broken as [`filled`] does, but never within a command, so that it can be copied.
pub fn filled_remedy(remedy: &Remedy, indent: usize) -> String {
    let parts = remedy.parts();
    folded(parts.iter().map(|part| escape_terminal::message(part)), indent)
}

/// Joins words with blanks in lines of at most 80 columns, which all begin at `indent`.
fn folded<'w>(words: impl Iterator<Item = Cow<'w, str>>, indent: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(&word) <= 80 - indent => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Lines of rows with aligned columns, two spaces between them, no blanks at a line's end. Goes through the rows twice: if they are
/// made one by one, none is kept in memory.
pub fn table<const N: usize, R>(sides: [Side; N], rows: R) -> impl Iterator<Item = String>
where
    R: IntoIterator<Item: Borrow<[String; N]>> + Clone,
{
    let mut widths = [0; N];
    for row in rows.clone() {
        for (width, cell) in widths.iter_mut().zip(row.borrow()) {
            *width = (*width).max(columns(cell));
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
            let blanks = " ".repeat(width - columns(cell));
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
    use crate::remedy::shell;

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
    fn rows_that_are_too_wide_lose_the_middle_of_their_flexible_columns() {
        let row = |a: &str, b: &str, c: &str| [a.to_owned(), b.to_owned(), c.to_owned()];
        let rows = [row("id", "a-long-name", "a-longer-path"), row("id", "", "b")];
        for (width, flexible, want) in [
            (80, &[Flexible::path(2, 4)][..], ["a-long-name", "a-longer-path"]),
            (29, &[Flexible::path(2, 4)], ["a-long-name", "a-l…ger-path"]),
            (19, &[Flexible::path(2, 4), Flexible::path(1, 5)], ["a-…g-name", "a…th"]),
            (1, &[Flexible::path(2, 4), Flexible::words(1, 5)], ["a-lo…", "a…th"]),
        ] {
            let mut rows = rows.clone();
            fit(&mut rows, width, flexible);
            assert_eq!((&*rows[0][1], &*rows[0][2], &*rows[1][2]), (want[0], want[1], "b"), "{width}");
        }
    }

    #[test]
    fn text_is_broken_at_blanks_and_never_within_a_word() {
        let long = "x".repeat(90);
        assert_eq!(filled("a b"), "a b");
        assert_eq!(filled(&format!("a {long} b")), format!("a\n        {long}\n        b"));
        assert!(filled(&"word ".repeat(60)).lines().all(|line| line.len() <= 80));
    }

    #[test]
    fn a_remedy_is_broken_but_never_within_its_commands() {
        let apparmor = shell("recant doctor --apparmor | sudo tee /etc/apparmor.d/recant &&");
        for (remedy, want) in [
            (
                apparmor + " " + shell("sudo apparmor_parser -r /etc/apparmor.d/recant"),
                "recant doctor --apparmor | sudo tee /etc/apparmor.d/recant &&\n        sudo apparmor_parser -r /etc/apparmor.d/recant",
            ),
            (shell("recant commit k3fa").into(), "recant commit k3fa"),
            (
                shell("recant diff kvth --conflicts")
                    + " shows both sides; --force goes on, and keeps a copy of what it overwrites",
                "recant diff kvth --conflicts shows both sides; --force goes on, and\n        keeps a copy of what it overwrites",
            ),
            (
                "move it back, wherever it may be by now; or "
                    + shell("mkdir -p '/a b/c, d/e f/g'")
                    + ", then --force does what is possible",
                "move it back, wherever it may be by now; or mkdir -p '/a b/c, d/e f/g',\n        then --force does what is possible",
            ),
            (
                "a command that comes at the end of its line is never parted: " + shell("recant rollback k3fa"),
                "a command that comes at the end of its line is never parted:\n        recant rollback k3fa",
            ),
            ("it shows\nwhat is \x1b hidden".into(), "it shows what is ^[ hidden"),
        ] {
            assert_eq!(filled_remedy(&remedy, 8), want);
        }
    }

    #[test]
    fn wide_words_are_broken_by_their_columns() {
        let lines = filled(&["日本語の言葉"; 11].join(" "));
        let widths: Vec<usize> = lines.lines().map(|line| columns(line.trim_start())).collect();
        assert_eq!(widths, [64, 64, 12], "{lines}");
    }

    #[test]
    fn a_list_ends_with_and() {
        for (words, want) in [(&[][..], ""), (&["a"], "a"), (&["a", "b"], "a and b"), (&["a", "b", "c"], "a, b and c")] {
            assert_eq!(list(words), want);
        }
    }

    #[test]
    fn columns_stand_under_each_other_and_empty_ones_are_left_out() {
        let row = |a: &str, b: &str, c: &str| [a.to_owned(), b.to_owned(), c.to_owned()];
        let rows = [row("a", "", "10"), row("bcd", "", "9")];
        assert_eq!(table([Side::Left, Side::Left, Side::Right], &rows).collect::<Vec<_>>(), ["a    10", "bcd   9"]);
        let rows = [row("名前", "", "1"), row("n", "", "2")];
        assert_eq!(table([Side::Left, Side::Left, Side::Right], &rows).collect::<Vec<_>>(), ["名前  1", "n     2"]);
    }
}
