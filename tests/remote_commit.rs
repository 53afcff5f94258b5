//! One commit on several machines: on all of them or on none, whoever conflicts, is full, cannot be reached, or dies.
//!
//! Each machine is a real sshd with a home and a store of its own, and a tree of its own: as root the world's tree is another one in
//! each by a mount of its own; else the session is imported there beforehand, its paths mapped.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "what is skipped is said; tests change files"
)]

mod common;
#[path = "common/ssh.rs"]
mod ssh;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use std::process::Stdio;

use common::{Manifest, Said, World};
use ssh::{Host, Net};

/// A world with a session, and machines whose trees are as the world's.
struct Scene {
    world: World,
    hosts: Vec<Host>,
    id: String,
    before: Manifest,
}

impl Scene {
    fn new(names: &[&str]) -> Option<Self> {
        let mut world = World::new();
        let net = Net::new(&mut world)?;
        world.write("edited", "old").write("gone", "away").write("full/a", "1");
        for name in ["", "full"] {
            world.set_mtime(name, 1_000_000_000, 7);
        }
        let id = world.begin();
        world.stage_write(&id, "edited", "new").stage_write(&id, "made/deep/new", "new");
        world.recant(&format!("session delete {id} gone")).ok();
        let hosts: Vec<Host> = names.iter().map(|name| net.host(name)).collect();
        let scene = Self { before: world.manifest(), world, hosts, id };
        for host in &scene.hosts {
            let tree = host.home.join("tree");
            let copy = ["-a".into(), scene.world.tree().display().to_string(), tree.display().to_string()];
            scene.world.program("cp", copy).run().ok();
            scene.login(host, "");
            if !bound() {
                let stream = scene.world.call(["session", "export", &scene.id]).run().ok().out;
                let map = format!("{}={}", scene.world.tree().display(), tree.display());
                host.here(&scene.world, ["session", "import", "--map", &map]).stdin(stream).run().ok();
            }
        }
        Some(scene)
    }

