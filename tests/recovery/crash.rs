//! Killed before every step that changes anything, each operation is afterwards all done or not begun (engine E1 to E4;
//! tests/README.md, F1 to F3). The real binary is killed with SIGKILL by the hook that all its changes pass; needs the feature

use std::path::{Path, PathBuf};

use crate::common::{self, Manifest, World};

/// A tree with objects of every kind, and a session that changes each of them in some way.
struct Scene {
    world: World,
    id: String,
    before: Manifest,
}

impl Scene {
    fn on(directory: &Path, store: Option<&Path>) -> Self {
        let mut world = World::on(directory);
        if let Some(store) = store {
            world.set("RECANT_STORE", store);
        }
        world.write("edited", "old").write("empty", "").write("gone", "away").write("moded", "x");
        world.write("one", "linked").write("full/a", "1").write("full/sub/b", "2");
        world.write("kind/file", "f").mkdir("kind/directory").symlink("nowhere", "kind/link").fifo("kind/fifo");
        world.write("kind/full/x", "x").symlink("old", "link").fifo("fifo").chmod("edited", 0o600).chmod("full/sub", 0o500);
        let value = rustix::fs::setxattr(world.path("edited"), "user.kept", b"1", rustix::fs::XattrFlags::empty());
        if let Err(error) = value {
            println!("skipped: xattrs in the crash test: {}: {error}", directory.display());
        }
        for name in ["full", "full/sub", "kind", "kind/full", ""] {
            let times = rustix::fs::Timestamps { last_access: time(1_000_000_000), last_modification: time(1_000_000_000) };
            rustix::fs::utimensat(rustix::fs::CWD, world.path(name), &times, rustix::fs::AtFlags::empty()).expect("a time");
        }
        if store.is_none() {
            // Between two file systems a name outside the session cannot be rejoined.
            world.link("one", "two");
        }
        let before = world.manifest();
        let id = world.begin();
        for (name, content) in
            [("edited", "new"), ("empty", "filled"), ("one", "edited alone"), ("new/deep/er", "n"), ("new/again", "n")]
        {
            world.stage_write(&id, name, content);
        }
        for words in
            ["delete ID gone", "delete ID full -r", "delete ID link", "delete ID fifo", "chmod ID 0640 moded", "mkdir ID hollow"]
        {
            stage(&world, &id, words);
        }
        for words in [
            "delete ID kind/file",
            "mkdir ID kind/file",
            "symlink ID to kind/directory -r",
            "delete ID kind/link",
            "mkdir ID kind/link",
        ] {
            stage(&world, &id, words);
        }
        world.stage_write(&id, "kind/link/in", "in").stage_write(&id, "kind/fifo", "was a fifo");
        stage(&world, &id, "symlink ID to kind/full -r");
        Self { world, id, before }
    }

    /// Committed once, so that there is an exact state after.
    fn after(&self) -> Manifest {
        let done = self.verb("commit").env("RECANT_STEPS", "log:/dev/null").run();
        assert_eq!(done.status, 0, "{done}");
        self.world.manifest()
    }

    fn verb(&self, verb: &str) -> common::Call {
        self.world.call([verb, &self.id])
    }

    fn status(&self) -> String {
        let shown = self.world.call(["show", &self.id, "--json"]).run().ok().json();
        shown["session"]["status"].as_str().expect("a status").to_owned()
    }

    /// Nothing of recant's is left beside the user's files, and no journal.
    fn assert_tidy(&self, what: &str) {
        let journals: Vec<_> = std::fs::read_dir(self.journals()).expect("the journals").collect();
        assert!(journals.is_empty(), "{what}: {journals:?}");
        let ours = self.world.manifest().0.into_keys().find(|path| path.windows(8).any(|part| part == b".recant-"));
        assert_eq!(ours, None, "{what}");
    }

