//! A directory that can be no overlay's lower for an ordinary user, because something is mounted below it: a user namespace locks inherited
//! mounts to their parents, and the kernel clones no mount without them. The run gets a directory that is put together instead
//! (`place::choose_pieces` chooses the pieces, `space::mount_pieces` mounts them):
//!
//! ```text
//! ~           an overlay over a made-up lower     lower work/<k>/lower           upper upper/<k>
//! ~/notes     a copy in that lower
//! ~/src       an overlay of its own               lower the real ~/src           upper upper/<k>/src
//! ~/.cache    split too: ~/.cache/doc is a mount  lower work/<k>/lower/.cache    upper upper/<k>/.cache
//! ~/usb       a mount: seen as it is, read-only
//! ```
//!
//! - **H5** The uppers lie in each other as what they cover does. Together they are what the upper of one overlay of `~` would be.
//!   `collect` and commit read them as that, and a further run in the session puts either kind of overlay on them, as the mounts are then.
//!   Each is covered, so the command can't reach one through another.
//! - **H6** Files are copied, not bound: a bound one can't be replaced or removed (EBUSY), as `sed -i` and editors do. The lower is made
//!   anew for each run, and what the command changed is compared with the real file.
//! - **H7** An upper that was made for a directory bears a note with the time that it was given. If the command left it alone it is no
//!   change, whatever becomes of the directory, and it is removed at the run's end.

use std::collections::HashMap;
use std::rc::Rc;

use rustix::io::Errno;

use super::copy_mounted_file;
use super::copy_mounted_file::Original;
use super::layout::{Route, is_opaque};
use super::pieces::{LAID, LaidPiece, LaidSplit, Piece, PieceKind, Split, laid_at, parted};
use crate::capture::collect::facts::full_path;
use crate::capture::collect::tree_below::TreeBelow;
use crate::capture::layers::sealed_uppers::Sealed;
use crate::capture::layers::upper_metadata::dress;
use crate::capture::run::ids::Ids;
use crate::error::{At, Error, IoError, reason};
use crate::fs::{AbsPath, Dev, Dir, Entry, Fs, Sort, Stat, Time};

/// Makes the lower of a split directory and the uppers below its own. `lower` and `works` are empty. Leaves out what has vanished, and what
/// the uppers of earlier steps, `below`, hide.
///
/// Errors: of the store, which may be full, and of the directory itself.
pub fn lay(
    fs: &Fs,
    ids: &Ids,
    split: &Split,
    covered: &AbsPath,
    (sealed, below): (&Sealed, &[Dir]),
    (upper, lower, works): (&Dir, &Dir, Dir),
) -> Result<LaidSplit, Error> {
    let again = |dir: &Dir| dir.open_below(b"");
    let real = Dir::open(covered.as_path()).at("open the directory to capture", covered)?;
    let below = below.iter().map(|dir| again(dir).map(Rc::new)).collect::<Result<_, _>>()?;
    let below = TreeBelow::new(Route::User, below, None);
    let mut levels = HashMap::from([(Vec::new(), Level::of((ids, sealed), real, below, again(upper)?, again(lower)?)?)]);
    let (mut pieces, mut uncopied) = (Vec::new(), Vec::new());
    for piece in &split.0 {
        let (above, name) = parted(&piece.below);
        let Some(level) = levels.get(above) else { continue };
        let path = full_path(covered, &piece.below)?;
        let mut say = |error: &IoError| {
            uncopied.push((path.clone(), format!("cannot {}: {}", error.act, reason(&error.source))));
        };
        let Some(as_what) = level.lay(fs, name, piece.as_what, &mut say)? else { continue };
        if as_what == PieceKind::Copy {
            continue;
        }
        if let PieceKind::Overlay | PieceKind::Split = as_what {
            let number = pieces.len().to_string();
            let work = works.at(number.as_bytes());
            fs.mkdir(work, 0o700)?;
        }
        let sealed = level.over.enter(name)?.held().to_vec();
        if as_what == PieceKind::Split {
            let below = level.below(name)?;
            levels.insert(piece.below.clone(), below);
        }
        let piece = Piece { below: piece.below.clone(), as_what };
        pieces.push(LaidPiece { piece, sealed });
    }
    for Level { upper, mtime, .. } in levels.values() {
        // The entries made in it are not the command's doing.
        fs.set_mtime(upper.at(b"."), *mtime)?;
    }
    Ok(LaidSplit { uncopied, pieces, works })
}

/// A split directory: the real one, its upper, and its lower.
struct Level<'a> {
    ids: &'a Ids,
    real: Dir,
    sealed: &'a Sealed,
    /// Its directories in the uppers of earlier steps.
    over: TreeBelow,
    upper: Dir,
    lower: Dir,
    mtime: Time,
}

impl<'a> Level<'a> {
    fn of((ids, sealed): (&'a Ids, &'a Sealed), real: Dir, over: TreeBelow, upper: Dir, lower: Dir) -> Result<Self, Error> {
        let mtime = upper.stat()?.mtime;
        Ok(Self { ids, real, sealed, over, upper, lower, mtime })
    }

