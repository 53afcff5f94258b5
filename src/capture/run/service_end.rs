//! The first moment of a service, and its end: asked by SIGTERM, killed when it takes too long.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::session::Stopped;

/// The time for which a service has to run before its caller goes on: most that cannot start fail sooner.
pub const DEBUT: Duration = Duration::from_secs(1);

/// The time from the question to the kill.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct EndingService {
    /// The end of its first moment, until that is told.
    pub debut: Option<Instant>,
    /// The time at which it is killed.
    killed_at: Cell<Option<Instant>>,
    stopped: Cell<Option<Stopped>>,
}

impl EndingService {
    /// Notes that it was asked to end. A second question does not give it more time.
    pub fn begin(&self) {
        if self.stopped.get().is_none() {
            self.stopped.set(Some(Stopped::Asked));
            self.killed_at.set(Some(Instant::now() + patience()));
        }
    }

    pub fn stopped(&self) -> Option<Stopped> {
        self.stopped.get()
    }

    /// The time until something is due.
    pub fn due(&self) -> Option<Duration> {
        let next = self.debut.into_iter().chain(self.killed_at.get()).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// True once, at the end of its first moment.
    pub fn has_made_its_debut(&mut self) -> bool {
        self.debut.take_if(|debut| *debut <= Instant::now()).is_some()
    }

    /// True once, when it did not end in time.
    pub fn is_too_slow(&self) -> bool {
        let is_due = self.killed_at.get().is_some_and(|at| at <= Instant::now());
        if is_due {
            self.killed_at.set(None);
            self.stopped.set(Some(Stopped::Killed));
        }
        is_due
    }
}

/// Tests do not wait so long.
fn patience() -> Duration {
    let asked = std::env::var("RECANT_STOP_AFTER").ok().filter(|_| cfg!(feature = "crash-points"));
    asked.and_then(|seconds| seconds.parse().ok()).map_or(PATIENCE, Duration::from_secs)
}
