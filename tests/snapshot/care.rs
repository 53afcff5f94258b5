//! Snapshots and the store that they lie in: what `status` says of them, how all of a directory's are dropped, and what is said where a
//! verb was meant otherwise.

use std::path::PathBuf;

use crate::common::{Said, World, recant};
use crate::{numbers, series, snapshot};

#[test]
fn a_prune_without_conditions_names_the_settings_that_it_goes_by() {
    let world = World::new();
    world.config("[snapshot]\nkeep = 2\n").write("f", "0");
    world.recant("snapshot create").ok();
    let line = "recant: by the settings: snapshot.keep is 2, snapshot.max_size 5.0 GiB (default)\n";
    for words in ["prune --snapshots", "prune --snapshots --dry-run"] {
        assert!(world.recant(words).ok().stderr().starts_with(line), "{words}");
    }
    assert!(!world.recant("prune --snapshots --keep 1").ok().stderr().contains("settings"));
}

#[test]
fn status_counts_the_room_of_snapshots_and_names_what_is_damaged() {
    let world = World::new();
    world.write("a/f", vec![1; 300_000]).write("b/f", "1");
    assert!(!world.recant("status").ok().stdout().contains("snapshots"), "there are none");
    snapshot(&world, "create a").ok();
    world.write("a/f", "2");
    snapshot(&world, "create a").ok();
    snapshot(&world, "create b").ok();
    world.remove("b");
    let status = world.recant("status --json").ok().json();
    let told = &status["snapshots"];
    assert_eq!(
        (&told["directories"], &told["directories_gone"], &told["snapshots"]),
        (&2.into(), &1.into(), &3.into()),
        "{status}"
    );
    let bytes = told["bytes"].as_u64().unwrap();
    assert!(bytes > 300_000 && status["store"]["bytes"].as_u64() == Some(bytes), "{status}");
    let text = world.recant("status").ok().stdout();
    assert!(text.contains("snapshots    3 of 2 directories, 1 no longer there ("), "{text}");
    assert!(snapshot(&world, "list --all").ok().stdout().contains("(no longer there)"));
    assert!(!text.contains("could free"), "{text}");

    world.config("[store]\nwarn_size = '300K'\n");
    let said = world.recant("status").ok();
    assert!(said.stderr().contains("above store.warn_size") && said.stdout().contains("recant prune --snapshots DIR"), "{said}");

    world.recant(&format!("prune --snapshots {} --all", world.path("b").display())).ok();
    let manifest = series(&world).join("0.jsonl");
    std::fs::write(&manifest, "{").unwrap();
    let said = world.recant("status").with(4);
    assert!(said.stderr().contains(&format!("{}: snapshot 0 cannot be read", world.path("a").display())), "{said}");
    assert_eq!(world.recant("status --json").with(4).json()["snapshots"]["damaged"].as_array().map(Vec::len), Some(1));

    let before = world.recant("status --json").with(4).json()["snapshots"]["bytes"].clone();
    std::fs::write(series(&world).join("folder.json"), "{").unwrap();
    let said = world.recant("status").with(4);
    assert!(
        said.stderr().contains(&format!("{}: the directory of these snapshots is unknown", series(&world).display())),
        "{said}"
    );
    let after = world.recant("status --json").with(4).json()["snapshots"].clone();
    assert_eq!((&after["bytes"], &after["directories"]), (&before, &0.into()), "its room counts all the same");
}

