//! Claude Code: names of events by its release 2.1.332.

use super::facts::{Answers, Check, Conversations, Dialect, Facts, Form, Model, Moment, Named, Scope, Settings, State};
use super::settings::jsonc::with;
use super::surroundings::{Surroundings, below};
use crate::fs::AbsPath;

pub const FACTS: Facts = Facts {
    word: "claude",
    name: "Claude Code",
    variables: &["CLAUDECODE"],
    session: Some("CLAUDE_CODE_SESSION_ID"),
    project: Some("CLAUDE_PROJECT_DIR"),
    called_by: &["COPILOT_CLI"],
    env_file: Some("CLAUDE_ENV_FILE"),
    events: &[
        Named::hooked("SessionStart", Moment::SessionStart),
        Named::hooked("UserPromptSubmit", Moment::Prompt),
        Named::hooked("PreToolUse", Moment::BeforeTool).of_all_tools(),
        Named::hooked("PostToolUse", Moment::AfterTool).of_all_tools(),
        Named::hooked("PostToolUseFailure", Moment::AfterTool).of_all_tools(),
        Named::hooked("SubagentStop", Moment::SubagentEnd),
        Named::hooked("Stop", Moment::TurnEnd),
        Named::hooked("StopFailure", Moment::TurnEnd),
        Named::hooked("CwdChanged", Moment::Other),
        Named::hooked("SessionEnd", Moment::SessionEnd),
    ],
    reading: "read notebookread grep glob ls webfetch websearch todowrite todoread task agent skill slashcommand \
        askuserquestion enterplanmode exitplanmode bashoutput killshell killbash taskoutput taskstop toolsearch \
        listmcpresourcestool readmcpresourcetool lsp",
    writing: "write edit multiedit notebookedit str_replace_based_edit_tool",
    settings: Settings {
        home,
        project: ".claude",
        files: &[("settings.json", Form::Groups)],
        project_files: Some(&[("settings.json", Form::Groups), ("settings.local.json", Form::Groups)]),
        dialect: Dialect { with_args: true, ..Dialect::USUAL },
    },
    state: State {
        directory: home,
        credentials: &[".credentials.json"],
        pass: &["statsig", "telemetry"],
        // Memory lies between the transcripts, and is obeyed. What belongs to a conversation is below.
        records: &[".credentials.json", ".claude.json", "history.jsonl", "stats-cache.json"],
        conversations: Some(Conversations {
            transcripts,
            // Outside of its directory, but where a variable names that.
            in_home: ".claude.json",
            beside: &["file-history", "tasks", "todos"],
        }),
        mixed: &[".claude.json"],
    },
    model: Model {
        hosts: &["api.anthropic.com", "claude.ai", "console.anthropic.com", "platform.claude.com"],
        variables: &["ANTHROPIC_BASE_URL"],
    },
    answers: Answers::Json,
    stops,
    counts: |scope| {
        Some(match scope {
            Scope::User => "Claude Code sees them at once",
            Scope::Project => "Claude Code runs hooks of a project that you have trusted",
        })
    },
    back: |session, prompt| {
        vec![format!("the conversation: claude --resume {session}"), format!("and in it /rewind to \"{prompt}\"")]
    },
};

fn home(around: &Surroundings<'_>) -> AbsPath {
    around.named_or("CLAUDE_CONFIG_DIR", ".claude")
}

/// The transcripts of a project, by the name of its directory as releases write it.
fn transcripts(project: &AbsPath) -> Vec<String> {
    let project = String::from_utf8_lossy(project.as_bytes());
    let key: String = project.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    ["*.jsonl", "*.meta.json"].map(|name| format!("projects/{key}/**/{name}")).into()
}

/// The settings of an administrator.
const MANAGED: &str = "/etc/claude-code";

fn managed() -> Vec<AbsPath> {
    let Ok(directory) = AbsPath::parse(MANAGED) else { return Vec::new() };
    let more = below(&directory, "managed-settings.d").as_path().read_dir().into_iter().flatten().flatten();
    let more = more.filter_map(|entry| AbsPath::parse(entry.path().into_os_string().into_encoded_bytes()).ok());
    [below(&directory, "managed-settings.json")].into_iter().chain(more).collect()
}

fn stops(check: &Check<'_>) -> Vec<String> {
    let around = check.around;
    let own = [
        below(&home(around), "settings.json"),
        below(&around.project, ".claude/settings.json"),
        below(&around.project, ".claude/settings.local.json"),
    ];
    let all: Vec<_> = own.into_iter().chain(managed()).collect();
    let disabled = with(&all, "disableAllHooks");
    let disabled = disabled.map(|path| format!("\"disableAllHooks\" in {path} switches all hooks off"));
    let only = with(&all, "allowManagedHooksOnly");
    let only = only.map(|path| format!("\"allowManagedHooksOnly\" in {path} switches off all hooks but an administrator's"));
    too_old(check).into_iter().chain(disabled).chain(only).collect()
}

/// The first version that starts a hook with its arguments, without a shell.
const WITH_ARGS: [u64; 3] = [2, 1, 139];

/// The reason why this version does not call its user's hooks as they are written.
fn too_old(check: &Check<'_>) -> Option<String> {
    let version = check.version?;
    let numbers: Vec<u64> = version.split('.').map_while(|part| part.parse().ok()).collect();
    let is_used = check.scopes.contains(&Scope::User);
    let why = || format!("Claude Code {version} starts hooks without their arguments: update it to 2.1.139 or newer");
    (is_used && numbers.len() == 3 && numbers[..] < WITH_ARGS[..]).then(why)
}
