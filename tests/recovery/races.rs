//! Somebody else at work in the middle: before each step of a commit and of a rollback a file is swapped, edited, removed
//! or put in the way, a parent directory becomes a link to outside; and each step fails once.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::common::{self, Manifest, World};

/// The newcomer's content, which must never be lost.
const NEWCOMER: &str = "the newcomer's only copy";

struct Scene {
    world: World,
    id: String,
    /// The tree as the operation finds it.
    start: Manifest,
    outside: Manifest,
    /// The store's own directory, where it lies on another file system than the tree.
    _store: Option<tempfile::TempDir>,
}

/// Where the store lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    OneFileSystem,
    Another,
}

impl Scene {
    /// A session over some files, ready for `verb`; on tmpfs where there is one, since every sweep syncs thousands of times.
    fn of(verb: &str, place: Store) -> Self {
        let shm = Path::new("/dev/shm");
        let mut world = if shm.is_dir() { World::on(shm) } else { World::new() };
        let store = (place == Store::Another).then(|| tempfile::tempdir().expect("a directory for the store"));
        if let Some(store) = &store {
            world.set("RECANT_STORE", store.path().join("store"));
        }
        world.write("dir/edited", "old").write("dir/gone", "away").write("dir/moded", "x").write("dir/calm", "old");
        world.write("full/a", "1").write("full/sub/b", "2").write("../outside/edited", "outside").symlink("old", "dir/link");
        for name in ["edited", "gone", "moded", "calm", "link"].map(|name| format!("dir/{name}")) {
            world.set_mtime(name, 1_000_000_000, 7);
        }
        for name in ["full/a", "full/sub/b", "full/sub", "full", "dir", ""] {
            world.set_mtime(name, 1_000_000_000, 7);
        }
        let id = world.begin();
        for name in ["dir/edited", "dir/calm", "dir/new", "made/deep/new"] {
            world.stage_write(&id, name, "new");
        }
        for words in
            ["delete ID dir/gone", "chmod ID 0640 dir/moded", "chmod ID 0750 dir", "delete ID full -r", "delete ID dir/link"]
        {
            world.recant(&format!("session {}", words.replace("ID", &id))).ok();
        }
        if verb == "rollback" {
            world.recant(&format!("commit {id}")).ok();
        }
        let (start, outside) = (world.manifest(), common::manifest(&world.root().join("outside")));
        let scene = Self { world, id, start, outside, _store: store };
        scene.shell("mkdir saved && cp -a tree outside saved && cp -a $RECANT_STORE saved-store");
        scene
    }

    /// Everything as it was at first.
    fn reset(&self) {
        self.shell("rm -rf tree outside $RECANT_STORE && cp -a saved/. . && cp -a saved-store $RECANT_STORE");
    }

    fn shell(&self, command: &str) {
        self.world.program("sh", ["-c", command]).cwd(self.world.root()).run().ok();
    }

    /// Carries the verb out; how many steps it has, and the tree then. All is reset.
    fn whole(&self, verb: &str) -> (Vec<String>, Manifest) {
        let log = self.world.root().join("steps");
        self.world.call([verb, &self.id]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let steps = std::fs::read_to_string(&log).expect("a log of steps").lines().map(String::from).collect();
        std::fs::remove_file(log).expect("the log");
        let after = self.world.manifest();
        self.reset();
        (steps, after)
    }

    /// Every file of the tree and the store, temporary names included, that holds the newcomer's content.
    fn holders(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut todo = vec![self.world.root().to_path_buf()];
        while let Some(path) = todo.pop() {
            let Ok(meta) = path.symlink_metadata() else { continue };
            if meta.is_dir() {
                todo.extend(std::fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("a name").path()));
            } else if meta.is_file() && std::fs::read(&path).expect("a file") == NEWCOMER.as_bytes() {
                found.push(path.display().to_string());
            }
        }
        found
    }
}

