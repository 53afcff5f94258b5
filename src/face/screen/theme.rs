//! Colours, and what stands for them where there are none.

use ratatui::style::{Color, Modifier, Style};

use super::sheet::Kind;
use crate::session::Sort;

/// The styles of the screen. Nothing is told by a colour alone: signs and words stand beside each.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    is_colored: bool,
}

impl Theme {
    /// The styles with or without colour.
    pub fn new(is_colored: bool) -> Self {
        Self { is_colored }
    }

    fn color(self, color: Color) -> Style {
        if self.is_colored { Style::new().fg(color) } else { Style::new() }
    }

    pub fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The row under the cursor; `active` if keys go there.
    pub fn cursor(self, active: bool) -> Style {
        if active { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new().add_modifier(Modifier::UNDERLINED) }
    }

    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The style of things that stand against something.
    pub fn bad(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A key in a line of help.
    pub fn key(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub fn chosen(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Lines that came, and those that went.
    pub fn counts(self) -> [Style; 2] {
        [self.color(Color::Green), self.color(Color::Red)]
    }

    pub fn sort(self, sort: Sort) -> Style {
        match sort {
            Sort::Created => self.color(Color::Green),
            Sort::Deleted => self.color(Color::Red),
            Sort::Modified | Sort::Metadata => self.color(Color::Yellow),
            Sort::Times => self.faint(),
        }
    }

    /// A line of a difference; `marked` for its words that differ.
    pub fn line(self, kind: Kind, marked: bool) -> Style {
        let style = match kind {
            Kind::Old => self.color(Color::Red),
            Kind::New => self.color(Color::Green),
            Kind::Gap => self.color(Color::Cyan).add_modifier(Modifier::DIM),
            Kind::Fact | Kind::Meta => self.color(Color::Yellow),
            Kind::Conflict | Kind::Right => self.bad(),
            Kind::Head => self.strong(),
            Kind::Both => Style::new(),
        };
        match (marked, self.is_colored) {
            (false, _) => style,
            (true, true) => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            (true, false) => style.add_modifier(Modifier::UNDERLINED),
        }
    }
}
