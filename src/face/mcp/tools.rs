//! The table of tools, in the order in which they are listed.

use serde_json::{Map, Value, json};

use super::fields::field;
use super::fields::needed;
use super::fields::{Field, Kind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only looks.
    Looks,
    /// It changes what is held, adds to the store, or asks for what a person decides: nothing real.
    Holds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    HoldRun,
    Sessions,
    Changes,
    Diff,
    Cat,
    Steps,
    Rewind,
    Fork,
    Discard,
    Snapshot,
    Await,
    Commit,
    Log,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    pub is: Name,
    pub name: &'static str,
    pub about: &'static str,
    pub effect: Effect,
    pub fields: &'static [Field],
}

const SESSION: Field = field("session", Kind::Word, "Id, name or 'last'");
const PATHS: Field = field("paths", Kind::Paths, "Only these and all below them");
const STEP: Field = field("step", Kind::Count, "Only what this step changed");
const SINCE: Field = field("since", Kind::Count, "Only what came after this step; 0 is the tree as it was");
const FULL: Field = field("full", Kind::Flag, "List each path, without summing up");
const CURSOR: Field =
    field("cursor", Kind::Text, "'next' of the previous answer, to go on after it; other arguments as before, or none");

pub const TOOLS: [Tool; 13] = [
    Tool {
        is: Name::HoldRun,
        name: "hold_run",
        about: "Run a shell line. What it writes to files is held: it and later commands of the session see it, the real files stay as \
                they are. Answers with the exit, what this command changed, and the last of its output. Waits for background processes: give \
                timeout.",
        effect: Effect::Holds,
        fields: &[
            field("shell", Kind::Text, "A line for /bin/sh"),
            field("session", Kind::Word, "The session to go on in; a new name begins one"),
            field("timeout", Kind::Count, "Seconds, 1 or more, until it is ended, with its background processes"),
            field("tail", Kind::Count, "Bytes of output to return of each stream; at most 16384, default 2048"),
            field(
                "cursor",
                Kind::Text,
                "Instead of shell: more output of an earlier command. NUMBER.STREAM.BYTE, from that byte on",
            ),
        ],
    },
    Tool {
        is: Name::Sessions,
        name: "sessions",
        about: "The sessions of this project, the newest first.",
        effect: Effect::Looks,
        fields: &[CURSOR],
    },
    Tool {
        is: Name::Changes,
        name: "changes",
        about: "What a session changes: paths with counts of lines; in a row together what programs made, new directories, .git. What others \
                run or obey stands first.",
        effect: Effect::Looks,
        fields: &[SESSION, PATHS, STEP, SINCE, FULL, CURSOR],
    },
    Tool {
        is: Name::Diff,
        name: "diff",
        about: "What a session changes, as a patch; named alone: what programs made, .git. Or what changed on the real files since a \
                snapshot.",
        effect: Effect::Looks,
        fields: &[
            SESSION,
            PATHS,
            STEP,
            SINCE,
            FULL,
            field("snapshot", Kind::Word, "Instead of a session: number, label or 'last'"),
            CURSOR,
        ],
    },
    Tool {
        is: Name::Cat,
        name: "cat",
        about: "The content of a path that a session changes.",
        effect: Effect::Looks,
        fields: &[
            SESSION,
            needed("path", Kind::Path, "The path"),
            field("before", Kind::Flag, "As it was before the session"),
            CURSOR,
        ],
    },
    Tool {
        is: Name::Steps,
        name: "steps",
        about: "The commands of a session that changed something, the newest first, and its current step (head).",
        effect: Effect::Looks,
        fields: &[SESSION, CURSOR],
    },
    Tool {
        is: Name::Rewind,
        name: "rewind",
        about: "Move a held session to another of its steps, earlier or later.",
        effect: Effect::Holds,
        fields: &[SESSION, needed("step", Kind::Count, "0 is the tree as it was")],
    },
    Tool {
        is: Name::Fork,
        name: "fork",
        about: "Begin a new session from a step of another one, for a second attempt.",
        effect: Effect::Holds,
        fields: &[
            SESSION,
            field("step", Kind::Count, "Default: its current step"),
            field("name", Kind::Word, "The name of the new session"),
        ],
    },
    Tool {
        is: Name::Discard,
        name: "discard",
        about: "Drop a held session, or paths of it.",
        effect: Effect::Holds,
        fields: &[SESSION, PATHS],
    },
    Tool {
        is: Name::Snapshot,
        name: "snapshot",
        about: "Take a snapshot of the real files of the project, to compare with later. A person can restore it.",
        effect: Effect::Holds,
        fields: &[field("message", Kind::Text, "A description"), field("label", Kind::Text, "A word to name it by")],
    },
    Tool {
        is: Name::Await,
        name: "await",
        about: "Wait until a person has committed or discarded what a session holds, all or a part; returns what was done, and the reason.",
        effect: Effect::Looks,
        fields: &[SESSION, field("timeout", Kind::Count, "Seconds to wait; default 50")],
    },
    Tool {
        is: Name::Commit,
        name: "commit",
        about: "Ask to commit a session. What your person's policy allows is committed at once; for the rest the answer is the command for the person to type.",
        effect: Effect::Holds,
        fields: &[SESSION, PATHS],
    },
    Tool {
        is: Name::Log,
        name: "log",
        about: "What was done: commits, rollbacks, rewinds. With paths: what changed these.",
        effect: Effect::Looks,
        fields: &[field("session", Kind::Word, "Only what was done with this one"), PATHS, CURSOR],
    },
];

