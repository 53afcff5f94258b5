//! Drives the capture room alone, for its tests: `capture STORE [--kill] -- COMMAND…` runs one, `capture STORE --in DIR… -- COMMAND…`
//! confines one to directories of the real tree, holding nothing. At the end STORE gets `changes` and `times`: JSON, a line each. Exits as
//! `recant run` does.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program for tests")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use recant::internals::{
    AbsPath, Command, Confinement, Dir, Ending, Error, Event, Facts, Fs, Ground, Kind, Linger, Net, Network, Numbers, Plan,
    Request, Route, Sealed, finish, run_captured, run_command, working_directory,
};

fn main() -> ExitCode {
    match attempt() {
        Ok(ending) => ExitCode::from(ending.status()),
        Err(error) => {
            eprintln!("capture: {error}");
            for line in [error.state().map(str::to_owned), error.remedy()].into_iter().flatten() {
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

fn attempt() -> Result<Ending, Error> {
    let mut words = std::env::args_os().skip(1);
    let store = words.next().expect("the store");
    let store = AbsPath::parse(std::fs::canonicalize(store).expect("a store").as_os_str().as_encoded_bytes()).expect("a path");
    let (mut linger, mut dirs) = (Linger::Wait, Vec::new());
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => break,
            Some("--kill") => linger = Linger::Kill,
            Some("--in") => dirs.push(PathBuf::from(words.next().expect("a directory"))),
            _ => panic!("what is {word:?}?"),
        }
    }
    let argv: Vec<OsString> = words.collect();
    if !dirs.is_empty() {
        let confinement = Confinement::make(&dirs, &[], Network::Open)?;
        eprintln!("not denied: {}", confinement.not_denied().join("; "));
        let command = Command { linger, keeps_before: false, ..Command::new(argv) };
        return Ok(run_command(Ground::Confined(&confinement), &command, &mut |_| {})?.exit);
    }
    let request = Request {
        cwd: working_directory()?,
        own_store: None,
        store: store.clone(),
        home: std::env::var_os("HOME").map(PathBuf::from),
        also: Vec::new(),
        passes: Vec::new(),
        hide: Vec::new(),
        scratch: Vec::new(),
        program: argv.first().cloned().unwrap_or_default(),
        known: Vec::new(),
        tag: "20260101-000000-test".into(),
        since: recant::internals::exact_now(),
    };
    let plan = Plan::make(&request)?;
    let fs = Fs::new();
    let held = Dir::open(store.as_path()).expect("the store");
    // Of an earlier run.
    for left in ["upper", "work"] {
        fs.remove_all(held.at(left.as_bytes()))?;
    }
    let (sealed, net) = (Sealed::default(), Net::empty());
    let laid = plan.lay_out(&fs, &held, &[], (1, &sealed))?;
    let ended = run_captured(&laid, &Command { linger, keeps_before: false, ..Command::new(argv) }, &mut |event| match event {
        Event::SettingUp | Event::InMemory(_) | Event::Asked(_) | Event::Listens(_) | Event::Serves | Event::OnlyJoined(..) => {}
        Event::Lingering(names) => eprintln!("still running: {}", names.join(" ")),
        Event::EndsRest(names) => eprintln!("ended: {}", names.join(" ")),
        Event::Uncovered(path, why) => eprintln!("uncovered: {path}: {why}"),
        Event::NoGroups(why) => eprintln!("without further groups: {why}"),
        Event::Closed(fd, path) => eprintln!("descriptor {fd} ({path}) is closed"),
        Event::NotFed(why) => eprintln!("input not read to its end: {why}"),
        Event::RealOutput(path, _) => eprintln!("{path} is real"),
    })?;
    if !ended.own_pids {
        eprintln!("without own PIDs");
    }
    let facts = Facts {
        held: &held,
        places: &laid.places(),
        store: &store,
        started: ended.span.start(),
        span: Some(ended.span),
        step: 1,
        sealed: &sealed,
        net: &net,
        numbers: Numbers { changes: 0, from: 1 },
        scratch: &[],
        looks: false,
        in_memory: false,
        cut_off: false,
        route: Route::of(rustix::process::geteuid().as_raw()),
    };
    let collected = finish(&fs, ended.leaving, &facts)?;
    write(&store, "changes", &collected.own().list);
    write(&store, "times", &collected.own().directory_times);
    Ok(ended.exit)
}

fn write<T: serde::Serialize>(store: &AbsPath, name: &str, list: &[T]) {
    let lines = list.iter().map(|item| serde_json::to_string(item).expect("plain data") + "\n");
    std::fs::write(store.as_path().join(name), lines.collect::<String>()).expect("a file in the store");
}
