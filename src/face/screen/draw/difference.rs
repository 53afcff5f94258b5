//! Draws the difference of a change.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::parts::{scrolled, side_of, under_cursor};
use crate::compare::{columns, cut_off, padded, shortened};
use crate::face::screen::confirmation::count;
use crate::face::screen::rows::Row;
use crate::face::screen::selection::Extent;
use crate::face::screen::sheet::{Kind, Line as Shown, Sheet};
use crate::face::screen::state::{Focus, Listed, Screen};
use crate::session::Sort;

pub fn difference(screen: &mut Screen<'_>, frame: &mut Frame<'_>, area: Rect) {
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    screen.fits.1 = usize::from(body.height);
    frame.render_widget(Paragraph::new(head_of(screen, usize::from(head.width))), head);
    let Some((i, sheet)) = screen.sheet.clone() else {
        let lines = if screen.is_waiting() { vec![Line::styled("reading …", screen.theme.faint())] } else { below(screen) };
        frame.render_widget(Paragraph::new(lines), body);
        return;
    };
    screen.row_top = scrolled(screen.row_top, screen.row, screen.rows.len(), usize::from(body.height));
    let digits = sheet.lines.iter().map(|line| line.old.max(line.new)).max().unwrap_or(0).to_string().len().max(2);
    let last = screen.rows.len().min(screen.row_top + usize::from(body.height));
    let drawing = Drawing { screen, sheet: &sheet, i, digits, width: usize::from(body.width) };
    let lines: Vec<Line<'_>> = (screen.row_top..last).map(|n| drawing.row(n)).collect();
    if lines.is_empty() {
        frame.render_widget(Paragraph::new(Line::styled("nothing to show: its content is the same", screen.theme.faint())), body);
        return;
    }
    frame.render_widget(Paragraph::new(lines), body);
}

/// The head of the difference: the path and what happened to it.
fn head_of<'s>(screen: &Screen<'_>, width: usize) -> Line<'s> {
    let active = screen.focus == Focus::Difference;
    let style = if active { screen.theme.bar() } else { screen.theme.strong() };
    let Some(i) = screen.change() else { return Line::from(" ") };
    let change = &screen.seen.changes[i];
    let blocks = match &screen.sheet {
        Some((_, sheet)) if sheet.blocks > 0 => format!(", {}", count(sheet.blocks, "block")),
        _ => String::new(),
    };
    let word = match change.sort() {
        Sort::Metadata => "metadata alone",
        Sort::Times => "time alone",
        sort => sort.word(),
    };
    let side = side_of(screen, i).map(|side| format!(", {side}")).unwrap_or_default();
    let danger = change.danger().map(|danger| format!(", {danger}")).unwrap_or_default();
    let right = format!("  {word}{blocks}{side}{danger} ");
    let room = width.saturating_sub(columns(&right) + 1);
    let path = shortened(&(screen.show)(&change.path), room);
    Line::styled(format!(" {}{right}", padded(&path, room)), style)
}

/// The changes below a directory, in numbers.
fn below<'s>(screen: &Screen<'_>) -> Vec<Line<'s>> {
    let Listed::Tree(rows) = &screen.listed else { return Vec::new() };
    let Some(node) = rows.get(screen.at).map(|n| screen.outline.node(*n)) else { return Vec::new() };
    let totals = node.totals;
    let counts = [("created", totals.created), ("modified", totals.modified), ("deleted", totals.deleted)];
    let counts = counts.iter().filter(|(_, n)| *n > 0).map(|(word, n)| Line::from(format!(" {n:>8} {word}")));
    let size = Line::from(format!(" {:>8} in all", crate::settings::bytes(totals.bytes)));
    let mut lines: Vec<Line<'s>> = vec![Line::from(format!(" {:>8} in this directory", totals.all()))];
    lines.extend(counts);
    lines.extend([size, Line::from("")]);
    let hint = if node.is_folded { " Enter unfolds it" } else { " Enter folds it" };
    lines.push(Line::styled(hint, screen.theme.faint()));
    lines
}

/// A difference, and all that its rows are drawn with.
struct Drawing<'d, 'w> {
    screen: &'d Screen<'w>,
    sheet: &'d Sheet,
    i: usize,
    digits: usize,
    width: usize,
}

impl Drawing<'_, '_> {
    fn row<'s>(&self, n: usize) -> Line<'s> {
        let row = self.screen.rows[n];
        let is_whole = |line: &Shown| !matches!(line.kind, Kind::Both | Kind::Old | Kind::New);
        let first = row.left.or(row.right).map(|i| &self.sheet.lines[i]);
        let mut spans = vec![self.choice(row, n)];
        match first {
            Some(line) if is_whole(line) => spans.extend(self.whole(line)),
            _ if self.screen.beside => {
                let half = self.width.saturating_sub(5) / 2;
                spans.extend(self.side(row.left, half, |line| line.old));
                spans.push(Span::styled("│", self.screen.theme.faint()));
                spans.extend(self.side(row.right, half, |line| line.new));
            }
            Some(line) => spans.extend(self.both(line)),
            None => {}
        }
        let is_cursor = n == self.screen.row && self.screen.focus == Focus::Difference;
        if is_cursor { under_cursor(self.screen, spans) } else { Line::from(spans) }
    }

