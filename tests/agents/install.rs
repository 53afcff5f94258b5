//! `agent install`, `uninstall`, `list`, `status`, `guide` and `export`: what is added to an agent's settings, and taken out again to the byte.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{Manifest, Said, World, manifest, recant};
use insta::assert_snapshot;
use serde_json::Value;

const AGENTS: [&str; 6] = ["claude", "codex", "gemini", "copilot", "opencode", "pi"];
const SCOPES: [&str; 2] = ["", "--project"];

/// A world whose tree is a project, without any agent's program.
fn world() -> World {
    let mut world = World::new();
    world.set("PATH", format!("{}:/usr/bin:/bin", world.root().join("bin").display()));
    world.mkdir(".git");
    world
}

/// Everything but the store.
fn around(world: &World) -> Vec<Manifest> {
    ["home", "tree", "config"]
        .iter()
        .filter(|name| world.root().join(name).exists())
        .map(|name| manifest(&world.root().join(name)))
        .collect()
}

fn assert_same(world: &World, before: &[Manifest], what: &str) {
    let after = around(world);
    assert_eq!(after.len(), before.len(), "{what}");
    // A directory that something came to and left has another time.
    let still = |manifest: &Manifest| manifest.clone().without_directory_times();
    before.iter().zip(&after).for_each(|(before, after)| still(before).assert_same(&still(after), what));
}

/// The file that an installation writes, in a directory of the world.
fn settings(world: &World, agent: &str, scope: &str) -> PathBuf {
    let name = match (agent, scope) {
        ("claude", "") => "home/.claude/settings.json",
        ("codex", "") => "home/.codex/hooks.json",
        ("gemini", "") => "home/.gemini/settings.json",
        ("copilot", "") => "home/.copilot/hooks/recant.json",
        ("opencode", "") => "config/opencode/plugins/recant.js",
        ("pi", "") => "home/.pi/agent/extensions/recant.ts",
        ("claude", _) => "tree/.claude/settings.json",
        ("codex", _) => "tree/.codex/hooks.json",
        ("gemini", _) => "tree/.gemini/settings.json",
        ("copilot", _) => "tree/.github/hooks/recant.json",
        ("opencode", _) => "tree/.opencode/plugins/recant.js",
        _ => "tree/.pi/extensions/recant.ts",
    };
    world.root().join(name)
}

/// Makes a program in PATH.
fn program(world: &World, name: &str, script: &str) {
    let path = world.root().join("bin").join(name);
    world.write(&path, format!("#!/bin/sh\n{script}\n")).chmod(&path, 0o755);
}

