//! How long a far side may be silent: until it has said who it is, and from then on between two words. So that a verb which takes long is
//! no silence, the far side's relay says by itself that it is there ([`Down::Alive`](super::frame::Down::Alive)).
//!
//! Only time in which this side waits for a word counts: neither that in which it was stopped (Ctrl-Z), nor that in which nobody took what
//! it had to say, nor, before the far side has answered, that in which ssh asks a person something.

use std::io::{self, Read};
use std::path::Path;
use std::process::ChildStdout;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
    /// It has said who it is, and tells from now on that it is there.
    Answered,
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

    /// The far side has said who it is: from now on its silence says that it is not there.
    pub fn answered(&self) {
        let mut state = self.state();
        (state.phase, state.silent) = (Phase::Answered, Duration::ZERO);
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

    /// Something came, after so long. Whether to read on.
    fn heard(&self, time: Duration, asks: impl FnOnce() -> bool) -> bool {
        if self.state().phase == Phase::Answered {
            self.state().silent = Duration::ZERO;
            return !self.is_over();
        }
        // Of a login that writes and writes it is none of its words.
        self.waited(time, asks)
    }

    /// Nothing came for so long. Whether to wait on. While somebody is asked, which is looked at once a second, the time begins anew.
    fn waited(&self, time: Duration, asks: impl FnOnce() -> bool) -> bool {
        let mut state = self.state();
        let seconds = state.silent.as_secs();
        state.silent += time;
        if state.phase == Phase::Unanswered && state.silent.as_secs() != seconds && asks() {
            state.silent = Duration::ZERO;
        }
        if state.ended.is_none() && self.limit.is_some_and(|limit| state.silent >= limit) {
            state.ended = Some(End::RanOut);
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
        const LOOK: Duration = Duration::from_millis(100);
        const POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            let since = Instant::now();
            let mut polled = [PollFd::new(&self.stdout, PollFlags::IN)];
            let came = match poll(&mut polled, Some(&POLL)) {
                Ok(found) => found > 0,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            // Where this side was stopped in between, most of it was no waiting.
            let time = since.elapsed().min(LOOK);
            let on =
                if came { self.patience.heard(time, || asks(self.ssh)) } else { self.patience.waited(time, || asks(self.ssh)) };
            match (on, came) {
                (false, _) => return Ok(0),
                (true, true) => return self.stdout.read(buffer),
                (true, false) => {}
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
        assert!(!patience.heard(SECOND, || false));
        assert_eq!(patience.ran_out(), Some(3 * SECOND));
        let patience = Patience::new(Some(3 * SECOND));
        patience.answered();
        assert!(waits(&patience, 2));
        assert!(patience.heard(SECOND, || false));
        assert!(waits(&patience, 2) && !waits(&patience, 1));
    }

    #[test]
    fn who_was_asked_right_before_the_end_of_the_time_has_all_of_it_again() {
        let patience = Patience::new(Some(3 * SECOND));
        assert!(waits(&patience, 1) && patience.waited(SECOND, || true) && waits(&patience, 2) && !waits(&patience, 1));
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
