//! `diff` of two sides: the comparison in words.

use std::path::{Path, PathBuf};

use super::showing::{self, Show};
use super::shown::{again, names};
use super::stat::Together;
use super::tool::Held;
use super::{about, conflicts};
use crate::compare::{Summary, cut};
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::{self, all_whole};
use crate::face::text::{parts, summary};
use crate::face::{args, figures};
use crate::fs::AbsPath;
use crate::verb::diff::compared::is_listed;
use crate::verb::{Compared, Pair, Sides, Terms, diff as verb};

pub fn diff(call: &Call, args: &args::Diff) -> Result<Ended, Error> {
    showing::check(call, &args.much)?;
    let sides = match args {
        args::Diff { step: Some(n), .. } => Sides::Step(*n),
        args::Diff { since: Some(n), .. } => Sides::Since(*n),
        args::Diff { with: Some(other), .. } => Sides::With(other),
        _ => Sides::Session,
    };
    let opened = verb::open(call, args.id.as_deref(), sides).map_err(|problem| or_a_path(problem, args))?;
    let paths = all_whole(&args.paths)?;
    match args {
        args::Diff { blocks: true, .. } => {
            opened.blocks(&paths, args.much.all, &mut |parts| parts::show::blocks(call, parts))?;
        }
        args::Diff { conflicts: true, .. } => opened.conflicts(&paths, &mut |found| conflicts::show(call, args, found))?,
        _ => opened.compare(&paths, &mut |compared| show(call, args, compared))?,
    }
    Ok(Ended::Done)
}

/// Says that `recant diff src` names a path, if no session has that name.
fn or_a_path(problem: Error, args: &args::Diff) -> Error {
    match &args.id {
        Some(key) if problem.kind() == Kind::Refused && PathBuf::from(key).symlink_metadata().is_ok() => {
            problem.with_remedy("the first word is a session; for the path: " + command(format_args!("diff last {key}")))
        }
        _ => problem,
    }
}

fn show(call: &Call, args: &args::Diff, compared: &mut Compared<'_>) -> Result<(), Error> {
    let much = &args.much;
    if let Pair::Session(session) = compared.pair
        && !(much.stat || much.name_only)
        && args.paths.is_empty()
    {
        call.looked(compared.store, session);
    }
    if much.name_only {
        let listed = compared.chosen.iter().map(|i| &compared.changes[*i]).filter(|change| is_listed(change, much.all));
        names(call, listed.map(|change| &change.path).collect());
        return Ok(());
    }
    if !call.out.is_text() && much.stat && !args.full {
        call.out.document(&compared.summarized(much.all)?);
        return Ok(());
    }
    if !call.out.is_text() {
        call.out.document(&compared.listed(much.stat)?);
        return Ok(());
    }
    print(call, args, compared)
}

/// Prints what differs for people.
fn print(call: &Call, args: &args::Diff, compared: &mut Compared<'_>) -> Result<(), Error> {
    let (store, pair) = (compared.store, compared.pair);
    let same = if compared.changes.is_empty() { same(pair) } else { None };
    if same.is_some() && !args.much.html {
        showing::page(call);
    } else {
        let id = pair.session().id().tail();
        let (together, times) = fold(call, args, compared)?;
        let top = args.relative.as_ref().map(|directory| top(call, directory.as_deref())).transpose()?;
        if let Some(top) = &top {
            say_left_out(call, top, compared.only_below(top));
        }
        let held = args.much.form.tool.as_ref().and_then(|_| Held::of(call, compared));
        let each = |remarks, show: &mut Show<'_>| {
            let terms = Terms { all: args.much.all, find_renames: args.find_renames, remarks, top: top.as_ref() };
            compared.for_each(&terms, show).map(|more| times + more)
        };
        let page = || about::pair(call, store, pair);
        let conflicts = showing::all(call, (&args.much, together, held), page, each, |options| again(args, id, options))?;
        if conflicts > 0 {
            let (paths, shows) = (figures::count(conflicts, "path"), command(format_args!("diff {id} --conflicts")));
            call.out.note(format_args!("{paths} changed since: {shows} shows both sides"));
        }
    }
    match (same, pair) {
        (Some(same), _) => call.out.note(same),
        (None, Pair::Two(sessions)) => {
            let n = compared.chosen.len() as u64;
            let differ = if n == 1 { "differs" } else { "differ" };
            let [old, new] = sessions.map(|session| session.id().tail());
            call.out.note(format_args!("{} {differ}: - is session {old}, + is session {new}", figures::count(n, "path")));
        }
        _ => {}
    }
    Ok(())
}

