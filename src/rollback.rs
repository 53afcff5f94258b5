//! Rollback: the same the other way, `after` to `before`.

use crate::checkpoint::manifest::{Kept, Manifest, Original};
use crate::engine::Error;
use crate::engine::choose::{Choice, Rules, choose, may_begin};
use crate::engine::job::{Asked, Job, Move, OnConflict, Verb, WantedTime};
use crate::fs::path::AbsPath;
use crate::session::sides::Side;
use crate::session::store::Session;
use crate::tree::state::State;

/// The job of taking a session back: all of it, or `paths`, what lies under them, and the folders that they need.
///
/// Errors: a session that was never committed, was discarded, or whose checkpoint was pruned; paths that it does not hold;
/// a checkpoint that does not fit the session.
pub fn rollback(session: &Session, paths: &[AbsPath], on_conflict: OnConflict) -> Result<Asked, Error> {
    may_begin(session, Verb::Rollback)?;
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let manifest = Manifest::read(&session.dir)?;
    let rules = Rules {
        may: &|i| sides[i].is_in(),
        needed: &|i| sides[i].is_in() && changes.list[i].before.object.as_ref().is_some_and(State::is_folder),
        lies: &|i| manifest.originals.get(&changes.list[i].path).and_then(Original::place),
    };
    let Choice { chosen, notes } = choose(session, &changes, paths, &rules)?;
    let (mut moves, mut left) = (Vec::with_capacity(chosen.len()), Vec::new());
    for i in chosen {
        let change = &changes.list[i];
        let original = manifest.originals.get(&change.path).filter(|original| original.n == change.n);
        let Some(original) = original else {
            let why = "the checkpoint's manifest has no line for it".to_owned();
            return Err(Error::Damaged(vec![(change.path.to_string(), why)]));
        };
        if let Kept::Uncovered { why } = &original.kept {
            left.push((change.path.clone(), format!("not taken back: {why}")));
            continue;
        }
        if let Kept::Blob { unlinked: true, .. } = original.kept {
            let why = "taken back as a file of its own: its other names, which are not in the session, are not linked with it";
            left.push((change.path.clone(), why.to_owned()));
        }
        moves.push(Move {
            index: i,
            n: change.n,
            path: change.path.clone(),
            from: change.after.clone(),
            from_print: original.put,
            to: original.state.clone(),
            to_at: original.place(),
            in_place: original.kept == Kept::Metadata,
            foreign: false,
            uncovered: None,
            side: Side::Out,
        });
    }
    let times = manifest.folder_times.into_values().map(|time| WantedTime {
        mtime: time.old,
        only_if: Some(time.left),
        original: Some(time.old),
        always: paths.is_empty() || paths.iter().any(|path| time.path.is_under(path)),
        path: time.path,
    });
    let job = Job { verb: Verb::Rollback, moves, times: times.collect(), sides, on_conflict, left };
    Ok(Asked { job, notes })
}
