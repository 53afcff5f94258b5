//! `hook`: what an agent calls at each event. It notes the event, and has snapshots taken. An error of recant's is noted and told, but
//! never an agent's: the exit status is always 0.

use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::take::{self, Taking};
use super::uncovered::lost;
use crate::agent::event::{Effect, Event, Tool, What};
use crate::agent::known::Agent;
use crate::agent::look::Look;
use crate::agent::look::id;
use crate::agent::seen::Seen;
use crate::agent::turn::{Call as Use, Head, Line, Named, Place, Ran, Turn};
use crate::agent::turns::Turns;
use crate::capture::run::inside::capture;
use crate::error::{At, Error};
use crate::face::args::{Hook, Take};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::place::{absolute, home};
use crate::fs::dir::{Dir, Time};
use crate::fs::path::AbsPath;
use crate::session::by::Pointer;
use crate::session::store::Store;
use crate::snapshot::{place, whole};
use crate::tree::project::project_of;

/// The most bytes of an event that are read. A tool may write a large file.
const MOST: u64 = 64 << 20;
/// The longest time for which an agent waits for a snapshot.
const BUDGET: Duration = Duration::from_secs(5);
/// The most characters of a prompt that are kept.
const PROMPT: usize = 200;

pub fn hook(call: &Call, args: &Hook) -> Result<Ended, Error> {
    if args.take.is_some() {
        return take::take(call, args);
    }
    let began = crate::fs::now();
    let mut text = Vec::new();
    let mut input = std::io::stdin().lock();
    let read = input.by_ref().take(MOST).read_to_end(&mut text);
    // The rest is of no use, but an agent whose pipe breaks takes that for a failure.
    let read = read.and_then(|_| std::io::copy(&mut input, &mut std::io::sink()));
    read.at("read the event from", "standard input").map_err(Error::from)?;
    if let Some(file) = &args.record {
        record(call, file, &text)?;
    }
    // What a run holds is no turn's, but where it has a store of its own; and Copilot CLI calls Claude Code's hooks beside its own.
    let is_copilots = args.agent == Agent::Claude && std::env::var_os("COPILOT_CLI").is_some();
    if capture().is_some_and(|inside| inside.store.is_none()) || is_copilots {
        return Ok(Ended::Done);
    }
    let event = Event::read(&text).map_err(|why| Error::refused(format!("the event cannot be read: {why}")));
    let said = event.and_then(|event| {
        let reacting = Reacting { call, agent: args.agent, event: &event, began };
        let said = reacting.react();
        let noted = note_seen(call, args.agent, &event, began, said.as_ref().err());
        // A directory of which no snapshot may be taken is told at the session's start.
        let is_told = matches!(event.what, What::Prompt(_)) && reacting.directory().is_ok();
        match (said, noted) {
            (Err(problem), _) if is_told => Ok(Some(format!("this turn cannot be undone: {}", problem.message()))),
            (said, Ok(())) | (said @ Err(_), _) => said,
            (Ok(_), Err(problem)) => Err(problem),
        }
    });
    let said = said.unwrap_or_else(|problem| {
        call.out.warn(problem.message());
        None
    });
    answer(call, args.agent, said.as_deref());
    Ok(Ended::Done)
}

/// Appends an event as it came, and ends the line.
fn record(call: &Call, file: &Path, text: &[u8]) -> Result<(), Error> {
    let file = absolute(&crate::face::place::whole(file)?)?;
    let dir = Dir::open(file.parent().unwrap_or_else(|| file.clone()).as_path())?;
    let at = dir.at(file.name());
    let end: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
    let open = call.fs.append(at).map_err(Error::from)?;
    call.fs.write(&open, &[text, end].concat(), at).map_err(Error::from)
}

fn note_seen(call: &Call, agent: Agent, event: &Event, time: Time, error: Option<&Error>) -> Result<(), Error> {
    let directory = event.cwd.as_deref().and_then(|cwd| absolute(cwd).ok()).or_else(|| absolute(Path::new(".")).ok());
    let Some(directory) = directory else { return Ok(()) };
    let error = error.map(|problem| problem.message().to_owned());
    let seen = Seen { time, event: event.name.clone(), directory, version: env!("CARGO_PKG_VERSION").into(), error };
    seen.write(&call.fs, &call.made_store()?, agent)
}

/// Says what the agent shows its person, as that agent reads it. Where it wants JSON, nothing is `{}`.
fn answer(call: &Call, agent: Agent, said: Option<&str>) {
    let speaks = matches!(agent, Agent::Claude | Agent::Codex | Agent::Gemini);
    match said {
        Some(said) if speaks => call.out.line(serde_json::json!({ "systemMessage": format!("recant: {said}") })),
        Some(said) => call.out.warn(said),
        None if matches!(agent, Agent::Codex | Agent::Gemini) => call.out.line("{}"),
        None => {}
    }
}

/// An event, and what is needed to react to it.
struct Reacting<'a> {
    call: &'a Call,
    agent: Agent,
    event: &'a Event,
    began: Time,
}

