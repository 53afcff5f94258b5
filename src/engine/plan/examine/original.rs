//! Examines the file on the tree that is to get another name.
//!
//! A run of an ordinary user's holds a copy of what was renamed or linked, and overlayfs makes of its capability one that counts in the
//! user's namespaces alone. Only root can set the real one, but rename(2) and link(2) keep it.

use rustix::thread::CapabilitySet;

use super::examiner::{ExaminedMove, Examiner, Verdict};
use crate::engine::job::Move;
use crate::engine::plan::conflict::Conflict;
use crate::engine::plan::read_object::look_at_content;
use crate::engine::reach::split;
use crate::engine::work::metadata::{CAPABILITY, has};
use crate::error::{Error, IoError};
use crate::fs::{AbsPath, Sort};
use crate::session::object_name;
use crate::tree::{Seen, State};

impl Examiner<'_> {
    /// Has the original linked where the held copy lacks its capability, and the caller cannot set that.
    pub fn examine_original(&mut self, mv: &Move, looked: &mut ExaminedMove) -> Result<(), Error> {
        if !self.verb.inward() {
            looked.item.original = mv.original.clone().filter(|_| self.is_held(mv)).map(Box::new);
            return Ok(());
        }
        let (Some(original), Some(to), Some(held)) = (&mv.original, &mv.to, &looked.item.to) else { return Ok(()) };
        if held.state.meta.xattr(CAPABILITY) == to.meta.xattr(CAPABILITY) || has(CapabilitySet::SETFCAP) {
            return Ok(());
        }
        let found = self.file_at(original, &held.state)?;
        if found.is_some_and(|found| found.state.meta == to.meta && found.state.hash() == held.state.hash()) {
            looked.item.original = Some(Box::new(original.clone()));
        } else {
            let why = format!("it is a hard link to {original}, which was changed or removed since the run");
            looked.verdict = Verdict::Conflict(Conflict::because(&mv.path, why));
        }
        Ok(())
    }

    /// True if the session holds a copy of what a rollback takes off the tree.
    fn is_held(&mut self, mv: &Move) -> bool {
        let name = object_name(mv.n);
        let (parent, name) = split(&name);
        self.reach.held(parent).is_ok_and(|dir| dir.at(name).stat().is_ok_and(|stat| stat.is_some()))
    }

    /// The file at a path, with its hash. `None` if there is none that may be read.
    fn file_at(&mut self, path: &AbsPath, known: &State) -> Result<Option<Seen>, IoError> {
        let is_none = |error: &IoError| error.leads_nowhere() || error.errno() == Some(libc::EACCES);
        let named = match self.reach.path(path) {
            Err(error) if is_none(&error) => return Ok(None),
            named => named?,
        };
        let Some(stat) = named.at().stat()?.filter(|stat| stat.sort == Sort::File) else { return Ok(None) };
        match look_at_content(named.at(), stat, known) {
            Err(error) if is_none(&error) => Ok(None),
            seen => seen.map(Some),
        }
    }
}
