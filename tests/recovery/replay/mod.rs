//! Power cuts, replayed without root (docs/ARCHITECTURE.md, What is synced when): a commit, a rollback and a redo are stopped
//! at each of their syncs, what no sync had made durable is taken away again, cut short or kept, in many ways; then the next
//! recant recovers, and the tree is as before or as after, whole. And each sync is needed: where one is left out of the
//! model, something is lost, or its line in the source says why nothing is.
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
    fn new(size: Size, store_on: Option<&Path>) -> Self {
        // Between two, the store syncs more than the tree.
        let tree_on = if store_on.is_some() { None } else { fast() };
        let mut world = tree_on.map_or_else(World::new, World::on);
        let elsewhere = store_on.map(|directory| tempfile::tempdir_in(directory).expect("a directory of another file system"));
        if let Some(elsewhere) = &elsewhere {
            world.set("RECANT_STORE", elsewhere.path().join("store"));
        }
        let store = elsewhere.as_ref().map_or_else(|| world.store(), |elsewhere| elsewhere.path().join("store"));
        let mut pools = vec![world.root().join("record")];
        pools.extend(elsewhere.as_ref().map(|elsewhere| elsewhere.path().join("record")));
        let id = fill(&world, size, store_on.is_none());
        let template = world.root().join("template");
        let scene = Self { world, id, store, template, pools, generation: Cell::default(), _elsewhere: elsewhere };
        scene.keep();
        scene
    }

    /// Takes tree and store as they are now for the beginning.
    fn keep(&self) {
        if self.template.exists() {
            clear(&self.template);
        }
        std::fs::create_dir(&self.template).expect("a directory");
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

    /// Runs `verb` up to its step `kill`, or to its end, from what is there, and gives the record of it.
    fn run(&self, verb: &str, kill: Option<usize>) -> Record {
        self.record(&[verb, &self.id], kill)
    }

    fn recover(&self, kill: Option<usize>) -> Record {
        self.record(&["recover"], kill)
    }

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

/// A file system without a disk behind it: what a sync means is the model's to say.
fn fast() -> Option<&'static Path> {
    Some(Path::new("/dev/shm")).filter(|directory| directory.is_dir())
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
    world.stage_write(&id, "edited", "new and longer than one block".repeat(200)).stage_write(&id, "new/deep", "n");
    for name in &wide {
        world.stage_write(&id, name, format!("new {name}"));
    }
    let mut words = vec!["delete ID gone", "chmod ID 0640 moded", "delete ID full -r"];
    if size == Size::Many {
        for (name, content) in [("empty", "filled"), ("one", "apart"), ("fifo", "was a fifo"), ("kind/x/y", "y")] {
            world.stage_write(&id, name, content);
        }
        (0..12).for_each(|i| {
            world.stage_write(&id, format!("many/{i}"), format!("new {i}"));
        });
        words.extend(["delete ID link", "delete ID kind/file", "mkdir ID kind/file", "symlink ID to kind/directory -r"]);
        words.push("symlink ID to kind/full -r");
    }
    for words in words {
        world.recant(&format!("session {}", words.replace("ID", &id))).ok();
    }
    id
}

/// One verb on a scene that is ready for it.
struct Verb<'s> {
    scene: &'s Scene,
    verb: &'static str,
    before: Manifest,
    after: Manifest,
    /// Its whole run: where its syncs are.
    whole: Record,
    /// What was not synced when that began.
    whole_dirty: BTreeMap<Key, u64>,
}

