//! Sockets and FIFOs of processes outside: dead unless passed.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use rustix::fs::Access;

use super::choosing::{Choosing, PSEUDO, is_own, real, stat_at};
use super::covers::{Cover, Lid, Part};
use super::layout::Route;
use crate::error::{At, Error, IoError};
use crate::fs::{AbsPath, Dir, Sort, Stat, mounts};
use crate::session::How;

/// The directory where programs keep their sockets (hier(7)), covered whatever else is there.
const RUN: &str = "/run";

/// The most directories and names that are covered, at about 35 µs each.
const COVERED: usize = 300;

impl Choosing<'_> {
    /// Finds the sockets to mask. A process that listens at a socket with a path could be asked to do what the command may not, and a
    /// read-only mount does not stop connect(2).
    pub fn sockets(&mut self) -> Result<(), Error> {
        let places = &self.places;
        let apart = |path: &AbsPath| places.passes.iter().chain(&places.hidden).any(|top| path.is_under(top));
        let mut sockets = Vec::new();
        for path in listening()?.into_iter().filter(|path| !apart(path)) {
            if is_socket(&path)? {
                sockets.push(path);
            }
        }
        if self.route == Route::User {
            self.cover(&sockets);
        }
        for socket in &sockets {
            if !self.is_captured(socket) && !is_own(socket) && !self.is_covered(socket) {
                self.say(socket, How::Masked, "a socket of a process outside", false);
            }
        }
        self.places.sockets = sockets;
        Ok(())
    }

    fn is_covered(&self, path: &AbsPath) -> bool {
        self.places.covers.iter().any(|cover| path.is_under(&cover.path))
    }

    /// Covers /run, and each other directory with a known socket. Apart from /run, only directories without a mount below: in others, each
    /// socket is masked by its name.
    fn cover(&mut self, sockets: &[AbsPath]) {
        let mut left = COVERED;
        if let Some(run) = real(Path::new(RUN)).filter(|run| self.can_be_covered(run)) {
            let parts = if self.has_mount_below(&run) { self.put_together(&run, &mut left) } else { Ok(None) };
            match parts {
                Ok(parts) => self.add_cover(run, parts),
                Err(why) => {
                    let why =
                        format!("{why}: sockets that other programs make there during the run stay reachable for the command");
                    self.say(&run, How::ReadOnly, why, false);
                }
            }
        }
        for socket in sockets {
            let Some(dir) = socket.parent().filter(|dir| !self.is_covered(dir) && self.can_be_covered(dir)) else { continue };
            if left > 0 && dir.depth() > 0 && !is_own(&dir) && !self.has_mount_below(&dir) && self.is_lower(&dir) {
                left -= 1;
                self.add_cover(dir, None);
            }
        }
        // A cover comes before those that lie in it.
        self.places.covers.sort_by(|a, b| a.path.cmp(&b.path));
    }

    fn add_cover(&mut self, path: AbsPath, parts: Option<Vec<Part>>) {
        self.say(&path, How::Masked, "read-only; sockets and FIFOs of processes outside are dead", false);
        self.places.covers.push(Cover { path, parts });
    }

    /// Tells whether a directory can be covered: not if it is captured, passed or hidden.
    fn can_be_covered(&self, dir: &AbsPath) -> bool {
        !self.is_captured(dir) && !self.places.passes.iter().chain(&self.places.hidden).any(|top| dir.is_under(top))
    }

    fn has_mount_below(&self, dir: &AbsPath) -> bool {
        self.mounts.iter().any(|mount| mount.point != *dir && mount.point.is_under(dir))
    }

    /// Tells whether the file system of a directory can be an overlay's lower. FUSE can't: it may not answer.
    fn is_lower(&self, dir: &AbsPath) -> bool {
        let is_one = |kind: &str| !PSEUDO.contains(&kind) && !kind.starts_with("fuse") && kind != "ramfs";
        mounts::containing(self.mounts, dir).is_some_and(|mount| is_one(&mount.fs_type))
    }

    /// The parts that make up a directory with mounts below it. `Err` says why it can't be put together.
    fn put_together(&self, top: &AbsPath, left: &mut usize) -> Result<Option<Vec<Part>>, String> {
        let mut parts = Vec::new();
        let mut queue = VecDeque::from([(top.clone(), Vec::new())]);
        while let Some((dir, above)) = queue.pop_front() {
            let listed = Dir::open(dir.as_path()).and_then(|held| Ok((held.names_and_sorts()?, held)));
            // A directory further down may be gone by now.
            let Ok((names, held)) = listed else { continue };
            for (name, sort) in names {
                let Ok(path) = dir.join(&name) else { continue };
                let is_point = self.mounts.iter().any(|mount| mount.point == path);
                // No stat at a mount point: the file system mounted there may not answer.
                let stat = if is_point { None } else { held.at(&name).stat().ok().flatten() };
                let Some(sort) = stat.map(|stat| stat.sort).or(sort) else { continue };
                let as_what = self.lid(&path, sort, is_point);
                *left = left.checked_sub(1).ok_or_else(|| format!("more than {COVERED} files and directories beside mounts"))?;
                let below = if above.is_empty() { name } else { [&above, &b"/"[..], &name].concat() };
                if as_what == Lid::Made {
                    queue.push_back((path, below.clone()));
                }
                parts.push(Part { below, as_what });
            }
        }
        Ok(Some(parts))
    }

    /// The lid for a name. A device cannot be opened, but may be passed.
    fn lid(&self, path: &AbsPath, sort: Sort, is_point: bool) -> Lid {
        let directory = sort == Sort::Directory;
        match sort {
            Sort::Directory if is_point && !self.is_lower(path) => Lid::Real { directory },
            Sort::Directory if !may_enter(path) => Lid::Closed,
            Sort::Directory if self.has_mount_below(path) => Lid::Made,
            Sort::Directory => Lid::Overlay,
            Sort::File | Sort::Char | Sort::Block => Lid::Real { directory },
            Sort::Symlink => Lid::Link,
            Sort::Fifo | Sort::Socket => Lid::Dead { fifo: sort == Sort::Fifo },
        }
    }
}

