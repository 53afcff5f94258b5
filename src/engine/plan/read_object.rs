//! Reads objects on the tree and in the store; hashes those that only their content can tell apart.

use std::fs::File;

use crate::engine::job::{Move, OnConflict};
use crate::engine::plan::item_sides::MARKS;
use crate::error::{At, Error, IoError};
use crate::fs::lease::lease;
use crate::fs::{Entry, Sort, Stat, Writers, now, stat_of};
use crate::tree::{Content, Hash, Likeness, Seen, State, observe};

/// The object at a path now. A file that is to go is held open, so that every question is about one object.
pub struct ObjectNow<'a> {
    at: Entry<'a>,
    stat: Option<Stat>,
    /// `None` if it is no file that goes, or may not be read.
    pub file: Option<File>,
    /// The answer to a lease on a small file, which is held until the file is closed; `None` where none was asked for.
    pub leased: Option<Writers>,
}

/// Bytes of a file that is read under its lease: in a moment, so that nobody waits for the lease.
const SMALL: u64 = 1 << 20;

impl<'a> ObjectNow<'a> {
    pub fn open(at: Entry<'a>, stat: Option<Stat>, mv: &Move) -> Result<Self, Error> {
        let goes = stat.is_some_and(|stat| stat.sort == Sort::File) && !mv.in_place;
        let file = match goes.then(|| at.open_file()).transpose() {
            Err(error) if error.errno() == Some(libc::EACCES) => None,
            other => other?,
        };
        let small = file.as_ref().filter(|_| stat.is_some_and(|stat| stat.size <= SMALL));
        let lease = small.map(lease).transpose().at("ask for a lease on", at)?;
        let leased = lease.map(|lease| lease.err().unwrap_or(Writers::None));
        Ok(Self { at, stat, file, leased })
    }

    /// Looks at the object; at its xattrs only where no fingerprint of what is expected tells them. By force they are always read, as
    /// what comes out is compared with them.
    pub fn seen(&self, mv: &Move, on_conflict: OnConflict) -> Result<Option<Seen>, IoError> {
        let Some(stat) = &self.stat else { return Ok(None) };
        let print = mv.from_print.as_ref().filter(|_| on_conflict == OnConflict::Stop);
        if let (Some(known), Some(print)) = (&mv.from, print)
            && let Some(seen) = observe::recognized(stat, known, print)
            && self.at.dir.is_known()?
        {
            return Ok(Some(seen));
        }
        match &self.file {
            Some(file) => observe::seen_open(file, stat).at("look at", self.at).map(Some),
            None => observe::object_of(self.at, stat).map(Some),
        }
    }

    /// Reads the file, and what it means where it `may_mean` something.
    pub fn read(&self, may_mean: bool) -> Result<(Content, Stat), IoError> {
        let read = match (&self.file, &self.stat) {
            // Nobody writes to it before it is closed: all that is read is one content.
            (Some(file), Some(stat)) if self.leased == Some(Writers::None) => {
                Content::of_file(file, stat.size, may_mean).map(|content| (content, *stat))
            }
            (Some(file), Some(stat)) => observe::read_since(file, *stat, may_mean),
            _ => {
                let file = self.at.open_file()?;
                stat_of(&file).and_then(|stat| observe::read_since(&file, stat, may_mean))
            }
        };
        read.at("read", self.at)
    }

    pub fn hash(&self) -> Result<Hash, IoError> {
        self.read(false).map(|(content, _)| content.hash)
    }
}

/// Reads a file in the store, with its hash. If the hash is known, only content that has it passes, whatever happens meanwhile. If not,
/// the file has to stand still. So does a git index: it may have been rewritten on the tree before it came here, and passes by what it
/// means.
pub fn look_at_content(at: Entry<'_>, stat: Stat, known: &State) -> Result<Seen, IoError> {
    let file = at.open_file()?;
    let mut seen = observe::seen_open(&file, &stat).at("look at", at)?;
    let may_mean = known.index().is_some();
    seen.learn(match known.hash() {
        Some(_) if !may_mean => Content::of_file(&file, stat.size, false).at("read", at)?,
        _ => observe::read_since(&file, stat, may_mean).at("read", at)?.0,
    });
    Ok(seen)
}

/// Reads a file in the store that is as it is `known`, in one go, and looks at it afterwards. `None` if it may be anything else: whoever
/// asks looks closer. Where no hash is known, its ctime has to be older than the reading.
pub fn read_as_known(at: Entry<'_>, known: &State) -> Result<Option<(Stat, Seen)>, IoError> {
    if !known.is_file() || !at.dir.is_known()? {
        return Ok(None);
    }
    let (file, begun) = (at.open_file()?, now());
    let content = Content::of_file(&file, known.size(), known.index().is_some()).at("read", at)?;
    let stat = stat_of(&file).at("look at", at)?;
    let is_it = match known.hash() {
        Some(hash) => content.hash == hash,
        None => !observe::is_young(stat.ctime, begun),
    };
    if !is_it || stat.sort != Sort::File || stat.size != known.size() {
        return Ok(None);
    }
    let is_mark = |name: &[u8]| MARKS.contains(&name) && known.meta.xattr(name).is_none();
    let mut seen = observe::seen_open_but(&file, &stat, is_mark).at("look at", at)?;
    seen.learn(content);
    Ok(Some((stat, seen)))
}

/// True if the tree holds `to` already.
pub fn is_as_wanted(found: &ObjectNow<'_>, mv: &Move, seen: Option<&mut Seen>) -> Result<bool, Error> {
    Ok(match (&mv.to, seen) {
        (None, None) => true,
        (Some(to), Some(seen)) => match to.likeness(&seen.state) {
            Likeness::Same => true,
            Likeness::ReadToTell if to.hash().is_some() => {
                seen.set_hash(found.hash()?);
                to.likeness(&seen.state) == Likeness::Same
            }
            _ => false,
        },
        _ => false,
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests {
    use super::*;
    use crate::fs::Dir;

    #[test]
    fn content_without_a_hash_is_believed_once_its_times_are_older_than_the_reading() {
        let top = tempfile::tempdir().expect("a directory");
        let dir = Dir::open(top.path()).expect("the directory");
        std::fs::write(top.path().join("f"), "content").expect("a file");
        let mut known = observe::object(dir.at(b"f")).expect("a look").expect("the file").state;
        let read = |known: &State| read_as_known(dir.at(b"f"), known).expect("a look").map(|(_, seen)| seen.state.hash());
        assert_eq!(read(&known), None, "as young as the clock is coarse");
        while observe::object(dir.at(b"f")).expect("a look").expect("the file").print.racy {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let hash = Hash::of(b"content");
        assert_eq!(read(&known), Some(Some(hash)));
        std::fs::write(top.path().join("f"), "CONTENT").expect("a write");
        known.set_hash(hash);
        assert_eq!(read(&known), None, "another hash");
        std::fs::write(top.path().join("f"), "content and more").expect("a write");
        assert_eq!(read(&known), None, "another size");
        std::fs::write(top.path().join("f"), "content").expect("a write");
        assert_eq!(read(&known), Some(Some(hash)), "the hash tells, however young it is");
    }
}
