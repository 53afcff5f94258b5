//! Folds listings for people: of a place where very many things changed one line is enough. What is deleted is always listed.

use std::collections::{HashMap, HashSet};

use crate::fs::path::AbsPath;

/// A folder with more changes below it than this is crowded.
const CROWDED: usize = 100;

/// A line of a folded listing.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// The row of this index stands for itself.
    Row(usize),
    /// So many rows that lie under a folder: folded.
    Folded(AbsPath, usize),
}

/// The lines for rows in path order. `must_show` says of which row the line may not go.
pub fn fold<'a>(paths: impl IntoIterator<Item = &'a AbsPath>, must_show: impl Fn(usize) -> bool) -> Vec<Line> {
    let paths: Vec<&AbsPath> = paths.into_iter().collect();
    let tops = tops(&paths, &must_show);
    let mut lines: Vec<Line> = Vec::new();
    let mut at = HashMap::new();
    for (i, path) in paths.iter().enumerate() {
        let Some(top) = (!must_show(i)).then(|| top_of(path, &tops)).flatten() else {
            lines.push(Line::Row(i));
            continue;
        };
        match at.get(&top).map(|at| &mut lines[*at]) {
            Some(Line::Folded(_, n)) => *n += 1,
            _ => {
                at.insert(top.clone(), lines.len());
                lines.push(Line::Folded(top, 1));
            }
        }
    }
    lines
}

/// How many rows lie under each folder; none where so few rows are there that no folder can be crowded.
fn counts(paths: &[&AbsPath], must_show: impl Fn(usize) -> bool) -> HashMap<AbsPath, usize> {
    let mut counts = HashMap::new();
    if paths.len() <= CROWDED {
        return counts;
    }
    for (_, path) in paths.iter().enumerate().filter(|(i, _)| !must_show(*i)) {
        for above in std::iter::successors(path.parent(), AbsPath::parent).filter(|above| above.depth() > 0) {
            *counts.entry(above).or_insert(0) += 1;
        }
    }
    counts
}

/// The crowded folders in which no single folder has nearly everything, as that one's line says more.
fn tops(paths: &[&AbsPath], must_show: impl Fn(usize) -> bool) -> HashSet<AbsPath> {
    let counts = counts(paths, must_show);
    let mut largest: HashMap<AbsPath, usize> = HashMap::new();
    for (folder, n) in &counts {
        if let Some(above) = folder.parent() {
            let most = largest.entry(above).or_insert(0);
            *most = (*most).max(*n);
        }
    }
    let is_spread = |folder: &AbsPath, n: usize| largest.get(folder).is_none_or(|most| most * 10 < n * 9);
    counts.into_iter().filter(|(folder, n)| *n > CROWDED && is_spread(folder, *n)).map(|(folder, _)| folder).collect()
}

/// The folder whose line stands for `path`: the topmost.
fn top_of(path: &AbsPath, tops: &HashSet<AbsPath>) -> Option<AbsPath> {
    std::iter::successors(path.parent(), AbsPath::parent).filter(|above| tops.contains(above)).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(of: &[(&str, usize)]) -> Vec<AbsPath> {
        let mut all: Vec<AbsPath> =
            of.iter().flat_map(|(folder, n)| (0..*n).map(move |i| AbsPath::parse(format!("{folder}/{i}")).unwrap())).collect();
        all.sort();
        all
    }

    fn folded(lines: &[Line]) -> Vec<(String, usize)> {
        lines
            .iter()
            .filter_map(|line| if let Line::Folded(path, n) = line { Some((path.to_string(), *n)) } else { None })
            .collect()
    }

    #[test]
    fn a_crowded_place_is_one_line_and_the_rest_stays() {
        let all = paths(&[("/home/u/.cache/a", 80), ("/home/u/.cache/b", 70), ("/home/u/p", 3)]);
        let lines = fold(&all, |_| false);
        assert_eq!(folded(&lines), [("/home/u/.cache".to_owned(), 150)]);
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn what_must_be_shown_is_and_few_rows_are_left_alone() {
        let all = paths(&[("/d", 200)]);
        assert_eq!(fold(&all, |_| true).len(), 200);
        let lines = fold(&all, |i| i == 7);
        assert_eq!((folded(&lines), lines.contains(&Line::Row(7))), (vec![("/d".to_owned(), 199)], true));
        assert_eq!(fold(&paths(&[("/d", 100)]), |_| false).len(), 100);
    }
}
