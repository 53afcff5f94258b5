//! `agent status`: which agents are here, and if their hooks fire.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::settings::{File, files, surroundings};
use super::silenced::silenced;
use super::{programs, take};
use crate::agent::known::Agent;
use crate::agent::seen::Seen;
use crate::agent::settings;
use crate::agent::settings::command::Command;
use crate::agent::settings::places::{Scope, Surroundings};
use crate::error::{Error, Kind, command};
use crate::face::args::AgentStatus;
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures;
use crate::face::place::home;
use crate::fs::path::AbsPath;
use crate::remedy;
use crate::snapshot::rules::Why;
use crate::snapshot::walk::{Met, Walk};
use crate::snapshot::{place, whole};

/// The limit of time for a program that is asked.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct Status<'a> {
    agents: Vec<Judged<'a>>,
    not_covered: Vec<String>,
}

#[derive(Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    known: &'a Known,
    /// True if its hooks are installed, nothing is known to keep them from being called, and an event came.
    fires: bool,
    /// Why not, and what else is to be done.
    problems: &'a [Fault],
}

/// An agent, as far as it is known here.
#[derive(Serialize)]
struct Known {
    agent: Agent,
    name: &'static str,
    program: Option<PathBuf>,
    version: Option<String>,
    hooks: Vec<Hooks>,
    last: Option<Seen>,
    /// Files that cannot be read or parsed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

/// Recant's hooks in a file.
#[derive(Serialize)]
struct Hooks {
    scope: Scope,
    path: AbsPath,
    calls: String,
    /// True if they are what this recant would install.
    complete: bool,
}

/// Things that no hook covers.
const NOT_COVERED: [&str; 4] = [
    "files outside of the project",
    "version control's own directories, as .git, and repositories inside",
    "what git ignores and is built, downloaded or over 1 MiB, as target",
    "what an agent writes before its hooks are called, or while they are off",
];

/// The most places of the project that are named.
const PLACES: usize = 10;

/// Names what turns do not cover in this project though nobody chose that: other mounts, and what cannot be read.
pub fn closed_places(call: &Call) -> Result<Vec<String>, Error> {
    let (project, store) = (surroundings()?.project, call.store_path()?);
    if place::check(&project, &store, home().as_ref()).is_err() {
        return Ok(Vec::new());
    }
    let mut walk = Walk::new(&project, &store, &take::rules(call))?;
    let mut places = Vec::new();
    while let Some(met) = walk.next()? {
        let (path, why) = match met {
            Met::Unlisted { path, why } => (path, format!("it cannot be read ({why})")),
            Met::Left { object, why: Why::Mount } => (object.path, Why::Mount.text().to_owned()),
            Met::Left { .. } | Met::Object(_) => continue,
        };
        places.push(format!("{}: {why}", call.out.shown(&whole(&project, &path)?)));
    }
    let more = places.len().saturating_sub(PLACES);
    places.truncate(PLACES);
    if more > 0 {
        places.push(format!("… and {}", figures::count(more as u64, "more place")));
    }
    Ok(places)
}

pub fn status(call: &Call, args: &AgentStatus) -> Result<Ended, Error> {
    let asked: Vec<Agent> = match args.agent {
        Some(agent) => vec![agent],
        None => with_hooks()?,
    };
    if asked.is_empty() {
        if !call.out.is_text() {
            call.out.document(&Status { agents: Vec::new(), not_covered: NOT_COVERED.map(str::to_owned).into() });
        }
        let here = Agent::ALL.iter().map(|agent| agent.word()).filter(|word| programs::find(word).is_some()).collect::<Vec<_>>();
        let here = if here.is_empty() { "none is in PATH".into() } else { format!("in PATH: {}", here.join(", ")) };
        call.out.note(format_args!("no agent has recant's hooks here; {here}: {} adds them", command("agent install AGENT")));
        return Ok(Ended::With(Kind::LeftOut));
    }
    let around = surroundings()?;
    let known = all(call, &asked, |program| programs::version(program, LIMIT))?;
    let problems: Vec<_> = known.iter().map(|known| problems(&around, known, Ask::Programs)).collect();
    let judged = known.iter().zip(&problems).map(|(known, (problems, fires))| Judged { known, fires: *fires, problems });
    let judged: Vec<_> = judged.collect();
    let all_fire = judged.iter().all(|judged| judged.fires);
    let not_covered: Vec<String> = NOT_COVERED.iter().map(|what| (*what).to_owned()).chain(closed_places(call)?).collect();
    if call.out.is_text() {
        judged.iter().for_each(|judged| say(call, judged));
        call.out.line("not covered:");
        not_covered.iter().for_each(|what| call.out.line(format_args!("  {what}")));
    } else {
        call.out.document(&Status { agents: judged, not_covered });
    }
    Ok(if all_fire { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn say(call: &Call, Judged { known, fires, problems }: &Judged<'_>) {
    let out = &call.out;
    let version = known.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let verdict = match problems {
        _ if *fires => "hooks fire",
        [Fault { of: Of::NoEvent, .. }] => "hooks have not fired yet",
        _ => "hooks do not fire",
    };
    out.line(format_args!("{}{version}: {verdict}", known.name));
    let line = |key: &str, value: &str| out.line(format_args!("  {key:<8} {value}"));
    match &known.program {
        Some(program) => line("program", &program.to_string_lossy()),
        None => line("program", &format!("{} is not in PATH", known.agent.word())),
    }
    for hooks in &known.hooks {
        line("hooks", &format!("{} ({})", out.shown(&hooks.path), hooks.scope.word()));
        line("calls", &hooks.calls);
    }
    match &known.last {
        Some(seen) => {
            line("last", &format!("{} {} in {}", figures::time(seen.time, true), seen.event, out.place(&seen.directory)));
            seen.error.iter().for_each(|error| line("error", error));
        }
        None => line("last", "none"),
    }
    problems.iter().for_each(|problem| out.line(figures::filled_after("  !", &out.sentence(&problem.to_string()), 4)));
}

/// The agents whose hooks are installed here. A file that cannot be read counts as one that has them.
fn with_hooks() -> Result<Vec<Agent>, Error> {
    let around = surroundings()?;
    let has = |agent: &Agent| {
        Scope::BOTH.iter().any(|scope| match files(&around, *agent, *scope) {
            Ok(files) => files.iter().any(|file| !file.hooks.is_empty()),
            Err(_) => true,
        })
    };
    Ok(Agent::ALL.into_iter().filter(has).collect())
}

/// Looks at agents. Their versions are found at the same time, by `version`.
fn all(call: &Call, agents: &[Agent], version: fn(&Path) -> Option<String>) -> Result<Vec<Known>, Error> {
    let programs: Vec<_> = agents.iter().map(|agent| programs::find(agent.word())).collect();
    let versions: Vec<_> = std::thread::scope(|scope| {
        let ask = |program: &Option<PathBuf>| {
            let program = program.clone()?;
            Some(scope.spawn(move || version(&program)))
        };
        let asked: Vec<_> = programs.iter().map(ask).collect();
        asked.into_iter().map(|asked| asked?.join().ok()?).collect()
    });
    let around = surroundings()?;
    let store = call.store()?;
    let known = agents.iter().zip(programs).zip(versions).map(|((agent, program), version)| {
        let (mut hooks, mut unreadable) = (Vec::new(), Vec::new());
        for scope in Scope::BOTH {
            match files(&around, *agent, scope) {
                Ok(files) => hooks.extend(files.iter().filter_map(|file| Hooks::of(*agent, scope, file))),
                Err(problem) => unreadable.push(problem.message().to_owned()),
            }
        }
        let last = store.and_then(|store| Seen::read(store, *agent));
        Known { agent: *agent, name: agent.name(), program, version, hooks, last, unreadable }
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
    fn problem(&self, agent: Agent) -> Option<Fault> {
        let found = if self.calls.starts_with('/') { Some(PathBuf::from(&self.calls)) } else { programs::find(&self.calls) };
        let again = command(format_args!("agent install {}{}", agent.word(), self.scope.option()));
        let real = |path: &Path| path.canonicalize().ok();
        match found {
            None => Some(Fault::new(format!("{} is not in PATH: the hooks of {} call nothing", self.calls, self.path))),
            Some(found) if !programs::is_program(&found) => {
                let fault = Fault::new(format!("{} cannot be started", self.calls));
                Some(Fault { remedy: Some((again, " names this recant instead")), ..fault })
            }
            Some(found) => {
                let own = std::env::current_exe().ok().and_then(|own| real(&own));
                let another = || Fault {
                    of: Of::Another,
                    ..Fault::new(format!("the hooks of {} call another recant, {}", self.path, self.calls))
                };
                let parts =
                    || Fault { remedy: Some((again, "")), ..Fault::new(format!("the hooks of {} are not all there", self.path)) };
                (real(&found) != own).then(another).or_else(|| (!self.complete).then(parts))
            }
        }
    }
}

/// A reason why hooks do not fire, or what else is to be known of them.
#[derive(Debug, Clone)]
pub struct Fault {
    pub why: String,
    /// The command that helps, and what it does.
    pub remedy: Option<(remedy::Command, &'static str)>,
    of: Of,
}

/// The faults that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// No event ever came.
    NoEvent,
    /// Hooks call another recant.
    Another,
    Other,
}

impl Fault {
    fn new(why: impl ToString) -> Self {
        Self { why: why.to_string(), remedy: None, of: Of::Other }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.remedy {
            Some((command, tail)) => write!(f, "{}: {command}{tail}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
pub fn glance(call: &Call) -> Result<Vec<(Agent, Glance)>, Error> {
    let around = surroundings()?;
    let known = all(call, &Agent::ALL, programs::version_of_package)?;
    let here = known.iter().filter(|known| known.program.is_some() || !known.hooks.is_empty());
    let glance = |known: &Known| match problems(&around, known, Ask::Files) {
        (_, true) => Glance::Fires,
        _ if known.hooks.is_empty() && known.unreadable.is_empty() => Glance::NotInstalled,
        (problems, _) => match &problems[..] {
            [] | [Fault { of: Of::NoEvent, .. }, ..] => Glance::Unseen,
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
    let mut notes: Vec<Fault> = Vec::new();
    if known.hooks.is_empty() && !stops.is_empty() {
        return (stops, false);
    }
    if known.hooks.is_empty() {
        let install = command(format_args!("agent install {}", agent.word()));
        let tail = " adds them; those of a plugin are not seen here";
        stops.push(Fault { remedy: Some((install, tail)), ..Fault::new("no hooks are in its settings") });
        return (stops, false);
    }
    for hooks in &known.hooks {
        let problem = hooks.problem(agent);
        match hooks.complete {
            true if problem.as_ref().is_some_and(|problem| problem.of == Of::Another) => notes.extend(problem),
            _ => stops.extend(problem),
        }
    }
    stops.extend(too_old(known).map(Fault::new));
    let scopes: Vec<_> = known.hooks.iter().map(|hooks| hooks.scope).collect();
    stops.extend(silenced(around, agent, &scopes).into_iter().map(Fault::new));
    if ask == Ask::Programs
        && agent == Agent::Codex
        && let Some(program) = &known.program
    {
        stops.extend(untrusted(program, &around.project).map(Fault::new));
    }
    if known.hooks.len() > 1 {
        let remove = command(format_args!("agent uninstall {}", agent.word()));
        let tail = " removes your own, where the project's are enough";
        notes.push(Fault { remedy: Some((remove, tail)), ..Fault::new("each event comes once for each file") });
    }
    match &known.last {
        None => {
            let why = format!("no event was ever seen: start {}, and ask again", agent.name());
            stops.push(Fault { of: Of::NoEvent, ..Fault::new(why) });
        }
        Some(Seen { error: Some(_), .. }) => notes.push(Fault::new("the last event was not dealt with, as the error tells")),
        Some(_) => {}
    }
    let fires = stops.is_empty();
    stops.extend(notes);
    (stops, fires)
}

/// The first version of Claude Code that starts a hook with its arguments, without a shell.
const CLAUDE_WITH_ARGS: [u64; 3] = [2, 1, 139];

/// Why this version of Claude Code does not call its user's hooks as they are written.
fn too_old(known: &Known) -> Option<String> {
    let version = known.version.as_deref().filter(|_| known.agent == Agent::Claude)?;
    let numbers: Vec<u64> = version.split('.').map_while(|part| part.parse().ok()).collect();
    let is_used = known.hooks.iter().any(|hooks| hooks.scope == Scope::User);
    let why = || format!("Claude Code {version} starts hooks without their arguments: update it to 2.1.139 or newer");
    (is_used && numbers.len() == 3 && numbers[..] < CLAUDE_WITH_ARGS[..]).then(why)
}

/// Why Codex CLI passes over hooks, as it says itself.
fn untrusted(program: &Path, project: &AbsPath) -> Option<String> {
    const TRUSTED: [&str; 2] = ["trusted", "managed"];
    let listed = programs::hooks_of_codex(program, project.as_path(), LIMIT)?;
    let ours: Vec<_> = listed.iter().filter(|hook| Command::called(Agent::Codex, hook).is_some()).collect();
    let count = |n: usize| format!("{n} of {}", figures::count(ours.len() as u64, "hook"));
    let off = ours.iter().filter(|hook| hook["enabled"] == false).count();
    let untrusted = ours.iter().filter(|hook| !TRUSTED.contains(&hook["trustStatus"].as_str().unwrap_or_default())).count();
    if ours.is_empty() {
        return Some("Codex CLI does not load the hooks: is the project trusted there?".into());
    }
    if off > 0 {
        return Some(format!("{} are switched off in Codex CLI: /hooks in it switches them on", count(off)));
    }
    (untrusted > 0).then(|| {
        format!("Codex CLI passes over {} that nobody has trusted: /hooks in it shows and trusts them", count(untrusted))
    })
}