#[test]
fn all_snapshots_of_a_directory_are_dropped_by_name_also_where_it_is_gone_or_they_are_damaged() {
    let world = World::new();
    world.write("a/f", vec![1; 300_000]).write("b/f", "1");
    snapshot(&world, "create a").ok();
    snapshot(&world, "create b").ok();
    world.write("a/f", "2");
    snapshot(&world, "create a").ok();
    let none = |said: &Said| assert!(said.stderr().contains("no snapshots"), "{said}");

    world.recant("prune --snapshots --all").with(2);
    world.recant("prune --snapshots a --all --keep 1").with(2);
    let would = world.recant("prune --snapshots a --all --dry-run").ok();
    assert_eq!((would.stdout(), snapshot(&world, "list a --json").ok().rows().len()), ("0\n1\n".into(), 2), "{would}");
    let said = world.recant("prune --snapshots a --all").ok();
    assert!(said.stdout() == "0\n1\n" && said.stderr().contains("2 snapshots pruned"), "{said}");
    none(&snapshot(&world, "restore last --dir a").with(1));
    none(&world.recant("prune --snapshots a --all").with(1));
    assert_eq!((world.read("a/f"), snapshot(&world, "list b --json").ok().rows().len()), ("2".into(), 1));
    assert_eq!(std::fs::read_dir(world.store().join("snapshots")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(world.store().join("sessions")).unwrap().count(), 0, "nothing is left of them");

    assert_eq!(snapshot(&world, "create a").ok().stdout(), "0\n");
    world.remove("b");
    world.recant("prune --snapshots b --all").ok();
    world.write("b/f", "2");
    assert_eq!(snapshot(&world, "create b").ok().stdout(), "0\n");

    world.recant("prune --snapshots b --all").ok();
    std::fs::write(series(&world).join("folder.json"), "{").unwrap();
    snapshot(&world, "list a").with(5);
    world.recant("prune --snapshots a --all").ok();
    assert_eq!(std::fs::read_dir(world.store().join("snapshots")).unwrap().count(), 0);
}

/// By the path that somebody named, not by the one that it leads to.
#[test]
fn what_is_gone_or_lies_behind_a_link_now_has_its_snapshots_and_a_restore_says_what_to_do() {
    for of in ["ab;ove/d", "ab;ove/d/f"] {
        let world = World::new();
        world.write("ab;ove/d/f", "1").mkdir("else");
        snapshot(&world, &format!("create {of}")).ok();
        let check = |why: &str| {
            for words in ["list", "show last --dir", "diff last --dir", "verify --dir"] {
                let said = snapshot(&world, &format!("{words} {of}")).ok();
                assert!(!said.stderr().contains("there are no snapshots"), "{words}: {said}");
            }
            for words in ["restore last --dir", "restore last --dry-run --dir"] {
                let said = snapshot(&world, &format!("{words} {of}")).with(1);
                assert!(said.stderr().contains(why), "{words} {of}: {said}");
            }
        };
        let rename = |from: &str, to: &str| std::fs::rename(world.path(from), world.path(to)).expect("a rename");
        rename("ab;ove/d", "else/d");
        world.symlink("../else/d", "ab;ove/d");
        check("is a link to ../else/d now");
        world.remove("ab;ove/d");
        rename("ab;ove", "moved");
        world.symlink("moved", "ab;ove");
        check("/ab;ove is a link to moved now");
        assert_eq!((world.read("else/d/f"), world.exists("moved/d")), ("1".into(), false), "nothing is restored behind a link");
        world.remove("ab;ove");
        // As a shell has to read it.
        let word = format!("'{}'", world.path(of).parent().expect("a directory above it").display());
        for remedy in ["mount what it lies on, or make it: mkdir -p ", "move it away, and make the directory: mkdir -p "] {
            if remedy.starts_with("move") {
                world.write("ab;ove", "a file");
            }
            check(&format!("{remedy}{word}"));
            let said = snapshot(&world, &format!("create {of}")).with(1);
            assert!(said.stderr().contains("there is nothing there to take a snapshot of"), "{said}");
        }
        world.remove("ab;ove");
        std::fs::create_dir_all(world.path(of).parent().expect("a directory")).expect("it again");
        snapshot(&world, &format!("restore last --dir {of}")).ok();
        assert_eq!(world.read("ab;ove/d/f"), "1");
    }
    let world = World::new();
    world.write("d/f", "1");
    snapshot(&world, "create d").ok();
    std::fs::rename(world.path("d"), world.path("e")).expect("a rename");
    world.symlink("e", "d");
    world.recant("prune --snapshots d --all").ok();
    assert_eq!(std::fs::read_dir(world.store().join("snapshots")).expect("a directory").count(), 0, "what is a link now");
    // What the link leads to comes first where it has snapshots itself.
    snapshot(&world, "create -m own d").ok();
    assert!(snapshot(&world, "list d").ok().stdout().contains("own"));
}

#[test]
fn what_was_meant_otherwise_is_refused_with_the_call_that_does_it() {
    let world = World::new();
    world.write("f", "1").write("d/f", "1");
    snapshot(&world, "create").ok();
    snapshot(&world, "create d").ok();
    let tree = world.tree();
    for (words, status, wanted) in [
        ("snapshot diff f", 1, "for the path: recant snapshot diff last -- f"),
        ("snapshot diff last f", 1, "for the path: recant snapshot diff last -- f"),
        ("snapshot diff d/f", 1, "for the path: recant snapshot diff last -- d/f"),
        ("snapshot restore f", 1, "for the path: recant snapshot restore last f"),
        ("snapshot restore gone/f", 1, "for the path: recant snapshot restore last gone/f"),
        ("snapshot restore f --dir d", 1, &format!("recant snapshot restore last f --dir {}", tree.join("d").display())),
        ("snapshot show f", 1, "for the path: recant snapshot show last -v"),
        ("snapshot restore nothing", 1, &format!("recant snapshot list {} shows them", tree.display())),
        ("snapshot restore 7 --dir d", 1, &format!("recant snapshot list {} shows them", tree.join("d").display())),
        ("snapshot list f", 0, "recant snapshot list --all lists what has some"),
        ("snapshot show last --dir f", 1, &format!("recant snapshot create {} takes the first", tree.join("f").display())),
        ("snapshot create a-word", 1, "name a directory or file that is there; -m gives a message"),
        ("snapshot create --label last", 1, "'last' always means the newest\n"),
        ("snapshot delete 0", 2, "recant prune --snapshots --number N drops one"),
        ("snapshot rm 0", 2, "recant prune --snapshots --number N drops one"),
        ("snapshot rollback 0", 2, "recant snapshot restore N restores the directory"),
        ("snapshot revert", 2, "recant snapshot restore N restores the directory"),
        ("revert", 2, "recant undo takes back what was committed"),
        ("restore 0", 2, "recant undo takes back what was committed\n  tip: recant snapshot restore N"),
        ("session rm ID f", 2, "recant session delete ID PATH stages a deletion"),
        ("snapshot create --keep x", 2, "expected a whole number"),
        ("snapshot create --keep 2k", 2, "expected a whole number"),
        ("prune --snapshots --number x", 2, "expected a whole number"),
        ("prune --snapshots --keep -1", 2, "expected a whole number"),
        ("prune --sessions --keep x", 2, "expected a whole number"),
        ("rewind last 5000000000", 2, "it is too small or too large"),
        ("prune --snapshots -k 5", 2, "'-k' found"),
        ("prune --snapshots --last 3", 2, "'--last' found"),
    ] {
        let said = world.recant(words).with(status);
        assert!(said.stderr().contains(wanted), "{words}: {wanted}: {said}");
    }
    let said = world.call(["snapshot", "create", "-m", "x", "--exclude", "f", "d"]).run().ok();
    assert!(said.stderr().contains(&format!("recant snapshot show 1 --dir {} lists them", tree.join("d").display())), "{said}");
    let said = world.call(["snapshot", "create", "--exclude", "f"]).run().ok();
    assert!(said.stderr().contains("recant snapshot show 1 lists them"), "{said}");
}

#[test]
fn a_prune_takes_what_was_taken_longer_ago_but_never_the_newest() {
    let world = World::new();
    let create = |content: &str| {
        world.write("f", content);
        snapshot(&world, "create").ok();
    };
    create("0");
    create("1");
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    create("2");
    create("3");
    world.recant("prune --snapshots --older-than 1h").ok();
    assert_eq!(numbers(&world), [0, 1, 2, 3]);
    world.recant("prune --snapshots --older-than 2s --keep 3").ok();
    assert_eq!(numbers(&world), [1, 2, 3], "both have to hold");
    assert_eq!(world.recant("prune --snapshots --older-than 2s --dry-run").ok().stdout(), "1\n");
    world.recant("prune --snapshots --older-than 2s").ok();
    assert_eq!(numbers(&world), [2, 3]);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    world.recant("prune --snapshots --older-than 1s").ok();
    assert_eq!(numbers(&world), [3], "the newest stays");
    snapshot(&world, "restore last").ok();
}

#[test]
fn each_mark_of_a_project_tells_its_top() {
    let world = World::new();
    let at = |directory: &str| {
        let said = world.call(["snapshot", "create", "--json"]).cwd(world.path(directory)).run().ok();
        PathBuf::from(said.json()["directory"].as_str().unwrap_or_default())
    };
    let marks = [".git", ".hg", "Cargo.toml", "pyproject.toml", "package.json", "go.mod", "Makefile", "pom.xml", "Gemfile"];
    for (i, mark) in marks.into_iter().enumerate() {
        let top = format!("{i}");
        world.mkdir(format!("{top}/sub/deep"));
        if i < 2 {
            world.mkdir(format!("{top}/{mark}"));
        } else {
            world.write(format!("{top}/{mark}"), "");
        }
        assert_eq!(at(&format!("{top}/sub/deep")), world.path(&top), "{mark}");
        // The nearest one, also where it is of another kind.
        world.write(format!("{top}/sub/{}", marks[(i + 2) % marks.len()]), "");
        assert_eq!(at(&format!("{top}/sub/deep")), world.path(format!("{top}/sub")), "{mark}");
    }
    world.mkdir("none/sub").write("none/setup.py", "");
    assert_eq!(at("none/sub"), world.path("none/sub"));
    // Never at or above the home directory.
    let home = world.root().join("home");
    world.write(home.join("Makefile"), "").mkdir(home.join("work/x"));
    assert_eq!(at(home.join("work/x").to_str().expect("plain")), home.join("work/x"));
    // Each verb takes a directory by --dir, too.
    let dirs = ["0", "none/sub"].map(|name| world.path(name).to_str().expect("plain").to_owned());
    for (n, dir) in dirs.iter().enumerate() {
        let words = |verb: &str| world.call(["snapshot", verb, "--dir", dir, "--json"]).run().ok().json();
        for verb in ["create", "list"] {
            assert_eq!(words(verb)["directory"].as_str(), Some(&**dir), "{verb}");
        }
        world.call(["snapshot", "create", "--dir", dir, &dirs[1 - n]]).run().with(2);
    }
    world.recant("snapshot list --all --dir .").with(2);
}

#[test]
fn the_user_s_git_is_not_called_and_its_settings_are_not_read() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::new();
    let (home, bin) = (world.root().join("home"), world.root().join("bin"));
    let config = home.join(".gitconfig");
    world.write(bin.join("git"), "#!/bin/sh\ntouch \"${0%/*}/called\"\n");
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).expect("its mode");
    world.set("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default()));
    world.write(home.join(".config/git/ignore"), "*.y\n").write(home.join("mine"), "*.x\n").write(".git/info/exclude", "*.z\n");
    world.write(".git/config", format!("[core]\nexcludesFile = {}\n", home.join("mine").display()));
    world.write(&config, format!("[core]\nexcludesFile = {}\n", home.join("mine").display())).write(".gitignore", "*.o\n");
    world.set("GIT_CONFIG_GLOBAL", &config).set("GIT_CONFIG_SYSTEM", &config).set("GIT_CONFIG", &config);
    for name in ["f.x", "f.y", "f.z", "f.o"] {
        world.write(name, "1");
    }
    let has = |world: &World, n: &str| {
        let paths = snapshot(world, &format!("show {n} -v")).ok().stdout();
        ["f.x", "f.y", "f.z", "f.o"].map(|name| paths.contains(&world.path(name).display().to_string()))
    };
    snapshot(&world, "create --gitignore").ok();
    assert_eq!(has(&world, "0"), [true, true, true, false], "the directory's own files alone");
    // Whoever opened them would wait for ever.
    for file in [&config, &home.join(".config/git/ignore"), &world.path(".git/config"), &world.path(".git/info/exclude")] {
        world.remove(file).fifo(file);
    }
    for words in ["create --gitignore", "diff last --name-only", "restore 0 --dry-run", "list", "verify", "restore 0 f.x"] {
        let recant = [recant(), "snapshot"].into_iter().chain(words.split(' '));
        let said = world.program("timeout", ["30"].into_iter().chain(recant)).run();
        assert_ne!(said.status, 124, "{words}: {said}");
    }
    assert_eq!(has(&world, "1"), [true, true, true, false]);
    assert!(!bin.join("called").exists(), "git was called");
}

