//! A file that is itself mounted at its path, as /etc/hosts is in a container: it cannot be renamed, so that its content is written into its
//! inode (docs/ARCHITECTURE.md, An operation). Exact, whole after a kill and a power cut, and nothing of anybody else's lost. Needs root for
//! the bind mounts, and the feature `crash-points`.
#![cfg(feature = "crash-points")]
#![allow(clippy::disallowed_methods, reason = "tests make and change files as users do")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]

mod common;

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Manifest, Said, World, is_root, skip};

/// A file of another folder, or of a whole file system, mounted at `hosts` of a world's tree.
struct Mounted {
    world: World,
    point: PathBuf,
    source: PathBuf,
    _elsewhere: tempfile::TempDir,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        umount(&self.point);
    }
}

fn umount(point: &Path) {
    if !mount(&["-l"], "umount", point) {
        println!("left mounted: {}", point.display());
    }
}

fn mount(args: &[&str], program: &str, point: &Path) -> bool {
    Command::new(program).args(args).arg(point).status().is_ok_and(|status| status.success())
}

impl Mounted {
    fn new(content: &[u8]) -> Option<Self> {
        Self::from(content, &std::env::temp_dir())
    }

    /// Where no sync takes long, for a thousand of them.
    fn fast(content: &[u8]) -> Option<Self> {
        Self::from(content, Some(Path::new("/dev/shm")).filter(|fast| fast.is_dir()).unwrap_or(&std::env::temp_dir()))
    }

    fn from(content: &[u8], folder: &Path) -> Option<Self> {
        Self::on(content, folder, folder)
    }

    /// The file lies below another folder than all else.
    fn apart(content: &[u8], folder: &Path) -> Option<Self> {
        Self::on(content, &std::env::temp_dir(), folder)
    }

    fn on(content: &[u8], tree: &Path, folder: &Path) -> Option<Self> {
        if !is_root("a file that is mounted itself") {
            return None;
        }
        let world = World::on(tree);
        world.write("hosts", "hidden by the mount").write("other", "as before").write("gone", "away");
        let elsewhere = tempfile::tempdir_in(folder).expect("a folder");
        let (source, point) = (elsewhere.path().join("source"), world.path("hosts"));
        std::fs::write(&source, content).expect("a file");
        std::fs::set_permissions(&source, std::os::unix::fs::PermissionsExt::from_mode(0o640)).expect("a mode");
        if !mount(&["--bind", &source.display().to_string()], "mount", &point) {
            skip("a file that is mounted itself: it cannot be mounted here");
            return None;
        }
        world.set_mtime("hosts", 1_000_000_000, 7).set_mtime("other", 1_000_000_001, 7);
        world.set_mtime("", 1_000_000_002, 7);
        Some(Self { world, point, source, _elsewhere: elsewhere })
    }

    /// A session that writes `content` there, and changes some names around.
    fn staged(&self, content: &[u8]) -> String {
        let id = self.world.begin();
        self.world.stage_write(&id, "hosts", content).stage_write(&id, "other", "changed").stage_write(&id, "new/deep", "n");
        self.world.recant(&format!("session delete {id} gone")).ok();
        id
    }

    /// A session that writes there alone.
    fn alone(&self, content: &[u8]) -> String {
        let id = self.world.begin();
        self.world.stage_write(&id, "hosts", content);
        id
    }

    /// Runs a verb on the session.
    fn verb(&self, verb: &str, id: &str) -> Said {
        self.world.call([verb, id]).run()
    }
}

fn old() -> Vec<u8> {
    (0..5000_u32).map(|i| b'a' + (i / 512 % 26) as u8).collect()
}

fn long() -> Vec<u8> {
    (0..150_003_u32).map(|i| b'A' + (i / 512 % 26) as u8).collect()
}

/// What the content goes from and to: longer, shorter, empty, the same length, in part the same.
fn pairs() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let half = [&old()[..2500], &long()[..2500]].concat();
    vec![
        ("longer", old(), long()),
        ("shorter", long(), old()),
        ("emptied", old(), Vec::new()),
        ("filled", Vec::new(), old()),
        ("half the same", old(), half),
    ]
}

#[test]
fn a_file_that_is_mounted_itself_is_committed_rolled_back_and_redone_exactly() {
    for (what, before, after) in pairs() {
        let Some(here) = Mounted::new(&before) else { return };
        let world = &here.world;
        world.set_xattr("hosts", "user.kept", b"1");
        let start = world.manifest();
        let inode = here.point.metadata().expect("the file").ino();
        let id = here.staged(&after);
        let dry = world.recant(&format!("commit {id} --dry-run")).ok();
        assert!(dry.stdout().contains("hosts"), "{dry}");
        start.assert_same(&world.manifest(), "a dry run");
        here.verb("commit", &id).ok();
        assert!(world.bytes("hosts") == after, "{what}");
        assert!(std::fs::read(&here.source).expect("the source") == after, "{what}: it is the same inode");
        assert_eq!(here.point.metadata().expect("the file").ino(), inode, "{what}");
        let done = world.manifest();
        assert!(world.recant(&format!("checkpoint verify {id}")).ok().stdout().contains("  whole"), "{what}");
        assert!(world.call(["cat", &id, "hosts", "--before"]).run().ok().out == before, "{what}");
        assert_eq!(world.recant(&format!("diff {id} --name-only")).ok().stdout().lines().count(), 5, "{what}");
        here.verb("rollback", &id).ok();
        start.assert_same(&world.manifest(), &format!("{what}: rolled back"));
        assert_eq!(here.point.metadata().expect("the file").ino(), inode, "{what}");
        here.verb("redo", &id).ok();
        done.without_folder_times().assert_same(&world.manifest().without_folder_times(), &format!("{what}: redone"));
        here.verb("rollback", &id).ok();
        start.assert_same(&world.manifest(), &format!("{what}: rolled back again"));
        world.assert_tidy(what);
    }
}

/// One step of a run: its number, and the call with its paths.
fn steps(here: &Mounted, words: &[&str]) -> Vec<String> {
    let log = here.world.root().join("steps.log");
    drop(std::fs::remove_file(&log));
    here.world.call(words).env("RECANT_STEPS", format!("log:{}", log.display())).run();
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    text.lines().map(|line| line.split_once(' ').expect("a number").1.to_owned()).collect()
}

