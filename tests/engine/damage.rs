//! Whatever is wrong with what lies in the store is found before anything is changed, named, and hides nothing else.

use std::path::{Path, PathBuf};

use crate::common::sweep::is_due;
use crate::common::{self, Manifest, Said, World};
use crate::fuzz::{Target, open, read};
use crate::{held, kill, step_like};

/// No panic, no hang, no signal; the words of a person.
#[track_caller]
fn decent(said: &Said, what: &str) {
    assert!(said.status <= 7, "{what}: {said}");
    let err = said.stderr_lossy();
    assert!(!err.contains("panicked") && !err.contains("os error"), "{what}: {said}");
}

/// A session over a few files, and another one that is pending.
struct Scene {
    world: World,
    id: String,
    other: String,
    /// The tree as it is with the session at its status.
    before: Manifest,
}

impl Scene {
    /// With the session at this status.
    fn at(status: &str) -> Self {
        let world = World::new();
        for file in ["a", "b", "c"] {
            world.write(file, format!("the original content of {file}")).set_mtime(file, 1_000_000_000, 7);
        }
        world.symlink("somewhere", "link").write("elsewhere", "old");
        let id = held(&world, ["write a new a", "write b new b", "write made new made", "delete c", "delete link"]);
        let other = held(&world, ["write elsewhere new"]);
        let verbs: &[&str] = match status {
            "pending" => &[],
            "committed" => &["commit"],
            _ => &["commit", "rollback"],
        };
        verbs.iter().for_each(|verb| drop(world.call([verb, &*id]).run().ok()));
        Self { before: world.manifest(), world, id, other }
    }

    fn session(&self, name: &str) -> PathBuf {
        self.world.session(&self.id).join(name)
    }

    /// Runs recant with these words, with the session for `ID`.
    fn say(&self, words: &str) -> Said {
        self.world.recant(&words.replace("ID", &self.id))
    }

    #[track_caller]
    fn assert_unchanged(&self, what: &str) {
        self.before.assert_same(&self.world.manifest(), what);
    }

