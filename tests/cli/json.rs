//! Every JSON document has the shape that docs/json.md says.

use crate::agent::Agent;
use crate::ssh;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::process::Stdio;

use crate::common::{self, World, name, until};
use serde_json::Value;

/// The named shapes of docs/json.md.
struct Shapes {
    named: BTreeMap<String, Value>,
    seen: BTreeSet<String>,
    /// Each list that was met, and whether it ever had an item: one that is always empty has no shape.
    lists: BTreeMap<String, bool>,
}

impl Shapes {
    fn read() -> Self {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md")).expect("docs/json.md");
        let mut named = BTreeMap::new();
        for block in text.split("\n```json ").skip(1) {
            let (title, rest) = block.split_once('\n').expect("a title");
            let json = rest.split_once("\n```").expect("an end of the block").0;
            let shape = serde_json::from_str(json).unwrap_or_else(|error| panic!("{title}: {error}"));
            assert!(named.insert(title.to_owned(), shape).is_none(), "{title} is there twice");
        }
        Self { named, seen: BTreeSet::new(), lists: BTreeMap::new() }
    }

    /// Ends the test where `value` has not the shape of that name.
    #[track_caller]
    fn check(&mut self, shape: &str, value: &Value) {
        let mut wrong = Vec::new();
        let wanted = self.named.get(shape).unwrap_or_else(|| panic!("docs/json.md has no {shape:?}")).clone();
        self.seen.insert(shape.to_owned());
        self.compare(&wanted, value, shape, &mut wrong);
        assert!(wrong.is_empty(), "{}\n{value}", wrong.join("\n"));
    }

    fn compare(&mut self, wanted: &Value, found: &Value, at: &str, wrong: &mut Vec<String>) {
        match (wanted, found) {
            (Value::String(text), _) if text == "<any>" => {}
            (Value::String(text), found) if text == "<path>" => {
                if !(found.is_string() || found["b64"].is_string()) {
                    wrong.push(format!("{at}: no path"));
                }
            }
            (Value::String(text), found) if text.starts_with('<') => {
                let shape = text.trim_matches(['<', '>']);
                self.seen.insert(shape.to_owned());
                let wanted = self.named.get(shape).unwrap_or_else(|| panic!("docs/json.md has no {shape:?}")).clone();
                self.compare(&wanted, found, &format!("{at}.{shape}"), wrong);
            }
            (Value::Array(wanted), Value::Array(found)) => {
                *self.lists.entry(at.to_owned()).or_default() |= !found.is_empty();
                found.iter().for_each(|item| self.compare(&wanted[0], item, &format!("{at}[]"), wrong));
            }
            (Value::Object(wanted), Value::Object(found)) => {
                for (key, wanted) in wanted {
                    let (key, optional) = key.strip_suffix('?').map_or((&**key, false), |key| (key, true));
                    match found.get(key) {
                        None | Some(Value::Null) if optional => {}
                        None => wrong.push(format!("{at}: {key} is missing")),
                        Some(found) => self.compare(wanted, found, &format!("{at}.{key}"), wrong),
                    }
                }
                let known = |key: &str| wanted.contains_key(key) || wanted.contains_key(&format!("{key}?"));
                wrong.extend(found.keys().filter(|key| !known(key)).map(|key| format!("{at}: {key} is not in docs/json.md")));
            }
            (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) | (Value::Bool(_), Value::Bool(_)) => {}
            (wanted, found) => wrong.push(format!("{at}: {found} where docs/json.md has {wanted}")),
        }
    }
}

/// Lists of what went wrong or was left out, which a scene without trouble has none of.
const OF_TROUBLE: &str = "damaged faults notes skipped kept left passed refused warnings unread exclude files presets failed \
    old_pending cut_off pruned";

