//! Conflicts: whatever somebody else did to a path since is refused by name and left alone, and `--force` keeps it.

use std::os::unix::fs::MetadataExt;

use crate::common::sweep::{COMMIT, Came, REDO, ROLLBACK, Sweep, Verb, steps_of};
use crate::common::{self, Manifest, Said, World, close, elsewhere};
use crate::desk::has;
use crate::held;
use insta::assert_snapshot;

/// What somebody else does to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    EditedWithTheOldTime,
    Appended,
    Deleted,
    MadeAgain,
    Chmodded,
    Xattr,
    EqualBytes,
    Directory,
    Symlink,
    Fifo,
    MovedAway,
}

use Deed::*;

const DEEDS: [Deed; 11] =
    [EditedWithTheOldTime, Appended, Deleted, MadeAgain, Chmodded, Xattr, EqualBytes, Directory, Symlink, Fifo, MovedAway];

fn mtime(world: &World, name: &str) -> (i64, i64) {
    let meta = world.path(name).symlink_metadata().expect("a file");
    (meta.mtime(), meta.mtime_nsec())
}

fn mode(world: &World, name: &str) -> u32 {
    world.path(name).symlink_metadata().expect("a file").mode() & 0o7777
}

impl Deed {
    /// Does it. `back` is what stood at the path before the last operation, for a path where nothing is now. Whether
    /// anything could be done.
    fn to(self, world: &World, name: &str, back: &str) -> bool {
        let there = world.exists(name);
        if !there && matches!(self, EditedWithTheOldTime | Appended | Deleted | Chmodded | Xattr | MovedAway) {
            return false;
        }
        let (bytes, mode) = if there { (world.bytes(name), mode(world, name)) } else { (back.into(), 0o644) };
        if there && matches!(self, MadeAgain | EqualBytes | Directory | Symlink | Fifo) {
            world.remove(name);
        }
        match self {
            EditedWithTheOldTime => {
                let (s, ns) = mtime(world, name);
                let bytes: Vec<u8> = bytes.iter().map(|byte| byte ^ 1).collect();
                world.write(name, bytes).set_mtime(name, s, ns);
            }
            Appended => drop(world.write(name, [&bytes[..], b"more"].concat())),
            Deleted => drop(world.remove(name)),
            MadeAgain => drop(world.write(name, "newcomer")),
            Chmodded => drop(world.chmod(name, 0o751)),
            Xattr => return world.set_xattr(name, "user.foreign", "1"),
            EqualBytes => drop(world.write(name, bytes).chmod(name, mode)),
            Directory => drop(world.write(format!("{name}/in"), "newcomer")),
            Symlink => drop(world.symlink("/nowhere", name)),
            Fifo => drop(world.fifo(name)),
            MovedAway => std::fs::rename(world.path(name), world.path(format!("moved-{name}"))).expect("a move"),
        }
        true
    }

    fn takes_it_away(self) -> bool {
        matches!(self, Deleted | MovedAway)
    }

    fn changes_its_kind(self) -> bool {
        matches!(self, Directory | Symlink | Fifo)
    }
}

