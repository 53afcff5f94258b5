//! Events: what an agent's hook tells on its standard input. One reader for all agents: names of events and fields that are unknown are
//! accepted, and mean nothing.

use std::path::PathBuf;

use serde_json::Value;

use super::facts::Moment;
use super::known::Agent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name as the agent has it; empty if it has none.
    pub name: String,
    pub session: String,
    /// The agent's own name for the turn, if it has one.
    pub turn: Option<String>,
    /// True if a subagent tells it: it is a part of the turn of the session, whatever that is by then.
    pub is_subagents: bool,
    pub cwd: Option<PathBuf>,
    pub model: Option<String>,
    pub what: What,
}

/// The meaning of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A session begins, or goes on.
    SessionStart,
    /// A turn begins with this prompt.
    Prompt(String),
    /// A tool is about to be used.
    Before(Tool),
    /// A tool was used, or failed.
    After {
        tool: Tool,
        /// The time that it took, in ms, without that in which a person was asked.
        took: Option<u64>,
        /// The files that a command has changed, as far as the agent tells them: Claude Code from 2.1.269 on.
        changed: Vec<PathBuf>,
    },
    SubagentEnd,
    TurnEnd,
    SessionEnd,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub call: Option<String>,
    pub effect: Effect,
}

/// The effect of a tool on files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It only reads.
    None,
    /// It writes to these paths alone, as the agent names them.
    Paths(Vec<PathBuf>),
    /// It may write anywhere.
    Any,
}

impl Event {
    /// Reads an event.
    ///
    /// # Errors
    /// The text is no JSON object.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let value = serde_json::from_slice(text).or_else(|_| serde_json::from_str(&mended(text)));
        let value: Value = value.map_err(|error| error.to_string())?;
        let Value::Object(_) = value else { return Err("it is not a JSON object".into()) };
        let one = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_str()).map(str::to_owned);
        let name = one(&["hook_event_name", "hookEventName", "hookName", "event"]).unwrap_or_default();
        let is_subagents = one(&["agent_id", "agentId", "subagent"]).is_some();
        // A subagent of Copilot CLI has a session of its own.
        let parent = one(&["parent_agent_id", "parentAgentId"]);
        Ok(Self {
            is_subagents,
            session: parent.or_else(|| one(&["session_id", "sessionId", "session", "conversation_id"])).unwrap_or_default(),
            turn: one(&["prompt_id", "turn_id", "generation_id", "turn"]),
            cwd: one(&["cwd", "working_dir", "workingDirectory"]).map(PathBuf::from).filter(|cwd| cwd.is_absolute()),
            model: one(&["model"]).or_else(|| Some(value.get("model")?.get("id")?.as_str()?.to_owned())),
            what: match meaning(&name, &value) {
                What::Prompt(_) | What::SessionStart | What::SessionEnd if is_subagents => What::Other,
                // Claude Code says so that a subagent has ended: nobody has typed it.
                What::Prompt(prompt) if prompt.starts_with("<task-notification>") => What::Other,
                What::TurnEnd if is_subagents => What::SubagentEnd,
                what => what,
            },
            name,
        })
    }
}

/// JSON whose text was cut within a character: bytes that are no UTF-8, and halves of a pair of `\\u` escapes, become U+FFFD.
fn mended(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let half = |at: &str| at.strip_prefix("\\u").and_then(|hex| u16::from_str_radix(hex.get(..4)?, 16).ok());
    let (mut whole, mut rest) = (String::with_capacity(text.len()), &*text);
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at..];
        let (piece, length) = match half(escape) {
            Some(0xd800..=0xdbff) if matches!(escape.get(6..).and_then(half), Some(0xdc00..=0xdfff)) => (&escape[..12], 12),
            Some(0xd800..=0xdfff) => ("\\ufffd", 6),
            Some(_) => (&escape[..6], 6),
            None => {
                let length = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
                (&escape[..length], length)
            }
        };
        whole.push_str(&rest[..at]);
        whole.push_str(piece);
        rest = &escape[length..];
    }
    whole.push_str(rest);
    whole
}

