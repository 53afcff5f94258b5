//! The end of a `run` under power cuts, and the start of one that goes on in a session: cut at each of their syncs. What the command writes
//! passes no hook of recant's; it is added to the record as steps of its own that nothing has synced. Afterwards a session is not there, or
//! it says that the machine went down before it was on the disk, or it holds exactly what the command wrote.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::common::{self, Manifest, World};
use super::record::{Key, Object, Record, Renamed, Step};
use super::{Caught, Cutting, Scene, timeless};
use crate::common::sweep::is_due;

pub(super) const FIRST: &str =
    "echo more >> edited; mkdir -p new/deep; seq 3000 > new/deep/file; rm gone; ln -s to new/link; chmod 640 moded";
pub(super) const SECOND: &str = "seq 100 >> new/deep/file; echo other > other; mv -f other full/a";
/// Each time that it is done the same.
pub(super) const TIMES: &str = "find . -newermt 2020-01-01 -exec touch -h -d 2005-05-05 {} +";

/// A run on a scene that is ready for it.
struct Held<'s> {
    scene: &'s Scene,
    words: Vec<String>,
    /// The tree, once the session is committed: as the run found it, as it left it.
    before: Manifest,
    after: Manifest,
    whole: Record,
    /// The step before which the command was at work.
    at: usize,
}

/// A world with a store that its first run made.
pub(super) fn scene() -> Option<Scene> {
    if !common::can_run() {
        common::skip("the end of a run under power cuts: no run works here");
        return None;
    }
    let world = World::new();
    world.write("edited", "old").write("gone", "away").write("moded", "x").write("full/a", "1");
    for path in world.manifest().0.keys().rev() {
        world.set_mtime(common::name(path), 1_000_000_000, 7);
    }
    world.recant("run -- true").ok();
    let (store, template, pools) = (world.store(), world.root().join("template"), vec![world.root().join("record")]);
    let mut scene = Scene { world, id: String::new(), store, template, pools, generation: Default::default(), _elsewhere: None };
    scene.keep();
    scene.id = String::new();
    Some(scene)
}

impl<'s> Held<'s> {
    /// A first run, or where the scene has a session, one that goes on in it.
    fn new(scene: &'s Scene) -> Self {
        let manifest = || timeless(scene.world.manifest());
        let script = if scene.id.is_empty() { FIRST } else { SECOND };
        // How far the record is when the command begins: two lines a step, but one of the last.
        let script = format!("wc -l < ../record/steps.jsonl; {script}; {TIMES}");
        let session = (!scene.id.is_empty()).then(|| ["--session".to_owned(), scene.id.clone()]);
        let words = ["run".to_owned()].into_iter().chain(session.into_iter().flatten());
        let words = words.chain(["--", "sh", "-ec", &script].map(str::to_owned)).collect();
        let mut held =
            Self { scene, words, before: Manifest::default(), after: Manifest::default(), whole: Record::default(), at: 0 };
        scene.reset();
        if !scene.id.is_empty() {
            held.commit(&scene.id).ok();
        }
        held.before = manifest();
        (held.whole, held.at) = held.killed_before(None);
        held.commit("last").ok();
        held.after = manifest();
        held
    }

    /// The record of the run up to its step `kill`, or to its end, with what the command did; and the first step after that.
    fn killed_before(&self, kill: Option<usize>) -> (Record, usize) {
        let scene = self.scene;
        scene.reset();
        let there = uppers(&scene.store);
        let orders = kill.map_or_else(String::new, |n| format!(";kill:{n}"));
        let call = scene.world.call(&self.words).env("RECANT_STEPS", format!("record:{}{orders}", scene.pools[0].display()));
        let said = call.run();
        assert_eq!(said.status, if kill.is_some() { 137 } else { 0 }, "{said}");
        let mut record = Record::read(&scene.pools[0]);
        let Ok(lines) = said.stdout().trim().parse::<usize>() else { return (record, usize::MAX) };
        let at = lines / 2 + 1;
        let steps = written(&there, &uppers(&scene.store));
        let added = steps.len();
        for step in &steps {
            for renamed in &step.names {
                record.first.entry(renamed.slot.clone()).or_insert(None);
            }
        }
        record.steps.splice(at..at, steps);
        record.steps.iter_mut().zip(1..).for_each(|(step, n)| step.n = n);
        (record, at + added + 1)
    }

