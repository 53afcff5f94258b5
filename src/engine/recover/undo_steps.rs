//! Undo: reverses the steps of a journal, last first. The place of each object tells what was done; undoing twice is harmless. What
//! somebody else has put or changed meanwhile is left alone and named (I8).

use super::find_objects::{AtPath, OffPath, Ownership, StepObjects, holds, ownership};
use crate::checkpoint::Former;
use crate::engine::item::Turn;
use crate::engine::journal::Journal;
use crate::engine::plan::rights::with_rights;
use crate::engine::reach::{Named, Reach, open};
use crate::engine::report::LeftPath;
use crate::engine::step::{Act, Step};
use crate::engine::work::copy::Firsts;
use crate::engine::work::sync::sync_touched;
use crate::engine::work::times::{ignore_not_mine, restore_times};
use crate::engine::work::{metadata, records};
use crate::error::{At, Error};
use crate::fs::{Fs, Sort, Writers, writers};
use crate::session::Session;
use crate::tree::{Meta, Seen, What, observe};

/// Undoes, durably, the first `begun` steps of an operation, in the directories that `reach` has. Returns what has to stay, in the order
/// of the steps: what Prepare made for it is still there, as is the journal.
pub fn undo(
    fs: &Fs,
    session: &Session,
    reach: &mut Reach,
    journal: &Journal,
    begun: usize,
) -> Result<Vec<(Turn, LeftPath)>, Error> {
    let (mut left, mut taken, mut firsts) = (Vec::new(), Vec::new(), Firsts::default());
    metadata::open_again(fs, reach, journal, begun)?;
    for turn in journal.turns.iter().take(begun).rev() {
        let step = journal.step(*turn);
        if reach.roots.is_lost(step.path) {
            continue;
        }
        let fresh = matches!(turn, Turn::Move(i) if journal.items[*i as usize].fresh);
        let why = match taken.iter().find(|directory| step.path.is_under(directory)) {
            // It lay in the directory that was there before, not in one that somebody has made since.
            Some(directory) => Some(format!("{directory} above it is not restored; what was there before is kept")),
            None => undo_step(fs, reach, &mut firsts, fresh, &step)?,
        };
        if let Some(why) = why {
            taken.extend((step.act != Act::SetMeta && step.was_dir()).then(|| step.path.clone()));
            left.push((*turn, LeftPath { path: step.path.clone(), why }));
        }
    }
    left.reverse();
    restore_times(fs, reach, journal)?;
    // The next manifest is named beside the header, and after a power cut may have its name alone.
    let checkpoint = records::directory(session)?;
    Former::new(fs, &checkpoint, journal.head.generation).put_back()?;
    sync_touched(fs, reach, journal, &[])?;
    Ok(left)
}

/// Undoes one step; returns the reason if it must be left.
fn undo_step(fs: &Fs, reach: &mut Reach, firsts: &mut Firsts, fresh: bool, step: &Step<'_>) -> Result<Option<String>, Error> {
    if step.act == Act::SetMeta {
        return undo_set_meta(fs, reach, step);
    }
    let found = look_for(reach, step)?;
    let (found, why) = match bring_out(fs, &found, step)? {
        HomeMove::NotAway => (found, None),
        HomeMove::Out => (look_for(reach, step)?, None),
        HomeMove::Left(why) => (found, Some(why)),
    };
    if why.is_some() {
        return Ok(why);
    }
    let undone = match step.act {
        Act::Place if step.in_place => unmake(fs, step, &found)?,
        Act::Place => undo_place(fs, fresh, step, &found)?,
        Act::Replace => undo_replace(fs, step, &found)?,
        _ if step.again => make_again(fs, reach, firsts, step, &found)?,
        _ => undo_remove(fs, step, &found)?,
    };
    if step.was_dir() || step.to.as_ref().is_some_and(|to| to.state.is_dir()) {
        reach.forget(step.path);
    }
    Ok(undone)
}

fn look_for<'s>(reach: &mut Reach, step: &'s Step<'_>) -> Result<StepObjects<'s>, Error> {
    Ok(StepObjects::find(reach, step.path, (step.from.as_deref(), step.to.as_deref()), &step.at)?)
}

