//! Runs that change nothing, to find out whether runs work here.

use super::plan::plan;
use super::terms::Places;
use crate::capture::{Command, Confinement, Event, Ground, Network, Pass, Plan, hold, run_command, start_of, working_directory};
use crate::error::{Error, Kind};
use crate::session::{Coverage, How, Locked, Origin, Store};
use crate::verb::desk::Desk;

/// The result of a run that changes nothing.
#[derive(Default)]
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

/// The program that is run.
const TRUE: &str = "true";

/// Sets up a run from here and runs `true` in it, in a session of the store that is removed again. `usual`: what stays real by default.
///
/// # Errors
/// The session cannot be made or removed.
pub fn held(desk: &Desk, store: &Store, usual: Vec<Pass>) -> Result<Tried, Error> {
    let since = crate::fs::exact_now();
    let mut session = store.begin(&desk.fs, Origin::Captured, None, Some(start_of(&[TRUE.into()])))?;
    let mut tried = Tried::default();
    let places = Places { usual, ..Places::default() };
    let ran = plan(desk, store, &session, (&places, Vec::new(), Some(&TRUE.into())), since).and_then(|plan| {
        tried.coverage = plan.coverage().to_vec();
        hold_true(desk, store, &mut session, plan, &mut tried)
    });
    tried.failed = ran.err().filter(|error| !got_as_far_as_the_command(error));
    store.remove_session(&desk.fs, session)?;
    Ok(tried)
}

fn hold_true(desk: &Desk, store: &Store, session: &mut Locked, plan: Plan, tried: &mut Tried) -> Result<(), Error> {
    let mut hear = |event| match event {
        Event::Uncovered(path, why) => {
            let rows = tried.coverage.iter_mut().filter(|row| row.path == path);
            rows.for_each(|row| (row.how, row.why) = (How::Uncovered, Some(why.clone())));
        }
        Event::NoGroups(why) => tried.no_groups = Some(why),
        Event::InMemory(_) => tried.in_memory = true,
        Event::SettingUp
        | Event::Lingering(_)
        | Event::EndsRest(_)
        | Event::NotFed(_)
        | Event::Closed(..)
        | Event::RealOutput(..)
        | Event::Asked(_)
        | Event::Serves
        | Event::Listens(_)
        | Event::OnlyJoined(..) => {}
    };
    hold(&desk.fs, store, session, plan, &Command::new(vec![TRUE.into()]), &mut hear).map(drop)
}

/// True for the error of a program that is not there, or not to be executed.
fn got_as_far_as_the_command(error: &Error) -> bool {
    matches!(error.kind(), Kind::NotFound | Kind::NotExecutable)
}

/// Runs `true` on the real tree as `run --in` would, confined to the working directory. Returns the error that kept it from working.
pub fn in_place() -> Option<Error> {
    let confinement = working_directory().and_then(|cwd| Confinement::make(&[cwd.as_path().to_path_buf()], &[], Network::Open));
    let ran = confinement.and_then(|confinement| {
        run_command(Ground::Confined(&confinement), &Command::new(vec![TRUE.into()]), &mut |_| ()).map(drop)
    });
    ran.err().filter(|error| !got_as_far_as_the_command(error))
}
