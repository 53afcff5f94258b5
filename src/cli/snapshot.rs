//! `snapshot create`, `list` and `show`; and the common parts of all snapshot verbs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::compare::shown::cut;
use crate::engine::report::Left;
use crate::error::{Error, Kind, command, recant};
use crate::face::args::{SnapshotCreate, SnapshotList, SnapshotShow};
use crate::face::by;
use crate::face::call::Call;
use crate::face::directory::{as_named, dir, directory, inner};
use crate::face::ended::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::place::home;
use crate::face::text::list::{shown, who};
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::remedy::Command;
use crate::session::by::By;
use crate::session::id::check_name;
use crate::session::running;
use crate::session::store::Store;
use crate::snapshot::create::{Asked, How, Made, create as take};
use crate::snapshot::error::{self, heal};
use crate::snapshot::manifest::{Counts, Entry, Merged, OF_AGENT, TURN};
use crate::snapshot::prune::{self, Conditions, Maker, Which};
use crate::snapshot::rule_source::Source;
use crate::snapshot::rules::{Rules, Vcs, meant};
use crate::snapshot::series::{Broken, Locked, Series, Summary};
use crate::snapshot::{compare, place};
use crate::tree::time;
use crate::verb::signalled;

#[derive(Serialize)]
struct Created<'a> {
    directory: &'a AbsPath,
    n: u64,
    result: &'static str,
    counts: Counts,
    unread: Vec<Left>,
    left: Vec<Left>,
    pruned: Vec<u64>,
    repositories: Vec<AbsPath>,
    damaged: &'a [String],
    unfitted: &'a [String],
}

/// A snapshot in a listing.
#[derive(Serialize)]
pub struct Row<'a> {
    n: u64,
    #[serde(with = "time")]
    time: Time,
    message: Option<&'a str>,
    label: Option<&'a str>,
    key: Option<&'a str>,
    run: bool,
    meta: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    counts: Counts,
}

impl<'a> Row<'a> {
    fn new(summary: &'a Summary) -> Self {
        let head = &summary.head;
        Self {
            n: head.n,
            time: head.time,
            message: head.message.as_deref(),
            label: head.label.as_deref(),
            key: head.key.as_deref(),
            run: head.run,
            meta: &head.meta,
            counts: summary.tail.counts,
        }
    }
}

#[derive(Serialize)]
struct Listed<'a> {
    directory: &'a AbsPath,
    snapshots: &'a [Row<'a>],
    damaged: &'a [Broken],
}

#[derive(Serialize)]
struct Directories<'a> {
    directories: &'a [DirectoryRow],
    damaged: &'a [String],
}

#[derive(Serialize)]
struct DirectoryRow {
    directory: AbsPath,
    there: bool,
    snapshots: usize,
    bytes: u64,
}

#[derive(Serialize)]
struct Shown<'a> {
    directory: &'a AbsPath,
    snapshot: Row<'a>,
    rules: RulesRow<'a>,
    unread: Vec<Left>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<AbsPath>>,
}

#[derive(Serialize)]
struct RulesRow<'a> {
    exclude: &'a [String],
    presets: &'a [String],
    gitignore: bool,
    files: Vec<AbsPath>,
    vcs: Vcs,
    repositories: Vec<AbsPath>,
}