    /// The file in a directory of the session whose content is this.
    fn content(&self, directory: &str, content: &str) -> PathBuf {
        let names = std::fs::read_dir(self.session(directory)).expect("a directory of the session");
        let mut paths = names.map(|name| name.expect("a name").path()).filter(|path| path.is_file());
        paths.find(|path| std::fs::read(path).is_ok_and(|bytes| bytes == content.as_bytes())).expect("a file of that content")
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

    /// What the library makes of a stored file with other content: whether it is refused.
    fn reader(&self, target: Target, name: &str) -> impl Fn(&[u8]) -> bool {
        let (store, id) = open(&self.world.store(), &self.id);
        let good = store.session(&id).expect("the session");
        let file = match target {
            Target::Journal => self.world.store().join("journals").join(&self.id),
            _ => self.session(name),
        };
        move |bytes| {
            std::fs::write(&file, bytes).expect("other content");
            read(target, &store, &id, &good).is_none()
        }
    }
}

fn keep_times(path: &Path, change: impl FnOnce()) {
    let times = path.symlink_metadata().expect("a file").modified().expect("its mtime");
    change();
    let file = std::fs::File::options().append(true).open(path).expect("the file");
    file.set_modified(times).expect("its old mtime");
}

/// Puts something of another kind in a place where nothing is.
fn put(world: &World, path: &Path, how: &str, target: &Path) {
    match how {
        "missing" => {}
        "a symlink" => drop(world.symlink(target, path)),
        "a fifo" => drop(world.fifo(path)),
        "a directory" => drop(world.mkdir(path)),
        _ => drop(world.write(path, "")),
    }
}

/// Damage that leaves the times as they were.
const SILENT: [&str; 10] =
    ["flipped", "truncated", "emptied", "longer", "swapped", "missing", "a symlink", "a fifo", "a directory", "unreadable"];

/// Damages a file; `other` is one beside it.
fn damage(world: &World, file: &Path, other: &Path, how: &str) {
    let mut bytes = std::fs::read(file).expect("stored content");
    let write = |bytes: &[u8]| keep_times(file, || std::fs::write(file, bytes).expect("other bytes"));
    match how {
        "flipped" => {
            bytes[3] ^= 1;
            write(&bytes);
        }
        "truncated" => write(&bytes[..3]),
        "emptied" => write(b""),
        "longer" => write(&[b"x", &bytes[..]].concat()),
        "swapped" => {
            let middle = file.with_extension("middle");
            for (from, to) in [(file, &*middle), (other, file), (&middle, other)] {
                std::fs::rename(from, to).expect("a rename");
            }
        }
        "unreadable" => drop(world.chmod(file, 0o000)),
        _ => {
            world.remove(file);
            put(world, file, how, Path::new("/etc/passwd"));
        }
    }
}

/// Stored content × how it is damaged × the verb that needs it.
#[test]
fn damaged_content_is_found_before_anything_is_changed_and_named() {
    let rows = [
        ("committed", "rollback", "checkpoint/blobs", "the original content of"),
        ("pending", "commit", "held/objects", "new"),
        ("rolled_back", "redo", "held/objects", "new"),
    ];
    for ((status, verb, directory, content), how) in rows.into_iter().flat_map(|row| SILENT.map(|how| (row, how))) {
        let scene = Scene::at(status);
        let world = &scene.world;
        let of = |file: &str| scene.content(directory, &format!("{content} {file}"));
        damage(world, &of("a"), &of("b"), how);
        let what = format!("{verb}: content that is {how}");
        let unreadable = how == "unreadable";
        if unreadable && rustix::process::geteuid().is_root() {
            // Root reads it all the same, and gives it its mode back.
            scene.say(&format!("{verb} ID")).ok();
            continue;
        }
        for force in ["", " --force"] {
            let said = scene.say(&format!("{verb} ID --json{force}"));
            decent(&said, &what);
            assert!(said.status == 5 || unreadable && said.status == 1, "{what}{force}: {said}");
            assert!(said.against().contains(&world.path("a").display().to_string()), "{what}{force}: {said}");
            scene.assert_unchanged(&what);
            assert_eq!(world.status(&scene.id), status, "{what}{force}");
        }
        if verb == "rollback" {
            let verified = scene.say("checkpoint verify ID");
            decent(&verified, &what);
            assert!(verified.status == 5 || unreadable && verified.status == 1, "{what}: {verified}");
        }
        // What is whole can be had by name.
        scene.say(&format!("{verb} ID c link made")).ok();
        assert_eq!((world.exists("c"), world.exists("made")), (verb == "rollback", verb != "rollback"), "{what}");
        scene.other_works(&what);
    }
}

/// Pieces of a file for the program itself, where the library has read each: those that are due of 24, and those near the end.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    (0..24).filter(|n| is_due(*n)).map(move |n| n * length / 24).chain(length - 2..length)
}

/// What a garbled file of a session's own may do: nothing to the tree, nothing to the others, and no panic. Gives the verb's status.
fn garbled(scene: &Scene, name: &str, content: &[u8], verb: &str, what: &str) -> i32 {
    std::fs::write(scene.session(name), content).expect("a garbled file");
    let said = scene.say(&format!("{verb} ID --dry-run"));
    decent(&said, what);
    if said.status != 0 {
        let said = scene.say(&format!("{verb} ID"));
        decent(&said, what);
        assert_ne!(said.status, 0, "{what}");
        scene.assert_unchanged(what);
    }
    for words in ["list", "status", "show ID", "diff ID", "checkpoint list"] {
        let listed = scene.say(words);
        decent(&listed, &format!("{what}: {words}"));
        if words == "list" {
            assert!(listed.stdout().contains(&scene.other[16..]), "{what}: the other is hidden: {listed}");
        }
    }
    said.status
}

