//! Stages a change in a directory, tries the commit, commits it, and rolls it back.
//!
//!     cargo run --example stage -- STORE DIR
//!
//! STORE is the directory of a store; it is made where it is missing. DIR/greeting gets other content, DIR/old goes if it is there, and
//! DIR/new is made. At the end DIR is as it was, to the last byte, mode and time. `recant --store STORE show last` shows the session.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::path::{Path, PathBuf};

use recant::{Acted, Commit, Desk, Edit, Rollback, Target};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(store), Some(dir), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: stage STORE DIR".into());
    };
    let desk = Desk::open(std::path::absolute(store)?)?;
    let dir = dir.canonicalize()?;

    // What a crash of an earlier call has left is undone or finished before anything else. (Each call that changes something does this
    // by itself. Here it is told.)
    let recovery = recant::recover(&desk)?;
    if !recovery.is_empty() {
        println!("recovered: {}", serde_json::to_string(&recovery)?);
    }

    // A session holds changes. Nothing on the tree is touched while they are staged, and later edits see what earlier ones staged.
    let session = recant::begin(&desk, None)?;
    let (mut hello, mut made) = ("hello\n".as_bytes(), "made by an example\n".as_bytes());
    let mut edits = vec![
        (Path::new("greeting"), file(&mut hello)),
        (Path::new("new"), Edit::Mkdir(Some(0o750))),
        (Path::new("new/file"), file(&mut made)),
    ];
    if dir.join("old").symlink_metadata().is_ok() {
        edits.push((Path::new("old"), Edit::Delete { recursive: true }));
    }
    recant::stage(&desk, session.id(), &dir, edits, false)?;
    println!("held:");
    for (path, change) in recant::show(&desk, Some(session.id()), &[])?.changes() {
        println!("  {change} {}", path.display());
    }

    // A dry run looks at everything that a commit would touch, and changes nothing. A conflict is an error that names each path.
    let all = Target::all(session.id());
    if let Err(error) = recant::commit(&desk, &Commit::of(all.clone().dry_run())) {
        for against in error.against() {
            println!("{}: {}", against.path, against.why);
        }
    }
    // Done and durable as a whole, or an error and nothing changed. What somebody changed since the dry run is found here, too.
    if let Some(acted) = recant::commit(&desk, &Commit::of(all.clone()))? {
        tell("committed", &acted);
    }

    // Exactly what was there before, or an error that names each path that somebody has changed meanwhile.
    if let Some(acted) = recant::rollback(&desk, &Rollback::of(all))? {
        tell("rolled back", &acted);
    }
    Ok(())
}

fn file<'a>(content: &'a mut &[u8]) -> Edit<'a> {
    Edit::Write { content, source: "the example's content", mode: None, over_directory: false }
}

fn tell(what: &str, acted: &Acted) {
    println!("{what}: {} changes", acted.paths().count());
    for (path, why) in acted.left() {
        println!("  left as it is: {}: {why}", path.display());
    }
    for note in acted.notes() {
        println!("  note: {note}");
    }
}
