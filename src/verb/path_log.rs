//! `log PATH…`: the sessions, steps, turns of agents and snapshots that changed paths, the newest first, each with the command that takes
//! it back.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::desk::Desk;
use super::log::Filter;
use crate::agent::{Head as Turn, path_history as turns};
use crate::error::{Error, command, shell_word};
use crate::fs::{AbsPath, Time};
use crate::session::path_history::Standing;
use crate::session::{ActingAgent, Broken, Id, Sort, Store, path_history as sessions};
use crate::snapshot::{Series, path_history as snapshots};
use crate::tree::{Mention, time};

/// The paths that are asked for, and where.
pub struct Asked<'a> {
    /// The paths as they were given, for commands.
    pub words: &'a [PathBuf],
    /// These paths, absolute.
    pub paths: Vec<AbsPath>,
    pub filter: Filter<'a>,
    /// The project of the working directory, which `agent undo` is about.
    pub project: Option<AbsPath>,
    /// Makes the option by which a verb of snapshots means a directory; empty if it does without.
    pub dir: &'a dyn Fn(&AbsPath) -> String,
}

impl Asked<'_> {
    /// The paths of these indices as words of a shell, each after a blank.
    pub fn words(&self, of: &BTreeSet<usize>) -> String {
        words(of.iter().map(|n| self.words[*n].as_os_str().as_encoded_bytes()))
    }
}

fn words<'b>(paths: impl Iterator<Item = &'b [u8]>) -> String {
    paths.map(|path| format!(" {}", shell_word(path))).collect()
}

/// All that changed these paths, as JSON has it: docs/json.md.
#[derive(Debug, Serialize)]
pub struct Touched {
    pub paths: Vec<AbsPath>,
    pub touched: Vec<Row>,
    /// The sessions that cannot be read.
    pub damaged: Vec<Broken>,
}

/// Something that changed a path.
#[derive(Debug, Default, Serialize)]
pub struct Row {
    pub what: &'static str,
    #[serde(with = "time")]
    pub time: Time,
    pub session: Option<Id>,
    pub step: Option<u32>,
    pub turn: Option<u64>,
    pub snapshot: Option<u64>,
    /// The directory of a turn or a snapshot.
    pub directory: Option<AbsPath>,
    pub by: Option<ActingAgent>,
    pub command: Option<String>,
    pub standing: &'static str,
    /// The kind of all its changes there; `null` if there are several, or it is not known.
    pub change: Option<Sort>,
    /// The number of paths that it changed there.
    pub paths: u64,
    pub back: Option<String>,
}

/// Finds what changed these paths, or something below them.
///
/// # Errors
/// The store cannot be read.
pub fn touched(desk: &Desk, asked: &Asked<'_>) -> Result<Touched, Error> {
    let mut found = Touched { paths: asked.paths.clone(), touched: Vec::new(), damaged: Vec::new() };
    let Some(store) = desk.store()? else { return Ok(found) };
    let mentions: Vec<Mention> = asked.paths.iter().map(Mention::of).collect();
    let (sessions, damaged) = sessions::touched(store, &mentions)?;
    let mut rows: Vec<Row> = sessions.into_iter().map(|session| of_session(session, asked)).collect();
    rows.extend(turns::touched(&store.dir, &mentions)?.into_iter().map(|turn| of_turn(turn, asked)));
    rows.extend(of_snapshots(store, asked)?);
    rows.retain(|row| asked.filter.has(row.time, &[row.by.as_ref()]));
    rows.sort_by_key(|row| std::cmp::Reverse((row.time, row.step)));
    (found.touched, found.damaged) = (rows, damaged);
    Ok(found)
}

fn of_session(found: sessions::Touched, asked: &Asked<'_>) -> Row {
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
    Row {
        what: if found.step.is_some() { "step" } else { "session" },
        time: found.time,
        step: found.step.map(|(n, _)| n),
        by: found.by,
        command: found.command,
        standing,
        change: if let [(sort, _)] = found.sorts[..] { Some(sort) } else { None },
        paths: found.sorts.iter().map(|(_, n)| n).sum(),
        back: back.map(|back| command(back).into()),
        session: Some(found.header.id),
        ..Row::default()
    }
}

fn of_turn(found: turns::Touched, asked: &Asked<'_>) -> Row {
    let Turn { n, agent, session, directory, prompt, time, .. } = found.head;
    let back = if asked.project.as_ref() == Some(&directory) {
        command(format_args!("agent undo {n}{}", asked.words(&found.asked))).into()
    } else {
        let paths = words(found.asked.iter().map(|n| asked.paths[*n].as_bytes()));
        format!("cd {} && {}", shell_word(directory.as_bytes()), command(format_args!("agent undo {n}{paths}")))
    };
    Row {
        what: "turn",
        time,
        turn: Some(n),
        directory: Some(directory),
        by: Some(ActingAgent { agent: agent.word().into(), session: Some(session), turn: Some(n) }),
        command: Some(prompt),
        standing: "written",
        paths: found.paths,
        back: Some(back),
        ..Row::default()
    }
}

fn of_snapshots(store: &Store, asked: &Asked<'_>) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for series in Series::all(store)?.0 {
        let of_series = rows.len();
        for (i, path) in asked.paths.iter().enumerate() {
            let Some((inner, is_whole)) = within(&series.directory, path) else { continue };
            for found in snapshots::touched(&series, &inner)? {
                let back = |of: BTreeSet<usize>| {
                    let (words, dir) = (asked.words(&of), (asked.dir)(&series.directory));
                    Some(command(format_args!("snapshot restore {}{words}{dir}", found.before)).into())
                };
                let paths = found.created + found.modified + found.deleted;
                if let Some(known) = rows[of_series..].iter_mut().find(|row: &&mut Row| row.snapshot == Some(found.head.n)) {
                    // Restored by one path, the other would stay.
                    known.back = back((0..=i).collect());
                    (known.paths, known.change) = (known.paths + paths, None);
                } else {
                    let back = back(if is_whole { BTreeSet::new() } else { BTreeSet::from([i]) });
                    rows.push(Row { directory: Some(series.directory.clone()), paths, back, ..of_snapshot(&found) });
                }
            }
        }
    }
    Ok(rows)
}

fn of_snapshot(found: &snapshots::Touched) -> Row {
    let kinds = [(found.created, Sort::Created), (found.modified, Sort::Modified), (found.deleted, Sort::Deleted)];
    let mut kinds = kinds.into_iter().filter(|(n, _)| *n > 0).map(|(_, sort)| sort);
    Row {
        what: "snapshot",
        time: found.head.time,
        snapshot: Some(found.head.n),
        by: found.head.by(),
        command: found.head.message.as_deref().and_then(|text| text.lines().next()).map(str::to_owned),
        standing: "seen",
        change: kinds.next().filter(|_| kinds.next().is_none()),
        ..Row::default()
    }
}

/// A path as a series of `directory` has it, and whether that is all of the series.
fn within(directory: &AbsPath, path: &AbsPath) -> Option<(AbsPath, bool)> {
    match path.below(directory) {
        None if !directory.is_under(path) => None,
        None | Some([]) => AbsPath::parse(b"/").ok().map(|top| (top, true)),
        Some(below) => AbsPath::parse([b"/", below].concat()).ok().map(|path| (path, false)),
    }
}
