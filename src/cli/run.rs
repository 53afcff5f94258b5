//! `run` and `shell`: a command with every file change held.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use serde::Serialize;

use super::door::Door;
use super::guest::Guest;
use super::hints;
use super::history::History;
use crate::agent::known::Agent;
use crate::capture::place::layout::{Pass, Request, Route};
use crate::capture::place::plan::Plan;
use crate::capture::place::plan::working_directory;
use crate::capture::run::command::{Command, Exit, Linger, Network};
use crate::capture::run::hold::Held;
use crate::capture::run::hold::hold;
use crate::capture::run::hold::start_of;
use crate::capture::run::inside::inside;
use crate::capture::run::start::Event;
use crate::error::{Error, Kind, Reason, command};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::out::Out;
use crate::face::text::acts;
use crate::face::{args, figures, place};
use crate::fs::dir::Time;
use crate::fs::interrupt;
use crate::fs::path::AbsPath;
use crate::remedy::Remedy;
use crate::session::by::By;
use crate::session::change::{Changes, Sort};
use crate::session::header::Origin;
use crate::session::id::Id;
use crate::session::opened::{Locked, Session};
use crate::session::own_store;
use crate::session::prune;
use crate::session::run::{Coverage, Ending, How};
use crate::session::squash::Keep;
use crate::session::store::Store;
use crate::verb::commit::commit_run;
use crate::verb::discard::free_overdue;
use crate::verb::resolve::go_on;
use crate::verb::resolve::go_on::{Aim, Begun};
use crate::verb::resolve::news;

/// `{"schema":2,"session":…,"result":…,"ending":{…},"changes":n,"warnings":[…]}`, the last line of standard error.
#[derive(Serialize)]
pub struct RunDocument<'a> {
    /// `null` if the session is gone, as it held nothing.
    session: Option<&'a Id>,
    /// The step that it became; `null` if it changed nothing, and with `--in`.
    step: Option<u32>,
    result: &'static str,
    ending: Ending,
    changes: u64,
    beyond_files: Beyond<'a>,
    warnings: &'a [String],
    /// Changes in scratch places that were dropped.
    dropped: u64,
    /// Bytes that the command wrote, if more than `--max-size`.
    too_much: Option<u64>,
}

impl<'a> RunDocument<'a> {
    pub fn confined(session: Option<&'a Id>, result: &'static str, ending: Ending, changes: u64, network: bool) -> Self {
        let beyond_files = Beyond { network, passed: Vec::new() };
        Self { session, step: None, result, ending, changes, beyond_files, warnings: &[], dropped: 0, too_much: None }
    }
}

/// Things that the command could reach, and no session can hold.
#[derive(Serialize)]
struct Beyond<'a> {
    /// True if the network and abstract sockets were open to it. Not known is if it used them.
    network: bool,
    /// Places that stayed real: sockets, and what `--pass` and `capture.pass` name.
    passed: Vec<&'a AbsPath>,
}

/// Runs a command with its file changes held, and exits as it does.
pub fn run(call: &Call, args: &args::Run) -> Result<Ended, Error> {
    with(call, args, None)
}

/// Runs an agent with all that [`Guest`] gives it.
pub fn held_agent(call: &Call, args: &args::Run, agent: Agent) -> Result<Ended, Error> {
    with(call, args, Some(agent))
}

fn with(call: &Call, args: &args::Run, agent: Option<Agent>) -> Result<Ended, Error> {
    if let Some(id) = inside() {
        call.out.note(format_args!("this runs inside the run of session {id} already, which holds its changes"));
        return exec(&args.command);
    }
    if let Some(parent) = args.parent
        && let Err(problem) = end_with(parent)
    {
        return Ok(not_started(&call.out, problem));
    }
    let aim = match &args.session {
        // Whoever goes on with an agent means its work, not an empty session of that name.
        Some(key) if agent.is_some() => Aim::There(key),
        Some(key) => Aim::Named(key, Duration::from_secs(args.wait.and_then(|wait| u64::try_from(wait).ok()).unwrap_or(0))),
        None => Aim::New(args.name.as_deref()),
    };
    outcome(call, attempt(call, &Asked { args, aim, prompt: Prompt::Own, agent }))
}