/// The calls that write into the mounted file, and the one that makes it durable: all by descriptor, so that they name its folder.
fn is_write(here: &Mounted, step: &str) -> bool {
    let tree = here.world.tree();
    ["pwrite", "ftruncate", "fallocate PUNCH_HOLE"].iter().any(|call| *step == format!("{call} {}", tree.display()))
}

fn is_sync(here: &Mounted, step: &str) -> bool {
    step == format!("fsync {}", here.world.tree().display())
}

/// The number of the first step, counted from one, of which `which` is true.
fn number(steps: &[String], which: impl Fn(&String) -> bool) -> usize {
    1 + steps.iter().position(which).expect("a step of that kind")
}

fn settled(manifest: &Manifest) -> Manifest {
    let mut manifest = manifest.clone().without_folder_times();
    // What is staged has the time of its staging.
    manifest.0.values_mut().filter(|row| row.mtime.0 > 1_500_000_000).for_each(|row| row.mtime = (0, 0));
    manifest
}

/// Whatever befell the verb, after a recovery all is as before or as after, as the status says.
#[track_caller]
fn judge(here: &Mounted, id: &str, (from, start): (&str, &Manifest), (to, done): (&str, &Manifest), what: &str) -> bool {
    let recovered = here.world.recant("recover").ok();
    here.world.assert_tidy(what);
    let status = status(here, id);
    let now = here.world.manifest();
    match status {
        status if status == from => {
            let blobs = std::fs::read_dir(here.world.session(id).join("checkpoint/blobs")).expect("the blobs").count();
            assert_eq!(blobs > 0, status == "committed", "{what}: copies of what is where it was: {recovered}");
            start.assert_same(&now, &format!("{what}: {recovered}"));
            false
        }
        status if status == to => {
            settled(done).assert_same(&settled(&now), &format!("{what}: {recovered}"));
            true
        }
        status => panic!("{what}: status {status}: {recovered}"),
    }
}

/// The status as it follows from the header, without asking recant a thousand times.
fn status(here: &Mounted, id: &str) -> &'static str {
    let text = std::fs::read(here.world.session(id).join("session.json")).expect("the header");
    let header: serde_json::Value = serde_json::from_slice(&text).expect("the header");
    match (&header["counts"]["in"], &header["counts"]["ever_in"]) {
        (inside, _) if *inside != 0 => "committed",
        (_, ever) if *ever != 0 => "rolled_back",
        _ => "pending",
    }
}

/// Each verb, with what goes before it, what it leads from and to, and its way back.
const VERBS: [(&str, &str, &str, &str); 3] = [
    ("commit", "pending", "committed", "rollback"),
    ("rollback", "committed", "rolled_back", "redo"),
    ("redo", "rolled_back", "committed", "rollback"),
];

/// Does `harm` to each verb before each of its steps, and looks what is there after a recovery.
fn sweep(before: &[u8], after: &[u8], what: &str, harm: &dyn Fn(&Mounted, &str, &str, usize) -> bool) {
    for (verb, from, to, back) in VERBS {
        let ready = || {
            let here = Mounted::fast(before)?;
            let id = here.staged(after);
            if verb != "commit" {
                here.verb("commit", &id).ok();
            }
            if verb == "redo" {
                here.verb("rollback", &id).ok();
            }
            let start = here.world.manifest();
            here.verb(verb, &id).ok();
            let done = here.world.manifest();
            here.verb(back, &id).ok();
            Some((here, id, start, done))
        };
        // A commit that was rolled back is another state: it is made anew.
        let fresh = || {
            let (here, id, start, done) = ready()?;
            let (from, id) = if verb == "commit" { ("pending", here.staged(after)) } else { (from, id) };
            Some((here, id, start, done, from))
        };
        let Some((mut here, mut id, mut start, mut done, mut from)) = fresh() else { return };
        let mut steps = 0;
        for n in common::steps() {
            let what = format!("{what}: {verb}, step {n}");
            let more = harm(&here, verb, &id, n);
            if !more {
                steps = n - 1;
                break;
            }
            if judge(&here, &id, (from, &start), (to, &done), &what) {
                here.verb(back, &id).ok();
                settled(&start).assert_same(&settled(&here.world.manifest()), &format!("{what}, then {back}"));
                (here, id, start, done, from) = fresh().expect("as before");
            }
        }
        assert!(steps > 25, "{verb}: {steps} steps");
    }
}

#[test]
fn killed_before_any_step_it_is_afterwards_all_done_or_not_begun() {
    for (what, before, after) in [("longer", old(), long()), ("shorter", long(), old())] {
        sweep(&before, &after, what, &|here, verb, id, n| {
            let killed = here.world.call([verb, id]).env("RECANT_STEPS", format!("kill:{n}")).run();
            assert!([0, 137].contains(&killed.status), "{what}: {verb} killed before step {n}: {killed}");
            killed.status == 137
        });
    }
}

#[test]
fn so_it_is_where_any_step_fails() {
    for (errno, before, after) in [(5, long(), old()), (28, old(), long())] {
        sweep(&before, &after, &format!("errno {errno}"), &|here, verb, id, n| {
            let log = here.world.root().join("steps.log");
            drop(std::fs::remove_file(&log));
            let orders = format!("log:{};fail:{n}:{errno}", log.display());
            let said = here.world.call([verb, id]).env("RECANT_STEPS", orders).run();
            assert!([0, 1, 7].contains(&said.status), "{verb} failed at step {n}: {said}");
            std::fs::read_to_string(&log).expect("the log").lines().count() >= n
        });
    }
}

/// What a cut may leave of a file that is being written and was not synced: any sector old or new, at either length or extended in part.
fn torn(old: &[u8], new: &[u8]) -> Vec<Vec<u8>> {
    let longest = old.len().max(new.len());
    let padded = [old, new].map(|bytes| [bytes, &vec![0; longest - bytes.len()][..]].concat());
    let sectors = longest.div_ceil(512);
    let mixed = |size: usize, is_new: &dyn Fn(usize) -> bool| {
        let sector = |i: usize| &padded[usize::from(is_new(i))][i * 512..longest.min(i * 512 + 512)];
        let mut bytes = (0..sectors).map(sector).collect::<Vec<_>>().concat();
        bytes.truncate(size);
        bytes
    };
    let mut states = Vec::new();
    for size in [old.len(), new.len()] {
        states.extend((0..=sectors).map(|k| mixed(size, &|i| i < k)));
        states.push(mixed(size, &|i| i * 7 % 5 < 2));
    }
    let partly = old.len().min(new.len()).next_multiple_of(512);
    states.extend((partly..longest).step_by(512).map(|size| mixed(size, &|i| i * 512 < size)));
    states
}

