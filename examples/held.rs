//! Runs a command with its changes held, and lists them. With --yes they are committed if the command ends with 0; else they are dropped.
//!
//!     cargo run --example held -- [--yes] COMMAND…
//!     RECANT=PROGRAM                 default: the recant in PATH
//!
//! The program `recant` runs the command: for that it forks into new namespaces, which a library cannot do safely inside a process of
//! which it does not know the threads. Both meet in the store: what the program holds, the library tries and commits. Exits as the command
//! does, with 1 if the library refuses, and with 3 on a conflict.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what happens")]

use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use recant::{Commit, Desk, End, Kind, Target};
use serde_json::Value;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut command: Vec<OsString> = std::env::args_os().skip(1).collect();
    let yes = command.first().is_some_and(|word| word == "--yes");
    if yes {
        command.remove(0);
    }
    if command.is_empty() {
        return Err("usage: held [--yes] COMMAND…".into());
    }

    // Standard output is the command's alone. Standard error is its too, but for the last line: the result, as JSON.
    let mut run = program().args(["run", "--json", "--"]).args(command).stderr(Stdio::piped()).spawn()?;
    let mut last: Option<Vec<u8>> = None;
    for line in BufReader::new(run.stderr.take().expect("it was piped")).split(b'\n') {
        if let Some(line) = last.replace(line?) {
            eprintln!("{}", String::from_utf8_lossy(&line));
        }
    }
    let status = run.wait()?;
    let result: Value = serde_json::from_slice(&last.unwrap_or_default())?;
    if let Some(error) = result["message"].as_str() {
        return Err(format!("recant could not run it: {error}").into());
    }
    let exit = ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
    let Some(id) = result["session"].as_str() else {
        println!("nothing was changed");
        return Ok(exit);
    };

    // The same store: the program says which one it uses (--store, RECANT_STORE, its settings).
    let said = program().args(["status", "--json"]).output()?;
    let said: Value = serde_json::from_slice(&said.stdout)?;
    let desk = Desk::open(Path::new(said["store"]["path"].as_str().ok_or("the store has an odd path")?))?;

    for (path, change) in recant::show(&desk, Some(id), &[])?.changes() {
        println!("{change} {}", path.display());
    }
    let commits = yes && status.success();
    let all = Target::all(id);
    match recant::commit(&desk, &Commit::of(if commits { all } else { all.dry_run() })) {
        // Somebody wrote there while the command ran. Nothing is done, and the session stays for a person to decide.
        Err(error) if error.kind() == Kind::Conflict => {
            for conflict in error.against() {
                println!("{}: {}", conflict.path, conflict.why);
            }
            return Ok(ExitCode::from(3));
        }
        Err(error) => return Err(error.into()),
        Ok(acted) if commits => {
            let count = acted.map_or(0, |acted| acted.paths().count());
            println!("committed: {count} changes; recant rollback {id} takes them back");
        }
        Ok(_) => {
            recant::discard(&desk, &[id.to_owned()], End::Aside, false, None)?;
            println!("dropped");
        }
    }
    Ok(exit)
}

fn program() -> Command {
    Command::new(std::env::var_os("RECANT").unwrap_or_else(|| "recant".into()))
}
