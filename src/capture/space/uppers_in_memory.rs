//! Uppers in memory, for a store on a file system that can't hold one (overlayfs in a container, NFS). The run's uppers then lie on a tmpfs
//! of its own, of limited size, and its changes are carried into the store before recant returns. Root alone: an ordinary user can't make a
//! mount that outlives the run's namespace.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::capture::place::layout::directory;
use crate::capture::run::is_inside::MARK;
use crate::capture::run::raw_calls;
use crate::error::{At, Error};
use crate::fs::{Dir, Fs, Sort};
use crate::session::{Changes, Run, Session, object_name, part};

/// File systems on which the kernel takes no upper, by magic number (statfs(2)): overlayfs, NFS, FUSE, FAT, exFAT, 9p, CIFS, SMB.
const NO_UPPER: &[u32] = &[0x794c_7630, 0x6969, 0x6573_5546, 0x4d44, 0x2011_bab0, 0x0102_1997, 0xff53_4d42, 0xfe53_4d42];

/// True if the store's file system can hold no upper.
pub fn is_needed(store: &Dir) -> Result<bool, Error> {
    let found = rustix::fs::statfs(store.path()).at("look at the file system of", store.path().display())?;
    // A magic number has 32 bits, whatever the field's width.
    Ok(NO_UPPER.contains(&u32::try_from(found.f_type & 0xffff_ffff).unwrap_or(0)))
}

/// The most bytes that it may take: half of the free memory, or less if less is asked for.
pub fn limit(max_size: Option<u64>) -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = info.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse::<u64>().ok());
    let half = free.unwrap_or(0) * 1024 / 2;
    max_size.map_or(half, |max| max.min(half))
}

/// A tmpfs for uppers, mounted nowhere until the run's namespace takes it.
#[derive(Debug)]
pub struct Memory {
    /// While nobody has mounted it, the mount ends with this descriptor: fsmount(2).
    pub mount: OwnedFd,
    /// Its top directory, which stays reachable when the namespace is gone.
    pub root: Dir,
}

/// Makes a tmpfs of so many bytes.
pub fn make(bytes: u64, tag: &str) -> Result<Memory, Error> {
    let what = "uppers in memory";
    let making = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at("open a tmpfs for", what)?;
    for (key, value) in [("source", format!("{MARK}{tag}")), ("size", bytes.to_string()), ("mode", "700".into())] {
        rustix::mount::fsconfig_set_string(&making, key, &value).at("set an option of a tmpfs for", what)?;
    }
    rustix::mount::fsconfig_create(&making).at("make a tmpfs for", what)?;
    let mount = rustix::mount::fsmount(&making, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NODEV)
        .at("mount a tmpfs for", what)?;
    let root = Dir::open(Path::new(&raw_calls::held_path(&mount))).at("open", what)?;
    Ok(Memory { mount, root })
}

/// Copies the files of changes out of memory to `held/objects/<n>`; names of one file share an object. All else is made from its record at
/// commit.
pub fn carry(fs: &Fs, session: &Session, memory: &Dir, run: &Run, changes: &Changes) -> Result<(), Error> {
    let held = part(&session.dir, b"held")?;
    directory(fs, held.at(b"objects"))?;
    let mut made: HashMap<u64, Vec<u8>> = HashMap::new();
    for change in &changes.list {
        let is_file = change.after.as_ref().is_some_and(|state| state.sort() == Sort::File);
        if !is_file || change.in_place() {
            continue;
        }
        let Some(path) = run.upper_of(change.step, &change.path) else { continue };
        let file = memory.open_file_below(&path).at("open what is held of", &change.path)?;
        let stat = crate::fs::stat_of(&file).at("look at what is held of", &change.path)?;
        let name = object_name(change.n);
        let (objects, name) = session.split(&name)?;
        let at = objects.at(name);
        fs.remove_all(at)?;
        if let Some(first) = made.get(&stat.ino) {
            fs.link(objects.at(first), at)?;
            continue;
        }
        let to = fs.create(at, 0o600)?;
        fs.copy(&file, &to, at).at("carry over what is held of", &change.path)?;
        made.insert(stat.ino, name.to_vec());
    }
    Ok(())
}