/// Has this process asked to end as soon as `parent`, which has started it, ends: killed by SIGKILL, too.
fn end_with(parent: i32) -> Result<(), Error> {
    let own = || rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    // Its end may have come before: then it is not the parent any more.
    if rustix::process::set_parent_process_death_signal(Some(Signal::TERM)).is_err() || own() != Some(parent) {
        return Err(Error::refused(format!("process {parent} has ended, or is not the one that started this")));
    }
    Ok(())
}

struct Asked<'a> {
    args: &'a args::Run,
    aim: Aim<'a>,
    prompt: Prompt,
    /// The agent that the command is, if it is held as one.
    agent: Option<Agent>,
}

/// The prompt of a command that is a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prompt {
    Own,
    /// A prompt that names the session.
    Session,
}

fn outcome(call: &Call, attempted: Result<Ended, NotHeld>) -> Result<Ended, Error> {
    match attempted {
        Ok(ended) => Ok(ended),
        Err(NotHeld { problem, ran: true }) => Err(*problem),
        Err(NotHeld { problem, ran: false }) => Ok(not_started(&call.out, call.with_remedy(*problem))),
    }
}

/// Reports why the command was not started, and ends with 125 (126, 127 if that is not executable, not found), so that scripts can
/// tell recant's failure from the command's status (docs/ARCHITECTURE.md, A run).
pub fn not_started(out: &Out, error: Error) -> Ended {
    let (error, kind) = match error.kind() {
        // These say it.
        kind @ (Kind::NotFound | Kind::NotExecutable | Kind::NoCapture) => (error, kind),
        _ => {
            let rest = error.state().map(|state| format!("; {state}")).unwrap_or_default();
            (error.with_state(format!("the command was not started{rest}")), Kind::NoCapture)
        }
    };
    out.problem(&error);
    Ended::With(kind)
}

fn attempt(call: &Call, asked: &Asked<'_>) -> Result<Ended, NotHeld> {
    let args = asked.args;
    let mut store = call.made_store()?;
    call.prepare_to_change(&store)?;
    if let (None, Some(agent)) = (&store.by, asked.agent) {
        store.by = Some(By { agent: agent.word().into(), session: None, turn: None });
    }
    // After a recovery, which changes the tree. Before all else, so that the clock of files ticks while there is work to do.
    let since = crate::fs::exact_now();
    let noting = interrupt::note(interrupt::Asked::Stops);
    let mut begun = go_on::begin(call, &store, asked.aim, &start_of(&args.command))?;
    if !call.out.is_quiet() {
        news::tell(call, &store, &begun.session, begun.fresh)?;
    }
    let history = match (asked.prompt, args.command.first()) {
        (Prompt::Session, Some(shell)) => {
            let history = History::open(call, shell, &begun.session);
            let but = if history.is_real() { " but its history" } else { "" };
            if !begun.fresh {
                call.out.note(going_on(&begun.session));
            }
            call.out.note(format_args!("a shell with every file change held{but}; 'exit' ends it"));
            history
        }
        _ => History::default(),
    };
    let received = asked.agent.map(|agent| Guest::receive(call, &store, agent, (&begun.session, &args.hide))).transpose();
    let (started, guest) = match received {
        Ok(guest) => (start(call, &store, &mut begun, (asked, &history, guest.as_ref()), since), guest),
        Err(problem) => (Err(problem.into()), None),
    };
    history.close(call);
    let held = match started {
        Ok(held) => held,
        Err(not_held) => {
            if begun.fresh && !not_held.ran {
                store.remove_session(&call.fs, begun.session)?;
                call.clear_away(&store);
            }
            return Err(not_held);
        }
    };
    drop(noting);
    Ok(finish(call, &store, begun, held, (args, guest.as_ref()))?)
}

