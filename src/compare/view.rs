//! A change, ready to be shown: its two sides as git sees them, and remarks for the rest.

use std::io::Read;

use super::blocks::lines;
use super::sources::{Content, OnTree, Sources};
use crate::error::Error;
use crate::fs::{AbsPath, Shown};
use crate::session::{Change, Side, Sort};
use crate::settings;
use crate::tree::{Danger, Meta, Object, State, What, git_index, sort_word, time};

/// The most bytes of content that is shown as text: both sides are in memory while lines are compared.
pub const TEXT_LIMIT: u64 = 8 << 20;

/// The most entries of a git index that are named.
const ENTRIES: usize = 20;

/// A side of a patch.
#[derive(Debug, PartialEq, Eq)]
pub enum Half {
    /// Nothing, or an object that a patch cannot have.
    Absent,
    /// A file or a symlink.
    Blob {
        /// 100644, 100755 or 120000.
        mode: &'static str,
        /// The content; `None` if it was not read.
        bytes: Option<Vec<u8>>,
        /// Bytes of content.
        size: u64,
    },
}

impl Half {
    /// Its mode for git, if it is not absent.
    pub fn mode(&self) -> Option<&'static str> {
        match self {
            Half::Absent => None,
            Half::Blob { mode, .. } => Some(mode),
        }
    }

    /// Its content, if it was read; empty if it is absent.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Half::Absent => Some(b""),
            Half::Blob { bytes, .. } => bytes.as_deref(),
        }
    }

    /// Bytes of content.
    pub fn size(&self) -> u64 {
        match self {
            Half::Absent => 0,
            Half::Blob { size, .. } => *size,
        }
    }

    fn is_binary(&self) -> bool {
        self.bytes().is_some_and(lines::is_binary)
    }
}

/// The file that a rename made another of.
pub struct Renamed<'c> {
    pub path: &'c AbsPath,
    /// The part of the content that stayed, in percent.
    pub similarity: u8,
}

/// A change, ready to be shown.
pub struct View<'c> {
    pub path: &'c AbsPath,
    pub sort: Sort,
    /// The kind of object that is there after it, or was there: `file`, `directory`.
    pub kind: &'static str,
    /// The file that was renamed to the path, if it is shown as such.
    pub from: Option<Renamed<'c>>,
    pub old: Half,
    pub new: Half,
    /// True if both sides are known, so that a patch can be printed.
    pub whole: bool,
    /// True if the tree does not hold what the session recorded.
    pub conflict: bool,
    /// Facts that the patch does not show, without the path.
    pub remarks: Vec<String>,
    /// Those of the remarks that give somebody rights: an owner other than the caller, set-user-ID and set-group-ID bits, capabilities.
    pub rights: Vec<String>,
    /// The reason why a person should see it before others.
    pub danger: Option<Danger>,
    /// The bytes at the start of its paths that a patch leaves out: the root, or the directory that it starts from.
    pub left_out: usize,
    /// Names of the two sides, if they are not before and after a change. They follow the paths in the patch.
    pub labels: Option<(String, String)>,
}

impl<'c> View<'c> {
    fn new(change: &'c Change) -> Self {
        Self {
            path: &change.path,
            sort: change.sort(),
            kind: change.after.as_ref().or(change.before.object.as_ref()).map_or("", |state| sort_word(state.sort())),
            from: None,
            old: half(&change.before.object),
            new: half(&change.after),
            whole: true,
            conflict: false,
            remarks: remarks(change),
            rights: rights(change),
            danger: change.danger(),
            left_out: 1,
            labels: None,
        }
    }

    /// Joins the views of a deletion and a creation, both whole, to that of a rename.
    pub fn renamed(old: Self, new: Self, deleted: &'c Change, created: &'c Change, similarity: u8) -> Self {
        let change = Change { before: deleted.before.clone(), ..created.clone() };
        let mut view = Self {
            from: Some(Renamed { path: &deleted.path, similarity }),
            sort: change.sort(),
            old: old.old,
            conflict: old.conflict || new.conflict,
            remarks: remarks(&change),
            rights: rights(&change),
            ..new
        };
        // What stands against it: conflicts, and what others did.
        let of_created = remarks(created);
        old.remarks.iter().chain(new.remarks.iter().filter(|text| !of_created.contains(text))).for_each(|text| view.remark(text));
        view
    }

