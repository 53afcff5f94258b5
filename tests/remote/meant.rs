//! Which session a commit on several machines means: this side's, by its name, its store and its state, and no other one that a machine has.

use crate::common;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::machines::{Scene, bound, row, rows};

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
        assert!(
            said.stdout().contains("another state of session") && remedy.contains("recant -H a session prune"),
            "{what}: {said}"
        );
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
    // What is discarded there had the name.
    scene.hosts[1].here(&scene.world, ["discard", "fix", "-y"]).run().ok();
    scene.world.recant("-H a,b commit fix").ok();
    scene.assert_done("by its name");
}

#[test]
fn by_its_id_a_session_is_meant_whatever_its_name_is_on_a_machine() {
    let Some(scene) = Scene::new(&["a", "b"]) else { return };
    scene.world.call(["session", "rename", &scene.id, "fix"]).run().ok();
    scene.world.recant("-H b session new -n fix").ok();
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
            let text = format!("session {} is not here: the commit sends it", scene.id);
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