    /// What each connection to the machine begins with: a tree of its own, and `more`, shell text.
    fn login(&self, host: &Host, more: &str) {
        let login = self.world.root().join("hosts").join(&host.name).join("login");
        let (home, tree) = (host.home.display().to_string(), self.world.tree().display().to_string());
        let become_shell = "exec /bin/sh -c \"$SSH_ORIGINAL_COMMAND\"";
        let text = if bound() {
            format!(
                "#!/bin/sh\nexport HOME={home}\ncd {home}\n{more}\nexec unshare -m --propagation private sh -c 'mount --bind {home}/tree {tree} && {become_shell}'\n"
            )
        } else {
            format!("#!/bin/sh\nexport HOME={home}\ncd {home}\n{more}\n{become_shell}\n")
        };
        std::fs::write(&login, text).unwrap();
        std::fs::set_permissions(&login, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn tree(&self, host: usize) -> PathBuf {
        self.hosts[host].home.join("tree")
    }

    fn names(&self) -> String {
        self.hosts.iter().map(|host| &*host.name).collect::<Vec<_>>().join(",")
    }

    fn verb(&self, verb: &str) -> Said {
        self.world.call(["-H", &self.names(), verb, &self.id]).run()
    }

    fn assert_as_before(&self, what: &str) {
        for (n, host) in self.hosts.iter().enumerate() {
            self.before.assert_same(&common::manifest(&self.tree(n)), &format!("{what}: {}", host.name));
        }
    }

    fn assert_as_before_but(&self, edited: usize, what: &str) {
        for n in (0..self.hosts.len()).filter(|n| *n != edited) {
            self.before.assert_same(&common::manifest(&self.tree(n)), what);
        }
    }

    fn assert_done(&self, what: &str) {
        for n in 0..self.hosts.len() {
            let tree = self.tree(n);
            assert_eq!(std::fs::read_to_string(tree.join("edited")).unwrap(), "new", "{what}");
            assert_eq!(std::fs::read_to_string(tree.join("made/deep/new")).unwrap(), "new", "{what}");
            assert!(!tree.join("gone").exists(), "{what}");
        }
    }

    /// The sessions that a machine has, with their status.
    fn listed(&self, host: usize) -> Vec<String> {
        let said = self.hosts[host].here(&self.world, ["list", "--jsonl"]).run();
        said.json_lines().iter().map(|row| row["status"].as_str().unwrap().to_owned()).collect()
    }

    fn journals(&self, host: usize) -> usize {
        std::fs::read_dir(self.hosts[host].store().join("journals")).map_or(0, Iterator::count)
    }

    /// The statuses where a session that came with the commit is taken away again, and where it was there before.
    fn at_rest(&self) -> Vec<String> {
        if bound() { Vec::new() } else { vec!["pending".into()] }
    }
}

/// Whether each machine can have a tree of its own at the same path.
fn bound() -> bool {
    rustix::process::geteuid().is_root()
}

/// The word of each machine's row.
fn rows(said: &Said) -> Vec<(String, i64, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    said.json_lines().iter().map(|row| (text(&row["host"]), row["exit"].as_i64().unwrap(), text(&row["result"]))).collect()
}

fn row(host: &str, exit: i64, result: &str) -> (String, i64, String) {
    (host.into(), exit, result.into())
}

#[test]
fn what_all_machines_can_do_is_done_on_all_and_taken_back_on_all() {
    let Some(scene) = Scene::new(&["a", "b", "c"]) else { return };
    let said = scene.verb("commit").ok();
    scene.assert_done("committed");
    insta::assert_snapshot!(said.masked_out(), @r"
    a  committed  5 paths
    b  committed  5 paths
    c  committed  5 paths
    ");
    assert_eq!(scene.listed(1), ["committed"]);
    assert_eq!(scene.world.status(&scene.id), "pending", "here it is as it was");
    let said = scene.verb("commit").ok();
    assert!(said.stdout().contains("nothing to do"), "{said}");
    let said = scene.world.call(["-H", &scene.names(), "rollback", &scene.id, "--json"]).run().ok();
    assert_eq!(rows(&said), [row("a", 0, "rolled back"), row("b", 0, "rolled back"), row("c", 0, "rolled back")]);
    scene.assert_as_before("rolled back");
    scene.verb("redo").ok();
    scene.assert_done("redone");
    scene.verb("rollback").ok();
    // What was rolled back there is committed again.
    scene.verb("commit").ok();
    scene.assert_done("committed once more");
}

#[test]
fn what_is_committed_is_the_session_as_it_is_here_and_no_older_state_of_it() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    scene.verb("commit").ok();
    scene.verb("rollback").ok();
    scene.world.stage_write(&scene.id, "edited", "better");
    let refused = |what: &str, each: &[&str]| {
        let said = scene.world.call(["-H", "a,b", "commit", &scene.id, "--json"]).run().with(1);
        assert_eq!(rows(&said).iter().map(|row| &*row.2).collect::<Vec<_>>(), each, "{what}: {said}");
        let remedy = said.json_lines()[0]["report"]["remedy"].as_str().unwrap().to_owned();
        assert!(said.stdout().contains("another state of session") && remedy.contains("recant session prune"), "{what}: {said}");
    };
    refused("rolled back there", &["failed", "failed"]);
    scene.assert_as_before("rolled back there");
    // Committed there, nothing is to be done, and it is not what is meant.
    scene.verb("redo").ok();
    refused("committed there", &["failed", "failed"]);
    scene.verb("rollback").ok();
    if !bound() {
        return;
    }
    // Where one of them has no session any more, the new state does not come there alone.
    scene.world.call(["-H", "b", "session", "prune", &scene.id]).run().ok();
    refused("one lacks it", &["failed", "not begun"]);
    scene.assert_as_before("one lacks it");
    scene.world.call(["-H", "a", "session", "prune", &scene.id]).run().ok();
    scene.verb("commit").ok();
    for host in [0, 1] {
        assert_eq!(std::fs::read_to_string(scene.tree(host).join("edited")).unwrap(), "better");
    }
}

/// What a machine found by force, and took for what was there before, makes no other session of it.
#[test]
fn what_was_committed_by_force_somewhere_is_still_the_same_session() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    if !bound() {
        return common::skip("a session that is sent to machines with the same paths: root is needed");
    }
    let call = |words: &str| scene.world.call(words.replace("ID", &scene.id).split(' ').collect::<Vec<_>>()).run();
    scene.world.recant(&format!("session chmod {} 0600 full/a", scene.id)).ok();
    scene.verb("commit").ok();
    scene.verb("rollback").ok();
    std::fs::write(scene.tree(0).join("full/a"), "theirs").unwrap();
    // The content that it is to have is there, with another mode.
    std::fs::write(scene.tree(1).join("edited"), "new").unwrap();
    std::fs::set_permissions(scene.tree(1).join("edited"), std::fs::Permissions::from_mode(0o640)).unwrap();
    call("-H a,b commit ID").with(3);
    call("-H a,b commit ID --force").ok();
    call("-H a,b rollback ID --force").ok();
    let said = call("-H a,b commit ID").ok();
    assert!(!said.stdout().contains("another state"), "{said}");
    assert_eq!(std::fs::read_to_string(scene.tree(0).join("full/a")).unwrap(), "theirs");
}

#[test]
fn a_session_with_a_run_that_is_under_way_or_was_cut_off_is_sent_as_it_is_then() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    if !bound() || !common::can_run() {
        return common::skip("a run in a session that machines have: root is needed");
    }
    let call = |words: &str| scene.world.call(words.split(' ').collect::<Vec<_>>()).run();
    call("run -n held -- sh -c true>edited").ok();
    call("-H a,b commit held").ok();
    call("-H a,b rollback held").ok();
    let mut run =
        scene.world.call(["run", "--session", "held", "--", "sh", "-c", "echo better > edited; echo up; sleep 60"]).command();
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(run.stdout.as_mut().unwrap()), &mut String::new()).unwrap();
    let said = call("-H a,b commit held").with(1);
    assert!(said.stderr().contains("a run of it is under way"), "{said}");
    run.kill().unwrap();
    run.wait().unwrap();
    let said = call("-H a,b commit held").with(1);
    assert!(said.stdout().contains("another state of session"), "{said}");
    scene.assert_as_before("neither");
}

