//! `commit`: what it would do, by a dry run, and the command for the person to type. What the person's policy allows is committed.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::child::{Child, Started, failed, not_started};
use super::outside::decided_outside;
use super::reading;
use super::rows;
use crate::capture::inside;
use crate::error::{Error, command, shell_word};
use crate::face::find_store;
use crate::face::mcp::carrier::{Asked, Outcome, Told};
use crate::face::mcp::page;
use crate::fs::AbsPath;
use crate::session::Id;

/// Bytes for what would be committed.
const CHANGES: usize = 2 << 10;

/// Asks for a commit. `here`: the working directory.
pub fn ask(child: &Child, (asked, here): (&Asked, Option<&AbsPath>), session: &str, told: &Told) -> Outcome {
    if let Some(id) = inside() {
        return decided_outside(&id, "nothing reaches the real tree");
    }
    let paths: Vec<PathBuf> = asked.texts("paths").into_iter().map(PathBuf::from).collect();
    let mut would = match commit(child, &["--dry-run"], (session, &paths), told) {
        Ok(would) => would,
        Err(outcome) => return outcome,
    };
    if would["policy"]["fits"].as_u64().is_some_and(|fits| fits > 0) {
        return match commit(child, &[], (session, &paths), told) {
            Ok(done) => by_policy(&would, &done),
            Err(outcome) => outcome,
        };
    }
    let mut changes = rows::of_changes(would["summary"].take(), here);
    let Some(changed) = would["paths"].as_array().filter(|paths| !paths.is_empty()) else {
        return Outcome::refused("refused", "there is nothing to commit");
    };
    let (id, typed) = match typed(&would, head(child, session, told), &paths) {
        Ok(typed) => typed,
        Err(problem) => return Outcome::refused("refused", problem.message()),
    };
    changes.truncate(page::fitting(&changes, CHANGES).max(1));
    let mut answer = json!({
        "result": "awaiting_person", "session": id, "command": typed, "would": counts(changed.iter()), "changes": changes,
        "waits": would["policy"]["waits"], "skipped": would["skipped"], "notes": would["notes"],
    });
    reading::count(&mut answer, &["waits", "skipped", "notes"]);
    Outcome::done(answer)
}

/// The document of a commit, or of one that only tells.
fn commit(child: &Child, options: &[&str], (session, paths): (&str, &[PathBuf]), told: &Told) -> Result<Value, Outcome> {
    let words = ["commit", "--json"].into_iter().chain(options.iter().copied()).chain(["--", session]).map(OsString::from);
    let words: Vec<OsString> = words.chain(paths.iter().map(OsString::from)).collect();
    let ran = child.run(&Started::whole(&words), told).map_err(|error| not_started(&error))?;
    match serde_json::from_slice::<Value>(&ran.out.bytes) {
        Ok(document @ Value::Object(_)) => Ok(document),
        _ => Err(failed(&ran)),
    }
}

/// The answer where the person's policy allowed something: what was done, and the command for the rest.
fn by_policy(would: &Value, done: &Value) -> Outcome {
    let paths = |of: &Value| of["paths"].as_array().cloned().unwrap_or_default();
    let done_paths = paths(done);
    let waits: HashSet<&str> =
        done["policy"]["waits"].as_array().into_iter().flatten().filter_map(|one| one["path"].as_str()).collect();
    let would = paths(would);
    let rest = would.iter().filter(|path| path["path"].as_str().is_some_and(|path| waits.contains(path)));
    let command = &done["policy"]["command"];
    let whole = done["part_of"]["session"].as_str().or(done["session"].as_str());
    let mut answer = json!({
        "result": if command.is_null() { "committed" } else { "awaiting_person" },
        "session": whole, "committed": { "session": done["session"], "paths": counts(done_paths.iter()) },
        "command": command, "would": counts(rest), "waits": done["policy"]["waits"], "skipped": done["skipped"], "notes": done["notes"],
    });
    reading::count(&mut answer, &["waits", "skipped", "notes"]);
    Outcome::done(answer)
}

/// The number of paths by what becomes of them.
fn counts<'p>(paths: impl Iterator<Item = &'p Value>) -> BTreeMap<&'p str, u64> {
    let mut counts = BTreeMap::new();
    paths.filter_map(|path| path["done"].as_str()).for_each(|done| *counts.entry(done).or_default() += 1);
    counts
}

/// The step at which a session stands; `None` of one that was staged by hand.
fn head(child: &Child, session: &str, told: &Told) -> Option<u64> {
    let words = ["steps", "--json", "--", session].map(OsString::from);
    let ran = child.run(&Started::whole(&words), told).ok()?;
    serde_json::from_slice::<Value>(&ran.out.bytes).ok()?["head"].as_u64()
}

/// The session, and the act that a dry run has looked at, for a shell in any directory: with the session's id and step, as its name may mean
/// another one by then, and a further command may add to it.
fn typed(would: &Value, head: Option<u64>, paths: &[PathBuf]) -> Result<(String, String), Error> {
    // The session of a part is gone with the dry run.
    let session = would["part_of"]["session"].as_str().or(would["session"].as_str()).unwrap_or_default();
    let id = Id::parse(session).ok_or_else(|| Error::refused("the dry run names no session"))?;
    let at = head.map(|head| format!("@{head}")).unwrap_or_default();
    Ok((session.to_owned(), command(format_args!("commit {}{at}{}", id.tail(), quoted(paths)?)).into()))
}

/// The paths, each with a blank before it.
fn quoted(paths: &[PathBuf]) -> Result<String, Error> {
    let mut text = String::new();
    for path in paths {
        let plain: PathBuf = find_store::whole(path)?.components().collect();
        let plain = AbsPath::parse(plain.as_os_str().as_bytes()).map_or(plain, |path| path.as_path().to_path_buf());
        text.push(' ');
        text.push_str(&shell_word(plain.as_os_str().as_bytes()));
    }
    Ok(text)
}
