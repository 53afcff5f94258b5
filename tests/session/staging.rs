//! Staging by hand: the session always holds the net change, in one entry a path, with the true original as `before`.

use std::os::unix::fs::MetadataExt;

use crate::common::sweep::{Came, Sweep, steps_of};
use crate::common::{World, name};
use crate::on_stderr;
use insta::assert_snapshot;
use serde_json::Value;

/// The net changes of a session: path below the tree, change, kind and hash-or-target of what is to be there.
fn net(world: &World, id: &str) -> Vec<(String, String)> {
    let shown = world.call(["show", id, "--json"]).run().ok().json();
    let tree = world.tree().to_string_lossy().into_owned() + "/";
    let row = |change: &Value| {
        let path = change["path"].as_str().expect("a path that is UTF-8").replacen(&tree, "", 1);
        (path, change["change"].as_str().expect("a word").to_owned())
    };
    shown["changes"].as_array().expect("a list").iter().map(row).collect()
}

fn rows(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(path, change)| ((*path).to_owned(), (*change).to_owned())).collect()
}

fn before(world: &World, id: &str, path: &str) -> Value {
    let shown = world.call(["show", id, "--json"]).run().ok().json();
    let whole = world.path(path).to_string_lossy().into_owned();
    let changes = shown["changes"].as_array().expect("a list");
    changes.iter().find(|change| change["path"] == *whole).expect("a change of that path")["before"].clone()
}

#[test]
fn staging_touches_nothing_on_the_tree() {
    let world = World::new();
    world.write("kept", "old").write("gone", "old").mkdir("directory");
    let tree = world.manifest();
    let id = world.begin();
    world.stage_write(&id, "kept", "new").stage_write(&id, "fresh/file", "new");
    world.call(["session", "delete", &id, "gone"]).run().ok();
    world.call(["session", "chmod", &id, "0700", "directory"]).run().ok();
    world.call(["session", "symlink", &id, "kept", "link"]).run().ok();
    world.call(["session", "mkdir", &id, "empty"]).run().ok();
    tree.assert_same(&world.manifest(), "the tree was touched");
    let want = [
        ("directory", "metadata"),
        ("empty", "created"),
        ("fresh", "created"),
        ("fresh/file", "created"),
        ("gone", "deleted"),
        ("kept", "modified"),
        ("link", "created"),
    ];
    assert_eq!(net(&world, &id), rows(&want));
}

/// A world with a session.
fn begun() -> Option<(World, String)> {
    let world = World::new();
    let id = world.begin();
    Some((world, id))
}

/// How many contents a session holds.
fn objects(world: &World, id: &str) -> usize {
    std::fs::read_dir(world.session(id).join("held/objects")).expect("its objects").count()
}

#[test]
fn whatever_was_staged_for_a_path_is_one_net_change_of_the_true_original() {
    let world = World::new();
    world.write("f", "original").write("empty", "");
    for (path, staged, change) in [
        ("f", &[Some("first"), Some("second")][..], Some("modified")),
        ("f", &[Some("x"), None], Some("deleted")),
        ("f", &[None, Some("new")], Some("modified")),
        ("new", &[Some("x")], Some("created")),
        ("new", &[Some("x"), None], None),
        // The same bytes are no change; none at all are a content, and no deletion.
        ("f", &[Some("other"), Some("original")], None),
        ("empty", &[Some("")], None),
        ("f", &[Some("")], Some("modified")),
        ("new", &[Some("")], Some("created")),
    ] {
        let id = world.begin();
        for content in staged {
            match content {
                Some(content) => drop(world.stage_write(&id, path, content)),
                None => drop(world.call(["session", "delete", &id, path]).run().ok()),
            }
        }
        let what = format!("{path}: {staged:?}");
        let wanted: Vec<(&str, &str)> = change.iter().map(|change| (path, *change)).collect();
        assert_eq!(net(&world, &id), rows(&wanted), "{what}");
        let last = staged[staged.len() - 1].filter(|_| change.is_some());
        assert_eq!(objects(&world, &id), usize::from(last.is_some()), "{what}: what no change needs is let go");
        if let Some(last) = last {
            assert_eq!(world.call(["cat", &id, path]).run().ok().stdout(), last, "{what}");
        }
        if path == "f" && change.is_some() {
            assert_eq!(before(&world, &id, "f")["size"], 8, "{what}");
            assert_eq!(world.call(["cat", &id, "f", "--before"]).run().ok().stdout(), "original", "{what}");
        }
        world.call(["prune", "--sessions", &id, "-y"]).run().ok();
    }
    world.begin();
    assert_eq!(world.recant("show --json").status, 1, "a session without changes is not the last one");
}