#[test]
fn a_session_whose_paths_are_others_there_is_known_and_not_once_either_was_changed() {
    let mapped = || {
        let scene = Scene::new(&["a", "b"])?;
        if bound() {
            let stream = scene.world.call(["session", "export", &scene.id]).run().ok().out;
            let map = format!("{}={}", scene.world.tree().display(), scene.tree(0).display());
            scene.hosts[0].here(&scene.world, ["session", "import", "--map", &map]).stdin(stream).run().ok();
        }
        Some(scene)
    };
    let refused = |scene: &Scene, what: &str| {
        let said = scene.world.call(["-H", "a,b", "commit", &scene.id, "--json"]).run().with(1);
        assert_eq!(rows(&said)[0], row("a", 1, "failed"), "{what}: {said}");
        assert_ne!(rows(&said)[1].2, "committed", "{what}: {said}");
        scene.assert_as_before(what);
    };
    let Some(scene) = mapped() else { return };
    scene.verb("commit").ok();
    scene.assert_done("by its mapped paths, and by its own");
    scene.verb("rollback").ok();
    scene.world.stage_write(&scene.id, "edited", "better");
    refused(&scene, "changed here");
    let Some(scene) = mapped() else { return };
    scene.hosts[0].here(&scene.world, ["session", "write", &scene.id, "tree/edited"]).stdin("theirs").run().ok();
    refused(&scene, "changed there");
}

#[test]
fn a_run_is_known_again_where_it_was_sent_though_nobody_had_read_what_it_wrote() {
    if !common::is_root("a tree at the same path on each machine") || !common::can_run() {
        return;
    }
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    let script = "echo by run > edited; rm gone; mkdir more; ln -s x more/link; echo same > more/f; ln more/f more/g; chmod 600 full/a; touch full";
    scene.world.call(["run", "-q", "-n", "captured", "--", "sh", "-c", script]).run().ok();
    let verb = |verb: &str| scene.world.call(["-H", "a,b", verb, "captured"]).run().ok();
    for words in ["commit", "rollback", "commit", "commit"] {
        verb(words);
    }
    assert_eq!(std::fs::read_to_string(scene.tree(1).join("edited")).unwrap(), "by run\n");
    // Committed here, it is the same still.
    verb("rollback");
    scene.world.recant("commit captured").ok();
    verb("commit");
}

