//! The lines of a file as a table: one row a line, first those that went, then those that came, as in a patch.
//!
//! A block of them is a `tbody`, which a wide window lays out as two columns, so that no line is on the page twice.

use std::ops::Range;

use super::escape;
use super::size_limits;
use super::size_limits::Room;
use crate::compare::blocks::block::Block;
use crate::compare::blocks::find_blocks::Blocks;
use crate::compare::blocks::words::Marks;
use crate::compare::patch;
use crate::compare::patch::{Form, Hunk};
use crate::compare::span::pieces;

/// The sums of a table.
#[derive(Default)]
pub struct Counts {
    pub insertions: usize,
    pub deletions: usize,
    pub rows: usize,
    /// Lines for which there was no room.
    pub left_out: usize,
}

/// The words around a table.
pub struct Words<'w> {
    pub name: &'w str,
    /// The names of its two sides, escaped.
    pub sides: [&'w str; 2],
    /// The command that shows what there is no room for.
    pub whole: &'w str,
}

/// Adds the table of two contents that are text.
pub fn write(to: &mut String, form: Form, was: &[u8], is: &[u8], words: &Words<'_>) -> Counts {
    let blocks = patch::blocks(form, was, is);
    let sum = |of: fn(&Block) -> usize| blocks.list().iter().map(of).sum();
    let counts =
        Counts { insertions: sum(|block| block.new.len()), deletions: sum(|block| block.old.len()), ..Counts::default() };
    if blocks.list().is_empty() {
        return counts;
    }
    let digits = blocks.old_lines().len().max(blocks.new_lines().len()).to_string().len();
    let both = if was.is_empty() || is.is_empty() { "" } else { " two" };
    begin(to, words, both, digits);
    let mut table = Table { to, blocks: &blocks, room: Room::new(), rows: 0 };
    patch::hunks_of(&blocks, form.context).for_each(|hunk| table.hunk(&hunk));
    let (rows, left_out) = (table.rows, table.room.left_out);
    if left_out > 0 {
        let lines = crate::settings::grouped(left_out as u64);
        let s = if left_out == 1 { " is" } else { "s are" };
        to.push_str(&format!(
            "<tbody><tr class=\"h\"><td colspan=\"4\"><strong>{lines} more line{s} left out here.</strong> All of it: <code>{}</code></td></tr></tbody>\n",
            words.whole
        ));
    }
    to.push_str("</table>\n");
    Counts { rows, left_out, ..counts }
}

fn begin(to: &mut String, words: &Words<'_>, both: &str, digits: usize) {
    let Words { name, sides: [old, new], .. } = words;
    to.push_str(&format!(
        "<table class=\"lines{both}\" style=\"--n:calc({digits}ch + .625rem)\"><caption>Lines of {name}: − {old}, + {new}</caption>\n\
         <thead><tr><th scope=\"col\"><span>− </span>{old}</th><th scope=\"col\"><span>+ </span>{new}</th>\
         <th scope=\"col\">Sign</th><th scope=\"col\">Line</th></tr></thead>\n"
    ));
}

struct Table<'t, 'b> {
    to: &'t mut String,
    blocks: &'b Blocks<'b>,
    room: Room,
    rows: usize,
}

impl Table<'_, '_> {
    fn hunk(&mut self, hunk: &Hunk<'_>) {
        if self.room.left_out == 0 {
            self.to.push_str(&format!("<tbody><tr class=\"h\"><td colspan=\"4\">{}</td></tr></tbody>\n", hunk.place()));
        }
        let (mut old, mut new) = (hunk.old.start, hunk.new.start);
        for block in hunk.near {
            self.same(old..block.old.start, new);
            self.changed(block);
            (old, new) = (block.old.end, block.new.end);
        }
        self.same(old..hunk.old.end, new);
    }

    /// Lines around a block, which the new content has from `new` on.
    fn same(&mut self, old: Range<usize>, new: usize) {
        self.body("<tbody>", old.len(), |table| {
            for (at, new) in old.zip(new..) {
                let line = table.blocks.new_lines()[new];
                if table.room.takes(line) {
                    table.same_line(at, new, line);
                }
            }
        });
    }

    fn same_line(&mut self, old: usize, new: usize, line: &[u8]) {
        self.rows += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        self.to.push_str("<tr class=\"c\" data-t=\"");
        escape::value(self.to, size_limits::shown(text).0);
        self.to.push_str(&format!("\"><th scope=\"row\">{}</th><td>{}</td><td></td><td>", old + 1, new + 1));
        self.text(text, &[]);
        self.to.push_str("</td></tr>\n");
        self.end_of_line(line, "c");
    }

    fn changed(&mut self, block: &Block) {
        let (old, new) = (self.blocks.removed(block), self.blocks.added(block));
        let marks = patch::marks_of(old, new);
        self.body("<tbody class=\"b\">", block.lines(), |table| {
            table.side(Side::Old, block.old.start, old, marks.as_ref());
            table.side(Side::New, block.new.start, new, marks.as_ref());
        });
    }

    /// A part of the table; nothing if it has no row.
    fn body(&mut self, begin: &str, lines: usize, fill: impl FnOnce(&mut Self)) {
        if lines == 0 || self.room.left_out > 0 {
            return fill(self);
        }
        let before = self.to.len();
        self.to.push_str(begin);
        let begun = self.to.len();
        fill(self);
        if self.to.len() == begun { self.to.truncate(before) } else { self.to.push_str("</tbody>\n") }
    }

    fn side(&mut self, side: Side, first: usize, lines: &[&[u8]], marks: Option<&Marks>) {
        let (class, open, close) = match side {
            Side::Old => ("d", "<td></td><td>−</td><td><del>", "</del></td></tr>\n"),
            Side::New => ("a", "<td>+</td><td><ins>", "</ins></td></tr>\n"),
        };
        for (n, line) in lines.iter().enumerate() {
            if !self.room.takes(line) {
                continue;
            }
            self.rows += 1;
            let empty = if side == Side::New { "<td></td>" } else { "" };
            self.to.push_str(&format!("<tr class=\"{class}\">{empty}<th scope=\"row\">{}</th>{open}", first + n + 1));
            let marks = marks.map_or(&[][..], |marks| if side == Side::Old { &marks.old[n] } else { &marks.new[n] });
            self.text(line.strip_suffix(b"\n").unwrap_or(line), marks);
            self.to.push_str(close);
            self.end_of_line(line, class);
        }
    }

    fn text(&mut self, line: &[u8], marks: &[Range<usize>]) {
        let (text, more) = size_limits::shown(line);
        for (is_marked, piece) in pieces(text, marks) {
            self.to.push_str(if is_marked { "<mark>" } else { "" });
            escape::content(self.to, piece);
            self.to.push_str(if is_marked { "</mark>" } else { "" });
        }
        if more > 0 {
            let bytes = crate::settings::grouped(more as u64);
            self.to.push_str(&format!(" <b>… {bytes} more bytes of this line are left out</b>"));
        }
    }

    fn end_of_line(&mut self, line: &[u8], class: &str) {
        if !line.ends_with(b"\n") {
            let note = "\\ No newline at end of file";
            self.to.push_str(&format!("<tr class=\"{class} e\"><td></td><td></td><td></td><td>{note}</td></tr>\n"));
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Old,
    New,
}