/// The outcome of moving an object back out of its home.
enum HomeMove {
    /// It was not there.
    NotAway,
    /// It is where it came out; from there it returns to its path.
    Out,
    /// It stays, for this reason, for people.
    Left(String),
}

fn bring_out(fs: &Fs, found: &StepObjects<'_>, step: &Step<'_>) -> Result<HomeMove, Error> {
    let (Some(_), Some(home), Some(out)) = (step.at.put_away(), &found.home, &found.out) else { return Ok(HomeMove::NotAway) };
    let (Some(home_at), OffPath::Ours) = (&home.named, home.what) else { return Ok(HomeMove::NotAway) };
    let Some(out_at) = &out.named else { return Ok(HomeMove::Left(NO_DIRECTORY.into())) };
    if out.what == OffPath::Ours || found.there == AtPath::From {
        // F13: after a power cut a file system may show it under both names. The one at home is useless now.
        if !step.was_dir() {
            fs.unlink(home_at.at())?;
        }
        return Ok(HomeMove::NotAway);
    }
    match with_rights(fs, [home_at, out_at], || fs.place(home_at.at(), out_at.at())) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let spot = home.spot;
            Ok(HomeMove::Left(format!("what was there before is kept as {spot}, as something else lies in its way")))
        }
        moved => Ok(moved.at("take back", home.spot).map(|()| HomeMove::Out)?),
    }
}

fn undo_place(fs: &Fs, fresh: bool, step: &Step<'_>, found: &StepObjects<'_>) -> Result<Option<String>, Error> {
    let Some(ready) = &found.ready else { return Ok(None) };
    if let (true, Some(target)) = (found.has_both_names()?, &found.target) {
        // F13: the path was free: the name there is ours, and goes.
        return match &found.there {
            AtPath::To => Ok(fs.unlink(target.at()).at("take back", step.path).map(|()| None)?),
            AtPath::Changed(how) => Ok(Some(how.clone())),
            // Without a birth time, content tells it apart as well.
            _ => Ok(Some("another process changed what was put there".into())),
        };
    }
    // Undo removes what Prepare made. If it was interrupted after that, it is nowhere.
    let gone = (!fresh).then(|| "what was put there is gone".to_owned());
    match (ready.what, &found.there) {
        // F13 once more, where two names of one file differ in number.
        (OffPath::Ours, AtPath::To) if step.to.as_ref().is_some_and(|to| to.is_told_by_content() && !to.state.is_dir()) => {
            let Some(target) = &found.target else { return Ok(None) };
            return Ok(fs.unlink(target.at()).at("take back", step.path).map(|()| None)?);
        }
        // Not put, or back already.
        (OffPath::Ours, _) => return Ok(None),
        _ if found.may_be_changed(step.to.as_deref()) => return Ok(Some("another process changed what was put there".into())),
        // In a copy of the store it is another object. It was not put, or there would be none.
        (OffPath::Other, _) if !fresh && !found.is_put() => return Ok(None),
        (_, AtPath::To) => {}
        (_, AtPath::Changed(how)) => return Ok(Some(how.clone())),
        _ => return Ok(gone),
    }
    let (Some(target), Some(spot)) = (&found.target, &ready.named) else { return Ok(gone) };
    with_rights(fs, [target, spot], || fs.take(target.at(), spot.at())).at("take back", step.path)?;
    let written = written_meanwhile(spot, step.to.as_deref())?;
    if written.is_some() {
        fs.place(spot.at(), target.at()).at("leave", step.path)?;
    }
    Ok(written)
}

const NO_DIRECTORY: &str = "its directory is gone";
const OTHER: &str = "another process put something else there; what was there before is kept";