/// A command that somebody else runs in the tree, and the paths whose state is theirs from then on. With `None` as the
/// directory of its paths all below it may be on either side.
struct Deed {
    name: &'static str,
    command: &'static str,
    theirs: &'static [&'static str],
    /// Whether it leaves a newcomer's content somewhere.
    leaves: bool,
}

const DEEDS: [Deed; 8] = [
    Deed {
        name: "a file swapped for another",
        command: "printf %s \"$NEW\" > dir/.other && mv -f dir/.other dir/edited",
        theirs: &["dir/edited"],
        leaves: true,
    },
    Deed { name: "a file edited in place", command: "printf %s \"$NEW\" > dir/edited", theirs: &["dir/edited"], leaves: true },
    Deed { name: "a file removed", command: "rm -f dir/edited", theirs: &["dir/edited"], leaves: false },
    Deed {
        name: "a file made where one is placed or removed",
        command: "for f in dir/new dir/gone; do printf %s \"$NEW\" > $f.tmp && mv -f $f.tmp $f; done",
        theirs: &["dir/new", "dir/gone"],
        leaves: true,
    },
    Deed {
        name: "something put into a directory that goes",
        command: "for f in full/sub full made made/deep; do if [ -d $f ]; then printf %s \"$NEW\" > $f/put; fi; done; printf %s \"$NEW\" > put",
        theirs: &["full/sub/put", "full/put", "made/put", "made/deep/put", "put", "full", "full/sub", "made", "made/deep"],
        leaves: true,
    },
    Deed { name: "a link retargeted", command: "ln -sfn other dir/link", theirs: &["dir/link"], leaves: false },
    Deed {
        name: "a mode changed",
        command: "if [ -e dir/edited ]; then chmod 0604 dir/edited; fi",
        theirs: &["dir/edited"],
        leaves: false,
    },
    Deed {
        name: "a parent directory swapped for a link to outside",
        command: "mv dir moved && ln -s ../outside dir",
        theirs: &["dir", "moved"],
        leaves: false,
    },
];

/// Rows of paths that are nobody else's, times of directories aside (they are what whoever came last has left) and the time of
/// what was staged, which differs between scenes.
fn calm(manifest: &Manifest, theirs: &[&str]) -> Manifest {
    let mut manifest = manifest.clone().without_directory_times();
    let under = |path: &[u8], top: &str| path == top.as_bytes() || path.starts_with(format!("{top}/").as_bytes());
    let whole = |top: &str| ["dir", "moved", "put"].contains(&top);
    manifest.0.retain(|path, _| {
        !theirs.iter().any(|top| if whole(top) { under(path, top) } else { path == top.as_bytes() }) && path != b"put"
    });
    manifest.0.values_mut().filter(|row| row.content.contains("\"new\"")).for_each(|row| row.mtime = (0, 0));
    manifest
}

