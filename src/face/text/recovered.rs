//! Words for what was recovered.

use crate::compare::cut;
use crate::engine::recover::recovery;
use crate::engine::{Finding, LeftPath, Outcome, Recovered, Verb, how_to_go_on, way_on};
use crate::error::{Error, command};
use crate::face::figures;
use crate::face::out::Out;
use crate::session::{Header, Id, Store};

/// Tells what was recovered: the outcome, what may lie where nobody looks for it, and notes.
pub fn say(out: &Out, one: &Recovered) {
    out.warn(line(out, one));
    say_strays(out, one);
    one.notes.iter().for_each(|note| out.warn(note));
}

/// Warns of objects that may lie where nobody looks for them.
pub fn say_strays(out: &Out, one: &Recovered) {
    // The log says nothing of an operation that had not begun.
    let (shown, more) = first(out, &one.strays, one.verb.is_none());
    shown.iter().for_each(|left| out.warn(format_args!("{}: {}", left.path, left.why)));
    if let Some(more) = more {
        out.warn(more_of(one, more));
    }
}

/// The first of many paths, as other lists have them, and how many more there are.
pub fn first<'a>(out: &Out, left: &'a [LeftPath], all: bool) -> (&'a [LeftPath], Option<usize>) {
    let (shown, more) = cut(left.len(), if all || !out.is_text() { usize::MAX } else { out.limit() });
    (&left[..shown], Some(more).filter(|more| *more > 0))
}

pub fn more_of(one: &Recovered, more: usize) -> String {
    figures::more(more, &command(format_args!("log {}", one.id.tail())))
}

/// The paths that an interrupted operation left of a session, in a line, and the command that goes on with them.
pub fn left_of(header: &Header) -> Option<(String, String)> {
    let left = header.left.first()?;
    let more = match header.left.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!("{}  {}{more}: it was changed since", header.id.tail(), left.path);
    Some((what, how_to_go_on(left.is_in, header.id.tail(), &left.path).to_string()))
}

/// The outcome of one interrupted operation, in a line, or with a line for each of several paths.
pub fn line(out: &Out, one: &Recovered) -> String {
    let verb = one.verb.map_or("operation", Verb::word);
    match &one.outcome {
        Outcome::Cleaned => {
            format!("an interrupted operation of session {} had changed nothing yet; what it left is removed", one.id)
        }
        Outcome::Undone => format!("the interrupted {verb} of session {} was undone: the tree is as before it", one.id),
        Outcome::Settled => format!("the interrupted {verb} of session {} was done, and is finished now", one.id),
        Outcome::Left(left) => {
            let (shown, more) = first(out, left, false);
            let shown = shown.iter().map(|left| format!("{} ({})", left.path, left.why));
            let rest = more.map(|more| more_of(one, more)).into_iter().chain(way_on(one, left).map(|way| way.to_string()));
            let lines: Vec<String> = shown.chain(rest).collect();
            let apart = if left.len() > 1 { "\n" } else { " " };
            format!("the interrupted {verb} of session {} was undone except for{apart}{}", one.id, lines.join("\n"))
        }
        Outcome::Failed(error) => {
            let remedy = error.advice().map_or(String::new(), |remedy| format!("\n{remedy}"));
            format!("the interrupted {verb} of session {} cannot be recovered now: {error}{remedy}", one.id)
        }
    }
}

/// Describes what recovery would do, for verbs that only read.
pub fn would(store: &Store, id: &Id) -> Option<String> {
    match recovery::finding(store, id) {
        Ok(found) => found.map(|found| interrupted(&Ok(found))),
        Err(error) => Some(interrupted(&Err(&error))),
    }
}

/// An interrupted operation, as far as a reader can tell.
pub fn interrupted(found: &Result<Finding, &Error>) -> String {
    match found {
        Ok(Finding::Draft) => "interrupted before anything was changed; the next verb that changes something cleans up".into(),
        Ok(Finding::ToUndo) => "interrupted; the next verb that changes something undoes it".into(),
        Ok(Finding::ToSettle) => "interrupted after it was done; the next verb that changes something finishes it".into(),
        Ok(Finding::ToFinish) => {
            "interrupted, and undone except for what was changed since; the next verb that changes something finishes that".into()
        }
        Err(error) => {
            let remedy = error.advice().map_or(String::new(), |remedy| format!("; {remedy}"));
            format!("interrupted, and its journal cannot be used: {error}{remedy}")
        }
    }
}
