//! `await`: what somebody decided, a line an act.

use std::time::Duration;

use super::fact;
use crate::error::{Error, Reason};
use crate::face::args;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::face::figures;
use crate::verb::News;
use crate::verb::decision as verb;

/// The result where nobody has decided in time.
pub const UNDECIDED: &str = "undecided";

pub fn decision(call: &Call, args: &args::Await) -> Result<Ended, Error> {
    let longest = args.longest.map(|seconds| Duration::from_secs(seconds.unsigned_abs()));
    let decided = match verb::decision(call, args.id.as_deref(), longest) {
        // For who calls tools that is an answer.
        Err(error) if call.out.is_for_tools() && error.reason() == Some(&Reason::Undecided) => {
            call.out.document(&serde_json::json!({ "result": UNDECIDED }));
            return Ok(Ended::Done);
        }
        decided => decided?,
    };
    if !call.out.is_text() {
        call.out.document(&decided);
        return Ok(Ended::Done);
    }
    for act in &decided.acts {
        call.out.line(fact::news(&call.out, &News { session: &act.of, entry: Some(&act.entry), at: &act.at }));
    }
    if decided.held > 0 {
        call.out.line(format_args!("still held: {}", figures::count(decided.held, "change")));
    }
    Ok(Ended::Done)
}