/// The hint at what an ordinary user's run cannot do; a command that fails because of it reports EROFS or EXDEV.
const USERS: &str = "if it said 'Read-only file system': only ~, the project, /tmp and /var/tmp can be written (recant doctor); \
    'Invalid cross-device link': directories from before the run cannot be renamed, mv works";

/// Says that a shell goes on in a session that holds changes: "going on in session k3fa, named job: 2 changes so far".
fn going_on(session: &Session) -> String {
    let name = session.header.name.as_ref().map(|name| format!(", named {name}")).unwrap_or_default();
    let held = figures::count(session.header.counts.changes, "change");
    format!("going on in session {}{name}: {held} so far", session.id().tail())
}

/// Ends a run whose command has run.
fn finish(
    call: &Call,
    store: &Store,
    mut begun: Begun,
    mut held: Held,
    (args, guest): (&args::Run, Option<&Guest>),
) -> Result<Ended, Ran> {
    for warning in &held.warnings {
        call.out.warn(warning);
    }
    // Nothing tells if it was that: a call that fails leaves no trace.
    if Route::here() == Route::User && matches!(held.exit, Exit::Code(code) if code != 0) {
        hints::once(call, store, &working_directory()?, "failed run", USERS)?;
    }
    if held.step.is_some_and(|step| step > 1) {
        merge_oldest(call, &mut begun.session)?;
    }
    if let Some(guest) = guest.filter(|_| held.changes > 0) {
        begun.session = guest.commit_records(call, store, begun.session)?;
        held.recount(&begun.session)?;
    }
    Ok(end(call, store, begun, &held, (args, guest))?)
}

/// Merges steps of which there are too many by the settings. Says so the first time that one can no longer be gone back to.
fn merge_oldest(call: &Call, session: &mut Locked) -> Result<(), Error> {
    let is_first = session.header.steps.as_ref().is_some_and(|steps| steps.floor == 0);
    let (steps, bytes) = (call.config.steps_keep.value, call.config.steps_max_size.value);
    let merged = session.merge_oldest(&call.fs, Keep { steps, bytes })?;
    let floor = session.header.steps.as_ref().map_or(0, |steps| steps.floor);
    if merged > 0 {
        let (id, bytes) = (session.id().tail(), figures::bytes(bytes));
        let said = format!("session {id}: step {floor} is the oldest by steps.keep {steps}, steps.max_size {bytes}");
        if is_first { call.out.note(said) } else { call.out.detail(said) }
    }
    Ok(())
}

