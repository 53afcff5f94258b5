//! Hooks in Codex CLI's `config.toml`: a table `[[hooks.EVENT]]` for each event, at the end of the file.

use std::ops::Range;

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::facts::{Agent, Form};
use super::command::Command;
use super::edit::{Edit, Found, Wrong, cut, line_of, newline};
use super::groups::{are_all, entries, ours};
use super::render::Node;

fn parse(text: &str) -> Result<DeTable<'_>, Wrong> {
    let parsed = DeTable::parse(text);
    let table = parsed.map_err(|error| Wrong::at(text, error.span().map_or(0, |span| span.start), error.message()))?;
    Ok(table.into_inner())
}

fn json(value: &DeValue<'_>) -> Json {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).map_or(Json::Null, Json::from),
        DeValue::Boolean(truth) => (*truth).into(),
        DeValue::Float(_) | DeValue::Datetime(_) => Json::Null,
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            Json::Object(table.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref()))).collect())
        }
    }
}

/// An entry of an event's list.
struct Entry<'v, 't> {
    event: String,
    place: Range<usize>,
    value: &'v Spanned<DeValue<'t>>,
}

/// The entries of all events, in the order of their names.
fn entries_of<'v, 't>(document: &'v DeTable<'t>) -> Vec<Entry<'v, 't>> {
    let hooks = document.get("hooks").and_then(|hooks| hooks.get_ref().as_table());
    let lists = hooks.into_iter().flat_map(|hooks| hooks.iter());
    let entry = |(key, list): (&'v Spanned<_>, &'v Spanned<DeValue<'t>>)| -> Vec<Entry<'v, 't>> {
        let event: &std::borrow::Cow<'_, str> = key.get_ref();
        let items = list.get_ref().as_array().into_iter().flat_map(|list| list.iter());
        items.map(|value| Entry { event: event.to_string(), place: value.span(), value }).collect()
    };
    lists.flat_map(entry).collect()
}

/// True if the text has hooks of events, of whomever.
pub fn has_hooks(text: &str) -> bool {
    parse(text).is_ok_and(|document| !entries_of(&document).is_empty())
}

pub fn find(agent: Agent, text: &str) -> Result<Vec<Found>, Wrong> {
    let document = parse(text)?;
    let found = entries_of(&document).into_iter().flat_map(|Entry { event, place, value }| {
        let programs = ours(agent, Form::Toml, &json(value.get_ref())).into_iter().flatten();
        programs.map(|program| Found { event: event.clone(), program, line: line_of(text, place.start) }).collect::<Vec<_>>()
    });
    Ok(found.collect())
}

pub fn is_installed(agent: Agent, text: &str, command: &Command) -> Result<bool, Wrong> {
    let document = parse(text)?;
    let values = entries_of(&document).into_iter().map(|entry| (entry.event, json(entry.value.get_ref())));
    let of_recant = values.filter(|(_, value)| ours(agent, Form::Toml, value).iter().any(Option::is_some));
    Ok(are_all(agent, Form::Toml, command, &of_recant.collect::<Vec<_>>()))
}

/// # Errors
/// It cannot be parsed, or its hooks stand in one line, so that no table can be added.
pub fn add(agent: Agent, text: &str, command: &Command) -> Result<Edit, Wrong> {
    parse(text)?;
    let nl = newline(text);
    let table = |(event, entry): (&str, Node)| {
        let Node::Line(pairs) = entry else { return String::new() };
        let pairs = pairs.iter().map(|(key, node)| format!("{nl}{key} = {}", node.toml())).collect::<String>();
        format!("[[hooks.{event}]]{pairs}")
    };
    let tables: Vec<_> = entries(agent, Form::Toml, command).into_iter().map(table).collect();
    let tables = tables.join(&format!("{nl}{nl}"));
    let put = match text {
        "" => format!("{tables}{nl}"),
        _ if text.ends_with('\n') => format!("{nl}{tables}{nl}"),
        // The end of the file stays without one.
        _ => format!("{nl}{nl}{tables}"),
    };
    let edit = Edit::of(text, vec![(text.len(), put)]);
    match parse(&edit.after) {
        Ok(_) => Ok(edit),
        Err(_) => Err(Wrong { line: 0, why: "its hooks are written inline, so no table can be added".into() }),
    }
}

/// Removes tables of which all hooks are recant's.
///
/// # Errors
/// It cannot be parsed; a table, or a list in it, holds hooks of others as well.
pub fn remove(agent: Agent, text: &str) -> Result<String, Wrong> {
    let document = parse(text)?;
    let mut cuts = Vec::new();
    for Entry { place, value, .. } in entries_of(&document) {
        let ours = ours(agent, Form::Toml, &json(value.get_ref()));
        if ours.iter().all(Option::is_none) {
            continue;
        }
        let is_table = text[place.clone()].starts_with("[[");
        if !is_table || ours.iter().any(Option::is_none) {
            return Err(Wrong::at(text, place.start, "recant's hooks are mixed with others here: remove them by hand"));
        }
        cuts.push(lines(text, place.start..end_of(value)));
    }
    let at_end = cuts.iter().any(|lines| lines.end == text.len()) && !text.ends_with('\n');
    let left = cut(text, cuts).ok_or_else(|| Wrong { line: 0, why: "its hooks overlap".into() })?;
    // The end of the line before belongs to the tables, where the file ends without one.
    Ok(if at_end { left.strip_suffix(newline(text)).map(str::to_owned).unwrap_or(left) } else { left })
}

/// The end of the last value of a table, or of its header.
fn end_of(value: &Spanned<DeValue<'_>>) -> usize {
    let inside = match value.get_ref() {
        DeValue::Table(table) => table.values().map(end_of).max(),
        DeValue::Array(items) => items.iter().map(end_of).max(),
        _ => None,
    };
    inside.unwrap_or(0).max(value.span().end)
}

/// The whole lines of a table, with the empty one before it.
fn lines(text: &str, table: Range<usize>) -> Range<usize> {
    let start = text[..table.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[table.end..].find('\n').map_or(text.len(), |at| table.end + at + 1);
    let above = |start: usize| text[..start].strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text).len());
    let blank = above(start).filter(|at| *at == 0 || text[..*at].ends_with('\n'));
    blank.unwrap_or(start)..end
}
