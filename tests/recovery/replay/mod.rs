//! Power cuts, replayed without root (docs/ARCHITECTURE.md, What is synced when): a verb is stopped at each of its syncs, what no sync had
//! made durable is taken away again, cut short or kept, in many ways; then the next recant finds its way, and the tree is as before or as
//! after, whole. And each sync is needed: where one is left out of the model, something is lost, or its line in the source says why
//! nothing is.
//!
//! `RECANT_STATES` is how many states are tried at each sync; `make torture` asks for more.

mod imported;
mod left;
mod model;
mod rebuild;
mod record;
mod recovered;
mod run;
mod snapshots;
mod steps;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::sweep::is_due;
use crate::common::{self, Dice, Manifest, World};
use model::{Cut, Loss};
use record::{Key, Record};

/// How large the session is: from 16 objects on one syncfs stands for many fsyncs.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    Few,
    Many,
    /// In more directories than are synced one by one.
    Wide,
}

/// A world with a pending session, and a copy of its tree and store to begin again from.
struct Scene {
    world: World,
    id: String,
    store: PathBuf,
    template: PathBuf,
    pools: Vec<PathBuf>,
    /// The session's generation in the template.
    generation: Cell<Option<u64>>,
    _elsewhere: Option<tempfile::TempDir>,
}

impl Scene {
    /// Nothing where there are no `two` file systems.
    fn new(size: Size, two: bool) -> Option<Self> {
        let mut world = World::new();
        let elsewhere = if two { Some(common::elsewhere()?) } else { None };
        if let Some(elsewhere) = &elsewhere {
            world.set("RECANT_STORE", elsewhere.path().join("store"));
        }
        let store = elsewhere.as_ref().map_or_else(|| world.store(), |elsewhere| elsewhere.path().join("store"));
        let mut pools = vec![world.root().join("record")];
        pools.extend(elsewhere.as_ref().map(|elsewhere| elsewhere.path().join("record")));
        let id = fill(&world, size, !two);
        let template = world.root().join("template");
        let scene = Self { world, id, store, template, pools, generation: Cell::default(), _elsewhere: elsewhere };
        scene.keep();
        Some(scene)
    }

    /// Takes tree and store as they are now for the beginning.
    fn keep(&self) {
        if self.template.exists() {
            clear(&self.template);
        }
        std::fs::create_dir(&self.template).expect("a directory");
        // An ordinary user cannot read the directories that the kernel keeps closed beside a run's upper.
        let closed = ["-path", "*/held/work", "-prune", "-exec", "chmod", "-R", "u+rwX", "{}", "+"];
        assert!(Command::new("find").arg(&self.store).args(closed).status().expect("find runs").success());
        copy(&[self.world.tree(), self.store.clone()], &self.template);
        self.generation.set(self.now_at());
    }

    /// Tree and store as they were kept, and an empty record.
    fn reset(&self) {
        let tops = [self.world.tree(), self.store.clone()];
        tops.iter().for_each(|top| clear(top));
        let [tree, store] = tops.each_ref().map(|top| self.template.join(top.file_name().expect("a name")));
        if self.pools.len() == 1 {
            copy(&[tree, store], self.world.root());
        } else {
            copy(&[tree], self.world.root());
            copy(&[store], self.store.parent().expect("a directory"));
        }
        self.empty_pools();
    }

    /// What is recorded next follows on what was.
    fn forget_steps(&self) {
        std::fs::remove_file(self.pools[0].join("steps.jsonl")).expect("a record");
    }

    fn empty_pools(&self) {
        for pool in &self.pools {
            drop(std::fs::remove_dir_all(pool));
            std::fs::create_dir_all(pool.join("kept")).expect("a pool");
        }
    }

    /// Runs these words up to step `kill`, or to their end, from what is there, and gives the record of it.
    fn record(&self, words: &[&str], kill: Option<usize>) -> Record {
        self.record_with(words, &[], kill)
    }

    fn record_with(&self, words: &[&str], stdin: &[u8], kill: Option<usize>) -> Record {
        let pools: Vec<_> = self.pools.iter().map(|pool| pool.display().to_string()).collect();
        let orders = kill.map_or_else(String::new, |n| format!(";kill:{n}"));
        let call = self.world.call(words).env("RECANT_STEPS", format!("record:{}{orders}", pools.join(",")));
        let said = call.stdin(stdin).run();
        // A recovery may leave what somebody has changed.
        let ends = |status: i32| status == 0 || words[0] == "recover" && status == 4;
        assert!(if kill.is_some() { said.status == 137 } else { ends(said.status) }, "{said}");
        Record::read(&self.pools[0])
    }

