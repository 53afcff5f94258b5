//! Drives the capture room alone, for its tests: `capture STORE [--also DIR]… [--pass PATH]… [--kill] -- COMMAND…`.
//! Prints one JSON line on stderr at the end; exits as `recant run` does.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program for tests")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use recant::capture::error::Error;
use recant::capture::plan::{Pass, Plan, Request, working_folder};
use recant::capture::run::{Command, Event, Exit, Linger, run};
use recant::error::{Failure, Kind};
use recant::fs::Fs;
use recant::fs::dir::Dir;
use recant::fs::path::AbsPath;

fn main() -> ExitCode {
    match attempt() {
        Ok(Exit::Code(code)) => ExitCode::from(code),
        Ok(Exit::Signal(signal)) => ExitCode::from(128 + u8::try_from(signal).unwrap_or(127)),
        Err(error) => {
            eprintln!("capture: {error}");
            for line in [error.state(), error.remedy()].into_iter().flatten() {
                eprintln!("  {line}");
            }
            ExitCode::from(match error.kind() {
                Kind::NoCapture => 125,
                Kind::NotExecutable => 126,
                Kind::NotFound => 127,
                _ => 1,
            })
        }
    }
}

fn attempt() -> Result<Exit, Error> {
    let mut words = std::env::args_os().skip(1);
    let store = words.next().expect("the store");
    let store = AbsPath::parse(std::fs::canonicalize(store).expect("a store").as_os_str().as_encoded_bytes()).expect("a path");
    let (mut also, mut passes, mut linger) = (Vec::new(), Vec::new(), Linger::Wait);
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => break,
            Some("--kill") => linger = Linger::Kill,
            Some("--also") => also.push(PathBuf::from(words.next().expect("a folder"))),
            Some("--pass") => {
                passes.push(Pass { path: PathBuf::from(words.next().expect("a path")), why: "--pass".into() });
            }
            _ => panic!("what is {word:?}?"),
        }
    }
    let argv: Vec<OsString> = words.collect();
    let request = Request {
        cwd: working_folder()?,
        store: store.clone(),
        home: std::env::var_os("HOME").map(PathBuf::from),
        also,
        passes,
        hide: Vec::new(),
        program: argv.first().cloned().unwrap_or_default(),
        tag: "20260101-000000-test".into(),
    };
    if let Some(id) = recant::capture::inside::inside() {
        eprintln!("inside {id}");
        return Ok(Exit::Code(99));
    }
    let plan = Plan::make(&request)?;
    if std::env::var_os("COVERAGE").is_some() {
        for place in plan.coverage() {
            eprintln!("{}", serde_json::to_string(place).expect("plain data"));
        }
    }
    let fs = Fs::new();
    let held = Dir::open(store.as_path()).expect("the store");
    let laid = plan.lay_out(&fs, &held, &[])?;
    let ended = run(&laid, &Command { argv, env: Vec::new(), linger }, &mut |Event::Lingering(names)| {
        eprintln!("still running: {}", names.join(" "));
    })?;
    let collected = recant::capture::collect::finish(&fs, &laid, &held, &store, ended.started)?;
    if let Some(file) = std::env::var_os("COLLECTED") {
        let lines = collected.changes.list.iter().map(|change| serde_json::to_string(change).expect("plain data") + "\n");
        std::fs::write(&file, lines.collect::<String>()).expect("the list");
        let times = collected.changes.folder_times.iter();
        let lines = times.map(|time| serde_json::to_string(time).expect("plain data") + "\n");
        std::fs::write(PathBuf::from(file).with_extension("times"), lines.collect::<String>()).expect("the list");
    }
    for warning in &collected.warnings {
        eprintln!("{warning}");
    }
    if std::env::var_os("COVERAGE").is_some() {
        eprintln!("{} changes, {} folder times", collected.changes.list.len(), collected.changes.folder_times.len());
        eprintln!("{ended:?}");
    }
    Ok(ended.exit)
}
