//! An agent as the guest of a run: what stays real for it, the store that it has inside, and what is committed by itself at its end.

use std::ffi::OsString;
use std::io::Read;

use globset::{GlobSet, GlobSetBuilder};

use super::agents::settings::{name_of, surroundings};
use super::args::Verb;
use super::door::Door;
use super::problem::Problem;
use super::{Call, help, parts, text};
use crate::agent::known::Agent;
use crate::agent::state::{State, obeyed_change};
use crate::capture::layout::Pass;
use crate::config::path_glob;
use crate::diff::entries::Taken;
use crate::diff::picked::{Pick, Picked, seen};
use crate::diff::sources::{Content, OnTree, Sources};
use crate::error::{At, Error, Kind, command};
use crate::fs::path::AbsPath;
use crate::session::change::Change;
use crate::session::header::Header;
use crate::session::id::Id;
use crate::session::opened::{Locked, Session};
use crate::session::own_store;
use crate::session::sides::Side;
use crate::session::store::Store;

/// The most bytes of a file of state that are read for what an agent obeys in it.
const MOST: u64 = 16 << 20;

/// An agent that is held.
#[derive(Debug)]
pub struct Guest {
    agent: Agent,
    passes: Vec<AbsPath>,
    records: Vec<String>,
    /// Open as long as it is here.
    _door: Door,
}

impl Guest {
    /// Makes all ready for an agent in a session's run.
    ///
    /// # Errors
    /// No home directory is known; the own store cannot be made.
    pub fn receive(call: &Call, store: &Store, agent: Agent, session: &Session) -> Result<Self, Problem> {
        let usual = State::of(agent, &surroundings()?);
        let set = call.config.agents.get(agent.word());
        let passes: Vec<AbsPath> = match set.and_then(|set| set.pass.as_ref()) {
            Some(paths) => paths.iter().filter_map(|path| AbsPath::parse(path.as_os_str().as_encoded_bytes()).ok()).collect(),
            None => usual.pass,
        };
        let records = set.and_then(|set| set.records.clone()).unwrap_or(usual.records);
        // What an earlier run of the session changed it has to see.
        let changes = session.changes()?;
        let is_held = |path: &AbsPath| changes.list.iter().any(|held| held.path.is_under(path) || path.is_under(&held.path));
        let passes = passes.into_iter().filter(|path| path.as_path().exists() && !is_held(path)).collect();
        let own_store = own_store::make(&call.fs, store, session)?;
        let door = Door::open(&call.fs, store, session.id(), &own_store)?;
        Ok(Self { agent, passes, records, _door: door })
    }

    /// The paths that stay real for it.
    pub fn passes(&self) -> impl Iterator<Item = Pass> {
        let why = format!("{} records there", self.agent.name());
        self.passes.iter().map(move |path| Pass { path: path.as_path().to_path_buf(), why: why.clone() })
    }

    /// The variables that tell processes inside of the agent and of its store.
    pub fn env(&self, store: &Store) -> Vec<(OsString, OsString)> {
        vec![("RECANT_AGENT".into(), self.agent.word().into()), ("RECANT_STORE".into(), store.path.as_path().as_os_str().into())]
    }

    /// Says, before the agent starts, where its changes go, what is not held, and what a person should know.
    pub fn greet(&self, call: &Call, session: &Session) {
        let named = session.header.name.as_ref().map(|name| format!(", named {name}")).unwrap_or_default();
        let names = call.out.names();
        let real = match &self.passes[..] {
            [] => "nothing stays real".to_owned(),
            [one] => format!("real: {}", names.show(one)),
            [first, rest @ ..] => format!("real: {} and {} more", names.show(first), rest.len()),
        };
        call.out.note(format_args!("{} is held in session {}{named}; {real}", self.agent.name(), session.id().tail()));
        call.out.note("save files here after it has ended: it may not see them before, and they are conflicts then");
    }

    /// Commits what the agent only recorded about itself, as a session of its own, and says so. What it obeys of it, and what somebody else
    /// changed meanwhile, stays held.
    ///
    /// # Errors
    /// The session cannot be read, or the commit fails for another reason than a conflict. All stays held then.
    pub fn commit_records(&self, call: &Call, store: &Store, session: Locked) -> Result<Locked, Problem> {
        let id = session.id().clone();
        let Records { picked, held } = self.records(&session)?;
        drop(session);
        for (path, why) in &held {
            call.out.note(format_args!("{} is held: {why}", call.out.names().show(path)));
        }
        if !picked.0.is_empty() {
            let count = picked.0.len();
            match commit(call, &id, picked) {
                // Somebody writes there just now.
                Err(problem) if problem.kind == Kind::Conflict => {
                    call.out.note(format_args!("what {} keeps about itself is held: {}", self.agent.name(), problem.message));
                }
                part => self.say_committed(call, count, &part?),
            }
        }
        Ok(store.lock_session(&call.fs, &id)?)
    }