fn sweep(verb: &str, deed: &Deed) {
    let scene = Scene::of(verb, Store::OneFileSystem);
    let world = &scene.world;
    let (steps, after) = scene.whole(verb);
    let (s0, s1) = (calm(&scene.start, deed.theirs), calm(&after, deed.theirs));
    let script = world.root().join("deed");
    std::fs::write(&script, format!("cd {} && {}", world.tree().display(), deed.command)).expect("a script");
    let mut ended: BTreeMap<i32, usize> = BTreeMap::new();
    for n in 1..=steps.len() {
        let order = format!("run:{n}:sh {}", script.display());
        let said = world.call([verb, &scene.id]).env("NEW", NEWCOMER).env("RECANT_STEPS", order).run();
        let what = format!("{verb}, before step {n}, {}: {}: {said}", steps[n - 1], deed.name);
        *ended.entry(said.status).or_default() += 1;
        assert!([0, 1, 3, 4, 7].contains(&said.status), "{what}");
        let now = calm(&world.manifest(), deed.theirs);
        match said.status {
            4 if said.stderr_lossy().contains("undone except for") => {
                let at = [&s0, &s1].map(|state| state.difference(&now));
                assert!(at.iter().any(String::is_empty), "{what}\nnot as before:\n{}\nnor as after:\n{}", at[0], at[1]);
            }
            0 | 4 => s1.assert_same(&now, &what),
            1 | 3 => s0.assert_same(&now, &what),
            _ => {
                let at = [&s0, &s1].map(|state| state.difference(&now));
                assert!(at.iter().any(String::is_empty), "{what}\nnot as before:\n{}\nnor as after:\n{}", at[0], at[1]);
            }
        }
        scene.outside.assert_same(&common::manifest(&world.root().join("outside")), &what);
        if deed.leaves {
            assert!(!scene.holders().is_empty(), "{what}\nthe newcomer's content is lost");
        }
        assert_eq!(world.leftovers(), Vec::<String>::new(), "{what}");
        if said.stderr_lossy().contains("undone except for") {
            assert!(world.recant("status").stdout().contains("left  "), "{what}");
            let mut paths = deed.theirs.iter().map(|name| world.path(name).display().to_string());
            assert!(paths.any(|path| said.stderr_lossy().contains(&path)), "{what}\nno path is named");
            // The command that it names ends it, and keeps the newcomer.
            let onward = if verb == "commit" { "rollback" } else { "redo" };
            assert!(said.stderr_lossy().contains(&format!("recant {onward} ")), "{what}");
            let ended = world.recant(&format!("{onward} {} --force", scene.id));
            assert!([0, 1, 3, 4].contains(&ended.status), "{what}\nthen {onward}: {ended}");
            let what = format!("{what}\nthen {onward}: {ended}");
            assert!(!deed.leaves || !scene.holders().is_empty(), "{what}\nthe newcomer's content is lost");
            assert_eq!(world.recant("recover").ok().stderr(), "recant: nothing was interrupted\n", "{what}");
            world.assert_tidy(&what);
        } else {
            world.assert_tidy(&what);
        }
        scene.reset();
    }
    println!("{verb}: {}: {} steps, ended with {ended:?}", deed.name, steps.len());
}

#[test]
fn whatever_happens_in_the_middle_of_a_commit_nothing_of_anybody_is_lost() {
    for deed in &DEEDS {
        sweep("commit", deed);
    }
}

#[test]
fn whatever_happens_in_the_middle_of_a_rollback_nothing_of_anybody_is_lost() {
    for deed in &DEEDS {
        sweep("rollback", deed);
    }
}

const ENOSPC: i32 = 28;
const EIO: i32 = 5;
const EPERM: i32 = 1;
const EINTR: i32 = 4;

/// After a step failed the tree is as before, with a status that says so, or as after it; then the same command works.
fn failing(verb: &str, errno: i32, place: Store) {
    let scene = Scene::of(verb, place);
    let world = &scene.world;
    let (steps, after) = scene.whole(verb);
    let s1 = calm(&after, &[]);
    let mut ended: BTreeMap<i32, usize> = BTreeMap::new();
    // Between two file systems each fourth step: the store's, on a disk, are synced one by one.
    let every = if place == Store::Another { 4 } else { 1 };
    for n in (1..=steps.len()).step_by(every) {
        let said = world.call([verb, &scene.id]).env("RECANT_STEPS", format!("fail:{n}:{errno}")).run();
        let what = format!("{verb}, step {n}, {}, failed with {errno}: {said}", steps[n - 1]);
        *ended.entry(said.status).or_default() += 1;
        match said.status {
            0 => s1.assert_same(&calm(&world.manifest(), &[]), &what),
            1 => scene.start.assert_same(&world.manifest(), &what),
            // Done, and not tidied up.
            7 => {
                let mut now = calm(&world.manifest(), &[]);
                now.0.retain(|path, _| !path.windows(8).any(|part| part == b".recant-"));
                s1.assert_same(&now, &what);
            }
            _ => panic!("{what}"),
        }
        assert!(said.status == 0 || said.stderr().contains("recant: "), "{what}");
        if said.status != 7 {
            world.assert_tidy(&what);
        }
        let again = world.call([verb, &scene.id]).run();
        assert_eq!(again.status, 0, "{what}\nand again: {again}");
        s1.assert_same(&calm(&world.manifest(), &[]), &format!("{what}\nand again: {again}"));
        world.assert_tidy(&what);
        scene.reset();
    }
    println!("{verb}: error {errno}: {} steps, ended with {ended:?}", steps.len());
}