#[test]
fn a_name_is_this_side_s_and_a_machine_that_knows_another_session_by_it_has_all_stop() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    scene.world.call(["session", "rename", &scene.id, "fix"]).run().ok();
    let there = scene.world.recant("-H b session new -n fix").ok().stdout().trim().to_owned();
    scene.hosts[1].here(&scene.world, ["session", "write", "fix", "tree/edited"]).stdin("theirs").run().ok();
    let said = scene.world.recant("-H a,b commit fix --json").with(1);
    assert_eq!(rows(&said)[1], row("b", 1, "failed"), "{said}");
    assert_ne!(rows(&said)[0].2, "committed", "{said}");
    let why = said.json_lines()[1]["why"].to_string();
    assert!(why.contains(&*scene.id) && why.contains(&there), "{why}");
    scene.assert_as_before("another one there");
    // A dry run means the same one.
    let said = scene.world.recant("-H a,b commit fix --dry-run").with(1);
    assert!(
        said.stderr().contains(&format!("b: recant: \"fix\" is session {there} on this machine, and {}", scene.id)),
        "{said}"
    );
    scene.world.call(["-H", "a,b", "commit", &scene.id]).run().ok();
    scene.assert_done("by its id");
}

#[test]
fn a_dry_run_means_the_session_that_the_commit_would_bring() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    std::fs::write(scene.tree(1).join("edited"), "theirs").unwrap();
    for key in [&*scene.id, "last"] {
        let said = scene.world.call(["-H", "a,b", "commit", key, "--dry-run"]).run();
        if bound() {
            let text = format!("session {} is not here: the commit brings it", scene.id);
            assert_eq!((said.status, said.stdout().matches(&text).count()), (0, 2), "{said}");
            assert_eq!((scene.listed(0), scene.listed(1)), (vec![], vec![]), "nothing was sent");
        } else {
            assert_eq!(said.status, 3, "{said}");
        }
    }
    let said = scene.world.call(["-H", "a,b", "commit", "--json", "--dry-run", &scene.id, "--", "/nowhere"]).run();
    if bound() {
        assert_eq!(said.json_lines()[0]["documents"][0]["missing"], true, "{said}");
    }
    std::fs::write(scene.tree(1).join("edited"), "old").unwrap();
    scene.verb("commit").ok();
    scene.world.call(["-H", "a,b", "rollback", "last", "--dry-run"]).run().ok();
    scene.assert_done("a dry run");
    // It is no session of this side's that could go anywhere.
    let said = scene.world.call(["-H", "a,b", "commit", "20260301-101500-zzzz", "--dry-run"]).run().with(1);
    assert!(said.stderr().contains("no session"), "{said}");
}

#[test]
fn so_many_machines_are_worked_on_at_once_and_none_is_asked_behind_one_that_failed() {
    let Some(scene) = Scene::new(&["a", "b", "c"]) else { return };
    scene.login(&scene.hosts[2], ": > asked");
    std::fs::write(scene.tree(1).join("edited"), "theirs").unwrap();
    let commit = || scene.world.call(["-H", "a,b,c", "commit", &scene.id, "--forks", "1", "--json"]).run();
    let said = commit().with(3);
    assert_eq!(rows(&said), [row("a", 1, "not begun"), row("b", 3, "failed"), row("c", 1, "not begun")], "{said}");
    assert!(said.json_lines()[2]["why"].as_str().unwrap().contains("was not asked"), "{said}");
    assert!(!scene.hosts[2].home.join("asked").exists());
    scene.before.assert_same(&common::manifest(&scene.tree(0)), "not begun");
    std::fs::write(scene.tree(1).join("edited"), "old").unwrap();
    commit().ok();
    scene.assert_done("one after the other");
}

