//! `snapshot restore`: a session of the differences, committed by the engine like any other.

use serde::Serialize;

use super::snapshot::{of_key, series_of};
use super::snapshot_diff::known;
use super::snapshot_heads::{self, Moved};
use crate::engine::report::Left;
use crate::error::{Error, Kind, command};
use crate::face::args::SnapshotRestore;
use crate::face::call::Call;
use crate::face::directory::{dir, inner};
use crate::face::ended::Ended;
use crate::face::figures;
use crate::face::text::acts;
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Session;
use crate::session::store::Store;
use crate::snapshot::compare::{self, Compared, Hashes, Terms};
use crate::snapshot::series::Series;
use crate::snapshot::{manifest, restore, whole};
use crate::verb::restore::{Putting, and_of, left, put_back_what_can, rows, would_what_can};
use crate::verb::restored::Row;

#[derive(Serialize)]
struct Whole<'a> {
    directory: &'a AbsPath,
    n: u64,
    dry_run: bool,
    session: Option<&'a Id>,
    paths: &'a [Row],
    skipped: &'a [Left],
    heads: &'a [Moved],
}

pub fn restore(call: &Call, args: &SnapshotRestore) -> Result<Ended, Error> {
    let (store, series) = series_of(call, args.dir.as_deref(), &args.key, &args.paths)?;
    restore::refuse_elsewhere(&series.directory)?;
    let _lock = if args.dry_run {
        None
    } else {
        // Recovers first: changes of an interrupted operation must not count as somebody's.
        call.prepare_to_change(store)?;
        Some(series.lock(&call.fs)?)
    };
    let (n, paths, mut compared) = compared(args, store, &series)?;
    compared.learn_indexes(&series)?;
    let rows = rows(&series, &compared)?;
    let left = left(&series, &compared)?;
    say_repositories(call, &series, n, &paths, &compared)?;
    let heads = if args.with_vcs { snapshot_heads::moved(&series, &compared)? } else { Vec::new() };
    snapshot_heads::say(call, &heads);
    if compared.differences.is_empty() {
        say(call, args, &series, n, None, (&rows, &left, &heads));
        return Ok(ended(&left));
    }
    if args.dry_run {
        let report = would_what_can(call, store, &series, &mut compared, (recorded(&series, n), &act(&series, n), n))?;
        let (rows, left) = (self::rows(&series, &compared)?, and_of(self::left(&series, &compared)?, &report));
        say(call, args, &series, n, None, (&rows, &left, &heads));
        return Ok(ended(&left));
    }
    ask(call, args, &rows, &heads)?;
    let only = paths.iter().map(|path| whole(&series.directory, path)).collect::<Result<_, _>>()?;
    let asked = log::Restore { directory: series.directory.clone(), snapshot: n, only };
    let entry = |session: &Session, counts| log::Entry::of_restore(asked.clone(), session, counts);
    let act = Putting { recorded: recorded(&series, n), act: &act(&series, n), n, entry: &entry, force: args.force };
    let (session, report) = put_back_what_can(call, store, &series, &mut compared, &act)?;
    let id = session.id().clone();
    let (rows, left) = (self::rows(&series, &compared)?, and_of(self::left(&series, &compared)?, &report));
    report.notes.iter().for_each(|note| call.out.warn(note));
    say_shared(call, &series, &compared)?;
    say(call, args, &series, n, Some(&id), (&rows, &left, &heads));
    Ok(ended(&left))
}

/// Compares the snapshot that is asked for with the tree: its number, the paths that were named, and the differences.
fn compared(args: &SnapshotRestore, store: &Store, series: &Series) -> Result<(u64, Vec<AbsPath>, Compared), Error> {
    let n = of_key(series, &args.key, command(format_args!("snapshot restore last {}{}", args.key, dir(&series.directory))))?;
    let paths = inner(&series.directory, &args.paths)?;
    crate::fs::roots::open_many();
    let hashes = if args.safe { Hashes::All } else { Hashes::Small };
    if args.with_vcs {
        refuse_without_vcs(series, n)?;
    }
    let terms = Terms { whole: true, paths: &paths, hashes, with_vcs: args.with_vcs, with_older: args.force, ..Terms::default() };
    let mut compared = compare::with_tree(&store.path, series, n, terms)?;
    known(series, &paths, &compared)?;
    narrow(args, series, n, &paths, &mut compared)?;
    Ok((n, paths, compared))
}

fn act(series: &Series, n: u64) -> String {
    format!("restore snapshot {n} of {}", series.directory)
}

/// Refuses --with-vcs for a snapshot without version control.
fn refuse_without_vcs(series: &Series, n: u64) -> Result<(), Error> {
    if !manifest::rules(&series.dir, n)?.leaves_vcs() {
        return Ok(());
    }
    let why = format!(
        "snapshot {n} of {} has none of version control's directories: it was taken without --with-vcs",
        series.directory
    );
    Err(Error::refused(why).with_path(&series.directory).with_remedy("restore without --with-vcs: they stay as they are"))
}

