//! The facts about an agent that its file fills in, and the types for them.

use std::ops::Deref;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::surroundings::Surroundings;
use crate::fs::AbsPath;

/// An agent that recant knows, by the facts of its file.
#[derive(Clone, Copy)]
pub struct Agent(pub(super) &'static Facts);

/// All that recant knows of an agent.
pub struct Facts {
    /// The word for it on the command line, in the store and in JSON: the name of its program.
    pub word: &'static str,
    /// Its own name.
    pub name: &'static str,
    /// Variables that it sets for the commands that it runs.
    pub variables: &'static [&'static str],
    /// The variable in which commands find the id of its session.
    pub session: Option<&'static str>,
    /// The variable in which hooks find its project.
    pub project: Option<&'static str>,
    /// Variables of agents that call its hooks beside their own.
    pub called_by: &'static [&'static str],
    /// The variable in which hooks find a file for variables of its commands.
    pub env_file: Option<&'static str>,
    pub events: &'static [Named],
    /// Tools that change no file of a project, in lower case, by its own documentation.
    pub reading: &'static str,
    /// Tools that write to the paths that they name, in lower case.
    pub writing: &'static str,
    pub settings: Settings,
    pub state: State,
    pub model: Model,
    pub answers: Answers,
    /// Reasons for which it does not call hooks that stand in its settings.
    pub stops: fn(&Check<'_>) -> Vec<String>,
    /// From when on hooks count that were added to one user's settings, or a project's; `None`: from its next start on.
    pub counts: fn(Scope) -> Option<&'static str>,
    /// The lines that tell how its conversation goes back, by its session as a word of a shell and the beginning of the prompt.
    pub back: fn(session: &str, prompt: &str) -> Vec<String>,
}

impl Facts {
    /// Nothing special: what the file of an agent begins with.
    pub const PLAIN: Self = Self {
        word: "",
        name: "",
        variables: &[],
        session: None,
        project: None,
        called_by: &[],
        env_file: None,
        events: &[],
        reading: "",
        writing: "",
        settings: Settings::PLAIN,
        state: State::PLAIN,
        model: Model::ANY,
        answers: Answers::Text,
        stops: |_| Vec::new(),
        counts: |_| None,
        back: |_, _| Vec::new(),
    };
}

/// An event, and what it means.
pub struct Named {
    pub name: &'static str,
    pub moment: Moment,
    /// The hook in its settings; `None`: a plugin tells it, or another version.
    pub hook: Option<Hook>,
}

/// How the hook of an event stands in the settings.
pub struct Hook {
    /// True if a matcher for all tools stands with it. Others know it by having none.
    pub matches_all: bool,
    /// The limit of time, in seconds.
    pub timeout: u64,
}

/// The meaning of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    SessionStart,
    Prompt,
    BeforeTool,
    AfterTool,
    SubagentEnd,
    TurnEnd,
    SessionEnd,
    Other,
}

impl Named {
    /// An event with a hook, which may take ten seconds.
    pub const fn hooked(name: &'static str, moment: Moment) -> Self {
        Self { name, moment, hook: Some(Hook { matches_all: false, timeout: 10 }) }
    }

    /// An event that is known, and has no hook.
    pub const fn known(name: &'static str, moment: Moment) -> Self {
        Self { name, moment, hook: None }
    }

    pub const fn of_all_tools(self) -> Self {
        Self { hook: Some(Hook { matches_all: true, timeout: 10 }), ..self }
    }

    pub const fn within(self, timeout: u64) -> Self {
        Self { hook: Some(Hook { matches_all: false, timeout }), ..self }
    }
}

/// The way to an agent's model.
pub struct Model {
    /// Hosts of the model and of its logins, by the agent's own documentation. Not those that it reports its use and its faults to.
    pub hosts: &'static [&'static str],
    /// Variables that name the model's address in place of the usual one.
    pub variables: &'static [&'static str],
}

impl Model {
    /// The usual providers: for agents that take any.
    pub const ANY: Self = Self {
        hosts: &["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai", "models.dev"],
        variables: &["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"],
    };
}

