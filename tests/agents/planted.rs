//! Files that recant, or a program that it starts, reads at a person's verb, and that an agent can write: tests/README.md, "What an agent can
//! plant". A row a file: after a turn on the real tree the person's verbs run nothing of it and the undo takes it back or names it; held, it
//! is nowhere but in the session, and marked in the list that the person looks at.

use crate::agent::{Agent, pause, repository, run};
use crate::common::{World, can_run, skip};

/// The file, a script that plants it, and why a list marks it. `$CANARY` is a program that leaves a trace. In `$HOME` alone if it begins
/// with `~/`.
const PLANTS: &[(&str, &str, Option<&str>)] = &[
    (".recantignore", "echo '*' > .recantignore", Some("recant obeys it")),
    (".gitignore", "echo '*' > .gitignore", None),
    (".git/info/exclude", "echo '*' > .git/info/exclude", None),
    (".git/info/attributes", "echo '* diff=x filter=x' > .git/info/attributes", Some("git obeys it")),
    (".gitattributes", "echo '* diff=x filter=x' > .gitattributes", None),
    (
        ".git/config",
        "for k in core.fsmonitor core.pager core.editor core.sshCommand diff.external diff.x.textconv filter.x.clean filter.x.smudge \
         gpg.program alias.rev-list sequence.editor; do git config $k $CANARY; done; git config log.showSignature true",
        Some("git obeys it"),
    ),
    (
        ".git/hooks/post-checkout",
        "mkdir -p .git/hooks; for h in post-checkout post-index-change reference-transaction fsmonitor-watchman; do cp $CANARY .git/hooks/$h; done",
        Some("git runs it"),
    ),
    (".git/commondir", "echo ../elsewhere > .git/commondir", None),
    (
        "sub/.git",
        "mkdir -p sub; echo \"gitdir: $PWD/bare\" > sub/.git; git init -q --bare bare; git -C bare config core.fsmonitor $CANARY",
        Some("git obeys it"),
    ),
    ("src/.git", "git init -q src; git -C src add -A; git -C src config core.fsmonitor $CANARY", None),
    ("src/HEAD", "mkdir -p src/objects src/refs; echo 'ref: refs/heads/main' > src/HEAD", None),
    (".git/HEAD", "echo 'ref: refs/heads/../../../../etc/passwd' > .git/HEAD", None),
    (".git/packed-refs", "echo garbage > .git/packed-refs", None),
    (".git/index", "echo garbage > .git/index", None),
    (
        ".claude/settings.json",
        "mkdir -p .claude; echo '{\"disableAllHooks\":true}' > .claude/settings.json",
        Some("an agent obeys it"),
    ),
    (".mcp.json", "echo '{\"mcpServers\":{}}' > .mcp.json", Some("an agent starts its servers")),
    (".envrc", "echo $CANARY > .envrc", Some("shells run it")),
    (
        "~/.config/recant/config.toml",
        "mkdir -p ~/.config/recant; printf \"[agent]\\ncommit = 'allow'\\n[diff]\\ntool = '$CANARY'\\n\" > ~/.config/recant/config.toml",
        Some("recant obeys it"),
    ),
    ("~/.bashrc", "echo $CANARY > ~/.bashrc", Some("shells run it")),
    ("~/.ssh/config", "mkdir -p ~/.ssh; echo \"ProxyCommand $CANARY\" > ~/.ssh/config", Some("ssh obeys it")),
    ("~/.gitconfig", "printf '[core]\\nfsmonitor = %s\\n' $CANARY > ~/.gitconfig", Some("git obeys it")),
    (
        "~/.local/bin/less",
        "mkdir -p ~/.local/bin; for p in less git man ssh vi; do cp $CANARY ~/.local/bin/$p; done",
        Some("a program in PATH"),
    ),
    ("~/.lesskey", "printf '#command\\nq shell %s\\n' $CANARY > ~/.lesskey", None),
    ("name", "touch \"$(printf 'x\\033]0;owned\\007\\r\\342\\200\\256txt')\"; echo > name", None),
];

/// The verbs of a person after a turn, and before any decision.
const AFTER_A_TURN: &[&str] = &[
    "status",
    "list",
    "log",
    "agent turns",
    "agent status",
    "agent diff",
    "agent undo --dry-run",
    "snapshot list",
    "snapshot show",
    "snapshot create",
    "snapshot diff 0",
    "snapshot restore 0 --dry-run",
    "snapshot create --with-vcs",
    "recover",
    "prune --dry-run",
    "doctor",
];

/// The same while it is held.
const WHILE_HELD: &[&str] = &[
    "status",
    "list",
    "log",
    "show last",
    "show last -v",
    "diff last",
    "diff last --stat",
    "diff last --conflicts",
    "commit last --dry-run",
    "cat last a",
    "checkpoint show last",
    "recover",
    "prune --dry-run",
    "doctor",
];

