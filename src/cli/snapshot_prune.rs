//! `prune --snapshots`.

use std::path::Path;

use serde::Serialize;

use super::snapshot;
use crate::error::{Error, Kind, command};
use crate::face::args::Prune;
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures;
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::settings::From;
use crate::snapshot::error;
use crate::snapshot::prune::{self, Conditions, Maker, Pruned, Which};
use crate::snapshot::series::Series;
use crate::verb::signalled;

#[derive(Serialize)]
struct Whole<'a> {
    directory: &'a AbsPath,
    dry_run: bool,
    pruned: &'a [u64],
    bytes: u64,
    kept: Option<&'a str>,
}

pub fn prune(call: &Call, args: &Prune) -> Result<Ended, Error> {
    if args.all {
        return drop_all(call, args);
    }
    let (store, series) = snapshot::series(call, directory(args)?)?;
    if !args.dry_run {
        call.prepare_to_change(store)?;
    }
    let which = which(call, args);
    if let Which::Settings(..) = which {
        let (keep, max_size) = (&call.config.snapshot_keep, &call.config.snapshot_max_size);
        let [keep, max_size] =
            [(figures::grouped(keep.value as u64), keep.from), (figures::bytes(max_size.value), max_size.from)].map(
                |(value, from)| match from {
                    From::File => value,
                    from => format!("{value} ({from})"),
                },
            );
        call.out.note(format_args!("by the settings: snapshot.keep is {keep}, snapshot.max_size {max_size}"));
    }
    let chosen = snapshot::chosen(call, &series, &which)?;
    if !args.dry_run && !chosen.is_empty() {
        ask(call, &series, &chosen)?;
    }
    let act = || {
        if args.dry_run {
            return prune::would(&series, &chosen);
        }
        let lock = series.lock(&call.fs)?;
        // Chosen again under the lock. Snapshots that have come to fit since were not asked about.
        let mut gone = snapshot::chosen(call, &series, &which)?;
        gone.retain(|n| chosen.contains(n));
        prune::prune(&call.fs, &series, &lock, &gone)
    };
    let pruned = signalled::finished(call, act)?;
    Ok(say(call, &series.directory, args.dry_run, &pruned))
}

/// Asks, at a terminal, before snapshots are lost for good. Names the first of them.
fn ask(call: &Call, series: &Series, chosen: &[u64]) -> Result<(), Error> {
    const NAMED: usize = 5;
    let numbers: Vec<String> = chosen.iter().take(NAMED).map(u64::to_string).collect();
    let more = chosen.len().saturating_sub(NAMED) as u64;
    let more = if more > 0 { format!(" and {} more", figures::grouped(more)) } else { String::new() };
    let word = if chosen.len() == 1 { "snapshot" } else { "snapshots" };
    call.confirm(&format!("Prune {word} {}{more} of {}?", numbers.join(", "), call.out.place(&series.directory)))
}

/// Drops the whole series of a directory, also if it cannot be read.
fn drop_all(call: &Call, args: &Prune) -> Result<Ended, Error> {
    if args.of.is_empty() {
        let problem = Error::usage("--all drops every snapshot of a directory, which is to be named");
        return Err(problem.with_remedy(command("prune --snapshots --all DIR")));
    }
    let (directory, series) = snapshot::found_by(call, directory(args)?, Series::unread)?;
    let none = || error::none(&directory);
    let (store, series) = (call.store()?.ok_or_else(none)?, series.ok_or_else(none)?);
    if !args.dry_run {
        call.prepare_to_change(store)?;
    }
    let done = Pruned { gone: series.numbers()?, freed: prune::used(&series.dir)?, kept: None };
    if args.dry_run {
        return Ok(say(call, &directory, true, &done));
    }
    let (count, bytes) = (figures::count(done.gone.len() as u64, "snapshot"), figures::bytes(done.freed));
    call.confirm(&format!("Drop all that there are of {directory}: {count}, {bytes}?"))?;
    let drop_them = || {
        let lock = series.lock(&call.fs)?;
        if let Some(n) = snapshot::needed(call, &directory)?.first() {
            return Err(snapshot::is_needed(&directory, *n));
        }
        if series.numbers()? != done.gone {
            let problem =
                Error::refused(format!("{directory}: its snapshots are others than were asked about")).with_path(&directory);
            return Err(problem.with_remedy("try again"));
        }
        series.remove(&call.fs, store, &lock)?;
        drop(lock);
        call.clear_away(store);
        Ok(done)
    };
    let done = signalled::finished(call, drop_them)?;
    Ok(say(call, &directory, false, &done))
}

/// The directory that is named; `None`: the project.
fn directory(args: &Prune) -> Result<Option<&Path>, Error> {
    match &args.of[..] {
        [] => Ok(None),
        [one] => Ok(Some(Path::new(one))),
        _ => Err(Error::usage("one directory at a time")),
    }
}

fn which(call: &Call, args: &Prune) -> Which {
    if !args.number.is_empty() {
        return Which::Named(args.number.clone());
    }
    let now = crate::fs::now();
    let before = args.older_than.map(|age| Time { s: now.s.saturating_sub(age), ns: now.ns });
    let asked = Conditions { keep: args.keep, before, max_size: args.max_size };
    if asked != Conditions::default() {
        return Which::All(asked);
    }
    let (keep, max_size) = (call.config.snapshot_keep.value, call.config.snapshot_max_size.value);
    Which::Settings(Conditions { keep: Some(keep), before: None, max_size: Some(max_size) }, Maker::Person)
}

fn say(call: &Call, directory: &AbsPath, dry_run: bool, done: &Pruned) -> Ended {
    let ended = if done.kept.is_some() { Ended::With(Kind::LeftOut) } else { Ended::Done };
    if let Some(why) = &done.kept {
        call.out.warn(snapshot::unswept(why));
    }
    if !call.out.is_text() {
        let (pruned, bytes, kept) = (&done.gone[..], done.freed, done.kept.as_deref());
        call.out.document(&Whole { directory, dry_run, pruned, bytes, kept });
        return ended;
    }
    done.gone.iter().for_each(|n| call.out.line(n));
    let would = if dry_run { "would be " } else { "" };
    let (count, bytes) = (figures::count(done.gone.len() as u64, "snapshot"), figures::bytes(done.freed));
    call.out.note(format_args!("{directory}: {count} {would}pruned, {bytes} {would}freed"));
    ended
}
