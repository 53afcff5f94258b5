//! JSON and TOML as they are written into settings: blocks where people look for keys, lines for what belongs together.

use serde_json::{Map, Value};

/// A value to be written.
#[derive(Debug, Clone)]
pub enum Node {
    Text(String),
    Number(u64),
    /// A list in one line.
    Row(Vec<Node>),
    /// A list with a line for each item.
    Column(Vec<Node>),
    Line(Vec<(&'static str, Node)>),
    /// An object with a line for each key.
    Block(Vec<(&'static str, Node)>),
}

/// The form of the text that it is written into.
#[derive(Debug, Clone, Copy)]
pub struct Style<'s> {
    pub unit: &'s str,
    /// The end of a line; `None`: all in one line.
    pub newline: Option<&'s str>,
}

impl Node {
    pub fn value(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Number(number) => (*number).into(),
            Self::Row(items) | Self::Column(items) => items.iter().map(Self::value).collect(),
            Self::Line(pairs) | Self::Block(pairs) => {
                pairs.iter().map(|(key, node)| ((*key).to_owned(), node.value())).collect::<Map<_, _>>().into()
            }
        }
    }

    /// JSON; `indent` is that of the line that it begins in.
    pub fn json(&self, style: Style<'_>, indent: &str) -> String {
        let inner = format!("{indent}{}", style.unit);
        let pair = |(key, node): &(&str, Node), indent: &str| format!("{}: {}", quoted(key), node.json(style, indent));
        match self {
            Self::Text(text) => quoted(text),
            Self::Number(number) => number.to_string(),
            Self::Row(items) => format!("[{}]", joined(items, |node| node.json(style, indent), ", ")),
            Self::Line(pairs) => format!("{{ {} }}", joined(pairs, |pair_| pair(pair_, indent), ", ")),
            Self::Column(items) => in_lines(style, indent, ["[", "]"], items, |node| node.json(style, &inner)),
            Self::Block(pairs) => in_lines(style, indent, ["{", "}"], pairs, |pair_| pair(pair_, &inner)),
        }
    }

    pub fn toml(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Number(number) => number.to_string(),
            Self::Row(items) | Self::Column(items) => format!("[{}]", joined(items, Self::toml, ", ")),
            Self::Line(pairs) | Self::Block(pairs) => {
                format!("{{ {} }}", joined(pairs, |(key, node)| format!("{key} = {}", node.toml()), ", "))
            }
        }
    }
}

pub fn whole(node: &Node) -> String {
    node.json(Style { unit: "  ", newline: Some("\n") }, "") + "\n"
}

/// A string as JSON and as a basic string of TOML: paths have nothing that they write differently but DEL, which is escaped.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn joined<T>(items: &[T], text: impl Fn(&T) -> String, between: &str) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(between)
}

fn in_lines<T>(style: Style<'_>, indent: &str, [open, close]: [&str; 2], items: &[T], text: impl Fn(&T) -> String) -> String {
    match style.newline {
        Some(nl) => format!(
            "{open}{nl}{indent}{}{}{nl}{indent}{close}",
            style.unit,
            joined(items, text, &format!(",{nl}{indent}{}", style.unit))
        ),
        None if open == "[" => format!("[{}]", joined(items, text, ", ")),
        None => format!("{open} {} {close}", joined(items, text, ", ")),
    }
}
