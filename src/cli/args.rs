//! The words of the command line, as clap reads them; completions and man pages come from the same definition.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config;

/// Holds the file changes of commands, shows them, commits them with a checkpoint, and takes them back exactly.
#[derive(Debug, Parser)]
#[command(
    name = "recant",
    version,
    disable_help_subcommand = true,
    propagate_version = false,
    after_help = "Examples:
  recant run -- make install      every file change is held
  recant diff                     look at it
  recant commit last              make it real, with a checkpoint
  recant rollback last            exactly as before
  recant list                     all sessions
  recant status                   how things stand, and what to do about it

Exit status:
  0 done, 1 refused or failed: nothing changed, 2 usage, 3 conflict: nothing
  changed, 4 done, but something named was left out, 5 the store is damaged,
  6 busy: another recant holds it, 7 stuck: an operation can be neither
  finished nor undone now; run: 125 not set up, 126 not executable, 127 not
  found, 128+n ended by signal n, else as the command"
)]
pub struct Cli {
    /// Options of all verbs.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options before or after any verb.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of all verbs")]
pub struct Global {
    /// The store; else $RECANT_STORE, store.path, $XDG_DATA_HOME/recant
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub store: Option<PathBuf>,
    /// Print one JSON document; errors are one JSON object on stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// Lists: one JSON document a line
    #[arg(long, global = true)]
    pub jsonl: bool,
    /// When to colour: auto (on a terminal), always, never
    #[arg(long, global = true, value_name = "WHEN", hide_possible_values = true)]
    pub color: Option<When>,
    /// Say only what must not be missed
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Skip questions
    #[arg(short, long, global = true)]
    pub yes: bool,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl From<When> for config::Color {
    fn from(when: When) -> Self {
        match when {
            When::Auto => Self::Auto,
            When::Always => Self::Always,
            When::Never => Self::Never,
        }
    }
}

const CONFIG: &str = "Examples:
  recant config
  recant config --json | jq -r .file

Settings, in config.toml of the folder recant in $XDG_CONFIG_HOME or ~/.config:
  [store]
  path = '/srv/recant'         the store; --store and $RECANT_STORE go first
  warn_size = '5G'             status warns when it is larger
  [capture]
  also = ['/srv/www']          folders whose changes run holds beside the usual
  pass = ['~/.cache']          paths that stay real in a run
  hide = ['~/.ssh']            paths that a run cannot see
  scratch = ['/srv/build']     paths whose changes a run drops at its end
  [checkpoint]
  max_files = 100              a deleted folder with more files is large
  max_size = '50M'             so is one with more bytes
  on_limit = 'full'            of a large one: full, partial, refuse
  [commit]
  deny = ['*.key', '/etc/']    never committed; globs as in .gitignore
  minor = ['~/.cache']         left out where they conflict; globs likewise
  [retention]
  keep = 50                    a prune without conditions keeps the newest 50
  older_than = '30d'           and takes what is older than that
At the top, before the first table:
  color = 'auto'               auto, always, never
  pager = 'less'               '' for none; else $PAGER";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command with its file changes held: the real tree stays as it is
    Run(Run),
    /// Your shell, with its file changes held
    Shell(Shell),
    /// Stage changes by hand, and look after sessions
    #[command(after_help = "Examples:
  id=$(recant session new)
  echo 'port = 80' | recant session write $id app.conf
  recant session delete $id old.conf
  recant diff $id && recant commit $id")]
    Session {
        /// What to do.
        #[command(subcommand)]
        verb: SessionVerb,
    },
    /// List all sessions, the newest first; short for session list
    #[command(after_help = "Examples:
  recant list
  recant list --jsonl | jq -r 'select(.status == \"pending\").id'")]
    List,
    /// Show a session and its changes; short for session show
    Show(Show),
    /// Drop what a session holds; short for session discard
    Discard(Discard),
    /// Show a session's changes as a patch
    Diff(Diff),
    /// Make a session's changes real; what was there goes into its checkpoint
    Commit(Commit),
    /// Take back what was committed: everything as it was before
    #[command(after_help = "Examples:
  recant rollback last --dry-run
  recant rollback last
  recant rollback k3fa etc/app.conf      this path alone

What somebody has changed since the commit is a conflict: nothing is done, and
every such path is named. --force goes on, and keeps what it overwrites:
recant cat ID PATH --displaced.")]
    Rollback(Back),
    /// Commit again what was rolled back
    #[command(after_help = "Examples:
  recant redo last --dry-run
  recant redo k3fa etc/app.conf          this path alone")]
    Redo(Back),
    /// Look after checkpoints: what commits took off the tree
    #[command(after_help = "Examples:
  recant checkpoint list
  recant checkpoint verify               are all originals as they were taken?
  recant checkpoint prune k3fa           ends its rollback, frees its bytes")]
    Checkpoint {
        /// What to do.
        #[command(subcommand)]
        verb: CheckpointVerb,
    },
    /// Undo or settle what was interrupted
    Recover(Recover),
    /// Print the content of a path as a session has it
    Cat(Cat),
    /// Show how things stand: sessions, interrupted operations, damage, size
    #[command(after_help = "Examples:
  recant status
  recant status --json | jq .store.bytes")]
    Status,
    /// Show what was done: commits, rollbacks, prunes
    Log(Log),
    /// Try whether run works here, and show what it would hold
    Doctor(Doctor),
    /// Print the settings in force, and where each comes from
    #[command(after_help = CONFIG)]
    Config,
    /// Print a shell's completions
    Completions(Completions),
    /// Print a manual page, or write all of them into a folder
    Man(Man),
}

/// The verbs under `session`.
#[derive(Debug, Subcommand)]
pub enum SessionVerb {
    /// Begin a session to stage changes in; prints its id
    New(New),
    /// Stage content for a file, from standard input or a file
    Write(Write),
    /// Stage the deletion of a path
    Delete(Delete),
    /// Stage a new folder
    Mkdir(Mkdir),
    /// Stage a symlink
    Symlink(Symlink),
    /// Stage other permission bits
    Chmod(Chmod),
    /// List all sessions, the newest first
    #[command(after_help = "Examples:
  recant session list")]
    List,
    /// Show a session and its changes
    Show(Show),
    /// Drop what a session holds
    Discard(Discard),
    /// Give a session another name, or none
    Rename(Rename),
    /// Remove sessions that are not needed any more
    #[command(after_help = "Examples:
  recant session prune --older-than 30d --dry-run
  recant session prune --keep 50
  recant session prune k3fa              by name: whatever it holds

Conditions that are given together all have to hold; without any, those of the
settings do (retention.keep, retention.older_than). Only sessions that are named
lose what a commit or a rollback still needs; a damaged one goes by its whole
id alone.")]
    Prune(Prune),
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
    /// Stage missing folders too
    #[arg(short, long)]
    pub parents: bool,
    /// Replace a folder with all that is in it
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
    /// What to delete
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,
    /// A folder with all that is in it
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
    /// The folder
    #[arg(value_hint = clap::ValueHint::DirPath)]
    pub path: PathBuf,
    /// Permission bits, octal; else 0777 less the umask
    #[arg(long, value_parser = mode)]
    pub mode: Option<u32>,
    /// Stage missing folders too
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
    /// What the link says
    pub target: OsString,
    /// Where the link is
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,
    /// Stage missing folders too
    #[arg(short, long)]
    pub parents: bool,
    /// Replace a folder with all that is in it
    #[arg(short, long)]
    pub recursive: bool,
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
    /// The file or folder
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub path: PathBuf,
}

/// `show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant show
  recant show k3fa --json")]
pub struct Show {
    /// Id, its last part, a unique prefix, a name; else the last session
    pub id: Option<String>,
    /// List all: every path of crowded folders, changes of the mtime alone, every mount
    #[arg(long)]
    pub all: bool,
}

/// `discard`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant discard last
  recant discard k3fa -y")]
pub struct Discard {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
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

/// `session prune` and `checkpoint prune`.
#[derive(Debug, Args)]
pub struct Prune {
    /// Ids or names of sessions: these, whatever a commit or rollback needs
    pub ids: Vec<String>,
    /// What last changed longer ago: a number and s, m, h, d or w
    #[arg(long, value_name = "AGE", value_parser = age, conflicts_with = "ids")]
    pub older_than: Option<i64>,
    /// All but the newest N
    #[arg(long, value_name = "N", conflicts_with = "ids")]
    pub keep: Option<usize>,
    /// The oldest, until the rest take no more than this: a number and K, M or G
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "ids")]
    pub max_size: Option<u64>,
    /// Say what would go, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

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
    /// Drop checkpoints that no rollback needs, or those that are named
    #[command(after_help = "Examples:
  recant checkpoint prune --older-than 30d --dry-run
  recant checkpoint prune k3fa           by name: this ends its rollback

Conditions that are given together all have to hold; without any, those of the
settings do (retention.keep, retention.older_than). The sessions stay.")]
    Prune(Prune),
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

/// `diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant diff
  recant diff k3fa src --stat
  recant diff last --name-only
  recant diff last > /tmp/last.patch && patch -p1 -d / < /tmp/last.patch")]
pub struct Diff {
    /// Id, its last part, a unique prefix, a name, or 'last'; else the last session
    pub id: Option<String>,
    /// Only these paths, and what lies under them
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
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
    /// What a --force overwrote
    #[arg(long, group = "side")]
    pub displaced: bool,
}

/// `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant run -- make install
  recant run --commit -- ./migrate.sh    committed if it exits with 0
  recant run -n upgrade npm install      '--' may be left out
  recant run --session upgrade -- npm test
  recant run --scratch target --max-size 2G -- cargo build

What is written in your home folder, the project of the working folder, /tmp,
/var/tmp and capture.also is held; everything else is read-only for the command.
recant exits as the command does.")]
pub struct Run {
    /// A name to call the session by
    #[arg(short, long, conflicts_with = "session")]
    pub name: Option<String>,
    /// Go on in a pending session that came from a run
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Commit if the command exits with 0
    #[arg(long, conflicts_with = "discard")]
    pub commit: bool,
    /// Drop what the command changed
    #[arg(long)]
    pub discard: bool,
    /// Of a large deleted folder keep all (full) or no content (partial), or refuse; else checkpoint.on_limit
    #[arg(long, value_name = "POLICY", requires = "commit", hide_possible_values = true)]
    pub on_limit: Option<OnLimit>,
    /// Write 'id=…' into FILE before the command starts, and 'result=…' at the end
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub id_file: Option<PathBuf>,
    /// Leave PATH real: a socket, a file, or a folder with all in it
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub pass: Vec<PathBuf>,
    /// Do not let the command see PATH
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub hide: Vec<PathBuf>,
    /// Drop what is written at PATH when the command has ended
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub scratch: Vec<PathBuf>,
    /// End the command once it has written more than SIZE: a number and K, M or G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// With --commit: a conflict in a place of commit.minor stops the commit, like any other
    #[arg(long, requires = "commit")]
    pub strict: bool,
    /// End background processes with the command, instead of waiting for them
    #[arg(long)]
    pub no_wait: bool,
    /// Give the command no network but a loopback of its own, and no abstract sockets
    #[arg(long)]
    pub no_network: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// `shell`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant shell
  recant shell k3fa                      goes on in a pending session of a run")]
pub struct Shell {
    /// A pending session that came from a run; else a new one
    pub id: Option<String>,
}

/// `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant doctor
  recant doctor --json | jq .run
  recant doctor --apparmor | sudo tee /etc/apparmor.d/recant")]
pub struct Doctor {
    /// Print the AppArmor profile that lets recant make user namespaces
    #[arg(long)]
    pub apparmor: bool,
}

/// `commit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant commit last --dry-run
  recant commit last
  recant commit k3fa src/main.rs docs    these paths and what lies under them
  recant commit last --strict            a conflict in ~/.cache stops it too

What stands on the tree otherwise than the session found it is a conflict:
nothing is done, and every such path is named. --force goes on; what it finds is
what a rollback gives back. In a place of commit.minor (caches, histories,
temporary files) a path of a run that conflicts is left out, and the rest is
committed: exit status 4.")]
pub struct Commit {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// Only these paths, and what lies under them
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on over conflicts: what is found is kept, and a rollback gives it back
    #[arg(long)]
    pub force: bool,
    /// Of a large deleted folder keep all (full) or no content (partial), or refuse; else checkpoint.on_limit
    #[arg(long, value_name = "POLICY", hide_possible_values = true)]
    pub on_limit: Option<OnLimit>,
    /// Commit what a restart of the machine may have left incomplete
    #[arg(long)]
    pub accept_unsynced: bool,
    /// A conflict in a place of commit.minor stops the commit, like any other
    #[arg(long)]
    pub strict: bool,
    /// List every path, also in crowded folders
    #[arg(long)]
    pub all: bool,
}

/// `rollback` and `redo`.
#[derive(Debug, Args)]
pub struct Back {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// Only these paths, and what lies under them
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on over conflicts; what is overwritten is kept (recant cat ID PATH --displaced)
    #[arg(long)]
    pub force: bool,
    /// List every path, also in crowded folders
    #[arg(long)]
    pub all: bool,
}

/// `recover`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant recover                         undo or settle all that was interrupted
  recant recover k3fa                    this session's alone
  recant recover k3fa --force            put back also what somebody has changed since; what is found is kept
  recant recover k3fa --finish           leave that as it is; what was there before is kept")]
pub struct Recover {
    /// This session alone; else all
    pub id: Option<String>,
    /// Where the session's header cannot tell: take back what was done
    #[arg(long, requires = "id", conflicts_with_all = ["finish", "force"])]
    pub undo: bool,
    /// Leave as they are the paths that somebody has changed; where the header cannot tell: keep what was done
    #[arg(long, requires = "id", conflicts_with = "force")]
    pub finish: bool,
    /// Put back also what somebody has changed, and keep what is found there
    #[arg(long, requires = "id")]
    pub force: bool,
}

/// The policies for large deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnLimit {
    /// Keep all of it, and say how much it is
    Full,
    /// Do not keep its content, and say so
    Partial,
    /// Touch nothing
    Refuse,
}

/// `log`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant log
  recant log k3fa -n 5")]
pub struct Log {
    /// What was done with this session alone
    pub id: Option<String>,
    /// The newest N lines
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<usize>,
}

/// `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant completions bash > ~/.local/share/bash-completion/completions/recant
  recant completions fish > ~/.config/fish/completions/recant.fish")]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant man | man -l -
  recant man session write | man -l -
  recant man --dir ~/.local/share/man/man1")]
pub struct Man {
    /// The verb; else recant itself
    pub verb: Vec<String>,
    /// Write the pages of all verbs into DIR
    #[arg(long, value_name = "DIR", conflicts_with = "verb", value_hint = clap::ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

fn mode(text: &str) -> Result<u32, String> {
    let octal = !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| octal && *bits <= 0o7777);
    bits.ok_or_else(|| "permission bits are octal, 0 to 7777, as in 0644".into())
}

fn age(text: &str) -> Result<i64, String> {
    config::age(text)
}

fn size(text: &str) -> Result<u64, String> {
    config::size(text)
}
