//! How the screen looks.

mod difference;
mod parts;
mod popup;
mod tree;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use self::difference::difference;
use self::popup::draw_popup;
use self::tree::tree;
use crate::compare::{columns, cut_off, padded};
use crate::face::screen::confirmation::count;
use crate::face::screen::state::{Focus, Mode, SMALLEST, Screen, WIDE};
use crate::face::screen::world::{Place, ViewedChanges};

/// Columns of the tree beside the difference, in eighths of the window.
const TREE: u16 = 3;

pub fn screen(screen: &mut Screen<'_>, frame: &mut Frame<'_>) {
    let area = frame.area();
    screen.width = area.width;
    screen.is_small = area.width < SMALLEST.0 || area.height < SMALLEST.1;
    if screen.is_small {
        return too_small(frame, area);
    }
    let [bar, body, said, keys] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1), Constraint::Length(1)]).areas(area);
    title(screen, frame, bar);
    let is_alone = screen.focus == Focus::Difference && area.width < WIDE;
    if is_alone {
        difference(screen, frame, body);
    } else {
        let width = (area.width * TREE / 8).clamp(34, 70);
        let [left, line, right] =
            Layout::horizontal([Constraint::Length(width), Constraint::Length(1), Constraint::Min(1)]).areas(body);
        tree(screen, frame, left);
        let bars = vec![Line::styled("│", screen.theme.faint()); usize::from(line.height)];
        frame.render_widget(Paragraph::new(bars), line);
        difference(screen, frame, right);
    }
    message_line(screen, frame, said);
    help_line(screen, frame, keys);
    draw_popup(screen, frame, body);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let lines = [
        format!("The window has {} columns and {} rows.", area.width, area.height),
        format!("recant review needs {} and {}: make it larger, or press q.", SMALLEST.0, SMALLEST.1),
    ];
    frame.render_widget(Paragraph::new(lines.map(Line::from).to_vec()), area);
}

/// The first line: what is looked at, how it stands, how much it is.
fn title(screen: &Screen<'_>, frame: &mut Frame<'_>, area: Rect) {
    let ViewedChanges { title, state, about, changes, .. } = &screen.seen;
    let place = match &screen.place {
        Place::Whole => String::new(),
        Place::Step(n) => format!(", step {n}"),
        Place::Turn(n) => format!("turn {n} of "),
    };
    let title = if matches!(screen.place, Place::Turn(_)) { format!("{place}{title}") } else { format!("{title}{place}") };
    let totals = screen.outline.totals();
    let kinds = [(totals.created, "+"), (totals.modified, "~"), (totals.deleted, "-")];
    let kinds: Vec<String> = kinds.iter().filter(|(n, _)| *n > 0).map(|(n, sign)| format!("{sign}{n}")).collect();
    let chosen = match screen.chosens.count() {
        0 => String::new(),
        n => format!("  {n} chosen"),
    };
    let right = format!("{}  {}{chosen} ", count(changes.len(), "change"), kinds.join(" "));
    let width = usize::from(area.width);
    let left = format!(" {title}  {state}  {about}");
    let left = padded(&cut_off(&left, width.saturating_sub(columns(&right) + 1)), width.saturating_sub(columns(&right)));
    frame.render_widget(Paragraph::new(Line::styled(format!("{left}{right}"), screen.theme.bar())), area);
}

/// The line above the keys: what was said last, or how much is chosen.
fn message_line(screen: &Screen<'_>, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width).saturating_sub(1);
    let line = match (&screen.mode, &screen.message) {
        (Mode::Finding(text), _) => Line::from(format!(" /{text}█")),
        (_, Some((true, text))) => Line::styled(format!(" ! {}", cut_off(text, width.saturating_sub(3))), screen.theme.bad()),
        (_, Some((false, text))) => Line::from(format!(" {}", cut_off(text, width))),
        _ if !screen.seen.notes.is_empty() => {
            let text = format!(" {} not among the changes: i", count(screen.seen.notes.len(), "thing"));
            Line::styled(cut_off(&text, width), screen.theme.faint())
        }
        _ => Line::from(""),
    };
    frame.render_widget(Paragraph::new(line), area);
}

/// The line of keys that fit what can be done.
fn help_line(screen: &Screen<'_>, frame: &mut Frame<'_>, area: Rect) {
    let may = screen.seen.may;
    let keys: Vec<(&str, &str)> = match (&screen.mode, screen.focus) {
        (Mode::Asking(ask), _) if ask.typing.is_some() => vec![("Enter", "keep it"), ("Esc", "back")],
        (Mode::Asking(_), _) => vec![("y", "yes"), ("n", "no")],
        (Mode::Reading { .. } | Mode::Helping(_), _) => vec![("j k", "scroll"), ("q", "back")],
        (Mode::Listing(list), _) => list.of.keys().to_vec(),
        (Mode::Finding(_), _) => vec![("Enter", "look for it"), ("Esc", "back")],
        (Mode::Usual, focus) => {
            let can = screen.can_choose() && !screen.seen.changes.is_empty();
            let mut keys = match focus {
                Focus::Tree if screen.change().is_none() => vec![("Enter", "fold")],
                Focus::Tree => vec![("Enter", "look")],
                Focus::Difference => vec![("]", "next block"), ("|", "side by side")],
            };
            if can {
                keys.insert(0, ("Space", "choose"));
                keys.extend([("A", "all")].into_iter().filter(|_| focus == Focus::Tree));
                keys.extend([("l", "lines")].into_iter().filter(|_| focus == Focus::Difference));
                let clashes = screen.change().is_some_and(|i| screen.conflicts[i]);
                keys.extend([("m", "merge")].into_iter().filter(|_| may.choose && clashes));
                keys.extend([("c", "commit")].into_iter().filter(|_| may.commit));
                keys.extend([("d", "discard")].into_iter().filter(|_| may.discard));
                keys.extend([("r", "roll back")].into_iter().filter(|_| may.roll_back));
                keys.extend([("r", "restore")].into_iter().filter(|_| may.restore));
            }
            keys.extend([("s", "steps")].into_iter().filter(|_| may.steps));
            keys.push(("?", "help"));
            let out = if screen.further > 0 { "next" } else { "quit" };
            keys.push(("q", if focus == Focus::Tree && screen.place == Place::Whole { out } else { "back" }));
            keys
        }
    };
    let mut spans = vec![Span::raw(" ")];
    for (key, what) in fitting(keys, usize::from(area.width).saturating_sub(1)) {
        spans.push(Span::styled(key.to_owned(), screen.theme.key()));
        spans.push(Span::raw(format!(" {what}  ")));
    }
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

/// The keys that fit: those at the end, help and the way out, in any case.
fn fitting<'k>(mut keys: Vec<(&'k str, &'k str)>, width: usize) -> Vec<(&'k str, &'k str)> {
    let wide = |keys: &[(&str, &str)]| keys.iter().map(|(key, what)| columns(key) + columns(what) + 3).sum::<usize>();
    while keys.len() > 2 && wide(&keys) > width + 2 {
        keys.remove(keys.len() - 3);
    }
    keys
}
