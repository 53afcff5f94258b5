//! Words for what a verb says while it works, and what it asks.

use super::out::Out;
use super::recovered;
use super::text;
use crate::session::run::Failed;
use crate::verb::error::{but, whose};
use crate::verb::said::{Collected, Lost, Question, Said};
use crate::verb::standing::Standing;

/// Says it: what must not be missed as a warning, the rest as a note.
pub fn tell(out: &Out, said: &Said<'_>) {
    match said {
        Said::Last { id, elsewhere } => {
            let place = elsewhere.map(|dir| format!(", begun in {dir}: this project has none")).unwrap_or_default();
            out.note(format_args!("last is {id}{place}"));
        }
        Said::Named { name, id, begun_in } => {
            let place = begun_in.map(|dir| format!(", begun in {}", out.place(dir))).unwrap_or_default();
            out.note(format_args!("{name} is session {}{place}", id.tail()));
        }
        Said::UnderWay(id) => out.note(format_args!("a run of session {id} is under way: it is not meant by 'last' yet")),
        Said::Collected(run) if run.lost.is_some() => out.warn(collected(run)),
        Said::Collected(run) => out.note(collected(run)),
        Said::Recovered(one) => recovered::say(out, one),
        Said::Running(id) => {
            out.note(format_args!("a command runs in session {}: this is what it has changed so far", id.tail()))
        }
        Said::NotCounted { id, why } => {
            out.warn(format_args!("session {id}: the changes of the command that runs in it are not counted: {}", why.message()))
        }
        Said::Mixed(id) => {
            out.warn(format_args!("another recant was at work in session {id} meanwhile: this may mix old and new"))
        }
        Said::Waiting(store) => out.note(format_args!("another recant is at work in {store}; waiting")),
        Said::Unswept(error) => {
            out.warn(format_args!("{error}; nothing needs it, and the next verb that changes something tries again"))
        }
        Said::NotLogged(error) => out.warn(format_args!("the log could not be written: {error}")),
        Said::NoRenames(error) => out.warn(format_args!("renamed files are shown as deleted and created: {error}")),
        Said::New { id, name, former } => {
            let former = former.map(|id| format!("; {} of that name is rolled back, and not all of it is there", id.tail()));
            out.note(format_args!("new session {}, named {name}{}", id.tail(), former.unwrap_or_default()));
        }
        Said::OpenAgain(id) => out.note(format_args!("session {} is open again: its commit was undone", id.tail())),
        Said::WaitsForCommand(id) => out.note(format_args!("waiting for the command that runs in session {}", id.tail())),
        Said::Unnamed { id, name } => {
            out.warn(format_args!("another session got the name {name} meanwhile: session {} has none", id.tail()))
        }
        Said::Warning(warning) => out.warn(warning),
    }
}

/// A question.
pub fn question(question: &Question<'_>) -> String {
    match question {
        Question::Others { id, act } => {
            format!("The newest act here is {}, on session {}: go on?", whose(act), id.tail())
        }
    }
}

/// A run that was cut off, and what became of that.
pub fn collected(run: &Collected) -> String {
    let id = &run.id;
    match &run.lost {
        None => {
            let held = text::count(run.changes, "change");
            format!("the run of session {id} was cut off; what it had changed is held: {held}")
        }
        Some(Lost::Command { head }) => format!(
            "the machine went down while a command ran in session {id}: what that had changed is lost; the session stands at step {head}"
        ),
        Some(Lost::Memory) => format!("the run of session {id} was cut off; what it had changed lay in memory and is lost"),
        Some(Lost::Record(held)) => format!(
            "the machine went down in the run of session {id}, and its record with it: what it had changed lies unread in {}",
            held.display()
        ),
    }
}

/// The status of a session, with its conditions.
pub fn standing(standing: Standing) -> String {
    let mut text = standing.word.replace('_', " ");
    let left = format!("{} left", standing.left);
    let failed = standing.failed.map(Failed::text).unwrap_or_default();
    let conditions = [
        (standing.failed.is_some(), &*failed),
        (standing.imported, "imported"),
        (standing.unsynced, "unsynced"),
        (standing.interrupted, "interrupted"),
        (standing.left > 0, &*left),
    ];
    for (on, word) in conditions {
        if on {
            text.push_str(", ");
            text.push_str(word);
        }
    }
    text + &but(standing.counts)
}
