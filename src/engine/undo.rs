//! Undo: the steps of a journal taken back, last first. Where each object lies tells what was done; undoing twice is
//! harmless. What somebody else has put or changed meanwhile is left alone and named (I8).

use super::durable::sync_touched;
use super::item::Turn;
use super::journal::Journal;
use super::reach::{Named, Reach, open};
use super::report::Left;
use super::rights::with_rights;
use super::step::{Act, Spot, Step};
use super::times::{ignore_not_mine, restore_times};
use super::{Error, facts, meta};
use crate::checkpoint::manifest::Former;
use crate::error::{At, IoError};
use crate::fs::Fs;
use crate::fs::dir::{Sort, Stat};
use crate::fs::lease::{Writers, writers};
use crate::session::store::Session;
use crate::tree::look::{self, Seen};
use crate::tree::state::{Meta, What};

/// Takes back, durably, the first `begun` steps of an operation, in the folders that `reach` has. Gives what has to stay, in the order of the
/// steps: what Prepare made for it is there still, as the journal is.
pub(super) fn undo(
    fs: &Fs,
    session: &Session,
    reach: &mut Reach,
    journal: &Journal,
    begun: usize,
) -> Result<Vec<(Turn, Left)>, Error> {
    let (mut left, mut taken) = (Vec::new(), Vec::new());
    meta::open_again(fs, reach, journal, begun)?;
    for turn in journal.turns.iter().take(begun).rev() {
        let step = journal.step(*turn);
        if reach.roots.is_lost(step.path) {
            continue;
        }
        let fresh = matches!(turn, Turn::Move(i) if journal.items[*i as usize].fresh);
        let why = match taken.iter().find(|folder| step.path.is_under(folder)) {
            // It lay in the folder that was there before, not in one that somebody has made since.
            Some(folder) => Some(format!("{folder}, in which it lay, is not back; what was there before is kept")),
            None => undo_step(fs, reach, fresh, &step)?,
        };
        if let Some(why) = why {
            taken.extend((step.act != Act::SetMeta && step.was_folder()).then(|| step.path.clone()));
            left.push((*turn, Left { path: step.path.clone(), why }));
        }
    }
    left.reverse();
    restore_times(fs, reach, journal)?;
    // The next manifest gets its name beside the header's, and after a cut may have it alone.
    let checkpoint = facts::folder(session)?;
    Former::new(fs, &checkpoint, journal.head.generation).put_back()?;
    sync_touched(fs, reach, journal, &[])?;
    Ok(left)
}

/// Takes one step back; gives the reason where it must be left.
fn undo_step(fs: &Fs, reach: &mut Reach, fresh: bool, step: &Step<'_>) -> Result<Option<String>, Error> {
    let target = open(reach.path(step.path), "open the folder of", step.path)?;
    if step.act == Act::SetMeta {
        // A new folder that is not in its place: the step that places it tells whether that is as it should be.
        if step.at.to.is_some() && !holds(target.as_ref(), step.to.as_deref())? {
            return Ok(None);
        }
        return match target {
            Some(target) => undo_meta(fs, &target, step),
            // Nothing of what was set is there.
            None => Ok(None),
        };
    }
    if let Some(why) = bring_out(fs, reach, step, target.as_ref())? {
        return Ok(Some(why));
    }
    let undone = match step.act {
        Act::Place => undo_place(fs, reach, fresh, step, target)?,
        Act::Replace => undo_replace(fs, reach, step, target.as_ref())?,
        _ => undo_remove(fs, reach, step, target.as_ref())?,
    };
    if step.was_folder() || step.to.as_ref().is_some_and(|to| to.state.is_folder()) {
        reach.forget(step.path);
    }
    Ok(undone)
}

/// What had gone to its home comes back to where it came out, from where its path takes it.
fn bring_out(fs: &Fs, reach: &mut Reach, step: &Step<'_>, target: Option<&Named<'_>>) -> Result<Option<String>, Error> {
    let (Some(home_at), Some(out_at)) = (step.at.put_away(), &step.at.out) else { return Ok(None) };
    let home = open(reach.spot(home_at), "open the folder of", home_at)?;
    let Some(home) = home else { return Ok(None) };
    if !holds(Some(&home), step.from.as_deref())? {
        return Ok(None);
    }
    let Some(out) = open(reach.spot(out_at), "open the folder of", out_at)? else { return Ok(Some(NO_FOLDER.into())) };
    if holds(Some(&out), step.from.as_deref())? || holds(target, step.from.as_deref())? {
        // F13: after a cut a file system may show it under both names. The one at home is of no use any more.
        if !step.was_folder() {
            fs.unlink(home.at()).at("remove", home.at())?;
        }
        return Ok(None);
    }
    match with_rights(fs, [&home, &out], || fs.place(home.at(), out.at())) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Ok(Some(format!("what was there before is kept as {home_at}, as something else lies in its way")))
        }
        moved => Ok(moved.at("take back", home_at).map(|()| None)?),
    }
}

