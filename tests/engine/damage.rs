//! Whatever is wrong with what lies in the store is found before anything is changed, named, and hides nothing else.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{self, Manifest, Said, World};

/// No panic, no hang, no signal; the words of a person.
#[track_caller]
fn decent(said: &Said, what: &str) {
    assert!(said.status <= 7, "{what}: {said}");
    let err = said.stderr_lossy();
    assert!(!err.contains("panicked") && !err.contains("os error"), "{what}: {said}");
}

/// A committed session over a few files, and another one that is pending.
struct Scene {
    world: World,
    id: String,
    other: String,
}

impl Scene {
    fn new() -> Self {
        let shm = Path::new("/dev/shm");
        let world = if shm.is_dir() { World::on(shm) } else { World::new() };
        for file in ["a", "b", "c"] {
            world.write(file, format!("the original content of {file}")).set_mtime(file, 1_000_000_000, 7);
        }
        world.symlink("somewhere", "link").write("elsewhere", "old");
        let id = world.begin();
        for file in ["a", "b", "made"] {
            world.stage_write(&id, file, format!("new {file}"));
        }
        world.recant(&format!("session delete {id} c")).ok();
        world.recant(&format!("session delete {id} link")).ok();
        let other = world.begin();
        world.stage_write(&other, "elsewhere", "new");
        Self { world, id, other }
    }

    fn committed() -> Self {
        let scene = Self::new();
        scene.world.recant(&format!("commit {}", scene.id)).ok();
        scene
    }

    fn session(&self, name: &str) -> PathBuf {
        self.world.session(&self.id).join(name)
    }

    /// The blob whose content is this.
    fn blob(&self, content: &str) -> PathBuf {
        let names = std::fs::read_dir(self.session("checkpoint/blobs")).expect("the blobs");
        let mut paths = names.map(|name| name.expect("a name").path());
        paths.find(|path| std::fs::read(path).is_ok_and(|bytes| bytes == content.as_bytes())).expect("a blob of that content")
    }

    /// The other session goes there and back.
    fn other_works(&self, what: &str) -> Said {
        let said = self.world.recant(&format!("commit {}", self.other));
        assert_eq!(said.status, 0, "{what}: {said}");
        assert_eq!(self.world.read("elsewhere"), "new", "{what}");
        self.world.recant(&format!("rollback {}", self.other)).ok();
        assert_eq!(self.world.read("elsewhere"), "old", "{what}");
        said
    }
}

fn keep_times(path: &Path, change: impl FnOnce()) {
    let times = path.symlink_metadata().expect("a file").modified().expect("its mtime");
    change();
    let file = std::fs::File::options().append(true).open(path).expect("the file");
    file.set_modified(times).expect("its old mtime");
}

fn replace(path: &Path, by: impl FnOnce(&Path)) {
    std::fs::remove_file(path).expect("a blob to replace");
    by(path);
}

fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("a FIFO");
}

/// Damage that leaves the times as they were.
const SILENT: [&str; 10] =
    ["flipped", "truncated", "emptied", "longer", "swapped", "removed", "a symlink", "a fifo", "a directory", "unreadable"];

fn damage(scene: &Scene, how: &str) {
    let blob = scene.blob("the original content of a");
    let bytes = std::fs::read(&blob).expect("a blob");
    let write = |bytes: &[u8]| keep_times(&blob, || std::fs::write(&blob, bytes).expect("other bytes"));
    match how {
        "flipped" => {
            let mut bytes = bytes;
            bytes[3] ^= 1;
            write(&bytes);
        }
        "truncated" => write(&bytes[..5]),
        "emptied" => write(b""),
        "longer" => write(&[b"x", &bytes[..]].concat()),
        "swapped" => {
            let other = scene.blob("the original content of b");
            let middle = blob.with_extension("middle");
            std::fs::rename(&blob, &middle).expect("a rename");
            std::fs::rename(&other, &blob).expect("a rename");
            std::fs::rename(&middle, &other).expect("a rename");
        }
        "removed" => std::fs::remove_file(&blob).expect("a removal"),
        "a symlink" => replace(&blob, |path| std::os::unix::fs::symlink("/etc/passwd", path).expect("a link")),
        "a fifo" => replace(&blob, fifo),
        "a directory" => replace(&blob, |path| std::fs::create_dir(path).expect("a directory")),
        "unreadable" => std::fs::set_permissions(&blob, std::fs::Permissions::from_mode(0o000)).expect("no mode"),
        _ => unreachable!("a way that is listed"),
    }
}

