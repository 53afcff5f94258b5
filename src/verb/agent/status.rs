//! `agent status`: which agents are here, and if their hooks fire.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::fault::{Fault, Place, Sort};
use super::take_snapshots::home;
use super::take_snapshots::rules;
use crate::agent::{Agent, Check, Command, File, Scope, Seen, Surroundings, files, programs, settings};
use crate::error::Error;
use crate::fs::{AbsPath, is_program};
use crate::snapshot::{Walk, WalkStep, Why, choose_directory, whole};
use crate::verb::desk::Desk;
use crate::verb::error::{self, hooks as fault};
use crate::verb::policy::{Standing, standing};

/// The agents that have recant's hooks, as JSON has them: docs/json.md.
#[derive(Serialize)]
pub struct Status {
    pub agents: Vec<Judged>,
    pub not_covered: Vec<String>,
    /// The policy by which agents commit unasked, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Standing>,
    /// The agents in PATH, if none has hooks.
    #[serde(skip)]
    pub in_path: Vec<Agent>,
}

#[derive(Serialize)]
pub struct Judged {
    #[serde(flatten)]
    pub known: Known,
    /// True if its hooks are installed, nothing is known to keep them from being called, and an event came.
    pub fires: bool,
    /// Why not, and what else is to be done.
    pub problems: Vec<Fault>,
}

/// An agent, as far as it is known here.
#[derive(Serialize)]
pub struct Known {
    pub agent: Agent,
    pub name: &'static str,
    pub program: Option<PathBuf>,
    pub version: Option<String>,
    pub hooks: Vec<Hooks>,
    pub last: Option<Seen>,
    /// Files that cannot be read or parsed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

/// Recant's hooks in a file.
#[derive(Serialize)]
pub struct Hooks {
    pub scope: Scope,
    pub path: AbsPath,
    pub calls: String,
    /// True if they are what this recant would install.
    complete: bool,
}

/// The most places of the project that are named.
const PLACES: usize = 10;

/// Names what turns do not cover in this project though nobody chose that: other mounts, and what cannot be read.
///
/// # Errors
/// The project cannot be read.
pub fn closed_places(desk: &Desk, around: &Surroundings<'_>) -> Result<Vec<Place>, Error> {
    let (project, store) = (&around.project, desk.store_path()?);
    if choose_directory::check(project, &store, home().as_ref()).is_err() {
        return Ok(Vec::new());
    }
    let mut walk = Walk::new(project, &store, &rules(desk))?;
    let mut places = Vec::new();
    while let Some(met) = walk.next()? {
        let (path, why) = match met {
            WalkStep::Unlisted { path, why } => (path, error::unlisted(&why.to_string())),
            WalkStep::Left { object, why: Why::Mount } => (object.path, Why::Mount.text().to_owned()),
            WalkStep::Left { .. } | WalkStep::Object(_) => continue,
        };
        places.push(Place::Closed { path: whole(project, &path)?, why });
    }
    let more = places.len().saturating_sub(PLACES);
    places.truncate(PLACES);
    places.extend((more > 0).then_some(Place::More(more)));
    Ok(places)
}

/// Looks at an agent, or at those whose hooks are installed here.
///
/// # Errors
/// The store or the project cannot be read.
pub fn status(desk: &Desk, around: &Surroundings<'_>, agent: Option<Agent>) -> Result<Status, Error> {
    let asked = agent.map_or_else(|| with_hooks(around), |agent| vec![agent]);
    let mut not_covered: Vec<String> = error::NOT_COVERED.iter().map(|what| (*what).to_owned()).collect();
    if asked.is_empty() {
        let in_path = Agent::ALL.iter().copied().filter(|agent| around.program(agent.word()).is_some()).collect();
        return Ok(Status { agents: Vec::new(), not_covered, policy: standing(desk)?, in_path });
    }
    let agents = all(desk, around, &asked, programs::version)?;
    let agents = agents.into_iter().map(|known| {
        let (problems, fires) = problems(around, &known, Ask::Programs);
        Judged { known, fires, problems }
    });
    let agents = agents.collect();
    not_covered.extend(closed_places(desk, around)?.iter().map(error::closed_place));
    Ok(Status { agents, not_covered, policy: standing(desk)?, in_path: Vec::new() })
}

/// The agents whose hooks are installed here. A file that cannot be read counts as one that has them.
fn with_hooks(around: &Surroundings<'_>) -> Vec<Agent> {
    let has = |agent: Agent, scope: Scope| match files(around, agent, scope) {
        Ok(files) => files.iter().any(|file| !file.hooks.is_empty()),
        Err(_) => true,
    };
    Agent::ALL.iter().copied().filter(|agent| Scope::BOTH.iter().any(|scope| has(*agent, *scope))).collect()
}

/// Looks at agents. Their versions are found at the same time, by `version`.
fn all(
    desk: &Desk,
    around: &Surroundings<'_>,
    agents: &[Agent],
    version: fn(&Path) -> Option<String>,
) -> Result<Vec<Known>, Error> {
    let programs: Vec<_> = agents.iter().map(|agent| around.program(agent.word())).collect();
    let versions: Vec<_> = std::thread::scope(|scope| {
        let ask = |program: &Option<PathBuf>| {
            let program = program.clone()?;
            Some(scope.spawn(move || version(&program)))
        };
        let asked: Vec<_> = programs.iter().map(ask).collect();
        asked.into_iter().map(|asked| asked?.join().ok()?).collect()
    });
    let store = desk.store()?;
    let known = agents.iter().zip(programs).zip(versions).map(|((agent, program), version)| {
        let (mut hooks, mut unreadable) = (Vec::new(), Vec::new());
        for scope in Scope::BOTH {
            match files(around, *agent, scope) {
                Ok(files) => hooks.extend(files.iter().filter_map(|file| Hooks::of(*agent, scope, file))),
                Err(problem) => unreadable.push(problem.message().to_owned()),
            }
        }
        let last = store.and_then(|store| Seen::read(store, *agent));
        Known { agent: *agent, name: agent.name, program, version, hooks, last, unreadable }
    });
    Ok(known.collect())
}

impl Hooks {
    fn of(agent: Agent, scope: Scope, file: &File) -> Option<Self> {
        let calls = file.hooks.first()?.program.clone();
        let command = if calls.starts_with('/') { Command::of_path(agent, &calls) } else { Command::bare(agent) };
        let text = file.text.as_deref()?;
        let complete = settings::is_installed(agent, file.form, text, &command).unwrap_or(false);
        Some(Self { scope, path: file.named.clone(), calls, complete })
    }

