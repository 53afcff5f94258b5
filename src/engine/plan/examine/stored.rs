//! Examines the object in the store that is to be put.

use super::examiner::{ExaminedMove, Examiner, UNTOLD, Verdict};
use crate::engine::job::Move;
use crate::engine::plan::conflict::Conflict;
use crate::engine::plan::read_object::look_at_content;
use crate::engine::reach::split;
use crate::error::{At, BY_ROOT, Error, IoError};
use crate::fs::{Entry, Sort, Writers, writers};
use crate::tree::{Likeness, State, What, observe, sort_word};

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
        let now = if stat.sort == Sort::File { look_at_content(at, stat, to) } else { observe::object_of(at, &stat) };
        let now = now?;
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
        let Some(stat) = at.stat()? else {
            // Anything but a file can be made from the record.
            if matches!(to.what, What::File { .. }) {
                looked.verdict = Verdict::Damaged(format!("{kept} is missing from the store"));
            }
            return Ok(());
        };
        if stat.sort != to.sort() {
            looked.verdict = Verdict::Damaged(format!("{kept} is a {} in the store", sort_word(stat.sort)));
            return Ok(());
        }
        looked.item.planning.shared_in_store = stat.shared();
        let seen = if stat.sort == Sort::File { look_at_content(at, stat, to) } else { observe::object_of(at, &stat) };
        let seen = match seen {
            Err(error) if error.errno() == Some(libc::EACCES) => {
                let why = format!("user {} may not read {kept} in the store; {BY_ROOT}", self.me);
                looked.verdict = Verdict::Refused(why);
                return Ok(());
            }
            other => other?,
        };
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

    /// Tells what was done to the session's copy of a path that is to be put.
    pub fn name_stored(&self, done: &str) -> String {
        format!("the {}: {done}", if self.verb.inward() { "held content" } else { "kept original" })
    }
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