/// The meaning of an event by its name, whichever agent has that; without a name, by the fields that it has.
fn meaning(name: &str, value: &Value) -> What {
    let has = |key: &str| value.get(key).is_some();
    let moment = match () {
        () if !name.is_empty() => known(name),
        () if has("toolName") && (has("toolResult") || has("error")) => Moment::AfterTool,
        () if has("toolName") => Moment::BeforeTool,
        () if has("prompt") => Moment::Prompt,
        () if has("stopReason") => Moment::TurnEnd,
        () if has("reason") => Moment::SessionEnd,
        () if has("source") => Moment::SessionStart,
        () => Moment::Other,
    };
    match moment {
        Moment::SessionStart => What::SessionStart,
        Moment::Prompt => What::Prompt(prompt(value)),
        Moment::BeforeTool => What::Before(tool(value)),
        Moment::AfterTool => after(value),
        Moment::SubagentEnd => What::SubagentEnd,
        Moment::TurnEnd => What::TurnEnd,
        Moment::SessionEnd => What::SessionEnd,
        Moment::Other => What::Other,
    }
}

/// The meaning of a name, in whatever case and with whatever signs between.
fn known(name: &str) -> Moment {
    let plain = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let asked = plain(name);
    let events = Agent::ALL.iter().flat_map(|agent| agent.facts().events);
    events.into_iter().find(|event| plain(event.name) == asked).map_or(Moment::Other, |event| event.moment)
}

/// The prompt. opencode has it in quotes if it came from its command line. Gemini CLI, without a terminal, puts before it what hooks had told the
/// agent at its start.
fn prompt(value: &Value) -> String {
    let text = value.get("prompt").and_then(Value::as_str).unwrap_or_default();
    let told = text.strip_prefix("<hook_context>").and_then(|text| text.split_once("</hook_context>"));
    let text = told.map_or(text, |(_, typed)| typed.trim_start());
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_owned()
}

fn after(value: &Value) -> What {
    let changed = value.pointer("/tool_response/bashEditDiff/changedFiles").and_then(Value::as_array);
    let changed = changed.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect();
    What::After { tool: tool(value), took: value.get("duration_ms").and_then(Value::as_u64), changed }
}

/// Tools of no agent's documentation that change no file of a project. Whatever is not known may write.
const READING: [&str; 4] = ["cat", "search", "fetch", "subagent"];

/// Tools of no agent's documentation that write to the paths that they name.
const WRITING: [&str; 2] = ["create_file", "str_replace"];

fn is_reading(name: &str) -> bool {
    READING.contains(&name) || Agent::ALL.iter().any(|agent| agent.reading.split(' ').any(|word| word == name))
}

fn is_writing(name: &str) -> bool {
    WRITING.contains(&name) || Agent::ALL.iter().any(|agent| agent.writing.split(' ').any(|word| word == name))
}

/// The fields in which tools name a path.
const PATHS: &[&str] = &["file_path", "filePath", "notebook_path", "path", "absolute_path", "filename"];

fn tool(value: &Value) -> Tool {
    let one = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)).cloned();
    let text = |keys: &[&str]| one(keys).and_then(|value| value.as_str().map(str::to_owned));
    let name = text(&["tool_name", "toolName", "tool"]).unwrap_or_default();
    let input = one(&["tool_input", "toolArgs", "args", "input"]).unwrap_or_default();
    // Copilot CLI has it as text.
    let input = match &input {
        Value::String(text) => serde_json::from_str(text).unwrap_or(input),
        _ => input,
    };
    let effect = effect(&name.to_ascii_lowercase(), &input);
    Tool { effect, call: text(&["tool_use_id", "toolUseId", "call", "callId", "tool_call_id"]), name }
}

