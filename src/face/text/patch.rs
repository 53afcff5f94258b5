//! Prints a patch: in colour if wanted, and without bytes that would control a terminal.

use anstyle::{AnsiColor, Style};

use crate::compare::span::Part;
use crate::compare::{Form, Span, View, escape_terminal, patch};
use crate::face::out::Out;

pub fn print(out: &Out, view: &View, form: Form) {
    patch::write(view, form, &mut |spans| {
        let mut line: Vec<u8> = spans.iter().flat_map(|span| shown(out, span)).collect();
        line.push(b'\n');
        out.bytes(&line);
    });
}

/// Prints a line of content on one side, with its sign.
pub fn line(out: &Out, part: Part, line: &[u8]) {
    let sign: &[u8] = if part == Part::Old { b"-" } else { b"+" };
    let text = out.foreign(line.strip_suffix(b"\n").unwrap_or(line));
    out.bytes(&[&*painted(out, style(part), &[sign, &text].concat()), b"\n"].concat());
    if !line.ends_with(b"\n") {
        out.line("\\ No newline at end of file");
    }
}

/// Prints a remark that belongs to no patch.
pub fn remark(out: &Out, text: &str) {
    let line = painted(out, style(Part::Remark), format!("# {}", escape_terminal::message(text)).as_bytes());
    out.bytes(&[&*line, b"\n"].concat());
}

fn shown(out: &Out, span: &Span) -> Vec<u8> {
    let text = match span.part {
        Part::Both | Part::Old | Part::New => out.foreign(&span.text),
        Part::Remark | Part::Head | Part::Place | Part::Note => (&*span.text).into(),
    };
    let style = style(span.part);
    painted(out, if span.marked { style.invert() } else { style }, &text)
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

/// Bytes in a style, if colour is wanted.
fn painted(out: &Out, style: Style, bytes: &[u8]) -> Vec<u8> {
    if style == Style::new() {
        return bytes.to_vec();
    }
    // The escapes of the style go around the bytes, which need not be text.
    let frame = out.paint(style, "\n");
    let (before, after) = frame.split_once('\n').unwrap_or_default();
    [before.as_bytes(), bytes, after.as_bytes()].concat()
}
