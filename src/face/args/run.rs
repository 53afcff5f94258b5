//! Verbs that hold changes: `run` and `shell`; and `doctor`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::settings::Entry;

/// `run`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  recant run -- make install
  recant run --commit -- ./migrate.sh    committed if it exits with 0
  recant run -n upgrade npm install      '--' may be left out
  recant run --session work -- npm test  a session for many commands
  recant run --session work --serve web -- npm run dev
  recant run --session work --stop web
  recant run --scratch target --max-size 2G -- cargo build
  recant run --in ~/src/app -- make      nothing is held: between two snapshots

Run by root, all that is written is held, but what is the kernel's. Run by
another user, what is written in the home directory, the project of the working
directory, directories above it and in PATH that are his, /tmp, /var/tmp and
capture.also is held; everything else is read-only. recant doctor shows it.
Inside, recant, diff, show, status, steps, list and log work. recant exits as
the command does; with --in, with 4 where that ended with 0 and what it did to
some path is not known.

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
    /// Words that stand for the command in listings
    #[arg(long, value_name = "TEXT", value_parser = super::words::label)]
    pub label: Option<String>,
    /// With --session: wait so long for a command that runs in it, instead of joining it, as in 30s or 5m
    #[arg(long, value_name = "TIME", requires = "session", value_parser = super::words::duration)]
    pub wait: Option<i64>,
    /// With --session: begin a service of that name, which goes on in the background until it is stopped; returns once it has run for a second
    #[arg(
        long,
        value_name = "NAME",
        requires = "session",
        conflicts_with_all = ["wait", "inside", "commit", "discard", "no_wait"],
        value_parser = service
    )]
    pub serve: Option<String>,
    /// With --session: end the service of that name: SIGTERM, after 10 s SIGKILL
    #[arg(
        long,
        value_name = "NAME",
        requires = "session",
        conflicts_with_all = ["serve", "wait", "inside", "commit", "discard", "no_wait", "wait_background", "pass", "hide", "closed", "scratch", "max_size", "no_network", "network", "command"]
    )]
    pub stop: Option<String>,
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
    /// Close ssh keys, cloud credentials, keyrings and other secrets to the command (agent.closed)
    #[arg(long)]
    pub closed: bool,
    /// With --closed: leave PATH open
    #[arg(long, value_name = "PATH", requires = "closed", value_hint = clap::ValueHint::AnyPath)]
    pub open: Vec<PathBuf>,
    /// Drop what is written at PATH when the command has ended
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub scratch: Vec<PathBuf>,
    /// End the command once it has written more than SIZE, as in 2G: exit status 137, nothing is committed
    #[arg(long, value_name = "SIZE", value_parser = crate::settings::size)]
    pub max_size: Option<u64>,
    /// End background processes with the command, instead of waiting for them
    #[arg(long)]
    pub no_wait: bool,
    /// Wait for them at most so long, as in 30s, then end them
    #[arg(long, value_name = "TIME", value_parser = super::words::duration, conflicts_with_all = ["no_wait", "serve"])]
    pub wait_background: Option<i64>,
    /// Give the command no network but a loopback of its own, and no abstract sockets; with --in as a user, no TCP
    #[arg(long)]
    pub no_network: bool,
    /// Let the command reach these hosts alone, by a proxy: HOST, HOST:PORT, *.DOMAIN, an address, or 'registries' for those of package managers
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', conflicts_with = "no_network", value_parser = Entry::parse)]
    pub network: Vec<Entry>,
    /// The process with which this one is asked to end
    #[arg(long, hide = true, value_name = "PID")]
    pub parent: Option<i32>,
    /// The command and its arguments; '--' comes before a command whose name begins with '-'
    #[arg(required_unless_present = "stop", trailing_var_arg = true, value_hint = clap::ValueHint::CommandWithArguments)]
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

fn service(text: &str) -> Result<String, String> {
    crate::session::check_name(text).map(|()| text.to_owned()).map_err(str::to_owned)
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