pub fn create(call: &Call, args: &SnapshotCreate) -> Result<Ended, Error> {
    let directory = directory(args.of.named())?;
    if let Some(label) = &args.label {
        check_name(label).map_err(|why| Error::refused(format!("{label:?} can be no label: {why}")))?;
    }
    if args.once.as_deref() == Some("") {
        let remedy = "name the turn or task that it is for; without --once each call takes one";
        return Err(Error::refused("\"\" can be no key: it is empty, and every later call would find it").with_remedy(remedy));
    }
    let path = call.store_path()?;
    place::check(&directory, &path, home().as_ref())?;
    let store = call.made_store()?;
    call.prepare_to_change(&store)?;
    let rules = Rules {
        exclude: args.exclude.iter().map(|glob| meant(&directory, glob)).collect(),
        presets: args.preset.clone(),
        gitignore: args.gitignore,
        vcs: if args.with_vcs { Vcs::Kept } else { Vcs::Left },
        ..Rules::default()
    };
    let asked = Asked {
        message: args.message.clone(),
        label: args.label.clone(),
        meta: with_by(args.meta.clone(), store.by.as_ref()),
        once: args.once.clone(),
        if_changed: args.if_changed,
        run: false,
        rules: Source::Found(rules),
        limit: (!args.all).then_some(call.config.snapshot_max_files.value),
        ..Asked::default()
    };
    let act = || {
        let series = Series::create(&call.fs, &store, &directory)?;
        let lock = series.lock(&call.fs)?;
        let made = take(&call.fs, &store.path, &series, &lock, &asked)?;
        let retained = || retain(call, &series, &lock, args.keep, &[]);
        let pruned = if made.how == How::New { said(call, &series, retained()) } else { Vec::new() };
        if made.how == How::New
            && let Some(label) = &args.label
        {
            say_older(call, &series, label, made.n);
        }
        Ok((made, pruned))
    };
    let (made, pruned) = signalled::finished(call, act)?;
    say_created(call, args, &directory, &made, pruned)
}

/// Says that a label which an older snapshot has, too, now means the newest.
fn say_older(call: &Call, series: &Series, label: &str, n: u64) {
    let (summaries, _) = match series.summaries() {
        Ok(found) => found,
        // The snapshot is made all the same.
        Err(error) => {
            call.out.warn(format_args!(
                "{}: cannot check whether an older snapshot has the label {label}: {error}",
                series.directory
            ));
            return;
        }
    };
    let has_it = |summary: &&Summary| summary.head.n < n && summary.head.label.as_deref() == Some(label);
    if let Some(older) = summaries.iter().rev().find(has_it) {
        call.out.note(format_args!("{label} is snapshot {n} from now on, and no longer snapshot {}", older.head.n));
    }
}

/// The snapshots that retention dropped. An error is a warning: the new snapshot is made, and the next one drops the old ones.
pub fn said(call: &Call, series: &Series, pruned: Result<Vec<u64>, Error>) -> Vec<u64> {
    pruned.unwrap_or_else(|problem| {
        call.out.warn(format_args!("{}: old snapshots were not pruned: {}", series.directory, problem.message()));
        Vec::new()
    })
}

/// Retention: keeps what the settings or `keep` of this call say, and those that are `spared`; an agent's call drops agents' snapshots alone.
/// Returns what it dropped.
pub fn retain(call: &Call, series: &Series, lock: &Locked, keep: Option<usize>, spared: &[u64]) -> Result<Vec<u64>, Error> {
    let limits = |keep| Conditions { keep: Some(keep), before: None, max_size: Some(call.config.snapshot_max_size.value) };
    let which = match keep {
        Some(keep) => Which::Any(limits(keep)),
        None => {
            let of = if by::variable().is_some() { Maker::Agent } else { Maker::Person };
            Which::Settings(limits(call.config.snapshot_keep.value), of)
        }
    };
    let mut gone = chosen(call, series, &which)?;
    gone.retain(|n| !spared.contains(n));
    if gone.is_empty() {
        return Ok(gone);
    }
    let pruned = prune::prune(&call.fs, series, lock, &gone)?;
    if let Some(why) = pruned.kept {
        call.out.warn(unswept(&why));
    }
    Ok(pruned.gone)
}

/// Chooses what is to go, but never a snapshot from which the session of a `run --in` is yet to be made.
pub fn chosen(call: &Call, series: &Series, which: &Which) -> Result<Vec<u64>, Error> {
    let mut chosen = prune::choose(series, which)?;
    let needed = needed(call, &series.directory)?;
    if let (Which::Named(_), Some(n)) = (which, chosen.iter().find(|n| needed.contains(n))) {
        return Err(is_needed(&series.directory, *n));
    }
    chosen.retain(|n| !needed.contains(n));
    Ok(chosen)
}

/// The snapshots that sessions of `run --in` are yet to be made from.
pub fn needed(call: &Call, directory: &AbsPath) -> Result<Vec<u64>, Error> {
    call.store()?.map_or(Ok(Vec::new()), |store| running::needed(store, directory))
}

