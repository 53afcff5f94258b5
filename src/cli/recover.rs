//! `recover`: undo or settle what was interrupted.

use serde::Serialize;

use super::args;
use super::problem::Problem;
use super::{Call, Ended};
use crate::engine::recover::{self, Finding, Outcome, Recovered};
use crate::error::{Failure, Kind};
use crate::session::id::Id;
use crate::session::store::Store;

/// `{"session":…,"verb":…,"result":…,"left":[{"path":…,"why":…}]}`.
#[derive(Serialize)]
struct Row<'a> {
    session: &'a Id,
    verb: Option<&'static str>,
    result: &'static str,
    left: Vec<Left<'a>>,
}

#[derive(Serialize)]
struct Left<'a> {
    path: &'a crate::fs::path::AbsPath,
    why: &'a str,
}

#[derive(Serialize)]
struct Recovery<'a> {
    recovered: Vec<Row<'a>>,
}

/// Recovers one session, or all.
pub fn recover(call: &Call, args: &args::Recover) -> Result<Ended, Problem> {
    let recovered = match (&args.id, call.store()?) {
        (None, None) => Vec::new(),
        (None, Some(store)) => {
            let _lock = call.store_lock(store)?;
            recover::all(&call.fs, store)?
        }
        (Some(key), _) => {
            let store = call.store_with(key)?;
            let _lock = call.store_lock(store)?;
            let id = call.find(store, Some(key))?;
            let there = recover::finding(store, &id)?.is_some();
            if there { vec![recover::one(&call.fs, store, &id)] } else { Vec::new() }
        }
    };
    if call.out.is_text() {
        for one in &recovered {
            call.out.line(line(one));
        }
        if recovered.is_empty() {
            call.out.note("nothing was interrupted");
        }
    } else {
        call.out.document(&Recovery { recovered: recovered.iter().map(row).collect() });
    }
    let worst = recovered.iter().filter_map(|one| match &one.outcome {
        Outcome::Failed(error) => Some(error.kind()),
        Outcome::Left(_) => Some(Kind::LeftOut),
        _ => None,
    });
    Ok(worst.max().map_or(Ended::Done, Ended::With))
}

fn row(one: &Recovered) -> Row<'_> {
    let (result, left) = match &one.outcome {
        Outcome::Cleaned => ("cleaned", Vec::new()),
        Outcome::Undone => ("undone", Vec::new()),
        Outcome::Settled => ("settled", Vec::new()),
        Outcome::Left(left) => ("left", left.iter().map(|left| Left { path: &left.path, why: &left.why }).collect()),
        Outcome::Failed(_) => ("failed", Vec::new()),
    };
    Row { session: &one.id, verb: one.verb, result, left }
}

/// What became of one interrupted operation, in a line.
pub fn line(one: &Recovered) -> String {
    let verb = one.verb.unwrap_or("operation");
    match &one.outcome {
        Outcome::Cleaned => {
            format!("an interrupted operation of session {} had changed nothing yet; what it left is removed", one.id)
        }
        Outcome::Undone => format!("the interrupted {verb} of session {} was undone: the tree is as before it", one.id),
        Outcome::Settled => format!("the interrupted {verb} of session {} was done; it is settled now", one.id),
        Outcome::Left(left) => {
            let shown: Vec<String> = left.iter().map(|left| format!("{} ({})", left.path, left.why)).collect();
            format!("the interrupted {verb} of session {} was undone but for {}", one.id, shown.join(", "))
        }
        Outcome::Failed(error) => format!("the interrupted {verb} of session {} cannot be recovered now: {error}", one.id),
    }
}

/// A session that still has a journal is not worked on: originals may lie where nothing but the journal tells.
pub fn refuse_interrupted(store: &Store, id: &Id) -> Result<(), Problem> {
    let problem = |kind, why: String| {
        let mut problem = Problem::new(kind, format!("session {id}: {why}"));
        problem.state = Some("nothing was changed".into());
        problem.remedy(format!("recant recover {id} tries again"))
    };
    match recover::finding(store, id) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(problem(Kind::Stuck, "an interrupted operation of it is not recovered".into())),
        Err(error) => Err(problem(error.kind(), error.to_string())),
    }
}

/// What recovery would do, for verbs that only read.
pub fn would(store: &Store, id: &Id) -> Option<String> {
    match recover::finding(store, id) {
        Ok(None) => None,
        Ok(Some(Finding::Draft)) => {
            Some("interrupted before anything was changed; the next verb that changes something tidies up".into())
        }
        Ok(Some(Finding::ToUndo)) => Some("interrupted; the next verb that changes something undoes it".into()),
        Ok(Some(Finding::ToSettle)) => {
            Some("interrupted after it was done; the next verb that changes something settles it".into())
        }
        Err(error) => Some(format!("interrupted, and its journal cannot be used: {error}")),
    }
}
