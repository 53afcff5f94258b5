//! `config`, in words.

use crate::compare::{columns, padded};
use crate::error::Error;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::settings::{From, Setting, Value, age_word};
use crate::verb::config as verb;

/// Prints the settings in force.
pub fn config(call: &Call) -> Result<Ended, Error> {
    let in_force = verb::config(call, environment(call));
    if !call.out.is_text() {
        call.out.document(&in_force);
        return Ok(Ended::Done);
    }
    match &in_force.file {
        Some(file) if in_force.found => call.out.note(format_args!("the settings file is {file}")),
        Some(file) => call.out.note(format_args!("there is no settings file; it would be {file}")),
        None => call.out.note("no home directory is known, so there is no settings file"),
    }
    let rows: Vec<Row> = in_force.settings.iter().map(row).collect();
    table(&rows, call.out.width()).for_each(|line| call.out.line(line));
    Ok(Ended::Done)
}

/// The settings that the environment and the options of the call decide.
fn environment(call: &Call) -> Vec<Setting> {
    let setting = |key: &'static str, value, from| Setting { key: key.into(), value, from };
    let store = call.place.resolve().map_or(Value::None, |path| Value::Text(path.to_string()));
    let mut decided = vec![setting("store.path", store, call.place.from)];
    if call.config.pager.value.is_none() {
        let pager = std::env::var("PAGER").map(|pager| (pager, From::Environment("PAGER")));
        let (pager, from) = pager.unwrap_or_else(|_| ("less".into(), From::Default));
        decided.push(setting("pager", Value::Text(pager), from));
    }
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        decided.push(setting("color", Value::Text("never".into()), From::Environment("NO_COLOR")));
    }
    decided
}

/// A key, the lines of its value, and its source.
type Row<'a> = (&'a str, Vec<String>, String);

fn row(Setting { key, value, from }: &Setting) -> Row<'_> {
    let source = match from {
        From::Environment(name) => format!("${name}"),
        From::Option(name) => (*name).to_owned(),
        From::Default | From::File => from.to_string(),
    };
    let lines = match value {
        Value::None if key == "store.path" => vec!["none: no home directory is known".into()],
        value => lines(value),
    };
    (key, lines, source)
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::None => vec!["none".into()],
        Value::List(list) if list.is_empty() => vec!["none".into()],
        Value::List(list) => list.clone(),
        Value::Flag(flag) => vec![flag.to_string()],
        Value::Number(number) => vec![number.to_string()],
        Value::Bytes(bytes) => vec![figures::bytes(*bytes)],
        Value::Seconds(seconds) => vec![age_word(*seconds)],
        Value::Text(text) => vec![text.clone()],
        Value::Command(words) => vec![words.join(" ")],
    }
}

/// Lines of key, value and source, one for each value of a list. A value that leaves no room for the source in `width` columns stays whole,
/// and the source is on a line of its own.
fn table(rows: &[Row<'_>], width: usize) -> impl Iterator<Item = String> {
    let widest = |cells: &mut dyn Iterator<Item = usize>| cells.max().unwrap_or(0);
    let key = widest(&mut rows.iter().map(|(key, ..)| columns(key)));
    let room = width.saturating_sub(key + 4 + widest(&mut rows.iter().map(|(.., source)| columns(source))));
    let value = widest(&mut rows.iter().map(|(_, values, _)| columns(&values[0])).filter(|n| *n <= room));
    rows.iter().flat_map(move |(name, values, source)| {
        let first = &values[0];
        let head = if columns(first) <= value {
            vec![format!("{name:<key$}  {}  {source}", padded(first, value))]
        } else {
            vec![format!("{name:<key$}  {first}"), format!("{:<key$}  {:<value$}  {source}", "", "")]
        };
        head.into_iter().chain(values[1..].iter().map(move |text| format!("{:<key$}  {text}", "")))
    })
}