    /// The sign of the choice: of a block at its first row, of a line where lines are chosen.
    fn choice<'s>(&self, row: Row, n: usize) -> Span<'s> {
        let screen = self.screen;
        let block = row.block(self.sheet);
        let before = n.checked_sub(1).map_or(0, |n| screen.rows[n].block(self.sheet));
        let here = screen.rows.get(screen.row).map_or(0, |row| row.block(self.sheet));
        let mark = match () {
            () if !screen.can_choose() => "    ".to_owned(),
            () if row.is_meta(self.sheet) => format!("{} ", screen.chosens.of_meta(self.i).sign()),
            () if block == 0 => "    ".to_owned(),
            () if screen.by_lines => {
                let chosen =
                    row.lines(self.sheet).filter(|line| line.block > 0).all(|line| screen.chosens.has_line(self.i, line));
                format!("{} ", if chosen { Extent::All } else { Extent::None }.sign())
            }
            () if block != before => {
                let lines = self.sheet.lines.iter().filter(|line| line.block == block).count();
                format!("{} ", screen.chosens.of_block(self.i, block, lines).sign())
            }
            () if block == here => "  ┃ ".to_owned(),
            () => "  │ ".to_owned(),
        };
        Span::styled(mark, screen.theme.chosen())
    }

    fn whole<'s>(&self, line: &Shown) -> Vec<Span<'s>> {
        let text: String = line.text.iter().map(|(_, text)| text.as_str()).collect();
        let sign = match line.kind {
            Kind::Gap => "⋯ ",
            Kind::Conflict => "! ",
            Kind::Right => "! gives rights: ",
            Kind::Meta => "metadata: ",
            Kind::Head => "── ",
            _ => "# ",
        };
        let text = slid(
            &format!("{sign}{text}"),
            if line.kind == Kind::Gap { 0 } else { self.screen.column },
            self.width.saturating_sub(4),
        );
        vec![Span::styled(text, self.screen.theme.line(line.kind, false))]
    }

    /// A line with its numbers on both sides.
    fn both<'s>(&self, line: &Shown) -> Vec<Span<'s>> {
        let number = |n: usize| if n == 0 { " ".repeat(self.digits) } else { format!("{n:>0$}", self.digits) };
        let head = format!("{} {} ", number(line.old), number(line.new));
        let room = self.width.saturating_sub(4 + head.len() + 1);
        let mut spans = vec![Span::styled(head, self.screen.theme.faint())];
        spans.extend(self.text(line, room));
        spans
    }

    fn side<'s>(&self, i: Option<usize>, width: usize, number: impl Fn(&Shown) -> usize) -> Vec<Span<'s>> {
        let Some(line) = i.map(|i| &self.sheet.lines[i]) else { return vec![Span::raw(" ".repeat(width))] };
        let head = format!("{:>1$} ", number(line), self.digits);
        let room = width.saturating_sub(head.len() + 1);
        let mut spans = vec![Span::styled(head, self.screen.theme.faint())];
        spans.extend(self.text(line, room));
        let taken: usize = spans.iter().map(|span| columns(&span.content)).sum();
        spans.push(Span::raw(" ".repeat(width.saturating_sub(taken))));
        spans
    }

    /// The sign of a line and its text, in at most `room` columns behind the sign.
    fn text<'s>(&self, line: &Shown, room: usize) -> Vec<Span<'s>> {
        let theme = self.screen.theme;
        let sign = match line.kind {
            Kind::Old => "-",
            Kind::New => "+",
            _ => " ",
        };
        let mut spans = vec![Span::styled(sign, theme.line(line.kind, false))];
        let (mut skip, mut left) = (self.screen.column, room);
        for (marked, text) in &line.text {
            let wide = columns(text);
            if wide <= skip {
                skip -= wide;
                continue;
            }
            let shown = slid(text, std::mem::take(&mut skip), left);
            left = left.saturating_sub(columns(&shown));
            spans.push(Span::styled(shown, theme.line(line.kind, *marked)));
            if left == 0 {
                break;
            }
        }
        spans
    }
}

/// `text` from a column on, in at most `width` columns.
fn slid(text: &str, column: usize, width: usize) -> String {
    let mut skip = column;
    let rest: String = text
        .chars()
        .skip_while(|c| {
            let wide = columns(c.encode_utf8(&mut [0; 4]));
            let skipped = skip > 0;
            skip = skip.saturating_sub(wide);
            skipped
        })
        .collect();
    cut_off(&rest, width)
}
