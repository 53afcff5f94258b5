//! Chooses the pieces of a directory that a user's run cannot capture as a whole, because something is mounted below it: see
//! [`split`](super::lay_pieces).

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};

use super::choose_files::SIZE;
use super::choosing::{Choosing, may_write};
use super::layout::Need;
use super::pieces::{Piece, PieceKind, Split};
use crate::capture::collect::facts::full_path;
use crate::error::IoError;
use crate::fs::{AbsPath, Dir, Mount, Sort, Stat};
use crate::session::How;

/// The most directories of split ones that get an overlay of their own. Each costs about 0.4 ms and a descriptor. First come those that the
/// run was asked for, then those changed last.
pub const OVERLAYS: usize = 400;

/// The most bytes that are copied from the files of all split directories; in each directory the small files come first.
pub const COPIES: u64 = 64 << 20;

/// The reason given for the files beyond that.
const TOO_LARGE: &str = "a file beside a mount that is too large to be copied (16 MiB, or 64 with the others)";

/// A name that was found, before it is decided what becomes of it.
struct Candidate {
    below: Vec<u8>,
    path: AbsPath,
    sort: Sort,
    /// `None` at a mount point: the file system mounted there is not asked.
    stat: Option<Stat>,
}

impl Choosing<'_> {
    /// Takes a directory with mounts below it as one that is put together.
    pub fn take_split(&mut self, path: &AbsPath, mount: &Mount, why: &str, need: Need) {
        let points = self.locked_below(path, mount.id);
        let mut pieces = Vec::new();
        let mut queue = VecDeque::from([Vec::new()]);
        while let Some(below) = queue.pop_front() {
            let found = full_path(path, &below).and_then(|dir| self.found(&dir, &below, &points));
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    // For a directory further down this was checked before.
                    let text = format!("{why}: a mount lies below it, and it cannot be listed: {}", error.why());
                    self.say(path, How::ReadOnly, text, true);
                    return;
                }
            };
            for piece in self.decide(found, &points) {
                if piece.as_what == PieceKind::Split {
                    queue.push_back(piece.below.clone());
                }
                pieces.push(piece);
            }
        }
        let first = points.first().map(ToString::to_string).unwrap_or_default();
        let cause = format!(
            "{}: its directories cannot be renamed or removed in a run",
            counted("a mount below it", &first, points.len())
        );
        self.target(path, mount, Vec::new(), &format!("{why}; {cause}"), need);
        self.say_points(path, &points);
        if let Some(target) = self.places.targets.iter_mut().find(|target| target.path == *path) {
            target.split = Some(Split(pieces));
        }
    }

    fn say_points(&mut self, path: &AbsPath, points: &[AbsPath]) {
        for point in points {
            if self.is_lost(point) {
                let why = "the mounted object was deleted, so the run cannot show it: umount it";
                self.say(point, How::Hidden, why, false);
                continue;
            }
            // A wanted place gets a row of its own.
            if self.wanted.contains(point) {
                continue;
            }
            let can_be = self.point(point).is_some_and(|stat| stat.sort == Sort::Directory) && may_write(point);
            let remedy = if can_be { ": capture.also holds what is written there" } else { "" };
            self.say(point, How::ReadOnly, format!("a mount below {path}{remedy}"), false);
        }
    }

    /// Tells whether the mount at a point was deleted: the kernel mounts it nowhere else. A file may have a copy instead.
    fn is_lost(&self, point: &AbsPath) -> bool {
        self.files.binary_search(point).is_err() && self.mounts.iter().any(|mount| mount.point == *point && mount.is_deleted())
    }

    /// The names in a directory, sorted; without lost mounts.
    fn found(&self, dir: &AbsPath, below: &[u8], points: &[AbsPath]) -> Result<Vec<Candidate>, IoError> {
        let held = Dir::open(dir.as_path())?;
        let mut names = held.names_and_sorts()?;
        names.sort_by(|a, b| a.0.cmp(&b.0));
        let mut found = Vec::with_capacity(names.len());
        for (name, sort) in names {
            let Ok(path) = dir.join(&name) else { continue };
            let is_point = points.binary_search(&path).is_ok();
            if is_point && self.is_lost(&path) {
                continue;
            }
            let stat = if is_point { None } else { held.at(&name).stat().ok().flatten() };
            let told = || sort.or_else(|| self.point(&path).map(|stat| stat.sort));
            // It may be gone by now.
            let Some(sort) = (if is_point { told() } else { stat.map(|stat| stat.sort) }) else { continue };
            let below = if below.is_empty() { name } else { [below, b"/", &name].concat() };
            found.push(Candidate { below, path, sort, stat });
        }
        Ok(found)
    }

    /// Decides what becomes of the names in one directory.
    fn decide(&mut self, found: Vec<Candidate>, points: &[AbsPath]) -> Vec<Piece> {
        let copied = self.copied(&found);
        let overlays = self.overlays(&found);
        let piece = |found: &Candidate| {
            let directory = found.sort == Sort::Directory;
            let Some(stat) = found.stat else { return PieceKind::Mount { directory } };
            // A mount that hangs in another mount than the directory does.
            if stat.mount_root {
                return PieceKind::Mount { directory };
            }
            match found.sort {
                Sort::Directory if overlays.contains(&found.path) && points.iter().any(|point| point.is_under(&found.path)) => {
                    PieceKind::Split
                }
                Sort::Directory if overlays.contains(&found.path) => PieceKind::Overlay,
                Sort::File if !copied.contains(&found.path) => PieceKind::Real { directory },
                Sort::Directory | Sort::Char | Sort::Block => PieceKind::Real { directory },
                Sort::File | Sort::Symlink | Sort::Fifo | Sort::Socket => PieceKind::Copy,
            }
        };
        found.iter().map(|found| Piece { below: found.below.clone(), as_what: piece(found) }).collect()
    }

    /// The directories that get an overlay, or are split: those that the user may change.
    fn overlays(&mut self, found: &[Candidate]) -> HashSet<AbsPath> {
        let uid = rustix::process::geteuid().as_raw();
        let is_open = |path: &AbsPath| {
            use rustix::fs::{Access, access};
            access(path.as_path(), Access::READ_OK | Access::EXEC_OK).is_ok()
        };
        let can_be = |found: &&Candidate| {
            let Some(stat) = found.stat.filter(|stat| stat.sort == Sort::Directory && !stat.mount_root) else { return false };
            let has_mount = || self.mounts.iter().any(|mount| mount.point.is_under(&found.path));
            let is_own = stat.uid == uid && is_open(&found.path);
            !self.is_apart(&found.path, &stat)
                && !self.is_hidden(&found.path)
                && !self.places.passes.iter().any(|pass| found.path.is_under(pass))
                && if has_mount() { may_write(&found.path) && is_open(&found.path) } else { is_own || may_write(&found.path) }
        };
        let mut own: Vec<&Candidate> = found.iter().filter(can_be).collect();
        let is_wanted = |found: &Candidate| self.wanted.iter().any(|wanted| wanted.is_under(&found.path));
        if own.len() > self.overlays_left {
            own.sort_by_key(|found| (Reverse(is_wanted(found)), Reverse(found.stat.map(|stat| stat.mtime))));
        }
        let rest = own.split_off(self.overlays_left.min(own.len()));
        self.overlays_left -= own.len();
        let taken = own.into_iter().map(|found| found.path.clone()).collect();
        let rest: Vec<AbsPath> = rest.into_iter().map(|found| found.path.clone()).collect();
        for path in &rest {
            let why = "one of too many directories beside a mount: it is held where capture.also names it";
            self.say(path, How::Uncovered, why, false);
        }
        taken
    }

    /// Tells whether a directory is a place by itself, with an overlay of its own: an earlier run held it, or it is wanted and no directory
    /// above reaches it.
    fn is_apart(&self, path: &AbsPath, stat: &Stat) -> bool {
        let is_known = || self.request.known.iter().any(|known| known.path == *path);
        self.wanted.contains(path) && (is_known() || !self.ids.has(stat.uid, stat.gid))
    }

    /// The files that are copied: the user's own, within the limits.
    fn copied(&mut self, found: &[Candidate]) -> HashSet<AbsPath> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let groups: Vec<u32> =
            rustix::process::getgroups().unwrap_or_default().into_iter().map(|gid| gid.as_raw()).chain([gid]).collect();
        let is_own = |stat: &Stat| stat.uid == uid && groups.contains(&stat.gid);
        let files = found.iter().filter_map(|found| Some((&found.path, found.stat?)));
        let files = files.filter(|(_, stat)| stat.sort == Sort::File && !stat.mount_root && is_own(stat));
        let (mut files, closed): (Vec<_>, Vec<_>) = files.partition(|(_, stat)| !stat.locked && stat.mode & 0o400 != 0);
        for (path, _) in closed {
            let why = "a file beside a mount that is closed to its owner, or has chattr +i or +a: it cannot be copied";
            self.say(path, How::Uncovered, why, false);
        }
        files.sort_by_key(|(_, stat)| stat.blocks);
        let (mut copied, mut large) = (HashSet::new(), Vec::new());
        for (path, stat) in files {
            let bytes = stat.blocks * 512;
            if bytes <= SIZE && bytes <= self.copies_left {
                self.copies_left -= bytes;
                copied.insert(path.clone());
            } else {
                large.push(path.clone());
            }
        }
        for path in &large {
            self.say(path, How::Uncovered, format!("{TOO_LARGE}: --pass leaves it real"), false);
        }
        copied
    }
}

/// Formats "what (first and 2 more)".
fn counted(what: &str, first: impl std::fmt::Display, count: usize) -> String {
    if count > 1 { format!("{what} ({first} and {} more)", count - 1) } else { format!("{what} ({first})") }
}
