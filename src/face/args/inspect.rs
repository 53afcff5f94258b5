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
}

/// `review`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant review                          the last one that holds something
  recant review k3fa
  recant review --next                   one that waits after the other
  recant review k3fa --with 9xqd         two attempts
  recant review --snapshot last          what changed since a snapshot

On the left the changes as a tree, on the right the difference of the one under
the cursor. Space chooses a directory, a file or a block; c commits what is
chosen, d discards it, r rolls it back. Each act is asked for, with its numbers.
There m takes a reason, as -m does: an agent that waits is told it.
'?' explains all keys. The window needs 80 columns and 24 rows.")]
pub struct Review {
    /// Id, its last part, a unique prefix, a name, or 'last'; else the last session that holds something, else the last
    pub id: Option<String>,
    /// The pending sessions of this project, agents' first, the oldest first: once nothing of one is held any more, or with 'q', the next
    #[arg(long, conflicts_with_all = ["id", "with", "snapshot"])]
    pub next: bool,
    /// Compare with this session: '-' is ID, '+' is this one
    #[arg(long, value_name = "OTHER", requires = "id")]
    pub with: Option<String>,
    /// The changes since this snapshot: a number, a label, or 'last'
    #[arg(long, value_name = "N", conflicts_with_all = ["id", "with"])]
    pub snapshot: Option<String>,
    /// With --snapshot: of this directory or file; else of the project that you are in
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
  recant diff k3fa --since 4             and what came after that
  recant diff k3fa --with 9xqd           two attempts
  recant diff k3fa --blocks              what commit k3fa PATH:2,5-7 can take
  recant diff --word-diff                which words differ
  recant diff -U 10 -w                   more around, and blanks do not count
  recant diff --find-renames=70%         with what was renamed and edited
  recant diff --tool meld                side by side
  recant diff --html > changes.html      one page for a browser, for others
  recant diff --relative | git apply     in a repository
  recant diff last > /tmp/last.patch && patch -p1 -d / < /tmp/last.patch

The output is a patch that git apply takes at /, also with -U and
--find-renames; with --relative, that it takes inside a repository, without what
is git's own. Lines that begin with '#' say what a patch cannot. With colour the
words that differ are marked.

A tool gets two directories of copies: what was there, and what is there
instead, of the files and links that changed. They are removed when it ends.
What it writes to a file of the second is held, as a step of the session, if
that is held and compared with what was there; all other copies are read-only.
vimdiff and nvimdiff are run file by file; ':cq' ends that. Any other command
of a shell gets the two as $OLD and $NEW, or appended where it names neither:
--tool 'diff -r'.")]
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
    #[arg(long, value_name = "N", group = "sides", value_parser = super::words::number::<u32>)]
    pub step: Option<u32>,
    /// Only what came after this step, up to the head; 0 is the tree as it was
    #[arg(long, value_name = "N", group = "sides", value_parser = super::words::number::<u32>)]
    pub since: Option<u32>,
    /// Compare two sessions: '-' is ID, '+' is this one; what one of them does not change is compared with what was there before
    #[arg(long, value_name = "OTHER", group = "sides")]
    pub with: Option<String>,
    /// Number the blocks of changed lines, which commit, discard and rollback take as PATH:2,5-7
    #[arg(long, group = "sides", conflicts_with_all = ["stat", "name_only", "html"])]
    pub blocks: bool,
    /// The extent of the output.
    #[command(flatten)]
    pub much: Much,
    /// Give each change lines of its own: in new directories, in what package managers, compilers and caches made, in .git
    #[arg(long, conflicts_with_all = ["conflicts", "blocks", "name_only", "html", "tool"])]
    pub full: bool,
    /// Give paths from DIR on, and only what lies below it, as git apply takes it there; else from the top of the repository that you are in
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, value_hint = clap::ValueHint::DirPath,
          conflicts_with_all = ["conflicts", "blocks", "stat", "name_only", "html", "tool", "full"])]
    pub relative: Option<Option<PathBuf>>,
    /// Show a deleted file that came back elsewhere, N% of it the same (50), as a rename
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
    /// Paths alone
    #[arg(long)]
    pub name_only: bool,
    /// List changes of the mtime alone too
    #[arg(long)]
    pub all: bool,
    /// Make one page for a browser, with nothing to load: to look at side by side, print, and send to others
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
    /// Show N lines around each change; else 3
    #[arg(short = 'U', long, value_name = "N", value_parser = super::words::number::<u32>, conflicts_with_all = ["stat", "name_only"])]
    pub unified: Option<u32>,
    /// Do not count white space: show no change of that alone
    #[arg(short = 'w', long, conflicts_with = "name_only")]
    pub ignore_space: bool,
    /// Show it in this program: difft, meld, vimdiff, any command; without NAME in diff.tool
    #[arg(long, value_name = "NAME", num_args = 0..=1, value_hint = clap::ValueHint::CommandString,
          conflicts_with_all = ["stat", "name_only", "word_diff", "unified", "ignore_space"])]
    pub tool: Option<Option<String>>,
}

fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|n| (1..=100).contains(n));
    number.ok_or_else(|| "a part in percent is wanted: 1% to 100%".into())
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
    /// Content that --force overwrote
    #[arg(long, group = "side")]
    pub displaced: bool,
}

/// `await`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant await k3fa
  recant await k3fa --for 10m --json

It ends when somebody else commits, discards, rolls back or rewinds the session,
or a part of it, and prints what was done, and why (-m). An agent that has not
heard of such an act yet is told at once. Where nothing is held any more, the
last act is told at once. It exits with 6 if TIME is over first.")]
pub struct Await {
    /// Id, its last part, a unique prefix, a name, or 'last'; else the last session
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
  recant log src/main.rs                 what changed it, and the way back
  recant log --agent claude --since 2d   of this project; --all of all projects
  recant log --verify                    whether it is as it was written

A word that a session is called by is that session: ./k3fa is always a path. Of
a PATH those are listed that changed it or something below it: sessions, their
steps, turns of agents, and snapshots in which it is another than in the one
before; each with the command that takes that back.")]
pub struct Log {
    /// Only the entries of this session; or what changed these paths
    #[arg(value_name = "ID|PATH", value_hint = clap::ValueHint::AnyPath)]
    pub what: Vec<PathBuf>,
    /// The newest N lines; else output.paths (20), and with --json all
    #[arg(short = 'n', long, value_name = "N", value_parser = super::words::number::<usize>)]
    pub lines: Option<usize>,
    /// Only what was done since TIME: an age (2d: a number and s, m, h, d or w), or a date (2026-03-01)
    #[arg(long, value_name = "TIME", value_parser = super::words::since)]
    pub since: Option<super::words::Since>,
    /// Of all projects; else of the one that you are in, unless an ID or a PATH is given
    #[arg(long)]
    pub all: bool,
    /// Only what this agent did, or what was done with its sessions
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Check that each line is as it was when the next one was written
    #[arg(long, conflicts_with_all = ["what", "lines", "since", "all", "agent"])]
    pub verify: bool,
}
