//! The clocks. Read through the C library, as all programs do: so a test can set the clock of one process.
#![allow(unsafe_code, reason = "rustix asks the kernel's page by itself")]

use super::dir::Time;

/// The most exact time of the kernel: CLOCK_REALTIME. A file changed before this call has an earlier ctime, even where the file system
/// stamps finer than the tick (multigrain timestamps, Linux 6.13).
pub fn exact_now() -> Time {
    ask(libc::CLOCK_REALTIME)
}

/// The clock that the kernel stamps files with: CLOCK_REALTIME_COARSE. A file changed after this call has this ctime or a later one.
pub fn now() -> Time {
    ask(libc::CLOCK_REALTIME_COARSE)
}

/// Makes the kernel stamp files from now on with times past this one, and tells whether it does. Where it stamps finer than its tick
/// (multigrain timestamps, Linux 6.13), a file whose ctime was asked for gets the exact time at its next change, and no file on the machine
/// an earlier one after that: Documentation/filesystems/multigrain-ts.rst. Elsewhere the caller has to wait for the tick, of 1 to 10 ms.
pub fn stamps_are_past(past: Time) -> bool {
    now() > past || exact_stamp().is_ok_and(|stamp| stamp > past)
}

/// The ctime of a file in memory that is changed after its ctime was asked for.
fn exact_stamp() -> rustix::io::Result<Time> {
    use rustix::fs::{MemfdFlags, Mode, fchmod, fstat, memfd_create};
    let file = memfd_create(c"recant-clock", MemfdFlags::CLOEXEC)?;
    fchmod(&file, Mode::RUSR)?;
    fstat(&file)?;
    fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    let stat = fstat(&file)?;
    Ok(Time { s: stat.st_ctime, ns: u32::try_from(stat.st_ctime_nsec).unwrap_or(0) })
}

/// The clock that nobody sets, and that starts with the machine: CLOCK_BOOTTIME.
pub fn since_boot() -> Time {
    ask(libc::CLOCK_BOOTTIME)
}

/// A moment by the clock that can be set, and by the one that can't: CLOCK_BOOTTIME, which also runs while the machine sleeps.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    real: Time,
    boot: Time,
}

/// The longest wait between two reads of a clock; a program that sets a clock by less slews it.
const SLACK_NS: i128 = 1_000_000;

impl Moment {
    pub fn now() -> Self {
        Self { real: exact_now(), boot: since_boot() }
    }

    /// The span from this moment, which was `start`, until now.
    pub fn until_now(self, start: Time) -> Span {
        let now = Self::now();
        Span { start, end: of_nanos(nanos(self.real) + nanos(now.boot) - nanos(self.boot)), now: now.real }
    }
}

/// A span of time by a clock that may have been set meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Its start, by the clock then.
    start: Time,
    /// Its end, by the clock as it was at the start.
    end: Time,
    /// Its end, by the clock as it is at the end.
    now: Time,
}

/// The conclusion from an object's last change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It was changed in the span.
    During,
    /// It was changed in the span or before it: the clock was set, or is another machine's.
    Perhaps,
}

/// The time by which a file server's clock may be ahead.
const AHEAD_NS: i128 = 60_000_000_000;

impl Span {
    /// The time by which the clock was set back.
    fn back(&self) -> i128 {
        let back = nanos(self.end) - nanos(self.now);
        if back < SLACK_NS { 0 } else { back }
    }

    /// The start by the present clock: earlier by as much as the clock was set back since. Later changes have a later time, whichever of
    /// the two clocks stamped them.
    pub fn start(&self) -> Time {
        of_nanos(nanos(self.start) - self.back())
    }

    /// Tells whether an object with a time later than [`start`](Self::start) was changed in the span. If no clock had reached that time by
    /// its end, the object is older, from a clock that has been set back since.
    pub fn sign(&self, time: Time) -> Option<Sign> {
        if self.back() > 0 && time > self.start {
            return (time <= self.end).then_some(Sign::During);
        }
        match nanos(time) - nanos(self.now) {
            ..=0 if self.back() == 0 => Some(Sign::During),
            ..=AHEAD_NS => Some(Sign::Perhaps),
            _ => None,
        }
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
    // SAFETY: clock_gettime(2) writes one timespec, which `now` is; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut now) };
    // A tv_nsec of clock_gettime(2) is below 1e9, which fits.
    Time { s: now.tv_sec, ns: u32::try_from(now.tv_nsec).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests set up real files")]
    fn what_is_made_once_stamps_are_past_a_time_is_later() {
        let room = tempfile::tempdir().expect("a directory");
        for n in 0..200 {
            let past = exact_now();
            while !stamps_are_past(past) {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            let made = room.path().join(n.to_string());
            std::fs::create_dir(&made).expect("a directory of its own");
            let stat = rustix::fs::stat(&made).expect("its metadata");
            let ctime = Time { s: stat.st_ctime, ns: u32::try_from(stat.st_ctime_nsec).expect("below 1e9") };
            assert!(ctime > past, "{ctime:?}, made after {past:?}");
        }
    }

    #[test]
    fn a_time_is_a_sign_of_work_in_a_span_unless_no_clock_had_told_it_by_then() {
        let at = |s: i64| Time { s, ns: 0 };
        // Ten seconds from 10,000 on; and with a clock that was set back, or ahead, by an hour in them.
        let (plain, back, ahead) = (
            Span { start: at(10_000), end: at(10_010), now: at(10_010) },
            Span { start: at(10_000), end: at(10_010), now: at(6_410) },
            Span { start: at(10_000), end: at(10_010), now: at(13_610) },
        );
        assert_eq!([plain, back, ahead].map(|span| span.start()), [at(10_000), at(6_400), at(10_000)]);
        let (during, perhaps) = (Some(Sign::During), Some(Sign::Perhaps));
        for (span, time, want) in [
            (plain, 10_001, during),
            (plain, 10_010, during),
            (plain, 10_030, perhaps),
            (plain, 13_600, None),
            (back, 10_005, during),
            (back, 6_405, perhaps),
            (back, 9_000, None),
            (back, 13_000, None),
            (ahead, 10_005, during),
            (ahead, 13_605, during),
            (ahead, 17_000, None),
        ] {
            assert_eq!(span.sign(at(time)), want, "{time} {span:?}");
        }
    }
}
