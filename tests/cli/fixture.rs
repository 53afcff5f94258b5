//! The fixture itself.

use crate::common::World;

#[test]
fn a_manifest_tells_every_kind_of_object_and_hard_links() {
    let world = World::new();
    world.write("a", "x").link("a", "b").mkdir("d").symlink("nowhere", "l").fifo("p").chmod("a", 0o600);
    let before = world.manifest();
    assert_eq!(before.0.len(), 6, "{before}");
    assert_eq!(before.0[&b"b"[..]].group.as_deref(), Some(&b"a"[..]));
    world.remove("b");
    let difference = world.manifest().without_directory_times().difference(&before.clone().without_directory_times());
    assert_eq!(difference.lines().count(), 3, "{difference}");
}
