//! `-H`: another machine carries out a verb, as if it ran here.

pub mod call;
mod doctor;
mod end;
mod request;
pub mod served;

use std::ffi::OsString;

use call::Far;
pub use end::finish;

use super::call_end::Ended;
use super::near_side::terminals;
use crate::error::Error;
use crate::face::args::{Cli, Global, SnapshotVerb, Verb};
use crate::face::call::Call;
use crate::remote::Target;

/// The machine that a call names; `None` if it is for this one. An empty `-H` counts as named: whoever typed it meant another machine.
pub fn asked_for(global: &Global) -> Option<String> {
    let from_env = || std::env::var("RECANT_HOST").ok().filter(|host| !host.trim().is_empty());
    let host = global.host.clone().or_else(from_env)?;
    let host = host.trim();
    (host != "local").then(|| host.to_owned())
}

/// Carries out the call on the machine that `host` names. `words`: its arguments, without the program's name.
pub fn carry_out(call: &Call, cli: &Cli, words: &[OsString], host: &str) -> Result<Ended, Error> {
    let far = Far::of(call, cli, words, target(call, host)?)?;
    match cli.verb() {
        verb if (verb.is_run() || matches!(verb, Verb::Review(_))) && terminals().len() == 3 => far.on_terminal(),
        Verb::Doctor(args) if !args.apparmor => far.doctor(),
        verb => {
            if pages(verb) && call.out.is_text() {
                let of_diff = matches!(verb, Verb::Diff(_) | Verb::Snapshot { verb: SnapshotVerb::Diff(_) });
                call.out.page(if of_diff { call.config.pager_of_diff() } else { call.config.pager.value.as_deref() });
            }
            far.alone()
        }
    }
}

/// Reads the value of `-H`. A list of machines is refused, before anything is done on one of them.
fn target(call: &Call, host: &str) -> Result<Target, Error> {
    if host.is_empty() {
        let problem = Error::usage("-H names no machine: it is empty");
        return Err(problem.with_remedy("an unset variable? -H local is this machine"));
    }
    if host.contains(',') || host.starts_with('@') {
        let one = format!("-H {host}: one machine at a time; docs/ansible.md has a playbook for several");
        return Err(Error::usage(one));
    }
    Target::parse(host, &call.config.remotes)
}

/// Tells whether a verb's output may be long.
fn pages(verb: &Verb) -> bool {
    match verb {
        Verb::List(_) | Verb::Show(_) | Verb::Steps(_) | Verb::Diff(_) | Verb::Log(_) | Verb::Checkpoint { .. } => true,
        Verb::Snapshot { verb } => {
            matches!(verb, SnapshotVerb::List(_) | SnapshotVerb::Show(_) | SnapshotVerb::Diff(_) | SnapshotVerb::Verify(_))
        }
        _ => false,
    }
}
