//! The coverage table of `doctor` and `show`: places, and what became of changes there.

use crate::fs::AbsPath;
use crate::session::{Coverage, How};

/// If more rows than this say the same, only the first of them are shown.
const ALIKE: usize = 5;

/// The number that is shown of them.
const SHOWN: usize = 3;

/// The table, a line a place, in path order. If many places say the same, the first few stand for all, unless `all` is set: a container
/// host has hundreds of mounts.
pub fn table(rows: &[Coverage], all: bool) -> Vec<String> {
    let alike = |row: &Coverage| rows.iter().filter(|other| (other.how, &other.why) == (row.how, &row.why)).count();
    let mut told: Vec<(&Coverage, usize)> = Vec::new();
    let mut lines = Vec::new();
    for row in rows {
        let many = if all { 0 } else { alike(row) };
        if many <= ALIKE {
            lines.push(line(row, ""));
            continue;
        }
        let so_far = match told.iter_mut().find(|(first, _)| (first.how, &first.why) == (row.how, &row.why)) {
            Some((_, n)) => {
                *n += 1;
                *n
            }
            None => {
                told.push((row, 1));
                1
            }
        };
        let rest = format!(", and {} more (-v)", many - SHOWN);
        match so_far {
            n if n < SHOWN => lines.push(line(row, "")),
            SHOWN => lines.push(line(row, &rest)),
            _ => {}
        }
    }
    lines
}

/// The most places that the summary names of one kind.
const NAMED: usize = 5;

/// The places by what becomes of changes there, a line for each kind: its word and the places, what is held first. Without the reasons.
pub fn summary(rows: &[Coverage], shown: &dyn Fn(&AbsPath) -> String) -> Vec<(&'static str, String)> {
    use How::{Captured, Hidden, Masked, Passed, Private, ReadOnly, Scratch, Uncovered};
    let kinds = [Captured, Uncovered, Passed, Scratch, ReadOnly, Private, Masked, Hidden].into_iter();
    let line = |how: How| {
        let mut places: Vec<String> = rows.iter().filter(|row| row.how == how).map(|row| named(row, shown)).collect();
        // What is read-only of a user's is all but what is named.
        places.sort_by_key(|place| place == ELSE);
        let more = places.len().saturating_sub(NAMED);
        if more > 0 {
            places.truncate(NAMED);
            places.push(format!("and {more} more"));
        }
        let word = if how == How::Uncovered { "not held" } else { word(how) };
        (!places.is_empty()).then(|| (word, places.join(", ")))
    };
    kinds.filter_map(line).collect()
}

const ELSE: &str = "everything else";

fn named(row: &Coverage, shown: &dyn Fn(&AbsPath) -> String) -> String {
    if row.how == How::ReadOnly && row.path.depth() == 0 { ELSE.into() } else { shown(&row.path) }
}

fn line(row: &Coverage, rest: &str) -> String {
    let why = row.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{:<20}  {}{rest}{why}", word(row.how), row.path)
}

/// The word for what becomes of changes at a place.
fn word(how: How) -> &'static str {
    match how {
        How::Captured => "held",
        How::ReadOnly => "read-only",
        How::Passed => "real",
        How::Hidden => "hidden",
        How::Closed => "closed",
        How::Private => "private",
        How::Scratch => "dropped at the end",
        How::Uncovered => "not held: read-only",
        How::Masked => "masked",
    }
}

/// A place with its reason, and the word for what became of changes there.
pub fn words(row: &Coverage) -> (String, String) {
    let why = row.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    (format!("{}{why}", row.path), word(row.how).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_a_line_for_each_kind_and_what_is_held_comes_first() {
        let row = |path: &str, how| Coverage { path: AbsPath::parse(path).unwrap(), how, why: Some("why".into()) };
        let mut rows = vec![row("/", How::ReadOnly), row("/a", How::Captured), row("/b", How::Hidden), row("/c", How::Captured)];
        rows.extend((0..7).map(|n| row(&format!("/r/{n}"), How::ReadOnly)));
        rows.push(row("/u", How::Uncovered));
        let lines: Vec<String> =
            summary(&rows, &|path| path.to_string()).iter().map(|(word, places)| format!("{word}: {places}")).collect();
        let want = ["held: /a, /c", "not held: /u", "read-only: /r/0, /r/1, /r/2, /r/3, /r/4, and 3 more", "hidden: /b"];
        assert_eq!(lines, want);
    }

    #[test]
    fn of_many_places_alike_the_first_few_stand_for_all() {
        let row = |path: String, how| Coverage { path: AbsPath::parse(path).unwrap(), how, why: Some("why".into()) };
        let mut rows: Vec<Coverage> = (0..9).map(|n| row(format!("/m/{n}"), How::ReadOnly)).collect();
        rows.push(row("/z".into(), How::Captured));
        let lines: Vec<String> =
            table(&rows, false).iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let want = ["read-only /m/0: why", "read-only /m/1: why", "read-only /m/2, and 6 more (-v): why", "held /z: why"];
        assert_eq!(lines, want);
        assert_eq!(table(&rows, true).len(), 10);
    }
}
