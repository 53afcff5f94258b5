//! The files of agents' settings as they are now: what the environment says of where they lie, and their texts.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::agent::known::Agent;
use crate::agent::settings;
use crate::agent::settings::edit::Wrong;
use crate::agent::settings::form::{Form, Found};
use crate::agent::settings::places::{Place, Scope, Surroundings};
use crate::error::{At, Error};
use crate::face::place::{absolute, cwd};
use crate::fs::path::{AbsPath, Shown};
use crate::tree::project::project_of;

/// The most bytes of a file of settings that are read.
const LIMIT: u64 = 16 << 20;

pub struct File {
    /// The path as the agent finds it.
    pub named: AbsPath,
    /// The path without links: that of the file itself.
    pub path: AbsPath,
    pub form: Form,
    /// Its text; `None` if there is none.
    pub text: Option<String>,
    pub hooks: Vec<Found>,
}

/// The facts that the places of settings follow from, here.
///
/// # Errors
/// No home directory is known.
pub fn surroundings() -> Result<Surroundings<'static>, Error> {
    let home = dirs::home_dir().and_then(|home| AbsPath::parse(home.as_os_str().as_bytes()).ok());
    let home = home.ok_or_else(|| Error::refused("no home directory is known").with_remedy("set HOME"))?;
    let project = project_of(&absolute(&cwd()?)?, dirs::home_dir().as_deref());
    Ok(Surroundings { home, project, directory: &directory })
}

/// The directory that an environment variable names.
fn directory(variable: &str) -> Option<AbsPath> {
    AbsPath::parse(std::env::var_os(variable)?.as_bytes()).ok()
}

/// Reads the files in which an agent's hooks can stand.
///
/// # Errors
/// A file cannot be read or parsed.
pub fn files(of: &Surroundings<'_>, agent: Agent, scope: Scope) -> Result<Vec<File>, Error> {
    of.places(agent, scope).into_iter().map(|place| file(agent, place)).collect()
}

fn file(agent: Agent, Place { path: named, form }: Place) -> Result<File, Error> {
    let path = real(&named)?;
    let text = read(&path)?;
    let hooks = text.as_deref().map_or(Ok(Vec::new()), |text| settings::find(agent, form, text));
    let hooks = hooks.map_err(|wrong| unparsed(&named, &wrong))?;
    Ok(File { named, path, form, text, hooks })
}

/// The problem of a file that cannot be edited as it is.
pub fn unparsed(path: &AbsPath, wrong: &Wrong) -> Error {
    Error::refused(format!("{path}: {wrong}"))
        .with_path(path)
        .with_remedy("put it right first; recant edits only what it understands")
}

/// The text of a file; `None` if there is none.
///
/// # Errors
/// It cannot be read, is no file, or no text.
pub fn read(path: &AbsPath) -> Result<Option<String>, Error> {
    let refused = |why: &str| Error::refused(format!("{path}: {why}")).with_path(path);
    // What is no file may make the open wait.
    match path.as_path().metadata() {
        Ok(found) if !found.is_file() => return Err(refused("it is no file")),
        Ok(found) if found.len() > LIMIT => return Err(refused("it is far too large for settings")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => found.map(|_is_a_file| ()).at("read", path)?,
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path.as_path()).at("read", path)?;
    file.take(LIMIT).read_to_end(&mut bytes).at("read", path)?;
    String::from_utf8(bytes).map(Some).map_err(|_| refused("it is no text in UTF-8"))
}

/// The most links that are followed.
const LINKS: usize = 40;

/// The path of the file itself, where its name is a link: to what the link leads to, even if nothing is there yet.
fn real(named: &AbsPath) -> Result<AbsPath, Error> {
    let mut path = named.as_path().to_path_buf();
    for _ in 0..LINKS {
        let Ok(target) = path.read_link() else { return parent_resolved(&path) };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    let named = Shown(named.as_bytes());
    Err(Error::refused(format!("{named}: its links lead in a circle")).with_path(named))
}

/// A path whose last name stays, and the rest of which is without links.
fn parent_resolved(path: &Path) -> Result<AbsPath, Error> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let whole: PathBuf = absolute(parent)?.as_path().join(path.file_name().unwrap_or_default());
    absolute(&whole)
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
