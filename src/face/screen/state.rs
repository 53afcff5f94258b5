//! The screen: what it holds, and what keys do to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::confirmation::Ask;
use super::loader::{EACH, Loaded, Loader, Watcher};
use super::outline::{Order, Outline, dangerous, size};
use super::rows;
use super::rows::Row;
use super::selection::{Extent, Selection};
use super::sheet::Sheet;
use super::side_list::List;
use super::theme::Theme;
use super::world::{Decision, Place, Program, ViewedChanges, World};
use crate::fs::AbsPath;
use crate::session::Sort;

pub const SMALLEST: (u16, u16) = (80, 24);

/// From so many columns on the tree stays beside a difference that has the keys.
pub const WIDE: u16 = 110;

/// The most changes of which lines are counted unasked.
const COUNTED: usize = 2_000;

/// The most differences that are kept to be shown again.
const KEPT: usize = 64;

/// The side of the screen that has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    Tree,
    Difference,
}

/// The rows that are listed.
#[derive(Debug)]
pub enum Listed {
    Tree(Vec<usize>),
    /// Changes, in another order.
    Flat(Vec<usize>),
}

impl Listed {
    pub fn len(&self) -> usize {
        match self {
            Listed::Tree(rows) | Listed::Flat(rows) => rows.len(),
        }
    }
}

/// The meaning of keys at the moment.
#[derive(Debug)]
pub enum Mode {
    Usual,
    Finding(String),
    Asking(Ask),
    /// A text that is read and left.
    Reading {
        title: String,
        lines: Vec<String>,
        top: usize,
    },
    Helping(usize),
    Listing(List),
}

/// The lines of a change that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Not counted yet.
    Unknown,
    None,
    /// Lines that came and went.
    Lines(usize, usize),
}

pub struct Screen<'w> {
    pub world: &'w mut dyn World,
    /// Prints a path as people read it.
    pub show: Box<dyn Fn(&AbsPath) -> String>,
    pub theme: Theme,
    pub place: Place,
    pub seen: ViewedChanges,
    pub outline: Outline,
    pub chosens: Selection,
    /// The choice among those of the whole, while a step is looked at.
    pub put_by: Option<(ViewedChanges, Selection)>,
    pub counted: Vec<Counted>,
    /// True for those that something stands against, as far as is known.
    pub conflicts: Vec<bool>,
    pub loader: Loader,
    pub watcher: Watcher,
    /// The changes that stand above all others in the order of paths, in their own place, too.
    pub dangerous: Vec<usize>,
    /// The number of rows that these have.
    pub raised: usize,
    /// The order of the rows.
    pub order: Order,
    /// True if only what is chosen is listed.
    pub only_chosen: bool,
    pub listed: Listed,
    /// The row under the cursor, and the first that is shown.
    pub at: usize,
    pub top: usize,
    pub focus: Focus,
    pub sheets: HashMap<usize, Arc<Sheet>>,
    pub waiting: Option<usize>,
    /// When it was asked last whether what is shown still stands so.
    pub looked: Instant,
    /// The difference, and the change that it is of.
    pub sheet: Option<(usize, Arc<Sheet>)>,
    pub rows: Vec<Row>,
    /// The row under the cursor, and the first that is shown.
    pub row: usize,
    pub row_top: usize,
    pub column: usize,
    /// True for the sides beside each other.
    pub beside: bool,
    /// True if lines are chosen.
    pub by_lines: bool,
    /// True to go to the last block of the change that is read.
    pub from_below: bool,
    pub mode: Mode,
    /// Said last, and true for what must not be missed.
    pub message: Option<(bool, String)>,
    pub found: Option<String>,
    /// Rows of the tree and of the difference that fit, as they were drawn last.
    pub fits: (usize, usize),
    /// True if the window is too small.
    pub is_small: bool,
    pub width: u16,
    pub ends: bool,
    /// True if no further subject is shown either.
    pub ends_all: bool,
    /// The number of further subjects.
    pub further: usize,
    /// True once nothing is left to decide, and the next subject is shown as soon as that was read.
    pub is_decided: bool,
}

