//! `run --in`: a command on the real tree between two snapshots, whose difference is a committed session like any other.

use std::path::Path;

use crate::common::sweep::steps_of;
use crate::common::{self, World, manifest};
use crate::desk::{self, Desk, Who, has};
use crate::{confined, whos};

#[test]
fn snapshots_of_runs_go_as_the_settings_say_which_is_told_and_none_with_a_label_goes() {
    let Some(world) = confined() else { return };
    world.write("in/f", "0").config("[snapshot]\nkeep = 3\n");
    world.recant("snapshot create in --label before").ok();
    let run = |content: &str| world.call(["run", "--in", "in", "--", "sh", "-c", &format!("echo {content} > in/f")]).run().ok();
    let there = || world.recant("snapshot list in --json").ok().rows().len();
    let mut told = Vec::new();
    for round in 1..6 {
        told.push(run(&round.to_string()).stderr().contains(" pruned: snapshot.keep is 3"));
        assert!(there() <= 4, "{round}: {} snapshots", there());
    }
    assert!(!told[0] && told[4], "{told:?}");
    // The two of the run stay, however few are to be kept.
    world.config("[snapshot]\nkeep = 1\n");
    run("last");
    assert_eq!(there(), 3);
    world.recant("rollback last").ok();
    assert_eq!(world.read("in/f"), "5\n");
    world.recant("snapshot restore before in").ok();
    assert_eq!(world.read("in/f"), "0");
}

#[test]
fn what_a_command_does_to_the_real_tree_is_taken_back_exactly() {
    let Some(world) = confined() else { return };
    world.write("edited", "old").write("gone/x", "x").write("same", "same");
    world.write("moded", "m").write("one", "1").link("one", "two");
    world.symlink("edited", "link").fifo("fifo").write("large", vec![1; 200_000]).write("twin", "old").mkdir("hollow");
    world.write("in-place/f", "old").set_mtime("in-place", 1_000_000_002, 5);
    world.set_mtime("gone", 1_000_000_000, 5).set_mtime("", 1_000_000_001, 5).chmod("edited", 0o640);
    let before = world.manifest();
    let script = "echo new > edited; rm -r gone fifo large hollow; chmod 600 moded; rm two; echo 2 > two; mkdir -p made/by; echo n > made/by/n; \
                  ln -sf other link; echo new > twin; mv same moved; echo more >> in-place/f; exit 3";
    let said = world.call(["run", "--in", ".", "--", "sh", "-c", script]).run().with(3);
    assert!(said.stderr().contains("committed as session") && said.stderr().contains("recant rollback"), "{said}");
    let after = world.manifest();
    assert_eq!(world.recant("list --json").ok().json()["sessions"][0]["status"], "committed");
    world.recant("checkpoint verify last").ok();
    assert!(world.recant("diff last").ok().stdout().contains("\n+new\n"));
    assert!(world.recant("checkpoint show last").ok().stdout().contains("gone/x"));
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "taken back");
    world.recant("redo last").ok();
    after.assert_same(&world.manifest(), "done again");
    world.recant("rollback last edited").ok();
    assert_eq!((world.read("edited"), world.read("twin")), ("old".into(), "new\n".into()));
    world.assert_tidy("after a run on the real tree");
}

/// What it left of its session is nobody's: neither that nor its name stands in anybody's way.
#[test]
fn the_name_for_a_run_that_was_killed_while_its_session_was_made_is_free() {
    let run = |world: &World| world.call(["run", "--in", ".", "-n", "work", "--", "sh", "-c", "echo new > f"]);
    let (Some(first), Some(world)) = (confined(), confined()) else { return };
    let steps = steps_of(|| run(first.write("f", "old")));
    let n = 1 + steps.iter().position(|step| step.contains("changes.jsonl.new")).expect("its changes are written");
    run(world.write("f", "old")).env("RECANT_STEPS", format!("kill:{n}")).run().with(137);
    world.recant("session new -n work").ok();
}

