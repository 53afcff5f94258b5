//! The hooks of recant as values.

use serde_json::Value;

use super::super::facts::{Agent, Form, Hook};
use super::command::Command;
use super::render::Node;

/// Each hooked event with what stands for recant in its list.
pub fn entries(agent: Agent, form: Form, command: &Command) -> Vec<(&'static str, Node)> {
    let events = agent.facts().events.iter();
    events.filter_map(|event| Some((event.name, entry(agent, form, event.hook.as_ref()?, command)))).collect()
}

/// The entry of recant in the list of an event.
fn entry(agent: Agent, form: Form, of: &Hook, command: &Command) -> Node {
    let text = |text: &str| Node::Text(text.to_owned());
    let dialect = agent.settings.dialect;
    let mut hook = Vec::new();
    if dialect.named {
        hook.push(("name", text("recant")));
    }
    hook.push(("type", text("command")));
    match command.words() {
        _ if form == Form::Flat => hook.push(("bash", Node::Text(command.line()))),
        Some((program, args)) => {
            hook.push(("command", text(program)));
            hook.push(("args", Node::Row(args.map(text).to_vec())));
        }
        None => hook.push(("command", Node::Text(command.line()))),
    }
    let (key, in_a_second) = dialect.timeout;
    hook.push((key, Node::Number(of.timeout * in_a_second)));
    let hook = Node::Line(hook);
    if form == Form::Flat {
        return hook;
    }
    let matcher = of.matches_all.then(|| ("matcher", text("*")));
    Node::Line(matcher.into_iter().chain([("hooks", Node::Row(vec![hook]))]).collect())
}

pub fn hooks(agent: Agent, form: Form, command: &Command) -> Node {
    Node::Block(entries(agent, form, command).into_iter().map(|(name, entry)| (name, Node::Column(vec![entry]))).collect())
}

/// A file with the hooks alone.
pub fn document(agent: Agent, form: Form, command: &Command) -> Node {
    let version = (form == Form::Flat).then_some(("version", Node::Number(1)));
    Node::Block(version.into_iter().chain([("hooks", hooks(agent, form, command))]).collect())
}

/// The hooks in an entry of an event's list, and which of them are recant's, by the program that they call.
pub fn ours(agent: Agent, form: Form, entry: &Value) -> Vec<Option<String>> {
    match form {
        Form::Flat => vec![Command::called(agent, entry)],
        _ => {
            let hooks = entry.get("hooks").and_then(Value::as_array);
            hooks.into_iter().flatten().map(|hook| Command::called(agent, hook)).collect()
        }
    }
}

/// True if these are the entries of an installation: each event of the agent once, as it is written. `found`: entries that hold a hook of
/// recant, with their events.
pub fn are_all(agent: Agent, form: Form, command: &Command, found: &[(String, Value)]) -> bool {
    let wanted = entries(agent, form, command);
    found.len() == wanted.len()
        && wanted.iter().all(|(event, node)| found.iter().any(|(name, value)| name == event && *value == node.value()))
}
