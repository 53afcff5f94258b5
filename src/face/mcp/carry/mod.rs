//! `mcp`: recant's own verbs as tools of the Model Context Protocol (`crate::face::mcp`).
//!
//! A tool is another recant, started with `--json`, and a cancelled call is a signal. What a person decides is looked at by a dry run; no
//! variable, option or setting lets more through. This process keeps three things: which session its last command ran in, the output of
//! its commands, and the arguments of calls whose answers have more pages.

mod child;
mod commit;
mod cursors;
mod hold_run;
mod keeps;
mod outputs;
mod outside;
mod own_session;
mod pages;
mod reading;
mod rows;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::carrier::{Asked, Carrier, Outcome, Stop, Told};
use super::serve::serve;
use super::tools::Name;
use crate::agent::Agent;
use crate::capture::inside;
use crate::error::{At, Error, Kind};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::calling_agent;
use crate::face::find_store;
use crate::fs::{interrupt, signal_pipe};
use crate::settings::From;
use child::{Child, Program};
use cursors::Cursors;
use keeps::Keeps;
use outputs::Outputs;
use outside::{decided_outside, person};
use own_session::{Last, Own};

/// Serves a client on standard input and output until it leaves.
///
/// # Errors
/// There is no random number to name its sessions by.
pub fn mcp(call: &Call) -> Result<Ended, Error> {
    let mut random = [0; 2];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).map_err(|error| {
        Error::new(Kind::Refused, format!("cannot get a random number: {}", crate::error::reason(&error.into()))).without_state()
    })?;
    let tag = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let store = matches!(call.place.from, From::Option(_)).then(|| call.store_path()).transpose()?;
    let here = find_store::cwd().ok().and_then(|cwd| find_store::absolute(&cwd).ok());
    let (settings, last, outputs) = (call.config.clone(), Last::default(), Outputs::default());
    let kept = Keeps { store: call.store_path()?, settings, here, last, outputs, cursors: Cursors::default() };
    let mut server = Recant { program: Program::of(store.as_ref())?, tag, kept: Arc::new(kept) };
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
    kept: Arc<Keeps>,
}

impl Carrier for Recant {
    fn begin(&mut self, asked: &Asked, told: Told) -> Stop {
        let stop = Arc::new(AtomicBool::new(false));
        let word = word(asked).to_owned();
        let new = format!("{word}-{}", self.tag);
        let (variable, word) = calling_agent::variable().map_or((false, word), |(_, known)| (true, known));
        // A child knows of an agent by its variables, if there are any.
        let agent = (!variable).then(|| word.clone());
        let child = Child { program: self.program.clone(), agent, stop: Arc::clone(&stop) };
        let (asked, kept) = (asked.clone(), Arc::clone(&self.kept));
        std::thread::spawn(move || told.ends(carry_out(&child, &asked, &kept, (&word, &new), &told)));
        Box::new(move || stop.store(true, Ordering::Relaxed))
    }

    fn is_over(&self) -> bool {
        interrupt::signal_received().is_some()
    }
}

/// Carries a tool out. `word`: the agent's; `new`: the name of a session that is begun for a command that names none.
fn carry_out(child: &Child, asked: &Asked, kept: &Keeps, (word, new): (&str, &str), told: &Told) -> Outcome {
    let Some(asked) = &kept.cursors.completed(asked) else {
        return Outcome::refused("refused", "several calls gave this cursor").with("remedy", "repeat the arguments beside it");
    };
    if asked.tool.is == Name::HoldRun {
        return advised(hold_run::run(child, asked, kept, (word, new), told), Name::HoldRun);
    }
    let is_of_session = matches!(asked.tool.is, Name::Rewind | Name::Fork | Name::Discard | Name::Await);
    if let Some(id) = inside().filter(|_| is_of_session && asked.text("session").is_none()) {
        return decided_outside(&id, "a person decides about it when it has ended");
    }
    let takes_session = asked.tool.fields.iter().any(|field| field.name == "session");
    let needs_session = takes_session && asked.tool.is != Name::Log && asked.text("snapshot").is_none();
    let own = match asked.text("session") {
        // Inside a run it is that run's.
        None if needs_session && inside().is_none() => match kept.last.session(child, word, told) {
            Ok(Some(own)) => Some(own),
            Ok(None) => {
                return Outcome::refused("refused", "you have made no session here")
                    .with("remedy", "hold_run begins one; sessions lists all");
            }
            Err(outcome) => return outcome,
        },
        _ => None,
    };
    let (session, here) = (asked.text("session").or(own.as_ref().map(|own| &*own.word)), kept.here.as_ref());
    let outcome = match asked.tool.is {
        Name::Commit => commit::ask(child, (asked, here), session.unwrap_or("last"), told),
        Name::Cat => reading::look(child, (asked, here), session.or(Some("last")), told),
        Name::Await => reading::wait(child, asked, session, &told.waiting(person(session))),
        Name::Fork => forked(kept, asked, reading::look(child, (asked, here), session, told)),
        _ => reading::look(child, (asked, here), session, told),
    };
    let outcome = advised(outcome, asked.tool.is);
    kept.cursors.note(asked, own.as_ref().map(|own| own.told()), &outcome);
    match own {
        // It says which one was meant.
        Some(own) if outcome.document.get("session").is_none() => outcome.with("session", own.told()),
        _ => outcome,
    }
}

/// Notes the session that a fork has begun: commands go on in it.
fn forked(kept: &Keeps, asked: &Asked, outcome: Outcome) -> Outcome {
    if let Some(id) = outcome.document["session"].as_str().filter(|_| !outcome.is_error) {
        kept.last.set(Some(Own { word: asked.text("name").unwrap_or(id).to_owned(), id: Some(id.to_owned()) }));
    }
    outcome
}

/// Adds to a refusal without a remedy the tools that tell more: those of the command line are left out of it.
fn advised(outcome: Outcome, tool: Name) -> Outcome {
    let is_bare = outcome.is_error && outcome.document["kind"] == "refused" && outcome.document.get("remedy").is_none();
    let remedy = match tool {
        Name::HoldRun | Name::Rewind | Name::Discard => {
            "sessions lists what there is; fork begins one of your own from another's"
        }
        Name::Cat => "changes lists the paths of a session; hold_run with cat shows any other",
        Name::Changes | Name::Diff | Name::Steps | Name::Fork | Name::Log | Name::Await | Name::Commit => {
            "sessions lists what there is, steps and changes what is in one"
        }
        Name::Sessions | Name::Snapshot => return outcome,
    };
    if is_bare { outcome.with("remedy", remedy) } else { outcome }
}
