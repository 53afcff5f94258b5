//! Checks that what comes out of the tree is what planning saw: the act closes the race between look and act.

use crate::engine::plan::conflict;
use crate::engine::plan::conflict::Conflict;
use crate::engine::reach::Named;
use crate::engine::recover::find_objects;
use crate::engine::step::Step;
use crate::error::{At, Error, IoError};
use crate::fs::Stat;
use crate::tree::{Meta, Seen, What, observe};

/// Checks that what came out is what planning saw, whole.
pub fn check_what_came_out(out: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    let Some(planned) = &step.from else { return Ok(()) };
    let stat = check_object(out, step, planned)?;
    if planned.is_told_by_content() && !find_objects::holds(Some(out), Some(planned))? {
        return Err(changed(step, REPLACED));
    }
    if planned.state.is_dir() {
        let dir = out.at().open_dir().at("open the directory", step.path)?;
        if !step.whole && !dir.is_empty().at("list the directory", step.path)? {
            return Err(changed(step, "something new is in the directory"));
        }
        return Ok(());
    }
    if stat.mtime != planned.state.meta.mtime || matches!(planned.state.what, What::File { size, .. } if size != stat.size) {
        return Err(changed(step, "it was written to meanwhile"));
    }
    // Racily clean: the times could hide a change, the hash cannot.
    if planned.print.racy
        && let Some(hash) = planned.state.hash()
        && observe::hash(out.at()).at("read", step.path)?.0 != hash
    {
        return Err(changed(step, "it was written to meanwhile"));
    }
    Ok(())
}

/// Checks that it is the object that planning saw, with the same metadata.
pub fn check_object(out: &Named<'_>, step: &Step<'_>, planned: &Seen) -> Result<Stat, Error> {
    let Some(stat) = out.at().stat().at("look at", step.path)? else { return Err(changed(step, VANISHED)) };
    let meta = &planned.state.meta;
    let same_object = planned.print.identity.is(observe::identity(&stat)) && stat.sort == planned.state.sort();
    if !same_object || (stat.uid, stat.gid) != (meta.uid, meta.gid) || stat.mode != meta.mode {
        return Err(changed(step, REPLACED));
    }
    // Set between look and act: the manifest would lack it, and the rollback remove it.
    let xattrs = out.at().xattrs().at("read the extended attributes of", step.path)?;
    match Meta::of(&stat, xattrs).xattrs == meta.xattrs {
        true => Ok(stat),
        false => Err(changed(step, "its extended attributes were changed meanwhile")),
    }
}

const VANISHED: &str = "it vanished meanwhile";
pub const REPLACED: &str = "something else was put there meanwhile";

pub fn changed(step: &Step<'_>, why: &str) -> Error {
    conflict::refused(vec![Conflict::because(step.path, why)])
}

pub fn vanished(step: &Step<'_>, error: IoError) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => conflict::refused(vec![Conflict::because(step.path, VANISHED)]),
        _ => IoError { path: step.path.to_string(), act: "move", ..error }.into(),
    }
}

pub fn name_taken(step: &Step<'_>, error: IoError) -> Error {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            conflict::refused(vec![Conflict::because(step.path, "something appeared there meanwhile")])
        }
        _ => IoError { path: step.path.to_string(), act: "put in place", ..error }.into(),
    }
}
