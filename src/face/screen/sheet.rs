//! A change as the screen shows it: lines with their numbers, blocks and marked words.

use std::ops::Range;
use std::time::Duration;

use crate::compare::blocks::lines;
use crate::compare::{Block, Blocks, Marks, Text, View, escape_terminal, pieces, words};
use crate::fs::Shown;
use crate::tree::Hash;

/// Lines around blocks; what lies farther is left out, with a line that counts it.
const CONTEXT: usize = 3;

/// The longest time that is spent on comparing contents that have no blocks to choose from.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most columns of a line: the rest is cut, and said.
const LONGEST: usize = 2_000;

/// Bytes of a dump around the first difference.
const DUMP: usize = 16;

/// The mode of a symlink, as git has it.
const LINK: &str = "120000";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A fact that no line of the content shows.
    Fact,
    /// One that stands against a commit or a rollback.
    Conflict,
    Right,
    /// The metadata that is chosen beside the blocks.
    Meta,
    /// Lines that are left out.
    Gap,
    /// A line of both sides.
    Both,
    Old,
    New,
    /// A heading between two differences.
    Head,
}

/// A piece of a line: true for words in which it differs from the line in its place.
pub type Piece = (bool, String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub kind: Kind,
    /// Its number on the old side, from 1; 0 if it is not there.
    pub old: usize,
    pub new: usize,
    /// The block that it is in, from 1; 0 for none.
    pub block: usize,
    /// Its number in the block, from 1.
    pub at: usize,
    /// Its text, harmless for a terminal, tabs as blanks.
    pub text: Vec<Piece>,
}

/// A change, ready to be shown.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// The lines from top to bottom. Those of a block stand together, those that went first.
    pub lines: Vec<Line>,
    /// The number of blocks that can be chosen.
    pub blocks: usize,
    /// The metadata that can be chosen beside them; empty for none.
    pub meta: String,
    /// The reason why the change is chosen whole; empty if there are blocks.
    pub whole: &'static str,
    /// Lines that came and went, if they can be counted.
    pub counts: Option<(usize, usize)>,
    /// True if something stands against a commit or a rollback.
    pub is_conflict: bool,
    /// The hash of the two contents, by which parts are chosen.
    pub hash: Hash,
    /// How the change stood when it was read: [`Contents::mark`](super::world::Contents::mark).
    pub mark: Option<Hash>,
}

impl Sheet {
    /// A change with nothing to show but a message.
    pub fn failed(why: &str) -> Self {
        let mut sheet = Self::empty("");
        sheet.say(Kind::Conflict, why);
        sheet
    }

    fn empty(whole: &'static str) -> Self {
        let hash = Hash::of(b"");
        Self { lines: Vec::new(), blocks: 0, meta: String::new(), whole, counts: None, is_conflict: false, hash, mark: None }
    }

    /// A change that is chosen whole, for the reason `whole`.
    pub fn whole(view: &View<'_>, whole: &'static str) -> Self {
        let mut sheet = Self::empty(whole);
        sheet.add_view(view);
        sheet
    }

    /// A change with blocks.
    pub fn in_blocks(view: &View<'_>, text: &Text) -> Self {
        let mut sheet = Self::empty("");
        let (blocks, meta) = (text.blocks(), text.meta.join("; "));
        sheet.add_facts(view, |fact| text.meta.iter().any(|meta| meta == fact));
        sheet.blocks = blocks.list().len();
        if !meta.is_empty() {
            sheet.say(Kind::Meta, &meta);
        }
        sheet.meta = meta;
        let mut content = Vec::new();
        blocks.old_lines().iter().chain(blocks.new_lines()).for_each(|line| content.extend_from_slice(line));
        sheet.hash = Hash::of(&content);
        sheet.add_blocks(&blocks, true);
        sheet
    }

    /// Adds a further difference below a heading: the other side of a conflict.
    pub fn add(&mut self, heading: &str, view: &View<'_>) {
        self.say(Kind::Head, heading);
        // The difference that stands last is the one that is held.
        self.counts = None;
        self.add_view(view);
    }

