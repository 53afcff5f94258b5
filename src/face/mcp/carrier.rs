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

    pub fn is_set(&self, name: &str) -> bool {
        self.arguments.get(name).is_some_and(|value| *value == true)
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

/// The end of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub document: Value,
    /// True if what was asked for is not done.
    pub is_error: bool,
}

impl Outcome {
    pub fn done(document: Value) -> Self {
        Self { document: telling(document), is_error: false }
    }

    /// Not done: `kind` and `message` of the document say why.
    pub fn failed(document: Value) -> Self {
        Self { document: telling(document), is_error: true }
    }

    /// Not done, for a reason.
    pub fn refused(kind: &str, message: impl Into<String>) -> Self {
        Self::failed(json!({ "kind": kind, "message": message.into() }))
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.document[key] = value.into();
        self
    }
}

/// A document without keys that tell nothing: null, `false`, an empty list, and the version of recant's own JSON.
fn telling(mut document: Value) -> Value {
    if let Some(keys) = document.as_object_mut() {
        keys.remove("schema");
    }
    without_empty(document)
}

fn without_empty(value: Value) -> Value {
    let tells = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(keys) => !keys.is_empty(),
        _ => true,
    };
    match value {
        Value::Object(keys) => {
            keys.into_iter().map(|(key, value)| (key, without_empty(value))).filter(|(_, value)| tells(value)).collect()
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
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
    /// A call runs, for so many seconds; what it waits for, unless it is a command's end.
    GoesOn(u64, u64, Option<String>),
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
    /// The words for what the call waits for, which the client's person reads.
    pub waits: Option<String>,
}

impl Told {
    pub fn waiting(&self, waits: String) -> Self {
        Self { waits: Some(waits), ..self.clone() }
    }

    /// Tells that it still runs, after so many seconds.
    pub fn goes_on(&self, seconds: u64) {
        // A server that has ended hears nothing, and needs nothing.
        drop(self.events.send(Event::GoesOn(self.call, seconds, self.waits.clone())));
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
