//! Random turns across both borders: what git ignores, builds and repositories inside, and what lies outside of the project. After any undo
//!
//! - each content that was there right before it is there, on the tree, outside or in the store;
//! - each content that was covered before the first of the turns is there as well;
//! - each that was on a disk before these turns, and still was right before the undo, is on one, unless it was copied, or somebody else was
//!   at it;
//! - each path that differs from before these turns, as far as it is covered or stands at the border, is in the report, unless somebody else
//!   was at it.
//!
//! A failure prints its seed with all that was done; `RECANT_SEED=n` plays that one, `RECANT_ROUNDS=n` so many.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;

use crate::agent::{Agent, pause};
use crate::common::{Dice, Said, World};
use serde_json::Value;

/// So many seeds are played each time.
const FEW: u64 = 12;

#[test]
fn after_any_undo_nothing_is_lost_and_each_difference_is_in_the_report() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let rounds = number("RECANT_ROUNDS").unwrap_or(FEW);
    let seeds = number("RECANT_SEED").map_or(0..rounds, |seed| seed..seed + 1);
    println!("seeds {seeds:?}");
    let mut crossed = BTreeMap::<&str, usize>::new();
    for seed in seeds {
        let mut scene = Scene::new(seed);
        scene.play();
        for (border, times) in &scene.crossed {
            *crossed.entry(border).or_default() += times;
        }
    }
    println!("borders that were crossed, and how often: {crossed:?}");
}

/// Paths that are covered, as git tracks or does not ignore them, or ignores them and they are small.
const COVERED: [&str; 9] = ["a", "b", "src/c", "src/d", ".env", "x.log", "conf/key", "build/tool.js", "api/f"];
/// Things that are not: built, ignored and large or full, by a compiler, a repository's own.
const OUT: [&str; 7] = ["dist", "src/target", "large.bin", "many", "src/x.o", "api/.git", "bare.git"];
/// Names for what is new.
const NEW: [&str; 6] = ["n", "src/n", "conf/n", "public", "dist/n", "n.bin"];

type Tree = BTreeMap<String, String>;
/// The inode of each path.
type Places = BTreeMap<String, u64>;

struct Scene {
    world: Rc<World>,
    seed: u64,
    dice: Dice,
    tokens: u32,
    log: Vec<String>,
    crossed: BTreeMap<&'static str, usize>,
    /// What others than the first conversation were at.
    others: BTreeSet<String>,
    /// What these wrote.
    theirs: BTreeSet<String>,
    /// True if git tracked what lies in `build` when the first of the turns began: else that is not covered.
    tracks_build: bool,
    /// True if `conf` held too much once to be covered.
    was_full: bool,
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}:\n{}", self.seed, self.world.mask(&self.log.join("\n")));
        }
    }
}

impl Scene {
    fn new(seed: u64) -> Self {
        let world = Rc::new(World::new());
        let (crossed, others, theirs, log) = Default::default();
        let mut scene =
            Self { world, seed, dice: Dice(seed), tokens: 0, log, crossed, others, theirs, tracks_build: true, was_full: false };
        scene.shell("git init -q . && printf '*.bin\\n*.o\\n*.log\\nconf/\\nmany/\\n' > .gitignore; mkdir ../outside many");
        scene.shell("cd many; seq 1001 | xargs touch");
        for path in COVERED.into_iter().chain(["dist/app", "src/target/app", "src/x.o", "many/1", "../outside/o"]) {
            if scene.dice.percent(85) {
                let line = scene.content(path);
                scene.shell(&line);
            }
        }
        let line = scene.content("large.bin");
        scene.shell(&format!("{line}; head -c 1100000 /dev/zero >> large.bin"));
        scene.shell("git add . ; git add -f build; git -c user.name=a -c user.email=a@b commit -qm one");
        scene.shell("git init -q api; git init -q --bare bare.git");
        pause();
        scene
    }

