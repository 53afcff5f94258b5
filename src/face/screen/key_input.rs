//! The meaning of a key: a command, an answer, a letter of what is looked for.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm;

use super::confirmation::Ask;
use super::keys;
use super::keys::Command;
use super::side_list::Listing;
use super::state::{Mode, Screen, Wish};
use super::world::{Act, Decision, Place, Program};
use crate::session::REASON;

impl Screen<'_> {
    /// Takes a key; what it asks for beyond the screen is let go.
    #[cfg(test)]
    pub fn press(&mut self, key: KeyEvent) {
        self.key(key);
    }

    pub fn key(&mut self, key: KeyEvent) -> Wish {
        if keys::command(key) == Some(Command::Leave) {
            self.leave_all();
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

    pub fn find_key(&mut self, key: KeyEvent) {
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

    pub fn read_key(&mut self, key: KeyEvent) {
        let page = self.fits.1.max(1);
        let (Mode::Reading { top, .. } | Mode::Helping(top)) = &mut self.mode else { return };
        match keys::command(key) {
            Some(Command::Down) => *top += 1,
            Some(Command::Up) => *top = top.saturating_sub(1),
            Some(Command::PageDown | Command::Choose) => *top += page,
            Some(Command::PageUp) => *top = top.saturating_sub(page),
            Some(Command::Quit | Command::Enter | Command::Help) => {
                self.mode = Mode::Usual;
                self.ends |= self.is_decided;
            }
            _ => {}
        }
    }

    pub fn answer(&mut self, key: KeyEvent) -> Wish {
        let Mode::Asking(ask) = &mut self.mode else { return Wish::Nothing };
        if ask.typing.is_some() {
            type_reason(ask, key);
            return Wish::Nothing;
        }
        match (key.code, keys::command(key)) {
            (KeyCode::Char('y'), _) if key.modifiers.is_empty() => {
                let deed = ask.deed.clone();
                self.mode = Mode::Usual;
                Wish::Do(deed)
            }
            (KeyCode::Char('m'), _) if key.modifiers.is_empty() => {
                ask.begin_reason();
                Wish::Nothing
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

    pub fn list_key(&mut self, key: KeyEvent) -> Wish {
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
                    Listing::Steps => Place::Step(u32::try_from(row.n).unwrap_or(0)),
                    Listing::Turns => Place::Turn(row.n),
                });
                self.mode = Mode::Usual;
                if let Some(place) = place {
                    self.go_to(place);
                }
            }
            Some(Command::Back) => {
                let Some(row) = list.row() else { return Wish::Nothing };
                let (deed, question, line) = match list.of {
                    Listing::Steps => (
                        Decision::Rewind(u32::try_from(row.n).unwrap_or(0)),
                        format!("Rewind {} to step {}?", self.seen.title, row.n),
                        "Nothing on the tree is touched; later steps stay, and can be gone back to.",
                    ),
                    Listing::Turns => (
                        Decision::UndoTurn(row.n),
                        format!("Undo turn {} and the later ones?", row.n),
                        "What was changed since stays, and is named.",
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

    pub fn command(&mut self, command: Command) -> Wish {
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
            Command::Steps => self.list_of(Listing::Steps),
            Command::Turns => self.list_of(Listing::Turns),
            Command::Edit => return self.open_in(Program::Editor),
            Command::Tool => return self.open_in(Program::Tool),
            Command::Notes => self.notes(),
            Command::Help => self.mode = Mode::Helping(0),
            Command::Quit => self.leave(),
            Command::Leave => self.leave_all(),
            Command::Stop => return Wish::Stop,
            Command::Redraw => return Wish::Redraw,
        }
        Wish::Nothing
    }
}

fn type_reason(ask: &mut Ask, key: KeyEvent) {
    let Some(text) = &mut ask.typing else { return };
    match key.code {
        KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => text.clear(),
        KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) && text.len() + c.len_utf8() <= REASON => text.push(c),
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Enter => ask.keep_reason(),
        KeyCode::Esc => ask.typing = None,
        _ => {}
    }
}
