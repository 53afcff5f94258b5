//! Changes one by one, as they are shown: of a session, between steps, or between two sessions.

use std::os::unix::ffi::OsStrExt;

use serde::Serialize;

use super::html;
use super::showing::{self, Showing};
use crate::cli::call::Call;
use crate::cli::ended::Ended;
use crate::cli::{args, text};
use crate::diff::patch::{Form, counts};
use crate::diff::renames::Renames;
use crate::diff::sources::{Content, End};
use crate::diff::view::View;
use crate::error::{Error, command};
use crate::fs::path::{AbsPath, Shown};
use crate::session::change::{Change, Sort};
use crate::session::opened::Session;
use crate::tree::state::{Object, printed};
use crate::verb::error::content_gone;

/// The counts of `--stat`.
#[derive(Clone, Copy, Serialize)]
pub struct Lines {
    /// `null` if lines cannot be counted: binary, too large, or a side is missing.
    pub insertions: Option<usize>,
    pub deletions: Option<usize>,
    pub binary: bool,
}

impl Lines {
    pub fn of(view: &View<'_>) -> Self {
        let counts = counts(view, Form::default());
        Self { insertions: counts.map(|c| c.0), deletions: counts.map(|c| c.1), binary: view.is_binary() }
    }
}

#[derive(Serialize)]
pub struct Names<'a> {
    pub paths: Vec<&'a AbsPath>,
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

/// Refuses a session whose content is gone.
pub fn refuse_discarded(session: &Session) -> Result<(), Error> {
    if session.header.freed { Err(content_gone(session.id())) } else { Ok(()) }
}

/// The words for a session that a power cut may have cost content.
pub const UNSYNCED: &str = "the machine went down before the content was on the disk: files may be empty or cut";

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
pub trait Source<'c> {
    fn view(&mut self, i: usize) -> Result<View<'c>, Error>;
    /// The content at an end of a change.
    fn open(&mut self, i: usize, end: End) -> Result<Content, Error>;
}

/// The numbers to be told of changes that were shown.
pub struct Said {
    /// Changes of the mtime alone, which are not listed.
    pub times: u64,
    pub conflicts: u64,
}

/// Shows the changes at `wanted`, one by one: the first is printed before the next is read. `of` tells a page what it is of, and `again` is
/// this call with other options.
pub fn show<'c>(
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
pub fn alike<'c>(call: &Call, changes: &'c [Change], least: u8, source: &mut dyn Source<'c>) -> Result<Renames, Error> {
    let mut open = |i, end| source.open(i, end);
    let mut renames = Renames::find_by(changes, &mut open)?;
    if !renames.find_alike(changes, least, &mut open)? {
        call.out
            .note("too many files were created and deleted to compare them all: only those that are the same count as renamed");
    }
    Ok(renames)
}

pub fn again(args: &args::Diff, session: &str, options: &str) -> String {
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

/// The words for changes that are not listed.
pub fn times_folded(times: u64) -> String {
    format!("{} of the mtime alone (--all lists them)", text::count(times, "change"))
}
