//! Real file systems: ext4, xfs, btrfs and tmpfs as tree and as store, two at once, a bind mount; and what stands in the way:
//! read-only mounts, immutable files, other people's directories, mount points, full disks. Needs root and loop devices.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::sweep::{AllOrNothing, COMMIT, Came, REDO, ROLLBACK, Sweep, Verb, is_due, is_whole, steps_of};
use crate::common::{self, Manifest, World, assert_done_or_not, elsewhere, is_root, skip};
use crate::{SEAL, has_strace, old_times, round_trip, step_of, whole};

/// Something mounted for one test.
pub struct Mount {
    pub point: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(why) = run("umount", &["-l", &self.point.display().to_string()]) {
            println!("left mounted: {why}");
        }
    }
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(args).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())) }
}

impl Mount {
    /// Something that is mounted at the second of two paths, the first of which is a directory for it; where that cannot be had, this says so.
    fn made(what: &str, mount: impl FnOnce(&str, &str) -> Result<(), String>) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let point = dir.path().join("mnt");
        std::fs::create_dir(&point).expect("a mount point");
        Self::at(what, dir, point, mount)
    }

    fn at(
        what: &str,
        dir: tempfile::TempDir,
        point: PathBuf,
        mount: impl FnOnce(&str, &str) -> Result<(), String>,
    ) -> Option<Self> {
        if !is_root(what) {
            return None;
        }
        match mount(&dir.path().display().to_string(), &point.display().to_string()) {
            Ok(()) => Some(Self { point, _dir: dir }),
            Err(why) => {
                println!("skipped: {what}: {why}");
                None
            }
        }
    }

    /// A file system of its own in a loop image, made by a command to which the image's name is added.
    fn image(megabytes: u64, mkfs: &[&str]) -> Option<Self> {
        Self::made(&format!("{mkfs:?} in an image"), |dir, at| {
            let image = format!("{dir}/image");
            std::fs::File::create(&image).and_then(|file| file.set_len(megabytes << 20)).expect("an image");
            run(mkfs[0], &[&mkfs[1..], &[&*image]].concat())?;
            run("mount", &["-o", "loop", &image, at])
        })
    }

    /// Unmounts an image of ext4, checks it, and mounts it again, as a machine does that starts.
    fn restart(&self) {
        let (at, image) = (self.point.display().to_string(), self.point.with_file_name("image").display().to_string());
        common::until("nothing works on the file system", || run("umount", &[&at]).is_ok());
        // Runs of other tests have this mount in their own namespaces; until they end the file system lives on as it was.
        let devices = || Command::new("losetup").args(["-n", "-j", &image]).output().expect("losetup").stdout;
        common::until("no run of another test holds the file system", || devices().is_empty());
        drop(run("e2fsck", &["-fy", &image]));
        run("mount", &["-o", "loop", &image, &at]).expect("the file system");
    }

    /// Times are whole seconds here, and inodes have no time of birth.
    fn of_whole_seconds() -> Option<Self> {
        Self::image(64, &["mkfs.ext4", "-q", "-m", "0", "-I", "128"])
    }

    fn tmpfs(options: &str) -> Option<Self> {
        Self::made("a tmpfs", |_, at| run("mount", &["-t", "tmpfs", "-o", options, "tmpfs", at]))
    }

    /// A directory by way of FUSE, where renameat2 takes no flags: neither RENAME_EXCHANGE nor RENAME_NOREPLACE.
    fn bindfs() -> Option<Self> {
        Self::bindfs_with(&["-o", "attr_timeout=0,entry_timeout=0"])
    }

    fn bindfs_with(options: &[&str]) -> Option<Self> {
        Self::made("a file system without RENAME_EXCHANGE (bindfs)", |dir, at| {
            let real = format!("{dir}/real");
            std::fs::create_dir(&real).expect("a directory");
            run("bindfs", &[options, &[&real, at]].concat())
        })
    }

    /// A directory by way of sshfs and a server of sftp: inodes have other numbers each time, and links make files of their own.
    fn sshfs() -> Option<Self> {
        Self::made("a file system of another machine (sshfs)", |dir, at| {
            let server = ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server"];
            let server = server.iter().find(|server| Path::new(server).exists()).ok_or("no server of sftp")?;
            let [real, ssh] = ["real", "ssh"].map(|name| format!("{dir}/{name}"));
            std::fs::create_dir(&real).expect("a directory");
            // What would be ssh speaks with the server itself.
            std::fs::write(&ssh, format!("#!/bin/sh\nexec {server}\n")).expect("a script");
            std::fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
            let options = format!("ssh_command={ssh},cache=no,attr_timeout=0,entry_timeout=0");
            run("sshfs", &[&format!("here:{real}"), at, "-o", &options])
        })
    }

    /// A second mount of a directory, at a path that is there.
    fn bind(from: &Path, at: PathBuf) -> Option<Self> {
        let from = from.display().to_string();
        Self::at("a bind mount", tempfile::tempdir().expect("a directory"), at, |_, at| run("mount", &["--bind", &from, at]))
    }
}

