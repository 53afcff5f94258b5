//! The choice of a person, and the decisions: the choice, the question, and what came of it.

use std::sync::Arc;

use super::confirmation::Ask;
use super::selection::Selection;
use super::side_list::{List, Listing};
use super::state::{Focus, Mode, Screen, Wish};
use super::world::{Act, Decision, Ended, Place, Program};
use crate::fs::AbsPath;

impl Screen<'_> {
    /// True if there is anything to be chosen for.
    pub fn can_choose(&self) -> bool {
        let may = self.seen.may;
        self.place == Place::Whole && (may.commit || may.discard || may.roll_back || may.restore)
    }

    /// Says why nothing can be chosen. True if something can.
    pub fn may_choose(&mut self) -> bool {
        if !self.can_choose() {
            let title = &self.seen.title;
            let why = match self.seen.is_running {
                true => format!("a command runs in {title}: until it ends, it can only be looked at"),
                false => format!("{title} is {}: it can only be looked at", self.seen.state),
            };
            self.message = Some((true, why));
        }
        self.can_choose()
    }

    pub fn choose(&mut self) {
        if !self.may_choose() {
            return;
        }
        if self.focus == Focus::Tree {
            self.chosens.turn(self.under());
            return;
        }
        let Some((i, sheet)) = self.sheet.clone() else {
            self.message = Some((false, "the difference is still being read".into()));
            return;
        };
        let Some(row) = self.rows.get(self.row).copied() else { return };
        if row.is_meta(&sheet) {
            self.chosens.turn_meta(i, &sheet);
            return;
        }
        let block = row.block(&sheet);
        if block == 0 && sheet.blocks == 0 {
            self.chosens.turn([i]);
            let why = if sheet.whole.is_empty() { String::new() } else { format!(": {}", sheet.whole) };
            self.message = Some((false, format!("this change is taken as a whole{why}")));
            return;
        }
        if block == 0 {
            self.message = Some((false, "there is no block here: ] goes to the next one".into()));
            return;
        }
        let lines: Vec<(usize, usize)> = match self.by_lines {
            true => row.lines(&sheet).filter(|line| line.block > 0).map(|line| (line.block, line.at)).collect(),
            false => sheet.lines.iter().filter(|line| line.block == block).map(|line| (line.block, line.at)).collect(),
        };
        self.chosens.turn_lines(i, &sheet, &lines);
        if self.by_lines {
            self.step(1);
        }
    }

    pub fn lines(&mut self) {
        self.by_lines = !self.by_lines;
        let what = if self.by_lines { "Space chooses a line" } else { "Space chooses a block" };
        if self.focus == Focus::Tree {
            self.switch();
        }
        self.message.get_or_insert((false, what.into()));
    }

    pub fn choose_file(&mut self) {
        if self.may_choose() {
            match (self.focus, &self.sheet) {
                (Focus::Difference, Some((i, _))) => self.chosens.turn([*i]),
                _ => self.chosens.turn(self.under()),
            }
        }
    }

    pub fn choose_all(&mut self) {
        if self.may_choose() {
            self.chosens.turn(0..self.seen.changes.len());
        }
    }

    pub fn list_chosen(&mut self) {
        if !self.only_chosen && self.chosens.is_empty() {
            self.message = Some((false, "nothing is chosen: Space chooses".into()));
            return;
        }
        self.only_chosen = !self.only_chosen;
        self.list();
        self.read();
    }

    /// Asks whether an act is to be done with what is chosen. `first`: what has to be said before.
    pub fn ask(&mut self, act: Act, mut first: Vec<String>) {
        if !self.may_choose() {
            return;
        }
        let may = self.seen.may;
        let (can, word) = match act {
            Act::Commit => (may.commit, "committed"),
            Act::Discard => (may.discard, "discarded"),
            Act::RollBack => (may.roll_back, "rolled back"),
            Act::Restore => (may.restore, "restored"),
            Act::Merge => (may.choose, "merged"),
        };
        if !can {
            self.message = Some((true, format!("nothing of {} can be {word}: it is {}", self.seen.title, self.seen.state)));
            return;
        }
        match act {
            Act::Discard if may.steps => first.push("u takes it back, and so does a step before it: s lists them.".into()),
            Act::Discard => first.push("A session that was staged by hand has no steps: this cannot be undone.".into()),
            Act::Merge => first.push("The held change is merged with the tree as it is now. The tree is not touched.".into()),
            Act::Commit | Act::RollBack | Act::Restore => {}
        }
        let wants_in = act == Act::RollBack;
        let sides = Arc::clone(&self.seen.sides);
        let mut chosens = self.chosens.clone();
        if chosens.is_empty() {
            // Without a choice it is what the cursor is on, which the question names.
            chosens.turn(self.under());
        }
        chosens.retain(|i| sides.get(i).is_none_or(|side| side.is_in() == wants_in || act == Act::Restore));
        if chosens.is_empty() {
            let why = if wants_in { "is on the tree" } else { "is held: it is on the tree" };
            self.message = Some((true, format!("nothing of this {why}")));
            return;
        }
        match self.world.pick(&self.seen, act, chosens.taken()) {
            Ok(planned) => {
                let first = first.into_iter().chain(planned.notes).collect();
                self.mode = Mode::Asking(Ask::of(act, &self.seen, &chosens, planned.picked, first, &*self.show));
            }
            Err(why) => self.mode = Mode::Reading { title: "Not possible".into(), lines: vec![why], top: 0 },
        }
    }

    pub fn ask_undo(&mut self) {
        match self.world.last() {
            Some(what) => {
                let lines = vec![what, String::new(), "What was changed since stays, and is named.".into()];
                self.mode = Mode::Asking(Ask::plain(Decision::Undo, "Undo the last act of this screen?".into(), lines));
            }
            None => {
                self.message = Some((
                    false,
                    "nothing was done in this screen that can be undone; recant undo takes back earlier commits".into(),
                ))
            }
        }
    }

    /// Does what was confirmed, and looks again. What changed meanwhile is said, and asked again.
    pub fn perform(&mut self, deed: Decision) {
        let (again, reason) = match &deed {
            Decision::Picked(act, _, reason) => (Some(*act), reason.clone()),
            _ => (None, None),
        };
        let merged: Vec<AbsPath> = match &deed {
            Decision::Picked(Act::Merge, picked, _) => picked.0.iter().map(|pick| pick.path.clone()).collect(),
            _ => Vec::new(),
        };
        let ended = self.world.perform(deed);
        let is_done = matches!(ended, Ended::Done(_));
        if is_done && again.is_some() {
            // What was chosen is done with.
            self.chosens = Selection::none(self.seen.changes.len());
        }
        self.look_again();
        if is_done {
            // What was merged waits to be committed.
            let at = |path: &AbsPath| self.seen.changes.binary_search_by(|change| change.path.cmp(path)).ok();
            let merged: Vec<usize> = merged.iter().filter_map(at).collect();
            self.chosens.turn(merged);
        }
        let is_left = self.seen.may.commit && !self.seen.changes.is_empty();
        self.is_decided = is_done && again.is_some() && !is_left && self.world.goes_on();
        self.show_outcome("Not done", ended, again);
        self.ends |= self.is_decided && matches!(self.mode, Mode::Usual);
        if let Mode::Asking(ask) = &mut self.mode
            && let Some(kept) = ask.reason()
        {
            *kept = reason;
        }
    }

    pub fn show_outcome(&mut self, title: &str, ended: Ended, again: Option<Act>) {
        match ended {
            Ended::Done(lines) if lines.is_empty() => {}
            Ended::Done(lines) => self.mode = Mode::Reading { title: "Done".into(), lines, top: 0 },
            Ended::Refused(lines) => self.mode = Mode::Reading { title: title.into(), lines, top: 0 },
            Ended::Conflict(mut lines) => {
                if again == Some(Act::Commit) && self.seen.may.choose {
                    lines.push("On this screen, m merges a held change with the tree as it is now.".into());
                }
                self.mode = Mode::Reading { title: title.into(), lines, top: 0 };
            }
            Ended::Changed(mut lines) => {
                lines.insert(0, "Nothing was done. This changed since it was shown:".into());
                match again.filter(|_| !self.chosens.is_empty()) {
                    Some(act) => {
                        lines.push("Look at it before you confirm.".into());
                        self.ask(act, lines);
                    }
                    None => self.mode = Mode::Reading { title: title.into(), lines, top: 0 },
                }
            }
        }
    }

    pub fn list_of(&mut self, of: Listing) {
        let may = match of {
            Listing::Steps => self.seen.may.steps,
            Listing::Turns => self.seen.may.turns,
        };
        if !may {
            let none = match of {
                Listing::Steps => "it has no steps",
                Listing::Turns => "there are no turns of agents in this project",
            };
            self.message = Some((false, none.into()));
            return;
        }
        let found = match of {
            Listing::Steps => self.world.steps(),
            Listing::Turns => self.world.turns(),
        };
        match found {
            Ok((heads, rows)) => {
                let at = rows.iter().position(|row| row.is_head).unwrap_or(0);
                self.mode = Mode::Listing(List { of, heads, rows, at });
            }
            Err(why) => self.message = Some((true, why)),
        }
    }

    pub fn open_in(&mut self, program: Program) -> Wish {
        let Some(i) = self.change() else {
            self.message = Some((false, "this is a directory: the cursor has to be on a file".into()));
            return Wish::Nothing;
        };
        if program == Program::Editor && (!self.seen.may.choose || self.place != Place::Whole) {
            self.message = Some((true, format!("nothing of {} can be edited: it is {}", self.seen.title, self.seen.state)));
            return Wish::Nothing;
        }
        Wish::Open(i, program)
    }

    pub fn notes(&mut self) {
        let mut lines = vec![self.seen.about.clone(), String::new()];
        match &self.seen.notes[..] {
            [] => lines.push("Nothing is known that is not among the changes.".into()),
            notes => lines.extend(notes.iter().cloned()),
        }
        self.mode = Mode::Reading { title: "Not among the changes".into(), lines, top: 0 };
    }
}
