//! Words for the questions of verbs; what a question is about is shown before it.

use super::agent::uncovered::lines;
use super::heads::heads;
use super::prune::plan;
use crate::engine::{LeftPath, Report, Verb};
use crate::error::command;
use crate::face::figures;
use crate::face::out::Out;
use crate::fs::{AbsPath, Shown};
use crate::session::{Header, Id, Unseen};
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
        Question::CommitFailed { id, failed } => format!("Commit session {}, {}?", id.tail(), failed.text()),
        Question::CommitUnseen { id, steps } => {
            show_steps(out, id, steps);
            let steps = figures::count(steps.len() as u64, "step");
            format!("Commit session {}, with {steps} that you have not looked at?", id.tail())
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
            format!("Free {} of {of}{overwritten}? Nothing brings that back.", figures::count(*held, "held change"))
        }
        Question::Undo { act, would, id } => {
            out.say(format_args!("recant: undo takes back: {act}"));
            show_rows(out, would, id);
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

fn show_rows(out: &Out, would: &Report, id: &Id) {
    for row in would.rows.iter().take(PATHS) {
        out.say(format_args!("  {:<9} {}", row.done.word(), out.shown(&row.path)));
    }
    if let Some(more) = would.rows.len().checked_sub(PATHS).filter(|more| *more > 0) {
        let all = command(format_args!("{} {} --dry-run -v", would.verb.word(), id.tail()));
        out.say(format_args!("  … and {more} more: {all}"));
    }
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
