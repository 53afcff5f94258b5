//! Files that are themselves mounted, as /etc/hosts is in a container. An overlay takes directories only, so the command gets a copy in
//! their place. That takes time and room before it starts, hence the limits.

use super::choosing::{Choosing, PSEUDO, Wanted, is_below, is_own, may_write};
use super::layout::{Need, Route};
use crate::fs::{AbsPath, Mount, Sort, Stat};
use crate::session::How;

/// The number of files that are held unasked, those next to `/` first.
const FILES: usize = 16;

/// The most bytes of data that each of them may have: they are copied while the command waits.
pub const SIZE: u64 = 16 << 20;

/// Tells whether the root of a whole file system may be a file: with FUSE it may, else it is a directory.
fn may_be_file(mount: &Mount) -> bool {
    mount.fs_type.starts_with("fuse")
}

impl Choosing<'_> {
    /// Tells whether a file is mounted at a path.
    pub fn is_mounted_file(&self, path: &AbsPath) -> bool {
        self.point(path).is_some_and(|stat| stat.sort == Sort::File && stat.mount_root)
    }

    /// Tells whether a path is hidden in the run: no copy can be put there, and none is needed.
    pub fn is_hidden(&self, path: &AbsPath) -> bool {
        self.places.hidden.iter().any(|hidden| path.is_under(hidden))
    }

    /// Adds the mounted files that the caller can write.
    pub fn add_files(&mut self, wanted: &mut Vec<Wanted>) {
        let is_part = |mount: &&Mount| {
            (mount.root != b"/" || may_be_file(mount)) && !is_own(&mount.point) && !is_below(&mount.point, "/sys")
        };
        let mut mounts: Vec<&Mount> = self.mounts.iter().filter(is_part).collect();
        mounts.sort_by_key(|mount| mount.point.depth());
        let mut left = FILES;
        for mount in mounts {
            let point = &mount.point;
            let is_wanted = self.is_hidden(point) || wanted.iter().any(|place| place.path == *point);
            let seen = self.point(point).filter(|stat| stat.mount == mount.id && stat.sort == Sort::File && !is_wanted);
            let Some(stat) = seen else { continue };
            if let Some((how, why)) = self.refuse_mount(mount, &stat, left) {
                // For an ordinary user it is part of everything else that is read-only.
                if self.route == Route::Root || how == How::Uncovered {
                    self.leave(point, how, why);
                }
                continue;
            }
            left -= 1;
            let place = Wanted::new(point.clone(), "a file that is mounted");
            wanted.push(Wanted { need: Need::OrReadOnly, apart: true, sort: Sort::File, ..place });
        }
    }

    /// The reason why a file that nobody asked for is not held, if there is one.
    fn refuse_mount(&self, mount: &Mount, stat: &Stat, left: usize) -> Option<(How, String)> {
        let said = |how, why: &str| Some((how, why.to_owned()));
        if PSEUDO.contains(&mount.fs_type.as_str()) {
            return said(How::ReadOnly, "its files are the kernel's own");
        }
        if mount.read_only() {
            return said(How::ReadOnly, "its file system is mounted read-only");
        }
        if let Some((how, why)) = self.refuse_file(mount, stat) {
            let may_write = || rustix::fs::access(mount.point.as_path(), rustix::fs::Access::WRITE_OK).is_ok();
            return said(if may_write() { how } else { How::ReadOnly }, why);
        }
        if mount.root == b"/" {
            return said(How::Uncovered, "the file is itself a file system (FUSE)");
        }
        if stat.blocks * 512 > SIZE {
            let mib = SIZE >> 20;
            let why = format!(
                "a mounted file of more than {mib} MiB, which would have to be copied: it is held where capture.also names it"
            );
            return Some((How::Uncovered, why));
        }
        if left == 0 {
            return said(How::Uncovered, "there are many mounted files: it is held where capture.also names it");
        }
        None
    }

    /// The reason why a mounted file can't be held, whoever asks for it.
    pub fn refuse_file(&self, mount: &Mount, stat: &Stat) -> Option<(How, &'static str)> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if stat.locked {
            return Some((How::Uncovered, "chattr +i or +a is set on the file that is mounted there"));
        }
        // The copy goes into the overlay of the directory around it, if that has one; else it would have to go over the file.
        let has_around = || self.wanted.iter().any(|place| mount.point.is_under(place) && may_write(place));
        if self.route == Route::User && mount.is_deleted() && !has_around() {
            return Some((How::Uncovered, "the mounted file was deleted: mount it again to have it held"));
        }
        if self.route == Route::User && (stat.uid, stat.gid) != (uid, gid) {
            let why = "a mounted file of another user or group, which an ordinary user's capture cannot change";
            return Some((How::Uncovered, why));
        }
        None
    }
}