#[test]
fn what_is_restored_has_as_many_names_as_the_snapshot_has_whatever_stays() {
    use std::os::unix::fs::MetadataExt;
    let links = |world: &World, name: &str| world.path(name).symlink_metadata().expect("a file").nlink();
    let scene = || {
        let world = World::new();
        world.mkdir("d").write("a", "1").link("a", "b").link("a", "d/c").write("other", "1");
        snapshot(&world, "create").ok();
        world.write("a", "22").write("other", "22");
        snapshot(&world, "create").ok();
        world
    };
    let restore = |world: &World, words: &str, status: i32| {
        snapshot(world, &format!("restore 0 {words}")).with(status);
    };
    let world = scene();
    world.link("a", "new");
    restore(&world, "--keep-new", 0);
    assert_eq!(["a", "b", "d/c"].map(|name| links(&world, name)), [3, 3, 3]);
    assert_eq!((world.read("b"), world.read("new")), ("1".into(), "22".into()));
    world.recant("rollback last").ok();
    assert_eq!(links(&world, "new"), 4);

    let world = scene();
    world.write("other", "mine").remove("b");
    restore(&world, "--safe", 4);
    assert_eq!((world.read("other"), world.read("a")), ("mine".into(), "1".into()));
    assert!(!world.exists("b"), "that it is gone no snapshot has");
    assert_eq!(["a", "d/c"].map(|name| links(&world, name)), [2, 2], "those that are back");

    let world = scene();
    restore(&world, "a b", 0);
    assert_eq!(["a", "b"].map(|name| links(&world, name)), [2, 2]);
    assert_eq!((world.read("a"), world.read("b"), world.read("d/c")), ("1".into(), "1".into(), "22".into()));
    restore(&world, "d", 0);
    assert_eq!((links(&world, "d/c"), world.read("d/c")), (1, "1".into()));
    restore(&world, "", 0);
    assert_eq!(["a", "b", "d/c"].map(|name| links(&world, name)), [3, 3, 3]);
}
