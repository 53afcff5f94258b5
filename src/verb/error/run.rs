//! Errors about commands: held ones, and those on the real tree.

use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::agent::Agent;
use crate::error::{Error, Kind, Reason, command, reason, shell_word};
use crate::fs::AbsPath;
use crate::remedy::{Command, Remedy, shell, words};
use crate::session::{Ending, Id};
use crate::verb::fact::{Collected, Lost};

/// The error of a command that was not started, whatever stood in its way.
pub fn not_started(why: Error) -> Error {
    let why = match why.kind() {
        // These say it.
        Kind::NotFound | Kind::NotExecutable | Kind::NoCapture => why,
        _ => {
            let rest = why.state().map(|state| format!("; {state}")).unwrap_or_default();
            why.with_state(format!("the command was not started{rest}"))
        }
    };
    why.with_reason(Reason::NotStarted)
}

/// The error if recant was started by another process than the one with which it is to end.
pub fn not_parent(parent: i32) -> Error {
    not_started(Error::refused(format!("process {parent} has ended, or is not the one that started this")))
}

/// The error for a program that takes recant's place, and cannot.
pub fn not_executed(program: &Path, why: &io::Error) -> Error {
    let kind = if why.kind() == io::ErrorKind::NotFound { Kind::NotFound } else { Kind::NotExecutable };
    Error::new(kind, format!("{}: {}", program.display(), reason(why))).without_state()
}

/// The error for a command that joined another one, and of which not all could be noted.
pub fn not_noted(why: Error, ending: Ending) -> Error {
    let state = format!("the command has run, and ended with {}; its step may not tell of it", ending.status());
    why.with_kind(Kind::LeftOut).with_state(state)
}

/// The error for a service inside a run, which holds what it changes already.
pub fn serves_inside(id: &str) -> Error {
    let why = format!("--serve does not work inside the run of session {id}, which holds all changes already");
    not_started(Error::usage(why).with_remedy("start it in the background: COMMAND &"))
}

/// The program that is started for the door of a run.
pub const OWN_PROGRAM: &str = "recant's own program";

/// The process that it becomes.
pub const ANSWERS: &str = "the program that answers inside the run";

/// The socket between it and the one who asks.
pub const CONNECTION: &str = "a connection";

/// The proxy of a run whose network is listed.
pub const PROXY: &str = "the proxy of the run";

/// The commands that may come next for a session, side by side.
pub fn next<const N: usize>(verbs: [&str; N], id: &Id) -> Remedy {
    let apart = verbs.iter().enumerate().map(|(i, verb)| (if i == 0 { "" } else { "    " }, verb));
    apart.fold(words(""), |all, (apart, verb)| all + apart + command(format_args!("{verb} {}", id.tail())))
}

/// The error of the commit after a run, with the ways to go on.
pub fn still_held(why: Error, id: &Id) -> Error {
    let remedy = || "what it changed is held: " + next(["diff", "commit", "discard"], id);
    if why.advice().is_some() { why } else { why.with_remedy(remedy()) }
}

/// The secret in the credentials of an agent.
pub const AGENT_S_CREDENTIALS: &str = "an agent's credentials";

/// The error for a path to hide that the session holds in another place, or has deleted.
pub fn moved_secret(path: &AbsPath, is_closed: bool) -> Error {
    let problem =
        Error::refused(format!("{path}: the session has deleted or moved it, so its content may be elsewhere in the session"));
    let open = || words(format_args!("--open {} goes on without closing it", shell_word(path.as_bytes())));
    if is_closed { problem.with_remedy(open()) } else { problem.with_remedy("leave out --hide, or begin another session") }
}

/// The warning about links of a run that stand for hidden files.
pub fn stand_ins(first: &AbsPath, more: usize) -> String {
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    format!("{first}{more}: a link in the place of a closed file, not its content: do not commit it over a copy")
}

/// The reason why the socket of the ssh agent stays real.
pub const SSH_AGENT: &str = "$SSH_AUTH_SOCK";

/// The reason why the history of a shell stays real.
pub const HISTORY: &str = "the shell's history";

/// The reason why a file of an agent stays real.
pub fn kept_by(agent: Agent) -> String {
    format!("{} keeps it", agent.name)
}

/// The error for a glob of an agent's records. `glob`: empty for all of them together.
pub fn no_glob(glob: &str, why: &dyn Display) -> Error {
    Error::refused(format!("agent.NAME.records: {glob:?}: {why}"))
}

/// The error for an act on the tree inside the run of session `id`, where a person outside decides it.
pub fn decided_outside(id: &str) -> Error {
    let message = format!("inside the run of session {id}, nothing reaches the real tree");
    let tail = id.rsplit('-').next().unwrap_or(id);
    Error::refused(message).with_remedy("a person does that outside: " + command(format_args!("review {tail}")))
}

/// The warning about an `--open` path that nothing closes.
pub fn opens_nothing(path: &Path) -> String {
    format!("{}: --open: nothing is closed there", shell_word(path.as_os_str().as_encoded_bytes()))
}