    /// It is another boot now, for the last command that ended and for one that goes on.
    fn boot(&self) {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("this boot");
        for id in self.sessions() {
            let session = self.scene.store.join("sessions").join(id);
            for name in std::fs::read_dir(&session).expect("a session").map(|entry| entry.expect("a name").file_name()) {
                let path = session.join(&name);
                let name = name.to_string_lossy();
                let is_record = name == "run.json" || name.starts_with("step.") && name.ends_with(".json");
                let Some(text) = is_record.then(|| std::fs::read_to_string(&path).ok()).flatten() else { continue };
                std::fs::write(&path, text.replace(boot.trim(), "another")).expect("another boot");
            }
        }
    }

    /// The tree of a scene with a session is a copy, which is a conflict by itself.
    fn commit(&self, id: &str) -> common::Said {
        let force = (!self.scene.id.is_empty()).then_some("--force");
        self.scene.world.call(["commit", id].into_iter().chain(force)).run()
    }

    fn sessions(&self) -> Vec<String> {
        let found = std::fs::read_dir(self.scene.store.join("sessions")).expect("the sessions");
        found
            .map(|entry| entry.expect("a name").file_name().into_string().expect("an id"))
            .filter(|id| !id.starts_with('.'))
            .collect()
    }

    fn look(&self, at_end: bool) -> Result<(), String> {
        let world = &self.scene.world;
        let list = world.recant("list --json");
        if list.status != 0 {
            return Err(format!("list: {list}"));
        }
        let Some(row) = list.rows().into_iter().next() else {
            let is_due = at_end || !self.scene.id.is_empty();
            return if is_due { Err("the session is not there".into()) } else { Ok(()) };
        };
        let id = row["id"].as_str().expect("an id").to_owned();
        let read = world.call(["diff", &id]).run();
        if read.status != 0 {
            return Err(format!("diff: {read}"));
        }
        let shown = world.call(["show", &id, "--json"]).run();
        if shown.status != 0 {
            return Err(format!("show: {shown}"));
        }
        let shown = shown.json()["session"].clone();
        let commit = self.commit(&id);
        let tree = timeless(world.manifest());
        if shown["unsynced"] == true {
            return match (at_end, commit.status) {
                (false, 0) => Err(format!("unsynced, and committed: {commit}")),
                (true, _) => Err("it had ended, and is unsynced".into()),
                (false, _) => Ok(()),
            };
        }
        // What a first run left may be all that there is, or what both did; of a session without changes there is nothing to commit.
        let wanted: &[&Manifest] = if at_end { &[&self.after] } else { &[&self.after, &self.before] };
        let differences: Vec<_> = wanted.iter().map(|wanted| wanted.difference(&tree)).collect();
        if commit.status == 0 && differences.iter().any(String::is_empty) {
            return Ok(());
        }
        Err(format!("{shown}\ncommitted: {commit}\n{}", differences.join("\nor\n")))
    }
}

impl Cutting for Held<'_> {
    fn name(&self) -> String {
        if self.scene.id.is_empty() { "a run" } else { "a run that goes on" }.into()
    }

    fn on(&self) -> (&Scene, &Record) {
        (self.scene, &self.whole)
    }

    fn run(&self, until: Option<usize>) -> Record {
        // The hook counts recant's own steps alone.
        let added = self.whole.steps.iter().filter(|step| step.site == COMMAND).count();
        self.killed_before(until.map(|n| if n < self.at { n } else { n - added })).0
    }

    fn judge(&self, at_end: bool, _: u64) -> Result<(), String> {
        self.boot();
        self.look(at_end)
    }
}

/// The site of what the command did.
const COMMAND: &str = "the command";

