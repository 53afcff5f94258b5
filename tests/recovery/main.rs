//! Operations that are cut off, fail or are interfered with at any step, and what becomes of them afterwards.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set up real files, and say what they skip"
)]

#[path = "../common/mod.rs"]
mod common;

mod crash;
mod forced;
mod late;
mod races;
mod recover;
mod replay;

use std::path::PathBuf;

use common::{Call, Manifest, Said, World};

/// A world with a session, whose store may lie on another file system than its tree; and copies of both to begin again from.
struct Scene {
    world: World,
    id: String,
    store: PathBuf,
    /// The verb that is tried, its steps, and the tree before it.
    verb: &'static str,
    steps: Vec<String>,
    before: Manifest,
    _directories: Vec<tempfile::TempDir>,
}

impl Scene {
    /// Without a session yet; nothing where there are no `two` file systems, which is said.
    fn new(two: bool) -> Option<Self> {
        // A run takes no store in /dev/shm.
        let directories = if two { vec![common::elsewhere()?, tempfile::tempdir().expect("for the store")] } else { Vec::new() };
        let mut world = directories.first().map_or_else(World::new, |other| World::on(other.path()));
        let store = directories.last().map_or_else(|| world.store(), |other| other.path().join("store"));
        world.set("RECANT_STORE", &store);
        let (id, verb, steps, before) = Default::default();
        Some(Self { world, id, store, verb, steps, before, _directories: directories })
    }

    /// A session that holds "new" for the file `f`.
    fn of_a_file(content: &str, two: bool) -> Option<Self> {
        let mut scene = Self::new(two)?;
        scene.world.write("f", content);
        scene.begin(["write f new"]);
        Some(scene)
    }

    /// Begins a session of what is staged in these lines.
    fn begin<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.id = self.world.begin();
        self.world.stage(&self.id, lines);
        self.before = self.world.manifest();
    }

    /// Ready for this verb: a rollback is that of a commit.
    fn at(mut self, verb: &'static str) -> Self {
        if verb == "rollback" {
            self.ok("commit");
        }
        (self.verb, self.before, self.steps) = (verb, self.world.manifest(), self.steps(verb));
        self
    }

    /// The number of the first of the verb's steps that begins with this call and has this name in it.
    #[track_caller]
    fn step(&self, call: &str, name: &str) -> usize {
        numbers(&self.steps, call, name)[0]
    }

    fn seal(&self) -> usize {
        seal(&self.steps)
    }

    fn session(&self) -> PathBuf {
        self.store.join("sessions").join(&self.id)
    }

    fn shell(&self, command: &str) {
        self.world.program("sh", ["-c", command]).cwd(self.world.root()).run().ok();
    }

    /// Tree and store as they are now are what [`Self::reset`] gives back.
    fn keep(&self) {
        self.shell("rm -rf saved && mkdir saved && cp -a tree saved/tree && cp -a $RECANT_STORE saved/store");
    }

    fn reset(&self) {
        self.shell("rm -rf tree $RECANT_STORE && cp -a saved/tree . && cp -a saved/store $RECANT_STORE");
    }

    fn call(&self, verb: &str) -> Call {
        self.world.call(verb.split(' ').chain([&*self.id]))
    }

    /// A verb on the session, with what is done before some of its steps.
    fn run(&self, verb: &str, steps: impl AsRef<str>) -> Said {
        self.call(verb).env("RECANT_STEPS", steps.as_ref()).run()
    }

    fn ok(&self, verb: &str) -> Said {
        self.call(verb).run().ok()
    }

    fn kill_before(&self, verb: &str, n: usize) {
        self.run(verb, format!("kill:{n}")).with(137);
    }

    /// The steps of a verb; tree and store are as before it then.
    fn steps(&self, verb: &str) -> Vec<String> {
        self.keep();
        let steps = common::sweep::steps_of(|| self.call(verb));
        self.reset();
        steps
    }

    fn status(&self) -> String {
        self.world.status(&self.id)
    }

    /// What force has overwritten at a path, or what was said in its place.
    fn displaced(&self, name: &str) -> String {
        let said = self.world.call(["cat", &self.id, name, "--displaced"]).run();
        if said.status == 0 { said.stdout() } else { format!("{said}") }
    }

    /// What lies in the tree under names of recant's own.
    fn kept(&self) -> Vec<String> {
        self.world.leftovers().into_iter().map(|name| self.world.read(name)).collect()
    }

    /// Nothing is left of an operation, and nothing to recover.
    #[track_caller]
    fn assert_over(&self, what: &str) {
        self.world.assert_tidy(what);
        let said = self.world.recant("recover").ok();
        assert!(said.stderr().contains("nothing was interrupted"), "{what}: {said}");
    }
}

/// The numbers of the steps that begin with this call and have this name in them.
#[track_caller]
fn numbers(steps: &[String], call: &str, name: &str) -> Vec<usize> {
    let is_it = |(_, step): &(usize, &String)| step.starts_with(call) && step.contains(name);
    let found: Vec<_> = (1..).zip(steps).filter(is_it).map(|(n, _)| n).collect();
    assert!(!found.is_empty(), "no {call}{name} in\n{}", steps.join("\n"));
    found
}

/// The step with which an operation is done.
#[track_caller]
fn seal(steps: &[String]) -> usize {
    numbers(steps, "renameat ", "session.json.new")[0]
}

/// What is younger than the clock of files ticks is told by its content, not by its times: waits until they tell.
fn until_old(world: &World, name: &str) {
    use std::os::unix::fs::MetadataExt;
    let time = |name: &str| {
        let meta = world.path(name).metadata().expect("a file");
        (meta.ctime() * 1_000_000_000) + meta.ctime_nsec()
    };
    let probe = world.root().join("probe");
    loop {
        std::fs::write(&probe, "now").expect("a file");
        if time("../probe") - time(name) > 30_000_000 {
            return;
        }
        std::thread::yield_now();
    }
}
