//! Somebody's deeds between forced verbs, at random: he writes, replaces, removes, fills, closes and moves what a session has to do
//! with, while it is committed, rolled back and redone by force, whole and in part, killed or failing at any step, recovered, and
//! that killed in turn. What is promised is asserted after each verb:
//!
//! - no content is lost that he has not overwritten himself: each content has a token, looked for in tree and store;
//! - what `--force` takes off the tree lies in `displaced`, and is named;
//! - 0 is exactly done, 1 and 3 are exactly as before, and what the session does not name stays as it is in any case;
//! - a recovery comes to an end, the checkpoint is whole then, nothing hangs and nothing panics.
//!
//! A failure prints its seed with all that was done. `RECANT_SEED=n` plays that seed alone, `RECANT_ROUNDS=n` so many a road, else few from
//! `RECANT_SWEEP_SEED` on.

mod deeds;
mod promises;
mod sight;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::{self, Call, Dice, Said, World};
use promises::{assert_kept, named_of};
use serde_json::Value;
use sight::{Change, Moment, rows};

const USER: u32 = 65534;

/// So few names that the deeds meet.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const KILLED: i32 = 137;

/// Who works, and whether store and tree are on two file systems.
#[derive(Clone, Copy, PartialEq)]
enum Road {
    Root,
    RootApart,
    User,
    UserApart,
}

impl Road {
    fn is_apart(self) -> bool {
        matches!(self, Self::RootApart | Self::UserApart)
    }

    fn is_root(self) -> bool {
        matches!(self, Self::Root | Self::RootApart)
    }
}

#[test]
fn nothing_is_lost_by_force_whatever_somebody_does() {
    play_all(Road::Root, FEW);
}

#[test]
fn so_it_is_with_store_and_tree_on_two_file_systems() {
    play_all(Road::RootApart, FEW);
}

#[test]
fn so_it_is_for_an_ordinary_user() {
    play_all(Road::User, FEW);
}

#[test]
fn so_it_is_for_an_ordinary_user_with_two_file_systems() {
    play_all(Road::UserApart, FEW);
}

#[test]
#[ignore = "long: many minutes, the thorough count"]
fn so_it_is_in_many_more_rounds() {
    [Road::Root, Road::RootApart, Road::User, Road::UserApart].into_iter().for_each(|road| play_all(road, 1_000));
}

/// So many seeds a road are played each time, others at each run.
const FEW: u64 = 5;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn play_all(road: Road, rounds: u64) {
    let rounds = number("RECANT_ROUNDS").unwrap_or(rounds);
    let first = if rounds == FEW { number("RECANT_SWEEP_SEED").unwrap_or(0) * FEW } else { 0 };
    let seeds = number("RECANT_SEED").map_or(first..first + rounds, |seed| seed..seed + 1);
    println!("seeds {seeds:?}");
    let count = seeds.end - seeds.start;
    let mut played = 0;
    for seed in seeds {
        let Some(mut scene) = Scene::new(road, seed) else { return };
        played += u64::from(scene.play());
    }
    // Of a few, none may be any.
    assert!(played * 10 >= count * 8 || count < 50, "of {count} sessions {played} alone were any");
}

/// A verb under way, and all that was said of it.
struct Act {
    verb: &'static str,
    what: String,
    changes: Vec<Change>,
    sides: BTreeMap<String, String>,
    before: Moment,
    /// What has to be there when it is over.
    owed: BTreeSet<u32>,
    /// The paths that were said to have given way.
    named: Vec<String>,
    /// Somebody was at it before it was over: what is where then is his doing, too.
    is_meddled: bool,
    /// The token of a process that worked in directories while they were moved.
    late: u32,
}

struct Scene {
    world: World,
    road: Road,
    is_captured: bool,
    store: PathBuf,
    _far: Option<tempfile::TempDir>,
    seed: u64,
    dice: Dice,
    tokens: u32,
    id: String,
    /// What `show` has said of it last.
    shown: Value,
    /// The session's paths: most deeds are near them.
    focus: Vec<String>,
    /// Those of which it has content: of what is only set on an object a copy in an upper is none.
    held: Vec<String>,
    /// The tokens of what the session holds at first.
    brought: BTreeSet<u32>,
    copies: Vec<&'static str>,
    log: Vec<String>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {} of this road:\n{}", self.seed, self.world.mask(&self.log.join("\n")));
        }
        // Closed directories would stay, for an ordinary user.
        drop(self.world.program("chmod", ["-R".as_ref(), "u+rwX".as_ref(), self.world.root().as_os_str()]).run());
    }
}