impl Reacting<'_> {
    /// Does what the event asks for. Returns what a person should know.
    fn react(&self) -> Result<Option<String>, Error> {
        match &self.event.what {
            What::SessionStart => self.session_starts(),
            What::Prompt(prompt) => match self.present()? {
                // What the agent says to itself in the turn.
                Some((_, turn)) if turn.head.key.is_some() && turn.head.key == self.event.turn => Ok(None),
                _ => self.begin(prompt).map(|(_, said)| said),
            },
            What::Before(tool) if tool.effect != Effect::None => self.before(tool),
            What::After { tool, took, changed } if tool.effect != Effect::None => {
                let Some((turns, turn)) = self.present()? else { return Ok(None) };
                let told = changed.iter().filter_map(|path| self.inner(&turn.head.directory, path)).collect();
                let (id, name) = (tool.call.clone(), tool.name.clone());
                self.look(&turns, &turn.head, Line::Done { time: self.began, id, name, took: *took, told })?;
                Ok(None)
            }
            What::SubagentEnd => self.settle(Duration::ZERO),
            // Agents wait for that not much longer than a second.
            What::SessionEnd => self.end(Duration::ZERO),
            What::TurnEnd => self.end(BUDGET),
            What::Before(_) | What::After { .. } | What::Other => {
                self.say_who()?;
                Ok(None)
            }
        }
    }

    /// Prepares: a first snapshot, which the turns' own then only add to.
    fn session_starts(&self) -> Result<Option<String>, Error> {
        self.say_who()?;
        match self.directory() {
            Ok(directory) => {
                Taking::start(self.call, self.agent, Take::Ready, &directory, 0)?;
                Ok(None)
            }
            Err(problem) => Ok(Some(format!("no turn can be undone here: {}", problem.message()))),
        }
    }

    /// Begins a turn, and has its snapshot taken.
    fn begin(&self, prompt: &str) -> Result<((Turns, Head), Option<String>), Error> {
        let (call, event) = (self.call, self.event);
        let directory = self.directory()?;
        let store = call.made_store()?;
        let was_told = self.present()?.is_some_and(|(_, turn)| !turn.covered);
        let turns = Turns::create(&call.fs, &store, &directory)?;
        let (head, is_new) = turns.begin(
            &call.fs,
            Head {
                n: 0,
                agent: self.agent,
                session: event.session.clone(),
                key: event.turn.clone(),
                directory: directory.clone(),
                place: Place::of(&directory),
                prompt: first_line(prompt),
                model: event.model.clone(),
                time: self.began,
            },
        )?;
        let pointer = Pointer {
            agent: self.agent.word().into(),
            session: event.session.clone(),
            directory: directory.clone(),
            turn: head.n,
        };
        pointer.write(&call.fs, &store.dir)?;
        let has_ended = match is_new {
            true => Taking::start(call, self.agent, Take::Before, &directory, head.n)?.wait(BUDGET),
            false => take::is_taken(&turns, head.n, BUDGET)?,
        };
        let turn = turns.turn(head.n)?;
        let why = match turn.as_ref().and_then(|turn| turn.failed.clone()) {
            Some(why) => Some(why),
            None if turn.is_some_and(|turn| turn.before.is_some()) => None,
            None if has_ended => Some("the process that takes its snapshot was ended".into()),
            None => Some(format!("{directory} is large, and its snapshot is not whole yet")),
        };
        let said = why.filter(|_| !was_told && is_new).map(|why| format!("turn {} cannot be undone: {why}", head.n));
        Ok(((turns, head), said))
    }

    /// Notes a tool that may write, in a new turn if its agent began none.
    fn before(&self, tool: &Tool) -> Result<Option<String>, Error> {
        let goes_on = |turn: &Turn| match (&self.event.turn, &turn.head.key) {
            _ if self.event.is_subagents => true,
            (Some(own), Some(key)) => own == key,
            _ => turn.ended.is_none(),
        };
        let ((turns, head), said) = match self.present()? {
            Some((turns, turn)) if goes_on(&turn) => ((turns, turn.head), None),
            _ => self.begin("")?,
        };
        let (mut paths, mut outside) = (Vec::new(), Vec::new());
        if let Effect::Paths(named) = &tool.effect {
            for path in named {
                match self.named(&head.directory, path) {
                    Some(named) => paths.extend(named),
                    None => outside.push(path.clone()),
                }
            }
        }
        // The time is that of the tool, after a snapshot that was waited for.
        let time = if said.is_none() { self.began } else { crate::fs::now() };
        let (name, id) = (tool.name.clone(), tool.call.clone());
        let used = Use { time, name, id, paths, outside, ran: Ran::default() };
        self.look(&turns, &head, Line::Tool(used))?;
        Ok(said)
    }

    /// Notes what has changed in the directory since the last look, then the line.
    fn look(&self, turns: &Turns, head: &Head, line: Line) -> Result<(), Error> {
        let store = self.call.made_store()?;
        let look = |earlier: Option<&Look>| take::look(self.call, &store, &head.directory, turns.turn(head.n)?.as_ref(), earlier);
        turns.look(&self.call.fs, head.n, look, vec![line])
    }

    /// A named path, if it lies in the directory; with the one that it leads to, if it is a link.
    fn named(&self, directory: &AbsPath, path: &Path) -> Option<Vec<Named>> {
        let base = self.event.cwd.clone().unwrap_or_else(|| directory.as_path().to_owned());
        let led = base.join(path).canonicalize().ok().and_then(|to| self.inner(directory, &to));
        let of = |path: AbsPath| {
            let whole = whole(directory, &path).ok();
            let stat = whole.and_then(|whole| Dir::open(whole.parent()?.as_path()).ok()?.at(whole.name()).stat().ok()?);
            Named { path, id: stat.map(|stat| id(&stat)) }
        };
        let given = self.inner(directory, path);
        let led = led.filter(|led| Some(led) != given.as_ref());
        let named: Vec<Named> = given.into_iter().chain(led).map(of).collect();
        (!named.is_empty()).then_some(named)
    }

    /// A path that the agent tells, with the directory as `/`, if it lies in it.
    fn inner(&self, directory: &AbsPath, path: &Path) -> Option<AbsPath> {
        let base = self.event.cwd.clone().unwrap_or_else(|| directory.as_path().to_owned());
        AbsPath::parse([b"/", resolved(&base.join(path))?.below(directory)?].concat()).ok()
    }

    /// The present turn of the agent's session.
    fn present(&self) -> Result<Option<(Turns, Turn)>, Error> {
        let Some(store) = self.call.store()? else { return Ok(None) };
        let Some(pointer) = self.pointer(store) else { return Ok(None) };
        let Some(turns) = Turns::open(store, &pointer.directory)? else { return Ok(None) };
        Ok(turns.turn(pointer.turn)?.map(|turn| (turns, turn)))
    }

    fn pointer(&self, store: &Store) -> Option<Pointer> {
        Pointer::read(&store.dir, self.agent.word(), &self.event.session)
    }

    fn end(&self, longest: Duration) -> Result<Option<String>, Error> {
        if let Some((turns, turn)) = self.present()?
            && (turn.ended.is_none() || !turn.is_settled)
        {
            turns.add(&self.call.fs, turn.head.n, &[Line::End { time: self.began }])?;
        }
        self.settle(longest)?;
        match self.present()? {
            Some((_, turn)) if turn.is_settled && longest > Duration::ZERO => lost(self.call, &turn.head.directory, &turn),
            _ => Ok(None),
        }
    }

    /// Has the snapshot taken that shows what the present turn has done, if a tool may have written since the last one.
    fn settle(&self, longest: Duration) -> Result<Option<String>, Error> {
        if let Some((_, turn)) = self.present()?
            && !turn.is_settled
        {
            Taking::start(self.call, self.agent, Take::After, &turn.head.directory, turn.head.n)?.wait(longest);
        }
        Ok(None)
    }

    /// The project that the agent's session works in: the one that it began in, whatever directory it is in now.
    fn directory(&self) -> Result<AbsPath, Error> {
        if let Some(pointer) = self.call.store()?.and_then(|store| self.pointer(store)) {
            return Ok(pointer.directory);
        }
        let told = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"].into_iter().find_map(std::env::var_os).map(PathBuf::from);
        let told = told.filter(|dir| dir.is_absolute()).or_else(|| self.event.cwd.clone()).unwrap_or_else(|| ".".into());
        let directory = project_of(&absolute(&told)?, dirs::home_dir().as_deref());
        place::check(&directory, &self.call.store_path()?, home().as_ref())?;
        Ok(directory)
    }

    /// Sets the variables by which commands of the agent are told from a person's, where Claude Code has a file for that.
    fn say_who(&self) -> Result<(), Error> {
        let Some(file) = std::env::var_os("CLAUDE_ENV_FILE").filter(|file| !file.is_empty() && self.agent == Agent::Claude)
        else {
            return Ok(());
        };
        let line = format!(
            "export RECANT_AGENT={} RECANT_AGENT_SESSION={}\n",
            self.agent.word(),
            crate::error::shell_word(self.event.session.as_bytes())
        );
        if std::fs::read(&file).is_ok_and(|text| text.windows(line.len()).any(|part| part == line.as_bytes())) {
            return Ok(());
        }
        record(self.call, Path::new(&file), line.as_bytes())
    }
}

/// The first line of a prompt that has something in it, cut to [`PROMPT`].
fn first_line(prompt: &str) -> String {
    prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().chars().take(PROMPT).collect()
}

/// A path without `.`, `..` and links, its last name excepted. Of directories that are missing the names are taken as they are.
fn resolved(path: &Path) -> Option<AbsPath> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    let name = plain.file_name()?.to_owned();
    let parent = plain.parent()?;
    let there = parent.ancestors().find_map(|above| Some((above.canonicalize().ok()?, parent.strip_prefix(above).ok()?)));
    let (above, below) = there?;
    AbsPath::parse(above.join(below).join(name).into_os_string().into_vec()).ok().filter(|path| !path.as_bytes().is_empty())
}
