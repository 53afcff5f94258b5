//! `rewind` and `fork`: a session at another of its steps, and a further session that begins at one.

use serde::Serialize;

use super::args;
use super::call::Call;
use super::ended::Ended;
use super::{go_on, text};
use crate::capture::fork::fill;
use crate::error::{Error, command};
use crate::fs::interrupt::{self, Asked};
use crate::session::before;
use crate::session::change::Changes;
use crate::session::header::{Counts, Header, Origin, Sizes};
use crate::session::id::{self, Id};
use crate::session::log;
use crate::session::opened::{Locked, Session};
use crate::session::run::{Arg, Run, start_of};
use crate::session::steps::{Step, StepList};
use crate::session::store::Store;
use crate::tree::state::State;
use crate::verb::want::Want;

#[derive(Serialize)]
struct Rewound {
    session: Id,
    step: u32,
    was: u32,
    changes: u64,
    dry_run: bool,
}

#[derive(Serialize)]
struct Forked {
    /// The new session; `null` if nothing was done.
    session: Option<Id>,
    of: Id,
    step: u32,
    changes: u64,
    dry_run: bool,
}

/// Makes a session stand at another of its steps.
pub fn rewind(call: &Call, args: &args::Rewind) -> Result<Ended, Error> {
    let (store, mut session, _) = pending(call, &args.id, Want::Rewind)?;
    let (list, was) = (session.steps()?, session.header.head());
    let step = args.step;
    list.check(&session.header, step)?;
    let changes = list.net(&session, step)?.list.len() as u64;
    if !args.dry_run {
        interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
        let _noting = interrupt::note(Asked::GoesOn);
        go_on::open_again(call, &mut session)?;
        session.for_reason(args.message.as_deref());
        session.rewind(&call.fs, &list, step)?;
        let entry = log::Entry::new(format!("rewind {step}"), session.id(), session.header.generation, "done", changes);
        call.note_in_log(store, &entry.of_act(&session.header));
    }
    let id = session.id().clone();
    if call.out.is_text() {
        let stands = if args.dry_run { "would stand" } else { "stands" };
        let was = if was == step {
            String::new()
        } else {
            format!("; it {} at step {was}", if args.dry_run { "stands" } else { "stood" })
        };
        call.out.note(format_args!("session {} {stands} at step {step}: {}{was}", id.tail(), text::count(changes, "change")));
    } else {
        call.out.document(&Rewound { session: id, step, was, changes, dry_run: args.dry_run });
    }
    Ok(Ended::Done)
}

/// Begins a session as another one is at one of its steps.
pub fn fork(call: &Call, args: &args::Fork) -> Result<Ended, Error> {
    if let Some(name) = &args.name {
        id::check_name(name).map_err(|why| Error::usage(format!("{name:?}: no name for a session: {why}")))?;
    }
    let (store, mut session, run) = pending(call, &args.id, Want::Fork)?;
    let list = session.steps()?;
    let step = args.step.unwrap_or(session.header.head());
    list.check(&session.header, step)?;
    let changes = list.net(&session, step)?;
    if changes.list.is_empty() {
        let begins = command("run --session NAME -- COMMAND");
        let held = format!("step {step} of session {} holds nothing that a session could begin with", session.id());
        return Err(Error::refused(held).with_remedy(format!("{begins} begins one")));
    }
    let count = changes.list.len() as u64;
    let mut forked = Forked { session: None, of: session.id().clone(), step, changes: count, dry_run: args.dry_run };
    if !args.dry_run {
        interrupt::check().map_err(|asked| Error::refused(asked.to_string()))?;
        let _noting = interrupt::note(Asked::GoesOn);
        go_on::open_again(call, &mut session)?;
        forked.session = Some(made(call, store, (&session, &list, &run), changes, (step, args.name.as_deref()))?);
    }
    say(call, &forked, args.name.as_deref());
    Ok(Ended::Done)
}

fn say(call: &Call, forked: &Forked, name: Option<&str>) {
    if !call.out.is_text() {
        return call.out.document(forked);
    }
    let holds = text::count(forked.changes, "change");
    let from = format!("session {} at step {}: {holds}", forked.of.tail(), forked.step);
    match &forked.session {
        None => call.out.note(format_args!("a session would begin as {from}")),
        Some(id) => {
            let named = name.map(|name| format!(", named {name},")).unwrap_or_default();
            call.out.note(format_args!("session {}{named} begins as {from}", id.tail()));
        }
    }
}

/// A pending session whose steps can be gone back to, locked, with its record.
fn pending<'c>(call: &'c Call, key: &str, want: Want) -> Result<(&'c Store, Locked, Run), Error> {
    let (store, session) = call.locked(key, want)?;
    let run = session.run()?;
    go_on::refuse(&session.header, run.as_ref().is_some_and(|run| run.in_memory), want)?;
    let run = run.ok_or_else(|| Error::refused(format!("session {} has no steps", session.id())))?;
    Ok((store, session, run))
}

/// Makes the session: it is named once all of it is durable.
fn made(
    call: &Call,
    store: &Store,
    (of, list, run): (&Locked, &StepList, &Run),
    mut changes: Changes,
    (step, name): (u32, Option<&str>),
) -> Result<Id, Error> {
    let (fs, chain) = (&call.fs, list.chain(step));
    if let Some(name) = name {
        store.refuse_taken(name)?;
    }
    let arriving = store.expect_new(fs)?;
    let filled = (|| {
        fill(fs, of, run, chain.clone(), &arriving.dir.open_below(b"held")?)?;
        before::copy(fs, of, &changes, &arriving.dir)?;
        for (change, n) in changes.list.iter_mut().zip(1..) {
            (change.n, change.step) = (n, None);
        }
        let lines = (changes.list.len() + changes.directory_times.len()) as u64;
        let mut header = Header::new(arriving.id().clone(), 0, Origin::Captured, crate::fs::now());
        header.name = name.map(Into::into);
        let begins = list.get(&of.header, step)?;
        header.command = Some(start_of(begins.argv.iter().map(|Arg(word)| &**word)));
        header.unsynced = list.steps.iter().any(|step| step.unsynced && chain.contains(&step.n));
        header.lines = lines;
        header.counts = Counts { changes: changes.list.len() as u64, inside: 0, ever_in: 0 };
        header.sizes =
            Sizes { held: changes.list.iter().filter_map(|c| c.after.as_ref()).map(State::size).sum(), ..Sizes::default() };
        header.mounts = of.header.mounts.clone();
        let note = format!("forked from session {} at step {step}", of.id());
        let Step { argv, cwd, uid, by, started, took, ending, .. } = begins.clone();
        header.by = by.clone();
        let notes = [&run.notes[..], &[note]].concat();
        let run = Run { argv, cwd, uid, by, started, took, ending, notes, on: None, ..run.clone() };
        let session = Session::new(arriving.dir.again()?, header);
        session.write_first(fs, &changes, lines, &run)?;
        Ok::<_, crate::error::Error>(session.header)
    })();
    let header = match filled {
        Ok(header) => header,
        Err(error) => {
            // The first error is the one that counts.
            drop(store.turn_away(fs, arriving));
            return Err(error);
        }
    };
    let (session, taken) = store.welcome(fs, arriving, header)?;
    if let Some(name) = taken {
        let id = session.id().clone();
        call.out.warn(format_args!("another session got the name {name} meanwhile: session {} has none", id.tail()));
    }
    Ok(session.id().clone())
}
