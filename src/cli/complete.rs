//! `complete`: what a shell offers for the word that is being typed. The stubs that `completions` prints call it. It only reads, asks no
//! other machine, and prints no errors: it offers less then.
//!
//! Prints a line with the kind of the word, then the offers, one a line, each with its description after a tab. The first line is
//! `words`, `paths` (offers that are paths), `files` or `directories` (the shell completes these itself), or `command N` (the shell
//! completes a command itself; its first word is number N of those given).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use clap::{Arg, ArgMatches, Command, CommandFactory, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete as offers};

use super::args::{self, Cli};
use super::diff::tool;
use super::out::{Form, Out};
use super::place::{self, Place};
use super::scope::Scope;
use super::{Effects, Ended, finish, snapshot, steps, text};
use crate::agent::known::Agent;
use crate::agent::turns::Turns;
use crate::config::{Color, Config, From as Origin};
use crate::fs::path::AbsPath;
use crate::session::header::{Header, Status};
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::store::Store;
use crate::snapshot::series::Series;
use crate::tree::project::project_of;

/// The most offers. Nobody reads more.
const MOST: usize = 200;
/// The most changes of a session that are searched.
const CHANGES: usize = 20_000;

/// Prints the offers.
pub fn complete(args: &args::Complete) -> Ended {
    let mut words = args.words.clone();
    let at = usize::from(args.at);
    words.resize_with(at + 1, OsString::new);
    if args.shell == clap_complete::Shell::Bash {
        words.iter_mut().for_each(|word| *word = unquoted(word));
    }
    let typing = Arc::new(Typing::read(&words));
    let mut grammar = attach(Cli::command().disable_help_subcommand(false), "", &typing);
    let wants_option = words[at].as_bytes().starts_with(b"-");
    let found = offers(&mut grammar, words, at, None).unwrap_or_default();
    let found = found.into_iter().filter(|offer| !offer.is_hide_set());
    let lines =
        found.filter(|offer| wants_option || !offer.get_value().as_bytes().starts_with(b"-")).filter_map(|offer| line(&offer));
    let out = Out::new(Form::Text, Color::Never, false, false);
    let lines: Vec<Vec<u8>> = lines.take(MOST).collect();
    // Before the command of a run begins, the word is an option of recant.
    let is_option = wants_option && !lines.is_empty() && typing.command_words == 0;
    let wants = if is_option { Wants::Words } else { typing.wants(lines.is_empty()) };
    out.line(match wants {
        Wants::Words => "words".to_owned(),
        Wants::Paths => "paths".to_owned(),
        Wants::Files => "files".to_owned(),
        Wants::Directories => "directories".to_owned(),
        Wants::Command => format!("command {}", at - typing.command_words),
    });
    lines.iter().for_each(|line| out.bytes(line));
    finish(&out, Ok(Ended::Done), Effects::None)
}

/// An offer as a line; none if its value would break the line.
fn line(offer: &CompletionCandidate) -> Option<Vec<u8>> {
    let value = offer.get_value().as_bytes();
    if value.iter().any(u8::is_ascii_control) {
        return None;
    }
    let help = offer.get_help().map(ToString::to_string).unwrap_or_default();
    let help: String = help.lines().next().unwrap_or_default().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(if help.is_empty() { [value, b"\n"].concat() } else { [value, b"\t", help.as_bytes(), b"\n"].concat() })
}

/// A word without bash's quotes and backslashes.
fn unquoted(word: &OsStr) -> OsString {
    let mut bytes = word.as_bytes().iter().copied();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => plain.extend(bytes.next()),
            b'\'' | b'"' => {}
            byte => plain.push(byte),
        }
    }
    OsString::from_vec(plain)
}

/// The kind of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Words,
    Paths,
    Files,
    Directories,
    Command,
}

