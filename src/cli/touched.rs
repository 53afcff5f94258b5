//! `log PATH…`: the sessions, steps, turns of agents and snapshots that changed paths, the newest first, each with the command that takes
//! it back.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::call::Call;
use super::ended::Ended;
use super::list::{say_damaged, shown, who};
use super::log_filter::{Filter, again};
use super::place::cwd;
use super::snapshot::{by_of, dir};
use super::text::{self, Flexible, Side};
use super::{args, place};
use crate::agent::touched as turns;
use crate::agent::turn::Head as Turn;
use crate::diff::shown::{columns, cut};
use crate::error::{Error, Kind, command, shell_word};
use crate::fs::dir::Time;
use crate::fs::path::AbsPath;
use crate::session::by::By;
use crate::session::change::{Changes, Sort};
use crate::session::id::Id;
use crate::session::store::{Broken, Store};
use crate::session::touched::{self as sessions, Standing};
use crate::snapshot::series::Series;
use crate::snapshot::touched as snapshots;
use crate::tree::mention::Mention;
use crate::tree::project::project_of;
use crate::tree::time;

/// Something that changed a path, in JSON: docs/json.md.
#[derive(Serialize)]
struct Row {
    what: &'static str,
    #[serde(with = "time")]
    time: Time,
    session: Option<Id>,
    step: Option<u32>,
    turn: Option<u64>,
    snapshot: Option<u64>,
    /// The directory of a turn or a snapshot.
    directory: Option<AbsPath>,
    by: Option<By>,
    command: Option<String>,
    standing: &'static str,
    /// The kind of all its changes there; `null` if there are several, or it is not known.
    change: Option<Sort>,
    /// The number of paths that it changed there.
    paths: u64,
    back: Option<String>,
}

#[derive(Serialize)]
struct Whole<'a> {
    paths: Vec<&'a AbsPath>,
    touched: &'a [Row],
    damaged: &'a [Broken],
}

/// The paths that are asked for.
struct Asked<'a> {
    words: &'a [PathBuf],
    mentions: Vec<Mention>,
}

impl Asked<'_> {
    /// Those of these indices as words of a shell, each after a blank.
    fn words(&self, of: &BTreeSet<usize>) -> String {
        let word = |n: &usize| format!(" {}", shell_word(self.words[*n].as_os_str().as_encoded_bytes()));
        of.iter().map(word).collect()
    }
}