/// Content and mode of a file; `None` where nothing is.
type State = Option<(&'static str, u32)>;

/// One path of each sort of change, and one that nobody else touches: as they are before and after the session.
const PATHS: [(&str, State, State); 5] = [
    ("calm", Some(("old calm", 0o644)), Some(("new calm", 0o644))),
    ("created", None, Some(("new created", 0o644))),
    ("deleted", Some(("old deleted", 0o644)), None),
    ("meta", Some(("old meta", 0o644)), Some(("old meta", 0o600))),
    ("modified", Some(("old modified", 0o644)), Some(("new modified", 0o644))),
];

fn scene() -> (World, String) {
    scene_in(World::new())
}

fn scene_in(world: World) -> (World, String) {
    for (name, before, _) in PATHS {
        if let Some((content, _)) = before {
            world.write(name, content).set_mtime(name, 1_000_000_000, 7);
        }
    }
    // What force has found is written into the session's record, in which one path may have several lines.
    let id = held(&world, ["write modified at first", "write calm at first"]);
    world.stage(&id, ["write calm new calm", "write created new created", "write modified new modified"]);
    world.stage(&id, ["delete deleted", "chmod 0600 meta"]);
    (world, id)
}

/// Whether the deed makes what the verb does to a path a conflict. What is so already is none, but for a commit of an object: its record of
/// what was there before would be a lie.
fn conflicts(verb: Verb, deed: Deed, from: State, to: State) -> bool {
    match deed {
        EqualBytes if from.is_some() => false,
        EqualBytes => verb.name == COMMIT.name,
        _ => to.is_some() || !deed.takes_it_away(),
    }
}

/// Refused with every path, nothing changed; then by force: what is overwritten is kept.
fn cell(world: World, verb: Verb, deed: Deed) {
    let (world, id) = scene_in(world);
    verb.first.iter().for_each(|verb| drop(world.call([verb, &*id]).run().ok()));
    let ways =
        PATHS.map(|(name, before, after)| if verb.name == "rollback" { (name, after, before) } else { (name, before, after) });
    let mut foreign = Vec::new();
    let mut already = Vec::new();
    for (name, from, to) in ways.into_iter().filter(|(name, ..)| *name != "calm") {
        if !deed.to(&world, name, to.map_or("", |(content, _)| content)) {
            continue;
        }
        let list = if conflicts(verb, deed, from, to) { &mut foreign } else { &mut already };
        list.push(name);
    }
    let what = format!("{} after {deed:?}", verb.name);
    let before = world.manifest();
    let shown = || world.call(["show", &id, "--json"]).run().ok().stdout();
    let paths: Vec<String> = foreign.iter().map(|name| world.path(name).display().to_string()).collect();
    if !foreign.is_empty() {
        let as_it_was = shown();
        let dry = world.call([verb.name, &id, "--dry-run", "--json"]).run().with(3);
        let said = world.call([verb.name, &id, "--json"]).run().with(3);
        assert_eq!(dry.err, said.err, "{what}: --dry-run says what the real one does");
        assert_eq!(said.against(), paths, "{what}: every path is named, and no other");
        before.assert_same(&world.manifest(), &what);
        assert_eq!(shown(), as_it_was, "{what}: the session is as it was");
        world.assert_tidy(&what);
    }
    let what = format!("{what}, by force");
    let by_force = |names: &[&str]| world.call([&[verb.name, &id, "--force", "--json"], names].concat()).run();
    // A rollback would have to give back what was in a directory, which no record holds.
    if verb.name != "rollback" && deed == Directory {
        let said = by_force(&[]).with(3);
        assert_eq!(said.against(), paths, "{what}");
        assert!(said.stderr().contains("(move it away)"), "{what}: {said}");
        before.assert_same(&world.manifest(), &what);
        for name in &foreign {
            world.remove(name);
        }
    }
    let found = world.manifest();
    // The old metadata of an inode that is gone cannot be set on another object; where nothing is, it is left out.
    let meta = world.path("meta").display().to_string();
    if !world.exists("meta") {
        let said = by_force(&[]).with(4).json();
        assert!(said["skipped"][0]["path"] == meta.as_str() && said["skipped"][1].is_null(), "{what}: {said}");
    } else if deed.changes_its_kind() {
        assert_eq!(by_force(&[]).with(3).against(), [meta], "{what}");
        let others: Vec<&str> = ways.map(|(name, ..)| name).into_iter().filter(|name| *name != "meta").collect();
        let ended = if verb.name == "commit" { world.commit_half(&id, &others, true) } else { by_force(&others).status };
        assert_eq!(ended, 0, "{what}");
    } else {
        by_force(&[]).ok();
    }
    world.assert_tidy(&what);
    let shown = world.recant(&format!("show {id} --json")).ok().json()["session"].clone();
    assert!(world.status(&id) != verb.from || shown["in"] != shown["changes"], "{what}: it is done");
    for (name, _, to) in ways.into_iter().filter(|(name, ..)| *name != "meta" || foreign.is_empty()) {
        let now = world.exists(name).then(|| (world.read(name), mode(&world, name)));
        assert_eq!(now, to.map(|(content, mode)| (content.to_owned(), mode)), "{what}: {name}");
    }
    if verb.name != "commit" {
        for name in foreign.iter().filter(|name| **name != "meta") {
            let content = before.0.get(name.as_bytes()).map_or("", |row| &row.content);
            let kept = || world.call(["cat", &id, name, "--displaced"]).run().ok().out;
            if content.starts_with("file ") {
                assert_eq!(format!("file \"{}\"", kept().escape_ascii()), content, "{what}: what was at {name} is kept");
            } else if deed == Symlink {
                assert_eq!(kept(), b"/nowhere\n", "{what}: the link that was at {name} is kept");
            }
        }
    }
    // What has equal bytes is taken for what was put, or was there.
    if verb.name == "rollback" && deed != EqualBytes {
        let said = world.call(["redo", &id]).run();
        assert!(matches!(said.status, 0 | 4), "redo after {what}: {said}");
        let [found, now] = [found, world.manifest()].map(Manifest::without_directory_times);
        found.assert_same(&now, &format!("redo after {what}: {said}"));
        world.assert_tidy(&what);
    } else if verb.name != "rollback" {
        // What was so already is not to be given back, nor content by which a redo had set metadata alone.
        let is_gone = verb.name == "redo" && !found.0.contains_key(&b"deleted"[..]);
        let is_apart = |name: &str| already.contains(&name) || verb.name == "redo" && name == "meta" && foreign.contains(&name);
        let names: Vec<&str> =
            ways.map(|(name, ..)| name).into_iter().filter(|name| *name == "deleted" || !is_apart(name)).collect();
        world.call([&["rollback", &*id], &*names].concat()).run().with(if is_gone { 4 } else { 0 });
        let of_the_others = |mut manifest: Manifest| {
            manifest.0.retain(|path, _| !ways.iter().any(|(name, ..)| name.as_bytes() == path && is_apart(name)));
            manifest
        };
        of_the_others(found).assert_same(&of_the_others(world.manifest()), &format!("rollback after {what}"));
        world.assert_tidy(&what);
    }
}

#[test]
fn whatever_was_done_to_a_path_since_is_a_conflict_for_each_verb_and_kept_by_force() {
    for deed in DEEDS {
        [COMMIT, ROLLBACK, REDO].into_iter().for_each(|verb| cell(World::new(), verb, deed));
    }
    let Some(elsewhere) = elsewhere() else { return };
    for verb in [COMMIT, ROLLBACK, REDO] {
        let mut world = World::new();
        world.set("RECANT_STORE", elsewhere.path().join(verb.name));
        cell(world, verb, MadeAgain);
    }
}

/// The verb is refused for conflicts, and changes nothing.
#[track_caller]
fn refused(world: &World, words: &str) -> Said {
    let before = world.manifest();
    let said = world.recant(words).with(3);
    before.assert_same(&world.manifest(), &format!("{words}: {said}"));
    said
}

/// The same; gives the paths that stand against it, below the tree.
#[track_caller]
fn refused_for(world: &World, words: &str) -> Vec<String> {
    let tree = format!("{}/", world.tree().display());
    refused(world, &format!("{words} --json")).against().iter().map(|path| path.replacen(&tree, "", 1)).collect()
}

fn committed(world: &World, id: &str) {
    world.recant(&format!("commit {id}")).ok();
}

/// The paths that were left out, below the tree.
fn skipped(world: &World, said: &serde_json::Value) -> Vec<String> {
    let rows = said["skipped"].as_array().expect("a list").iter().map(|row| row["path"].as_str().expect("a path"));
    rows.map(|path| path.replacen(&format!("{}/", world.tree().display()), "", 1)).collect()
}

/// The redo of a rollback by force puts back what somebody had there, and that is a conflict again for the next rollback.
#[test]
fn what_a_forced_rollback_overwrote_comes_back_by_redo() {
    let (world, id) = scene();
    world.stage(&id, ["symlink target link"]);
    committed(&world, &id);
    for name in ["created", "modified"] {
        world.write(name, "edited since");
    }
    world.remove("link").symlink("theirs", "link").chmod("meta", 0o751).write("meta", "edited since");
    let timeless = |world: &World| world.manifest().without_directory_times();
    let before = timeless(&world);
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!((world.status(&id), world.exists("link")), ("rolled_back".into(), false));
    let rolled = timeless(&world);
    world.call(["redo", &id, "--dry-run"]).run().ok();
    rolled.assert_same(&timeless(&world), "a dry run");
    world.recant(&format!("redo {id}")).ok();
    before.assert_same(&timeless(&world), "what somebody had there");
    assert_eq!(world.status(&id), "committed");
    assert_eq!(refused_for(&world, &format!("rollback {id}")), ["created", "link", "meta", "modified"]);
    world.recant(&format!("rollback {id} --force")).ok();
    rolled.assert_same(&timeless(&world), "the second rollback");
    world.recant(&format!("redo {id}")).ok();
    before.assert_same(&timeless(&world), "the second redo");
}

/// Once something else was done to the session, only the content that was committed could come again: that is gone, and named.
#[test]
fn what_a_forced_rollback_overwrote_is_left_out_by_name_where_the_session_went_on() {
    let (world, id) = scene();
    committed(&world, &id);
    world.write("modified", "edited since");
    world.recant(&format!("rollback {id} --force")).ok();
    world.recant(&format!("redo {id} calm")).ok();
    let said = world.call(["redo", &id, "--json"]).run().with(4).json();
    assert_eq!(skipped(&world, &said), ["modified"]);
    assert_eq!(world.call(["cat", &id, "modified", "--displaced"]).run().ok().stdout(), "edited since");
}

#[test]
fn what_comes_where_nothing_was_left_to_delete_is_a_conflict_at_redo() {
    let (world, id) = scene();
    world.remove("deleted");
    let before = world.manifest();
    committed(&world, &id);
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "what somebody had deleted stays away");
    world.write("deleted", "a newcomer");
    let before = world.manifest();
    assert_eq!(refused_for(&world, &format!("redo {id}")), ["deleted"]);
    world.recant(&format!("redo {id} --force")).ok();
    assert!(!world.exists("deleted"));
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "rollback after a forced redo");
}