#[test]
fn the_session_that_is_sent_is_of_this_side_s_store_whatever_the_far_one_is_called() {
    if !common::is_root("a tree at the same path on each machine") {
        return;
    }
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    scene.world.recant("-H a,b --store third commit last").ok();
    scene.assert_done("in another store");
    assert!(scene.hosts[1].home.join("third/sessions").join(&scene.id).is_dir());
    assert_eq!(scene.listed(1), [""; 0]);
}

#[test]
fn a_machine_that_is_named_twice_keeps_nothing_that_was_sent_in_vain() {
    if !common::is_root("a tree at the same path on each machine") {
        return;
    }
    let Some(scene) = Scene::new(&["a"]) else { return };
    // Two verbs that lack it, and then two imports, the second when the first has ended; and two verbs that begin together.
    let count = "for n in 1 2 3 4 5 6 7 8; do if mkdir turn$n 2>/dev/null; then break; fi; done";
    let until = |n: u32, what: &str| format!("{n}) while [ ! -e {what} ]; do sleep 0.02; done;;");
    let imported = format!(".local/share/recant/sessions/{}", scene.id);
    let turns = [until(1, "turn2"), until(3, "turn4"), until(4, &imported), until(5, "turn6")].concat();
    scene.login(&scene.hosts[0], &format!("{count}\ncase $n in {turns} esac"));
    let name = format!("root@127.0.0.1:{}", scene.hosts[0].port);
    let said = scene.world.call(["-H", &format!("a,{name}"), "commit", &scene.id]).run();
    assert_ne!(said.status, 0, "{said}");
    assert!(!said.stderr().contains("stays there"), "{said}");
    assert_eq!(scene.listed(0), [""; 0]);
    scene.assert_as_before("named twice");
}

#[test]
fn machines_that_nobody_confirms_take_it_back_by_themselves_and_confirmed_ones_do_not() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    let commit = |within: &str| scene.world.call(["-H", "a,b", "commit", &scene.id, "--confirm-within", within]).run().ok();
    let waiting = |host: usize| scene.hosts[host].store().join("unconfirmed").join(&scene.id).exists();
    commit("1s");
    // The connections have ended: each machine is by itself.
    wait_until("the rollbacks", || !waiting(0) && !waiting(1));
    scene.assert_as_before("not confirmed");
    commit("1h");
    assert!(waiting(0) && waiting(1));
    scene.world.call(["-H", "a,b", "confirm", &scene.id]).run().ok();
    assert!(!waiting(0) && !waiting(1));
    scene.assert_done("confirmed");
}

#[test]
fn the_last_session_is_this_side_s_and_none_of_each_machine_s_own() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    scene.verb("commit").ok();
    let nowhere = scene.world.root().join("no-store");
    let said = scene.world.call(["-H", "a,b", "rollback", "last"]).env("RECANT_STORE", &nowhere).run().with(1);
    assert!(said.stderr().contains("'last' of this machine") && said.stderr().contains("recant -H a list"), "{said}");
    // Verbs that each machine carries out by itself would each mean another one.
    for words in [&["-y", "discard", "last"][..], &["confirm", "last"], &["diff", "last"], &["-y", "session", "prune", "last"]] {
        let said = scene.world.call([&["-H", "a,b"], words].concat()).run().with(1);
        assert!(said.stderr().contains("another session on each") && said.stderr().contains("recant -H a list"), "{said}");
    }
    scene.assert_done("still");
}

#[test]
fn where_one_conflicts_nothing_is_done_anywhere() {
    let Some(scene) = Scene::new(&["a", "b", "c"]) else { return };
    std::fs::write(scene.tree(1).join("edited"), "theirs").unwrap();
    let said = scene.world.call(["-H", &scene.names(), "commit", &scene.id, "--json"]).run().with(3);
    assert_eq!(rows(&said), [row("a", 1, "not begun"), row("b", 3, "failed"), row("c", 1, "not begun")]);
    assert!(said.json_lines()[1]["why"].as_str().unwrap().contains("edited"), "{said}");
    assert_eq!(std::fs::read_to_string(scene.tree(1).join("edited")).unwrap(), "theirs");
    for host in [0, 2] {
        scene.before.assert_same(&common::manifest(&scene.tree(host)), "not begun");
        assert_eq!(scene.listed(host), scene.at_rest(), "what came for this alone is gone");
        assert_eq!(scene.journals(host), 0);
    }
    // By force it goes, and comes back as it was.
    let said = scene.world.call(["-H", &scene.names(), "commit", &scene.id, "--force"]).run().ok();
    assert!(said.stdout().contains("b  committed"), "{said}");
    scene.assert_done("by force");
    scene.verb("rollback").ok();
    assert_eq!(std::fs::read_to_string(scene.tree(1).join("edited")).unwrap(), "theirs");
}

