//! The sessions that changed a path. Reads the bytes of each session's lines, and headers and lines of those alone that name the path.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;

use super::acting_agent::ActingAgent;
use super::change::{Change, Sort};
use super::header::{Checkpoint, Counts, Header, Status};
use super::id::Id;
use super::net_changes::Net;
use super::open_session::Session;
use super::sides::Side;
use super::store::{Broken, Store};
use crate::error::{Error, Kind};
use crate::fs::{AbsPath, Time, both};
use crate::tree::Mention;

/// The number of sessions from which a second thread pays.
const WORTH_A_THREAD: usize = 100;

/// A session, or a step of it, that changed a path.
#[derive(Debug)]
pub struct Touched {
    pub header: Header,
    /// The step's number, and the one that it stands on; `None` for a session that has no more than one.
    pub step: Option<(u32, u32)>,
    /// The time of the command, else of the session's beginning.
    pub time: Time,
    pub command: Option<String>,
    pub by: Option<ActingAgent>,
    /// The kinds of the changes at the path and below it, each counted.
    pub sorts: Vec<(Sort, u64)>,
    pub standing: Standing,
    /// The indices of the paths asked for that it changed.
    pub asked: BTreeSet<usize>,
    /// True if the session changes something else, too.
    pub has_others: bool,
}

/// The state in which the changes at a path are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// A command runs in the session.
    Running,
    /// They are held, and never were on the tree.
    Held,
    /// They are held in a step that is not below the head.
    Aside,
    /// They are held in a step below which nothing can be gone back to.
    Merged,
    /// A later step undid them, and the session was committed.
    Undone,
    /// At least one is on the tree.
    In,
    /// At least one is on the tree, and cannot be taken back.
    Final,
    /// They were on the tree.
    Out,
    Gone,
}

/// The sessions and steps that changed one of these paths or something below it, in no order; and those that cannot be read.
///
/// # Errors
/// The sessions cannot be listed.
pub fn touched(store: &Store, paths: &[Mention]) -> Result<(Vec<Touched>, Vec<Broken>), Error> {
    let names = store.sessions().names()?;
    let ids: Vec<Id> = names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
    let (first, second) = ids.split_at(if ids.len() < WORTH_A_THREAD { ids.len() } else { ids.len() / 2 });
    // Nearly all of the time is the kernel opening files, as for headers.
    let (mut found, more) = both(!second.is_empty(), || of_sessions(store, first, paths), || of_sessions(store, second, paths));
    found.extend(more);
    let mut broken = Vec::new();
    found.retain_mut(|(id, found)| match found {
        Ok(_) => true,
        // Pruned since the names were read.
        Err(error) if error.is_unknown() => false,
        Err(error) => {
            let why = if error.kind() == Kind::Damaged { error.why().to_owned() } else { error.to_string() };
            broken.push(Broken { name: id.to_string(), why });
            false
        }
    });
    broken.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((found.into_iter().filter_map(|(_, found)| found.ok()).flatten().collect(), broken))
}

type SessionTouches<'i> = (&'i Id, Result<Vec<Touched>, Error>);

/// Those of these sessions whose lines name one of the paths, or cannot be read.
fn of_sessions<'i>(store: &Store, ids: &'i [Id], paths: &[Mention]) -> Vec<SessionTouches<'i>> {
    let mut buffer = Vec::new();
    let mut has = |file: &str, id: &Id| match store.sessions().open_file_below(format!("{id}/{file}").as_bytes()) {
        Ok(file) => read_again(file, &mut buffer).is_err() || paths.iter().any(|path| path.is_in(&buffer)),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    let named = ids.iter().filter(|id| ["changes.jsonl", "steps.jsonl"].iter().any(|file| has(file, id)));
    named.map(|id| (id, of_session(store, id, paths))).collect()
}

fn read_again(mut file: File, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    buffer.clear();
    file.read_to_end(buffer).map(drop)
}

fn of_session(store: &Store, id: &Id, paths: &[Mention]) -> Result<Vec<Touched>, Error> {
    let session = store.session(id)?;
    // One that a verb is making for itself, or has left.
    if session.header.is_unsealed() {
        return Ok(Vec::new());
    }
    let net = Net::open(&session)?;
    let mut under = BTreeMap::new();
    for path in paths {
        under.extend(net.under(path.path())?.into_iter().map(|change| (change.path.clone(), change)));
    }
    let (header, sides) = (&session.header, Sides::of(&session)?);
    let has_others = header.counts.changes > under.len() as u64;
    if header.steps.is_some() {
        return of_steps(&session, paths, (&under, &sides), has_others);
    }
    let mut seen = Seen::default();
    under.values().for_each(|change| seen.take(paths, change, &sides));
    let (time, command, by) = (header.created, header.command.clone(), header.by.clone());
    Ok(seen.touched(header, has_others, None, (time, command, by)).into_iter().collect())
}