/// Waits for the clock's next second, so that two times that are told in whole seconds differ.
fn next_second() {
    let second = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
    let now = second();
    while second() == now {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Something of every kind of change and object. `links`: with a hard-link group that reaches out of the session.
fn scene(world: &World, links: bool) -> (String, Manifest) {
    world.write("edited", "old").chmod("edited", 0o600).write("empty", "").write("gone", vec![7; 300_000]).write("moded", "x");
    world.write("full/a", "1").write("full/sub/b", "2").symlink("nowhere", "link").fifo("fifo").mkdir("hollow");
    world.write("one", "linked").link("one", "two");
    if links {
        world.link("one", "outside");
    }
    world.set_xattr("edited", "user.kept", b"1");
    old_times(world);
    let before = world.manifest();
    let id = world.begin();
    let large = format!("write large {}", "8".repeat(300_000));
    let lines = "write edited new; write empty filled; write made/deep/er n; write one apart; write two apart; delete gone; \
                 delete full; symlink made link; delete fifo; chmod 0640 moded; delete hollow";
    world.stage(&id, lines.split("; ").chain([&*large]));
    (id, before)
}

/// Where no mtime can be set, the names of one file look as if somebody had set theirs.
fn without_links(world: &World) -> (String, Manifest) {
    world.write("edited", "old").write("gone", "away").write("full/sub/b", "2").symlink("nowhere", "link").write("moded", "x");
    let before = world.manifest();
    let id = world.begin();
    let lines =
        ["write edited new", "write made/deep/er n", "delete gone", "delete full", "chmod 0640 moded", "symlink made link"];
    world.stage(&id, lines);
    (id, before)
}

fn goes_there_and_back(world: &World, what: &str) {
    let (id, before) = scene(world, false);
    round_trip(world, &id, &before, what, whole);
}

pub fn image(kind: &str) -> Option<Mount> {
    match kind {
        "tmpfs" => Mount::tmpfs("size=160m"),
        "ext4" => Mount::image(64, &["mkfs.ext4", "-q", "-m", "0"]),
        _ => Mount::image(320, &[&format!("mkfs.{kind}"), "-q"]),
    }
}

/// Some files have blocks of the tree in a snapshot, where the file system can share them.
fn large_files_of_a_snapshot_come_back(world: &World, kind: &str) {
    for (name, byte) in [("still", 1), ("written", 2), ("young", 3)] {
        world.write(name, vec![byte; 5 << 20]);
    }
    // Some that are hashed ahead.
    let more: Vec<String> = (0..9).map(|i| format!("more/{i}")).collect();
    for (name, byte) in more.iter().zip(10..) {
        world.write(name, vec![byte; 1 << 20]);
    }
    // One that somebody has open for writing is not believed, and one that is as young as the clock is coarse is not either.
    let open = std::fs::File::options().write(true).open(world.path("written")).expect("a file");
    // Until the times of the first can be believed.
    let changed = world.path("still").metadata().and_then(|meta| meta.modified()).expect("a time");
    while changed.elapsed().unwrap_or_default() < std::time::Duration::from_millis(40) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    world.write("young", vec![4; 5 << 20]);
    let before = world.manifest();
    world.recant("snapshot create").ok();
    drop(open);
    for name in ["still", "written", "young"].into_iter().chain(more.iter().map(String::as_str)) {
        world.write(name, "something else");
    }
    world.recant("snapshot restore 0").ok();
    before.assert_same(&world.manifest(), kind);
}

/// Tree and store on each of these; and then the store on one, the tree on another.
fn they_hold_all(kinds: &[&str], pairs: &[(&str, &str)]) {
    for kind in kinds {
        let Some(mount) = image(kind) else { continue };
        for links in [false, true] {
            let world = World::on(&mount.point);
            let (id, before) = scene(&world, links);
            let after = round_trip(&world, &id, &before, kind, whole);
            assert!(!links || after.0[&b"outside"[..]].content == "file \"linked\"", "{kind}: {after}");
        }
        large_files_of_a_snapshot_come_back(&World::on(&mount.point), kind);
    }
    for (store, tree) in pairs {
        let (Some(store_mount), Some(tree_mount)) = (image(store), image(tree)) else { continue };
        let mut world = World::on(&tree_mount.point);
        world.set("RECANT_STORE", store_mount.point.join("store"));
        goes_there_and_back(&world, &format!("store on {store}, tree on {tree}"));
    }
}

#[test]
fn ext4_and_a_tmpfs_hold_tree_and_store_each_alone_and_both() {
    they_hold_all(&["ext4", "tmpfs"], &[("ext4", "tmpfs"), ("tmpfs", "ext4")]);
}

#[test]
#[ignore = "long: images of xfs and btrfs"]
fn so_do_xfs_and_btrfs() {
    they_hold_all(&["xfs", "btrfs"], &[("ext4", "xfs"), ("xfs", "btrfs"), ("btrfs", "ext4")]);
}

#[test]
fn names_outside_the_session_are_not_joined_again_between_two_file_systems_which_is_said_of_each_kind() {
    let (mut world, Some(store)) = (World::new(), elsewhere()) else { return };
    world.set("RECANT_STORE", store.path().join("store")).write("one", "linked").symlink("target", "link").fifo("pipe");
    for name in ["one", "link", "pipe"] {
        world.link(name, format!("{name}-outside"));
    }
    let before = world.manifest();
    let id = world.begin();
    world.stage(&id, ["write one apart", "delete link", "delete pipe"]);
    let said = world.recant(&format!("commit {id}")).ok();
    for what in ["other names outside the session", "a separate symlink", "a separate fifo"] {
        assert!(said.stderr().contains(what), "{said}");
    }
    let said = world.recant(&format!("rollback {id}")).with(4);
    for what in
        ["one: taken back as a separate file", "link: taken back as a separate symlink", "pipe: taken back as a separate fifo"]
    {
        assert!(said.stdout().contains(what), "{said}");
    }
    let but_links = |mut manifest: Manifest| {
        manifest.0.values_mut().for_each(|row| row.group = None);
        manifest
    };
    but_links(before).assert_same(&but_links(world.manifest()), "all but the links");
}

/// Where times are whole seconds (ext3, small ext4 of some years ago, FAT), a second write leaves no other time behind than the first.
#[test]
fn a_write_within_the_second_is_seen_where_times_are_whole_seconds() {
    let Some(mount) = Mount::of_whole_seconds() else { return };
    let world = World::on(&mount.point);
    let times = |name: &str| {
        let meta = world.path(name).symlink_metadata().expect("a file");
        (meta.mtime(), meta.mtime_nsec(), meta.ctime())
    };
    // `first` is what recant sees, `second` what is written after that; both within one second, else once more.
    let within = |name: &str, between: &dyn Fn() -> String| loop {
        world.write(name, "first.");
        let first = times(name);
        let done = between();
        world.write(name, "second");
        if times(name) == first {
            assert_eq!(first.1, 0, "whole seconds");
            return done;
        }
    };
    let staged = within("staged", &|| {
        let id = world.begin();
        world.stage_write(&id, "staged", "of the session");
        id
    });
    world.recant(&format!("commit {staged}")).with(3);
    assert_eq!(world.read("staged"), "second");

    let number = within("taken", &|| world.recant("snapshot create").ok().stdout());
    world.recant("snapshot create").ok();
    let said = world.recant(&format!("snapshot diff {} --name-only", number.trim())).ok();
    assert!(said.stdout().contains("taken"), "{said}");
    world.write("taken", "third.");
    world.recant("snapshot restore last taken --force").ok();
    assert_eq!(world.read("taken"), "second", "the last snapshot has what was written within the second");

    if common::can_run() {
        let run = || world.call(["run", "--", "sh", "-c", "echo of the run > held"]).run().ok().stdout();
        within("held", &run);
        world.recant("commit last").with(3);
        assert_eq!(world.read("held"), "second");
    }
}

/// The time that a directory was left with is compared as such a file system shows it, or the one before never comes back.
/// What is put has another time there than the one that it was to get: the undo has to know it by that.
#[test]
fn what_was_put_is_taken_back_where_times_are_whole_seconds() {
    let Some(mount) = Mount::of_whole_seconds() else { return };
    let (mut world, store) = (World::on(&mount.point), tempfile::tempdir().expect("a directory of another file system"));
    world.set("RECANT_STORE", store.path().join("store"));
    world.write("edited", "old");
    let before = world.manifest();
    let id = world.begin();
    world.stage_write(&id, "edited", "new").stage_write(&id, "made", "new");
    let row = Sweep { name: "commit", scene: &|| Some(()), verb: &|()| world.call(["commit", &id]), order: "kill:N" };
    row.run(|(), said, what| {
        let is_put = world.read("edited") == "new" && world.exists("made");
        let what = format!("{what}, then {}", world.recant("recover").ok());
        if world.status(&id) == "committed" {
            world.recant(&format!("rollback {id}")).ok();
        }
        before.assert_same(&world.manifest(), &what);
        Came::Unchanged((said.status, is_put))
    })
    .saw((137, true), 2)
    .saw((137, false), 10);
}

#[test]
fn a_directory_gets_its_time_back_where_times_are_whole_seconds() {
    let Some(mount) = Mount::of_whole_seconds() else { return };
    let world = World::on(&mount.point);
    world.write("d/old", "as it was");
    let dir = std::fs::File::open(world.path("d")).expect("the directory");
    dir.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000)).expect("a time");
    let before = world.manifest();
    let id = world.begin();
    world.stage(&id, ["write d/f of the session"]);
    round_trip(&world, &id, &before, "whole seconds", whole);
}

/// Such a file system says "no space left", and there is no room to be made.
#[test]
fn an_attribute_that_is_too_large_for_the_stores_file_system_is_said_to_be() {
    let ext4 = |block: &str| Mount::image(64, &["mkfs.ext4", "-q", "-b", block]);
    let (Some(store), Some(tree)) = (ext4("1024"), ext4("4096")) else { return };
    let mut world = World::on(&tree.point);
    world.set("RECANT_STORE", store.point.join("store"));
    world.write("f", "old");
    assert!(world.set_xattr("f", "user.large", vec![7; 4000]));
    let before = world.manifest();
    let id = world.recant("session new").id();
    world.recant(&format!("session delete {id} f")).ok();
    let said = world.recant(&format!("commit {id}")).with(1);
    let told = said.stderr();
    assert!(told.contains("an extended attribute of 4000 bytes") && told.contains("user.large"), "{said}");
    assert!(told.contains("use a store on the file system of the file") && !told.contains("make room"), "{said}");
    before.assert_same(&world.manifest(), "nothing was changed");
}

/// Where a rename has no flags, what is put has both names for a moment; and inodes may have no time of birth. What somebody writes
/// under the new name then is written to both.
#[test]
fn what_somebody_wrote_to_a_file_that_was_put_in_part_is_named_and_not_taken_away() {
    let mount = Mount::of_whole_seconds();
    let mounts = [None, mount.as_ref()].into_iter().take(1 + usize::from(mount.is_some()));
    for mount in mounts {
        let scene = || {
            let world = mount.map_or_else(World::new, |mount| World::on(&mount.point));
            let id = world.begin();
            world.stage(&id, ["write comes new"]);
            (world, id)
        };
        let (whole, id) = scene();
        let put = step_of(|| whole.call(["commit", &id]), &["renameat2", "/tree/comes"]);
        let (world, id) = scene();
        world.call(["commit", &id]).env("RECANT_STEPS", format!("fail:{put}:{};kill:{}", libc::EINVAL, put + 2)).run().with(137);
        world.write("comes", "of somebody else");
        let said = world.recant("recover").with(4);
        assert!(said.stdout().contains("/tree/comes (another process changed what was put there)"), "{said}");
        assert_eq!(world.read("comes"), "of somebody else", "{said}");
        world.recant(&format!("rollback {id} --force")).ok();
        assert!(!world.exists("comes"));
        let kept = std::fs::read_to_string(world.session(&id).join("displaced/2/1")).expect("what was found");
        assert_eq!((kept, world.journals()), ("of somebody else".into(), Vec::<String>::new()));
    }
}

#[test]
#[ignore = "long: an image of btrfs"]
fn a_run_on_the_real_tree_makes_and_removes_no_subvolume() {
    let Some(mount) = image("btrfs") else { return };
    let world = World::on(Path::new("/var/tmp"));
    let at = |name: &str| mount.point.join(name).display().to_string();
    run("btrfs", &["subvolume", "create", &at("there")]).expect("a subvolume");
    std::fs::write(mount.point.join("there/kept"), "kept").expect("a file");
    let probe = world.recant("run --in . -- true");
    if probe.status == 125 {
        return common::skip(&format!("no confinement here: {probe}"));
    }
    let (there, made) = (at("there"), at("made"));
    for words in [
        &["subvolume", "delete", &there][..],
        &["subvolume", "create", &made],
        &["subvolume", "snapshot", &there, &made],
        &["subvolume", "snapshot", "-r", &there, &made],
        &["property", "set", "-ts", &there, "ro", "true"],
    ] {
        let said = world.call([&["run", "--in", ".", "--", "btrfs"], words].concat()).run();
        assert!(said.status != 0 && said.stderr().contains("not permitted"), "{words:?}: {said}");
        assert!(mount.point.join("there/kept").exists() && !mount.point.join("made").exists(), "{words:?}");
    }
    std::fs::write(mount.point.join("there/more"), "not made read-only").expect("a file");
    common::way("subvolumes of btrfs made and removed", "Root", "--in", "closed");
}

