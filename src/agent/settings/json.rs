//! Hooks in JSON, with or without comments: `{"hooks": {EVENT: [ENTRY, …]}}`.
//!
//! A parser tells where values lie; what is put in and cut out follows from these places and the white space around them.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;

use super::super::facts::{Agent, Form};
use super::command::Command;
use super::edit::{Edit, Found, Wrong, cut, line_of, newline};
use super::groups::{are_all, document, entries, hooks, ours};
use super::jsonc::{json, parse, without_mark};
use super::render::{Node, Style, quoted, whole};

const HOOKS: &str = "hooks";
const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// The value of a key.
///
/// # Errors
/// The key is there twice: programs disagree on which one counts.
fn value_of<'o, 't>(text: &str, object: &'o Object<'t>, key: &str) -> Result<Option<&'o ObjectProp<'t>>, Wrong> {
    let mut props = object.properties.iter().filter(|prop| prop.name.as_str() == key);
    let (first, second) = (props.next(), props.next());
    match second {
        Some(second) => Err(Wrong::at(text, second.range.start, format!("the key {} is there twice", quoted(key)))),
        None => Ok(first),
    }
}

/// The object of hooks, with the place of its key and value.
fn hooks_of<'o, 't>(text: &str, root: &'o Object<'t>) -> Result<Option<(Range<usize>, &'o Object<'t>)>, Wrong> {
    match value_of(text, root, HOOKS)? {
        None => Ok(None),
        Some(prop) => match &prop.value {
            Value::Object(object) => Ok(Some((bytes(prop), object))),
            other => Err(Wrong::at(text, other.start(), "\"hooks\" is not an object")),
        },
    }
}

fn bytes(of: &impl Ranged) -> Range<usize> {
    of.start()..of.end()
}

/// The events whose value is a list, each with its entries.
fn lists<'o, 't>(hooks: &'o Object<'t>) -> impl Iterator<Item = (&'o ObjectProp<'t>, &'o Array<'t>)> {
    hooks.properties.iter().filter_map(|prop| Some((prop, prop.value.as_array()?)))
}

/// The places of the hooks in an entry: itself, where it is one.
fn places<'o, 't>(form: Form, entry: &'o Value<'t>) -> Option<&'o Array<'t>> {
    if form == Form::Flat { None } else { entry.as_object()?.get_array(HOOKS) }
}

pub fn find(agent: Agent, form: Form, text: &str) -> Result<Vec<Found>, Wrong> {
    let (_, text) = without_mark(text);
    let Some(root) = parse(text)? else { return Ok(Vec::new()) };
    let Some((_, hooks)) = hooks_of(text, &root)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for (prop, list) in lists(hooks) {
        for entry in &list.elements {
            for (i, program) in ours(agent, form, &json(entry)).into_iter().enumerate() {
                let Some(program) = program else { continue };
                let at = places(form, entry).and_then(|hooks| hooks.elements.get(i)).map_or(entry.start(), Ranged::start);
                found.push(Found { event: prop.name.as_str().to_owned(), program, line: line_of(text, at) });
            }
        }
    }
    Ok(found)
}

pub fn is_installed(agent: Agent, form: Form, text: &str, command: &Command) -> Result<bool, Wrong> {
    let (_, text) = without_mark(text);
    let Some(root) = parse(text)? else { return Ok(false) };
    let Some((_, hooks)) = hooks_of(text, &root)? else { return Ok(false) };
    let of_recant = lists(hooks).flat_map(|(prop, list)| {
        let event = prop.name.as_str();
        let entries = list.elements.iter().map(json).filter(|entry| ours(agent, form, entry).iter().any(Option::is_some));
        entries.map(|entry| (event.to_owned(), entry)).collect::<Vec<_>>()
    });
    Ok(are_all(agent, form, command, &of_recant.collect::<Vec<_>>()))
}