/// A project, and the script that plants, with the canary's path in it.
fn world(script: &str) -> (World, String) {
    let mut world = World::new();
    let home = world.root().join("home");
    std::fs::create_dir_all(&home).expect("a home");
    world.set("HOME", &home).set("PATH", format!("{}/.local/bin:{}", home.display(), std::env::var("PATH").expect("a PATH")));
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "GIT_CONFIG_GLOBAL"] {
        world.unset(name);
    }
    let (canary, ran) = (world.root().join("canary"), world.root().join("ran"));
    std::fs::write(&canary, format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", ran.display())).expect("a program");
    run(&world, &format!("chmod 755 {}", canary.display()));
    repository(&world);
    world.write("a", "a\n").write("src/main", "m\n");
    run(&world, "git add -A; git -c user.name=a -c user.email=a@b commit -qm one");
    pause();
    let script = format!("CANARY={}; {script}", canary.display());
    (world, script)
}

fn types(world: &World, path: &str, verbs: &[&str]) {
    for words in verbs {
        let said = world.recant(words);
        assert!(said.status <= 4, "{path}: {words}: {said}");
        let odd = |byte: &u8| *byte == 0x1b || *byte == b'\r' || *byte == 7;
        assert!(!said.out.iter().chain(&said.err).any(odd), "{path}: {words}: {said}");
        let ran = std::fs::read_to_string(world.root().join("ran")).unwrap_or_default();
        assert_eq!(ran, "", "{path}: {words} ran it");
    }
}

#[test]
fn what_an_agent_plants_on_the_real_tree_is_not_obeyed_and_goes_back_or_is_named() {
    for (path, script, _) in PLANTS.iter().filter(|(path, ..)| !path.starts_with("~/")) {
        let (world, script) = world(script);
        let agent = Agent::begin(&world, "claude", "s");
        agent.prompt("go");
        agent.shell(&format!("{script}; echo b > a; echo n > src/main"));
        agent.stop();
        types(&world, path, AFTER_A_TURN);
        let said = world.recant("agent undo -y --json");
        assert!([0, 4].contains(&said.status), "{path}: {said}");
        assert_eq!((world.read("a"), world.read("src/main")), ("a\n".into(), "m\n".into()), "{path}: {said}");
        let named = said.json().to_string();
        assert!(named.contains(path) || path.starts_with(".git/") && named.contains("/.git\""), "{path}: {said}");
    }
}

#[test]
fn rules_that_a_turn_writes_count_from_the_agents_next_session_on() {
    for (rules, name) in [(".recantignore", "x.txt"), (".gitignore", "large.txt")] {
        let (world, _) = world("");
        let is_covered = |agent: &Agent<'_>, n: usize| {
            agent.prompt(&format!("turn {n}"));
            agent.shell(&format!("echo '*.txt' > {rules}; head -c 1100000 /dev/urandom > large.txt; date +%N > x.txt"));
            agent.stop();
            pause();
            let shown = world.recant(&format!("agent diff {n} --name-only")).stdout();
            shown.lines().any(|line| line.ends_with(&format!("/{name}")))
        };
        let first = Agent::begin(&world, "claude", "s");
        let mut covered = vec![is_covered(&first, 1), is_covered(&first, 2)];
        covered.push(is_covered(&Agent::begin(&world, "claude", "t"), 3));
        assert_eq!(covered, [true, true, false], "{rules}");
    }
}

#[test]
fn rules_that_a_person_writes_between_two_turns_count_at_once() {
    let (world, _) = world("");
    let agent = Agent::begin(&world, "claude", "s");
    for (n, covered) in [(1, true), (2, false)] {
        agent.prompt(&format!("turn {n}"));
        agent.shell("date +%N > x.txt");
        agent.stop();
        pause();
        let shown = world.recant(&format!("agent diff {n} --name-only")).stdout();
        assert_eq!(shown.lines().any(|line| line.ends_with("/x.txt")), covered, "turn {n}: {shown}");
        world.write(".recantignore", "*.txt\n");
        pause();
    }
}

#[test]
fn what_a_held_command_plants_is_not_obeyed_while_it_is_held_and_is_marked() {
    if !can_run() {
        return skip("what a held command plants: recant run does not work here");
    }
    for (path, script, why) in PLANTS {
        let (world, script) = world(script);
        world.call(["run", "-q", "--", "sh", "-ec", &format!("{script}; echo b > a")]).run().ok();
        types(&world, path, WHILE_HELD);
        let shown = world.recant("show last --json").ok().json();
        let name = path.trim_start_matches("~/");
        let of = |row: &&serde_json::Value| row["path"].as_str().is_some_and(|path| path.ends_with(&format!("/{name}")));
        let row = shown["changes"].as_array().expect("a list").iter().find(of);
        let row = row.unwrap_or_else(|| panic!("{path} is not held: {shown}"));
        assert_eq!(row["danger"].as_str(), *why, "{path}: {row}");
    }
}