/// The error that a snapshot is still needed.
pub fn is_needed(directory: &AbsPath, n: u64) -> Error {
    let why = format!("{directory}: the session of a command on the real tree is to be made from snapshot {n}");
    let remedy = "let the command end first; of one that was cut off " + command("recover") + " makes it";
    Error::refused(why).with_path(directory).with_remedy(remedy)
}

/// The message that no content was freed because of an unreadable file.
pub fn unswept(why: &str) -> String {
    format!("no content was freed: a damaged snapshot may need it ({why}); {}", heal())
}

/// Names the given options that are lost because no snapshot was made.
fn unkept(args: &SnapshotCreate, how: How) -> String {
    let given = [
        ("label", args.label.is_some() && how == How::Once),
        ("message", args.message.is_some()),
        ("meta", !args.meta.is_empty()),
    ];
    let given: Vec<&str> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(what, _)| what).collect();
    match given[..] {
        [] => String::new(),
        [one] => format!("; the {one} is not kept"),
        [ref most @ .., last] => format!("; the {} and {last} are not kept", most.join(", ")),
    }
}

fn say_created(call: &Call, args: &SnapshotCreate, directory: &AbsPath, made: &Made, pruned: Vec<u64>) -> Result<Ended, Error> {
    let result = match made.how {
        How::New => "created",
        How::Unchanged => "unchanged",
        How::Once => "once",
    };
    let full = |path: &AbsPath| crate::snapshot::whole(directory, path);
    let unread = made.unread.iter().map(|(path, why)| Ok(Left { path: full(path)?, why: why.clone() }));
    let unread = unread.collect::<Result<Vec<_>, Error>>()?;
    let left = made.left.iter().map(|(path, why)| Ok(Left { path: full(path)?, why: why.text().into() }));
    let left = left.collect::<Result<Vec<_>, Error>>()?;
    let repositories = made.repositories.iter().map(full).collect::<Result<Vec<_>, Error>>()?;
    call.out.warn_each(unread.iter().map(|Left { path, why }| format!("{path}: not in the snapshot: {why}")));
    for Left { path, why } in &left {
        call.out.note(format_args!("{path}: not in the snapshot: {why}"));
    }
    say_damaged(call, made);
    for glob in &made.unfitted {
        call.out.note(format_args!("--exclude {}: nothing that was looked at in {directory} fits it", shown(glob)));
    }
    let ended = if unread.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) };
    let (n, counts) = (made.n, made.counts);
    if call.out.is_text() {
        call.out.line(n);
        match made.how {
            How::New => {
                let Counts { files, added, modified, deleted, stored, .. } = counts;
                let (files, stored) = (figures::count(files, "file"), figures::bytes(stored));
                let [added, modified, deleted] = [added, modified, deleted].map(figures::grouped);
                let without = without(made);
                call.out.note(format_args!("{directory}: {files}, +{added} ~{modified} -{deleted}; {stored} stored{without}"));
            }
            How::Unchanged => {
                call.out.note(format_args!("{directory}: nothing has changed since snapshot {n}{}", unkept(args, made.how)));
            }
            How::Once => call.out.note(format_args!("{directory}: snapshot {n} has that key{}", unkept(args, made.how))),
        }
        if counts.excluded > 0 && made.how == How::New {
            let paths = figures::count(counts.excluded, "path");
            call.out.note(format_args!(
                "{paths} left out by rules: {recant} snapshot show {n}{} tells them",
                dir(directory),
                recant = recant()
            ));
        }
        if !pruned.is_empty() {
            call.out.note(format_args!("{} pruned", figures::count(pruned.len() as u64, "old snapshot")));
        }
    } else {
        call.out.document(&Created {
            directory,
            n,
            result,
            counts,
            unread,
            left,
            pruned,
            repositories,
            damaged: &made.damaged,
            unfitted: &made.unfitted,
        });
    }
    Ok(ended)
}

/// Names the repositories that were left out, for the end of a sentence.
fn without(made: &Made) -> String {
    let Some(first) = made.repositories.first().map(AbsPath::to_string) else { return String::new() };
    let more = match made.repositories.len() {
        1 => String::new(),
        all => format!(" and {} more", figures::grouped(all as u64 - 1)),
    };
    format!("; without {}{more}", first.trim_start_matches('/'))
}

