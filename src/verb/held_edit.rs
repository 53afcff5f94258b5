//! Edits of held files: what a person, or a program of theirs, wrote to a copy of one is held in its place. It is a step of the session.

use std::collections::BTreeSet;
use std::io::Read;

use super::desk::Desk;
use super::error::{no_file_held, not_edited, too_large_to_edit};
use super::gate;
use super::resolve::guard;
use super::resolve::wanted_act::Want;
use crate::capture::{Choice, choose, may_choose};
use crate::compare::{Content, OnTree, Sources};
use crate::error::{At, Error};
use crate::fs::{AbsPath, OnSignal, interrupt};
use crate::session::{Arg, Change, Entry, Id, Session, Side, log};
use crate::tree::{Hash, Meta, State, What};

/// The most bytes that are edited.
pub const MOST: u64 = 64 << 20;

/// A file that was edited.
pub struct HeldEdit {
    pub path: AbsPath,
    /// The hash of the content that was edited.
    pub old: Hash,
    pub new: Vec<u8>,
}

/// The session that holds what was edited.
pub struct HeldEdited {
    pub session: Id,
    pub paths: Vec<AbsPath>,
}

/// The paths of a session whose files the caller may edit; none of one that was on the tree, or in which a command runs.
pub fn editable(desk: &Desk, session: &Session, changes: &[Change]) -> BTreeSet<AbsPath> {
    if may_choose(session).is_err() || guard::refuse_a_persons(desk, session).is_err() {
        return BTreeSet::new();
    }
    let is_alone = |change: &&Change| !change.marks.linked && !change.marks.link_broken;
    let is_file = |change: &&Change| change.after.as_ref().is_some_and(|after| after.is_file() && after.size() <= MOST);
    changes.iter().filter(is_alone).filter(is_file).map(|change| change.path.clone()).collect()
}

/// The content that a session holds at the path of a change, to be edited.
///
/// # Errors
/// No file is held there, or one that is too large; it cannot be read.
pub fn content(session: &Session, change: &Change) -> Result<Vec<u8>, Error> {
    let path = &change.path;
    let Some(after) = change.after.as_ref().filter(|after| after.is_file()) else { return Err(no_file_held(change)) };
    if after.size() > MOST {
        return Err(too_large_to_edit(path));
    }
    let mut bytes = Vec::new();
    match Sources::of(session)?.after(change, Side::Never, &OnTree::AsRecorded)? {
        Content::File(file) => file.take(MOST).read_to_end(&mut bytes).at("read", path)?,
        Content::Gone(why) => return Err(Error::refused(format!("{path}: {why}"))),
    };
    Ok(bytes)
}

/// Makes a session hold what was written to its files, all or none. `words`: what `steps` shows as the step's command.
///
/// # Errors
/// The session is as it was before: it does not hold what was edited any more, or it cannot hold the new content.
pub fn edit(desk: &Desk, key: &str, edits: Vec<HeldEdit>, words: Vec<Arg>) -> Result<HeldEdited, Error> {
    gate::before_changes(desk)?;
    let (store, mut session) = desk.locked(key, Want::Discard)?;
    may_choose(&session)?;
    let changes = session.changes()?;
    let mut choices = Vec::with_capacity(edits.len());
    for edit in edits {
        let gone = || not_edited(&edit.path);
        let change = changes.at(&edit.path).ok_or_else(gone)?;
        let after = change.after.as_ref().filter(|after| after.is_file()).ok_or_else(gone)?;
        if Hash::of(&content(&session, change)?) != edit.old {
            return Err(gone());
        }
        let what = What::File { size: edit.new.len() as u64, hash: Some(Hash::of(&edit.new)), index: None };
        let after = State { what, meta: Meta { mtime: crate::fs::now(), ..after.meta.clone() } };
        choices.push(Choice { path: edit.path, before: change.before.clone(), after, content: edit.new });
    }
    let paths: Vec<AbsPath> = choices.iter().map(|choice| choice.path.clone()).collect();
    interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
    let _noting = interrupt::note(OnSignal::GoesOn);
    choose(&desk.fs, store, &mut session, words, (choices, Vec::new()))?;
    let entry = Entry::new(log::EDIT, session.id(), session.header.generation, "done", paths.len() as u64);
    desk.note_in_log(store, &entry.of_act(&session.header));
    Ok(HeldEdited { session: session.id().clone(), paths })
}
