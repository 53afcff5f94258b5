//! commit, rollback and redo on several machines as one act: made ready on all ([`gate`]), done if all are ready, rolled back if one
//! fails ([`back`]), and reported ([`told`]).
//!
//! Each machine carries out the verb with `--gate` ([`crate::cli::gate`]): it reports ready, and waits for the word to go on. At the end
//! its own report counts. A machine that was lost is asked again, and its journal tells; one that cannot be reached is named.

mod act;
mod back;
mod details;
mod gate;
mod machine;
mod told;

use std::ffi::OsString;

use act::{Act, Machines};

use super::ways::Ways;
use crate::cli::args::{Back, Cli, Commit, OnLimit, Redo, Undo, Verb};
use crate::cli::collect;
use crate::cli::problem::Problem;
use crate::cli::which::Want;
use crate::cli::{Call, Ended};
use crate::engine::job;
use crate::moving;
use crate::remote::host::Target;
use crate::remote::request::Request;
use crate::session::header::Status;
use crate::session::id::Id;
use crate::tree::hash::Hash;

/// An act on all machines or on none, or the question if it could be done.
pub struct Together {
    act: Act,
    /// The session to send to machines that lack it.
    sendable: Option<Id>,
    /// True if it only asks: each machine does so by itself.
    pub is_dry_run: bool,
}

impl Together {
    /// Makes the act of a call, if its verb is one. Looks up its session here. `targets` has at least one.
    pub fn of(call: &Call, cli: &Cli, targets: &[Target]) -> Result<Option<Self>, Problem> {
        let (verb, what) = match cli.verb() {
            Verb::Commit(args) => (job::Verb::Commit, &args.what),
            Verb::Rollback(args) | Verb::Undo(Undo(args)) => (job::Verb::Rollback, &args.what),
            Verb::Redo(args) => (job::Verb::Redo, &args.what),
            _ => return Ok(None),
        };
        let here = local(call, &what.id, verb)?;
        if here.is_none() && what.id == "last" {
            // The newest session differs between machines.
            return Err(Problem::refused("'last' of this machine is meant, and there is no session here")
                .remedy(format!("name it: recant -H {} list", targets[0].name)));
        }
        let act = Act {
            verb,
            key: here.as_ref().map_or_else(|| what.id.clone(), |here| here.id.to_string()),
            called: here.as_ref().map(|here| if what.id == "last" { here.id.to_string() } else { what.id.clone() }),
            mark: here.as_ref().and_then(|here| here.mark),
            words: words(cli),
            store: cli.global.store.as_ref().map(|store| store.as_os_str().to_owned()),
        };
        let sendable = here.filter(|here| here.is_sendable).map(|here| here.id);
        Ok(Some(Self { act, sendable, is_dry_run: what.dry_run }))
    }

    /// Carries out the act on all `targets`. `blank`: a request without words for each.
    pub fn carry_out(&self, call: &Call, ways: &Ways, targets: &[Target], blank: &[Request]) -> Result<Ended, Problem> {
        let machines = Machines { call, ways, targets, blank, act: &self.act };
        let mut rows = machines.at_gate(self.sendable.as_ref())?;
        machines.take_back(&mut rows);
        machines.tidy(&rows);
        machines.say(&rows)
    }

    /// The words of a dry run, with options that tell which session is meant.
    pub fn asking(&self, words: &[OsString]) -> Vec<OsString> {
        let brought = self.sendable.is_some().then(|| OsString::from("--brought"));
        let mut asking = words.to_vec();
        // Options go before `--`, after which all are paths.
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        asking.splice(at..at, self.act.meant().chain(brought));
        asking
    }
}

/// This side's session.
struct Here {
    id: Id,
    /// True if it is sent to machines that lack it.
    is_sendable: bool,
    /// The mark of what it puts on the tree: a machine may have another state of the session with this id.
    mark: Option<Hash>,
}

/// Finds the session on this side; `None` if it is not here.
fn local(call: &Call, key: &str, verb: job::Verb) -> Result<Option<Here>, Problem> {
    let Some(store) = call.store()? else { return Ok(None) };
    let found = if key == "last" {
        Ok(collect::newest(call, store)?)
    } else {
        store.find(key, |header| Want::from(verb).fits(store, header))
    };
    let id = match found {
        Ok(id) => id,
        // The machines know it, or report that they do not.
        Err(error) if error.is_unknown() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Changes of a run that was cut off are collected first; a run under way is refused.
    let (_, session) = call.session(Some(id.as_str()))?;
    // A rollback or redo works with what each machine has: nothing is sent or compared.
    let (is_sendable, mark) = match (verb, session.header.status()) {
        (job::Verb::Commit, Status::Pending | Status::RolledBack) => (true, moving::mark(&session)?),
        (job::Verb::Commit, Status::Committed | Status::Partial) => (false, moving::mark(&session)?),
        _ => (false, None),
    };
    Ok(Some(Here { id, is_sendable, mark }))
}

fn policy(on_limit: OnLimit) -> &'static str {
    match on_limit {
        OnLimit::Full => "--on-limit=full",
        OnLimit::Partial => "--on-limit=partial",
        OnLimit::Refuse => "--on-limit=refuse",
    }
}

/// The options and paths of the call, for each machine.
fn words(cli: &Cli) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut flag = |on: bool, word: &str| words.extend(on.then(|| OsString::from(word)));
    let paths = match cli.verb() {
        Verb::Commit(Commit { what, force, on_limit, accept_unsynced, strict, confirm_within, .. }) => {
            flag(*force, "--force");
            flag(*accept_unsynced, "--accept-unsynced");
            flag(*strict, "--strict");
            flag(on_limit.is_some(), on_limit.map_or("", policy));
            let within = confirm_within.map(|seconds| format!("--confirm-within={seconds}s"));
            flag(within.is_some(), within.as_deref().unwrap_or_default());
            &what.paths
        }
        Verb::Rollback(Back { what, force, .. }) | Verb::Undo(Undo(Back { what, force, .. })) => {
            flag(*force, "--force");
            &what.paths
        }
        Verb::Redo(Redo { what, force, on_limit, .. }) => {
            flag(*force, "--force");
            flag(on_limit.is_some(), on_limit.map_or("", policy));
            &what.paths
        }
        _ => return words,
    };
    words.push("--".into());
    words.extend(paths.iter().map(OsString::from));
    words
}
