//! Whole agents that are held: what stays real, what is committed by itself, what they see and may do inside.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Stdio};

use crate::common::{self, Call, Said, until};
use crate::desk::{self, Desk, each};

/// A stand-in for Claude Code: it speaks its hook protocol, and does what the file `plan` in the home directory says.
const CLAUDE: &str = r#"#!/bin/sh
event() { printf '{"session_id":"s","cwd":"%s","hook_event_name":"%s"%s}' "$PWD" "$1" "$2" | recant hook claude; }
prompt() { n=$1; event UserPromptSubmit ",\"prompt_id\":\"p$n\",\"prompt\":\"do number $n\""; }
shell() {
    used=",\"prompt_id\":\"p$n\",\"tool_name\":\"Bash\",\"tool_use_id\":\"t$n\",\"tool_input\":{\"command\":\"x\"}"
    event PreToolUse "$used"
    sh -ec "$1" || exit 9
    event PostToolUse "$used,\"tool_response\":{}"
}
stop() { event Stop ",\"prompt_id\":\"p$n\""; }
say() { echo "$1"; read -r go; }
event SessionStart ',"source":"startup"' > /dev/null
. "$HOME/plan"
"#;

/// What turn `$n` does: always something else.
const TURN: &str = r#"case $((n % 4)) in
0) mkdir -p "gen/$n"; echo "$n" > "gen/$n/file"; ln -s file "gen/$n/link" ;;
1) echo "$n" >> lib.rs; chmod 600 README ;;
2) rm -rf empty; mv run.sh start.sh 2>/dev/null || mv start.sh run.sh ;;
3) mkdir empty 2>/dev/null || rmdir empty; echo "$n" > "new$n"; chmod 644 README ;;
esac"#;

/// A desk with a project, and the stand-in in PATH.
fn desk(desk: &mut Desk) {
    let bin = desk.world.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    std::os::unix::fs::symlink(&desk.binary, bin.join("recant")).unwrap();
    std::fs::write(bin.join("claude"), CLAUDE).unwrap();
    std::fs::set_permissions(bin.join("claude"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&bin, PermissionsExt::from_mode(0o755)).unwrap();
    desk.world.set("PATH", path);
    desk.made("echo about > README; echo one > lib.rs; echo '#!/bin/sh' > run.sh; chmod 755 run.sh; mkdir empty; git init -q .");
    // The directory of this project's transcripts has `p` for another name here.
    let tree = desk.world.tree().display().to_string();
    let key = tree.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    desk.bare(
        &desk.world.root().join("home"),
        &format!(
            "mkdir -p .claude/projects/{key}; ln -s ./{key} .claude/projects/p; echo 1 > .claude/.credentials.json; \
             echo '{{\"numStartups\": 1}}' > .claude.json; echo '{{}}' > .claude/settings.json"
        ),
    );
}

/// Both users, each with the stand-in.
fn with_agent(test: impl Fn(&Desk)) {
    each(|plain| {
        let mut own = Desk::new(plain.who);
        desk(&mut own);
        test(&own);
    });
}

fn plan(desk: &Desk, script: &str) {
    let file = desk.world.root().join("home/plan");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
}

fn home(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.world.root().join("home").join(name)).unwrap_or_else(|_| "(missing)".into())
}

fn agent(desk: &Desk, words: &str) -> Call {
    desk.call(format!("agent run {words}").split_whitespace())
}

fn held(desk: &Desk, script: &str) -> Said {
    plan(desk, script);
    agent(desk, "claude").run()
}

/// An agent at work.
struct AtWork {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl AtWork {
    fn begin(desk: &Desk) -> Self {
        let mut command = agent(desk, "claude").command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// Reads what it says until it says this, and waits.
    fn waits(&mut self, word: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "it ended: {all}");
            if line.trim() == word {
                return all;
            }
            all.push_str(&line);
        }
    }

    fn goes_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }
}

