//! The table of tools, in the order in which they are listed.

use serde_json::{Map, Value, json};

use super::fields::field;
use super::fields::needed;
use super::fields::{Field, Kind};
use super::schema;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only looks.
    Looks,
    /// It changes what is held, or adds to the store: nothing real.
    Holds,
    /// It changes real files. A person decides.
    Decides,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    HoldRun,
    Status,
    Diff,
    Steps,
    Rewind,
    SnapshotCreate,
    SnapshotList,
    SnapshotDiff,
    Turns,
    Log,
    Commit,
    Rollback,
    Redo,
    SnapshotRestore,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Tool {
    pub is: Name,
    pub name: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    pub effect: Effect,
    pub fields: &'static [Field],
    /// The documents that it may give: [`schema::of_results`].
    pub results: &'static [(&'static str, &'static str)],
}

const SESSION: Field = field("session", Kind::Word, "Id, name or 'last'; else the last session of the project");
const PATHS: Field = field("paths", Kind::Paths, "Only these paths, and what lies under them");
const CURSOR: Field = field("cursor", Kind::Text, "For more: 'next' of the result before, with the same arguments");
const OF_SNAPSHOTS: Field = field("dir", Kind::Path, "The directory or file that the snapshots are of; else the project");
const DECIDED: Field = needed("session", Kind::Word, "Id, name or 'last'");

/// The keys that are added to the document of a run.
const OUTPUT: &str = r#"{"output": {"stdout": "…", "stdout_bytes": 12, "stderr": "…", "stderr_bytes": 0, "cut": false}, "notes": ["…"], "more?": {"notes?": 30}, "timed_out": false, "session_name": "mcp-4f2a"}"#;
/// The part of a patch that is added to a page of a difference.
const PATCH: &str = r#"{"patch?": {"line": 0, "lines": ["…"], "next?": "p20"}}"#;
/// A further part of a patch, by itself.
const REST_OF_PATCH: &str = r#"{"patch": {"line": 20, "lines": ["…"], "next?": "p40"}}"#;
const PAGE: &str = r#"{"total": 26, "next?": "b1946ac92492"}"#;

