//! Rows of lists, as a model reads them: what is usual is left out, and paths below the working directory start from there.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fs::AbsPath;

/// Makes a row of each part of a summary, or of each change of a list: those with a row of their own, with what is dangerous first, then
/// directories that came or went, then groups.
pub fn of_changes(mut summary: Value, here: Option<&AbsPath>) -> Vec<Value> {
    let mut rows = Vec::new();
    for (key, row) in [("changes", change as fn(Value) -> Value), ("directories", directory), ("groups", group)] {
        if let Value::Array(parts) = summary[key].take() {
            rows.extend(parts.into_iter().map(|part| told(row(from_here(part, here)))));
        }
    }
    rows
}

/// Makes rows of conflicts: those that stand alone first, then one for each directory in which several have the same reason.
pub fn of_conflicts(against: Vec<Value>, here: Option<&AbsPath>) -> Vec<Value> {
    let mut by: BTreeMap<(String, String), Vec<Value>> = BTreeMap::new();
    for one in against.into_iter().map(|one| from_here(one, here)) {
        let [path, why] = ["path", "why"].map(|key| one[key].as_str().unwrap_or_default().to_owned());
        let directory = path.rsplit_once('/').map_or("./", |(directory, _)| &path[..=directory.len()]).to_owned();
        by.entry((directory, why)).or_default().push(one);
    }
    let (alone, together): (Vec<_>, Vec<_>) = by.into_iter().partition(|(_, of)| of.len() == 1);
    let together = together.into_iter().map(|((path, why), of)| json!({ "path": path, "conflicts": of.len(), "why": why }));
    alone.into_iter().flat_map(|(_, of)| of).chain(together).collect()
}

fn change(mut change: Value) -> Value {
    let side = if change["change"] == "deleted" { "before" } else { "after" };
    let kind = [&change["kind"], &change[side]["kind"]].into_iter().find(|kind| kind.is_string() && *kind != "file").cloned();
    let lines = change["lines"].take();
    json!({
        "path": change["path"], "change": change["change"], "kind": kind, "danger": change["danger"],
        "conflict": change["conflict"], "renamed_from": change["renamed_from"],
        "insertions": lines["insertions"], "deletions": lines["deletions"], "binary": lines["binary"],
    })
}

fn directory(mut directory: Value) -> Value {
    directory["path"] = inside(directory["path"].take());
    directory
}

fn group(mut group: Value) -> Value {
    group["path"] = inside(group["path"].take());
    group
}

/// The path of a directory whose content is meant.
fn inside(path: Value) -> Value {
    match path {
        Value::String(path) => format!("{}/", path.trim_end_matches('/')).into(),
        other => other,
    }
}

/// Shortens the paths of a part.
fn from_here(mut part: Value, here: Option<&AbsPath>) -> Value {
    for key in ["path", "renamed_from"] {
        let short = part[key].as_str().zip(here).and_then(|(path, here)| {
            let below = AbsPath::parse(path.as_bytes()).ok()?.below(here)?.to_vec();
            String::from_utf8(below).ok()
        });
        if let Some(short) = short {
            part[key] = if short.is_empty() { ".".into() } else { short.into() };
        }
    }
    part
}

/// Makes a row of a step.
pub fn of_step(step: &Value) -> Value {
    let (n, on) = (step["n"].as_u64(), step["on"].as_u64());
    let mut row = json!({
        "n": n, "command": words(&step["argv"]), "exited": step["ending"]["exited"], "signaled": step["ending"]["signaled"],
        "cut_off": step["ending"].is_null(), "unsynced": step["unsynced"],
    });
    for (sort, count) in step["changes"].as_object().into_iter().flatten() {
        row[sort] = count.clone();
    }
    let mut row = told(row);
    if let Some(on) = on.filter(|on| Some(on + 1) != n) {
        row["on"] = on.into();
    }
    row
}

/// A command in one line, without words that are no text.
pub fn words(argv: &Value) -> String {
    argv.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}