#[test]
fn metadata_that_force_overwrites_is_kept_in_the_session() {
    let (world, id) = scene();
    committed(&world, &id);
    world.write("meta", "edited").chmod("meta", 0o751);
    let xattr = world.set_xattr("meta", "user.foreign", "kept");
    world.set_mtime("meta", 1_234_567_890, 5);
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!((world.read("meta"), mode(&world, "meta")), ("edited".into(), 0o644), "the content is not touched");
    let directory = world.session(&id).join("displaced/2/manifest.jsonl");
    let kept = std::fs::read_to_string(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    assert!(kept.contains("\"0751\""), "the mode that was there: {kept}");
    assert!(!xattr || kept.contains("user.foreign"), "the xattr that was there: {kept}");
}

/// What somebody has put there by then was written when he wrote it.
#[test]
fn content_that_force_finds_keeps_its_time_where_metadata_alone_changes() {
    let world = World::new();
    world.write("f", "old").set_mtime("f", 1_000_000_000, 7);
    let id = held(&world, ["chmod 0600 f"]);
    let replace = |second: i64| {
        world.remove("f").write("f", "another").set_mtime("f", second, 5);
    };
    replace(1_234_567_890);
    refused(&world, &format!("commit {id}"));
    world.recant(&format!("commit {id} --force")).ok();
    assert_eq!((world.read("f"), mode(&world, "f"), mtime(&world, "f")), ("another".into(), 0o600, (1_234_567_890, 5)));
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((mode(&world, "f"), mtime(&world, "f")), (0o644, (1_234_567_890, 5)));
    committed(&world, &id);
    replace(1_345_678_901);
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(mtime(&world, "f"), (1_345_678_901, 5));
}

#[test]
fn a_time_that_is_what_changes_is_set_by_force_on_whatever_is_found() {
    let world = World::new();
    world.write("f", "old").set_mtime("f", 1_000_000_000, 7);
    let run = world.call(["run", "--", "sh", "-c", "touch -d @1111111111 f"]).run().ok();
    world.remove("f").write("f", "another").set_mtime("f", 1_234_567_890, 5);
    refused(&world, "commit last");
    world.recant("commit last --force").ok();
    assert_eq!((world.read("f"), mtime(&world, "f")), ("another".into(), (1_111_111_111, 0)), "{run}");
    world.recant("rollback last").ok();
    assert_eq!((world.read("f"), mtime(&world, "f")), ("another".into(), (1_234_567_890, 5)));
}

/// What nobody knew goes with no directory: one that is to be deleted stands, one that is to go at a rollback stays for it.
#[test]
fn a_name_that_somebody_put_into_a_directory_keeps_that_by_force_too() {
    let world = World::new();
    world.write("directory/a", "1").write("directory/sub/b", "2");
    let id = held(&world, ["delete directory"]);
    world.write("directory/sub/late", "newcomer").write("directory/late", "newcomer");
    for force in ["", " --force"] {
        let against = refused_for(&world, &format!("commit {id}{force}"));
        assert!(["directory/late", "directory/sub/late"].iter().all(|name| against.contains(&(*name).to_owned())), "{against:?}");
    }
    world.chmod("directory", 0o711);
    let said = refused(&world, &format!("commit {id} --force"));
    let found = "directory/late: it lies in a directory that would be removed";
    assert!(said.stderr().contains(found), "{said}");
    world.remove("directory/late").remove("directory/sub/late");
    let before = world.manifest();
    refused(&world, &format!("commit {id}"));
    world.recant(&format!("commit {id} --force")).ok();
    assert!(!world.exists("directory"));
    world.recant(&format!("rollback {id}")).ok();
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "rollback");

    for force in ["", " --force"] {
        let world = World::new();
        world.write("top", "0");
        let before = world.manifest();
        let id = held(&world, ["write new/deep/file 1", "write new/other 2"]);
        committed(&world, &id);
        world.write("new/deep/foreign", "theirs");
        if !force.is_empty() {
            world.chmod("new/deep", 0o711);
        }
        let dry = world.recant(&format!("rollback {id} --dry-run --json{force}")).with(4).json();
        let said = world.recant(&format!("rollback {id} --json{force}")).with(4).json();
        assert_eq!((&dry["skipped"], &dry["paths"]), (&said["skipped"], &said["paths"]));
        assert_eq!(skipped(&world, &said), ["new", "new/deep"]);
        assert!(said.to_string().contains("new/deep/foreign"), "{said}");
        assert!(said.to_string().contains("the directory is kept, because something else is in it"), "{said}");
        assert_eq!((world.status(&id), world.read("new/deep/foreign")), ("committed".into(), "theirs".into()));
        assert!(!world.exists("new/deep/file") && !world.exists("new/other"));
        // As long as it is there, nothing more is done.
        world.recant(&format!("rollback {id}{force}")).with(4);
        world.remove("new/deep/foreign");
        world.recant(&format!("rollback {id}{force}")).ok();
        assert_eq!(world.status(&id), "rolled_back");
        before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "the second rollback");
    }

    // Where it is to become something else it stands.
    let world = World::new();
    world.write("name", "a file at first");
    let id = held(&world, ["mkdir name"]);
    committed(&world, &id);
    world.write("name/foreign", "theirs");
    for force in ["", " --force"] {
        refused(&world, &format!("rollback {id}{force}"));
    }
}