/// The settings of an agent, and how recant stands in them.
pub struct Settings {
    /// The directory of its own files.
    pub home: fn(&Surroundings<'_>) -> AbsPath,
    /// The directory of its settings in a project.
    pub project: &'static str,
    /// The files in which hooks can stand, below these directories. The first is the one that an installation makes.
    pub files: &'static [(&'static str, Form)],
    /// Those of a project, where they are others.
    pub project_files: Option<&'static [(&'static str, Form)]>,
    pub dialect: Dialect,
}

impl Settings {
    pub const PLAIN: Self =
        Self { home: |around| around.home.clone(), project: "", files: &[], project_files: None, dialect: Dialect::USUAL };
}

/// The special ways in which an agent writes a hook.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// True if hooks have names.
    pub named: bool,
    /// The key of the limit of time, and its unit in a second.
    pub timeout: (&'static str, u64),
    /// True if it starts a program with arguments, without a shell.
    pub with_args: bool,
    /// True if it refuses tools where a hook fails.
    pub strict: bool,
}

impl Dialect {
    pub const USUAL: Self = Self { named: false, timeout: ("timeout", 1), with_args: false, strict: false };
}

/// The form in which hooks stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON: a list of matchers with hooks for each event.
    Groups,
    /// JSON: a list of hooks for each event.
    Flat,
    Toml,
    /// A program in a file of its own: this one, with recant's path put in.
    Program(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One user's, for all projects.
    User,
    /// A project's, for all who work on it.
    Project,
}

impl Scope {
    pub const BOTH: [Self; 2] = [Self::User, Self::Project];

    /// The option for it, behind a verb's other words.
    pub fn option(self) -> &'static str {
        if self == Self::Project { " --project" } else { "" }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }

    pub fn other(self) -> Self {
        if self == Self::Project { Self::User } else { Self::Project }
    }
}

/// The files that an agent keeps about itself, as `agent run` treats them.
pub struct State {
    /// The directory that they lie in.
    pub directory: fn(&Surroundings<'_>) -> AbsPath,
    /// The paths of its credentials: real in its own run, closed in those of others.
    pub credentials: &'static [&'static str],
    /// Other paths that stay real.
    pub pass: &'static [&'static str],
    /// Globs of the files that are committed by themselves at the end.
    pub records: &'static [&'static str],
    /// The part of these that depends on the project.
    pub conversations: Option<Conversations>,
    /// Names of files with records and settings side by side.
    pub mixed: &'static [&'static str],
}

impl State {
    pub const PLAIN: Self = Self {
        directory: |around| around.home.clone(),
        credentials: &[],
        pass: &[],
        records: &[],
        conversations: None,
        mixed: &[],
    };
}

/// The places of an agent's conversations, if it keeps them by project.
pub struct Conversations {
    /// Globs of the transcripts of a project, below the directory of its state.
    pub transcripts: fn(project: &AbsPath) -> Vec<String>,
    /// A file of records in the home directory.
    pub in_home: &'static str,
    /// The directories of what it keeps of a conversation beside the transcript.
    pub beside: &'static [&'static str],
}

/// The way in which an agent reads what a hook says to its person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Standard error, for people.
    Text,
    /// JSON, if there is something to say.
    Json,
    /// JSON, also where there is nothing to say.
    AlwaysJson,
}

/// The case in which an agent is asked what keeps its hooks from being called.
pub struct Check<'a> {
    pub around: &'a Surroundings<'a>,
    /// The scopes in which its hooks stand.
    pub scopes: &'a [Scope],
    pub version: Option<&'a str>,
    /// Its program, if it may be asked, which takes a second.
    pub program: Option<&'a Path>,
}

impl Agent {
    pub fn word(self) -> &'static str {
        self.0.word
    }

    pub fn facts(self) -> &'static Facts {
        self.0
    }

    /// The directory of its own files.
    pub fn home(self, around: &Surroundings<'_>) -> AbsPath {
        (self.0.settings.home)(around)
    }
}

impl Deref for Agent {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        self.0
    }
}

impl PartialEq for Agent {
    fn eq(&self, other: &Self) -> bool {
        self.0.word == other.0.word
    }
}

impl Eq for Agent {}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.word)
    }
}

impl Serialize for Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word)
    }
}