fn undo_place(
    fs: &Fs,
    reach: &mut Reach,
    fresh: bool,
    step: &Step<'_>,
    target: Option<Named<'_>>,
) -> Result<Option<String>, Error> {
    let Some(to_at) = &step.at.to else { return Ok(None) };
    let spot = open(reach.spot(to_at), "open the folder of", to_at)?;
    if let (Some(target), Some(spot)) = (&target, &spot)
        && is_one_file(target, spot)?
    {
        // F13: after a cut a file system may show it under both names. The path was free: the name there is ours, and goes.
        return match whose(target, step.to.as_deref())? {
            Whose::Ours => Ok(fs.unlink(target.at()).at("take back", step.path).map(|()| None)?),
            Whose::Changed(how) => Ok(Some(how)),
            // Without a birth time it is told by its content, too.
            Whose::Foreign => Ok(Some("somebody changed what was put there".into())),
        };
    }
    if holds(spot.as_ref(), step.to.as_deref())? {
        return Ok(None);
    }
    let is_out = !fresh && spot.as_ref().map(|spot| spot.at().stat().at("look at", to_at)).transpose()?.flatten().is_some();
    if is_out && !holds(target.as_ref(), step.to.as_deref())? {
        // In a copy of the store it is another object. It was not put, or there would be none.
        return Ok(None);
    }
    // What Prepare made is removed once it is taken back: an undo that was cut off after that finds it nowhere.
    let gone = (!fresh).then(|| "what was put there is gone".to_owned());
    let (Some(target), Some(spot)) = (target, spot) else { return Ok(gone) };
    match whose(&target, step.to.as_deref())? {
        Whose::Ours => with_rights(fs, [&target, &spot], || fs.take(target.at(), spot.at())).at("take back", step.path)?,
        Whose::Changed(how) => return Ok(Some(how)),
        Whose::Foreign => return Ok(gone),
    }
    let written = written_meanwhile(&spot, step.to.as_deref())?;
    if written.is_some() {
        fs.place(spot.at(), target.at()).at("leave", step.path)?;
    }
    Ok(written)
}

const NO_FOLDER: &str = "the folder that it lay in is not there any more";

fn undo_replace(fs: &Fs, reach: &mut Reach, step: &Step<'_>, target: Option<&Named<'_>>) -> Result<Option<String>, Error> {
    let Some(to_at) = &step.at.to else { return Ok(None) };
    let spot = open(reach.spot(to_at), "open the folder of", to_at)?;
    if holds(target, step.from.as_deref())? {
        return Ok(None);
    }
    if !holds(spot.as_ref(), step.from.as_deref())? {
        // Not exchanged, or back: what became of the path apart from that is not ours to undo.
        let ready = holds(spot.as_ref(), step.to.as_deref())?;
        return Ok((!ready).then(|| "what was there before is not where it was put".into()));
    }
    let Some(spot) = spot else { return Ok(Some("what was put there is gone".into())) };
    let Some(target) = target else { return Ok(Some(NO_FOLDER.into())) };
    match whose(target, step.to.as_deref())? {
        Whose::Ours => with_rights(fs, [&spot, target], || fs.exchange(spot.at(), target.at())).at("take back", step.path)?,
        Whose::Changed(how) => return Ok(Some(how)),
        Whose::Foreign if target.at().stat().at("look at", step.path)?.is_none() => {
            return Ok(Some("somebody removed what was put there; what was there before is kept".into()));
        }
        Whose::Foreign => return Ok(Some("somebody put something else there; what was there before is kept".into())),
    }
    let written = written_meanwhile(&spot, step.to.as_deref())?;
    if written.is_some() {
        fs.exchange(spot.at(), target.at()).at("leave", step.path)?;
    }
    Ok(written)
}

/// How what has just come off its path was met there by somebody: as with what goes onto the tree, the race between look and act is closed
/// by the act. Content of the session that was written to meanwhile would be taken for damaged later, and whose bytes they are be told by
/// nothing.
pub(super) fn written_meanwhile(off: &Named<'_>, ours: Option<&Seen>) -> Result<Option<String>, Error> {
    match whose(off, ours)? {
        Whose::Ours => {}
        Whose::Changed(how) => return Ok(Some(how)),
        Whose::Foreign => return Ok(Some("somebody put something else there; what was there before is kept".into())),
    }
    if ours.is_none_or(|ours| !matches!(ours.state.what, What::File { .. })) {
        return Ok(None);
    }
    Ok(is_open_for_writing(off)?.then(|| "a process has what was put there open for writing".into()))
}

