//! How a call with `-H` ends: what other machines print is written here, and where that cannot be done the call has not done well, whatever
//! they say.

use crate::cli::args::Verb;
use crate::cli::out::Out;
use crate::cli::problem::Problem;
use crate::cli::{self, Ended, effects};
use crate::error::Kind;

/// Ends the call: what was printed goes out, and what stood against that is said.
pub fn finish(out: &Out, ended: Result<Ended, Problem>, verb: &Verb) -> Ended {
    let is_command = matches!(verb, Verb::Run(_) | Verb::Shell(_));
    match ended {
        Ok(Ended::Command(0)) if !is_command => cli::finish(out, Ok(Ended::Done), effects(verb)),
        Ok(Ended::Command(status)) => {
            let Err(unprinted) = out.finish() else { return Ended::Command(status) };
            let state = is_command.then(|| format!("it ended with {status} there, and what it printed is cut off here"));
            out.problem(&Problem { state, ..unprinted });
            if status == 0 { Ended::With(Kind::Refused) } else { Ended::Command(status) }
        }
        ended => cli::finish(out, ended, effects(verb)),
    }
}
