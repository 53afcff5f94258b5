//! Mounts the pieces of a split directory: see [`place::split`](crate::capture::place::lay_pieces).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::mount::OpenTreeFlags;

use super::attach::{attach_as, directory_at};
use super::overlay::{Layers, Uncovered, opened_here, overlay_of};
use crate::capture::collect::facts::full_path;
use crate::capture::place::layout::{Attached, Need, Target};
use crate::capture::place::mount_plan::Plan;
use crate::capture::place::pieces::{LaidPiece, LaidSplit, Piece, PieceKind};
use crate::capture::run::raw_calls;
use crate::error::{At, IoError, reason};
use crate::fs::{AbsPath, Sort, leads_nowhere, stat_of};

/// A piece that is about to be put in its place.
pub struct Ready<'a> {
    piece: &'a Piece,
    path: AbsPath,
    /// Its overlay; `None` if the real object is shown.
    overlay: Option<OwnedFd>,
}

/// Makes the overlays of the pieces, over the directory's own lower and upper, in path order. Uncapturable ones are shown read-only.
pub fn ready<'a>(
    plan: &Plan,
    target: &Target,
    split: &'a LaidSplit,
    layers: &Layers,
    uncovered: &mut Vec<Uncovered>,
) -> Result<Vec<Ready<'a>>, IoError> {
    let works = opened_here(&split.works).at("open the work directories of", &target.path)?;
    let mut ready = Vec::with_capacity(split.pieces.len());
    // The inner ones first: the kernel warns of each upper that lies in one already in use.
    for (number, laid) in split.pieces.iter().enumerate().rev() {
        let piece = &laid.piece;
        let path = full_path(&target.path, &piece.below)?;
        let overlay = match piece.as_what {
            PieceKind::Mount { .. } | PieceKind::Real { .. } | PieceKind::Copy => None,
            PieceKind::Overlay | PieceKind::Split => {
                let made = Layers::of_piece(laid, &path, number, layers, &works);
                match made.and_then(|layers| overlay_of(plan, target, &path, &layers)) {
                    Ok(overlay) => Some(overlay),
                    // It vanished: nothing is there to be captured or shown.
                    Err(_) if directory_at(&path).is_err_and(|error| leads_nowhere(&error)) => continue,
                    Err(error) if piece.as_what == PieceKind::Overlay => {
                        uncovered.push((path.clone(), format!("cannot {}: {}", error.act, reason(&error.source))));
                        None
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        ready.push(Ready { piece, path, overlay });
    }
    ready.reverse();
    Ok(ready)
}

impl Layers {
    fn of_piece(laid: &LaidPiece, path: &AbsPath, number: usize, above: &Layers, works: &OwnedFd) -> Result<Self, IoError> {
        let LaidPiece { piece, sealed } = laid;
        let mut lowers = Vec::with_capacity(sealed.len() + 1);
        for sealed in sealed {
            lowers.push(opened_here(sealed).at("open the sealed upper of", path)?);
        }
        let lower = match (piece.as_what, above.lowers.last()) {
            (PieceKind::Split, Some(made_up)) => below(made_up, &piece.below),
            _ => directory_at(path),
        };
        lowers.push(lower.at("open the directory to capture", path)?);
        Ok(Self {
            lowers,
            upper: below(&above.upper, &piece.below).at("open the upper directory of", path)?,
            work: below(works, number.to_string().as_bytes()).at("open the work directory of", path)?,
        })
    }
}

/// Opens a directory some way below, and follows no link.
fn below(dir: &OwnedFd, path: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve)?)
}

/// Puts the pieces into the overlay of their directory, which is in its place and covers `real`.
pub fn attach_pieces(plan: &Plan, real: &OwnedFd, ready: Vec<Ready<'_>>, attached: &mut Vec<Attached>) -> Result<(), IoError> {
    for Ready { piece, path, overlay } in ready {
        match overlay {
            Some(overlay) => {
                attach_as(Sort::Directory, &overlay, &path).at("put the overlay", &path)?;
                attached.push(Attached { path, need: Need::WhileThere });
            }
            None => match show(real, piece, &path) {
                // It was removed by now; or it is a mounted file that was removed before: its copy is put there.
                Err(error)
                    if error.source.kind() == io::ErrorKind::NotFound
                        && (!matches!(piece.as_what, PieceKind::Mount { .. })
                            || plan.targets.iter().any(|target| target.path == path)) => {}
                shown => shown?,
            },
        }
    }
    Ok(())
}

/// Shows the real object, with all that is mounted in it. Everything is read-only by now, and so is the clone of the mounts.
fn show(real: &OwnedFd, piece: &Piece, path: &AbsPath) -> Result<(), IoError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let shown = match rustix::mount::open_tree(real, &piece.below[..], flags).map_err(io::Error::from) {
        Err(error) if leads_nowhere(&error) => return Ok(()),
        shown => shown.at("clone the mount", path)?,
    };
    let (is_mount, directory) = match piece.as_what {
        PieceKind::Mount { directory } => (true, directory),
        PieceKind::Real { directory } => (false, directory),
        _ => (false, true),
    };
    // Something else has the name by now. The object in a mount may not answer, so it is not looked at.
    if !is_mount && (stat_of(&shown).at("look at", path)?.sort == Sort::Directory) != directory {
        return Ok(());
    }
    // No devices here, as in an overlay; the devices of a mount stay as they are outside.
    let close = if is_mount { raw_calls::set_read_only_held } else { raw_calls::set_read_only_without_devices };
    close(shown.as_fd()).at("make it read-only", path)?;
    attach_as(if directory { Sort::Directory } else { Sort::File }, &shown, path).at("show what is there", path)
}