/// The source of a word's offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Sessions,
    /// Paths of the session that is named earlier.
    PathsOfSession,
    /// Steps of the session that is named earlier.
    Steps,
    Snapshots,
    /// Turns of agents in this project; behind the first word, paths.
    Turns,
    /// Sessions, else files.
    SessionsOrFiles,
    Agents,
    Hosts,
    Verbs,
    /// Programs that show differences.
    Tools,
    Files,
    Directories,
    /// A command and its arguments, which the shell knows.
    Command,
}

/// The source of an argument of `verb`, whose words are joined by a blank.
fn source(verb: &str, arg: &Arg) -> Option<Source> {
    Some(match (verb, arg.get_id().as_str()) {
        (_, "host") => Source::Hosts,
        ("run", "command") => Source::Command,
        ("run", "session") | ("diff" | "review", "with") | (_, "id" | "ids") => Source::Sessions,
        ("diff", "step" | "since") | ("rewind" | "fork", "step") => Source::Steps,
        ("man", "verb") => Source::Verbs,
        ("review", "snapshot") => Source::Snapshots,
        ("agent diff" | "agent undo", "of") => Source::Turns,
        ("log", "what") => Source::SessionsOrFiles,
        ("log", "agent") => Source::Agents,
        (_, "tool") => Source::Tools,
        (_, "key" | "other" | "number") if verb.starts_with("snapshot ") => Source::Snapshots,
        ("commit" | "rollback" | "undo" | "redo" | "diff" | "cat" | "show" | "discard", "path" | "paths") => {
            Source::PathsOfSession
        }
        _ => match arg.get_value_hint() {
            ValueHint::AnyPath | ValueHint::FilePath => Source::Files,
            ValueHint::DirPath => Source::Directories,
            _ => return None,
        },
    })
}

/// The grammar, with offers attached to each argument that has a source.
fn attach(command: Command, verb: &str, typing: &Arc<Typing>) -> Command {
    let of = |arg: Arg| match source(verb, &arg) {
        Some(source) => {
            let (typing, verb) = (typing.clone(), verb.to_owned());
            arg.add(ArgValueCompleter::new(move |word: &OsStr| typing.offers(source, &verb, word)))
        }
        None => arg,
    };
    command.mut_args(of).mut_subcommands(|below| {
        let verb = format!("{verb} {}", below.get_name());
        attach(below, verb.trim_start(), typing)
    })
}

/// The words before the one that is typed, as far as offers depend on them.
struct Typing {
    store: Option<PathBuf>,
    /// The machine is another one: its paths and sessions are not known here.
    is_remote: bool,
    /// The session that is named.
    id: Option<String>,
    /// The directory of snapshots that is named.
    dir: Option<PathBuf>,
    /// The number of words that the command of a run has so far.
    command_words: usize,
    wants: Mutex<Option<Wants>>,
}

impl Typing {
    /// Reads all words. The last one is being typed.
    fn read(words: &[OsString]) -> Self {
        let before = &words[..words.len() - 1];
        let matches = Cli::command().ignore_errors(true).try_get_matches_from(before).ok();
        let mut verb = matches.as_ref();
        while let Some((_, below)) = verb.and_then(ArgMatches::subcommand) {
            verb = Some(below);
        }
        let path = |name: &str| verb.and_then(|verb| verb.try_get_one::<PathBuf>(name).ok().flatten()).map(|path| in_home(path));
        let text = |name: &str| verb.and_then(|verb| verb.try_get_one::<String>(name).ok().flatten()).cloned();
        let host = text("host").or_else(|| std::env::var("RECANT_HOST").ok()).filter(|host| !host.trim().is_empty());
        let command = verb.and_then(|verb| verb.try_get_many::<OsString>("command").ok().flatten());
        Self {
            store: path("store"),
            is_remote: host.is_some_and(|host| host.trim() != "local"),
            id: text("id"),
            dir: path("dir").or_else(|| path("of")),
            command_words: command.map_or(0, Iterator::count),
            wants: Mutex::default(),
        }
    }

