//! Two objects that stand against each other at a path: the one on the tree now, and the one that a commit or rollback would put there.

use serde::Serialize;

use super::sources::{Content, End, Sources};
use super::view::View;
use crate::error::Error;
use crate::fs::AbsPath;
use crate::session::{Before, Change, Id, Marks, Side};
use crate::tree::{Object, State, printed};

/// The name of the side that is there.
pub const NOW: &str = "on the tree now";

/// Two objects, and the change that wants the one in place of the other.
#[derive(Serialize)]
pub struct Clash<'c> {
    #[serde(serialize_with = "printed")]
    now: Object,
    /// The object that would be put there.
    #[serde(serialize_with = "printed")]
    wanted: Object,
    /// `None` if the path is not the session's, but lies in a directory that it removes.
    #[serde(skip)]
    change: Option<(&'c Change, Side)>,
    /// The end of the change that is wanted.
    #[serde(skip)]
    end: End,
    #[serde(skip)]
    why: String,
    /// The change from `now` to `wanted`, as shown.
    #[serde(skip)]
    shown: Change,
    /// If the session keeps the original, the changes from that: to `now`, and to `wanted`.
    #[serde(skip)]
    from_base: Option<[Change; 2]>,
}

impl<'c> Clash<'c> {
    /// Looks at what is at `path`, where this end of a change is wanted. `why`: the reason why that cannot be.
    ///
    /// # Errors
    /// The tree or the session cannot be read.
    pub fn of(
        path: &AbsPath,
        change: Option<(&'c Change, Side)>,
        end: End,
        why: String,
        sources: &mut Sources<'_>,
    ) -> Result<Self, Error> {
        let now = sources.now(path)?;
        let of = change.map(|(change, _)| change);
        let wanted = match (of, end) {
            (None, _) => None,
            (Some(change), End::Before) => sources.original_object(change)?,
            (Some(change), End::After) => change.after.clone(),
        };
        let marks = Marks { same_content: of.is_some_and(Change::in_place), ..Marks::default() };
        let between = |before: &Object, after| {
            let before = Before { object: before.clone(), print: None };
            Change { marks, ..Change::new(0, path.clone(), before, after) }
        };
        let shown = between(&now, put(of, &now, &wanted));
        let from_base = match (of, end) {
            (Some(change), End::After) if !change.in_place() && sources.base(change)?.is_some() => {
                let base = &change.before.object;
                Some([between(base, now.clone()), between(base, wanted.clone())])
            }
            _ => None,
        };
        Ok(Self { now, wanted, change, end, why, shown, from_base })
    }

    /// True if the session keeps the original.
    pub fn has_base(&self) -> bool {
        self.from_base.is_some()
    }

    /// The views that a person reads: what became of the original on the tree and in the session; without it, one against the other.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn views(&self, id: &Id, sources: &mut Sources<'_>) -> Result<Vec<View<'_>>, Error> {
        let (Some([on_tree, held]), Some((change, side))) = (&self.from_base, self.change) else {
            return Ok(vec![self.view(id, sources)?]);
        };
        let (before, held_in) = (format!("before {}", id.tail()), format!("held in {}", id.tail()));
        let base = |sources: &mut Sources<'_>| Ok(sources.base(change)?.map_or(Content::Gone(String::new()), Content::File));
        let now = |sources: &mut Sources<'_>| Ok(sources.content_now(&change.path));
        let wanted = |sources: &mut Sources<'_>| sources.held(change, side);
        Ok(vec![
            View::of_two(on_tree, (&before, NOW), &self.why, sources, base, now)?,
            View::of_two(held, (&before, &held_in), "what is held, from the same original", sources, base, wanted)?,
        ])
    }

    /// The view of the one against the other.
    ///
    /// # Errors
    /// A content cannot be read.
    pub fn view(&self, id: &Id, sources: &mut Sources<'_>) -> Result<View<'_>, Error> {
        let label = match self.end {
            End::Before => format!("before the commit of {}", id.tail()),
            End::After => format!("held in {}", id.tail()),
        };
        let now = |sources: &mut Sources<'_>| Ok(sources.content_now(&self.shown.path));
        let wanted = |sources: &mut Sources<'_>| match self.change {
            Some((change, _)) if change.in_place() => Ok(Content::Gone("only its metadata is held, no content".into())),
            Some((change, side)) => sources.held(change, side),
            None => Ok(Content::Gone(String::new())),
        };
        View::of_two(&self.shown, (NOW, &label), &self.why, sources, now, wanted)
    }
}

/// The object that would be there afterwards. A change of metadata leaves the content as it is.
fn put(change: Option<&Change>, now: &Object, wanted: &Object) -> Object {
    match (now, wanted) {
        (Some(now), Some(wanted)) if change.is_some_and(Change::in_place) && now.sort() == wanted.sort() => {
            Some(State { what: now.what.clone(), meta: wanted.meta.clone() })
        }
        _ => wanted.clone(),
    }
}
