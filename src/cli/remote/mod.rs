//! `-H`: other machines carry out a verb. One machine ([`one`]): as if it ran here. Several: each for itself ([`many`]), or, if the verb
//! changes their trees, together as one act ([`together`]).

mod doctor;
mod end;
mod hosts;
mod many;
mod one;
mod together;
mod ways;

use std::ffi::OsString;

pub use doctor::NearSide;
pub use end::finish;
use hosts::Hosts;
use one::Far;
use together::Together;
use ways::{Ways, request};

use super::args::{Cli, Global, SessionVerb, SnapshotVerb, Undo, Verb};
use super::problem::Problem;
use super::{Call, Ended, far, text, undo};
use crate::remote::request::Request;

/// The machines that a call names; `None` if it is for this one. An empty `-H` counts as named: whoever typed it meant another
/// machine.
pub fn asked_for(global: &Global) -> Option<String> {
    let from_env = || std::env::var("RECANT_HOST").ok().filter(|hosts| !hosts.trim().is_empty());
    let hosts = global.host.clone().or_else(from_env)?;
    let hosts = hosts.trim();
    (hosts != "local").then(|| hosts.to_owned())
}

/// Carries out the call on these machines. `words`: its arguments, without the program's name.
pub fn carry_out(call: &Call, cli: &Cli, words: &[OsString], hosts: &str) -> Result<Ended, Problem> {
    let hosts = hosts::read(hosts, &call.config.remotes)?;
    let ways = Ways::open(call, &cli.global)?;
    let target = match hosts {
        Hosts::One(target) => target,
        Hosts::Many(targets) => {
            if let Verb::Undo(Undo(args)) = cli.verb()
                && !args.what.dry_run
            {
                ask_undo(call, targets.len())?;
            }
            let together = Together::of(call, cli, &targets)?;
            if let Some(act) = together.as_ref().filter(|act| !act.is_dry_run) {
                let blank: Vec<Request> = targets.iter().map(|target| request(call, cli, words, target)).collect();
                return act.carry_out(call, &ways, &targets, &blank);
            }
            let words = together.map_or_else(|| words.to_vec(), |act| act.asking(words));
            return many::carry_out(call, &ways, cli, &targets, &mut |target| request(call, cli, &words, target));
        }
    };
    let far = Far { call, ways };
    match cli.verb() {
        verb if (verb.is_run() || matches!(verb, Verb::Review(_))) && far::terminals().len() == 3 => {
            far.on_terminal(&target, &request(call, cli, words, &target))
        }
        Verb::Doctor(args) if !args.apparmor => far.doctor(&target, &request(call, cli, words, &target)),
        verb => {
            if pages(verb) && call.out.is_text() {
                let of_diff = matches!(verb, Verb::Diff(_) | Verb::Snapshot { verb: SnapshotVerb::Diff(_) });
                call.out.page(if of_diff { call.config.pager_of_diff() } else { call.config.pager.value.as_deref() });
            }
            far.alone(&target, &request(call, cli, words, &target))
        }
    }
}

/// Asks once, here: nobody can be asked at several machines.
fn ask_undo(call: &Call, machines: usize) -> Result<(), Problem> {
    if !call.yes && !call.can_ask {
        return Err(undo::unasked());
    }
    call.confirm(&format!("Take this back on {}?", text::count(machines as u64, "machine")))
}

/// Tells whether a verb's output may be long.
fn pages(verb: &Verb) -> bool {
    match verb {
        Verb::List(_) | Verb::Show(_) | Verb::Steps(_) | Verb::Diff(_) | Verb::Log(_) | Verb::Checkpoint { .. } => true,
        Verb::Session { verb } => matches!(verb, SessionVerb::List(_) | SessionVerb::Show(_)),
        Verb::Snapshot { verb } => {
            matches!(verb, SnapshotVerb::List(_) | SnapshotVerb::Show(_) | SnapshotVerb::Diff(_) | SnapshotVerb::Verify(_))
        }
        _ => false,
    }
}