#[test]
fn a_staging_killed_or_failing_at_any_step_leaves_the_first_content_or_the_second_and_the_next_one_clears_up() {
    for order in ["kill:N", "fail:N:28"] {
        let row = Sweep {
            name: "session write",
            scene: &|| {
                let (world, id) = begun()?;
                world.stage(&id, ["write f first"]);
                Some((world, id))
            },
            verb: &|(world, id)| world.call(["session", "write", id, "f"]).stdin("second"),
            order,
        };
        let tally = row.run(|(world, id), said, what| {
            let content = world.call(["cat", id, "f"]).run().ok().stdout();
            let held = objects(world, id);
            match said.status {
                0 if said.err.is_empty() => assert_eq!((&*content, held), ("second", 1), "{what}"),
                0 => assert!(content == "second" && said.stderr().contains("this does no harm") && held == 2, "{what}"),
                1 => assert_eq!((&*content, held), ("first", 1), "{what}"),
                4 => {
                    assert_eq!(content, "second", "{what}");
                    assert!(said.stderr().contains("was changed as you asked, but a power cut may revert that"), "{what}");
                }
                status => assert!(status == 137 && ["first", "second"].contains(&&*content), "{what}: {content}"),
            }
            world.stage_write(id, "g", "third");
            assert_eq!(objects(world, id), 2, "{what}: what no change needs is let go");
            Came::Used(said.status)
        });
        assert!(tally.steps >= 10, "{} steps", tally.steps);
        if order == "kill:N" {
            tally.saw(137, 10).saw(0, 1)
        } else {
            tally.saw(1, 6).saw(4, 1).saw(0, 2)
        };
    }
}

/// Effort counted in steps: a sync takes longer than all the rest of a staging.
#[test]
fn staging_a_file_syncs_its_content_the_line_and_the_header_once_with_their_directories() {
    let world = World::new();
    let id = world.begin();
    let steps = steps_of(|| world.call(["session", "write", &id, "f"]).stdin("x"));
    // I10: all of it is durable before the header that counts it has its name.
    let is_header = |step: &String| step.starts_with("renameat ") && step.ends_with("session.json");
    let named = steps.iter().position(is_header).expect("the header's name");
    let syncs = |steps: &[String]| steps.iter().filter(|step| step.contains("sync")).count();
    assert_eq!((syncs(&steps[..named]), syncs(&steps[named..])), (4, 1), "{steps:?}");
    let held = world.recant("list --json").ok().json()["sessions"][0]["held_bytes"].clone();
    assert!(held.as_u64().unwrap() > 0, "what it holds is counted with it");
}

#[test]
fn a_path_longer_than_the_kernel_takes_at_once_is_staged_committed_and_taken_back() {
    let world = World::new();
    let tree = world.manifest();
    let (id, long) = (world.begin(), vec!["d".repeat(250); 20].join("/"));
    assert!(long.len() > 4096);
    world.call(["session", "write", &id, &format!("{long}/f"), "-p"]).stdin("deep").run().ok();
    assert_eq!(world.call(["cat", &id, &format!("{long}/f")]).run().ok().stdout(), "deep");
    world.call(["commit", &id]).run().ok();
    // No single path leads there: the shell goes down.
    let go_down = "n=0; while [ $n -lt 20 ]; do cd -P d*; n=$((n + 1)); done; cat f";
    let content = || world.program("sh", ["-ec", go_down]).run().ok().stdout();
    let again = world.begin();
    world.call(["session", "write", &again, &format!("{long}/f")]).stdin("other").run().ok();
    assert_eq!(world.call(["cat", &again, &format!("{long}/f"), "--before"]).run().ok().stdout(), "deep");
    for (verb, then) in [("commit", "other"), ("rollback", "deep")] {
        world.call([verb, &again]).run().ok();
        assert_eq!(content(), then, "{verb}: never cut, never another file");
    }
    let whole = world.begin();
    world.call(["session", "delete", &whole, &"d".repeat(250), "-r"]).run().ok();
    world.call(["commit", &whole]).run().ok();
    assert!(!world.exists("d".repeat(250)));
    world.call(["rollback", &whole]).run().ok();
    assert_eq!(content(), "deep");
    world.call(["rollback", &id]).run().ok();
    tree.assert_same(&world.manifest(), "after both rollbacks");
}

