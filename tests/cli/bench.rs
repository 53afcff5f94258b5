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

/// The pages have the figures of benches/figures.json; release-check refuses them once they are old, or of another minor version.
#[test]
fn the_figures_of_the_pages_are_those_that_were_measured() {
    let world = World::new();
    let top = env!("CARGO_MANIFEST_DIR");
    let script = format!(
        "import sys, datetime; sys.path.insert(0, '{top}/benches'); import pages\n\
         figures = pages.read(pages.FIGURES)\n\
         for path, text in pages.pages(figures):\n    assert open(path).read() == text, path + ': benches/pages.py writes another'\n\
         day = datetime.date.fromisoformat(figures['date'])\n\
         assert not [f for f in pages.faults(figures, day) if 'days ago' in f]\n\
         old = list(pages.faults({{**figures, 'recant': '0.1.9'}}, day + datetime.timedelta(days=90)))\n\
         assert any('more than 60 days ago' in fault for fault in old) and any('recant 0.1.9; this is' in fault for fault in old), old\n"
    );
    world.program("python3", ["-c", &script]).env("PYTHONDONTWRITEBYTECODE", "1").run().ok();
}
