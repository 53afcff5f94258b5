//! The fate of what a command changed: held, committed, set aside or dropped.

use super::hints;
use super::terms::{Then, Wanted};
use super::value::{Beyond, Closed, Dangerous, Fate, Of, Passed, Ran};
use crate::capture::{Held, Network};
use crate::error::Error;
use crate::session::{Coverage, Ending, How, Locked, Session, Store, prune_sessions};
use crate::settings::Entry;
use crate::tree::is_stand_in;
use crate::verb::commit::commit_run;
use crate::verb::desk::Desk;
use crate::verb::discard::free_overdue;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::resolve::go_on::Begun;

/// Does with a session what was asked for. `knows_of_pending`: the user was told of a pending session, and is not told of this one later.
///
/// # Errors
/// A system call failed. That a commit came to nothing is no error of the run.
pub fn settle(
    desk: &Desk,
    store: &Store,
    begun: Begun,
    (held, of, knows_of_pending): (Held, Of, bool),
    wanted: &Wanted<'_>,
) -> Result<Ran, Error> {
    let Begun { mut session, fresh, untold } = begun;
    let id = session.id().clone();
    if let Some(new) = untold.filter(|_| held.changes > 0 && wanted.then != Then::Discard) {
        new.tell(desk, &id);
    }
    tell_of_stand_ins(desk, &session, &held)?;
    let went_well = held.ending == Ending::Exited(0) && held.too_much.is_none();
    let fate = match wanted.then {
        Then::Discard if !fresh => Fate::SetAside(held.step.map(|step| set_aside(desk, &mut session, step)).transpose()?),
        _ if held.changes == 0 => Fate::Nothing,
        Then::Discard => {
            prune_sessions::free(&desk.fs, &mut session)?;
            Fate::Dropped
        }
        Then::Commit if went_well => match commit_run(desk, store, &mut session) {
            Ok(acted) => Fate::Committed(Box::new(acted)),
            Err(why) => Fate::NotCommitted(error::still_held(why, &id)),
        },
        Then::Commit | Then::Hold => {
            if knows_of_pending {
                hints::remember(desk, &session);
            }
            Fate::Held
        }
    };
    let is_gone = fresh && matches!(fate, Fate::Nothing);
    if is_gone {
        store.remove_session(&desk.fs, session)?;
    } else {
        session.keep_size(&desk.fs, store, held.news);
        if fresh {
            free_overdue(desk, store);
        }
    }
    let hosts = wanted.hosts.iter().map(Entry::to_string).collect();
    let (network, passed) = (wanted.network == Network::Open, passed(&held.coverage));
    let beyond_files = Beyond { network, hosts, refused: Vec::new(), passed, closed: closed(&held.coverage) };
    let dangerous = held.dangers.iter().map(|(path, why)| Dangerous { path: path.clone(), why: *why }).collect();
    let Held { ending, stopped, changes, step, news, sorts, warnings, dropped, too_much, .. } = held;
    let (session, step) = ((!is_gone).then_some(id), step.filter(|_| !is_gone));
    let left = Vec::new();
    Ok(Ran {
        session,
        step,
        fate,
        ending,
        stopped,
        changes,
        dangerous,
        beyond_files,
        warnings,
        dropped,
        too_much,
        news,
        sorts,
        of,
        left,
    })
}

/// Goes back from the step that a command became, which stays beside the others; returns the number of the one that it stands on.
fn set_aside(desk: &Desk, session: &mut Locked, step: u32) -> Result<u32, Error> {
    let list = session.steps()?;
    let on = list.get(&session.header, step)?.on;
    session.rewind(&desk.fs, &list, on)?;
    Ok(on)
}

/// Tells of links that the command made by copying what stands for a hidden file.
fn tell_of_stand_ins(desk: &Desk, session: &Session, held: &Held) -> Result<(), Error> {
    if held.news == 0 || !held.coverage.iter().any(|row| matches!(row.how, How::Closed | How::Hidden)) {
        return Ok(());
    }
    let changes = session.changes()?;
    let mut found = changes.list.iter().filter(|change| is_stand_in(&change.after));
    if let Some(first) = found.next() {
        desk.caller.tell(Fact::Warning(&error::stand_ins(&first.path, found.count())));
    }
    Ok(())
}

/// The paths that were closed to the command.
fn closed(coverage: &[Coverage]) -> Vec<Closed> {
    let rows = coverage.iter().filter(|row| row.how == How::Closed);
    rows.map(|row| Closed { path: row.path.clone(), holds: row.why.clone().unwrap_or_default() }).collect()
}

/// The places that stayed real.
fn passed(coverage: &[Coverage]) -> Vec<Passed> {
    let rows = coverage.iter().filter(|row| row.how == How::Passed);
    rows.map(|row| Passed { path: row.path.clone(), is_history: row.why.as_deref() == Some(error::HISTORY) }).collect()
}