/// A snapshot of btrfs has every inode number and time of birth of what it was taken of, on another device number.
#[test]
#[ignore = "long: an image of btrfs"]
fn files_of_two_subvolumes_that_share_inode_numbers_are_not_taken_for_names_of_one() {
    let (Some(store), Some(tree)) = (image("ext4"), image("btrfs")) else { return };
    let mut world = World::on(&tree.point);
    world.set("RECANT_STORE", store.point.join("store"));
    let path = |name: &str| world.path(name).display().to_string();
    run("btrfs", &["subvolume", "create", &path("one")]).expect("a subvolume");
    world.write("one/a", "of the first");
    std::fs::hard_link(world.path("one/a"), world.path("one/b")).expect("another name");
    run("btrfs", &["subvolume", "snapshot", &path("one"), &path("two")]).expect("a snapshot");
    std::fs::write(world.path("two/a"), "of the other one").expect("a write to both names");
    let before = world.manifest();
    let id = world.recant("session new").id();
    for path in ["one/a", "one/b", "two/a", "two/b"] {
        world.call(["session", "delete", &id, path]).run().ok();
    }
    world.recant(&format!("commit {id}")).ok();
    world.recant(&format!("checkpoint verify {id}")).ok();
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "each has its own content");
}

/// A tree that lies in the lower layer of overlayfs, as in a container's root.
struct Layered {
    world: World,
    mount: Mount,
    point: PathBuf,
    start: Manifest,
    /// "on" or "off", a mount option.
    index: &'static str,
    /// The store, where it does not lie on the overlay as well.
    _store: Option<tempfile::TempDir>,
}

impl Drop for Layered {
    fn drop(&mut self) {
        if let Err(why) = run("umount", &[&self.point.display().to_string()]) {
            println!("left mounted: {why}");
        }
    }
}

impl Layered {
    fn new(store_inside: bool) -> Option<Self> {
        let mount = image("ext4")?;
        let point = mount.point.join("merged");
        std::fs::create_dir(&point).expect("a mount point");
        let mut world = World::on(&point);
        let store = (!store_inside).then(|| tempfile::tempdir().expect("a directory"));
        if let Some(store) = &store {
            world.set("RECANT_STORE", store.path().join("store"));
        }
        world.write("edited", "old").write("gone", "away").write("moded", "x").symlink("nowhere", "link").fifo("fifo");
        world.write("full/sub/deep/b", "2").write("full/a", "1").mkdir("hollow").write("kept/c", "3").chmod("full/sub", 0o750);
        old_times(&world);
        let start = world.manifest();
        std::fs::rename(&point, mount.point.join("lower")).and_then(|()| std::fs::create_dir(&point)).expect("the layers");
        let layered = Self { world, mount, point, start, index: "off", _store: store };
        match layered.lay() {
            Ok(()) => Some(layered),
            Err(why) => {
                println!("skipped: a tree on overlayfs: {why}");
                None
            }
        }
    }

    fn lay(&self) -> Result<(), String> {
        let part = |name: &str| self.mount.point.join(name);
        for name in ["upper", "work"] {
            std::fs::create_dir(part(name)).expect("a directory");
        }
        let [lower, upper, work, at] = ["lower", "upper", "work", "merged"].map(|name| part(name).display().to_string());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work},index={}", self.index);
        run("mount", &["-t", "overlay", "overlay", "-o", &options, &at])
    }

    /// As it was, with no session in the store.
    fn reset(&self) {
        common::until("nothing works on the overlay", || run("umount", &[&self.point.display().to_string()]).is_ok());
        for gone in [self.mount.point.join("upper"), self.mount.point.join("work"), self.world.store()] {
            if gone.exists() {
                std::fs::remove_dir_all(gone).expect("a removal");
            }
        }
        self.lay().expect("the overlay");
    }

    /// A session in which what is below is changed, removed and replaced.
    fn stage(&self) -> String {
        let id = self.world.begin();
        let lines = "write edited new; write made/deep/er n; write kept/c 4; delete gone; delete full; delete link; delete fifo; \
                     delete hollow; chmod 0640 moded";
        self.world.stage(&id, lines.split("; "));
        id
    }
}

/// What is below an overlay becomes another inode when it is changed, and a directory that is there cannot be renamed.
#[test]
fn a_tree_in_a_lower_layer_of_overlayfs_goes_there_and_back() {
    for store_inside in [false, true] {
        let Some(layered) = Layered::new(store_inside) else { return };
        layered.start.assert_same(&layered.world.manifest(), "the same, in a layer");
        let start = layered.start.clone();
        let tried = layered.stage();
        let said = layered.world.recant(&format!("commit {tried} --dry-run")).ok();
        assert!(said.stderr().contains("on this file system what changes is copied, and a name is absent"), "{said}");
        layered.world.recant(&format!("discard {tried}")).ok();
        round_trip(&layered.world, &layered.stage(), &start, &format!("store inside: {store_inside}"), whole);
    }
}

#[test]
fn so_does_what_a_run_did_to_it() {
    let Some(layered) = Layered::new(false).filter(|_| common::can_run()) else { return };
    let world = &layered.world;
    let script = "echo new > edited; rm gone link fifo; rm -r full hollow; chmod 640 moded; mkdir -p made/deep; echo n > made/deep/er; mv kept other";
    let said = world.call(["run", "--", "sh", "-c", script]).run().ok();
    layered.start.assert_same(&world.manifest(), &said.to_string());
    // What is tried and undone has made other inodes of the files: that is nobody's change.
    world.call(["commit", "last"]).env("RECANT_STEPS", "kill:25").run().with(137);
    world.recant("recover").ok();
    world.recant("commit last").ok();
    assert_eq!((world.read("edited"), world.read("other/c")), ("new\n".into(), "3".into()));
    assert!(!world.exists("full") && !world.exists("kept"));
    world.recant("rollback last").ok();
    layered.start.assert_same(&world.manifest(), "rolled back");
}

/// With `index=on` all names of a file are copied up with the first of them.
#[test]
fn names_of_one_file_in_a_lower_layer_go_together() {
    for index in ["on", "off"] {
        let Some(mut layered) = Layered::new(false) else { return };
        layered.index = index;
        let below = layered.world.root().strip_prefix(&layered.point).expect("below");
        let lower = layered.mount.point.join("lower").join(below);
        std::fs::hard_link(lower.join("tree/edited"), lower.join("tree/full/other")).expect("a name");
        layered.reset();
        let world = &layered.world;
        let id = world.begin();
        world.stage(&id, ["delete edited", "delete full/other"]);
        let said = world.recant(&format!("commit {id}")).ok();
        assert!(!world.exists("edited") && !world.exists("full/other"), "{said}");
        world.recant(&format!("rollback {id}")).ok();
        let inode = |name: &str| std::fs::symlink_metadata(world.path(name)).expect("a file").ino();
        assert_eq!(inode("edited"), inode("full/other"), "index={index}: one file again");
        assert_eq!((world.read("edited"), world.read("full/other")), ("old".into(), "old".into()), "index={index}");
    }
}

/// A name is absent for a moment: it is seen to be.
#[test]
fn killed_at_its_steps_it_is_as_before_or_as_after() {
    let Some(layered) = Layered::new(false) else { return };
    let world = &layered.world;
    for verb in [COMMIT, ROLLBACK] {
        let row = Sweep {
            name: &format!("{} on overlayfs", verb.name),
            scene: &|| {
                layered.reset();
                let id = layered.stage();
                verb.first.iter().for_each(|verb| drop(world.call([*verb, &id]).run().ok()));
                Some((id, world.manifest()))
            },
            verb: &|(id, _)| world.call([verb.name, id]),
            order: "kill:N",
        };
        let (mut judge, mut absent) = (AllOrNothing::of(verb), 0);
        let tally = row.run(|(id, before), _, what| {
            absent += usize::from(!world.exists("edited"));
            judge.judge(world, id, before, what)
        });
        assert!(!is_whole() || absent > 0, "{}: it is never absent", verb.name);
        tally.saw(verb.from, 5).saw(verb.to, 2);
    }
}

#[test]
fn what_somebody_changes_on_overlayfs_before_a_recovery_stays() {
    for verb in ["commit", "rollback"] {
        let Some(layered) = Layered::new(false) else { return };
        let world = &layered.world;
        let scene = || {
            layered.reset();
            let id = layered.stage();
            if verb == "rollback" {
                world.recant(&format!("commit {id}")).ok();
            }
            id
        };
        let id = scene();
        let seal = step_of(|| world.call([verb, &id]), &SEAL);
        let id = scene();
        let before = world.manifest();
        world.call([verb, &id]).env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
        world.write("edited", "theirs").write("moded", "theirs").chmod("moded", 0o600);
        let in_the_way = if verb == "commit" { "full" } else { "made" };
        if verb == "rollback" {
            world.remove("full");
        }
        world.write(in_the_way, "theirs");
        let said = world.recant("recover").with(4);
        let what = format!("{verb}: {said}");
        for name in ["edited", in_the_way, "moded"] {
            assert_eq!(world.read(name), "theirs", "{name}: {what}");
        }
        assert_eq!(world.read("kept/c"), if verb == "commit" { "3" } else { "4" }, "the rest is undone: {what}");
        assert_eq!(world.leftovers(), Vec::<String>::new(), "{what}");
        let onward = if verb == "commit" { "rollback" } else { "redo" };
        let on = world.recant(&format!("{onward} {id} --force")).ok();
        let calm = |manifest: &Manifest| {
            let mut manifest = manifest.clone().without_directory_times();
            manifest.0.remove(&b"moded"[..]);
            manifest
        };
        calm(&before).assert_same(&calm(&world.manifest()), &format!("{what}\n{on}"));
        let kept = world.call(["cat", &id, "edited", "--displaced"]).run().ok();
        assert_eq!(kept.stdout(), "theirs", "{what}");
    }
}

