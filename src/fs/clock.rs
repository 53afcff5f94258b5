//! What the clocks say. Asked through the C library, as all programs do: a test can set the clock of one process.
#![allow(unsafe_code, reason = "rustix asks the kernel's page by itself")]

use super::dir::Time;

/// The time as exactly as the kernel tells it: CLOCK_REALTIME. A file changed before this call has a ctime of before it, also
/// where the file system stamps finer than the tick (multigrain timestamps, Linux 6.13).
pub fn exact_now() -> Time {
    ask(libc::CLOCK_REALTIME)
}

/// The clock that the kernel stamps files with: CLOCK_REALTIME_COARSE. A file changed after this call has this ctime or a later one.
pub fn now() -> Time {
    ask(libc::CLOCK_REALTIME_COARSE)
}

/// The clock that nobody sets, and that begins with the machine: CLOCK_BOOTTIME.
pub fn since_boot() -> Time {
    ask(libc::CLOCK_BOOTTIME)
}

/// A moment by the clock that can be set, and by the one that cannot: CLOCK_BOOTTIME, which goes on while the machine sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    real: Time,
    boot: Time,
}

/// Between two calls to read a clock a process may have to wait; what sets a clock by less slews it.
const SLACK_NS: i128 = 1_000_000;

impl Moment {
    /// This one.
    pub fn now() -> Self {
        Self { real: exact_now(), boot: since_boot() }
    }

    /// `start`, a time of this moment, as the clock would have told it that is right now: earlier by as much as it was set back since.
    /// What was changed since then has a later time, whichever of the two clocks stamped it.
    pub fn corrected(&self, start: Time) -> Time {
        let now = Self::now();
        let gone = |from: Time, to: Time| nanos(to) - nanos(from);
        let back = gone(self.boot, now.boot) - gone(self.real, now.real);
        if back < SLACK_NS { start } else { of_nanos(nanos(start) - back) }
    }
}

fn nanos(time: Time) -> i128 {
    i128::from(time.s) * 1_000_000_000 + i128::from(time.ns)
}

fn of_nanos(nanos: i128) -> Time {
    let s = i64::try_from(nanos.div_euclid(1_000_000_000)).unwrap_or(i64::MIN);
    Time { s, ns: u32::try_from(nanos.rem_euclid(1_000_000_000)).unwrap_or(0) }
}

fn ask(clock: libc::clockid_t) -> Time {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes one timespec, which `now` is; these clocks are there on every Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    // A clock_gettime(2) tv_nsec is below 1e9, which fits.
    Time { s: now.tv_sec, ns: u32::try_from(now.tv_nsec).unwrap_or(0) }
}
