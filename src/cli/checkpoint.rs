//! `checkpoint list`, `show`, `verify`, `prune`: what commits took off the tree.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::checkpoint::manifest::{Kept, Reading};
use crate::checkpoint::verify::{Verdict, verify};
use crate::compare::shown::cut;
use crate::engine::Progress;
use crate::engine::ready::refuse_interrupted;
use crate::error::{Error, Kind, command};
use crate::face::args;
use crate::face::bar::Bar;
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::text::list::say_damaged;
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Sort};
use crate::session::header::{Checkpoint, Header};
use crate::session::id::Id;
use crate::session::lines::Reading as ReadingChanges;
use crate::session::opened::Session;
use crate::session::store::{Broken, Store};
use crate::tree::json::Each;
use crate::tree::state::{Object, State, printed, sort_word};
use crate::tree::time;
use crate::verb::error::at_work;
use crate::verb::resolve::standing::is_held;

/// A checkpoint in a listing.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a Id,
    name: Option<&'a str>,
    status: &'static str,
    checkpoint: Checkpoint,
    paths: u64,
    bytes: u64,
    #[serde(with = "time")]
    changed: Time,
}

impl<'a> Row<'a> {
    fn of(header: &'a Header) -> Self {
        Self {
            id: &header.id,
            name: header.name.as_deref(),
            status: header.status().word(),
            checkpoint: header.checkpoint,
            paths: header.counts.inside,
            bytes: header.sizes.checkpoint,
            changed: header.changed,
        }
    }
}

#[derive(Serialize)]
struct List<'a> {
    checkpoints: &'a [Row<'a>],
    damaged: &'a [Broken],
}

/// Lists the checkpoints, the newest first. Reads headers only.
pub fn list(call: &Call) -> Result<Ended, Error> {
    let (mut headers, broken) = match call.store()? {
        Some(store) => store.headers()?,
        None => Default::default(),
    };
    headers.retain(|header| header.counts.ever_in > 0);
    headers.reverse();
    say_damaged(call, &broken);
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print_list(call, &headers);
    } else {
        let rows: Vec<Row> = headers.iter().map(Row::of).collect();
        call.out.document(&List { checkpoints: &rows, damaged: &broken });
    }
    Ok(if broken.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn print_list(call: &Call, headers: &[Header]) {
    if headers.is_empty() {
        call.out.note("no checkpoints");
        return;
    }
    let title = ["ID", "STATUS", "PATHS", "SIZE", "CHANGED", "NAME"].map(String::from);
    let (first, more) = cut(headers.len(), call.out.limit());
    let rows = headers[..first].iter().map(|header| {
        let pruned = header.checkpoint == Checkpoint::Pruned;
        [
            header.id.to_string(),
            header.status().word().replace('_', " "),
            figures::grouped(header.counts.inside),
            if pruned { "pruned".into() } else { figures::bytes(header.sizes.checkpoint) },
            figures::time(header.changed, false),
            header.name.clone().unwrap_or_default(),
        ]
    });
    let mut rows: Vec<[String; 6]> = std::iter::once(title).chain(rows).collect();
    figures::fit(&mut rows, call.out.width(), &[Flexible::path(5, 8)]);
    let sides = [Side::Left, Side::Left, Side::Right, Side::Right, Side::Left, Side::Left];
    let mut lines = figures::table(sides, &rows);
    call.out.styled(anstyle::Style::new().bold(), lines.next().unwrap_or_default());
    lines.for_each(|line| call.out.line(line));
    if more > 0 {
        call.out.line(figures::more(more, &command("checkpoint list -v")));
    }
}

#[derive(Serialize)]
struct OriginalRow {
    path: AbsPath,
    change: Option<Sort>,
    /// The object that was there; `null` for nothing.
    #[serde(serialize_with = "printed")]
    before: Object,
    /// Why it is not kept, if so.
    uncovered: Option<Cow<'static, str>>,
}

#[derive(Serialize)]
struct Shown<'a, R: Serialize> {
    session: &'a Id,
    status: &'static str,
    checkpoint: Checkpoint,
    bytes: u64,
    originals: R,
}

