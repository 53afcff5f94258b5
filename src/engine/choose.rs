//! Which changes of a session are moved where only some paths are named.

use std::collections::{BTreeSet, HashMap};
use std::iter::Peekable;

use super::error::refused;
use super::item::number;
use super::job::Verb;
use crate::error::{At, Error, recant};
use crate::fs::device::Dev;
use crate::fs::dir::{Inode, Sort, leads_nowhere};
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Changes, FolderTime};
use crate::session::error::not_now;
use crate::session::header::{Checkpoint, Status};
use crate::session::lines::Reading;
use crate::session::opened::Session;
use crate::session::sides::Side;

/// Whether a verb can begin on a session: what is discarded, under way, without its originals, or was never committed
/// where that is needed, is refused with the remedy.
pub fn may_begin(session: &Session, verb: Verb) -> Result<(), Error> {
    let id = session.id();
    let never = session.header.counts.changes > 0;
    let pruned = session.header.checkpoint == Checkpoint::Pruned && session.header.counts.inside > 0;
    let (why, remedy) = match (session.header.status(), verb) {
        (Status::Discarded, _) => ("it is discarded: what it held is gone", None),
        (Status::Running, _) => ("its run has not ended", None),
        (Status::Pending, Verb::Redo) if never => {
            ("it was never committed, so there is nothing to redo", Some(format!("{recant} commit {id}", recant = recant())))
        }
        (Status::Pending, Verb::Rollback) if never => {
            let remedy = format!("{recant} discard {id} drops what it holds", recant = recant());
            ("it was never committed, so there is nothing to roll back", Some(remedy))
        }
        _ if pruned => ("its checkpoint was pruned: the originals are gone, and what is committed stays", None),
        _ => return Ok(()),
    };
    Err(not_now(id, why).with_remedy_if(remedy))
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
        return Err(refused(unknown));
    }
    let mut names = Names { session, changes, rules, by_inode: None };
    let mut notes = Vec::new();
    let mut to_follow: Vec<usize> = chosen.iter().copied().collect();
    while let Some(i) = to_follow.pop() {
        let above = needed_above(changes, i, rules).into_iter().filter(|k| chosen.insert(*k));
        to_follow.extend(above);
        for other in names.others(i)? {
            if !chosen.insert(other) {
                continue;
            }
            let path = &changes.list[other].path;
            notes.push(format!("{path}: comes along, as it is the same file as one that was named (a hard link)"));
            to_follow.push(other);
            let under: Vec<usize> = changes.under(path).filter(|k| (rules.may)(*k) && chosen.insert(*k)).collect();
            notes.extend(under.iter().map(|k| format!("{}: comes along, as it lies under {path}", changes.list[*k].path)));
            to_follow.extend(under);
        }
    }
    Ok(Choice { chosen: chosen.into_iter().collect(), notes })
}

fn needed_above(changes: &Changes, i: usize, rules: &Rules<'_>) -> Vec<usize> {
    let above = std::iter::successors(changes.list[i].path.parent(), AbsPath::parent);
    let listed = above.filter_map(|above| changes.list.binary_search_by(|change| change.path.cmp(&above)).ok());
    listed.filter(|at| (rules.needed)(*at)).collect()
}

/// The changes whose `to` or `from` is another name of a file that is chosen. With one name on the tree and one in the
/// store, a write to the first would change what is kept under the second (docs/DECISIONS.md, The engine); and what was
/// set on the first is not what goes back under the second.
struct Names<'a> {
    session: &'a Session,
    changes: &'a Changes,
    rules: &'a Rules<'a>,
    /// The changes that may be moved, by the files whose names they are: looked up once a file with several names is chosen.
    by_inode: Option<HashMap<Inode, Vec<usize>>>,
}

impl Names<'_> {
    /// The changes that are other names of what `i` moves, `i` among them; each file's names are given once.
    fn others(&mut self, i: usize) -> Result<Vec<usize>, Error> {
        let mut found = Vec::new();
        // It may stay under another name: a change of metadata alone.
        found.extend(self.held(i)?);
        found.extend(linked_on_tree(&self.changes.list[i].path)?);
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let all = match self.by_inode.take() {
            Some(known) => known,
            None => self.all()?,
        };
        let known = self.by_inode.insert(all);
        Ok(found.iter().filter_map(|inode| known.remove(inode)).flatten().collect())
    }

    fn all(&self) -> Result<HashMap<Inode, Vec<usize>>, Error> {
        let mut all = HashMap::<Inode, Vec<usize>>::new();
        for i in (0..self.changes.list.len()).filter(|i| (self.rules.may)(*i)) {
            for inode in self.held(i)?.into_iter().chain(linked_on_tree(&self.changes.list[i].path)?) {
                all.entry(inode).or_default().push(i);
            }
        }
        Ok(all)
    }

    /// The file in the store that is its `to`, if it has several names.
    fn held(&self, i: usize) -> Result<Option<Inode>, Error> {
        let Some(place) = (self.rules.lies)(i) else { return Ok(None) };
        let (dir, name) = match self.session.split(&place) {
            Err(error) if error.io().is_some_and(leads_nowhere) => return Ok(None),
            split => split?,
        };
        let stat = dir.at(name).stat().at("look at", dir.at(name))?;
        Ok(stat.filter(|stat| stat.sort == Sort::File).and_then(|stat| stat.shared()))
    }
}

/// The file on the tree, if it has several names; none where nothing is there.
fn linked_on_tree(path: &AbsPath) -> Result<Option<Inode>, Error> {
    use rustix::fs::{major, minor};
    use std::os::unix::fs::MetadataExt;
    match path.as_path().symlink_metadata() {
        Ok(meta) => Ok((meta.is_file() && meta.nlink() > 1).then(|| (Dev(major(meta.dev()), minor(meta.dev())), meta.ino()))),
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
