//! `agent install` and `agent uninstall`: an edit of an agent's settings, made as a committed session.

use std::io::Cursor;
use std::path::Path;

use serde::Serialize;

use super::settings::{File, files, surroundings, unparsed};
use super::status::closed_places;
use crate::agent::known::Agent;
use crate::agent::receipt::Receipt;
use crate::agent::settings;
use crate::agent::settings::command::Command;
use crate::agent::settings::edit::Edit;
use crate::agent::settings::form::Form;
use crate::agent::settings::places::{Place, Scope, chosen};
use crate::compare::patch::{Form as Shape, Words};
use crate::compare::sources::Sources;
use crate::compare::view::View;
use crate::engine::Effect;
use crate::error::{Error, Kind, command, shell_word};
use crate::face::args::Install;
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures;
use crate::face::text::patch;
use crate::fs::path::AbsPath;
use crate::session::id::Id;
use crate::session::log;
use crate::session::opened::Locked;
use crate::session::stage::{Desk, Write};
use crate::session::store::Store;
use crate::tree::hash::Hash;
use crate::tree::state::State;
use crate::verb::act::carry_out;
use crate::verb::act::carry_out::Conflicts;
use crate::verb::act::temporary::filled;
use crate::verb::act::temporary::take_away;

#[derive(Serialize)]
struct Whole<'a> {
    verb: &'static str,
    agent: Agent,
    scope: &'static str,
    dry_run: bool,
    /// `null` if nothing was changed.
    session: Option<&'a Id>,
    files: Vec<Row<'a>>,
}

/// A file that was edited, or would be.
#[derive(Serialize)]
struct Row<'a> {
    path: &'a AbsPath,
    /// The link by which the agent finds it.
    link: Option<&'a AbsPath>,
    change: &'static str,
}

/// A change of a file of settings.
struct Change {
    named: AbsPath,
    path: AbsPath,
    /// The digest of the text that the edit was made for; `None`: there was no file.
    before: Option<Hash>,
    /// The text; `None`: the file goes.
    after: Option<String>,
    receipt: Option<Receipt>,
    /// Directories that go with it, if nothing else is in them: the deepest first.
    directories: Vec<AbsPath>,
}

impl Change {
    fn word(&self) -> &'static str {
        match (&self.after, self.before) {
            (None, _) => "deleted",
            (_, None) => "created",
            _ => "modified",
        }
    }
}

struct Asked<'a> {
    call: &'a Call,
    agent: Agent,
    scope: Scope,
    verb: &'static str,
    dry_run: bool,
}

impl<'a> Asked<'a> {
    fn new(call: &'a Call, args: &Install, verb: &'static str) -> Self {
        let scope = if args.project { Scope::Project } else { Scope::User };
        Self { call, agent: args.agent, scope, verb, dry_run: args.dry_run }
    }

    fn words(&self) -> String {
        format!("agent {} {}{}", self.verb, self.agent.word(), self.scope.option())
    }
}

/// Adds recant's hooks to an agent's settings.
pub fn install(call: &Call, args: &Install) -> Result<Ended, Error> {
    let asked = Asked::new(call, args, "install");
    let (agent, scope) = (asked.agent, asked.scope);
    let command = match scope {
        Scope::User => Command::of_path(agent, &own_path()?),
        Scope::Project => Command::bare(agent),
    };
    let files = files(&surroundings()?, agent, scope)?;
    let places: Vec<_> = files.iter().map(|file| Place { path: file.named.clone(), form: file.form }).collect();
    let texts: Vec<_> = files.iter().map(|file| file.text.clone()).collect();
    let at = chosen(&places, &texts, |i| !files[i].hooks.is_empty());
    let mut changes = Vec::new();
    for (i, file) in files.iter().enumerate() {
        let change = if i == at { added(call, agent, file, &command)? } else { removed(call, agent, file)? };
        changes.extend(change);
    }
    if changes.is_empty() {
        say_nothing(&asked, &format!("the hooks for {} are there already: {}", agent.name(), call.out.shown(&files[at].named)));
        return Ok(Ended::Done);
    }
    let ended = carry_out(&asked, changes, "Add recant's hooks to")?;
    for place in closed_places(call)? {
        call.out.note(format_args!("turns here do not cover {place}"));
    }
    Ok(ended)
}