pub fn add(agent: Agent, form: Form, text: Option<&str>, command: &Command) -> Result<Edit, Wrong> {
    let Some(text) = text else { return Ok(Edit::whole(whole(&document(agent, form, command)))) };
    let (mark, text) = without_mark(text);
    let Some(root) = parse(text)? else {
        let nl = newline(text);
        let before = if text.is_empty() || text.ends_with('\n') { "" } else { nl };
        let document = whole(&document(agent, form, command)).replace('\n', nl);
        return Ok(Edit::of(text, vec![(text.len(), format!("{before}{document}"))]).behind(mark));
    };
    let mut puts = Puts { text, unit: unit(text, &root), puts: Vec::new() };
    match hooks_of(text, &root)? {
        None => puts.put_into_object(&root, vec![(HOOKS, hooks(agent, form, command))]),
        Some((_, there)) => {
            let mut missing = Vec::new();
            for (event, entry) in entries(agent, form, command) {
                match value_of(text, there, event)?.map(|prop| &prop.value) {
                    None => missing.push((event, Node::Column(vec![entry]))),
                    Some(Value::Array(list)) => puts.put_into_list(list, entry),
                    Some(other) => return Err(Wrong::at(text, other.start(), format!("{} is not a list", quoted(event)))),
                }
            }
            puts.put_into_object(there, missing);
        }
    }
    Ok(Edit::of(text, puts.puts).behind(mark))
}

/// The indentation of a level: that of the document's first key.
fn unit(text: &str, root: &Object<'_>) -> String {
    let first = root.properties.first().and_then(|prop| indent_at(text, prop.start()));
    first.filter(|indent| !indent.is_empty()).unwrap_or("  ").to_owned()
}

/// The white space in front of an offset, if nothing else stands before it in its line, and that is not the first.
fn indent_at(text: &str, at: usize) -> Option<&str> {
    let line = &text[text[..at].rfind('\n')? + 1..at];
    line.chars().all(|c| c == ' ' || c == '\t').then_some(line)
}

/// The white space at the start of the line of an offset.
fn indent_of_line(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |at| at + 1)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Texts to be put into another one.
struct Puts<'t> {
    text: &'t str,
    unit: String,
    puts: Vec<(usize, String)>,
}

impl Puts<'_> {
    fn put_into_object(&mut self, object: &Object<'_>, pairs: Vec<(&'static str, Node)>) {
        let elements: Vec<_> = object.properties.iter().map(bytes).collect();
        self.put_into_container(bytes(object), &elements, pairs.into_iter().map(|(key, node)| (Some(key), node)).collect());
    }

    fn put_into_list(&mut self, list: &Array<'_>, entry: Node) {
        let elements: Vec<_> = list.elements.iter().map(bytes).collect();
        self.put_into_container(bytes(list), &elements, vec![(None, entry)]);
    }

    /// Puts nodes behind the last element of a container. They come after its comments, and get a comma behind them where it has one.
    fn put_into_container(&mut self, container: Range<usize>, elements: &[Range<usize>], nodes: Vec<(Option<&str>, Node)>) {
        if nodes.is_empty() {
            return;
        }
        let text = self.text;
        let (open, close) = (container.start + 1, container.end - 1);
        let end = open + text[open..close].trim_end_matches(SPACE).len();
        let nl = newline(text);
        let in_lines = elements.is_empty() || text[container.clone()].contains('\n');
        let below = || format!("{}{}", indent_of_line(text, container.start), self.unit);
        let indent = match elements.last() {
            Some(last) => indent_at(text, last.start).map_or_else(below, str::to_owned),
            None => below(),
        };
        let style = Style { unit: &self.unit, newline: in_lines.then_some(nl) };
        let lead = if in_lines { format!("{nl}{indent}") } else { " ".to_owned() };
        let one = |(key, node): &(Option<&str>, Node)| {
            let key = key.map(|key| format!("{}: ", quoted(key))).unwrap_or_default();
            format!("{lead}{key}{}", node.json(style, &indent))
        };
        let mut put = nodes.iter().map(one).collect::<Vec<_>>().join(",");
        if let Some(last) = elements.last() {
            match comma_after(text, last.end, close) {
                Some(_) => put.push(','),
                None => self.puts.push((last.end, ",".into())),
            }
        } else if !text[end..close].contains('\n') {
            put.push_str(nl);
            put.push_str(indent_of_line(text, container.start));
        }
        self.puts.push((end, put));
    }
}

/// The place of a comma behind an element, before `end`: comments may stand between.
fn comma_after(text: &str, from: usize, end: usize) -> Option<usize> {
    let mut at = from;
    while at < end {
        let rest = &text[at..end];
        if rest.starts_with(',') {
            return Some(at);
        }
        at += if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if rest.starts_with(SPACE) {
            1
        } else {
            return None;
        };
    }
    None
}