    /// Why these hooks do not call this recant.
    fn problem(&self, around: &Surroundings<'_>, agent: Agent) -> Option<Fault> {
        let Self { scope, path, calls, complete } = self;
        let found = if calls.starts_with('/') { Some(PathBuf::from(calls)) } else { around.program(calls) };
        let Some(found) = found else { return Some(fault::not_in_path(calls, path)) };
        if !is_program(&found) {
            return Some(fault::not_startable(calls, agent, *scope));
        }
        let real = |path: &Path| path.canonicalize().ok();
        if real(&found) != std::env::current_exe().ok().and_then(|own| real(&own)) {
            return Some(fault::another_recant(calls, path));
        }
        (!complete).then(|| fault::incomplete(path, agent, *scope))
    }
}

/// The state of an agent's hooks, as `doctor` has it.
pub enum Glance {
    Fires,
    /// They are not installed.
    NotInstalled,
    /// Nothing is known to keep them from firing, and no event came.
    Unseen,
    /// They do not fire, for this reason.
    Fails(Fault),
}

/// The agents that are here, each with a glance at its hooks. Starts no program of theirs.
///
/// # Errors
/// The store cannot be read.
pub fn glance(desk: &Desk, around: &Surroundings<'_>) -> Result<Vec<(Agent, Glance)>, Error> {
    let known = all(desk, around, Agent::ALL, programs::version_of_package)?;
    let here = known.iter().filter(|known| known.program.is_some() || !known.hooks.is_empty());
    let glance = |known: &Known| match problems(around, known, Ask::Files) {
        (_, true) => Glance::Fires,
        _ if known.hooks.is_empty() && known.unreadable.is_empty() => Glance::NotInstalled,
        (problems, _) => match &problems[..] {
            [] | [Fault { sort: Sort::NoEvent, .. }, ..] => Glance::Unseen,
            [first, ..] => Glance::Fails(first.clone()),
        },
    };
    Ok(here.map(|known| (known.agent, glance(known))).collect())
}

/// Who is asked for what keeps hooks from firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// The files alone.
    Files,
    /// Also agents that tell it themselves, which takes a second.
    Programs,
}

/// The problems of an agent's hooks, those first that keep them from firing, and true if none does.
fn problems(around: &Surroundings<'_>, known: &Known, ask: Ask) -> (Vec<Fault>, bool) {
    let agent = known.agent;
    let mut stops: Vec<Fault> = known.unreadable.iter().map(Fault::new).collect();
    if known.hooks.is_empty() {
        if stops.is_empty() {
            stops.push(fault::none(agent));
        }
        return (stops, false);
    }
    let mut notes = Vec::new();
    for hooks in &known.hooks {
        let problem = hooks.problem(around, agent);
        let is_note = hooks.complete && problem.as_ref().is_some_and(|problem| problem.sort == Sort::Another);
        if is_note { &mut notes } else { &mut stops }.extend(problem);
    }
    let scopes: Vec<_> = known.hooks.iter().map(|hooks| hooks.scope).collect();
    let program = known.program.as_deref().filter(|_| ask == Ask::Programs);
    let check = Check { around, scopes: &scopes, version: known.version.as_deref(), program };
    stops.extend((agent.stops)(&check).into_iter().map(Fault::new));
    if known.hooks.len() > 1 {
        notes.push(fault::twice(agent));
    }
    match &known.last {
        None => stops.push(fault::no_event(agent)),
        Some(Seen { error: Some(_), .. }) => notes.push(fault::last_failed()),
        Some(_) => {}
    }
    let fires = stops.is_empty();
    stops.extend(notes);
    (stops, fires)
}
