//! A command with every file change held: begun, run, and its changes kept.

use std::ffi::OsString;
use std::time::Duration;

use super::agent_guest::Guest;
use super::beside;
use super::door::Door;
use super::hints;
use super::notice::Notice;
use super::plan::plan;
use super::proxy::Proxy;
use super::settle_changes;
use super::shell::{self, History};
use super::terms::{Program, Wanted};
use super::value::{Of, Ran};
use crate::capture::{Command, Event, Held, Pass, hold, start_of};
use crate::error::{Error, Reason};
use crate::fs::{OnSignal, Time, interrupt};
use crate::session::{ActingAgent, Coverage, How, Id, Keep, Locked, Session, Store};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::resolve::acts_of_others;
use crate::verb::resolve::go_on::{self, Aim, Aimed, Begun, NewName};

/// Runs a command with its file changes held.
///
/// # Errors
/// [`Reason::NotStarted`]: it was not started, and why. Else it ran, and not all of its end could be recorded.
pub fn run(desk: &Desk, wanted: &Wanted<'_>) -> Result<Ran, Error> {
    let ran = begin_and_run(desk, wanted);
    let end = ran.as_ref().ok().map(|ran| (ran.ending, ran.stopped));
    wanted.service.iter().for_each(|service| service.leave(desk, end));
    ran
}

fn begin_and_run(desk: &Desk, wanted: &Wanted<'_>) -> Result<Ran, Error> {
    // Before all else, so that the clock of files ticks while there is work to do; but after a recovery, which changes the tree.
    let called = crate::fs::exact_now();
    let (store, has_recovered) = store_of(desk, wanted).map_err(error::not_started)?;
    let since = if has_recovered { crate::fs::exact_now() } else { called };
    let noting = interrupt::note(OnSignal::Stops);
    let mut begun = match aimed(desk, &store, wanted)? {
        Taken::Begun(begun) => *begun,
        Taken::Joined(ran) => return Ok(*ran),
    };
    let mut proxy = Proxy::of(wanted.hosts);
    let (held, guest, knows_of_pending) = match start(desk, &store, &mut begun, (wanted, &mut proxy), since) {
        Ok(started) => started,
        // The command ran: what it changed lies in the session.
        Err(why) if why.reason() == Some(&Reason::Uncollected) => return Err(why),
        Err(why) => {
            if begun.fresh {
                store.remove_session(&desk.fs, begun.session).map_err(error::not_started)?;
                desk.clear_away(&store);
            }
            return Err(error::not_started(why));
        }
    };
    drop(noting);
    let refused = proxy.end();
    let mut ran = end(desk, &store, begun, (held, guest, knows_of_pending), wanted)?;
    ran.beyond_files.refused = refused;
    Ok(ran)
}

/// The session of a run, or the end of a command that joined one.
enum Taken {
    Begun(Box<Begun>),
    Joined(Box<Ran>),
}

/// Takes up the session that is meant. Where a command runs in it, this one joins; where that is about to end, waits for its end.
fn aimed(desk: &Desk, store: &Store, wanted: &Wanted<'_>) -> Result<Taken, Error> {
    let program = wanted.label.map_or_else(|| start_of(wanted.program.argv()), str::to_owned);
    let begin = |aim: Aim<'_>| go_on::begin(desk, store, aim, &program).map_err(error::not_started);
    let session = match begin(wanted.aim)? {
        Aimed::Alone(begun) => return Ok(Taken::Begun(begun)),
        Aimed::Beside(session) => session,
    };
    if let Some(ran) = beside::run(desk, store, &session, wanted)? {
        return Ok(Taken::Joined(Box::new(ran)));
    }
    match begin(Aim::Ending(session.id().as_str(), ENDING))? {
        Aimed::Alone(begun) => Ok(Taken::Begun(begun)),
        Aimed::Beside(session) => Err(error::not_started(error::is_running(&session))),
    }
}

/// The time that a run which is about to end is waited for.
const ENDING: Duration = Duration::from_secs(2);

