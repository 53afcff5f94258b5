//! `diff`: the changes from one side to another, with their contents.
//!
//! The changes are a stream: contents are read one after the other, while the session is open. So a face passes what is to be done with it,
//! and what that found is judged at the end: another recant may have been at work in the session meanwhile.

pub mod blocks;
pub mod compared;
pub mod conflicts;
pub mod listed;

use blocks::Parts;
use compared::{Compared, Contents, Pair};
use conflicts::Conflicts;

use super::desk::Desk;
use super::error::{content_gone, step_0};
use super::fact::Fact;
use super::resolve::named_changes::TypedPath;
use super::resolve::named_changes::{all_named, chosen};
use super::steps;
use crate::compare::{Differences, States};
use crate::error::Error;
use crate::session::{Session, Store};

/// The sides that are asked for.
#[derive(Debug, Clone, Copy)]
pub enum Sides<'a> {
    /// The session, against what was there before.
    Session,
    /// A step, against the one that it stands on.
    Step(u32),
    /// The head, against a step; 0 is the tree as it was.
    Since(u32),
    /// The head of the session that this word means, against the session's own.
    With(&'a str),
}

/// A session that is open to be compared.
pub struct Opened<'d> {
    desk: &'d Desk,
    store: &'d Store,
    session: Session,
    sides: Sides<'d>,
}

/// The look at what differs.
pub type Show<'f> = dyn FnMut(&mut Compared<'_>) -> Result<(), Error> + 'f;

/// Opens the session that `key` means, else `last`.
///
/// # Errors
/// No session is meant; it cannot be read.
pub fn open<'d>(desk: &'d Desk, key: Option<&str>, sides: Sides<'d>) -> Result<Opened<'d>, Error> {
    let (store, session) = match sides {
        Sides::Step(_) | Sides::Since(_) => steps::session(desk, key)?,
        Sides::Session | Sides::With(_) => desk.looked_at(key)?,
    };
    Ok(Opened { desk, store, session, sides })
}

/// Refuses a session whose content is gone.
///
/// # Errors
/// It is gone.
pub fn refuse_discarded(session: &Session) -> Result<(), Error> {
    if session.header.freed { Err(content_gone(session.id())) } else { Ok(()) }
}

