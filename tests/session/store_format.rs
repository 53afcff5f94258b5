//! docs/store-format.md's own script gives a checkpoint back, without recant: the page is right and complete.

use std::process::Command;

use crate::common::{self, World, name};

/// The first bash block of the page below a heading.
fn script(heading: &str) -> &'static str {
    let text = include_str!("../../docs/store-format.md");
    let section = text.split(heading).nth(1).expect("the section");
    let block = section.split("```bash\n").nth(1).expect("a block");
    block.split("\n```").next().expect("its end")
}

fn can(what: &str) -> bool {
    let missing = ["jq", "bash"].into_iter().find(|tool| Command::new(tool).arg("--version").output().is_err());
    missing.iter().for_each(|missing| println!("skipped: {what} by hand: {missing} is not here"));
    missing.is_none()
}

#[test]
fn a_checkpoint_is_given_back_by_hand() {
    let Some(world) = can("a checkpoint given back").then(World::new) else { return };
    world.write("edited", "old").write("empty", "").write("gone", "away").write("moded", "x").chmod("moded", 0o600);
    world.write("deep/sub/a", "1").write("deep/b", "same").write("twin", "same").write("own/c", "same").link("own/c", "own/d");
    world.symlink("nowhere", "link").fifo("fifo").write(name(b"bytes \xff\n"), "odd");
    world.write("kind/full/x", "x").write("kind/file", "f");
    let before = world.manifest();
    let id = world.begin();
    let staged = "write edited new; write empty filled; write come/along/n n; write own/c apart; delete gone; \
                      chmod 0640 moded; chmod 0711 own; delete deep; delete twin; delete own/d; symlink elsewhere link; \
                      delete fifo; write kind/full ; mkdir kind/file";
    world.stage(&id, staged.split("; "));
    world.stage_write(&id, name(b"bytes \xff\n"), "even");
    world.recant(&format!("commit {id}")).ok();
    assert!(!before.difference(&world.manifest()).is_empty());

    let file = world.root().join("give-back");
    world.write(&file, script("## Giving a checkpoint back by hand"));
    let (session, aside) = (world.session(&id), world.root().join("aside"));
    world.program("bash", [&file, &session, &aside]).run().ok();
    before.assert_same(&world.manifest(), "given back by hand");
}

#[test]
fn a_snapshot_is_restored_by_hand() {
    let Some(world) = can("a snapshot restored").then(World::new) else { return };
    world.write("a file", "old").write("empty", "").write("deep/sub/a", "1").write("large", vec![7; 200_000]).mkdir("hollow");
    world.link("a file", "deep/again").symlink("no where", "a link").fifo("fifo");
    world.chmod("deep/sub", 0o2750).chmod("a file", 0o600);
    world.write(name(b"bytes \xff\n"), "odd").set_mtime("deep", 1_000_000_000, 5);
    for i in 0..8 {
        world.write(format!("many/{i}"), format!("content {i}"));
    }
    if Command::new("setfattr").arg("--version").output().is_ok() {
        world.set_xattr("a file", "user.a", b"\x00b");
    }
    world.recant("snapshot create").ok();
    let first = world.manifest();
    world.remove("empty").write("deep/sub/a", "2").write("new", "n");
    world.recant("snapshot create").ok();
    let second = world.manifest();
    let series = std::fs::read_dir(world.store().join("snapshots")).expect("the snapshots").next();
    let series = series.expect("one").expect("a name").path();
    let file = world.root().join("restore");
    world.write(&file, script("### Restoring a snapshot by hand"));
    let check = |n: &str, state: &common::Manifest| {
        let into = world.root().join(format!("by-hand-{n}"));
        world.program("bash", [file.as_os_str(), series.as_os_str(), n.as_ref(), into.as_os_str()]).run().ok();
        state.assert_same(&common::manifest(&into), &format!("snapshot {n} by hand"));
        world.remove(into);
    };
    check("0", &first);
    check("1", &second);
    world.recant("prune --snapshots --keep 1").ok();
    assert!(series.join("0.base").exists(), "the second is told from the first");
    check("1", &second);
}
