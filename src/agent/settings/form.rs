//! The forms in which hooks stand in files, and what is found there.

/// The form in which hooks stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON: a list of matchers with hooks for each event.
    Groups,
    /// JSON: a list of hooks for each event.
    Flat,
    Toml,
    /// A program in a file of its own.
    Program,
}

/// Hooks of recant that stand in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The event; empty for a plugin, which tells of all.
    pub event: String,
    /// The program that is called: an absolute path, or a bare name.
    pub program: String,
    /// The line of the file, from 1.
    pub line: usize,
}
