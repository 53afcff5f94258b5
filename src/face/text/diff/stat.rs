//! `diff --stat`: lines counted, as git's `--stat` shows them.

use anstyle::AnsiColor;

use crate::compare::{Form, View, columns, counts, cut, padded, shortened};
use crate::face::call::Call;
use crate::face::figures;
use crate::face::text::acts;
use crate::face::text::summary::Together as Many;
use crate::tree::Danger;

/// A line of the table.
pub struct Row {
    path: String,
    /// Insertions and deletions, or the text in place of them.
    what: Result<(usize, usize), String>,
    /// Rights that it gives, and programs that obey it, if the line does not show them.
    notes: Option<String>,
    danger: Option<Danger>,
    /// The words in all lengths, if it stands for many changes.
    many: Option<Many>,
}

/// The words for changes that have no lines of their own.
#[derive(Default)]
pub struct Together {
    pub lines: Vec<Many>,
    /// Repositories that lose commits, with the words for it.
    pub histories: Vec<(String, String)>,
    /// The number of changes in them.
    pub changes: u64,
    /// The command that gives each a line.
    pub full: String,
    /// Remarks before a patch.
    pub remarks: Vec<String>,
}

/// Prints ready lines, what is dangerous first, then what is told together, and the totals: `output.paths` lines, all with `-v`. The command
/// `whole` shows all.
pub fn table(call: &Call, mut rows: Vec<Row>, together: Together, whole: &str) {
    rows.sort_by_key(|row| Danger::place(row.danger));
    let (count, more) = cut(rows.len(), call.out.limit());
    let (shown, others) = rows.split_at(count);
    let groups: Vec<Row> = together.lines.into_iter().map(Row::of_many).collect();
    let histories: Vec<Row> = together.histories.into_iter().map(Row::of_history).collect();
    let (some, groups_more) = cut(groups.len(), call.out.limit());
    let groups = &groups[..some];
    let counted = || shown.iter().filter_map(|row| row.what.as_ref().ok()).map(|(a, b)| a + b);
    let most = counted().max().unwrap_or(0);
    let parts = Columns::of(call.out.width(), || histories.iter().chain(shown).chain(groups), most);
    let Columns { name, graph: room, digits, .. } = parts;
    let print = |row: &Row| {
        let what = match &row.what {
            Ok((insertions, deletions)) => {
                let graph = graph(call, *insertions, *deletions, most, room);
                format!("{:>digits$} {graph}", grouped(insertions + deletions))
            }
            Err(what) => row.many.as_ref().map_or_else(|| shortened(what, parts.rest()), |many| many.within(parts.rest())),
        };
        let path = padded(&shortened(&row.path, name), name);
        call.out.line(format!(" {path} | {what}").trim_end());
        if let Some(notes) = &row.notes {
            call.out.line(format_args!(" {} | {}", " ".repeat(name), shortened(notes, parts.rest())));
        }
    };
    histories.iter().chain(shown).for_each(print);
    if more > 0 {
        call.out.line(format_args!(" {}", figures::more(more, whole)));
    }
    groups.iter().for_each(print);
    if groups_more > 0 {
        call.out.line(format_args!(" {}", figures::more(groups_more, whole)));
    }
    let sum = rows.iter().filter_map(|row| row.what.as_ref().ok()).fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    call.out.line(totals(rows.len(), sum));
    if together.changes > 0 {
        let changes = figures::grouped(together.changes);
        call.out.line(format_args!(" and {changes} changes summed up: {}", together.full));
    }
    acts::marked(&call.out, others.iter().filter(|row| row.danger.is_some()).count());
}

impl Row {
    fn of_history((path, words): (String, String)) -> Self {
        Self { path, what: Err(words), notes: None, danger: None, many: None }
    }

    fn of_many(many: Many) -> Self {
        Self { path: many.name.clone(), what: Err(many.whole()), notes: None, danger: None, many: Some(many) }
    }
}

/// The widths of a line's parts: ` NAME | DIGITS GRAPH`.
struct Columns {
    width: usize,
    name: usize,
    digits: usize,
    graph: usize,
}

impl Columns {
    /// If not all fits, the graph gets three eighths, and the names the rest: diff.c of git, show_stats().
    fn of<'r, R: Iterator<Item = &'r Row>>(width: usize, rows: impl Fn() -> R, most: usize) -> Self {
        let names = rows().map(|row| columns(&row.path)).max().unwrap_or(0);
        let digits = grouped(most).len();
        // With -v a line may have any length, but a graph may not.
        let width = width.min(10_000);
        let room = width.saturating_sub(digits + 5);
        let said = rows().filter_map(|row| row.what.as_ref().err()).map(|what| columns(what)).max().unwrap_or(0);
        let right = most.max(said.saturating_sub(digits + 1));
        let least = right.min(room * 3 / 8).max(right.min(6));
        let name = names.min(room.saturating_sub(least)).max(names.min(10));
        Self { width, name, digits, graph: room.saturating_sub(name).clamp(6, 80) }
    }

    fn rest(&self) -> usize {
        self.width.saturating_sub(self.name + 4).max(10)
    }
}

pub fn row(call: &Call, view: &View<'_>, form: Form) -> Row {
    let what = match counts(view, form) {
        _ if view.whole && view.is_binary() => {
            Err(format!("Bin {} -> {} bytes", figures::grouped(view.old.size()), figures::grouped(view.new.size())))
        }
        Some((0, 0)) if !view.remarks.is_empty() => Err(view.remarks.join("; ")),
        Some((0, 0)) => view.mode_change().map_or(Ok((0, 0)), Err),
        Some(counts) => Ok(counts),
        None => Err(view.remarks.join("; ")),
    };
    let said = what.as_ref().is_err_and(|what| view.rights.iter().all(|right| what.contains(right)));
    let rights = view.rights.iter().filter(|_| !said).cloned();
    let obeyed = view.danger.filter(|danger| matches!(danger, Danger::Obeyed(_))).map(|danger| danger.to_string());
    let notes: Vec<String> = rights.chain(obeyed).collect();
    let notes = (!notes.is_empty()).then(|| notes.join("; "));
    let from = view.from.as_ref().map(|from| format!("{} => ", call.out.shown(from.path)));
    Row { path: from.unwrap_or_default() + &call.out.shown(view.path), what, notes, danger: view.danger, many: None }
}

/// `+` and `-`, scaled to `width` if the largest count is larger. A count above 0 keeps a character.
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

/// A number with commas, as everywhere in recant; git has none.
fn grouped(n: usize) -> String {
    figures::grouped(n as u64)
}

/// The last line, as git writes it.
fn totals(files: usize, (insertions, deletions): (usize, usize)) -> String {
    let s = |n| if n == 1 { "" } else { "s" };
    let mut text = format!(" {} file{} changed", grouped(files), s(files));
    if insertions > 0 || deletions == 0 {
        text.push_str(&format!(", {} insertion{}(+)", grouped(insertions), s(insertions)));
    }
    if deletions > 0 || insertions == 0 {
        text.push_str(&format!(", {} deletion{}(-)", grouped(deletions), s(deletions)));
    }
    text
}
