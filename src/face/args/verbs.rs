//! The call as a whole: the options of all verbs, and the verbs.

use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::agent::{AgentVerb, Hook};
use super::apply::{Back, Commit, Confirm, Recover, Redo, Undo};
use super::inspect::{Await, Cat, Diff, Log, Review, Steps};
use super::run::{Doctor, Run, Shell};
use super::session::{CheckpointVerb, Discard, Fork, List, Prune, Rewind, SessionVerb, Show};
use super::snapshot::SnapshotVerb;
use crate::settings::{Choice, Color, Entry};

/// Holds the file changes of commands, shows them, commits them with a checkpoint, and takes them back exactly.
#[derive(Debug, Parser)]
#[command(
    name = "recant",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    disable_help_subcommand = true,
    propagate_version = false,
    after_help = "Examples:
  recant run -- make install      every file change is held
  recant diff                     look at it
  recant commit last              make it real, with a checkpoint
  recant rollback last            exactly as before
  recant list                     the sessions of this project
  recant status                   sessions, damage, size, and what to do
  recant -H web1 run -- make install; recant -H web1 commit last
                                  the same on another machine, over ssh

Exit status:
  0 done, 1 refused or failed: nothing changed, 2 usage, 3 conflict:
  nothing changed, 4 done, but something named was left out, 5 the store
  is damaged, 6 busy: another recant has it locked, 7 stuck: an operation
  can be neither finished nor undone now; run: 125 not set up, 126 not
  executable, 127 not found, 128+n ended or undone by signal n, else as
  the command"
)]
pub struct Cli {
    /// Options of all verbs.
    #[command(flatten)]
    pub global: Global,
    /// The verb; none reports how things stand here.
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

impl Cli {
    /// The verb that was given, or [`Verb::Here`].
    pub fn verb(&self) -> &Verb {
        self.verb.as_ref().unwrap_or(&Verb::Here)
    }
}

/// Options before or after any verb.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of all verbs")]
pub struct Global {
    /// The store; default: $RECANT_STORE, store.path, $XDG_DATA_HOME/recant
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// Print one JSON document on stdout; stderr has only JSON objects
    #[arg(long, global = true)]
    pub json: bool,
    /// When to colour: auto (on a terminal), always, never
    #[arg(long, global = true, value_name = "WHEN", hide_possible_values = true)]
    pub color: Option<Color>,
    /// Print only what must not be missed
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print more
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Skip questions
    #[arg(short, long, global = true)]
    pub yes: bool,
    /// Run on another machine, over ssh: HOST, USER@HOST:PORT or a Host of ssh_config; 'local': on this one; default:
    /// $RECANT_HOST. Paths are those of that machine; relative ones start at the home directory there
    #[arg(short = 'H', long, global = true, value_name = "HOST", value_hint = clap::ValueHint::Hostname)]
    pub host: Option<String>,
    /// With -H: do not install recant on a machine that lacks it
    #[arg(long, global = true)]
    pub no_install: bool,
    /// Print help
    #[arg(short = 'h', long, global = true, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
    /// Print the version
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    pub version: Option<bool>,
    /// Speak to a model that has the tools of `recant mcp` alone
    #[arg(long, global = true, hide = true)]
    pub for_tools: bool,
    /// The far side's own: what the near side's descriptors are
    #[arg(long, global = true, hide = true, value_name = "COLOR:TERMINALS:OPTIONS")]
    pub far: Option<String>,
}

impl ValueEnum for Color {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command and hold its file changes
    Run(Run),
    /// Start a shell and hold its file changes
    Shell(Shell),
    /// Stage changes by hand; rename, export and import sessions
    #[command(after_help = "Examples:
  id=$(recant session new)
  echo 'port = 80' | recant session write $id app.conf
  recant session delete $id old.conf
  recant diff $id && recant commit $id")]
    Session {
        /// The verb under `session`.
        #[command(subcommand)]
        verb: SessionVerb,
    },
    /// List the sessions of this project, the newest first
    #[command(visible_alias = "ls")]
    List(List),
    /// Show a session and its changes
    Show(Show),
    /// Drop what a session holds
    Discard(Discard),
    /// List the steps of a session, and how many paths each changed
    Steps(Steps),
    /// Show a session's changes as a patch
    Diff(Diff),
    /// Look at changes on a screen, choose among them, and decide
    Review(Review),
    /// Move a session to another of its steps, earlier or later
    Rewind(Rewind),
    /// Begin a new session from a step of another one
    Fork(Fork),
    /// Make a session's changes real, with a checkpoint to go back to
    Commit(Commit),
    /// Keep a commit that was made with --confirm-within
    Confirm(Confirm),
    /// Take back a commit: the files are again as they were before
    #[command(after_help = "Examples:
  recant rollback last --dry-run
  recant rollback last
  recant rollback k3fa src/main.rs:2     this block alone (diff k3fa --blocks)
  recant rollback k3fa --merge           from files that were edited since
  recant rollback k3fa etc/app.conf      this path alone

A path that was changed since the commit is a conflict: nothing is done, and all
conflicts are named. --force goes on, and keeps what it overwrites: recant cat
ID PATH --displaced.")]
    Rollback(Back),
    /// Take back the newest act in this project; shows it, and asks
    #[command(after_help = "Examples:
  recant undo                            shows the newest act, and asks
  recant undo                            once more: the one before it
  recant undo k3fa                       the newest act on this session
  recant undo -y                         your own newest act, unasked
  recant redo                            what the newest undo took back

Acts are commits, redos, rollbacks, discards, run --in, and all else that makes
a committed session. A path that was changed since is a conflict: nothing is
done, and undo does not go on to an older act. Without a terminal, undo needs
-y. A held run is not an act: discard drops it.")]
    Undo(Undo),
    /// Commit again what was rolled back, or what undo took back
    #[command(after_help = "Examples:
  recant redo                            right after an undo
  recant redo last --dry-run
  recant redo k3fa etc/app.conf          this path alone")]
    Redo(Redo),
    /// List, show, verify checkpoints: the originals that commits saved
    #[command(after_help = "Examples:
  recant checkpoint list
  recant checkpoint verify               are all originals intact?
  recant prune --checkpoints k3fa           ends its rollback, frees its bytes")]
    Checkpoint {
        /// The verb under `checkpoint`.
        #[command(subcommand)]
        verb: CheckpointVerb,
    },
    /// Take numbered copies of a directory, compare and restore them
    #[command(after_help = "Examples:
  recant snapshot create -m 'before the upgrade'
  recant snapshot diff last
  recant snapshot restore last")]
    Snapshot {
        /// The verb under `snapshot`.
        #[command(subcommand)]
        verb: SnapshotVerb,
    },
    /// Undo turns of agents on the real files; run an agent held
    #[command(after_help = "Examples:
  recant agent install claude        once; shows the edit, and asks
  recant agent status                do the hooks fire?
  recant agent turns
  recant agent diff 7
  recant agent undo 7                turn 7 and the later ones

A snapshot of the project is taken before a turn changes something, and at its
end.")]
    Agent {
        /// The verb under `agent`.
        #[command(subcommand)]
        verb: AgentVerb,
    },
    /// Serve as the hook that an agent calls at each event
    Hook(Hook),
    /// Serve the Model Context Protocol (MCP) to any agent
    #[command(after_help = "Examples:
  claude mcp add -s user recant -- recant mcp
  codex mcp add recant -- recant mcp
  gemini mcp add -s user recant recant mcp

An agent starts it, and talks to it on standard input and output. Its tools hold
commands and show changes. For commit, rollback, redo and restore they return
the command for you to type.")]
    Mcp,
    /// Finish or undo what a crash interrupted
    Recover(Recover),
    /// Delete old sessions, checkpoints and snapshots, by the settings
    Prune(Prune),
    /// Print the content of a path in a session
    Cat(Cat),
    /// Show sessions, damage, the store's size, and what to do
    #[command(after_help = "Examples:
  recant status
  recant status --json | jq .store.bytes")]
    Status,
    /// Show what was done: commits, rollbacks, prunes
    Log(Log),
    /// Wait until a person commits or discards what a session holds
    Await(Await),
    /// Test what works here, and say what the rest needs
    Doctor(Doctor),
    /// Print the settings in force, and where each comes from
    Config,
    /// Print the completion script of a shell
    Completions(Completions),
    /// Print a manual page as roff, or write all of them
    Man(Man),
    /// Say how things stand here: no verb at all
    #[command(skip)]
    Here,
    /// Be the far side of another machine's recant -H
    #[command(hide = true)]
    Far(Far),
    /// Be the proxy of a run: serve the socket on standard input until standard output ends
    #[command(hide = true)]
    Proxy(Proxy),
}

impl Verb {
    /// True if it runs a command with its changes held, in the place of recant: terminal, input and exit status are the command's.
    pub fn is_run(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Shell(_) | Self::Agent { verb: AgentVerb::Run(_) })
    }
}

