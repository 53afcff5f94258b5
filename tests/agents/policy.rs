//! `agent.policy`: what an agent may commit by itself, and all that a hostile one tries.

use serde_json::json;

use crate::common::{Said, World, is_root};

/// A world with a project whose `docs` is there, and a policy.
fn world(policy: &str) -> World {
    let world = World::new();
    world.mkdir(".git").mkdir("docs").write("docs/old.md", "old\n").write("src/a.rs", "a\n");
    of_person(world.config(&format!("[agent.policy]\n{policy}\n")));
    world
}

/// Makes the store as a person does, by changing something.
fn of_person(world: &World) {
    world.recant("snapshot create").ok();
}

fn agent(world: &World, words: &str) -> Said {
    world.call(words.split(' ')).env("CLAUDECODE", "1").run()
}

/// Has an agent run a line in a new session named `s`.
fn held(world: &World, line: &str) {
    named(world, "s", line);
}

fn named(world: &World, name: &str, line: &str) {
    world.call(["run", "-q", "--session", name, "--", "sh", "-c", line]).env("CLAUDECODE", "1").run().ok();
}

/// The reason why nothing of a line fits a policy for all in `docs`.
#[track_caller]
fn waits(line: &str) -> String {
    let world = world("commit = ['docs/**']");
    waits_in(&world, line)
}

#[track_caller]
fn waits_in(world: &World, line: &str) -> String {
    let before = world.manifest();
    held(world, line);
    let said = agent(world, "commit s").with(1);
    world.manifest().assert_same(&before, line);
    let text = said.stderr();
    let (_, why) = text.split_once("real; ").unwrap_or_else(|| panic!("{said}"));
    why.lines().next().unwrap_or_default().replace(&format!("{}/", world.tree().display()), "")
}

#[test]
fn what_fits_is_committed_and_the_rest_waits_for_the_person() {
    let world = world("commit = ['docs/**', '**/*.md']");
    held(&world, "echo new > docs/old.md; mkdir docs/sub; echo x > docs/sub/x; echo m > src/m.md; echo b > src/a.rs; rm -r .git");
    let said = agent(&world, "commit s").with(4);
    assert_eq!((&*world.read("docs/old.md"), &*world.read("docs/sub/x"), &*world.read("src/m.md")), ("new\n", "x\n", "m\n"));
    assert!(world.read("src/a.rs") == "a\n" && world.exists(".git"));
    let text = said.stderr();
    assert!(text.contains("src/a.rs: waits for a person: no glob of agent.policy names it"), "{said}");
    let command =
        text.lines().find_map(|line| line.split_once("terminal: recant ")).expect("a command for the person").1.to_owned();
    let entries = world.recant("log --json").ok().json()["entries"].clone();
    assert_eq!((&entries[0]["policy"], &entries[0]["by"]["agent"]), (&json!(["**/*.md", "docs/**"]), &json!("claude")));
    assert!(world.recant("log").ok().stdout().contains("  agent.policy: **/*.md, docs/**\n"));
    // It is the session's rest alone, as it stands now.
    world.recant(&format!("{command} -y")).ok();
    assert_eq!(world.read("src/a.rs"), "b\n");
    assert!(!world.exists(".git"));
    world.recant("undo -y").ok();
    let part = entries[0]["session"].as_str().expect("an id");
    world.recant(&format!("rollback {part} -y")).ok();
    assert_eq!((&*world.read("docs/old.md"), world.exists("docs/sub")), ("old\n", false));
}

