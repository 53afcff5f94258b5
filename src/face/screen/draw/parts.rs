//! Pieces that the tree and the difference share: the rows that fit, the row under the cursor, the side of a change.

use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::face::screen::state::Screen;

/// The first row to be shown so that the cursor is among those that fit, with one beside it where there is one.
pub fn scrolled(top: usize, at: usize, count: usize, fits: usize) -> usize {
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

/// A row under the cursor: one bar, in which only what is marked in the text stands out.
pub fn under_cursor<'s>(screen: &Screen<'_>, spans: Vec<Span<'s>>) -> Line<'s> {
    let plain = |span: Span<'s>| {
        let marks = span.style.add_modifier.intersection(Modifier::BOLD | Modifier::UNDERLINED);
        span.style(screen.theme.cursor(true).add_modifier(marks))
    };
    Line::from(spans.into_iter().map(plain).collect::<Vec<_>>())
}

/// The word for a change that is on the tree, where others are not.
pub fn side_of(screen: &Screen<'_>, i: usize) -> Option<&'static str> {
    let side = screen.seen.sides.get(i).filter(|side| side.is_in())?;
    screen.seen.sides.iter().any(|other| other != side).then_some("committed")
}
