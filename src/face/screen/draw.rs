//! How the screen looks.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::ask::Ask;
use super::ask::count;
use super::choice::Much;
use super::facts::{Place, Seen};
use super::keys::KEYS;
use super::list::List;
use super::rows::Row;
use super::screen::{Counted, Focus, Listed, Mode, SMALLEST, Screen, WIDE};
use super::sheet::{Kind, Line as Shown, Sheet};
use crate::compare::shown::columns;
use crate::compare::shown::cut_off;
use crate::compare::shown::padded;
use crate::compare::shown::shortened;
use crate::session::change::{Change, Sort};
use crate::tree::state::What;

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
    said_last(screen, frame, said);
    help_line(screen, frame, keys);
    over(screen, frame, body);
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
    let Seen { title, state, about, changes, .. } = &screen.seen;
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

/// The first row to be shown so that the cursor is among those that fit, with one beside it where there is one.
fn scrolled(top: usize, at: usize, count: usize, fits: usize) -> usize {
    let fits = fits.max(1);
    let edge = usize::from(fits > 4);
    let top = top.min(count.saturating_sub(fits));
    if at < top + edge {
        at.saturating_sub(edge)
    } else if at + edge >= top + fits {
        (at + edge + 1).saturating_sub(fits).min(count.saturating_sub(fits))
    } else {
        top
    }
}

fn tree(screen: &mut Screen<'_>, frame: &mut Frame<'_>, area: Rect) {
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
        _ => change.is_some_and(|i| screen.conflicts[i]),
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

/// A row under the cursor: one bar, in which only what is marked in the text stands out.
fn under_cursor<'s>(screen: &Screen<'_>, spans: Vec<Span<'s>>) -> Line<'s> {
    let plain = |span: Span<'s>| {
        let marks = span.style.add_modifier.intersection(Modifier::BOLD | Modifier::UNDERLINED);
        span.style(screen.theme.cursor(true).add_modifier(marks))
    };
    Line::from(spans.into_iter().map(plain).collect::<Vec<_>>())
}

/// The word for a change that is on the tree, where others are not.
fn side_of(screen: &Screen<'_>, i: usize) -> Option<&'static str> {
    let side = screen.seen.sides.get(i).filter(|side| side.is_in())?;
    screen.seen.sides.iter().any(|other| other != side).then_some("committed")
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

type Styled = Vec<(String, Style)>;

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

fn difference(screen: &mut Screen<'_>, frame: &mut Frame<'_>, area: Rect) {
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
    let right = format!("  {word}{blocks}{side} ");
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
                format!("{} ", if chosen { Much::All } else { Much::None }.sign())
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

/// The line above the keys: what was said last, or how much is chosen.
fn said_last(screen: &Screen<'_>, frame: &mut Frame<'_>, area: Rect) {
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
            keys.push(("q", if focus == Focus::Tree && screen.place == Place::Whole { "quit" } else { "back" }));
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

/// Draws a question, a text or a list over the rest.
fn over(screen: &mut Screen<'_>, frame: &mut Frame<'_>, body: Rect) {
    let theme = screen.theme;
    match &mut screen.mode {
        Mode::Usual | Mode::Finding(_) => {}
        Mode::Asking(Ask { question, lines, top, .. }) => {
            let width = usize::from(body.width).saturating_sub(8).min(76);
            let mut shown: Vec<Line<'_>> = lines.iter().flat_map(|line| wrapped(line, width)).map(Line::from).collect();
            let answer = Line::from(vec![
                Span::styled("y", theme.key()),
                Span::raw(" yes   "),
                Span::styled("n", theme.key()),
                Span::raw(" no, back"),
            ]);
            popup(frame, body, question, &mut shown, top, Some(answer), theme.strong());
        }
        Mode::Reading { title, lines, top } => {
            let width = usize::from(body.width).saturating_sub(8).min(96);
            let mut shown: Vec<Line<'_>> = lines.iter().flat_map(|line| wrapped(line, width)).map(Line::from).collect();
            popup(frame, body, title, &mut shown, top, None, theme.strong());
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
                ("!", "a conflict, which m may merge; or it gives rights"),
            ];
            shown.extend(signs.map(|(sign, what)| {
                Line::from(vec![Span::styled(format!("  {}", padded(sign, 8)), theme.key()), Span::raw(what)])
            }));
            popup(frame, body, "Keys", &mut shown, top, None, theme.strong());
        }
        Mode::Listing(list) => listing(frame, body, list, theme),
    }
}

fn listing(frame: &mut Frame<'_>, body: Rect, list: &List, theme: super::theme::Theme) {
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
    popup(frame, body, list.of.title(), &mut shown, &mut 0, None, theme.strong());
}

/// Text in a frame over the middle of `body`; `top` is kept within what there is. `foot` stands below it in any case.
fn popup(
    frame: &mut Frame<'_>,
    body: Rect,
    title: &str,
    lines: &mut Vec<Line<'_>>,
    top: &mut usize,
    foot: Option<Line<'static>>,
    style: Style,
) {
    let widest = lines.iter().map(Line::width).max().unwrap_or(0).max(columns(title) + 2);
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).clamp(40.min(body.width), body.width);
    let below = if foot.is_some() { 2 } else { 0 };
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
    if let Some(foot) = foot {
        shown.extend([Line::from(""), foot]);
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
