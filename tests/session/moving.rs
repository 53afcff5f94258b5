//! Sessions that move: what is exported here is committed elsewhere exactly as it would have been here; what is no whole stream
//! leaves nothing; what a hostile one asks for leads nowhere.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use crate::common::sweep::{Came, Sweep, is_due, steps_of};
use crate::common::{self, Manifest, World, name};
use crate::on_stderr;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Another machine, as far as a session can tell: its own home, store and tree, the tree a copy of the first one's.
fn other(world: &World) -> World {
    let other = World::new();
    let args = ["-a".into(), format!("{}/.", world.tree().display()), other.tree().display().to_string()];
    other.program("cp", args).run().ok();
    other
}

fn export(world: &World, id: &str) -> Vec<u8> {
    world.call(["session", "export", id]).run().ok().out
}

fn map(from: &World, to: &World) -> String {
    format!("{}={}", from.tree().display(), to.tree().display())
}

fn import(from: &World, to: &World, stream: &[u8]) -> common::Said {
    to.call(["session", "import", "--map", &map(from, to)]).stdin(stream).run()
}

/// Names in `sessions/`, half made ones included.
fn sessions(world: &World) -> Vec<String> {
    let Ok(names) = std::fs::read_dir(world.store().join("sessions")) else { return Vec::new() };
    names.map(|name| name.expect("a name").file_name().to_string_lossy().into_owned()).collect()
}

/// Every kind of object, and one of each is there before.
fn fill(world: &World) {
    world.write("edited", "old").write("gone", "away").write("moded", "x").write("one", "linked").write("full/a", "1");
    world.write("full/sub/b", "2").write("kind/file", "f").mkdir("kind/directory");
    world.symlink("nowhere", "kind/link").fifo("kind/fifo");
    world.symlink("old", "link").fifo("fifo").chmod("edited", 0o600).link("one", "two");
    world.write(name(b"bytes \xff\n\"here"), "odd").write("times", "same");
    world.set_xattr("edited", "user.kept", b"1\0\xff");
    for (n, name) in ["full", "full/sub", "kind", "kind/directory", ""].into_iter().enumerate() {
        world.set_mtime(name, 1_000_000_000 + n as i64, 7);
    }
}

/// A directory in which a staged change was made has the time of its commit.
enum Times {
    All,
    NotOfDirectories,
}

/// Commits the same in both worlds, and compares every object with its times; then takes both back.
#[track_caller]
fn assert_same_there(world: &World, there: &World, id: &str, times: Times) {
    let shape = |world: &World| match times {
        Times::All => world.manifest(),
        Times::NotOfDirectories => world.manifest().without_directory_times(),
    };
    let before = there.manifest();
    world.manifest().assert_same(&before, "the two trees at first");
    world.call(["commit", id]).run().ok();
    there.call(["commit", id]).run().ok();
    shape(world).assert_same(&shape(there), "committed here and there");
    there.call(["rollback", id]).run().ok();
    before.assert_same(&there.manifest(), "taken back there");
    there.call(["redo", id]).run().ok();
    shape(world).assert_same(&shape(there), "committed here, and again there");
    there.assert_tidy("there");
}

#[test]
fn a_staged_session_is_committed_elsewhere_as_it_would_have_been_here() {
    let world = World::new();
    fill(&world);
    let there = other(&world);
    let id = world.begin();
    let staged = "write edited new; write one edited alone; write new/deep/er n; write kind/fifo was a fifo; \
                      write empty ; delete gone; delete full; delete link; delete fifo; chmod 4710 moded; mkdir hollow; \
                      symlink to kind/directory; mkdir kind/link";
    world.stage(&id, staged.split("; "));
    world.stage_write(&id, name(b"bytes \xff\n\"here"), "changed");
    world.call(["session", "rename", &id, "upgrade"]).run().ok();
    let stream = export(&world, &id);
    assert_eq!(stream, export(&world, &id), "the same each time");
    let said = import(&world, &there, &stream).ok();
    assert_eq!(said.id(), id);
    let shown = there.recant("show upgrade --json").ok().json()["session"].clone();
    assert_eq!((&shown["id"], &shown["status"]), (&id.as_str().into(), &"pending".into()));
    assert_same_there(&world, &there, &id, Times::NotOfDirectories);
}

