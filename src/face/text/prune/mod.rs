//! `prune`, in words.

pub mod plan;

use std::path::Path;

use super::list::say_damaged;
use crate::error::{Error, Kind as ErrorKind, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::out::Out;
use crate::face::{args, figures};
use crate::fs::Time;
use crate::session::{Id, Which as Limits};
use crate::settings::{age_word, size_word};
use crate::snapshot::{Conditions, Which};
use crate::verb::error::{all_kinds, content_stays, sessions};
use crate::verb::prune::report::{Contents, Sessions, Skipped};
use crate::verb::prune::sessions::Wanted;
use crate::verb::prune::{self as verb, What};
use crate::verb::{All, Committed, Kind, Lost, Pruned, Snapshots, Staying};

/// Prunes what the call says, or the settings.
pub fn prune(call: &Call, args: &args::Prune) -> Result<Ended, Error> {
    let mut pruned = verb::prune(call, &what(args)?)?;
    let is_error = matches!(pruned, Pruned::Sessions(Sessions { stopped: Some(_), .. }));
    if !call.out.is_text() && !is_error {
        call.out.document(&pruned);
    }
    match &mut pruned {
        Pruned::Sessions(done) => of_sessions(call, args, done),
        Pruned::Snapshots(done) => Ok(of_snapshots(&call.out, done)),
        Pruned::All(done) => of_all(&call.out, done),
    }
}

fn what(args: &args::Prune) -> Result<What<'_>, Error> {
    let dry_run = args.dry_run;
    Ok(match args {
        args::Prune { sessions: true, .. } => What::Sessions(Kind::Sessions, wanted(args)?),
        args::Prune { checkpoints: true, .. } => What::Sessions(Kind::Checkpoints, wanted(args)?),
        args::Prune { discarded: true, .. } => What::Sessions(Kind::Discarded, wanted(args)?),
        args::Prune { snapshots: true, all, .. } => match (&args.of[..], all) {
            ([], true) => {
                let problem = Error::usage("--all drops every snapshot of a directory: name the directory");
                return Err(problem.with_remedy(command("prune --snapshots --all DIR")));
            }
            ([dir], true) => What::Series { dir: Path::new(dir), dry_run },
            ([], false) => What::Snapshots { dir: None, which: which(args), dry_run },
            ([dir], false) => What::Snapshots { dir: Some(Path::new(dir)), which: which(args), dry_run },
            _ => return Err(Error::usage("one directory at a time")),
        },
        _ => What::BySettings { dry_run },
    })
}

fn wanted(args: &args::Prune) -> Result<Wanted, Error> {
    let &args::Prune { older_than, keep, max_size, dry_run, .. } = args;
    let which = Limits { older_than, keep, max_size };
    if !args.of.is_empty() && (!which.is_unbounded() || args.committed) {
        return Err(Error::usage("name sessions or give conditions, not both"));
    }
    let committed = if args.committed { Committed::May } else { Committed::Stays };
    Ok(Wanted { ids: args.of.iter().map(|word| word.to_string_lossy().into_owned()).collect(), which, committed, dry_run })
}

/// The snapshots that the call chooses; `None` if it leaves that to the settings.
fn which(args: &args::Prune) -> Option<Which> {
    if !args.number.is_empty() {
        return Some(Which::Named(args.number.clone()));
    }
    let now = crate::fs::now();
    let before = args.older_than.map(|age| Time { s: now.s.saturating_sub(age), ns: now.ns });
    let conditions = Conditions { keep: args.keep, before, max_size: args.max_size };
    (conditions != Conditions::default()).then_some(Which::All(conditions))
}