fn undo_replace(fs: &Fs, step: &Step<'_>, found: &StepObjects<'_>) -> Result<Option<String>, Error> {
    let (Some(ready), Some(out)) = (&found.ready, &found.out) else { return Ok(None) };
    match (&found.there, out.what) {
        (AtPath::From, _) => return Ok(None),
        (_, OffPath::Nothing | OffPath::Other) => {
            // Not exchanged, or back: any other change of the path is not ours to undo.
            let is_ready = ready.what == OffPath::Ours;
            return Ok((!is_ready).then(|| "what was there before is not where it was put".into()));
        }
        (AtPath::NoDirectory, _) => return Ok(Some(NO_DIRECTORY.into())),
        (AtPath::Changed(how), _) => return Ok(Some(how.clone())),
        (AtPath::Nothing, _) => {
            return Ok(Some("another process removed what was put there; what was there before is kept".into()));
        }
        (AtPath::Other, _) => return Ok(Some(OTHER.into())),
        (AtPath::To, OffPath::Ours) => {}
    }
    let (Some(target), Some(spot)) = (&found.target, &out.named) else { return Ok(None) };
    with_rights(fs, [spot, target], || fs.exchange(spot.at(), target.at())).at("take back", step.path)?;
    let written = written_meanwhile(spot, step.to.as_deref())?;
    if written.is_some() {
        fs.exchange(spot.at(), target.at()).at("leave", step.path)?;
    }
    Ok(written)
}

/// The change that somebody made to an object while it was on its path, found as it comes off: the act closes the race between look and
/// act. Session content with such a change would later count as damaged, and nothing would tell whose bytes they are.
pub fn written_meanwhile(off: &Named<'_>, ours: Option<&Seen>) -> Result<Option<String>, Error> {
    match ownership(off, ours)? {
        Ownership::Ours => {}
        Ownership::Changed(how) => return Ok(Some(how)),
        Ownership::Foreign => return Ok(Some("another process put something else there; what was there before is kept".into())),
    }
    if ours.is_none_or(|ours| !matches!(ours.state.what, What::File { .. })) {
        return Ok(None);
    }
    Ok(is_open_for_writing(off)?.then(|| "a process has what was put there open for writing".into()))
}

/// True if somebody is known to have a file open for writing.
pub fn is_open_for_writing(file: &Named<'_>) -> Result<bool, Error> {
    match file.at().open_file() {
        // An unreadable file cannot be asked.
        Err(error) if error.errno() == Some(libc::EACCES) => Ok(false),
        opened => Ok(writers(&opened?).at("ask for a lease on", file.at())? == Writers::Some),
    }
}

fn undo_remove(fs: &Fs, step: &Step<'_>, found: &StepObjects<'_>) -> Result<Option<String>, Error> {
    let Some(out) = &found.out else { return Ok(None) };
    match (out.what, &found.there) {
        (OffPath::Ours, AtPath::NoDirectory) => return Ok(Some(NO_DIRECTORY.into())),
        (OffPath::Ours, AtPath::From) => {
            // F13: after a power cut a file system may show it under both names. It is back: the other name goes.
            let alone = !step.was_dir() && step.from.as_ref().is_some_and(|from| from.nlink == 1);
            if let Some(spot) = out.named.as_ref().filter(|_| alone) {
                fs.unlink(spot.at())?;
            }
            return Ok(None);
        }
        (OffPath::Ours, _) => {}
        // In a copy of the store it is another object, and the only one.
        (OffPath::Other, there) if *there != AtPath::From => {
            return Ok(Some(format!("what was there before is not the object that was put into {}", out.spot)));
        }
        // Between two file systems somebody has removed it in one place or the other, and nothing tells which. If on its way, the
        // session's copy is the only one.
        _ if step.at.copied && found.is_absent() && found.home.as_ref().is_some_and(|home| home.what != OffPath::Nothing) => {
            return Ok(Some("another process removed it; the session has a copy".into()));
        }
        // Not taken, or back: any other change of the path is not ours to undo.
        _ => return Ok(None),
    }
    let (Some(target), Some(spot)) = (&found.target, &out.named) else { return Ok(None) };
    match with_rights(fs, [spot, target], || fs.place(spot.at(), target.at())) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Some(OTHER.into())),
        other => Ok(other.at("put back", step.path).map(|()| None)?),
    }
}

/// Takes back what its step made in place. What it was made of lies in the session.
fn unmake(fs: &Fs, step: &Step<'_>, found: &StepObjects<'_>) -> Result<Option<String>, Error> {
    let ready = found.ready.as_ref().and_then(|ready| ready.named.as_ref());
    let (Some(target), Some(ready)) = (&found.target, ready) else { return Ok(None) };
    // Half made, when it was interrupted.
    with_rights(fs, [ready, ready], || fs.remove_all(ready.at()))?;
    match &found.there {
        AtPath::To => {}
        AtPath::Changed(how) => return Ok(Some(how.clone())),
        AtPath::Other if step.from.is_none() => return Ok(Some("another process changed what was put there".into())),
        _ => return Ok(None),
    }
    with_rights(fs, [target, ready], || fs.take(target.at(), ready.at())).at("take back", step.path)?;
    let written = written_meanwhile(ready, step.to.as_deref())?;
    match written {
        Some(_) => fs.place(ready.at(), target.at()).at("leave", step.path)?,
        None => fs.remove_all(ready.at())?,
    }
    Ok(written)
}

