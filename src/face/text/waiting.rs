//! Words for a commit that waits to be confirmed.

use crate::error::command;
use crate::face::figures;
use crate::face::out::Out;
use crate::verb::Waiting;

/// The time until which it waits.
fn until(waiting: &Waiting) -> String {
    figures::time(waiting.due, true)
}

/// How it stands, and what stood against taking it back, a line each.
pub fn lines(waiting: &Waiting) -> Vec<String> {
    let (id, until) = (&waiting.session, until(waiting));
    let first = if !waiting.failed.is_empty() {
        format!("{id}: not confirmed by {until}, and not all of it could be taken back:")
    } else if waiting.overdue {
        format!("{id}: not confirmed by {until}: the next recant that changes something takes it back")
    } else {
        format!("{id}: taken back at {until} unless confirmed: {}", command(format_args!("confirm {}", id.tail())))
    };
    std::iter::once(first).chain(waiting.failed.iter().cloned()).collect()
}

/// Tells the user until when to confirm, how, and who takes it back else.
pub fn say(out: &Out, waiting: &Waiting) {
    let (id, confirm) = (&waiting.session, command(format_args!("confirm {}", waiting.session.tail())));
    out.note(format_args!("session {id} is rolled back at {} unless confirmed: {confirm}", until(waiting)));
    match waiting.by.as_deref() {
        Some(by) => out.note(format_args!("{by} does it; after a restart the next recant that changes something")),
        None => out.note("no watcher could be started: the next recant that changes something does it"),
    }
}