#[test]
fn all_that_is_asked_for_may_fit_and_a_dry_run_tells() {
    let world = world("commit = ['docs/**']");
    held(&world, "echo 1 > docs/1; echo 2 > docs/2; echo b > src/a.rs");
    let told = agent(&world, "commit s --dry-run --json").ok().json();
    assert_eq!((&told["policy"]["fits"], told["paths"].as_array().map(Vec::len)), (&json!(2), Some(3)), "{told}");
    assert!(!world.exists("docs/1"));
    agent(&world, "commit s docs/1").ok();
    assert!(world.exists("docs/1") && !world.exists("docs/2"));
    let told = agent(&world, "commit s docs src --json").with(4).json();
    assert!(told["policy"]["command"].as_str().is_some_and(|command| command.ends_with("/src")), "{told}");
    assert_eq!(told["policy"]["waits"][0]["why"], "no glob of agent.policy names it", "{told}");
    // A session of it alone is committed as it is.
    named(&world, "t", "rm docs/1 docs/2");
    let told = agent(&world, "commit t --json").ok().json();
    assert!(told.get("part_of").is_none() && !world.exists("docs/2"), "{told}");
}

#[test]
fn without_a_policy_and_by_options_of_a_person_all_waits() {
    let world = world("max_files = 9");
    held(&world, "echo 1 > docs/1");
    let said = agent(&world, "commit s").with(1);
    assert!(said.stderr().contains("a person decides what becomes real\n"), "{said}");
    world.config("[agent.policy]\ncommit = ['docs/**']\n");
    for option in ["--force", "--merge", "--accept-unsynced", "--patch", "--confirm-within=1s"] {
        let said = agent(&world, &format!("commit s {option}")).with(1);
        assert!(said.stderr().contains("a person decides"), "{said}");
    }
    agent(&world, "redo s").with(1);
    agent(&world, "run -q --commit -- touch docs/2").with(125);
    assert!(!world.exists("docs/1") && !world.exists("docs/2"));
    // A person is not limited by it.
    world.recant("run -q -n mine -- touch src/b").ok();
    world.recant("commit mine -y").ok();
    assert!(world.exists("src/b"));
}

#[test]
fn what_is_no_ordinary_change_of_an_ordinary_file_waits() {
    for (line, why) in [
        // Links lead to other paths.
        ("ln -s ../src docs/l", "docs/l: it is, or was, not an ordinary file or directory"),
        ("rm -r docs; ln -s src docs", "docs: no glob of agent.policy names it"),
        ("ln src/a.rs docs/a", "docs/a: the file has other names"),
        ("mkfifo docs/f", "docs/f: it is, or was, not an ordinary file or directory"),
        ("echo x > docs/x; chmod 4755 docs/x", "docs/x: set-user-id"),
        ("mkdir -m 1777 docs/d", "docs/d: its mode lets others write to it"),
        ("chmod 666 docs/old.md", "docs/old.md: its mode lets others write to it"),
        ("touch docs/x; setfattr -n user.a -v b docs/x", "docs/x: its extended attributes change"),
        // The directory itself is not what lies in it.
        ("chmod 700 docs", "docs: no glob of agent.policy names it"),
        ("rm -r docs", "docs: no glob of agent.policy names it"),
        // Names that lead elsewhere, or differ in case.
        ("echo x > docs/../src/x", "src/x: no glob of agent.policy names it"),
        ("mkdir Docs; echo x > Docs/x", "Docs: no glob of agent.policy names it"),
        ("mkdir docsx; echo x > docsx/x", "docsx: no glob of agent.policy names it"),
        // What others run or obey, what makes a repository or a project.
        ("mkdir -p docs/.git/hooks; echo x > docs/.git/hooks/pre-commit", "docs/.git: its name marks a project"),
        ("mkdir -p docs/.GIT; echo x > docs/.GIT/config", "docs/.GIT: its name marks a project"),
        ("echo x > docs/Makefile", "docs/Makefile: its name marks a project"),
        ("echo x > docs/.bashrc", "docs/.bashrc: shells run it"),
        ("mkdir docs/bin; cp /bin/true docs/bin/ls", "docs/bin/ls: a program in a directory of programs"),
    ] {
        let told = if line.contains("rm -r docs") || line.contains("mkdir") && !line.contains("-m") {
            first(line, why)
        } else {
            waits(line)
        };
        assert!(told.contains(why), "{line}: {told}");
    }
}

