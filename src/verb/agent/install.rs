//! `agent install` and `agent uninstall`: an edit of an agent's settings, made as a committed session.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::edit::{Change, FileEdit, added, removed};
use super::fault::Place;
use super::status::closed_places;
use crate::agent::{Agent, Command, File, Scope, Surroundings, chosen, files};
use crate::engine::{Effect, Report};
use crate::error::{Error, Kind};
use crate::fs::AbsPath;
use crate::session::{Id, Locked, Session, Store, Write, log, stage};
use crate::tree::State;
use crate::verb::act::carry_out::{self, Conflicts};
use crate::verb::act::temporary::{filled, take_away};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;
use crate::verb::question::Question;

/// An edit of settings that is asked for.
pub struct Asked<'a> {
    pub deed: Deed,
    pub agent: Agent,
    pub scope: Scope,
    pub dry_run: bool,
    pub around: &'a Surroundings<'a>,
    /// Shows the edit before anything is done.
    pub show: &'a dyn Fn(&Session) -> Result<(), Error>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Deed {
    Install,
    Uninstall,
}

impl Deed {
    pub fn word(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Uninstall => "uninstall",
        }
    }
}

/// Settings that were edited, or would be, as JSON has it: docs/json.md.
#[derive(Serialize)]
pub struct Edited {
    #[serde(rename = "verb")]
    pub deed: Deed,
    pub agent: Agent,
    pub scope: Scope,
    pub dry_run: bool,
    /// The session that did it; `None` if nothing was changed.
    pub session: Option<Id>,
    pub files: Vec<Change>,
    /// The file that says why there was nothing to do.
    #[serde(skip)]
    pub unchanged: Option<AbsPath>,
    /// The file in which the other scope has hooks that stay.
    #[serde(skip)]
    pub elsewhere: Option<AbsPath>,
    /// The places that turns here do not cover.
    #[serde(skip)]
    pub closed: Vec<Place>,
    /// True if all of it was done.
    #[serde(skip)]
    pub is_whole: bool,
}

/// Adds recant's hooks to an agent's settings, or removes them.
///
/// # Errors
/// A file cannot be read or parsed; nobody can be asked, or the answer is no; all that stands against a commit.
pub fn edit(desk: &Desk, asked: &Asked<'_>) -> Result<Edited, Error> {
    let files = files(asked.around, asked.agent, asked.scope)?;
    let at = chosen(&files);
    let changes = match asked.deed {
        Deed::Install => added_to(desk, asked, &files, at)?,
        Deed::Uninstall => {
            let removed = files.iter().map(|file| removed(desk, asked.agent, file)).collect::<Result<Vec<_>, _>>()?;
            removed.into_iter().flatten().collect()
        }
    };
    let &Asked { deed, agent, scope, dry_run, .. } = asked;
    let (unchanged, elsewhere, closed) = (None, None, Vec::new());
    let mut edited =
        Edited { deed, agent, scope, dry_run, session: None, files: changes, unchanged, elsewhere, closed, is_whole: true };
    if edited.files.is_empty() {
        edited.unchanged = Some(files[if deed == Deed::Install { at } else { 0 }].named.clone());
        edited.elsewhere = if deed == Deed::Uninstall { elsewhere_of(asked) } else { None };
        return Ok(edited);
    }
    if let Some((id, report)) = carry_out(desk, asked, &edited.files)? {
        edited.session = Some(id);
        edited.is_whole = report.left.is_empty() && !report.uncovered;
    }
    if deed == Deed::Install {
        edited.closed = closed_places(desk, asked.around)?;
    }
    Ok(edited)
}

fn added_to(desk: &Desk, asked: &Asked<'_>, files: &[File], at: usize) -> Result<Vec<Change>, Error> {
    let command = match asked.scope {
        Scope::User => Command::of_path(asked.agent, &own_path(asked.around)?),
        Scope::Project => Command::bare(asked.agent),
    };
    let change = |(i, file): (usize, &File)| match i == at {
        true => added(desk, asked.agent, file, &command),
        false => removed(desk, asked.agent, file),
    };
    let changes = files.iter().enumerate().map(change).collect::<Result<Vec<_>, _>>()?;
    Ok(changes.into_iter().flatten().collect())
}

/// The file in which the other scope has hooks.
fn elsewhere_of(asked: &Asked<'_>) -> Option<AbsPath> {
    let files = files(asked.around, asked.agent, asked.scope.other()).ok()?;
    files.into_iter().find(|file| !file.hooks.is_empty()).map(|file| file.named)
}