    /// The session's generation: which of two states the store is in. None where it cannot be told.
    fn now_at(&self) -> Option<u64> {
        let text = std::fs::read(self.store.join("sessions").join(&self.id).join("session.json")).ok()?;
        let header: serde_json::Value = serde_json::from_slice(&text).ok()?;
        header["generation"].as_u64()
    }

    /// Runs recant as the world does, without a shell in between.
    fn recant(&self, words: &[&str]) -> std::process::Output {
        let mut command = Command::new(common::recant());
        command.args(words).env_clear().env("HOME", self.world.root()).env("RECANT_STORE", &self.store);
        command.current_dir(self.world.tree()).output().expect("recant starts")
    }

    /// Nothing of recant's own is left on the tree, nor a journal.
    fn tidy(&self) -> Result<(), String> {
        let (left, journals) = (self.world.leftovers(), self.world.journals());
        if left.is_empty() && journals.is_empty() { Ok(()) } else { Err(format!("left: {left:?} {journals:?}")) }
    }

    /// The regular files of the tree that the session moves, with their sizes.
    fn files(&self) -> BTreeMap<Key, u64> {
        let mut found = BTreeMap::new();
        for path in self.world.manifest().0.keys() {
            let meta = self.world.path(common::name(path)).symlink_metadata().expect("an object");
            if meta.is_file() && path != b"moded" {
                found.insert((meta.dev(), meta.ino()), meta.len());
            }
        }
        found
    }
}

/// Removes a directory with all that is in it: an ordinary user opens what he has closed to himself.
fn clear(top: &Path) {
    let opened = Command::new("chmod").args(["-R", "u+rwX"]).arg(top).status().expect("chmod runs");
    assert!(opened.success(), "{} can be opened", top.display());
    std::fs::remove_dir_all(top).expect("what the last run left goes");
}

fn copy(from: &[PathBuf], to: &Path) {
    let status = Command::new("cp").arg("-a").args(from).arg(to).status().expect("cp");
    assert!(status.success(), "cp -a {from:?} {}", to.display());
}

fn fill(world: &World, size: Size, one_file_system: bool) -> String {
    world.write("edited", "old").write("gone", "away").write("moded", "x").write("full/a", "1").chmod("edited", 0o600);
    if size == Size::Many {
        world.write("empty", "").write("full/sub/b", "2").symlink("old", "link").fifo("fifo").write("one", "linked");
        world.write("kind/file", "f").mkdir("kind/directory").write("kind/full/x", "x").chmod("full/sub", 0o500);
        (0..12).for_each(|i| {
            world.write(format!("many/{i}"), format!("old {i}"));
        });
        if one_file_system {
            world.link("one", "two");
        }
        world.set_xattr("edited", "user.kept", "1");
    }
    let wide: Vec<_> = (0..16).filter(|_| size == Size::Wide).map(|i| format!("wide/{i}/f")).collect();
    for name in &wide {
        world.write(name, "old");
    }
    for (i, path) in world.manifest().0.keys().rev().enumerate() {
        world.set_mtime(common::name(path), 1_000_000_000 + i as i64, 7);
    }
    let id = world.begin();
    let long = format!("write edited {}", "new and longer than one block".repeat(200));
    let mut lines: Vec<String> = [&*long, "write new/deep n"].map(String::from).into();
    lines.extend(wide.iter().map(|name| format!("write {name} new {name}")));
    let mut words = vec!["delete gone", "chmod 0640 moded", "delete full"];
    if size == Size::Many {
        lines.extend((0..12).map(|i| format!("write many/{i} new {i}")));
        words.extend(["write empty filled", "write one apart", "write fifo was a fifo", "write kind/x/y y", "delete link"]);
        words.extend(["mkdir kind/file", "symlink to kind/directory", "symlink to kind/full"]);
    }
    world.stage(&id, lines.iter().map(String::as_str).chain(words));
    id
}

/// Something on a scene that is ready for it, which is cut at its steps.
trait Cutting {
    /// What is cut, for messages.
    fn name(&self) -> String;
    /// The scene, and the whole run: where its syncs are.
    fn on(&self) -> (&Scene, &Record);
    /// How many of those steps were made before it began.
    fn made(&self) -> usize {
        0
    }
    /// Carries it out up to step `until`, or to its end, from its beginning.
    fn run(&self, until: Option<usize>) -> Record;
    /// Whether the next recant finds its way. Of two ways to look the seed says which.
    fn judge(&self, at_end: bool, seed: u64) -> Result<(), String>;

    /// The steps before which the most is at stake: each sync, and the end. A state that is possible before any other step is possible
    /// before the next sync too.
    fn cuts(&self) -> Vec<usize> {
        let steps = &self.on().1.steps;
        let syncs = steps.iter().filter(|step| step.sync.is_some() && step.n > self.made()).map(|step| step.n);
        syncs.chain([steps.len() + 1]).collect()
    }

