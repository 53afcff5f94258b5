//! The screen: what it holds, and what keys do to it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm;

use super::ask::{Ask, count};
use super::choice::{Chosens, Much};
use super::draw;
use super::facts::{Act, Deed, Ended, Place, Program, Seen, World};
use super::keys::{self, Command};
use super::list::{List, Of};
use super::loader::{EACH, Loader, Told, Watcher};
use super::outline::{Order, Outline, size};
use super::rows::{self, Row};
use super::sheet::Sheet;
use super::terminal::{self, Terminal};
use super::theme::Theme;
use crate::fs::interrupt;
use crate::fs::path::AbsPath;
use crate::session::change::Sort;

/// The smallest window.
pub const SMALLEST: (u16, u16) = (80, 24);

/// From so many columns on the tree stays beside a difference that has the keys.
pub const WIDE: u16 = 110;

/// The most changes of which lines are counted unasked.
const COUNTED: usize = 2_000;

/// The most differences that are kept to be shown again.
const KEPT: usize = 64;

/// Columns of a step to the side.
const SIDEWAYS: usize = 8;

/// The longest wait for a key while something is read, and else.
const SOON: Duration = Duration::from_millis(15);
const LATER: Duration = Duration::from_millis(200);

/// The side of the screen that has the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    /// The tree.
    Tree,
    /// The difference.
    Difference,
}

/// The rows that are listed.
#[derive(Debug)]
pub enum Listed {
    /// Nodes of the tree.
    Tree(Vec<usize>),
    /// Changes, in another order.
    Flat(Vec<usize>),
}

impl Listed {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Listed::Tree(rows) | Listed::Flat(rows) => rows.len(),
        }
    }
}

/// The meaning of keys at the moment.
#[derive(Debug)]
pub enum Mode {
    /// The commands.
    Usual,
    /// Text to look for.
    Finding(String),
    /// An answer.
    Asking(Ask),
    /// A text that is read and left.
    Reading {
        /// Its heading.
        title: String,
        /// Its lines.
        lines: Vec<String>,
        /// The first that is shown.
        top: usize,
    },
    /// The keys, explained.
    Helping(usize),
    /// A list.
    Listing(List),
}

/// The lines of a change that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Not counted yet.
    Unknown,
    /// They cannot be counted.
    None,
    /// Lines that came and went.
    Lines(usize, usize),
}

/// The screen.
pub struct Screen<'w> {
    world: &'w mut dyn World,
    /// Prints a path as people read it.
    pub show: Box<dyn Fn(&AbsPath) -> String>,
    /// The styles.
    pub theme: Theme,
    /// The place that is looked at.
    pub place: Place,
    /// Its changes.
    pub seen: Seen,
    /// Their tree.
    pub outline: Outline,
    /// The chosen ones among them.
    pub chosens: Chosens,
    /// The choice among those of the whole, while a step is looked at.
    put_by: Option<(Seen, Chosens)>,
    /// Lines of each.
    pub counted: Vec<Counted>,
    /// True for those that something stands against, as far as is known.
    pub conflicts: Vec<bool>,
    loader: Loader,
    watcher: Watcher,
    /// The order of the rows.
    pub order: Order,
    /// True if only what is chosen is listed.
    pub only_chosen: bool,
    /// The rows.
    pub listed: Listed,
    /// The row under the cursor, and the first that is shown.
    pub at: usize,
    /// See `at`.
    pub top: usize,
    /// The side that has the keys.
    pub focus: Focus,
    sheets: HashMap<usize, Arc<Sheet>>,
    waiting: Option<usize>,
    /// When it was asked last whether what is shown still stands so.
    looked: Instant,
    /// The difference, and the change that it is of.
    pub sheet: Option<(usize, Arc<Sheet>)>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The row under the cursor, and the first that is shown.
    pub row: usize,
    /// See `row`.
    pub row_top: usize,
    /// The first column that is shown.
    pub column: usize,
    /// True for the sides beside each other.
    pub beside: bool,
    /// True if lines are chosen.
    pub by_lines: bool,
    /// True to go to the last block of the change that is read.
    from_below: bool,
    /// The meaning of keys.
    pub mode: Mode,
    /// Said last, and true for what must not be missed.
    pub message: Option<(bool, String)>,
    found: Option<String>,
    /// Rows of the tree and of the difference that fit, as they were drawn last.
    pub fits: (usize, usize),
    /// True if the window is too small.
    pub is_small: bool,
    /// Columns of the window.
    pub width: u16,
    ends: bool,
}

