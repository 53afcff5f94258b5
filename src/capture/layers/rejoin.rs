//! A part that was rolled back joins the session that it left again, if that has not gone on since: it is as it was before.
//!
//! The session gets copies: the part keeps what a redo of it puts, and that may have no other name in the store.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::merge_uppers::copy;
use crate::error::{Error, Kind, command};
use crate::fs::{AbsPath, Fs, Inode, Sort};
use crate::session::{
    Before, Change, Id, Locked, Opener, Origin, Parting, RemainingBlocks, Session, Side, Staging, Status, Store, may_part,
    not_now, object_name, with_own_rights,
};
use crate::tree::State;

/// The fate of the session that a part left, once the part is rolled back.
#[derive(Debug)]
pub enum Rest {
    /// There is none that could hold it again.
    None,
    /// It holds it again: so many changes in all.
    Joined(u64),
    /// It went on without it, or cannot be changed now.
    GoesOn(Option<Error>),
    /// It was not told yet of what left it again: the next lock tells it.
    Untold(Error),
}

/// Carries out an act on a session that may be a part of another one, both or neither (I24): what is redone leaves that one again, and what is
/// rolled back joins it again. `inward`: the act is a commit or redo; `paths`: of these changes, all if there are none.
///
/// # Errors
/// Those of `act`; the other session is in use; a system call failed.
pub fn around<T, E: From<Error>>(
    fs: &Fs,
    store: &Store,
    part: &mut Locked,
    (inward, paths): (bool, &[AbsPath]),
    act: impl FnOnce(&mut Locked) -> Result<T, E>,
) -> Result<(T, Rest), E> {
    let Some(of) = part.header.of.clone() else { return act(part).map(|done| (done, Rest::None)) };
    if !inward {
        let done = act(part)?;
        return Ok((done, rejoined(fs, store, &of, part)));
    }
    let Some(mut rest) = left_again(fs, store, &of, part, paths)? else { return act(part).map(|done| (done, Rest::None)) };
    let done = act(part);
    // If it failed, whether it is done is told by the journal; else by the header.
    let settled = rest.settle_parting(fs, store);
    Ok((done?, settled.err().map_or(Rest::None, Rest::Untold)))
}

/// The error if the part has not all that it took: somebody had changed some of it before the rollback.
fn lost(part: &Session) -> Result<Option<Error>, Error> {
    let sides = part.sides_of_all()?;
    let mut changes = part.read_changes()?;
    for side in sides {
        let Some(change) = changes.next()? else { break };
        if side == Side::Lost {
            let why = "what it held there is lost: it was changed on the tree";
            return Ok(Some(Error::at(Kind::Refused, &change.path, why)));
        }
    }
    Ok(None)
}

fn rejoined(fs: &Fs, store: &Store, of: &Id, part: &Session) -> Rest {
    if part.header.status() != Status::RolledBack {
        return Rest::None;
    }
    match lost(part) {
        Ok(None) => {}
        Ok(Some(why)) | Err(why) => return Rest::GoesOn(Some(why)),
    }
    let joined = store.lock_session(fs, of).and_then(|mut rest| {
        // A full disk may have kept it from leaving.
        let has_left = rest.header.origin == Origin::Staged || rest.steps()?.split_of(part.id()).is_some();
        if has_left && rest.header.may_reopen() {
            // It was committed since, and that was undone.
            rest.reopen(fs)?;
        }
        if !may_part(&rest.header) || !has_left {
            return Ok(None);
        }
        let is_back = match rest.header.origin {
            Origin::Staged => restage(fs, store, &mut rest, part)?,
            Origin::Captured => rejoin(fs, &mut rest, part)?,
        };
        Ok(Some((is_back, rest.header.counts.changes)))
    });
    match joined {
        Ok(Some((true, changes))) => Rest::Joined(changes),
        Ok(Some((false, _))) => Rest::GoesOn(None),
        Ok(None) => Rest::None,
        Err(error) if error.is_unknown() => Rest::None,
        Err(error) => Rest::GoesOn(Some(error)),
    }
}

/// Notes, before a part is redone, what leaves the session that holds it again; `None` if nothing does.
fn left_again(fs: &Fs, store: &Store, of: &Id, part: &Session, paths: &[AbsPath]) -> Result<Option<Locked>, Error> {
    // Who has gone on, or is gone, stands in nobody's way.
    if !store.session(of).and_then(|rest| leaving(&rest, part)).is_ok_and(|parting| parting.is_some()) {
        return Ok(None);
    }
    if !paths.is_empty() {
        let why = format!("session {} holds it again: it leaves that as a whole", of.tail());
        let whole = command(format_args!("redo {}", part.id().tail()));
        return Err(not_now(part.id(), why).with_remedy(whole));
    }
    let rest = store.lock_session(fs, of)?;
    let Some(parting) = leaving(&rest, part)? else { return Ok(None) };
    store.note_parting(fs, of, &parting)?;
    Ok(Some(rest))
}