/// Lets an event come, as the agent's hook tells it.
fn event(world: &World, agent: &str, event: &str) {
    let cwd = world.tree();
    let payload =
        format!(r#"{{"session_id":"s","cwd":{:?},"hook_event_name":"{event}","source":"startup"}}"#, cwd.display().to_string());
    world.call(["hook", agent]).stdin(payload).run().ok();
}

/// What was said, with the place of this program masked, which is another on each machine.
fn masked(said: &Said) -> String {
    said.to_string().replace(recant(), "/bin/recant")
}

/// What was said, in one line.
fn flat(said: &Said) -> String {
    said.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The session that a call made.
fn session(said: &Said) -> String {
    let err = said.stderr();
    let at = err.find("recant rollback ").unwrap_or_else(|| panic!("no session: {said}")) + "recant rollback ".len();
    err[at..at + 4].to_owned()
}

#[test]
fn the_edit_is_shown_and_made_as_a_session_that_a_rollback_takes_back() {
    let world = world();
    let before = around(&world);
    let shown = world.recant("agent install gemini --dry-run").ok();
    assert_snapshot!(masked(&shown), @r#"
    status 0
    --- stdout
    # /world/home/.gemini: new directory, mode 0755
    diff --git a/world/home/.gemini/settings.json b/world/home/.gemini/settings.json
    new file mode 100644
    --- /dev/null
    +++ b/world/home/.gemini/settings.json
    @@ -0,0 +1,22 @@
    +{
    +  "hooks": {
    +    "SessionStart": [
    +      { "hooks": [{ "name": "recant", "type": "command", "command": "/bin/recant hook gemini", "timeout": 10000 }] }
    +    ],
    +    "BeforeAgent": [
    +      { "hooks": [{ "name": "recant", "type": "command", "command": "/bin/recant hook gemini", "timeout": 10000 }] }
    +    ],
    +    "BeforeTool": [
    +      { "hooks": [{ "name": "recant", "type": "command", "command": "/bin/recant hook gemini", "timeout": 10000 }] }
    +    ],
    +    "AfterTool": [
    +      { "hooks": [{ "name": "recant", "type": "command", "command": "/bin/recant hook gemini", "timeout": 10000 }] }
    +    ],
    +    "AfterAgent": [
    +      { "hooks": [{ "name": "recant", "type": "command", "command": "/bin/recant hook gemini", "timeout": 10000 }] }
    +    ],
    +    "SessionEnd": [
    +      { "hooks": [{ "name": "recant", "type": "command", "command": "/bin/recant hook gemini", "timeout": 10000 }] }
    +    ]
    +  }
    +}
    --- stderr
    recant: nothing was changed
    "#);
    assert_same(&world, &before, "a dry run");
    let said = world.recant("agent install gemini -y").ok();
    assert_eq!(said.stdout(), format!("{}created   ~/.gemini/settings.json\n", shown.stdout()), "what was shown is made");
    assert_snapshot!(said.masked_err().replace(&session(&said), "ID"), @"
    recant: to take it back: recant rollback ID
    recant: they work from the agent's next start on; recant agent status gemini shows whether they fire
    ");
    let listed = world.recant("list --json").ok().json();
    assert_eq!(
        (&listed["sessions"][0]["command"], &listed["sessions"][0]["changes"]),
        (&"agent install gemini".into(), &2.into())
    );
    world.recant(&format!("rollback {}", session(&said))).ok();
    assert_same(&world, &before, "rolled back");
    world.assert_tidy("rolled back");
    // Again: what was known of the first does no harm.
    world.recant("agent install gemini -y").ok();
    let uninstalled = world.recant("agent uninstall gemini -y").ok();
    assert_same(&world, &before, "uninstalled");
    // And once more, after the hooks were brought back.
    world.recant(&format!("rollback {}", session(&uninstalled))).ok();
    world.recant("agent uninstall gemini -y").ok();
    assert_same(&world, &before, "uninstalled again");
    // A file that somebody else makes then is not recant's.
    let path = settings(&world, "gemini", "");
    world.write(&path, "{}");
    world.recant("agent install gemini -y").ok();
    world.recant("agent uninstall gemini -y").ok();
    assert_eq!(world.read(&path), "{}");
}

#[test]
fn each_agent_s_settings_are_made_found_again_and_removed_with_their_directories() {
    for agent in AGENTS {
        for scope in SCOPES {
            let world = world();
            let (before, what) = (around(&world), format!("{agent} {scope}"));
            let words = |verb: &str| format!("agent {verb} {agent} {scope} -y");
            let none = world.recant(&words("uninstall")).ok();
            assert!(none.stderr().contains("there are no hooks of recant") && none.stdout().is_empty(), "{what}: {none}");
            world.recant(&words("install")).ok();
            let path = settings(&world, agent, scope);
            let text = world.read(&path);
            let named = if scope.is_empty() { recant() } else { "recant" };
            assert!(text.contains(named) && text.ends_with('\n'), "{what}: {text}");
            if path.extension().is_some_and(|extension| extension == "json") {
                let value: Value = serde_json::from_str(&text).expect("settings are JSON");
                assert!(value["hooks"].as_object().expect("hooks").len() >= 6, "{what}: {text}");
            }
            if scope == "--project" {
                assert!(!text.contains(&world.root().display().to_string()) && !text.contains("target"), "{what}: {text}");
            }
            let installed = around(&world);
            let again = world.recant(&words("install")).ok();
            assert!(again.stderr().contains("are installed already") && again.stdout().is_empty(), "{what}: {again}");
            assert_same(&world, &installed, &what);
            let other = if scope.is_empty() { "--project" } else { "" };
            world.recant(&format!("agent uninstall {agent} {other} -y")).ok();
            assert_same(&world, &installed, &what);
            world.recant(&words("uninstall")).ok();
            assert_same(&world, &before, &what);
            world.assert_tidy(&what);
        }
    }
}

/// Settings as people have them.
const ODD: [(&str, &str); 9] = [
    ("empty", ""),
    ("nothing in it", "{}"),
    ("no hooks in it", "{\n\t\"hooks\": {\n\t}\n}\n"),
    (
        "comments",
        "// mine\n{\n    \"model\": \"opus\", // the best\n    /* none */\n    \"env\": { \"A\": \"1\" } // last\n    // end\n}\n",
    ),
    (
        "other hooks",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"notify\" }] }\n    ],\n    \"PreToolUse\": [],\n    \"preToolUse\": [ { \"type\": \"command\", \"bash\": \"x\" }, ],\n  },\n  \"z\": 1\n}",
    ),
    ("indented oddly", "{ \"a\":1,\n     \"b\" : [ 1,\n 2 ] }\n\n\n"),
    ("CRLF", "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"c\": []\r\n  }\r\n}\r\n"),
    ("one line", "{\"a\": 1, \"hooks\": {\"Stop\": [{\"hooks\": []}]}}"),
    ("a byte order mark", "\u{feff}{\n  \"a\": 1\n}\n"),
];

#[test]
fn settings_as_people_have_them_are_the_same_bytes_after_an_uninstall_or_a_rollback() {
    for (n, agent) in ["claude", "codex", "gemini", "copilot"].into_iter().enumerate() {
        // All of them are edited by the same hand: each has a third, and the first one all.
        for (what, text) in ODD.into_iter().skip(n.saturating_sub(1)).step_by(if n == 0 { 1 } else { 3 }) {
            let world = world();
            let path = settings(&world, agent, "");
            world.write(&path, text).chmod(&path, 0o600);
            let before = around(&world);
            let words = |verb: &str| format!("agent {verb} {agent} -y");
            let id = session(&world.recant(&words("install")).ok());
            let (installed, what) = (world.read(&path), format!("{agent}, {what}"));
            assert!(installed.len() > text.len() + 500, "{what}: {installed}");
            assert_eq!(installed.contains("\r\n"), text.contains("\r\n"), "{what}");
            let again = world.recant(&words("install")).ok();
            assert!(again.stderr().contains("are installed already"), "{what}: {again}");
            assert_eq!(world.read(&path), installed, "{what}");
            world.recant(&format!("rollback {id}")).ok();
            assert_same(&world, &before, &what);
            world.recant(&words("install")).ok();
            world.recant(&words("uninstall")).ok();
            assert_eq!(world.read(&path), text, "{what}");
        }
    }
}

#[test]
fn what_a_person_has_written_since_stays_and_only_the_hooks_go() {
    let world = world();
    let path = settings(&world, "claude", "");
    world.write(&path, "{\n  \"model\": \"opus\"\n}\n");
    world.recant("agent install claude -y").ok();
    // As Claude Code writes its settings, and with a hook of somebody else's in the same list.
    let mut value: Value = serde_json::from_str(&world.read(&path)).expect("JSON");
    value["model"] = "haiku".into();
    let mine: Value = serde_json::from_str(r#"{"type": "command", "command": "mine"}"#).expect("JSON");
    value["hooks"]["Stop"][0]["hooks"].as_array_mut().expect("a list").push(mine.clone());
    world.write(&path, format!("{value:#}"));
    world.recant("agent uninstall claude -y").ok();
    let left: Value = serde_json::from_str(&world.read(&path)).expect("JSON");
    assert_eq!(left, serde_json::json!({"model": "haiku", "hooks": {"Stop": [{"hooks": [mine]}]}}));
}

#[test]
fn a_program_that_has_moved_is_replaced_and_the_name_in_path_is_preferred() {
    let world = world();
    let path = settings(&world, "claude", "");
    world.recant("agent install claude -y").ok();
    let moved = world.read(&path).replace(recant(), "/opt/old/recant");
    world.write(&path, &moved);
    let said = world.recant("agent status claude").with(4);
    assert!(flat(&said).contains("/opt/old/recant cannot be started: recant agent install claude"), "{said}");
    world.recant("agent install claude -y").ok();
    let text = world.read(&path);
    assert_eq!((text.matches("recant\"").count(), text.matches("/opt/old").count()), (10, 0), "{text}");
    let link = world.root().join("bin/recant");
    world.mkdir(world.root().join("bin")).symlink(recant(), &link);
    world.recant("agent install claude -y").ok();
    let text = world.read(&path);
    assert_eq!(text.matches(&link.display().to_string()).count(), 10, "{text}");
    world.recant("agent uninstall claude -y").ok();
    assert!(!path.exists());
}

#[test]
fn settings_that_cannot_be_parsed_are_refused_with_their_line() {
    for (agent, name, text) in [
        ("claude", "home/.claude/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n"),
        ("claude", "home/.claude/settings.json", "[1]\n"),
        ("claude", "home/.claude/settings.json", "{\n\n\"hooks\": []}\n"),
        ("claude", "home/.claude/settings.json", "{\"hooks\": {},\n\"hooks\": {}}\n"),
        ("gemini", "home/.gemini/settings.json", "{\n  'a': 1\n}\n"),
        ("gemini", "home/.gemini/settings.json", "{\"hooks\": {\n\"AfterTool\": 1}}\n"),
        ("codex", "home/.codex/config.toml", "model = \"x\"\n\nb = \n"),
        ("copilot", "home/.copilot/hooks/recant.json", "{\n"),
    ] {
        let world = world();
        let path = world.root().join(name);
        world.write(&path, text);
        let before = around(&world);
        let said = world.recant(&format!("agent install {agent} -y")).with(1);
        let at = format!("{}: line ", path.display());
        assert!(
            said.stderr().replace("\n        ", " ").contains(&at) && said.stderr().contains("nothing was changed"),
            "{said}"
        );
        assert_same(&world, &before, text);
        assert!(!world.store().exists(), "{text}");
    }
    let world = world();
    world.write(settings(&world, "pi", ""), "export default () => {}\n");
    let said = world.recant("agent install pi -y").with(1);
    assert!(said.stderr().contains("it is another plugin"), "{said}");
    world.write(settings(&world, "claude", ""), b"{\"a\": \"\xff\"}");
    world.recant("agent install claude -y").with(1);
}

#[test]
fn a_link_in_place_of_the_settings_stays_and_the_file_behind_it_is_edited() {
    let world = world();
    let (link, target) = (settings(&world, "claude", ""), world.root().join("home/dotfiles/claude.json"));
    world.write(&target, "{\n  \"a\": 1\n}\n").mkdir(link.parent().expect("a directory"));
    world.symlink("../dotfiles/claude.json", &link);
    let said = world.recant("agent install claude -y").ok();
    assert!(flat(&said).contains("~/.claude/settings.json is a link: the edit is made in ~/dotfiles/claude.json"), "{said}");
    assert_eq!(link.read_link().expect("a link"), Path::new("../dotfiles/claude.json"));
    assert!(world.read(&target).contains("SessionStart"));
    let json = world.recant("agent uninstall claude -y --json").ok().json();
    assert_eq!(json["files"][0]["link"], link.display().to_string());
    assert_eq!(json["files"][0]["path"], target.display().to_string());
    assert_eq!((world.read(&target).as_str(), link.is_symlink()), ("{\n  \"a\": 1\n}\n", true));
    // One that leads to nothing yet.
    world.remove(&target);
    world.recant("agent install claude -y").ok();
    assert!(world.read(&target).contains("SessionStart") && link.is_symlink());
}

#[test]
fn read_only_settings_are_edited_and_stay_read_only() {
    let world = world();
    let path = settings(&world, "claude", "");
    let directory = path.parent().expect("a directory").to_owned();
    world.write(&path, "{}").chmod(&path, 0o400).chmod(&directory, 0o500);
    let mode = |path: &Path| path.metadata().expect("settings").permissions().mode() & 0o777;
    for (verb, has) in [("install", true), ("uninstall", false)] {
        world.recant(&format!("agent {verb} claude -y")).ok();
        assert_eq!(world.read(&path).contains("SessionStart"), has, "{verb}");
        assert_eq!((mode(&path), mode(&directory)), (0o400, 0o500), "{verb}");
    }
    assert_eq!(world.read(&path), "{}");
    world.chmod(&directory, 0o700);
}

#[test]
fn hooks_of_codex_go_where_its_others_are() {
    let world = world();
    let (toml, json) = (world.root().join("home/.codex/config.toml"), world.root().join("home/.codex/hooks.json"));
    for text in [
        "# mine\n[[hooks.Stop]]\nhooks = [{ type = \"command\", command = \"x\" }] # this\n\n[hooks.state]\n",
        "[[hooks.Stop]]\nhooks = []",
    ] {
        world.write(&toml, text);
        world.recant("agent install codex -y").ok();
        assert!(
            world.read(&toml).contains("[[hooks.SessionStart]]\nhooks = [{ type = \"command\", command = \"") && !json.exists()
        );
        assert!(world.recant("agent install codex -y").ok().stderr().contains("are installed already"));
        world.recant("agent uninstall codex -y").ok();
        assert_eq!(world.read(&toml), text);
    }
    // Without hooks of others there, they come into a file of their own, and Codex CLI has nothing to warn of.
    world.write(&toml, "model = \"x\"\n[hooks.state]\n");
    world.recant("agent install codex -y").ok();
    assert!(json.exists() && world.read(&toml) == "model = \"x\"\n[hooks.state]\n");
    assert!(world.read(&json).contains("\"timeout\": 3"), "{}", world.read(&json));
}

#[test]
fn nobody_is_asked_without_a_terminal_and_an_agent_is_refused() {
    let world = world();
    let before = around(&world);
    assert_snapshot!(world.recant("agent install claude"), @"
    status 2
    --- stderr
    recant: agent install asks first, and there is no terminal
            nothing was changed
            recant agent install claude --dry-run shows the edit; recant agent install claude -y does not ask
    ");
    let said = world.call(["agent", "install", "claude", "-y"]).env("CLAUDECODE", "1").run().with(1);
    assert!(said.stderr().contains("in your own terminal: recant agent install claude\n"), "{said}");
    world.call(["agent", "install", "claude", "--dry-run"]).env("CLAUDECODE", "1").run().ok();
    assert_same(&world, &before, "refused");
    world.recant("agent install claude -y").ok();
    let before = around(&world);
    world.recant("agent uninstall claude").with(2);
    world.call(["agent", "uninstall", "claude", "-y"]).env("CODEX_THREAD_ID", "1").run().with(1);
    assert_same(&world, &before, "refused");
}

#[test]
fn a_person_at_a_terminal_sees_the_edit_and_decides() {
    let world = world();
    let answered = |answer: &str| {
        let command = format!("{} agent install gemini", recant());
        let mut child = world.program("script", ["-qec", &command, "/dev/null"]).command();
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        child.stdin.take().expect("its input").write_all(answer.as_bytes()).expect("an answer");
        let output = child.wait_with_output().expect("its end");
        Some((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    let Some((status, said)) = answered("n\n") else {
        println!("skipped: script makes the terminal");
        return;
    };
    let path = settings(&world, "gemini", "");
    assert_eq!((status, path.exists()), (Some(1), false), "{said}");
    let (shown, asked) = (
        said.find("BeforeTool").expect("the edit"),
        said.find("Add recant's hooks to ~/.gemini/settings.json? [y/N]").expect("a question"),
    );
    assert!(shown < asked, "{said}");
    assert_eq!(world.recant("list --json").ok().json()["sessions"].as_array().map(Vec::len), Some(0));
    let (status, said) = answered("y\n").expect("as before");
    assert_eq!((status, path.exists()), (Some(0), true), "{said}");
}

#[test]
fn status_tells_if_the_hooks_fire_and_why_not() {
    let world = world();
    program(&world, "claude", "echo '2.1.330 (Claude Code)'");
    let status = |words: &str| world.recant(&format!("agent status {words}"));
    let none = status("").with(4);
    assert!(none.stderr().contains("no agent has recant's hooks here"), "{none}");
    assert_snapshot!(status("claude"), @"
    status 4
    --- stdout
    Claude Code 2.1.330: hooks do not fire
      program  /world/bin/claude
      last     none
      ! its settings have no hooks: recant agent install claude adds them; hooks of
        a plugin are not seen here
    not covered:
      files outside of the project
      version control's own directories, such as .git, and repositories inside
      ignored files that are built, downloaded or over 1 MiB, such as target
      what an agent writes before its hooks are called, or while they are off
    ");
    // What is not covered stands below, whatever comes before it.
    let first_part = |said: &Said| masked(said).split("not covered:\n").next().expect("a part").to_owned();
    world.recant("agent install claude -y").ok();
    assert_snapshot!(first_part(&status("")), @"
    status 4
    --- stdout
    Claude Code 2.1.330: hooks have not fired yet
      program  /world/bin/claude
      hooks    ~/.claude/settings.json (user)
      calls    /bin/recant
      last     none
      ! no event has come yet: start Claude Code, then ask again
    ");
    event(&world, "claude", "SessionStart");
    assert_snapshot!(first_part(&status("claude")), @"
    status 0
    --- stdout
    Claude Code 2.1.330: hooks fire
      program  /world/bin/claude
      hooks    ~/.claude/settings.json (user)
      calls    /bin/recant
      last     <time> SessionStart in /world/tree
    ");
    // Each of these keeps them from firing, wherever it stands.
    for (name, text, why) in [
        ("tree/.claude/settings.local.json", "{\"disableAllHooks\": true}", "\"disableAllHooks\" in"),
        ("tree/.claude/settings.json", "{\"allowManagedHooksOnly\": true} // by whom?", "\"allowManagedHooksOnly\" in"),
        ("tree/.claude/settings.json", "{", "unterminated object"),
    ] {
        let path = world.root().join(name);
        world.write(&path, text);
        let said = status("claude").with(4);
        assert!(said.stdout().contains("hooks do not fire") && flat(&said).contains(why), "{said}");
        world.remove(&path);
    }
    status("claude").ok();
    program(&world, "claude", "echo '2.1.138 (Claude Code)'");
    assert!(flat(&status("claude").with(4)).contains("2.1.138 starts hooks without their arguments"));
    program(&world, "claude", "echo '2.1.139 (Claude Code)'");
    let text = world.read(settings(&world, "claude", ""));
    world.write(settings(&world, "claude", ""), text.replace("CwdChanged", "Notification"));
    assert!(flat(&status("claude").with(4)).contains("some of its hooks are missing"));
    // Twice, and once by a name that is not in PATH.
    world.write(settings(&world, "claude", ""), text);
    world.recant("agent install claude --project -y").ok();
    let said = status("claude").with(4);
    assert!(flat(&said).contains("its hooks call recant, which is not in PATH"), "{said}");
    world.mkdir(world.root().join("bin")).symlink(recant(), world.root().join("bin/recant"));
    let said = status("claude").ok();
    assert!(flat(&said).contains("each event comes once for each settings file"), "{said}");
}

#[test]
fn status_asks_codex_for_the_trust_of_its_hooks() {
    let world = world();
    let answer = |trust: &str, enabled: &str| {
        let command = format!("{} hook codex", recant());
        let hook = format!(r#"{{"command":"{command}","enabled":{enabled},"trustStatus":"{trust}"}}"#);
        let script = format!(
            "[ \"$1\" = --version ] && {{ echo codex-cli 0.169.0; exit; }}\nread a; echo '{{\"id\":1,\"result\":{{}}}}'\nread b; read c\n\
             echo '{{\"id\":2,\"result\":{{\"data\":[{{\"hooks\":[{hook}]}}]}}}}'"
        );
        program(&world, "codex", &script);
        world.recant("agent status codex")
    };
    world.recant("agent install codex -y").ok();
    event(&world, "codex", "SessionStart");
    assert!(flat(&answer("untrusted", "true").with(4)).contains("1 of 1 hook that it does not trust"));
    assert!(flat(&answer("modified", "true").with(4)).contains("/hooks in it"));
    assert!(flat(&answer("trusted", "false").with(4)).contains("switched off"));
    let said = answer("trusted", "true").ok();
    assert!(said.stdout().contains("Codex CLI 0.169.0: hooks fire"), "{said}");
    world.write(world.root().join("home/.codex/config.toml"), "[features]\nhooks = false\n");
    assert!(flat(&answer("trusted", "true").with(4)).contains("features.hooks in"));
    world.remove(world.root().join("home/.codex/config.toml"));
}

/// What is not known stands against nothing.
#[test]
#[ignore = "long: waits as long as recant does"]
fn a_codex_that_says_nothing_is_not_waited_for_long() {
    let world = world();
    world.recant("agent install codex -y").ok();
    event(&world, "codex", "SessionStart");
    program(&world, "codex", "exec sleep 60");
    let start = std::time::Instant::now();
    world.recant("agent status codex").ok();
    assert!(start.elapsed().as_secs() < 20, "it waited {:?}", start.elapsed());
}

#[test]
fn status_knows_how_gemini_and_copilot_leave_hooks_out() {
    let world = world();
    for agent in ["gemini", "copilot"] {
        world.recant(&format!("agent install {agent} -y")).ok();
        event(&world, agent, "SessionStart");
        world.recant(&format!("agent status {agent}")).ok();
    }
    let gemini = settings(&world, "gemini", "--project");
    for text in ["{\"hooksConfig\": {\"enabled\": false}}", "{\"hooksConfig\": {\"disabled\": [\"recant\"]}}"] {
        world.write(&gemini, text);
        assert!(flat(&world.recant("agent status gemini").with(4)).contains("\"hooksConfig."), "{text}");
        world.remove(&gemini);
    }
    world.write(world.root().join("home/.copilot/settings.json"), "{\"disableAllHooks\": true}");
    world.recant("agent status copilot").with(4);
    // A project's hooks depend on the trust in its folder, where trust is asked for.
    world.recant("agent uninstall gemini -y").ok();
    world.recant("agent install gemini --project -y").ok();
    world.mkdir(world.root().join("bin")).symlink(recant(), world.root().join("bin/recant"));
    world.recant("agent status gemini").ok();
    world.write(settings(&world, "gemini", ""), "{\"security\": {\"folderTrust\": {\"enabled\": true}}}");
    assert!(flat(&world.recant("agent status gemini").with(4)).contains("Gemini CLI does not trust"));
    let folders = format!("{{{:?}: \"TRUST_FOLDER\"}}", world.tree().display().to_string());
    world.write(world.root().join("home/.gemini/trustedFolders.json"), folders);
    world.recant("agent status gemini").ok();
}

#[test]
fn the_guide_is_short() {
    let said = world().recant("agent guide").ok();
    let guide = said.stdout();
    assert!(guide.len() <= 900 && guide.lines().all(|line| line.len() <= 80), "{guide}");
    let first = guide.lines().find(|line| line.contains('`')).unwrap_or_default();
    assert!(first.starts_with("`recant` shows"), "{guide}");
    for word in
        ["recant run", "recant diff NAME --stat", "recant steps", "recant rewind", "recant agent undo", "recant await", "person"]
    {
        assert!(flat(&said).contains(word), "{word}");
    }
}

#[test]
fn an_uninstall_names_the_settings_that_have_the_hooks_if_the_others_do() {
    let world = world();
    for (there, asked, option) in [("--project", "", "--project"), ("", "--project", "")] {
        world.recant(&format!("agent install claude {there} -y")).ok();
        let said = world.recant(&format!("agent uninstall claude {asked} -y")).ok();
        assert!(
            flat(&said).contains(&format!("recant agent uninstall claude {option} removes those in ").replace("  ", " ")),
            "{said}"
        );
        world.recant(&format!("agent uninstall claude {option} -y")).ok();
        let said = world.recant(&format!("agent uninstall claude {option} -y")).ok();
        assert!(!flat(&said).contains("removes those"), "{said}");
    }
}

#[test]
fn hooks_whose_program_is_not_found_do_not_fire_whatever_came_before() {
    let world = world();
    event(&world, "claude", "SessionStart");
    world.recant("agent install claude --project -y").ok();
    let said = world.recant("agent status claude").with(4);
    assert!(
        said.stdout().starts_with("Claude Code: hooks do not fire\n")
            && flat(&said).contains("its hooks call recant, which is not in PATH"),
        "{said}"
    );
    world.mkdir(world.root().join("bin")).symlink(recant(), world.root().join("bin/recant"));
    assert!(world.recant("agent status claude").ok().stdout().starts_with("Claude Code: hooks fire\n"));
    world.recant("agent uninstall claude --project -y").ok();
    world.recant("agent install claude -y").ok();
    let path = settings(&world, "claude", "");
    let moved = world.read(&path).replace(&world.root().join("bin/recant").display().to_string(), "/opt/old/recant");
    world.write(&path, &moved);
    let said = world.recant("agent status claude").with(4);
    assert!(said.stdout().starts_with("Claude Code: hooks do not fire\n"), "{said}");
}

#[test]
fn the_help_of_an_uninstall_has_its_own_examples() {
    let world = world();
    let [install, uninstall] = ["install", "uninstall"].map(|verb| world.recant(&format!("agent {verb} --help")).ok().stdout());
    let examples = |help: &str| help.split("Examples:").nth(1).expect("examples").to_owned();
    assert!(!examples(&uninstall).contains("agent install") && examples(&uninstall).contains("agent uninstall codex --project"));
    assert!(examples(&install).contains("agent install codex --project"));
}
