//! The command line itself: help, usage, settings, completions, manual pages, closed pipes.

use std::io::Read;
use std::process::Stdio;

use crate::common::{self, Call, World};
use crate::desk::has;
use crate::on_stderr;
use insta::assert_snapshot;

/// Every verb there is, below the word that it comes behind.
const VERBS: [(&str, &str); 5] = [
    (
        "",
        "run shell session list show discard diff commit rollback undo redo checkpoint snapshot cat status prune recover log await doctor \
         config completions man mcp steps rewind fork confirm review",
    ),
    ("session ", "new write delete mkdir symlink chmod rename export import"),
    ("checkpoint ", "list show verify"),
    ("snapshot ", "create list show diff verify restore"),
    ("agent ", "install uninstall status guide run turns diff undo"),
];

/// Each verb as it is called: `session new`.
fn verbs() -> impl Iterator<Item = String> {
    VERBS.iter().flat_map(|(above, verbs)| verbs.split(' ').map(move |verb| format!("{above}{verb}")))
}

#[test]
fn every_verb_has_help_with_examples_that_fits_80_columns() {
    let world = World::new();
    assert_eq!(verbs().count(), 55);
    let help = |words: &str, columns: &str| {
        let text = world.call(words.split(' ')).env("COLUMNS", columns).env("LC_ALL", "C").run().ok().stdout();
        let wide: Vec<&str> = text.lines().filter(|line| line.len() > 80).collect();
        assert!(wide.is_empty() && text.is_ascii(), "recant {words} in {columns} columns: {wide:?}");
        text
    };
    for verb in verbs() {
        let text = help(&format!("{verb} --help"), "80");
        assert!(text.contains(&format!("Usage: recant {verb}")), "{text}");
        assert!(text.contains("Examples:\n  "), "{verb} has no example");
        // Nothing is told by --help that -h leaves out: what people see first is all there is.
        assert_eq!(text, help(&format!("{verb} -h"), "80"), "{verb}");
        assert_eq!(text, help(&format!("help {verb}"), "80"), "{verb}");
        assert!(text.contains("Options of all verbs: recant --help\n") && !text.contains("--no-install"), "{text}");
    }
    for words in ["--help", "-h", "help", "help run"] {
        ["80", "200", "0"].iter().for_each(|columns| drop(help(words, columns)));
    }
    let run = world.recant("run --help").ok().stdout().replace('\n', " ");
    assert!(run.contains("With --json the document is the last line of stderr"), "{run}");
    assert!(world.recant("--version").ok().stdout().starts_with("recant "));
    assert_eq!(world.recant("ls").ok().stdout(), world.recant("list").ok().stdout());
}

#[test]
fn help_has_the_verbs_by_what_they_are_for_and_the_options_of_all_verbs_once() {
    let world = World::new();
    let long = world.recant("--help").ok().stdout();
    let at = |word: &str| long.find(word).unwrap_or_else(|| panic!("{word}: {long}"));
    let titles = "Holds the file changes; Usage:; Hold:; Look:; Make real and take back:; Snapshots:; Other machines:; Upkeep:; \
                  Options of all verbs:; Examples:; Exit status:";
    let titles: Vec<&str> = titles.split("; ").collect();
    assert!(titles.is_sorted_by_key(|title| at(title)), "{long}");
    assert!(at("--store") > at("Options of all verbs:") && at("  commit ") < at("  rollback "), "{long}");
    assert_eq!(world.recant("help").ok().stdout(), long);
    assert_eq!(world.recant("-h").ok().stdout(), long);
    world.recant("help frob").with(2);
}

#[test]
fn a_misuse_is_told_as_clap_tells_it_and_2() {
    let world = World::new();
    for words in "frobnicate; session; session write; diff --stat --name-only; prune -q -v".split("; ") {
        let said = world.recant(words).with(2);
        assert!(said.out.is_empty() && said.stderr().contains("Usage: recant"), "{said}");
    }
    for words in ["dif", "comit last", "snapshot lst"] {
        assert!(world.recant(words).with(2).stderr().contains("similar subcommand"), "{words}");
    }
    let said = world.recant("prune --sessions --older-than 3y").with(2).stderr();
    assert!(said.contains("\"3y\" is not an age: a number and s, m, h, d or w, as in 30d"), "{said}");
    let error = world.recant("dif --json").with(2).json_err();
    assert_eq!((&error["kind"], &error["schema"]), (&"usage".into(), &2.into()));
    assert_eq!(error["message"], "unrecognized subcommand 'dif'");
    let error = world.recant("--json apply x").with(2).json_err();
    assert_eq!(error["remedy"], "recant commit ID makes real what is held");
}

#[test]
fn words_of_other_programs_and_bare_commands_get_recant_s_way() {
    let world = World::new();
    for (words, tip) in [
        ("apply x", "recant commit ID makes real what is held"),
        ("abort", "recant discard ID drops what is held"),
        ("rm last", "recant discard ID drops what is held"),
        ("revert", "recant undo takes back what was committed"),
        ("snapshot rm 3", "recant prune --snapshots --number N drops one"),
        ("snapshot restore", "recant snapshot list shows the numbers"),
        ("--store=/srv/s reset", "recant --store /srv/s discard ID drops what is held"),
        ("-Hweb1 restore --store s", "recant -H web1 --store s snapshot restore N restores a directory"),
        ("--host web1 session rm", "recant -H web1 session delete ID PATH stages a deletion"),
        ("touch f -v", "recant run -- touch f -v"),
        ("-H web1 touch f", "recant -H web1 run -- touch f"),
    ] {
        let said = world.recant(words).with(2).stderr();
        assert!(said.contains(&format!("\n  tip: {tip}\n")), "{words}: {said}");
    }
    let said = world.call(["run", "echo hi > x"]).run().with(127).stderr();
    assert!(said.contains("for a shell line: recant run -- sh -c 'echo hi > x'"), "{said}");
}

