//! The files that an agent keeps about itself, at the end of its run: those that only record what it did are committed. What it obeys of them,
//! and what somebody else changed meanwhile, stays held.

use std::io::Read;

use globset::{GlobSet, GlobSetBuilder};

use super::notice::{Notice, Obstacle, Records};
use crate::agent::{Agent, State as Kept, obeyed_change};
use crate::capture::Rest;
use crate::compare::{Content, OnTree, Pick, Picked, Sources, Taken, mark_of};
use crate::error::{At, Error};
use crate::fs::{AbsPath, Dir, Sort};
use crate::session::{Change, Changes, Id, Session, Side};
use crate::settings::path_glob;
use crate::tree::State;
use crate::verb::commit::{Commit, commit as commit_part};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::resolve::guard;
use crate::verb::resolve::target::{Target, What};

/// The most bytes of a file of state that are read for what an agent obeys in it.
const MOST: u64 = 16 << 20;

/// The most records that are committed at once: each is a descriptor.
const MOST_RECORDS: usize = 300;

/// The records of an agent: those that can be committed, and those that stay held, each with the reason.
#[derive(Default)]
pub struct Candidates {
    picks: Vec<Pick>,
    held: Vec<(AbsPath, Obstacle)>,
}

/// Commits records as a session of their own, and tells of it. All of them stay held where that comes to nothing.
pub fn commit(desk: &Desk, agent: Agent, id: &Id, found: Result<Candidates, Error>) {
    let tell = |records: Records<'_>| desk.caller.tell(Fact::Run(Notice::Records(agent, records)));
    let Candidates { picks, held } = match found {
        Ok(found) => found,
        Err(why) => return tell(Records::Held(&why)),
    };
    if !held.is_empty() {
        tell(Records::HeldEach(&held));
    }
    let count = picks.len();
    if count == 0 {
        return;
    }
    if let Some(variable) = guard::limited(desk) {
        return tell(Records::AgentCalls(variable));
    }
    let of = Target { what: What::Beside(Picked(picks)), ..Target::all(id.as_str()) };
    match commit_part(&desk.unasked(), &Commit::of(of)) {
        Ok(None) => {}
        Ok(Some(acted)) => match &acted.rest {
            Some((of, Rest::Untold(why))) => tell(Records::Held(&error::untold(why, of, &acted.session))),
            _ => tell(Records::Committed { count, part: &acted.session, is_whole: acted.is_whole() }),
        },
        Err(why) => tell(Records::Held(&why)),
    }
}

/// Finds the changes of files that an agent only records.
///
/// # Errors
/// A glob of the settings is wrong; the session cannot be read.
pub fn find(keeps: &Kept, session: &Session) -> Result<Candidates, Error> {
    let (globs, made) = (set_of(&keeps.records)?, set_of(&keeps.made)?);
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let mut sources = Sources::of(session)?;
    let conversations = changes.list.iter().filter_map(|change| Conversation::of(change, &globs)).collect();
    let look = Look { keeps, globs, made, changes: &changes, conversations };
    let mut found = Candidates::default();
    for (change, side) in changes.list.iter().zip(&sides).filter(|(change, side)| look.is_record(change, **side)) {
        let path = change.path.clone();
        match look.obstacle(change, *side, &mut sources) {
            Some(why) => found.held.push((path, why)),
            None if found.picks.len() == MOST_RECORDS => found.held.push((path, Obstacle::TooMany(MOST_RECORDS))),
            None => found.picks.push(Pick { path, taken: Taken::Whole, seen: mark_of(change, *side, &mut sources) }),
        }
    }
    Ok(found)
}

/// A look at the changes of a session for records.
struct Look<'a> {
    keeps: &'a Kept,
    globs: GlobSet,
    made: GlobSet,
    changes: &'a Changes,
    conversations: Vec<Conversation<'a>>,
}

impl Look<'_> {
    /// The directory in which an agent keeps what belongs to conversations, if a path lies in one.
    fn of_conversations(&self, path: &AbsPath) -> Option<&AbsPath> {
        self.keeps.of_conversations.iter().find(|kept| path.is_under(kept))
    }

    fn is_record(&self, change: &Change, side: Side) -> bool {
        let path = &change.path;
        let is_memory = path.as_bytes().split(|b| *b == b'/').any(|name| name == b"memory");
        // A directory of which nothing is committed stays, too; one that is needed comes along.
        let is_directory = change.after.as_ref().is_some_and(State::is_dir);
        let is_known = self.of_conversations(path).is_some() || self.globs.is_match(path.as_path());
        is_known && !side.is_in() && !is_memory && !is_directory && !change.marks.same_content
    }

    /// The reason why a record is not committed; `None` if it is.
    fn obstacle(&self, change: &Change, side: Side, sources: &mut Sources<'_>) -> Option<Obstacle> {
        if change.marks.foreign || sources.on_tree(change, side) != OnTree::AsRecorded {
            return Some(Obstacle::Changed);
        }
        let is_of_none = |kept| !self.conversations.iter().any(|one| one.made(change, kept, self.changes));
        let is_older = change.before.object.is_some() && self.made.is_match(change.path.as_path());
        if is_older || self.of_conversations(&change.path).is_some_and(is_of_none) {
            return Some(Obstacle::OfAnotherConversation);
        }
        no_record(self.changes, change, sources).unwrap_or_else(|error| Some(Obstacle::Unreadable(error)))
    }
}