#[test]
fn twenty_turns_are_watched_undone_inside_committed_and_rolled_back() {
    with_agent(|desk| {
        let turns = format!(
            r#"for n in $(seq 1 20); do
prompt $n; n=$n shell 'n='$n'; {TURN}'; stop
[ $n = 12 ] && say twelve
done
echo '{{"hooks": {{"Stop": "planted"}}}}' > ~/.claude/settings.json
recant agent turns --json > ~/turns.json
recant agent undo 7 -y > ~/undo.out 2>&1; echo $? > ~/undo.status
say done"#
        );
        plan(desk, &turns);
        let before = desk.world.manifest();
        let mut at_work = AtWork::begin(desk);
        at_work.waits("twelve");
        let said = desk.recant("agent turns").with(1);
        assert!(said_of(&said).contains("an agent is held in session claude-tree: have it run recant agent turns"), "{said}");
        // From a second terminal.
        let listed = desk.recant("list --json").ok().json();
        assert_eq!(listed["sessions"][0]["status"], "running", "{listed}");
        assert_eq!(listed["sessions"][0]["name"], "claude-tree");
        assert_eq!(listed["sessions"][0]["by"]["agent"], "claude", "{listed}");
        let seen = desk.recant("diff claude-tree --name-only").ok().stdout();
        assert!(seen.contains("gen/12/file") && !seen.contains("gen/16/file"), "{seen}");
        desk.world.manifest().assert_same(&before, "nothing is on the tree");
        at_work.goes_on();
        at_work.waits("done");
        at_work.goes_on();
        assert!(at_work.child.wait().unwrap().success());
        desk.world.manifest().assert_same(&before, "nothing is on the tree at the end");
        assert_eq!(home(desk, ".claude/settings.json"), "{}\n", "what it obeys is held");
        let id = desk.ids().last().unwrap().clone();
        let said = desk.recant("agent undo 7").with(1);
        assert!(said_of(&said).contains("recant run --session claude-tree -- recant agent turns"), "{said}");
        desk.recant(&format!("commit {id}")).ok();
        assert_eq!(home(desk, "undo.status"), "0\n", "{}", home(desk, "undo.out"));
        let told: serde_json::Value = serde_json::from_str(&home(desk, "turns.json")).unwrap();
        let covered = |turn: &serde_json::Value| turn["covered"] == true && turn["paths"].as_u64() > Some(0);
        let told = told["turns"].as_array().unwrap();
        assert!(told.len() == 20 && told.iter().all(covered), "{told:?}");
        // Turns 1 to 6 are left: as they are bare.
        let bare = desk.world.root().join("bare");
        std::fs::create_dir(&bare).unwrap();
        std::fs::set_permissions(&bare, PermissionsExt::from_mode(0o777)).unwrap();
        let made = "echo about > README; echo one > lib.rs; echo '#!/bin/sh' > run.sh; chmod 755 run.sh; mkdir empty";
        desk.bare(&bare, &format!("{made}; for n in 1 2 3 4 5 6; do {TURN}\ndone"));
        let names = |place: &std::path::Path| {
            let said = desk.give(
                desk.world.program("sh", ["-ec", "find . -path ./.git -prune -o -printf '%P %y %m %l\\n' | sort; cat lib.rs"]),
            );
            said.cwd(place).run().ok().stdout().lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(names(&desk.world.tree()), names(&bare));
        assert!(home(desk, ".claude/settings.json").contains("planted"), "a person has committed it");
        desk.recant(&format!("rollback {id}")).ok();
        desk.world.manifest().assert_same(&before, "taken back");
        assert_eq!(home(desk, ".claude/settings.json"), "{}\n");
        assert!(!desk.world.session(&id).join("inner").exists(), "the run's own store goes with a commit");
    });
}

#[test]
fn inside_the_held_changes_are_shown_and_what_is_real_is_refused() {
    with_agent(|desk| {
        let script = r#"echo more >> lib.rs; echo new > other
say() { echo "== $1"; shift; "$@" 2>&1; echo "-> $?"; }
say status recant status
say bare recant
say diff recant diff --stat
say path recant diff last lib.rs --stat
say json recant diff --stat --json
say steps recant steps
say commit recant commit last
say id recant commit "$(basename "$(recant steps --json | sed 's/.*"session":"\([^"]*\)".*/\1/')")"
say rollback recant rollback last -y
say redo recant redo last
say tool recant diff --tool=touch
say store recant --store "$HOME/other" diff --stat
say doctor recant doctor
say run recant run -- echo within"#;
        let said = held(desk, script).ok();
        let all = said.stdout();
        let part = |name: &str| {
            let from = all.split(&format!("== {name}\n")).nth(1).unwrap_or_else(|| panic!("{name}: {all}"));
            from.split("\n== ").next().unwrap().to_owned()
        };
        for name in ["status", "bare"] {
            let text = part(name);
            assert!(text.contains("running") && text.contains("lib.rs") && text.ends_with("-> 0"), "{text}");
            // In a line what an agent has to know: none of it is real.
            let id = desk.id();
            assert_eq!(text.lines().next(), Some(&*format!("held: session {} (claude-tree), 2 changes", &id[16..])), "{text}");
        }
        assert!(part("diff").contains("lib.rs | 1 +") && part("diff").ends_with("-> 0"), "{}", part("diff"));
        assert!(part("path").contains("lib.rs") && !part("path").contains("other"), "{}", part("path"));
        let json: serde_json::Value =
            serde_json::from_str(part("json").lines().find(|line| line.starts_with('{')).unwrap()).unwrap();
        assert_eq!(json["schema"], 2);
        assert!(part("steps").contains("(head)"), "{}", part("steps"));
        for name in ["commit", "id", "rollback", "redo"] {
            let text = part(name).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                text.contains("nothing reaches the real tree") && text.contains("a person does that outside: recant review"),
                "{text}"
            );
            assert!(text.ends_with("-> 1"), "{text}");
        }
        assert!(part("tool").contains("inside a run recant only shows") && part("tool").ends_with("-> 1"), "{}", part("tool"));
        assert!(part("doctor").contains("recant only runs commands and shows changes"), "{}", part("doctor"));
        assert!(part("run").contains("holds its changes") && part("run").contains("within"), "{}", part("run"));
        assert!(!part("store").ends_with("-> 0"), "{}", part("store"));
        assert_eq!(desk.world.read("lib.rs"), "one\n");
    });
}