/// Each verb in turn, each on what the one before has left.
fn each_verb(scene: &Scene, mut each: impl FnMut(&Verb<'_>)) {
    for verb in ["commit", "rollback", "redo"] {
        let verb = Verb::new(scene, verb);
        each(&verb);
        scene.reset();
        scene.run(verb.verb, None);
    }
}

impl<'s> Verb<'s> {
    fn new(scene: &'s Scene, verb: &'static str) -> Self {
        scene.keep();
        scene.reset();
        let before = timeless(scene.world.manifest());
        let whole_dirty = dirty(verb, scene);
        let whole = scene.run(verb, None);
        Self { scene, verb, before, after: timeless(scene.world.manifest()), whole, whole_dirty }
    }

    /// The steps before which the most is at stake: each sync, and the end.
    fn cuts(&self) -> Vec<usize> {
        cuts(&self.whole)
    }

    /// Cuts the power before step `n`, in one of the ways that `loss` allows, `without` one site's syncs. Gives what goes
    /// wrong then.
    fn cut(&self, n: usize, without: Option<&str>, loss: Loss, seed: u64) -> Result<(), String> {
        let (scene, all) = (self.scene, self.whole.steps.len());
        let at_end = n > all;
        scene.reset();
        let dirty = dirty(self.verb, scene);
        let record = scene.run(self.verb, (!at_end).then_some(n));
        let state = Cut::new(&record, n, without, &dirty).state(loss, &mut Dice(seed));
        rebuild::rebuild(&state, &[scene.world.tree(), scene.store.clone()], &scene.pools);
        let what = || format!("{} cut before step {n} of {all}, {loss:?}; lost:\n  {}\n", self.verb, state.lost);
        self.judge(at_end, [Next::Recover, Next::GoOn][usize::from(seed % 2 == 1)]).map_err(|why| format!("{}{why}", what()))
    }

    /// Whether the next recant finds its way: it recovers, and the tree is as before or as after; or the same verb and then
    /// the way back are done at once, and lead to both, so that no byte of either is lost.
    fn judge(&self, at_end: bool, how: Next) -> Result<(), String> {
        let scene = self.scene;
        let compare = |wanted: &Manifest, what: &str, said: &Output| {
            let difference = wanted.difference(&timeless(scene.world.manifest()));
            let text = [&said.stdout[..], &said.stderr].map(String::from_utf8_lossy).concat();
            let fine = said.status.success() && difference.is_empty();
            fine.then_some(()).ok_or_else(|| format!("{what}: {}\n{text}{difference}", said.status))
        };
        match how {
            Next::Recover => {
                let said = scene.recant(&["recover"]);
                let done = scene.now_at() != scene.generation.get();
                let wanted = if done { &self.after } else { &self.before };
                compare(wanted, if done { "recover, which settled" } else { "recover, which undid" }, &said)?;
                if at_end && !done {
                    return Err("what was done is undone".into());
                }
            }
            Next::GoOn => {
                compare(&self.after, "the same again", &scene.recant(&[self.verb, &scene.id]))?;
                let back = if self.verb == "rollback" { "redo" } else { "rollback" };
                compare(&self.before, back, &scene.recant(&[back, &scene.id]))?;
            }
        }
        let (left, journals) = (scene.world.leftovers(), scene.world.journals());
        if !left.is_empty() || !journals.is_empty() {
            return Err(format!("left: {left:?} {journals:?}"));
        }
        Ok(())
    }
}

/// At a commit nobody knows whether the user's files were synced.
fn dirty(verb: &str, scene: &Scene) -> BTreeMap<Key, u64> {
    if verb == "commit" { scene.files() } else { BTreeMap::new() }
}

/// What is done after the cut.
#[derive(Clone, Copy)]
enum Next {
    Recover,
    GoOn,
}

/// The steps of a run before which the most is at stake: a state that is possible before any other step is possible
/// before the next sync too.
fn cuts(whole: &Record) -> Vec<usize> {
    let syncs = whole.steps.iter().filter(|step| step.sync.is_some()).map(|step| step.n);
    syncs.chain([whole.steps.len() + 1]).collect()
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

fn thorough() -> bool {
    std::env::var_os("RECANT_STATES").is_some()
}

fn sweep(scene: &Scene, few: usize, what: &str) {
    let states = states(few);
    let begun = std::time::Instant::now();
    each_verb(scene, |verb| {
        let cuts = verb.cuts();
        for (i, n) in cuts.iter().enumerate() {
            for k in 0..states {
                // From cut to cut the ways change too, so that a few at each are all of them in some places.
                let loss = LOSSES[(k + i * states) % LOSSES.len()];
                if let Err(why) = verb.cut(*n, None, loss, (*n * 1000 + k + i) as u64) {
                    panic!("{what}: {why}");
                }
            }
        }
        println!("{what}: {}: {} states at {} syncs", verb.verb, cuts.len() * states, cuts.len());
    });
    println!("{what}: {:.1} s", begun.elapsed().as_secs_f32());
}

/// The fast file system, where temporary directories lie on another one.
fn elsewhere() -> Option<PathBuf> {
    let dev = |path: &Path| path.metadata().ok().map(|meta| meta.dev());
    let two = fast().is_some_and(|fast| dev(fast) != dev(&std::env::temp_dir()));
    if !two {
        common::skip("two file systems: /dev/shm is none of its own");
    }
    fast().filter(|_| two).map(Path::to_path_buf)
}

#[test]
fn after_a_power_cut_a_small_session_is_whole() {
    sweep(&Scene::new(Size::Few, None), 2, "a few changes");
}

#[test]
fn after_a_power_cut_a_larger_session_is_whole() {
    sweep(&Scene::new(Size::Many, None), 2, "many changes");
    sweep(&Scene::new(Size::Wide, None), 1, "changes in many directories");
}

#[test]
fn after_a_power_cut_sessions_between_two_file_systems_are_whole() {
    let Some(other) = elsewhere() else { return };
    sweep(&Scene::new(Size::Few, Some(&other)), 1, "a few changes, two file systems");
    sweep(&Scene::new(Size::Many, Some(&other)), 1, "many changes, two file systems");
    sweep(&Scene::new(Size::Wide, Some(&other)), 1, "changes in many directories, two file systems");
}

#[test]
fn each_sync_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut tried = 0;
    let mut scenes = vec![(Size::Few, None), (Size::Many, None), (Size::Wide, None)];
    scenes.extend(elsewhere().map(|other| (Size::Few, Some(other))));
    for (size, store_on) in scenes {
        each_verb(&Scene::new(size, store_on.as_deref()), |verb| {
            let syncs = verb.whole.steps.iter().filter(|step| step.sync.is_some());
            for site in syncs.map(|step| &step.site).collect::<BTreeSet<_>>() {
                let found = caught.entry(site.clone()).or_default();
                if found.is_none() && (thorough() || !excused(site)) {
                    *found = leave_out(verb, site, &mut tried);
                }
            }
        });
    }
    println!("{tried} states without one of {} syncs", caught.len());
    let mut wrong = Vec::new();
    for (site, how) in &caught {
        let how = how.as_deref().map(|how| how.lines().next().unwrap_or_default());
        println!("{site}: {}", how.unwrap_or("not caught here"));
        match (how, excused(site)) {
            (None, false) => wrong.push(format!(
                "{site}: nothing is lost without it: it needs a test, or a comment: \"{}: not caught here\"",
                kind(site)
            )),
            (Some(_), true) => wrong.push(format!("{site}: it is caught, and says that it is not")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Leaves each of a run's syncs out whose line lies in `below`, and notes what goes wrong then.
fn leave_each_out(
    caught: &mut BTreeMap<String, Option<String>>,
    whole: &Record,
    below: &str,
    leave_out: impl Fn(&str) -> Option<String>,
) {
    let sites = whole.steps.iter().filter(|step| step.sync.is_some() && step.site.starts_with(below)).map(|step| &step.site);
    for site in sites.collect::<BTreeSet<_>>() {
        let found = caught.entry(site.clone()).or_default();
        if found.is_none() && !excused(site) {
            *found = leave_out(site);
        }
    }
}

/// Something goes wrong without each of them, or its line says why nothing does.
fn assert_needed(caught: &BTreeMap<String, Option<String>>) {
    assert!(!caught.is_empty(), "no sync was seen");
    for (site, how) in caught {
        println!("{site}: {}", how.as_deref().and_then(|how| how.lines().next()).unwrap_or("not caught here"));
    }
    let wrong: Vec<_> = caught.iter().filter(|(site, how)| how.is_none() && !excused(site)).map(|(site, _)| site).collect();
    assert!(wrong.is_empty(), "nothing is lost without {wrong:?}: each needs a test, or a comment");
}

fn kind(site: &str) -> &str {
    site.split_once(' ').map_or("", |(_, kind)| kind)
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

/// What goes wrong without one site's syncs, if anything does.
fn leave_out(verb: &Verb<'_>, site: &str, tried: &mut usize) -> Option<String> {
    let stake = |n, without| Cut::new(&verb.whole, n, without, &verb.whole_dirty).at_stake();
    // Elsewhere nothing depends on it. The last first: what was left out longest shows most.
    let cuts: Vec<usize> = verb.cuts().into_iter().rev().filter(|n| stake(*n, Some(site)) > stake(*n, None)).collect();
    let losses = [Loss::Unsynced, Loss::All, Loss::Content, Loss::OneName];
    for (k, loss) in losses.into_iter().take(if thorough() { 4 } else { 2 }).enumerate() {
        for n in &cuts {
            *tried += 1;
            if let Err(why) = verb.cut(*n, Some(site), loss, (*n * 1000 + k + *tried) as u64) {
                return Some(why);
            }
        }
    }
    None
}
