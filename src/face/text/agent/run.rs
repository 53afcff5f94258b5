//! `agent run`: a whole agent, held.

use crate::agent::State;
use crate::capture::inside;
use crate::error::Error;
use crate::face::args::{self, AgentRun};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::{absolute, cwd};
use crate::face::surroundings::{name_of, surroundings};
use crate::face::text::run;
use crate::verb::error::not_started;
use crate::verb::run::agent_guest::free_name;

/// Runs an agent with its file changes held, and exits as it does.
///
/// # Errors
/// As of a run.
pub fn run(call: &Call, args: &AgentRun) -> Result<Ended, Error> {
    let is_inside = inside().is_some();
    let word = args.agent.word();
    // Before a session is announced that would be gone at once.
    if !is_inside && is_missing(word) {
        return Err(not_started(crate::capture::not_found(word)));
    }
    let name = match (&args.name, &args.session) {
        (None, None) if !is_inside => {
            let name = || free_name(call.store()?, name_of(args.agent)?);
            Some(name().map_err(not_started)?)
        }
        (name, _) => name.clone(),
    };
    let keeps = || Ok(State::of(args.agent, &surroundings()?, &absolute(&cwd()?)?));
    run::agent(call, &run_args(args, name), args.agent, keeps().map_err(not_started)?)
}

/// True if no directory of PATH has a program of this name. Without PATH, the system's own decides.
fn is_missing(name: &str) -> bool {
    let path = std::env::var_os("PATH");
    path.is_some_and(|path| !std::env::split_paths(&path).any(|directory| directory.join(name).exists()))
}

/// The arguments of the run that it is held by.
fn run_args(args: &AgentRun, name: Option<String>) -> args::Run {
    let command = std::iter::once(args.agent.word().into()).chain(args.args.iter().cloned()).collect();
    let AgentRun { session, pass, hide, open, network, .. } = args;
    args::Run {
        name,
        session: session.clone(),
        pass: pass.clone(),
        hide: hide.clone(),
        closed: true,
        open: open.clone(),
        network: network.clone(),
        no_wait: true,
        command,
        ..args::Run::default()
    }
}
