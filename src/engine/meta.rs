//! Metadata: setting what differs, in the order in which nothing undoes what was set before.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::fs::Fs;
use crate::fs::dir::{Entry, Sort, Time};
use crate::tree::look::Seen;
use crate::tree::state::Meta;

/// What metadata is set on.
#[derive(Clone, Copy)]
pub enum On<'a> {
    /// A name, links not followed.
    Name(Entry<'a>),
    /// A file that is open, wherever its name leads by now; and the path of its folder, for messages.
    Open(&'a File, &'a Path),
}

impl<'a> From<Entry<'a>> for On<'a> {
    fn from(at: Entry<'a>) -> Self {
        On::Name(at)
    }
}

impl On<'_> {
    fn set_mode(self, fs: &Fs, mode: u32) -> io::Result<()> {
        match self {
            On::Name(at) => fs.set_mode(at, mode),
            On::Open(file, path) => fs.set_mode_of(file, mode, path),
        }
    }

    fn set_owner(self, fs: &Fs, uid: u32, gid: u32) -> io::Result<()> {
        match self {
            On::Name(at) => fs.set_owner(at, uid, gid),
            On::Open(file, path) => fs.set_owner_of(file, uid, gid, path),
        }
    }

    fn set_xattr(self, fs: &Fs, name: &[u8], value: &[u8]) -> io::Result<()> {
        match self {
            On::Name(at) => fs.set_xattr(at, name, value),
            On::Open(file, path) => fs.set_xattr_of(file, name, value, path),
        }
    }

    fn remove_xattr(self, fs: &Fs, name: &[u8]) -> io::Result<()> {
        match self {
            On::Name(at) => fs.remove_xattr(at, name),
            On::Open(file, path) => fs.remove_xattr_of(file, name, path),
        }
    }

    fn set_mtime(self, fs: &Fs, mtime: Time) -> io::Result<()> {
        match self {
            On::Name(at) => fs.set_mtime(at, mtime),
            On::Open(file, path) => fs.set_mtime_of(file, mtime, path),
        }
    }
}

/// Brings the object at `at` from the metadata `have` to `want`, setting only what differs. Owner first, as chown(2) clears
/// setuid and capabilities; then mode; then xattrs, capabilities and ACLs among them; the mtime last (D10); none of the others changes that.
pub fn bring<'a>(fs: &Fs, on: impl Into<On<'a>>, sort: Sort, have: &Meta, want: &Meta) -> io::Result<()> {
    let on = on.into();
    let owner = (have.uid, have.gid) != (want.uid, want.gid);
    if owner {
        // No moment with wider permission than both: what others may do goes first, the owner's rights stay.
        if sort != Sort::Symlink && have.mode & !want.mode & 0o077 != 0 {
            on.set_mode(fs, have.mode & (want.mode | 0o700))?;
        }
        on.set_owner(fs, want.uid, want.gid)?;
    }
    // chown(2) has cleared setuid and setgid.
    if sort != Sort::Symlink && (have.mode != want.mode || owner && want.mode & 0o6000 != 0) {
        on.set_mode(fs, want.mode)?;
    }
    // user.* xattrs need the right to write, which an owner who took it from himself gives himself for a moment: xattr(7).
    let closed =
        sort != Sort::Symlink && want.mode & 0o200 == 0 && have.xattrs != want.xattrs && !rustix::process::geteuid().is_root();
    if closed {
        on.set_mode(fs, want.mode | 0o200)?;
    }
    for (name, _) in &have.xattrs {
        if want.xattr(name).is_none() {
            on.remove_xattr(fs, name)?;
        }
    }
    // chmod changes the mask of an ACL, chown drops capabilities: these are set again although they look the same.
    let shaken =
        |name: &[u8]| name == b"system.posix_acl_access" && have.mode != want.mode || name == b"security.capability" && owner;
    for (name, value) in &want.xattrs {
        if have.xattr(name) != Some(value) || shaken(name) {
            on.set_xattr(fs, name, value)?;
        }
    }
    let acl = want.xattr(b"system.posix_acl_access").is_some();
    if closed || sort != Sort::Symlink && acl && have.xattrs != want.xattrs {
        // Setting an ACL sets the mode's bits from it; the recorded mode agrees with the recorded ACL but for setuid and the like.
        on.set_mode(fs, want.mode)?;
    }
    if have.mtime == want.mtime { Ok(()) } else { on.set_mtime(fs, want.mtime) }
}

/// What of an object's metadata is neither old nor new, nor what setting the one after the other leaves.
pub(super) fn foreign_meta(from: &Seen, to: &Seen, found: &Seen) -> Option<String> {
    let (old, new, now) = (&from.state.meta, &to.state.meta, &found.state.meta);
    let interim = [old.mode, new.mode, old.mode & (new.mode | 0o700)];
    let cleared = |mode: u32| interim.iter().any(|known| mode == *known || mode == known & 0o1777);
    if !cleared(now.mode) || (now.uid, now.gid) != (old.uid, old.gid) && (now.uid, now.gid) != (new.uid, new.gid) {
        return Some("somebody changed its mode or owner".into());
    }
    let known = |name: &[u8], value: &[u8]| {
        let shaken = name == b"system.posix_acl_access" && (old.xattr(name).is_some() || new.xattr(name).is_some());
        shaken || old.xattr(name) == Some(value) || new.xattr(name) == Some(value)
    };
    let foreign = now.xattrs.iter().any(|(name, value)| !known(name, value));
    foreign.then(|| "somebody changed its extended attributes".into())
}
