//! Random histories of acts by a person and an agent: undone to their beginning and redone to their end, each tree in between is exact. The
//! seed is that of the sweeps: `RECANT_SWEEP_SEED=n` plays a history again.

use crate::common::{Dice, Manifest, Said, World};

/// Acts of a history.
const ACTS: usize = 300;
const NAMES: [&str; 8] = ["a", "b", "c", "d/a", "d/b", "d/e/a", "f/a", "f"];

struct History {
    world: World,
    dice: Dice,
    /// Sessions that are pending, committed and rolled back, and that were discarded, the newest last.
    pending: Vec<String>,
    committed: Vec<String>,
    back: Vec<String>,
    discarded: Vec<String>,
    /// Parts that were committed.
    parts: usize,
    /// The tree before the first act and after each that undo takes back.
    trees: Vec<Manifest>,
}

impl History {
    fn new(seed: u64) -> Self {
        let world = World::new();
        world.write("a", "first a").write("d/a", "first d/a").write("kept", "kept");
        let trees = vec![world.manifest().without_directory_times()];
        let (pending, committed, back, discarded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { world, dice: Dice(seed), pending, committed, back, discarded, parts: 0, trees }
    }

    fn call(&self, words: &[&str]) -> Said {
        self.world.call(words).run()
    }

    /// Notes an act that undo takes back.
    fn done(&mut self) {
        self.trees.push(self.tree());
    }

    /// The tree, but for the times of directories: a session that is redone after others has one record of them.
    fn tree(&self) -> Manifest {
        self.world.manifest().without_directory_times()
    }

    fn staged(&mut self) {
        let id = self.world.begin();
        let lines: Vec<String> = (0..=self.dice.below(3))
            .map(|n| {
                let name = self.dice.of(&NAMES);
                match self.dice.below(5) {
                    0 => format!("delete {name}"),
                    1 => format!("chmod 0{} {name}", self.dice.of(&["640", "755", "600"])),
                    _ => format!("write {name} {id} {n}"),
                }
            })
            // What is not there cannot be deleted, nor changed.
            .filter(|line| {
                let name = line.rsplit(' ').next().unwrap_or_default();
                line.starts_with("write") || self.world.exists(name) && self.world.path(name).is_file()
            })
            .collect();
        let mut names: Vec<&str> =
            lines.iter().map(|line| line.split(' ').nth(if line.starts_with("chmod") { 2 } else { 1 }).unwrap()).collect();
        names.sort_unstable();
        // One path above another, or twice, is for the tests of staging.
        let is_plain = !names.windows(2).any(|pair| pair[1].starts_with(pair[0])) && !names.is_empty();
        let is_beside = |name: &&str| name.match_indices('/').all(|(i, _)| !self.world.path(&name[..i]).is_file());
        let is_file = |name: &&str| !self.world.path(name).is_dir();
        if is_plain && names.iter().all(|name| is_beside(name) && is_file(name)) {
            self.world.stage(&id, lines.iter().map(String::as_str));
            let held = self.call(&["show", &id, "--json"]).ok().json()["changes"].as_array().map_or(0, Vec::len);
            if held > 0 {
                self.pending.push(id);
            }
        }
    }

    /// Commits one path of what holds several: the part is a session of its own.
    fn part(&mut self) {
        let Some(id) = self.pending.last().cloned() else { return };
        let shown = self.call(&["show", &id, "--json"]).ok().json();
        let paths: Vec<&str> = shown["changes"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
        if paths.len() < 2 {
            return;
        }
        let path = self.dice.of(&paths);
        let said = self.call(&["commit", &id, path, "--json"]);
        if said.status == 0 {
            let part = said.json()["session"].as_str().unwrap().to_owned();
            if part == id {
                self.pending.pop();
            } else {
                self.parts += 1;
            }
            self.committed.push(part);
            self.back.clear();
            self.done();
        }
    }

    /// Does something at random, if it can be done.
    fn step(&mut self) {
        let last = |all: &Vec<String>| all.last().cloned();
        match self.dice.below(10) {
            0..=2 => self.staged(),
            3..=5 => {
                if self.dice.percent(40) {
                    return self.part();
                }
                if let Some(id) = last(&self.pending)
                    && self.call(&["commit", &id]).status == 0
                {
                    self.pending.pop();
                    self.committed.push(id);
                    // A redo after other commits may find what they made, of which it keeps no original.
                    self.back.clear();
                    self.done();
                }
            }
            6 => {
                if let Some(id) = last(&self.committed)
                    && self.call(&["rollback", &id]).status == 0
                {
                    self.committed.pop();
                    self.back.push(id);
                    self.done();
                }
            }
            7 => {
                if let Some(id) = last(&self.back)
                    && self.call(&["redo", &id]).status == 0
                {
                    self.back.pop();
                    self.committed.push(id);
                    self.done();
                }
            }
            8 => {
                if let Some(id) = last(&self.pending) {
                    self.call(&["discard", &id]).ok();
                    self.pending.pop();
                    self.discarded.push(id);
                    self.done();
                }
            }
            _ => {
                // An agent works on what is held: no act of the person's.
                let agent = |words: &[&str]| self.world.call(words).env("CLAUDECODE", "1").stdin("agent").run();
                let own = agent(&["session", "new"]).ok().id();
                agent(&["session", "write", "-p", &own, "agent"]).ok();
                agent(&["discard", &own]).ok();
            }
        }
    }

    /// Takes back the newest act, past what is held on top: by its id then.
    fn undo(&self) -> Said {
        let said = self.call(&["undo", "-y"]);
        let text = said.stderr();
        match text.rsplit_once("the one before it: recant undo ") {
            Some((_, id)) if said.status == 1 => self.call(&["undo", id.trim(), "-y"]),
            _ => said,
        }
    }
}

fn is_done(said: &Said) -> bool {
    said.status == 0
}

fn seed() -> u64 {
    std::env::var("RECANT_SWEEP_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

#[test]
fn a_random_history_is_undone_to_its_beginning_and_redone_to_its_end() {
    let mut history = History::new(seed());
    while history.trees.len() <= ACTS {
        history.step();
        history.trees.last().unwrap().assert_same(&history.tree(), "what is no act changes nothing");
    }
    let trees = std::mem::take(&mut history.trees);
    println!("{} acts that undo takes back, {} of them on parts", trees.len() - 1, history.parts);
    assert!(history.parts > 0, "parts were drawn");
    for (n, tree) in trees.iter().enumerate().rev().skip(1) {
        let said = history.undo();
        assert!(is_done(&said), "undone to {n}: {said}");
        tree.assert_same(&history.tree(), &format!("undone to {n}: {said}"));
    }
    history.call(&["undo", "-y"]).with(1);
    for (n, tree) in trees.iter().enumerate().skip(1) {
        let said = history.call(&["redo"]);
        assert!(is_done(&said), "redone to {n}: {said}");
        tree.assert_same(&history.tree(), &format!("redone to {n}: {said}"));
    }
    history.call(&["redo"]).with(1);
}

/// With somebody else's edits in between, an undo is exact, or refused by the name of what was edited.
#[test]
fn an_undo_among_the_edits_of_others_is_exact_or_refused_by_name() {
    // In a history that is short an edit may be in nobody's way.
    let refused = (1..=8).map(|n| refused_among_edits(seed() + n)).find(|refused| *refused > 0);
    assert!(refused.is_some(), "an edit was in the way of some");
}

/// The number of undos that were refused at first in a history.
fn refused_among_edits(seed: u64) -> usize {
    let mut history = History::new(seed);
    while history.trees.len() <= ACTS / 4 {
        history.step();
    }
    let trees = std::mem::take(&mut history.trees);
    let mut refused = 0;
    for (n, tree) in trees.iter().enumerate().rev().skip(1) {
        let name = history.dice.of(&NAMES);
        let path = history.world.path(name);
        if history.dice.percent(40) && path.is_file() {
            let (content, before) = (std::fs::read(&path).unwrap(), history.world.manifest());
            std::fs::write(&path, "theirs").unwrap();
            let edited = history.world.manifest();
            let said = history.undo();
            if !is_done(&said) {
                assert!(said.status == 3 && said.stderr().contains(name), "undone to {n}: {said}");
                edited.assert_same(&history.world.manifest(), &format!("refused: {said}"));
                refused += 1;
            }
            assert_eq!(history.world.read(name), "theirs", "undone to {n}: {said}");
            std::fs::write(&path, content).unwrap();
            let (s, ns) = before.0[name.as_bytes()].mtime;
            history.world.set_mtime(name, s, ns);
            if !is_done(&said) {
                assert!(is_done(&history.undo()));
            }
        } else {
            assert!(is_done(&history.undo()));
        }
        tree.assert_same(&history.tree(), &format!("undone to {n}"));
    }
    refused
}
