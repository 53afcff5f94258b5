//! The notes that overlayfs leaves in an upper: whiteouts, and xattrs with a prefix of its own.

use std::io;

use super::renamed_directories;
use super::upper_reader::UpperReader;
use crate::capture::place::layout::Route;
use crate::error::IoError;
use crate::fs::{AbsPath, Entry, Sort, Stat};
use crate::tree::{Meta, Seen, State, What, observe};

impl UpperReader<'_> {
    fn prefix(&self) -> &'static str {
        self.facts.route.notes()
    }

    /// The xattr in which overlayfs notes something.
    pub fn note(&self, what: &str) -> Vec<u8> {
        [self.prefix(), what].concat().into_bytes()
    }

    pub fn is_opaque_state(&self, state: &State) -> bool {
        state.meta.xattr(&self.note("opaque")) == Some(b"y")
    }

    /// Tells whether a renamed directory's rest is missing in the upper: it is yet to be filled in, or never can be, as somebody removed
    /// its origin meanwhile, which is a conflict.
    pub fn lost(&self, state: &State) -> bool {
        let lost = self.facts.route == Route::Root
            && state.is_dir()
            && !self.is_opaque_state(state)
            && state.meta.xattr(renamed_directories::REDIRECT).is_some();
        if lost {
            self.redirected.set(true);
        }
        lost && !self.facts.looks
    }

    /// Warns of chattr +i and +a on a copied-up object: overlayfs keeps them in a note and does not set them.
    pub fn warn_of_flags(&mut self, path: &AbsPath, state: &State) {
        if let Some(flags) = state.meta.xattr(&self.note("protattr")) {
            let flags = String::from_utf8_lossy(flags).into_owned();
            self.warnings.push(format!("{path}: the attribute '{flags}' (chattr) is not part of the change"));
        }
    }

    /// The state as the command saw it: overlayfs' notes removed, the command's own xattrs of that name unescaped.
    pub fn upper_state(&self, mut state: State) -> State {
        let prefix = self.prefix().as_bytes();
        if state.meta.xattrs.iter().all(|(name, _)| !name.starts_with(prefix)) {
            return state;
        }
        let kept = state.meta.xattrs.iter().filter_map(|(name, value)| match name.strip_prefix(prefix) {
            None => Some((name.clone(), value.clone())),
            Some(rest) => Some(([prefix, rest.strip_prefix(b"overlay.")?].concat().into(), value.clone())),
        });
        let mut kept: Vec<_> = kept.collect();
        kept.sort();
        state.meta.xattrs = kept.into();
        state
    }

    pub fn real(&self, at: Entry<'_>, stat: &Stat) -> Result<Seen, IoError> {
        match observe::object_of(at, stat) {
            // The xattrs of a file that its owner may not read, and that we may not chmod.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && stat.sort != Sort::Symlink => {
                let what = if stat.sort == Sort::Directory {
                    What::Directory
                } else {
                    What::File { size: stat.size, hash: None, index: None }
                };
                let state = State { what, meta: Meta::of(stat, Vec::new()) };
                Ok(Seen { state, print: observe::fingerprint(stat), nlink: stat.nlink, blocks: stat.blocks * 512 })
            }
            seen => seen,
        }
    }

    /// Keeps the real object's xattrs with overlayfs' prefix in `after`: a run does not see them, so the command left them.
    pub fn keep_unseen(&self, before: &State, after: &mut State) {
        let prefix = self.prefix().as_bytes();
        let is_unseen = |(name, _): &&(Box<[u8]>, Box<[u8]>)| name.starts_with(prefix) && after.meta.xattr(name).is_none();
        let unseen: Vec<_> = before.meta.xattrs.iter().filter(is_unseen).cloned().collect();
        if !unseen.is_empty() {
            let mut all = [&*after.meta.xattrs, &unseen].concat();
            all.sort();
            after.meta.xattrs = all.into();
        }
    }
}
