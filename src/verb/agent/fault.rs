//! Faults that keep the hooks of an agent from firing, and places that turns do not cover.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::fs::AbsPath;
use crate::remedy::Remedy;

/// A reason why hooks do not fire, or what else is to be known of them.
#[derive(Debug, Clone)]
pub struct Fault {
    pub sort: Sort,
    pub why: String,
    /// The way out.
    pub remedy: Option<Remedy>,
}

/// The faults that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// No event ever came.
    NoEvent,
    /// Hooks call another recant.
    Another,
    Other,
}

impl Fault {
    pub fn new(why: impl ToString) -> Self {
        Self { why: why.to_string(), remedy: None, sort: Sort::Other }
    }

    pub fn with(self, remedy: impl Into<Remedy>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.remedy {
            Some(remedy) => write!(f, "{}: {remedy}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A place that turns do not cover though nobody chose that.
pub enum Place {
    Closed {
        path: AbsPath,
        why: String,
    },
    /// So many more.
    More(usize),
}
