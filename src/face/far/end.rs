//! The end of a call with `-H`. The other machine's output is written here; if it cannot be, the call has not ended well, whatever the
//! machine says.

use crate::error::{Error, Kind};
use crate::face::args::Verb;
use crate::face::args::table::effect;
use crate::face::call_end::Ended;
use crate::face::finish;
use crate::face::out::Out;

/// Ends the call: writes out what was printed, and reports errors.
pub fn finish(out: &Out, ended: Result<Ended, Error>, verb: &Verb) -> Ended {
    let is_command = verb.is_run();
    match ended {
        Ok(Ended::Command(0)) if !is_command => finish::finish(out, Ok(Ended::Done), effect(verb)),
        Ok(Ended::Command(status)) => {
            let Err(unprinted) = out.finish() else { return Ended::Command(status) };
            let state = is_command.then(|| format!("it ended with {status} there, and what it printed is cut off here"));
            out.problem(&unprinted.with_state_if(state));
            if status == 0 { Ended::With(Kind::Refused) } else { Ended::Command(status) }
        }
        ended => finish::finish(out, ended, effect(verb)),
    }
}
