//! Somebody else at work in the middle: before each step of a commit and of a rollback a file is swapped, edited, removed
//! or put in the way, a parent directory becomes a link to outside; and each step fails once.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::common::sweep::{is_due, is_whole, steps, steps_of};
use crate::common::{self, Manifest, World};
use crate::{Scene, numbers, seal, until_old};

/// The newcomer's content, which must never be lost.
const NEWCOMER: &str = "the newcomer's only copy";

/// A session over some files, ready for a verb.
struct Case {
    scene: Scene,
    /// The tree after the verb, and what lies outside of it.
    after: Manifest,
    outside: Manifest,
}

impl Deref for Case {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.scene
    }
}

impl Case {
    fn of(verb: &'static str, two: bool) -> Option<Self> {
        let mut scene = Scene::new(two)?;
        let world = &scene.world;
        world.write("dir/edited", "old").write("dir/gone", "away").write("dir/moded", "x").write("dir/calm", "old");
        world.write("full/a", "1").write("full/sub/b", "2").write("../outside/edited", "outside").symlink("old", "dir/link");
        for name in
            ["dir/edited", "dir/gone", "dir/moded", "dir/calm", "dir/link", "full/a", "full/sub/b", "full/sub", "full", "dir", ""]
        {
            world.set_mtime(name, 1_000_000_000, 7);
        }
        let written = ["dir/edited", "dir/calm", "dir/new", "made/deep/new"].map(|name| format!("write {name} new"));
        let others = ["delete dir/gone", "chmod 0640 dir/moded", "chmod 0750 dir", "delete full", "delete dir/link"];
        scene.begin(written.iter().map(String::as_str).chain(others));
        let scene = scene.at(verb);
        scene.shell("cp -a outside saved");
        let outside = common::manifest(&scene.world.root().join("outside"));
        scene.ok(verb);
        let case = Self { after: scene.world.manifest(), outside, scene };
        case.reset();
        Some(case)
    }

    /// Everything as it was at first.
    fn reset(&self) {
        self.scene.reset();
        self.shell("rm -rf outside && cp -a saved/outside .");
    }

    /// The steps that are due, with their numbers.
    fn due(&self) -> impl Iterator<Item = (usize, &String)> {
        (1..).zip(&self.steps).filter(|(n, _)| is_due(*n))
    }

