//! `commit`, `rollback`, `redo`: one report in two directions.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::problem::Problem;
use super::{Call, Ended, args, place, text};
use crate::checkpoint::limits::{Limits, OnLimit};
use crate::commit::{self, Asked, Request};
use crate::config;
use crate::engine::job::{Job, OnConflict, Verb};
use crate::engine::report::{Done, Report, Row};
use crate::engine::{self, Effect, Progress};
use crate::error::Kind;
use crate::fs::lock::Hold;
use crate::fs::path::AbsPath;
use crate::rollback;
use crate::session::header::Status;
use crate::session::id::Id;
use crate::session::store::Session;

/// `{"schema":1,"verb":…,"session":…,"dry_run":…,"status":…,"generation":n,"paths":[…],"left":[…],"notes":[…],"kept_bytes":n}`.
#[derive(Serialize)]
struct Whole<'a> {
    verb: &'static str,
    session: &'a Id,
    dry_run: bool,
    status: Status,
    generation: u64,
    paths: &'a [Row],
    left: Vec<Left<'a>>,
    notes: Vec<&'a String>,
    kept_bytes: u64,
}

/// A path that was left out, and why.
#[derive(Serialize)]
struct Left<'a> {
    path: &'a AbsPath,
    why: &'a str,
}

/// What all three are asked for.
struct Wanted<'a> {
    id: &'a str,
    paths: Vec<AbsPath>,
    on_conflict: OnConflict,
    effect: Effect,
}

impl<'a> Wanted<'a> {
    fn new(moves: &'a args::Moves) -> Result<Self, Problem> {
        Ok(Self {
            id: &moves.id,
            paths: moves.paths.iter().map(|path| place::named(path)).collect::<Result<_, _>>()?,
            on_conflict: if moves.force { OnConflict::Keep } else { OnConflict::Stop },
            effect: if moves.dry_run { Effect::Print } else { Effect::Apply },
        })
    }
}

/// Puts what is out onto the tree.
pub fn commit(call: &Call, args: &args::Commit) -> Result<Ended, Problem> {
    let wanted = Wanted::new(&args.moves)?;
    inward(call, &wanted, args.on_limit.map(Into::into), args.accept_unsynced, commit::commit)
}

/// Puts what was in before onto the tree again.
pub fn redo(call: &Call, args: &args::Moves) -> Result<Ended, Problem> {
    inward(call, &Wanted::new(args)?, None, false, commit::redo)
}

/// Takes a session off the tree.
pub fn rollback(call: &Call, args: &args::Moves) -> Result<Ended, Problem> {
    let wanted = Wanted::new(args)?;
    carry_out(call, &wanted, |session| {
        let job = rollback::rollback(session, &wanted.paths, wanted.on_conflict)?;
        Ok(Asked { job, notes: Vec::new() })
    })
}

fn inward(
    call: &Call,
    wanted: &Wanted,
    on_limit: Option<config::OnLimit>,
    accept_unsynced: bool,
    ask: impl Fn(&Session, &Request) -> Result<Asked, engine::Error>,
) -> Result<Ended, Problem> {
    let denied = denied(call)?;
    let config = &call.config;
    let on_limit = match on_limit.unwrap_or(config.on_limit.value) {
        config::OnLimit::Full => OnLimit::Full,
        config::OnLimit::Partial => OnLimit::Partial,
        config::OnLimit::Refuse => OnLimit::Refuse,
    };
    let limits = Limits { max_files: config.max_files.value, max_size: config.max_size.value, on_limit };
    let denied = |path: &AbsPath| denied.is_match(path.as_path());
    carry_out(call, wanted, |session| {
        let request = Request { paths: &wanted.paths, on_conflict: wanted.on_conflict, limits, denied: &denied, accept_unsynced };
        ask(session, &request)
    })
}

/// `commit.deny` as one matcher. `*` does not go over a `/`; `**` does.
fn denied(call: &Call) -> Result<globset::GlobSet, Problem> {
    let mut set = globset::GlobSetBuilder::new();
    for glob in &call.config.deny.value {
        let bad = |error: globset::Error| Problem::refused(format!("commit.deny: {glob:?}: {}", error.kind()));
        set.add(globset::GlobBuilder::new(glob).literal_separator(true).build().map_err(bad)?);
    }
    set.build().map_err(|error| Problem::refused(format!("commit.deny: {error}")))
}

