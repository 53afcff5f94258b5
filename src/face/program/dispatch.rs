//! From a verb's arguments to its function, and what comes before and after it.

use crate::error::Error;
use crate::face::args::table::effect;
use crate::face::args::{self, AgentVerb, CheckpointVerb, SessionVerb, SnapshotVerb, Verb};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::far::served;
use crate::face::mcp::carry;
use crate::face::program::{complete, proxy};
use crate::face::review;
use crate::face::text::agent::diff::diff as diff_turn;
use crate::face::text::agent::guide::guide;
use crate::face::text::agent::hook::hook;
use crate::face::text::agent::install::install;
use crate::face::text::agent::run::run as run_agent;
use crate::face::text::agent::status::status as agent_status;
use crate::face::text::agent::turns::turns;
use crate::face::text::agent::undo::undo as undo_turns;
use crate::face::text::{
    acts, cat, checkpoint, config, decision, diff, discard, doctor, list, log, man, moving, overview, prune, recover, rewind,
    run, show, snapshot, stage, status, steps,
};
use crate::verb::confirm::take_back_overdue;
use crate::verb::error::not_started;
use crate::verb::run::cut_off;
use crate::verb::{Deed, Effect, gate};

pub fn carry_out(call: &Call, verb: Verb) -> Result<Ended, Error> {
    refuse_outside(call, &verb)?;
    if let Err(problem) = before(call, &verb) {
        return Err(not_begun(&verb, problem));
    }
    match verb {
        Verb::Run(args) => run::run(call, &args),
        Verb::Shell(args) => run::shell(call, &args),
        Verb::Doctor(args) => doctor::doctor(call, &args),
        Verb::Session { verb } => of_sessions(call, verb),
        Verb::List(args) => list::list(call, &args),
        Verb::Show(args) => show::show(call, &args),
        Verb::Discard(args) => discard::discard(call, &args),
        Verb::Steps(args) => steps::steps(call, &args),
        Verb::Diff(args) => diff::diff(call, &args),
        Verb::Review(args) => review::review(call, &args),
        Verb::Rewind(args) => rewind::rewind(call, &args),
        Verb::Fork(args) => rewind::fork(call, &args),
        Verb::Commit(args) => acts::commit(call, &args),
        Verb::Confirm(args) => acts::confirm(call, &args),
        Verb::Rollback(args) => acts::rollback(call, &args),
        Verb::Undo(args) => acts::undo(call, &args),
        Verb::Redo(args) => acts::redo(call, &args),
        Verb::Checkpoint { verb } => of_checkpoints(call, verb),
        Verb::Snapshot { verb } => of_snapshots(call, verb),
        Verb::Agent { verb } => of_agents(call, verb),
        Verb::Hook(args) => hook(call, &args),
        Verb::Mcp => carry::mcp(call),
        Verb::Prune(args) => prune::prune(call, &args),
        Verb::Recover(args) => recover::recover(call, &args),
        Verb::Cat(args) => cat::cat(call, &args),
        Verb::Status => status::status(call),
        Verb::Log(args) => log::log(call, &args),
        Verb::Await(args) => decision::decision(call, &args),
        Verb::Config => config::config(call),
        Verb::Completions(args) => complete::completions(call, &args),
        Verb::Man(args) => man::man(call, &args),
        Verb::Here => overview::here(call),
        // Carried out before there was a call.
        Verb::Far(args) => Ok(served::far(&args)),
        Verb::Proxy(args) => Ok(proxy::proxy(&args)),
    }
}

fn of_sessions(call: &Call, verb: SessionVerb) -> Result<Ended, Error> {
    match verb {
        SessionVerb::New(args) => stage::new(call, &args),
        SessionVerb::Write(args) => stage::write(call, &args),
        SessionVerb::Delete(args) => stage::delete(call, &args),
        SessionVerb::Mkdir(args) => stage::mkdir(call, &args),
        SessionVerb::Symlink(args) => stage::symlink(call, &args),
        SessionVerb::Chmod(args) => stage::chmod(call, &args),
        SessionVerb::Rename(args) => stage::rename(call, &args),
        SessionVerb::Export(args) => moving::export(call, &args),
        SessionVerb::Import(args) => moving::import(call, &args),
    }
}

fn of_checkpoints(call: &Call, verb: CheckpointVerb) -> Result<Ended, Error> {
    match verb {
        CheckpointVerb::List => checkpoint::list(call),
        CheckpointVerb::Show(args) => checkpoint::show(call, &args),
        CheckpointVerb::Verify(args) => checkpoint::verify(call, &args),
    }
}

fn of_snapshots(call: &Call, verb: SnapshotVerb) -> Result<Ended, Error> {
    match verb {
        SnapshotVerb::Create(args) => snapshot::create::create(call, &args),
        SnapshotVerb::List(args) => snapshot::list::list(call, &args),
        SnapshotVerb::Show(args) => snapshot::show::show(call, &args),
        SnapshotVerb::Diff(args) => snapshot::diff::diff(call, &args),
        SnapshotVerb::Verify(args) => snapshot::verify::verify(call, &args),
        SnapshotVerb::Restore(args) => snapshot::restore::restore(call, &args),
    }
}

fn of_agents(call: &Call, verb: AgentVerb) -> Result<Ended, Error> {
    match verb {
        AgentVerb::Turns(args) => turns(call, &args),
        AgentVerb::Diff(args) => diff_turn(call, args),
        AgentVerb::Undo(args) => undo_turns(call, &args),
        AgentVerb::Run(args) => run_agent(call, &args),
        AgentVerb::Install(args) => install(call, &args, Deed::Install),
        AgentVerb::Uninstall(args) => install(call, &args, Deed::Uninstall),
        AgentVerb::Status(args) => agent_status(call, &args),
        AgentVerb::Guide => Ok(guide(call)),
    }
}

/// Refuses, inside a run, what a person outside decides.
fn refuse_outside(call: &Call, verb: &Verb) -> Result<(), Error> {
    let key = match verb {
        Verb::Commit(args::Commit { what, .. }) | Verb::Rollback(args::Back { what, .. }) => &*what.id,
        Verb::Undo(args::Undo { id, .. }) | Verb::Redo(args::Redo { id, .. }) => id.as_deref().unwrap_or("last"),
        _ => return Ok(()),
    };
    gate::refuse_outside(call, key, matches!(verb, Verb::Commit(_)))
}

/// Prepares for a verb. If it only reads, what was cut off is only reported.
fn before(call: &Call, verb: &Verb) -> Result<(), Error> {
    match verb {
        // `recover` makes these sessions itself, as its result.
        Verb::Recover(_) if crate::capture::inside().is_none() => take_back_overdue(call),
        Verb::Confirm(args) if args.watch => Ok(()),
        _ if effect(verb) == Effect::Changes => gate::before_changes(call),
        _ if effect(verb) == Effect::Shows => cut_off::tell_all(call),
        _ => Ok(()),
    }
}

/// The error of a verb that could not begin. One that runs a command reports that the command was not started.
pub fn not_begun(verb: &Verb, problem: Error) -> Error {
    if verb.is_run() { not_started(problem) } else { problem }
}