    /// The kind of the word. `is_without`: there are no offers.
    fn wants(&self, is_without: bool) -> Wants {
        let wants = self.wants.lock().ok().and_then(|wants| *wants).unwrap_or(Wants::Words);
        if wants == Wants::Paths && is_without { Wants::Files } else { wants }
    }

    fn offers(&self, source: Source, verb: &str, word: &OsStr) -> Vec<CompletionCandidate> {
        let wants = match source {
            Source::PathsOfSession | Source::Turns | Source::SessionsOrFiles => Wants::Paths,
            Source::Files => Wants::Files,
            Source::Directories => Wants::Directories,
            Source::Command => Wants::Command,
            _ => Wants::Words,
        };
        if let Ok(mut wanted) = self.wants.lock() {
            *wanted = Some(wants);
        }
        let offers = match source {
            Source::Sessions => self.sessions(verb, word),
            Source::PathsOfSession => self.paths(verb, word),
            Source::Steps => self.steps(verb, word),
            Source::Snapshots => self.snapshots(word),
            Source::Turns => self.turns(word),
            // A path has a slash, or is what no session is called.
            Source::SessionsOrFiles => self.sessions(verb, word).filter(|_| !word.as_bytes().contains(&b'/')),
            Source::Agents => Some(agents(word)),
            Source::Hosts => hosts(word),
            Source::Verbs => Some(verbs(word)),
            Source::Tools => Some(tools(word)),
            Source::Files | Source::Directories | Source::Command => None,
        };
        offers.unwrap_or_default()
    }

    /// The store, if this machine has one.
    fn store(&self) -> Option<Store> {
        if self.is_remote {
            return None;
        }
        let place = match &self.store {
            Some(path) => Place { path: path.clone(), from: Origin::Option("--store") },
            None => settings().1,
        };
        Store::open(&place.resolve().ok()?).ok().flatten()
    }

    /// Names, last parts and whole ids. Sessions that the verb can act on come first, the newest of them first.
    fn sessions(&self, verb: &str, word: &OsStr) -> Option<Vec<CompletionCandidate>> {
        let word = word.to_str()?;
        let store = self.store()?;
        let (mut headers, _) = store.headers().ok()?;
        headers.reverse();
        headers.retain(|header| header.discarded.is_none());
        if word.is_empty() {
            // Only the sessions that can be meant here, if there are any.
            let here = Scope::here().ok()?;
            let is_meant = |header: &Header| is_for(verb, header.status()) && here.has(&store, header);
            if headers.iter().any(is_meant) {
                headers.retain(is_meant);
            }
        }
        headers.sort_by_key(|header| !is_for(verb, header.status()));
        let last = [("last".to_owned(), "the newest".to_owned())];
        let of_all = headers.iter().flat_map(|header| {
            let keys = if word.is_empty() {
                // One key a session: somebody who wants another key types its start.
                vec![header.name.clone().unwrap_or_else(|| header.id.tail().to_owned())]
            } else {
                header.name.iter().cloned().chain([header.id.tail().to_owned(), header.id.to_string()]).collect()
            };
            keys.into_iter().map(|key| (key, about(header)))
        });
        Some(last.into_iter().chain(of_all).filter(|(key, _)| key.starts_with(word)).map(offer).take(MOST).collect())
    }

    /// The session that is named, or that the verb takes without a name.
    fn session(&self, verb: &str) -> Option<Session> {
        let store = self.store()?;
        let id = match self.id.as_deref() {
            None | Some("last") => newest_for(verb, &store)?,
            Some(key) => store.find(key, |_| true).ok()?,
        };
        store.session(&id).ok()
    }

    /// Paths of the session's changes, one directory level at a time.
    fn paths(&self, verb: &str, word: &OsStr) -> Option<Vec<CompletionCandidate>> {
        let cwd = std::env::current_dir().ok()?.into_os_string().into_vec();
        let mut reading = self.session(verb)?.read_changes().ok()?;
        let mut paths = Vec::new();
        while let Some(change) = reading.next().ok().flatten().filter(|_| paths.len() < CHANGES) {
            paths.push(as_typed(&change.path, &cwd, word.as_bytes()));
        }
        Some(parts(&paths, word.as_bytes()).into_iter().map(OsString::from_vec).map(CompletionCandidate::new).collect())
    }

