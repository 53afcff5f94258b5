//! Words for the questions of verbs; what a question is about is shown before it.

use super::agent::uncovered::lines;
use super::heads::heads;
use super::prune::plan;
use crate::compare::Summary;
use crate::engine::{self, LeftPath, Report, Verb};
use crate::error::command;
use crate::face::figures;
use crate::face::out::Out;
use crate::fs::{AbsPath, Shown};
use crate::session::{Header, Id, Unseen};
use crate::tree::Danger;
use crate::verb::error::{all_of, turns_in_words, whose};
use crate::verb::restore_row::Row;
use crate::verb::{NotCovered, Question};

/// The most steps, and the most paths, that a question names.
const STEPS: usize = 5;
const PATHS: usize = 10;

/// The words of a question; what it is about is shown before.
pub fn question(out: &Out, question: &Question<'_>) -> String {
    match question {
        Question::Others { id, act } => format!("The newest act here is {}, on session {}: go on?", whose(act), id.tail()),
        Question::CommitAtStep { id, step } => format!("Commit session {} at step {step}?", id.tail()),
        Question::CommitFailed { id, failed, summary } => {
            show_summary(out, id, summary);
            format!("Commit session {}, {}?", id.tail(), failed.text())
        }
        Question::CommitUnseen { id, steps, summary } => {
            show_steps(out, id, steps);
            show_summary(out, id, summary);
            let steps = figures::count(steps.len() as u64, "step");
            format!("Commit session {}, with {steps} that you have not looked at?", id.tail())
        }
        Question::CommitDangerous { id, dangers, summary } => {
            show_summary(out, id, summary);
            let dangers = figures::count(*dangers, "dangerous change");
            format!("Commit session {}, with {dangers} that you have not looked at?", id.tail())
        }
        Question::DiscardPaths { id, count, held } => {
            format!("Discard {count} of {} of session {}?", figures::count(*held, "held change"), id.tail())
        }
        Question::DiscardAll { sessions, held, everywhere } => {
            let whole = command("list --status pending --limit 0");
            let shown: Vec<&Header> = sessions.iter().collect();
            heads(out, &shown, out.limit(), &whole).into_iter().for_each(|line| out.say(line));
            format!("Discard {}?", all_of(sessions.len(), *held, *everywhere))
        }
        Question::Free { ids, held, overwritten } => {
            let tails: Vec<&str> = ids.iter().map(|id| id.tail()).collect();
            let of = format!("session{} {}", if tails.len() == 1 { "" } else { "s" }, tails.join(", "));
            let overwritten = if *overwritten { ", with what --force overwrote" } else { "" };
            format!("Free {} of {of}{overwritten}? This cannot be undone.", figures::count(*held, "held change"))
        }
        Question::StopServices { id, services } => {
            services.iter().for_each(|one| {
                let what = one.service().unwrap_or_default();
                out.say(format_args!("recant: {what}: {} runs in session {} since {}", one.quoted(), id.tail(), one.since()));
            });
            format!("Stop {} first?", if services.len() == 1 { "it" } else { "them" })
        }
        Question::Undo { act, would, id, summed } => {
            out.say(format_args!("recant: undo takes back: {act}"));
            show_rows(out, would, id, summed.as_ref());
            let (again, end) = if would.verb == Verb::Redo { ("Commit", "again") } else { ("Take", "back") };
            format!("{again} {} {end}?", figures::count(would.rows.len() as u64, "change"))
        }
        Question::BringBack { id, changes } => {
            format!("Bring session {} back, {}?", id.tail(), figures::count(*changes, "change"))
        }
        Question::UndoTurns { turns, rows, kept, not_covered } => {
            show_turns(out, rows, kept, not_covered);
            format!("Take {} back: {}?", turns_in_words(turns), figures::count(rows.len() as u64, "path"))
        }
        Question::AddHooks(files) => format!("Add recant's hooks to {}?", names(out, files)),
        Question::RemoveHooks(files) => format!("Remove recant's hooks from {}?", names(out, files)),
        Question::Restore { removed, overwritten } => restore(out, removed, overwritten),
        Question::Prune(prune) => plan::question(out, prune),
    }
}

fn show_steps(out: &Out, id: &Id, steps: &[Unseen]) {
    out.say("recant: since you looked:");
    for step in steps.iter().rev().take(STEPS).rev() {
        out.say(figures::within(&format!("  step {}, by {}: {}", step.step, step.by, Shown(step.command.as_bytes())), 79));
    }
    if steps.len() > STEPS {
        out.say(figures::more(steps.len() - STEPS, &command(format_args!("steps {}", id.tail()))));
    }
}

