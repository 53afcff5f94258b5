//! Makes the upper and work directories of a run's overlays.

use std::io;

use super::layout::{Layer, Need, Route, Target, directory};
use super::{copy_mounted_file, lay_pieces};
use crate::capture::layers::sealed_uppers::Sealed;
use crate::capture::layers::upper_metadata::dress;
use crate::capture::run::ids::Ids;
use crate::error::{At, Error, reason};
use crate::fs::{AbsPath, Dir, Entry, Fs, Sort};
use crate::session::Place;

pub struct LayingUppers<'a> {
    fs: &'a Fs,
    held: &'a Dir,
    uppers: Dir,
    works: Dir,
    route: Route,
    ids: &'a Ids,
    known: &'a [Place],
    /// The next number for a place.
    free: u32,
    step: u32,
    sealed: &'a Sealed,
    /// The places that could not be made ready, and why.
    pub uncovered: Vec<(AbsPath, String)>,
}

impl<'a> LayingUppers<'a> {
    pub fn new(
        fs: &'a Fs,
        held: &'a Dir,
        (route, ids): (Route, &'a Ids),
        known: &'a [Place],
        (step, sealed): (u32, &'a Sealed),
    ) -> Result<Self, Error> {
        let (uppers, works) = (directory(fs, held.at(b"upper"))?, directory(fs, held.at(b"work"))?);
        let free = known.iter().map(|place| place.k + 1).max().unwrap_or(0);
        Ok(Self { fs, held, uppers, works, route, ids, known, free, step, sealed, uncovered: Vec::new() })
    }

    /// Makes the directories of one overlay. `None` if its place cannot be captured: it stays read-only.
    pub fn layer(&mut self, target: &Target) -> Result<Option<Layer>, Error> {
        let is_file = target.sort == Sort::File;
        let mut place = self.place_of(target);
        let below = self.sealed.below(self.held, &place, self.route)?;
        let Some(copied) = self.fill_upper(target, &mut place, &below)? else { return Ok(None) };
        let work = place.k.to_string();
        make_anew(self.fs, self.works.at(work.as_bytes()))?;
        let upper = self.uppers.at(&place.upper_name(self.step)).open_dir()?;
        let mut work = self.works.at(work.as_bytes()).open_dir()?;
        let (mut lower, mut split) = (None, None);
        if is_file || target.split.is_some() {
            let made_up = directory(self.fs, work.at(b"lower"))?;
            if let Some(pieces) = &target.split {
                let works = directory(self.fs, work.at(b"works"))?;
                let over = (self.sealed, &*below);
                let mut laid = lay_pieces::lay(self.fs, self.ids, pieces, &target.path, over, (&upper, &made_up, works))?;
                self.uncovered.append(&mut laid.uncopied);
                split = Some(laid);
            }
            (lower, work) = (Some(made_up), directory(self.fs, work.at(b"work"))?);
        }
        // The copy of a mounted file is all that its overlay shows.
        let sealed = if is_file { Vec::new() } else { below };
        Ok(Some(Layer { place, upper, work, lower, sealed, copied, split }))
    }

    fn place_of(&mut self, target: &Target) -> Place {
        let is_file = target.sort == Sort::File;
        let earlier = self.known.iter().find(|place| place.path == target.path && place.file.is_some() == is_file);
        earlier.cloned().unwrap_or_else(|| {
            self.free += 1;
            Place { path: target.path.clone(), k: self.free - 1, mtime: None, inode: None, file: None }
        })
    }

    /// Makes the upper. Returns the bytes that were copied into it; `None` if the place cannot be captured.
    fn fill_upper(&mut self, target: &Target, place: &mut Place, below: &[Dir]) -> Result<Option<u64>, Error> {
        if target.sort == Sort::File { self.copy_file(target, place, below.first()) } else { self.cover(target, place, below) }
    }

    fn copy_file(&mut self, target: &Target, place: &mut Place, from: Option<&Dir>) -> Result<Option<u64>, Error> {
        match copy_mounted_file::lay(self.fs, (&self.uppers, from), (place, self.step), self.route)? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if target.need != Need::OrReadOnly => Err(error.into()),
            Err(error) => {
                let why = format!("cannot {}: {}", error.act, reason(&error.source));
                self.uncovered.push((target.path.clone(), why));
                Ok(None)
            }
        }
    }

    /// Makes an empty upper that looks like the directory that it covers: an overlay's top shows its owner, mode, times and xattrs.
    fn cover(&self, target: &Target, place: &mut Place, below: &[Dir]) -> Result<Option<u64>, Error> {
        let name = place.upper_name(self.step);
        let upper = self.uppers.at(&name);
        make_anew(self.fs, upper)?;
        let shows = match below.first() {
            Some(sealed) => sealed.again(),
            None => Dir::open(target.path.as_path()).at("open the directory to capture", &target.path),
        };
        let dressed = shows.and_then(|shows| {
            let mtime = dress(self.fs, self.route, self.ids, upper, (&shows, self.sealed))?;
            let stat = shows.stat()?;
            Ok((mtime, (stat.dev.0, stat.dev.1, stat.ino)))
        });
        match dressed {
            // It was removed, or its disk died, and nobody asked for it: what is there now is read-only.
            Err(error)
                if target.need != Need::Must && (target.has_gone_by(&error) || Dir::open(target.path.as_path()).is_err()) =>
            {
                self.fs.remove_all(upper)?;
                Ok(None)
            }
            dressed => {
                let (mtime, inode) = dressed?;
                (place.mtime, place.inode) = (Some(mtime), Some(inode).filter(|_| below.is_empty()));
                Ok(Some(0))
            }
        }
    }
}

/// Makes a directory. Removes what an interrupted run left of that name: a volatile overlay's mark in its work directory forbids the next
/// mount (overlayfs.rst, "Volatile mount").
fn make_anew(fs: &Fs, at: Entry<'_>) -> Result<(), Error> {
    match fs.mkdir(at, 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs.remove_all(at)?;
            Ok(fs.mkdir(at, 0o700)?)
        }
        made => Ok(made?),
    }
}