    /// Numbers of the session's steps with their commands, the newest first. A rewind may go to the tree as it was, too.
    fn steps(&self, verb: &str, word: &OsStr) -> Option<Vec<CompletionCandidate>> {
        let word = word.to_str()?;
        let list = self.session(verb)?.steps().ok()?;
        let of_all = list.steps.iter().rev().map(|step| (step.n.to_string(), steps::words(&step.argv)));
        let zero = (verb == "rewind").then(|| ("0".to_owned(), "the tree as it was".to_owned()));
        Some(of_all.take(MOST - 1).chain(zero).filter(|(n, _)| n.starts_with(word)).map(offer).collect())
    }

    /// Numbers of this project's turns with their prompts, the newest first. Without any that fits, a path is meant.
    fn turns(&self, word: &OsStr) -> Option<Vec<CompletionCandidate>> {
        let word = word.to_str()?;
        let directory = project_of(&snapshot::directory(Some(Path::new("."))).ok()?, dirs::home_dir().as_deref());
        let turns = Turns::open(&self.store()?, &directory).ok()??.all().ok()?;
        let of_all = turns.iter().rev().map(|turn| (turn.head.n.to_string(), turn.head.prompt.clone()));
        Some(of_all.filter(|(n, _)| n.starts_with(word)).take(MOST).map(offer).collect())
    }

    /// Numbers and labels, the newest first.
    fn snapshots(&self, word: &OsStr) -> Option<Vec<CompletionCandidate>> {
        let word = word.to_str()?;
        let series = Series::open(&self.store()?, &snapshot::directory(self.dir.as_deref()).ok()?).ok()??;
        let (mut summaries, _) = series.summaries().ok()?;
        summaries.sort_by_key(|summary| std::cmp::Reverse(summary.head.n));
        let last = [("last".to_owned(), "the newest".to_owned())];
        let of_all = summaries.iter().flat_map(|summary| {
            let head = &summary.head;
            let what =
                [Some(text::time(head.time, false)), head.message.clone()].into_iter().flatten().collect::<Vec<_>>().join("  ");
            [Some(head.n.to_string()), head.label.clone()].into_iter().flatten().map(move |key| (key, what.clone()))
        });
        Some(last.into_iter().chain(of_all).filter(|(key, _)| key.starts_with(word)).map(offer).collect())
    }
}

fn offer((key, what): (String, String)) -> CompletionCandidate {
    CompletionCandidate::new(key).help(Some(what.into()))
}

/// The session that `last` means for a verb: the newest of this project, else of all.
fn newest_for(verb: &str, store: &Store) -> Option<Id> {
    let (headers, _) = store.headers().ok()?;
    let here = Scope::here().ok()?;
    let fits = |header: &&Header| header.counts.changes > 0 && is_for(verb, header.status()) && here.has(store, header);
    let newest = headers.iter().rev().find(fits).map(|header| header.id.clone());
    newest.or_else(|| Some(store.newest(&[]).ok()?.id))
}

/// Describes a session to somebody who chooses one.
fn about(header: &Header) -> String {
    let command = header.command.as_deref().unwrap_or("staged");
    let short: String = command.chars().take(60).collect();
    format!("{short} ({})", header.status().word().replace('_', " "))
}

/// Tells whether a verb can act on a session of this status.
fn is_for(verb: &str, status: Status) -> bool {
    match verb {
        "commit" | "discard" | "run" | "shell" | "session export" => matches!(status, Status::Pending | Status::Partial),
        "rewind" | "fork" => status == Status::Pending,
        "rollback" | "undo" | "confirm" => matches!(status, Status::Committed | Status::Partial),
        "redo" => matches!(status, Status::RolledBack | Status::Partial),
        _ => true,
    }
}

