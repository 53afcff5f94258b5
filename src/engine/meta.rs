//! Metadata: setting what differs, in the order in which nothing undoes what was set before.

use std::io;

use crate::fs::Fs;
use crate::fs::dir::{Entry, Sort};
use crate::tree::state::Meta;

/// Brings the object at `at` from the metadata `have` to `want`, setting only what differs. Owner first, as chown(2) clears
/// setuid and capabilities; then mode; then xattrs, capabilities and ACLs among them; the mtime last (D10); none of the others changes that.
pub fn bring(fs: &Fs, at: Entry<'_>, sort: Sort, have: &Meta, want: &Meta) -> io::Result<()> {
    let owner = (have.uid, have.gid) != (want.uid, want.gid);
    if owner {
        // No moment with wider permission than both: what others may do goes first, the owner's rights stay.
        if sort != Sort::Symlink && have.mode & !want.mode & 0o077 != 0 {
            fs.set_mode(at, have.mode & (want.mode | 0o700))?;
        }
        fs.set_owner(at, want.uid, want.gid)?;
    }
    let special = (have.mode | want.mode) & 0o6000 != 0;
    if sort != Sort::Symlink && (have.mode != want.mode || owner && (special || have.mode & !want.mode & 0o077 != 0)) {
        fs.set_mode(at, want.mode)?;
    }
    // user.* xattrs need the right to write, which an owner who took it from himself gives himself for a moment: xattr(7).
    let closed =
        sort != Sort::Symlink && want.mode & 0o200 == 0 && have.xattrs != want.xattrs && !rustix::process::geteuid().is_root();
    if closed {
        fs.set_mode(at, want.mode | 0o200)?;
    }
    for (name, _) in &have.xattrs {
        if want.xattr(name).is_none() {
            fs.remove_xattr(at, name)?;
        }
    }
    // chmod changes the mask of an ACL, chown drops capabilities: these are set again although they look the same.
    let shaken =
        |name: &[u8]| name == b"system.posix_acl_access" && have.mode != want.mode || name == b"security.capability" && owner;
    for (name, value) in &want.xattrs {
        if have.xattr(name) != Some(value) || shaken(name) {
            fs.set_xattr(at, name, value)?;
        }
    }
    let acl = want.xattr(b"system.posix_acl_access").is_some();
    if closed || sort != Sort::Symlink && acl && have.xattrs != want.xattrs {
        // Setting an ACL sets the mode's bits from it; the recorded mode agrees with the recorded ACL but for setuid and the like.
        fs.set_mode(at, want.mode)?;
    }
    if have.mtime == want.mtime { Ok(()) } else { fs.set_mtime(at, want.mtime) }
}
