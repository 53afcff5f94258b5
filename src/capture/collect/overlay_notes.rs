//! The notes that overlayfs leaves in an upper: whiteouts, and xattrs with a prefix of its own.

use std::io;

use super::renamed_directories;
use super::upper_reader::UpperReader;
use crate::capture::place::layout::Route;
use crate::error::IoError;
use crate::fs::{AbsPath, Entry, Sort, Stat};
use crate::tree::{Meta, Seen, State, What, observe};

const CAPABILITY: &[u8] = b"security.capability";
/// The place of the version in a capability.
const REVISION: usize = 3;

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

    /// Keeps the real file's capability where the upper has the kernel's copy of it, which counts in the user's namespace alone: version 3
    /// of capabilities(7). The user could not set the real one.
    pub fn keep_capability(&self, before: &State, after: &mut State) {
        let (Some(real), Some(copy)) = (before.meta.xattr(CAPABILITY), after.meta.xattr(CAPABILITY)) else { return };
        if self.facts.route != Route::User || !is_copy_in_namespace(real, copy) {
            return;
        }
        let kept = |(name, value): &(Box<[u8]>, Box<[u8]>)| {
            (name.clone(), if **name == *CAPABILITY { real.into() } else { value.clone() })
        };
        after.meta.xattrs = after.meta.xattrs.iter().map(kept).collect();
    }

    /// Warns of a program with a capability of the user's namespace: its name is new or its content is, so a commit puts it as it is.
    pub fn warn_of_capability(&mut self, path: &AbsPath, after: &State) {
        let is_of_namespace = after.meta.xattr(CAPABILITY).is_some_and(|value| namespace_of(value) == Some(user()));
        if self.facts.route == Route::User && is_of_namespace {
            self.warnings
                .push(format!("{path}: its capability counts in namespaces of yours alone: only root can set a real one"));
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
