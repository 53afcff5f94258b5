//! `diff --step`, `--since` and `--with`: what a step changed, what came after one, and in what the heads of two sessions differ.

use serde::Serialize;

use super::super::call::Call;
use super::super::ended::Ended;
use super::super::text;
use super::super::{args, place};
use super::html::Of;
use super::shown::{self, Between, Lines, Said, Source, refuse_discarded};
use super::{about, brief, showing};
use crate::diff::renames::Renames;
use crate::diff::sources::{Content, End};
use crate::diff::steps::{Differences, States};
use crate::diff::view::View;
use crate::error::{Error, command};
use crate::fs::path::AbsPath;
use crate::session::change::Changes;
use crate::session::id::Id;
use crate::session::opened::Session;
use crate::session::steps::Step;
use crate::session::store::Store;
use crate::verb::error::not_in_session;

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    of: Points<'a>,
    changes: &'a [Row<'a>],
}

/// The states that are compared.
#[derive(Serialize)]
struct Points<'a> {
    from: Point<'a>,
    to: Point<'a>,
}

/// A step at which a session stands, or stood.
#[derive(Clone, Copy, Serialize)]
struct Point<'a> {
    session: &'a Id,
    step: u32,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    change: Between<'a>,
    /// The path at which what was created here was deleted.
    renamed_from: Option<&'a AbsPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Lines>,
}

/// The differences between two points.
struct Compared<'c, 's> {
    from: Point<'c>,
    to: Point<'c>,
    states: States<'s>,
    differences: Differences<'c>,
    /// The names of the two sides, if they are of two sessions.
    sides: Option<[&'c str; 2]>,
    /// The words if nothing differs.
    none: String,
    /// The subject of a page of it, if there is to be one.
    of: Option<Of>,
}

/// Shows what a step changed, or what came after it: the changes so far of a command that runs included.
pub fn diff(call: &Call, args: &args::Diff, store: &Store, session: &Session) -> Result<Ended, Error> {
    let so_far = call.so_far(store, session.id())?.map(|(so_far, _)| so_far);
    let shown = diff_of(call, args, store, (session, so_far.as_ref()));
    call.believed(store, so_far.as_ref().unwrap_or(session), shown)
}

fn diff_of(
    call: &Call,
    args: &args::Diff,
    store: &Store,
    (sealed, so_far): (&Session, Option<&Session>),
) -> Result<Ended, Error> {
    let latest = so_far.unwrap_or(sealed);
    // The first command of a session is told by what it has changed so far, a further one by a look at its own upper.
    let session = if sealed.header.lines == 0 { latest } else { sealed };
    let (header, list, head) = (&session.header, crate::verb::steps::of(session)?, latest.changes()?);
    let running = so_far.filter(|_| sealed.header.lines > 0).map(|_| header.next_step());
    let last = running.unwrap_or(header.head());
    if so_far.is_some() && args.step.is_none_or(|n| n == last) {
        call.say_running(session);
    }
    let mut states = States::of([(latest, &head)])?;
    let page = |title: String, options: &str, step: Option<&Step>| match args.much.html {
        true => about::step(call, store, latest, title, options, step).map(Some),
        false => Ok(None),
    };
    let id = session.id().tail();
    if let Some(n) = args.step.filter(|n| running != Some(*n)) {
        refuse_0(session, n)?;
        let step = list.get(header, n)?;
        list.check(header, n)?;
        say_unsynced(call, step.unsynced);
        let own = list.own(session, n)?;
        let differences = Differences::of_step(&own);
        let (from, to, none) = (at(session, step.on), at(session, n), format!("step {n} changed no path"));
        let of = page(format!("Step {n} of session {id}"), &format!(" --step {n}"), Some(step))?;
        return print(call, args, [&own, &head], Compared { from, to, states, differences, sides: None, none, of });
    }
    let from = match args.step {
        Some(_) => latest.run()?.and_then(|run| run.on).unwrap_or(header.head()),
        None => args.since.unwrap_or(0),
    };
    list.check(header, from)?;
    if args.since.is_some_and(|n| n != 0 && n != last && !header.chain().contains(&n)) {
        call.out.note(format_args!("step {from} is not below the head: it is compared with it"));
    }
    say_unsynced(call, header.unsynced);
    let then = list.net(session, from)?;
    let differences = states.between(&then, &head)?;
    let none = match args.step {
        Some(n) => format!("step {n} has changed no path so far"),
        None if from == last => format!("step {from} is the head: nothing came after it"),
        None => format!("step {from} and the head, step {last}, hold the same"),
    };
    let of = match args.step {
        Some(n) => page(format!("Step {n} of session {id}, which runs"), &format!(" --step {n}"), None)?,
        None => page(format!("Session {id} after step {from}"), &format!(" --since {from}"), None)?,
    };
    let (from, to) = (at(session, from), at(session, last));
    print(call, args, [&then, &head], Compared { from, to, states, differences, sides: None, none, of })
}

/// Refuses step 0, which no command made.
fn refuse_0(session: &Session, n: u32) -> Result<(), Error> {
    if n > 0 {
        return Ok(());
    }
    let id = session.id();
    let problem = Error::refused(format!("session {id}: step 0 is the tree as it was: it changed nothing"));
    Err(problem.with_remedy(format!("{} shows what came after it", command(format_args!("diff {} --since 0", id.tail())))))
}

fn at(session: &Session, step: u32) -> Point<'_> {
    Point { session: session.id(), step }
}

