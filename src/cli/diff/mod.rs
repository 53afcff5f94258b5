//! `diff`: a session's changes as a patch that `git apply` takes, as counts, as paths, or in JSON.
//!
//! Lines that start with `#`, between the patches, hold what a patch cannot say (directories, owners, FIFOs, conflicts). Programs that
//! read patches skip them there.

pub mod about;
mod brief;
mod conflicts;
pub mod html;
pub mod patch;
pub mod showing;
mod spool;
mod stat;
mod steps;
pub mod tool;

pub use steps::{say_running, view as view_of_states};

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::Serialize;

use super::chosen::chosen;
use super::list::SessionRow;
use super::out::Each;
use super::show::ChangeRow;
use super::{Call, Ended, Standing, args, cut_off, parts, since, text};
use crate::diff::patch::{Form, counts};
use crate::diff::renames::Renames;
use crate::diff::sources::{Content, End, Sources};
use crate::diff::view::View;
use crate::error::{Error, Kind, command, recant};
use crate::fs::path::{AbsPath, Shown};
use crate::session::change::{Change, Sort};
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::sides::Side;
use crate::session::store::Store;
use crate::tree::state::{Object, printed};
use showing::Showing;

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
        let counts = counts(view, Form::default());
        Self { insertions: counts.map(|c| c.0), deletions: counts.map(|c| c.1), binary: view.is_binary() }
    }
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

#[derive(Serialize)]
struct Names<'a> {
    paths: Vec<&'a AbsPath>,
}

/// A change between two states in JSON.
#[derive(Serialize)]
pub struct Between<'a> {
    path: &'a AbsPath,
    change: Sort,
    #[serde(serialize_with = "printed")]
    before: &'a Object,
    #[serde(serialize_with = "printed")]
    after: &'a Object,
}

impl<'a> Between<'a> {
    pub fn of(change: &'a Change) -> Self {
        Self { path: &change.path, change: change.sort(), before: &change.before.object, after: &change.after }
    }
}

pub fn diff(call: &Call, args: &args::Diff) -> Result<Ended, Error> {
    showing::check(call, &args.much)?;
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
        None if args.blocks => blocks(call, args, &session),
        None if args.conflicts => conflicts::diff(call, args, store, &session),
        None => {
            if !args.much.stat && !args.much.name_only && !args.brief && args.paths.is_empty() {
                since::looked(call, store, &session);
            }
            diff_of(call, args, store, &session)
        }
    };
    call.believed(store, &session, shown)
}

/// Shows what can be taken by itself.
fn blocks(call: &Call, args: &args::Diff, session: &Session) -> Result<Ended, Error> {
    let changes = session.changes()?;
    let wanted = chosen(session.id(), &changes, &args.paths)?;
    parts::show::blocks(call, session, &changes, &wanted, args.much.all)
}

/// Refuses a session whose content is gone.
pub fn refuse_discarded(session: &Session) -> Result<(), Error> {
    let refused = || Error::refused(format!("session {} is discarded: what it held is gone", session.id()));
    if session.header.freed { Err(refused()) } else { Ok(()) }
}

fn diff_of(call: &Call, args: &args::Diff, store: &Store, session: &Session) -> Result<Ended, Error> {
    let header = &session.header;
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let wanted = chosen(session.id(), &changes, &args.paths)?;
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
    super::brief::offer(call, "diff --brief");
    Ok(Ended::Done)
}

/// The words for a session that a power cut may have cost content.
pub const UNSYNCED: &str = "the machine went down before the content was on the disk: files may be empty or cut";

/// Says that `recant diff src` names a path, if no session has that name.
fn or_a_path(problem: Error, args: &args::Diff) -> Error {
    match &args.id {
        Some(key) if problem.kind() == Kind::Refused && PathBuf::from(key).symlink_metadata().is_ok() => {
            problem.with_remedy(format!("the first word is a session; for the path: {recant} diff last {key}", recant = recant()))
        }
        _ => problem,
    }
}

