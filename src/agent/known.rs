//! The agents that recant knows, a line each. What is known of one stands in its own file.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Deserialize, Deserializer};

pub use super::facts::Agent;
use super::facts::Facts;
use super::surroundings::Surroundings;
use crate::fs::AbsPath;

impl Agent {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self(&super::claude::FACTS),
        Self(&super::codex::FACTS),
        Self(&super::gemini::FACTS),
        Self(&super::copilot::FACTS),
        Self(&super::opencode::FACTS),
        Self(&super::pi::FACTS),
        #[cfg(test)]
        Self(&super::made_up::FACTS),
    ];

    /// The agent of this word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|agent| agent.word() == word)
    }

    /// All words, as a sentence lists them.
    pub fn words() -> String {
        let words: Vec<&str> = Self::ALL.iter().map(|agent| agent.word()).collect();
        words.split_last().map_or_else(String::new, |(last, most)| format!("{} or {last}", most.join(", ")))
    }
}

impl ValueEnum for Agent {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()).help(self.name))
    }
}

impl<'de> Deserialize<'de> for Agent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::of(&word).ok_or_else(|| serde::de::Error::custom(format_args!("no agent is called {word}")))
    }
}

/// Agents of which only a variable is known, which they set for the commands that they run.
const BY_VARIABLE: [(&str, &str); 5] = [
    ("CURSOR_AGENT", "cursor"),
    ("CLINE_ACTIVE", "cline"),
    ("AUGMENT_AGENT", "augment"),
    ("ANTIGRAVITY_AGENT", "antigravity"),
    ("GOOSE_TERMINAL", "goose"),
];

/// True for what is an agent's own, or lies in a directory of its own: one that has the name of those in projects, or is in its place in a
/// home directory. A directory that ignores case has them under other names.
pub fn is_agents(path: &AbsPath, home: Option<&AbsPath>) -> bool {
    let lower: Vec<Vec<u8>> = path.as_bytes().split(|b| *b == b'/').map(<[u8]>::to_ascii_lowercase).collect();
    let named = |name: &str| lower.iter().any(|part| part == name.as_bytes());
    let lies_in_home_of = |facts: &Facts| {
        home.is_some_and(|home| {
            let around = Surroundings { home: home.clone(), project: home.clone(), variable: &|_| None };
            path.is_under(&(facts.settings.home)(&around)) || path.is_under(&(facts.state.directory)(&around))
        })
    };
    Agent::ALL.iter().any(|agent| {
        let own_file = agent.0.state.conversations.as_ref().map(|of| of.in_home);
        named(agent.0.settings.project) || own_file.is_some_and(named) || lies_in_home_of(agent.0)
    })
}

/// The variables by which agents are told, each with the agent's word; `None`: the value is the word. RECANT_AGENT is for agents that set
/// none of their own.
pub fn variables() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let known = Agent::ALL.iter().flat_map(|agent| agent.0.variables.iter().map(|name| (*name, Some(agent.word()))));
    let by_variable = BY_VARIABLE.into_iter().map(|(name, word)| (name, Some(word)));
    [("RECANT_AGENT", None)].into_iter().chain(known).chain(by_variable).chain([("AI_AGENT", None)])
}
