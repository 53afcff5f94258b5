//! Arguments of tools.

use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A word that is no option: a session, a number or label of a snapshot.
    Word,
    Path,
    Paths,
    /// A whole number from 0.
    Count,
    Flag,
}

/// An argument of a tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// True if the tool needs it.
    pub required: bool,
    pub about: &'static str,
}

/// An argument that may be left out.
pub const fn field(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, required: false, about }
}

pub const fn needed(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, required: true, about }
}

impl Field {
    /// Checks an argument.
    ///
    /// # Errors
    /// It does not fit; why.
    pub fn check(&self, value: &Value) -> Result<(), &'static str> {
        let text = |value: &Value| match value.as_str() {
            None => Err("expected text"),
            Some(text) if text.contains('\0') => Err("it holds a NUL byte"),
            Some("") if self.kind != Kind::Text => Err("it is empty"),
            Some(_) => Ok(()),
        };
        match self.kind {
            Kind::Text | Kind::Path => text(value),
            // It stands where an option could stand.
            Kind::Word if value.as_str().is_some_and(|word| word.starts_with('-')) => Err("it begins with '-'"),
            Kind::Word => text(value),
            Kind::Count if value.as_u64().is_some_and(|n| n <= u32::MAX.into()) => Ok(()),
            Kind::Count => Err("expected a whole number from 0"),
            Kind::Flag if value.is_boolean() => Ok(()),
            Kind::Flag => Err("expected true or false"),
            Kind::Paths => match value.as_array() {
                None => Err("expected a list of texts"),
                Some(list) if list.is_empty() => Err("the list is empty"),
                Some(list) => list.iter().try_for_each(text),
            },
        }
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::Text | Kind::Word | Kind::Path => json!({ "type": "string" }),
            Kind::Paths => json!({ "type": "array", "items": { "type": "string" } }),
            Kind::Count => json!({ "type": "integer", "minimum": 0 }),
            Kind::Flag => json!({ "type": "boolean" }),
        };
        schema["description"] = self.about.into();
        schema
    }
}

/// The JSON Schema of a tool's arguments.
pub fn schema(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}