#[test]
fn shared_memory_of_a_run_on_the_real_tree_is_its_own_and_closed_where_that_cannot_be_had() {
    let shm = Path::new("/dev/shm");
    if !shm.is_dir() {
        return common::skip("there is no /dev/shm");
    }
    for who in whos() {
        let Some(world) = confined() else { return };
        let desk = Desk::of(*who, world);
        let kept = tempfile::Builder::new().prefix("recant-kept-").tempdir_in(shm).expect("a directory in /dev/shm");
        let name = kept.path().file_name().expect("a name").to_string_lossy().into_owned();
        if desk.other() {
            std::os::unix::fs::chown(kept.path(), Some(desk::USER), Some(desk::USER)).expect("it is given to the user");
        }
        let left = format!("recant-left-{}", std::process::id());
        let script = format!("echo x > /dev/shm/{left} && cat /dev/shm/{left} && ls /dev/shm && echo y > f");
        let said = desk.call(["run", "--in", ".", "--", "sh", "-c", &script]).run().ok();
        assert!(said.stdout().starts_with("x\n") && !said.stdout().contains(&*name), "{said}");
        assert!(!shm.join(&left).exists(), "{who:?}: it is not the real one");
        // Who it is, and what it may do with its files, is as bare.
        let said = desk.call(["run", "--in", ".", "--", "sh", "-c", "id -u; chown $(id -u):$(id -g) f; stat -c %u f"]).run().ok();
        let uid = if *who == Who::Root {
            0
        } else if desk.other() {
            desk::USER
        } else {
            rustix::process::geteuid().as_raw()
        };
        assert_eq!(said.stdout(), format!("{uid}\n{uid}\n"));
        // What is asked for stays real.
        let (pass, script) = (
            kept.path().to_str().expect("UTF-8"),
            format!("echo x > /dev/shm/{left}; echo x > {}/f; ls /dev/shm", kept.path().display()),
        );
        let said = desk.call(["run", "--in", ".", "--pass", pass, "--", "sh", "-c", &script]).run().ok();
        assert!(said.stdout().contains(&*name) && kept.path().join("f").exists() && !shm.join(&left).exists(), "{said}");
        desk.call(["run", "--in", ".", "--pass", "/dev/shm", "--", "sh", "-c", &format!("echo x > /dev/shm/{left}")]).run().ok();
        std::fs::remove_file(shm.join(&left)).expect("the real one was written to");
        if !has("unshare") || !has("setpriv") {
            continue;
        }
        // Where no namespace can be made it is closed, which is said. The root of a user namespace without CAP_SYS_ADMIN is treated as a
        // user.
        let none =
            "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-sys_admin --bounding-set=-sys_admin \"$@\"";
        let script = format!("echo x > /dev/shm/{left} && echo written; true");
        let words =
            ["-Ur", "sh", "-c", none, "sh", desk.binary.to_str().expect("UTF-8"), "run", "--in", ".", "--", "sh", "-c", &script];
        let said = desk.give(desk.world.program("unshare", words)).run().ok();
        assert!(said.stderr().contains("/dev/shm: cannot make a mount namespace") && said.stdout().is_empty(), "{said}");
        assert!(!shm.join(&left).exists(), "{said}");
    }
}

#[test]
fn it_writes_nowhere_else_and_a_later_edit_is_a_conflict() {
    let Some(world) = confined() else { return };
    world.write("a/f", "1").write("b/f", "1").write("outside", "o");
    let script = "echo 2 > a/f; echo 2 > b/f; echo x > outside || exit 7";
    world.call(["run", "--in", "a", "--in", "b", "-n", "both", "--", "sh", "-c", script]).run().with(7);
    assert_eq!((world.read("a/f"), world.read("b/f"), world.read("outside")), ("2\n".into(), "2\n".into(), "o".into()));
    world.write("b/f", "mine");
    world.recant("rollback both").with(3);
    assert_eq!((world.read("a/f"), world.read("b/f")), ("2\n".into(), "mine".into()));
    world.recant("rollback both a").ok();
    assert_eq!(world.read("a/f"), "1");
    let said = world.recant("run --in a -- true").ok();
    assert!(said.stderr().contains("no file change"), "{said}");
    world.recant("run --in a -- no-such-program").with(127);
    world.recant("run --in / -- true").with(125);
    let said = world.call(["run", "--in", "a", "--json", "--", "sh", "-c", "echo 3 > a/f"]).run().ok();
    assert!(said.stderr().lines().last().is_some_and(|line| line.contains("\"result\":\"committed\"")), "{said}");
}

