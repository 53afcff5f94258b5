//! Finds the session that a word means. `last`: that of the newest act in this project. A name: the newest session of this project that got
//! it, or the only one that has it. No word reaches further back because a verb cannot act on what it means. A verb that only reads takes
//! the store's newest if this project has none.

use super::killed_run;
use super::scope::Scope;
use super::scope::begun_in;
use super::wanted_act::Want;
use crate::error::{Error, Kind, Reason};
use crate::fs::AbsPath;
use crate::session::{Header, Id, Named, Store};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::error::{does_not_fit, none_here, which_of};
use crate::verb::fact::Fact;
use crate::verb::question::Question;

/// The session that `key` means. Says which session `last` is, where the result does not, and which one a name is if it is another project's.
///
/// Errors: `key` means nothing; the verb cannot act on `last`, or somebody else acted on it; no session of this project; several elsewhere.
pub fn find(desk: &Desk, store: &Store, key: &str, want: Want) -> Result<Id, Error> {
    let id = find_to_look(desk, store, key, want)?;
    if key == "last" {
        ask_of_others(desk, store, want, &store.session(&id)?.header)?;
    }
    Ok(id)
}

/// As [`find`], for a verb that only says what it would do.
pub fn find_to_look(desk: &Desk, store: &Store, key: &str, want: Want) -> Result<Id, Error> {
    if let Some((of, _)) = at_step(key) {
        let id = find_to_look(desk, store, of, want)?;
        return refuse_gone_on(key, &store.session(&id)?.header).map(|()| id);
    }
    if key != "last" {
        return match store.look_up(key).map_err(|error| or_pending_here(desk, store, error))? {
            Named::Id(id) => Ok(id),
            Named::Name(all) => called(desk, store, key, want, &all),
        };
    }
    let (id, elsewhere) = last(desk, store, want)?;
    let is_news = desk.last.replace(Some(id.clone())).as_ref() != Some(&id);
    if is_news && (!want.is_named_in_result() || elsewhere.is_some()) {
        desk.caller.tell(Fact::Last { id: &id, elsewhere: elsewhere.as_ref() });
    }
    Ok(id)
}

/// The two parts of `ID@N`: no id and no name has an `@`.
fn at_step(key: &str) -> Option<(&str, u32)> {
    let (key, step) = key.split_once('@')?;
    Some((key, step.parse().ok()?))
}

/// Refuses a session that went on since `key`, as `ID@N`, named its step. Under its lock nobody adds another.
pub fn refuse_gone_on(key: &str, header: &Header) -> Result<(), Error> {
    let Some((_, step)) = at_step(key) else { return Ok(()) };
    if header.head() == step {
        return Ok(());
    }
    Err(error::gone_on(header, step))
}

/// The scope of a verb. One that only reads goes on without a working directory.
fn scope(desk: &Desk, want: Want) -> Result<Scope, Error> {
    Scope::of(desk).or_else(|problem| if want == Want::Look { Ok(Scope::everywhere()) } else { Err(problem) })
}

/// The session that a name means, among all that got it, the newest first: the newest of this project, else the only one. If several are of
/// other projects, it is ambiguous.
fn called(desk: &Desk, store: &Store, name: &str, want: Want, all: &[Header]) -> Result<Id, Error> {
    let scope = scope(desk, want)?;
    let here: Vec<&Header> = all.iter().filter(|header| scope.has(store, header)).collect();
    if let Some(meant) = newest_called(&here, want) {
        let older = here.iter().find(|header| header.root() != meant.root() && want.fits(header));
        return match older {
            Some(before) if !want.fits(meant) => Err(does_not_fit(name, want, meant, Some(before))),
            // Without an older one the verb itself says why it cannot act on it.
            _ => Ok(meant.id.clone()),
        };
    }
    match all.iter().find(|header| want.fits(header)) {
        Some(fit) if all.len() > 1 && want != Want::Look => Err(which_of(name, want, fit, begun_in(store, fit).as_ref())),
        Some(fit) => {
            desk.caller.tell(Fact::Named { name, id: &fit.id, begun_in: begun_in(store, fit).as_ref() });
            Ok(fit.id.clone())
        }
        // The verb itself says why it cannot act on it.
        None => Ok(all[0].id.clone()),
    }
}

/// The session that a name means among those of a project that got it, the newest first: the newest of them, or of its parts the one on which
/// somebody acted last and the verb can act. What looks means what is left.
fn newest_called<'h>(here: &[&'h Header], want: Want) -> Option<&'h Header> {
    let whole = here.iter().find(|header| header.of.is_none()).or(here.first())?;
    let kin = here.iter().filter(|header| header.root() == whole.root() && want != Want::Look && want.fits(header));
    kin.max_by_key(|header| order(header)).or(Some(whole)).copied()
}