#[test]
fn what_somebody_puts_where_a_name_is_absent_for_a_moment_costs_nobody_anything() {
    let Some(layered) = Layered::new(false) else { return };
    for Verb { name: verb, first, .. } in [COMMIT, ROLLBACK, REDO] {
        let world = &layered.world;
        let scene = || {
            layered.reset();
            let id = world.begin();
            world.stage(&id, ["write edited new", "write made n"]);
            first.iter().for_each(|first| drop(world.recant(&format!("{first} {id}")).ok()));
            id
        };
        let id = scene();
        let n = step_of(|| world.call([verb, &id]), &["renameat2", "/tree/.recant-", "/tree/edited\n"]);
        for steps in [format!("run:{n}:printf theirs > {}", world.path("edited").display()), format!("kill:{n}")] {
            let id = scene();
            let said = world.call([verb, &id]).env("RECANT_STEPS", &steps).run();
            let mut what = format!("{verb}, {steps}: {said}");
            if steps.starts_with("kill") {
                assert!(said.status == 137 && !world.exists("edited"), "{what}");
                world.write("edited", "theirs");
                what += &world.recant("recover").with(4).to_string();
            } else {
                assert_eq!(said.status, 4, "{what}");
            }
            assert_eq!(world.read("edited"), "theirs", "{what}");
            assert_eq!(world.exists("made"), verb == "rollback", "the rest is undone: {what}");
            for content in ["old", "new", "theirs"] {
                let store = layered._store.as_ref().expect("a store of its own").path();
                let find = format!("grep -rlx {content} {} {}", world.tree().display(), store.display());
                assert_eq!(world.program("sh", ["-c", &find]).run().status, 0, "{content} is lost: {what}");
            }
            assert_eq!(world.leftovers(), Vec::<String>::new(), "{what}");
            let again = world.recant(&format!("{verb} {id} --force"));
            assert_eq!(again.status, 0, "{what}\n{again}");
            assert_eq!(world.read("edited"), if verb == "rollback" { "old" } else { "new" }, "{what}\n{again}");
        }
    }
}

/// A link and an unlink stand for a rename there: killed in between, both names are there. And what is put and edited then is somebody's.
#[test]
fn on_a_portable_road_a_kill_at_any_step_leaves_no_stray_name_and_an_edit_is_somebody_s() {
    let Some(mount) = Mount::sshfs() else { return };
    let store = tempfile::tempdir().expect("a directory");
    let mut world = World::on(&mount.point);
    world.set("RECANT_STORE", store.path().join("store")).write("edited", "old").write("gone", "away");
    let scene = || {
        let id = world.begin();
        world.stage(&id, ["write edited new", "write made n", "delete gone"]);
        id
    };
    let is_before = |what: &str| {
        let read = ["edited", "gone"].map(|name| world.read(name));
        assert!(read == ["old", "away"] && !world.exists("made") && world.leftovers().is_empty(), "{what}: {read:?}");
    };
    let commit = |id: &String| world.call(["commit", id]);
    let row = Sweep {
        name: "commit by sshfs",
        scene: &|| {
            // What the steps were counted of is taken back.
            world.exists("made").then(|| world.recant("rollback last").ok());
            Some(scene())
        },
        verb: &commit,
        order: "kill:N",
    };
    let tally = row.run(|id, _, what| {
        let what = format!("{what}, then {}", world.recant("recover").ok());
        let status = world.status(id);
        if status == "committed" {
            world.recant(&format!("rollback {id}")).ok();
        }
        is_before(&what);
        if status == "committed" { Came::Used(true) } else { Came::Unchanged(false) }
    });
    tally.saw(true, 2).saw(false, 10);
    let id = scene();
    let seal = step_of(|| commit(&id), &SEAL);
    world.recant(&format!("rollback {id}")).ok();
    let id = scene();
    commit(&id).env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
    assert_eq!(world.read("made"), "n");
    world.program("sh", ["-c", "printf theirs >> made"]).cwd(world.tree()).run().ok();
    let said = world.recant("recover").with(4);
    assert!(said.stdout().contains("/tree/made (another process changed what was put there)"), "{said}");
    assert_eq!((&*world.read("made"), &*world.read("edited")), ("ntheirs", "old"), "{said}");
    world.recant(&format!("rollback {id} --force")).ok();
    is_before("the rest");
}

/// Of another machine's file system nothing tells which object is which. (sshfs sets no time of a link; it keeps whole seconds.)
#[test]
fn a_tree_on_another_machine_s_file_system_goes_there_and_back() {
    let calm = |mut manifest: Manifest| {
        manifest.0.values_mut().for_each(|row| row.mtime.1 = 0);
        manifest.without_directory_times()
    };
    for store_inside in [false, true] {
        let Some(mount) = Mount::sshfs() else { return };
        let mut world = World::on(&mount.point);
        let store = tempfile::tempdir().expect("a directory");
        if !store_inside {
            world.set("RECANT_STORE", store.path().join("store"));
        }
        world.write("edited", "old").write("gone", "away").write("full/sub/b", "2").write("moded", "x");
        let before = world.manifest();
        let id = world.begin();
        world.stage(&id, ["write edited new", "write made/deep/er n", "delete gone", "delete full", "chmod 0640 moded"]);
        let what = format!("sshfs, store inside: {store_inside}");
        round_trip(&world, &id, &before, &what, |mut manifest| {
            manifest.0.values_mut().for_each(|row| row.mtime.1 = 0);
            manifest
        });
        let verb = if store_inside { REDO } else { ROLLBACK };
        let row = Sweep {
            name: &format!("{what}: {}", verb.name),
            scene: &|| {
                (world.status(&id) == verb.to).then(|| world.call([verb.back, &id]).run().ok());
                Some(())
            },
            verb: &|()| world.call([verb.name, &id]),
            order: "kill:N",
        };
        let tally = row.run(|(), _, what| {
            let what = format!("{what}, then {}", world.recant("recover").ok());
            let status = world.status(&id);
            if status != "committed" {
                calm(before.clone()).assert_same(&calm(world.manifest()), &what);
            }
            assert_eq!(world.leftovers(), Vec::<String>::new(), "{what}");
            if status == verb.from { Came::Unchanged(false) } else { Came::Used(true) }
        });
        assert!(tally.steps > 40, "{what}: {}", tally.steps);
        if world.status(&id) == "committed" {
            world.recant(&format!("rollback {id}")).ok();
        }
        world.recant("snapshot create").ok();
        world.write("edited", "theirs").remove("gone").remove("full").write("more", "theirs");
        world.recant("snapshot restore 0 -y").ok();
        calm(before).assert_same(&calm(world.manifest()), &format!("{what}: restored"));
        assert!(world.recant("recover").ok().stderr().contains("nothing was interrupted"), "{what}: it is done");
        let id = world.begin();
        world.recant(&format!("session symlink {id} nowhere link")).ok();
        next_second();
        // The protocol has no time of a link itself: it stays that of the link's making, and that is said.
        let said = world.recant(&format!("commit {id}")).with(4);
        assert!(said.stdout().contains("skipped   link: its time could not be set"), "{what}: {said}");
        assert_eq!(std::fs::read_link(world.path("link")).expect("a link"), Path::new("nowhere"), "{what}");
    }
}

/// Subvolumes of btrfs are one mount, and yet no rename leads from the one to the other.
#[test]
#[ignore = "long: an image of btrfs"]
fn a_tree_in_another_subvolume_than_the_store_goes_there_and_back() {
    let Some(mount) = image("btrfs") else { return };
    run("btrfs", &["subvolume", "create", &mount.point.join("store").display().to_string()]).expect("a subvolume");
    let mut world = World::on(&mount.point);
    world.set("RECANT_STORE", mount.point.join("store/store"));
    goes_there_and_back(&world, "two subvolumes");
}

/// A directory demands its number of all that is renamed into it: chattr(1), `+P`.
fn demand_a_number(tree: &Path, number: &str) {
    let at = tree.display().to_string();
    // Links and special files get none.
    drop(run("chattr", &["-R", "-p", number, &at]));
    run("find", &[&at, "-type", "d", "-exec", "chattr", "+P", "{}", "+"]).expect("a directory that demands it");
}