#[test]
fn what_a_machine_names_is_said_for_people_too() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    let text = |words: &[&str]| scene.world.call([&["-H", "a,b"], words, &[&scene.id]].concat()).run();
    for name in ["edited", "gone"] {
        std::fs::write(scene.tree(1).join(name), "theirs").unwrap();
    }
    let said = text(&["commit"]).with(3);
    assert_eq!(
        said.stderr().lines().filter(|line| line.starts_with("b: /") && line.contains("conflict: expected a file")).count(),
        2,
        "{said}"
    );
    let said = text(&["commit", "--force", "--confirm-within", "1h"]).ok();
    for host in ["a", "b"] {
        assert!(
            said.stderr().contains(&format!("{host}: it is rolled back at ")) && said.stderr().contains(" unless confirmed, by "),
            "{said}"
        );
    }
    assert!(said.stderr().contains(&format!("recant -H a,b confirm {} lets it stay", scene.id)), "{said}");
    std::fs::write(scene.tree(1).join("made/deep/foreign"), "").unwrap();
    std::fs::write(scene.tree(1).join("edited"), "once more").unwrap();
    let said = text(&["rollback", "--force"]).with(4);
    assert!(said.stderr().contains("b: what was overwritten is kept: recant -H b cat"), "{said}");
    let left: Vec<String> = said.stderr().lines().filter(|line| line.starts_with("b: /")).map(str::to_owned).collect();
    assert!(left.len() == 2 && left[1].contains("/made/deep: "), "{said}");
    assert!(!said.stderr().contains("a: "), "{said}");
}

#[test]
fn a_session_that_was_sent_in_vain_and_cannot_be_pruned_is_named() {
    // Elsewhere it is there beforehand.
    if !common::is_root("a tree at the same path on each machine") {
        return;
    }
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    std::fs::write(scene.tree(1).join("edited"), "theirs").unwrap();
    // The verb, the import, the verb at its gate; and nobody is let in for the fourth.
    scene.login(&scene.hosts[0], "echo >> times; if [ $(wc -l < times) = 4 ]; then exit 1; fi");
    let said = scene.verb("commit").with(3);
    let key = &scene.id;
    let named = format!("a: session {key}, which was sent for this, stays there, pending: recant -H a session prune {key}");
    assert!(said.stderr().contains(&named), "{said}");
    assert!(!said.stderr().contains("b: session"), "{said}");
    assert_eq!((scene.listed(0), scene.listed(1)), (vec!["pending".to_owned()], vec![]));
    scene.world.call(["-H", "a", "session", "prune", key]).run().ok();
    assert_eq!(scene.listed(0), [""; 0]);
    scene.assert_as_before_but(1, "what was sent is gone");
}

#[test]
fn where_one_cannot_be_reached_nothing_is_done_anywhere() {
    let Some(mut scene) = Scene::new(&["a", "b"]) else { return };
    let hosts = format!("{},nobody", scene.names());
    let said = scene.world.call(["-H", &hosts, "commit", &scene.id, "--json"]).run().with(1);
    assert_eq!(rows(&said), [row("a", 1, "not begun"), row("b", 1, "not begun"), row("nobody", 1, "failed")]);
    scene.assert_as_before("one is unknown");
    assert_eq!(scene.listed(0), scene.at_rest());
    // The session is nowhere.
    let said = scene.world.call(["-H", "a,b", "commit", "20260301-101500-zzzz"]).run().with(1);
    assert!(said.stdout().contains("no session"), "{said}");
    scene.hosts.truncate(2);
    scene.verb("commit").ok();
    scene.assert_done("without it");
}

