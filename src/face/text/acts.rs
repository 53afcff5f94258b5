//! `commit`, `rollback`, `redo`, `undo` and `confirm`, in words.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use serde::Serialize;

use super::{discard, fact, summary, waiting};
use crate::capture::Rest;
use crate::checkpoint::Large;
use crate::compare::{Summary, cut};
use crate::engine::{LeftPath, Report, Row, Verb};
use crate::error::{Error, Kind, command, shell_word};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::all_whole;
use crate::face::out::Out;
use crate::face::{args, figures};
use crate::fs::AbsPath;
use crate::session::{Id, Status};
use crate::tree::Danger;
use crate::verb::error::{nothing_fits, untold};
use crate::verb::policy;
use crate::verb::resolve::guard::limited;
use crate::verb::resolve::target::What;
use crate::verb::{
    Acted, Allowed, BroughtBack, ByPolicy, Commit, How, PartOf, Rollback, Target, Undone, Waits, commit, confirm, redo, rollback,
    undo,
};

/// Commits a session, or a part of it.
pub fn commit(call: &Call, args: &args::Commit) -> Result<Ended, Error> {
    let &args::Commit { force, merge, accept_unsynced, confirm_within: within, patch, .. } = args;
    let of = target(&args.what, patch)?;
    let asked = Commit { of, force, merge, accept_unsynced, within };
    let variable = limited(call).filter(|_| policy::is_set(call));
    if let Some(variable) = variable.filter(|_| !asked.of.dry_run) {
        return by_policy(call, variable, &asked);
    }
    let mut acted = commit::commit(call, &asked)?;
    if let Some(acted) = acted.as_mut().filter(|_| variable.is_some()) {
        let (fits, waits) = commit::foreseen(call, &asked)?;
        acted.policy = Some(Allowed { fits, waits, command: None });
    }
    end(call, acted.as_ref())
}

/// Commits for an agent what its person's policy allows, and says what waits.
fn by_policy(call: &Call, variable: &'static str, asked: &Commit) -> Result<Ended, Error> {
    let ByPolicy { acted, waits, session, step } = commit::by_policy(call, asked)?;
    let command = command(format_args!("commit {}{}{}", session.tail(), at(step), still(asked, &waits)));
    let Some(mut acted) = acted else {
        let first = waits.first().map(|first| (&first.path, &*first.why));
        return Err(nothing_fits(variable, first, waits.len(), command));
    };
    let command = (!waits.is_empty()).then(|| command.to_string());
    let fits = acted.report.rows.len() as u64;
    let allowed = acted.policy.insert(Allowed { fits, waits, command });
    let is_all = allowed.waits.is_empty();
    match end(call, Some(&acted))? {
        Ended::Done if !is_all => Ok(Ended::With(Kind::LeftOut)),
        ended => Ok(ended),
    }
}

fn at(step: Option<u32>) -> String {
    step.map(|step| format!("@{step}")).unwrap_or_default()
}

/// The paths that a call named and that still wait, each with a blank before it.
fn still(asked: &Commit, waits: &[Waits]) -> String {
    let words = asked.of.what.words().iter();
    let waits = |path: &AbsPath| waits.iter().any(|one| one.path.is_under(path));
    let paths = words.filter_map(|word| AbsPath::parse(word.path().as_os_str().as_bytes()).ok()).filter(waits);
    paths.map(|path| format!(" {}", shell_word(path.as_bytes()))).collect()
}

/// Says what a person's policy leaves to the person.
fn say_policy(out: &Out, Allowed { fits, waits, command }: &Allowed) {
    out.warn_each(waits.iter().map(|Waits { path, why }| format!("{}: waits for a person: {why}", out.shown(path))));
    match command {
        Some(command) => out.note(format_args!("in a person's terminal: {command}")),
        None => out.note(format_args!("agent.policy allows {} of it", figures::count(*fits, "change"))),
    }
}

/// Rolls a session back, or a part of it.
pub fn rollback(call: &Call, args: &args::Back) -> Result<Ended, Error> {
    let &args::Back { force, merge, patch, .. } = args;
    let acted = rollback::rollback(call, &Rollback { of: target(&args.what, patch)?, force, merge })?;
    end(call, acted.as_ref())
}