#[test]
fn a_repository_waits_under_whatever_name_and_however_it_is_split() {
    let parts = "mkdir -p docs/b/objects docs/b/refs; echo 'ref: refs/heads/main' > docs/b/HEAD";
    let bare = format!("{parts}; echo '[core] fsmonitor = x' > docs/b/config; echo x > docs/b/description");
    for (line, glob, why) in [
        (bare.as_str(), "docs/**", "docs/b/config: it lies in what git takes for a repository"),
        (bare.as_str(), "docs/**", "docs/b/description: it lies in what git takes for a repository"),
        // git finds the other parts elsewhere.
        (
            "mkdir docs/b; touch docs/b/HEAD; echo ../../src > docs/b/commondir",
            "docs/**",
            "docs/b/commondir: it lies in what git",
        ),
        // What it obeys comes before the rest is there.
        ("mkdir docs/b; touch docs/b/HEAD docs/b/config", "docs/**", "docs/b/config: it lies in what git"),
        ("mkdir -p docs/b/hooks; touch docs/b/HEAD docs/b/hooks/x", "docs/**", "docs/b/hooks/x: it lies in what git"),
        // The rest of it fits no glob, or is on the tree.
        (
            "mkdir src/objects src/refs; echo x > src/HEAD; mkdir src/x; echo x > src/x/config",
            "src/x/**",
            "src/x/config: it lies in",
        ),
    ] {
        let world = world(&format!("commit = ['{glob}']"));
        assert!(first_in(&world, line, why).starts_with(why), "{line}: {}", first_in(&world, line, why));
    }
    let world = world("commit = ['docs/**']");
    world.mkdir("docs/b/objects").mkdir("docs/b/refs");
    assert!(waits_in(&world, "echo x > docs/b/HEAD").starts_with("docs/b/HEAD: it lies in what git"));
    let literal = self::world("commit = ['docs/b/config']");
    literal.mkdir("docs/b/objects").mkdir("docs/b/refs").write("docs/b/HEAD", "");
    held(&literal, "echo x > docs/b/config");
    agent(&literal, "commit s").ok();
}

#[test]
fn what_agents_obey_waits_and_all_in_their_own_directories() {
    for path in [
        "docs/CLAUDE.md",
        "docs/AGENTS.md",
        "docs/GEMINI.md",
        "docs/copilot-instructions.md",
        "docs/.claude/notes.md",
        "docs/.CODEX/x",
        "docs/.gemini/commands/x.toml",
        "docs/.opencode/plugins/x.js",
        "docs/.pi/extensions/x.ts",
        "docs/makefile",
    ] {
        let world = world("commit = ['docs/**']");
        let line = format!("mkdir -p $(dirname {path}); echo x > {path}");
        let told = first_in(&world, &line, &format!("{path}: "));
        assert!(told.starts_with(&format!("{path}: ")), "{path}: {told}");
    }
    let world = World::new();
    let home = world.root().join("home");
    of_person(world.config("agent.policy.commit = ['~/**']\n"));
    for (directory, why) in
        [(".copilot", "belongs to an agent"), (".config/opencode", "an agent"), (".local/share/opencode", "belongs to an agent")]
    {
        let line = format!("mkdir -p {0}/{directory}; echo x > {0}/{directory}/x", home.display());
        let told = first_in(&world, &line, &format!("{}/{directory}/x: ", home.display()));
        assert!(told.contains(&format!("{directory}/x: ")) && told.contains(why), "{directory}: {told}");
    }
}

/// The reasons for all that waits, of a line of which something may fit.
fn first(line: &str, why: &str) -> String {
    first_in(&world("commit = ['docs/**']"), line, why)
}

fn first_in(world: &World, line: &str, why: &str) -> String {
    held(world, line);
    let told = agent(world, "commit s --dry-run --json").ok().json();
    agent(world, "discard s").ok();
    let waits = told["policy"]["waits"].as_array().cloned().unwrap_or_default();
    let rows = waits.iter().map(|one| format!("{}: {}", one["path"].as_str().unwrap(), one["why"].as_str().unwrap()));
    let rows: Vec<String> = rows.map(|row| row.replace(&format!("{}/", world.tree().display()), "")).collect();
    rows.iter().find(|row| row.starts_with(why)).cloned().unwrap_or_else(|| rows.join("; "))
}

