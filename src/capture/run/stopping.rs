//! Stops recant as its command has stopped, so that a shell sees it; unless the command goes on already, as after Ctrl-Z and `fg`: the
//! terminal stopped and continued both.
//!
//! ```text
//!   init                       recant
//!      Stopped  ------------>  sends itself a SIGTSTP, which waits; each SIGCONT from here on takes it away
//!               <------------  asks
//!      StandsAt(n) --------->  lets the SIGTSTP act, and passes on what it was continued by, for stop n
//!      StandsAt(none) ------>  drops the SIGTSTP
//! ```
//!
//! The init answers by what its command is when it is asked, so that a stop which is over stops nothing, however late it is told. A SIGCONT
//! that comes between the answer and the stop takes the SIGTSTP away (signal(7)).

use std::os::unix::net::UnixStream;

use super::messages::Ask;
use super::raw_calls;
use super::raw_calls::Signals;

/// A SIGTSTP that this process has sent itself and that waits.
pub struct WaitingStop {
    before: Signals,
    was_ignored: bool,
}

impl WaitingStop {
    /// Makes ready to stop, and asks the init at the other end whether its command stands.
    pub fn ask(init: &UnixStream) -> Self {
        let waiting =
            Self { before: Signals::of(&[libc::SIGTSTP]).block(), was_ignored: raw_calls::default_action(libc::SIGTSTP) };
        // By raise(3), for this thread: another one may not block it.
        raw_calls::raise(libc::SIGTSTP);
        Ask::WhetherItStands.send(init);
        waiting
    }

    /// Stops here, if no SIGCONT has come since. The kernel lets no SIGTSTP stop an orphaned process group.
    pub fn act(self) {
        self.before.set();
        self.ignore_again();
    }

    pub fn drop_it(self) {
        // To ignore a signal discards one that waits: sigaction(2).
        raw_calls::ignore(libc::SIGTSTP);
        _ = raw_calls::default_action(libc::SIGTSTP);
        self.before.set();
        self.ignore_again();
    }

    fn ignore_again(&self) {
        if self.was_ignored {
            raw_calls::ignore(libc::SIGTSTP);
        }
    }
}