    fn journals(&self) -> PathBuf {
        let place = self.world.recant("config --json").ok().json();
        let store = place["settings"].as_array().and_then(|values| values.iter().find(|value| value["key"] == "store.path"));
        let store = store.and_then(|value| value["value"].as_str()).map_or_else(|| self.world.store(), PathBuf::from);
        store.join("journals")
    }
}

fn time(s: i64) -> rustix::fs::Timespec {
    rustix::fs::Timespec { tv_sec: s, tv_nsec: 7 }
}

fn stage(world: &World, id: &str, words: &str) {
    let words = format!("session {}", words.replace("ID", id));
    world.recant(&words).ok();
}

/// What is staged has the time of its staging, which differs from scene to scene.
fn settled(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone();
    manifest.0.values_mut().for_each(|row| row.mtime = (0, 0));
    manifest
}

/// Kills `verb` before each of its steps. Returns how many steps there are.
fn sweep(make: &dyn Fn() -> Scene, ready: &dyn Fn(&Scene), verb: &str, from: &str, to: &str) -> usize {
    let fresh = || {
        let scene = make();
        ready(&scene);
        let start = scene.world.manifest();
        (scene, start)
    };
    let (mut scene, mut start) = fresh();
    let mut wanted: Option<Manifest> = None;
    for n in common::steps() {
        let killed = scene.verb(verb).env("RECANT_STEPS", format!("kill:{n}")).run();
        let what = format!("{verb} killed before step {n}");
        if killed.status != 137 {
            assert_eq!(killed.status, 0, "{what}: {killed}");
            scene.assert_tidy(&what);
            assert_eq!(scene.status(), to, "{what}");
            return n - 1;
        }
        let recovered = scene.world.recant("recover").ok();
        scene.assert_tidy(&what);
        let now = scene.world.manifest();
        match scene.status() {
            status if status == from => start.assert_same(&now, &format!("{what}: {recovered}")),
            status if status == to => {
                let wanted = wanted.get_or_insert_with(|| settled(&now));
                wanted.assert_same(&settled(&now), &format!("{what}: {recovered}"));
                let inverse = if verb == "rollback" { "redo" } else { "rollback" };
                scene.verb(inverse).run().ok();
                start.assert_same(&scene.world.manifest(), &format!("{what}: {recovered}, then {inverse}"));
                (scene, start) = fresh();
            }
            status => panic!("{what}: status {status}: {recovered}"),
        }
    }
    unreachable!("the loop ends with an operation that is not killed")
}

fn sweep_all(make: &dyn Fn() -> Scene) {
    let commit = |scene: &Scene| drop(scene.after());
    let back = |scene: &Scene| {
        commit(scene);
        scene.verb("rollback").run().ok();
        scene.before.assert_same(&scene.world.manifest(), "after a rollback");
    };
    let steps = sweep(make, &|_| {}, "commit", "pending", "committed");
    assert!(steps > 60, "a commit of this session has more steps than {steps}");
    sweep(make, &commit, "rollback", "committed", "rolled_back");
    sweep(make, &back, "redo", "rolled_back", "committed");
}

#[test]
fn an_operation_killed_before_any_step_is_afterwards_all_done_or_not_begun() {
    sweep_all(&|| Scene::on(&std::env::temp_dir(), None));
}

#[test]
fn so_it_is_with_store_and_tree_on_two_file_systems() {
    let other = Path::new("/dev/shm");
    if !other.is_dir() || same_device(other, &std::env::temp_dir()) {
        println!("skipped: two file systems: /dev/shm is none of its own");
        return;
    }
    let store = tempfile::tempdir_in(other).expect("a directory in /dev/shm");
    let path = store.path().join("store");
    sweep_all(&|| Scene::on(&std::env::temp_dir(), Some(&path)));
}

