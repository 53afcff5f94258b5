//! `run`, `shell` and `agent run`: words into a command and its terms, and how it ended.

mod environment;
pub mod notice;
mod report;
pub mod service;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::agent::{Agent, State};
use crate::capture::{Linger, Loopback, Network, Pass, Side, detach, inside};
use crate::error::Error;
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::{absolute, cwd, named, whole};
use crate::face::surroundings::surroundings;
use crate::fs::{AbsPath, interrupt};
use crate::session::Changes;
use crate::settings::{self, Entry};
use crate::verb::run::service::Service;
use crate::verb::run::terms::{Closing, Wanted};
use crate::verb::run::{hold, in_place, stop};
use crate::verb::snapshot::directory::directory;
use crate::verb::{Aim, Places, Program, Then, error};

pub use environment::usual_passes;

/// Runs a command with its file changes held, or with `--in` on the real tree, and exits as it does.
///
/// # Errors
/// It was not started, or not all of its end could be recorded.
pub fn run(call: &Call, args: &args::Run) -> Result<Ended, Error> {
    if !args.inside.is_empty() {
        return in_place(call, args);
    }
    if let (Some(key), Some(name)) = (&args.session, &args.stop) {
        return end_service(call, key, name);
    }
    let aim = match &args.session {
        Some(key) => Aim::Named(key, Duration::from_secs(args.wait.and_then(|wait| u64::try_from(wait).ok()).unwrap_or(0))),
        None => Aim::New(args.name.as_deref()),
    };
    let program = Program::Command(args.command.clone());
    match &args.serve {
        Some(name) => serve(call, args, (aim, program), name),
        None => hold(call, args, aim, program, None),
    }
}

/// Runs an agent with all that a guest gets. `keeps`: the files that it keeps about itself.
///
/// # Errors
/// As of [`run`].
pub fn agent(call: &Call, args: &args::Run, agent: Agent, keeps: State) -> Result<Ended, Error> {
    // Whoever goes on with an agent means its work, not an empty session of that name.
    let aim = args.session.as_deref().map_or(Aim::New(args.name.as_deref()), Aim::There);
    hold(call, args, aim, Program::Agent { agent, argv: args.command.clone(), keeps }, None)
}

/// Runs the user's shell in a session.
///
/// # Errors
/// As of [`run`].
pub fn shell(call: &Call, args: &args::Shell) -> Result<Ended, Error> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let aim = match (&args.id, &args.session) {
        (Some(key), _) => Aim::There(key),
        (None, Some(key)) => Aim::Named(key, Duration::ZERO),
        (None, None) => Aim::New(None),
    };
    let history = environment::histories(&shell);
    let args = args::Run { command: vec![shell.clone()], ..args::Run::default() };
    hold(call, &args, aim, Program::Shell { shell, history }, None)
}

