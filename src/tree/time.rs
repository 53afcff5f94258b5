//! Times as text: in JSON RFC 3339 with ns, in UTC; for people local time.

use chrono::{DateTime, Datelike, Local, SecondsFormat, Utc};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use crate::fs::Time;

/// Formats a time as `2026-03-01T10:15:00.123456789Z`, or as `@SECONDS.NS` beyond the calendar (a file may claim any).
pub fn to_text(time: Time) -> String {
    match DateTime::<Utc>::from_timestamp(time.s, time.ns) {
        Some(date) => date.to_rfc3339_opts(SecondsFormat::Nanos, true),
        None => format!("@{}.{:09}", { time.s }, time.ns),
    }
}

/// Local time to the minute, or to the second: `2026-03-01 10:15:00`.
pub fn local(time: Time, seconds: bool) -> String {
    let form = if seconds { "%Y-%m-%d %H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    match DateTime::<Utc>::from_timestamp(time.s, time.ns) {
        Some(date) => date.with_timezone(&Local).format(form).to_string(),
        None => to_text(time),
    }
}

/// Local time for a listing, in 12 columns: `Mar 01 10:15`, or `Mar 01  2025` for another year.
pub fn day(time: Time) -> String {
    let Some(date) = DateTime::<Utc>::from_timestamp(time.s, time.ns) else { return to_text(time) };
    let date = date.with_timezone(&Local);
    let form = if date.year() == Local::now().year() { "%b %d %H:%M" } else { "%b %d  %Y" };
    date.format(form).to_string()
}

/// Local time of a day: `at 19:50`; of another day than today `on 2026-03-01 at 19:50`.
pub fn clock(time: Time) -> String {
    let Some(date) = DateTime::<Utc>::from_timestamp(time.s, time.ns) else { return format!("at {}", to_text(time)) };
    let date = date.with_timezone(&Local);
    let is_today = date.date_naive() == Local::now().date_naive();
    date.format(if is_today { "at %H:%M" } else { "on %Y-%m-%d at %H:%M" }).to_string()
}

/// Local time, for something that lasts since then: `19:50`; of another day than today `2026-03-01 19:50`.
pub fn since(time: Time) -> String {
    let Some(date) = DateTime::<Utc>::from_timestamp(time.s, time.ns) else { return to_text(time) };
    let date = date.with_timezone(&Local);
    let is_today = date.date_naive() == Local::now().date_naive();
    date.format(if is_today { "%H:%M" } else { "%Y-%m-%d %H:%M" }).to_string()
}

/// Parses what [`to_text`] writes; `None` for anything else.
pub fn from_text(text: &str) -> Option<Time> {
    if let Some(raw) = text.strip_prefix('@') {
        let (s, ns) = raw.split_once('.')?;
        let ns: u32 = ns.parse().ok().filter(|ns| *ns < 1_000_000_000)?;
        return Some(Time { s: s.parse().ok()?, ns });
    }
    let date = DateTime::parse_from_rfc3339(text).ok()?;
    Some(Time { s: date.timestamp(), ns: date.timestamp_subsec_nanos().min(999_999_999) })
}

pub fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_text(*time))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    let text = String::deserialize(deserializer)?;
    from_text(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not a time")))
}

/// Serializes a time that may be missing.
pub mod option {
    use super::*;

    pub fn serialize<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        from_text(&text).map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is not a time")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_that_a_file_can_have_goes_there_and_back() {
        for (s, ns) in [(0, 0), (-1, 999_999_999), (1_772_359_200, 1), (16_725_225_600, 5), (i64::MAX, 7), (i64::MIN, 0)] {
            let time = Time { s, ns };
            assert_eq!(from_text(&to_text(time)), Some(time), "{}", to_text(time));
        }
        assert_eq!(from_text("yesterday"), None);
        assert_eq!(from_text("@1.1000000000"), None);
    }
}