/// Homes of originals that something else has, which nothing names: it gives way, at whatever moment the operation is cut off, and
/// is never taken for the original.
#[test]
fn what_lies_at_the_home_of_an_original_is_no_obstacle_and_is_never_given_back() {
    let make = || Scene::on(&std::env::temp_dir(), None);
    let names = |scene: &Scene| {
        let directories =
            ["checkpoint/blobs", "checkpoint/objects", "held/objects"].map(|below| scene.world.session(&scene.id).join(below));
        let listed = directories.iter().flat_map(|directory| std::fs::read_dir(directory).expect("a directory of the session"));
        listed.map(|name| name.expect("a name").path()).collect::<Vec<_>>()
    };
    let litter = |homes: Vec<PathBuf>| {
        for (i, home) in homes.iter().filter(|home| home.symlink_metadata().is_err()).enumerate() {
            match i % 2 {
                0 => std::fs::write(home, "left").expect("a file"),
                _ => std::fs::create_dir_all(home.join("with/something/in it")).expect("a directory"),
            }
        }
    };
    let committed = |scene: &Scene| {
        let homes = names(scene);
        drop(scene.after());
        litter(homes);
    };
    let back = |scene: &Scene| {
        drop(scene.after());
        let homes = names(scene);
        scene.verb("rollback").run().ok();
        scene.before.assert_same(&scene.world.manifest(), "after a rollback");
        litter(homes);
    };
    sweep(&make, &committed, "rollback", "committed", "rolled_back");
    sweep(&make, &back, "redo", "rolled_back", "committed");
}

fn same_device(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let dev = |path: &Path| path.metadata().map(|meta| meta.dev()).ok();
    dev(a) == dev(b)
}

/// What somebody does before an operation by force, and the paths that it overwrites then.
fn disturb(scene: &Scene, verb: &str) -> [&'static str; 4] {
    let paths =
        if verb == "rollback" { ["edited", "empty", "new/again", "kind/link/in"] } else { ["edited", "empty", "gone", "one"] };
    for path in paths {
        // Another inode under that name, so that other names of the old one are not concerned.
        scene.world.remove(path).write(path, format!("{path}: theirs"));
    }
    scene.world.chmod("moded", 0o711);
    paths
}

/// By force the tree is afterwards as somebody had left it, or as the session has it with all of his kept.
#[test]
fn so_it_is_by_force_and_what_is_overwritten_is_kept() {
    for (verb, first, from, to) in [
        ("commit", &[][..], "pending", "committed"),
        ("rollback", &["commit"][..], "committed", "rolled_back"),
        ("redo", &["commit", "rollback"][..], "rolled_back", "committed"),
    ] {
        let fresh = || {
            let scene = Scene::on(&std::env::temp_dir(), None);
            first.iter().for_each(|verb| drop(scene.verb(verb).run().ok()));
            let paths = disturb(&scene, verb);
            let start = scene.world.manifest();
            (scene, paths, start)
        };
        let (mut scene, mut paths, mut start) = fresh();
        let mut wanted: Option<Manifest> = None;
        let mut done = 0;
        for n in common::steps() {
            let killed = scene.world.call([verb, &scene.id, "--force"]).env("RECANT_STEPS", format!("kill:{n}")).run();
            let what = format!("{verb} --force killed before step {n}");
            let mut recovered = None;
            if killed.status == 137 {
                recovered = Some(scene.world.recant("recover").ok());
            } else {
                assert_eq!(killed.status, 0, "{what}: {killed}");
            }
            scene.assert_tidy(&what);
            let now = scene.world.manifest();
            match scene.status() {
                status if status == from => start.assert_same(&now, &what),
                status if status == to => {
                    done += 1;
                    // Where there was no report, the recovery says where what was overwritten is.
                    if let Some(said) = recovered.filter(|said| verb != "commit" && said.stdout().contains("settled")) {
                        assert!(
                            paths.iter().all(|path| said.stderr().contains(&format!("{path} --displaced"))),
                            "{what}: {said}"
                        );
                    }
                    wanted.get_or_insert_with(|| settled(&now)).assert_same(&settled(&now), &what);
                    if verb == "commit" {
                        scene.verb("rollback").run().ok();
                        start.assert_same(&scene.world.manifest(), &format!("{what}, then rollback"));
                    } else {
                        for path in paths {
                            let kept = scene.world.call(["cat", &scene.id, path, "--displaced"]).run().ok().stdout();
                            assert_eq!(kept, format!("{path}: theirs"), "{what}");
                        }
                    }
                    (scene, paths, start) = fresh();
                }
                status => panic!("{what}: status {status}"),
            }
            if killed.status != 137 {
                break;
            }
        }
        assert!(done > 5, "{verb}: {done}");
    }
}