#[test]
fn credentials_stay_real_records_are_committed_by_themselves_and_what_is_obeyed_is_held() {
    with_agent(|desk| {
        let script = r#"echo 2 > ~/.claude/.credentials.json
say credentials
mkdir -p ~/.claude/projects/p/memory; echo '{}' > ~/.claude/projects/p/s.jsonl; echo obey > ~/.claude/projects/p/memory/MEMORY.md
echo '{"numStartups": 2}' > ~/.claude.json.new; mv ~/.claude.json.new ~/.claude.json
echo more >> lib.rs"#;
        plan(desk, script);
        let mut at_work = AtWork::begin(desk);
        at_work.waits("credentials");
        assert_eq!(home(desk, ".claude/.credentials.json"), "2\n");
        at_work.goes_on();
        let said = at_work.child.wait_with_output().unwrap();
        let said = String::from_utf8(said.stderr).unwrap();
        let plain = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains("real: ~/.claude/.credentials.json"), "{said}");
        assert!(plain.contains("files of Claude Code's records committed; recant rollback"), "{said}");
        assert_eq!(
            (home(desk, ".claude.json"), home(desk, ".claude/projects/p/s.jsonl")),
            ("{\"numStartups\": 2}\n".into(), "{}\n".into())
        );
        assert_eq!(home(desk, ".claude/projects/p/memory/MEMORY.md"), "(missing)");
        let ids = desk.ids();
        let listed = desk.recant("list --all --json").ok().json();
        let row = |id: &str| listed["sessions"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone();
        let session = row(&ids[0]);
        assert_eq!((session["name"].as_str(), session["command"].as_str()), (Some("claude-tree"), Some("claude")), "{listed}");
        assert_eq!(row(&ids[1])["status"], "committed");
        let left = desk.recant(&format!("diff {} --name-only", ids[0])).ok().stdout();
        assert!(
            left.contains("lib.rs") && left.contains("MEMORY.md") && !left.contains("s.jsonl") && !left.contains(".claude.json"),
            "{left}"
        );
        desk.recant(&format!("rollback {}", ids[1])).ok();
        assert_eq!(home(desk, ".claude.json"), "{\"numStartups\": 1}\n");
    });
}

#[test]
fn a_record_with_a_planted_server_stays_held_and_so_does_one_that_somebody_else_has_changed() {
    with_agent(|desk| {
        let script = r#"echo '{"numStartups": 2, "mcpServers": {"x": {"command": "sh"}}}' > ~/.claude.json
mkdir -p ~/.claude/projects/p; echo '{}' > ~/.claude/projects/p/s.jsonl; echo mine > ~/.claude/history.jsonl; say go"#;
        plan(desk, script);
        let mut at_work = AtWork::begin(desk);
        at_work.waits("go");
        desk.bare(&desk.world.root().join("home"), "echo theirs > .claude/history.jsonl");
        at_work.goes_on();
        let said = String::from_utf8(at_work.child.wait_with_output().unwrap().stderr).unwrap();
        let plain = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains("~/.claude.json is held: Claude Code obeys mcpServers in it, and that was changed"), "{said}");
        assert!(plain.contains("~/.claude/history.jsonl is held: another process changed it meanwhile"), "{said}");
        assert!(plain.contains("1 file of Claude Code's records committed"), "{said}");
        assert_eq!(home(desk, ".claude.json"), "{\"numStartups\": 1}\n");
        assert_eq!(home(desk, ".claude/history.jsonl"), "theirs\n");
        assert_eq!(home(desk, ".claude/projects/p/s.jsonl"), "{}\n");
    });
}

#[test]
fn the_settings_replace_what_stays_real_and_what_is_recorded() {
    with_agent(|desk| {
        desk.world.config("[agent.claude]\npass = ['~/.claude/projects']\nrecords = ['~/notes/**']\n");
        let script = r#"echo 2 > ~/.claude/.credentials.json; echo t > ~/.claude/projects/t; mkdir ~/notes; echo n > ~/notes/n; echo '{"numStartups": 2}' > ~/.claude.json"#;
        held(desk, script).ok();
        assert_eq!(home(desk, ".claude/.credentials.json"), "1\n");
        assert_eq!((home(desk, ".claude/projects/t"), home(desk, "notes/n")), ("t\n".into(), "n\n".into()));
        assert_eq!(home(desk, ".claude.json"), "{\"numStartups\": 1}\n");
        let shown = desk.recant("config --json").ok().stdout();
        assert!(shown.contains("agent.claude.pass") && shown.contains("agent.claude.records"), "{shown}");
        desk.world.config("[agent.clod]\npass = []\n");
        let said = desk.recant("status").with(1);
        assert!(said.stderr().contains("agent.clod.pass"), "{said}");
    });
}

