//! Sets metadata that differs, in an order in which nothing undoes what was set before.

use rustix::thread::{CapabilitySet, capabilities};

use crate::engine::item::Turn;
use crate::engine::journal::Journal;
use crate::engine::reach::{Reach, open};
use crate::error::{Error, IoError};
use crate::fs::{Entry, Fs, Sort, Time};
use crate::tree::{Meta, Seen, observe};

pub const ACL: &[u8] = b"system.posix_acl_access";
pub const CAPABILITY: &[u8] = b"security.capability";

/// True if the caller has these rights of root's, as a service may have been given them (capabilities(7)).
pub fn has(rights: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(rights))
}

/// Brings the object at `at` from the metadata `have` to `want`, setting only what differs. On the way nobody but the owner may do more
/// than before or after: what narrows comes first, the mode that opens last. The owner precedes xattrs, as chown(2) clears setuid and
/// capabilities; the mtime comes last (D10), as nothing else changes it.
pub fn bring(fs: &Fs, at: Entry<'_>, sort: Sort, have: &Meta, want: &Meta) -> Result<(), IoError> {
    let is_link = sort == Sort::Symlink;
    let mut mode = if is_link { want.mode } else { narrow(fs, at, have, want)? };
    let owner = (have.uid, have.gid) != (want.uid, want.gid);
    if owner {
        fs.set_owner(at, want.uid, want.gid)?;
    }
    // user.* xattrs need the right to write. An owner without it takes it for a moment: xattr(7).
    if !is_link && mode & 0o200 == 0 && have.xattrs != want.xattrs && !rustix::process::geteuid().is_root() {
        mode |= 0o200;
        fs.set_mode(at, mode)?;
    }
    set_xattrs(fs, at, have, want, owner, mode != have.mode && !is_link)?;
    // Setting an ACL sets the mode's bits from it; the recorded mode agrees with the recorded ACL but for setuid and the like.
    let shaken = owner && (have.mode | want.mode) & 0o6000 != 0 || want.xattr(ACL).is_some() && have.xattrs != want.xattrs;
    if !is_link && (mode != want.mode || shaken) {
        fs.set_mode(at, want.mode)?;
    }
    if have.mtime == want.mtime { Ok(()) } else { fs.set_mtime(at, want.mtime) }
}

/// Clears mode bits that are not wanted, before the owner, an ACL or a capability gives the rest another meaning: with an ACL the group
/// bits are its mask, without it the group's own. Returns the mode afterwards.
fn narrow(fs: &Fs, at: Entry<'_>, have: &Meta, want: &Meta) -> Result<u32, IoError> {
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
    // Clearing only setuid, setgid or the sticky bit would protect nobody.
    if narrow & 0o777 == have.mode & 0o777 {
        return Ok(have.mode);
    }
    fs.set_mode(at, narrow)?;
    Ok(narrow)
}

/// Removes xattrs, then sets others. chmod changes an ACL's mask, chown drops capabilities: those are set again even if they look equal.
fn set_xattrs(fs: &Fs, at: Entry<'_>, have: &Meta, want: &Meta, owner: bool, masked: bool) -> Result<(), IoError> {
    for (name, _) in &have.xattrs {
        if want.xattr(name).is_none() {
            fs.remove_xattr(at, name)?;
        }
    }
    let shaken = |name: &[u8]| name == ACL && (masked || have.mode != want.mode) || name == CAPABILITY && owner;
    // The ACL comes last, as it withdraws the right to write that the others need.
    let (acl, others): (Vec<_>, Vec<_>) = want.xattrs.iter().partition(|(name, _)| **name == *ACL);
    for (name, value) in others.into_iter().chain(acl) {
        if have.xattr(name) != Some(value) || shaken(name) {
            fs.set_xattr(at, name, value)?;
        }
    }
    Ok(())
}

/// Opens again what the steps to undo had opened and is closed: a kill came before that, or a power cut undid it. The undo of metadata
/// then finds the directory as its step did, and closes it last.
pub fn open_again(fs: &Fs, reach: &mut Reach, journal: &Journal, begun: usize) -> Result<(), Error> {
    for turn in journal.turns.iter().take(begun).filter(|turn| matches!(turn, Turn::Open(_))) {
        let step = journal.step(*turn);
        let (Some(from), Some(to)) = (&step.from, &step.to) else { continue };
        let Some(directory) = open(reach.path(step.path))? else { continue };
        let Some(found) = observe::object(directory.at())? else { continue };
        if from.print.identity.is(found.print.identity) && from.state.meta_difference(&found.state).is_none() {
            fs.set_mode(directory.at(), to.state.meta.mode)?;
        }
    }
    Ok(())
}

