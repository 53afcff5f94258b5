//! Verbs that change the tree: `commit`, `rollback`, `redo`, `recover`.

use std::path::PathBuf;

use clap::Args;

/// `commit`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  recant commit last --dry-run
  recant commit last
  recant commit k3fa src/main.rs docs    these paths and what lies under them
  recant commit k3fa src/main.rs:2,5-7   these blocks alone (diff --blocks)
  recant commit k3fa@7                   if it still stands at step 7
  recant commit last --patch             asked block by block
  recant commit last --merge             with what was edited there since
  recant commit last --confirm-within 5m
                                         rolled back unless confirmed

A path that the tree has otherwise than the session found it is a conflict:
nothing is done, and every such path is named. --force goes on, and a rollback
gives back what it found (except an unexpected directory: move that away). In a
place of commit.minor (caches, histories, temporary files) a path of a run that
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
    /// Commit what a restart of the machine may have left incomplete
    #[arg(long)]
    pub accept_unsynced: bool,
    /// Roll it back by itself unless recant confirm comes within TIME: a number and s, m, h or d
    #[arg(long, value_name = "TIME", value_parser = within, conflicts_with = "dry_run")]
    pub confirm_within: Option<i64>,
}

/// `confirm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant commit last --confirm-within 5m
  recant confirm last

After the time is over it is too late: the commit is rolled back (exit status
1).")]
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
    /// The reason, for the log; an agent that works in the session is told
    #[arg(long, short, value_name = "REASON", value_parser = super::words::reason)]
    pub message: Option<String>,
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
}

/// `undo`.
#[derive(Debug, Clone, Args)]
pub struct Undo {
    /// Id, its last part, a unique prefix, a name: the newest act on this session; else the newest of this project
    pub id: Option<String>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take the changes out of files that somebody has edited since, by a session of its own
    #[arg(long, conflicts_with = "force")]
    pub merge: bool,
    /// Go on over conflicts; what is overwritten is kept (recant cat ID PATH --displaced)
    #[arg(long)]
    pub force: bool,
}

/// `redo`.
#[derive(Debug, Clone, Args)]
pub struct Redo {
    /// Id, its last part, a unique prefix, a name, or 'last': this session; else what the newest undo took back
    pub id: Option<String>,
    /// Only these paths, and what lies under them
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on over conflicts; what is overwritten is kept (recant cat ID PATH --displaced)
    #[arg(long)]
    pub force: bool,
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

fn within(text: &str) -> Result<i64, String> {
    let seconds = crate::settings::age(text).map_err(|_| format!("{text:?} is no time: a number and s, m, h or d, as in 5m"))?;
    // A year is as good as never.
    if (1..=366 * 86_400).contains(&seconds) { Ok(seconds) } else { Err("from 1s to 366d".into()) }
}