#[test]
fn a_file_that_another_process_has_open_for_writing_is_a_conflict_at_commit_and_rollback() {
    let (world, id) = scene();
    for (verb, name) in [("commit", "modified"), ("rollback", "created")] {
        let open = std::fs::OpenOptions::new().append(true).open(world.path(name)).expect("a file to hold");
        assert_eq!(refused_for(&world, &format!("{verb} {id}")), [name]);
        close(open);
        world.recant(&format!("{verb} {id}")).ok();
    }
}

#[test]
fn what_a_writer_adds_after_a_forced_commit_is_found_at_rollback_and_given_back_by_force() {
    use std::io::Write;
    let (world, id) = scene();
    let mut open = std::fs::OpenOptions::new().append(true).open(world.path("modified")).expect("a file to hold");
    world.recant(&format!("commit {id} --force")).ok();
    open.write_all(b", and late bytes").expect("a write into what lies in the checkpoint now");
    drop(open);
    assert_eq!(refused_for(&world, &format!("rollback {id}")), ["modified"]);
    let said = world.recant(&format!("rollback {id} --force")).ok();
    assert!(said.stderr().contains("/modified: given back as it is now"), "it is named: {said}");
    assert_eq!((&*world.read("modified"), &*world.read("calm")), ("old modified, and late bytes", "old calm"));
}

#[test]
fn the_second_of_two_sessions_on_one_file_conflicts_and_the_first_goes_back_last() {
    let world = World::new();
    world.write("shared", "0");
    let before = world.manifest();
    let (a, b) = (held(&world, ["write shared a"]), held(&world, ["write shared b"]));
    committed(&world, &a);
    let said = refused(&world, &format!("commit {b}"));
    assert!(said.stderr().contains(&a), "the session that put it there is named:\n{said}");
    // Staged anew on what is there now, it goes.
    let b = held(&world, ["write shared on top"]);
    committed(&world, &b);
    assert_eq!(refused_for(&world, &format!("rollback {a}")), ["shared"]);
    let said = refused(&world, &format!("rollback {a} --json"));
    let remedy = said.json_err()["remedy"].clone();
    assert!(said.stderr().contains(&b) && remedy.as_str().is_some_and(|remedy| remedy.contains(&b)), "{said}");
    world.recant(&format!("rollback {b}")).ok();
    world.recant(&format!("rollback {a}")).ok();
    before.assert_same(&world.manifest(), "both taken back in turn");
}

#[test]
fn no_earlier_session_is_said_to_have_to_go_first() {
    let world = World::new();
    world.write("file", "0");
    let a = held(&world, ["delete file"]);
    committed(&world, &a);
    // Somebody made it again, a second session changed that, and somebody, no session, took it away.
    world.write("file", "1");
    let b = held(&world, ["write file 2"]);
    committed(&world, &b);
    world.remove("file");
    let said = refused(&world, &format!("rollback {b} --json"));
    assert!(!said.stderr().contains(&a), "{said}");
}

#[test]
fn a_path_that_was_refused_at_commit_is_never_touched_by_a_later_rollback() {
    let (world, id) = scene();
    world.write("created", "newcomer").write("modified", "edited");
    refused(&world, &format!("commit {id}"));
    assert_eq!(world.commit_half(&id, &["calm", "deleted"], false), 0);
    assert_eq!(world.status(&id), "committed");
    for force in ["", " --force"] {
        world.recant(&format!("rollback {id}{force}")).ok();
        assert_eq!((world.read("created"), world.read("modified")), ("newcomer".into(), "edited".into()));
        assert_eq!((world.read("calm"), world.read("deleted")), ("old calm".into(), "old deleted".into()));
    }
}

/// The calls that change something, as strace names them.
const CHANGING: &str = "write,pwrite64,writev,copy_file_range,sendfile,ftruncate,fallocate,rename,renameat,renameat2,link,linkat,\
    symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,utimensat,\
    setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,fsync,fdatasync,syncfs,mount,umount2,openat,openat2,open,creat";

/// The calls of a dry run that change something, by strace(1) where it is there.
fn calls_that_change(world: &World, verb: &str, id: &str) -> Vec<String> {
    let log = world.root().join("strace");
    let args = ["-f", "-qq", "-y", "-e", &format!("trace={CHANGING}"), "-o"].map(String::from).into_iter();
    let rest = [log.display().to_string(), common::recant().into(), verb.into(), id.into(), "--dry-run".into()];
    world.program("strace", args.chain(rest)).run().ok();
    let calls = std::fs::read_to_string(&log).expect("strace's log");
    assert!(calls.contains("openat"), "strace saw something:\n{calls}");
    calls.lines().filter(|line| is_change(line)).map(String::from).collect()
}

/// Opening for reading is none, nor is writing to standard output and error, nor making a lock.
fn is_change(line: &str) -> bool {
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    if call.starts_with("open") {
        return ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| call.contains(flag)) && !call.contains("lock\"");
    }
    let report = ["write(1<", "write(2<", "writev(1<", "writev(2<"].iter().any(|start| call.starts_with(start));
    let is_call = call.split_once('(').is_some_and(|(name, _)| CHANGING.split([',', ' ']).any(|known| known == name));
    is_call && !report
}

#[test]
fn a_dry_run_says_what_is_done_then_and_makes_no_call_that_changes_anything_but_opening_locks() {
    let (world, id) = scene();
    world.stage(&id, ["write new/deep/file 1"]);
    let nothing = Vec::<String>::new();
    for verb in ["commit", "rollback", "redo"] {
        let (tree, store) = (world.manifest(), common::manifest(&world.store()));
        let dry = world.call([verb, &id, "--dry-run", "--json"]).run().ok().json();
        let steps = steps_of(|| world.call([verb, &*id, "--dry-run"]));
        assert_eq!(steps.into_iter().filter(|step| !step.ends_with("/lock")).collect::<Vec<_>>(), nothing, "{verb}");
        if has("strace") {
            assert_eq!(calls_that_change(&world, verb, &id), nothing, "{verb}");
        }
        tree.assert_same(&world.manifest(), &format!("a dry run of {verb}"));
        store.assert_same(&common::manifest(&world.store()), &format!("the store after a dry run of {verb}"));
        let said = world.call([verb, &id, "--json"]).run().ok().json();
        for field in ["paths", "skipped", "notes", "kept_bytes", "status", "generation"] {
            assert_eq!(dry[field], said[field], "{verb}: {field}");
        }
        assert_eq!((&dry["dry_run"], &said["dry_run"]), (&true.into(), &false.into()));
    }
}