fn effect(name: &str, input: &Value) -> Effect {
    if is_reading(name) {
        return Effect::None;
    }
    if !is_writing(name) {
        return Effect::Any;
    }
    let named = PATHS.iter().find_map(|key| input.get(key)?.as_str()).map(PathBuf::from);
    let patch = || {
        let text = ["command", "input", "patch", "patchText"].iter().find_map(|key| input.get(key)?.as_str()).or(input.as_str());
        text.map(patched).unwrap_or_default()
    };
    let paths = named.map_or_else(patch, |path| vec![path]);
    if paths.is_empty() { Effect::Any } else { Effect::Paths(paths) }
}

/// The paths that a patch of Codex CLI names. Source: `codex-rs/apply-patch`, its grammar of the envelope.
fn patched(text: &str) -> Vec<PathBuf> {
    let heads = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let path = |line: &str| heads.iter().find_map(|head| line.strip_prefix(head)).map(|path| PathBuf::from(path.trim_end()));
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Event {
        Event::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn tools_that_name_their_paths_are_told_from_those_that_may_write_anywhere() {
        for (tool, input, want) in [
            ("Read", r#"{"file_path":"/p/a"}"#, Effect::None),
            ("Task", r#"{"prompt":"x"}"#, Effect::None),
            ("Write", r#"{"file_path":"/p/a","content":"x"}"#, Effect::Paths(vec!["/p/a".into()])),
            ("NotebookEdit", r#"{"notebook_path":"/p/n.ipynb"}"#, Effect::Paths(vec!["/p/n.ipynb".into()])),
            ("Bash", r#"{"command":"make"}"#, Effect::Any),
            ("mcp__files__move", r#"{"path":"a"}"#, Effect::Any),
            ("Write", "{}", Effect::Any),
            (
                "apply_patch",
                r#"{"command":"*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n-x\n+*** Add File: no\n*** Add File: c\n+y\n*** End Patch\n"}"#,
                Effect::Paths(vec!["a.rs".into(), "b.rs".into(), "c".into()]),
            ),
        ] {
            let text =
                format!(r#"{{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"{tool}","tool_input":{input}}}"#);
            let What::Before(found) = read(&text).what else { panic!("{text}") };
            assert_eq!(found.effect, want, "{text}");
        }
    }

    #[test]
    fn text_that_was_cut_within_a_character_is_read_all_the_same() {
        let cut = |text: &[u8]| {
            let all = [br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":""#, text, b"\"}"].concat();
            Event::read(&all).unwrap().what
        };
        for (text, prompt) in [
            (&br"a \ud83d b"[..], "a \u{fffd} b"),
            (br"a \ud83d\ude00 \udc00", "a \u{1f600} \u{fffd}"),
            (br"\\ud83d \ud83d", "\\ud83d \u{fffd}"),
            (b"caf\xe9", "caf\u{fffd}"),
        ] {
            assert_eq!(cut(text), What::Prompt(prompt.into()));
        }
    }

    #[test]
    fn a_prompt_is_what_was_typed() {
        for (text, typed) in [
            ("do it", "do it"),
            (r#"\"do it\""#, "do it"),
            (r"<hook_context>recant: x\n&lt;y</hook_context>\n\ndo it", "do it"),
            ("<hook_context>do it", "<hook_context>do it"),
        ] {
            let event = read(&format!(r#"{{"session_id":"s","hook_event_name":"BeforeAgent","prompt":"{text}"}}"#));
            assert_eq!(event.what, What::Prompt(typed.into()), "{text}");
        }
    }

    #[test]
    fn an_event_without_a_name_is_told_by_its_fields() {
        let copilot = read(r#"{"sessionId":"s","cwd":"/p","toolName":"bash","toolArgs":"{\"command\":\"make\"}"}"#);
        assert!(matches!(copilot.what, What::Before(Tool { effect: Effect::Any, .. })) && copilot.session == "s");
        assert_eq!(read(r#"{"sessionId":"s","prompt":"do it"}"#).what, What::Prompt("do it".into()));
        assert_eq!(read(r#"{"sessionId":"s","hook_event_name":"NoSuchEvent","prompt":"x"}"#).what, What::Other);
        assert!(Event::read(b"[]").is_err() && Event::read(b"{").is_err());
    }
}
