//! Conflicts: whatever somebody else did to a path since is refused by name and left alone, and `--force` keeps it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::common::{self, World, close};
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

fn is_there(world: &World, name: &str) -> bool {
    world.path(name).symlink_metadata().is_ok()
}

fn mtime(world: &World, name: &str) -> (i64, i64) {
    use std::os::unix::fs::MetadataExt;
    let meta = world.path(name).symlink_metadata().expect("a file");
    (meta.mtime(), meta.mtime_nsec())
}

fn mode(world: &World, name: &str) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    world.path(name).symlink_metadata().expect("a file").permissions().mode() & 0o7777
}

impl Deed {
    /// Does it. `back` is what stood at the path before the last operation, for a path where nothing is now. Whether
    /// anything could be done.
    fn to(self, world: &World, name: &str, back: &str) -> bool {
        let there = is_there(world, name);
        let clear = || {
            if there {
                world.remove(name);
            }
        };
        match self {
            EditedWithTheOldTime | Appended | Deleted | Chmodded | Xattr | MovedAway if !there => return false,
            EditedWithTheOldTime => {
                let (s, ns) = mtime(world, name);
                let bytes: Vec<u8> = world.bytes(name).iter().map(|byte| byte ^ 1).collect();
                world.write(name, bytes).set_mtime(name, s, ns);
            }
            Appended => drop(world.write(name, [&world.bytes(name)[..], b"more"].concat())),
            Deleted => drop(world.remove(name)),
            MadeAgain => {
                clear();
                world.write(name, "newcomer");
            }
            Chmodded => drop(world.chmod(name, 0o751)),
            Xattr => return world.set_xattr(name, "user.foreign", "1"),
            EqualBytes => {
                let (bytes, mode) = if there { (world.bytes(name), mode(world, name)) } else { (back.into(), 0o644) };
                clear();
                world.write(name, bytes).chmod(name, mode);
            }
            Directory => {
                clear();
                world.write(format!("{name}/in"), "newcomer");
            }
            Symlink => {
                clear();
                world.symlink("/nowhere", name);
            }
            Fifo => {
                clear();
                world.fifo(name);
            }
            MovedAway => {
                let to = format!("moved-{name}");
                std::fs::rename(world.path(name), world.path(to)).expect("a move");
            }
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

const NAMES: [&str; 5] = ["calm", "created", "deleted", "meta", "modified"];

/// One path of each sort of change, and one that nobody else touches.
fn scene() -> (World, String) {
    let world = World::new();
    for name in ["calm", "deleted", "meta", "modified"] {
        world.write(name, format!("old {name}")).set_mtime(name, 1_000_000_000, 7);
    }
    let id = world.begin();
    for name in ["calm", "created", "modified"] {
        world.stage_write(&id, name, format!("new {name}"));
    }
    world.recant(&format!("session delete {id} deleted")).ok();
    world.recant(&format!("session chmod {id} 0600 meta")).ok();
    (world, id)
}

/// What the paths are, by name, when `verb` is to be carried out: whether something is there, and is wanted there.
fn ways(verb: &str) -> [(&'static str, bool, bool); 5] {
    let ways = [
        ("calm", true, true),
        ("created", false, true),
        ("deleted", true, false),
        ("meta", true, true),
        ("modified", true, true),
    ];
    if verb == "rollback" { ways.map(|(name, from, to)| (name, to, from)) } else { ways }
}

/// Whether the deed makes what `verb` does to the path a conflict.
fn conflicts(deed: Deed, from: bool, to: bool) -> bool {
    match (from, to) {
        // It is as wanted already where nothing is wanted and nothing is there, or the very same was made again.
        (true, false) => !deed.takes_it_away() && deed != EqualBytes,
        (false, true) => deed != EqualBytes,
        _ => deed != EqualBytes,
    }
}

/// For every deed: refused with every path, nothing changed; then by force: what is overwritten is kept.
fn matrix(verb: &str, ready: &dyn Fn(&World, &str)) {
    for deed in DEEDS {
        let (world, id) = scene();
        ready(&world, &id);
        let status = world.status(&id);
        let mut against = Vec::new();
        let mut foreign = Vec::new();
        for (name, from, to) in ways(verb) {
            let before_content = if verb == "rollback" { format!("old {name}") } else { format!("new {name}") };
            if name == "calm" || !deed.to(&world, name, &before_content) {
                continue;
            }
            let is_file = is_there(&world, name) && world.path(name).symlink_metadata().expect("it").is_file();
            if conflicts(deed, from, to) {
                against.push(name);
                foreign.push((name, is_file.then(|| world.bytes(name))));
            }
        }
        let what = format!("{verb} after {deed:?}");
        let before = world.manifest();
        let shown = world.call(["show", &id, "--json"]).run().ok().stdout();
        if !against.is_empty() {
            let dry = world.call([verb, &id, "--dry-run", "--json"]).run().with(3);
            let said = world.call([verb, &id, "--json"]).run().with(3);
            assert_eq!(dry.err, said.err, "{what}: --dry-run says what the real one does");
            let paths: Vec<String> = against.iter().map(|name| world.path(name).display().to_string()).collect();
            assert_eq!(said.against(), paths, "{what}: every path is named, and no other");
            before.assert_same(&world.manifest(), &what);
            assert_eq!(world.call(["show", &id, "--json"]).run().ok().stdout(), shown, "{what}: the session is as it was");
            world.assert_tidy(&what);
        }
        by_force(&world, &id, verb, deed, &foreign, &what);
        assert_ne!(world.status(&id), status, "{what}: by force it is done");
    }
}

fn by_force(world: &World, id: &str, verb: &str, deed: Deed, foreign: &[(&str, Option<Vec<u8>>)], what: &str) {
    // The old metadata of an inode that is gone cannot be set on another object.
    let beyond = foreign.iter().any(|(name, _)| *name == "meta") && (deed.takes_it_away() || deed.changes_its_kind());
    // A rollback would have to give back what was in a directory, which no record holds.
    if verb == "redo" && deed == Directory {
        let before = world.manifest();
        let said = world.call([verb, id, "--force", "--json"]).run().with(3);
        let paths: Vec<String> = foreign.iter().map(|(name, _)| world.path(name).display().to_string()).collect();
        assert_eq!(said.against(), paths, "{what}, by force");
        assert!(said.stderr().contains("a directory (move it away)"), "{what}: {said}");
        before.assert_same(&world.manifest(), what);
        for (name, _) in foreign {
            world.remove(name);
        }
    }
    let mut args = vec![verb, id, "--force"];
    if beyond {
        if !is_there(world, "meta") {
            // Where nothing is there it is left out, and the rest is done.
            args.push("--json");
            let said = world.call(&args).run().with(4).json();
            let meta = world.path("meta").display().to_string();
            assert!(said["skipped"][0]["path"] == meta.as_str() && said["skipped"][1].is_null(), "{what}, by force: {said}");
        } else {
            let said = world.call([verb, id, "--force", "--json"]).run().with(3);
            assert_eq!(said.against(), [world.path("meta").display().to_string()], "{what}, by force");
            args.extend(NAMES.iter().filter(|name| **name != "meta"));
            world.call(&args).run().ok();
        }
    } else {
        world.call(&args).run().ok();
    }
    world.assert_tidy(what);
    let wanted = |name: &str, to: bool| match (name, to) {
        (_, false) => None,
        ("meta", _) => Some(("old meta".to_owned(), if verb == "rollback" { 0o644 } else { 0o600 })),
        (name, _) => Some((format!("{} {name}", if verb == "rollback" { "old" } else { "new" }), 0o644)),
    };
    for (name, _, to) in ways(verb) {
        if name == "meta" && (beyond || !foreign.is_empty()) {
            continue;
        }
        let now = is_there(world, name).then(|| (world.read(name), mode(world, name)));
        assert_eq!(now, wanted(name, to), "{what}, by force: {name}");
    }
    for (name, bytes) in foreign.iter().filter(|(name, _)| *name != "meta") {
        let Some(bytes) = bytes else {
            if deed == Symlink {
                let kept = world.call(["cat", id, name, "--displaced"]).run().ok();
                assert_eq!(kept.out, b"/nowhere\n", "{what}, by force: the link that was at {name} is kept");
            }
            continue;
        };
        let kept = world.call(["cat", id, name, "--displaced"]).run().ok();
        assert_eq!(&kept.out, bytes, "{what}, by force: what was at {name} is kept");
    }
}

fn committed(world: &World, id: &str) {
    world.recant(&format!("commit {id}")).ok();
}

fn rolled_back(world: &World, id: &str) {
    committed(world, id);
    world.recant(&format!("rollback {id}")).ok();
}

#[test]
fn whatever_was_done_to_a_path_since_the_commit_is_a_conflict_at_rollback_and_kept_by_force() {
    matrix("rollback", &committed);
}

#[test]
fn whatever_was_done_to_a_path_since_the_rollback_is_a_conflict_at_redo_and_kept_by_force() {
    matrix("redo", &rolled_back);
}

#[test]
fn what_was_edited_and_taken_back_by_force_is_left_out_of_the_redo_by_name() {
    let (world, id) = scene();
    committed(&world, &id);
    for name in ["created", "modified"] {
        world.write(name, "edited since");
    }
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(world.status(&id), "rolled_back");
    let before = world.manifest();
    let dry = world.call(["redo", &id, "--dry-run", "--json"]).run().with(4).json();
    before.assert_same(&world.manifest(), "a dry run");
    let said = world.call(["redo", &id, "--json"]).run().with(4).json();
    assert_eq!(dry["skipped"], said["skipped"]);
    let left: Vec<&str> =
        said["skipped"].as_array().expect("a list").iter().map(|row| row["path"].as_str().expect("one")).collect();
    let want = ["created", "modified"].map(|name| world.path(name).display().to_string());
    assert_eq!(left, want);
    assert_eq!(world.status(&id), "partial");
    assert_eq!((world.read("modified"), is_there(&world, "created")), ("old modified".into(), false));
    assert_eq!(world.read("calm"), "new calm");
    // And back again: only what was put is taken back.
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "the second rollback");
}

#[test]
fn what_force_overwrote_at_a_redo_is_what_the_next_rollback_gives_back() {
    let (world, id) = scene();
    rolled_back(&world, &id);
    world.write("modified", "edited").write("created", "newcomer").chmod("created", 0o600);
    world.remove("deleted").symlink("elsewhere", "deleted");
    let before = world.manifest();
    world.recant(&format!("redo {id}")).with(3);
    world.recant(&format!("redo {id} --force")).ok();
    assert_eq!((world.read("modified"), world.read("created")), ("new modified".into(), "new created".into()));
    assert!(!is_there(&world, "deleted"));
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "rollback after a forced redo");
}

#[test]
fn what_comes_where_force_found_nothing_to_delete_is_a_conflict_at_redo() {
    let (world, id) = scene();
    world.remove("deleted");
    world.recant(&format!("commit {id}")).with(3);
    world.recant(&format!("commit {id} --force")).ok();
    world.recant(&format!("rollback {id}")).ok();
    world.write("deleted", "a newcomer");
    let before = world.manifest();
    let said = world.call(["redo", &id, "--json"]).run().with(3);
    assert_eq!(said.against(), [world.path("deleted").display().to_string()]);
    before.assert_same(&world.manifest(), "a redo that is refused");
    world.recant(&format!("redo {id} --force")).ok();
    assert!(!is_there(&world, "deleted"));
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
    let mtime = || world.path("f").metadata().map(|meta| (meta.mtime(), meta.mtime_nsec())).expect("a file");
    world.write("f", "old").set_mtime("f", 1_000_000_000, 7);
    let id = world.begin();
    world.recant(&format!("session chmod {id} 0600 f")).ok();
    let replace = |second: i64| {
        world.remove("f").write("f", "another").set_mtime("f", second, 5);
    };
    replace(1_234_567_890);
    world.recant(&format!("commit {id}")).with(3);
    world.recant(&format!("commit {id} --force")).ok();
    assert_eq!((world.read("f"), mode(&world, "f"), mtime()), ("another".into(), 0o600, (1_234_567_890, 5)));
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((mode(&world, "f"), mtime()), (0o644, (1_234_567_890, 5)));
    world.recant(&format!("commit {id}")).ok();
    replace(1_345_678_901);
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(mtime(), (1_345_678_901, 5));
}

#[test]
fn a_time_that_is_what_changes_is_set_by_force_on_whatever_is_found() {
    let world = World::new();
    let mtime = || world.path("f").metadata().map(|meta| (meta.mtime(), meta.mtime_nsec())).expect("a file");
    world.write("f", "old").set_mtime("f", 1_000_000_000, 7);
    let touch = "touch -d @1111111111 f";
    let run = world.call(["run", "--", "sh", "-c", touch]).run().ok();
    let id = world.recant("list --jsonl").ok().json_lines()[0]["id"].as_str().expect("an id").to_owned();
    world.remove("f").write("f", "another").set_mtime("f", 1_234_567_890, 5);
    world.recant(&format!("commit {id}")).with(3);
    world.recant(&format!("commit {id} --force")).ok();
    assert_eq!((world.read("f"), mtime()), ("another".into(), (1_111_111_111, 0)), "{run}");
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((world.read("f"), mtime()), ("another".into(), (1_234_567_890, 5)));
}

/// Commit: the session is staged, then somebody else does something, then the commit.
#[test]
fn whatever_was_done_to_a_path_since_it_was_staged_is_a_conflict_at_commit() {
    for deed in DEEDS {
        let (world, id) = scene();
        let mut against = Vec::new();
        for (name, from, _) in ways("commit") {
            // "already so" is a conflict at commit: its `before` would be a lie.
            if name != "calm" && deed.to(&world, name, &format!("new {name}")) && (deed != EqualBytes || !from) {
                against.push(world.path(name).display().to_string());
            }
        }
        let what = format!("commit after {deed:?}");
        let before = world.manifest();
        if against.is_empty() {
            world.recant(&format!("commit {id}")).ok();
            continue;
        }
        let dry = world.call(["commit", &id, "--dry-run", "--json"]).run().with(3);
        let said = world.call(["commit", &id, "--json"]).run().with(3);
        assert_eq!(dry.err, said.err, "{what}");
        assert_eq!(said.against(), against, "{what}");
        before.assert_same(&world.manifest(), &what);
        assert_eq!(world.status(&id), "pending", "{what}");
        world.assert_tidy(&what);
        // What can go on by force goes on, and the rollback gives back exactly what was found.
        let able: Vec<&str> = NAMES
            .into_iter()
            .filter(|name| !(deed == Directory && *name != "calm"))
            .filter(|name| !(*name == "meta" && (deed.takes_it_away() || deed.changes_its_kind())))
            .collect();
        world.call(["commit", &id, "--force"].into_iter().chain(able.iter().copied())).run().ok();
        for name in able {
            let now = is_there(&world, name).then(|| world.path(name).is_file() && !world.path(name).is_symlink());
            assert_eq!(now, (name != "deleted").then_some(true), "{what}, by force: {name}");
        }
        world.recant(&format!("rollback {id}")).ok();
        before.assert_same(&world.manifest(), &format!("rollback of a forced {what}"));
        world.assert_tidy(&what);
    }
}

#[test]
fn a_name_in_a_deleted_directory_that_was_not_there_is_a_conflict() {
    let world = World::new();
    world.write("directory/a", "1").write("directory/sub/b", "2");
    let id = world.begin();
    world.recant(&format!("session delete {id} directory -r")).ok();
    world.write("directory/sub/late", "newcomer").write("directory/late", "newcomer");
    let before = world.manifest();
    let said = world.call(["commit", &id, "--json"]).run().with(3);
    let want = ["directory/late", "directory/sub/late"].map(|name| world.path(name).display().to_string());
    assert!(want.iter().all(|path| said.against().contains(path)), "{said}");
    before.assert_same(&world.manifest(), "a refused commit");
    // By force too: what nobody knew is not deleted with the rest.
    world.recant(&format!("commit {id} --force")).with(3);
    before.assert_same(&world.manifest(), "a refused commit by force");
    world.remove("directory/late").remove("directory/sub/late");
    let before = world.manifest();
    world.recant(&format!("commit {id}")).ok();
    assert!(!is_there(&world, "directory"));
    world.recant(&format!("rollback {id}")).ok();
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "rollback");
}

#[test]
fn a_file_that_another_process_has_open_for_writing_is_a_conflict_at_commit_and_rollback() {
    let (world, id) = scene();
    let before = world.manifest();
    let hold = |name: &str| std::fs::OpenOptions::new().append(true).open(world.path(name)).expect("a file to hold");
    let held = hold("modified");
    let said = world.call(["commit", &id, "--json"]).run().with(3);
    assert_eq!(said.against(), [world.path("modified").display().to_string()]);
    before.assert_same(&world.manifest(), "a refused commit");
    close(held);
    committed(&world, &id);
    let before = world.manifest();
    let held = hold("created");
    let said = world.call(["rollback", &id, "--json"]).run().with(3);
    assert_eq!(said.against(), [world.path("created").display().to_string()]);
    before.assert_same(&world.manifest(), "a refused rollback");
    close(held);
    world.recant(&format!("rollback {id}")).ok();
}

#[test]
fn what_a_writer_adds_after_a_forced_commit_is_found_at_rollback_and_given_back_by_force() {
    use std::io::Write;
    let (world, id) = scene();
    let mut held = std::fs::OpenOptions::new().append(true).open(world.path("modified")).expect("a file to hold");
    world.recant(&format!("commit {id} --force")).ok();
    held.write_all(b", and late bytes").expect("a write into what lies in the checkpoint now");
    drop(held);
    let before = world.manifest();
    let said = world.call(["rollback", &id, "--json"]).run().with(3);
    assert_eq!(said.against(), [world.path("modified").display().to_string()]);
    before.assert_same(&world.manifest(), "a refused rollback");
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(world.read("modified"), "old modified, and late bytes");
}

#[test]
fn the_second_of_two_sessions_on_one_file_conflicts_and_the_first_goes_back_last() {
    let world = World::new();
    world.write("shared", "0");
    let before = world.manifest();
    let (a, b) = (world.begin(), world.begin());
    for id in [&a, &b] {
        world.stage_write(id, "shared", format!("by {id}"));
    }
    committed(&world, &a);
    let said = world.recant(&format!("commit {b}")).with(3);
    assert!(said.stderr().contains(&a), "the session that put it there is named:\n{said}");
    // Staged anew on what is there now, it goes.
    let b = world.begin();
    world.stage_write(&b, "shared", "on top");
    committed(&world, &b);
    let after = world.manifest();
    let said = world.call(["rollback", &a, "--json"]).run().with(3);
    assert_eq!(said.against(), [world.path("shared").display().to_string()]);
    let error = said.stderr();
    assert!(error.contains(&b) && said.json_err()["remedy"].as_str().is_some_and(|remedy| remedy.contains(&b)), "{error}");
    after.assert_same(&world.manifest(), "a refused rollback");
    world.recant(&format!("rollback {b}")).ok();
    world.recant(&format!("rollback {a}")).ok();
    before.assert_same(&world.manifest(), "both taken back in turn");
}

#[test]
fn no_earlier_session_is_said_to_have_to_go_first() {
    let world = World::new();
    world.write("file", "0");
    let a = world.begin();
    world.recant(&format!("session delete {a} file")).ok();
    committed(&world, &a);
    // Somebody made it again, a second session changed that, and somebody, no session, took it away.
    world.write("file", "1");
    let b = world.begin();
    world.stage_write(&b, "file", "2");
    committed(&world, &b);
    world.remove("file");
    let said = world.call(["rollback", &b, "--json"]).run().with(3);
    assert!(!said.stderr().contains(&a), "{said}");
}

#[test]
fn a_path_that_was_refused_at_commit_is_never_touched_by_a_later_rollback() {
    let (world, id) = scene();
    world.write("created", "newcomer").write("modified", "edited");
    world.recant(&format!("commit {id}")).with(3);
    world.recant(&format!("commit {id} calm deleted")).ok();
    assert_eq!(world.status(&id), "partial");
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((world.read("created"), world.read("modified")), ("newcomer".into(), "edited".into()));
    assert_eq!((world.read("calm"), world.read("deleted")), ("old calm".into(), "old deleted".into()));
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!((world.read("created"), world.read("modified")), ("newcomer".into(), "edited".into()));
}

#[test]
fn a_foreign_file_keeps_the_directory_that_commit_made_and_the_next_rollback_ends_it() {
    let world = World::new();
    world.write("top", "0");
    let before = world.manifest();
    let id = world.begin();
    world.stage_write(&id, "new/deep/file", "1").stage_write(&id, "new/other", "2");
    committed(&world, &id);
    world.write("new/deep/foreign", "theirs");
    let dry = world.call(["rollback", &id, "--dry-run", "--json"]).run().with(4).json();
    let said = world.call(["rollback", &id, "--json"]).run().with(4).json();
    assert_eq!((&dry["skipped"], &dry["paths"]), (&said["skipped"], &said["paths"]));
    let left: Vec<&str> =
        said["skipped"].as_array().expect("a list").iter().map(|row| row["path"].as_str().expect("one")).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(said.to_string().contains("new/deep/foreign"), "{said}");
    assert_eq!(world.status(&id), "partial");
    assert_eq!(world.read("new/deep/foreign"), "theirs");
    assert!(!is_there(&world, "new/deep/file") && !is_there(&world, "new/other"));
    // As long as it is there, nothing more is done.
    world.recant(&format!("rollback {id}")).with(4);
    world.remove("new/deep/foreign");
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!(world.status(&id), "rolled_back");
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "the second rollback");
}

