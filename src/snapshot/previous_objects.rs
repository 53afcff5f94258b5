//! The objects of the snapshot before, read along with the walk of the tree.

use super::index::{Index, Known};
use super::manifest;
use super::manifest::{Entry, Merged, PathLine, Reading};
use super::series::{Series, Summary};
use crate::error::Error;

/// A stream with its next item in view.
pub(super) struct Peeked<'a, T> {
    pub next: Option<T>,
    source: Box<dyn FnMut() -> Result<Option<T>, Error> + 'a>,
}

impl<'a, T> Peeked<'a, T> {
    pub fn new(mut source: Box<dyn FnMut() -> Result<Option<T>, Error> + 'a>) -> Result<Self, Error> {
        Ok(Self { next: source()?, source })
    }

    /// Returns the next item, and moves on.
    pub fn take(&mut self) -> Result<Option<T>, Error> {
        let next = (self.source)()?;
        Ok(std::mem::replace(&mut self.next, next))
    }
}

/// The objects that the snapshot `last` saw, in the order of paths: by its index, else by its manifest.
pub(super) fn objects<'a>(
    series: &'a Series,
    index: Option<&'a Index>,
    last: Option<&Summary>,
) -> Result<Peeked<'a, Known>, Error> {
    match (index, last) {
        (Some(index), _) => {
            let mut known = index.known();
            Peeked::new(Box::new(move || Ok(known.next())))
        }
        (None, Some(last)) => {
            let mut merged = Merged::open(&series.dir, last.head.n)?;
            Peeked::new(Box::new(move || {
                let Some(line) = merged.next_unread()? else { return Ok(None) };
                Ok(Some(known_of(&line.read()?, line.sign())))
            }))
        }
        (None, None) => Peeked::new(Box::new(|| Ok(None))),
    }
}

/// The lines of the snapshot `last` itself, which are its differences from its base.
pub(super) fn own_lines<'a>(
    series: &'a Series,
    last: Option<&Summary>,
    base: Option<u64>,
) -> Result<Peeked<'a, PathLine>, Error> {
    match (last, base) {
        (Some(last), Some(base)) if base != last.head.n => {
            let name = manifest::name(last.head.n);
            let mut own = Reading::open(series.dir.at(&name), last.head.n)?;
            Peeked::new(Box::new(move || own.next_line()))
        }
        _ => Peeked::new(Box::new(|| Ok(None))),
    }
}

/// The facts that a manifest has of a path, as the index would have them. `sign` is that of its line.
pub(super) fn known_of(entry: &Entry, sign: u64) -> Known {
    Known {
        path: entry.path.clone(),
        key: None,
        mark: entry.mark(),
        sign,
        hash: entry.hash(),
        at: entry.at,
        size: entry.size(),
        is_dir: entry.is_dir(),
        ino: entry.ino,
        unread: entry.unread.is_some(),
        written: false,
    }
}