    /// Cuts the power before step `n`, in one of the ways that `loss` allows, `without` one site's syncs. Gives what goes wrong then.
    fn cut(&self, n: usize, without: Option<&str>, loss: Loss, seed: u64) -> Result<(), String> {
        let (scene, whole) = self.on();
        let (all, at_end) = (whole.steps.len(), n > whole.steps.len());
        let record = self.run((!at_end).then_some(n));
        // A run waits for more or less from time to time: this one may have come to its end before.
        let (n, at_end) = if record.steps.len() + 1 < n { (record.steps.len() + 1, true) } else { (n, at_end) };
        let state = Cut::new(&record, n, without).state(loss, &mut Dice(seed));
        rebuild::rebuild(&state, &[scene.world.tree(), scene.store.clone()], &scene.pools);
        let what = || format!("{} cut before step {n} of {all}, {loss:?}; lost:\n  {}\n", self.name(), state.lost);
        self.judge(at_end, seed).map_err(|why| format!("{}{why}", what()))
    }

    /// Cuts it at each of its syncs that is due in a few ways, and at its end in all.
    fn sweep(&self, few: usize) {
        let (states, cuts) = (states(few), self.cuts());
        let at_syncs = cuts.iter().enumerate().filter(|(i, _)| is_due(*i)).flat_map(|(i, n)| {
            // From cut to cut the ways change too, so that a few at each are all of them in some places.
            (0..states).map(move |k| (*n, LOSSES[(k + i * states) % LOSSES.len()], n * 1000 + k + i))
        });
        let at_end = LOSSES.into_iter().enumerate().filter(|(k, _)| is_due(*k)).map(|(k, loss)| (cuts[cuts.len() - 1], loss, k));
        let mut tried = 0;
        for (n, loss, seed) in at_syncs.chain(at_end) {
            self.cut(n, None, loss, seed as u64).unwrap_or_else(|why| panic!("{why}"));
            tried += 1;
        }
        println!("{}: {tried} states, {} syncs", self.name(), cuts.len() - 1);
    }

    /// What goes wrong without one site's syncs, if anything does.
    fn leave_out(&self, site: &str) -> Option<String> {
        let stake = |n, without| Cut::new(self.on().1, n, without).at_stake();
        // Elsewhere nothing depends on it. The last first: what was left out longest shows most.
        let cuts: Vec<usize> = self.cuts().into_iter().rev().filter(|n| stake(*n, Some(site)) > stake(*n, None)).collect();
        let losses = [Loss::Unsynced, Loss::Unsynced, Loss::All, Loss::Content, Loss::OneName];
        let mut all = losses.into_iter().enumerate().flat_map(|(k, loss)| cuts.iter().map(move |n| (*n, loss, n + k)));
        all.find_map(|(n, loss, seed)| self.cut(n, Some(site), loss, seed as u64).err())
    }

    /// Leaves each of its syncs out whose line lies in `below`, and notes what goes wrong then.
    fn leave_each_out(&self, caught: &mut Caught, below: &str) {
        let syncs = self.on().1.steps[self.made()..].iter().filter(|step| step.sync.is_some() && step.site.starts_with(below));
        // That nothing is caught is tried where all syncs are looked at, by `make torture`.
        let are_all = below.is_empty() && std::env::var_os("RECANT_STATES").is_some();
        for site in syncs.map(|step| &step.site).collect::<BTreeSet<_>>() {
            let found = caught.0.entry(site.clone()).or_default();
            if found.is_none() && (are_all || !excused(site)) {
                *found = self.leave_out(site);
            }
        }
    }
}

/// One verb on a scene that is ready for it.
struct Verb<'s> {
    scene: &'s Scene,
    verb: &'static str,
    before: Manifest,
    after: Manifest,
    whole: Record,
}