#[test]
fn without_network_no_connection_leads_out_and_what_stays_open_is_said() {
    desk::each(|desk| {
        if confined().is_none() || !desk::has("bash") {
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let ask = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached; echo x > made");
        // Not in /tmp, where a confined command may write.
        let store = tempfile::tempdir_in("/var/tmp").expect("a directory");
        if desk.other() {
            std::os::unix::fs::chown(store.path(), Some(desk::USER), Some(desk::USER)).expect("another owner");
        }
        let run = |options: &[&str]| {
            let call = desk.call([&["run", "--in", "."], options, &["--", "bash", "-c", &ask]].concat());
            call.env("RECANT_STORE", store.path()).run().ok()
        };
        assert!(run(&[]).stdout().contains("reached"), "it is there");
        let said = run(&["--no-network"]);
        assert!(!said.stdout().contains("reached") && said.stderr().contains("committed as session"), "{said}");
        let is_root = desk.who == desk::Who::Root;
        assert_eq!(said.stderr().contains("no TCP; UDP"), !is_root, "what stays open: {said}");
        let said = run(&["-v", "--no-network"]);
        assert_eq!(said.stderr().contains("no network but a private loopback"), is_root, "{said}");
        let said = run(&["--no-network", "--json"]);
        let errors = said.stderr();
        let document: serde_json::Value = serde_json::from_str(errors.lines().last().expect("a line")).expect("JSON");
        assert_eq!(document["beyond_files"]["network"], desk.who == desk::Who::User, "{said}");
    });
}

#[test]
fn what_a_run_on_the_real_tree_cannot_do_is_refused_with_the_reason_and_what_can() {
    let world = World::new();
    for (options, why, remedy) in [
        ("--max-size 1M", "not in one place", "ulimit -f"),
        ("--hide tree", "hides nothing", "without --in"),
        ("--network web.test", "no hosts", "--no-network"),
        ("--scratch x", "on the tree at once", "--pass PATH"),
        ("--session last", "nothing is held", "a new session"),
        ("--commit", "on the tree at once", "committed already"),
        ("--discard", "on the tree at once", "rollback last"),
    ] {
        let said = world.recant(&format!("run --in . {options} -- touch made")).with(2);
        let lines = said.stderr();
        assert!(lines.contains(why) && lines.contains(remedy) && lines.contains("was not started"), "{options}: {said}");
        assert!(!world.exists("made"), "{options}");
    }
}

/// A world whose PATH has these programs and what a shell needs.
pub fn world_with(programs: &[&str]) -> Option<World> {
    let mut world = confined()?;
    let bin = world.root().join("bin");
    let search = std::env::var_os("PATH").expect("a PATH");
    for name in [&["sh", "touch", "mkdir", "rm", "ls"], programs].concat() {
        let found = std::env::split_paths(&search).map(|dir| dir.join(name)).find(|path| path.exists());
        world.mkdir(&bin).symlink(found.unwrap_or_else(|| "/bin/true".into()), bin.join(name));
    }
    world.set("PATH", &bin);
    Some(world)
}

#[test]
fn caches_of_programs_in_path_are_made_for_a_run_on_the_real_tree_and_go_again_where_they_stayed_empty() {
    let Some(world) = world_with(&["npm", "go"]) else { return };
    let home = world.root().join("home");
    let run = |script: &str| world.call(["run", "-v", "--in", ".", "--", "sh", "-c", script]).run();
    let said = run(
        "touch ~/.npm/_cacache/x ~/.cache/y ~/go/pkg/mod/z && rm ~/go/pkg/mod/z; ls ~/go/pkg; ls -d ~/.cargo ~/.m2 2> /dev/null",
    )
    .with(2);
    assert_eq!(said.stdout(), "mod\nsumdb\n");
    let said = said.stderr();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.iter().all(|line| line.len() <= 80), "{said}");
    let words = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        ["/tree", "~/.npm/_cacache", "~/.cache", "~/go/pkg/mod"].iter().all(|place| words.contains(place))
            && words.contains(" recant: not denied elsewhere: "),
        "{words}"
    );
    // What was used stays, the rest is as it was.
    let left = |path: &str| home.join(path).exists();
    assert!(left(".npm/_cacache/x") && left(".cache/y") && !left("go") && !left(".cargo") && !left(".m2"));
    // What programs obey or execute is none of a cache.
    run("touch ~/.npm/_npx").with(1);
    run("mkdir ~/.npm/other").with(1);
    run("touch ~/.npmrc").with(1);
    world.recant("run --in . -- no-such-program").with(127);
    assert!(!left("go"), "also where no command came about");
    world.recant("run --in nowhere -- true").with(125);
    assert!(!left("go"));
    // A link leads to the cache.
    world.remove(home.join(".cache")).mkdir(world.root().join("disk")).symlink(world.root().join("disk"), home.join(".cache"));
    run("touch ~/.cache/y").ok();
    assert!(world.root().join("disk/y").exists());
}

