//! An ordinary user: directories of others in which he may work, and directories of his own that are closed to him, now or again after a
//! power cut. As root the tests run recant as another user; what only root can set up is skipped as anybody else.

use std::path::Path;

use crate::common::{self, Call, Manifest, Said, World};

const USER: u32 = 65534;

/// The step that makes it count: what was to be done on the tree is done.
const SEAL: (&str, &str) = ("renameat ", "session.json.new");

/// A world that belongs to an ordinary user.
struct Desk {
    world: World,
    _elsewhere: Option<tempfile::TempDir>,
}

impl Desk {
    /// `make` fills the tree as root, or as who runs the tests; all of it is the user's then.
    fn new(make: impl FnOnce(&World)) -> Option<Self> {
        Self::of(World::new(), None, make)
    }

    /// The same with the store on another file system than the tree.
    fn apart(make: impl FnOnce(&World)) -> Option<Self> {
        let shm = Path::new("/dev/shm");
        if !shm.is_dir() {
            common::skip("two file systems of an ordinary user: no /dev/shm");
            return None;
        }
        let (mut world, elsewhere) = (World::on(shm), tempfile::tempdir().expect("a directory of another file system"));
        world.set("RECANT_STORE", elsewhere.path().join("store"));
        Self::of(world, Some(elsewhere), make)
    }

    fn of(world: World, elsewhere: Option<tempfile::TempDir>, make: impl FnOnce(&World)) -> Option<Self> {
        make(&world);
        if is_root() {
            for top in [Some(world.root()), elsewhere.as_ref().map(tempfile::TempDir::path)].into_iter().flatten() {
                let owner = format!("{USER}:{USER}");
                world.program("chown", ["-hR".as_ref(), owner.as_ref(), top.as_os_str()]).run().ok();
            }
            if world.call(["--version"]).user(USER, USER).cwd("/").run().status != 0 {
                common::skip(&format!("an ordinary user: user {USER} cannot run {}", common::recant()));
                return None;
            }
        }
        Some(Self { world, _elsewhere: elsewhere })
    }

    fn call(&self, words: &str) -> Call {
        let call = self.world.call(words.split(' '));
        if is_root() { call.user(USER, USER) } else { call }
    }

    fn recant(&self, words: &str) -> Said {
        self.call(words).run()
    }

    /// A session of these stagings; what is written is "new".
    fn staged(&self, stagings: &[&str]) -> String {
        let id = self.recant("session new").ok().id();
        for words in stagings {
            self.call(&format!("session {}", words.replace("ID", &id))).stdin("new").run().ok();
        }
        id
    }

    /// As somebody else would: root, where the tests run as root.
    fn shell(&self, command: &str) {
        self.world.program("sh", ["-c", command]).run().ok();
    }

    /// Commits, and goes back and forth; `of` takes from what is compared what cannot come back.
    fn round_trip(&self, id: &str, what: &str, of: fn(Manifest) -> Manifest) {
        let before = of(self.world.manifest());
        self.recant(&format!("commit {id}")).ok();
        let after = of(self.world.manifest());
        assert!(!before.difference(&after).is_empty(), "{what}");
        for (verb, want) in [("rollback", &before), ("redo", &after), ("rollback", &before)] {
            self.recant(&format!("{verb} {id}")).ok();
            want.assert_same(&of(self.world.manifest()), &format!("{what}: {verb}"));
            self.world.assert_tidy(what);
        }
    }

    /// A commit that is killed before its first step of that kind.
    fn kill_before(&self, id: &str, (call, name): (&str, &str)) {
        let root = self.world.root();
        let shell = |command: &str| self.world.program("sh", ["-c", command]).cwd(root).run().ok();
        shell("mkdir saved && cp -a tree store saved");
        let log = root.join("steps");
        self.call(&format!("commit {id}")).env("RECANT_STEPS", format!("log:{}", log.display())).run().ok();
        let steps = std::fs::read_to_string(&log).expect("a log of steps");
        let is_it = |step: &str| step.contains(call) && step.contains(name);
        let n = 1 + steps.lines().position(is_it).unwrap_or_else(|| panic!("no {call}{name} in\n{steps}"));
        shell("chmod -R u+w tree store; rm -rf tree store; mv saved/tree saved/store .; rmdir saved");
        self.call(&format!("commit {id}")).env("RECANT_STEPS", format!("kill:{n}")).run().with(137);
    }

