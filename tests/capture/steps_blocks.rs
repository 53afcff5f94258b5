//! Blocks of merged uppers (tests/README.md, F53): a command runs over a few uppers however many steps there are, a block of another boot
//! counts for nothing, and what is committed has no other name in the store.

use crate::common;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::desk::{Desk, each};

/// A session `w` of so many steps, each of which writes a file and adds to one.
fn stepped(desk: &Desk, steps: usize) {
    desk.made("mkdir t; echo 0 > t/all; mkdir t/old; echo old > t/old/1");
    for n in 1..=steps {
        let more = if n % 7 == 0 { "rm -rf t/old; mkdir t/old; echo new > t/old/2" } else { "true" };
        desk.held("--session w -q", &format!("echo {n} >> t/all; echo {n} > t/{n}; {more}")).run().ok();
    }
}

fn seen(desk: &Desk, name: &str) -> String {
    desk.held(&format!("--session {name} -q"), "find t -type f | sort | xargs grep -H .").run().ok().stdout()
}

/// The names of the blocks.
fn blocks(desk: &Desk, id: &str) -> Vec<PathBuf> {
    let uppers = std::fs::read_dir(desk.world.session(id).join("held/upper")).unwrap();
    let mut paths: Vec<_> = uppers.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_string_lossy().contains('-'));
    paths.sort();
    paths
}

/// Everything below a directory that is none itself.
fn files(top: &Path) -> Vec<PathBuf> {
    let (mut found, mut todo) = (Vec::new(), vec![top.to_owned()]);
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() { todo.push(path) } else { found.push(path) }
        }
    }
    found
}

#[test]
fn after_many_steps_a_command_runs_over_a_few_uppers() {
    if !common::can_run() {
        return;
    }
    each(|desk| {
        stepped(desk, 34);
        let mounts = desk.held("--session w -q", "cat /proc/self/mountinfo").run().ok().stdout();
        // The last part has the file system's own options.
        let of_overlay = mounts.lines().filter_map(|line| line.split_once(" - overlay ")?.1.split(' ').nth(1));
        let lowers = |options: &str| -> usize {
            let dirs = options.split(',').filter_map(|option| option.strip_prefix("lowerdir")?.split_once('='));
            dirs.map(|(_, dirs)| dirs.split(':').filter(|dir| !dir.is_empty()).count()).sum()
        };
        let counts: Vec<usize> = of_overlay.map(lowers).collect();
        let most = counts.iter().max().copied().unwrap_or_default();
        assert!((2..=16).contains(&most), "{:?}: {counts:?}: {mounts}", desk.who);
        let all: String = (0..=34).map(|n| format!("t/all:{n}\n")).collect();
        let seen = seen(desk, "w");
        assert!(seen.contains(&all) && seen.contains("t/old/2:new\n") && !seen.contains("t/old/1"), "{seen}");
    });
}

#[test]
fn a_block_of_another_boot_is_not_used() {
    if !common::can_run() {
        return;
    }
    each(|desk| {
        stepped(desk, 17);
        let id = desk.id();
        let wanted = seen(desk, "w");
        let [block] = &blocks(desk, &id)[..] else { panic!("{:?}", blocks(desk, &id)) };
        // Something that none of its steps has, to tell if it shows.
        let other = files(block).into_iter().find(|path| path.ends_with("t/3")).unwrap();
        std::fs::remove_file(&other).unwrap();
        desk.world.write(&other, "other");
        assert!(seen(desk, "w").contains("t/3:other\n"), "{:?}: this boot's is used", desk.who);
        let name = block.file_name().unwrap().to_str().unwrap();
        let (start, _) = name.rsplit_once('.').unwrap();
        let aside = block.with_file_name(format!("{start}.00000000"));
        std::fs::rename(block, &aside).unwrap();
        assert_eq!(seen(desk, "w"), wanted, "{:?}", desk.who);
        assert!(!aside.exists(), "{:?}: it goes once another one is there", desk.who);
        // Nor is one that is half made.
        let [block] = &blocks(desk, &id)[..] else { panic!("{:?}", blocks(desk, &id)) };
        std::fs::rename(block, block.with_file_name(format!("{start}.new"))).unwrap();
        assert_eq!(seen(desk, "w"), wanted, "{:?}", desk.who);
    });
}

#[test]
fn what_is_committed_has_no_other_name_in_the_store() {
    if !common::can_run() {
        return;
    }
    each(|desk| {
        for (what, words) in [("all", &["commit w"][..]), ("some", &["commit w t/3", "commit w"]), ("a fork", &["commit fk"])] {
            let desk = Desk::new(desk.who);
            stepped(&desk, 18);
            let id = desk.id();
            desk.recant("fork w 17 -n fk").ok();
            let (wanted, of_fork) = (seen(&desk, "w"), seen(&desk, "fk"));
            assert!(!blocks(&desk, &id).is_empty(), "{:?}: it has blocks", desk.who);
            for words in words {
                desk.recant(words).ok();
                let tree: Vec<_> =
                    files(&desk.world.tree()).iter().map(|path| (path.clone(), path.metadata().unwrap())).collect();
                let inodes: BTreeSet<_> = tree.iter().map(|(_, meta)| (meta.dev(), meta.ino())).collect();
                for (path, meta) in &tree {
                    assert_eq!(meta.nlink(), 1, "{:?}: {what}, {words}: {}", desk.who, path.display());
                }
                let held = files(&desk.world.store()).into_iter().find(|path| {
                    let meta = path.symlink_metadata().unwrap();
                    inodes.contains(&(meta.dev(), meta.ino()))
                });
                assert_eq!(held, None, "{:?}: {what}, {words}", desk.who);
            }
            let tree = desk.world.program("sh", ["-c", "find t -type f | sort | xargs grep -H ."]).run().ok().stdout();
            assert_eq!(tree, if what == "a fork" { of_fork } else { wanted.clone() }, "{:?}: {what}", desk.who);
            if what == "a fork" {
                // Writing to the tree changes no step of the other.
                desk.bare(&desk.world.tree(), "for n in $(seq 17); do echo theirs >> t/$n; done; echo theirs >> t/all");
                assert_eq!(seen(&desk, "w"), wanted, "{:?}", desk.who);
                desk.recant("rewind w 12").ok();
                assert!(seen(&desk, "w").contains("t/all:12\nt/old"), "{:?}", desk.who);
            }
        }
    });
}

#[test]
fn directories_that_a_command_closed_are_closed_in_a_block_too() {
    if !common::can_run() {
        return;
    }
    each(|desk| {
        desk.made("mkdir t");
        let closing = "mkdir -p t/d/in t/e/in; echo x > t/d/in/x; chmod 644 t/d/in; chmod 600 t/d; chmod 200 t/e/in; chmod 0 t/e";
        desk.held("--session w -q", closing).run().ok();
        (1..=18).for_each(|n| drop(desk.held("--session w -q", &format!("echo {n} > t/{n}")).run().ok()));
        let look = "stat -c '%a %n' t/d t/e; chmod 700 t/d t/e; stat -c '%a %n' t/d/in t/e/in; chmod 700 t/d/in; cat t/d/in/x";
        let seen = desk.held("--session w -q", look).run().ok().stdout();
        assert_eq!(seen, "600 t/d\n0 t/e\n644 t/d/in\n200 t/e/in\nx\n", "{:?}", desk.who);
    });
}