/// The part of an object's metadata that is neither old nor new, nor an effect of setting one after the other.
pub fn foreign_meta(from: &Seen, to: &Seen, found: &Seen) -> Option<String> {
    let (old, new, now) = (&from.state.meta, &to.state.meta, &found.state.meta);
    if !has_mode_of_ours(old, new, now.mode)
        || (now.uid, now.gid) != (old.uid, old.gid) && (now.uid, now.gid) != (new.uid, new.gid)
    {
        return Some("another process changed its mode or owner".into());
    }
    let known = |name: &[u8], value: &[u8]| {
        let ours = [old, new].map(|meta| meta.xattr(name));
        let shaken = || name == ACL && ours.iter().flatten().any(|acl| named_in(acl) == named_in(value));
        ours.contains(&Some(value)) || shaken()
    };
    let foreign = now.xattrs.iter().any(|(name, value)| !known(name, value));
    foreign.then(|| "another process changed its extended attributes".into())
}

/// True if a file's time is neither old nor new. The operation writes nothing into it, so somebody else has. File systems may cut times
/// to fewer than nine decimal places (ext3 none, NTFS seven) and to seconds of 32 bits.
pub fn has_foreign_time(from: &Seen, to: &Seen, found: &Seen) -> bool {
    let now = found.state.meta.mtime;
    let cut_to = |set: Time, ns: u32| Time { ns: set.ns - set.ns % ns, ..set };
    let clamped = |set: Time| Time { s: set.s.clamp(i64::from(i32::MIN), i64::from(i32::MAX)), ns: 0 };
    let is_it = |set: Time| now == clamped(set) || (0..=9).any(|digits| now == cut_to(set, 10u32.pow(digits)));
    found.state.is_file() && ![from, to].iter().any(|seen| is_it(seen.state.meta.mtime))
}

/// The entries of an ACL that chmod(2) does not change: those with names, and the group's if there is a mask. acl(5), `struct
/// posix_acl_xattr_entry` of the kernel.
fn named_in(acl: &[u8]) -> Vec<&[u8]> {
    let tag = |entry: &[u8]| entry.first().copied().unwrap_or_default();
    let entries = || acl.get(4..).unwrap_or_default().chunks(8);
    let has_mask = entries().any(|entry| tag(entry) == 0x10);
    entries().filter(|entry| matches!(tag(entry), 0x02 | 0x08) || has_mask && tag(entry) == 0x04).collect()
}

/// True for a mode that `bring` sets on the way there or back.
fn has_mode_of_ours(old: &Meta, new: &Meta, now: u32) -> bool {
    if [old.mode, new.mode].contains(&now) {
        return true;
    }
    let modes = interim_modes(old, new);
    // The owner may write for a moment; chown clears setuid, and setgid if the group may execute.
    let writes = old.xattrs != new.xattrs;
    let rights = |known: &u32| (now ^ known) & 0o777 == 0 || writes && (now ^ (known | 0o200)) & 0o777 == 0;
    let special = |known: &u32| now & 0o1000 == known & 0o1000 && now & 0o6000 & !known == 0;
    modes.iter().any(rights) && modes.iter().any(special)
}

/// The modes that `narrow` leaves between two, wherever it was interrupted and repeated. chmod(2) alone has none in between.
fn interim_modes(old: &Meta, new: &Meta) -> Vec<u32> {
    let mut modes = vec![old.mode, new.mode];
    let owner = (old.uid, old.gid) != (new.uid, new.gid);
    if !owner && [ACL, CAPABILITY].into_iter().all(|name| old.xattr(name) == new.xattr(name)) {
        return modes;
    }
    let hidden = if owner && [old, new].iter().any(|meta| meta.xattr(ACL).is_some()) { 0o077 } else { 0 };
    let kept = [old.mode, new.mode].into_iter().flat_map(|want| [want | 0o700, if owner { want } else { want | 0o700 }]);
    let kept: Vec<u32> = kept.flat_map(|want| [want, want & !hidden]).collect();
    let mut next = 0;
    while let Some(mode) = modes.get(next).copied() {
        for narrow in kept.iter().map(|kept| mode & kept) {
            if !modes.contains(&narrow) {
                modes.push(narrow);
            }
        }
        next += 1;
    }
    modes
}

