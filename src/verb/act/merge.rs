//! `commit --merge`: changes whose path somebody has edited since are put onto what is there now, before the session is committed. In the
//! session that is a person's choice: a step.

use crate::capture::{Choice, choose, may_choose};
use crate::compare::{MergeResult, MergedChange, Sources, onto};
use crate::error::{Against, Error};
use crate::fs::{AbsPath, OnSignal, interrupt};
use crate::session::{Arg, Change, Locked, Store, merge_base};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;

/// Merges what can be merged at and under `paths`; all, if there are none. In a dry run it only says what would be merged, and leaves the
/// paths of the rest. False if nothing is left then.
///
/// # Errors
/// A path does not merge (3): nothing is changed, and each such path is named with the reason.
pub fn merge(desk: &Desk, store: &Store, session: &mut Locked, dry_run: bool, paths: &mut Vec<AbsPath>) -> Result<bool, Error> {
    let changes = session.changes()?;
    let asked = |change: &&Change| paths.is_empty() || paths.iter().any(|path| change.path.is_under(path));
    let sides = session.sides(changes.list.len())?;
    let (mut choices, mut rest, mut against, mut nows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut sources = Sources::of(session)?;
    let out = changes.list.iter().zip(&sides).filter(|(_, side)| !side.is_in()).map(|(change, _)| change);
    for change in out.filter(asked) {
        match onto(session, change, &mut sources)? {
            MergeResult::Same => rest.push(change.path.clone()),
            MergeResult::Conflict(why) => against.push(Against { path: change.path.to_string(), why }),
            MergeResult::Merged(both) => {
                let MergedChange { before, after, content, now } = *both;
                nows.push(now);
                choices.push(Choice { path: change.path.clone(), before, after, content });
            }
        }
    }
    drop(sources);
    if !against.is_empty() {
        return Err(error::do_not_merge(session.id(), against));
    }
    if choices.is_empty() {
        return Ok(true);
    }
    may_choose(session)?;
    choices.iter().for_each(|choice| desk.caller.tell(Fact::Merged { path: &choice.path, dry_run }));
    if dry_run {
        *paths = rest;
        return Ok(!paths.is_empty());
    }
    interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
    let _noting = interrupt::note(OnSignal::GoesOn);
    // Of these a later merge begins.
    nows.iter().try_for_each(|now| merge_base::keep_bytes(&desk.fs, &session.dir, now))?;
    let words = ["recant", "commit", session.id().tail(), "--merge"].map(|word| Arg(word.as_bytes().to_vec()));
    choose(&desk.fs, store, session, words.to_vec(), (choices, Vec::new()))?;
    Ok(true)
}