/// Removes recant's hooks from an agent's settings.
pub fn uninstall(call: &Call, args: &Install) -> Result<Ended, Error> {
    let asked = Asked::new(call, args, "uninstall");
    let files = files(&surroundings()?, asked.agent, asked.scope)?;
    let mut changes = Vec::new();
    for file in &files {
        changes.extend(removed(call, asked.agent, file)?);
    }
    if changes.is_empty() {
        let named = call.out.shown(&files[0].named);
        say_nothing(&asked, &format!("there are no hooks of recant for {} in {named}", asked.agent.name()));
        say_other(&asked);
        return Ok(Ended::Done);
    }
    carry_out(&asked, changes, "Remove recant's hooks from")
}

/// The path of this program that settings name: the one in PATH, which an update leaves as it is, if it is this program.
fn own_path() -> Result<String, Error> {
    let refused = |why: &str| Error::refused(format!("the settings cannot name this program: {why}"));
    let own = std::env::current_exe().map_err(|error| refused(&crate::error::reason(&error)))?;
    let real =
        own.canonicalize().map_err(|_| refused("it was replaced or removed since it was started").with_remedy("try again"))?;
    let is_own = |path: &Path| path.is_absolute() && path.canonicalize().is_ok_and(|path| path == real);
    let path = super::programs::find("recant").filter(|path| is_own(path)).unwrap_or(own);
    if path.file_name().is_none_or(|name| name != "recant") {
        return Err(refused("its name is not recant, by which hooks are found again").with_remedy("call it by that name"));
    }
    path.into_os_string().into_string().map_err(|_| refused("its path is no text in UTF-8"))
}

/// The receipt of a file whose hooks are there, and the text before it, if the file was not written to since.
fn known(call: &Call, file: &File) -> Result<(Option<Receipt>, Option<String>), Error> {
    let (Some(store), Some(text), false) = (call.store()?, &file.text, file.hooks.is_empty()) else { return Ok((None, None)) };
    let receipt = Receipt::read(store, &file.path);
    let before = receipt.as_ref().and_then(|receipt| receipt.before(text));
    Ok((receipt, before))
}

/// The change that leaves a file with the hooks; `None` if it has them.
fn added(call: &Call, agent: Agent, file: &File, command: &Command) -> Result<Option<Change>, Error> {
    let wrong = |wrong| unparsed(&file.named, &wrong);
    let text = file.text.as_deref();
    if let Some(text) = text
        && settings::is_installed(agent, file.form, text, command).map_err(wrong)?
    {
        return Ok(None);
    }
    let (receipt, before) = known(call, file)?;
    let (created, directories) = match receipt {
        Some(receipt) => (receipt.created, receipt.directories),
        None => (text.is_none(), missing_above(&file.path)),
    };
    let base = match (before, text) {
        (Some(before), _) => (!created).then_some(before),
        (None, Some(text)) => Some(settings::remove(agent, file.form, text).map_err(wrong)?),
        (None, None) => None,
    };
    let Edit { after, added } = settings::add(agent, file.form, base.as_deref(), command).map_err(wrong)?;
    let hash = Hash::of(after.as_bytes());
    let receipt = Receipt { path: file.path.clone(), created, directories, hash, added };
    Ok(Some(Change {
        named: file.named.clone(),
        path: file.path.clone(),
        before: text.map(|text| Hash::of(text.as_bytes())),
        after: Some(after),
        receipt: Some(receipt),
        directories: Vec::new(),
    }))
}

/// The change that leaves a file without the hooks; `None` if it has none.
fn removed(call: &Call, agent: Agent, file: &File) -> Result<Option<Change>, Error> {
    let Some(text) = file.text.as_deref().filter(|_| !file.hooks.is_empty()) else { return Ok(None) };
    let (receipt, before) = known(call, file)?;
    let left = match before {
        Some(before) => before,
        None => settings::remove(agent, file.form, text).map_err(|wrong| unparsed(&file.named, &wrong))?,
    };
    // A file of recant's own name is one that an installation made, also on another machine.
    let created = receipt.as_ref().map_or(matches!(file.form, Form::Flat | Form::Program), |receipt| receipt.created);
    let goes = created && is_empty(&left);
    let directories = receipt.filter(|_| goes).map_or(Vec::new(), |receipt| receipt.directories);
    Ok(Some(Change {
        named: file.named.clone(),
        path: file.path.clone(),
        before: Some(Hash::of(text.as_bytes())),
        after: (!goes).then_some(left),
        receipt: None,
        directories: emptied(&file.path, directories),
    }))
}

