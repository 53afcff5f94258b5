//! Drives the capture room alone, for its tests: `capture STORE [--also DIR]… [--pass PATH]… [--kill] -- COMMAND…` runs one,
//! `capture STORE --in DIR… -- COMMAND…` confines one to directories of the real tree, holding nothing;
//! `capture STORE --collect` reads what a killed one left. STORE gets `places` and `started` before the command starts,
//! and at the end `changes`, `times`, `warnings` and `coverage`: JSON, a line each. Exits as `recant run` does.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program for tests")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use recant::internals::{
    AbsPath, Collected, Command, Confinement, Dir, Error, Event, Exit, Facts, Fs, Ground, Kind, Linger, Net, Network, Numbers,
    Pass, Place, Plan, Request, Route, Sealed, Time, collect, finish, inside, run, run_on, working_directory,
};

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
    let (mut also, mut passes, mut linger, mut collect_only) = (Vec::new(), Vec::new(), Linger::Wait, false);
    let mut dirs = Vec::new();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => break,
            Some("--collect") => collect_only = true,
            Some("--kill") => linger = Linger::Kill,
            Some("--in") => dirs.push(PathBuf::from(words.next().expect("a directory"))),
            Some("--also") => also.push(PathBuf::from(words.next().expect("a directory"))),
            Some("--pass") => {
                passes.push(Pass { path: PathBuf::from(words.next().expect("a path")), why: "--pass".into() });
            }
            _ => panic!("what is {word:?}?"),
        }
    }
    if words.len() == 0 && collect_only {
        let held = Dir::open(store.as_path()).expect("the store");
        let started: Vec<(i64, u32)> = read(&store, "started");
        let started = Time { s: started[0].0, ns: started[0].1 };
        let places = read(&store, "places");
        let over = Over::nothing();
        keep(&store, &collect(&facts(&held, &places, &store, started, &over), &Fs::new())?);
        return Ok(Exit::Code(0));
    }
    let argv: Vec<OsString> = words.collect();
    if !dirs.is_empty() {
        let passes: Vec<PathBuf> = passes.into_iter().map(|pass| pass.path).collect();
        let confinement = Confinement::make(&dirs, &passes, Network::Open)?;
        eprintln!("not denied: {}", confinement.not_denied().join("; "));
        let command =
            Command { argv, env: Vec::new(), linger, network: Network::Open, joins: false, keeps_before: false, max_size: None };
        return Ok(run_on(Ground::Confined(&confinement), &command, &mut |_| {})?.exit);
    }
    let request = Request {
        cwd: working_directory()?,
        own_store: None,
        store: store.clone(),
        home: std::env::var_os("HOME").map(PathBuf::from),
        also,
        passes,
        hide: Vec::new(),
        scratch: Vec::new(),
        program: argv.first().cloned().unwrap_or_default(),
        known: Vec::new(),
        tag: "20260101-000000-test".into(),
        since: recant::internals::exact_now(),
    };
    if let Some(id) = inside() {
        eprintln!("inside {id}");
        return Ok(Exit::Code(99));
    }
    let plan = Plan::make(&request)?;
    let fs = Fs::new();
    let held = Dir::open(store.as_path()).expect("the store");
    write(&store, "coverage", plan.coverage());
    for warning in plan.warnings() {
        eprintln!("warning: {warning}");
    }
    for left in ["upper", "work"] {
        fs.remove_all(held.at(left.as_bytes()))?;
    }
    let over = Over::nothing();
    let laid = plan.lay_out(&fs, &held, &[], (1, &over.sealed, None))?;
    write(&store, "places", &laid.places());
    let before = recant::internals::now();
    write(&store, "started", &[(before.s, before.ns)]);
    let ended = run(
        &laid,
        &Command { argv, env: Vec::new(), linger, network: Network::Open, joins: false, keeps_before: false, max_size: None },
        &mut |event| match event {
            Event::SettingUp | Event::InMemory(_) => {}
            Event::Lingering(names) => eprintln!("still running: {}", names.join(" ")),
            Event::Uncovered(path, why) => eprintln!("uncovered: {path}: {why}"),
            Event::NoGroups(why) => eprintln!("without further groups: {why}"),
            Event::NotFed(why) => eprintln!("input not read to its end: {why}"),
        },
    )?;
    if !ended.own_pids {
        eprintln!("without own PIDs");
    }
    let places = laid.places();
    keep(
        &store,
        &finish(
            &fs,
            ended.leaving,
            &Facts { span: Some(ended.span), ..facts(&held, &places, &store, ended.span.start(), &over) },
        )?,
    );
    Ok(ended.exit)
}

fn keep(store: &AbsPath, collected: &Collected) {
    write(store, "changes", &collected.own().list);
    write(store, "times", &collected.own().directory_times);
    write(store, "warnings", &collected.warnings);
}

fn write<T: serde::Serialize>(store: &AbsPath, name: &str, list: &[T]) {
    let lines = list.iter().map(|item| serde_json::to_string(item).expect("plain data") + "\n");
    std::fs::write(store.as_path().join(name), lines.collect::<String>()).expect("a file in the store");
}

fn read<T: serde::de::DeserializeOwned>(store: &AbsPath, name: &str) -> Vec<T> {
    let text = std::fs::read_to_string(store.as_path().join(name)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("what was written")).collect()
}

/// The steps that a run lies over.
struct Over {
    sealed: Sealed,
    net: Net,
}

impl Over {
    fn nothing() -> Self {
        Self { sealed: Sealed::default(), net: Net::empty() }
    }
}

fn facts<'a>(held: &'a Dir, places: &'a [Place], store: &'a AbsPath, started: Time, over: &'a Over) -> Facts<'a> {
    let route = Route::of(rustix::process::geteuid().as_raw());
    Facts {
        held,
        places,
        store,
        started,
        span: None,
        step: 1,
        sealed: &over.sealed,
        net: &over.net,
        numbers: Numbers { changes: 0, from: 1 },
        scratch: &[],
        looks: false,
        in_memory: false,
        cut_off: false,
        route,
    }
}