/// A tree, a session, and what becomes of it.
impl Scene {
    fn new(road: Road, seed: u64) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        if road.is_root() && !is_root {
            common::skip("root's half: the tests do not run as root");
            return None;
        }
        let mut dice = Dice(seed * 4 + road as u64);
        let is_captured = dice.percent(30);
        // On a disk inodes are given again.
        let mut world = if dice.percent(20) { World::on(Path::new("/var/tmp")) } else { World::new() };
        let far = if road.is_apart() { Some(common::elsewhere()?) } else { None };
        let store = far.as_ref().map_or_else(|| world.store(), |far| far.path().join("store"));
        if !road.is_root() && is_root {
            for top in [Some(world.root()), far.as_ref().map(tempfile::TempDir::path)].into_iter().flatten() {
                std::os::unix::fs::lchown(top, Some(USER), Some(USER)).expect("another owner");
                std::fs::set_permissions(top, std::fs::Permissions::from_mode(0o755)).expect("an open directory");
            }
            world.program("chown", ["-R".into(), format!("{USER}:{USER}"), world.root().display().to_string()]).run().ok();
            if world.call(["--version"]).user(USER, USER).cwd("/").run().status != 0 {
                common::skip(&format!("an ordinary user: user {USER} cannot run {}", common::recant()));
                return None;
            }
        }
        world.set("RECANT_STORE", world.store());
        let (tokens, brought, id, shown, focus, held, copies, log) = Default::default();
        Some(Self {
            world,
            road,
            is_captured,
            store,
            _far: far,
            seed,
            dice,
            tokens,
            id,
            shown,
            focus,
            held,
            brought,
            copies,
            log,
        })
    }

    /// False where the session came to nothing.
    fn play(&mut self) -> bool {
        self.grow();
        self.copied("copy0");
        if !self.begin() {
            return false;
        }
        let (mut is_in, mut ever) = (false, false);
        for _ in 0..3 + self.dice.below(5) {
            let deeds = self.dice.of(&[0, 0, 1, 2, 3, 5]);
            self.deeds(deeds);
            let verb = match (is_in, ever) {
                (true, _) => "rollback",
                (false, true) if self.dice.percent(70) => "redo",
                _ => "commit",
            };
            if ever && self.dice.percent(20) {
                // All that the verb is to bring is there already.
                let copy = if verb == "rollback" { "copy0" } else { "copy1" };
                self.shell(&format!("rm -rf * && cp -a ../{copy}/. ."));
            }
            self.act(verb);
            let sides = self.sides();
            let inside = sides.values().filter(|side| *side == "in").count();
            ever |= inside > 0;
            is_in = inside > 0 && (inside == sides.len() || self.dice.percent(50));
            if is_in && self.copies.len() < 2 {
                self.copied("copy1");
            }
        }
        true
    }

    fn grow(&mut self) {
        for _ in 0..3 + self.dice.below(9) {
            let directories = self.paths().into_iter().filter(|path| self.kind(path) == "directory");
            let directories: Vec<String> = directories.chain([".".into()]).collect();
            let path = format!("{}/{}", self.dice.of(&directories), self.dice.of(&NAMES));
            let path = path.trim_start_matches("./").to_owned();
            let line = match self.dice.below(20) {
                _ if self.world.exists(&path) => continue,
                0..9 => format!("mkdir -m {} {path}", self.directory_mode()),
                9..19 => self.content(&path),
                _ => format!("ln -s zz {path}"),
            };
            self.shell(&line);
        }
        if self.dice.percent(30) {
            let file = self.paths().into_iter().find(|path| self.kind(path) == "file");
            file.into_iter().for_each(|path| self.shell(&format!("ln -T {path} g")));
        }
    }

    /// The session of a command, or one that is put together by hand.
    fn begin(&mut self) -> bool {
        self.id = if self.is_captured { self.captured() } else { self.staged() };
        if self.road.is_apart() && !self.id.is_empty() {
            // A run takes no store in /dev/shm.
            self.shell(&format!("cp -a {} {}", self.world.store().display(), self.store.display()));
            self.world.set("RECANT_STORE", &self.store);
        }
        if self.id.is_empty() {
            return false;
        }
        self.look_again();
        self.focus = self.sides().into_keys().collect();
        self.held = self.changes("commit").into_iter().filter(|change| !change.in_place).map(|change| change.path).collect();
        self.brought = self.moment().in_store.into_keys().collect();
        !self.focus.is_empty()
    }

    fn captured(&mut self) -> String {
        let script: Vec<String> = (0..=self.dice.below(8)).map(|_| self.deed()).collect();
        let said = self.recant(&["run", "-q", "--", "sh", "-c", &script.join("\n")], "");
        if said.status == 125 {
            static ONCE: std::sync::Once = std::sync::Once::new();
            ONCE.call_once(|| common::skip(&format!("sessions of a command: {}", said.stderr().trim())));
            return self.staged();
        }
        let listed = self.recant(&["list", "--json"], "").stdout();
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        listed["sessions"][0]["id"].as_str().unwrap_or_default().to_owned()
    }

    fn staged(&mut self) -> String {
        let id = self.recant(&["session", "new"], "").id();
        for _ in 0..2 + self.dice.below(6) {
            let path = self.pick();
            let (mode, target) = (self.directory_mode(), self.dice.of(&["a", "nowhere/x"]));
            let words = match self.dice.below(8) {
                0..3 => vec!["write", "-p", "-r", &id, &path],
                3 | 4 => vec!["delete", "-r", &id, &path],
                5 => vec!["mkdir", "-p", &id, &path],
                6 => vec!["symlink", "-r", &id, target, &path],
                _ => vec!["chmod", &id, mode, &path],
            };
            let words: Vec<&str> = std::iter::once("session").chain(words).collect();
            let (token, _) = self.token();
            self.told(&words, "", &token);
        }
        id
    }

    fn copied(&mut self, name: &'static str) {
        self.shell(&format!("cp -a . ../{name}"));
        self.copies.push(name);
    }
}

