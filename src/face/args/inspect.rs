//! Verbs that look at sessions: `steps`, `diff`, `cat`, `log`.

use std::path::PathBuf;

use clap::Args;

/// `steps`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant steps
  recant steps k3fa -v                   all of them
  recant diff k3fa --step 4              what step 4 changed

A step is what one command of run --session NAME changed. It builds on the step
below it; step 0 is the tree as it was. The head is the step at which the
session is now. +3 ~1 -2: 3 paths created, 1 modified, 2 deleted.")]
pub struct Steps {
    /// Id, its last part, a unique prefix, a name, or 'last'; default: the last session
    pub id: Option<String>,
}

/// `review`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant review                          the last one that holds something
  recant review k3fa
  recant review --next                   each pending one, one after the other
  recant review k3fa --with 9xqd         two attempts
  recant review --snapshot last          what changed since a snapshot

On the left are the changes as a tree, on the right the difference of the one
under the cursor. Space chooses a directory, a file or a block; c commits what
is chosen, d discards it, r rolls it back. Each asks first, and says how much it
would change. At the question, m adds a reason, as -m does.
'?' explains all keys. The window needs 80 columns and 24 rows.")]
pub struct Review {
    /// Id, its last part, a unique prefix, a name, or 'last'; default: the last session that holds something, else the last
    pub id: Option<String>,
    /// Review the pending sessions of this project in turn, agents' first, the oldest first; the next one
    /// opens with 'q', or once the current one holds nothing
    #[arg(long, conflicts_with_all = ["id", "with", "snapshot"])]
    pub next: bool,
    /// Compare with this session: '-' is ID, '+' is this one
    #[arg(long, value_name = "OTHER", requires = "id")]
    pub with: Option<String>,
    /// The changes since this snapshot: a number, a label, or 'last'
    #[arg(long, value_name = "N", conflicts_with_all = ["id", "with"])]
    pub snapshot: Option<String>,
    /// With --snapshot: the one of this directory or file; default: the current project
    #[arg(long, value_name = "DIR|FILE", requires = "snapshot", value_hint = clap::ValueHint::AnyPath)]
    pub dir: Option<PathBuf>,
}

/// `diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant diff
  recant diff k3fa src --stat
  recant diff last --name-only
  recant diff k3fa --conflicts           what prevents a commit or rollback
  recant diff k3fa --step 4              what its step 4 changed
  recant diff k3fa --since 4             what came after step 4
  recant diff k3fa --with 9xqd           two attempts
  recant diff k3fa --blocks              what commit k3fa PATH:2,5-7 can take
  recant diff --word-diff                which words differ
  recant diff -U 10 -w                   10 lines around, white space ignored
  recant diff --find-renames=70%         with renamed files that were edited
  recant diff --tool meld                side by side
  recant diff --html > changes.html      one page for a browser
  recant diff --relative | git apply     in a repository
  recant diff last > /tmp/last.patch && patch -p1 -d / < /tmp/last.patch

The output is a patch for git apply at /, also with -U and --find-renames; with
--relative, for git apply in a repository, without git's own files. Lines that
begin with '#' say what a patch cannot. With colour, words that differ are
marked.

A tool gets two directories with copies of the files and links that changed, as
they were and as they are instead. They are removed when it ends. An edit in the
second is held as a step of the session, if that file is held and compared with
what was there; all other copies are read-only. vimdiff and nvimdiff run file by
file; ':cq' stops. Any other shell command gets the two as $OLD and $NEW, or
appended if it names neither: --tool 'diff -r'.")]
pub struct Diff {
    /// Id, its last part, a unique prefix, a name, or 'last'; default: the last session
    pub id: Option<String>,
    /// Only these paths and all below them
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Only the conflicts of a commit or rollback: '-' is on the tree now, '+' is what it would put there
    #[arg(long, group = "sides")]
    pub conflicts: bool,
    /// Only what this step changed
    #[arg(long, value_name = "N", group = "sides", value_parser = super::words::number::<u32>)]
    pub step: Option<u32>,
    /// Only what changed after this step, up to the head; 0 is the tree as it was
    #[arg(long, value_name = "N", group = "sides", value_parser = super::words::number::<u32>)]
    pub since: Option<u32>,
    /// Compare two sessions: '-' is ID, '+' is OTHER; a path that only one of them changes is compared with its original
    #[arg(long, value_name = "OTHER", group = "sides")]
    pub with: Option<String>,
    /// Number the blocks of changed lines, which commit, discard and rollback take as PATH:2,5-7
    #[arg(long, group = "sides", conflicts_with_all = ["stat", "name_only", "html"])]
    pub blocks: bool,
    /// The extent of the output.
    #[command(flatten)]
    pub much: Much,
    /// List each change: in new directories, in what package managers, compilers and caches made, in .git
    #[arg(long, conflicts_with_all = ["conflicts", "blocks", "name_only", "html", "tool"])]
    pub full: bool,
    /// Print only what lies below DIR, with paths relative to it, for git apply there; default: the top of the current repository
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, value_hint = clap::ValueHint::DirPath,
          conflicts_with_all = ["conflicts", "blocks", "stat", "name_only", "html", "tool", "full"])]
    pub relative: Option<Option<PathBuf>>,
    /// Show a deleted file as a rename if a created one is N% the same; default: 50
    #[arg(long, value_name = "N%", num_args = 0..=1, require_equals = true, default_missing_value = "50", value_parser = percent,
          conflicts_with_all = ["name_only", "tool", "conflicts"])]
    pub find_renames: Option<u8>,
}