    fn say_committed(&self, call: &Call, count: usize, part: &Option<Id>) {
        let files = text::count(count as u64, "file");
        let back =
            part.as_ref().map(|part| format!("; {}", command(format_args!("rollback {}", part.tail())))).unwrap_or_default();
        call.out.note(format_args!("{files} that {} keeps about itself committed{back}", self.agent.name()));
    }

    /// The changes of files that the agent only records.
    fn records(&self, session: &Session) -> Result<Records, Problem> {
        let globs = set_of(&self.records)?;
        let changes = session.changes()?;
        let sides = session.sides(changes.list.len())?;
        let mut sources = Sources::of(session)?;
        let (mut picks, mut held) = (Vec::new(), Vec::new());
        for (change, side) in changes.list.iter().zip(&sides) {
            if side.is_in() || !globs.is_match(change.path.as_path()) {
                continue;
            }
            let path = change.path.clone();
            if let Some(member) = changes_obeyed(change, &mut sources)? {
                held.push((path, format!("{} obeys {member} in it, and that was changed", self.agent.name())));
            } else if change.marks.foreign || sources.on_tree(change, *side) != OnTree::AsRecorded {
                held.push((path, "somebody else changed it meanwhile".into()));
            } else {
                picks.push(Pick { path, taken: Taken::Whole, seen: seen(change, *side, &mut sources) });
            }
        }
        Ok(Records { picked: Picked(picks), held })
    }
}

/// Files that the agent recorded about itself: those that can be committed, and those that stay held, each with the reason.
struct Records {
    picked: Picked,
    held: Vec<(AbsPath, String)>,
}

/// The member of a JSON file that an agent obeys and that a change changes; `None` if there is none.
fn changes_obeyed(change: &Change, sources: &mut Sources<'_>) -> Result<Option<String>, Error> {
    if !String::from_utf8_lossy(change.path.name()).contains(".json") || change.path.name().ends_with(b".jsonl") {
        return Ok(None);
    }
    // Of what is missing, or cannot be compared, all counts as changed.
    let before = std::fs::read(change.path.as_path()).unwrap_or_default();
    let mut after = Vec::new();
    if let Content::File(file) = sources.after(change, Side::Never, &OnTree::AsRecorded)? {
        file.take(MOST + 1).read_to_end(&mut after).at("read", &change.path)?;
    }
    if after.len() as u64 > MOST {
        return Ok(Some(format!("what is more than {}", text::bytes(MOST))));
    }
    Ok(obeyed_change(&before, &after))
}

fn set_of(globs: &[String]) -> Result<GlobSet, Problem> {
    let wrong = |glob: &str, why: globset::Error| Problem::refused(format!("agent.NAME.records: {glob:?}: {why}"));
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(path_glob(glob).map_err(|why| wrong(glob, why))?);
    }
    set.build().map_err(|why| wrong("", why))
}

/// Commits picks of a session; returns the session that they became, if they became one.
fn commit(call: &Call, id: &Id, picked: Picked) -> Result<Option<Id>, Problem> {
    let words = [OsString::from("recant"), "commit".into(), id.as_str().into()];
    let mut verb = help::parse(&words).map_err(|error| Problem::refused(error.to_string()))?.verb;
    let Some(Verb::Commit(args)) = &mut verb else { return Ok(None) };
    args.what.picked = Some(picked);
    let within = call.for_screen();
    parts::commit::commit(&within, args)?;
    Ok(within.out.session.take().filter(|made| made != id))
}

/// A name for a session: the agent's and the project's, with a number if it is taken.
pub fn name(store: Option<&Store>, agent: Agent) -> Result<String, Problem> {
    let base = name_of(agent)?;
    let headers: Vec<Header> = store.map_or(Ok(Vec::new()), |store| store.headers().map(|(headers, _)| headers))?;
    let is_taken = |name: &str| headers.iter().any(|header| header.name.as_deref() == Some(name));
    let numbered = (2..).map(|n: u32| format!("{base}-{n}"));
    let name = std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name));
    Ok(name.unwrap_or(base))
}
