//! A list that is laid over the screen: steps, or turns.

use super::world::Row;

/// The things that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    Steps,
    Turns,
}

impl Listing {
    pub fn title(self) -> &'static str {
        match self {
            Listing::Steps => "Steps, the newest first",
            Listing::Turns => "Turns of agents, the newest first",
        }
    }

    pub fn keys(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Listing::Steps => &[("Enter", "what it changed"), ("r", "rewind to it"), ("q", "back")],
            Listing::Turns => &[("Enter", "what it changed"), ("r", "undo it and the later ones"), ("q", "back")],
        }
    }
}

/// The list, and the row that the cursor is on.
#[derive(Debug, Clone)]
pub struct List {
    /// The kind of things that are listed.
    pub of: Listing,
    pub heads: Vec<String>,
    pub rows: Vec<Row>,
    pub at: usize,
}

impl List {
    pub fn row(&self) -> Option<&Row> {
        self.rows.get(self.at)
    }

    /// Moves the cursor by so many rows.
    pub fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.rows.len().saturating_sub(1));
    }
}
