//! Chooses the changes of a session that are moved if only some paths are named.

use std::collections::{BTreeSet, HashMap};
use std::iter::Peekable;

use crate::engine::error::refused;
use crate::engine::item::number;
use crate::engine::job::Verb;
use crate::error::{Against, At, Error, command};
use crate::fs::{AbsPath, Dev, Inode, Sort, leads_nowhere};
use crate::session::{Change, Changes, Checkpoint, DirectoryTime, Reading, Session, Side, Status, not_now};

/// Checks that a verb can begin on a session. Refuses, with the remedy, one that is discarded, under way or without its originals, or was
/// never committed where that is needed.
pub fn may_begin(session: &Session, verb: Verb) -> Result<(), Error> {
    let id = session.id();
    let never = session.header.counts.changes > 0;
    let was_undone = session.header.reopened && never;
    let pruned = session.header.checkpoint == Checkpoint::Pruned && session.header.counts.inside > 0;
    let commit = || command(format_args!("commit {id}"));
    let (why, remedy) = match (session.header.status(), verb) {
        (Status::Discarded, _) => session.header.why_discarded(),
        (Status::Running, _) => ("its run has not ended", None),
        (Status::Pending, Verb::Redo) if session.header.is_as_undone() => return Ok(()),
        (Status::Pending, Verb::Redo) if was_undone => {
            ("it went on since its commit was undone, so there is nothing to redo", Some(commit().into()))
        }
        (Status::Pending, Verb::Redo) if never => ("it was never committed, so there is nothing to redo", Some(commit().into())),
        (Status::Pending, Verb::Rollback) if was_undone => {
            ("its commit was undone, so there is nothing to roll back", Some(command(format_args!("show {id}")).into()))
        }
        (Status::Pending, Verb::Rollback) if never => {
            let remedy = command(format_args!("discard {id}")) + " drops what it holds";
            ("it was never committed, so there is nothing to roll back", Some(remedy))
        }
        _ if pruned => ("its checkpoint was pruned: the originals are gone, and what is committed stays", None),
        _ => return Ok(()),
    };
    Err(not_now(id, why).with_remedy_if(remedy))
}

/// The changes of a session that are asked for, by index in path order.
pub struct Choice {
    pub chosen: Vec<usize>,
    /// Notes, for people: what comes along although it was not named.
    pub notes: Vec<String>,
}

impl Choice {
    pub fn paths(&self, changes: &Changes) -> Vec<AbsPath> {
        self.chosen.iter().map(|i| changes.list[*i].path.clone()).collect()
    }
}

/// The changes of a session that a verb moves, read one by one in path order.
pub struct Chosen {
    changes: Reading,
    index: usize,
    sides: Vec<Side>,
    starts: fn(Side) -> bool,
    /// The changes of named paths; `None` for all that start on the right side.
    named: Option<Peekable<std::vec::IntoIter<usize>>>,
}

impl Chosen {
    /// Reads all changes whose side `starts`, or those of `choice` alone.
    pub fn new(session: &Session, sides: Vec<Side>, starts: fn(Side) -> bool, choice: Option<Vec<usize>>) -> Result<Self, Error> {
        let named = choice.map(|choice| choice.into_iter().peekable());
        Ok(Self { changes: session.read_changes()?, index: 0, sides, starts, named })
    }

    /// Returns the next change, its index in path order, and its side.
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

    /// The mtimes of directories that are no changes, once all changes were read.
    pub fn directory_times(self) -> Vec<DirectoryTime> {
        self.changes.directory_times()
    }
}

/// The facts about each change, by index, for [`choose`].
pub struct Rules<'a> {
    /// True if it is on the side that the verb starts from.
    pub may: &'a dyn Fn(usize) -> bool,
    /// True for a directory that what lies under it needs on the tree.
    pub needed: &'a dyn Fn(usize) -> bool,
    /// The place of its `to` below the session's directory.
    pub lies: &'a dyn Fn(usize) -> Option<Vec<u8>>,
}

/// Chooses the changes at and under `paths` that may be moved, the other names of files hard-linked with them, and the directories above
/// that they need. Without a path, all that may be moved.
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
            unknown.push(Against::new(path, not_in_session(changes, path)));
        }
        chosen.extend(under.filter(|i| (rules.may)(*i)));
    }
    if !unknown.is_empty() {
        return Err(refused(unknown));
    }
    with_needed(session, changes, chosen, rules)
}