/// A verb, what is killed of it, and what recovers it.
impl Scene {
    fn act(&mut self, verb: &'static str) {
        let changes = self.changes(verb);
        let before = self.moment();
        let mut words = vec![verb.to_owned(), self.id.clone(), "--json".into()];
        if self.dice.percent(75) {
            words.push("--force".into());
        }
        let is_part = self.dice.percent(30);
        if is_part {
            words.extend((0..=self.dice.below(2)).map(|_| self.dice.of(&self.focus)));
        }
        let (steps, late) = self.planted(verb, changes.len());
        let what = format!("{} {steps}", words.join(" "));
        let mut act = Act {
            verb,
            what,
            changes,
            owed: self.owed(&before),
            sides: self.sides(),
            before,
            named: Vec::new(),
            is_meddled: false,
            late,
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.recant(&words, &steps);
        if late > 0 && self.world.exists(format!("../late-{late}")) {
            act.is_meddled = true;
            act.owed.insert(late);
        }
        if said.status == KILLED {
            return self.killed(act);
        }
        let now = self.moment();
        assert_kept(&act, &now);
        self.look_again();
        // Where it was undone but for what somebody had changed meanwhile, that is an error, and no report.
        let is_reported = !said.out.is_empty();
        match said.status {
            0 | 4 if is_reported => drop(named_of(&mut act, &said)),
            4 => act.named.push(said.stderr()),
            1 | 3 | 7 => {}
            status => panic!("{}: status {status}", act.what),
        }
        if said.stderr().contains("does not yet record what left it") {
            self.recant(&["recover"], "");
            self.look_again();
        }
        match said.status {
            _ if act.is_meddled => {}
            0 | 4 if is_reported => self.assert_reported(&act, &said, &now, said.status == 0 && !is_part),
            4 => self.assert_settled(&act, &now),
            1 | 3 => self.assert_untouched(&act, &now),
            _ => {}
        }
        if !self.journals().is_empty() {
            assert!([4, 7].contains(&said.status), "{}: a journal is left", act.what);
            self.recovered(&mut act);
        } else if [0, 4].contains(&said.status) {
            self.assert_named(&act, &now);
        }
        self.assert_whole(&act.what);
    }

    /// All that there is. But an upper has copies, too, of what a command moved to and fro: of that the tree's own counts.
    fn owed(&self, moment: &Moment) -> BTreeSet<u32> {
        // Where the tree is a place of its own, its upper has the paths below it alone.
        let is_own = |rest: &str| self.held.iter().any(|own| rest == own || self.world.path(own) == Path::new("/").join(rest));
        let in_upper = |path: &str| Some(path.split_once("/held/upper/")?.1.split_once('/')?.1.to_owned());
        let counts = |path: &String| in_upper(path).is_none_or(|rest| is_own(&rest));
        let is_owed = |token: &u32| moment.in_tree.contains_key(token) || moment.in_store[token].iter().any(counts);
        moment.all().into_iter().filter(is_owed).collect()
    }

    /// A kill, an error, an error the undoing of which is killed, or somebody's late deed: before some step, if there is one.
    fn planted(&mut self, verb: &str, moves: usize) -> (String, u32) {
        let n = self.dice.of(&[30, 90]);
        // Anywhere; or about the seal, which a random number meets seldom.
        let n = if self.dice.percent(60) { 1 + self.dice.below(n) } else { 26 + moves * 4 + self.dice.below(20) };
        let errno = self.dice.of(&[5, 28]);
        let steps = match self.dice.below(16) {
            0..5 => String::new(),
            5..9 => format!("kill:{n}"),
            9 | 10 => format!("fail:{n}:{errno}"),
            11 => format!("fail:{n}:{errno};kill:{}", n + 1 + self.dice.below(12)),
            // Between two file systems what lies in the store are copies.
            _ if self.road.is_apart() => format!("kill:{n}"),
            late => {
                let kill = if late == 12 { format!(";kill:{}", n + 1 + self.dice.below(30)) } else { String::new() };
                return (format!("run:{n}:{}{kill}", self.late(verb)), self.tokens);
            }
        };
        (steps, 0)
    }

    /// A process that has a directory open works on in it, wherever that is moved.
    fn late(&mut self, verb: &str) -> String {
        self.tokens += 1;
        // What was made for the operation lies elsewhere: no process can have that open.
        let moved = if verb == "commit" { "checkpoint" } else { "*" };
        let (directory, token) = (self.store.join("sessions"), self.tokens);
        let put = format!("echo tok-{token}- >%/late-{token} && touch ../late-{token} || true");
        format!("find {} -path '*/{moved}/objects/*' -type d | xargs -I% sh -c '{put}'", directory.display())
    }

    fn killed(&mut self, mut act: Act) {
        assert_kept(&act, &self.moment());
        if self.dice.percent(50) {
            self.meddle(&mut act);
        }
        let result = self.recovered(&mut act);
        if !act.is_meddled {
            let now = self.moment();
            match &*result {
                "undone" | "cleaned" => self.assert_untouched(&act, &now),
                "settled" => self.assert_settled(&act, &now),
                _ => {}
            }
        }
        self.assert_whole(&act.what);
    }

    /// Deeds while an operation is cut off. What they overwrite is somebody's own loss, also where a copy of it was on its way:
    /// that one goes when the operation is undone, as the tree had it. So it is where a directory goes with what was on its way in it. What
    /// lay in the store alone is owed all the same.
    fn meddle(&mut self, act: &mut Act) {
        let before = self.moment();
        let deeds = 1 + self.dice.below(3);
        self.deeds(deeds);
        let after = self.moment();
        let all = after.all();
        let is_gone = |token: &u32| before.in_tree.contains_key(token) && !after.in_tree.contains_key(token);
        act.owed.retain(|token| all.contains(token) && !is_gone(token));
        act.owed.extend(after.seen());
        act.what += ", meddled with";
        act.is_meddled = true;
    }

    /// Recovers until nothing is left to recover, and gives what became of it.
    fn recovered(&mut self, act: &mut Act) -> String {
        let mut result = String::new();
        for round in 0..6 {
            let words = ["recover", "--json"];
            let steps =
                if round < 4 && self.dice.percent(30) { format!("kill:{}", 1 + self.dice.below(40)) } else { String::new() };
            let said = self.recant(&words, &steps);
            act.what += &format!(", {} {steps}", words.join(" "));
            let now = self.moment();
            assert_kept(act, &now);
            if said.status != KILLED {
                assert!([0, 1, 3, 4, 7].contains(&said.status), "{}: status {}", act.what, said.status);
                result = named_of(act, &said);
            }
            if self.journals().is_empty() {
                self.look_again();
                // Killed at its very end it has said nothing, and there is nothing left to say it.
                if said.status != KILLED && !result.is_empty() {
                    self.assert_named(act, &now);
                }
                return result;
            }
            assert!(![0, 4].contains(&said.status), "{}: recovered, and a journal is left", act.what);
            if self.dice.percent(20) {
                self.meddle(act);
            }
        }
        let what = &act.what;
        let said = self.recant(&["recover"], "");
        panic!("{what}: the recovery has no end: {said}");
    }
}

/// How it is asked and looked at.
impl Scene {
    fn moment(&self) -> Moment {
        Moment::of(&self.world.tree(), &self.store)
    }