/// One makes a cache for its command and removes it at its end, while another looks what it may write to.
#[test]
fn runs_on_the_real_tree_beside_each_other_take_no_cache_for_one_that_stays() {
    let Some(world) = world_with(&["npm"]) else { return };
    let dirs: Vec<String> = (0..4).map(|n| format!("d{n}")).collect();
    for dir in &dirs {
        world.mkdir(dir);
    }
    let refused: Vec<String> = std::thread::scope(|scope| {
        let runs = dirs.iter().map(|dir| {
            let world = &world;
            scope.spawn(move || {
                let call = || world.call(["run", "-q", "--in", dir, "--", "ls"]).run();
                (0..12).map(|_| call()).filter(|said| said.status != 0).map(|said| said.to_string()).collect::<Vec<_>>()
            })
        });
        let runs: Vec<_> = runs.collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    assert!(refused.is_empty(), "{} of 48: {}", refused.len(), refused[0]);
}

#[test]
fn caches_of_a_run_on_the_real_tree_are_those_of_the_settings_and_never_the_store_s_place() {
    let Some(world) = world_with(&["npm"]) else { return };
    let home = world.root().join("home");
    world.mkdir(home.join("mine")).mkdir(home.join(".cache"));
    let run = |words: &[&str]| world.call([words, &["run", "--in", ".", "--", "sh", "-c", "touch ~/.cache/x"]].concat()).run();
    // Landlock takes nothing out of a directory that may be written to.
    let store = home.join(".cache/store");
    let said = run(&["--store", store.to_str().expect("UTF-8")]).with(1);
    assert!(said.stderr().contains("recant: ~/.cache is read-only for the command: the store lies there\n"), "{said}");
    world.config("[capture]\ncaches = ['~/mine', '~/none']\n");
    let said = run(&["-v"]).with(1);
    assert!(
        said.stderr().contains("~/mine") && !said.stderr().contains("~/none") && !said.stderr().contains(".cache,"),
        "{said}"
    );
    assert!(!home.join("none").exists() && !home.join(".npm").exists());
    world.recant("run --in . -- touch ../home/mine/x").ok();
    world.config("[capture]\ncaches = []\n");
    world.recant("run --in . -- touch ../home/mine/y").with(1);
    world.recant("run --in . --pass ../home/mine -- touch ../home/mine/y").ok();
    // What a missing PATH is to become, the user says.
    let said = world.recant("run --in . --pass ../home/miss;ing -- touch made").with(125);
    assert!(
        said.stderr().contains("--pass ../home/miss;ing: it does not exist")
            && said.stderr().contains("mkdir -p '../home/miss;ing'")
    );
    assert!(!world.exists("made") && !home.join("miss;ing").exists());
}

/// What another machine starts here is no cache: a command could put its own program there.
#[test]
fn no_command_on_the_real_tree_writes_where_other_machines_find_recant() {
    let Some(world) = world_with(&["mv"]) else { return };
    let home = world.root().join("home");
    let place = ".local/lib/recant/bin";
    let run = |script: &str| world.call(["run", "--in", ".", "--", "sh", "-c", script]).run();
    let script = format!("touch ~/.cache/x && ! mkdir -p ~/{place}/1.0 && ! mkdir -p ~/.local/lib");
    run(&script).ok();
    assert!(home.join(".cache/x").exists() && !home.join(place).exists());
    let program = home.join(place).join("1.0/recant");
    world.mkdir(program.parent().expect("its directory")).write(&program, "ours");
    let script =
        format!("cd ~/{place} && ! echo theirs > 1.0/recant && ! mv 1.0 1.1 && ! rm 1.0/recant && ! mkdir 2.0 && ! touch x");
    run(&script).ok();
    assert_eq!(world.read(&program), "ours");
}

#[test]
fn npm_installs_on_the_real_tree() {
    if !desk::has("npm") {
        return;
    }
    let Some(world) = confined() else { return };
    world.write("package.json", r#"{"name":"app","version":"1.0.0"}"#);
    world.write("package/package.json", r#"{"name":"leaf","version":"1.0.0"}"#);
    world.program("sh", ["-ec", "tar czf leaf.tgz package; rm -r package"]).run().ok();
    let before = world.manifest();
    world.recant("run --in . -- npm install ./leaf.tgz --offline --no-audit --no-fund").ok();
    assert!(world.exists("node_modules/leaf/package.json") && world.root().join("home/.npm/_cacache/index-v5").exists());
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "taken back");
}

#[test]
fn cargo_fetches_on_the_real_tree() {
    // The one that has built this.
    let cargo = Path::new(env!("CARGO"));
    if !desk::has("git") || !cargo.exists() {
        return common::skip("a cargo that fetches: there is no git, or no cargo where this was built");
    }
    let Some(mut world) = confined() else { return };
    let path = std::env::var("PATH").expect("a PATH");
    world.set("PATH", format!("{}:{path}", cargo.parent().expect("a directory").display()));
    let manifest = |name: &str| format!("[package]\nname = '{name}'\nversion = '1.0.0'\nedition = '2021'\n");
    let dep = world.root().join("dep");
    world.write(dep.join("Cargo.toml"), manifest("dep")).write(dep.join("src/lib.rs"), "");
    let git = "cd ../dep; git init -q; git add .; git -c user.name=n -c user.email=e commit -qm m";
    world.program("sh", ["-ec", git]).run().ok();
    let dep = format!("{}[dependencies]\ndep = {{ git = 'file://{}' }}\n", manifest("app"), dep.display());
    world.write("Cargo.toml", dep).write("src/main.rs", "fn main() {}\n");
    world.recant("run --in . -- cargo fetch").ok();
    let home = world.root().join("home/.cargo");
    assert!(home.join("git/db").exists() && world.exists("Cargo.lock"));
    // Its lock is held where it is there, so that a cargo outside and one inside wait for each other.
    world.write(home.join(".package-cache"), "").write(home.join(".global-cache"), "").mkdir(home.join("bin"));
    world.recant("run --in . -- cargo update -q").ok();
    world.recant("run --in . -- dd of=../home/.cargo/.package-cache if=/dev/null status=none").ok();
    world.recant("run --in . -- touch ../home/.cargo/bin/cargo").with(1);
    world.recant("run --in . -- touch ../home/.cargo/config.toml").with(1);
}

#[test]
fn a_command_that_kills_its_init_ends_with_it_and_what_it_did_is_recorded() {
    let Some(world) = confined() else { return };
    world.write("a", "old");
    let before = world.manifest();
    // A child of it, too, that is nobody's by then.
    let script =
        "sleep 20 & echo $! > pids; echo $$ >> pids; kill -9 $PPID; for n in $(seq 200); do echo more >> a; sleep .05; done";
    let said = world.call(["run", "--in", ".", "--", "sh", "-c", script]).run().with(137);
    for pid in world.read("pids").lines() {
        assert!(!Path::new("/proc").join(pid).exists(), "{pid} goes on: {said}");
    }
    assert!(said.stderr().contains("committed as session"), "{said}");
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), "all that it did is taken back");
}

/// A shell gives its own process, with the children that it has, to the last command of a script.
#[test]
fn what_was_there_before_a_run_outlives_it() {
    let Some(world) = confined() else { return };
    let recant = common::recant();
    let script = format!(
        "sleep 60 > /dev/null 2>&1 & echo $! > pid; exec {recant} run --in . --no-wait -- sh -c 'sleep 50 > /dev/null 2>&1 & echo $! > theirs'"
    );
    world.program("sh", ["-c", &script]).run().ok();
    let [server, left] = ["pid", "theirs"].map(|name| Path::new("/proc").join(world.read(name).trim()).join("cmdline"));
    assert!(std::fs::read(&server).is_ok_and(|line| line.starts_with(b"sleep")), "it was none of the run's");
    assert!(!std::fs::read(&left).is_ok_and(|line| line.starts_with(b"sleep")), "what the run left is ended");
    world.program("sh", ["-c", "kill $(cat pid)"]).run().ok();
}

#[test]
fn a_run_on_the_real_tree_says_so_in_a_line_and_undo_takes_it_back() {
    let Some(world) = confined() else { return };
    world.write("kept", "one\n");
    let before = world.manifest();
    let said = world.call(["run", "--in", ".", "--", "sh", "-c", "echo two > kept; echo new > made"]).run().ok();
    let said = said.stderr();
    // The path of a test is long.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins =
        words.starts_with("recant: changes in ") && words.contains("/tree are real at once; recant undo takes them back ");
    assert!(begins && words.contains(" back recant: 2 changes made, and committed as session "), "{said}");
    assert!(said.lines().count() <= 4, "{said}");
    world.recant("undo -y").ok();
    before.assert_same(&world.manifest(), "undone");
}

#[test]
fn what_rules_left_out_before_a_run_is_none_of_its_session() {
    let Some(world) = confined() else { return };
    world.write("nm/a", "x").write(".recantignore", "nm/\n").write("secret", "s1").write("src.c", "c\n");
    let said = world.recant("run --in . -- truncate -s 0 nm/a src.c").ok();
    assert!(said.stderr().contains("not in the session: what ") && said.stderr().contains("/.recantignore"), "{said}");
    world.recant("rollback last").ok();
    assert_eq!((world.read("nm/a"), world.read("src.c")), (String::new(), "c\n".to_owned()));
    is_exact(&world, "rm .recantignore");
    is_exact(&world, "echo s2 > secret; echo secret > .recantignore; echo m >> src.c");
    is_exact(&world, "mkdir sub; echo '*' > sub/.recantignore; echo new > sub/f");
    // Nor do the rules of an earlier snapshot decide, where nothing has changed since.
    world.recant("snapshot create --exclude built").ok();
    is_exact(&world, "echo b > built");
}

#[test]
fn what_cannot_be_read_is_named_once_and_the_first_twenty_of_many() {
    // Not in /tmp, where a confined command may write.
    let desk = Desk::on(Who::User, Path::new("/var/tmp"));
    if confined().is_none() {
        return;
    }
    desk.bare(&desk.world.tree(), "mkdir in; for n in $(seq 10 34); do echo $n > in/f$n; chmod 0 in/f$n; done; echo x > in/late");
    let script = "echo new > in/new; rm in/f10; chmod 0 in/late";
    let run = |options: &[&str]| {
        let said = desk.call([&["run"], options, &["--in", "in", "--", "sh", "-c", script]].concat()).run().with(4);
        said.masked_err().to_owned()
    };
    let said = run(&[]);
    let lines = |word: &str| said.lines().filter(|line| line.contains(word)).count();
    assert_eq!((lines("/in/f"), lines("… and 5 more: -v names them all")), (20, 1), "{said}");
    assert_eq!((lines("what happens there cannot be taken back"), lines("25 paths named above")), (1, 1), "{said}");
    // What the command itself closed was named by nobody before.
    assert_eq!(lines("/in/late: not in both snapshots: permission denied"), 1, "{said}");
    let all = run(&["-v"]);
    assert_eq!(all.lines().filter(|line| line.contains("/in/f")).count(), 24, "{all}");
}

#[test]
fn names_of_a_file_that_a_run_parts_are_one_file_again() {
    let Some(world) = confined() else { return };
    world.write("a", "data").link("a", "b").link("a", "c").write("d/x", "d").link("d/x", "gg").write("p", "p");
    world.link("p", "../out").symlink("a", "l1").link("l1", "l2").fifo("f1").link("f1", "f2");
    crate::settle();
    for script in [
        "sed -i s/data/DATA/ b",
        "mv d b2; touch n",
        "ln a another",
        "rm a",
        "mv a z",
        "rm a b; echo 3 > a",
        "rm l1 f2",
        "rm l1 l2 f1 f2",
    ] {
        is_exact(&world, script);
    }
}

/// A run on the real tree is taken back exactly, made again, and taken back.
fn is_exact(world: &World, script: &str) {
    let before = world.manifest();
    world.call(["run", "--in", ".", "--", "sh", "-c", script]).run().ok();
    let after = world.manifest();
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), script);
    world.recant("redo last").ok();
    after.assert_same(&world.manifest(), script);
    world.recant("rollback last").ok();
    before.assert_same(&world.manifest(), script);
}