    fn play(&mut self) {
        let world = self.world.clone();
        let agents = ["s", "t"].map(|session| Agent::begin(&world, "claude", session));
        let turns = 2 + self.dice.below(3);
        let first = self.dice.below(turns);
        let (mut before, mut on_disk) = (Tree::new(), BTreeSet::new());
        for n in 0..turns {
            // Those of the other conversation are no part of what goes back.
            let who = usize::from(n != first && self.dice.percent(20));
            if n == first {
                before = self.tree();
                self.tracks_build = !world.program("git", ["ls-files", "build"]).run().ok().out.is_empty();
                on_disk = self.on_disk();
            }
            agents[who].prompt(&format!("turn {}", n + 1));
            let was = self.state();
            self.was_full |= is_full(&was.0);
            for _ in 0..=self.dice.below(3) {
                let line = self.deed();
                agents[who].uses("Bash", serde_json::json!({ "command": line }), || self.shell(&line));
                if self.dice.percent(15) {
                    pause();
                    self.by_others(|scene| {
                        let line = scene.deed();
                        scene.shell(&line);
                    });
                    pause();
                }
            }
            agents[who].stop();
            if who == 1 {
                self.note_others(&was);
            }
            pause();
        }
        if self.dice.percent(30) {
            self.by_others(|scene| {
                let line = scene.deed();
                scene.shell(&line);
            });
        }
        let (now, on_disk) = (self.tokens_anywhere(), on_disk.intersection(&self.on_disk()).cloned().collect::<Vec<_>>());
        let words = format!("agent undo {} -y --json", first + 1);
        let said = world.recant(&words);
        self.log.push(format!("$ recant {words}\n{said}"));
        if said.status == 1 {
            // Nothing of what is covered was changed.
            return;
        }
        assert!([0, 4].contains(&said.status), "{said}");
        let kept = self.tokens_anywhere();
        let lost: Vec<_> = now.difference(&kept).collect();
        assert!(lost.is_empty(), "the undo lost {lost:?}: {said}");
        let owed: BTreeSet<String> =
            before.iter().filter(|(path, _)| self.is_covered(path)).flat_map(|(_, state)| tokens(state)).collect();
        let lost: Vec<_> = owed.difference(&kept).collect();
        assert!(lost.is_empty(), "of what was covered {lost:?} is lost: {said}");
        let is_there = self.on_disk();
        let of_others = before.iter().filter(|(path, _)| self.others.contains(*path)).flat_map(|(_, state)| tokens(state));
        let of_others: BTreeSet<String> = of_others.collect();
        let gone: Vec<_> = on_disk.iter().filter(|token| !is_there.contains(*token) && !of_others.contains(*token)).collect();
        assert!(gone.is_empty() || self.log.iter().any(|line| line.contains("cp -a")), "off the tree went {gone:?}: {said}");
        self.assert_reported(&before, &said);
    }

    fn is_covered(&self, path: &str) -> bool {
        is_covered(path) && (self.tracks_build || !is_under(path, "build")) && !(self.was_full && is_under(path, "conf"))
    }

    fn assert_reported(&self, before: &Tree, said: &Said) {
        let report = said.json();
        let tree = format!("{}/", self.world.tree().display());
        let below = |path: &Value| path.as_str().map(|path| path.trim_start_matches(&*tree).to_owned());
        let rows = |key: &str| report[key].as_array().expect("a list").clone();
        let mut named: BTreeSet<String> = rows("skipped").iter().filter_map(|row| below(&row["path"])).collect();
        for row in rows("not_covered") {
            named.extend([below(&row["path"]), below(&row["to"])].into_iter().flatten());
        }
        let after = self.tree();
        let is_repository = |at: &str| [before, &after].iter().any(|tree| tree.contains_key(&format!("{at}/HEAD")));
        let is_built = |path: &str| !self.tracks_build && path.starts_with("build/");
        let in_repository = |path: &str| path.match_indices('/').any(|(end, _)| is_repository(&path[..end]));
        let is_deep = |path: &str| is_deep(path) || is_built(path) || in_repository(path);
        let is_full = self.was_full || is_full(&after);
        for path in before.keys().chain(after.keys()) {
            if before.get(path) == after.get(path) || is_deep(path) || is_full && is_under(path, "conf") {
                continue;
            }
            let is_at = |other: &String| is_under(path, other) || is_under(other, path);
            let is_theirs = after.get(path).is_some_and(|state| tokens(state).any(|token| self.theirs.contains(&token)));
            let is_known = is_theirs || named.iter().any(is_at) || self.others.iter().any(is_at);
            assert!(
                is_known,
                "{path} is not as before, and that is not said: {:?}, {:?}: {said}",
                before.get(path),
                after.get(path)
            );
        }
    }

    /// What somebody writes to a path, as a line for a shell.
    fn content(&mut self, path: &str) -> String {
        self.tokens += 1;
        format!("mkdir -p $(dirname {path}); echo tok-{}- > {path}", self.tokens)
    }

    fn cross(&mut self, border: &'static str) {
        *self.crossed.entry(border).or_default() += 1;
    }

