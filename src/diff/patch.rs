//! A change as a patch with git's headers: git-diff(1), "Generating patch text with -p".

use std::time::Duration;

use super::view::{Half, View};
use crate::blocks::between::Blocks;
use crate::blocks::block::Block;
use crate::blocks::lines;
use crate::fs::path::{AbsPath, Shown};

/// Lines around a hunk.
const CONTEXT: usize = 3;

/// After this time the rest of two contents counts as replaced: the patch is right, but may be longer than needed.
const PATIENCE: Duration = Duration::from_secs(3);

/// The kind of a line in a patch, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A remark, skipped by programs that read patches.
    Remark,
    /// A line of a file's head.
    Head,
    /// The place of a hunk.
    Place,
    /// A line of both sides, after a blank.
    Both,
    /// A line of the old side, after `-`.
    Old,
    /// A line of the new side, after `+`.
    New,
    /// A line in place of others, or about the last one.
    Note,
}

/// Takes the lines of a patch, each without its end.
type Take<'t> = dyn FnMut(Part, &[u8]) + 't;

/// Passes the remarks, then the patch, to `take`, line by line.
pub fn write(view: &View, take: &mut Take<'_>) {
    for remark in &view.remarks {
        take(Part::Remark, format!("# {}: {remark}", view.path).as_bytes());
    }
    if !view.whole {
        return;
    }
    let link = |half: &Half| half.mode() == Some("120000");
    match (view.old.mode(), view.new.mode()) {
        (None, None) => {}
        // As git does: a link that becomes a file is removed and made again.
        (Some(_), Some(_)) if link(&view.old) != link(&view.new) => {
            write_one(take, view, &view.old, &Half::Absent);
            write_one(take, view, &Half::Absent, &view.new);
        }
        _ => write_one(take, view, &view.old, &view.new),
    }
}

fn write_one(take: &mut Take<'_>, view: &View, old: &Half, new: &Half) {
    let same_mode = old.mode() == new.mode();
    // Only metadata differs: no content was read.
    let same = old.bytes().is_none() && new.bytes().is_none()
        || old.bytes() == new.bytes() && old.mode().is_some() && new.mode().is_some();
    if same && same_mode {
        return;
    }
    let (a, b) = (quoted(b"a/", view.path), quoted(b"b/", view.path));
    let mut head = |bytes: &[&[u8]]| take(Part::Head, &bytes.concat());
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
        take(Part::Note, &[b"Binary files ", &*from, b" and ", &*to, b" differ"].concat());
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
    hunks(take, was, is);
}

fn hunks(take: &mut Take<'_>, was: &[u8], is: &[u8]) {
    let blocks = Blocks::roughly(was, is, PATIENCE);
    for near in blocks.list().chunk_by(|a, b| b.old.start - a.old.end <= 2 * CONTEXT) {
        hunk(take, &blocks, near);
    }
}

/// Blocks that share their context, as one hunk.
fn hunk(take: &mut Take<'_>, blocks: &Blocks<'_>, near: &[Block]) {
    let (Some(first), Some(last)) = (near.first(), near.last()) else { return };
    let before = first.old.start.min(CONTEXT);
    let after = (blocks.old_lines().len() - last.old.end).min(CONTEXT);
    let range = |from: usize, to: usize| match to - from {
        0 => format!("{from},0"),
        1 => format!("{}", from + 1),
        n => format!("{},{n}", from + 1),
    };
    let left = range(first.old.start - before, last.old.end + after);
    let right = range(first.new.start - before, last.new.end + after);
    take(Part::Place, format!("@@ -{left} +{right} @@").as_bytes());
    let mut at = first.old.start - before;
    for block in near {
        write_lines(take, Part::Both, b" ", &blocks.old_lines()[at..block.old.start]);
        write_lines(take, Part::Old, b"-", blocks.removed(block));
        write_lines(take, Part::New, b"+", blocks.added(block));
        at = block.old.end;
    }
    write_lines(take, Part::Both, b" ", &blocks.old_lines()[at..at + after]);
}

fn write_lines(take: &mut Take<'_>, part: Part, sign: &[u8], lines: &[&[u8]]) {
    for line in lines {
        let text = line.strip_suffix(b"\n");
        take(part, &[sign, text.unwrap_or(line)].concat());
        if text.is_none() {
            take(Part::Note, b"\\ No newline at end of file");
        }
    }
}

/// Insertions and deletions; `None` if lines cannot be counted.
pub fn counts(view: &View) -> Option<(usize, usize)> {
    if !view.whole || view.is_binary() {
        return None;
    }
    let (Some(was), Some(is)) = (view.old.bytes(), view.new.bytes()) else { return Some((0, 0)) };
    if view.old.mode().is_some_and(|old| view.new.mode().is_some_and(|new| (old == "120000") != (new == "120000"))) {
        return Some((lines::split(is).len(), lines::split(was).len()));
    }
    let blocks = Blocks::roughly(was, is, PATIENCE);
    Some(blocks.list().iter().fold((0, 0), |sum, block| (sum.0 + block.new.len(), sum.1 + block.old.len())))
}

/// A path below `/` with git's prefix. With odd characters it is, as everywhere, in double quotes with C escapes, which git reads.
fn quoted(prefix: &[u8], path: &AbsPath) -> Vec<u8> {
    let name = [prefix, &path.as_bytes()[1..]].concat();
    Shown(&name).to_string().into_bytes()
}
