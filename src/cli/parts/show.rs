//! `diff --blocks`: what can be taken of each change by itself, headed by the word that takes it.

use anstyle::Style;
use serde::Serialize;

use super::super::call::Call;
use super::super::ended::Ended;
use super::select::{CHANGED, META};
use crate::blocks::between::Blocks;
use crate::blocks::block::Block;
use crate::cli::diff::patch;
use crate::diff::entries::{Entries, Text};
use crate::diff::sources::Sources;
use crate::diff::span::Part;
use crate::error::{Error, command};
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Changes, Sort};
use crate::session::id::Id;
use crate::session::opened::Session;

#[derive(Serialize)]
struct Whole<'a> {
    session: &'a Id,
    changes: &'a [Row<'a>],
}

/// A change, and what can be taken of it.
#[derive(Serialize)]
struct Row<'a> {
    path: &'a AbsPath,
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

/// Shows the blocks of these changes.
pub fn blocks(call: &Call, session: &Session, changes: &Changes, wanted: &[usize], all: bool) -> Result<Ended, Error> {
    let mut sources = Sources::of(session)?;
    let sides = session.sides(changes.list.len())?;
    let listed = wanted.iter().map(|i| (&changes.list[*i], sides[*i]));
    let listed = listed.filter(|(change, _)| all || change.sort() != Sort::Times);
    if !call.out.is_text() {
        let rows = listed.map(|(change, side)| Ok(Row::of(change, &Entries::of(change, side, &mut sources)?)));
        let rows = rows.collect::<Result<Vec<_>, Error>>()?;
        call.out.document(&Whole { session: session.id(), changes: &rows });
        return Ok(Ended::Done);
    }
    call.out.page(call.config.pager.value.as_deref());
    let mut example = None;
    for (change, side) in listed {
        if call.out.is_closed() {
            break;
        }
        let entries = Entries::of(change, side, &mut sources)?;
        print(call, change, &entries);
        if let Entries::Text(_) = entries {
            example.get_or_insert_with(|| (side, format!("{}:1", call.out.word(&change.path))));
        }
    }
    if let Some((side, word)) = example {
        let (verb, does) = if side.is_in() { ("rollback", "takes back") } else { ("commit", "commits") };
        let takes = command(format_args!("{verb} {} {word}", session.id().tail()));
        call.out.note(format_args!("{takes} {does} that block alone"));
    }
    Ok(Ended::Done)
}

impl<'a> Row<'a> {
    fn of(change: &'a Change, entries: &Entries) -> Self {
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

fn print(call: &Call, change: &Change, entries: &Entries) {
    let path = call.out.shown(&change.path);
    match entries {
        Entries::Whole(why) => head(call, &path, &whole(change, why)),
        Entries::Changed => head(call, &path, &format!("{}: {CHANGED}", change.sort().word())),
        Entries::Text(text) => {
            let blocks = text.blocks();
            for (n, block) in (1..).zip(blocks.list()) {
                head(call, &format!("{path}:{n}"), &place(block));
                lines(call, &blocks, block);
            }
            metadata(call, &path, text);
        }
    }
}

/// The words for a change that is taken whole; of a modified file with the reason why it has no blocks.
pub fn whole(change: &Change, why: &str) -> String {
    match change.sort() {
        sort @ Sort::Modified => format!("{}, whole: {why}", sort.word()),
        sort => format!("{}, whole", sort.word()),
    }
}

/// Prints what differs in a file's metadata.
pub fn metadata(call: &Call, path: &str, text: &Text) {
    if !text.meta.is_empty() {
        head(call, &format!("{path}:{META}"), &text.meta.join("; "));
    }
}

/// Prints the word that takes something, and what that is.
pub fn head(call: &Call, word: &str, what: &str) {
    call.out.line(format_args!("{}  {what}", call.out.paint(Style::new().bold(), word)));
}

/// The place of a block, as in the head of a hunk without context: `@@ -3,2 +3,3 @@`.
pub fn place(block: &Block) -> String {
    let range = |range: &std::ops::Range<usize>| match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        n => format!("{},{n}", range.start + 1),
    };
    format!("@@ -{} +{} @@", range(&block.old), range(&block.new))
}

/// Prints the lines of a block.
pub fn lines(call: &Call, blocks: &Blocks<'_>, block: &Block) {
    blocks.removed(block).iter().for_each(|line| patch::line(call, Part::Old, line));
    blocks.added(block).iter().for_each(|line| patch::line(call, Part::New, line));
}

/// Prints one line of a block, by its number.
pub fn line(call: &Call, blocks: &Blocks<'_>, block: &Block, number: usize) {
    match number.checked_sub(block.old.len() + 1) {
        None => patch::line(call, Part::Old, blocks.removed(block)[number - 1]),
        Some(i) => patch::line(call, Part::New, blocks.added(block)[i]),
    }
}
