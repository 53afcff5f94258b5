//! `show`: one session and its changes.

use super::list::shown;
use super::steps::words;
use super::{acts, coverage, fact, summary};
use crate::compare::{Renames, Summary, cut, cut_off, shortened};
use crate::error::{Error, command, shell_word};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side as Column};
use crate::face::{args, find_store};
use crate::fs::Shown;
use crate::session::{ActingAgent, Change, Checkpoint, Ending, Header, How, Run, Session, Side, Sort};
use crate::tree::{Danger, sort_word};
use crate::verb::Standing;
use crate::verb::show::{self as verb, Shown as Value};

pub fn show(call: &Call, args: &args::Show) -> Result<Ended, Error> {
    let value = verb::show(call, args.id.as_deref(), &find_store::all_whole(&args.paths)?)?;
    let Value { store, session, standing, run, changes, sides, renames, chosen, .. } = &value;
    if args.paths.is_empty() {
        call.looked(store, session);
    }
    if !call.out.is_text() {
        call.out.document(&value);
        return Ok(Ended::Done);
    }
    let header = &session.header;
    call.out.page(call.config.pager.value.as_deref());
    if call.is_in_run() && standing.word == "running" {
        let name = header.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let changes = figures::count(changes.list.len() as u64, "change");
        call.out.line(format_args!("held: session {}{name}, {changes}", header.id.tail()));
        // Before what is said about the rest.
        call.out.flush();
    }
    print_head(call, session, *standing, run.as_ref());
    print_counts(call, chosen.iter().map(|i| &changes.list[*i]));
    let summary = if call.out.is_verbose() { None } else { Some(value.summary(call)?) };
    let singles = summary.as_ref().map_or_else(|| chosen.clone(), Summary::singles);
    let listed = listed(&changes.list, sides, &singles, renames, call.out.is_verbose());
    let is_marked = |i: usize| changes.list[i].danger().is_some();
    let row = |i| row(call, header, &changes.list, sides, renames, i);
    print_changes(call, (&listed, is_marked), summary.as_ref(), &all_of(header, args), row);
    if call.out.is_verbose() {
        let times = changes.directory_times.iter().map(|time| call.out.shown(&time.path));
        times.for_each(|path| call.out.line(format_args!("times     directory  {path}")));
    }
    print_coverage(call, header, run.as_ref());
    Ok(Ended::Done)
}

/// The indexes of the changes that are listed: not a renamed file under its old name and, unless `all` is set, none of the mtime alone.
/// Those on the side with fewer come first: people look for these. Before all what is dangerous.
fn listed(changes: &[Change], sides: &[Side], chosen: &[usize], renames: &Renames, all: bool) -> Vec<usize> {
    let is_listed = |i: &usize| (all || changes[*i].sort() != Sort::Times) && renames.to(changes, *i).is_none();
    let (inside, out): (Vec<usize>, Vec<usize>) = chosen.iter().copied().filter(is_listed).partition(|i| sides[*i].is_in());
    let mut all = if inside.len() <= out.len() { [inside, out].concat() } else { [out, inside].concat() };
    all.sort_by_cached_key(|i| Danger::place(changes[*i].danger()));
    all
}

fn print_changes(
    call: &Call,
    (listed, is_marked): (&[usize], impl Fn(usize) -> bool),
    summary: Option<&Summary>,
    all: &str,
    row: impl Fn(usize) -> [String; 5],
) {
    let folded = summary.map_or(0, Summary::folded);
    if listed.is_empty() && folded == 0 {
        return;
    }
    call.out.line("");
    summary.into_iter().for_each(|summary| summary::print_histories(&call.out, summary));
    let (shown, more) = cut(listed.len(), call.out.limit());
    let mut rows: Vec<[String; 5]> = listed[..shown].iter().map(|i| row(*i)).collect();
    figures::fit(&mut rows, call.out.width(), &[Flexible::path(4, 20)]);
    let columns = [Column::Left, Column::Left, Column::Left, Column::Right, Column::Left];
    figures::table(columns, &rows).for_each(|line| call.out.line(line));
    if more > 0 {
        call.out.line(figures::more(more, all));
    }
    summary.into_iter().for_each(|summary| summary::print(&call.out, summary, all));
    acts::marked(&call.out, listed[shown..].iter().filter(|i| is_marked(**i)).count());
}

