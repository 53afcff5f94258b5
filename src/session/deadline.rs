//! The time until which a commit waits to be confirmed. It is sealed with the commit, in the header, so that no crash leaves a commit that
//! nobody would roll back.

use serde::{Deserialize, Serialize};

use super::run_record::boot_id;
use crate::fs::Time;
use crate::tree::time;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// By the wall clock.
    #[serde(with = "time")]
    pub due: Time,
    /// The boot in which it was set.
    pub boot: String,
    /// By the clock that nobody sets and that only this boot has.
    #[serde(with = "time")]
    pub due_since_boot: Time,
    /// The one that rolls it back then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reasons why it could not be rolled back when it was due.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

impl Deadline {
    /// `seconds` from now.
    pub fn within(seconds: i64) -> Self {
        let later = |time: Time| Time { s: time.s.saturating_add(seconds), ns: time.ns };
        Self {
            due: later(crate::fs::exact_now()),
            boot: boot_id(),
            due_since_boot: later(crate::fs::since_boot()),
            by: None,
            failed: Vec::new(),
        }
    }

    /// True if it has passed. In the boot in which it was set a clock tells that nobody sets; after a restart only the wall clock is left.
    pub fn is_over(&self) -> bool {
        self.left() == Time::default()
    }

    /// The time that is left; zero once it is over.
    pub fn left(&self) -> Time {
        let same_boot = !self.boot.is_empty() && self.boot == boot_id();
        let (due, now) =
            if same_boot { (self.due_since_boot, crate::fs::since_boot()) } else { (self.due, crate::fs::exact_now()) };
        from_to(now, due)
    }
}

/// The time from `now` to `due`; zero if that is over.
fn from_to(now: Time, due: Time) -> Time {
    match (due.s - now.s, i64::from(due.ns) - i64::from(now.ns)) {
        (s, ns) if s > 0 && ns < 0 => Time { s: s - 1, ns: u32::try_from(ns + 1_000_000_000).unwrap_or(0) },
        (s, ns) if s >= 0 && ns >= 0 => Time { s, ns: u32::try_from(ns).unwrap_or(0) },
        _ => Time::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_until_a_time_is_nothing_from_then_on() {
        let time = |s, ns| Time { s, ns };
        for (now, due, left) in [
            ((5, 200), (7, 300), (2, 100)),
            ((5, 200), (7, 100), (1, 999_999_900)),
            ((5, 200), (6, 199), (0, 999_999_999)),
            ((5, 200), (5, 201), (0, 1)),
            ((5, 200), (5, 200), (0, 0)),
            ((5, 200), (5, 199), (0, 0)),
            ((5, 200), (4, 900), (0, 0)),
            ((5, 200), (0, 0), (0, 0)),
        ] {
            assert_eq!(from_to(time(now.0, now.1), time(due.0, due.1)), time(left.0, left.1), "{now:?} to {due:?}");
        }
    }

    #[test]
    fn in_the_boot_that_it_was_set_in_no_clock_that_somebody_sets_tells() {
        let mut deadline = Deadline::within(60);
        deadline.due = Time { s: 1, ns: 0 };
        assert!(!deadline.is_over() && deadline.left().s <= 60, "the clock on the wall was set forward");
        for boot in ["", "6f1a2bb0-0000-4000-8000-000000000000"] {
            assert!(Deadline { boot: boot.into(), ..deadline.clone() }.is_over(), "{boot:?} is not this one");
        }
    }
}
