//! Names and scope: which session a word means where, and how a command in a message reaches the same one.

mod common;

use common::World;

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
    // A shell that is given the command finds the session.
    let bare = format!(
        "PATH={}:$PATH; {back}",
        std::path::Path::new(env!("CARGO_BIN_EXE_recant")).parent().expect("a folder").display()
    );
    world.program("sh", ["-c", &bare]).run().ok();
    assert_eq!(world.read("f"), "old");
}