#[test]
fn secrets_are_closed_to_it_but_for_its_own_credentials() {
    with_agent(|desk| {
        let script = "printf -- '-----BEGIN PRIVATE KEY-----\nsesame\n' > key; mkdir -p .ssh .codex; mv key .ssh/id_rsa; \
                      echo sesame > .codex/auth.json; echo sesame > .netrc";
        desk.bare(&desk.world.root().join("home"), script);
        let reads = "cat ~/.claude/.credentials.json; cat ~/.ssh/id_rsa ~/.codex/auth.json ~/.netrc; true";
        let said = held(desk, reads).ok();
        assert_eq!(said.stdout(), "1\n", "{said}");
        assert!(said.stderr().contains("closed to it: 3 paths (an agent's credentials, passwords, ssh keys)"), "{said}");
        let said = agent(desk, "--open ../home/.ssh --open ../home/.codex/auth.json claude").run().ok();
        assert_eq!(said.stdout().matches("sesame").count(), 2, "{said}");
        // Also where the session holds them.
        let login = ["run", "--session", "claude-tree", "--", "sh", "-c", "echo 2 > ~/.claude/.credentials.json; echo h > h"];
        desk.call(login).run().ok();
        let said = agent(desk, "--session claude-tree claude").run().ok();
        assert_eq!(said.stdout(), "2\n", "{said}");
        desk.world.config("[agent]\nclosed = []\n");
        assert_eq!(held(desk, reads).ok().stdout().matches("sesame").count(), 3);
    });
}

#[test]
fn a_second_session_gets_a_number_and_a_named_one_goes_on_with_its_turns() {
    with_agent(|desk| {
        held(desk, "prompt 1; n=1 shell 'echo 1 > one'; stop").ok();
        held(desk, "prompt 1; n=1 shell 'echo 1 > two'; stop").ok();
        let names = |desk: &Desk| {
            let listed = desk.recant("list --json").ok().json();
            let mut names: Vec<_> =
                listed["sessions"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap_or("").to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(desk), ["claude-tree", "claude-tree-2"]);
        plan(desk, "ls; prompt 2; n=2 shell 'echo 2 >> one'; stop; recant agent turns; recant agent undo 2 -y; cat one");
        let said = agent(desk, "--session claude-tree claude --continue").run().ok();
        let out = said.stdout();
        assert!(out.contains("one") && !out.contains("two"), "{said}");
        assert!(out.contains("do number 1") && out.contains("do number 2"), "{said}");
        assert!(out.ends_with("1\n"), "turn 2 is undone: {said}");
        // From outside, once it has ended: a command in the session has the same store.
        desk.recant("agent run --session claude-tre claude").with(125);
        let said = desk.call(["run", "--session", "claude-tree", "--", "recant", "agent", "undo", "1", "-y"]).run();
        assert!(!desk.paths("claude-tree").contains(&"one".into()), "{said}");
    });
}

#[test]
fn a_name_is_free_again_once_its_session_is_committed_rolled_back_or_discarded() {
    with_agent(|desk| {
        let begun = || {
            let said = held(desk, "echo more >> lib.rs").ok();
            assert!(said_of(&said).contains("named claude-tree;"), "{said}");
            desk.ids().last().unwrap().clone()
        };
        let id = begun();
        desk.recant(&format!("discard {id} -y")).ok();
        let id = begun();
        desk.recant(&format!("commit {id}")).ok();
        desk.recant(&format!("rollback {}", begun())).with(1);
        let said = held(desk, "echo more > more").ok();
        assert!(said_of(&said).contains("named claude-tree-2"), "the third is pending: {said}");
        desk.recant("commit claude-tree-2").ok();
        desk.recant("rollback claude-tree-2").ok();
        let said = held(desk, "echo more > more").ok();
        assert!(said_of(&said).contains("named claude-tree-2"), "{said}");
    });
}

#[test]
fn an_agent_that_is_not_installed_is_not_announced_and_leaves_no_session() {
    each(|desk| {
        let said = desk.call(["agent", "run", "claude"]).env("PATH", "/nowhere").run().with(127);
        assert!(said_of(&said).contains("claude: command not found") && said_of(&said).contains("not started"), "{said}");
        assert!(!said.stderr().contains("is held in session"), "{said}");
        assert!(desk.ids().is_empty());
    });
}

#[test]
fn what_it_leaves_running_ends_with_it_and_a_killed_recant_leaves_no_door() {
    with_agent(|desk| {
        let said = held(desk, "setsid sleep 1000 & echo $! > pid; echo more >> lib.rs").ok();
        assert!(said.stderr().contains("held in session"), "{said}");
        plan(desk, "echo again >> lib.rs; say ready");
        let mut at_work = AtWork::begin(desk);
        at_work.waits("ready");
        let id = desk.ids().last().unwrap().clone();
        let door = desk.world.session(&id).join("inner/door");
        let is_open = || std::os::unix::net::UnixStream::connect(&door).is_ok();
        assert!(is_open());
        at_work.child.kill().unwrap();
        at_work.child.wait().unwrap();
        until("the door is shut", || !is_open());
        assert_eq!(desk.paths(&id), ["lib.rs"]);
        desk.recant(&format!("discard {id} --now -y")).ok();
        assert!(!desk.world.session(&id).join("inner").exists());
    });
}

/// Asks at a door, as anything inside may: these words, in a frame by hand. The exit status is missing where no verb was carried out.
fn asks(door: &std::path::Path, request: &serde_json::Value) -> (String, String, Option<u8>) {
    let mut door = std::os::unix::net::UnixStream::connect(door).unwrap();
    let body = request.to_string();
    let mut frame = vec![b'r'];
    frame.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    frame.extend(body.as_bytes());
    door.write_all(&frame).unwrap();
    let mut from = BufReader::new(door);
    let mut hello = String::new();
    from.read_line(&mut hello).unwrap();
    assert!(hello.starts_with("recant-far "), "{hello}");
    let (mut out, mut errors, mut status) = (Vec::new(), Vec::new(), None);
    loop {
        let mut head = [0; 5];
        if from.read_exact(&mut head).is_err() {
            break;
        }
        let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize];
        from.read_exact(&mut body).unwrap();
        match head[0] {
            b'o' => out.extend(body),
            b'x' => errors.extend(body),
            b'q' => status = Some(body[0]),
            _ => {}
        }
    }
    (String::from_utf8(out).unwrap(), String::from_utf8(errors).unwrap(), status)
}

