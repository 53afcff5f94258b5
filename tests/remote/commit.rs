//! One commit on several machines: on all of them or on none, whoever conflicts, is full, cannot be reached, or dies.

use crate::common::sweep;
use crate::common::{self, Said};
use crate::machines::{Scene, bound, row, rows};
use crate::ssh;

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
fn machines_that_nobody_confirms_take_it_back_by_themselves_and_confirmed_ones_do_not() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    let commit = |within: &str| scene.world.call(["-H", "a,b", "commit", &scene.id, "--confirm-within", within]).run().ok();
    let waiting = |host: usize| scene.hosts[host].store().join("unconfirmed").join(&scene.id).exists();
    commit("1s");
    // The connections have ended: each machine is by itself.
    ssh::until("the rollbacks", || !waiting(0) && !waiting(1));
    scene.assert_as_before("not confirmed");
    commit("1h");
    assert!(waiting(0) && waiting(1));
    scene.world.call(["-H", "a,b", "confirm", &scene.id]).run().ok();
    assert!(!waiting(0) && !waiting(1));
    scene.assert_done("confirmed");
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
    assert!(!said.stderr().lines().any(|line| line.starts_with("a: ")), "{said}");
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

/// Sends the session beforehand, so that the first connection is the commit's.
fn sent_before(scene: &Scene, hosts: &str) {
    if bound() {
        let stream = scene.world.call(["session", "export", &scene.id]).run().ok().out;
        scene.world.call(["-H", hosts, "session", "import"]).stdin(stream).run().ok();
    }
}

/// Lets the next connection to `b` have this order for its steps, and later ones do `after`, shell text.
fn arm(scene: &Scene, order: &str, after: &str) {
    std::fs::write(scene.hosts[1].home.join("armed"), "").unwrap();
    let more = format!("if [ -e armed ]; then rm armed; export RECANT_STEPS={order}; else {after}; fi");
    scene.login(&scene.hosts[1], &more);
}

#[test]
#[ignore = "long: two machines made anew for each step"]
fn where_one_dies_or_is_full_at_any_step_all_are_as_before_or_all_have_done_it() {
    let mut seen = std::collections::BTreeSet::new();
    for order in ["kill:N", "fail:N:28"] {
        for n in sweep::steps() {
            let Some(scene) = Scene::new(&["a", "b"]) else { return };
            sent_before(&scene, "b");
            arm(&scene, &order.replace('N', &n.to_string()), ":");
            let said = scene.world.call(["-H", "a,b", "commit", &scene.id, "--json"]).run();
            let what = format!("b, {order} at step {n}: {said}");
            if said.status == 0 {
                scene.assert_done(&what);
                break;
            }
            let rows = rows(&said);
            assert!(["taken back", "not begun"].contains(&&*rows[0].2) && rows[1].2 != "committed", "{what}");
            // The next verb there ends what was cut off.
            scene.world.call(["-H", "b", "session", "new"]).run().ok();
            scene.assert_as_before(&what);
            assert_eq!((scene.journals(0), scene.journals(1)), (0, 0), "{what}");
            seen.insert((order, rows[0].2.clone()));
        }
    }
    assert!(seen.len() == 4 || !sweep::is_whole(), "{seen:?}");
}

/// A verb on `a` and `b` in which `b` is killed after the word to go, its later connections beginning with `after`, shell text.
/// Which step that is, is searched for.
fn killed_after_go(words: &[&str], before: &dyn Fn(&Scene), after: &str) -> Option<(Scene, Said)> {
    for n in (20..).step_by(6) {
        let scene = Scene::new(&["a", "b"])?;
        sent_before(&scene, "a,b");
        before(&scene);
        arm(&scene, &format!("kill:{n}"), after);
        let said = scene.world.call([&["-H", "a,b", "--json"], words, &[&scene.id]].concat()).run();
        assert_ne!(said.status, 0, "no step is left: {said}");
        if rows(&said)[0].2 != "not begun" {
            return Some((scene, said));
        }
    }
    None
}

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
    assert!(told["back"]["skipped"][0]["path"].as_str().unwrap().ends_with("/edited"), "{told}");
    assert!(told["report"]["displaced"][0].as_str().unwrap().ends_with("/edited"), "{told}");
    // It is where it is said to be.
    let path = told["report"]["displaced"][0].as_str().unwrap();
    let kept = scene.world.call(["-H", "a", "cat", &scene.id, path, "--displaced"]).run().ok();
    assert_eq!(kept.stdout(), "theirs");
}

#[test]
fn a_lost_machine_that_refuses_is_not_said_to_be_as_before() {
    // What it answers later has nothing to do with what it did.
    let Some((scene, said)) = killed_after_go(&["commit"], &|_| (), "export RECANT_STORE=$HOME/elsewhere") else { return };
    assert_eq!(rows(&said)[0].2, "taken back", "{said}");
    assert_eq!(rows(&said)[1].2, "unknown", "{said}");
    scene.login(&scene.hosts[1], "");
    scene.world.call(["-H", "b", "show", &scene.id]).run().ok();
}

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

#[test]
fn a_machine_that_is_lost_at_its_gate_clears_up_by_itself() {
    let Some(scene) = Scene::new(&["a", "b", "c"]) else { return };
    // The third one is late: the others wait for it at their gates.
    scene.login(&scene.hosts[2], "while [ ! -e go-on ]; do sleep 0.05; done");
    let mut command =
        scene.world.call(["-H", "a,b,c", "commit", &scene.id, "--json"]).env("RECANT_GATE_SILENCE_MS", "1500").command();
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let journals = |host: usize| std::fs::read_dir(scene.hosts[host].store().join("journals")).map_or(0, Iterator::count);
    ssh::until("b at its gate", || journals(1) > 0 || !bound() && !scene.hosts[1].connections().is_empty());
    for connection in scene.hosts[1].connections() {
        let _gone =
            rustix::process::kill_process(rustix::process::Pid::from_raw(connection).unwrap(), rustix::process::Signal::KILL);
    }
    std::fs::write(scene.hosts[2].home.join("go-on"), "").unwrap();
    let ended = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&ended.stderr));
    assert!(text.contains("\"host\":\"b\",\"exit\":1"), "{text}");
    ssh::until("b has cleared up", || journals(1) == 0);
    scene.assert_as_before("b was lost");
    let said = scene.verb("commit").ok();
    scene.assert_done(&said.stdout());
}