    fn mode(&self, name: &str) -> u32 {
        self.world.manifest().0[name.as_bytes()].mode
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn where_others_let_a_user_work_his_sessions_go_there_and_back() {
    if !is_root() {
        return common::skip("directories of others: only root can set it up");
    }
    let desk = Desk::new(|world| {
        for directory in ["open", "sticky", "group"] {
            world
                .write(format!("{directory}/mine"), "old")
                .write(format!("{directory}/edited"), "old")
                .write(format!("{directory}/sub/in"), "old");
        }
        world.write("open/theirs", "old");
    });
    let Some(desk) = desk else { return };
    // Their owners have other rights than the user: the one of `group` has fewer.
    desk.shell("chown 0:0 open open/theirs sticky; chown 0:65534 group; chmod 0777 open; chmod 1777 sticky; chmod 0570 group");
    for directory in ["open", "sticky", "group"] {
        let stagings =
            ["delete ID F/mine", "write ID F/edited", "write ID F/made", "delete ID F/sub -r", "chmod ID 0600 F/edited"];
        let mut stagings: Vec<String> = stagings.iter().map(|words| words.replace('F', directory)).collect();
        if directory == "open" {
            stagings.push("delete ID open/theirs".into());
        }
        let stagings: Vec<&str> = stagings.iter().map(String::as_str).collect();
        // The time of a directory is its owner's alone to set.
        desk.round_trip(&desk.staged(&stagings), directory, Manifest::without_directory_times);
    }
}

#[test]
fn a_user_may_close_a_directory_of_his_own_where_nothing_more_is_done_in_it() {
    let Some(desk) = Desk::new(|world| {
        world.mkdir("a").write("shut/in", "old").write("z", "old");
    }) else {
        return;
    };
    let id = desk.staged(&["chmod ID 0300 shut", "write ID z"]);
    desk.recant(&format!("commit {id}")).ok();
    desk.recant(&format!("rollback {id}")).ok();
    assert_eq!((desk.mode("shut"), desk.world.read("z")), (0o755, "old".into()));
    // What lies in it could not be taken back any more.
    let id = desk.staged(&["chmod ID 0300 shut", "write ID shut/in"]);
    let said = desk.recant(&format!("commit {id}")).with(1);
    assert!(said.stderr().contains("it needs u+rx"), "{said}");
}

#[test]
fn a_directory_that_is_closed_as_it_is_to_be_stays_closed_whatever_is_done_in_it() {
    let Some(desk) = Desk::new(|world| {
        world.write("shut/in", "old");
    }) else {
        return;
    };
    let id = desk.staged(&["chmod ID 0500 shut", "write ID shut/in"]);
    for verb in ["commit", "rollback"] {
        desk.recant(&format!("{verb} {id}")).ok();
    }
    // He does the one half of it himself.
    desk.world.chmod("shut", 0o500);
    desk.recant(&format!("redo {id}")).ok();
    assert_eq!((desk.mode("shut"), desk.world.read("shut/in")), (0o500, "new".into()));
}

/// That a directory was opened up for the work may be lost with the power, and what was done in it not.
#[test]
fn a_directory_that_a_power_cut_has_closed_again_hinders_no_recovery() {
    // All is on the tree and nothing sealed; or a directory that goes is empty and still there.
    for (shut, step) in [(0o500, SEAL), (0o555, SEAL), (0o500, ("renameat2 ", "tree/shut/sub /"))] {
        let desk = Desk::new(|world| {
            for name in ["shut/edited", "shut/gone", "shut/sub/in"] {
                world.write(name, "old").chmod(name, 0o644);
            }
            world.chmod("shut/sub", shut).chmod("shut", shut);
        });
        let Some(desk) = desk else { return };
        let before = desk.world.manifest();
        let id = desk.staged(&["write ID shut/edited", "write ID shut/made", "delete ID shut/gone", "delete ID shut/sub -r"]);
        desk.kill_before(&id, step);
        // Closed as they were before the commit.
        desk.shell(&format!(
            "chmod {shut:o} shut; find shut/sub ../store -path '*sub' -o -path '*objects/*' -type d | xargs -r chmod u-w"
        ));
        desk.recant("recover").ok();
        let what = format!("killed before {step:?}, in a directory of {shut:o}");
        before.assert_same(&desk.world.manifest(), &what);
        desk.world.assert_tidy(&what);
    }
}

/// Its mode is that of before the opening, which the step that sets another one takes for somebody's.
#[test]
fn a_kill_before_a_closed_directory_is_opened_hinders_no_recovery() {
    let Some(desk) = Desk::new(|world| {
        world.write("shut/edited", "old").chmod("shut", 0o555);
    }) else {
        return;
    };
    let before = desk.world.manifest();
    let id = desk.staged(&["chmod ID 0755 shut", "write ID shut/edited"]);
    desk.kill_before(&id, ("fchmodat ", "tree/shut"));
    desk.recant("recover").ok();
    before.assert_same(&desk.world.manifest(), "undone");
    desk.world.assert_tidy("undone");
}

/// Its ACL has an entry for the owner, which chmod(2) changes along.
#[test]
fn a_closed_directory_with_an_acl_is_opened_up_for_the_work() {
    let acl = |world: &World, name: &str| {
        let set = world.program("setfacl", ["-m", "u:1:rwx", name]).cwd(world.tree()).run();
        set.status == 0
    };
    let mut has_acls = true;
    let Some(desk) = Desk::new(|world| {
        for name in ["shut", "gone"] {
            world.write(format!("{name}/in"), "old").write(format!("{name}/edited"), "old");
            has_acls &= acl(world, name);
            world.chmod(name, 0o575);
        }
    }) else {
        return;
    };
    if !has_acls {
        return common::skip("a closed directory with an ACL: no ACLs here");
    }
    let stagings = ["delete ID gone -r", "delete ID shut/in", "write ID shut/edited", "chmod ID 0755 shut"];
    desk.round_trip(&desk.staged(&stagings), "with an ACL", |manifest| manifest);
}

/// His attributes need the right to write, which its ACL takes back.
#[test]
fn a_file_with_an_acl_that_may_not_be_written_gets_its_attributes() {
    let mut able = true;
    for change in ["-n user.a -v 2", "-x user.a", "-n user.b -v 2"] {
        let make = |world: &World| {
            world.write("f", "old").write("change", format!("chmod u+w f && setfattr {change} f && chmod u-w f"));
            for command in ["setfattr -n user.a -v 1 f", "setfacl -m u:1:r f", "chmod 400 f"] {
                able &= world.program("sh", ["-c", command]).cwd(world.tree()).run().status == 0;
            }
        };
        let Some(desk) = Desk::new(make) else { return };
        if !able {
            return common::skip("attributes of a file with an ACL: none here");
        }
        desk.recant("run -- sh change").ok();
        desk.round_trip("last", change, |manifest| manifest);
        for verb in ["redo", "rollback"] {
            let before = desk.world.manifest();
            for n in common::steps() {
                let said = desk.call(&format!("{verb} last")).env("RECANT_STEPS", format!("kill:{n}")).run();
                let what = format!("{change}: {verb} killed before step {n}");
                if said.status == 0 {
                    assert!(n > 5, "{what}: {said}");
                    break;
                }
                desk.recant("recover").ok();
                if desk.world.manifest() != before {
                    break;
                }
                desk.world.assert_tidy(&what);
            }
            // Where it was done before it was killed, there is nothing left to do.
            let id = desk.recant("list --json").ok().json()["sessions"][0]["id"].as_str().expect("an id").to_owned();
            desk.recant(&format!("{verb} {id}")).ok();
        }
    }
}

#[test]
fn what_its_owner_has_closed_before_a_recovery_is_kept() {
    let Some(desk) = Desk::new(|world| {
        world.write("edited", "old");
    }) else {
        return;
    };
    let before = desk.world.manifest();
    let id = desk.staged(&["write ID edited"]);
    desk.kill_before(&id, SEAL);
    desk.world.write("edited", "theirs").chmod("edited", 0);
    desk.recant("recover").with(4);
    desk.recant(&format!("rollback {id} --force")).ok();
    before.assert_same(&desk.world.manifest(), "by force");
    desk.world.assert_tidy("by force");
}

/// Between two file systems a copy of a directory is kept, closed as the directory was.
#[test]
fn a_closed_directory_comes_back_from_a_store_that_was_copied_onto_its_file_system() {
    let desk = Desk::apart(|world| {
        world.write("shut/in", "old").chmod("shut", 0o500);
    });
    let Some(mut desk) = desk else { return };
    let before = desk.world.manifest();
    let id = desk.staged(&["delete ID shut -r"]);
    desk.recant(&format!("commit {id}")).ok();
    let from = desk._elsewhere.as_ref().expect("it").path().join("store").display().to_string();
    desk.shell(&format!("cp -a {from} ../store"));
    desk.world.set("RECANT_STORE", desk.world.store());
    desk.recant(&format!("rollback {id}")).ok();
    before.assert_same(&desk.world.manifest(), "back");
}

#[test]
fn what_its_owner_has_closed_since_gives_way_by_force() {
    let Some(desk) = Desk::new(|world| {
        world.write("edited", "old");
    }) else {
        return;
    };
    let before = desk.world.manifest();
    let id = desk.staged(&["write ID edited"]);
    desk.recant(&format!("commit {id}")).ok();
    desk.world.chmod("edited", 0);
    desk.recant(&format!("rollback {id}")).with(3);
    desk.recant(&format!("rollback {id} --force")).ok();
    before.assert_same(&desk.world.manifest(), "by force");
}

/// Another parent is written into a directory that is moved: its own rights count.
#[test]
fn a_directory_that_was_filled_and_closed_before_it_is_let_go_is_kept() {
    let mut seen = 0;
    for n in 1..100 {
        let Some(desk) = Desk::new(|world| {
            world.mkdir("d");
        }) else {
            return;
        };
        let id = desk.call("session new").run().ok().id();
        for words in [format!("session delete {id} d"), format!("commit {id}")] {
            desk.call(&words).run().ok();
        }
        desk.world.program("sh", ["-c", &format!("mkdir d && chown {USER}:{USER} d || true")]).run().ok();
        let kept = desk.world.session(&id).join("checkpoint/objects");
        let fill = format!("ls -d {}/*/ 2>&- | xargs -I% sh -c 'touch %late && chmod 500 %'", kept.display());
        let said = desk.call(&format!("rollback {id}")).env("RECANT_STEPS", format!("run:{n}:{fill}")).run();
        let find = [desk.world.store().display().to_string(), "-name".into(), "late".into()];
        let is_filled = !desk.world.program("find", find).run().ok().stdout().is_empty();
        assert!(said.status == 0 || is_filled && said.status == 3, "before step {n}: {said}");
        if !is_filled {
            break;
        }
        seen += u32::from(said.status == 0 && said.stderr().contains("-kept-"));
    }
    assert!(seen > 3, "{seen}");
}

/// A session that leaves copies in a directory between two file systems, and gives it that mode.
fn something_on_the_way(mode: &str) -> Option<(Desk, String)> {
    let desk = Desk::apart(|world| {
        world.write("shut/in", "old").write("shut/gone", "old");
    })?;
    let id = desk.staged(&["write ID shut/in", "delete ID shut/gone", &format!("chmod ID {mode} shut")]);
    Some((desk, id))
}

/// What was copied between two file systems goes at the end, from directories that are closed by then.
#[test]
fn what_was_on_the_way_goes_from_a_directory_that_the_operation_has_closed() {
    for n in common::steps() {
        let Some((desk, id)) = something_on_the_way("0555") else { return };
        let said = desk.call(&format!("commit {id}")).env("RECANT_STEPS", format!("kill:{n}")).run();
        let recovered = desk.recant("recover").ok();
        desk.world.assert_tidy(&format!("before step {n}: {said}{recovered}"));
        let (mode, is_new) = (desk.mode("shut"), desk.world.read("shut/in") == "new");
        assert_eq!(mode, if is_new { 0o555 } else { 0o755 }, "before step {n}: {said}{recovered}");
        if said.status == 0 {
            assert!(is_new && n > 30, "{said}");
            desk.call(&format!("rollback {id}")).run().ok();
            assert_eq!(
                (desk.mode("shut"), desk.world.read("shut/in"), desk.world.exists("shut/gone")),
                (0o755, "old".into(), true)
            );
            return;
        }
    }
}

/// The directories that a command made have the modes that it gave them, in the store too.
#[test]
fn what_a_run_has_left_in_directories_that_it_closed_is_committed_onto_another_file_system() {
    if !common::can_run() {
        return;
    }
    let (Some(mut desk), shm) = (Desk::new(|_| ()), Path::new("/dev/shm")) else { return };
    let Some(elsewhere) = shm.is_dir().then(|| tempfile::tempdir_in(shm).expect("a directory of another file system")) else {
        return common::skip("two file systems of an ordinary user: no /dev/shm");
    };
    let script = "mkdir -p shut/below; echo x > shut/f; echo y > shut/below/g; chmod 500 shut/below; chmod 555 shut";
    let run = desk.world.call(["run", "-q", "--", "sh", "-c", script]);
    let said = if is_root() { run.user(USER, USER) } else { run }.run();
    if said.status == 125 {
        return common::skip(&format!("a run of an ordinary user: {said}"));
    }
    let before = desk.world.manifest();
    desk.shell(&format!(
        "cp -a {} {}; chmod 755 {2}; chown --reference={0} {2}",
        desk.world.store().display(),
        elsewhere.path().join("store").display(),
        elsewhere.path().display()
    ));
    desk.world.set("RECANT_STORE", elsewhere.path().join("store"));
    desk.recant("commit last").ok();
    assert_eq!((desk.mode("shut"), desk.mode("shut/below")), (0o555, 0o500));
    desk.world.assert_tidy("committed");
    desk.recant("rollback last").ok();
    before.assert_same(&desk.world.manifest(), "back");
}

/// What is made ready is not made in a directory that is opened only once all is ready.
#[test]
fn what_lies_in_a_closed_directory_goes_back_and_forth_between_two_file_systems() {
    let make = |world: &World| {
        world.write("shut/in/f", "old").write("shut/in/gone", "old").write("shut/in/d/f", "old");
        world.chmod("shut/in", 0o500).chmod("shut", 0o555);
    };
    let stagings = ["write ID shut/in/f", "delete ID shut/in/gone", "delete ID shut/in/d -r", "write ID shut/in/new"];
    let Some(desk) = Desk::apart(make) else { return };
    desk.round_trip(&desk.staged(&stagings), "closed", |manifest| manifest);
    killed_at_any_step(|| Desk::apart(make), &stagings, ("shut/in/gone", "shut/in/new"), |manifest| manifest);
}

/// Commits, killed before each step, until one is done: afterwards all of it is done, by which `gone` is gone and `new` there, or nothing
/// is.
fn killed_at_any_step(
    make: impl Fn() -> Option<Desk>,
    stagings: &[&str],
    (gone, new): (&str, &str),
    of: fn(Manifest) -> Manifest,
) {
    for n in common::steps() {
        let Some(desk) = make() else { return };
        let before = of(desk.world.manifest());
        let id = desk.staged(stagings);
        let said = desk.call(&format!("commit {id}")).env("RECANT_STEPS", format!("kill:{n}")).run();
        desk.recant("recover").ok();
        desk.world.assert_tidy(&format!("before step {n}: {said}"));
        if desk.world.exists(gone) {
            before.assert_same(&of(desk.world.manifest()), &format!("before step {n}: {said}"));
        }
        if said.status == 0 {
            assert!(n > 30 && desk.world.read(new) == "new", "{said}");
            return;
        }
    }
}

/// As in /tmp. Whom the closed directory keeps out, the one above it would not.
#[test]
fn what_lies_in_a_closed_directory_is_made_ready_in_one_of_others_unless_more_people_could_read_it_there() {
    if !is_root() {
        return common::skip("directories of others: only root can set it up");
    }
    let make = || {
        let desk = Desk::apart(|world| {
            world.write("shut/f", "old").write("shut/gone", "old").write("shut/d/f", "old").write("secret/f", "old");
            world.chmod("shut", 0o555).chmod("secret", 0o500);
        })?;
        desk.shell(&format!("chown root {0} && chmod 1777 {0}", desk.world.tree().display()));
        Some(desk)
    };
    // Nobody but its owner gives it its time back.
    let of = |mut manifest: Manifest| {
        manifest.0.remove(&b"."[..]);
        manifest
    };
    let stagings = ["write ID shut/f", "delete ID shut/gone", "delete ID shut/d -r", "write ID shut/new"];
    let Some(desk) = make() else { return };
    desk.round_trip(&desk.staged(&stagings), "closed", of);
    let id = desk.staged(&["write ID secret/f"]);
    // An ACL may keep out whom the mode lets in.
    for opened in ["true", "chmod 555 secret && setfacl -m u:1:--- secret"] {
        if desk.world.program("sh", ["-c", opened]).cwd(desk.world.tree()).run().status != 0 {
            common::skip("a closed directory with an ACL: no ACLs here");
            continue;
        }
        let refused = desk.recant(&format!("commit {id} --force")).with(1);
        assert!(
            refused.stderr().contains(", and in ") && refused.stderr().contains("others could see it"),
            "{opened}: {refused}"
        );
        assert!(refused.stderr().contains("secret helps"), "{opened}: {refused}");
    }
    desk.shell(&format!("chmod 755 {}", desk.world.tree().display()));
    let refused = desk.recant(&format!("commit {}", desk.staged(&["write ID shut/f"]))).with(1);
    assert!(refused.stderr().contains("shut helps"), "{refused}");
    killed_at_any_step(make, &stagings, ("shut/gone", "shut/new"), of);
}

/// What has to go from a closed directory goes, and the directory is closed as it was found.
#[test]
fn a_directory_that_its_owner_closes_after_a_kill_keeps_the_mode_that_he_gave_it() {
    for n in common::steps() {
        let Some((desk, id)) = something_on_the_way("0750") else { return };
        let said = desk.call(&format!("commit {id}")).env("RECANT_STEPS", format!("kill:{n}")).run();
        if said.status == 0 {
            assert!(n > 30, "{said}");
            return;
        }
        desk.shell(&format!("chmod 511 {}", desk.world.path("shut").display()));
        let recovered = desk.recant("recover");
        assert!([0, 4].contains(&recovered.status), "before step {n}: {recovered}");
        assert_eq!(desk.mode("shut"), 0o511, "before step {n}: {recovered}");
        desk.world.assert_tidy(&format!("before step {n}: {said}{recovered}"));
    }
}

/// Opened for the work it would be 0755: what the owner has given it is his.
#[test]
fn a_directory_that_its_owner_opens_after_a_kill_is_not_taken_for_one_that_was_opened_for_the_work() {
    for acl in [false, true] {
        let mut able = true;
        let Some(desk) = Desk::new(|world| {
            world.write("shut/edited", "old");
            able = !acl || world.program("setfacl", ["-m", "u:1:rx", "shut"]).cwd(world.tree()).run().status == 0;
            world.chmod("shut", 0o555);
        }) else {
            return;
        };
        if !able {
            return common::skip("a directory with an ACL that its owner opens: no ACLs here");
        }
        let id = desk.staged(&["write ID shut/edited"]);
        desk.kill_before(&id, ("renameat2 ", "shut/edited"));
        assert_eq!(desk.mode("shut"), 0o755, "killed while it is open");
        desk.shell(&format!("chmod 700 {}", desk.world.path("shut").display()));
        let recovered = desk.recant("recover").with(4);
        assert_eq!(recovered.stderr().matches("tree/shut: somebody changed its mode or owner").count(), 1, "{recovered}");
        assert!(!recovered.to_string().contains("--force"), "no verb goes on with a mode: {recovered}");
        assert_eq!((desk.mode("shut"), desk.world.read("shut/edited").as_str()), (0o700, "old"), "{recovered}");
        let listed = desk.recant("list --all --json").ok().json();
        assert_eq!(listed["sessions"][0]["status"], "pending", "a mode alone seals nothing: {recovered}");
        let log = desk.recant("log --json").ok().json();
        assert!(log["entries"].to_string().contains("tree/shut: somebody changed its mode or owner"), "{log}");
        desk.world.assert_tidy("its mode stays");
    }
}

/// What goes back into a directory that its owner has closed is closed itself: both are opened for that, and closed again whatever fails.
#[test]
fn what_was_opened_for_one_step_is_closed_again_where_that_fails() {
    let mut opened = 0;
    for n in common::steps() {
        let Some(desk) = Desk::new(|world| {
            world.write("shut/sub/in", "old").chmod("shut/sub", 0o500).chmod("shut", 0o500);
        }) else {
            return;
        };
        let id = desk.staged(&["delete ID shut/sub -r"]);
        desk.kill_before(&id, SEAL);
        desk.shell(&format!("chmod 511 {}", desk.world.path("shut").display()));
        desk.shell(&format!("find {} -path '*objects/*' -type d | xargs -r chmod 500", desk.world.store().display()));
        let log = desk.world.root().join("recovery");
        let steps = format!("log:{};fail:{n}:5", log.display());
        let failed = desk.call("recover").env("RECANT_STEPS", steps).run();
        let log = std::fs::read_to_string(&log).expect("a log of steps");
        let Some(step) = log.lines().nth(n - 1) else {
            assert!(opened > 3 && n > 10, "both are opened and closed: {log}");
            return;
        };
        let is_shut = |step: &str| step.contains("fchmodat ") && ["tree/shut", "tree/shut/."].iter().any(|at| step.ends_with(at));
        opened += usize::from(step.contains("fchmodat "));
        let mode = desk.mode("shut");
        assert!(mode == 0o511 || is_shut(step) && mode == 0o711, "before step {n}, {step}: {mode:o}: {failed}");
    }
}

/// Whether something is in it cannot be told then; that it was closed since can.
#[test]
fn a_kept_directory_that_who_works_in_it_has_filled_and_closed_is_a_conflict() {
    let Some(desk) = Desk::new(|world| {
        world.mkdir("d");
    }) else {
        return;
    };
    let id = desk.staged(&["delete ID d"]);
    desk.recant(&format!("commit {id}")).ok();
    let kept = desk.world.session(&id).join("checkpoint/objects");
    desk.shell(&format!("cd {}/*/ && touch late && chmod 0 .", kept.display()));
    let verified = desk.recant(&format!("checkpoint verify {id}")).with(3);
    assert!(verified.stderr().contains("something was put into the kept directory"), "{verified}");
    desk.recant(&format!("session export --checkpoint {id}")).with(1);
    desk.recant(&format!("rollback {id}")).with(3);
    let said = desk.recant(&format!("rollback {id} --force")).ok();
    assert!(said.stderr().contains("/d: something was put into it since") && desk.world.exists("d/late"), "{said}");
}

/// Copies are made ready in it, for a directory below that is closed; else nothing comes or goes.
#[test]
fn the_time_that_somebody_gives_the_directory_above_a_closed_one_stays() {
    let desk = Desk::apart(|world| {
        world.write("above/shut/f", "old").write("above/g", "old").chmod("above/shut", 0o555);
        world.set_mtime("above", 1_000_000_000, 0);
    });
    let Some(desk) = desk else { return };
    let id = desk.staged(&["write ID above/shut/f", "write ID above/new"]);
    desk.recant(&format!("commit {id}")).ok();
    desk.shell(&format!("touch -d @1300000000 {}", desk.world.path("above").display()));
    let time = || desk.world.manifest().0[&b"above"[..]].mtime.0;
    desk.recant(&format!("rollback {id} above/shut/f")).ok();
    assert_eq!(time(), 1_300_000_000);
    // What goes from it now gives it a new one. That of before the commit was not the last.
    desk.recant(&format!("rollback {id}")).ok();
    assert!(time() > 1_300_000_000, "{}", time());
    // Nor is it after one of several.
    let id = desk.staged(&["write ID above/g", "write ID above/newer", "write ID above/newest"]);
    desk.recant(&format!("commit {id}")).ok();
    desk.shell(&format!("touch -d @1300000000 {}", desk.world.path("above").display()));
    for part in [" above/newest", " above/newer", ""] {
        desk.recant(&format!("rollback {id}{part}")).ok();
        assert!(time() > 1_300_000_000, "{part}: {}", time());
    }
}

#[test]
fn a_capability_opens_a_closed_directory_where_its_owner_cannot_work_above_it() {
    if !is_root() {
        return common::skip("a capability of an ordinary user needs root to give it");
    }
    let desk = Desk::apart(|world| {
        world.write("shut/f", "old").chmod("shut", 0o555);
    });
    let Some(desk) = desk else { return };
    let id = desk.staged(&["write ID shut/f"]);
    desk.shell(&format!("chown root {0} && chmod 755 {0}", desk.world.tree().display()));
    let refused = desk.recant(&format!("commit {id}")).with(1);
    assert!(refused.stderr().contains("shut helps"), "{refused}");
    let ids = [format!("--reuid={USER}"), format!("--regid={USER}")];
    let rights = ["--clear-groups", "--inh-caps=+dac_override", "--ambient-caps=+dac_override", common::recant()];
    let words = ids.iter().map(String::as_str).chain(rights).chain(["commit", &id]);
    desk.world.program("setpriv", words.collect::<Vec<_>>()).cwd("/").run().ok();
    assert_eq!((desk.world.read("shut/f"), desk.mode("shut")), ("new".into(), 0o555));
}

/// chmod(2) clears the setgid bit of a directory whose group its owner is not in, and he could not set it again.
#[test]
fn a_closed_directory_that_would_lose_its_setgid_bit_is_refused() {
    if !is_root() {
        return common::skip("a directory of a group that its owner is not in needs root");
    }
    let Some(desk) = Desk::new(|world| {
        world.write("shut/in", "old");
    }) else {
        return;
    };
    desk.shell(&format!("chgrp 0 {0} && chmod 2555 {0}", desk.world.path("shut").display()));
    let id = desk.staged(&["write ID shut/in"]);
    let refused = desk.recant(&format!("commit {id}")).with(1);
    assert!(
        refused.stderr().contains("shut: you are not in its group, so opening it for the work would clear its setgid bit"),
        "{refused}"
    );
    assert_eq!((desk.world.read("shut/in"), desk.mode("shut")), ("old".into(), 0o2555));
}

/// The same of what changes by metadata alone; and a group that he is not in takes nothing from him, there or back.
#[test]
fn what_an_owner_could_not_set_again_for_want_of_a_group_is_refused() {
    if !is_root() {
        return common::skip("a file of a group that its owner is not in needs root");
    }
    let Some(desk) = Desk::new(|world| {
        world.write("set", "old").write("given", "old");
    }) else {
        return;
    };
    let (set, given) = (desk.world.path("set").display().to_string(), desk.world.path("given").display().to_string());
    desk.recant(&format!("snapshot create {given}")).ok();
    desk.shell(&format!("chgrp 0 {set} {given} && chmod 2755 {set}"));
    let before = desk.world.manifest();
    let id = desk.staged(&["chmod ID 0755 set"]);
    let refused = desk.recant(&format!("commit {id}")).with(1);
    assert!(refused.stderr().contains("set: you are not in group 0, so its setgid bit would be lost"), "{refused}");
    let refused = desk.recant(&format!("snapshot restore 0 --dir {given}")).with(1);
    assert!(refused.stderr().contains("given: you are not in group 0, so you cannot set or restore that group"), "{refused}");
    before.assert_same(&desk.world.manifest(), "refused");
}

/// What was edited after the kill lies in a directory that is closed again by the first recovery.
#[test]
fn what_somebody_edits_in_a_closed_directory_gives_way_by_force() {
    let Some(desk) = Desk::new(|world| {
        world.write("shut/edited", "old").write("shut/gone", "old").chmod("shut", 0o555);
    }) else {
        return;
    };
    let before = desk.world.manifest();
    let id = desk.staged(&["write ID shut/edited", "delete ID shut/gone", "write ID shut/made"]);
    desk.kill_before(&id, SEAL);
    desk.shell(&format!("cd {} && echo mine >> edited && echo mine >> made", desk.world.path("shut").display()));
    desk.recant("recover").with(4);
    assert_eq!(desk.mode("shut"), 0o555);
    desk.recant(&format!("rollback {id} --force")).ok();
    before.without_directory_times().assert_same(&desk.world.manifest().without_directory_times(), "by force");
    desk.world.assert_tidy("by force");
}

/// A directory gets another parent only where its owner may write to it.
#[test]
fn a_closed_directory_that_somebody_puts_in_the_way_gives_way_by_force() {
    let Some(desk) = Desk::new(|world| {
        world.write("edited", "old").write("gone", "old");
    }) else {
        return;
    };
    let before = desk.world.manifest();
    let id = desk.staged(&["write ID edited", "delete ID gone", "write ID made"]);
    desk.kill_before(&id, SEAL);
    let in_the_way =
        "for f in edited gone made; do rm -f $f; mkdir $f; echo mine > $f/mine; chmod 555 $f; chown -R 65534:65534 $f; done";
    desk.world.program("sh", ["-c", in_the_way]).cwd(desk.world.tree()).run().ok();
    desk.recant("recover").with(4);
    desk.recant(&format!("rollback {id} --force")).ok();
    let calm = |manifest: Manifest| manifest.without_directory_times();
    calm(before).assert_same(&calm(desk.world.manifest()), "by force");
    desk.world.assert_tidy("by force");
}

/// Its copy in the session is closed as it was.
#[test]
fn the_copy_of_a_closed_directory_is_kept_where_its_directory_has_been_moved_away() {
    let mut decided = 0;
    for n in common::steps() {
        let desk = Desk::apart(|world| {
            world.write("d/shut/in", "old").chmod("d/shut", 0o555);
        });
        let Some(desk) = desk else { return };
        let id = desk.staged(&["delete ID d/shut -r"]);
        let killed = desk.call(&format!("commit {id}")).env("RECANT_STEPS", format!("kill:{n}")).run();
        if killed.status == 0 {
            assert!(decided > 5, "{decided}");
            return;
        }
        desk.shell(&format!("mv {0} {0}away", desk.world.path("d").display()));
        let said = desk.recant("recover");
        assert!([0, 4].contains(&said.status), "killed before step {n}: {said}");
        decided += u32::from(said.status == 4);
        desk.recant("recover").ok();
    }
}

/// What is kept in it cannot be listed.
#[test]
fn a_directory_that_may_not_be_listed_hinders_no_undo() {
    for fault in ["kill", "fail"] {
        let desk = Desk::apart(|world| {
            world.write("shut/edited", "old").write("shut/gone", "old").chmod("shut", 0o311);
        });
        let Some(desk) = desk else { return };
        let list = |command: &str| desk.shell(&format!("chmod {command} {}", desk.world.path("shut").display()));
        let id = desk.staged(&["write ID shut/edited", "delete ID shut/gone", "write ID shut/made"]);
        for n in common::steps() {
            let steps = if fault == "kill" { format!("kill:{n}") } else { format!("fail:{n}:5") };
            let said = desk.call(&format!("commit {id}")).env("RECANT_STEPS", steps).run();
            if said.status == 0 {
                assert!(n > 20, "{said}");
                break;
            }
            assert!(fault == "kill" || !said.stderr().contains("the undo failed"), "before step {n}: {said}");
            desk.recant("recover").ok();
            list("755");
            let is_done = desk.world.exists("shut/made");
            list("311");
            if is_done {
                break;
            }
        }
        desk.world.assert_tidy(fault);
    }
}

#[test]
fn who_has_another_user_id_now_is_told_the_way_and_so_is_root() {
    if !is_root() {
        return common::skip("a user ID that changes: only root can set it up");
    }
    const NEW: u32 = 65533;
    let Some(desk) = Desk::new(|world| _ = world.write("f", "old")) else { return };
    let id = desk.staged(&["write ID f"]);
    let (store, tree) = (desk.world.store().display().to_string(), desk.world.tree().display().to_string());
    // usermod -u does so in the home directory; the store lies elsewhere.
    desk.shell(&format!("chown -R {NEW}:{NEW} {tree}"));
    let commit = |user: u32| desk.world.call(["commit", "--force", &id]).user(user, user).run();
    let (take, own) = (format!("chown -R {NEW} {store}"), format!("chown -R 0 {store}"));
    let said = commit(NEW).with(1);
    assert!(said.stderr().contains(&format!("(your user ID changed): sudo {take}")), "{said}");
    desk.shell(&take);
    // What it holds belongs to the user that was.
    let said = commit(NEW).with(1);
    assert!(said.stderr().contains("root can, once the store is its own: chown -R 0 STORE, and back afterwards"), "{said}");
    let said = commit(0).with(1);
    assert!(said.stderr().contains(&own) && said.stderr().contains(&take), "{said}");
    desk.shell(&own);
    commit(0).ok();
    assert_eq!(desk.world.read("f"), "new");
    desk.shell(&take);
    desk.world.call(["show", &id]).user(NEW, NEW).run().ok();
}

#[test]
fn a_working_directory_that_a_user_may_not_enter_is_told_from_one_that_is_gone() {
    if !is_root() {
        return common::skip("a directory that a user is put into and may not enter: only root can set it up");
    }
    let Some(desk) = Desk::new(|world| _ = world.mkdir("private/open").mkdir("gone")) else { return };
    desk.shell("chown -R 0:0 private && chmod 700 private");
    let within = |directory: &str, words: &str| {
        let user = format!("setpriv --reuid={USER} --regid={USER} --clear-groups");
        let before = if directory == "gone" { "rmdir ../gone" } else { "true" };
        let script = format!("cd {directory} && {before} && exec {user} \"$0\" {words}");
        desk.world.program("sh", ["-c", &script, common::recant()]).run()
    };
    for directory in ["private", "private/open"] {
        let said = within(directory, "run -- true").with(125);
        let closed = format!("{}: you may not enter the working directory", desk.world.path(directory).display());
        assert!(said.stderr().contains(&closed) && !said.stderr().contains("no longer has a path"), "{directory}: {said}");
        let said = within(directory, "list --here").with(1);
        let closed = "cannot tell which project this is: you may not enter the working directory";
        assert!(said.stderr().contains(closed), "{directory}: {said}");
    }
    let said = within("gone", "run -- true").with(125);
    assert!(said.stderr().contains("the working directory no longer has a path"), "{said}");
}

#[test]
fn a_directory_that_its_owner_has_closed_is_opened_for_the_work_and_that_is_said() {
    let Some(desk) = Desk::new(|world| _ = world.write("d/f", "old").write("e/f", "old").write("own/f", "old")) else { return };
    let id = desk.staged(&["write ID d/f", "write ID e/f", "write ID own/f", "chmod ID 0555 own"]);
    desk.shell("chmod 555 d; chmod 500 e");
    let line = "/world/tree/d: closed (mode 0555), but yours: it is opened for the work, and closed again (likewise 1 more)\n";
    // Also by a rollback; one that the session itself has closed is as it is to be.
    for verb in ["commit --dry-run", "commit", "rollback"] {
        let said = desk.recant(&format!("{verb} {id}")).ok();
        assert!(said.masked_err().contains(&format!("recant: {line}")), "{verb}: {said}");
        assert_eq!(said.stderr().matches("is opened").count(), 1, "{verb}: {said}");
        assert_eq!((desk.mode("d"), desk.mode("e")), (0o555, 0o500), "{verb}");
    }
    desk.shell("chmod 755 d e");
    for verb in ["redo", "rollback"] {
        let said = desk.recant(&format!("{verb} {id}")).ok();
        assert!(!said.stderr().contains("is opened"), "{verb}: {said}");
    }
}

#[test]
fn diff_conflicts_names_what_a_commit_is_refused_for() {
    if !is_root() {
        return common::skip("a directory of somebody else: only root can set it up");
    }
    let Some(desk) = Desk::new(|world| _ = world.write("d/f", "old").write("d/g", "old").write("e/f", "old")) else { return };
    let id = desk.staged(&["write ID d/f", "write ID d/g", "write ID e/f"]);
    insta::assert_snapshot!(desk.recant(&format!("diff {id} --conflicts")), @r"
    status 0
    --- stderr
    recant: session <id1>: no conflicts
    ");
    desk.shell("chown 0:0 d && chmod 755 d");
    let why = "the directory is read-only for you (owner 0, mode 0755)";
    let said = desk.recant(&format!("commit {id}")).with(1);
    assert!(said.masked_err().contains(&format!("/world/tree/d: {why}")), "{said}");
    insta::assert_snapshot!(desk.recant(&format!("diff {id} --conflicts")), @r"
    status 0
    --- stdout
    # /world/tree/d: refused: the directory is read-only for you (owner 0, mode 0755)
    --- stderr
    recant: a commit would be refused for 1 path
    ");
    let named = |words: &str| desk.recant(&format!("diff {id} --conflicts --name-only {words}")).ok().stderr();
    assert!(named("d/g").contains("refused for 1 path") && named("e").contains("no conflicts"));
    let told = desk.recant(&format!("diff {id} --conflicts --json")).ok().json();
    assert_eq!((&told["refused"][0]["why"], &told["refused"][0]["verb"]), (&why.into(), &"commit".into()), "{told}");
    // Rights are looked at when all else is out of the way, by the commit as well.
    desk.shell("rm e/f");
    assert_eq!(desk.recant(&format!("diff {id} --conflicts --jsonl")).ok().json_lines().len(), 2);
}

/// As his shell would: the command that the message names opens it.
#[test]
fn a_directory_that_its_owner_has_closed_is_named_with_the_command_that_opens_it() {
    for (shut, name) in [("d it", "d it/edited"), ("d it", "d it/sub/edited"), ("d it/sub", "d it/sub/edited")] {
        let Some(desk) = Desk::new(|world| {
            world.write(name, "old");
        }) else {
            return;
        };
        let id = desk.recant("session new").ok().id();
        let staged = desk.world.call(["session", "write", &id, name]);
        if is_root() { staged.user(USER, USER) } else { staged }.stdin("new").run().ok();
        let before = desk.world.manifest();
        desk.kill_before(&id, SEAL);
        let chmod = format!("chmod u+rwx '{}'", desk.world.path(shut).display());
        let closed = || {
            desk.world.chmod(shut, 0);
        };
        let opened = || {
            desk.shell(&chmod);
            desk.world.chmod(shut, 0o755);
        };
        closed();
        let said = desk.recant("recover").with(7);
        assert!(said.stdout().contains(&format!("\n{chmod}, then recant recover tries again\n")), "{said}");
        opened();
        desk.recant("recover").ok();
        before.assert_same(&desk.world.manifest(), "undone");
        desk.recant(&format!("commit {id}")).ok();
        closed();
        let said = desk.recant(&format!("rollback {id}")).with(1);
        assert!(said.stderr().contains(&format!("the directory that it lies in ({chmod} helps)")), "{said}");
        opened();
        desk.recant(&format!("rollback {id}")).ok();
        before.assert_same(&desk.world.manifest(), "rolled back");
    }
}
