//! `mcp`: recant's own verbs as tools of the Model Context Protocol (`crate::face::mcp`).
//!
//! A tool is another recant, started with `--json`: this process keeps no state of it, and a cancelled call is a signal. What a person
//! decides is looked at by a dry run; no variable, option or setting lets more through.

mod child;
mod hold_run;
mod person_decides;
pub mod reading;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::carrier::{Asked, Carrier, Stop, Told};
use super::serve::serve;
use super::tools::{Effect, Name};
use crate::agent::Agent;
use crate::error::{At, Error, Kind};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::calling_agent;
use crate::fs::{interrupt, signal_pipe};
use crate::settings::From;
use child::{Child, Program};

/// Serves a client on standard input and output until it leaves.
///
/// # Errors
/// There is no random number to name its sessions by.
pub fn mcp(call: &Call) -> Result<Ended, Error> {
    let mut random = [0; 2];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(|error| {
        Error::new(Kind::Refused, format!("no random number can be had: {}", crate::error::reason(&error.into()))).without_state()
    })?;
    let tag = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let store = matches!(call.place.from, From::Option(_)).then(|| call.store_path()).transpose()?;
    let mut server = Recant { program: Program::of(store.as_ref())?, tag };
    call.out.detail("serves the Model Context Protocol on standard input and output");
    let mut signals = signal_pipe::listen().at("listen to signals by", "a pipe")?;
    let came = Arc::new(AtomicU8::new(0));
    let noted = Arc::clone(&came);
    let asked = move || {
        let mut signal = [0];
        // A pipe whose end this process holds has no end.
        if signals.read_exact(&mut signal).is_ok() {
            noted.store(signal[0], Ordering::Relaxed);
        }
    };
    serve(&mut server, std::io::stdin(), std::io::stdout(), asked);
    let asked =
        interrupt::status().or_else(|| Some(came.load(Ordering::Relaxed)).filter(|came| *came > 0).map(|came| 128 + came));
    Ok(asked.map_or(Ended::Done, Ended::Asked))
}

/// The client's word: that of an agent which recant knows, as of `codex-mcp-client`, else its name.
fn word(asked: &Asked) -> &str {
    let first = asked.client.split('-').next().unwrap_or_default();
    let is_known = Agent::ALL.iter().any(|agent| agent.word() == first);
    match &*asked.client {
        "" => "mcp",
        _ if is_known => first,
        name => name,
    }
}

/// recant, as what carries tools out.
struct Recant {
    program: Program,
    /// The end of its sessions' names, which tells them from those of other servers.
    tag: String,
}

impl Recant {
    /// The word for the agent, where none of its own variables says it.
    fn agent(asked: &Asked) -> Option<String> {
        if calling_agent::variable().is_some() { None } else { Some(word(asked).to_owned()) }
    }

    /// The session of commands that name none.
    fn own_session(&self, asked: &Asked) -> String {
        format!("{}-{}", word(asked), self.tag)
    }
}

impl Carrier for Recant {
    fn begin(&mut self, asked: &Asked, told: Told) -> Stop {
        let stop = Arc::new(AtomicBool::new(false));
        let child = Child { program: self.program.clone(), agent: Self::agent(asked), stop: Arc::clone(&stop) };
        let (asked, own) = (asked.clone(), self.own_session(asked));
        std::thread::spawn(move || {
            let outcome = match asked.tool.is {
                Name::HoldRun => hold_run::run(&child, &asked, &own, &told),
                _ if asked.tool.effect == Effect::Decides => person_decides::decide(&child, &asked, &told),
                _ => reading::look(&child, &asked, &told),
            };
            told.ends(outcome);
        });
        Box::new(move || stop.store(true, Ordering::Relaxed))
    }

    fn is_over(&self) -> bool {
        interrupt::signal_received().is_some()
    }
}
