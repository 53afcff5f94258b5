//! `snapshot list`, in words.

use crate::compare::cut;
use crate::error::{Error, Kind, command};
use crate::face::args::SnapshotList;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Flexible, Side};
use crate::face::text::list::{shown, who};
use crate::snapshot::{Broken, heal};
use crate::verb::snapshot::directory;
use crate::verb::snapshot::list::{self as verb, Listed, Row};
use crate::verb::{Directories, Directory};

pub fn list(call: &Call, args: &SnapshotList) -> Result<Ended, Error> {
    let is_damaged = if args.all { directories(call, &verb::directories(call)?) } else { of_one(call, args)? };
    Ok(if is_damaged { Ended::With(Kind::LeftOut) } else { Ended::Done })
}

/// Lists the snapshots of a directory. True if some cannot be read.
fn of_one(call: &Call, args: &SnapshotList) -> Result<bool, Error> {
    let listed = verb::list(call, args.of.named())?;
    if call.out.is_text() {
        print(call, &listed);
        for Broken { n, why } in &listed.damaged {
            call.out.warn(format_args!("snapshot {n}: {why}"));
        }
        if !listed.damaged.is_empty() {
            call.out.note(heal());
        }
    } else {
        call.out.document(&listed);
    }
    Ok(!listed.damaged.is_empty())
}

fn print(call: &Call, Listed { directory, snapshots, .. }: &Listed) {
    if snapshots.is_empty() {
        let all = command("snapshot list --all");
        call.out.note(format_args!("{directory}: no snapshots; {all} lists what has some"));
        return;
    }
    let agent = if snapshots.iter().any(|row| row.by.is_some()) { "AGENT" } else { "" };
    let head = ["N", "TIME", "LABEL", agent, "+", "~", "-", "SIZE", "STORED", "MESSAGE"].map(str::to_owned);
    let (first, more) = cut(snapshots.len(), call.out.limit());
    let mut rows: Vec<_> = [head].into_iter().chain(snapshots[..first].iter().map(row)).collect();
    use Side::{Left, Right};
    let sides = [Right, Left, Left, Left, Right, Right, Right, Right, Right, Left];
    let (path, words) = (Flexible::path, Flexible::words);
    figures::fit(&mut rows, call.out.width(), &[words(9, 12), path(3, 8), path(2, 8), words(9, 7)]);
    figures::table(sides, &rows).for_each(|line| call.out.line(line));
    if more > 0 {
        call.out.line(figures::more(more, &command(format_args!("snapshot list{} -v", directory::dir(directory)))));
    }
}

fn row(row: &Row) -> [String; 10] {
    let Row { counts, message, .. } = row;
    [
        row.n.to_string(),
        figures::day(row.time),
        row.label.clone().unwrap_or_default(),
        who(row.by.as_ref()),
        figures::grouped(counts.added),
        figures::grouped(counts.modified),
        figures::grouped(counts.deleted),
        figures::bytes(counts.bytes),
        figures::bytes(counts.stored),
        message.as_deref().and_then(|text| text.lines().next()).map(shown).unwrap_or_default(),
    ]
}

/// Lists the directories that have snapshots. True if those of some are unknown.
fn directories(call: &Call, listed: &Directories) -> bool {
    let Directories { directories, damaged } = listed;
    if !call.out.is_text() {
        call.out.document(listed);
        return !damaged.is_empty();
    }
    let head = ["SNAPSHOTS", "SIZE", "DIRECTORY", ""].map(str::to_owned);
    let (first, more) = cut(directories.len(), call.out.limit());
    let line = |of: &Directory| {
        let gone = if of.there { String::new() } else { "(no longer there)".into() };
        [of.snapshots.to_string(), figures::bytes(of.bytes), call.out.place(&of.directory), gone]
    };
    let mut lines: Vec<_> = [head].into_iter().chain(directories[..first].iter().map(line)).collect();
    figures::fit(&mut lines, call.out.width(), &[Flexible::path(2, 20)]);
    if directories.is_empty() {
        call.out.note("there are no snapshots");
    } else {
        figures::table([Side::Right, Side::Right, Side::Left, Side::Left], &lines).for_each(|line| call.out.line(line));
    }
    if more > 0 {
        call.out.line(figures::more(more, &command("snapshot list --all -v")));
    }
    for name in damaged {
        call.out.warn(format_args!("snapshots/{name}: the directory of these snapshots is unknown"));
    }
    !damaged.is_empty()
}
