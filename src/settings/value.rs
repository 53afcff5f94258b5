//! A setting in force, and its source.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum From {
    #[default]
    Default,
    /// `config.toml`.
    File,
    Environment(&'static str),
    Option(&'static str),
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Default => f.write_str("default"),
            From::File => f.write_str("file"),
            From::Environment(name) => write!(f, "environment (${name})"),
            From::Option(name) => write!(f, "option ({name})"),
        }
    }
}

impl Serialize for From {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A value and its source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set<T> {
    pub value: T,
    pub from: From,
}

impl<T> Set<T> {
    pub(super) fn of(found: Option<T>, default: T) -> Self {
        match found {
            Some(value) => Self { value, from: From::File },
            None => Self { value: default, from: From::Default },
        }
    }
}

/// A setting as `recant config` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub key: Cow<'static, str>,
    pub value: Value,
    pub from: From,
}

/// A value of any kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    None,
    Flag(bool),
    Number(u64),
    /// A size.
    Bytes(u64),
    /// A time.
    Seconds(i64),
    Text(String),
    List(Vec<String>),
    /// A program and its first arguments.
    Command(Vec<String>),
}
