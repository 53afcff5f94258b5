//! `config`: the settings in force, and where each comes from.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use crate::compare::shown::columns;
use crate::compare::shown::padded;
use crate::config::{From, OfAgent, Remote, Set};
use crate::error::Error;
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures;

#[derive(Serialize)]
struct Whole<'a> {
    file: Option<Value>,
    found: bool,
    settings: &'a [Row],
}

/// `{"key":…,"value":…,"from":…}`.
#[derive(Serialize)]
struct Row {
    key: Cow<'static, str>,
    value: Value,
    from: String,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    source: String,
}

pub fn config(call: &Call) -> Result<Ended, Error> {
    let config = &call.config;
    let path = call.place.resolve();
    let store = path.as_ref().map(ToString::to_string).unwrap_or_else(|_| "none: no home directory is known".into());
    let mut rows = vec![
        row("store.path", call.place.from, path.map_or(Value::Null, |path| json!(path)), store),
        bytes("store.warn_size", &config.warn_size),
        paths("capture.also", &config.also),
        paths("capture.pass", &config.pass),
        paths("capture.hide", &config.hide),
        paths("capture.caches", &config.caches),
        plain("capture.keep_before", &config.keep_before, |keep| json!(keep)),
        plain("checkpoint.max_files", &config.max_files, |n| json!(n)),
        bytes("checkpoint.max_size", &config.max_size),
        plain("checkpoint.on_limit", &config.on_limit, |on_limit| json!(on_limit.word())),
        plain("commit.deny", &config.deny, |globs| json!(globs)),
        plain("commit.minor", &config.minor, |globs| json!(globs)),
        plain("agent.commit", &config.agent_commit, |commit| json!(commit.word())),
        plain("agent.keep", &config.agent_keep, |n| json!(n)),
        plain("agent.byproducts", &config.agent_byproducts, |globs| json!(globs)),
        plain("retention.keep", &config.keep, |n| json!(n)),
        row("retention.older_than", config.older_than.from, json!(config.older_than.value), age(config.older_than.value)),
        row("retention.discarded", config.discarded.from, json!(config.discarded.value), age(Some(config.discarded.value))),
        plain("snapshot.keep", &config.snapshot_keep, |n| json!(n)),
        bytes("snapshot.max_size", &config.snapshot_max_size),
        plain("snapshot.max_files", &config.snapshot_max_files, |n| json!(n)),
        plain("steps.keep", &config.steps_keep, |n| json!(n)),
        bytes("steps.max_size", &config.steps_max_size),
        row("remote.ssh", config.ssh.from, json!(config.ssh.value), config.ssh.value.join(" ")),
        row("remote.timeout", config.timeout.from, json!(config.timeout.value), age(config.timeout.value.map(Into::into))),
        plain("output.paths", &config.output_paths, |n| json!(n)),
        match &config.diff_pager.value {
            Some(_) => plain("diff.pager", &config.diff_pager, |pager| json!(pager)),
            None => pager("diff.pager", call),
        },
        plain("diff.tool", &config.diff_tool, |tool| json!(tool)),
        color(call),
        pager("pager", call),
    ];
    rows.extend(config.agents.iter().flat_map(|(name, agent)| of_agent(name, agent)));
    rows.extend(config.remotes.iter().map(|(name, remote)| machine(name, remote)));
    if !call.out.is_text() {
        let file = config.file.as_ref().map(|file| path_value(file));
        call.out.document(&Whole { file, found: config.found, settings: &rows });
        return Ok(Ended::Done);
    }
    match &config.file {
        Some(file) if config.found => call.out.note(format_args!("the file is {}", file.display())),
        Some(file) => call.out.note(format_args!("there is no file; it would be {}", file.display())),
        None => call.out.note("no home directory is known, so there is no file"),
    }
    table(&rows, call.out.width()).for_each(|line| call.out.line(line));
    Ok(Ended::Done)
}

