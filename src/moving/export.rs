//! Export: a session as a stream. Reads it once, in path order; memory does not depend on the sizes of files.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use super::checkpoint_originals;
use super::error::damaged;
use super::stream::{Head, History, Object, PIECE, Sending};
use crate::engine::{Conflict, MEANWHILE};
use crate::error::{At, Error, command};
use crate::fs::{AbsPath, Dir, Roots, Sort, next_extent, stat_of};
use crate::remedy::Remedy;
use crate::session::{Change, Changes, Locked, Run, Session, Side, Status, header, not_now};
use crate::tree::{Hash, Hasher, Identity, Object as Wanted, Seen, State, What, observe};

/// The content that is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// For a session with nothing on the tree: what it would put there.
    Changes,
    /// For a committed session: what it took off the tree.
    Checkpoint,
}

pub enum Exported {
    Whole,
    /// Nothing is written: the tree does not hold what the session found there, so that its `before` is unknown. All such paths.
    Conflicts(Vec<Conflict>),
}

/// Writes `session` to `to`. The session's lock keeps it unchanged meanwhile.
///
/// Errors: something of the session is on the tree; held content is damaged.
pub fn export(session: &Locked, with: With, to: &mut dyn Write) -> Result<Exported, Error> {
    may_move(session, with)?;
    let mut changes = session.changes()?;
    let places = match with {
        With::Changes => {
            let sides = session.sides(changes.list.len())?;
            refuse_lost(session, &changes, &sides)?;
            let conflicts = learn_befores(&mut changes)?;
            if !conflicts.is_empty() {
                return Ok(Exported::Conflicts(conflicts));
            }
            places_of_held(session, &changes, &sides)?
        }
        With::Checkpoint => checkpoint_originals::learn(session, &mut changes)?,
    };
    let run = session.run()?;
    let mut sending = Sending::begin(to, &head(session, &changes, with, run.as_ref()))?;
    for change in &changes.list {
        sending.change(change)?;
    }
    for time in &changes.directory_times {
        sending.directory_time(time)?;
    }
    let mut contents = Contents { session, directory: None, firsts: HashMap::new(), buffer: vec![0; PIECE] };
    for change in &changes.list {
        let state = if with == With::Changes { &change.after } else { &change.before.object };
        if let (Some(place), Some(state)) = (places.get(&change.n), state) {
            contents.send(change, place, state, &mut sending)?;
        }
    }
    sending.end()?;
    Ok(Exported::Whole)
}

/// The places of the content that the session would put on the tree.
fn places_of_held(session: &Session, changes: &Changes, sides: &[Side]) -> Result<HashMap<u32, Vec<u8>>, Error> {
    let run = session.run()?;
    let files = changes.list.iter().zip(sides).filter(|(change, _)| is_file(&change.after));
    let place = |(change, side): (&Change, &Side)| Some((change.n, Session::held_at(change, *side, run.as_ref())?));
    Ok(files.filter_map(place).collect())
}

fn may_move(session: &Session, with: With) -> Result<(), Error> {
    let id = session.id();
    let kept = session.header.checkpoint == header::Checkpoint::Kept;
    let (why, remedy): (_, Remedy) = match (session.header.status(), with) {
        (Status::Pending | Status::RolledBack, With::Changes) => return Ok(()),
        (Status::Committed, With::Checkpoint) if session.header.is_in_part() => {
            ("a part of it is not on the tree", command(format_args!("commit {id}")).into())
        }
        (Status::Committed, With::Checkpoint) if kept => return Ok(()),
        (Status::Committed, With::Checkpoint) => {
            ("its checkpoint was pruned", command(format_args!("show {id}")) + " shows what is left")
        }
        (Status::Pending | Status::RolledBack, With::Checkpoint) => (
            "nothing of it is on the tree, so there is no checkpoint",
            command(format_args!("session export {id} > FILE")).into(),
        ),
        (Status::Committed, With::Changes) => {
            ("what is committed lies on the tree", command(format_args!("rollback {id}")) + " brings it back into the session")
        }
        (Status::Running, _) => ("its run has not ended", "let it end first".into()),
        (Status::Discarded, _) => {
            let (why, remedy) = session.header.why_discarded();
            (why, remedy.unwrap_or_else(|| command("list --all") + " shows all sessions"))
        }
    };
    Err(not_now(id, why).with_remedy(remedy))
}

