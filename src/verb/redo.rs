//! `redo`: what was rolled back of a session is committed again.

use super::act::acted::Acted;
use super::act::carry_out::on_session;
use super::act::carry_out::{Act, Conflicts};
use super::desk::Desk;
use super::resolve::target::Target;
use super::resolve::wanted_act::Want;
use crate::engine::Verb;
use crate::error::Error;

/// Commits again what was rolled back of a session, or of it what is asked for. `force`: it goes on over conflicts. Returns the act.
///
/// # Errors
/// Those of [`commit`](crate::commit()); nothing of it was rolled back.
pub fn redo(desk: &Desk, of: &Target, force: bool) -> Result<Acted, Error> {
    let (store, mut session) = of.open(desk, Want::Redo)?;
    let paths = of.paths(store, &session, Verb::Redo)?;
    of.note_purpose(&mut session);
    let act = Act { only: of.what.moved(), ..Act::new(desk, Verb::Redo, Conflicts::forced(force)) };
    let (report, rest) = on_session(desk, store, &mut session, &paths, of.effect(), &act)?;
    Ok(Acted::of(&session, report, rest))
}