#[test]
fn every_document_has_the_shape_that_the_page_says() {
    let mut shapes = Shapes::read();
    let world = World::new();
    world.write("f", "old\n").write("gone", "x\n").symlink("f", "link").write(name(b"odd-\xff"), "x").write("bin", b"\0");
    let run = |words: &str| {
        let said = world.call(words.split_whitespace().chain(["--json"])).run();
        said.stderr().lines().for_each(|line| drop(json(line)));
        let is_one = !words.contains("export");
        assert!(!is_one || said.stdout().lines().count() <= 1, "one document: {said}");
        said
    };
    // Of shapes and verbs, as `list: list --all`; of one that is called as its verb, its name.
    let fits = |shapes: &mut Shapes, rows: &str| {
        for row in rows.split("; ") {
            let (shape, words) = row.split_once(':').unwrap_or((row, row));
            shapes.check(shape, &run(words).ok().json());
        }
    };

    // What a program asks for it gets, also where there is nothing to tell.
    fits(&mut shapes, "log; recover; checkpoint list; checkpoint verify; prune: prune --sessions --keep 0");
    fits(&mut shapes, "prune: prune --checkpoints --keep 0; status; here:; list; session new");
    let agents = World::new();
    let call = agents.call(["session", "new"]).env("CLAUDECODE", "1").env("RECANT_AGENT_SESSION", "s").env("RECANT_TURN", "7");
    call.run().ok();
    shapes.check("list", &agents.recant("list --json").ok().json());
    let id = run("session new -n named").ok().json()["id"].as_str().unwrap().to_owned();
    let write = |path: &[u8], content: &str| {
        let words = [name(b"session"), name(b"write"), name(id.as_bytes()), name(path), name(b"--json")];
        world.call(words).stdin(content).run().ok().json()
    };
    shapes.check("session write", &write(b"f", "new\n"));
    shapes.check("session write", &write(b"odd-\xff", "y"));
    shapes.check("session write", &write(b"bin", "y"));
    fits(&mut shapes, "session write: session delete named gone; session write: session mkdir named d");
    fits(&mut shapes, "session write: session symlink named there link; session write: session chmod named 0755 f");
    fits(&mut shapes, "session rename: session rename named other; session rename: session rename other named");
    let stream = run("session export named").ok().out;
    let there = World::new();
    for _ in 0..2 {
        let said = there.call(["session", "import", "--map", "/=/nowhere", "--json"]).stdin(&stream).run();
        shapes.check("session import", &said.json());
    }
    for words in ["diff", "diff named --stat --full"] {
        let diff = run(words).ok().json();
        assert_eq!(diff["changes"].as_array().unwrap().len(), 6);
        shapes.check("diff", &diff);
    }
    world.stage_write(&id, ".git/index", "x").stage_write(&id, "new/a", "x").stage_write(&id, "new/b", "x");
    world.stage_write(&id, "dist/a", "x").stage_write(&id, "dist/b", "x").stage_write(&id, "package.json", "{}");
    shapes.check("diff --stat", &run("diff named --stat").ok().json());
    shapes.check("diff --name-only", &run("diff named --name-only").ok().json());
    fits(&mut shapes, "diff --blocks: diff named --blocks");
    let shown = run("show").ok();
    shapes.check("show", &shown.json());
    shapes.check("said", &last_line(&shown.stderr()));
    fits(&mut shapes, "commit: commit named --dry-run; list; commit: commit named; commit: commit named");
    fits(
        &mut shapes,
        "commit: redo named --dry-run; log: log named; log PATH: log f; checkpoint list; checkpoint show; checkpoint verify",
    );
    world.write("f", "somebody else's").remove("link");
    let error = run("rollback named").with(3).json_err();
    assert_eq!((&error["kind"], error["paths"].as_array().map(Vec::len)), (&"conflict".into(), Some(2)));
    shapes.check("error", &error);
    fits(&mut shapes, "diff --stat: diff named --stat; diff --conflicts: diff named --conflicts --stat");
    shapes.check("commit", &run("rollback named --force").json());
    shapes.check("commit", &run("redo named").json());
    for again in ["rollback named --force", "rollback named"] {
        shapes.check("commit", &run(again).json());
    }
    let other = world.edited("waits");
    shapes.check("commit", &run(&format!("commit {other} --confirm-within 1h")).ok().json());
    fits(&mut shapes, &format!("status; here:; confirm: confirm {other}; discard: discard named; discard: discard named"));
    fits(&mut shapes, "prune: prune --sessions --keep 0 --dry-run; prune: prune --sessions --keep 0");
    let decided = |words: &str| world.call(words.split(' ')).env("CLAUDECODE", "1").run();
    decided("run -q --session decided -- touch decided").ok();
    run("discard decided -y -m no").ok();
    shapes.check("await", &decided("await decided --json").ok().json());
    fits(&mut shapes, "prune: prune --checkpoints --keep 0; log; log --verify");
    let log = agents.store().join("log.jsonl");
    agents.write(log, "torn\n");
    shapes.check("log --verify", &agents.recant("log --verify --json").with(4).json());
    agents
        .mkdir(agents.store().join("sessions/20260301-101500-k3fa"))
        .write(agents.store().join("sessions/20260301-101500-k3fa/changes.jsonl"), b"\xff");
    shapes.check("log PATH", &agents.recant("log f --json").with(4).json());
    fits(&mut shapes, "config; recover");
    if cfg!(feature = "crash-points") {
        let id = world.begin();
        world.stage_write(&id, "one", "x").stage_write(&id, "two", "x");
        // The first step that has a journal behind it.
        for n in 1.. {
            let killed = world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
            assert_eq!(killed.status, 137, "killed before there is a journal");
            if world.journals() == [&*id] {
                break;
            }
        }
        let status = run("status").ok().json();
        assert_eq!(status["interrupted"], serde_json::json!([id]));
        shapes.check("status", &status);
        shapes.check("here", &run("").ok().json());
        assert_eq!(run("list").ok().json()["sessions"][0]["interrupted"], true);
        let recovery = run("recover").ok().json();
        assert_eq!(recovery["recovered"][0]["result"], "undone");
        shapes.check("recover", &recovery);
    }
    world.mkdir(world.store().join("sessions/stray"));
    shapes.check("list", &run("list").with(4).json());
    shapes.check("status", &run("status").with(4).json());
    shapes.check("error", &run("show none").with(1).json_err());
    let damaged = run("session new").ok().json()["id"].as_str().unwrap().to_owned();
    world.stage_write(&damaged, "f", "x").write(world.session(&damaged).join("session.json"), "");
    let pruned = run(&format!("prune --sessions {damaged}")).ok().json();
    assert_eq!(pruned["lost"].as_array().unwrap().len(), 1);
    shapes.check("prune", &pruned);

    world.write("snap/f", "1\n").write("snap/x.log", "x");
    let created = run("snapshot create snap --exclude *.log --exclude *.none --label a -m text --meta k=v --once k").ok().json();
    shapes.check("snapshot create", &created);
    world.write("snap/f", "2\n").write("snap/new", "n");
    fits(
        &mut shapes,
        "snapshot create: snapshot create snap --keep 1; snapshot create: snapshot create snap; snapshot list --all",
    );
    fits(&mut shapes, "snapshot list: snapshot list snap; snapshot show: snapshot show last --dir snap -v");
    world.write("snap/f", "3\n").write("snap/.recantignore", "x");
    fits(&mut shapes, "snapshot diff: snapshot diff 1 --dir snap --stat; snapshot diff: snapshot diff 1 2 --dir snap");
    fits(&mut shapes, "diff --name-only: snapshot diff 1 --dir snap --name-only; snapshot verify: snapshot verify --dir snap");
    fits(&mut shapes, "snapshot restore: snapshot restore 1 --dir snap --dry-run");
    shapes.check("snapshot restore", &run("snapshot restore 1 --dir snap --safe").with(4).json());
    fits(
        &mut shapes,
        "snapshot restore: snapshot restore 1 --dir snap; prune --snapshots: prune --snapshots snap --keep 1 --dry-run",
    );
    world.write("node_modules/one", "1").write("dist/app", "built");
    let agent = Agent::begin(&world, "claude", "s");
    agent.prompt("edit it");
    agent.edit("edited", "new");
    agent.edit("also", "new");
    agent.shell("mkdir target; touch target/a; rm -rf node_modules/one; touch node_modules/two; mv dist public");
    agent.stop();
    world.write("also", "mine");
    shapes.check("snapshot diff", &run("agent diff").ok().json());
    shapes.check("agent undo", &run("agent undo 1 -y").with(4).json());
    shapes.check("agent turns", &run("agent turns").ok().json());
    let settings = world.root().join("home/.claude/settings.json");
    world.write(world.root().join("home/mine.json"), "{}").mkdir(settings.parent().expect("a directory"));
    world.symlink("../mine.json", &settings);
    fits(&mut shapes, "agent install: agent install claude -y; agent install: agent install claude --dry-run; agent status");
    world.remove(&settings).write(&settings, "{");
    shapes.check("agent status", &run("agent status claude").with(4).json());
    world.remove(&settings).remove(world.root().join("home/mine.json"));
    shapes.check("agent guide", &run("agent guide").ok().json());
    world.config("[snapshot]\nkeep = 1\n[retention]\nkeep = 0\n");
    let finished = world.edited("finished");
    for words in [format!("commit {finished}"), format!("rollback {finished}")] {
        world.recant(&words).ok();
    }
    fits(&mut shapes, "prune all: prune --dry-run; prune all: prune -y; prune --snapshots: prune --snapshots snap --keep 1");
    let (before, after) = ("1".repeat(40), "2".repeat(40));
    world.write("snap/.git/HEAD", "ref: refs/heads/main\n").write("snap/.git/refs/heads/main", before);
    fits(&mut shapes, "snapshot create: snapshot create snap; snapshot show: snapshot show last --dir snap");
    run("snapshot create snap --with-vcs").ok();
    world.write("snap/.git/refs/heads/main", after);
    shapes.check("snapshot restore", &run("snapshot restore last --dir snap --with-vcs").ok().json());

    if common::can_run() {
        world.write("two", "1\n2\n3\n");
        world.call(["run", "-q", "-n", "two", "--", "sed", "-i", "s/[13]/x/", "two"]).run().ok();
        for words in ["commit two two:1 --dry-run", "commit two two:1"] {
            shapes.check("commit", &run(words).ok().json());
        }
        shapes.check("discard paths", &run("discard -y two two:1").ok().json());
        shapes.check("commit", &run("rollback two two:1").ok().json());
        world.config("agent.policy.commit = ['fits']\n");
        let agent = |words: &str| world.call(words.split(' ')).env("RECANT_AGENT", "claude").run();
        agent("run -q -n policy -- touch fits waits").ok();
        shapes.check("commit", &agent("commit policy --dry-run --json").ok().json());
        shapes.check("commit", &agent("commit policy --json").with(4).json());
        shapes.check("log", &run("log -n 1").ok().json());
        shapes.check("agent status", &run("agent status claude").with(4).json());
        let other = world.edited("other");
        let said = world.call(["run", "--json", "--", "sh", "-c", "echo x > made; exit 3"]).run().with(3);
        shapes.check("run result", &last_line(&said.stderr()));
        let made = run("show").ok().json();
        shapes.check("show", &made);
        let mut goes_on =
            world.call(["run", "--session", "last", "--", "sh", "-c", "echo y > made; echo ready; read go || true"]).command();
        let mut goes_on = goes_on.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("recant runs");
        goes_on.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 6]).expect("it is ready");
        let running = run("steps").ok().json();
        assert_eq!((&running["running"]["n"], &running["head"]), (&2.into(), &1.into()));
        shapes.check("steps", &running);
        shapes.check("status", &run("status").json());
        drop(goes_on.stdin.take());
        assert!(goes_on.wait().expect("it ends").success());
        shapes.check("steps", &run("steps").ok().json());
        fits(
            &mut shapes,
            "rewind: rewind last 1 --dry-run; rewind: rewind last 1; fork: fork last 2 --dry-run; fork: fork last 2 -n forked",
        );
        run("discard forked -y --dry-run").ok();
        let held = run("show forked").ok().json()["changes"][0]["path"].as_str().expect("a path").to_owned();
        for words in ["--dry-run", "-y"] {
            shapes.check("discard paths", &run(&format!("discard forked {held} {words}")).ok().json());
        }
        shapes.check("discard", &run("discard forked --dry-run").ok().json());
        run("discard forked -y").ok();
        shapes.check("undo", &run("undo forked -y").ok().json());
        run("discard forked -y").ok();
        run(&format!("rewind {} 2", made["session"]["id"].as_str().expect("an id"))).ok();
        shapes.check("diff --stat of states", &run("diff --since 1 --stat").ok().json());
        for words in ["diff --step 2", "diff --since 1 --stat --full", &format!("diff --with {other}")] {
            shapes.check("diff of states", &run(words).ok().json());
        }
        fits(&mut shapes, "doctor");
        services(&mut shapes);
        world.write("../home/.netrc", "machine here password sesame\n");
        let said = world.call(["run", "--json", "--closed", "--", "true"]).run().ok();
        shapes.check("run result", &last_line(&said.stderr()));
        shapes.check("error", &last_line(&world.call(["run", "--json", "--", "no-such-command"]).run().with(127).stderr()));
    } else {
        shapes.seen.extend(
            [
                "run",
                "run result",
                "doctor",
                "steps",
                "rewind",
                "fork",
                "discard paths",
                "diff of states",
                "diff --stat of states",
            ]
            .map(str::to_owned),
        );
        shapes.seen.extend(["run --serve", "run --stop"].map(str::to_owned));
    }
    let mut world = World::new();
    if let Some(net) = ssh::Net::new(&mut world) {
        let _host = net.host("web1");
        if common::can_run() {
            shapes.check("doctor of both sides", &world.recant("-H web1 doctor --json").ok().json());
        }
    }
    shapes.seen.insert("doctor of both sides".to_owned());
    let unseen: Vec<&String> = shapes.named.keys().filter(|name| !shapes.seen.contains(*name)).collect();
    assert_eq!(unseen, [""; 0], "shapes that nothing was compared with");
    let empty = |(at, had): &(&String, &bool)| !**had && !OF_TROUBLE.split(' ').any(|name| at.rsplit('.').next() == Some(name));
    let empty: Vec<&String> = shapes.lists.iter().filter(empty).map(|(at, _)| at).collect();
    assert_eq!(empty, [""; 0], "lists that never had an item");
}