/// What lies in the uppers, parents first: the path, its directory's object and its own.
fn uppers(store: &Path) -> Vec<(PathBuf, Object, Object)> {
    let mut found = Vec::new();
    let sessions = std::fs::read_dir(store.join("sessions")).map(|all| all.map(|entry| entry.expect("a name").path()).collect());
    let mut todo: Vec<PathBuf> = sessions.unwrap_or_default();
    todo.iter_mut().for_each(|session| session.push("held/upper"));
    todo.retain(|upper| upper.is_dir());
    while let Some(directory) = todo.pop() {
        let parent = object(&directory);
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("a name").path();
            let own = object(&path);
            if own.kind == "directory" {
                todo.push(path.clone());
            }
            found.push((path, parent.clone(), own));
        }
    }
    found
}

fn object(path: &Path) -> Object {
    let meta = path.symlink_metadata().expect("an object");
    let named = |(name, value): (Vec<u8>, _)| (String::from_utf8_lossy(&name).into_owned(), value);
    let kind = if meta.is_file() {
        "file"
    } else if meta.is_dir() {
        "directory"
    } else {
        "other"
    };
    Object {
        dev: meta.dev(),
        ino: meta.ino(),
        kind: kind.into(),
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
        mtime: (meta.mtime(), meta.mtime_nsec()),
        size: meta.len(),
        xattrs: if meta.is_symlink() { Vec::new() } else { common::xattrs(path).into_iter().map(named).collect() },
    }
}

/// The steps from what lay in the uppers to what lies there now: names, content and metadata that nothing has synced.
fn written(before: &[(PathBuf, Object, Object)], now: &[(PathBuf, Object, Object)]) -> Vec<Step> {
    let known: BTreeMap<Key, &Object> = before.iter().map(|(_, _, own)| (own.key(), own)).collect();
    let slots: BTreeMap<(Key, String), Key> =
        before.iter().map(|(path, parent, own)| ((parent.key(), name(path)), own.key())).collect();
    let mut steps = Vec::new();
    for (path, parent, own) in now {
        let slot = (parent.key(), name(path));
        let is_new = slots.get(&slot) != Some(&own.key());
        let was = known.get(&own.key()).map_or_else(
            || Object { size: 0, xattrs: Vec::new(), mode: if own.kind == "directory" { 0o700 } else { 0o600 }, ..own.clone() },
            |was| (*was).clone(),
        );
        let names = if is_new { vec![Renamed { slot, to: Some(own.key()) }] } else { Vec::new() };
        let call = if own.kind == "file" { "write" } else { "mknod" };
        steps.push(Step {
            n: 0,
            call: call.into(),
            site: COMMAND.into(),
            what: path.display().to_string(),
            names,
            before: vec![parent.clone(), was],
            after: vec![parent.clone(), own.clone()],
            sync: None,
        });
    }
    steps
}

fn name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// A first run, then one that goes on in its session.
fn each(mut test: impl FnMut(&Held<'_>)) {
    let Some(mut scene) = scene() else { return };
    test(&Held::new(&scene));
    scene.reset();
    scene.world.call(["run", "--", "sh", "-ec", &format!("{FIRST}; {TIMES}")]).run().ok();
    let list = scene.world.recant("list --json").ok();
    scene.id = list.rows()[0]["id"].as_str().expect("an id").to_owned();
    scene.keep();
    test(&Held::new(&scene));
}

#[test]
fn after_a_power_cut_a_run_is_not_there_unfinished_and_said_so_or_whole() {
    each(|held| held.sweep(2));
}

#[test]
fn killed_before_any_step_of_its_start_a_run_that_goes_on_leaves_what_was_held() {
    each(|held| {
        // Of a first run nothing is waited for before the command is there.
        let before = held.whole.steps.iter().take_while(|step| step.site != COMMAND);
        let Some(own) = before.filter(|step| step.sync.is_some()).map(|step| step.n).last() else { return };
        for n in (1..=own).filter(|n| is_due(*n)) {
            held.killed_before(Some(n));
            held.look(false).unwrap_or_else(|why| panic!("{}, killed before step {n}: {why}", held.name()));
        }
    });
}

#[test]
#[ignore = "long: it proves comments on syncs, not the product"]
fn each_sync_of_a_run_is_needed_or_says_why_nothing_is_caught_here() {
    let mut caught = Caught::default();
    each(|held| held.leave_each_out(&mut caught, "src/"));
    caught.assert_needed();
}