#[test]
fn what_goes_away_under_a_name_that_others_obey_waits_too() {
    let world = world("commit = ['**']");
    world.write(".envrc", "x\n").write("package.json", "{}\n");
    assert_eq!(waits_in(&world, "rm .envrc"), ".envrc: shells run it");
    assert_eq!(waits_in(&world, "echo '{\"scripts\":{}}' > package.json; rm -f .envrc"), ".envrc: shells run it (and 1 more)");
}

#[test]
fn what_others_obey_fits_where_its_whole_path_is_named() {
    for (glob, fits) in
        [("package.json", true), ("TREE/package.json", true), ("*.json", false), ("pack{age}.json", false), ("**", false)]
    {
        let world = World::new();
        world.write("package.json", "{}\n");
        world.config(&format!("agent.policy.commit = ['{}']\n", glob.replace("TREE", world.tree().to_str().unwrap())));
        of_person(&world);
        held(&world, "echo '{\"a\":1}' > package.json");
        agent(&world, "commit s").with(if fits { 0 } else { 1 });
        assert_eq!(world.read("package.json") != "{}\n", fits, "{glob}");
    }
}

#[test]
fn nothing_rides_on_a_rename_or_on_a_directory_that_waits() {
    assert_eq!(
        waits("mv src/a.rs docs/a.rs"),
        "docs/a.rs: it was renamed, and TREE/src/a.rs waits (and 1 more)".replace("TREE/", "")
    );
    assert_eq!(waits("mv docs/old.md src/old.md"), "docs/old.md: it was renamed, and src/old.md waits (and 1 more)");
    let world = world("commit = ['src/**/*.md']");
    assert_eq!(
        waits_in(&world, "mkdir src/new; echo x > src/new/x.md"),
        "src/new: no glob of agent.policy names it (and 1 more)"
    );
    held(&world, "echo y > src/y.md");
    let said = agent(&world, "commit s").with(4).stderr();
    assert!(
        world.exists("src/y.md") && said.contains("src/new/x.md: waits for a person") && said.contains("src/new, which waits"),
        "{said}"
    );
    let world = self::world("commit = ['docs/**']");
    world.mkdir("docs/d").write("docs/d/x", "").symlink("x", "docs/d/link");
    held(&world, "rm -r docs/d");
    let said = agent(&world, "commit s").with(4).stderr();
    assert!(!world.exists("docs/d/x") && said.contains("/docs/d/link in it waits"), "{said}");
    // The directories that a glob begins with come with what fits, and not alone.
    let world = self::world("commit = ['notes/a/*.md']");
    held(&world, "mkdir -p notes/a; echo x > notes/a/x.md");
    agent(&world, "commit s").ok();
    assert!(world.exists("notes/a/x.md"));
    let world = self::world("commit = ['notes/a/*.md']");
    assert!(waits_in(&world, "mkdir -p notes/a; ln -s / notes/a/x.md").starts_with("notes: no glob"));
}

#[test]
fn no_half_of_a_directory_that_got_another_name_is_committed() {
    for (from, to) in [("x", "docs/xx"), ("docs/xx", "x")] {
        for made in ["sub/a", "sub/"] {
            let world = world("commit = ['docs/**']");
            world.mkdir(format!("{from}/sub")).mkdir(format!("{from}/empty"));
            if !made.ends_with('/') {
                world.write(format!("{from}/{made}"), "content\n").write(format!("{from}/sub/none"), "");
            }
            waits_in(&world, &format!("mv {from} {to}"));
        }
    }
    // Its time tells nothing where it was changed, but what lies in it does.
    let world = world("commit = ['docs/**']");
    world.mkdir("x/sub").write("x/sub/a", "content\n");
    waits_in(&world, "mkdir -p docs/xx/sub/more; mv x/sub/a docs/xx/sub/a; rm -r x");
}