    fn add_view(&mut self, view: &View<'_>) {
        self.add_facts(view, |_| false);
        let (Some(old), Some(new)) = (view.old.bytes(), view.new.bytes()) else { return };
        if let (None | Some(LINK), None | Some(LINK)) = (view.old.mode(), view.new.mode()) {
            self.add_targets(old, new);
            return;
        }
        if view.is_binary() {
            self.add_binary(old, new);
            return;
        }
        self.add_blocks(&Blocks::roughly(old, new, PATIENCE), false);
    }

    /// `known`: facts that stand elsewhere.
    fn add_facts(&mut self, view: &View<'_>, known: impl Fn(&str) -> bool) {
        self.is_conflict |= view.conflict;
        self.lines.extend(view.mode_change().filter(|_| view.remarks.is_empty()).map(|text| plain(Kind::Fact, &text)));
        for remark in view.remarks.iter().filter(|remark| !known(remark)) {
            let kind = match () {
                () if view.rights.contains(remark) => Kind::Right,
                () if view.conflict && remark.contains("conflict") || remark.contains("changed on the tree") => Kind::Conflict,
                () => Kind::Fact,
            };
            self.say(kind, remark);
        }
        for right in view.rights.iter().filter(|right| !view.remarks.contains(right)) {
            self.say(Kind::Right, right);
        }
    }

    fn say(&mut self, kind: Kind, text: &str) {
        self.lines.push(plain(kind, text));
    }

    fn add_targets(&mut self, old: &[u8], new: &[u8]) {
        for (kind, target) in [(Kind::Old, old), (Kind::New, new)] {
            if !target.is_empty() {
                self.lines.push(Line { text: vec![(false, format!("-> {}", Shown(target)))], ..plain(kind, "") });
            }
        }
    }

    /// The sizes of two contents, their types, and the bytes around the first difference.
    fn add_binary(&mut self, old: &[u8], new: &[u8]) {
        let described = |bytes: &[u8]| match bytes.len() {
            0 => "nothing".to_owned(),
            n => format!("{}, {n} bytes", type_of(bytes)),
        };
        self.say(Kind::Fact, &format!("binary: {} -> {}", described(old), described(new)));
        if old.is_empty() || new.is_empty() {
            return;
        }
        let Some(at) = (0..old.len().max(new.len())).find(|at| old.get(*at) != new.get(*at)) else { return };
        self.say(Kind::Fact, &format!("first difference at byte {at} ({at:#x})"));
        let from = at - at % DUMP;
        for (kind, bytes) in [(Kind::Old, old), (Kind::New, new)] {
            for start in [from, from + DUMP] {
                if let Some(row) = bytes.get(start..bytes.len().min(start + DUMP)).filter(|row| !row.is_empty()) {
                    self.lines.push(plain(kind, &dumped(start, row)));
                }
            }
        }
    }

    fn add_blocks(&mut self, blocks: &Blocks<'_>, can_choose: bool) {
        let (mut went, mut came) = (0, 0);
        let (mut old, mut new) = (0, 0);
        for (n, block) in (1..).zip(blocks.list()) {
            self.add_same(blocks, old..block.old.start, new);
            self.add_block(blocks, block, if can_choose { n } else { 0 });
            (old, new) = (block.old.end, block.new.end);
            (went, came) = (went + block.old.len(), came + block.new.len());
        }
        if !blocks.list().is_empty() {
            self.add_same(blocks, old..blocks.old_lines().len(), new);
        }
        let known = self.counts.unwrap_or((0, 0));
        self.counts = Some((known.0 + came, known.1 + went));
    }

    /// Adds lines that both sides have: those near a block, and the number of the rest.
    fn add_same(&mut self, blocks: &Blocks<'_>, old: Range<usize>, new: usize) {
        let (is_first, is_last) = (old.start == 0, old.end == blocks.old_lines().len());
        let head = if is_first { 0 } else { CONTEXT };
        let tail = if is_last { 0 } else { CONTEXT };
        let shift = |line: usize| new + (line - old.start);
        let both = |line: usize| Line {
            kind: Kind::Both,
            old: line + 1,
            new: shift(line) + 1,
            block: 0,
            at: 0,
            text: pieced(blocks.old_lines()[line], &[]),
        };
        if old.len() <= head + tail + 1 {
            self.lines.extend(old.clone().map(both));
            return;
        }
        self.lines.extend((old.start..old.start + head).map(both));
        let left = old.len() - head - tail;
        let gap = plain(Kind::Gap, &format!("{left} unchanged lines"));
        self.lines.push(gap);
        self.lines.extend((old.end - tail..old.end).map(both));
    }