/// Shows the screen until the person leaves, or a signal asks to end. `show` prints a path as people read it.
///
/// # Errors
/// The terminal cannot be used; what is to be shown cannot be read.
pub fn show(world: &mut dyn World, show: Box<dyn Fn(&AbsPath) -> String>, is_colored: bool) -> Result<(), String> {
    // crossterm reads NO_COLOR by itself, and --color goes before that.
    crossterm::style::force_color_output(is_colored);
    let mut screen = Screen::open(world, show, Theme::new(is_colored))?;
    let _noting = interrupt::note(interrupt::Asked::GoesOn);
    let mut terminal = Terminal::take().map_err(|error| format!("the terminal cannot be used: {error}"))?;
    screen.run(&mut terminal).map_err(|error| format!("the terminal is gone: {error}"))
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
        let mut screen = Self {
            world,
            show,
            theme,
            place: Place::Whole,
            outline,
            chosens: Chosens::none(count),
            put_by: None,
            counted: vec![Counted::Unknown; count],
            conflicts: vec![false; count],
            loader,
            watcher,
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
            message: None,
            found: None,
            fits: (1, 1),
            is_small: false,
            width: 0,
            ends: false,
            seen,
        };
        screen.list();
        screen.begin();
        Ok(screen)
    }

    fn run(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        while !self.ends && interrupt::came().is_none() && !terminal::panicked() {
            terminal.draw(|frame| draw::screen(self, frame))?;
            let wait = if self.waiting.is_some() { SOON } else { LATER };
            terminal::wait(wait)?;
            // What a person types ahead is drawn once.
            while !self.ends && crossterm::event::poll(Duration::ZERO)? {
                let was_asking = matches!(self.mode, Mode::Asking(_));
                self.take(crossterm::event::read()?, terminal)?;
                if matches!(self.mode, Mode::Asking(_)) && !was_asking {
                    // A question is answered once it is seen: what was typed ahead is no answer.
                    terminal::drop_typed()?;
                    break;
                }
            }
            self.hear();
        }
        Ok(())
    }

    fn take(&mut self, event: Event, terminal: &mut Terminal) -> io::Result<()> {
        let Event::Key(key) = event else { return Ok(()) };
        if key.kind == KeyEventKind::Release {
            return Ok(());
        }
        if self.is_small {
            // Nothing is seen of the rest: the one way is out.
            self.ends = matches!(keys::command(key), Some(Command::Quit | Command::Leave));
            return Ok(());
        }
        match self.key(key) {
            Wish::Nothing => Ok(()),
            Wish::Stop => terminal.stop(),
            Wish::Redraw => terminal.clear(),
            Wish::Do(deed) => {
                self.message = Some((false, "working …".into()));
                terminal.draw(|frame| draw::screen(self, frame))?;
                self.message = None;
                self.carry_out(deed);
                if matches!(self.mode, Mode::Asking(_)) {
                    terminal::drop_typed()?;
                }
                Ok(())
            }
            Wish::Open(i, program) => {
                let ended = terminal.lend(|| self.world.open(&self.seen, i, program))?;
                self.tell("Not done", ended, None);
                self.look_again();
                Ok(())
            }
        }
    }

    /// Takes what the threads found.
    pub fn hear(&mut self) {
        self.look_at_shown();
        while let Some(told) = self.loader.next() {
            match told {
                Told::Sheet(i, sheet) => self.take_sheet(i, sheet),
                Told::Counts(i, counts, is_conflict) => self.note_counts(i, counts, is_conflict),
            }
        }
        match self.watcher.next() {
            None => {}
            Some(Ok(seen)) => self.adopt(seen),
            Some(Err(why)) => self.message = Some((true, why)),
        }
    }

    fn note_counts(&mut self, i: usize, counts: Option<(usize, usize)>, is_conflict: bool) {
        self.counted[i] = counts.map_or(Counted::None, |(came, went)| Counted::Lines(came, went));
        self.conflicts[i] = is_conflict;
    }

    fn take_sheet(&mut self, i: usize, sheet: Arc<Sheet>) {
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
    fn look_at_shown(&mut self) {
        if self.waiting.is_none()
            && self.looked.elapsed() >= EACH
            && let Some((i, mark)) = self.sheet.as_ref().and_then(|(i, sheet)| Some((*i, sheet.mark?)))
        {
            self.looked = Instant::now();
            self.loader.want_again(i, mark);
        }
    }

    /// True while a difference is read.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    fn lay_out(&mut self, i: usize, sheet: Arc<Sheet>) {
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
    fn begin(&mut self) {
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
    fn under(&self) -> std::ops::Range<usize> {
        match &self.listed {
            Listed::Flat(rows) => rows.get(self.at).map_or(0..0, |i| *i..*i + 1),
            Listed::Tree(rows) => rows.get(self.at).map_or(0..0, |n| self.outline.node(*n).range.clone()),
        }
    }

    /// Shows the difference of what the cursor is on: at once, or when it is read.
    fn read(&mut self) {
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
    fn list(&mut self) {
        let under = self.under();
        let node = match &self.listed {
            Listed::Tree(rows) => rows.get(self.at).copied(),
            Listed::Flat(_) => None,
        };
        let changes = &self.seen.changes;
        let is_shown = |range: std::ops::Range<usize>| !self.only_chosen || self.chosens.of(range) != Much::None;
        self.listed = match self.order {
            Order::Path => Listed::Tree(self.outline.listed(|node| is_shown(node.range.clone()))),
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
            Listed::Tree(rows) => rows.iter().position(|n| Some(*n) == node).or_else(|| {
                rows.iter().rposition(|n| {
                    let range = &self.outline.node(*n).range;
                    *range == under || range.contains(&under.start)
                })
            }),
        };
        let last = self.listed.len().saturating_sub(1);
        self.at = found.filter(|_| !under.is_empty()).unwrap_or(self.at).min(last);
    }

    /// Takes a key; what it asks for beyond the screen is let go.
    #[cfg(test)]
    pub fn press(&mut self, key: KeyEvent) {
        self.key(key);
    }

    fn key(&mut self, key: KeyEvent) -> Wish {
        if keys::command(key) == Some(Command::Leave) {
            self.ends = true;
            return Wish::Nothing;
        }
        match &mut self.mode {
            Mode::Usual => match keys::command(key) {
                Some(command) => self.command(command),
                None => Wish::Nothing,
            },
            Mode::Finding(_) => {
                self.find_key(key);
                Wish::Nothing
            }
            Mode::Asking(_) => self.answer(key),
            Mode::Reading { .. } | Mode::Helping(_) => {
                self.read_key(key);
                Wish::Nothing
            }
            Mode::Listing(_) => self.list_key(key),
        }
    }

    fn find_key(&mut self, key: KeyEvent) {
        let Mode::Finding(text) = &mut self.mode else { return };
        match key.code {
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => text.push(c),
            KeyCode::Backspace if text.pop().is_some() => {}
            KeyCode::Enter => {
                self.found = Some(std::mem::take(text)).filter(|text| !text.is_empty()).or(self.found.take());
                self.mode = Mode::Usual;
                self.find(true, false);
            }
            _ => self.mode = Mode::Usual,
        }
    }

    fn read_key(&mut self, key: KeyEvent) {
        let page = self.fits.1.max(1);
        let (Mode::Reading { top, .. } | Mode::Helping(top)) = &mut self.mode else { return };
        match keys::command(key) {
            Some(Command::Down) => *top += 1,
            Some(Command::Up) => *top = top.saturating_sub(1),
            Some(Command::PageDown | Command::Choose) => *top += page,
            Some(Command::PageUp) => *top = top.saturating_sub(page),
            Some(Command::Quit | Command::Enter | Command::Help) => self.mode = Mode::Usual,
            _ => {}
        }
    }

    fn answer(&mut self, key: KeyEvent) -> Wish {
        let Mode::Asking(ask) = &mut self.mode else { return Wish::Nothing };
        match (key.code, keys::command(key)) {
            (KeyCode::Char('y'), _) if key.modifiers.is_empty() => {
                let deed = ask.deed.clone();
                self.mode = Mode::Usual;
                Wish::Do(deed)
            }
            (KeyCode::Char('n'), _) | (_, Some(Command::Quit)) => {
                self.mode = Mode::Usual;
                self.message = Some((false, "nothing was changed".into()));
                Wish::Nothing
            }
            (_, Some(Command::Down)) => {
                ask.top = (ask.top + 1).min(ask.lines.len().saturating_sub(1));
                Wish::Nothing
            }
            (_, Some(Command::Up)) => {
                ask.top = ask.top.saturating_sub(1);
                Wish::Nothing
            }
            (_, Some(Command::PageDown)) => {
                ask.top = (ask.top + 8).min(ask.lines.len().saturating_sub(1));
                Wish::Nothing
            }
            (_, Some(Command::PageUp)) => {
                ask.top = ask.top.saturating_sub(8);
                Wish::Nothing
            }
            _ => Wish::Nothing,
        }
    }

    fn list_key(&mut self, key: KeyEvent) -> Wish {
        let page = self.fits.1.max(1) as isize;
        let Mode::Listing(list) = &mut self.mode else { return Wish::Nothing };
        match keys::command(key) {
            Some(Command::Down) => list.step(1),
            Some(Command::Up) => list.step(-1),
            Some(Command::PageDown) => list.step(page),
            Some(Command::PageUp) => list.step(-page),
            Some(Command::First) => list.at = 0,
            Some(Command::Last) => list.at = list.rows.len().saturating_sub(1),
            Some(Command::Enter) => {
                let place = list.row().map(|row| match list.of {
                    Of::Steps => Place::Step(u32::try_from(row.n).unwrap_or(0)),
                    Of::Turns => Place::Turn(row.n),
                });
                self.mode = Mode::Usual;
                if let Some(place) = place {
                    self.go_to(place);
                }
            }
            Some(Command::Back) => {
                let Some(row) = list.row() else { return Wish::Nothing };
                let (deed, question, line) = match list.of {
                    Of::Steps => (
                        Deed::Rewind(u32::try_from(row.n).unwrap_or(0)),
                        format!("Rewind {} to step {}?", self.seen.title, row.n),
                        "Nothing on the tree is touched; later steps stay, and can be gone back to.",
                    ),
                    Of::Turns => (
                        Deed::UndoTurn(row.n),
                        format!("Undo turn {} and the later ones?", row.n),
                        "What somebody has changed since stays, and is named.",
                    ),
                };
                let columns = row.columns.join("  ");
                self.mode = Mode::Asking(Ask::plain(deed, question, vec![columns, String::new(), line.into()]));
            }
            Some(Command::Quit | Command::Steps | Command::Turns) => self.mode = Mode::Usual,
            _ => {}
        }
        Wish::Nothing
    }

    fn command(&mut self, command: Command) -> Wish {
        #[cfg(feature = "crash-points")]
        assert!(command != Command::Redraw || std::env::var_os("RECANT_PANIC").is_none(), "a test asked for a panic");
        self.message = None;
        match command {
            Command::Down => self.step(1),
            Command::Up => self.step(-1),
            Command::PageDown => self.step(self.page()),
            Command::PageUp => self.step(-self.page()),
            Command::First => self.step(isize::MIN),
            Command::Last => self.step(isize::MAX),
            Command::Left => self.left(),
            Command::Right => self.right(),
            Command::Enter => self.enter(),
            Command::Switch => self.switch(),
            Command::Find => self.mode = Mode::Finding(String::new()),
            Command::FindNext => self.find(true, true),
            Command::FindBefore => self.find(false, true),
            Command::NextBlock => self.next_block(),
            Command::BlockBefore => self.block_before(),
            Command::Choose => self.choose(),
            Command::Lines => self.lines(),
            Command::File => self.choose_file(),
            Command::All => self.choose_all(),
            Command::OnlyChosen => self.list_chosen(),
            Command::Beside => self.set_beside(),
            Command::Order => self.reorder(),
            Command::Commit => self.ask(Act::Commit, Vec::new()),
            Command::Discard => self.ask(Act::Discard, Vec::new()),
            Command::Back if self.seen.may.restore => self.ask(Act::Restore, Vec::new()),
            Command::Back => self.ask(Act::RollBack, Vec::new()),
            Command::Merge => self.ask(Act::Merge, Vec::new()),
            Command::Undo => self.ask_undo(),
            Command::Steps => self.list_of(Of::Steps),
            Command::Turns => self.list_of(Of::Turns),
            Command::Edit => return self.open_in(Program::Editor),
            Command::Tool => return self.open_in(Program::Tool),
            Command::Notes => self.notes(),
            Command::Help => self.mode = Mode::Helping(0),
            Command::Quit => self.leave(),
            Command::Leave => self.ends = true,
            Command::Stop => return Wish::Stop,
            Command::Redraw => return Wish::Redraw,
        }
        Wish::Nothing
    }

    fn page(&self) -> isize {
        let fits = if self.focus == Focus::Tree { self.fits.0 } else { self.fits.1 };
        (fits.max(2) - 1) as isize
    }

    fn step(&mut self, by: isize) {
        match self.focus {
            Focus::Tree => {
                self.at = self.at.saturating_add_signed(by).min(self.listed.len().saturating_sub(1));
                self.read();
            }
            Focus::Difference => self.row = self.row.saturating_add_signed(by).min(self.rows.len().saturating_sub(1)),
        }
    }

    fn left(&mut self) {
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

    fn right(&mut self) {
        if self.focus == Focus::Difference {
            self.column += SIDEWAYS;
            return;
        }
        self.enter();
    }

    fn enter(&mut self) {
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

    fn switch(&mut self) {
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

    fn leave(&mut self) {
        match (self.focus, &self.place) {
            (Focus::Difference, _) => self.focus = Focus::Tree,
            (Focus::Tree, Place::Whole) if self.only_chosen => self.list_chosen(),
            (Focus::Tree, Place::Whole) => self.ends = true,
            (Focus::Tree, _) => self.go_to(Place::Whole),
        }
    }

    fn set_beside(&mut self) {
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

    fn reorder(&mut self) {
        self.order = self.order.next();
        self.list();
        self.read();
        self.message = Some((false, format!("ordered by {}", self.order.word())));
    }

    fn next_block(&mut self) {
        if self.focus == Focus::Difference
            && let Some((_, sheet)) = &self.sheet
            && let Some(next) = rows::stops(&self.rows, sheet).into_iter().find(|stop| *stop > self.row)
        {
            self.row = next;
            return;
        }
        self.next_file(true);
    }

    fn block_before(&mut self) {
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
    fn next_file(&mut self, forward: bool) {
        let next = match &self.listed {
            Listed::Flat(rows) if forward => rows.get(self.at + 1).copied(),
            Listed::Flat(rows) => self.at.checked_sub(1).map(|at| rows[at]),
            Listed::Tree(_) => {
                let under = self.under();
                let is_shown = |i: &usize| !self.only_chosen || self.chosens.of(*i..*i + 1) != Much::None;
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

    /// Moves the cursor to a change.
    fn show_change(&mut self, i: usize) {
        if self.order == Order::Path
            && let Some(n) = self.outline.of_change(i)
        {
            self.outline.reveal(n);
            self.list();
            if let Listed::Tree(rows) = &self.listed {
                self.at = rows.iter().position(|row| *row == n).unwrap_or(self.at);
            }
        } else if let Listed::Flat(rows) = &self.listed {
            self.at = rows.iter().position(|row| *row == i).unwrap_or(self.at);
        }
        self.read();
    }

    fn find(&mut self, forward: bool, from_next: bool) {
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

    fn find_row(&self, forward: bool, from_next: bool, has: &dyn Fn(&str) -> bool) -> Option<usize> {
        let (_, sheet) = self.sheet.as_ref()?;
        let has = |n: &usize| {
            self.rows[*n].lines(sheet).any(|line| has(&line.text.iter().map(|(_, text)| text.as_str()).collect::<String>()))
        };
        around(self.rows.len(), self.row, forward, from_next).find(has)
    }

    fn find_path(&self, forward: bool, from_next: bool, has: &dyn Fn(&str) -> bool) -> Option<usize> {
        let has = |i: &usize| has(&(self.show)(&self.seen.changes[*i].path));
        match &self.listed {
            Listed::Flat(rows) => around(rows.len(), self.at, forward, from_next).map(|at| rows[at]).find(has),
            Listed::Tree(_) => {
                let from_next = from_next && self.change().is_some();
                let at = self.under().start;
                let is_shown = |i: &usize| !self.only_chosen || self.chosens.of(*i..*i + 1) != Much::None;
                around(self.seen.changes.len(), at, forward, from_next).filter(is_shown).find(has)
            }
        }
    }

    /// True if there is anything to be chosen for.
    pub fn can_choose(&self) -> bool {
        let may = self.seen.may;
        self.place == Place::Whole && (may.commit || may.discard || may.roll_back || may.restore)
    }

    /// Says why nothing can be chosen. True if something can.
    fn may_choose(&mut self) -> bool {
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

    fn choose(&mut self) {
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

    fn lines(&mut self) {
        self.by_lines = !self.by_lines;
        let what = if self.by_lines { "Space chooses a line" } else { "Space chooses a block" };
        if self.focus == Focus::Tree {
            self.switch();
        }
        self.message.get_or_insert((false, what.into()));
    }

    fn choose_file(&mut self) {
        if self.may_choose() {
            match (self.focus, &self.sheet) {
                (Focus::Difference, Some((i, _))) => self.chosens.turn([*i]),
                _ => self.chosens.turn(self.under()),
            }
        }
    }

    fn choose_all(&mut self) {
        if self.may_choose() {
            self.chosens.turn(0..self.seen.changes.len());
        }
    }

    fn list_chosen(&mut self) {
        if !self.only_chosen && self.chosens.is_empty() {
            self.message = Some((false, "nothing is chosen: Space chooses".into()));
            return;
        }
        self.only_chosen = !self.only_chosen;
        self.list();
        self.read();
    }

    /// Asks whether an act is to be done with what is chosen. `first`: what has to be said before.
    fn ask(&mut self, act: Act, mut first: Vec<String>) {
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
            Act::Merge => first.push("The held change is put onto what is on the tree by now. The tree is not touched.".into()),
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

    fn ask_undo(&mut self) {
        match self.world.last() {
            Some(what) => {
                let lines = vec![what, String::new(), "What somebody has changed since stays, and is named.".into()];
                self.mode = Mode::Asking(Ask::plain(Deed::Undo, "Undo the last act of this screen?".into(), lines));
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
    fn carry_out(&mut self, deed: Deed) {
        let again = match &deed {
            Deed::Picked(act, _) => Some(*act),
            _ => None,
        };
        let merged: Vec<AbsPath> = match &deed {
            Deed::Picked(Act::Merge, picked) => picked.0.iter().map(|pick| pick.path.clone()).collect(),
            _ => Vec::new(),
        };
        let ended = self.world.carry_out(deed);
        let is_done = matches!(ended, Ended::Done(_));
        if is_done && again.is_some() {
            // What was chosen is done with.
            self.chosens = Chosens::none(self.seen.changes.len());
        }
        self.look_again();
        if is_done {
            // What was merged waits to be committed.
            let at = |path: &AbsPath| self.seen.changes.binary_search_by(|change| change.path.cmp(path)).ok();
            let merged: Vec<usize> = merged.iter().filter_map(at).collect();
            self.chosens.turn(merged);
        }
        self.tell("Not done", ended, again);
    }

    fn tell(&mut self, title: &str, ended: Ended, again: Option<Act>) {
        match ended {
            Ended::Done(lines) if lines.is_empty() => {}
            Ended::Done(lines) => self.mode = Mode::Reading { title: "Done".into(), lines, top: 0 },
            Ended::Refused(mut lines) => {
                if again == Some(Act::Commit) && self.seen.may.choose && lines.iter().any(|line| line.contains("--merge")) {
                    lines.push("In this screen: m puts a held change onto what is on the tree by now.".into());
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

    /// Looks at the place anew.
    fn look_again(&mut self) {
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

    fn go_to(&mut self, place: Place) {
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
                Chosens::none(seen.changes.len())
            }
        };
        (self.place, self.only_chosen, self.focus, self.at, self.top) = (place, false, Focus::Tree, 0, 0);
        self.outline = Outline::of(&seen.changes, &*self.show);
        self.watcher = Watcher::start(&look, seen.mark);
        self.set(seen, chosens);
    }

    /// Takes what is there now in place of what was shown. The cursor stays at its path, and what is chosen stays chosen.
    fn adopt(&mut self, seen: Seen) {
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
                "{} changed meanwhile, and {} no more chosen",
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
    fn show_listed(&mut self, i: usize) {
        self.at = match &self.listed {
            Listed::Flat(rows) => rows.iter().position(|row| *row == i),
            Listed::Tree(rows) => rows.iter().rposition(|n| self.outline.node(*n).range.contains(&i)),
        }
        .unwrap_or(self.at);
    }

    fn set(&mut self, seen: Seen, chosens: Chosens) {
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
        // The rows are those of another tree.
        self.listed = Listed::Tree(Vec::new());
        if count == 0 {
            self.focus = Focus::Tree;
        }
        self.list();
        self.begin();
    }

    fn list_of(&mut self, of: Of) {
        let may = match of {
            Of::Steps => self.seen.may.steps,
            Of::Turns => self.seen.may.turns,
        };
        if !may {
            let none = match of {
                Of::Steps => "it has no steps",
                Of::Turns => "there are no turns of agents in this project",
            };
            self.message = Some((false, none.into()));
            return;
        }
        let found = match of {
            Of::Steps => self.world.steps(),
            Of::Turns => self.world.turns(),
        };
        match found {
            Ok((heads, rows)) => {
                let at = rows.iter().position(|row| row.is_head).unwrap_or(0);
                self.mode = Mode::Listing(List { of, heads, rows, at });
            }
            Err(why) => self.message = Some((true, why)),
        }
    }

    fn open_in(&mut self, program: Program) -> Wish {
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

    fn notes(&mut self) {
        let mut lines = vec![self.seen.about.clone(), String::new()];
        match &self.seen.notes[..] {
            [] => lines.push("Nothing is known that is not among the changes.".into()),
            notes => lines.extend(notes.iter().cloned()),
        }
        self.mode = Mode::Reading { title: "Not among the changes".into(), lines, top: 0 };
    }
}

/// A request of a key for something beyond the screen.
#[derive(Debug)]
enum Wish {
    Nothing,
    Stop,
    Redraw,
    Do(Deed),
    Open(usize, Program),
}

/// The numbers below `count`, from `at` on in one direction and around the end.
fn around(count: usize, at: usize, forward: bool, from_next: bool) -> impl Iterator<Item = usize> {
    let first = usize::from(from_next);
    (first..count + first).map(move |k| if forward { (at + k) % count } else { (at + 2 * count - k) % count })
}
