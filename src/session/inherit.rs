//! Metadata that a new object inherits from its directory: group, setgid, and the default ACL, as the kernel sets them (inode(7),
//! acl(5)). A staged object lies in the store until it is committed, so the kernel cannot do it.

use crate::fs::Time;
use crate::tree::{Meta, Xattrs};

const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";

const USER_OBJ: u16 = 0x01;
const GROUP_OBJ: u16 = 0x04;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// Makes the metadata of a new object in a directory that has `directory`, asked for with `mode` (0666 or 0777, or what the user named) by
/// a process with `umask`, `uid` and `gid`. A default ACL of the directory replaces the umask.
pub fn new_meta(directory: &Meta, is_dir: bool, mode: u32, umask: u32, uid: u32, gid: u32, mtime: Time) -> Meta {
    const SETGID: u32 = 0o2000;
    let setgid = directory.mode & SETGID != 0;
    let gid = if setgid { directory.gid } else { gid };
    let default = directory.xattr(DEFAULT);
    let (mut mode, access) = match default.and_then(|acl| inherited(acl, mode)) {
        Some((mode, access)) => (mode, access),
        None => (mode & !umask, None),
    };
    if is_dir && setgid {
        mode |= SETGID;
    }
    let mut xattrs = Vec::new();
    xattrs.extend(access.map(|acl| (ACCESS.into(), acl.into())));
    xattrs.extend(default.filter(|_| is_dir).map(|acl| (DEFAULT.into(), acl.into())));
    Meta { mode, uid, gid, mtime, xattrs: Xattrs::from(xattrs) }
}

/// Changes `meta` as chmod(2) does: an ACL changes with the mode, its mask if it has one. The rule is the kernel's posix_acl_chmod_masq.
pub fn set_mode(meta: &mut Meta, mode: u32) {
    meta.mode = mode;
    for (_, acl) in meta.xattrs.iter_mut().filter(|(name, _)| &**name == ACCESS) {
        if let Some((_, shaped)) = shaped(acl, mode, |_, asked| asked) {
            *acl = shaped.into();
        }
    }
}

/// The permission bits and the access ACL that a default ACL gives to an object made with `mode`; no ACL if the bits say it all. `None`
/// if the ACL cannot be read. The rule is the kernel's posix_acl_create_masq.
fn inherited(default: &[u8], mode: u32) -> Option<(u32, Option<Vec<u8>>)> {
    let (bits, acl) = shaped(default, mode, |has, asked| has & asked)?;
    let plain = acl.len() == 4 + 3 * 8;
    Some((bits, (!plain).then_some(acl)))
}

/// Sets the entries for owner, group or mask, and others to `by` of what they and `mode` have. Returns the permission bits and the ACL.
fn shaped(acl: &[u8], mode: u32, by: impl Fn(u8, u8) -> u8) -> Option<(u32, Vec<u8>)> {
    let (version, entries) = acl.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*version) != 2 || entries.len() % 8 != 0 {
        return None;
    }
    let mut acl = acl.to_vec();
    let tag = |entry: &[u8]| u16::from_le_bytes([entry[0], entry[1]]);
    let has_mask = entries.chunks_exact(8).any(|entry| tag(entry) == MASK);
    let group = if has_mask { MASK } else { GROUP_OBJ };
    let mut bits = mode & 0o7000;
    for entry in acl[4..].chunks_exact_mut(8) {
        let tag = tag(entry);
        let shift = match tag {
            USER_OBJ => 6,
            OTHER => 0,
            _ if tag == group => 3,
            _ => continue,
        };
        // The permissions fill three bits: acl(5).
        let allowed = by(entry[2] & 7, u8::try_from(mode >> shift & 7).unwrap_or(7));
        entry[2] = allowed;
        bits |= u32::from(allowed) << shift;
    }
    Some((bits, acl))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut bytes = 2_u32.to_le_bytes().to_vec();
        for (tag, perm, id) in entries {
            bytes.extend_from_slice(&tag.to_le_bytes());
            bytes.extend_from_slice(&perm.to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        bytes
    }

    fn directory(mode: u32, default: Option<Vec<u8>>) -> Meta {
        let xattrs = default.map(|acl| (DEFAULT.into(), acl.into())).into_iter().collect();
        Meta { mode, uid: 1, gid: 50, mtime: Time::default(), xattrs }
    }

    #[test]
    fn the_umask_counts_where_there_is_no_default_acl() {
        let meta = new_meta(&directory(0o755, None), false, 0o666, 0o027, 7, 8, Time::default());
        assert_eq!((meta.mode, meta.uid, meta.gid, meta.xattrs.len()), (0o640, 7, 8, 0));
        let meta = new_meta(&directory(0o2755, None), true, 0o777, 0o022, 7, 8, Time::default());
        assert_eq!((meta.mode, meta.gid), (0o2755, 50));
    }

    /// Compares with a directory and file that the kernel made, byte by byte.
    #[test]
    fn a_default_acl_gives_what_the_kernel_gives() {
        let none = u32::MAX;
        for entries in [
            vec![(1, 7, none), (4, 5, none), (0x20, 0, none)],
            vec![(1, 7, none), (2, 7, 1234), (4, 5, none), (0x10, 7, none), (0x20, 1, none)],
        ] {
            let temp = tempfile::tempdir().unwrap();
            let dir = crate::fs::Dir::open(temp.path()).unwrap();
            let fs = crate::fs::Fs::new();
            if let Err(error) = fs.set_xattr(dir.at(b"."), DEFAULT, &acl(&entries)) {
                println!("skipped: {}: no ACLs: {error}", temp.path().display());
                return;
            }
            drop(fs.create(dir.at(b"f"), 0o666).unwrap());
            fs.mkdir(dir.at(b"d"), 0o777).unwrap();
            let top = crate::tree::observe::directory(&dir).unwrap().state.meta;
            for (name, is_dir, mode) in [(&b"f"[..], false, 0o666), (b"d", true, 0o777)] {
                let real = crate::tree::observe::object(dir.at(name)).unwrap().unwrap().state.meta;
                let ours = new_meta(&top, is_dir, mode, 0o022, real.uid, real.gid, real.mtime);
                assert_eq!(ours, real, "{}", name.escape_ascii());
            }
        }
    }
}
