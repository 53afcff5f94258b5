//! The command that settings call. It is constant, as agents trust a hook by its text, and drop a second one with the same text.

use serde_json::Value;

use super::super::facts::Agent;
use crate::error::shell_word;

/// The call of recant in the settings of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    agent: Agent,
    /// An absolute path; `None`: recant by its name, for settings that several people share.
    program: Option<String>,
}

impl Command {
    /// Calls recant by its path: for one user's own settings.
    pub fn of_path(agent: Agent, path: &str) -> Self {
        Self { agent, program: Some(path.to_owned()) }
    }

    /// Calls recant by its name: for settings that are shared, on machines where it may be missing.
    pub fn bare(agent: Agent) -> Self {
        Self { agent, program: None }
    }

    pub fn program(&self) -> &str {
        self.program.as_deref().unwrap_or(NAME)
    }

    /// The program and its arguments, for an agent that starts it without a shell. `None` if a shell has to: others read such
    /// settings of a project too, and know no `args`.
    pub fn words(&self) -> Option<(&str, [&'static str; 2])> {
        let program = self.program.as_deref().filter(|_| self.agent.settings.dialect.with_args)?;
        Some((program, ["hook", self.agent.word()]))
    }

    /// The line for a shell. Where recant is missing it has to do no harm: a shared file is read on other machines, and an agent may refuse
    /// every tool where a hook fails.
    pub fn line(&self) -> String {
        let call = format!("{} hook {}", shell_word(self.program().as_bytes()), self.agent.word());
        if self.program.is_none() || self.agent.settings.dialect.strict { format!("{call}{OR_NOT}") } else { call }
    }

    /// The program that a hook in an agent's settings calls, if it calls recant for this agent.
    pub fn called(agent: Agent, hook: &Value) -> Option<String> {
        let text = |key: &str| hook.get(key).and_then(Value::as_str);
        let command = text("command").or_else(|| text("bash"))?;
        let program = match hook.get("args").and_then(Value::as_array) {
            Some(args) => {
                let is_call = args.first()?.as_str()? == "hook" && args.get(1)?.as_str()? == agent.word();
                is_call.then(|| command.to_owned())?
            }
            None => of_line(agent, command)?,
        };
        (program.rsplit('/').next() == Some(NAME)).then_some(program)
    }
}

const NAME: &str = "recant";
const OR_NOT: &str = " || true";

/// The program of a shell's line that ends in `hook AGENT`.
fn of_line(agent: Agent, line: &str) -> Option<String> {
    let line = line.trim();
    let call = line.strip_suffix(OR_NOT).unwrap_or(line);
    let word = call.strip_suffix(agent.word())?.strip_suffix(" hook ")?;
    match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
        Some(quoted) => Some(quoted.replace("'\\''", "'")),
        None => (!word.contains([' ', '\'', '"', ';', '&', '|', '$'])).then(|| word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::known::Agent;
    use super::*;

    fn claude() -> Agent {
        Agent::of("claude").unwrap()
    }

    #[test]
    fn a_command_is_known_again_whatever_its_path_and_no_other_is() {
        for path in ["/usr/bin/recant", "/home/a b/it's/recant"] {
            for agent in Agent::ALL.iter().copied() {
                let command = Command::of_path(agent, path);
                assert_eq!(Command::called(agent, &json!({"command": command.line()})).as_deref(), Some(path));
            }
            let (program, args) = Command::of_path(claude(), path).words().map(|(p, a)| (p.to_owned(), a)).unwrap();
            assert_eq!(Command::called(claude(), &json!({"command": program, "args": args})).as_deref(), Some(path));
        }
        let called = |hook| Command::called(claude(), &hook);
        assert_eq!(called(json!({"command": Command::bare(claude()).line()})).as_deref(), Some("recant"));
        assert_eq!(called(json!({"bash": "recant hook claude || true"})).as_deref(), Some("recant"));
        for other in [
            "recant hook codex",
            "precant hook claude",
            "cd /x; /bin/recant hook claude",
            "recant hook claude --record f",
            "recant",
        ] {
            assert_eq!(called(json!({"command": other})), None, "{other}");
        }
        assert_eq!(called(json!({"command": "recant", "args": ["hook", "codex"]})), None);
        assert_eq!(called(json!({"command": "recant", "args": []})), None);
        assert_eq!(called(json!("recant hook claude")), None);
    }
}
