//! The places of agents' settings, as the environment tells.

use std::os::unix::ffi::OsStrExt;

use super::find_store::absolute;
use super::find_store::cwd;
use crate::agent::{Agent, Surroundings};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::tree::project_of;

/// The facts that the places of settings follow from, here.
///
/// # Errors
/// No home directory is known.
pub fn surroundings() -> Result<Surroundings<'static>, Error> {
    let home = dirs::home_dir().and_then(|home| AbsPath::parse(home.as_os_str().as_bytes()).ok());
    let home = home.ok_or_else(|| Error::refused("no home directory is known").with_remedy("set HOME"))?;
    let project = project_of(&absolute(&cwd()?)?, dirs::home_dir().as_deref());
    Ok(Surroundings { home, project, variable: &|name| std::env::var_os(name) })
}

/// A name for a session of an agent: its own and the project's.
///
/// # Errors
/// No home directory is known.
pub fn name_of(agent: Agent) -> Result<String, Error> {
    let project = surroundings()?.project;
    let fits = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let project: String = String::from_utf8_lossy(project.name()).chars().take(40).map(fits).collect();
    Ok(format!("{}-{project}", agent.word()))
}
