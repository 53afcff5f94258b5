//! Sockets with a path that processes outside listen at: what is not passed is masked.

use std::io;

use super::{Making, is_own, stat_at};
use crate::capture::error::Error;
use crate::error::At;
use crate::fs::dir::{Sort, Stat, leads_nowhere};
use crate::fs::path::AbsPath;
use crate::session::run::How;

impl Making<'_> {
    /// Whoever listens at a socket with a path could be asked to do what the command may not, and a read-only mount does not
    /// stop connect(2).
    pub(super) fn sockets(&mut self) -> Result<(), Error> {
        let places = &self.places;
        let apart = |path: &AbsPath| places.passes.iter().chain(&places.hidden).any(|top| path.is_under(top));
        let mut sockets = Vec::new();
        for path in listening()?.into_iter().filter(|path| !apart(path)) {
            if is_socket(&path)? {
                sockets.push(path);
            }
        }
        for socket in &sockets {
            if !self.is_captured(socket) && !is_own(socket) {
                self.say(socket, How::Masked, "a socket of a process outside", false);
            }
        }
        self.places.sockets = sockets;
        Ok(())
    }
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

/// "Num RefCount Protocol Flags Type St Inode Path"; an abstract name begins with `@`.
fn bound_path(line: &[u8]) -> Option<AbsPath> {
    let start = line.iter().position(|b| *b == b'/')?;
    let before = line[..start].split(|b| *b == b' ').filter(|word| !word.is_empty()).count();
    if before == 7 { AbsPath::parse(&line[start..]).ok() } else { None }
}

/// What is out of the caller's reach cannot be connected to either: the command has the caller's rights.
///
/// Errors: that it cannot be looked at for another reason (no descriptor left, a disk that fails) must not leave it unmasked.
fn is_socket(path: &AbsPath) -> Result<bool, Error> {
    let found = within_reach(stat_at(path)).at("look at the socket", path)?;
    Ok(found.is_some_and(|stat| stat.sort == Sort::Socket))
}

/// `None` for what is not there, and for what the caller may not come near: path_resolution(7).
fn within_reach(found: io::Result<Option<Stat>>) -> io::Result<Option<Stat>> {
    match found {
        Err(error) if leads_nowhere(&error) || error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
