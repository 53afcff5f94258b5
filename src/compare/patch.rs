//! A change as a patch with git's headers: git-diff(1), "Generating patch text with -p".

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

use super::blocks::block::Block;
use super::blocks::find_blocks::Blocks;
use super::blocks::lines;
use super::blocks::words::{Marks, words};
use super::span::{Part, Span, Take, pieces};
use super::view::{Half, View};
use super::word_diff;
use crate::fs::{AbsPath, Shown};

#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub context: usize,
    /// True if white space does not count. The patch need not apply then.
    pub ignore_space: bool,
    pub words: Words,
}

impl Default for Form {
    fn default() -> Self {
        Self { context: 3, ignore_space: false, words: Words::Unmarked }
    }
}

/// The words in which lines differ from those that replace them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Not told: a patch.
    Unmarked,
    /// Marked spans of the lines of a patch.
    Marked,
    /// Both sides in one line, as `[-old-]{+new+}`, without a sign before it: git's `--word-diff`. No patch.
    Inline,
}

/// After this time the rest of two contents counts as replaced: the patch is right, but may be longer than needed.
const PATIENCE: Duration = Duration::from_secs(3);

/// Passes the remarks, then the patch, to `take`, line by line.
pub fn write(view: &View, form: Form, take: &mut Take<'_>) {
    for remark in &view.remarks {
        let path =
            if view.left_out > 1 { Shown(&view.path.as_bytes()[view.left_out..]).to_string() } else { view.path.to_string() };
        take(&[Span::plain(Part::Remark, format!("# {path}: {remark}").into_bytes())]);
    }
    if !view.whole {
        return;
    }
    match (view.old.mode(), view.new.mode()) {
        (None, None) => {}
        // As git does: a link that becomes a file is removed and made again.
        _ if view.is_replaced() => {
            write_one(take, view, form, &view.old, &Half::Absent);
            write_one(take, view, form, &Half::Absent, &view.new);
        }
        _ => write_one(take, view, form, &view.old, &view.new),
    }
}

fn write_one(take: &mut Take<'_>, view: &View, form: Form, old: &Half, new: &Half) {
    let same_mode = old.mode() == new.mode();
    // Only metadata differs: no content was read.
    let same = old.bytes().is_none() && new.bytes().is_none()
        || old.mode().is_some() && new.mode().is_some() && are_same(form, old, new);
    if same && same_mode && view.from.is_none() {
        return;
    }
    let from = view.from.as_ref();
    let quoted = |prefix: &[u8], path: &AbsPath| quoted(prefix, &path.as_bytes()[view.left_out..]);
    let (a, b) = (quoted(b"a/", from.map_or(view.path, |from| from.path)), quoted(b"b/", view.path));
    let mut head = |bytes: &[&[u8]]| take(&[Span::plain(Part::Head, bytes.concat())]);
    head(&[b"diff --git ", &a, b" ", &b]);
    match (old.mode(), new.mode()) {
        (None, Some(mode)) => head(&[b"new file mode ", mode.as_bytes()]),
        (Some(mode), None) => head(&[b"deleted file mode ", mode.as_bytes()]),
        (Some(was), Some(is)) if was != is => {
            head(&[b"old mode ", was.as_bytes()]);
            head(&[b"new mode ", is.as_bytes()]);
        }
        _ => {}
    }
    if let Some(from) = from {
        head(&[b"similarity index ", from.similarity.to_string().as_bytes(), b"%"]);
        head(&[b"rename from ", &quoted(b"", from.path)]);
        head(&[b"rename to ", &quoted(b"", view.path)]);
    }
    let (Some(was), Some(is)) = (old.bytes(), new.bytes()) else { return };
    if same || was.is_empty() && is.is_empty() {
        return;
    }
    let side = |half: &Half, name: &[u8]| match half {
        Half::Absent => b"/dev/null".to_vec(),
        Half::Blob { .. } => name.to_vec(),
    };
    let (from, to) = (side(old, &a), side(new, &b));
    if lines::is_binary(was) || lines::is_binary(is) {
        take(&[Span::plain(Part::Note, [b"Binary files ", &*from, b" and ", &*to, b" differ"].concat())]);
        return;
    }
    // A name with a blank in it ends with a tab, so that nothing after it can count as a part of it. git-apply(1) and patch(1) ignore
    // what comes after a tab.
    let end = |name: &[u8], label: Option<&String>| match label {
        Some(label) => format!("\t({label})"),
        None if name.contains(&b' ') => "\t".into(),
        None => String::new(),
    };
    let labels = view.labels.as_ref();
    head(&[b"--- ", &from, end(&from, labels.map(|labels| &labels.0)).as_bytes()]);
    head(&[b"+++ ", &to, end(&to, labels.map(|labels| &labels.1)).as_bytes()]);
    hunks(take, form, was, is);
}

