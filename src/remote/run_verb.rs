//! Carries out a verb on the far side, and first installs recant there if it has none.

use super::error::{lost, missing};
use super::far_side;
use super::install;
use super::protocol::MISSING;
use super::request::Request;
use super::signals::Wire;
use super::ssh::on_terminal;
use super::ssh::{Answers, Install, Link};
use super::streams::{Input, Sink};
use crate::error::{Error, Reason};

impl Link {
    /// Has the far side's recant carry out `request`, and returns its exit status. `input` is its standard input, `sink` takes its output. If there is no recant of this
    /// protocol, it is first installed there. Nothing of `input` is read before the far side has answered.
    pub fn run_verb(&self, request: &Request, input: Option<Input>, sink: &mut Sink<'_>) -> Result<u8, Error> {
        let mut input = input;
        match self.once(request, &mut input, sink) {
            Err(error) if error.reason() == Some(&Reason::NoRecant) && self.install == Install::Allowed => {
                install::install(self)?;
                self.once(request, &mut input, sink)
            }
            ended => ended,
        }
    }

    /// Runs `request` on a terminal of the far side, which is this side's: all three streams are ssh's own. Returns the exit status.
    pub fn on_terminal(&self, request: &Request) -> Result<u8, Error> {
        let word = request.word()?;
        let once = || -> Result<u8, Error> {
            let mut command = self.command("-tt", &on_terminal(self.target.sudo, &word));
            let mut child = command.spawn().map_err(|source| self.no_ssh(source))?;
            let _listed = self.signals.list(Wire::of_terminal(&child));
            child.wait().map(far_side::status).map_err(|source| self.no_ssh(source))
        };
        let mut status = once()?;
        // A command may end with this status, too. A connection without a terminal tells if recant is missing.
        if status == MISSING && self.answers()? == Answers::Nothing {
            if self.install == Install::Never {
                return Err(missing(&self.host()));
            }
            install::install(self)?;
            status = once()?;
        }
        // ssh has reported the reason.
        if status == 255 && self.answers().is_err() {
            return Err(lost(&self.host()));
        }
        Ok(status)
    }
}
