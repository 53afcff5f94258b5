//! Services that run in a session: stopped by name, or before an act for which nothing may run in it.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::guard::limited;
use super::service_rows::StoppedService;
use crate::error::{At, Error};
use crate::fs::interrupt;
use crate::session::{Id, ServiceEnd, Session, Store, UnderWay};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::question::Question;

/// Stops a service of a session.
///
/// # Errors
/// There is none of that name; an agent calls, and a person began it; a signal came.
pub fn stop(desk: &Desk, store: &Store, id: &Id, name: &str) -> Result<StoppedService, Error> {
    let session = store.session(id)?;
    let running = session.under_way()?;
    let Some(service) = running.iter().find(|one| one.service() == Some(name)) else {
        return Err(error::no_service(id, name, &running));
    };
    refuse_a_persons(desk, id, std::slice::from_ref(service))?;
    end(desk, &session, service)
}

/// Stops all that runs in a session, if these are services, and somebody agrees. `busy`: why the session cannot be had.
///
/// # Errors
/// Other commands run in it; the answer is no, or nobody can be asked; an agent calls, and a person began one.
pub fn stop_all(desk: &Desk, store: &Store, id: &Id, busy: Error) -> Result<(), Error> {
    let session = store.session(id)?;
    let running = session.under_way()?;
    if running.is_empty() || running.iter().any(|one| one.service().is_none()) {
        return Err(busy);
    }
    refuse_a_persons(desk, id, &running)?;
    if !desk.yes && !desk.can_ask {
        return Err(error::services_run(busy, id, &running));
    }
    desk.confirm(Question::StopServices { id, services: &running })?;
    // The first one's recant collects what all of them changed.
    for service in running.iter().rev() {
        let stopped = end(desk, &session, service)?;
        desk.caller.tell(Fact::ServiceStopped(&stopped));
    }
    while session.is_held()? && session.under_way()?.is_empty() {
        wait()?;
    }
    Ok(())
}

/// Refuses that an agent stops what a person began.
fn refuse_a_persons(desk: &Desk, id: &Id, services: &[UnderWay]) -> Result<(), Error> {
    let Some(variable) = limited(desk) else { return Ok(()) };
    match services.iter().find(|one| one.command.by.is_none()) {
        Some(service) => Err(error::a_persons_service(variable, id, service)),
        None => Ok(()),
    }
}

/// The time after which a person hears what is waited for.
const SILENCE: Duration = Duration::from_secs(1);

fn end(desk: &Desk, session: &Session, service: &UnderWay) -> Result<StoppedService, Error> {
    let name = service.service().unwrap_or_default().to_owned();
    let mut last = None;
    if let Some(seen) = session.service(&name)? {
        // One that stands would not hear of it.
        [Signal::TERM, Signal::CONT].into_iter().try_for_each(|signal| seen.send(signal)).at("stop", &name)?;
        let (began, mut is_told) = (Instant::now(), false);
        while seen.is_there() {
            if began.elapsed() > SILENCE && !std::mem::replace(&mut is_told, true) {
                desk.caller.tell(Fact::StopsService(&name));
            }
            wait()?;
        }
        last = seen.last_line().and_then(|line| serde_json::from_slice::<ServiceEnd>(&line).ok());
    }
    let (ending, stopped) = (last.map(|last| last.ending), last.and_then(|last| last.stopped));
    Ok(StoppedService { session: session.id().clone(), name, started: service.command.started, ending, stopped })
}

fn wait() -> Result<(), Error> {
    interrupt::check().map_err(error::asked_to_stop)?;
    std::thread::sleep(Duration::from_millis(20));
    Ok(())
}