/// True if two contents are the same, in this form.
pub fn are_same(form: Form, old: &Half, new: &Half) -> bool {
    old.bytes() == new.bytes() || form.ignore_space && differ_in_space(old, new)
}

/// The blocks between two contents, in this form.
pub fn blocks<'c>(form: Form, was: &'c [u8], is: &'c [u8]) -> Blocks<'c> {
    match form.ignore_space {
        true => Blocks::roughly_by(was, is, PATIENCE, without_space),
        false => Blocks::roughly(was, is, PATIENCE),
    }
}

fn hunks(take: &mut Take<'_>, form: Form, was: &[u8], is: &[u8]) {
    let blocks = blocks(form, was, is);
    for near in hunks_of(&blocks, form.context) {
        hunk(take, form, &blocks, &near);
    }
}

/// Blocks that share their context.
pub struct Hunk<'b> {
    pub near: &'b [Block],
    /// The lines of the old content, the context included.
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The hunks between two contents, with so many lines around them.
pub fn hunks_of<'b>(blocks: &'b Blocks<'_>, context: usize) -> impl Iterator<Item = Hunk<'b>> {
    let near = blocks.list().chunk_by(move |a, b| b.old.start - a.old.end <= 2 * context);
    near.filter_map(move |near| {
        let (first, last) = (near.first()?, near.last()?);
        let before = first.old.start.min(context);
        let after = (blocks.old_lines().len() - last.old.end).min(context);
        let [old, new] = [(&first.old, &last.old), (&first.new, &last.new)].map(|(a, b)| a.start - before..b.end + after);
        Some(Hunk { near, old, new })
    })
}

impl Hunk<'_> {
    pub fn place(&self) -> String {
        let range = |lines: &Range<usize>| match lines.len() {
            0 => format!("{},0", lines.start),
            1 => format!("{}", lines.start + 1),
            n => format!("{},{n}", lines.start + 1),
        };
        format!("@@ -{} +{} @@", range(&self.old), range(&self.new))
    }
}

fn hunk(take: &mut Take<'_>, form: Form, blocks: &Blocks<'_>, hunk: &Hunk<'_>) {
    take(&[Span::plain(Part::Place, hunk.place().into_bytes())]);
    let mut at = hunk.new.start;
    for block in hunk.near {
        write_same(take, form, &blocks.new_lines()[at..block.new.start]);
        write_changed(take, form, blocks.removed(block), blocks.added(block));
        at = block.new.end;
    }
    write_same(take, form, &blocks.new_lines()[at..hunk.new.end]);
}

