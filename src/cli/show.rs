//! `show`: one session and its changes.

use serde::Serialize;

use super::fold::{Line, fold};
use super::list::{SessionRow, shown};
use super::out::Each;
use super::problem::Problem;
use super::renames::Renames;
use super::sides::Sources;
use super::text::{self, Side as Column};
use super::{Call, Ended, Standing, cut_off};
use super::{args, coverage};
use crate::fs::path::{AbsPath, Shown};
use crate::session::change::{Change, Sort};
use crate::session::header::{Checkpoint, Header, Status};
use crate::session::run::{Ending, How, Run};
use crate::session::sides::Side;
use crate::session::store::Session;
use crate::tree::state::{Object, sort_word};

/// A change as `show` and `diff` give it in JSON.
#[derive(Debug, Serialize)]
pub struct ChangeRow<'a> {
    /// Where.
    pub path: &'a AbsPath,
    /// created, modified, deleted, metadata, times.
    pub change: Sort,
    /// never, in, out, lost.
    pub side: &'static str,
    /// What was there; `null` for nothing.
    pub before: &'a Object,
    /// What is to be there; `null` for nothing.
    pub after: &'a Object,
    /// The original has other names, which keep the old content.
    pub link_broken: bool,
    /// The real tree changed here while the command ran.
    pub foreign: bool,
    /// What was created here was there before, and was deleted.
    pub renamed_from: Option<&'a AbsPath>,
}

impl<'a> ChangeRow<'a> {
    /// From a change of a session's, by its index, and where it is.
    pub fn new(changes: &'a [Change], i: usize, side: Side, renames: &Renames) -> Self {
        let change = &changes[i];
        Self {
            renamed_from: renames.from(changes, i),
            path: &change.path,
            change: change.sort(),
            side: side_word(side),
            before: &change.before.object,
            after: &change.after,
            link_broken: change.marks.link_broken,
            foreign: change.marks.foreign,
        }
    }
}

/// `{"schema":2,"session":{…},"run":{…},"folder_times":n,"changes":[…]}`.
#[derive(Serialize)]
struct Whole<'a, R: Serialize> {
    session: SessionRow<'a>,
    run: Option<&'a Run>,
    folder_times: usize,
    changes: R,
}

/// The word in JSON.
pub fn side_word(side: Side) -> &'static str {
    match side {
        Side::Never => "never",
        Side::In => "in",
        Side::Out => "out",
        Side::Lost => "lost",
    }
}

/// The word in text.
pub fn sort_text(sort: Sort) -> &'static str {
    match sort {
        Sort::Created => "created",
        Sort::Modified => "modified",
        Sort::Deleted => "deleted",
        Sort::Metadata => "metadata",
        Sort::Times => "times",
    }
}

/// Shows a session.
pub fn show(call: &Call, args: &args::Show) -> Result<Ended, Problem> {
    let (store, session) = call.session(args.id.as_deref())?;
    let header = &session.header;
    let standing = Standing::of(store, header, &cut_off(store, store.journaled()?))?;
    let run = session.run()?;
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let renames = renames(call, &session, &changes.list, &sides);
    if !call.out.is_text() {
        let rows = || sides.iter().enumerate().map(|(i, side)| ChangeRow::new(&changes.list, i, *side, &renames));
        let session = SessionRow::new(header, standing);
        let whole = Whole { session, run: run.as_ref(), folder_times: changes.folder_times.len(), changes: Each(&rows) };
        call.out.list(&whole, rows);
        return Ok(Ended::Done);
    }
    call.out.page(call.config.pager.value.as_deref());
    print_head(call, header, standing, run.as_ref());
    print_counts(call, &changes.list);
    let (listed, lines) = folded(&changes.list, &renames, args.all);
    if !lines.is_empty() {
        call.out.line("");
    }
    let row = |line: &Line| match line {
        Line::Row(at) => row(header, &changes.list, &sides, &renames, listed[*at]),
        Line::Folded(top, n) => {
            ["below".into(), String::new(), String::new(), String::new(), format!("{top}: {n} changes (--all lists them)")]
        }
    };
    let columns = [Column::Left, Column::Left, Column::Left, Column::Right, Column::Left];
    text::table(columns, lines.iter().map(row)).for_each(|line| call.out.line(line));
    if args.all {
        changes.folder_times.iter().for_each(|time| call.out.line(format_args!("times     folder  {}", time.path)));
    }
    print_coverage(call, run.as_ref(), args.all);
    Ok(Ended::Done)
}

/// The renames, where the contents are there to tell them. A store that is damaged there is shown all the same.
fn renames(call: &Call, session: &Session, changes: &[Change], sides: &[Side]) -> Renames {
    if session.header.status() == Status::Discarded {
        return Renames::default();
    }
    Sources::of(session).and_then(|mut sources| Renames::find(changes, sides, &mut sources)).unwrap_or_else(|problem| {
        call.out.warn(format_args!("renamed files are shown as deleted and created: {}", problem.message));
        Renames::default()
    })
}