/// Reports sessions, or what they lost.
fn of_sessions(call: &Call, args: &args::Prune, done: &mut Sessions) -> Result<Ended, Error> {
    let out = &call.out;
    say_damaged(call, &done.damaged);
    if let Some(error) = done.stopped.take() {
        let ids = done.pruned.iter().map(Id::to_string).collect::<Vec<_>>().join(", ");
        return Err(error.after(&format!("{} pruned before it: {ids}", sessions(done.kind, done.pruned.len() as u64))));
    }
    if out.is_text() {
        done.pruned.iter().for_each(|id| out.line(id));
        done.lost.iter().for_each(|lost| out.warn(lost_line(lost, done.dry_run)));
        for Skipped { id, why } in &done.skipped {
            out.warn(format_args!("session {id} stays: {why}"));
        }
        let (verb, count) =
            (if done.dry_run { "would be pruned" } else { "pruned" }, sessions(done.kind, done.pruned.len() as u64));
        out.note(format_args!("{count} {verb}, {}", figures::bytes(done.bytes)));
        if done.committed > 0 {
            say_committed(out, args, done);
        }
    }
    Ok(ended(done.skipped.is_empty()))
}

fn ended(is_whole: bool) -> Ended {
    if is_whole { Ended::Done } else { Ended::With(ErrorKind::LeftOut) }
}

fn lost_line(Lost { path, what, count, .. }: &Lost, dry_run: bool) -> String {
    let what = match what {
        Contents::Change => "what the session held of it".into(),
        Contents::Original => "what was there before it was committed".into(),
        Contents::Unnamed => format!("{}, paths unknown", figures::count(*count, "object")),
    };
    format!("{}: {path}: {what}", if dry_run { "would be lost" } else { "lost" })
}

/// Says how many sessions the conditions spare because they are committed, with the command that drops them.
fn say_committed(out: &Out, args: &args::Prune, done: &Sessions) {
    let given = [
        args.older_than.map(|seconds| format!(" --older-than {}", age_word(seconds))),
        args.keep.map(|keep| format!(" --keep {keep}")),
        args.max_size.map(|bytes| format!(" --max-size {}", size_word(bytes))),
    ];
    let given: String = given.into_iter().flatten().collect();
    let (what, one) = (figures::count(done.committed, "session"), done.committed == 1);
    let (are, their) = if one { ("is", "its") } else { ("are", "their") };
    let how = command(format_args!("prune {}{given} --committed", done.kind.option()));
    // The command gets its own line: one line would be too long.
    out.note(format_args!("{what} {are} committed; to give up {their} rollback:\n        {how}"));
}

/// Reports snapshots of a directory.
fn of_snapshots(out: &Out, done: &Snapshots) -> Ended {
    if let Some(why) = &done.kept {
        out.warn(content_stays(why));
    }
    if out.is_text() {
        done.pruned.iter().for_each(|n| out.line(n));
        let would = if done.dry_run { "would be " } else { "" };
        let (count, bytes) = (figures::count(done.pruned.len() as u64, "snapshot"), figures::bytes(done.bytes));
        out.note(format_args!("{}: {count} {would}pruned, {bytes} {would}freed", done.directory));
    }
    ended(done.kept.is_none())
}

/// Reports all that went by the settings.
fn of_all(out: &Out, done: &mut All) -> Result<Ended, Error> {
    for Staying { what, why } in &done.skipped {
        out.warn(format_args!("{what} stays: {why}"));
    }
    let (counts, bytes) = (all_kinds(done.counts()), figures::bytes(done.bytes));
    if out.is_text() {
        if done.dry_run {
            plan::lines(out, done).into_iter().for_each(|line| out.line(line));
        }
        let (verb, why) = (if done.dry_run { "would be pruned" } else { "pruned" }, "no retention is set");
        out.note(match (done.is_empty(), done.keeps_sessions) {
            (true, true) => format!("nothing to prune: {why}"),
            (true, false) => "nothing to prune".into(),
            (false, true) => format!("{counts} {verb}, {bytes}; sessions stay: {why}"),
            (false, false) => format!("{counts} {verb}, {bytes}"),
        });
    }
    done.stopped
        .take()
        .map_or(Ok(ended(done.skipped.is_empty())), |error| Err(error.after(&format!("{counts} pruned before it"))))
}