#[test]
fn a_path_whose_directory_became_a_link_can_still_be_named_as_the_session_has_it() {
    let world = World::new();
    world.write("dir/file", "old").write("other", "old");
    let id = held(&world, ["symlink nowhere dir", "write other new"]);
    committed(&world, &id);
    assert_eq!(world.recant(&format!("cat {id} dir/file --before")).ok().out, b"old");
    world.recant(&format!("rollback {id} dir/file")).ok();
    assert_eq!((world.read("dir/file"), world.read("other")), ("old".into(), "new".into()));
}

#[test]
fn what_somebody_put_back_or_made_again_himself_stands_in_the_way_of_no_later_rollback_or_redo() {
    let world = World::new();
    world.write("file", "old").symlink("old", "link").mkdir("directory").write("moded", "x").set_mtime("moded", 1_000_000_000, 7);
    let lines =
        ["write file new", "write made new", "write new/in new", "symlink new link", "delete directory", "chmod 0600 moded"];
    let id = held(&world, lines);
    committed(&world, &id);
    for round in 0..2 {
        // By hand what the rollback would do to what has no content, then the rollback; then the same with the redo.
        world.remove("link").symlink("old", "link").mkdir("directory").chmod("moded", 0o644);
        world.call(["rollback", &id]).cwd("/").run().ok();
        assert_eq!((world.read("file"), world.status(&id)), ("old".into(), "rolled_back".into()), "{round}");
        assert_eq!((mode(&world, "moded"), mtime(&world, "moded")), (0o644, (1_000_000_000, 7)), "{round}");
        world.write("made", "new").write("new/in", "new").chmod("moded", 0o600);
        world.remove("link").symlink("new", "link").remove("directory");
        world.recant(&format!("redo {id}")).ok();
        world.recant("checkpoint verify").ok();
        assert_eq!((world.read("file"), world.status(&id)), ("new".into(), "committed".into()), "{round}");
        assert_eq!((mode(&world, "moded"), mtime(&world, "moded")), (0o600, (1_000_000_000, 7)), "{round}");
    }
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((&*world.read("file"), world.exists("made"), mode(&world, "moded")), ("old", false, 0o644));
    world.recant(&format!("redo {id}")).ok();
    assert_eq!(mode(&world, "moded"), 0o600);
}

/// What `--force` found is a `before` once it is committed, and not a moment sooner: taken back, it conflicts as it did.
#[test]
fn a_forced_commit_that_was_undone_leaves_every_conflict_as_it_was() {
    if !common::can_run() {
        return common::skip("a forced commit that was undone: no run here");
    }
    for command in ["echo bbbbbbb > f", "rm f", "chmod 600 f"] {
        let row = Sweep {
            name: &format!("commit --force of {command}"),
            scene: &|| {
                let world = World::new();
                world.write("f", "aaaa").chmod("f", 0o644).set_mtime("f", 1_000_000_000, 7);
                world.call(["run", "--", "sh", "-c", command]).run().ok();
                // As long as what is expected there.
                world.write("f", "cccc");
                Some((world.manifest(), world))
            },
            verb: &|(_, world)| world.call(["commit", "last", "--force"]),
            order: "fail:N:5",
        };
        let tally = row.run(|(theirs, world), said, what| {
            if said.status != 1 {
                assert!([0, 7].contains(&said.status), "sealed, it is not undone any more: {what}");
                return Came::Used("sealed");
            }
            theirs.assert_same(&world.manifest(), what);
            refused(world, "commit last");
            Came::Unchanged("undone")
        });
        assert!(tally.steps > 10, "{command}: {} steps", tally.steps);
        tally.saw("undone", 10).saw("sealed", 1);
    }
}

#[test]
fn a_named_path_brings_no_metadata_of_the_directories_above_it_along() {
    let world = World::new();
    world.write("k/a", "old").chmod("k", 0o755);
    let before = world.manifest().without_directory_times();
    let id = held(&world, ["write k/a new", "write made/b new", "chmod 0777 k"]);
    assert_eq!(world.commit_half(&id, &["k/a", "made/b"], false), 0);
    assert_eq!((mode(&world, "k"), world.read("k/a"), world.read("made/b")), (0o755, "new".into(), "new".into()));
    world.recant(&format!("commit {id}")).ok();
    let said = world.recant(&format!("rollback {id} k/a"));
    assert_eq!((mode(&world, "k"), world.read("k/a")), (0o777, "old".into()), "{said}");
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest().without_directory_times(), "all of it");
}

#[test]
fn force_is_named_only_where_it_goes_on_and_what_it_overwrote_is_found() {
    let (world, id) = scene();
    let force = "--force goes on, and keeps a copy of what it overwrites";
    world.write("modified", "theirs");
    assert!(world.recant(&format!("commit {id}")).with(3).stderr().contains(force));
    // Metadata cannot be set on something of another kind, nor does a file take the place of a full directory.
    for name in ["meta", "modified"] {
        let (world, id) = scene();
        world.remove(name).write(format!("{name}/in"), "theirs");
        for more in ["", " --force"] {
            let said = refused(&world, &format!("commit {id}{more}"));
            let text = said.stderr();
            assert!(text.contains("--conflicts shows both sides") && !text.contains("--force"), "{name}{more}: {said}");
        }
    }
    // A directory that was overwritten is found in the store.
    let (world, id) = scene();
    committed(&world, &id);
    world.remove("modified").write("modified/in", "theirs");
    world.recant(&format!("rollback {id} --force")).ok();
    let said = world.call(["cat", &id, "modified", "--displaced"]).run().with(1);
    let place = format!("it is kept as {}/displaced/2/", world.session(&id).display());
    assert!(said.stderr().contains(&place), "{said}");

    // What came to nothing is taken back by nothing.
    if common::can_run() {
        let world = World::new();
        world.mkdir("cache").mkdir("project").config(&format!("[commit]\nminor = ['{}/cache']\n", world.tree().display()));
        let run = world.call(["run", "--", "sh", "-c", "echo mine > ../cache/new"]);
        run.cwd(world.path("project")).run().ok();
        world.write("cache/new", "theirs");
        let said = world.call(["commit", "last"]).cwd(world.path("project")).run().with(4);
        assert!(said.stderr().contains("0 of 1 change committed, 1 still held (skipped)"), "{said}");
        assert!(!said.stderr().contains("rollback"), "{said}");
    }
}