fn start(
    call: &Call,
    store: &Store,
    begun: &mut Begun,
    (asked, history, guest): (&Asked<'_>, &History, Option<&Guest>),
    since: Time,
) -> Result<Held, NotHeld> {
    let Begun { session, fresh, told } = begun;
    let (args, fresh) = (asked.args, *fresh);
    let plan = plan(call, store, session, (args, history, guest), since)?;
    for warning in plan.warnings() {
        call.out.warn(warning);
    }
    let cwd = working_directory()?;
    for notice in plan.notices() {
        hints::once(call, store, &cwd, &notice.about, &notice.text)?;
    }
    let linger = if args.no_wait { Linger::Kill } else { args.parent.map_or(Linger::Wait, Linger::WaitWith) };
    let (argv, env) = match (asked.prompt, args.command.first()) {
        (Prompt::Session, Some(shell)) => hints::prompt(shell, session.id(), history.is_real()),
        _ => (args.command.clone(), guest.map(|guest| guest.env(store)).unwrap_or_default()),
    };
    let own = own_store::of(store, session)?;
    let door = own.map(|own| Door::open(&call.fs, store, session.id(), &own)).transpose()?;
    if let Some(guest) = guest {
        guest.greet(call, session, plan.coverage());
    }
    if !fresh {
        hints::changed_below(call, session)?;
    }
    let network = network(args);
    let command = Command {
        argv,
        env,
        linger,
        network,
        joins: args.one_upper,
        keeps_before: call.config.keep_before.value,
        max_size: args.max_size,
    };
    let id = session.id().clone();
    let mut hear = |event| match event {
        Event::SettingUp => {
            call.clear_away(store);
            if fresh {
                *told |= hints::pending(call, store, &id, &cwd);
            }
        }
        Event::Lingering(names) => {
            call.out.note(format_args!("waiting for what the command left running: {} (Ctrl-C ends it)", names.join(", ")))
        }
        Event::Uncovered(path, why) => call.out.warn(format_args!("{path}: {why}; it is read-only for the command")),
        Event::Closed(fd, path) => {
            call.out.warn(format_args!("descriptor {fd} ({path}) is closed for the command: it leads past the run"))
        }
        Event::NotFed(why) => call.out.warn(format_args!("the command's input could not be read to its end: {why}")),
        Event::NoGroups(why) => call.out.warn(format_args!("{why}: files of your further groups cannot be changed in this run")),
        Event::InMemory(limit) => call.out.warn(format_args!(
            "the store's file system can't hold a run: what the command writes lies in memory until it has ended, at most {}",
            figures::bytes(limit)
        )),
    };
    let held = hold(&call.fs, store, session, plan, &command, &cwd, &mut hear);
    drop(door);
    held.map_err(|error| {
        let ran = error.reason() == Some(&Reason::Uncollected);
        NotHeld { problem: Box::new(error), ran }
    })
}

fn network(args: &args::Run) -> Network {
    if args.no_network { Network::None } else { Network::Open }
}

/// The error of a run that was not collected.
struct NotHeld {
    problem: Box<Error>,
    /// True if the command ran: its changes lie in the session.
    ran: bool,
}

impl From<Error> for NotHeld {
    fn from(problem: Error) -> Self {
        Self { problem: Box::new(problem), ran: false }
    }
}

/// A problem after the command's end.
struct Ran(Error);

impl<E: Into<Error>> From<E> for Ran {
    fn from(problem: E) -> Self {
        Self(problem.into())
    }
}

impl From<Ran> for NotHeld {
    fn from(Ran(problem): Ran) -> Self {
        Self { problem: Box::new(problem), ran: true }
    }
}

/// Runs the user's shell in a session.
pub fn shell(call: &Call, args: &args::Shell) -> Result<Ended, Error> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let run_args = nothing(vec![shell]);
    if inside().is_some() {
        return run(call, &run_args);
    }
    let aim = match (&args.id, &args.session) {
        (Some(key), _) => Aim::There(key),
        (None, Some(key)) => Aim::Named(key, Duration::ZERO),
        (None, None) => Aim::New(None),
    };
    outcome(call, attempt(call, &Asked { args: &run_args, aim, prompt: Prompt::Session, agent: None }))
}

/// The arguments of a run with no options.
pub fn nothing(command: Vec<OsString>) -> args::Run {
    args::Run {
        name: None,
        session: None,
        wait: None,
        one_upper: false,
        inside: Vec::new(),
        commit: false,
        discard: false,
        pass: Vec::new(),
        hide: Vec::new(),
        scratch: Vec::new(),
        max_size: None,
        no_wait: false,
        no_network: false,
        parent: None,
        command,
    }
}

/// The result of a run that changes nothing.
pub struct Tried {
    /// The coverage, by place; empty if it is unknown.
    pub coverage: Vec<Coverage>,
    /// The reason why further groups could not be mapped in it.
    pub no_groups: Option<String>,
    /// True if what the command writes lies in memory until it ends, as the store's file system can't hold it.
    pub in_memory: bool,
    /// The error that kept it from working.
    pub failed: Option<Error>,
}

impl Tried {
    pub fn failed(problem: Error) -> Self {
        Self { coverage: Vec::new(), no_groups: None, in_memory: false, failed: Some(problem) }
    }
}