#[test]
fn what_somebody_made_a_file_of_meanwhile_is_deleted_with_what_is_staged_below_it() {
    let world = World::new();
    world.mkdir("d");
    let id = world.begin();
    world.call(["session", "mkdir", &id, "d/new"]).run().ok();
    world.remove("d").write("d", "theirs");
    world.call(["session", "delete", &id, "d"]).run().with(1);
    world.call(["session", "delete", &id, "d", "-r"]).run().ok();
    assert_eq!(net(&world, &id), rows(&[("d", "deleted")]));
}

#[test]
fn a_directory_that_is_deleted_can_be_written_into_with_p() {
    let world = World::new();
    world.write("d/a", "1").write("d/sub/b", "2");
    let id = world.begin();
    assert_snapshot!(on_stderr(&world.call(["session", "delete", &id, "d"]).run(), 1), @r#"
    recant: cannot delete /world/tree/d: the directory is not empty
            nothing was changed
            -r includes all that is in it
    "#);
    world.call(["session", "delete", &id, "d", "-r"]).run().ok();
    assert_eq!(net(&world, &id), rows(&[("d", "deleted"), ("d/a", "deleted"), ("d/sub", "deleted"), ("d/sub/b", "deleted")]));
    assert_snapshot!(on_stderr(&world.call(["session", "write", &id, "d/new"]).stdin("3").run(), 1), @r#"
    recant: cannot write /world/tree/d: it is staged to be deleted
            nothing was changed
            -p stages the missing directories too
    "#);
    world.stage_write(&id, "d/new", "3");
    let want = [("d/a", "deleted"), ("d/new", "created"), ("d/sub", "deleted"), ("d/sub/b", "deleted")];
    let found = net(&world, &id);
    assert!(found.iter().filter(|(path, _)| path != "d").eq(rows(&want).iter()), "{found:?}");
}

#[test]
fn a_missing_parent_is_refused_without_p() {
    let world = World::new();
    let id = world.begin();
    assert_snapshot!(on_stderr(&world.call(["session", "write", &id, "no/such/file"]).stdin("x").run(), 1), @r#"
    recant: cannot write /world/tree/no: the directory is missing
            nothing was changed
            -p stages the missing directories too
    "#);
    world.call(["session", "mkdir", &id, "no/such", "-p"]).run().ok();
    world.call(["session", "write", &id, "no/such/file"]).stdin("x").run().ok();
    assert_eq!(net(&world, &id), rows(&[("no", "created"), ("no/such", "created"), ("no/such/file", "created")]));
}

#[test]
fn relative_paths_and_links_on_the_way_are_resolved_when_staged_the_last_name_is_not() {
    let world = World::new();
    world.mkdir("real").symlink("real", "via").write("real/f", "x").symlink("f", "real/link");
    let id = world.begin();
    world.call(["session", "write", &id, "../via/f"]).cwd(world.path("real")).stdin("y").run().ok();
    world.call(["session", "delete", &id, "link"]).cwd(world.path("via")).run().ok();
    assert_eq!(net(&world, &id), rows(&[("real/f", "modified"), ("real/link", "deleted")]));
}

#[test]
fn odd_names_are_staged_as_they_are() {
    let world = World::new();
    let id = world.begin();
    let long = [b'n'; 255];
    for odd in [&b"new\nline"[..], b"\xff\xfe", b"a b", b"-dash", b"\"q\\", b"tab\t", &long] {
        let args = [name(b"session"), name(b"write"), name(id.as_bytes()), name(b"--"), name(odd)];
        world.call(args).stdin("x").run().ok();
    }
    assert_snapshot!(world.call(["diff", &id, "--name-only"]).run(), @r#"
    status 0
    --- stdout
    "/world/tree/\"q\\"
    /world/tree/-dash
    /world/tree/a b
    "/world/tree/new\nline"
    /world/tree/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
    "/world/tree/tab\t"
    "/world/tree/\377\376"
    "#);
    let paths = world.call(["diff", &id, "--name-only", "--json"]).run().ok().json();
    let encoded = paths["paths"].as_array().unwrap().iter().filter(|path| path["b64"].is_string()).count();
    assert_eq!(encoded, 1, "only what is no UTF-8 is encoded");
    let args = [name(b"session"), name(b"write"), name(id.as_bytes()), name(&[b'n'; 256])];
    assert_snapshot!(world.call(args).run().with(1).masked_err().replace("nnnnnnnn", ""), @r#"
    recant: cannot write : a name of more than 255 bytes
            nothing was changed
    "#);
}

#[test]
fn writes_keep_mode_and_owner_of_what_they_replace_and_new_files_follow_the_umask() {
    let mut world = World::new();
    world.write("secret", "x").chmod("secret", 0o600).write("tool", "x").chmod("tool", 0o4755);
    world.umask(0o027);
    let id = world.begin();
    world.stage_write(&id, "secret", "y").stage_write(&id, "tool", "y").stage_write(&id, "fresh", "y");
    world.call(["session", "write", &id, "given", "--mode", "0604"]).stdin("y").run().ok();
    let shown = world.call(["show", &id, "--json"]).run().ok().json();
    let modes: Vec<&str> = shown["changes"].as_array().unwrap().iter().map(|c| c["after"]["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["0640", "0604", "0600", "0755"], "fresh, given, secret, tool");
}

#[test]
fn kinds_are_replaced_by_each_other_and_a_full_directory_only_with_r() {
    let world = World::new();
    world.write("f", "x").write("d/in", "x").symlink("f", "l").fifo("p");
    let id = world.begin();
    for path in ["l", "p"] {
        world.stage_write(&id, path, "now a file");
    }
    assert_eq!(world.call(["session", "write", &id, "d"]).stdin("x").run().status, 1);
    world.call(["session", "write", &id, "d", "-r"]).stdin("x").run().ok();
    world.call(["session", "symlink", &id, "elsewhere", "f"]).run().ok();
    assert_snapshot!(on_stderr(&world.call(["session", "mkdir", &id, "f"]).run(), 1), @r#"
    recant: cannot make /world/tree/f: something is there already
            nothing was changed
    "#);
    let want = [("d", "modified"), ("d/in", "deleted"), ("f", "modified"), ("l", "modified"), ("p", "modified")];
    assert_eq!(net(&world, &id), rows(&want));
}

#[test]
fn content_comes_from_a_file_too_and_a_missing_one_leaves_the_session_as_it_is() {
    let world = World::new();
    world.write("source", "content");
    let id = world.begin();
    world.call(["session", "write", &id, "copy", "--from", "source"]).run().ok();
    assert_eq!(world.call(["cat", &id, "copy"]).run().stdout(), "content");
    assert_snapshot!(on_stderr(&world.call(["session", "write", &id, "copy", "--from", "none"]).run(), 1), @r#"
    recant: none: cannot open: no such file or directory
            nothing was changed
    "#);
    assert_eq!(world.call(["session", "write", &id, "copy", "--from", "."]).run().status, 1);
    assert_eq!(world.call(["cat", &id, "copy"]).run().stdout(), "content");
}

#[test]
fn a_large_file_goes_through_whole() {
    let world = World::new();
    let id = world.begin();
    let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    world.stage_write(&id, "large", &content);
    assert!(world.call(["cat", &id, "large"]).run().ok().out == content);
}

#[test]
fn paths_in_the_store_are_refused() {
    let world = World::new();
    let id = world.begin();
    for path in [world.store().join("x"), world.store(), world.store().join("sessions")] {
        let args = [name(b"session"), name(b"write"), name(b"-r"), name(id.as_bytes()), path.into_os_string()];
        let said = world.call(args).stdin("x").run().with(1);
        assert!(said.masked_err().contains("recant's own store"), "{said}");
    }
}

#[test]
fn what_is_the_kernel_s_is_refused_by_name_and_nothing_is_staged() {
    let world = World::new();
    let id = world.begin();
    for (words, path) in [
        ("write ID /proc/sys/kernel/hostname", "/proc/sys/kernel/hostname"),
        ("write ID /proc/none/deep/x -p", "/proc/none/deep/x"),
        ("write ID /dev/null", "/dev/null"),
        ("write ID /dev/none", "/dev/none"),
        ("write ID /sys/kernel/none", "/sys/kernel/none"),
        ("mkdir ID /dev/none", "/dev/none"),
        ("symlink ID f /proc/none", "/proc/none"),
        ("chmod ID 0600 /proc/version", "/proc/version"),
        ("delete ID /proc/version", "/proc/version"),
        ("delete ID /proc -r", "/proc"),
    ] {
        let said = world.call(format!("session {}", words.replace("ID", &id)).split(' ')).stdin("x").run().with(1);
        assert!(said.stderr().contains(&format!(" {path}: it lies in ")), "{words}: {said}");
        assert!(said.stderr().contains("the files there are the kernel's\n        nothing was changed\n"), "{words}: {said}");
        assert_eq!(net(&world, &id), [], "{words}");
    }
    // A link in it leads out of it.
    world.stage_write(&id, "/proc/self/cwd/f", "x");
    assert_eq!(net(&world, &id), rows(&[("f", "created")]));
    let said = world.call(["run", "--in", "/dev", "--", "touch", "/dev/none"]).run().with(125);
    assert!(said.stderr().contains("the files there are the kernel's"), "{said}");
}

#[test]
fn what_cannot_be_staged_says_why() {
    let world = World::new();
    world.write("f", "x").symlink("f", "l");
    let id = world.begin();
    assert_snapshot!(on_stderr(&world.call(["session", "delete", &id, "none"]).run(), 1), @r#"
    recant: cannot delete /world/tree/none: there is nothing
            nothing was changed
    "#);
    assert_snapshot!(on_stderr(&world.call(["session", "chmod", &id, "0644", "l"]).run(), 1), @r#"
    recant: cannot change the mode of /world/tree/l: a symlink has no mode
            nothing was changed
    "#);
    assert_snapshot!(on_stderr(&world.call(["session", "chmod", &id, "9", "f"]).run(), 2), @r#"
    error: invalid value '9' for '<MODE>': permission bits are octal, 0 to 7777, as in 0644

    For more information, try '--help'.
    "#);
    assert_snapshot!(on_stderr(&world.call(["session", "write", &id, "f/below"]).run(), 1), @r#"
    recant: cannot write /world/tree/f: it is not a directory
            nothing was changed
    "#);
    assert_snapshot!(on_stderr(&world.call(["session", "mkdir", &id, "/"]).run(), 1), @r#"
    recant: cannot make /: the path ends in '/' or '..' alone
            nothing was changed
    "#);
    assert_snapshot!(on_stderr(&world.call(["session", "delete", &id, ""]).run(), 2), @r#"
    error: a value is required for '<PATH>' but none was supplied

    For more information, try '--help'.
    "#);
    world.stage(&id, ["write f y"]).call(["commit", &id]).run().ok();
    assert_snapshot!(on_stderr(&world.call(["session", "write", &id, "g"]).run(), 1), @r#"
    recant: session <id1>: it is committed; only a pending one can be added to
            nothing was changed
            recant session new begins another
    "#);
}

#[test]
fn staging_in_json_tells_what_the_change_is_now() {
    let world = World::new();
    world.write("f", "x");
    let id = world.begin();
    let stage = |content: &str| world.call(["session", "write", &id, "f", "--json"]).stdin(content).run().ok();
    assert_snapshot!(stage("y").masked_out(), @r#"{"schema":2,"session":"<id1>","path":"/world/tree/f","change":"modified"}"#);
    assert_snapshot!(stage("x").masked_out(), @r#"{"schema":2,"session":"<id1>","path":"/world/tree/f","change":null}"#);
}

/// A mode that its own user may not open is the user's own choice: what is staged with it is durable all the same, and can be
/// given another one.
#[test]
fn content_that_its_own_user_may_not_read_can_be_staged_and_staged_again() {
    let world = World::new();
    for name in ["", "home", "store", "tree"] {
        let path = world.root().join(name);
        if path.exists() && rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("another owner");
        }
    }
    let call = |words: &[&str]| {
        let call = world.call(words).stdin("secret");
        let call = if rustix::process::geteuid().is_root() { call.user(65534, 65534) } else { call };
        call.run().ok()
    };
    let id = call(&["session", "new"]).id();
    call(&["session", "write", &id, "closed", "--mode", "0"]);
    call(&["session", "chmod", &id, "0200", "closed"]);
    call(&["session", "chmod", &id, "0", "closed"]);
    call(&["session", "chmod", &id, "0400", "closed"]);
    call(&["commit", &id]);
    let found = std::fs::metadata(world.path("closed")).expect("what was committed");
    assert_eq!((found.len(), found.mode() & 0o7777), (6, 0o400));
    call(&["rollback", &id]);
    assert!(!world.exists("closed"));
}

/// Each `before` is of the moment of its own staging: no tree ever held both, and no rollback could bring both back.
#[test]
fn what_does_not_fit_what_was_staged_before_somebody_changed_the_tree_is_refused() {
    let world = World::new();
    world.write("d/f", "old");
    let id = world.begin();
    world.recant(&format!("session delete {id} d/f")).ok();
    world.remove("d").write("d", "theirs");
    let said = world.call(["session", "write", &id, "d"]).stdin("new").run();
    assert_snapshot!(on_stderr(&said, 1), @r#"
    recant: cannot stage /world/tree/d/f: the tree has changed since other changes of this session were staged, and does not fit them
            nothing was changed
            begin another session with recant session new
    "#);
    assert_eq!(net(&world, &id), rows(&[("d/f", "deleted")]));
}

#[test]
fn that_a_write_parts_a_name_from_the_others_of_its_file_is_said() {
    let world = World::new();
    world.write("a", "old").link("a", "b").write("alone", "old");
    let id = world.begin();
    world.stage_write(&id, "a", "new").stage_write(&id, "alone", "new");
    world.recant(&format!("session chmod {id} 0600 b")).ok();
    let shown = world.recant(&format!("show {id} --json")).ok().json()["changes"].clone();
    let broken: Vec<bool> = shown.as_array().expect("rows").iter().map(|row| row["link_broken"] == true).collect();
    assert_eq!(broken, [true, false, false], "{shown}");
    let diff = world.recant(&format!("diff {id}")).ok();
    assert!(diff.stdout().contains("link broken: the other names of the file keep the old content"), "{diff}");
}

#[test]
fn content_stays_where_it_cannot_be_told_which_header_is_there() {
    let row = Sweep {
        name: "session write",
        scene: &begun,
        verb: &|(world, id)| {
            let header = world.session(id).join("session.json");
            world.call(["session", "write", id, "f"]).stdin("second").env("header", header)
        },
        // The new header has its name, and cannot be read once more.
        order: "run:N:grep -q '\"changes\":1' $header && mv $header $header.away || true;fail:N:5",
    };
    let tally = row.run(|(world, id), said, what| {
        let [header, away] = ["session.json", "session.json.away"].map(|name| world.session(id).join(name));
        let is_away = std::fs::rename(away, header).is_ok();
        assert!(if is_away { said.status == 4 } else { [0, 1].contains(&said.status) }, "{what}");
        let is_held = world.recant(&format!("cat {id} f")).status == 0;
        assert_eq!(is_held, said.status != 1, "{what}");
        Came::Used(is_away)
    });
    tally.saw(true, 1).saw(false, 10);
}

#[test]
fn a_renaming_that_fails_says_which_name_the_session_has() {
    let row = Sweep {
        name: "session rename",
        scene: &begun,
        verb: &|(world, id)| world.call(["session", "rename", id, "other"]),
        order: "fail:N:5",
    };
    let tally = row.run(|(world, _), said, what| {
        assert!([0, 1, 4].contains(&said.status), "{what}");
        let is_named = world.recant("list --json").ok().stdout().contains("\"name\":\"other\"");
        assert_eq!(is_named, said.status != 1, "{what}");
        if is_named { Came::Used(said.status) } else { Came::Unchanged(said.status) }
    });
    tally.saw(1, 3).saw(4, 1).saw(0, 1);
}

#[test]
fn what_gives_rights_or_is_run_by_others_stands_first_in_every_list() {
    let world = World::new();
    world.write("tool", "x").chmod("tool", 0o755).mkdir(".git/hooks").config("[output]\npaths = 3\n");
    let id = world.begin();
    (0..9).map(|n| format!("a{n}")).for_each(|name| _ = world.stage_write(&id, name, "x"));
    world.stage_write(&id, ".git/hooks/pre-commit", "x").stage(&id, ["chmod 4755 tool"]);
    for words in ["commit --dry-run", "show"] {
        let said = world.recant(&format!("{words} {id}")).ok().stdout();
        let rows: Vec<&str> =
            said.lines().filter(|line| line.contains(" .git") || line.contains(" tool") || line.contains(" a0")).collect();
        assert!(rows.len() == 3 && rows[1].ends_with(".git/hooks/pre-commit  (git runs it)"), "{said}");
        assert!(rows[0].ends_with("tool  (set-user-id)") && rows[2].ends_with("a0"), "{said}");
    }
    let dangers = |words: &str, list: &str| -> Vec<String> {
        let said = world.recant(&format!("{words} --json {id}")).ok().json();
        said[list].as_array().expect("a list").iter().filter_map(|row| row["danger"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(dangers("commit --dry-run", "paths"), ["git runs it", "set-user-id"]);
    assert_eq!(dangers("show", "changes"), ["git runs it", "set-user-id"]);
    // Decoys push nothing that gives rights out of sight, and are counted.
    (0..9).map(|n| format!("a{n}d/.envrc")).for_each(|name| _ = world.stage_write(&id, name, "x"));
    for words in ["commit --dry-run", "show"] {
        let said = world.recant(&format!("{words} {id}")).ok();
        assert!(said.stdout().contains("tool  (set-user-id)"), "{said}");
        assert!(said.stderr().contains("8 paths that others run or obey, or that give rights, are not listed here"), "{said}");
    }
    let said = world.recant(&format!("commit {id} -q")).ok();
    assert!(said.stdout().contains("tool  (set-user-id)") && said.stdout().lines().count() == 1, "{said}");
    assert_eq!(dangers("rollback --dry-run", "paths"), [""; 0]);
}

#[test]
fn a_hint_that_is_copied_runs_nothing_of_a_name_and_a_terminal_obeys_nothing_of_a_content() {
    let world = World::new();
    world.write("$(touch ran)", "1\n2\n");
    let id = world.begin();
    world.stage_write(&id, "$(touch ran)", "1\n3\n").stage_write(&id, "odd", "shown\n\x1b[8mhidden\x07\n");
    let said = world.recant(&format!("diff {id} --blocks")).ok();
    assert!(said.stderr().contains("'$(touch ran)':1 commits that block alone"), "{said}");
    for verb in ["commit", "discard"] {
        let said = world.call([verb, &id, "$(touch ran):9"]).run().with(2);
        assert!(said.stderr().contains("/$(touch ran)' shows what can be taken of it"), "{said}");
    }
    if world.program("script", ["-V"]).command().output().is_err() {
        return println!("skipped: a terminal for cat needs script(1)");
    }
    let command = format!("{} cat {id} odd", crate::common::recant());
    let said = world.program("script", ["-qec", &command, "/dev/null"]).run().ok();
    assert!(said.stdout().contains("hidden") && !said.out.contains(&0x1b) && !said.out.contains(&7), "{said}");
    assert_eq!(world.recant(&format!("cat {id} odd")).ok().out, b"shown\n\x1b[8mhidden\x07\n");
}