    fn give(&self, call: Call) -> Call {
        let is_other = !self.road.is_root() && rustix::process::geteuid().is_root();
        if is_other { call.user(USER, USER) } else { call }
    }

    fn shell(&mut self, line: &str) {
        self.log.push(format!("  {line}"));
        // What cannot be done is not done.
        drop(self.give(self.world.program("sh", ["-c", line])).command().output().expect("a shell"));
    }

    fn recant(&mut self, words: &[&str], steps: &str) -> Said {
        self.told(words, steps, "")
    }

    fn told(&mut self, words: &[&str], steps: &str, input: &str) -> Said {
        let program = ["-s", "KILL", "60", common::recant()];
        let call = self.give(self.world.program("timeout", program.iter().chain(words)));
        let call = if steps.is_empty() { call } else { call.env("RECANT_STEPS", steps) };
        let begun = Instant::now();
        let said = call.stdin(input).run();
        let shown = if words[0] == "show" { String::new() } else { said.stdout() };
        self.log.push(format!("$ {steps} recant {} -> {}\n{shown}{}", words.join(" "), said.status, said.stderr()));
        assert!(begun.elapsed() < Duration::from_secs(60), "{words:?} hangs");
        assert!(!said.stderr().contains("panicked"), "{words:?}: {said}");
        said
    }

