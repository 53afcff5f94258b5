//! `agent turns` and `agent diff`: the turns of this project, and what one of them changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::take::settle;
use super::uncovered;
use crate::agent::known::Agent;
use crate::agent::turn::{Place, Turn};
use crate::agent::turns;
use crate::agent::uncovered::{fates, own};
use crate::capture::run::inside::capture;
use crate::cli::snapshot::inner;
use crate::cli::snapshot_diff;
use crate::compare::html::page::About;
use crate::compare::shown::cut;
use crate::compare::shown::cut_off;
use crate::error::{Error, Kind, command, shell_word};
use crate::face::args::{self, SnapshotDiff, TurnDiff, turn_and_paths};
use crate::face::brief::{self, List};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::place::{absolute, cwd};
use crate::face::text::list::shown;
use crate::fs::dir::Time;
use crate::fs::path::{AbsPath, Shown};
use crate::remedy::{Remedy, shell, words};
use crate::session::header::Status;
use crate::session::id::Id;
use crate::session::own_store;
use crate::session::store::Store;
use crate::snapshot::series::{Locked, Series};
use crate::snapshot::whole;
use crate::tree::project::project_of;
use crate::tree::time;
use crate::verb::resolve::scope::Scope;
use crate::verb::turns::{Near, near};

/// The turns of the project that a call is made in.
pub struct Here<'c> {
    pub store: &'c Store,
    pub directory: AbsPath,
    pub turns: turns::Turns,
}

impl<'c> Here<'c> {
    /// Finds them.
    ///
    /// # Errors
    /// No agent's turn was ever noted here.
    pub fn find(call: &'c Call) -> Result<Self, Error> {
        let cwd = absolute(&cwd()?)?;
        let directory = project_of(&cwd, dirs::home_dir().as_deref());
        let Some(Near { store, directory, turns }) = near(call, &cwd)? else {
            if let Some(former) = former(call, &directory)? {
                let why = format!("{directory}: its turns are those of {former}, from which it was moved");
                let [from, to] = [&directory, &former].map(|path| shell_word(path.as_bytes()));
                return Err(
                    Error::refused(why).with_remedy("move it back to take them back: " + shell(format_args!("mv {from} {to}")))
                );
            }
            let why = format!("{directory}: no turn of an agent is known here");
            return Err(Error::refused(why).with_remedy(of_held(call)?.unwrap_or_else(|| {
                let install = command("agent install AGENT");
                command("agent status") + " tells which agents have recant's hooks, and " + install + " adds them"
            })));
        };
        Ok(Self { store, directory, turns })
    }

    /// Its snapshots.
    ///
    /// # Errors
    /// They are gone.
    pub fn series(&self) -> Result<Series, Error> {
        let none = || Error::refused(format!("{}: the snapshots of its turns are gone", self.directory));
        Series::open(self.store, &self.directory)?.ok_or_else(none)
    }

    /// All turns, the oldest first. Those of another directory that was at this path count for nothing.
    ///
    /// # Errors
    /// A turn cannot be read.
    pub fn all(&self) -> Result<Vec<Turn>, Error> {
        let place = Place::of(&self.directory);
        let mut turns = self.turns.all()?;
        turns.retain(|turn| turn.head.place.may_be(place));
        Ok(turns)
    }

    /// All turns, the oldest first. Of those from `n` on whose agent told no end, a snapshot is taken that shows what they have done.
    ///
    /// # Errors
    /// A turn cannot be read; a snapshot cannot be taken.
    pub fn settled(&self, call: &Call, series: &Series, lock: &Locked, n: u64) -> Result<Vec<Turn>, Error> {
        let turns = self.all()?;
        let open: Vec<&Turn> =
            turns.iter().filter(|turn| turn.head.n >= n && !turn.is_settled && turn.before.is_some()).collect();
        if open.is_empty() {
            return Ok(turns);
        }
        for turn in open {
            settle(call, self.store, &self.turns, series, lock, turn)?;
        }
        self.all()
    }

