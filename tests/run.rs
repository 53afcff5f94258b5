//! `run` and `shell` as a user sees them; what is captured, and how exactly, is in the capture room's own tests.

mod common;

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use common::{Said, World, can_run};
use insta::assert_snapshot;

fn sh(world: &World, options: &[&str], script: &str) -> Said {
    world.call([&["run"], options, &["--", "sh", "-c", script]].concat()).run()
}

#[test]
fn a_run_holds_what_the_command_changes_and_the_round_trip_is_exact() {
    if !can_run() {
        return;
    }
    let world = World::new();
    world
        .write("changed", "a\n")
        .write("gone", "bye\n")
        .write("deep/er/file", "x\n")
        .symlink("changed", "link")
        .chmod("gone", 0o600);
    let before = world.manifest();
    let said = sh(
        &world,
        &["-n", "job"],
        "echo b >> changed; rm gone; rm -r deep; mkdir new; echo n > new/file; ln -sfn gone link; echo out; echo err >&2; exit 7",
    );
    before.assert_same(&world.manifest(), "the run reached the tree");
    assert_snapshot!(said, @r#"
    status 7
    --- stdout
    out
    --- stderr
    err
    recant: 8 changes (2 created, 2 modified, 4 deleted) held in session <id1> (the command exited with 7)
    recant: recant diff <id1~>    recant commit <id1~>    recant discard <id1~>
    "#);
    assert_snapshot!(world.recant("diff --stat").ok().masked_out(), @r#"
    /world/tree/changed      | 1 +
    /world/tree/deep         | folder removed
    /world/tree/deep/er      | folder removed
    /world/tree/deep/er/file | 1 -
    /world/tree/gone         | 1 -
    /world/tree/link         | 2 +-
    /world/tree/new          | new folder, mode 0755
    /world/tree/new/file     | 1 +
    8 files changed, 3 insertions(+), 3 deletions(-)
    "#);
    world.recant("commit job").ok();
    let after = world.manifest();
    assert_eq!((&*world.read("changed"), world.exists("gone"), world.exists("deep")), ("a\nb\n", false, false));
    world.recant("rollback job").ok();
    before.assert_same(&world.manifest(), "the rollback is not exact");
    world.recant("redo job").ok();
    after.assert_same(&world.manifest(), "the redo is not exact");
}

#[test]
fn a_run_exits_as_its_command_does() {
    if !can_run() {
        return;
    }
    let world = World::new();
    for (script, status) in [("exit 0", 0), ("exit 3", 3), ("exit 200", 200), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        assert_eq!(sh(&world, &[], script).status, status, "{script}");
    }
    assert_eq!(world.recant("run sh -c true").ok().stdout(), "", "-- may be left out");
    let said = sh(&world, &[], "cat; echo \"$0\"");
    assert_eq!(said.ok().stdout(), "sh\n");
    assert_eq!(world.recant("list").ok().out, b"", "no changes, no session");
}

#[test]
fn a_command_that_cannot_be_started_leaves_no_session() {
    if !can_run() {
        return;
    }
    let world = World::new();
    world.write("data", "x");
    assert_snapshot!(world.recant("run -n one -- no-such-command"), @r#"
    status 127
    --- stderr
    recant: no-such-command: command not found
            the command was not started; nothing was changed
    "#);
    assert_snapshot!(world.recant("run -- ./data"), @r#"
    status 126
    --- stderr
    recant: ./data: cannot be executed: permission denied
            the command was not started; nothing was changed
    "#);
    assert_eq!(world.recant("run").status, 2);
    assert_eq!(world.recant("list").ok().out, b"");
}

#[test]
fn a_run_that_commits_does_so_only_after_success() {
    if !can_run() {
        return;
    }
    let world = World::new();
    let said = sh(&world, &["--commit", "--id-file", "id"], "echo x > made; exit 4").with(4);
    assert!(said.stderr().contains("held in session") && !world.exists("made"), "{said}");
    assert!(world.read("id").ends_with("result=pending\n"));
    let said = sh(&world, &["--commit", "--id-file", "id"], "echo x > made; cat id").ok();
    assert_eq!(world.read("made"), "x\n");
    assert!(said.stdout().starts_with("id=") && said.stdout().lines().count() == 1, "{said}");
    assert!(world.read("id").ends_with("\nresult=committed\n"));
    world.recant("rollback last").ok();
    assert!(!world.exists("made"));
}

#[test]
fn a_commit_that_conflicts_gives_its_own_status_and_leaves_the_changes_pending() {
    if !can_run() {
        return;
    }
    let world = World::new();
    world.write("f", "old").fifo("wait");
    let mut child =
        world.call(["run", "--commit", "--id-file", "id", "--", "sh", "-c", "echo mine > f; echo ready; read line"]).command();
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    world.write("f", "theirs");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert_eq!(world.read("f"), "theirs");
    assert!(world.read("id").ends_with("result=conflict\n"));
    assert_eq!(world.recant("list --json").ok().json()["sessions"][0]["status"], "pending");
    assert!(world.recant("diff").ok().stdout().contains("changed by others while the command ran: conflict"));
}

#[test]
fn a_run_goes_on_in_a_pending_session_and_in_no_other() {
    if !can_run() {
        return;
    }
    let world = World::new();
    sh(&world, &["-n", "job"], "echo 1 > a").ok();
    sh(&world, &["--session", "job"], "cat a; echo 2 > b").ok();
    assert_eq!(world.recant("diff job --name-only").ok().stdout().lines().count(), 2);
    sh(&world, &["--session", "job"], "rm a b").ok();
    assert_eq!(world.recant("diff job --name-only").ok().out, b"");
    let staged = world.begin();
    assert_snapshot!(sh(&world, &["--session", &staged], "true"), @r#"
    status 1
    --- stderr
    recant: cannot go on in session <id2>: it was staged by hand; only a pending one that came from a run can be
            nothing was changed
    "#);
    sh(&world, &["--session", "job"], "echo 3 > c").ok();
    world.recant("commit job").ok();
    assert_eq!(sh(&world, &["--session", "job"], "true").status, 1);
    assert_eq!(world.call(["session", "write", "job", "x"]).run().status, 1, "a captured session is not staged into");
}

#[test]
fn discard_at_once_leaves_a_record_and_nothing_else() {
    if !can_run() {
        return;
    }
    let world = World::new();
    let before = world.manifest();
    assert_snapshot!(sh(&world, &["--discard"], "echo x > made; rm -f made2; exit 5"), @r#"
    status 5
    --- stderr
    recant: 1 change dropped (the command exited with 5)
    "#);
    before.assert_same(&world.manifest(), "the tree was touched");
    assert_eq!(world.recant("list --json").ok().json()["sessions"][0]["status"], "discarded");
}

#[test]
fn inside_a_run_another_just_runs_and_commit_is_refused() {
    if !can_run() {
        return;
    }
    let world = World::new();
    let recant = env!("CARGO_BIN_EXE_recant");
    let said = sh(&world, &[], &format!("{recant} run -- sh -c 'echo inner > f'; {recant} commit last; echo $?"));
    assert_eq!(said.ok().stdout(), "1\n");
    assert_eq!(world.recant("diff --name-only").ok().stdout().lines().count(), 1);
}

#[test]
fn a_killed_run_is_collected_by_the_next_verb_that_names_it() {
    if !can_run() {
        return;
    }
    let world = World::new();
    let mut child = world.call(["run", "-n", "cut", "--", "sh", "-c", "echo x > f; echo ready; sleep 60"]).command();
    let mut child = child.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    assert_eq!(world.recant("list --json").ok().json()["sessions"][0]["status"], "capturing");
    assert_eq!(world.recant("diff cut").status, 1, "a run is under way");
    assert_eq!(world.recant("discard cut").status, 6);
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = || world.recant("list --json").ok().json()["sessions"][0]["ended"] == true;
    for _ in 0..200 {
        if ended() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(ended());
    assert_snapshot!(world.recant("diff cut --name-only"), @r#"
    status 0
    --- stdout
    /world/tree/f
    --- stderr
    recant: the run of session <id1> was cut off; what it had changed is collected: 1 change
    "#);
    world.recant("commit cut").ok();
    assert_eq!(world.read("f"), "x\n");
}

#[test]
fn a_shell_is_a_run_of_the_users_shell() {
    if !can_run() {
        return;
    }
    let mut world = World::new();
    world.set("SHELL", "/bin/sh");
    let said = world.call(["shell"]).stdin("echo x > f\nexit 3\n").run().with(3);
    assert!(said.stderr().contains("1 created"), "{said}");
    assert!(!world.exists("f"));
    let said = world.call(["shell", "last"]).stdin("cat f\n").run().ok();
    assert_eq!(said.stdout(), "x\n");
}
