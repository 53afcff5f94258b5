//! `session`, `checkpoint`, and the verbs that are short for theirs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::settings;

/// The verbs under `session`.
#[derive(Debug, Subcommand)]
pub enum SessionVerb {
    /// Begin a session to stage changes in; prints its id
    New(New),
    /// Stage content for a file, from standard input or a file
    Write(Write),
    /// Stage the deletion of a path
    Delete(Delete),
    /// Stage a new directory
    Mkdir(Mkdir),
    /// Stage a symlink
    Symlink(Symlink),
    /// Stage new permission bits
    Chmod(Chmod),
    /// Give a session another name, or none
    Rename(Rename),
    /// Print a session as one stream, for another store or machine
    Export(Export),
    /// Read a session from a stream; it is pending, with the same id
    Import(Import),
}

/// `session new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  id=$(recant session new)
  recant session new -n upgrade")]
pub struct New {
    /// A name to call it by: letters, digits, '.', '_', '-', a letter first
    #[arg(short, long)]
    pub name: Option<String>,
}

/// `session write`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo 'port = 80' | recant session write $id /etc/app.conf
  recant session write $id bin/tool --from build/tool --mode 0755 -p")]
pub struct Write {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The file
    #[arg(value_hint = clap::ValueHint::FilePath)]
    pub path: PathBuf,
    /// Read the content from FILE; default: standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Permission bits, octal; default: those of the replaced file, or 0666 less the umask
    #[arg(long, value_parser = mode)]
    pub mode: Option<u32>,
    /// The rights to make or replace what is in the way
    #[command(flatten)]
    pub place: Place,
}

/// Permission to make missing parents of a new name, and to replace a directory in its place.
#[derive(Debug, Args)]
pub struct Place {
    /// Also stage missing directories above it
    #[arg(short, long)]
    pub parents: bool,
    /// Replace a directory with all that is in it
    #[arg(short, long)]
    pub recursive: bool,
}

/// `session delete`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session delete $id old.conf
  recant session delete $id build -r")]
pub struct Delete {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The path to delete
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,
    /// A directory with all that is in it
    #[arg(short, long)]
    pub recursive: bool,
}

/// `session mkdir`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session mkdir $id site/assets -p
  recant session mkdir $id private --mode 0700")]
pub struct Mkdir {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The directory
    #[arg(value_hint = clap::ValueHint::DirPath)]
    pub path: PathBuf,
    /// Permission bits, octal; default: 0777 less the umask
    #[arg(long, value_parser = mode)]
    pub mode: Option<u32>,
    /// Also stage missing directories above it
    #[arg(short, long)]
    pub parents: bool,
}

/// `session symlink`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session symlink $id releases/42 current")]
pub struct Symlink {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The link's target
    pub target: OsString,
    /// The path of the link
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,
    /// The rights to make or replace what is in the way
    #[command(flatten)]
    pub place: Place,
}

/// `session chmod`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session chmod $id 0755 bin/tool")]
pub struct Chmod {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// Permission bits, octal
    #[arg(value_parser = mode)]
    pub mode: u32,
    /// The file or directory
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,
}

/// `list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant list                            of this project
  recant list --all --status pending     of all projects
  recant list --since 2d --path src
  recant list --json | jq -r '.sessions[].id'

Sessions of the current project are listed; with --path or -H, of all projects.")]
pub struct List {
    /// Sessions of all projects
    #[arg(long)]
    pub all: bool,
    /// Only those in STATUS: running, pending, committed, rolled-back, discarded; several with commas
    #[arg(long, value_name = "STATUS", value_delimiter = ',', hide_possible_values = true)]
    pub status: Vec<StatusWord>,
    /// Only those that changed since TIME: an age (2d: a number and s, m, h, d or w), or a date (2026-03-01)
    #[arg(long, value_name = "TIME", value_parser = super::words::since)]
    pub since: Option<super::words::Since>,
    /// Only those that change PATH, or something below it
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// The newest N, 0 for all; default: output.paths (20), with --json all
    #[arg(long, value_name = "N", value_parser = super::words::number::<usize>)]
    pub limit: Option<usize>,
}

/// A session's status, as `--status` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StatusWord {
    /// Its command runs
    Running,
    /// All is held
    Pending,
    /// It is on the tree
    Committed,
    /// It was on the tree
    #[value(alias = "rolled_back")]
    RolledBack,
    /// Its changes are gone
    Discarded,
}

