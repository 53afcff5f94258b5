//! Nobody but the owner may do more at any step of [`bring`] than before or after it, over many pairs of metadata; and each step that it is cut
//! off at is recognised and taken back.
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::fs::dir::Dir;
use crate::fs::watch::{Step, Watch};
use crate::tree::look;
use crate::tree::state::State;

/// Stops before a step, and notes what the file is like before each.
struct Stops {
    top: PathBuf,
    at: usize,
    count: AtomicUsize,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Watch for Stops {
    fn before(&self, _: &Step<'_>) -> io::Result<()> {
        self.seen.lock().expect("no panic").push(seen(&self.top));
        if self.count.fetch_add(1, Ordering::SeqCst) == self.at { Err(io::Error::other("stopped")) } else { Ok(()) }
    }
}

fn seen(top: &Path) -> Seen {
    look::look(Dir::open(top).expect("the folder").at(b"f")).expect("a look").expect("the file")
}

/// The value of an ACL: acl(5), `struct posix_acl_xattr_entry` of the kernel.
fn acl(mode: u32, group: u16, named: (u32, u16)) -> Vec<u8> {
    let (user, mask, other) = ((mode >> 6 & 7) as u16, (mode >> 3 & 7) as u16, (mode & 7) as u16);
    let entries = [(1, user, u32::MAX), (2, named.1, named.0), (4, group, u32::MAX), (16, mask, u32::MAX), (32, other, u32::MAX)];
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend(u16::to_le_bytes(tag).into_iter().chain(rights.to_le_bytes()).chain(u32::to_le_bytes(id)));
    }
    bytes
}

/// What the kernel asks in `posix_acl_permission`: for user `uid` in the one group `gid`; with whose rights a program would run beside.
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
        // Whoever owns it could give himself what he likes.
        if uid != now.uid || have.uid != want.uid {
            let more: Vec<_> = now_has.iter().filter(|right| !before.contains(right) && !after.contains(right)).collect();
            assert!(more.is_empty(), "user {uid} of group {gid} may do {more:?} in {now:?}\nfrom {have:?}\nto {want:?}");
        }
    }
}

/// Metadata as it is once it was set.
fn kinds(fs: &Fs, top: &Path) -> Vec<Meta> {
    let mut kinds = Vec::new();
    let capability = [1u32 | 0x0200_0000, 1, 0, 0, 0].map(u32::to_le_bytes).concat();
    for owner in [(1, 1), (2, 2), (1, 2)] {
        for mode in [0o600, 0o604, 0o660, 0o4755, 0o400] {
            for xattr in [
                None,
                Some((ACL, acl(mode, 0, (2, 7)))),
                Some((ACL, acl(mode, 7, (3, 4)))),
                Some((CAPABILITY, capability.clone())),
                Some((&b"user.a"[..], b"value".to_vec())),
            ] {
                make(fs, top);
                let (dir, at) = (Dir::open(top).expect("the folder"), "f".as_bytes());
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
    let dir = Dir::open(top).expect("the folder");
    fs.unlink_if_there(dir.at(b"f")).expect("no file");
    fs.create(dir.at(b"f"), 0o600).expect("a file");
}

fn bring_to(fs: &Fs, top: &Path, want: &Meta) -> io::Result<()> {
    let dir = Dir::open(top).expect("the folder");
    bring(fs, dir.at(b"f"), Sort::File, &seen(top).state.meta, want)
}

#[test]
fn nobody_may_do_more_on_the_way_than_before_or_after_and_every_step_is_taken_back() {
    let shm = Path::new("/dev/shm");
    if !rustix::process::geteuid().is_root() || !shm.is_dir() {
        println!("skipped: rights on the way: needs root and /dev/shm");
        return;
    }
    let (fs, folder) = (Fs::default(), tempfile::tempdir_in(shm).expect("a folder"));
    let top = folder.path();
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
