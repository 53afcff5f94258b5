//! `snapshot diff`: a snapshot against the directory as it is now, or against another, shown like the diff of a session.

use serde::Serialize;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use super::snapshot::{of_key, series_of};
use crate::compare::html::page::About;
use crate::compare::patch::{Form, counts};
use crate::compare::view::{TEXT_LIMIT, View};
use crate::engine::report::Left;
use crate::error::At as _;
use crate::error::{Error, command};
use crate::face::args::SnapshotDiff;
use crate::face::call::Call;
use crate::face::directory::{dir, inner};
use crate::face::ended::Ended;
use crate::face::figures;
use crate::face::text::diff::html::Of;
use crate::face::text::diff::showing::{self, Showing};
use crate::face::text::diff::{self, about};
use crate::fs::path::{AbsPath, Shown};
use crate::session::change::{Before, Change, Marks};
use crate::snapshot::compare::{self, Compared, Difference, Terms};
use crate::snapshot::content::{Content, Kept};
use crate::snapshot::manifest::{At, Entry};
use crate::snapshot::series::Series;
use crate::snapshot::whole;
use crate::tree::state::{Object, State, What};
use crate::verb::diff::listed::Between;

#[derive(Serialize)]
struct Whole<'a> {
    directory: &'a AbsPath,
    n: u64,
    m: Option<u64>,
    changes: &'a [Row<'a>],
    left: Vec<Left>,
}

#[derive(Serialize)]
pub struct Row<'a> {
    #[serde(flatten)]
    change: Between<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    insertions: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deletions: Option<usize>,
}

pub fn diff(call: &Call, args: &SnapshotDiff) -> Result<Ended, Error> {
    diff_of(call, args, None)
}

/// Shows the differences. A page of them is of `turn`, if that is given, as to its title, facts and notes.
pub fn diff_of(call: &Call, args: &SnapshotDiff, turn: Option<About>) -> Result<Ended, Error> {
    showing::check(call, &args.much)?;
    let (store, series) = series_of(call, args.dir.as_deref(), &args.key, &args.paths)?;
    let meant = |key: &str| of_key(&series, key, command(format_args!("snapshot diff last{} -- {key}", dir(&series.directory))));
    let n = meant(&args.key)?;
    let m = args.other.as_deref().map(meant).transpose()?;
    let paths = inner(&series.directory, &args.paths)?;
    let mut compared = match m {
        Some(m) => compare::between(&series, n, Some(m), &paths, args.with_vcs)?,
        None => {
            compare::with_tree(&store.path, &series, n, Terms { paths: &paths, with_vcs: args.with_vcs, ..Terms::default() })?
        }
    };
    known(&series, &paths, &compared)?;
    if !paths.is_empty() {
        let asked = |path: &AbsPath| paths.iter().any(|asked| path.is_under(asked));
        compared.differences.retain(|d| asked(&d.path));
        compared.left.retain(|(path, _)| asked(path));
    }
    print(call, args, (&series, n, m), &compared, turn)
}

pub fn known(series: &Series, paths: &[AbsPath], compared: &Compared) -> Result<(), Error> {
    match paths.iter().zip(&compared.found).find(|(_, found)| !**found) {
        None => Ok(()),
        Some((path, _)) => {
            let path = whole(&series.directory, path)?;
            let problem = Error::refused(format!("{path}: neither the snapshot nor the directory has it")).with_path(&path);
            let dir = dir(&series.directory);
            Err(problem.with_remedy(command(format_args!("snapshot show N -v{dir}")) + " lists what is in a snapshot"))
        }
    }
}

fn print(
    call: &Call,
    args: &SnapshotDiff,
    (series, n, m): (&Series, u64, Option<u64>),
    compared: &Compared,
    turn: Option<About>,
) -> Result<Ended, Error> {
    let mut changes = Vec::with_capacity(compared.differences.len());
    for difference in &compared.differences {
        changes.push((change(series, difference)?, difference));
    }
    let listed: Vec<_> = changes.iter().filter(|(change, _)| !call.out.is_text() || args.much.lists(change)).collect();
    let mut left = Vec::new();
    for (path, why) in &compared.left {
        left.push(Left { path: whole(&series.directory, path)?, why: why.clone() });
    }
    let say_left = || left.iter().for_each(|Left { path, why }| call.out.note(format_args!("{path}: not compared: {why}")));
    if args.much.name_only {
        say_left();
        return Ok(diff::names(call, listed.iter().map(|(change, _)| &change.path).collect()));
    }
    let mut kept = Kept::of(&series.dir, &series.directory);
    if !call.out.is_text() {
        say_left();
        let mut rows = Vec::with_capacity(listed.len());
        for (change, difference) in &listed {
            let counts = match args.much.stat {
                true => counts(&view(series, &mut kept, change, difference)?, Form::default()),
                false => None,
            };
            let (insertions, deletions) = counts.unzip();
            rows.push(Row { change: Between::of(change), insertions, deletions });
        }
        call.out.document(&Whole { directory: &series.directory, n, m, changes: &rows, left });
        return Ok(Ended::Done);
    }
    let mut showing = Showing::begin(call, &args.much, || page_of(series, (n, m), turn))?;
    // After the end of a pager, which has the terminal now.
    say_left();
    left.iter().for_each(|Left { path, why }| showing.note("not compared", format_args!("{path}: {why}")));
    let times = changes.len() - listed.len();
    let folded = diff::times_folded(times as u64);
    if times > 0 {
        showing.note("not listed", &folded);
    }
    for (change, difference) in &listed {
        if call.out.is_closed() {
            break;
        }
        showing.add(&view(series, &mut kept, change, difference)?)?;
    }
    showing.end(|options| again(args, series, n, m, options))?;
    if times > 0 {
        call.out.note(folded);
    }
    Ok(Ended::Done)
}