/// What services add, while they run and when they have ended.
fn services(shapes: &mut Shapes) {
    let world = World::new();
    for name in ["web", "other"] {
        let script = format!("echo x > {name}; exec sleep 60");
        let said = world.call(["run", "--json", "--session", "s", "--serve", name, "--", "sh", "-c", &script]).run().ok();
        shapes.check("run --serve", &last_line(&said.stderr()));
    }
    for (shape, words) in [("list", "list"), ("status", "status"), ("here", ""), ("steps", "steps s"), ("show", "show s")] {
        shapes.check(shape, &world.recant(&format!("{words} --json")).ok().json());
    }
    for name in ["web", "other"] {
        shapes.check("run --stop", &world.recant(&format!("run --session s --stop {name} --json")).ok().json());
    }
    until("they are collected", || world.recant("steps s --json").ok().json()["head"] == 1);
    for (shape, words) in [("list", "list"), ("steps", "steps s"), ("show", "show s")] {
        shapes.check(shape, &world.recant(&format!("{words} --json")).ok().json());
    }
}

fn last_line(text: &str) -> Value {
    json(text.lines().last().expect("a line"))
}

/// A line of standard error, which is an object with a schema.
#[track_caller]
fn json(line: &str) -> Value {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON ({error}): {line}"));
    assert!(value["schema"].is_number(), "{line}");
    value
}