/// Why a change is more than a record; `None` if it is one: a file that was made, or a line that was added, or state in which the agent obeys
/// nothing that changed.
fn no_record(changes: &Changes, change: &Change, sources: &mut Sources<'_>) -> Result<Option<Obstacle>, Error> {
    let Some(after) = &change.after else { return Ok(Some(Obstacle::Deleted)) };
    if let Some(why) = odd(change.before.object.as_ref(), after, change.marks.linked) {
        return Ok(Some(why));
    }
    // A directory that was made for it comes along.
    let above = std::iter::successors(change.path.parent(), AbsPath::parent);
    let mut made = above.filter_map(|above| changes.at(&above)?.after.as_ref());
    if made.any(|made| made.meta.mode & DIRECTORY_GAINS != 0 || !made.meta.xattrs.is_empty()) {
        return Ok(Some(Obstacle::OpenDirectory));
    }
    if after.size() > MOST {
        return Ok(Some(Obstacle::TooLarge(MOST)));
    }
    let before = before(change)?;
    let mut bytes = Vec::new();
    match sources.after(change, Side::Never, &OnTree::AsRecorded)? {
        Content::File(file) => drop(file.take(MOST).read_to_end(&mut bytes).at("read", &change.path)?),
        Content::Gone(why) => return Ok(Some(Obstacle::Gone(why))),
    }
    let name = change.path.name();
    Ok(match name.ends_with(b".json") {
        true => obeyed_change(name, &before, &bytes).map(Obstacle::Obeyed),
        false => (!bytes.starts_with(&before)).then_some(Obstacle::LinesGone),
    })
}

/// Set-user-id, set-group-id, and what others may write to.
const DIRECTORY_GAINS: u32 = 0o6022;

/// The oddity of a record: anything but a plain file, or rights that it gains.
fn odd(before: Option<&State>, after: &State, linked: bool) -> Option<Obstacle> {
    /// Set-user-id, set-group-id, and what others may do.
    const GAINS: u32 = 0o6133;
    let had = before.map_or(0, |before| before.meta.mode);
    let is_given_away = |before: &State| (before.meta.uid, before.meta.gid) != (after.meta.uid, after.meta.gid);
    match () {
        () if !after.is_file() || before.is_some_and(|before| !before.is_file()) => Some(Obstacle::NoFile),
        () if linked => Some(Obstacle::SeveralNames),
        () if after.meta.mode & GAINS & !had != 0 => Some(Obstacle::Mode),
        () if before.is_some_and(is_given_away) => Some(Obstacle::Owner),
        () if !after.meta.xattrs.is_empty() => Some(Obstacle::Attributes),
        () => None,
    }
}

/// The content on the tree of a file that a run has changed; nothing if it was made. Larger than [`MOST`], its first bytes.
fn before(change: &Change) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some((parent, name)) = change.path.parent().zip(change.path.split().map(|(_, name)| name))
        && change.before.object.is_some()
    {
        let dir = Dir::open(parent.as_path())?;
        // What has come there since may never end.
        if dir.at(name).stat()?.is_some_and(|stat| stat.sort == Sort::File) {
            dir.at(name).open_file()?.take(MOST).read_to_end(&mut bytes).at("read", &change.path)?;
        }
    }
    Ok(bytes)
}

/// A conversation, as its transcript among the changes tells.
struct Conversation<'a> {
    /// The name of the transcript, which begins the names of all that is kept of it.
    id: &'a [u8],
    /// True if the transcript was there before.
    goes_on: bool,
}

impl<'a> Conversation<'a> {
    fn of(change: &'a Change, transcripts: &GlobSet) -> Option<Self> {
        let id = change.path.name().strip_suffix(b".jsonl").filter(|id| !id.is_empty())?;
        let is_among_transcripts = change.path.parent()?.parent()?.name() == b"projects";
        let is_one = is_among_transcripts && transcripts.is_match(change.path.as_path());
        is_one.then_some(Self { id, goes_on: change.before.object.is_some() })
    }

    /// True if it has made a file below `kept`, where all conversations keep theirs: the file is new, and so is what is kept of a conversation
    /// that is new itself.
    fn made(&self, change: &Change, kept: &AbsPath, changes: &Changes) -> bool {
        let Some(first) = change.path.below(kept).and_then(|below| below.split(|b| *b == b'/').find(|name| !name.is_empty()))
        else {
            return false;
        };
        let is_new = |path: &AbsPath| changes.at(path).is_some_and(|change| change.before.object.is_none());
        let is_first_new = kept.join(first).is_ok_and(|path| is_new(&path));
        first.starts_with(self.id) && change.before.object.is_none() && (self.goes_on || is_first_new)
    }
}

fn set_of(globs: &[String]) -> Result<GlobSet, Error> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(path_glob(glob).map_err(|why| error::no_glob(glob, &why))?);
    }
    set.build().map_err(|why| error::no_glob("", &why))
}