impl StatusWord {
    /// The word of listings and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Pending => "pending",
            Self::Committed => "committed",
            Self::RolledBack => "rolled_back",
            Self::Discarded => "discarded",
        }
    }
}

/// `show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant show
  recant show k3fa src                   what it holds there
  recant show k3fa --json

The first 20 changes are listed (output.paths). If only some of them are on the
tree, the smaller group comes first.")]
pub struct Show {
    /// Id, its last part, a unique prefix, a name; default: the last session
    pub id: Option<String>,
    /// Only these paths and all below them
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
}

/// `discard`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant discard last                    recant undo brings it back
  recant discard k3fa src/main.rs tmp    what it holds there; the rest is kept
  recant discard k3fa src/main.rs:2,5-7  these blocks (diff --blocks)
  recant discard k3fa 7pqa -y            several: all of them, or none
  recant discard --all                   shows what is pending here, and asks
  recant discard k3fa --now              frees its content: cannot be undone

A PATH means all below it. In a session of which nothing was ever committed, the
discard of a PATH is a step: rewind takes it back. A word after the first one is
a PATH if that session holds a change there, else a session; ./7pqa is always a
path. If one of the sessions is not found, none is discarded. Without a
terminal, --all needs -y. A discarded session is kept for a week
(retention.discarded), less if 5 GiB are kept so, or the disk is full.")]
pub struct Discard {
    /// Id, its last part, a unique prefix, a name, or 'last'
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "ID")]
    pub id: Option<String>,
    /// Only these paths and all below them; PATH:2,5-7: only its blocks 2 and 5 to 7; or further sessions
    #[arg(value_name = "PATH|ID", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Ask about each block
    #[arg(long, short, conflicts_with = "all")]
    pub patch: bool,
    /// All pending sessions of the current project; with -H, of that machine
    #[arg(long)]
    pub all: bool,
    /// Free what it holds at once, also if it was discarded before; this cannot be undone
    #[arg(long, conflicts_with_all = ["all", "patch"])]
    pub now: bool,
    /// Say what would be discarded, and change nothing
    #[arg(long, conflicts_with = "all")]
    pub dry_run: bool,
    /// The reason, for the log and for an agent that works in the session
    #[arg(long, short, value_name = "REASON", value_parser = super::words::reason)]
    pub message: Option<String>,
}

/// `rewind`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant steps k3fa                      which steps there are
  recant rewind k3fa 3                   as it was after step 3
  recant rewind k3fa 7                   and forward again
  recant rewind k3fa 0 --dry-run

The other steps are kept. The next command goes on from the step at which the
session is then; if that has a later step, it begins a branch. The tree is not
touched.")]
pub struct Rewind {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The number of the step; 0 is the tree as it was
    #[arg(value_name = "STEP", value_parser = super::words::number::<u32>)]
    pub step: u32,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The reason, for the log and for an agent that works in the session
    #[arg(long, short, value_name = "REASON", value_parser = super::words::reason)]
    pub message: Option<String>,
}

/// `fork`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant fork k3fa -n other              begins as k3fa is now
  recant fork k3fa 3 -n other            begins as k3fa was after step 3
  recant run --session other -- make test
  recant diff k3fa --with other

