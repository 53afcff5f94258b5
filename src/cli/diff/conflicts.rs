//! `diff --conflicts`: what stands against a commit or rollback. Conflicts path by path: what is on the tree now against what the verb would
//! put there. Where the session keeps the original, what became of it on either side. What the verb would refuse, as for missing rights,
//! with its reason.
//!
//! The engine finds both ([`engine::hindrances`]), so that they are those of the verb itself.

use std::rc::Rc;

use serde::Serialize;

use super::super::call::Call;
use super::super::ended::Ended;
use super::super::{args, place, text};
use super::showing::{self, Showing};
use super::shown::{Lines, Names, again};
use super::{about, patch};
use crate::checkpoint::limits::{Limits, OnLimit};
use crate::commit::{self, Request};
use crate::diff::sources::{Content, Sources};
use crate::diff::view::View;
use crate::engine;
use crate::engine::conflict::{self, Conflict};
use crate::engine::job::{OnConflict, Verb};
use crate::engine::left_out::Aside;
use crate::error::{Against, Error};
use crate::fs::path::AbsPath;
use crate::session::change::{Before, Change, Changes, Marks};
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::sides::Side;
use crate::session::store::Store;
use crate::tree::state::{Object, State, printed};
use crate::verb::error::not_in_session;

#[derive(Serialize)]
struct Whole<'a> {
    session: &'a Id,
    conflicts: &'a [Row<'a>],
    refused: &'a [Refused],
}

/// A path for which a verb would be refused, as no conflict is.
#[derive(Serialize)]
struct Refused {
    path: String,
    verb: &'static str,
    why: String,
}

#[derive(Serialize)]
struct Row<'a> {
    path: &'a AbsPath,
    /// The verb that meets it: `commit` for what is not on the tree, `rollback` for what is.
    verb: &'static str,
    expected: &'a str,
    found: &'a str,
    by: Option<&'a str>,
    forcible: bool,
    /// True if the session keeps the original.
    base: bool,
    #[serde(serialize_with = "printed")]
    now: &'a Object,
    #[serde(serialize_with = "printed")]
    wanted: &'a Object,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Lines>,
}

/// A conflict and the change that meets it. No change if the path is not the session's, but lies in a directory that it removes.
struct Clash<'c> {
    conflict: Conflict,
    verb: Verb,
    change: Option<(&'c Change, Side)>,
    now: Object,
    /// The object that the verb would put there.
    wanted: Object,
    /// The change from `now` to `wanted`, as shown.
    shown: Change,
    /// If the session keeps the original, the changes from that: to `now`, and to `wanted`.
    from_base: Option<[Change; 2]>,
}

pub fn diff(call: &Call, args: &args::Diff, store: &Store, session: &Session) -> Result<Ended, Error> {
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let mut sources = Sources::of(session)?;
    let mut clashes = Vec::new();
    let (found, refused) = asked_for(session, &changes, args, hindrances(store, session)?)?;
    for (verb, conflict) in found {
        clashes.push(Clash::of(verb, conflict, &changes, &sides, &mut sources)?);
    }
    if args.much.name_only {
        return Ok(names(call, session.id(), &clashes, &refused));
    }
    if !call.out.is_text() {
        let views = clashes.iter().map(|clash| clash.view(session.id(), &mut sources));
        let views = if args.much.stat { Some(views.collect::<Result<Vec<_>, _>>()?) } else { None };
        let lines = |i: usize| views.as_ref().map(|views| Lines::of(&views[i]));
        let rows: Vec<Row<'_>> = clashes.iter().enumerate().map(|(i, clash)| clash.row(lines(i))).collect();
        call.out.document(&Whole { session: session.id(), conflicts: &rows, refused: &refused });
        return Ok(Ended::Done);
    }
    let is_patch = !args.much.stat && args.much.form.tool.is_none();
    if clashes.is_empty() && !args.much.html {
        showing::page(call);
    } else {
        let mut showing = Showing::begin(call, &args.much, || about::conflicts(call, store, session))?;
        refused.iter().for_each(|Refused { path, verb, why }| showing.note("refused", format!("{verb} of {path}: {why}")));
        for clash in &clashes {
            let id = session.id();
            let views = if is_patch { clash.views(id, &mut sources)? } else { vec![clash.view(id, &mut sources)?] };
            views.iter().try_for_each(|view| showing.add(view))?;
        }
        showing.end(|options| again(args, session.id().tail(), options))?;
    }
    let remarked = refused.iter().filter(|_| !args.much.html);
    remarked.for_each(|Refused { path, why, .. }| patch::remark(&call.out, &format!("{path}: refused: {why}")));
    say_how_many(call, session.id(), &clashes, &refused, |clash| clash.from_base.is_some() && is_patch);
    Ok(Ended::Done)
}

