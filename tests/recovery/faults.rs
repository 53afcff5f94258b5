//! A session of a run, killed before every step of its commit, rollback and redo: what the command wrote lies in uppers that
//! are cleared away once they are not needed, which staged sessions (`tests/crash.rs`) do not have. Needs the feature

use crate::common::{self, Manifest, World};

const SCRIPT: &str = "echo new > edited; rm -r gone; mkdir -p made/deep; echo n > made/deep/n; mkfifo made/fifo; \
                      ln made/deep/n made/n; chmod 600 moded; ln -s edited link; touch -d @900000000 timed";

fn scene() -> (World, String) {
    scene_in(World::new())
}

fn scene_in(world: World) -> (World, String) {
    world.write("edited", "old").write("gone/sub/1", "away").write("moded", "x").write("timed", "t").write("sub/calm", "c");
    for (i, path) in world.manifest().0.keys().rev().enumerate() {
        world.set_mtime(common::name(path), 1_000_000_000 + i as i64, 7);
    }
    world.call(["run", "--", "sh", "-c", SCRIPT]).run().ok();
    let id = world.recant("show --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
    (world, id)
}

/// Every scene and every operation has times of its own.
fn timeless(mut manifest: Manifest) -> Manifest {
    manifest.0.values_mut().filter(|row| row.mtime.0 > 1_500_000_000).for_each(|row| row.mtime = (0, 0));
    manifest
}

#[test]
fn the_session_of_a_run_killed_before_any_step_is_afterwards_all_in_or_all_out() {
    if !common::can_run() {
        return;
    }
    for (verb, first, from, to, back, every) in [
        ("commit", &[][..], "pending", "committed", None, 1),
        ("rollback", &["commit"][..], "committed", "rolled_back", Some("redo"), 5),
        ("redo", &["commit", "rollback"][..], "rolled_back", "committed", Some("rollback"), 5),
    ] {
        let fresh = || {
            let (world, id) = scene();
            first.iter().for_each(|verb| drop(world.call([verb, &*id]).run().ok()));
            (world, id)
        };
        let (mut world, mut id) = fresh();
        let before = timeless(world.manifest());
        world.call([verb, &id]).run().ok();
        let after = timeless(world.manifest());
        (world, id) = fresh();
        for n in common::steps().step_by(every) {
            let killed = world.call([verb, &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
            let what = format!("{verb} killed before step {n}");
            if killed.status != 137 {
                assert_eq!(killed.status, 0, "{what}: {killed}");
                break;
            }
            world.recant("recover").ok();
            world.assert_tidy(&what);
            match &*world.status(&id) {
                status if status == from => before.assert_same(&timeless(world.manifest()), &what),
                status if status == to => {
                    after.assert_same(&timeless(world.manifest()), &what);
                    match back {
                        Some(back) => drop(world.call([back, &id]).run().ok()),
                        None => (world, id) = fresh(),
                    }
                }
                status => panic!("{what}: status {status}"),
            }
        }
    }
}

/// Where it has to be copied, what the session has of its own goes at last, and then the uppers that it lay in.
#[test]
fn the_session_of_a_run_that_is_killed_while_its_uppers_go_is_settled() {
    if !common::can_run() {
        return;
    }
    let shm = std::path::Path::new("/dev/shm");
    if !shm.is_dir() {
        return common::skip("two file systems: there is no /dev/shm");
    }
    let killed_before = |n: usize| {
        let store = tempfile::tempdir().expect("a directory of another file system");
        let mut world = World::on(shm);
        world.set("RECANT_STORE", store.path().join("store"));
        let (world, id) = scene_in(world);
        let said = world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
        (world, id, said, store)
    };
    let (mut killed, mut done) = (1, 2000);
    while done - killed > 1 {
        let n = (killed + done) / 2;
        *(if killed_before(n).2.status == 137 { &mut killed } else { &mut done }) = n;
    }
    for n in done - 25..done {
        let (world, id, said, _store) = killed_before(n);
        let what = format!("killed before step {n}: {}{said}", world.recant("recover").ok());
        world.assert_tidy(&what);
        assert_eq!((world.status(&id), world.read("edited")), ("committed".into(), "new\n".into()), "{what}");
    }
}
