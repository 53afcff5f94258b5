//! A command that joins the run which is under way in its session: what both change is one step.

use std::collections::BTreeMap;
use std::time::Instant;

use super::notice::Notice;
use super::shell;
use super::terms::{Places, Program, Then, Wanted};
use super::value::{Beyond, Fate, Of, Ran};
use crate::capture::{Command, Event, Network, join, working_directory};
use crate::error::Error;
use crate::session::{Arg, Beside, Session, Store};
use crate::verb::desk::Desk;
use crate::verb::error;
use crate::verb::fact::Fact;

/// Runs a command beside the one that runs in a session. `None` if that one has ended, or cannot be joined.
///
/// # Errors
/// It was not started: something was asked for that only the command which runs can have; or a system call failed.
pub fn run(desk: &Desk, store: &Store, session: &Session, wanted: &Wanted<'_>) -> Result<Option<Ran>, Error> {
    refuse_terms(session, wanted).map_err(error::not_started)?;
    let (argv, env) = match &wanted.program {
        Program::Shell { shell, .. } => shell::words(shell, session.id(), false),
        program => (program.argv().to_vec(), Vec::new()),
    };
    let cwd = working_directory().map_err(error::not_started)?;
    let (started, began) = (crate::fs::exact_now(), Instant::now());
    let words = argv.iter().map(|word| Arg(word.as_encoded_bytes().to_vec())).collect();
    let mut beside = Beside { argv: words, cwd: cwd.clone(), by: store.by.clone(), started, took: None, ending: None };
    let mut number = None;
    let mut problem = None;
    let mut hear = |event| match event {
        // Both runs are known to be there now.
        Event::SettingUp => {
            match session.note_beside(&desk.fs, &beside) {
                Ok(n) => number = Some(n),
                Err(error) => problem = Some(error),
            }
            if wanted.is_heard && number == Some(1) {
                desk.caller.tell(Fact::Run(Notice::Beside(session)));
            }
        }
        event => desk.caller.tell(Fact::Run(Notice::Event { event: &event, is_confined: false })),
    };
    let command = Command { env, linger: wanted.linger, ..Command::new(argv) };
    let Some(joined) = join(session, &command, &cwd, &mut hear)? else { return Ok(None) };
    joined.notes.iter().for_each(|note| desk.caller.tell(Fact::Warning(note)));
    // Before the run can end, whose step has it.
    beside.took = u64::try_from(began.elapsed().as_nanos()).ok();
    beside.ending = Some(joined.ending);
    let noted = number.map_or(Ok(()), |n| session.note_beside_at(&desk.fs, n, &beside));
    problem.map_or(noted, Err)?;
    Ok(Some(Ran {
        session: Some(session.id().clone()),
        step: None,
        fate: Fate::Beside,
        ending: joined.ending,
        changes: 0,
        beyond_files: Beyond { network: wanted.network == Network::Open, passed: Vec::new() },
        warnings: joined.notes,
        dropped: 0,
        too_much: None,
        news: 0,
        sorts: BTreeMap::new(),
        of: Of::Earlier,
        left: Vec::new(),
    }))
}

/// Refuses what a command cannot have in the run of another one.
fn refuse_terms(session: &Session, wanted: &Wanted<'_>) -> Result<(), Error> {
    // It gets more than a view: a guest's places.
    if matches!(wanted.program, Program::Agent { .. }) {
        return Err(error::is_running(session.id()));
    }
    let Places { passes, hide, scratch, .. } = &wanted.places;
    let asked = [
        (wanted.then == Then::Commit, "--commit"),
        (wanted.then == Then::Discard, "--discard"),
        (!passes.is_empty(), "--pass"),
        (!hide.is_empty(), "--hide"),
        (!scratch.is_empty(), "--scratch"),
        (wanted.max_size.is_some(), "--max-size"),
        (wanted.network == Network::None, "--no-network"),
    ];
    match asked.into_iter().find(|(is_asked, _)| *is_asked) {
        Some((_, what)) => Err(error::cannot_join(session.id(), what)),
        None => Ok(()),
    }
}