#[test]
fn a_damaged_blob_is_found_before_anything_is_changed_and_named() {
    for how in SILENT {
        let scene = Scene::committed();
        let world = &scene.world;
        let before = world.manifest();
        damage(&scene, how);
        if how == "unreadable" && rustix::process::geteuid().is_root() {
            // Root reads it all the same, and gives it its mode back.
            world.recant(&format!("rollback {}", scene.id)).ok();
            continue;
        }
        for force in ["", " --force"] {
            let said = world.recant(&format!("rollback {} --json{force}", scene.id));
            let what = format!("a blob that is {how}{force}");
            decent(&said, &what);
            assert!(said.status == 5 || how == "unreadable" && said.status == 1, "{what}: {said}");
            assert!(said.against().contains(&world.path("a").display().to_string()), "{what}: {said}");
            before.assert_same(&world.manifest(), &what);
            assert_eq!(world.status(&scene.id), "committed", "{what}");
        }
        let verified = world.recant(&format!("checkpoint verify {}", scene.id));
        decent(&verified, how);
        assert!(verified.status == 5 || how == "unreadable" && verified.status == 1, "{how}: {verified}");
        // What is whole can be had by name.
        world.call(["rollback", &scene.id, "c", "link", "made"]).run().ok();
        assert_eq!(world.read("c"), "the original content of c", "{how}");
        scene.other_works(how);
    }
}

#[test]
fn a_blob_that_somebody_wrote_to_is_a_conflict_and_given_back_by_force_as_it_is() {
    let scene = Scene::committed();
    let world = &scene.world;
    let before = world.manifest();
    std::fs::write(scene.blob("the original content of a"), "written to since").expect("a write");
    let said = world.call(["rollback", &scene.id, "--json"]).run().with(3);
    assert_eq!(said.against(), [world.path("a").display().to_string()]);
    before.assert_same(&world.manifest(), "a refused rollback");
    let said = world.recant(&format!("rollback {} --force", scene.id)).ok();
    assert!(said.stderr().contains(&world.path("a").display().to_string()), "it is named: {said}");
    assert_eq!((world.read("a"), world.read("b")), ("written to since".into(), "the original content of b".into()));
}

#[test]
fn held_content_that_is_damaged_is_found_before_a_commit_or_redo() {
    for redo in [false, true] {
        let scene = Scene::committed();
        let world = &scene.world;
        world.recant(&format!("rollback {}", scene.id)).ok();
        let (scene, verb) = if redo { (scene, "redo") } else { (Scene::new(), "commit") };
        let world = &scene.world;
        let objects = std::fs::read_dir(scene.session("held/objects")).expect("objects").map(|name| name.expect("one").path());
        let held = objects.filter(|path| path.is_file()).find(|path| std::fs::read(path).is_ok_and(|b| b == b"new a"));
        std::fs::write(held.expect("the held content"), "not a").expect("a write");
        let before = world.manifest();
        let said = world.call([verb, &scene.id, "--json"]).run().with(5);
        assert_eq!(said.against(), [world.path("a").display().to_string()], "{verb}");
        before.assert_same(&world.manifest(), verb);
    }
}

/// Every fourth length and all near the end; every byte would take minutes in a debug build.
fn cuts(length: usize) -> Vec<usize> {
    let step = (length / 24).max(1);
    (0..length).step_by(step).chain(length.saturating_sub(2)..length).collect()
}

/// What a garbled file of a session's own may do: nothing to the tree, nothing to the others, and no panic.
fn garbled(scene: &Scene, file: &Path, content: &[u8], before: &Manifest, verb: &str, what: &str) -> i32 {
    let world = &scene.world;
    std::fs::write(file, content).expect("a garbled file");
    let said = world.recant(&format!("{verb} {} --dry-run", scene.id));
    decent(&said, what);
    if said.status != 0 {
        let said = world.recant(&format!("{verb} {}", scene.id));
        decent(&said, what);
        assert_ne!(said.status, 0, "{what}");
        before.assert_same(&world.manifest(), what);
    }
    for words in ["list", "status", "show ID", "diff ID", "checkpoint list"] {
        let listed = world.recant(&words.replace("ID", &scene.id));
        decent(&listed, &format!("{what}: {words}"));
        if words == "list" {
            assert!(listed.stdout().contains(&scene.other[16..]), "{what}: the other is hidden: {listed}");
        }
    }
    said.status
}