/// Shows what would be committed.
fn show_summary(out: &Out, id: &Id, summary: &Summary) {
    for (name, words) in super::summary::histories(out, summary) {
        out.say(format_args!("  {name}  {words}"));
    }
    for single in summary.changes.iter().take(PATHS) {
        let danger = single.danger.map_or_else(String::new, |danger| format!("  ({danger})"));
        out.say(format_args!("  {:<9} {}{danger}", single.change.word(), out.shown(&single.path)));
    }
    if let Some(more) = summary.changes.len().checked_sub(PATHS).filter(|more| *more > 0) {
        out.say(format_args!("  {}", figures::more(more, &command(format_args!("show {}", id.tail())))));
    }
    super::summary::table(out, summary).iter().take(PATHS).for_each(|line| out.say(format_args!("  {line}")));
}

fn show_rows(out: &Out, would: &Report, id: &Id, summed: Option<&(Summary, Vec<&engine::Row>)>) {
    let mut rows = summed.map_or_else(|| would.rows.iter().collect(), |(_, rows)| rows.clone());
    rows.sort_by_key(|row| Danger::place(row.danger));
    for (name, words) in summed.map(|(summary, _)| super::summary::histories(out, summary)).unwrap_or_default() {
        out.say(format_args!("  {name}  {words}"));
    }
    for row in rows.iter().take(PATHS) {
        let danger = row.danger.map_or_else(String::new, |danger| format!("  ({danger})"));
        out.say(format_args!("  {:<9} {}{danger}", row.done.word(), out.shown(&row.path)));
    }
    if let Some(more) = rows.len().checked_sub(PATHS).filter(|more| *more > 0) {
        let all = command(format_args!("{} {} --dry-run -v", would.verb.word(), id.tail()));
        out.say(format_args!("  … and {more} more: {all}"));
    }
    let together = summed.map(|(summary, _)| super::summary::table(out, summary)).unwrap_or_default();
    together.iter().take(PATHS).for_each(|line| out.say(format_args!("  {line}")));
}

fn names(out: &Out, files: &[&AbsPath]) -> String {
    figures::list(&files.iter().map(|path| out.shown(path)).collect::<Vec<_>>())
}

fn show_turns(out: &Out, rows: &[Row], kept: &[LeftPath], not_covered: &[NotCovered]) {
    rows.iter().take(PATHS).for_each(|row| out.say(format_args!("  {:<9} {}", row.done.word(), out.shown(&row.path))));
    if let Some(more) = rows.len().checked_sub(PATHS).filter(|more| *more > 0) {
        out.say(format_args!("  … and {} more: --dry-run -v lists them", figures::grouped(more as u64)));
    }
    let stays = |line: &str| out.say(figures::filled_after("  stays   ", line, 12));
    kept.iter().take(PATHS).for_each(|LeftPath { path, why }| stays(&format!("{}: {why}", out.shown(path))));
    if let Some(more) = kept.len().checked_sub(PATHS).filter(|more| *more > 0) {
        out.say(format_args!("  … and {} more that stay", figures::grouped(more as u64)));
    }
    lines(out, not_covered, false).iter().for_each(|line| stays(line));
}

/// The most paths that a restore names.
const RESTORED: usize = 20;

/// The question before a restore; shows what it removes and what it overwrites.
fn restore(out: &Out, removed: &[&AbsPath], overwritten: &[&AbsPath]) -> String {
    // If there are many of both, each gets at least half of the lines.
    let first = removed.len().min(RESTORED - overwritten.len().min(RESTORED / 2));
    removed.iter().take(first).for_each(|path| out.say(format_args!("would remove     {}", out.shown(path))));
    overwritten.iter().take(RESTORED - first).for_each(|path| out.say(format_args!("would overwrite  {}", out.shown(path))));
    if let Some(more) = (removed.len() + overwritten.len()).checked_sub(RESTORED).filter(|more| *more > 0) {
        out.say(format_args!("… and {} more: --dry-run -v lists them", figures::grouped(more as u64)));
    }
    let count = |paths: &[&AbsPath]| figures::count(paths.len() as u64, "path");
    match (removed, overwritten) {
        ([], []) => "Move HEAD?".to_owned(),
        ([], some) => format!("Overwrite {}, changed since?", count(some)),
        (some, []) => format!("Remove {}, created since?", count(some)),
        (some, others) => format!("Remove {}, created since, and overwrite {}, changed since?", count(some), count(others)),
    }
}