/// Begins a service, and returns once it runs.
fn serve(call: &Call, args: &args::Run, (aim, program): (Aim<'_>, Program), name: &str) -> Result<Ended, Error> {
    if let Some(id) = inside() {
        return Err(error::serves_inside(&id));
    }
    match detach().map_err(error::not_started)? {
        Side::Caller(starting) => {
            let ended = starting.wait().map_err(|error| error::not_started(error.into()))?;
            // The other process has said all.
            Ok(ended.map_or(Ended::Done, Ended::Command))
        }
        Side::Service(launch) => hold(call, args, aim, program, Some(&Service::new(name, launch))),
    }
}

/// Ends a service.
fn end_service(call: &Call, key: &str, name: &str) -> Result<Ended, Error> {
    let stopped = stop::stop(call, key, name)?;
    if call.out.is_text() {
        call.out.line(service::said(&stopped));
    } else {
        call.out.document(&stopped);
    }
    Ok(Ended::Done)
}

fn hold(call: &Call, args: &args::Run, aim: Aim<'_>, program: Program, service: Option<&Service>) -> Result<Ended, Error> {
    if let Some(id) = inside() {
        call.out.note(format_args!("already inside the run of session {id}, which holds its changes"));
        return Err(exec(args));
    }
    if let Some(parent) = args.parent.filter(|parent| !interrupt::end_with(*parent, Signal::TERM)) {
        return Err(error::not_parent(parent));
    }
    let then = match args {
        args::Run { commit: true, .. } => Then::Commit,
        args::Run { discard: true, .. } => Then::Discard,
        _ => Then::Hold,
    };
    let own = match &program {
        Program::Agent { agent, .. } => Some(*agent),
        Program::Command(_) | Program::Shell { .. } => None,
    };
    let hosts = hosts(call, args, own).map_err(error::not_started)?;
    let network = network(args, hosts.as_deref());
    let wanted = Wanted {
        aim,
        program,
        label: args.label.as_deref(),
        then,
        places: places(args, (own, network)).map_err(error::not_started)?,
        linger: linger(args),
        network,
        hosts: hosts.as_deref().unwrap_or_default(),
        max_size: args.max_size,
        service,
        is_heard: !call.out.is_quiet(),
    };
    let ran = hold::run(call, &wanted)?;
    match service {
        // Its caller is gone.
        Some(service) if service.has_served() => Ok(Ended::Command(ran.ending.status())),
        Some(service) => {
            service::say_end(&call.out, service, ran.ending);
            report::held(call, args, ran)
        }
        None => report::held(call, args, ran),
    }
}

/// Runs the command in the place of recant: a run inside a run is held already. Returns only if that fails.
fn exec(args: &args::Run) -> Error {
    let (program, words) = args.command.split_first().expect("clap requires a command");
    error::not_executed(Path::new(program), &crate::fs::command(program).args(words).exec())
}

fn linger(args: &args::Run) -> Linger {
    match (args.no_wait, args.wait_background) {
        (true, _) => Linger::Kill,
        (false, Some(seconds)) => Linger::AtMost(Duration::from_secs(seconds.unsigned_abs())),
        (false, None) => args.parent.map_or(Linger::Wait, Linger::WaitWith),
    }
}

/// The hosts that a command may reach; `None` if none are listed. `own`: the agent that it is, which needs its model's in any case.
fn hosts(call: &Call, args: &args::Run, own: Option<Agent>) -> Result<Option<Vec<Entry>>, Error> {
    let set = own.and_then(|_| call.config.agent_network.value.clone());
    if set.is_none() && args.network.is_empty() {
        return Ok(None);
    }
    let model = own.map_or_else(|| Ok(Vec::new()), |agent| Ok::<_, Error>(agent.model_hosts(&surroundings()?)))?;
    Ok(Some([args.network.clone(), set.unwrap_or_default(), model].concat()))
}

fn network(args: &args::Run, hosts: Option<&[Entry]>) -> Network {
    match hosts {
        Some(hosts) if hosts.iter().any(Entry::is_loopback) => Network::Proxied(Loopback::Machine),
        Some(_) => Network::Proxied(Loopback::Own),
        None if args.no_network => Network::None,
        None => Network::Open,
    }
}

/// The places of a run. `own`: the agent that it is of.
fn places(args: &args::Run, (own, network): (Option<Agent>, Network)) -> Result<Places, Error> {
    let pass = |path: &PathBuf| Ok(Pass { path: whole(path)?, why: "--pass".into() });
    Ok(Places {
        passes: args.pass.iter().map(pass).collect::<Result<_, Error>>()?,
        usual: usual_passes(network),
        hide: wholes(&args.hide)?,
        closed: args.closed.then(|| closing(args, own)).transpose()?,
        scratch: scratch(&args.scratch)?,
    })
}

fn closing(args: &args::Run, own: Option<Agent>) -> Result<Closing, Error> {
    let (here, cwd) = (surroundings()?, absolute(&cwd()?)?);
    let others = Agent::ALL.iter().filter(|agent| Some(**agent) != own);
    let of_agents = others.flat_map(|agent| State::of(*agent, &here, &cwd).credentials).collect();
    let moved = settings::moved(cwd.as_path(), |variable| std::env::var_os(variable));
    Ok(Closing { open: wholes(&args.open)?, of_agents, moved })
}

fn wholes(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    paths.iter().map(|path| whole(path)).collect()
}

/// The places whose changes are dropped. A link means also the place it leads to, as a `target` on another disk.
fn scratch(paths: &[PathBuf]) -> Result<Vec<AbsPath>, Error> {
    let mut places = Vec::new();
    for path in paths {
        let place = named(path, &Changes::default())?;
        // A path with nothing there is no link.
        if let Ok(led_to) = place.as_path().canonicalize() {
            places.extend(Some(absolute(&led_to)?).filter(|led_to| *led_to != place));
        }
        places.push(place);
    }
    Ok(places)
}

/// Runs a command on the real tree.
fn in_place(call: &Call, args: &args::Run) -> Result<Ended, Error> {
    refuse_what_holds(args)?;
    let directories = args.inside.iter().map(|dir| directory(Some(dir))).collect::<Result<_, _>>();
    let wanted = in_place::Wanted {
        argv: args.command.clone(),
        name: args.name.as_deref(),
        directories: directories.map_err(error::not_started)?,
        passes: args.pass.clone(),
        linger: linger(args),
        network: network(args, None),
    };
    let ran = in_place::run(call, &wanted)?;
    report::real(call, ran)
}

/// Refuses options of a run that holds its changes, with the reason and the alternative.
fn refuse_what_holds(args: &args::Run) -> Result<(), Error> {
    const AT_ONCE: &str = "what it changes is on the tree at once";
    let refused = [
        (args.session.is_some(), "--session", "nothing is held that it could go on from", "it always makes a new session"),
        (args.commit, "--commit", AT_ONCE, "leave it out: its session is committed already"),
        (args.discard, "--discard", AT_ONCE, "recant rollback last takes it back"),
        (!args.hide.is_empty(), "--hide", "Landlock denies writing here, and hides nothing", "run without --in hides"),
        (args.closed, "--closed", "Landlock denies writing here, and hides nothing", "run without --in closes"),
        (!args.scratch.is_empty(), "--scratch", AT_ONCE, "--pass PATH leaves a place out of the session"),
        (!args.network.is_empty(), "--network", "Landlock knows ports, but no hosts", "run without --in, or with --no-network"),
        (
            args.max_size.is_some(),
            "--max-size",
            "its writes are not in one place that could be measured",
            "ulimit -f limits each single file",
        ),
    ];
    let Some((_, option, why, remedy)) = refused.into_iter().find(|(is_asked, ..)| *is_asked) else { return Ok(()) };
    let problem = Error::usage(format!("{option} does not work with --in: {why}"));
    Err(problem.with_state("the command was not started; nothing was changed").with_remedy(remedy))
}