    /// Looks at a change, and reads its content if `read` is set.
    pub fn of(change: &'c Change, side: Side, sources: &mut Sources<'_>, read: bool) -> Result<Self, Error> {
        let on_tree = sources.on_tree(change, side);
        let conflict = on_tree == OnTree::Changed || (change.marks.foreign && !side.is_in());
        let mut view = Self { conflict, ..Self::new(change) };
        if change.marks.foreign {
            view.remark("changed by others while the command ran: conflict");
        }
        if let Some(why) = on_tree.why(side) {
            view.remark(&why);
        }
        if read && !change.in_place() {
            let before = |sources: &mut Sources<'_>| sources.before(change, side, &on_tree);
            let after = |sources: &mut Sources<'_>| sources.after(change, side, &on_tree);
            view.fill(sources, before, after)?;
        }
        view.say_if_not_shown(change);
        Ok(view)
    }

    /// Makes the view of a change whose two contents were read elsewhere. `fits`: they are small enough to be shown.
    pub fn between(change: &'c Change, old: Option<Vec<u8>>, new: Option<Vec<u8>>, fits: bool) -> Self {
        let mut view = Self::new(change);
        for (half, content) in [(&mut view.old, old), (&mut view.new, new)] {
            if let (Half::Blob { bytes, .. }, Some(content)) = (half, content) {
                *bytes = Some(content);
            }
        }
        if !fits {
            view.whole = false;
            let (old, new) = (settings::bytes(view.old.size()), settings::bytes(view.new.size()));
            view.remark(&format!("{old} -> {new}: too large to show (limit {})", settings::bytes(TEXT_LIMIT)));
        }
        view
    }

    /// Makes the view of a change between two states of sessions. `old` and `new` open its contents.
    pub fn of_states<S>(
        change: &'c Change,
        states: &mut S,
        old: impl FnOnce(&mut S) -> Result<Content, Error>,
        new: impl FnOnce(&mut S) -> Result<Content, Error>,
    ) -> Result<Self, Error> {
        let mut view = Self::new(change);
        if change.marks.foreign {
            view.remark("changed by others while the command ran");
        }
        if !change.in_place() {
            view.fill(states, old, new)?;
        }
        view.say_if_not_shown(change);
        Ok(view)
    }