#[test]
fn a_full_disk_at_any_step_is_undone_and_said_and_the_same_command_works_then() {
    failing("commit", ENOSPC, Store::OneFileSystem);
    failing("rollback", ENOSPC, Store::OneFileSystem);
}

#[test]
fn a_full_disk_at_any_step_is_undone_and_said_between_two_file_systems() {
    if dev(Path::new("/dev/shm")) == dev(&std::env::temp_dir()) || dev(Path::new("/dev/shm")).is_none() {
        println!("skipped: two file systems: /dev/shm is none of its own");
        return;
    }
    failing("commit", ENOSPC, Store::Another);
    failing("rollback", ENOSPC, Store::Another);
}

fn dev(path: &Path) -> Option<u64> {
    path.metadata().map(|meta| meta.dev()).ok()
}

#[test]
fn an_error_of_the_disk_at_any_step_is_undone_and_said_and_the_same_command_works_then() {
    failing("commit", EIO, Store::OneFileSystem);
    failing("rollback", EIO, Store::OneFileSystem);
}

#[test]
fn a_refusal_at_any_step_is_undone_and_said_and_the_same_command_works_then() {
    failing("commit", EPERM, Store::OneFileSystem);
    failing("rollback", EPERM, Store::OneFileSystem);
}

#[test]
fn an_interrupted_call_at_any_step_is_not_seen_or_undone_and_said() {
    failing("commit", EINTR, Store::OneFileSystem);
    failing("rollback", EINTR, Store::OneFileSystem);
}

/// Where it could not be known before (a directory with a project quota of its own): undone, and said what helps.
#[test]
fn a_rename_that_is_refused_is_undone_and_said() {
    for verb in ["commit", "rollback"] {
        let scene = Scene::of(verb, Store::OneFileSystem);
        let world = &scene.world;
        let (steps, _) = scene.whole(verb);
        let before = calm(&world.manifest(), &[]);
        let tree = world.tree().display().to_string();
        for (n, step) in (1..).zip(&steps).filter(|(_, step)| step.contains("renameat2") && step.contains(&tree)) {
            let said = world.call([verb, &scene.id]).env("RECANT_STEPS", format!("fail:{n}:18")).run();
            let what = format!("{verb}, step {n}, {step}, refused with EXDEV: {said}");
            assert!(said.status == 1 && said.stderr().contains("RECANT_STORE on another file system"), "{what}");
            before.assert_same(&calm(&world.manifest(), &[]), &what);
            world.assert_tidy(&what);
        }
    }
}

#[test]
fn an_edit_after_the_exchange_is_a_conflict_at_rollback_even_with_size_and_time_put_back() {
    let scene = Scene::of("commit", Store::OneFileSystem);
    let world = &scene.world;
    let (steps, _) = scene.whole("commit");
    let script = world.root().join("deed");
    // Late enough that the ctime is no longer young when the fingerprint of what was put is taken.
    let edit = "[ \"$(cat tree/dir/edited)\" = new ] || exit 0\ntouch -r tree/dir/edited ref\nprintf NEW > tree/dir/edited\n\
        touch -r ref tree/dir/edited\nsleep 0.05\n";
    std::fs::write(&script, format!("cd {}\n{edit}", world.root().display())).expect("a script");
    let mut edited = 0;
    for n in 1..=steps.len() {
        let order = format!("run:{n}:sh {}", script.display());
        let said = world.call(["commit", &scene.id]).env("RECANT_STEPS", order).run();
        if world.read("dir/edited") == "NEW" {
            edited += 1;
            let what = format!("before step {n}, {}: {said}", steps[n - 1]);
            let back = world.recant(&format!("rollback {}", scene.id));
            assert_eq!(world.read("dir/edited"), "NEW", "{what}\n{back}");
            assert_eq!(back.status, 3, "{what}\n{back}");
        }
        scene.reset();
    }
    assert!(edited > 5, "{edited} edits came in between");
}

