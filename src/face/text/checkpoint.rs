//! `checkpoint list`, `show` and `verify`, in words.

use super::list::say_damaged;
use crate::compare::cut;
use crate::error::{Error, Kind, command};
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::out::Out;
use crate::session::{Checkpoint, Header, Sort};
use crate::tree::{State, sort_word};
use crate::verb::checkpoint::{self as verb, Row, Shown, Verified};
use crate::verb::{Findings, Original};

/// Lists the checkpoints.
pub fn list(call: &Call) -> Result<Ended, Error> {
    let listed = verb::list(call)?;
    say_damaged(call, &listed.damaged);
    if call.out.is_text() {
        call.out.page(call.config.pager.value.as_deref());
        print(&call.out, &listed.checkpoints);
    } else {
        call.out.document(&listed);
    }
    Ok(if listed.damaged.is_empty() { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn print(out: &Out, checkpoints: &[Row]) {
    if checkpoints.is_empty() {
        return out.note("no checkpoints");
    }
    let title = ["ID", "STATUS", "PATHS", "SIZE", "CHANGED", "NAME"].map(String::from);
    let (first, more) = cut(checkpoints.len(), out.limit());
    let row = |row: &Row| {
        [
            row.id.to_string(),
            row.status.word().replace('_', " "),
            figures::grouped(row.paths),
            if row.checkpoint == Checkpoint::Pruned { "pruned".into() } else { figures::bytes(row.bytes) },
            figures::time(row.changed, false),
            row.name.clone().unwrap_or_default(),
        ]
    };
    let mut rows: Vec<[String; 6]> = std::iter::once(title).chain(checkpoints[..first].iter().map(row)).collect();
    figures::fit(&mut rows, out.width(), &[Flexible::path(5, 8)]);
    let sides = [Side::Left, Side::Left, Side::Right, Side::Right, Side::Left, Side::Left];
    let mut lines = figures::table(sides, &rows);
    out.styled(anstyle::Style::new().bold(), lines.next().unwrap_or_default());
    lines.for_each(|line| out.line(line));
    if more > 0 {
        out.line(figures::more(more, &command("checkpoint list -v")));
    }
}

/// Shows the originals of a checkpoint.
pub fn show(call: &Call, args: &args::CheckpointShow) -> Result<Ended, Error> {
    verb::show(call, args.id.as_deref(), &mut |shown| {
        if !call.out.is_text() {
            call.out.document(shown);
            return Ok(());
        }
        call.out.page(call.config.pager.value.as_deref());
        print_originals(&call.out, shown)
    })?;
    Ok(Ended::Done)
}

fn print_originals(out: &Out, shown: &Shown<'_>) -> Result<(), Error> {
    let Header { id, checkpoint, .. } = shown.header;
    if *checkpoint == Checkpoint::Pruned {
        out.warn(format_args!("the checkpoint of session {id} was pruned, and its originals with it"));
    }
    let (mut rows, mut uncovered) = (Vec::new(), 0);
    shown.for_each(&mut |original| {
        uncovered += u64::from(original.uncovered.is_some());
        rows.push(cells(out, &original));
    })?;
    if rows.is_empty() {
        out.note(format_args!("nothing of session {id} is on the tree: its checkpoint is empty"));
    }
    let lines: Vec<String> = figures::table([Side::Left, Side::Left, Side::Right, Side::Left], &rows).collect();
    out.first_of(lines.into_iter(), &command(format_args!("checkpoint show {} -v", id.tail())));
    if uncovered > 0 {
        out.warn(format_args!("a rollback will not restore {}", figures::count(uncovered, "path")));
    }
    Ok(())
}

fn cells(out: &Out, Original { path, change, before, uncovered }: &Original) -> [String; 4] {
    let why = uncovered.as_ref().map_or(String::new(), |why| format!("  (not kept: {why})"));
    let size =
        before.as_ref().filter(|state| state.hash().is_some()).map_or(String::new(), |state| figures::bytes(State::size(state)));
    let was = before.as_ref().map_or("nothing", |state| sort_word(state.sort()));
    [change.map_or("", Sort::word).to_owned(), was.to_owned(), size, format!("{}{why}", out.shown(path))]
}

/// Verifies one checkpoint, or all.
pub fn verify(call: &Call, args: &args::CheckpointVerify) -> Result<Ended, Error> {
    let verified = verb::verify(call, args.id.as_deref())?;
    say_damaged(call, &verified.damaged);
    for (session, why) in &verified.unread {
        call.out.warn(format_args!("session {session}: {}", why.in_session()));
    }
    if call.out.is_text() {
        print_verified(&call.out, &verified);
    } else {
        call.out.document(&verified);
    }
    Ok(verified.worst().map_or(Ended::Done, Ended::With))
}

fn print_verified(out: &Out, verified: &Verified) {
    let line = |Findings { session, verdict }: &Findings| {
        let faults = verdict.faults.len();
        let state = if faults == 0 { "intact".into() } else { figures::count(faults as u64, "fault") };
        [session.to_string(), figures::count(verdict.whole, "original"), figures::bytes(verdict.bytes), state]
    };
    let sides = [Side::Left, Side::Right, Side::Right, Side::Left];
    let lines: Vec<String> = figures::table(sides, verified.checkpoints.iter().map(line)).collect();
    if lines.is_empty() && verified.worst().is_none() {
        out.note("no checkpoints to verify");
    }
    out.first_of(lines.into_iter(), &command("checkpoint verify -v"));
    verified.faults().for_each(|fault| out.warn(format_args!("{}: {}", fault.path, fault.why)));
}
