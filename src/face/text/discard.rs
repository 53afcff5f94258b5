//! `discard`, in words.

use crate::error::{Error, Kind, command};
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::find_store::all_whole;
use crate::face::out::Out;
use crate::face::{args, figures};
use crate::verb::discard::{Sessions, Skipped};
use crate::verb::resolve::target::What;
use crate::verb::{ALREADY, Discard, Discarded, Dropped, End, PartDiscarded, Target, discard};

/// Discards sessions, or paths of one.
pub fn discard(call: &Call, args: &args::Discard) -> Result<Ended, Error> {
    let Some(key) = args.id.as_ref().filter(|_| !args.all) else { return sessions(call, discard::all_pending(call)?) };
    let words = all_whole(&args.paths)?;
    let what = if args.patch { What::Asked(words) } else { What::named(words) };
    let of = Target { what, dry_run: args.dry_run, reason: args.message.clone(), ..Target::all(key) };
    match discard::discard(call, &Discard { of, end: if args.now { End::Now } else { End::Aside } })? {
        Discarded::Sessions(discarded) => sessions(call, discarded),
        Discarded::Part(part) => {
            part.iter().for_each(|part| say_part(&call.out, part));
            Ok(Ended::Done)
        }
    }
}

/// Reports the sessions that were discarded, also before an error that stopped it.
///
/// # Errors
/// It was stopped.
pub fn sessions(call: &Call, mut done: Sessions) -> Result<Ended, Error> {
    let stopped = done.stopped.take();
    if call.out.is_text() {
        say(call, &done, stopped.is_none());
    } else if stopped.is_none() || !done.discarded.is_empty() {
        call.out.document(&done);
    }
    match stopped {
        Some(error) if done.discarded.is_empty() => Err(error),
        Some(error) => {
            Err(error.after(&format!("{} discarded before it", figures::count(done.discarded.len() as u64, "session"))))
        }
        None if done.skipped.iter().any(|skipped| skipped.why != ALREADY) => Ok(Ended::With(Kind::LeftOut)),
        None => Ok(Ended::Done),
    }
}

fn say(call: &Call, done: &Sessions, is_whole: bool) {
    let out = &call.out;
    for Skipped { session, why } in &done.skipped {
        let line = format!("session {} stays as it is: {why}", session.tail());
        if *why == ALREADY { out.note(line) } else { out.warn(line) }
    }
    let whose = match &done.discarded[..] {
        [] if done.skipped.is_empty() && is_whole => {
            let place = if call.is_far() { "on this machine" } else { "in this project" };
            return out.note(format_args!("no pending session {place}: nothing to discard"));
        }
        [] => return,
        [one] => one.session.tail(),
        _ => "ID",
    };
    out.note(headline(done));
    if let Some(until) = done.discarded[0].until.filter(|_| !done.dry_run) {
        out.note(format_args!("to undo this, until {}: {}", figures::day(until), command(format_args!("undo {whose}"))));
    }
}

/// The sessions, and what they held.
fn headline(done: &Sessions) -> String {
    let sum = |of: fn(&Dropped) -> u64| done.discarded.iter().map(of).sum::<u64>();
    let (changes, bytes) = (figures::count(sum(|d| d.changes), "change"), figures::bytes(sum(|d| d.bytes)));
    let steps = Some(sum(|d| d.steps)).filter(|steps| *steps > 0).map(|steps| format!(", {}", figures::count(steps, "step")));
    let is_cut_off = done.discarded.iter().any(|d| d.uncollected);
    let cut_off = if is_cut_off { ", and the changes of a run that was cut off" } else { "" };
    let is_freed = done.discarded.first().is_some_and(|first| first.until.is_none());
    let discarded = if is_freed { "freed, which cannot be undone" } else { "discarded" };
    let held = format!("{changes}{}{cut_off}, {bytes}", steps.unwrap_or_default());
    let (is, would) = if done.dry_run { ("would be", " would be") } else { ("is", "") };
    match &done.discarded[..] {
        [one] => {
            let name = one.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            format!("session {}{name} {is} {discarded}: {held}", one.session.tail())
        }
        many => format!("{}{would} {discarded}: {held}", figures::count(many.len() as u64, "session")),
    }
}

/// Reports what left a session.
pub fn say_part(out: &Out, part: &PartDiscarded) {
    if !out.is_text() {
        return out.document(part);
    }
    let PartDiscarded { session, discarded, notes, .. } = part;
    notes.iter().for_each(|note| out.note(note));
    if !out.is_kept() {
        let limit = out.limit();
        discarded.iter().take(limit).for_each(|path| out.say(format_args!("discarded {}", out.shown(path))));
        if let Some(more) = discarded.len().checked_sub(limit).filter(|more| *more > 0) {
            out.say(figures::more(more, &command(format_args!("discard {} PATH -v lists all", session.tail()))));
        }
    }
    out.note(part_headline(part));
}

/// Says in a line what left a session.
pub fn part_headline(part: &PartDiscarded) -> String {
    let PartDiscarded { session, step, discarded, left, dry_run, .. } = part;
    let changes = figures::count(discarded.len() as u64, "change");
    let (would, at) = (if *dry_run { "would be " } else { "" }, step.map_or(String::new(), |step| format!(": step {step}")));
    format!("session {}: {changes} {would}discarded, {left} still held{at}", session.tail())
}