/// The path of this program that settings name: the one in PATH, which an update leaves as it is, if it is this program.
fn own_path(around: &Surroundings<'_>) -> Result<String, Error> {
    let own = std::env::current_exe().map_err(|why| error::unnamed_program(error::Unnamed::Unknown(&why)))?;
    let real = own.canonicalize().map_err(|_| error::unnamed_program(error::Unnamed::Replaced))?;
    let is_own = |path: &PathBuf| path.is_absolute() && path.canonicalize().is_ok_and(|path| path == real);
    let path = around.program("recant").filter(is_own).unwrap_or(own);
    if path.file_name().is_none_or(|name| name != "recant") {
        return Err(error::unnamed_program(error::Unnamed::OtherName));
    }
    path.into_os_string().into_string().map_err(|_| error::unnamed_program(error::Unnamed::NoText))
}

/// Shows the edit, asks, and makes it. `None` for a dry run.
fn carry_out(desk: &Desk, asked: &Asked<'_>, changes: &[Change]) -> Result<Option<(Id, Report)>, Error> {
    let words = format!("agent {} {}{}", asked.deed.word(), asked.agent.word(), asked.scope.option());
    if !asked.dry_run && !desk.yes && !desk.can_ask {
        return Err(error::edit_unasked(asked.deed.word(), &words));
    }
    let store = &desk.made_store()?;
    if !asked.dry_run {
        desk.prepare_to_change(store)?;
    }
    let own = store.begin_own(&desk.fs, words.clone())?;
    let mut session = filled(desk, store, own, |session| fill(desk, store, session, changes))?;
    let goes_on = (asked.show)(&session).and_then(|()| if asked.dry_run { Ok(()) } else { ask(desk, asked, changes) });
    if asked.dry_run || goes_on.is_err() {
        take_away(desk, store, session);
        return goes_on.map(|()| None);
    }
    let named = error::edit_of(asked.deed.word(), asked.agent.name);
    let done = carry_out::restore(desk, store, &mut session, &named, (Conflicts::Stop, Effect::Apply));
    let (result, paths) = done.as_ref().map_or(("failed", 0), |report| ("done", report.rows.len()));
    let entry = log::Entry::new(words, session.id(), session.header.generation, result, paths as u64).of(&session.header);
    desk.note_in_log(store, &entry);
    match done {
        Ok(report) => {
            report.notes.iter().for_each(|note| desk.caller.tell(Fact::Warning(note)));
            remember(desk, store, changes);
            Ok(Some((session.id().clone(), report)))
        }
        Err(problem) => {
            if !matches!(problem.kind(), Kind::Stuck) {
                take_away(desk, store, session);
            }
            Err(problem)
        }
    }
}

fn ask(desk: &Desk, asked: &Asked<'_>, changes: &[Change]) -> Result<(), Error> {
    for Change { path, link, .. } in changes {
        link.iter().for_each(|link| desk.caller.tell(Fact::EditedByLink { link, path }));
    }
    let paths: Vec<&AbsPath> = changes.iter().map(|change| &change.path).collect();
    desk.confirm(match asked.deed {
        Deed::Install => Question::AddHooks(&paths),
        Deed::Uninstall => Question::RemoveHooks(&paths),
    })
}

fn fill(desk: &Desk, store: &Store, session: &mut Locked, changes: &[Change]) -> Result<(), Error> {
    let mut staging = stage::Staging::open(&desk.fs, store, session, true)?;
    if let Err(error) = changes.iter().try_for_each(|change| stage(&mut staging, change)) {
        staging.give_up();
        return Err(error);
    }
    // What cannot be removed now goes with the session.
    drop(staging.finish()?);
    let found = session.changes()?;
    let of_another = |change: &&Change| {
        let before = found.at(&change.path).and_then(|found| found.before.object.as_ref()).and_then(State::hash);
        before != change.before
    };
    changes.iter().find(of_another).map_or(Ok(()), |change| Err(error::written_now(&change.path)))
}

fn stage(staging: &mut stage::Staging<'_>, change: &Change) -> Result<(), Error> {
    let (path, root) = (change.path.as_path(), Path::new("/"));
    match &change.edit {
        FileEdit::Created(text) | FileEdit::Modified(text) => {
            let content = &mut Cursor::new(text.as_bytes());
            let write = Write { content, source: error::NEW_SETTINGS, mode: None, over_directory: false };
            staging.write(path, root, write)?;
        }
        FileEdit::Deleted => drop(staging.delete(path, root, false)?),
    }
    for directory in &change.directories {
        staging.delete(directory.as_path(), root, false)?;
    }
    Ok(())
}

/// Keeps what was added, so that it can be taken out to the byte. Nobody needs it: an error is a warning.
fn remember(desk: &Desk, store: &Store, changes: &[Change]) {
    for receipt in changes.iter().filter_map(|change| change.receipt.as_ref()) {
        if let Err(error) = receipt.write(&desk.fs, store) {
            desk.caller.tell(Fact::EditNotRecorded(&error));
        }
    }
}
