//! `agent install` and `agent uninstall`, in words.

use crate::agent::Scope;
use crate::compare::{Form, Sources, View, Words};
use crate::error::{Error, Kind, command, shell_word};
use crate::face::args::Install;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::out::Out;
use crate::face::surroundings::surroundings;
use crate::face::text::patch;
use crate::fs::AbsPath;
use crate::session::{Id, Session};
use crate::verb::agent::install::{Asked, edit};
use crate::verb::error::closed_place;
use crate::verb::{Change, Deed, Edited};

/// Adds recant's hooks to an agent's settings, or removes them.
pub fn install(call: &Call, args: &Install, deed: Deed) -> Result<Ended, Error> {
    let (out, around) = (&call.out, surroundings()?);
    let scope = if args.project { Scope::Project } else { Scope::User };
    let show = |session: &Session| show(out, session);
    let edited = edit(call, &Asked { deed, agent: args.agent, scope, dry_run: args.dry_run, around: &around, show: &show })?;
    if !out.is_text() {
        out.document(&edited);
    }
    match (&edited.unchanged, &edited.session) {
        (Some(file), _) => say_nothing(out, &edited, file),
        (None, None) => out.note("nothing was changed"),
        (None, Some(id)) => say_done(out, &edited, id),
    }
    edited.closed.iter().for_each(|place| {
        out.note(format_args!("turns here do not cover {}", out.sentence(&closed_place(place))));
    });
    Ok(if edited.is_whole { Ended::Done } else { Ended::With(Kind::LeftOut) })
}

fn show(out: &Out, session: &Session) -> Result<(), Error> {
    if !out.is_text() {
        return Ok(());
    }
    let changes = session.changes()?;
    let sides = session.sides(changes.list.len())?;
    let mut sources = Sources::of(session)?;
    let words = if out.is_colored() { Words::Marked } else { Words::Unmarked };
    for (change, side) in changes.list.iter().zip(&sides) {
        patch::print(out, &View::of(change, *side, &mut sources, true)?, Form { words, ..Form::default() });
    }
    out.flush();
    Ok(())
}

fn say_nothing(out: &Out, edited: &Edited, file: &AbsPath) {
    let (agent, file) = (edited.agent, out.shown(file));
    let why = match edited.deed {
        Deed::Install => format!("the hooks for {} are installed already: {file}", agent.name),
        Deed::Uninstall => format!("there are no hooks of recant for {} in {file}", agent.name),
    };
    out.note(format_args!("{why}; nothing was changed"));
    if let Some(elsewhere) = &edited.elsewhere {
        let remove = command(format_args!("agent uninstall {}{}", agent.word(), edited.scope.other().option()));
        out.note(format_args!("{remove} removes those in {}", out.shown(elsewhere)));
    }
}

fn say_done(out: &Out, edited: &Edited, id: &Id) {
    if out.is_text() && !out.is_quiet() {
        let line = |change: &Change| format!("{:<9} {}", change.edit.word(), out.shown(&change.path));
        edited.files.iter().for_each(|change| out.line(line(change)));
    }
    out.note(format_args!("to take it back: {}", command(format_args!("rollback {}", id.tail()))));
    if edited.deed == Deed::Uninstall {
        return;
    }
    let counts = (edited.agent.counts)(edited.scope).unwrap_or("they work from the agent's next start on");
    let status = command(format_args!("agent status {}", edited.agent.word()));
    out.note(format_args!("{counts}; {status} shows whether they fire"));
    if let Some(change) = edited.files.first().filter(|_| edited.scope == Scope::Project) {
        let path = out.shown(&change.path);
        out.note(format_args!("for all who work on it: git add {}", shell_word(path.as_bytes())));
    }
}
