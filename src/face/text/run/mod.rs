//! `run`, `shell` and `agent run`: words into a command and its terms, and how it ended.

mod environment;
pub mod notice;
mod report;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::agent::{Agent, State};
use crate::capture::{Linger, Network, Pass, inside};
use crate::error::Error;
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::{absolute, named, whole};
use crate::fs::{AbsPath, interrupt};
use crate::session::Changes;
use crate::verb::run::terms::Wanted;
use crate::verb::run::{hold, in_place};
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
    let aim = match &args.session {
        Some(key) => Aim::Named(key, Duration::from_secs(args.wait.and_then(|wait| u64::try_from(wait).ok()).unwrap_or(0))),
        None => Aim::New(args.name.as_deref()),
    };
    hold(call, args, aim, Program::Command(args.command.clone()))
}

/// Runs an agent with all that a guest gets. `keeps`: the files that it keeps about itself.
///
/// # Errors
/// As of [`run`].
pub fn agent(call: &Call, args: &args::Run, agent: Agent, keeps: State) -> Result<Ended, Error> {
    // Whoever goes on with an agent means its work, not an empty session of that name.
    let aim = args.session.as_deref().map_or(Aim::New(args.name.as_deref()), Aim::There);
    hold(call, args, aim, Program::Agent { agent, argv: args.command.clone(), keeps })
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
    hold(call, &args, aim, Program::Shell { shell, history })
}

fn hold(call: &Call, args: &args::Run, aim: Aim<'_>, program: Program) -> Result<Ended, Error> {
    if let Some(id) = inside() {
        call.out.note(format_args!("this runs inside the run of session {id} already, which holds its changes"));
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
    let wanted = Wanted {
        aim,
        program,
        then,
        places: places(args).map_err(error::not_started)?,
        linger: linger(args),
        network: network(args),
        max_size: args.max_size,
        is_heard: !call.out.is_quiet(),
    };
    let ran = hold::run(call, &wanted)?;
    report::held(call, args, ran)
}

/// Runs the command in the place of recant: a run inside a run is held already. Returns only if that fails.
fn exec(args: &args::Run) -> Error {
    let (program, words) = args.command.split_first().expect("clap requires a command");
    error::not_executed(Path::new(program), &crate::fs::command(program).args(words).exec())
}

fn linger(args: &args::Run) -> Linger {
    if args.no_wait { Linger::Kill } else { args.parent.map_or(Linger::Wait, Linger::WaitWith) }
}

fn network(args: &args::Run) -> Network {
    if args.no_network { Network::None } else { Network::Open }
}

fn places(args: &args::Run) -> Result<Places, Error> {
    let pass = |path: &PathBuf| Ok(Pass { path: whole(path)?, why: "--pass".into() });
    Ok(Places {
        passes: args.pass.iter().map(pass).collect::<Result<_, Error>>()?,
        usual: usual_passes(),
        hide: args.hide.iter().map(|path| whole(path)).collect::<Result<_, _>>()?,
        scratch: scratch(&args.scratch)?,
    })
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
        linger: if args.no_wait { Linger::Kill } else { Linger::Wait },
        network: network(args),
    };
    let ran = in_place::run(call, &wanted)?;
    report::real(call, ran)
}

/// Refuses options of a run that holds its changes, with the reason and the alternative.
fn refuse_what_holds(args: &args::Run) -> Result<(), Error> {
    const AT_ONCE: &str = "what it changes is on the tree at once";
    let refused = [
        (args.session.is_some(), "--session", "nothing is held that it could go on from", "it makes a session of its own"),
        (args.commit, "--commit", AT_ONCE, "leave it away: its session is committed already"),
        (args.discard, "--discard", AT_ONCE, "recant rollback last takes it back"),
        (!args.hide.is_empty(), "--hide", "Landlock denies writing here, and hides nothing", "run without --in hides"),
        (!args.scratch.is_empty(), "--scratch", AT_ONCE, "--pass PATH leaves a place out of the session"),
        (
            args.max_size.is_some(),
            "--max-size",
            "there is no one place whose growth tells what it wrote",
            "a limit for each single file is ulimit -f",
        ),
    ];
    let Some((_, option, why, remedy)) = refused.into_iter().find(|(is_asked, ..)| *is_asked) else { return Ok(()) };
    let problem = Error::usage(format!("{option} does not work with --in: {why}"));
    Err(problem.with_state("the command was not started; nothing was changed").with_remedy(remedy))
}