/// Each file of a session × any byte of it × the verb that needs it.
#[test]
fn a_stored_file_cut_anywhere_is_refused_and_hides_no_other_session() {
    for (target, name, status, verb) in [
        (Target::Header, "session.json", "committed", "rollback"),
        (Target::Changes, "changes.jsonl", "pending", "commit"),
        (Target::Manifest, "checkpoint/manifest.jsonl", "committed", "rollback"),
    ] {
        let scene = Scene::at(status);
        let whole = std::fs::read(scene.session(name)).expect("a file of the session");
        // A header is whole without its last newline.
        let length = whole.len() - usize::from(target == Target::Header);
        let is_refused = scene.reader(target, name);
        for at in 0..length {
            assert!(is_refused(&whole[..at]), "{name} cut at {at}");
        }
        for cut in cuts(length) {
            let what = format!("{name} cut at {cut}");
            assert_eq!(garbled(&scene, name, &whole[..cut], verb, &what), 5, "{what}");
            if target == Target::Header {
                let listed = scene.say("list").with(4);
                assert!((listed.stdout() + &listed.stderr()).contains(&scene.id), "{what}: it is reported: {listed}");
            }
        }
        if target == Target::Manifest {
            for at in 0..length {
                assert!(is_refused(&flipped(&whole, at)), "{name} with another byte at {at}");
            }
            for at in cuts(length) {
                let what = format!("{name} with another byte at {at}");
                assert_eq!(garbled(&scene, name, &flipped(&whole, at), verb, &what), 5, "{what}");
            }
            // Its hash alone tells of what could be true as well.
            let text = String::from_utf8(whole.clone()).expect("text");
            let later = text.replacen(":40.000000007Z", ":41.000000007Z", 1);
            assert_ne!(text, later, "no time of an original");
            assert_eq!(garbled(&scene, name, later.as_bytes(), verb, "another time"), 5, "{later}");
        }
        scene.other_works(name);
        std::fs::write(scene.session(name), &whole).expect("the file as it was");
        scene.say(&format!("{verb} ID")).ok();
    }
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

#[test]
fn a_header_with_other_values_is_refused_or_true() {
    let scene = Scene::at("committed");
    let name = "session.json";
    let text = std::fs::read_to_string(scene.session(name)).expect("the header");
    let whole: serde_json::Value = serde_json::from_str(&text).expect("its JSON");
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut header = whole.clone();
        change(&mut header);
        header.to_string()
    };
    let is_refused = scene.reader(Target::Header, name);
    let values = [serde_json::Value::Null, (-1).into(), "../../x".into(), serde_json::json!([]), serde_json::json!({})];
    let keys = whole.as_object().expect("an object").keys();
    for (n, (key, value)) in keys.flat_map(|key| values.iter().map(move |value| (key, value))).enumerate() {
        let (header, what) = (with(&|header| header[key] = value.clone()), format!("{key}: {value}"));
        let refused = is_refused(header.as_bytes());
        if is_due(n) {
            let status = garbled(&scene, name, header.as_bytes(), "rollback", &what);
            assert!(status != 7 && (!refused || status == 5), "{what}: {status}");
        }
    }
    let deep = "[".repeat(100_000);
    let mut none = [&b""[..], b"null", b"[]", b"\xff\xfe", deep.as_bytes(), &[b' '; 1 << 20], b"{\"schema\":1,\"schema\":1}"]
        .map(Vec::from)
        .to_vec();
    // Sides and numbers that are not those of the changes, each alone.
    let all = whole["sides"].as_str().expect("the sides");
    for sides in ["", "i1", "x1", &all.replace('i', "o"), &all.replace('i', "n"), &format!("{all}i1"), "i99999999999999999999"] {
        none.push(with(&|header| header["sides"] = sides.into()).into());
    }
    for number in ["in", "ever_in"] {
        assert_eq!(whole["counts"][number], 5, "all are in");
        none.push(with(&|header| header["counts"][number] = 4.into()).into());
    }
    for header in none {
        let what = header[..header.len().min(1000)].escape_ascii().to_string();
        assert_eq!(garbled(&scene, name, &header, "rollback", &what), 5, "{what}");
    }
    let (count, lines) = (whole["counts"]["changes"].as_u64().expect("a count"), whole["lines"].as_u64().expect("a count"));
    for (changes, inside) in [(count - 1, count - 1), (count + 1, count + 1), (1 << 40, 0), (u64::MAX >> 1, 0), (count, 0)] {
        let header = with(&|header| {
            header["counts"] = serde_json::json!({ "changes": changes, "in": inside, "ever_in": inside });
            header["lines"] = changes.max(lines).into();
            header["sides"] = if inside > 0 { format!("i{inside}") } else { String::new() }.into();
        });
        for verb in ["rollback", "commit"] {
            let what = format!("{verb} with {changes} changes counted, {inside} in, of {count}");
            let status = garbled(&scene, name, header.as_bytes(), verb, &what);
            assert!(
                status == 5 || matches!(status, 1 | 3) && inside == 0 || status == 0 && verb == "commit" && inside > 0,
                "{what}: {status}"
            );
        }
    }
    std::fs::write(scene.session(name), text).expect("the header");
    scene.say("rollback ID").ok();
}