#[test]
fn a_header_cut_anywhere_is_reported_and_hides_no_other_session() {
    let scene = Scene::committed();
    let file = scene.session("session.json");
    let whole = std::fs::read(&file).expect("a header");
    let before = scene.world.manifest();
    for cut in cuts(whole.len() - 1) {
        let what = format!("session.json cut at {cut}");
        assert_eq!(garbled(&scene, &file, &whole[..cut], &before, "rollback", &what), 5, "{what}");
        let listed = scene.world.recant("list");
        assert_eq!(listed.status, 4, "{what}: {listed}");
        assert!(format!("{listed}").contains("<id1>"), "{what}: it is reported: {listed}");
    }
    scene.other_works("a garbled header");
    std::fs::write(&file, &whole).expect("the header");
    scene.world.recant(&format!("rollback {}", scene.id)).ok();
}

#[test]
fn a_header_with_other_values_is_refused_or_true() {
    let scene = Scene::committed();
    let file = scene.session("session.json");
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).expect("a header")).expect("JSON");
    let before = scene.world.manifest();
    let deep = "[".repeat(100_000);
    for key in whole.as_object().expect("an object").keys() {
        for value in [serde_json::Value::Null, (-1).into(), "../../x".into(), serde_json::json!([]), serde_json::json!({})] {
            let mut other = whole.clone();
            other[key] = value.clone();
            let status = garbled(&scene, &file, other.to_string().as_bytes(), &before, "rollback", &format!("{key}: {value}"));
            assert!(status != 7, "{key}: {value}: {status}");
        }
    }
    for text in [&b""[..], b"null", b"[]", b"\xff\xfe", deep.as_bytes(), &vec![b' '; 1 << 20], b"{\"schema\":1,\"schema\":1}"] {
        let what = format!("{} bytes of {:?}", text.len(), text.first());
        assert_eq!(garbled(&scene, &file, text, &before, "rollback", &what), 5, "{what}");
    }
}

