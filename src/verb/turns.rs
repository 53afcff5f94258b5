//! The turns of agents in the project of a call.

use super::desk::Desk;
use crate::agent::turns::Turns;
use crate::capture::place::plan::working_directory;
use crate::error::Error;
use crate::fs::path::AbsPath;
use crate::session::store::Store;
use crate::tree::project::project_of;

/// The turns of a project, and the directory in which its agents were started.
pub struct Near<'d> {
    pub store: &'d Store,
    pub directory: AbsPath,
    pub turns: Turns,
}

/// The turns of the project of `cwd`, or without a repository those of a directory above. `None` if no turn was ever noted here.
///
/// # Errors
/// The store or the turns cannot be read.
pub fn near<'d>(desk: &'d Desk, cwd: &AbsPath) -> Result<Option<Near<'d>>, Error> {
    let Some(store) = desk.store()? else { return Ok(None) };
    let project = project_of(cwd, dirs::home_dir().as_deref());
    for directory in [project].into_iter().chain(std::iter::successors(Some(cwd.clone()), AbsPath::parent)) {
        if let Some(turns) = Turns::open(store, &directory)?
            && turns.first()?.is_some()
        {
            return Ok(Some(Near { store, directory, turns }));
        }
    }
    Ok(None)
}

/// True if an agent has turns in the caller's project.
pub fn are_there(desk: &Desk) -> bool {
    let cwd = working_directory().ok().filter(|_| !desk.is_far);
    cwd.is_some_and(|cwd| near(desk, &cwd).is_ok_and(|near| near.is_some()))
}