#[test]
fn in_a_store_that_knows_no_person_nothing_is_allowed() {
    for settings in ["agent.policy.commit = ['docs/**']\n", "agent.commit = 'allow'\n"] {
        let mut world = World::new();
        world.mkdir("docs").config(settings);
        of_person(&world);
        // One that the agent makes for itself.
        world.set("RECANT_STORE", world.root().join("own"));
        held(&world, "touch docs/1");
        for words in ["commit s", "run -q --commit -- touch docs/2", "commit s -y"] {
            agent(&world, words);
        }
        assert!(!world.exists("docs/1") && !world.exists("docs/2"), "{settings}");
        let said = agent(&world, "commit s").with(1).stderr();
        assert!(!settings.contains("policy") || said.contains("no person has used this store yet"), "{said}");
        of_person(&world);
        agent(&world, "commit s").ok();
        assert!(world.exists("docs/1"), "{settings}");
    }
}

#[test]
fn a_link_on_the_tree_leads_nowhere() {
    let world = world("commit = ['docs/**', 'link/**']");
    world.symlink("src", "link");
    assert_eq!(waits_in(&world, "echo x > link/x"), "src/x: no glob of agent.policy names it");
    // One that came since the run.
    held(&world, "rm src/x; echo y > docs/y");
    std::fs::rename(world.path("docs"), world.path("elsewhere")).unwrap();
    world.symlink("elsewhere", "docs");
    agent(&world, "commit s").with(3);
    assert!(!world.exists("elsewhere/y"));
}

#[test]
fn the_number_of_paths_cannot_be_split_over_sessions_forks_commits_and_projects() {
    let world = world("commit = ['docs/**', '/TREE/notes/*']\nmax_files = 3");
    let tree = world.tree().to_str().unwrap().to_owned();
    world.config(&format!("[agent.policy]\ncommit = ['docs/**', '{tree}/docs/*']\nmax_files = 3\n"));
    let too_many = |world: &World, name: &str| {
        let said = agent(world, &format!("commit {name}")).with(1);
        assert!(said.stderr().contains("agent.policy.max_files is 3"), "{said}");
    };
    named(&world, "s", "touch docs/1 docs/2 docs/3 docs/4");
    too_many(&world, "s");
    agent(&world, "commit s docs/1 docs/2").ok();
    named(&world, "t", "touch docs/5 docs/6");
    too_many(&world, "t");
    agent(&world, "fork s -n f").ok();
    too_many(&world, "f");
    agent(&world, "commit t docs/5").ok();
    too_many(&world, "s");
    // Another project of the agent's choice, and an absolute glob.
    std::fs::create_dir_all(world.root().join("other/.git")).unwrap();
    let line = format!("touch {tree}/docs/7");
    let call = world.call(["run", "-q", "--session", "o", "--", "sh", "-c", &line]).cwd(world.root().join("other"));
    call.env("CLAUDECODE", "1").run().ok();
    let said = world.call(["commit", "o"]).cwd(world.root().join("other")).env("CLAUDECODE", "1").run().with(1);
    assert!(said.stderr().contains("of which 3 are used"), "{said}");
    // Nor does it help that a person acts elsewhere.
    world.call(["run", "-q", "--", "touch", "mine"]).cwd(world.root().join("other")).run().ok();
    too_many(&world, "s");
    let said = world.recant("agent status").with(4).stdout();
    assert!(said.starts_with("agents may commit docs/**,") && said.ends_with("0 paths more here\n"), "{said}");
    // A person acts here.
    world.recant("commit t -y").ok();
    agent(&world, "commit s docs/3").ok();
    assert!(world.exists("docs/3") && world.exists("docs/6") && !world.exists("docs/4"));
}

