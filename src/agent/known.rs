//! The agents that recant knows.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// An agent that recant knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// Copilot CLI
    Copilot,
    /// opencode
    Opencode,
    /// pi
    Pi,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Claude, Self::Codex, Self::Gemini, Self::Copilot, Self::Opencode, Self::Pi];

    /// The word for it on the command line, in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
        }
    }

    /// Its own name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex CLI",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
        }
    }
}