/// Refuses a change whose content is lost: no other machine could make it either.
fn refuse_lost(session: &Session, changes: &Changes, sides: &[Side]) -> Result<(), Error> {
    let mut both = changes.list.iter().zip(sides);
    let lost = both.find(|(change, side)| **side == Side::Lost && is_file(&change.after) && !change.in_place());
    lost.map_or(Ok(()), |(change, _)| {
        let why = format!("{}: what was committed here is lost: it was changed before the rollback", change.path);
        Err(not_now(session.id(), why).with_remedy("make the change again in another session"))
    })
}

fn is_file(object: &Wanted) -> bool {
    matches!(object, Some(State { what: What::File { .. }, .. }))
}

fn head(session: &Session, changes: &Changes, with: With, run: Option<&Run>) -> Head {
    let header = &session.header;
    Head {
        id: header.id.clone(),
        name: header.name.clone(),
        origin: header.origin,
        created: header.created,
        command: header.command.clone(),
        by: header.by.clone(),
        unsynced: header.unsynced,
        checkpoint: with == With::Checkpoint,
        changes: changes.list.len() as u64,
        run: run.map(|run| History {
            argv: run.command.argv.clone(),
            cwd: run.command.cwd.clone(),
            uid: run.uid,
            started: run.command.started,
            ending: run.command.ending,
        }),
    }
}

/// Hashes each `before` that is known by its fingerprint alone, if the tree still holds it. Drops all fingerprints: they mean nothing on
/// another machine. Returns the conflicts.
fn learn_befores(changes: &mut Changes) -> Result<Vec<Conflict>, Error> {
    let mut roots = Roots::read()?;
    let mut conflicts = Vec::new();
    for change in &mut changes.list {
        if change.marks.foreign {
            conflicts.push(Conflict::because(&change.path, MEANWHILE));
        } else if matches!(change.before.object, Some(State { what: What::File { hash: None, .. }, .. })) {
            match learn(&mut roots, change)? {
                Ok(what) => note(change, &what),
                Err(conflict) => conflicts.push(conflict),
            }
        }
        change.before.print = None;
    }
    Ok(conflicts)
}

/// The object at the path, with its hash, if it is the one that the run found there.
fn learn(roots: &mut Roots, change: &Change) -> Result<Result<What, Conflict>, Error> {
    let path = &change.path;
    let found = observe_path(roots, path)?;
    let known = change.before.object.as_ref().zip(change.before.print.as_ref());
    let (Some((dir, seen)), Some((known, print))) = (&found, known) else {
        return Ok(Err(Conflict::because(path, "the file that the run found is gone, or cannot be identified")));
    };
    let another = || Conflict::because(path, "it is not the file that the run found, or changed since");
    let (is_unchanged, index) = (seen.unchanged_since(known, print), known.index());
    if !is_unchanged && (index.is_none() || known.meta_difference(&seen.state).is_some()) {
        return Ok(Err(another()));
    }
    let file = dir.at(path.name()).open_file()?;
    let (content, stat) = observe::read_since(&file, stat_of(&file).at("look at", path)?, index.is_some()).at("read", path)?;
    let is_it = observe::identity(&stat) == print.identity && stat.ctime == print.ctime;
    // git may have rewritten its index since, with the same meaning.
    let same = if is_unchanged { is_it } else { content.index.as_ref() == index };
    let what = What::File { size: stat.size, hash: Some(content.hash), index: content.index.map(Box::new) };
    Ok(if same { Ok(what) } else { Err(another()) })
}

