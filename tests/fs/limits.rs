//! Limits of the settings: what a checkpoint keeps of a deleted directory that is over checkpoint.max_files or
//! checkpoint.max_size, and what commit.deny keeps off the tree.

use crate::common::World;

/// A directory of three files, staged to be deleted, where two files are the limit.
fn scene() -> (World, String) {
    let world = World::new();
    world.config("[checkpoint]\nmax_files = 2\n");
    world.write("big/1", "one").write("big/sub/2", "two").write("big/sub/3", "three").write("small/1", "one");
    let id = world.begin();
    world.stage(&id, ["delete big", "delete small"]);
    (world, id)
}

#[test]
fn all_is_kept_and_its_size_said_where_nothing_else_is_asked_for() {
    let (world, id) = scene();
    let before = world.manifest();
    let said = world.recant(&format!("commit {id}")).ok();
    assert!(said.stderr().contains("big: 3 files, 11 B deleted, all kept for a rollback"), "{said}");
    world.call(["rollback", &id]).run().ok();
    before.assert_same(&world.manifest(), "after a rollback");
}

#[test]
fn a_partial_checkpoint_is_said_at_commit_in_show_and_at_rollback() {
    let (world, id) = scene();
    world.config("[checkpoint]\nmax_files = 2\non_limit = 'partial'\n");
    let said = world.call(["commit", &id]).run().with(4);
    assert!(said.stderr().contains("big: 3 files, 11 B deleted and NOT kept"), "{said}");
    assert!(!world.exists("big") && !world.exists("small"));
    let shown = world.call(["checkpoint", "show", &id]).run().ok();
    assert_eq!(shown.stdout().matches("left out of the checkpoint").count(), 3, "{shown}");
    let back = world.call(["rollback", &id]).run().with(4);
    assert_eq!(back.stdout().matches("not taken back").count(), 3, "{back}");
    assert_eq!(world.read("small/1"), "one");
    // Directories come back, their content does not.
    assert!(world.exists("big/sub") && !world.exists("big/1") && !world.exists("big/sub/2"));
    let shown = world.call(["show", &id, "--json"]).run().ok().json();
    assert_eq!(shown["session"]["status"], "committed");
}

#[test]
fn commit_deny_matches_as_gitignore_does_and_force_does_not_help() {
    let world = World::new();
    let id = world.begin();
    world.stage(&id, ["write a.key x", "write deep/in/b.key x", "write secret/x x", "write secret/y/z x", "write keys x"]);
    let tree = world.tree().to_string_lossy().into_owned();
    for (glob, denied) in [
        ("*.key", &["a.key", "deep/in/b.key"][..]),
        ("TREE/*.key", &["a.key"]),
        ("TREE/**/*.key", &["a.key", "deep/in/b.key"]),
        ("**/in/*", &["deep/in/b.key"]),
        ("secret/", &["secret", "secret/x", "secret/y", "secret/y/z"]),
        ("TREE/secret/*", &["secret/x", "secret/y", "secret/y/z"]),
        ("~/tree/secret/y", &["secret/y", "secret/y/z"]),
        ("ke?s", &["keys"]),
        ("TREE?keys", &[]),
        ("TREE/nothing", &[]),
    ] {
        world.config(&format!("[commit]\ndeny = ['{}']\n", glob.replace("TREE", &tree)));
        let said = world.call(["commit", &id, "--dry-run", "--force", "--json"]).env("HOME", world.root()).run();
        let want: Vec<String> = denied.iter().map(|path| format!("{tree}/{path}")).collect();
        let against = if said.status == 0 { Vec::new() } else { said.against() };
        assert_eq!((said.status, against), (i32::from(!want.is_empty()), want), "{glob}: {said}");
    }
    world.config(&format!("[commit]\ndeny = ['{tree}/secret']\n"));
    world.call(["commit", &id, "keys"]).run().ok();
    assert!(world.exists("keys") && !world.exists("secret"));
}