#[test]
fn a_store_that_the_command_could_write_to_is_refused_before_it_is_started() {
    let Some(world) = confined() else { return };
    let beside = world.root().join("beside");
    world.program("mkdir", [&beside]).run().ok();
    let [beside, tree] = [&beside, &world.tree()].map(|path| path.to_str().expect("plain").to_owned());
    for (store, pass) in
        [(format!("{tree}/.st"), None), ("/tmp/recant-no-store/deep".into(), None), (format!("{beside}/st"), Some(&beside))]
    {
        let passes = pass.map_or(Vec::new(), |pass| vec!["--pass", pass]);
        let words = [&["--store", &store, "run", "--in", "."], &passes[..], &["--", "touch", "made"]].concat();
        let said = world.call(words).run().with(125);
        assert!(said.stderr().contains("where the command may write"), "{said}");
        assert!(said.stderr().contains("the command was not started"), "{said}");
        assert!(!world.exists("made") && !Path::new(&store).exists(), "{said}");
    }
    // What lies in the store may not be written to either.
    world.recant("snapshot create").ok();
    let within = world.store().join("snapshots");
    let said = world.call(["run", "--in", within.to_str().expect("plain"), "--", "true"]).run().with(125);
    assert!(said.stderr().contains("where the command may write"), "{said}");
    world.call(["run", "--in", ".", "--pass", &beside, "--", "touch", "made"]).run().ok();
}