/// Makes again what was removed in place: beside its path, and places it once it is as it was.
fn make_again(
    fs: &Fs,
    reach: &mut Reach,
    firsts: &mut Firsts,
    step: &Step<'_>,
    found: &StepObjects<'_>,
) -> Result<Option<String>, Error> {
    let Some(out) = &found.out else { return Ok(None) };
    let (Some(target), Some(new), Some(from)) = (&found.target, &out.named, &step.from) else {
        return Ok(Some(NO_DIRECTORY.into()));
    };
    let is_back = |firsts: &mut Firsts| {
        let home = found.home.as_ref().and_then(|home| home.named.as_ref());
        home.map_or(Ok(()), |home| firsts.know(home, step.path))
    };
    match found.there {
        AtPath::From => return is_back(firsts).map(|()| None),
        AtPath::Nothing => {}
        _ => return Ok(Some(OTHER.into())),
    }
    if step.was_dir() {
        fs.remove_all(new.at())?;
        with_rights(fs, [new, new], || fs.mkdir(new.at(), 0o700))?;
        let Some(made) = observe::object(new.at())? else { return Ok(Some(NO_DIRECTORY.into())) };
        metadata::bring(fs, new.at(), Sort::Directory, &made.state.meta, &from.state.meta)?;
    } else if out.what != OffPath::Ours {
        let home = found.home.as_ref().filter(|home| home.what != OffPath::Nothing);
        let Some(home) = home else { return Ok(Some("what was there before is no longer in the session".into())) };
        firsts.make(fs, reach, Some(home.spot), out.spot, &from.state)?;
    }
    with_rights(fs, [new, target], || fs.place(new.at(), target.at())).at("put back", step.path)?;
    is_back(firsts).map(|()| None)
}

/// Reverses what was set on an object that is where it was.
fn undo_set_meta(fs: &Fs, reach: &mut Reach, step: &Step<'_>) -> Result<Option<String>, Error> {
    let target = open(reach.path(step.path))?;
    // A new directory that is not in its place: the step that places it judges that.
    if step.at.to.is_some() && !holds(target.as_ref(), step.to.as_deref())? {
        return Ok(None);
    }
    // Nothing of what was set is there.
    target.map_or(Ok(None), |target| undo_meta(fs, &target, step))
}

/// Reverses metadata. An attribute that is neither old nor new is somebody's, but for the effects of setting another one: the owner
/// clears setuid and capabilities, the mode an ACL's mask.
fn undo_meta(fs: &Fs, target: &Named<'_>, step: &Step<'_>) -> Result<Option<String>, Error> {
    let (Some(from), Some(to)) = (&step.from, &step.to) else { return Ok(None) };
    let Some(found) = observe::object(target.at())? else { return Ok(None) };
    if !from.print.identity.is(found.print.identity) {
        return Ok(Some("another process put something else there".into()));
    }
    if let Some(why) = metadata::foreign_meta(from, to, &found) {
        return Ok(Some(why));
    }
    let (old, now) = (&from.state.meta, &found.state.meta);
    if !found.state.is_dir() {
        let mtime = if metadata::has_foreign_time(from, to, &found) { now.mtime } else { old.mtime };
        let back = Meta { mtime, ..old.clone() };
        metadata::bring(fs, target.at(), found.state.sort(), now, &back)?;
        return Ok(None);
    }
    // Names that came and went have changed its time, even where none can be set.
    let all_but_time = Meta { mtime: now.mtime, ..old.clone() };
    metadata::bring(fs, target.at(), found.state.sort(), now, &all_but_time)?;
    if now.mtime != old.mtime {
        ignore_not_mine(fs.set_mtime(target.at(), old.mtime))?;
    }
    Ok(None)
}