/// The originals of a session in path order, each with its change. Ends at the first failure, which is kept.
struct Originals<'f> {
    manifest: Reading,
    changes: ReadingChanges,
    change: Option<Change>,
    failed: &'f Cell<Option<Error>>,
}

impl<'f> Originals<'f> {
    fn of(session: &Session, failed: &'f Cell<Option<Error>>) -> Result<Self, Error> {
        let mut changes = session.read_changes()?;
        Ok(Self { manifest: Reading::of(session)?, change: changes.next()?, changes, failed })
    }

    fn row(&mut self) -> Result<Option<OriginalRow>, Error> {
        let Some(original) = self.manifest.next()? else { return Ok(None) };
        while self.change.as_ref().is_some_and(|change| change.path < original.path) {
            self.change = self.changes.next()?;
        }
        let change = self.change.as_ref().filter(|change| change.path == original.path).map(Change::sort);
        let uncovered = match original.kept {
            Kept::Uncovered { why } => Some(why),
            _ => None,
        };
        Ok(Some(OriginalRow { path: original.path, change, before: original.state, uncovered }))
    }
}

impl Iterator for Originals<'_> {
    type Item = OriginalRow;

    fn next(&mut self) -> Option<OriginalRow> {
        self.row().unwrap_or_else(|problem| {
            self.failed.set(Some(problem));
            None
        })
    }
}

pub fn show(call: &Call, args: &args::CheckpointShow) -> Result<Ended, Error> {
    let (store, session) = call.session(args.id.as_deref())?;
    call.believed(store, &session, show_of(call, &session))
}

fn show_of(call: &Call, session: &Session) -> Result<Ended, Error> {
    let header = &session.header;
    let failed = Cell::new(None);
    let originals = Originals::of(session, &failed)?;
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        if header.checkpoint == Checkpoint::Pruned {
            call.out.warn(format_args!("the checkpoint of session {} was pruned: the originals are gone", header.id));
        }
        let rows: Vec<TextRow> = originals.map(TextRow::from).collect();
        if let Some(problem) = failed.take() {
            return Err(problem);
        }
        print_originals(call, &header.id, &rows);
        return Ok(Ended::Done);
    }
    let (status, bytes) = (header.status().word(), header.sizes.checkpoint);
    let originals = Cell::new(Some(originals));
    let rows = || originals.take().into_iter().flatten();
    let whole = Shown { session: &header.id, status, checkpoint: header.checkpoint, bytes, originals: Each(&rows) };
    call.out.document(&whole);
    failed.take().map_or(Ok(Ended::Done), Err)
}

/// An original as a line for people.
struct TextRow {
    path: AbsPath,
    change: &'static str,
    before: &'static str,
    size: Option<u64>,
    uncovered: Option<Cow<'static, str>>,
}

impl From<OriginalRow> for TextRow {
    fn from(row: OriginalRow) -> Self {
        let before = row.before.as_ref();
        Self {
            change: row.change.map_or("", Sort::word),
            before: before.map_or("nothing", |state| sort_word(state.sort())),
            size: before.filter(|state| state.hash().is_some()).map(State::size),
            path: row.path,
            uncovered: row.uncovered,
        }
    }
}

fn print_originals(call: &Call, id: &Id, rows: &[TextRow]) {
    if rows.is_empty() {
        call.out.note(format_args!("nothing of session {id} is on the tree: its checkpoint is empty"));
    }
    let cells = |row: &TextRow| {
        let why = row.uncovered.as_ref().map_or(String::new(), |why| format!("  (not kept: {why})"));
        let size = row.size.map_or(String::new(), figures::bytes);
        [row.change.to_owned(), row.before.to_owned(), size, format!("{}{why}", call.out.shown(&row.path))]
    };
    let sides = [Side::Left, Side::Left, Side::Right, Side::Left];
    let lines: Vec<String> = figures::table(sides, rows.iter().map(cells)).collect();
    call.out.first_of(lines.into_iter(), &command(format_args!("checkpoint show {} -v", id.tail())));
    let left = rows.iter().filter(|row| row.uncovered.is_some()).count();
    if left > 0 {
        call.out.warn(format_args!("{} will not come back at a rollback", figures::count(left as u64, "path")));
    }
}