#[test]
fn last_is_the_newest_snapshot_that_no_run_took() {
    let Some(world) = confined() else { return };
    let run = |script: &str| world.call(["run", "--in", ".", "--", "sh", "-c", script]).run().ok();
    world.write("f", "first");
    run("echo run > f");
    let said = world.recant("snapshot restore last").with(1);
    assert!(said.stderr().contains("there are 0 (a run's), 1 (a run's)"), "{said}");
    world.write("f", "asked for");
    world.recant("snapshot create").ok();
    world.write("f", "edited");
    run("echo run > f");
    world.recant("snapshot restore last").ok();
    assert_eq!(world.read("f"), "asked for");
    // What is asked for is `last`, also where a run's snapshot has that state.
    run("echo more > f");
    let n = world.recant("snapshot create --if-changed").ok().id();
    world.write("f", "x");
    world.recant("snapshot restore last").ok();
    assert_eq!(world.read("f"), "more\n");
    let list = world.recant("snapshot list --json").ok().json();
    let rows = list["snapshots"].as_array().expect("snapshots");
    let asked: Vec<String> = rows.iter().filter(|row| row["run"] == false).map(|row| row["n"].to_string()).collect();
    assert_eq!(asked, [n.as_str(), "2"], "{list}");
}

#[test]
fn a_command_that_makes_more_than_the_limit_is_recorded() {
    let Some(world) = confined() else { return };
    world.config("[snapshot]\nmax_files = 20\n");
    (0..15).for_each(|i| {
        world.write(format!("r/{i}"), "x");
    });
    is_exact(&world, "cd r; for i in $(seq 100 120); do echo $i > $i; done");
    (0..15).for_each(|i| {
        world.write(format!("r/more-{i}"), "x");
    });
    let said = world.call(["run", "--in", ".", "--", "touch", "r/new"]).run().with(125);
    assert!(said.stderr().contains("raise snapshot.max_files") && !said.stderr().contains("--all"), "{said}");
    assert!(!world.exists("r/new"), "{said}");
}

