//! A verb on one machine, as if it ran here.

use super::ways::Ways;
use crate::cli::problem::Problem;
use crate::cli::{Call, Ended};
use crate::error::{Error, Reason};
use crate::remote::frame::Outcome;
use crate::remote::host::Target;
use crate::remote::link::SshSays;
use crate::remote::request::Request;
use crate::remote::streams::{Input, Stream};

/// A call for one machine.
pub struct Far<'a> {
    /// The call.
    pub call: &'a Call,
    /// The connection to it.
    pub ways: Ways,
}

impl Far<'_> {
    /// Carries out a request with this call's own streams.
    pub fn alone(&self, target: &Target, request: &Request) -> Result<Ended, Problem> {
        let input = request.input.then(|| Box::new(std::io::stdin()) as Input);
        let out = &self.call.out;
        let mut sink = |stream, bytes: &[u8]| match stream {
            Stream::Output => out.pass(bytes),
            Stream::Errors => out.pass_message(bytes),
        };
        self.ended(self.ways.link(target, SshSays::Through).carry_out(request, input, &mut sink))
    }

    /// Carries out a request with this call's terminal as the machine's own.
    pub fn on_terminal(&self, target: &Target, request: &Request) -> Result<Ended, Problem> {
        self.ended(self.ways.link(target, SshSays::Through).on_terminal(request))
    }

    /// The end of the call by the machine's outcome.
    pub fn ended(&self, ended: Result<Outcome, Error>) -> Result<Ended, Problem> {
        match ended {
            Ok(outcome) => Ok(Ended::Command(outcome.status)),
            Err(error) => match error.reason() {
                Some(&Reason::Asked { signal }) => {
                    self.call.out.problem(&error.into());
                    Ok(Ended::Command(128_u8.saturating_add(signal)))
                }
                _ => Err(error.into()),
            },
        }
    }
}
