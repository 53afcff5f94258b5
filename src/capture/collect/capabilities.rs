//! Programs with a capability, in the upper of an ordinary user's run. There the kernel makes of it one that counts in the user's namespaces
//! alone, version 3 of capabilities(7), and the user cannot set the real one again. Where only metadata changed, the real file keeps its own.
//! Where the program was renamed or linked, the change names the real file: a commit gives that the new name.

use std::mem::take;

use super::tree_below::HELD;
use super::upper_reader::{CopiedProgram, LinkedChange, UpperReader, hash, is_equal};
use crate::capture::place::layout::Route;
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Entry};
use crate::session::Change;
use crate::tree::{Hash, State};

const CAPABILITY: &[u8] = b"security.capability";
/// The place of the version in a capability.
const REVISION: usize = 3;

impl UpperReader<'_> {
    /// Keeps the real file's capability where the upper has the kernel's copy of it.
    pub fn keep_capability(&self, before: &State, after: &mut State) {
        after.meta = self.with_real_capability(before, after).unwrap_or_else(|| after.clone()).meta;
    }

    /// `after` with the capability of `before`. `None` if it is not a copy of that.
    fn with_real_capability(&self, before: &State, after: &State) -> Option<State> {
        let (real, copy) = (before.meta.xattr(CAPABILITY)?, after.meta.xattr(CAPABILITY)?);
        if self.facts.route != Route::User || !is_copy_in_namespace(real, copy) {
            return None;
        }
        let mut with = after.clone();
        let kept = |(name, value): &(Box<[u8]>, Box<[u8]>)| {
            (name.clone(), if **name == *CAPABILITY { real.into() } else { value.clone() })
        };
        with.meta.xattrs = after.meta.xattrs.iter().map(kept).collect();
        Some(with)
    }

    /// Keeps the capability of a file of one name that has the content of `before`. One that an earlier step renamed or linked is another
    /// name of the real file: it keeps the capability only as long as it has all the other metadata too.
    pub fn keep_capability_of_same(&self, path: &AbsPath, is_held: bool, before: &State, after: &mut State) -> Result<(), Error> {
        let is_further_name = is_held && self.facts.net.at(path)?.is_some_and(|known| known.original.is_some());
        if let Some(with) = self.with_real_capability(before, after).filter(|with| !is_further_name || is_equal(before, with)) {
            *after = with;
        }
        Ok(())
    }

    /// Notes a program with a capability of the user's namespaces: its name is new or its content is.
    pub fn note_program(&mut self, path: &AbsPath, at: Entry<'_>, after: &State) -> Result<(), Error> {
        let is_of_namespace = after.meta.xattr(CAPABILITY).is_some_and(|value| namespace_of(value) == Some(user()));
        if self.facts.route == Route::User && is_of_namespace {
            self.programs.push(CopiedProgram { path: path.clone(), hash: hash(at).at("read the upper of", path)? });
        }
        Ok(())
    }

    /// Takes out of the names of one object the one that the tree has, if the command only linked it: the others become names of the real file.
    pub fn take_out_linked_program(&mut self, names: &mut Vec<LinkedChange>) -> Result<(), Error> {
        let is_linked = |linked: &LinkedChange| {
            let (before, after) = linked.change.before.object.as_ref().zip(linked.change.after.as_ref())?;
            self.with_real_capability(before, after).filter(|with| !linked.moves && is_equal(before, with))
        };
        let Some((i, real)) = names.iter().enumerate().find_map(|(i, linked)| Some((i, is_linked(linked)?))) else {
            return Ok(());
        };
        let Some(original) = self.real_path(&names[i].change)? else { return Ok(()) };
        let linked = names.remove(i);
        self.needless.extend((!linked.hidden).then_some(linked.change.path));
        for name in names.iter_mut().map(|linked| &mut linked.change) {
            (name.after, name.original) = (Some(real.clone()), Some(original.clone()));
        }
        Ok(())
    }

    /// Finds the real file of each program that the command renamed; warns of one that is none.
    pub fn find_originals(&mut self) -> Result<(), Error> {
        for program in take(&mut self.programs) {
            let Some(i) = self.index(&program.path).filter(|i| self.list[*i].original.is_none()) else { continue };
            match self.original_of(&program, i)? {
                Some((original, real)) => {
                    (self.list[i].after, self.list[i].original) = (Some(real), Some(original));
                }
                None => self.warnings.push(format!(
                    "{}: its capability counts in namespaces of yours alone: only root can set a real one",
                    program.path
                )),
            }
        }
        Ok(())
    }

    /// The path of the real file that a program was, and the state with its capability.
    fn original_of(&mut self, program: &CopiedProgram, i: usize) -> Result<Option<(AbsPath, State)>, Error> {
        let (Some(copy), Some(content)) = (self.list[i].after.clone(), program.hash) else { return Ok(None) };
        for at in 0..self.list.len() {
            let Some(before) = self.list[at].before.object.as_ref().filter(|before| before.size() == copy.size()) else {
                continue;
            };
            let Some(real) = self.with_real_capability(before, &copy).filter(|real| is_equal(before, real)) else { continue };
            let Some(original) = self.real_path(&self.list[at])? else { continue };
            if hash_of(&original)? == Some(content) {
                // A commit gives the file another name, and so another ctime: its content has to tell that it is the same.
                self.list[at].before.object.iter_mut().for_each(|before| before.set_hash(content));
                return Ok(Some((original, real)));
            }
        }
        Ok(None)
    }

    /// The path on the tree of what was there before a change.
    fn real_path(&self, change: &Change) -> Result<Option<AbsPath>, Error> {
        match change.from {
            Some(HELD) => Ok(self.facts.net.at(&change.path)?.and_then(|known| known.original)),
            _ => Ok(Some(change.path.clone())),
        }
    }
}

/// True if a file can stay and get other metadata. The capability of a user's own file is not the user's to remove or set.
pub fn may_stay(route: Route, before: &State, after: &State) -> bool {
    let (real, now) = (before.meta.xattr(CAPABILITY), after.meta.xattr(CAPABILITY));
    let is_copy = || real.zip(now).is_some_and(|(real, copy)| is_copy_in_namespace(real, copy));
    route != Route::User || real == now || is_copy()
}

/// The hash of a file on the tree. `None` if it is gone, or may not be read.
fn hash_of(path: &AbsPath) -> Result<Option<Hash>, Error> {
    let (parent, name) = path.split().unwrap_or((b"/", b"."));
    match Dir::open("/".as_ref())?.open_across(&parent[1..]) {
        Ok(dir) if dir.at(name).stat()?.is_some() => Ok(hash(dir.at(name)).at("read", path)?),
        Err(error) if !error.leads_nowhere() => Err(error.into()),
        _ => Ok(None),
    }
}

/// True if `copy` gives what `real`, of version 2, gives, in the namespace of this user: `struct vfs_ns_cap_data` of linux/capability.h.
fn is_copy_in_namespace(real: &[u8], copy: &[u8]) -> bool {
    let same = real.iter().zip(copy).enumerate().all(|(i, (one, other))| i == REVISION || one == other);
    real.len() == 20 && real[REVISION] == 2 && same && namespace_of(copy) == Some(user())
}

/// The user whose namespaces a capability of version 3 counts in, as bytes of its id.
fn namespace_of(capability: &[u8]) -> Option<[u8; 4]> {
    let root = capability.get(20..).filter(|_| capability[REVISION] == 3)?;
    root.try_into().ok()
}

fn user() -> [u8; 4] {
    rustix::process::geteuid().as_raw().to_le_bytes()
}