fn of_steps(
    session: &Session,
    paths: &[Mention],
    (under, sides): (&BTreeMap<AbsPath, Change>, &Sides),
    has_others: bool,
) -> Result<Vec<Touched>, Error> {
    let (list, header) = (session.steps()?, &session.header);
    let (chain, kept) = (header.chain(), list.kept(header));
    let mut found = Vec::new();
    for step in &list.steps {
        let mut seen = Seen::default();
        let own = list.own_of(session, step.n, |line| paths.iter().any(|path| path.is_in(line)))?;
        own.iter().for_each(|change| seen.take(paths, change, sides));
        let command = Some(step.command.called());
        let of = (step.command.started, command, step.command.by.clone());
        let is_net = own.iter().any(|change| under.contains_key(&change.path));
        found.extend(seen.touched(header, has_others, Some((step.n, step.on)), of).map(|touched| match touched.standing {
            Standing::Held | Standing::In | Standing::Out if !chain.contains(&step.n) => {
                Touched { standing: Standing::Aside, ..touched }
            }
            Standing::Held | Standing::In | Standing::Out if !is_net && header.counts.ever_in > 0 => {
                Touched { standing: Standing::Undone, ..touched }
            }
            // Older steps were merged into one: none of them can be gone back to.
            Standing::Held if step.on > 0 && !kept.contains(&step.on) => Touched { standing: Standing::Merged, ..touched },
            _ => touched,
        }));
    }
    Ok(found)
}

/// The sides of a session's changes.
enum Sides {
    /// All are on this one.
    All(Side),
    Each(BTreeMap<AbsPath, Side>),
}

impl Sides {
    /// Reads all changes only if they are on several sides.
    fn of(session: &Session) -> Result<Self, Error> {
        let Counts { changes, inside, ever_in } = session.header.counts;
        if ever_in == 0 {
            return Ok(Self::All(Side::Never));
        }
        if inside == changes {
            return Ok(Self::All(Side::In));
        }
        let list = session.changes()?.list;
        let sides = session.sides(list.len())?;
        Ok(Self::Each(list.into_iter().map(|change| change.path).zip(sides).collect()))
    }

    /// The side at a path; of one that is no net change, as if it was never in.
    fn at(&self, path: &AbsPath) -> Side {
        match self {
            Self::All(side) => *side,
            Self::Each(sides) => sides.get(path).copied().unwrap_or(Side::Never),
        }
    }
}

/// The changes at the paths asked for that were met.
#[derive(Default)]
struct Seen {
    sorts: Vec<(Sort, u64)>,
    asked: BTreeSet<usize>,
    inside: bool,
    was: bool,
}

impl Seen {
    /// Takes a change, if it is asked for.
    fn take(&mut self, paths: &[Mention], change: &Change, sides: &Sides) {
        let Some(asked) = index_of(paths, &change.path) else { return };
        self.asked.insert(asked);
        let side = sides.at(&change.path);
        (self.inside, self.was) = (self.inside || side.is_in(), self.was || side.was_in());
        match self.sorts.iter_mut().find(|(known, _)| *known == change.sort()) {
            Some((_, n)) => *n += 1,
            None => self.sorts.push((change.sort(), 1)),
        }
    }

    fn touched(
        self,
        header: &Header,
        has_others: bool,
        step: Option<(u32, u32)>,
        (time, command, by): (Time, Option<String>, Option<ActingAgent>),
    ) -> Option<Touched> {
        let Self { sorts, asked, inside, was } = self;
        let standing = standing(header, inside, was);
        let header = header.clone();
        (!sorts.is_empty()).then_some(Touched { header, step, time, command, by, sorts, standing, asked, has_others })
    }
}

/// The index of the first path that `path` is, or lies below.
fn index_of(paths: &[Mention], path: &AbsPath) -> Option<usize> {
    paths.iter().position(|asked| path.is_under(asked.path()))
}

/// The standing of changes of a session of which some are, or were, on the tree.
fn standing(header: &Header, inside: bool, was: bool) -> Standing {
    let is_final = header.checkpoint == Checkpoint::Pruned;
    match (header.status(), inside, was) {
        (Status::Discarded, ..) => Standing::Gone,
        (Status::Running, ..) => Standing::Running,
        (_, true, _) if is_final => Standing::Final,
        (_, true, _) => Standing::In,
        (_, false, true) => Standing::Out,
        (_, false, false) => Standing::Held,
    }
}
