//! Copies what a session holds at one of its steps, as the only upper of each place of another session.

use super::merge_many::leave_out;
use super::merge_uppers::{LinkOrCopy, merge};
use super::opened_modes;
use super::sealed_uppers::Sealed;
use crate::capture::place::layout::Route;
use crate::error::Error;
use crate::fs::{Dir, Fs};
use crate::session::{Run, Session, part};

/// Fills `held`, that of a session that is to come, with what the steps `chain` (the oldest first) of `session` show. Nothing is shared, so that
/// what one session puts on the tree has no other name in the store. Syncs nothing.
///
/// # Errors
/// A system call failed.
pub fn fill(fs: &Fs, session: &Session, run: &Run, chain: Vec<u32>, held: &Dir) -> Result<(), Error> {
    let route = Route::of(run.uid);
    let from = part(&session.dir, b"held")?;
    let mut sealed = Sealed::of(&from, session, chain)?;
    leave_out(fs, &from, (route, &run.places), &mut sealed, session)?;
    let uppers = held.at(b"upper").open_dir()?;
    for place in &run.places {
        let below = sealed.below(&from, place, route)?;
        if below.is_empty() {
            continue;
        }
        let name = place.upper_name(1);
        let below = below.into_iter().map(|upper| (0, upper)).collect();
        let notes = merge(fs, (route, &sealed), (below, None), (uppers.at(&name), &name), LinkOrCopy::Copy)?;
        opened_modes::append(fs, &uppers, &notes)?;
    }
    Ok(())
}