/// Conflicts, each with the verb that meets it; and what verbs would refuse.
type Found = (Vec<(Verb, Conflict)>, Vec<Refused>);

/// All that stands against a commit of all that is out, and a rollback of all that is in. Conflicts in path order.
fn hindrances(store: &Store, session: &Session) -> Result<Found, Error> {
    let counts = session.header.counts;
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    let mut add = |verb: Verb, job| -> Result<(), Error> {
        let met = engine::hindrances(session, job)?;
        found.extend(met.conflicts.into_iter().map(|conflict| (verb, conflict)));
        refused.extend(met.refused.into_iter().map(|Against { path, why }| Refused { path, verb: verb.word(), why }));
        Ok(())
    };
    if counts.inside < counts.changes {
        let request = Request {
            paths: &[],
            on_conflict: OnConflict::Stop,
            limits: Limits { max_files: u64::MAX, max_size: u64::MAX, on_limit: OnLimit::Full },
            denied: Rc::new(|_| false),
            only: None,
            aside: &Aside::default(),
            accept_unsynced: true,
        };
        add(Verb::Commit, commit::commit(session, &request)?)?;
    }
    if counts.inside > 0 {
        add(Verb::Rollback, crate::rollback::rollback(session, (&[], None), OnConflict::Stop, &Aside::default())?)?;
    }
    found.sort_by(|(_, a), (_, b)| a.path.cmp(&b.path));
    let (verbs, mut conflicts): (Vec<Verb>, Vec<Conflict>) = found.into_iter().unzip();
    conflict::attribute(store, session.id(), &mut conflicts);
    Ok((verbs.into_iter().zip(conflicts).collect(), refused))
}

/// All that was found at and below the paths that are named, refusals also above them; all if none is.
fn asked_for(session: &Session, changes: &Changes, args: &args::Diff, (mut found, mut refused): Found) -> Result<Found, Error> {
    if args.paths.is_empty() {
        return Ok((found, refused));
    }
    let paths = args.paths.iter().map(|path| place::named(path, changes)).collect::<Result<Vec<_>, _>>()?;
    let is_known =
        |path: &AbsPath| !changes.under(path).is_empty() || found.iter().any(|(_, conflict)| conflict.path.is_under(path));
    if let Some(unknown) = paths.iter().find(|path| !is_known(path)) {
        return Err(not_in_session(session.id(), changes, unknown));
    }
    found.retain(|(_, conflict)| paths.iter().any(|path| conflict.path.is_under(path)));
    // A directory in which names cannot change, or a file system.
    refused.retain(|refused| {
        let at = AbsPath::parse(refused.path.as_bytes());
        at.map_or(true, |at| paths.iter().any(|path| at.is_under(path) || path.is_under(&at)))
    });
    Ok((found, refused))
}

impl<'c> Clash<'c> {
    fn of(
        verb: Verb,
        conflict: Conflict,
        changes: &'c Changes,
        sides: &[Side],
        sources: &mut Sources<'_>,
    ) -> Result<Self, Error> {
        let at = changes.list.binary_search_by(|change| change.path.cmp(&conflict.path)).ok();
        let change = at.map(|i| (&changes.list[i], sides[i]));
        let now = sources.now(&conflict.path)?;
        let wanted = match (change, verb) {
            (None, _) => None,
            (Some((change, _)), Verb::Rollback) => sources.kept(change)?,
            (Some((change, _)), _) => change.after.clone(),
        };
        let between = |before: &Object, after| Change {
            n: 0,
            path: conflict.path.clone(),
            before: Before { object: before.clone(), print: None },
            after,
            marks: Marks { same_content: change.is_some_and(|(change, _)| change.in_place()), ..Marks::default() },
            step: None,
            from: None,
        };
        let shown = between(&now, put(change.map(|(change, _)| change), &now, &wanted));
        let based = change.map(|(change, _)| change).filter(|change| verb == Verb::Commit && !change.in_place());
        let from_base = match based {
            Some(change) if sources.base(change)?.is_some() => {
                let base = &change.before.object;
                Some([between(base, now.clone()), between(base, wanted.clone())])
            }
            _ => None,
        };
        Ok(Self { conflict, verb, change, now, wanted, shown, from_base })
    }

