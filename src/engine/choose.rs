//! Which changes of a session are moved where only some paths are named (docs/ARCHITECTURE.md, Session status).

use std::collections::{BTreeSet, HashSet};
use std::iter::Peekable;

use super::Error;
use super::item::number;
use super::job::Verb;
use crate::error::At;
use crate::fs::dir::{Sort, Stat, leads_nowhere};
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Changes, FolderTime};
use crate::session::header::{Checkpoint, Status};
use crate::session::lines::Reading;
use crate::session::sides::Side;
use crate::session::store::Session;
use crate::tree::look;

/// Whether a verb can begin on a session: what is discarded, under way, without its originals, or was never committed
/// where that is needed, is refused with the remedy.
pub fn may_begin(session: &Session, verb: Verb) -> Result<(), Error> {
    let id = session.id();
    let never = session.header.counts.changes > 0;
    let pruned = session.header.checkpoint == Checkpoint::Pruned && session.header.counts.inside > 0;
    let (why, remedy) = match (session.header.status(), verb) {
        (Status::Discarded, _) => ("it is discarded: what it held is gone", None),
        (Status::Capturing, _) => ("its run has not ended", None),
        (Status::Pending, Verb::Redo) if never => {
            ("it was never committed, so there is nothing to redo", Some(format!("recant commit {id}")))
        }
        (Status::Pending, Verb::Rollback) if never => {
            let remedy = format!("recant discard {id} drops what it holds");
            ("it was never committed, so there is nothing to roll back", Some(remedy))
        }
        _ if pruned => ("its checkpoint was pruned: the originals are gone, and what is committed stays", None),
        _ => return Ok(()),
    };
    Err(Error::Session(crate::session::Error::NotNow { id: id.to_string(), why: why.into(), remedy }))
}

/// Which of a session's changes are asked for, by index in path order.
pub struct Choice {
    /// The changes.
    pub chosen: Vec<usize>,
    /// What comes along although it was not named, for people.
    pub notes: Vec<String>,
}

/// The changes of a session that a verb moves, read one by one in path order.
pub struct Chosen {
    changes: Reading,
    index: usize,
    sides: Vec<Side>,
    starts: fn(Side) -> bool,
    /// Those of named paths; all that start on the right side where none is named.
    named: Option<Peekable<std::vec::IntoIter<usize>>>,
}

impl Chosen {
    /// All whose side `starts`, or those of `choice` alone.
    pub fn new(session: &Session, sides: Vec<Side>, starts: fn(Side) -> bool, choice: Option<Vec<usize>>) -> Result<Self, Error> {
        let named = choice.map(|choice| choice.into_iter().peekable());
        Ok(Self { changes: session.read_changes()?, index: 0, sides, starts, named })
    }

    /// The next change, its place in path order, and where it is.
    #[expect(clippy::should_implement_trait, reason = "an Iterator of results goes on after an error; this must not")]
    pub fn next(&mut self) -> Result<Option<(Change, u32, Side)>, Error> {
        while let Some(change) = self.changes.next()? {
            // Reading gives no more changes than the header counts, and there is a side for each of these.
            let (index, side) = (self.index, self.sides[self.index]);
            self.index += 1;
            let asked = match &mut self.named {
                Some(named) => named.next_if(|next| *next == index).is_some(),
                None => (self.starts)(side),
            };
            if asked {
                return Ok(Some((change, number(index), side)));
            }
        }
        Ok(None)
    }

    /// mtimes of folders that are no changes, once all changes were read.
    pub fn folder_times(self) -> Vec<FolderTime> {
        self.changes.folder_times()
    }
}

/// What [`choose`] has to know of each change, by index.
pub struct Rules<'a> {
    /// It is on the side that the verb starts from.
    pub may: &'a dyn Fn(usize) -> bool,
    /// It is a folder that what lies under it needs on the tree.
    pub needed: &'a dyn Fn(usize) -> bool,
    /// Where its `to` lies below the session's folder.
    pub lies: &'a dyn Fn(usize) -> Option<Vec<u8>>,
}