/// The store, with what was cut off in it recovered: true if there was anything.
fn store_of(desk: &Desk, wanted: &Wanted<'_>) -> Result<(Store, bool), Error> {
    let mut store = desk.made_store()?;
    let has_recovered = !desk.prepare_to_change(&store)?.is_empty();
    if let (None, Program::Agent { agent, .. }) = (&store.by, &wanted.program) {
        store.by = Some(ActingAgent { agent: agent.word().into(), session: None, turn: None });
    }
    Ok((store, has_recovered))
}

/// The company of a program in its run.
enum Company {
    None,
    Shell(History),
    Agent(Guest),
}

impl Company {
    fn receive(desk: &Desk, store: &Store, begun: &Begun, wanted: &Wanted<'_>) -> Result<Self, Error> {
        Ok(match &wanted.program {
            Program::Command(_) => Self::None,
            Program::Shell { history, .. } => {
                let history = History::open(desk, history.as_ref(), &begun.session);
                let goes_on = (!begun.fresh).then_some(&begun.session.header);
                let begins = begun.untold.as_ref().map(NewName::name);
                desk.caller.tell(Fact::Run(Notice::Shell { goes_on, begins, has_history: history.is_real() }));
                Self::Shell(history)
            }
            Program::Agent { agent, keeps, .. } => {
                Self::Agent(Guest::receive(desk, store, (*agent, keeps), (&begun.session, &wanted.places.hide))?)
            }
        })
    }

    fn passes(&self) -> Vec<Pass> {
        match self {
            Self::None => Vec::new(),
            Self::Shell(history) => history.passes(),
            Self::Agent(guest) => guest.passes(),
        }
    }

    /// The words of the command, and the variables to set.
    fn words(&self, program: &Program, store: &Store, session: &Session) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
        match (self, program) {
            (Self::Shell(history), Program::Shell { shell, .. }) => shell::words(shell, session.id(), history.is_real()),
            (Self::Agent(guest), program) => (program.argv().to_vec(), guest.env(store)),
            (_, program) => (program.argv().to_vec(), Vec::new()),
        }
    }
}

/// Runs the command; true if the user knows of a pending session. It was not started if this fails, but for a run that is not collected.
fn start(
    desk: &Desk,
    store: &Store,
    begun: &mut Begun,
    (wanted, proxy): (&Wanted<'_>, &mut Proxy<'_>),
    since: Time,
) -> Result<(Held, Option<Guest>, bool), Error> {
    if wanted.is_heard {
        acts_of_others::tell(desk, store, &begun.session, begun.fresh)?;
    }
    let company = Company::receive(desk, store, begun, wanted)?;
    let held = run_with(desk, store, begun, (wanted, &company, proxy), since);
    let guest = match company {
        Company::None => None,
        Company::Shell(history) => {
            history.close(desk);
            None
        }
        Company::Agent(guest) => Some(guest),
    };
    let (held, knows_of_pending) = held?;
    Ok((held, guest, knows_of_pending))
}