#[test]
fn a_dry_run_by_force_marks_what_it_would_overwrite() {
    let world = World::new();
    world.write("a", "a").write("b", "b");
    let id = held(&world, ["write a held", "write b held"]);
    world.write("b", "theirs");
    assert_snapshot!(world.recant(&format!("commit {id} --force --dry-run")).ok(), @"
    status 0
    --- stdout
    modified  a
    modified  b, over what was changed since
    --- stderr
    recant: 1 path changed since would be overwritten; what is there is kept
    recant: session <id1~>: 2 changes would be committed
    ");
    let json = world.recant(&format!("commit {id} --force --dry-run --json")).ok().json();
    assert_eq!((&json["paths"][0]["over"], &json["paths"][1]["over"]), (&serde_json::Value::Null, &true.into()), "{json}");
    world.recant(&format!("commit {id} --force")).ok();
    world.write("a", "theirs, too");
    let said = world.recant(&format!("rollback {id} --force --dry-run")).ok();
    assert!(said.stdout().contains("restored  a, over what was changed since\nrestored  b\n"), "{said}");
}

#[test]
fn an_object_in_the_place_of_a_directory_is_to_be_moved_away_and_gives_way_by_force_to_one_of_the_session_s() {
    for in_the_way in ["echo theirs > d", "ln -s elsewhere d"] {
        // The session's own directory.
        let world = World::new();
        let id = held(&world, ["write d/e/f new", "write d/f new"]);
        world.program("sh", ["-c", in_the_way]).run().ok();
        let said = refused(&world, &format!("commit {id}"));
        let what = if in_the_way.starts_with("ln") { "symlink" } else { "file" };
        let kind = if what == "symlink" { ": a symlink" } else { "" };
        assert_eq!(
            said.masked_err(),
            format!(
                "d: created since it was staged, at <time>{kind}\n\
                 d/e: its directory is missing, as a {what} is at /world/tree/d (move it away)\n\
                 d/f: its directory is missing, as a {what} is at /world/tree/d (move it away)\n\
                 recant: cannot commit <id1>: 3 conflicts\n        nothing was changed\n        \
                 recant diff <id1~> --conflicts shows both sides; --force goes on, and keeps a copy of what it overwrites\n"
            )
        );
        world.recant(&format!("commit {id} --force")).ok();
        assert_eq!((&*world.read("d/e/f"), &*world.read("d/f")), ("new", "new"));
        world.recant(&format!("rollback {id}")).ok();
        assert!(world.path("d").symlink_metadata().is_ok_and(|found| !found.is_dir()), "{in_the_way}");

        // One that was there before.
        let world = World::new();
        world.write("d/e/old", "old");
        let id = held(&world, ["write d/e/old new", "write d/e/new new"]);
        world.program("sh", ["-c", &format!("rm -r d; {in_the_way}")]).run().ok();
        let (file, tree) = ("d/e/new: its directory is missing, as a", "/world/tree");
        for force in ["", " --force"] {
            let said = refused(&world, &format!("commit {id}{force}"));
            let found = format!("{file} {what} is at {tree}/d (move it away, and make the directory)\n");
            assert!(said.masked_err().contains(&found), "{force}: {said}");
            let remedy = format!("move {tree}/d away, and the directory back; or mkdir -p {tree}/d/e, then --force does what");
            assert!(said.masked_err().contains(&remedy), "{force}: {said}");
        }
        world.program("sh", ["-c", "mv d away && mkdir -p d/e"]).run().ok();
        world.recant(&format!("commit {id} --force")).ok();
    }
}

/// What a commit finds by force becomes the `before` only where that can be true together with what is committed above and below it.
#[test]
fn a_forced_commit_beside_what_is_in_leaves_the_session_readable() {
    let committed_in_part = |stage: &[&str], first: &[&str]| {
        let world = World::new();
        world.write("other", "old").write("d/x", "x").write("d/y", "y");
        let id = held(&world, ["write other new"]);
        world.stage(&id, stage.iter().copied());
        for words in first {
            match words.strip_prefix("commit ID ") {
                Some(path) => assert_eq!(world.commit_half(&id, &[path], false), 0),
                None => drop(world.recant(&words.replace("ID", &id)).ok()),
            }
        }
        (world, id)
    };
    // The directory that was to go has gone without recant, with what was in it but for one that recant has.
    let (world, id) = committed_in_part(&["delete d"], &["commit ID d/x"]);
    world.remove("d");
    committed(&world, &id);
    assert_eq!(world.status(&id), "committed");
    let said = refused(&world, &format!("rollback {id}"));
    assert!(said.stderr().contains("d/x: its directory is missing"), "{said}");
    world.recant(&format!("rollback {id} other")).ok();
    world.mkdir("d");
    world.recant(&format!("rollback {id} d/x")).ok();
    assert_eq!((&*world.read("d/x"), &*world.read("other")), ("x", "old"));
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((world.status(&id), world.read("d/x")), ("rolled_back".into(), "x".into()));

    // A directory took the place of a file, and is in; what was to lie in it is out, and somebody else's lies there.
    let (world, id) = committed_in_part(&["mkdir d/x", "chmod 0755 d/y", "mkdir d/x/sub"], &["commit ID", "rollback ID d/x/sub"]);
    world.write("d/x/sub", "theirs");
    let said = world.recant(&format!("commit {id} --force")).ok();
    assert!(said.stderr().contains("d/x/sub --displaced"), "{said}");
    world.recant(&format!("show {id}")).ok();
    world.recant("checkpoint verify").ok();
    assert_eq!(world.call(["cat", &id, "d/x/sub", "--displaced"]).run().ok().stdout(), "theirs");
    let said = world.call(["session", "export", "--checkpoint", &id]).run().with(1);
    assert!(said.stderr().contains("d/x/sub: ") && said.stderr().contains("recant rollback"), "no import would take it: {said}");
    let said = refused(&world, &format!("rollback {id}"));
    assert!(said.stderr().contains("d/x/sub: it lies in a directory that would be removed"), "{said}");
    world.recant(&format!("rollback {id} other d/x/sub")).ok();
    assert_eq!((&*world.read("d/x/sub"), &*world.read("other")), ("theirs", "old"));
    world.remove("d/x/sub");
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!(world.read("d/x"), "x");
    // What was kept beside is back, and nothing of anybody's is lost with the session.
    let pruned = world.recant("prune --sessions --keep 0 --dry-run").ok();
    assert!(pruned.stdout().contains(&id), "{pruned}");
}

/// With the directory what lies in it would go, and with that what is as it is to be: the tree would lack what is said to be back.
#[test]
fn what_came_back_in_a_directory_that_somebody_made_goes_with_it_by_no_force() {
    let world = World::new();
    world.write("d/a", "1").write("d/in/b", "2");
    let before = world.manifest().without_directory_times();
    let shell = |command: &str| world.program("sh", ["-c", command]).cwd(world.path("")).run().ok();
    shell("cp -a d ../saved");
    let id = held(&world, ["delete d"]);
    committed(&world, &id);
    for theirs in [
        "cp -a ../saved d",
        "mkdir d; cp -a ../saved/in d/in",
        "mkdir -p d/in; echo theirs > d/in/b",
        "mkdir d; echo theirs > d/a",
    ] {
        shell(&format!("{theirs}; echo theirs > d/theirs; chmod 0711 d"));
        let said = refused(&world, &format!("rollback {id} --force"));
        assert!(said.stderr().contains("move that directory away") && said.stderr().contains("nothing was changed"), "{said}");
        shell("mv d ../theirs; rm -r ../theirs");
    }
    // A directory that stays, and only gets its metadata, takes nothing along.
    world.write("e/f", "1");
    let calm = world.manifest().without_directory_times();
    let other = held(&world, ["write e/f 2", "chmod 0750 e"]);
    shell("chmod 0711 e");
    world.recant(&format!("commit {other} --force")).ok();
    assert_eq!(world.read("e/f"), "2");
    shell("chmod 0711 e; echo theirs > e/f");
    world.recant(&format!("rollback {other} --force")).ok();
    shell("chmod 0755 e");
    calm.assert_same(&world.manifest().without_directory_times(), "by force, in a directory that stays");
    shell("rm -r e");
    // What is in nobody's way goes whole.
    shell("mkdir d; echo theirs > d/theirs; chmod 0711 d");
    world.recant(&format!("rollback {id} --force")).ok();
    before.assert_same(&world.manifest().without_directory_times(), "by force");
}

#[test]
fn what_is_gone_is_no_obstacle_to_force_but_for_metadata_in_a_directory_that_is_gone() {
    let world = World::new();
    world.write("file", "old").write("c/k", "k");
    let (id, meta) = (held(&world, ["write file/in new"]), held(&world, ["chmod 0600 c/k"]));
    world.remove("file").remove("c");
    refused(&world, &format!("commit {id}"));
    world.recant(&format!("commit {id} --force")).ok();
    assert_eq!(world.read("file/in"), "new");
    // A dry run sees it, too.
    for options in ["--force --dry-run", "--force"] {
        let said = refused(&world, &format!("commit {meta} {options}"));
        assert!(said.stderr().contains("make it first"), "{options}: {said}");
    }
}

#[test]
fn content_that_somebody_took_away_himself_is_left_out_by_name_and_never_made_empty() {
    let world = World::new();
    world.write("calm", "old").write("deleted", "old").write("meta", "old").chmod("meta", 0o644);
    let id = held(&world, ["write calm new", "write made new", "delete deleted", "chmod 0600 meta"]);
    committed(&world, &id);
    world.remove("made").chmod("meta", 0o644);
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!(world.status(&id), "rolled_back");
    let said = world.recant(&format!("redo {id}")).with(4);
    assert!(said.stdout().contains("made: what was committed here is lost"), "{said}");
    assert_eq!((world.read("calm"), world.exists("made"), mode(&world, "meta")), ("new".into(), false, 0o600));

    world.recant(&format!("rollback {id}")).ok();
    world.remove("deleted");
    world.recant(&format!("redo {id}")).with(4);
    let said = world.recant(&format!("rollback {id}")).with(4);
    assert!(said.stdout().contains("deleted: not taken back: it was already gone"), "{said}");
    assert_eq!((world.read("calm"), world.exists("deleted"), mode(&world, "meta")), ("old".into(), false, 0o644));
}

#[test]
fn diff_conflicts_shows_what_is_held_against_what_is_on_the_tree_now() {
    let world = World::new();
    world.write("f", "a\nb\nc\n").write("mode", "x").symlink("here", "link").write("gone", "1\n").write("becomes", "1\n");
    world.write("directory/in", "1\n").write("calm", "1\n");
    let id = held(&world, ["write f a\nB\nc\n", "write gone held\n", "write becomes held\n", "write calm 2\n"]);
    world.stage(&id, ["chmod 0600 mode", "symlink there link", "delete directory"]);
    assert_snapshot!(world.call(["diff", &id, "--conflicts"]).run(), @r"
    status 0
    --- stderr
    recant: session <id1>: no conflicts
    ");
    world.write("f", "a\nb\nc\nd\n").remove("gone").remove("becomes").mkdir("becomes").write("directory/new", "theirs\n");
    world.remove("link").symlink("elsewhere", "link").chmod("mode", 0o755);
    let refused = world.call(["commit", &id]).run().with(3);
    assert!(refused.masked_err().contains("recant diff <id1~> --conflicts shows both sides"), "{refused}");
    assert_snapshot!(world.call(["diff", &id, "--conflicts"]).run(), @r"
    status 0
    --- stdout
    # /world/tree/becomes: replaced since it was staged by a directory, at <time> (move it away)
    # /world/tree/becomes: on the tree now: directory, mode 0755
    diff --git a/world/tree/becomes b/world/tree/becomes
    new file mode 100644
    --- /dev/null	(on the tree now)
    +++ b/world/tree/becomes	(held in <id1~>)
    @@ -0,0 +1 @@
    +held
    # /world/tree/directory/new: it lies in a directory that would be removed
    diff --git a/world/tree/directory/new b/world/tree/directory/new
    deleted file mode 100644
    --- a/world/tree/directory/new	(on the tree now)
    +++ /dev/null	(held in <id1~>)
    @@ -1 +0,0 @@
    -theirs
    # /world/tree/f: changed since it was staged, at <time>
    diff --git a/world/tree/f b/world/tree/f
    --- a/world/tree/f	(on the tree now)
    +++ b/world/tree/f	(held in <id1~>)
    @@ -1,4 +1,3 @@
     a
    -b
    +B
     c
    -d
    # /world/tree/gone: deleted since it was staged
    diff --git a/world/tree/gone b/world/tree/gone
    new file mode 100644
    --- /dev/null	(on the tree now)
    +++ b/world/tree/gone	(held in <id1~>)
    @@ -0,0 +1 @@
    +held
    # /world/tree/link: changed since it was staged, at <time>: it leads to elsewhere
    diff --git a/world/tree/link b/world/tree/link
    --- a/world/tree/link	(on the tree now)
    +++ b/world/tree/link	(held in <id1~>)
    @@ -1 +1 @@
    -elsewhere
    \ No newline at end of file
    +there
    \ No newline at end of file
    # /world/tree/mode: its mode was changed since it was staged: 0755, was 0644
    # /world/tree/mode: mode 0755 -> 0600
    diff --git a/world/tree/mode b/world/tree/mode
    old mode 100755
    new mode 100644
    --- stderr
    recant: 6 conflicts for commit: - is on the tree now, + is held
    ");
    let names = world.call(["diff", &id, "--conflicts", "--name-only", "f", "directory", "mode"]).run().ok();
    assert_eq!(names.masked_out(), "/world/tree/directory/new\n/world/tree/f\n/world/tree/mode\n");
    world.call(["diff", &id, "--conflicts", "nowhere"]).run().with(1);
    // What it says is what the commit says, path for path.
    let told = world.call(["diff", &id, "--conflicts", "--json"]).run().ok().json();
    let said = world.call(["commit", &id, "--json"]).run().with(3).json_err();
    let paths = |rows: &serde_json::Value| rows.as_array().unwrap().iter().map(|row| row["path"].clone()).collect::<Vec<_>>();
    assert_eq!(paths(&told["conflicts"]), paths(&said["paths"]));
    // The patch leads from what is there now to what is held.
    let patch = world.call(["diff", &id, "--conflicts", "f"]).run().ok().out;
    world.program("git", ["apply", "-p1"]).cwd("/").stdin(patch).run().ok();
    assert_eq!(world.read("f"), "a\nB\nc\n");
}

#[test]
fn diff_conflicts_of_what_is_committed_shows_what_a_rollback_would_put_back() {
    let world = World::new();
    world.write("f", "one\ntwo\n").write("g", "1\n").write("out", "1\n").write("closed", "1\n");
    let id = held(&world, ["write f one\n2\n", "write g 2\n", "write out 2\n"]);
    assert_eq!(world.commit_half(&id, &["f", "g"], false), 0);
    world.write("f", "one\n2\nmine\n").write("out", "theirs\n");
    assert!(world.call(["rollback", &id]).run().with(3).stderr().contains("--conflicts shows both sides"));
    assert_snapshot!(world.call(["diff", &id, "--conflicts"]).run(), @"
    status 0
    --- stdout
    # /world/tree/f: changed since the commit, at <time>
    diff --git a/world/tree/f b/world/tree/f
    --- a/world/tree/f	(on the tree now)
    +++ b/world/tree/f	(before the commit of <id1~>)
    @@ -1,3 +1,2 @@
     one
    -2
    -mine
    +two
    # /world/tree/out: changed since it was staged, at <time>
    diff --git a/world/tree/out b/world/tree/out
    --- a/world/tree/out	(on the tree now)
    +++ b/world/tree/out	(held in <id1~>)
    @@ -1 +1 @@
    -theirs
    +2
    --- stderr
    recant: 1 conflict for commit: - is on the tree now, + is held
    recant: 1 conflict for rollback: - is on the tree now, + would be put back
    ");
    let told = world.call(["diff", &id, "--conflicts", "--json"]).run().ok().json();
    let verbs: Vec<_> = told["conflicts"].as_array().unwrap().iter().map(|row| row["verb"].clone()).collect();
    assert_eq!(verbs, ["rollback", "commit"]);
}

#[test]
fn that_the_project_is_gone_is_said_and_force_does_what_can_be_done() {
    let world = World::new();
    world.write("p/Makefile", "").write("p/a", "old").write("p/mode", "x").write("p/sub/in", "old").write("p/b", "old");
    let stage = || {
        let id = world.call(["session", "new"]).cwd(world.path("p")).run().ok().id();
        world.stage(&id, ["write p/a new", "write p/sub/in new", "write p/fresh new", "chmod 0600 p/mode", "delete p/b"]);
        id
    };
    let (committed, held) = (stage(), stage());
    world.recant(&format!("commit {committed}")).ok();
    std::fs::rename(world.path("p"), world.path("q")).expect("a project that moves");
    let p = world.path("p").display().to_string();
    for (verb, id) in [("commit", &held), ("rollback", &committed)] {
        for force in ["", " --force"] {
            let said = world.recant(&format!("{verb} {id}{force}")).with(3);
            assert!(said.stderr().contains(&format!("conflicts; {p} was moved or deleted")), "{verb}{force}: {said}");
            let way = format!("move it back; or mkdir -p {p}, then --force does what is possible");
            assert!(said.stderr().contains(&way), "{verb}{force}: {said}");
            assert!(!world.exists("p"), "{verb}{force}");
        }
    }
    world.mkdir("p");
    let said = world.recant(&format!("rollback {committed} --force")).with(4);
    let left =
        |said: &common::Said, name: &str| said.stdout().lines().any(|line| line.starts_with(&format!("skipped   p/{name}: ")));
    assert_eq!((world.read("p/a"), world.read("p/b")), ("old".into(), "old".into()), "{said}");
    assert!(left(&said, "mode") && left(&said, "sub/in"), "{said}");
    assert!(!world.exists("p/mode") && !world.exists("p/sub"), "{said}");
    // Of a commit, too: what was left out stays held.
    world.remove("p").mkdir("p");
    let said = world.recant(&format!("commit {held} --force")).with(4);
    assert_eq!((world.read("p/a"), world.read("p/fresh")), ("new".into(), "new".into()), "{said}");
    assert!(left(&said, "mode") && left(&said, "sub/in"), "{said}");
    world.write("p/mode", "x").write("p/sub/in", "old");
    world.recant(&format!("commit {held} --force")).ok();
    assert_eq!(world.read("p/sub/in"), "new");
}

#[test]
fn a_file_whose_directory_became_a_link_is_not_said_to_be_deleted() {
    let world = World::new();
    world.write("d/f", "old");
    let id = held(&world, ["write d/f new"]);
    world.program("sh", ["-c", "mv d elsewhere; ln -s elsewhere d"]).run().ok();
    let said = world.recant(&format!("commit {id}")).with(3);
    assert!(
        said.masked_err().contains("d/f: /world/tree/d above it is a symlink now, and recant does not follow symlinks"),
        "{said}"
    );
    assert_eq!(world.read("elsewhere/f"), "old");
}