The two sessions are independent. What the new one begins with is its step 1.")]
pub struct Fork {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The number of the step; default: the one at which the session is now
    #[arg(value_name = "STEP", value_parser = super::words::number::<u32>)]
    pub step: Option<u32>,
    /// The name of the new session
    #[arg(short, long, value_name = "NAME")]
    pub name: Option<String>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `session rename`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session rename k3fa upgrade
  recant session rename upgrade          removes the name")]
pub struct Rename {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The new name; without one the session has none
    pub name: Option<String>,
}

/// `session export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session export k3fa > k3fa.recant
  recant session export last | ssh web1 recant session import

The stream has the changes, their content, and hashes of what was there before.
For a session from a run the hashes are taken now: a path that was changed since
is a conflict, and nothing is exported.

With --checkpoint a committed session is exported with its originals, for a
machine that has a copy of its tree: there it can be rolled back.")]
pub struct Export {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// Include the originals of a committed session, for a machine that has its tree
    #[arg(long)]
    pub checkpoint: bool,
}

/// `session import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session import < k3fa.recant
  recant session import --map /home/ann/site=/srv/site < k3fa.recant

Prints the id. The session is pending here: diff shows it, commit makes it real.
A path that is not as the session found it is a conflict, and named at once
(exit status 3); the session is kept. Importing the same stream again changes
nothing.")]
pub struct Import {
    /// Move paths below FROM to below TO; of several, the longest FROM counts
    #[arg(long, value_name = "FROM=TO")]
    pub map: Vec<OsString>,
}

/// `prune`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("kind"), after_help = "Examples:
  recant prune --dry-run
  recant prune -y                        by the settings, for cron and scripts
  recant prune --sessions --keep 50 --dry-run
  recant prune --sessions k3fa           by name, even if it is pending
  recant prune --discarded               frees what undo could bring back
  recant prune --checkpoints --older-than 30d --committed
  recant prune --snapshots --number 3    of the current project
  recant prune --snapshots --all ~/src/old

Without a kind, or without conditions, the settings choose: finished sessions
and checkpoints that no rollback needs, by retention.keep and
retention.older_than (none if neither is set); snapshots by snapshot.keep and
snapshot.max_size. Conditions that are given together must all hold.

What is held, and what --force overwrote, is pruned only by name; a damaged
session only by its whole id; what a rollback needs only by name or with
--committed. A pruned session cannot be redone, a pruned checkpoint cannot be
rolled back. The newest snapshot of a directory is kept, except with --all.")]
pub struct Prune {
    /// Sessions by id or name; with --snapshots a directory; default: the current project
    #[arg(value_name = "ID|DIR", requires = "kind")]
    pub of: Vec<OsString>,
    /// Sessions
    #[arg(long, group = "kind")]
    pub sessions: bool,
    /// Originals that commits have kept; the sessions stay
    #[arg(long, group = "kind")]
    pub checkpoints: bool,
    /// Content that discarded sessions hold; their records stay
    #[arg(long, group = "kind", conflicts_with_all = ["of", "committed"])]
    pub discarded: bool,
    /// Snapshots of a directory
    #[arg(long, group = "kind")]
    pub snapshots: bool,
    /// Those last changed, or taken, longer ago than AGE: a number and s, m, h, d or w
    #[arg(long, value_name = "AGE", value_parser = age, requires = "kind")]
    pub older_than: Option<i64>,
    /// All but the newest N
    #[arg(long, value_name = "N", value_parser = super::words::number::<usize>, allow_negative_numbers = true, requires = "kind")]
    pub keep: Option<usize>,
    /// The oldest, until the rest take no more than this, as in 500M or 2GiB
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "kind")]
    pub max_size: Option<u64>,
    /// Also those that are committed: they can no longer be rolled back
    #[arg(long, requires = "kind", conflicts_with = "snapshots")]
    pub committed: bool,
    /// This snapshot, a damaged one too
    #[arg(long, value_name = "N", value_parser = super::words::number::<u64>, requires = "snapshots", conflicts_with_all = CONDITIONS)]
    pub number: Vec<u64>,
    /// All snapshots of the named directory, the newest and damaged ones too
    #[arg(long, requires = "snapshots", conflicts_with_all = CONDITIONS, conflicts_with = "number")]
    pub all: bool,
    /// Say what would be pruned, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The options of `prune` that choose by age, number and size.
const CONDITIONS: [&str; 3] = ["older_than", "keep", "max_size"];

/// The verbs under `checkpoint`.
#[derive(Debug, Subcommand)]
pub enum CheckpointVerb {
    /// List all checkpoints, the newest first
    #[command(after_help = "Examples:
  recant checkpoint list")]
    List,
    /// Show what a checkpoint keeps, path by path
    Show(CheckpointShow),
    /// Read every original, and name those that are damaged
    Verify(CheckpointVerify),
}

/// `checkpoint show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant checkpoint show last")]
pub struct CheckpointShow {
    /// Id, its last part, a unique prefix, a name; default: the last session
    pub id: Option<String>,
}

/// `checkpoint verify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant checkpoint verify
  recant checkpoint verify k3fa")]
pub struct CheckpointVerify {
    /// Id, its last part, a unique prefix, a name, or 'last'; default: all
    pub id: Option<String>,
}

fn mode(text: &str) -> Result<u32, String> {
    let octal = !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| octal && *bits <= 0o7777);
    bits.ok_or_else(|| "permission bits are octal, 0 to 7777, as in 0644".into())
}

fn age(text: &str) -> Result<i64, String> {
    settings::age(text)
}

fn size(text: &str) -> Result<u64, String> {
    settings::size(text)
}
