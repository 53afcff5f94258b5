//! Words that options of several verbs take: a number, a time, a reason.

use crate::session::REASON;
use crate::settings;

/// Parses a session's whole id.
pub fn id(text: &str) -> Result<crate::session::Id, String> {
    crate::session::Id::parse(text).ok_or_else(|| "not a session id".into())
}

/// Parses the reason for an act.
pub fn reason(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty".into()),
        _ if text.len() > REASON => Err(format!("it has more than {REASON} bytes")),
        _ if text.contains(char::is_control) => Err("it has a control character".into()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses words that stand for a command in listings.
pub fn label(text: &str) -> Result<String, String> {
    match text.chars().count() {
        0 => Err("it is empty".into()),
        201.. => Err("it has more than 200 characters".into()),
        _ if text.contains(char::is_control) => Err("it has a control character".into()),
        _ => Ok(text.to_owned()),
    }
}

/// Parses a number; the error is in words for people.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let why = if text.parse::<u64>().is_ok() { "it is too small or too large" } else { "expected a whole number" };
    text.parse().map_err(|_| why.to_owned())
}

/// A point in time, and the text that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since {
    /// Seconds since 1970.
    pub s: i64,
    /// The text that gave it.
    pub text: String,
}

/// Reads a duration, in seconds.
pub fn duration(text: &str) -> Result<i64, String> {
    crate::settings::age(text).map_err(|_| format!("{text:?} is not a time: a number and s, m, h or d, as in 30s"))
}

/// Parses an age before now, or a date: the beginning of that day here.
pub fn since(text: &str) -> Result<Since, String> {
    use chrono::{Local, NaiveDate, NaiveTime};
    let now = crate::fs::now().s;
    let day = |day: NaiveDate| day.and_time(NaiveTime::MIN).and_local_timezone(Local).earliest().map(|time| time.timestamp());
    let s = match NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(day) {
        Some(s) => s,
        None => {
            let age = settings::age(text)
                .map_err(|_| format!("{text:?} is not a time: an age as in 2d, or a date as in 2026-03-01"))?;
            now.saturating_sub(age)
        }
    };
    Ok(Since { s, text: text.into() })
}