#[test]
fn the_door_shows_sessions_and_does_nothing_else_whoever_asks() {
    with_agent(|desk| {
        desk.recant("session new").ok();
        let other = desk.ids()[0].clone();
        plan(desk, "echo more >> lib.rs; say ready");
        let mut at_work = AtWork::begin(desk);
        at_work.waits("ready");
        let id = desk.ids().last().unwrap().clone();
        let door = desk.world.session(&id).join("inner/door");
        let request = |words: &[&str], more: serde_json::Value| {
            let mut request = serde_json::json!({ "protocol": 3, "argv": words, "color": [], "terminals": [], "input": false });
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            request
        };
        let none = serde_json::json!({});
        let (out, errors, status) = asks(&door, &request(&["diff", &id, "--stat"], none.clone()));
        assert!(out.contains("lib.rs") && status == Some(0), "{out}{errors}");
        let file = desk.world.path("lib.rs");
        let (out, errors, status) = asks(&door, &request(&["cat", &id, file.to_str().unwrap()], none.clone()));
        assert!(out == "one\nmore\n" && status == Some(0), "{out}{errors}");
        // Neither another store nor variables of the near side count.
        let elsewhere = desk.world.root().join("elsewhere");
        let more = serde_json::json!({ "store": elsewhere, "env": [["RECANT_STORE", elsewhere.to_str()]] });
        let (out, _, status) = asks(&door, &request(&["diff", &id, "--stat"], more));
        assert!(out.contains("lib.rs") && status == Some(0), "{out}");
        let file = desk.world.root().join("written");
        let file = file.to_str().unwrap();
        for words in [
            &["commit", &*id][..],
            &["discard", &id, "-y"],
            &["run", "--", "touch", file],
            &["diff", &id, "--html", "-o", file],
            &["diff", &id, "--tool=touch"],
            &["--store", elsewhere.to_str().unwrap(), "diff", &id],
            &["-H", "local", "diff", &id],
            &["--far", "::", "diff", &id],
            &["review", &other],
            &["session", "export", &other],
            &["far", "--held"],
            &["diff", &id, "--no-such-option"],
            &[],
        ] {
            let (out, errors, status) = asks(&door, &request(words, none.clone()));
            assert!(errors.contains("inside a run recant only shows"), "{words:?}: {out}{errors}");
            assert_eq!((out, status), (String::new(), None), "{words:?}");
        }
        // What is no request ends the connection, and the door stays open.
        let mut noise = std::os::unix::net::UnixStream::connect(&door).unwrap();
        noise.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut all = Vec::new();
        let _cut = noise.read_to_end(&mut all);
        assert_eq!(asks(&door, &request(&["steps", &id], none)).2, Some(0));
        assert!(!std::path::Path::new(file).exists() && !elsewhere.exists());
        at_work.goes_on();
        assert!(at_work.child.wait().unwrap().success());
        assert_eq!(desk.world.read("lib.rs"), "one\n");
        assert!(std::os::unix::net::UnixStream::connect(&door).is_err(), "it is shut");
    });
}