    fn add_block(&mut self, blocks: &Blocks<'_>, block: &Block, n: usize) {
        let (removed, added) = (blocks.removed(block), blocks.added(block));
        let marks = if removed.is_empty() || added.is_empty() { None } else { words(removed, added) };
        let marks = marks.filter(|marks| marks.help(removed, added));
        let of = |side: &dyn Fn(&Marks) -> &Vec<Vec<Range<usize>>>, i: usize| {
            marks.as_ref().map(|marks| side(marks)[i].clone()).unwrap_or_default()
        };
        for (i, line) in removed.iter().enumerate() {
            let text = pieced(line, &of(&|marks| &marks.old, i));
            self.lines.push(Line { kind: Kind::Old, old: block.old.start + i + 1, new: 0, block: n, at: i + 1, text });
        }
        for (i, line) in added.iter().enumerate() {
            let at = removed.len() + i + 1;
            let text = pieced(line, &of(&|marks| &marks.new, i));
            self.lines.push(Line { kind: Kind::New, old: 0, new: block.new.start + i + 1, block: n, at, text });
        }
    }
}

fn plain(kind: Kind, text: &str) -> Line {
    Line { kind, old: 0, new: 0, block: 0, at: 0, text: vec![(false, escape_terminal::message(text).replace('\n', " "))] }
}

/// The text of a line in pieces, harmless and with tabs as blanks. A line without an end says so.
fn pieced(line: &[u8], marks: &[Range<usize>]) -> Vec<Piece> {
    let text = line.strip_suffix(b"\n");
    let bare = text.unwrap_or(line);
    let (bare, is_dos) = bare.strip_suffix(b"\r").filter(|_| text.is_some()).map_or((bare, false), |bare| (bare, true));
    let shown = &bare[..bare.len().min(LONGEST)];
    let mut column = 0;
    let mut found: Vec<Piece> = Vec::new();
    for (marked, piece) in pieces(shown, marks) {
        let piece = escape_terminal::content(piece);
        let mut text = String::new();
        for c in String::from_utf8_lossy(&piece).chars() {
            if c == '\t' {
                let blanks = 4 - column % 4;
                text.push_str(&"    "[..blanks]);
                column += blanks;
            } else {
                text.push(c);
                column += 1;
            }
        }
        found.push((marked, text));
    }
    if shown.len() < bare.len() {
        found.push((true, format!("… {} bytes more", bare.len() - shown.len())));
    }
    let is_marked = |at: usize| marks.iter().any(|mark| mark.contains(&at));
    if is_dos && is_marked(bare.len()) {
        found.push((true, "^M".into()));
    }
    if text.is_none() {
        found.push((true, " (no newline at the end)".into()));
    }
    found
}

/// The type of a content by its first bytes: magic(5) of file(1) has them.
fn type_of(bytes: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 14] = [
        (b"\x7fELF", "ELF"),
        (b"\x89PNG", "PNG image"),
        (b"\xff\xd8\xff", "JPEG image"),
        (b"GIF8", "GIF image"),
        (b"\x1f\x8b", "gzip data"),
        (b"PK\x03\x04", "zip archive"),
        (b"\xfd7zXZ", "xz data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"BZh", "bzip2 data"),
        (b"%PDF", "PDF"),
        (b"SQLite format 3", "SQLite database"),
        (b"!<arch>", "ar archive"),
        (b"\0asm", "WebAssembly"),
        (b"DIRC", "git index"),
    ];
    if let Some((_, name)) = KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return name;
    }
    if lines::is_binary(bytes) { "data" } else { "text" }
}

/// Bytes as hexdump(1) -C shows them.
fn dumped(at: usize, row: &[u8]) -> String {
    let hex = row.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
    let text: String =
        row.iter().map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' }).collect();
    format!("{at:08x}  {hex:<48} {text}")
}
