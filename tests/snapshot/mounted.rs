//! A directory that is itself a mount point, as a volume, or a project that is bound into a container: it has snapshots, and comes back, as
//! any other; what is mounted in it is none of that. The mounts need root, and are this test's alone.

use std::ops::Deref;
use std::path::Path;

use crate::common::sweep::{Came, Sweep};
use crate::common::{self, World, is_root};
use crate::mounts::own_mounts;

/// A world whose tree is a mount point, with another one in it.
struct Volume {
    world: World,
}

impl Deref for Volume {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        use rustix::mount::{UnmountFlags, unmount};
        if let Err(error) = unmount(self.tree(), UnmountFlags::DETACH) {
            println!("left mounted: {}: {error}", self.tree().display());
        }
    }
}

/// What is mounted there.
#[derive(Debug, Clone, Copy)]
enum What {
    /// A file system of its own.
    Volume,
    /// Another directory of the same one.
    Bound,
}

impl Volume {
    fn new(what: What) -> Self {
        use rustix::mount::{MountFlags, mount, mount_bind};
        // Not in /tmp, where a confined command may write.
        let world = World::on(Path::new("/var/tmp"));
        match what {
            What::Volume => mount("none", world.tree(), "tmpfs", MountFlags::empty(), c"mode=755").expect("a volume"),
            What::Bound => {
                let elsewhere = world.root().join("elsewhere");
                world.mkdir(&elsewhere);
                mount_bind(elsewhere, world.tree()).expect("a bound directory");
            }
        }
        world.write("edited", "old").write("gone/x", "x").symlink("edited", "link").fifo("fifo").write("large", vec![1; 200_000]);
        world.write("moded", "m").chmod("moded", 0o640).write("deep/er/f", "f").mkdir("inner");
        mount("none", world.path("inner"), "tmpfs", MountFlags::empty(), c"mode=700").expect("a volume in it");
        world.write("inner/x", "1").chmod("", 0o750).set_xattr("", "trusted.kept", "1");
        world.set_mtime("gone", 1_000_000_000, 5).set_mtime("", 1_000_000_001, 5);
        Self { world }
    }

    /// Changes of every kind, the directory's own metadata among them.
    fn upset(&self) {
        self.write("edited", "new").remove("gone").remove("link").write("link", "a file").remove("fifo").write("made/y", "y");
        self.write("large", vec![2; 180_000]).chmod("moded", 0o600).chmod("", 0o711).set_xattr("", "trusted.kept", "2");
        self.set_mtime("", 1_000_000_002, 5);
    }
}

/// A volume, and a directory that is bound.
fn each(test: impl Fn(&Volume)) {
    if !is_root("mounts of its own") {
        return;
    }
    own_mounts();
    for what in [What::Volume, What::Bound] {
        println!("{what:?}");
        test(&Volume::new(what));
    }
}

#[test]
fn a_directory_that_is_a_mount_point_has_snapshots_and_comes_back_exactly() {
    each(|volume| {
        let before = volume.manifest();
        let said = volume.recant("snapshot create").ok();
        assert!(said.id() == "0" && said.stderr().contains("another file system is mounted there"), "{said}");
        before.assert_same(&volume.manifest(), "taking a snapshot changes nothing");
        volume.upset();
        let after = volume.manifest();
        let said = volume.recant("snapshot diff 0 --name-only").ok().stdout();
        assert_eq!(said.lines().count(), 10, "{said}");
        // What is mounted in it is left out, and said.
        volume.recant("snapshot restore 0").with(4);
        before.assert_same(&volume.manifest(), "restored");
        volume.recant("rollback last").ok();
        after.assert_same(&volume.manifest(), "the restore taken back");
        volume.recant("redo last").ok();
        before.assert_same(&volume.manifest(), "and done again");
        volume.assert_tidy("restored");
        // Its own metadata alone: in place, as it cannot be another directory.
        volume.chmod("", 0o700).set_mtime("", 5, 5);
        let after = volume.manifest();
        volume.recant("snapshot restore last").with(4);
        before.assert_same(&volume.manifest(), "its metadata");
        volume.recant("rollback last").ok();
        after.assert_same(&volume.manifest(), "its metadata taken back");
        // Where nothing is mounted in it any more that directory stays all the same.
        rustix::mount::unmount(volume.path("inner"), rustix::mount::UnmountFlags::DETACH).expect("it was mounted");
        volume.recant("snapshot restore 0").with(4);
        assert!(volume.exists("inner"));
    });
}

