//! `agent` and `hook`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::inspect::Much;
use crate::agent::{Agent, When};
use crate::settings::Entry;

/// The verbs under `agent`.
#[derive(Debug, Subcommand)]
pub enum AgentVerb {
    /// List the turns of agents in this project, the newest first
    Turns(Turns),
    /// Show what a turn changed, as a patch
    Diff(TurnDiff),
    /// Take back a turn and all later ones
    Undo(TurnUndo),
    /// Run an agent with all its file changes held
    Run(AgentRun),
    /// Add recant's hooks to an agent's settings
    #[command(after_help = "Examples:
  recant agent install claude            in your own settings
  recant agent install codex --project   in .codex/ of this project
  recant agent install claude --dry-run  show the edit alone

The edit is shown, and made if you agree. It is a session: recant rollback ID
takes it back. Comments, other keys and their order are kept.")]
    Install(Install),
    /// Remove recant's hooks from an agent's settings
    #[command(after_help = "Examples:
  recant agent uninstall claude            from your own settings
  recant agent uninstall codex --project   from .codex/ of this project
  recant agent uninstall claude --dry-run  show the edit alone

The edit is shown, and made if you agree. It is a session: recant rollback ID
brings the hooks back. What recant did not add is kept.")]
    Uninstall(Install),
    /// Show whether an agent's hooks fire, and what is not covered
    Status(AgentStatus),
    /// Print a text for AGENTS.md or CLAUDE.md
    #[command(after_help = "Examples:
  recant agent guide >> AGENTS.md")]
    Guide,
}

/// `agent turns`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant agent turns
  recant agent turns --agent claude
  recant agent diff 7; recant agent undo 7")]
pub struct Turns {
    /// Turns of this agent alone
    #[arg(long, help = format!("Turns of this agent alone: {}", Agent::words()), value_name = "AGENT", hide_possible_values = true)]
    pub agent: Option<Agent>,
}

/// `agent diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant agent diff                  the newest turn that changed something
  recant agent diff 7 src
  recant agent diff 7 --html > turn.html")]
pub struct TurnDiff {
    /// The turn's number (default: the newest that changed something), then paths to show alone
    #[arg(value_name = "N|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub of: Vec<PathBuf>,
    /// How much of it is shown
    #[command(flatten)]
    pub much: Much,
}

/// `agent undo`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant agent undo                  the newest turn that changed something
  recant agent undo 7            turn 7 and the later ones of its conversation
  recant agent undo 7 src/main.rs    this path alone
  recant agent undo 7 --only         turn 7, and none of the later ones
  recant agent undo 7 --dry-run

It takes back what these turns wrote, where it is still as they left it. Other
changes of theirs are named and stay (exit status 4), with the command that
helps; --force also takes back paths that others have changed since. The undo is
a new session: recant rollback ID brings the turns back.")]
pub struct TurnUndo {
    /// The first turn's number (default: the newest that changed something), then paths to take back alone
    #[arg(value_name = "N|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub of: Vec<PathBuf>,
    /// This turn alone; in a text that was edited since, only its lines
    #[arg(long, conflicts_with = "session")]
    pub only: bool,
    /// All turns of its conversation, from the first one on
    #[arg(long)]
    pub session: bool,
    /// Also take back what others wrote to these paths; it is kept in the session
    #[arg(long)]
    pub force: bool,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `agent run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant agent run claude
  recant agent run codex exec 'mend the tests'
  recant agent run --session claude-app claude --continue
  recant review claude-app           in another terminal, while it works

The agent's credentials stay real; other secrets, such as ssh keys, are closed
to it (agent.closed). Its records, such as transcripts, are committed separately
at the end. All else is held, also its settings, hooks, plugins and
instructions. The settings 'agent.NAME.pass' and 'agent.NAME.records' replace
the lists. Inside, recant status, diff and steps show what is held, and recant
agent undo takes a turn back. Its background processes end with it.")]
pub struct AgentRun {
    /// A name for the session; default: the agent's and the project's
    #[arg(short, long, conflicts_with = "session")]
    pub name: Option<String>,
    /// Go on in the pending session that has this name or id
    #[arg(long, value_name = "NAME|ID")]
    pub session: Option<String>,
    /// Leave PATH real too: a socket, a file, or a directory with all in it
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub pass: Vec<PathBuf>,
    /// Do not let the agent see PATH
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub hide: Vec<PathBuf>,
    /// Leave PATH open, though it holds secrets (agent.closed)
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub open: Vec<PathBuf>,
    /// Let the agent reach only its model and these hosts, by a proxy, as for run
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', value_parser = Entry::parse)]
    pub network: Vec<Entry>,
    /// The agent
    #[arg(hide_possible_values = true, help = format!("The agent: {}", Agent::words()))]
    pub agent: Agent,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// The turn that words begin with, if they begin with one, and the paths. A path that is a number is written `./7`.
pub fn turn_and_paths(words: &[PathBuf]) -> (Option<u64>, &[PathBuf]) {
    match words.split_first() {
        Some((first, rest)) => match first.to_str().and_then(|word| word.parse().ok()) {
            Some(n) => (Some(n), rest),
            None => (None, words),
        },
        None => (None, &[]),
    }
}

/// `agent install` and `agent uninstall`.
#[derive(Debug, Args)]
pub struct Install {
    /// The agent
    #[arg(hide_possible_values = true, help = format!("The agent: {}", Agent::words()))]
    pub agent: Agent,
    /// In the settings of this project, for all who work on it
    #[arg(long)]
    pub project: bool,
    /// Only show the edit
    #[arg(long)]
    pub dry_run: bool,
}

/// `agent status`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant agent status
  recant agent status codex

Exit status 4: the hooks of an agent do not fire, or no event has come yet.")]
pub struct AgentStatus {
    /// The agent; default: all whose hooks are installed
    #[arg(hide_possible_values = true)]
    pub agent: Option<Agent>,
}

/// `hook`: what an agent's settings call.
#[derive(Debug, Args)]
#[command(after_help = "An agent's settings call it; recant agent install adds it there. It reads the
event on standard input, always exits with 0, and never keeps an agent waiting
for long.")]
pub struct Hook {
    /// The agent
    #[arg(hide_possible_values = true, help = format!("The agent: {}", Agent::words()))]
    pub agent: Agent,
    /// Append the event, unchanged, to FILE
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// Be the process that takes a snapshot
    #[arg(long, hide = true, value_name = "WHEN", requires = "dir")]
    pub take: Option<When>,
    /// The turn that it is for
    #[arg(long, hide = true, value_name = "N", default_value_t = 0)]
    pub turn: u64,
    /// The directory
    #[arg(long, hide = true, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}
