//! The programs and scripts in `examples/`, run as a reader would run them: what they print, and the exact tree that they leave.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::{Call, can_run, manifest, skip};
use crate::desk::{self, Desk, Who, each};
use insta::assert_snapshot;

/// An example, as the desk's user can run it. Cargo builds examples with the tests, into a directory beside theirs.
fn example(desk: &Desk, name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let built = test.parent().and_then(|deps| deps.parent()).expect("the build directory").join("examples").join(name);
    assert!(built.exists(), "{name} is not built: cargo build --examples");
    if !desk.other() {
        return built;
    }
    let copy = desk.world.root().join(name);
    // By a program of its own: a copy that is open here for writing while another thread forks is 'text file busy'.
    assert!(std::process::Command::new("cp").arg(&built).arg(&copy).status().expect("cp").success());
    copy
}

/// A call of an example with the store of the desk's world, which finds the program.
fn call(desk: &Desk, name: &str, words: &[&str]) -> Call {
    desk.give(desk.world.program(example(desk, name), words)).env("RECANT", &desk.binary)
}

/// Both users, where a command can be captured here.
fn each_that_can(test: impl Fn(&Desk)) {
    if can_run() {
        each(test);
    }
}

/// A call of a script in `examples/`.
fn script(desk: &Desk, name: &str, text: &str, words: &[&str]) -> Call {
    let path = desk.world.root().join(name);
    if !path.exists() {
        desk.world.write(&path, text);
    }
    let path = path.to_str().expect("a UTF-8 path");
    desk.give(desk.world.program("sh", [&[path], words].concat())).env("RECANT", &desk.binary)
}