/// Sets up a run from here and runs `true` in it, in a session of the store that is removed again.
pub fn attempt_nothing(call: &Call, store: &Store) -> Result<Tried, Error> {
    let since = crate::fs::exact_now();
    let command = vec![OsString::from("true")];
    let mut session = store.begin(&call.fs, Origin::Captured, None, Some(start_of(&command)))?;
    let mut tried = Tried { coverage: Vec::new(), no_groups: None, in_memory: false, failed: None };
    match plan(call, store, &session, (&nothing(command.clone()), &History::default(), None), since) {
        Err(problem) => tried.failed = Some(problem),
        Ok(plan) => {
            tried.coverage = plan.coverage().to_vec();
            let ran = hold_nothing(call, store, &mut session, plan, &mut |event| match event {
                Event::Uncovered(path, why) => {
                    let rows = tried.coverage.iter_mut().filter(|row| row.path == path);
                    rows.for_each(|row| (row.how, row.why) = (How::Uncovered, Some(why.clone())));
                }
                Event::NoGroups(why) => tried.no_groups = Some(why),
                Event::InMemory(_) => tried.in_memory = true,
                Event::SettingUp | Event::Lingering(_) | Event::NotFed(_) | Event::Closed(..) => {}
            });
            // One that is not there, or not to be executed, means that it got as far as the command.
            let is_about_true = |error: &Error| matches!(error.kind(), Kind::NotFound | Kind::NotExecutable);
            tried.failed = ran.err().filter(|error| !is_about_true(error));
        }
    }
    store.remove_session(&call.fs, session)?;
    Ok(tried)
}

fn hold_nothing(
    call: &Call,
    store: &Store,
    session: &mut Locked,
    plan: Plan,
    hear: &mut dyn FnMut(Event),
) -> Result<Held, Error> {
    let cwd = working_directory()?;
    let command = Command {
        argv: vec!["true".into()],
        env: Vec::new(),
        linger: Linger::Wait,
        network: Network::Open,
        joins: false,
        keeps_before: false,
        max_size: None,
    };
    hold(&call.fs, store, session, plan, &command, &cwd, hear)
}

/// Runs the command alone: a run inside a run is already held.
fn exec(command: &[OsString]) -> Result<Ended, Error> {
    use std::os::unix::process::CommandExt;
    let Some((program, args)) = command.split_first() else { return Ok(Ended::Done) };
    let error = std::process::Command::new(program).args(args).exec();
    let kind = if error.kind() == std::io::ErrorKind::NotFound { Kind::NotFound } else { Kind::NotExecutable };
    Err(Error::new(kind, format!("{}: {}", program.to_string_lossy(), crate::error::reason(&error))).without_state())
}

fn plan(
    call: &Call,
    store: &Store,
    session: &Session,
    (args, history, guest): (&args::Run, &History, Option<&Guest>),
    since: Time,
) -> Result<Plan, Error> {
    let absolute = |path: &PathBuf| crate::face::place::cwd().map(|cwd| cwd.join(path));
    let mut passes = Vec::new();
    for path in &args.pass {
        passes.push(Pass { path: absolute(path)?, why: "--pass".into() });
    }
    passes.extend(call.config.pass.value.iter().map(|path| Pass { path: path.clone(), why: "capture.pass".into() }));
    passes.extend(usual_passes());
    passes.extend(history.passes());
    passes.extend(guest.into_iter().flat_map(Guest::passes));
    let mut hide = args.hide.iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
    hide.extend(call.config.hide.value.iter().cloned());
    let scratch = scratch(&args.scratch)?;
    let request = Request {
        cwd: working_directory()?,
        store: store.path.clone(),
        own_store: own_store::of(store, session)?,
        home: dirs::home_dir(),
        also: call.config.also.value.clone(),
        passes,
        hide,
        scratch,
        program: args.command.first().cloned().unwrap_or_default(),
        known: session.run()?.map(|run| run.places).unwrap_or_default(),
        tag: session.id().to_string(),
        since,
    };
    Plan::make(&request)
}

/// The places whose changes are dropped. A link means also the place it leads to, as a `target` on another disk.
fn scratch(paths: &[PathBuf]) -> Result<Vec<AbsPath>, Error> {
    let mut places = Vec::new();
    for path in paths {
        let place = place::named(path, &Changes::default())?;
        // A path with nothing there is no link.
        if let Ok(led_to) = place.as_path().canonicalize() {
            places.extend(Some(place::absolute(&led_to)?).filter(|led_to| *led_to != place));
        }
        places.push(place);
    }
    Ok(places)
}