/// What is said about records, in one line.
fn said_of(said: &Said) -> String {
    said.stderr().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_only_looks_like_a_record_stays_held_whatever_it_is_and_the_agent_s_status_is_kept() {
    with_agent(|desk| {
        let home_of = desk.world.root().join("home");
        desk.bare(
            &home_of,
            "echo old > .claude/history.jsonl; echo '{}' > .claude/projects/p/old.jsonl; ln -s x .claude/projects/p/link.jsonl",
        );
        for (script, why) in [
            ("printf '\\357\\273\\277{}' > ~/.claude.json", "what cannot be read as JSON"),
            ("echo '{\"a\":1e999, \"mcpServers\": {\"x\": 1}}' > ~/.claude.json", "what cannot be read as JSON"),
            ("echo '{\"oauthAccount\": {\"id\": \"x\"}}' > ~/.claude.json", "oauthAccount"),
            ("cp /bin/sh ~/.claude/projects/p/sh.jsonl; chmod 4755 ~/.claude/projects/p/sh.jsonl", "its mode gives more"),
            ("echo x > ~/.claude/projects/p/x.jsonl; chmod 755 ~/.claude/projects/p/x.jsonl", "its mode gives more"),
            ("ln -s ~/.bashrc ~/.claude/projects/p/x.jsonl", "it is not a regular file"),
            ("mkfifo ~/.claude/projects/p/x.jsonl", "it is not a regular file"),
            ("echo new > ~/.claude/history.jsonl", "lines that were in it are gone"),
            ("rm ~/.claude/projects/p/old.jsonl", "it was deleted"),
            ("cd ~/.claude/projects/p; echo 1 > a.jsonl; ln a.jsonl b.jsonl", "it has several names"),
            ("cd ~/.claude/projects/p; mkdir -m 777 sub; echo 1 > sub/a.jsonl", "open to others"),
            ("truncate -s 20M ~/.claude/projects/p/x.jsonl", "it is larger than"),
            ("mkdir ~/.claude/projects/p/x.jsonl", ""),
        ] {
            let before = common::manifest(&home_of);
            plan(desk, &format!("{script}; exit 5"));
            let said = agent(desk, "claude").run().with(5);
            assert!(said_of(&said).contains(why), "{script}: {said}");
            assert!(!said_of(&said).contains("committed"), "{script}: {said}");
            assert!(said_of(&said).contains("held in session"), "{script}: {said}");
            let mut after = common::manifest(&home_of);
            // The plan itself is the test's.
            let mut plain = before.clone();
            for manifest in [&mut after, &mut plain] {
                manifest.0.remove(&b"plan"[..]);
            }
            after.without_directory_times().assert_same(&plain.without_directory_times(), script);
            let id = desk.ids().last().unwrap().clone();
            desk.recant(&format!("discard {id}")).ok();
        }
    });
}

#[test]
fn what_other_conversations_and_projects_read_back_stays_held() {
    with_agent(|desk| {
        let home_of = desk.world.root().join("home");
        let before = "mkdir -p projects/-other file-history/s9 file-history/old tasks; echo a > projects/-other/o.jsonl; \
                      echo a > file-history/s9/x@v1; echo a > file-history/old/x@v1; echo a > projects/p/old.jsonl";
        desk.bare(&home_of.join(".claude"), before);
        let script = "cd ~/.claude; echo b >> projects/-other/o.jsonl; echo b >> file-history/s9/x@v1; echo b > file-history/s9/x@v2; \
                      echo b > projects/p/s9.jsonl; mkdir tasks/s8; echo b > tasks/s8/1.json; \
                      echo b >> projects/p/old.jsonl; echo b >> file-history/old/x@v1; echo b > file-history/old/x@v2; \
                      echo b > projects/p/new.jsonl; mkdir file-history/new todos; echo b > file-history/new/x@v1; \
                      echo '[]' > todos/new-agent-new.json";
        let said = held(desk, script).ok();
        let of = |name: &str| home(desk, &format!(".claude/{name}"));
        for real in ["projects/p/s9.jsonl", "projects/p/new.jsonl", "file-history/new/x@v1", "file-history/old/x@v2"] {
            assert_eq!(of(real), "b\n", "{real}: {said}");
        }
        assert_eq!((of("projects/p/old.jsonl"), of("todos/new-agent-new.json")), ("a\nb\n".into(), "[]\n".into()), "{said}");
        for held in ["projects/-other/o.jsonl", "file-history/s9/x@v1", "file-history/old/x@v1"] {
            assert_eq!(of(held), "a\n", "{held}: {said}");
        }
        assert_eq!((of("file-history/s9/x@v2"), of("tasks/s8/1.json")), ("(missing)".into(), "(missing)".into()), "{said}");
        assert!(said_of(&said).contains("it may belong to another conversation"), "{said}");
    });
}

#[test]
fn records_are_appended_to_and_last_means_the_work() {
    with_agent(|desk| {
        let home_of = desk.world.root().join("home");
        desk.bare(&home_of, "echo old > .claude/history.jsonl");
        // Nothing but records: nothing is left to hold.
        let said = held(desk, "echo new >> ~/.claude/history.jsonl; mkdir ~/.claude/projects/memory; echo x > ~/.claude/projects/memory/m.jsonl; rm -r ~/.claude/projects/memory").ok();
        assert!(said_of(&said).contains("1 file of Claude Code's records committed; recant rollback"), "{said}");
        assert!(said_of(&said).contains("no file change"), "{said}");
        assert_eq!(home(desk, ".claude/history.jsonl"), "old\nnew\n");
        held(desk, "echo newer >> ~/.claude/history.jsonl; echo more >> lib.rs; mkdir -p ~/.claude/projects/p/memory; echo x > ~/.claude/projects/p/memory/m.jsonl").ok();
        let last = desk.recant("diff last --name-only").ok().stdout();
        assert!(last.contains("lib.rs") && last.contains("memory/m.jsonl") && !last.contains("history"), "{last}");
        // The agent did it last: without a terminal a person names it.
        let said = desk.recant("commit last").with(1).stderr();
        let typed = said.lines().last().unwrap_or_default().trim().strip_prefix("recant ").expect("the command");
        desk.recant(typed).ok();
        assert_eq!(desk.world.read("lib.rs"), "one\nmore\n");
        desk.recant("undo -y").ok();
        assert_eq!(
            (desk.world.read("lib.rs"), home(desk, ".claude/history.jsonl")),
            ("one\n".into(), "old\nnew\nnewer\n".into())
        );
        // A record of the same content is none.
        let said = held(desk, "cp ~/.claude/history.jsonl x; cp x ~/.claude/history.jsonl; rm x").ok();
        assert!(!said_of(&said).contains("committed"), "{said}");
    });
}

#[test]
fn an_agent_that_calls_has_its_records_held() {
    with_agent(|desk| {
        plan(desk, "echo new >> ~/.claude/history.jsonl");
        let said = agent(desk, "claude").env("CLAUDECODE", "1").run().ok();
        assert!(said_of(&said).contains("are held: an agent called recant (CLAUDECODE is set)"), "{said}");
        assert_eq!(home(desk, ".claude/history.jsonl"), "(missing)");
    });
}

#[test]
fn in_what_stays_real_and_in_the_own_store_no_device_can_be_used() {
    if !common::is_root("device nodes are made by root alone") {
        return;
    }
    let mut own = Desk::new(desk::Who::Root);
    desk(&mut own);
    own.bare(&own.world.root().join("home"), "mkdir .claude/telemetry");
    let script = r#"for place in "$RECANT_STORE" ~/.claude/telemetry; do
mknod "$place/null" c 1 3 && { echo x > "$place/null" && echo open || echo closed; }; rm -f "$place/null"; grep " $place " /proc/self/mountinfo | tail -1 | grep -c nosuid; done"#;
    let said = held(&own, script).ok();
    assert_eq!(said.stdout(), "closed\n1\nclosed\n1\n", "{said}");
}

#[test]
fn a_spoilt_own_store_is_made_anew_and_a_full_one_does_not_keep_from_a_discard() {
    with_agent(|desk| {
        held(desk, "prompt 1; n=1 shell 'echo 1 > one'; stop; echo garbage > $RECANT_STORE/format; rm -f $RECANT_STORE/door; mkdir $RECANT_STORE/door").ok();
        plan(desk, "ls; recant status");
        let said = agent(desk, "--session claude-tree claude").run().ok();
        assert!(said.stdout().contains("one\n") && said.stdout().contains("running"), "{said}");
        assert!(said_of(&said).contains("was damaged"), "{said}");
        // A command in the session that is no agent's sees what is held, too.
        let said = desk.call(["run", "--session", "claude-tree", "--", "sh", "-c", "cd /; recant diff last --stat"]).run().ok();
        assert!(said.stdout().contains("one | 1 +"), "{said}");
    });
}

#[test]
fn inside_paths_are_those_of_the_directory_that_one_is_in() {
    with_agent(|desk| {
        let said = held(desk, "mkdir sub; echo 1 > sub/file; echo 2 > file; cd sub; recant diff last file --stat; recant diff --stat | head -1 > /dev/null; echo $?").ok();
        assert!(said.stdout().contains("sub/file | 1 +") && !said.stdout().contains("tree/file |"), "{said}");
        assert!(!said.stderr().contains("does not answer"), "{said}");
    });
}

#[test]
fn undos_of_an_agent_in_its_own_turns_are_no_part_of_them() {
    with_agent(|desk| {
        let script = r#"for n in 1 2 3; do prompt $n; n=$n shell "echo $n > f$n"; stop; done
prompt 4; n=4 shell 'recant agent undo 3 -y'; stop; ls
prompt 5; n=5 shell 'recant agent undo 2 -y; echo 5 > five'; stop; ls
prompt 6; n=6 shell 'recant agent undo -y'; stop; ls
prompt 7; n=7 shell 'recant agent undo 1 -y'; stop; ls; recant agent turns"#;
        let said = held(desk, script).ok();
        let out = said.stdout();
        let lists: Vec<String> =
            out.split("README\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert!(lists[1].starts_with("empty f1 f2 lib.rs run.sh"), "{said}");
        assert!(lists[2].starts_with("empty f1 five lib.rs run.sh"), "{said}");
        // The newest that changed something: what the fifth made beside its undo.
        assert!(lists[3].starts_with("empty f1 lib.rs run.sh"), "{said}");
        assert!(lists[4].starts_with("empty lib.rs run.sh"), "{said}");
    });
}

#[test]
fn a_server_of_mcp_inside_looks_at_what_is_held_and_leaves_the_decision_outside() {
    with_agent(|desk| {
        let call = |n: u32, name: &str, arguments: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#)
        };
        let lines = [
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"elicitation":{}}}}"#.to_owned(),
            call(1, "diff", "{}"),
            call(2, "changes", "{}"),
            call(3, "steps", "{}"),
            call(4, "commit", r#"{"session":"last"}"#),
            call(5, "hold_run", r#"{"shell":"true"}"#),
        ];
        let said = held(desk, &format!("echo in > made\nrecant mcp <<'EOT'\n{}\nEOT", lines.join("\n"))).ok();
        let mut answers: Vec<serde_json::Value> =
            said.stdout().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        answers.sort_by_key(|answer| answer["id"].as_u64());
        assert_eq!(answers.len(), 6, "{said}");
        let told = |n: usize| -> serde_json::Value {
            serde_json::from_str(answers[n]["result"]["content"][0]["text"].as_str().expect("text")).expect("JSON")
        };
        assert!(told(1)["patch"].as_str().is_some_and(|patch| patch.contains("+in")), "{said}");
        assert!(told(2)["changes"].to_string().contains("made"), "{said}");
        assert!(told(4)["remedy"].as_str().unwrap().starts_with("a person does that outside: recant review "), "{said}");
        assert!(told(5)["message"].as_str().unwrap().contains("run it without hold_run"), "{said}");
        assert!(!desk.world.exists("made"));
    });
}

