//! commit, rollback and redo on several machines as one act: made ready on all of them ([`gate`]), done where all can, taken back where one
//! fails ([`back`]), and told ([`told`]).
//!
//! Each machine carries out the verb with `--gate` ([`crate::cli::gate`]): it says when it is ready, and waits for the word. What is true of a
//! machine at the end is told by itself, or, where it is lost, by its own journal: it is asked once more, and else named.

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
use crate::tree::digest::Digest;

/// What a call has done on all machines or on none, or asks whether it could be.
pub struct Together {
    act: Act,
    /// What goes to the machines that lack it.
    sendable: Option<Id>,
    /// It asks only: each machine does so by itself.
    pub is_dry_run: bool,
}

impl Together {
    /// Of a call, if it is one; which session it names is told here. `targets` are at least one.
    pub fn of(call: &Call, cli: &Cli, targets: &[Target]) -> Result<Option<Self>, Problem> {
        let (verb, what) = match cli.verb() {
            Verb::Commit(args) => (job::Verb::Commit, &args.what),
            Verb::Rollback(args) | Verb::Undo(Undo(args)) => (job::Verb::Rollback, &args.what),
            Verb::Redo(args) => (job::Verb::Redo, &args.back.what),
            _ => return Ok(None),
        };
        let here = local(call, &what.id, verb)?;
        if here.is_none() && what.id == "last" {
            // Each machine has a last one of its own.
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

    /// Has all `targets` carry it out. `blank` is a request without words for each.
    pub fn carry_out(&self, call: &Call, ways: &Ways, targets: &[Target], blank: &[Request]) -> Result<Ended, Problem> {
        let machines = Machines { call, ways, targets, blank, act: &self.act };
        let mut rows = machines.at_gate(self.sendable.as_ref())?;
        machines.take_back(&mut rows);
        machines.tidy(&rows);
        machines.say(&rows)
    }

    /// The words of a dry run, with the session that is meant.
    pub fn asking(&self, words: &[OsString]) -> Vec<OsString> {
        let brought = self.sendable.is_some().then(|| OsString::from("--brought"));
        let mut asking = words.to_vec();
        // Options stand before what may only be paths.
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        asking.splice(at..at, self.act.meant().chain(brought));
        asking
    }
}

/// The session of this side.
struct Here {
    id: Id,
    /// It goes to machines that lack it.
    is_sendable: bool,
    /// What it puts on the tree: a machine that has it by its id may have another state of it.
    mark: Option<Digest>,
}

/// The session of this side, where it is here.
fn local(call: &Call, key: &str, verb: job::Verb) -> Result<Option<Here>, Problem> {
    let Some(store) = call.store()? else { return Ok(None) };
    let found = if key == "last" {
        Ok(collect::newest(call, store)?)
    } else {
        store.find(key, |header| Want::from(verb).fits(store, header))
    };
    let id = match found {
        Ok(id) => id,
        // The machines know it, or say that they do not.
        Err(error) if error.is_unknown() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // What a run left that was cut off is of it, too; one that is under way is refused.
    let (_, session) = call.session(Some(id.as_str()))?;
    // Back and forth goes what each machine has.
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

/// The options and paths of the call, as each machine gets them.
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
        Verb::Redo(Redo { back: Back { what, force, .. }, on_limit }) => {
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