/// Its lines are counted as one that was written as a whole: a killed staging's line behind them is cut off, and none of theirs.
#[test]
fn what_is_staged_into_an_imported_session_comes_behind_what_it_holds() {
    let world = World::new();
    world.write("a", "old").write("b", "old");
    let there = other(&world);
    let id = world.begin();
    world.stage(&id, ["write a new", "write b new"]);
    import(&world, &there, &export(&world, &id)).ok();
    let write = |name: &str| there.call(["session", "write", &id, name]).stdin("new");
    let steps = steps_of(|| write("c"));
    let named = 1 + steps.iter().position(|step| step.starts_with("renameat ")).expect("the header gets its name");
    write("never").env("RECANT_STEPS", format!("kill:{named}")).run().with(137);
    there.stage_write(&id, "d", "new");
    there.call(["commit", &id]).run().ok();
    let files = ["a", "b", "c", "d"];
    assert_eq!(files.map(|name| there.read(name)), ["new"; 4]);
    assert!(!there.exists("never"));
    there.call(["rollback", &id]).run().ok();
    assert_eq!(files.map(|name| there.exists(name)), [true, true, false, false]);
    assert_eq!(there.read("a") + &there.read("b"), "oldold");
}

#[test]
fn a_captured_session_is_committed_elsewhere_as_it_would_have_been_here() {
    let Some(world) = common::can_run().then(World::new) else { return };
    fill(&world);
    let there = other(&world);
    let script = "echo new > edited && echo more >> one && rm gone && rm -r full && chmod 640 moded && touch -d @1234567890 times
        mkdir -p new/deep && echo n > new/deep/er && ln new/deep/er new/again && ln -s nowhere new/link && mkfifo new/fifo
        truncate -s 16M new/sparse && printf end >> new/sparse && truncate -s 20M new/sparse && : > empty && mkdir hollow && chmod 700 hollow
        rm kind/fifo && echo file > kind/fifo && rmdir kind/directory && ln -s to kind/directory && rm link && mkdir link && echo in > link/in
        printf x > \"$(printf 'odd \\377\\n\"')\"";
    let said = world.call(["run", "--", "sh", "-ec", script]).run().ok();
    let id = world.recant("list --json").ok().rows()[0]["id"].as_str().expect("an id").to_owned();
    assert!(!world.exists("new"), "{said}");
    let stream = export(&world, &id);
    assert!(stream.len() < 1 << 20, "a hole travels as one: {} bytes", stream.len());
    import(&world, &there, &stream).ok();
    let shown = there.recant("show --json").ok().json();
    assert_eq!(shown["run"]["argv"][0], "sh", "{shown}");
    assert_same_there(&world, &there, &id, Times::All);
    let blocks = there.path("new/sparse").metadata().expect("the file").blocks() * 512;
    assert!(blocks < 1 << 20, "{blocks} bytes on disk for a file of holes");
    assert_eq!(
        there.path("new/again").metadata().expect("a name").ino(),
        there.path("new/deep/er").metadata().expect("a name").ino()
    );
    there.recant("run --session last -- true").with(125);
}

