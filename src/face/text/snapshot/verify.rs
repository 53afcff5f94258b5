//! `snapshot verify`, in words.

use crate::error::{Error, Kind, command};
use crate::face::args::SnapshotVerify;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures::{self, Side};
use crate::face::out::Out;
use crate::snapshot::{Fault, Verdict};
use crate::verb::snapshot::verify::{self as verb, Verified};

pub fn verify(call: &Call, args: &SnapshotVerify) -> Result<Ended, Error> {
    let verified = verb::verify(call, args.dir.as_deref(), args.key.as_deref())?;
    if let Some(why) = &verified.undoubted {
        call.out.warn(format_args!("{why}: the next snapshot may refer to what is damaged"));
    }
    if call.out.is_text() {
        print(&call.out, &verified);
    } else {
        call.out.document(&verified);
    }
    Ok(if verified.is_damaged() { Ended::With(Kind::Damaged) } else { Ended::Done })
}

fn print(out: &Out, Verified { directory, snapshots, .. }: &Verified) {
    let line = |Verdict { n, files, bytes, faults }: &Verdict| {
        let state = if faults.is_empty() { "intact".into() } else { figures::count(faults.len() as u64, "fault") };
        [n.to_string(), figures::count(*files, "file"), figures::bytes(*bytes), state]
    };
    let sides = [Side::Right, Side::Right, Side::Right, Side::Left];
    figures::table(sides, snapshots.iter().map(line)).for_each(|line| out.line(line));
    for Verdict { n, faults, .. } in snapshots {
        faults.iter().for_each(|Fault { path, why }| out.warn(format_args!("snapshot {n}: {path}: {why}")));
    }
    let hit: Vec<String> = snapshots.iter().filter(|row| !row.faults.is_empty()).map(|row| row.n.to_string()).collect();
    if !hit.is_empty() {
        let [create, prune] = ["snapshot create", "prune --snapshots --number N"].map(command);
        out.note(format_args!(
            "{directory}: damaged snapshots: {}; {create} takes one that does not depend on them, then {prune} drops them",
            hit.join(", ")
        ));
    }
}