/// The subject of a page of them.
fn page_of(series: &Series, (n, m): (u64, Option<u64>), turn: Option<About>) -> Result<Of, Error> {
    let of = &series.directory;
    let now = m.map_or_else(|| "the directory now".to_owned(), |m| format!("snapshot {m}"));
    let sides = match turn {
        Some(_) => ["before the turn".into(), "after it".into()],
        None => [format!("snapshot {n}"), now.clone()],
    };
    let mut about = turn.unwrap_or_else(|| About { title: format!("Snapshot {n} against {now}"), ..About::default() });
    about.facts.push(("in".into(), of.to_string()));
    for n in [Some(n), m].into_iter().flatten() {
        let head = series.summary(n)?.head;
        let called = [head.label, head.message].into_iter().flatten().map(|text| format!(", {text}")).collect::<String>();
        about.facts.push((format!("snapshot {n}"), format!("{}{called}", figures::time(head.time, true))));
    }
    let between = m.map(|m| format!(" {m}")).unwrap_or_default();
    let words = format!("snapshot diff {n}{between}{} --", dir(of));
    Ok(Of { about, common: about::common(Some(of.clone()), sides, words) })
}

fn again(args: &SnapshotDiff, series: &Series, n: u64, m: Option<u64>, options: &str) -> String {
    let between = m.map(|m| format!(" {m}")).unwrap_or_default();
    let space = if args.much.form.ignore_space { " -w" } else { "" };
    let paths: String = args.paths.iter().map(|path| format!(" {}", Shown(path.as_os_str().as_bytes()))).collect();
    let paths = if paths.is_empty() { paths } else { format!(" --{paths}") };
    command(format_args!("snapshot diff {n}{between}{}{space}{options}{paths}", dir(&series.directory))).into()
}

/// The change from the snapshot to what is there now: the reverse of a restore.
pub fn change(series: &Series, difference: &Difference) -> Result<Change, Error> {
    let marks = Marks { same_content: difference.is_metadata(), ..Marks::default() };
    Ok(Change {
        n: 0,
        path: whole(&series.directory, &difference.path)?,
        before: Before { object: difference.then.clone(), print: None },
        after: difference.now.clone(),
        marks,
        step: None,
        from: None,
    })
}

/// The view of a difference to a snapshot.
pub fn view<'c>(series: &Series, kept: &mut Kept<'_>, change: &'c Change, difference: &Difference) -> Result<View<'c>, Error> {
    let is_small = |object: &Object| match object {
        Some(State { what: What::File { size, .. }, .. }) => *size <= TEXT_LIMIT,
        _ => false,
    };
    let fits = [&change.before.object, &change.after]
        .into_iter()
        .all(|o| !matches!(o, Some(State { what: What::File { .. }, .. })) || is_small(o));
    let read = fits && !difference.is_metadata();
    let old = if read && is_small(&difference.then) {
        Some(content(series, kept, difference, &difference.then, difference.at)?)
    } else {
        None
    };
    let new = match (read && is_small(&difference.now), difference.print) {
        (false, _) => None,
        (true, None) => Some(content(series, kept, difference, &difference.now, difference.now_at)?),
        (true, Some(_)) => Some(on_tree(series, difference)?),
    };
    Ok(View::between(change, old, new, fits))
}

fn content(
    series: &Series,
    kept: &mut Kept<'_>,
    difference: &Difference,
    state: &Object,
    at: Option<At>,
) -> Result<Vec<u8>, Error> {
    let entry = Entry::of(difference.path.clone(), state.clone(), at);
    Ok(match kept.content(&entry)? {
        Content::Small(bytes) => bytes,
        Content::Large(file) => all(&file, &whole(&series.directory, &difference.path)?)?,
    })
}

fn on_tree(series: &Series, difference: &Difference) -> Result<Vec<u8>, Error> {
    let path = whole(&series.directory, &difference.path)?;
    let parent = path.parent().unwrap_or_else(compare::root);
    let dir = crate::fs::dir::Dir::open(parent.as_path())?;
    all(&dir.at(path.name()).open_file()?, &path)
}

fn all(file: &std::fs::File, path: &AbsPath) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(TEXT_LIMIT + 1).read_to_end(&mut bytes).at("read", path).map_err(Error::from)?;
    Ok(bytes)
}
