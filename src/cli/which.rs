//! Which session a word means. `last` is the newest one of this project on which the verb can act; a name is that of the newest on which it
//! can, wherever that was begun. A verb that only reads takes the store's newest where this project has none.

use std::cell::RefCell;
use std::collections::HashMap;

use super::problem::Problem;
use super::{Call, collect};
use crate::engine::job::Verb;
use crate::error::command;
use crate::fs::path::AbsPath;
use crate::session::Error;
use crate::session::confirm;
use crate::session::header::{Checkpoint, Header, Origin};
use crate::session::id::Id;
use crate::session::prune;
use crate::session::store::Store;
use crate::tree::project::project_of;

/// What a verb wants with the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// To read it.
    Look,
    /// To commit it.
    Commit,
    /// To roll it back.
    RollBack,
    /// To redo it.
    Redo,
    /// To drop what it holds.
    Discard,
    /// To let its commit stay.
    Confirm,
    /// To stage changes in it.
    Stage,
    /// To run a further command in it.
    GoOn,
    /// To change something else about it: its name, what the store keeps of it.
    Tend,
}

impl From<Verb> for Want {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Commit => Want::Commit,
            Verb::Rollback => Want::RollBack,
            Verb::Redo => Want::Redo,
        }
    }
}

impl Want {
    /// Whether the verb can act on a session, as far as its header tells. Of a run that is under way, or not collected yet, it tells
    /// what can become of a pending session.
    pub fn fits(self, store: &Store, header: &Header) -> bool {
        let counts = header.counts;
        if header.discarded.is_some() {
            return false;
        }
        if header.uncollected {
            return matches!(self, Want::Look | Want::Commit | Want::Discard | Want::GoOn | Want::Tend);
        }
        let is_final = header.checkpoint == Checkpoint::Pruned && counts.inside > 0;
        match self {
            Want::Look | Want::Tend => counts.changes > 0,
            Want::Commit => counts.inside < counts.changes && !is_final,
            Want::RollBack => counts.inside > 0 && !is_final,
            Want::Redo => counts.inside < counts.ever_in && !is_final,
            Want::Discard => counts.changes > 0 && prune::refuse_discard(header).is_ok(),
            // A record that cannot be read is one all the same, which the verb says.
            Want::Confirm => !matches!(confirm::read(store, &header.id), Ok(None)),
            Want::Stage => header.origin == Origin::Staged && counts.ever_in == 0,
            Want::GoOn => header.origin == Origin::Captured && counts.changes > 0 && counts.ever_in == 0,
        }
    }

    /// What can be done with a session that fits.
    fn done(self) -> &'static str {
        match self {
            Want::Look => "shown",
            Want::Commit => "committed",
            Want::RollBack => "rolled back",
            Want::Redo => "redone",
            Want::Discard => "discarded",
            Want::Confirm => "confirmed",
            Want::Stage => "staged in",
            Want::GoOn => "gone on in",
            Want::Tend => "changed",
        }
    }

    /// The command that does it with a session of another project.
    fn command(self, id: &Id) -> String {
        command(match self {
            Want::Commit => format!("commit {id}"),
            Want::RollBack => format!("rollback {id}"),
            Want::Redo => format!("redo {id}"),
            Want::Discard => format!("discard {id}"),
            Want::Confirm => format!("confirm {id}"),
            Want::Stage => format!("session write {id} PATH"),
            Want::GoOn => format!("run --session {id} -- COMMAND"),
            Want::Look | Want::Tend => format!("show {id}"),
        })
    }
}

/// The project of the working directory, and which sessions are of it.
pub struct Here {
    /// Its top directory.
    pub project: AbsPath,
    /// The projects of directories that were looked up.
    known: RefCell<HashMap<AbsPath, AbsPath>>,
}

impl Here {
    /// The project of the working directory.
    ///
    /// Errors: the working directory is gone.
    pub fn now() -> Result<Self, Problem> {
        let cwd = super::working_directory()?;
        Ok(Self { project: project_of(&cwd, dirs::home_dir().as_deref()), known: RefCell::default() })
    }

    /// Whether a session was begun in this project.
    pub fn has(&self, store: &Store, header: &Header) -> bool {
        let Some(dir) = begun_in(store, header) else { return false };
        let mut known = self.known.borrow_mut();
        *known.entry(dir).or_insert_with_key(|dir| project_of(dir, dirs::home_dir().as_deref())) == self.project
    }
}

/// The directory in which a session was begun. Of one that does not record it: that of its command, else that of its first path.
pub fn begun_in(store: &Store, header: &Header) -> Option<AbsPath> {
    if let Some(dir) = &header.cwd {
        return Some(dir.clone());
    }
    // What cannot be read is of no project; whoever names it by its id is told why.
    let session = store.session(&header.id).ok()?;
    if let Some(run) = session.run().ok()? {
        return Some(run.cwd);
    }
    session.read_changes().ok()?.next().ok()??.path.parent()
}

/// The session that `key` means. Which one `last` is, is said.
pub fn find(call: &Call, store: &Store, key: &str, want: Want) -> Result<Id, Problem> {
    if key != "last" {
        return store.find(key, |header| want.fits(store, header)).map_err(|error| or_pending_here(store, error));
    }
    // On a machine that is worked on from another one nobody stands in a project.
    let (id, note) = if call.is_far { (collect::newest(call, store)?, None) } else { last(call, store, want)? };
    if call.last.replace(Some(id.clone())).as_ref() != Some(&id) {
        call.out.note(format_args!("last is {id}{}", note.unwrap_or_default()));
    }
    Ok(id)
}