/// Commits a session again, or takes the newest undo back.
pub fn redo(call: &Call, args: &args::Redo) -> Result<Ended, Error> {
    let &args::Redo { dry_run, force, .. } = args;
    let Some(id) = &args.id else {
        return undone(call, undo::redo_newest(call, How { dry_run, merge: false, force })?);
    };
    let of = Target { what: What::named(all_whole(&args.paths)?), dry_run, ..Target::all(id) };
    end(call, Some(&redo::redo(call, &of, force)?))
}

/// Takes the newest act back.
pub fn undo(call: &Call, args: &args::Undo) -> Result<Ended, Error> {
    let &args::Undo { dry_run, merge, force, .. } = args;
    undone(call, undo::undo(call, args.id.as_deref(), How { dry_run, merge, force })?)
}

/// Lets a commit stay, or watches over one.
pub fn confirm(call: &Call, args: &args::Confirm) -> Result<Ended, Error> {
    if args.watch {
        return watch(call, &args.id);
    }
    let value = confirm::confirm(call, &args.id)?;
    if call.out.is_text() {
        let (id, back) = (&value.session, command(format_args!("rollback {}", value.session.tail())));
        call.out.note(format_args!("session {id} is confirmed: it stays; {back} takes it back"));
    } else {
        call.out.document(&value);
    }
    Ok(Ended::Done)
}

/// Waits until a commit is confirmed, or rolls it back at the deadline.
fn watch(call: &Call, key: &str) -> Result<Ended, Error> {
    let Some(id) = Id::parse(key) else { return Err(Error::refused(format!("{key:?} is not a session's id"))) };
    // The terminal of the commit may close.
    let _refused_to_a_leader = rustix::process::setsid();
    call.out.line("watching");
    call.out.flush();
    let store = call.store_with(key)?;
    while let Some(deadline) = store.session(&id)?.header.waits() {
        let left = deadline.left();
        let left = Duration::new(u64::try_from(left.s).unwrap_or(0), left.ns);
        if left.is_zero() && confirm::settle(call, store, &id)? {
            break;
        }
        // The confirmation may come meanwhile.
        std::thread::sleep(left.clamp(Duration::from_millis(100), Duration::from_millis(500)));
    }
    Ok(Ended::Done)
}

fn target(what: &args::What, patch: bool) -> Result<Target, Error> {
    let words = all_whole(&what.paths)?;
    let (dry_run, reason) = (what.dry_run, what.message.clone());
    let what_of_it = if patch { What::Asked(words) } else { What::named(words) };
    Ok(Target { what: what_of_it, dry_run, reason, ..Target::all(&what.id) })
}

fn undone(call: &Call, undone: Undone) -> Result<Ended, Error> {
    match undone {
        Undone::Acted(acted) => end(call, acted.as_deref()),
        Undone::Discarded(sessions) => discard::sessions(call, sessions),
        Undone::Back(back) => {
            brought_back(&call.out, &back);
            Ok(Ended::Done)
        }
    }
}

fn brought_back(out: &Out, back: &BroughtBack) {
    let (tail, changes) = (back.session.tail(), figures::count(back.changes, "change"));
    let Some(status) = back.status else {
        return out.note(format_args!("session {tail} would be brought back: {changes}"));
    };
    if !out.is_text() {
        out.document(back);
    }
    let state = if back.uncollected { "a run that was cut off".to_owned() } else { status.word().replace('_', " ") };
    out.note(format_args!("session {tail} is brought back: {changes}, {state}"));
}

