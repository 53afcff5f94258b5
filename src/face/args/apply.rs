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
  recant commit k3fa@7                   only if it is still at step 7
  recant commit last --patch             asks about each block
  recant commit last --merge             into files that were edited since
  recant commit last --confirm-within 5m
                                         rolled back unless confirmed

A path that was changed on the tree since it was held is a conflict: nothing is
done, and all conflicts are named. --force goes on, and a rollback restores what
it overwrote; an unexpected directory has to be moved away. Paths of a run in
commit.minor (caches, histories, temporary files) are left out if they conflict,
and the rest is committed: exit status 4.")]
pub struct Commit {
    /// The session, and what of it
    #[command(flatten)]
    pub what: What,
    /// Ask about each block; the rest stays held
    #[arg(long, short)]
    pub patch: bool,
    /// Merge the changes into files that were edited since
    #[arg(long, conflicts_with_all = ["patch", "force"])]
    pub merge: bool,
    /// Go on over conflicts; a rollback restores what is overwritten
    #[arg(long)]
    pub force: bool,
    /// Commit a session that a restart of the machine may have left incomplete
    #[arg(long)]
    pub accept_unsynced: bool,
    /// Roll back after TIME (a number and s, m, h or d) unless recant confirm comes first
    #[arg(long, value_name = "TIME", value_parser = within, conflicts_with = "dry_run")]
    pub confirm_within: Option<i64>,
}

/// `confirm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant commit last --confirm-within 5m
  recant confirm last

Once the time is over, the commit is rolled back, and confirm exits with 1.")]
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
    /// Only these paths and all below them; PATH:2,5-7: only its blocks 2 and 5 to 7
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The reason, for the log and for an agent that works in the session
    #[arg(long, short, value_name = "REASON", value_parser = super::words::reason)]
    pub message: Option<String>,
}

/// `rollback`.
#[derive(Debug, Args)]
pub struct Back {
    /// The session, and what of it
    #[command(flatten)]
    pub what: What,
    /// Ask about each block; makes a new session of those that are taken back
    #[arg(long, short)]
    pub patch: bool,
    /// Take the changes out of files that were edited since, and keep the edits; makes a new session
    #[arg(long, conflicts_with_all = ["patch", "force"])]
    pub merge: bool,
    /// Go on over conflicts; keep what is overwritten (recant cat ID PATH --displaced)
    #[arg(long)]
    pub force: bool,
}

/// `undo`.
#[derive(Debug, Clone, Args)]
pub struct Undo {
    /// Take back the newest act on this session: id, its last part, a unique prefix, a name; default: the newest act in this project
    pub id: Option<String>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take the changes out of files that were edited since, and keep the edits; makes a new session
    #[arg(long, conflicts_with = "force")]
    pub merge: bool,
    /// Go on over conflicts; keep what is overwritten (recant cat ID PATH --displaced)
    #[arg(long)]
    pub force: bool,
}

/// `redo`.
#[derive(Debug, Clone, Args)]
pub struct Redo {
    /// Id, its last part, a unique prefix, a name, or 'last'; default: what the newest undo took back
    pub id: Option<String>,
    /// Only these paths and all below them
    #[arg(value_hint = clap::ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on over conflicts; keep what is overwritten (recant cat ID PATH --displaced)
    #[arg(long)]
    pub force: bool,
}

/// `recover`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant recover                  finish or undo all that was interrupted;
                                  a cut-off run --in becomes a session
  recant recover k3fa             this session alone
  recant recover k3fa --undo      undo it, if the session's header is damaged
  recant recover k3fa --give-up-unmounted
                                  end it without a disk that is gone")]
pub struct Recover {
    /// This session alone; default: all
    pub id: Option<String>,
    /// If the session's header is damaged: undo what was done
    #[arg(long, requires = "id", conflicts_with_all = ["finish", "give_up_unmounted"])]
    pub undo: bool,
    /// If the session's header is damaged: keep what was done, if complete. For a run --in that was cut off: make no session
    #[arg(long, requires = "id", conflicts_with = "give_up_unmounted")]
    pub finish: bool,
    /// Go on without the file systems that are not mounted, as they are gone for good
    #[arg(long, requires = "id")]
    pub give_up_unmounted: bool,
}

fn within(text: &str) -> Result<i64, String> {
    let seconds =
        crate::settings::age(text).map_err(|_| format!("{text:?} is not a time: a number and s, m, h or d, as in 5m"))?;
    // A year is as good as never.
    if (1..=366 * 86_400).contains(&seconds) { Ok(seconds) } else { Err("from 1s to 366d".into()) }
}