/// Has the steps of a session hold again what `part` took at a later one. A session that stands at that one stands before it then. False if it
/// goes on without. After an error it is as it was.
fn rejoin(fs: &Fs, session: &mut Locked, part: &Session) -> Result<bool, Error> {
    let mut list = session.steps()?;
    let split = list.split_of(part.id()).filter(|(_, is_back)| !is_back).map(|(step, _)| (step.n, step.on));
    let Some(((n, on), run)) = split.zip(session.run()?) else { return Ok(false) };
    let head = session.header.head();
    let stands = if head == n { on } else { head };
    list.join(n);
    let then = list.net(session, on)?;
    // They show the session without it.
    session.remove_blocks(fs)?;
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let (mut held, mut made) = (0, HashMap::<Inode, Vec<u8>>::new());
    let left: HashSet<&AbsPath> = list.left_of(n).iter().collect();
    let (mut objects, mut uppers) = (Opener::new(part), Opener::new(session));
    for change in part.changes()?.list.iter().filter(|change| left.contains(&change.path)) {
        let Some(known) = then.at(&change.path) else { continue };
        let Some(to) = Session::held_at(known, Side::Never, Some(&run)) else { continue };
        let from = object_name(change.n);
        let (at, place) = (objects.at(&from)?, uppers.at(&to)?);
        // A directory is there still.
        let Some(stat) = at.stat()?.filter(|stat| stat.sort != Sort::Directory) else { continue };
        let mtime = place.dir.stat()?.mtime;
        with_own_rights(fs, place.dir, || {
            fs.remove_all(place)?;
            match stat.shared().and_then(|inode| made.get(&inode)) {
                Some(first) => Ok(fs.link(Opener::new(session).at(first)?, place)?),
                None => copy(fs, own, (at, &stat), place),
            }
        })?;
        fs.set_mtime(place.dir.at(b"."), mtime)?;
        held += known.after.as_ref().map_or(0, State::size);
        if let Some(inode) = stat.shared() {
            made.insert(inode, to);
        }
    }
    // A directory that came with them has its look, once nothing comes into it any more.
    for known in then.list.iter().rev().filter(|known| left.contains(&known.path)) {
        let Some(after) = known.after.as_ref().filter(|after| after.is_dir()) else { continue };
        let Some(place) = Session::held_at(known, Side::Never, Some(&run)) else { continue };
        let at = uppers.at(&place)?;
        if at.stat()?.is_some_and(|stat| stat.sort == Sort::Directory) {
            fs.set_mode(at, after.meta.mode)?;
            fs.set_mtime(at, after.meta.mtime)?;
        }
    }
    session.belongs_to_another_act();
    session.rejoin(fs, &list, (n, stands), (&part.changes()?, held))?;
    let now = session.changes()?;
    Ok(!list.chain(stands).contains(&n) && left.iter().all(|path| now.at(path).is_some()))
}

/// Has a session staged by hand hold again what `part` took. False if something else was staged there since: that stays. After an error it is as
/// it was.
fn restage(fs: &Fs, store: &Store, session: &mut Locked, part: &Session) -> Result<bool, Error> {
    let now = session.changes()?;
    session.belongs_to_another_act();
    let mut desk = Staging::open(fs, store, session, false)?;
    let mut is_whole = true;
    for change in part.changes()?.list {
        let before = Before { object: change.before.object.clone(), print: None };
        let staged = match now.at(&change.path) {
            None => stage_again(&mut desk, part, &Change { before, ..change }),
            // Some blocks of it had stayed.
            Some(rest) if rest.before.object == change.after => desk.choose(&change.path, (before, rest.after.clone()), None),
            Some(rest) => {
                is_whole &= rest.before.object == change.before.object && rest.after == change.after;
                Ok(())
            }
        };
        if let Err(error) = staged {
            desk.give_up();
            return Err(error);
        }
    }
    desk.finish().map(|_left_for_the_next_staging| is_whole)
}

fn stage_again(desk: &mut Staging<'_>, part: &Session, change: &Change) -> Result<(), Error> {
    let name = object_name(change.n);
    let (objects, name) = part.split(&name)?;
    let at = objects.at(name);
    let mut content = match at.stat()?.is_some_and(|stat| stat.sort == Sort::File) {
        true => Some(at.open_file()?),
        false => None,
    };
    let content = content.as_mut().map(|file| file as &mut dyn Read);
    desk.take(change, change.after.clone(), content).map(drop)
}

/// The record of what leaves a session again with a part that is redone; `None` if that was not rolled back since it left.
fn leaving(session: &Session, part: &Session) -> Result<Option<Parting>, Error> {
    if !may_part(&session.header) {
        return Ok(None);
    }
    if session.header.origin == Origin::Staged {
        return unstaging(session, part);
    }
    let list = session.steps()?;
    let Some((split, true)) = list.split_of(part.id()) else { return Ok(None) };
    let (now, then) = (session.changes()?, list.net(session, split.on)?);
    let left: Vec<AbsPath> = list.left_of(split.n).to_vec();
    let mut stays = Vec::new();
    for change in part.changes()?.list.into_iter().filter(|change| left.binary_search(&change.path).is_err()) {
        // If it has not been changed since.
        if let Some(known) = now.at(&change.path).filter(|known| then.at(&change.path) == Some(known)) {
            stays.push(RemainingBlocks { path: change.path, before: change.after, after: known.after.clone() });
        }
    }
    let words = split.command.argv.clone();
    Ok(Some(Parting { part: part.id().clone(), lines: session.header.lines, words, left, stays }))
}

/// The record of what leaves a session staged by hand; `None` if it holds nothing of the part.
fn unstaging(session: &Session, part: &Session) -> Result<Option<Parting>, Error> {
    let now = session.changes()?;
    let (mut left, mut stays) = (Vec::new(), Vec::new());
    for change in part.changes()?.list {
        match now.at(&change.path).filter(|known| known.before.object == change.before.object) {
            Some(known) if known.after == change.after => left.push(change.path),
            Some(known) => stays.push(RemainingBlocks { path: change.path, before: change.after, after: known.after.clone() }),
            None => {}
        }
    }
    if left.is_empty() && stays.is_empty() {
        return Ok(None);
    }
    Ok(Some(Parting { part: part.id().clone(), lines: session.header.lines, words: Vec::new(), left, stays }))
}
