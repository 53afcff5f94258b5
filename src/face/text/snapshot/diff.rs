//! `snapshot diff`, in words.

use std::os::unix::ffi::OsStrExt;

use crate::compare::About;
use crate::engine::LeftPath;
use crate::error::{Error, command};
use crate::face::args::SnapshotDiff;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::face::find_store::all_whole;
use crate::face::text::diff::about::common;
use crate::face::text::diff::html::Of;
use crate::face::text::diff::showing::{self, Show};
use crate::face::text::diff::{Together, names};
use crate::fs::Shown;
use crate::verb::diff::compared::is_listed;
use crate::verb::snapshot::{diff as verb, directory};
use crate::verb::{Comparison, Named};

pub fn diff(call: &Call, args: &SnapshotDiff) -> Result<Ended, Error> {
    diff_of(call, args, None)
}

/// Shows the differences. A page of them is of `turn`, if that is given, as to its title, facts and notes.
///
/// # Errors
/// Those of the verb.
pub fn diff_of(call: &Call, args: &SnapshotDiff, turn: Option<About>) -> Result<Ended, Error> {
    let SnapshotDiff { much, other, with_vcs, .. } = args;
    showing::check(call, much)?;
    let paths = all_whole(&args.paths)?;
    let of = Named { dir: args.dir.as_deref(), key: &args.key, paths: &paths };
    let compared = verb::diff(call, of, other.as_deref(), *with_vcs)?;
    let say_left = |LeftPath { path, why }: &LeftPath| call.out.note(format_args!("{path}: not compared: {why}"));
    if much.name_only {
        compared.left.iter().for_each(say_left);
        let listed = compared.changes.iter().filter(|change| !call.out.is_text() || is_listed(change, much.all));
        return Ok(names(call, listed.map(|change| &change.path).collect()));
    }
    if !call.out.is_text() {
        compared.left.iter().for_each(say_left);
        call.out.document(&compared.listed(much.stat)?);
        return Ok(Ended::Done);
    }
    let each = |_, show: &mut Show<'_>| {
        // After the end of a pager, which has the terminal now.
        compared.left.iter().for_each(say_left);
        compared.for_each(much.all, show)
    };
    showing::all(
        call,
        (much, Together::default(), None),
        || page(&compared, turn),
        each,
        |options| again(args, &compared, options),
    )?;
    Ok(Ended::Done)
}

/// The subject of a page of them.
fn page(compared: &Comparison, turn: Option<About>) -> Result<Of, Error> {
    let Comparison { series, n, m, left, .. } = compared;
    let of = &series.directory;
    let now = m.map_or_else(|| "the directory now".to_owned(), |m| format!("snapshot {m}"));
    let sides = match turn {
        Some(_) => ["before the turn".into(), "after it".into()],
        None => [format!("snapshot {n}"), now.clone()],
    };
    let mut about = turn.unwrap_or_else(|| About { title: format!("Snapshot {n} against {now}"), ..About::default() });
    about.facts.push(("in".into(), of.to_string()));
    for n in [Some(*n), *m].into_iter().flatten() {
        let head = series.summary(n)?.head;
        let called = [head.label, head.message].into_iter().flatten().map(|text| format!(", {text}")).collect::<String>();
        about.facts.push((format!("snapshot {n}"), format!("{}{called}", figures::time(head.time, true))));
    }
    about.notes.extend(left.iter().map(|LeftPath { path, why }| ("not compared".into(), format!("{path}: {why}"))));
    Ok(Of { about, common: common(Some(of.clone()), sides, format!("{} --", words(compared))) })
}

/// The words of a call with these two sides.
fn words(Comparison { series, n, m, .. }: &Comparison) -> String {
    let between = m.map(|m| format!(" {m}")).unwrap_or_default();
    format!("snapshot diff {n}{between}{}", directory::dir(&series.directory))
}

fn again(args: &SnapshotDiff, compared: &Comparison, options: &str) -> String {
    let space = if args.much.form.ignore_space { " -w" } else { "" };
    let paths: String = args.paths.iter().map(|path| format!(" {}", Shown(path.as_os_str().as_bytes()))).collect();
    let paths = if paths.is_empty() { paths } else { format!(" --{paths}") };
    command(format_args!("{}{space}{options}{paths}", words(compared))).into()
}