#[test]
fn the_script_for_editors_starts_their_own_agent_or_that_of_the_path_held() {
    with_agent(|desk| {
        let (root, page) = (desk.world.root().display().to_string(), include_str!("../../docs/howto/editor.md"));
        let script = page.split("    #!/bin/sh").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("the script");
        std::fs::write(format!("{root}/bin/held-claude"), format!("#!/bin/sh{script}\n")).unwrap();
        std::fs::create_dir(format!("{root}/own")).unwrap();
        std::fs::write(
            format!("{root}/own/claude"),
            CLAUDE.replace("event SessionStart", "echo brought along; event SessionStart"),
        )
        .unwrap();
        for file in ["own", "own/claude", "bin/held-claude"] {
            std::fs::set_permissions(format!("{root}/{file}"), PermissionsExt::from_mode(0o755)).unwrap();
        }
        plan(desk, "echo \"got: $*\"; echo held > made");
        let starts = |words: &str| desk.give(desk.world.program("sh", ["-c", &format!("held-claude {words}")])).run();
        let said = starts(&format!("{root}/own/claude --output-format x"));
        assert!(said.stdout().contains("brought along") && said.stdout().contains("got: --output-format x"), "{said}");
        let said = starts("--output-format x");
        assert!(!said.stdout().contains("brought along") && said.stdout().contains("got: --output-format x"), "{said}");
        assert!(!desk.world.exists("made"));
    });
}

