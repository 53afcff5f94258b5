//! A tree of steps as lines, drawn as git-log(1) does with `--graph`: the newest first, `*` for a step, a column for each branch.

use std::collections::HashSet;

/// A line of the drawing.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    pub graph: String,
    /// The number of the step that it is about; `None` for a line that only joins columns.
    pub n: Option<u32>,
}

/// Draws steps, each with the step that it stands on, in the order of their numbers. The last row is 0. What stands on no older step that is
/// known stands on 0.
pub fn rows(steps: &[(u32, u32)]) -> Vec<Row> {
    let known: HashSet<u32> = steps.iter().map(|(n, _)| *n).collect();
    // The step that comes next in each column.
    let mut columns: Vec<u32> = Vec::new();
    let mut rows = Vec::new();
    for (n, on) in steps.iter().rev() {
        let at = column_of(*n, &mut columns);
        rows.push(Row { graph: line(columns.len(), at), n: Some(*n) });
        let below = if on < n && known.contains(on) { *on } else { 0 };
        let other = columns.iter().enumerate().position(|(column, next)| column != at && *next == below);
        columns[at] = below;
        if let Some(other) = other {
            let (left, right) = (at.min(other), at.max(other));
            rows.extend(joining(columns.len(), left, right).into_iter().map(|graph| Row { graph, n: None }));
            columns.remove(right);
        }
    }
    rows.push(Row { graph: "*".into(), n: Some(0) });
    rows
}

/// The column in which a step is drawn: the one that waits for it, else a new one.
fn column_of(n: u32, columns: &mut Vec<u32>) -> usize {
    columns.iter().position(|next| *next == n).unwrap_or_else(|| {
        columns.push(n);
        columns.len() - 1
    })
}

fn line(columns: usize, at: usize) -> String {
    let signs: Vec<&str> = (0..columns).map(|column| if column == at { "*" } else { "|" }).collect();
    signs.join(" ")
}

/// The lines by which column `right` goes over into column `left`, and those further right move up: graph.c of git,
/// `graph_output_collapsing_line`.
fn joining(columns: usize, left: usize, right: usize) -> Vec<String> {
    let mut first = vec![b' '; 2 * columns];
    (0..right).for_each(|column| first[2 * column] = b'|');
    (right..columns).for_each(|column| first[2 * column - 1] = b'/');
    (2 * left + 3..(2 * right).saturating_sub(2)).step_by(2).for_each(|place| first[place] = b'_');
    let mut lines = vec![first];
    if right - left > 1 {
        let mut second = vec![b' '; 2 * columns];
        (0..columns - 1).for_each(|column| second[2 * column] = b'|');
        second[2 * left + 1] = b'/';
        lines.push(second);
    }
    lines.iter().map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(steps: &[(u32, u32)]) -> Vec<String> {
        let number = |row: &Row| row.n.map(|n| format!(" {n}")).unwrap_or_default();
        rows(steps).iter().map(|row| format!("{}{}", row.graph, number(row))).collect()
    }

    #[test]
    fn steps_are_drawn_as_git_draws_commits() {
        for (what, steps, want) in [
            ("none", &[][..], &["* 0"][..]),
            ("a line", &[(1, 0), (2, 1)], &["* 2", "* 1", "* 0"]),
            ("with steps that were merged", &[(4, 0), (5, 4)], &["* 5", "* 4", "* 0"]),
            ("a branch", &[(1, 0), (2, 1), (3, 2), (4, 1)], &["* 4", "| * 3", "| * 2", "|/", "* 1", "* 0"]),
            ("two from one step", &[(1, 0), (2, 1), (3, 1), (4, 1)], &["* 4", "| * 3", "|/", "| * 2", "|/", "* 1", "* 0"]),
            (
                "a branch of a branch",
                &[(1, 0), (2, 1), (3, 2), (4, 1), (5, 4), (6, 4)],
                &["* 6", "| * 5", "|/", "* 4", "| * 3", "| * 2", "|/", "* 1", "* 0"],
            ),
            (
                "past a column",
                &[(1, 0), (2, 1), (3, 1), (4, 2), (5, 3), (6, 2), (7, 3)],
                &["* 7", "| * 6", "| | * 5", "| |/", "|/|", "| | * 4", "| |/", "* | 3", "| * 2", "|/", "* 1", "* 0"],
            ),
            (
                "past two columns, with one further right",
                &[(1, 0), (2, 0), (3, 0), (4, 0), (5, 4), (6, 3), (7, 4), (8, 1), (9, 2), (10, 3), (11, 4)],
                &[
                    "* 11",
                    "| * 10",
                    "| | * 9",
                    "| | | * 8",
                    "| | | | * 7",
                    "| |_|_|/",
                    "|/| | |",
                    "| | | | * 6",
                    "| | |_|/",
                    "| |/| |",
                    "| | | | * 5",
                    "| |_|_|/",
                    "|/| | |",
                    "* | | | 4",
                    "| * | | 3",
                    "|/ / /",
                    "| * | 2",
                    "|/ /",
                    "| * 1",
                    "|/",
                    "* 0",
                ],
            ),
            ("a garbled record", &[(1, 7), (2, 2)], &["* 2", "| * 1", "|/", "* 0"]),
        ] {
            assert_eq!(drawn(steps), want, "{what}");
        }
    }
}
