//! How long a far side may be silent: until it has said who it is, and from then on between two words. So that a verb which takes long is
//! no silence, the far side's relay says by itself that it is there ([`Down::Alive`](super::frame::Down::Alive)).
//!
//! Only time in which this side waits for a word counts: neither that in which it was stopped (Ctrl-Z), nor that in which nobody took what
//! it had to say, nor, before the far side has answered, that in which ssh asks a person something.

use std::io::{self, Read};
use std::path::Path;
use std::process::ChildStdout;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What this side bears of one far side.
pub struct Patience {
    /// `None`: whatever comes.
    limit: Option<Duration>,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    silent: Duration,
    ended: Option<End>,
}

/// What a word of the far side means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing, before it has said who it is: what a login script writes is none of its words.
    Unanswered,
    /// It has answered, and may be of a version that does not tell that it is there.
    Answered,
    /// It tells that it is there.
    Beating,
}

/// Why nothing more is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Somebody asked for it.
    GivenUp,
    /// The silence was too long.
    RanOut,
}

impl Patience {
    /// With a far side that has not answered yet.
    pub fn new(limit: Option<Duration>) -> Arc<Self> {
        let state = State { phase: Phase::Unanswered, silent: Duration::ZERO, ended: None };
        Arc::new(Self { limit, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The far side has said who it is.
    pub fn answered(&self) {
        self.state().phase = Phase::Answered;
    }

    /// The far side tells that it is there: from now on its silence says that it is not.
    pub fn beats(&self) {
        let mut state = self.state();
        (state.phase, state.silent) = (Phase::Beating, Duration::ZERO);
    }

    /// Something went forward: the silence begins anew.
    pub fn renew(&self) {
        self.state().silent = Duration::ZERO;
    }

    /// Ends the reading.
    pub fn give_up(&self) {
        self.state().ended.get_or_insert(End::GivenUp);
    }

    /// Whether the reading has ended, for either reason.
    pub fn is_over(&self) -> bool {
        self.state().ended.is_some()
    }

    /// How long the silence was that has ended the reading.
    pub fn ran_out(&self) -> Option<Duration> {
        self.limit.filter(|_| self.state().ended == Some(End::RanOut))
    }

    /// Something came.
    fn heard(&self) {
        let mut state = self.state();
        if state.phase != Phase::Unanswered {
            state.silent = Duration::ZERO;
        }
    }

    /// Nothing came for so long. Whether to wait on.
    fn waited(&self, time: Duration, asks: impl FnOnce() -> bool) -> bool {
        let mut state = self.state();
        state.silent += time;
        let over = self.limit.is_some_and(|limit| state.silent >= limit);
        match state.phase {
            _ if state.ended.is_some() => {}
            Phase::Unanswered if over && asks() => state.silent = Duration::ZERO,
            Phase::Unanswered | Phase::Beating if over => state.ended = Some(End::RanOut),
            _ => {}
        }
        state.ended.is_none()
    }
}

/// What comes from the far side, up to its end or that of the patience with it. Where ssh shares a connection, the process that has
/// it keeps this side's streams open as long as the far side runs, also when the ssh that was started here is gone.
pub struct Patient {
    /// What is read.
    pub stdout: ChildStdout,
    /// With whom.
    pub patience: Arc<Patience>,
    /// The number of the ssh that writes it.
    pub ssh: u32,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            let mut polled = [PollFd::new(&self.stdout, PollFlags::IN)];
            let waited = match poll(&mut polled, Some(&LOOK)) {
                Ok(0) => Duration::from_millis(100),
                Err(rustix::io::Errno::INTR) => Duration::ZERO,
                Ok(_) => {
                    self.patience.heard();
                    return self.stdout.read(buffer);
                }
                Err(error) => return Err(error.into()),
            };
            if !self.patience.waited(waited, || asks(self.ssh)) {
                return Ok(0);
            }
        }
    }
}

/// Whether ssh, or one that it has started (of a ProxyJump, say), asks a person something now: it has the terminal open by its name, as
/// readpassphrase(3) does for as long as it waits, or a program for such questions runs. What cannot be looked at asks nothing.
fn asks(ssh: u32) -> bool {
    let mut todo = vec![ssh];
    while let Some(pid) = todo.pop() {
        let proc = Path::new("/proc").join(pid.to_string());
        let open = std::fs::read_dir(proc.join("fd")).into_iter().flatten().flatten();
        if open.into_iter().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == Path::new("/dev/tty")))
            || is_askpass(&proc)
        {
            return true;
        }
        let children = std::fs::read_to_string(proc.join("task").join(pid.to_string()).join("children")).unwrap_or_default();
        todo.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    false
}

/// Its name, or that of its script, is the one that ssh(1) finds in `$SSH_ASKPASS`, or is like that of its default.
fn is_askpass(proc: &Path) -> bool {
    let named = std::env::var("SSH_ASKPASS").unwrap_or_default();
    let words = std::fs::read(proc.join("cmdline")).unwrap_or_default();
    let is = |word: &[u8]| {
        let word = String::from_utf8_lossy(word);
        !named.is_empty() && word == *named || word.ends_with("askpass")
    };
    words.split(|b| *b == 0).take(2).any(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn waits(patience: &Patience, seconds: u32) -> bool {
        (0..seconds).all(|_| patience.waited(SECOND, || false))
    }

    #[test]
    fn what_a_login_script_writes_is_no_answer_and_what_comes_later_is_a_word() {
        let patience = Patience::new(Some(3 * SECOND));
        assert!(waits(&patience, 2));
        patience.heard();
        assert!(!waits(&patience, 1));
        assert_eq!(patience.ran_out(), Some(3 * SECOND));
        let patience = Patience::new(Some(3 * SECOND));
        patience.answered();
        // One that does not beat may take its time.
        assert!(waits(&patience, 60));
        patience.beats();
        assert!(waits(&patience, 2));
        patience.heard();
        assert!(waits(&patience, 2) && !waits(&patience, 1));
    }

    #[test]
    fn a_question_begins_the_time_anew_and_without_a_limit_there_is_none() {
        let patience = Patience::new(Some(3 * SECOND));
        assert!((0..60).all(|_| patience.waited(SECOND, || true)));
        assert!(waits(&patience, 2) && !waits(&patience, 1));
        let patience = Patience::new(None);
        assert!(waits(&patience, 600));
        patience.give_up();
        assert!(!waits(&patience, 1) && patience.ran_out().is_none());
    }
}
