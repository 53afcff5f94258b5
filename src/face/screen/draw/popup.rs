//! Draws what lies over the screen: a question, a text, a list.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::parts::scrolled;
use crate::compare::{columns, cut_off, padded};
use crate::face::screen::confirmation::Ask;
use crate::face::screen::keys::KEYS;
use crate::face::screen::side_list::List;
use crate::face::screen::state::{Mode, Screen};
use crate::face::screen::theme::Theme;

/// Draws a question, a text or a list over the rest.
pub fn draw_popup(screen: &mut Screen<'_>, frame: &mut Frame<'_>, body: Rect) {
    let theme = screen.theme;
    match &mut screen.mode {
        Mode::Usual | Mode::Finding(_) => {}
        Mode::Asking(ask) => {
            let width = usize::from(body.width).saturating_sub(8).min(76);
            let foot = foot(ask, width, theme);
            let Ask { question, lines, top, .. } = ask;
            let mut shown: Vec<Line<'_>> = lines.iter().flat_map(|line| wrapped(line, width)).map(Line::from).collect();
            popup(frame, body, question, &mut shown, top, foot, theme.strong());
        }
        Mode::Reading { title, lines, top } => {
            let width = usize::from(body.width).saturating_sub(8).min(96);
            let mut shown: Vec<Line<'_>> = lines.iter().flat_map(|line| wrapped(line, width)).map(Line::from).collect();
            popup(frame, body, title, &mut shown, top, Vec::new(), theme.strong());
        }
        Mode::Helping(top) => {
            let mut shown = Vec::new();
            for (group, keys) in KEYS {
                shown.push(Line::styled(group, theme.strong()));
                shown.extend(keys.iter().map(|key| {
                    Line::from(vec![Span::styled(format!("  {}", padded(key.name, 8)), theme.key()), Span::raw(key.what)])
                }));
            }
            shown.push(Line::styled("Signs", theme.strong()));
            let signs = [
                ("[x] [~]", "chosen, chosen in part"),
                ("+ ~ -", "created, modified, deleted"),
                ("m t", "metadata alone, time alone"),
                ("✓", "committed, where others are still held"),
                ("!", "a conflict, which m may merge; or programs run it"),
            ];
            shown.extend(signs.map(|(sign, what)| {
                Line::from(vec![Span::styled(format!("  {}", padded(sign, 8)), theme.key()), Span::raw(what)])
            }));
            popup(frame, body, "Keys", &mut shown, top, Vec::new(), theme.strong());
        }
        Mode::Listing(list) => listing(frame, body, list, theme),
    }
}

/// The lines below a question: the reason, and the answers.
fn foot(ask: &mut Ask, width: usize, theme: Theme) -> Vec<Line<'static>> {
    if let Some(typed) = &ask.typing {
        let room = width.saturating_sub(columns("reason: █"));
        let text = format!("reason: {}█", last_of(typed, room));
        return vec![Line::from(padded(&text, width))];
    }
    let mut answers = vec![("y", " yes   "), ("n", " no, back")];
    let mut lines = Vec::new();
    if let Some(reason) = ask.reason() {
        answers.insert(1, ("m", if reason.is_some() { " another reason   " } else { " give a reason   " }));
        let given = reason.iter().flat_map(|text| wrapped(&format!("reason: {text}"), width));
        lines.extend(given.map(|line| Line::styled(line, theme.strong())));
    }
    let spans = answers.into_iter().flat_map(|(key, what)| [Span::styled(key, theme.key()), Span::raw(what)]);
    lines.push(Line::from(spans.collect::<Vec<_>>()));
    lines
}

/// The end of a text, in at most `width` columns.
fn last_of(text: &str, width: usize) -> &str {
    let starts = text.char_indices().map(|(at, _)| &text[at..]);
    starts.into_iter().find(|rest| columns(rest) <= width).unwrap_or_default()
}

fn listing(frame: &mut Frame<'_>, body: Rect, list: &List, theme: Theme) {
    let mut widths: Vec<usize> = list.heads.iter().map(|head| columns(head)).collect();
    for row in &list.rows {
        for (width, text) in widths.iter_mut().zip(&row.columns) {
            *width = (*width).max(columns(text));
        }
    }
    let room = usize::from(body.width).saturating_sub(8);
    let line = |texts: &[String]| {
        let cells: Vec<String> = texts.iter().zip(&widths).map(|(text, width)| padded(text, *width)).collect();
        cut_off(cells.join("  ").trim_end(), room)
    };
    let fits = usize::from(body.height).saturating_sub(5);
    let top = scrolled(0, list.at, list.rows.len(), fits);
    let mut shown = vec![Line::styled(format!("  {}", line(&list.heads)), theme.faint())];
    for (n, row) in list.rows.iter().enumerate().skip(top).take(fits) {
        let head = if row.is_head { "* " } else { "  " };
        let style = if n == list.at { theme.cursor(true) } else { Style::new() };
        shown.push(Line::styled(format!("{head}{}", line(&row.columns)), style));
    }
    popup(frame, body, list.of.title(), &mut shown, &mut 0, Vec::new(), theme.strong());
}

/// Text in a frame over the middle of `body`; `top` is kept within what there is. `foot` stands below it in any case.
fn popup(
    frame: &mut Frame<'_>,
    body: Rect,
    title: &str,
    lines: &mut Vec<Line<'_>>,
    top: &mut usize,
    foot: Vec<Line<'static>>,
    style: Style,
) {
    let widest = lines.iter().chain(&foot).map(Line::width).max().unwrap_or(0).max(columns(title) + 2);
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).clamp(40.min(body.width), body.width);
    let below = if foot.is_empty() { 0 } else { foot.len() + 1 };
    let most = usize::from(body.height).saturating_sub(2 + below);
    let fits = lines.len().min(most);
    *top = (*top).min(lines.len() - fits);
    let height = u16::try_from(fits + below + 2).unwrap_or(u16::MAX);
    let area = Rect {
        x: body.x + (body.width - width) / 2,
        y: body.y + (body.height.saturating_sub(height)) / 2,
        width,
        height: height.min(body.height),
    };
    let more = lines.len() - fits - *top;
    let mut block =
        Block::bordered().title(Line::styled(format!(" {} ", cut_off(title, usize::from(width).saturating_sub(4))), style));
    if more > 0 {
        block = block.title_bottom(format!(" {more} more lines: j "));
    }
    let mut shown: Vec<Line<'_>> = lines.drain(*top..*top + fits).collect();
    if !foot.is_empty() {
        shown.push(Line::from(""));
        shown.extend(foot);
    }
    frame.render_widget(Clear, area);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let inner = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    frame.render_widget(Paragraph::new(shown), inner);
}

/// `text` in lines of at most `width` columns, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let last = lines.last().map_or(0, |line| columns(line));
        if last > 0 && last + columns(word.trim_end()) > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines.iter().map(|line| cut_off(line.trim_end(), width)).collect()
}
