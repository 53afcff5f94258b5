//! `snapshot verify`.

use serde::Serialize;

use super::snapshot::series;
use crate::engine::Progress;
use crate::error::{Error, Kind, recant};
use crate::face::args::SnapshotVerify;
use crate::face::bar::Bar;
use crate::face::call::Call;
use crate::face::ended::Ended;
use crate::face::figures::{self, Side};
use crate::fs::path::AbsPath;
use crate::snapshot::verify::{Fault, Verdict, Verifying, doubt};

#[derive(Serialize)]
struct Whole<'a> {
    directory: &'a AbsPath,
    snapshots: &'a [Verdict],
}

/// Reads all that one snapshot needs, or all of them.
pub fn verify(call: &Call, args: &SnapshotVerify) -> Result<Ended, Error> {
    let (_, series) = series(call, args.dir.as_deref())?;
    let numbers = match &args.key {
        Some(key) => vec![series.find(key)?],
        None => series.numbers()?,
    };
    let bar = Bar::of(&call.out);
    let mut verifying = Verifying::of(&series);
    let mut rows: Vec<Verdict> = Vec::with_capacity(numbers.len());
    for (i, n) in numbers.iter().enumerate() {
        bar.at("verifying", i, numbers.len());
        rows.extend(verifying.at(*n)?);
    }
    bar.end();
    let is_damaged = rows.iter().any(|row| !row.faults.is_empty());
    if is_damaged {
        let doubted = series.lock(&call.fs).and_then(|lock| doubt(&call.fs, &series, &lock));
        if let Err(error) = doubted {
            call.out.warn(format_args!("{error}: the next snapshot may refer to what is damaged"));
        }
    }
    if call.out.is_text() {
        print(call, &series.directory, &rows);
    } else {
        call.out.document(&Whole { directory: &series.directory, snapshots: &rows });
    }
    Ok(if is_damaged { Ended::With(Kind::Damaged) } else { Ended::Done })
}

fn print(call: &Call, directory: &AbsPath, rows: &[Verdict]) {
    let line = |row: &Verdict| {
        let faults = row.faults.len() as u64;
        let state = if faults == 0 { "whole".into() } else { figures::count(faults, "fault") };
        [row.n.to_string(), figures::count(row.files, "file"), figures::bytes(row.bytes), state]
    };
    let lines: Vec<[String; 4]> = rows.iter().map(line).collect();
    figures::table([Side::Right, Side::Right, Side::Right, Side::Left], &lines).for_each(|line| call.out.line(line));
    for row in rows {
        row.faults.iter().for_each(|Fault { path, why }| call.out.warn(format_args!("snapshot {}: {path}: {why}", row.n)));
    }
    let hit: Vec<String> = rows.iter().filter(|row| !row.faults.is_empty()).map(|row| row.n.to_string()).collect();
    if !hit.is_empty() {
        call.out.note(format_args!(
            "{directory}: snapshots that are hit: {}; {recant} snapshot create takes one that needs nothing of what is damaged, then recant \
             prune --snapshots --number N drops them",
            hit.join(", "), recant = recant()));
    }
}
