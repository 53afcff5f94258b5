//! Looks at the moves of a job: what is at each path, what is wanted there, and what follows. Reads only.

mod conclude;
mod examiner;
mod original;
mod stored;

use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::Builder;

use self::examiner::{Circumstances, Examiner, closed};
pub use self::examiner::{ExaminedMove, Verdict};
use crate::engine::job::{Job, Move};
use crate::engine::plan::item_sides::unlooked;
use crate::engine::progress::{Progress, TAKES_LONG};
use crate::engine::reach::Reach;
use crate::error::Error;
use crate::session::Session;
use crate::tree::{Object, State};

/// Moves given to a thread at once. Fewer are not worth a second thread.
const BATCH: usize = 64;

/// Looks at all moves of a job, in two threads where there are many. Passes each to `take`, in path order.
pub fn examine_moves(
    session: &Session,
    job: &mut Job,
    reach: &mut Reach,
    progress: &dyn Progress,
    take: &mut dyn FnMut(ExaminedMove) -> Result<(), Error>,
) -> Result<(), Error> {
    let of = job.sides.len();
    let rules = Circumstances { session: session.id(), verb: job.verb, on_conflict: job.on_conflict };
    let Some(first) = batch(job, progress)? else { return Ok(()) };
    let mut own = Examiner::new(rules, reach);
    if first.len() < BATCH {
        return own.examine_batch(first)?.into_iter().try_for_each(take);
    }
    std::thread::scope(|scope| {
        // Each batch is looked at by the other thread if it is free, else here, so that neither waits.
        let (to_other, from_here) = sync_channel::<Vec<Move>>(1);
        let (to_here, from_other) = sync_channel::<Result<Vec<ExaminedMove>, Error>>(1);
        // Without a second thread (RLIMIT_NPROC), this one looks at all of them.
        let spawned = Builder::new().spawn_scoped(scope, move || other_thread(session, rules, &from_here, &to_here));
        let mut done = 0;
        let mut ours = Some(first);
        while let Some(moves) = ours.take() {
            let (given, not_given) = match batch(job, progress)?.map(|moves| to_other.send(moves)) {
                None => (false, None),
                Some(Ok(())) => (true, None),
                Some(Err(SendError(moves))) => (false, Some(moves)),
            };
            let looked = own.examine_batch(moves)?;
            done += looked.len();
            looked.into_iter().try_for_each(&mut *take)?;
            if given {
                // The other thread has ended without an answer only by a panic, which is passed on below.
                let Ok(looked) = from_other.recv() else { break };
                let looked = looked?;
                done += looked.len();
                looked.into_iter().try_for_each(&mut *take)?;
            }
            progress.at("looking", done, of);
            ours = if not_given.is_some() { not_given } else { batch(job, progress)? };
        }
        drop(to_other);
        if let Ok(other) = spawned {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        Ok(())
    })
}

fn batch(job: &mut Job, progress: &dyn Progress) -> Result<Option<Vec<Move>>, Error> {
    let mut moves = Vec::with_capacity(BATCH);
    while moves.len() < BATCH
        && let Some(mv) = job.moves.next()?
    {
        let size = |object: &Object| object.as_ref().map_or(0, State::size);
        // A change of metadata alone reads no content.
        let large = size(&mv.from).max(size(&mv.to));
        if large >= TAKES_LONG && !mv.in_place {
            progress.hashes(&mv.path, large);
        }
        moves.push(mv);
    }
    Ok(if moves.is_empty() { None } else { Some(moves) })
}

/// Runs the other thread. If an answer cannot be sent, nobody waits for one any more.
fn other_thread(
    session: &Session,
    rules: Circumstances<'_>,
    batches: &Receiver<Vec<Move>>,
    answers: &SyncSender<Result<Vec<ExaminedMove>, Error>>,
) {
    let mut reach = match Reach::new(&session.dir) {
        Ok(reach) => reach,
        Err(error) => {
            let _nobody_waits = answers.send(Err(error.into()));
            return;
        }
    };
    let mut examiner = Examiner::new(rules, &mut reach);
    while let Ok(moves) = batches.recv() {
        if answers.send(examiner.examine_batch(moves)).is_err() {
            return;
        }
    }
}

impl Examiner<'_> {
    fn examine_batch(&mut self, moves: Vec<Move>) -> Result<Vec<ExaminedMove>, Error> {
        moves.into_iter().map(|mv| self.examine(mv)).collect()
    }

    fn examine(&mut self, mv: Move) -> Result<ExaminedMove, Error> {
        let mut looked = ExaminedMove { item: unlooked(&mv), verdict: Verdict::Go, note: None };
        let Some(parent) = mv.path.parent() else {
            looked.verdict = Verdict::Refused("it is the root directory".into());
            return Ok(looked);
        };
        match self.directory(parent) {
            Ok(Some((dir, stat))) => {
                looked.item.planning.in_directory = true;
                // Where nothing was put and nothing comes back, nothing there is the session's.
                if mv.from.is_some() || mv.to.is_some() || self.verb.inward() {
                    self.examine_path(&dir, &stat, &mv, &mut looked)?;
                }
            }
            Ok(None) => looked.verdict = self.judge_absent(&mv),
            Err(error) => match error.errno() {
                Some(libc::EXDEV) => {
                    looked.verdict = Verdict::Refused("a file system was mounted above it meanwhile".into());
                }
                Some(libc::EACCES) => looked.verdict = Verdict::Refused(closed(&mv.path)),
                _ => return Err(error.into()),
            },
        }
        if matches!(looked.verdict, Verdict::Go | Verdict::Keep) {
            self.examine_stored(&mv, &mut looked)?;
            self.examine_original(&mv, &mut looked)?;
        }
        self.conclude(mv, &mut looked);
        Ok(looked)
    }
}