fn carry_out(call: &Call, wanted: &Wanted, ask: impl Fn(&Session) -> Result<Asked, engine::Error>) -> Result<Ended, Problem> {
    let dry_run = wanted.effect == Effect::Print;
    let (store, mut session) = if dry_run { call.locked_to_look(wanted.id)? } else { call.locked(wanted.id)? };
    // Held to the end: two operations of one store could undo each other.
    let _lock = if dry_run { None } else { Some(call.store_lock(store, Hold::Exclusive)?) };
    let asked = ask(&session)?;
    let uncovered = asked.job.moves.iter().any(|mv| mv.uncovered.is_some());
    let bar = Bar::new(call);
    let report = engine::carry_out(&call.fs, store, &mut session, &asked.job, wanted.effect, &bar);
    bar.clear();
    let report = report.map_err(Problem::of_engine)?;
    print(call, session.id(), &asked.job, &report, &asked.notes, dry_run);
    Ok(if report.left.is_empty() && !uncovered { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn print(call: &Call, id: &Id, job: &Job, report: &Report, asked: &[String], dry_run: bool) {
    let notes: Vec<&String> = asked.iter().chain(&report.notes).collect();
    let left = || report.left.iter().map(|(path, why)| Left { path, why });
    if !call.out.is_text() {
        call.out.document(&Whole {
            verb: report.verb.word(),
            session: id,
            dry_run,
            status: report.status,
            generation: report.generation,
            paths: &report.rows,
            left: left().collect(),
            notes,
            kept_bytes: report.kept,
        });
        return;
    }
    let rows = report.rows.iter().map(|row| [done_word(job.verb, row.done).to_owned(), row.kind.into(), row.path.to_string()]);
    let rows: Vec<[String; 3]> = rows.collect();
    text::table([text::Side::Left; 3], &rows).into_iter().for_each(|line| call.out.line(line));
    notes.iter().for_each(|note| call.out.warn(note));
    left().for_each(|left| call.out.warn(format_args!("left: {}: {}", left.path, left.why)));
    call.out.note(summary(id, report, dry_run));
}

fn done_word(verb: Verb, done: Done) -> &'static str {
    match (verb.inward(), done) {
        (true, Done::Made) => "created",
        (true, Done::Replaced) => "modified",
        (true, Done::Removed) => "deleted",
        (true, Done::Metadata) => "metadata",
        (false, Done::Made) => "made again",
        (false, Done::Replaced | Done::Metadata) => "restored",
        (false, Done::Removed) => "removed",
        (_, Done::AlreadySo) => "already so",
    }
}

fn summary(id: &Id, report: &Report, dry_run: bool) -> String {
    let (paths, left) = (report.rows.len() as u64, report.left.len());
    let verb = report.verb;
    if paths == 0 && left == 0 {
        let what = match verb {
            Verb::Commit => "commit",
            Verb::Redo => "redo",
            Verb::Rollback => "roll back",
        };
        return format!("nothing to {what}: session {id} is {}", report.status.word().replace('_', " "));
    }
    let paths = text::count(paths, "path");
    let done = match (verb, dry_run) {
        (Verb::Commit, false) => format!("{paths} committed"),
        (Verb::Redo, false) => format!("{paths} committed again"),
        (Verb::Rollback, false) => format!("{paths} taken back"),
        (Verb::Commit, true) => format!("{paths} would be committed"),
        (Verb::Redo, true) => format!("{paths} would be committed again"),
        (Verb::Rollback, true) => format!("{paths} would be taken back"),
    };
    let mut text = format!("session {id}: {done}, {left} left");
    if verb.inward() && !dry_run {
        text.push_str(&format!("; {} stay for a rollback: recant rollback {id}", text::bytes(report.kept)));
    }
    text
}

/// A progress bar that comes after a quarter of a second, on a terminal alone.
struct Bar {
    start: Instant,
    wanted: bool,
    bar: OnceLock<ProgressBar>,
}

impl Bar {
    fn new(call: &Call) -> Self {
        let wanted = call.out.is_text() && !call.out.is_quiet() && std::io::stderr().is_terminal();
        Self { start: Instant::now(), wanted, bar: OnceLock::new() }
    }

    fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bar {
    fn at(&self, phase: &'static str, done: usize, of: usize) {
        if !self.wanted || self.start.elapsed() < Duration::from_millis(250) {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let style = ProgressStyle::with_template("{msg:>8} {bar:30} {pos}/{len}");
            ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_message(phase);
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    }
}
