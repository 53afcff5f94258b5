//! Picks of a person on a screen, as verbs take them: in place of the paths and blocks that a call names.

use super::select::Selection;
use crate::compare::{Picked, Sources, Taken};
use crate::error::{Against, Error};
use crate::fs::AbsPath;
use crate::session::{Change, Changes, Session, may_part};
use crate::verb::error;

/// Refuses picks if something else stands there than was shown.
///
/// # Errors
/// It does; each path is named with the reason.
pub fn refuse_changed(picked: &Picked, session: &Session) -> Result<(), Error> {
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let changed = picked.changed(&changes, &sides, &mut Sources::of(session)?);
    if changed.is_empty() {
        return Ok(());
    }
    let rows = changed.into_iter().map(|(path, why)| Against::new(path, why));
    Err(error::picked_anew(rows.collect()))
}

/// The picks in these changes.
///
/// # Errors
/// Something else stands there than was shown.
pub fn selection(picked: &Picked, session: &Session, changes: &Changes) -> Result<Selection, Error> {
    refuse_changed(picked, session)?;
    Ok(picked.at(changes).into_iter().collect())
}

/// True if picks to be committed become a session of their own: they are not all that is held, and the session can go on with the rest.
///
/// # Errors
/// The session cannot be read.
pub fn is_part(picked: &Picked, session: &Session, changes: &Changes) -> Result<bool, Error> {
    if is_all(picked, session, changes)? {
        return Ok(false);
    }
    Ok(may_part(&session.header) || !is_of_paths(picked, changes))
}

/// True if picks to be rolled back can be named by no paths: blocks, or a directory without all that lies below it.
pub fn is_in_blocks(picked: &Picked, changes: &Changes) -> bool {
    !is_of_paths(picked, changes)
}

/// The paths that name the picks; none if they are all that is held.
///
/// # Errors
/// The session cannot be read.
pub fn paths(picked: &Picked, session: &Session, changes: &Changes) -> Result<Vec<AbsPath>, Error> {
    let all = is_all(picked, session, changes)?;
    Ok(if all { Vec::new() } else { picked.0.iter().map(|pick| pick.path.clone()).collect() })
}

/// True if all that is held is picked whole.
fn is_all(picked: &Picked, session: &Session, changes: &Changes) -> Result<bool, Error> {
    let out = session.sides(changes.list.len())?.iter().filter(|side| !side.is_in()).count();
    let whole = picked.0.iter().filter(|pick| pick.taken == Taken::Whole).count();
    Ok(whole == out && whole == picked.0.len())
}

/// True if all picks are whole, and all that lies below one is picked too.
fn is_of_paths(picked: &Picked, changes: &Changes) -> bool {
    let is_whole = picked.0.iter().all(|pick| pick.taken == Taken::Whole);
    let has = |path: &AbsPath| picked.0.binary_search_by(|pick| pick.path.cmp(path)).is_ok();
    is_whole && picked.0.iter().all(|pick| changes.list[changes.under(&pick.path)].iter().all(|change| has(&change.path)))
}

/// Refuses to act on a directory without all that lies below it, where an act takes paths: what lies below would go along.
///
/// # Errors
/// Something below what is picked is not picked.
pub fn refuse_open(changes: &[Change], parts: &[(usize, Taken)]) -> Result<(), Error> {
    let is_picked = |i: usize| parts.binary_search_by_key(&i, |(i, _)| *i).is_ok();
    for (i, _) in parts {
        let path = &changes[*i].path;
        let below = (i + 1..changes.len()).take_while(|k| changes[*k].path.is_under(path)).find(|k| !is_picked(*k));
        if let Some(below) = below {
            return Err(error::would_go_along(path, &changes[below].path));
        }
    }
    Ok(())
}