/// The warning about a variable that names, for a secret, a directory with the project, the home directory or the store in it.
pub fn closes_too_much(variable: &str, path: &Path) -> String {
    let place = shell_word(path.as_os_str().as_encoded_bytes());
    format!("{place}: {variable}: stays open, as it holds the project, home or the store")
}

/// The error for a `--pass` path that is missing.
pub fn no_pass(missing: &Path) -> Error {
    let (path, word) = (missing.display(), shell_word(missing.as_os_str().as_bytes()));
    let error = Error::refused(format!("--pass {path}: it does not exist"));
    error.with_path(path).with_remedy("make it first: " + shell(format_args!("mkdir -p {word}")))
}

/// The error for a store that the command could write to: Landlock cannot exempt a place below a writable directory.
pub fn open_store(store: &AbsPath, place: &AbsPath) -> Error {
    let error = Error::refused(format!("{store}: the store lies in {place}, where the command may write")).with_path(store);
    error.with_remedy("use another store: --store DIR, RECANT_STORE")
}

/// The error for a directory of too many files, with the setting of the limit: a run has no option for it.
pub fn over_limit(why: Error, limit: u64) -> Error {
    let setting = words(format_args!("raise snapshot.max_files (now {limit}) in the settings; "));
    why.with_remedy(setting + command("config") + " names their file; or name a directory further down")
}

/// The command that goes back to the snapshot from before a run.
fn restore(before: u64, directory: &AbsPath) -> Command {
    command(format_args!("snapshot restore {before} --with-vcs --dir {directory}"))
}

/// The error of a command that ran on the real tree, and of whose changes no session could be made. `befores`: the snapshots from before, by
/// number and directory.
pub fn not_collected<'a>(why: Error, id: &Id, befores: impl Iterator<Item = (u64, &'a AbsPath)>) -> Error {
    let tries = command(format_args!("recover {id}")) + " tries again; else";
    let ways = befores.map(|(n, directory)| restore(n, directory));
    let remedy = ways.enumerate().fold(tries, |all, (i, way)| all + if i == 0 { " " } else { "; " } + way);
    why.with_state("the command has run on the real tree; no session was made of what it changed").with_remedy(remedy)
}

/// The error for a run that has not ended.
pub fn run_under_way(id: &Id) -> Error {
    let error = Error::new(Kind::Busy, format!("the run of session {id} is under way"));
    error.with_state("nothing was changed; its session is made when it ends")
}

/// The error for a decision about a run that was cut off.
pub fn nothing_to_decide(id: &Id) -> Error {
    let [recover, rollback] = ["recover", "rollback"].map(|verb| command(format_args!("{verb} {id}")));
    let error = Error::usage(format!("the run of session {id} was cut off: there is nothing to decide"));
    error.with_remedy(recover + " makes the session of what it changed, " + rollback + " takes that back")
}

/// The error of a run that was cut off, and of which no session can be made.
pub fn cut_off(why: Error, id: &Id) -> Error {
    let [again, end] = ["", " --finish"].map(|how| command(format_args!("recover {id}{how}")));
    let ways = again + " tries again, " + end + " ends it without a session";
    // The remedy for a damaged snapshot would drop the one that is needed here.
    let own = why.advice().filter(|_| why.kind() != Kind::Damaged).cloned();
    let remedy = own.map_or(ways.clone(), |own| own + "; " + ways);
    why.with_remedy(remedy)
}

/// The state after a signal, once runs that were cut off were recovered.
pub const RUNS_SETTLED: &str = "the run that was cut off was settled as reported; nothing else was changed";

/// The error if the store is gone.
pub fn store_gone(store: &AbsPath) -> Error {
    Error::refused(format!("{store}: the store is gone"))
}

/// The error for a directory of a run whose file system is not mounted.
pub fn not_mounted(directory: &AbsPath, mount: &AbsPath) -> Error {
    let why = format!("{directory}: the file system at {mount} is no longer mounted");
    Error::new(Kind::Stuck, why).without_state().with_path(directory).with_remedy("mount it")
}

/// The error for a run whose snapshot from before is gone.
pub fn snapshot_before_gone(directory: &AbsPath, n: u64) -> Error {
    let why = format!("{directory}: its snapshot {n}, which was taken before the command, is gone");
    Error::new(Kind::Stuck, why).without_state().with_path(directory)
}

/// The loss of a run that was cut off, if anything is lost.
pub fn lost(run: &Collected) -> Option<String> {
    let id = &run.id;
    Some(match run.lost.as_ref()? {
        Lost::Command { head } => format!(
            "the machine went down while a command ran in session {id}: what that had changed is lost; the session is at step {head}"
        ),
        Lost::Memory => format!("the run of session {id} was cut off; what it had changed lay in memory and is lost"),
        Lost::Record(held) => format!(
            "the machine went down in the run of session {id}, and its record with it: what it had changed lies unread in {}",
            held.display()
        ),
    })
}
