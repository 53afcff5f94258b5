//! Spares what existed at a snapshot that knows nothing of it.

use std::collections::{BTreeMap, HashSet, btree_map};
use std::hash::Hash;

use super::difference::{Compared, Difference};
use crate::error::Error;
use crate::fs::{AbsPath, Time};
use crate::snapshot::manifest::Merged;
use crate::snapshot::series::Series;
use crate::tree::{State, What};

/// The reason why something stays that was there before the snapshot.
pub const OLDER: &str = "it was there before, under another name or not covered";
/// That reason where it can be forced.
pub const OLDER_FORCIBLE: &str = "it was there before, under another name or not covered; --force removes it, and keeps a copy";
/// The knowledge of a snapshot: the inode numbers of its objects, and their content.
#[derive(Default)]
struct KnownContent {
    inodes: HashSet<u64>,
    content: HashSet<Content>,
}

/// The content of an object that has some.
#[derive(PartialEq, Eq, Hash)]
enum Content {
    File(crate::tree::Hash),
    Link(Vec<u8>),
}

impl Content {
    fn of(state: &State) -> Option<Self> {
        match &state.what {
            What::File { size: 0, .. } => None,
            What::File { hash, .. } => hash.map(Self::File),
            What::Symlink { target } => Some(Self::Link(target.to_vec())),
            _ => None,
        }
    }
}

impl KnownContent {
    fn of(series: &Series, n: u64) -> Result<Self, Error> {
        let mut knows = Self::default();
        let mut all = Merged::open(&series.dir, n)?;
        while let Some(entry) = all.next()? {
            knows.inodes.extend(entry.ino);
            knows.content.extend(entry.state.as_ref().and_then(Content::of));
        }
        Ok(knows)
    }

    /// True if an object that is at another name now was in the snapshot, or has nothing that was not.
    fn has(&self, difference: &Difference) -> bool {
        let Some(now) = &difference.now else { return true };
        if difference.ino.is_some_and(|ino| self.inodes.contains(&ino)) {
            return true;
        }
        // A directory has what is in it. One that takes a directory's place has that besides.
        Content::of(now).map_or(!now.is_dir() || difference.then.is_some(), |content| self.content.contains(&content))
    }
}

impl Compared {
    /// Leaves what existed at a snapshot, and of which that knows nothing: it came from what is not covered, or from outside, and is nowhere
    /// else. `since` gives the snapshot for a path, and the time until when what it could see was born, if not for all paths alike.
    pub fn spare_older(
        &mut self,
        series: &Series,
        why: &str,
        since: impl Fn(&AbsPath) -> (u64, Option<Time>),
    ) -> Result<(), Error> {
        let mut known: BTreeMap<u64, KnownContent> = BTreeMap::new();
        let mut stays = Vec::with_capacity(self.differences.len());
        for d in &self.differences {
            let (n, existed) = since(&d.path);
            let born = d.print.and_then(|print| print.identity.btime);
            if !d.older || existed.zip(born).is_some_and(|(existed, born)| born > existed) {
                stays.push(false);
                continue;
            }
            let knows = match known.entry(n) {
                btree_map::Entry::Vacant(vacant) => vacant.insert(KnownContent::of(series, n)?),
                btree_map::Entry::Occupied(occupied) => occupied.into_mut(),
            };
            stays.push(!knows.has(d));
        }
        // A directory stays with all that is in it now.
        let mut whole: Option<AbsPath> = None;
        let mut spared = Vec::new();
        let mut stays = stays.into_iter();
        self.differences.retain(|d| {
            let stays = stays.next().unwrap_or(false);
            if whole.as_ref().is_some_and(|whole| d.path.is_under(whole)) {
                return false;
            }
            if stays {
                whole = d.now.as_ref().is_some_and(State::is_dir).then(|| d.path.clone());
                spared.push(d.path.clone());
            }
            !stays
        });
        self.kept.extend(spared.iter().map(|path| (path.clone(), OLDER)));
        self.left.extend(spared.into_iter().map(|path| (path, why.to_owned())));
        Ok(())
    }
}
