//! Hard links and paths named one by one: what is one file stays one.

use std::os::unix::fs::MetadataExt;

use crate::common::{self, Manifest, World};
use crate::{round_trip, whole};

fn ino(world: &World, name: &str) -> u64 {
    world.path(name).metadata().expect("a file").ino()
}

fn assert_same_but_directory_times(before: &Manifest, world: &World, what: &str) {
    before.clone().without_directory_times().assert_same(&world.manifest().without_directory_times(), what);
}

#[test]
fn a_path_takes_the_other_names_of_its_file_along() {
    let Some(world) = common::can_run().then(World::new) else { return common::skip("hard links by name: no run here") };
    world.mkdir("d");
    let before = world.manifest();
    world.call(["run", "--", "sh", "-c", "echo linked > d/a; ln d/a b; echo alone > d/c"]).run().ok();
    let said = world.recant("commit last b").ok();
    assert!(said.stderr().contains("d/a: included, because"), "{said}");
    assert_eq!((world.exists("d/a"), world.exists("b"), world.exists("d/c")), (true, true, false));
    assert_eq!(ino(&world, "d/a"), ino(&world, "b"));
    let said = world.recant("rollback last d/a").ok();
    assert!(said.stderr().contains("b: included, because"), "{said}");
    before.assert_same(&world.manifest(), "after both names were taken back by one");
}

#[test]
fn names_that_hang_together_over_several_files_come_along_by_one() {
    let Some(world) = common::can_run().then(World::new) else { return common::skip("a chain of hard links: no run here") };
    for pair in ["ab", "cd", "ef"] {
        let (one, other) = pair.split_at(1);
        world.write(one, pair).link(one, other);
    }
    world.write("alone", "1");
    let before = world.manifest();
    world.call(["run", "--", "sh", "-c", "ln -f c b; ln -f e d; echo 2 > alone"]).run().ok();
    let said = world.recant("commit last b").ok();
    assert!(said.stderr().contains("d: included, because"), "{said}");
    assert_eq!((ino(&world, "b"), ino(&world, "d")), (ino(&world, "c"), ino(&world, "e")));
    assert_eq!(std::fs::read(world.path("alone")).expect("a file"), b"1");
    world.recant("rollback last d").ok();
    before.assert_same(&world.manifest(), "after the chain was taken back by its last name");
}