/// The scene with links and special files that have no number, in directories that demand one.
fn numbered(world: &World, after: impl FnOnce(&World)) -> (String, Manifest) {
    world.write("edited", "old").write("gone", "away").write("moded", "x").symlink("nowhere", "link").fifo("fifo");
    world.write("full/a", "1").link("full/a", "full/again").write("full/sub/b", "2").symlink("a", "full/link").mkdir("hollow");
    after(world);
    old_times(world);
    let before = world.manifest();
    let id = world.begin();
    let lines = "write edited new; write made/deep/er n; delete gone; delete full; symlink made link; delete fifo; \
                 chmod 0640 moded; delete hollow; symlink made made/link";
    world.stage(&id, lines.split("; "));
    (id, before)
}

/// Nothing is renamed into a directory that demands another project number, not even by another name in it.
#[test]
#[ignore = "long: images of xfs"]
fn where_a_directory_demands_a_project_number_copies_are_made_both_ways() {
    type When = (&'static str, fn(&World), fn(&World));
    let of_tree = |world: &World| demand_a_number(&world.tree(), "7");
    let of_store = |world: &World| demand_a_number(&world.store(), "9");
    let nothing = |_: &World| {};
    let whens: [When; 5] = [
        ("before the commit", of_tree, nothing),
        ("after the commit", nothing, of_tree),
        ("of one directory", |world| demand_a_number(&world.path("full"), "7"), nothing),
        ("of the store, after the commit", nothing, of_store),
        ("of both", of_tree, of_store),
    ];
    for (what, first, later) in whens {
        let Some(mount) = image("xfs") else { return };
        let world = World::on(&mount.point);
        let (id, before) = numbered(&world, first);
        let twice = |verb: &str| {
            world.recant(&format!("{verb} {id} --dry-run")).ok();
            world.recant(&format!("{verb} {id}")).ok();
            world.assert_tidy(&format!("{what}: {verb}"));
        };
        twice("commit");
        let after = world.manifest();
        assert!(!before.difference(&after).is_empty(), "{what}");
        later(&world);
        for (verb, want) in [("rollback", &before), ("redo", &after), ("rollback", &before)] {
            twice(verb);
            // What a directory that demands a number is given changes no time of its own.
            want.clone().without_times().assert_same(&world.manifest().without_times(), &format!("{what}: {verb}"));
        }
    }
}

/// A tree with a subvolume of btrfs in it, and a session that removes both.
fn with_a_subvolume(world: &World) -> (String, Manifest) {
    world.mkdir("top");
    run("btrfs", &["subvolume", "create", &world.path("top/inner").display().to_string()]).expect("a subvolume");
    world.write("top/inner/a", "1").link("top/inner/a", "top/inner/b").symlink("a", "top/inner/link");
    world.write("top/inner/sub/c", "2").write("top/beside", "3");
    old_times(world);
    let before = world.manifest();
    let id = world.begin();
    world.stage(&id, ["delete top"]);
    (id, before)
}

fn is_subvolume(world: &World, name: &str) -> bool {
    world.path(name).metadata().expect("a directory").ino() == 256
}

#[test]
#[ignore = "long: an image of btrfs"]
fn a_subvolume_that_goes_with_what_is_in_it_comes_back_as_one() {
    let Some(mount) = image("btrfs") else { return };
    let world = World::on(&mount.point);
    let (id, before) = with_a_subvolume(&world);
    round_trip(&world, &id, &before, "a subvolume", whole);
    assert!(is_subvolume(&world, "top/inner"));
    let other = tempfile::tempdir().expect("a directory");
    let mut world = World::on(&mount.point);
    world.set("RECANT_STORE", other.path().join("store"));
    let (id, before) = with_a_subvolume(&world);
    round_trip(&world, &id, &before, "a subvolume, the store elsewhere", whole);
}

#[test]
#[ignore = "long: an image of btrfs"]
fn killed_at_its_steps_what_goes_in_place_is_as_before_or_as_after() {
    let Some(mount) = image("btrfs") else { return };
    for verb in [COMMIT, ROLLBACK, REDO] {
        let row = Sweep {
            name: &format!("{} of a subvolume", verb.name),
            scene: &|| {
                let world = World::on(&mount.point);
                let (id, before) = with_a_subvolume(&world);
                verb.first.iter().for_each(|verb| drop(world.call([*verb, &id]).run().ok()));
                let before = if verb.first.is_empty() { before } else { world.manifest() };
                Some((world, id, before))
            },
            verb: &|(world, id, _)| world.call([verb.name, id]),
            order: "kill:N",
        };
        let mut judge = AllOrNothing::of(verb);
        let tally = row.run(|(world, id, before), _, what| judge.judge(world, id, before, what));
        tally.saw(verb.from, 5).saw(verb.to, 2);
    }
}

#[test]
#[ignore = "long: an image of btrfs"]
fn what_somebody_has_or_writes_where_it_goes_in_place_stays() {
    let Some(mount) = image("btrfs") else { return };
    let (world, other) = (World::on(&mount.point), World::on(&mount.point));
    // What a process has open for writing is not removed.
    let (id, before) = with_a_subvolume(&world);
    let open = std::fs::File::options().append(true).open(world.path("top/inner/sub/c")).expect("a file");
    let said = world.recant(&format!("commit {id} --force")).with(3);
    assert!(said.stderr().contains("top/inner/sub/c: a process has it open for writing"), "{said}");
    before.assert_same(&world.manifest(), "undone");
    drop(open);
    world.recant(&format!("commit {id}")).ok();
    // What was put and edited before a recovery is somebody's.
    let (id, _) = with_a_subvolume(&other);
    other.recant(&format!("commit {id}")).ok();
    let seal = step_of(|| other.call(["rollback", &id]), &SEAL);
    other.recant(&format!("redo {id}")).ok();
    other.call(["rollback", &id]).env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
    std::fs::write(other.path("top/inner/sub/c"), "theirs").expect("an edit");
    let said = other.recant("recover").with(4);
    assert!(said.stdout().contains("top/inner/sub/c (another process changed what was put there)"), "{said}");
    assert_eq!(other.read("top/inner/sub/c"), "theirs", "{said}");
}

#[test]
#[ignore = "long: an image of btrfs"]
fn what_lies_in_a_read_only_subvolume_is_refused_before_anything_is_changed() {
    let Some(mount) = image("btrfs") else { return };
    let world = World::on(&mount.point);
    world.mkdir("top");
    let path = |name: &str| world.path(name).display().to_string();
    run("btrfs", &["subvolume", "create", &path("top/inner")]).expect("a subvolume");
    world.write("top/inner/a", "1").write("top/inner/b", "2");
    run("btrfs", &["subvolume", "snapshot", "-r", &path("top/inner"), &path("frozen")]).expect("a snapshot");
    let before = world.manifest();
    for line in ["write frozen/a new", "chmod 0600 frozen/b", "delete frozen"] {
        let id = world.begin();
        world.stage(&id, ["write free x", line]);
        for verb in ["commit --dry-run", "commit"] {
            let said = world.recant(&format!("{verb} {id}")).with(1);
            assert!(said.stderr().contains("it lies in a read-only subvolume"), "{line}: {said}");
            before.assert_same(&world.manifest(), line);
        }
    }
}

#[test]
fn two_mounts_of_one_file_system_are_two_roads() {
    let world = World::new();
    world.mkdir("../real").mkdir("../mnt");
    let Some(mount) = Mount::bind(&world.root().join("real"), world.root().join("mnt")) else { return };
    let mut inner = World::on(&mount.point);
    inner.set("RECANT_STORE", world.store());
    goes_there_and_back(&inner, "a bind mount: equal st_dev, EXDEV");
}

#[test]
fn a_file_system_where_two_names_cannot_swap_holds_tree_and_store() {
    let Some(mount) = Mount::bindfs() else { return };
    let world = World::on(&mount.point);
    let swap = |flags| {
        let (a, b) = (world.root().join("a"), world.root().join("b"));
        std::fs::write(&a, "").expect("a file");
        let cwd = rustix::fs::CWD;
        rustix::fs::renameat_with(cwd, &a, cwd, &b, flags).expect_err("a file system that takes no flags");
    };
    swap(rustix::fs::RenameFlags::EXCHANGE);
    swap(rustix::fs::RenameFlags::NOREPLACE);
    // bindfs sets no mtime alone (utimensat(2) with UTIME_OMIT), and says that it has.
    let holds = |world: &World, what: &str| {
        let (id, before) = without_links(world);
        round_trip(world, &id, &before, what, whole);
    };
    holds(&world, "bindfs");
    let other = tempfile::tempdir().expect("a directory");
    for (tree, store, what) in [(&*mount.point, other.path(), "tree on bindfs"), (other.path(), &mount.point, "store on bindfs")]
    {
        let mut world = World::on(tree);
        world.set("RECANT_STORE", store.join("store"));
        holds(&world, what);
    }
}

/// Originals go to where nobody has encrypted them, unless the store lies in an encrypted directory, too.
#[test]
fn originals_that_leave_an_encrypted_directory_are_said() {
    let Some(mount) = Mount::image(64, &["mkfs.ext4", "-q", "-O", "encrypt"]) else { return };
    // FS_IOC_ADD_ENCRYPTION_KEY and FS_IOC_SET_ENCRYPTION_POLICY of <linux/fscrypt.h>.
    let script = "import fcntl,struct,os,sys\nmount,directory=sys.argv[1:]\n\
        arg=bytearray(struct.pack('<II32sII32s',2,0,b'',64,0,b'')+b'k'*64)\n\
        fcntl.ioctl(os.open(mount,os.O_RDONLY),0xc0506617,arg,True)\nos.mkdir(directory)\n\
        fcntl.ioctl(os.open(directory,os.O_RDONLY),0x800c6613,struct.pack('<8B16s',2,1,4,0,0,0,0,0,bytes(arg[8:24])))\n";
    let directory = mount.point.join("secret");
    let [at, secret] = [&mount.point, &directory].map(|path| path.display().to_string());
    if let Err(why) = run("python3", &["-c", script, &at, &secret]) {
        return println!("skipped: originals that leave an encrypted directory: {why}");
    }
    for (store, said_so) in [(mount.point.join("store"), true), (directory.join("store"), false)] {
        let mut world = World::on(&directory);
        world.set("RECANT_STORE", &store);
        world.write("edited", "old").write("gone", "away");
        let id = world.begin();
        world.stage(&id, ["write edited new", "write made new", "delete gone"]);
        let said = world.recant(&format!("commit {id}")).ok();
        let text = "edited: the original is encrypted here";
        assert_eq!(said.stderr().contains(text), said_so, "{said}");
        world.recant(&format!("rollback {id}")).ok();
        assert_eq!((world.read("edited"), world.read("gone")), ("old".into(), "away".into()));
    }
}

/// By default FUSE keeps how many names a file has for a second, of each name by itself; recant's own tries change that.
#[test]
fn names_that_a_file_system_remembers_wrongly_are_linked_again_and_nothing_else_is_said() {
    let Some(mount) = Mount::bindfs_with(&[]) else { return };
    let (mut world, store) = (World::on(&mount.point), tempfile::tempdir().expect("a directory"));
    world.set("RECANT_STORE", store.path().join("store"));
    world.write("one", "linked").link("one", "two").write("three", "old");
    let id = world.begin();
    // Three can't be swapped: all is undone, and planned once more.
    world.stage(&id, ["delete one", "delete two", "write three new"]);
    for verb in ["commit", "rollback"] {
        let said = world.recant(&format!("{verb} {id}")).ok();
        assert!(!said.stderr().contains("other names") && !said.stdout().contains("skipped"), "{verb}: {said}");
    }
    let names = || ["one", "two"].map(|name| world.path(name).metadata().expect("it is back"));
    let begun = std::time::Instant::now();
    while names()[0].nlink() != 2 && begun.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let [one, two] = names();
    assert_eq!((one.ino(), one.nlink()), (two.ino(), 2));
}

/// Whatever a file system says that it has set is looked at, where it is none that is known: strace has it say so and set nothing.
#[test]
fn times_that_a_file_system_only_says_it_has_set_are_named() {
    let Some(mount) = Mount::bindfs() else { return };
    if !has_strace("times that are not set") {
        return;
    }
    let (mut world, store) = (World::on(&mount.point), tempfile::tempdir().expect("a directory"));
    world.set("RECANT_STORE", store.path().join("store"));
    world.write("edited", "old").write("moded", "x").write("same", "s");
    let id = world.begin();
    world.stage(&id, ["write edited new", "chmod 0600 moded", "chmod 0600 same"]);
    for verb in ["commit", "rollback"] {
        let options = ["-f", "-o", "/dev/null", "-e", "trace=utimensat", "-e", "inject=utimensat:retval=0"];
        let said = world.program("strace", options.into_iter().chain([common::recant(), verb, &id])).run();
        assert_eq!(said.status, 4, "{verb}: {said}");
        let text = format!("{}{}", said.stdout(), said.stderr());
        assert!(text.contains("edited") && text.contains("its time could not be set"), "{verb}: {said}");
        world.assert_tidy(verb);
    }
    assert_eq!(world.read("edited"), "old");
}

/// Names come there by link and unlink: killed between the two, a path has both. A file with names outside of the session tells nothing of how
/// many it has to have.
#[test]
fn killed_before_any_step_where_names_come_by_links_it_is_all_done_or_not_begun() {
    let Some(mount) = Mount::bindfs() else { return };
    for store_inside in [true, false] {
        let (mut world, other) = (World::on(&mount.point), tempfile::tempdir().expect("a directory of another file system"));
        let store = if store_inside { world.root() } else { other.path() }.join("store").display().to_string();
        let id = if store_inside {
            scene(&world, false).0
        } else {
            world.set("RECANT_STORE", &store);
            world.write("one", "linked").link("one", "outside").write("two", "linked").link("two", "beside");
            let id = world.begin();
            world.stage(&id, ["delete one", "write two apart"]);
            id
        };
        let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.root()).run().ok();
        shell(&format!("mkdir saved && cp -a tree {store} saved"));
        // Between two file systems a file does not get its other names back.
        let of = || {
            let mut manifest = world.manifest().without_times();
            manifest.0.values_mut().filter(|_| !store_inside).for_each(|row| row.group = None);
            manifest
        };
        let before = of();
        world.recant(&format!("commit {id}")).ok();
        let after = of();
        let row = Sweep {
            name: &format!("commit on bindfs, store inside: {store_inside}"),
            scene: &|| Some(()),
            verb: &|()| {
                // What a killed process had open keeps a hidden name here until the file system has heard of its end.
                let removal = format!("for n in $(seq 100); do rm -rf tree {store} && break; sleep 0.1; done");
                shell(&format!("{removal}; cp -a saved/tree . && cp -a saved/store {store}"));
                world.call(["commit", &id])
            },
            order: "kill:N",
        };
        let tally = row.run(|(), _, what| {
            let what = format!("{what}, then {}", world.recant("recover").ok());
            let now = of();
            let is_done = now == after;
            if !is_done {
                before.assert_same(&now, &what);
            }
            world.assert_tidy(&what);
            Came::Unchanged(is_done)
        });
        tally.saw(false, 30).saw(true, 2);
    }
}

