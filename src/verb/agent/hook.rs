//! `hook`: what an agent calls at each event. It notes the event, and has snapshots taken.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::take_snapshots::Taking;
use super::take_snapshots::home;
use super::take_snapshots::is_taken;
use super::take_snapshots::look;
use super::uncovered::{NotCovered, not_covered};
use crate::agent::{
    Agent, Call, Effect, Event, Head, Line, Look, Named, Place, Ran, Seen, Tool, Turn, Turns, What, When, fates, id,
};
use crate::capture::capture;
use crate::error::{Error, shell_word};
use crate::fs::{AbsPath, Dir, Time, absolute};
use crate::session::{Header, Pointer, Status, Store};
use crate::snapshot::{Why, choose_directory, whole};
use crate::tree::project_of;
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::resolve::scope::Scope;

/// The longest time for which an agent waits for a snapshot.
const BUDGET: Duration = Duration::from_secs(5);
/// The most characters of a prompt that are kept.
const PROMPT: usize = 200;

/// An event of an agent, as its hook has it.
pub struct Told<'a> {
    pub agent: Agent,
    pub text: &'a [u8],
    pub began: Time,
    /// The values of environment variables.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Starts the process that takes a snapshot of a directory for a turn.
    pub start: &'a dyn Fn(When, &AbsPath, u64) -> Result<Taking, Error>,
}

/// Something that is said at an event: to the agent's person, or to the agent.
pub enum Notice {
    /// To the agent, when a conversation begins, goes on, or was made shorter.
    Starts(Start),
    /// No snapshot can be taken here.
    NoTurns(Error),
    /// The turn that begins cannot be noted.
    NoTurn(Error),
    /// The turn has no snapshot to go back to.
    Untaken { n: u64, why: Untaken },
    /// The turn took away what is not covered.
    Lost { n: u64, things: Vec<NotCovered> },
}

/// The state of things where a conversation goes on.
pub enum Start {
    /// All is held in the run of this session.
    Held { id: String },
    /// Turns in this directory can be taken back; so much is pending in its project.
    Covered { directory: AbsPath, sessions: u64, changes: u64 },
}

/// Why a turn has no snapshot.
pub enum Untaken {
    /// It failed with this message.
    Failed(String),
    /// The process that takes it was ended.
    Ended,
    /// It takes longer than an agent waits.
    Unfinished(AbsPath),
}

/// Reacts to an event.
///
/// # Errors
/// The event cannot be read; the store cannot be written.
pub fn hook(desk: &Desk, told: &Told<'_>) -> Result<Option<Notice>, Error> {
    if told.agent.called_by.iter().any(|name| (told.variable)(name).is_some()) {
        return Ok(None);
    }
    let event = Event::read(told.text).map_err(error::unread_event)?;
    // What a run holds is no turn's, but where it has a store of its own.
    if let Some(inside) = capture().filter(|inside| inside.store.is_none()) {
        let start = || Notice::Starts(Start::Held { id: inside.session.clone() });
        return Ok((event.what == What::SessionStart).then(start));
    }
    let reacting = Reacting { desk, told, event: &event };
    let noticed = reacting.react();
    let noted = note_seen(desk, told, &event, noticed.as_ref().err());
    // A directory of which no snapshot may be taken is told at the session's start.
    let is_told = matches!(event.what, What::Prompt(_)) && reacting.directory().is_ok();
    match (noticed, noted) {
        (Err(problem), _) if is_told => Ok(Some(Notice::NoTurn(problem))),
        (noticed, Ok(())) | (noticed @ Err(_), _) => noticed,
        (Ok(_), Err(problem)) => Err(problem),
    }
}

/// Appends an event, or a line, to a file as it came, and ends the line.
///
/// # Errors
/// The file cannot be written.
pub fn record(desk: &Desk, file: &AbsPath, text: &[u8]) -> Result<(), Error> {
    let dir = Dir::open(file.parent().unwrap_or_else(|| file.clone()).as_path())?;
    let at = dir.at(file.name());
    let end: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
    let open = desk.fs.append(at)?;
    Ok(desk.fs.write(&open, &[text, end].concat(), at)?)
}

fn note_seen(desk: &Desk, told: &Told<'_>, event: &Event, error: Option<&Error>) -> Result<(), Error> {
    let directory = event.cwd.as_deref().and_then(|cwd| absolute(cwd).ok()).or_else(|| absolute(Path::new(".")).ok());
    let Some(directory) = directory else { return Ok(()) };
    let error = error.map(|problem| problem.message().to_owned());
    let (time, version) = (told.began, env!("CARGO_PKG_VERSION").into());
    let seen = Seen { time, event: event.name.clone(), directory, version, error };
    seen.write(&desk.fs, &desk.made_store()?, told.agent)
}

/// An event, and what is needed to react to it.
struct Reacting<'a> {
    desk: &'a Desk,
    told: &'a Told<'a>,
    event: &'a Event,
}