    /// A line for a shell, which may come to nothing.
    fn deed(&mut self) -> String {
        let (covered, out, new) = (self.dice.of(&COVERED), self.dice.of(&OUT), self.dice.of(&NEW));
        match self.dice.below(20) {
            0..4 => self.content(covered),
            4 | 5 => self.content(new),
            6 => format!("rm -rf {covered}"),
            7 => format!("mkdir -p $(dirname {new}); mv {covered} {new}"),
            8 => {
                self.cross("covered, into what is not");
                format!("mv {covered} dist/")
            }
            9 | 10 => {
                self.cross("what is not covered, moved");
                format!("rm -rf {new}; mkdir -p $(dirname {new}); mv {out} {new}")
            }
            11 => {
                self.cross("out of what is not covered");
                format!("mkdir -p $(dirname {new}); mv dist/app {new}")
            }
            12 => {
                self.cross("what is not covered, deleted");
                format!("rm -rf {out}")
            }
            13 => {
                self.cross("what is not covered, overwritten");
                self.content("large.bin")
            }
            14 => {
                self.cross("in from outside");
                format!("mv ../outside/o {new}")
            }
            15 => {
                self.cross("out of the project");
                format!("mv {} ../outside/{}", self.dice.of(&[covered, out]), self.tokens)
            }
            16 => {
                self.cross("HEAD");
                "git -c user.name=a -c user.email=a@b commit -qam more".into()
            }
            17 => {
                self.cross("a repository that shows no more");
                "rm -f bare.git/HEAD".into()
            }
            18 => format!("chmod 700 {covered}"),
            _ => format!("cp -a {out} {new}; ln -f {covered} src/link"),
        }
    }

    fn by_others(&mut self, work: impl FnOnce(&mut Self)) {
        let was = self.state();
        work(self);
        self.note_others(&was);
    }

    fn note_others(&mut self, (was, was_at): &(Tree, Places)) {
        let (is, is_at) = self.state();
        let differs = |path: &&String| was.get(*path) != is.get(*path) || was_at.get(*path) != is_at.get(*path);
        let in_all = |tree: &Tree| tree.values().flat_map(|state| tokens(state)).collect::<BTreeSet<_>>();
        self.theirs.extend(in_all(&is).difference(&in_all(was)).cloned());
        self.others.extend(was.keys().chain(is.keys()).filter(differs).cloned().collect::<Vec<_>>());
    }

    fn shell(&mut self, line: &str) {
        self.log.push(format!("  {line}"));
        // What cannot be done is not done.
        drop(self.world.program("sh", ["-c", line]).command().output().expect("a shell"));
    }

    /// The tree, and which object is where.
    fn state(&self) -> (Tree, Places) {
        let tree = self.tree();
        let inode = |path: &String| self.world.path(path).symlink_metadata().map_or(0, |object| object.ino());
        let places = tree.keys().map(|path| (path.clone(), inode(path))).collect();
        (tree, places)
    }

    /// Each path with its kind, mode and content, without what belongs to the repository itself.
    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        for (path, row) in self.world.manifest().0 {
            let path = String::from_utf8(path).expect("plain names");
            if path != "." && !is_under(&path, ".git") {
                tree.insert(path, format!("{:o} {}", row.mode, row.content));
            }
        }
        tree
    }

    fn tokens_anywhere(&self) -> BTreeSet<String> {
        let mut found = self.on_disk();
        collect(&self.world.store(), &mut found);
        found
    }

    fn on_disk(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        collect(&self.world.tree(), &mut found);
        collect(&self.world.path("../outside"), &mut found);
        found
    }
}

fn collect(top: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(top).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, found),
            Ok(kind) if kind.is_file() => {
                found.extend(tokens(&String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default())))
            }
            _ => {}
        }
    }
}

/// The tokens in a text: `tok-7-`.
fn tokens(text: &str) -> impl Iterator<Item = String> {
    let ends = text.match_indices("tok-").filter_map(|(at, _)| Some(&text[at..at + 4 + text[at + 4..].find('-')? + 1]));
    let plain = |token: &&str| token[4..token.len() - 1].bytes().all(|b| b.is_ascii_digit());
    ends.filter(plain).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

fn is_under(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_full(tree: &Tree) -> bool {
    tree.keys().filter(|path| is_under(path, "conf")).count() > 1000
}

/// The rule of what a turn covers, for the names that there are here.
fn is_covered(path: &str) -> bool {
    let is_out = |name: &str| matches!(name, "dist" | "target" | "many" | ".git" | "bare.git");
    !path.split('/').any(|name| is_out(name) || name.ends_with(".bin") || name.ends_with(".o"))
}

/// True for what lies in a thing that is not covered: that is one, and edits in it are not looked for.
fn is_deep(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(directory, _)| !is_covered(directory))
}
