//! `commit --merge`: changes whose path somebody has edited since are put onto what is there now, before the session is committed. In the
//! session that is a person's choice: a step.

use super::named_paths;
use crate::capture::{Choice, choose, may_choose};
use crate::compare::{MergeResult, MergedChange, Sources, onto};
use crate::engine::Row;
use crate::error::{Against, Error};
use crate::fs::{AbsPath, OnSignal, interrupt};
use crate::session::{Arg, Change, Locked, Origin, Session, Store, merge_base};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::resolve::go_on::open_again;

/// Refuses, before the session changes, what the commit would refuse.
fn refuse_denied(desk: &Desk, choices: &[Choice]) -> Result<(), Error> {
    let denied = named_paths::denied(desk)?;
    let paths: Vec<&AbsPath> = choices.iter().map(|choice| &choice.path).filter(|path| denied(path)).collect();
    if paths.is_empty() { Ok(()) } else { Err(crate::commit::denied(paths)) }
}

/// Tells whether a session takes what a merge makes: one whose commit was undone is opened again for it.
///
/// # Errors
/// It takes no choice.
pub fn may_merge(session: &Session) -> Result<(), Error> {
    let header = &session.header;
    let opens = header.may_reopen() && header.origin == Origin::Captured && !session.run()?.is_some_and(|run| run.in_memory);
    if opens { Ok(()) } else { may_choose(session) }
}

/// The end of a merge.
#[derive(Default)]
pub struct Merged {
    /// The changes that a dry run would merge.
    pub rows: Vec<Row>,
    /// The step of the session that it was made.
    step: Option<u32>,
}

impl Merged {
    /// The error of a commit that was refused after it: the step stays.
    pub fn refused(&self, session: &Session, error: Error) -> Error {
        match self.step {
            Some(step) => error::after_merge(error, session.id(), step),
            None => error,
        }
    }
}

/// Merges what can be merged at and under `paths`; all, if there are none. A dry run only says what would be merged, and returns it. `paths`
/// are then those of the rest.
///
/// # Errors
/// A path does not merge (3): nothing is changed, and each such path is named with the reason.
pub fn merge(desk: &Desk, store: &Store, session: &mut Locked, dry_run: bool, paths: &mut Vec<AbsPath>) -> Result<Merged, Error> {
    let changes = session.changes()?;
    let asked = |change: &Change| paths.is_empty() || paths.iter().any(|path| change.path.is_under(path));
    let sides = session.sides(changes.list.len())?;
    let (mut choices, mut rest, mut against, mut nows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut by_force_alone = false;
    let mut sources = Sources::of(session)?;
    let out = changes.list.iter().zip(&sides).filter(|(_, side)| !side.is_in());
    for (change, side) in out.filter(|(change, _)| asked(change)) {
        match onto(session, (change, *side), &mut sources)? {
            MergeResult::Same => rest.push(change.path.clone()),
            MergeResult::Conflict(why) => {
                by_force_alone |= change.marks.foreign;
                against.push(Against { path: change.path.to_string(), why });
            }
            MergeResult::Merged(both) => {
                let MergedChange { before, after, content, now } = *both;
                nows.push(now);
                choices.push(Choice { path: change.path.clone(), before, after, content });
            }
        }
    }
    drop(sources);
    if !against.is_empty() {
        return Err(error::do_not_merge(session.id(), against, by_force_alone));
    }
    if choices.is_empty() {
        return Ok(Merged::default());
    }
    may_merge(session)?;
    refuse_denied(desk, &choices)?;
    choices.iter().for_each(|choice| desk.caller.tell(Fact::Merged { path: &choice.path, dry_run }));
    if dry_run {
        *paths = rest;
        let row = |choice: Choice| Row::modified(choice.path, &choice.before.object, choice.after);
        return Ok(Merged { rows: choices.into_iter().map(row).collect(), step: None });
    }
    interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
    let _noting = interrupt::note(OnSignal::GoesOn);
    open_again(desk, session)?;
    // Of these a later merge begins.
    nows.iter().try_for_each(|now| merge_base::keep_bytes(&desk.fs, &session.dir, now))?;
    let words = ["recant", "commit", session.id().tail(), "--merge"].map(|word| Arg(word.as_bytes().to_vec()));
    choose(&desk.fs, store, session, words.to_vec(), (choices, Vec::new()))?;
    Ok(Merged { rows: Vec::new(), step: Some(session.header.head()) })
}