/// Names the repositories in the snapshot that a restore leaves as they are.
fn say_repositories(call: &Call, series: &Series, n: u64, paths: &[AbsPath], compared: &Compared) -> Result<(), Error> {
    let asked = |path: &&AbsPath| paths.is_empty() || paths.iter().any(|asked| path.is_under(asked));
    let mut stay = compared.repositories.iter().filter(asked);
    let Some(first) = stay.next() else { return Ok(()) };
    let more = match stay.count() {
        0 => String::new(),
        more => format!(" and {} more", figures::grouped(more as u64)),
    };
    let first = call.out.shown(&whole(&series.directory, first)?);
    call.out.note(format_args!("{first}{more}: snapshot {n} has it, too; left as it is without --with-vcs"));
    Ok(())
}

/// Warns of removed names whose files have other names on the tree: a rollback would join them again.
fn say_shared(call: &Call, series: &Series, compared: &Compared) -> Result<(), Error> {
    let mut paths = compared.leaving_names();
    let Some(first) = paths.next() else { return Ok(()) };
    let more = match paths.count() {
        0 => String::new(),
        more => format!(" (so has what was at {})", figures::count(more as u64, "more path")),
    };
    let first = whole(&series.directory, first)?;
    call.out.note(format_args!(
        "{first}: what was there has another name that stays{more}: what is written to that one changes the backup, and a rollback stops at it"
    ));
    Ok(())
}

fn recorded(series: &Series, n: u64) -> String {
    format!("snapshot restore {n} {}", series.directory)
}

pub fn ended(left: &[Left]) -> Ended {
    if left.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) }
}

/// Reduces the differences to those that are asked for.
fn narrow(args: &SnapshotRestore, series: &Series, n: u64, paths: &[AbsPath], compared: &mut Compared) -> Result<(), Error> {
    if !paths.is_empty() {
        compared.only(paths);
    }
    if args.safe {
        let later: Vec<u64> = series.numbers()?.into_iter().filter(|m| *m > n).collect();
        compared.keep_edited(series, &later)?;
    }
    if args.keep_new {
        compared.keep_new();
    }
    compared.settle(&series.directory);
    Ok(())
}

/// The most paths that are listed before a question.
const LISTED: usize = 20;

/// Lists, at a terminal, what is removed and what is overwritten, and asks.
fn ask(call: &Call, args: &SnapshotRestore, rows: &[Row], heads: &[Moved]) -> Result<(), Error> {
    let of = |done: &'static str| rows.iter().filter(move |row| row.done == done);
    let (removed, overwritten) = (of("removed").count(), of("restored").count());
    if args.force || call.yes || !call.can_ask || removed + overwritten == 0 && heads.is_empty() {
        return Ok(());
    }
    // If there are many of both, each gets at least half of the lines.
    let first = removed.min(LISTED - overwritten.min(LISTED / 2));
    of("removed").take(first).for_each(|row| call.out.say(format_args!("would remove     {}", call.out.shown(&row.path))));
    of("restored")
        .take(LISTED - first)
        .for_each(|row| call.out.say(format_args!("would overwrite  {}", call.out.shown(&row.path))));
    if removed + overwritten > LISTED {
        call.out.say(format_args!(
            "… and {} more: --dry-run -v lists them",
            figures::grouped((removed + overwritten - LISTED) as u64)
        ));
    }
    let count = |n: usize| figures::count(n as u64, "path");
    let asked = match (removed, overwritten) {
        (0, 0) => "Move HEAD?".to_owned(),
        (0, n) => format!("Overwrite {}, changed since?", count(n)),
        (n, 0) => format!("Remove {}, created since?", count(n)),
        (n, m) => format!("Remove {}, created since, and overwrite {}, changed since?", count(n), count(m)),
    };
    call.confirm(&asked)
}

fn say(
    call: &Call,
    args: &SnapshotRestore,
    series: &Series,
    n: u64,
    session: Option<&Id>,
    (rows, left, heads): (&[Row], &[Left], &[Moved]),
) {
    let (out, directory, dry_run) = (&call.out, &series.directory, args.dry_run);
    if !out.is_text() {
        out.document(&Whole { directory, n, dry_run, session, paths: rows, skipped: left, heads });
        return;
    }
    let whole = match session {
        Some(id) => command(format_args!("show {} -v", id.tail())),
        None => command(format_args!("snapshot restore {n} --dir {directory} --dry-run -v")),
    };
    out.listing(rows.iter().map(|row| format!("{:<9} {}", row.done, out.shown(&row.path))), &whole);
    acts::say_skipped(&call.out, left, &whole);
    let count = figures::count(rows.len() as u64, "path");
    let (skipped, directory) = (
        if left.is_empty() { String::new() } else { format!(", {} skipped", figures::grouped(left.len() as u64)) },
        out.place(directory),
    );
    if rows.is_empty() {
        out.note(format_args!("{directory} is as snapshot {n} has it{skipped}"));
        return;
    }
    let would = if dry_run { "would be " } else { "" };
    out.note(format_args!("{directory}: {count} {would}restored to snapshot {n}{skipped}"));
    if let Some(id) = session {
        out.note(format_args!("to take it back: {}", command(format_args!("rollback {}", id.tail()))));
    }
}
