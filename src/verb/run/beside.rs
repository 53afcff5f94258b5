//! A command that joins the run which is under way in its session: what both change is one step.

use std::collections::BTreeMap;
use std::time::Instant;

use super::notice::Notice;
use super::service::Service;
use super::shell;
use super::terms::{Places, Program, Then, Wanted};
use super::value::{Beyond, Fate, Of, Ran};
use crate::capture::{Command, Event, Network, Output, join, working_directory};
use crate::error::Error;
use crate::fs::Presence;
use crate::session::{self, Arg, CommandRecord, Session, Store};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;

/// Runs a command beside the one that runs in a session. `None` if that one has ended, or cannot be joined.
///
/// # Errors
/// It was not started: something was asked for that only the command which runs can have; or a system call failed.
pub fn run(desk: &Desk, store: &Store, session: &Session, wanted: &Wanted<'_>) -> Result<Option<Ran>, Error> {
    refuse_terms(session, wanted).map_err(error::not_started)?;
    let (argv, env) = match &wanted.program {
        Program::Shell { shell, .. } => shell::words(shell, session.id(), false),
        program => (program.argv().to_vec(), Vec::new()),
    };
    let cwd = working_directory().map_err(error::not_started)?;
    let (started, began) = (crate::fs::exact_now(), Instant::now());
    let words = argv.iter().map(|word| Arg(word.as_encoded_bytes().to_vec())).collect();
    let service = wanted.service.map(|service| session::Service::named(&service.name));
    let by = store.by.clone();
    let label = wanted.label.map(str::to_owned);
    let mut beside = CommandRecord { argv: words, label, cwd: cwd.clone(), by, started, took: None, ending: None, service };
    let mut noted = None;
    let mut problem = None;
    let mut hear = |event| match event {
        // Both runs are known to be there now.
        Event::SettingUp => {
            match note(desk, session, wanted, &beside) {
                Ok(n) => noted = Some(n),
                Err(error) => problem = Some(error),
            }
            if wanted.is_heard && noted.as_ref().is_some_and(|(n, _)| *n == 1) && wanted.service.is_none() {
                desk.caller.tell(Fact::Run(Notice::Beside(session)));
            }
        }
        event => hear_of(desk, wanted.service.map(|service| (service, session)), event),
    };
    let output = match wanted.service {
        Some(service) => Some(begin_service(desk, session, service).map_err(error::not_started)?),
        None => None,
    };
    let command = Command { env, linger: wanted.linger, service: output, ..Command::new(argv) };
    let joined = match join(session, &command, &cwd, &mut hear) {
        Ok(Some(joined)) => joined,
        Ok(None) => {
            wanted.service.iter().for_each(|service| service.give_name_back());
            return Ok(None);
        }
        Err(not_started) => {
            noted.iter().try_for_each(|(n, _)| session.forget_beside_at(&desk.fs, *n))?;
            return Err(not_started);
        }
    };
    joined.notes.iter().for_each(|note| desk.caller.tell(Fact::Warning(note)));
    // Before the run can end, whose step has it.
    beside.took = u64::try_from(began.elapsed().as_nanos()).ok();
    beside.ending = Some(joined.ending);
    beside.service.iter_mut().for_each(|service| service.stopped = joined.stopped);
    let noted = noted.as_ref().map_or(Ok(()), |(n, _)| session.note_beside_at(&desk.fs, *n, &beside));
    problem.map_or(noted, Err).map_err(|why| error::not_noted(why, joined.ending))?;
    Ok(Some(Ran {
        session: Some(session.id().clone()),
        step: None,
        fate: Fate::Beside,
        ending: joined.ending,
        stopped: joined.stopped,
        changes: 0,
        dangerous: Vec::new(),
        beyond_files: Beyond { network: joined.network == Network::Open, ..Beyond::default() },
        warnings: joined.notes,
        dropped: 0,
        too_much: None,
        news: 0,
        sorts: BTreeMap::new(),
        of: Of::Earlier,
        left: Vec::new(),
    }))
}

/// Notes that the command joins, and that this process tends it.
fn note(desk: &Desk, session: &Session, wanted: &Wanted<'_>, beside: &CommandRecord) -> Result<(u32, Option<Presence>), Error> {
    let n = session.note_beside(&desk.fs, beside)?;
    // A service shows itself by its name.
    let presence = if wanted.service.is_some() { None } else { session.show_presence(&desk.fs, n)? };
    Ok((n, presence))
}

fn begin_service(desk: &Desk, session: &Session, service: &Service) -> Result<Output, Error> {
    service.take_name(&desk.fs, session)?;
    service.open_output(&desk.fs, session)
}

/// Tells what happens, but for what a service hears alone.
pub fn hear_of(desk: &Desk, service: Option<(&Service, &Session)>, event: Event) {
    let event = match service {
        Some((service, session)) => service.hear(desk, session, event),
        None => Some(event),
    };
    event.iter().for_each(|event| desk.caller.tell(Fact::Run(Notice::Event { event, is_confined: false })));
}

/// Refuses what a command cannot have in the run of another one.
fn refuse_terms(session: &Session, wanted: &Wanted<'_>) -> Result<(), Error> {
    // It gets more than a view: a guest's places.
    if matches!(wanted.program, Program::Agent { .. }) {
        return Err(error::is_running(session));
    }
    let Places { passes, hide, closed, scratch, .. } = &wanted.places;
    let asked = [
        (wanted.then == Then::Commit, "--commit"),
        (wanted.then == Then::Discard, "--discard"),
        (!passes.is_empty(), "--pass"),
        (!hide.is_empty(), "--hide"),
        (closed.is_some(), "--closed"),
        (!scratch.is_empty(), "--scratch"),
        (wanted.max_size.is_some(), "--max-size"),
        (wanted.network == Network::None, "--no-network"),
        (!wanted.hosts.is_empty(), "--network"),
    ];
    match asked.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, what)) => Err(error::cannot_join(session, what)),
        None => Ok(()),
    }
}
