//! `agent undo`: takes turns back by a session of its own.

use std::path::PathBuf;

use serde::Serialize;

use super::turns::{Here, Undone, is_back, not_covered, one_number, say_outside, undone_by};
use super::uncovered;
use crate::agent::anew::Built;
use crate::agent::known::Agent;
use crate::agent::turn::{Line, Turn};
use crate::agent::turns::Turns;
use crate::agent::undo::{Asked, Chosen, Reach, Undo, undo as compare};
use crate::cli::snapshot::inner;
use crate::cli::snapshot_restore::{Putting, Row, and_of, left, put_back_what_can, rows, would_what_can};
use crate::compare::shown::cut_off;
use crate::engine::report::Left;
use crate::error::{Error, Kind, command, shell_word};
use crate::face::args::{TurnUndo, turn_and_paths};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures;
use crate::face::text::list::shown;
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Session;
use crate::snapshot::compare::Compared;
use crate::snapshot::series::Series;
use crate::snapshot::whole;

#[derive(Serialize)]
struct Whole<'a> {
    directory: &'a AbsPath,
    turns: &'a [u64],
    dry_run: bool,
    session: Option<&'a Id>,
    paths: &'a [Row],
    skipped: &'a [Left],
    not_covered: &'a [uncovered::Row],
}

pub fn undo(call: &Call, args: &TurnUndo) -> Result<Ended, Error> {
    let here = Here::find(call)?;
    let (n, words_of_paths) = turn_and_paths(&args.of);
    let meant = here.meant(&here.all()?, n)?;
    let series = here.series()?;
    if !args.dry_run {
        unasked(call, meant)?;
        call.prepare_to_change(here.store)?;
    }
    let lock = series.lock(&call.fs)?;
    crate::fs::roots::open_many();
    let turns = here.settled(call, &series, &lock, meant)?;
    let undone = here.undone(&turns)?;
    let near = Turns::near(here.store, &here.directory)?;
    let chosen = Chosen::from(&turns, &near, (meant, reach(args)), &undone);
    let of_project = |problem: Error| problem.with_remedy(format!("name paths of {}", here.directory));
    let paths = inner(&here.directory, words_of_paths).map_err(of_project)?;
    refuse_pruned(&here, &series, &chosen)?;
    let asked = Asked { paths: &paths, force: args.force };
    let found = compare(&here.store.path, &series, &chosen, asked)?;
    let Some(Undo { mut compared, n: snapshot, same, fates, built, by_commands }) = found else {
        return Err(chosen.back.first().map_or_else(|| Error::refused("no turn is covered"), |turn| not_covered(turn)));
    };
    refuse_unknown(&here, &chosen, &compared, &paths, n.map(|n| (n, words_of_paths)))?;
    // The first one is named whatever it did: it was asked for.
    let has_part = |turn: &&&Turn| turn.head.n == meant || !turn.wrote.is_empty() && !is_back(turn, &undone);
    let numbers: Vec<u64> = chosen.back.iter().filter(has_part).map(|turn| turn.head.n).collect();
    let first = chosen.back.iter().find(|turn| numbers[..] == [turn.head.n] && is_back(turn, &undone));
    let already = first.map_or(Vec::new(), |turn| undone_by(here.store, turn));
    let (rows, kept) = (rows(&series, &compared)?, left(&series, &compared)?);
    chosen.back.iter().for_each(|turn| say_outside(call, turn));
    let goes_back: Vec<AbsPath> = rows.iter().map(|row| row.path.clone()).collect();
    let not_covered = uncovered::rows(call, &here.directory, &fates, &goes_back)?;
    let saying = Saying {
        call,
        args,
        here: &here,
        turns: &numbers,
        already: &already,
        not_covered: &not_covered,
        built: &built,
        by_commands,
    };
    if rows.is_empty() {
        saying.say(None, &rows, &kept);
        return Ok(saying.ended(&kept));
    }
    let act = format!("undo {}", words(&numbers));
    // The directory is that of the session.
    let recorded = format!("agent undo {meant}");
    if args.dry_run {
        let report = would_what_can(call, here.store, &series, &mut compared, (recorded, &act, snapshot))?;
        let (rows, kept) = (self::rows(&series, &compared)?, and_of(left(&series, &compared)?, &report));
        saying.say(None, &rows, &kept);
        return Ok(saying.ended(&kept));
    }
    ask(call, &numbers, &rows, &kept, &not_covered)?;
    let entry = |session: &Session, counts| entry(meant, session, counts);
    let putting = Putting { recorded, act: &act, n: snapshot, entry: &entry, force: args.force };
    let (session, report) = put_back_what_can(call, here.store, &series, &mut compared, &putting)?;
    let id = session.id().clone();
    *call.out.session.borrow_mut() = Some(id.clone());
    note_undone(call, &here, &chosen, &undone, (&id, &same, &compared))?;
    tell_running(call, &here, &turns, &compared)?;
    report.notes.iter().for_each(|note| call.out.warn(note));
    let (rows, kept) = (self::rows(&series, &compared)?, and_of(left(&series, &compared)?, &report));
    saying.say(Some(&id), &rows, &kept);
    Ok(saying.ended(&kept))
}

