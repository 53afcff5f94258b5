//! The plan of a run: the places that it was asked for, and those of the settings.

use std::ffi::OsString;

use super::terms::Places;
use crate::capture::{Pass, Plan, Request, working_directory};
use crate::error::Error;
use crate::fs::Time;
use crate::session::{Session, Store, own_store};
use crate::verb::desk::Desk;

/// Plans a run in a session. `passes`: what its program needs real. `since`: when the run began.
///
/// # Errors
/// A place cannot be captured; the working directory is gone.
pub fn plan(
    desk: &Desk,
    store: &Store,
    session: &Session,
    (places, passes, program): (&Places, Vec<Pass>, Option<&OsString>),
    since: Time,
) -> Result<Plan, Error> {
    let set = desk.config.pass.value.iter().map(|path| Pass { path: path.clone(), why: "capture.pass".into() });
    let request = Request {
        cwd: working_directory()?,
        store: store.path.clone(),
        own_store: own_store::of(store, session)?,
        home: dirs::home_dir(),
        also: desk.config.also.value.clone(),
        passes: places.passes.iter().cloned().chain(set).chain(places.usual.iter().cloned()).chain(passes).collect(),
        hide: places.hide.iter().chain(&desk.config.hide.value).cloned().collect(),
        scratch: places.scratch.clone(),
        program: program.cloned().unwrap_or_default(),
        known: session.run()?.map(|run| run.places).unwrap_or_default(),
        tag: session.id().to_string(),
        since,
    };
    Plan::make(&request)
}