/// The power goes before each step: what was written into the file and not synced by then is there in part, in many ways.
#[test]
fn after_a_power_cut_at_any_step_it_is_all_done_or_not_begun() {
    let short = |c: u8| vec![c; 1300];
    for (before, after) in [(short(b'o'), vec![b'n'; 3000]), (vec![b'o'; 3000], short(b'n'))] {
        let mut tried = 0;
        for (verb, from, to, back) in VERBS {
            let Some(here) = Mounted::fast(&before) else { return };
            let id = here.alone(&after);
            for ready in
                ["commit", "rollback"].iter().take(["commit", "rollback", "redo"].iter().position(|v| *v == verb).unwrap())
            {
                here.verb(ready, &id).ok();
            }
            let start = here.world.manifest();
            let steps = steps(&here, &[verb, &id]);
            let done = here.world.manifest();
            here.verb(back, &id).ok();
            let (id, from) = if verb == "commit" { (here.alone(&after), from) } else { (id, from) };
            let first = number(&steps, |step| is_write(&here, step));
            for n in first + 1..=steps.len() {
                let behind = &steps[first - 1..n - 1];
                let last = behind.iter().rposition(|step| is_write(&here, step)).expect("the first");
                let dirty = !behind[last..].iter().any(|step| is_sync(&here, step));
                let states = if dirty { torn(&before, &after) } else { vec![Vec::new()] };
                for state in states {
                    let killed = here.world.call([verb, &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
                    assert_eq!(killed.status, 137, "{verb}, step {n}: {killed}");
                    if dirty {
                        std::fs::write(&here.point, &state).expect("what the cut has left");
                    }
                    tried += 1;
                    let what = format!("{verb} cut before step {n} ({})", steps[n - 1]);
                    if judge(&here, &id, (from, &start), (to, &done), &what) {
                        let said = here.verb(back, &id).ok();
                        settled(&start).assert_same(&settled(&here.world.manifest()), &format!("{what}, then {back}: {said}"));
                        // A rolled back commit is redone from here on, which leads to the same.
                        if verb == "commit" {
                            break;
                        }
                    }
                }
                if verb == "commit" && status(&here, &id) == "rolled_back" {
                    break;
                }
            }
        }
        println!("{tried} states");
        assert!(tried > 60, "{tried}");
    }
}

/// The same in an undo: its own writes are torn.
#[test]
fn a_recovery_that_is_cut_off_is_ended_by_the_next_one() {
    for (before, after) in [(vec![b'o'; 1300], vec![b'n'; 3000]), (vec![b'o'; 3000], vec![b'n'; 1300])] {
        let Some(here) = Mounted::fast(&before) else { return };
        let start = here.world.manifest();
        let id = here.staged(&after);
        let whole = steps(&here, &["commit", &id]);
        here.verb("rollback", &id).ok();
        let (id, first) = (here.staged(&after), number(&whole, |step| is_write(&here, step)));
        let behind = first + whole[first..].iter().take_while(|step| is_write(&here, step)).count() + 1;
        let stopped = |n: usize| {
            let killed = here.world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{n}")).run();
            assert_eq!(killed.status, 137, "{killed}");
        };
        {
            let n = behind;
            stopped(n);
            let recovery = steps(&here, &["recover"]);
            let first = number(&recovery, |step| is_write(&here, step));
            for m in 1..=recovery.len() {
                let behind = recovery.get(first - 1..m - 1).unwrap_or_default();
                let last = behind.iter().rposition(|step| is_write(&here, step));
                let dirty = last.is_some_and(|last| !behind[last..].iter().any(|step| is_sync(&here, step)));
                for state in if dirty { torn(&before, &after) } else { vec![Vec::new()] } {
                    stopped(n);
                    let cut = here.world.call(["recover"]).env("RECANT_STEPS", format!("kill:{m}")).run();
                    assert_eq!(cut.status, 137, "{cut}");
                    if dirty {
                        std::fs::write(&here.point, &state).expect("what the cut has left");
                    }
                    let what = format!("commit killed before step {n}, its recovery cut before step {m}");
                    assert!(!judge(&here, &id, ("pending", &start), ("-", &start), &what));
                }
            }
        }
    }
}

/// A commit that was killed with the first piece written.
fn half_written(here: &Mounted, after: &[u8]) -> String {
    let id = here.alone(after);
    let whole = steps(here, &["commit", &id]);
    here.verb("rollback", &id).ok();
    let id = here.alone(after);
    let second = 1 + number(&whole, |step| step.starts_with("pwrite") && is_write(here, step));
    let killed = here.world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{second}")).run();
    assert_eq!(killed.status, 137, "{killed}");
    id
}

#[test]
fn what_somebody_writes_into_it_while_it_is_half_written_is_left_and_kept_when_it_is_decided() {
    for how in ["--force", "--finish"] {
        let Some(here) = Mounted::new(&old()) else { return };
        let start = here.world.manifest();
        let id = half_written(&here, &long());
        File::options().write(true).open(&here.point).and_then(|file| file.write_all_at(b"theirs", 700)).expect("an edit");
        let theirs = here.world.bytes("hosts");
        for _ in 0..2 {
            let left = here.world.recant("recover").with(4);
            assert!(left.to_string().contains("hosts (somebody wrote to it"), "{left}");
            assert!(here.world.bytes("hosts") == theirs, "it is left alone");
        }
        let copied = |here: &Mounted| {
            let folders = std::fs::read_dir(here.world.session(&id).join("displaced"))
                .expect("the folder")
                .map(|name| name.expect("a name").path());
            let files =
                folders.flat_map(|folder| std::fs::read_dir(folder).expect("a folder")).map(|name| name.expect("a name").path());
            files
                .filter(|path| !path.ends_with("manifest.jsonl"))
                .map(|path| std::fs::read(path).expect("a file"))
                .collect::<Vec<_>>()
        };
        let wanted = if how == "--force" { theirs.clone() } else { old() };
        let mut killed = 0;
        for m in common::steps() {
            let said = here.world.call(["recover", &id, how]).env("RECANT_STEPS", format!("kill:{m}")).run();
            if said.status != 137 {
                assert!([0, 4].contains(&said.status), "{how}: {said}");
                break;
            }
            killed += 1;
        }
        assert!(killed > 15, "{how}: {killed}");
        here.world.assert_tidy(how);
        assert!(copied(&here) == [wanted], "{how}: just what gave way is kept");
        if how == "--force" {
            start.assert_same(&here.world.manifest(), how);
            here.verb("commit", &id).ok();
            assert!(here.world.bytes("hosts") == long());
            here.verb("rollback", &id).ok();
            start.assert_same(&here.world.manifest(), "committed after all, and rolled back");
        } else {
            assert!(here.world.bytes("hosts") == theirs, "{how}");
        }
    }
}

#[test]
fn metadata_that_somebody_sets_while_it_is_half_written_is_left_as_well() {
    let Some(here) = Mounted::new(&old()) else { return };
    let id = half_written(&here, &long());
    here.world.chmod("hosts", 0o711);
    let left = here.world.recant("recover").with(4);
    assert!(left.to_string().contains("hosts (somebody changed its mode or owner"), "{left}");
    assert_eq!(here.point.metadata().expect("the file").mode() & 0o777, 0o711);
    here.world.call(["recover", &id, "--force"]).run().run_is_done();
    assert!(here.world.bytes("hosts") == old());
    assert_eq!(here.point.metadata().expect("the file").mode() & 0o777, 0o640);
    here.world.assert_tidy("by force");
}

#[test]
fn another_file_in_its_place_is_left_alone_until_the_mount_is_back() {
    let Some(here) = Mounted::new(&old()) else { return };
    let start = here.world.manifest();
    half_written(&here, &long());
    umount(&here.point);
    let left = here.world.recant("recover").with(4);
    assert!(left.to_string().contains("hosts (the file that was mounted there is not there any more"), "{left}");
    assert_eq!(here.world.read("hosts"), "hidden by the mount");
    assert!(mount(&["--bind", &here.source.display().to_string()], "mount", &here.point));
    here.world.recant("recover").ok();
    start.assert_same(&here.world.manifest(), "mounted again");
    here.world.assert_tidy("mounted again");
}

#[test]
fn one_that_was_edited_since_is_a_conflict_and_gives_way_by_force_alone() {
    let Some(here) = Mounted::new(&old()) else { return };
    let world = &here.world;
    let id = here.alone(&long());
    world.write("hosts", "theirs");
    let edited = world.manifest();
    assert!(world.recant(&format!("commit {id}")).with(3).stderr().contains("hosts"));
    edited.assert_same(&world.manifest(), "a conflict");
    world.recant(&format!("commit {id} --force")).ok();
    assert!(world.bytes("hosts") == long());
    here.verb("rollback", &id).ok();
    edited.assert_same(&world.manifest(), "rolled back to what force had found");
    here.verb("redo", &id).ok();
    world.write("hosts", "theirs again");
    world.recant(&format!("rollback {id}")).with(3);
    assert_eq!(world.read("hosts"), "theirs again");
    world.recant(&format!("rollback {id} --force")).run_is_done();
    assert_eq!(world.read("hosts"), "theirs");
    assert_eq!(world.call(["cat", &id, "hosts", "--displaced"]).run().ok().stdout(), "theirs again");
}

/// By force it is afterwards as somebody had left it, or as the session has it with his content kept.
#[test]
fn by_force_and_killed_before_any_step_what_gives_way_is_kept() {
    for (verb, first, from, to, back) in [
        ("rollback", &["commit"][..], "committed", "rolled_back", "redo"),
        ("redo", &["commit", "rollback"][..], "rolled_back", "committed", "rollback"),
    ] {
        let fresh = || {
            let here = Mounted::fast(&old())?;
            let id = here.alone(&long());
            first.iter().for_each(|verb| drop(here.verb(verb, &id).ok()));
            here.world.write("hosts", "theirs");
            Some((here, id))
        };
        let Some((mut here, mut id)) = fresh() else { return };
        let mut done = 0;
        for n in common::steps() {
            let start = here.world.manifest();
            let killed = here.world.call([verb, &id, "--force"]).env("RECANT_STEPS", format!("kill:{n}")).run();
            let what = format!("{verb} --force killed before step {n}: {killed}");
            here.world.recant("recover").ok();
            here.world.assert_tidy(&what);
            if status(&here, &id) == from {
                start.assert_same(&here.world.manifest(), &what);
            } else {
                assert_eq!(status(&here, &id), to, "{what}");
                assert!(here.world.bytes("hosts") == if verb == "rollback" { old() } else { long() }, "{what}");
                assert_eq!(here.world.call(["cat", &id, "hosts", "--displaced"]).run().ok().stdout(), "theirs", "{what}");
                // A redo of what was taken back by force leaves it out, as that content is nowhere any more.
                if verb == "redo" {
                    here.verb(back, &id).run_is_done();
                }
                done += 1;
                (here, id) = fresh().expect("as before");
            }
            if killed.status != 137 {
                break;
            }
        }
        assert!(done > 3, "{verb}: {done}");
    }
}

trait Done {
    fn run_is_done(self) -> Self;
}

impl Done for Said {
    /// By force something may be named as left out.
    #[track_caller]
    fn run_is_done(self) -> Self {
        assert!([0, 4].contains(&self.status), "{self}");
        self
    }
}

#[test]
fn an_edit_between_plan_and_act_is_a_conflict_and_stays() {
    let Some(here) = Mounted::new(&old()) else { return };
    let id = here.staged(&long());
    let whole = steps(&here, &["commit", &id]);
    here.verb("rollback", &id).ok();
    let id = here.staged(&long());
    let named = number(&whole, |step| step.starts_with("renameat ") && step.contains("/journals/"));
    let orders = format!("run:{named}:printf theirs >> {}", here.point.display());
    let mut wanted = here.world.manifest();
    let said = here.world.call(["commit", &id]).env("RECANT_STEPS", orders).run().with(3);
    assert!(said.stderr().contains("hosts"), "{said}");
    assert!(here.world.bytes("hosts") == [&old()[..], b"theirs"].concat());
    let now = here.world.manifest();
    let row = now.0.get(&b"hosts"[..]).expect("its row").clone();
    wanted.0.insert(b"hosts".to_vec(), row);
    wanted.assert_same(&now, "all else is as it was");
    here.world.assert_tidy("a conflict");
}

#[test]
fn nobody_opens_it_while_it_is_written_and_without_a_lease_nothing_written_is_lost() {
    let Some(here) = Mounted::new(&old()) else { return };
    let id = here.alone(&long());
    let whole = steps(&here, &["commit", &id]);
    here.verb("rollback", &id).ok();
    let second = 1 + number(&whole, |step| step.starts_with("pwrite") && is_write(&here, step));
    let write = format!("printf theirs | dd of={} bs=1 seek=100 conv=notrunc status=none", here.point.display());

    let id = here.alone(&long());
    let orders = format!("run:{second}:! {write} oflag=nonblock 2> /dev/null");
    here.world.call(["commit", &id]).env("RECANT_STEPS", orders).run().ok();
    assert!(here.world.bytes("hosts") == long());
    here.verb("rollback", &id).ok();

    // Somebody has it open for writing: there is no lease to be had, and without --force it is not begun.
    let id = here.alone(&long());
    let open = File::options().append(true).open(&here.point).expect("it opens");
    let said = here.verb("commit", &id).with(3);
    assert!(said.stderr().contains("open for writing"), "{said}");
    assert!(here.world.bytes("hosts") == old());
    let said = here.world.call(["commit", &id, "--force"]).env("RECANT_STEPS", format!("run:{second}:{write}")).run();
    assert_ne!(said.status, 0, "{said}");
    assert!(said.stderr().contains("hosts"), "{said}");
    assert_eq!(&here.world.bytes("hosts")[100..106], b"theirs");
    drop(open);
    here.world.call(["recover", &id, "--force"]).run().run_is_done();
    assert!(here.world.bytes("hosts") == old());
    assert_eq!(&here.world.call(["cat", &id, "hosts", "--displaced"]).run().ok().out[100..106], b"theirs");
}

#[test]
fn its_other_names_follow_and_a_session_that_also_replaces_one_of_them_is_refused() {
    let Some(here) = Mounted::new(&old()) else { return };
    let second = here.source.with_file_name("second");
    std::fs::hard_link(&here.source, &second).expect("a link");
    let start = here.world.manifest();
    let id = here.alone(&long());
    let said = here.verb("commit", &id).ok();
    assert!(said.to_string().contains("other names"), "{said}");
    assert!(std::fs::read(&second).expect("the file") == long());
    here.verb("rollback", &id).ok();
    start.assert_same(&here.world.manifest(), "rolled back");
    assert!(std::fs::read(&second).expect("the file") == old());

    let id = here.alone(&long());
    here.world.call(["session", "write", &id, &second.display().to_string()]).stdin("apart").run().ok();
    let said = here.verb("commit", &id).with(1);
    assert!(said.stderr().contains("the same file as"), "{said}");
    start.assert_same(&here.world.manifest(), "refused");
}

#[test]
fn what_cannot_be_done_in_place_is_refused_by_name_before_anything_is_changed() {
    let Some(here) = Mounted::new(&old()) else { return };
    let world = &here.world;
    let start = world.manifest();
    let refused = |id: &str, why: &str| {
        let said = world.recant(&format!("commit {id}")).with(1);
        assert!(said.stderr().contains("hosts: ") && said.stderr().contains(why), "{why}: {said}");
        start.assert_same(&world.manifest(), why);
    };
    for (words, why) in [("delete ID hosts", "cannot be removed"), ("symlink ID other hosts", "cannot be replaced")] {
        let id = world.begin();
        world.stage_write(&id, "other", "changed");
        world.recant(&format!("session {}", words.replace("ID", &id))).ok();
        refused(&id, why);
    }
    let id = here.staged(&long());
    assert!(mount(&["-o", "remount,bind,ro"], "mount", &here.point));
    refused(&id, "mounted read-only");
    assert!(mount(&["-o", "remount,bind,rw"], "mount", &here.point));
    here.verb("commit", &id).ok();
    assert!(mount(&["-o", "remount,bind,ro"], "mount", &here.point));
    let said = here.verb("rollback", &id).with(1);
    assert!(said.stderr().contains("mounted read-only"), "{said}");
    assert!(mount(&["-o", "remount,bind,rw"], "mount", &here.point));
    here.verb("rollback", &id).ok();
    start.assert_same(&world.manifest(), "rolled back at last");
}

#[test]
fn a_file_system_that_is_too_full_for_it_is_refused_before_anything_is_changed() {
    if !is_root("a full file system") {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    if !mount(&["-t", "tmpfs", "-o", "size=256k", "tmpfs"], "mount", dir.path()) {
        skip("a full file system: no tmpfs can be mounted here");
        return;
    }
    if let Some(here) = Mounted::apart(&old(), dir.path()) {
        std::fs::write(dir.path().join("filler"), vec![1; 180_000]).expect("a filler");
        let start = here.world.manifest();
        let id = here.staged(&long());
        let said = here.verb("commit", &id).with(1);
        assert!(said.stderr().contains("hosts: ") && said.stderr().contains("are needed there"), "{said}");
        start.assert_same(&here.world.manifest(), "refused");
    }
    umount(dir.path());
}

#[test]
fn metadata_alone_is_set_on_it_and_is_durable_with_many_others() {
    let Some(here) = Mounted::new(&old()) else { return };
    let start = here.world.manifest();
    let id = here.world.begin();
    here.world.recant(&format!("session chmod {id} 0600 hosts")).ok();
    (0..20).for_each(|i| {
        here.world.stage_write(&id, format!("many/{i}/deep"), "new");
    });
    let steps = steps(&here, &["commit", &id]);
    let sealed = number(&steps, |step| step.contains("session.json.new") && step.starts_with("renameat"));
    assert!(steps[..sealed].iter().any(|step| step.starts_with("syncfs")), "{steps:?}");
    assert!(steps[..sealed].contains(&format!("fsync {}", here.point.display())), "{steps:?}");
    assert_eq!(here.point.metadata().expect("the file").mode() & 0o777, 0o600);
    here.verb("rollback", &id).ok();
    start.assert_same(&here.world.manifest(), "rolled back");
}

#[test]
fn holes_stay_holes() {
    let Some(here) = Mounted::new(b"") else { return };
    let file = File::options().write(true).open(&here.point).expect("the file");
    file.set_len(8 << 20)
        .and_then(|()| file.write_all_at(b"end", (8 << 20) - 3))
        .and_then(|()| file.sync_all())
        .expect("content");
    drop(file);
    let small = |what: &str| {
        let bytes = here.point.metadata().expect("the file").blocks() * 512;
        assert!(bytes < 1 << 20, "{what}: {bytes} bytes on disk");
    };
    small("at first");
    let start = here.world.manifest();
    let id = here.alone(&long());
    here.verb("commit", &id).ok();
    here.verb("rollback", &id).ok();
    small("rolled back");
    start.assert_same(&here.world.manifest(), "rolled back");
    let id = here.alone(&vec![b'x'; 2 << 20]);
    here.verb("commit", &id).ok();
    here.verb("rollback", &id).ok();
    small("rolled back again");
    start.assert_same(&here.world.manifest(), "rolled back again");
}

/// What calls recant as an ordinary user, who owns it all from here on; `None`, said as a skip, where such a one cannot.
fn as_owner(here: &Mounted) -> Option<impl Fn(&str) -> Said> {
    let (world, uid) = (&here.world, 65534);
    assert!(mount(&["-R", "65534:65534"], "chown", world.root()));
    assert!(mount(&["65534:65534"], "chown", &here.source));
    let call = move |words: &str| world.call(words.split(' ')).user(uid, uid).stdin(long()).run();
    if call("--version").status == 0 {
        return Some(call);
    }
    skip("an ordinary user: the program cannot be reached by one");
    None
}

#[test]
fn its_owner_can_and_who_is_not_its_owner_is_refused() {
    let Some(here) = Mounted::new(&old()) else { return };
    let world = &here.world;
    let Some(call) = as_owner(&here) else { return };
    let start = world.manifest();
    let id = call("session new").ok().id();
    call(&format!("session write {id} hosts")).ok();
    call(&format!("commit {id}")).ok();
    assert!(world.bytes("hosts") == long());
    call(&format!("rollback {id}")).ok();
    start.assert_same(&world.manifest(), "rolled back");
    let id = call("session new").ok().id();
    call(&format!("session write {id} hosts")).ok();
    std::os::unix::fs::chown(&here.source, Some(1), None).expect("another owner");
    std::fs::set_permissions(&here.source, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("a mode");
    let start = world.manifest();
    let said = call(&format!("commit {id}")).with(1);
    assert!(said.stderr().contains("only its owner (user 1)"), "{said}");
    start.assert_same(&world.manifest(), "refused");
}

/// The header is about to be replaced: all is written, and nothing sealed.
fn unsealed(here: &Mounted, after: &[u8]) -> String {
    let id = here.alone(after);
    let whole = steps(here, &["commit", &id]);
    here.verb("rollback", &id).ok();
    let id = here.alone(after);
    let sealed = number(&whole, |step| step.contains("session.json.new") && step.starts_with("renameat"));
    let killed = here.world.call(["commit", &id]).env("RECANT_STEPS", format!("kill:{sealed}")).run();
    assert_eq!(killed.status, 137, "{killed}");
    id
}

/// What is to be finished has to be done: neither content that is not what was written, nor metadata that is not, is called committed.
#[test]
fn where_the_header_cannot_tell_it_is_finished_only_if_it_is_written_whole() {
    let Some(here) = Mounted::new(&old()) else { return };
    let (world, start) = (&here.world, here.world.manifest());
    let id = unsealed(&here, &long());
    std::fs::write(world.session(&id).join("session.json"), "x").expect("a header that nobody can read");
    let written = File::options().write(true).open(&here.point).expect("the file");
    let end = long().len() as u64 - 1;
    let refused = |what: &str| {
        let said = world.recant(&format!("recover {id} --finish")).with(1);
        assert!(said.stdout().contains("not done here") && said.stdout().contains("--undo"), "{what}: {said}");
    };
    written.write_at(b"!", end).expect("a write");
    refused("another end");
    written.write_at(&long()[end as usize..], end).expect("a write");
    drop(written);
    world.chmod("hosts", 0o600);
    refused("another mode");
    world.chmod("hosts", 0o640);
    world.recant(&format!("recover {id} --finish")).ok();
    assert_eq!(status(&here, &id), "committed");
    assert!(world.bytes("hosts") == long());
    here.verb("rollback", &id).ok();
    start.assert_same(&world.manifest(), "rolled back");
}

#[test]
fn lines_that_somebody_deletes_are_not_taken_for_a_write_that_was_cut_off() {
    let (one, three) = ("127.0.0.1 localhost\n", "127.0.0.1 localhost\n10.0.0.1 a\n10.0.0.2 b\n");
    for (before, after) in [(one, three), (three, "10.0.0.9 z\n")] {
        let Some(here) = Mounted::new(before.as_bytes()) else { return };
        let start = here.world.manifest();
        let id = unsealed(&here, after.as_bytes());
        let theirs = &three[..three.len() - "10.0.0.2 b\n".len()];
        here.world.write("hosts", theirs);
        let left = here.world.recant("recover").with(4);
        assert!(left.to_string().contains("hosts (somebody wrote to it"), "{left}");
        assert_eq!(here.world.read("hosts"), theirs, "it is left alone");
        here.world.call(["recover", &id, "--force"]).run().run_is_done();
        assert_eq!(here.world.call(["cat", &id, "hosts", "--displaced"]).run().ok().stdout(), theirs);
        start.assert_same(&here.world.manifest(), "by force");
    }
}

/// What lies under `displaced/` of the session, but for the manifests.
fn displaced(here: &Mounted, id: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(folders) = std::fs::read_dir(here.world.session(id).join("displaced")) else { return Vec::new() };
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.expect("a name").path()).expect("a folder"));
    let paths = files.map(|name| name.expect("a name").path()).filter(|path| !path.ends_with("manifest.jsonl"));
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut all: Vec<_> = paths.map(|path| (name(&path), std::fs::read(&path).expect("a file"))).collect();
    all.sort();
    all
}

#[test]
fn what_is_written_once_more_while_force_makes_its_copy_is_kept_too() {
    let again = |orders: &dyn Fn(&Mounted) -> String, then: &str| {
        let here = Mounted::new(&old())?;
        let start = here.world.manifest();
        let id = half_written(&here, &long());
        here.world.write("hosts", "theirs");
        here.world.recant("recover").with(4);
        let log = here.world.root().join("steps.log");
        drop(std::fs::remove_file(&log));
        let said = here.world.call(["recover", &id, "--force"]).env("RECANT_STEPS", orders(&here)).run();
        let said = if then.is_empty() {
            said.run_is_done()
        } else {
            said.with(137);
            let then = then.replace("FILE", &here.point.display().to_string());
            here.world.program("sh", ["-c", &then]).run().ok();
            here.world.recant("recover").ok()
        };
        start.assert_same(&here.world.manifest(), "by force");
        for (path, _) in displaced(&here, &id) {
            assert!(said.stdout().contains(&path), "{path}: {said}");
        }
        here.world.assert_tidy("by force");
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let steps: Vec<String> = text.lines().map(|line| line.split_once(' ').expect("a number").1.to_owned()).collect();
        Some((displaced(&here, &id), steps))
    };
    let logged = |here: &Mounted| format!("log:{}", here.world.root().join("steps.log").display());
    let Some((kept, steps)) = again(&logged, "") else { return };
    assert_eq!(kept.iter().map(|(_, bytes)| &bytes[..]).collect::<Vec<_>>(), [b"theirs"]);
    // The last step before the first that goes for the file itself.
    let placed = 1 + number(&steps, |step| step.contains(".found0") && step.starts_with("renameat2"));
    let more = "t=$(mktemp) && touch -r FILE $t && printf ' and more' >> FILE && touch -r $t FILE && rm $t";
    for (at_once, deed) in
        [(true, "printf ' and more' >> FILE"), (true, more), (false, "printf ' and more' >> FILE"), (false, more)]
    {
        let meanwhile = |here: &Mounted| match at_once {
            true => format!("run:{placed}:{}", deed.replace("FILE", &here.point.display().to_string())),
            false => format!("kill:{placed}"),
        };
        let (kept, _) = again(&meanwhile, if at_once { "" } else { deed }).expect("as before");
        let kept: Vec<_> = kept.iter().map(|(_, bytes)| &bytes[..]).collect();
        assert!(kept.contains(&&b"theirs and more"[..]), "{deed}, at once: {at_once}: {kept:?}");
    }
}

#[test]
fn a_recovery_that_was_cut_off_at_its_end_leaves_what_somebody_wrote_since() {
    let mut tried = 0;
    for m in common::steps() {
        let Some(here) = Mounted::fast(&old()) else { return };
        let id = half_written(&here, &long());
        let blobs = || std::fs::read_dir(here.world.session(&id).join("checkpoint/blobs")).expect("the blobs").count();
        let cut = here.world.call(["recover"]).env("RECANT_STEPS", format!("kill:{m}")).run();
        if cut.status != 137 {
            break;
        }
        if blobs() == 0 {
            here.world.write("hosts", "theirs");
            here.world.recant("recover").ok();
            assert_eq!(here.world.read("hosts"), "theirs");
            here.world.assert_tidy(&format!("cut before step {m}"));
            tried += 1;
        }
    }
    assert!(tried > 1, "{tried}");
}

#[test]
fn what_may_not_be_written_when_it_is_taken_back_is_left_and_named() {
    let Some(here) = Mounted::new(&old()) else { return };
    let start = here.world.manifest();
    for how in ["", " ID --finish"] {
        let id = half_written(&here, &long());
        let torn = here.world.bytes("hosts");
        assert!(mount(&["-o", "remount,bind,ro"], "mount", &here.point));
        let left = here.world.recant("recover").with(4);
        assert!(left.to_string().contains("hosts (it cannot be opened for that: read-only"), "{left}");
        if how.is_empty() {
            assert!(mount(&["-o", "remount,bind,rw"], "mount", &here.point));
            here.world.recant("recover").ok();
            start.assert_same(&here.world.manifest(), "taken back once it may be written");
        } else {
            here.world.recant(&format!("recover{}", how.replace("ID", &id))).run_is_done();
            assert!(here.world.bytes("hosts") == torn, "it stays");
            assert_eq!(displaced(&here, &id).iter().map(|(_, bytes)| bytes).collect::<Vec<_>>(), [&old()]);
        }
        here.world.assert_tidy(how);
    }
}

#[test]
fn metadata_that_may_not_be_set_back_is_left_and_named_though_the_content_is_back() {
    let Some(here) = Mounted::new(&old()) else { return };
    let start = here.world.manifest();
    half_written(&here, &long());
    // Each is killed once it has done one step more: its content is back at last, and its time not yet.
    let is_back = |_| {
        here.world.call(["recover"]).env("RECANT_STEPS", "kill:3").run().with(137);
        here.world.bytes("hosts") == old()
    };
    assert!((0..9).any(is_back) && !start.difference(&here.world.manifest()).is_empty());
    assert!(mount(&["-o", "remount,bind,ro"], "mount", &here.point));
    let left = here.world.recant("recover").with(4);
    assert!(left.to_string().contains("its metadata cannot be set back: read-only"), "{left}");
    assert!(mount(&["-o", "remount,bind,rw"], "mount", &here.point));
    here.world.recant("recover").ok();
    start.assert_same(&here.world.manifest(), "taken back once it may be written");
    here.world.assert_tidy("taken back");
}

/// A program that ends with the test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            println!("left running: {error}");
        }
    }
}

