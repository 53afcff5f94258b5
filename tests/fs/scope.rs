//! Names and scope: which session a word means where, and how a command in a message reaches the same one.

use std::io::Write;
use std::process::Stdio;

use crate::common::sweep::steps_of;
use crate::common::{Said, World, can_run, recant};
use crate::on_stderr;
use insta::assert_snapshot;

#[test]
fn a_command_in_a_message_reaches_the_store_that_the_call_named() {
    let world = World::new();
    let store = world.root().join("it's mine");
    world.write("f", "old");
    let in_store =
        |words: &str| world.call(["--store".as_ref(), store.as_os_str()].into_iter().chain(words.split(' ').map(str::as_ref)));
    let id = in_store("session new").run().ok().id();
    in_store(&format!("session write {id} f")).stdin("new").run().ok();
    let said = in_store(&format!("commit {id}")).run().ok().stderr();
    let option = format!("--store '{}'", world.root().join(r"it'\''s mine").display());
    let back = format!("recant {option} rollback {}", &id[16..]);
    assert!(said.contains(&back), "{said}");
    // Of errors that any room makes, too.
    for words in [format!("rollback {id} --dry-run"), "show none".into(), format!("session write {id} f")] {
        let said = in_store(&words).run();
        assert!(!said.stderr().contains("recant rollback") && !said.stderr().contains("recant list"), "{said}");
    }
    let said = in_store("session write none f").run().with(1);
    assert!(said.stderr().contains(&format!("recant {option} list --all shows all sessions")), "{said}");
    let said = in_store(&format!("discard {id}")).run().with(1);
    assert!(said.stderr().contains(&format!("recant {option} rollback {id} first")), "{said}");
    // A shell that is given the command finds the session.
    let bare = format!("PATH={}:$PATH; {back}", std::path::Path::new(recant()).parent().expect("a directory").display());
    world.program("sh", ["-c", &bare]).run().ok();
    assert_eq!(world.read("f"), "old");
}

/// Two projects with a repository each, and a file in each.
fn two_projects() -> World {
    let world = World::new();
    for project in ["src", "web"] {
        world.mkdir(format!("{project}/.git")).mkdir(format!("{project}/docs")).write(format!("{project}/f"), "old");
    }
    world
}

/// Stages new content for `f` of a project, begun in `dir`; gives the session's id.
fn staged(world: &World, dir: &str, project: &str) -> String {
    let id = recant_in(world, dir, "session new").ok().id();
    world.stage_write(&id, format!("{project}/f"), "new");
    id
}

/// Runs recant in a directory below the tree.
fn recant_in(world: &World, dir: &str, words: &str) -> Said {
    world.call(words.split_whitespace()).cwd(world.path(dir)).run()
}