#[test]
fn a_directory_that_the_command_removes_comes_back() {
    let Some(world) = confined() else { return };
    world.write("d/f", "x").write("d/sub/g", "y").write("d/one", "1").link("d/one", "d/two");
    world.symlink("f", "d/link").chmod("d/sub", 0o700);
    // The directory above is in no snapshot: its time is not.
    let before = manifest(&world.path("d"));
    for script in ["rm -r d", "rm -r d; echo file > d"] {
        let said = world.call(["run", "--in", "d", "--pass", ".", "--", "sh", "-c", script]).run().ok();
        assert!(said.stderr().contains("committed as session"), "{said}");
        assert!(!world.exists("d/f"), "{said}");
        world.recant("rollback last").ok();
        before.assert_same(&manifest(&world.path("d")), script);
        world.recant("redo last").ok();
        assert!(!world.exists("d/f"), "done again");
        world.recant("rollback last").ok();
    }
}

/// Landlock knows no modes, so that a command can close a store that its user owns.
#[test]
fn a_command_that_closes_the_store_leaves_what_it_changed_in_a_session_all_the_same() {
    for who in whos() {
        let Some(world) = confined() else { return };
        let desk = Desk::of(*who, world);
        let store = desk.world.store();
        let ways =
            ["chmod -R 000 S", "chmod -R a-w S", "find S -depth -exec chmod 000 {} +", "chmod 000 S/snapshots/* S/sessions"];
        for close in ways {
            let before = desk.made("echo old > f");
            let script = format!("echo new > f; {}; true", close.replace('S', store.to_str().expect("UTF-8")));
            let said = desk.call(["run", "--in", ".", "--", "sh", "-c", &script]).run();
            let text = said.stderr().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("1 change made") && said.status == 0, "{:?}: {close}: {said}", desk.who);
            assert!(text.contains("the command removed the owner's rights to the store"), "{:?}: {close}: {said}", desk.who);
            desk.recant("rollback last").ok();
            desk.world.manifest().assert_same(&before, close);
        }
    }
}