/// Sockets that stay real by default, if they exist: many programs fail without them. Not X11's, whose clients may type into the windows of
/// all others.
fn usual_passes() -> impl Iterator<Item = Pass> {
    let names = [("/run/nscd/socket", "name service"), ("/run/systemd/resolve/io.systemd.Resolve", "name service")];
    let named = names.map(|(path, why)| (PathBuf::from(path), why));
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let agent = var("SSH_AUTH_SOCK").map(|path| (path.into(), "$SSH_AUTH_SOCK"));
    let wayland = var("WAYLAND_DISPLAY")
        .map(|name| (PathBuf::from(var("XDG_RUNTIME_DIR").unwrap_or_default()).join(name), "$WAYLAND_DISPLAY"));
    let all = named.into_iter().chain(agent).chain(wayland);
    all.filter(|(path, _)| path.is_absolute() && path.exists()).map(|(path, why)| Pass { path, why: why.into() })
}

/// Decides what becomes of the session, and reports it.
fn end(
    call: &Call,
    store: &Store,
    begun: Begun,
    held: &Held,
    (args, guest): (&args::Run, Option<&Guest>),
) -> Result<Ended, Error> {
    let Begun { mut session, fresh, told } = begun;
    let exit = status_of(held.exit);
    // A command that wrote too much and ended well before that was noticed gets the status of one that was ended for it: the session is
    // not what was asked for.
    let ended = Ended::Command(if exit == 0 && held.too_much.is_some() { status_of(Exit::Signal(libc::SIGKILL)) } else { exit });
    // Standard output is the command's: what a commit prints goes to standard error.
    call.out.divert();
    let id = session.id().clone();
    let is_text = call.out.is_text();
    let note = |text: String| {
        if is_text {
            call.out.note(text)
        }
    };
    if held.dropped > 0 {
        note(format!("{} in scratch places dropped", figures::count(held.dropped, "change")));
    }
    if let Some(written) = held.too_much {
        let max = figures::bytes(args.max_size.unwrap_or(0));
        call.out.warn(format_args!("the command wrote {}, which is more than --max-size {max}", figures::bytes(written)));
    }
    let mut gone = false;
    let (result, ended) = if args.discard && !fresh {
        if let Some(step) = held.step {
            let on = set_aside(call, &mut session, step)?;
            let tail = id.tail();
            note(format!("step {step} of session {tail} is set aside; the session stands at step {on}{}", exited(exit)));
        }
        ("discarded", ended)
    } else if held.changes == 0 {
        if fresh {
            store.remove_session(&call.fs, session)?;
            gone = true;
            note(format!("no file change{}", exited(exit)));
        } else {
            say_news(&note, held, &id, exit);
        }
        ("nothing", ended)
    } else if args.discard {
        prune::free(&call.fs, &mut session)?;
        note(format!("{} dropped{}", figures::count(held.changes, "change"), exited(exit)));
        ("discarded", ended)
    } else if args.commit && exit == 0 && held.too_much.is_none() {
        match commit_run(call, store, &mut session) {
            Ok(acted) => {
                let ended = acts::end(call, Some(&acted))?;
                ("committed", if ended == Ended::Done { Ended::Command(0) } else { ended })
            }
            Err(problem) => {
                let result = if problem.kind() == Kind::Conflict { "conflict" } else { "pending" };
                let ended = Ended::by(&problem);
                call.out.problem(&still_held(problem, &id));
                (result, ended)
            }
        }
    } else {
        if guest.is_some() {
            say_held(&note, held, &id, exit, &ways_after_agent(&id));
        } else if fresh {
            say_held(&note, held, &id, exit, &ways(&id))
        } else {
            say_news(&note, held, &id, exit)
        }
        if told {
            hints::remember(call, &session);
        }
        ("pending", ended)
    };
    // Of an agent it was said at the start.
    if is_text && held.changes > 0 && guest.is_none() {
        hints::beyond_files(call, held, network(args), fresh);
    }
    if !is_text {
        document(call, held, args, (!gone).then_some(&id), result);
    }
    if fresh && !gone {
        free_overdue(call, store);
    }
    Ok(ended)
}