/// Prints paths alone.
pub fn names<'c>(call: &Call, listed: impl Iterator<Item = &'c Change>) -> Ended {
    let paths: Vec<&AbsPath> = listed.map(|change| &change.path).collect();
    if call.out.is_text() {
        showing::page(call);
        paths.iter().for_each(|path| call.out.line(path));
    } else {
        call.out.document(&Names { paths: paths.clone() });
    }
    Ended::Done
}

/// Changes, and what opens their contents. A change is named by its index.
trait Source<'c> {
    fn view(&mut self, i: usize) -> Result<View<'c>, Error>;
    /// The content at an end of a change.
    fn open(&mut self, i: usize, end: End) -> Result<Content, Error>;
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

/// The numbers to be told of changes that were shown.
struct Said {
    /// Changes of the mtime alone, which are not listed.
    times: u64,
    conflicts: u64,
}

/// Shows the changes at `wanted`, one by one: the first is printed before the next is read. `of` tells a page what it is of, and `again` is
/// this call with other options.
fn show<'c>(
    call: &Call,
    args: &args::Diff,
    (changes, wanted): (&'c [Change], &[usize]),
    source: &mut dyn Source<'c>,
    of: &dyn Fn() -> Result<html::Of, Error>,
    again: &dyn Fn(&str) -> String,
) -> Result<Said, Error> {
    let mut showing = Showing::begin(call, &args.much, of)?;
    let mut renames = match args.find_renames {
        Some(least) => alike(call, changes, least, source)?,
        None => Renames::of(changes),
    };
    let pairs = args.find_renames.is_some();
    let is_wanted = |i: &usize| pairs && wanted.binary_search(i).is_ok();
    let mut times = 0;
    for i in wanted.iter().copied() {
        if !args.much.lists(&changes[i]) {
            times += 1;
            continue;
        }
        if call.out.is_closed() {
            break;
        }
        if renames.created(i).is_some_and(|new| is_wanted(&new)) {
            continue;
        }
        if let Some((old, percent)) = renames.deleted(i).filter(|(old, _)| is_wanted(old)) {
            let (gone, new) = (source.view(old)?, source.view(i)?);
            if gone.whole && new.whole {
                showing.add(&View::renamed(gone, new, &changes[old], &changes[i], percent))?;
            } else {
                showing.add(&gone)?;
                showing.add(&new)?;
            }
            continue;
        }
        let mut view = source.view(i)?;
        if showing.is_patch() {
            renames.learn(changes, i, &mut |i, end| source.open(i, end))?;
            view.remarks.extend(renames.from(changes, i).map(|from| format!("renamed from {from}")));
            view.remarks.extend(renames.to(changes, i).map(|to| format!("renamed to {to}")));
        }
        showing.add(&view)?;
    }
    let conflicts = showing.conflicts;
    if times > 0 {
        showing.note("not listed", times_folded(times));
    }
    showing.end(again)?;
    Ok(Said { times, conflicts })
}

/// The renames of files that are the same, or alike to `least` percent.
fn alike<'c>(call: &Call, changes: &'c [Change], least: u8, source: &mut dyn Source<'c>) -> Result<Renames, Error> {
    let mut open = |i, end| source.open(i, end);
    let mut renames = Renames::find_by(changes, &mut open)?;
    if !renames.find_alike(changes, least, &mut open)? {
        call.out
            .note("too many files were created and deleted to compare them all: only those that are the same count as renamed");
    }
    Ok(renames)
}

fn again(args: &args::Diff, session: &str, options: &str) -> String {
    let sides = match args {
        args::Diff { conflicts: true, .. } => " --conflicts".into(),
        args::Diff { step: Some(n), .. } => format!(" --step {n}"),
        args::Diff { since: Some(n), .. } => format!(" --since {n}"),
        args::Diff { with: Some(other), .. } => format!(" --with {other}"),
        _ => String::new(),
    };
    let paths = args.paths.iter().map(|path| format!(" {}", Shown(path.as_os_str().as_bytes()))).collect::<String>();
    let space = if args.much.form.ignore_space { " -w" } else { "" };
    let renames = args.find_renames.map(|least| format!(" --find-renames={least}%")).unwrap_or_default();
    command(format_args!("diff {session}{sides}{space}{renames}{paths}{options}"))
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
