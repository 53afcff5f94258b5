//! Stages a change in a directory, shows the plan, commits it, and rolls it back.
//!
//!     cargo run --example stage -- STORE DIR
//!
//! STORE is the directory of a store; it is made where it is missing. DIR/greeting gets other content, DIR/old goes if it is there, and
//! DIR/new is made. At the end DIR is as it was, to the last byte, mode and time. `recant --store STORE show last` shows the session.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::path::{Path, PathBuf};

use recant::{Edit, Report, Store, Verb};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(store), Some(dir), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: stage STORE DIR".into());
    };
    // The library takes absolute paths alone: which directory a relative one means may change under a thread.
    let store = Store::open(std::path::absolute(store)?)?;
    let dir = dir.canonicalize()?;

    // What a crash of an earlier call has left is undone or finished before anything else. (Each call that changes something does this
    // by itself. Here it is told.)
    for recovered in store.recover()? {
        println!("recovered {}: {:?}", recovered.session, recovered.outcome);
    }

    // A session holds changes. Nothing on the tree is touched while they are staged, and later edits see what earlier ones staged.
    let id = store.begin(None)?;
    let [greeting, old, new, inside] = ["greeting", "old", "new", "new/file"].map(|name| dir.join(name));
    let mut edits =
        vec![write(&greeting, "hello\n"), Edit::Mkdir { path: &new, mode: Some(0o750) }, write(&inside, "made by an example\n")];
    if old.symlink_metadata().is_ok() {
        edits.push(Edit::Delete { path: &old, recursive: true });
    }
    store.stage(&id, edits)?;
    println!("held:");
    for change in store.changes(&id)? {
        println!("  {:?} {}", change.kind, change.path.display());
    }

    // A plan looks at everything that a commit would touch, and changes nothing.
    let plan = store.plan(&id, Verb::Commit, &[])?;
    for conflict in plan.conflicts() {
        println!("{}: {}", conflict.path.display(), conflict.why);
    }
    // Done and durable as a whole, or an error and nothing changed. What somebody changed since the plan is found here, too.
    let report = plan.apply()?;
    tell("committed", &report);

    // Exactly what was there before, or an error that names each path that somebody has changed meanwhile.
    let report = store.plan(&id, Verb::Rollback, &[])?.apply()?;
    tell("rolled back", &report);
    Ok(())
}

fn write<'a>(path: &'a Path, content: &'a str) -> Edit<'a> {
    Edit::Write { path, content: Box::new(content.as_bytes()), mode: None }
}

fn tell(what: &str, report: &Report) {
    println!("{what}: {} changes", report.changes.len());
    for (path, why) in &report.skipped {
        println!("  left as it is: {}: {why}", path.display());
    }
    for note in &report.notes {
        println!("  note: {note}");
    }
}