    /// The turn that is meant: that of the number, else the newest that changed something and is not taken back.
    ///
    /// # Errors
    /// There is none.
    pub fn meant(&self, turns: &[Turn], n: Option<u64>) -> Result<u64, Error> {
        let listed = || command("agent turns") + " lists them";
        if let Some(n) = n {
            let is_there = turns.iter().any(|turn| turn.head.n == n);
            let is_dropped = turns.first().is_some_and(|first| n < first.head.n) && n > 0;
            let keeps = "older turns are dropped: agent.keep and snapshot.max_size in the settings say how many are kept";
            let remedy = if is_dropped { keeps.into() } else { listed() };
            let none = || Error::refused(format!("there is no turn {n} here")).with_remedy(remedy);
            return if is_there { Ok(n) } else { Err(none()) };
        }
        let changed = |turn: &&Turn| !turn.wrote.is_empty() || !turn.is_settled;
        let undone = self.undone(turns)?;
        // An agent that is held means none that it is in.
        let may = |turn: &&Turn| capture().is_none() || turn.ended.is_some();
        let newest = turns.iter().rev().filter(changed).filter(may).find(|turn| !is_back(turn, &undone));
        // One that changed only what is not covered has nothing to take back, but what it did is named.
        let named = |turn: &&Turn| !fates(&[turn], None).is_empty();
        newest
            .or_else(|| turns.iter().rev().filter(may).find(named))
            .map(|turn| turn.head.n)
            .ok_or_else(|| Error::refused("no turn here has changed something that is not taken back").with_remedy(listed()))
    }

    /// The paths of each turn that committed sessions have taken back, with the directory as `/`.
    ///
    /// # Errors
    /// A session cannot be read.
    pub fn undone(&self, turns: &[Turn]) -> Result<Undone, Error> {
        let mut undone = Undone::new();
        for turn in turns {
            for (id, same) in &turn.undone {
                // Pruned: nobody can bring the turn back, and its paths are what they are.
                let Ok(session) = self.store.session(id) else { continue };
                let changes = session.changes()?;
                let sides = session.sides(changes.list.len())?;
                let inside = changes.list.iter().zip(sides).filter(|(_, side)| side.is_in());
                let paths =
                    inside.filter_map(|(change, _)| AbsPath::parse([b"/", change.path.below(&self.directory)?].concat()).ok());
                let is_all = session.header.is_all_in();
                let same = same.iter().filter(|_| is_all).cloned();
                undone.entry(turn.head.n).or_default().extend(paths.chain(same));
            }
        }
        Ok(undone)
    }
}

/// The path at which a directory was when turns were noted of it.
fn former(call: &Call, directory: &AbsPath) -> Result<Option<AbsPath>, Error> {
    let (Some(store), place) = (call.store()?, Place::of(directory)) else { return Ok(None) };
    for turns in turns::Turns::everywhere(store)? {
        if let Some(first) = turns.first()?
            && first.head.place.is(place)
            && !first.head.directory.as_path().exists()
        {
            return Ok(Some(first.head.directory));
        }
    }
    Ok(None)
}

/// The paths that are taken back, by turn.
pub type Undone = BTreeMap<u64, BTreeSet<AbsPath>>;

/// True if all that a turn wrote is taken back.
pub fn is_back(turn: &Turn, undone: &Undone) -> bool {
    undone.get(&turn.head.n).is_some_and(|undone| own(turn).all(|wrote| undone.contains(&wrote.path)))
}

/// The sessions that took something of a turn back and are committed, the oldest first.
pub fn undone_by<'t>(store: &Store, turn: &'t Turn) -> Vec<&'t Id> {
    let is_committed = |id: &&Id| store.session(id).is_ok_and(|session| session.header.is_all_in());
    turn.undone.iter().map(|(id, _)| id).filter(is_committed).collect()
}

/// The newest turn here and the verbs for turns, in a line; `None` if there is no turn.
pub fn newest(call: &Call) -> Option<String> {
    if call.is_far {
        return None;
    }
    let turns = Here::find(call).ok()?.turns;
    let head = turns.turn(*turns.numbers().ok()?.last()?).ok()??.head;
    let (n, agent) = (head.n, head.agent.word());
    let undo = newest_to_undo(call).map(|_| format!(", {}", command("agent undo"))).unwrap_or_default();
    Some(format!("turn {n} of {agent}: {}{undo}", command("agent turns")))
}

/// The turn that `agent undo` without a number means.
pub fn newest_to_undo(call: &Call) -> Option<u64> {
    let here = Here::find(call).ok()?;
    here.meant(&here.all().ok()?, None).ok()
}