/// The extent of a difference's output.
#[derive(Debug, Args)]
pub struct Much {
    /// Count lines instead of showing them
    #[arg(long, conflicts_with = "name_only")]
    pub stat: bool,
    /// Print only the paths
    #[arg(long)]
    pub name_only: bool,
    /// Also list changes of the mtime alone
    #[arg(long)]
    pub all: bool,
    /// Print one page for a browser, side by side, that loads nothing
    #[arg(long, conflicts_with_all = ["stat", "name_only", "word_diff", "tool"])]
    pub html: bool,
    /// The form of what is shown.
    #[command(flatten)]
    pub form: Form,
}

/// The form of a difference, for people.
#[derive(Debug, Args)]
pub struct Form {
    /// Show which words differ: [-old-]{+new+}
    #[arg(long, conflicts_with_all = ["stat", "name_only"])]
    pub word_diff: bool,
    /// Show N lines around each change; default: 3
    #[arg(short = 'U', long, value_name = "N", value_parser = super::words::number::<u32>, conflicts_with_all = ["stat", "name_only"])]
    pub unified: Option<u32>,
    /// Ignore white space
    #[arg(short = 'w', long, conflicts_with = "name_only")]
    pub ignore_space: bool,
    /// Show it in this program: difft, meld, vimdiff or any command; without NAME, in diff.tool
    #[arg(long, value_name = "NAME", num_args = 0..=1, value_hint = clap::ValueHint::CommandString,
          conflicts_with_all = ["stat", "name_only", "word_diff", "unified", "ignore_space"])]
    pub tool: Option<Option<String>>,
}

fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|n| (1..=100).contains(n));
    number.ok_or_else(|| "expected 1% to 100%".into())
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
    /// The content before the session
    #[arg(long, group = "side")]
    pub before: bool,
    /// The content that --force overwrote
    #[arg(long, group = "side")]
    pub displaced: bool,
}

/// `await`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant await k3fa
  recant await k3fa --for 10m --json

It ends when another caller commits, discards, rolls back or rewinds the session
or a part of it, and prints what was done, and why (-m). It ends at once after
an act that the calling agent has not seen yet, or if nothing is held any more.
It exits with 6 if TIME is over first.")]
pub struct Await {
    /// Id, its last part, a unique prefix, a name, or 'last'; default: the last session
    pub id: Option<String>,
    /// Wait no longer than TIME, as in 30s or 5m
    #[arg(long = "for", value_name = "TIME", value_parser = super::words::duration)]
    pub longest: Option<i64>,
}

/// `log`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant log
  recant log k3fa -n 5                   what was done with one session
  recant log src/main.rs                 what changed it, and how to undo that
  recant log --agent claude --since 2d   in this project; --all: in all projects
  recant log --verify                    was it changed after it was written?

A word that names a session means the session; ./k3fa is always a path. For a
PATH, all that changed it or something below it is listed: sessions, their
steps, turns of agents, and snapshots that differ there from the one before;
each with the command that takes it back.")]
pub struct Log {
    /// Only the entries of this session; or what changed these paths
    #[arg(value_name = "ID|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub what: Vec<PathBuf>,
    /// The newest N lines; default: output.paths (20), with --json all
    #[arg(short = 'n', long, value_name = "N", value_parser = super::words::number::<usize>)]
    pub lines: Option<usize>,
    /// Only what was done since TIME: an age (2d: a number and s, m, h, d or w), or a date (2026-03-01)
    #[arg(long, value_name = "TIME", value_parser = super::words::since)]
    pub since: Option<super::words::Since>,
    /// In all projects; default: the current one, unless an ID or a PATH is given
    #[arg(long)]
    pub all: bool,
    /// Only what this agent did, or what was done with its sessions
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Check that no line was changed after the next one was written
    #[arg(long, conflicts_with_all = ["what", "lines", "since", "all", "agent"])]
    pub verify: bool,
}