/// A row without what is not there, or 0.
fn told(mut row: Value) -> Value {
    let tells = |value: &Value| !(value.is_null() || *value == false || *value == 0);
    row.as_object_mut().into_iter().for_each(|row| row.retain(|_, value| tells(value)));
    row
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::carry::rows::*;

    #[test]
    fn rows_say_what_is_unusual_alone() {
        let here = AbsPath::parse(b"/p").unwrap();
        let summary = json!({
            "changes": [
                { "path": "/p/.git/hooks/x", "change": "created", "kind": "file", "danger": "git runs it", "conflict": false,
                  "lines": { "insertions": 2, "deletions": 0, "binary": false } },
                { "path": "/p/made", "change": "created", "kind": "directory", "lines": { "insertions": null, "binary": false } },
                { "path": "/q/b", "change": "modified", "before": { "kind": "file" }, "after": { "kind": "symlink" }, "conflict": true },
                { "path": "/p", "change": "metadata" },
                { "path": { "b64": "L3AvAA==" }, "change": "deleted", "before": { "kind": "fifo" }, "after": null },
            ],
            "directories": [{ "path": "/p/new", "change": "created", "files": 2, "bytes": 0 }],
            "groups": [
                { "kind": "built", "path": "/p", "name": "*.o", "created": 2, "modified": 0, "deleted": 0, "bytes": 9 },
                { "kind": "repository", "path": "/p/.git", "created": 1, "modified": 1, "deleted": 0, "bytes": 9,
                  "git": [{ "act": "index" }] },
            ],
        });
        let want = json!([
            { "path": ".git/hooks/x", "change": "created", "danger": "git runs it", "insertions": 2 },
            { "path": "made", "change": "created", "kind": "directory" },
            { "path": "/q/b", "change": "modified", "kind": "symlink", "conflict": true },
            { "path": ".", "change": "metadata" },
            { "path": { "b64": "L3AvAA==" }, "change": "deleted", "kind": "fifo" },
            { "path": "new/", "change": "created", "files": 2 },
            { "path": "./", "kind": "built", "name": "*.o", "created": 2, "bytes": 9 },
            { "path": ".git/", "kind": "repository", "created": 1, "modified": 1, "bytes": 9, "git": [{ "act": "index" }] },
        ]);
        assert_eq!(Value::from(of_changes(summary, Some(&here))), want);
    }

    #[test]
    fn conflicts_of_a_directory_with_one_reason_are_told_together() {
        let here = AbsPath::parse(b"/p").unwrap();
        let one = |path: &str, why: &str| json!({ "path": path, "why": why });
        let against =
            vec![one("/p/c/1.pyc", "w"), one("/p/c/2.pyc", "w"), one("/p/c/3", "other"), one("/p/z", "w"), one("/q/y", "w")];
        let want = json!([
            { "path": "z", "why": "w" }, { "path": "/q/y", "why": "w" }, { "path": "c/3", "why": "other" },
            { "path": "c/", "conflicts": 2, "why": "w" },
        ]);
        assert_eq!(Value::from(of_conflicts(against, Some(&here))), want);
    }

    #[test]
    fn a_step_on_the_one_before_it_says_so_by_its_number() {
        let step = |on: u32, ending: Value| {
            of_step(&json!({ "n": 4, "on": on, "head": true, "argv": ["sh", "-c", "x y"], "ending": ending,
                             "unsynced": false, "changes": { "created": 3, "modified": 0 } }))
        };
        assert_eq!(step(3, json!({ "exited": 0 })), json!({ "n": 4, "command": "sh -c x y", "created": 3 }));
        assert_eq!(step(0, Value::Null), json!({ "n": 4, "on": 0, "command": "sh -c x y", "cut_off": true, "created": 3 }));
        assert_eq!(
            step(2, json!({ "signaled": 9 })),
            json!({ "n": 4, "on": 2, "command": "sh -c x y", "signaled": 9, "created": 3 })
        );
    }
}