#[test]
fn what_was_rolled_back_moves_and_what_is_committed_does_not() {
    let world = World::new();
    let id = world.edited("notes.txt");
    world.call(["commit", &id]).run().ok();
    let said = world.call(["session", "export", &id]).run().with(1);
    insta::assert_snapshot!(on_stderr(&said, 1), @r"
    recant: session <id1>: what is committed lies on the tree
            nothing was changed
            recant rollback <id1> brings it back into the session
    ");
    world.call(["rollback", &id]).run().ok();
    let there = other(&world);
    import(&world, &there, &export(&world, &id)).ok();
    there.call(["commit", &id]).run().ok();
    assert_eq!(there.read("notes.txt"), "new");
    there.call(["rollback", &id]).run().ok();
    assert_eq!(there.read("notes.txt"), "old");
}

#[test]
fn a_committed_session_moves_with_its_checkpoint_to_where_its_tree_went() {
    let world = World::new();
    fill(&world);
    world.write("same", "linked").link("same", "as well");
    world.symlink("target", "point").fifo("pipe");
    for (name, other) in [("point", "point, too"), ("pipe", "pipe, too")] {
        std::fs::hard_link(world.path(name), world.path(other)).expect("another name");
    }
    let before = world.manifest();
    let id = world.begin();
    let staged = "write edited new; write new/deep/er n; write kind/fifo was a fifo; write same a; delete gone; \
                      delete one; delete full; delete link; delete point; delete pipe; chmod 4710 moded; \
                      symlink to kind/directory";
    world.stage(&id, staged.split("; "));
    world.stage_write(&id, "as well", "a");
    world.call(["session", "export", &id, "--checkpoint"]).run().with(1);
    world.call(["commit", &id]).run().ok();
    let after = world.manifest();
    let there = other(&world);
    let stream = world.call(["session", "export", &id, "--checkpoint"]).run().ok().out;
    import(&world, &there, &stream).ok();
    assert_eq!(there.status(&id), "committed");
    there.recant("checkpoint verify").ok();
    // A name outside of the session is of the machine's own inode: it cannot be rejoined, which is said.
    let said = there.call(["rollback", &id]).run().with(4);
    for what in
        ["one: taken back as a separate file", "point: taken back as a separate symlink", "pipe: taken back as a separate fifo"]
    {
        assert!(said.stdout().contains(what), "{said}");
    }
    let apart = |manifest: &Manifest| {
        let mut manifest = manifest.clone();
        let parted = ["one", "two", "point", "point, too", "pipe", "pipe, too"].map(str::as_bytes);
        manifest.0.iter_mut().filter(|(path, _)| parted.contains(&&***path)).for_each(|(_, row)| row.group = None);
        manifest
    };
    apart(&before).assert_same(&there.manifest(), "rolled back there");
    there.call(["redo", &id]).run().ok();
    apart(&after.without_directory_times()).assert_same(&there.manifest().without_directory_times(), "and forward again");
    // Where something else stands than was committed it is said at once, and a rollback ends on it.
    let third = other(&world);
    third.write("edited", "theirs");
    let said = third.call(["session", "import", "--map", &map(&world, &third), "--json"]).stdin(&stream).run().with(3);
    assert_eq!(said.against(), [third.path("edited").display().to_string()]);
    third.call(["rollback", &id]).run().with(3);
    third.write("edited", "new").chmod("edited", 0o600);
    third.set_xattr("edited", "user.kept", b"1\0\xff");
    third.call(["rollback", &id]).run().with(4);
    apart(&before).assert_same(&third.manifest(), "rolled back once it was as committed");
}

#[test]
fn an_agent_cannot_bring_a_committed_session_and_what_came_is_never_last() {
    let world = World::new();
    world.write("f", "safe").write("g", "old");
    let id = world.begin();
    world.stage_write(&id, "f", "evil");
    let pending = export(&world, &id);
    world.call(["commit", &id]).run().ok();
    let committed = world.call(["session", "export", &id, "--checkpoint"]).run().ok().out;
    let bring = |there: &World, stream: &[u8], agent: &str| {
        there.call(["session", "import", "--map", &map(&world, there)]).env("CLAUDECODE", agent).stdin(stream).run()
    };
    let there = other(&world);
    let said = bring(&there, &committed, "1").with(1);
    assert!(
        said.stderr().contains("in your own terminal: recant session import < FILE") && sessions(&there).is_empty(),
        "{said}"
    );
    let own = there.begin();
    there.stage_write(&own, "g", "new").call(["commit", &own]).run().ok();
    bring(&there, &committed, "").ok();
    for words in ["list", "show last", "log"] {
        assert_eq!(there.recant(words).ok().stdout().contains("import"), words != "show last", "{words}");
    }
    assert!(there.call(["show", &id]).run().ok().stdout().contains("committed, imported"));
    there.recant("rollback last").ok();
    assert_eq!((there.read("f"), there.read("g")), ("evil".into(), "old".into()));
    there.recant("rollback last").with(1);
    there.call(["rollback", &id]).run().ok();
    // What an agent brought is its own, and a person names it.
    let third = World::new();
    third.write("f", "safe");
    bring(&third, &pending, "1").ok();
    third.recant("commit last").with(1);
    assert_eq!(third.recant("list --json").ok().json()["sessions"][0]["by"]["agent"], "claude");
    third.call(["commit", &id]).run().ok();
    assert_eq!(third.read("f"), "evil");
}

#[test]
fn what_stands_otherwise_here_is_named_at_once_and_the_session_is_kept() {
    let world = World::new();
    world.write("a", "1").write("b", "2").write("c", "3").write("d", "4");
    let id = world.begin();
    world.stage(&id, ["write a new", "write b new", "write c new", "write d new", "write e new"]);
    let there = other(&world);
    there.write("a", "theirs").remove("b").chmod("c", 0o600).write("e", "theirs");
    let stream = export(&world, &id);
    let args = ["session", "import", "--json", "--map", &map(&world, &there)];
    let said = there.call(args).stdin(&stream).run().with(3);
    let named: Vec<String> = ["a", "b", "c", "e"].map(|name| there.path(name).display().to_string()).into();
    assert_eq!(said.against(), named);
    assert_eq!(said.json()["session"], id.as_str());
    assert_eq!(there.status(&id), "pending");
    there.call(["commit", &id]).run().with(3);
    assert_eq!(there.read("a"), "theirs");
    // Once more it is nothing new, and once all is as it was a commit goes.
    import(&world, &there, &stream).ok();
    there.write("a", "1").write("b", "2").chmod("c", 0o644).remove("e");
    there.call(["commit", &id]).run().ok();
    assert_eq!(there.read("e"), "new");
}

#[test]
fn an_original_that_changed_since_the_run_is_a_conflict_of_the_export_where_its_hash_was_not_taken() {
    let Some(world) = common::can_run().then(World::new) else { return };
    world.config("capture.keep_before = false").write("edited", "old").write("kept", "old");
    // Of a file that was changed right before the run the hash is taken at once; of others the fingerprint is enough.
    std::thread::sleep(std::time::Duration::from_millis(60));
    world.recant("run -- sh -c echo>edited;echo>kept").ok();
    world.write("edited", "by somebody");
    let id = world.recant("list --json").ok().rows()[0]["id"].as_str().expect("an id").to_owned();
    let said = world.call(["session", "export", &id, "--json"]).run().with(3);
    assert_eq!(said.against(), [world.path("edited").display().to_string()]);
    assert!(said.out.is_empty(), "nothing of it was printed");
    world.config("").recant("run -- sh -c echo>edited").ok();
    world.write("edited", "by somebody again");
    world.recant("session export last").ok();
}

#[test]
fn the_same_stream_twice_is_nothing_and_another_session_of_that_id_is_refused() {
    let world = World::new();
    let id = world.edited("notes.txt");
    let stream = export(&world, &id);
    let there = other(&world);
    import(&world, &there, &stream).ok();
    import(&world, &there, &stream).ok();
    assert_eq!(sessions(&there), [&*id]);
    // Elsewhere on this machine it would be another session.
    there.call(["session", "import"]).stdin(&stream).run().with(1);
    world.stage_write(&id, "more", "more");
    let said = import(&world, &there, &export(&world, &id)).with(1);
    assert!(said.stderr().contains("is here already"), "{said}");
    // Where it came from it is not an import.
    world.call(["session", "import"]).stdin(&stream).run().with(1);
    // One that was discarded is here, but holds nothing.
    there.call(["discard", &id]).run().ok();
    let said = import(&world, &there, &stream).with(1);
    assert!(said.stderr().contains("is here already") && said.stderr().contains("prune --sessions"), "{said}");
    there.call(["prune", "--sessions", &id]).run().ok();
    import(&world, &there, &stream).ok();
    there.call(["commit", &id]).run().ok();
    assert_eq!(there.read("notes.txt"), "new");
}

#[test]
fn a_name_that_is_taken_stays_where_it_is() {
    let world = World::new();
    let id = world.edited("notes.txt");
    world.call(["session", "rename", &id, "upgrade"]).run().ok();
    let there = other(&world);
    let own = there.recant("session new -n upgrade").ok().id();
    let said = import(&world, &there, &export(&world, &id)).ok();
    assert!(said.stderr().contains("the name upgrade is taken here"), "{said}");
    assert_eq!(there.recant("show upgrade --json").ok().json()["session"]["id"], own.as_str());
}

#[test]
fn the_longest_mapping_counts_and_paths_are_sorted_anew() {
    let world = World::new();
    world.mkdir("a/b").mkdir("c");
    let id = world.begin();
    world.stage(&id, ["write a/1 a/1", "write a/b/2 a/b/2", "write c/3 c/3"]);
    let there = World::new();
    there.mkdir("z").mkdir("y").mkdir("x").mkdir("real").symlink("real", "link");
    let rule = |from: &str, to: &str| format!("{}={}", world.path(from).display(), there.path(to).display());
    let rules = [rule("a", "z"), rule("a/b", "y"), rule("c", "link")];
    let args = ["session", "import", "--map", &rules[0], "--map", &rules[1], "--map", &rules[2]];
    there.call(args).stdin(export(&world, &id)).run().ok();
    there.call(["commit", &id]).run().ok();
    assert_eq!((there.read("z/1"), there.read("y/2"), there.read("real/3")), ("a/1".into(), "a/b/2".into(), "c/3".into()));
    for wrong in ["relative=/srv", "/srv", "/srv=relative", "/a/../b=/c"] {
        there.call(["session", "import", "--map", wrong]).run().with(2);
    }
}

#[test]
fn a_stream_that_is_cut_off_or_garbled_anywhere_leaves_nothing() {
    let world = World::new();
    let id = world.edited("n");
    let stream = export(&world, &id);
    let there = other(&world);
    there.recant("list").ok();
    let refused = |what: String, stream: &[u8]| {
        let said = import(&world, &there, stream);
        assert_eq!(said.status, 1, "{what}: {said}");
        assert!(!said.stderr_lossy().contains("panicked"), "{what}: {said}");
        assert_eq!(sessions(&there), Vec::<String>::new(), "{what}");
    };
    for length in (0..stream.len()).filter(|length| is_due(*length)) {
        refused(format!("cut to {length} bytes"), &stream[..length]);
    }
    for at in (0..stream.len()).filter(|at| is_due(*at)) {
        let mut garbled = stream.clone();
        garbled[at] ^= 1 << (at % 8);
        refused(format!("byte {at} of {}", stream.len()), &garbled);
    }
    refused("more behind it".into(), &[&stream[..], b"x"].concat());
    import(&world, &there, &stream).ok();
}

type Records = Vec<(u8, Vec<u8>)>;

/// A stream taken apart: its records, to be put together again with a right hash.
struct Parts(Records);

impl Parts {
    fn of(stream: &[u8]) -> Self {
        let mut rest = stream.strip_prefix(b"recant-export 1\n").expect("its first line");
        let mut parts = Vec::new();
        while let [kind, a, b, c, d, more @ ..] = rest {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            parts.push((*kind, more[..length].to_vec()));
            rest = &more[length..];
        }
        Self(parts)
    }

    fn whole(&self) -> Vec<u8> {
        let mut bytes = b"recant-export 1\n".to_vec();
        for (kind, body) in &self.0[..self.0.len() - 1] {
            bytes.push(*kind);
            bytes.extend_from_slice(&u32::try_from(body.len()).expect("a short one").to_be_bytes());
            bytes.extend_from_slice(body);
        }
        let hash = Sha256::digest(&bytes);
        bytes.extend_from_slice(b"E\0\0\0\x20");
        bytes.extend_from_slice(&hash);
        bytes
    }

    /// Another value in the JSON of the `n`th record of a kind.
    fn with(stream: &[u8], kind: u8, n: usize, pointer: &str, value: Value) -> Vec<u8> {
        let mut parts = Self::of(stream);
        let body = &mut parts.0.iter_mut().filter(|part| part.0 == kind).nth(n).expect("such a record").1;
        let mut json: Value = serde_json::from_slice(body).expect("JSON");
        *json.pointer_mut(pointer).expect("such a field") = value;
        *body = serde_json::to_vec(&json).expect("JSON");
        parts.whole()
    }

    fn edited(stream: &[u8], edit: impl FnOnce(&mut Records)) -> Vec<u8> {
        let mut parts = Self::of(stream);
        edit(&mut parts.0);
        parts.whole()
    }
}

#[test]
fn a_hostile_stream_leads_nowhere_and_leaves_nothing() {
    let world = World::new();
    world.write("a", "old").write("b", "old").mkdir("directory");
    let id = world.begin();
    world.stage_write(&id, "a", "new").stage_write(&id, "b", "newer").stage_write(&id, "directory/c", "newest");
    world.call(["session", "rename", &id, "upgrade"]).run().ok();
    let stream = export(&world, &id);
    assert_eq!(Parts::of(&stream).whole(), stream, "the parts are the whole");
    // A tmpfs takes files of any size.
    let there = World::on(Path::new("/var/tmp"));
    there.recant("session new").ok();
    let own = sessions(&there);
    let store = there.store().display().to_string();
    let before = common::manifest(there.root()).without_directory_times();
    let change = |n, pointer: &str, value: Value| Parts::with(&stream, b'C', n, pointer, value);
    let head = |pointer: &str, value: Value| Parts::with(&stream, b'H', 0, pointer, value);
    let first_data = |parts: &mut Records, at: u64| {
        let data = parts.iter_mut().find(|part| part.0 == b'D').expect("content");
        data.1[..8].copy_from_slice(&at.to_be_bytes());
    };
    let at_first = |kind: u8, edit: fn(&mut Records, usize)| {
        Parts::edited(&stream, |parts| edit(parts, parts.iter().position(|part| part.0 == kind).expect("such a record")))
    };
    let drop_first = |kind| at_first(kind, |parts, at| drop(parts.remove(at)));
    let twice = |kind| at_first(kind, |parts, at| parts.insert(at, parts[at].clone()));
    // As a run leaves it that touched a directory.
    let directory_time = |path: &str| {
        let time = "2026-03-01T10:15:00.000000000Z";
        let body = json!({"path": path, "before": time, "after": time}).to_string().into_bytes();
        Parts::edited(&stream, |parts| {
            let at = parts.iter().rposition(|part| part.0 == b'C').expect("a change");
            parts.insert(at + 1, (b'T', body));
        })
    };
    let mut huge = stream[..16].to_vec();
    huge.extend_from_slice(b"H\xff\xff\xff\xff{}");
    let mut later = stream.clone();
    later[14] = b'2';
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a path with ..", change(0, "/path", json!("/srv/../etc/passwd"))),
        ("a relative path", change(0, "/path", json!("etc/passwd"))),
        ("a path with NUL", change(0, "/path", json!("/srv/a\0b"))),
        ("a name that is too long", change(0, "/path", json!(format!("/srv/{}", "x".repeat(300))))),
        ("a path of bytes that is none", change(0, "/path", json!({"b64": "////"}))),
        ("a path in the store", change(0, "/path", json!(format!("{store}/format")))),
        ("the store itself", change(0, "/path", json!(store))),
        ("a directory above the store", change(0, "/path", json!(there.root().display().to_string()))),
        ("the root directory", change(0, "/path", json!("/"))),
        ("the time of the store's directory", directory_time(&store)),
        ("the time of a directory in the store", directory_time(&format!("{store}/sessions"))),
        ("the time of a directory with ..", directory_time("/srv/../etc")),
        ("an id that is a path", head("/id", json!("../../../x"))),
        ("an id of another length", head("/id", json!("20260301-101500-k3fax"))),
        ("a number that is too large", change(0, "/n", json!(1_u64 << 40))),
        ("a negative number", change(0, "/n", json!(-1))),
        ("two changes of one number", change(1, "/n", json!(1))),
        ("content for another change", change(0, "/n", json!(99))),
        ("a size that lies", change(0, "/after/size", json!(4))),
        ("a size beyond every file system", change(0, "/after/size", json!(u64::MAX))),
        ("a size beyond the room, as a hole", change(0, "/after/size", json!(i64::MAX))),
        ("a hash that lies", change(0, "/after/digest", json!("0".repeat(64)))),
        ("a hash that is a path", change(0, "/after/digest", json!("../../../../etc/passwd"))),
        ("a before without a hash", change(0, "/before/object/digest", Value::Null)),
        ("a kind that there is not", change(0, "/after/kind", json!("door"))),
        ("an owner that chown takes for none", change(0, "/after/uid", json!(u32::MAX))),
        ("a group that chown takes for none", change(1, "/after/gid", json!(u32::MAX))),
        ("an owner before that chown takes for none", change(0, "/before/object/uid", json!(u32::MAX))),
        ("a mode that there is not", change(0, "/after/mode", json!("177777"))),
        ("a file with something in it", change(2, "/path", json!(world.path("a/in").display().to_string()))),
        ("the same path twice", change(1, "/path", json!(world.path("a").display().to_string()))),
        ("more changes than are counted", head("/changes", json!(1))),
        ("fewer changes than are counted", head("/changes", json!(4))),
        ("far too many changes", head("/changes", json!(u64::MAX))),
        ("a name that is a path", head("/name", json!("../x"))),
        ("a name that is none", head("/name", json!("-rf"))),
        ("a checkpoint that is none", {
            Parts::edited(&stream, |parts| {
                let mut head: Value = serde_json::from_slice(&parts[0].1).expect("JSON");
                head["checkpoint"] = true.into();
                parts[0].1 = serde_json::to_vec(&head).expect("JSON");
            })
        }),
        ("an origin that there is not", head("/origin", json!("elsewhere"))),
        ("no content", drop_first(b'D')),
        ("no object", drop_first(b'O')),
        ("no hash of content", drop_first(b'S')),
        ("content twice", twice(b'D')),
        ("an object twice", twice(b'O')),
        ("a change twice", twice(b'C')),
        ("two heads", twice(b'H')),
        ("content far beyond", Parts::edited(&stream, |parts| first_data(parts, 1 << 40))),
        ("content beyond all numbers", Parts::edited(&stream, |parts| first_data(parts, u64::MAX))),
        ("a further name of nothing", Parts::with(&stream, b'O', 0, "", json!({"n": 1, "link": 77}))),
        ("a further name of itself", Parts::with(&stream, b'O', 0, "", json!({"n": 1, "link": 1}))),
        ("an unknown record", Parts::edited(&stream, |parts| parts.insert(1, (b'?', Vec::new())))),
        ("a short piece of content", Parts::edited(&stream, |parts| parts.insert(2, (b'D', vec![0; 7])))),
        ("a length that lies", huge),
        ("a later version", later),
        ("something else", b"#!/bin/sh\nexit\n".to_vec()),
        ("a short line", b"hi\n".to_vec()),
        ("nothing", Vec::new()),
    ];
    for (what, bytes) in cases {
        let said = there.call(["session", "import"]).stdin(bytes).run();
        assert_eq!(said.status, 1, "{what}: {said}");
        assert!(!said.stderr().contains("panicked"), "{what}: {said}");
        assert_eq!(said.stderr().contains("of version"), what == "a later version", "{what}: {said}");
        assert_eq!(sessions(&there), own, "{what}: {said}");
        before.assert_same(&common::manifest(there.root()).without_directory_times(), what);
    }
    common::way("owners that chown(2) takes for none", common::this_user(), "import", "closed");
}

