//! Taking away recant's own folders with all that is in them. No recursion: depth costs neither stack nor descriptors.

use std::io;

use rustix::io::Errno;

use super::Fs;
use super::dir::{Dir, Entry, Sort};

/// What is left to do in a folder on the way down.
struct Frame {
    /// None where so many lie below that it was closed.
    dir: Option<Dir>,
    names: std::vec::IntoIter<Vec<u8>>,
}

/// So many folders on the way down stay open.
const OPEN_LEVELS: usize = 8;

impl Fs {
    /// Takes away whatever is at `at`, all that lies under it included; nothing there is fine. Follows no link, crosses no
    /// mount. For recant's own folders: the content of the store and what it put beside a target.
    pub fn remove_all(&self, at: Entry<'_>) -> io::Result<()> {
        if self.removed_alone(at)? {
            return Ok(());
        }
        let (mut below, mut above) = (at.name.to_vec(), Vec::<Frame>::new());
        let mut dir = at.open_dir()?;
        let mut names = dir.names()?.into_iter();
        loop {
            if let Some(name) = names.next() {
                if !self.removed_alone(dir.at(&name))? {
                    let under = dir.at(&name).open_dir()?;
                    let inside = std::mem::replace(&mut names, under.names()?.into_iter());
                    above.push(Frame { dir: Some(std::mem::replace(&mut dir, under)), names: inside });
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
            dir = frame.dir.map_or_else(|| at.dir.open_below(&below), Ok)?;
            names = frame.names;
            self.rmdir(dir.at(&emptied[1..]))?;
        }
    }

    /// Takes away what is no folder, or an empty one. False where there is more to it, which can be listed now.
    fn removed_alone(&self, at: Entry<'_>) -> io::Result<bool> {
        match self.unlink(at) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error)
                if error.kind() == io::ErrorKind::IsADirectory || error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        // Most folders of a run that did little are empty.
        match self.rmdir(at) {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ENOTEMPTY | libc::EEXIST | libc::EPERM | libc::ENOTDIR)) => {
                return Err(error);
            }
            Ok(()) => return Ok(true),
            Err(_) => {}
        }
        let stat = at.stat()?;
        if stat.is_none_or(|stat| stat.sort != Sort::Folder) {
            return Err(Errno::PERM.into());
        }
        // overlayfs leaves its work folder with mode 000: only root can list that as it is.
        if stat.is_some_and(|stat| stat.mode & 0o700 != 0o700) && !rustix::process::geteuid().is_root() {
            self.set_mode(at, 0o700)?;
        }
        Ok(false)
    }
}
