//! Removes recant's own directories with all that is in them. No recursion: depth costs neither stack nor descriptors.

use std::io;

use rustix::io::Errno;

use super::dir::{Dir, Entry, Inode, NameAndSort, Sort, Stat};
use super::door::Fs;
use crate::error::{At, IoError};

/// The rest of the work in a directory on the way down.
struct Frame {
    /// `None` once so many lie below that it was closed.
    dir: Option<Dir>,
    /// Its identity, checked when it is opened again.
    inode: Inode,
    names: std::vec::IntoIter<NameAndSort>,
}

/// The number of directories on the way down that stay open.
const OPEN_LEVELS: usize = 8;

impl Fs {
    /// Removes whatever is at `at`, with all that lies under it; nothing there is fine. Follows no link, crosses no mount. For recant's own
    /// directories: the content of the store and what it put beside a target.
    pub fn remove_all(&self, at: Entry<'_>) -> Result<(), IoError> {
        self.empty_and_remove(at).at("remove", at)
    }

    fn empty_and_remove(&self, at: Entry<'_>) -> Result<(), IoError> {
        let Some(stat) = self.left_alone(at, None)? else { return Ok(()) };
        let (mut below, mut above) = (at.name.to_vec(), Vec::<Frame>::new());
        let mut dir = at.open_dir()?;
        let (mut names, mut inode) = (dir.first_listed()?.into_iter(), stat.inode());
        loop {
            if let Some((name, sort)) = names.next() {
                if let Some(stat) = self.left_alone(dir.at(&name), sort)? {
                    let under = dir.at(&name).open_dir()?;
                    let inside = std::mem::replace(&mut names, under.first_listed()?.into_iter());
                    let (dir, inode) = (std::mem::replace(&mut dir, under), std::mem::replace(&mut inode, stat.inode()));
                    above.push(Frame { dir: Some(dir), inode, names: inside });
                    if let Some(far) = above.len().checked_sub(OPEN_LEVELS + 1) {
                        above[far].dir = None;
                    }
                    below.extend([b"/", &*name].concat());
                }
                continue;
            }
            let Some(frame) = above.pop() else { return self.rmdir(at) };
            let slash = below.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
            let emptied = below.split_off(slash);
            let is_it = |above: &Dir| above.stat().is_ok_and(|stat| stat.inode() == frame.inode);
            // From the one below, as the way from the top is as long as the tree is deep. But that may have been moved elsewhere.
            let nearby = || dir.above().ok().filter(is_it);
            dir = frame.dir.or_else(nearby).map_or_else(|| at.dir.open_below(&below), Ok)?;
            inode = frame.inode;
            names = frame.names;
            self.rmdir(dir.at(&emptied[1..]))?;
        }
    }

    /// Removes an object other than a full directory. Returns the stat of a full one, which can now be listed. `sort`: what it was when its
    /// directory was listed.
    fn left_alone(&self, at: Entry<'_>, sort: Option<Sort>) -> Result<Option<Stat>, IoError> {
        if sort != Some(Sort::Directory) {
            match self.unlink(at) {
                Ok(()) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::IsADirectory || error.errno() == Some(libc::EPERM) => {}
                Err(error) => return Err(error),
            }
        }
        // Most directories of a run that did little are empty.
        match self.rmdir(at) {
            Err(error) if !matches!(error.errno(), Some(libc::ENOTEMPTY | libc::EEXIST | libc::EPERM | libc::ENOTDIR)) => {
                return Err(error);
            }
            Ok(()) => return Ok(None),
            Err(_) => {}
        }
        let stat = at.stat()?.filter(|stat| stat.sort == Sort::Directory).ok_or(Errno::PERM).at("remove", at)?;
        // overlayfs leaves its work directory with mode 000: only root can list it then.
        if stat.mode & 0o700 != 0o700 && !rustix::process::geteuid().is_root() {
            self.set_mode(at, 0o700)?;
        }
        Ok(Some(stat))
    }
}
