//! Two sides and what differs between them: a session and what was there, or two states of sessions.

use serde::Serialize;

use crate::compare::summary::Subject;
use crate::compare::{Content, Differences, End, Place, Renames, Sources, States, Summary, View};
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Change, Changes, Id, Session, Side, Sort, Step, Store};
use crate::tree::is_vcs;
use crate::verb::desk::Desk;
use crate::verb::fact::Fact;
use crate::verb::resolve::named_changes::{TypedPath, all_named, chosen_among};
use crate::verb::summary::known_places;

/// The two sides of a comparison.
#[derive(Clone, Copy)]
pub enum Pair<'s> {
    /// A session, with what was there before as the first side.
    Session(&'s Session),
    /// The step on which another one stands, and that one.
    Step(&'s Session, &'s Step),
    /// Two steps: the second one is a command that runs.
    Running(&'s Session, [u32; 2]),
    /// Two steps: the second one is the newest.
    Since(&'s Session, [u32; 2]),
    /// The heads of two sessions.
    Two([&'s Session; 2]),
}

/// A step at which a session stands, or stood.
#[derive(Serialize)]
pub struct Point<'s> {
    pub session: &'s Id,
    pub step: u32,
}

impl<'s> Pair<'s> {
    /// The session of the first side.
    pub fn session(&self) -> &'s Session {
        match self {
            Self::Session(session) | Self::Step(session, _) | Self::Running(session, _) | Self::Since(session, _) => session,
            Self::Two([session, _]) => session,
        }
    }

    /// The two states; `None` if a session is compared with what was there.
    pub fn points(&self) -> Option<[Point<'s>; 2]> {
        let (new, [from, to]) = match self {
            Self::Session(_) => return None,
            Self::Step(session, step) => (session, [step.on, step.n]),
            Self::Running(session, steps) | Self::Since(session, steps) => (session, *steps),
            Self::Two(sessions) => (&sessions[1], sessions.map(|session| session.header.head())),
        };
        let at = |session: &'s Session, step| Point { session: session.id(), step };
        Some([at(self.session(), from), at(new, to)])
    }
}

/// Two sides, and the changes from the one to the other.
pub struct Compared<'s> {
    pub desk: &'s Desk,
    pub store: &'s Store,
    pub pair: Pair<'s>,
    /// All changes, in path order.
    pub changes: Vec<Change>,
    /// The indexes of those that were asked for.
    pub chosen: Vec<usize>,
    /// The paths that were named.
    pub named: Vec<AbsPath>,
    pub contents: Contents<'s>,
}

/// The places that the contents of changes are read from.
pub enum Contents<'s> {
    Session { session: &'s Session, sides: Vec<Side>, sources: Option<Box<Sources<'s>>> },
    States { states: States<'s>, ends: Vec<[Place<'s>; 2]> },
}

/// The changes that are shown.
pub struct Terms<'a> {
    /// Those of the mtime alone, too.
    pub all: bool,
    /// Deletions and creations as renames, if that many percent of the content stayed.
    pub find_renames: Option<u8>,
    /// With remarks on files that came from elsewhere.
    pub remarks: bool,
    /// The directory that paths of patches start from; `None` for the root.
    pub top: Option<&'a AbsPath>,
}

/// True if a change is listed: with `all`, those of the mtime alone, too.
pub fn is_listed(change: &Change, all: bool) -> bool {
    all || change.sort() != Sort::Times
}

impl<'s> Compared<'s> {
    /// `lists`: those of the two sides, which may have a path in which these do not differ.
    pub(super) fn of_states(
        (desk, store): (&'s Desk, &'s Store),
        pair: Pair<'s>,
        (states, Differences { changes, ends }): (States<'s>, Differences<'s>),
        lists: [&Changes; 2],
        paths: &[TypedPath],
    ) -> Result<Self, Error> {
        let chosen = chosen_among(pair.session().id(), (&changes, &lists), paths)?;
        let named = all_named(pair.session().id(), (&changes, &lists), paths)?;
        Ok(Self { desk, store, pair, changes: changes.list, chosen, named, contents: Contents::States { states, ends } })
    }

    /// Drops what a repository that begins at `top` cannot take as a patch: what lies elsewhere, and version control's own. Returns the number
    /// of changes that this leaves out.
    pub fn only_below(&mut self, top: &AbsPath) -> usize {
        let is_own = |rest: &[u8]| rest.split(|byte| *byte == b'/').any(is_vcs);
        let fits = |path: &AbsPath| path.below(top).is_some_and(|rest| !rest.is_empty() && !is_own(rest));
        let before = self.chosen.len();
        self.chosen.retain(|i| fits(&self.changes[*i].path));
        before - self.chosen.len()
    }