/// A server that answers every request with this word; its port.
fn answering(word: &'static str) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut asked in listener.incoming().flatten() {
            let _request = asked.read(&mut [0; 4096]);
            let length = word.len();
            let _gone = write!(asked, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{word}");
        }
    });
    port
}

#[test]
fn an_agent_with_a_list_of_hosts_reaches_its_model_and_these_and_without_one_all() {
    if !desk::has("curl") {
        return;
    }
    with_agent(|desk| {
        let [model, listed, other] = ["model", "listed", "other"].map(answering);
        plan(desk, &format!("for port in {model} {listed} {other}; do curl -s http://localhost:$port/; echo; done"));
        let ask = |options: &str| {
            let call =
                agent(desk, &format!("{options} claude")).env("ANTHROPIC_BASE_URL", format!("http://localhost:{model}/v1"));
            call.run().ok()
        };
        let refused = |port: u16| format!("recant: localhost:{port} is not listed by --network\n");
        let one = format!("--network localhost:{listed}");
        assert_eq!(ask("").stdout(), "model\nlisted\nother\n");
        assert_eq!(ask(&one).stdout(), format!("model\nlisted\n{}\n", refused(other)));
        desk.world.config("agent.network = []\n");
        assert_eq!(ask("").stdout(), format!("model\n{}\n{}\n", refused(listed), refused(other)));
        let said = ask(&one);
        assert_eq!(said.stdout(), format!("model\nlisted\n{}\n", refused(other)));
        assert!(said.stderr().contains(&format!("refused: localhost:{other}; --network localhost:{other} opens it")), "{said}");
        desk.world.config(&format!("agent.network = ['localhost:{listed}']\n"));
        assert_eq!(ask(&format!("--network localhost:{other}")).stdout(), "model\nlisted\nother\n");
    });
}