/// A commit that is refused: exit 1, the path named, nothing changed, nothing left; its dry run says the same.
#[track_caller]
fn refused(world: &World, id: &str, path: &str, user: Option<u32>, what: &str) {
    let before = world.manifest();
    for dry in [true, false] {
        let call = world.call(["commit", id, "--json"].into_iter().chain(dry.then_some("--dry-run")));
        let said = user.map_or_else(|| world.call(["commit", id, "--json"]), |uid| call.user(uid, uid)).run();
        assert_eq!(said.status, 1, "{what}: {said}");
        let named = world.path(path).display().to_string();
        assert!(said.against().contains(&named), "{what}: {named} is named: {said}");
        before.assert_same(&world.manifest(), what);
        assert_eq!(world.leftovers(), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn a_read_only_mount_and_a_directory_that_is_mounted_itself_are_refused_before_anything_is_changed() {
    let world = World::new();
    world.write("real/file", "old").write("calm", "old").mkdir("read-only").mkdir("target");
    let Some(mount) = Mount::bind(&world.path("real"), world.path("read-only")) else { return };
    let [into, itself] = [(); 2].map(|()| world.begin());
    world.stage(&into, ["write calm new", "write read-only/file new"]).stage(&itself, ["write calm new", "chmod 0700 target"]);
    run("mount", &["-o", "remount,bind,ro", &mount.point.display().to_string()]).expect("a read-only mount");
    refused(&world, &into, "read-only", None, "a read-only mount");
    let _target = Mount::bind(&world.path("real"), world.path("target")).expect("as before");
    refused(&world, &itself, "target", None, "a mount point");
}

#[test]
fn an_immutable_file_and_directory_are_refused_before_anything_is_changed() {
    let Some(mount) = image("ext4") else { return };
    for (flag, on, named) in [("+i", "file", "file"), ("+a", "file", "file"), ("+i", "sub", "sub/in")] {
        let world = World::on(&mount.point);
        world.write("file", "old").write("calm", "old").write("sub/in", "old");
        let id = world.begin();
        world.stage(&id, ["write calm new", "write file new", "write sub/in new"]);
        let path = world.path(on).display().to_string();
        run("chattr", &[flag, &path]).expect("chattr");
        refused(&world, &id, named, None, &format!("chattr {flag} {on}"));
        run("chattr", &[&flag.replace('+', "-"), &path]).expect("chattr");
        world.recant(&format!("commit {id}")).ok();
    }
}

#[test]
fn what_belongs_to_somebody_else_is_refused_before_anything_is_changed() {
    if !is_root("directories of somebody else") {
        return;
    }
    let uid = 65534;
    let world = World::new();
    world.write("mine/calm", "old").write("theirs/file", "old").write("sticky/file", "old").chmod("sticky", 0o1777);
    run("chown", &["-R", "65534:65534", &world.root().display().to_string()]).expect("chown");
    for path in ["theirs", "theirs/file", "sticky", "sticky/file"] {
        std::os::unix::fs::chown(world.path(path), Some(1), Some(1)).expect("another owner");
    }
    let call = |words: &str| world.call(words.split(' ')).user(uid, uid).stdin("new").run();
    if call("--version").status != 0 {
        println!("skipped: directories of somebody else: user {uid} cannot run {}", common::recant());
        return;
    }
    for (path, named) in [("theirs/file", "theirs"), ("theirs/made", "theirs"), ("sticky/file", "sticky/file")] {
        let id = call("session new").ok().id();
        call(&format!("session write {id} mine/calm")).ok();
        let words = if path == "theirs/made" { "session write" } else { "session delete" };
        call(&format!("{words} {id} {path}")).ok();
        refused(&world, &id, named, Some(uid), path);
    }
}

/// Of what goes, the store on another file system can keep only a copy, which a user gives to nobody else: that is found before anything is
/// made.
#[test]
fn what_belongs_to_somebody_else_is_not_copied_into_a_store_by_a_user() {
    let (true, mut world, Some(elsewhere)) = (is_root("files of somebody else"), World::new(), elsewhere()) else { return };
    world.set("RECANT_STORE", elsewhere.path().join("store")).write("mine", "old").write("theirs", "old");
    let own = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("another owner");
    [world.root(), &world.root().join("home"), &world.tree(), &world.path("mine"), elsewhere.path()].into_iter().for_each(own);
    let call = |words: &str| world.call(words.split(' ')).user(65534, 65534).run();
    let id = call("session new").ok().id();
    ["mine", "theirs"].into_iter().for_each(|path| drop(call(&format!("session delete {id} {path}")).ok()));
    for words in ["commit ID --dry-run", "commit ID"] {
        let said = call(&words.replace("ID", &id)).with(1);
        assert!(said.stderr().contains("/theirs: the object there, of which the store"), "{words}: {said}");
        assert!(said.stderr().contains("nothing was changed"), "{words}: {said}");
    }
    call(&format!("commit {id} mine")).ok();
    call("undo -y").ok();
    assert_eq!((world.read("mine"), world.read("theirs")), ("old".into(), "old".into()));
    let part = call("list --json").ok().json()["sessions"][0]["id"].as_str().expect("the part").to_owned();
    std::os::unix::fs::chown(world.path("mine"), None, Some(0)).expect("another group");
    for words in ["redo ID --force --dry-run", "redo ID --force"] {
        let said = call(&words.replace("ID", &part)).with(1);
        assert!(said.stderr().contains(" belongs to group 0, and user 65534 cannot give a file to it"), "{words}: {said}");
    }
    std::os::unix::fs::chown(world.path("mine"), None, Some(65534)).expect("its group");
    let with = |rights: &str, words: &str| {
        let (inherited, ambient) = (format!("--inh-caps={rights}"), format!("--ambient-caps={rights}"));
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups", &inherited, &ambient];
        let words: Vec<_> = [common::recant()].into_iter().chain(words.split(' ')).collect();
        world.program("setpriv", user.into_iter().chain(words)).run()
    };
    let before = world.manifest().without_directory_times();
    // Whoever may give files away alone may not set a time on them then.
    let said = with("+chown", &format!("commit {id}")).with(1);
    assert!(said.stderr().contains("/theirs: the object there, of which the store"), "{said}");
    for verb in ["commit", "rollback"] {
        with("+chown,+fowner,+dac_override", &format!("{verb} {id}")).ok();
        assert_eq!(world.exists("theirs"), verb == "rollback");
    }
    before.assert_same(&world.manifest().without_directory_times(), "given back to whom it belongs");
    // What stays the caller's own may get its group by the one right alone.
    std::os::unix::fs::chown(world.path("mine"), None, Some(0)).expect("another group");
    let before = world.manifest().without_directory_times();
    for verb in ["redo", "rollback"] {
        with("+chown", &format!("{verb} {part} --force")).ok();
        assert_eq!(world.exists("mine"), verb == "rollback", "{verb}");
    }
    before.assert_same(&world.manifest().without_directory_times(), "given back with its group");
}

fn fill(directory: &Path) {
    // As much as fits: in large pieces, then in small ones, then in one byte.
    for (i, size) in [1 << 20, 64 << 10, 4096, 1].into_iter().enumerate() {
        for n in 0.. {
            let file = directory.join(format!("fill-{i}-{n}"));
            if std::fs::write(&file, vec![b'f'; size]).is_err() {
                drop(std::fs::remove_file(&file));
                break;
            }
        }
    }
}

/// Takes all inodes that there are.
fn no_inodes(directory: &Path) {
    (0..).find(|n| std::fs::write(directory.join(n.to_string()), "").is_err()).expect("an end");
}

#[test]
fn without_room_in_tree_or_store_a_commit_is_undone_and_then_it_works() {
    let full = || Mount::image(24, &["mkfs.ext4", "-q", "-m", "0"]);
    for (what, mount, exhaust) in [
        ("a full disk of the tree", full(), fill as Exhaust),
        ("a full disk of the store", full(), fill),
        ("no inode for either", Mount::tmpfs("size=64m,nr_inodes=400"), no_inodes),
    ] {
        let Some(mount) = mount else { continue };
        let elsewhere = tempfile::tempdir().expect("a directory");
        let (tree, store) = match what {
            "a full disk of the tree" => (&*mount.point, elsewhere.path()),
            "a full disk of the store" => (elsewhere.path(), &*mount.point),
            _ => (&*mount.point, &*mount.point),
        };
        let mut world = World::on(tree);
        world.set("RECANT_STORE", store.join("store"));
        let (id, before) = scene(&world, false);
        let ballast = mount.point.join("ballast");
        std::fs::create_dir(&ballast).expect("a directory");
        exhaust(&ballast);
        let said = world.recant(&format!("commit {id}")).with(1);
        before.assert_same(&world.manifest(), &format!("{what}: {said}"));
        assert!(said.stderr().contains("make room "), "{what}: {said}");
        assert!(!said.stderr().contains(".recant-"), "{what}: a person's path is named: {said}");
        assert_eq!(world.leftovers(), Vec::<String>::new(), "{what}");
        std::fs::remove_dir_all(&ballast).expect("room again");
        world.recant(&format!("commit {id}")).ok();
        world.recant(&format!("rollback {id}")).ok();
        before.assert_same(&world.manifest(), &format!("{what}: with room again"));
    }
}

/// 500 files are changed by a run, which knows no hash of them, where 1,200 KiB are free; what is free after the commit is taken, too.
#[test]
fn a_commit_that_copies_nothing_takes_two_kib_of_room_a_change_with_those_of_its_rollback() {
    let Some(mount) = Mount::image(24, &["mkfs.ext4", "-q", "-m", "0"]).filter(|_| common::can_run()) else { return };
    let world = World::on(&mount.point);
    for n in 0..500 {
        world.write(format!("f{n}"), "old");
    }
    let before = world.manifest();
    world.call(["run", "-q", "--", "sh", "-c", "for f in f*; do echo new > $f; done"]).run().ok();
    let (spare, ballast) = (mount.point.join("spare"), mount.point.join("ballast"));
    std::fs::create_dir(&ballast).expect("a directory");
    std::fs::write(&spare, vec![1; 1_200 << 10]).expect("room");
    let take_all = |name: &str| {
        let part = ballast.join(name);
        std::fs::create_dir(&part).map_or_else(|_| fill(&ballast), |()| fill(&part));
        rustix::fs::sync();
    };
    ["a", "b", "c"].iter().for_each(|name| take_all(name));
    std::fs::remove_file(&spare).expect("room again");
    rustix::fs::sync();
    world.recant("commit last").ok();
    ["d", "e", "f"].iter().for_each(|name| take_all(name));
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "rolled back");
}

#[test]
fn a_snapshot_for_which_the_store_has_no_room_leaves_nothing_in_it() {
    let (Some(mount), mut world) = (Mount::image(24, &["mkfs.ext4", "-q", "-m", "0"]), World::new()) else { return };
    world.set("RECANT_STORE", mount.point.join("store"));
    world.write("small", "small");
    world.recant("snapshot create .").ok();
    let find = format!("find {}/store/snapshots -type f | sort", mount.point.display());
    let blobs = || world.program("sh", ["-c", &find]).run().ok().stdout();
    let before = blobs();
    for n in 0_u8..12 {
        world.write(format!("large-{n}"), vec![n; 4 << 20]);
    }
    let said = world.recant("snapshot create .").with(1);
    assert!(said.stderr().contains("make room where the store is"), "{said}");
    assert_eq!(blobs(), before, "{said}");
    for n in 2_u8..12 {
        world.remove(format!("large-{n}"));
    }
    world.recant("snapshot create .").ok();
    world.recant("snapshot verify").ok();
}

/// Uses up what a file system has.
type Exhaust = fn(&Path);

/// Takes every inode, then every byte.
fn exhaust(directory: &Path) {
    no_inodes(directory);
    fill(directory);
}

#[test]
fn without_a_free_byte_or_inode_a_rollback_on_one_file_system_works() {
    let ext4 = |inodes: &str| Mount::image(24, &["mkfs.ext4", "-q", "-m", "0", "-N", inodes]);
    rolled_back_without_room([
        ("ext4 without a byte", ext4("6144"), fill),
        ("ext4 without an inode", ext4("256"), exhaust),
        ("tmpfs without a byte", Mount::tmpfs("size=4m"), fill),
        ("tmpfs without an inode", Mount::tmpfs("size=64m,nr_inodes=256"), exhaust),
    ]);
}

#[test]
#[ignore = "long: images of xfs"]
fn so_it_does_on_xfs() {
    rolled_back_without_room([("xfs without a byte", image("xfs"), fill), ("xfs without an inode", image("xfs"), exhaust)]);
}

fn rolled_back_without_room<const N: usize>(kinds: [(&str, Option<Mount>, Exhaust); N]) {
    for (kind, mount, exhaust) in kinds {
        let Some(mount) = mount else { continue };
        let world = World::on(&mount.point);
        let (id, before) = scene(&world, false);
        for verb in ["commit", "redo"] {
            world.recant(&format!("{verb} {id}")).ok();
            let ballast = mount.point.join("ballast");
            std::fs::create_dir(&ballast).expect("a directory");
            // Room that a file system gives back late (what it had set aside, files removed before) is taken, too.
            let full = (0..20).any(|turn| {
                let part = ballast.join(turn.to_string());
                let made = std::fs::create_dir(&part);
                exhaust(if made.is_ok() { &part } else { &ballast });
                rustix::fs::sync();
                let more = ballast.join(format!("more-{turn}"));
                std::fs::write(&more, "x").is_err()
            });
            assert!(full, "{kind}, {verb}: there is always room");
            world.recant(&format!("rollback {id}")).ok();
            before.assert_same(&world.manifest(), &format!("{kind}, {verb}"));
            std::fs::remove_dir_all(&ballast).expect("room again");
        }
        // A rolled-back session keeps nothing for a rollback.
        assert!(!world.session(&id).join("reserve").exists(), "{kind}");
    }
}

#[test]
#[ignore = "long: an image of btrfs"]
fn on_btrfs_without_a_free_byte_a_rollback_is_refused_or_done_and_never_half() {
    let Some(mount) = image("btrfs") else { return };
    let world = World::on(&mount.point);
    let (id, before) = scene(&world, false);
    world.recant(&format!("commit {id}")).ok();
    let after = world.manifest();
    let ballast = mount.point.join("ballast");
    std::fs::create_dir(&ballast).expect("a directory");
    fill(&ballast);
    let said = world.recant(&format!("rollback {id}"));
    assert_done_or_not(&said, &world, &before, &after);
    std::fs::remove_dir_all(&ballast).expect("room again");
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "btrfs");
}

/// An error of the disk at any step, upon which the kernel makes the file system read-only (ext4(5), errors=remount-ro): of the tree, or of
/// the store. Mounted again, the tree is what it was or what it was to be.
#[test]
fn a_file_system_that_turns_read_only_at_any_step_loses_nothing() {
    let scene = |in_store: bool| {
        let mount = Mount::image(24, &["mkfs.ext4", "-q", "-m", "0", "-e", "remount-ro"])?;
        let (mut world, top) = (if in_store { World::new() } else { World::on(&mount.point) }, mount.point.clone());
        let store = if in_store { top.join("store") } else { tempfile::tempdir().expect("a directory").keep().join("store") };
        world.set("RECANT_STORE", &store).write("edited", "old").write("gone", "away").write("full/b", "1");
        let before = world.manifest();
        let id = world.begin();
        world.stage(&id, ["write edited new", "delete gone", "delete full", "write made/deep n"]);
        run("sync", &["-f", top.to_str()?]).expect("a scene that is on the disk");
        let source = world.program("findmnt", ["-no", "SOURCE", top.to_str()?]).run().ok().stdout();
        let fault = format!("/sys/fs/ext4/{}/trigger_fs_error", source.trim().trim_start_matches("/dev/"));
        if !Path::new(&fault).exists() {
            skip("a file system that turns read-only: the kernel has no trigger_fs_error");
            return None;
        }
        Some((mount, world, id, before, fault))
    };
    for in_store in [false, true] {
        let Some((_mount, world, id, ..)) = scene(in_store) else { return };
        let steps = steps_of(|| world.call(["commit", &id])).len();
        for n in (1..=steps).filter(|n| is_due(*n)) {
            let Some((mount, world, id, before, fault)) = scene(in_store) else { return };
            let said = world.call(["commit", &id]).env("RECANT_STEPS", format!("run:{n}:echo x > {fault}")).run();
            let what = format!("step {n}, {}: {said}", if in_store { "store" } else { "tree" });
            mount.restart();
            let what = format!("{what}; {}", world.recant("recover"));
            // What was reported as done is.
            assert!(said.status != 0 || world.status(&id) == "committed", "{what}");
            if world.status(&id) == "committed" {
                world.recant(&format!("rollback {id}")).ok();
            }
            let plain = |tree: Manifest| tree.without_directory_times();
            plain(before).assert_same(&plain(world.manifest()), &what);
        }
    }
}

/// Mounted read-only between the kill and the recovery: nothing is decided by that, and every later verb tries again.
#[test]
fn what_is_on_a_file_system_that_is_read_only_now_is_undone_once_it_is_not() {
    let Some(mount) = Mount::image(24, &["mkfs.ext4", "-q", "-m", "0"]) else { return };
    for theirs in [false, true] {
        let scene = |store: &Path| {
            let mut world = World::on(&mount.point);
            world.set("RECANT_STORE", store.join("store")).write("edited", "old").write("calm", "old");
            let id = world.begin();
            world.stage(&id, ["write edited new", "write calm new"]);
            (world, id)
        };
        let stores = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let (twin, id) = scene(stores[0].path());
        let seal = step_of(|| twin.call(["commit", &id]), &SEAL);
        let (world, id) = scene(stores[1].path());
        let before = world.manifest();
        world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{seal}")).run().with(137);
        assert_eq!(world.read("edited"), "new");
        if theirs {
            world.write("edited", "theirs");
        }
        let remount = |how: &str| {
            world.program("mount", ["-o", &format!("remount,{how}"), mount.point.to_str().expect("a path")]).run().ok();
        };
        remount("ro");
        for words in ["recover", "recover", "session new"] {
            let said = world.recant(words);
            let text = format!("{said}");
            assert!(text.contains("cannot be recovered now") && text.contains("read-only"), "{said}");
            assert_eq!(said.status, if words == "recover" { 7 } else { 0 }, "{said}");
        }
        remount("rw");
        let said = world.recant("recover");
        assert_eq!(said.status, if theirs { 4 } else { 0 }, "{said}");
        if theirs {
            assert_eq!((&*world.read("edited"), &*world.read("calm")), ("theirs", "old"), "{said}");
            world.recant(&format!("rollback {id} --force")).ok();
        }
        before.clone().without_directory_times().assert_same(&world.manifest().without_directory_times(), &format!("{said}"));
    }
}

/// A memory file system after a restart, a disk that broke: what an operation was cut off on does not come back.
#[test]
fn an_operation_cut_off_on_a_file_system_that_is_gone_for_good_can_be_ended() {
    let row = Sweep {
        name: "commit",
        scene: &|| {
            let world = World::new();
            // No step comes after the commit.
            world.config("[capture]\nkeep_before = false\n");
            world.write("a", "old").write("real/b", "old").write("real/gone", "away").write("other/b", "somebody's").mkdir("t");
            let there = Some(Mount::bind(&world.path("real"), world.path("t"))?);
            let id = world.begin();
            world.stage(&id, ["write a new", "write t/b new", "write t/made/new new", "delete t/gone"]);
            Some((world, id, there))
        },
        verb: &|(world, id, _)| world.call(["commit", id]),
        order: "kill:N",
    };
    let tally = row.run(|(world, id, there), killed, what| {
        if killed.status == 0 {
            return Came::Used("not killed");
        }
        drop(there.take());
        let _another = Mount::bind(&world.path("other"), world.path("t")).expect("as before");
        let whole = world.journals().iter().any(|name| !name.ends_with(".tmp"));
        let said = world.recant(&format!("recover {id}"));
        let what = format!("{what}, then {said}");
        let came = if said.status == 7 {
            assert!(whole && said.stdout().contains(&format!("recover {id} --give-up-unmounted")), "{what}");
            let is_done = world.status(id) == "committed";
            let ended = world.recant(&format!("recover {id} --give-up-unmounted"));
            // What may be half done there is named.
            assert_eq!(ended.status, if is_done { 0 } else { 4 }, "{what}\n{ended}");
            assert!(is_done || ended.stderr().contains("/t/b: it was given up with its file system"), "{what}\n{ended}");
            assert_eq!(world.read("a"), if is_done { "new" } else { "old" }, "{what}\n{ended}");
            if is_done { "settled" } else { "undone" }
        } else {
            // Copies that were made ready there are gone with it, and named as what is not found.
            let named = said.stderr().contains("recant's temporary object; its directory is gone or was moved");
            assert_eq!(said.status, if named { 4 } else { 0 }, "{what}");
            let is_done = world.status(id) == "committed";
            assert_eq!(world.read("a"), if is_done { "new" } else { "old" }, "{what}");
            "ended"
        };
        assert_eq!(world.recant("recover").ok().stderr().trim(), "recant: nothing was interrupted", "{what}");
        assert_eq!(world.read("t/b"), "somebody's", "{what}");
        assert_eq!(std::fs::read_dir(world.path("t")).expect("a directory").count(), 1, "{what}");
        let count = format!("grep -rlx old tree/real {} | wc -l", world.store().display());
        let kept = world.program("sh", ["-c", &count]).cwd(world.root()).run().ok().stdout();
        assert!(kept.trim() != "0", "{what}: no original is left");
        world.recant(&format!("prune --sessions {id} -y")).ok();
        Came::Used(came)
    });
    tally.saw("undone", 20).saw("settled", 4);
}