    /// Sums up what was asked for; with `all` changes of the mtime alone, too.
    ///
    /// # Errors
    /// A content of git's own files cannot be read.
    pub fn summary(&mut self, all: bool) -> Result<Summary, Error> {
        let Self { desk, store, pair, changes, chosen, named, contents } = self;
        let places = known_places(desk, store, &pair.session().header);
        let subject = Subject { changes, chosen, named, places: &places, renames: None, all };
        Summary::of(subject, &mut |i, end| contents.open(changes, i, end))
    }

    /// Passes what was asked for to `show`, one by one, as long as that returns true: the first is shown before the next is read. Returns
    /// the number of changes that are not listed, as they are of the mtime alone.
    ///
    /// # Errors
    /// A content cannot be read; an error of `show`.
    pub fn for_each(&mut self, terms: &Terms<'_>, show: &mut dyn FnMut(&View<'_>) -> Result<bool, Error>) -> Result<u64, Error> {
        let mut renames = match terms.find_renames {
            Some(_) => self.renames(terms.find_renames)?,
            None => Renames::of(&self.changes),
        };
        let Self { changes, chosen, contents, .. } = self;
        let is_pair = |i: &usize| terms.find_renames.is_some() && chosen.binary_search(i).is_ok();
        let left_out = terms.top.filter(|top| top.depth() > 0).map_or(1, |top| top.as_bytes().len() + 1);
        let (mut times, mut goes_on) = (0, true);
        for i in chosen.iter().copied() {
            if !is_listed(&changes[i], terms.all) {
                times += 1;
                continue;
            }
            if !goes_on {
                break;
            }
            if renames.created(i).is_some_and(|new| is_pair(&new)) {
                continue;
            }
            let renamed = renames.deleted(i).filter(|(old, _)| is_pair(old));
            let gone = renamed.map(|(old, _)| contents.view(changes, old, true)).transpose()?;
            let mut view = contents.view(changes, i, true)?;
            if let Some((mut gone, (old, percent))) = gone.zip(renamed) {
                if gone.whole && view.whole {
                    view = View::renamed(gone, view, &changes[old], &changes[i], percent);
                } else {
                    gone.left_out = left_out;
                    show(&gone)?;
                }
            } else if terms.remarks {
                renames.learn(changes, i, &mut |i, end| contents.open(changes, i, end))?;
                view.say_renamed(renames.from(changes, i), renames.to(changes, i));
            }
            view.left_out = left_out;
            goes_on = show(&view)?;
        }
        Ok(times)
    }

    /// The renames of files that are the same, or alike to `least` percent.
    pub(super) fn renames(&mut self, least: Option<u8>) -> Result<Renames, Error> {
        let Self { desk, changes, contents, .. } = self;
        let mut open = |i, end| contents.open(changes, i, end);
        let mut renames = Renames::find_by(changes, &mut open)?;
        if let Some(least) = least
            && !renames.find_alike(changes, least, &mut open)?
        {
            desk.caller.tell(Fact::TooManyToCompare);
        }
        Ok(renames)
    }
}

impl Contents<'_> {
    /// The view of a change, by its index; of a session's without its contents, unless `read` is set.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn view<'c>(&mut self, changes: &'c [Change], i: usize, read: bool) -> Result<View<'c>, Error> {
        match self {
            Self::Session { session, sides, sources } => View::of(&changes[i], sides[i], opened(session, sources)?, read),
            Self::States { states, ends } => states.view(&changes[i], ends[i]),
        }
    }

    fn open(&mut self, changes: &[Change], i: usize, end: End) -> Result<Content, Error> {
        match self {
            Self::Session { session, sides, sources } => opened(session, sources)?.open(&changes[i], sides[i], end),
            Self::States { states, ends } => states.open(ends[i], end),
        }
    }
}

/// The sources of a session, opened once they are needed: names alone need none.
fn opened<'o, 's>(session: &'s Session, sources: &'o mut Option<Box<Sources<'s>>>) -> Result<&'o mut Sources<'s>, Error> {
    Ok(match sources {
        Some(sources) => sources,
        None => sources.insert(Box::new(Sources::of(session)?)),
    })
}