/// The command that lists all that was asked for.
fn all_of(header: &Header, args: &args::Show) -> String {
    let paths: String = args.paths.iter().map(|path| format!(" {}", shell_word(path.as_os_str().as_encoded_bytes()))).collect();
    command(format_args!("show {}{paths} -v", header.id.tail())).into()
}

/// The facts of a session, each with its word.
pub fn facts(call: &Call, session: &Session, standing: Standing, run: Option<&Run>) -> Vec<(&'static str, String)> {
    let header = &session.header;
    let name = header.name.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    let mut rows: Vec<(&'static str, String)> = vec![("session", format!("{}{name}", header.id))];
    rows.push(("status", fact::standing(standing)));
    let ending = run.and_then(|run| run.command.ending).map(|ending| format!(", ended {}", ending_text(ending)));
    rows.push(("begun", format!("{}{}", figures::time(header.created, true), ending.unwrap_or_default())));
    if let Some(run) = run {
        rows.push(("command", words(&run.command.argv)));
        rows.push(("in", call.out.place(&run.command.cwd)));
    } else if let Some(command) = &header.command {
        rows.push(("command", shown(command)));
    }
    rows.extend(header.by.as_ref().map(|by| ("agent", agent_text(by))));
    rows.extend(steps_text(session).map(|steps| ("steps", steps)));
    rows.push(("size", sizes_text(header)));
    rows
}

fn print_head(call: &Call, session: &Session, standing: Standing, run: Option<&Run>) {
    let width = call.out.width().saturating_sub(12);
    for (key, value) in &facts(call, session, standing, run) {
        let value = if *key == "in" { shortened(value, width) } else { cut_off(value, width) };
        call.out.line(format_args!("{key:<10}  {value}"));
    }
    for (word, text) in run.map(noted).unwrap_or_default() {
        call.out.line(format_args!("{word:<10}  {text}"));
    }
}

/// The facts that no change tells: what a run could not hold, and what it did beyond files; each with its word.
pub fn noted(run: &Run) -> Vec<(&'static str, String)> {
    let uncovered = run.coverage.iter().filter(|place| place.how == How::Uncovered);
    let mut noted: Vec<_> = uncovered
        .map(|place| {
            let why = place.why.as_deref().unwrap_or("it could not be captured");
            ("not held", format!("{}: {why}", place.path))
        })
        .collect();
    let passed = run.coverage.iter().filter(|place| place.how == How::Passed).map(|place| place.path.to_string());
    let passed = passed.collect::<Vec<_>>().join(", ");
    if !passed.is_empty() {
        noted.push(("real", format!("{passed}: not held, and whether they were used is not known")));
    }
    noted.extend(run.notes.iter().map(|note| ("note", shown(note))));
    noted
}

pub fn agent_text(by: &ActingAgent) -> String {
    let session = by.session.as_ref().map(|session| format!(", session {}", shown(session))).unwrap_or_default();
    let turn = by.turn.map(|turn| format!(", turn {turn}")).unwrap_or_default();
    format!("{}{turn}{session}", shown(&by.agent))
}

/// The number of its steps that can be gone back to, and the head; `None` of a session that has no more than one.
fn steps_text(session: &Session) -> Option<String> {
    let header = &session.header;
    header.steps.as_ref()?;
    let count = match session.steps() {
        Ok(list) => list.kept(header).len(),
        Err(error) => return Some(format!("they cannot be read: {error}")),
    };
    let (head, steps) = (header.head(), command(format_args!("steps {}", header.id.tail())));
    Some(format!("{}, the head is step {head}: {steps}", figures::grouped(count as u64)))
}

/// The bytes that the session takes in the store, by purpose.
fn sizes_text(header: &Header) -> String {
    let sizes = header.sizes;
    let mut text = format!("{} held", figures::bytes(sizes.held));
    if header.counts.ever_in > 0 && header.checkpoint == Checkpoint::Pruned {
        text.push_str(", checkpoint pruned: no rollback");
    } else if header.counts.ever_in > 0 {
        text.push_str(&format!(", {} kept for a rollback", figures::bytes(sizes.checkpoint)));
    }
    if sizes.displaced > 0 {
        text.push_str(&format!(", {} that --force overwrote", figures::bytes(sizes.displaced)));
    }
    text
}

/// Prints the coverage of a run's session.
fn print_coverage(call: &Call, header: &Header, run: Option<&Run>) {
    let Some(run) = run.filter(|run| !run.coverage.is_empty()) else { return };
    if !call.out.is_verbose() {
        call.out.note(format_args!("what the run held, by place: {}", command(format_args!("show {} -v", header.id.tail()))));
        return;
    }
    call.out.line("");
    call.out.line("what the run held, by place:");
    coverage::table(&run.coverage, true).iter().for_each(|row| call.out.line(format_args!("  {row}")));
}

/// The words for the end of a command.
pub fn ending_text(ending: Ending) -> String {
    match ending {
        Ending::Exited(status) => format!("with exit status {status}"),
        Ending::Signaled(signal) => format!("by signal {signal}"),
    }
}

fn print_counts<'c>(call: &Call, changes: impl Iterator<Item = &'c Change>) {
    let mut counts = [Sort::Created, Sort::Modified, Sort::Deleted, Sort::Metadata, Sort::Times].map(|sort| (sort, 0));
    for change in changes {
        counts.iter_mut().filter(|(sort, _)| *sort == change.sort()).for_each(|(_, n)| *n += 1);
    }
    let counts = counts.iter().filter(|(_, n)| *n > 0);
    let parts: Vec<String> = counts.map(|(sort, n)| format!("{} {}", figures::grouped(*n), sort.counted())).collect();
    let sum = if parts.is_empty() { "none".into() } else { parts.join(", ") };
    call.out.line(format_args!("{:<10}  {sum}", "changes"));
}

