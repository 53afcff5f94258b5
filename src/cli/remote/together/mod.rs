//! commit, rollback and redo on several machines as one act: made ready on all of them ([`gate`]), done where all can, taken back where one
//! fails ([`back`]), and told ([`told`]).
//!
//! Each machine carries out the verb with `--gate` ([`crate::cli::gate`]): it says when it is ready, and waits for the word. What is true of a
//! machine at the end is told by itself, or, where it is lost, by its own journal: it is asked once more, and else named.

mod act;
mod back;
mod gate;
mod machine;
mod told;

use std::ffi::OsString;

use act::{Act, Machines};

use super::ways::Ways;
use crate::cli::args::{Back, Cli, Commit, OnLimit, Verb};
use crate::cli::collect;
use crate::cli::problem::Problem;
use crate::cli::{Call, Ended};
use crate::engine::job;
use crate::error::Kind;
use crate::moving;
use crate::remote::host::Target;
use crate::remote::request::Request;
use crate::session::header::Status;
use crate::session::id::Id;
use crate::tree::digest::Digest;

/// The verb of a call, if it is one that is done on all machines or on none.
pub fn concerns(verb: &Verb) -> bool {
    match verb {
        Verb::Commit(args) => !args.what.dry_run && !args.what.gate,
        Verb::Rollback(args) | Verb::Redo(args) => !args.what.dry_run && !args.what.gate,
        _ => false,
    }
}

/// Has all `targets` carry out the call's commit, rollback or redo. `blank` is a request without words for each.
pub fn carry_out(call: &Call, cli: &Cli, ways: &Ways, targets: &[Target], blank: &[Request]) -> Result<Ended, Problem> {
    let (verb, key) = match &cli.verb {
        Verb::Commit(args) => (job::Verb::Commit, &args.what.id),
        Verb::Rollback(args) => (job::Verb::Rollback, &args.what.id),
        Verb::Redo(args) => (job::Verb::Redo, &args.what.id),
        _ => return Err(Problem::new(Kind::Usage, "only commit, rollback and redo are done on several machines as one")),
    };
    let here = local(call, key, verb)?;
    if here.is_none() && key == "last" {
        // Each machine has a last one of its own.
        return Err(Problem::refused("'last' of this machine is meant, and there is no session here")
            .remedy(format!("name it: recant -H {} list", targets[0].name)));
    }
    let act = Act {
        verb,
        key: here.as_ref().map_or_else(|| key.clone(), |here| here.id.to_string()),
        mark: here.as_ref().and_then(|here| here.mark),
        words: words(cli),
        store: cli.global.store.as_ref().map(|store| store.as_os_str().to_owned()),
    };
    let sendable = here.filter(|here| here.is_sendable).map(|here| here.id);
    let machines = Machines { call, ways, targets, blank, act: &act };
    let mut rows = machines.at_gate(sendable.as_ref())?;
    machines.take_back(&mut rows);
    machines.tidy(&mut rows);
    machines.say(&rows)
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
    let found = if key == "last" { Ok(collect::newest(call, store)?) } else { store.find(key) };
    let id = match found {
        Ok(id) => id,
        // The machines know it, or say that they do not.
        Err(crate::session::Error::Unknown { .. } | crate::session::Error::NotNow { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let session = store.session(&id)?;
    // Back and forth goes what each machine has.
    let (is_sendable, mark) = match (verb, session.header.status()) {
        (job::Verb::Commit, Status::Pending | Status::RolledBack) => (true, moving::mark(&session)?),
        (job::Verb::Commit, Status::Committed | Status::Partial) => (false, moving::mark(&session)?),
        _ => (false, None),
    };
    Ok(Some(Here { id, is_sendable, mark }))
}

/// The options and paths of the call, as each machine gets them.
fn words(cli: &Cli) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut flag = |on: bool, word: &str| words.extend(on.then(|| OsString::from(word)));
    let paths = match &cli.verb {
        Verb::Commit(Commit { what, force, on_limit, accept_unsynced, strict, confirm_within, .. }) => {
            flag(*force, "--force");
            flag(*accept_unsynced, "--accept-unsynced");
            flag(*strict, "--strict");
            let policy = on_limit.map(|policy| match policy {
                OnLimit::Full => "--on-limit=full",
                OnLimit::Partial => "--on-limit=partial",
                OnLimit::Refuse => "--on-limit=refuse",
            });
            flag(policy.is_some(), policy.unwrap_or_default());
            let within = confirm_within.map(|seconds| format!("--confirm-within={seconds}s"));
            flag(within.is_some(), within.as_deref().unwrap_or_default());
            &what.paths
        }
        Verb::Rollback(Back { what, force, .. }) | Verb::Redo(Back { what, force, .. }) => {
            flag(*force, "--force");
            &what.paths
        }
        _ => return words,
    };
    words.push("--".into());
    words.extend(paths.iter().map(OsString::from));
    words
}
