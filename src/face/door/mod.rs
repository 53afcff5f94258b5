//! The door of a run: inside, verbs that look at sessions are carried out by a recant outside, which sees them, and are shown inside.
//!
//! [`inside`] connects to the socket. The recant that the run belongs to takes the connection, and starts `far --held` for it
//! (`verb/run/door.rs`). That speaks as with a machine (docs/remote.md), but carries out only verbs that look ([`checked`]). Whoever asks may be
//! the command, which may send anything.

pub mod inside;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use clap::Parser;

use super::call_end::Ended;
use crate::compare::Names;
use crate::error::Error;
use crate::face::args::{self, Cli, Global, Verb};
use crate::face::errors;
use crate::remote::{Down, Request};
use crate::session::Id;

/// Lets the connection that standard input is be silent from here on: the request has come.
pub fn has_asked() {
    if let Ok(stdin) = std::io::stdin().as_fd().try_clone_to_owned() {
        // It only ends a look that takes long.
        let _kept = UnixStream::from(stdin).set_read_timeout(None);
    }
}

/// The part of sessions that a process in a run may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    /// False if the run hides files, and what is seen may have what they hold, or held.
    pub content: bool,
    /// The session that is seen, with its parts; `None`: all.
    pub only: Option<Id>,
}

/// The request of a process in a run, if it is a look. It brings neither a store nor variables.
///
/// # Errors
/// Anything else.
pub fn checked(request: Request, may_see: &Looks) -> Result<Request, Error> {
    let words = request.words().ok_or_else(refused)?;
    let words = [OsString::from("recant")].into_iter().chain(words);
    let cli = Cli::try_parse_from(words).map_err(|_| refused())?;
    if !may_see.content && shows_content(&cli) {
        return Err(Error::refused(
            "this run hides files, so it shows no content of sessions: use diff --stat or diff --name-only",
        ));
    }
    if looks(&cli) {
        Ok(Request { store: None, env: Vec::new(), input: false, reached: None, ..request })
    } else {
        Err(refused())
    }
}

/// The error for what is no look.
pub fn refused() -> Error {
    Error::refused("inside a run recant only shows: diff, show, cat, steps, status, list, log")
}

/// Answers a request with why it is refused; there is no end of a verb then.
pub fn refuse(problem: &Error) -> Ended {
    let text = errors::text(problem, false, &Names::from_afar(), usize::MAX, false) + "\n";
    // If the near side is gone, nobody reads it.
    let _gone = Down::Errors(text.into_bytes()).write(&mut std::io::stdout());
    Ended::With(problem.kind())
}

/// True for a look at what files hold.
fn shows_content(cli: &Cli) -> bool {
    match cli.verb() {
        Verb::Diff(args) => args.blocks || args.conflicts || args.much.html || !(args.much.stat || args.much.name_only),
        Verb::Cat(_) => true,
        _ => false,
    }
}

/// True if a call does nothing but show. Each option is named, so that a new one is looked at here, too.
fn looks(cli: &Cli) -> bool {
    let Global {
        store,
        json: _,
        color: _,
        quiet: _,
        verbose: _,
        yes: _,
        host,
        no_install: _,
        help: _,
        version: _,
        for_tools: _,
        far,
    } = &cli.global;
    if store.is_some() || host.is_some() || far.is_some() {
        return false;
    }
    match cli.verb() {
        Verb::Show(args::Show { id: _, paths: _ }) => true,
        Verb::Status => true,
        Verb::Steps(args::Steps { id: _ }) => true,
        Verb::Cat(args::Cat { id: _, path: _, before: _, displaced: _ }) => true,
        Verb::List(args::List { all: _, status: _, since: _, path: _, limit: _ }) => true,
        Verb::Log(args::Log { what: _, lines: _, since: _, all: _, agent: _, verify: _ }) => true,
        Verb::Diff(args) => {
            let args::Diff {
                id: _,
                paths: _,
                conflicts: _,
                step: _,
                since: _,
                with: _,
                blocks: _,
                much,
                full: _,
                relative: _,
                find_renames: _,
            } = args;
            let args::Much { stat: _, name_only: _, all: _, html: _, form } = much;
            let args::Form { word_diff: _, unified: _, ignore_space: _, tool } = form;
            tool.is_none()
        }
        _ => false,
    }
}
