//! Verbs that change the tree: `commit`, `rollback`, `redo`, `recover`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::diff::picked::Picked;

/// `commit`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  recant commit last --dry-run
  recant commit last
  recant commit k3fa src/main.rs docs    these paths and what lies under them
  recant commit k3fa src/main.rs:2,5-7   these blocks alone (diff --blocks)
  recant commit last --patch             asked block by block
  recant commit last --merge             with what was edited there since
  recant commit last --confirm-within 5m
                                         rolled back unless confirmed
  recant commit last --strict            a conflict in ~/.cache stops it too

A path that the tree has otherwise than the session found it is a conflict:
nothing is done, and every such path is named. --force goes on, and a rollback gives
back what it found (except an unexpected directory: move that away). In a place
of commit.minor (caches, histories, temporary files) a path of a run that
conflicts is left out, and the rest is committed: exit status 4.")]
pub struct Commit {
    /// The session, and what of it
    #[command(flatten)]
    pub what: What,
    /// Ask of each block whether it is committed; the rest stays held
    #[arg(long, short)]
    pub patch: bool,
    /// Put changes of files that somebody has edited since onto what is there now
    #[arg(long, conflicts_with_all = ["patch", "force"])]
    pub merge: bool,
    /// Go on over conflicts: what is found is kept, and a rollback gives it back
    #[arg(long)]
    pub force: bool,
    /// For a large directory that was deleted or renamed: keep all (full) or no content (partial); else checkpoint.on_limit
    #[arg(long, value_name = "POLICY", hide_possible_values = true)]
    pub on_limit: Option<OnLimit>,
    /// Commit what a restart of the machine may have left incomplete
    #[arg(long)]
    pub accept_unsynced: bool,
    /// A conflict in a place of commit.minor stops the commit, like any other
    #[arg(long)]
    pub strict: bool,
    /// Roll it back by itself unless recant confirm comes within TIME: a number and s, m, h or d
    #[arg(long, value_name = "TIME", value_parser = within, conflicts_with = "dry_run")]
    pub confirm_within: Option<i64>,
    /// List every path, also in crowded directories
    #[arg(long)]
    pub all: bool,
}

/// `confirm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant commit last --confirm-within 5m
  recant confirm last

After the time is over it is too late: the commit is rolled back (exit status 1).")]
pub struct Confirm {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// Wait until it is confirmed, and roll it back when the time is over
    #[arg(long, hide = true)]
    pub watch: bool,
}

/// The session and the paths of `commit`, `rollback` and `redo`.
#[derive(Debug, Clone, Args)]
pub struct What {
    /// Id, its last part, a unique prefix, a name, or 'last'
    pub id: String,
    /// Only these paths, and what lies under them; PATH:2,5-7 for blocks of one
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The picks of a person on a screen, in place of paths
    #[arg(skip)]
    pub picked: Option<Picked>,
    /// True if recant commits the picks by itself: as a session of their own beside this one, also where they are all of it
    #[arg(skip)]
    pub beside: bool,
}

/// `rollback`.
#[derive(Debug, Args)]
pub struct Back {
    /// The session, and what of it
    #[command(flatten)]
    pub what: What,
    /// Ask of each block whether it is taken back, by a session of its own
    #[arg(long, short)]
    pub patch: bool,
    /// Take the changes out of files that somebody has edited since, by a session of its own
    #[arg(long, conflicts_with_all = ["patch", "force"])]
    pub merge: bool,
    /// Go on over conflicts; what is overwritten is kept (recant cat ID PATH --displaced)
    #[arg(long)]
    pub force: bool,
    /// List every path, also in crowded directories
    #[arg(long)]
    pub all: bool,
}

/// `undo`: `rollback`, with `last` where no session is named.
#[derive(Debug)]
pub struct Undo(pub Back);

impl FromArgMatches for Undo {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Back::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Args for Undo {
    fn augment_args(command: Command) -> Command {
        Back::augment_args(command).mut_arg("id", with_default).mut_arg("paths", |paths| paths.index(2))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Back::augment_args_for_update(command).mut_arg("id", with_default).mut_arg("paths", |paths| paths.index(2))
    }
}

fn with_default(id: Arg) -> Arg {
    id.required(false)
        .default_value("last")
        .hide_default_value(true)
        .help("Id, its last part, a unique prefix, a name; else 'last'")
}

/// `redo`.
#[derive(Debug, Args)]
pub struct Redo {
    /// The session, and what of it
    #[command(flatten)]
    pub what: What,
    /// Go on over conflicts; what is overwritten is kept (recant cat ID PATH --displaced)
    #[arg(long)]
    pub force: bool,
    /// List every path, also in crowded directories
    #[arg(long)]
    pub all: bool,
    /// For a large directory that was deleted or renamed: keep all (full) or no content (partial); else checkpoint.on_limit
    #[arg(long, value_name = "POLICY", hide_possible_values = true)]
    pub on_limit: Option<OnLimit>,
}

/// `recover`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant recover                  undo or settle all that was interrupted;
                                  a cut-off run --in becomes a session
  recant recover k3fa             this session's alone
  recant recover k3fa --undo      undo it, where the session's header is damaged
  recant recover k3fa --give-up-unmounted
                                  end it without a disk that is gone")]
pub struct Recover {
    /// This session alone; else all
    pub id: Option<String>,
    /// If the session's header is damaged: undo what was done
    #[arg(long, requires = "id", conflicts_with_all = ["finish", "give_up_unmounted"])]
    pub undo: bool,
    /// If the session's header is damaged: keep what was done, if complete. A run --in that was cut off ends without a session
    #[arg(long, requires = "id", conflicts_with = "give_up_unmounted")]
    pub finish: bool,
    /// End it without the file systems that are not mounted: they are gone for good
    #[arg(long, requires = "id")]
    pub give_up_unmounted: bool,
}

/// The policies for large deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnLimit {
    /// Keep all of it, and say how much it is
    Full,
    /// Do not keep its content, and say so
    Partial,
}

fn within(text: &str) -> Result<i64, String> {
    let seconds = crate::config::age(text).map_err(|_| format!("{text:?} is no time: a number and s, m, h or d, as in 5m"))?;
    // A year is as good as never.
    if (1..=366 * 86_400).contains(&seconds) { Ok(seconds) } else { Err("from 1s to 366d".into()) }
}