/// In the middle of a rollback the originals are on the tree, and the header still says that they are in the checkpoint.
#[test]
fn who_reads_beside_an_operation_is_told_of_it_and_not_of_damage() {
    let world = World::new();
    world.write("a", "old").write("b", "old");
    let id = world.begin();
    world.stage_write(&id, "a", "new").stage_write(&id, "b", "new");
    world.recant(&format!("commit {id}")).ok();
    let log = world.root().join("steps");
    let steps = |orders: String| world.call(["rollback", &id]).env("RECANT_STEPS", orders);
    world.program("cp", ["-a", "tree", "store", "saved"]).cwd(world.mkdir(world.root().join("saved")).root()).run().ok();
    steps(format!("log:{}", log.display())).run().ok();
    let logged = std::fs::read_to_string(&log).expect("a log of steps");
    let seals =
        logged.lines().position(|step| step.starts_with(|c: char| c.is_ascii_digit()) && step.contains("session.json.new"));
    let middle = seals.expect("a seal") + 1;
    world.program("sh", ["-c", "rm -r tree store; cp -a saved/* ."]).cwd(world.root()).run().ok();
    let recant = common::recant();
    let script = format!(
        "cd {}; for words in 'diff {id}' 'cat {id} tree/a --before' 'list' 'show {id}' 'status'; do
            {recant} $words >> said 2>&1; echo \"exit $? of $words\" >> said
        done; ({recant} checkpoint verify {id} > verified 2>&1; echo \"exit $?\" >> verified; mv verified done) &",
        world.root().display()
    );
    let hook = world.root().join("hook");
    std::fs::write(&hook, script).expect("a script");
    steps(format!("run:{middle}:sh {} < /dev/null > /dev/null", hook.display())).run().ok();
    let said = std::fs::read_to_string(world.root().join("said")).expect("what was said");
    for words in [&format!("exit 6 of diff {id}"), &format!("exit 6 of cat {id}"), "exit 0 of list", "exit 0 of status"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("another recant was at work in session"), "{said}");
    assert!(!said.contains("damaged") && !said.contains("interrupted"), "{said}");
    let wait = "i=0; until [ -e done ] || [ $i = 200 ]; do sleep 0.05; i=$((i+1)); done; cat done";
    let verified = world.program("sh", ["-c", wait]).cwd(world.root()).run().ok().stdout();
    assert!(verified.contains("whole") && verified.ends_with("exit 0\n"), "{verified}");
}

/// What was put is on the tree for a moment, although the operation comes to nothing: who writes to it then is told, and his bytes are
/// never taken for held content that is damaged.
#[test]
fn what_is_written_to_content_that_is_taken_back_at_once_is_named_and_kept() {
    let scene = Scene::of("commit", Store::OneFileSystem);
    let world = &scene.world;
    let (steps, _) = scene.whole("commit");
    let at = |words: [&str; 2]| steps.iter().position(|step| words.iter().all(|word| step.contains(word))).expect("a step") + 1;
    let exchange = at(["EXCHANGE", "tree/dir/edited"]);
    let append = |n: usize, text: &str| format!("run:{n}:printf {text} >> {}", world.path("dir/edited").display());
    // The original was written to since it was planned, so that it is put back at once. Or a later step fails, and all is undone.
    let failed = at(["renameat ", "session.json.new"]);
    let undone = {
        let log = world.root().join("undo");
        let orders = format!("fail:{failed}:5;log:{}", log.display());
        world.call(["commit", &scene.id]).env("RECANT_STEPS", orders).run().with(1);
        let log = std::fs::read_to_string(log).expect("a log");
        scene.reset();
        let is_it = |step: &str| step.contains("EXCHANGE") && step.contains("tree/dir/edited");
        failed + log.lines().skip(failed).position(is_it).expect("the undo of the exchange") + 1
    };
    for (orders, before) in [
        (format!("{};{}", append(exchange, "early"), append(exchange + 1, "LATE")), "oldearly"),
        (format!("fail:{failed}:5;{}", append(undone, "LATE")), "old"),
    ] {
        let said = world.call(["commit", &scene.id]).env("RECANT_STEPS", &orders).run().with(4);
        let text = said.stderr();
        assert!(text.contains("dir/edited: somebody changed what was put there"), "{orders}: {said}");
        assert_eq!(world.read("dir/edited"), "newLATE", "{orders}");
        world.recant(&format!("rollback {} --force", scene.id)).ok();
        assert_eq!(world.read("dir/edited"), before, "{orders}");
        let kept = world.call(["cat", &scene.id, "dir/edited", "--displaced"]).run().ok().stdout();
        assert_eq!(kept, "newLATE", "{orders}");
        scene.reset();
    }
}

#[test]
fn a_dry_run_beside_a_recant_that_is_at_work_calls_nothing_interrupted() {
    let scene = Scene::of("commit", Store::OneFileSystem);
    let world = &scene.world;
    let (steps, _) = scene.whole("commit");
    let (said, recant) = (world.root().join("said"), common::recant());
    let order = format!(
        "run:{}:env -u RECANT_STEPS {recant} commit {} --dry-run > {2} 2>&1 || echo $? >> {2}",
        steps.len() / 2,
        scene.id,
        said.display()
    );
    world.call(["commit", &scene.id]).env("RECANT_STEPS", order).run().ok();
    let said = std::fs::read_to_string(said).expect("what it said");
    assert!(said.ends_with("\n6\n") && !said.contains("interrupted"), "{said}");
}

/// The manifest tells of what planning saw: a rollback would take off what it does not know of.
#[test]
fn extended_attributes_that_are_set_between_look_and_act_are_a_conflict() {
    for store in [Store::OneFileSystem, Store::Another] {
        let scene = Scene::of("commit", store);
        let world = &scene.world;
        if rustix::fs::setxattr(world.path("dir/calm"), "user.try", b"1", rustix::fs::XattrFlags::empty()).is_err() {
            return common::skip("xattrs between look and act: this file system keeps no user.*");
        }
        scene.reset();
        let (steps, _) = scene.whole("commit");
        scene.reset();
        for name in ["dir/edited", "dir/gone"] {
            let takes = |step: &String| step.contains("renameat2 ") && step.contains(&format!("tree/{name}"));
            let at = steps.iter().position(takes).expect("a step") + 1;
            let set = format!("run:{at}:setfattr -n user.mine -v precious {}", world.path(name).display());
            let said = world.call(["commit", &scene.id]).env("RECANT_STEPS", &set).run().with(3);
            assert!(said.stderr().contains(name) && said.stderr().contains("extended attributes"), "{store:?} {name}: {said}");
            let mut value = [0; 8];
            rustix::fs::getxattr(world.path(name), "user.mine", &mut value).expect("what was set");
            assert_eq!(&value, b"precious", "{store:?} {name}");
            scene.reset();
        }
    }
}

/// Which object it is tells it, where neither size nor times nor rights do.
#[test]
fn what_looks_the_same_or_has_other_rights_between_look_and_act_is_a_conflict() {
    let alike = "head -c $(stat -c %s F) /dev/zero > F.t && touch -r F F.t && chmod --reference=F F.t && mv F.t F";
    for store in [Store::OneFileSystem, Store::Another] {
        let scene = Scene::of("commit", store);
        let world = &scene.world;
        let (steps, _) = scene.whole("commit");
        for (name, deed) in
            [("dir/edited", alike), ("dir/gone", alike), ("dir/edited", "chmod 0604 F"), ("dir/gone", "chmod 0604 F")]
        {
            scene.reset();
            // What is that young is read once more anyway.
            std::thread::sleep(std::time::Duration::from_millis(100));
            let takes = |step: &String| step.contains("renameat2 ") && step.contains(&format!("tree/{name}"));
            let at = steps.iter().position(takes).expect("a step") + 1;
            let order = format!("run:{at}:{}", deed.replace('F', &world.path(name).display().to_string()));
            let said = world.call(["commit", &scene.id]).env("RECANT_STEPS", order).run().with(3);
            assert!(said.stderr().contains(name), "{store:?} {name} {deed}: {said}");
            let meta = world.path(name).metadata().expect("what somebody put there");
            let is_theirs = if deed == alike { world.bytes(name).iter().all(|b| *b == 0) } else { meta.mode() & 0o7777 == 0o604 };
            assert!(is_theirs, "{store:?} {name} {deed}: {said}");
        }
    }
}

/// A write in the tick of the clock in which it was put leaves the ctime as it is, and the mtime too where that is as young.
#[test]
fn the_fingerprint_of_what_was_put_proves_nothing_where_its_mtime_is_no_older() {
    if !common::can_run() {
        return common::skip("the fingerprint of what was put: no run here");
    }
    let world = common::World::new();
    world
        .call(["run", "--", "sh", "-c", "echo 1 > old; touch -d @1000000000 old; echo 1 > young; touch -d @4000000000 young"])
        .run()
        .ok();
    // Late enough that no ctime is young any more when the manifest is written.
    let late = |n: usize| format!("log:{0};run:{n}:sleep 0.1", world.root().join("steps").display());
    for words in ["commit last", "rollback last"] {
        world.recant(words).ok();
    }
    world.call(["redo", "last"]).env("RECANT_STEPS", late(0)).run().ok();
    let steps = std::fs::read_to_string(world.root().join("steps")).expect("a log of steps");
    let n = steps.lines().position(|step| step.contains("checkpoint/manifest.jsonl.new")).expect("the manifest") + 1;
    world.recant("rollback last").ok();
    world.call(["redo", "last"]).env("RECANT_STEPS", late(n)).run().ok();
    let id = world.recant("show last --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
    let manifest = std::fs::read_to_string(world.session(&id).join("checkpoint/manifest.jsonl")).expect("the manifest");
    for (name, racy) in [("old", false), ("young", true)] {
        let line = manifest.lines().find(|line| line.contains(&format!("/{name}\""))).expect("a line");
        assert_eq!(line.contains("\"racy\":true"), racy, "{line}");
    }
}

/// A small session whose tree lies on another file system than the store, so that copies are made beside the targets. `first` is done in
/// the tree before it begins.
fn copied(first: &str) -> Option<(World, String, tempfile::TempDir)> {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        println!("skipped: copies beside the targets: no /dev/shm");
        return None;
    }
    let (mut world, store) = (World::on(shm), tempfile::tempdir().expect("a directory for the store"));
    world.set("RECANT_STORE", store.path().join("store"));
    world.write("p/q/edited", "old").write("p/z", "old");
    let said = world.program("sh", ["-c", first]).cwd(world.tree()).run();
    if said.status != 0 {
        println!("skipped: copies beside the targets: {first}: {said}");
        return None;
    }
    let id = world.begin();
    for name in ["p/q/edited", "p/q/new", "p/z"] {
        world.stage_write(&id, name, "of the session");
    }
    Some((world, id, store))
}

/// What is done, and at which steps: every one, or some.
const MOVED: [(&str, usize); 2] = [("mv p/q p/moved", 1), ("mv p/q p/moved && mkdir p/q", 5)];

/// Commits with somebody doing `moved` before step `n`, and `then`. Nothing where there are not as many steps.
fn meanwhile(moved: &str, n: usize, then: &str) -> Option<(World, Manifest, common::Said, tempfile::TempDir)> {
    let (world, id, store) = copied("true")?;
    let before = world.manifest().without_directory_times();
    let order = format!("run:{n}:cd {} && ([ -e p/moved ] || ({moved})){then}", world.tree().display());
    let said = world.call(["commit", &id]).env("RECANT_STEPS", order).run();
    assert!(n > 20 || world.exists("p/moved"), "a commit of these has more steps than {n}: {said}");
    world.exists("p/moved").then_some((world, before, said, store))
}

fn temporary(world: &World) -> Vec<String> {
    let names = world.manifest().0.into_keys().map(|name| String::from_utf8_lossy(&name).into_owned());
    names.filter(|name| name.contains(".recant-")).collect()
}

/// A copy that was made ready goes with the directory that it lies in: it is found there, and so is what was done in it (I6).
#[test]
fn a_parent_directory_that_is_moved_within_the_tree_at_any_step_takes_nothing_of_recants_along() {
    for (moved, every) in MOVED {
        for n in common::steps().step_by(every) {
            let Some((world, before, said, _store)) = meanwhile(moved, n, "") else { break };
            let what = format!("{moved} before step {n}: {said}");
            assert_eq!(temporary(&world), Vec::<String>::new(), "{what}");
            assert!([0, 3].contains(&said.status), "{what}");
            if said.status == 3 {
                world.program("sh", ["-c", "cd p && { rmdir q 2>/dev/null; mv moved q; }"]).cwd(world.tree()).run().ok();
                before.assert_same(&world.manifest().without_directory_times(), &what);
            }
        }
    }
}

/// Whoever recovers knows of the directory only where it was: what may have gone along is named.
#[test]
fn what_a_directory_that_was_moved_before_a_kill_took_along_is_named() {
    for (moved, _) in MOVED {
        for n in common::steps().step_by(3) {
            let Some((world, _, _, _store)) = meanwhile(moved, n, &format!(";kill:{}", n + 1)) else { break };
            let said = world.recant("recover");
            let told = format!("{}{}", said.stdout(), said.stderr());
            for name in temporary(&world) {
                let name = name.rsplit('/').next().expect("a name");
                // One that is the only copy of what was there stays, and the path is named.
                let to_decide = told.contains("undone except for") && told.contains("p/q/edited (") && name.ends_with("-1");
                assert!(to_decide || told.contains(name), "{moved} before step {n}: {name}: {said}");
                assert!(said.status == 4 || told.contains("it is settled now"), "{moved} before step {n}: {said}");
            }
        }
    }
}

/// What is made in a directory with a default ACL gets that, and loses it before its mode is opened (F33).
#[test]
fn at_no_step_somebody_has_rights_by_an_acl_that_was_not_there_before_and_is_not_after() {
    let log = tempfile::NamedTempFile::new().expect("a log");
    for verb in ["commit", "rollback"] {
        let Some((world, id, _store)) = copied("setfacl -d -m u:1:rwx p/q && chmod 640 p/q/edited") else { return };
        if verb == "rollback" {
            world.call(["commit", &id, "p/q/edited"]).run().ok();
        }
        let see = format!("getfacl -RPacnp {} >> {}", world.tree().join("p").display(), log.path().display());
        let orders: Vec<String> = (1..200).map(|n| format!("run:{n}:{see}")).collect();
        world.call([verb, &id, "p/q/edited"]).env("RECANT_STEPS", orders.join(";")).run().ok();
        let seen = std::fs::read_to_string(log.path()).expect("what was seen");
        assert!(seen.contains("user:1:rwx"), "the ACL was there, without effect: {seen}");
        for line in seen.lines().filter(|line| line.starts_with("user:1:")) {
            assert!(line.ends_with("#effective:---"), "{verb}: {line}");
        }
        std::fs::write(log.path(), "").expect("an empty log");
    }
}
