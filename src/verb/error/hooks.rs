//! Why the hooks of an agent do not fire, and what else is to be known of them.

use crate::agent::{Agent, Scope};
use crate::error::command;
use crate::fs::AbsPath;
use crate::remedy::Command;
use crate::verb::agent::fault::{Fault, Sort};

fn install(agent: Agent, scope: Scope) -> Command {
    command(format_args!("agent install {}{}", agent.word(), scope.option()))
}

pub fn not_in_path(calls: &str, path: &AbsPath) -> Fault {
    Fault::new(format!("{path}: its hooks call {calls}, which is not in PATH"))
}

pub fn not_startable(calls: &str, agent: Agent, scope: Scope) -> Fault {
    Fault::new(format!("{calls} cannot be started")).with(install(agent, scope) + " names this recant instead")
}

pub fn another_recant(calls: &str, path: &AbsPath) -> Fault {
    Fault { sort: Sort::Another, ..Fault::new(format!("{path}: its hooks call another recant, {calls}")) }
}

pub fn incomplete(path: &AbsPath, agent: Agent, scope: Scope) -> Fault {
    Fault::new(format!("{path}: some of its hooks are missing")).with(install(agent, scope))
}

pub fn none(agent: Agent) -> Fault {
    let remedy = install(agent, Scope::User) + " adds them; hooks of a plugin are not seen here";
    Fault::new("its settings have no hooks").with(remedy)
}

pub fn twice(agent: Agent) -> Fault {
    let remove = command(format_args!("agent uninstall {}", agent.word()));
    Fault::new("each event comes once for each settings file").with(remove + " removes your own, if the project's are enough")
}

pub fn no_event(agent: Agent) -> Fault {
    Fault { sort: Sort::NoEvent, ..Fault::new(format!("no event has come yet: start {}, then ask again", agent.name)) }
}

pub fn last_failed() -> Fault {
    Fault::new("the last event failed: see the error")
}
