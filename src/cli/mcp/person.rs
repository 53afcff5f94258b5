//! The tools that a person decides about: what they would do, by a dry run, and the command for the person to type.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde_json::Value;

use super::child::{Child, failed, not_started};
use super::{client, look};
use crate::capture::inside::inside;
use crate::error::{Error, command, shell_word};
use crate::face::json::document;
use crate::face::place;
use crate::fs::path::AbsPath;
use crate::mcp::carrier::{Asked, Outcome, Told};
use crate::mcp::tools::Name;
use crate::verb::commit::{Commit, commit};
use crate::verb::redo::redo;
use crate::verb::rollback::{Rollback, rollback};
use crate::verb::target::{Target, What};

/// Answers a call of such a tool. Nothing real changes.
pub fn decide(child: &Child, store: Option<&AbsPath>, asked: &Asked, told: &Told) -> Outcome {
    if let Some(id) = inside() {
        let why = format!("this is inside the run of session {id}, where nothing reaches the real tree");
        let tail = id.rsplit('-').next().unwrap_or(&id);
        let outside = format!("the person outside does that: {}", command(format_args!("review {tail}")));
        return Outcome::refused("refused", why).with("remedy", outside);
    }
    let paths: Vec<PathBuf> = asked.texts("paths").into_iter().map(PathBuf::from).collect();
    let would = match asked.tool.is {
        Name::SnapshotRestore => restored(child, asked, &paths, told),
        _ => acted(child, store, asked, &paths),
    };
    let (mut would, typed) = match would {
        Ok(would) => would,
        Err(outcome) => return outcome,
    };
    if would["paths"].as_array().is_none_or(Vec::is_empty) {
        return Outcome::refused("refused", "there is nothing to do").with("would", would);
    }
    look::count(&mut would, &["paths", "skipped", "notes", "heads"]);
    Outcome::refused("refused", "a person decides what becomes real")
        .with("state", "nothing was changed")
        .with("remedy", format!("for the person to type: {typed}"))
        .with("command", typed)
        .with("would", would)
}

/// Tells what an act would do, and the command for a shell in any directory: with the session's id, as 'last' may mean another one by then.
fn acted(child: &Child, store: Option<&AbsPath>, asked: &Asked, paths: &[PathBuf]) -> Result<(Value, String), Outcome> {
    let failed = |error: Error| client::failed(&error);
    let desk = client::desk(store, child.agent.clone()).map_err(failed)?;
    let what = What::named(place::all_whole(paths).map_err(failed)?);
    let of = Target { what, dry_run: true, ..Target::all(asked.text("session").unwrap_or("last")) };
    let (verb, acted) = match asked.tool.is {
        Name::Rollback => ("rollback", rollback(&desk, &Rollback { of, force: false, merge: false })),
        Name::Redo => ("redo", redo(&desk, &of, false).map(Some)),
        _ => ("commit", commit(&desk, &Commit::of(of))),
    };
    let nothing = || Outcome::refused("refused", "there is nothing to do");
    let acted = acted.map_err(failed)?.ok_or_else(nothing)?;
    let id = acted.part_of.as_ref().map_or(&acted.session, |of| &of.session);
    let typed = command(format_args!("{verb} {}{}", id.tail(), quoted(paths).map_err(failed)?));
    Ok((document(&acted), typed.into()))
}

/// Tells what a restore would do, and the command for it: with the snapshot's number.
fn restored(child: &Child, asked: &Asked, paths: &[PathBuf], told: &Told) -> Result<(Value, String), Outcome> {
    let mut words: Vec<OsString> = ["snapshot", "restore", "--dry-run", "--json"].map(OsString::from).to_vec();
    words.extend(asked.text("dir").map(|dir| super::child::named("--dir", dir)));
    words.extend(["--", asked.text("snapshot").unwrap_or("last")].map(OsString::from));
    words.extend(paths.iter().map(OsString::from));
    let ran = child.run(&look::whole(&words), told).map_err(|error| not_started(&error))?;
    let Ok(would @ Value::Object(_)) = serde_json::from_slice(&ran.out.bytes) else { return Err(failed(&ran)) };
    let Ok(directory) = serde_json::from_value::<AbsPath>(would["directory"].clone()) else { return Err(failed(&ran)) };
    let (n, directory) = (&would["n"], shell_word(directory.as_bytes()));
    let paths = quoted(paths).map_err(|error| client::failed(&error))?;
    let typed = command(format_args!("snapshot restore {n} --dir {directory}{paths}"));
    Ok((would, typed.into()))
}

/// The paths, each with a blank before it.
fn quoted(paths: &[PathBuf]) -> Result<String, Error> {
    let mut text = String::new();
    for path in paths {
        let plain: PathBuf = place::whole(path)?.components().collect();
        let plain = AbsPath::parse(plain.as_os_str().as_bytes()).map_or(plain, |path| path.as_path().to_path_buf());
        text.push(' ');
        text.push_str(&shell_word(plain.as_os_str().as_bytes()));
    }
    Ok(text)
}
