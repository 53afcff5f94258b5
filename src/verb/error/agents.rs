//! Errors about agents, their turns and their settings; and the texts about these that are kept.

use std::fmt::Display;
use std::io;

use crate::agent::{Head, Turn, When};
use crate::capture::working_directory;
use crate::error::{Error, Kind, command, reason, shell_word};
use crate::fs::AbsPath;
use crate::remedy::{Remedy, shell, words};
use crate::session::{Header, Status};
use crate::verb::agent::fault::Place;

/// The error for a project whose turns were noted at another path.
pub fn turns_moved(directory: &AbsPath, former: &AbsPath) -> Error {
    let [from, to] = [directory, former].map(|path| shell_word(path.as_bytes()));
    let error = Error::refused(format!("{directory}: its turns were recorded at {former}, before it was moved"));
    error.with_remedy("move it back to take them back: " + shell(format_args!("mv {from} {to}")))
}

/// The error for a project without turns; `held`: a session in which an agent is held there.
pub fn no_turns(directory: &AbsPath, held: Option<&Header>) -> Error {
    let install = || command("agent status") + " shows which agents have recant's hooks, and " + command("agent install AGENT");
    let remedy = held.map_or_else(|| install() + " adds them", of_held);
    Error::refused(format!("{directory}: no turns of agents are recorded here")).with_remedy(remedy)
}

/// The way to the turns of an agent that is held.
fn of_held(header: &Header) -> Remedy {
    let name = header.name.as_deref().unwrap_or(header.id.tail());
    match header.status() {
        Status::Running => {
            let held = words(format_args!("an agent is held in session {name}: have it run "));
            held + shell("recant agent turns") + ", diff or undo N there"
        }
        _ => "turns of a held agent: " + command(format_args!("run --session {name} -- recant agent turns")),
    }
}

/// The error for turns without snapshots.
pub fn snapshots_gone(directory: &AbsPath) -> Error {
    Error::refused(format!("{directory}: the snapshots of its turns are gone"))
}

/// The error for a number that no turn has.
pub fn no_turn(n: u64, is_dropped: bool) -> Error {
    let keeps = "older turns are dropped: agent.keep and snapshot.max_size in the settings say how many are kept";
    let remedy = if is_dropped { keeps.into() } else { list_turns() };
    Error::refused(format!("no turn {n} here")).with_remedy(remedy)
}

/// The error if there is nothing to take back.
pub fn all_turns_back() -> Error {
    Error::refused("nothing to take back: no turn here has changes left").with_remedy(list_turns())
}

fn list_turns() -> Remedy {
    command("agent turns") + " lists them"
}

/// The error that nothing is known of what was there before a turn.
pub fn turn_not_covered(turn: &Turn) -> Error {
    let n = turn.head.n;
    let why = turn.failed.as_deref().unwrap_or("it began before its snapshot was complete");
    let problem = Error::refused(format!("turn {n} is not covered: {why}"));
    match turn.before {
        Some(_) => problem.with_remedy(command(format_args!("agent diff {n}")) + " shows what is known of it"),
        None => problem,
    }
}

/// The error if no turn that is to be taken back is covered.
pub fn no_turn_covered(first: Option<&Turn>) -> Error {
    first.map_or_else(|| Error::refused("no turn is covered"), turn_not_covered)
}

/// The error for a path that neither the turn nor the project has.
pub fn not_of_turn(path: &AbsPath, n: u64) -> Error {
    let shows = |n: u64| command(format_args!("agent diff {n}"));
    match second_number("diff", path) {
        Some((error, second)) => error.with_remedy(shows(second) + format!(" shows turn {second}")),
        None => Error::refused(format!("{path}: neither in turn {n} nor in the project"))
            .with_path(path)
            .with_remedy(shows(n) + format!(" shows all that turn {n} changed")),
    }
}

/// The error for a path that neither the turns nor the project has. `n`: the turn that was named.
pub fn not_of_turns(path: &AbsPath, n: Option<u64>) -> Error {
    if let (Some(n), Some((error, _))) = (n, second_number("undo", path)) {
        let later = words(format_args!("turn {n} is taken back with all later ones: "));
        return error.with_remedy(later + command(format_args!("agent undo {n}")));
    }
    let problem = Error::refused(format!("{path}: neither in the turns nor in the project")).with_path(path);
    problem.with_remedy(command("agent undo --dry-run -v") + " lists what would be taken back")
}

/// The error for a second number, which is no path of the working directory, and that number.
fn second_number(verb: &str, path: &AbsPath) -> Option<(Error, u64)> {
    working_directory().ok().filter(|here| path.parent().as_ref() == Some(here))?;
    let n: u64 = std::str::from_utf8(path.name()).ok()?.parse().ok()?;
    Some((Error::new(Kind::Usage, format!("agent {verb} takes one number, and {n} is not a path here")), n))
}