/// Goes back from the step that a command became, which stays beside the others; returns the number of the one that it stands on.
fn set_aside(call: &Call, session: &mut Locked, step: u32) -> Result<u32, Error> {
    let list = session.steps()?;
    let on = list.get(&session.header, step)?.on;
    session.rewind(&call.fs, &list, on)?;
    Ok(on)
}

/// Prints the JSON of a run. `session`: `None` where it is gone.
fn document(call: &Call, held: &Held, args: &args::Run, session: Option<&Id>, result: &'static str) {
    let ending = match held.exit {
        Exit::Code(code) => Ending::Exited(code.into()),
        Exit::Signal(signal) => Ending::Signaled(signal),
    };
    let passed = held.coverage.iter().filter(|row| row.how == How::Passed).map(|row| &row.path);
    let beyond_files = Beyond { network: network(args) == Network::Open, passed: passed.collect() };
    let (changes, warnings) = (held.changes, &held.warnings[..]);
    let (dropped, too_much) = (held.dropped, held.too_much);
    let step = held.step.filter(|_| session.is_some());
    let told = RunDocument { session, step, result, ending, changes, beyond_files, warnings, dropped, too_much };
    call.out.document(&told);
}

/// The error of the commit after a run, with the ways to go on.
fn still_held(problem: Error, id: &Id) -> Error {
    let remedy = || "what it changed is held: " + ways(id);
    if problem.advice().is_some() { problem } else { problem.with_remedy(remedy()) }
}

/// Says that the changes are held, and what to do next, in lines of at most 80 characters.
fn say_held(note: &impl Fn(String), held: &Held, id: &Id, exit: u8, ways: &Remedy) {
    let (count, sorts) = (figures::count(held.changes, "change"), sorts(held));
    let place = format!("held in session {}{}", id.tail(), exited(exit));
    if count.len() + sorts.len() + place.len() <= 68 {
        note(format!("{count} ({sorts}) {place}"));
    } else {
        note(format!("{count} {place}"));
        note(sorts);
    }
    note(ways.to_string());
}

/// Says what a further command changed in its session; nothing if it changed nothing. What to do next was said when the session began.
fn say_news(note: &impl Fn(String), held: &Held, id: &Id, exit: u8) {
    if let Some(step) = held.step {
        let (news, all) = (figures::count(held.news, "change"), figures::grouped(held.changes));
        note(format!("step {step} of session {}: {news} ({}), {all} in all{}", id.tail(), sorts(held), exited(exit)));
    }
}

/// The commands that may come next after a run.
fn ways(id: &Id) -> Remedy {
    side_by_side(["diff", "commit", "discard"], id)
}

/// The commands that may come next after an agent: first a look.
fn ways_after_agent(id: &Id) -> Remedy {
    side_by_side(["review", "commit", "discard"], id)
}

fn side_by_side(verbs: [&str; 3], id: &Id) -> Remedy {
    let [first, second, third] = verbs.map(|verb| command(format_args!("{verb} {}", id.tail())));
    first + "    " + second + "    " + third
}

/// The exit status as a shell has it.
pub fn status_of(exit: Exit) -> u8 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128_u8.saturating_add(u8::try_from(signal).unwrap_or(127)),
    }
}

fn exited(exit: u8) -> String {
    if exit == 0 { String::new() } else { format!(" (the command exited with {exit})") }
}

/// "3 created, 1 modified".
fn sorts(held: &Held) -> String {
    let word = |sort: &Sort| match sort {
        Sort::Created => "created",
        Sort::Modified => "modified",
        Sort::Deleted => "deleted",
        Sort::Metadata | Sort::Times => sort.counted(),
    };
    held.sorts.iter().map(|(sort, count)| format!("{} {}", figures::grouped(*count), word(sort))).collect::<Vec<_>>().join(", ")
}