#[test]
fn an_option_that_run_does_not_know_is_a_misuse_and_no_command() {
    let world = World::new();
    // A program that is no agent known is held by run, with its arguments.
    let said = world.recant("agent run ./agent.sh --fast").with(2).stderr();
    assert!(said.contains("tip: recant run --session NAME -- ./agent.sh --fast\n"), "{said}");
    assert!(world.recant("run --comit -- true").with(2).stderr().contains("tip: a similar argument exists: '--commit'"));
    assert!(world.recant("run -q -x true").with(2).stderr().contains("unexpected argument '-x' found"));
    // From the command's first word on they are the command's, whatever they are called.
    assert_eq!(world.recant("run echo -x --comit -- --commit").ok().stdout(), "-x --comit -- --commit\n");
    assert_eq!(world.recant("run -q -- echo -q").ok().err, b"");
    let said = world.recant("run -- --comit").with(127);
    assert!(said.stderr().contains("--comit: command not found"), "{said}");
}

#[test]
fn options_of_all_verbs_stand_before_or_after_the_verb() {
    let world = World::new();
    let store = world.root().join("other");
    let store = store.to_str().unwrap();
    let id = world.call(["--store", store, "session", "new", "--json"]).run().ok().json()["id"].clone();
    let listed = world.call(["list", "--json", "--store", store]).run().ok().json();
    assert_eq!(listed["sessions"][0]["id"], id);
    assert!(!world.store().exists());
    assert_eq!(
        world.call(["--store", "../other", "list"]).run().ok().stdout().lines().count(),
        2,
        "relative to the working directory"
    );
}

#[test]
fn quiet_says_less_and_verbose_more() {
    let world = World::new();
    let id = world.begin();
    let write =
        |option: &str| world.call(["session", "write", &id, "f", option]).stdin(option).run().ok().masked_err().to_owned();
    assert_eq!((&*write("-v"), &*write("-q")), ("recant: staged: /world/tree/f\n", ""));
    assert_eq!(world.recant("diff -q").ok().err, b"");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "large", "line\n".repeat(200_000));
    for args in [&["diff", &*id][..], &["cat", &id, "large"], &["completions", "bash"], &["--help"], &["man"]] {
        let mut child = world.call(args).command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() && said.is_empty(), "{args:?}: {status}: {said}");
    }
}

