//! Does one step and checks what comes out: the act closes the race between look and act.

use super::check::{REPLACED, changed, check_object, check_what_came_out, name_taken, vanished};
use super::copy::Firsts;
use super::{in_place, metadata};
use crate::engine::error::refused_at;
use crate::engine::plan::conflict;
use crate::engine::plan::conflict::Conflict;
use crate::engine::plan::rights::with_rights;
use crate::engine::reach::{Named, Reach};
use crate::engine::recover::undo_steps;
use crate::engine::step::{Act, Spot, Step};
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Entry, Fs, Time};
use crate::tree::{Difference, Seen, observe};

/// The reason for a path that is done but for its time.
pub const UNTIMED: &str = "its time could not be set, though the file system reported success";

/// Checks that a time that was set has taken, on file systems that are not known to do what they say.
pub fn check_time(at: Entry<'_>, path: &AbsPath, wanted: Time, left: &mut Vec<(AbsPath, String)>) -> Result<(), Error> {
    let is_known = at.dir.is_known()?;
    if !is_known && at.stat()?.is_some_and(|stat| !stat.mtime.shows(wanted)) {
        left.push((path.clone(), UNTIMED.to_owned()));
    }
    Ok(())
}

/// Does one step. Returns the ctime of what is at the path then, if the manifest is to have it (`dated`).
pub fn perform(
    fs: &Fs,
    reach: &mut Reach,
    (step, dated): (&Step<'_>, bool),
    firsts: &mut Firsts,
    left: &mut Vec<(AbsPath, String)>,
) -> Result<Option<Time>, Error> {
    let target = match reach.path(step.path) {
        Err(error) if error.leads_nowhere() => {
            let conflict = Conflict::because(step.path, "its directory is gone, or a symlink is above it");
            return Err(conflict::refused(vec![conflict]));
        }
        other => other?,
    };
    if step.was_dir() && step.act != Act::SetMeta {
        reach.forget(step.path);
    }
    match step.act {
        Act::Stay => return Ok(None),
        Act::SetMeta => {
            set_meta(fs, &target, step)?;
            if let Some(to) = &step.to {
                check_time(target.at(), step.path, to.state.meta.mtime, left)?;
            }
        }
        Act::Place if step.in_place => in_place::place(fs, reach, firsts, &target, step)?,
        Act::Place => {
            let to_at = named(reach, step.at.to.as_ref(), step)?;
            fs.place(to_at.at(), target.at()).map_err(|error| name_taken(step, error))?;
        }
        Act::Replace => {
            let to_at = named(reach, step.at.to.as_ref(), step)?;
            fs.exchange(to_at.at(), target.at()).map_err(|error| vanished(step, error))?;
            let put = if dated { when_put(&target, step)? } else { None };
            if let Err(conflict) = check_what_came_out(&to_at, step) {
                // Put back at once; the caller undoes what is done so far.
                let swap = || fs.exchange(to_at.at(), target.at());
                swap().at("put back", step.path)?;
                return Err(match undo_steps::written_meanwhile(&to_at, step.to.as_deref())? {
                    None => conflict,
                    // It met a writer in that moment: it stays for the undo to name, and is no held content any more.
                    Some(how) => {
                        swap().at("put", step.path)?;
                        refused_at(step.path, how)
                    }
                });
            }
            came_out(fs, reach, step, &to_at)?;
            return Ok(put);
        }
        Act::Remove if step.again && !step.was_dir() => return in_place::remove(fs, reach, &target, step).map(|()| None),
        Act::Remove if step.again => return remove_directory(fs, &target, step).map(|()| None),
        Act::Remove => {
            let out = named(reach, step.at.out.as_ref(), step)?;
            into_free(fs, step.at.out.as_ref(), &out, || fs.take(target.at(), out.at()))
                .map_err(|error| vanished(step, error))?;
            if let Err(conflict) = check_what_came_out(&out, step) {
                fs.place(out.at(), target.at()).at("put back", step.path)?;
                return Err(conflict);
            }
            came_out(fs, reach, step, &out)?;
            return Ok(None);
        }
    }
    if dated { when_put(&target, step) } else { Ok(None) }
}

/// The ctime of what was put, if it is still there unchanged: somebody may have been there since.
fn when_put(target: &Named<'_>, step: &Step<'_>) -> Result<Option<Time>, Error> {
    let (Some(stat), Some(to)) = (target.at().stat()?, &step.to) else { return Ok(None) };
    // A directory's times change with its names.
    let same = to.print.identity.is(observe::identity(&stat))
        && (to.state.is_dir()
            || stat.mtime == to.state.meta.mtime && (to.state.size() == stat.size || to.state.hash().is_none()));
    Ok(same.then_some(stat.ctime))
}

/// Moves what came out to its home. What was copied there before stays until Settle (I7).
fn came_out(fs: &Fs, reach: &mut Reach, step: &Step<'_>, out: &Named<'_>) -> Result<(), Error> {
    let Some(home) = step.at.put_away() else { return Ok(()) };
    put_away(fs, out, home, &reach.spot(home)?)
}

pub fn put_away(fs: &Fs, out: &Named<'_>, spot: &Spot, home: &Named<'_>) -> Result<(), Error> {
    let place = || with_rights(fs, [out, home], || fs.place(out.at(), home.at()));
    Ok(into_free(fs, Some(spot), home, place).at("put away", spot)?)
}

/// Moves something to a place of its own. If that is taken in the session, it was by an earlier crash: nothing names it, or the plan
/// would have chosen another place.
fn into_free(fs: &Fs, spot: Option<&Spot>, named: &Named<'_>, moved: impl Fn() -> Result<(), IoError>) -> Result<(), IoError> {
    match moved() {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && matches!(spot, Some(Spot::Session(_))) => {
            fs.remove_all(named.at())?;
            moved()
        }
        done => done,
    }
}

fn named<'p>(reach: &mut Reach, spot: Option<&'p Spot>, step: &Step<'_>) -> Result<Named<'p>, Error> {
    let spot = spot.ok_or_else(|| refused_at(step.path, "the step names no place for it"))?;
    Ok(reach.spot(spot)?)
}

/// Removes a directory in place: rmdir(2) itself tells whether something new is in it.
fn remove_directory(fs: &Fs, target: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    if let Some(planned) = &step.from {
        check_object(target, step, planned)?;
    }
    match fs.rmdir(target.at()) {
        Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
            Err(changed(step, "something new is in the directory"))
        }
        removed => removed.map_err(|error| vanished(step, error)),
    }
}

fn set_meta(fs: &Fs, target: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    let (Some(from), Some(to)) = (&step.from, &step.to) else { return Ok(()) };
    let expected = |found: Option<&Seen>, difference| {
        let found = found.map(|seen| seen.state.clone());
        conflict::refused(vec![Conflict::of(step.path, &Some(from.state.clone()), &found, difference)])
    };
    let Some(found) = observe::object(target.at())? else { return Err(expected(None, Difference::Presence)) };
    if !from.print.identity.is(found.print.identity) {
        return Err(changed(step, REPLACED));
    }
    // The step of another of its names has set already what it is to have.
    if let Some(difference) = from.state.meta_difference(&found.state)
        && to.state.meta_difference(&found.state).is_some()
    {
        return Err(expected(Some(&found), difference));
    }
    metadata::bring(fs, target.at(), to.state.sort(), &found.state.meta, &to.state.meta)?;
    Ok(())
}
