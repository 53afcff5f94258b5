//! The plan of a run: the places that it was asked for, and those of the settings.

use std::ffi::OsString;

use super::closed;
use super::terms::Places;
use crate::capture::{Hide, Pass, Plan, Request, working_directory};
use crate::error::Error;
use crate::fs::{AbsPath, Sort, Time, absolute};
use crate::session::{Session, Store, own_store};
use crate::verb::desk::Desk;
use crate::verb::error;

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
    let keeps_ssh_agent = places.closed.is_none() || desk.config.ssh_agent.value;
    let usual = places.usual.iter().filter(|pass| keeps_ssh_agent || pass.why != error::SSH_AGENT);
    let passes: Vec<Pass> = places.passes.iter().chain(usual).cloned().chain(set).chain(passes).collect();
    let asked = places.hide.iter().chain(&desk.config.hide.value).map(|path| Hide { path: path.clone(), secret: None });
    let passed = || passes.iter().map(|pass| &*pass.path);
    let secrets = places.closed.iter().flat_map(|closing| closed::paths(desk, closing, passed()));
    let hide = asked.chain(secrets).collect();
    let request = Request {
        cwd: working_directory()?,
        store: store.path.clone(),
        own_store: own_store::of(store, session)?,
        home: dirs::home_dir(),
        also: desk.config.also.value.clone(),
        passes,
        hide,
        scratch: places.scratch.clone(),
        program: program.cloned().unwrap_or_default(),
        known: session.run()?.map(|run| run.places).unwrap_or_default(),
        tag: session.id().to_string(),
        since,
    };
    refuse_moved(session, &request.hide)?;
    Plan::make(&request)
}

/// Refuses to hide what the session has deleted: it may have moved it, or what it lies in.
fn refuse_moved(session: &Session, hide: &[Hide]) -> Result<(), Error> {
    if hide.is_empty() {
        return Ok(());
    }
    let changes = session.changes()?;
    for Hide { path, secret } in hide {
        let Some(path) = path.canonicalize().ok().and_then(|path| absolute(&path).ok()) else { continue };
        let is_gone = |above: &AbsPath| {
            let change = changes.at(above)?;
            let stays = change.after.as_ref().is_some_and(|after| after.is_dir() || *above == path && after.sort() == Sort::File);
            Some(!stays)
        };
        if [path.clone()].into_iter().chain(path.ancestors()).any(|above| is_gone(&above) == Some(true)) {
            return Err(error::not_started(error::moved_secret(&path, secret.is_some())));
        }
    }
    Ok(())
}