#[cfg(feature = "crash-points")]
#[test]
fn where_one_dies_or_is_full_at_any_step_all_are_as_before_or_all_have_done_it() {
    let (mut taken_back, mut not_begun) = (0, 0);
    for order in ["kill", "full"] {
        let mut n = 5;
        loop {
            let Some(scene) = Scene::new(&["a", "b"]) else { return };
            // It is there already, so that the first connection is the commit's.
            if bound() {
                let stream = scene.world.call(["session", "export", &scene.id]).run().ok().out;
                scene.world.call(["-H", "b", "session", "import"]).stdin(stream).run().ok();
            }
            let steps = if order == "kill" { format!("kill:{n}") } else { format!("fail:{n}:28") };
            std::fs::write(scene.hosts[1].home.join("armed"), "").unwrap();
            let more = format!("if [ -e armed ]; then rm armed; export RECANT_STEPS={steps}; fi");
            scene.login(&scene.hosts[1], &more);
            let said = scene.world.call(["-H", "a,b", "commit", &scene.id, "--json"]).run();
            let what = format!("b {order} at step {n}: {said}");
            if said.status == 0 {
                scene.assert_done(&what);
                break;
            }
            let rows = rows(&said);
            match &*rows[0].2 {
                "taken back" => taken_back += 1,
                "not begun" => not_begun += 1,
                other => panic!("{other}: {what}"),
            }
            assert!(rows[1].2 != "committed", "{what}");
            // The next verb there ends what was cut off.
            scene.world.call(["-H", "b", "session", "new"]).run().ok();
            scene.assert_as_before(&what);
            assert_eq!((scene.journals(0), scene.journals(1)), (0, 0), "{what}");
            n += 13;
        }
    }
    println!("{taken_back} taken back, {not_begun} not begun");
    assert!(taken_back > 1 && not_begun > 1, "{taken_back} taken back, {not_begun} not begun");
}

/// A verb on `a` and `b` in which `b` is killed after the word to go, its later connections beginning with `after`, shell text.
#[cfg(feature = "crash-points")]
fn killed_after_go(words: &[&str], before: &dyn Fn(&Scene), after: &str) -> Option<(Scene, Said)> {
    for n in (20..).step_by(6) {
        let scene = Scene::new(&["a", "b"])?;
        if bound() {
            let stream = scene.world.call(["session", "export", &scene.id]).run().ok().out;
            scene.world.call(["-H", "a,b", "session", "import"]).stdin(stream).run().ok();
        }
        before(&scene);
        std::fs::write(scene.hosts[1].home.join("armed"), "").unwrap();
        let more = format!("if [ -e armed ]; then rm armed; export RECANT_STEPS=kill:{n}; else {after}; fi");
        scene.login(&scene.hosts[1], &more);
        let said = scene.world.call([&["-H", "a,b", "--json"], words, &[&scene.id]].concat()).run();
        assert_ne!(said.status, 0, "no step is left: {said}");
        if rows(&said)[0].2 != "not begun" {
            return Some((scene, said));
        }
    }
    None
}

#[cfg(feature = "crash-points")]
#[test]
fn what_was_committed_before_stays_when_a_commit_is_taken_back() {
    // The far side's paths are the world's own there.
    if !common::is_root("a tree at the same path on each machine") {
        return;
    }
    let first = |scene: &Scene| {
        let made = scene.world.path("made").display().to_string();
        scene.world.call(["-H", "a,b", "commit", &scene.id, "--", &made]).run().ok();
    };
    let Some((scene, said)) = killed_after_go(&["commit"], &first, ":") else { return };
    assert_eq!(rows(&said)[0].2, "taken back", "{said}");
    assert_eq!(std::fs::read_to_string(scene.tree(0).join("edited")).unwrap(), "old", "{said}");
    assert!(scene.tree(0).join("gone").exists(), "{said}");
    assert_eq!(std::fs::read_to_string(scene.tree(0).join("made/deep/new")).unwrap(), "new", "{said}");
    assert_eq!(scene.listed(0), ["partial"]);
    // What the lost one did of it nobody can tell here.
    assert_eq!(rows(&said)[1].2, "unknown", "{said}");
    assert!(said.json_lines()[1]["why"].as_str().unwrap().contains("was on its tree before"), "{said}");
}

