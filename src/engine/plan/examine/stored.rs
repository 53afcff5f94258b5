//! Examines the object in the store that is to be put.

use super::examiner::{ExaminedMove, Examiner, UNTOLD, Verdict};
use crate::engine::job::Move;
use crate::engine::plan::conflict::Conflict;
use crate::engine::plan::read_object::{look_at_content, read_as_known};
use crate::engine::reach::split;
use crate::error::{At, BY_ROOT, Error, IoError};
use crate::fs::{Entry, Sort, Stat, Writers, writers};
use crate::tree::{Likeness, Seen, State, observe, sort_word};

const WRITTEN: &str = "it was written to since by a process that had it open";
const FILLED: &str = "something was put into it since by a process that worked in it";

impl Examiner<'_> {
    /// The change, done or still possible, to the session's copy of a path that is as wanted already. It would go with the copy.
    pub fn change_to_stored(&mut self, mv: &Move) -> Result<Option<&'static str>, Error> {
        let Some((held, to)) = mv.to_at.as_ref().zip(mv.to.as_ref()) else { return Ok(None) };
        let place = held.place(mv.n, &mv.path);
        let (parent, name) = split(&place);
        let Ok(dir) = self.reach.held(parent) else { return Ok(None) };
        let at = dir.at(name);
        let Some(stat) = at.stat()?.filter(|stat| stat.sort == to.sort()) else { return Ok(None) };
        if stat.sort == Sort::File {
            match at.open_file() {
                Err(error) if error.errno() == Some(libc::EACCES) => return Ok(Some(UNTOLD)),
                opened => {
                    if writers(&opened?).at("ask for a lease on", at)? == Writers::Some {
                        return Ok(Some(WRITTEN));
                    }
                }
            }
        }
        let now = look_at_stored(at, stat, to)?;
        done_since(at, &now.state, to).map_err(Error::from)
    }

    /// Checks that the wanted object is in the store, and is what was put there (I17, I11).
    pub fn examine_stored(&mut self, mv: &Move, looked: &mut ExaminedMove) -> Result<(), Error> {
        let (Some(held), Some(to)) = (&mv.to_at, &mv.to) else { return Ok(()) };
        let place = held.place(mv.n, &mv.path);
        let (parent, name) = split(&place);
        let dir = match self.reach.held(parent) {
            Ok(dir) => dir,
            Err(error) => {
                looked.verdict = Verdict::Damaged(format!("its content cannot be reached in the store: {}", error.why()));
                return Ok(());
            }
        };
        let at = dir.at(name);
        let kept = if self.verb.inward() { "the held content" } else { "the kept original" };
        // An error is met again where it is looked at closer.
        let (stat, seen) = match read_as_known(at, to) {
            Ok(Some(found)) => found,
            Ok(None) | Err(_) => match self.look_closer(at, to, kept)? {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(()),
                Err(against) => {
                    looked.verdict = against;
                    return Ok(());
                }
            },
        };
        looked.item.planning.shared_in_store = stat.shared();
        // Others may have the file open, or another name of it, that was on the tree. A directory that was taken as a whole is not empty.
        let was_on_tree = !self.verb.inward() || mv.gives_back && stat.sort != Sort::Directory;
        let since = if was_on_tree { done_since(at, &seen.state, to)? } else { None };
        match (since, to.content_likeness(&seen.state)) {
            (Some(done), _) => match self.conflict(Conflict::because(&mv.path, self.name_stored(done))) {
                Verdict::Keep if done == WRITTEN => looked.note = Some(format!("{}: given back as it is now: {done}", mv.path)),
                // Between two file systems the change does not come along: it is named where it stays.
                Verdict::Keep => looked.note = Some(format!("{}: {done}", mv.path)),
                verdict => {
                    looked.verdict = verdict;
                    return Ok(());
                }
            },
            (None, Likeness::Same) => {}
            (None, Likeness::ReadToTell) if to.hash().is_none() => {}
            _ => {
                looked.verdict = Verdict::Damaged(format!("{kept} is damaged (SHA-256 differs)"));
                return Ok(());
            }
        }
        looked.item.to = Some(seen);
        Ok(())
    }

    /// Looks at an object in the store that may be damaged or missing. `None` if it can be made from the record.
    fn look_closer(&self, at: Entry<'_>, to: &State, kept: &str) -> Result<Result<Option<(Stat, Seen)>, Verdict>, Error> {
        let Some(stat) = at.stat()? else {
            return Ok(if to.is_file() { Err(Verdict::Damaged(format!("{kept} is missing from the store"))) } else { Ok(None) });
        };
        if stat.sort != to.sort() {
            return Ok(Err(Verdict::Damaged(format!("{kept} is a {} in the store", sort_word(stat.sort)))));
        }
        match look_at_stored(at, stat, to) {
            Err(error) if error.errno() == Some(libc::EACCES) => {
                Ok(Err(Verdict::Refused(format!("user {} may not read {kept} in the store; {BY_ROOT}", self.me))))
            }
            seen => Ok(Ok(Some((stat, seen?)))),
        }
    }

    /// Tells what was done to the session's copy of a path that is to be put.
    pub fn name_stored(&self, done: &str) -> String {
        format!("the {}: {done}", if self.verb.inward() { "held content" } else { "kept original" })
    }
}

fn look_at_stored(at: Entry<'_>, stat: Stat, known: &State) -> Result<Seen, IoError> {
    if stat.sort == Sort::File { look_at_content(at, stat, known) } else { observe::object_of(at, &stat) }
}

/// The change made since to a kept original, by a process that has the file open or works in the directory.
fn done_since(at: Entry<'_>, now: &State, then: &State) -> Result<Option<&'static str>, IoError> {
    match then.sort() {
        Sort::Directory => Ok(observe::is_filled(at, then)?.then_some(FILLED)),
        Sort::File if then.hash().is_some() && then.content_likeness(now) != Likeness::Same => {
            Ok(observe::was_written_since(at, now, then)?.then_some(WRITTEN))
        }
        _ => Ok(None),
    }
}
