//! `diff`: a session's changes as a patch that `git apply` takes, as counts, as paths, or in JSON.
//!
//! Lines that start with `#`, between the patches, hold what a patch cannot say (directories, owners, FIFOs, conflicts). Programs that
//! read patches skip them there.

mod conflicts;
pub mod patch;
pub mod stat;
mod steps;

pub use steps::say_running;

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::Serialize;

use super::chosen::chosen;
use super::list::SessionRow;
use super::out::Each;
use super::problem::Problem;
use super::show::ChangeRow;
use super::{Call, Ended, Standing, args, cut_off, text};
use crate::diff::patch::counts;
use crate::diff::renames::Renames;
use crate::diff::sources::Sources;
use crate::diff::view::View;
use crate::error::{Kind, command, recant};
use crate::fs::path::{AbsPath, Shown};
use crate::session::change::{Change, Sort};
use crate::session::header::Status;
use crate::session::opened::Session;
use crate::session::sides::Side;
use crate::session::store::Store;

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

/// The counts of `--stat`.
#[derive(Clone, Copy, Serialize)]
struct Lines {
    /// `null` if lines cannot be counted: binary, too large, or a side is missing.
    insertions: Option<usize>,
    deletions: Option<usize>,
    binary: bool,
}

impl Lines {
    fn of(view: &View<'_>) -> Self {
        let counts = counts(view);
        Self { insertions: counts.map(|c| c.0), deletions: counts.map(|c| c.1), binary: view.is_binary() }
    }
}

/// `{"schema":2,"session":{…},"changes":[…]}`.
#[derive(Serialize)]
struct Whole<'a, R: Serialize> {
    session: SessionRow<'a>,
    changes: R,
}

/// `{"schema":2,"paths":[…]}`.
#[derive(Serialize)]
struct Names<'a> {
    paths: Vec<&'a AbsPath>,
}

/// Shows a session's changes.
pub fn diff(call: &Call, args: &args::Diff) -> Result<Ended, Problem> {
    let of_steps = args.step.is_some() || args.since.is_some();
    let key = args.id.as_deref();
    let found = if of_steps { super::steps::session(call, key) } else { call.looked_at(key) };
    let (store, session) = found.map_err(|problem| or_a_path(problem, args))?;
    refuse_discarded(&session)?;
    if of_steps {
        return steps::diff(call, args, store, &session);
    }
    let shown = match &args.with {
        Some(other) => steps::between(call, args, &session, other),
        None if args.conflicts => conflicts::diff(call, args, store, &session),
        None => diff_of(call, args, store, &session),
    };
    call.believed(store, &session, shown)
}

fn refuse_discarded(session: &Session) -> Result<(), Problem> {
    let is_discarded = session.header.status() == Status::Discarded;
    let refused = || Problem::refused(format!("session {} is discarded: what it held is gone", session.id()));
    if is_discarded { Err(refused()) } else { Ok(()) }
}

fn diff_of(call: &Call, args: &args::Diff, store: &Store, session: &Session) -> Result<Ended, Problem> {
    let header = &session.header;
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let wanted = chosen(session.id(), &changes, &args.paths)?;
    if header.unsynced {
        call.out.warn(UNSYNCED);
    }
    let listed: Vec<(&Change, Side)> = wanted.iter().map(|i| (&changes.list[*i], sides[*i])).collect();
    if args.much.name_only {
        return Ok(names(call, args, listed.iter().map(|(change, _)| *change)));
    }
    let mut sources = Sources::of(session)?;
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        return if args.much.stat {
            stat::print(call, args, &listed, &mut sources)
        } else {
            print(call, args, &changes.list, &wanted, &sides, &mut sources)
        };
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
    let standing = Standing::of(store, header, &cut_off(store, store.journaled()?))?;
    call.out.list(&Whole { session: SessionRow::new(header, standing), changes: Each(&rows) }, &rows);
    Ok(Ended::Done)
}

const UNSYNCED: &str = "the machine went down before the content was on the disk: files may be empty or cut";

/// Says that `recant diff src` names a path, if no session has that name.
fn or_a_path(problem: Problem, args: &args::Diff) -> Problem {
    match &args.id {
        Some(key) if problem.kind == Kind::Refused && PathBuf::from(key).symlink_metadata().is_ok() => {
            problem.remedy(format!("the first word is a session; for the path: {recant} diff last {key}", recant = recant()))
        }
        _ => problem,
    }
}

fn names<'c>(call: &Call, args: &args::Diff, listed: impl Iterator<Item = &'c Change>) -> Ended {
    let paths = listed.filter(|change| args.much.all || change.sort() != Sort::Times);
    let paths: Vec<&AbsPath> = paths.map(|change| &change.path).collect();
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        paths.iter().for_each(|path| call.out.line(path));
    } else {
        let lines = paths.iter().map(|path| Names { paths: vec![path] });
        call.out.list(&Names { paths: paths.clone() }, || lines);
    }
    Ended::Done
}

fn print(
    call: &Call,
    args: &args::Diff,
    changes: &[Change],
    wanted: &[usize],
    sides: &[Side],
    sources: &mut Sources,
) -> Result<Ended, Problem> {
    let (mut times, mut conflicts, mut renames) = (0, 0, Renames::of(changes));
    for i in wanted {
        let change = &changes[*i];
        if change.sort() == Sort::Times && !args.much.all {
            times += 1;
            continue;
        }
        if call.out.is_closed() {
            break;
        }
        let mut view = View::of(change, sides[*i], sources, true)?;
        renames.learn(changes, *i, &mut |i, end| sources.open(&changes[i], sides[i], end))?;
        view.remarks.extend(renames.from(changes, *i).map(|from| format!("renamed from {from}")));
        view.remarks.extend(renames.to(changes, *i).map(|to| format!("renamed to {to}")));
        conflicts += u64::from(view.conflict);
        patch::print(call, &view);
    }
    if times > 0 {
        call.out.note(times_folded(times));
    }
    say_conflicts(call, conflicts, sources.tail());
    Ok(Ended::Done)
}

/// This call with other options.
fn again(args: &args::Diff, session: &str, options: &str) -> String {
    let sides = match args {
        args::Diff { conflicts: true, .. } => " --conflicts".into(),
        args::Diff { step: Some(n), .. } => format!(" --step {n}"),
        args::Diff { since: Some(n), .. } => format!(" --since {n}"),
        args::Diff { with: Some(other), .. } => format!(" --with {other}"),
        _ => String::new(),
    };
    let paths = args.paths.iter().map(|path| format!(" {}", Shown(path.as_os_str().as_bytes()))).collect::<String>();
    command(format_args!("diff {session}{sides}{paths}{options}"))
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

/// The words for changes that are not listed.
fn times_folded(times: u64) -> String {
    format!("{} of the mtime alone (--all lists them)", text::count(times, "change"))
}
