//! The longest silence of a far side: until its hello, and from then on between two frames. A verb that takes long is no silence, as the
//! far side's relay reports by itself that it is there ([`Down::Alive`](super::frame::Down::Alive)).
//!
//! Only time in which this side waits counts. Time does not count while this side is stopped (Ctrl-Z), while nobody takes its output, or
//! while ssh asks a person something before the far side has answered.

use std::io::{self, Read};
use std::path::Path;
use std::process::ChildStdout;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The patience of this side with one far side.
pub struct Patience {
    /// The longest silence; `None`: no limit.
    limit: Option<Duration>,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    silent: Duration,
    ended: Option<End>,
}

/// The meaning of output from the far side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// None, before its hello: login scripts may write.
    Unanswered,
    /// It has sent its hello, and regularly reports that it is there.
    Answered,
    /// It reports progress with something. A mere sign that it is there does not count.
    Working,
}

/// The reason why nothing more is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    GivenUp,
    /// The silence was too long.
    RanOut,
}

impl Patience {
    /// Patience with a far side that has not answered yet.
    pub fn new(limit: Option<Duration>) -> Arc<Self> {
        let state = State { phase: Phase::Unanswered, silent: Duration::ZERO, ended: None };
        Arc::new(Self { limit, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the far side's hello: from now on its silence means that it is not there.
    pub fn answered(&self) {
        let mut state = self.state();
        (state.phase, state.silent) = (Phase::Answered, Duration::ZERO);
    }

    /// Notes progress of the far side: from now on nothing else ends its silence.
    pub fn advanced(&self) {
        let mut state = self.state();
        (state.phase, state.silent) = (Phase::Working, Duration::ZERO);
    }

    pub fn give_up(&self) {
        self.state().ended.get_or_insert(End::GivenUp);
    }

    /// True if the reading has ended, for either reason.
    pub fn is_over(&self) -> bool {
        self.state().ended.is_some()
    }

    /// The length of the silence that ended the reading.
    pub fn ran_out(&self) -> Option<Duration> {
        self.limit.filter(|_| self.state().ended == Some(End::RanOut))
    }

    /// Counts output that came after `time`. True to read on.
    fn heard(&self, time: Duration, asks: impl FnOnce() -> bool) -> bool {
        if self.state().phase == Phase::Answered {
            self.state().silent = Duration::ZERO;
            return !self.is_over();
        }
        // Endless output of a login is no answer, and output alone is no progress.
        self.waited(time, asks)
    }

    /// Counts `time` without output. True to wait on. While ssh asks a person, checked once a second, the time starts again.
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

/// The far side's output, up to its end or that of the patience. If ssh shares a connection, the process that has the connection keeps
/// these streams open as long as the far side runs, even if the ssh that was started here is gone.
pub struct Patient {
    pub stdout: ChildStdout,
    pub patience: Arc<Patience>,
    /// The process id of the ssh that writes it.
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
            // If this side was stopped meanwhile, most of that time was no waiting.
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

/// True if ssh, or a child of it (that of a ProxyJump, say), asks a person something now. It then has /dev/tty open, as readpassphrase(3)
/// does while it waits, or runs a program for such questions. A process that cannot be looked at does not count.
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

/// True if its name, or that of its script, is that of `$SSH_ASKPASS` (ssh(1)), or like that of the default.
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
    use crate::remote::longest_silence::*;

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
    fn of_who_tells_how_far_he_has_come_a_word_is_no_progress() {
        let patience = Patience::new(Some(3 * SECOND));
        patience.advanced();
        assert!(waits(&patience, 1) && patience.heard(SECOND, || true));
        patience.advanced();
        assert!(waits(&patience, 2) && !patience.heard(SECOND, || true));
        assert_eq!(patience.ran_out(), Some(3 * SECOND));
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
