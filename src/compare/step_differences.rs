//! Compares two states of sessions: before and after a step, at two steps, or at the heads of two sessions.
//!
//! A content lies in the upper of the step that wrote it. That of the head may have moved since: a commit brings it to the tree, a rollback
//! to the held objects. What is there no more, or is not what was recorded, is said to be gone.

use std::cmp::Ordering;

use super::sources::{Content, End, OnTree, Sources};
use super::view::View;
use crate::error::{At, Error};
use crate::session::{Before, Change, Changes, Marks, Session, Side};
use crate::tree::{Likeness, Object, observe};

/// An object in a state of a session, and where its content lies: an end of a change.
#[derive(Debug, Clone, Copy)]
pub struct Place<'c> {
    /// The session, by its index in [`States`].
    of: usize,
    /// A change against the tree as it was, or against an earlier step.
    change: &'c Change,
    end: End,
}

impl<'c> Place<'c> {
    fn before(of: usize, change: &'c Change) -> Self {
        Self { of, change, end: End::Before }
    }

    fn after(of: usize, change: &'c Change) -> Self {
        Self { of, change, end: End::After }
    }

    fn object(&self) -> &'c Object {
        match self.end {
            End::Before => &self.change.before.object,
            End::After => &self.change.after,
        }
    }

    /// The step that wrote the content; `None` if it was on the tree.
    fn writer(&self) -> Option<u32> {
        match self.end {
            End::After if !self.change.in_place() => Some(self.change.step.unwrap_or(1)),
            _ => self.change.from,
        }
    }

    /// True if both have one content, as far as can be told without reading.
    fn shares(&self, other: &Self) -> bool {
        match (self.writer(), other.writer()) {
            (None, None) => self.change.before.object == other.change.before.object,
            (one, another) => self.of == other.of && one == another,
        }
    }
}

/// The paths at which two states differ, in path order.
#[derive(Debug, Default)]
pub struct Differences<'c> {
    /// The changes from the one to the other.
    pub changes: Changes,
    /// The two ends of each.
    pub ends: Vec<[Place<'c>; 2]>,
}

impl<'c> Differences<'c> {
    /// The changes of a step against the one that it stands on.
    pub fn of_step(own: &'c Changes) -> Self {
        let ends = own.list.iter().map(|change| [Place::before(0, change), Place::after(0, change)]);
        Self { changes: own.clone(), ends: ends.collect() }
    }
}

/// The sessions whose states are compared: one, or two.
pub struct States<'s>(Vec<Contents<'s>>);

/// The contents that the steps of a session wrote and found.
struct Contents<'s> {
    sources: Sources<'s>,
    head: &'s Changes,
    sides: Vec<Side>,
}

impl<'s> States<'s> {
    /// Opens the contents of sessions, each with its changes.
    ///
    /// # Errors
    /// A file of a session cannot be read.
    pub fn of(sessions: impl IntoIterator<Item = (&'s Session, &'s Changes)>) -> Result<Self, Error> {
        let open = |(session, head): (&'s Session, &'s Changes)| {
            Ok(Contents { sources: Sources::of(session)?, head, sides: session.sides(head.list.len())? })
        };
        sessions.into_iter().map(open).collect::<Result<_, Error>>().map(Self)
    }