/// Adds the project whose paths may be named.
pub fn name_paths_of(problem: Error, directory: &AbsPath) -> Error {
    problem.with_remedy(format!("name paths of {directory}"))
}

/// The error for a turn whose snapshot was pruned.
pub fn turn_pruned(directory: &AbsPath, turn: u64, snapshot: u64) -> Error {
    let why = format!("turn {turn} cannot be taken back: snapshot {snapshot}, from before it, was pruned");
    Error::refused(why).with_path(directory)
}

/// The error if nobody can be asked about an undo.
pub fn turns_unasked(n: u64) -> Error {
    let problem = Error::new(Kind::Usage, "agent undo asks first, and there is no terminal");
    problem.with_remedy(command(format_args!("agent undo {n} -y")) + " does not ask")
}

/// An undo after "cannot".
pub fn undo_of_turns(turns: &[u64]) -> String {
    format!("undo {}", turns_in_words(turns))
}

/// The turns in words: `turn 7`, `turns 7 to 9`, `turns 7, 9 and 12`.
pub fn turns_in_words(turns: &[u64]) -> String {
    match turns {
        [one] => format!("turn {one}"),
        [first, .., last] if last - first + 1 == turns.len() as u64 && turns.len() > 2 => format!("turns {first} to {last}"),
        _ => {
            let numbers: Vec<String> = turns.iter().map(ToString::to_string).collect();
            match numbers.split_last() {
                Some((last, most)) if !most.is_empty() => format!("turns {} and {last}", most.join(", ")),
                _ => format!("turns {}", numbers.concat()),
            }
        }
    }
}

/// The error for an event that is no event.
pub fn unread_event(why: impl Display) -> Error {
    Error::refused(format!("the event cannot be read: {why}"))
}

/// The reason, kept in a turn, why a path is not known: it lies in this one.
pub fn not_covered_in(directory: &AbsPath, why: &str) -> String {
    format!("{directory} is not covered: {why}")
}

/// The message of a turn's snapshot.
pub fn snapshot_message(of: Option<(When, &Head)>) -> String {
    match of {
        None => "an agent's session begins".into(),
        Some((when, head)) => format!("{} turn {}: {}", when.word(), head.n, head.prompt),
    }
}

/// Things that no hook covers.
pub const NOT_COVERED: [&str; 4] = [
    "files outside of the project",
    "version control's own directories, such as .git, and repositories inside",
    "ignored files that are built, downloaded or over 1 MiB, such as target",
    "what an agent writes before its hooks are called, or while they are off",
];

/// The reason for a directory that cannot be listed.
pub fn unlisted(why: &str) -> String {
    format!("it cannot be read ({why})")
}

/// A place that turns do not cover, in a line.
pub fn closed_place(place: &Place) -> String {
    match place {
        Place::Closed { path, why } => format!("{path}: {why}"),
        Place::More(1) => "… and 1 more place".into(),
        Place::More(more) => format!("… and {} more places", crate::settings::grouped(*more as u64)),
    }
}

/// The reason why settings cannot name this program.
pub enum Unnamed<'a> {
    Unknown(&'a io::Error),
    Replaced,
    OtherName,
    NoText,
}

/// The error for a program that settings cannot name.
pub fn unnamed_program(why: Unnamed<'_>) -> Error {
    let refused = |why: &str| Error::refused(format!("the settings cannot name this program: {why}"));
    match why {
        Unnamed::Unknown(error) => refused(&reason(error)),
        Unnamed::Replaced => refused("it was replaced or removed since it was started").with_remedy("try again"),
        Unnamed::OtherName => refused("it is not named recant, by which its hooks are found").with_remedy("call it by that name"),
        Unnamed::NoText => refused("its path is not valid UTF-8"),
    }
}

/// The error if nobody can be asked about an edit. `call`: its words.
pub fn edit_unasked(deed: &str, call: &str) -> Error {
    let problem = Error::new(Kind::Usage, format!("agent {deed} asks first, and there is no terminal"));
    let [shows, goes] = ["--dry-run", "-y"].map(|option| command(format_args!("{call} {option}")));
    problem.with_remedy(shows + " shows the edit; " + goes + " does not ask")
}

/// An edit after "cannot".
pub fn edit_of(deed: &str, agent: &str) -> String {
    format!("{deed} the hooks for {agent}")
}

/// The source of an edit's content, in messages.
pub const NEW_SETTINGS: &str = "the new settings";

/// The error for settings that somebody else writes.
pub fn written_now(path: &AbsPath) -> Error {
    Error::at(Kind::Refused, path, "another process is writing it").with_remedy("try again")
}