    fn look_again(&mut self) {
        let id = self.id.clone();
        self.shown = self.recant(&["show", &id, "--json"], "").json();
    }

    /// On which side each path is.
    fn sides(&self) -> BTreeMap<String, String> {
        let side = |row: &Value| row["side"].as_str().expect("a side").to_owned();
        rows(&self.shown["changes"]).iter().map(|row| (self.below(&row["path"]), side(row))).collect()
    }

    /// A path below the tree.
    fn below(&self, path: &Value) -> String {
        let path = Path::new(path.as_str().expect("a path"));
        path.strip_prefix(self.world.tree()).expect("a path in the tree").to_string_lossy().into_owned()
    }

    fn journals(&self) -> Vec<std::fs::DirEntry> {
        std::fs::read_dir(self.store.join("journals")).into_iter().flatten().map(|entry| entry.expect("a name")).collect()
    }

    /// What a verb has to move. A rollback gives back what the checkpoint holds: what was there when it was put in.
    fn changes(&self, verb: &str) -> Vec<Change> {
        let originals = match verb {
            "rollback" => self.originals("checkpoint"),
            // What the rollback before found by force.
            "redo" => self.originals(&format!("displaced/{}", self.shown["session"]["generation"])),
            _ => BTreeMap::new(),
        };
        let moves = rows(&self.shown["changes"]).iter().filter(|row| match verb {
            "rollback" => row["side"] == "in",
            "commit" => row["side"] != "in",
            _ => row["side"] == "out" || row["side"] == "lost",
        });
        let changes = moves.filter_map(|row| {
            let path = self.below(&row["path"]);
            let kept = originals.get(&path).filter(|_| verb == "rollback" || row["side"] == "lost");
            let (kept, side) = (kept, if verb == "rollback" { "before" } else { "after" });
            let want = kept.map_or_else(|| row[side].clone(), |original| printed(&original["state"]));
            let is_nothing = want.is_null() && row[if side == "after" { "before" } else { "after" }].is_null();
            if is_nothing && verb == "rollback" {
                // What was gone already when it was to go: whatever is there now is somebody's, and stays.
                return None;
            }
            let [before, after] = ["before", "after"].map(|side| row[side]["kind"].as_str());
            let is_set = before.is_some() && before == after && (before == Some("directory") || row["change"] != "modified");
            let kept = kept.map_or(&Value::Null, |original| &original["kept"]);
            let in_place = is_nothing || is_set && kept["displaced"].is_null() || *kept == "metadata";
            Some(Change { path, want: (!want.is_null()).then_some(want), in_place, is_whole: !kept["displaced"].is_null() })
        });
        changes.collect()
    }

    fn originals(&self, below: &str) -> BTreeMap<String, Value> {
        let manifest = self.store.join("sessions").join(&self.id).join(below).join("manifest.jsonl");
        let lines = std::fs::read_to_string(manifest).unwrap_or_default();
        let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        let originals = rows.filter_map(|mut row| row.get_mut("original").map(Value::take));
        originals.map(|original| (self.below(&original["path"]), original)).collect()
    }
}

/// A state of the store in the words that programs read.
fn printed(state: &Value) -> Value {
    let mut state = state.clone();
    if let Some(hash) = state.as_object_mut().and_then(|state| state.remove("digest")) {
        state["hash"] = hash;
    }
    if state["kind"] == "folder" {
        state["kind"] = "directory".into();
    }
    state
}