/// True if a text that an installation made says nothing any more.
fn is_empty(text: &str) -> bool {
    let bare: String = text.split_whitespace().collect();
    ["", "{}", "{\"version\":1}", "{\"version\":1,}"].contains(&&*bare)
}

/// The directories above a path that are missing, the topmost first.
fn missing_above(path: &AbsPath) -> Vec<AbsPath> {
    let above = std::iter::successors(path.parent(), AbsPath::parent);
    let mut missing: Vec<_> = above.take_while(|above| above.as_path().symlink_metadata().is_err()).collect();
    missing.reverse();
    missing
}

/// Those of the directories that hold nothing but the file, the deepest first.
fn emptied(file: &AbsPath, directories: Vec<AbsPath>) -> Vec<AbsPath> {
    let (mut gone, mut inside) = (Vec::new(), file.clone());
    for directory in directories.into_iter().rev() {
        let names = directory.as_path().read_dir().map(|names| names.flatten().map(|name| name.path()).collect::<Vec<_>>());
        if !names.is_ok_and(|names| names.iter().all(|name| name == inside.as_path())) {
            break;
        }
        inside = directory.clone();
        gone.push(directory);
    }
    gone
}

fn say_nothing(asked: &Asked<'_>, why: &str) {
    tell(asked, None, &[]);
    asked.call.out.note(format_args!("{why}; nothing was changed"));
}

/// Names the settings of the other scope, if the hooks are there.
fn say_other(asked: &Asked<'_>) {
    let other = if asked.scope == Scope::Project { Scope::User } else { Scope::Project };
    let Ok(files) = surroundings().and_then(|around| files(&around, asked.agent, other)) else { return };
    if let Some(file) = files.iter().find(|file| !file.hooks.is_empty()) {
        let remove = command(format_args!("agent uninstall {}{}", asked.agent.word(), other.option()));
        asked.call.out.note(format_args!("{remove} removes those in {}", asked.call.out.shown(&file.named)));
    }
}