#[test]
fn with_json_standard_error_has_json_objects_alone_notes_warnings_and_questions_too() {
    let mut shapes = Shapes::read();
    let world = World::new();
    let id = world.edited("f");
    for (words, status, told) in [
        ("diff last --json", 0, Some("note")),
        ("diff last --json -v", 0, Some("note")),
        ("diff last --json -q", 0, None),
        ("session --json", 2, Some("kind")),
        ("frob --json", 2, Some("kind")),
        ("show nothing --json", 1, Some("kind")),
        ("diff last nothing/here --json", 1, Some("kind")),
        ("log x -n x --json", 2, Some("kind")),
        ("commit last --json", 0, None),
        ("config --json", 0, None),
        ("log --json -v", 0, None),
    ] {
        let said = world.recant(words).with(status);
        let lines: Vec<Value> = said.stderr().lines().map(json).collect();
        lines.iter().for_each(|line| shapes.check(if line["kind"].is_string() { "error" } else { "said" }, line));
        assert!(told.is_none_or(|key| lines.iter().any(|line| line[key].is_string())), "{words}: {said}");
        let errors = lines.iter().filter(|line| line["kind"].is_string()).count();
        assert!(told != Some("kind") || errors == 1 && said.out.is_empty(), "{words}: {said}");
    }
    // What is asked on a terminal: with its echo, each line is an object or the answer.
    if world.program("script", ["-V"]).command().output().is_err() {
        return common::skip("script makes the terminal");
    }
    world.call(["rollback", &id]).run().ok();
    let id = world.edited("g");
    let asked = |answer: &str| {
        let command = format!("{} discard {id} --now --json", common::recant());
        let call = world.program("script", ["-qec", &command, "/dev/null"]).stdin(answer).run();
        let lines: Vec<String> = call.stdout().lines().map(|line| line.trim().to_owned()).collect();
        lines.into_iter().filter(|line| !line.is_empty() && line != answer.trim()).map(|line| json(&line)).collect::<Vec<_>>()
    };
    let lines = asked("n\n");
    assert!(lines[0]["question"].is_string() && lines[1]["kind"] == "refused", "{lines:?}");
    shapes.check("said", &lines[0]);
    if common::can_run() {
        let said = world.call(["run", "--json", "--", "sh", "-c", "echo hers >&2; echo x > made"]).run().ok().stderr();
        assert_eq!(
            said.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).collect::<Vec<_>>(),
            ["hers"],
            "{said}"
        );
    }
}