#[test]
fn changes_that_are_cut_doubled_or_contradict_each_other_are_refused() {
    let scene = Scene::new();
    let file = scene.session("changes.jsonl");
    let whole = std::fs::read(&file).expect("the changes");
    let before = scene.world.manifest();
    for cut in cuts(whole.len()) {
        let what = format!("changes.jsonl cut at {cut}");
        assert_eq!(garbled(&scene, &file, &whole[..cut], &before, "commit", &what), 5, "{what}");
    }
    let text = String::from_utf8(whole.clone()).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let first = scene.world.path("a").display().to_string();
    let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    for (what, content) in [
        ("a line twice in place of another", join(&[&[lines[0]], &lines[..lines.len() - 1]].concat())),
        ("a path that leads out", text.replacen(&first, &format!("{first}/../../out"), 1)),
        ("a path below a file", text.replacen(&scene.world.path("b").display().to_string(), &format!("{first}/below"), 1)),
        ("a relative path", text.replacen(&first, "a", 1)),
        ("an empty path", text.replacen(&first, "", 1)),
        ("a line of another sort", text.replacen("\"change\"", "\"rewritten\"", 1)),
        ("a mode that is none", text.replacen("\"mode\":\"", "\"mode\":\"99", 1)),
        ("an owner that chown takes for none", text.replacen(r#""uid":"#, r#""uid":4294967295,"was":"#, 1)),
        ("a hash that is none", text.replacen("\"digest\":\"", "\"digest\":\"../", 1)),
        ("no text", "\u{0}".repeat(whole.len())),
    ] {
        assert_ne!(content, text, "{what}");
        assert_eq!(garbled(&scene, &file, content.as_bytes(), &before, "commit", what), 5, "{what}");
    }
    std::fs::write(&file, &whole).expect("the changes");
    scene.world.recant(&format!("commit {}", scene.id)).ok();
}

#[test]
fn a_manifest_that_is_cut_garbled_or_missing_is_refused() {
    let scene = Scene::committed();
    let before = scene.world.manifest();
    let name = "checkpoint/manifest.jsonl";
    let file = scene.session(name);
    let whole = std::fs::read(&file).expect("a file of the session");
    let lines = (0..whole.len()).filter(|i| whole[*i] == b'\n').map(|i| i + 1).filter(|end| *end < whole.len());
    for cut in cuts(whole.len()).into_iter().chain(lines) {
        let what = format!("{name} cut at {cut}");
        assert_eq!(garbled(&scene, &file, &whole[..cut], &before, "rollback", &what), 5, "{what}");
    }
    for at in cuts(whole.len()) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        let what = format!("{name} with another byte at {at}");
        assert_eq!(garbled(&scene, &file, &flipped, &before, "rollback", &what), 5, "{what}");
    }
    // Its hash alone tells of what could be true as well.
    let text = String::from_utf8(whole.clone()).expect("text");
    let later = text.replacen(":40.000000007Z", ":41.000000007Z", 1);
    assert_ne!(text, later, "no time of an original");
    assert_eq!(garbled(&scene, &file, later.as_bytes(), &before, "rollback", "another time"), 5, "{later}");
    std::fs::remove_file(&file).expect("a removal");
    let said = scene.world.recant(&format!("rollback {}", scene.id));
    decent(&said, name);
    assert_eq!(said.status, 5, "{name} missing: {said}");
    before.assert_same(&scene.world.manifest(), name);
    std::fs::write(&file, whole).expect("the file");
    scene.world.recant(&format!("rollback {}", scene.id)).ok();
}

#[test]
fn sides_that_are_not_those_of_the_changes_are_refused() {
    let scene = Scene::committed();
    let before = scene.world.manifest();
    let file = scene.session("session.json");
    let whole = std::fs::read_to_string(&file).expect("the header");
    let start = whole.find("\"sides\":\"i").expect("all are in") + 9;
    let end = start + whole[start..].find('"').expect("its end");
    let all = &whole[start..end];
    for sides in ["", "i1", "x1", &all.replace('i', "o"), &all.replace('i', "n"), &format!("{all}i1"), "i99999999999999999999"] {
        let garbled_header = [&whole[..start], sides, &whole[end..]].concat();
        let what = format!("sides {sides:?} in place of {all:?}");
        assert_eq!(garbled(&scene, &file, garbled_header.as_bytes(), &before, "rollback", &what), 5, "{what}");
    }
    // Each number alone.
    for count in ["in", "ever_in"] {
        let at = whole.find(&format!("\"{count}\":5")).expect("five are in") + count.len() + 3;
        let other = [&whole[..at], "4", &whole[at + 1..]].concat();
        assert_eq!(garbled(&scene, &file, other.as_bytes(), &before, "rollback", count), 5, "{count}");
    }
    std::fs::write(&file, whole).expect("the header");
    scene.world.recant(&format!("rollback {}", scene.id)).ok();
}

#[test]
fn a_header_that_counts_other_changes_than_there_are_is_refused_without_a_panic() {
    let scene = Scene::committed();
    let before = scene.world.manifest();
    let file = scene.session("session.json");
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).expect("the header")).expect("its JSON");
    let count = whole["counts"]["changes"].as_u64().expect("a count");
    for (changes, inside) in [(count - 1, count - 1), (count + 1, count + 1), (1 << 40, 0), (u64::MAX >> 1, 0), (count, 0)] {
        let mut header = whole.clone();
        header["counts"] = serde_json::json!({ "changes": changes, "in": inside, "ever_in": inside });
        header["lines"] = serde_json::json!(changes.max(whole["lines"].as_u64().expect("a count")));
        let sides = if inside > 0 { format!("i{inside}") } else { String::new() };
        header["sides"] = serde_json::json!(sides);
        for verb in ["rollback", "commit"] {
            let what = format!("{verb} with {changes} changes counted, {inside} in, of {count}");
            let status = garbled(&scene, &file, header.to_string().as_bytes(), &before, verb, &what);
            assert!(
                status == 5 || matches!(status, 1 | 3) && inside == 0 || status == 0 && verb == "commit" && inside > 0,
                "{what}: {status}"
            );
        }
    }
}

#[test]
fn other_kinds_in_place_of_the_sessions_files_never_hang() {
    for name in ["session.json", "changes.jsonl", "checkpoint/manifest.jsonl", "lock"] {
        for kind in ["a fifo", "a symlink", "a directory"] {
            let scene = Scene::committed();
            let before = scene.world.manifest();
            let file = scene.session(name);
            if file.exists() {
                std::fs::remove_file(&file).expect("a removal");
            }
            match kind {
                "a fifo" => fifo(&file),
                "a symlink" => std::os::unix::fs::symlink("/etc/passwd", &file).expect("a link"),
                _ => std::fs::create_dir(&file).expect("a directory"),
            }
            let what = format!("{name} is {kind}");
            for words in ["list", "status", "show ID", "diff ID", "rollback ID"] {
                let said = scene.world.recant(&words.replace("ID", &scene.id));
                decent(&said, &format!("{what}: {words}"));
                if words.starts_with("rollback") && (name != "lock" || kind != "a fifo") {
                    assert_ne!(said.status, 0, "{what}: {said}");
                    before.assert_same(&scene.world.manifest(), &what);
                }
            }
            scene.other_works(&what);
        }
    }
}