    /// The differences from `old`, changes of the first session, to `new`, of the last one; both are against the tree as it was. A path
    /// that only one of them changes is compared with what was there before. Reads files if nothing else tells whether they are equal.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn between<'c>(&mut self, old: &'c Changes, new: &'c Changes) -> Result<Differences<'c>, Error> {
        let last = self.0.len() - 1;
        let (mut olds, mut news) = (old.list.iter().peekable(), new.list.iter().peekable());
        let mut found = Differences::default();
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return Ok(found),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.path.cmp(&new.path),
            };
            let old = if order.is_le() { olds.next() } else { None };
            let new = if order.is_ge() { news.next() } else { None };
            let (old, new) = match (old, new) {
                (Some(old), Some(new)) => (Place::after(0, old), Place::after(last, new)),
                (Some(old), None) => (Place::after(0, old), Place::before(0, old)),
                (None, Some(new)) => (Place::before(last, new), Place::after(last, new)),
                (None, None) => continue,
            };
            if let Some(change) = self.change(old, new)? {
                found.changes.list.push(change);
                found.ends.push([old, new]);
            }
        }
    }

    /// The change from one object at a path to another; `None` if they are equal, times included.
    fn change(&mut self, old: Place<'_>, new: Place<'_>) -> Result<Option<Change>, Error> {
        let (before, after) = (old.object(), new.object());
        if before == after && (before.is_none() || old.shares(&new)) {
            return Ok(None);
        }
        let same_content = match (before, after) {
            (Some(a), Some(b)) if a.content_likeness(b) == Likeness::ReadToTell => self.are_equal(old, new)?,
            _ => false,
        };
        let (path, marks) = (new.change.path.clone(), Marks { same_content, ..Marks::default() });
        let found = Before { object: before.clone(), print: None };
        let change = Change { marks, ..Change::new(0, path, found, after.clone()) };
        let mtime = |object: &Object| object.as_ref().map(|state| state.meta.mtime);
        let differs = !change.is_none() || mtime(before) != mtime(after);
        Ok(differs.then_some(change))
    }

    fn are_equal(&mut self, old: Place<'_>, new: Place<'_>) -> Result<bool, Error> {
        if old.shares(&new) {
            return Ok(true);
        }
        let (Content::File(a), Content::File(b)) = (self.content(old)?, self.content(new)?) else { return Ok(false) };
        let [a, b] = [a, b].map(|file| observe::hash_of(&file).at("read", &new.change.path));
        Ok(a?.0 == b?.0)
    }

    /// The view of a change between two ends.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn view<'d>(&mut self, change: &'d Change, [old, new]: [Place<'_>; 2]) -> Result<View<'d>, Error> {
        View::of_states(change, self, |states| states.content(old), |states| states.content(new))
    }

    /// The content of the file at an end of a difference.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(&mut self, [old, new]: [Place<'_>; 2], end: End) -> Result<Content, Error> {
        self.content(match end {
            End::Before => old,
            End::After => new,
        })
    }

    fn content(&mut self, place: Place<'_>) -> Result<Content, Error> {
        let contents = &mut self.0[place.of];
        match place.end {
            End::Before => contents.before(place.change),
            End::After => contents.after(place.change),
        }
    }
}

impl<'s> Contents<'s> {
    /// The content that a change found: in the upper of an earlier step, or on the tree as it was.
    fn before(&mut self, change: &Change) -> Result<Content, Error> {
        let object = &change.before.object;
        if let Some(step) = change.from {
            return self.written(step, change, object);
        }
        let known = self.at_head(change).filter(|(head, _)| head.before.object == *object);
        let (change, side) = known.unwrap_or((change, Side::Never));
        match self.sources.on_tree(change, side) {
            OnTree::Changed if !side.is_in() => Ok(Content::Gone("the tree has something else there now".into())),
            on_tree => self.sources.before(change, side, &on_tree),
        }
    }

    /// The content that a change put there, in the upper of its step. One that it left alone lies where it was before.
    fn after(&mut self, change: &Change) -> Result<Content, Error> {
        if change.in_place() { self.before(change) } else { self.written(change.step.unwrap_or(1), change, &change.after) }
    }

    /// The content that a step wrote at the path of a change.
    fn written(&mut self, step: u32, change: &Change, object: &Object) -> Result<Content, Error> {
        match self.at_head(change).filter(|(head, _)| head.step.unwrap_or(1) == step && !head.in_place()) {
            Some((head, side)) => {
                let on_tree = if side.is_in() { self.sources.on_tree(head, side) } else { OnTree::AsRecorded };
                self.sources.after(head, side, &on_tree)
            }
            None => self.sources.written(step, &change.path, object),
        }
    }

    /// The change of the session at a path, and its side.
    fn at_head(&self, change: &Change) -> Option<(&'s Change, Side)> {
        let i = self.head.list.binary_search_by(|head| head.path.cmp(&change.path)).ok()?;
        Some((&self.head.list[i], self.sides[i]))
    }
}
