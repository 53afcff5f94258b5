//! The places of agents' settings.

use serde::Serialize;

use super::super::known::Agent;
use super::form::Form;
use super::toml;
use crate::fs::path::AbsPath;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One user's, for all projects.
    User,
    /// A project's, for all who work on it.
    Project,
}

impl Scope {
    pub const BOTH: [Self; 2] = [Self::User, Self::Project];

    /// The option for it, behind a verb's other words.
    pub fn option(self) -> &'static str {
        if self == Self::Project { " --project" } else { "" }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// A file in which hooks can stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file; it need not exist.
    pub path: AbsPath,
    pub form: Form,
}

/// The facts that the places follow from.
pub struct Surroundings<'a> {
    pub home: AbsPath,
    pub project: AbsPath,
    /// The value of an environment variable, if it is an absolute path.
    pub directory: &'a dyn Fn(&str) -> Option<AbsPath>,
}

impl Surroundings<'_> {
    /// The directory of an agent's own files.
    pub fn home_of(&self, agent: Agent) -> AbsPath {
        let named = |variable: &str| (self.directory)(variable);
        let config = || named("XDG_CONFIG_HOME").unwrap_or_else(|| below(&self.home, ".config"));
        match agent {
            Agent::Claude => named("CLAUDE_CONFIG_DIR").unwrap_or_else(|| below(&self.home, ".claude")),
            Agent::Codex => named("CODEX_HOME").unwrap_or_else(|| below(&self.home, ".codex")),
            Agent::Gemini => below(&named("GEMINI_CLI_HOME").unwrap_or_else(|| self.home.clone()), ".gemini"),
            Agent::Copilot => named("COPILOT_HOME").unwrap_or_else(|| below(&self.home, ".copilot")),
            Agent::Opencode => named("OPENCODE_CONFIG_DIR").unwrap_or_else(|| below(&config(), "opencode")),
            Agent::Pi => named("PI_CODING_AGENT_DIR").unwrap_or_else(|| below(&self.home, ".pi/agent")),
        }
    }

    /// The files in which an agent's hooks can stand. The first is the one that an installation makes.
    pub fn places(&self, agent: Agent, scope: Scope) -> Vec<Place> {
        let directory = match (scope, agent) {
            (Scope::User, _) => self.home_of(agent),
            (Scope::Project, Agent::Claude) => below(&self.project, ".claude"),
            (Scope::Project, Agent::Codex) => below(&self.project, ".codex"),
            (Scope::Project, Agent::Gemini) => below(&self.project, ".gemini"),
            (Scope::Project, Agent::Copilot) => below(&self.project, ".github"),
            (Scope::Project, Agent::Opencode) => below(&self.project, ".opencode"),
            (Scope::Project, Agent::Pi) => below(&self.project, ".pi"),
        };
        let place = |name: &str, form| Place { path: below(&directory, name), form };
        match agent {
            Agent::Claude if scope == Scope::Project => {
                vec![place("settings.json", Form::Groups), place("settings.local.json", Form::Groups)]
            }
            Agent::Claude | Agent::Gemini => vec![place("settings.json", Form::Groups)],
            Agent::Codex => vec![place("hooks.json", Form::Groups), place("config.toml", Form::Toml)],
            Agent::Copilot => vec![place("hooks/recant.json", Form::Flat)],
            Agent::Opencode => vec![place("plugins/recant.js", Form::Program)],
            Agent::Pi => vec![place("extensions/recant.ts", Form::Program)],
        }
    }
}

/// A path below a directory. `name`: one that this program has written down, which is no empty one, `.` or `..`.
pub fn below(directory: &AbsPath, name: &str) -> AbsPath {
    name.split('/').fold(directory.clone(), |path, part| path.join(part.as_bytes()).expect("a name of this file is a name"))
}

/// The index of the place in which hooks are put. Of several, the first that has recant's; else the first that is there with hooks of
/// others; else the first. `texts`: what each file holds. Codex CLI warns where hooks stand in both of its files.
pub fn chosen(places: &[Place], texts: &[Option<String>], has_ours: impl Fn(usize) -> bool) -> usize {
    let holds_others = |i: usize| places[i].form == Form::Toml && texts[i].as_deref().is_some_and(toml::has_hooks);
    let all = 0..places.len();
    let taken = all.clone().find(|i| has_ours(*i));
    taken.unwrap_or_else(|| if texts[0].is_none() { all.clone().find(|i| holds_others(*i)).unwrap_or(0) } else { 0 })
}
