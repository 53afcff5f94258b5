//! Removes and makes objects in the path's own directory, where no rename leads from anywhere or to anywhere: in a subvolume of btrfs that
//! itself comes or goes, and in a directory that demands a project number that the object has not.
//!
//! Before it is removed, an object was copied to its home (I4, I7), and an undo copies it from there.

use super::check::{changed, check_what_came_out, name_taken, vanished};
use super::copy::Firsts;
use crate::engine::error::refused_at;
use crate::engine::reach::{Named, Reach};
use crate::engine::recover::undo_steps::is_open_for_writing;
use crate::engine::step::Step;
use crate::error::{At, Error};
use crate::fs::Fs;

/// Makes what is to come beside its path, and places it.
pub fn place(fs: &Fs, reach: &mut Reach, firsts: &mut Firsts, target: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    let (Some(to), Some(spot)) = (&step.to, &step.at.to) else {
        return Err(refused_at(step.path, "the step names no place for it"));
    };
    firsts.make(fs, reach, step.at.spare.as_ref(), spot, &to.state)?;
    let ready = reach.spot(spot)?;
    if let Err(error) = fs.place(ready.at(), target.at()) {
        fs.remove_all(ready.at())?;
        return Err(name_taken(step, error));
    }
    match &step.at.spare {
        Some(spare) => firsts.know(&reach.spot(spare)?, step.path),
        None => Ok(()),
    }
}

/// Removes what goes. It is renamed within its directory first, so that it is compared where nobody replaces it, unless not even that can
/// be.
pub fn remove(fs: &Fs, reach: &mut Reach, target: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    let Some(spot) = &step.at.out else { return Err(refused_at(step.path, "the step names no place for it")) };
    let out = reach.spot(spot)?;
    match fs.take(target.at(), out.at()) {
        Err(error) if error.errno() == Some(libc::EXDEV) => {
            check(target, step)?;
            fs.unlink(target.at()).map_err(|error| vanished(step, error))
        }
        Err(error) => Err(vanished(step, error)),
        Ok(()) => {
            if let Err(conflict) = check(&out, step) {
                fs.place(out.at(), target.at()).at("put back", step.path)?;
                return Err(conflict);
            }
            Ok(fs.unlink(out.at())?)
        }
    }
}

/// D12: once it is removed, what somebody still writes to it is lost.
fn check(out: &Named<'_>, step: &Step<'_>) -> Result<(), Error> {
    check_what_came_out(out, step)?;
    if step.from.as_ref().is_some_and(|from| from.state.is_file()) && is_open_for_writing(out)? {
        return Err(changed(step, "a process has it open for writing"));
    }
    Ok(())
}
