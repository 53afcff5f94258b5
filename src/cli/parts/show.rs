//! `diff --blocks`: what can be taken of each change by itself, headed by the word that takes it.

use serde::Serialize;

use super::super::call::Call;
use super::super::ended::Ended;
use super::block;
use crate::blocks::block::Block;
use crate::diff::entries::Entries;
use crate::diff::sources::Sources;
use crate::error::{Error, command};
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Changes, Sort};
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::verb::error::CHANGED;

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
        Entries::Whole(why) => block::head(&call.out, &path, &block::whole(change, why)),
        Entries::Changed => block::head(&call.out, &path, &format!("{}: {CHANGED}", change.sort().word())),
        Entries::Text(text) => {
            let blocks = text.blocks();
            for (n, block) in (1..).zip(blocks.list()) {
                block::head(&call.out, &format!("{path}:{n}"), &block::place(block));
                block::lines(&call.out, &blocks, block);
            }
            block::metadata(&call.out, &path, text);
        }
    }
}
