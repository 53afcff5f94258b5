//! The id of a session.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::session::Id;

/// The permanent id of a session: `YYYYMMDD-HHMMSS-xxxx`, by local time. Parsed from that text, and written as it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Id);

impl SessionId {
    pub(super) fn inner(&self) -> &Id {
        &self.0
    }
}

#[doc(hidden)]
impl From<Id> for SessionId {
    fn from(id: Id) -> Self {
        Self(id)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let none = || Error::refused(format!("{text:?} is no session's id: it is not YYYYMMDD-HHMMSS-xxxx"));
        Id::parse(text).map(Self).ok_or_else(none)
    }
}