#[test]
fn a_standard_output_that_is_full_is_an_error_which_says_whether_something_was_done() {
    let world = World::new();
    let id = world.begin();
    world.stage_write(&id, "f", "x");
    let say = |args: &[&str]| {
        let out = world.call(args).command().stdout(common::full()).output().unwrap();
        (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let unwritten = "recant: standard output: cannot write: no space left on device\n        ";
    let reading = [&["diff", &*id][..], &["list"], &["status"], &["man"], &["--help"], &["commit", "-h"], &["--version"]];
    for args in reading.iter().chain(&[&["commit", &*id, "--dry-run"][..]]) {
        let (status, said) = say(args);
        assert!(status == 1 && said.contains(&format!("{unwritten}nothing was changed\n")), "{args:?}: {status}: {said}");
    }
    for args in [&["session", "new", "-n", "new"][..], &["commit", &id], &["rollback", &id]] {
        let (status, said) = say(args);
        assert!(status == 4 && said.contains(&format!("{unwritten}all is done; ")), "{args:?}: {status}: {said}");
    }
    let sessions = world.recant("list --json").ok().json()["sessions"].clone();
    assert_eq!((&sessions[0]["name"], &sessions[1]["status"]), (&"new".into(), &"rolled_back".into()));
}

#[test]
fn closed_streams_are_as_good_as_dev_null_and_a_lost_reader_of_messages_is_no_failure() {
    let world = World::new();
    let id = world.begin();
    world.write("f", "old").stage_write(&id, "f", "new");
    let program = common::recant();
    for (n, streams) in ["<&- >&- 2>&-", ">&-", "2>&-", "2>/dev/full", ">&- 2>/dev/full"].into_iter().enumerate() {
        let verbs =
            ["list", "log", "show ID", "diff ID", "status", "recover", "commit ID", "rollback ID", "redo ID", "rollback ID"];
        // The first round commits, every later one does it again.
        let verbs = verbs.into_iter().map(|verb| if n > 0 && verb == "commit ID" { "redo ID" } else { verb });
        for verb in verbs.filter(|verb| n == 0 || *verb != "redo ID" || world.status(&id) != "committed") {
            let said = world.program("sh", ["-c", &format!("{program} {} {streams}", verb.replace("ID", &id))]).run().ok();
            assert!(!said.stderr().contains("panicked"), "{verb} {streams}: {said}");
            let want = match verb {
                "commit ID" | "redo ID" => Some("new"),
                "rollback ID" => Some("old"),
                _ => None,
            };
            assert!(want.is_none_or(|want| world.read("f") == want), "{verb} {streams}");
        }
        // A failure is one, also where it cannot be said.
        world.program("sh", ["-c", &format!("{program} show nothing {streams}")]).run().with(1);
    }
    world.program("sh", ["-c", &format!("{program} log | head -1 && {program} commit {id} | true")]).run().ok();
    assert_eq!(world.read("f"), "new");
}

#[test]
fn what_keeps_recant_from_its_own_store_is_said_with_the_remedy() {
    let world = World::new();
    let id = world.begin();
    world.write("f", "old").stage_write(&id, "f", "new");
    let last = |said: &common::Said| said.masked_err().lines().last().unwrap_or_default().trim().to_owned();
    let other = "or use another store: --store DIR, RECANT_STORE";
    if rustix::process::geteuid().is_root() {
        // Root writes to what is closed; a mount in a namespace of its own it cannot pass.
        let said = |options: &str, words: &str| {
            let script = format!(
                "mount -t tmpfs {options} none /mnt && cp -a \"$RECANT_STORE\" /mnt/store && \
                 {{ head -c 9M /dev/zero > /mnt/fill; true; }} 2>/dev/null && mount -o remount,$0 /mnt && \
                 RECANT_STORE=/mnt/store exec {} {words}",
                common::recant()
            );
            let mode = if options.contains("size") { "rw" } else { "ro" };
            world.program("unshare", ["-m", "sh", "-c", &script, mode]).stdin([b'x'; 9000]).run()
        };
        for words in ["session new".into(), format!("session write {id} g"), format!("commit {id}"), "run -- true".into()] {
            let status = if words.starts_with("run") { 125 } else { 1 };
            let full = said("-o size=1m", &words).with(status);
            let remedy = format!("make room where the store is, /mnt/store: recant status shows what a prune frees; {other}");
            assert_eq!(last(&full), remedy, "{words}: {full}");
            let shut = said("-o mode=0700", &words).with(status);
            let remedy = format!("the store, /mnt/store, is on a read-only file system: mount it for writing, {other}");
            assert_eq!(last(&shut), remedy, "{words}: {shut}");
        }
        return;
    }
    world.chmod(world.store().join("sessions"), 0o500);
    let said = world.recant("session new").with(1);
    world.chmod(world.store().join("sessions"), 0o700);
    assert_eq!(last(&said), format!("the store, /world/store, has to be writable for you, {other}"), "{said}");
    // One that cannot be made.
    world.mkdir("closed").chmod("closed", 0o500);
    let said = world.recant("session new --store closed/sub/store").with(1);
    assert_eq!(last(&said), format!("the store, /world/tree/closed/sub/store, has to be writable for you, {other}"), "{said}");
}

#[test]
fn a_store_that_cannot_be_reached_is_refused_with_what_to_do() {
    let mut world = World::new();
    world.write("file", "no directory");
    world.set("RECANT_STORE", world.path("file").join("store").display().to_string());
    assert_snapshot!(on_stderr(&world.recant("list"), 1), @r#"
    recant: /world/tree/file/store: cannot resolve: not a directory
            nothing was changed
            use a store in a directory that you can enter: --store DIR, RECANT_STORE
    "#);
}

#[test]
fn a_directory_that_is_no_store_is_refused_without_a_word_on_its_rights() {
    let world = World::new();
    world.write("directory/file", "x").chmod("directory", 0o777).write("file", "x");
    assert_snapshot!(on_stderr(&world.recant("list --store directory"), 1), @r#"
    recant: /world/tree/directory: this directory is not empty, and not a store of recant
            nothing was changed
            name a store, an empty directory, or a new one: --store DIR, RECANT_STORE
    "#);
    for verb in ["list", "session new"] {
        assert!(world.recant(&format!("{verb} --store directory")).with(1).stderr().contains("not a store of recant"));
        assert!(world.recant(&format!("{verb} --store file")).with(1).stderr().contains("/file: cannot open the store"));
    }
    world.begin();
    world.remove(world.store().join("journals"));
    let said = world.recant("list").with(5).stderr();
    assert!(said.contains("/journals: the store is damaged: the directory is missing; "), "{said}");
    assert!(said.contains("empty: mkdir -p -m 700 "), "{said}");
}

/// A call of recant at a terminal, which script(1) makes.
fn on_a_terminal(world: &World, words: &str) -> Call {
    world.program("script", ["-qec", &format!("{} {words}", common::recant()), "/dev/null"])
}

#[test]
fn remedies_and_what_is_skipped_are_broken_on_a_terminal_alone_and_no_command_is() {
    let Some(world) = has("script").then(World::new) else { return };
    let on_a_terminal = |words: &str| on_a_terminal(&world, words).run().stdout().replace('\r', "");
    let id = world.begin();
    world.stage_write(&id, "new/f", "mine").recant(&format!("commit {id}")).ok();
    let others = ["one", "two", "three"].map(|name| format!("new/somebody-else-s-file-{name}"));
    others.iter().for_each(|name| _ = world.write(name, "theirs"));
    let [wide, narrow] = [
        &*world.recant(&format!("rollback {id} --dry-run")).with(4).stdout(),
        &*on_a_terminal(&format!("rollback {id} --dry-run")),
    ]
    .map(|said| {
        said.lines()
            .skip_while(|line| !line.starts_with("skipped"))
            .take_while(|line| !line.starts_with("recant"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    assert_eq!(wide.len(), 1, "{wide:?}");
    assert!(narrow.len() > 2 && narrow[1..].iter().all(|line| line.starts_with("          ")), "{narrow:?}");
    let words = |lines: &[String]| lines.iter().flat_map(|line| line.split_whitespace().map(str::to_owned)).collect::<Vec<_>>();
    assert_eq!(words(&wide), words(&narrow));
    // A path has no blank to be broken at.
    let room = |line: &&String| line.chars().count() > 80 && line.trim().contains(' ');
    assert_eq!(narrow.iter().find(room), None);
    world.write("new/f", "theirs");
    let said = on_a_terminal(&format!("rollback {id}"));
    let remedy = "\n        recant diff XXXX --conflicts shows both sides; --force goes on, and\n        keeps a copy of what it overwrites\n";
    assert!(said.ends_with(&remedy.replace("XXXX", &id[16..])), "{said}");
}

#[test]
fn without_a_working_directory_absolute_paths_do() {
    let world = World::new();
    let id = world.begin();
    let file = world.path("f").to_string_lossy().into_owned();
    let shell = |words: &str| {
        let script = format!("mkdir gone && cd gone && rmdir ../gone && {} {words}", common::recant());
        world.program("sh", ["-c", &script]).stdin("x").run()
    };
    shell(&format!("session write {id} {file}")).ok();
    shell(&format!("diff {id} {file}")).ok();
    shell(&format!("commit {id} {file}")).ok();
    assert_eq!(world.read("f"), "x");
    assert_snapshot!(on_stderr(&shell(&format!("rollback {id} f")), 1), @r#"
    recant: cannot find the working directory: no such file or directory
            nothing was changed
            change to a directory that exists, or give absolute paths
    "#);
    let said = world.recant("list").ok();
    assert!(said.stdout().contains(&id[16..]), "{said}");
    let mut world = world;
    world.unset("RECANT_STORE").unset("XDG_DATA_HOME").set("HOME", "relative");
    assert!(world.recant("list").with(1).stderr().contains("HOME=relative: the store's path has to be absolute"));
}

#[test]
fn without_a_working_directory_a_verb_says_that_it_cannot_tell_the_project_and_a_name_is_enough() {
    let world = World::new();
    world.write("f", "old");
    let id = world.edited("f");
    let shell = |words: &str| {
        let script = format!("mkdir gone && cd gone && rmdir ../gone && {} {words}", common::recant());
        world.program("sh", ["-c", &script]).run()
    };
    assert_snapshot!(on_stderr(&shell(""), 1), @r#"
    recant: cannot tell which project this is: the working directory no longer exists
            nothing was changed
            cd into the project, or name a session by its ID (recant list --all)
    "#);
    let said = shell("").with(1);
    for words in ["rollback last", "commit last", "undo -y", "discard --all -y"] {
        assert_eq!(shell(words).with(1).stderr(), said.stderr(), "{words}");
    }
    shell("show last").ok();
    shell(&format!("commit {id}")).ok();
    shell(&format!("rollback {id}")).ok();
}

#[test]
fn what_takes_longer_than_a_moment_shows_how_far_it_is_on_a_terminal_alone() {
    let Some(world) = has("script").then(World::new) else { return };
    let on_a_terminal = |words: &str, steps: &str| {
        let call = on_a_terminal(&world, words).env("TERM", "xterm").env("RECANT_STEPS", steps);
        String::from_utf8_lossy(&call.command().output().unwrap().stdout).into_owned()
    };
    let steps = world.root().join("steps");
    let scene = || {
        let id = world.begin();
        for i in 0..6 {
            world.stage_write(&id, format!("f{i}"), "x");
        }
        id
    };
    let quick = scene();
    let said = on_a_terminal(&format!("commit {quick}"), &format!("log:{}", steps.display()));
    assert!(said.contains("6 changes committed"), "{said:?}");
    let steps = std::fs::read_to_string(steps).unwrap();
    let place = steps.lines().position(|line| line.contains("NOREPLACE") && line.contains("/tree/f2")).unwrap() + 1;
    world.call(["rollback", &quick]).run().ok();
    // The fourth file takes its time: at the fifth it is known that this takes long.
    let slow = format!("run:{place}:sleep 0.4");
    let said = on_a_terminal(&format!("redo {quick} -q"), &slow);
    assert!(!said.contains("commit ["), "{said:?}");
    world.call(["rollback", &quick]).run().ok();
    world.call(["prune", "--sessions", &quick]).run().ok();
    let id = scene();
    let said = on_a_terminal(&format!("commit {id}"), &slow);
    assert!(said.contains("commit [") && said.contains("/6"), "{said:?}");
    world.call(["rollback", &id]).run().ok();
    let said = world.call(["redo", &id]).env("RECANT_STEPS", &slow).run().ok();
    assert!(!said.stderr().contains("redo ["), "{said}");
}

#[test]
fn an_id_that_nothing_has_is_refused_by_every_verb_that_takes_one() {
    let world = World::new();
    for _ in 0..2 {
        for verb in
            ["show", "diff", "commit", "rollback", "redo", "discard", "recover", "log", "checkpoint show", "checkpoint verify"]
                .into_iter()
                .chain(["prune --checkpoints", "prune --sessions", "session rename", "cat ID"])
        {
            let words = verb.replace(" ID", "") + " nothing" + if verb == "cat ID" { " f" } else { "" };
            let said = world.recant(&words).with(1);
            assert!(said.stderr().starts_with("recant: no session \"nothing\"") && said.stdout().is_empty(), "{words}: {said}");
        }
        world.begin();
    }
}

#[test]
fn the_help_of_config_shows_every_setting_and_its_example_is_read() {
    let world = World::new();
    let help = world.recant("config --help").ok().stdout();
    let (_, tables) = help.split_once("~/.config:\n").unwrap();
    let (tables, top) = tables.split_once("At the top, before the first table:\n").unwrap();
    let (top, _) = top.split_once("\n\n").unwrap();
    // An example, then its explanation two blanks apart.
    let example = |text: &str| {
        text.lines()
            // A long explanation goes on below itself.
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .map(|line| line.trim().split("  ").next().unwrap().to_owned() + "\n")
            .collect::<String>()
    };
    world.config(&(example(top) + &example(tables)));
    for row in world.call(["config", "--json", "--store", "s"]).run().ok().rows() {
        let from = row["from"].as_str().unwrap();
        assert!(from == "file" || row["key"] == "store.path", "{row}");
    }
}

#[test]
fn config_prints_what_is_in_force_and_where_it_comes_from() {
    let mut world = World::new();
    world.set("PAGER", "more");
    world.config(
        "[checkpoint]\nmax_size = '1M'\non_limit = 'partial'\n[commit]\ndeny = ['/etc/**']\n[retention]\nolder_than = '14d'\n",
    );
    let squeezed = |text: &str| {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(squeezed(world.recant("config").ok().masked_out()), @"
    store.path /world/store $RECANT_STORE
    store.warn_size 5.0 GiB default
    capture.also none default
    capture.pass none default
    capture.hide none default
    capture.caches /world/home/.npm/_cacache
    default
    /world/home/.cargo/registry
    /world/home/.cargo/git
    /world/home/.cargo/.package-cache
    /world/home/.cargo/.package-cache-mutate
    /world/home/go/pkg/mod
    /world/home/go/pkg/sumdb
    /world/home/.m2/repository
    /world/home/.gradle/caches
    /world/home/.cache
    capture.keep_before true default
    capture.listen true default
    checkpoint.max_files 100 default
    checkpoint.max_size 1.0 MiB file
    checkpoint.on_limit partial file
    commit.deny /etc/** file
    commit.minor /world/home/.cache default
    /world/home/.local/state
    /world/home/.*_history
    /world/home/.lesshst
    /tmp
    /var/tmp
    agent.commit refuse default
    agent.closed /world/home/.ssh default
    /world/home/.gnupg
    /world/home/.aws/credentials
    /world/home/.aws/cli
    /world/home/.aws/sso
    /world/home/.aws/config
    /world/home/.config/gcloud
    /world/home/.azure
    /world/home/.kube
    /world/home/.local/share/keyrings
    /world/home/.local/share/kwalletd
    /world/home/.bitcoin
    /world/home/.electrum
    /world/home/.ethereum
    /world/home/.config/solana
    /world/home/.mozilla
    /world/home/.librewolf
    /world/home/.config/google-chrome
    /world/home/.config/chromium
    /world/home/.config/microsoft-edge
    /world/home/.config/BraveSoftware
    /world/home/.config/vivaldi
    /world/home/.config/opera
    /world/home/snap/firefox
    /world/home/snap/chromium
    /world/home/.var/app/org.mozilla.firefox
    /world/home/.var/app/com.google.Chrome
    /world/home/.var/app/org.chromium.Chromium
    /world/home/.thunderbird
    /world/home/.password-store
    /world/home/.config/Bitwarden
    /world/home/.config/Bitwarden CLI
    /world/home/.config/1Password
    /world/home/.config/op
    /world/home/.config/keepassxc
    /world/home/.netrc
    /world/home/.git-credentials
    /world/home/.config/git/credentials
    /world/home/.npmrc
    /world/home/.cargo/credentials.toml
    /world/home/.cargo/credentials
    /world/home/.pypirc
    /world/home/.docker/config.json
    /world/home/.config/gh/hosts.yml
    /world/home/.config/glab-cli/config.yml
    agent.ssh_agent true default
    agent.notify none default
    agent.network none default
    agent.keep 200 default
    agent.byproducts *.o default
    *.a
    *.so
    *.class
    *.pyc
    *.swp
    agent.policy.commit none default
    agent.policy.max_files 50 default
    retention.keep none default
    retention.older_than 2w file
    retention.discarded 1w default
    snapshot.keep 50 default
    snapshot.max_size 5.0 GiB default
    snapshot.max_files 50000 default
    steps.keep 200 default
    steps.max_size 2.0 GiB default
    remote.ssh ssh default
    remote.timeout 1m default
    output.paths 20 default
    diff.pager more $PAGER
    diff.tool none default
    color auto default
    pager more $PAGER
    ");
    // In 80 columns, but for a value that is wider alone: it stays whole, and its source is on the next line.
    let wide = format!("/{}", "x".repeat(50));
    world.set("RECANT_STORE", &wide);
    let said = world.recant("config").ok().stdout();
    let mut lines = said.lines();
    assert_eq!(lines.next().map(|line| line.split_whitespace().collect::<Vec<_>>()), Some(vec!["store.path", &wide]));
    assert!(lines.next().is_some_and(|line| line.starts_with("     ") && line.ends_with("  $RECANT_STORE")), "{said}");
    let home = world.root().join("home").display().to_string();
    let too_wide = |line: &&str| line.replace(&home, "/home/me").chars().count() > 80;
    assert_eq!(said.lines().find(too_wide), None, "{said}");
    world.unset("RECANT_STORE").unset("PAGER").set("NO_COLOR", "1");
    let rows = world.recant("config --json").ok().rows();
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap().clone();
    assert_eq!(row("store.path")["from"], "environment ($XDG_DATA_HOME)");
    assert_eq!(row("color")["from"], "environment ($NO_COLOR)");
    assert_eq!((&row("checkpoint.max_size")["value"], &row("checkpoint.max_size")["from"]), (&1_048_576.into(), &"file".into()));
    assert_eq!(row("checkpoint.max_files")["from"], "default");
}

#[test]
fn config_lists_the_settings_of_agents_and_machines_by_their_keys() {
    let world = World::new();
    world.config("[agent.claude]\npass = ['/srv']\n[remotes.web]\nsudo = true\n[remotes.db]\nstore = '/s'\n");
    let rows = world.recant("config --json").ok().rows();
    let named = rows.iter().filter(|row| row["key"].as_str().unwrap().split('.').count() == 3 && row["from"] == "file");
    let named: Vec<_> =
        named.map(|row| (row["key"].as_str().unwrap(), row["value"].to_string(), row["from"].as_str().unwrap())).collect();
    let expected = [("agent.claude.pass", "[\"/srv\"]"), ("remotes.db.store", "\"/s\""), ("remotes.web.sudo", "true")];
    assert_eq!(named, expected.map(|(key, value)| (key, value.to_owned(), "file")));
}

#[test]
fn the_defaults_are_the_same_without_a_file_with_an_empty_one_and_without_home() {
    let mut world = World::new();
    let rows = |world: &World| world.recant("config --json").ok().rows();
    let minor = |rows: &[serde_json::Value]| rows.iter().find(|row| row["key"] == "commit.minor").unwrap()["value"].clone();
    let without = rows(&world);
    let cache = world.root().join("home/.cache");
    assert_eq!(minor(&without)[0], cache.to_str().unwrap());
    world.config("");
    assert_eq!(rows(&world), without);
    // The home of the user database, then.
    world.unset("HOME").unset("XDG_CONFIG_HOME");
    assert_eq!(minor(&rows(&world)).as_array().unwrap().len(), 6);
}

#[test]
fn settings_that_are_wrong_stop_every_verb_but_help() {
    let world = World::new();
    world.config("[checkpoint]\nmax_filez = 3\n");
    assert_snapshot!(on_stderr(&world.recant("list"), 1), @r#"
    recant: /world/config/recant/config.toml: unknown key "checkpoint.max_filez"; the nearest known one is "checkpoint.max_files"
            nothing was changed
            recant config shows the known keys once the file is corrected
    "#);
    world.config("[checkpoint]\nmax_size = 'much'\n");
    assert_snapshot!(on_stderr(&world.recant("list"), 1), @r#"
    recant: /world/config/recant/config.toml: checkpoint.max_size: "much" is not a size: a number of bytes, or with K, M or G, as in 50M or 50MiB
            nothing was changed
    "#);
    world.config("store = \n");
    assert_snapshot!(on_stderr(&world.recant("list --json"), 1), @r#"
    {"schema":2,"kind":"refused","message":"/world/config/recant/config.toml: line 1: string values must be quoted, expected literal string","path":"/world/config/recant/config.toml","state":"nothing was changed","remedy":null}
    "#);
    world.config("color = 'auto'\n[checkpoint]\nmax_files = 'many'\n");
    assert_snapshot!(on_stderr(&world.recant("list"), 1), @r#"
    recant: /world/config/recant/config.toml: line 3: checkpoint.max_files: expected a whole number, found 'many'
            nothing was changed
    "#);
    for words in ["--help", "completions bash", "man"] {
        world.recant(words).ok();
    }
}

#[test]
fn the_store_is_where_option_environment_settings_and_xdg_say_in_this_order() {
    let mut world = World::new();
    let data = world.root().join("data/recant").to_str().unwrap().to_owned();
    let home = world.root().join("home");
    let path = |world: &World| world.recant("config --json").ok().json()["settings"][0]["value"].as_str().unwrap().to_owned();
    assert_eq!(path(&world), world.store().to_str().unwrap());
    world.unset("RECANT_STORE").config("[store]\npath = '~/mine'\n");
    assert_eq!(path(&world), home.join("mine").to_str().unwrap());
    world.config("");
    assert_eq!(path(&world), data);
    world.set("XDG_DATA_HOME", "relative/is/ignored");
    assert_eq!(path(&world), home.join(".local/share/recant").to_str().unwrap());
    world.set("RECANT_STORE", "relative");
    assert_snapshot!(on_stderr(&world.recant("list"), 1), @r#"
    recant: RECANT_STORE=relative: the store's path has to be absolute
            nothing was changed
            a relative one would be another store in each working directory; --store DIR may be relative
    "#);
    world.unset("RECANT_STORE");
    world.begin();
    assert!(home.join(".local/share/recant/format").is_file());
}

#[test]
fn without_a_home_the_store_has_to_be_named() {
    let mut world = World::new();
    world.unset("HOME").unset("XDG_DATA_HOME").unset("XDG_CONFIG_HOME").unset("RECANT_STORE");
    if !rustix::process::geteuid().is_root() {
        common::skip("only root can become a user without a home");
        return;
    }
    world.chmod(world.root(), 0o777).chmod(world.tree(), 0o777);
    let nobody = |args: &[&str]| world.call(args).user(54_321, 54_321).run();
    let said = nobody(&["list"]);
    if said.status == 126 || said.status == 127 {
        common::skip("another user cannot reach the program");
        return;
    }
    assert_snapshot!(on_stderr(&said, 1), @r#"
    recant: no home directory is known, so there is no place for the store
            nothing was changed
            set HOME, or name the store: recant --store DIR …, or RECANT_STORE=DIR
    "#);
    nobody(&["--store", world.path("mine").to_str().unwrap(), "session", "new"]).ok();
    assert_eq!(nobody(&["config"]).status, 0);
    nobody(&["completions", "zsh"]).ok();
}

#[test]
fn each_shell_is_told_to_ask_recant() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(world.recant(&format!("completions {shell}")).ok().stdout().contains("RECANT_COMPLETE"), "{shell}");
    }
    world.recant("man far").with(2);
    assert_eq!(world.recant("completions csh").status, 2);
}

#[test]
fn manual_pages_keep_the_lines_of_examples_and_read_the_same_in_any_locale() {
    let Some(world) = has("man").then(World::new) else { return };
    world.mkdir("man1").recant("man --dir man1").ok();
    let shown = |page: &str, locale: &str| {
        let page = world.path(format!("man1/{page}.1"));
        let call = world.program("man", ["-l", page.to_str().unwrap()]).env("LC_ALL", locale).env("MANWIDTH", "100");
        let said = call.env("MANPAGER", "cat").env("MAN_KEEP_FORMATTING", "").run().ok();
        assert!(said.err.is_empty(), "{said}");
        said.stdout()
    };
    for verb in std::iter::once("recant".to_owned()).chain(verbs().map(|verb| format!("recant-{}", verb.replace(' ', "-")))) {
        let page = world.read(format!("man1/{verb}.1"));
        assert!(page.is_ascii(), "{verb}");
    }
    for page in ["recant", "recant-commit", "recant-config", "recant-run"] {
        let [plain, unicode] = ["C", "C.UTF-8"].map(|locale| shown(page, locale));
        // But for bullets and hyphens at a line's end, which a locale may have.
        assert_eq!(plain, unicode.replace(['\u{2010}', '\u{2212}'], "-"), "{page}");
        let help = world.recant(&format!("help {}", page.trim_start_matches("recant").trim_start_matches('-'))).ok().stdout();
        // What does not fit is on two lines.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in help.split("Examples:").nth(1).unwrap().lines().filter_map(|line| line.strip_prefix("  ")) {
            assert!(words(&plain).contains(&words(line)), "{page}: {line}:\n{plain}");
        }
    }
    let pages =
        verbs().map(|verb| world.path(format!("man1/recant-{}.1", verb.replace(' ', "-")))).chain([world.path("man1/recant.1")]);
    let words = std::iter::once("-l".into()).chain(pages);
    let call = world.program("man", words).env("LC_ALL", "C").env("MANWIDTH", "80");
    let said = call.env("MANPAGER", "cat").env("MAN_KEEP_FORMATTING", "").run().ok().stdout();
    assert_eq!(said.lines().find(|line| line.chars().count() > 80), None);
    assert_eq!(said.matches("\nSYNOPSIS\n").count(), 56, "all pages are shown");
    let text = shown("recant", "C");
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word}: {text}"));
    assert!(["OPTIONS OF ALL VERBS", "recant-run(1)", "EXAMPLES", "EXIT STATUS"].is_sorted_by_key(|word| at(word)), "{text}");
    assert!(shown("recant-config", "C").contains("recant -H web ..."));
}

#[test]
fn there_is_a_manual_page_for_every_verb() {
    let world = World::new();
    assert!(world.recant("man").ok().stdout().contains(".TH recant 1"));
    assert!(world.recant("man session write").ok().stdout().contains("recant\\-session\\-write"));
    let page = world.recant("man snapshot restore").ok().stdout();
    assert_eq!(world.recant("man snapshot-restore").ok().stdout(), page);
    assert_eq!(world.recant("man recant-snapshot-restore").ok().stdout(), page);
    assert_snapshot!(on_stderr(&world.recant("man session fly"), 2), @r#"
    recant: there is no verb "session fly"
            recant --help shows the verbs
    "#);
    world.mkdir("man1").write("man1/recant-list.1", "old");
    world.recant("man --dir man1").ok();
    for verb in verbs() {
        let page = world.read(format!("man1/recant-{}.1", verb.replace(' ', "-")));
        assert!(page.contains(".SH SYNOPSIS"), "{verb}");
    }
    assert_eq!(world.manifest().0[&b"man1/recant.1"[..]].mode, 0o644);
    world.recant("man --dir none").with(1);
}

/// Options before or after any verb.
const GLOBAL: [&str; 8] = ["--store", "--json", "--color", "--quiet", "--verbose", "--yes", "--host", "--help"];

/// The texts in quotes of a line of code.
fn texts_of(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

/// The options of a call that this help does not name.
fn unknown_options<'c>(call: &'c str, help: &str) -> impl Iterator<Item = &'c str> {
    let named = |option: &&str| [" ", "\n", "=", "["].iter().any(|end| help.contains(&format!("{option}{end}")));
    let words = call.split([' ', '=', '\'', ')', '(', '{']).filter(|word| word.starts_with("--") && word.len() > 2);
    words.filter(move |option| !named(option) && !GLOBAL.contains(option)).collect::<Vec<_>>().into_iter()
}

/// An example must be a line that would be accepted.
#[test]
fn examples_of_help_have_the_options_that_there_are() {
    let world = World::new();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for verb in verbs() {
        let help = world.call(format!("{verb} --help").split(' ')).run().ok().stdout();
        // The options stand above the examples.
        let (options, examples) = help.split_once("Examples:").unwrap_or((&help, ""));
        for line in examples.lines().filter_map(|line| line.trim_start().strip_prefix(&format!("recant {verb} "))) {
            // What it is for stands behind two spaces; what an agent gets behind its name.
            let ends = ["  ", " -- ", " claude "];
            let call = ends.iter().fold(line, |call, end| call.split(end).next().unwrap_or_default());
            let call = call.split(['|', '<', '>', ';', '&']).next().unwrap_or_default();
            seen += call.matches(" --").count();
            wrong.extend(unknown_options(call, options).map(|option| format!("recant {verb}: {option}: {line}")));
        }
    }
    assert!(seen > 15, "only {seen} options are named");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A remedy must be a line that would be accepted.
#[test]
fn commands_that_the_code_names_have_the_options_that_there_are() {
    let world = World::new();
    let known: Vec<(String, String)> = verbs()
        .map(|verb| {
            let help = world.call(format!("{verb} --help").split(' ')).run().ok().stdout();
            (verb, help)
        })
        .collect();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let mut todo = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                let is_command = line.contains("command(");
                for text in texts_of(line) {
                    // `command("log -v")`, or "recant cat --before shows …": up to the next sentence.
                    let called = text.split("recant ").skip(1).chain(is_command.then_some(text));
                    for call in called {
                        let call = call.split([';', ',', ':']).next().unwrap_or_default();
                        let meant = known.iter().filter(|(verb, _)| call == verb || call.starts_with(&format!("{verb} ")));
                        let Some((verb, help)) = meant.max_by_key(|(verb, _)| verb.len()) else { continue };
                        seen += call.matches(" --").count();
                        let unknown = unknown_options(call, help);
                        wrong.extend(unknown.map(|option| format!("{}: recant {verb} has no {option}: {text}", path.display())));
                    }
                }
            }
        }
    }
    assert!(seen > 30, "only {seen} options are named");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Below a home directory, and for all users: what comes goes again, and each unit starts the program that lies there.
#[test]
fn what_make_install_brings_make_uninstall_takes_away() {
    if !has("make") {
        return;
    }
    let world = World::new();
    let (to, home) = (world.root().join("to"), world.root().join("home"));
    let make = |goal: &str, prefix: &str| {
        let set = |name: &str, value: &str| format!("{name}={value}");
        let (release, to) = (common::recant().to_owned(), to.display().to_string());
        let top = env!("CARGO_MANIFEST_DIR");
        let words = ["-s", "-C", top, "-o", "static", goal].map(str::to_owned);
        let set =
            [set("release", &release), set("DESTDIR", &to), set("PREFIX", prefix), set("TARGET", "x"), set("processor", "x")];
        let (path, home) = ("/usr/local/bin:/usr/bin:/bin", home.as_os_str());
        world.program("make", words.iter().chain(&set)).env("PATH", path).env("HOME", home).run().ok()
    };
    let files = || {
        let found = walkdir::WalkDir::new(&to).into_iter().map(Result::unwrap).filter(|found| found.file_type().is_file());
        found.map(|found| found.into_path()).collect::<Vec<_>>()
    };
    for (prefix, units) in [("/usr/local", 2), (&*home.join(".local").display().to_string(), 1)] {
        let said = make("install", prefix);
        assert_eq!(said.stdout().contains(&format!("PATH=\"{prefix}/bin:$PATH\"")), units == 1, "the way to find it: {said}");
        let is_unit = |path: &&std::path::PathBuf| path.ends_with("recant-recover.service");
        let found: Vec<_> = files().iter().filter(is_unit).map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert_eq!(found.len(), units, "{prefix}");
        assert!(found.iter().all(|unit| unit.contains(&format!("ExecStart={prefix}/bin/recant recover\n"))), "{found:?}");
        assert!(files().iter().any(|path| path.ends_with("man1/recant-commit.1")));
        make("uninstall", prefix);
        assert_eq!(files(), Vec::<std::path::PathBuf>::new(), "{prefix}");
    }
}
