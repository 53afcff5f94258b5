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
  recant run --in ~/src/app -- make      on the real files, with snapshots

As root, all writes are held, except to the kernel's file systems. As another
user, writes are held in the home directory, the current project, your own
directories above it and in PATH, /tmp, /var/tmp and capture.also; all else is
read-only. recant doctor -v lists the places. Inside, recant, diff, show,
status, steps, list and log work. recant exits with the command's status; with
--in, with 4 if that was 0 but some path's changes are not known.

stdout is the command's alone. With --json the document is the last line of
stderr. While the command runs, a session with a name (-n) can be used by it.")]
pub struct Run {
    /// A name for the new session
    #[arg(short, long, conflicts_with = "session")]
    pub name: Option<String>,
    /// Go on in the pending session of that name or id, or begin one of that name. If a command runs in it, join that run
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// A text to show instead of the command in listings
    #[arg(long, value_name = "TEXT", value_parser = super::words::label)]
    pub label: Option<String>,
    /// With --session: wait up to TIME, as in 30s or 5m, for a command that runs in it, instead of joining it
    #[arg(long, value_name = "TIME", requires = "session", value_parser = super::words::duration)]
    pub wait: Option<i64>,
    /// With --session: start the command as a service of that name, in the background until --stop; returns once it has run for a second
    #[arg(
        long,
        value_name = "NAME",
        requires = "session",
        conflicts_with_all = ["wait", "inside", "commit", "discard", "no_wait"],
        value_parser = service
    )]
    pub serve: Option<String>,
    /// With --session: stop the service of that name: SIGTERM, after 10 s SIGKILL
    #[arg(
        long,
        value_name = "NAME",
        requires = "session",
        conflicts_with_all = ["serve", "wait", "inside", "commit", "discard", "no_wait", "wait_background", "pass", "hide", "closed", "scratch", "max_size", "no_network", "network", "command"]
    )]
    pub stop: Option<String>,
    /// Run on the real files; only DIR, --pass, download caches (capture.caches) and /tmp are writable. The changes in
    /// DIR become a committed session. The store has to lie elsewhere
    #[arg(long = "in", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub inside: Vec<PathBuf>,
    /// Commit if the command exits with 0
    #[arg(long, conflicts_with = "discard")]
    pub commit: bool,
    /// Drop what the command changed; with --session, keep it as a step that rewind can go to
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
    /// Wait for background processes at most TIME, as in 30s, then end them
    #[arg(long, value_name = "TIME", value_parser = super::words::duration, conflicts_with_all = ["no_wait", "serve"])]
    pub wait_background: Option<i64>,
    /// Give the command only a private loopback, and no abstract sockets; with --in as an ordinary user, no TCP
    #[arg(long)]
    pub no_network: bool,
    /// Let the command reach only these hosts, by a proxy: HOST, HOST:PORT, *.DOMAIN, an address, or 'registries': the
    /// hosts of package managers
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
    /// A pending session that came from a run; default: a new one
    pub id: Option<String>,
    /// Go on in the pending session of that name, or begin it
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
  recant -H web1 doctor             another machine, and the connection to it
  recant doctor --json | jq .ways
  recant doctor --apparmor | sudo tee /etc/apparmor.d/recant

Each way to use recant is tested for real, and leaves nothing behind. Below one
that does not work is what to set or type. Exit status 125 if run does not work.")]
pub struct Doctor {
    /// Print the AppArmor profile that lets recant make user namespaces
    #[arg(long)]
    pub apparmor: bool,
}
