//! The rows of a difference: its lines one below the other, or the two sides beside each other.

use super::sheet::{Kind, Line, Sheet};

/// A row: the lines on its two sides, by index. One that goes over the whole width stands on the left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// On the left; for one below the other, the only one.
    pub left: Option<usize>,
    pub right: Option<usize>,
}

impl Row {
    pub fn lines(self, sheet: &Sheet) -> impl Iterator<Item = &Line> {
        let right = self.right.filter(|right| Some(*right) != self.left);
        [self.left, right].into_iter().flatten().map(|i| &sheet.lines[i])
    }

    /// The block that the row is in; 0 for none.
    pub fn block(self, sheet: &Sheet) -> usize {
        self.lines(sheet).map(|line| line.block).max().unwrap_or(0)
    }

    /// True for the metadata that is chosen beside the blocks.
    pub fn is_meta(self, sheet: &Sheet) -> bool {
        self.lines(sheet).any(|line| line.kind == Kind::Meta)
    }
}

pub fn unified(sheet: &Sheet) -> Vec<Row> {
    (0..sheet.lines.len()).map(|i| Row { left: Some(i), right: None }).collect()
}

/// The two sides beside each other: in a block the first line that went stands beside the first that came.
pub fn beside(sheet: &Sheet) -> Vec<Row> {
    let (lines, mut rows, mut i) = (&sheet.lines, Vec::with_capacity(sheet.lines.len()), 0);
    let run = |from: usize, kind: Kind| lines[from..].iter().take_while(|line| line.kind == kind).count();
    while i < lines.len() {
        let (went, came) = match lines[i].kind {
            Kind::Old => {
                let went = run(i, Kind::Old);
                (went, run(i + went, Kind::New))
            }
            Kind::New => (0, run(i, Kind::New)),
            kind => {
                rows.push(Row { left: Some(i), right: (kind == Kind::Both).then_some(i) });
                i += 1;
                continue;
            }
        };
        rows.extend(
            (0..went.max(came)).map(|k| Row { left: (k < went).then_some(i + k), right: (k < came).then_some(i + went + k) }),
        );
        i += went + came;
    }
    rows
}

/// The first row of each block, and of the metadata, from top to bottom.
pub fn stops(rows: &[Row], sheet: &Sheet) -> Vec<usize> {
    let mut stops = Vec::new();
    let mut last = 0;
    for (n, row) in rows.iter().enumerate() {
        let block = row.block(sheet);
        // Of a change that is whole each run of changed lines is one.
        let is_changed = row.lines(sheet).any(|line| matches!(line.kind, Kind::Old | Kind::New));
        let key = if block > 0 { block + 1 } else { usize::from(is_changed) };
        if key > 0 && key != last || row.is_meta(sheet) {
            stops.push(n);
        }
        last = key;
    }
    stops
}