/// The error of a second number, which is no path; `None` if the word is no number.
pub fn one_number(verb: &str, n: u64, word: &Path) -> Option<Error> {
    let word: u64 = word.to_str()?.parse().ok()?;
    let problem = Error::new(Kind::Usage, format!("agent {verb} takes one number, and {word} is no path here"));
    Some(problem.with_remedy(match verb {
        "undo" => words(format_args!("turn {n} goes back with all later ones: ")) + command(format_args!("agent undo {n}")),
        _ => command(format_args!("agent {verb} {word}")) + format!(" shows turn {word}"),
    }))
}

/// A turn in JSON: docs/json.md.
#[derive(Serialize)]
struct Row<'a> {
    n: u64,
    #[serde(with = "time")]
    time: Time,
    agent: Agent,
    prompt: &'a str,
    paths: usize,
    not_covered: usize,
    covered: bool,
    ended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    undone: Option<&'a Id>,
    /// True if that took a part of it back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partly: bool,
}

#[derive(Serialize)]
struct Whole<'a> {
    directory: &'a AbsPath,
    turns: &'a [Row<'a>],
}

/// The head of a page of turns: the agent is that of the newest.
#[derive(Serialize)]
struct Brief<'a> {
    directory: &'a AbsPath,
    agent: Option<Agent>,
}

/// A turn on a page. Left out is what is usual: the agent of the head, a turn that is covered and was not taken back.
#[derive(Serialize)]
struct BriefRow<'a> {
    n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<Agent>,
    prompt: String,
    paths: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    covered: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undone: Option<&'a str>,
}

fn print_brief(call: &Call, args: &args::Turns, directory: &AbsPath, rows: &[Row<'_>]) -> Result<(), Error> {
    let agent = rows.first().map(|row| row.agent);
    let only = args.agent.map_or("", Agent::word);
    let list = List { key: "turns", of: vec![b"turns", directory.as_bytes(), only.as_bytes()], count: rows.len() };
    let row = |i: usize| {
        let row = &rows[i];
        Ok(BriefRow {
            n: row.n,
            agent: Some(row.agent).filter(|_| Some(row.agent) != agent),
            prompt: cut_off(row.prompt, brief::TEXT),
            paths: row.paths,
            covered: (!row.covered).then_some(false),
            undone: row.undone.map(Id::tail),
        })
    };
    brief::print(call, &list, args.page.after.as_deref(), &Brief { directory, agent }, |i| brief::Place::Number(rows[i].n), row)
}

pub fn turns(call: &Call, args: &args::Turns) -> Result<Ended, Error> {
    let here = Here::find(call)?;
    let mut turns = here.all()?;
    turns.retain(|turn| args.agent.is_none_or(|agent| turn.head.agent == agent));
    let undone = here.undone(&turns)?;
    let rows: Vec<Row<'_>> = turns
        .iter()
        .rev()
        .map(|turn| Row {
            n: turn.head.n,
            time: turn.head.time,
            agent: turn.head.agent,
            prompt: &turn.head.prompt,
            paths: own(turn).count(),
            not_covered: fates(&[turn], None).len(),
            covered: turn.covered,
            ended: turn.is_settled,
            undone: undone_by(here.store, turn).pop().filter(|_| own(turn).next().is_some()),
            partly: undone.contains_key(&turn.head.n) && !is_back(turn, &undone),
        })
        .collect();
    if args.page.brief {
        print_brief(call, args, &here.directory, &rows)?;
    } else if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(call, &rows);
    } else {
        call.out.document(&Whole { directory: &here.directory, turns: &rows });
        brief::offer(call, "agent turns --brief");
    }
    Ok(Ended::Done)
}

fn print(call: &Call, rows: &[Row<'_>]) {
    if rows.is_empty() {
        call.out.note("there are no turns");
        return;
    }
    let (first, more) = cut(rows.len(), call.out.limit());
    let state = |row: &Row<'_>| match row.undone {
        Some(id) if row.partly => format!("undone in part by {}", id.tail()),
        Some(id) => format!("undone by {}", id.tail()),
        None if !row.covered => "not covered".into(),
        None if !row.ended => "not ended".into(),
        None if row.not_covered > 0 => format!("+ {} not covered", figures::grouped(row.not_covered as u64)),
        None => String::new(),
    };
    let head = ["N", "TIME", "AGENT", "PATHS", "", "PROMPT"].map(str::to_owned);
    let lines = rows[..first].iter().map(|row| {
        [
            row.n.to_string(),
            figures::day(row.time),
            row.agent.word().to_owned(),
            figures::grouped(row.paths as u64),
            state(row),
            shown(row.prompt),
        ]
    });
    let mut lines: Vec<_> = [head].into_iter().chain(lines).collect();
    figures::fit(&mut lines, call.out.width(), &[Flexible::words(5, 12)]);
    use Side::{Left, Right};
    figures::table([Right, Left, Left, Right, Left, Left], &lines).for_each(|line| call.out.line(line));
    if more > 0 {
        call.out.line(figures::more(more, &command("agent turns -v")));
    }
}

