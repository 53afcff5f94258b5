//! `recant` alone: how things stand in this project, each with its next command. Reads headers, names of journals, and the
//! changes of commands that run.

use serde::Serialize;

use crate::compare::shown::{columns, cut_off, padded};
use crate::error::{Error, command};
use crate::face::call::Call;
use crate::face::directory::directory;
use crate::face::ended::Ended;
use crate::face::figures;
use crate::face::text::agent::turns::newest;
use crate::face::text::list::shown;
use crate::fs::path::AbsPath;
use crate::session::header::{Checkpoint, Counts, Header, Status};
use crate::session::id::Id;
use crate::session::prune::is_awaited;
use crate::session::run::Failed;
use crate::session::running;
use crate::session::store::Store;
use crate::snapshot::manifest::Head;
use crate::snapshot::series::Series;
use crate::verb::act::unconfirmed::{Waiting, waiting};
use crate::verb::resolve::scope::Scope;
use crate::verb::resolve::standing::Standing;

#[derive(Serialize)]
struct Whole<'a> {
    /// `null` if another machine works on this one.
    project: Option<&'a AbsPath>,
    /// True if nothing was ever held in this store.
    fresh: bool,
    /// The sessions of this project, newest first: pending, running, committed, and rolled back with changes never committed.
    sessions: &'a [Row],
    interrupted: Vec<&'a Id>,
    unconfirmed: &'a [Waiting],
    /// The newest snapshot of the project that somebody asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<u64>,
    /// The number of pending sessions of other projects.
    elsewhere: usize,
}

/// A session, and the verbs that may come next.
#[derive(Serialize)]
struct Row {
    id: Id,
    name: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Failed>,
    changes: u64,
    /// The number of paths where an interrupted operation could not be taken back.
    left: usize,
    #[serde(skip)]
    counts: Counts,
    command: Option<String>,
    next: Vec<String>,
    #[serde(skip)]
    verbs: &'static [&'static str],
}

/// Operations of sessions, and runs of `run --in` by their session to be, that were cut off.
#[derive(Default)]
struct Interrupted {
    operations: Vec<Id>,
    runs: Vec<Id>,
}

impl Interrupted {
    fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.runs.is_empty()
    }
}

/// The most lines of each status: with the lines around them 20 in all.
const MOST: [(&str, usize); 4] = [("running", 2), ("pending", 5), ("rolled_back", 1), ("committed", 3)];
const MOST_URGENT: usize = 2;
const WIDTH: usize = 80;

pub fn here(call: &Call) -> Result<Ended, Error> {
    let here = Scope::of(call)?;
    let Some(store) = call.store()? else { return say(call, &here, &[], &Interrupted::default(), &[], 0, true) };
    let (headers, broken) = store.headers()?;
    let operations = crate::verb::resolve::standing::cut_off(store, crate::engine::recover::interrupted::interrupted(store)?);
    let interrupted = Interrupted { operations, runs: running::cut_off(store)? };
    let unconfirmed = waiting(store)?;
    let is_here = |header: &&Header| here.has(store, header);
    let of_use = |header: &&Header| {
        header.discarded.is_none() && (header.counts.changes > 0 || header.steps.is_some() || header.uncollected)
    };
    let (near, far): (Vec<&Header>, Vec<&Header>) = headers.iter().rev().filter(of_use).partition(is_here);
    let rows = near
        .iter()
        .filter_map(|header| row(call, store, header, &interrupted.operations).transpose())
        .collect::<Result<Vec<_>, _>>()?;
    let elsewhere = far.iter().filter(|header| header.status() == Status::Pending).count();
    if !broken.is_empty() {
        let damaged = figures::count(broken.len() as u64, "session");
        call.out.warn(format_args!("{damaged} cannot be read: {}", command("status")));
    }
    let fresh = headers.is_empty() && broken.is_empty() && interrupted.runs.is_empty();
    say(call, &here, &rows, &interrupted, &unconfirmed, elsewhere, fresh)
}

/// The row of a session; `None` if nothing is left to do with it.
fn row(call: &Call, store: &Store, header: &Header, interrupted: &[Id]) -> Result<Option<Row>, Error> {
    let tail = header.id.tail();
    let Standing { word: status, failed, .. } = Standing::of(store, header, interrupted)?;
    // Nothing brings back what was there.
    let is_pruned = header.checkpoint == Checkpoint::Pruned;
    let verbs: &'static [&'static str] = match header.status() {
        Status::Running if status == "running" => &["diff"],
        Status::Running | Status::Pending => &["diff", "commit", "discard"],
        Status::Committed if is_pruned && header.is_all_in() => return Ok(None),
        Status::Committed if is_pruned => &["show", "commit"],
        Status::Committed if header.is_in_part() => &["show", "commit", "rollback"],
        Status::Committed => &["rollback"],
        // The rest was never on the tree, and is still held.
        Status::RolledBack if is_awaited(header) => &["commit", "discard"],
        Status::RolledBack if !header.left.is_empty() => &["show", "redo"],
        Status::RolledBack | Status::Discarded => return Ok(None),
    };
    let so_far = call.listed_so_far(store, header);
    let now = so_far.as_ref().map_or(header, |session| &session.header);
    Ok(Some(Row {
        id: header.id.clone(),
        name: header.name.clone(),
        status,
        failed,
        changes: now.counts.changes,
        left: header.left.len(),
        counts: header.counts,
        command: now.command.clone(),
        next: verbs.iter().map(|verb| command(format_args!("{verb} {tail}")).into()).collect(),
        verbs,
    }))
}