fn row(call: &Call, header: &Header, changes: &[Change], sides: &[Side], renames: &Renames, i: usize) -> [String; 5] {
    let mut row = row_of(call, header, &changes[i], sides[i]);
    if let Some(from) = renames.from(changes, i) {
        row[0] = "renamed".into();
        row[4] = format!("{} → {}", call.out.shown(from), row[4]);
    }
    row
}

fn row_of(call: &Call, header: &Header, change: &Change, side: Side) -> [String; 5] {
    let object = change.after.as_ref().or(change.before.object.as_ref());
    let kind = object.map_or("", |state| sort_word(state.sort()));
    let size = object.filter(|_| kind == "file").map_or(String::new(), |state| figures::bytes(state.size()));
    let mut path = call.out.shown(&change.path);
    if let Some(crate::tree::What::Symlink { target }) = change.after.as_ref().map(|state| &state.what) {
        path.push_str(&format!(" -> {}", Shown(target)));
    }
    let marks = [
        (change.danger().is_some(), change.danger().map_or("", Danger::why)),
        (change.marks.linked, "hard link"),
        (change.marks.link_broken, "link broken"),
        (change.marks.foreign, "changed by others during the run"),
    ];
    for (on, mark) in marks {
        if on {
            path.push_str(&format!("  ({mark})"));
        }
    }
    // If all are on one side, the status tells which.
    let side = match side {
        Side::Lost => "lost",
        _ if !header.is_in_part() => "",
        Side::In => "committed",
        Side::Never | Side::Out => "held",
    };
    [change.sort().word().into(), side.into(), kind.into(), size, path]
}
