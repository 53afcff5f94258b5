//! Runs a command on the real files of a directory, between two snapshots; lists what it changed, and takes that back.
//!
//!     cargo run --example snapshot -- STORE DIR [--keep] COMMAND…
//!
//! STORE is the directory of a store; it is made where it is missing, and has to lie outside of DIR. The command runs in DIR. With --keep
//! the changes are put there again at the end. Nothing is held: the command may change other directories too, and these stay changed.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::ffi::OsString;
use std::process::Command;

use recant::{Store, Verb};

fn main() -> Result<(), Box<dyn Error>> {
    const USAGE: &str = "usage: snapshot STORE DIR [--keep] COMMAND…";
    let mut args = std::env::args_os().skip(1);
    let (store, dir) = (args.next().ok_or(USAGE)?, args.next().ok_or(USAGE)?);
    let mut command: Vec<OsString> = args.collect();
    let keep = command.first().is_some_and(|word| word == "--keep");
    if keep {
        command.remove(0);
    }
    let program = command.first().ok_or(USAGE)?;
    let store = Store::open(std::path::absolute(store)?)?;
    let dir = std::path::absolute(dir)?;

    // A snapshot has contents, modes, times, links, xattrs. Left out are `.git` and the like, and what a `.recantignore` names.
    let (before, skipped) = store.take_snapshot(&dir, Some("before"))?;
    for (path, why) in skipped {
        println!("not in the snapshot: {}: {why}", path.display());
    }
    let status = Command::new(program).args(&command[1..]).current_dir(&dir).status()?;
    let (after, _) = store.take_snapshot(&dir, Some("after"))?;
    println!("{status}; snapshots {before} and {after}");

    // The restore is done as a whole or not at all. Its report says what was made, changed and removed on the way back, and so what
    // the command did.
    let restored = store.restore(&dir, before)?;
    for change in &restored.changes {
        let path = change.path.strip_prefix(&dir).unwrap_or(&change.path);
        println!("restored: {:?} {}", change.kind, path.display());
    }
    for (path, why) in &restored.skipped {
        println!("left as it is: {}: {why}", path.display());
    }

    // A restore is a session of its own, so a rollback takes it back: the directory is as the command left it.
    match restored.session {
        Some(session) if keep => {
            let report = store.plan(&session, Verb::Rollback, &[])?.apply()?;
            println!("kept: {} changes are there again", report.changes.len());
        }
        Some(session) => println!("recant rollback {session} would bring them again"),
        None => println!("the command changed nothing"),
    }
    Ok(())
}