/// A file with two names; a run gave one of them new content, and did `more`.
fn broken(more: &str) -> Option<(World, String)> {
    if !common::can_run() {
        common::skip("hard links with metadata: no run here");
        return None;
    }
    let world = World::new();
    world.write("a", "old").link("a", "b").chmod("a", 0o644);
    world.call(["run", "--", "sh", "-c", &format!("echo new > a; {more}")]).run().ok();
    let id = world.recant("show --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
    Some((world, id))
}

#[test]
fn content_under_one_name_and_metadata_under_the_other_come_back_together() {
    let Some((world, id)) = broken("chmod 600 b") else { return };
    round_trip(&world, &id, &world.manifest(), "both names", Manifest::without_directory_times);
}

#[test]
fn what_somebody_set_through_another_name_since_is_a_conflict_and_never_undone_unseen() {
    let Some((world, id)) = broken("true") else { return };
    world.recant(&format!("commit {id}")).ok();
    world.chmod("b", 0o600);
    world.set_xattr("b", "user.mine", "1");
    let theirs = world.manifest();
    for words in ["rollback ID --dry-run", "rollback ID"] {
        let said = world.recant(&words.replace("ID", &id)).with(3);
        assert!(said.stderr().contains("through another name"), "{said}");
        theirs.assert_same(&world.manifest(), words);
    }
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!((world.read("a"), ino(&world, "a")), ("old".into(), ino(&world, "b")));
    let now = world.manifest();
    assert_eq!((now.0[&b"b"[..]].mode, &now.0[&b"b"[..]].xattrs), (0o600, &theirs.0[&b"b"[..]].xattrs));
}

#[test]
fn metadata_that_is_set_under_both_names_of_a_file_goes_there_and_back() {
    let world = World::new();
    world.write("a", "1").link("a", "b").chmod("a", 0o644);
    let id = world.begin();
    world.stage(&id, ["chmod 0600 a", "chmod 0600 b"]);
    let after = round_trip(&world, &id, &world.manifest(), "both names", whole);
    assert_eq!((after.0[&b"a"[..]].mode, after.0[&b"b"[..]].mode), (0o600, 0o600));
    // By force, too: what is found under the one name is what is found under the other.
    world.chmod("a", 0o640);
    assert!(world.recant(&format!("redo {id}")).with(3).stderr().contains("mode was changed since the rollback: 0640, was 0644"));
    world.recant(&format!("redo {id} --force")).ok();
    after.assert_same(&world.manifest(), "a redo by force");

    // So does a snapshot.
    let world = World::new();
    world.write("d/a", "1").link("d/a", "d/b").chmod("d/a", 0o644);
    let before = world.manifest();
    world.recant("snapshot create d").ok();
    world.chmod("d/b", 0o600).set_mtime("d/b", 1_234_567_890, 5);
    world.set_xattr("d/b", "user.mine", "1");
    let after = world.manifest();
    world.recant("snapshot restore 0 --dir d").ok();
    before.assert_same(&world.manifest(), "a restored snapshot");
    world.recant("rollback last").ok();
    after.assert_same(&world.manifest(), "a restore that was taken back");
}

#[test]
fn two_names_of_a_file_that_are_to_get_two_modes_are_refused() {
    let world = World::new();
    world.write("a", "1").link("a", "b").chmod("a", 0o644);
    let id = world.begin();
    world.stage(&id, ["chmod 0600 a", "chmod 0640 b"]);
    let before = world.manifest();
    for words in ["commit ID --dry-run", "commit ID", "commit ID --force"] {
        let said = world.recant(&words.replace("ID", &id)).with(1);
        assert!(said.stderr().contains("tree/b: it is a hard link to"), "{said}");
        before.assert_same(&world.manifest(), words);
    }
    world.recant(&format!("session chmod {id} 0600 b")).ok();
    world.recant(&format!("commit {id}")).ok();
}

#[test]
fn a_name_that_comes_along_brings_what_lies_under_it() {
    if !common::can_run() {
        return common::skip("hard links and directories: no run here");
    }
    let run = |world: &World, script: &str| drop(world.call(["run", "--", "sh", "-c", script]).run().ok());
    // A directory becomes one of the names.
    let world = World::new();
    world.write("x/k/l", "1");
    let before = world.manifest();
    run(&world, "rm -r x; echo new > x; ln x y");
    let said = world.recant("commit last y").ok();
    assert!(said.stderr().contains("x/k/l: included, because"), "{said}");
    assert_eq!(ino(&world, "x"), ino(&world, "y"));
    world.recant("rollback last y").ok();
    assert_same_but_directory_times(&before, &world, "a rollback of y");
    // And one of the names becomes a directory.
    let world = World::new();
    world.write("x", "1").link("x", "y");
    let before = world.manifest();
    run(&world, "rm x y; mkdir x; echo new > x/k");
    world.recant("commit last").ok();
    world.recant("rollback last y").ok();
    assert_eq!(ino(&world, "x"), ino(&world, "y"));
    assert_same_but_directory_times(&before, &world, "a rollback of y where x was a directory");
    world.recant("redo last x/k").ok();
    assert!(!world.exists("y"), "the other name goes with the one whose place the directory takes");
}

#[test]
fn metadata_that_recant_itself_has_set_is_taken_back_with_a_name_of_the_file() {
    let world = World::new();
    world.write("a", "1").link("a", "b").chmod("a", 0o644).write("c", "1");
    let before = world.manifest();
    let id = world.begin();
    world.stage(&id, ["chmod 0600 a", "delete b", "delete c"]);
    world.recant(&format!("commit {id}")).ok();
    let said = world.recant(&format!("rollback {id} b")).ok();
    assert!(said.stderr().contains("a: included, because"), "{said}");
    assert!(!world.exists("c"));
    world.recant(&format!("rollback {id}")).ok();
    assert_same_but_directory_times(&before, &world, "a rollback in two parts");
}