#[test]
fn an_export_keeps_its_memory_whatever_the_sizes() {
    let world = World::new();
    let id = world.begin();
    let zeros = world.root().join("zeros");
    std::fs::File::create(&zeros).and_then(|file| file.set_len(160 << 20)).expect("a file of holes");
    world.call(["session", "write", &id, "large", "--from", &zeros.display().to_string()]).run().ok();
    let script = "ulimit -v 150000; \"$0\" session export \"$1\" | \"$0\" --store \"$2\" session import --map \"$3\"";
    let there = other(&world);
    let store = there.store().display().to_string();
    let args = ["-c", script, common::recant(), &id, &store, &map(&world, &there)];
    world.program("sh", args).run().ok();
    let large = Path::new(&store).join("sessions").join(&id).join("held/objects");
    let held = std::fs::read_dir(large).expect("held objects").next().expect("one").expect("a name");
    assert_eq!(held.metadata().expect("its size").len(), 160 << 20);
}

#[test]
fn an_import_that_is_cut_off_before_any_step_leaves_no_half_session() {
    let world = World::new();
    fill(&world);
    let id = world.begin();
    world.stage(&id, ["write edited edited", "write new/a new/a", "write new/b new/b"]);
    let stream = export(&world, &id);
    // For what a commit gives here.
    let copy = other(&world);
    import(&world, &copy, &stream).ok();
    for order in ["kill:N", "fail:N:28", "fail:N:5"] {
        let row = Sweep {
            name: "session import",
            scene: &|| Some(other(&world)),
            verb: &|there: &World| there.call(["session", "import", "--map", &map(&world, there)]).stdin(&stream),
            order,
        };
        let tally = row.run(|there, said, what| {
            let listed = there.recant("list --json").rows();
            assert!(matches!(said.status, 0 | 1 | 137), "{what}");
            let is_here = listed.iter().any(|row| row["id"] == id.as_str());
            let again = import(&world, there, &stream).ok();
            if is_here {
                assert!(again.stderr().contains("is here already: nothing"), "{what}: {again}");
            } else {
                assert_ne!(said.status, 0, "{what}");
                assert_eq!(listed, [] as [Value; 0], "{what}");
            }
            there.recant("recover");
            // What was left had no name, and went.
            assert_eq!(sessions(there), [&*id], "{what}");
            there.call(["prune", "--sessions", &id]).run().ok();
            Came::Unchanged(is_here)
        });
        assert!(tally.steps >= 20, "{order}: only {} steps", tally.steps);
        tally.saw(true, 1).saw(false, 10);
    }
    let there = other(&world);
    import(&world, &there, &stream).ok();
    assert_same_there(&copy, &there, &id, Times::NotOfDirectories);
}