#[cfg(all(test, feature = "crash-points"))]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use crate::engine::work::metadata::*;
    use crate::fs::Dir;
    use crate::fs::watch::{Step, Watch};
    use crate::tree::{State, observe};

    /// Stops before a step, and notes the state of the file before each.
    struct Stops {
        top: PathBuf,
        at: usize,
        count: AtomicUsize,
        seen: Arc<Mutex<Vec<Seen>>>,
    }

    impl Watch for Stops {
        fn before(&self, _: &Step<'_>) -> std::io::Result<()> {
            self.seen.lock().expect("no panic").push(seen(&self.top));
            if self.count.fetch_add(1, Ordering::SeqCst) == self.at { Err(std::io::Error::other("stopped")) } else { Ok(()) }
        }
    }

    fn seen(top: &Path) -> Seen {
        observe::object(Dir::open(top).expect("the directory").at(b"f")).expect("a look").expect("the file")
    }

    /// The value of an ACL: acl(5), `struct posix_acl_xattr_entry` of the kernel.
    fn acl(mode: u32, group: u16, named: (u32, u16)) -> Vec<u8> {
        let (user, mask, other) = ((mode >> 6 & 7) as u16, (mode >> 3 & 7) as u16, (mode & 7) as u16);
        let entries =
            [(1, user, u32::MAX), (2, named.1, named.0), (4, group, u32::MAX), (16, mask, u32::MAX), (32, other, u32::MAX)];
        let mut bytes = 2u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            bytes.extend(u16::to_le_bytes(tag).into_iter().chain(rights.to_le_bytes()).chain(u32::to_le_bytes(id)));
        }
        bytes
    }

    /// The rights of user `uid` in the one group `gid`, as in the kernel's `posix_acl_permission`, and those a program would run with.
    fn rights(meta: &Meta, uid: u32, gid: u32) -> BTreeSet<(u32, Option<u32>, bool)> {
        let entries = meta.xattr(ACL).map(|acl| &acl[4..]).unwrap_or_default().chunks(8);
        let field = |entry: &[u8], at: usize| u32::from(u16::from_le_bytes([entry[at], entry[at + 1]]));
        let entries: Vec<_> = entries.map(|entry| (field(entry, 0), field(entry, 2), field(entry, 4))).collect();
        let (mask, find) = (meta.mode >> 3 & 7, |tag: u32| entries.iter().find(move |entry| entry.0 == tag));
        let bits = if uid == meta.uid {
            meta.mode >> 6 & 7
        } else if let Some((_, named, _)) = find(2).filter(|entry| entry.2 == uid) {
            named & mask
        } else if gid == meta.gid {
            find(4).map_or(mask, |group| group.1 & mask)
        } else {
            meta.mode & 7
        };
        let mut rights: BTreeSet<_> = [4, 2, 1].into_iter().filter(|bit| bits & bit != 0).map(|bit| (bit, None, false)).collect();
        if bits & 1 != 0 {
            rights.extend((meta.mode & 0o4000 != 0).then_some((1, Some(meta.uid), false)));
            rights.extend(meta.xattr(CAPABILITY).map(|_| (1, None, true)));
        }
        rights
    }

    fn nobody_gains(have: &Meta, want: &Meta, now: &Meta) {
        for (uid, gid) in [(1, 1), (2, 2), (3, 3), (3, 1), (3, 2), (4, 4)] {
            let (before, after, now_has) = (rights(have, uid, gid), rights(want, uid, gid), rights(now, uid, gid));
            // An owner can take any right anyway.
            if uid != now.uid || have.uid != want.uid {
                let more: Vec<_> = now_has.iter().filter(|right| !before.contains(right) && !after.contains(right)).collect();
                assert!(more.is_empty(), "user {uid} of group {gid} may do {more:?} in {now:?}\nfrom {have:?}\nto {want:?}");
            }
        }
    }

    /// Metadata as read back after it was set.
    fn kinds(fs: &Fs, top: &Path) -> Vec<Meta> {
        let mut kinds = Vec::new();
        let capability = [1u32 | 0x0200_0000, 1, 0, 0, 0].map(u32::to_le_bytes).concat();
        for owner in [(1, 1), (2, 2), (1, 2)] {
            for mode in [0o600, 0o604, 0o660, 0o4755, 0o6711, 0o400] {
                for xattr in [
                    None,
                    Some((ACL, acl(mode, 0, (2, 7)))),
                    Some((ACL, acl(mode, 7, (3, 4)))),
                    Some((CAPABILITY, capability.clone())),
                    Some((&b"user.a"[..], b"value".to_vec())),
                ] {
                    make(fs, top);
                    let (dir, at) = (Dir::open(top).expect("the directory"), "f".as_bytes());
                    fs.set_owner(dir.at(at), owner.0, owner.1).expect("an owner");
                    xattr.into_iter().for_each(|(name, value)| fs.set_xattr(dir.at(at), name, &value).expect("an xattr"));
                    fs.set_mode(dir.at(at), mode).expect("a mode");
                    kinds.push(Meta { mtime: Time { s: 5, ns: 0 }, ..seen(top).state.meta });
                }
            }
        }
        kinds
    }

    fn make(fs: &Fs, top: &Path) {
        let dir = Dir::open(top).expect("the directory");
        fs.unlink_if_there(dir.at(b"f")).expect("no file");
        fs.create(dir.at(b"f"), 0o600).expect("a file");
    }

    fn bring_to(fs: &Fs, top: &Path, want: &Meta) -> Result<(), IoError> {
        let dir = Dir::open(top).expect("the directory");
        bring(fs, dir.at(b"f"), Sort::File, &seen(top).state.meta, want)
    }

    /// Sets times cut as a file system cuts them, to fewer decimal places or 32 bits, and one as somebody else sets it.
    #[test]
    fn a_time_that_a_file_system_cut_is_the_one_that_was_set() {
        let directory = tempfile::tempdir().expect("a directory");
        make(&Fs::default(), directory.path());
        let file = seen(directory.path());
        let at = |s: i64, ns: u32| {
            let meta = Meta { mtime: Time { s, ns }, ..file.state.meta.clone() };
            Seen { state: State { meta, ..file.state.clone() }, ..file.clone() }
        };
        let (from, to) = (at(5, 123_456_789), at(4_000_000_000, 987_654_321));
        let last = i64::from(i32::MAX);
        let cut = [(5, 123_456_789), (5, 123_456_700), (5, 0), (4_000_000_000, 987_654_000), (last, 0)];
        for (s, ns) in cut {
            assert!(!has_foreign_time(&from, &to, &at(s, ns)), "{s}.{ns:09}");
        }
        for (s, ns) in [(5, 123_456_788), (5, 987_654_321), (6, 0), (last, 1), (4_000_000_001, 0)] {
            assert!(has_foreign_time(&from, &to, &at(s, ns)), "{s}.{ns:09}");
        }
    }

    #[test]
    fn nobody_may_do_more_on_the_way_than_before_or_after_and_every_step_is_taken_back() {
        let shm = Path::new("/dev/shm");
        if !rustix::process::geteuid().is_root() || !shm.is_dir() {
            println!("skipped: rights on the way: needs root and /dev/shm");
            return;
        }
        let (fs, directory) = (Fs::default(), tempfile::tempdir_in(shm).expect("a directory"));
        let top = directory.path();
        let kinds = kinds(&fs, top);
        for (have, want) in kinds.iter().flat_map(|have| kinds.iter().map(move |want| (have, want))) {
            for at in 0.. {
                make(&fs, top);
                bring_to(&fs, top, have).expect("the metadata before");
                let from = seen(top);
                assert_eq!(from.state.meta, *have);
                let to = Seen { state: State { meta: want.clone(), ..from.state.clone() }, ..from.clone() };
                let steps = Arc::new(Mutex::new(Vec::new()));
                let stops = |at| Stops { top: top.into(), at, count: AtomicUsize::new(0), seen: steps.clone() };
                let done = bring_to(&Fs::watched(Box::new(stops(at))), top, want).is_ok();
                if done {
                    assert_eq!(seen(top).state.meta, *want, "from {have:?}");
                }
                bring_to(&Fs::watched(Box::new(stops(usize::MAX))), top, have).expect("the way back");
                assert_eq!(seen(top).state.meta, *have, "back from step {at} to {want:?}");
                for now in steps.lock().expect("no panic").iter() {
                    nobody_gains(have, want, &now.state.meta);
                    assert_eq!(foreign_meta(&from, &to, now), None, "{now:?}\nfrom {have:?}\nto {want:?}");
                }
                if done {
                    break;
                }
            }
        }
    }
}
