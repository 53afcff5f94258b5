//! `diff --stat`: lines counted, as git's `--stat` shows them.

use anstyle::AnsiColor;

use super::super::problem::Problem;
use super::super::sides::Sources;
use super::super::{Call, Ended, args};
use super::patch;
use super::view::View;
use crate::fs::path::AbsPath;
use crate::session::change::{Change, Sort};
use crate::session::sides::Side;

/// Columns where no terminal tells.
const WIDTH: usize = 80;

/// A line.
pub struct Row<'c> {
    path: &'c AbsPath,
    /// Characters of it as it is shown.
    columns: usize,
    /// Insertions and deletions, or what else there is to say.
    what: Result<(usize, usize), String>,
}

/// Prints a line a change, and the totals.
pub fn print(call: &Call, args: &args::Diff, listed: &[(&Change, Side)], sources: &mut Sources) -> Result<Ended, Problem> {
    let (mut rows, mut times, mut conflicts) = (Vec::new(), 0, 0);
    for (change, side) in listed {
        if change.sort() == Sort::Times && !args.much.all {
            times += 1;
            continue;
        }
        let view = View::of(change, *side, sources, true)?;
        conflicts += u64::from(view.conflict);
        rows.push(row(&view));
    }
    table(call, &rows);
    if times > 0 {
        call.out.note(super::times_folded(times));
    }
    super::say_conflicts(call, conflicts, sources.tail());
    Ok(Ended::Done)
}

/// Prints lines that are ready, and the totals.
pub fn table(call: &Call, rows: &[Row<'_>]) {
    let names = rows.iter().map(|row| row.columns).max().unwrap_or(0);
    let most = rows.iter().filter_map(|row| row.what.as_ref().ok()).map(|(a, b)| a + b).max().unwrap_or(0);
    let digits = most.to_string().len();
    let width = terminal_width().saturating_sub(names + digits + 5).max(10);
    for row in rows {
        let what = match &row.what {
            Ok((insertions, deletions)) => {
                let graph = graph(call, *insertions, *deletions, most, width);
                format!("{:>digits$} {graph}", insertions + deletions)
            }
            Err(what) => what.clone(),
        };
        let blanks = names - row.columns;
        call.out.line(format!(" {}{} | {what}", row.path, " ".repeat(blanks)).trim_end());
    }
    let sum = rows.iter().filter_map(|row| row.what.as_ref().ok()).fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    call.out.line(totals(rows.len(), sum));
}

/// The line of a change.
pub fn row<'c>(view: &View<'c>) -> Row<'c> {
    let what = match patch::counts(view) {
        _ if view.whole && view.is_binary() => Err(format!("Bin {} -> {} bytes", view.old.size(), view.new.size())),
        Some((0, 0)) if !view.remarks.is_empty() => Err(view.remarks.join("; ")),
        Some(counts) => Ok(counts),
        None => Err(view.remarks.join("; ")),
    };
    Row { path: view.path, columns: view.path.to_string().chars().count(), what }
}

/// `+` and `-`, scaled to `width` where the largest count is larger; none that counts goes away.
fn graph(call: &Call, insertions: usize, deletions: usize, most: usize, width: usize) -> String {
    let scaled = |n: usize| if most <= width || n == 0 { n } else { (n * width / most).max(1) };
    let plus = call.out.paint(AnsiColor::Green.on_default(), "+".repeat(scaled(insertions)));
    let minus = call.out.paint(AnsiColor::Red.on_default(), "-".repeat(scaled(deletions)));
    match (insertions, deletions) {
        (0, 0) => String::new(),
        (_, 0) => plus,
        (0, _) => minus,
        _ => plus + &minus,
    }
}

/// git's last line.
fn totals(files: usize, (insertions, deletions): (usize, usize)) -> String {
    let s = |n| if n == 1 { "" } else { "s" };
    let mut text = format!(" {files} file{} changed", s(files));
    if insertions > 0 || deletions == 0 {
        text.push_str(&format!(", {insertions} insertion{}(+)", s(insertions)));
    }
    if deletions > 0 || insertions == 0 {
        text.push_str(&format!(", {deletions} deletion{}(-)", s(deletions)));
    }
    text
}

fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    // As git has it; from another machine it comes so.
    let told = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    size.or_else(told).unwrap_or(WIDTH).max(40)
}