/// Shows what changed the paths. `unknown`: the only one could be a session, but is none.
pub fn touched(call: &Call, args: &args::Log, unknown: Option<Error>) -> Result<Ended, Error> {
    let paths = args.what.iter().map(|path| place::named(path, &Changes::default())).collect::<Result<Vec<_>, _>>()?;
    let asked = Asked { words: &args.what, mentions: paths.iter().map(Mention::of).collect() };
    let (mut rows, mut broken) = (Vec::new(), Vec::new());
    if let Some(store) = call.store()? {
        let filter = Filter::of(call, store, args);
        broken = of_sessions(store, &asked, &filter, &mut rows)?;
        of_turns(store, &asked, &filter, &mut rows)?;
        of_snapshots(store, &asked, &filter, &mut rows)?;
        rows.retain(|row| filter.has_time(row.time) && filter.has_agent(row.by.as_ref()));
    }
    if let Some(problem) = unknown.filter(|_| rows.is_empty() && broken.is_empty() && args.what[0].symlink_metadata().is_err()) {
        return Err(problem);
    }
    rows.sort_by_key(|row| std::cmp::Reverse((row.time, row.step)));
    if let Some(lines) = args.lines {
        rows.truncate(lines);
    }
    say_damaged(call, &broken);
    if call.out.is_text() {
        print(call, args, &asked, &rows);
    } else {
        call.out.document(&Whole { paths: paths.iter().collect(), touched: &rows, damaged: &broken });
    }
    Ok(if broken.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn of_sessions(
    store: &Store,
    asked: &Asked<'_>,
    filter: &Filter<'_>,
    rows: &mut Vec<Row>,
) -> Result<Vec<crate::session::store::Broken>, Error> {
    let (touched, broken) = sessions::touched(store, &asked.mentions)?;
    for found in touched.into_iter().filter(|found| filter.has_session(&found.header)) {
        let key = found.header.id.tail();
        let words = if found.has_others { asked.words(&found.asked) } else { String::new() };
        let (standing, back) = match (found.standing, found.step) {
            // Once something of it was on the tree, no earlier step is gone back to.
            (Standing::Held, Some((_, on))) if found.header.counts.ever_in == 0 => ("held", Some(format!("rewind {key} {on}"))),
            (Standing::Held, _) => ("held", Some(format!("discard {key}{words}"))),
            (Standing::In, _) => ("committed", Some(format!("rollback {key}{words}"))),
            (Standing::Running, _) => ("running", None),
            (Standing::Aside, _) => ("set aside", None),
            (Standing::Merged, _) => ("merged", None),
            (Standing::Undone, _) => ("undone since", None),
            (Standing::Final, _) => ("checkpoint pruned", None),
            (Standing::Out, _) => ("rolled back", None),
            (Standing::Gone, _) => ("discarded", None),
        };
        let change = if let [(sort, _)] = found.sorts[..] { Some(sort) } else { None };
        rows.push(Row {
            what: if found.step.is_some() { "step" } else { "session" },
            time: found.time,
            session: Some(found.header.id),
            step: found.step.map(|(n, _)| n),
            turn: None,
            snapshot: None,
            directory: None,
            by: found.by,
            command: found.command,
            standing,
            change,
            paths: found.sorts.iter().map(|(_, n)| n).sum(),
            back: back.map(command),
        });
    }
    Ok(broken)
}

fn of_turns(store: &Store, asked: &Asked<'_>, filter: &Filter<'_>, rows: &mut Vec<Row>) -> Result<(), Error> {
    let here = cwd().ok().and_then(|cwd| place::absolute(&cwd).ok()).map(|cwd| project_of(&cwd, dirs::home_dir().as_deref()));
    for found in turns::touched(&store.dir, &asked.mentions)? {
        let Turn { n, agent, session, directory, prompt, time, .. } = found.head;
        if !filter.has_place(&directory) {
            continue;
        }
        // `agent undo` is about the project that one is in.
        let back = if here.as_ref() == Some(&directory) {
            command(format!("agent undo {n}{}", asked.words(&found.asked)))
        } else {
            let paths = found.asked.iter().map(|n| format!(" {}", shell_word(asked.mentions[*n].path().as_bytes())));
            let paths: String = paths.collect();
            format!("cd {} && {}", shell_word(directory.as_bytes()), command(format!("agent undo {n}{paths}")))
        };
        rows.push(Row {
            what: "turn",
            time,
            session: None,
            step: None,
            turn: Some(n),
            snapshot: None,
            directory: Some(directory),
            by: Some(By { agent: agent.word().into(), session: Some(session), turn: Some(n) }),
            command: Some(prompt),
            standing: "written",
            change: None,
            paths: found.paths,
            back: Some(back),
        });
    }
    Ok(())
}

fn of_snapshots(store: &Store, asked: &Asked<'_>, filter: &Filter<'_>, rows: &mut Vec<Row>) -> Result<(), Error> {
    let (all, _) = Series::all(store)?;
    for series in all.iter().filter(|series| filter.has_place(&series.directory)) {
        let of_series = rows.len();
        for (i, mention) in asked.mentions.iter().enumerate() {
            let Some((inner, is_whole)) = within(&series.directory, mention.path()) else { continue };
            for found in snapshots::touched(series, &inner)? {
                let (n, paths) = (found.head.n, found.created + found.modified + found.deleted);
                if let Some(known) = rows[of_series..].iter_mut().find(|row| row.snapshot == Some(n)) {
                    // Restored by one path, the other would stay.
                    let words = asked.words(&(0..=i).collect());
                    known.back = Some(command(format!("snapshot restore {}{words}{}", found.before, dir(&series.directory))));
                    (known.paths, known.change) = (known.paths + paths, None);
                    continue;
                }
                let words = if is_whole { String::new() } else { asked.words(&BTreeSet::from([i])) };
                let kinds = [(found.created, Sort::Created), (found.modified, Sort::Modified), (found.deleted, Sort::Deleted)];
                let mut kinds = kinds.into_iter().filter(|(n, _)| *n > 0).map(|(_, sort)| sort);
                rows.push(Row {
                    what: "snapshot",
                    time: found.head.time,
                    session: None,
                    step: None,
                    turn: None,
                    snapshot: Some(n),
                    directory: Some(series.directory.clone()),
                    by: by_of(&found.head),
                    command: found.head.message.as_deref().and_then(|text| text.lines().next()).map(str::to_owned),
                    standing: "seen",
                    change: kinds.next().filter(|_| kinds.next().is_none()),
                    paths,
                    back: Some(command(format!("snapshot restore {}{words}{}", found.before, dir(&series.directory)))),
                });
            }
        }
    }
    Ok(())
}

/// A path as a series of `directory` has it, and whether that is all of the series.
fn within(directory: &AbsPath, path: &AbsPath) -> Option<(AbsPath, bool)> {
    match path.below(directory) {
        None if !directory.is_under(path) => None,
        None | Some([]) => AbsPath::parse(b"/").ok().map(|top| (top, true)),
        Some(below) => AbsPath::parse([b"/", below].concat()).ok().map(|path| (path, false)),
    }
}

fn print(call: &Call, args: &args::Log, asked: &Asked<'_>, rows: &[Row]) {
    call.out.page(call.config.pager.value.as_deref());
    if rows.is_empty() && args.lines != Some(0) {
        let paths: Vec<String> = asked.mentions.iter().map(|mention| call.out.place(mention.path())).collect();
        let is_filtered = args.since.is_some() || args.agent.is_some();
        let fits = if is_filtered { "nothing that fits" } else { "nothing that recant knows of" };
        call.out.note(format_args!("{fits} changed {}", text::list(&paths)));
        return;
    }
    let (first, more) = cut(rows.len(), if args.lines.is_some() { rows.len() } else { call.out.limit() });
    let cells = rows[..first].iter().map(|row| {
        [
            text::day(row.time),
            who(row.by.as_ref()),
            match row.change {
                // It never reached the path.
                Some(_) if row.standing == "discarded" => "held".to_owned(),
                Some(sort) if row.paths == 1 => sort.word().to_owned(),
                _ => text::count(row.paths, "path"),
            },
            what(row),
            match (&row.back, &row.session) {
                (Some(back), _) => back.clone(),
                (None, Some(id)) => format!("session {}: {}", id.tail(), row.standing),
                (None, None) => String::new(),
            },
        ]
    });
    lay_out(call, cells.collect());
    if more > 0 {
        call.out.line(text::more(more, &again(args, &asked.words(&(0..asked.words.len()).collect()))));
    }
}

/// Prints a row a line; if that leaves the commands that take back no room, each of them on a line of its own.
fn lay_out(call: &Call, cells: Vec<[String; 5]>) {
    /// The least columns of what changed the paths.
    const LEAST: usize = 16;
    let width = call.out.width();
    let flexible = [Flexible::words(3, LEAST), Flexible::path(1, 8)];
    let mut fitted = cells.clone();
    text::fit(&mut fitted, width, &flexible);
    if text::table([Side::Left; 5], &fitted).all(|line| columns(&line) <= width) {
        text::table([Side::Left; 5], &fitted).for_each(|line| call.out.line(line));
        return;
    }
    let (mut rows, backs): (Vec<[String; 4]>, Vec<String>) =
        cells.into_iter().map(|[when, who, change, what, back]| ([when, who, change, what], back)).unzip();
    text::fit(&mut rows, width, &flexible);
    for (line, back) in text::table([Side::Left; 4], &rows).zip(backs) {
        call.out.line(line);
        if !back.is_empty() {
            call.out.line(format_args!("    {back}"));
        }
    }
}

/// The command of a session, the message of a snapshot, the prompt of a turn.
fn what(row: &Row) -> String {
    let said = row.command.as_deref().map(shown);
    match row.snapshot {
        Some(n) => format!("snapshot {n}{}", said.map(|said| format!(": {said}")).unwrap_or_default()),
        None => said.unwrap_or_else(|| if row.what == "session" { "staged".into() } else { String::new() }),
    }
}