/// Adds what has to be moved with chosen changes: the other names of files hard-linked with them, and the directories above that they need.
pub fn with_needed(
    session: &Session,
    changes: &Changes,
    mut chosen: BTreeSet<usize>,
    rules: &Rules<'_>,
) -> Result<Choice, Error> {
    let mut names = Names { session, changes, rules, by_inode: None };
    let mut notes = Vec::new();
    let mut to_follow: Vec<usize> = chosen.iter().copied().collect();
    while let Some(i) = to_follow.pop() {
        let above = needed_above(changes, i, rules).into_iter().filter(|k| chosen.insert(*k));
        to_follow.extend(above);
        for other in names.other_names(i)? {
            if !chosen.insert(other) {
                continue;
            }
            let path = &changes.list[other].path;
            notes.push(format!("{path}: included, because it is a hard link to a named path"));
            to_follow.push(other);
            let under: Vec<usize> = changes.under(path).filter(|k| (rules.may)(*k) && chosen.insert(*k)).collect();
            notes.extend(under.iter().map(|k| format!("{}: included, because it lies under {path}", changes.list[*k].path)));
            to_follow.extend(under);
        }
    }
    Ok(Choice { chosen: chosen.into_iter().collect(), notes })
}

fn needed_above(changes: &Changes, i: usize, rules: &Rules<'_>) -> Vec<usize> {
    let above = changes.list[i].path.ancestors();
    let listed = above.filter_map(|above| changes.list.binary_search_by(|change| change.path.cmp(&above)).ok());
    listed.filter(|at| (rules.needed)(*at)).collect()
}

/// Finds the changes whose `to` or `from` is another name of a chosen file. With one name on the tree and one in the store, a write to
/// the first would change what is kept under the second (docs/DECISIONS.md, The engine); and metadata set on the first would not be what
/// comes back under the second.
struct Names<'a> {
    session: &'a Session,
    changes: &'a Changes,
    rules: &'a Rules<'a>,
    /// The changes that may be moved, by the inodes that they name. Filled once a file with several names is chosen.
    by_inode: Option<HashMap<Inode, Vec<usize>>>,
}

impl Names<'_> {
    /// The changes that are other names of what `i` moves, with `i` itself. Returns each file's names once.
    fn other_names(&mut self, i: usize) -> Result<Vec<usize>, Error> {
        let mut found = Vec::new();
        // It may stay under another name: a change of metadata alone.
        found.extend(self.inode_in_store(i)?);
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
            for inode in self.inode_in_store(i)?.into_iter().chain(linked_on_tree(&self.changes.list[i].path)?) {
                all.entry(inode).or_default().push(i);
            }
        }
        Ok(all)
    }

    /// The inode in the store that is its `to`, if it has several names.
    fn inode_in_store(&self, i: usize) -> Result<Option<Inode>, Error> {
        let Some(place) = (self.rules.lies)(i) else { return Ok(None) };
        let (dir, name) = match self.session.split(&place) {
            Err(error) if error.io().is_some_and(leads_nowhere) => return Ok(None),
            split => split?,
        };
        let stat = dir.at(name).stat()?;
        Ok(stat.filter(|stat| stat.sort == Sort::File).and_then(|stat| stat.shared()))
    }
}

/// The inode on the tree, if it has several names; `None` if nothing is there.
fn linked_on_tree(path: &AbsPath) -> Result<Option<Inode>, Error> {
    use rustix::fs::{major, minor};
    use std::os::unix::fs::MetadataExt;
    match path.as_path().symlink_metadata() {
        Ok(meta) => Ok((meta.is_file() && meta.nlink() > 1).then(|| (Dev(major(meta.dev()), minor(meta.dev())), meta.ino()))),
        Err(error) if leads_nowhere(&error) => Ok(None),
        Err(error) => Err(error).at("look at", path).map_err(Error::from),
    }
}

/// The changed path that has the longest start in common with another one.
pub fn nearest<'c>(changes: &'c Changes, path: &AbsPath) -> Option<&'c AbsPath> {
    let shared = |other: &AbsPath| other.as_bytes().iter().zip(path.as_bytes()).take_while(|(a, b)| a == b).count();
    changes.list.iter().map(|change| &change.path).max_by_key(|other| shared(other))
}

fn not_in_session(changes: &Changes, path: &AbsPath) -> String {
    let nearest = nearest(changes, path).map_or(String::new(), |nearest| format!("; the nearest is {nearest}"));
    format!("the session holds no change there{nearest}")
}