#[test]
fn last_is_of_this_project_for_what_changes_something() {
    let world = two_projects();
    let web = staged(&world, "web/docs", "web");
    let src = staged(&world, "src", "src");
    recant_in(&world, "src", "commit last").ok();
    // The newest session is that of src. What is typed in web is about web.
    assert!(recant_in(&world, "web", "commit last --dry-run").ok().masked_err().starts_with("recant: session <id1~>: "));
    let said = recant_in(&world, "web", "rollback last").with(1);
    assert_eq!(world.read("src/f"), "new", "{said}");
    assert_snapshot!(on_stderr(&said, 1), @r#"
    recant: last is <id1~>, which is pending: it cannot be rolled back
            nothing was changed
            recant show <id1~>
    "#);
    let said = recant_in(&world, "", "discard last").with(1).stderr();
    assert!(said.contains(&format!("begun in {}: recant discard {web}", world.path("web/docs").display())), "{said}");
    recant_in(&world, "web/docs", "commit last").ok();
    assert_eq!(world.status(&web), "committed");
    recant_in(&world, "src/docs", "rollback last").ok();
    assert_eq!(world.read("src/f"), "old");
    assert_eq!((world.read("web/f"), world.status(&src)), ("new".into(), "rolled_back".into()));
}

#[test]
fn last_is_the_session_of_the_newest_act_and_a_line_typed_twice_reaches_no_further_back() {
    let world = two_projects();
    let ids: Vec<String> = (0..3).map(|_| staged(&world, "web", "web")).collect();
    world.recant(&format!("commit {}", ids[1])).ok();
    world.recant(&format!("rollback {}", ids[1])).ok();
    world.recant(&format!("commit {}", ids[0])).ok();
    let said = recant_in(&world, "web", "rollback last").ok();
    assert!(said.masked_err().starts_with("recant: session <id1~>: "), "{said}");
    for (verb, why, before) in [
        ("rollback", "nothing to roll back: <id1~> is rolled back already", "recant redo <id1~>\n"),
        ("discard", "last is <id1~>, which is rolled back: it cannot be", "the one before it: recant discard <id3>\n"),
    ] {
        let said = recant_in(&world, "web", &format!("{verb} last")).with(1);
        assert!(said.masked_err().contains(why), "{said}");
        assert!(said.masked_err().ends_with(before), "{said}");
    }
    let said = recant_in(&world, "web", "redo last --dry-run").ok();
    assert!(said.masked_err().starts_with("recant: session <id1~>: "), "{said}");
    recant_in(&world, "web", &format!("discard {}", ids[2])).ok();
    let said = recant_in(&world, "web", "discard last").with(1);
    assert!(said.masked_err().starts_with("recant: nothing to discard: <id3~> is discarded already\n"), "{said}");
    let empty = recant_in(&world, "web", "session new").ok().id();
    assert_eq!(recant_in(&world, "web", "show --json").ok().json()["session"]["id"], *ids[2], "nothing is in it yet");
    world.call(["session", "write", "last", "g"]).cwd(world.path("web")).stdin("x").run().ok();
    assert_eq!(world.status(&empty), "pending");
    recant_in(&world, "web", "session rename last named").ok();
    assert_eq!(world.recant("show named --json").ok().json()["session"]["id"], *empty);
}

/// A clock that went back tells nothing.
#[test]
fn undo_takes_back_the_newest_act_then_the_one_before_and_redo_goes_forward() {
    let world = World::new();
    let ids = ["a", "b", "c"].map(|name| world.edited(name));
    let state = || ["a", "b", "c"].map(|name| world.read(name));
    let mut states = vec![state()];
    for id in [&ids[1], &ids[2], &ids[0]] {
        world.call(["commit", id]).run().ok();
        states.push(state());
    }
    world.call(["rollback", &ids[1]]).run().ok();
    states.push(state());
    for n in (0..4).rev() {
        world.recant("undo -y").ok();
        assert_eq!(state(), states[n], "undone to {n}");
    }
    world.recant("undo -y").with(1);
    for (n, wanted) in states.iter().enumerate().skip(1) {
        world.recant("redo").ok();
        assert_eq!(state(), *wanted, "redone to {n}");
    }
    world.recant("redo").with(1);
    // A new act ends the way forward; what was undone before it is passed over.
    world.recant("undo -y").ok();
    world.call(["rollback", &ids[2]]).run().ok();
    world.recant("redo").with(1);
    world.recant("undo -y").ok();
    assert_eq!(state(), states[3]);
    world.recant("undo -y").ok();
    assert_eq!(state(), states[2]);
    // What somebody did since is in the way, and nothing is passed over for it.
    world.write("c", "theirs");
    world.recant("undo -y").with(3);
    assert_eq!(world.read("b"), states[2][1]);
    // Of a session that is named the newest act alone.
    let said = world.call(["undo", &ids[1], "-y"]).run().ok();
    assert_eq!(world.read("b"), states[0][1], "{said}");
    // An act that is in no log is not guessed at.
    let log = world.store().join("log.jsonl");
    let text = std::fs::read_to_string(&log).expect("the log");
    let cut = text.trim_end().rfind('\n').expect("several lines") + 1;
    std::fs::write(&log, &text[..cut]).expect("a log without its last line");
    let said = world.recant("undo -y").with(1);
    assert!(said.stderr().contains(&format!("the log has no entry for the newest act, on session {}", &ids[1][16..])), "{said}");
}

/// Of a session that is named the act alone, whatever came after it; and what can never be taken back is named, with the one before.
#[test]
fn an_undo_of_a_named_session_leaves_the_others_to_be_undone() {
    let world = World::new();
    let ids = ["a", "b", "c"].map(|name| world.edited(name));
    ids.iter().for_each(|id| drop(world.call(["commit", id]).run().ok()));
    world.call(["undo", &ids[1], "-y"]).run().ok();
    let log = world.recant("log").ok().stdout();
    assert_eq!(log.matches("undone").count(), 1, "{log}");
    world.recant("undo -y").ok();
    assert_eq!(["a", "b", "c"].map(|name| world.read(name)), ["new", "old", "old"]);
    // A number that a pruned session had is not given again, in another boot neither.
    world.call(["prune", "--sessions", &ids[2], "-y"]).run().ok();
    world.write(world.store().join("acts"), "00000000-0000-0000-0000-000000000000 1\n");
    let next = world.edited("d");
    world.call(["commit", &next]).run().ok();
    world.recant("undo -y").ok();
    assert_eq!(["a", "d"].map(|name| world.read(name)), ["new", "old"]);
    for garbage in
        ["", "x", &format!("{} {}", std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim(), u64::MAX)]
    {
        world.write(world.store().join("acts"), garbage);
        world.recant("redo").ok();
        assert_eq!(world.read("d"), "new", "{garbage}");
        world.recant("undo -y").ok();
        assert_eq!(["a", "d"].map(|name| world.read(name)), ["new", "old"], "{garbage}");
    }
    let held = world.edited("e");
    world.call(["discard", &held]).run().ok();
    world.recant("prune --discarded -y").ok();
    let said = world.recant("undo -y").with(1);
    assert!(
        said.masked_err().contains("which is freed") && said.stderr().contains(&format!("recant undo {}", &ids[0][16..])),
        "{said}"
    );
    // The deadline's rollback is nobody's who types.
    let waits = world.edited("f");
    world.call(["commit", &waits, "--confirm-within", "1s"]).env("RECANT_CONFIRM_BY", "nobody").run().ok();
    crate::common::until("the deadline", || {
        world.recant("session new").ok();
        world.read("f") == "old"
    });
    let said = world.recant("undo -y").with(1);
    assert!(said.stderr().contains("not yours: rollback of session") && said.stderr().contains("by deadline"), "{said}");
}

/// Where the counter cannot be written, as on a full disk, the headers tell the next number.
#[test]
fn no_number_of_an_act_is_given_twice() {
    let world = World::new();
    let first = world.edited("first");
    let steps = steps_of(|| world.call(["commit", &first]));
    let of_counter: Vec<usize> = (1..=steps.len()).filter(|n| steps[n - 1].contains("/store/acts")).collect();
    assert!(of_counter.len() >= 3, "{steps:?}");
    world.call(["commit", &first]).run().ok();
    for n in of_counter {
        let ids = [world.edited(&format!("a{n}")), world.edited(&format!("b{n}"))];
        world.call(["commit", &ids[0]]).env("RECANT_STEPS", format!("fail:{n}:28")).run().ok();
        world.call(["commit", &ids[1]]).run().ok();
    }
    let log = world.recant("log --json").ok().json();
    let acts: Vec<u64> =
        log["entries"].as_array().expect("entries").iter().map(|entry| entry["act"].as_u64().expect("an act")).collect();
    assert!(acts.windows(2).all(|pair| pair[0] > pair[1]), "{acts:?}");
}

#[test]
fn undo_names_what_is_held_and_leaves_the_acts_of_others_to_them() {
    let world = World::new();
    let (first, held) = (world.edited("a"), world.begin());
    world.call(["commit", &first]).run().ok();
    world.stage_write(&held, "b", "new");
    let said = world.recant("undo -y").with(1);
    assert_snapshot!(on_stderr(&said, 1), @"
    recant: the newest changes are only held, in session <id2~>: recant discard <id2~>
            nothing was changed
            the one before it: recant undo <id1~>
    ");
    // An agent's own held work is no act of a person's to undo.
    let agent = |words: &str| world.call(words.split_whitespace()).env("CLAUDECODE", "1").run();
    world.call(["discard", &held]).run().ok();
    let own = agent("session new").ok().id();
    world.call(["session", "write", &own, "c"]).env("CLAUDECODE", "1").stdin("x").run().ok();
    agent(&format!("discard {own}")).ok();
    let said = world.recant("undo -y").ok();
    assert!(said.masked_err().contains("skipped: 1 act of others on held sessions"), "{said}");
    assert_eq!((world.status(&held), world.status(&own)), ("pending".into(), "discarded".into()));
    // It takes back what it did itself, and no more.
    agent("undo -y").ok();
    assert_eq!(world.status(&own), "pending");
    let said = agent(&format!("undo {first} -y")).with(1);
    assert!(said.stderr().contains("in your own terminal: recant undo"), "{said}");
    // What an agent may commit, a person takes back by its id.
    world.config("[agent]\ncommit = 'allow'\n");
    agent(&format!("commit {own}")).ok();
    let said = world.recant("undo -y").with(1);
    assert!(said.masked_err().contains("the newest act here is not yours: commit of session"), "{said}");
    for verb in ["rollback", "discard", "commit", "redo"] {
        let said = world.recant(&format!("{verb} last")).with(1);
        assert!(verb != "rollback" || said.stderr().contains("the newest act on it is claude's"), "{said}");
    }
    world.call(["undo", &own, "-y"]).run().ok();
    assert!(!world.exists("c"));
}

#[test]
fn a_verb_that_only_reads_takes_the_newest_anywhere_where_this_project_has_none() {
    let world = two_projects();
    let web = staged(&world, "web", "web");
    let src = staged(&world, "src", "src");
    assert_eq!(recant_in(&world, "web", "show --json").ok().json()["session"]["id"], *web);
    assert_eq!(recant_in(&world, "src/docs", "diff last --json").ok().json()["session"]["id"], *src);
    let said = world.recant("diff --name-only").ok();
    assert_eq!(said.masked_err(), "recant: last is <id2>, begun in /world/tree/src: this project has none\n");
}

#[test]
fn a_session_of_an_older_recant_is_of_the_project_of_its_command_or_of_its_first_path() {
    let world = two_projects();
    let web = staged(&world, "src", "web");
    let forget_where = |id: &str, begun_in: &str| {
        let header = world.session(id).join("session.json");
        let text = std::fs::read_to_string(&header).expect("the header");
        let cwd = format!("\"cwd\":\"{}\",", world.path(begun_in).display());
        assert!(text.contains(&cwd), "a session records where it was begun: {text}");
        std::fs::write(&header, text.replace(&cwd, "")).expect("the header as it was");
    };
    forget_where(&web, "src");
    recant_in(&world, "src", "commit last").with(1);
    recant_in(&world, "web", "commit last").ok();
    if !can_run() {
        return;
    }
    recant_in(&world, "src/docs", "run -- touch made").ok();
    let run = recant_in(&world, "src", "show --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
    forget_where(&run, "src/docs");
    recant_in(&world, "web", "discard last").with(1);
    recant_in(&world, "src", "discard last").ok();
}

#[test]
fn what_is_restored_or_imported_belongs_to_the_project_where_that_was_done() {
    let world = two_projects();
    let id = staged(&world, "web", "web");
    let stream = world.call(["session", "export", &id]).run().ok().out;
    world.recant(&format!("prune --sessions {id}")).ok();
    world.call(["session", "import"]).cwd(world.path("src")).stdin(stream).run().ok();
    recant_in(&world, "web", "commit last").with(1);
    recant_in(&world, "src", "commit last").ok();
    assert_eq!(world.read("web/f"), "new");
    recant_in(&world, "src", "snapshot create").ok();
    world.write("src/f", "newer");
    recant_in(&world, "src", "snapshot restore last").ok();
    assert_eq!(world.read("src/f"), "old");
    recant_in(&world, "src", "rollback last").ok();
    assert_eq!((world.read("src/f"), world.read("web/f")), ("newer".into(), "new".into()));
}

#[test]
fn a_name_means_the_newest_session_that_got_it() {
    let world = two_projects();
    let named = |file: &str| {
        let id = world.recant("session new -n deploy").ok().id();
        world.stage_write(&id, file, "new");
        id
    };
    let first = named("web/f");
    world.recant("session new -n deploy").with(1);
    world.recant("commit deploy").ok();
    let second = named("src/f");
    assert_eq!(world.recant("show deploy --json").ok().json()["session"]["id"], *second);
    let said = world.recant("rollback deploy").with(1);
    assert!(said.stderr().contains(&format!("the one before it: recant rollback {first}")), "{said}");
    assert_eq!((world.status(&first), world.status(&second)), ("committed".into(), "pending".into()));
    world.recant("commit deploy").ok();
    assert_eq!(world.status(&second), "committed");
    world.recant("rollback deploy").ok();
    world.recant("redo deploy").ok();
    assert_eq!((world.status(&first), world.status(&second)), ("committed".into(), "committed".into()));
}

#[test]
fn a_name_that_sessions_of_several_projects_have_means_that_of_this_one() {
    let world = two_projects();
    let named = |dir: &str, name: &str| {
        let id = recant_in(&world, dir, &format!("session new -n {name}")).ok().id();
        world.stage_write(&id, format!("{dir}/f"), "new");
        id
    };
    let src = named("src", "build");
    recant_in(&world, "src", "commit build").ok();
    let web = named("web", "build");
    recant_in(&world, "web", "rollback build").with(1);
    assert_eq!((world.read("src/f"), world.status(&src)), ("new".into(), "committed".into()));
    // Of a third project both are elsewhere.
    let said = recant_in(&world, "", "commit build").with(1);
    assert!(said.stderr().contains(&format!("begun in {}: recant commit {web}", world.path("web").display())), "{said}");
    assert_eq!(recant_in(&world, "", "show build --json").ok().json()["session"]["id"], *web);
    recant_in(&world, "web", "commit build").ok();
    recant_in(&world, "src/docs", "rollback build").ok();
    assert_eq!((world.read("src/f"), world.read("web/f")), ("old".into(), "new".into()));
    // The only one of its name is meant wherever it was begun, which is said.
    let only = named("src", "upgrade");
    let said = recant_in(&world, "web", "commit upgrade").ok();
    assert!(said.stderr().contains(&format!("upgrade is session {}, begun in ", &only[16..])), "{said}");
    assert_eq!(world.status(&only), "committed");
}

#[test]
fn last_never_means_what_was_taken_back() {
    let world = two_projects();
    let id = staged(&world, "web", "web");
    recant_in(&world, "web", "commit last").ok();
    recant_in(&world, "web", "undo -y").ok();
    for verb in ["commit", "discard"] {
        let said = recant_in(&world, "web", &format!("{verb} last")).with(1);
        assert!(said.masked_err().contains("last is <id1~>, which is rolled back"), "{said}");
        // Nor is it advised elsewhere, or to an agent.
        let said = recant_in(&world, "src", &format!("{verb} last")).with(1);
        assert!(!said.stderr().contains(&id[16..]), "{said}");
    }
    let said = world.call(["commit", "last"]).cwd(world.path("web")).env("CLAUDECODE", "1").run().with(1);
    assert!(!said.stderr().contains(&id[16..]), "{said}");
    assert_eq!((world.status(&id), world.read("web/f")), ("rolled_back".into(), "old".into()));
    // By its id it is meant.
    world.recant(&format!("commit {id}")).ok();
    assert_eq!(world.read("web/f"), "new");
}

#[test]
fn a_part_that_was_committed_is_last_and_its_name_means_it_or_the_rest() {
    let world = two_projects();
    let older = staged(&world, "web", "web");
    let id = recant_in(&world, "web", "session new -n half").ok().id();
    world.write("web/f", "old").write("web/g", "old").stage_write(&id, "web/f", "new").stage_write(&id, "web/g", "new");
    recant_in(&world, "web", "commit half g").ok();
    let said = recant_in(&world, "web", "discard last").with(1);
    assert!(said.stderr().contains(&format!("the one before it: recant discard {id}")), "{said}");
    assert_eq!((world.status(&older), world.status(&id)), ("pending".into(), "pending".into()));
    // What looks means the rest, whatever was done to a part.
    assert_eq!(recant_in(&world, "web", "diff half --name-only").ok().stdout().lines().count(), 1);
    recant_in(&world, "web", "rollback half").ok();
    assert_eq!(world.read("web/g"), "old");
    recant_in(&world, "web", "redo half").ok();
    recant_in(&world, "web", "discard half").ok();
    assert_eq!((world.read("web/g"), world.status(&id)), ("new".into(), "discarded".into()));
    recant_in(&world, "web", "rollback half").ok();
    assert_eq!((world.read("web/f"), world.read("web/g")), ("old".into(), "old".into()));
    // The name is free, and means the new one from then on.
    let next = recant_in(&world, "web", "session new -n half").ok().id();
    world.stage_write(&next, "web/f", "next");
    let said = recant_in(&world, "web", "redo half").with(1);
    assert!(said.stderr().contains("the one before it: recant redo "), "{said}");
    recant_in(&world, "web", "commit half").ok();
    assert_eq!(world.read("web/f"), "next");
}

#[test]
fn each_project_has_names_of_its_own() {
    let world = two_projects();
    if !can_run() {
        return;
    }
    for project in ["src", "web"] {
        let words = ["run", "--session", "work", "--", "sh", "-c", "echo $PWD >> f"];
        for _ in 0..2 {
            world.call(words).cwd(world.path(project)).run().ok();
        }
    }
    let held = |project: &str| recant_in(&world, project, "list --json").ok().json()["sessions"].as_array().unwrap().len();
    assert_eq!((held("src"), held("web")), (1, 1));
    recant_in(&world, "web", "commit work").ok();
    assert_eq!(world.read("src/f"), "old");
    assert_eq!(world.read("web/f").lines().count(), 2);
    let said = world.call(["run", "-n", "work", "--", "true"]).cwd(world.path("src")).run().with(125);
    assert!(said.stderr().contains("the name \"work\" is taken"), "{said}");
}

#[test]
fn no_name_hides_a_session_from_its_short_id() {
    let world = two_projects();
    let id = staged(&world, "web", "web");
    let tail = &id[16..];
    let other = world.begin();
    for words in [format!("session new -n {tail}"), format!("session rename {other} {tail}")] {
        let said = world.recant(&words);
        // A name starts with a letter.
        if said.status == 1 && tail.starts_with(|c: char| c.is_ascii_alphabetic()) {
            assert!(said.stderr().contains(&format!("the name {tail:?} is the last part of session {id}")), "{said}");
        }
        assert_eq!(said.status, 1, "{said}");
    }
}

#[test]
fn nearest_is_what_is_near_and_else_what_is_pending_here() {
    let world = two_projects();
    let id = staged(&world, "web", "web");
    world.recant(&format!("session rename {id} upgrade")).ok();
    assert_snapshot!(on_stderr(&recant_in(&world, "web", "commit upgrede"), 1), @r#"
    recant: no session "upgrede"; the nearest: <id1> (upgrade)
            nothing was changed
            recant list --all shows all sessions
    "#);
    assert_snapshot!(on_stderr(&recant_in(&world, "web", "commit zzz"), 1), @r#"
    recant: no session "zzz"
            nothing was changed
            pending here: <id1~> (upgrade); recant list --all shows all sessions
    "#);
    let said = recant_in(&world, "src", "commit zzz").with(1);
    assert!(!said.stderr().contains("upgrade"), "{said}");
}

/// What a person at a terminal sees who answers so; and the status.
fn at_terminal(world: &World, dir: &str, words: &str, answer: &str) -> Option<(i32, String)> {
    let command = format!("{} {words}", recant());
    let mut child = world.program("script", ["-qec", &command, "/dev/null"]).cwd(world.path(dir)).command();
    child.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = child.spawn() else {
        println!("skipped: script makes the terminal");
        return None;
    };
    child.stdin.take().expect("its input").write_all(answer.as_bytes()).expect("an answer");
    let output = child.wait_with_output().expect("its end");
    Some((output.status.code().expect("a status"), String::from_utf8_lossy(&output.stdout).replace('\r', "")))
}

#[test]
fn undo_without_a_terminal_wants_y_or_the_verb_that_asks_nothing() {
    let world = two_projects();
    staged(&world, "web", "web");
    recant_in(&world, "web", "commit last").ok();
    assert_snapshot!(on_stderr(&recant_in(&world, "web", "undo"), 2), @r#"
    recant: undo asks first, and there is no terminal
            recant undo <id1~> -y does not ask
    "#);
    recant_in(&world, "src", "undo -y").with(1);
    recant_in(&world, "web", "undo --dry-run").ok();
    assert_eq!(world.read("web/f"), "new");
    recant_in(&world, "web", "undo -y").ok();
    assert_eq!(world.read("web/f"), "old");
}

#[test]
fn undo_at_a_terminal_shows_what_it_does_and_asks() {
    let world = two_projects();
    let id = staged(&world, "web", "web");
    for n in 0..12 {
        world.stage_write(&id, format!("web/n{n:02}"), "x");
    }
    world.stage_write(&id, "web/node_modules/a", "x").stage_write(&id, "web/node_modules/b", "x");
    recant_in(&world, "web", "commit last").ok();
    let Some((status, said)) = at_terminal(&world, "web", "undo", "n\n") else { return };
    assert_eq!((status, &*world.read("web/f")), (1, "new"), "{said}");
    let tail = &id[16..];
    assert!(
        said.contains(&format!("undo takes back: commit of session {tail}, ")) && said.contains("Take 16 changes back? [y/N]"),
        "{said}"
    );
    assert!(said.contains(&format!("… and 3 more: recant rollback {tail} --dry-run -v")), "{said}");
    assert!(said.contains("  node_modules/  dependencies: 3 deleted, 2 B"), "{said}");
    let (status, said) = at_terminal(&world, "web", &format!("undo {tail}"), "y\n").expect("as before");
    assert_eq!((status, world.exists("web/n01"), &*world.read("web/f")), (0, false, "old"), "{said}");
}

#[test]
fn recant_alone_says_how_to_begin_where_nothing_was_held_yet() {
    let world = World::new();
    assert_snapshot!(world.recant(""), @r"
    status 0
    --- stdout
    Nothing is held yet. To begin:
      recant run -- COMMAND    run a command, and hold its file changes
      recant diff              look at them
      recant commit last       make them real; rollback last takes them back
    recant --help lists all verbs; recant doctor tests whether a run works here.
    ");
    assert!(!world.store().exists(), "looking makes no store");
    assert_eq!(world.recant("--json").ok().json()["fresh"], true);
}

#[test]
fn recant_alone_names_the_newest_snapshot_that_somebody_asked_for() {
    let world = World::new();
    world.write("f", "1");
    world.recant("snapshot create -m first").ok();
    world.recant("snapshot create -m second").ok();
    let newest = world.recant("--json").ok().json()["snapshot"].as_u64().expect("a number");
    let text = world.recant("").ok().stdout();
    let line = text.lines().find(|line| line.starts_with("snapshot ")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("  second ") && line.ends_with(&format!("recant snapshot diff {newest}")), "{line}");
    world.recant(&format!("snapshot diff {newest}")).ok();
    assert!(line.len() <= 80, "{line}");
}

#[test]
fn recant_alone_says_what_is_open_in_this_project_each_with_the_next_command() {
    let world = two_projects();
    let committed = staged(&world, "web", "web");
    world.recant(&format!("commit {committed}")).ok();
    let pending =
        recant_in(&world, "web/docs", "session new -n a-name-that-is-rather-long-so-that-it-does-not-fit-80-columns").ok().id();
    world.stage_write(&pending, "web/g", "x");
    let other = staged(&world, "src", "src");
    assert_snapshot!(recant_in(&world, "web", ""), @r"
    status 0
    --- stdout
    /world/tree/web
    pending      <id2~>  1 change  a-name-that-is-rather-long-s…  recant diff <id2~>
    committed    <id1~>  1 change                                 recant rollback <id1~>
                 1 session pending in other projects            recant list --all
    ");
    let here = recant_in(&world, "web", "--json").ok().json();
    assert_eq!((here["sessions"].as_array().expect("a list").len(), &here["elsewhere"]), (2, &1.into()));
    assert_eq!(here["sessions"][0]["next"][0], format!("recant diff {}", &pending[16..]));
    let said = recant_in(&world, "src", "").ok().stdout();
    assert!(said.contains(&format!("recant diff {}", &other[16..])) && !said.contains(&pending[16..]), "{said}");
    for n in 0..12 {
        let id = recant_in(&world, "web", "session new").ok().id();
        world.stage_write(&id, format!("web/n{n}"), "x");
        if n < 6 {
            world.recant(&format!("commit {id}")).ok();
        }
    }
    let said = recant_in(&world, "web", "").ok().stdout();
    assert!(said.lines().count() <= 20 && said.lines().all(|line| line.chars().count() <= 80), "{said}");
    assert!(said.contains("and 2 more") && said.contains("and 4 more"), "{said}");
    // Without its checkpoint nothing can be done with it but to remove its record.
    world.recant(&format!("prune --checkpoints {committed} -y")).ok();
    assert!(!recant_in(&world, "web", "").ok().stdout().contains(&committed[16..]));
    let said = world.recant(&format!("discard {committed}")).with(1);
    assert!(said.stderr().contains(&format!("recant prune --sessions {committed} removes its record")), "{said}");
    world.recant(&format!("prune --sessions {committed} -y")).ok();
}

#[test]
fn an_agent_makes_nothing_real_unless_a_person_s_settings_allow_it() {
    let world = two_projects();
    let id = staged(&world, "web", "web");
    recant_in(&world, "web", "snapshot create").ok();
    let agent = |variable: &str, words: &str| {
        world.call(words.split_whitespace()).cwd(world.path("web")).env(variable, "1").env("RECANT_AGENT_COMMIT", "allow").run()
    };
    let before = world.manifest();
    assert_snapshot!(on_stderr(&agent("CLAUDECODE", "commit last -y"), 1), @r"
    recant: refused to an agent (CLAUDECODE is set): a person decides what becomes real
            nothing was changed
            in your own terminal: recant commit <id1~>
    ");
    for words in
        ["commit last", "rollback last", "redo last", "undo", "undo -y", "snapshot restore last", "-y snapshot restore last"]
    {
        for variable in ["RECANT_AGENT", "CODEX_THREAD_ID", "GEMINI_CLI"] {
            let said = agent(variable, words).with(1);
            let nothing = words.starts_with("undo") && said.stderr().contains("nothing to undo");
            assert!(nothing || said.stderr().contains("in your own terminal: recant "), "{words}: {said}");
        }
    }
    // What is typed later reaches the session that is meant now.
    world.recant(&format!("session rename {id} deploy")).ok();
    for (words, typed) in [
        ("commit deploy f", "recant commit <id1~> f\n"),
        ("-H web1 commit deploy", "recant -H web1 commit deploy\n"),
        ("-H web1 rollback last", "recant -H web1 rollback last\n"),
    ] {
        let said = agent("CLAUDECODE", words).with(1);
        assert!(said.masked_err().ends_with(&format!("in your own terminal: {typed}")), "{words}: {said}");
    }
    // What ends that something can be taken back is a person's, too.
    let ends = "prune -y; prune --sessions --keep 0; prune --checkpoints last; prune --snapshots --keep 0; \
                recover deploy --finish; discard --all -y";
    for words in ends.split("; ") {
        let said = agent("CLAUDECODE", words).with(1);
        let typed = format!("in your own terminal: recant {}\n", words.trim_end_matches(" -y"));
        assert!(said.stderr().contains(&typed), "{words}: {said}");
    }
    // A run's own failures are told from its command's statuses.
    let said = agent("CLAUDECODE", "run --commit -- touch made -y").with(125);
    assert!(said.stderr().contains("in your own terminal: recant run --commit -- touch made -y"), "{said}");
    before.assert_same(&world.manifest(), "refused");
    agent("CLAUDECODE", "commit last --dry-run").ok();
    agent("CLAUDECODE", "snapshot restore last --dry-run").ok();
    agent("CLAUDECODE", "diff last").ok();
    world.call(["commit", &id]).env("CLAUDECODE", "").run().ok();
    let said = agent("CLAUDECODE", "undo -y").with(1);
    assert!(said.masked_err().ends_with("in your own terminal: recant undo <id1~>\n"), "{said}");
    agent("CLAUDECODE", "rollback last").with(1);
    world.config("[agent]\ncommit = 'refuse'\n");
    agent("CLAUDECODE", "rollback last").with(1);
    world.config("[agent]\ncommit = 'allow'\n");
    // A person did that last.
    agent("CLAUDECODE", "rollback last").with(1);
    agent("CLAUDECODE", &format!("rollback {id}")).ok();
    assert_eq!(world.read("web/f"), "old");
    world.config("");
    staged(&world, "web", "web");
    agent("CLAUDECODE", "discard last").with(1);
    agent("CLAUDECODE", "session new -n own").ok();
    agent("CLAUDECODE", "session delete own f").ok();
    agent("CLAUDECODE", "discard last").ok();
    world.config("[agent]\ncommit = 'perhaps'\n");
    assert!(world.recant("list").with(1).stderr().contains("config.toml: line 2"));
}

#[test]
fn a_terminal_of_an_agent_is_no_proof_of_a_person() {
    let mut world = two_projects();
    let id = staged(&world, "web", "web");
    world.set("CLAUDECODE", "1");
    let Some((status, said)) = at_terminal(&world, "web", "commit last", "y\n") else { return };
    assert_eq!((status, &*world.read("web/f")), (1, "old"), "{said}");
    assert!(
        said.contains("CLAUDECODE is set") && said.contains(&format!("in your own terminal: recant commit {}", &id[16..])),
        "{said}"
    );
    world.set("CLAUDECODE", "");
    recant_in(&world, "web", "commit last").ok();
    world.set("CLAUDECODE", "1");
    let (status, said) = at_terminal(&world, "web", "undo", "y\n").expect("as before");
    assert_eq!((status, &*world.read("web/f")), (1, "new"), "{said}");
}