/// Warns of damage in earlier snapshots. The new one is whole.
pub fn say_damaged(call: &Call, made: &Made) {
    made.damaged.iter().for_each(|what| call.out.warn(format_args!("{what}; snapshot {} needs nothing of it", made.n)));
    if !made.damaged.is_empty() {
        call.out.note(heal());
    }
    if let Some(why) = &made.unindexed {
        call.out.warn(format_args!("snapshot {} has no index now, by which the next one would be quicker: {why}", made.n));
    }
}

pub fn list(call: &Call, args: &SnapshotList) -> Result<Ended, Error> {
    if args.all {
        return list_directories(call);
    }
    let (directory, series) = found(call, args.of.named())?;
    let (summaries, broken) = series.as_ref().map_or(Ok(Default::default()), Series::looked_over)?;
    let rows: Vec<Row<'_>> = summaries.iter().rev().map(Row::new).collect();
    if call.out.is_text() {
        print_list(call, &directory, &summaries);
        for Broken { n, why } in &broken {
            call.out.warn(format_args!("snapshot {n}: {why}"));
        }
        if !broken.is_empty() {
            call.out.note(heal());
        }
    } else {
        call.out.document(&Listed { directory: &directory, snapshots: &rows, damaged: &broken });
    }
    Ok(if broken.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn print_list(call: &Call, directory: &AbsPath, summaries: &[Summary]) {
    if summaries.is_empty() {
        call.out.note(format_args!(
            "{directory}: there are no snapshots of it; {recant} snapshot list --all shows what has some",
            recant = recant()
        ));
        return;
    }
    let agent = if summaries.iter().any(|summary| summary.head.by().is_some()) { "AGENT" } else { "" };
    let head = ["N", "TIME", "LABEL", agent, "+", "~", "-", "SIZE", "STORED", "MESSAGE"].map(str::to_owned);
    let (first, more) = cut(summaries.len(), call.out.limit());
    let rows = summaries.iter().rev().take(first).map(|Summary { head, tail }| {
        let counts = tail.counts;
        [
            head.n.to_string(),
            figures::day(head.time),
            head.label.clone().unwrap_or_default(),
            who(head.by().as_ref()),
            figures::grouped(counts.added),
            figures::grouped(counts.modified),
            figures::grouped(counts.deleted),
            figures::bytes(counts.bytes),
            figures::bytes(counts.stored),
            head.message.as_deref().and_then(|text| text.lines().next()).map(shown).unwrap_or_default(),
        ]
    });
    let mut rows: Vec<_> = [head].into_iter().chain(rows).collect();
    use Side::{Left, Right};
    let sides = [Right, Left, Left, Left, Right, Right, Right, Right, Right, Left];
    let (path, words) = (Flexible::path, Flexible::words);
    figures::fit(&mut rows, call.out.width(), &[words(9, 12), path(3, 8), path(2, 8), words(9, 7)]);
    figures::table(sides, &rows).for_each(|line| call.out.line(line));
    if more > 0 {
        call.out.line(figures::more(more, &command(format_args!("snapshot list{} -v", dir(directory)))));
    }
}

fn list_directories(call: &Call) -> Result<Ended, Error> {
    let (all, damaged) = match call.store()? {
        Some(store) => Series::all(store)?,
        None => Default::default(),
    };
    let mut rows = Vec::with_capacity(all.len());
    for series in all {
        let (snapshots, bytes) = (series.numbers()?.len(), prune::used(&series.dir)?);
        if snapshots == 0 {
            // Its first snapshot was refused or stopped, or all are pruned.
            continue;
        }
        let there = series.directory.as_path().symlink_metadata().is_ok();
        rows.push(DirectoryRow { directory: series.directory, there, snapshots, bytes });
    }
    if call.out.is_text() {
        let head = ["SNAPSHOTS", "SIZE", "DIRECTORY", ""].map(str::to_owned);
        let gone = |there: bool| if there { String::new() } else { "(not there now)".into() };
        let (first, more) = cut(rows.len(), call.out.limit());
        let lines = rows[..first]
            .iter()
            .map(|row| [row.snapshots.to_string(), figures::bytes(row.bytes), call.out.place(&row.directory), gone(row.there)]);
        let mut lines: Vec<_> = [head].into_iter().chain(lines).collect();
        figures::fit(&mut lines, call.out.width(), &[Flexible::path(2, 20)]);
        if rows.is_empty() {
            call.out.note("there are no snapshots");
        } else {
            figures::table([Side::Right, Side::Right, Side::Left, Side::Left], &lines).for_each(|line| call.out.line(line));
        }
        if more > 0 {
            call.out.line(figures::more(more, &command("snapshot list --all -v")));
        }
        damaged
            .iter()
            .for_each(|name| call.out.warn(format_args!("snapshots/{name}: the directory of these snapshots is unknown")));
    } else {
        call.out.document(&Directories { directories: &rows, damaged: &damaged });
    }
    Ok(if damaged.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

pub fn show(call: &Call, args: &SnapshotShow) -> Result<Ended, Error> {
    let (_, series) = series(call, args.dir.as_deref())?;
    let n = of_key(&series, &args.key, command(format_args!("snapshot show last -v{}", dir(&series.directory))))?;
    let summary = series.summary(n)?;
    let mut merged = Merged::open(&series.dir, n)?;
    let full = |path: &AbsPath| crate::snapshot::whole(&series.directory, path);
    let (mut unread, mut paths) = (Vec::new(), Vec::new());
    while let Some(Entry { path, unread: why, .. }) = merged.next()? {
        if let Some(why) = why {
            unread.push(Left { path: full(&path)?, why });
        } else if call.out.is_verbose() {
            paths.push(full(&path)?);
        }
    }
    let rules = merged.rules().cloned().unwrap_or_default();
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print_shown(call, &summary, &rules, &unread, &paths);
    } else {
        let files =
            rules.files.iter().map(|file| full(&file.directory.join(file.name.as_bytes()).unwrap_or_else(|_| compare::root())));
        let files = files.collect::<Result<_, _>>()?;
        let rules = RulesRow {
            exclude: &rules.exclude,
            presets: &rules.presets,
            gitignore: rules.gitignore,
            files,
            vcs: rules.vcs,
            repositories: rules.repositories.iter().map(full).collect::<Result<_, _>>()?,
        };
        let paths = call.out.is_verbose().then_some(paths);
        call.out.document(&Shown { directory: &series.directory, snapshot: Row::new(&summary), rules, unread, paths });
    }
    Ok(Ended::Done)
}

/// The meta keys of a snapshot with `agent` and `turn` of the agent that takes it, unless it gives them itself.
pub fn with_by(mut meta: Vec<(String, String)>, by: Option<&By>) -> Vec<(String, String)> {
    let gives = |wanted: &str| meta.iter().any(|(key, _)| key == wanted);
    let Some(By { agent, turn, .. }) = by.filter(|_| !gives(OF_AGENT)) else { return meta };
    let turn = turn.filter(|_| !gives(TURN)).map(|turn| (TURN.into(), turn.to_string()));
    meta.push((OF_AGENT.into(), agent.clone()));
    meta.extend(turn);
    meta
}

fn print_shown(call: &Call, summary: &Summary, rules: &Rules, unread: &[Left], paths: &[AbsPath]) {
    let (head, counts, out) = (&summary.head, &summary.tail.counts, &call.out);
    let row = |name: &str, value: &str| out.line(format_args!("{name:<10} {value}"));
    row("snapshot", &format!("{} of {}", head.n, head.directory));
    row("taken", &figures::time(head.time, true));
    for (name, value) in [("message", &head.message), ("label", &head.label), ("key", &head.key)] {
        if let Some(value) = value {
            row(name, &shown(value));
        }
    }
    head.meta.iter().for_each(|(key, value)| row("meta", &shown(&format!("{key}={value}"))));
    let directories = counts.entries - counts.files;
    row(
        "holds",
        &format!(
            "{} and {}, {}",
            figures::count(counts.files, "file"),
            figures::count(directories, "directory"),
            figures::bytes(counts.bytes)
        ),
    );
    row("stored", &format!("{} for this one", figures::bytes(counts.stored)));
    let [added, modified, deleted] = [counts.added, counts.modified, counts.deleted].map(figures::grouped);
    row("changed", &format!("+{added} ~{modified} -{deleted} since the one before"));
    if counts.excluded > 0 || !rules.is_empty() {
        row("left out", &format!("{} by rules", figures::count(counts.excluded, "path")));
        rules.presets.iter().for_each(|preset| row("  preset", preset));
        rules.exclude.iter().for_each(|glob| row("  exclude", &shown(glob)));
        for file in &rules.files {
            let directory = crate::snapshot::whole(&head.directory, &file.directory).unwrap_or_else(|_| file.directory.clone());
            row("  file", &format!("{directory}/{}", file.name));
        }
    }
    match rules.vcs {
        Vcs::Left => {
            let found = rules.repositories.iter().map(|path| crate::snapshot::whole(&head.directory, path));
            found.filter_map(Result::ok).for_each(|path| row("without", &path.to_string()));
        }
        Vcs::Kept => row("with", ".git, .hg, .svn and .jj, where there are any"),
    }
    unread.iter().for_each(|Left { path, why }| row("not in it", &format!("{path}: {why}")));
    paths.iter().for_each(|path| out.line(path));
}

/// The series of a directory that has to have one.
pub fn series<'c>(call: &'c Call, dir: Option<&Path>) -> Result<(&'c Store, Series), Error> {
    let (directory, series) = found(call, dir)?;
    let none = || error::none(&directory);
    Ok((call.store()?.ok_or_else(none)?, series.ok_or_else(none)?))
}

/// The series for a verb with paths: that of `dir`, else of the project. If a single path is given that has snapshots of its own, and
/// the project's snapshot `key` does not hold it, its own series; says so then.
pub fn series_of<'c>(call: &'c Call, dir: Option<&Path>, key: &str, paths: &[PathBuf]) -> Result<(&'c Store, Series), Error> {
    if let ([path], None) = (paths, dir)
        // A path whose directory is gone has no series of its own.
        && let Ok((_, Some(own))) = found(call, Some(path))
        && !holds(&found(call, None)?.1, key, paths)?
    {
        call.out.note(format_args!("{} has snapshots of its own: {key} is one of those", call.out.shown(&own.directory)));
        return Ok((call.store()?.ok_or_else(|| error::none(&own.directory))?, own));
    }
    series(call, dir)
}

/// True if the snapshot of that key holds all of these paths.
fn holds(series: &Option<Series>, key: &str, paths: &[PathBuf]) -> Result<bool, Error> {
    let Some(series) = series else { return Ok(false) };
    let (Ok(n), Ok(mut left)) = (series.find(key), inner(&series.directory, paths)) else { return Ok(false) };
    let mut there = Merged::open(&series.dir, n)?;
    while let Some(line) = there.next_unread()? {
        left.retain(|path| *path != line.path);
    }
    Ok(left.is_empty())
}

/// A directory, and its series if it has one: by its real path, else by the given path, where a link may have replaced the directory.
fn found(call: &Call, dir: Option<&Path>) -> Result<(AbsPath, Option<Series>), Error> {
    found_by(call, dir, Series::open)
}

/// Finds a directory's series like [`found`], opened by `open`.
pub fn found_by(
    call: &Call,
    dir: Option<&Path>,
    open: fn(&Store, &AbsPath) -> Result<Option<Series>, Error>,
) -> Result<(AbsPath, Option<Series>), Error> {
    let real = directory(dir);
    if let Some(store) = call.store()? {
        let named = dir.map(as_named).transpose()?.unwrap_or_default();
        for directory in real.as_ref().into_iter().chain(&named) {
            if let Some(series) = open(store, directory)? {
                return Ok((directory.clone(), Some(series)));
            }
        }
    }
    Ok((real?, None))
}

/// The number of the snapshot that `key` means. If `key` is a path, the remedy suggests `so`.
pub fn of_key(series: &Series, key: &str, so: Command) -> Result<u64, Error> {
    let is_path = || key.contains('/') || Path::new(key).symlink_metadata().is_ok();
    series.find(key).map_err(|error| match error {
        error if error.is_unknown() && is_path() => {
            error.with_remedy("a number, a label or 'last' comes first; for the path: " + so)
        }
        error => error,
    })
}
