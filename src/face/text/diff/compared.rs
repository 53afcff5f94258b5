//! `diff` of two sides: the comparison in words.

use std::path::PathBuf;

use super::showing::{self, Show};
use super::shown::{again, names};
use super::{about, brief, conflicts};
use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::all_whole;
use crate::face::text::parts;
use crate::face::{args, figures};
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
        && !(much.stat || much.name_only || args.brief)
        && args.paths.is_empty()
    {
        call.looked(compared.store, session);
    }
    if much.name_only {
        let listed = compared.chosen.iter().map(|i| &compared.changes[*i]).filter(|change| is_listed(change, much.all));
        names(call, listed.map(|change| &change.path).collect());
        return Ok(());
    }
    if args.brief {
        return brief::print(call, args, compared);
    }
    if !call.out.is_text() {
        call.out.document(&compared.listed(much.stat)?);
        crate::face::brief::offer(call, "diff --brief");
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
        let each = |remarks, show: &mut Show<'_>| {
            compared.for_each(&Terms { all: args.much.all, find_renames: args.find_renames, remarks }, show)
        };
        let page = || about::pair(call, store, pair);
        let conflicts = showing::all(call, &args.much, page, each, |options| again(args, id, options))?;
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

/// The words for two states that are the same.
fn same(pair: Pair<'_>) -> Option<String> {
    Some(match pair {
        Pair::Session(_) => return None,
        Pair::Step(_, step) => format!("step {} changed no path", step.n),
        Pair::Running(_, [_, n]) => format!("step {n} has changed no path so far"),
        Pair::Since(_, [from, head]) if from == head => format!("step {from} is the head: nothing came after it"),
        Pair::Since(_, [from, head]) => format!("step {from} and the head, step {head}, hold the same"),
        Pair::Two([old, new]) => format!("sessions {} and {} hold the same", old.id(), new.id()),
    })
}