/// Shows the edit, asks, and makes it. `question`: its words before the files.
fn carry_out(asked: &Asked<'_>, changes: Vec<Change>, question: &str) -> Result<Ended, Error> {
    let Asked { call, agent, verb, dry_run, .. } = *asked;
    if !dry_run {
        unasked(asked)?;
    }
    let store = &call.made_store()?;
    if !dry_run {
        call.prepare_to_change(store)?;
    }
    let own = store.begin_own(&call.fs, asked.words())?;
    let mut session = filled(call, store, own, |session| fill(call, store, session, &changes))?;
    let shown = show(call, &session);
    if dry_run || shown.is_err() {
        take_away(call, store, session);
        shown?;
        tell(asked, None, &changes);
        call.out.note("nothing was changed");
        return Ok(Ended::Done);
    }
    for change in changes.iter().filter(|change| change.named != change.path) {
        let (named, path) = (call.out.shown(&change.named), call.out.shown(&change.path));
        call.out.say(format_args!("recant: {named} is a link: the edit is made in {path}"));
    }
    let edited: Vec<String> = changes.iter().map(|change| call.out.shown(&change.path)).collect();
    if let Err(problem) = call.confirm(&format!("{question} {}?", figures::list(&edited))) {
        take_away(call, store, session);
        return Err(problem);
    }
    let named = format!("{verb} the hooks for {}", agent.name());
    let done = carry_out::restore(call, store, &mut session, &named, (Conflicts::Stop, Effect::Apply));
    let (result, paths) = done.as_ref().map_or(("failed", 0), |report| ("done", report.rows.len()));
    let entry = log::Entry::new(asked.words(), session.id(), session.header.generation, result, paths as u64).of(&session.header);
    call.note_in_log(store, &entry);
    let report = match done {
        Ok(done) => done,
        Err(problem) => {
            if !matches!(problem.kind(), Kind::Stuck) {
                take_away(call, store, session);
            }
            return Err(problem);
        }
    };
    report.notes.iter().for_each(|note| call.out.warn(note));
    remember(call, store, &changes);
    tell(asked, Some(session.id()), &changes);
    say_done(asked, session.id(), &changes);
    Ok(if report.left.is_empty() && !report.uncovered { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

/// Refuses if nobody can be asked.
fn unasked(asked: &Asked<'_>) -> Result<(), Error> {
    if asked.call.yes || asked.call.can_ask {
        return Ok(());
    }
    let problem = Error::new(Kind::Usage, format!("agent {} asks first, and there is no terminal", asked.verb));
    let [shows, goes] = ["--dry-run", "-y"].map(|option| command(format_args!("{} {option}", asked.words())));
    Err(problem.with_remedy(shows + " shows the edit; " + goes + " asks nothing"))
}

fn fill(call: &Call, store: &Store, session: &mut Locked, changes: &[Change]) -> Result<(), Error> {
    let mut desk = Desk::open(&call.fs, store, session, true)?;
    let root = Path::new("/");
    let staged = changes.iter().try_for_each(|change| {
        let path = change.path.as_path();
        match &change.after {
            Some(text) => {
                let content = &mut Cursor::new(text.as_bytes());
                let write = Write { content, source: "the new settings", mode: None, over_directory: false };
                desk.write(path, root, write)?;
            }
            None => {
                desk.delete(path, root, false)?;
            }
        }
        for directory in &change.directories {
            desk.delete(directory.as_path(), root, false)?;
        }
        Ok(())
    });
    if let Err(error) = staged {
        desk.give_up();
        return Err(error);
    }
    // What cannot be removed now goes with the session.
    drop(desk.finish()?);
    let found = session.changes()?;
    let of_another = |change: &&Change| {
        let before = found.at(&change.path).and_then(|found| found.before.object.as_ref()).and_then(State::hash);
        before != change.before
    };
    match changes.iter().find(of_another) {
        Some(change) => {
            Err(Error::at(Kind::Refused, &change.path, "somebody else writes it at this moment").with_remedy("try again"))
        }
        None => Ok(()),
    }
}

fn show(call: &Call, session: &Locked) -> Result<(), Error> {
    if !call.out.is_text() {
        return Ok(());
    }
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let mut sources = Sources::of(session)?;
    let words = if call.out.is_colored() { Words::Marked } else { Words::Unmarked };
    for (change, side) in changes.list.iter().zip(&sides) {
        patch::print(&call.out, &View::of(change, *side, &mut sources, true)?, Shape { words, ..Shape::default() });
    }
    call.out.flush();
    Ok(())
}

/// Keeps what was added, so that it can be taken out to the byte. Nobody needs it: an error is a warning.
fn remember(call: &Call, store: &Store, changes: &[Change]) {
    for receipt in changes.iter().filter_map(|change| change.receipt.as_ref()) {
        if let Err(error) = receipt.write(&call.fs, store) {
            call.out.warn(format_args!("what was added is not kept in the store: {error}; it is found by what it says"));
        }
    }
}

fn tell<'c>(asked: &Asked<'_>, session: Option<&Id>, changes: &'c [Change]) {
    let Asked { call, agent, scope, verb, dry_run } = *asked;
    let row = |change: &'c Change| {
        let Change { named, path, .. } = change;
        Row { path, link: (named != path).then_some(named), change: change.word() }
    };
    if call.out.is_text() {
        if session.is_some() && !call.out.is_quiet() {
            let line = |change: &Change| format!("{:<9} {}", change.word(), call.out.shown(&change.path));
            changes.iter().for_each(|change| call.out.line(line(change)));
        }
    } else {
        let files = changes.iter().map(row).collect();
        call.out.document(&Whole { verb, agent, scope: scope.word(), dry_run, session, files });
    }
}

fn say_done(asked: &Asked<'_>, id: &Id, changes: &[Change]) {
    let (out, agent) = (&asked.call.out, asked.agent);
    out.note(format_args!("to take it back: {}", command(format_args!("rollback {}", id.tail()))));
    if asked.verb == "uninstall" {
        return;
    }
    let starts = match (agent, asked.scope) {
        (Agent::Codex, _) => "Codex CLI runs a hook once you have trusted it: /hooks in it shows and trusts them",
        (Agent::Claude, Scope::Project) => "Claude Code runs hooks of a project that you have trusted",
        (Agent::Gemini, Scope::Project) => "Gemini CLI warns of new hooks of a project, and then runs them",
        (Agent::Pi, Scope::Project) => "pi loads extensions of a project that you have trusted",
        (Agent::Claude, Scope::User) => "Claude Code sees them at once",
        _ => "they count from the agent's next start on",
    };
    let status = command(format_args!("agent status {}", agent.word()));
    out.note(format_args!("{starts}; {status} tells if they fire"));
    if asked.scope == Scope::Project
        && let Some(change) = changes.first()
    {
        let path = out.shown(&change.path);
        out.note(format_args!("for all who work on it: git add {}", shell_word(path.as_bytes())));
    }
}