#[test]
fn a_program_that_runs_is_refused_before_anything_is_changed() {
    let Some(here) = Mounted::new(&std::fs::read("/bin/sleep").expect("a program")) else { return };
    std::fs::set_permissions(&here.source, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    let start = here.world.manifest();
    let id = here.staged(b"another program");
    let runs = Running(Command::new(&here.point).arg("600").spawn().expect("it runs"));
    if File::options().write(true).open(&here.point).is_ok() {
        skip("a program that runs: it can be written to here");
    } else {
        let said = here.verb("commit", &id).with(1);
        assert!(said.stderr().contains("hosts: ") && said.stderr().contains("a program that runs"), "{said}");
        start.assert_same(&here.world.manifest(), "refused");
        here.world.assert_tidy("refused");
    }
    drop(runs);
    here.verb("commit", &id).ok();
    here.verb("rollback", &id).ok();
    start.assert_same(&here.world.manifest(), "rolled back");
}

#[test]
fn its_owner_cannot_take_his_own_right_to_take_it_back() {
    let Some(here) = Mounted::new(&old()) else { return };
    let world = &here.world;
    let Some(call) = as_owner(&here) else { return };
    let refused = |id: &str, mode: &str| {
        let start = world.manifest();
        let said = call(&format!("commit {id}")).with(1);
        assert!(said.stderr().contains("hosts: ") && said.stderr().contains(mode), "{mode}: {said}");
        start.assert_same(&world.manifest(), mode);
        world.assert_tidy(mode);
    };
    for (content, mode) in [(true, "0444"), (true, "0240"), (false, "0240")] {
        let id = call("session new").ok().id();
        if content {
            call(&format!("session write {id} hosts")).ok();
        }
        call(&format!("session chmod {id} {mode} hosts")).ok();
        refused(&id, mode);
    }
    world.chmod("hosts", 0o444);
    let id = call("session new").ok().id();
    call(&format!("session write {id} hosts")).ok();
    refused(&id, "0444");
}

#[test]
fn unmounted_before_its_metadata_is_set_the_file_below_keeps_its_own() {
    let Some(here) = Mounted::new(&old()) else { return };
    let session = || {
        let id = here.alone(&long());
        here.world.recant(&format!("session chmod {id} 0600 hosts")).ok();
        id
    };
    let id = session();
    let whole = steps(&here, &["commit", &id]);
    here.verb("rollback", &id).ok();
    let id = session();
    let last = whole.iter().rposition(|step| step.starts_with("pwrite") && is_write(&here, step)).expect("a write") + 1;
    umount(&here.point);
    let below = here.point.metadata().expect("the file");
    assert!(mount(&["--bind", &here.source.display().to_string()], "mount", &here.point));
    let orders = format!("run:{}:umount -l {}", last + 1, here.point.display());
    here.world.call(["commit", &id]).env("RECANT_STEPS", orders).run();
    let now = here.point.metadata().expect("the file");
    assert_eq!(
        (now.ino(), now.mode(), now.mtime(), now.mtime_nsec()),
        (below.ino(), below.mode(), below.mtime(), below.mtime_nsec())
    );
    assert_eq!(here.source.metadata().expect("the source").mode() & 0o777, 0o600);
    assert!(mount(&["--bind", &here.source.display().to_string()], "mount", &here.point));
    here.world.call(["recover"]).run();
    here.verb("rollback", &id);
    assert!(here.world.bytes("hosts") == old());
}

#[test]
fn one_that_lies_below_an_overlay_is_written_and_rolled_back() {
    let Some(here) = Mounted::new(b"hidden") else { return };
    umount(&here.point);
    let below = here.source.with_file_name("overlay");
    let part = |name: &str| below.join(name);
    ["lower", "upper", "work", "merged"].iter().for_each(|name| std::fs::create_dir_all(part(name)).expect("a folder"));
    std::fs::write(part("lower").join("hosts"), old()).expect("a file");
    let options =
        format!("lowerdir={},upperdir={},workdir={}", part("lower").display(), part("upper").display(), part("work").display());
    let merged = part("merged");
    if !mount(&["-t", "overlay", "overlay", "-o", &options], "mount", &merged) {
        skip("a file below an overlay: none can be mounted here");
    } else if mount(&["--bind", &merged.join("hosts").display().to_string()], "mount", &here.point) {
        let start = here.world.manifest();
        let id = here.staged(&long());
        here.verb("commit", &id).ok();
        assert!(here.world.bytes("hosts") == long());
        here.verb("rollback", &id).ok();
        start.assert_same(&here.world.manifest(), "rolled back");
        umount(&here.point);
    }
    umount(&merged);
    // The drop takes away what is mounted there.
    assert!(mount(&["--bind", &here.source.display().to_string()], "mount", &here.point));
}

#[test]
fn force_keeps_no_copy_of_what_is_another_file() {
    let Some(here) = Mounted::new(&old()) else { return };
    let id = half_written(&here, &long());
    umount(&here.point);
    here.world.recant("recover").with(4);
    here.world.call(["recover", &id, "--force"]).run().run_is_done();
    assert_eq!(here.world.read("hosts"), "hidden by the mount");
    let kept: Vec<_> = displaced(&here, &id);
    assert!(kept.len() == 1 && kept[0].1 == old(), "{:?}", kept.iter().map(|(name, _)| name).collect::<Vec<_>>());
    here.world.assert_tidy("by force");
    assert!(mount(&["--bind", &here.source.display().to_string()], "mount", &here.point));
}

#[test]
fn files_that_fit_alone_and_not_together_are_refused_before_anything_is_changed() {
    if !is_root("a full file system") {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    if !mount(&["-t", "tmpfs", "-o", "size=512k", "tmpfs"], "mount", dir.path()) {
        skip("a full file system: no tmpfs can be mounted here");
        return;
    }
    if let Some(here) = Mounted::apart(&old(), dir.path()) {
        let (second, point) = (here.source.with_file_name("second"), here.world.path("other"));
        std::fs::write(&second, old()).expect("a file");
        assert!(mount(&["--bind", &second.display().to_string()], "mount", &point));
        std::fs::write(dir.path().join("filler"), vec![1; 250_000]).expect("a filler");
        let start = here.world.manifest();
        let id = here.alone(&long());
        here.world.stage_write(&id, "other", long());
        let said = here.verb("commit", &id).with(1);
        for name in ["hosts: ", "other: "] {
            assert!(said.stderr().contains(name) && said.stderr().contains("are needed there"), "{said}");
        }
        start.assert_same(&here.world.manifest(), "refused");
        umount(&point);
    }
    umount(dir.path());
}