impl Reacting<'_> {
    fn react(&self) -> Result<Option<Notice>, Error> {
        match &self.event.what {
            What::SessionStart => self.session_starts(),
            What::Prompt(prompt) => match self.present()? {
                // What the agent says to itself in the turn.
                Some((_, turn)) if turn.head.key.is_some() && turn.head.key == self.event.turn => Ok(None),
                _ => self.begin(prompt).map(|(_, notice)| notice),
            },
            What::Before(tool) if tool.effect != Effect::None => self.before(tool),
            What::After { tool, took, changed } if tool.effect != Effect::None => {
                let Some((turns, turn)) = self.present()? else { return Ok(None) };
                let told = changed.iter().filter_map(|path| self.inner(&turn.head.directory, path)).collect();
                let (id, name) = (tool.call.clone(), tool.name.clone());
                self.look(&turns, &turn.head, Line::Done { time: self.told.began, id, name, took: *took, told })?;
                Ok(None)
            }
            What::SubagentEnd => self.settle(Duration::ZERO).map(|()| None),
            // Agents wait for that not much longer than a second.
            What::SessionEnd => self.end(Duration::ZERO),
            What::TurnEnd => self.end(BUDGET),
            What::Before(_) | What::After { .. } | What::Other => self.say_who().map(|()| None),
        }
    }

    /// Prepares: a first snapshot, which the turns' own then only add to.
    fn session_starts(&self) -> Result<Option<Notice>, Error> {
        self.say_who()?;
        let directory = match self.directory() {
            Ok(directory) => directory,
            Err(problem) => return Ok(Some(Notice::NoTurns(problem))),
        };
        let _goes_on = (self.told.start)(When::Ready, &directory, 0)?;
        let start = match capture() {
            Some(inside) => Start::Held { id: inside.session.clone() },
            None => self.covered(directory)?,
        };
        Ok(Some(Notice::Starts(start)))
    }

    fn covered(&self, directory: AbsPath) -> Result<Start, Error> {
        let headers = self.desk.store()?.map(|store| Ok::<_, Error>((store, store.headers()?.0))).transpose()?;
        let scope = Scope::of_directory(&directory);
        let pending: Vec<u64> = headers
            .iter()
            .flat_map(|(store, headers)| {
                let of_project = |header: &&Header| header.status() == Status::Pending && scope.has(store, header);
                headers.iter().filter(of_project).map(|header| header.counts.changes)
            })
            .collect();
        Ok(Start::Covered { directory, sessions: pending.len() as u64, changes: pending.iter().sum() })
    }

    /// Begins a turn, and has its snapshot taken.
    fn begin(&self, prompt: &str) -> Result<((Turns, Head), Option<Notice>), Error> {
        let (desk, event) = (self.desk, self.event);
        let directory = self.directory()?;
        let store = desk.made_store()?;
        let was_told = self.present()?.is_some_and(|(_, turn)| !turn.covered);
        let turns = Turns::create(&desk.fs, &store, &directory)?;
        let (head, is_new) = turns.begin(&desk.fs, self.head(&directory, prompt))?;
        let (agent, session) = (self.told.agent.word().into(), event.session.clone());
        Pointer { agent, session, directory: directory.clone(), turn: head.n }.write(&desk.fs, &store.dir)?;
        let has_ended = match is_new {
            true => (self.told.start)(When::Before, &directory, head.n)?.wait(BUDGET),
            false => is_taken(&turns, head.n, BUDGET)?,
        };
        let turn = turns.turn(head.n)?;
        let why = match turn.as_ref().and_then(|turn| turn.failed.clone()) {
            Some(why) => Some(Untaken::Failed(why)),
            None if turn.is_some_and(|turn| turn.before.is_some()) => None,
            None if has_ended => Some(Untaken::Ended),
            None => Some(Untaken::Unfinished(directory)),
        };
        let notice = why.filter(|_| !was_told && is_new).map(|why| Notice::Untaken { n: head.n, why });
        Ok(((turns, head), notice))
    }

    fn head(&self, directory: &AbsPath, prompt: &str) -> Head {
        Head {
            n: 0,
            agent: self.told.agent,
            session: self.event.session.clone(),
            key: self.event.turn.clone(),
            directory: directory.clone(),
            place: Place::of(directory),
            prompt: first_line(prompt),
            model: self.event.model.clone(),
            time: self.told.began,
        }
    }

    /// Notes a tool that may write, in a new turn if its agent began none.
    fn before(&self, tool: &Tool) -> Result<Option<Notice>, Error> {
        let goes_on = |turn: &Turn| match (&self.event.turn, &turn.head.key) {
            _ if self.event.is_subagents => true,
            (Some(own), Some(key)) => own == key,
            _ => turn.ended.is_none(),
        };
        let ((turns, head), notice) = match self.present()? {
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
        let time = if notice.is_none() { self.told.began } else { crate::fs::now() };
        let (name, id) = (tool.name.clone(), tool.call.clone());
        self.look(&turns, &head, Line::Tool(Call { time, name, id, paths, outside, ran: Ran::default() }))?;
        Ok(notice)
    }

    /// Notes what has changed in the directory since the last look, then the line.
    fn look(&self, turns: &Turns, head: &Head, line: Line) -> Result<(), Error> {
        let store = self.desk.made_store()?;
        let look = |earlier: Option<&Look>| look(self.desk, &store, &head.directory, turns.turn(head.n)?.as_ref(), earlier);
        turns.look(&self.desk.fs, head.n, look, vec![line])
    }

    /// A named path, if it lies in the directory; with the one that it leads to, if it is a link.
    fn named(&self, directory: &AbsPath, path: &Path) -> Option<Vec<Named>> {
        let led = self.base(directory).join(path).canonicalize().ok().and_then(|to| self.inner(directory, &to));
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
        AbsPath::parse([b"/", resolved(&self.base(directory).join(path))?.below(directory)?].concat()).ok()
    }

    /// The directory that the agent's paths start from.
    fn base(&self, directory: &AbsPath) -> PathBuf {
        self.event.cwd.clone().unwrap_or_else(|| directory.as_path().to_owned())
    }

    /// The present turn of the agent's session.
    fn present(&self) -> Result<Option<(Turns, Turn)>, Error> {
        let Some(store) = self.desk.store()? else { return Ok(None) };
        let Some(pointer) = self.pointer(store) else { return Ok(None) };
        let Some(turns) = Turns::open(store, &pointer.directory)? else { return Ok(None) };
        Ok(turns.turn(pointer.turn)?.map(|turn| (turns, turn)))
    }

    fn pointer(&self, store: &Store) -> Option<Pointer> {
        Pointer::read(&store.dir, self.told.agent.word(), &self.event.session)
    }

    fn end(&self, longest: Duration) -> Result<Option<Notice>, Error> {
        if let Some((turns, turn)) = self.present()?
            && (turn.ended.is_none() || !turn.is_settled)
        {
            turns.add(&self.desk.fs, turn.head.n, &[Line::End { time: self.told.began }])?;
        }
        self.settle(longest)?;
        if longest > Duration::ZERO {
            self.notify()?;
        }
        match self.present()? {
            Some((_, turn)) if turn.is_settled && longest > Duration::ZERO => lost(self.desk, &turn),
            _ => Ok(None),
        }
    }

    /// Tells the person of the sessions that the agent changed in the present turn, and that wait.
    fn notify(&self) -> Result<(), Error> {
        let Some(program) = &self.desk.config.notify.value else { return Ok(()) };
        let (Some(store), Some((_, turn))) = (self.desk.store()?, self.present()?) else { return Ok(()) };
        let is_its = |header: &Header| header.by.as_ref().is_some_and(|by| by.agent == self.told.agent.word());
        let waits = |header: &&Header| header.status() == Status::Pending && is_its(header) && header.changed >= turn.head.time;
        let (headers, _) = store.headers()?;
        headers.iter().filter(waits).for_each(|header| self.desk.caller.notify(program, header));
        Ok(())
    }

    /// Has the snapshot taken that shows what the present turn has done, if a tool may have written since the last one.
    fn settle(&self, longest: Duration) -> Result<(), Error> {
        if let Some((_, turn)) = self.present()?
            && !turn.is_settled
        {
            (self.told.start)(When::After, &turn.head.directory, turn.head.n)?.wait(longest);
        }
        Ok(())
    }

    /// The project that the agent's session works in: the one that it began in, whatever directory it is in now.
    fn directory(&self) -> Result<AbsPath, Error> {
        if let Some(pointer) = self.desk.store()?.and_then(|store| self.pointer(store)) {
            return Ok(pointer.directory);
        }
        let variables = Agent::ALL.iter().filter_map(|agent| agent.project);
        let told = variables.filter_map(self.told.variable).map(PathBuf::from).next();
        let told = told.filter(|dir| dir.is_absolute()).or_else(|| self.event.cwd.clone()).unwrap_or_else(|| ".".into());
        let directory = project_of(&absolute(&told)?, dirs::home_dir().as_deref());
        choose_directory::check(&directory, &self.desk.store_path()?, home().as_ref())?;
        Ok(directory)
    }

    /// Sets the variables by which commands of the agent are told from a person's, where it has a file for that.
    fn say_who(&self) -> Result<(), Error> {
        let file = self.told.agent.env_file.and_then(self.told.variable).filter(|file| !file.is_empty());
        let Some(file) = file.map(PathBuf::from) else { return Ok(()) };
        let (agent, session) = (self.told.agent.word(), shell_word(self.event.session.as_bytes()));
        let line = format!("export RECANT_AGENT={agent} RECANT_AGENT_SESSION={session}\n");
        if std::fs::read(&file).is_ok_and(|text| text.windows(line.len()).any(|part| part == line.as_bytes())) {
            return Ok(());
        }
        record(self.desk, &absolute(&file)?, line.as_bytes())
    }
}

/// Names the things that a turn took away and that are not covered, for a person who may know where else they are.
fn lost(desk: &Desk, turn: &Turn) -> Result<Option<Notice>, Error> {
    let mut lost = fates(&[turn], None);
    lost.retain(|fate| fate.became.is_loss() && fate.out.why != Why::Byproduct);
    let things = not_covered(&desk.names(), &turn.head.directory, lost, &[])?;
    Ok((!things.is_empty()).then_some(Notice::Lost { n: turn.head.n, things }))
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
