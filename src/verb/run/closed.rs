//! The paths that are closed to a command, as far as they hold secrets.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::terms::Closing;
use crate::capture::Hide;
use crate::settings::{From, Holds, MovedSecret, Secret, names_private_key};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::resolve::scope::Scope;

/// The most of a file that is looked through for a key or a token, in bytes.
const LOOKED_THROUGH: u64 = 1 << 20;

/// The paths to close. `passed`: the places that stay real, which are open, too.
pub fn paths<'a>(desk: &Desk, closing: &'a Closing, passed: impl Iterator<Item = &'a Path>) -> Vec<Hide> {
    let home = dirs::home_dir();
    let open: Vec<PathBuf> = closing.open.iter().map(PathBuf::as_path).chain(passed).map(real).collect();
    let known =
        |path: &Path| Secret::at(path, home.as_deref()).map_or(("agent.closed", Holds::All), |known| (known.what, known.holds));
    let set = desk.config.closed.value.iter().map(|path| (path.as_path(), known(path)));
    let is_listed =
        |secret: &Secret| home.as_ref().is_some_and(|home| desk.config.closed.value.contains(&home.join(secret.path)));
    let moved = closing.moved.iter().filter(|moved| is_listed(moved.secret) && closes(desk, moved));
    let set = set.chain(moved.map(|moved| (moved.path.as_path(), (moved.secret.what, moved.secret.holds))));
    // A list of a person's own is the whole list.
    let of_agents = closing.of_agents.iter().filter(|_| desk.config.closed.from == From::Default);
    let all = set.chain(of_agents.map(|path| (path.as_path(), (error::AGENT_S_CREDENTIALS, Holds::All))));
    let all: Vec<_> = all.collect();
    for path in closing.open.iter().map(|path| real(path)) {
        let is_of_it = |(closed, _): &(&Path, _)| path.starts_with(real(closed)) || real(closed).starts_with(&path);
        if !all.iter().any(is_of_it) {
            desk.caller.tell(Fact::Warning(&error::opens_nothing(&path)));
        }
    }
    let closed = all.into_iter().flat_map(|(path, (what, holds))| {
        let parts = secret_parts(path, holds).into_iter().flat_map(|path| but_for(&open, path));
        parts.map(|path| Hide { path, secret: Some(what.to_owned()) }).collect::<Vec<_>>()
    });
    closed.collect()
}

/// Tells whether the place that a variable names is closed: it is no device, as /dev/null would be, and does not lie in the project. One that
/// holds the project, the home directory or the store is not, and named.
fn closes(desk: &Desk, moved: &MovedSecret) -> bool {
    let place = real(&moved.path);
    let is_other = place.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    let project = Scope::here().ok().and_then(|scope| scope.project).map(|project| project.as_path().to_path_buf());
    let (home, store) = (dirs::home_dir(), desk.store().ok().flatten().map(|store| store.path.as_path().to_path_buf()));
    // At home it is not the project that keeps a place open.
    let is_home = |project: &Path| home.as_ref().is_some_and(|home| real(home).starts_with(project));
    if is_other || project.as_ref().is_some_and(|project| place.starts_with(project) && !is_home(project)) {
        return false;
    }
    let holds = project.into_iter().chain(home).chain(store).any(|within| real(&within).starts_with(&place));
    if holds {
        desk.caller.tell(Fact::Warning(&error::closes_too_much(moved.variable, &moved.path)));
    }
    !holds
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The parts of what is at a path, by their real paths, that are secret; none if nothing is there.
fn secret_parts(path: &Path, holds: Holds) -> Vec<PathBuf> {
    let path = match path.canonicalize() {
        Ok(path) => path,
        // Its owner can open the directory that keeps him out.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return nearest(path),
        Err(_) => return Vec::new(),
    };
    match holds {
        Holds::All => vec![path],
        Holds::After(_) => Some(path).filter(|path| has(path, holds)).into_iter().collect(),
        Holds::PrivateKeys => keys_below(&path),
    }
}

/// The nearest directory above a path that can be reached: the one that cannot be entered.
fn nearest(path: &Path) -> Vec<PathBuf> {
    path.ancestors().skip(1).find_map(|above| above.canonicalize().ok()).into_iter().collect()
}

/// True if a file is secret. One that cannot be read may be: its owner can open it.
fn has(path: &Path, holds: Holds) -> bool {
    let mut content = Vec::new();
    let is_file = path.metadata().is_ok_and(|facts| facts.is_file());
    let mut read = || File::open(path)?.take(LOOKED_THROUGH).read_to_end(&mut content);
    is_file && (read().is_err() || holds.is_in(&content))
}

/// The files with private keys in a directory and below, and directories there that cannot be read.
fn keys_below(path: &Path) -> Vec<PathBuf> {
    let below = walkdir::WalkDir::new(path).max_depth(DEPTH).into_iter();
    let secret = below.filter_map(|entry| match entry {
        Ok(entry) if entry.file_type().is_dir() => None,
        // What a link leads to.
        Ok(entry) => {
            let is_named = names_private_key(entry.file_name().as_encoded_bytes());
            entry.path().canonicalize().ok().filter(|path| is_named && path.is_file() || has(path, Holds::PrivateKeys))
        }
        Err(error) => error.path().map(Path::to_path_buf),
    });
    secret.collect()
}

/// The depth to which keys are looked for.
const DEPTH: usize = 8;

/// The path, unless it is open; what is beside an open path in it, if there is one.
fn but_for(open: &[PathBuf], path: PathBuf) -> Vec<PathBuf> {
    if open.iter().any(|open| path.starts_with(open)) {
        return Vec::new();
    }
    if !open.iter().any(|open| open.starts_with(&path)) {
        return vec![path];
    }
    // What a link leads to does not lie there.
    names_in(&path).filter(|below| !below.is_symlink()).flat_map(|below| but_for(open, below)).collect()
}

/// The paths in a directory; none if it cannot be read.
fn names_in(path: &Path) -> impl Iterator<Item = PathBuf> {
    path.read_dir().into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}