pub fn remove(agent: Agent, form: Form, text: &str) -> Result<String, Wrong> {
    let (mark, text) = without_mark(text);
    let Some(root) = parse(text)? else { return Ok(format!("{mark}{text}")) };
    let Some((place, hooks)) = hooks_of(text, &root)? else { return Ok(format!("{mark}{text}")) };
    let events = |prop: &ObjectProp<'_>| match prop.value.as_array() {
        None => Gone::Nothing,
        Some(list) => of_container(text, bytes(list), &list.elements, bytes, |entry| of_entry(agent, form, text, entry)),
    };
    let of_hooks = of_container(text, bytes(hooks), &hooks.properties, bytes, events);
    let is_hooks = |prop: &ObjectProp<'_>| bytes(prop) == place;
    let gone = of_container(text, bytes(&root), &root.properties, bytes, |prop| match is_hooks(prop) {
        true => of_hooks.clone(),
        false => Gone::Nothing,
    });
    let cuts = match gone {
        Gone::Nothing => Vec::new(),
        Gone::Parts(cuts) => cuts,
        // The document itself stays.
        Gone::All => std::iter::once(root.range.start + 1..root.range.end - 1).collect(),
    };
    let left = cut(text, cuts).ok_or_else(|| Wrong { line: 0, why: "its hooks overlap".into() })?;
    Ok(format!("{mark}{left}"))
}

/// The parts of a value that go.
#[derive(Debug, Clone)]
enum Gone {
    Nothing,
    Parts(Vec<Range<usize>>),
    All,
}

fn of_entry(agent: Agent, form: Form, text: &str, entry: &Value<'_>) -> Gone {
    let ours = ours(agent, form, &json(entry));
    match places(form, entry) {
        _ if ours.iter().all(Option::is_none) => Gone::Nothing,
        _ if ours.iter().all(Option::is_some) => Gone::All,
        None => Gone::Nothing,
        Some(hooks) => {
            let mut of_hook = ours.iter().map(|program| if program.is_some() { Gone::All } else { Gone::Nothing });
            of_container(text, bytes(hooks), &hooks.elements, bytes, |_| of_hook.next().unwrap_or(Gone::Nothing))
        }
    }
}

/// The parts of a container that go, if `of` tells it of its elements. All of it, if nothing else is in it then, not even a comment.
fn of_container<T>(
    text: &str,
    container: Range<usize>,
    elements: &[T],
    place: impl Fn(&T) -> Range<usize>,
    of: impl FnMut(&T) -> Gone,
) -> Gone {
    let gone: Vec<Gone> = elements.iter().map(of).collect();
    if gone.iter().all(|gone| matches!(gone, Gone::Nothing)) {
        return Gone::Nothing;
    }
    let close = container.end - 1;
    let mut cuts = Vec::new();
    for (i, of_one) in gone.iter().enumerate() {
        let here = place(&elements[i]);
        match of_one {
            Gone::Nothing => {}
            Gone::Parts(parts) => cuts.extend(parts.iter().cloned()),
            Gone::All => {
                let before = &text[container.start + 1..here.start];
                let lead = before.len() - before.trim_end_matches(SPACE).len();
                cuts.push(here.start - lead..here.end);
                let next = elements.get(i + 1).map_or(close, |next| place(next).start);
                if let Some(comma) = comma_after(text, here.end, next) {
                    // The first one stands right behind the bracket: the next does then.
                    let blank = text[comma + 1..].len() - text[comma + 1..].trim_start_matches(' ').len();
                    cuts.push(comma..comma + 1 + if lead == 0 { blank } else { 0 });
                } else if let Some(kept) = gone[..i].iter().rposition(|gone| !matches!(gone, Gone::All)) {
                    let kept = place(&elements[kept]);
                    cuts.extend(comma_after(text, kept.end, here.start).map(|comma| comma..comma + 1));
                }
            }
        }
    }
    let inside: Vec<_> = cuts.iter().map(|cut| cut.start - container.start - 1..cut.end - container.start - 1).collect();
    let left = cut(&text[container.start + 1..close], inside).unwrap_or_default();
    if left.trim_matches(SPACE).is_empty() { Gone::All } else { Gone::Parts(cuts) }
}
