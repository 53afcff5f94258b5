//! The cursor: from row to row, from block to block, to what is looked for.

use super::outline::Order;
use super::rows;
use super::selection::Extent;
use super::state::{Focus, Listed, SMALLEST, Screen};
use super::world::Place;

/// Columns of a step to the side.
const SIDEWAYS: usize = 8;

impl Screen<'_> {
    pub fn page(&self) -> isize {
        let fits = if self.focus == Focus::Tree { self.fits.0 } else { self.fits.1 };
        (fits.max(2) - 1) as isize
    }

    pub fn step(&mut self, by: isize) {
        match self.focus {
            Focus::Tree => {
                self.at = self.at.saturating_add_signed(by).min(self.listed.len().saturating_sub(1));
                self.read();
            }
            Focus::Difference => self.row = self.row.saturating_add_signed(by).min(self.rows.len().saturating_sub(1)),
        }
    }

    pub fn left(&mut self) {
        if self.focus == Focus::Difference {
            self.column = self.column.saturating_sub(SIDEWAYS);
            return;
        }
        let Listed::Tree(rows) = &self.listed else { return };
        let Some(n) = rows.get(self.at).copied() else { return };
        if self.outline.node(n).is_parent && !self.outline.node(n).is_folded {
            self.outline.fold(n, true);
            self.list();
        } else if let Some(above) = self.outline.parent(n) {
            self.at = rows.iter().position(|row| *row == above).unwrap_or(self.at);
        }
        self.read();
    }

    pub fn right(&mut self) {
        if self.focus == Focus::Difference {
            self.column += SIDEWAYS;
            return;
        }
        self.enter();
    }

    pub fn enter(&mut self) {
        if self.focus == Focus::Difference {
            return;
        }
        if let Listed::Tree(rows) = &self.listed
            && let Some(n) = rows.get(self.at).copied()
            && self.outline.node(n).is_parent
        {
            let folded = self.outline.node(n).is_folded;
            if folded || self.change().is_none() {
                self.outline.fold(n, !folded);
                self.list();
                self.read();
                return;
            }
        }
        if self.change().is_some() {
            self.switch();
        }
    }

    pub fn switch(&mut self) {
        self.focus = match self.focus {
            Focus::Difference => Focus::Tree,
            Focus::Tree if self.change().is_some() => Focus::Difference,
            Focus::Tree => {
                self.message = Some((false, "this is a directory: Enter unfolds it".into()));
                Focus::Tree
            }
        };
        // The first block, rather than what stands around it.
        if let (Focus::Difference, 0, Some((_, sheet))) = (self.focus, self.row, &self.sheet) {
            self.row = rows::stops(&self.rows, sheet).first().copied().unwrap_or(0);
        }
    }

    pub fn leave(&mut self) {
        match (self.focus, &self.place) {
            (Focus::Difference, _) => self.focus = Focus::Tree,
            (Focus::Tree, Place::Whole) if self.only_chosen => self.list_chosen(),
            (Focus::Tree, Place::Whole) => self.ends = true,
            (Focus::Tree, _) => self.go_to(Place::Whole),
        }
    }

    pub fn leave_all(&mut self) {
        (self.ends, self.ends_all) = (true, true);
    }

    pub fn set_beside(&mut self) {
        self.beside = !self.beside;
        if self.beside && self.width < SMALLEST.0 {
            self.beside = false;
        }
        if let Some((i, sheet)) = self.sheet.clone() {
            let line = self.rows.get(self.row).and_then(|row| row.left.or(row.right));
            self.lay_out(i, sheet);
            self.row = self.rows.iter().position(|row| row.left == line || row.right == line).unwrap_or(0);
        }
        self.message =
            Some((false, if self.beside { "the sides beside each other" } else { "the sides below each other" }.into()));
    }

    pub fn reorder(&mut self) {
        self.order = self.order.next();
        self.list();
        self.read();
        self.message = Some((false, format!("ordered by {}", self.order.word())));
    }

    pub fn next_block(&mut self) {
        if self.focus == Focus::Difference
            && let Some((_, sheet)) = &self.sheet
            && let Some(next) = rows::stops(&self.rows, sheet).into_iter().find(|stop| *stop > self.row)
        {
            self.row = next;
            return;
        }
        self.next_file(true);
    }

    pub fn block_before(&mut self) {
        if self.focus == Focus::Difference
            && let Some((_, sheet)) = &self.sheet
            && let Some(before) = rows::stops(&self.rows, sheet).into_iter().rev().find(|stop| *stop < self.row)
        {
            self.row = before;
            return;
        }
        self.from_below = true;
        self.next_file(false);
    }

    /// Goes to the next change, or the one before, also into directories that are folded.
    pub fn next_file(&mut self, forward: bool) {
        let next = match &self.listed {
            Listed::Flat(rows) if forward => rows.get(self.at + 1).copied(),
            Listed::Flat(rows) => self.at.checked_sub(1).map(|at| rows[at]),
            Listed::Tree(_) => {
                let under = self.under();
                let is_shown = |i: &usize| !self.only_chosen || self.chosens.of(*i..*i + 1) != Extent::None;
                let from = if self.change().is_some() { under.start + 1 } else { under.start };
                if forward { (from..self.seen.changes.len()).find(is_shown) } else { (0..under.start).rev().find(is_shown) }
            }
        };
        match next {
            Some(i) => self.show_change(i),
            None => {
                self.from_below = false;
                let what = if forward { "this is the last change" } else { "this is the first change" };
                self.message = Some((false, what.into()));
            }
        }
    }

    pub fn show_change(&mut self, i: usize) {
        if self.order == Order::Path
            && let Some(n) = self.outline.of_change(i)
        {
            self.outline.reveal(n);
            self.list();
            if let Listed::Tree(rows) = &self.listed {
                self.at = rows.iter().rposition(|row| *row == n).unwrap_or(self.at);
            }
        } else if let Listed::Flat(rows) = &self.listed {
            self.at = rows.iter().position(|row| *row == i).unwrap_or(self.at);
        }
        self.read();
    }

    pub fn find(&mut self, forward: bool, from_next: bool) {
        let Some(text) = self.found.clone() else {
            self.message = Some((false, "/ looks for text".into()));
            return;
        };
        let lower = text.to_lowercase();
        // Small letters stand for large ones too, as in less(1) -i.
        let has = |line: &str| if lower == text { line.to_lowercase().contains(&lower) } else { line.contains(&text) };
        let found = match self.focus {
            Focus::Difference => self.find_row(forward, from_next, &has).map(|row| self.row = row),
            Focus::Tree => self.find_path(forward, from_next, &has).map(|i| self.show_change(i)),
        };
        if found.is_none() {
            let place = if self.focus == Focus::Tree { "no path" } else { "no line here" };
            self.message = Some((true, format!("{place} has {text:?}")));
        }
    }

    pub fn find_row(&self, forward: bool, from_next: bool, has: &dyn Fn(&str) -> bool) -> Option<usize> {
        let (_, sheet) = self.sheet.as_ref()?;
        let has = |n: &usize| {
            self.rows[*n].lines(sheet).any(|line| has(&line.text.iter().map(|(_, text)| text.as_str()).collect::<String>()))
        };
        around(self.rows.len(), self.row, forward, from_next).find(has)
    }

    pub fn find_path(&self, forward: bool, from_next: bool, has: &dyn Fn(&str) -> bool) -> Option<usize> {
        let has = |i: &usize| has(&(self.show)(&self.seen.changes[*i].path));
        match &self.listed {
            Listed::Flat(rows) => around(rows.len(), self.at, forward, from_next).map(|at| rows[at]).find(has),
            Listed::Tree(_) => {
                let from_next = from_next && self.change().is_some();
                let at = self.under().start;
                let is_shown = |i: &usize| !self.only_chosen || self.chosens.of(*i..*i + 1) != Extent::None;
                around(self.seen.changes.len(), at, forward, from_next).filter(is_shown).find(has)
            }
        }
    }
}

/// The numbers below `count`, from `at` on in one direction and around the end.
fn around(count: usize, at: usize, forward: bool, from_next: bool) -> impl Iterator<Item = usize> {
    let first = usize::from(from_next);
    (first..count + first).map(move |k| if forward { (at + k) % count } else { (at + 2 * count - k) % count })
}