#[test]
fn changes_that_are_doubled_or_contradict_each_other_are_refused() {
    let scene = Scene::at("pending");
    let name = "changes.jsonl";
    let text = std::fs::read_to_string(scene.session(name)).expect("the changes");
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
        ("no text", "\u{0}".repeat(text.len())),
    ] {
        assert_ne!(content, text, "{what}");
        assert_eq!(garbled(&scene, name, content.as_bytes(), "commit", what), 5, "{what}");
    }
    std::fs::write(scene.session(name), &text).expect("the changes");
    scene.say("commit ID").ok();
}

/// A whole manifest of an earlier generation, as a copy of the store may have it.
#[test]
fn a_manifest_that_lacks_what_is_in_is_no_whole_checkpoint() {
    let scene = Scene::at("pending");
    let manifest = scene.session("checkpoint/manifest.jsonl");
    assert_eq!(scene.world.commit_half(&scene.id, &["b"], false), 0);
    let of_part = std::fs::read(&manifest).expect("a manifest");
    scene.say("commit ID").ok();
    scene.say("checkpoint verify").ok();
    std::fs::write(&manifest, of_part).expect("the former one");
    for words in ["checkpoint verify", "checkpoint verify ID", "rollback ID"] {
        let said = scene.say(words).with(5);
        assert!(said.stderr().contains("/tree/a: the checkpoint's manifest has no line for it"), "{words}: {said}");
    }
}

/// What a session consists of, and the verbs that are refused where it is committed and that is spoiled.
const PLACES: [(&str, &[&str]); 10] = [
    ("session.json", &["rollback ID"]),
    ("changes.jsonl", &["rollback ID"]),
    (
        "checkpoint/manifest.jsonl",
        &["rollback ID", "rollback ID --dry-run", "checkpoint show ID", "checkpoint verify ID", "checkpoint verify", "diff ID"],
    ),
    ("lock", &["rollback ID"]),
    ("checkpoint", &["rollback ID", "checkpoint verify ID", "checkpoint verify"]),
    ("checkpoint/blobs", &["rollback ID", "checkpoint verify ID", "checkpoint verify"]),
    ("checkpoint/objects", &["rollback ID", "checkpoint verify ID", "checkpoint verify"]),
    ("held", &["rollback ID"]),
    ("held/objects", &["rollback ID"]),
    ("displaced", &["rollback ID"]),
];

/// What lies in the store × what is in its place × verb.
#[test]
fn what_is_missing_or_of_another_kind_in_the_store_is_damage_for_every_verb_and_never_hangs() {
    for (status, verb) in [("committed", "rollback"), ("pending", "commit"), ("rolled_back", "redo")] {
        let scene = Scene::at(status);
        let verb = &*format!("{verb} ID");
        let cells =
            PLACES.iter().flat_map(|row| ["missing", "a symlink", "a file", "a fifo", "a directory"].map(|how| (row, how)));
        for ((place, refused), how) in cells {
            let (at, aside) = (scene.session(place), scene.session("aside"));
            let is_dir = at.is_dir();
            // A lock is made where it is missing, and a FIFO can be locked. Of what is rolled back no original is in.
            let is_fine = match *place {
                "lock" => ["missing", "a fifo"].contains(&how),
                "checkpoint/manifest.jsonl" => status == "rolled_back" && how == "missing",
                _ => false,
            };
            if !at.exists() || how == if is_dir { "a directory" } else { "a file" } {
                continue;
            }
            std::fs::rename(&at, &aside).expect("what is stored");
            put(&scene.world, &at, how, &aside);
            let refused = match status {
                _ if is_fine => &[],
                "committed" => *refused,
                _ => &[verb][..],
            };
            for words in refused {
                let what = format!("{status}, {place} is {how}: {words}");
                let said = scene.say(words);
                decent(&said, &what);
                assert_eq!(said.status, if *place == "lock" { 1 } else { 5 }, "{what}: {said}");
                let text = said.stdout() + &said.stderr();
                assert!(text.contains(&format!("/{}/{place}", scene.id)) && !text.contains("no checkpoints"), "{what}: {said}");
                // A copy of the store may leave out what is empty.
                let again = format!("mkdir -p -m 700 {}", at.display());
                assert!(status != "pending" || how != "missing" || !is_dir || text.contains(&again), "{what}: {said}");
                scene.assert_unchanged(&what);
                assert!(scene.world.journals().is_empty(), "{what}: {said}");
            }
            if status == "committed" && !is_dir {
                let what = format!("{place} is {how}");
                for words in ["list", "status", "show ID", "diff ID", "rollback ID --dry-run"] {
                    decent(&scene.say(words), &format!("{what}: {words}"));
                }
                scene.other_works(&what);
            }
            if scene.world.exists(&at) {
                scene.world.remove(&at);
            }
            std::fs::rename(&aside, &at).expect("what is stored");
        }
        if status == "committed" {
            // What is kept for the room that it takes is worth nothing else.
            std::fs::rename(scene.session("reserve.1"), scene.session("aside")).expect("the reserve");
            std::fs::create_dir(scene.session("reserve.1")).expect("a directory");
        }
        scene.say(verb).ok();
    }
}

