//! The entries of a change: what can be taken of it by itself. A text that changed has blocks, numbered from 1, and beside them an entry for
//! its metadata. All else is whole: it is taken as it is, or not at all.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use super::blocks::choice::Choice;
use super::blocks::find_blocks::Blocks;
use super::sources::{Content, OnTree, Sources};
use super::view::{TEXT_LIMIT, meta_changes};
use crate::error::{At, Error};
use crate::fs::AbsPath;
use crate::session::{Change, Side, Sort};
use crate::tree::{Hash, Meta, Object, State, What};

/// The longest time that is spent on finding the blocks of one file.
const PATIENCE: Duration = Duration::from_secs(3);

/// The words for a change that has no blocks because somebody has changed the file.
pub const CHANGED: &str = "it was changed since, so its blocks are not those of the session";

/// A change, with what can be taken of it by itself.
pub enum Entries {
    /// It is taken whole: the reason why it has no blocks.
    Whole(&'static str),
    /// The tree has something else there by now: a conflict.
    Changed,
    /// It has blocks.
    Text(Text),
}

/// The two contents of a file that have blocks.
pub struct Text {
    old: Vec<u8>,
    new: Vec<u8>,
    /// The differences in mode, owner and xattrs, in words; empty if they stay.
    pub meta: Vec<String>,
}

/// The part that is taken of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    Whole,
    /// Blocks or lines of its text, and its metadata if that is set.
    Part {
        /// The blocks and lines.
        blocks: Choice,
        /// True for the new mode, owner and xattrs.
        meta: bool,
    },
}

impl Entries {
    /// Takes a change apart.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn of(change: &Change, side: Side, sources: &mut Sources<'_>) -> Result<Self, Error> {
        if let Some(why) = whole(change) {
            return Ok(Self::Whole(why));
        }
        let on_tree = sources.on_tree(change, side);
        let edited = on_tree != OnTree::AsRecorded;
        if edited && !side.is_in() {
            return Ok(Self::Changed);
        }
        let before = sources.before(change, side, &on_tree)?;
        let after = if edited { sources.committed(change)? } else { sources.after(change, side, &on_tree)? };
        let (Content::File(before), Content::File(after)) = (before, after) else {
            return Ok(if edited { Self::Changed } else { Self::Whole("its content cannot be read") });
        };
        let (old, new) = (read_text(&before, &change.path)?, read_text(&after, &change.path)?);
        if Blocks::between(&old, &new, PATIENCE).is_err() {
            return Ok(Self::Whole("it is not text, or too different to compare line by line"));
        }
        let meta = change.before.object.as_ref().zip(change.after.as_ref());
        let meta = meta.map(|(before, after)| meta_changes(before, after)).unwrap_or_default();
        Ok(Self::Text(Text { old, new, meta }))
    }
}

/// The reason why a change is whole, as far as its states tell.
fn whole(change: &Change) -> Option<&'static str> {
    let is_text = |object: &Object| matches!(object, Some(State { what: What::File { index: None, .. }, .. }));
    let size = |object: &Object| object.as_ref().map_or(0, State::size);
    match change.sort() {
        Sort::Created => Some("it is created"),
        Sort::Deleted => Some("it is deleted"),
        Sort::Metadata => Some("its metadata alone changes"),
        Sort::Times => Some("its time alone changes"),
        Sort::Modified if !is_text(&change.before.object) || !is_text(&change.after) => Some("it is not a text file"),
        Sort::Modified if change.marks.linked || change.marks.link_broken => Some("it has several names"),
        Sort::Modified if size(&change.before.object).max(size(&change.after)) > TEXT_LIMIT => Some("it is too large"),
        Sort::Modified => None,
    }
}

/// The content of a file, up to [`TEXT_LIMIT`].
pub fn read_text(file: &File, path: &AbsPath) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(TEXT_LIMIT).read_to_end(&mut bytes).at("read", path)?;
    Ok(bytes)
}

impl Text {
    /// Its blocks: the same ones each time.
    pub fn blocks(&self) -> Blocks<'_> {
        // Found once within the limit.
        Blocks::roughly(&self.old, &self.new, Duration::MAX)
    }

    /// The content with the chosen blocks in it.
    pub fn with(&self, blocks: &Choice) -> Vec<u8> {
        self.blocks().apply(blocks)
    }

    /// True for the content before the change.
    pub fn is_old(&self, content: &[u8]) -> bool {
        content == self.old
    }

    /// The object that the change leads to, its hash known.
    pub fn rest(&self, change: &Change) -> Object {
        change.after.clone().map(|after| State { what: file(&self.new), ..after })
    }

    /// The part that is taken if these blocks are, and the metadata if `meta` is set: perhaps all of it, perhaps nothing.
    pub fn taken(&self, blocks: Choice, meta: bool) -> Option<Taken> {
        let content = self.with(&blocks);
        let (no_meta, all_meta) = (self.meta.is_empty() || !meta, self.meta.is_empty() || meta);
        match () {
            () if content == self.new && all_meta => Some(Taken::Whole),
            () if content == self.old && no_meta => None,
            () => Some(Taken::Part { blocks, meta }),
        }
    }
}

impl Text {
    /// The object and the content that are left of what a change led to, once these blocks of it, and its metadata if `meta` is set, are
    /// taken back.
    pub fn without(&self, change: &Change, blocks: &Choice, meta: bool) -> Option<(State, Vec<u8>)> {
        let (before, after) = change.before.object.as_ref().zip(change.after.as_ref())?;
        let content = self.blocks().take_out(blocks);
        let of = if meta { before } else { after };
        let mtime = if content == self.new { after.meta.mtime } else { crate::fs::now() };
        Some((State { what: file(&content), meta: Meta { mtime, ..of.meta.clone() } }, content))
    }

    /// True for the content after the change.
    pub fn is_new(&self, content: &[u8]) -> bool {
        content == self.new
    }
}

/// The object that a change leads to if only these blocks of its text, and its metadata if `meta` is set, are taken; with its content.
pub fn part_of(change: &Change, text: &Text, blocks: &Choice, meta: bool) -> Option<(State, Vec<u8>)> {
    let (before, after) = change.before.object.as_ref().zip(change.after.as_ref())?;
    let content = text.with(blocks);
    let of = if meta { after } else { before };
    // Unchanged content keeps its time, new content is of now.
    let mtime = if text.is_old(&content) { before.meta.mtime } else { crate::fs::now() };
    Some((State { what: file(&content), meta: Meta { mtime, ..of.meta.clone() } }, content))
}

fn file(content: &[u8]) -> What {
    What::File { size: content.len() as u64, hash: Some(Hash::of(content)), index: None }
}