#[derive(Serialize)]
struct Verified<'a> {
    checkpoints: &'a [VerifiedRow],
}

#[derive(Serialize)]
struct VerifiedRow {
    session: Id,
    #[serde(flatten)]
    verdict: Verdict,
}

/// Reads every original of one checkpoint, or of all.
pub fn check(call: &Call, args: &args::CheckpointVerify) -> Result<Ended, Error> {
    let mut rows = Vec::new();
    let (mut damaged, mut halted) = (false, None);
    let bar = Bar::of(&call.out);
    let seen = |done, of| bar.at("verifying", done, of);
    if let Some(key) = &args.id {
        let (store, session) = call.session(Some(key))?;
        rows.push(VerifiedRow { session: session.id().clone(), verdict: verified(store, session.id(), &seen)? });
    } else if let Some(store) = call.store()? {
        let (headers, broken) = store.headers()?;
        say_damaged(call, &broken);
        damaged = !broken.is_empty();
        let kept = |header: &&Header| header.counts.inside > 0 && header.checkpoint == Checkpoint::Kept;
        for header in headers.iter().filter(kept) {
            match verified(store, &header.id, &seen) {
                Ok(verdict) => rows.push(VerifiedRow { session: header.id.clone(), verdict }),
                Err(problem) => {
                    match problem.kind() {
                        Kind::Stuck | Kind::Busy => halted = halted.max(Some(problem.kind())),
                        _ => damaged = true,
                    }
                    call.out.warn(format_args!("session {}: {}", header.id, problem.in_session()));
                }
            }
        }
    }
    bar.end();
    if call.out.is_text() {
        let line = |VerifiedRow { session, verdict }: &VerifiedRow| {
            let faults = verdict.faults.len();
            let state = if faults == 0 { "whole".into() } else { figures::count(faults as u64, "fault") };
            [session.to_string(), figures::count(verdict.whole, "original"), figures::bytes(verdict.bytes), state]
        };
        let lines: Vec<[String; 4]> = rows.iter().map(line).collect();
        let lines: Vec<String> = figures::table([Side::Left, Side::Right, Side::Right, Side::Left], &lines).collect();
        call.out.first_of(lines.into_iter(), &command("checkpoint verify -v"));
        if rows.is_empty() && !damaged && halted.is_none() {
            call.out.note("no checkpoints to verify");
        }
        for fault in rows.iter().flat_map(|row| &row.verdict.faults) {
            call.out.warn(format_args!("{}: {}", fault.path, fault.why));
        }
    } else {
        call.out.document(&Verified { checkpoints: &rows });
    }
    let faults = || rows.iter().flat_map(|row| &row.verdict.faults);
    Ok(if damaged || faults().any(|fault| !fault.written_to) {
        Ended::With(Kind::Damaged)
    } else if let Some(kind) = halted {
        Ended::With(kind)
    } else if faults().next().is_some() {
        Ended::With(Kind::Conflict)
    } else {
        Ended::Done
    })
}

/// Verifies one session. Faults count only if nobody worked in it meanwhile; else it waits until that ends, as long as for a lock, and
/// verifies again. What an interrupted operation left half done is no damage.
fn verified(store: &Store, id: &Id, seen: &dyn Fn(usize, usize)) -> Result<Verdict, Error> {
    let start = Instant::now();
    loop {
        let session = store.session(id)?;
        let found = verify(&session, seen);
        if found.as_ref().is_ok_and(|verdict| verdict.faults.is_empty()) {
            return found;
        }
        if !store.is_at_work(&session) {
            refuse_interrupted(store, id)?;
            return found;
        }
        while is_held(&session) {
            if start.elapsed() > Duration::from_secs(10) {
                return Err(at_work(id));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