/// Reports an act, and ends the call.
///
/// # Errors
/// The session that a part left was not told of it yet.
pub fn end(call: &Call, acted: Option<&Acted>) -> Result<Ended, Error> {
    let Some(acted) = acted else { return Ok(Ended::Done) };
    say(call, acted);
    if let Some((of, Rest::Untold(why))) = &acted.rest {
        return Err(untold(why, of, &acted.session));
    }
    Ok(if acted.is_whole() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// An act as JSON has it; with `--dry-run` with its summary.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    acted: &'a Acted,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
}

/// Reports an act.
fn say(call: &Call, acted: &Acted) {
    let out = &call.out;
    if !out.is_text() {
        let summary = acted.report.dry_run.then(|| acted.summary(call)).flatten().map(|(summary, _)| summary);
        out.document(&Told { acted, summary });
    } else {
        match &acted.part_of {
            Some(of) if of.is_back => say_back(call, acted, of),
            Some(of) => say_part(call, acted, of),
            None => say_text(call, acted),
        }
        acted.waiting.iter().for_each(|waiting| waiting::say(out, waiting));
        acted
            .policy
            .iter()
            .filter(|policy| policy.command.is_some() || acted.report.dry_run)
            .for_each(|policy| say_policy(out, policy));
    }
    if let (None, Some((of, rest))) = (&acted.part_of, &acted.rest) {
        fact::rest(out, of, &acted.session, rest);
    }
    if let Some(behind) = &acted.behind {
        fact::left_behind(out, &acted.session, *behind);
    }
}

/// Reports that a part of session `of` was taken back by a session of its own.
fn say_back(call: &Call, acted: &Acted, of: &PartOf) {
    let (out, report, whole) = (&call.out, &acted.report, of.session.tail());
    list_rows(call, acted, &command(format_args!("rollback {whole} … --dry-run -v")));
    report.notes.iter().for_each(|note| out.warn(note));
    out.note(headline(acted));
    if !report.dry_run {
        out.note(format_args!("to undo this: {}", command(format_args!("rollback {}", acted.session.tail()))));
    }
}

/// Reports the commit of a part of a session.
fn say_part(call: &Call, acted: &Acted, of: &PartOf) {
    let (out, report, whole) = (&call.out, &acted.report, of.session.tail());
    if report.dry_run {
        list_rows(call, acted, &command(format_args!("commit {whole} … --dry-run -v")));
        report.notes.iter().for_each(|note| out.warn(note));
        out.note(headline(acted));
        return;
    }
    say_text(call, acted);
    out.note(rest(acted, of));
}

/// Says in a line what was done.
fn headline(acted: &Acted) -> String {
    let Acted { session, report, part_of, .. } = acted;
    let paths = figures::count(report.rows.len() as u64, "path");
    match part_of {
        Some(of) if of.is_back && report.dry_run => {
            format!("a part of session {}: {paths} would be taken back", of.session.tail())
        }
        Some(of) if of.is_back => {
            format!("a part of session {} is taken back, by session {}: {paths}", of.session.tail(), session.tail())
        }
        Some(of) if report.dry_run => format!("a part of session {}: {}", of.session.tail(), summary(report)),
        _ => format!("session {}: {}", named(acted), summary(report)),
    }
}

/// The lines for who did not see the report: what was done, and what became of the rest of a session.
pub fn headlines(acted: &Acted) -> Vec<String> {
    let rest = acted.part_of.as_ref().filter(|of| !of.is_back && !acted.report.dry_run).map(|of| rest(acted, of));
    [headline(acted)].into_iter().chain(rest).collect()
}

fn rest(acted: &Acted, of: &PartOf) -> String {
    let (part, whole, rest) = (acted.session.tail(), of.session.tail(), figures::count(of.changes, "change"));
    format!("session {part} is a part of session {whole}, which holds the rest: {rest}")
}

/// The session, with its name if it has one: `k3fa (upgrade)`.
fn named(acted: &Acted) -> String {
    let name = acted.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{}{name}", acted.session.tail())
}

/// Prints what was done to each path, or to many together.
fn list_rows(call: &Call, acted: &Acted, whole: &str) {
    let (out, report) = (&call.out, &acted.report);
    let row = |row: &Row| {
        let over = if row.over && report.dry_run { ", over what was changed since" } else { "" };
        let danger = row.danger.map_or_else(String::new, |danger| format!("  ({danger})"));
        format!("{:<9} {}{over}{danger}", row.done.word(), out.shown(&row.path))
    };
    if out.is_kept() {
        return;
    }
    let summed = if out.is_verbose() || out.is_quiet() { None } else { acted.summary(call) };
    let (summary, mut rows) = summed.unwrap_or_else(|| (Summary::default(), report.rows.iter().collect()));
    rows.sort_by_key(|row| Danger::place(row.danger));
    // What gives rights must not be missed.
    let rights = rows.iter().take_while(|row| Danger::place(row.danger) == 0).count();
    let listed = if out.is_quiet() { &rows[..rights] } else { &rows[..] };
    summary::print_histories(out, &summary);
    out.first_of(listed.iter().copied().map(row), whole);
    summary::print(out, &summary, whole);
    let shown = cut(listed.len(), out.limit()).0;
    marked(out, listed[shown..].iter().filter(|row| row.danger.is_some()).count());
}

/// Says that of the paths that are not listed some are marked.
pub fn marked(out: &Out, count: usize) {
    if count > 0 {
        let those = figures::count(count as u64, "path");
        out.warn(format_args!("{those} that others run or obey, or that give rights, are not listed here"));
    }
}

fn say_text(call: &Call, acted: &Acted) {
    let out = &call.out;
    let (report, tail, dry_run) = (&acted.report, acted.session.tail(), acted.report.dry_run);
    let whole = whole_list(report, tail);
    list_rows(call, acted, &whole);
    say_skipped(out, &report.left, &whole);
    report.large.iter().for_each(|large| out.note(said_of(large, &out.shown(&large.path))));
    report.notes.iter().for_each(|note| out.warn(note));
    let over = report.rows.iter().filter(|row| row.over).count();
    if dry_run && over > 0 {
        let paths = figures::count(over as u64, "path");
        out.warn(format_args!("{paths} changed since would be overwritten; what is there is kept"));
    }
    if let [path, rest @ ..] = &report.displaced[..] {
        let others =
            if rest.is_empty() { String::new() } else { format!(" (and {})", figures::count(rest.len() as u64, "other path")) };
        let cat = command(format_args!("cat {tail} {} --displaced", out.word(path)));
        out.note(format_args!("what was overwritten is kept: {cat}{others}"));
    }
    if report.rows.is_empty() && report.left.is_empty() {
        out.note(format_args!("session {}: nothing to {}", named(acted), report.verb.infinitive()));
        return;
    }
    out.note(headline(acted));
    if report.verb == Verb::Commit && !dry_run && !report.rows.is_empty() {
        let back = command(format_args!("rollback {tail}"));
        match report.kept {
            0 => out.note(format_args!("to take it back: {back}")),
            kept => out.note(format_args!("to take it back: {back} ({} kept for it)", figures::bytes(kept))),
        }
    }
    if report.status == Status::Committed && report.counts.inside < report.counts.changes && !dry_run {
        out.note(format_args!("{} lists what is committed and what is not", command(format_args!("show {tail}"))));
    }
}

/// The line about a large directory that was deleted; `path` is as printed.
fn said_of(large: &Large, path: &str) -> String {
    format!("{path}: {}, {} deleted, all kept for a rollback", figures::count(large.files, "file"), figures::bytes(large.size))
}

/// The command that lists all of a report.
fn whole_list(report: &Report, tail: &str) -> String {
    let verb = report.verb.word();
    let whole = if report.dry_run { format!("{verb} {tail} --dry-run -v") } else { format!("show {tail} -v") };
    command(whole).into()
}

/// Prints the paths that were left out, each with the reason.
pub fn say_skipped(out: &Out, rows: &[LeftPath], whole: &str) {
    const SKIPPED: &str = "skipped";
    let row = |LeftPath { path, why }: &LeftPath| {
        let row = format!("{}: {why}", out.shown(path));
        if out.is_for_people() { figures::filled_after(SKIPPED, &row, 10) } else { format!("{SKIPPED:<10}{row}") }
    };
    out.first_of(rows.iter().map(row), whole);
}

/// Counts the changes that were made and those that stay as they were: `26 of 71 changes committed, 45 still held`; and those among them
/// that were skipped.
fn summary(report: &Report) -> String {
    let (done, all, inside) = (report.rows.len() as u64, report.counts.changes, report.counts.inside);
    let skipped = report.left.len() as u64;
    let (stay, where_they_are) = match report.verb {
        Verb::Commit => (all - inside, "still held"),
        Verb::Redo => (all - inside, "not on the tree"),
        Verb::Rollback => (inside, "still on the tree"),
    };
    let would = if report.dry_run { "would be " } else { "" };
    let past = report.verb.past();
    let whole = || format!("{} {would}{past}", figures::count(done, "change"));
    let of_all = || format!("{} of {} {would}{past}", figures::grouped(done), figures::count(done + stay, "change"));
    let stays = || format!("{} {where_they_are}", figures::grouped(stay));
    match (stay, skipped) {
        (0, 0) => whole(),
        (_, 0) => format!("{}, {}", of_all(), stays()),
        (stay, skipped) if skipped == stay => format!("{}, {} (skipped)", of_all(), stays()),
        (stay, skipped) if skipped < stay => format!("{}, {} ({} of them skipped)", of_all(), stays(), figures::grouped(skipped)),
        // A directory that is kept need not be a change.
        (0, _) => format!("{}; {} skipped", whole(), figures::count(skipped, "path")),
        _ => format!("{}, {}; {} skipped", of_all(), stays(), figures::count(skipped, "path")),
    }
}