#[cfg(feature = "crash-points")]
#[test]
fn what_taking_back_leaves_out_is_named_and_so_is_what_force_had_overwritten() {
    let edited = |scene: &Scene| {
        scene.verb("commit").ok();
        std::fs::write(scene.tree(0).join("edited"), "theirs").unwrap();
    };
    let Some((scene, said)) = killed_after_go(&["rollback", "--force"], &edited, ":") else { return };
    assert_eq!(rows(&said)[0], row("a", 1, "taken back"), "{said}");
    let told = &said.json_lines()[0];
    assert!(told["why"].as_str().unwrap().ends_with(", 1 left out"), "{told}");
    assert!(told["back"]["left"][0]["path"].as_str().unwrap().ends_with("/edited"), "{told}");
    assert!(told["report"]["displaced"][0].as_str().unwrap().ends_with("/edited"), "{told}");
    // It is where it is said to be.
    let path = told["report"]["displaced"][0].as_str().unwrap();
    let kept = scene.world.call(["-H", "a", "cat", &scene.id, path, "--displaced"]).run().ok();
    assert_eq!(kept.stdout(), "theirs");
}

#[cfg(feature = "crash-points")]
#[test]
fn a_lost_machine_that_refuses_is_not_said_to_be_as_before() {
    // What it answers later has nothing to do with what it did.
    let Some((scene, said)) = killed_after_go(&["commit"], &|_| (), "export RECANT_STORE=$HOME/elsewhere") else { return };
    assert_eq!(rows(&said)[0].2, "taken back", "{said}");
    assert_eq!(rows(&said)[1].2, "unknown", "{said}");
    scene.login(&scene.hosts[1], "");
    scene.world.call(["-H", "b", "show", &scene.id]).run().ok();
}

#[cfg(feature = "crash-points")]
#[test]
fn machines_at_their_gates_are_told_to_wait_though_others_have_something_to_say() {
    let Some(scene) = Scene::new(&["a", "b", "c", "d", "e"]) else { return };
    // One after the other is ready: never is it silent for long, and in all for longer than a gate waits.
    for (n, host) in scene.hosts.iter().enumerate() {
        scene.login(host, &format!("if [ ! -e late ]; then : > late; sleep 0.{}; sleep {}; fi", n * 7 % 10, n * 7 / 10));
    }
    let names = scene.names();
    let said = scene.world.call(["-H", &names, "commit", &scene.id, "--json"]).env("RECANT_GATE_SILENCE_MS", "2400").run();
    assert_eq!(said.status, 0, "{said}");
    scene.assert_done("one after the other");
}

#[cfg(feature = "crash-points")]
#[test]
fn a_machine_that_is_lost_at_its_gate_clears_up_by_itself() {
    let Some(scene) = Scene::new(&["a", "b", "c"]) else { return };
    // The third one is late: the others wait for it at their gates.
    scene.login(&scene.hosts[2], "while [ ! -e go-on ]; do sleep 0.05; done");
    let mut command =
        scene.world.call(["-H", "a,b,c", "commit", &scene.id, "--json"]).env("RECANT_GATE_SILENCE_MS", "1500").command();
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let journals = |host: usize| std::fs::read_dir(scene.hosts[host].store().join("journals")).map_or(0, Iterator::count);
    wait_until("b at its gate", || journals(1) > 0 || !bound() && !scene.hosts[1].connections().is_empty());
    for connection in scene.hosts[1].connections() {
        let _gone =
            rustix::process::kill_process(rustix::process::Pid::from_raw(connection).unwrap(), rustix::process::Signal::KILL);
    }
    std::fs::write(scene.hosts[2].home.join("go-on"), "").unwrap();
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(text.contains("\"host\":\"b\",\"exit\":1"), "{text}");
    wait_until("b has cleared up", || journals(1) == 0);
    scene.assert_as_before("b was lost");
    let said = scene.verb("commit").ok();
    scene.assert_done(&said.stdout());
}

#[track_caller]
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
