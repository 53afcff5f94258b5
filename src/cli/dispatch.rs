//! From a verb's arguments to its function, and what comes before and after it.

use super::args::{self, AgentVerb, CheckpointVerb, SessionVerb, SnapshotVerb, Verb};
use super::call::Call;
use super::ended::Ended;
use super::out::Out;
use super::table::{Effects, effects, is_of_store};
use super::{
    agent_run, agents, apply, bare, cat, checkpoint, complete, config, confirm, cut_runs, diff, discard, doctor, far, list, log,
};
use super::{
    manual, mcp, moving, parts, prune_all, recover, review, rewind, run, show, snapshot, snapshot_diff, snapshot_restore,
};
use super::{snapshot_run, snapshot_verify, stage, status, steps, undo};
use crate::capture::inside::capture;
use crate::error::{Error, command};

pub fn carry_out(call: &Call, verb: Verb) -> Result<Ended, Error> {
    refuse_outside(call, &verb)?;
    if let Err(problem) = before(call, &verb) {
        return not_begun(&call.out, &verb, call.with_remedy(problem));
    }
    match verb {
        Verb::Run(args) if !args.inside.is_empty() => snapshot_run::run_in(call, &args),
        Verb::Run(args) => run::run(call, &args),
        Verb::Shell(args) => run::shell(call, &args),
        Verb::Doctor(args) => doctor::doctor(call, &args),
        Verb::Session { verb } => match verb {
            SessionVerb::New(args) => stage::new(call, &args),
            SessionVerb::Write(args) => stage::write(call, &args),
            SessionVerb::Delete(args) => stage::delete(call, &args),
            SessionVerb::Mkdir(args) => stage::mkdir(call, &args),
            SessionVerb::Symlink(args) => stage::symlink(call, &args),
            SessionVerb::Chmod(args) => stage::chmod(call, &args),
            SessionVerb::Rename(args) => stage::rename(call, &args),
            SessionVerb::Export(args) => moving::export(call, &args),
            SessionVerb::Import(args) => moving::import(call, &args),
        },
        Verb::List(args) => list::list(call, &args),
        Verb::Show(args) => show::show(call, &args),
        Verb::Discard(args) => discard::discard(call, &args),
        Verb::Steps(args) => steps::steps(call, &args),
        Verb::Diff(args) => diff::diff(call, &args),
        Verb::Review(args) => review::review(call, &args, carry_out),
        Verb::Rewind(args) => rewind::rewind(call, &args),
        Verb::Fork(args) => rewind::fork(call, &args),
        Verb::Commit(args) => parts::commit::commit(call, &args),
        Verb::Confirm(args) => confirm::confirm(call, &args, apply::take_back),
        Verb::Rollback(args) => parts::rollback::rollback(call, &args),
        Verb::Undo(args) => undo::undo(call, &args),
        Verb::Redo(args) => undo::redo(call, &args),
        Verb::Checkpoint { verb } => match verb {
            CheckpointVerb::List => checkpoint::list(call),
            CheckpointVerb::Show(args) => checkpoint::show(call, &args),
            CheckpointVerb::Verify(args) => checkpoint::check(call, &args),
        },
        Verb::Snapshot { verb } => match verb {
            SnapshotVerb::Create(args) => snapshot::create(call, &args),
            SnapshotVerb::List(args) => snapshot::list(call, &args),
            SnapshotVerb::Show(args) => snapshot::show(call, &args),
            SnapshotVerb::Diff(args) => snapshot_diff::diff(call, &args),
            SnapshotVerb::Verify(args) => snapshot_verify::verify(call, &args),
            SnapshotVerb::Restore(args) => snapshot_restore::restore(call, &args),
        },
        Verb::Agent { verb } => match verb {
            AgentVerb::Turns(args) => agents::turns::turns(call, &args),
            AgentVerb::Diff(args) => agents::turns::diff(call, args),
            AgentVerb::Undo(args) => agents::undo::undo(call, &args),
            AgentVerb::Run(args) => agent_run::run(call, &args),
            AgentVerb::Install(args) => agents::install(call, &args),
            AgentVerb::Uninstall(args) => agents::uninstall(call, &args),
            AgentVerb::Status(args) => agents::status(call, &args),
            AgentVerb::Guide => agents::guide(call),
        },
        Verb::Hook(args) => agents::hook::hook(call, &args),
        Verb::Mcp => mcp::mcp(call),
        Verb::Prune(args) => prune_all::prune(call, &args),
        Verb::Recover(args) => recover::recover(call, &args),
        Verb::Cat(args) => cat::cat(call, &args),
        Verb::Status(args) => status::status(call, &args),
        Verb::Log(args) => log::log(call, &args),
        Verb::Config => config::config(call),
        Verb::Completions(args) => complete::completions(call, &args),
        Verb::Man(args) => manual::man(call, &args),
        Verb::Here => bare::here(call),
        // Carried out before there was a call.
        Verb::Far(args) => Ok(far::far(&args)),
    }
}

/// Refuses, inside a run, what a person outside decides. What a held agent undid in its own store it may roll back there: that is held,
/// too.
pub fn refuse_outside(call: &Call, verb: &Verb) -> Result<(), Error> {
    let Some(inside) = capture() else { return Ok(()) };
    let key = match verb {
        Verb::Commit(args::Commit { what, .. }) | Verb::Rollback(args::Back { what, .. }) => &*what.id,
        Verb::Undo(args::Undo { id, .. }) | Verb::Redo(args::Redo { id, .. }) => id.as_deref().unwrap_or("last"),
        _ => return Ok(()),
    };
    let own = if inside.store.is_some() { call.store()? } else { None };
    let is_own = |key: &str| match own {
        Some(store) if key == "last" => store.headers().is_ok_and(|(headers, _)| !headers.is_empty()),
        Some(store) => store.find(key, |_| true).is_ok(),
        None => false,
    };
    if !matches!(verb, Verb::Commit(_)) && is_own(key) {
        return Ok(());
    }
    let id = &inside.session;
    let message = format!("this is inside the run of session {id}, where nothing reaches the real tree");
    let tail = id.rsplit('-').next().unwrap_or(id);
    let remedy = format!("the person outside does that: {}", command(format_args!("review {tail}")));
    Err(Error::refused(message).with_remedy(remedy))
}

/// Prepares for a verb. If it changes something, runs of `run --in` that were cut off get their sessions, and commits that nobody
/// confirmed in time are rolled back. If it only reads, both are only reported.
pub fn before(call: &Call, verb: &Verb) -> Result<(), Error> {
    if effects(verb) == Effects::Some
        && !matches!(verb, Verb::Confirm(args) if args.watch)
        && crate::capture::inside::inside().is_none()
    {
        // `recover` makes these sessions itself, as its result.
        if !matches!(verb, Verb::Recover(_)) {
            cut_runs::recover_before(call)?;
        }
        confirm::take_back_overdue(call, apply::take_back)?;
    } else if is_of_store(verb) {
        cut_runs::say_all(call)?;
    }
    Ok(())
}

/// The end of a verb that could not begin. One that runs a command reports that the command was not started.
pub fn not_begun(out: &Out, verb: &Verb, problem: Error) -> Result<Ended, Error> {
    if verb.is_run() { Ok(run::not_started(out, problem)) } else { Err(problem) }
}