/// Whether somebody has a file open for writing, as far as it can be told.
pub(super) fn is_open_for_writing(file: &Named<'_>) -> Result<bool, Error> {
    match file.at().open_file() {
        // One that may not be read cannot be asked.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(false),
        opened => Ok(writers(&opened.at("open", file.at())?).at("ask for a lease on", file.at())? == Writers::Some),
    }
}

fn undo_remove(fs: &Fs, reach: &mut Reach, step: &Step<'_>, target: Option<&Named<'_>>) -> Result<Option<String>, Error> {
    let Some(out) = &step.at.out else { return Ok(None) };
    if step.again {
        return make_again(fs, reach, step, out, target);
    }
    let spot = open(reach.spot(out), "open the folder of", out)?;
    if !holds(spot.as_ref(), step.from.as_deref())? {
        // In a copy of the store it is another object, which is all that there is of it. Otherwise it was not taken, or is back: what became
        // of the path apart from that is not ours to undo.
        let lies = spot.map(|spot| spot.at().stat().at("look at", out)).transpose()?.flatten().is_some();
        let lost = lies && !holds(target, step.from.as_deref())?;
        if lost {
            return Ok(Some(format!("what was there before is not the object that was put into {out}")));
        }
        return copy_alone(reach, step, target);
    }
    let Some(spot) = spot else { return Ok(None) };
    let Some(target) = target else { return Ok(Some(NO_FOLDER.into())) };
    if holds(Some(target), step.from.as_deref())? {
        // F13: after a cut a file system may show it under both names. It is back: the other name goes.
        let folder = step.was_folder();
        if !folder && step.from.as_ref().is_some_and(|from| from.nlink == 1) {
            fs.unlink(spot.at()).at("remove", spot.at())?;
        }
        return Ok(None);
    }
    match with_rights(fs, [&spot, target], || fs.place(spot.at(), target.at())) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Ok(Some("somebody put something else there; what was there before is kept".into()))
        }
        other => Ok(other.at("put back", step.path).map(|()| None)?),
    }
}

/// A folder that was removed where it was: it is made beside its path, and placed when it is as it was.
fn make_again(
    fs: &Fs,
    reach: &mut Reach,
    step: &Step<'_>,
    out: &Spot,
    target: Option<&Named<'_>>,
) -> Result<Option<String>, Error> {
    let (Some(target), Some(from)) = (target, &step.from) else { return Ok(Some(NO_FOLDER.into())) };
    match target.at().stat().at("look at", step.path)? {
        Some(stat) if stat.sort == Sort::Folder => return Ok(None),
        Some(_) => return Ok(Some("somebody put something else there; what was there before is kept".into())),
        None => {}
    }
    let new = reach.spot(out).at("open the folder of", out)?;
    fs.remove_all(new.at()).at("remove", out)?;
    with_rights(fs, [&new, &new], || fs.mkdir(new.at(), 0o700)).at("make", out)?;
    let Some(made) = look::look(new.at()).at("look at", out)? else { return Ok(Some(NO_FOLDER.into())) };
    meta::bring(fs, new.at(), Sort::Folder, &made.state.meta, &from.state.meta).at("set the metadata of", out)?;
    let put = with_rights(fs, [&new, target], || fs.place(new.at(), target.at())).at("put back", step.path);
    reach.forget(step.path);
    Ok(put.map(|()| None)?)
}

/// Neither at its path nor where it came out, between two file systems: somebody has removed it in the one place or the other, and which one
/// nothing tells. Of what was removed on its way, the session's copy is all that there is.
fn copy_alone(reach: &mut Reach, step: &Step<'_>, target: Option<&Named<'_>>) -> Result<Option<String>, Error> {
    let (true, Some(home_at)) = (step.at.copied, &step.at.home) else { return Ok(None) };
    let at_path = target.map(|target| target.at().stat()).transpose().at("look at", step.path)?.flatten();
    let Some(home) = open(reach.spot(home_at), "open the folder of", home_at)?.filter(|_| at_path.is_none()) else {
        return Ok(None);
    };
    let copy = home.at().stat().at("look at", home_at)?;
    Ok(copy.map(|_| "somebody removed it, at its path or on its way from there; the session has a copy".into()))
}

/// Whether two names are of one object, which is no folder.
pub(super) fn is_one_file(one: &Named<'_>, other: &Named<'_>) -> Result<bool, IoError> {
    let (one, other) = (one.at().stat().at("look at", one.at())?, other.at().stat().at("look at", other.at())?);
    Ok(matches!((one, other), (Some(one), Some(other)) if one.sort != Sort::Folder && one.inode() == other.inode()))
}