/// The newest session of this project that fits, and what is to be said of it.
fn last(call: &Call, store: &Store, want: Want) -> Result<(Id, Option<String>), Problem> {
    let here = match Here::now() {
        Ok(here) => here,
        Err(_) if want == Want::Look => return Ok((collect::newest(call, store)?, None)),
        Err(problem) => return Err(problem),
    };
    let (headers, _) = store.headers()?;
    let mut passed = Passed::default();
    for header in headers.iter().rev().filter(|header| counts(want, header) && here.has(store, header)) {
        match collected(call, store, header, want)? {
            Some(header) if want.fits(store, &header) => {
                passed.say(call);
                return Ok((header.id, None));
            }
            Some(header) => passed.add(&header),
            None => {}
        }
    }
    if want == Want::Look {
        let id = collect::newest(call, store)?;
        let dir = begun_in(store, &store.session(&id)?.header);
        return Ok((id, dir.map(|dir| format!(", begun in {dir}: this project has none"))));
    }
    let elsewhere = headers.iter().rev().find(|header| want.fits(store, header) && !here.has(store, header));
    Err(none_here(store, &here, want, elsewhere, &passed))
}

/// What `last` would be found to be, where nothing is to be done for it: no run is collected, and nothing said.
pub fn newest_here(call: &Call, want: Want) -> Option<Id> {
    let (Ok(Some(store)), Ok(here)) = (call.store(), Here::now()) else { return None };
    let (headers, _) = store.headers().ok()?;
    headers.iter().rev().find(|header| want.fits(store, header) && here.has(store, header)).map(|header| header.id.clone())
}

/// Whether a session is one that `last` could be, or has to be told of where it is not.
fn counts(want: Want, header: &Header) -> bool {
    let empty_desk = want == Want::Stage && header.origin == Origin::Staged;
    header.discarded.is_none() && (header.counts.changes > 0 || header.uncollected || empty_desk)
}

/// The header of a session once its run is collected, where it was cut off and the verb could act on what it left: else an older session
/// would be taken for what was done last. `None` of a first run that is under way or left nothing.
fn collected(call: &Call, store: &Store, header: &Header, want: Want) -> Result<Option<Header>, Problem> {
    if !header.uncollected || !want.fits(store, header) {
        return Ok(Some(header.clone()));
    }
    let mut locked = match store.lock_session(&call.fs, &header.id) {
        // A further run goes on in a session that is meant: what cannot be done with it now is for the verb to say.
        Err(Error::Busy { .. }) if header.counts.changes > 0 => return Ok(Some(header.clone())),
        Err(Error::Busy { .. }) => {
            call.out.note(format_args!("a run of session {} is under way: it is not meant by 'last' yet", header.id));
            return Ok(None);
        }
        locked => locked?,
    };
    if locked.header.uncollected {
        collect::collect(call, store, &mut locked)?;
    }
    Ok((locked.header.counts.changes > 0).then(|| locked.header.clone()))
}

/// Newer sessions of this project on which the verb cannot act.
#[derive(Default)]
struct Passed(Vec<String>);

impl Passed {
    /// So many are named.
    const NAMED: usize = 3;

    fn add(&mut self, header: &Header) {
        let pruned = if header.checkpoint == Checkpoint::Pruned { ", its checkpoint pruned" } else { "" };
        self.0.push(format!("{} ({}{pruned})", header.id.tail(), header.status().word().replace('_', " ")));
    }

    fn text(&self) -> Option<String> {
        let named = self.0.iter().take(Self::NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.0.len() {
            0 => None,
            n if n > Self::NAMED => Some(format!("{named} and {} more", n - Self::NAMED)),
            _ => Some(named),
        }
    }

    fn say(&self, call: &Call) {
        if let Some(text) = self.text() {
            call.out.note(format_args!("passed over: {text}"));
        }
    }
}

fn none_here(store: &Store, here: &Here, want: Want, elsewhere: Option<&Header>, passed: &Passed) -> Problem {
    let problem = Problem::refused(format!("no session of this project can be {}: {}", want.done(), here.project));
    let state = passed.text().map(|text| format!("nothing was changed; here: {text}")).or(problem.state.clone());
    let remedy = match elsewhere {
        None => command("list --all shows all sessions"),
        Some(header) => {
            let place = begun_in(store, header).map(|dir| format!(", begun in {dir}")).unwrap_or_default();
            format!("the newest elsewhere{place}: {}", want.command(&header.id))
        }
    };
    Problem { state, ..problem }.remedy(remedy)
}

/// Where no name is near, what is pending in this project.
fn or_pending_here(store: &Store, error: Error) -> Problem {
    let is_far_off = matches!(&error, Error::Unknown { near, .. } if near.is_empty());
    let problem = Problem::from(error);
    let pending = if is_far_off { pending_here(store) } else { Vec::new() };
    if pending.is_empty() {
        return problem;
    }
    let list = command("list --all shows all sessions");
    problem.remedy(format!("pending here: {}; {list}", pending.join(", ")))
}

/// The newest three, with their names.
fn pending_here(store: &Store) -> Vec<String> {
    let (Ok(here), Ok((headers, _))) = (Here::now(), store.headers()) else { return Vec::new() };
    let pending = headers.iter().rev().filter(|header| {
        let counts = header.counts;
        header.discarded.is_none() && counts.changes > 0 && counts.ever_in == 0 && here.has(store, header)
    });
    let show = |header: &Header| {
        let name = header.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("{}{name}", header.id.tail())
    };
    pending.take(3).map(show).collect()
}
