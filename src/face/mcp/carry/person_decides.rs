//! The tools that a person decides about: what they would do, by a dry run, and the command for the person to type.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::Value;

use super::child::Child;
use super::child::failed;
use super::child::not_started;
use super::reading;
use crate::capture::inside;
use crate::error::{Error, command, shell_word};
use crate::face::find_store;
use crate::face::mcp::carrier::{Asked, Outcome, Told};
use crate::face::mcp::tools::Name;
use crate::fs::AbsPath;
use crate::session::Id;

/// Answers a call of such a tool. Nothing real changes.
pub fn decide(child: &Child, asked: &Asked, told: &Told) -> Outcome {
    if let Some(id) = inside() {
        let why = format!("this is inside the run of session {id}, where nothing reaches the real tree");
        let tail = id.rsplit('-').next().unwrap_or(&id);
        let outside = format!("the person outside does that: {}", command(format_args!("review {tail}")));
        return Outcome::refused("refused", why).with("remedy", outside);
    }
    let paths: Vec<PathBuf> = asked.texts("paths").into_iter().map(PathBuf::from).collect();
    let ran = match child.run(&reading::whole(&words(asked, &paths)), told) {
        Ok(ran) => ran,
        Err(error) => return not_started(&error),
    };
    let Ok(mut would @ Value::Object(_)) = serde_json::from_slice(&ran.out.bytes) else { return failed(&ran) };
    if would["paths"].as_array().is_none_or(Vec::is_empty) {
        return Outcome::refused("refused", "there is nothing to do").with("would", would);
    }
    let verb = verb_of(asked);
    let typed = match typed(verb.last().copied().unwrap_or_default(), &would, &paths) {
        Ok(typed) => typed,
        Err(problem) => return Outcome::refused("refused", problem.message()),
    };
    reading::count(&mut would, &["paths", "skipped", "notes", "heads"]);
    Outcome::refused("refused", "a person decides what becomes real")
        .with("state", "nothing was changed")
        .with("remedy", format!("for the person to type: {typed}"))
        .with("command", typed)
        .with("would", would)
}

/// The words of the verb that a tool is.
fn verb_of(asked: &Asked) -> &'static [&'static str] {
    match asked.tool.is {
        Name::SnapshotRestore => &["snapshot", "restore"],
        Name::Rollback => &["rollback"],
        Name::Redo => &["redo"],
        _ => &["commit"],
    }
}

fn words(asked: &Asked, paths: &[PathBuf]) -> Vec<OsString> {
    let key = if asked.tool.is == Name::SnapshotRestore { "snapshot" } else { "session" };
    let mut words: Vec<OsString> = verb_of(asked).iter().map(OsString::from).collect();
    words.extend(["--dry-run", "--json"].map(OsString::from));
    words.extend(asked.text("dir").map(|dir| super::child::named("--dir", dir)));
    words.extend(["--", asked.text(key).unwrap_or("last")].map(OsString::from));
    words.extend(paths.iter().map(OsString::from));
    words
}

/// The act that a dry run has looked at, for a shell in any directory: with the session's id or the snapshot's number, as 'last' may be
/// another one by then.
fn typed(verb: &str, would: &Value, paths: &[PathBuf]) -> Result<String, Error> {
    let of = |key: &str| would[key].as_str().unwrap_or_default();
    let paths = quoted(paths)?;
    if let Ok(directory) = serde_json::from_value::<AbsPath>(would["directory"].clone()) {
        let (n, directory) = (&would["n"], shell_word(directory.as_bytes()));
        return Ok(command(format_args!("snapshot restore {n} --dir {directory}{paths}")).into());
    }
    // The session of a part is gone with the dry run.
    let session = would["part_of"]["session"].as_str().unwrap_or(of("session"));
    let id = Id::parse(session).ok_or_else(|| Error::refused("the dry run names no session"))?;
    Ok(command(format_args!("{verb} {}{paths}", id.tail())).into())
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
