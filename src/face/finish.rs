//! The end of a call: what was printed is written out, and an error is reported.

use super::call_end::Ended;
use crate::error::{Error, Kind, command};
use crate::face::out::Out;
use crate::verb::Effect;

/// Ends a call with this effect.
pub fn finish(out: &Out, ended: Result<Ended, Error>, effect: Effect) -> Ended {
    // Results come before messages about the end.
    let ended = match (out.finish(), ended) {
        (Ok(()), ended) | (Err(_), ended @ Err(_)) => ended,
        // The result of a run is its command's.
        (Err(_), Ok(Ended::Command(status))) => Ok(Ended::Command(status)),
        (Err(unprinted), Ok(_)) if effect != Effect::Changes => Err(unprinted),
        (Err(unprinted), Ok(ended)) => {
            let (kind, done) = match ended {
                Ended::With(kind) => (kind, "not all is done; the report is lost"),
                _ => (Kind::LeftOut, "all is done; only the report is lost"),
            };
            let remedy = command("status") + " and " + command("show ID") + " show what was done";
            Err(unprinted.with_kind(kind).with_state(done).with_remedy(remedy))
        }
    };
    ended.unwrap_or_else(|problem| {
        out.problem(&problem);
        Ended::by(&problem)
    })
}