#[test]
fn a_foreign_file_where_a_directory_is_to_become_something_else_is_a_conflict() {
    let world = World::new();
    world.write("name", "a file at first");
    let id = world.begin();
    world.recant(&format!("session delete {id} name")).ok();
    world.recant(&format!("session mkdir {id} name")).ok();
    committed(&world, &id);
    world.write("name/foreign", "theirs");
    let before = world.manifest();
    for force in ["", " --force"] {
        world.recant(&format!("rollback {id}{force}")).with(3);
        before.assert_same(&world.manifest(), "a refused rollback");
    }
}

#[test]
fn a_dry_run_says_what_is_done_then_and_changes_nothing() {
    let (world, id) = scene();
    world.stage_write(&id, "new/deep/file", "1");
    for verb in ["commit", "rollback", "redo"] {
        let (tree, store) = (world.manifest(), common::manifest(&world.store()));
        let dry = world.call([verb, &id, "--dry-run", "--json"]).run().ok().json();
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
fn a_dry_run_passes_no_step_that_changes_anything_but_opening_locks() {
    let (world, id) = scene();
    for verb in ["commit", "rollback", "redo"] {
        let log = world.root().join(format!("steps-{verb}"));
        world.call([verb, &id, "--dry-run"]).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let steps = std::fs::read_to_string(&log).unwrap_or_default();
        let changing: Vec<&str> = steps.lines().filter(|line| !line.ends_with("/lock")).collect();
        assert_eq!(changing, Vec::<&str>::new(), "{verb}");
        world.recant(&format!("{verb} {id}")).ok();
    }
}

/// The calls that change something, as strace names them.
const CHANGING: &str = "write,pwrite64,writev,copy_file_range,sendfile,ftruncate,fallocate,rename,renameat,renameat2,link,linkat,\
    symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,utimensat,\
    setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,fsync,fdatasync,syncfs,mount,umount2,openat,openat2,open,creat";

#[test]
fn a_dry_run_makes_no_system_call_that_changes_anything_but_opening_locks() {
    let there = std::process::Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: a dry run under strace: strace is not installed");
        return;
    }
    let (world, id) = scene();
    for verb in ["commit", "rollback", "redo"] {
        let log = world.root().join("strace");
        let args = ["-f", "-qq", "-y", "-e", &format!("trace={CHANGING}"), "-o"].map(String::from).into_iter();
        let rest = [log.display().to_string(), common::recant().into(), verb.into(), id.clone(), "--dry-run".into()];
        world.program("strace", args.chain(rest)).run().ok();
        let calls = std::fs::read_to_string(&log).expect("strace's log");
        assert!(calls.contains("openat"), "strace saw something:\n{calls}");
        let changing: Vec<&str> = calls.lines().filter(|line| is_change(line)).collect();
        assert_eq!(changing, Vec::<&str>::new(), "{verb}");
        world.recant(&format!("{verb} {id}")).ok();
    }
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
fn a_path_whose_directory_became_a_link_can_still_be_named_as_the_session_has_it() {
    let world = World::new();
    world.write("dir/file", "old").write("other", "old");
    let id = world.begin();
    world.recant(&format!("session symlink {id} -r nowhere dir")).ok();
    world.stage_write(&id, "other", "new");
    committed(&world, &id);
    assert_eq!(world.recant(&format!("cat {id} dir/file --before")).ok().out, b"old");
    world.recant(&format!("rollback {id} dir/file")).ok();
    assert_eq!((world.read("dir/file"), world.read("other")), ("old".into(), "new".into()));
}

#[test]
fn what_somebody_put_back_or_made_again_himself_stands_in_the_way_of_no_later_rollback_or_redo() {
    let world = World::new();
    world.write("file", "old").symlink("old", "link").mkdir("directory");
    let id = world.begin();
    for name in ["file", "made", "new/in"] {
        world.stage_write(&id, name, "new");
    }
    world.recant(&format!("session symlink {id} new link")).ok();
    world.recant(&format!("session delete {id} directory")).ok();
    committed(&world, &id);
    for round in 0..2 {
        // By hand what the rollback would do to what has no content, then the rollback; then the same with the redo.
        world.remove("link").symlink("old", "link").mkdir("directory");
        world.recant(&format!("rollback {id}")).ok();
        assert_eq!((world.read("file"), world.status(&id)), ("old".into(), "rolled_back".into()), "{round}");
        world.write("made", "new").write("new/in", "new");
        world.remove("link").symlink("new", "link").remove("directory");
        world.recant(&format!("redo {id}")).ok();
        assert_eq!((world.read("file"), world.status(&id)), ("new".into(), "committed".into()), "{round}");
    }
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((world.read("file"), is_there(&world, "made")), ("old".into(), false));
    world.recant(&format!("redo {id}")).ok();
}

#[test]
fn from_another_directory_the_rollback_is_the_same() {
    let (world, id) = scene();
    let before = world.manifest();
    committed(&world, &id);
    world.call(["rollback", &id]).cwd(Path::new("/")).run().ok();
    before.without_directory_times().assert_same(&world.manifest().without_directory_times(), "rollback from /");
    world.call(["rollback", &id]).cwd(Path::new("/")).run().ok();
    assert_eq!(world.status(&id), "rolled_back");
}

#[test]
fn a_mode_that_is_set_already_at_redo_goes_off_and_on_again() {
    let world = World::new();
    world.write("f", "content").chmod("f", 0o644).set_mtime("f", 1_000_000_000, 7);
    let before = world.manifest();
    let id = world.begin();
    world.recant(&format!("session chmod {id} 0600 f")).ok();
    world.recant(&format!("commit {id}")).ok();
    world.recant(&format!("rollback {id}")).ok();
    world.chmod("f", 0o600);
    let after = world.manifest();
    world.recant(&format!("redo {id}")).ok();
    after.assert_same(&world.manifest(), "it was so already");
    world.recant("checkpoint verify").ok();
    world.recant(&format!("rollback {id}")).ok();
    before.assert_same(&world.manifest(), "taken back");
    world.recant(&format!("redo {id}")).ok();
    after.assert_same(&world.manifest(), "made again");
}

/// What `--force` found is a `before` once it is committed, and not a moment sooner: taken back, it conflicts as it did.
#[test]
fn a_forced_commit_that_was_undone_leaves_every_conflict_as_it_was() {
    if !common::can_run() {
        return common::skip("a forced commit that was undone: no run here");
    }
    for command in ["echo bbbbbbb > f", "rm f", "chmod 600 f"] {
        let world = World::new();
        world.write("f", "aaaa").chmod("f", 0o644).set_mtime("f", 1_000_000_000, 7);
        world.call(["run", "--", "sh", "-c", command]).run().ok();
        // As long as what is expected there.
        world.write("f", "cccc");
        let theirs = world.manifest();
        world.recant("commit last").with(3);
        for n in common::steps() {
            let said = world.call(["commit", "last", "--force"]).env("RECANT_STEPS", format!("fail:{n}:5")).run();
            if said.status != 1 {
                assert!([0, 7].contains(&said.status), "sealed, it is not undone any more: {said}");
                break;
            }
            let what = format!("{command}, failed at step {n}: {said}");
            theirs.assert_same(&world.manifest(), &what);
            let again = world.recant("commit last");
            assert_eq!(again.status, 3, "{what}\n{again}");
            theirs.assert_same(&world.manifest(), &what);
        }
    }
}

#[test]
fn a_named_path_brings_no_metadata_of_the_directories_above_it_along() {
    let world = World::new();
    world.write("k/a", "old").chmod("k", 0o755);
    let before = world.manifest().without_directory_times();
    let id = world.begin();
    world.stage_write(&id, "k/a", "new").stage_write(&id, "made/b", "new");
    world.recant(&format!("session chmod {id} 0777 k")).ok();
    world.recant(&format!("commit {id} k/a made/b")).ok();
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
    for (name, verb) in [("meta", "commit"), ("modified", "commit")] {
        let (world, id) = scene();
        world.remove(name).write(format!("{name}/in"), "theirs");
        for more in ["", " --force"] {
            let said = world.recant(&format!("{verb} {id}{more}")).with(3);
            assert!(
                said.stderr().contains("--conflicts shows both sides") && !said.stderr().contains("--force"),
                "{name}{more}: {said}"
            );
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
        assert!(
            said.stderr().contains("0 of 1 change committed, 1 still held (skipped)") && !said.stderr().contains("rollback"),
            "{said}"
        );
    }
}

#[test]
fn metadata_of_what_went_with_its_directory_is_a_conflict_that_a_dry_run_sees_too() {
    let world = World::new();
    world.write("c/k", "k");
    let id = world.begin();
    world.recant(&format!("session chmod {id} 0600 c/k")).ok();
    world.remove("c");
    for options in ["--force --dry-run", "--force"] {
        let said = world.recant(&format!("commit {id} {options}")).with(3);
        assert!(said.stderr().contains("make the directory first"), "{options}: {said}");
    }
}

#[test]
fn a_dry_run_by_force_marks_what_it_would_overwrite() {
    let world = World::new();
    world.write("a", "a").write("b", "b");
    let id = world.begin();
    world.stage_write(&id, "a", "held").stage_write(&id, "b", "held");
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
        let id = world.begin();
        world.stage_write(&id, "d/e/f", "new").stage_write(&id, "d/f", "new");
        world.program("sh", ["-c", in_the_way]).run().ok();
        let said = world.recant(&format!("commit {id}")).with(3);
        let what = if in_the_way.starts_with("ln") { "symlink" } else { "file" };
        assert_eq!(
            said.masked_err(),
            format!(
                "d: conflict: expected nothing, found a {what}\n\
                 d/e: conflict: expected its directory, found a {what} at /world/tree/d (move it away)\n\
                 d/f: conflict: expected its directory, found a {what} at /world/tree/d (move it away)\n\
                 recant: cannot commit <id1>: 3 conflicts\n        nothing was changed\n        \
                 recant diff <id1~> --conflicts shows both sides; --merge goes on where texts merge; --force goes on, and keeps a copy of what it overwrites\n"
            )
        );
        world.recant(&format!("commit {id} --force")).ok();
        assert_eq!((&*world.read("d/e/f"), &*world.read("d/f")), ("new", "new"));
        world.recant(&format!("rollback {id}")).ok();
        assert!(world.path("d").symlink_metadata().is_ok_and(|found| !found.is_dir()), "{in_the_way}");

        // One that was there before.
        let world = World::new();
        world.write("d/e/old", "old");
        let id = world.begin();
        world.stage_write(&id, "d/e/old", "new").stage_write(&id, "d/e/new", "new");
        world.program("sh", ["-c", &format!("rm -r d; {in_the_way}")]).run().ok();
        let (file, tree) = ("d/e/new: conflict: expected its directory, found a", "/world/tree");
        for force in ["", " --force"] {
            let said = world.recant(&format!("commit {id}{force}")).with(3);
            let found = format!("{file} {what} at {tree}/d (move it away, and make the directory)\n");
            assert!(said.masked_err().contains(&found), "{force}: {said}");
            let remedy = format!("move {tree}/d away, and move it back; or mkdir -p {tree}/d/e, then --force does what can");
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
        let id = world.begin();
        world.stage_write(&id, "other", "new");
        for words in stage {
            world.recant(&format!("session {}", words.replace("ID", &id))).ok();
        }
        for words in first {
            world.recant(&words.replace("ID", &id)).ok();
        }
        (world, id)
    };
    // The directory that was to go has gone without recant, with what was in it but for one that recant has.
    let (world, id) = committed_in_part(&["delete ID d -r"], &["commit ID d/x"]);
    world.remove("d");
    world.recant(&format!("commit {id}")).with(3);
    world.recant(&format!("commit {id} --force")).ok();
    assert_eq!(world.status(&id), "committed");
    let said = world.recant(&format!("rollback {id}")).with(3);
    assert!(said.stderr().contains("d/x: conflict: expected its directory"), "{said}");
    world.recant(&format!("rollback {id} other")).ok();
    world.mkdir("d");
    world.recant(&format!("rollback {id} d/x")).ok();
    assert_eq!((&*world.read("d/x"), &*world.read("other")), ("x", "old"));
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((world.status(&id), world.read("d/x")), ("rolled_back".into(), "x".into()));

    // A directory took the place of a file, and is in; what was to lie in it is out, and somebody else's lies there.
    let (world, id) = committed_in_part(
        &["delete ID d/x", "mkdir ID d/x", "chmod ID 0755 d/y", "mkdir ID d/x/sub"],
        &["commit ID", "rollback ID d/x/sub"],
    );
    world.write("d/x/sub", "theirs");
    let said = world.recant(&format!("commit {id} --force")).ok();
    assert!(said.stderr().contains("d/x/sub --displaced"), "{said}");
    world.recant(&format!("show {id}")).ok();
    world.recant("checkpoint verify").ok();
    assert_eq!(world.call(["cat", &id, "d/x/sub", "--displaced"]).run().ok().stdout(), "theirs");
    let said = world.call(["session", "export", "--checkpoint", &id]).run().with(1);
    assert!(said.stderr().contains("d/x/sub: ") && said.stderr().contains("recant rollback"), "no import would take it: {said}");
    let said = world.recant(&format!("rollback {id}")).with(3);
    assert!(said.stderr().contains("d/x/sub: conflict: expected nothing"), "{said}");
    world.recant(&format!("rollback {id} other d/x/sub")).ok();
    assert_eq!((&*world.read("d/x/sub"), &*world.read("other")), ("theirs", "old"));
    world.remove("d/x/sub");
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!(world.read("d/x"), "x");
    // What was kept beside is back, and nothing of anybody's is lost with the session.
    let pruned = world.recant("session prune --keep 0 --dry-run").ok();
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
    let id = world.begin();
    world.recant(&format!("session delete {id} d -r")).ok();
    world.recant(&format!("commit {id}")).ok();
    for theirs in [
        "cp -a ../saved d",
        "mkdir d; cp -a ../saved/in d/in",
        "mkdir -p d/in; echo theirs > d/in/b",
        "mkdir d; echo theirs > d/a",
    ] {
        shell(&format!("{theirs}; echo theirs > d/theirs; chmod 0711 d"));
        let found = world.manifest();
        let said = world.recant(&format!("rollback {id} --force")).with(3);
        assert!(said.stderr().contains("move that directory away") && said.stderr().contains("nothing was changed"), "{said}");
        found.assert_same(&world.manifest(), theirs);
        shell("mv d ../theirs; rm -r ../theirs");
    }
    // A directory that stays, and only gets its metadata, takes nothing along.
    world.write("e/f", "1");
    let calm = world.manifest().without_directory_times();
    let other = world.begin();
    world.stage_write(&other, "e/f", "2");
    world.recant(&format!("session chmod {other} 0750 e")).ok();
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

/// By force a directory goes though somebody has changed it, and never with what they have put into it.
#[test]
fn a_directory_that_somebody_changed_goes_by_no_force_while_something_of_theirs_is_in_it() {
    let world = World::new();
    world.write("d/a", "old");
    let id = world.begin();
    world.recant(&format!("session delete {id} d -r")).ok();
    world.write("d/theirs", "theirs").chmod("d", 0o711);
    let found = world.manifest();
    world.recant(&format!("commit {id}")).with(3);
    let said = world.recant(&format!("commit {id} --force")).with(3);
    assert!(
        said.stderr().contains("/d/theirs: conflict: expected nothing, found something in a directory that is to go"),
        "{said}"
    );
    found.assert_same(&world.manifest(), "refused");
    world.remove("d/theirs");
    world.recant(&format!("commit {id} --force")).ok();
    assert!(!is_there(&world, "d"));

    // One that recant has made stays with it.
    let id = world.begin();
    world.stage_write(&id, "new/in", "new");
    committed(&world, &id);
    world.write("new/theirs", "theirs").chmod("new", 0o711);
    let said = world.recant(&format!("rollback {id} --force")).with(4);
    assert!(said.stdout().contains("the directory is kept, as something else is in it"), "{said}");
    assert_eq!((world.read("new/theirs"), is_there(&world, "new/in")), ("theirs".into(), false));
}

#[test]
fn what_is_gone_is_no_obstacle_to_force_whatever_is_to_come_in_its_place() {
    let world = World::new();
    world.write("file", "old");
    let id = world.begin();
    world.recant(&format!("session delete {id} file")).ok();
    world.stage_write(&id, "file/in", "new");
    world.remove("file");
    world.recant(&format!("commit {id}")).with(3);
    world.recant(&format!("commit {id} --force")).ok();
    assert_eq!(world.read("file/in"), "new");
}

/// What somebody has taken away himself is nowhere any more: it is named as lost, and nothing empty comes in its place.
#[test]
fn content_that_somebody_took_away_himself_is_left_out_by_name_and_never_made_empty() {
    let world = World::new();
    world.write("calm", "old").write("deleted", "old").write("meta", "old").chmod("meta", 0o644);
    let id = world.begin();
    world.stage_write(&id, "calm", "new").stage_write(&id, "made", "new");
    world.recant(&format!("session delete {id} deleted")).ok();
    world.recant(&format!("session chmod {id} 0600 meta")).ok();
    committed(&world, &id);
    world.remove("made").chmod("meta", 0o644);
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!(world.status(&id), "rolled_back");
    let said = world.recant(&format!("redo {id}")).with(4);
    assert!(said.stdout().contains("made: what was committed here is lost"), "{said}");
    assert_eq!((world.read("calm"), is_there(&world, "made"), mode(&world, "meta")), ("new".into(), false, 0o600));

    world.recant(&format!("rollback {id}")).ok();
    world.remove("deleted");
    world.recant(&format!("redo {id}")).with(4);
    let said = world.recant(&format!("rollback {id}")).with(4);
    assert!(said.stdout().contains("deleted: not taken back: it was already gone"), "{said}");
    assert_eq!((world.read("calm"), is_there(&world, "deleted"), mode(&world, "meta")), ("old".into(), false, 0o644));
}

/// What is lost of a session is content alone: all else can be made again from what is recorded.
#[test]
fn a_link_that_gave_way_by_force_is_made_again_by_a_redo() {
    let world = World::new();
    world.write("calm", "old");
    let id = world.begin();
    world.stage_write(&id, "calm", "new");
    world.recant(&format!("session symlink {id} target link")).ok();
    committed(&world, &id);
    world.remove("link").symlink("theirs", "link");
    world.recant(&format!("rollback {id} --force")).ok();
    assert!(!is_there(&world, "link"));
    world.recant(&format!("redo {id}")).ok();
    assert_eq!(std::fs::read_link(world.path("link")).expect("a link"), Path::new("target"));
    assert_eq!(world.status(&id), "committed");
}

#[test]
fn by_force_between_two_file_systems_what_is_found_is_kept() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        return common::skip("two file systems: no /dev/shm");
    }
    let (mut world, elsewhere) = (World::on(shm), tempfile::tempdir().expect("a directory of another file system"));
    world.set("RECANT_STORE", elsewhere.path().join("store"));
    let id = world.edited("f");
    committed(&world, &id);
    world.write("f", "theirs");
    world.recant(&format!("rollback {id}")).with(3);
    world.recant(&format!("rollback {id} --force")).ok();
    assert_eq!(world.read("f"), "old");
    assert_eq!(world.call(["cat", &id, "f", "--displaced"]).run().ok().stdout(), "theirs");
}

/// What force has found is written into the session's record, in which one path may have had several lines by then.
#[test]
fn a_forced_commit_of_what_was_staged_several_times_leaves_the_session_readable() {
    let world = World::new();
    world.write("f", "old").write("calm", "old");
    let id = world.begin();
    for content in ["one", "two", "three"] {
        world.stage_write(&id, "f", content).stage_write(&id, "calm", content);
    }
    world.write("f", "theirs");
    world.recant(&format!("commit {id}")).with(3);
    world.recant(&format!("commit {id} --force")).ok();
    world.recant(&format!("show {id}")).ok();
    world.recant(&format!("rollback {id}")).ok();
    assert_eq!((&*world.read("f"), &*world.read("calm")), ("theirs", "old"));
}

#[test]
fn diff_conflicts_shows_what_is_held_against_what_is_on_the_tree_now() {
    let world = World::new();
    world.write("f", "a\nb\nc\n").write("mode", "x").symlink("here", "link").write("gone", "1\n").write("becomes", "1\n");
    world.write("directory/in", "1\n").write("calm", "1\n");
    let id = world.begin();
    world.stage_write(&id, "f", "a\nB\nc\n").stage_write(&id, "gone", "held\n").stage_write(&id, "becomes", "held\n");
    world.stage_write(&id, "calm", "2\n");
    world.call(["session", "chmod", &id, "0600", "mode"]).run().ok();
    world.call(["session", "symlink", &id, "there", "link"]).run().ok();
    world.call(["session", "delete", "-r", &id, "directory"]).run().ok();
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
    # /world/tree/becomes: conflict: expected a file, found a directory (move it away)
    # /world/tree/becomes: on the tree now: directory, mode 0755
    diff --git a/world/tree/becomes b/world/tree/becomes
    new file mode 100644
    --- /dev/null	(on the tree now)
    +++ b/world/tree/becomes	(held in <id1~>)
    @@ -0,0 +1 @@
    +held
    # /world/tree/directory/new: conflict: expected nothing, found something in a directory that is to go
    diff --git a/world/tree/directory/new b/world/tree/directory/new
    deleted file mode 100644
    --- a/world/tree/directory/new	(on the tree now)
    +++ /dev/null	(held in <id1~>)
    @@ -1 +0,0 @@
    -theirs
    # /world/tree/f: conflict: expected a file of 6 bytes, found a file of 8 bytes
    diff --git a/world/tree/f b/world/tree/f
    --- a/world/tree/f	(on the tree now)
    +++ b/world/tree/f	(held in <id1~>)
    @@ -1,4 +1,3 @@
     a
    -b
    +B
     c
    -d
    # /world/tree/gone: conflict: expected a file, found nothing
    diff --git a/world/tree/gone b/world/tree/gone
    new file mode 100644
    --- /dev/null	(on the tree now)
    +++ b/world/tree/gone	(held in <id1~>)
    @@ -0,0 +1 @@
    +held
    # /world/tree/link: conflict: expected a symlink to here, found a symlink to elsewhere
    diff --git a/world/tree/link b/world/tree/link
    --- a/world/tree/link	(on the tree now)
    +++ b/world/tree/link	(held in <id1~>)
    @@ -1 +1 @@
    -elsewhere
    \ No newline at end of file
    +there
    \ No newline at end of file
    # /world/tree/mode: conflict: expected a file with mode 0644, found a file with mode 0755
    # /world/tree/mode: mode 0755 -> 0600
    diff --git a/world/tree/mode b/world/tree/mode
    old mode 100755
    new mode 100644
    --- stderr
    recant: 6 conflicts for commit: - is on the tree now, + is held
    ");
    assert_snapshot!(world.call(["diff", &id, "--conflicts", "--stat", "f", "directory", "mode"]).run(), @"
    status 0
    --- stdout
     directory/new | 1 -
     f             | 3 +--
     mode          | conflict: expected a…d a file with mode 0755; mode 0755 -> 0600
     3 files changed, 1 insertion(+), 3 deletions(-)
    --- stderr
    recant: 3 conflicts for commit: - is on the tree now, + is held
    ");
    assert_eq!(
        world.call(["diff", &id, "--conflicts", "--name-only", "directory/new"]).run().ok().masked_out(),
        "/world/tree/directory/new\n"
    );
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
    let id = world.begin();
    world.stage_write(&id, "f", "one\n2\n").stage_write(&id, "g", "2\n").stage_write(&id, "out", "2\n");
    world.call(["commit", &id, "f", "g"]).run().ok();
    world.write("f", "one\n2\nmine\n").write("out", "theirs\n");
    assert!(world.call(["rollback", &id]).run().with(3).stderr().contains("--conflicts shows both sides"));
    assert_snapshot!(world.call(["diff", &id, "--conflicts"]).run(), @"
    status 0
    --- stdout
    # /world/tree/f: conflict: expected a file of 6 bytes, found a file of 11 bytes
    diff --git a/world/tree/f b/world/tree/f
    --- a/world/tree/f	(on the tree now)
    +++ b/world/tree/f	(before the commit of <id1~>)
    @@ -1,3 +1,2 @@
     one
    -2
    -mine
    +two
    # /world/tree/out: conflict: expected a file of 2 bytes, found a file of 7 bytes
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
    let within = |words: &str| world.call(words.split(' ')).cwd(world.path("p")).run();
    let stage = || {
        let id = within("session new").ok().id();
        for (name, content) in [("a", "new"), ("sub/in", "new"), ("fresh", "new")] {
            world.call(["session", "write", &id, name]).cwd(world.path("p")).stdin(content).run().ok();
        }
        world.call(["session", "chmod", &id, "0600", "mode"]).cwd(world.path("p")).run().ok();
        world.call(["session", "delete", &id, "b"]).cwd(world.path("p")).run().ok();
        id
    };
    let (committed, held) = (stage(), stage());
    world.recant(&format!("commit {committed}")).ok();
    std::fs::rename(world.path("p"), world.path("q")).expect("a project that moves");
    let p = world.path("p").display().to_string();
    for (verb, id) in [("commit", &held), ("rollback", &committed)] {
        for force in ["", " --force"] {
            let said = world.recant(&format!("{verb} {id}{force}")).with(3);
            assert!(said.stderr().contains(&format!("conflicts; {p} is gone, moved or deleted")), "{verb}{force}: {said}");
            let way = format!("move it back; or mkdir -p {p}, then --force does what can be done");
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
