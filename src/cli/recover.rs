//! `recover`: undo or settle what was interrupted.

use std::borrow::Cow;

use serde::Serialize;

use crate::engine::job::Verb;
use crate::engine::ready::{self, way_on};
use crate::engine::recover::interrupted;
use crate::engine::recover::interrupted::{Choice, Outcome, Recovered};
use crate::engine::report::Left;
use crate::error::{Error, Kind};
use crate::face::args;
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::text::cut_run;
use crate::face::text::fact;
use crate::face::text::recovered::{line, say_strays};
use crate::remedy::Remedy;
use crate::session::id::Id;
use crate::verb::resolve::killed_run;
use crate::verb::resolve::killed_run::TakenIn;
use crate::verb::resolve::want::Want;
use crate::verb::run::cut_off;
use crate::verb::run::recovered::CutRun;

/// `{"session":…,"verb":…,"result":…,"left":[{"path":…,"why":…}],"notes":[…]}`; with `"why"` if it failed, and `"remedy"` then or if
/// something is left.
#[derive(Serialize)]
struct Row<'a> {
    session: &'a Id,
    verb: Option<&'static str>,
    result: &'static str,
    left: Vec<LeftRow<'a>>,
    notes: Cow<'a, [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<Remedy>,
}

#[derive(Serialize)]
struct LeftRow<'a> {
    path: &'a crate::fs::path::AbsPath,
    why: &'a str,
}

#[derive(Serialize)]
struct Recovery<'a> {
    recovered: Vec<Row<'a>>,
}

pub fn recover(call: &Call, args: &args::Recover) -> Result<Ended, Error> {
    let (mut runs, mut held) = (Vec::new(), Vec::new());
    call.collected.replace(Some(Vec::new()));
    let recovered = match (&args.id, call.store()?) {
        (None, None) => Vec::new(),
        (None, Some(store)) => {
            let settled = ready::recover_alone(&call.fs, store, || call.say_waiting(store))?;
            call.say_unswept(settled.unswept);
            runs = match cut_off::recover_all(call, store) {
                Ok(runs) => runs,
                Err(problem) => {
                    say(call, &settled.recovered, &[], Vec::new())?;
                    return Err(problem);
                }
            };
            held = killed_run::take_in_all(call, store)?;
            settled.recovered
        }
        (Some(key), _) => {
            let store = call.store_with(key)?;
            if let Some(id) = cut_off::find(store, key)? {
                runs.extend(cut_off::recover_one(call, store, &id, choice(args))?);
                return say(call, &[], &runs, held);
            }
            let _lock = call.store_lock(store)?;
            let id = call.find(store, Some(key), Want::Tend)?;
            let choice = choice(args);
            // An operation whose state is unclear needs the choice; recovery reports other errors, too.
            let there = !matches!(interrupted::finding(store, &id), Ok(None));
            // A session that an operation was at work on has no run any more.
            if there {
                vec![interrupted::one(&call.fs, store, &id, choice)]
            } else {
                held.extend(killed_run::take_in_one(call, store, &id));
                Vec::new()
            }
        }
    };
    say(call, &recovered, &runs, held)
}

fn say(call: &Call, recovered: &[Recovered], runs: &[CutRun], mut held: Vec<TakenIn>) -> Result<Ended, Error> {
    // Those that were collected as the session was looked for are said already.
    let before = call.collected.take().unwrap_or_default();
    if call.out.is_text() {
        for one in recovered {
            call.out.line(line(&call.out, one));
            say_strays(&call.out, one);
            one.notes.iter().for_each(|note| call.out.warn(note));
        }
        runs.iter().for_each(|run| call.out.line(cut_run::line(run)));
        held.iter().for_each(|held| call.out.line(line_of_held(held)));
        if recovered.is_empty() && runs.is_empty() && held.is_empty() && before.is_empty() {
            call.out.note("nothing was interrupted");
        }
    } else {
        let before = before.into_iter().map(|collected| (collected.id.clone(), Ok(collected)));
        held = before.chain(held).collect();
        let rows = recovered.iter().map(row).chain(runs.iter().map(row_of_run));
        call.out.document(&Recovery { recovered: rows.chain(held.iter().map(row_of_held)).collect() });
    }
    let worst = recovered.iter().filter_map(|one| match &one.outcome {
        Outcome::Failed(error) => Some(error.kind()),
        Outcome::Left(_) => Some(Kind::LeftOut),
        _ if !one.strays.is_empty() => Some(Kind::LeftOut),
        _ => None,
    });
    let failed = held.iter().filter_map(|(_, held)| held.as_ref().err().map(|problem| problem.kind()));
    Ok(worst.chain(runs.iter().filter_map(CutRun::kind)).chain(failed).max().map_or(Ended::Done, Ended::With))
}

fn row_of_held((id, held): &TakenIn) -> Row<'_> {
    let mut row = Row {
        session: id,
        verb: Some("run"),
        result: "collected",
        left: Vec::new(),
        notes: Cow::default(),
        why: None,
        remedy: None,
    };
    match held {
        Ok(collected) if collected.lost.is_some() => row.notes = vec![fact::collected(collected)].into(),
        Ok(_) => {}
        Err(problem) => {
            (row.result, row.why, row.remedy) = ("failed", Some(problem.message().to_owned()), problem.advice().cloned());
        }
    }
    row
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

fn row_of_run(run: &CutRun) -> Row<'_> {
    let left = run.left().iter().map(LeftRow::of).collect();
    let (result, problem) = (run.result(), run.problem());
    let (why, remedy) =
        (problem.map(|problem| problem.message().to_owned()), problem.and_then(|problem| problem.advice().cloned()));
    Row { session: &run.id, verb: Some("run"), result, left, notes: Cow::default(), why, remedy }
}

impl<'a> LeftRow<'a> {
    fn of(left: &'a Left) -> Self {
        Self { path: &left.path, why: &left.why }
    }
}

fn choice(args: &args::Recover) -> Option<Choice> {
    let asked = [(args.undo, Choice::Undo), (args.finish, Choice::Finish), (args.give_up_unmounted, Choice::GiveUp)];
    asked.into_iter().find(|(given, _)| *given).map(|(_, choice)| choice)
}

fn row(one: &Recovered) -> Row<'_> {
    let (left, notes) = (Vec::new(), Cow::Borrowed(one.notes.as_slice()));
    let mut row =
        Row { session: &one.id, verb: one.verb.map(Verb::word), result: "failed", left, notes, why: None, remedy: None };
    row.result = match &one.outcome {
        Outcome::Cleaned => "cleaned",
        Outcome::Undone => "undone",
        Outcome::Settled => "settled",
        Outcome::Left(left) => {
            row.left = left.iter().map(LeftRow::of).collect();
            row.remedy = way_on(one, left);
            "left"
        }
        Outcome::Failed(error) => {
            (row.why, row.remedy) = (Some(error.to_string()), error.advice().cloned());
            "failed"
        }
    };
    row.left.extend(one.strays.iter().map(LeftRow::of));
    row
}
