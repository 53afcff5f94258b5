//! `agent run`: a whole agent, held.

use super::args::{self, AgentRun};
use super::problem::Problem;
use super::run::{held_agent, not_started, nothing};
use super::{Call, Ended, guest};

/// Runs an agent with its file changes held, and exits as it does.
///
/// # Errors
/// As of a run.
pub fn run(call: &Call, args: &AgentRun) -> Result<Ended, Problem> {
    let name = match (&args.name, &args.session) {
        (None, None) if crate::capture::inside::inside().is_none() => {
            match call.store().and_then(|store| guest::name(store, args.agent)) {
                Ok(name) => Some(name),
                Err(problem) => return Ok(not_started(&call.out, problem)),
            }
        }
        (name, _) => name.clone(),
    };
    held_agent(call, &run_args(args, name), args.agent)
}

/// The arguments of the run that it is held by.
fn run_args(args: &AgentRun, name: Option<String>) -> args::Run {
    let command = std::iter::once(args.agent.word().into()).chain(args.args.iter().cloned()).collect();
    let AgentRun { session, pass, hide, .. } = args;
    args::Run { name, session: session.clone(), pass: pass.clone(), hide: hide.clone(), no_wait: true, ..nothing(command) }
}