#[test]
fn stage_commits_a_change_and_leaves_the_directory_as_it_was() {
    each(|desk| {
        let before = desk.made("echo hi > greeting; mkdir -p old/deep; echo x > old/deep/file; chmod 600 greeting");
        let said = call(desk, "stage", &["../store", "."]).run().ok();
        insta::allow_duplicates!(assert_snapshot!(said.masked_out(), @"
        held:
          modified /world/tree/greeting
          created /world/tree/new
          created /world/tree/new/file
          deleted /world/tree/old
          deleted /world/tree/old/deep
          deleted /world/tree/old/deep/file
        committed: 6 changes
        rolled back: 6 changes
        "));
        before.assert_same(&desk.world.manifest(), "stage");
        assert_eq!(desk.status(&desk.id()), "rolled_back");
        desk.recant("redo last").ok();
        assert_eq!((desk.world.read("greeting"), desk.world.read("new/file")), ("hello\n".into(), "made by an example\n".into()));
        assert!(!desk.world.exists("old"));
        desk.world.assert_tidy("stage");
    });
}

#[test]
fn snapshot_takes_back_what_a_command_did_and_brings_it_again() {
    each(|desk| {
        let before = desk.made("echo one > kept; mkdir gone; echo x > gone/file");
        let command = "echo two > kept; rm -r gone; mkdir made; cp -a . \"$LEFT\"; exit 3";
        let words = |keep: &[&'static str]| [&["../store", "."], keep, &["sh", "-c", command]].concat();
        let command = |keep| call(desk, "snapshot", &words(keep)).env("LEFT", desk.world.root().join("left"));
        let said = command(&[]).run().ok();
        insta::allow_duplicates!(assert_snapshot!(said.masked_out(), @"
        exit status: 3; snapshots 0 and 1
        recreated gone
        recreated gone/file
        restored kept
        removed made
        recant rollback <id1> would bring them again
        "));
        before.assert_same(&desk.world.manifest(), "taken back");
        desk.bare(desk.world.root(), "rm -r left");
        let said = command(&["--keep"]).run().ok();
        assert_eq!(said.stdout().lines().last(), Some("kept: 4 changes are there again"), "{said}");
        manifest(&desk.world.root().join("left")).assert_same(&desk.world.manifest(), "kept");
        desk.world.assert_tidy("snapshot");
    });
}

#[test]
fn held_commits_what_a_command_did_only_when_it_is_told_to_and_the_command_went_well() {
    each_that_can(|desk| {
        let before = desk.made("echo one > kept; echo x > gone");
        let command = "echo two > kept; rm gone; echo out; echo err >&2";
        for (yes, end) in [(false, 0), (false, 5), (true, 5)] {
            let command = format!("{command}; exit {end}");
            let words = if yes { &["--yes", "sh", "-c", &command][..] } else { &["sh", "-c", &command] };
            let said = call(desk, "held", words).run().with(end);
            let expected = "out\ndeleted /world/tree/gone\nmodified /world/tree/kept\ndropped\n";
            assert_eq!(said.masked_out(), expected, "{said}");
            assert_eq!(said.masked_err(), "err\n", "{said}");
            before.assert_same(&desk.world.manifest(), "dropped");
        }
        let said = call(desk, "held", &["--yes", "sh", "-c", command]).run().ok();
        assert!(said.stdout().contains("\ncommitted: 2 changes; recant rollback "), "{said}");
        assert_eq!((desk.world.read("kept"), desk.world.exists("gone")), ("two\n".into(), false));
        desk.recant("rollback last").ok();
        before.assert_same(&desk.world.manifest(), "rolled back");

        assert_eq!(call(desk, "held", &["true"]).run().ok().stdout(), "nothing was changed\n");
        let said = call(desk, "held", &["no-such-command"]).run().with(1);
        assert!(said.stderr().contains("recant could not run it: no-such-command: command not found"), "{said}");
        desk.world.assert_tidy("held");
    });
}

#[test]
fn held_names_a_conflict_and_leaves_the_session_to_a_person() {
    each_that_can(|desk| {
        desk.made("echo one > file");
        let words = ["--yes", "sh", "-c", "echo two > file; echo ready; read go"];
        let mut command = call(desk, "held", &words).command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut said = String::new();
        out.read_line(&mut said).expect("its output");
        desk.bare(&desk.world.tree(), "echo theirs > file");
        child.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
        out.read_to_string(&mut said).expect("its output");
        assert_eq!(child.wait().expect("its end").code(), Some(3), "{said}");
        insta::allow_duplicates!(assert_snapshot!(desk.world.mask(&said), @"
        ready
        modified /world/tree/file
        /world/tree/file: changed by another process while the command ran
        "));
        assert_eq!((desk.world.read("file"), desk.status(&desk.id())), ("theirs\n".into(), "pending".into()));
    });
}

#[test]
fn an_example_that_is_called_wrongly_says_its_usage() {
    let desk = Desk::new(if desk::is_root() { Who::Root } else { Who::User });
    for name in ["stage", "snapshot", "held"] {
        let said = call(&desk, name, &[]).run().with(1);
        assert!(said.stderr().contains(&format!("usage: {name} ")), "{said}");
    }
    assert!(!desk.world.store().exists());
}

const CI: &str = include_str!("../../examples/ci-step.sh");

#[test]
fn a_deploy_in_ci_is_held_shown_and_committed_on_approval() {
    each_that_can(|desk| {
        let ci = |words: &[&str]| script(desk, "ci-step.sh", CI, words).env("ARTEFACTS", desk.world.root().join("artefacts"));
        let artefact = |name: &str| desk.world.root().join("artefacts").join(name);
        let before = desk.made("echo 1 > version; echo x > stale");
        let deploy = "echo 2 > version; rm stale; echo deployed";

        // A deploy that fails keeps its exit status and its page, and holds nothing.
        let said = ci(&["hold", "1", "sh", "-c", &format!("{deploy}; exit 7")]).run().with(7);
        assert_eq!(said.stdout(), "deployed\n");
        assert_eq!(desk.status(&desk.id()), "discarded");
        ci(&["approve", "1"]).run().with(1);
        ci(&["hold", "1", "no-such-command"]).run().with(127);
        ci(&["hold", "1", "true"]).run().ok();
        before.assert_same(&desk.world.manifest(), "a deploy that failed");

        // One that goes well is held: page, result, and the session for another machine.
        ci(&["hold", "1", "sh", "-c", deploy]).run().ok();
        before.assert_same(&desk.world.manifest(), "held");
        let page = desk.world.read(artefact("changes.html"));
        assert!(page.starts_with("<!") && page.contains("version") && page.contains("stale"), "{page}");
        let result: serde_json::Value = serde_json::from_str(&desk.world.read(artefact("result.json"))).expect("JSON");
        assert_eq!((&result["session"]["status"], &result["session"]["changes"]), (&"pending".into(), &2.into()));

        // The check fails: all is taken back. Rejected: dropped.
        ci(&["approve", "1", "grep", "-q", "3", "version"]).run().with(1);
        before.assert_same(&desk.world.manifest(), "rolled back");
        ci(&["hold", "2", "sh", "-c", deploy]).run().ok();
        ci(&["reject", "2"]).run().ok();
        before.assert_same(&desk.world.manifest(), "rejected");

        // Somebody changes the files between deploy and approval: nothing is done, and both sides are shown.
        ci(&["hold", "3", "sh", "-c", deploy]).run().ok();
        desk.bare(&desk.world.tree(), "echo theirs > version");
        let theirs = desk.world.manifest();
        ci(&["approve", "3"]).run().with(3);
        theirs.assert_same(&desk.world.manifest(), "a conflict");
        let both = desk.world.read(artefact("conflicts.patch"));
        assert!(both.contains("\n+theirs\n") && both.contains("\n+2\n"), "{both}");
        ci(&["reject", "3"]).run().ok();

        ci(&["hold", "4", "sh", "-c", deploy]).run().ok();
        ci(&["approve", "4", "grep", "-q", "2", "version"]).run().ok();
        assert_eq!((desk.world.read("version"), desk.world.exists("stale")), ("2\n".into(), false));
        desk.recant("rollback deploy-4").ok();
        theirs.assert_same(&desk.world.manifest(), "rolled back later");
        ci(&["hold"]).run().with(2);
        desk.world.assert_tidy("ci-step.sh");
    });
}

#[test]
fn a_deploy_that_was_held_on_one_machine_is_approved_on_another_with_the_same_files() {
    each_that_can(|desk| {
        let artefacts = desk.world.root().join("artefacts");
        let ci = |words: &[&str]| script(desk, "ci-step.sh", CI, words).env("ARTEFACTS", &artefacts);
        desk.made("echo 1 > version");
        ci(&["hold", "5", "sh", "-c", "echo 2 > version"]).run().ok();
        // Another store stands for the other machine.
        let stream = artefacts.join("deploy.recant");
        let stream = stream.to_str().expect("a UTF-8 path");
        let other = desk.world.root().join("other-store");
        ci(&["fetch", stream]).env("RECANT_STORE", &other).run().ok();
        ci(&["approve", "5"]).env("RECANT_STORE", &other).run().ok();
        assert_eq!(desk.world.read("version"), "2\n");

        // With other files it is refused as it arrives.
        let third = desk.world.root().join("third-store");
        ci(&["fetch", stream]).env("RECANT_STORE", &third).run().with(3);
        ci(&["approve", "5"]).env("RECANT_STORE", &third).run().with(3);
    });
}

/// The lines that in-container.sh prints.
fn in_container(desk: &Desk, words: &[&str]) -> Option<String> {
    let call = script(desk, "in-container.sh", include_str!("../../examples/in-container.sh"), words);
    let said = call.env("TMPDIR", desk.world.root()).run();
    if said.status == 77 {
        skip(&format!("no such container can be made here: {}", said.stderr_lossy().trim()));
        return None;
    }
    let said = said.ok();
    assert!(said.stderr().contains("cannot take the directory as upper of an overlay"), "{said}");
    Some(said.masked_out().to_owned())
}

#[test]
fn in_an_unprivileged_container_a_store_on_tmpfs_holds_commits_and_rolls_back() {
    each(|desk| {
        let Some(said) = in_container(desk, &[]) else { return };
        insta::allow_duplicates!(assert_snapshot!(said, @"
        == root of a user namespace, on an overlay: 0, overlayfs
        == a store on the disk of the container cannot hold a run: overlayfs takes no upper on overlayfs
        == it can hold a run on the real files, between two snapshots, and snapshots by hand
        restored  app.conf
        2
        recreated app.conf
        == with the store on a tmpfs or a volume everything is as elsewhere
        run             works
        diff --git a/srv/app/app.conf b/srv/app/app.conf
        --- a/srv/app/app.conf
        +++ b/srv/app/app.conf
        @@ -1 +1 @@
        -port = 80
        +port = 8080
        # /srv/app/logs: new directory, mode 0755
        modified  app.conf
        created   logs
        restored  app.conf
        removed   logs
        == an edit meanwhile is a conflict, as elsewhere
        modified  app.conf
        created   logs
        "));
    });
}

#[test]
fn in_a_container_of_podman_it_is_the_same() {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&paths).any(|directory| directory.join("podman").exists()) {
        return skip("podman is not installed");
    }
    // Rootless podman wants a login of its user, which another user than the tests' has not.
    let desk = Desk::new(if desk::is_root() { Who::Root } else { Who::User });
    let by_podman = in_container(&desk, &["--podman"]);
    if let (Some(by_podman), Some(by_unshare)) = (by_podman, in_container(&desk, &[])) {
        assert_eq!(by_podman, by_unshare);
    }
}
