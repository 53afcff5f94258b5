//! docs/store-format.md's own script gives a checkpoint back, without recant: the page is right and complete.
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

mod common;

use std::process::Command;

use common::{World, name};

/// The last ```` ```bash ```` block of the page.
fn script() -> String {
    let text = include_str!("../docs/store-format.md");
    let block = text.rsplit("```bash\n").next().expect("a block");
    block.split("\n```").next().expect("its end").to_owned()
}

#[test]
fn a_checkpoint_is_given_back_by_hand() {
    if let Some(missing) = ["jq", "bash"].iter().find(|tool| Command::new(tool).arg("--version").output().is_err()) {
        println!("skipped: a checkpoint given back by hand: {missing} is not here");
        return;
    }
    let world = World::new();
    world.write("edited", "old").write("empty", "").write("gone", "away").write("moded", "x").chmod("moded", 0o600);
    world.write("deep/sub/a", "1").write("deep/b", "same").write("twin", "same").write("own/c", "same").link("own/c", "own/d");
    world
        .symlink("nowhere", "link")
        .fifo("fifo")
        .write(name(b"bytes \xff\n"), "odd")
        .write("kind/full/x", "x")
        .write("kind/file", "f");
    let before = world.manifest();
    let id = world.begin();
    for (path, content) in [("edited", "new"), ("empty", "filled"), ("come/along/n", "n"), ("own/c", "apart")] {
        world.stage_write(&id, path, content);
    }
    world.stage_write(&id, name(b"bytes \xff\n"), "even");
    for words in [
        "delete ID gone",
        "chmod ID 0640 moded",
        "chmod ID 0711 own",
        "delete ID deep -r",
        "delete ID twin",
        "delete ID own/d",
        "symlink ID elsewhere link",
        "delete ID fifo",
        "write ID kind/full -r",
        "delete ID kind/file",
        "mkdir ID kind/file",
    ] {
        world.recant(&format!("session {}", words.replace("ID", &id))).ok();
    }
    world.recant(&format!("commit {id}")).ok();
    assert!(!before.difference(&world.manifest()).is_empty());

    let file = world.root().join("give-back");
    world.write(&file, script());
    let (session, aside) = (world.session(&id), world.root().join("aside"));
    world.program("bash", [&file, &session, &aside]).run().ok();
    before.assert_same(&world.manifest(), "given back by hand");
}