/// Each verb in turn, each on what the one before has left.
fn each_verb(scene: &Scene, mut each: impl FnMut(&Verb<'_>)) {
    for verb in ["commit", "rollback", "redo"] {
        let verb = Verb::new(scene, verb);
        each(&verb);
        verb.run(None);
    }
}

impl<'s> Verb<'s> {
    fn new(scene: &'s Scene, verb: &'static str) -> Self {
        scene.keep();
        let before = timeless(scene.world.manifest());
        let mut verb = Self { scene, verb, before, after: Manifest::default(), whole: Record::default() };
        verb.whole = verb.run(None);
        verb.after = timeless(scene.world.manifest());
        verb
    }
}

impl Cutting for Verb<'_> {
    fn name(&self) -> String {
        self.verb.into()
    }

    fn on(&self) -> (&Scene, &Record) {
        (self.scene, &self.whole)
    }

    fn run(&self, until: Option<usize>) -> Record {
        self.scene.reset();
        // At a commit nobody knows whether the user's files were synced.
        let dirty = if self.verb == "commit" { self.scene.files() } else { BTreeMap::new() };
        Record { dirty, ..self.scene.record(&[self.verb, &self.scene.id], until) }
    }

    /// It recovers, and the tree is as before or as after; or the same verb and then the way back are done at once, and lead to both, so
    /// that no byte of either is lost.
    fn judge(&self, at_end: bool, seed: u64) -> Result<(), String> {
        let scene = self.scene;
        let compare = |wanted: &Manifest, what: &str, said: &Output| {
            let difference = wanted.difference(&timeless(scene.world.manifest()));
            let text = [&said.stdout[..], &said.stderr].map(String::from_utf8_lossy).concat();
            let fine = said.status.success() && difference.is_empty();
            fine.then_some(()).ok_or_else(|| format!("{what}: {}\n{text}{difference}", said.status))
        };
        if recovers(seed) {
            let said = scene.recant(&["recover"]);
            let done = scene.now_at() != scene.generation.get();
            let wanted = if done { &self.after } else { &self.before };
            compare(wanted, if done { "recover, which settled" } else { "recover, which undid" }, &said)?;
            if at_end && !done {
                return Err("what was done is undone".into());
            }
        } else {
            compare(&self.after, "the same again", &scene.recant(&[self.verb, &scene.id]))?;
            let back = if self.verb == "rollback" { "redo" } else { "rollback" };
            compare(&self.before, back, &scene.recant(&[back, &scene.id]))?;
        }
        scene.tidy()
    }
}

/// Whether `recover` is what is done after the cut, or the same verb again.
fn recovers(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// A manifest without the times of directories that the verb itself has changed: each run has its own.
fn timeless(mut manifest: Manifest) -> Manifest {
    let late = |row: &&mut common::Row| row.content == "directory" && row.mtime.0 > 1_500_000_000;
    manifest.0.values_mut().filter(late).for_each(|row| row.mtime = (0, 0));
    manifest
}

const LOSSES: [Loss; 8] =
    [Loss::All, Loss::OneName, Loss::Content, Loss::Some(5), Loss::AllButOneName, Loss::Names, Loss::Some(2), Loss::Some(8)];

/// How many states are tried at each sync; a few are asked for where each is slow.
fn states(few: usize) -> usize {
    std::env::var("RECANT_STATES").map_or(few, |text| text.parse().expect("RECANT_STATES is a number"))
}

/// What goes wrong without the syncs of each site; none where nothing does.
#[derive(Default)]
struct Caught(BTreeMap<String, Option<String>>);

impl Caught {
    /// Something goes wrong without each of them, or its line says why nothing does, and not both.
    fn assert_needed(&self) {
        assert!(!self.0.is_empty(), "no sync was seen");
        for (site, how) in &self.0 {
            println!("{site}: {}", how.as_deref().and_then(|how| how.lines().next()).unwrap_or("not caught here"));
        }
        let wrong: Vec<_> = self.0.iter().filter(|(site, how)| how.is_some() == excused(site)).collect();
        assert!(wrong.is_empty(), "each needs a test, or a comment \"KIND: not caught here\", and not both: {wrong:?}");
    }
}

/// Whether a comment right above the line says of this kind of sync that no test catches its loss.
fn excused(site: &str) -> bool {
    let (place, kind) = site.split_once(' ').expect("a line of source, and what is synced");
    let (file, line) = place.split_once(':').expect("a line of source");
    let line: usize = line.parse().expect("a line's number");
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("the source");
    let words = format!("{kind}: not caught here");
    text.lines().take(line).skip(line.saturating_sub(5)).any(|line| line.contains(&words))
}

/// Commit, rollback and redo of sessions of these sizes, with so few states each.
fn sweep(sizes: &[(Size, usize)], two: bool) {
    for (size, few) in sizes {
        let Some(scene) = Scene::new(*size, two) else { return };
        each_verb(&scene, |verb| verb.sweep(*few));
    }
}

#[test]
fn after_a_power_cut_a_small_session_is_whole() {
    sweep(&[(Size::Few, 2)], false);
}

#[test]
fn after_a_power_cut_a_larger_session_is_whole() {
    sweep(&[(Size::Many, 2), (Size::Wide, 1)], false);
}

#[test]
fn after_a_power_cut_sessions_between_two_file_systems_are_whole() {
    sweep(&[(Size::Few, 1), (Size::Many, 1), (Size::Wide, 1)], true);
}

#[test]
#[ignore = "long: it proves comments on syncs, not the product"]
fn each_sync_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = Caught::default();
    for (size, two) in [(Size::Few, false), (Size::Many, false), (Size::Wide, false), (Size::Few, true)] {
        let Some(scene) = Scene::new(size, two) else { continue };
        each_verb(&scene, |verb| verb.leave_each_out(&mut caught, ""));
    }
    caught.assert_needed();
}