/// Tells by its options how far it reaches.
fn reach(args: &TurnUndo) -> Reach {
    match (args.only, args.session) {
        (true, _) => Reach::Only,
        (false, true) => Reach::Conversation,
        (false, false) => Reach::Later,
    }
}

/// The line of the log, with the numbers of paths that were changed and left if it was done.
fn entry(meant: u64, session: &Session, counts: Option<(usize, usize)>) -> log::Entry {
    let (result, paths) = match counts {
        Some((paths, 0)) => ("done", paths),
        Some((paths, _)) => ("left", paths),
        None => ("failed", 0),
    };
    let (id, generation) = (session.id(), session.header.generation);
    log::Entry::new(format!("agent undo {meant}"), id, generation, result, paths as u64).of(&session.header)
}

/// Notes in each turn of which something went back, or was as before already, the session that did it.
fn note_undone(
    call: &Call,
    here: &Here<'_>,
    chosen: &Chosen<'_>,
    undone: &Undone,
    (id, same, compared): (&Id, &[AbsPath], &Compared),
) -> Result<(), Error> {
    for turn in &chosen.back {
        let before = undone.get(&turn.head.n);
        let is_its = |path: &&AbsPath| {
            turn.wrote.iter().any(|wrote| wrote.path == **path) && !before.is_some_and(|before| before.contains(*path))
        };
        let same: Vec<AbsPath> = same.iter().filter(is_its).cloned().collect();
        if !same.is_empty() || compared.differences.iter().any(|difference| is_its(&&difference.path)) {
            here.turns.add(&call.fs, turn.head.n, &[Line::Undone { session: id.clone(), same }])?;
        }
    }
    Ok(())
}

/// Names the command that takes the agent's own conversation back, where it has one.
fn say_conversation(call: &Call, here: &Here<'_>, turns: &[u64]) {
    let Some(Ok(Some(turn))) = turns.first().map(|n| here.turns.turn(*n)) else { return };
    let head = &turn.head;
    let session = shell_word(head.session.as_bytes());
    let prompt = cut_off(&shown(&head.prompt), 48);
    match head.agent {
        Agent::Claude => {
            call.out.note(format_args!("the conversation: claude --resume {session}"));
            call.out.note(format_args!("and in it /rewind to \"{prompt}\""));
        }
        Agent::Gemini | Agent::Codex | Agent::Copilot | Agent::Opencode | Agent::Pi => {}
    }
}

/// Tells the turns that run just now which paths were put back: an agent that is held undoes in a turn.
fn tell_running(call: &Call, here: &Here<'_>, turns: &[Turn], compared: &Compared) -> Result<(), Error> {
    let back: Vec<AbsPath> = compared.differences.iter().map(|difference| difference.path.clone()).collect();
    for turn in turns.iter().filter(|turn| turn.ended.is_none()) {
        here.turns.add(&call.fs, turn.head.n, &[Line::Back(back.clone())])?;
    }
    Ok(())
}

fn refuse_pruned(here: &Here<'_>, series: &Series, chosen: &Chosen<'_>) -> Result<(), Error> {
    for turn in &chosen.back {
        if let Some((n, _)) = turn.before.filter(|_| turn.covered)
            && !series.is_there(n)?
        {
            let why = format!("turn {} cannot be taken back: snapshot {n}, from before it, was pruned", turn.head.n);
            return Err(Error::refused(why).with_path(&here.directory));
        }
    }
    Ok(())
}

/// Refuses paths that neither the turns nor the project has. `named`: the turn that was named, and the words of the paths.
fn refuse_unknown(
    here: &Here<'_>,
    chosen: &Chosen<'_>,
    compared: &Compared,
    paths: &[AbsPath],
    named: Option<(u64, &[PathBuf])>,
) -> Result<(), Error> {
    let wrote = |path: &AbsPath| chosen.back.iter().flat_map(|turn| &turn.wrote).any(|wrote| wrote.path.is_under(path));
    match paths.iter().zip(&compared.found).enumerate().find(|(_, (path, found))| !**found && !wrote(path)) {
        None => Ok(()),
        Some((i, (path, _))) => {
            if let Some(problem) = named.and_then(|(n, words)| one_number("undo", n, words.get(i)?)) {
                return Err(problem);
            }
            let path = whole(&here.directory, path)?;
            let problem = Error::refused(format!("{path}: neither the turns nor the project has it")).with_path(&path);
            Err(problem.with_remedy(command("agent undo --dry-run -v") + " lists what would go back"))
        }
    }
}

/// Refuses if nobody can be asked.
fn unasked(call: &Call, n: u64) -> Result<(), Error> {
    if call.yes || call.can_ask {
        return Ok(());
    }
    let problem = Error::new(Kind::Usage, "agent undo asks first, and there is no terminal");
    Err(problem.with_remedy(command(format_args!("agent undo {n} -y")) + " asks nothing"))
}

/// The most paths of each sort that are listed before the question.
const LISTED: usize = 10;

