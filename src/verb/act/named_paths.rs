//! The paths that settings name by globs, for an act on the tree.

use std::rc::Rc;

use globset::GlobSetBuilder;

use crate::engine::MinorPaths;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::Locked;
use crate::settings::path_glob;
use crate::tree::project_of;
use crate::verb::desk::Desk;

/// The paths that `commit.deny` names, which no commit changes.
///
/// # Errors
/// A glob of the setting is none.
pub fn denied(desk: &Desk) -> Result<MinorPaths, Error> {
    named_by("commit.deny", &desk.config.deny.value)
}

/// The paths that the globs of a setting name, and all below them.
fn named_by(key: &str, globs: &[String]) -> Result<MinorPaths, Error> {
    let broken = |error: globset::Error| crate::engine::refused_at(key, error);
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(path_glob(glob).map_err(broken)?);
    }
    let set = set.build().map_err(broken)?;
    Ok(Rc::new(move |path: &AbsPath| !set.is_empty() && path.as_path().ancestors().any(|path| set.is_match(path))))
}

/// The paths where a conflict does not stop a commit: places of `commit.minor`, but not where the command was meant to work. `None` for
/// staged changes: somebody named each of their paths.
///
/// # Errors
/// A glob of the setting is none; the session's run cannot be read.
pub fn minor(desk: &Desk, session: &Locked) -> Result<Option<MinorPaths>, Error> {
    let Some(run) = session.run()? else { return Ok(None) };
    let named = named_by("commit.minor", &desk.config.minor.value)?;
    let project = project_of(&run.command.cwd, dirs::home_dir().as_deref());
    let works_there = named(&project);
    Ok(Some(Rc::new(move |path: &AbsPath| named(path) && !(works_there && path.is_under(&project)))))
}