pub fn diff(call: &Call, args: TurnDiff) -> Result<Ended, Error> {
    let here = Here::find(call)?;
    let turns = here.all()?;
    let (named, words) = turn_and_paths(&args.of);
    let n = here.meant(&turns, named)?;
    let Some(turn) = turns.iter().find(|turn| turn.head.n == n) else { return Ok(Ended::Done) };
    let Some((before, _)) = turn.before else { return Err(not_covered(turn)) };
    // A turn that has not ended is compared with the directory as it is now.
    let mut after = turn.after.filter(|_| turn.is_settled);
    if turn.calls.is_empty() || after == Some(before) {
        say_uncovered(call, turn);
        call.out.note(format_args!("turn {n} changed nothing"));
        if !args.much.html {
            return Ok(Ended::Done);
        }
        after = Some(before);
    }
    let mut about = about(turn);
    let (paths, others) = if after.is_some() { changed(&here, turn, words)? } else { (words.to_vec(), Vec::new()) };
    let say_others = || {
        let say = |path: &AbsPath| call.out.note(format_args!("{}: turn {n} did not change it", call.out.shown(path)));
        others.iter().for_each(say);
    };
    if paths.is_empty() && !words.is_empty() {
        say_others();
        return Ok(Ended::Done);
    }
    let against = if after.is_some() { against(call, &here, turn, &mut about)? } else { Vec::new() };
    let other = after.map(|n| n.to_string());
    let (key, dir) = (before.to_string(), Some(here.directory.as_path().to_owned()));
    let args = SnapshotDiff { key, other, paths, dir, with_vcs: false, much: args.much };
    let ended = snapshot_diff::diff_of(call, &args, Some(about))?;
    // From here on it is said after the pager's end.
    if named.is_none() {
        say_which(call, turn);
    }
    say_uncovered(call, turn);
    say_others();
    against.iter().for_each(|line| call.out.note(line));
    let not_covered = uncovered::rows(call, &here.directory, &fates(&[turn], None), &[])?;
    uncovered::lines(&not_covered, false).iter().for_each(|line| call.out.note(line));
    say_outside(call, turn);
    say_undone(call, &here, turn, &turns)?;
    Ok(ended)
}

/// The paths that a turn wrote and that are not its alone, each with the reason, for a person and for a page.
fn against(call: &Call, here: &Here<'_>, turn: &Turn, about: &mut About) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for wrote in &turn.wrote {
        if let Some(why) = turn.against(&wrote.path) {
            let path = whole(&here.directory, &wrote.path)?;
            lines.push(format!("{}: {why}", call.out.shown(&path)));
            about.notes.push(("not the turn's".into(), format!("{path}: {why}")));
        }
    }
    Ok(lines)
}

/// Those of the paths that a turn changed, and the others.
///
/// # Errors
/// One of them neither the turn nor the project has.
fn changed(here: &Here<'_>, turn: &Turn, words: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<AbsPath>), Error> {
    let n = turn.head.n;
    let (mut changed, mut others) = (Vec::new(), Vec::new());
    for (path, word) in inner(&here.directory, words)?.iter().zip(words) {
        if turn.wrote.iter().any(|wrote| wrote.path.is_under(path)) {
            changed.push(word.clone());
            continue;
        }
        let path = whole(&here.directory, path)?;
        if path.as_path().symlink_metadata().is_err() {
            let shows = || command(format_args!("agent diff {n}")) + format!(" shows all that turn {n} changed");
            let unknown = || {
                Error::refused(format!("{path}: neither turn {n} nor the project has it")).with_path(&path).with_remedy(shows())
            };
            return Err(one_number("diff", n, word).unwrap_or_else(unknown));
        }
        others.push(path);
    }
    Ok((changed, others))
}

/// Warns of a turn of which something may be missing.
fn say_uncovered(call: &Call, turn: &Turn) {
    if !turn.covered {
        let n = turn.head.n;
        call.out.warn(format_args!("turn {n} began before its snapshot was whole: some of what it changed may be missing here"));
    }
}