/// The settings for one agent that the file has; for what it leaves out `agent run` has lists of its own.
fn of_agent(name: &str, agent: &OfAgent) -> Vec<Row> {
    let list = |key: &str, values: &[String]| {
        let key = Cow::Owned(format!("agent.{name}.{key}"));
        Row { key, value: json!(values), from: From::File.to_string(), text: values.join("\n"), source: "file".into() }
    };
    let paths = agent.pass.as_ref().map(|paths| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>());
    let lists = [("pass", paths.as_ref()), ("records", agent.records.as_ref())];
    lists.into_iter().filter_map(|(key, values)| Some(list(key, values?))).collect()
}

/// Lines of key, value and source, one for each value of a list. A value that leaves no room for the source in `width` columns stays whole,
/// and the source is on a line of its own.
fn table(rows: &[Row], width: usize) -> impl Iterator<Item = String> {
    let widest = |cell: fn(&Row) -> &str| rows.iter().map(|row| columns(cell(row))).max().unwrap_or(0);
    let (key, from) = (widest(|row| &row.key), widest(|row| &row.source));
    let room = width.saturating_sub(key + 2 + 2 + from);
    let firsts = rows.iter().map(|row| columns(row.first()));
    let value = firsts.filter(|n| *n <= room).max().unwrap_or(0);
    rows.iter().flat_map(move |row| {
        let (first, source) = (row.first(), &row.source);
        let fits = columns(first) <= value;
        let head = if fits {
            format!("{:<key$}  {}  {source}", row.key, padded(first, value))
        } else {
            format!("{:<key$}  {first}", row.key)
        };
        let apart = (!fits).then(|| format!("{:<key$}  {:<value$}  {source}", "", ""));
        let next = row.text.split('\n').skip(1).map(move |text| format!("{:<key$}  {text}", ""));
        [head].into_iter().chain(apart).chain(next)
    })
}

impl Row {
    fn first(&self) -> &str {
        self.text.split('\n').next().unwrap_or_default()
    }
}

fn row(key: impl Into<Cow<'static, str>>, from: From, value: Value, text: String) -> Row {
    let source = match from {
        From::Environment(name) => format!("${name}"),
        From::Option(name) => name.to_owned(),
        From::Default | From::File => from.to_string(),
    };
    Row { key: key.into(), value, from: from.to_string(), text, source }
}

fn plain<T>(key: &'static str, set: &Set<T>, value: impl Fn(&T) -> Value) -> Row {
    let value = value(&set.value);
    let text = match &value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.is_empty() => "none".into(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    };
    row(key, set.from, value, text)
}

fn bytes(key: &'static str, set: &Set<u64>) -> Row {
    row(key, set.from, json!(set.value), figures::bytes(set.value))
}

fn paths(key: &'static str, set: &Set<Vec<PathBuf>>) -> Row {
    plain(key, set, |paths| Value::Array(paths.iter().map(|path| path_value(path)).collect()))
}

fn path_value(path: &std::path::Path) -> Value {
    Value::String(path.display().to_string())
}

fn age(seconds: Option<i64>) -> String {
    let Some(seconds) = seconds else { return "none".into() };
    let units = [(7 * 86_400, "w"), (86_400, "d"), (3600, "h"), (60, "m")];
    let (unit, letter) = units.into_iter().find(|(unit, _)| seconds % unit == 0 && seconds > 0).unwrap_or((1, "s"));
    format!("{}{letter}", seconds / unit)
}

fn color(call: &Call) -> Row {
    let set = &call.config.color;
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        return row("color", From::Environment("NO_COLOR"), json!("never"), "never".into());
    }
    plain("color", set, |color| json!(color.word()))
}

fn machine(name: &str, remote: &Remote) -> Row {
    let store = remote.store.as_ref().map(|store| format!("store {store}"));
    let sudo = remote.sudo.then(|| "by sudo".to_owned());
    let text = store.into_iter().chain(sudo).collect::<Vec<_>>().join(", ");
    row(format!("remotes.{name}"), From::File, json!(text), text)
}

fn pager(key: &'static str, call: &Call) -> Row {
    let set = &call.config.pager;
    match std::env::var("PAGER") {
        Ok(pager) if set.value.is_none() => row(key, From::Environment("PAGER"), json!(pager), pager),
        _ => plain(key, set, |pager| json!(pager.as_deref().unwrap_or("less"))),
    }
}
