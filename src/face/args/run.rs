//! Verbs that hold changes: `run` and `shell`; and `doctor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// `run`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  recant run -- make install
  recant run --commit -- ./migrate.sh    committed if it exits with 0
  recant run -n upgrade npm install      '--' may be left out
  recant run --session work -- npm test  a session for many commands
  recant run --scratch target --max-size 2G -- cargo build
  recant run --in ~/src/app -- make      nothing is held: between two snapshots

Run by root, all that is written is held, but what is the kernel's. Run by
another user, what is written in the home directory, the project of the working
directory, /tmp, /var/tmp and capture.also is held; everything else is read-only
for the command. recant doctor shows it. recant exits as the command does; with
--in, with 4 where that ended with 0 and what it did to some path is not known.

stdout is the command's alone. With --json the document is the last line of
stderr. A session that has a name (-n) is called by it while the command runs.")]
pub struct Run {
    /// A name for the session, which is always a new one
    #[arg(short, long, conflicts_with = "session")]
    pub name: Option<String>,
    /// Go on in the pending session of that name; where there is none, begin one. Where a command runs in it, join that one. An id means the
    /// session that has it
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// With --session: wait so long for a command that runs in it, instead of joining it, as in 30s or 5m
    #[arg(long, value_name = "TIME", requires = "session", value_parser = wait)]
    pub wait: Option<i64>,
    /// Run on the real tree, writing to DIR, --pass, download caches (capture.caches) and /tmp alone; what changes in DIR is a committed
    /// session. The store has to lie elsewhere
    #[arg(long = "in", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub inside: Vec<PathBuf>,
    /// Commit if the command exits with 0
    #[arg(long, conflicts_with = "discard")]
    pub commit: bool,
    /// Drop what the command changed. With --session: set it aside, as a step that rewind goes to
    #[arg(long)]
    pub discard: bool,
    /// Leave PATH real: a socket, a file, or a directory with all in it
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub pass: Vec<PathBuf>,
    /// Do not let the command see PATH
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub hide: Vec<PathBuf>,
    /// Drop what is written at PATH when the command has ended
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub scratch: Vec<PathBuf>,
    /// End the command once it has written more than SIZE, as in 2G: exit status 137, nothing is committed
    #[arg(long, value_name = "SIZE", value_parser = crate::settings::size)]
    pub max_size: Option<u64>,
    /// End background processes with the command, instead of waiting for them
    #[arg(long)]
    pub no_wait: bool,
    /// Give the command no network but a loopback of its own, and no abstract sockets; with --in as a user, no TCP
    #[arg(long)]
    pub no_network: bool,
    /// The process with which this one is asked to end
    #[arg(long, hide = true, value_name = "PID")]
    pub parent: Option<i32>,
    /// The command and its arguments; '--' comes before a command whose name begins with '-'
    #[arg(required = true, trailing_var_arg = true, value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// `shell`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant shell
  recant shell --session work            begins that session, or goes on in it
  recant shell k3fa                      goes on in a pending session of a run

What you type goes into the shell's own history (bash, zsh, fish, ksh), which is
not held.")]
pub struct Shell {
    /// A pending session that came from a run; else a new one
    pub id: Option<String>,
    /// Go on in the pending session of that name; where there is none, begin one
    #[arg(long, value_name = "NAME", conflicts_with = "id")]
    pub session: Option<String>,
}

fn wait(text: &str) -> Result<i64, String> {
    crate::settings::age(text).map_err(|_| format!("{text:?} is no time: a number and s, m, h or d, as in 30s"))
}

/// `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  recant doctor
  recant doctor -v                  all places, with the reasons
  recant -H web1 doctor             of another machine, and the way there
  recant doctor --json | jq .ways
  recant doctor --apparmor | sudo tee /etc/apparmor.d/recant

Each way is really tried, and leaves nothing. Below one that does not work
stands what to set or type. Exit status 125 if a run does not work.")]
pub struct Doctor {
    /// Print the AppArmor profile that lets recant make user namespaces
    #[arg(long)]
    pub apparmor: bool,
}