/// Whether that object lies there.
pub(super) fn holds(named: Option<&Named<'_>>, object: Option<&Seen>) -> Result<bool, IoError> {
    let (Some(named), Some(object)) = (named, object) else { return Ok(false) };
    let stat = named.at().stat().at("look at", named.at())?;
    let is_it = |stat: &Stat| object.print.identity.is(look::identity(stat)) && stat.sort == object.state.sort();
    let Some(stat) = stat.filter(is_it) else { return Ok(false) };
    // An inode without a birth time may have been used again, and one that is told by what it holds tells nothing: the content must agree too.
    let identity = object.print.identity;
    match (identity.btime.filter(|_| !identity.loose), &object.state.what) {
        (None, What::File { digest: Some(digest), size, .. }) => {
            Ok(stat.size == *size && look::digest(named.at()).at("read", named.at())?.0 == *digest)
        }
        (None, What::File { size, .. }) if identity.loose => Ok(stat.size == *size && stat.mtime == object.state.meta.mtime),
        (None, what) if identity.loose && !object.state.is_folder() => {
            Ok(look::look(named.at()).at("look at", named.at())?.is_some_and(|found| found.state.what == *what))
        }
        _ => Ok(true),
    }
}

pub(super) enum Whose {
    Ours,
    Changed(String),
    Foreign,
}

/// Whether what lies at the target is what was put there, untouched: its content is read, as nothing else tells of a write that kept size
/// and time, and the ctime that it had right after it was put is known to nobody who recovers.
pub(super) fn whose(target: &Named<'_>, ours: Option<&Seen>) -> Result<Whose, IoError> {
    let Some(ours) = ours else { return Ok(Whose::Foreign) };
    if !holds(Some(target), Some(ours))? {
        return Ok(Whose::Foreign);
    }
    let Some(found) = look::look(target.at()).at("look at", target.at())? else { return Ok(Whose::Foreign) };
    let changed = || Ok(Whose::Changed("somebody changed what was put there".into()));
    let (meta, now) = (&ours.state.meta, &found.state.meta);
    if ours.state.is_folder() {
        let dir = target.at().open_dir().at("open the folder", target.at())?;
        if !dir.is_empty().at("list the folder", target.at())? {
            return Ok(Whose::Changed("somebody put something into the folder".into()));
        }
        return if now.xattrs == meta.xattrs { Ok(Whose::Ours) } else { changed() };
    }
    if found.state.size() != ours.state.size() || now.mtime != meta.mtime || ours.state.meta_difference(&found.state).is_some() {
        return changed();
    }
    let Some(digest) = ours.state.digest() else { return Ok(Whose::Ours) };
    match look::digest(target.at()) {
        Ok((found, _)) if found == digest => Ok(Whose::Ours),
        // One that may not be read cannot be asked.
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(Whose::Ours),
        // Whether it is untouched cannot be told, and nothing is decided by that.
        Err(error) if error.raw_os_error().is_some() => Err(error).at("read", target.at()),
        // It changes while it is read, or has just become something else.
        Ok(_) | Err(_) => changed(),
    }
}

/// Each attribute is compared with old and new; a third value is foreign, but for what setting another one leaves: owner
/// clears setuid and capabilities, mode the mask of an ACL.
fn undo_meta(fs: &Fs, target: &Named<'_>, step: &Step<'_>) -> Result<Option<String>, Error> {
    let (Some(from), Some(to)) = (&step.from, &step.to) else { return Ok(None) };
    let Some(found) = look::look(target.at()).at("look at", step.path)? else { return Ok(None) };
    if !from.print.identity.is(found.print.identity) {
        return Ok(Some("somebody put something else there".into()));
    }
    if let Some(why) = meta::foreign_meta(from, to, &found) {
        return Ok(Some(why));
    }
    let (old, now) = (&from.state.meta, &found.state.meta);
    if !found.state.is_folder() {
        let mtime = if meta::has_foreign_time(from, to, &found) { now.mtime } else { old.mtime };
        let back = Meta { mtime, ..old.clone() };
        meta::bring(fs, target.at(), found.state.sort(), now, &back).at("set the metadata of", step.path)?;
        return Ok(None);
    }
    // Names that came and went have changed its time, also where none can be set.
    let all_but_time = Meta { mtime: now.mtime, ..old.clone() };
    meta::bring(fs, target.at(), found.state.sort(), now, &all_but_time).at("set the metadata of", step.path)?;
    if now.mtime != old.mtime {
        ignore_not_mine(fs.set_mtime(target.at(), old.mtime)).at("set the time of", step.path)?;
    }
    Ok(None)
}
