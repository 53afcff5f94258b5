//! `recover`, in words.

use super::recovered::{line, say_strays};
use super::{cut_run, fact};
use crate::engine::recover::recovery::Choice;
use crate::error::Error;
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::verb::{Recovery, TakenIn, recover as verb};

/// Recovers what was interrupted, and tells of it.
pub fn recover(call: &Call, args: &args::Recover) -> Result<Ended, Error> {
    let choices = [(args.undo, Choice::Undo), (args.finish, Choice::Finish), (args.give_up_unmounted, Choice::GiveUp)];
    let choice = choices.into_iter().find(|(given, _)| *given).map(|(_, choice)| choice);
    let recovery = match &args.id {
        Some(key) => verb::recover_named(call, key, choice)?,
        None => verb::recover(call)?,
    };
    if call.out.is_text() {
        print(call, &recovery);
    } else {
        call.out.document(&recovery);
    }
    let kind = recovery.kind();
    recovery.failed.map_or(Ok(kind.map_or(Ended::Done, Ended::With)), Err)
}

fn print(call: &Call, recovery: &Recovery) {
    for one in &recovery.operations {
        call.out.line(line(&call.out, one));
        say_strays(&call.out, one);
        one.notes.iter().for_each(|note| call.out.warn(note));
    }
    recovery.runs.iter().for_each(|run| call.out.line(cut_run::line(run)));
    recovery.held.iter().for_each(|held| call.out.line(line_of_held(held)));
    if recovery.is_empty() {
        call.out.note("nothing was interrupted");
    }
}

fn line_of_held((id, held): &TakenIn) -> String {
    match held {
        Ok(collected) => fact::collected(collected),
        Err(problem) => {
            let remedy = problem.advice().map_or(String::new(), |remedy| format!("\n{remedy}"));
            format!("the run of session {id} was cut off; what it had changed cannot be collected: {}{remedy}", problem.message())
        }
    }
}