/// A session over a file `gone` that is ready for a commit or a rollback.
fn ready(verb: &str, lines: &[&'static str]) -> (World, String) {
    let world = World::new();
    world.write("gone", "old");
    let id = held(&world, lines.iter().copied());
    if verb == "rollback" {
        world.recant(&format!("commit {id}")).ok();
    }
    (world, id)
}

/// One that is missing with what an interrupted operation had put into it is not taken for empty: nothing would be put back, and nobody
/// told.
#[test]
fn a_directory_of_a_session_that_is_missing_with_originals_stops_a_recovery() {
    // Up to the seal: what has been moved is in the directory then, all of it.
    let scene = |verb: &str| ready(verb, &["delete gone", "write made new"]);
    for verb in ["commit", "rollback"] {
        let (world, id) = scene(verb);
        let seal =
            step_like(|| world.call([verb, &*id]), |step| step.starts_with("renameat ") && step.contains("session.json.new"));
        for directory in ["checkpoint", "checkpoint/blobs", "held", "held/objects"] {
            let (world, id) = scene(verb);
            let before = world.manifest();
            kill(world.call([verb, &id]), seal);
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

#[test]
fn what_an_interrupted_operation_had_not_put_is_put_from_a_copy_of_the_store() {
    for (verb, line, name) in [("commit", "write comes new", "comes"), ("rollback", "delete gone", "gone")] {
        let (whole, id) = ready(verb, &[line]);
        let puts = |step: &str| step.starts_with("renameat") && step.contains(&format!("/tree/{name}"));
        let put = step_like(|| whole.call([verb, &*id]), puts);
        let (world, id) = ready(verb, &[line]);
        let before = world.manifest();
        kill(world.call([verb, &id]), put);
        copy_store(&world);
        let said = world.recant("recover").ok();
        before.assert_same(&world.manifest(), &format!("{verb}: {said}"));
        world.recant(&format!("{verb} {id}")).ok();
        assert_eq!(world.read(name), whole.read(name), "{verb}");
    }
}

/// Objects are told by their inodes, which a copy of the store has not: what was taken off the tree is there all the same.
#[test]
fn what_an_interrupted_commit_took_is_named_in_a_copy_of_the_store() {
    for (replaced, line) in [(false, "delete gone"), (true, "write gone new")] {
        let step = |like: &dyn Fn(&str) -> bool| {
            let (world, id) = ready("commit", &[line]);
            step_like(|| world.call(["commit", &*id]), like)
        };
        let sealed = step(&|step| step.contains("session.json.new"));
        let taken = step(&|step| step.starts_with("renameat") && step.contains("/tree/gone"));
        for (n, status) in [(taken, 0), (taken + 1, 4), (sealed, 4)] {
            let (world, id) = ready("commit", &[line]);
            kill(world.call(["commit", &id]), n);
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
    let id = held(&world, ["delete directory", "delete link", "delete fifo"]);
    world.recant(&format!("commit {id}")).ok();
    let objects = world.session(&id).join("checkpoint/objects");
    assert_eq!(std::fs::read_dir(&objects).expect("them").count(), 3);
    std::fs::remove_dir_all(&objects).and_then(|()| std::fs::create_dir(&objects)).expect("none");
    world.recant(&format!("checkpoint verify {id}")).ok();
    world.recant(&format!("rollback {id}")).ok();
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "taken back");
}

mod journal {
    use super::*;

    /// Killed in the middle of applying: a whole journal is there, and some of its steps are done.
    fn interrupted() -> (Scene, PathBuf) {
        let done = Scene::at("pending");
        let takes = |step: &str| step.starts_with("renameat") && step.contains("/tree/c");
        let taken = step_like(|| done.world.call(["commit", &*done.id]), takes);
        let scene = Scene::at("pending");
        kill(scene.world.call(["commit", &scene.id]), taken + 1);
        assert!(!scene.world.exists("c"));
        let journal = scene.world.store().join("journals").join(&scene.id);
        (scene, journal)
    }

    #[test]
    fn a_journal_cut_or_flipped_anywhere_stops_its_own_session_and_no_other() {
        let (scene, journal) = interrupted();
        let world = &scene.world;
        let whole = std::fs::read(&journal).expect("a journal");
        let middle = world.manifest();
        let is_refused = scene.reader(Target::Journal, "");
        for at in 0..whole.len() {
            assert!(is_refused(&whole[..at]) && is_refused(&flipped(&whole, at)), "cut or flipped at {at}");
        }
        let mut cases: Vec<(String, Vec<u8>)> = Vec::new();
        for at in cuts(whole.len()) {
            cases.push((format!("cut at {at}"), whole[..at].into()));
            cases.push((format!("flipped at {at}"), flipped(&whole, at)));
        }
        cases.push(("zeros at its end".into(), [&whole[..whole.len() - 4096.min(whole.len())], &[0; 4096]].concat()));
        cases.push(("something behind its end".into(), [&whole[..], b"x"].concat()));
        cases.push(("itself twice".into(), [&whole[..], &whole[..]].concat()));
        for (what, bytes) in cases {
            std::fs::write(&journal, bytes).expect("a garbled journal");
            for words in ["recover", "commit ID", "rollback ID", "commit ID --dry-run"] {
                let said = scene.say(words);
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
        scene.assert_unchanged("the whole journal again");
    }

    /// I14. Its hash proves that it is whole, not who wrote it.
    #[test]
    fn a_journal_by_which_an_object_would_lie_outside_of_its_session_is_refused_though_its_hash_is_right() {
        let (scene, journal) = interrupted();
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
        scene.assert_unchanged("the whole journal again");
    }

    #[test]
    fn under_its_temporary_names_a_garbled_journal_means_that_nothing_was_done() {
        let (_interrupted, journal) = interrupted();
        let whole = std::fs::read(&journal).expect("a journal");
        let scene = Scene::at("pending");
        for name in ["tmp", "new"] {
            for cut in cuts(whole.len()) {
                let file = scene.world.store().join("journals").join(format!("{}.{name}", scene.id));
                std::fs::write(&file, &whole[..cut]).expect("half a journal");
                let what = format!("{name} cut at {cut}");
                let said = scene.say("recover");
                decent(&said, &what);
                assert_eq!(said.status, 0, "{what}: {said}");
                scene.assert_unchanged(&what);
                scene.world.assert_tidy(&what);
            }
        }
        scene.say("commit ID").ok();
    }

    #[test]
    fn a_journal_that_is_no_file_never_hangs_anything() {
        let (scene, journal) = interrupted();
        let (middle, aside) = (scene.world.manifest(), scene.world.root().join("aside"));
        std::fs::rename(&journal, &aside).expect("a journal");
        for how in ["a fifo", "a symlink", "a directory"] {
            put(&scene.world, &journal, how, &aside);
            for words in ["recover", "commit ID"] {
                let said = scene.say(words);
                decent(&said, how);
                assert_eq!(said.status, 5, "{how}: {said}");
            }
            middle.assert_same(&scene.world.manifest(), how);
            scene.other_works(how);
            scene.world.remove(&journal);
        }
    }
}

#[test]
fn ids_that_lead_out_of_the_store_are_refused() {
    let scene = Scene::at("pending");
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