/// A whole manifest of an earlier generation, as a copy of the store may have it.
#[test]
fn a_manifest_that_lacks_what_is_in_is_no_whole_checkpoint() {
    let scene = Scene::new();
    let manifest = scene.session("checkpoint/manifest.jsonl");
    scene.world.recant(&format!("commit {} b", scene.id)).ok();
    let of_part = std::fs::read(&manifest).expect("a manifest");
    scene.world.recant(&format!("commit {}", scene.id)).ok();
    scene.world.recant("checkpoint verify").ok();
    std::fs::write(&manifest, of_part).expect("the former one");
    for verb in ["checkpoint verify", "checkpoint verify ID", "rollback ID"] {
        let said = scene.world.recant(&verb.replace("ID", &scene.id)).with(5);
        assert!(said.stderr().contains("/tree/a: the checkpoint's manifest has no line for it"), "{verb}: {said}");
    }
}

#[test]
fn a_manifest_that_is_missing_is_damage_as_long_as_changes_are_in() {
    let scene = Scene::committed();
    std::fs::remove_file(scene.session("checkpoint/manifest.jsonl")).expect("a manifest");
    let before = scene.world.manifest();
    for verb in
        ["rollback ID", "rollback ID --dry-run", "checkpoint show ID", "checkpoint verify", "checkpoint verify ID", "diff ID"]
    {
        let said = scene.world.recant(&verb.replace("ID", &scene.id)).with(5);
        assert!(said.stderr().contains("checkpoint/manifest.jsonl"), "{verb}: {said}");
        assert!(!said.stderr().contains("no checkpoints"), "{verb}: {said}");
        before.assert_same(&scene.world.manifest(), verb);
    }
}

fn spoil(scene: &Scene, directory: &str, how: &str) {
    let (at, aside) = (scene.session(directory), scene.session("aside"));
    std::fs::rename(&at, &aside).expect("a rename");
    match how {
        "missing" => {}
        "a symlink" => std::os::unix::fs::symlink(&aside, &at).expect("a link"),
        "a directory" => std::fs::create_dir(&at).expect("a directory"),
        _ => std::fs::write(&at, "").expect("a file"),
    }
}

#[test]
fn a_directory_of_a_session_that_is_missing_or_a_link_is_damage_for_every_verb() {
    for directory in ["checkpoint", "checkpoint/blobs", "checkpoint/objects", "held", "held/objects", "displaced"] {
        for how in ["missing", "a symlink", "a file"] {
            for verb in ["commit", "redo"] {
                let scene = Scene::new();
                if verb == "redo" {
                    scene.world.recant(&format!("commit {}", scene.id)).ok();
                    scene.world.recant(&format!("rollback {}", scene.id)).ok();
                }
                let before = scene.world.manifest();
                spoil(&scene, directory, how);
                let what = format!("{directory} is {how}: {verb}");
                let said = scene.world.recant(&format!("{verb} {}", scene.id));
                assert!(scene.world.journals().is_empty(), "{what}: {said}");
                // A copy of the store may lack what was empty.
                if said.status == 0 && how == "missing" && !directory.starts_with("held") {
                    scene.world.recant(&format!("rollback {}", scene.id)).ok();
                    continue;
                }
                assert_eq!(said.status, 5, "{what}: {said}");
                decent(&said, &what);
                assert!(said.stderr().contains(directory) || directory.starts_with("held"), "{what}: {said}");
                before.assert_same(&scene.world.manifest(), &what);
            }
            let scene = Scene::committed();
            let before = scene.world.manifest();
            spoil(&scene, directory, how);
            let verifies = directory.starts_with("checkpoint");
            for words in
                ["rollback ID", "checkpoint verify ID", "checkpoint verify"].into_iter().take(if verifies { 3 } else { 1 })
            {
                let what = format!("{directory} is {how}: {words}");
                let said = scene.world.recant(&words.replace("ID", &scene.id));
                assert_eq!(said.status, 5, "{what}: {said}");
                decent(&said, &what);
                assert!((said.stdout() + &said.stderr()).contains(&scene.id), "{what}: {said}");
                before.assert_same(&scene.world.manifest(), &what);
            }
        }
    }
}

/// A copy of the store may leave out what is empty. It is said before anything is touched, with what makes it again.
#[test]
fn an_empty_directory_that_a_copy_of_the_store_left_out_is_named_with_what_makes_it_again() {
    let world = World::new();
    world.write("a", "old");
    let id = world.begin();
    world.stage_write(&id, "a", "new");
    let before = world.manifest();
    for directory in ["held/objects", "checkpoint", "checkpoint/blobs", "displaced"] {
        let (path, again) = (world.session(&id).join(directory), world.root().join("away"));
        std::fs::rename(&path, &again).unwrap();
        let said = world.recant(&format!("commit {id}")).with(5).stderr();
        assert!(said.contains(&format!("mkdir -p -m 700 {}", path.display())), "{directory}: {said}");
        before.assert_same(&world.manifest(), directory);
        std::fs::rename(&again, &path).unwrap();
    }
    world.recant(&format!("commit {id}")).ok();
}