/// The session of the newest act in this project, and where that was begun, if this project has none.
fn last(desk: &Desk, store: &Store, want: Want) -> Result<(Id, Option<AbsPath>), Error> {
    let scope = scope(desk, want)?;
    let (mut headers, _) = store.headers()?;
    headers.retain(|header| !header.beside);
    let (mut here, elsewhere): (Vec<Header>, Vec<Header>) = headers.into_iter().partition(|header| scope.has(store, header));
    here.sort_by_key(order);
    let mut newest = None;
    while let Some(header) = here.pop() {
        match collected(desk, store, header)? {
            Some(header) if counts(want, &header) => {
                newest = Some(header);
                break;
            }
            _ => {}
        }
    }
    let Some(newest) = newest else {
        let newest = elsewhere.iter().filter(|header| counts(want, header)).max_by_key(|header| order(header));
        return match newest.filter(|_| want == Want::Look) {
            Some(newest) => Ok((newest.id.clone(), begun_in(store, newest))),
            None => {
                let elsewhere = elsewhere.iter().rev().find(|header| want.fits(header));
                let elsewhere = elsewhere.map(|header| (header, begun_in(store, header)));
                Err(none_here(scope.project.as_ref(), want, elsewhere.as_ref().map(|(header, place)| (*header, place.as_ref()))))
            }
        };
    };
    if want != Want::Look && !want.fits(&newest) {
        let before = here.iter().rev().find(|header| want.fits(header));
        return Err(does_not_fit("last", want, &newest, before));
    }
    Ok((newest.id, None))
}

/// The place of a session's newest act among all acts. A first run that is not collected may have acted last.
fn order(header: &Header) -> (u64, u64) {
    let of_run = if header.uncollected { u64::MAX } else { 0 };
    (header.acted.as_ref().map_or(of_run, |acted| acted.n), header.seq)
}

/// True if somebody acted on a session. One that was begun to stage in it, and holds nothing, is meant for that alone.
fn counts(want: Want, header: &Header) -> bool {
    let is_empty = header.counts.changes == 0 && header.steps.is_none() && header.discarded.is_none();
    header.uncollected || header.acted.is_some() && (!is_empty || want == Want::Stage || want == Want::Tend)
}

/// The header of a session after a run in it that was cut off is collected. `None` for one whose first run is under way, or left nothing.
fn collected(desk: &Desk, store: &Store, header: Header) -> Result<Option<Header>, Error> {
    if !header.uncollected || header.discarded.is_some() {
        return Ok(Some(header));
    }
    let mut locked = match store.lock_session(&desk.fs, &header.id) {
        Err(error) if error.kind() == Kind::Busy && header.acted.is_none() => {
            desk.caller.tell(Fact::UnderWay(&header.id));
            return Ok(None);
        }
        // The verb says what it cannot do now.
        Err(error) if error.kind() == Kind::Busy => return Ok(Some(header)),
        locked => locked?,
    };
    if locked.header.uncollected && killed_run::collect(desk, store, &mut locked).is_err() {
        // It is meant all the same: the verb says why it cannot be collected.
        return Ok(Some(header));
    }
    Ok(Some(locked.header.clone()).filter(|header| header.counts.changes > 0))
}

/// Asks before what somebody else did last is decided: it came in between.
fn ask_of_others(desk: &Desk, store: &Store, want: Want, newest: &Header) -> Result<(), Error> {
    let decides = matches!(want, Want::Commit | Want::RollBack | Want::Redo | Want::Discard);
    let Some(other) = newest.acted.as_ref().filter(|acted| decides && !acted.is_own(store.by.as_ref())) else { return Ok(()) };
    if desk.can_ask {
        return if desk.caller.ask(Question::Others { id: &newest.id, act: other }) {
            Ok(())
        } else {
            Err(error::not_confirmed())
        };
    }
    Err(error::of_others(want, &newest.id, other))
}

/// The session that `key` means, found without effects: no run is collected, and nothing is printed.
pub fn meant(desk: &Desk, key: &str, want: Want) -> Option<Id> {
    let (Ok(Some(store)), Ok(here)) = (desk.store(), Scope::of(desk)) else { return None };
    let key = at_step(key).map_or(key, |(key, _)| key);
    if key == "last" {
        return newest(store, &here).filter(|newest| want.fits(newest)).map(|newest| newest.id);
    }
    match store.look_up(key).ok()? {
        Named::Id(id) => Some(id),
        Named::Name(all) => {
            let of_here: Vec<&Header> = all.iter().filter(|header| here.has(store, header)).collect();
            let only = || all.first().filter(|_| all.len() == 1);
            newest_called(&of_here, want).or_else(only).map(|header| header.id.clone())
        }
    }
}

/// The session of the newest act in a project. No run is collected for it.
pub fn newest(store: &Store, here: &Scope) -> Option<Header> {
    let (headers, _) = store.headers().ok()?;
    let acted = headers.into_iter().filter(|header| !header.beside && counts(Want::Look, header) && here.has(store, header));
    acted.max_by_key(order)
}

/// Names the sessions that are pending in this project, if no name is similar.
fn or_pending_here(desk: &Desk, store: &Store, error: Error) -> Error {
    let is_far_off = error.reason() == Some(&Reason::Unknown { near: false });
    let pending = if is_far_off { pending_here(desk, store) } else { Vec::new() };
    if pending.is_empty() { error } else { error::pending(error, &pending) }
}

/// The newest three pending sessions.
fn pending_here(desk: &Desk, store: &Store) -> Vec<Header> {
    let (Ok(here), Ok((headers, _))) = (Scope::of(desk), store.headers()) else { return Vec::new() };
    let pending = headers.iter().rev().filter(|header| {
        let counts = header.counts;
        header.discarded.is_none() && counts.changes > 0 && counts.ever_in == 0 && here.has(store, header)
    });
    pending.take(3).cloned().collect()
}
