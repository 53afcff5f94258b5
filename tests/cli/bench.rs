//! `benches/bench.py`, on a small tree: what is missing is named, and the rest is measured.

use std::os::unix::fs::symlink;

use crate::common::{Said, World, can_run, recant, skip};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/bench.py");

/// The script with one round of these parts, without some programs in PATH.
fn bench(world: &World, without: &[&str], parts: &str) -> Said {
    let programs = tempfile::tempdir().expect("a directory");
    for directory in ["/usr/bin", "/bin", "/usr/sbin", "/sbin"] {
        for program in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if !without.iter().any(|name| program.file_name() == *name) {
                // What is in two of them leads to the first.
                drop(symlink(program.path(), programs.path().join(program.file_name())));
            }
        }
    }
    let words = ["--recant", recant(), "--fs", "here", "--trees", "tiny", "--rounds", "1", "--parts", parts];
    world
        .program("python3", [SCRIPT].into_iter().chain(words))
        .env("PATH", programs.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .run()
}

#[test]
fn what_a_bench_lacks_is_named_and_the_rest_is_measured() {
    if !can_run() {
        return skip("a bench: recant run does not work here");
    }
    let world = World::new();
    let said = bench(&world, &["rsync", "git"], "main,agents,run").ok();
    let told = said.stdout();
    for line in ["no rsync here: what is measured beside it", "no git here: part agents"] {
        assert_eq!(told.matches(&format!("\nskipped: {line}\n")).count(), 1, "{line}: {said}");
    }
    for row in ["| commit / copy of the originals (one leg) |", "| recant run -- true |", "load at the end: "] {
        assert!(told.contains(row), "{row}: {said}");
    }
    let first = told.lines().next().unwrap_or_default();
    assert!(first.contains(", load ") && first.contains(", commit ") && first.contains("no rsync"), "{first}");
    // Without xargs(1) nothing can be copied.
    let said = bench(&world, &["rsync", "git", "xargs"], "main,run").with(1);
    assert!(said.stderr().lines().any(|line| line.starts_with("failed: main, on here ")), "{said}");
    assert!(said.stdout().contains("| recant run -- true |"), "{said}");
}
