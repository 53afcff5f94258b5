//! Words for what is to be pruned: the preview, and the questions.

use crate::error::command;
use crate::face::figures;
use crate::face::out::Out;
use crate::face::text::heads::heads;
use crate::session::{Header, Id, is_needed};
use crate::verb::error::{all_kinds, sessions};
use crate::verb::{All, Kind, Loss, Prune};

/// The lines for each of three kinds; more would not be read.
const EACH: usize = 6;

/// The first of each kind that goes.
pub fn lines(out: &Out, plan: &All) -> Vec<String> {
    let whole = command("prune --dry-run -v");
    let most = if out.is_verbose() { usize::MAX } else { EACH };
    let mut lines = Vec::new();
    for (part, kind, also) in [
        (&plan.sessions, Kind::Sessions, "finished; they can then not be redone"),
        (&plan.checkpoints, Kind::Checkpoints, "no rollback needs them"),
    ] {
        if !part.headers.is_empty() {
            lines.push(format!("{}: {also}", sessions(kind, part.headers.len() as u64)));
            let heads = heads(out, &part.headers.iter().collect::<Vec<_>>(), most, &whole);
            lines.extend(heads.into_iter().map(|head| format!("  {head}")));
        }
    }
    if let Some(more) = plan.snapshots.len().checked_sub(1) {
        let [.., count] = plan.counts();
        lines.push(format!("{}: over snapshot.keep or snapshot.max_size", figures::count(count, "snapshot")));
        for of in plan.snapshots.iter().take(most) {
            let count = figures::count(of.pruned.len() as u64, "snapshot");
            lines.push(format!("  {}: {count}, {}", out.place(&of.directory), figures::bytes(of.bytes)));
        }
        if more >= most {
            lines.push(format!("  {}", figures::more(more + 1 - most, &whole)));
        }
    }
    lines
}

/// The words of a question; what it is about is shown before.
pub fn question(out: &Out, prune: &Prune<'_>) -> String {
    match prune {
        Prune::Chosen { kind, headers, bytes } => chosen(out, *kind, headers, *bytes),
        Prune::Named { kind, ids, loss } => named(*kind, ids, *loss),
        Prune::Snapshots { directory, numbers } => {
            const NAMED: usize = 5;
            let first: Vec<String> = numbers.iter().take(NAMED).map(u64::to_string).collect();
            let more = match numbers.len().saturating_sub(NAMED) as u64 {
                0 => String::new(),
                more => format!(" and {} more", figures::grouped(more)),
            };
            let word = if numbers.len() == 1 { "snapshot" } else { "snapshots" };
            format!("Prune {word} {}{more} of {}?", first.join(", "), out.place(directory))
        }
        Prune::Series { directory, count, bytes } => {
            let count = figures::count(*count as u64, "snapshot");
            format!("Drop all of {directory}: {count}, {}?", figures::bytes(*bytes))
        }
        Prune::All(plan) => format!("Prune {}, {}?", all_kinds(plan.counts()), figures::bytes(plan.bytes)),
    }
}

fn chosen(out: &Out, kind: Kind, headers: &[Header], bytes: u64) -> String {
    let whole = command(format_args!("prune {} --dry-run", kind.option()));
    heads(out, &headers.iter().collect::<Vec<_>>(), out.limit(), &whole).into_iter().for_each(|line| out.say(line));
    let also = match (headers.iter().filter(|header| is_needed(header)).count(), kind) {
        (0, Kind::Sessions) => "; they can then not be redone".into(),
        (0, _) => String::new(),
        (1, _) => "; 1 is committed, and then cannot be rolled back".into(),
        (count, _) => format!("; {count} are committed, and then cannot be rolled back"),
    };
    format!("Prune {}, {}{also}?", sessions(kind, headers.len() as u64), figures::bytes(bytes))
}

fn named(kind: Kind, ids: &[Id], loss: Loss) -> String {
    let ids = ids.iter().map(Id::to_string).collect::<Vec<_>>().join(", ");
    let also = match loss {
        Loss::Redo if kind == Kind::Sessions => ", finished; it can then not be redone",
        Loss::Redo => "",
        Loss::Rollback => ", which then cannot be rolled back",
        Loss::Held => ", with all that is held",
        Loss::Overwritten => ", with what --force overwrote",
        Loss::Damaged => ", which is damaged, with all that is in it",
    };
    format!("Prune {} {ids}{also}?", kind.word())
}
