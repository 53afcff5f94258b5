//! `commit`: what it would do, by a dry run, and the command for the person to type. What the person's policy allows is committed. In conflict
//! the command is the one that merges, if all merges, else the one that shows both sides.

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

/// The advice to an agent in conflict.
const AGAIN: &str = "give the command to your person, or do it again in a new session: it begins with the files as they are now";

/// Asks for a commit. `here`: the working directory.
pub fn ask(child: &Child, (asked, here): (&Asked, Option<&AbsPath>), session: &str, told: &Told) -> Outcome {
    if let Some(id) = inside() {
        return decided_outside(&id, "nothing reaches the real tree");
    }
    let paths: Vec<PathBuf> = asked.texts("paths").into_iter().map(PathBuf::from).collect();
    let refused = |outcome: Outcome| match outcome.document["kind"] == "conflict" {
        true => in_conflict(child, here, (session, &paths), outcome, told),
        false => outcome,
    };
    let mut would = match commit(child, &["--dry-run"], (session, &paths), told) {
        Ok(would) => would,
        Err(outcome) => return refused(outcome),
    };
    if would["policy"]["fits"].as_u64().is_some_and(|fits| fits > 0) {
        return match commit(child, &[], (session, &paths), told) {
            Ok(done) => by_policy(&would, &done),
            Err(outcome) => refused(outcome),
        };
    }
    let mut changes = rows::of_changes(would["summary"].take(), here);
    let Some(changed) = would["paths"].as_array().filter(|paths| !paths.is_empty()) else {
        return nothing_held(child, session, told);
    };
    // The session of a part is gone with the dry run.
    let id = would["part_of"]["session"].as_str().or(would["session"].as_str()).unwrap_or_default();
    let typed = match typed(("commit", ""), id, head(child, session, told), &paths) {
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

/// The answer if there is nothing to commit: what became of what was held, and by whom.
fn nothing_held(child: &Child, session: &str, told: &Told) -> Outcome {
    let refused = |why: String| Outcome::refused("refused", format!("there is nothing to commit{why}"));
    let words = ["await", "--json", "--for=0s", "--", session].map(OsString::from);
    let Some(decided) = child.run(&Started::whole(&words), told).ok() else { return refused(String::new()) };
    let decided: Value = serde_json::from_slice(&decided.out.bytes).unwrap_or_default();
    let Some(last) = decided["acts"].as_array().and_then(|acts| acts.last()) else { return refused(String::new()) };
    let (act, by) = (last["act"].as_str().unwrap_or_default(), last["by"]["agent"].as_str().unwrap_or("a person"));
    refused(format!(": the last act was a {act} by {by}"))
        .with("acts", decided["acts"].clone())
        .with("session", decided["session"].clone())
        .with("remedy", "hold_run begins anew; log says what was done")
}

/// The answer in conflict: the paths in the way as rows, and the command for the person.
fn in_conflict(
    child: &Child,
    here: Option<&AbsPath>,
    (session, paths): (&str, &[PathBuf]),
    mut outcome: Outcome,
    told: &Told,
) -> Outcome {
    let document = &mut outcome.document;
    if let Value::Array(against) = document["paths"].take() {
        let mut rows = rows::of_conflicts(against, here);
        let fitting = page::fitting(&rows, CHANGES).max(1);
        if let Some(more) = rows.len().checked_sub(fitting).filter(|more| *more > 0) {
            document["more"] = json!({ "conflicts": more });
        }
        rows.truncate(fitting);
        document["conflicts"] = rows.into();
    }
    // The message of a conflict of one path names it.
    document.as_object_mut().into_iter().for_each(|keys| keys.retain(|key, value| key != "path" && !value.is_null()));
    let Some(id) = id(child, session, told) else { return outcome };
    let typed = match all_merges(child, (session, paths), told) {
        true => typed(("commit", " --merge"), &id, head(child, session, told), paths),
        false => typed(("diff", " --conflicts"), &id, None, paths),
    };
    match typed {
        Ok(typed) => outcome.with("session", id).with("command", typed).with("remedy", AGAIN),
        Err(_) => outcome,
    }
}

/// True if `commit --merge` would do it.
fn all_merges(child: &Child, of: (&str, &[PathBuf]), told: &Told) -> bool {
    // Where nothing is left beside what merges it prints no document.
    child.run(&Started::whole(&words(&["--dry-run", "--merge"], of)), told).is_ok_and(|ran| ran.status.success())
}

fn words(options: &[&str], (session, paths): (&str, &[PathBuf])) -> Vec<OsString> {
    let words = ["commit", "--json"].into_iter().chain(options.iter().copied()).chain(["--", session]).map(OsString::from);
    words.chain(paths.iter().map(OsString::from)).collect()
}

/// The document of a commit, or of one that only tells.
fn commit(child: &Child, options: &[&str], of: (&str, &[PathBuf]), told: &Told) -> Result<Value, Outcome> {
    let ran = child.run(&Started::whole(&words(options, of)), told).map_err(|error| not_started(&error))?;
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

/// The id of a session.
fn id(child: &Child, session: &str, told: &Told) -> Option<String> {
    let words = ["show", "--json", "--", session].map(OsString::from);
    let ran = child.run(&Started::whole(&words), told).ok()?;
    serde_json::from_slice::<Value>(&ran.out.bytes).ok()?["session"]["id"].as_str().map(str::to_owned)
}

/// The step at which a session stands; `None` of one that was staged by hand.
fn head(child: &Child, session: &str, told: &Told) -> Option<u64> {
    let words = ["steps", "--json", "--", session].map(OsString::from);
    let ran = child.run(&Started::whole(&words), told).ok()?;
    serde_json::from_slice::<Value>(&ran.out.bytes).ok()?["head"].as_u64()
}

/// A command for a shell in any directory: with the session's id, and with the step at which it stands if there is one, as its name may mean
/// another one by then, and a further command may add to it.
fn typed((verb, option): (&str, &str), session: &str, at: Option<u64>, paths: &[PathBuf]) -> Result<String, Error> {
    let id = Id::parse(session).ok_or_else(|| Error::refused("the dry run names no session"))?;
    let at = at.map(|head| format!("@{head}")).unwrap_or_default();
    Ok(command(format_args!("{verb} {}{at}{option}{}", id.tail(), quoted(paths)?)).into())
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
