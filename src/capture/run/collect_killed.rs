//! Collects the run of a session whose recant was killed.

use super::keep_changes::{StepsBelow, facts, forget, keep, keep_before, keep_first};
use crate::capture::collect::cut_off_rename::put_all_back;
use crate::capture::collect::facts::full_path;
use crate::capture::collect::{Collected, clear, collect};
use crate::capture::error::uncollected;
use crate::capture::layers::merge_many::leave_out;
use crate::capture::layers::sealed_uppers::Sealed;
use crate::capture::place::layout::{Route, directory};
use crate::error::Error;
use crate::fs::{Dir, Fs};
use crate::session::{Locked, Net, Run, Session, Store, part};

/// Collects the run of a session whose recant was killed; the caller holds its lock, so nothing of the run is left. A run of another boot
/// may have lost content: the session is marked. Returns the number of changes.
pub fn collect_killed(fs: &Fs, store: &Store, session: &mut Locked) -> Result<u64, Error> {
    let collected = collect_recorded(fs, store, session).and_then(|changes| session.forget_beside(fs).map(|()| changes));
    collected.map_err(|why| uncollected(session.id(), None, false, &why))
}

fn collect_recorded(fs: &Fs, store: &Store, session: &mut Locked) -> Result<u64, Error> {
    let held = part(&session.dir, b"held")?;
    if session.is_going_on()? {
        return collect_going_on(fs, store, session, &held);
    }
    let Some(mut record) = session.run()? else {
        // recant was killed before the command could start; or the power failed, and the record was lost.
        let at = session.dir.at(b"run.json");
        if at.stat()?.is_some() {
            fs.rename_over(at, session.dir.at(LOST))?;
        }
        // Set aside now, or before this was cut off last time.
        let is_lost = session.dir.at(LOST).stat()?.is_some();
        return keep_nothing(fs, session, is_lost);
    };
    if record.was_carried() {
        return keep_carried(fs, session, &record);
    }
    // The power may have taken the directory with all that was in it.
    directory(fs, held.at(b"upper"))?;
    let unsynced = record.may_lack();
    let collected = collected(fs, store, session, &held, (&mut record, &Net::empty(), &Sealed::default()))?;
    let own = collected.composed.added.own;
    keep_first(fs, session, &record, &own, unsynced)?;
    if session.header.uncollected { keep_nothing(fs, session, unsynced) } else { Ok(session.header.counts.changes) }
}

/// Collects a command that went on in the session. If a power cut took its record, the session stands at its last step.
fn collect_going_on(fs: &Fs, store: &Store, session: &mut Locked, held: &Dir) -> Result<u64, Error> {
    match session.going_on()? {
        Some(mut record) => {
            let earlier = session.run()?;
            record.keep_of(earlier.as_ref());
            collect_into(fs, store, session, held, &mut record)?;
        }
        None => {
            if let Some(record) = session.run()? {
                forget(fs, session, held, &record)?;
            }
        }
    }
    session.end_going_on(fs)?;
    Ok(session.header.counts.changes)
}

fn collect_into(fs: &Fs, store: &Store, session: &mut Locked, held: &Dir, record: &mut Run) -> Result<(), Error> {
    let unsynced = record.may_lack();
    let net = Net::open(session)?;
    let mut sealed = Sealed::of(held, session, session.header.chain())?;
    // Another boot's blocks are gone.
    leave_out(fs, held, (Route::of(record.uid), &record.places), &mut sealed, session)?;
    let collected = collected(fs, store, session, held, (record, &net, &sealed))?;
    keep(fs, session, held, record, &collected, unsynced)
}

/// Collects what a killed recant left as a step over others.
fn collected(
    fs: &Fs,
    store: &Store,
    session: &Session,
    held: &Dir,
    (record, net, sealed): (&mut Run, &Net, &Sealed),
) -> Result<Collected, Error> {
    let mut collected = {
        let step = if session.is_going_on()? { session.header.next_step() } else { 1 };
        let left = end_renames(fs, held, record, step)?;
        let facts = facts(held, record, store, session, StepsBelow { net, sealed, step })?;
        let mut collected = collect(&facts, fs)?;
        clear(fs, &facts, &collected)?;
        collected.warnings.extend(left);
        collected
    };
    keep_before(fs, session, record, &mut collected)?;
    record.beside = session.beside()?;
    record.note(&collected.warnings);
    Ok(collected)
}

/// Puts back what renames of directories that were under way were to move. A sentence for each that cannot be put back whole.
fn end_renames(fs: &Fs, held: &Dir, record: &Run, step: u32) -> Result<Vec<String>, Error> {
    let mut left = Vec::new();
    if Route::of(record.uid) == Route::Root {
        return Ok(left);
    }
    let uppers = held.at(b"upper").open_dir()?;
    for place in record.places.iter().filter(|place| place.file.is_none()) {
        let name = place.upper_name(step);
        if uppers.at(&name).stat()?.is_some() {
            for below in put_all_back(fs, &uppers.at(&name).open_dir()?)? {
                left.push(format!("{}: files of a directory that was being renamed", full_path(&place.path, &below)?));
            }
        }
    }
    Ok(left)
}

/// Keeps a run in memory whose recant, or machine, was stopped right before the header got its name: the session has what the uppers held;
/// the uppers are gone.
fn keep_carried(fs: &Fs, session: &mut Locked, record: &Run) -> Result<u64, Error> {
    let at = session.dir.at(b"changes.jsonl");
    if at.stat()?.is_none() {
        let why = "it is missing; the content of the run is in held/objects";
        return Err(crate::session::damaged(at, why));
    }
    let changes = session.changes_as_written()?;
    keep_first(fs, session, record, &changes, false)?;
    Ok(changes.list.len() as u64)
}

/// The name under which an unreadable record is set aside.
const LOST: &[u8] = b"run.json.lost";

fn keep_nothing(fs: &Fs, session: &mut Locked, unsynced: bool) -> Result<u64, Error> {
    session.complete(fs)?;
    let mut header = session.header.clone();
    header.uncollected = false;
    header.unsynced |= unsynced;
    session.save(fs, header)?;
    Ok(0)
}