/// The changes at and under `paths` that may be moved, the other names of what is hard-linked with them, and the folders
/// above that they need. All that may be moved where no path is given.
pub fn choose(session: &Session, changes: &Changes, paths: &[AbsPath], rules: &Rules<'_>) -> Result<Choice, Error> {
    if paths.is_empty() {
        let chosen = (0..changes.list.len()).filter(|i| (rules.may)(*i)).collect();
        return Ok(Choice { chosen, notes: Vec::new() });
    }
    let mut chosen = BTreeSet::new();
    let mut unknown = Vec::new();
    for path in paths {
        let under = changes.under(path);
        if under.is_empty() {
            unknown.push((path.to_string(), not_in_session(changes, path)));
        }
        chosen.extend(under.filter(|i| (rules.may)(*i)));
    }
    if !unknown.is_empty() {
        return Err(Error::Refused(unknown));
    }
    let mut notes = Vec::new();
    loop {
        needed_above(changes, &mut chosen, rules);
        let linked = other_names(session, changes, &chosen, rules)?;
        if linked.is_empty() {
            return Ok(Choice { chosen: chosen.into_iter().collect(), notes });
        }
        for i in linked {
            let path = &changes.list[i].path;
            notes.push(format!("{path}: comes along, as it is the same file as one that was named (a hard link)"));
            chosen.insert(i);
            let under: Vec<usize> = changes.under(path).filter(|k| (rules.may)(*k) && !chosen.contains(k)).collect();
            notes.extend(under.iter().map(|k| format!("{}: comes along, as it lies under {path}", changes.list[*k].path)));
            chosen.extend(under);
        }
    }
}

fn needed_above(changes: &Changes, chosen: &mut BTreeSet<usize>, rules: &Rules<'_>) {
    for i in chosen.clone() {
        for above in std::iter::successors(changes.list[i].path.parent(), AbsPath::parent) {
            let at = changes.list.binary_search_by(|change| change.path.cmp(&above));
            chosen.extend(at.ok().filter(|at| (rules.needed)(*at)));
        }
    }
}

/// The changes whose `to` or `from` is another name of a file that is chosen. With one name on the tree and one in the
/// store, a write to the first would change what is kept under the second (docs/ARCHITECTURE.md, What rests on it); and what was
/// set on the first is not what goes back under the second.
fn other_names(session: &Session, changes: &Changes, chosen: &BTreeSet<usize>, rules: &Rules<'_>) -> Result<Vec<usize>, Error> {
    let held = |i: usize| -> Result<Option<Stat>, Error> {
        let Some(place) = (rules.lies)(i) else { return Ok(None) };
        let (dir, name) = match session.split(&place) {
            Err(crate::session::Error::Io(error)) if leads_nowhere(&error.source) => return Ok(None),
            split => split?,
        };
        let stat = dir.at(name).stat().at("look at", dir.at(name))?;
        Ok(stat.filter(|stat| stat.nlink > 1 && stat.sort == Sort::File))
    };
    // In the store and on the tree: the same inode number may stand for two files on two file systems.
    let (mut in_store, mut on_tree) = (HashSet::new(), HashSet::new());
    for i in chosen {
        if let Some(stat) = held(*i)? {
            in_store.insert(look::identity(&stat));
            // The inode may stay under another name: a change of metadata alone.
            on_tree.insert((rustix::fs::makedev(stat.dev.0, stat.dev.1), stat.ino));
        }
        on_tree.extend(linked_on_tree(&changes.list[*i].path)?);
    }
    let mut linked = Vec::new();
    for i in (0..changes.list.len()).filter(|i| (rules.may)(*i) && !chosen.contains(i)) {
        let along = !on_tree.is_empty() && linked_on_tree(&changes.list[i].path)?.is_some_and(|inode| on_tree.contains(&inode));
        if along || !in_store.is_empty() && held(i)?.is_some_and(|stat| in_store.contains(&look::identity(&stat))) {
            linked.push(i);
        }
    }
    Ok(linked)
}

/// Device and inode of a file on the tree that has several names; none where nothing is there.
fn linked_on_tree(path: &AbsPath) -> Result<Option<(u64, u64)>, Error> {
    use std::os::unix::fs::MetadataExt;
    match path.as_path().symlink_metadata() {
        Ok(meta) => Ok((meta.is_file() && meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))),
        Err(error) if leads_nowhere(&error) => Ok(None),
        Err(error) => Err(error).at("look at", path).map_err(Error::from),
    }
}

fn not_in_session(changes: &Changes, path: &AbsPath) -> String {
    let shared = |other: &AbsPath| other.as_bytes().iter().zip(path.as_bytes()).take_while(|(a, b)| a == b).count();
    let nearest = changes.list.iter().max_by_key(|change| shared(&change.path));
    let nearest = nearest.map_or(String::new(), |change| format!("; the nearest is {}", change.path));
    format!("the session holds no change there{nearest}")
}
