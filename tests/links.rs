//! Hard links and paths named one by one: what is one file stays one.

mod common;

use common::World;

fn ino(world: &World, name: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    world.path(name).metadata().expect("a file").ino()
}

#[test]
fn a_path_takes_the_other_names_of_its_file_along() {
    if !common::can_run() {
        common::skip("hard links by name: no run here");
        return;
    }
    let world = World::new();
    world.mkdir("d");
    let before = world.manifest();
    world.call(["run", "--", "sh", "-c", "echo linked > d/a; ln d/a b; echo alone > d/c"]).run().ok();
    let said = world.recant("commit last b").ok();
    assert!(said.stderr().contains("d/a: comes along"), "{said}");
    assert_eq!((world.exists("d/a"), world.exists("b"), world.exists("d/c")), (true, true, false));
    assert_eq!(ino(&world, "d/a"), ino(&world, "b"));
    let said = world.recant("rollback last d/a").ok();
    assert!(said.stderr().contains("b: comes along"), "{said}");
    before.assert_same(&world.manifest(), "after both names were taken back by one");
}