#[test]
fn what_was_committed_counts_whatever_becomes_of_its_session() {
    let world = world("commit = ['docs/**']\nmax_files = 1");
    let id = agent(&world, "session new").ok().stdout().trim().to_owned();
    agent(&world, &format!("session write {id} docs/1")).ok();
    agent(&world, &format!("commit {id}")).ok();
    for words in ["session rename ID new", "session write ID docs/2", "discard ID", "discard ID docs/1", "undo -y", "recover"] {
        agent(&world, &words.replace("ID", &id));
    }
    named(&world, "t", "touch docs/3");
    let said = agent(&world, "commit t").with(1);
    assert!(world.exists("docs/1") && !world.exists("docs/2") && said.stderr().contains("of which 1 are used"), "{said}");
}

#[test]
fn two_commits_at_once_do_not_both_have_room() {
    let world = world("commit = ['docs/**']\nmax_files = 2");
    let names: Vec<String> = (0..4).map(|n| format!("s{n}")).collect();
    names.iter().for_each(|name| named(&world, name, &format!("touch docs/{name}")));
    let calls = names.iter().map(|name| world.call(["commit", name]).env("CLAUDECODE", "1").command().spawn().unwrap());
    let calls: Vec<_> = calls.collect();
    let done = calls.into_iter().map(|mut call| call.wait().unwrap().success());
    assert_eq!(done.filter(|done| *done).count(), 2);
}

#[test]
fn settings_that_an_agent_names_let_it_commit_nothing() {
    let world = World::new();
    world.recant("run -q -n s -- touch x").ok();
    let evil = world.root().join("evil");
    std::fs::create_dir_all(evil.join("recant")).unwrap();
    std::fs::write(evil.join("recant/config.toml"), "agent.commit = 'allow'\n").unwrap();
    let call = |words: &str| world.call(words.split(' ')).env("XDG_CONFIG_HOME", &evil);
    for _ in 0..2 {
        let said = call("commit s -y").env("CLAUDECODE", "1").run().with(1);
        assert!(said.stderr().contains("a person decides"), "{said}");
        // No act of the agent's makes them the person's.
        call("run -q -- touch y").env("CLAUDECODE", "1").run().ok();
    }
    assert!(!world.exists("x"));
    // The person moves them.
    call("run -q -- touch z").run().ok();
    call("commit s -y").env("CLAUDECODE", "1").run().ok();
    assert!(world.exists("x"));
}

#[test]
fn a_policy_in_settings_that_an_agent_names_allows_nothing() {
    let world = world("commit = ['docs/**']");
    held(&world, "echo b > src/a.rs");
    let evil = world.root().join("evil");
    std::fs::create_dir_all(evil.join("recant")).unwrap();
    std::fs::write(evil.join("recant/config.toml"), "agent.policy.commit = ['**']\n").unwrap();
    for _ in 0..2 {
        let said = world.call(["commit", "s"]).env("CLAUDECODE", "1").env("XDG_CONFIG_HOME", &evil).run().with(1);
        assert!(said.stderr().contains("a person decides"), "{said}");
        // Nor is it believed after an act of the agent's.
        world.call(["run", "-q", "--", "touch", "docs/x"]).env("CLAUDECODE", "1").env("XDG_CONFIG_HOME", &evil).run().ok();
        world.call(["commit", "s"]).env("CLAUDECODE", "1").env("XDG_CONFIG_HOME", &evil).run().with(1);
    }
    let said = world.call(["commit", "s"]).env("CLAUDECODE", "1").env("HOME", &evil).run().with(1);
    assert!(said.stderr().contains("not the settings file of the store's person"), "{said}");
    assert_eq!(world.read("src/a.rs"), "a\n");
    // A person moves them.
    std::fs::write(evil.join("recant/config.toml"), "agent.policy.commit = ['src/**']\n").unwrap();
    world.call(["run", "-q", "-n", "mine", "--", "touch", "x"]).env("XDG_CONFIG_HOME", &evil).run().ok();
    world.call(["commit", "s"]).env("CLAUDECODE", "1").env("XDG_CONFIG_HOME", &evil).run().ok();
    assert_eq!(world.read("src/a.rs"), "b\n");
}