fn ask(call: &Call, turns: &[u64], rows: &[Row], kept: &[Left], not_covered: &[uncovered::Row]) -> Result<(), Error> {
    if call.yes {
        return Ok(());
    }
    let out = &call.out;
    rows.iter().take(LISTED).for_each(|row| out.say(format_args!("  {:<9} {}", row.done, out.shown(&row.path))));
    if let Some(more) = rows.len().checked_sub(LISTED).filter(|more| *more > 0) {
        out.say(format_args!("  … and {} more: --dry-run -v lists them", figures::grouped(more as u64)));
    }
    for Left { path, why } in kept.iter().take(LISTED) {
        out.say(figures::filled_after("  stays   ", &format!("{}: {why}", out.shown(path)), 12));
    }
    if let Some(more) = kept.len().checked_sub(LISTED).filter(|more| *more > 0) {
        out.say(format_args!("  … and {} more that stay", figures::grouped(more as u64)));
    }
    for line in uncovered::lines(not_covered, false) {
        out.say(figures::filled_after("  stays   ", &line, 12));
    }
    call.confirm(&format!("Take {} back: {}?", words(turns), figures::count(rows.len() as u64, "path")))
}

/// The turns in words: `turn 7`, `turns 7 to 9`, `turns 7, 9 and 12`.
fn words(turns: &[u64]) -> String {
    match turns {
        [one] => format!("turn {one}"),
        [first, .., last] if last - first + 1 == turns.len() as u64 && turns.len() > 2 => format!("turns {first} to {last}"),
        _ => format!("turns {}", figures::list(&turns.iter().map(ToString::to_string).collect::<Vec<_>>())),
    }
}

struct Saying<'a> {
    call: &'a Call,
    args: &'a TurnUndo,
    here: &'a Here<'a>,
    turns: &'a [u64],
    /// The sessions that took all of it back before.
    already: &'a [&'a Id],
    not_covered: &'a [uncovered::Row],
    built: &'a [Built],
    by_commands: u64,
}

impl Saying<'_> {
    /// Nothing of the turns stays, or something does.
    fn ended(&self, kept: &[Left]) -> Ended {
        if kept.is_empty() && self.not_covered.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) }
    }

    fn say(&self, session: Option<&Id>, rows: &[Row], kept: &[Left]) {
        let Self { call, args, here, turns, already, not_covered, built, by_commands } = self;
        let (out, dry_run) = (&call.out, args.dry_run);
        if !out.is_text() {
            let directory = &here.directory;
            out.document(&Whole { directory, turns, dry_run, session, paths: rows, skipped: kept, not_covered });
            return;
        }
        let first = turns.first().copied().unwrap_or_default();
        let whole = match session {
            Some(id) => command(format_args!("show {} -v", id.tail())),
            None => command(format_args!("agent undo {first} --dry-run -v")),
        };
        out.listing(rows.iter().map(|row| format!("{:<9} {}", row.done, out.shown(&row.path))), &whole);
        let all = command(format_args!("agent undo {first} --dry-run -v"));
        let stay = |row: &str| {
            if out.is_for_people() { figures::filled_after("stays", row, 10) } else { format!("{:<10}{row}", "stays") }
        };
        let left = kept.iter().map(|Left { path, why }| format!("{}: {why}", out.shown(path)));
        out.first_of(left.map(|row| stay(&row)).collect::<Vec<_>>().into_iter(), &all);
        uncovered::lines(not_covered, out.is_verbose()).iter().for_each(|line| out.line(stay(line)));
        let stays = (kept.len() + not_covered.len()) as u64;
        let skipped = if stays == 0 {
            String::new()
        } else {
            format!(", {} {}", figures::grouped(stays), if stays == 1 { "stays" } else { "stay" })
        };
        if rows.is_empty() && !already.is_empty() {
            let tails: Vec<&str> = already.iter().map(|id| id.tail()).collect();
            let again = match tails[..] {
                [one] => format!(": {} brings it back", command(format_args!("rollback {one}"))),
                _ => String::new(),
            };
            out.note(format_args!("{}: already undone by {}{again}{skipped}", words(turns), figures::list(&tails)));
            return;
        }
        if rows.is_empty() {
            out.note(format_args!("{}: nothing to take back{skipped}", words(turns)));
            return;
        }
        let paths = figures::count(rows.len() as u64, "path");
        let would = if dry_run { "would be " } else { "" };
        out.note(format_args!("{}: {paths} {would}taken back{skipped}", words(turns)));
        for Built { path, touched } in *built {
            let Ok(path) = crate::snapshot::whole(&here.directory, path) else { continue };
            let files = figures::count(*touched, "file");
            let get = if *touched == 1 { "gets" } else { "get" };
            out.note(format_args!("{} is newer: {files} {get} the present time, so that it is built anew", out.shown(&path)));
        }
        if let Some(id) = session {
            let back = command(format_args!("rollback {}", id.tail()));
            out.note(format_args!("to have it again: {back}"));
            if *by_commands > 0 {
                out.note("what you saved while a command ran went back with it, and comes again");
            }
            say_conversation(call, here, turns);
        }
    }
}
