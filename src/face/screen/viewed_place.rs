//! The place that is looked at: the whole, a step, a turn; and the same anew, with the cursor and the choice where they were.

use super::confirmation::count;
use super::loader::{Loader, Watcher};
use super::outline::{Outline, dangerous};
use super::selection::Selection;
use super::state::{Counted, Focus, Listed, Mode, Screen};
use super::world::{Place, ViewedChanges};

impl Screen<'_> {
    pub fn look_again(&mut self) {
        let look = self.world.look(&self.place);
        match look(None) {
            Ok(Some(seen)) => {
                self.adopt(seen);
                self.watcher = Watcher::start(&look, self.seen.mark);
            }
            Ok(None) => {}
            Err(why) => self.message = Some((true, why)),
        }
    }

    pub fn go_to(&mut self, place: Place) {
        let look = self.world.look(&place);
        let seen = match look(None) {
            Ok(Some(seen)) => seen,
            Ok(None) => return,
            Err(why) => {
                self.message = Some((true, why));
                return;
            }
        };
        if self.place == Place::Whole {
            self.put_by = Some((self.seen.clone(), self.chosens.clone()));
        }
        let chosens = match self.put_by.take() {
            Some((old, chosens)) if place == Place::Whole => chosens.carried(&old.changes, &seen.changes).0,
            put_by => {
                self.put_by = put_by;
                Selection::none(seen.changes.len())
            }
        };
        (self.place, self.only_chosen, self.focus, self.at, self.top) = (place, false, Focus::Tree, 0, 0);
        self.outline = Outline::of(&seen.changes, &*self.show);
        self.watcher = Watcher::start(&look, seen.mark);
        self.set(seen, chosens);
    }

    /// Takes what is there now in place of what was shown. The cursor stays at its path, and what is chosen stays chosen.
    pub fn adopt(&mut self, seen: ViewedChanges) {
        let (chosens, lost) = self.chosens.carried(&self.seen.changes, &seen.changes);
        let path = self.under().start;
        let path = self.seen.changes.get(path).map(|change| change.path.clone());
        let was = (self.row, self.row_top, self.sheet.as_ref().map(|(_, sheet)| sheet.hash));
        let mut outline = Outline::of(&seen.changes, &*self.show);
        outline.fold_as(&self.outline, &self.seen.changes, &seen.changes);
        self.outline = outline;
        let is_running = seen.is_running;
        let has_ended = self.seen.is_running && !is_running;
        self.set(seen, chosens);
        let near = path.map(|path| self.seen.changes.partition_point(|change| change.path < path));
        if let Some(i) = near.filter(|i| *i < self.seen.changes.len()) {
            if self.under().start != i {
                self.show_listed(i);
            }
            self.read();
        }
        if self.sheet.as_ref().map(|(_, sheet)| sheet.hash) == was.2 {
            (self.row, self.row_top) = (was.0.min(self.rows.len().saturating_sub(1)), was.1);
        }
        if lost > 0 {
            let what = format!(
                "{} changed meanwhile, and {} no longer chosen",
                count(lost, "change"),
                if lost == 1 { "is" } else { "are" }
            );
            self.message = Some((true, what));
        } else if has_ended {
            self.message = Some((false, "the command has ended".into()));
        } else if !is_running && self.message.is_none() && matches!(self.mode, Mode::Usual) {
            self.message = Some((false, "it is shown as it is now".into()));
        }
    }

    /// Moves the cursor to the row in which a change is listed, without unfolding anything.
    pub fn show_listed(&mut self, i: usize) {
        self.at = match &self.listed {
            Listed::Flat(rows) => rows.iter().position(|row| *row == i),
            Listed::Tree(rows) => rows.iter().rposition(|n| self.outline.node(*n).range.contains(&i)),
        }
        .unwrap_or(self.at);
    }

    pub fn set(&mut self, seen: ViewedChanges, chosens: Selection) {
        let count = seen.changes.len();
        self.loader = Loader::start(&seen.contents);
        self.sheets.clear();
        (self.sheet, self.waiting) = (None, None);
        self.rows.clear();
        // What is the same is not counted anew before the eyes.
        let old = std::mem::replace(&mut self.counted, vec![Counted::Unknown; count]);
        for (i, change) in seen.changes.iter().enumerate() {
            if let Ok(k) = self.seen.changes.binary_search_by(|old| old.path.cmp(&change.path))
                && self.seen.changes[k] == *change
            {
                self.counted[i] = old[k];
            }
        }
        self.conflicts = vec![false; count];
        self.chosens = chosens;
        self.seen = seen;
        self.only_chosen &= !self.chosens.is_empty();
        self.dangerous = dangerous(&self.seen.changes);
        // The rows are those of another tree.
        self.listed = Listed::Tree(Vec::new());
        if count == 0 {
            self.focus = Focus::Tree;
        }
        self.list();
        self.begin();
    }
}
