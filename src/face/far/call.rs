//! A verb on another machine, as if it ran here.

use std::ffi::OsString;

use super::request::link;
use super::request::request;
use crate::error::{Error, Reason};
use crate::face::args::Cli;
use crate::face::call::Call;
use crate::face::call_end::Ended;
use crate::remote::streams::Input;
use crate::remote::{Link, Request, Stream, Target};

/// A call for another machine.
pub struct Far<'a> {
    pub call: &'a Call,
    pub link: Link,
    /// The call, for the machine's recant to carry out.
    pub request: Request,
}

impl<'a> Far<'a> {
    /// Makes the request. From here on signals are for the machine.
    pub fn of(call: &'a Call, cli: &Cli, words: &[OsString], target: Target) -> Result<Self, Error> {
        let request = request(call, cli, words, &target);
        Ok(Self { call, link: link(call, &cli.global, target)?, request })
    }

    /// Carries out the request with this call's own streams.
    pub fn alone(&self) -> Result<Ended, Error> {
        let input = self.request.input.then(|| Box::new(std::io::stdin()) as Input);
        let out = &self.call.out;
        let mut sink = |stream, bytes: &[u8]| match stream {
            Stream::Output => out.pass(bytes),
            Stream::Errors => out.pass_message(bytes),
        };
        self.ended(self.link.run_verb(&self.request, input, &mut sink))
    }

    /// Carries out the request with this call's terminal as the machine's own.
    pub fn on_terminal(&self) -> Result<Ended, Error> {
        self.ended(self.link.on_terminal(&self.request))
    }

    /// The end of the call by the status of the machine's verb.
    pub fn ended(&self, ended: Result<u8, Error>) -> Result<Ended, Error> {
        match ended {
            Ok(status) => Ok(Ended::Command(status)),
            Err(error) => match error.reason() {
                Some(&Reason::Asked { signal }) => {
                    self.call.out.problem(&error);
                    Ok(Ended::Command(128_u8.saturating_add(signal)))
                }
                _ => Err(error),
            },
        }
    }
}
