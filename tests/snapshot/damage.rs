//! Damage of what earlier snapshots keep: it is named, it hides no other snapshot, and the next one needs nothing of it.

use std::path::Path;

use crate::common::{Said, World};
use crate::{blob, confined, series, snapshot};

fn create(world: &World, words: &str) -> Said {
    snapshot(world, &format!("create {words}"))
}

pub type Harm = fn(&Path);

/// The three things that happen to a file.
pub const HARMS: [(&str, Harm); 3] = [("flipped", flip), ("cut off", cut), ("removed", remove)];

fn flip(file: &Path) {
    let mut bytes = std::fs::read(file).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).expect("a file");
}

fn cut(file: &Path) {
    let bytes = std::fs::read(file).expect("a file");
    std::fs::write(file, &bytes[..bytes.len() / 2]).expect("a file");
}

fn remove(file: &Path) {
    std::fs::remove_file(file).expect("a file");
}

/// Twenty small files and a large one; snapshots 0, and 1 which tells its differences from it.
fn two() -> World {
    filled(World::new())
}

fn filled(world: World) -> World {
    for i in 0..20 {
        world.write(format!("a/{i}"), format!("content {i}"));
    }
    world.write("large", vec![7; 200_000]);
    create(&world, "").ok();
    world.write("a/1", "changed");
    create(&world, "").ok();
    world
}

/// Whether snapshot `n` gives back the tree as it is now, which is upset before.
fn gives_back(world: &World, n: &str, what: &str) {
    let wanted = world.manifest();
    world.write("a/3", "upset").remove("a/4").write("new", "n").remove("large");
    world.recant(&format!("snapshot restore {n}")).ok();
    wanted.assert_same(&world.manifest(), what);
}

#[test]
fn a_damaged_base_costs_no_later_snapshot_and_no_series() {
    for (harm, damage) in HARMS {
        let world = two();
        damage(&series(&world).join("0.jsonl"));
        if harm == "flipped" {
            let said = world.recant("snapshot verify").with(5);
            for n in 0..2 {
                assert!(said.stderr().contains(&format!("snapshot {n}: {}: ", world.tree().display())), "{said}");
            }
            assert!(said.stderr().contains("damaged snapshots: 0, 1;"), "{said}");
        }
        world.write("a/2", "changed");
        let said = create(&world, "").ok();
        assert_eq!(said.stdout(), "2\n");
        assert!(said.stderr().contains("snapshot 1 cannot be read: "), "{harm}: {said}");
        gives_back(&world, "2", harm);
        let said = world.recant("snapshot list").with(4);
        assert!(said.stderr().contains("snapshot 1: ") && !said.stderr().contains("snapshot 2: "), "{harm}: {said}");
        assert_eq!(world.recant("snapshot restore 1").status, 5, "{harm}");
        // More than a quarter changes: the next one would be written whole from its differences.
        for i in 0..20 {
            world.write(format!("a/{i}"), format!("other {i}"));
        }
        let said = create(&world, "").ok();
        assert!(said.stdout() == "3\n" && !said.stderr().contains("cannot be read"), "{harm}: {said}");
        gives_back(&world, "3", harm);
        let pruned = world.recant("prune --snapshots --number 0 --number 1");
        assert!([0, 1].contains(&pruned.status), "{harm}: {pruned}");
        world.recant("prune --snapshots --keep 1").ok();
        world.recant("snapshot list").ok();
        world.recant("snapshot verify").ok();
        let left = std::fs::read_dir(series(&world)).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        let left: Vec<String> = left.filter(|name| name.starts_with(['0', '1', '2'])).collect();
        assert!(left.is_empty(), "{harm}: {left:?}");
        gives_back(&world, "3", harm);
    }
}

#[test]
fn a_base_that_is_damaged_once_it_is_no_snapshot_any_more_is_let_go() {
    let world = two();
    world.recant("prune --snapshots --number 0").ok();
    flip(&series(&world).join("0.base"));
    assert_eq!(create(&world, "").ok().stdout(), "2\n");
    gives_back(&world, "2", "without its base");
    world.recant("prune --snapshots --keep 1").ok();
    assert!(!series(&world).join("0.base").exists());
    create(&world, "").ok();
}

#[test]
fn a_key_or_an_unchanged_tree_is_not_answered_by_a_snapshot_that_cannot_be_read() {
    let world = two();
    world.write("a/2", "changed");
    create(&world, "--once turn").ok();
    flip(&series(&world).join("0.jsonl"));
    assert_eq!(create(&world, "--once turn").ok().stdout(), "3\n");
    gives_back(&world, "3", "by its key");
    flip(&series(&world).join("3.jsonl"));
    assert_eq!(create(&world, "--if-changed").ok().stdout(), "4\n");
    gives_back(&world, "4", "unchanged");
}

/// Missing and cut off content is found at once, content that differs by `verify`.
#[test]
fn damaged_content_is_named_and_the_next_snapshot_stores_it_anew() {
    let world = two();
    world.recant("snapshot verify").ok();
    assert!(series(&world).join("index").exists());
    for ((harm, damage), packed, verified) in
        HARMS.iter().flat_map(|harm| [(true, true), (true, false), (false, true), (false, false)].map(|(a, b)| (*harm, a, b)))
    {
        let world = two();
        let file = if packed { series(&world).join("0.pack") } else { blob(&world) };
        damage(&file);
        let what = format!("{harm}: {}", file.display());
        if verified {
            let said = world.recant("snapshot verify").with(5);
            let path = world.path(if packed { "a/17" } else { "large" });
            for n in 0..2 {
                let named = format!("snapshot {n}: {}: ", path.display());
                assert!(said.stderr().contains(&named), "{what}: {said}");
            }
            let json = world.recant("snapshot verify 1 --json").with(5).json();
            let rows = json["snapshots"].as_array().unwrap();
            assert_eq!((rows.len(), &rows[0]["n"]), (1, &1.into()), "{json}");
            assert!(rows[0]["faults"].as_array().unwrap().iter().any(|row| row["path"] == path.to_str().unwrap()), "{json}");
        } else if harm == "flipped" {
            continue;
        }
        let said = create(&world, "--if-changed").ok();
        assert_eq!(said.stdout(), "2\n", "{what}: {said}");
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(verified || said.stderr().contains(name), "{what}: {said}");
        gives_back(&world, "2", &what);
        let said = create(&world, "").ok();
        assert!(!said.stderr().contains(name), "{what}: what it needs is whole: {said}");
        world.recant("snapshot verify 2").ok();
        world.recant("prune --snapshots --number 0 --number 1").ok();
        world.recant("snapshot verify").ok();
        gives_back(&world, "3", &what);
    }
}

#[test]
fn a_run_on_the_real_tree_is_not_stopped_by_a_damaged_base() {
    let Some(world) = confined().map(filled) else { return };
    flip(&series(&world).join("0.jsonl"));
    let before = world.manifest();
    let script = "rm -r a; mkdir a; for i in 1 2 3 4 5; do echo $i > a/$i; done";
    world.call(["run", "--in", ".", "--", "sh", "-c", script]).run().ok();
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "rolled back");
}