impl<'w> Screen<'w> {
    /// Opens the screen; nothing is drawn yet.
    ///
    /// # Errors
    /// What is to be shown cannot be read.
    pub fn open(world: &'w mut dyn World, show: Box<dyn Fn(&AbsPath) -> String>, theme: Theme) -> Result<Self, String> {
        let look = world.look(&Place::Whole);
        let seen = look(None)?.ok_or("there is nothing to look at")?;
        let outline = Outline::of(&seen.changes, &*show);
        let count = seen.changes.len();
        let (loader, watcher) = (Loader::start(&seen.contents), Watcher::start(&look, seen.mark));
        let further = world.further();
        let mut screen = Self {
            world,
            show,
            theme,
            place: Place::Whole,
            outline,
            chosens: Selection::none(count),
            put_by: None,
            counted: vec![Counted::Unknown; count],
            conflicts: vec![false; count],
            loader,
            watcher,
            dangerous: dangerous(&seen.changes),
            raised: 0,
            order: Order::Path,
            only_chosen: false,
            listed: Listed::Tree(Vec::new()),
            at: 0,
            top: 0,
            focus: Focus::Tree,
            sheets: HashMap::new(),
            waiting: None,
            looked: Instant::now(),
            sheet: None,
            rows: Vec::new(),
            row: 0,
            row_top: 0,
            column: 0,
            beside: false,
            by_lines: false,
            from_below: false,
            mode: Mode::Usual,
            message: (further > 0).then(|| (false, more(further))),
            found: None,
            fits: (1, 1),
            is_small: false,
            width: 0,
            ends: false,
            ends_all: false,
            further,
            is_decided: false,
            seen,
        };
        screen.list();
        screen.begin();
        Ok(screen)
    }

    pub fn take_loaded(&mut self) {
        self.look_at_shown();
        while let Some(told) = self.loader.next() {
            match told {
                Loaded::Sheet(i, sheet) => self.take_sheet(i, sheet),
                Loaded::Counts(i, counts, is_conflict) => self.note_counts(i, counts, is_conflict),
            }
        }
        match self.watcher.next() {
            None => {}
            Some(Ok(seen)) => self.adopt(seen),
            Some(Err(why)) => self.message = Some((true, why)),
        }
    }

    pub fn note_counts(&mut self, i: usize, counts: Option<(usize, usize)>, is_conflict: bool) {
        self.counted[i] = counts.map_or(Counted::None, |(came, went)| Counted::Lines(came, went));
        self.conflicts[i] = is_conflict;
    }

    pub fn take_sheet(&mut self, i: usize, sheet: Arc<Sheet>) {
        self.note_counts(i, sheet.counts, sheet.is_conflict);
        if self.sheets.len() >= KEPT {
            self.sheets.clear();
        }
        self.sheets.insert(i, Arc::clone(&sheet));
        if self.waiting == Some(i) {
            self.waiting = None;
            self.lay_out(i, sheet);
        } else if self.sheet.as_ref().is_some_and(|(shown, _)| *shown == i) {
            // It was read anew, as something else stands there by now. Its blocks are other ones.
            self.chosens.leave_part(i);
            self.message = Some((true, "the file on the tree has changed: this is how it is now".into()));
            self.lay_out(i, sheet);
        }
    }