#[test]
fn recovery_killed_before_any_step_is_ended_by_the_next_one() {
    let make = || Scene::on(&std::env::temp_dir(), None);
    let mut scene = make();
    let mut undone = 0;
    // Every fifth step of the commit, every step of its recovery.
    for n in (3..).step_by(5) {
        let mut m = 0;
        loop {
            let killed = scene.verb("commit").env("RECANT_STEPS", format!("kill:{n}")).run();
            if killed.status != 137 {
                assert!(undone > 50, "recovery was killed {undone} times only");
                return;
            }
            m += 1;
            let first = scene.world.call(["recover"]).env("RECANT_STEPS", format!("kill:{m}")).run();
            let what = format!("commit killed before step {n}, recovery before step {m}");
            scene.world.recant("recover").ok();
            scene.assert_tidy(&what);
            match &*scene.status() {
                "pending" => scene.before.assert_same(&scene.world.manifest(), &what),
                "committed" => scene = make(),
                status => panic!("{what}: status {status}"),
            }
            undone += 1;
            if first.status != 137 {
                break;
            }
        }
    }
}

#[test]
fn so_it_is_with_metadata_that_is_set_under_several_names_of_a_file() {
    let make = || {
        let world = World::on(&std::env::temp_dir());
        world.write("one", "linked").link("one", "two").link("one", "three").chmod("one", 0o644);
        let before = world.manifest();
        let id = world.begin();
        for words in ["chmod ID 0600 one", "chmod ID 0600 two", "chmod ID 0600 three"] {
            stage(&world, &id, words);
        }
        Scene { world, id, before }
    };
    let commit = |scene: &Scene| drop(scene.after());
    assert!(sweep(&make, &|_| {}, "commit", "pending", "committed") > 10);
    sweep(&make, &commit, "rollback", "committed", "rolled_back");
}

/// A directory that gives way whole, and a file: each is at its path with what is in it, or in the store, whenever the rollback is killed,
/// and the recovery of it.
#[test]
fn what_somebody_made_gives_way_by_force_and_the_recovery_of_that_may_be_killed() {
    let world = World::new();
    world.write("f", "old").write("g", "old");
    let id = world.begin();
    world.stage_write(&id, "f", "new").stage_write(&id, "g", "new");
    world.recant(&format!("commit {id}")).ok();
    world.remove("f").write("f/y", "theirs").chmod("f", 0o711).write("g", "theirs");
    let start = world.manifest();
    let (mut undone, mut killed_again) = (0, 0);
    'sweep: for n in 1..200 {
        let rollback = || world.call(["rollback", "--force", &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
        for m in 0..100 {
            if rollback().status != 137 {
                break 'sweep;
            }
            let what = format!("killed before step {n}, its recovery before step {m}");
            let killed = m > 0 && world.call(["recover"]).env("RECANT_STEPS", format!("kill:{m}")).run().status == 137;
            let said = world.recant("recover").ok();
            world.assert_tidy(&what);
            if world.status(&id) != "committed" {
                break 'sweep;
            }
            start.assert_same(&world.manifest(), &format!("{what}: {said}"));
            (undone, killed_again) = (undone + 1, killed_again + u32::from(killed));
            if n % 6 != 0 || m > 0 && !killed {
                break;
            }
        }
    }
    assert!(undone > 20 && killed_again > 20, "{undone}, {killed_again}");
    assert_eq!(world.status(&id), "rolled_back");
    assert_eq!((world.read("f"), world.read("g")), ("old".into(), "old".into()));
}
