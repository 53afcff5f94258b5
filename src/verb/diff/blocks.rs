//! The parts of changes that can be taken by themselves: blocks of a text and its metadata, or all of a change.

use serde::Serialize;

use super::compared::is_listed;
use crate::compare::{Block, CHANGED, Entries, Sources};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Changes, Id, Session, Side, Sort};
use crate::verb::resolve::named_changes::{TypedPath, chosen};

/// Changes of a session, as JSON has them: docs/json.md.
#[derive(Serialize)]
pub struct Parts<'s> {
    pub session: &'s Id,
    /// The rows that were [listed](Self::list).
    changes: Vec<Row<'s>>,
    #[serde(skip)]
    of: Vec<(&'s Change, Side)>,
    #[serde(skip)]
    sources: Sources<'s>,
}

/// A change, and what can be taken of it.
#[derive(Serialize)]
struct Row<'s> {
    path: &'s AbsPath,
    change: Sort,
    /// The reason why it is taken whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<&'static str>,
    blocks: Vec<Lines>,
    /// The differences in mode, owner and xattrs.
    metadata: Vec<String>,
}

/// The place of a block, in lines from 1.
#[derive(Serialize)]
struct Lines {
    n: usize,
    old: Span,
    new: Span,
}

#[derive(Serialize)]
struct Span {
    /// The first line; where there is none, the one before which it would be.
    line: usize,
    count: usize,
}

impl<'s> Parts<'s> {
    /// Finds the changes at and below `paths`, or all; with `all` those of the mtime alone, too.
    pub(super) fn of(session: &'s Session, changes: &'s Changes, paths: &[TypedPath], all: bool) -> Result<Self, Error> {
        let chosen = chosen(session.id(), changes, paths)?;
        let sources = Sources::of(session)?;
        let sides = session.sides(changes.list.len())?;
        let of = chosen.into_iter().map(|i| (&changes.list[i], sides[i])).filter(|(change, _)| is_listed(change, all));
        Ok(Self { session: session.id(), changes: Vec::new(), of: of.collect(), sources })
    }

    /// Passes the changes to `show`, one by one, as long as that returns true.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn for_each(&mut self, show: &mut dyn FnMut(&'s Change, Side, &Entries) -> bool) -> Result<(), Error> {
        for (change, side) in &self.of {
            if !show(change, *side, &Entries::of(change, *side, &mut self.sources)?) {
                break;
            }
        }
        Ok(())
    }

    /// Lists the places of all blocks.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn list(&mut self) -> Result<(), Error> {
        for (change, side) in &self.of {
            self.changes.push(Row::of(change, &Entries::of(change, *side, &mut self.sources)?));
        }
        Ok(())
    }
}

impl<'s> Row<'s> {
    fn of(change: &'s Change, entries: &Entries) -> Self {
        let row = Self { path: &change.path, change: change.sort(), whole: None, blocks: Vec::new(), metadata: Vec::new() };
        match entries {
            Entries::Whole(why) => Self { whole: Some(why), ..row },
            Entries::Changed => Self { whole: Some(CHANGED), ..row },
            Entries::Text(text) => {
                let span = |range: &std::ops::Range<usize>| Span { line: range.start + 1, count: range.len() };
                let lines = |(n, block): (usize, &Block)| Lines { n, old: span(&block.old), new: span(&block.new) };
                Self { blocks: (1..).zip(text.blocks().list()).map(lines).collect(), metadata: text.meta.clone(), ..row }
            }
        }
    }
}
