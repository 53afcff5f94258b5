//! JSON Schemas: of arguments, from the table of tools; of results, from the shapes in docs/json.md, which are the promise that programs
//! have.

use serde_json::{Map, Value, json};

use super::fields::{Field, Kind};

const PAGE: &str = include_str!("../../../docs/json.md");

/// The shape of what is not done: an error, and for a person's act the command to type, with what it would do.
const REFUSED: &str = r#"{"schema": 2, "kind": "refused", "message": "…", "path?": "/srv/app.conf", "state?": "nothing was changed", "remedy?": "…", "paths?": [{"path": "/srv/app.conf", "why": "…"}], "command?": "recant commit k3fa", "would?": "<any>"}"#;

pub fn of_arguments(fields: &[Field]) -> Value {
    let property = |field: &Field| {
        let mut schema = match field.kind {
            Kind::Text | Kind::Word | Kind::Path => json!({ "type": "string" }),
            Kind::Texts | Kind::Paths => json!({ "type": "array", "items": { "type": "string" } }),
            Kind::Count => json!({ "type": "integer", "minimum": 0 }),
        };
        schema["description"] = field.about.into();
        (field.name.to_owned(), schema)
    };
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let properties: Map<String, Value> = fields.iter().map(property).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// The schema of results: one of these documents, or a refusal. Each is a title in docs/json.md, or nothing, and keys that are added to it
/// in the same notation.
pub fn of_results(documents: &[(&str, &str)]) -> Value {
    let document = |(title, more): &(&str, &str)| {
        let mut shape = shape(title);
        let Value::Object(added) = parsed(more) else { return of_shape(&shape) };
        if let Some(keys) = shape.as_object_mut() {
            keys.extend(added);
        }
        of_shape(&shape)
    };
    let mut any: Vec<Value> = documents.iter().map(document).collect();
    any.push(of_shape(&parsed(REFUSED)));
    json!({ "type": "object", "anyOf": any })
}

fn shape(title: &str) -> Value {
    if title.is_empty() {
        return json!({ "schema": 2 });
    }
    let block = PAGE.split("\n```json ").find_map(|block| block.strip_prefix(title)?.strip_prefix('\n'));
    parsed(block.and_then(|block| block.split("\n```").next()).unwrap_or("{}"))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn of_shape(shape: &Value) -> Value {
    match shape {
        Value::Object(keys) => {
            let mut properties = Map::new();
            let mut required = Vec::new();
            for (key, shape) in keys {
                match key.strip_suffix('?') {
                    // It is missing, never null: `Outcome` sees to that. A list of types is what some clients cannot read.
                    Some(key) => drop(properties.insert(key.to_owned(), of_shape(shape))),
                    None => {
                        required.push(Value::from(key.as_str()));
                        properties.insert(key.to_owned(), of_shape(shape));
                    }
                }
            }
            json!({ "type": "object", "properties": properties, "required": required })
        }
        Value::Array(items) => json!({ "type": "array", "items": items.first().map_or(json!({}), of_shape) }),
        Value::String(name) => match name.strip_prefix('<').and_then(|name| name.strip_suffix('>')) {
            // A path that is no UTF-8 is {"b64": …}.
            Some("path") => json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] }),
            Some("any") => json!({}),
            Some("text") => json!({ "type": "string" }),
            Some(name) => of_shape(&self::shape(name)),
            None => json!({ "type": "string" }),
        },
        Value::Number(_) => json!({ "type": "integer" }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Null => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::schema::*;
    use crate::face::mcp::tools::TOOLS;

    #[test]
    fn every_document_of_a_tool_stands_in_the_page() {
        for tool in &TOOLS {
            for (title, more) in tool.results {
                assert!(shape(title)["schema"] == 2, "{}: {title}", tool.name);
                assert!(parsed(more).is_object(), "{}: {more}", tool.name);
            }
        }
        assert!(parsed(REFUSED).is_object());
    }

    #[test]
    fn a_key_that_is_always_there_is_required() {
        let schema = of_shape(&json!({ "a": 1, "b?": ["<path>"], "c?": { "d": true }, "e": "<any>" }));
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "required": ["a", "e"],
                "properties": {
                    "a": { "type": "integer" },
                    "b": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "object" }] } },
                    "c": { "type": "object", "properties": { "d": { "type": "boolean" } }, "required": ["d"] },
                    "e": {},
                },
            })
        );
    }
}