/// Shows in what the heads of two sessions differ.
pub fn between(call: &Call, args: &args::Diff, session: &Session, other: &str) -> Result<Ended, Error> {
    let (store, other) = call.looked_at(Some(other))?;
    refuse_discarded(&other)?;
    let shown = between_two(call, args, store, [session, &other]);
    call.believed(store, &other, shown)
}

fn between_two(call: &Call, args: &args::Diff, store: &Store, [old, new]: [&Session; 2]) -> Result<Ended, Error> {
    say_unsynced(call, old.header.unsynced || new.header.unsynced);
    let (changes, others) = (old.changes()?, new.changes()?);
    let mut states = States::of([(old, &changes), (new, &others)])?;
    let differences = states.between(&changes, &others)?;
    let [from, to] = [old, new].map(|session| at(session, session.header.head()));
    let sides = Some([old.id().tail(), new.id().tail()]);
    let none = format!("sessions {} and {} hold the same", old.id(), new.id());
    let of = if args.much.html { Some(about::two(call, store, [old, new])?) } else { None };
    print(call, args, [&changes, &others], Compared { from, to, states, differences, sides, none, of })
}

fn say_unsynced(call: &Call, unsynced: bool) {
    if unsynced {
        call.out.warn(shown::UNSYNCED);
    }
}

/// Prints the differences at and below the paths that are named. `known` are lists in which a path may be.
fn print(call: &Call, args: &args::Diff, known: [&Changes; 2], compared: Compared<'_, '_>) -> Result<Ended, Error> {
    let Compared { from, to, mut states, differences, sides, none, of } = compared;
    let (states, differences) = (&mut states, &differences);
    let changes = &differences.changes.list;
    let chosen = chosen(args, from.session, known, &differences.changes)?;
    if args.much.name_only {
        return Ok(shown::names(call, chosen.iter().map(|i| &changes[*i]).filter(|change| args.much.lists(change))));
    }
    if args.brief {
        let of = Points { from, to };
        let ids = [of.from, of.to].map(|point| format!("{}:{}", point.session, point.step));
        let mut source = OfStates { states, differences };
        brief::print(call, args, (&of, &ids), changes, &chosen, &mut source)?;
        return Ok(Ended::Done);
    }
    if !call.out.is_text() {
        let renames = Renames::find_by(changes, &mut |i, end| states.open(differences, i, end))?;
        let mut rows = Vec::with_capacity(chosen.len());
        for i in chosen {
            let lines = if args.much.stat { Some(Lines::of(&view(states, differences, i)?)) } else { None };
            rows.push(Row { change: Between::of(&changes[i]), renamed_from: renames.from(changes, i), lines });
        }
        call.out.document(&Whole { of: Points { from, to }, changes: &rows });
        super::super::brief::offer(call, "diff --brief");
        return Ok(Ended::Done);
    }
    let mut source = OfStates { states, differences };
    let mut shown = Said { times: 0, conflicts: 0 };
    if changes.is_empty() && of.is_none() {
        showing::page(call);
    } else {
        let of = std::cell::Cell::new(of);
        let of = || Ok(of.take().unwrap_or_default());
        let again = |options: &str| shown::again(args, from.session.tail(), options);
        shown = shown::show(call, args, (changes, &chosen), &mut source, &of, &again)?;
    }
    if shown.times > 0 {
        call.out.note(shown::times_folded(shown.times));
    }
    match sides {
        _ if changes.is_empty() => call.out.note(none),
        Some([old, new]) => {
            let n = chosen.len() as u64;
            let differ = if n == 1 { "differs" } else { "differ" };
            call.out.note(format_args!("{} {differ}: - is session {old}, + is session {new}", text::count(n, "path")));
        }
        None => {}
    }
    Ok(Ended::Done)
}

/// The indexes of the differences at and below the paths that are named, of all if none is. A path in which the two states do not differ
/// may be in `known`.
fn chosen(args: &args::Diff, id: &Id, known: [&Changes; 2], differing: &Changes) -> Result<Vec<usize>, Error> {
    let mut chosen = Vec::new();
    for path in &args.paths {
        // A path is resolved by what a list has, unless it is in none.
        let mut found = Vec::with_capacity(3);
        for list in [differing, known[0], known[1]] {
            let named = place::named(path, list)?;
            found.push((!list.under(&named).is_empty(), named));
        }
        match found.iter().find(|(is_known, _)| *is_known) {
            Some((_, named)) => chosen.extend(differing.under(named)),
            None => return Err(not_in_session(id, known[1], &found[2].1)),
        }
    }
    if args.paths.is_empty() {
        chosen.extend(0..differing.list.len());
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

struct OfStates<'d, 's, 'c> {
    states: &'d mut States<'s>,
    differences: &'d Differences<'c>,
}

impl<'d> Source<'d> for OfStates<'d, '_, '_> {
    fn view(&mut self, i: usize) -> Result<View<'d>, Error> {
        view(self.states, self.differences, i)
    }

    fn open(&mut self, i: usize, end: End) -> Result<Content, Error> {
        self.states.open(self.differences, i, end)
    }
}

/// The view of a difference between two states.
pub fn view<'d>(states: &mut States<'_>, differences: &'d Differences<'_>, i: usize) -> Result<View<'d>, Error> {
    let old = |states: &mut States<'_>| states.open(differences, i, End::Before);
    let new = |states: &mut States<'_>| states.open(differences, i, End::After);
    View::of_states(&differences.changes.list[i], states, old, new)
}
