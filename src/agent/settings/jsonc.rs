//! JSON with or without comments, as settings are written.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{ParseOptions, parse_to_ast};
use serde_json::Value as Json;

use super::edit::Wrong;
use super::files::read;
use crate::fs::AbsPath;

const BOM: &str = "\u{feff}";

/// The text without a byte order mark, and the mark.
pub fn without_mark(text: &str) -> (&str, &str) {
    text.strip_prefix(BOM).map_or(("", text), |rest| (BOM, rest))
}

/// The object that a text is; `None` if it has no value at all.
pub fn parse(text: &str) -> Result<Option<Object<'_>>, Wrong> {
    // JSON with comments and trailing commas, but none of JSON5.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &Default::default(), &options).map_err(|error| {
        let why = error.kind().to_string();
        let (first, rest) = why.split_at(why.char_indices().nth(1).map_or(why.len(), |(at, _)| at));
        Wrong { line: error.line_display(), why: format!("{}{rest}", first.to_lowercase()) }
    })?;
    match parsed.value {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(Wrong::at(text, other.start(), "an object was expected")),
    }
}

/// The value of a text that is an object.
pub fn value(text: &str) -> Option<Json> {
    let root = parse(without_mark(text).1).ok()??;
    Some(json(&Value::Object(root)))
}

/// The value of a file; null if there is none, or it cannot be read: that is told elsewhere.
pub fn value_of(path: &AbsPath) -> Json {
    read(path).ok().flatten().and_then(|text| value(&text)).unwrap_or_default()
}

/// The files in which a key is true.
pub fn with<'p>(paths: &'p [AbsPath], key: &'p str) -> impl Iterator<Item = &'p AbsPath> {
    paths.iter().filter(move |path| value_of(path)[key] == true)
}

/// The value of a part of a text.
pub fn json(value: &Value<'_>) -> Json {
    match value {
        Value::StringLit(text) => text.value.as_ref().into(),
        Value::NumberLit(number) => number.value.parse::<serde_json::Number>().map_or(Json::Null, Json::Number),
        Value::BooleanLit(truth) => truth.value.into(),
        Value::NullKeyword(_) => Json::Null,
        Value::Array(array) => array.elements.iter().map(json).collect(),
        Value::Object(object) => {
            Json::Object(object.properties.iter().map(|prop| (prop.name.as_str().to_owned(), json(&prop.value))).collect())
        }
    }
}
