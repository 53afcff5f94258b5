//! Prints a patch: in colour if wanted, and without bytes that would control a terminal.

use anstyle::{AnsiColor, Style};

use super::super::{Call, visible};
use crate::diff::patch::{self, Part};
use crate::diff::view::View;

/// Prints remarks, then the patch.
pub fn print(call: &Call, view: &View) {
    patch::write(view, &mut |part, line| {
        let line = match line.split_at_checked(1) {
            Some((sign, text)) if matches!(part, Part::Both | Part::Old | Part::New) => [sign, &*call.out.foreign(text)].concat(),
            _ => line.to_vec(),
        };
        call.out.bytes(&painted(call, style(part), &line));
    });
}

/// Prints a remark that belongs to no patch.
pub fn remark(call: &Call, text: &str) {
    call.out.bytes(&painted(call, style(Part::Remark), format!("# {}", visible::message(text)).as_bytes()));
}

fn style(part: Part) -> Style {
    match part {
        Part::Remark => AnsiColor::Yellow.on_default(),
        Part::Head => Style::new().bold(),
        Part::Place => AnsiColor::Cyan.on_default(),
        Part::Old => AnsiColor::Red.on_default(),
        Part::New => AnsiColor::Green.on_default(),
        Part::Both | Part::Note => Style::new(),
    }
}

/// A line of bytes in a style, if colour is wanted.
fn painted(call: &Call, style: Style, bytes: &[u8]) -> Vec<u8> {
    if style == Style::new() {
        return [bytes, b"\n"].concat();
    }
    // The escapes of the style go around the bytes, which need not be text.
    let frame = call.out.paint(style, "\n");
    let (before, after) = frame.split_once('\n').unwrap_or_default();
    [before.as_bytes(), bytes, after.as_bytes(), b"\n"].concat()
}