/// One that is missing with what an interrupted operation had put into it is not taken for empty: nothing would be put back, and nobody
/// told.
#[test]
fn a_directory_of_a_session_that_is_missing_with_originals_stops_a_recovery() {
    // With `gone` deleted and `made` written, up to the seal: what has been moved is in the directory then, all of it.
    let scene = |verb: &str, steps: &dyn Fn(&Path) -> String| {
        let world = World::new();
        world.write("gone", "old");
        let id = world.begin();
        world.recant(&format!("session delete {id} gone")).ok();
        world.stage_write(&id, "made", "new");
        if verb == "rollback" {
            world.recant(&format!("commit {id}")).ok();
        }
        let before = world.manifest();
        let said = world.call([verb, &id]).env("RECANT_STEPS", steps(&world.root().join("steps"))).run();
        (world, id, before, said)
    };
    for verb in ["commit", "rollback"] {
        let (world, ..) = scene(verb, &|log| format!("log:{}", log.display()));
        let steps = std::fs::read_to_string(world.root().join("steps")).expect("the steps");
        let is_seal = |line: &str| line.contains("renameat ") && line.contains("session.json.new");
        let seal = 1 + steps.lines().position(is_seal).expect("the seal");
        for directory in ["checkpoint", "checkpoint/blobs", "held", "held/objects"] {
            let (world, id, before, said) = scene(verb, &|_| format!("kill:{seal}"));
            said.with(137);
            let (place, away) = (world.session(&id).join(directory), world.root().join("away"));
            std::fs::rename(&place, &away).expect("the directory");
            let said = world.recant("recover");
            assert_eq!(said.status, 7, "{verb}, {directory}: {said}");
            assert!(said.stdout().contains(&format!("/{id}/{directory}")), "{verb}, {directory}: {said}");
            std::fs::rename(&away, &place).expect("the directory");
            world.recant("recover").ok();
            before.assert_same(&world.manifest(), &format!("{verb}, {directory}: {said}"));
        }
    }
}

/// The store is a copy of what it was: all that lies in it is another object.
fn copy_store(world: &World) {
    let (store, away) = (world.store(), world.root().join("away"));
    std::fs::rename(&store, &away).expect("the store");
    world.program("cp", ["-a".as_ref(), away.as_os_str(), store.as_os_str()]).run().ok();
}

/// What lies in the copy was not put onto the tree: it is not said to be gone from there, and is put by the next try.
#[test]
fn what_an_interrupted_operation_had_not_put_is_put_from_a_copy_of_the_store() {
    let scene = |verb: &str, steps: &dyn Fn(&Path) -> String| {
        let world = World::new();
        let id = world.begin();
        if verb == "commit" {
            world.stage_write(&id, "comes", "new");
        } else {
            world.write("comes", "old");
            world.recant(&format!("session delete {id} comes")).ok();
            world.recant(&format!("commit {id}")).ok();
        }
        let before = world.manifest();
        world.call([verb, &id]).env("RECANT_STEPS", steps(&world.root().join("steps"))).run();
        (world, id, before)
    };
    for verb in ["commit", "rollback"] {
        let (whole, ..) = scene(verb, &|log| format!("log:{}", log.display()));
        let steps = std::fs::read_to_string(whole.root().join("steps")).expect("the steps");
        let put =
            1 + steps.lines().position(|line| line.contains("renameat") && line.contains("/tree/comes")).expect("it is put");
        let (world, id, before) = scene(verb, &|_| format!("kill:{put}"));
        copy_store(&world);
        let said = world.recant("recover").ok();
        before.assert_same(&world.manifest(), &format!("{verb}: {said}"));
        world.recant(&format!("{verb} {id}")).ok();
        assert_eq!(world.read("comes"), whole.read("comes"), "{verb}");
    }
}

