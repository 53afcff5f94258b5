//! `session export` and `session import`: a session as a stream, out of a store and into another.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;

use super::signalled;
use crate::engine::job::Verb;
use crate::engine::plan::conflict;
use crate::engine::plan::conflict::Since;
use crate::error::{Against, Error, Kind, command, recant};
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::out::Out;
use crate::face::{args, figures};
use crate::fs::path::{AbsPath, Shown};
use crate::moving::{self, Arrived, Exported, Mapping, With};
use crate::session::id::Id;
use crate::session::log;
use crate::session::store::Store;
use crate::verb::resolve::guard;
use crate::verb::resolve::want::Want;

#[derive(Serialize)]
struct Imported<'a> {
    session: &'a Id,
    changes: u64,
    /// True if it was not here before.
    new: bool,
}

/// A writer of results. A reader that went away ends the export.
struct Pipe<'a>(&'a Out);

impl Write for Pipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.bytes(bytes);
        if self.0.is_closed() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn export(call: &Call, args: &args::Export) -> Result<Ended, Error> {
    if io::stdout().is_terminal() {
        return Err(Error::refused("an export is no text for a terminal")
            .with_remedy(command(format_args!("session export {} > FILE", Shown(args.id.as_bytes())))));
    }
    let (store, session) = call.locked(&args.id, Want::Look)?;
    let with = if args.checkpoint { With::Checkpoint } else { With::Changes };
    match moving::export(&session, with, &mut Pipe(&call.out)) {
        Err(_) if call.out.is_closed() => Ok(Ended::Done),
        Ok(Exported::Conflicts(mut conflicts)) => {
            let since = Since::of(&session.header, Verb::Commit);
            conflicts.iter_mut().for_each(|conflict| conflict.note_since(since));
            conflict::attribute(store, session.id(), &mut conflicts);
            let state = "nothing was exported: what the run found there is no longer known";
            Err(against("export", session.id(), &conflicts, state))
        }
        Err(error) => Err(error),
        Ok(Exported::Whole) => Ok(Ended::Done),
    }
}

/// Makes a session of a stream in the store, and reports what would stop its commit here.
pub fn import(call: &Call, args: &args::Import) -> Result<Ended, Error> {
    if io::stdin().is_terminal() {
        return Err(Error::refused("standard input is a terminal, and no export").with_remedy(command("session import < FILE")));
    }
    let mapping = mapping(&args.map)?;
    let variable = guard::limited(call);
    let store = call.made_store()?;
    call.prepare_to_change(&store)?;
    let input = &mut io::BufReader::with_capacity(256 << 10, signalled::input()?);
    let bring = || {
        let arrived = moving::import(&call.fs, &store, input, &mapping, variable.is_some())?;
        if let Arrived::New(locked, _) = &arrived {
            let header = &locked.header;
            let entry = log::Entry::new("session import", locked.id(), header.generation, "done", header.counts.changes);
            call.note_in_log(&store, &entry.of(header));
        }
        call.clear_away(&store);
        Ok(arrived)
    };
    signalled::finished(call, bring, |arrived| say_arrived(call, &store, &mapping, arrived, variable))
}

/// Reports what became of a stream. `variable` tells of the agent that brought it.
fn say_arrived(call: &Call, store: &Store, mapping: &Mapping, arrived: Arrived, variable: Option<&str>) -> Result<Ended, Error> {
    let locked = match arrived {
        Arrived::Refused => {
            let refused = crate::verb::error::refused(variable.unwrap_or_default(), command("session import < FILE"));
            let message = format!("the stream's session is committed: {}", refused.message());
            return Err(refused.with_message(message));
        }
        Arrived::Before(id) => {
            let header = store.session(&id)?.header;
            say(call, &id, header.counts.changes, false);
            if call.out.is_text() {
                call.out.note(format_args!("session {id} is here already: nothing"));
            }
            return Ok(Ended::Done);
        }
        Arrived::New(locked, name) => {
            if let Some(name) = name {
                call.out.warn(format_args!("another session is called {name} here: this one came without its name"));
            }
            locked
        }
    };
    for from in mapping.in_vain() {
        call.out.warn(format_args!("--map {from}=…: no path of the session lies there, so this moved none"));
    }
    let (id, changes, status) = (locked.id(), locked.header.counts.changes, locked.header.status().word());
    say(call, id, changes, true);
    if call.out.is_text() {
        call.out.note(format_args!("session {id} is imported: {}, {status}", figures::count(changes, "change")));
    }
    let mut conflicts = moving::conflicts(&locked)?;
    if conflicts.is_empty() {
        return Ok(Ended::Done);
    }
    conflict::attribute(store, id, &mut conflicts);
    let state = format!(
        "the session is here and {status}, and the tree as it was; {recant} diff {} shows it",
        id.tail(),
        recant = recant()
    );
    let verb = if locked.header.counts.inside > 0 { "roll back" } else { "commit" };
    Err(against(verb, id, &conflicts, &state))
}

fn say(call: &Call, id: &Id, changes: u64, new: bool) {
    if call.out.is_text() {
        call.out.line(id);
    } else {
        call.out.document(&Imported { session: id, changes, new });
    }
}

fn against(verb: &str, id: &Id, conflicts: &[conflict::Conflict], state: &str) -> Error {
    let rows: Vec<Against> = conflicts.iter().map(|c| Against { path: c.path.to_string(), why: c.why() }).collect();
    let message = match &rows[..] {
        [one] => format!("cannot {verb} {id}: {}: {}", one.path, one.why),
        many => format!("cannot {verb} {id}: {}", figures::count(many.len() as u64, "conflict")),
    };
    let error = match &rows[..] {
        [] => Error::new(Kind::Conflict, message),
        [first, ..] => Error::new(Kind::Conflict, message).with_path(&first.path),
    };
    let rows = if rows.len() > 1 { rows } else { Vec::new() };
    error.with_rows(rows).with_state(state).with_remedy_if(conflict::remedy(conflicts))
}

/// Parses `FROM=TO`, both absolute: the first `=` before a `/` parts them.
fn mapping(words: &[std::ffi::OsString]) -> Result<Mapping, Error> {
    let mut mapping = Mapping::default();
    for word in words {
        let bytes = word.as_bytes();
        let wrong = || {
            Error::usage(format!("--map {}: two absolute paths are wanted", Shown(bytes)))
                .with_remedy("--map /srv/app=/opt/app puts what lies below the first below the second")
        };
        let cut = bytes.windows(2).position(|two| two == b"=/").ok_or_else(wrong)?;
        let (from, to) = (path(&word.as_bytes()[..cut]), path(&bytes[cut + 1..]));
        mapping.add(from.ok_or_else(wrong)?, to.ok_or_else(wrong)?)?;
    }
    Ok(mapping)
}

/// Parses a path as people write it: slashes at its end do not count.
fn path(bytes: &[u8]) -> Option<AbsPath> {
    let trimmed = bytes.iter().rposition(|b| *b != b'/').map_or(&b"/"[..], |last| &bytes[..=last]);
    AbsPath::parse(OsStr::from_bytes(trimmed).as_bytes()).ok()
}