#[test]
fn an_import_whose_stream_comes_slowly_is_swept_away_by_nobody() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "large", vec![7; 1 << 20]).stage_write(&id, "small", "x");
    let stream = export(&world, &id);
    let there = other(&world);
    let rule = map(&world, &there);
    let mut child = there.call(["session", "import", "--map", &rule]).command().stdin(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&stream[..stream.len() / 2]).expect("it reads");
    let half_made = || std::fs::read_dir(there.store().join("sessions")).into_iter().flatten().count() > 0;
    crate::common::until("its beginning", half_made);
    there.recant("recover").ok();
    there.recant("session new").ok();
    input.write_all(&stream[stream.len() / 2..]).expect("it reads");
    drop(input);
    assert!(child.wait().expect("its end").success());
    assert!(sessions(&there).contains(&id));
    there.recant("checkpoint verify").ok();
}

#[test]
fn a_map_in_which_no_path_lies_is_named() {
    let world = World::new();
    let id = world.edited("edited");
    let there = other(&world);
    let wrong = format!("{}x=/elsewhere", world.tree().display());
    let words = ["session", "import", "--map", &map(&world, &there), "--map", &wrong];
    let said = there.call(words).stdin(export(&world, &id)).run().ok();
    let from = format!("--map {}x=…: no path", world.tree().display());
    assert!(said.stderr().contains(&from) && said.stderr().matches("--map").count() == 1, "{said}");
}
