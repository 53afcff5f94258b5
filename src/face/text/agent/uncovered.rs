//! Words for what a turn did to things that its snapshots do not cover.

use crate::agent::{Became, Fate, Out as Thing, Part};
use crate::face::figures;
use crate::face::out::Out;
use crate::fs::Shown;
use crate::tree::Head;
use crate::verb::NotCovered;

/// The most things that are named.
const MOST: usize = 20;

/// The lines that name them, one a thing; what compilers and editors make is counted.
pub fn lines(out: &Out, rows: &[NotCovered], all: bool) -> Vec<String> {
    let (byproducts, things): (Vec<&NotCovered>, Vec<&NotCovered>) = rows.iter().partition(|row| row.is_byproduct());
    let shown = if all { things.len() } else { things.len().min(MOST) };
    let mut lines: Vec<String> = things[..shown].iter().map(|row| line(out, row)).collect();
    if let Some(more) = things.len().checked_sub(shown).filter(|more| *more > 0) {
        lines.push(format!("{} more things that are not covered: -v names them", figures::grouped(more as u64)));
    }
    if !byproducts.is_empty() {
        let count = figures::count(byproducts.len() as u64, "file");
        lines.push(format!("{count} that compilers or editors make changed, and stay so (agent.byproducts)"));
    }
    lines
}

fn line(out: &Out, row: &NotCovered) -> String {
    let back = row.remedy.as_ref().map_or_else(String::new, |remedy| format!("; back: {remedy}"));
    format!("{}: {}{back}", out.shown(&row.path), fate(out, row))
}

fn fate(out: &Out, row: &NotCovered) -> String {
    let Fate { became, out: thing, .. } = &row.fate;
    let (why, size) = (thing.why.text(), size(thing));
    match became {
        Became::Deleted => format!("deleted ({size}), and not kept: {why}"),
        Became::Overwritten => format!("overwritten ({size}), and not kept: {why}"),
        Became::Moved(_) => format!("moved to {}", row.to.as_ref().map_or_else(String::new, |to| out.shown(to))),
        Became::Made => format!("made ({size}), and stays: {why}"),
        Became::Entries { made, gone } => {
            let of = |word: &str, names: &[String]| (!names.is_empty()).then(|| format!("{} {word}", named(names)));
            let parts: Vec<String> = of("made", made).into_iter().chain(of("gone", gone)).collect();
            format!("{} in it, and stays so: {why}", parts.join("; "))
        }
        Became::Names => format!("names of it were made or deleted, and stay so: {why}"),
        Became::Head { from, to: Some(to) } => format!("HEAD went from {} to {}", place(from, to), place(to, from)),
        Became::Head { from, to: None } => {
            let is = from.name.as_ref().map_or_else(|| place(from, from), |name| format!("ref: {name}"));
            format!("HEAD was deleted, and not kept; it was \"{is}\"")
        }
        Became::Metadata => format!("its mode or owner was changed, and stays so: {why}"),
        Became::Part { from, to } => of_part(from.as_ref(), to.as_ref()),
    }
}

fn size(thing: &Thing) -> String {
    match (thing.directory, &thing.names) {
        (true, Some(names)) if names.len() == 1 => "1 entry".to_owned(),
        (true, Some(names)) => format!("{} entries", figures::grouped(names.len() as u64)),
        (true, None) => "a directory".to_owned(),
        (false, _) => figures::bytes(thing.size),
    }
}

fn of_part(from: Option<&Part>, to: Option<&Part>) -> String {
    let at = |part: &Part| part.commit.as_ref().map_or_else(String::new, |commit| format!(" (at {})", &commit[..10]));
    match (from, to) {
        (None, Some(part)) if part.is_hook() => "made, and git runs it".to_owned(),
        (None, Some(part)) if part.is_obeyed() => "made, and git obeys it".to_owned(),
        (None, Some(part)) => format!("made{}, and stays", at(part)),
        (Some(part), None) => format!("deleted{}, and not kept", at(part)),
        (Some(Part { commit: Some(from), .. }), Some(Part { commit: Some(to), .. })) => {
            format!("went from {} to {}", &from[..10], &to[..10])
        }
        (Some(part), _) if part.name == "index" => "what is staged was changed, and stays so".to_owned(),
        _ => "changed, and stays so: it is version control's own".to_owned(),
    }
}

/// The most names that are listed of a directory.
const NAMES: usize = 3;

fn named(names: &[String]) -> String {
    let (first, more) = names.split_at(names.len().min(NAMES));
    let shown: Vec<String> = first.iter().map(|name| Shown(name.as_bytes()).to_string()).collect();
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", figures::grouped(more.len() as u64)) };
    format!("{}{more}", shown.join(", "))
}

/// A HEAD in words; its branch only if the `other` is on another one.
fn place(head: &Head, other: &Head) -> String {
    let commit = head.commit.as_deref().map_or("no commit", |commit| &commit[..10]);
    match head.branch().filter(|_| head.name != other.name) {
        Some(branch) => format!("{branch} ({commit})"),
        None => commit.to_owned(),
    }
}