/// Objects are told by their inodes, which a copy of the store has not: what was taken off the tree is there all the same.
#[test]
fn what_an_interrupted_commit_took_is_named_in_a_copy_of_the_store() {
    let scene = |replaced: bool, steps: &dyn Fn(&Path) -> String| {
        let world = World::new();
        world.write("gone", "old");
        let id = world.begin();
        if replaced {
            world.stage_write(&id, "gone", "new");
        } else {
            world.recant(&format!("session delete {id} gone")).ok();
        }
        world.call(["commit", &id]).env("RECANT_STEPS", steps(&world.root().join("steps"))).run();
        (world, id)
    };
    for replaced in [false, true] {
        let (world, _) = scene(replaced, &|log| format!("log:{}", log.display()));
        let steps = std::fs::read_to_string(world.root().join("steps")).expect("the steps");
        let sealed = 1 + steps.lines().position(|line| line.contains("session.json.new")).expect("a seal");
        let taken =
            1 + steps.lines().position(|line| line.contains("renameat") && line.contains("/tree/gone")).expect("it is taken");
        for (n, status) in [(taken, 0), (taken + 1, 4), (sealed, 4)] {
            let (world, id) = scene(replaced, &|_| format!("kill:{n}"));
            copy_store(&world);
            let said = world.recant("recover").with(status);
            assert_eq!(world.exists("gone"), replaced || status == 0, "{said}");
            if status == 4 {
                assert!(said.stdout().contains("/tree/gone (what was there before is not "), "{said}");
                // It is an original of the session now, and goes back.
                let what = format!("replaced: {replaced}, killed before step {n}: {said}");
                let back = world.recant(&format!("rollback {id}"));
                assert!(matches!(back.status, 0 | 4) && world.read("gone") == "old", "{what}\n{back}");
            }
        }
    }
}

#[test]
fn what_is_no_file_is_no_damage_where_it_is_missing_as_its_record_is_all_of_it() {
    let world = World::new();
    world.mkdir("directory").symlink("/nowhere", "link").fifo("fifo");
    let before = world.manifest();
    let id = world.begin();
    for name in ["directory", "link", "fifo"] {
        world.recant(&format!("session delete {id} {name}")).ok();
    }
    world.recant(&format!("commit {id}")).ok();
    let objects = world.session(&id).join("checkpoint/objects");
    assert_eq!(std::fs::read_dir(&objects).expect("them").count(), 3);
    std::fs::remove_dir_all(&objects).and_then(|()| std::fs::create_dir(&objects)).expect("none");
    world.recant(&format!("checkpoint verify {id}")).ok();
    world.recant(&format!("rollback {id}")).ok();
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "taken back");
}

#[test]
fn what_should_be_a_file_of_a_session_and_is_none_is_damage() {
    for file in ["changes.jsonl", "checkpoint/manifest.jsonl"] {
        for how in ["a symlink", "a directory"] {
            let scene = Scene::committed();
            let before = scene.world.manifest();
            spoil(&scene, file, how);
            let what = format!("{file} is {how}");
            let said = scene.world.recant(&format!("rollback {}", scene.id)).with(5);
            decent(&said, &what);
            assert!(said.stderr().contains(&format!("{file}: the store is damaged: it is not a file")), "{what}: {said}");
            before.assert_same(&scene.world.manifest(), &what);
        }
    }
    // What is kept for the room that it takes is worth nothing else.
    let scene = Scene::committed();
    spoil(&scene, "reserve.1", "a directory");
    scene.world.recant(&format!("rollback {}", scene.id)).ok();
}

mod journal {
    use super::*;

    /// Killed in the middle of applying: a whole journal is there, and some of its steps are done.
    fn interrupted() -> (Scene, Manifest, PathBuf) {
        for n in 20.. {
            let scene = Scene::new();
            let before = scene.world.manifest();
            let said = scene.world.call(["commit", &scene.id]).env("RECANT_STEPS", format!("kill:{n}")).run();
            assert_eq!(said.status, 137, "a commit has more steps than {n}");
            let journal = scene.world.store().join("journals").join(&scene.id);
            if journal.exists() && !scene.world.exists("c") {
                return (scene, before, journal);
            }
        }
        unreachable!("every commit has a step in which a file goes")
    }

    #[test]
    fn a_journal_cut_or_flipped_anywhere_stops_its_own_session_and_no_other() {
        let (scene, before, journal) = interrupted();
        let world = &scene.world;
        let whole = std::fs::read(&journal).expect("a journal");
        let middle = world.manifest();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let step = whole.len() / 24;
        let mut cases: Vec<(String, Vec<u8>)> =
            cuts(whole.len()).into_iter().map(|cut| (format!("cut at {cut}"), whole[..cut].into())).collect();
        cases.extend((0..whole.len()).step_by(step).map(|at| (format!("flipped at {at}"), flipped(at))));
        cases.push(("zeros at its end".into(), [&whole[..whole.len() - 4096.min(whole.len())], &[0; 4096]].concat()));
        cases.push(("something behind its end".into(), [&whole[..], b"x"].concat()));
        cases.push(("itself twice".into(), [&whole[..], &whole[..]].concat()));
        for (what, bytes) in cases {
            std::fs::write(&journal, bytes).expect("a garbled journal");
            for words in ["recover", "commit ID", "rollback ID", "commit ID --dry-run"] {
                let said = world.recant(&words.replace("ID", &scene.id));
                decent(&said, &what);
                assert_eq!(said.status, 5, "{what}: {words}: {said}");
                assert!(format!("{said}").contains("journal"), "{what}: {words}: {said}");
            }
            assert!(world.recant("status").stdout().contains("interrupted"), "{what}");
            middle.assert_same(&world.manifest(), &what);
        }
        let said = scene.other_works("a damaged journal");
        assert!(said.stderr().contains(&scene.id), "with a warning: {said}");
        std::fs::write(&journal, &whole).expect("the journal");
        world.recant("recover").ok();
        before.assert_same(&world.manifest(), "the whole journal again");
    }