/// Its metadata is set in place, and taken back from the record.
#[test]
fn a_restore_of_it_that_is_killed_is_all_done_or_not_begun() {
    if !is_root("mounts of its own") {
        return;
    }
    own_mounts();
    let row = Sweep {
        name: "snapshot restore of a mount point",
        scene: &|| {
            let volume = Volume::new(What::Volume);
            volume.recant("snapshot create").ok();
            let wanted = volume.manifest();
            volume.upset();
            let before = volume.manifest();
            Some((volume, before, wanted))
        },
        verb: &|(volume, ..)| volume.call(["snapshot", "restore", "0"]),
        order: "kill:N",
    };
    let tally = row.run(|(volume, before, wanted), said, what| {
        let what = format!("{what}, then {}", volume.recant("recover").ok());
        volume.assert_tidy(&what);
        let is_done = volume.manifest() == *wanted;
        assert!(if is_done { [4, 137].contains(&said.status) } else { said.status == 137 }, "{what}");
        if !is_done {
            before.assert_same(&volume.manifest(), &what);
            return Came::Unchanged(is_done);
        }
        volume.recant("rollback last").ok();
        before.assert_same(&volume.manifest(), &what);
        Came::Used(is_done)
    });
    assert!(tally.steps > 60, "{} steps", tally.steps);
    tally.saw(false, 20).saw(true, 2);
}

#[test]
fn a_command_is_run_on_it_and_taken_back_exactly() {
    each(|volume| {
        if volume.recant("run --in deep -- true").status == 125 {
            return common::skip("no confinement here");
        }
        let before = volume.manifest();
        let script = "echo new > edited; rm -r gone fifo large; chmod 600 moded; mkdir made; echo y > made/y; chmod 711 .; touch -d 2001-02-03 .";
        let said = volume.call(["run", "--in", ".", "--", "sh", "-c", script]).run();
        // What is mounted in it is in no snapshot: what the command did there is not known. The command's own status comes first.
        let said = said.with(4);
        assert!(said.stderr().contains("inner: not in both snapshots: another file system is mounted there"), "{said}");
        volume.call(["run", "--in", ".", "--", "sh", "-c", "exit 3"]).run().with(3);
        assert!(said.stderr().contains("committed as session"), "{said}");
        let after = volume.manifest();
        volume.recant("rollback last").ok();
        before.assert_same(&volume.manifest(), "taken back");
        volume.recant("redo last").ok();
        after.assert_same(&volume.manifest(), "done again");
    });
}

#[test]
fn what_is_above_a_mount_of_the_system_is_refused_and_what_lies_beside_that_is_not() {
    if !is_root("a mount of the system") {
        return;
    }
    own_mounts();
    let world = World::on(Path::new("/var/tmp"));
    world.write("beside/f", "1").mkdir("deep/system");
    let point = world.path("deep/system");
    if let Err(error) = rustix::mount::mount("none", &point, "proc", rustix::mount::MountFlags::empty(), None) {
        println!("skipped: a mount of the system: {error}");
        return;
    }
    let why = format!("proc of the system is mounted in it, at {}", point.display());
    for words in [&["snapshot", "create"][..], &["snapshot", "create", "deep"]] {
        let said = world.call(words).run().with(1);
        assert!(said.stderr().contains(&why), "{said}");
    }
    let said = world.call(["run", "--in", "deep", "--", "touch", "deep/f"]).run().with(125);
    assert!(said.stderr().contains(&why) && !world.exists("deep/f"), "{said}");
    world.recant("snapshot create beside").ok();
    rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH).expect("it was mounted");
    world.recant("snapshot create").ok();
}
