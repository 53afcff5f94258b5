//! The carrier of tools, as this room sees it.

use std::sync::mpsc::Sender;

use serde_json::{Map, Value, json};

use super::tools::Tool;
use super::wire::Wrong;

/// A call of a tool, with arguments that fit it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub tool: &'static Tool,
    pub arguments: Map<String, Value>,
    /// The client's name for itself, or nothing.
    pub client: String,
}

impl Asked {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name)?.as_str()
    }

    /// An argument that is a list of texts; empty if it is not there.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.arguments.get(name).and_then(Value::as_array);
        list.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.arguments.get(name)?.as_u64()
    }
}

/// The end of a call: a document of the shape that its tool promises.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub document: Value,
    /// True if what was asked for is not done.
    pub is_error: bool,
}

impl Outcome {
    pub fn done(document: Value) -> Self {
        Self { document: without_nulls(document), is_error: false }
    }

    /// Not done, with a document of the shape `refused`.
    pub fn failed(document: Value) -> Self {
        Self { document: without_nulls(document), is_error: true }
    }

    /// Not done, for a reason.
    pub fn refused(kind: &str, message: impl Into<String>) -> Self {
        Self::failed(json!({ "schema": 2, "kind": kind, "message": message.into() }))
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.document[key] = value.into();
        self
    }
}

/// A document without keys that are null: they mean what a missing one means (docs/json.md).
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(keys) => {
            keys.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key, without_nulls(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// News for the serving thread.
#[derive(Debug)]
pub enum Event {
    /// The client sent a line.
    Line(Result<Vec<u8>, Wrong>),
    /// The client will send no more.
    Closed,
    /// A call runs, for so many seconds.
    GoesOn(u64, u64),
    Ends(u64, Outcome),
    /// This process was asked to end.
    Over,
}

/// Ends a call that has begun; a second time it does nothing.
pub type Stop = Box<dyn Fn() + Send>;

/// Tells the server of a call that has begun.
#[derive(Debug, Clone)]
pub struct Told {
    pub call: u64,
    pub events: Sender<Event>,
}

impl Told {
    /// Tells that it still runs, after so many seconds.
    pub fn goes_on(&self, seconds: u64) {
        // A server that has ended hears nothing, and needs nothing.
        drop(self.events.send(Event::GoesOn(self.call, seconds)));
    }

    pub fn ends(&self, outcome: Outcome) {
        drop(self.events.send(Event::Ends(self.call, outcome)));
    }
}

pub trait Carrier {
    /// Begins a call of a tool. Its end is told once.
    fn begin(&mut self, asked: &Asked, told: Told) -> Stop;

    /// True if this process was asked to end.
    fn is_over(&self) -> bool;
}
