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
    /// Stage other permission bits
    Chmod(Chmod),
    /// Give a session another name, or none
    Rename(Rename),
    /// Print a session as one stream, for another store or machine
    Export(Export),
    /// Take a session out of a stream: pending, with the same id
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
    /// Read the content from FILE; else from standard input
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub from: Option<PathBuf>,
    /// Permission bits, octal; else those of the replaced file, or 0666 less the umask
    #[arg(long, value_parser = mode)]
    pub mode: Option<u32>,
    /// The rights to make or replace what is in the way
    #[command(flatten)]
    pub place: Place,
}

/// Permission to make missing parents of a new name, and to replace a directory in its place.
#[derive(Debug, Args)]
pub struct Place {
    /// Stage missing directories too
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
    /// Permission bits, octal; else 0777 less the umask
    #[arg(long, value_parser = mode)]
    pub mode: Option<u32>,
    /// Stage missing directories too
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

The project is the one that you are in. With --path, and with -H, sessions of
all projects are listed.")]
pub struct List {
    /// Sessions of all projects
    #[arg(long)]
    pub all: bool,
    /// Only those that are STATUS: running, pending, committed, rolled-back, discarded; several with commas
    #[arg(long, value_name = "STATUS", value_delimiter = ',', hide_possible_values = true)]
    pub status: Vec<StatusWord>,
    /// Only those that changed since TIME: an age (2d: a number and s, m, h, d or w), or a date (2026-03-01)
    #[arg(long, value_name = "TIME", value_parser = super::words::since)]
    pub since: Option<super::words::Since>,
    /// Only those that change PATH, or something below it
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: Option<PathBuf>,
    /// The newest N; 0 for all; else output.paths (20), and with --json all
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

The first 20 changes are listed (output.paths). Where some are on the tree and
some are not, those come first that are fewer.")]
pub struct Show {
    /// Id, its last part, a unique prefix, a name; else the last session
    pub id: Option<String>,
    /// Only these paths, and what lies under them
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
  recant discard k3fa --now              frees it: nothing brings it back

A PATH stands for all below it. It leaves a session of which nothing was ever
committed, as a step of its own: rewind takes it back. A word behind the first
one is a PATH if that session holds a change there, else a session: ./7pqa is
always a path. Every session that is named is looked up before the first one is
discarded. --all needs -y where there is no terminal to ask at. A discarded
session is kept for a week (retention.discarded), less if 5 GiB are kept so, or
the disk is full.")]
pub struct Discard {
    /// Id, its last part, a unique prefix, a name, or 'last'
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "ID")]
    pub id: Option<String>,
    /// Only these paths, and what lies under them; PATH:2,5-7 for blocks of one; or further sessions
    #[arg(value_name = "PATH|ID", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Ask of each block whether it leaves the session
    #[arg(long, short, conflicts_with = "all")]
    pub patch: bool,
    /// All that are pending in the project that you are in; with -H on that machine
    #[arg(long)]
    pub all: bool,
    /// Free what it holds at once, also where it is discarded already: nothing brings it back
    #[arg(long, conflicts_with_all = ["all", "patch"])]
    pub now: bool,
    /// Say what would be discarded, and change nothing
    #[arg(long, conflicts_with = "all")]
    pub dry_run: bool,
    /// The reason, for the log; an agent that works in the session is told
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

The other steps stay. The next command goes on at the step at which the session
stands; if that has a later one, it begins a branch. Nothing on the tree is
touched.")]
pub struct Rewind {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The number of the step; 0 is the tree as it was
    #[arg(value_name = "STEP", value_parser = super::words::number::<u32>)]
    pub step: u32,
    /// Only tell what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// The reason, for the log; an agent that works in the session is told
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

Both sessions live on by themselves. What the new one begins with is its step 1.")]
pub struct Fork {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// The number of the step; else the one at which the session stands
    #[arg(value_name = "STEP", value_parser = super::words::number::<u32>)]
    pub step: Option<u32>,
    /// The name of the new session
    #[arg(short, long, value_name = "NAME")]
    pub name: Option<String>,
    /// Only tell what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// `session rename`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session rename k3fa upgrade
  recant session rename upgrade          takes the name away")]
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

The stream holds the changes, with what was there before as hashes, and the
content. Of a session that came from a run these hashes are taken now: a path
that was changed since is a conflict, and nothing is exported.

With --checkpoint a committed session goes to where its tree went (a copy of the
disk, another machine): it is committed there, and can be rolled back there.")]
pub struct Export {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// Of a committed session: the originals, for a machine that has its tree
    #[arg(long)]
    pub checkpoint: bool,
}

/// `session import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant session import < k3fa.recant
  recant session import --map /home/ann/site=/srv/site < k3fa.recant

Prints the id. The session is pending here: diff shows it, commit makes it real.
A path that the tree has otherwise than the session found it is a conflict, and
named at once (exit status 3); the session is kept. The same stream once more
changes nothing.")]
pub struct Import {
    /// Put what lies below FROM below TO; of several the longest FROM counts
    #[arg(long, value_name = "FROM=TO")]
    pub map: Vec<OsString>,
}

/// `prune`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("kind"), after_help = "Examples:
  recant prune --dry-run
  recant prune -y                        by the settings, for cron and scripts
  recant prune --sessions --keep 50 --dry-run
  recant prune --sessions k3fa           by name: whatever it holds
  recant prune --discarded               frees what undo could bring back
  recant prune --checkpoints --older-than 30d --committed
  recant prune --snapshots --number 3    of the project that you are in
  recant prune --snapshots --all ~/src/old

Without a kind the settings say what goes: finished sessions and checkpoints
that no rollback needs by retention.keep and retention.older_than (none where
neither is set), snapshots by snapshot.keep and snapshot.max_size. So do they
for a kind without conditions; conditions that are given together all have to
hold.

What is held, and what --force overwrote, goes only by name, a damaged session
by its whole id; what a rollback needs by name or with --committed. A pruned
session gives up its redo, a pruned checkpoint its rollback. The newest snapshot
of a directory stays, except with --all.")]
pub struct Prune {
    /// Sessions by id or name; with --snapshots the directory, else the project's
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
    /// Those last changed, or taken, longer ago: a number and s, m, h, d or w
    #[arg(long, value_name = "AGE", value_parser = age, requires = "kind")]
    pub older_than: Option<i64>,
    /// All but the newest N
    #[arg(long, value_name = "N", value_parser = super::words::number::<usize>, allow_negative_numbers = true, requires = "kind")]
    pub keep: Option<usize>,
    /// The oldest, until the rest take no more than this, as in 500M or 2GiB
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "kind")]
    pub max_size: Option<u64>,
    /// Also what is committed: its rollback is given up
    #[arg(long, requires = "kind", conflicts_with = "snapshots")]
    pub committed: bool,
    /// This snapshot, a damaged one too
    #[arg(long, value_name = "N", value_parser = super::words::number::<u64>, requires = "snapshots", conflicts_with_all = CONDITIONS)]
    pub number: Vec<u64>,
    /// All snapshots of the directory that is named, the newest and damaged ones too
    #[arg(long, requires = "snapshots", conflicts_with_all = CONDITIONS, conflicts_with = "number")]
    pub all: bool,
    /// Say what would go, and change nothing
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
    /// Read every original, and tell those that are not as they were taken
    Verify(CheckpointVerify),
}

/// `checkpoint show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant checkpoint show last")]
pub struct CheckpointShow {
    /// Id, its last part, a unique prefix, a name; else the last session
    pub id: Option<String>,
}

/// `checkpoint verify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant checkpoint verify
  recant checkpoint verify k3fa")]
pub struct CheckpointVerify {
    /// Id, its last part, a unique prefix, a name, or 'last'; else all
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