    /// I14. Its hash proves that it is whole, not who wrote it.
    #[test]
    fn a_journal_by_which_an_object_would_lie_outside_of_its_session_is_refused_though_its_hash_is_right() {
        let (scene, before, journal) = interrupted();
        let world = &scene.world;
        let whole = std::fs::read_to_string(&journal).expect("a journal");
        let middle = world.manifest();
        let (body, _) = whole.trim_end().rsplit_once('\n').expect("lines and an end");
        for place in ["../other", "held/objects/../../other", "/etc/passwd", "session.json", "checkpoint/manifest.jsonl", "held"]
        {
            let body = body.replacen(r#""held":"object""#, &format!(r#""held":{{"at":"{place}"}}"#), 1) + "\n";
            assert!(body.contains(place), "{whole}");
            let hash = recant::internals::Hash::of(body.as_bytes());
            std::fs::write(&journal, format!("{body}{{\"end\":\"{hash}\"}}\n")).expect("another journal");
            let said = world.recant("recover").with(5);
            assert!(said.stdout().contains("an object lies where the session has none"), "{place}: {said}");
            middle.assert_same(&world.manifest(), place);
        }
        // By the same way the journal that it was is believed.
        std::fs::write(&journal, &whole).expect("the journal");
        world.recant("recover").ok();
        before.assert_same(&world.manifest(), "the whole journal again");
    }

    #[test]
    fn under_its_temporary_names_a_garbled_journal_means_that_nothing_was_done() {
        let (_interrupted, _, journal) = interrupted();
        let whole = std::fs::read(&journal).expect("a journal");
        let scene = Scene::new();
        let before = scene.world.manifest();
        for name in ["tmp", "new"] {
            for cut in cuts(whole.len()) {
                let file = scene.world.store().join("journals").join(format!("{}.{name}", scene.id));
                std::fs::write(&file, &whole[..cut]).expect("half a journal");
                let what = format!("{name} cut at {cut}");
                let said = scene.world.recant("recover");
                decent(&said, &what);
                assert_eq!(said.status, 0, "{what}: {said}");
                before.assert_same(&scene.world.manifest(), &what);
                scene.world.assert_tidy(&what);
            }
        }
        scene.world.recant(&format!("commit {}", scene.id)).ok();
    }

    #[test]
    fn a_journal_that_is_no_file_never_hangs_anything() {
        for kind in ["a fifo", "a symlink", "a directory"] {
            let (scene, _, journal) = interrupted();
            let middle = scene.world.manifest();
            std::fs::remove_file(&journal).expect("a removal");
            match kind {
                "a fifo" => fifo(&journal),
                "a symlink" => std::os::unix::fs::symlink("/etc/passwd", &journal).expect("a link"),
                _ => std::fs::create_dir(&journal).expect("a directory"),
            }
            for words in ["recover", "commit ID"] {
                let said = scene.world.recant(&words.replace("ID", &scene.id));
                decent(&said, kind);
                assert_eq!(said.status, 5, "{kind}: {said}");
            }
            middle.assert_same(&scene.world.manifest(), kind);
            scene.other_works(kind);
        }
    }
}

#[test]
fn ids_that_lead_out_of_the_store_are_refused() {
    let scene = Scene::new();
    scene.world.recant("recover").ok();
    let before = common::manifest(scene.world.root());
    let long = "x".repeat(300);
    for key in ["..", "../x", "/etc", "", ".", "a/../../b", &long, "\u{1}", "-", "2026", "20261121-000000-aaaa"] {
        for verb in ["commit", "rollback", "redo", "show", "diff", "discard", "recover"] {
            let said = scene.world.call([verb, "--", key]).run();
            decent(&said, key);
            assert!([1, 2].contains(&said.status), "{verb} {key:?}: {said}");
        }
    }
    let fits = common::manifest(scene.world.root());
    before.without_directory_times().assert_same(&fits.without_directory_times(), "nothing was touched");
}
