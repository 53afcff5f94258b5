//! Draws the tree of changes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::parts::{scrolled, side_of, under_cursor};
use crate::compare::{columns, padded, shortened};
use crate::face::screen::state::{Counted, Focus, Listed, Screen};
use crate::session::{Change, Sort};
use crate::tree::What;

type Styled = Vec<(String, Style)>;

pub fn tree(screen: &mut Screen<'_>, frame: &mut Frame<'_>, area: Rect) {
    let fits = usize::from(area.height);
    screen.fits.0 = fits;
    screen.top = scrolled(screen.top, screen.at, screen.listed.len(), fits);
    let width = usize::from(area.width);
    let last = screen.listed.len().min(screen.top + fits);
    let lines: Vec<Line<'_>> = (screen.top..last).map(|n| tree_row(screen, n, width)).collect();
    if lines.is_empty() {
        let none = if screen.only_chosen { "nothing is chosen" } else { "no changes" };
        frame.render_widget(Paragraph::new(Line::styled(none, screen.theme.faint())), area);
        return;
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// A row of the tree: the sign of its choice, its kind, its name, and how much it is.
fn tree_row<'s>(screen: &Screen<'_>, n: usize, width: usize) -> Line<'s> {
    let theme = screen.theme;
    let (range, change, depth, label, folds) = match &screen.listed {
        Listed::Flat(rows) => {
            let i = rows[n];
            (i..i + 1, Some(i), 0, (screen.show)(&screen.seen.changes[i].path), None)
        }
        Listed::Tree(rows) if n < screen.raised => {
            let i = screen.outline.node(rows[n]).range.start;
            (i..i + 1, Some(i), 0, (screen.show)(&screen.seen.changes[i].path), None)
        }
        Listed::Tree(rows) => {
            let node = screen.outline.node(rows[n]);
            let folds = node.is_parent.then_some(node.is_folded);
            (node.range.clone(), node.is_change.then_some(node.range.start), node.depth, node.label.clone(), folds)
        }
    };
    let mut spans: Vec<(String, Style)> = Vec::new();
    if screen.can_choose() {
        spans.push((format!("{} ", screen.chosens.of(range.clone()).sign()), theme.chosen()));
    }
    // Depth shows up to a third of the row.
    spans.push(("  ".repeat(depth.min(width / 6)), Style::new()));
    spans.push(match folds {
        Some(true) => ("▸ ".into(), theme.strong()),
        Some(false) => ("▾ ".into(), theme.strong()),
        None => ("  ".into(), Style::new()),
    });
    let sort = change.map(|i| screen.seen.changes[i].sort());
    let style = sort.map_or(theme.strong(), |sort| theme.sort(sort));
    spans.extend(sort.map(|sort| (format!("{} ", sign(sort)), style)));
    // Of what lies in a folded directory its row tells.
    let stands_against = match folds {
        Some(true) => screen.conflicts[range.clone()].contains(&true),
        _ => change.is_some_and(|i| screen.conflicts[i] || screen.seen.changes[i].danger().is_some()),
    };
    spans.extend(stands_against.then(|| ("! ".to_owned(), theme.bad())));
    let right = match folds {
        Some(_) => amount_below(screen, range),
        None => amount(screen, change),
    };
    let taken: usize = spans.iter().map(|(text, _)| columns(text)).sum();
    let wide: usize = right.iter().map(|(text, _)| columns(text)).sum();
    let mixed = change.and_then(|i| side_of(screen, i)).map(|_| "✓ ");
    let room = width.saturating_sub(taken + wide + 1 + mixed.map_or(0, columns));
    spans.push((padded(&shortened(&label, room), room + 1), style));
    spans.extend(mixed.map(|text| (text.to_owned(), theme.faint())));
    spans.extend(right);
    let spans = spans.into_iter().map(|(text, style)| Span::styled(text, style)).collect();
    match (n == screen.at, screen.focus) {
        (false, _) => Line::from(spans),
        (true, Focus::Tree) => under_cursor(screen, spans),
        (true, Focus::Difference) => Line::from(spans).patch_style(theme.cursor(false)),
    }
}

fn sign(sort: Sort) -> &'static str {
    match sort {
        Sort::Created => "+",
        Sort::Modified => "~",
        Sort::Deleted => "-",
        Sort::Metadata => "m",
        Sort::Times => "t",
    }
}

/// Lines that came and went with a change; else its size.
fn amount(screen: &Screen<'_>, change: Option<usize>) -> Styled {
    let Some(i) = change else { return Vec::new() };
    match screen.counted[i] {
        Counted::Lines(came, went) if came + went > 0 => lines_of(screen, came, went),
        _ => size_of(&screen.seen.changes[i]).map(|text| (text, screen.theme.faint())).into_iter().collect(),
    }
}

fn lines_of(screen: &Screen<'_>, came: usize, went: usize) -> Styled {
    let [green, red] = screen.theme.counts();
    let plus = (came > 0).then(|| (format!("+{came}"), green));
    let minus = (went > 0).then(|| (format!("{}-{went}", if came > 0 { " " } else { "" }), red));
    plus.into_iter().chain(minus).collect()
}

/// The size or kind of what is there; of what is deleted, of what was.
fn size_of(change: &Change) -> Option<String> {
    let state = change.after.as_ref().or(change.before.object.as_ref())?;
    Some(match &state.what {
        What::File { size, .. } => crate::settings::bytes(*size),
        What::Directory => return None,
        What::Symlink { .. } => "link".into(),
        What::Fifo => "FIFO".into(),
        What::Socket => "socket".into(),
        What::Char(_) | What::Block(_) => "device".into(),
    })
}

/// The number of changes in a directory, and the sum of their lines if all are known.
fn amount_below(screen: &Screen<'_>, range: std::ops::Range<usize>) -> Styled {
    let (mut came, mut went, mut known) = (0, 0, true);
    for counted in &screen.counted[range.clone()] {
        match counted {
            Counted::Unknown => known = false,
            Counted::None => {}
            Counted::Lines(a, b) => (came, went) = (came + a, went + b),
        }
    }
    let mut styled = vec![(range.len().to_string(), screen.theme.faint())];
    if known && came + went > 0 {
        styled.push((" ".into(), Style::new()));
        styled.extend(lines_of(screen, came, went));
    }
    styled
}
