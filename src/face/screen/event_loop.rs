//! The screen from its beginning to its end: it is drawn, and waits for keys.

use std::io;
use std::time::Duration;

use crossterm::event::{Event, KeyEventKind};
use ratatui::crossterm;

use super::draw;
use super::keys;
use super::keys::Command;
use super::state::{Mode, Screen, Wish};
use super::terminal;
use super::terminal::Terminal;
use super::theme::Theme;
use super::world::World;
use crate::fs::{AbsPath, interrupt};

/// The longest wait for a key while something is read, and else.
const SOON: Duration = Duration::from_millis(15);
const LATER: Duration = Duration::from_millis(200);

/// Shows the screen until the person leaves, or a signal asks to end, and that of each further subject. `show` prints a path as people read
/// it.
///
/// # Errors
/// The terminal cannot be used; what is to be shown cannot be read.
pub fn show(world: &mut dyn World, mut show: Box<dyn Fn(&AbsPath) -> String>, is_colored: bool) -> Result<(), String> {
    // crossterm reads NO_COLOR by itself, and --color goes before that.
    crossterm::style::force_color_output(is_colored);
    let mut screen = Screen::open(&mut *world, show, Theme::new(is_colored))?;
    let _noting = interrupt::note(interrupt::OnSignal::GoesOn);
    let mut terminal = Terminal::take().map_err(|error| format!("the terminal cannot be used: {error}"))?;
    let gone = |error| format!("the terminal is gone: {error}");
    loop {
        screen.run(&mut terminal).map_err(gone)?;
        let is_left = screen.ends_all || interrupt::signal_received().is_some() || terminal::panicked();
        show = screen.show;
        if is_left || !world.go_on()? {
            return Ok(());
        }
        // What was typed ahead was meant for the one before.
        terminal::drop_typed().map_err(gone)?;
        screen = Screen::open(&mut *world, show, Theme::new(is_colored))?;
    }
}

impl Screen<'_> {
    pub fn run(&mut self, terminal: &mut Terminal) -> io::Result<()> {
        while !self.ends && interrupt::signal_received().is_none() && !terminal::panicked() {
            terminal.draw(|frame| draw::screen(self, frame))?;
            let wait = if self.waiting.is_some() { SOON } else { LATER };
            terminal::wait(wait)?;
            // What a person types ahead is drawn once.
            while !self.ends
                && let Some(event) = terminal::typed()?
            {
                let was_asking = matches!(self.mode, Mode::Asking(_));
                self.take(event, terminal)?;
                if matches!(self.mode, Mode::Asking(_)) && !was_asking {
                    // A question is answered once it is seen: what was typed ahead is no answer.
                    terminal::drop_typed()?;
                    break;
                }
            }
            self.take_loaded();
        }
        Ok(())
    }

    pub fn take(&mut self, event: Event, terminal: &mut Terminal) -> io::Result<()> {
        let Event::Key(key) = event else { return Ok(()) };
        if key.kind == KeyEventKind::Release {
            return Ok(());
        }
        if self.is_small {
            // Nothing is seen of the rest: the one way is out.
            if matches!(keys::command(key), Some(Command::Quit | Command::Leave)) {
                self.leave_all();
            }
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
                self.perform(deed);
                if matches!(self.mode, Mode::Asking(_)) {
                    terminal::drop_typed()?;
                }
                Ok(())
            }
            Wish::Open(i, program) => {
                let ended = terminal.lend(|| self.world.open(&self.seen, i, program))?;
                self.show_outcome("Not done", ended, None);
                self.look_again();
                Ok(())
            }
        }
    }
}