/// A path as a user types it: relative to the working directory, unless the word begins with a slash.
fn as_typed(path: &AbsPath, cwd: &[u8], word: &[u8]) -> Vec<u8> {
    let path = path.as_bytes();
    let below = path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix(b"/")).filter(|_| !word.starts_with(b"/"));
    below.unwrap_or(path).to_vec()
}

/// The paths that begin with `word`, each up to the next slash; further if that leaves one alone.
fn parts(paths: &[Vec<u8>], word: &[u8]) -> Vec<Vec<u8>> {
    let mut word = word.to_vec();
    loop {
        let rest = |path: &[u8]| {
            path.strip_prefix(&*word).map(|rest| rest.iter().position(|b| *b == b'/').map_or(rest.len(), |at| at + 1))
        };
        let mut found: Vec<Vec<u8>> = paths.iter().filter_map(|path| Some(path[..word.len() + rest(path)?].to_vec())).collect();
        found.sort();
        found.dedup();
        // A directory that is a change itself and has others below it is offered once, with its slash.
        let open: Vec<Vec<u8>> = found.iter().filter(|path| path.ends_with(b"/")).cloned().collect();
        found.retain(|path| path.ends_with(b"/") || !open.contains(&[path, &b"/"[..]].concat()));
        match &found[..] {
            [one] if one.ends_with(b"/") && *one != word => word.clone_from(one),
            _ => return found,
        }
    }
}

/// The machines of recant's settings and of ssh's.
fn hosts(word: &OsStr) -> Option<Vec<CompletionCandidate>> {
    let word = word.to_str()?;
    let (config, _) = settings();
    let named = config.remotes.iter().map(|(name, remote)| (name.clone(), remote.host.clone().unwrap_or_default()));
    let of_ssh = ssh_hosts().into_iter().map(|name| (name, "ssh".to_owned()));
    let fits = named.chain(of_ssh).filter(|(name, _)| name.starts_with(word));
    Some(fits.map(offer).collect())
}

/// The names in `~/.ssh/config`, without patterns (ssh_config(5)).
fn ssh_hosts() -> Vec<String> {
    let text = dirs::home_dir().and_then(|home| std::fs::read_to_string(home.join(".ssh/config")).ok()).unwrap_or_default();
    let lines = text.lines().map(str::trim).filter_map(|line| line.split_once([' ', '\t', '=']));
    let names = lines.filter(|(key, _)| key.eq_ignore_ascii_case("host")).flat_map(|(_, names)| names.split_whitespace());
    names.filter(|name| !name.contains(['*', '?', '!'])).map(str::to_owned).collect()
}

/// The verbs, as names of manual pages.
fn verbs(word: &OsStr) -> Vec<CompletionCandidate> {
    let command = Cli::command();
    let seen = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let fits = seen.filter(|verb| word.to_str().is_some_and(|word| verb.get_name().starts_with(word)));
    fits.map(|verb| CompletionCandidate::new(verb.get_name()).help(verb.get_about().cloned())).collect()
}

fn agents(word: &OsStr) -> Vec<CompletionCandidate> {
    let fits = Agent::ALL.into_iter().filter(|agent| word.to_str().is_some_and(|word| agent.word().starts_with(word)));
    fits.map(|agent| offer((agent.word().into(), agent.name().into()))).collect()
}

fn tools(word: &OsStr) -> Vec<CompletionCandidate> {
    let fits = tool::NAMES.into_iter().filter(|name| word.to_str().is_some_and(|word| name.starts_with(word)));
    fits.map(CompletionCandidate::new).collect()
}

/// The settings, or the defaults if they cannot be read.
fn settings() -> (Config, Place) {
    place::settings().unwrap_or_else(|_| place::nowhere())
}

/// Replaces `~/` as a shell does; it does not in a word that is being typed.
fn in_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), dirs::home_dir()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_path_buf(),
    }
}