fn run_with(
    desk: &Desk,
    store: &Store,
    begun: &mut Begun,
    (wanted, company, proxy): (&Wanted<'_>, &Company, &mut Proxy<'_>),
    since: Time,
) -> Result<(Held, bool), Error> {
    let Begun { session, fresh, untold } = begun;
    let mut knows_of_pending = false;
    let plan = plan(desk, store, session, (&wanted.places, company.passes(), wanted.program.argv().first()), since)?;
    let cwd = plan.cwd().clone();
    plan.warnings().iter().for_each(|warning| desk.caller.tell(Fact::Warning(warning)));
    let (argv, env) = company.words(&wanted.program, store, session);
    let mut door = Door::of(&store.path, looks(desk, session, wanted, plan.coverage())?);
    if let Company::Agent(guest) = company {
        guest.greet(desk, session, plan.coverage());
    }
    if !*fresh {
        hints::changed_below(desk, session)?;
    }
    let Wanted { linger, network, max_size, .. } = *wanted;
    let (keeps_before, listens) = (desk.config.keep_before.value, desk.config.listen.value);
    let by_agent = desk.caller.variable().is_some();
    let output = wanted.service.map(|service| service.open_output(&desk.fs, session)).transpose()?;
    let label = wanted.label.map(str::to_owned);
    let command =
        Command { label, env, linger, network, keeps_before, listens, by_agent, max_size, service: output, ..Command::new(argv) };
    let id = session.id().clone();
    let service = wanted.service.map(|service| Ok::<_, Error>((service, store.session(&id)?))).transpose()?;
    let service = service.as_ref().map(|(service, session)| (*service, session));
    let mut hear = |event| match event {
        Event::SettingUp => {
            // The session's own lock keeps all others out until the command can be joined.
            if let Some(Err(why)) = service.map(|(service, session)| service.take_name(&desk.fs, session)) {
                desk.caller.tell(Fact::Warning(why.message()));
            }
            desk.clear_away(store);
            if *fresh && wanted.is_heard {
                knows_of_pending |= hints::pending(desk, store, &id, &cwd);
            }
        }
        Event::Asked(asked) => door.answer(asked),
        Event::Listens(listener) => {
            if let Err(why) = proxy.start(listener) {
                desk.caller.tell(Fact::Run(Notice::NoProxy(&why)));
            }
        }
        event => {
            // From here on others may look at its session.
            if let Some(new) = untold.take_if(|_| matches!(event, Event::Serves)) {
                new.tell(desk, &id);
            }
            beside::hear_of(desk, service, event);
        }
    };
    let held = hold(&desk.fs, store, session, plan, &command, &mut hear)?;
    Ok((held, knows_of_pending))
}

/// The limits of looks from inside the command: true if they show no content, as some may be that of hidden files; and the session that they show
/// alone.
fn looks(desk: &Desk, session: &Session, wanted: &Wanted<'_>, coverage: &[Coverage]) -> Result<(bool, Option<Id>), Error> {
    let hides = !wanted.places.hide.is_empty() || !desk.config.hide.value.is_empty();
    if wanted.places.closed.is_none() {
        return Ok((hides, None));
    }
    let changes = session.changes()?;
    let has_closed = coverage.iter().any(|row| row.how == How::Closed && !changes.under(&row.path).is_empty());
    Ok((hides || has_closed, Some(session.header.root().clone())))
}

/// Ends a run whose command has run.
fn end(
    desk: &Desk,
    store: &Store,
    mut begun: Begun,
    (mut held, guest, knows_of_pending): (Held, Option<Guest>, bool),
    wanted: &Wanted<'_>,
) -> Result<Ran, Error> {
    held.warnings.iter().for_each(|warning| desk.caller.tell(Fact::Warning(warning)));
    if held.step.is_some_and(|step| step > 1) {
        merge_oldest(desk, &mut begun.session)?;
    }
    if let Some(guest) = guest.as_ref().filter(|_| held.changes > 0) {
        begun.session = guest.commit_records(desk, store, begun.session)?;
        held.recount(&begun.session)?;
    }
    let of = match guest {
        Some(_) => Of::Agent,
        None if begun.fresh => Of::New,
        None => Of::Earlier,
    };
    settle_changes::settle(desk, store, begun, (held, of, knows_of_pending), wanted)
}

/// Merges steps of which there are too many by the settings, and tells of it.
fn merge_oldest(desk: &Desk, session: &mut Locked) -> Result<(), Error> {
    let floor = |session: &Locked| session.header.steps.as_ref().map_or(0, |steps| steps.floor);
    let is_first = floor(session) == 0;
    let keep = Keep { steps: desk.config.steps_keep.value, bytes: desk.config.steps_max_size.value };
    if session.merge_oldest(&desk.fs, keep)? > 0 {
        desk.caller.tell(Fact::Run(Notice::Oldest { id: session.id(), step: floor(session), keep, is_first }));
    }
    Ok(())
}