    /// Lays one name. Returns what it became; `None` if it is not needed.
    fn lay(&self, fs: &Fs, name: &[u8], as_what: PieceKind, say: &mut dyn FnMut(&IoError)) -> Result<Option<PieceKind>, Error> {
        let lower = self.lower.at(name);
        if self.over.hides(name)? {
            return Ok(None);
        }
        let new = self.upper.at(name).stat()?;
        if let Some(stat) = &new
            && hides(self.upper.at(name), stat)?
        {
            return Ok(None);
        }
        let is_sealed = new.is_some() || self.over.enter(name)?.is_held();
        match as_what {
            // A directory from an earlier step lies over what is now a file.
            PieceKind::Copy | PieceKind::Real { directory: false } if is_sealed => Ok(None),
            PieceKind::Copy => match self.copy(fs, name) {
                Ok(()) => Ok(Some(PieceKind::Copy)),
                Err(error) if copy_mounted_file::is_full(&error) => Err(error.into()),
                // If it can't be copied whole, a change of one part must not lose the rest: it is shown read-only instead.
                Err(error) => {
                    fs.remove_all(lower)?;
                    let is_there = self.real.at(name).stat().is_ok_and(|stat| stat.is_some_and(|stat| stat.sort == Sort::File));
                    if !is_there {
                        return Ok(None);
                    }
                    say(&error);
                    self.stand_in(fs, name, PieceKind::Real { directory: false }).map(Some)
                }
            },
            PieceKind::Real { directory: true } if !is_sealed => self.stand_in(fs, name, as_what).map(Some),
            PieceKind::Overlay | PieceKind::Split | PieceKind::Real { directory: true } => {
                if new.is_none() && !self.make_upper(fs, name)? {
                    let gone = self.real.at(name).stat().is_ok_and(|stat| stat.is_none());
                    let real = PieceKind::Real { directory: true };
                    return if gone { Ok(None) } else { self.stand_in(fs, name, real).map(Some) };
                }
                let as_what = if as_what == PieceKind::Split { PieceKind::Split } else { PieceKind::Overlay };
                self.stand_in(fs, name, as_what).map(Some)
            }
            PieceKind::Mount { .. } | PieceKind::Real { directory: false } => self.stand_in(fs, name, as_what).map(Some),
        }
    }

    /// Makes the mount point for a piece.
    fn stand_in(&self, fs: &Fs, name: &[u8], as_what: PieceKind) -> Result<PieceKind, Error> {
        let at = self.lower.at(name);
        match as_what {
            PieceKind::Mount { directory: false } | PieceKind::Real { directory: false } => {
                fs.create(at, 0o600)?;
            }
            _ => fs.mkdir(at, 0o700)?,
        }
        Ok(as_what)
    }

    /// Makes the upper of a directory. False if it can't be made to look like it: the directory is gone or closed.
    fn make_upper(&self, fs: &Fs, name: &[u8]) -> Result<bool, Error> {
        let at = self.upper.at(name);
        fs.mkdir(at, 0o700)?;
        let over = self.over.enter(name)?;
        let shows = match over.held().first() {
            Some(sealed) => sealed.again(),
            None => self.real.at(name).open_dir().at("open the directory to capture", self.real.at(name)),
        };
        let dressed = shows.and_then(|shows| {
            let mtime = shows.stat().at("look at the directory to capture", self.real.at(name))?.mtime;
            // Before the mode, which may deny it to the owner.
            fs.set_xattr(at, &[b"user.overlay.", LAID.as_bytes()].concat(), &laid_at(mtime))?;
            dress(fs, Route::User, self.ids, at, (&shows, self.sealed))
        });
        match dressed {
            Ok(_) => Ok(true),
            Err(error) if copy_mounted_file::is_full(&error) => Err(error.into()),
            Err(_) => {
                fs.remove_all(at)?;
                Ok(false)
            }
        }
    }

    /// Copies a file, link, FIFO or socket with its metadata; the last two are dead in the run, as in any overlay.
    fn copy(&self, fs: &Fs, name: &[u8]) -> Result<(), IoError> {
        let (from, to) = (self.real.at(name), self.lower.at(name));
        let stat = from.stat()?.ok_or(Errno::NOENT).at("look at", from)?;
        match stat.sort {
            Sort::File => return Original::of(from)?.copy_for_user(fs, to),
            Sort::Symlink => {
                let target = from.read_link()?;
                fs.symlink(&target, to)?;
            }
            sort => {
                fs.mknod(to, sort, 0o600, Dev(0, 0))?;
                fs.set_mode(to, stat.mode)?;
            }
        }
        fs.set_mtime(to, stat.mtime)
    }

    fn below(&self, name: &[u8]) -> Result<Self, Error> {
        let open = |dir: &Dir| dir.at(name).open_dir();
        Self::of((self.ids, self.sealed), open(&self.real)?, self.over.enter(name)?, open(&self.upper)?, open(&self.lower)?)
    }
}

/// Tells whether an upper's object hides all that lies below it: anything but a merged directory does.
fn hides(at: Entry<'_>, stat: &Stat) -> Result<bool, IoError> {
    Ok(stat.sort != Sort::Directory || is_opaque(Route::User, &at.xattrs()?))
}