pub const TOOLS: [Tool; 14] = [
    Tool {
        is: Name::HoldRun,
        name: "hold_run",
        title: "Run a command, its file changes held",
        about: "Run a command as a step of a session. All that it writes is held: it sees its changes, the real files stay as they are. \
                A person commits them later, or nobody does. Give command or shell. The result has the last 20 lines of output.",
        effect: Effect::Holds,
        fields: &[
            field("command", Kind::Texts, "The program and its arguments"),
            field("shell", Kind::Text, "Instead: a line for /bin/sh"),
            field(
                "session",
                Kind::Word,
                "Go on in the pending session of this name or id; else one of this server's own in each project",
            ),
            field("cwd", Kind::Path, "The working directory; else the server's"),
            field("timeout", Kind::Count, "Ask it to end after so many seconds"),
        ],
        results: &[("run result", OUTPUT)],
    },
    Tool {
        is: Name::Status,
        name: "status",
        title: "How things stand",
        about: "How things stand in recant's store: sessions by status, what is interrupted, unconfirmed, running or damaged.",
        effect: Effect::Looks,
        fields: &[CURSOR],
        // Inside a held agent's run it is of what that run holds.
        results: &[("status --brief", "{}"), ("diff --brief", "{}")],
    },
    Tool {
        is: Name::Diff,
        name: "diff",
        title: "What a session changes",
        about: "What a session holds or has changed: paths with counts of lines, then the first 20 lines of the patch. patch.next as \
                cursor gives more of the patch, next more of the paths.",
        effect: Effect::Looks,
        fields: &[
            SESSION,
            PATHS,
            field("step", Kind::Count, "Only what this step changed"),
            field("since", Kind::Count, "Only what came after this step; 0 is the tree as it was"),
            CURSOR,
        ],
        results: &[("diff --brief", PATCH), ("diff --brief of states", PATCH), ("", REST_OF_PATCH)],
    },
    Tool {
        is: Name::Steps,
        name: "steps",
        title: "The steps of a session",
        about: "The steps of a session, the newest first: which command changed how much, and at which step the session stands (head).",
        effect: Effect::Looks,
        fields: &[SESSION, CURSOR],
        results: &[("steps --brief", "{}")],
    },
    Tool {
        is: Name::Rewind,
        name: "rewind",
        title: "Go to a step of a session",
        about: "Make a session that is held stand at another of its steps, earlier or later, and go forth again. Of more than 200 \
                steps (steps.keep) the oldest are merged. Real files do not change.",
        effect: Effect::Holds,
        fields: &[
            needed("session", Kind::Word, "Id, name or 'last'"),
            needed("step", Kind::Count, "The number of the step; 0 is the tree as it was"),
        ],
        results: &[("rewind", "{}")],
    },
    Tool {
        is: Name::SnapshotCreate,
        name: "snapshot_create",
        title: "Take a snapshot",
        about: "Take a numbered copy of a directory, before you change it. It can be compared with later, and a person can restore it.",
        effect: Effect::Holds,
        fields: &[
            field("dir", Kind::Path, "The directory or file; else the project"),
            field("message", Kind::Text, "Its purpose"),
            field("label", Kind::Text, "A word to name it by: letters, digits, '.', '_', '-', a letter first"),
        ],
        results: &[("snapshot create", r#"{"more?": {"unread?": 12}}"#)],
    },
    Tool {
        is: Name::SnapshotList,
        name: "snapshot_list",
        title: "The snapshots of a directory",
        about: "The snapshots of a directory, the newest first.",
        effect: Effect::Looks,
        fields: &[OF_SNAPSHOTS, CURSOR],
        results: &[("snapshot list", PAGE)],
    },
    Tool {
        is: Name::SnapshotDiff,
        name: "snapshot_diff",
        title: "What changed since a snapshot",
        about: "What has changed on the real files since a snapshot, or between two: paths with counts of lines, then the first 20 lines of \
                the patch. patch.next as cursor gives more of the patch, next more of the paths.",
        effect: Effect::Looks,
        fields: &[
            needed("snapshot", Kind::Word, "A number, a label, or 'last'"),
            field("other", Kind::Word, "Another one to compare with; else the directory as it is now"),
            OF_SNAPSHOTS,
            PATHS,
            CURSOR,
        ],
        results: &[
            ("snapshot diff", r#"{"total": 26, "next?": "b1946ac92492", "patch?": {"line": 0, "lines": ["…"], "next?": "p20"}}"#),
            ("", REST_OF_PATCH),
        ],
    },
    Tool {
        is: Name::Turns,
        name: "turns",
        title: "The turns of agents",
        about: "The turns of agents in this project, as their hooks told them, the newest first: prompt, how many files were written.",
        effect: Effect::Looks,
        fields: &[field("agent", Kind::Text, "Turns of one agent alone, by the name of its program"), CURSOR],
        results: &[("agent turns --brief", "{}")],
    },
    Tool {
        is: Name::Log,
        name: "log",
        title: "What was done",
        about: "What was done: commits, rollbacks, restores. With paths: what changed these, and the command that takes each back.",
        effect: Effect::Looks,
        fields: &[
            field("session", Kind::Word, "Only what was done with this session"),
            field("paths", Kind::Paths, "What changed these paths"),
            CURSOR,
        ],
        results: &[("log", PAGE), ("log PATH", PAGE)],
    },
    Tool {
        is: Name::Commit,
        name: "commit",
        title: "Make held changes real",
        about: "Make the changes of a session real. A person decides: the answer is the command for the person to type, and what \
                it would do.",
        effect: Effect::Decides,
        fields: &[DECIDED, PATHS],
        results: &[],
    },
    Tool {
        is: Name::Rollback,
        name: "rollback",
        title: "Take back what was committed",
        about: "Take back what a session has changed on the real files. A person decides, as for commit.",
        effect: Effect::Decides,
        fields: &[DECIDED, PATHS],
        results: &[],
    },
    Tool {
        is: Name::Redo,
        name: "redo",
        title: "Commit again what was rolled back",
        about: "Commit again what was rolled back. A person decides, as for commit.",
        effect: Effect::Decides,
        fields: &[DECIDED, PATHS],
        results: &[],
    },
    Tool {
        is: Name::SnapshotRestore,
        name: "snapshot_restore",
        title: "Make a directory as it was",
        about: "Make a directory as it was in a snapshot. A person decides, as for commit.",
        effect: Effect::Decides,
        fields: &[needed("snapshot", Kind::Word, "A number, a label, or 'last'"), OF_SNAPSHOTS, PATHS],
        results: &[],
    },
];

pub fn find(name: &str) -> Option<&'static Tool> {
    const LIST: &[Tool] = &TOOLS;
    LIST.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// The tool as `tools/list` has it.
    pub fn listed(&self) -> Value {
        let (looks, decides) = (self.effect == Effect::Looks, self.effect == Effect::Decides);
        let mut tool = json!({
            "name": self.name,
            "title": self.title,
            "description": self.about,
            "inputSchema": schema::of_arguments(self.fields),
            "outputSchema": schema::of_results(self.results),
            "annotations": {
                "title": self.title,
                "readOnlyHint": looks,
                "destructiveHint": decides,
                "idempotentHint": looks || self.is == Name::Rewind,
                // A command may do anything that a file is no record of.
                "openWorldHint": self.is == Name::HoldRun,
            },
        });
        if decides {
            // Claude Code asks its user at each call then, whatever rules and hooks say.
            tool["_meta"] = json!({ "anthropic/requiresUserInteraction": true });
        }
        tool
    }

    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// They do not fit; why, in words by which a model can mend its call.
    pub fn read(&self, arguments: &Value) -> Result<Map<String, Value>, String> {
        let given = match arguments {
            Value::Null => Map::new(),
            Value::Object(given) => given.clone(),
            _ => return Err("arguments: an object is wanted".into()),
        };
        for name in given.keys() {
            if !self.fields.iter().any(|field| field.name == name) {
                let known: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
                return Err(format!("{name:?} is no argument of {}: it takes {}", self.name, known.join(", ")));
            }
        }
        let mut read = Map::new();
        for field in self.fields {
            match given.get(field.name) {
                None | Some(Value::Null) if field.required => return Err(format!("{}: it has to be given", field.name)),
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
            (json!({ "session": "k3fa", "step": 2, "x": null }), Some("\"x\" is no argument of rewind: it takes session, step")),
            (json!({ "session": "k3fa" }), Some("step: it has to be given")),
            (json!({ "session": "k3fa", "step": null }), Some("step: it has to be given")),
            (json!({ "session": "k3fa", "step": -1 }), Some("step: a whole number from 0 is wanted")),
            (json!({ "session": "k3fa", "step": "2" }), Some("step: a whole number from 0 is wanted")),
            (json!({ "session": "--store=/x", "step": 2 }), Some("session: it begins with '-'")),
            (json!({ "session": "", "step": 2 }), Some("session: it is empty")),
            (json!({ "session": 7, "step": 2 }), Some("session: text is wanted")),
            (json!({ "session": "a\0b", "step": 2 }), Some("session: it holds a NUL byte")),
            (json!([]), Some("arguments: an object is wanted")),
        ] {
            assert_eq!(rewind.read(&arguments).err().as_deref(), want, "{arguments}");
        }
        let run = find("hold_run").unwrap();
        assert_eq!(run.read(&json!({ "command": [] })), Err("command: the list is empty".into()));
        assert_eq!(run.read(&json!({ "command": "ls" })), Err("command: a list of texts is wanted".into()));
        assert!(run.read(&json!({ "command": ["printf", ""] })).is_ok());
        assert!(find("status").unwrap().read(&Value::Null).is_ok());
    }

    #[test]
    fn each_tool_has_its_own_name_and_only_a_persons_are_destructive() {
        let mut names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
        for tool in &TOOLS {
            let listed = tool.listed();
            let decides = tool.effect == Effect::Decides;
            assert_eq!(listed["annotations"]["destructiveHint"], decides, "{}", tool.name);
            assert_eq!(listed["_meta"]["anthropic/requiresUserInteraction"] == true, decides, "{}", tool.name);
        }
    }
}