/// Takes out of what is shown what a summary tells together, and the changes of the mtime alone, and returns both: of counts all that the
/// summary has, of a patch that a person reads at a terminal, or a model, the groups, which are told before it.
fn fold(call: &Call, args: &args::Diff, compared: &mut Compared<'_>) -> Result<(Together, u64), Error> {
    let args::Much { stat, all, html, form, .. } = &args.much;
    let is_read = (call.out.is_for_people() || call.out.is_for_tools()) && args.paths.is_empty() && args.relative.is_none();
    if args.full || *html || form.tool.is_some() || !(*stat || is_read) {
        return Ok((Together::default(), 0));
    }
    let summary = compared.summary(*all)?;
    let full = match call.out.is_for_tools() {
        true => "full shows them".into(),
        false => again(args, compared.pair.session().id().tail(), if *stat { " --stat --full" } else { " --full" }),
    };
    if *stat && args.find_renames.is_some() {
        // What came back elsewhere may be in a new directory.
        compared.chosen = summary.outside_of_groups();
        let (lines, changes) = (summary::groups(&call.out, &summary), summary.grouped());
        let histories = summary::histories(&call.out, &summary);
        return Ok((Together { lines, histories, changes, full, remarks: Vec::new() }, summary.times));
    }
    if *stat {
        compared.chosen = summary.singles();
        let (lines, histories) = (summary::lines(&call.out, &summary), summary::histories(&call.out, &summary));
        return Ok((Together { lines, histories, changes: summary.folded(), full, remarks: Vec::new() }, summary.times));
    }
    compared.chosen = summary.outside_of_groups();
    Ok((Together { remarks: remarks(call, &summary, &full), ..Together::default() }, summary.times))
}

/// The directory that paths start from: the one that is named, else the top of the repository that the working directory lies in, else this.
fn top(call: &Call, named: Option<&Path>) -> Result<AbsPath, Error> {
    if let Some(named) = named {
        return find_store::absolute(named);
    }
    if call.is_far() {
        let remedy = command("diff --relative=DIR") + " names the directory there";
        return Err(Error::usage("--relative: the working directory is this machine's").with_remedy(remedy));
    }
    let here = find_store::absolute(&find_store::cwd()?)?;
    let has_repository = |at: &AbsPath| at.as_path().join(".git").symlink_metadata().is_ok();
    Ok(std::iter::once(here.clone()).chain(here.ancestors()).find(has_repository).unwrap_or(here))
}

fn say_left_out(call: &Call, top: &AbsPath, count: usize) {
    if count > 0 {
        let changes = figures::count(count as u64, "change");
        call.out.note(format_args!("{changes} outside of {}, or in git's own files, not shown", call.out.place(top)));
    }
}

/// Names before a patch what a person should see first, and what the patch leaves out.
fn remarks(call: &Call, summary: &Summary, full: &str) -> Vec<String> {
    let dangers: Vec<_> = summary.changes.iter().filter_map(|single| Some((&single.path, single.danger?))).collect();
    let (shown, more) = cut(dangers.len(), call.out.limit());
    let histories = summary::histories(&call.out, summary).into_iter().map(|(name, words)| format!("{name}: {words}"));
    let dangers = dangers[..shown].iter().map(|(path, why)| format!("{}: {why}", call.out.shown(path)));
    let mut remarks: Vec<String> = histories.chain(dangers).collect();
    if more > 0 {
        remarks.push(format!("{} more that others run or obey, or that give rights", figures::count(more as u64, "path")));
    }
    remarks.extend(summary::groups(&call.out, summary).iter().map(|group| format!("{}: {}", group.name, group.whole())));
    if summary.grouped() > 0 {
        let changes = figures::count(summary.grouped(), "change");
        remarks.push(format!("not shown: {changes} summed up: {full}"));
    }
    remarks
}

/// The words for two states that are the same.
fn same(pair: Pair<'_>) -> Option<String> {
    Some(match pair {
        Pair::Session(_) => return None,
        Pair::Step(_, step) => format!("step {} changed no path", step.n),
        Pair::Running(_, [_, n]) => format!("step {n} has changed no path so far"),
        Pair::Since(_, [from, head]) if from == head => format!("step {from} is the head: nothing came after it"),
        Pair::Since(_, [from, head]) => format!("step {from} and the head, step {head}, are the same"),
        Pair::Two([old, new]) => format!("sessions {} and {} hold the same", old.id(), new.id()),
    })
}