    /// Asks whether what is shown still stands so.
    pub fn look_at_shown(&mut self) {
        if self.waiting.is_none()
            && self.looked.elapsed() >= EACH
            && let Some((i, mark)) = self.sheet.as_ref().and_then(|(i, sheet)| Some((*i, sheet.mark?)))
        {
            self.looked = Instant::now();
            self.loader.want_again(i, mark);
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    pub fn lay_out(&mut self, i: usize, sheet: Arc<Sheet>) {
        let is_other = self.sheet.as_ref().is_none_or(|(shown, _)| *shown != i);
        self.rows = if self.beside { rows::beside(&sheet) } else { rows::unified(&sheet) };
        if is_other {
            let stops = rows::stops(&self.rows, &sheet);
            let stop = if self.from_below { stops.last() } else { stops.first() };
            let is_in_difference = self.focus == Focus::Difference;
            (self.row, self.row_top, self.column) = (stop.copied().filter(|_| is_in_difference).unwrap_or(0), 0, 0);
        }
        self.row = self.row.min(self.rows.len().saturating_sub(1));
        self.from_below = false;
        self.sheet = Some((i, sheet));
    }

    /// Begins to read what the cursor is on, and to count lines.
    pub fn begin(&mut self) {
        let all = self.seen.changes.len();
        if all <= COUNTED {
            self.loader.want_counts((0..all).collect());
        }
        self.read();
    }

    /// The change under the cursor; `None` for a directory that is none.
    pub fn change(&self) -> Option<usize> {
        match &self.listed {
            Listed::Flat(rows) => rows.get(self.at).copied(),
            Listed::Tree(rows) => {
                rows.get(self.at).map(|n| self.outline.node(*n)).filter(|node| node.is_change).map(|node| node.range.start)
            }
        }
    }

    /// The changes under the cursor: a directory's, or one.
    pub fn under(&self) -> std::ops::Range<usize> {
        match &self.listed {
            Listed::Flat(rows) => rows.get(self.at).map_or(0..0, |i| *i..*i + 1),
            Listed::Tree(rows) => rows.get(self.at).map_or(0..0, |n| self.outline.node(*n).range.clone()),
        }
    }

    /// Shows the difference of what the cursor is on: at once, or when it is read.
    pub fn read(&mut self) {
        let Some(i) = self.change() else {
            (self.sheet, self.waiting) = (None, None);
            self.rows.clear();
            return;
        };
        match self.sheets.get(&i).map(Arc::clone) {
            Some(sheet) => {
                self.waiting = None;
                self.lay_out(i, sheet);
            }
            None if self.waiting == Some(i) => {}
            None => {
                self.waiting = Some(i);
                self.sheet = None;
                self.rows.clear();
                self.loader.want(i);
            }
        }
    }

    /// Lists the rows anew; the cursor stays where it was, as far as that is listed.
    pub fn list(&mut self) {
        let under = self.under();
        let node = match &self.listed {
            Listed::Tree(rows) => rows.get(self.at).copied(),
            Listed::Flat(_) => None,
        };
        let changes = &self.seen.changes;
        let is_shown = |range: std::ops::Range<usize>| !self.only_chosen || self.chosens.of(range) != Extent::None;
        self.raised = 0;
        self.listed = match self.order {
            Order::Path => {
                let raised = self.dangerous.iter().filter(|i| is_shown(**i..**i + 1));
                let mut rows: Vec<usize> = raised.filter_map(|i| self.outline.of_change(*i)).collect();
                self.raised = rows.len();
                rows.extend(self.outline.listed(|node| is_shown(node.range.clone())));
                Listed::Tree(rows)
            }
            order => {
                let mut rows: Vec<usize> = (0..changes.len()).filter(|i| is_shown(*i..*i + 1)).collect();
                match order {
                    Order::Size => rows.sort_by_key(|i| std::cmp::Reverse(size(&changes[*i]))),
                    _ => rows.sort_by_key(|i| match changes[*i].sort() {
                        Sort::Deleted => 0,
                        Sort::Modified => 1,
                        Sort::Created => 2,
                        Sort::Metadata => 3,
                        Sort::Times => 4,
                    }),
                }
                Listed::Flat(rows)
            }
        };
        let found = match &self.listed {
            Listed::Flat(rows) => rows.iter().position(|i| *i == under.start),
            Listed::Tree(rows) if rows.get(self.at).copied() == node => Some(self.at),
            Listed::Tree(rows) => rows.iter().rposition(|n| Some(*n) == node).or_else(|| {
                rows.iter().rposition(|n| {
                    let range = &self.outline.node(*n).range;
                    *range == under || range.contains(&under.start)
                })
            }),
        };
        let last = self.listed.len().saturating_sub(1);
        self.at = found.filter(|_| !under.is_empty()).unwrap_or(self.at).min(last);
    }
}

/// The words for further subjects.
fn more(further: usize) -> String {
    match further {
        1 => "1 more session waits: q goes on to it".into(),
        many => format!("{many} more sessions wait: q goes on to the next"),
    }
}

/// A request of a key for something beyond the screen.
#[derive(Debug)]
pub enum Wish {
    Nothing,
    Stop,
    Redraw,
    Do(Decision),
    Open(usize, Program),
}
