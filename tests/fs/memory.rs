//! Memory: some hundred bytes a change, and none for the size of a file. recant runs with a limit on its data (ulimit -d) that
//! a plan with several copies of each state would break.

/// KiB of data.
const SHOWN_KIB: u32 = 8 << 10;

use crate::common::{Said, World, can_run, recant, skip};

/// recant with at most so many KiB of data: heap, stacks, private mappings that it may write to.
fn within(world: &World, kib: u32, words: &str) -> Said {
    let script = format!("ulimit -d {kib} && exec \"$0\" {words}");
    world.program("sh", ["-c", &script, recant()]).run()
}

#[test]
fn four_thousand_changes_take_less_than_14_mib() {
    let Some(world) = can_run().then(World::new) else { return skip("memory of a large session: recant run does not work here") };
    for directory in 0..60 {
        for file in 0..50 {
            world.write(format!("directory-{directory:03}/a-file-with-a-name-{file:02}"), "before");
        }
    }
    let before = world.manifest();
    let change =
        "for f in */*; do echo after >$f; done; rm directory-00*/*; mkdir new; for i in $(seq 1000); do echo new >new/$i; done";
    world.call(["run", "-q", "--", "sh", "-c", change]).run().ok();
    let id = world.recant("show --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
    for verb in ["commit", "rollback", "redo"] {
        within(&world, 14 << 10, &format!("{verb} {id}")).ok();
    }
    // What shows them reads the checkpoint along, not whole.
    let shown = ["show ID", "show ID -v", "show ID --json", "diff ID --stat", "diff ID --stat --json"];
    let shown = shown.into_iter().chain(["checkpoint show ID", "checkpoint show ID --json", "checkpoint verify ID"]);
    shown.for_each(|words| drop(within(&world, SHOWN_KIB, &words.replace("ID", &id)).ok()));
    within(&world, 14 << 10, &format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "after it was taken back twice");
}

#[test]
fn a_file_of_128_mib_takes_no_memory_of_its_own() {
    let world = World::new();
    world.write("large", "");
    let file = std::fs::File::options().write(true).open(world.path("large")).expect("the file");
    file.set_len(128 << 20).expect("a hole");
    drop(file);
    let id = world.begin();
    for words in [
        format!("session write {id} large --from /dev/null"),
        format!("commit {id}"),
        format!("diff --stat {id}"),
        format!("rollback {id}"),
        format!("checkpoint verify {id}"),
    ] {
        within(&world, 16 << 10, &words).ok();
    }
    assert_eq!(std::fs::metadata(world.path("large")).expect("the file").len(), 128 << 20);
}

#[test]
fn a_patch_of_50_mb_is_never_in_memory_as_a_whole() {
    let Some(world) = can_run().then(World::new) else { return skip("memory of a large patch: recant run does not work here") };
    // 2,500 files of 20 KB, a fifth of them moved: all are of one size.
    let make = "big=$(seq -f %0199.0f 1 100); for d in $(seq 25); do mkdir $d; for f in $(seq 100); do echo \"$d $f\" >$d/$f; echo \"$big\" >>$d/$f; done; done";
    world.program("sh", ["-ec", make]).run().ok();
    let change = "for d in $(seq 6 25); do for f in $(seq 100); do echo end >>$d/$f; done; done; for d in $(seq 5); do mv $d moved-$d; done";
    world.call(["run", "-q", "-n", "large", "--", "sh", "-ec", change]).run().ok();
    for form in ["", "--color=always"] {
        let said = within(&world, SHOWN_KIB, &format!("diff large {form} | wc -c")).ok();
        let count: usize = said.stdout().trim().parse().expect("a number");
        assert!(count > 10_000_000, "{form}: {said}");
    }
}