fn without_space(line: &[u8]) -> Vec<u8> {
    line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// True if two texts differ, but not in a line without its white space.
fn differ_in_space(old: &Half, new: &Half) -> bool {
    let (Some(was), Some(is)) = (old.bytes(), new.bytes()) else { return false };
    let bare = |bytes| lines::split(bytes).into_iter().map(without_space);
    was != is && !lines::is_binary(was) && !lines::is_binary(is) && bare(was).eq(bare(is))
}

/// True if white space is all that differs at a path: nothing of it is shown if that does not count.
pub fn differs_in_space_alone(view: &View) -> bool {
    let same_mode = view.old.mode().is_some() && view.old.mode() == view.new.mode();
    view.whole && same_mode && view.remarks.is_empty() && view.from.is_none() && differ_in_space(&view.old, &view.new)
}

fn write_same(take: &mut Take<'_>, form: Form, lines: &[&[u8]]) {
    match form.words {
        Words::Inline => word_diff::write_same(take, lines),
        Words::Unmarked | Words::Marked => write_lines(take, Part::Both, b" ", lines, None),
    }
}

fn write_changed(take: &mut Take<'_>, form: Form, old: &[&[u8]], new: &[&[u8]]) {
    let is_replaced = form.words != Words::Unmarked && !old.is_empty() && !new.is_empty();
    let marks = if is_replaced { words(old, new) } else { None };
    if form.words == Words::Inline {
        return word_diff::write_changed(take, old, new, marks.as_ref());
    }
    let marks = marks.filter(|marks| marks.help(old, new));
    write_lines(take, Part::Old, b"-", old, marks.as_ref().map(|marks| &*marks.old));
    write_lines(take, Part::New, b"+", new, marks.as_ref().map(|marks| &*marks.new));
}

/// The words in which lines differ from those that replace them, if that tells more than the lines alone.
pub fn marks_of(old: &[&[u8]], new: &[&[u8]]) -> Option<Marks> {
    if old.is_empty() || new.is_empty() { None } else { words(old, new).filter(|marks| marks.help(old, new)) }
}

fn write_lines(take: &mut Take<'_>, part: Part, sign: &[u8], lines: &[&[u8]], marks: Option<&[Vec<Range<usize>>]>) {
    for (n, line) in lines.iter().enumerate() {
        let text = line.strip_suffix(b"\n");
        let mut spans = vec![Span::plain(part, sign.to_vec())];
        for (marked, piece) in pieces(text.unwrap_or(line), marks.map_or(&[], |marks| &marks[n])) {
            match spans.last_mut().filter(|last| last.marked == marked) {
                Some(last) => last.text.extend(piece),
                None => spans.push(Span { part, marked, text: piece.to_vec() }),
            }
        }
        take(&spans);
        if text.is_none() {
            take(&[Span::plain(Part::Note, b"\\ No newline at end of file".to_vec())]);
        }
    }
}

/// Insertions and deletions; `None` if lines cannot be counted.
pub fn counts(view: &View, form: Form) -> Option<(usize, usize)> {
    if !view.whole || view.is_binary() {
        return None;
    }
    let (Some(was), Some(is)) = (view.old.bytes(), view.new.bytes()) else { return Some((0, 0)) };
    if view.is_replaced() {
        return Some((lines::split(is).len(), lines::split(was).len()));
    }
    let blocks = blocks(form, was, is);
    Some(blocks.list().iter().fold((0, 0), |sum, block| (sum.0 + block.new.len(), sum.1 + block.old.len())))
}

/// The lines that a change puts in and takes out.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Lines {
    /// `null` if lines cannot be counted: binary, too large, or a side is missing.
    pub insertions: Option<usize>,
    pub deletions: Option<usize>,
    pub binary: bool,
}

impl Lines {
    /// Counts the lines of a view.
    pub fn of(view: &View<'_>) -> Self {
        let (insertions, deletions) = counts(view, Form::default()).unzip();
        Self { insertions, deletions, binary: view.is_binary() }
    }
}

/// A relative path with git's prefix, if it has one. With odd characters it is, as everywhere, in double quotes with C escapes, which git
/// reads.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let name = [prefix, path].concat();
    Shown(&name).to_string().into_bytes()
}
