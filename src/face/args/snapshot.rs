//! `snapshot`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::inspect::Much;
use super::words::number;

/// The verbs under `snapshot`.
#[derive(Debug, Subcommand)]
pub enum SnapshotVerb {
    /// Take a snapshot of a directory or file; prints its number
    Create(SnapshotCreate),
    /// List the snapshots of a directory, the newest first
    List(SnapshotList),
    /// Show a snapshot: what it holds, and what was left out
    Show(SnapshotShow),
    /// Show what has changed since a snapshot, or between two
    Diff(SnapshotDiff),
    /// Read all that snapshots need, and name what is damaged
    Verify(SnapshotVerify),
    /// Restore a directory from a snapshot; a rollback takes it back
    Restore(SnapshotRestore),
}

/// The directory or file that `create` and `list` are about.
#[derive(Debug, Args)]
pub struct Of {
    /// The directory or file; default: the current project
    #[arg(value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    dir: Option<PathBuf>,
    /// Directory or file, given as an option
    #[arg(long = "dir", id = "of", value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath, conflicts_with = "dir")]
    option: Option<PathBuf>,
}

impl Of {
    /// The path as given.
    pub fn named(&self) -> Option<&Path> {
        self.dir.as_deref().or(self.option.as_deref())
    }
}

/// `snapshot create`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant snapshot create -m 'before the upgrade'
  recant snapshot create --once turn-7 --keep 10      at most one for turn-7
  recant snapshot create --if-changed --preset dev ~/src/app
  recant snapshot create state.json --meta turn=7     of one file alone

Without DIR it is the current project: the nearest directory upwards with .git,
.hg, Cargo.toml, pyproject.toml, package.json, go.mod, Makefile, pom.xml or
Gemfile, below the home directory; else the working directory. The snapshot has
all that is in it, except what --exclude, --gitignore, --preset and
.recantignore files name, and version control's own: .git, .hg, .svn, .jj and
bare repositories. These rules are kept, and a restore touches nothing that they
leave out.")]
pub struct SnapshotCreate {
    /// The directory or file
    #[command(flatten)]
    pub of: Of,
    /// A description
    #[arg(short, long)]
    pub message: Option<String>,
    /// A word to restore it by (the newest that has it): letters, digits, '.', '_', '-', a letter first
    #[arg(long)]
    pub label: Option<String>,
    /// A key and a value, which show and list print
    #[arg(long, value_name = "K=V", value_parser = pair)]
    pub meta: Vec<(String, String)>,
    /// Take none if files, rules, label and key are those of the last one; prints that one's number
    #[arg(long)]
    pub if_changed: bool,
    /// Take none if one with this KEY exists; prints that one's number
    #[arg(long, value_name = "KEY")]
    pub once: Option<String>,
    /// Keep the newest N; default: the setting snapshot.keep
    #[arg(long, value_name = "N", value_parser = number::<usize>, allow_negative_numbers = true)]
    pub keep: Option<usize>,
    /// Leave out what matches, as a line of .gitignore does; overrides such files
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// Leave out what .gitignore files name
    #[arg(long)]
    pub gitignore: bool,
    /// Leave out a built-in list; dev: what builds and tools can make again, and .env*
    #[arg(long, value_name = "NAME", value_parser = ["dev"], hide_possible_values = true)]
    pub preset: Vec<String>,
    /// Include .git, .hg, .svn, .jj and bare repositories
    #[arg(long)]
    pub with_vcs: bool,
    /// Take it however many files there are
    #[arg(long)]
    pub all: bool,
}

/// `snapshot list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant snapshot list
  recant snapshot list ~/src/app --json | jq '.snapshots[].n'
  recant snapshot list --all             every directory that has some")]
pub struct SnapshotList {
    /// The directory or file
    #[command(flatten)]
    pub of: Of,
    /// List all directories that have snapshots, deleted ones too
    #[arg(long, conflicts_with_all = ["dir", "of"])]
    pub all: bool,
}

/// `snapshot show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant snapshot show last
  recant snapshot show 3 -v              every path in it")]
pub struct SnapshotShow {
    /// A number, a label, or 'last': the newest that was not taken by run --in
    #[arg(value_name = "N")]
    pub key: String,
    /// Snapshots of this directory or file; default: the current project
    #[arg(long, value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub dir: Option<PathBuf>,
}

/// `snapshot diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant snapshot diff last              what has changed since
  recant snapshot diff 3 5 --stat        between two
  recant snapshot diff 3 -- src          in this directory alone
  recant snapshot diff 3 --word-diff     which words differ
  recant snapshot diff 3 --tool=meld     side by side
  recant snapshot diff 3 5 --html > changes.html

recant diff --help says more about the output.")]
pub struct SnapshotDiff {
    /// A number, a label, or 'last': the newest that was not taken by run --in
    #[arg(value_name = "N")]
    pub key: String,
    /// Another one; default: the directory as it is now
    #[arg(value_name = "M")]
    pub other: Option<String>,
    /// Only these paths and all below them
    #[arg(last = true, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Snapshots of this directory or file; default: the current project
    #[arg(long, value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub dir: Option<PathBuf>,
    /// Also compare .git, .hg, .svn, .jj and bare repositories, if the snapshot has them
    #[arg(long)]
    pub with_vcs: bool,
    /// How much of it is shown
    #[command(flatten)]
    pub much: Much,
}

/// `snapshot verify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant snapshot verify
  recant snapshot verify last --json | jq '.snapshots[].faults'

Exit status 5 if something is damaged; the next snapshot then stores its own
copy of what it would share with it.")]
pub struct SnapshotVerify {
    /// A number, a label, or 'last' (the newest that was not taken by run --in); default: all
    #[arg(value_name = "N")]
    pub key: Option<String>,
    /// Snapshots of this directory or file; default: the current project
    #[arg(long, value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub dir: Option<PathBuf>,
}

/// `snapshot restore`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant snapshot restore last --dry-run
  recant snapshot restore 3
  recant snapshot restore before-upgrade src/main.rs  this path alone
  recant snapshot restore 3 --safe       except what was edited since
  recant snapshot restore 0 state.json   of a file with its own snapshots

The directory is made exactly as it was: what was created since is removed, what
was deleted comes back. What the snapshot's own rules left out is not touched.
.git, .hg, .svn and .jj stay as they are without --with-vcs, and so does a
repository that was made since. A restore is a committed session: recant
rollback takes it back.")]
pub struct SnapshotRestore {
    /// A number, a label, or 'last': the newest that was not taken by run --in
    #[arg(value_name = "N")]
    pub key: String,
    /// Only these paths and all below them
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Snapshots of this directory or file; default: the current project
    #[arg(long, value_name = "DIR|FILE", value_hint = clap::ValueHint::AnyPath)]
    pub dir: Option<PathBuf>,
    /// Do not ask, and do not stop at files that change meanwhile or are open for writing
    #[arg(long, conflicts_with = "dry_run")]
    pub force: bool,
    /// Say what would be done, or what prevents it, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Leave what was created since
    #[arg(long)]
    pub keep_new: bool,
    /// Restore only what is as a later snapshot has it; name what was edited since
    #[arg(long)]
    pub safe: bool,
    /// Also restore .git, .hg, .svn, .jj and bare repositories, if the snapshot has them
    #[arg(long)]
    pub with_vcs: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) =
        text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected a key, '=' and a value, as in turn=7")?;
    Ok((key.into(), value.into()))
}
