//! `diff` of a session.

use std::path::PathBuf;

use serde::Serialize;

use super::shown::{Lines, Source, UNSYNCED, again, names, refuse_discarded, show, times_folded};
use super::{about, brief, conflicts, showing, steps};
use crate::cli::call::Call;
use crate::cli::ended::Ended;
use crate::cli::place::all_whole;
use crate::cli::{args, parts, text};
use crate::diff::renames::Renames;
use crate::diff::sources::{Content, End, Sources};
use crate::diff::view::View;
use crate::error::{Error, Kind, command, recant};
use crate::session::change::Change;
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::sides::Side;
use crate::session::store::Store;
use crate::tree::json::Each;
use crate::verb::chosen::chosen;
use crate::verb::list::SessionRow;
use crate::verb::show::ChangeRow;
use crate::verb::standing::{Standing, cut_off};

/// A change in JSON: the row of `show`, and how the tree relates to it.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    change: ChangeRow<'a>,
    /// The tree does not hold what the session recorded: a commit or rollback would refuse.
    conflict: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Lines>,
}

#[derive(Serialize)]
struct Whole<'a, R: Serialize> {
    session: SessionRow<'a>,
    changes: R,
}

/// The beginning of a page of changes.
#[derive(Serialize)]
struct Brief<'a> {
    session: &'a Id,
    status: &'static str,
}

pub fn diff(call: &Call, args: &args::Diff) -> Result<Ended, Error> {
    showing::check(call, &args.much)?;
    let of_steps = args.step.is_some() || args.since.is_some();
    let key = args.id.as_deref();
    let found = if of_steps { crate::verb::steps::session(call, key) } else { call.looked_at(key) };
    let (store, session) = found.map_err(|problem| or_a_path(problem, args))?;
    refuse_discarded(&session)?;
    if of_steps {
        return steps::diff(call, args, store, &session);
    }
    let shown = match &args.with {
        Some(other) => steps::between(call, args, &session, other),
        None if args.blocks => blocks(call, args, &session),
        None if args.conflicts => conflicts::diff(call, args, store, &session),
        None => {
            if !args.much.stat && !args.much.name_only && !args.brief && args.paths.is_empty() {
                call.looked(store, &session);
            }
            diff_of(call, args, store, &session)
        }
    };
    call.believed(store, &session, shown)
}

/// Shows what can be taken by itself.
fn blocks(call: &Call, args: &args::Diff, session: &Session) -> Result<Ended, Error> {
    let changes = session.changes()?;
    let wanted = chosen(session.id(), &changes, &all_whole(&args.paths)?)?;
    parts::show::blocks(call, session, &changes, &wanted, args.much.all)
}

fn diff_of(call: &Call, args: &args::Diff, store: &Store, session: &Session) -> Result<Ended, Error> {
    let header = &session.header;
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let wanted = chosen(session.id(), &changes, &all_whole(&args.paths)?)?;
    if header.unsynced {
        call.out.warn(UNSYNCED);
    }
    if args.much.name_only {
        return Ok(names(call, wanted.iter().map(|i| &changes.list[*i]).filter(|change| args.much.lists(change))));
    }
    let mut sources = Sources::of(session)?;
    if call.out.is_text() {
        let again = |options: &str| again(args, session.id().tail(), options);
        let mut source = OfSession { changes: &changes.list, sides: &sides, sources };
        let of = || about::session(call, store, session);
        let shown = show(call, args, (&changes.list, &wanted), &mut source, &of, &again)?;
        if shown.times > 0 {
            call.out.note(times_folded(shown.times));
        }
        say_conflicts(call, shown.conflicts, session.id().tail());
        return Ok(Ended::Done);
    }
    let standing = Standing::of(store, header, &cut_off(store, store.journaled()?))?;
    if args.brief {
        let of = Brief { session: session.id(), status: standing.word };
        let mut source = OfSession { changes: &changes.list, sides: &sides, sources };
        brief::print(call, args, (&of, &[session.id().to_string()]), &changes.list, &wanted, &mut source)?;
        return Ok(Ended::Done);
    }
    let renames = Renames::find(&changes.list, &sides, &mut sources)?;
    let mut told = Vec::with_capacity(wanted.len());
    for i in &wanted {
        let view = View::of(&changes.list[*i], sides[*i], &mut sources, args.much.stat)?;
        told.push((*i, view.conflict, args.much.stat.then(|| Lines::of(&view))));
    }
    let row = |(i, conflict, lines): &(usize, bool, Option<Lines>)| {
        let change = ChangeRow::new(&changes.list, *i, sides[*i], &renames);
        Row { change, conflict: *conflict, lines: *lines }
    };
    let rows = || told.iter().map(row);
    call.out.document(&Whole { session: SessionRow::new(header, standing), changes: Each(&rows) });
    crate::cli::brief::offer(call, "diff --brief");
    Ok(Ended::Done)
}

/// Says that `recant diff src` names a path, if no session has that name.
fn or_a_path(problem: Error, args: &args::Diff) -> Error {
    match &args.id {
        Some(key) if problem.kind() == Kind::Refused && PathBuf::from(key).symlink_metadata().is_ok() => {
            problem.with_remedy(format!("the first word is a session; for the path: {recant} diff last {key}", recant = recant()))
        }
        _ => problem,
    }
}

struct OfSession<'c, 's> {
    changes: &'c [Change],
    sides: &'c [Side],
    sources: Sources<'s>,
}

impl<'c> Source<'c> for OfSession<'c, '_> {
    fn view(&mut self, i: usize) -> Result<View<'c>, Error> {
        View::of(&self.changes[i], self.sides[i], &mut self.sources, true)
    }

    fn open(&mut self, i: usize, end: End) -> Result<Content, Error> {
        self.sources.open(&self.changes[i], self.sides[i], end)
    }
}

/// Tells how to see what changed on the tree since.
fn say_conflicts(call: &Call, conflicts: u64, session: &str) {
    if conflicts > 0 {
        let paths = text::count(conflicts, "path");
        call.out.note(format_args!(
            "{paths} changed since: {} shows both sides",
            command(format_args!("diff {session} --conflicts"))
        ));
    }
}
