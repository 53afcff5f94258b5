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

use recant::{Desk, Restore, Rollback, SnapshotRequest, Target};

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
    let desk = Desk::open(std::path::absolute(store)?)?;
    let dir = std::path::absolute(dir)?;

    // A snapshot has contents, modes, times, links, xattrs. Left out are `.git` and the like, and what a `.recantignore` names.
    let before = recant::take_snapshot(&desk, Some(&dir), SnapshotRequest::of(Some("before")), None)?;
    for (path, why) in before.left() {
        println!("not in the snapshot: {}: {why}", path.display());
    }
    let status = Command::new(program).args(&command[1..]).current_dir(&dir).status()?;
    let after = recant::take_snapshot(&desk, Some(&dir), SnapshotRequest::of(Some("after")), None)?;
    println!("{status}; snapshots {} and {}", before.n(), after.n());

    // What was made, changed and removed on the way back tells what the command did.
    let restored = recant::restore(&desk, &Restore::all(&dir, &before.n().to_string()))?;
    for (path, done) in restored.paths() {
        println!("{done} {}", path.strip_prefix(&dir).unwrap_or(path).display());
    }
    for (path, why) in restored.left() {
        println!("left as it is: {}: {why}", path.display());
    }

    // A restore is a session of its own, so a rollback takes it back: the directory is as the command left it.
    match restored.session() {
        Some(session) if keep => {
            let acted = recant::rollback(&desk, &Rollback::of(Target::all(session)))?;
            println!("kept: {} changes are there again", acted.map_or(0, |acted| acted.paths().count()));
        }
        Some(session) => println!("recant rollback {session} would bring them again"),
        None => println!("the command changed nothing"),
    }
    Ok(())
}