#[test]
fn a_rollback_says_that_a_file_of_a_run_on_the_real_tree_is_parted_from_its_names_outside() {
    let Some(world) = confined() else { return };
    world.write("in/own", "1").link("in/own", "in/twin").write("in/one", "old").link("in/one", "outer");
    world.write("in/a", "old").link("in/a", "in/b").link("in/a", "outside").fifo("in/pipe").link("in/pipe", "pipe");
    let script = "for f in own one a; do echo new > in/$f; done; chmod 600 in/b; rm in/pipe";
    world.call(["run", "--in", "in", "--", "sh", "-c", script]).run().ok();
    let said = world.recant("rollback last").with(4);
    for (path, sort) in [("one", "file"), ("a", "file"), ("b", "file"), ("pipe", "fifo")] {
        let parted = format!("in/{path}: taken back as a separate {sort}: it is not linked with its other names");
        assert!(said.stdout().contains(&parted), "{path}: {said}");
    }
    assert!(!said.stdout().contains("in/own:") && !said.stdout().contains("in/twin:"), "{said}");
    assert_eq!((world.read("in/one"), world.read("outer")), ("old".into(), "new\n".into()), "{said}");
    assert_eq!((world.read("in/b"), world.read("outside")), ("old".into(), "new\n".into()), "{said}");
}
