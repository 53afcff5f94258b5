//! Sessions in a preview: a line each.

use std::collections::HashMap;

use crate::compare::cut;
use crate::face::figures::{self, Flexible, Side};
use crate::face::out::Out;
use crate::fs::Shown;
use crate::session::{Header, Id};

/// Names these sessions: each by the last part of its id, unless another has the same.
pub fn calls<'a>(ids: impl Iterator<Item = &'a Id>) -> impl Fn(&Id) -> String {
    let mut times: HashMap<String, usize> = HashMap::new();
    ids.for_each(|id| *times.entry(id.tail().into()).or_default() += 1);
    move |id| if times.get(id.tail()) == Some(&1) { id.tail().into() } else { id.to_string() }
}

/// The status of a session in a question, with where it came from.
pub fn status(header: &Header) -> String {
    let imported = if header.imported.is_some() { ", imported" } else { "" };
    format!("{}{imported}", header.status().word().replace('_', " "))
}

/// Lines of a preview: name, number of changes, size and command of the first `most` sessions; then the number of the others, with the
/// command that lists them.
pub fn heads(out: &Out, headers: &[&Header], most: usize, whole: &str) -> Vec<String> {
    let (first, more) = cut(headers.len(), most);
    let calls = calls(headers.iter().map(|header| &header.id));
    let row = |header: &&Header| {
        [
            calls(&header.id),
            status(header),
            figures::count(header.counts.changes, "change"),
            figures::bytes(header.sizes.all()),
            figures::day(header.changed),
            header.name.clone().unwrap_or_default(),
            Shown(header.command.as_deref().unwrap_or_default().as_bytes()).to_string(),
        ]
    };
    let mut rows: Vec<[String; 7]> = headers[..first].iter().map(row).collect();
    let (path, words) = (Flexible::path, Flexible::words);
    figures::fit(&mut rows, out.width().saturating_sub(2), &[words(6, 12), path(5, 8), words(6, 5)]);
    let sides = [Side::Left, Side::Left, Side::Right, Side::Right, Side::Left, Side::Left, Side::Left];
    let mut lines: Vec<String> = figures::table(sides, &rows).collect();
    if more > 0 {
        lines.push(figures::more(more, whole));
    }
    lines
}