fn observe_path(roots: &mut Roots, path: &AbsPath) -> Result<Option<(std::rc::Rc<Dir>, Seen)>, Error> {
    let parent = path.parent().unwrap_or_else(|| path.clone());
    let dir = match roots.directory(&parent) {
        Err(error) if error.leads_nowhere() => return Ok(None),
        dir => dir?,
    };
    let seen = observe::object(dir.at(path.name()))?;
    Ok(seen.map(|seen| (dir, seen)))
}

/// Records the content of `before`; a change of metadata alone has the same content after it.
fn note(change: &mut Change, found: &What) {
    let in_place = change.in_place();
    let sides = [Some(&mut change.before.object), in_place.then_some(&mut change.after)];
    for state in sides.into_iter().flatten().flatten() {
        if matches!(state.what, What::File { hash: None, .. }) {
            state.what = found.clone();
        }
    }
}

/// Held content that is being sent.
struct Contents<'s> {
    session: &'s Session,
    /// The directory that was opened last, and its place in the session.
    directory: Option<(Vec<u8>, Dir)>,
    /// For a file of several names: the number of the change that it was sent with.
    firsts: HashMap<Identity, u32>,
    buffer: Vec<u8>,
}

impl Contents<'_> {
    fn send(&mut self, change: &Change, place: &[u8], state: &State, sending: &mut Sending<'_>) -> Result<(), Error> {
        let What::File { size, hash, .. } = &state.what else { return Ok(()) };
        let damaged = |why: &str| damaged(&change.path, why);
        let (parent, name) = place.split_at(place.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1));
        let dir = self.directory(parent)?;
        let at = dir.at(name);
        let file = match at.open_file() {
            Err(error) if error.leads_nowhere() => return Err(damaged("the held content is missing from the store")),
            file => file?,
        };
        let stat = stat_of(&file).at("look at", &change.path)?;
        if stat.sort != Sort::File || stat.size != *size {
            return Err(damaged("the held content has another size in the store"));
        }
        let identity = observe::identity(&stat);
        if stat.nlink > 1 {
            if let Some(first) = self.firsts.get(&identity) {
                return sending.object(Object { n: change.n, link: Some(*first), names: None });
            }
            self.firsts.insert(identity, change.n);
        }
        sending.object(Object { n: change.n, link: None, names: (stat.nlink > 1).then_some(stat.nlink) })?;
        let sent = self.content(&file, *size, &change.path, sending)?;
        if hash.is_some_and(|known| known != sent) {
            return Err(damaged("the held content is damaged (SHA-256 differs)"));
        }
        sending.sum(sent)
    }

    fn directory(&mut self, parent: &[u8]) -> Result<&Dir, Error> {
        let parent = parent.strip_suffix(b"/").unwrap_or(parent);
        if self.directory.as_ref().is_none_or(|(path, _)| path != parent) {
            let own = &self.session.dir;
            let dir = own.open_below(parent)?;
            self.directory = Some((parent.to_vec(), dir));
        }
        // Set just above if it was another or none.
        Ok(&self.directory.as_ref().expect("a directory that was set above").1)
    }

    /// Sends the parts that have content. Returns the hash of all, holes included.
    fn content(&mut self, file: &File, size: u64, path: &AbsPath, sending: &mut Sending<'_>) -> Result<Hash, Error> {
        let (mut hasher, mut at) = (Hasher::default(), 0);
        while let Some((data, end)) = next_extent(file, at, size).at("read", path)? {
            hasher.zeros(data - at).at("read", path)?;
            at = data;
            while at < end {
                let want = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
                let got = match file.read_at(&mut self.buffer[..want], at) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    got => got.at("read", path)?,
                };
                if got == 0 {
                    return Err(damaged(path, "the held content became shorter"));
                }
                hasher.update(&self.buffer[..got]);
                sending.data(at, &self.buffer[..got])?;
                at += got as u64;
            }
        }
        hasher.zeros(size - at).at("read", path)?;
        Ok(hasher.finish())
    }
}