fn say_which(call: &Call, turn: &Turn) {
    let which = format!("this is turn {} of {}: ", turn.head.n, turn.head.agent.word());
    // With "recant: " it is one line of 80 columns.
    let prompt = cut_off(&shown(&turn.head.prompt), 72_usize.saturating_sub(which.len()));
    call.out.note(format_args!("{which}{prompt}"));
}

fn say_undone(call: &Call, here: &Here<'_>, turn: &Turn, turns: &[Turn]) -> Result<(), Error> {
    let by = undone_by(here.store, turn);
    if !by.is_empty() && turn.own().next().is_some() {
        let part = if is_back(turn, &here.undone(turns)?) { "" } else { " in part" };
        let by: Vec<&str> = by.iter().map(|id| id.tail()).collect();
        call.out.note(format_args!("turn {} is undone{part} by {}", turn.head.n, figures::list(&by)));
    }
    Ok(())
}

/// The head of a turn's page, as far as the turn's file tells.
fn about(turn: &Turn) -> About {
    let head = &turn.head;
    let mut facts = vec![("agent", format!("{}, session {}", head.agent.word(), shown(&head.session)))];
    facts.extend(head.model.as_ref().map(|model| ("model", shown(model))));
    facts.push(("prompt", shown(&head.prompt)));
    let ended = turn.ended.map(|time| format!(", ended {}", figures::time(time, true))).unwrap_or_default();
    facts.push(("begun", format!("{}{ended}", figures::time(head.time, true))));
    let mut notes = Vec::new();
    if !turn.covered {
        notes.push((
            "not covered",
            "it began before its snapshot was whole: some of what it changed may be missing here".to_owned(),
        ));
    }
    if !turn.is_settled {
        notes.push(("not ended", "it is compared with the directory as it is now".to_owned()));
    }
    notes.extend(
        outside(turn).map(|path| ("outside", format!("{path}: the turn wrote it, outside of the project: it is not covered"))),
    );
    let owned = |list: Vec<(&str, String)>| list.into_iter().map(|(word, text)| (word.to_owned(), text)).collect();
    About {
        title: format!("Turn {} of {}", head.n, head.agent.word()),
        facts: owned(facts),
        notes: owned(notes),
        ..About::default()
    }
}

/// Names what a turn's tools were to write outside of the project.
pub fn say_outside(call: &Call, turn: &Turn) {
    for path in outside(turn) {
        call.out.note(format_args!("{path}: turn {} wrote it, outside of the project: it is not covered", turn.head.n));
    }
}

/// The paths that a turn's tools were to write outside of the project, as printed in messages.
fn outside(turn: &Turn) -> impl Iterator<Item = String> {
    let paths: BTreeSet<_> = turn.outside().collect();
    let shown = |path: &PathBuf| Shown(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())).to_string();
    paths.into_iter().map(shown)
}

/// The error that nothing is known of what was there before a turn.
pub fn not_covered(turn: &Turn) -> Error {
    let n = turn.head.n;
    let why = turn.failed.as_deref().unwrap_or("it began before its snapshot was whole");
    let problem = Error::refused(format!("turn {n} is not covered: {why}"));
    match turn.before {
        Some(_) => problem.with_remedy(command(format_args!("agent diff {n}")) + " shows what is known of it"),
        None => problem,
    }
}

/// The way to the turns of an agent that is held in this project, the newest one's; `None` if none is.
fn of_held(call: &Call) -> Result<Option<Remedy>, Error> {
    let (Some(store), None) = (call.store()?, capture()) else { return Ok(None) };
    let here = Scope::here()?;
    let (headers, _) = store.headers()?;
    for header in headers.iter().rev().filter(|header| here.has(store, header)) {
        let is_open = matches!(header.status(), Status::Running | Status::Pending);
        if is_open && own_store::of(store, &store.session(&header.id)?)?.is_some() {
            let name = header.name.as_deref().unwrap_or(header.id.tail());
            return Ok(Some(match header.status() {
                Status::Running => {
                    let held = words(format_args!("an agent is held in session {name}: have it run "));
                    held + shell("recant agent turns") + ", diff or undo N there"
                }
                _ => "those of a held agent: " + command(format_args!("run --session {name} -- recant agent turns")),
            }));
        }
    }
    Ok(None)
}
