//! The door of a held agent: inside its run, `diff`, `show`, `steps` and `status` are carried out by a recant outside, which sees the
//! session, and are shown inside.
//!
//! [`inside`] connects to a socket in the run's own store. The process outside that the run has started (`verb/run/door.rs`) takes the
//! connection, and starts `far --held ID` for it, which speaks as with a machine (docs/remote.md), but carries out only verbs that show this
//! session ([`checked`]). Whoever asks is the held command, which may send anything.

pub mod inside;

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use clap::Parser;
use rustix::process::Signal;

use super::call_end::Ended;
use crate::compare::Names;
use crate::error::{Error, Kind};
use crate::face::args::{self, Cli, Global, Verb};
use crate::face::errors;
use crate::fs::interrupt;
use crate::remote::{Down, Request};

/// The most looks that are answered at once: whoever asks may ask a thousand times.
const AT_ONCE: usize = 8;

/// The time that a request may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers until `parent`, the recant that started this, ends.
pub fn serve(id: &str, parent: Option<i32>) -> Ended {
    if !parent.is_some_and(|parent| interrupt::end_with(parent, Signal::KILL)) {
        return Ended::With(Kind::Refused);
    }
    // Ctrl-C is for the run's command.
    let _leads = rustix::process::setsid();
    let (Ok(listener), Ok(program)) = (std::io::stdin().as_fd().try_clone_to_owned(), std::env::current_exe()) else {
        return Ended::With(Kind::Refused);
    };
    let mut answering: Vec<Child> = Vec::new();
    for asked in UnixListener::from(listener).incoming() {
        let Ok(asked) = asked else { continue };
        while answering.len() >= AT_ONCE {
            answering.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
            std::thread::sleep(Duration::from_millis(10));
        }
        let (Ok(answered), Ok(())) = (asked.try_clone(), asked.set_read_timeout(Some(PATIENCE))) else { continue };
        let mut command = crate::fs::command(&program);
        command.args(["far", "--held", id]).stdin(OwnedFd::from(asked)).stdout(OwnedFd::from(answered)).stderr(Stdio::null());
        // If it cannot be started, the connection ends, and the near side says so.
        answering.extend(command.spawn().ok());
        answering.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
    Ended::Done
}

/// Lets the connection that standard input is be silent from here on: the request has come.
pub fn has_asked() {
    if let Ok(stdin) = std::io::stdin().as_fd().try_clone_to_owned() {
        // It only ends a look that takes long.
        let _kept = UnixStream::from(stdin).set_read_timeout(None);
    }
}

/// The request of a process in the run of session `id`, if all that it asks for is to see that session. It brings neither a store nor
/// variables.
///
/// # Errors
/// Anything else.
pub fn checked(request: &Request, id: &str) -> Result<Request, Error> {
    let refused = || Error::refused("inside a run recant shows what the run holds: diff, show, steps, status");
    let words = request.words().ok_or_else(refused)?;
    let words = [OsString::from("recant")].into_iter().chain(words);
    let cli = Cli::try_parse_from(words).map_err(|_| refused())?;
    if shows(&cli, id) {
        Ok(Request { store: None, env: Vec::new(), input: false, reached: None, ..request.clone() })
    } else {
        Err(refused())
    }
}

/// Answers a request with why it is refused; there is no end of a verb then.
pub fn refuse(problem: &Error) -> Ended {
    let text = errors::text(problem, false, &Names::from_afar(), usize::MAX, false) + "\n";
    // If the near side is gone, nobody reads it.
    let _gone = Down::Errors(text.into_bytes()).write(&mut std::io::stdout());
    Ended::With(problem.kind())
}

/// True if a call does nothing but show session `id`. Each option is named, so that a new one is looked at here, too.
fn shows(cli: &Cli, id: &str) -> bool {
    let Global { store, json: _, color: _, quiet: _, verbose: _, yes: _, host, no_install: _, help: _, version: _, far } =
        &cli.global;
    if store.is_some() || host.is_some() || far.is_some() {
        return false;
    }
    let named = match cli.verb() {
        Verb::Show(args::Show { id, paths: _ }) => id,
        Verb::Steps(args::Steps { id, page: args::Page { brief: _, after: _ } }) => id,
        Verb::Diff(args) => {
            let args::Diff {
                id,
                paths: _,
                conflicts: _,
                step: _,
                since: _,
                with,
                blocks: _,
                much,
                find_renames: _,
                brief: _,
                after: _,
            } = args;
            let args::Much { stat: _, name_only: _, all: _, html: _, form } = much;
            let args::Form { word_diff: _, unified: _, ignore_space: _, tool } = form;
            if with.is_some() || tool.is_some() {
                return false;
            }
            id
        }
        _ => return false,
    };
    named.as_deref() == Some(id)
}
