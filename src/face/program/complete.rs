//! Completion of the sessions, paths, steps, turns and snapshots that a verb can act on. clap_complete does the rest: it asks recant, with
//! `RECANT_COMPLETE` set, what fits the word that is being typed. Only reads, asks no other machine, and prints no errors: it offers less
//! then.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command, CommandFactory, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::agent::Turns;
use crate::error::{Error, shell_word};
use crate::face::args::{self, Cli};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::Place;
use crate::face::text::steps;
use crate::face::{figures, find_store};
use crate::fs::AbsPath;
use crate::session::{Header, Id, Session, Status, Store};
use crate::settings::From as Origin;
use crate::snapshot::Series;
use crate::tree::project_of;
use crate::verb::resolve::find_session;
use crate::verb::snapshot::directory::directory;
use crate::verb::table::find;
use crate::verb::{Scope, Want};

const VARIABLE: &str = "RECANT_COMPLETE";
/// The most offers. Nobody reads more.
const MOST: usize = 200;
/// The most changes of a session that are searched.
const CHANGES: usize = 20_000;

/// Prints what makes a shell ask recant.
pub fn completions(call: &Call, args: &args::Completions) -> Result<Ended, Error> {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&args.shell.to_string()) {
        shell.write_registration(VARIABLE, "recant", "recant", "recant", &mut script).context("cannot print the completions")?;
    }
    if args.shell == Shell::Zsh {
        // zsh reads the file at the first Tab, which is about this word already.
        script.extend(b"[[ $funcstack[1] != _recant ]] || _clap_dynamic_completer_recant \"$@\"\n");
    }
    call.out.bytes(&script);
    Ok(Ended::Done)
}

/// Answers a shell, if one asks. False for any other call, also where the variable names no shell: that call is meant.
pub fn is_answered() -> bool {
    let asks = std::env::var(VARIABLE).is_ok_and(|shell| Shells::builtins().completer(&shell).is_some());
    // Words that are no call of recant's have no offers.
    asks && CompleteEnv::with_factory(grammar).var(VARIABLE).try_complete(std::env::args_os(), None).unwrap_or(true)
}

/// The command line, with offers for the words of this process.
fn grammar() -> Command {
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let at = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|at| at.parse().ok());
    let at = at.unwrap_or(words.len().saturating_sub(1));
    let typing = Arc::new(Typing::read(&words[..at.min(words.len())]));
    let wants_option = words.get(at).is_some_and(|word| word.as_bytes().starts_with(b"-"));
    attach(Cli::command().disable_help_subcommand(false), "", &typing, wants_option)
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
    /// Turns of agents in this project.
    Turns,
    Files,
    Directories,
}

