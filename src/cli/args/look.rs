//! Verbs that look at sessions: `steps`, `diff`, `cat`, `log`.

use std::path::PathBuf;

use clap::Args;

/// `steps`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant steps
  recant steps k3fa --all
  recant diff k3fa --step 4              what step 4 changed

A step is one command of run --session NAME that changed something. It stands
on the step below it; step 0 is the tree as it was. The head is the step at
which the session stands. +3 ~1 -2: so many paths created, modified, deleted.")]
pub struct Steps {
    /// Id, its last part, a unique prefix, a name, or 'last'; else the last session
    pub id: Option<String>,
    /// All steps; else the newest output.paths (20)
    #[arg(long)]
    pub all: bool,
}

/// `diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant diff
  recant diff k3fa src --stat
  recant diff last --name-only
  recant diff k3fa --conflicts           what prevents a commit or rollback
  recant diff k3fa --step 4              what its step 4 changed
  recant diff k3fa --since 4             and what came after that
  recant diff k3fa --with 9xqd           two attempts
  recant diff last > /tmp/last.patch && patch -p1 -d / < /tmp/last.patch")]
pub struct Diff {
    /// Id, its last part, a unique prefix, a name, or 'last'; else the last session
    pub id: Option<String>,
    /// Only these paths, and what lies under them
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Only what commit or rollback would stop at: '-' is on the tree now, '+' is what it would put there
    #[arg(long, group = "sides")]
    pub conflicts: bool,
    /// Only what this step changed
    #[arg(long, value_name = "N", group = "sides", value_parser = super::number::<u32>)]
    pub step: Option<u32>,
    /// Only what came after this step, up to the head; 0 is the tree as it was
    #[arg(long, value_name = "N", group = "sides", value_parser = super::number::<u32>)]
    pub since: Option<u32>,
    /// Compare two sessions: '-' is ID, '+' is this one; what one of them does not change is compared with what was there before
    #[arg(long, value_name = "ID", group = "sides")]
    pub with: Option<String>,
    /// The extent of the output.
    #[command(flatten)]
    pub much: Much,
}

/// The extent of a difference's output.
#[derive(Debug, Args)]
pub struct Much {
    /// Count lines instead of showing them
    #[arg(long, conflicts_with = "name_only")]
    pub stat: bool,
    /// Paths alone
    #[arg(long)]
    pub name_only: bool,
    /// List changes of the mtime alone too
    #[arg(long)]
    pub all: bool,
}

/// `cat`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant cat last notes.txt
  recant cat last notes.txt --before")]
pub struct Cat {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// A path of the session
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Content before the session
    #[arg(long, group = "side")]
    pub before: bool,
    /// Content after it, which is the default
    #[arg(long, group = "side")]
    pub after: bool,
    /// Content that --force overwrote
    #[arg(long, group = "side")]
    pub displaced: bool,
}

/// `log`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant log
  recant log k3fa -n 5")]
pub struct Log {
    /// Only the entries of this session
    pub id: Option<String>,
    /// The newest N lines; else output.paths (20), and with --json all
    #[arg(short = 'n', long, value_name = "N", value_parser = super::number::<usize>)]
    pub lines: Option<usize>,
    /// All lines
    #[arg(long, conflicts_with = "lines")]
    pub all: bool,
}
