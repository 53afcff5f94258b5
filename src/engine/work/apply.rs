//! The phases that change the tree: apply, seal, settle. A failure before the seal undoes all that was done.

use super::copy::Firsts;
use super::perform::{check_time, perform};
use super::prepare::Intended;
use super::seal::{make_seal_last, rename_header, write_facts};
use super::settle::{When, settle};
use crate::engine::error::stuck;
use crate::engine::item::Turn;
use crate::engine::job::Verb;
use crate::engine::journal::Journal;
use crate::engine::plan::make_plan::Remarks;
use crate::engine::progress::Progress;
use crate::engine::reach::Reach;
use crate::engine::recover::undo_and_finish::after_failure;
use crate::engine::report::Report;
use crate::error::{At, Error, Kind};
use crate::fs::{AbsPath, Fs, Time, interrupt};
use crate::session::{Locked, Store};

/// The phase with every step done; nothing is known to be durable yet.
pub struct Applied {
    done: Outcome,
}

/// The phase with the new generation durable: nothing is undone any more.
pub struct Sealed {
    done: Outcome,
}

/// The results of apply for the next phases.
struct Outcome {
    journal: Journal,
    reach: Reach,
    told: Remarks,
    /// For each item the ctime right after it was put, where the manifest is to have it: a later one is somebody else's.
    put: Vec<Option<Time>>,
}

/// A failure, with the number of steps that may have left something behind.
struct Failure {
    why: Error,
    begun: usize,
}

impl Intended {
    /// Does the steps. Undoes all that was done after a failure, or if something else comes out than was planned.
    pub fn apply(self, fs: &Fs, store: &Store, session: &Locked, progress: &dyn Progress) -> Result<Applied, Error> {
        let Intended { journal, mut reach, mut told } = self;
        reach.reopen();
        match do_steps(fs, &mut reach, &journal, &mut told.left, progress) {
            Ok(put) => Ok(Applied { done: Outcome { journal, reach, told, put } }),
            Err(Failure { why, begun }) => Err(after_failure(fs, store, session, reach.going_back(), &journal, begun, why)),
        }
    }
}

/// Does the steps. Adds to `left` the times that were set and did not take.
fn do_steps(
    fs: &Fs,
    reach: &mut Reach,
    journal: &Journal,
    left: &mut Vec<(AbsPath, String)>,
    progress: &dyn Progress,
) -> Result<Vec<Option<Time>>, Failure> {
    let all = journal.turns.len();
    let (mut put, mut firsts) = (vec![None; journal.items.len()], Firsts::default());
    for (done, turn) in journal.turns.iter().enumerate() {
        progress.at(journal.head.verb.word(), done, all);
        let go_on = interrupt::check().at("go on with", journal.step(*turn).path);
        go_on.map_err(|why| Failure { why: why.into(), begun: done })?;
        let dated = journal.head.verb.inward();
        let ctime = perform(fs, reach, (&journal.step(*turn), dated), &mut firsts, left).map_err(|why| {
            // A step that met something else has put it back, or has not begun.
            let begun = if why.kind() == Kind::Conflict { done } else { done + 1 };
            Failure { why, begun }
        })?;
        if let Turn::Move(i) | Turn::Finish(i) = *turn {
            put[i as usize] = ctime;
        }
    }
    set_times(fs, reach, journal, left).map_err(|why| Failure { why, begun: all })?;
    Ok(put)
}

fn set_times(fs: &Fs, reach: &mut Reach, journal: &Journal, left: &mut Vec<(AbsPath, String)>) -> Result<(), Error> {
    for time in &journal.head.times {
        let Some(new) = time.new else { continue };
        let dir = reach.roots.directory(&time.path)?;
        fs.set_mtime(dir.at(b"."), new)?;
        check_time(dir.at(b"."), &time.path, new, left)?;
    }
    Ok(())
}

impl Applied {
    /// Makes every change durable, then replaces `session.json`: the rename is the commit point (I5).
    pub fn seal(self, fs: &Fs, store: &Store, session: &mut Locked) -> Result<Sealed, Error> {
        let mut done = self.done;
        let durable = write_facts(fs, session, &mut done.reach, &done.journal, Some(&done.put));
        if let Err(why) = durable.and_then(|()| rename_header(fs, session)) {
            let Outcome { journal, reach, .. } = done;
            return Err(after_failure(fs, store, session, reach.going_back(), &journal, journal.turns.len(), why));
        }
        let noted = make_seal_last(fs, store, session, &done.journal).map_err(|why| unsealed(session, &done.journal, &why))?;
        done.told.notes.extend(noted);
        session.set_header(done.journal.head.header.clone());
        Ok(Sealed { done })
    }
}

impl Sealed {
    /// Settles and returns the report. Nothing is undone any more: an error leaves the journal for the next verb.
    pub fn settle(self, fs: &Fs, store: &Store, session: &mut Locked) -> Result<Report, Error> {
        let Outcome { journal, mut reach, mut told, .. } = self.done;
        match settle(fs, store, session, &mut reach, &journal, When::Now) {
            Ok(notes) => told.notes.extend(notes),
            Err(error) => {
                return Err(stuck(
                    store.journals().at(session.id().as_str().as_bytes()),
                    format!("cannot clean up: {error}"),
                    format!("the {} is done and durable; the next recant finishes the clean-up", journal.head.verb.word()),
                ));
            }
        }
        Ok(told.report(journal))
    }
}

/// The error behind the commit point. Nothing is undone: it is only not known to be durable.
fn unsealed(session: &Locked, journal: &Journal, why: &Error) -> Error {
    stuck(
        session.dir.at(b"session.json"),
        format!("cannot seal: {why}"),
        format!("the {} is on the tree, but may not be durable; its journal stays", journal.head.verb.word()),
    )
}

impl Verb {
    /// The verb's past participle, for the log.
    pub fn past(self) -> &'static str {
        match self {
            Verb::Commit => "committed",
            Verb::Rollback => "rolled back",
            Verb::Redo => "redone",
        }
    }
}
