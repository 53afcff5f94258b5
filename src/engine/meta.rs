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

const ACL: &[u8] = b"system.posix_acl_access";
const CAPABILITY: &[u8] = b"security.capability";

/// Brings the object at `at` from the metadata `have` to `want`, setting only what differs. Nobody but the owner may do more on the way
/// than before or after: what narrows comes first, the mode that opens last. The owner comes before xattrs, as chown(2) clears setuid and
/// capabilities; the mtime after all else (D10); none of the others changes that.
pub fn bring<'a>(fs: &Fs, on: impl Into<On<'a>>, sort: Sort, have: &Meta, want: &Meta) -> io::Result<()> {
    let (on, is_link) = (on.into(), sort == Sort::Symlink);
    let mut mode = if is_link { want.mode } else { narrow(fs, on, have, want)? };
    let owner = (have.uid, have.gid) != (want.uid, want.gid);
    if owner {
        on.set_owner(fs, want.uid, want.gid)?;
    }
    // user.* xattrs need the right to write, which an owner who took it from himself gives himself for a moment: xattr(7).
    if !is_link && mode & 0o200 == 0 && have.xattrs != want.xattrs && !rustix::process::geteuid().is_root() {
        mode |= 0o200;
        on.set_mode(fs, mode)?;
    }
    set_xattrs(fs, on, have, want, owner, mode != have.mode && !is_link)?;
    // Setting an ACL sets the mode's bits from it; the recorded mode agrees with the recorded ACL but for setuid and the like.
    let shaken = owner && (have.mode | want.mode) & 0o6000 != 0 || want.xattr(ACL).is_some() && have.xattrs != want.xattrs;
    if !is_link && (mode != want.mode || shaken) {
        on.set_mode(fs, want.mode)?;
    }
    if have.mtime == want.mtime { Ok(()) } else { on.set_mtime(fs, want.mtime) }
}

/// Takes away what is not wanted of the mode before the owner, an ACL or a capability gives the rest another meaning: the bits of the group
/// are an ACL's mask, and when that goes they are the group's own. Gives the mode that there is then.
fn narrow(fs: &Fs, on: On<'_>, have: &Meta, want: &Meta) -> io::Result<u32> {
    let differs = |name: &[u8]| have.xattr(name) != want.xattr(name);
    let owner = (have.uid, have.gid) != (want.uid, want.gid);
    if !owner && !differs(ACL) && !differs(CAPABILITY) {
        return Ok(have.mode);
    }
    let mut kept = if have.uid == want.uid { want.mode | 0o700 } else { want.mode };
    if owner && (have.xattr(ACL).is_some() || want.xattr(ACL).is_some()) {
        kept &= !0o077;
    }
    let narrow = have.mode & kept;
    // Of setuid, setgid and the sticky bit alone nobody gains.
    if narrow & 0o777 == have.mode & 0o777 {
        return Ok(have.mode);
    }
    on.set_mode(fs, narrow)?;
    Ok(narrow)
}

/// What is not wanted goes first. chmod changes the mask of an ACL, chown drops capabilities: these are set again although they look the same.
fn set_xattrs(fs: &Fs, on: On<'_>, have: &Meta, want: &Meta, owner: bool, masked: bool) -> io::Result<()> {
    for (name, _) in &have.xattrs {
        if want.xattr(name).is_none() {
            on.remove_xattr(fs, name)?;
        }
    }
    let shaken = |name: &[u8]| name == ACL && (masked || have.mode != want.mode) || name == CAPABILITY && owner;
    for (name, value) in &want.xattrs {
        if have.xattr(name) != Some(value) || shaken(name) {
            on.set_xattr(fs, name, value)?;
        }
    }
    Ok(())
}

/// What of an object's metadata is neither old nor new, nor what setting the one after the other leaves.
pub(super) fn foreign_meta(from: &Seen, to: &Seen, found: &Seen) -> Option<String> {
    let (old, new, now) = (&from.state.meta, &to.state.meta, &found.state.meta);
    let (narrow, closed) = (old.mode & new.mode, [old.mode, new.mode].map(|mode| mode & 0o700));
    let kept = [old.mode & (new.mode | 0o700), new.mode & (old.mode | 0o700)];
    let interim = [old.mode, new.mode, narrow, kept[0], kept[1], closed[0], closed[1], narrow & 0o700];
    // The owner may write for a moment; chown clears setuid and setgid.
    let rights = |known: &u32| (now.mode ^ known) & 0o777 == 0 || (now.mode ^ (known | 0o200)) & 0o777 == 0;
    let special = |known: &u32| now.mode & 0o7000 == known & 0o7000 || now.mode & 0o7000 == known & 0o1000;
    let ours = interim.iter().any(rights) && [old.mode, new.mode, narrow].iter().any(special);
    if !ours || (now.uid, now.gid) != (old.uid, old.gid) && (now.uid, now.gid) != (new.uid, new.gid) {
        return Some("somebody changed its mode or owner".into());
    }
    let known = |name: &[u8], value: &[u8]| {
        let shaken = name == ACL && (old.xattr(name).is_some() || new.xattr(name).is_some());
        shaken || old.xattr(name) == Some(value) || new.xattr(name) == Some(value)
    };
    let foreign = now.xattrs.iter().any(|(name, value)| !known(name, value));
    foreign.then(|| "somebody changed its extended attributes".into())
}

#[cfg(all(test, feature = "crash-points"))]
#[path = "meta_tests.rs"]
mod tests;
