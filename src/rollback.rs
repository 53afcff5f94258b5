//! Rollback: from `after` to `before`.

use crate::checkpoint::{Kept, Manifest, Original, manifest};
use crate::engine::plan::choose::Choice;
use crate::engine::{
    Chosen, Job, LeftOut, Move, Moves, OnConflict, Rest, Rules, SessionPlace, Verb, WantedTime, choose, damaged, may_begin,
};
use crate::error::{Against, Error};
use crate::fs::AbsPath;
use crate::session::{Change, Part, Session, Side};
use crate::tree::{Object, State, sort_word};

/// The job of rolling a session back: all of it, `paths` with all below them and the directories that they need, or of these `only` some.
///
/// Errors: a session that was never committed, was discarded, or whose checkpoint was pruned; paths that it does not hold;
/// a checkpoint that does not fit the session.
pub fn rollback(
    session: &Session,
    (paths, only): (&[AbsPath], Option<&Part>),
    on_conflict: OnConflict,
    aside: &LeftOut,
) -> Result<Job, Error> {
    may_begin(session, Verb::Rollback)?;
    let sides = session.sides_of_all()?;
    let choice = chosen(session, paths, only, &sides)?;
    let below = match &choice {
        Some(choice) if paths.is_empty() => choice.paths(&session.changes()?),
        _ => paths.to_vec(),
    };
    let (chosen, notes) = choice.map_or((None, Vec::new()), |choice| (Some(choice.chosen), choice.notes));
    let all = chosen.as_ref().is_none_or(|chosen| chosen.len() == sides.iter().filter(|side| side.is_in()).count());
    let outward = Outward {
        changes: Chosen::new(session, sides.clone(), Side::is_in, chosen)?,
        originals: manifest::Reading::of(session)?,
        next: None,
        aside: aside.clone(),
        // The times of directories that are no changes go back with the last change.
        timed: if all { Vec::new() } else { below },
        rest: Rest { notes, ..Rest::default() },
    };
    Ok(Job { verb: Verb::Rollback, moves: Box::new(outward), sides, on_conflict, limits: None })
}

/// The changes at and below `paths`, if any are given.
fn chosen(session: &Session, paths: &[AbsPath], only: Option<&Part>, sides: &[Side]) -> Result<Option<Choice>, Error> {
    if paths.is_empty() && only.is_none() {
        return Ok(None);
    }
    let changes = session.changes()?;
    let manifest = Manifest::of(session)?;
    let rules = Rules {
        may: &|i| sides[i].is_in() && only.is_none_or(|only| only.has(i)),
        // What lay under a directory needs it if the session removed it; not if it changed it, nor if it was already gone.
        needed: &|i| {
            let change = &changes.list[i];
            let is_dir = |object: &Object| object.as_ref().is_some_and(State::is_dir);
            let comes_back = manifest.originals.get(&change.path).is_some_and(|original| is_dir(&original.state));
            sides[i].is_in() && comes_back && !is_dir(&change.after)
        },
        lies: &|i| manifest.originals.get(&changes.list[i].path).and_then(Original::place),
    };
    choose(session, &changes, paths, &rules).map(Some)
}

/// The moves of a rollback: reads changes and originals side by side, both in path order.
struct Outward {
    changes: Chosen,
    originals: manifest::Reading,
    next: Option<Original>,
    aside: LeftOut,
    /// Paths; the times of directories below them are always set. Empty for all.
    timed: Vec<AbsPath>,
    rest: Rest,
}

impl Moves for Outward {
    fn next(&mut self) -> Result<Option<Move>, Error> {
        while let Some((change, index, _)) = self.changes.next()? {
            let Some(original) = self.original_of(&change)? else {
                let why = "the checkpoint's manifest has no line for it";
                return Err(damaged(vec![Against::new(&change.path, why)]));
            };
            if let Some(why) = self.aside.why(&change) {
                self.rest.left.push((change.path, why));
                continue;
            }
            if let Kept::Uncovered { why } = &original.kept {
                self.rest.left.push((change.path, format!("not taken back: {why}")));
                continue;
            }
            if let (Kept::Blob { unlinked: true, .. } | Kept::ObjectCopy, Some(state)) = (&original.kept, &original.state) {
                let why = format!("taken back as a separate {}: it is not linked with its other names", sort_word(state.sort()));
                self.rest.left.push((change.path.clone(), why));
            }
            return Ok(Some(outward(change, original, index)));
        }
        Ok(None)
    }

    fn rest(self: Box<Self>) -> Result<Rest, Error> {
        let Outward { originals, timed, mut rest, .. } = *self;
        let times = originals.directory_times()?.into_values().map(|time| WantedTime {
            mtime: time.old,
            only_if: Some(time.left),
            original: Some(time.old),
            always: timed.is_empty() || timed.iter().any(|path| time.path.is_under(path)),
            path: time.path,
        });
        rest.times = times.collect();
        Ok(rest)
    }
}

impl Outward {
    fn original_of(&mut self, change: &Change) -> Result<Option<Original>, Error> {
        while self.next.as_ref().is_none_or(|next| next.path < change.path) {
            self.next = self.originals.next()?;
            if self.next.is_none() {
                return Ok(None);
            }
        }
        Ok(self.next.take_if(|next| next.path == change.path && next.n == change.n))
    }
}

fn outward(change: Change, original: Original, index: u32) -> Move {
    Move {
        index,
        n: change.n,
        path: change.path,
        from: change.after,
        from_print: original.put,
        to_at: original.place().map(|place| SessionPlace::new(place, original.n, &original.path)),
        in_place: original.kept == Kept::Metadata,
        to: original.state,
        original: change.original,
        foreign: false,
        by_clock: false,
        uncovered: None,
        side: Side::Out,
        gives_back: false,
    }
}