/// `far`: what ssh starts.
#[derive(Debug, Args)]
pub struct Far {
    /// Carry out this request on the terminal that there is
    #[arg(long, value_name = "BASE64")]
    pub request: Option<String>,
    /// Tell this shell by SIGUSR1, before anything is done, that recant was started
    #[arg(long, value_name = "PID", requires = "request")]
    pub tells: Option<i32>,
    /// Only say why sudo, which ended with this status, has not started recant
    #[arg(long, value_name = "STATUS", conflicts_with = "request")]
    pub unstarted: Option<u8>,
    /// Carry out only looks at sessions: a process in a run asks
    #[arg(long, conflicts_with = "request")]
    pub held: bool,
    /// Show no content of files: the run hides some
    #[arg(long, requires = "held")]
    pub no_content: bool,
    /// Show this session alone, with its parts
    #[arg(long, value_name = "ID", requires = "held", value_parser = super::words::id)]
    pub only: Option<crate::session::Id>,
    /// Only tell by the exit status whether this is the protocol
    #[arg(long, value_name = "N")]
    pub speaks: Option<u32>,
}

/// `proxy`: what a run with --network starts.
#[derive(Debug, Args)]
pub struct Proxy {
    /// The hosts that can be reached
    #[arg(value_name = "HOST", value_parser = Entry::parse)]
    pub hosts: Vec<Entry>,
}

/// `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant completions bash \\
    > ~/.local/share/bash-completion/completions/recant
  recant completions fish > ~/.config/fish/completions/recant.fish")]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant man session write | man -l -
  recant man --dir ~/.local/share/man/man1")]
pub struct Man {
    /// The verb; default: recant itself
    pub verb: Vec<String>,
    /// Write the pages of all verbs into DIR
    #[arg(long, value_name = "DIR", conflicts_with = "verb", value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}