/// Tells whether the caller may look up names in a directory: access(2).
fn may_enter(path: &AbsPath) -> bool {
    rustix::fs::access(path.as_path(), Access::EXEC_OK).is_ok()
}

/// The paths that sockets are bound to, from /proc/net/unix: proc_pid_net(5). One bound by a relative path can't be found.
///
/// Errors: without the list nothing could be masked, and the command must not be started (H1).
fn listening() -> Result<Vec<AbsPath>, Error> {
    const LIST: &str = "/proc/net/unix";
    let text = std::fs::read(LIST).at("list the sockets that are bound from", LIST)?;
    let mut paths: Vec<AbsPath> = text.split(|b| *b == b'\n').filter_map(bound_path).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The path in a line "Num RefCount Protocol Flags Type St Inode Path"; an abstract name begins with `@`.
fn bound_path(line: &[u8]) -> Option<AbsPath> {
    let start = line.iter().position(|b| *b == b'/')?;
    let before = line[..start].split(|b| *b == b' ').filter(|word| !word.is_empty()).count();
    if before == 7 { AbsPath::parse(&line[start..]).ok() } else { None }
}

/// Tells whether a path is a socket. One out of the caller's reach does not count: the command, with the same rights, can't connect.
///
/// Errors: a failed look for another reason (no descriptor left, a failing disk) must not leave it unmasked.
fn is_socket(path: &AbsPath) -> Result<bool, Error> {
    let found = within_reach(stat_at(path)).at("look at the socket", path)?;
    Ok(found.is_some_and(|stat| stat.sort == Sort::Socket))
}

/// `None` for what is not there, and for what the caller may not reach: path_resolution(7).
fn within_reach(found: Result<Option<Stat>, IoError>) -> Result<Option<Stat>, IoError> {
    match found {
        Err(error) if error.leads_nowhere() || error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use crate::capture::place::sockets::*;

    #[test]
    fn a_bound_socket_s_path_is_found_whatever_bytes_it_has() {
        let line = |rest: &str| format!("0000000000000000: 00000002 00000000 00010000 0001 01 12345{rest}");
        for (rest, want) in [(" /run/a b", Some("/run/a b")), (" @/abstract", None), ("", None), (" relative/s", None)] {
            let found = bound_path(line(rest).as_bytes());
            assert_eq!(found, want.map(|path| AbsPath::parse(path).unwrap()), "{rest}");
        }
        assert_eq!(bound_path(b"Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }
}