fn say(
    call: &Call,
    here: &Scope,
    rows: &[Row],
    interrupted: &Interrupted,
    unconfirmed: &[Waiting],
    elsewhere: usize,
    fresh: bool,
) -> Result<Ended, Error> {
    if call.out.is_text() {
        if fresh {
            begin(call)
        } else {
            print(call, here, rows, interrupted, unconfirmed, elsewhere)
        }
        newest_snapshot(call).iter().for_each(|head| print_snapshot(call, head));
        newest(call).iter().for_each(|newest| call.out.line(format_args!("{:<12} {newest}", "agent")));
    } else {
        let interrupted = interrupted.operations.iter().chain(&interrupted.runs).collect();
        let snapshot = newest_snapshot(call).map(|head| head.n);
        let project = here.project.as_ref();
        call.out.document(&Whole { project, fresh, sessions: rows, interrupted, unconfirmed, snapshot, elsewhere });
    }
    Ok(Ended::Done)
}

/// The newest snapshot of this project that somebody asked for.
fn newest_snapshot(call: &Call) -> Option<Head> {
    if call.is_far {
        return None;
    }
    let series = Series::open(call.store().ok()??, &directory(None).ok()?).ok()??;
    let newest = series.find("last").ok()?;
    Some(series.summary(newest).ok()?.head)
}

fn print_snapshot(call: &Call, head: &Head) {
    let message = head.message.as_ref().or(head.label.as_ref()).map(|of| format!("  {}", shown(of))).unwrap_or_default();
    let (what, next) =
        (format!("{}  {}{message}", head.n, figures::time(head.time, false)), command(format_args!("snapshot diff {}", head.n)));
    call.out.line(format_args!("{:<12} {}  {next}", "snapshot", fitted(&what, columns(&next))));
}

fn begin(call: &Call) {
    let out = &call.out;
    out.line("Nothing is held yet. To begin:");
    for (words, what) in [
        ("run -- COMMAND", "run a command, and hold its file changes"),
        ("diff", "look at them"),
        ("commit last", "make them real; rollback last takes them back"),
    ] {
        out.line(format_args!("  {:<24} {what}", command(words)));
    }
    out.line(format_args!("{} lists all verbs; {} tries whether a run works here.", command("--help"), command("doctor")));
}

fn print(call: &Call, here: &Scope, rows: &[Row], interrupted: &Interrupted, unconfirmed: &[Waiting], elsewhere: usize) {
    let out = &call.out;
    let mut lines: Vec<[String; 3]> = Vec::new();
    let mut line = |first: &str, what: String, words: &str| lines.push([first.into(), what, command(words).into()]);
    for id in interrupted.runs.iter().take(MOST_URGENT) {
        line("interrupted", format!("{}  a command on the real tree was cut off", id.tail()), &format!("recover {}", id.tail()));
    }
    for id in interrupted.operations.iter().take(MOST_URGENT) {
        line("interrupted", format!("{}  an operation was cut off", id.tail()), &format!("recover {}", id.tail()));
    }
    for row in rows.iter().filter(|row| row.left > 0).take(MOST_URGENT) {
        let what = format!("{}  {} that an undo could not take back", row.id.tail(), figures::count(row.left as u64, "path"));
        line("left", what, "status");
    }
    for waiting in unconfirmed.iter().take(MOST_URGENT) {
        let tail = waiting.session.tail();
        line("unconfirmed", format!("{tail}  until {}", figures::time(waiting.due, true)), &format!("confirm {tail}"));
    }
    for (status, most) in MOST {
        let of_it: Vec<&Row> = rows.iter().filter(|row| row.status == status).collect();
        of_it.iter().take(most).for_each(|row| line(&row.status.replace('_', " "), row.what(), &row.words(0)));
        if let Some(more) = of_it.len().checked_sub(most).filter(|more| *more > 0) {
            line("", format!("and {more} more"), "list");
        }
    }
    if rows.is_empty() && interrupted.is_empty() && unconfirmed.is_empty() {
        line("", "nothing of this project is held or committed".into(), "run -- COMMAND");
    }
    if elsewhere > 0 {
        line("", format!("{} pending in other projects", figures::count(elsewhere as u64, "session")), "list --all");
    }
    if let Some(project) = &here.project {
        out.line(out.place(project));
    }
    let widest = lines.iter().map(|[.., next]| columns(next)).max().unwrap_or(0);
    lines.iter().for_each(|[first, what, next]| out.line(format_args!("{first:<12} {}  {next}", fitted(what, widest))));
}

impl Row {
    /// The words of its next command number `n`.
    fn words(&self, n: usize) -> String {
        self.verbs.get(n).map(|verb| format!("{verb} {}", self.id.tail())).unwrap_or_default()
    }

    /// Its short id, the number of its changes, and its name or command.
    fn what(&self) -> String {
        let of = self.name.as_ref().or(self.command.as_ref()).map(|of| format!("  {}", shown(of))).unwrap_or_default();
        let held = match self.status {
            "running" => format!("{} so far", figures::count(self.changes, "change")),
            "rolled_back" => {
                format!(
                    "{} of {} never committed",
                    figures::grouped(self.counts.never_in()),
                    figures::count(self.changes, "change")
                )
            }
            _ => format!("{}{}", figures::count(self.changes, "change"), crate::verb::error::but(self.counts)),
        };
        let failed = self.failed.map(|failed| format!(", {}", failed.text())).unwrap_or_default();
        format!("{}  {held}{failed}{of}", self.id.tail())
    }
}

/// The middle of a line, shortened so that a command of `widest` columns fits after it.
fn fitted(what: &str, widest: usize) -> String {
    let room = WIDTH.saturating_sub(13 + 2 + widest).max(20);
    padded(&cut_off(what, room), room)
}