    /// The views that a person reads: what became of the original on the tree and in the session; without it, one against the other.
    fn views(&self, id: &Id, sources: &mut Sources<'_>) -> Result<Vec<View<'_>>, Error> {
        let (Some([on_tree, held]), Some((change, side))) = (&self.from_base, self.change) else {
            return Ok(vec![self.view(id, sources)?]);
        };
        let (before, held_in) = (format!("before {}", id.tail()), format!("held in {}", id.tail()));
        let base = |sources: &mut Sources<'_>| Ok(sources.base(change)?.map_or(Content::Gone(String::new()), Content::File));
        let now = |sources: &mut Sources<'_>| Ok(sources.content_now(&self.conflict.path));
        let wanted = |sources: &mut Sources<'_>| sources.held(change, side);
        Ok(vec![
            View::of_two(on_tree, (&before, NOW), &self.conflict.why(), sources, base, now)?,
            View::of_two(held, (&before, &held_in), "what is held, from the same original", sources, base, wanted)?,
        ])
    }

    /// The view of a conflict as one change, its contents read.
    fn view(&self, id: &Id, sources: &mut Sources<'_>) -> Result<View<'_>, Error> {
        let wanted = match self.verb {
            Verb::Rollback => format!("before the commit of {}", id.tail()),
            _ => format!("held in {}", id.tail()),
        };
        let why = self.conflict.why();
        View::of_two(
            &self.shown,
            (NOW, &wanted),
            &why,
            sources,
            |sources| Ok(sources.content_now(&self.conflict.path)),
            |sources| match self.change {
                Some((change, _)) if change.in_place() => Ok(Content::Gone("only its metadata is held, no content".into())),
                Some((change, side)) => sources.held(change, side),
                None => Ok(Content::Gone(String::new())),
            },
        )
    }

    fn row(&self, lines: Option<Lines>) -> Row<'_> {
        let Conflict { path, expected, found, by, forcible, .. } = &self.conflict;
        let (now, wanted) = (&self.now, &self.wanted);
        Row {
            path,
            verb: self.verb.word(),
            expected,
            found,
            by: by.as_deref(),
            forcible: *forcible,
            base: self.from_base.is_some(),
            now,
            wanted,
            lines,
        }
    }
}

const NOW: &str = "on the tree now";

/// The object that would be there afterwards. A change of metadata leaves the content as it is.
fn put(change: Option<&Change>, now: &Object, wanted: &Object) -> Object {
    match (now, wanted) {
        (Some(now), Some(wanted)) if change.is_some_and(Change::in_place) && now.sort() == wanted.sort() => {
            Some(State { what: now.what.clone(), meta: wanted.meta.clone() })
        }
        _ => wanted.clone(),
    }
}

fn names(call: &Call, id: &Id, clashes: &[Clash<'_>], refused: &[Refused]) -> Ended {
    let paths: Vec<&AbsPath> = clashes.iter().map(|clash| &clash.conflict.path).collect();
    if call.out.is_text() {
        showing::page(call);
        paths.iter().for_each(|path| call.out.line(path));
        say_how_many(call, id, clashes, refused, |_| false);
    } else {
        call.out.document(&Names { paths: paths.clone() });
    }
    Ended::Done
}

/// Says how many there are. `in_two` tells which were shown by what became of their original on either side.
fn say_how_many(call: &Call, id: &Id, clashes: &[Clash<'_>], refused: &[Refused], in_two: impl Fn(&Clash<'_>) -> bool) {
    if clashes.is_empty() && refused.is_empty() {
        call.out.note(format_args!("session {id}: no conflicts"));
        return;
    }
    let refused_by = |verb: Verb| refused.iter().filter(|refused| refused.verb == verb.word()).count() as u64;
    for (verb, what) in [(Verb::Commit, "is held"), (Verb::Rollback, "would be put back")] {
        let (two, one): (Vec<_>, Vec<_>) = clashes.iter().filter(|clash| clash.verb == verb).partition(|clash| in_two(clash));
        let say = |clashes: &[&Clash<'_>], shown: &str| {
            if !clashes.is_empty() {
                let conflicts = text::count(clashes.len() as u64, "conflict");
                call.out.note(format_args!("{conflicts} for {}: {shown}", verb.word()));
            }
        };
        say(&one, &format!("- is {NOW}, + {what}"));
        say(&two, &format!("what changed on the tree, then what {what}"));
        if refused_by(verb) > 0 {
            let paths = text::count(refused_by(verb), "path");
            call.out.note(format_args!("a {} would be refused for {paths}", verb.word()));
        }
    }
}