/// The source of an argument of `verb`, whose words are joined by a blank.
fn source(verb: &str, arg: &Arg) -> Option<Source> {
    Some(match (verb, arg.get_id().as_str()) {
        ("run", "command") => return None,
        ("run", "session") | ("diff" | "review", "with") | ("log", "what") | (_, "id" | "ids") => Source::Sessions,
        ("diff", "step" | "since") | ("rewind" | "fork", "step") => Source::Steps,
        ("review", "snapshot") => Source::Snapshots,
        ("agent diff" | "agent undo", "of") => Source::Turns,
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

/// The grammar, with offers attached to each argument that has a source. Options are offered to a word with a dash alone.
fn attach(command: Command, verb: &str, typing: &Arc<Typing>, wants_option: bool) -> Command {
    let of = |arg: Arg| {
        let is_hidden = arg.is_hide_set() || !arg.is_positional() && !wants_option;
        let arg = arg.hide(is_hidden);
        let Some(source) = source(verb, &arg) else { return arg };
        let (typing, verb) = (typing.clone(), verb.to_owned());
        arg.add(ArgValueCompleter::new(move |word: &OsStr| typing.offers(source, &verb, word)))
    };
    command.mut_args(of).mut_subcommands(|below| {
        let verb = format!("{verb} {}", below.get_name());
        attach(below, verb.trim_start(), typing, wants_option)
    })
}

/// The words before the one that is typed, as far as offers depend on them.
struct Typing {
    store: Option<PathBuf>,
    /// The machine is another one: its paths and sessions are not known here.
    is_remote: bool,
    id: Option<String>,
    /// The directory of snapshots that is named.
    dir: Option<PathBuf>,
}

impl Typing {
    fn read(before: &[OsString]) -> Self {
        let matches = Cli::command().ignore_errors(true).try_get_matches_from(before).ok();
        let mut verb = matches.as_ref();
        while let Some((_, below)) = verb.and_then(ArgMatches::subcommand) {
            verb = Some(below);
        }
        let path = |name: &str| verb.and_then(|verb| verb.try_get_one::<PathBuf>(name).ok().flatten()).map(|path| in_home(path));
        let text = |name: &str| verb.and_then(|verb| verb.try_get_one::<String>(name).ok().flatten()).cloned();
        let host = text("host").or_else(|| std::env::var("RECANT_HOST").ok()).filter(|host| !host.trim().is_empty());
        Self {
            store: path("store"),
            is_remote: host.is_some_and(|host| host.trim() != "local"),
            id: text("id"),
            dir: path("dir").or_else(|| path("of")),
        }
    }

    /// Offers that a shell takes as they are: bash would run a name with a backtick, and split one with a blank.
    fn offers(&self, source: Source, verb: &str, word: &OsStr) -> Vec<CompletionCandidate> {
        let offers = match source {
            Source::Sessions => self.sessions(verb, word),
            Source::PathsOfSession => self.paths(verb, word),
            Source::Steps => self.steps(verb, word),
            Source::Snapshots => self.snapshots(word),
            Source::Turns => self.turns(word),
            Source::Files => Some(PathCompleter::any().complete(word)),
            Source::Directories => Some(PathCompleter::dir().complete(word)),
        };
        let mut offers = offers.unwrap_or_default();
        offers.retain(|offer| shell_word(offer.get_value().as_bytes()) == offer.get_value().to_string_lossy());
        offers.truncate(MOST);
        offers
    }

    /// The store, if this machine has one.
    fn store(&self) -> Option<Store> {
        if self.is_remote {
            return None;
        }
        let place = match &self.store {
            Some(path) => Place { path: path.clone(), from: Origin::Option("--store") },
            None => find_store::settings().unwrap_or_else(|_| find_store::nowhere()).1,
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
            let is_meant = |header: &Header| is_for(verb, header) && here.has(&store, header);
            if headers.iter().any(is_meant) {
                headers.retain(is_meant);
            }
        }
        headers.sort_by_key(|header| !is_for(verb, header));
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
        Some(last.into_iter().chain(of_all).filter(|(key, _)| key.starts_with(word)).map(offer).collect())
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
        let of_all = list.steps.iter().rev().map(|step| (step.n.to_string(), steps::words(&step.command.argv)));
        let zero = (verb == "rewind").then(|| ("0".to_owned(), "the tree as it was".to_owned()));
        Some(of_all.chain(zero).filter(|(n, _)| n.starts_with(word)).map(offer).collect())
    }

    /// Numbers of this project's turns with their prompts, the newest first. Without any that fits, a path is meant.
    fn turns(&self, word: &OsStr) -> Option<Vec<CompletionCandidate>> {
        let word = word.to_str()?;
        let directory = project_of(&directory(Some(Path::new("."))).ok()?, dirs::home_dir().as_deref());
        let turns = Turns::open(&self.store()?, &directory).ok()??.all().ok()?;
        let of_all = turns.iter().rev().map(|turn| (turn.head.n.to_string(), turn.head.prompt.clone()));
        Some(of_all.filter(|(n, _)| n.starts_with(word)).map(offer).collect())
    }

    /// Numbers and labels, the newest first.
    fn snapshots(&self, word: &OsStr) -> Option<Vec<CompletionCandidate>> {
        let word = word.to_str()?;
        let series = Series::open(&self.store()?, &directory(self.dir.as_deref()).ok()?).ok()??;
        let (mut summaries, _) = series.summaries().ok()?;
        summaries.sort_by_key(|summary| std::cmp::Reverse(summary.head.n));
        let last = [("last".to_owned(), "the newest".to_owned())];
        let of_all = summaries.iter().flat_map(|summary| {
            let head = &summary.head;
            let what = [Some(figures::time(head.time, false)), head.message.clone()]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("  ");
            [Some(head.n.to_string()), head.label.clone()].into_iter().flatten().map(move |key| (key, what.clone()))
        });
        Some(last.into_iter().chain(of_all).filter(|(key, _)| key.starts_with(word)).map(offer).collect())
    }
}

fn offer((key, what): (String, String)) -> CompletionCandidate {
    CompletionCandidate::new(key).help(Some(what.into()))
}

/// The session that `last` means, if a verb can act on it.
fn newest_for(verb: &str, store: &Store) -> Option<Id> {
    let newest = find_session::newest(store, &Scope::here().ok()?)?;
    is_for(verb, &newest).then_some(newest.id)
}

/// Describes a session to somebody who chooses one.
fn about(header: &Header) -> String {
    let command = header.command.as_deref().unwrap_or("staged");
    let short: String = command.chars().take(60).collect();
    format!("{short} ({})", header.status().word().replace('_', " "))
}

/// Tells whether a verb can act on a session.
fn is_for(verb: &str, header: &Header) -> bool {
    match verb {
        "session export" => header.status() == Status::Pending,
        // What it takes back is most often a commit.
        "undo" => Want::RollBack.fits(header),
        _ => find(verb).wants.is_none_or(|want| want == Want::Look || want.fits(header)),
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

/// Replaces `~/` as a shell does; it does not in a word that is being typed.
fn in_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), dirs::home_dir()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_path_buf(),
    }
}