impl Opened<'_> {
    /// Compares the two sides, and passes what differs to `show`: that at and below `paths`, or all.
    ///
    /// # Errors
    /// The content is gone; there is no such step; a path is not in the session; a content cannot be read; an error of `show`.
    pub fn compare(&self, paths: &[TypedPath], show: &mut Show<'_>) -> Result<(), Error> {
        match self.sides {
            Sides::Session => self.looked(|_, _| self.whole(paths, show)),
            Sides::With(other) => self.looked(|_, _| self.with(other, paths, show)),
            Sides::Step(_) | Sides::Since(_) => {
                let Self { desk, store, session, .. } = self;
                refuse_discarded(session)?;
                let so_far = desk.so_far(store, session.id())?.map(|(so_far, _)| so_far);
                let shown = self.of_steps(so_far.as_ref(), paths, show);
                desk.believed(store, so_far.as_ref().unwrap_or(session), shown)
            }
        }
    }

    /// Takes the changes at and below `paths` apart, or all, and passes them to `show`; with `all` those of the mtime alone, too.
    ///
    /// # Errors
    /// The content is gone; a path is not in the session; a content cannot be read; an error of `show`.
    pub fn blocks(
        &self,
        paths: &[TypedPath],
        all: bool,
        show: &mut dyn FnMut(&mut Parts<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.looked(|_, session| show(&mut Parts::of(session, &session.changes()?, paths, all)?))
    }

    /// Finds what stands against a commit or rollback at and below `paths`, or at all, and passes it to `show`.
    ///
    /// # Errors
    /// The content is gone; a path is not in the session; the tree or a content cannot be read; an error of `show`.
    pub fn conflicts(
        &self,
        paths: &[TypedPath],
        show: &mut dyn FnMut(&mut Conflicts<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.looked(|store, session| {
            let changes = session.changes()?;
            let sides = session.sides(changes.list.len())?;
            show(&mut Conflicts::of((store, session), (&changes, &sides), paths)?)
        })
    }

    /// Has `look` look at the session, and judges what that returns.
    fn looked(&self, look: impl FnOnce(&Store, &Session) -> Result<(), Error>) -> Result<(), Error> {
        refuse_discarded(&self.session)?;
        self.desk.believed(self.store, &self.session, look(self.store, &self.session))
    }

    fn whole(&self, paths: &[TypedPath], show: &mut Show<'_>) -> Result<(), Error> {
        let Self { desk, store, session, .. } = self;
        let changes = session.changes()?;
        let contents = Contents::Session { session, sides: session.sides(changes.list.len())?, sources: None };
        let chosen = chosen(session.id(), &changes, paths)?;
        let named = all_named(session.id(), (&changes, &[]), paths)?;
        self.say_unsynced(session.header.unsynced);
        show(&mut Compared { desk, store, pair: Pair::Session(session), changes: changes.list, chosen, named, contents })
    }

    fn with(&self, other: &str, paths: &[TypedPath], show: &mut Show<'_>) -> Result<(), Error> {
        let (store, other) = self.desk.looked_at(Some(other))?;
        refuse_discarded(&other)?;
        self.desk.believed(store, &other, self.two([&self.session, &other], paths, show))
    }

    fn two(&self, sessions: [&Session; 2], paths: &[TypedPath], show: &mut Show<'_>) -> Result<(), Error> {
        self.say_unsynced(sessions.iter().any(|session| session.header.unsynced));
        let [old, new] = [sessions[0].changes()?, sessions[1].changes()?];
        let mut states = States::of([(sessions[0], &old), (sessions[1], &new)])?;
        let differences = states.between(&old, &new)?;
        let (at, found) = ((self.desk, self.store), (states, differences));
        show(&mut Compared::of_states(at, Pair::Two(sessions), found, [&old, &new], paths)?)
    }

    fn of_steps(&self, so_far: Option<&Session>, paths: &[TypedPath], show: &mut Show<'_>) -> Result<(), Error> {
        let (desk, sealed) = (self.desk, &self.session);
        let latest = so_far.unwrap_or(sealed);
        // The first command of a session is told by what it has changed so far, a further one by a look at its own upper.
        let session = if sealed.header.lines == 0 { latest } else { sealed };
        let (header, list, head) = (&session.header, steps::of(session)?, latest.changes()?);
        let running = so_far.filter(|_| sealed.header.lines > 0).map(|_| header.next_step());
        let last = running.unwrap_or(header.head());
        if so_far.is_some() && !matches!(self.sides, Sides::Step(n) if n != last) {
            desk.say_running(session);
        }
        let mut states = States::of([(latest, &head)])?;
        let (n, pair) = match self.sides {
            Sides::Step(0) => return Err(step_0(session.id())),
            Sides::Step(n) if running != Some(n) => (n, Pair::Step(latest, list.get(header, n)?)),
            Sides::Since(n) => (n, Pair::Since(latest, [n, last])),
            _ => (header.head(), Pair::Running(latest, [header.head(), last])),
        };
        list.check(header, n)?;
        if matches!(pair, Pair::Since(..)) && n != 0 && n != last && !header.chain().contains(&n) {
            desk.caller.tell(Fact::NotBelow { step: n });
        }
        let (old, differences);
        if let Pair::Step(_, step) = pair {
            self.say_unsynced(step.unsynced);
            old = list.own(session, n)?;
            differences = Differences::of_step(&old);
        } else {
            self.say_unsynced(header.unsynced);
            old = list.net(session, n)?;
            differences = states.between(&old, &head)?;
        }
        show(&mut Compared::of_states((desk, self.store), pair, (states, differences), [&old, &head], paths)?)
    }

    fn say_unsynced(&self, unsynced: bool) {
        if unsynced {
            self.desk.caller.tell(Fact::Unsynced);
        }
    }
}