pub fn find(name: &str) -> Option<&'static Tool> {
    const LIST: &[Tool] = &TOOLS;
    LIST.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// The tool as `tools/list` has it. A hint that says what is so without it is left out.
    pub fn listed(&self) -> Value {
        let hints = match self.effect {
            Effect::Looks => json!({ "readOnlyHint": true }),
            Effect::Holds => json!({ "destructiveHint": false }),
        };
        json!({
            "name": self.name,
            "description": self.about,
            "inputSchema": super::fields::schema(self.fields),
            "annotations": hints,
        })
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// They do not fit; why, in words by which a model can mend its call.
    pub fn read(&self, arguments: &Value) -> Result<Map<String, Value>, String> {
        let given = match arguments {
            Value::Null => Map::new(),
            Value::Object(given) => given.clone(),
            _ => return Err("arguments: expected an object".into()),
        };
        for name in given.keys() {
            if !self.fields.iter().any(|field| field.name == name) {
                let known: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
                return Err(format!("{name:?} is not an argument of {}: it takes {}", self.name, known.join(", ")));
            }
        }
        let mut read = Map::new();
        for field in self.fields {
            match given.get(field.name) {
                None | Some(Value::Null) if field.required => return Err(format!("{}: it is required", field.name)),
                None | Some(Value::Null) => {}
                Some(value) => {
                    field.check(value).map_err(|why| format!("{}: {why}", field.name))?;
                    read.insert(field.name.into(), value.clone());
                }
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use crate::face::mcp::tools::*;

    #[test]
    fn a_call_that_does_not_fit_is_told_why() {
        let rewind = find("rewind").unwrap();
        for (arguments, want) in [
            (json!({ "session": "k3fa", "step": 2 }), None),
            (
                json!({ "session": "k3fa", "step": 2, "x": null }),
                Some("\"x\" is not an argument of rewind: it takes session, step"),
            ),
            (json!({ "step": 2 }), None),
            (json!({ "session": "k3fa" }), Some("step: it is required")),
            (json!({ "session": "k3fa", "step": null }), Some("step: it is required")),
            (json!({ "session": "k3fa", "step": -1 }), Some("step: expected a whole number from 0")),
            (json!({ "session": "k3fa", "step": "2" }), Some("step: expected a whole number from 0")),
            (json!({ "session": "--store=/x", "step": 2 }), Some("session: it begins with '-'")),
            (json!({ "session": "", "step": 2 }), Some("session: it is empty")),
            (json!({ "session": 7, "step": 2 }), Some("session: expected text")),
            (json!({ "session": "a\0b", "step": 2 }), Some("session: it holds a NUL byte")),
            (json!([]), Some("arguments: expected an object")),
        ] {
            assert_eq!(rewind.read(&arguments).err().as_deref(), want, "{arguments}");
        }
        let diff = find("diff").unwrap();
        assert_eq!(diff.read(&json!({ "paths": [] })), Err("paths: the list is empty".into()));
        assert_eq!(diff.read(&json!({ "paths": "a" })), Err("paths: expected a list of texts".into()));
        assert_eq!(diff.read(&json!({ "paths": [""] })), Err("paths: it is empty".into()));
        let cat = find("cat").unwrap();
        assert_eq!(cat.read(&json!({ "path": "a", "before": 1 })), Err("before: expected true or false".into()));
        assert!(cat.read(&json!({ "path": "a", "before": true })).is_ok());
        assert!(find("sessions").unwrap().read(&Value::Null).is_ok());
    }

    #[test]
    fn each_tool_has_its_own_name() {
        let mut names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
    }
}