fn print_head(call: &Call, header: &Header, standing: Standing, run: Option<&Run>) {
    let mut rows: Vec<(&str, String)> = vec![("session", header.id.to_string())];
    rows.extend(header.name.clone().map(|name| ("name", name)));
    rows.push(("status", standing.text()));
    rows.push(("begun", text::time(header.created, true)));
    if let Some(run) = run {
        let words: Vec<String> = run.argv.iter().map(|arg| Shown(&arg.0).to_string()).collect();
        rows.push(("command", words.join(" ")));
        rows.push(("in", run.cwd.to_string()));
        rows.extend(run.ending.map(|ending| ("ended", ending_text(ending))));
    } else if let Some(command) = &header.command {
        rows.push(("command", shown(command)));
    }
    let sizes = header.sizes;
    rows.push(("held", text::bytes(sizes.held)));
    if header.generation > 0 {
        let pruned = header.checkpoint == Checkpoint::Pruned;
        rows.push(("checkpoint", if pruned { "pruned: no rollback".into() } else { text::bytes(sizes.checkpoint) }));
    }
    if sizes.displaced > 0 {
        rows.push(("displaced", format!("{}: what --force overwrote", text::bytes(sizes.displaced))));
    }
    rows.iter().for_each(|(key, value)| call.out.line(format_args!("{key:<10}  {value}")));
    if let Some(run) = run {
        let uncovered = run.coverage.iter().filter(|place| place.how == How::Uncovered);
        uncovered.for_each(|place| {
            let why = place.why.as_deref().unwrap_or("it could not be captured");
            call.out.line(format_args!("{:<10}  {}: {why}", "not held", place.path));
        });
        let passed: Vec<String> =
            run.coverage.iter().filter(|place| place.how == How::Passed).map(|place| place.path.to_string()).collect();
        if !passed.is_empty() {
            call.out.line(format_args!(
                "{:<10}  {}: not held, and whether they were used is not known",
                "real",
                passed.join(", ")
            ));
        }
        run.notes.iter().for_each(|note| call.out.line(format_args!("{:<10}  {}", "note", shown(note))));
    }
}

/// What became of changes where, for a session of a run.
fn print_coverage(call: &Call, run: Option<&Run>, all: bool) {
    let Some(run) = run.filter(|run| !run.coverage.is_empty()) else { return };
    call.out.line("");
    call.out.line("what the run held, by place:");
    coverage::table(&run.coverage, all).iter().for_each(|row| call.out.line(format_args!("  {row}")));
}

fn ending_text(ending: Ending) -> String {
    match ending {
        Ending::Exited(status) => format!("exit status {status}"),
        Ending::Signaled(signal) => format!("by signal {signal}"),
    }
}

fn print_counts(call: &Call, changes: &[Change]) {
    let sorts = [Sort::Created, Sort::Modified, Sort::Deleted, Sort::Metadata, Sort::Times];
    let counts = sorts.map(|sort| (sort_text(sort), changes.iter().filter(|change| change.sort() == sort).count()));
    let parts: Vec<String> = counts.iter().filter(|(_, n)| *n > 0).map(|(word, n)| format!("{n} {word}")).collect();
    let sum = if parts.is_empty() { "none".into() } else { parts.join(", ") };
    call.out.line(format_args!("{:<10}  {sum}", "changes"));
}

/// The changes that are listed, by index, and the table's lines: without changes of the mtime alone, crowded places folded, unless
/// `all` is asked for. A renamed file is one line.
fn folded(changes: &[Change], renames: &Renames, all: bool) -> (Vec<usize>, Vec<Line>) {
    let is_listed = |i: &usize| (all || changes[*i].sort() != Sort::Times) && renames.to(changes, *i).is_none();
    let listed: Vec<usize> = (0..changes.len()).filter(is_listed).collect();
    let must_show = |at: usize| {
        let change = &changes[listed[at]];
        let is_gone = change.after.is_none() || renames.from(changes, listed[at]).is_some();
        all || is_gone || change.marks.foreign || change.marks.link_broken
    };
    let lines = fold(listed.iter().map(|i| &changes[*i].path), must_show);
    (listed, lines)
}

fn row(header: &Header, changes: &[Change], sides: &[Side], renames: &Renames, i: usize) -> [String; 5] {
    let mut row = row_of(header, &changes[i], sides[i]);
    if let Some(from) = renames.from(changes, i) {
        row[0] = "renamed".into();
        row[4] = format!("{from} → {}", row[4]);
    }
    row
}

fn row_of(header: &Header, change: &Change, side: Side) -> [String; 5] {
    let object = change.after.as_ref().or(change.before.object.as_ref());
    let kind = object.map_or("", |state| sort_word(state.sort()));
    let size = object.filter(|_| kind == "file").map_or(String::new(), |state| text::bytes(state.size()));
    let mut path = change.path.to_string();
    if let Some(crate::tree::state::What::Symlink { target }) = change.after.as_ref().map(|state| &state.what) {
        path.push_str(&format!(" -> {}", Shown(target)));
    }
    for (on, mark) in [(change.marks.link_broken, "link broken"), (change.marks.foreign, "changed by others during the run")] {
        if on {
            path.push_str(&format!("  ({mark})"));
        }
    }
    let side = match side {
        _ if header.generation == 0 => String::new(),
        Side::Never => "out".into(),
        side => side_word(side).into(),
    };
    [sort_text(change.sort()).into(), side, kind.into(), size, path]
}