#[test]
fn no_glob_reaches_recants_own_settings() {
    let mut world = World::new();
    world.set("XDG_CONFIG_HOME", world.path("config")).mkdir("dots").write("dots/mine.toml", "");
    let tree = world.tree().to_str().unwrap().to_owned();
    let policy = format!("agent.policy.commit = ['**', '{tree}/dots/mine.toml', '{tree}/config/recant/config.toml']\n");
    world.mkdir("config/recant").write("dots/mine.toml", &policy).symlink("../../dots/mine.toml", "config/recant/config.toml");
    of_person(&world);
    for line in
        ["echo >> dots/mine.toml", "rm config/recant/config.toml; cp dots/mine.toml config/recant/config.toml", "chmod 700 dots"]
    {
        let why = waits_in(&world, line);
        assert!(why.contains("recant's own settings or store lie there"), "{line}: {why}");
        agent(&world, "discard s").ok();
    }
}

#[test]
fn what_a_person_made_and_what_failed_or_was_undone_waits() {
    let world = world("commit = ['docs/**']");
    world.recant("run -q -n mine -- touch docs/1").ok();
    assert!(agent(&world, "commit mine").with(1).stderr().contains("a person made some of it"));
    world.call(["run", "-q", "--session", "f", "--", "sh", "-c", "touch docs/2; exit 3"]).env("CLAUDECODE", "1").run().with(3);
    for words in ["commit f", "commit f -y"] {
        assert!(agent(&world, words).with(1).stderr().contains("its last command failed"), "{words}");
    }
    held(&world, "touch docs/3");
    agent(&world, "commit s@2").with(1);
    agent(&world, "commit s").ok();
    world.recant("rollback s -y").ok();
    assert!(agent(&world, "commit s").with(1).stderr().contains("it is not pending"));
    assert!(!world.exists("docs/1") && !world.exists("docs/2") && !world.exists("docs/3"));
}

#[test]
fn relative_globs_are_about_a_project_and_not_about_all_there_is() {
    let world = World::new();
    of_person(world.config("agent.policy.commit = ['**']\n"));
    let home = world.root().join("home");
    std::fs::write(home.join("a"), "").unwrap();
    for cwd in [home.clone(), world.root().to_path_buf()] {
        let name = cwd.file_name().unwrap().to_str().unwrap();
        let line = format!("echo x > {}", home.join("a").display());
        world.call(["run", "-q", "--session", name, "--", "sh", "-c", &line]).cwd(&cwd).env("CLAUDECODE", "1").run().ok();
        world.call(["commit", name]).cwd(&cwd).env("CLAUDECODE", "1").run().with(1);
    }
    // From within a project nothing outside of it.
    world.mkdir("p/.git").mkdir("q");
    let call = world.call(["run", "-q", "--session", "p", "--", "sh", "-c", "touch ../q/x y"]).cwd(world.path("p"));
    call.env("CLAUDECODE", "1").run().ok();
    world.call(["commit", "p"]).cwd(world.path("p")).env("CLAUDECODE", "1").run().with(4);
    assert!(world.exists("p/y") && !world.exists("q/x"));
}

#[test]
fn another_owner_waits() {
    if !is_root("gives files to others") {
        return;
    }
    assert!(waits("chown 1 docs/old.md").contains("docs/old.md: it has another owner or group"));
    assert!(waits("touch docs/x; chgrp 1 docs/x").contains("docs/x: it has another owner or group"));
}

#[test]
fn a_large_directory_that_goes_is_kept_whatever_the_settings_say() {
    let world = World::new();
    world.mkdir("docs/d").write("docs/d/1", "1\n").write("docs/d/2", "2\n");
    of_person(&world);
    world.config("agent.policy.commit = ['docs/**']\ncheckpoint.max_files = 1\ncheckpoint.on_limit = 'partial'\n");
    held(&world, "rm -r docs/d");
    agent(&world, "commit s").ok();
    world.recant("rollback s -y").ok();
    assert_eq!(world.read("docs/d/2"), "2\n");
}