    /// Whether a file of the tree or the store, temporary names included, holds the newcomer's content.
    fn holds_newcomer(&self) -> bool {
        let grep = ["-rqxF".as_ref(), NEWCOMER.as_ref(), self.world.root().as_os_str(), self.store.as_os_str()];
        self.world.program("grep", grep).run().status == 0
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

fn sweep(verb: &'static str, deed: &Deed) {
    let scene = Case::of(verb, false).expect("one file system");
    let world = &scene.world;
    let (s0, s1) = (calm(&scene.before, deed.theirs), calm(&scene.after, deed.theirs));
    let script = world.root().join("deed");
    std::fs::write(&script, format!("cd {} && {}", world.tree().display(), deed.command)).expect("a script");
    let mut ended: BTreeMap<i32, usize> = BTreeMap::new();
    for (n, step) in scene.due() {
        let order = format!("run:{n}:sh {}", script.display());
        let said = scene.call(verb).env("NEW", NEWCOMER).env("RECANT_STEPS", order).run();
        let what = format!("{verb}, before step {n}, {step}: {}: {said}", deed.name);
        *ended.entry(said.status).or_default() += 1;
        let now = calm(&world.manifest(), deed.theirs);
        let is_left = said.stderr_lossy().contains("undone except for");
        match said.status {
            0 => s1.assert_same(&now, &what),
            4 if !is_left => s1.assert_same(&now, &what),
            1 | 3 => s0.assert_same(&now, &what),
            4 | 7 => {
                let at = [&s0, &s1].map(|state| state.difference(&now));
                assert!(at.iter().any(String::is_empty), "{what}\nnot as before:\n{}\nor as after:\n{}", at[0], at[1]);
            }
            _ => panic!("{what}"),
        }
        scene.outside.assert_same(&common::manifest(&world.root().join("outside")), &what);
        assert!(!deed.leaves || scene.holds_newcomer(), "{what}\nthe newcomer's content is lost");
        assert_eq!(world.leftovers(), Vec::<String>::new(), "{what}");
        if is_left {
            assert!(world.recant("status").stdout().contains("left  "), "{what}");
            let mut paths = deed.theirs.iter().map(|name| world.path(name).display().to_string());
            assert!(paths.any(|path| said.stderr_lossy().contains(&path)), "{what}\nno path is named");
            // The command that it names ends it, and keeps the newcomer.
            let onward = if verb == "commit" { "rollback" } else { "redo" };
            assert!(said.stderr_lossy().contains(&format!("recant {onward} ")), "{what}");
            let ended = scene.call(&format!("{onward} --force")).run();
            let what = format!("{what}\nthen {onward}: {ended}");
            assert!([0, 1, 3, 4].contains(&ended.status), "{what}");
            assert!(!deed.leaves || scene.holds_newcomer(), "{what}\nthe newcomer's content is lost");
            scene.assert_over(&what);
        }
        world.assert_tidy(&what);
        scene.reset();
    }
    println!("{verb}: {}: {} steps, ended with {ended:?}", deed.name, scene.steps.len());
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

const EPERM: i32 = 1;
const EINTR: i32 = 4;
const EIO: i32 = 5;
const EXDEV: i32 = 18;
const ENOSPC: i32 = 28;

/// After a step failed the tree is as before, with a status that says so, or as after it; then the same command works.
fn failing(two: bool, errors: &[i32]) {
    for (verb, error) in ["commit", "rollback"].into_iter().flat_map(|verb| errors.iter().map(move |error| (verb, *error))) {
        let Some(scene) = Case::of(verb, two) else { return };
        let world = &scene.world;
        let (s1, seal) = (calm(&scene.after, &[]), scene.seal());
        let mut ended: BTreeMap<i32, usize> = BTreeMap::new();
        for (n, step) in scene.due() {
            let said = scene.run(verb, format!("fail:{n}:{error}"));
            let what = format!("{verb}, step {n}, {step}, failed with {error}: {said}");
            *ended.entry(said.status).or_default() += 1;
            match said.status {
                0 => s1.assert_same(&calm(&world.manifest(), &[]), &what),
                1 => scene.before.assert_same(&world.manifest(), &what),
                // Done, and not tidied up.
                7 => {
                    let mut now = calm(&world.manifest(), &[]);
                    now.0.retain(|path, _| !path.windows(8).any(|part| part == b".recant-"));
                    s1.assert_same(&now, &what);
                }
                _ => panic!("{what}"),
            }
            assert!(said.status == 0 || said.stderr().contains("recant: "), "{what}");
            // A sync that failed is never made up for by another.
            if error == EIO && step.contains("sync") && n < seal {
                assert!(said.status == 1 && said.stderr().contains("input/output error"), "{what}");
            }
            if said.status != 7 {
                world.assert_tidy(&what);
            }
            let again = scene.call(verb).run();
            let what = format!("{what}\nand again: {again}");
            assert_eq!(again.status, 0, "{what}");
            s1.assert_same(&calm(&world.manifest(), &[]), &what);
            world.assert_tidy(&what);
            scene.reset();
        }
        println!("{verb}: error {error}: {} steps, ended with {ended:?}", scene.steps.len());
    }
}

#[test]
fn a_full_disk_or_an_error_of_it_at_any_step_is_undone_and_said_and_the_same_command_works_then() {
    failing(false, &[ENOSPC, EIO]);
}

#[test]
fn a_full_disk_at_any_step_is_undone_and_said_between_two_file_systems() {
    failing(true, &[ENOSPC]);
}

#[test]
fn a_refusal_at_any_step_is_undone_and_said_and_the_same_command_works_then() {
    failing(false, &[EPERM, EXDEV]);
}

#[test]
fn an_interrupted_call_at_any_step_is_not_seen_or_undone_and_said() {
    failing(false, &[EINTR]);
}

#[test]
fn an_edit_after_the_exchange_is_a_conflict_at_rollback_even_with_size_and_time_put_back() {
    let scene = Case::of("commit", false).expect("one file system");
    let world = &scene.world;
    let script = world.root().join("deed");
    // Late enough that the ctime is no longer young when the fingerprint of what was put is taken.
    let edit = "[ \"$(cat tree/dir/edited)\" = new ] || exit 0\ntouch -r tree/dir/edited ref\nprintf NEW > tree/dir/edited\n\
        touch -r ref tree/dir/edited\nsleep 0.05\n";
    std::fs::write(&script, format!("cd {}\n{edit}", world.root().display())).expect("a script");
    let exchange = scene.step("renameat2 EXCHANGE", "tree/dir/edited");
    let mut edited = 0;
    for (n, step) in scene.due().filter(|(n, _)| *n > exchange) {
        let said = scene.run("commit", format!("run:{n}:sh {}", script.display()));
        let back = scene.call("rollback").run();
        let what = format!("before step {n}, {step}: {said}{back}");
        assert_eq!((world.read("dir/edited"), back.status), ("NEW".into(), 3), "{what}");
        edited += 1;
        scene.reset();
    }
    assert!(edited > if is_whole() { 5 } else { 0 }, "{edited} edits came in between");
}

/// In the middle of a rollback the originals are on the tree, and the header still says that they are in the checkpoint.
#[test]
fn who_reads_beside_an_operation_is_told_of_it_and_not_of_damage() {
    let mut scene = Scene::new(false).expect("one file system");
    scene.world.write("a", "old").write("b", "old");
    scene.begin(["write a new", "write b new"]);
    scene.ok("commit");
    let (middle, root, id, recant) = (seal(&scene.steps("rollback")), scene.world.root(), &scene.id, common::recant());
    let script = format!(
        "cd {}; for words in 'diff {id}' 'cat {id} tree/a --before' 'list' 'show {id}' 'status'; do
            {recant} $words >> said 2>&1; echo \"exit $? of $words\" >> said
        done; ({recant} checkpoint verify {id} > verified 2>&1; echo \"exit $?\" >> verified; mv verified done) &",
        root.display()
    );
    let hook = root.join("hook");
    std::fs::write(&hook, script).expect("a script");
    scene.run("rollback", format!("run:{middle}:sh {} < /dev/null > /dev/null", hook.display())).ok();
    let said = std::fs::read_to_string(root.join("said")).expect("what was said");
    for words in [&format!("exit 6 of diff {id}"), &format!("exit 6 of cat {id}"), "exit 0 of list", "exit 0 of status"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("another recant was at work in session"), "{said}");
    assert!(!said.contains("damaged") && !said.contains("interrupted"), "{said}");
    let wait = "i=0; until [ -e done ] || [ $i = 200 ]; do sleep 0.05; i=$((i+1)); done; cat done";
    let verified = scene.world.program("sh", ["-c", wait]).cwd(root).run().ok().stdout();
    assert!(verified.contains("intact") && verified.ends_with("exit 0\n"), "{verified}");
}

/// What was put is on the tree for a moment, although the operation comes to nothing: who writes to it then is told, and his bytes are
/// never taken for held content that is damaged.
#[test]
fn what_is_written_to_content_that_is_taken_back_at_once_is_named_and_kept() {
    let scene = Case::of("commit", false).expect("one file system");
    let world = &scene.world;
    let exchange = scene.step("renameat2 EXCHANGE", "tree/dir/edited");
    let append = |n: usize, text: &str| format!("run:{n}:printf {text} >> {}", world.path("dir/edited").display());
    // The original was written to since it was planned, so that it is put back at once. Or a later step fails, and all is undone.
    let failed = scene.seal();
    let undone = {
        let log = world.root().join("undo");
        scene.run("commit", format!("fail:{failed}:5;log:{}", log.display())).with(1);
        let log = std::fs::read_to_string(log).expect("a log");
        scene.reset();
        let is_it = |step: &str| step.contains("EXCHANGE") && step.contains("tree/dir/edited");
        failed + log.lines().skip(failed).position(is_it).expect("the undo of the exchange") + 1
    };
    for (orders, before) in [
        (format!("{};{}", append(exchange, "early"), append(exchange + 1, "LATE")), "oldearly"),
        (format!("fail:{failed}:5;{}", append(undone, "LATE")), "old"),
    ] {
        let said = scene.run("commit", &orders).with(4);
        assert!(said.stderr().contains("dir/edited: another process changed what was put there"), "{orders}: {said}");
        assert_eq!(world.read("dir/edited"), "newLATE", "{orders}");
        scene.ok("rollback --force");
        assert_eq!((world.read("dir/edited"), scene.displaced("dir/edited")), (before.into(), "newLATE".into()), "{orders}");
        scene.reset();
    }
}

#[test]
fn a_dry_run_beside_a_recant_that_is_at_work_calls_nothing_interrupted() {
    let scene = Case::of("commit", false).expect("one file system");
    let (said, recant, n) = (scene.world.root().join("said"), common::recant(), scene.steps.len() / 2);
    let (said, id) = (said.display(), &scene.id);
    let dry = format!("env -u RECANT_STEPS {recant} commit {id} --dry-run > {said} 2>&1 || echo $? >> {said}");
    scene.run("commit", format!("run:{n}:{dry}")).ok();
    let said = scene.world.read("../said");
    assert!(said.ends_with("\n6\n") && !said.contains("interrupted"), "{said}");
}

/// Which object it is tells it, where neither size nor times nor rights do. And the manifest tells of the extended attributes that planning
/// saw: a rollback would take off those that it does not know of.
#[test]
fn what_looks_the_same_or_has_other_metadata_between_look_and_act_is_a_conflict() {
    let alike = "head -c $(stat -c %s F) /dev/zero > F.t && touch -r F F.t && chmod --reference=F F.t && mv F.t F";
    let (moded, attributed) = ("chmod 0604 F", "setfattr -n user.mine -v precious F");
    for two in [false, true] {
        let Some(scene) = Case::of("commit", two) else { return };
        let world = &scene.world;
        let has_attributes = world.set_xattr("dir/calm", "user.try", "1");
        for (name, deed) in
            ["dir/edited", "dir/gone"].into_iter().flat_map(|name| [alike, moded, attributed].map(|deed| (name, deed)))
        {
            if deed == attributed && !has_attributes {
                continue;
            }
            scene.reset();
            // What is that young is read once more anyway.
            until_old(world, name);
            let order = format!(
                "run:{}:{}",
                scene.step("renameat2 ", &format!("tree/{name}")),
                deed.replace('F', &world.path(name).display().to_string())
            );
            let said = scene.run("commit", order).with(3);
            assert!(said.stderr().contains(name), "{two} {name} {deed}: {said}");
            let row = world.manifest().0[name.as_bytes()].clone();
            let is_theirs = match deed {
                _ if deed == alike => world.bytes(name).iter().all(|b| *b == 0),
                _ if deed == moded => row.mode == 0o604,
                _ => row.xattrs.contains(&(b"user.mine".to_vec(), b"precious".to_vec())),
            };
            assert!(is_theirs, "{two} {name} {deed}: {said}");
            assert!(deed != attributed || said.stderr().contains("extended attributes"), "{two} {name}: {said}");
        }
    }
}

/// A write in the tick of the clock in which it was put leaves the ctime as it is, and the mtime too where that is as young.
#[test]
fn the_fingerprint_of_what_was_put_proves_nothing_where_its_mtime_is_no_older() {
    if !common::can_run() {
        return common::skip("the fingerprint of what was put: no run here");
    }
    let world = World::new();
    let script = "echo 1 > old; touch -d @1000000000 old; echo 1 > young; touch -d @4000000000 young";
    world.call(["run", "--", "sh", "-c", script]).run().ok();
    for words in ["commit last", "rollback last"] {
        world.recant(words).ok();
    }
    let steps = steps_of(|| world.call(["redo", "last"]));
    let n = numbers(&steps, "", "checkpoint/manifest.jsonl.new")[0];
    world.recant("rollback last").ok();
    // Late enough that no ctime is young any more when the manifest is written.
    world.call(["redo", "last"]).env("RECANT_STEPS", format!("run:{n}:sleep 0.1")).run().ok();
    let id = world.recant("show last --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
    let manifest = std::fs::read_to_string(world.session(&id).join("checkpoint/manifest.jsonl")).expect("the manifest");
    for (name, racy) in [("old", false), ("young", true)] {
        let line = manifest.lines().find(|line| line.contains(&format!("/{name}\""))).expect("a line");
        assert_eq!(line.contains("\"racy\":true"), racy, "{line}");
    }
}

/// The fingerprint of what was put says that nothing has changed since, and so its attributes are not read before they are compared with
/// the record's, as it comes off. By force they are.
#[test]
fn what_was_put_with_an_attribute_of_somebody_else_is_a_conflict_and_gives_way_by_force() {
    if !common::can_run() {
        return common::skip("an attribute of what was put: no run here");
    }
    for force in [false, true] {
        let world = World::new();
        world.call(["run", "--", "sh", "-c", "echo 1 > f; touch -d @1000000000 f"]).run().ok();
        for words in ["commit last", "rollback last"] {
            world.recant(words).ok();
        }
        let id = world.recant("show last --json").ok().json()["session"]["id"].as_str().expect("an id").to_owned();
        let held = world.session(&id).join("held/objects");
        let steps = steps_of(|| world.call(["redo", "last"]));
        let (put, written) =
            (numbers(&steps, "renameat2 ", "tree/f")[0], numbers(&steps, "", "checkpoint/manifest.jsonl.new")[0]);
        world.recant("rollback last").ok();
        let orders = format!("run:{put}:setfattr -n user.late -v 1 {}/*;run:{written}:sleep 0.1", held.display());
        let said = world.call(["redo", "last"]).env("RECANT_STEPS", orders).run();
        if said.stderr().contains("setfattr") {
            return common::skip(&format!("an attribute of what was put: {said}"));
        }
        said.ok();
        let put = world.manifest();
        assert!(put.0[&b"f"[..]].xattrs.contains(&(b"user.late".to_vec(), b"1".to_vec())), "{put}");
        if force {
            world.recant("rollback last --force").ok();
            assert!(!world.exists("f"));
        } else {
            let said = world.recant("rollback last").with(3);
            assert!(said.stderr().contains("/f: its extended attributes were changed meanwhile"), "{said}");
            put.assert_same(&world.manifest(), "a refused rollback");
        }
    }
}

/// A small session whose tree lies on another file system than the store, so that copies are made beside the targets. `first` is done in
/// the tree before it begins.
fn copied(first: &str) -> Option<Scene> {
    let mut scene = Scene::new(true)?;
    scene.world.write("p/q/edited", "old").write("p/z", "old");
    let said = scene.world.program("sh", ["-c", first]).run();
    if said.status != 0 {
        common::skip(&format!("copies beside the targets: {first}: {said}"));
        return None;
    }
    scene.begin(["write p/q/edited of the session", "write p/q/new of the session", "write p/z of the session"]);
    Some(scene)
}

const MOVED: [&str; 2] = ["mv p/q p/moved", "mv p/q p/moved && mkdir p/q"];

/// Commits with somebody doing `moved` before step `n`, and `then`. Nothing where there are not as many steps.
fn meanwhile(moved: &str, n: usize, then: &str) -> Option<(Scene, Manifest, common::Said)> {
    let scene = copied("true")?;
    let before = scene.world.manifest().without_directory_times();
    let order = format!("run:{n}:cd {} && ([ -e p/moved ] || ({moved})){then}", scene.world.tree().display());
    let said = scene.run("commit", order);
    let is_moved = scene.world.exists("p/moved");
    assert!(n > 20 || is_moved, "a commit of these has more steps than {n}: {said}");
    is_moved.then_some((scene, before, said))
}

fn temporary(world: &World) -> Vec<String> {
    let names = world.manifest().0.into_keys().map(|name| String::from_utf8_lossy(&name).into_owned());
    names.filter(|name| name.contains(".recant-")).collect()
}

/// A copy that was made ready goes with the directory that it lies in: it is found there, and so is what was done in it (I6).
#[test]
fn a_parent_directory_that_is_moved_within_the_tree_at_any_step_takes_nothing_of_recants_along() {
    for moved in MOVED {
        for n in steps() {
            let Some((scene, before, said)) = meanwhile(moved, n, "") else { break };
            let world = &scene.world;
            let what = format!("{moved} before step {n}: {said}");
            assert_eq!(temporary(world), Vec::<String>::new(), "{what}");
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
    for moved in MOVED {
        for n in steps() {
            let Some((scene, _, _)) = meanwhile(moved, n, &format!(";kill:{}", n + 1)) else { break };
            let world = &scene.world;
            let said = world.recant("recover");
            let told = format!("{}{}", said.stdout(), said.stderr());
            for name in temporary(world) {
                let name = name.rsplit('/').next().expect("a name");
                // One that is the only copy of what was there stays, and the path is named.
                let to_decide = told.contains("undone except for") && told.contains("p/q/edited (") && name.ends_with("-1");
                assert!(to_decide || told.contains(name), "{moved} before step {n}: {name}: {said}");
                assert!(said.status == 4 || told.contains("and is finished now"), "{moved} before step {n}: {said}");
            }
        }
    }
}

/// What is made in a directory with a default ACL gets that, and loses it before its mode is opened (F33).
#[test]
fn at_no_step_somebody_has_rights_by_an_acl_that_was_not_there_before_and_is_not_after() {
    for verb in ["commit", "rollback"] {
        let Some(scene) = copied("setfacl -d -m u:1:rwx p/q && chmod 640 p/q/edited") else { return };
        let call = |verb: &str| scene.world.call([verb, &scene.id, "p/q/edited"]);
        if verb == "rollback" {
            assert_eq!(scene.world.commit_half(&scene.id, &["p/q/edited"], false), 0);
        }
        let see = "getfacl -RPacnp p >> ../seen";
        let orders: Vec<String> = (1..200).map(|n| format!("run:{n}:{see}")).collect();
        call(verb).env("RECANT_STEPS", orders.join(";")).run().ok();
        let seen = scene.world.read("../seen");
        assert!(seen.contains("user:1:rwx"), "the ACL was there, without effect: {seen}");
        for line in seen.lines().filter(|line| line.starts_with("user:1:")) {
            assert!(line.ends_with("#effective:---"), "{verb}: {line}");
        }
    }
}