    /// Makes the view of two objects at a path, `before` and `after` of a change made for this. `labels` name them; the reason for their
    /// conflict becomes a remark. `old` and `new` read their contents.
    pub fn of_two<'s>(
        change: &'c Change,
        labels: (&str, &str),
        why: &str,
        sources: &mut Sources<'s>,
        old: impl FnOnce(&mut Sources<'s>) -> Result<Content, Error>,
        new: impl FnOnce(&mut Sources<'s>) -> Result<Content, Error>,
    ) -> Result<Self, Error> {
        let (now, wanted) = (&change.before.object, &change.after);
        let labels_of_both = Some((labels.0.into(), labels.1.into()));
        let mut view =
            Self { conflict: true, remarks: vec![why.into()], danger: None, labels: labels_of_both, ..Self::new(change) };
        match (now, wanted) {
            (Some(now), Some(wanted)) if now.sort() == wanted.sort() => view.remarks.extend(remarks(change)),
            _ => {
                for (object, label) in [(now, labels.0), (wanted, labels.1)] {
                    let odd = object.as_ref().filter(|state| half(object) == Half::Absent && !is_link(state));
                    view.remarks.extend(odd.map(|state| format!("{label}: {}", described(state))));
                }
            }
        }
        if !change.in_place() {
            view.fill(sources, old, new)?;
        }
        if !view.whole {
            view.remark("the content is not shown");
        }
        if git_index::may_lie_at(&change.path) && wanted.is_some() && now.is_some() && !change.in_place() {
            view.remark_index(labels);
        }
        Ok(view)
    }

    /// Adds at which other path its file was before, and is now.
    pub fn say_renamed(&mut self, from: Option<&AbsPath>, to: Option<&AbsPath>) {
        self.remarks.extend(from.map(|from| format!("renamed from {from}")));
        self.remarks.extend(to.map(|to| format!("renamed to {to}")));
    }

    /// Adds a remark on the entries in which two git indexes differ, as a patch has no lines for them.
    fn remark_index(&mut self, labels: (&str, &str)) {
        let both = self.old.bytes().zip(self.new.bytes());
        if both.is_some_and(|(old, new)| old == new) {
            return;
        }
        let Some(mut lines) = both.and_then(|(old, new)| git_index::differences(old, new, labels)) else {
            return self.remark("git status shows what it means to git");
        };
        if lines.is_empty() {
            return self.remark("the entries are the same");
        }
        let more = lines.len().saturating_sub(ENTRIES);
        lines.truncate(ENTRIES);
        lines.extend((more > 0).then(|| format!("... and {more} more")));
        self.remarks.extend(lines);
    }

    fn say_if_not_shown(&mut self, change: &Change) {
        if !self.whole {
            self.remarks.insert(0, format!("{}, not shown", change.sort().word()));
        }
    }

    fn fill<S>(
        &mut self,
        sources: &mut S,
        before: impl FnOnce(&mut S) -> Result<Content, Error>,
        after: impl FnOnce(&mut S) -> Result<Content, Error>,
    ) -> Result<(), Error> {
        let (old, new) = (self.old.size(), self.new.size());
        if old > TEXT_LIMIT || new > TEXT_LIMIT {
            let limit = settings::bytes(TEXT_LIMIT);
            self.whole = false;
            self.remark(&format!("{} -> {}: too large to show (limit {limit})", settings::bytes(old), settings::bytes(new)));
            return Ok(());
        }
        if wants_content(&self.old) {
            let content = before(sources)?;
            self.take(content, |view| &mut view.old);
        }
        if wants_content(&self.new) {
            let content = after(sources)?;
            self.take(content, |view| &mut view.new);
        }
        Ok(())
    }

    fn take(&mut self, content: Content, half: impl FnOnce(&mut Self) -> &mut Half) {
        let why = match content {
            Content::Gone(why) => why,
            Content::File(file) => {
                let mut bytes = Vec::new();
                match file.take(TEXT_LIMIT + 1).read_to_end(&mut bytes) {
                    Ok(_) => {
                        if let Half::Blob { bytes: content, .. } = half(self) {
                            *content = Some(bytes);
                        }
                        return;
                    }
                    Err(error) => format!("it cannot be read: {}", crate::error::reason(&error)),
                }
            }
        };
        self.whole = false;
        self.remark(&why);
    }

    fn remark(&mut self, text: &str) {
        if !self.remarks.iter().any(|known| known == text) {
            self.remarks.push(text.into());
        }
    }

    /// The change of mode as a patch has it, if git's two modes differ.
    pub fn mode_change(&self) -> Option<String> {
        let (old, new) = self.old.mode().zip(self.new.mode())?;
        (old != new).then(|| format!("mode change {old} -> {new}"))
    }

    /// True if a link became a file, or a file a link: one goes, and the other comes.
    pub fn is_replaced(&self) -> bool {
        let link = |mode| mode == "120000";
        self.old.mode().zip(self.new.mode()).is_some_and(|(old, new)| link(old) != link(new))
    }

    pub fn is_binary(&self) -> bool {
        self.old.is_binary() || self.new.is_binary()
    }
}

fn wants_content(half: &Half) -> bool {
    matches!(half, Half::Blob { bytes: None, .. })
}

fn half(object: &Object) -> Half {
    let Some(state) = object else { return Half::Absent };
    match &state.what {
        What::File { size, .. } => {
            let mode = if state.meta.mode & 0o100 == 0 { "100644" } else { "100755" };
            Half::Blob { mode, bytes: None, size: *size }
        }
        What::Symlink { target } => Half::Blob { mode: "120000", bytes: Some(target.to_vec()), size: target.len() as u64 },
        _ => Half::Absent,
    }
}

/// Facts about a change that a patch does not show.
fn remarks(change: &Change) -> Vec<String> {
    let mut remarks = Vec::new();
    let (before, after) = (&change.before.object, &change.after);
    let odd = |object: &Object| object.as_ref().filter(|state| half(object) == Half::Absent && !is_link(state)).map(described);
    match (odd(before), odd(after)) {
        (Some(old), Some(new)) if change.sort() == Sort::Modified => remarks.push(format!("{old} -> {new}")),
        (Some(_), Some(_)) => {}
        (Some(_), None) => remarks.push(format!("{} removed", before.as_ref().map_or("", |state| sort_word(state.sort())))),
        (None, Some(new)) => remarks.push(format!("new {new}")),
        (None, None) => {}
    }
    match (before, after) {
        (Some(before), Some(after)) => meta_remarks(before, after, &mut remarks),
        (None, Some(after)) => new_remarks(after, &mut remarks),
        (_, None) => {}
    }
    if change.sort() == Sort::Times
        && let (Some(before), Some(after)) = (before, after)
    {
        remarks.push(format!("mtime {} -> {}", time::to_text(before.meta.mtime), time::to_text(after.meta.mtime)));
    }
    if change.marks.linked {
        remarks.push("hard link: one of several names of one file".into());
    }
    if change.marks.link_broken {
        remarks.push("link broken: the other names of the file keep the old content".into());
    }
    remarks
}

fn rights(change: &Change) -> Vec<String> {
    let Some(after) = &change.after else { return Vec::new() };
    let before = change.before.object.as_ref();
    let differs = |of: fn(&State) -> u32| before.is_none_or(|before| of(before) != of(after));
    let mut rights = Vec::new();
    if after.is_file() && after.meta.mode & SET_IDS != 0 && differs(|state| state.meta.mode) {
        rights.push(match before {
            Some(before) => format!("mode {:04o} -> {:04o}", before.meta.mode, after.meta.mode),
            None => format!("mode {:04o}", after.meta.mode),
        });
    }
    rights.extend(match before {
        Some(before) => owner_change(before, after),
        None => owner_of_new(after),
    });
    if let Some(capabilities) = after.meta.xattr(CAPABILITIES)
        && before.and_then(|before| before.meta.xattr(CAPABILITIES)) != Some(capabilities)
    {
        rights.push(format!("extended attribute {}", Shown(CAPABILITIES)));
    }
    rights
}

/// Set-user-ID and set-group-ID: inode(7).
const SET_IDS: u32 = 0o6000;

/// capabilities(7), "File capabilities".
const CAPABILITIES: &[u8] = b"security.capability";

fn owner_change(before: &State, after: &State) -> Option<String> {
    let (old, new) = (&before.meta, &after.meta);
    ((old.uid, old.gid) != (new.uid, new.gid)).then(|| format!("owner {}:{} -> {}:{}", old.uid, old.gid, new.uid, new.gid))
}

/// The owner of a new object, if it is not the caller, or if a program would get its rights.
fn owner_of_new(state: &State) -> Option<String> {
    let Meta { uid, gid, mode, .. } = state.meta;
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let is_said = (uid, gid) != own || state.is_file() && mode & SET_IDS != 0;
    is_said.then(|| format!("owner {uid}:{gid}"))
}

fn described(state: &State) -> String {
    let kind = sort_word(state.sort());
    match &state.what {
        What::Char(dev) | What::Block(dev) => format!("{kind} {}:{}, mode {:04o}", dev.0, dev.1, state.meta.mode),
        _ => format!("{kind}, mode {:04o}", state.meta.mode),
    }
}

fn is_link(state: &State) -> bool {
    matches!(state.what, What::Symlink { .. })
}

/// True if git's two modes cover all of a file's mode.
fn is_plain(mode: u32) -> bool {
    matches!(mode, 0o644 | 0o755)
}

fn meta_remarks(before: &State, after: &State, remarks: &mut Vec<String>) {
    let said_by_git = matches!((&before.what, &after.what), (What::File { .. }, What::File { .. }))
        && is_plain(before.meta.mode)
        && is_plain(after.meta.mode);
    remarks.extend(mode_change(before, after).filter(|_| !said_by_git));
    remarks.extend(other_meta(before, after));
}

/// The differences in mode, owner and xattrs, in words.
pub fn meta_changes(before: &State, after: &State) -> Vec<String> {
    mode_change(before, after).into_iter().chain(other_meta(before, after)).collect()
}

fn mode_change(before: &State, after: &State) -> Option<String> {
    let (old, new) = (before.meta.mode, after.meta.mode);
    (!is_link(before) && !is_link(after) && old != new).then(|| format!("mode {old:04o} -> {new:04o}"))
}

fn other_meta(before: &State, after: &State) -> Vec<String> {
    let (old, new) = (&before.meta, &after.meta);
    let mut remarks: Vec<String> = owner_change(before, after).into_iter().collect();
    for (name, value) in &old.xattrs {
        match new.xattr(name) {
            None => remarks.push(format!("extended attribute {} removed", Shown(name))),
            Some(other) if other != &**value => remarks.push(format!("extended attribute {} changed", Shown(name))),
            Some(_) => {}
        }
    }
    for (name, _) in new.xattrs.iter().filter(|(name, _)| old.xattr(name).is_none()) {
        remarks.push(format!("extended attribute {} added", Shown(name)));
    }
    remarks
}

fn new_remarks(state: &State, remarks: &mut Vec<String>) {
    if matches!(state.what, What::File { .. }) && !is_plain(state.meta.mode) {
        remarks.push(format!("mode {:04o}", state.meta.mode));
    }
    remarks.extend(owner_of_new(state));
    for (name, _) in &state.meta.xattrs {
        remarks.push(format!("extended attribute {}", Shown(name)));
    }
}
